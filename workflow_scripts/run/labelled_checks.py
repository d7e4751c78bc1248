"""labelled_checks: checks of the configuration's labelled text: sources, columns, labels, tags, grades, targets and questions."""

import itertools
from collections.abc import Iterator

import regex

from workflow_scripts.names import is_name, undefined
from workflow_scripts.run.text_checks import json_line_problems, language_problems, or_held_out, same_text_problems, testset_problems
from workflow_scripts.run.uses import sources_of
from workflow_scripts.text import squad
from workflow_scripts.text.examples import TEXT_COLUMNS, WORD_COLUMNS
from workflow_scripts.text.files import kind_of
from workflow_scripts.text.labelled import Labelled
from workflow_scripts.text.labelled_source import LabelledSource
from workflow_scripts.text.tag_columns import CONLLU
from workflow_scripts.text.tagged import has_spans
from workflow_scripts.text.targets import TARGET_COLUMNS


def labelled_problems(where: str, labelled: Labelled, number_tasks: bool = False) -> Iterator[str]:
    """Every line tells a problem of the sources, columns, labels or test sets of labelled text.

    `number_tasks`: whether all tasks that read it take any number as a label, so that it needs no list of them.
    """
    yield from _translator_problems(where, labelled)
    for part, source in sources_of(labelled).items():
        yield from _language_of_part_problems(where, part, source, labelled)
        yield from _file_of_part_problems(where, part, source, labelled)
        yield from _relevance_problems(f"{where}.{part}", source, labelled.unit)
        yield from _needed_column_problems(f"{where}.{part}", source, labelled.unit)
        yield from _unit_problems(f"{where}.{part}", source, labelled)
        yield from _label_pattern_problems(f"{where}.{part}", source)
    if labelled.lowercase and labelled.unit != "target":
        yield f"{where}.lowercase: is for `unit: target`"
    if not (number_tasks and labelled.any_number):
        yield from _label_problems(where, labelled)
    yield from testset_problems(where, labelled, "average")
    yield from same_text_problems(where, labelled)
    yield from _lacking_pair_problems(where, labelled)


def _lacking_pair_problems(where: str, labelled: Labelled) -> Iterator[str]:
    """Either all texts are pairs, or none is: a model reads the two in different forms."""
    given = {part: source for part, source in sources_of(labelled).items() if source.columns} if labelled.unit == "text" else {}
    paired = [part for part, source in given.items() if "pair" in source.columns]
    for part in given if paired else ():
        if part not in paired:
            yield f"{where}.{part}.columns: have no `pair`, but those of `{paired[0]}` have; give it in all of them, or in none"


def _translator_problems(where: str, labelled: Labelled) -> Iterator[str]:
    """Only translations can be made by a model, and those that are have no file."""
    held_out = {f"{kind}.{name}": source for kind in ("test", "more_dev") for name, source in getattr(labelled, kind).items()}
    for part, source in {"train": labelled.train, "dev": labelled.dev, **held_out}.items():
        if source.by:
            yield f"{where}.{part}.by: is for `translations`; give a file"
    for name, source in labelled.translations.items():
        if source.by and source.file:
            yield f"{where}.translations.{name}: has a `file` and a model that is to make it (`by`); give one of them"


def _language_of_part_problems(where: str, part: str, source: LabelledSource, labelled: Labelled) -> Iterator[str]:
    """Training and dev text are in the language of the whole; `translations` and `more_dev` are each in another."""
    code = labelled.language_of(part.replace(".", "/", 1))
    yield from language_problems(f"{where}.{part}.language", code)
    if not part.startswith(("train", "dev", "test.")) and (code == labelled.language or not is_name(part.partition(".")[2])):
        yield f"{where}.{part}: is text in another language than {labelled.language!r}, named by letters, digits, - and _"
    if part in ("train", "dev") and source.language not in (None, labelled.language):
        other = f"{where}.{part}.language: {source.language!r} is not {labelled.language!r}"
        yield f"{other}; only test sets, `translations` and `more_dev` may be in another language"
    if part == "dev" and source.target_language not in (None, labelled.language_of_targets("train")):
        yield f"{where}.dev.target_language: {source.target_language!r} is not {labelled.language_of_targets('train')!r}, that of `train`"


def _file_of_part_problems(where: str, part: str, source: LabelledSource, labelled: Labelled) -> Iterator[str]:
    """A part needs a file, unless it is a dev or test set that is held out from training text in its own language."""
    if not source.file and (part == "train" or source.held_out is None):
        yield f"{where}.{part}: give a `file` with `columns`" + or_held_out(part)
    if part.startswith(("train", "translations.")) and source.held_out is not None:
        yield f"{where}.{part}.held_out: is for dev and test sets"
    if not source.file and labelled.language_of(part.replace(".", "/", 1)) != labelled.language:
        yield f"{where}.{part}: without a file it is held out from the training text, which is in {labelled.language!r}"


def _relevance_problems(where: str, source: LabelledSource, unit: str) -> Iterator[str]:
    """Files of queries and documents are for ranking, and come with a file that says which are relevant."""
    if _is_judged(source, unit) and not (source.file and source.queries and source.documents and not source.columns):
        yield (
            f"{where}: give `file`, `queries` and `documents` (TREC's qrels or XQuAD-R's answers), or a `file` with `columns` (XGLUE's WPR)"
        )
    if _is_judged(source, unit):
        yield from json_line_problems(where, source, ("file", "queries", "documents"), "TSV files")
    if unit != "query" and (source.queries or source.documents):
        yield f"{where}: `queries` and `documents` are for `unit: query`"


def _is_judged(source: LabelledSource, unit: str) -> bool:
    """Whether judgements of relevance stand in a file apart from the texts that they are about."""
    return unit == "query" and bool(source.queries or source.documents)


def _needed_column_problems(where: str, source: LabelledSource, unit: str) -> Iterator[str]:
    """Columns must say all that the unit needs, and nothing that it does not know."""
    if source.file and not _is_judged(source, unit) and (missing := _needed_columns(source, unit) - source.columns.keys()):
        said = f"they have {source.columns}" if source.columns else "a part with a file of its own takes over no columns of another part"
        yield f"{where}.columns: say nothing about {' and '.join(sorted(missing))}; {said}"
    yield from _shared_column_problems(where, source)
    known = {"word": WORD_COLUMNS, "target": TARGET_COLUMNS, "question": squad.COLUMNS}.get(unit, TEXT_COLUMNS)
    for key in source.columns:
        yield from undefined(f"{where}.columns", key, known)


def _shared_column_problems(where: str, source: LabelledSource) -> Iterator[str]:
    """What is read must not be what is to be found; a `label_pattern` may find the label in the text."""
    apart = ("text", "pair", "target", *(() if source.label_pattern else ("label",)))
    for one, other in itertools.combinations([name for name in apart if name in source.columns], 2):
        if source.columns[one] == source.columns[other]:
            yield f"{where}.columns: {one} and {other} are both read from {source.columns[one]!r}; give each a column of its own"
    for side, columns in source.columns.items():
        if isinstance(columns, list) and source.columns.get("label") in columns:
            label = source.columns["label"]
            yield f"{where}.columns.{side}: has the column of the label, {label!r}, which would be read off the text; leave it out"


def _needed_columns(source: LabelledSource, unit: str) -> set[str]:
    """The columns that must be given of a file of this unit; formats that name their own fields need none."""
    if unit == "word":
        return set()
    if unit == "question":
        return set() if kind_of(source.file or "") in (".json", ".jsonl") else set(squad.NEEDED)
    if unit in ("text", "query"):
        return {"text", "label"} | ({"pair"} if unit == "query" else set())
    if source.targets or kind_of(source.file or "") == ".json":
        return set()
    if "heading" in source.columns:
        return {"text", "document"}
    return {"text", "target", "document"} if source.target_where else {"text", "target"}


def _unit_problems(where: str, source: LabelledSource, labelled: Labelled) -> Iterator[str]:
    """Some settings are for one unit only."""
    if labelled.unit == "question":
        yield from _question_problems(where, source)
    if labelled.unit == "target":
        yield from _target_problems(where, source, labelled)
    else:
        yield from _useless_problems(where, source, ("targets", "target_where", "target_language"), "`unit: target`")
    if source.empty != "refuse" and (labelled.unit == "word" or _is_judged(source, labelled.unit)):
        yield f"{where}.empty: is for `unit: text`, `question` and `target`, and for `unit: query` with `columns`"
    if source.lost_answers == "by_text" and not (labelled.unit == "question" and where.split(".")[2:3] == ["test"]):
        yield f"{where}.lost_answers: `by_text` is for test sets of questions; other text needs the place of the answer: leave_out"
    if source.quoted and (
        labelled.unit == "word" or kind_of(source.file or "") in (".json", ".jsonl") or _is_judged(source, labelled.unit)
    ):
        yield f"{where}.quoted: is for TSV files with `columns`"
    if _is_judged(source, labelled.unit):
        yield from _useless_problems(where, source, ("where", "label_pattern"), "a file with `columns`; of judgements all lines are read")
    if kind_of(source.file or "") == ".json" and (other := source.where.keys() - {"id"}):
        yield f"{where}.where: asks for {', '.join(sorted(other))}, but a JSON file can only be asked for `id`, the part of ids before a -"
    if labelled.unit == "word":
        what = "`unit: text`; files of words with tags have only `columns`, `header` and `label_names`"
        yield from _useless_problems(where, source, ("where", "label_pattern"), what)
        if kind_of(source.file or "") in (".jsonl", *CONLLU):
            yield from _useless_problems(where, source, ("header",), "files in columns whose first line names them")


def _useless_problems(where: str, source: LabelledSource, keys: tuple[str, ...], what: str) -> Iterator[str]:
    """None of the `keys` may be set, because they are for `what`."""
    for key in keys:
        if getattr(source, key):
            yield f"{where}.{key}: is for {what}"


def _question_problems(where: str, source: LabelledSource) -> Iterator[str]:
    """Questions have no labels, each column once, and come from tables or from SQuAD's JSON."""
    yield from _useless_problems(where, source, ("label_pattern", "label_names"), "labels, which questions have none of")
    yield from _single_column_problems(where, source, "question")


def _target_problems(where: str, source: LabelledSource, labelled: Labelled) -> Iterator[str]:
    """Targets are texts in a known language instead of labels, and come from columns or from a file of their own."""
    yield from _useless_problems(where, source, ("label_pattern", "label_names"), "text with labels; `unit: target` has none")
    yield from language_problems(f"{where}.target_language", source.target_language or labelled.target_language or labelled.language)
    yield from _single_column_problems(where, source, "target")
    if source.targets and not source.file:
        yield f"{where}.targets: has the targets for the lines of `file`, which is missing"
    if source.targets and source.targets == source.file:
        yield f"{where}.targets: is {source.file}, the file of the texts; name the file with what is to be written"
    if source.targets and source.columns:
        yield f"{where}.columns: is for one file with texts and targets; with `targets`, each line is a text or a target as a whole"
    if source.targets or "heading" in source.columns:
        what = "files with a text and its target in `columns`; of texts with a file of targets, and of sections, all lines are read"
        yield from _useless_problems(where, source, ("header", "quoted", "where", "target_where"), what)


def _single_column_problems(where: str, source: LabelledSource, unit: str) -> Iterator[str]:
    """Only the text of labels may be joined from several columns."""
    if several := [key for key, column in source.columns.items() if isinstance(column, list)]:
        yield f"{where}.columns.{several[0]}: is one column with `unit: {unit}`, got {source.columns[several[0]]}"


def _label_pattern_problems(where: str, source: LabelledSource) -> Iterator[str]:
    """A pattern of labels must be a regular expression in which a group is the label."""
    try:
        groups = regex.compile(source.label_pattern or "()").groups
    except regex.error as error:
        yield f"{where}.label_pattern: {source.label_pattern!r} is no regular expression: {error}"
    else:
        if not groups:
            yield f"{where}.label_pattern: {source.label_pattern!r} needs a group that is the label, e.g. ^text/(\\w+)/"


def _label_problems(where: str, labelled: Labelled) -> Iterator[str]:
    """Labels must be different, at least two, and such as the unit has; targets and questions have none."""
    answers = {"target": "texts", "question": "spans of the passage"}.get(labelled.unit)
    if answers and labelled.labels:
        yield f"{where}.labels: `unit: {labelled.unit}` has none; the answers are {answers}"
    if answers:
        return
    if labelled.any_number:
        whose = "only plugins' tasks whose labels are numbers (`kind=float` and a `width`) read text without a list"
        yield f"{where}.labels: list at least two different labels; {whose}"
    elif len({*labelled.labels}) < len(labelled.labels) or len(labelled.labels) < 2 or not all(map(str.strip, labelled.labels)):
        yield f"{where}.labels: {labelled.labels} must be at least two different labels"
    if labelled.unit == "word":
        yield from _tag_problems(where, labelled)
    for label in labelled.labels if labelled.unit == "query" else ():
        if not _is_grade(label):
            yield f"{where}.labels: {label!r} is no grade; a grade is a number from 0, the greater the better"


def _tag_problems(where: str, labelled: Labelled) -> Iterator[str]:
    """Tags have no blanks, and tags of spans follow IOB2."""
    for tag in labelled.labels:
        if " " in tag:
            yield f"{where}.labels: {tag!r} has a blank in it, which separates tags"
        if tag.startswith("I-") and f"B-{tag[2:]}" not in labelled.labels:
            yield f"{where}.labels: {tag} is there, but not B-{tag[2:]}, with which a span begins in IOB2"
        if tag.startswith(("S-", "E-", "U-", "L-")) and has_spans(labelled.labels):
            yield f"{where}.labels: {tag} is of BIOES or BILOU; name the tags of IOB2 (O, B-…, I-…), into which files are converted"


def _is_grade(label: str) -> bool:
    """Whether a label is a number that says how relevant a document is."""
    try:
        return 0 <= float(label) < float("inf")
    except ValueError:
        return False
