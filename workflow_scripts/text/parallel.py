"""parallel: readers for parallel text. Each file format becomes a stream of `Pair`s.

Formats: TSV, JSON lines, Moses (one file per language), the tagged files of the NCLS corpora, TMX translation memories, and the
XML and SGML files of IWSLT and WMT.
"""

import functools
import json
import lzma
import unicodedata
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import regex

from workflow_scripts.limits import Positive
from workflow_scripts.stage import InputError, resource
from workflow_scripts.text import ncls
from workflow_scripts.text.entities import as_characters
from workflow_scripts.text.files import (
    BYTE_ORDER_MARK,
    json_rows,
    kind_of,
    lockstep,
    open_packed,
    packing,
    read_lines,
    table_rows,
    what_else,
    whole_characters,
)
from workflow_scripts.text.words import BREAK, sentences


@dataclass
class Source:
    """Where parallel text comes from.

    One TSV or JSONL file, a pair of Moses files, files in the format of the NCLS corpora, acquired data, or (dev and test sets only)
    documents held out from the training source.
    """

    file: str | None = None
    """A TSV or JSONL file; may end in .gz, .xz or .zst."""
    columns: dict[str, int | str] = field(default_factory=dict)
    """Language → column number (from 1, as in `cut -f`) or, with `header`, its name in the first line; key of a JSON object (`a.b` is key b
    inside a); or tag (`format: ncls`). Two more entries are possible: `document` is the column that says which page or article a line
    belongs to, `heading` the column that marks headings."""
    files: dict[str, str] = field(default_factory=dict)
    """Language → file with one sentence per line (Moses format), or with the tags of this language (`format: ncls`)."""
    data: str | None = None
    """Name of acquired data (a block of `data`), used instead of `file`. If that block has `languages`, it replaces `columns` as well."""
    format: Literal["ncls"] | None = None
    """`ncls`: tagged text as in the NCLS corpora, given by `file` or `files` with `columns`. Without it, file names tell the format."""
    summary: Literal["first", "heading"] | None = None
    """For TSV files whose lines are parts of documents: which line is the summary. `first`: the first line of each `document`.
    `heading`: each heading is the summary of the lines up to the next heading. A line is a heading if its `heading` column starts with
    h, as in h1 or hd_3155364."""
    header: bool = False
    """The first line of a TSV file names its columns."""
    quoted: bool = False
    """The TSV file was written by a spreadsheet or by Python's `csv`: cells may stand in quotation marks, and those inside are doubled."""
    unescape: bool = False
    """Read HTML entities as the characters that they stand for, `It &apos;s` as `It 's`, as in text that Moses has tokenised."""
    held_out: Positive | None = None
    """Take whole documents out of the training source until they hold about this many running sentences."""

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
    """Number of words, as the segmenter counts them."""
    characters: Positive | None = None
    """Number of characters, blanks not counted."""


@dataclass
class Documents:
    """Additional settings of a corpus of documents and their summaries."""

    language: str
    """Language of the documents; the summaries are in the other language."""
    cut: dict[str, Cut] = field(default_factory=dict)
    """Language → longest side. Zan et al. use 220 words for documents, and 130 words or 160 Chinese characters for summaries."""
    split: bool = True
    """Split documents that are running text into sentences, at closing punctuation. Lists of sentences stay as they are."""
    min_words: Positive = 1
    """Documents with fewer words are removed."""
    empty: Literal["refuse", "remove"] = "refuse"
    """What to do with a pair whose document or summary has no text: `refuse` stops with an error, `remove` leaves the pair out."""


class Pair(NamedTuple):
    """Two sentences that translate each other (or a document and its summary), and where they come from."""

    document: str
    """Name of the page or article; texts without documents are divided into blocks of neighbouring lines."""
    a: str
    b: str
    line: int
    """Line number in the file, from 1."""


def read_pairs(source: Source, languages: tuple[str, str], documents: Documents | None = None) -> Iterator[Pair]:
    """Yield the pairs of `source` in order, without blanks at either end of a side.

    With `documents`, the sentences of a document are joined by `</s>`. Those of a summary are joined by blanks, because a decoder
    would stop at `</s>`.

    Raises:
        InputError: Names file and line for missing columns, files of different length, documents or summaries without text, and
            anything that `files.read_lines` refuses.
    """
    clean: Sides = (clean_text, clean_text) if documents is None else tuple(_cleaner(documents, code) for code in languages)
    if source.unescape:
        clean = tuple(functools.partial(_unescaped, clean=one) for one in clean)
    columns = functools.partial(_columns, source, languages)
    if source.format == "ncls":
        pairs = _read_ncls(source, columns(), languages, clean, documents)
    elif source.files:
        pairs = _read_moses(source.files, languages, clean)
    elif source.file and source.summary and documents:
        lines = rows(Path(source.file), columns(), source.header, source.quoted)
        pairs = _read_grouped(lines, source.summary, languages, clean, documents.language)
    elif source.file:
        path = Path(source.file)
        is_json = kind_of(path) == ".jsonl"
        if is_json:
            pairs = _read_jsonl(path, columns(), languages, clean)
        else:
            pairs = _read_tsv(rows(path, columns(), source.header, source.quoted), languages, clean)
    else:
        raise InputError("a corpus source needs `file` with `columns`, `files`, `data`, or (dev, test) `held_out`")
    if documents and documents.empty == "refuse" and not source.summary:
        pairs = _refuse_empty(pairs, source, languages, documents.language)
    yield from pairs


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
    found = dig(row, key)
    if isinstance(found, dict):
        raise TypeError(f"{key} is an object" + (f"; name a key inside: {key}.{next(iter(found))}" if found else ""))
    if isinstance(found, list) and any(isinstance(part, dict | list) for part in found):
        raise TypeError(f"{key} is a list of other things than texts")
    return found


def dig_name(row: Any, key: int | str) -> str:
    """The name of a document in a JSON object at a key; raises `ValueError` for null, and as `dig` does."""
    if (found := dig(row, key)) is None:
        raise ValueError(f"{key} is null, which names no document")
    return str(found)


def _read_moses(files: dict[str, str], languages: tuple[str, str], clean: Sides) -> Iterator[Pair]:
    path_a, path_b = (files.get(code) for code in languages)
    if path_a is None or path_b is None:
        raise InputError(f"files: {files} must name one file for each of {list(languages)}")
    for number, a, b in lockstep(Path(path_a), Path(path_b)):
        yield Pair(block_of(number), clean[0](a), clean[1](b), number)


def _read_tsv(lines: Iterator[tuple[int, dict[str, str]]], languages: tuple[str, str], clean: Sides) -> Iterator[Pair]:
    for number, row in lines:
        a, b = (make(row[code]) for make, code in zip(clean, languages, strict=True))
        yield Pair(row.get("document", block_of(number)), a, b, number)


def rows(path: Path, columns: dict[str, int | str], header: bool = False, quoted: bool = False) -> Iterator[tuple[int, dict[str, str]]]:
    """The lines of a TSV file: line number, and column name → cell. Empty lines are passed over, and a `header`."""
    if not header and not all(str(column).isdigit() and int(column) >= 1 for column in columns.values()):
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
    def pair(row: Any) -> tuple[str | None, str, str]:
        texts = [dig_text(row, columns[code]) for code in languages]
        if None in texts:
            raise ValueError("null is no text")
        if number := next((text for text in texts if isinstance(text, int | float)), None):
            raise TypeError(f"{json.dumps(number)} is no text")
        a, b = (make(text) for make, text in zip(clean, texts, strict=True))
        # its name becomes a column of a TSV file
        return clean_text(dig_name(row, columns["document"])) if "document" in columns else None, a, b

    for number, (document, a, b) in json_rows(path, pair, columns):
        yield Pair(block_of(number) if document is None else document, a, b, number)


def _read_ncls(
    source: Source, columns: dict[str, int | str], languages: tuple[str, str], clean: Sides, documents: Documents | None
) -> Iterator[Pair]:
    paths = tuple(Path(source.files.get(code) or source.file or "") for code in languages)
    tags = tuple(str(columns[code]) for code in languages)
    article = languages.index(documents.language) if documents else 0
    complete = documents is None or documents.empty == "refuse"
    for name, (a, b), line in ncls.read(paths, tags, article, complete):
        yield Pair(name, clean[0](a), clean[1](b), line)


def read_tmx(path: Path, languages: tuple[str, str]) -> Iterator[Pair]:
    """The pairs of a TMX translation memory (plain, .gz or .xz); a language code in the file may have a region (en-GB).

    Raises `InputError` for a file that cannot be read.
    """
    from lxml import etree

    number = 0
    try:
        with open_packed(path) as file:
            units = etree.iterparse(file, tag="{*}tu", recover=True, resolve_entities=False, huge_tree=True)
            for _, unit in units:
                texts: dict[str, str] = {}
                for variant in unit.iter("{*}tuv"):
                    code = variant.get("{http://www.w3.org/XML/1998/namespace}lang") or variant.get("lang") or ""
                    text = " ".join("".join(part for segment in variant.iter("{*}seg") for part in _plain(segment)).split())
                    texts.setdefault(regex.split(r"[-_]", code.lower())[0], text)
                # free what has been read
                unit.clear()
                while unit.getprevious() is not None:
                    del unit.getparent()[0]
                if all(texts.get(code) for code in languages):
                    number += 1
                    yield Pair(block_of(number), texts[languages[0]], texts[languages[1]], number)
            # lxml goes on behind an error, without the rest of the segment, or of the file
            if broken := next((entry for entry in units.error_log if entry.level_name == "FATAL"), None):
                raise InputError(
                    f"{path}, line {broken.line}: is not well-formed XML ({broken.message.strip()}), so text would be lost; mend the file, "
                    "or write & as &amp; and < as &lt; in its segments"
                )
    except (etree.LxmlError, OSError, EOFError, lzma.LZMAError, zlib.error) as error:
        raise InputError(f"{path}: cannot be read as TMX: {error}") from None


# what stands in these elements of a segment is markup of the document that was translated
_MARKUP = ("bpt", "ept", "it", "ph", "ut")


def _plain(element: Any) -> Iterator[str]:
    """The text of a TMX segment without the markup in it."""
    yield element.text or ""
    for part in element:
        if isinstance(part.tag, str) and part.tag.rpartition("}")[2] not in _MARKUP:
            yield from _plain(part)
        yield part.tail or ""


_OPENED = regex.compile(r"<seg\b", regex.IGNORECASE)
_SEGMENT = regex.compile(r"<seg\b[^>]*/>|<seg\b[^>]*>((?:(?!<seg\b).)*?)</seg>", regex.IGNORECASE)
_TITLE = regex.compile(r"<(title|description)>(.*?)</\1>")


def is_tagged(path: Path) -> bool:
    """Whether a file's name is that of IWSLT's or WMT's XML and SGML files, which may be packed."""
    name = path.stem if packing(path) else path.name
    return name.endswith((".xml", ".sgm", ".sgml")) or name.startswith("train.tags.")


def plain_sentences(path: Path) -> Iterable[str]:
    """The sentences of one side's file: the segments of IWSLT's and WMT's XML, or the lines of any other file.

    Of IWSLT's train.tags files these are the lines of the talks, their titles and descriptions; all other tagged lines are left out,
    as is usual. Entities are read as characters in both kinds of tagged file. Regular expressions read them, because these files are not
    well-formed XML.
    """
    if not is_tagged(path):
        yield from read_lines(path)
    elif path.name.startswith("train.tags."):
        for line in map(str.strip, read_lines(path)):
            if tagged := _TITLE.match(line):
                yield " ".join(as_characters(tagged[2]).split())
            elif not line.startswith("<"):
                yield " ".join(as_characters(line).split())  # &#10; would be a line more than the other side has
    else:
        yield from _segments(path)


def _segments(path: Path) -> Iterator[str]:
    """The segments of a file, which may go over several lines. None is left out, since the other side has one for each of them."""
    waiting, begun = "", 0
    for number, line in enumerate(read_lines(path), 1):
        waiting, begun = (f"{waiting} {line}", begun) if waiting else (line, number)
        at = 0
        while opened := _OPENED.search(waiting, at):
            found = _SEGMENT.match(waiting, opened.start())
            if not found:
                break
            yield " ".join(as_characters(found[1] or "").split())
            at, begun = found.end(), number
        waiting = waiting[opened.start() :] if opened else ""
        if len(_OPENED.findall(waiting)) > 1:
            break
    if waiting:
        raise InputError(f"{path}, line {begun}: the segment that begins here has no end, </seg>: {waiting[:80]!r}")
