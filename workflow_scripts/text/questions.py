"""questions: questions on passages, with the spans of the passage that answer them, from the files that `squad` reads.

`labelled` reads them with `unit: question`, and SQuAD's JSON also with `unit: target` (`targets`).

A span is written ``start:end``, in characters of the passage as it is stored: in Unicode's form NFC, without entities of HTML and
byte-order marks, each run of white space a single blank. Several right answers are separated by blanks. An answer of a test set that is
nowhere in its passage is written as JSON writes a text, without blanks; it is compared with what a model marks all the same.

Where a start is wrong, the answer is looked up: at that start in UTF-16 units or in bytes, which some programs count, then at the nearest
place, or at the first one where the start is missing or negative.
"""

import html
import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import regex

from workflow_scripts.stage import InputError
from workflow_scripts.text.entities import CHANGED, as_characters, read_entities
from workflow_scripts.text.files import BYTE_ORDER_MARK
from workflow_scripts.text.parallel import clean_text
from workflow_scripts.text.squad import Raw, raw_questions
from workflow_scripts.text.words import UNSPACED

Span = tuple[int, int]
"""Where an answer begins and ends in a passage, in characters."""


LostAnswers = Literal["refuse", "leave_out", "by_text"]
"""What to do with an answer that is not in its passage: an error; to leave it out and count it; or, in test sets, to score by its text."""
Empty = Literal["refuse", "leave_out"]
"""What to do with a question that lacks a text: an error, or to leave it out and count it."""


class Question(NamedTuple):
    """A question, its passage, the spans that answer it, and the document and line that it comes from."""

    text: str
    passage: str
    spans: list[Span]
    document: str
    line: int
    article: int
    """In JSON the place of its article in the file, from 0."""
    key: str = ""
    """Its id in the file, if it has one."""
    lost: Sequence[str] = ()
    """Texts of right answers that are not in the passage."""


def read_questions(
    path: Path,
    columns: Mapping[str, Any],
    header: bool,
    where: dict[str, str],
    removed: Counter[str],
    changed: Counter[str],
    lost_answers: LostAnswers = "refuse",
    empty: Empty = "refuse",
    quoted: bool = False,
) -> Iterator[Question]:
    """The questions of a file in order; what was left out is counted in `removed`, what was repaired in `changed`.

    `columns` and `header` say where a table has ``question``, ``passage``, ``answer``, and optionally ``start``, ``id`` and
    ``document``. Of JSON ``where: {id: finnish}`` reads only questions whose id begins with ``finnish-``, as in TyDiQA's
    training file. Raises `InputError` naming file, line and question for a question that lacks a text, unless `empty` leaves it out, an id
    that is there twice, and an answer that is empty or not in its passage, unless `lost_answers` says what to do with it.
    """
    seen: dict[str, int] = {}
    for raw in raw_questions(Path(path), columns, header, where, removed, quoted):
        if raw.key in seen:
            raise InputError(f"{raw.at}: the id {raw.key!r} is there twice (before in line {seen[raw.key]}); give each question its own")
        if raw.key:
            seen[raw.key] = raw.line
        if missing := _missing(raw, lost_answers):
            if empty == "refuse":
                raise InputError(f"{raw.at}: {missing}")
            removed["lacks a text"] += 1
        elif question := _checked(raw, lost_answers, changed):
            yield question
        else:
            removed["answer is not in its passage"] += 1


def write_spans(spans: Sequence[Span], lost: Sequence[str] = ()) -> str:
    """Spans, and texts of answers that have none, as a table has them."""
    texts = (json.dumps(text, ensure_ascii=False).replace(" ", "\\u0020") for text in lost)
    return " ".join(dict.fromkeys([*(f"{start}:{end}" for start, end in spans), *texts]))


def parse_spans(label: str) -> list[Span]:
    """The spans that `write_spans` wrote."""
    return [(int(start), int(end)) for start, _, end in (part.partition(":") for part in label.split(" ") if not part.startswith('"'))]


def parse_lost(label: str) -> list[str]:
    """The texts of answers without a span that `write_spans` wrote."""
    return [json.loads(part) for part in label.split(" ") if part.startswith('"')]


# ---------------------------------------------------------------------------------------------
# questions and answers


class _Lost(InputError):
    """An answer is not in its passage."""


def _missing(raw: Raw, lost_answers: LostAnswers) -> str:
    """What a question lacks, with the way out; empty if nothing. Answers that are all empty may be lost ones that are left out."""
    way_out = "delete the question, or leave out all such questions (`empty: leave_out`)"
    for what, value in ("question", raw.text), ("passage", raw.passage):
        if not clean_text(read_entities(value, Counter())):
            return f"the {what} is empty; see that `columns` is right, {way_out}"
    if not raw.answers or (lost_answers != "leave_out" and not any(clean_text(answer) for answer, _ in raw.answers)):
        return f"the question {raw.text[:60]!r} has no answer; mark it with `is_impossible`, as SQuAD 2 does, {way_out}"
    return ""


def _checked(raw: Raw, lost_answers: LostAnswers, changed: Counter[str]) -> Question | None:
    """The question with the places of its answers; None where it has none that is in its passage, and is to be left out."""
    spans, lost = list[Span](), list[str]()
    counted = Counter[str]()
    for answer, start in raw.answers:
        try:
            spans.append(_located(raw, answer, start, counted))
        except _Lost:
            text = clean_text(read_entities(answer, counted))
            if lost_answers == "refuse" or (lost_answers == "by_text" and not text):
                raise
            lost.append(text)
    if lost_answers == "leave_out":
        if not spans:
            return None
        counted["answer that is not in its passage left out, beside others that are"] += len(lost)
        lost = []
    counted["answer that is not in its passage, scored by its text"] += len(lost)
    points = sorted({point for span in spans for point in span})
    passage, places = clean_passage(raw.passage, points)
    if as_characters(raw.passage) != raw.passage:
        counted[CHANGED] += 1
    moved = dict(zip(points, places, strict=True))
    text = clean_text(read_entities(raw.text, counted))
    changed.update(+counted)
    cleaned = [_without_blanks(passage, (moved[start], moved[end])) for start, end in spans]
    return Question(text, passage, cleaned, raw.document, raw.line, raw.article, raw.key, lost)


def _without_blanks(passage: str, span: Span) -> Span:
    """A span of a passage without the blanks at its ends, which entities may have become."""
    inside = passage[slice(*span)]
    start = span[0] + len(inside) - len(inside.lstrip())
    return start, max(start, start + len(inside.strip()))


def _located(raw: Raw, answer: str, start: int | None, changed: Counter[str]) -> Span:
    """Where an answer stands in the passage as the file has it: at its start, or where it is found; raises `_Lost` if nowhere."""
    wanted = answer.strip()
    if not clean_text(wanted):
        raise _Lost(f"{raw.at}: the answer of the question {raw.text[:60]!r} is empty; correct it, or delete the question")
    begin = None if start is None or start < 0 else start + answer.index(wanted)
    if begin is not None and raw.passage.startswith(wanted, begin):
        return begin, begin + len(wanted)
    if begin is not None and (counted := _in_other_units(raw.passage, wanted, begin)):
        unit, place = counted
        changed[f"start of an answer counted in {unit}, not in characters"] += 1
        return place, place + len(wanted)
    # blanks may have been written otherwise in answer and passage, and so may letters that have several forms
    for form in (wanted, *(unicodedata.normalize(form, wanted) for form in ("NFC", "NFD")), html.escape(wanted, quote=False)):
        pattern = re.compile(r"\s+".join(map(re.escape, form.split())))
        if spans := [match.span() for match in pattern.finditer(raw.passage)]:
            if start is not None:
                changed["answer found at another place than its start"] += 1
            if begin is not None:
                return min(spans, key=lambda span: abs(span[0] - begin))
            # "art" of "the art of war", and not of "start"
            spans = [span for span in spans if _is_whole(raw.passage, span)] or spans
            if len(spans) > 1:
                changed["answer without a start taken where it stands first"] += 1
            return spans[0]
    there = "" if begin is None else f" (at its start, {start}, stands {raw.passage[begin:][: len(answer)][:60]!r})"
    raise _Lost(
        f"{raw.at}: the answer {wanted[:60]!r} is not in the passage{there}; correct it, delete the question, "
        "or leave out all such questions (`lost_answers: leave_out`)"
    )


def _in_other_units(passage: str, wanted: str, begin: int) -> tuple[str, int] | None:
    """The unit and the place where an answer stands if its start counts not characters but UTF-16 units or bytes, as programs may."""
    for unit, encoding, size in ("UTF-16 units", "utf-16-le", 2), ("bytes", "utf-8", 1):
        place = len(passage.encode(encoding)[: begin * size].decode(encoding, "ignore"))
        if passage.startswith(wanted, place):
            return unit, place
    return None


_OF_WORD = rf"[\p{{L}}\p{{M}}\p{{N}}--{UNSPACED}]"
_INSIDE_WORD = regex.compile(rf"(?<={_OF_WORD})(?={_OF_WORD})", regex.V1)
"""A place between two characters of a word, in scripts that put blanks between words."""


def _is_whole(passage: str, span: Span) -> bool:
    """Whether a span neither begins nor ends inside a word."""
    return not any(_INSIDE_WORD.match(passage, place) for place in span)


def clean_passage(text: str, points: Sequence[int]) -> tuple[str, list[int]]:
    """A passage in one line, and where `points` of it, in ascending order, are then.

    It is cleaned in the parts between the points, so that their places are known whatever becomes shorter. A point inside a letter that is
    written as several characters (e and an accent, which become é) moves behind the letter, and one inside an entity behind the entity.
    """
    points = [_behind_letter(text, point) for point in points]
    parts = [text[start:end] for start, end in zip([0, *points], [*points, len(text)], strict=True)]
    clean = [_clean_part(part) for part in parts]
    leading = len(whole := "".join(clean)) - len(whole.lstrip())
    places, at = [], 0
    for part in clean[:-1]:
        at += len(part)
        places.append(max(0, at - leading))
    return whole.strip(), places


def _behind_letter(text: str, point: int) -> int:
    while 0 < point < len(text) and not _is_between_letters(text, point):
        point += 1
    return point


def _is_between_letters(text: str, point: int) -> bool:
    """Whether a point is neither inside an entity nor inside a letter that is written as several characters."""
    sides = text[max(0, point - _NEAR) : point], text[point : point + _NEAR]
    before, behind = map(_clean_part, sides)
    is_in_entity = as_characters("".join(sides)) != "".join(map(as_characters, sides))
    is_in_letter = bool(behind and unicodedata.combining(behind[0])) or not unicodedata.is_normalized("NFC", before + behind)
    return not (is_in_entity or is_in_letter)


_NEAR = 40
"""Characters; no entity, and no letter of a language with its marks, is longer."""


def _clean_part(text: str) -> str:
    text = as_characters(text).replace("\0", "").replace(BYTE_ORDER_MARK, "")
    return re.sub(r"\s+", " ", unicodedata.normalize("NFC", text))
