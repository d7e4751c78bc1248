"""treebanks: words and their tags from CoNLL-U, for `tagged`: syntactic words, or as XTREME counts them.

A word of the text may be several words of the syntax: French *du* is *de* and *le*. CoNLL-U has a line for the range of these (``1-2``)
before the lines of its words. XTREME reads the range as one word, with the tag of that of its words which is nearest to the root of the
sentence. Empty nodes (``1.1``) are no words.

It also writes each word without blanks and zero-width non-joiners, which stand inside words in some languages, Persian for one.

Treebanks whose text must not be redistributed have ``_`` in place of each word. There is nothing to be read in their sentences, and as in
XTREME these are left out; there is one in some languages that XTREME tests.
"""

import itertools
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, NamedTuple

from workflow_scripts.stage import InputError
from workflow_scripts.text.files import read_lines

Multiword = Literal["words", "fused"]
"""What of the text counts as a word where it is several words of the syntax: these, or all of them together as one."""

_INSIDE = str.maketrans("", "", " \u200c")
"""What words that are `fused` are written without."""

Row = tuple[int, str, str]
"""Line number, word and tag."""

_COLUMNS = {"number": 1, "word": 2, "tag": 4, "head": 7}
_RANGE = re.compile(r"(\d+)-(\d+)")
_EMPTY_NODE = re.compile(r"\d+\.\d+")


class Word(NamedTuple):
    """A word of the syntax: its line, form and tag, and what is written for the number of its head."""

    line: int
    form: str
    tag: str
    head: str


def read_treebank(
    path: Path, columns: dict[str, int], multiword: Multiword, code: str, changed: Counter[str]
) -> Iterator[tuple[str, list[Row]]]:
    """The document and the words of each sentence; sentences that are left out are counted in `changed`.

    `columns` are those of `word` and `tag` where they are not those of CoNLL-U, and `code` is the language. Raises `InputError`, naming the
    line, for one of too few columns, without a number or with that of another word, and for words to be fused whose heads are not told.
    """
    places = {**_COLUMNS, **columns}
    wanted = max(places[name] for name in ("number", "word", "tag", *(["head"] if multiword == "fused" else [])))
    document, words, ranges = "", dict[int, Word](), dict[int, tuple[int, int, str]]()
    for number, line in enumerate(itertools.chain(read_lines(path), [""]), 1):
        cells = cells_of(line)
        if not line.strip():
            if words:
                yield from _sentence(path, document, words, ranges, code, changed)
            words, ranges = {}, {}
        elif line.startswith("# newdoc"):
            document = f"{line} (line {number})"
        elif line.startswith("#") or _EMPTY_NODE.fullmatch(cells[0]):
            continue
        elif len(cells) < wanted:
            raise InputError(
                f"{path}, line {number}: {len(cells)} column(s), but {wanted} are needed, separated by a tab or by blanks: {line[:80]!r}; "
                "correct the line, or set `columns`"
            )
        elif found := _RANGE.fullmatch(cells[0]):
            if multiword == "fused":
                ranges[int(found[1])] = int(found[2]), number, cells[places["word"] - 1].translate(_INSIDE)
        elif cells[0].isdigit():
            if (before := words.get(int(cells[0]))) is not None:
                raise InputError(
                    f"{path}, line {number}: the word's number, {cells[0]}, stands in line {before.line} of the same sentence; "
                    "an empty line is missing between two sentences, or correct the number"
                )
            form, head = cells[places["word"] - 1], ""
            if multiword == "fused":
                form, head = form.translate(_INSIDE), cells[places["head"] - 1]
            words[int(cells[0])] = Word(number, form, cells[places["tag"] - 1].strip(), head)
        else:
            raise InputError(f"{path}, line {number}: a line of CoNLL-U begins with the word's number, not with {cells[0][:60]!r}")


def cells_of(line: str) -> list[str]:
    """The columns of a line. Only tabs and plain blanks separate them: a no-break space may be part of a word."""
    return line.split("\t") if "\t" in line else re.split(" +", line.strip(" "))


def _sentence(
    path: Path, document: str, words: dict[int, Word], ranges: dict[int, tuple[int, int, str]], code: str, changed: Counter[str]
) -> Iterator[tuple[str, list[Row]]]:
    """A sentence's document and rows, unless its words are missing."""
    rows, covered = list[Row](), 0
    for number, word in words.items():
        if number in ranges:
            covered, line, form = ranges[number]
            inside = [each for each in range(number, covered + 1) if each in words]
            rows.append((line, form, words[_head_of_span(path, words, inside, code)].tag))
            changed["words of the syntax read as one"] += len(inside)
        elif number > covered:
            rows.append((word.line, word.form, word.tag))
    # an underscore may be a word of a longer sentence
    missing = sum(form == "_" for _, form, _ in rows)
    if missing and missing >= len(rows) - 1:
        changed["sentence without its words left out"] += 1
    else:
        yield document, rows


# in the order of XTREME's conversion, by which tag it chooses among words that are equally near to the root
_PRECEDENCE = {
    "": ["VERB", "NOUN", "PROPN", "PRON", "ADJ", "NUM", "ADV", "INTJ", "AUX", "ADP", "DET", "PART", "CCONJ", "SCONJ", "X", "PUNCT"],
    "es": ["VERB", "AUX", "PRON", "ADP", "DET"],
    "fr": ["VERB", "AUX", "PRON", "NOUN", "ADJ", "ADV", "ADP", "DET", "PART", "SCONJ", "CONJ"],
    "it": ["VERB", "AUX", "ADV", "PRON", "ADP", "DET", "INTJ"],
}


def _head_of_span(path: Path, words: dict[int, Word], span: list[int], code: str) -> int:
    """The word of a span that is nearest to the root of the tree; of equally near ones the one of the foremost tag."""
    order = _PRECEDENCE.get(code, _PRECEDENCE[""])

    def rank(number: int) -> tuple[int, int]:
        tag = words[number].tag
        return _depth(path, words, number), order.index(tag) if tag in order else len(order)

    return min(span, key=rank)


def _depth(path: Path, words: dict[int, Word], number: int) -> int:
    """How many words, and the root, stand above a word in the tree."""
    depth, line = 0, words[number].line
    while number in words and depth <= len(words):  # as many steps only where heads go round in a circle
        head = words[number].head
        if not head.isdigit():
            raise InputError(
                f"{path}, line {line}: the head of the word is {head!r}; `multiword: fused` needs the numbers of heads, in column "
                f"{_COLUMNS['head']}"
            )
        number, depth = int(head), depth + 1
    return depth
