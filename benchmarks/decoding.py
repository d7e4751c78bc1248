"""CTranslate2 against Hugging Face's generate: throughput and BLEU of the same model on the same text, beam 5.

python benchmarks/decoding.py results/runs/help-de-en/finetune/seed1/finetune/model results/corpora/help.de-en/test/pages de en [sentences]
"""

import sys
import tempfile
import time
from pathlib import Path

import sacrebleu

from workflow_scripts import decoding
from workflow_scripts.decoding import Decoding
from workflow_scripts.text import read_lines, write_lines


def main(model: str, text: str, source: str, target: str, sentences: str = "200") -> None:
    """Print seconds, BLEU and the ratio."""
    references = list(read_lines(Path(f"{text}.{target}")))[: int(sentences)]
    seconds = {}
    with tempfile.TemporaryDirectory() as folder:
        write_lines(Path(folder) / "source", list(read_lines(Path(f"{text}.{source}")))[: int(sentences)])
        for engine in ("ctranslate2", "huggingface"):
            hypotheses = Path(folder) / engine
            begun = time.perf_counter()
            decoding.main(Path(model), Path(folder) / "source", hypotheses, languages=(source, target), settings=Decoding(engine=engine))
            seconds[engine] = time.perf_counter() - begun
            bleu = sacrebleu.corpus_bleu(list(read_lines(hypotheses)), [references]).score
            print(f"{engine:12s} {seconds[engine]:.1f} s  BLEU {bleu:.2f}", flush=True)
    print(f"CTranslate2 is {seconds['huggingface'] / seconds['ctranslate2']:.1f} times as fast (loading and conversion included)")


if __name__ == "__main__":
    main(*sys.argv[1:])
