"""targets: readers of texts with target texts, for generation: passages with questions, articles with titles, openings with stories.

Formats, which follow from file names and settings:

- two files with a text and its target on the same line, as in XGLUE's QG and NTG (`targets`);
- SQuAD's JSON, as in SQuAD, XQuAD, MLQA and TyDiQA-GoldP: a passage (or its sentence) with a marked answer, and the question;
- a TSV file whose lines are parts of sections under headings (`columns.heading`): a section, and its heading;
- TSV and JSONL files with a text and a target in each line, or in lines of two languages with the same document (`target_where`).
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import regex

from workflow_scripts.stage import InputError
from workflow_scripts.text.entities import read_entities
from workflow_scripts.text.files import NOT_ASKED_FOR, asked_for, is_asked_for, json_rows, kind_of, lockstep, table_rows, with_where
from workflow_scripts.text.labelled_source import LabelledSource
from workflow_scripts.text.parallel import block_of, clean_text, dig_name, dig_text, groups, rows
from workflow_scripts.text.questions import read_questions
from workflow_scripts.text.words import sentences

TARGET_COLUMNS = ("text", "target", "document", "heading")
"""The keys that `columns` may have."""
MARKS = ("[[", "]]")
"""What stands around the answer that a question is to ask for."""


class Targeted(NamedTuple):
    """A text with its target, and the document and line (or place in the file) that it comes from."""

    text: str
    target: str
    document: str
    line: int
    key: str = ""
    """The id of a question in its file."""


def read_targets(source: LabelledSource, removed: Counter[str], changed: Counter[str]) -> Iterator[Targeted]:
    """Yield the texts of a file with their targets, in order; count in `removed` and `changed` what was done and why.

    Raises:
        InputError: Names file and line (or the question's id) for a text or target without words, a missing column, files of
            different lengths, an answer that is not where it is said to be, two targets for one document, and broken JSON.
    """
    path = Path(source.file or "")
    is_squad = not source.targets and kind_of(path) == ".json"
    if source.targets:
        pairs = _read_lines(path, Path(source.targets))
    elif is_squad:
        pairs = _read_squad(path, source, removed, changed)
    elif "heading" in source.columns:
        pairs = _read_sections(path, _columns(source), removed)
    else:
        pairs = _read_rows(path, source, removed)
    for pair in pairs:
        if not (pair.text and pair.target):
            if source.empty == "leave_out":
                removed["lacks a text"] += 1
                continue
            what = "target" if pair.text else "text"
            raise InputError(f"{path}, line {pair.line}: the {what} is empty; delete the line, or see that the files and columns are right")
        # questions and passages have been read with their entities as characters, as spans depend on it
        yield pair if is_squad else pair._replace(text=read_entities(pair.text, changed), target=read_entities(pair.target, changed))


def with_marks(text: str, start: int, end: int) -> str:
    """A text with marks around the answer, a span of it."""
    return clean_text(f"{text[:start]} {MARKS[0]} {text[start:end]} {MARKS[1]} {text[end:]}")


_ANY_MARK = regex.compile("|".join(map(regex.escape, MARKS)))


def without_marks(text: str, between: str = " ") -> str:
    """A text without the marks around the answer. `between` stands in their places; nothing does in scripts without blanks."""
    return between.join(" ".join(part.split()) for part in _ANY_MARK.split(text)).strip() if MARKS[0] in text else text


# ---------------------------------------------------------------------------------------------
# formats


def _read_lines(path: Path, targets: Path) -> Iterator[Targeted]:
    for number, text, target in lockstep(path, targets):
        yield Targeted(clean_text(text), clean_text(target), block_of(number), number)


def _read_squad(path: Path, source: LabelledSource, removed: Counter[str], changed: Counter[str]) -> Iterator[Targeted]:
    """A passage with its answer marked, and the question, for each question that has an answer (its first one is taken)."""
    how = source.lost_answers or "refuse", source.empty
    for number, question in enumerate(read_questions(path, {}, False, source.where, removed, changed, *how), 1):
        text = _passage(question.passage, *question.spans[0], source)
        # articles that the same place in another language's file has are the same document
        yield Targeted(clean_text(text), question.text, f"article {question.article}", number, question.key)


def _passage(context: str, start: int, end: int, source: LabelledSource) -> str:
    """The passage, or the sentence of it in which the answer begins, with the answer marked if it is to be."""
    first, last = 0, len(context)
    if source.context == "sentence":
        at = 0
        for sentence in sentences(context):
            at = context.index(sentence, at)
            if at <= start < at + len(sentence):
                # an answer may be longer than what was taken for a sentence
                first, last = at, max(at + len(sentence), end)
            at += len(sentence)
    passage = context[first:last]
    return with_marks(passage, start - first, end - first) if source.mark_answer else passage


def _read_sections(path: Path, columns: dict[str, int | str], removed: Counter[str]) -> Iterator[Targeted]:
    """The lines under each heading of a page, joined, and the heading."""
    for start, group in groups(rows(path, columns), "heading"):
        text = clean_text(" ".join(row["text"] for row in group[1:]))
        if text:
            yield Targeted(text, clean_text(group[0]["text"]), group[0]["document"], start)
        else:
            removed["heading without text"] += 1


def _read_rows(path: Path, source: LabelledSource, removed: Counter[str]) -> Iterator[Targeted]:
    wanted = with_where(_columns(source), (*source.where, *source.target_where))
    table = _json_rows(path, wanted) if kind_of(path) == ".jsonl" else table_rows(path, wanted, source.header, quoted=source.quoted)
    if not source.target_where:
        for place, number, cells in asked_for(table, source.where, removed):
            if (both := _both(cells["text"], cells["target"])) is None:
                removed["no pages"] += 1
            else:
                yield Targeted(*both, cells.get("document") or block_of(place), number)
        return
    read = [(number, cells, cells.get("document", "")) for number, cells in table]
    targets: dict[str, tuple[int, Any]] = {}
    for number, cells, document in read:
        if is_asked_for(cells, source.target_where):
            if document in targets:
                raise InputError(
                    f"{path}, line {number}: document {document!r} has a target in line {targets[document][0]} already; see `target_where`"
                )
            targets[document] = number, cells["target"]
    for number, cells, document in read:
        has_target = is_asked_for(cells, source.target_where)
        # without `where` all other lines are texts
        if not (is_asked_for(cells, source.where) if source.where else not has_target):
            if not has_target:
                removed[NOT_ASKED_FOR] += 1
        elif document in targets:
            if (both := _both(cells["text"], targets[document][1])) is None:
                removed["no pages"] += 1
            else:
                yield Targeted(*both, document, number)
        else:
            removed["no target with this document"] += 1


def _both(text: Any, target: Any) -> tuple[str, str] | None:
    """Two cells as lines; None where one of them is a list in which nothing is, as of a book with one page."""
    lines = _joined(text), _joined(target)
    return None if any(isinstance(cell, list) and not line for cell, line in zip((text, target), lines, strict=True)) else lines


def _joined(cell: Any) -> str:
    """A cell as one line; the parts of a list, such as the pages of a book, are joined."""
    return clean_text(" ".join(str(part) for part in (cell if isinstance(cell, list) else [cell]) if part is not None))


def _columns(source: LabelledSource) -> dict[str, int | str]:
    """The columns that the configuration names; a list of columns, which it refuses for targets, is left out."""
    return {what: column for what, column in source.columns.items() if not isinstance(column, list)}


def _json_rows(path: Path, wanted: dict[str, int | str]) -> Iterator[tuple[int, dict[str, Any]]]:
    def cells_of(row: Any) -> dict[str, Any]:
        return {what: (dig_name if what == "document" else _taken)(row, str(key)) for what, key in wanted.items()}

    return json_rows(path, cells_of, wanted)


_SLICE = regex.compile(r"(.+)\[(\d*):(\d*)\]")


def _taken(row: Any, key: str) -> Any:
    """The value at a key; `pages[:1]` is the first item of the list `pages`, `pages[1:]` are the others."""
    if not (part := _SLICE.fullmatch(key)):
        return dig_text(row, key)
    items = dig_text(row, part[1])
    if not isinstance(items, list):
        raise TypeError(f"{part[1]} is no list")
    return items[slice(*(int(place) if place else None for place in part.groups()[1:]))]
