"""squad: questions on passages as they stand in files: SQuAD's JSON, the same question by question, and tables.

=============  =====================================================  ================================================
file           holds                                                  a document (for `held_out`) is
=============  =====================================================  ================================================
``.json``      articles, their paragraphs, and questions on each,     an article, by its title
               as in SQuAD 1.1; so XQuAD, MLQA and TyDiQA-GoldP.
               A list of articles, of paragraphs or of questions
               will do, with ``data`` around it or without
``.jsonl``     a question a line, as the Hugging Face hub has them:   what the column ``document`` names (``title``
               ``question``, ``context``, ``answers``                 where there is one), else a passage
any other      tab-separated columns: question, passage, answer,      what the column ``document`` names, else a
               and optionally where the answer starts                 block of lines
=============  =====================================================  ================================================

Answers are a list of objects with ``text`` and ``answer_start``, an object with a list of each, or texts without a start.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from workflow_scripts.stage import InputError
from workflow_scripts.text.files import (
    NOT_ASKED_FOR,
    asked_for,
    is_asked_for,
    json_rows,
    kind_of,
    read_lines,
    table_rows,
    whole_characters,
    with_where,
)
from workflow_scripts.text.parallel import block_of, dig

Answer = tuple[str, int | None]
"""The text of an answer, and its start in the passage if the file has it."""

NO_ANSWER = "question without answer (is_impossible)"
"""What reports call a question that is left out because it has no answer on purpose."""

COLUMNS = ("question", "passage", "answer", "start", "id", "document")
"""The keys that `columns` may have with `unit: question`."""
NEEDED = COLUMNS[:3]
"""The columns that a table must have."""
_KEYS = {"question": "question", "passage": "context", "answer": "answers", "id": "id", "document": "title"}
"""Their names in SQuAD's JSON."""


class Raw(NamedTuple):
    """A question as it stands in a file, with the place that errors name."""

    at: str
    key: str
    text: str
    passage: str
    answers: list[Answer]
    document: str
    line: int
    article: int = 0


class Entry(NamedTuple):
    """A question in JSON as it stands there, with its passage, and the number, from 0, and the name of its article."""

    article: int
    title: str
    passage: Any
    question: dict[str, Any]
    line: int


def raw_questions(
    path: Path, columns: Mapping[str, Any], header: bool, where: dict[str, str], removed: Counter[str], quoted: bool = False
) -> Iterator[Raw]:
    """The questions of a file; those that are not asked for, or have no answer on purpose, are counted in `removed`."""
    if kind_of(path) == ".json":
        return _of_json(path, where, removed)
    if kind_of(path) == ".jsonl":
        return _of_lines(path, columns, where, removed)
    return _of_table(path, columns, header, where, removed, quoted)


def entries(path: Path) -> Iterator[Entry]:
    """The questions of a JSON file in order. Raises `InputError` for a file or an article in another format."""
    # offsets count the characters of the text as it is, not in another normal form
    source = "\n".join(read_lines(path, normalise=False))
    lines = LineFinder(source)
    before, number = None, -1
    for place, article in enumerate(_articles(path, source), 1):
        try:
            if not isinstance(article, dict):
                raise TypeError("an article must be a JSON object")
            title = str(article.get("title") or "")
            if "question" in article:
                pairs = [(article.get("context"), article)]
            elif "qas" in article:
                pairs = [(article.get("context"), question) for question in article["qas"]]
            else:
                pairs = [(paragraph.get("context"), question) for paragraph in article["paragraphs"] for question in paragraph["qas"]]
            questions = [(passage, dict(question)) for passage, question in pairs]
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise InputError(
                f"{path}, article {place}: is not in SQuAD's format, `paragraphs` with `context` and `qas`: {lacking(error)}; "
                "correct or delete it"
            ) from None
        # questions on the same passage that stand alone, one after the other, are of one article
        alone = "question" in article and (title or article.get("context"))
        number += not alone or alone != before
        before = alone
        for passage, question in questions:
            yield Entry(number, title, passage, question, lines.line_of(str(question.get("id", ""))))


def lacking(error: Exception) -> str:
    """The message of an error about a JSON object."""
    return f"{error} is missing" if isinstance(error, KeyError) else str(error)


class LineFinder:
    """Finds the lines of questions' ids in the JSON `source`, if it is asked for them in their order there.

    An id may be missing, such as one that is a number and no text. All ids after it get the line of the last one that was found: a search
    for each of them through the rest of a large file would take hours.
    """

    def __init__(self, source: str):
        self._source, self._line, self._begin, self._in_step = source, 1, 0, True
        self._escaped = source.isascii()  # whether other letters are written by their numbers

    def line_of(self, key: str) -> int:
        """The line of an id; of an empty one that of the id before."""
        if key and self._in_step:
            place = self._source.find(json.dumps(key, ensure_ascii=self._escaped), self._begin)
            self._in_step = place >= 0
            if self._in_step:
                self._line += self._source.count("\n", self._begin, place)
                self._begin = place + len(key)
        return self._line


def _articles(path: Path, source: str) -> list[Any]:
    """The articles, or questions, of a JSON file."""
    try:
        articles = json.loads(source)
        if isinstance(articles, dict):
            articles = [articles] if {"paragraphs", "qas", "question"} & articles.keys() else articles["data"]
        if not isinstance(articles, list):
            raise TypeError("`data` is no list")
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        way_out = (
            f"it has an object a line: call it {path.name.replace('.json', '.jsonl')}" if _is_of_lines(source) else "give another file"
        )
        raise InputError(f"{path}: not JSON in SQuAD's format, with articles under `data` ({lacking(error)}); {way_out}") from None
    return articles


def _is_of_lines(source: str) -> bool:
    """Whether the first line is a JSON object by itself."""
    try:
        return isinstance(json.loads(source.partition("\n")[0]), dict) and "\n" in source.strip()
    except (ValueError, RecursionError):
        return False


def _of_json(path: Path, where: dict[str, str], removed: Counter[str]) -> Iterator[Raw]:
    for entry in entries(path):
        key = str(entry.question.get("id", ""))
        if not _has_id(key, where):
            removed[NOT_ASKED_FOR] += 1
            continue
        at = f"{path}, line {entry.line}, question {key or entry.question.get('question', '')!r}"
        try:
            if entry.question.get("is_impossible") or _is_empty(entry.question["answers"]):
                removed[NO_ANSWER] += 1
                continue
            answers = _answers(entry.question["answers"])
            texts = _text(entry.question["question"]), _text(entry.passage)
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"{at}: is not in SQuAD's format: {lacking(error)}; correct it, or delete it") from None
        yield Raw(at, key, *texts, answers, entry.title or f"article {entry.article + 1}", entry.line, entry.article)


def _of_lines(path: Path, columns: Mapping[str, Any], where: dict[str, str], removed: Counter[str]) -> Iterator[Raw]:
    keys = {**_KEYS, **columns}

    def taken(row: Any) -> tuple[Mapping[str, Any], dict[str, Any]]:
        optional = {what for what in ("id", "document") if what not in columns}
        cells = {what: dig(row, key) for what, key in keys.items() if what not in optional or key in row}
        cells |= {f"where {key}": dig(row, key) for key in where if key != "id"}
        no_answer = row.get("is_impossible") or _is_empty(cells["answer"])
        cells["answers"] = None if no_answer else _answers(cells["answer"], cells.get("start"))
        return {what: _text(cells[what]) for what in ("question", "passage")}, cells

    wanted = {what: keys[what] for what in NEEDED}
    article, before = -1, None
    for number, (texts, cells) in json_rows(path, taken, wanted, normalise=False):
        key, passage = str(cells.get("id", "")), texts["passage"]
        if not _has_id(key, where) or not is_asked_for(cells, {name: value for name, value in where.items() if name != "id"}):
            removed[NOT_ASKED_FOR] += 1
        elif cells["answers"] is None:
            removed[NO_ANSWER] += 1
        else:
            named = "" if cells.get("document") is None else str(cells["document"])
            article += (named or passage) != before
            before = named or passage
            at = f"{path}, line {number}" + (f", question {key!r}" if key else "")
            yield Raw(at, key, texts["question"], passage, cells["answers"], named or f"article {article + 1}", number, article)


def _of_table(
    path: Path, columns: Mapping[str, Any], header: bool, where: dict[str, str], removed: Counter[str], quoted: bool
) -> Iterator[Raw]:
    rows = table_rows(path, with_where(columns, where), header, normalise=False, quoted=quoted)
    for place, number, row in asked_for(rows, where, removed):
        at = f"{path}, line {number}"
        start = row.get("start", "").strip()
        if start and not re.fullmatch(r"-?[0-9]+", start):
            raise InputError(f"{at}: the start {start[:60]!r} is no number of characters; correct it, or leave it empty")
        answers: list[Answer] = [(row["answer"], int(start) if start else None)] if row["answer"].strip() else []
        yield Raw(at, row.get("id", ""), row["question"], row["passage"], answers, row.get("document") or block_of(place), number)


def _has_id(key: str, where: dict[str, str]) -> bool:
    """Whether an id is the one that is asked for, or begins with it, as in TyDiQA."""
    return not where.get("id") or where["id"] in (key, key.partition("-")[0])


def _is_empty(answers: Any) -> bool:
    """Whether an object of lists has no answer, as SQuAD 2 on the hub has for questions without one."""
    return isinstance(answers, dict) and answers.get("text") == []


def _answers(answers: Any, starts: Any = None) -> list[Answer]:
    """The answers as a file has them, of whichever form. Raises `KeyError`, `TypeError` or `ValueError` for another one."""
    if isinstance(answers, dict):
        answers, starts = answers["text"], answers.get("answer_start")
    if isinstance(answers, str):
        answers, starts = [answers], starts if isinstance(starts, list) or starts is None else [starts]
    if not isinstance(answers, list):
        raise TypeError("`answers` are no list")
    if any(isinstance(answer, dict) for answer in answers):
        answers, starts = [answer["text"] for answer in answers], [answer.get("answer_start") for answer in answers]
    starts = [None] * len(answers) if starts is None else starts
    if len(starts) != len(answers):
        raise ValueError(f"{len(answers)} answers have {len(starts)} starts")
    return [(_text(text), None if start is None else int(start)) for text, start in zip(answers, starts, strict=True)]


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, dict | list):
        raise TypeError("a list or an object stands in the place of a text")
    return whole_characters(str(value))
