"""parallel: readers for parallel text. Each file format becomes a stream of `Pair`s.

Formats: TSV, JSON lines, Moses (one file per language), the tagged files of the NCLS corpora, the XML and SGML files of IWSLT and WMT, and
those that name their languages themselves: TMX, XLIFF, gettext's catalogues, Parquet, and the XML of WMT since 2021.
"""

import functools
import json
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

from workflow_scripts.number_types import Positive
from workflow_scripts.stage import InputError, resource
from workflow_scripts.text import catalogues, columnar, memories, ncls
from workflow_scripts.text.entities import as_characters
from workflow_scripts.text.files import (
    BYTE_ORDER_MARK,
    in_step,
    json_rows,
    kind_of,
    refuse_table,
    table_rows,
    what_else,
    whole_characters,
)
from workflow_scripts.text.sides import is_tagged, sentences_of
from workflow_scripts.text.words import BREAK, sentences


@dataclass
class Source:
    """Where parallel text comes from.

    It is one file with both languages, a file for each language, files in the format of the NCLS corpora, or acquired data. Dev and test
    sets can also be documents held out from the training source.
    """

    file: str | None = None
    """File with both languages: TSV, JSONL, TMX (.tmx), XLIFF (.xlf, .xliff, .sdlxliff), gettext (.po), Parquet (.parquet), or WMT's XML
    since 2021 (.xml). All but Parquet may be packed (.gz, .xz, .zst)."""
    columns: dict[str, int | str] = field(default_factory=dict)
    """Language → column: its number (from 1, as in `cut -f`), with `header` its name, a JSON key (`a.b` is key b inside a), or a tag
    (`format: ncls`). In Parquet it is the column's name. Other files that name their languages need no columns. There a language code may
    choose a variant (`pt: pt-BR`). If a file names no language, it is `source` or `target` (XLIFF), `msgid` or `msgstr` (gettext). Two
    more entries are allowed: `document`, the column with the page or article, and `heading`, the column that marks headings."""
    files: dict[str, str] = field(default_factory=dict)
    """Language → file with one sentence per line (Moses), in IWSLT's or WMT's XML or SGML (.xml, .sgm, train.tags…), or tagged
    (`format: ncls`)."""
    data: str | None = None
    """Name of data in the block `data`, instead of `file`. Its `languages`, if given, replace `columns` too."""
    format: Literal["ncls"] | None = None
    """With `ncls`: tagged text as in the NCLS corpora, in `file` or `files` with `columns`. By default the file's name tells the
    format."""
    summary: Literal["first", "heading"] | None = None
    """For TSV files whose lines are parts of documents: which line is the summary. `first`: the first line of each `document`. `heading`:
    each heading summarises the lines up to the next one. In headings the `heading` column starts with h, as in h1 or hd_3155364."""
    header: bool = False
    """Whether the first line of a TSV file names its columns."""
    quoted: bool = False
    """Whether the TSV file comes from a spreadsheet or Python's `csv`: cells may be quoted, and quotation marks inside are doubled."""
    unescape: bool = False
    """Whether HTML entities are read as characters, `It &apos;s` as `It 's`. Text tokenised by Moses has them."""
    reference: str | None = None
    """In WMT's XML since 2021: `translator` whose reference is read. By default A, or the first by name."""
    held_out: Positive | None = None
    """Number of running sentences to hold out of the training text, approximately. Whole documents are held out."""

    def paths(self) -> list[str]:
        """The files that this source reads."""
        return [self.file] if self.file else list(self.files.values())

    def at_hand(self) -> "Source":
        """This with the embedded files where they really are."""
        files = {code: resource(path) for code, path in self.files.items()}
        return replace(self, file=self.file and resource(self.file), files=files)


@dataclass
class Cut:
    """The longest allowed side of a pair; longer sides are cut."""

    words: Positive | None = None
    """Maximum number of words, as the segmenter counts them."""
    characters: Positive | None = None
    """Maximum number of characters, without blanks."""


@dataclass
class Documents:
    """Additional settings of a corpus of documents and their summaries."""

    language: str
    """Language of the documents. The summaries are in the other language."""
    cut: dict[str, Cut] = field(default_factory=dict)
    """Language → maximum length. Zan et al. use 220 words for documents, and 130 words or 160 Chinese characters for summaries."""
    split: bool = True
    """Whether documents of running text are split into sentences, at closing punctuation. Lists of sentences stay as they are."""
    min_words: Positive = 1
    """Minimum number of words of a document. Shorter documents are removed."""
    empty: Literal["refuse", "remove"] = "refuse"
    """What to do with a pair without document or summary text. `refuse`: stop with an error. `remove`: leave the pair out."""


class Pair(NamedTuple):
    """Two sentences that translate each other (or a document and its summary), and where they come from."""

    document: str
    """Name of the page or article; texts without documents are divided into blocks of neighbouring lines."""
    a: str
    b: str
    line: int
    """Line number in the file, from 1."""


def read_pairs(
    source: Source, languages: tuple[str, str], documents: Documents | None = None, passed: Counter[str] | None = None
) -> Iterator[Pair]:
    """Yield the pairs of `source` in order, without blanks at either end of a side.

    With `documents`, the sentences of a document are joined by `</s>`. Those of a summary are joined by blanks, because a decoder
    would stop at `</s>`. What a format has and is not read (other variants of a language, fuzzy messages) is counted in `passed`.

    Raises:
        InputError: Names file and line for missing columns, files of different length, documents or summaries without text, and
            anything that `files.read_lines` refuses.
    """
    passed = Counter() if passed is None else passed
    clean: Sides = (clean_text, clean_text) if documents is None else tuple(_cleaner(documents, code) for code in languages)
    if source.unescape:
        clean = tuple(functools.partial(_unescaped, clean=side) for side in clean)
    columns = functools.partial(_columns, source, languages)
    kind = kind_of(source.file or "")
    if source.format == "ncls":
        pairs = _read_ncls(source, columns(), languages, clean, documents)
    elif source.files:
        pairs = _read_sides(source.files, languages, clean)
    elif source.file and source.summary and documents:
        lines = rows(Path(source.file), columns(), source.header, source.quoted)
        pairs = _read_grouped(lines, source.summary, languages, clean, documents.language)
    elif source.file and kind in columnar.SUFFIXES:
        pairs = _read_parquet(Path(source.file), source.columns, languages, clean)
    elif source.file and not needs_columns(source.file):
        pairs = _read_named(Path(source.file), source, languages, clean, passed)
    elif source.file and kind == ".jsonl":
        pairs = _read_jsonl(Path(source.file), columns(), languages, clean)
    elif source.file:
        pairs = _read_tsv(rows(Path(source.file), columns(), source.header, source.quoted), languages, clean)
    else:
        raise InputError("a corpus source needs `file` with `columns`, `files`, `data`, or (dev, test) `held_out`")
    if documents and documents.empty == "refuse" and not source.summary:
        pairs = _refuse_empty(pairs, source, languages, documents.language)
    yield from pairs


def needs_columns(file: str) -> bool:
    """Whether `columns` must say where the languages of a file are, since its format does not name them."""
    return not (_names_languages(file) or is_tagged(Path(file)))


def problem_of_columns(file: str, columns: Mapping[str, int | str]) -> Iterator[str]:
    """What is wrong with the `columns` that are given for a file whose format names its languages."""
    what = "names of columns" if kind_of(file) in columnar.SUFFIXES else "the codes of languages in it, as in `pt: pt-BR`"
    if any(isinstance(column, int) for column in columns.values()):
        nulls = ", ".join(f"{name}: null" for name in columns)
        yield f"{file} is read by {what}, not by numbers; leave it out, or, laid over those of another file, write {{{nulls}}}"
    elif kind_of(file) not in columnar.SUFFIXES and (others := [name for name in ("document", "heading") if name in columns]):
        yield f"{file} has no column for `{others[0]}`; its documents are known where the format has some: set {others[0]} to null"


def _names_languages(file: str) -> bool:
    return kind_of(file) in (*memories.SUFFIXES, *catalogues.SUFFIXES, *columnar.SUFFIXES)


def _columns(source: Source, languages: tuple[str, str]) -> dict[str, int | str]:
    if missing := [code for code in languages if code not in source.columns]:
        raise InputError(f"{source.file}: `columns` has no entry for {' and '.join(missing)}; it has {source.columns}")
    return source.columns


def _refuse_empty(pairs: Iterator[Pair], source: Source, languages: tuple[str, str], document_language: str) -> Iterator[Pair]:
    for pair in pairs:
        if not (pair.a and pair.b):
            code = languages[bool(pair.a)]
            what = "document has no sentence" if code == document_language else "summary is empty"
            path = source.file or source.files[code]
            raise InputError(f"{path}, line {pair.line}: the {what}; correct the file, or set documents.empty: remove")
        yield pair


# ---------------------------------------------------------------------------------------------
# text of one side

Clean = Callable[[Any], str]
"""Turns what a file holds for one side (a text, or a list of sentences) into one line."""

_INVISIBLE = "\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\ufeff "


def clean_text(text: str) -> str:
    """`text` in NFC, with single blanks, without NUL characters and byte-order marks; empty if it holds only invisible characters."""
    text = " ".join(text.replace("\0", "").replace(BYTE_ORDER_MARK, "").split())
    if not text.isascii():
        text = unicodedata.normalize("NFC", text)  # a JSON file's escapes become characters after its lines were read
    return text if text.strip(_INVISIBLE) else ""


def _cleaner(documents: Documents, code: str) -> Clean:
    return functools.partial(_document, split=documents.split) if code == documents.language else _summary


def _document(text: str | list[str], split: bool) -> str:
    """The sentences of a document, joined by breaks. Breaks that are in the text already also separate sentences."""
    parts = [part for line in _listed(text) for part in line.split(BREAK)]
    if split and isinstance(text, str):
        parts = [sentence for part in parts for sentence in sentences(clean_text(part))]
    return f" {BREAK} ".join(filter(None, map(clean_text, parts)))


def _summary(text: str | list[str]) -> str:
    """A summary as one line without breaks."""
    return clean_text(" ".join(_listed(text)).replace(BREAK, " "))


def _unescaped(text: str | list[str], clean: Clean) -> str:
    """`text` with its entities as characters, then made clean."""
    return clean([as_characters(part) for part in text] if isinstance(text, list) else as_characters(text))


def _listed(text: str | list[str]) -> list[str]:
    if not isinstance(text, str | list):
        raise TypeError(f"{type(text).__name__} where a text or a list of sentences was expected")
    return text if isinstance(text, list) else [text]


# ---------------------------------------------------------------------------------------------
# formats

# Without a document column, neighbouring lines form blocks of this size, which are held out as documents are.
BLOCK = 40

Sides = tuple[Clean, ...]


def block_of(number: int) -> str:
    """Name of the block that line `number` (from 1) belongs to, in files without documents."""
    return f"block {(number - 1) // BLOCK}"


def dig(row: Any, key: int | str) -> Any:
    """The value of a JSON object at a key; a key `a.b` is key b inside a.

    Raises `KeyError` or `TypeError` where there is none, and `ValueError` for a text with half of a surrogate pair, which is no character.
    """
    for part in str(key).split("."):
        row = row[part]
    for text in row if isinstance(row, list) else [row]:
        if isinstance(text, str):
            whole_characters(text)
    return row


def dig_text(row: Any, key: int | str) -> Any:
    """The text, or the list of texts, of a JSON object at a key; raises `TypeError` for other objects and lists, and as `dig` does."""
    value = dig(row, key)
    if isinstance(value, dict):
        raise TypeError(f"{key} is an object" + (f"; name a key inside: {key}.{next(iter(value))}" if value else ""))
    if isinstance(value, list) and any(isinstance(part, dict | list) for part in value):
        raise TypeError(f"{key} is a list of other things than texts")
    return value


def dig_name(row: Any, key: int | str) -> str:
    """The name of a document in a JSON object at a key; raises `ValueError` for null, and as `dig` does."""
    if (name := dig(row, key)) is None:
        raise ValueError(f"{key} is null, which names no document")
    return str(name)


def _read_sides(files: dict[str, str], languages: tuple[str, str], clean: Sides) -> Iterator[Pair]:
    path_a, path_b = (files.get(code) for code in languages)
    if path_a is None or path_b is None:
        raise InputError(f"files: {files} must name one file for each of {list(languages)}")
    for path in (path_a, path_b):
        if _names_languages(path) and not is_tagged(Path(path)):
            raise InputError(f"{path}: holds both languages in one file; name it as `file`, not under `files`")
        refuse_table(Path(path))
    for number, (document, a), (_, b) in in_step(Path(path_a), Path(path_b), sentences_of):
        yield Pair(block_of(number) if document is None else document, clean[0](a), clean[1](b), number)


def _read_named(path: Path, source: Source, languages: tuple[str, str], clean: Sides, passed: Counter[str]) -> Iterator[Pair]:
    """The pairs of a file that names the languages of its texts."""
    if not _names_languages(str(path)):
        raise InputError(f"{path}: holds one language; name a file for each language under `files`, instead of `file`")
    wanted = str(source.columns.get(languages[0], languages[0])), str(source.columns.get(languages[1], languages[1]))
    if kind_of(path) in catalogues.SUFFIXES:
        units = catalogues.read_catalogue(path, wanted, passed)
    else:
        units = memories.read_units(path, wanted, passed, source.reference)
    for document, (a, b), number in memories.chosen_pairs(path, units, wanted, passed):
        yield Pair(block_of(number) if document is None else document, clean[0](a), clean[1](b), number)


def _read_parquet(path: Path, columns: dict[str, int | str], languages: tuple[str, str], clean: Sides) -> Iterator[Pair]:
    for number, row in enumerate(columnar.parquet_rows(path, columns, languages), 1):
        try:
            a, b = (make("" if row[code] is None else row[code]) for make, code in zip(clean, languages, strict=True))
        except (TypeError, AttributeError):
            values = " and ".join(repr(row[code])[:60] for code in languages)
            raise InputError(f"{path}, row {number}: {values} are not both texts; name other columns") from None
        if "document" not in row:
            document = block_of(number)
        elif row["document"] is None:
            raise InputError(f"{path}, row {number}: the column {columns['document']!r} is null, which names no document; name another one")
        else:
            document = clean_text(str(row["document"])) or block_of(number)
        yield Pair(document, a, b, number)


def _read_tsv(lines: Iterator[tuple[int, dict[str, str]]], languages: tuple[str, str], clean: Sides) -> Iterator[Pair]:
    for number, row in lines:
        a, b = (make(row[code]) for make, code in zip(clean, languages, strict=True))
        yield Pair(row.get("document") or block_of(number), a, b, number)


def rows(path: Path, columns: dict[str, int | str], header: bool = False, quoted: bool = False) -> Iterator[tuple[int, dict[str, str]]]:
    """The lines of a TSV file: line number, and column name → cell. Empty lines are passed over, and a `header`."""
    if not header and not all(str(column).isdecimal() and int(column) >= 1 for column in columns.values()):
        ways = "or names in its first line with `header: true`"
        raise InputError(f"{path}: columns of a TSV file are numbers from 1, {ways}, got {columns}{what_else(path)}")
    yield from table_rows(path, columns, header, quoted=quoted)


def _read_grouped(
    lines: Iterator[tuple[int, dict[str, str]]], summary: str, languages: tuple[str, str], clean: Sides, document_language: str
) -> Iterator[Pair]:
    """Documents that span several lines of a TSV file: the first line (or each heading) is the summary of the lines after it."""
    place = languages.index(document_language)
    for start, group in groups(lines, summary):
        texts = [group[0][languages[1 - place]]]
        texts.insert(place, BREAK.join(row[document_language] for row in group[1:]))
        a, b = (make(text) for make, text in zip(clean, texts, strict=True))
        yield Pair(group[0]["document"], a, b, start)


def groups(lines: Iterator[tuple[int, dict[str, str]]], summary: str) -> Iterator[tuple[int, list[dict[str, str]]]]:
    """Lines that belong together, with the number of the first. Lines of a page before its first heading are left out."""
    start = 0
    group: list[dict[str, str]] = []
    for number, row in lines:
        another = not group or row["document"] != group[0]["document"]
        begins = row["heading"].startswith("h") if summary == "heading" else another
        if group and (another or begins):
            yield start, group
            group = []
        if begins:
            start = number
        if begins or group:
            group.append(row)
    if group:
        yield start, group


def _read_jsonl(path: Path, columns: dict[str, int | str], languages: tuple[str, str], clean: Sides) -> Iterator[Pair]:
    def pair(row: Any) -> tuple[str, str, str]:
        # as in Parquet, null is an empty text
        texts = ["" if (text := dig_text(row, columns[code])) is None else text for code in languages]
        if number := next((text for text in texts if isinstance(text, int | float)), None):
            raise TypeError(f"{json.dumps(number)} is no text")
        a, b = (make(text) for make, text in zip(clean, texts, strict=True))
        # its name becomes a column of a TSV file
        return clean_text(dig_name(row, columns["document"])) if "document" in columns else "", a, b

    for number, (document, a, b) in json_rows(path, pair, columns):
        yield Pair(document or block_of(number), a, b, number)


def _read_ncls(
    source: Source, columns: dict[str, int | str], languages: tuple[str, str], clean: Sides, documents: Documents | None
) -> Iterator[Pair]:
    paths = tuple(Path(source.files.get(code) or source.file or "") for code in languages)
    tags = tuple(str(columns[code]) for code in languages)
    article = languages.index(documents.language) if documents else 0
    complete = documents is None or documents.empty == "refuse"
    for name, (a, b), line in ncls.read(paths, tags, article, complete):
        yield Pair(name, clean[0](a), clean[1](b), line)
