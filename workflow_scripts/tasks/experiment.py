"""experiment: what all tasks share: phases, the settings of an experiment, what they mean, and the form of a task's entry in the table.

An experiment is a task on a text with a backbone. An arm is a way to train, a list of phases: at most one pretext
phase, then the task itself. The table of tasks is in `table`.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

from pydantic import TypeAdapter

from workflow_scripts.names import undefined
from workflow_scripts.noise.codeswitch import CodeSwitch
from workflow_scripts.training.backbone import chain_of
from workflow_scripts.training.settings import Training

if TYPE_CHECKING:
    from workflow_scripts.run.config import Config, LexiconStages


@dataclass
class Phase:
    """One phase of an arm."""

    data: Literal["codeswitch", "mask", "random", "released", "task"]
    """What is trained on: a restore task on noised text, or the task itself."""
    updates: int | None = None
    """Updates of the weights."""
    epochs: int | None = None
    """Instead of updates, for the task phase of a task that counts epochs: how often all examples are seen."""
    translations: bool = False
    """For the task phase of a task that counts epochs: learn from the text's `translations` as well (translate-train-all)."""
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


@dataclass(kw_only=True)
class AnyExperiment:
    """What the settings of an experiment have in all tasks, also in those that train nothing."""

    corpus: str
    """Name of its text: of one of `corpora`, for tasks with labels of one of `labelled`, for retrieval of one of `aligned`."""
    published: list[Published] = field(default_factory=list)
    """Published numbers of this experiment, or a TSV file with them: its columns are these settings, and `experiment`."""


@dataclass(kw_only=True)
class Experiment(AnyExperiment):
    """What the settings of an experiment have in all tasks that train."""

    head: ClassVar[str] = ""
    """The key of the settings by which a head is finetuned; empty where the task is trained by `training`."""
    backbone: str
    """Name of a backbone."""
    arms: list[str] | None = None
    """Those of the run's arms that this experiment takes; all by default."""
    codeswitch: CodeSwitch = field(default_factory=CodeSwitch)
    """Noise of the pretext task."""
    training: Training = field(default_factory=Training)
    """Training settings of its phases; `updates` stands in the arms."""


class Trained(NamedTuple):
    """One phase of training as preflight sees it: what its memory and disk follow from."""

    rule: str
    """The rule that trains it."""
    where: str
    """The key of the configuration that its settings stand under."""
    backbone: str
    batch_tokens: int
    """Tokens of an update, padding included."""
    micro_batch_tokens: int | None
    """Tokens that go through a device at once; all of an update where nothing is set."""
    lowers_memory: str
    """What to set, and to what, where memory is short."""
    precision: str
    device: str
    chunked_loss: bool
    """Whether the scores of all pieces of the vocabulary are never held at once."""
    checkpoints: int
    """How many are on the disk at a time."""
    times: float
    """How often it is trained: for each seed, and each point of a grid."""


def of_training(rule: str, where: str, backbone: str, training: Training, times: float) -> Trained:
    """A phase that is trained by `Training` settings."""
    kept = {"last": 2, "best": 3, "average": max(2, training.averaged), "average_best": training.averaged + 2}[training.checkpoint]
    return Trained(
        rule,
        where,
        backbone,
        training.batch_tokens,
        training.micro_batch_tokens,
        f"{where}.micro_batch_tokens to less than {training.micro_batch_tokens or training.batch_tokens}",
        training.precision,
        training.device,
        training.loss != "plain",
        min(kept, 1 + training.updates // training.evaluate_every),
        times,
    )


class Task(NamedTuple):
    """A task: everything that rules, checks and preflight ask of it. Functions take the configuration and an experiment's name."""

    settings: type[AnyExperiment]
    """Its block in the configuration."""
    text: Literal["corpora", "labelled", "aligned"]
    """The section that its text comes from."""
    answers: Literal["text", "labels", "tags", "spans", "scores", "neighbours"]
    """What a line of a `.hyp` file is."""
    length: Literal["updates", "epochs", "none"]
    """What its arms count, and share. `none`: nothing is trained. The arms are then the models that the experiment names (`models`)."""
    languages: Callable[[Config, str], list[str]]
    """The languages of its texts: source and target, or that of the training text and those of the test sets."""
    trained_languages: Callable[[Config, str], list[str]]
    """The languages that it is trained in."""
    training_text: Callable[[Config, str], list[str]]
    """Files of plain sentences that it is trained on: what a tokeniser is made from, or a vocabulary is cut down to."""
    held_out_text: Callable[[Config, str], list[str]]
    """Files of plain sentences that no backbone may be trained on."""
    lexicons: Callable[[Config, str], list[str]]
    """Folders of the lexicons that its words are switched by."""
    results: Callable[[Config, str], set[str]]
    """All files that the report reads of it."""
    problems: Callable[[Config, str], Iterator[str]]
    """Problems of its block that types cannot express."""
    phases: Callable[[Config, str], Iterator[Trained]]
    """Every phase that is trained."""
    rules: dict[str, str]
    """Each of its rules that runs on a device → the key, under the experiment's block, that lowers its memory."""
    defaults: dict[str, dict[str, Any]] = {}  # noqa: RUF012 (a named tuple's default, which nothing changes)
    """Raw settings that replace the general defaults for this task."""
    sides: Callable[[Config, str, str], list[tuple[str, str]]] | None = None
    """Of a task that answers text: the two aligned files of a part (train, dev, test/…), what is read and what is to be written, each
    with its language."""
    grid: str = ""
    """The key of the experiment's block in which a list in place of a value makes a grid to choose from; none does by default."""


# ---------------------------------------------------------------------------------------------
# what an experiment means


def arms_of(config: Config, experiment: Any) -> list[str]:
    """The arms that an experiment compares: those of the run that it takes, or where nothing is trained the models that it names."""
    if not trains(experiment):
        return list(experiment.models)
    return [arm for arm in config.run.arms if experiment.arms is None or arm in experiment.arms]


def trains(experiment: Any) -> bool:
    """Whether an experiment trains its arms; one that does not names `models` that are there, or that others train."""
    return not hasattr(experiment, "models")


def arm_phases(config: Config, experiment: Any, arm: str) -> list[Phase]:
    """The phases of an experiment's arm; none where nothing is trained, or where the arm is not defined."""
    return config.arms.get(arm, []) if trains(experiment) else []


def phases_of(config: Config, experiment: Any) -> list[tuple[str, Phase]]:
    """The phases of an experiment's arms, each with the arm's name; arms that are not defined have none."""
    return [(arm, phase) for arm in arms_of(config, experiment) for phase in arm_phases(config, experiment, arm)]


def backbones_of(config: Config, experiment: Any) -> list[str]:
    """The backbones that an experiment starts from: its own, or those of the models that it names, each once."""
    if trains(experiment):
        return [experiment.backbone]
    named = (model.backbone or config.experiments[model.experiment].backbone for model in experiment.models.values())
    return list(dict.fromkeys(named))


def lexicons_used(config: Config, experiment: Experiment) -> list[str]:
    """The experiment's lexicon, and those that phases of its arms name instead."""
    own = getattr(experiment, "lexicon", None)
    return [name for name in dict.fromkeys([own, *(phase.lexicon for _, phase in phases_of(config, experiment))]) if name]


def lexicon_corpus(config: Config, experiment: Experiment, name: str) -> str:
    """The corpus that the experiment's lexicon `name` is learnt from."""
    return config.lexicons[name].corpus or experiment.corpus


def given_dictionary(lexicon: LexiconStages, code: str, other: str) -> str | None:
    """The key of the dictionary of two languages, whichever comes first in it."""
    return next((pair for pair in (f"{code}-{other}", f"{other}-{code}") if pair in lexicon.dictionary), None)


def grid_of(experiment: Experiment) -> dict[str, list[Any]]:
    """The training values that are chosen on the dev set: key → candidates; empty where nothing is."""
    return getattr(experiment, "grid", {})


def grid_points(experiment: Experiment) -> list[dict[str, Any]]:
    """The combinations of the grid's values; none without a grid."""
    grid = grid_of(experiment)
    return [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())] if grid else []


def phase_training(experiment: Experiment, phase: Phase, point: dict[str, Any] | None = None) -> Training:
    """The training settings of one phase: the experiment's, those of a point of its grid over them, the phase's over both.

    This is the only place where they are put together: which learning rate a phase gets is decided here.
    """
    # where a head is finetuned, the grid is of its settings
    chosen = {} if experiment.head else point or {}
    merged = {**asdict(experiment.training), **chosen, **phase.training, "updates": phase.updates}
    return training_adapter().validate_python(merged)


@functools.cache
def training_adapter() -> TypeAdapter[Training]:
    """What checks training settings; it takes a while to build."""
    return TypeAdapter(Training)


# ---------------------------------------------------------------------------------------------
# problems of an experiment that do not depend on its task


def shared_problems(config: Config, name: str) -> Iterator[str]:
    """Arms and the arms of published numbers that are not defined, a pretext phase whose lexicon has another unit."""
    where, experiment = f"experiments.{name}", config.experiments[name]
    for arm in experiment.arms or ():
        yield from undefined(f"{where}.arms", arm, config.run.arms)
    if not arms_of(config, experiment):
        yield f"{where}.arms: none of the run's arms, {config.run.arms}, is among them"
    for number in experiment.published:
        yield from undefined(f"{where}.published: arm", number.arm, config.arms)


def backbone_problems(config: Config, name: str, codes: list[str], lengths: dict[str, int]) -> Iterator[str]:
    """What is wrong with an experiment's backbone for texts in the languages `codes`.

    `lengths` are the longest rows that settings beside `training` allow, by the settings' key.
    """
    where, experiment = f"experiments.{name}", config.experiments[name]
    yield from undefined(f"{where}.backbone", experiment.backbone, config.backbones)
    chain = chain_of(config.backbones, experiment.backbone)
    for each in chain:
        kind, block = config.backbones[each].kind, config.backbones[each].pretraining
        if not (config.backbones[each].model if kind == "hub" else block):
            yield f"backbones.{each}: kind {kind} needs `{'model' if kind == 'hub' else kind}`"
        if block:
            for code in [code for code in codes if code not in block.text]:
                yield f"backbones.{each}.{kind}.text: no text for {code!r}, which {where} needs; it has {list(block.text)}"
    origin = config.backbones[chain[-1]] if chain else None
    if origin and origin.kind == "small" and origin.small:
        positions = origin.small.max_positions
        lengths = {f"{where}.training": experiment.training.max_length, **lengths}
        for each in chain:
            if block := config.backbones[each].pretraining:
                lengths[f"backbones.{each}.{config.backbones[each].kind}.training"] = block.training.max_length
        for arm in arms_of(config, experiment):
            own = [phase.training.get("max_length") for phase in config.arms.get(arm, [])]
            lengths[f"arms.{arm}.training"] = max((length for length in own if isinstance(length, int)), default=0)
        for key, longest in lengths.items():
            if longest > positions:
                yield f"{key}.max_length: {longest} is more than the backbone's {positions} positions"
