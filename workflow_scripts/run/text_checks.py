"""text_checks: checks of the configuration's text: data to acquire, corpora, labelled and aligned text.

As in `consistency`, each problem is a line that names the key, what is wrong with it, and what would be right.
"""

from collections.abc import Iterator
from pathlib import Path

import regex

from workflow_scripts.names import is_name, undefined
from workflow_scripts.run.config import Config, sources_of
from workflow_scripts.stage import InputError
from workflow_scripts.text import questions
from workflow_scripts.text.acquisition import ORIGINS, languages_of
from workflow_scripts.text.aligned import Aligned
from workflow_scripts.text.corpus import Corpus
from workflow_scripts.text.examples import TEXT_COLUMNS, WORD_COLUMNS, LabelledSource
from workflow_scripts.text.labelled import Labelled
from workflow_scripts.text.languages import language
from workflow_scripts.text.parallel import Source
from workflow_scripts.text.tagged import has_spans
from workflow_scripts.text.targets import TARGET_COLUMNS


def data_problems(config: Config) -> Iterator[str]:
    """Problems of the data to acquire. If there are any, the files that the data stand for are unknown."""
    for name, corpus in config.corpora.items():
        for part, source in sources_of(corpus).items():
            if source.data:
                yield from undefined(f"corpora.{name}.{part}.data", source.data, config.data)
                if source.file or source.files or source.held_out:
                    yield f"corpora.{name}.{part}: `data` takes the place of `file`, `files` and `held_out`; give one of them"
    for name, data in config.data.items():
        where = f"data.{name}"
        given = [origin for origin in ORIGINS if getattr(data, origin)]
        if not is_name(name):
            yield f"{where}: names are files: letters, digits, - and _ only"
        if len(given) != 1:
            yield f"{where}: needs one origin of {', '.join(ORIGINS)}; it has {' and '.join(given) or 'none'}"
            continue
        if given[0] != "url" and (data.member or data.lines):
            yield f"{where}: member and lines are for `url`"
        if data.lines and data.member:
            yield f"{where}.lines: cannot be taken from an archive's member"
        if given[0] in ("mtdata", "sacrebleu", "join") and not data.languages:
            yield f"{where}.languages: is missing; {given[0]} gives parallel text"
        if given[0] in ("huggingface", "debian") and data.languages:
            yield f"{where}.languages: {given[0]} takes none"
        if data.debian and len(data.debian.packages) != 2:
            yield f"{where}.debian.packages: names the packages of two languages, got {data.debian.packages}"
        for key in ("url", "member"):
            sides = getattr(data, key)
            if isinstance(sides, dict) and sorted(sides) != sorted(data.languages or ()):
                yield f"{where}.{key}: is given for {', '.join(sides)}; `languages` are {list(data.languages or ())}"
        if isinstance(data.sha256, dict) and not (isinstance(data.url, dict) and data.sha256.keys() <= data.url.keys()):
            yield f"{where}.sha256: a checksum for each language needs a `url` for each"
        if isinstance(data.url, dict) and isinstance(data.sha256, str):
            yield f"{where}.sha256: needs one for each of {', '.join(data.url)}"
        for checksum in data.sha256.values() if isinstance(data.sha256, dict) else [data.sha256 or "0" * 64]:
            if len(checksum) != 64 or set(checksum.lower()) - set("0123456789abcdef"):
                yield f"{where}.sha256: {checksum!r} is no SHA-256, which has 64 hexadecimal digits"
        for code in languages_of(data) or ():
            try:
                language(code)
            except InputError as error:
                yield f"{where}: {error}"
        for other in data.join:
            yield from undefined(f"{where}.join", other, config.data)
            if other in config.data and (config.data[other].join or languages_of(config.data[other]) != data.languages):
                yield f"{where}.join: {other!r} must be parallel text in {list(data.languages or ())}, and not joined itself"


def _twice(where: str, corpus: Corpus | Labelled) -> Iterator[str]:
    """Dev and test sets that are the training text itself, and dev sets that are a test set."""
    parts = {part: source for part, source in sources_of(corpus).items() if part in ("train", "dev") or part.startswith("test.")}
    for part, source in parts.items():
        others = [*(["train"] if part != "train" else []), *([name for name in parts if name.startswith("test.")] if part == "dev" else [])]
        for other in others if source.paths() else ():
            if source == parts[other]:
                yield f"{where}.{part}: is the same text as `{other}`; give another file" + ("" if part == "train" else ", or `held_out`")


def _test_problems(where: str, corpus: Corpus | Labelled | Aligned, taken: str):
    """What is wrong with the names of test sets, none of which may be `taken`."""
    if not corpus.test:
        yield f"{where}.test: names no test set"
    for name in corpus.test:
        if name == taken or not is_name(name):
            yield f"{where}.test.{name}: a test set cannot be called {taken}, and its name has letters, digits, - and _ only"


def corpus_problems(where: str, corpus: Corpus) -> Iterator[str]:
    """Languages, sources, documents and test sets of a corpus."""
    for code in corpus.languages:
        try:
            language(code)
        except InputError as error:
            yield f"{where}.languages: {error}"
    if corpus.languages[0] == corpus.languages[1]:
        yield f"{where}.languages: {list(corpus.languages)} is one language twice"
    yield from _test_problems(where, corpus, "dev")
    yield from _twice(where, corpus)
    for part, source in sources_of(corpus).items():
        kinds = [bool(source.file), bool(source.files), source.held_out is not None]
        if sum(kinds) > 1:
            given = " and ".join(f"`{key}`" for key, there in zip(("file", "files", "held_out"), kinds, strict=True) if there)
            yield (
                f"{where}.{part}: has {given}, where one belongs; a recipe keeps the keys of what it is laid over: set the other to null, "
                "or give the corpus a name of its own"
            )
        elif not any(kinds) or (part == "train" and kinds[2]):
            yield f"{where}.{part}: give either `file` with `columns`, `files`, or `data`" + ("" if part == "train" else ", or `held_out`")
        columns = source.columns if source.format else source.files or source.columns
        if sum(kinds[:2]) != 1:
            continue
        if missing := [code for code in corpus.languages if code not in columns]:
            example = f"; for example those of `train`, {dict(corpus.train.columns)}" if source.file and part != "train" else ""
            given = f"it has {dict(columns)}" if columns else f"give `columns`{example}"
            yield f"{where}.{part}: nothing is said about {', '.join(missing)}; {given}"
        elif columns[corpus.languages[0]] == columns[corpus.languages[1]]:
            yield f"{where}.{part}: both languages are read from {columns[corpus.languages[0]]!r}; a text cannot be its own translation"
        elif twice := [name for name in ("document", "heading") if columns.get(name) in [columns[code] for code in corpus.languages]]:
            yield (
                f"{where}.{part}: {twice[0]} is column {columns[twice[0]]!r}, from which a language is read; a recipe keeps the keys of "
                f"what it is laid over: set {twice[0]} to null, or give the corpus a name of its own"
            )
        extra = ["document", *(["heading"] if source.summary == "heading" else [])] if source.columns else []
        if unknown := columns.keys() - {*corpus.languages, *extra}:
            yield f"{where}.{part}: {', '.join(sorted(unknown))} is no language of the corpus" + "".join(f" nor `{name}`" for name in extra)
        yield from _source_problems(f"{where}.{part}", source, corpus)
    if (documents := corpus.documents) and (unknown := {documents.language, *documents.cut} - {*corpus.languages}):
        yield f"{where}.documents: {', '.join(sorted(unknown))} is no language of the corpus, {list(corpus.languages)}"


def _source_problems(where: str, source: Source, corpus: Corpus):
    """What documents need of a source."""
    if (source.summary or source.format) and not corpus.documents:
        yield f"{where}: {'summary' if source.summary else 'format ncls'} is for a corpus with `documents`"
    if source.summary and (source.format or not source.file or ".jsonl" in source.file or ".ndjson" in source.file):
        yield f"{where}.summary: is for a TSV file"
    if source.format and source.files and (missing := [code for code in corpus.languages if code not in source.files]):
        yield f"{where}.files: names none for {', '.join(missing)}"
    wanted = {"first": ["document"], "heading": ["document", "heading"]}.get(source.summary or "", [])
    if missing := [name for name in wanted if name not in source.columns]:
        yield f"{where}.columns: summary {source.summary} needs {' and '.join(f'`{name}`' for name in missing)}"


def labelled_problems(where: str, labelled: Labelled) -> Iterator[str]:
    """Sources, columns, labels and test sets of labelled text."""
    given = {f"{kind}.{name}": source for kind in ("test", "more_dev") for name, source in getattr(labelled, kind).items()}
    for part, source in {"train": labelled.train, "dev": labelled.dev, **given}.items():
        if source.by:
            yield f"{where}.{part}.by: is for `translations`; give a file"
    for name, source in labelled.translations.items():
        if source.by and source.file:
            yield f"{where}.translations.{name}: has a `file` and a model that is to make it (`by`); give one of them"
    for part, source in sources_of(labelled).items():
        code, of_text = labelled.language_of(part.replace(".", "/", 1)), part in ("train", "dev")
        try:
            language(code)
        except InputError as error:
            yield f"{where}.{part}.language: {error}"
        if not part.startswith(("train", "dev", "test.")) and (code == labelled.language or not is_name(part.partition(".")[2])):
            yield f"{where}.{part}: is text in another language than {labelled.language!r}, named by letters, digits, - and _"
        if of_text and source.language not in (None, labelled.language):
            other = f"{where}.{part}.language: {source.language!r} is not {labelled.language!r}"
            yield f"{other}; only test sets, `translations` and `more_dev` may be in another language"
        if not source.file and (part == "train" or source.held_out is None):
            yield f"{where}.{part}: give a `file` with `columns`" + ("" if part == "train" else ", or `held_out`")
        if part.startswith(("train", "translations.")) and source.held_out is not None:
            yield f"{where}.{part}.held_out: is for dev and test sets"
        if not source.file and code != labelled.language:
            yield f"{where}.{part}: without a file it is held out from the training text, which is in {labelled.language!r}"
        words = labelled.unit == "word"
        judged = labelled.unit == "query" and bool(source.queries or source.documents)
        if judged and not (source.file and source.queries and source.documents and not source.columns):
            yield (
                f"{where}.{part}: give `file`, `queries` and `documents` (TREC's qrels or XQuAD-R's answers), "
                "or a `file` with `columns` (XGLUE's WPR)"
            )
        if labelled.unit != "query" and (source.queries or source.documents):
            yield f"{where}.{part}: `queries` and `documents` are for `unit: query`"
        if source.file and not judged and (missing := _needed_columns(source, labelled.unit) - source.columns.keys()):
            yield f"{where}.{part}.columns: say nothing about {' and '.join(sorted(missing))}; they have {source.columns}"
        known = {"word": WORD_COLUMNS, "target": TARGET_COLUMNS, "question": questions.COLUMNS}.get(labelled.unit, TEXT_COLUMNS)
        for key in source.columns:
            yield from undefined(f"{where}.{part}.columns", key, dict.fromkeys(known))
        yield from _question_problems(f"{where}.{part}", source) if labelled.unit == "question" else ()
        yield from _target_problems(f"{where}.{part}", source, labelled)
        for key in ("header", "where", "label_pattern") if words else ():
            if getattr(source, key):
                yield f"{where}.{part}.{key}: is for `unit: text`; files of words with tags have only `columns` and `label_names`"
        try:
            groups = regex.compile(source.label_pattern or "()").groups
        except regex.error as error:
            yield f"{where}.{part}.label_pattern: {source.label_pattern!r} is no regular expression: {error}"
        else:
            if not groups:
                yield f"{where}.{part}.label_pattern: {source.label_pattern!r} needs a group that is the label, e.g. ^text/(\\w+)/"
    without = {"target": "texts", "question": "spans of the passage"}
    if labelled.unit in without and labelled.labels:
        yield f"{where}.labels: `unit: {labelled.unit}` has none; the answers are {without[labelled.unit]}"
    elif labelled.unit in without:
        pass
    elif len({*labelled.labels}) < len(labelled.labels) or len(labelled.labels) < 2 or not all(map(str.strip, labelled.labels)):
        yield f"{where}.labels: {labelled.labels} must be at least two different labels"
    yield from _tag_problems(where, labelled) if labelled.unit == "word" else ()
    for label in labelled.labels if labelled.unit == "query" else ():
        if not _is_grade(label):
            yield f"{where}.labels: {label!r} is no grade; a grade is a number from 0, the greater the better"
    yield from _test_problems(where, labelled, "average")
    yield from _twice(where, labelled)


def _needed_columns(source: LabelledSource, unit: str) -> set[str]:
    """What `columns` must say of a file."""
    if unit == "word":
        return set()
    if unit == "question":
        return set() if ".json" in Path(source.file or "").suffixes else set(questions.NEEDED)
    if unit in ("text", "query"):
        return {"text", "label"} | ({"pair"} if unit == "query" else set())
    if source.targets or (source.file or "").removesuffix(".gz").removesuffix(".xz").endswith(".json"):
        return set()
    if "heading" in source.columns:
        return {"text", "document"}
    return {"text", "target", "document"} if source.target_where else {"text", "target"}


def _question_problems(where: str, source: LabelledSource):
    """Settings of labels, which questions have none of, and of tables, where the file is JSON."""
    for key in ("label_pattern", "label_names"):
        if getattr(source, key):
            yield f"{where}.{key}: is for labels, which questions have none of"
    if source.file and ".json" in Path(source.file).suffixes and (other := source.where.keys() - {"id"}):
        yield f"{where}.where: asks for {', '.join(sorted(other))}, but a JSON file can only be asked for `id`, the part of ids before a -"
    if several := [key for key, column in source.columns.items() if isinstance(column, list)]:
        yield f"{where}.columns.{several[0]}: is one column with `unit: question`, got {source.columns[several[0]]}"


def _target_problems(where: str, source: LabelledSource, labelled: Labelled):
    """Settings of `unit: target` where it is not that, languages that are not known, settings that exclude each other."""
    if labelled.unit != "target":
        for key in ("targets", "target_where", "target_language"):
            if getattr(source, key):
                yield f"{where}.{key}: is for `unit: target`"
        return
    for key in ("label_pattern", "label_names"):
        if getattr(source, key):
            yield f"{where}.{key}: is for text with labels; `unit: target` has none"
    try:
        language(source.target_language or labelled.target_language or labelled.language)
    except InputError as error:
        yield f"{where}.target_language: {error}"
    if several := [key for key, column in source.columns.items() if isinstance(column, list)]:
        yield f"{where}.columns.{several[0]}: is one column with `unit: target`, got {source.columns[several[0]]}"
    if source.targets and not source.file:
        yield f"{where}.targets: has the targets for the lines of `file`, which is missing"
    if source.targets and source.columns:
        yield f"{where}.columns: is for one file with texts and targets; with `targets`, each line is a text or a target as a whole"


def aligned_problems(where: str, aligned: Aligned) -> Iterator[str]:
    """Sources, gold pairs and test sets of the text for retrieval."""
    yield from _test_problems(where, aligned, "average")
    for part, source in {**{f"test.{k}": v for k, v in aligned.test.items()}, **{f"dev.{k}": v for k, v in aligned.dev.items()}}.items():
        for code in source.languages:
            try:
                language(code)
            except InputError as error:
                yield f"{where}.{part}.languages: {error}"
        if source.languages[0] == source.languages[1]:
            yield f"{where}.{part}.languages: {list(source.languages)} is one language twice"
        if bool(source.file) == bool(source.files) or (source.file and (source.order or source.gold)) or (source.order and source.gold):
            yield f"{where}.{part}: give `file` with `columns`, or `files`, with `order` or `gold` if their lines are not in step"
            continue
        given = source.columns if source.file else source.files
        if sorted(given) != sorted(source.languages):
            yield f"{where}.{part}: `{'columns' if source.file else 'files'}` must name {' and '.join(source.languages)}; it has {given}"
    if aligned.mines:
        for name, source in aligned.test.items():
            if not source.gold:
                yield f"{where}.test.{name}.gold: is missing; other test sets have it, and F1 of pairs and accuracy have no average"
            if not (dev := aligned.dev.get(name)) or not dev.gold:
                yield f"{where}.dev.{name}: is missing; the threshold from which on pairs are mined is chosen on dev text with `gold`"
    for name in aligned.dev:
        yield from undefined(f"{where}.dev", name, aligned.test if aligned.mines else {})


def _is_grade(label: str) -> bool:
    try:
        return 0 <= float(label) < float("inf")
    except ValueError:
        return False


def _tag_problems(where: str, labelled: Labelled):
    for tag in labelled.labels:
        if " " in tag:
            yield f"{where}.labels: {tag!r} has a blank in it, which separates tags"
        if tag.startswith("I-") and f"B-{tag[2:]}" not in labelled.labels:
            yield f"{where}.labels: {tag} is there, but not B-{tag[2:]}, with which a span begins in IOB2"
        if tag.startswith(("S-", "E-", "U-", "L-")) and has_spans(labelled.labels):
            yield f"{where}.labels: {tag} is of BIOES or BILOU; name the tags of IOB2 (O, B-…, I-…), into which files are converted"
