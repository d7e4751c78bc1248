"""memories: texts in several languages that one file holds side by side: TMX, XLIFF (1.2 and 2), and the XML of WMT since 2021.

All of them name the language of each text. They become `Unit`s, and `chosen_pairs` takes from each the two texts that are asked for. It
counts what it passes over, and names the languages that are there where none fits.
"""

import functools
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple
from xml.etree.ElementTree import Element

import regex

from workflow_scripts.stage import InputError
from workflow_scripts.text.language_codes import is_other_script, matching, of_language
from workflow_scripts.text.xml_elements import elements

SUFFIXES = (".tmx", ".xlf", ".xliff", ".sdlxliff", ".mxliff", ".mqxliff", ".xml")
"""Suffixes of files that `read_units` reads. The first element says what is in a file, not the suffix."""
SOURCE, TARGET = "source", "target"
"""What the sides of an XLIFF file are called where their languages are not named."""


class Unit(NamedTuple):
    """Texts that translate each other."""

    document: str | None
    """The document that they are from; None where the format has none."""
    texts: list[tuple[str, str]]
    """Code of a language, as the file writes it, and a text."""


Chosen = tuple[str | None, tuple[str, str], int]
"""The document, the two texts that were asked for, and the number of the pair."""


# ---------------------------------------------------------------------------------------------
# which texts are taken


def chosen_pairs(path: Path, units: Iterable[Unit], wanted: tuple[str, str], passed: Counter[str]) -> Iterator[Chosen]:
    """The texts of the two languages that are `wanted`, of all units that have both; what is passed over is counted in `passed`.

    Raises `InputError` after the last unit where none has both.
    """
    there: Counter[str] = Counter()
    number = 0
    for unit in units:
        texts: dict[str, str] = {}
        for code, text in unit.texts:
            if text and code in texts:
                passed[f"a second text in {code}"] += 1
            elif text:
                texts[code] = text
                there[code] += 1
        pair, notes = _choice(tuple(texts), wanted)
        passed.update(notes)
        if pair:
            number += 1
            yield unit.document, (texts[pair[0]], texts[pair[1]]), number
        else:
            passed[f"units without a text in {wanted[0]} or in {wanted[1]}"] += 1
    if not number:
        raise InputError(_none_fits(path, there, wanted, passed))


@functools.lru_cache(maxsize=4096)
def _choice(codes: tuple[str, ...], wanted: tuple[str, str]) -> tuple[tuple[str, str] | None, tuple[str, ...]]:
    """The codes that are taken, or None where a language is missing, and notes on the choice."""
    first, second = (matching(codes, code) for code in wanted)
    if first[:1] == second[:1]:  # what both could take goes to the side that has no other
        first, second = (first[1:], second) if len(first) > 1 else (first, second[1:])
    if not (first and second):
        return None, ()
    taken = first[0], second[0]
    notes = [f"{own} is read for {code}" for own, code in zip(taken, wanted, strict=True) if is_other_script(own, code)]
    for others, own, code in zip((first, second), taken, wanted, strict=True):
        notes += [f"{other} passed over, since {own} is read for {code}" for other in others[1:] if other not in taken]
    return taken, tuple(notes)


def _none_fits(path: Path, there: Counter[str], wanted: tuple[str, str], passed: Counter[str]) -> str:
    """The message where no unit has both languages."""
    if not there:
        others = ", ".join(f"{what}: {count:,}" for what, count in passed.items())
        return f"{path}: has no text that is read{f' ({others})' if others else ''}; give another file"
    known = _counted(there)
    missing = [code for code in wanted if not matching(there, code)]
    if not missing:
        return f"{path}: no unit has text in both {wanted[0]} and {wanted[1]}; texts by language: {known}; give another file"
    near = of_language(there, missing[0])
    way_out = f"if {near[0]} is meant, set `columns: {{{missing[0]}: {near[0]}}}`; or" if near else "name the languages that it has, or"
    return f"{path}: has no text in {' nor in '.join(missing)}; texts by language: {known}; {way_out} give another file"


def _counted(there: Counter[str]) -> str:
    return ", ".join(f"{code or 'one that is not named'} ({count:,})" for code, count in there.most_common(30))


# ---------------------------------------------------------------------------------------------
# formats


def read_units(path: Path, wanted: tuple[str, str], passed: Counter[str], reference: str | None = None) -> Iterator[Unit]:
    """The units of a TMX, an XLIFF or a WMT file; which one it is, its first element says.

    Args:
        path: The file, plain or compressed.
        wanted: The codes that are asked for; `SOURCE` and `TARGET` are the sides of an XLIFF file.
        passed: Counts what is passed over.
        reference: Name of the translator whose reference is taken from WMT's XML; without it A, or the first by name.

    Raises:
        InputError: As `elements` does, and for a file of another kind.
    """
    nodes = elements(path, ("tu", "trans-unit", "unit", "doc"), ("file",), passed)
    root, _ = next(nodes)
    if root.tag == "tmx":
        yield from _tmx_units(node for node, _ in nodes)
    elif root.tag == "xliff":
        yield from _xliff_units(root, (node for node, _ in nodes), wanted, passed)
    elif root.tag == "dataset":
        yield from _wmt_units(path, (node for node, _ in nodes if node.tag == "doc"), wanted, reference, passed)
    elif root.tag in _ONE_SIDE:
        raise InputError(f"{path}: holds one language (<{root.tag}>); name a file for each language under `files`, instead of `file`")
    else:
        known = "TMX (<tmx>), XLIFF (<xliff>) and the XML of WMT (<dataset>) are read"
        raise InputError(f"{path}: is XML of another kind (<{root.tag}>); {known}: convert it to one of them, or to text with tabs (.tsv)")


_ONE_SIDE = ("mteval", "srcset", "refset", "tstset", "doc")


def _tmx_units(units: Iterable[Element]) -> Iterator[Unit]:
    for unit in units:
        variants = unit.iter("tuv")
        yield Unit(None, [(variant.get("lang", ""), " ".join(filter(None, map(_text, variant.iter("seg"))))) for variant in variants])


# what stands in these elements is markup of the document that was translated
_MARKUP = ("bpt", "ept", "it", "ph", "ut")
_LINE_BREAK = regex.compile(r"\s*(?:</?(?:\w+:)?(?:br\d*|line-break)\b[^<>]*>|\\r|\\n|\n)+\s*", regex.IGNORECASE)
"""Markup that ends a line, in HTML, in the files of word processors, in programs and as it is."""


def _text(element: Element | None) -> str:
    """The text of a segment without the markup in it, with single blanks, also for line breaks."""
    return "" if element is None else " ".join("".join(_parts(element)).split())


def _parts(element: Element) -> Iterator[str]:
    yield element.text or ""
    for part in element:
        if _is_line_break(part):
            yield " "
        if part.tag not in _MARKUP:
            yield from _parts(part)
        yield part.tail or ""


def _is_line_break(part: Element) -> bool:
    """Whether an element inside a segment stands for the end of a line, by its kind in XLIFF 1.2, TMX or XLIFF 2, or by its markup."""
    kinds = {part.get("ctype"), part.get("type"), part.get("subType")}
    return bool(kinds & {"lb", "xlf:lb"}) or (part.tag in _MARKUP and bool(_LINE_BREAK.fullmatch("".join(part.itertext()))))


_UNTRANSLATED = {"new", "needs-translation", "initial"}
"""States of XLIFF's targets that are not translated, although they may hold a copy of the source."""


def _xliff_units(root: Element, nodes: Iterable[Element], wanted: tuple[str, str], passed: Counter[str]) -> Iterator[Unit]:
    """The segments of both versions: 1.2 has `trans-unit`s in files with languages, 2 has `unit`s with segments."""
    document, number = "", 0
    of_all = codes = root.get("srcLang", ""), root.get("trgLang", "")
    for node in nodes:
        if node.tag == "file":
            number += 1
            document = " ".join((node.get("original") or node.get("id") or f"file {number}").split())
            codes = node.get("source-language", of_all[0]), node.get("target-language", of_all[1])
            continue
        names = [side if side in wanted else code for side, code in zip((SOURCE, TARGET), codes, strict=True)]
        for source, target, state in _segments(node):
            if state in _UNTRANSLATED or (source and not target):
                passed["units that are not translated"] += 1
            elif source:
                yield Unit(document, [(names[0], source), (names[1], target)])


def _segments(unit: Element) -> Iterator[tuple[str, str, str]]:
    """Source, target and state of the segments of a unit; alternatives that a memory proposed are in other elements, and left alone."""
    for part in unit.findall("segment") if unit.tag == "unit" else [unit]:
        source, target = part.find("source"), part.find("target")
        state = (part if unit.tag == "unit" else target if target is not None else part).get("state", "")
        cut = part.find("seg-source")
        sources, targets = _marked(cut), _marked(target)
        if sources and sources.keys() == targets.keys():
            yield from ((text, targets[mark], state) for mark, text in sources.items())
        else:
            yield _text(source), _text(target), state


def _marked(element: Element | None) -> dict[str, str]:
    """The sentences of a text that a program has cut into marked ones."""
    marks = [] if element is None else [mark for mark in element.iter("mrk") if mark.get("mtype") == "seg"]
    return {mark.get("mid", ""): _text(mark) for mark in marks}


def _wmt_units(
    path: Path, documents: Iterable[Element], wanted: tuple[str, str], reference: str | None, passed: Counter[str]
) -> Iterator[Unit]:
    """The segments of the documents, each with one of its references. Outputs of systems are none."""
    there: Counter[str] = Counter()
    names: set[str] = set()
    read: Counter[str] = Counter()
    for number, document in enumerate(documents, 1):
        source = document.find("src")
        if source is None:
            passed["documents without a source"] += 1
            continue
        sources = _numbered(source)
        for side in (source, *document.findall("ref")):
            there[side.get("lang", "")] += len(_numbered(side))
        references = [side for side in document.findall("ref") if any(matching([side.get("lang", "")], code) for code in wanted)]
        references.sort(key=lambda side: (_name(side) != "A", _name(side)))
        names.update(map(_name, references))
        if outputs := document.findall("hyp"):
            passed[_SYSTEMS] += sum(len(_numbered(output)) for output in outputs)
        chosen = next((side for side in references if reference in (None, _name(side))), None)
        if chosen is None:
            passed[f"segments without {f'reference {reference}' if reference else 'a reference'}"] += len(sources)
            continue
        for other in references:
            if other is not chosen:
                passed[f"reference {_name(other)} passed over, since {_name(chosen)} is read"] += len(_numbered(other))
        targets = _numbered(chosen)
        read[_name(chosen)] += len(sources)
        for mark, text in sources.items():
            texts = [(source.get("lang", ""), text), (chosen.get("lang", ""), targets.get(mark, ""))]
            yield Unit(document.get("id") or f"document {number}", texts)
    if not read and names:
        raise InputError(f"{path}: has no reference {reference!r}; it has {', '.join(sorted(names))}: name one of them as `reference`")
    if not read and passed[_SYSTEMS]:
        problem = f"has no reference for {' and '.join(wanted)}; outputs of systems are none; texts by language: {_counted(there)}"
        raise InputError(f"{path}: {problem}; give the file with references")
    if not read:
        raise InputError(_none_fits(path, there, wanted, passed))
    if len(read) > 1:
        passed.update({f"reference {name} is read": count for name, count in read.items()})


_SYSTEMS = "segments of systems, which are no references"


def _name(reference: Element) -> str:
    """The name of a reference, which is that of its translator."""
    return reference.get("translator", "without a name")


def _numbered(side: Element) -> dict[str, str]:
    """The segments of one side of a document by their number, or by their place where numbers are missing or stand twice."""
    segments = list(side.iter("seg"))
    numbers = {segment.get("id") for segment in segments}
    by_number = None not in numbers and len(numbers) == len(segments)
    return {segment.get("id", "") if by_number else f"place {at}": _text(segment) for at, segment in enumerate(segments)}
