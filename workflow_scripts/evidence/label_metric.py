"""label_metric: what a metric of answers is that are no text: labels, tags, spans, scores. The decorator `label_metric` registers one.

::

    @label_metric("balanced", label="balanced accuracy", score=lambda sums: mean_recall(sums))
    def balanced(truth, given, labels):
        return [[label == right for label in labels] + … for right, answer in zip(truth, given)]

The function counts something in each example of a test set. `score` makes the score of the sums of the counts, and it is shown times 100.
So tests of significance can draw examples anew. An experiment names such metrics in `metrics`; they are measured beside its task's own
scores. The tasks count these, and their names are registered below.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from workflow_scripts import plugins, registry
from workflow_scripts.errors import InputError
from workflow_scripts.evidence.counted import finite

PARAMETERS = {
    "truth": "what is right for each example: a label, the tags of a sentence, the texts of all right answers, or a grade",
    "given": "the answer to each example likewise; of a question one text",
    "labels": "all labels, in order; none where the text has no list of them",
    "language": "the code of the texts' language",
}
"""What the function of a metric may ask for, by the name of its parameter."""


@dataclass(frozen=True, kw_only=True)
class LabelMetric(registry.Entry):
    """An entry of the kind `label_metric`."""

    answers: tuple[str, ...] = ()
    """Which answers it measures, of `labels`, `tags`, `spans` and `scores` (`answers` of a task); all by default."""
    counts: Callable[..., Any] | None = None
    """A function of a test set that returns a row of counts for each example; None of a score that a task counts itself."""
    asked: tuple[str, ...] = ()
    """What it asks for."""
    score: Callable[[np.ndarray], float] | None = None
    """The sums of the counts → the score."""
    higher_is_better: bool = True
    """Whether a larger score is the better one; not so where errors are counted."""
    decimals: int = 2
    """How many decimals tables show."""


def register_label_metric(name: str, *, label: str = "", **about: Any) -> None:
    """Register a metric of answers; `about` are the fields of `LabelMetric`."""
    registry.register("label_metric", LabelMetric(name=name, label=label or name, **about))


def label_metric(
    name: str, *, score: Callable[[np.ndarray], float], answers: str | tuple[str, ...] = (), **about: Any
) -> Callable[[Callable], Callable]:
    """Register the function that is decorated, `LabelMetric.counts`, as a metric; `about` are the other fields of `LabelMetric`."""

    def registered(function: Callable) -> Callable:
        asked = plugins.asked(f"metric {name!r}", "a metric of labels", function, PARAMETERS)
        measured = (answers,) if isinstance(answers, str) else tuple(answers)
        register_label_metric(name, counts=function, asked=asked, score=score, answers=measured, **about)
        return function

    return registered


def score_label(name: str) -> str:
    """What the report calls a score."""
    return registry.entry("label_metric", name).label


def score_title(name: str) -> str:
    """The same where it begins a sentence."""
    label = score_label(name)
    return label if label[1:2].isupper() else label[:1].upper() + label[1:]  # nDCG is written so everywhere


def counted(metric: LabelMetric, truth: list[Any], given: list[Any], labels: list[str], language: str) -> np.ndarray:
    """What a metric counts in each example (examples × counts).

    Raises `InputError` for a score that tasks count themselves, and where the metric does not count a row for each example.
    """
    if metric.counts is None:
        raise InputError(f"metric {metric.name!r} is counted by tasks themselves; name metrics of plugins, or leave it out")
    known = {"truth": truth, "given": given, "labels": labels, "language": language}
    called = f"metric {metric.name!r}"
    about = functools.partial("{} examples in {}".format, len(truth), language)
    made = plugins.call(called, metric.counts, {each: known[each] for each in metric.asked}, about)
    try:
        found = np.asarray(made, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{called} returned {str(made)[:80]}; it returns a row of counts for each example") from None
    if found.ndim != 2 or len(found) != len(truth):
        shape = " × ".join(map(str, found.shape))
        raise InputError(f"{called} returned {shape} counts for {len(truth)} examples; it returns a row for each")
    return found


def in_per_cent(metric: LabelMetric, counts: np.ndarray) -> float:
    """The score of a test set, times 100. Raises `InputError` where it is no finite number."""
    return 100 * score_of(metric)(counts.sum(axis=0))


def score_of(metric: LabelMetric) -> Callable[[np.ndarray], float]:
    """What makes the score of the sums of a metric's counts; see `checked_score`."""
    assert metric.score, f"{metric.name} is counted by tasks"  # which `counted` refuses
    return checked_score(f"metric {metric.name!r}: `score`", metric.score)


def checked_score(called: str, score: Callable[[np.ndarray], float]) -> Callable[[np.ndarray], float]:
    """A plugin's score, which raises an `InputError` that says what it is `called` where it fails or is no finite number."""
    return lambda sums: plugins.call(called, finite(score), {"sums": sums}, lambda: f"sums {sums}")


# ---------------------------------------------------------------------------------------------
# the scores of our tasks

register_label_metric("accuracy")
register_label_metric("macro_f1", label="macro F1")
register_label_metric("precision")
register_label_metric("recall")
register_label_metric("f1", label="F1")
register_label_metric("em", label="exact match", source="Rajpurkar et al. 2016, section 6.1")
register_label_metric("f1_mlqa", label="F1", source="Lewis et al. 2020")
register_label_metric("em_mlqa", label="exact match", source="Lewis et al. 2020")
register_label_metric("ndcg", label="nDCG", source="Liang et al. 2020")
register_label_metric("ndcg_10", label="nDCG@10", source="Liang et al. 2020")
register_label_metric("mrr", label="MRR", source="Voorhees 1999")
register_label_metric("backwards", label="accuracy from target to source")
