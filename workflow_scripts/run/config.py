"""config: the typed configuration, assembled from the settings of all stages.

`config.yaml` is read by Snakemake (which merges `--configfile` over it), written out by `definitions` and checked
here: unknown keys are refused with the nearest known one, values by type, and by `consistency` what types cannot tell. The
JSON schema in `config/schema.json`, with which editors complete keys, is generated from the same
dataclasses: ``python -m workflow_scripts.run.config > config/schema.json``.
"""

import copy
import dataclasses
import difflib
import functools
import itertools
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal, get_args, get_type_hints

from pydantic import Discriminator, Tag, TypeAdapter, ValidationError

from workflow_scripts.evidence.comet import Comet
from workflow_scripts.evidence.representation import Representation
from workflow_scripts.evidence.scores import Scores
from workflow_scripts.evidence.word_accuracy import WordAccuracy
from workflow_scripts.lexicon.embeddings import Embeddings
from workflow_scripts.lexicon.lexicon import Lexicon
from workflow_scripts.lexicon.mapping import Mapping
from workflow_scripts.models.decoding import Decoding
from workflow_scripts.noise.codeswitch import CodeSwitch
from workflow_scripts.run.loading import DEFINITIONS, written_out
from workflow_scripts.stage import InputError
from workflow_scripts.tasks.classification import Classification, Significance
from workflow_scripts.text.acquisition import Data, columns_of, suffix
from workflow_scripts.text.corpus import Corpus
from workflow_scripts.text.labelled import Labelled
from workflow_scripts.training.backbone import Backbone
from workflow_scripts.training.choice import Choice
from workflow_scripts.training.training import Training


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
    """sacreBLEU's name of the tokeniser; of a ROUGE, what counted it on which tokens."""
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
    arms: list[str] | None = None
    """Those of the run's arms that this experiment takes; all by default. The first of the run's that is among them is its baseline."""
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
# reading


def load(raw: dict[str, Any]) -> Config:
    """The typed configuration; raises one `InputError` that lists everything that is wrong."""
    try:
        config = _adapter().validate_python(written_out(raw))
    except ValidationError as error:
        raise InputError("config:\n" + "\n".join(f"  {explain(problem)}" for problem in error.errors())) from None
    from workflow_scripts.run.consistency import data_problems, problems  # which knows the types above

    found = list(data_problems(config))
    if not found:
        _find_data(config)
        found = list(problems(config))
    if found:
        raise InputError("config:\n" + "\n".join(f"  {problem}" for problem in found))
    return config


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


def explain(problem: dict[str, Any]) -> str:
    """One of pydantic's errors in our words."""
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
    if problem["type"] == "literal_error" and loc[-1] == "task":
        return f"{where}: must be translation, summarisation or classification, got {problem['input']!r}"
    return f"{where}: {problem['msg'][0].lower()}{problem['msg'][1:]}, got {problem['input']!r}"


def _find_data(config: Config) -> None:
    """Put the file and columns of acquired data in place of their names."""
    for corpus in config.corpora.values():
        for source in sources_of(corpus).values():
            if source.data:
                source.file = data_file(config, source.data)
                source.columns = columns_of(config.data[source.data]) or source.columns


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
    for section in DEFINITIONS:
        block = made["properties"][section]["additionalProperties"]
        for kind in block.get("oneOf", [block]):
            made["$defs"][kind["$ref"].rpartition("/")[2]]["properties"]["each"] = each
    return made


# ---------------------------------------------------------------------------------------------
# what a configuration means


def is_classification(experiment: Experiment | ClassificationExperiment) -> bool:
    """Whether an experiment's task is classification."""
    return isinstance(experiment, ClassificationExperiment)


def translations(config: Config) -> dict[str, Experiment]:
    """The experiments that are no classification."""
    return {name: experiment for name, experiment in config.experiments.items() if not is_classification(experiment)}


def arms_of(config: Config, experiment: Experiment | ClassificationExperiment) -> list[str]:
    """The arms of the run that an experiment takes."""
    return [arm for arm in config.run.arms if experiment.arms is None or arm in experiment.arms]


def lexicons_used(config: Config, experiment: Experiment | ClassificationExperiment) -> list[str]:
    """The experiment's lexicon, and those that phases of its arms name instead."""
    phases = [phase for arm in arms_of(config, experiment) for phase in config.arms.get(arm, [])]
    return [name for name in dict.fromkeys([experiment.lexicon, *(phase.lexicon for phase in phases)]) if name]


def lexicon_corpus(config: Config, experiment: Experiment, name: str) -> str:
    """The corpus that the experiment's lexicon `name` is learnt from."""
    return config.lexicons[name].corpus or experiment.corpus


def given_dictionary(lexicon: LexiconStages, code: str, other: str) -> str | None:
    """The key of the dictionary of two languages, whichever comes first in it."""
    return next((pair for pair in (f"{code}-{other}", f"{other}-{code}") if pair in lexicon.dictionary), None)


def labelled_languages(config: Config, experiment: ClassificationExperiment) -> list[str]:
    """The languages of a classification's texts, that of the training text first."""
    labelled = config.labelled[experiment.corpus]
    return list(dict.fromkeys([labelled.language, *(source.language or labelled.language for source in labelled.test.values())]))


def switched_into(config: Config, experiment: ClassificationExperiment) -> list[str]:
    """The languages that a classification's pretext task switches words into."""
    own, *tested = labelled_languages(config, experiment)
    return [code for code in dict.fromkeys(tested if experiment.into is None else experiment.into) if code != own]


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


def grid_points(experiment: Experiment) -> list[dict[str, Any]]:
    """The combinations of the grid's values; none without a grid."""
    combinations = itertools.product(*experiment.grid.values())
    return [dict(zip(experiment.grid, values, strict=True)) for values in combinations] if experiment.grid else []


def phase_training(experiment: Experiment, phase: Phase, point: dict[str, Any] | None = None) -> Training:
    """The training settings of one phase: the experiment's, those of a point of its grid over them, the phase's over both."""
    merged = {**dataclasses.asdict(experiment.training), **(point or {}), **phase.training, "updates": phase.updates}
    return TypeAdapter(Training).validate_python(merged)


def data_file(config: Config, name: str) -> str:
    """Where acquired data are."""
    return f"results/data/{name}{suffix(config.data[name])}"


def data_used(config: Config) -> list[str]:
    """Names of the data that the run reads, those that others are joined from among them."""
    corpora = {config.experiments[name].corpus for name in config.run.experiments}
    left_out = {f"{section}.{name}" for section in ("corpora", "labelled") for name in getattr(config, section).keys() - corpora}
    left_out |= {f"experiments.{name}" for name in config.experiments.keys() - set(config.run.experiments)}
    read = {path for where, path in paths_of(config) if ".".join(where.split(".")[:2]) not in left_out}
    used = [name for name in config.data if data_file(config, name) in read]
    return list(dict.fromkeys([*used, *(other for name in used for other in config.data[name].join)]))


def sources_of(corpus: Corpus | Labelled) -> dict[str, Any]:
    """Where the parts of a corpus, or of labelled text, come from."""
    return {"train": corpus.train, "dev": corpus.dev, **{f"test.{name}": source for name, source in corpus.test.items()}}


def paths_of(config: Config) -> Iterator[tuple[str, str]]:
    """Every file that the configuration names, and where."""
    for name, corpus in config.corpora.items():
        for part, source in sources_of(corpus).items():
            yield from ((f"corpora.{name}.{part}", path) for path in source.paths())
    for name, labelled in config.labelled.items():
        for part, source in sources_of(labelled).items():
            yield from ((f"labelled.{name}.{part}", path) for path in [source.file] if path)
    for name, lexicon in config.lexicons.items():
        for kind in ("vectors", "dictionary", "gold"):
            yield from ((f"lexicons.{name}.{kind}", path) for path in getattr(lexicon, kind).values())
    for name, experiment in translations(config).items():
        yield from ((f"experiments.{name}.representation.text", path) for path in experiment.representation.text.values())
    for name, backbone in config.backbones.items():
        yield from ((f"backbones.{name}.small.text", path) for path in (backbone.small.text.values() if backbone.small else ()))


if __name__ == "__main__":
    json.dump(schema(), sys.stdout, indent=1)
    sys.stdout.write("\n")
