"""ranking: a model learns how well documents answer queries in one language, and ranks documents in others.

As in XGLUE's web page ranking a document is graded by itself (pointwise). The model reads query and document as a pair and classifies it
by its grade. The document's score is the expected grade. With ``loss: regression`` it gives the score at once. mBART
reads pairs as BART does, mBERT and XLM-R in their own format (`head_model`). The commands are those of
`head`; scores are nDCG, nDCG@10 and MRR, beside those of a random ranking.
"""

from __future__ import annotations

import importlib.metadata
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import numpy as np
import torch

from workflow_scripts.evidence import ranking_scores
from workflow_scripts.evidence.average import scores_beside
from workflow_scripts.number_types import AboveZero, Positive
from workflow_scripts.tasks.entry import Measure
from workflow_scripts.tasks.head_model import Part, load_text_head, of_whole_texts, summed_loss, summed_over_rows
from workflow_scripts.tasks.head_settings import TextHeadSettings
from workflow_scripts.tasks.head_task import About, Answered, head_task
from workflow_scripts.tasks.plan import Plan
from workflow_scripts.text.examples import Example


@dataclass
class Ranking(TextHeadSettings):
    """Settings of finetuning."""

    batch_size: Positive = 32
    """Pairs of query and document per update."""
    learning_rate: AboveZero = 2e-5
    """Peak learning rate."""
    loss: Literal["grades", "regression"] = "grades"
    """What the head learns. `grades`: it classifies the grade; the score is the expected grade. `regression`: it predicts the score with
    the squared error."""
    metric: Literal["ndcg", "ndcg_10", "mrr"] = "ndcg"
    """Main score, which chooses checkpoints. XGLUE uses `ndcg`."""
    relevant: AboveZero = 1.0
    """Smallest grade of a relevant document, for MRR."""
    choose_by: Literal["score", "loss"] = "score"
    """Dev result that early stopping and the choice of the checkpoint use."""


def problems(plan: Plan) -> Iterator[str]:
    """A least relevant grade that all documents have, or none."""
    grades, relevant = plan.text.labels if plan.text else [], plan.settings.ranking.relevant
    try:
        values = sorted({float(grade) for grade in grades})
    except ValueError:
        return  # which the checks of the text report
    if len(values) > 1 and not values[0] < relevant <= values[-1]:
        yield (
            f"{plan.where}.ranking.relevant: {relevant:g} must be more than the least of the grades, {values[0]:g}, and at most the "
            f"greatest, {values[-1]:g}; otherwise all documents are relevant, or none"
        )


# ---------------------------------------------------------------------------------------------
# answers and scores


def answered(part: Part, logits: torch.Tensor, about: About) -> Answered:
    """A score for each document."""
    numbers = torch.tensor([number for _, (number,) in part.rows])
    scores = document_scores(logits, about.labels).tolist()
    if not logits.isfinite().all():
        # no ranking can be made of these; by its loss the training is stopped as one that has diverged
        return Answered(scores, lambda: math.nan, error=lambda: math.nan)
    loss = loss_of(about.labels, about.settings.loss)
    return Answered(scores, lambda: float(loss(SimpleNamespace(logits=logits), numbers)))


def measure(settings: Any, text: Any) -> Measure:
    """What the scores are called."""
    metric = settings.ranking.metric
    return Measure(
        metric=metric,
        note=", times 100; the gain of a document is its grade, and queries with one document are left out, as in XGLUE",
        others=tuple(other for other in ranking_scores.SCORES if other != metric),
        interval="the 95 % interval (bootstrap over queries)",
        trivial="random ranking",
        trivially="the expected value over all orders of the documents",
        signature="expected value of a random ranking",
        guess="a random ranking",
        unit="",
        loss="nats per document" if settings.ranking.loss == "grades" else "squared error per document",
    )


def score(table: list[Example], given: Sequence[float], settings: Ranking) -> dict[str, Any]:
    """All scores of a test set in per cent, and those of a random ranking (`chance`), which are expected values.

    `low` and `high` limit the 95 % interval of the leading score, from queries drawn anew (bootstrap).
    """
    metric = settings.metric
    counts = counts_of(table, given, settings.relevant)
    trivial = counts_of(table, [0.0] * len(table), settings.relevant).sum(axis=0)
    return {
        "examples": len(table),
        "queries": len(counts),
        "queries_left_out": sum(1 for _ in groupby(table, key=lambda example: example.query)) - len(counts),
        **scores_beside(counts, trivial, ranking_scores.SCORES, metric, "random"),
        "signature": f"scikit-learn {importlib.metadata.version('scikit-learn')}, ndcg_score (linear gain; ties averaged)",
    }


# ---------------------------------------------------------------------------------------------
# grades and scores


def load_ranker(folder: Path, grades: list[str] | None, settings: Ranking, seed: int, from_scratch: bool = False):
    """The model in `folder` with a head for `grades` (with `regression` for one number), drawn from `seed`; without `grades`, its own."""
    labels = grades if grades is None or settings.loss == "grades" else ["score"]
    return load_text_head(folder, labels, settings, seed, from_scratch)


def loss_of(grades: list[str], kind: str):
    """The loss per document of a whole update: cross-entropy of the grades' numbers, or the squared error of the grades themselves."""
    if kind == "grades":
        return summed_loss
    values = torch.tensor([float(grade) for grade in grades])

    def squared_error(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.mse_loss(logits.flatten(), values.to(labels.device)[labels], reduction="none")

    return summed_over_rows(squared_error)


def document_scores(logits: torch.Tensor, grades: Sequence[str]) -> torch.Tensor:
    """A score of each document: the expected grade, or the head's only output (documents × grades, or × 1), in float64.

    Near the highest grade float32 would round the expected grades of many documents to the same number.
    """
    if logits.shape[1] == 1:
        return logits[:, 0].double()
    return logits.double().softmax(dim=1) @ torch.tensor([float(grade) for grade in grades], dtype=torch.float64)


def counts_of(table: Sequence[Example], given: Sequence[float], relevant: float) -> np.ndarray:
    """What is counted in each query of a table (queries × counts), whose documents were `given` scores."""
    queries = ranking_scores.ranked_queries([example.query for example in table])
    grades = [[float(table[row].label) for row in rows] for rows in queries]
    return ranking_scores.count(grades, [[given[row] for row in rows] for rows in queries], relevant)


RANKING = head_task(
    "ranking",
    Ranking,
    label="ranking",
    about="Ranking of documents by how well they answer a query; finetuned in one language, tested in others.",
    answers="scores",
    named="grades",
    unit="query",
    more_problems=problems,
    network=load_ranker,
    predictions=of_whole_texts(answered),
    counts=lambda examples, given, code, about: counts_of(examples, given, about.settings.relevant),
    scores=ranking_scores.SCORES,
    score=lambda examples, given, code, about: score(examples, given, about.settings),
    compared=lambda example, given: (float(example.label), given),
    # in full, since rounding would make ties
    answer=lambda example, line: float(line),
    loss=lambda about: loss_of(about.labels, about.settings.loss),
    words={"learns": "grade documents by how well they answer a query", "inputs": "queries", "outputs": "grades", "row": "documents"},
    parts={"ranked": ("Rankings side by side", "ranked")},
    templates=("ranking",),
    measure=measure,
)
