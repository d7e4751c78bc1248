"""word_lists: reads and writes lexicons and dictionaries: files with one pair of words per line."""

from collections import Counter
from collections.abc import Container, Iterator
from pathlib import Path

from workflow_scripts.stage import InputError, atomic
from workflow_scripts.text.files import read_lines
from workflow_scripts.text.languages import language
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


def check_order(path: Path, pairs: list[tuple[str, str]], languages: tuple[str, str], counts: list[Counter[str]]) -> None:
    """Raise `InputError` if more pairs of a dictionary occur in the text when they are read the other way round.

    `counts` has the words of the text in each of the `languages`, lower-cased like `pairs`; it is empty where there is no text. A pair
    occurs in the text of both languages with both words; in text of one alone, such as text with labels, with the word of this one.
    """
    every = {word for pair in pairs for word in pair}
    here, turned = both_ways(pairs, *(side or every for side in counts))
    if turned > here:
        looked_at = "both words" if all(counts) else f"their {language(languages[0 if counts[0] else 1]).name} word"
        raise InputError(
            f"{path}: {here} of {len(pairs)} pairs have {looked_at} in the text, and {turned} when they are read the other way round; the "
            f"first word of a line has to be {language(languages[0]).name}, the second {language(languages[1]).name}"
        )
