"""config: the typed configuration, assembled from the settings of all stages.

`config.yaml` is read by Snakemake (which merges `--configfile` over it) and checked here: unknown
keys are refused with the nearest known one, values by type, names by whether they are defined. The
JSON schema in `config/schema.json`, with which editors complete keys, is generated from the same
dataclasses: ``python -m workflow_scripts.config > config/schema.json``.
"""

import copy
import csv
import dataclasses
import difflib
import fnmatch
import functools
import itertools
import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, get_args, get_origin, get_type_hints

import regex
import yaml
from pydantic import Discriminator, Tag, TypeAdapter, ValidationError

from workflow_scripts.acquisition import ORIGINS, Data, columns_of, languages_of, suffix
from workflow_scripts.backbone import Backbone
from workflow_scripts.choice import Choice
from workflow_scripts.classification import Classification, Significance
from workflow_scripts.codeswitch import CodeSwitch
from workflow_scripts.comet import Comet
from workflow_scripts.corpus import Corpus, Source
from workflow_scripts.decoding import Decoding
from workflow_scripts.embeddings import Embeddings
from workflow_scripts.labelled import TEXT_COLUMNS, Labelled
from workflow_scripts.languages import LANGUAGES, language
from workflow_scripts.lexicon import Lexicon
from workflow_scripts.mapping import Mapping
from workflow_scripts.representation import Representation
from workflow_scripts.scores import ROUGES, Scores
from workflow_scripts.stage import InputError, resource
from workflow_scripts.training import DEV_SCORES, Training
from workflow_scripts.word_accuracy import WordAccuracy


@dataclass
class Run:
    """What is run."""

    experiments: list[str]
    """Names of experiments."""
    arms: list[str]
    """Names of arms; the first is the baseline that the others are compared with."""
    seeds: list[int]
    """Training seeds; each arm is trained once per seed."""
    zero_shot: bool = False
    """Every experiment's models translate the test sets of the others, too, if target and backbone are the same (Table III)."""


@dataclass
class LexiconStages:
    """How a lexicon is made: the settings of three stages, and a word list to judge it by."""

    corpus: str | None = None
    """Name of the corpus that it is learnt from; the experiment's if none is named."""
    unit: Literal["word", "piece"] = "word"
    """What has a vector and translations. `piece`: the backbone's SentencePiece pieces, as in the authors' published code."""
    backbone: str | None = None
    """`unit: piece`: the backbone whose pieces they are."""
    embeddings: Embeddings = field(default_factory=Embeddings)
    """word2vec."""
    mapping: Mapping = field(default_factory=Mapping)
    """The mapping into one space."""
    lexicon: Lexicon = field(default_factory=Lexicon)
    """Retrieval."""
    vectors: dict[str, str] = field(default_factory=dict)
    """Language → file of word vectors to take instead of learning them."""
    dictionary: dict[str, str] = field(default_factory=dict)
    """Pair (`de-en`) → word list that the mapping starts from, or that is the lexicon (`mapping.mode`)."""
    gold: dict[str, str] = field(default_factory=dict)
    """Pair (`de-en`) → file of correct translations, a pair a line in that order. Only for judging."""


@dataclass
class Phase:
    """One phase of an arm."""

    data: Literal["codeswitch", "mask", "random", "released", "task"]
    """What is trained on: a restore task on noised text, or the task itself."""
    updates: int | None = None
    """Updates of the weights."""
    epochs: int | None = None
    """Instead of updates, for the task phase of a classification: how often all examples are seen."""
    start: Literal["previous", "scratch"] = "previous"
    """`previous`: the phase before, or the backbone. `scratch`: random weights in the backbone's shape."""
    lexicon: str | None = None
    """Name of the lexicon that switches the words; the experiment's if none is named."""
    training: dict[str, Any] = field(default_factory=dict)
    """Training settings that differ from the experiment's in this phase."""

    @property
    def name(self) -> str:
        """The phase's folder."""
        return "finetune" if self.data == "task" else "pretext"

    @property
    def noise(self) -> str:
        """The folder of a pretext phase's text."""
        return f"{self.data}.{self.lexicon}" if self.lexicon else self.data


@dataclass
class Published:
    """A published number, which the report shows beside this run's; where a condition differs, as not comparable."""

    arm: str
    """The arm that it is the number of."""
    metric: str
    """A metric as it stands in scores.tsv: BLEU, chrF, TER, COMET, word_f_low, distance_pairs, …"""
    value: float
    """The number."""
    source: str
    """Where it was published: paper and table."""
    testset: str | None = None
    """The test set; the first if none is named."""
    lowercase: bool = False
    """Measured on lower-cased text."""
    tokenize: str | None = None
    """sacreBLEU's name of the tokeniser."""
    model: str | None = None
    """COMET's model."""
    backbone: str | None = None
    """The model that was finetuned, by its name on the hub."""
    updates: int | None = None
    """Updates of all phases."""
    conditions: str = ""
    """What else is to be known of it."""


@dataclass
class Experiment:
    """A task on a corpus in one direction, with a backbone."""

    corpus: str
    """Name of a corpus."""
    source: str
    """Language that is translated from, or that the documents are in."""
    target: str
    """Language that is translated into, or that the summaries are in."""
    backbone: str
    """Name of a backbone."""
    lexicon: str
    """Name of a lexicon."""
    task: Literal["translation", "summarisation"] = "translation"
    """What is learnt. Summarisation needs a corpus with `documents`; ROUGE takes BLEU's place then."""
    codeswitch: CodeSwitch = field(default_factory=CodeSwitch)
    """Noise of the pretext task."""
    training: Training = field(default_factory=Training)
    """Training settings of all phases; `updates` stands in the arms. A list in place of a value makes a grid."""
    grid: dict[str, list[Any]] = field(default_factory=dict)
    """The lists of `training`: every arm is trained with each combination of their values, and chooses one on the dev set."""
    choice: Choice = field(default_factory=Choice)
    """What the choice goes by."""
    decoding: Decoding = field(default_factory=Decoding)
    """Beam search."""
    scores: Scores = field(default_factory=Scores)
    """Metrics and significance."""
    comet: Comet | None = None
    """COMET, in an environment of its own; `{}` measures it with its defaults."""
    word_accuracy: WordAccuracy = field(default_factory=WordAccuracy)
    """Word accuracy by frequency."""
    representation: Representation = field(default_factory=Representation)
    """Distances."""
    published: list[Published] = field(default_factory=list)
    """Published numbers of this experiment, or a TSV file with them: its columns are these settings, and `experiment`."""


@dataclass
class ClassificationExperiment:
    """Classification of texts, or pairs of texts: finetuned in one language, tested in others."""

    task: Literal["classification"]
    """What is finetuned for."""
    corpus: str
    """Name of a corpus in `labelled`."""
    backbone: str
    """Name of a backbone. An encoder such as mBERT or XLM-R can be finetuned, but has no pretext phase."""
    lexicon: str | None = None
    """Name of a lexicon of given dictionaries (`mapping.mode: dictionary`), for a pretext phase."""
    into: list[str] | None = None
    """Languages that words are switched into; those of the test sets by default."""
    arms: list[str] | None = None
    """Those of the run's arms that this experiment takes; all by default."""
    codeswitch: CodeSwitch = field(default_factory=CodeSwitch)
    """Noise of the pretext task."""
    training: Training = field(default_factory=Training)
    """Training settings of the pretext phase."""
    classification: Classification = field(default_factory=Classification)
    """Settings of finetuning; the epochs stand in the arms."""
    scores: Significance = field(default_factory=Significance)
    """Tests of significance."""
    published: list[Published] = field(default_factory=list)
    """Published numbers of this experiment; the metric is `accuracy`, the test set `average` their mean."""
    grid: ClassVar[dict[str, list[Any]]] = {}
    """Nothing is chosen from a grid."""


def _task(experiment: Any) -> str:
    """The kind of an experiment's settings, raw or checked."""
    task = experiment.get("task") if isinstance(experiment, dict) else getattr(experiment, "task", None)
    return "classification" if task == "classification" else "translation"


AnyExperiment = Annotated[
    Annotated[Experiment, Tag("translation")] | Annotated[ClassificationExperiment, Tag("classification")], Discriminator(_task)
]


@dataclass
class Config:
    """The whole configuration."""

    run: Run
    """What is run; a recipe's lists replace these."""
    corpora: dict[str, Corpus]
    """Parallel corpora by name."""
    lexicons: dict[str, LexiconStages]
    """Ways to make a lexicon by name."""
    backbones: dict[str, Backbone]
    """Backbones by name."""
    arms: dict[str, list[Phase]]
    """Ways to train by name: phases, one after the other."""
    experiments: dict[str, AnyExperiment]
    """Experiments by name."""
    data: dict[str, Data] = field(default_factory=dict)
    """Data to acquire by name. `results/data/{name}` with its suffix is the file, which any setting that takes a file may name."""
    labelled: dict[str, Labelled] = field(default_factory=dict)
    """Texts with labels by name, for `task: classification`."""


# ---------------------------------------------------------------------------------------------
# validation


def load(raw: dict[str, Any]) -> Config:
    """The typed configuration; raises one `InputError` that lists everything that is wrong."""
    try:
        config = _adapter().validate_python(_with_grids(_with_rouge(with_published(spelt_out(raw)))))
    except ValidationError as error:
        raise InputError("config:\n" + "\n".join(f"  {_explain(problem)}" for problem in error.errors())) from None
    problems = list(_data_problems(config))
    if not problems:
        _find_data(config)
        problems = list(_problems(config))
    if problems:
        raise InputError("config:\n" + "\n".join(f"  {problem}" for problem in problems))
    return config


def check_files(paths: Iterable[Path | str]) -> None:
    """Refuse files that are no YAML, or in which a key stands twice in one block: YAML takes the last and says nothing."""
    problems = [problem for path in paths for problem in _repeated_keys(Path(path))]
    if problems:
        raise InputError("config:\n" + "\n".join(f"  {problem}" for problem in problems))


def _repeated_keys(path: Path) -> Iterator[str]:
    try:
        with open(path, encoding="utf-8") as file:
            waiting = [yaml.compose(file, Loader=yaml.SafeLoader)]
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise InputError(f"{path}: cannot be read as YAML: {error}") from None
    if not isinstance(waiting[0], yaml.MappingNode):
        raise InputError(f"{path}: has no keys at its top level")
    visited: set[int] = set()
    while waiting:
        node = waiting.pop()
        if id(node) in visited or not isinstance(node, yaml.CollectionNode):
            continue
        visited.add(id(node))  # an alias may lead back
        if isinstance(node, yaml.SequenceNode):
            waiting += node.value
            continue
        lines: dict[str, int] = {}
        for key, value in node.value:
            name, line = str(key.value), key.start_mark.line + 1
            if name in lines:
                yield f"{path}, line {line}: {name!r} stands here and in line {lines[name]}; keep one of the two"
            lines.setdefault(name, line)
            waiting.append(value)


def spelt_out(raw: dict[str, Any]) -> dict[str, Any]:
    """`raw` with one definition for each combination of the values that a definition's `each` lists.

    `experiments: {"{other}-en": {each: {other: [de, tr]}, source: "{other}", …}}` defines `de-en` and `tr-en`;
    `each: [{source: de, target: en}, {source: en, target: de}]` lists the combinations themselves. A
    definition of one of these names is laid over what `each` makes, a second `each` over the first. In `run.experiments` the names may have
    the wildcards of a shell. Raises `InputError` where an `each` is malformed or makes a name twice.
    """
    if not isinstance(raw, dict):
        return raw
    spelt = {section: _spelt_section(section, blocks) if section in _DEFINITIONS else blocks for section, blocks in raw.items()}
    run, experiments = spelt.get("run"), spelt.get("experiments")
    if isinstance(run, dict) and isinstance(run.get("experiments"), list) and isinstance(experiments, dict):
        names: list[Any] = []
        for name in run["experiments"]:
            alike = [name]
            if set("*?[") & set(str(name)) and not (alike := [each for each in fnmatch.filter(experiments, name) if each not in names]):
                known = ", ".join(map(str, experiments))
                raise InputError(f"config:\n  run.experiments: {name!r} is like no experiment, or no further one; there is {known}")
            names += alike
        spelt["run"] = {**run, "experiments": names}
    return spelt


_DEFINITIONS = ("data", "corpora", "labelled", "lexicons", "backbones", "experiments")
"""The sections in which a definition may have an `each`."""


def _spelt_section(section: str, blocks: Any) -> Any:
    if not isinstance(blocks, dict):
        return blocks
    made: dict[str, Any] = {}
    for name, block in blocks.items():
        if not isinstance(block, dict) or "each" not in block:
            continue
        where, each = f"{section}.{name}.each", block["each"]
        if not (points := _points(each)):
            raise InputError(
                f"config:\n  {where}: wants lists of values by name, like {{other: [de, tr]}}, or a list of such values, got {each!r}"
            )
        rest = {key: value for key, value in block.items() if key != "each"}
        names = [_filled_in(name, point) for point in points]
        if twice := next((own for own in names if names.count(own) > 1), None):
            raise InputError(
                f"config:\n  {where}: makes {twice!r} twice; the name must tell them apart, as with {{{next(iter(points[0]))}}} in it"
            )
        for own, point in zip(names, points, strict=True):
            made[own] = _laid_over(made.get(own), _filled_in(rest, point))
    others = {name: block for name, block in blocks.items() if not (isinstance(block, dict) and "each" in block)}
    return {**made, **{name: _laid_over(made[name], block) if name in made else block for name, block in others.items()}}


def _points(each: Any) -> list[dict[str, Any]]:
    """What `each` lists: all combinations of its lists, or its own mappings; nothing if it is neither."""
    if isinstance(each, dict) and all(isinstance(values, list) for values in each.values()):
        return [dict(zip(each, values, strict=True)) for values in itertools.product(*each.values())]
    if isinstance(each, list) and all(isinstance(point, dict) and point.keys() == each[0].keys() for point in each):
        return each
    return []


def _filled_in(value: Any, point: dict[str, Any]) -> Any:
    """`value` with `{key}` replaced by the point's value in all strings; a string that is nothing else takes its type, too."""
    if isinstance(value, dict):
        return {_filled_in(key, point): _filled_in(item, point) for key, item in value.items()}
    if isinstance(value, list):
        return [_filled_in(item, point) for item in value]
    if not isinstance(value, str):
        return value
    for key, replacement in point.items():
        if value == f"{{{key}}}":
            return replacement
        value = value.replace(f"{{{key}}}", str(replacement))
    return value


def _laid_over(below: Any, above: Any) -> Any:
    if not (isinstance(below, dict) and isinstance(above, dict)):
        return above
    return {**below, **{key: _laid_over(below.get(key), value) for key, value in above.items()}}


def with_published(raw: dict[str, Any]) -> dict[str, Any]:
    """`raw` with the published numbers of experiments that name a file for them; raises `InputError` where it cannot be read."""
    experiments = raw.get("experiments") if isinstance(raw, dict) else None
    if not isinstance(experiments, dict):
        return raw
    read = {
        name: {**block, "published": _published_in(block["published"], name)}
        if isinstance(block, dict) and isinstance(block.get("published"), str)
        else block
        for name, block in experiments.items()
    }
    return {**raw, "experiments": read}


def _published_in(path: str, experiment: str) -> list[dict[str, Any]]:
    try:
        with open(resource(path), encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file, delimiter="\t"))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"config:\n  experiments.{experiment}.published: {path} cannot be read: {error}") from None
    if not rows or "experiment" not in rows[0]:
        raise InputError(f"config:\n  experiments.{experiment}.published: {path} has no column `experiment`, or no rows")
    own = [row for row in rows if row.pop("experiment") == experiment]
    return [{key: value for key, value in row.items() if value} for row in own]


def _with_rouge(raw: dict[str, Any]) -> dict[str, Any]:
    """`raw` with ROUGE as what experiments in summarisation measure and choose by, where they do not say."""
    experiments = raw.get("experiments") if isinstance(raw, dict) else None
    if not isinstance(experiments, dict):
        return raw
    defaults = {"scores": {"metrics": [*ROUGES]}, "training": {"dev_metric": "ROUGE-L"}, "choice": {"by": "dev_rouge"}}
    filled = {}
    for name, block in experiments.items():
        if isinstance(block, dict) and block.get("task") == "summarisation":
            own = {key: block.get(key, {}) for key in defaults}
            block = {**block, **{key: {**defaults[key], **own[key]} if isinstance(own[key], dict) else own[key] for key in defaults}}
        filled[name] = block
    return {**raw, "experiments": filled}


def _with_grids(raw: dict[str, Any]) -> dict[str, Any]:
    """`raw` with the lists in experiments' `training` moved to their `grid`; what is malformed stays for the validation."""
    experiments = raw.get("experiments") if isinstance(raw, dict) else None
    if not isinstance(experiments, dict):
        return raw
    moved = {}
    for name, block in experiments.items():
        training = block.get("training") if isinstance(block, dict) else None
        lists = {key: value for key, value in training.items() if _is_grid(key, value)} if isinstance(training, dict) else {}
        if lists and _task(block) != "classification":
            first = {key: value[0] for key, value in lists.items()}
            grid = {**(block.get("grid") or {}), **{key: value for key, value in lists.items() if len(value) > 1}}
            block = {**block, "training": {**training, **first}, "grid": grid}
        moved[name] = block
    return {**raw, "experiments": moved}


def _is_grid(key: str, value: Any) -> bool:
    """A list in place of a value; of lists, where the value is a list itself."""
    return isinstance(value, list) and bool(value) and (get_origin(_TRAINING_TYPES.get(key)) is not tuple or isinstance(value[0], list))


_TRAINING_TYPES = get_type_hints(Training, include_extras=True)


def grid_points(experiment: Experiment) -> list[dict[str, Any]]:
    """The combinations of the grid's values; none without a grid."""
    combinations = itertools.product(*experiment.grid.values())
    return [dict(zip(experiment.grid, values, strict=True)) for values in combinations] if experiment.grid else []


@functools.cache
def _adapter() -> TypeAdapter:
    for kind in _dataclasses(Config):
        kind.__pydantic_config__ = {"extra": "forbid", "use_attribute_docstrings": True, "allow_inf_nan": False}
    return TypeAdapter(Config)


def _dataclasses(kind: Any) -> list[type]:
    """`kind` and every dataclass that its fields lead to, innermost first."""
    found: dict[type, None] = {}

    def visit(t: Any) -> None:
        if dataclasses.is_dataclass(t) and t not in found:
            for hint in get_type_hints(t).values():
                visit(hint)
            found[t] = None
        for part in get_args(t):
            visit(part)

    visit(kind)
    return list(found)


def _explain(problem: dict[str, Any]) -> str:
    loc = problem["loc"]
    if loc[:1] == ("experiments",):
        loc = (*loc[:2], *loc[3:])  # without the kind of experiment, which is no key
    where = ".".join(str(part) for part in loc)
    if problem["type"] == "unexpected_keyword_argument":
        key = str(problem["loc"][-1])
        known = sorted({f.name for kind in _dataclasses(Config) for f in dataclasses.fields(kind)})
        near = difflib.get_close_matches(key, known, n=1, cutoff=0.6)
        return f"{where}: unknown key" + (f", did you mean {near[0]!r}?" if near else "")
    if problem["type"] == "missing":
        return f"{where}: is missing"
    return f"{where}: {problem['msg'][0].lower()}{problem['msg'][1:]}, got {problem['input']!r}"


def _problems(config: Config):
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
        or not all(0 <= seed < 2**32 for seed in config.run.seeds)
    ):
        yield f"run.seeds: {config.run.seeds} must be different whole numbers from 0 to 2³² − 1, at least one"
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
                yield from (f"arms.{name}.training.{_explain(problem)}" for problem in error.errors())
    totals = {name: _length(config.arms[name]) for name in config.run.arms if name in config.arms}
    if len(set(totals.values())) > 1:
        yield (
            "run.arms: all arms need the same number of updates in all (of epochs, where the task counts those), "
            f"or the comparison means nothing: {totals}"
        )
    made = {data_file(config, name): name for name in config.data}
    for where, path in _paths(config):
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
            problems = _classification_problems if is_classification(config.experiments[name]) else _experiment_problems
            yield from problems(f"experiments.{name}", config.experiments[name], config)


def is_classification(experiment: Experiment | ClassificationExperiment) -> bool:
    """Whether an experiment's task is classification."""
    return isinstance(experiment, ClassificationExperiment)


def translations(config: Config) -> dict[str, Experiment]:
    """The experiments that are no classification."""
    return {name: experiment for name, experiment in config.experiments.items() if not is_classification(experiment)}


def arms_of(config: Config, experiment: Experiment | ClassificationExperiment) -> list[str]:
    """The arms of the run that an experiment takes."""
    chosen = experiment.arms if is_classification(experiment) else None
    return [arm for arm in config.run.arms if chosen is None or arm in chosen]


def _length(phases: list[Phase]) -> str:
    """What must be the same for all arms: updates of all phases, or epochs of the last."""
    if phases and phases[-1].epochs is not None:
        return f"{phases[-1].epochs} epochs"
    return f"{sum(phase.updates or 0 for phase in phases)} updates"


# data


def data_file(config: Config, name: str) -> str:
    """Where acquired data are."""
    return f"results/data/{name}{suffix(config.data[name])}"


def data_used(config: Config) -> list[str]:
    """Names of the data that the run reads, those that others are joined from among them."""
    corpora = {config.experiments[name].corpus for name in config.run.experiments}
    left_out = {f"{section}.{name}" for section in ("corpora", "labelled") for name in getattr(config, section).keys() - corpora}
    left_out |= {f"experiments.{name}" for name in config.experiments.keys() - set(config.run.experiments)}
    read = {path for where, path in _paths(config) if ".".join(where.split(".")[:2]) not in left_out}
    used = [name for name in config.data if data_file(config, name) in read]
    return list(dict.fromkeys([*used, *(other for name in used for other in config.data[name].join)]))


def _sources(corpus: Corpus) -> dict[str, Source]:
    return {"train": corpus.train, "dev": corpus.dev, **{f"test.{name}": source for name, source in corpus.test.items()}}


def _find_data(config: Config) -> None:
    """Put the file and columns of acquired data in place of their names."""
    for corpus in config.corpora.values():
        for source in _sources(corpus).values():
            if source.data:
                source.file = data_file(config, source.data)
                source.columns = columns_of(config.data[source.data]) or source.columns


def _data_problems(config: Config) -> Iterator[str]:
    for name, corpus in config.corpora.items():
        for part, source in _sources(corpus).items():
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


def _paths(config: Config) -> Iterator[tuple[str, str]]:
    """Every file that the configuration names, and where."""
    for name, corpus in config.corpora.items():
        for part, source in (("train", corpus.train), ("dev", corpus.dev), *((f"test.{n}", s) for n, s in corpus.test.items())):
            yield from ((f"corpora.{name}.{part}", path) for path in source.paths())
    for name, labelled in config.labelled.items():
        for part, source in {"train": labelled.train, "dev": labelled.dev, **labelled.test}.items():
            yield from ((f"labelled.{name}.{part}", path) for path in [source.file] if path)
    for name, lexicon in config.lexicons.items():
        for kind in ("vectors", "dictionary", "gold"):
            yield from ((f"lexicons.{name}.{kind}", path) for path in getattr(lexicon, kind).values())
    for name, experiment in translations(config).items():
        yield from ((f"experiments.{name}.representation.text", path) for path in experiment.representation.text.values())
    for name, backbone in config.backbones.items():
        yield from ((f"backbones.{name}.small.text", path) for path in (backbone.small.text.values() if backbone.small else ()))


def _corpus_problems(where: str, corpus: Corpus):
    for code in corpus.languages:
        try:
            language(code)
        except InputError as error:
            yield f"{where}.languages: {error}"
    if corpus.languages[0] == corpus.languages[1]:
        yield f"{where}.languages: {list(corpus.languages)} is one language twice"
    if not corpus.test:
        yield f"{where}.test: names no test set"
    for name in corpus.test:
        if name == "dev" or not _is_name(name):
            yield f"{where}.test.{name}: a test set cannot be called dev, and its name has letters, digits, - and _ only"
    for part, source in (("train", corpus.train), ("dev", corpus.dev), *((f"test.{n}", s) for n, s in corpus.test.items())):
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
    for part, source in (("train", labelled.train), ("dev", labelled.dev), *((f"test.{n}", s) for n, s in labelled.test.items())):
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
    if not labelled.test:
        yield f"{where}.test: names no test set"
    for name in labelled.test:
        if name == "average" or not _is_name(name):
            yield f"{where}.test.{name}: a test set cannot be called average, and its name has letters, digits, - and _ only"


def labelled_languages(config: Config, experiment: ClassificationExperiment) -> list[str]:
    """The languages of a classification's texts, that of the training text first."""
    labelled = config.labelled[experiment.corpus]
    return list(dict.fromkeys([labelled.language, *(source.language or labelled.language for source in labelled.test.values())]))


def switched_into(config: Config, experiment: ClassificationExperiment) -> list[str]:
    """The languages that a classification's pretext task switches words into."""
    own, *tested = labelled_languages(config, experiment)
    return [code for code in dict.fromkeys(tested if experiment.into is None else experiment.into) if code != own]


def given_dictionary(lexicon: LexiconStages, code: str, other: str) -> str | None:
    """The key of the dictionary of two languages, whichever comes first in it."""
    return next((pair for pair in (f"{code}-{other}", f"{other}-{code}") if pair in lexicon.dictionary), None)


def _classification_problems(where: str, experiment: ClassificationExperiment, config: Config):
    yield from _undefined(f"{where}.corpus", experiment.corpus, config.labelled)
    yield from _undefined(f"{where}.backbone", experiment.backbone, config.backbones)
    for arm in experiment.arms or ():
        yield from _undefined(f"{where}.arms", arm, dict.fromkeys(config.run.arms))
    if not (arms := arms_of(config, experiment)):
        yield f"{where}.arms: none of the run's arms, {config.run.arms}, is among them"
    phases = [(arm, phase) for arm in arms for phase in config.arms.get(arm, [])]
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
    for pair in sorted(pairs):
        if mode in ("semi_supervised", "supervised", "dictionary") and pair not in lexicon.dictionary:
            yield f"lexicons.{name}.dictionary: mapping.mode {mode} needs one for {pair!r}"
        for code in pair.split("-") if mode == "mapped" else ():
            if code not in lexicon.vectors:
                yield f"lexicons.{name}.vectors: mapping.mode mapped needs the mapped vectors of {code!r}"


def lexicons_used(config: Config, experiment: Experiment | ClassificationExperiment) -> list[str]:
    """The experiment's lexicon, and those that phases of its arms name instead."""
    phases = [phase for arm in arms_of(config, experiment) for phase in config.arms.get(arm, [])]
    return [name for name in dict.fromkeys([experiment.lexicon, *(phase.lexicon for phase in phases)]) if name]


def lexicon_corpus(config: Config, experiment: Experiment, name: str) -> str:
    """The corpus that the experiment's lexicon `name` is learnt from."""
    return config.lexicons[name].corpus or experiment.corpus


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
        yield from _undefined(f"{where}.training", key, _TRAINING_TYPES)
        if key == "updates":
            yield f"{where}.training.updates: stands in the arms, all of the same sum; it cannot be chosen"
        if not values:
            yield f"{where}.grid.{key}: is empty"
        for value in values if key in _TRAINING_TYPES else ():
            try:
                TypeAdapter(_TRAINING_TYPES[key]).validate_python(value)
            except ValidationError as error:
                yield f"{where}.training.{key}: {error.errors()[0]['msg'].lower()}, got {value!r}"
        for arm in config.run.arms:
            if any(phase.data == "task" and key in phase.training for phase in config.arms.get(arm, [])):
                yield f"arms.{arm}: sets {key}, which {where} chooses from {values}; every arm must have the same choice"
    smallest = min([experiment.training.bleu_sentences, *experiment.grid.get("bleu_sentences", [])])
    if experiment.grid and experiment.choice.by != "dev_loss" and not smallest:
        yield f"{where}.choice.by: {experiment.choice.by} needs training.bleu_sentences above 0; or choose by dev_loss"


def _experiment_problems(where: str, experiment: Experiment, config: Config):
    yield from _grid_problems(where, experiment, config)
    for arm in config.run.arms:
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


def zero_shot_tests(config: Config, name: str) -> list[str]:
    """Test sets of other experiments in the run that `name` translates without having learnt their source, as `{other}@{testset}`."""
    own, known = config.experiments[name], translations(config)
    others = {other: known[other] for other in config.run.experiments if config.run.zero_shot and other in known and other != name}
    return [
        f"{other}@{testset}"
        for other, experiment in others.items()
        if (experiment.task, experiment.target, experiment.backbone) == (own.task, own.target, own.backbone)
        and experiment.source != own.source
        for testset in config.corpora[experiment.corpus].test
    ]


def documents_of(config: Config, name: str) -> bool:
    """Whether the text of an experiment is documents."""
    return not is_classification(own := config.experiments[name]) and config.corpora[own.corpus].documents is not None


def _undefined(where: str, name: str, defined: dict[str, Any]):
    if name not in defined:
        near = difflib.get_close_matches(name, defined, n=1)
        yield f"{where}: {name!r} is not defined" + (
            f", did you mean {near[0]!r}?" if near else f"; there is {', '.join(defined) or 'nothing'}"
        )


def phase_training(experiment: Experiment, phase: Phase, point: dict[str, Any] | None = None) -> Training:
    """The training settings of one phase: the experiment's, those of a point of its grid over them, the phase's over both."""
    merged = {**dataclasses.asdict(experiment.training), **(point or {}), **phase.training, "updates": phase.updates}
    return TypeAdapter(Training).validate_python(merged)


def schema() -> dict[str, Any]:
    """The JSON schema of `config.yaml`."""
    made = {"$schema": "https://json-schema.org/draft/2020-12/schema", **_adapter().json_schema()}
    # an experiment's training values may be lists; no other's may
    training = copy.deepcopy(made["$defs"]["Training"])
    for name, value in training["properties"].items():
        about = {key: value.pop(key) for key in ("title", "description", "default") if key in value}
        training["properties"][name] = {**about, "anyOf": [value, {"type": "array", "items": value}]}
    made["$defs"]["TrainingGrid"] = training
    made["$defs"]["Experiment"]["properties"]["training"]["$ref"] = "#/$defs/TrainingGrid"
    numbers = made["$defs"]["Experiment"]["properties"]["published"]
    about = {key: numbers.pop(key) for key in ("title", "description", "default") if key in numbers}
    made["$defs"]["Experiment"]["properties"]["published"] = {**about, "anyOf": [numbers, {"type": "string"}]}
    each = {
        "description": "One definition for each combination of these values, which replace their names in braces in all that stands here.",
        "anyOf": [
            {"type": "object", "additionalProperties": {"type": "array", "minItems": 1}},
            {"type": "array", "items": {"type": "object"}, "minItems": 1},
        ],
    }
    for section in _DEFINITIONS:
        block = made["properties"][section]["additionalProperties"]
        for kind in block.get("oneOf", [block]):
            made["$defs"][kind["$ref"].rpartition("/")[2]]["properties"]["each"] = each
    return made


if __name__ == "__main__":
    json.dump(schema(), sys.stdout, indent=1)
    sys.stdout.write("\n")
