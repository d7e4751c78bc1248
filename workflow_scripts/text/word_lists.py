"""word_lists: lexicons and dictionaries as files, a pair of words a line."""

from collections.abc import Iterator
from pathlib import Path

from workflow_scripts.stage import InputError, atomic
from workflow_scripts.text.files import read_lines
from workflow_scripts.text.words import fold


def write_lexicon(path: Path, entries: dict[str, list[tuple[str, float]]]) -> None:
    """Write ``word  candidate  rank  score``, tab-separated, words in order of frequency."""
    with atomic(path) as file:
        for word, candidates in entries.items():
            for rank, (candidate, score) in enumerate(candidates, 1):
                file.write(f"{word}\t{candidate}\t{rank}\t{score:.4f}\n")


def read_lexicon(path: Path) -> Iterator[tuple[str, str, float]]:
    """The (word, candidate, score) rows of a lexicon, in order.

    Raises `InputError` naming the line that is not one.
    """
    for number, line in enumerate(read_lines(path), 1):
        cells = line.split("\t")
        try:
            yield cells[0], cells[1], float(cells[3])
        except (IndexError, ValueError):
            raise InputError(f"{path}, line {number}: expected word, candidate, rank, score: {line[:60]!r}") from None


def read_dictionary(path: Path, languages: tuple[str, str] | None = None) -> list[tuple[str, str]]:
    """The word pairs of a file, one a line, separated by a tab or a blank (MUSE's format).

    Raises `InputError` for a line that is not a pair.
    """
    pairs = []
    for number, line in enumerate(read_lines(path), 1):
        pair = line.split("\t") if "\t" in line else line.split()
        if len(pair) != 2:
            raise InputError(f"{path}, line {number}: expected two words, separated by a tab or a blank: {line[:60]!r}")
        pairs.append(tuple(fold(w.strip(), code) for w, code in zip(pair, languages, strict=True)) if languages else tuple(pair))
    return pairs
