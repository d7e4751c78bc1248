"""yaml_text: files of the configuration as text, read before anything else: in UTF-8, in YAML, and with keys.

Snakemake reads the files of ``--configfile`` before the Snakefile, and says of a broken one neither which it is nor where. So its default
profile (`profiles/default/config.yaml`) has them looked at before (`start`), for which this module imports nothing that takes time.
"""

import codecs
import re
import unicodedata
from collections.abc import Iterable, Iterator
from pathlib import Path

import yaml

from workflow_scripts.stage import InputError


def configfiles(arguments: Iterable[str]) -> Iterator[str]:
    """The files of the configuration that Snakemake's arguments name."""
    follows = False
    for argument in arguments:
        option, given, value = argument.partition("=")
        if argument.startswith("-"):
            follows = option in ("--configfile", "--configfiles")
            if follows and given:
                yield value
        elif follows:
            yield argument


def composed(path: Path | str) -> yaml.MappingNode:
    """The keys and values of a file with the lines in which they stand.

    Raises:
        InputError: There is no such file, or it is no YAML in UTF-8 with keys at its top level.
    """
    text = _text_of(path)
    try:
        root = yaml.compose(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.YAMLError as error:
        raise InputError(f"{path}{_said_of(error, text)}") from None
    if not isinstance(root, yaml.MappingNode):
        raise InputError(f"{path}: has no keys at its top level, such as `run:`" + (", as it is empty" if root is None else ""))
    if tagged := next(_with_own_tags(root), None):
        line, tag = tagged.start_mark.line + 1, tagged.tag.replace("tag:yaml.org,2002:", "!!")
        raise InputError(f"{path}, line {line}: the tag {tag} is not read; write a plain value, and text that begins with ! in quotes")
    return root


def _with_own_tags(node: yaml.Node) -> Iterator[yaml.Node]:
    """The values that are of no kind that YAML itself knows."""
    waiting, visited = [node], set()
    while waiting:
        node = waiting.pop()
        if id(node) in visited:  # a YAML alias may refer to a block that contains it
            continue
        visited.add(id(node))
        if node.tag not in yaml.SafeLoader.yaml_constructors and node.tag not in _READ:
            yield node
        if isinstance(node, yaml.CollectionNode):
            waiting += [part for each in node.value for part in (each if isinstance(each, tuple) else (each,))]


_READ = ("tag:yaml.org,2002:merge", "tag:yaml.org,2002:value")


def _text_of(path: Path | str) -> str:
    try:
        content = Path(path).read_bytes()
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except IsADirectoryError:
        raise InputError(f"{path}: is a folder; name a file in it") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise InputError(f"{path}: is UTF-16; save it as UTF-8: iconv -f utf-16 -t utf-8 {path} > new.yaml")
    if b"\0" in content:
        raise InputError(f"{path}: is no text; name a file in YAML")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line, byte = content.count(b"\n", 0, error.start) + 1, content[error.start]
        raise InputError(
            f"{path}, line {line}: can't decode byte 0x{byte:02x}, as it is no UTF-8; save the file as UTF-8, "
            f"if it is Latin-1 by iconv -f latin1 -t utf-8 {path} > new.yaml"
        ) from None


def _said_of(error: yaml.YAMLError, text: str) -> str:
    """Where YAML is broken and why, as the rest of a line that begins with the file's name."""
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
    if mark is None:
        return f": is no YAML: {' '.join(str(problem).split())}"
    lines = text.split("\n")
    at = min(mark.line, len(lines) - 1)
    begun = getattr(error, "context_mark", None)
    since = f", which began in line {begun.line + 1}" if begun and begun.line < at else ""
    message = f", line {at + 1}, column {mark.column + 1}: is no YAML: {' '.join(str(problem).split())}{since}"
    # what a reader cannot see in it
    for number in range(at, max(at - 2, -1), -1):
        if "\t" in lines[number][: len(lines[number]) - len(lines[number].lstrip())]:
            return f"{message}; line {number + 1} begins with a tab; write blanks"
        if odd := odd_blank(lines[number]):
            return f"{message}; {odd} stands in line {number + 1}; write a blank"
    return message + next((f"; {hint}" for sign, hint in _HINTS if re.search(sign, str(problem))), "")


_HINTS = (
    ("mapping values are not allowed", "a text with a colon stands in quotes, and the keys of a block begin in one column"),
    ("undefined alias|alphabetic or numeric", "a text that begins with * stands in quotes"),
    ("cannot start any token", "a text that begins with such a character stands in quotes"),
    ("expected ',' or|stream end|did not find expected ',' or", "a bracket or quotation mark that opens must close"),
    ("unexpected end of stream", "a quotation mark that opens must close"),
    ("but found another document|expected a single document", "leave out the line --- between its parts"),
    ("did not find expected key|expected <block end>", "the keys of a block begin in one column"),
)
"""What PyYAML says of a mistake, and what mends it."""


def odd_blank(text: str) -> str:
    """The first character of `text` that looks like a blank or like nothing and is neither for YAML; empty where there is none."""
    found = re.search(r"[\u00a0\u1680\u2000-\u200f\u2028\u2029\u202f\u205f\u2060\u3000\ufeff]", text)
    return f"the character {unicodedata.name(found[0], 'without a name').lower()} (U+{ord(found[0]):04X})" if found else ""
