"""tagged: sentences whose words have tags (parts of speech, named entities), in the formats of benchmarks.

`labelled` reads them with `unit: word`. The formats:

=============  ============================================  ======================================================
file           a word                                        a sentence ends with
=============  ============================================  ======================================================
``.conllu``    a line of CoNLL-U: FORM and UPOS              a blank line, or the end of the file
               (`treebanks`)
``.jsonl``     an item of a list of words, with a list       its JSON object
               of tags beside it
any other      a line of CoNLL's columns, separated by a     a blank line, or the end of the file
               tab, or by blanks where a line has no tab;
               XTREME's ``en:word`` is read as ``word``
=============  ============================================  ======================================================

Spans are tagged in IOB2 (Tjong Kim Sang and Veenstra 1999): the first word of each has ``B-``. Files in IOB1,
whose spans begin with ``I-``, and in BIOES or BILOU are converted.
"""

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from workflow_scripts.stage import InputError
from workflow_scripts.text.entities import read_entities
from workflow_scripts.text.files import json_rows, kind_of, read_lines, whole_characters
from workflow_scripts.text.parallel import block_of
from workflow_scripts.text.treebanks import Multiword, Row, cells_of, read_treebank

INNER_BLANK = "\u00a0"
"""Character that takes the place of a blank inside a word (Vietnamese has such words) where words are separated by blanks."""


class Sentence(NamedTuple):
    """The words of a sentence and their tags, its document, and the number of its first line."""

    words: list[str]
    tags: list[str]
    document: str
    line: int


def read_sentences(
    path: Path,
    columns: dict[str, int | str],
    tags: list[str],
    names: dict[str, str],
    code: str,
    changed: Counter[str],
    multiword: Multiword = "words",
) -> Iterator[Sentence]:
    """Read the sentences of a file one after the other; changes to their tags are counted by kind.

    `columns` says where `word` and `tag` stand, `names` what a tag of the file is called in `tags`, and `code` is the language. `multiword`
    is for CoNLL-U, see `treebanks`. Raises `InputError` naming file, line and value for an unknown tag, a missing column, an empty word,
    or words and tags of different numbers.
    """
    path, prefix = Path(path), ""
    if kind_of(path) == ".conllu":
        read = read_treebank(path, _numbered(path, columns), multiword, code, changed)
    else:
        read = _json_rows(path, columns) if kind_of(path) == ".jsonl" else _column_rows(path, columns, {*tags, *names})
    for number, (document, rows) in enumerate(read, 1):
        if number == 1 and rows[0][1].startswith(f"{code}:") and rows[0][1] != f"{code}:":
            prefix = f"{code}:"
        words, found = [], []
        for line, word, tag in rows:
            at = f"{path}, line {line}"
            if not word.startswith(prefix):
                raise InputError(f"{at}: the word {word[:60]!r} does not begin with {prefix!r} like the first one of the file")
            words.append(_clean_word(word.removeprefix(prefix), at, changed))
            if (known := _known_tag(tag, tags, names, changed)) is None:
                raise InputError(
                    f"{at}: the tag {tag[:60]!r} of the word {word[:60]!r} is none of {', '.join(tags)}; correct it, translate it with "
                    f"`label_names`, or add it to `labels`{'' if kind_of(path) == '.jsonl' else _better_column(path, {*tags, *names})}"
                )
            found.append(known)
        if prefix:
            changed["language prefix cut off"] += len(words)
        yield Sentence(words, list(_iob2(found, tags, changed)), document or block_of(number), rows[0][0])


def join_words(words: Iterable[str]) -> str:
    """Join words into one line; `split_words` splits it again."""
    return " ".join(INNER_BLANK.join(word.split()) or INNER_BLANK for word in words)


def split_words(line: str) -> list[str]:
    """The words of a line that `join_words` made."""
    return [word.replace(INNER_BLANK, " ") for word in line.split(" ")]


def has_spans(tags: Iterable[str]) -> bool:
    """Whether tags mark spans of words (``B-PER``), not single words (``NOUN``)."""
    return any(tag.startswith("B-") for tag in tags)


# ---------------------------------------------------------------------------------------------
# words and tags


def _clean_word(word: str, at: str, changed: Counter[str]) -> str:
    if not word:
        raise InputError(f"{at}: the word is empty; delete the line, or see that `columns` is right")
    return read_entities(word, changed).replace("\0", "")


def _known_tag(tag: str, tags: list[str], names: dict[str, str], changed: Counter[str]) -> str | None:
    tag = names.get(tag, tag)
    if tag in tags:
        return tag
    # BIOES and BILOU mark the last word of a span by its tag; in IOB2 only the following tag tells where a span ends
    if (plain := {"S": "B", "U": "B", "E": "I", "L": "I"}.get(tag[:1], "") + tag[1:]) in tags and tag[1:2] == "-":
        changed["BIOES or BILOU tag read as IOB2"] += 1
        return plain
    return None


def _better_column(path: Path, known: set[str]) -> str:
    """A column whose cells are all known tags in the first lines, as the end of a message; nothing if there is none."""
    rows = [cells_of(line) for line in itertools.islice(read_lines(path), 200) if line.strip()]
    rows = [row for row in rows if row[0] != _DOCUMENT_START and not row[0].startswith("#")]
    different = {place: len({row[place] for row in rows}) for place in range(min(map(len, rows), default=0))}
    fitting = [place for place in different if all(row[place].strip() in known for row in rows)]
    if not fitting:
        return ""
    found = max(fitting, key=lambda place: different[place]) + 1  # others may hold the same tag throughout
    return f"; in column {found} all tags are known: set `columns: {{tag: {found}}}`"


def _iob2(found: list[str], tags: list[str], changed: Counter[str]) -> Iterator[str]:
    """Tags of a sentence with ``B-`` wherever a span begins."""
    before = ""
    for tag in found:
        if tag.startswith("I-") and before[2:] != tag[2:] and f"B-{tag[2:]}" in tags:
            changed["span that began with I- now begins with B-"] += 1
            tag = f"B-{tag[2:]}"
        yield tag
        before = tag


# ---------------------------------------------------------------------------------------------
# files

_DOCUMENT_START = "-DOCSTART-"


def _column_rows(path: Path, columns: dict[str, int | str], known: set[str]) -> Iterator[tuple[str, list[Row]]]:
    """The document and the rows of each sentence."""
    places = {"word": 1, "tag": 2, **_numbered(path, columns)}
    wanted, document = max(places.values()), ""
    rows: list[Row] = []
    for number, line in enumerate(read_lines(path), 1):
        cells = cells_of(line)
        if not line.strip() or cells[0] == _DOCUMENT_START:
            if rows:
                yield document, rows
            rows = []
            document = f"document of line {number}" if line.strip() else document
            continue
        if line.startswith("#") and not rows and _is_comment(line, cells, places["tag"], known):
            if line.startswith("# newdoc"):
                document = f"{line} (line {number})"
            continue
        if len(cells) < wanted:
            raise InputError(
                f"{path}, line {number}: {len(cells)} column(s), but word and tag are in columns {places['word']} and {places['tag']}, "
                f"separated by a tab or by blanks: {line[:80]!r}; correct the line, or set `columns`"
            )
        rows.append((number, cells[places["word"] - 1], cells[places["tag"] - 1].strip()))
    if rows:
        yield document, rows


def _numbered(path: Path, columns: dict[str, int | str]) -> dict[str, int]:
    """The columns by number. Raises `InputError` for one that is a name."""
    for name, column in columns.items():
        if not str(column).isdigit() or int(column) < 1:
            raise InputError(f"{path}: columns.{name} must be a number from 1, got {column!r}; such files have no header")
    return {name: int(column) for name, column in columns.items()}


def _is_comment(line: str, cells: list[str], place: int, known: set[str]) -> bool:
    """Whether a line that begins with ``#`` is a comment and not a word, such as ``#`` or ``#love``, with its tag at `place` (from 1)."""
    return "\t" not in line and cells[0] == "#" and not (len(cells) >= place and cells[place - 1] in known)


def _json_rows(path: Path, columns: dict[str, int | str]) -> Iterator[tuple[str, list[Row]]]:
    keys = {"word": "words", "tag": "tags", **columns}

    def sentence(row: Any) -> tuple[str, list[str], list[str]]:
        words, tags = row[keys["word"]], row[keys["tag"]]
        if not isinstance(words, list) or not isinstance(tags, list):
            raise TypeError("words and tags must be lists")
        if None in words or None in tags:
            raise ValueError("null is no word, and no tag")
        return str(row.get("document", "")), [whole_characters(str(word)) for word in words], [*map(str, tags)]

    wanted = f"lists under {keys['word']!r} and {keys['tag']!r}"
    for number, (document, words, tags) in json_rows(path, sentence, wanted):
        if len(words) != len(tags):
            at = f"{path}, line {number}"
            raise InputError(f"{at}: {len(words)} words but {len(tags)} tags; correct or delete the line: {' '.join(words)[:80]!r}")
        if words:
            yield document, [(number, word, tag) for word, tag in zip(words, tags, strict=True)]
