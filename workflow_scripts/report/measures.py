"""What the scores of a task are called in the report, and the trivial baseline that they are compared with."""

from collections.abc import Callable
from typing import NamedTuple

from workflow_scripts.evidence import answers
from workflow_scripts.report.study import Study
from workflow_scripts.tasks import labelling


class Measure(NamedTuple):
    """What a task's scores are called, and what they are compared with."""

    metric: str
    """The score that stands for the others, as scores.json and scores.tsv have it."""
    name: str
    title: str
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
    loss: str = "nats per example"
    """What the loss on the dev set is counted in."""
    same_for_all_seeds: Callable[[str], bool] = lambda arm: False
    """Whether an arm is scored only once, under the first seed."""


def _classification(study: Study) -> Measure:
    guess = "the most frequent label"
    return Measure(
        metric="accuracy",
        name="accuracy",
        title="Accuracy",
        note=" in per cent",
        others=("macro_f1",),
        interval="Wilson's 95 % interval",
        trivial=guess.removeprefix("the "),
        trivially=f"always {guess} of the test set",
        signature=guess.removeprefix("the "),
        guess=f"always answering with {guess}",
    )


def _labelling(study: Study) -> Measure:
    metric = labelling.leading(study.settings.labelling, study.text.labels)
    name, title, note = {
        "accuracy": ("accuracy", "Accuracy", " of tags in per cent"),
        "f1": ("F1", "F1", " of spans in per cent (seqeval, in its default mode)"),
    }[metric]
    return Measure(
        metric=metric,
        name=name,
        title=title,
        note=note,
        others=tuple(other for other in ("accuracy", "f1", "precision", "recall") if other != metric),
        interval="the 95 % interval (bootstrap over sentences)",
        trivial="word list",
        trivially="each word has the tag that it most often has in the training text, any other word the most frequent tag",
        signature="most frequent tag of each word in the training text",
        guess="giving each word the tag that it most often has in the training text, whatever stands around it,",
        loss="nats per word",
    )


RANKINGS = {"ndcg": "nDCG", "ndcg_10": "nDCG@10", "mrr": "MRR"}
"""Score of a ranking → what it is called."""
NAMES = {"f1": "F1", "em": "exact match", "f1_mlqa": "F1", "em_mlqa": "exact match", **RANKINGS}
"""What a score is called, where its name in scores.tsv is another."""


def _ranking(study: Study) -> Measure:
    metric = study.settings.ranking.metric
    return Measure(
        metric=metric,
        name=RANKINGS[metric],
        title=RANKINGS[metric],
        note=", times 100; the gain of a document is its grade, and queries with one document are left out, as in XGLUE",
        others=tuple(other for other in RANKINGS if other != metric),
        interval="the 95 % interval (bootstrap over queries)",
        trivial="random ranking",
        trivially="the expected value over all orders of the documents",
        signature="expected value of a random ranking",
        guess="a random ranking",
        loss="nats per document" if study.settings.ranking.loss == "grades" else "squared error per document",
    )


def _retrieval(study: Study) -> Measure:
    mines = study.text.mines
    if mines:
        named, note = ("f1", "F1", "F1"), " of mined pairs in per cent; the threshold is chosen on dev text"
        trivially = "the expected value of giving each sentence any other"
    else:
        named, note = ("accuracy", "accuracy", "Accuracy"), " in per cent: the nearest sentence is the translation"
        trivially = "one in as many as there are sentences"
    metric, name, title = named
    return Measure(
        metric=metric,
        name=name,
        title=title,
        note=note,
        others=("precision", "recall") if mines else ("backwards",),
        interval="the 95 % interval (bootstrap over sentences)",
        trivial="random choice",
        trivially=trivially,
        signature="expected value of a random choice",
        guess="a random choice",
        # a backbone is the same for all seeds
        same_for_all_seeds=lambda arm: bool(study.settings.models[arm].backbone),
    )


def _answering(study: Study) -> Measure:
    metric = study.settings.answering.metric
    name = NAMES[metric]
    counted = "MLQA" if metric.endswith("_mlqa") else "SQuAD"
    return Measure(
        metric=metric,
        name=name,
        title=name[:1].upper() + name[1:],
        note=f" of answers in per cent, as {counted} counts it",
        others=tuple(other for other in answers.SCORES if other != metric),
        interval="the 95 % interval (bootstrap over questions)",
        trivial="first sentence",
        trivially="the answer is the first sentence of the passage",
        signature="first sentence of the passage",
        guess="answering with the first sentence of the passage",
        loss="nats per end of a span",
    )


MEASURES: dict[str, Callable[[Study], Measure]] = {
    "classification": _classification,
    "labelling": _labelling,
    "answering": _answering,
    "ranking": _ranking,
    "retrieval": _retrieval,
}
"""Task → what its scores are called."""


def measure(study: Study) -> Measure:
    """What the scores of an experiment are called."""
    return MEASURES[study.settings.task](study)


def seeds_scored(study: Study, arm: str) -> list[int]:
    """The seeds under which an arm is scored: all, or the first alone where it is one and the same model for all of them."""
    return study.seeds[:1] if measure(study).same_for_all_seeds(arm) else study.seeds
