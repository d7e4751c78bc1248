"""answering: a model learns to mark the answer of a question in a passage, in one language, and marks answers in others.

Extractive question answering as in SQuAD, XQuAD, MLQA and TyDiQA-GoldP. How questions and passages are read is in `passages`, the heads
are in `span_head`. The commands are those of `head`; scores are F1 and exact match, beside those of the first sentence of each passage.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np

from workflow_scripts.evidence import answers
from workflow_scripts.evidence.average import scores_beside
from workflow_scripts.number_types import AboveZero, Limits, Positive
from workflow_scripts.tasks.entry import Measure
from workflow_scripts.tasks.head_model import Part, Prefixes, load_token_head
from workflow_scripts.tasks.head_settings import HeadSettings
from workflow_scripts.tasks.head_task import About, Answered, head_task
from workflow_scripts.tasks.passages import PassageReader, Window, answers_lost, mark
from workflow_scripts.text.examples import Example
from workflow_scripts.text.questions import Span, parse_lost, parse_spans, write_spans
from workflow_scripts.text.words import sentences

Metric = Literal["f1", "em", "f1_mlqa", "em_mlqa"]
"""F1 or exact match, as SQuAD or as MLQA counts it."""


@dataclass
class Answering(HeadSettings):
    """Settings of finetuning. Batch size, learning rate, lengths and stride are XTREME's for mBERT and XLM-R."""

    batch_size: Positive = 32
    """Windows per update. A window is a question with a part of its passage."""
    learning_rate: AboveZero = 3e-5
    """Peak learning rate."""
    max_length: Annotated[int, Limits(ge=8)] = 384
    """Maximum number of pieces in a window, including the question."""
    stride: Positive = 128
    """Number of pieces between the starts of two windows of a long passage."""
    longest_question: Positive = 64
    """Maximum number of pieces of a question. Longer ones are cut."""
    longest_answer: Positive = 30
    """Maximum number of pieces of a predicted answer."""
    metric: Metric = "f1"
    """Main score, which chooses checkpoints. `f1` is F1 of words and `em` exact match, as in SQuAD; with `_mlqa` as in MLQA."""
    choose_by: Literal["score", "loss"] = "score"
    """Dev result that early stopping and the choice of the checkpoint use."""
    parts: Literal["both", "encoder"] = "both"
    """For a model with a decoder: `both` marks answers from the decoder's states; `encoder` marks them from the encoder's states, without
    a decoder."""


# ---------------------------------------------------------------------------------------------
# answers and scores


def predictions(network: Any, reader: Any, parts: list[Part], precision: str, about: About) -> list[Answered]:
    """The span of the passage that answers each question."""
    windows: list[Window] = []
    first = 0
    for part in parts:
        windows += [window._replace(example=first + window.example) for window in part.windows]
        first += len(part.examples)
    marked = mark(network, reader, windows, about.settings.longest_answer, precision)
    spans, losses = iter(marked.spans), iter(marked.losses)

    def answered(part: Part) -> Answered:
        loss = float(np.mean([next(losses) for _ in part.windows]))
        return Answered([next(spans) for _ in part.examples], lambda: loss)

    return [answered(part) for part in parts]


def measure(settings: Any, text: Any) -> Measure:
    """What the scores are called."""
    metric = settings.answering.metric
    counted = "MLQA" if metric.endswith("_mlqa") else "SQuAD"
    return Measure(
        metric=metric,
        note=f" of answers in per cent, as {counted} counts it",
        others=tuple(other for other in answers.SCORES if other != metric),
        interval="the 95 % interval (bootstrap over questions)",
        trivial="first sentence",
        trivially="the answer is the first sentence of the passage",
        signature="first sentence of the passage",
        guess="answering with the first sentence of the passage",
        loss="nats per end of a span",
    )


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


# ---------------------------------------------------------------------------------------------
# models


def reader_of(folder: Path, settings: Answering, language: str = "") -> PassageReader:
    """What reads questions and passages for the model in `folder`."""
    lengths = settings.max_length, settings.stride, settings.longest_question
    return PassageReader(folder, *lengths, settings.parts, language, Prefixes.of(settings))


ANSWERING = head_task(
    "answering",
    Answering,
    label="question answering",
    about="Question answering: the span of a passage that answers a question; finetuned in one language, tested in others.",
    answers="spans",
    named="",
    unit="question",
    head="answering",
    reader=reader_of,
    network=lambda folder, labels, *others: load_token_head(folder, "answering", labels, *others),
    predictions=predictions,
    counts=lambda examples, spans, code, about: counts_of(examples, spans, code),
    scores=answers.SCORES,
    score=lambda examples, spans, code, about: score(examples, spans, code, about.settings.metric),
    compared=lambda example, span: (right_answers(example), text_of(example, span)),
    line=lambda example, span: f"{write_spans([span])}\t{text_of(example, span)}",
    answer=lambda example, line: parse_spans(line.partition("\t")[0])[0],
    beside=lambda path, part, answered, reader, about: {
        "windows": len(part.windows),
        "answers_lost": answers_lost(part.windows, part.examples),
    },
    words={"learns": "mark the answer of a question in a passage", "inputs": "questions", "outputs": "answers", "row": "questions"},
    parts={"answered": ("Answers side by side", "answered")},
    templates=("answering",),
    measure=measure,
    cut=True,
)
