"""tagged: sentences whose words have tags (parts of speech, named entities), in the formats of benchmarks.

`labelled` reads them with `unit: word`. The formats:

=============  ============================================  ======================================================
file           a word                                        a sentence ends with
=============  ============================================  ======================================================
``.conllu``,   a line of CoNLL-U: FORM and UPOS              a blank line, or the end of the file
``.conllup``   (`treebanks`)
``.jsonl``     an item of a list of words, with a list       its JSON object
               of tags beside it
any other      a line of CoNLL's columns, separated by a     a blank line, or the end of the file
               tab, or by blanks where a line has no tab;
               XTREME's ``en:word`` is read as ``word``;
               words may be numbered, as in Universal NER
=============  ============================================  ======================================================

Where words and tags stand in the columns is found by `tag_columns`.

Spans are tagged in IOB2 (Tjong Kim Sang and Veenstra 1999): the first word of each has ``B-``. Files in IOB1,
whose spans begin with ``I-``, and in BIOES, BILOU or BMES are converted.
"""

import itertools
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import regex

from workflow_scripts.stage import InputError
from workflow_scripts.text.entities import read_entities
from workflow_scripts.text.files import json_rows, kind_of, read_lines, what_else, whole_characters
from workflow_scripts.text.label_names import nearest, renamed
from workflow_scripts.text.parallel import block_of
from workflow_scripts.text.tag_columns import CONLLU, DOCUMENT_START, Layout, better_columns, cells_of, feature_of, layout_of, no_words
from workflow_scripts.text.treebanks import Multiword, Row, document_of, read_treebank
from workflow_scripts.text.words import Words, located

INNER_BLANK = "\u00a0"
"""Character that takes the place of a blank inside a word (Vietnamese has such words) where words are separated by blanks."""


class Sentence(NamedTuple):
    """The words of a sentence and their tags, its document, and the number of its first line."""

    words: list[str]
    tags: list[str]
    document: str
    line: int


Rows = Iterator[tuple[str, list[Row]]]
"""The document and the words of each sentence."""

_LOOKED_AT = 50  # sentences by which a file is judged


def read_sentences(
    path: Path,
    columns: dict[str, int | str],
    tags: list[str],
    names: dict[str, str],
    code: str,
    changed: Counter[str],
    multiword: Multiword = "words",
    header: bool = False,
) -> Iterator[Sentence]:
    """Read the sentences of a file one after the other; changes to their tags are counted by kind.

    `columns` says where `word` and `tag` stand, with a `header` by the names in the first line, `names` what a tag of the file is called in
    `tags`, and `code` is the language. `multiword` is for CoNLL-U, see `treebanks`. Raises `InputError` naming file, line and value for an
    unknown tag, a missing column, an empty word in a table, words that are only numbers, or words and tags of different numbers.
    """
    path = Path(path)
    layout = None if kind_of(path) == ".jsonl" else layout_of(path, columns, header)
    read = _rows(path, columns, layout, {*tags, *names}, multiword, code, changed)
    first = list(itertools.islice(read, _LOOKED_AT))
    some = [rows for _, rows in first if rows]
    if problem := no_words([[word for _, word, _ in rows] for rows in some]):
        line, word, _ = some[0][0]
        where = "where" if layout else "under which key"
        way_out = _better(path, columns, layout, tags, names) or f"say with `columns` {where} the words stand"
        raise InputError(f"{path}, line {line}: the words are {problem} ({word[:60]!r}, …); {way_out}")
    prefix = _prefix(path, code, [row for rows in some for row in rows])
    for number, (document, rows) in enumerate(itertools.chain(first, read), 1):
        if not rows:  # it has been counted, and keeps its place: a file of another language has its translation there
            continue
        words, sentence_tags = [], []
        for line, word, tag in rows:
            at = f"{path}, line {line}"
            if not word.startswith(prefix):
                raise InputError(f"{at}: the word {word[:60]!r} does not begin with {prefix!r} like the first one of the file")
            words.append(_clean_word(word.removeprefix(prefix), at, changed, listed=layout is None or bool(prefix)))
            if layout and layout.feature:
                tag = feature_of(tag, layout.feature)
            if (known_tag := _known_tag(tag, tags, names, changed)) is None:
                may_name_columns = number == 1 and line == rows[0][0] and not header
                raise _refused(path, (line, word, tag), columns, layout, tags, names, may_name_columns)
            sentence_tags.append(known_tag)
        if prefix:
            changed["language prefix cut off"] += len(words)
        yield Sentence(words, list(_iob2(sentence_tags, tags, changed)), document or block_of(number), rows[0][0])


def join_words(words: Iterable[str]) -> str:
    """Join words into one line; `split_words` splits it again."""
    return " ".join(INNER_BLANK.join(word.split()) or INNER_BLANK for word in words)


def split_words(line: str) -> list[str]:
    """The words of a line that `join_words` made."""
    return [word.replace(INNER_BLANK, " ") for word in line.split(" ")]


def given_words(lines: Sequence[str]) -> Words:
    """The words of lines that `join_words` made, without marks at their ends. Those without a letter or digit are none, as elsewhere."""
    return located(lines, lambda line: [match.span() for match in _GIVEN_WORD.finditer(line)], INNER_BLANK)


_GIVEN_WORD = regex.compile(r"\p{M}*[\p{L}\p{N}](?:[^ ]*[\p{L}\p{M}\p{N}])?")


def has_spans(tags: Iterable[str]) -> bool:
    """Whether tags mark spans of words (``B-PER``), not single words (``NOUN``)."""
    return any(tag.startswith("B-") for tag in tags)


# ---------------------------------------------------------------------------------------------
# words and tags


def _clean_word(word: str, at: str, changed: Counter[str], listed: bool) -> str:
    """A word without marks of HTML. An empty one keeps its place in lists and behind a language's prefix (`listed`); hub data has some."""
    if not word and listed:
        changed["empty word kept as a blank"] += 1
    elif not word:
        raise InputError(f"{at}: the word is empty; delete the line, or see that `columns` is right")
    return read_entities(word, changed).replace("\0", "")


def _known_tag(tag: str, tags: Collection[str], names: dict[str, str], changed: Counter[str]) -> str | None:
    tag = names.get(tag, tag)
    if tag in tags:
        return tag
    # other schemes mark the last word of a span by its tag; in IOB2 only the following tag says where a span ends
    plain = f"{_PLAIN.get(tag[:1], '')}{tag[1:]}"
    if tag[1:2] == "-" and (plain := names.get(plain, plain)) in tags:
        changed["BIOES or BILOU tag read as IOB2"] += 1
        return plain
    return None


_PLAIN = {"S": "B", "U": "B", "W": "B", "E": "I", "L": "I", "M": "I"}
"""First letter of a tag of BIOES, BILOU or BMES → that of IOB2."""


def _is_known(tag: str, tags: Collection[str], names: dict[str, str]) -> bool:
    return _known_tag(tag, tags, names, Counter()) is not None


def _refused(
    path: Path,
    row: Row,
    columns: dict[str, int | str],
    layout: Layout | None,
    tags: list[str],
    names: dict[str, str],
    may_name_columns: bool,
) -> InputError:
    """The error for a word whose tag is empty or unknown; a first line may name the columns."""
    line, word, tag = row
    at, better = f"{path}, line {line}", _better(path, columns, layout, tags, names, tag)
    if not tag:
        way_out = better or "correct the line, or see that `columns` is right"
        return InputError(f"{at}: the tag of the word {word[:60]!r} is empty; {way_out}")
    is_first = may_name_columns and not (layout is None or layout.number or kind_of(path) in CONLLU)
    way_out = better or _ways_out(tag, tags, is_first)
    return InputError(f"{at}: the tag {tag[:60]!r} of the word {word[:60]!r} is none of {', '.join(tags)}; {way_out}")


def _better(path: Path, columns: dict[str, int | str], layout: Layout | None, tags: list[str], names: dict[str, str], tag: str = "") -> str:
    """The columns that fit better, or the feature that has known tags in `tag`, as the end of a message; empty if there are none."""
    if layout is None or layout.feature:
        return ""
    pairs = (part.partition("=") for part in tag.split("|"))
    if feature := next((key for key, _, value in pairs if _is_known(value, tags, names)), ""):
        wanted = {**columns, "tag": f"{columns.get('tag', layout.tag)}.{feature}"}
        named = ", ".join(f"{what}: {column}" for what, column in wanted.items())
        return f"to read the value of {feature}, set `columns: {{{named}}}`"
    return better_columns(path, layout, lambda tag: _is_known(tag, tags, names))


def _ways_out(tag: str, tags: list[str], is_first: bool) -> str:
    """What to do with an unknown tag, as the end of a message; the first line may name the columns."""
    of_span = re.fullmatch("[BIESULMW](-.+)", tag)
    both = [f"B{of_span[1]}", f"I{of_span[1]}"] if of_span else [tag]
    none = "O" if "O" in tags else None
    if f"I-{tag}" in tags:  # where only the kind of a span is written; its first word becomes B- (`_iob2`)
        return f"translate it with {renamed([tag], f'I-{tag}')}, and the other kinds of spans likewise"
    translated = f"{renamed([tag], near)} if it means that" if (near := nearest(tag, tags)) else renamed(both, none)
    way_out = f"correct it, translate it with {translated}, or add it to `labels`"
    return f"if the line names the columns, set `header: true`; else {way_out}" if is_first else way_out


def _prefix(path: Path, code: str, rows: list[Row]) -> str:
    """What all words begin with, such as ``en:`` in XTREME's files. Raises `InputError` for another language than `code`."""
    if rows and rows[0][1].startswith(f"{code}:") and rows[0][1] != f"{code}:":
        return f"{code}:"
    match = re.match(r"[a-z]{2,3}(-[a-z]+)*:(?=.)", rows[0][1]) if len(rows) > 1 else None
    if match and all(word.startswith(match[0]) for _, word, _ in rows):
        raise InputError(
            f"{path}, line {rows[0][0]}: the words begin with {match[0]!r}, but the language is {code!r}; correct `language` or the file, "
            f"or cut them off: sed 's/^{match[0]}//'"
        )
    return ""


def _iob2(sentence_tags: list[str], tags: list[str], changed: Counter[str]) -> Iterator[str]:
    """Tags of a sentence with ``B-`` wherever a span begins."""
    before = ""
    for tag in sentence_tags:
        if tag.startswith("I-") and before[2:] != tag[2:] and f"B-{tag[2:]}" in tags:
            changed["span that began with I- now begins with B-"] += 1
            tag = f"B-{tag[2:]}"
        yield tag
        before = tag


# ---------------------------------------------------------------------------------------------
# files


def _rows(
    path: Path,
    columns: dict[str, int | str],
    layout: Layout | None,
    known: set[str],
    multiword: Multiword,
    code: str,
    changed: Counter[str],
) -> Rows:
    """The rows of a file, as its kind has them; none of a sentence that is left out, which `changed` counts."""
    if layout is None:
        return _json_rows(path, columns, changed)
    if not layout.number:
        return _column_rows(path, layout, known)
    places = {"word": layout.word, "tag": layout.tag, "number": layout.number, "head": layout.head}
    return read_treebank(path, places, multiword, code, changed, layout.header, layout.cells)


def _column_rows(path: Path, layout: Layout, known: set[str]) -> Rows:
    wanted, document, begun = max(layout.word, layout.tag), "", itertools.count(1)
    rows: list[Row] = []
    for number, line in enumerate(read_lines(path), 1):
        if number == layout.header:
            continue
        cells = layout.cells(line)
        if not line.strip() or cells[0] == DOCUMENT_START:
            if rows:
                yield document, rows
            rows = []
            document = f"document {next(begun)}" if line.strip() else document
            continue
        if line.startswith("#") and not rows and _is_comment(line, cells, layout, known):
            if line.startswith("# newdoc"):
                document = document_of(line, next(begun))
            continue
        if len(cells) < wanted:
            raise InputError(
                f"{path}, line {number}: {len(cells)} column(s), but word and tag are in columns {layout.word} and {layout.tag}, "
                f"separated by a tab or by blanks: {line[:80]!r}; correct the line, or set `columns`{what_else(path)}"
            )
        rows.append((number, cells[layout.word - 1], cells[layout.tag - 1].strip()))
    if rows:
        yield document, rows


def _is_comment(line: str, cells: list[str], layout: Layout, known: set[str]) -> bool:
    """Whether a line that begins with ``#`` is a comment and not a word, such as ``#`` or ``#love``, with its tag.

    A comment may have a tab, as MultiCoNER's ``# id 1<tab>domain=en`` and KLUE's ``## id<tab>sentence``.
    """
    if len(cells) >= layout.tag and _is_known(cells[layout.tag - 1].strip(), known, {}):
        return False
    separated = layout.cells is cells_of and "\t" in line
    return bool(re.match(r"#+ +[^\t]", line)) or (not separated and cells[0] == "#")


def _json_rows(path: Path, columns: dict[str, int | str], changed: Counter[str]) -> Rows:
    keys = {"word": "words", "tag": "tags", **columns}

    def sentence(row: Any) -> tuple[str, list[str], list[str]]:
        if isinstance(row, dict) and (lacking := [key for key in keys.values() if key not in row]):
            lists = [key for key, value in row.items() if isinstance(value, list)]
            raise KeyError(f"there is no {lacking[0]!r}; `columns` names the keys of `word` and `tag`, and {', '.join(lists)} have lists")
        words, tags = row[keys["word"]], row[keys["tag"]]
        if not isinstance(words, list) or not isinstance(tags, list):
            raise TypeError("words and tags must be lists")
        if None in words or None in tags:
            raise ValueError("null is no word, and no tag")
        document = row.get("document")
        return "" if document is None else str(document), [whole_characters(str(word)) for word in words], [*map(str, tags)]

    wanted = f"lists under {keys['word']!r} and {keys['tag']!r}"
    for number, (document, words, tags) in json_rows(path, sentence, wanted):
        if len(words) != len(tags):
            at = f"{path}, line {number}"
            raise InputError(f"{at}: {len(words)} words but {len(tags)} tags; correct or delete the line: {' '.join(words)[:80]!r}")
        if not words:
            changed["sentence without words left out"] += 1
        yield document, [(number, word, tag) for word, tag in zip(words, tags, strict=True)]
