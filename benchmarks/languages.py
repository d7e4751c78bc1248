"""What the mapping makes of a parallel text: verdict, precision, and the share of switched words that are right.

python -m benchmarks.languages --text pairs.tsv --languages en tr --columns 3 4 --gold en-tr.txt

Word vectors of each side of a TSV file, the mapping, the lexicon, and one JSON line. The table in
docs/mapping.md comes from it. `--mode identical` starts from words spelt the same.
"""

import json
import sys
import tempfile
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import tyro

from workflow_scripts.lexicon import embeddings, lexicon, mapping
from workflow_scripts.lexicon.embeddings import Embeddings
from workflow_scripts.lexicon.mapping import Mapping
from workflow_scripts.stage import InputError, read_json
from workflow_scripts.text.files import read_lines


@dataclass
class Settings:
    """Of the stages, as in config.yaml."""

    embeddings: Embeddings = field(default_factory=Embeddings)
    """word2vec."""
    mapping: Mapping = field(default_factory=lambda: Mapping(restarts=0, on_failure="warn"))
    """The mapping; here a bad one only warns, without restarts."""


def main(
    text: Path,
    languages: tuple[str, str],
    columns: tuple[int, int] = (1, 2),
    gold: Path | None = None,
    threads: int = 1,
    mode: Literal["unsupervised", "identical", "numerals"] = "unsupervised",
    settings: Settings = Settings(),
) -> None:
    """Map one corpus and print one JSON line.

    Args:
        text: TSV file.
        languages: Codes of two languages.
        columns: Their columns, from 1.
        gold: Word list to judge by, two words a line.
        threads: CPU threads.
        mode: What the mapping starts from.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows = [line.split("\t") for line in read_lines(text) if line.strip()]
        pairs = [(row[columns[0] - 1], row[columns[1] - 1]) for row in rows]
        for side, code in enumerate(languages):
            lines = "".join(f"{pair[side]}\n" for pair in pairs if all(pair))
            (folder / f"text.{code}").write_text(lines, encoding="utf-8")
            embeddings.main(folder / f"text.{code}", folder / f"{code}.vec", language=code, settings=settings.embeddings)
        a, b = languages
        started = time.perf_counter()
        mapping.main(
            folder / f"{a}.vec",
            folder / f"{b}.vec",
            folder / f"{a}.mapped.vec",
            folder / f"{b}.mapped.vec",
            folder / "mapping.json",
            threads=threads,
            settings=replace(settings.mapping, mode=mode, fallback=[]),
        )
        seconds = time.perf_counter() - started
        lexicon.main(
            folder / "ab.tsv",
            folder / "ba.tsv",
            folder / "lexicon.json",
            languages=languages,
            mapped_a=folder / f"{a}.mapped.vec",
            mapped_b=folder / f"{b}.mapped.vec",
            text_a=folder / f"text.{a}",
            text_b=folder / f"text.{b}",
            gold=gold,
            threads=threads,
        )
        found, worth = read_json(folder / "mapping.json"), read_json(folder / "lexicon.json")["directions"]
    line: dict[str, Any] = {"text": text.name, "pairs": len(pairs), "seconds": round(seconds, 1)}
    line |= {key: found[key] for key in ("words", "start", "iterations", "good", "reason", "mutual", "witnesses", "witnesses_found")}
    line["frequency_correlation"] = found["frequency_correlation"]
    for direction, measured in worth.items():
        line[direction] = {"coverage": measured["coverage"]["running_words"], **measured["switched"]}
        if measured["gold"]:
            line[direction] |= {**measured["gold"]["non_identical"], "p@1 nearest": measured["gold_nearest"]["non_identical"]["p@1"]}
    print(json.dumps(line))


if __name__ == "__main__":
    try:
        tyro.cli(main)
    except InputError as error:
        sys.exit(f"error: {error}")
