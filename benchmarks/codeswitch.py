"""Code-switching against finding the words alone: words per second of one core, and peak memory.

python -m benchmarks.codeswitch results/corpora/help.de-en results/lexicons/help.de-en/unsupervised de en [pairs ...]

The text is repeated as often as it takes. One JSON line per size (100,000 and 1,000,000 pairs): ours is the
whole stage, from its start to the compressed round on disk; the peer only looks for the words of the same
lines with the pattern that defines them, by the library `regex`.
"""

import json
import sys
import tempfile
import time
from itertools import cycle, islice
from pathlib import Path

import regex

from benchmarks import peak_gb
from workflow_scripts.noise.codeswitch import main as codeswitch
from workflow_scripts.stage import read_json
from workflow_scripts.text.files import read_lines, write_lines

WORD = regex.compile(r"[\p{L}\p{N}][\p{L}\p{M}\p{N}_]*(?:[.,:'’·\u00ad][\p{L}\p{N}][\p{L}\p{M}\p{N}_]*)*")


def main(corpus: str, lexicon: str, a: str, b: str, *sizes: str) -> None:
    """Print a line per size."""
    for pairs in map(int, sizes or (100_000, 1_000_000)):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            for code in (a, b):
                write_lines(folder / f"train.{code}", islice(cycle(read_lines(Path(corpus) / f"train.{code}")), pairs))
            text, dev = ([where / f"{part}.{code}" for code in (a, b)] for where, part in ((folder, "train"), (Path(corpus), "dev")))
            (text_a, text_b), (dev_a, dev_b) = text, dev
            ab, ba = (Path(lexicon) / f"{x}-{y}.tsv" for x, y in ((a, b), (b, a)))
            began = time.perf_counter()
            codeswitch(text_a, text_b, dev_a, dev_b, folder / "noised", languages=(a, b), lexicon_ab=ab, lexicon_ba=ba)
            ours = time.perf_counter() - began
            count = sum(side["words"] for side in read_json(folder / "noised" / "codeswitch.json")["sides"].values())
            began = time.perf_counter()
            found = sum(len(WORD.findall(line)) for path in text for line in read_lines(path))
            peer = time.perf_counter() - began
            assert found == count, (found, count)
        line = {"case": f"{pairs} pairs", "unit": "words/s", "words": count, "ours": round(count / ours), "peer": round(count / peer)}
        print(json.dumps({**line, "ratio": round(peer / ours, 2), "peak_gb": round(peak_gb(), 2)}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
