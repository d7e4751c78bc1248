"""answering: a model learns to mark the answer of a question in a passage, in one language, and marks answers in others.

Extractive question answering as in SQuAD, XQuAD, MLQA and TyDiQA-GoldP. How questions and passages are read is in `passages`, the heads
are in `spans`. The steps are commands:

``finetune``
    some epochs with the answers, with early stopping; goes on from checkpoints like `training`
``predict``
    an answer for each question of all test sets, whatever their languages, in one process; F1 and exact match of each test
    set, with their intervals and what the first sentence of each passage gets
``compare``
    tests of the arms' differences, on each test set and on average over them
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import torch

from workflow_scripts.device import pick_device, pick_precision
from workflow_scripts.evidence import answers
from workflow_scripts.evidence.average import Significance, compare_folders, scores_beside
from workflow_scripts.limits import AboveZero, Limits, Positive
from workflow_scripts.models.batches import Row
from workflow_scripts.stage import InputError, run, write_json
from workflow_scripts.tasks.crosslingual import Finetuned, crosslingual_task
from workflow_scripts.tasks.finetuning import Batches, HeadSettings, Prepared, Told, finetune_head, mean_of, some_of, with_choice
from workflow_scripts.tasks.heads import load_token_head
from workflow_scripts.tasks.passages import PassageReader, Window, mark
from workflow_scripts.text.examples import Example, read_table
from workflow_scripts.text.files import read_lines, write_lines
from workflow_scripts.text.questions import Span, parse_lost, parse_spans, write_spans
from workflow_scripts.text.words import sentences
from workflow_scripts.training.job import Job
from workflow_scripts.training.launching import launch

Metric = Literal["f1", "em", "f1_mlqa", "em_mlqa"]
"""F1 or exact match, as SQuAD or as MLQA counts it."""


@dataclass
class Answering(HeadSettings):
    """Settings of finetuning. Batch size, learning rate, lengths and stride are XTREME's for mBERT and XLM-R."""

    batch_size: Positive = 32
    """Windows per update: questions, each with a part of its passage."""
    learning_rate: AboveZero = 3e-5
    """Peak of the learning rate."""
    max_length: Annotated[int, Limits(ge=8)] = 384
    """Pieces of a window, those of the question included."""
    stride: Positive = 128
    """Of passages that are longer than a window: after how many pieces the next window begins."""
    longest_question: Positive = 64
    """Longer questions are cut to so many pieces."""
    longest_answer: Positive = 30
    """Answers of the model have at most so many pieces."""
    metric: Metric = "f1"
    """The score that stands for the others: F1 of words or exact match (`em`), as SQuAD counts it, or, with `_mlqa`, as MLQA does."""
    choose_by: Literal["score", "loss"] = "score"
    """What early stopping and the choice of the checkpoint go by, on the dev set."""
    parts: Literal["both", "encoder"] = "both"
    """Of a model with a decoder: whether answers are marked by the decoder's states, or by the encoder's, without a decoder."""


@dataclass(kw_only=True)
class Asking(Told):
    """What one call of `finetune` is told."""

    answering: Answering = field(default_factory=Answering)
    """Settings of the head and of its finetuning."""


@dataclass(kw_only=True)
class AnsweringExperiment(Finetuned):
    """Question answering: the span of a passage that answers a question; finetuned in one language, tested in others."""

    head: ClassVar[str] = "answering"
    task: Literal["answering"]
    """What is finetuned for."""
    answering: Answering = field(default_factory=Answering)
    """Settings of finetuning; the epochs stand in the arms."""
    scores: Significance = field(default_factory=Significance)
    """Tests of significance."""


ANSWERING = crosslingual_task(AnsweringExperiment, key="answering", answers="spans", rule="answering_finetune", unit="question")


# ---------------------------------------------------------------------------------------------
# steps


def finetune(job: Job, *, train: tuple[Path, ...], dev: tuple[Path, ...], settings: Asking) -> None:
    """Finetune a model to mark the answers of questions; see `Job` and `finetune_head`."""
    finetune_head(job, train, dev, settings, "answering", prepare)


def prepare(job: Job, train: tuple[Path, ...], dev: tuple[Path, ...], settings: Asking) -> Prepared:
    """The model with its head, the text as rows, and how a look at the dev sets is made."""
    chosen = settings.answering
    reader = reader_of(job.start, chosen, settings.language)
    rows: list[Row] = []
    for path, code in zip(train, settings.train_languages, strict=True):
        rows += [window.row for window in reader.windows(some_of(read_table(path), chosen.examples), code)]
    held_out = [(read_table(path), code) for path, code in zip(dev, settings.dev_languages, strict=True)]
    dev_windows = [reader.windows(table, code) for table, code in held_out]
    network = load_token_head(job.start, "answering", None, chosen, job.seed, job.from_scratch)
    precision = pick_precision(chosen.precision, pick_device(chosen.device))

    def look_at(table: list[Example], code: str, windows: list[Window]) -> dict[str, float]:
        marked = mark(network, reader, windows, chosen.longest_answer, precision)
        counted = counts_of(table, marked.spans, code).sum(axis=0)
        return {"eval_loss": float(np.mean(marked.losses)), "eval_error": 1 - answers.SCORES[chosen.metric](counted)}

    def look() -> dict[str, float]:
        return mean_of([look_at(*text, windows) for text, windows in zip(held_out, dev_windows, strict=True)])

    return Prepared(network, reader, Batches(lambda epoch: rows, len(rows), settings.epochs, chosen, job.seed), look, chosen.metric)


def predict(
    model: Path,
    examples: tuple[Path, ...],
    folder: Path,
    *,
    testsets: tuple[str, ...],
    languages: tuple[str, ...],
    choice: Path | None = None,
    threads: int = 0,
    settings: Answering = Answering(),
) -> None:
    """Mark the answers of all test sets; write each one's spans with their text (``NAME.hyp``), and ``NAME.scores.json`` into `folder`.

    `examples`, `testsets` and `languages` are of one order; `choice` is what a grid chose (`with_choice`). The model is loaded once, and
    the windows of all are batched by length.
    """
    settings = with_choice(settings, choice)
    if threads:
        torch.set_num_threads(threads)
    reader = reader_of(model, settings)
    network = load_token_head(model, "answering", None, settings, seed=0, new_head=False).to(pick_device(settings.device))
    tables = [read_table(path) for path in examples]
    windows: list[Window] = []
    of_testset, first = [], 0
    for table, code in zip(tables, languages, strict=True):
        found = reader.windows(table, code)
        windows += [window._replace(example=first + window.example) for window in found]
        of_testset.append(len(found))
        first += len(table)
    given = iter(mark(network, reader, windows, settings.longest_answer, pick_precision(settings.precision, network.device)).spans)
    for name, code, table, number in zip(testsets, languages, tables, of_testset, strict=True):
        spans = [next(given) for _ in table]
        write_lines(folder / f"{name}.hyp", (f"{write_spans([span])}\t{text_of(e, span)}" for e, span in zip(table, spans, strict=True)))
        write_json(folder / f"{name}.scores.json", {**score(table, spans, code, settings.metric), "windows": number})


def score(table: list[Example], spans: list[Span], code: str, metric: str) -> dict[str, Any]:
    """All scores of a test set in per cent, and those of the first sentence of each passage (`chance`).

    `low` and `high` limit the 95 % interval of the leading score `metric`, from questions drawn anew (bootstrap).
    """
    counts = counts_of(table, spans, code)
    trivial = counts_of(table, [first_sentence(example.pair) for example in table], code).sum(axis=0)
    return {
        "examples": len(table),
        "passages": len({example.pair for example in table}),
        **scores_beside(counts, trivial, answers.SCORES, metric, "first_sentence"),
        "signature": "MLQA's normalisation" if metric.endswith("_mlqa") else "SQuAD's normalisation",
    }


def counts_of(table: list[Example], spans: list[Span], code: str) -> np.ndarray:
    """What is counted in each question (`answers.count`), of spans that were given."""
    truth = [right_answers(example) for example in table]
    return answers.count(truth, [text_of(example, span) for example, span in zip(table, spans, strict=True)], code)


def right_answers(example: Example) -> list[str]:
    """The texts of all right answers, with those that are not in the passage."""
    return [*(text_of(example, span) for span in parse_spans(example.label)), *parse_lost(example.label)]


def text_of(example: Example, span: Span) -> str:
    """The text of a span in an example's passage."""
    return example.pair[span[0] : span[1]]


def first_sentence(passage: str) -> Span:
    """Where the first sentence of a passage stands."""
    first = sentences(passage)[0]
    start = passage.index(first)
    return start, start + len(first)


def compare_arms(
    systems: tuple[Path, ...],
    examples: tuple[Path, ...],
    output: Path,
    *,
    names: tuple[str, ...],
    testsets: tuple[str, ...],
    languages: tuple[str, ...],
    seeds: tuple[int, ...],
    metric: Metric,
    settings: Significance = Significance(),
) -> None:
    """Test the differences in `metric` between every two arms, on each test set and on average: by seed, and over the seeds.

    `systems` are the folders of predictions, ordered by arm, then by seed; `examples` and `languages` are ordered like `testsets`.
    """
    tables = {testset: (read_table(path), code) for testset, path, code in zip(testsets, examples, languages, strict=True)}

    def counts_in(hypotheses: Path, testset: str) -> np.ndarray:
        table, code = tables[testset]
        return counts_of(table, read_spans(hypotheses, len(table)), code)

    found = compare_folders(systems, counts_in, answers.SCORES[metric], names, testsets, seeds, settings)
    write_json(output, {"metric": metric, **found})


def read_spans(hypotheses: Path, wanted: int) -> list[Span]:
    """The spans in a file of answers, one a line; raises `InputError` when they are not as many as `wanted`."""
    spans = [parse_spans(line.partition("\t")[0])[0] for line in read_lines(hypotheses)]
    if len(spans) != wanted:
        raise InputError(f"{hypotheses}: has {len(spans)} answers for {wanted} questions; delete it and run the same command again")
    return spans


# ---------------------------------------------------------------------------------------------
# models


def reader_of(folder: Path, settings: Answering, language: str = "") -> PassageReader:
    """What reads questions and passages for the model in `folder`."""
    return PassageReader(folder, settings.max_length, settings.stride, settings.longest_question, settings.parts, language)


if __name__ == "__main__":
    launch("workflow_scripts.tasks.answering", "finetune")
    run({"finetune": finetune, "predict": predict, "compare": compare_arms})
