"""head_task: what differs between tasks for which a head is finetuned on text with labels (`HeadTask`); `head` has their commands."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, make_dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from pydantic import Field

from workflow_scripts import registry
from workflow_scripts.errors import InputError
from workflow_scripts.evidence.average import Score, Significance
from workflow_scripts.tasks import crosslingual
from workflow_scripts.tasks.entry import Parts, Task, register_task
from workflow_scripts.tasks.finetuning import FinetuneSettings
from workflow_scripts.tasks.head_model import Part, Prefixes, Reader, summed_loss
from workflow_scripts.tasks.head_settings import HeadSettings
from workflow_scripts.tasks.plan import Plan
from workflow_scripts.tasks.verbaliser import Verbaliser
from workflow_scripts.text.examples import Example, read_table
from workflow_scripts.text.files import read_lines
from workflow_scripts.text.label_names import number_text
from workflow_scripts.training.ragged import same_choice


class About(NamedTuple):
    """What all functions of a task with a head are given."""

    settings: Any
    """The settings of the head."""
    labels: list[str]
    """All labels."""
    learnt: list[Example] = []  # noqa: RUF012 (a named tuple's default, which nothing changes)
    """The training text, for tasks whose trivial baseline learns from it (`Task.baseline_learns`)."""
    numbers: list[str] = []  # noqa: RUF012
    """The labels that the rows have, in order, where there is no list of `labels` (`Task.any_number`)."""

    @property
    def numbered(self) -> list[str]:
        """The labels in the order in which rows number them."""
        return self.labels or self.numbers


class Answered(NamedTuple):
    """What a model answers to a part."""

    answers: list[Any]
    """An answer for each example."""
    loss: Callable[[], float]
    outputs: Any = None
    """What the head gave, if the task writes it out."""
    error: Callable[[], float] | None = None
    """The error on the dev set, where it is not 1 − the score that the counts make."""
    notes: Mapping[str, Any] = MappingProxyType({})
    """What `scores.json` says of how the answers were found."""


@dataclass(frozen=True, kw_only=True)
class HeadTask(Task[Plan]):
    """A task for which a head is finetuned: what differs between such tasks."""

    key: str
    """The key of its settings in an experiment."""
    finetuning: type[HeadSettings]
    """Its settings."""
    finetune_settings: type[FinetuneSettings]
    """Settings of one call of `finetune`."""
    unit: str = "text"
    """What has a label in its text: a text, word, question or query."""
    head: str = "classification"
    """Its head, as families name it: `classification`, which may read the encoder alone, `labelling` or `answering`."""
    cut: bool = False
    """Whether an example that is too long becomes several rows."""
    reader: Callable[[Path, Any, str], Reader] = lambda folder, settings, language: Reader(
        folder, settings.max_length, language, Prefixes.of(settings)
    )
    """Folder of a model, settings, the language that it is to be finetuned in (empty: it was) → what reads examples for it; whole texts
    by default."""
    network: Callable[[Path, list[str] | None, Any, int, bool], Any]
    """Folder of a model, labels (None: it has its head), settings, seed, whether its weights are drawn at random → the network."""
    predictions: Callable[[Any, Any, list[Part], str, About], list[Answered]]
    """Network, reader, parts, precision → what the model answers to each part."""
    counts: Callable[[list[Example], list[Any], str, About], np.ndarray]
    """Examples, the answers to them, their language → what is counted, whose sums make the scores (examples × counts)."""
    scores: Mapping[str, Score]
    """Scores, each a function of the sums of the counts."""
    score: Callable[[list[Example], list[Any], str, About], dict[str, Any]]
    """Examples, the answers to them, their language → all that `scores.json` says of a test set, in per cent."""
    line: Callable[[Example, Any], str] = lambda example, answer: str(answer)
    """The line of a file of answers."""
    answer: Callable[[Example, str], Any] = lambda example, line: line
    """The answer that stands in a line. Raises `ValueError` where it is none for this example."""
    compared: Callable[[Example, Any], tuple[Any, Any]] = lambda example, answer: (example.label, answer)
    """What is right for an example, and the answer to it, as a metric compares them (`label_metric`)."""
    leading: Callable[[Any, list[str]], str] = lambda settings, labels: settings.metric
    """Settings and labels → the score that stands for the others."""
    loss: Callable[[About], Callable[..., Any]] = lambda about: summed_loss
    """The loss of an update, of the head's output and the labels."""
    beside: Callable[[Path, Part, Answered, Any, About], dict[str, Any]] = lambda path, part, answered, reader, about: {}
    """Writes more files beside `path`, which has no ending, and returns what `scores.json` says as well."""

    def labels_in(self, settings: Any) -> list[str]:
        """The labels that a call of `finetune` is given."""
        return getattr(settings, self.named) if self.named else []

    def read(self, path: Path, labels: list[str], number: int | None = None) -> list[Example]:
        """The examples of a table, at most `number` at random, the same for all seeds and arms. Raises as `read_table` does."""
        table = read_table(path, labels, self.unit)
        if self.any_number and not labels:
            table = [each._replace(label=number_text(each.label, f"{path}, line {each.line}")) for each in table]
        return [table[place] for place in same_choice(len(table), number)]

    def numbers_in(self, tables: Iterable[list[Example]], labels: list[str]) -> list[str]:
        """The numbers that are labels in some tables, the least first; none where there are `labels`, or no number may be one."""
        if labels or not self.any_number:
            return []
        return sorted({example.label for table in tables for example in table}, key=float)

    def read_answers(self, path: Path, examples: list[Example]) -> list[Any]:
        """The answers in a file, a line each. Raises `InputError` where they are not those to `examples`."""
        lines = list(read_lines(path))
        anew = "delete its folder and run the same command again"
        if len(lines) != len(examples):
            raise InputError(f"{path}: has {len(lines)} lines with {self.words['outputs']} for {len(examples)} {self.words['row']}; {anew}")
        try:
            return [self.answer(example, line) for example, line in zip(examples, lines, strict=True)]
        except ValueError as error:
            raise InputError(f"{path}: {error}; {anew}") from None


# ---------------------------------------------------------------------------------------------
# an entry

PARTS: Parts = {
    "run": ("What was run", "classified"),
    "scores": ("Scores", "answers"),
    "curves": ("Learning curves", "looks"),
    "lexicon": ("Dictionaries", "dictionaries"),
    "switched": ("Switched sentences", "switched"),
}
"""The parts of the report."""


def head_task(
    name: str,
    settings: type[HeadSettings],
    *,
    about: str,
    named: str = "labels",
    unit: str = "text",
    more_problems: Callable[[Plan], Iterator[str]] = lambda plan: iter(()),
    parts: Parts | None = None,
    templates: tuple[str, ...] = (),
    asked: bool = False,
    **more: Any,
) -> HeadTask:
    """Register a task with a head, and return its entry; `more` are other fields of it.

    Args:
        name: What configurations call the task, and the key of its `settings` in an experiment, with _ for -.
        settings: The settings of finetuning.
        about: What the settings of an experiment are, a sentence or two.
        named: See `Task`.
        unit: See `HeadTask`.
        more_problems: Problems of an experiment besides those that any has.
        parts: Those of the report that differ from `PARTS`, or come after them.
        templates: Folders of templates that go before those of all such tasks.
        asked: See `Task`.
    """
    key = name.replace("-", "_")

    def problems(plan: Plan) -> Iterator[str]:
        yield from crosslingual.problems(plan, unit)
        yield from _metric_problems(plan)
        yield from more_problems(plan)

    entry = HeadTask(
        name=name,
        settings=_experiment(name, key, settings, about, asked),
        finetune_settings=_finetune_settings(key, settings, named, asked),
        key=key,
        finetuning=settings,
        named=named,
        unit=unit,
        asked=asked,
        text="labelled",
        length="epochs",
        languages=crosslingual.languages,
        trained_languages=crosslingual.trained_languages,
        training_text=crosslingual.training_text,
        held_out_text=crosslingual.held_out_text,
        lexicons=crosslingual.lexicons,
        results=crosslingual.results,
        problems=problems,
        phases=crosslingual.phases,
        rules={"pretext": "training.micro_batch_tokens", "head_finetune": f"{key}.micro_batch"},
        grid=key,
        parts={**PARTS, **(parts or {})},
        templates=(*templates, "classification"),
        **more,
    )
    register_task(entry)
    return entry


def _experiment(name: str, key: str, settings: type[HeadSettings], about: str, asked: bool) -> type:
    """The class of the settings of an experiment of a task."""
    task: Any = Annotated[Literal[name], Field(description="Task of the experiment.")]
    tests: Any = Annotated[Significance, Field(description="Tests of significance.")]
    head: Any = Annotated[settings, Field(description="Settings of finetuning. The number of epochs stands in the arms.")]
    words: Any = Annotated[Verbaliser, Field(description="How a decoder is asked for labels in arms without training.")]
    made = make_dataclass(
        f"{_in_capitals(key)}Experiment",
        [
            ("task", task),
            (key, head, field(default_factory=settings)),
            ("scores", tests, field(default_factory=Significance)),
            *([("verbaliser", words, field(default_factory=Verbaliser))] if asked else []),
        ],
        bases=(crosslingual.Finetuned,),
        namespace={"head": key, "__doc__": about},
        kw_only=True,
    )
    # which Python 3.12 and newer take from here, whatever the namespace says
    made.__module__ = settings.__module__
    return made


def _finetune_settings(key: str, settings: type[HeadSettings], named: str, asked: bool) -> type[FinetuneSettings]:
    """The class of the settings of one call of a task's `finetune`."""
    fields: list[Any] = [(named, list[str])] if named else []
    fields += [(key, settings, field(default_factory=settings))]
    fields += [("shots", int | None, field(default=None)), ("verbaliser", Verbaliser | None, field(default=None))] if asked else []
    return make_dataclass(f"{_in_capitals(key)}FinetuneSettings", fields, bases=(FinetuneSettings,), kw_only=True)


def _in_capitals(key: str) -> str:
    """A key as the names of classes have it: `text_pairs` is `TextPairs`."""
    return "".join(word.capitalize() for word in key.split("_"))


def _metric_problems(plan: Plan) -> Iterator[str]:
    """Metrics that tasks count themselves, or that measure other answers than those of this one."""
    where, task = f"{plan.where}.metrics", plan.task
    for metric in [registry.entry("label_metric", each) for each in plan.settings.metrics]:
        if metric.counts is None:
            yield f"{where}: {metric.name} is counted by tasks themselves; name metrics of plugins, or leave it out"
        elif metric.answers and task.answers not in metric.answers:
            measured = ", ".join(metric.answers)
            yield f"{where}: {metric.name} measures {measured}, and the answers of {task.name} are {task.answers}"
