"""mark_findings: what other programs have left in text: marks of pieces, of tokenisers, of quoted cells, and of files that were joined."""

import itertools
from collections.abc import Iterable, Iterator
from pathlib import Path

import regex

from workflow_scripts.run.findings import Finding
from workflow_scripts.stage import InputError, resource
from workflow_scripts.text.files import BYTE_ORDER_MARK, read_lines

PIECES = {
    "@@": regex.compile(r"\S@@(?!\S)"),
    "▁": regex.compile(r"(?<!\S)▁"),
    "##": regex.compile(r"(?<=\S )##\p{L}"),
    "￭": regex.compile("￭"),
}
"""Marks that programs put into text that they cut into pieces: subword-nmt, SentencePiece, BERT's WordPiece, OpenNMT."""
TOKENS = {
    "@-@": regex.compile(r"(?<!\S)@-@(?!\S)"),
    "&apos; and other entities": regex.compile(r"&(?:apos|quot|amp|lt|gt|#91|#93|#124);"),
    "a blank before commas and full stops": regex.compile(r"\w [,.。，](?!\S)"),
}
"""Those of tokenisers, most often Moses'."""
FEW, APART = 0.02, 0.2
"""The share of sentences with marks of pieces from which on they are reported, and by how much it must differ for marks of tokenisers."""


def of_other_tools(about: str, parts: dict[str, dict[str, list[str]]]) -> Iterator[Finding]:
    """A note where text was cut into pieces or, unlike the rest, tokenised. `parts` have training text first: part → language → lines."""
    parts = {part: {code: lines for code, lines in sides.items() if lines} for part, sides in parts.items()}
    marks = []
    for mark, pattern in (PIECES | TOKENS).items():
        found = {part: {code: _share(pattern, lines) for code, lines in sides.items()} for part, sides in parts.items() if sides}
        by_code: dict[str, list[float]] = {}
        for shares in found.values():
            for code, share in shares.items():
                by_code.setdefault(code, []).append(share)
        enough = max((max(some) if mark in PIECES else max(some) - min(some) for some in by_code.values()), default=0.0)
        if enough >= (FEW if mark in PIECES else APART):
            where = "; ".join(f"{part}: {', '.join(f'{code} {share:.0%}' for code, share in some.items())}" for part, some in found.items())
            marks.append(f"{mark} ({where})")
    if marks:
        what = "sentences have marks of a tool that cuts text into pieces or tokenises it"
        yield Finding("note", about, f"{what}: {', '.join(marks)}; give raw text everywhere: models cut it into pieces themselves")


def _share(pattern: regex.Pattern, lines: list[str]) -> float:
    return sum(1 for line in lines if pattern.search(line)) / len(lines)


def quoted_cells(about: str, texts: Iterable[str], table: bool) -> Iterator[Finding]:
    """A note where cells of a `table` stand in quotation marks because there are some inside, which are doubled; or most cells do."""
    texts = list(texts)
    doubled, within = [text for text in texts if _is_quoted(text)], sum(map(in_quotation_marks, texts))
    way_out = "set `quoted: true`" if table else "read the table that they come from as CSV, and write its text anew"
    if len(doubled) > 1:
        share = f"{len(doubled):,} texts ({len(doubled) / len(texts):.0%}) have their quotation marks doubled, as {doubled[0][:60]!r}"
        yield Finding("note", about, f"{share}; {way_out}")
    elif within > len(texts) / 2:
        yield Finding("note", about, f"most sentences stand in quotation marks, which are read as text; {way_out}")


def in_quotation_marks(text: str) -> bool:
    """Whether a text begins and ends with a quotation mark."""
    return text[:1] == text[1:][-1:] == '"'


def _is_quoted(text: str) -> bool:
    inner = text[1:-1]
    return in_quotation_marks(text) and '""' in inner and '"' not in inner.replace('""', "")


def joined_files(about: str, paths: Iterable[str], most: int) -> Iterator[Finding]:
    """Notes where files were joined that begin with byte-order marks; the first `most` lines are looked at."""
    for path in paths:
        try:
            lines = itertools.islice(read_lines(Path(resource(path)), normalise=False), most)
            numbers = [number for number, line in enumerate(lines, 1) if BYTE_ORDER_MARK in line]
        except InputError:  # which another finding says
            continue
        if numbers:
            said = f"{path}: {len(numbers):,} line(s) have a byte-order mark, line {numbers[0]} first, as files have that were joined"
            yield Finding("note", about, f"{said}; the marks are left out")
