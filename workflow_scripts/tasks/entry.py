"""entry: what a task is for rules, checks, preflight and report, by the name that an experiment's `task` gives.

The modules of the tasks register theirs by `register_task`; most of the entry of a task with a head is made by `head_task.head_task`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, NamedTuple, TypeVar

from workflow_scripts import registry
from workflow_scripts.config.experiments import AnyExperiment
from workflow_scripts.config.phases import Phase
from workflow_scripts.evidence.label_metric import score_label, score_title
from workflow_scripts.evidence.trivial import Kind

P = TypeVar("P")
"""The plan of an experiment (`plan.Plan`)."""
Parts = dict[str, tuple[str, str]]
"""The parts of an experiment's section in the report, in order: anchor (and template), title, who reads it (`section_parts.READERS`)."""


class MoreText(NamedTuple):
    """Training text that is learnt together with that of the experiment: two aligned files, and their languages."""

    source: str
    target: str
    languages: tuple[str, str]


class Measure(NamedTuple):
    """What the scores of a task that answers no text are called in the report, and the trivial baseline that they are compared with."""

    metric: str
    """The score that stands for the others, as scores.json and scores.tsv have it."""
    note: str
    """What follows the title in the caption of the table."""
    others: tuple[str, ...]
    """The other scores."""
    interval: str
    trivial: str
    """The trivial baseline."""
    trivially: str
    """How that answers."""
    signature: str
    """The same in scores.tsv."""
    guess: str
    """The same as the subject of a sentence."""
    unit: str = "%"
    """What stands behind the score; empty for one that is no share of anything, and is shown times 100."""
    loss: str = "nats per example"
    """What the loss on the dev set is counted in."""
    same_for_all_seeds: Callable[[str], bool] = lambda arm: False
    """Whether an arm is scored only once, under the first seed."""

    @property
    def name(self) -> str:
        """What the report calls the metric."""
        return score_label(self.metric)

    @property
    def title(self) -> str:
        """The same where it begins a sentence."""
        return score_title(self.metric)

    @property
    def axis(self) -> str:
        """What an axis, or a column, of the metric says."""
        return f"{self.name}, {self.unit or 'times 100'}"

    def with_unit(self, score: str) -> str:
        """A score in words with its unit, if it has one."""
        return f"{score} {self.unit}".rstrip()


@dataclass(frozen=True, kw_only=True)
class Task(registry.Entry, Generic[P]):
    """A task: everything that rules, checks, preflight and report ask of it. Functions take the plan of an experiment."""

    settings: type[AnyExperiment]
    """Its block in the configuration."""
    text: Literal["corpora", "labelled", "aligned"]
    """The section that its text comes from."""
    answers: Literal["text", "labels", "tags", "spans", "scores", "neighbours"]
    """What a line of a `.hyp` file is."""
    length: Literal["updates", "epochs", "none"]
    """What its arms count, and share. `none`: nothing is trained. The arms are then the models that the experiment names (`models`)."""
    languages: Callable[[P], list[str]]
    """The languages of its texts: source and target, or that of the training text and those of the test sets."""
    trained_languages: Callable[[P], list[str]]
    """The languages that it is trained in."""
    training_text: Callable[[P], list[str]] = lambda plan: []
    """Files of plain sentences that it is trained on: what a tokeniser is made from, or a vocabulary is cut down to."""
    held_out_text: Callable[[P], list[str]]
    """Files of plain sentences that no backbone may be trained on."""
    lexicons: Callable[[P], list[str]] = lambda plan: []
    """Folders of the lexicons that its words are switched by."""
    results: Callable[[P], set[str]]
    """All files that the report reads of it."""
    problems: Callable[[P], Iterator[str]]
    """Problems of its block that types cannot express."""
    phases: Callable[[P, list[str]], Iterator[Any]] = lambda plan, arms: iter(())
    """Every phase of some of its arms that is trained (`experiment.Trained`)."""
    rules: dict[str, str]
    """Each of its rules that runs on a device → the key, under the experiment's block, that lowers its memory."""
    defaults: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Raw settings that replace the general defaults for this task."""
    sides: Callable[[P, str], list[tuple[str, str]]] | None = None
    """Of a task that answers text: the two aligned files of a part (train, dev, test/…), each with its language. One is read, the other is
    to be written."""
    more_text: Callable[[P, Phase], list[MoreText]] | None = None
    """Of a task that answers text: what a task phase learns from besides the text of the experiment."""
    documents: bool = False
    """Whether its texts are documents, whose sentences are kept apart."""
    trivial: Kind = "first_sentence"
    """Of a task whose answers are text: its trivial baseline."""
    grid: str = ""
    """The key of the experiment's block in which a list in place of a value makes a grid to choose from; none does by default."""
    words: dict[str, str]
    """What the report calls its inputs and outputs: `learns` (to …), `inputs`, `outputs`; `row` of text with labels; of a task that answers
    text `rows`, `pairs`, `pair`, `input`, `output`."""
    parts: Parts
    """The parts of an experiment's section in the report."""
    head: str = ""
    """The head (`Family.heads`) that is finetuned for it (`head_task.HeadTask`); none by default."""
    named: str = ""
    """Of a task with a head: what the settings of finetuning call the labels; empty where the text has no list of them."""
    any_number: bool = False
    """Of a task with a head: whether a label may be any number, where the text has no list of labels."""
    asked: bool = False
    """Of a task with a head: whether a decoder can be asked for its labels as it is, by the likelihood of their words (`verbaliser`)."""
    baseline_learns: bool = False
    """Of a task with a head: whether the trivial baseline is learnt from the training text."""
    templates: tuple[str, ...] = ()
    """Folders of templates that are used instead of the general ones where they have a template for a part; the first that has one."""
    template: str = ""
    """Of a task that answers text: how a decoder is asked for it, if not as for a translation (`models.templates`)."""
    measure: Callable[[Any, Any], Measure] | None = None
    """Of a task that answers no text: settings of an experiment, and its text → what its scores are called."""

    @property
    def has_head(self) -> bool:
        """Whether a head is finetuned for it."""
        return bool(self.head)


def register_task(task: Task) -> None:
    """Register a task. Raises `InputError` where its name is no name, or is taken."""
    registry.register("task", task)
