"""Two vocabularies of 200,000 words and 300 dimensions through the stages' command lines: seconds and peak memory.

python -m benchmarks.scale [words]

The vectors are those of benchmarks/mapping.py: a rotated, shuffled, noisy copy, so that P@1 is known. One
side is text, the other word2vec binary. One JSON line for each stage.
"""

import json
import sys
import tempfile
from pathlib import Path

from benchmarks.corpus import measured
from benchmarks.mapping import planted
from workflow_scripts.lexicon.vectors import write_vectors
from workflow_scripts.stage import read_json
from workflow_scripts.text.files import write_lines


def main(words: int) -> None:
    """Print what mapping and lexicon took."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sides, _ = planted(words)
        write_vectors(folder / "a.vec", sides.words_a, sides.a.numpy())
        write_vectors(folder / "b.bin", sides.words_b, sides.b.numpy())
        del sides
        write_lines(folder / "gold.txt", (f"a{i} b{i}" for i in range(0, words, 20)))
        mapped = ["--mapped-a", folder / "a.mapped.vec", "--mapped-b", folder / "b.mapped.bin", "--languages", "en", "de"]
        stages = {
            "mapping": [*mapped, "--vectors-a", folder / "a.vec", "--vectors-b", folder / "b.bin"],
            "lexicon": [*mapped, "--gold", folder / "gold.txt", "--lexicon-ab", folder / "ab.tsv", "--lexicon-ba", folder / "ba.tsv"],
        }
        for stage, arguments in stages.items():
            command = [sys.executable, "-m", f"workflow_scripts.lexicon.{stage}", *arguments, "--report", folder / f"{stage}.json"]
            taken, peak = measured([str(part) for part in command])
            line = {"stage": stage, "words": words, "seconds": round(taken, 1), "peak_gb": round(peak, 2)}
            found = read_json(folder / f"{stage}.json")
            if stage == "mapping":
                line |= {"iterations": found["iterations"], "good": found["good"]}
            else:
                line |= {f"p_at_1 {way}": judged["gold"]["all"]["p@1"] for way, judged in found["directions"].items()}
            print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main(int((sys.argv[1:] or ["200000"])[0]))
