"""word_lists: reads and writes lexicons and dictionaries: files with one pair of words per line."""

from collections.abc import Container, Iterator
from pathlib import Path

from workflow_scripts.stage import InputError, atomic
from workflow_scripts.text.files import read_lines
from workflow_scripts.text.words import fold


def write_lexicon(path: Path, entries: dict[str, list[tuple[str, float]]]) -> None:
    """Write lines of ``word  candidate  rank  score``, separated by tabs, in the order of `entries`."""
    with atomic(path) as file:
        for word, candidates in entries.items():
            for rank, (candidate, score) in enumerate(candidates, 1):
                file.write(f"{word}\t{candidate}\t{rank}\t{score:.4f}\n")


def read_lexicon(path: Path) -> Iterator[tuple[str, str, float]]:
    """Yield the rows (word, candidate, score) of a lexicon in order. Raises `InputError`, naming the line, for a malformed row."""
    for number, line in enumerate(read_lines(path), 1):
        cells = line.split("\t")
        try:
            yield cells[0], cells[1], float(cells[3])
        except (IndexError, ValueError):
            raise InputError(f"{path}, line {number}: expected word, candidate, rank, score: {line[:60]!r}") from None


def read_dictionary(path: Path, languages: tuple[str, str] | None = None) -> list[tuple[str, str]]:
    """Read pairs of words, one per line, separated by a tab or a blank (MUSE's format); lower-cased if `languages` are given.

    Raises `InputError` for a line that is not a pair, or whose words a comma or a semicolon separates.
    """
    pairs = []
    for number, line in enumerate(read_lines(path), 1):
        pair = line.split("\t") if "\t" in line else line.split()
        if len(pair) != 2 or not all(map(str.strip, pair)) or (len(pair[0]) > 1 and pair[0].rstrip().endswith((",", ";"))):
            raise InputError(f"{path}, line {number}: expected two words, separated by a tab or a blank: {line[:60]!r}")
        a, b = map(str.strip, pair)
        pairs.append((fold(a, languages[0]), fold(b, languages[1])) if languages else (a, b))
    return pairs


def both_ways(pairs: list[tuple[str, str]], first: Container[str], second: Container[str]) -> tuple[int, int]:
    """How many pairs have their words in `first` and `second`, in this order, and how many when they are read the other way round."""
    return sum(a in first and b in second for a, b in pairs), sum(b in first and a in second for a, b in pairs)
