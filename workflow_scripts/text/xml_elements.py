"""xml_elements: reads the elements of an XML file one after the other, safely, and without losing text in silence.

The file is a stream, plain or compressed, and may be of any size. Entities that it defines itself are read as their text. Those that are to
be fetched from elsewhere, and those that grow when they are read, are refused. Characters that XML does not allow are left out and counted.
A file that is not well-formed is refused with the line of its error. (The parser is expat, which never guesses how to go on.)
"""

import codecs
import functools
import html.entities
import itertools
from collections import Counter
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, cast
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

import regex

from workflow_scripts.stage import InputError
from workflow_scripts.text.files import declared_encoding, read_blocks
from workflow_scripts.text.other_formats import refuse_others

Place = tuple[Element, int]
"""An element, and the line in which it begins."""


def elements(path: Path, whole: Collection[str], opened: Collection[str] = (), passed: Counter[str] | None = None) -> Iterator[Place]:
    """The elements of a file in order, each with its line: those named in `whole` complete, those in `opened`, and the first
    of all, with their attributes alone.

    Names of elements and attributes have no prefix. Characters that are left out are counted in `passed`.

    Raises:
        InputError: The file is missing, is no XML, defines entities that are refused, or names one that nothing defines.
    """
    passed = Counter() if passed is None else passed
    reader = _Reader(path, whole, opened)
    try:
        for text, is_last in _texts(path, passed):
            reader.parser.Parse(text, is_last)
            yield from reader.complete
            reader.complete.clear()
    except expat.ExpatError as error:
        why = expat.ErrorString(error.code)
        way_out = "see that the file is whole" if why in _CUT_OFF else "mend the file, or write & as &amp; and < as &lt; in its text"
        raise InputError(f"{path}, line {error.lineno}: is not well-formed XML ({why}), so text would be lost; {way_out}") from None


_CUT_OFF = ("no element found", "unclosed token", "unclosed CDATA section")


class _Reader:
    """Expat's handlers, and the elements that are complete."""

    def __init__(self, path: Path, whole: Collection[str], opened: Collection[str]):
        self.path, self.whole, self.opened = path, whole, opened
        self.complete: list[Place] = []
        self.builder: TreeBuilder | None = None
        self.depth = self.line = 0
        self.begun = False
        self.lengths: dict[str, int] = {}
        self.parser: Any = expat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.UseForeignDTD(True)  # so that an entity that nothing defines is handed over, with and without a DTD
        self.parser.StartElementHandler = self.start
        self.parser.EndElementHandler = self.end
        self.parser.CharacterDataHandler = self.data
        self.parser.EntityDeclHandler = self.define
        self.parser.SkippedEntityHandler = self.undefined

    def start(self, name: str, attributes: dict[str, str]) -> None:
        name = _local(name)
        if attributes:
            attributes = {_local(key): value for key, value in attributes.items()}
        if self.builder is None and (name in self.opened or not self.begun):
            self.begun = True
            self.complete.append((Element(name, attributes), self.parser.CurrentLineNumber))
        if self.builder is None and name in self.whole:
            self.builder, self.depth, self.line = TreeBuilder(), 0, self.parser.CurrentLineNumber
        if self.builder is not None:
            self.depth += 1
            if self.depth > DEEPEST:
                where = f"{self.path}, line {self.parser.CurrentLineNumber}"
                raise InputError(f"{where}: more than {DEEPEST} elements are inside each other, which no text needs; mend the file")
            self.builder.start(name, cast(Any, attributes))

    def end(self, name: str) -> None:
        if self.builder is not None:
            self.depth -= 1
            self.builder.end(_local(name))
            if not self.depth:
                self.complete.append((self.builder.close(), self.line))
                self.builder = None

    def data(self, text: str) -> None:
        if self.builder is not None:
            self.builder.data(text)

    def define(self, name: str, is_parameter: bool, value: str | None, base: object, system: str | None, *_: object) -> None:
        """Refuse an entity that is elsewhere, or whose text is long: a few short ones inside each other make gigabytes."""
        where = f"{self.path}, line {self.parser.CurrentLineNumber}: the entity {name!r}"
        if value is None:
            problem = f"stands in another file, {system!r}, which is not opened; write its text between quotation marks"
            raise InputError(f"{where} {problem}, or delete the line")
        if is_parameter or name in self.lengths:
            return  # of several definitions the first one counts
        inside = [entity for entity in _NAMED.findall(value) if entity not in _OF_XML]
        if unknown := [entity for entity in inside if entity not in self.lengths]:
            raise InputError(f"{where} is made of {unknown[0]!r}, which is not defined before it; write its text out")
        self.lengths[name] = len(value) + sum(self.lengths[entity] for entity in inside)
        if self.lengths[name] > LONGEST_ENTITY:
            problem = f"stands for {self.lengths[name]:,} characters, more than the {LONGEST_ENTITY:,} that are read"
            raise InputError(f"{where} {problem}; write its text where it is used")

    def undefined(self, name: str, is_parameter: bool) -> None:
        """Read an entity that nothing defines as HTML does, `&nbsp;`; refuse others."""
        if is_parameter:
            return
        if f"{name};" not in html.entities.html5:
            problem = f"nothing defines the entity &{name};, so text would be lost; write & as &amp;, or the character itself"
            raise InputError(f"{self.path}, line {self.parser.CurrentLineNumber}: {problem}")
        self.data(html.entities.html5[f"{name};"])


DEEPEST = 200
"""Elements inside each other in one unit."""
LONGEST_ENTITY = 1000
"""Characters of the text of an entity, with that of all entities in it."""
_NAMED = regex.compile(r"&([^#;&\s]+);")
_OF_XML = ("lt", "gt", "amp", "quot", "apos")


@functools.lru_cache(maxsize=4096)
def _local(name: str) -> str:
    return name.rpartition(":")[2]


# ---------------------------------------------------------------------------------------------
# the characters of a file

_BYTES = 1 << 16
_NO_CHARACTER = regex.compile(r"[^\t\n\r\x20-\uD7FF\uE000-\uFFFD\U00010000-\U0010FFFF]")
_REFERENCE = regex.compile(r"&#(?:[xX]([0-9a-fA-F]+)|([0-9]+));")
_BEGUN = regex.compile(r"&#?[0-9a-zA-Z]{0,12}\Z")
_DECLARED = regex.compile(rb"""^\s*<\?xml[^>]*?encoding\s*=\s*["']([A-Za-z0-9._:-]+)""")
LEFT_OUT = "control characters, which XML does not allow, left out"


def _texts(path: Path, passed: Counter[str]) -> Iterator[tuple[str, bool]]:
    """Pieces of the text, each with whether it is the last; without characters that XML refuses, also as references like `&#x1F;`."""
    decoder: Any = None
    lines, rest = 1, ""
    encoding = "utf-8"
    for raw in itertools.chain(read_blocks(path), [b""]):
        if decoder is None:
            refuse_others(path, raw)
            encoding = _encoding(path, raw)
            decoder = codecs.getincrementaldecoder(encoding)()
        try:
            text = rest + decoder.decode(raw, final=not raw)
        except UnicodeDecodeError as error:
            line = lines + error.object[: error.start].count(b"\n")
            problem = f"not {encoding} (byte {error.object[error.start]:#04x}); convert the file, or name its encoding in its first line"
            raise InputError(f"{path}, line {line}: {problem}, as in <?xml version='1.0' encoding='latin1'?>") from None
        rest = ""
        if raw and (begun := _BEGUN.search(text)):
            text, rest = text[: begun.start()], begun[0]
        lines += text.count("\n")
        yield _allowed(text, passed), not raw


def _allowed(text: str, passed: Counter[str]) -> str:
    def reference(match: Any) -> str:
        code = int(match[1], 16) if match[1] else int(match[2])
        if code <= 0x10FFFF and not _NO_CHARACTER.match(chr(code)):
            return match[0]
        passed[LEFT_OUT] += 1
        return ""

    if "&#" in text:
        text = _REFERENCE.sub(reference, text)
    text, count = _NO_CHARACTER.subn("", text)
    if count:
        passed[LEFT_OUT] += count
    return text


def _encoding(path: Path, head: bytes) -> str:
    """The encoding of a file that begins so: by its byte order mark, by the zeros of UTF-16, or as it says."""
    for mark, name in ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16")):
        if head.startswith(mark):
            return name
    if 0 in head[:2]:
        return "utf-16-be" if head[0] == 0 else "utf-16-le"
    declared = _DECLARED.match(head)
    name = declared[1].decode() if declared else "utf-8"
    try:
        return declared_encoding(name)
    except LookupError:
        raise InputError(f"{path}: its first line names the encoding {name!r}, which is unknown; convert the file to UTF-8") from None
