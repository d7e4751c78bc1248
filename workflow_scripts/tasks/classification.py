"""classification: a model learns to label texts, or pairs of texts, in one language, and labels them in others.

mBART classifies as BART does (Lewis et al. 2020): encoder and decoder read the same text, and a head labels it by
the decoder's state where it is to predict ``</s>``, after all of it was read. Encoders, mBERT and XLM-R, have a head of their own; they
are baselines. The steps are commands:

``finetune``
    some epochs with the labels, with early stopping; goes on from checkpoints like `training`
``predict``
    a label for each example of all test sets, whatever their languages, in one process; the accuracy of each test set, with its
    interval and what the most frequent label would get
``compare``
    tests of the arms' differences in accuracy, on each test set and on average over them
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
import torch

from workflow_scripts.device import pick_device, pick_precision
from workflow_scripts.evidence.accuracy import score
from workflow_scripts.evidence.average import Significance, compare_folders
from workflow_scripts.models.batches import Row
from workflow_scripts.noise.candidates import Lookups, load_lookups
from workflow_scripts.noise.codeswitch import CodeSwitch, switch_lines
from workflow_scripts.noise.spans import Noise
from workflow_scripts.stage import InputError, run, write_json
from workflow_scripts.tasks.crosslingual import Finetuned, crosslingual_task
from workflow_scripts.tasks.finetuning import Batches, Prepared, TextHeadSettings, Told, finetune_head, mean_of, some_of, with_choice
from workflow_scripts.tasks.heads import Reader, label_scores, load_text_head
from workflow_scripts.text.examples import Example, read_table
from workflow_scripts.text.files import read_lines, write_lines
from workflow_scripts.text.words import count_words
from workflow_scripts.training.job import Job
from workflow_scripts.training.launching import launch


@dataclass
class Classification(TextHeadSettings):
    """Settings of finetuning. The defaults are the paper's, where it names them."""

    choose_by: Literal["accuracy", "loss"] = "accuracy"
    """What early stopping and the choice of the checkpoint go by, on the dev set."""
    switch_while_finetuning: bool = False
    """Switch words of the finetuning text as well, anew in each epoch, with the experiment's `codeswitch` and `lexicon`."""


@dataclass(kw_only=True)
class Finetuning(Told):
    """What one call of `finetune` is told."""

    labels: list[str]
    """All labels."""
    classification: Classification = field(default_factory=Classification)
    """Settings of the head and of its finetuning."""
    codeswitch: CodeSwitch | None = None
    """The noise of the text, with `switch_while_finetuning`."""


@dataclass(kw_only=True)
class ClassificationExperiment(Finetuned):
    """Classification of texts, or pairs of texts: finetuned in one language, tested in others."""

    head: ClassVar[str] = "classification"
    task: Literal["classification"]
    """What is finetuned for."""
    classification: Classification = field(default_factory=Classification)
    """Settings of finetuning; the epochs stand in the arms."""
    scores: Significance = field(default_factory=Significance)
    """Tests of significance."""


CLASSIFICATION = crosslingual_task(ClassificationExperiment, key="classification", answers="labels", rule="classification_finetune")


# ---------------------------------------------------------------------------------------------
# steps


def finetune(
    job: Job,
    *,
    train: tuple[Path, ...],
    dev: tuple[Path, ...],
    lexicons: tuple[Path, ...] = (),
    into: tuple[str, ...] = (),
    settings: Finetuning,
) -> None:
    """Finetune a model to label texts; see `Job` and `finetune_head`.

    `lexicons`, one for each language of `into`, switch words of the first table where `settings` has a `codeswitch`.
    """
    own = partial(prepare, lexicons=lexicons, into=into)
    finetune_head(job, train, dev, settings, "classification", own, {path.name: path for path in lexicons})


def prepare(
    job: Job, train: tuple[Path, ...], dev: tuple[Path, ...], settings: Finetuning, lexicons: tuple[Path, ...], into: tuple[str, ...]
) -> Prepared:
    """The model with its head, the text as rows, and how a look at the dev sets is made."""
    chosen, language, labels = settings.classification, settings.language, settings.labels
    reader = Reader(job.start, chosen.max_length, language)
    examples = some_of(read_table(train[0], labels), chosen.examples)
    more: list[Row] = []
    for path, code in zip(train[1:], settings.more_train, strict=True):
        more += reader.rows(some_of(read_table(path, labels), chosen.examples), code, labels)
    held_out = [reader.rows(read_table(path, labels), code, labels) for path, code in zip(dev, settings.dev_languages, strict=True)]
    lookup, noise = None, Noise()
    if settings.codeswitch:
        noise = settings.codeswitch.noise
        counts = count_words((text for example in examples for text in example.texts), language)
        lookup = Lookups(load_lookups(lexicons, language, into, counts, settings.codeswitch.frequency_bin))
    plain = [] if lookup else reader.rows(examples, language, labels) + more

    def rows(epoch: int) -> list[Row]:
        if not lookup:
            return plain
        return reader.rows(switched_examples(examples, lookup, noise, job.seed, epoch), language, labels) + more

    network = load_text_head(job.start, labels, chosen, job.seed, job.from_scratch)
    precision = pick_precision(chosen.precision, pick_device(chosen.device))

    def look_at(dev_rows: list[Row]) -> dict[str, float]:
        logits = label_scores(network, reader, dev_rows, precision)
        truth = torch.tensor([number for _, (number,) in dev_rows])
        error = float((logits.argmax(dim=1) != truth).float().mean())
        return {"eval_loss": float(torch.nn.functional.cross_entropy(logits, truth)), "eval_error": error}

    batches = Batches(rows, len(examples) + len(more), settings.epochs, chosen, job.seed)
    return Prepared(network, reader, batches, lambda: mean_of([look_at(one) for one in held_out]), "accuracy")


def predict(
    model: Path,
    examples: tuple[Path, ...],
    folder: Path,
    *,
    testsets: tuple[str, ...],
    languages: tuple[str, ...],
    choice: Path | None = None,
    threads: int = 0,
    settings: Classification = Classification(),
) -> None:
    """Label the examples of all test sets; write into `folder` each one's labels (``NAME.hyp``), probabilities and scores.

    ``NAME.probabilities.tsv`` has a column for each label. `examples`, `testsets` and `languages` are of one order; mBART reads a language
    as a tag. `choice` is what a grid chose (`with_choice`). The model is loaded once, and the texts of all are batched by length. Raises
    `InputError` for a true label that the model has not learnt.
    """
    settings = with_choice(settings, choice)
    if threads:
        torch.set_num_threads(threads)
    reader = Reader(model, settings.max_length)
    network = load_text_head(model, None, settings, seed=0).to(pick_device(settings.device))
    names = [network.config.id2label[i] for i in range(network.config.num_labels)]
    tables = [read_table(path, names) for path in examples]
    rows = [row for table, code in zip(tables, languages, strict=True) for row in reader.rows(table, code, names)]
    logits = label_scores(network, reader, rows, pick_precision(settings.precision, network.device))
    of_testset = logits.split([len(table) for table in tables])
    for testset, table, found in zip(testsets, tables, of_testset, strict=True):
        given = [names[i] for i in found.argmax(dim=1).tolist()]
        write_lines(folder / f"{testset}.hyp", given)
        shares = ("\t".join(f"{share:.4f}" for share in row) for row in found.softmax(dim=1).tolist())
        write_lines(folder / f"{testset}.probabilities.tsv", ["\t".join(names), *shares])
        write_json(folder / f"{testset}.scores.json", score([example.label for example in table], given, names))


def compare_arms(
    systems: tuple[Path, ...],
    examples: tuple[Path, ...],
    output: Path,
    *,
    names: tuple[str, ...],
    testsets: tuple[str, ...],
    seeds: tuple[int, ...],
    settings: Significance = Significance(),
) -> None:
    """Test the differences in accuracy between every two arms, on each test set and on average: by seed, and over the seeds.

    `systems` are the folders of predictions, ordered by arm, then by seed; `examples` are ordered like `testsets`.
    """
    truth = {testset: [example.label for example in read_table(path)] for testset, path in zip(testsets, examples, strict=True)}

    def counts_in(hypotheses: Path, testset: str) -> np.ndarray:
        given = aligned_labels(hypotheses, len(truth[testset]))
        right = [label == true for label, true in zip(given, truth[testset], strict=True)]
        return np.column_stack([right, np.ones(len(right))])

    write_json(output, compare_folders(systems, counts_in, lambda sums: sums[0] / sums[1], names, testsets, seeds, settings))


# ---------------------------------------------------------------------------------------------
# data


def switched_examples(examples: list[Example], lookup: Lookups, noise: Noise, seed: int, epoch: int) -> list[Example]:
    """The examples with their words switched for one epoch; both texts of a pair into the same language."""
    sides = []
    for side, texts in enumerate(([e.text for e in examples], [e.pair for e in examples])):
        sides.append(switch_lines(texts, lookup, "codeswitch", seed, 2 * epoch + side, 0, noise)[0])
    return [example._replace(text=text, pair=pair) for example, text, pair in zip(examples, *sides, strict=True)]


# ---------------------------------------------------------------------------------------------
# accuracy


def aligned_labels(hypotheses: Path, wanted: int) -> list[str]:
    """The labels in a file, a line each; raises `InputError` when they are not as many as `wanted`."""
    lines = list(read_lines(hypotheses))
    if len(lines) != wanted:
        raise InputError(f"{hypotheses}: has {len(lines)} labels for {wanted} examples; delete it and run the same command again")
    return lines


if __name__ == "__main__":
    launch("workflow_scripts.tasks.classification", "finetune")
    run({"finetune": finetune, "predict": predict, "compare": compare_arms})
