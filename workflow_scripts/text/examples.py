"""examples: texts with labels, and how they are read from the files of benchmarks.

What has a label (``unit``) decides who reads a file: texts and pairs of texts are read here, words with tags by `tagged`, queries with
graded documents by `graded`, questions on passages by `questions`, and texts with target texts by `targets`.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import regex

from workflow_scripts.stage import InputError
from workflow_scripts.text.entities import read_entities
from workflow_scripts.text.files import asked_for, json_rows, kind_of, read_lines, table_rows, with_where, write_lines
from workflow_scripts.text.graded import numbered_queries, read_judged
from workflow_scripts.text.label_names import number_text, way_out
from workflow_scripts.text.labelled_source import LabelledSource
from workflow_scripts.text.parallel import block_of, clean_text, dig, dig_text
from workflow_scripts.text.questions import read_questions, write_spans
from workflow_scripts.text.tagged import join_words, read_sentences
from workflow_scripts.text.targets import read_targets


class Example(NamedTuple):
    """A text, or a pair of texts, with its label, and the document and line that it comes from.

    With `unit: word`, words and tags; with `unit: question`, a question, its passage, and the spans that answer it; with `unit: target`, a
    text and its target.
    """

    label: str
    text: str
    pair: str
    document: str = ""
    line: int = 0
    query: str = ""
    """The name or number of the query, where documents are ranked."""
    id: str = ""
    """The id of a question, or of one that is a target, in its file; tables do not have it."""

    @property
    def texts(self) -> list[str]:
        """The text, and the second one of a pair."""
        return [self.text, self.pair] if self.pair else [self.text]

    def labels(self, unit: str) -> list[str]:
        """The label of the text, or those of its words."""
        return self.label.split(" ") if unit == "word" else [] if unit in ("question", "target") else [self.label]


TEXT_COLUMNS = ("text", "pair", "label", "document")
"""The keys that `columns` may have."""
WORD_COLUMNS = ("word", "tag")
"""The keys that `columns` may have with `unit: word`."""


def read_any(unit: str, source: LabelledSource, labels: list[str], removed: Counter[str], changed: Counter[str]) -> Iterator[Example]:
    """The examples of a file in order, whatever has a label in it: texts, sentences of words with tags, or documents of queries."""
    if unit == "text":
        yield from _with_characters(read_examples(source, labels, removed), changed)
        return
    if unit == "target":
        for pair in read_targets(source, removed, changed):
            yield Example(pair.target, pair.text, "", pair.document, pair.line, id=pair.key)
        return
    if unit == "question":
        path = Path(source.file or "")
        how = source.lost_answers or "refuse", source.empty, source.quoted
        for q in read_questions(path, source.columns, source.header, source.where, removed, changed, *how):
            yield Example(write_spans(q.spans, q.lost), q.text, q.passage, q.document, q.line, id=q.key)
        return
    if unit == "query":
        yield from _with_characters(read_queries(source, labels, removed, changed), changed)
        return
    columns: dict[str, int | str] = {what: column for what, column in source.columns.items() if not isinstance(column, list)}
    path, code = Path(source.file or ""), source.language or ""
    for sentence in read_sentences(path, columns, labels, source.label_names, code, changed, source.multiword, source.header):
        yield Example(" ".join(sentence.tags), join_words(sentence.words), "", sentence.document, sentence.line)


def _with_characters(examples: Iterator[Example], changed: Counter[str]) -> Iterator[Example]:
    """Examples with the entities of their texts as characters."""
    for example in examples:
        yield example._replace(text=read_entities(example.text, changed), pair=read_entities(example.pair, changed))


def read_queries(source: LabelledSource, labels: list[str], removed: Counter[str], changed: Counter[str]) -> Iterator[Example]:
    """Queries, each with its documents one after the other and their grades; raises as `read_examples` and `graded` do."""
    if source.documents and source.queries:
        files = Path(source.file or ""), Path(source.queries), Path(source.documents)
        for judged in read_judged(*files, source.language or "", source.header):
            grade = _known_label(source.label_names.get(judged.grade, judged.grade), labels, f"{source.file}, line {judged.line}")
            yield Example(grade, judged.query, judged.document, judged.group, judged.line, judged.query_id)
        return
    rows = read_examples(source, labels, removed)
    for row, number in numbered_queries(rows, source.repeated_queries, str(source.file), changed):
        yield row._replace(query=number, document=row.document if "document" in source.columns else number)


def read_examples(source: LabelledSource, labels: list[str], removed: Counter[str]) -> Iterator[Example]:
    """Yield the examples of a file in order.

    Without `labels` each label is a number. Raises `InputError` naming file, line and value for a label outside `labels`, or that is no
    number, an empty text or a missing column.
    """
    pattern = regex.compile(source.label_pattern) if source.label_pattern else None
    path = Path(source.file or "")
    wanted = with_where(source.columns, source.where)
    is_json = kind_of(path) == ".jsonl"
    rows = _json_rows(path, wanted) if is_json else table_rows(path, wanted, source.header, quoted=source.quoted)
    for place, number, cells in asked_for(rows, source.where, removed):
        at = f"{source.file}, line {number}"
        label = str(cells["label"]).strip()
        if pattern:
            if not (match := pattern.search(label)):
                removed["no label"] += 1
                continue
            label = next(filter(None, match.groups()), "")
            for side in ("text", "pair"):
                if side in cells and source.columns[side] == source.columns["label"]:
                    cells[side] = without_label(str(cells[side]).strip(), pattern)
        is_first = number == 1 and not source.header and not is_json
        label = _known_label(source.label_names.get(label, label), labels, at, is_first)
        text, pair = (clean_text(str(cells.get(side, ""))) for side in ("text", "pair"))
        if not text or ("pair" in source.columns and not pair):
            if source.empty == "leave_out":
                removed["lacks a text"] += 1
                continue
            what = "text" if not text else "pair"
            raise InputError(f"{at}: the {what} is empty; delete the line, or see that columns.{what} ({source.columns[what]}) is right")
        yield Example(label, text, pair, str(cells.get("document", "")) or block_of(place), number)


def without_label(text: str, pattern: regex.Pattern[str]) -> str:
    """A text without what the pattern of its label matches, so that nobody reads the label off it. Of a pattern that matches all of the
    text, only the group that is the label is cut out."""

    def rest(match: regex.Match[str]) -> str:
        begin, end = next(match.span(group) for group in range(1, len(match.groups()) + 1) if match[group])
        return f"{text[match.start() : begin]} {text[end : match.end()]}"

    return left if (left := pattern.sub(" ", text).strip()) else pattern.sub(rest, text)


def _known_label(label: str, labels: list[str], at: str, is_first: bool = False) -> str:
    """The label, if it is one of `labels`, or, without these, the number that it is."""
    header = "if the line names the columns, set `header: true`; else " if is_first else ""
    if not labels:
        return number_text(label, at, header)
    if label not in labels:
        raise InputError(f"{at}: the label {label[:60]!r} is none of {', '.join(map(repr, labels))}; {header}{way_out(label, labels)}")
    return label


def _json_rows(path: Path, columns: dict[str, Any]) -> Iterator[tuple[int, dict[str, Any]]]:
    wanted = {what: keys if isinstance(keys, list) else [keys] for what, keys in columns.items()}

    def cell(row: Any, key: str, is_text: bool) -> Any:
        value = dig_text(row, key) if is_text else dig(row, key)
        if is_text and isinstance(value, list):
            raise TypeError(f"{key} is a list, not a text")
        return "" if value is None else value  # `null` is no text

    def cells(row: Any) -> dict[str, Any]:
        dug = {what: [cell(row, str(key), what in ("text", "pair")) for key in keys] for what, keys in wanted.items()}
        return {what: values[0] if len(values) == 1 else " ".join(map(str, values)) for what, values in dug.items()}

    return json_rows(path, cells, wanted)


def write_table(path: Path, examples: Iterable[Example]) -> None:
    """Write the examples of a part, a line each, for `read_table`."""
    write_lines(path, ("\t".join((e.label, e.text, e.pair, *([e.query] if e.query else []))) for e in examples))


def read_table(path: Path, labels: list[str] | None = None, unit: str = "text") -> list[Example]:
    """The examples of a part as `write_table` wrote them. Raises `InputError` for a label that is not in `labels`, if these are given."""
    examples = []
    for number, line in enumerate(read_lines(path), 1):
        label, text, pair, *query = line.split("\t")
        examples.append(Example(label, text, pair, line=number, query="".join(query)))
        for tag in examples[-1].labels(unit) if labels else ():
            _known_label(tag, labels or [], f"{path}, line {number}")
    return examples
