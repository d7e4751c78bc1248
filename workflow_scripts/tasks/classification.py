"""classification: a model learns to label texts, or pairs of texts, in one language, and labels them in others.

mBART classifies as BART does (Lewis et al. 2020): encoder and decoder read the same text. A head labels it by the decoder's state where it
is to predict ``</s>``, after all of it was read. Encoders, mBERT and XLM-R, have a head of their own; they
are baselines. The commands are those of `head`; `predict` writes the labels' probabilities as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from workflow_scripts.evidence import accuracy
from workflow_scripts.tasks.entry import Measure
from workflow_scripts.tasks.head_model import Part, load_text_head, of_whole_texts
from workflow_scripts.tasks.head_settings import TextHeadSettings
from workflow_scripts.tasks.head_task import About, Answered, head_task
from workflow_scripts.text.examples import Example
from workflow_scripts.text.files import write_lines


@dataclass
class Classification(TextHeadSettings):
    """Settings of finetuning. The defaults are the paper's, where it names them."""

    choose_by: Literal["accuracy", "loss"] = "accuracy"
    """Dev result that early stopping and the choice of the checkpoint use."""
    switch_while_finetuning: bool = False
    """Whether words of the finetuning text are switched too, anew in each epoch, with the experiment's `codeswitch` and `lexicon`."""


def answered(part: Part, logits: torch.Tensor, about: About) -> Answered:
    """A label for each example."""
    truth, best = torch.tensor([number for _, (number,) in part.rows]), logits.argmax(dim=1)
    return Answered(
        [about.labels[number] for number in best.tolist()],
        lambda: float(torch.nn.functional.cross_entropy(logits, truth)),
        logits,
        lambda: float((best != truth).float().mean()),
    )


def counts(examples: list[Example], given: list[str], code: str, about: About) -> np.ndarray:
    """Whether the label of each example is right, and 1."""
    right = [label == example.label for label, example in zip(given, examples, strict=True)]
    return np.column_stack([right, np.ones(len(right))])


def probabilities(path: Path, part: Part, answered: Answered, reader: Any, about: About) -> dict[str, Any]:
    """Write ``NAME.probabilities.tsv``, which has a column for each label."""
    shares = ("\t".join(f"{share:.4f}" for share in row) for row in answered.outputs.softmax(dim=1).tolist())
    write_lines(path.with_name(f"{path.name}.probabilities.tsv"), ["\t".join(about.labels), *shares])
    return {}


def measure(settings: Any, text: Any) -> Measure:
    """What the scores are called."""
    return Measure(
        metric="accuracy",
        note=" in per cent",
        others=("macro_f1",),
        interval="Wilson's 95 % interval",
        trivial="most frequent label",
        trivially="always the most frequent label of the test set",
        signature="most frequent label",
        guess="always answering with the most frequent label",
    )


CLASSIFICATION = head_task(
    "classification",
    Classification,
    label="classification",
    about="Classification of texts, or pairs of texts: finetuned in one language, tested in others.",
    answers="labels",
    asked=True,
    network=load_text_head,
    predictions=of_whole_texts(answered),
    counts=counts,
    scores={"accuracy": lambda sums: sums[0] / sums[1]},
    score=lambda examples, given, code, about: accuracy.score([example.label for example in examples], given, about.labels),
    leading=lambda settings, labels: "accuracy",
    beside=probabilities,
    words={"learns": "label texts", "inputs": "texts", "outputs": "labels", "row": "examples"},
    parts={"scores": ("Accuracy", "answers")},
    measure=measure,
)
