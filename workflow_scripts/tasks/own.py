"""own: a task of a plugin's own: texts, or pairs of texts, with labels, a head that reads them, a loss, answers and scores.

::

    task(
        "similarity",
        label="similarity of texts",
        ...
        loss=lambda outputs, truth: (outputs[:, 0] - truth) ** 2,
        answer=lambda outputs: outputs[:, 0].tolist(),
        counts=lambda truth, given: [(a == b, 1) for a, b in zip(truth, given)],
        scores={"accuracy": lambda sums: sums[0] / sums[1]},
    )

Each function gets what its parameters ask for by name (`PARAMETERS`). All else, from rows of ids to tests of significance and the report,
is that of our own tasks with a head (`head_task`).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, make_dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from workflow_scripts import plugins, registry
from workflow_scripts.errors import InputError
from workflow_scripts.evidence.average import Score, scores_beside
from workflow_scripts.evidence.label_metric import checked_score, register_label_metric
from workflow_scripts.tasks.entry import Measure
from workflow_scripts.tasks.head_model import Part, load_text_head, of_whole_texts, summed_over_rows
from workflow_scripts.tasks.head_settings import TextHeadSettings
from workflow_scripts.tasks.head_task import About, Answered, head_task
from workflow_scripts.tasks.plan import Plan
from workflow_scripts.text.examples import Example

_OF_THE_HEAD = {
    "outputs": "what the head gives, a tensor of examples × labels, or × `width`",
    "labels": "all labels, in order; none where the text has no list of them",
    "settings": "the settings of the head",
}
PARAMETERS = {
    "loss": {
        **_OF_THE_HEAD,
        "truth": "the right label of each example, of the type `kind`; of numbers a tensor",
        "numbers": "the number of each example's right label, a tensor",
        "labels": "all labels, in order; where the text has no list of them, those of its examples",
    },
    "answer": _OF_THE_HEAD,
    "counts": {
        "truth": "the right label of each example, of the type `kind`",
        "given": "the answer to each example, of the type `kind`",
        "language": "the code of the texts' language",
        "settings": "the settings of the head",
    },
    "trivial": {
        "texts": "the texts of a test set",
        "pairs": "the second text of each, empty where there is none",
        "truth": "their right labels, of the type `kind`",
        "learnt": "the labels of the training text, of the type `kind`",
        "language": "the code of the texts' language",
    },
}
"""What the functions of a task may ask for, by the names of their parameters."""


@dataclass
class OwnHead(TextHeadSettings):
    """Settings of finetuning that the tasks of plugins share."""

    choose_by: Literal["score", "loss"] = "score"
    """Dev result that early stopping and the choice of the checkpoint use."""


def task(
    name: str,
    *,
    label: str,
    learns: str,
    outputs: str,
    loss: Callable[..., Any],
    answer: Callable[..., Sequence[Any]],
    counts: Callable[..., Any],
    scores: Mapping[str, Score],
    trivial: Callable[..., Sequence[Any]],
    trivially: str,
    called: Mapping[str, str] | None = None,
    inputs: str = "texts",
    row: str = "examples",
    kind: Callable[[str], Any] = str,
    width: int | None = None,
    unit: Literal["text", "query"] = "text",
    network: Callable[..., Any] | None = None,
    settings: type | None = None,
    source: str = "",
) -> None:
    """Register a task. Raises `InputError` for functions that ask for what there is not, and as `registry.register` does.

    Args:
        name: What configurations call it, and with _ for - the key of its settings in an experiment.
        label: What the report calls it.
        learns: What a model learns, as "say how similar two texts are".
        outputs: What the answers are called, in the plural.
        loss: → the loss of each example (a tensor), in training and on the dev set.
        answer: → an answer for each example: a text without tab or line break, or a number.
        counts: → what is counted in each example (examples × counts), of whose sums the scores are made.
        scores: Score → function of the sums of the counts; larger is better. The first stands for the others. They are shown times 100.
        trivial: → the answers of a trivial baseline, which needs no model.
        trivially: How the trivial baseline answers, as "the share of words in both texts".
        called: What the scores are called in the report, where not by their names.
        inputs: What is read, in the plural.
        row: What the examples are called, in the plural.
        kind: `float` where labels and answers are numbers. With a `width` any number may be a label, and the text needs no list of labels.
        width: How many numbers the head gives of an example; one for each label by default.
        unit: What has a label in the text: a text or pair of texts, or the documents of a query.
        network: Folder of a model, labels (None: the model's own), settings, seed, whether weights are drawn at random → a network of
            transformers. By default it has the head that classifies whole texts.
        settings: A dataclass with further settings of the head, each of which has a default.
        source: Where it was published.
    """
    if not name.replace("-", "_").isidentifier():
        raise InputError(f"task {name!r}: names are letters, digits, - and _ only, and begin with a letter")
    if not scores:
        raise InputError(f"task {name!r}: `scores` is empty; name a score, and the function of the sums of the counts that makes it")
    if (main := next(iter(scores))) in ("bleu", "loss", "rouge"):
        raise InputError(
            f"task {name!r}: the first of `scores` is {main}, which means another dev result in a choice from a grid; rename it"
        )
    functions = {"loss": loss, "answer": answer, "counts": counts, "trivial": trivial}
    asked = {each: plugins.asked(f"task {name!r}: `{each}`", "it", function, PARAMETERS[each]) for each, function in functions.items()}
    head = _settings(name, settings)
    safe_scores = {each: checked_score(f"task {name!r}: `{each}`", score) for each, score in scores.items()}
    own = OwnFunctions(name, functions, asked, safe_scores, kind, width, row, trivially)
    for each in [each for each in scores if each not in registry.entries("label_metric")]:
        register_label_metric(each, label=(called or {}).get(each, each))
    head_task(
        name,
        head,
        label=label,
        source=source,
        about=f"{label[:1].upper()}{label[1:]}: finetuned in one language, tested in others.",
        answers="scores",
        unit=unit,
        more_problems=own.problems,
        any_number=kind is float and bool(width),
        baseline_learns="learnt" in asked["trivial"],
        network=network or own.load,
        predictions=of_whole_texts(own.answered),
        counts=own.counted,
        scores=safe_scores,
        score=own.scored,
        leading=lambda settings, labels: own.metric,
        loss=lambda about: summed_over_rows(lambda logits, numbers: own.losses(logits, numbers, about)),
        words={"learns": learns, "inputs": inputs, "outputs": outputs, "row": row},
        measure=lambda settings, text: own.measure(),
        compared=lambda example, given: (kind(example.label), own.read(given)),
    )


@dataclass(frozen=True, eq=False)
class OwnFunctions:
    """The functions of a plugin's task in the form in which `HeadTask` calls its own. Where one fails, an `InputError` says how."""

    name: str
    functions: Mapping[str, Callable[..., Any]]
    """`loss`, `answer`, `counts` and `trivial`, as the plugin has them."""
    asked: Mapping[str, tuple[str, ...]]
    """The parameters of each."""
    scores: Mapping[str, Score]
    kind: Callable[[str], Any]
    width: int | None
    row: str
    trivially: str

    @property
    def metric(self) -> str:
        """The score that stands for the others."""
        return next(iter(self.scores))

    def call(self, function: str, given: dict[str, Any], made: Callable[[Any], Any] = lambda returned: returned) -> Any:
        """What is `made` of what a function returns, which gets what it asks for of what is `given`."""
        values = {parameter: given[parameter] for parameter in self.asked[function]}
        about = functools.partial("it asks for {}".format, ", ".join(values))
        return plugins.call(f"task {self.name!r}: `{function}`", lambda: made(self.functions[function](**values)), {}, about)

    def read(self, answer: Any) -> Any:
        """An answer as its `kind`. Raises `InputError` where it is none."""
        try:
            return self.kind(str(answer))
        except ValueError:
            kind = self.kind.__name__
            said = f"task {self.name!r}: `answer` returned {str(answer)[:60]!r}, which is no {kind}; return a list or a tensor of them"
            raise InputError(said) from None

    def losses(self, logits: Any, numbers: Any, about: About) -> Any:
        """The loss of each example, of what the head gives (examples × labels) and the numbers of the right labels."""
        given = {"outputs": logits, "numbers": numbers, "labels": about.numbered, "settings": about.settings}
        if "truth" in self.asked["loss"]:
            values = [self.kind(label) for label in about.numbered]
            # of numbers a tensor
            right = logits.new_tensor(values)[numbers] if self.kind is float else [values[number] for number in numbers.tolist()]
            given["truth"] = right
        return self.call("loss", given)

    def answered(self, part: Part, logits: Any, about: About) -> Answered:
        """`HeadTask.predictions`, of a part and what the head gives."""
        given = {"outputs": logits, "labels": about.labels, "settings": about.settings}
        answers = self.call("answer", given, lambda made: list(made.tolist() if hasattr(made, "tolist") else made))
        if len(answers) != len(part.examples):
            raise InputError(f"task {self.name!r}: `answer` returned {len(answers)} answers to {len(part.examples)} {self.row}")
        if not logits.isfinite().all():
            # by its loss the training is stopped as one that has diverged; a plugin's counts need not know of that
            return Answered(answers, lambda: math.nan, error=lambda: math.nan)
        numbers = torch.tensor([number for _, (number,) in part.rows])
        return Answered(answers, lambda: float(self.losses(logits, numbers, about).mean()))

    def counted(self, examples: list[Example], given: list[Any], code: str, about: About) -> np.ndarray:
        """`HeadTask.counts`."""
        truth = [self.kind(example.label) for example in examples]
        read = [self.read(each) for each in given]
        values = {"truth": truth, "given": read, "language": code, "settings": about.settings}
        found = self.call("counts", values, lambda rows: np.asarray(rows, dtype=float))
        if found.ndim != 2 or len(found) != len(examples):
            raise InputError(
                f"task {self.name!r}: `counts` returned {found.shape}; it returns a row of counts for each of {len(examples)} {self.row}"
            )
        return found

    def scored(self, examples: list[Example], given: list[Any], code: str, about: About) -> dict[str, Any]:
        """`HeadTask.score`: the scores, beside those of the trivial baseline."""
        texts = {"texts": [example.text for example in examples], "pairs": [example.pair for example in examples], "language": code}
        truth, learnt = ([self.kind(example.label) for example in some] for some in (examples, about.learnt))
        simple = self.call("trivial", {**texts, "truth": truth, "learnt": learnt}, list)
        chance = self.counted(examples, simple, code, about).sum(axis=0)
        beside = scores_beside(self.counted(examples, given, code, about), chance, self.scores, self.metric, "trivial")
        return {"examples": len(examples), **beside}

    def measure(self) -> Measure:
        """What its scores are called in the report."""
        return Measure(
            metric=self.metric,
            note=", times 100",
            others=tuple(self.scores)[1:],
            interval=f"the 95 % interval (bootstrap over {self.row})",
            trivial="trivial baseline",
            trivially=self.trivially,
            signature=self.trivially,
            guess=f"the trivial baseline ({self.trivially})",
            unit="",
            loss="loss per example",
        )

    def problems(self, plan: Plan) -> Iterator[str]:
        """Labels of the text that are none of the task's `kind`."""
        for each in plan.text.labels if plan.text else ():
            try:
                self.kind(each)
            except ValueError:
                yield f"labelled.{plan.corpus}.labels: task {self.name} needs labels that are numbers, got {each!r}"

    def load(self, folder: Path, labels: list[str] | None, settings: Any, seed: int, from_scratch: bool) -> Any:
        """`HeadTask.network`, for tasks that bring none: the head for whole texts, of the task's `width`."""
        given = [f"output {number}" for number in range(self.width)] if self.width and labels is not None else labels
        return load_text_head(folder, given, settings, seed, from_scratch)


def _settings(name: str, own: type | None) -> type[OwnHead]:
    """The settings of the head: those that all such tasks share, and the plugin's own."""
    if own is None:
        own = type("NoSettings", (), {})
    elif not is_dataclass(own):
        raise InputError(f"task {name!r}: `settings` is a dataclass, got {own!r}")
    elif taken := {each.name for each in fields(own)} & {"device", "precision", "choose_by"}:
        raise InputError(f"task {name!r}: its settings have `{min(taken)}`, which all tasks have; choose another name")
    called = "".join(word.capitalize() for word in name.replace("-", "_").split("_"))
    return make_dataclass(
        f"{called}Settings", [], bases=(own, OwnHead), namespace={"__doc__": "Settings of finetuning.", "__module__": own.__module__}
    )
