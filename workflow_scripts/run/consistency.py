"""consistency: what types cannot tell of a configuration, and its parts only together.

Names that are defined nowhere, arms of unequal length, languages that a corpus or backbone has not: each problem is a
line that names the key, what is wrong with it, and what would be right.
"""

import dataclasses
import difflib
from collections.abc import Iterator
from typing import Any

import regex
from pydantic import TypeAdapter, ValidationError

from workflow_scripts.run.config import (
    AnyExperiment,
    ClassificationExperiment,
    Config,
    Experiment,
    LexiconStages,
    Phase,
    arms_of,
    data_file,
    explain,
    given_dictionary,
    is_classification,
    labelled_languages,
    lexicon_corpus,
    lexicons_used,
    paths_of,
    sources_of,
    switched_into,
    translations,
)
from workflow_scripts.run.loading import TRAINING_TYPES
from workflow_scripts.stage import InputError
from workflow_scripts.text.acquisition import ORIGINS, languages_of
from workflow_scripts.text.corpus import Corpus, Source
from workflow_scripts.text.labelled import TEXT_COLUMNS, Labelled
from workflow_scripts.text.languages import LANGUAGES, language
from workflow_scripts.training.training import DEV_SCORES, Training


def problems(config: Config) -> Iterator[str]:
    """What types cannot tell: names that are defined nowhere, unequal arms, languages, files."""
    for what, names, defined in (
        ("run.experiments", config.run.experiments, config.experiments),
        ("run.arms", config.run.arms, config.arms),
    ):
        if not names:
            yield f"{what}: is empty, nothing would be run"
        if len(set(names)) < len(names):
            yield f"{what}: {names} names something twice"
        for name in names:
            yield from _undefined(what, name, defined)
    if (
        not config.run.seeds
        or len(set(config.run.seeds)) < len(config.run.seeds)
        or not all(0 < seed < 2**32 for seed in config.run.seeds)  # sacreBLEU takes 0 for none
    ):
        yield f"run.seeds: {config.run.seeds} must be different whole numbers from 1 to 2³² − 1, at least one"
    for section in ("corpora", "labelled", "lexicons", "backbones", "arms", "experiments"):
        for name in getattr(config, section):
            if not _is_name(name):
                yield f"{section}.{name}: names are folders: letters, digits, - and _ only"
    for name, corpus in config.corpora.items():
        yield from _corpus_problems(f"corpora.{name}", corpus)
    for name, labelled in config.labelled.items():
        yield from _labelled_problems(f"labelled.{name}", labelled)
    for name, lexicon in config.lexicons.items():
        yield from _lexicon_problems(name, lexicon, config)
    for name, phases in config.arms.items():
        if not phases or phases[-1].data != "task" or [p.data for p in phases].count("task") != 1 or len(phases) > 2:
            yield f"arms.{name}: an arm is one `data: task` phase, with at most one pretext phase before it"
        for phase in phases:
            if (phase.updates is None) == (phase.epochs is None):
                yield f"arms.{name}: a phase has either updates or epochs"
            if phase.epochs is not None and phase.data != "task":
                yield f"arms.{name}: a pretext phase counts updates; epochs are for the task phase of a classification"
            for key in ("updates", "epochs"):
                if (count := getattr(phase, key)) is not None and count < 1:
                    yield f"arms.{name}: {key} must be at least 1, got {count}"
            for key in phase.training:
                yield from _undefined(f"arms.{name}.training", key, {f.name: 0 for f in dataclasses.fields(Training)})
            if "updates" in phase.training:
                yield f"arms.{name}.training.updates: the phase's own `updates` counts"
            try:
                TypeAdapter(Training).validate_python({k: v for k, v in phase.training.items() if hasattr(Training, k)})
            except ValidationError as error:
                yield from (f"arms.{name}.training.{explain(problem)}" for problem in error.errors())
    chosen = [(f"experiments.{name}.arms", config.experiments[name]) for name in config.run.experiments if name in config.experiments]
    taken = {"run.arms" if e.arms is None else where: arms_of(config, e) for where, e in chosen}
    for where, arms in taken.items():
        totals = {name: _length(config.arms[name]) for name in arms if name in config.arms}
        if len(set(totals.values())) > 1:
            yield (
                f"{where}: all arms need the same number of updates in all (of epochs, where the task counts those), "
                f"or the comparison means nothing: {totals}"
            )
        if not arms and config.run.arms:
            yield f"{where}: none of the run's arms, {config.run.arms}, is among them"
    for where, experiment in chosen:
        for arm in experiment.arms or ():
            yield from _undefined(where, arm, dict.fromkeys(config.run.arms))
    made = {data_file(config, name): name for name in config.data}
    for where, path in paths_of(config):
        if path.startswith("results/data/"):
            yield from _undefined(where, path, made)
        if set(path) & set("{}\0"):
            yield f"{where}: {path!r} has braces or a NUL, which Snakemake cannot take in a file's name; rename the file"
    for name, backbone in config.backbones.items():
        if backbone.small and backbone.small.d_model % backbone.small.heads:
            yield f"backbones.{name}.small: d_model {backbone.small.d_model} must be a multiple of heads {backbone.small.heads}"
    for name, experiment in translations(config).items():
        if experiment.word_accuracy.low >= experiment.word_accuracy.high:
            low, high = experiment.word_accuracy.low, experiment.word_accuracy.high
            yield f"experiments.{name}.word_accuracy: low must be less than high, got {low} and {high}"
    for name in config.run.experiments:
        if name in config.experiments:
            own_problems = _classification_problems if is_classification(config.experiments[name]) else _experiment_problems
            yield from own_problems(f"experiments.{name}", config.experiments[name], config)


def _length(phases: list[Phase]) -> str:
    """What must be the same for all arms: updates of all phases, or epochs of the last."""
    if phases and phases[-1].epochs is not None:
        return f"{phases[-1].epochs} epochs"
    return f"{sum(phase.updates or 0 for phase in phases)} updates"


def data_problems(config: Config) -> Iterator[str]:
    """What is wrong with the data to acquire; where anything is, what they stand for is not known."""
    for name, corpus in config.corpora.items():
        for part, source in sources_of(corpus).items():
            if source.data:
                yield from _undefined(f"corpora.{name}.{part}.data", source.data, config.data)
                if source.file or source.files or source.held_out:
                    yield f"corpora.{name}.{part}: `data` takes the place of `file`, `files` and `held_out`; give one of them"
    for name, data in config.data.items():
        where = f"data.{name}"
        given = [origin for origin in ORIGINS if getattr(data, origin)]
        if not _is_name(name):
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
            yield from _undefined(f"{where}.join", other, config.data)
            if other in config.data and (config.data[other].join or languages_of(config.data[other]) != data.languages):
                yield f"{where}.join: {other!r} must be parallel text in {list(data.languages or ())}, and not joined itself"


def _is_name(name: str) -> bool:
    return name.isascii() and name.replace("-", "").replace("_", "").isalnum()


def _test_problems(where: str, corpus: Corpus | Labelled, taken: str):
    """What is wrong with the names of test sets, none of which may be `taken`."""
    if not corpus.test:
        yield f"{where}.test: names no test set"
    for name in corpus.test:
        if name == taken or not _is_name(name):
            yield f"{where}.test.{name}: a test set cannot be called {taken}, and its name has letters, digits, - and _ only"


def _corpus_problems(where: str, corpus: Corpus):
    for code in corpus.languages:
        try:
            language(code)
        except InputError as error:
            yield f"{where}.languages: {error}"
    if corpus.languages[0] == corpus.languages[1]:
        yield f"{where}.languages: {list(corpus.languages)} is one language twice"
    yield from _test_problems(where, corpus, "dev")
    for part, source in sources_of(corpus).items():
        kinds = [bool(source.file), bool(source.files), source.held_out is not None]
        if sum(kinds) != 1 or (part == "train" and kinds[2]):
            yield f"{where}.{part}: give either `file` with `columns`, `files`, or `data`" + ("" if part == "train" else ", or `held_out`")
        columns = source.columns if source.format else source.files or source.columns
        if sum(kinds[:2]) != 1:
            continue
        if missing := [code for code in corpus.languages if code not in columns]:
            yield f"{where}.{part}: nothing is said about {', '.join(missing)}; it has {dict(columns)}"
        elif columns[corpus.languages[0]] == columns[corpus.languages[1]]:
            yield f"{where}.{part}: both languages are read from {columns[corpus.languages[0]]!r}; a text cannot be its own translation"
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


def _labelled_problems(where: str, labelled: Labelled):
    for part, source in sources_of(labelled).items():
        try:
            language(source.language or labelled.language)
        except InputError as error:
            yield f"{where}.{part}.language: {error}"
        if not part.startswith("test.") and source.language not in (None, labelled.language):
            yield f"{where}.{part}.language: {source.language!r} is not {labelled.language!r}; only test sets may be in another language"
        if not source.file and (part == "train" or source.held_out is None):
            yield f"{where}.{part}: give a `file` with `columns`" + ("" if part == "train" else ", or `held_out`")
        if part == "train" and source.held_out is not None:
            yield f"{where}.train.held_out: is for dev and test sets"
        if not source.file and source.language not in (None, labelled.language):
            yield f"{where}.{part}: without a file it is held out from the training text, which is in {labelled.language!r}"
        if source.file and (missing := {"text", "label"} - source.columns.keys()):
            yield f"{where}.{part}.columns: say nothing about {' and '.join(sorted(missing))}; they have {source.columns}"
        for key in source.columns:
            yield from _undefined(f"{where}.{part}.columns", key, dict.fromkeys(TEXT_COLUMNS))
        try:
            groups = regex.compile(source.label_pattern or "()").groups
        except regex.error as error:
            yield f"{where}.{part}.label_pattern: {source.label_pattern!r} is no regular expression: {error}"
        else:
            if not groups:
                yield f"{where}.{part}.label_pattern: {source.label_pattern!r} needs a group that is the label, e.g. ^text/(\\w+)/"
    if len({*labelled.labels}) < len(labelled.labels) or len(labelled.labels) < 2 or not all(map(str.strip, labelled.labels)):
        yield f"{where}.labels: {labelled.labels} must be at least two different labels"
    yield from _test_problems(where, labelled, "average")


def _classification_problems(where: str, experiment: ClassificationExperiment, config: Config):
    yield from _undefined(f"{where}.corpus", experiment.corpus, config.labelled)
    yield from _undefined(f"{where}.backbone", experiment.backbone, config.backbones)
    phases = [(arm, phase) for arm in arms_of(config, experiment) for phase in config.arms.get(arm, [])]
    for arm, phase in phases:
        if phase.data == "task" and phase.epochs is None:
            yield f"arms.{arm}: the task phase of {where}, a classification, has `epochs` instead of updates"
        if phase.data == "task" and phase.training:
            yield f"arms.{arm}.training: is for pretext phases; finetuning has {where}.classification"
        if phase.data == "released":
            yield f"arms.{arm}: `released` needs parallel text, which {where} has none of"
    switched = [f"arms.{arm}" for arm, phase in phases if phase.name == "pretext"]
    switched += [f"{where}.classification.switch_while_finetuning"] if experiment.classification.switch_while_finetuning else []
    used = lexicons_used(config, experiment)
    if switched and not used:
        yield f"{where}.lexicon: is missing; {switched[0]} needs one"
    for name in used:
        yield from _undefined(f"{where}.lexicon", name, config.lexicons)
    for number in experiment.published:
        yield from _undefined(f"{where}.published: arm", number.arm, config.arms)
    if experiment.corpus not in config.labelled:
        return
    lengths = {f"{where}.classification": experiment.classification.max_length}
    yield from _backbone_problems(where, experiment, labelled_languages(config, experiment), lengths, config)
    if not switched:
        return
    code = config.labelled[experiment.corpus].language
    into = switched_into(config, experiment)
    if not into:
        yield f"{where}.into: no language but {code!r}, that of the text, is left to switch words into"
    for name in used:
        if (lexicon := config.lexicons.get(name)) is None:
            continue
        if lexicon.unit != "word" or lexicon.mapping.mode != "dictionary":
            yield f"lexicons.{name}.mapping.mode: must be dictionary (and unit word), as {where} has no parallel text to learn from"
        for other in into:
            if other not in LANGUAGES:
                yield f"{where}.into: {other!r} is no language that is known"
            elif not given_dictionary(lexicon, code, other):
                yield (
                    f"lexicons.{name}.dictionary: {code}-{other} is missing, which {where} needs for its texts in {other}; "
                    f"give a file of word pairs (MUSE's format), or name the languages to switch into in {where}.into"
                )


def _lexicon_problems(name: str, lexicon: LexiconStages, config: Config):
    if lexicon.unit == "piece":
        yield from _undefined(f"lexicons.{name}.backbone", lexicon.backbone or "", config.backbones)
        if lexicon.vectors or lexicon.mapping.mode not in ("unsupervised", "identical", "numerals"):
            yield f"lexicons.{name}: with unit piece, vectors are learnt and mapped by mode unsupervised, identical or numerals"
    elif lexicon.backbone:
        yield f"lexicons.{name}.backbone: is for unit piece only"
    users = [config.experiments[e] for e in config.run.experiments if e in config.experiments]
    users = [e for e in users if not is_classification(e) and name in lexicons_used(config, e)]
    if lexicon.corpus:
        yield from _undefined(f"lexicons.{name}.corpus", lexicon.corpus, config.corpora)
    corpora = {corpus: config.corpora[corpus] for e in users if (corpus := lexicon_corpus(config, e, name)) in config.corpora}
    pairs = {"-".join(corpus.languages) for corpus in corpora.values()}
    for key in ("dictionary", "gold"):
        for pair in getattr(lexicon, key):
            if len(codes := pair.split("-")) != 2 or not all(code in LANGUAGES for code in codes):
                yield f"lexicons.{name}.{key}: {pair!r} is no pair of languages like 'de-en'"
            if (back := "-".join(pair.split("-")[::-1])) in pairs - {pair}:
                yield f"lexicons.{name}.{key}: {pair!r} must be in the order of the corpus's languages, {back!r}"
    mode = lexicon.mapping.mode
    for corpus in [corpus for corpus, block in corpora.items() if mode == "aligned" and block.documents]:
        yield f"lexicons.{name}.mapping.mode: aligned needs sentences and their translations; corpus {corpus!r} has documents and summaries"
    for pair in sorted(pairs):
        if mode in ("semi_supervised", "supervised", "dictionary") and pair not in lexicon.dictionary:
            yield f"lexicons.{name}.dictionary: mapping.mode {mode} needs one for {pair!r}"
        for code in pair.split("-") if mode == "mapped" else ():
            if code not in lexicon.vectors:
                yield f"lexicons.{name}.vectors: mapping.mode mapped needs the mapped vectors of {code!r}"


def _phase_problems(where: str, experiment: Experiment, phase: Phase, config: Config):
    name = phase.lexicon or experiment.lexicon
    if phase.lexicon:
        yield from _undefined(f"{where}.lexicon", phase.lexicon, config.lexicons)
    if phase.data == "task" and phase.lexicon:
        yield f"{where}.lexicon: the task itself takes none"
    if phase.data == "task" or name not in config.lexicons:
        return
    lexicon = config.lexicons[name]
    if lexicon.unit != ("piece" if phase.data == "released" else "word"):
        yield f"{where}: data {phase.data} cannot take the lexicon {name!r} of unit {lexicon.unit}; pieces are for `released` only"


def _grid_problems(where: str, experiment: Experiment, config: Config):
    for key, values in experiment.grid.items():
        yield from _undefined(f"{where}.training", key, TRAINING_TYPES)
        if key == "updates":
            yield f"{where}.training.updates: stands in the arms, all of the same sum; it cannot be chosen"
        if not values:
            yield f"{where}.grid.{key}: is empty"
        for value in values if key in TRAINING_TYPES else ():
            try:
                TypeAdapter(TRAINING_TYPES[key]).validate_python(value)
            except ValidationError as error:
                yield f"{where}.training.{key}: {error.errors()[0]['msg'].lower()}, got {value!r}"
        for arm in arms_of(config, experiment):
            if any(phase.data == "task" and key in phase.training for phase in config.arms.get(arm, [])):
                yield f"arms.{arm}: sets {key}, which {where} chooses from {values}; every arm must have the same choice"
    smallest = min([experiment.training.bleu_sentences, *experiment.grid.get("bleu_sentences", [])])
    if experiment.grid and experiment.choice.by != "dev_loss" and not smallest:
        yield f"{where}.choice.by: {experiment.choice.by} needs training.bleu_sentences above 0; or choose by dev_loss"


def _experiment_problems(where: str, experiment: Experiment, config: Config):
    yield from _grid_problems(where, experiment, config)
    for arm in arms_of(config, experiment):
        if any(phase.epochs is not None for phase in config.arms.get(arm, [])):
            yield f"arms.{arm}: {where}, a translation, counts updates; epochs are for classification"
        for phase in config.arms.get(arm, []):
            yield from _phase_problems(f"arms.{arm} in {where}", experiment, phase, config)
    for name in lexicons_used(config, experiment):
        lexicon = config.lexicons.get(name)
        learnt = config.corpora.get(lexicon.corpus or "") if lexicon else None
        if learnt and sorted(learnt.languages) != sorted([experiment.source, experiment.target]):
            yield f"lexicons.{name}.corpus: {lexicon.corpus!r} is in {list(learnt.languages)}, not in the languages of {where}"
        if lexicon and lexicon.unit == "piece" and lexicon.backbone != experiment.backbone:
            yield f"lexicons.{name}.backbone: {lexicon.backbone!r} is not that of {where}, {experiment.backbone!r}; pieces must be its own"
    for key in ("corpus", "lexicon", "backbone"):
        section = {"corpus": "corpora"}.get(key, f"{key}s")
        yield from _undefined(f"{where}.{key}", getattr(experiment, key), getattr(config, section))
    corpus = config.corpora.get(experiment.corpus)
    pair = [experiment.source, experiment.target]
    for number in experiment.published:
        yield from _undefined(f"{where}.published: arm", number.arm, config.arms)
        if number.testset and corpus:
            yield from _undefined(f"{where}.published: testset", number.testset, _all_tests(config, corpus))
    if experiment.representation.text and sorted(experiment.representation.text) != sorted(pair):
        yield f"{where}.representation.text: needs a file for each of {pair}; it has {list(experiment.representation.text)}"
    if corpus and sorted(pair) != sorted(corpus.languages):
        yield f"{where}: source and target {pair} are not the languages of corpus {experiment.corpus!r}, {list(corpus.languages)}"
    if corpus and bool(corpus.documents) != (experiment.task == "summarisation"):
        has = "has none" if experiment.task == "summarisation" else "has some: set task: summarisation"
        yield f"{where}.task: {experiment.task} of corpus {experiment.corpus!r}, which {has} (`documents`)"
    elif corpus and corpus.documents and corpus.documents.language != experiment.source:
        yield f"{where}.source: {experiment.source!r} is not the language of the documents, {corpus.documents.language!r}"
    if experiment.decoding.min_length > experiment.decoding.max_length:
        low, high = experiment.decoding.min_length, experiment.decoding.max_length
        yield f"{where}.decoding: min_length {low} is more than max_length {high}"
    if experiment.grid and experiment.choice.by not in ("dev_loss", by := DEV_SCORES[experiment.training.dev_metric]):
        yield f"{where}.choice.by: {experiment.choice.by} is not measured: dev_metric is {experiment.training.dev_metric}; set {by}"
    yield from _backbone_problems(where, experiment, pair, {}, config)


def _backbone_problems(where: str, experiment: AnyExperiment, codes: list[str], lengths: dict[str, int], config: Config):
    """What is wrong with an experiment's backbone for texts in these languages; `lengths` are other settings of the longest row."""
    backbone = config.backbones.get(experiment.backbone)
    if backbone and not (backbone.small if backbone.kind == "small" else backbone.model):
        yield f"backbones.{experiment.backbone}: kind {backbone.kind} needs `{'small' if backbone.kind == 'small' else 'model'}`"
    if backbone and backbone.kind == "small" and backbone.small:
        positions = backbone.small.max_positions
        lengths = {f"{where}.training": experiment.training.max_length, **lengths}
        lengths[f"backbones.{experiment.backbone}.small.training"] = backbone.small.training.max_length
        for arm in arms_of(config, experiment):
            own = [phase.training.get("max_length") for phase in config.arms.get(arm, [])]
            lengths[f"arms.{arm}.training"] = max((length for length in own if isinstance(length, int)), default=0)
        for block, longest in lengths.items():
            if longest > positions:
                yield f"{block}.max_length: {longest} is more than the backbone's {positions} positions"
        for code in codes:
            if code not in backbone.small.text:
                has = list(backbone.small.text)
                yield f"backbones.{experiment.backbone}.small.text: no text for {code!r}, which {where} needs; it has {has}"


def _all_tests(config: Config, corpus: Corpus) -> list[str]:
    """The test sets of a corpus, and those of all experiments as models of another translate them."""
    others = {name: config.corpora[e.corpus].test for name, e in translations(config).items() if e.corpus in config.corpora}
    return [*corpus.test, *(f"{name}@{testset}" for name, tests in others.items() for testset in tests)]


def _undefined(where: str, name: str, defined: dict[str, Any]):
    if name not in defined:
        near = difflib.get_close_matches(name, defined, n=1)
        yield f"{where}: {name!r} is not defined" + (
            f", did you mean {near[0]!r}?" if near else f"; there is {', '.join(defined) or 'nothing'}"
        )
