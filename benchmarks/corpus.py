"""The corpus stage at size: pairs per second of one core, and peak memory.

python -m benchmarks.corpus [pairs ...]

The embedded manual is repeated with the words of each copy perturbed, one pair in ten stays an exact
duplicate. One JSON line per size (0.1, 1 and 10 million pairs; the last takes 6 GB of disk); the peer is `sort -u` on the same file,
which only removes duplicates and loses the order.
"""

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from workflow_scripts.stage import read_json
from workflow_scripts.text.files import read_lines, write_lines

MANUAL = Path("resources/libreoffice-help/en-de.tsv.xz")


def main(sizes: list[int]) -> None:
    """Print a line per size."""
    for pairs in sizes:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            write_lines(folder / "pairs.tsv", perturbed(pairs))
            for part in ("dev", "test"):
                for code in ("de", "en"):
                    write_lines(folder / f"{part}.{code}", [f"{part} {code} sentence {i}" for i in range(1000)])
            ours = measured(command(folder))
            peer = measured(["sort", "-u", "-o", str(folder / "sorted"), str(folder / "pairs.tsv")])
            kept = read_json(folder / "corpus.json")["kept"]
            line = {"case": f"{pairs} pairs", "kept": kept, "ours": round(pairs / ours[0]), "peer": round(pairs / peer[0])}
            line |= {
                "ratio": round(peer[0] / ours[0], 3),
                "unit": "pairs/s",
                "peak_gb": round(ours[1], 2),
                "peer_peak_gb": round(peer[1], 2),
            }
            print(json.dumps(line), flush=True)


def perturbed(pairs: int) -> Iterator[str]:
    """Lines of the manual's German and English, from the second copy on with two words exchanged on either side."""
    rows = [line.split("\t") for line in read_lines(MANUAL)]
    generator = random.Random(1)
    for number in range(pairs):
        sides = [rows[number % len(rows)][column].split() for column in (3, 2)]
        if number >= len(rows) and generator.random() > 0.1:
            for side in sides:
                side.insert(generator.randrange(len(side) + 1), f"{generator.randrange(10**6)}")
        yield "\t".join(" ".join(side) for side in sides)


def command(folder: Path) -> list[str]:
    """The stage's command line for that file."""

    def files(part: str) -> dict:
        return {"files": {code: str(folder / f"{part}.{code}") for code in ("de", "en")}}

    train = {"file": str(folder / "pairs.tsv"), "columns": {"de": 1, "en": 2}}
    settings = {"languages": ["de", "en"], "train": train, "dev": files("dev"), "test": {"test": files("test")}}
    held_out = [
        part
        for code, side in (("de", "a"), ("en", "b"))
        for part in (f"--held-out-{side}", folder / f"dev.{code}", folder / f"test.{code}")
    ]
    outputs = ["--output-a", folder / "train.de", "--output-b", folder / "train.en", "--report", folder / "corpus.json"]
    line = [sys.executable, "-m", "workflow_scripts.text.corpus", "train", *held_out, *outputs, "--settings", json.dumps(settings)]
    return [str(part) for part in line]


def measured(line: list[str]) -> tuple[float, float]:
    """Seconds and peak memory in GB of a command, whose output goes to standard error."""
    started = time.perf_counter()
    process = subprocess.Popen(line, stdout=sys.stderr, env={**os.environ, "LC_ALL": "C.UTF-8"})
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"{line[:4]} failed")
    return time.perf_counter() - started, usage.ru_maxrss / 2**20


if __name__ == "__main__":
    main([int(pairs) for pairs in sys.argv[1:]] or [100_000, 1_000_000, 10_000_000])
