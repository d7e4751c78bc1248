"""catalogues: reads gettext's catalogues (.po), in which a program's messages stand with their translations.

A message with plural forms gives two pairs: the singular with the form that the catalogue's rule has for 1, the plural with the form that
most numbers take. Where both are the same form, as in Japanese, only the plural is read. (The parser is polib.)
"""

import gettext
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from workflow_scripts.stage import InputError
from workflow_scripts.text.files import declared_encoding, read_blocks
from workflow_scripts.text.language_codes import matching
from workflow_scripts.text.memories import Unit
from workflow_scripts.text.other_formats import refuse_others

SUFFIXES = (".po", ".pot")
ORIGINAL, TRANSLATION = "msgid", "msgstr"
"""What the sides of a catalogue are called where it does not say its languages."""


def read_catalogue(path: Path, wanted: tuple[str, str], passed: Counter[str]) -> Iterator[Unit]:
    """The messages of a catalogue, with the codes that are `wanted`; those without a translation, fuzzy and obsolete ones are counted.

    The header of a catalogue says the language of the translations, and seldom that of the originals, which is then the other one.

    Raises:
        InputError: The file cannot be read, a line is none of a catalogue's, or the header's language is none of those that are wanted.
    """
    import polib

    text = _text(path)
    _check_lines(path, text)
    text = re.sub("[\x0b\x0c\x1c-\x1e\x85\u2028\u2029]", " ", text)  # polib would end a line there
    try:
        catalogue = polib.pofile(text)
    except OSError as error:  # its message names the line
        raise InputError(f"{path}: {str(error).replace('None', '').strip()}; msgfmt --check says more") from None
    codes = _languages(path, catalogue.metadata, wanted)
    which = _forms(path, catalogue.metadata.get("Plural-Forms", ""))
    for entry in catalogue:
        if entry.obsolete:
            passed["obsolete messages"] += 1
        elif entry.fuzzy:
            passed["fuzzy messages, whose translation nobody has seen through"] += 1
        elif not (entry.msgstr or any(entry.msgstr_plural.values())):
            passed["messages that are not translated"] += 1
        else:
            for texts in _pairs(entry, which, passed):
                yield Unit(None, [(code, " ".join(text.split())) for code, text in zip(codes, texts, strict=True)])


def _pairs(entry: Any, which: tuple[int, int], passed: Counter[str]) -> list[tuple[str, str]]:
    if not entry.msgid_plural:
        return [(entry.msgid, entry.msgstr)]
    one, many = which
    forms = entry.msgstr_plural
    if others := sum(1 for place, form in forms.items() if form and place not in which):
        passed["other plural forms"] += others
    singular = [(entry.msgid, forms.get(one, ""))] if one != many else []
    return [*singular, (entry.msgid_plural, forms.get(many, ""))]


def _forms(path: Path, rule: str) -> tuple[int, int]:
    """The plural form for 1, and that which most numbers take."""
    declared = re.search(r"plural\s*=\s*([^;]+)", rule)
    try:
        form = gettext.c2py(declared[1].strip() if declared else "n != 1")
        return form(1), Counter(form(number) for number in range(2, 200)).most_common(1)[0][0]
    except (ValueError, ZeroDivisionError, RecursionError) as error:
        problem = f"{path}: `Plural-Forms` in its header is no rule that gettext reads ({error}): {rule!r}"
        raise InputError(f"{problem}; write nplurals=2; plural=(n != 1), or the rule of the language") from None


def _languages(path: Path, header: dict[str, str], wanted: tuple[str, str]) -> tuple[str, str]:
    """The codes of originals and translations."""
    if TRANSLATION in wanted:
        return wanted[1 - wanted.index(TRANSLATION)], TRANSLATION
    declared = header.get("Language", "").strip()
    # most programs are written in English
    first, other = sorted(wanted, key=lambda code: code != "en")
    way_out = f"say which side is which: `columns: {{{first}: {ORIGINAL}, {other}: {TRANSLATION}}}` if the originals are in {first!r}"
    if not declared:
        raise InputError(f"{path}: its header does not say the language of the translations (Language: …); {way_out}")
    fits = [bool(matching([declared], code)) for code in wanted]
    if not any(fits):
        raise InputError(f"{path}: its translations are in {declared}, not in {' nor '.join(wanted)}; give another file, or {way_out}")
    original = wanted[1 - fits.index(True)]
    return original if original == ORIGINAL else header.get("X-Source-Language", "").strip() or original, declared


# ---------------------------------------------------------------------------------------------
# the text

_LINE = re.compile(r'\s*(#.*|((msgctxt|msgid_plural|msgid|msgstr)(\s*\[\d+\])?\s*)?("([^"\\]|\\.)*")?)\s*')
_CHARSET = re.compile(rb'charset=([^\s\\"]+)')


def _text(path: Path) -> str:
    """A catalogue's text; it is small, so that it is held in memory."""
    content = b"".join(read_blocks(path))
    refuse_others(path, content[:1000])
    declared = _CHARSET.search(content[:10_000])
    encoding = declared[1].decode("ascii", "replace") if declared and declared[1] != b"CHARSET" else "utf-8"
    try:
        encoding = declared_encoding(encoding)
        return content.decode(encoding).removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        problem = f"not {encoding} (byte {content[error.start]:#04x}); msgconv -t utf-8 converts catalogues, and charset=… in the header"
        raise InputError(f"{path}, line {line}: {problem} says the encoding") from None
    except LookupError:
        raise InputError(f"{path}: its header names the encoding {encoding!r}, which is unknown; correct charset=…") from None


def _check_lines(path: Path, text: str) -> None:
    """Raise `InputError` for a line that is none of a catalogue's; polib would end, or go on without it."""
    for number, line in enumerate(text.split("\n"), 1):
        if not _LINE.fullmatch(line):
            problem = f"is no line of a catalogue (msgid, msgstr, a text between quotation marks): {line[:80]!r}"
            raise InputError(f'{path}, line {number}: {problem}; write " in a text as \\"')
