"""sides: the sentences of a file in one language: lines, or the segments of IWSLT's and WMT's XML and SGML, with their documents."""

from collections.abc import Iterator
from pathlib import Path

import regex

from workflow_scripts.stage import InputError
from workflow_scripts.text.entities import as_characters
from workflow_scripts.text.files import packing, read_lines

_OPENED = regex.compile(r"<seg\b", regex.IGNORECASE)
_SEGMENT = regex.compile(r"<seg\b[^>]*/>|<seg\b[^>]*>((?:(?!<seg\b).)*?)</seg>", regex.IGNORECASE)
_DOCUMENT = regex.compile(r"""<doc\b(?:[^>]*?\s(?:doc)?id\s*=\s*["']([^"']*)["'])?""", regex.IGNORECASE)
_BOTH_SIDES = regex.compile(r"<dataset\b")
_TITLE = regex.compile(r"<(title|description)>(.*?)</\1>")

Sentence = tuple[str | None, str]
"""The document, or None where the file has none, and the text."""


def is_tagged(path: Path) -> bool:
    """Whether a file's name is that of IWSLT's or WMT's XML and SGML files, which may be packed."""
    name = (path.stem if packing(path) else path.name).lower()
    return name.endswith((".xml", ".sgm", ".sgml")) or name.startswith("train.tags.")


def plain_sentences(path: Path) -> Iterator[str]:
    """The sentences of one side's file, as `sentences_of` has them."""
    return (text for _, text in sentences_of(path))


def sentences_of(path: Path) -> Iterator[Sentence]:
    """The sentences of one side's file: the segments of IWSLT's and WMT's XML, or the lines of any other file.

    In IWSLT's train.tags files these are the lines of the talks, their titles and descriptions; all other tagged lines are left out,
    as is usual, and a talk begins with its address. Entities are read as characters in both kinds of tagged file. Regular expressions read
    them, because these files are not well-formed XML.
    """
    if not is_tagged(path):
        yield from ((None, line) for line in read_lines(path))
    elif path.name.startswith("train.tags."):
        yield from _talks(path)
    else:
        yield from _segments(path)


def _talks(path: Path) -> Iterator[Sentence]:
    talks = 0
    for line in map(str.strip, read_lines(path)):
        talks += line.startswith("<url>")
        talk = f"talk {talks}" if talks else None
        if tagged := _TITLE.match(line):
            yield talk, " ".join(as_characters(tagged[2]).split())
        elif not line.startswith("<"):
            yield talk, " ".join(as_characters(line).split())  # &#10; would be a line more than the other side has


def _segments(path: Path) -> Iterator[Sentence]:
    """The segments of a file, which may go over several lines. None is left out, since the other side has one for each of them."""
    waiting, begun = "", 0
    documents, document = 0, None
    for number, line in enumerate(read_lines(path), 1):
        waiting, begun = (f"{waiting} {line}", begun) if waiting else (line, number)
        if not documents and _BOTH_SIDES.search(line):
            raise InputError(f"{path}: holds source and references in one file; name it as `file`, not under `files`")
        at = 0
        while True:
            opened = _OPENED.search(waiting, at)
            for opening in _DOCUMENT.finditer(waiting, at, opened.start() if opened else len(waiting)):
                documents += 1
                document = opening[1] or f"document {documents}"
            if not opened or not (segment := _SEGMENT.match(waiting, opened.start())):
                break
            yield document, " ".join(as_characters(segment[1] or "").split())
            at, begun = segment.end(), number
        waiting = waiting[opened.start() :] if opened else ""
        if len(_OPENED.findall(waiting)) > 1:
            break
    if waiting:
        raise InputError(f"{path}, line {begun}: the segment that begins here has no end, </seg>: {waiting[:80]!r}")
