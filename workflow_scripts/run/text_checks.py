"""text_checks: checks of the configuration's text: data to acquire, corpora, labelled and aligned text.

As in `consistency`, each problem is a line that names the key, what is wrong with it, and what would be right.
"""

from collections.abc import Iterator

import regex

from workflow_scripts.names import is_name, undefined
from workflow_scripts.run.config import Config, sources_of
from workflow_scripts.stage import InputError
from workflow_scripts.text import questions
from workflow_scripts.text.acquisition import ORIGINS, Data, languages_of
from workflow_scripts.text.aligned import Aligned, AlignedSource
from workflow_scripts.text.corpus import Corpus
from workflow_scripts.text.examples import TEXT_COLUMNS, WORD_COLUMNS, LabelledSource
from workflow_scripts.text.fetching import base_name, is_archive
from workflow_scripts.text.files import kind_of
from workflow_scripts.text.labelled import Labelled
from workflow_scripts.text.languages import language
from workflow_scripts.text.parallel import Source
from workflow_scripts.text.tagged import has_spans
from workflow_scripts.text.targets import TARGET_COLUMNS

# ---------------------------------------------------------------------------------------------
# data to acquire


def data_problems(config: Config) -> Iterator[str]:
    """Every line tells a problem of the data to acquire; while there is one, the files that the data stand for are unknown."""
    for name, corpus in config.corpora.items():
        for part, source in sources_of(corpus).items():
            if source.data:
                yield from _data_taken_problems(f"corpora.{name}.{part}", source, config.data)
    for name, data in config.data.items():
        where = f"data.{name}"
        if not is_name(name):
            yield f"{where}: names are files: letters, digits, - and _ only"
        given = [origin for origin in ORIGINS if getattr(data, origin)]
        if len(given) != 1:
            yield f"{where}: needs one origin of {', '.join(ORIGINS)}; it has {' and '.join(given) or 'none'}"
            continue
        yield from _origin_problems(where, given[0], data)
        yield from _sides_problems(where, data)
        yield from _data_column_problems(where, data)
        yield from _checksum_problems(where, data)
        for code in dict.fromkeys(languages_of(data) or ()):
            yield from _language_problems(where, code)
        yield from _join_problems(where, data, config.data)


def _data_taken_problems(where: str, source: Source, known: dict[str, Data]) -> Iterator[str]:
    """A source that takes acquired data must name a block of `data`, and no file of its own."""
    yield from undefined(f"{where}.data", source.data or "", known)
    if source.file or source.files or source.held_out:
        yield f"{where}: `data` takes the place of `file`, `files` and `held_out`; give one of them"


def _origin_problems(where: str, origin: str, data: Data) -> Iterator[str]:
    """The settings of a block of data must suit its origin."""
    if origin != "url" and (data.member or data.lines):
        yield f"{where}: member and lines are for `url`"
    if data.lines and data.member:
        yield f"{where}.lines: cannot be taken from an archive's member"
    for url in (data.url.values() if isinstance(data.url, dict) else [data.url or ""]) if data.lines else ():
        if is_archive(name := base_name(url)) or name.endswith((".zst", ".bz2", ".7z")):
            yield f"{where}.lines: can be taken from a plain, .gz or .xz file; {name} is packed otherwise: leave `lines` out"
    if origin in ("mtdata", "sacrebleu", "join") and not data.languages:
        yield f"{where}.languages: is missing; {origin} gives parallel text"
    if origin in ("huggingface", "debian") and data.languages:
        yield f"{where}.languages: {origin} takes none"
    if data.debian and len(data.debian.packages) != 2:
        yield f"{where}.debian.packages: names the packages of two languages, got {data.debian.packages}"


def _sides_problems(where: str, data: Data) -> Iterator[str]:
    """Settings that are given for each language must have all languages and no others."""
    for key in ("url", "member"):
        sides = getattr(data, key)
        if isinstance(sides, dict) and sorted(sides) != sorted(data.languages or ()):
            yield f"{where}.{key}: is given for {', '.join(sides)}; `languages` are {list(data.languages or ())}"


def _data_column_problems(where: str, data: Data) -> Iterator[str]:
    """Parallel text is in two languages, and only where one file has both of them in columns can these be chosen."""
    languages = list(languages_of(data) or ())
    if len({*languages}) < len(languages):
        yield f"{where}.languages: {languages} is one language twice"
    if not (columns := data.columns):
        return
    names = [base_name(data.url), str(data.member or "")] if isinstance(data.url, str) else []
    if not names or isinstance(data.member, dict) or any(".tmx" in name for name in names):
        yield f"{where}.columns: is for one `url` of a file with both languages in columns or keys; leave it out"
    elif not languages:
        yield f"{where}.columns: is for parallel text, whose `languages` are missing"
    elif missing := [code for code in languages if code not in columns]:
        yield f"{where}.columns: nothing is said about {', '.join(missing)}; it has {dict(columns)}"
    elif columns[languages[0]] == columns[languages[1]]:
        yield f"{where}.columns: both languages are read from {columns[languages[0]]!r}; a text cannot be its own translation"
    elif unknown := columns.keys() - {*languages, "document"}:
        yield f"{where}.columns: {', '.join(sorted(unknown))} is no language of the data nor `document`"


def _checksum_problems(where: str, data: Data) -> Iterator[str]:
    """Checksums must belong to the files that are downloaded, and be such as SHA-256 has."""
    if isinstance(data.sha256, dict) and not (isinstance(data.url, dict) and data.sha256.keys() <= data.url.keys()):
        yield f"{where}.sha256: a checksum for each language needs a `url` for each"
    if isinstance(data.url, dict) and isinstance(data.sha256, str):
        yield f"{where}.sha256: needs one for each of {', '.join(data.url)}"
    for checksum in data.sha256.values() if isinstance(data.sha256, dict) else [data.sha256 or "0" * 64]:
        if len(checksum) != 64 or set(checksum.lower()) - set("0123456789abcdef"):
            yield f"{where}.sha256: {checksum!r} is no SHA-256, which has 64 hexadecimal digits"


def _join_problems(where: str, data: Data, known: dict[str, Data]) -> Iterator[str]:
    """Data can only be joined from other data in the same languages, which are not joined themselves."""
    for other in data.join:
        yield from undefined(f"{where}.join", other, known)
        if other in known and (known[other].join or languages_of(known[other]) != data.languages):
            yield f"{where}.join: {other!r} must be parallel text in {list(data.languages or ())}, and not joined itself"


# ---------------------------------------------------------------------------------------------
# what several kinds of text share


def _language_problems(where: str, code: str) -> Iterator[str]:
    """A language must be one that is known here."""
    try:
        language(code)
    except InputError as error:
        yield f"{where}: {error}"


def _test_problems(where: str, corpus: Corpus | Labelled | Aligned, taken: str) -> Iterator[str]:
    """There must be a test set, and none may be called `taken`, which names something else among the results."""
    if not corpus.test:
        yield f"{where}.test: names no test set"
    for name in corpus.test:
        if name == taken or not is_name(name):
            yield f"{where}.test.{name}: a test set cannot be called {taken}, and its name has letters, digits, - and _ only"


def _same_text_problems(where: str, corpus: Corpus | Labelled) -> Iterator[str]:
    """No dev or test set may be the training text itself, and no dev set a test set."""
    parts = {part: source for part, source in sources_of(corpus).items() if part in ("train", "dev") or part.startswith("test.")}
    for part, source in parts.items():
        others = [*(["train"] if part != "train" else []), *([name for name in parts if name.startswith("test.")] if part == "dev" else [])]
        for other in others if source.paths() else ():
            if source == parts[other]:
                yield f"{where}.{part}: is the same text as `{other}`; give another file" + _or_held_out(part)


def _or_held_out(part: str) -> str:
    """The end of a sentence that asks for a file: text can be held out from the training text, but not the training text itself."""
    return "" if part == "train" else ", or `held_out`"


# ---------------------------------------------------------------------------------------------
# parallel text


def corpus_problems(where: str, corpus: Corpus) -> Iterator[str]:
    """Every line tells a problem of a corpus's languages, test sets, sources or documents."""
    for code in corpus.languages:
        yield from _language_problems(f"{where}.languages", code)
    if corpus.languages[0] == corpus.languages[1]:
        yield f"{where}.languages: {list(corpus.languages)} is one language twice"
    yield from _test_problems(where, corpus, "dev")
    yield from _same_text_problems(where, corpus)
    for part, source in sources_of(corpus).items():
        yield from _origin_of_part_problems(where, part, source)
        if bool(source.file) != bool(source.files):
            yield from _column_problems(where, part, source, corpus)
            yield from _document_problems(f"{where}.{part}", source, corpus)
    if (documents := corpus.documents) and (unknown := {documents.language, *documents.cut} - {*corpus.languages}):
        yield f"{where}.documents: {', '.join(sorted(unknown))} is no language of the corpus, {list(corpus.languages)}"


def _origin_of_part_problems(where: str, part: str, source: Source) -> Iterator[str]:
    """A part comes from one file, from several files, or (dev and test sets only) from the training text."""
    kinds = {"file": bool(source.file), "files": bool(source.files), "held_out": source.held_out is not None}
    if sum(kinds.values()) > 1:
        given = " and ".join(f"`{key}`" for key, there in kinds.items() if there)
        yield (
            f"{where}.{part}: has {given}, where one belongs; a recipe keeps the keys of what it is laid over: set the other to null, "
            "or give the corpus a name of its own"
        )
    elif not any(kinds.values()) or (part == "train" and kinds["held_out"]):
        yield f"{where}.{part}: give either `file` with `columns`, `files`, or `data`" + _or_held_out(part)


def _column_problems(where: str, part: str, source: Source, corpus: Corpus) -> Iterator[str]:
    """The columns, or the files, must be those of the corpus's two languages, each with a text of its own."""
    columns = source.columns if source.format else source.files or source.columns
    if missing := [code for code in corpus.languages if code not in columns]:
        known = corpus.train.columns if part != "train" else {}
        example = f"; for example those of `train`, {dict(known)}" if source.file and known else ""
        given = f"it has {dict(columns)}" if columns else f"give `columns`{example}"
        yield f"{where}.{part}: nothing is said about {', '.join(missing)}; {given}"
    elif columns[corpus.languages[0]] == columns[corpus.languages[1]]:
        yield f"{where}.{part}: both languages are read from {columns[corpus.languages[0]]!r}; a text cannot be its own translation"
    elif twice := [name for name in ("document", "heading") if columns.get(name) in [columns[code] for code in corpus.languages]]:
        yield (
            f"{where}.{part}: {twice[0]} is column {columns[twice[0]]!r}, from which a language is read; a recipe keeps the keys of "
            f"what it is laid over: set {twice[0]} to null, or give the corpus a name of its own"
        )
    if source.header and (source.files or source.format or kind_of(source.file or "") == ".jsonl"):
        yield f"{where}.{part}.header: is for a TSV file"
    extra = ["document", *(["heading"] if source.summary == "heading" else [])] if source.columns else []
    if unknown := columns.keys() - {*corpus.languages, *extra}:
        yield f"{where}.{part}: {', '.join(sorted(unknown))} is no language of the corpus" + "".join(f" nor `{name}`" for name in extra)


def _document_problems(where: str, source: Source, corpus: Corpus) -> Iterator[str]:
    """Summaries are for a corpus with documents, and need a source that tells where these begin."""
    if (source.summary or source.format) and not corpus.documents:
        yield f"{where}: {'summary' if source.summary else 'format ncls'} is for a corpus with `documents`"
    if source.summary and (source.format or not source.file or kind_of(source.file) == ".jsonl"):
        yield f"{where}.summary: is for a TSV file"
    if source.format and source.files and (missing := [code for code in corpus.languages if code not in source.files]):
        yield f"{where}.files: names none for {', '.join(missing)}"
    wanted = {"first": ["document"], "heading": ["document", "heading"]}.get(source.summary or "", [])
    if missing := [name for name in wanted if name not in source.columns]:
        yield f"{where}.columns: summary {source.summary} needs {' and '.join(f'`{name}`' for name in missing)}"


# ---------------------------------------------------------------------------------------------
# labelled text


def labelled_problems(where: str, labelled: Labelled) -> Iterator[str]:
    """Every line tells a problem of the sources, columns, labels or test sets of labelled text."""
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
    yield from _label_problems(where, labelled)
    yield from _test_problems(where, labelled, "average")
    yield from _same_text_problems(where, labelled)
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
    yield from _language_problems(f"{where}.{part}.language", code)
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
        yield f"{where}.{part}: give a `file` with `columns`" + _or_held_out(part)
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
        yield from _json_line_problems(where, source, ("file", "queries", "documents"), "TSV files")
    if unit != "query" and (source.queries or source.documents):
        yield f"{where}: `queries` and `documents` are for `unit: query`"


def _is_judged(source: LabelledSource, unit: str) -> bool:
    """Whether judgements of relevance stand in a file apart from the texts that they are about."""
    return unit == "query" and bool(source.queries or source.documents)


def _needed_column_problems(where: str, source: LabelledSource, unit: str) -> Iterator[str]:
    """Columns must say all that the unit needs, and nothing that it does not know."""
    if source.file and not _is_judged(source, unit) and (missing := _needed_columns(source, unit) - source.columns.keys()):
        yield f"{where}.columns: say nothing about {' and '.join(sorted(missing))}; they have {source.columns}"
    known = {"word": WORD_COLUMNS, "target": TARGET_COLUMNS, "question": questions.COLUMNS}.get(unit, TEXT_COLUMNS)
    for key in source.columns:
        yield from undefined(f"{where}.columns", key, known)


def _needed_columns(source: LabelledSource, unit: str) -> set[str]:
    """The columns that must be given of a file of this unit; formats that name their own fields need none."""
    if unit == "word":
        return set()
    if unit == "question":
        return set() if kind_of(source.file or "") == ".json" else set(questions.NEEDED)
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
    if source.empty != "refuse" and (labelled.unit in ("word", "question") or _is_judged(source, labelled.unit)):
        yield f"{where}.empty: is for `unit: text` and `target`, and for `unit: query` with `columns`"
    if labelled.unit != "text":
        yield from _useless_problems(where, source, ("quoted",), "`unit: text`")
    if _is_judged(source, labelled.unit):
        yield from _useless_problems(where, source, ("where", "label_pattern"), "a file with `columns`; of judgements all lines are read")
    if kind_of(source.file or "") == ".json" and (other := source.where.keys() - {"id"}):
        yield f"{where}.where: asks for {', '.join(sorted(other))}, but a JSON file can only be asked for `id`, the part of ids before a -"
    if labelled.unit == "word":
        what = "`unit: text`; files of words with tags have only `columns` and `label_names`"
        yield from _useless_problems(where, source, ("header", "where", "label_pattern"), what)


def _useless_problems(where: str, source: LabelledSource, keys: tuple[str, ...], what: str) -> Iterator[str]:
    """None of the `keys` may be set, because they are for `what`."""
    for key in keys:
        if getattr(source, key):
            yield f"{where}.{key}: is for {what}"


def _question_problems(where: str, source: LabelledSource) -> Iterator[str]:
    """Questions have no labels, each column once, and come from tables or from SQuAD's JSON."""
    yield from _json_line_problems(where, source, ("file",), "a TSV file, or SQuAD's JSON (.json)")
    yield from _useless_problems(where, source, ("label_pattern", "label_names"), "labels, which questions have none of")
    yield from _single_column_problems(where, source, "question")


def _target_problems(where: str, source: LabelledSource, labelled: Labelled) -> Iterator[str]:
    """Targets are texts in a known language instead of labels, and come from columns or from a file of their own."""
    yield from _useless_problems(where, source, ("label_pattern", "label_names"), "text with labels; `unit: target` has none")
    yield from _language_problems(f"{where}.target_language", source.target_language or labelled.target_language or labelled.language)
    yield from _single_column_problems(where, source, "target")
    if source.targets and not source.file:
        yield f"{where}.targets: has the targets for the lines of `file`, which is missing"
    if source.targets and source.columns:
        yield f"{where}.columns: is for one file with texts and targets; with `targets`, each line is a text or a target as a whole"
    if source.targets or "heading" in source.columns:
        what = "files with a text and its target in `columns`; of texts with a file of targets, and of sections, all lines are read"
        yield from _useless_problems(where, source, ("header", "where", "target_where"), what)


def _single_column_problems(where: str, source: LabelledSource, unit: str) -> Iterator[str]:
    """Only the text of labels may be joined from several columns."""
    if several := [key for key, column in source.columns.items() if isinstance(column, list)]:
        yield f"{where}.columns.{several[0]}: is one column with `unit: {unit}`, got {source.columns[several[0]]}"


def _json_line_problems(where: str, source: LabelledSource | AlignedSource, keys: tuple[str, ...], what: str) -> Iterator[str]:
    """None of the files may be JSON lines, where only tables or other formats are read."""
    for key in keys:
        if kind_of(getattr(source, key) or "") == ".jsonl":
            yield f"{where}.{key}: {getattr(source, key)} has JSON lines, which are not read here; write {what}"


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
    if len({*labelled.labels}) < len(labelled.labels) or len(labelled.labels) < 2 or not all(map(str.strip, labelled.labels)):
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


# ---------------------------------------------------------------------------------------------
# aligned text


def aligned_problems(where: str, aligned: Aligned) -> Iterator[str]:
    """Every line tells a problem of the sources, gold pairs or test sets of the text for retrieval."""
    yield from _test_problems(where, aligned, "average")
    for part, source in {**{f"test.{k}": v for k, v in aligned.test.items()}, **{f"dev.{k}": v for k, v in aligned.dev.items()}}.items():
        yield from _aligned_source_problems(f"{where}.{part}", source)
    if aligned.mines:
        yield from _gold_problems(where, aligned)
    for name in aligned.dev:
        yield from undefined(f"{where}.dev", name, aligned.test if aligned.mines else {})


def _aligned_source_problems(where: str, source: AlignedSource) -> Iterator[str]:
    """A source is in two known languages, and has a column or a file for each."""
    for code in source.languages:
        yield from _language_problems(f"{where}.languages", code)
    if source.languages[0] == source.languages[1]:
        yield f"{where}.languages: {list(source.languages)} is one language twice"
    if bool(source.file) == bool(source.files) or (source.file and (source.order or source.gold)) or (source.order and source.gold):
        yield f"{where}: give `file` with `columns`, or `files`, with `order` or `gold` if their lines are not in step"
        return
    yield from _json_line_problems(where, source, ("file",), "a TSV file")
    given = source.columns if source.file else source.files
    if sorted(given) != sorted(source.languages):
        yield f"{where}: `{'columns' if source.file else 'files'}` must name {' and '.join(source.languages)}; it has {given}"


def _gold_problems(where: str, aligned: Aligned) -> Iterator[str]:
    """Where pairs are mined, every test set needs gold pairs, and a dev set with gold pairs beside it."""
    for name, source in aligned.test.items():
        if not source.gold:
            yield f"{where}.test.{name}.gold: is missing; other test sets have it, and F1 of pairs and accuracy have no average"
        if not (dev := aligned.dev.get(name)) or not dev.gold:
            yield f"{where}.dev.{name}: is missing; the threshold from which on pairs are mined is chosen on dev text with `gold`"
