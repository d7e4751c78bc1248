"""treebanks: words and their tags from CoNLL-U, for `tagged`: syntactic words, or as XTREME counts them.

A word of the text may be several words of the syntax: French *du* is *de* and *le*. CoNLL-U has a line for the range of these (``1-2``)
before the lines of its words. XTREME reads the range as one word, with the tag of that of its words which is nearest to the root of the
sentence. Empty nodes (``1.1``) are no words. Other files whose words are numbered, as in Universal NER, are read here as well.

It also writes each word without blanks and zero-width non-joiners, which stand inside words in some languages, Persian for one.

Treebanks whose text must not be redistributed have ``_`` in place of each word. Their sentences hold nothing to read, and are left out as
in XTREME; some languages that XTREME tests have such a treebank.

The library `conllu` is not used: it names no line of a word or an error, passes over missing columns, and cuts a word at two blanks.
"""

import itertools
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, NamedTuple

from workflow_scripts.stage import InputError
from workflow_scripts.text.files import kind_of, read_lines
from workflow_scripts.text.tag_columns import CONLLU, Cells, cells_of

Multiword = Literal["words", "fused"]
"""What counts as a word where a word of the text is several words of the syntax: these, or all of them together."""

_INSIDE = str.maketrans("", "", " \u200c")
"""Characters that `fused` words are written without."""

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
    path: Path,
    columns: dict[str, int],
    multiword: Multiword,
    code: str,
    changed: Counter[str],
    header: int = 0,
    cells_in: Cells = cells_of,
) -> Iterator[tuple[str, list[Row]]]:
    """The document and the words of each sentence, none of those that are left out; these are counted in `changed`.

    `columns` are those of `word`, `tag`, `number` and `head` where they are not those of CoNLL-U, `code` is the language, `header` the line
    that names the columns, if one does, and `cells_in` splits a line. Raises `InputError`, naming the line, for one of too few columns,
    without a number or with that of another word, and for words to be fused whose heads are not given.
    """
    places = {**_COLUMNS, **columns}
    wanted = max(places[name] for name in ("number", "word", "tag", *(["head"] if multiword == "fused" else [])))
    at = places["number"] - 1
    document, begun = "", itertools.count(1)
    words, ranges = dict[int, Word](), dict[int, tuple[int, int, str]]()
    for number, line in enumerate(itertools.chain(read_lines(path), [""]), 1):
        cells = cells_in(line)
        if not line.strip():
            if words:
                yield from _sentence(path, document, words, ranges, code, changed)
            words, ranges = {}, {}
        elif line.startswith("# newdoc"):
            document = document_of(line, next(begun))
        elif line.startswith("#") or number == header or _EMPTY_NODE.fullmatch("".join(cells[at : at + 1])):
            continue
        elif len(cells) < wanted:
            raise InputError(
                f"{path}, line {number}: {len(cells)} column(s), but {wanted} are needed, separated by a tab or by blanks: {line[:80]!r}; "
                "correct the line, or set `columns`"
            )
        elif match := _RANGE.fullmatch(cells[at]):
            if multiword == "fused":
                ranges[int(match[1])] = int(match[2]), number, cells[places["word"] - 1].translate(_INSIDE)
        elif cells[at].isdecimal():
            if (before := words.get(int(cells[at]))) is not None:
                raise InputError(
                    f"{path}, line {number}: the word's number, {cells[at]}, stands in line {before.line} of the same sentence; "
                    "an empty line is missing between two sentences, or correct the number"
                )
            form, head = cells[places["word"] - 1], ""
            if multiword == "fused":
                form, head = form.translate(_INSIDE), cells[places["head"] - 1]
            words[int(cells[at])] = Word(number, form, cells[places["tag"] - 1].strip(), head)
        else:
            unnumbered = ", or call a file without numbers .tsv" if kind_of(path) in CONLLU else ""
            raise InputError(
                f"{path}, line {number}: the word's number is expected in column {at + 1}, not {cells[at][:60]!r}; "
                f"correct or delete the line{unnumbered}"
            )


def document_of(line: str, number: int) -> str:
    """The name of the document that a line begins: its id, or that it is the `number`-th of its file.

    Both are the same in the other languages of a text, so that these hold out the same documents.
    """
    _, named, name = line.partition("=")
    return name.strip() if named else f"document {number}"


def _sentence(
    path: Path, document: str, words: dict[int, Word], ranges: dict[int, tuple[int, int, str]], code: str, changed: Counter[str]
) -> Iterator[tuple[str, list[Row]]]:
    """A sentence's document and rows, of which there are none where its words are missing."""
    rows, covered = list[Row](), -1
    for number, word in words.items():
        if number in ranges:
            covered, line, form = ranges[number]
            inside = [place for place in range(number, covered + 1) if place in words]
            rows.append((line, form, words[_head_of_span(path, words, inside, code)].tag))
            changed["words of the syntax read as one"] += len(inside)
        elif number > covered:
            rows.append((word.line, word.form, word.tag))
    # an underscore may be a word of a longer sentence
    missing = sum(form == "_" for _, form, _ in rows)
    if missing and missing >= len(rows) - 1:
        changed["sentence without its words left out"] += 1
        rows = []
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
        if not head.isdecimal():
            raise InputError(
                f"{path}, line {line}: the head of the word is {head!r}; `multiword: fused` needs the numbers of heads, in column "
                f"{_COLUMNS['head']}"
            )
        number, depth = int(head), depth + 1
    return depth
