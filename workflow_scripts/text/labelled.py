"""labelled: turns labelled texts of different file formats into tables of one format, for all tasks with labels.

A part is the training text, the dev set or a test set. Each part becomes a table with the columns label, text and second text
(empty unless examples are pairs). A second file has its unique sentences, one per line; the pretext task and vocabularies use them.
Where words have labels (``unit: word``, read by `tagged`), the label column has the tags of the sentence and the text column its words,
separated by blanks. With questions on passages (``unit: question``, read by `questions`), the columns are the spans that answer, the
question and the passage. Which documents are held out depends on their names and the seed only, so that files in several languages that
share documents hold out the same ones.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import regex

from workflow_scripts.limits import Limits, Natural, Seed
from workflow_scripts.stage import InputError, checksums, run, write_json
from workflow_scripts.text.corpus import leak_keys
from workflow_scripts.text.files import read_lines, write_lines
from workflow_scripts.text.parallel import block_of, clean_text, dig
from workflow_scripts.text.questions import read_questions, write_spans
from workflow_scripts.text.tagged import INNER_BLANK, join_words, read_sentences
from workflow_scripts.text.words import number_of_words
from workflow_scripts.text.words import sentences as split_sentences


@dataclass
class LabelledSource:
    """Where labelled text comes from: a TSV, JSONL, CoNLL or CoNLL-U file, or documents held out from the training file."""

    file: str | None = None
    """A TSV or JSONL file; with `unit: word` a file in columns like those of CoNLL, where .conllu is CoNLL-U; with `unit: question` a
    file in SQuAD's JSON, or a TSV file. May end in .gz, .xz or .zst. Without it, the file and the settings below are those of the training
    text."""
    columns: dict[str, int | str] = field(default_factory=dict)
    """Where to find `text`, `label`, and optionally `pair` (the second text) and `document`: column number (from 1, as in `cut -f`), column
    name in the header, or key of a JSON object (`a.b` is key b inside a). With `unit: word`: columns of `word` and `tag`, by default 1 and
    2, in CoNLL-U 2 and 4. With `unit: question`, in TSV files: `question`, `passage`, `answer`, and optionally `start` (of the answer, in
    characters of the passage), `id` and `document`."""
    language: str | None = None
    """Language of a test set; by default that of the training text."""
    header: bool = False
    """The first line of a TSV file names the columns."""
    where: dict[str, str] = field(default_factory=dict)
    """Column → value: only lines with this value are read; for files that hold several languages. In SQuAD's
    JSON `{id: finnish}` reads the questions whose id begins with `finnish-`, as in TyDiQA."""
    label_pattern: str | None = None
    """A regular expression whose first group is the label; lines that it does not match are left out."""
    label_names: dict[str, str] = field(default_factory=dict)
    """Name of a label in this file → its name in `labels`."""
    held_out: Annotated[float, Limits(gt=0, le=0.4)] | None = None
    """Share of documents held out from training. All test sets hold out the same documents, the dev set others."""


@dataclass(kw_only=True)
class Labelled:
    """Labelled texts: training and dev text in one language, test sets in several."""

    language: str
    """The language of training and dev text."""
    labels: list[str] = field(default_factory=list)
    """All labels. With `unit: word` all tags, in IOB2 if they mark spans: O, B-PER, I-PER, … With `unit: question` there are none."""
    train: LabelledSource
    """Training text."""
    dev: LabelledSource
    """Text for early stopping, in the language of the training text."""
    test: dict[str, LabelledSource]
    """Test sets by name."""
    unit: Literal["text", "word", "question"] = "text"
    """What has a label: a text (or a pair of texts), for classification; each word of a sentence, for token labelling; or a question on a
    passage, which a span of the passage answers, for question answering."""
    min_words: Natural = 0
    """Examples with a text (or second text) of fewer words are left out."""
    seed: Seed = 1
    """Decides which documents are held out; all runs of an experiment use the same."""


class Example(NamedTuple):
    """A text, or a pair of texts, with its label, and the document and line that it comes from. With `unit: word`, words and tags; with
    `unit: question`, a question, its passage, and the spans that answer it."""

    label: str
    text: str
    pair: str
    document: str = ""
    line: int = 0

    @property
    def texts(self) -> list[str]:
        """The text, and the second one of a pair."""
        return [self.text, self.pair] if self.pair else [self.text]

    def labels(self, unit: str) -> list[str]:
        """The label of the text, or those of its words; a question has none."""
        if unit == "question":
            return []
        return self.label.split(" ") if unit == "word" else [self.label]


TEXT_COLUMNS = ("text", "pair", "label", "document")
"""The keys that `columns` may have."""
WORD_COLUMNS = ("word", "tag")
"""The keys that `columns` may have with `unit: word`."""


def main(examples: Path, sentences: Path, report: Path, *, part: str, settings: Labelled) -> None:
    """Write one part (``train``, ``dev`` or ``test/NAME``): its examples, their unique sentences, and a report.

    Training text has no example that is also in dev or in a test set of the same language; dev has none that is also in such a test set.
    Of questions it is their passage that must not be there.

    Raises:
        InputError: A file cannot be read, no example is left, or a label has no training example left.
    """
    removed: Counter[str] = Counter()
    changed: Counter[str] = Counter()
    source = _source(settings, part)
    unit = settings.unit
    forbidden = {_key(e, unit) for other in _before(settings, part) for e in chosen(settings, other, Counter())}
    kept = [e for e in chosen(settings, part, removed, changed) if _key(e, unit) not in forbidden or removed.update(["equals dev or test"])]
    counts = Counter(label for example in kept for label in example.labels(unit))
    missing = [label for label in settings.labels if not counts[label]]
    # a rare tag may be missing from little text; a model that never saw a class of texts is no classifier of them
    if not kept or (missing and part == "train" and unit == "text"):
        lacking = f"with the label {', '.join(map(repr, missing))} " if kept else ""
        raise InputError(
            f"{source.file}: no example {lacking}is left for {part!r} (removed: {dict(removed)}); is the file empty, or `labels` too long?"
        )
    write_lines(examples, ("\t".join((e.label, e.text, e.pair)) for e in kept))
    write_lines(sentences, dict.fromkeys(text for e in kept for text in _plain(e, unit)))
    write_json(
        report,
        {
            "part": part,
            "language": source.language,
            "examples": len(kept),
            "labels": {label: counts[label] for label in settings.labels},
            "removed": dict(removed),
            "changed": dict(changed),
            "checksums": checksums([source.file]),
            "source": asdict(source),
        },
    )


def read_table(path: Path, labels: list[str] | None = None, unit: str = "text") -> list[Example]:
    """Read the examples of a part as `main` wrote them. Raises `InputError` for a label that is not in `labels`, if these are given."""
    examples = []
    for number, line in enumerate(read_lines(path), 1):
        label, text, pair = line.split("\t")
        examples.append(Example(label, text, pair, line=number))
        for each in examples[-1].labels(unit) if labels else ():
            _check_label(each, labels or [], f"{path}, line {number}")
    return examples


def paths(settings: Labelled) -> list[str]:
    """The files that all parts are read from."""
    return [source.file for source in (settings.train, settings.dev, *settings.test.values()) if source.file]


# ---------------------------------------------------------------------------------------------
# parts


def chosen(settings: Labelled, part: str, removed: Counter[str], changed: Counter[str] | None = None) -> Iterator[Example]:
    """The examples of a part, including those that other parts have as well. Counts in `removed` and `changed` what was done and why."""
    source = _source(settings, part)
    code = source.language or settings.language
    for example in read_any(settings.unit, source, settings.labels, removed, Counter() if changed is None else changed):
        if not _is_of(settings, part, example.document):
            removed["document of another part"] += 1
        elif settings.min_words and any(number_of_words(text, code) < settings.min_words for text in example.texts):
            removed["too short"] += 1
        else:
            yield example


def _source(settings: Labelled, part: str) -> LabelledSource:
    """Where a part comes from. A part without a file of its own has the training source, with its own `held_out`."""
    source = {"train": settings.train, "dev": settings.dev}.get(part) or settings.test[part.removeprefix("test/")]
    given = asdict(source if source.file else settings.train)
    return LabelledSource(**{**given, "language": source.language or settings.language, "held_out": source.held_out})


def _before(settings: Labelled, part: str) -> list[str]:
    """The parts of the same language with which this part must not share examples."""
    tests = [f"test/{name}" for name, source in settings.test.items() if source.language in (None, settings.language)]
    return {"train": ["dev", *tests], "dev": tests}.get(part, [])


def _is_of(settings: Labelled, part: str, document: str) -> bool:
    """Whether a document belongs to a part.

    Documents are ordered by a hash of their names: test sets have the first ones, dev the last ones, training those between.
    """
    digest = hashlib.blake2b(f"{settings.seed}\t{document}".encode(), digest_size=8).digest()
    place = int.from_bytes(digest) / 2**64
    tests = max((source.held_out or 0.0 for source in settings.test.values()), default=0.0)
    if part == "train":
        return tests <= place < 1 - (settings.dev.held_out or 0.0)
    own = _source(settings, part).held_out
    if own is None:
        return True
    return place >= 1 - own if part == "dev" else place < own


def _key(example: Example, unit: str) -> tuple[str, ...]:
    """What of an example must not be in two parts."""
    return tuple(leak_keys([example.pair] if unit == "question" else example.texts))


def _plain(example: Example, unit: str) -> list[str]:
    """The sentences of an example."""
    if unit == "question":
        return [example.text, *split_sentences(example.pair)]
    return [text.replace(INNER_BLANK, " ") for text in example.texts] if unit == "word" else example.texts


# ---------------------------------------------------------------------------------------------
# reading


def read_any(unit: str, source: LabelledSource, labels: list[str], removed: Counter[str], changed: Counter[str]) -> Iterator[Example]:
    """The examples of a file in order, whatever has a label in it: `read_examples`, sentences of words with tags, or questions."""
    if unit == "text":
        yield from read_examples(source, labels, removed)
        return
    if unit == "question":
        for asked in read_questions(Path(source.file or ""), source.columns, source.header, source.where, removed, changed):
            yield Example(write_spans(asked.spans), asked.text, asked.passage, asked.document, asked.line)
        return
    for one in read_sentences(Path(source.file or ""), source.columns, labels, source.label_names, source.language or "", changed):
        yield Example(" ".join(one.tags), join_words(one.words), "", one.document, one.line)


def read_examples(source: LabelledSource, labels: list[str], removed: Counter[str]) -> Iterator[Example]:
    """Yield the examples of a file in order.

    Raises `InputError` naming file, line and value for a label outside `labels`, an empty text or a missing column.
    """
    pattern = regex.compile(source.label_pattern) if source.label_pattern else None
    path = Path(source.file or "")
    is_json = ".jsonl" in path.name or ".ndjson" in path.name
    for number, cells in (_json_rows if is_json else _tsv_rows)(source):
        at = f"{source.file}, line {number}"
        if any(str(cells[_where(key)]) != value for key, value in source.where.items()):
            removed["not asked for (where)"] += 1
            continue
        label = str(cells["label"]).strip()
        if pattern:
            if not (found := pattern.search(label)):
                removed["no label"] += 1
                continue
            label = found[1]
        label = source.label_names.get(label, label)
        _check_label(label, labels, at, header=number == 1 and not source.header)
        text, pair = clean_text(str(cells["text"])), clean_text(str(cells.get("pair", "")))
        if not text or ("pair" in source.columns and not pair):
            what = "text" if not text else "pair"
            raise InputError(f"{at}: the {what} is empty; delete the line, or see that columns.{what} ({source.columns[what]}) is right")
        yield Example(label, text, pair, str(cells.get("document", block_of(number))), number)


def _check_label(label: str, labels: list[str], at: str, header: bool = False) -> None:
    if label not in labels:
        way = (
            "if the line names the columns, set `header: true`; else add"
            if header
            else "correct it, translate it with `label_names`, or add"
        )
        raise InputError(f"{at}: the label {label[:60]!r} is none of {', '.join(map(repr, labels))}; {way} it to `labels`")


def _where(key: str) -> str:
    """The name of a `where` column; `columns` cannot have an entry of this name."""
    return f"where {key}"


def _tsv_rows(source: LabelledSource) -> Iterator[tuple[int, dict[str, str]]]:
    """Line number, and for each name of `columns` and `where` its cell."""
    wanted = {**source.columns, **{_where(key): key for key in source.where}}
    places: dict[str, int] = {}
    for number, line in enumerate(read_lines(Path(source.file or "")), 1):
        cells = line.split("\t")
        if not places:
            names = {name: place for place, name in enumerate(cells)} if source.header else {}
            for what, column in wanted.items():
                place = int(column) - 1 if str(column).isdigit() else names.get(str(column), -1)
                if place < 0:
                    known = f"the header has {', '.join(cells)}" if source.header else "without `header: true` columns are numbers from 1"
                    raise InputError(f"{source.file}, line 1: there is no column {column!r} for {what!r}; {known}")
                places[what] = place
            if source.header:
                continue
        if len(cells) <= max(places.values()):
            column = max(places.values()) + 1
            raise InputError(f"{source.file}, line {number}: {len(cells)} column(s), but `columns` asks for column {column}: {line[:80]!r}")
        yield number, {what: cells[place] for what, place in places.items()}


def _json_rows(source: LabelledSource) -> Iterator[tuple[int, dict[str, Any]]]:
    wanted = {**source.columns, **{_where(key): key for key in source.where}}
    for number, line in enumerate(read_lines(Path(source.file or "")), 1):
        try:
            row = json.loads(line)
            yield number, {what: dig(row, key) for what, key in wanted.items()}
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise InputError(f"{source.file}, line {number}: not a JSON object with {wanted} ({error}): {line[:80]!r}") from None


if __name__ == "__main__":
    run(main)
