"""Batches of masked text, made as training asks for them, and all of them made before it begins.

python -m benchmarks.batches [updates] [tokens]

The text is the embedded Bible in both languages, cut into the pieces of the demo's backbone and masked anew in each epoch. Two JSON
lines, of a process each: seconds until the first batch is there and until all have been made; and by how much the peak of memory is above
what it was before. Then the ratios of the first line to the second.
"""

import json
import sys
import time
from collections.abc import Sequence

from benchmarks import apart, peak_gb
from workflow_scripts.models.tokenisation import load_codec
from workflow_scripts.noise.masking import Masking
from workflow_scripts.stage import ROOT
from workflow_scripts.text.words import read_sentences
from workflow_scripts.training.rows import Batches, MaskedText
from workflow_scripts.training.too_long import Room

WAYS = ("as they are asked for", "all before")


def main(updates: int, tokens: int) -> None:
    """Print what both ways took."""
    ours, peer = (apart("batches", str(updates), str(tokens), way) for way in WAYS)
    ratios = {name: round(ours[name] / peer[name], 3) for name in ("first_s", "all_s", "gb")}
    print(*map(json.dumps, (ours, peer, ratios)), sep="\n", flush=True)


def case(updates: int, tokens: int, way: str) -> dict:
    """What one way took."""
    text = {code: list(read_sentences(ROOT / f"resources/bible/{code}.txt.xz")) for code in ("de", "en")}
    rows = MaskedText(text, load_codec(ROOT / "resources/backbones/bible"), Room(128, leave_out=False), Masking(), 1)
    before, started = peak_gb(), time.perf_counter()
    batches: Sequence[list] = Batches(rows, tokens, updates, 1)
    batches = list(batches) if way == "all before" else batches
    batches[0]
    first = time.perf_counter() - started
    made = sum(1 for _ in batches)
    found = {"way": way, "updates": made, "tokens": tokens, "first_s": round(first, 2)}
    return {**found, "all_s": round(time.perf_counter() - started, 2), "gb": round(peak_gb() - before, 3)}


if __name__ == "__main__":
    if sys.argv[-1] in WAYS:
        print(json.dumps(case(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])))
    else:
        given = [int(value) for value in sys.argv[1:]]
        main(*(given + [5_000, 8_192][len(given) :]))
