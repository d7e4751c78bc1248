"""questions: questions on passages, with the spans of the passage that answer them, in the formats of benchmarks.

`labelled` reads them with `unit: question`, and SQuAD's JSON also with `unit: target` (`targets`). The formats:

=============  ==================================================  ===============================================
file           holds                                               a document (for `held_out`) is
=============  ==================================================  ===============================================
``.json``      articles, their paragraphs, and questions on each,  an article
               as in SQuAD 1.1; so XQuAD, MLQA and TyDiQA-GoldP
any other      tab-separated columns: question, passage, answer,   what the column ``document`` names, else a
               and optionally where the answer starts              block of lines
=============  ==================================================  ===============================================

A span is written ``start:end``, in characters of the passage as it is stored: in Unicode's form NFC, without entities of HTML,
each run of white space a single blank. Several right answers are separated by blanks.
"""

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import regex

from workflow_scripts.stage import InputError
from workflow_scripts.text.entities import CHANGED, as_characters, read_entities
from workflow_scripts.text.files import NOT_ASKED_FOR, is_asked_for, kind_of, read_lines, table_rows, whole_characters, with_where
from workflow_scripts.text.parallel import block_of, clean_text

Span = tuple[int, int]
"""Where an answer begins and ends in a passage, in characters."""


LostAnswers = Literal["refuse", "leave_out"]
"""What to do with a question whose answer is not in its passage: an error, or to leave it out and count it."""


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


class _Raw(NamedTuple):
    """A question as it stands in a file; `answers` are texts, each with its start if the file has it."""

    at: str
    key: str
    text: str
    passage: str
    answers: list[tuple[str, int | None]]
    document: str
    line: int
    article: int = 0


def read_questions(
    path: Path,
    columns: Mapping[str, Any],
    header: bool,
    where: dict[str, str],
    removed: Counter[str],
    changed: Counter[str],
    lost_answers: LostAnswers = "refuse",
    quoted: bool = False,
) -> Iterator[Question]:
    """The questions of a file in order; what was left out is counted in `removed`, what was repaired in `changed`.

    `columns` and `header` say where a table has ``question``, ``passage``, ``answer``, and optionally ``start``, ``id`` and
    ``document``. Of a JSON file ``where: {id: finnish}`` reads only questions whose id begins with ``finnish-``, as in TyDiQA's
    training file. Raises `InputError` naming file, line and question for an empty question or passage, a question without
    answer, an id that is there twice, and an answer that is empty or not in its passage, unless `lost_answers` leaves such questions out.
    """
    is_json = kind_of(path) == ".json"
    seen: dict[str, int] = {}
    path = Path(path)
    for raw in _json_questions(path, where, removed) if is_json else _table_questions(path, columns, header, where, removed, quoted):
        if raw.key in seen:
            raise InputError(f"{raw.at}: the id {raw.key!r} is there twice (before in line {seen[raw.key]}); give each question its own")
        if raw.key:
            seen[raw.key] = raw.line
        try:
            yield _checked(raw, changed)
        except _Lost:
            if lost_answers == "refuse":
                raise
            removed["answer is not in its passage"] += 1


def write_spans(spans: Sequence[Span]) -> str:
    """Spans as a table has them."""
    return " ".join(f"{start}:{end}" for start, end in dict.fromkeys(spans))


def parse_spans(label: str) -> list[Span]:
    """The spans that `write_spans` wrote."""
    return [(int(start), int(end)) for start, _, end in (span.partition(":") for span in label.split(" "))]


# ---------------------------------------------------------------------------------------------
# questions and answers


class _Lost(InputError):
    """An answer is not in its passage."""


def _checked(raw: _Raw, changed: Counter[str]) -> Question:
    text = clean_text(read_entities(raw.text, changed))
    for what, value in (("question", text), ("passage", clean_text(raw.passage))):
        if not value:
            raise InputError(f"{raw.at}: the {what} is empty; delete the question, or see that `columns` is right")
    if not raw.answers:
        raise InputError(f"{raw.at}: the question {text[:60]!r} has no answer; delete it, or mark it with `is_impossible`, as SQuAD 2 does")
    spans = [_located(raw, answer, start, changed) for answer, start in raw.answers]
    points = sorted({point for span in spans for point in span})
    passage, places = clean_passage(raw.passage, points)
    if as_characters(raw.passage) != raw.passage:
        changed[CHANGED] += 1
    moved = dict(zip(points, places, strict=True))
    return Question(text, passage, [(moved[start], moved[end]) for start, end in spans], raw.document, raw.line, raw.article, raw.key)


def _located(raw: _Raw, answer: str, start: int | None, changed: Counter[str]) -> Span:
    """Where an answer stands in the passage as the file has it: at its start, or at the nearest place where it is found."""
    wanted = answer.strip()
    if not clean_text(wanted):
        raise _Lost(f"{raw.at}: the answer of the question {raw.text[:60]!r} is empty; correct it, or delete the question")
    begin = None if start is None else start + answer.index(wanted)
    if begin is not None and begin >= 0 and raw.passage[begin : begin + len(wanted)] == wanted:
        return begin, begin + len(wanted)
    # blanks may have been written otherwise in answer and passage, and so may letters that have several forms
    for form in (wanted, unicodedata.normalize("NFC", wanted), unicodedata.normalize("NFD", wanted)):
        pattern = re.compile(r"\s+".join(map(re.escape, form.split())))
        if found := [match.span() for match in pattern.finditer(raw.passage)]:
            if begin is None:
                # "art" of "the art of war", and not of "start"
                found = [span for span in found if _is_whole(raw.passage, span)] or found
                if len(found) > 1:
                    changed["answer without a start taken where it stands first"] += 1
                return found[0]
            changed["answer found at another place than its start"] += 1
            return min(found, key=lambda span: abs(span[0] - begin))
    there = "" if begin is None else f" (at its start, {start}, stands {raw.passage[max(start or 0, 0) :][: len(answer)][:60]!r})"
    raise _Lost(
        f"{raw.at}: the answer {wanted[:60]!r} is not in the passage{there}; correct it, delete the question, "
        "or leave out all such questions (`lost_answers: leave_out`)"
    )


_OF_WORD = r"[\p{L}\p{M}\p{N}--\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]"
_INSIDE_WORD = regex.compile(rf"(?<={_OF_WORD})(?={_OF_WORD})", regex.V1)
"""A place between two characters of a word, in scripts that put blanks between words."""


def _is_whole(passage: str, span: Span) -> bool:
    """Whether a span neither begins nor ends inside a word."""
    return not any(_INSIDE_WORD.match(passage, place) for place in span)


def clean_passage(text: str, points: Sequence[int]) -> tuple[str, list[int]]:
    """A passage in one line, and where `points` of it, in ascending order, are then.

    It is cleaned in the parts between the points, so that their places are known whatever becomes shorter. A point inside a letter that is
    written as several characters (e and an accent, which become é) moves behind the letter.
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
    def nfc(part: str) -> str:
        return unicodedata.normalize("NFC", part)

    while 0 < point < len(text) and (
        unicodedata.combining(text[point]) or nfc(text[point - 1 : point + 1]) != nfc(text[point - 1]) + nfc(text[point])
    ):
        point += 1
    return point


def _clean_part(text: str) -> str:
    return re.sub(r"\s+", " ", unicodedata.normalize("NFC", as_characters(text).replace("\0", "")))


# ---------------------------------------------------------------------------------------------
# files


def _json_questions(path: Path, where: dict[str, str], removed: Counter[str]) -> Iterator[_Raw]:
    # offsets count the characters of the text as it is, not in another normal form
    source = "\n".join(read_lines(path, normalise=False))
    try:
        articles = json.loads(source)["data"]
        if not isinstance(articles, list):
            raise TypeError("`data` is no list")
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError(f"{path}: not JSON in SQuAD's format, with articles under `data` ({error}); give another file") from None
    line_of = line_finder(source)
    for number, article in enumerate(articles, 1):
        for paragraph, entry in _entries(path, number, article):
            key = str(entry.get("id", ""))
            line = line_of(key)
            if where.get("id") and key.partition("-")[0] != where["id"]:
                removed[NOT_ASKED_FOR] += 1
                continue
            if entry.get("is_impossible"):
                removed["question without answer (is_impossible)"] += 1
                continue
            at = f"{path}, line {line}, question {key or entry.get('question', '')!r}"
            try:
                answers: list[tuple[str, int | None]] = [(str(each["text"]), int(each["answer_start"])) for each in entry["answers"]]
                texts = whole_characters(str(entry["question"])), whole_characters(str(paragraph["context"]))
            except (KeyError, TypeError, ValueError) as error:
                raise InputError(f"{at}: is not in SQuAD's format: {_lacking(error)}; correct it, or delete it") from None
            document = str(article.get("title") or f"article {number}")
            yield _Raw(at, key, *texts, answers, document, line, number - 1)


def _lacking(error: Exception) -> str:
    return f"{error} is missing" if isinstance(error, KeyError) else str(error)


def line_finder(source: str) -> Callable[[str], int]:
    """What tells the line of a question's id in the JSON `source`; ids are asked for in their order there.

    After an id that is not found, as one that is a number and no text, all have the line of the last that was: to look for each of them
    in all the rest of a large file would take hours.
    """
    begin, line, in_step = 0, 1, True
    escaped = source.isascii()  # whether other letters are written by their numbers

    def line_of(key: str) -> int:
        nonlocal begin, line, in_step
        if key and in_step:
            found = source.find(json.dumps(key, ensure_ascii=escaped), begin)
            in_step = found >= 0
            if in_step:
                line += source.count("\n", begin, found)
                begin = found + len(key)
        return line

    return line_of


def _entries(path: Path, number: int, article: Any) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Each paragraph of an article with each of its questions."""
    try:
        for paragraph in article["paragraphs"]:
            for entry in paragraph["qas"]:
                yield paragraph, dict(entry)
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"{path}, article {number}: is not in SQuAD's format, `paragraphs` with `context` and `qas`: {_lacking(error)}"
        ) from None


COLUMNS = ("question", "passage", "answer", "start", "id", "document")
"""The keys that `columns` may have with `unit: question`."""
NEEDED = COLUMNS[:3]
"""Those that a table must have."""


def _table_questions(
    path: Path, columns: Mapping[str, Any], header: bool, where: dict[str, str], removed: Counter[str], quoted: bool
) -> Iterator[_Raw]:
    for number, row in table_rows(path, with_where(columns, where), header, normalise=False, quoted=quoted):
        at = f"{path}, line {number}"
        if not is_asked_for(row, where):
            removed[NOT_ASKED_FOR] += 1
            continue
        start = row.get("start", "").strip()
        if start and not start.isdigit():
            raise InputError(f"{at}: the start {start[:60]!r} is no number of characters; correct it, or leave it empty")
        answers = [(row["answer"], int(start) if start else None)] if row["answer"].strip() else []
        yield _Raw(at, row.get("id", ""), row["question"], row["passage"], answers, row.get("document", block_of(number)), number)
