"""ranking: a model learns how well documents answer queries in one language, and ranks documents in others.

As in XGLUE's web page ranking a document is graded by itself (pointwise): the model reads query and document as a pair and classifies
it by its grade, and the document's score is the expected grade. With ``loss: regression`` it gives the score at once. mBART
reads pairs as BART does, mBERT and XLM-R in their own format (`heads`). The steps are commands:

``finetune``
    some epochs with the grades, with early stopping; goes on from checkpoints like `training`
``predict``
    a score for each document of all test sets, whatever their languages, in one process; nDCG, nDCG@10 and MRR of each test set,
    with their intervals and what a random ranking gets
``compare``
    tests of the arms' differences, on each test set and on average over them
"""

from __future__ import annotations

import importlib.metadata
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import torch

from workflow_scripts.device import pick_device, pick_precision
from workflow_scripts.evidence import ranking_scores
from workflow_scripts.evidence.average import Significance, compare_folders, scores_beside
from workflow_scripts.limits import AboveZero, Positive
from workflow_scripts.models.batches import Row
from workflow_scripts.stage import InputError, run, write_json
from workflow_scripts.tasks.crosslingual import Finetuned, crosslingual_task
from workflow_scripts.tasks.finetuning import Batches, Prepared, TextHeadSettings, Told, finetune_head, mean_of, some_of, with_choice
from workflow_scripts.tasks.heads import Reader, label_scores, load_text_head, summed_loss
from workflow_scripts.text.examples import Example, read_table
from workflow_scripts.text.files import read_lines, write_lines
from workflow_scripts.training.job import Job
from workflow_scripts.training.launching import launch

if TYPE_CHECKING:
    from workflow_scripts.run.config import Config


@dataclass
class Ranking(TextHeadSettings):
    """Settings of finetuning."""

    batch_size: Positive = 32
    """Pairs of query and document per update."""
    learning_rate: AboveZero = 2e-5
    """Peak of the learning rate."""
    loss: Literal["grades", "regression"] = "grades"
    """`grades`: the grade is classified, and the score is the expected grade. `regression`: the score is the head's output, by the
    squared error."""
    metric: Literal["ndcg", "ndcg_10", "mrr"] = "ndcg"
    """The score that stands for the others; XGLUE's is `ndcg`."""
    relevant: AboveZero = 1.0
    """The least grade of a relevant document, for MRR."""
    choose_by: Literal["score", "loss"] = "score"
    """What early stopping and the choice of the checkpoint go by, on the dev set."""


@dataclass(kw_only=True)
class Grading(Told):
    """What one call of `finetune` is told."""

    grades: list[str]
    """All grades."""
    ranking: Ranking = field(default_factory=Ranking)
    """Settings of the head and of its finetuning."""


@dataclass(kw_only=True)
class RankingExperiment(Finetuned):
    """Ranking of documents by how well they answer a query; finetuned in one language, tested in others."""

    head: ClassVar[str] = "ranking"
    task: Literal["ranking"]
    """What is finetuned for."""
    ranking: Ranking = field(default_factory=Ranking)
    """Settings of finetuning; the epochs stand in the arms."""
    scores: Significance = field(default_factory=Significance)
    """Tests of significance."""


def problems(config: Config, name: str) -> Iterator[str]:
    """What any such experiment may have wrong, and a least relevant grade that all documents have, or none."""
    yield from _SHARED.problems(config, name)
    experiment = config.experiments[name]
    grades = config.labelled[experiment.corpus].labels if experiment.corpus in config.labelled else []
    relevant = experiment.ranking.relevant
    try:
        values = sorted({float(grade) for grade in grades})
    except ValueError:
        return  # which is told with the text
    if len(values) > 1 and not values[0] < relevant <= values[-1]:
        yield (
            f"experiments.{name}.ranking.relevant: {relevant:g} must be more than the least of the grades, {values[0]:g}, and at most the "
            f"greatest, {values[-1]:g}; otherwise all documents are relevant, or none"
        )


_SHARED = crosslingual_task(RankingExperiment, key="ranking", answers="scores", rule="ranking_finetune", unit="query")
RANKING = _SHARED._replace(problems=problems)


# ---------------------------------------------------------------------------------------------
# steps


def finetune(job: Job, *, train: tuple[Path, ...], dev: tuple[Path, ...], settings: Grading) -> None:
    """Finetune a model to grade documents; see `Job` and `finetune_head`."""
    finetune_head(job, train, dev, settings, "ranking", prepare)


def prepare(job: Job, train: tuple[Path, ...], dev: tuple[Path, ...], settings: Grading) -> Prepared:
    """The model with its head, the text as rows, and how a look at the dev sets is made."""
    chosen, grades = settings.ranking, settings.grades
    reader = Reader(job.start, chosen.max_length, settings.language)
    rows: list[Row] = []
    for path, code in zip(train, settings.train_languages, strict=True):
        rows += reader.rows(some_of(read_table(path, grades), chosen.examples), code, grades)
    held_out = [read_table(path, grades) for path in dev]
    codes = settings.dev_languages
    dev_rows = [reader.rows(table, code, grades) for table, code in zip(held_out, codes, strict=True)]
    network = load_ranker(job.start, grades, chosen, job.seed, job.from_scratch)
    precision = pick_precision(chosen.precision, pick_device(chosen.device))
    loss = loss_of(grades, chosen.loss)

    def look_at(table: list[Example], rows: list[Row]) -> dict[str, float]:
        logits = label_scores(network, reader, rows, precision)
        if not logits.isfinite().all():
            # no ranking can be made of these; by its loss the training is stopped as one that has diverged
            return {"eval_loss": math.nan, "eval_error": math.nan}
        counted = counts_of(table, document_scores(logits, grades).tolist(), chosen.relevant).sum(axis=0)
        numbers = torch.tensor([number for _, (number,) in rows])
        return {
            "eval_loss": float(loss(SimpleNamespace(logits=logits), numbers)),
            "eval_error": 1 - ranking_scores.SCORES[chosen.metric](counted),
        }

    def look() -> dict[str, float]:
        return mean_of([look_at(*one) for one in zip(held_out, dev_rows, strict=True)])

    batches = Batches(lambda epoch: rows, len(rows), settings.epochs, chosen, job.seed)
    return Prepared(network, reader, batches, look, chosen.metric, loss)


def predict(
    model: Path,
    examples: tuple[Path, ...],
    folder: Path,
    *,
    testsets: tuple[str, ...],
    languages: tuple[str, ...],
    grades: tuple[str, ...],
    choice: Path | None = None,
    threads: int = 0,
    settings: Ranking = Ranking(),
) -> None:
    """Score the documents of all test sets; write each one's scores, a line each (``NAME.hyp``), and ``NAME.scores.json`` into `folder`.

    `examples`, `testsets` and `languages` are of one order; `choice` is what a grid chose (`with_choice`). Raises `InputError` for a grade
    that is none of `grades`.
    """
    settings = with_choice(settings, choice)
    if threads:
        torch.set_num_threads(threads)
    reader = Reader(model, settings.max_length)
    network = load_ranker(model, None, settings, seed=0).to(pick_device(settings.device))
    tables = [read_table(path, list(grades)) for path in examples]
    rows = [row for table, code in zip(tables, languages, strict=True) for row in reader.rows(table, code, list(grades))]
    logits = label_scores(network, reader, rows, pick_precision(settings.precision, network.device))
    given = iter(document_scores(logits, grades).tolist())
    for name, table in zip(testsets, tables, strict=True):
        # in full, since rounding would make ties, and what is scored is what stands in the file
        lines = [str(next(given)) for _ in table]
        write_lines(folder / f"{name}.hyp", lines)
        write_json(folder / f"{name}.scores.json", score(table, list(map(float, lines)), settings))


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


def compare_arms(
    systems: tuple[Path, ...],
    examples: tuple[Path, ...],
    output: Path,
    *,
    names: tuple[str, ...],
    testsets: tuple[str, ...],
    seeds: tuple[int, ...],
    settings: Significance = Significance(),
    metric: Literal["ndcg", "ndcg_10", "mrr"] = "ndcg",
    relevant: float = 1.0,
) -> None:
    """Test the differences in `metric` between every two arms, on each test set and on average: by seed, and over the seeds.

    `systems` are the folders of predictions, ordered by arm, then by seed; `examples` are ordered like `testsets`.
    """
    tables = {testset: read_table(path) for testset, path in zip(testsets, examples, strict=True)}

    def counts_in(hypotheses: Path, testset: str) -> np.ndarray:
        return counts_of(tables[testset], aligned_scores(hypotheses, len(tables[testset])), relevant)

    found = compare_folders(systems, counts_in, ranking_scores.SCORES[metric], names, testsets, seeds, settings)
    write_json(output, {"metric": metric, **found})


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

    def squared_error(outputs: Any, labels: torch.Tensor, num_items_in_batch: torch.Tensor | int | None = None) -> torch.Tensor:
        real = labels.flatten() != -100  # a row that only fills up a part of an update has no label
        wanted = values.to(labels.device)[labels.flatten()[real]]
        loss = torch.nn.functional.mse_loss(outputs.logits.float().flatten()[real], wanted, reduction="sum")
        return loss / (num_items_in_batch if num_items_in_batch is not None else real.sum())

    return squared_error


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


def aligned_scores(hypotheses: Path, wanted: int) -> list[float]:
    """The scores in a file, a line each; raises `InputError` when they are not as many as `wanted`, or no numbers."""
    lines = list(read_lines(hypotheses))
    try:
        scores = [float(line) for line in lines]
    except ValueError as error:
        raise InputError(f"{hypotheses}: a line is no number ({error}); delete the folder and run the same command again") from None
    if len(scores) != wanted:
        raise InputError(f"{hypotheses}: has {len(scores)} scores for {wanted} documents; delete the folder and run the same command again")
    return scores


if __name__ == "__main__":
    launch("workflow_scripts.tasks.ranking", "finetune")
    run({"finetune": finetune, "predict": predict, "compare": compare_arms})
