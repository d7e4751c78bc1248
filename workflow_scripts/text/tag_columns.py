"""tag_columns: in which columns of a file words and their tags stand, by number or by name, and which columns would fit better.

Names stand in a first line (``header``), in a comment ``# global.columns = ID FORM …`` as in CoNLL-U Plus, or are those of CoNLL-U.
``MISC.NER`` is what the column MISC says of NER, as in ``NER=B-PER|SpaceAfter=No``.
"""

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from workflow_scripts.stage import InputError
from workflow_scripts.text.files import kind_of, places_named, read_lines

DOCUMENT_START = "-DOCSTART-"
"""What stands in the place of a word where a document begins, in the files of CoNLL-2003."""
CONLLU = (".conllu", ".conllup")
"""Suffixes of files in CoNLL-U and CoNLL-U Plus."""

_NAMES = ["ID", "FORM", "LEMMA", "UPOS", "XPOS", "FEATS", "HEAD", "DEPREL", "DEPS", "MISC"]
_HEAD = 200  # lines by which a file is judged
_MANY = 20  # words that are not all numbers, or all the same

Cells = Callable[[str], list[str]]
"""A function that splits a line into its columns."""


class Layout(NamedTuple):
    """Where words and tags stand in a file, from 1, and how its lines are split."""

    word: int
    tag: int
    number: int
    """The column of the word's number in its sentence; 0 where there is none."""
    head: int
    """The column of the number of the word's head; only CoNLL-U has it."""
    feature: str
    """The key whose value in the tag's column is the tag; empty where the whole column is."""
    header: int
    """The line that names the columns; 0 where none does."""
    cells: Cells
    default_word: int
    """Where words are looked for if `columns` do not say it."""


def layout_of(path: Path, columns: dict[str, int | str], header: bool) -> Layout:
    """The layout of a file in columns. Raises `InputError` for a column that is not there, or that is both word and tag."""
    head = list(itertools.islice(enumerate(read_lines(path), 1), _HEAD))
    first = next(((number, line) for number, line in head if line.strip() and not line.startswith(("#", DOCUMENT_START))), (1, ""))
    is_conllu = kind_of(path) in CONLLU
    cells = cells_of if is_conllu or "\t" in first[1] else _cells_of_blanks
    named = next((line.partition("=")[2].split() for _, line in head if re.match(r"#\s*global\.columns\s*=", line)), [])
    names = cells(first[1]) if header else named or (_NAMES if is_conllu else [])
    numbered = names.index("ID") + 1 if is_conllu and "ID" in names else 0
    words = [(number, line) for number, line in head if not (header and number == first[0])]
    if not numbered and _are_numbered([[row[0] for row in sentence] for sentence in _sentences(words, cells)]):
        numbered = 1
    default = {what: names.index(name) + 1 if name in names else place for what, name, place in (("word", "FORM", 1), ("tag", "UPOS", 2))}
    place: dict[str, int] = {}
    feature = ""
    for what, column in {**default, **columns}.items():
        place[what], inside = _place(path, what, column, names, first[1], cells)
        feature = inside if what == "tag" else feature
    if place["word"] == place["tag"] and not feature:
        way_out = "say where each of them stands, such as `columns: {word: 2, tag: 3}`"
        raise InputError(f"{path}: word and tag are both read from column {place['word']}; {way_out}")
    if place["word"] == numbered:
        numbered = 0
    of_heads = names.index("HEAD") + 1 if "HEAD" in names else 7
    return Layout(place["word"], place["tag"], numbered, of_heads, feature, first[0] if header else 0, cells, default["word"])


def cells_of(line: str) -> list[str]:
    """The columns of a line. Only tabs and plain blanks separate them: a no-break space may be part of a word."""
    return line.split("\t") if "\t" in line else re.split(" +", line.strip(" "))


def feature_of(cell: str, feature: str) -> str:
    """The value that a cell like ``NER=B-PER|SpaceAfter=No`` has for a feature; ``_``, as CoNLL-U writes nothing, where it has none."""
    pairs = (part.partition("=") for part in cell.split("|"))
    return next((value for key, _, value in pairs if key.strip() == feature), "_")


def no_words(sentences: Sequence[Sequence[str]]) -> str:
    """What the words of a file's first sentences are if they cannot be words: numbers that run on, or always the same; else empty."""
    words = [word for sentence in sentences for word in sentence]
    if _run(sentences) or (len(words) >= _MANY and all(word.isdecimal() for word in words)):
        return "only numbers"
    return "all the same" if len(words) >= _MANY and len({*words}) == 1 else ""


def better_columns(path: Path, layout: Layout, is_known: Callable[[str], bool]) -> str:
    """The columns that fit better than those of the layout, as the end of a message that says how to set them; empty if none do.

    Judged by the first lines: the tags are where most cells are known, the words where most cells differ and are no numbers that run on.
    """
    head = [(number, line) for number, line in enumerate(itertools.islice(read_lines(path), _HEAD), 1) if number != layout.header]
    sentences = list(_sentences(head, layout.cells))
    rows = [cells for sentence in sentences for cells in sentence]
    width = min(map(len, rows), default=0)
    known = [sum(is_known(cells[place].strip()) for cells in rows) / len(rows) for place in range(width)]
    different = [len({cells[place] for cells in rows}) for place in range(width)]
    # others may hold the same tag throughout
    tag = max(range(width), key=lambda place: (known[place], different[place], -place), default=-1)
    if tag < 0 or known[tag] < 0.5:
        return ""
    fit = {
        place: different[place]
        for place in range(width)
        if place != tag and known[place] < 0.5 and not no_words([[cells[place] for cells in sentence] for sentence in sentences])
    }
    if not fit:
        return ""
    word = max(fit, key=lambda place: (fit[place], -place))
    word = layout.word - 1 if 2 * fit.get(layout.word - 1, 0) > fit[word] else word
    if (word + 1, tag + 1) == (layout.word, layout.tag) or (word + 1 == layout.word and known[layout.tag - 1] >= known[tag]):
        return ""
    advised = f"tag: {tag + 1}" if word + 1 == layout.default_word else f"word: {word + 1}, tag: {tag + 1}"
    return f"in column {tag + 1} {'all' if known[tag] == 1 else 'most'} tags are known: set `columns: {{{advised}}}`"


def _cells_of_blanks(line: str) -> list[str]:
    """The columns of a line in a file whose first line has no tab: tabs in others separate like blanks."""
    return re.split("[ \t]+", line.strip(" \t"))


def _place(path: Path, what: str, column: int | str, names: list[str], first: str, cells: Cells) -> tuple[int, str]:
    """The number of a column, from 1, and the feature in it that is asked for. A text of digits is a name where there is such a name."""
    if isinstance(column, int) and column > 0:
        return column, ""
    name, _, feature = str(column).partition(".")
    folded = [known.casefold() for known in names]
    for wanted, inside in (str(column), ""), (name, feature):
        if places := places_named(wanted, names, path, what) or places_named(wanted.casefold(), folded, path, what):
            return places[0] + 1, inside
        if wanted.isdecimal() and int(wanted):
            return int(wanted), inside
    if names:
        raise InputError(f"{path}: there is no column {column!r} for columns.{what}; the file has {', '.join(names)}")
    way_out = "the first line has it: set `header: true`" if str(column) in cells(first) else "give the column's number, from 1"
    raise InputError(f"{path}: columns.{what} is {column!r}, but nothing in the file names its columns; {way_out}")


def _sentences(lines: Iterable[tuple[int, str]], cells: Cells) -> Iterator[list[list[str]]]:
    """The columns of the words of each sentence, without comments and without the lines of several words and of none."""
    rows: list[list[str]] = []
    for _, line in [*lines, (0, "")]:
        if not line.strip() or cells(line)[0] == DOCUMENT_START:
            if rows:
                yield rows
            rows = []
        elif (rows or not line.startswith("#")) and not re.fullmatch(r"\d+[-.]\d+", cells(line)[0]):
            rows.append(cells(line))


def _are_numbered(sentences: Sequence[Sequence[str]]) -> bool:
    """Whether the first cells number the words: they run from 1 in the first sentence of several words, and all others are numbers."""
    first = next((cells for cells in sentences if len(cells) > 1), [])
    return bool(first) and first[0] == "1" and _run([first]) and all(cell.isdecimal() for cells in sentences for cell in cells)


def _run(sentences: Iterable[Sequence[str]]) -> bool:
    """Whether all words are numbers that go up by one in each sentence, and a sentence has several words."""
    several = False
    for words in sentences:
        if not all(word.isdecimal() for word in words):
            return False
        numbers = [int(word) for word in words]
        if numbers != list(range(numbers[0], numbers[0] + len(numbers))):
            return False
        several = several or len(words) > 1
    return several
