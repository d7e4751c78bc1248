"""CTranslate2 against Hugging Face's generate at its best batch size: sentences per second and BLEU, beam 5.

python -m benchmarks.decoding results/runs/help-de-en/finetune/seed1/finetune/model results/corpora/help.de-en/test/pages de en [sentences]

A JSON line for the default precision, which is the peer's, too, and one for int8. All times include loading
the model, ours its conversion, too.
"""

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Literal

import sacrebleu
import torch

from workflow_scripts.models import decoding
from workflow_scripts.models.decoding import Decoding
from workflow_scripts.text.files import read_lines, write_lines

GPU = torch.cuda.is_available()
PRECISION: Literal["float16", "float32"] = "float16" if GPU else "float32"
# source tokens at once
PEERS_BATCHES = (2_048, 8_192, 32_768) if GPU else (128, 256, 512)


def main(model: str, text: str, source: str, target: str, sentences: str = "200") -> None:
    """Print rates, BLEU and their ratio."""
    threads = torch.get_num_threads()
    lines, references = (list(read_lines(Path(f"{text}.{code}")))[: int(sentences)] for code in (source, target))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_lines(folder / "source", lines)

        def translate(settings: Decoding) -> tuple[float, list[str]]:
            begun = time.perf_counter()
            decoding.main(Path(model), folder / "source", folder / "hyp", languages=(source, target), threads=threads, settings=settings)
            return len(lines) / (time.perf_counter() - begun), list(read_lines(folder / "hyp"))

        peers = {size: translate(Decoding(engine="huggingface", compute_type=PRECISION, batch_tokens=size)) for size in PEERS_BATCHES}
        size, (peer, theirs) = max(peers.items(), key=lambda entry: entry[1][0])
        precisions: tuple[Literal["float16", "float32", "int8"], ...] = (PRECISION, "int8")
        for compute_type in precisions:
            ours, found = translate(Decoding(engine="ctranslate2", compute_type=compute_type))
            bleu, peer_bleu = (sacrebleu.corpus_bleu(translations, [references]).score for translations in (found, theirs))
            line = {
                "case": f"{len(lines)} sentences, {compute_type}",
                "unit": "sentences/s",
                "ours": round(ours, 1),
                "peer": round(peer, 1),
            }
            line |= {"ratio": round(ours / peer, 2), "bleu": round(bleu, 2), "peer_bleu": round(peer_bleu, 2), "peer_batch": size}
            line |= {"same": sum(a == b for a, b in zip(found, theirs, strict=True))}
            print(json.dumps({**line, "threads": threads, "device": "cuda" if GPU else "cpu"}))


if __name__ == "__main__":
    main(*sys.argv[1:])
