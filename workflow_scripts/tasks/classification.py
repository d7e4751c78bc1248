"""classification: a model learns to label texts, or pairs of texts, in one language, and labels them in others.

mBART classifies as BART does (Lewis et al. 2020): encoder and decoder read the same text, and a head labels it by
the decoder's last state, after all of it was read. Encoders, mBERT and XLM-R, have a head of their own; they
are baselines. The steps are commands:

``switch``
    the pretext task's text: the sentences of the training text, each switched into one of several languages by
    given dictionaries (`codeswitch`)
``finetune``
    some epochs with the labels, with early stopping; goes on from checkpoints like `training`
``predict``
    a label for each example of a test set, and the accuracy, with its interval and what the most frequent label would get
``compare``
    tests of the arms' differences in accuracy, on each test set and on average over them
"""

from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
import torch

from workflow_scripts.device import keep_memory, pick_device, pick_precision
from workflow_scripts.evidence.accuracy import score
from workflow_scripts.evidence.average import Significance, compare_everywhere
from workflow_scripts.limits import Positive
from workflow_scripts.models.batches import Row
from workflow_scripts.noise.candidates import Lookups, load_lookups
from workflow_scripts.noise.codeswitch import CodeSwitch, one_sided, switch_lines
from workflow_scripts.noise.spans import Noise
from workflow_scripts.stage import InputError, run, write_json
from workflow_scripts.tasks.finetuning import Batches, TextHeadSettings, describe, some_of, train_head
from workflow_scripts.tasks.heads import Reader, label_scores, load_text_head
from workflow_scripts.tasks.transfer import Transfer, transfer_task
from workflow_scripts.text.files import read_lines, write_lines
from workflow_scripts.text.labelled import Example, read_table
from workflow_scripts.text.words import fold, words_of
from workflow_scripts.training.checkpoints import claimed


@dataclass
class Classification(TextHeadSettings):
    """Settings of finetuning. The defaults are the paper's, where it names them."""

    choose_by: Literal["accuracy", "loss"] = "accuracy"
    """What early stopping and the choice of the checkpoint go by, on the dev set."""
    switch_while_finetuning: bool = False
    """Switch words of the finetuning text as well, anew in each epoch, with the experiment's `codeswitch` and `lexicon`."""


@dataclass
class Finetuning:
    """What one call of `finetune` is told."""

    language: str
    """The language of the text."""
    labels: list[str]
    """All labels."""
    epochs: Positive
    """How often all examples are seen."""
    classification: Classification = field(default_factory=Classification)
    """How."""
    codeswitch: CodeSwitch | None = None
    """The noise of the text, with `switch_while_finetuning`."""


@dataclass(kw_only=True)
class ClassificationExperiment(Transfer):
    """Classification of texts, or pairs of texts: finetuned in one language, tested in others."""

    task: Literal["classification"]
    """What is finetuned for."""
    classification: Classification = field(default_factory=Classification)
    """Settings of finetuning; the epochs stand in the arms."""
    scores: Significance = field(default_factory=Significance)
    """Tests of significance."""


CLASSIFICATION = transfer_task(ClassificationExperiment, key="classification", answers="labels", rule="classification_finetune", rules={})


# ---------------------------------------------------------------------------------------------
# steps


def finetune(
    start: Path,
    train: Path,
    dev: Path,
    model: Path,
    curve: Path,
    report: Path,
    checkpoints: Path,
    *,
    lexicons: tuple[Path, ...] = (),
    into: tuple[str, ...] = (),
    from_scratch: bool = False,
    seed: int = 1,
    threads: int = 0,
    minutes: float = 0,
    attempt: int = 1,
    settings: Finetuning,
) -> None:
    """Finetune the model in `start` on the table `train`, and write `model`, its learning `curve` and a `report`.

    `lexicons`, one for each language of `into`, switch words where `settings` has a `codeswitch`. `checkpoints`,
    `minutes` and `attempt` are those of `training.restore`, and so is what is raised.
    """
    if threads:
        torch.set_num_threads(threads)
    keep_memory()
    chosen = settings.classification
    text = {"train": train, "dev": dev, **{path.name: path for path in lexicons}}
    with claimed(checkpoints, describe(settings, "classification", text, start, seed, from_scratch), attempt) as folder:
        reader = Reader(start, chosen.max_length)
        examples = some_of(read_table(train, settings.labels), chosen.examples)
        dev_rows = reader.rows(read_table(dev, settings.labels), settings.language, settings.labels)
        lookup, noise = None, Noise()
        if settings.codeswitch:
            noise = settings.codeswitch.noise
            words = words_of([text for example in examples for text in example.texts], settings.language).strings()
            counts = Counter(fold(word, settings.language) for word in words)
            lookup = Lookups(load_lookups(lexicons, settings.language, into, counts, settings.codeswitch.frequency_bin))
        language, labels = settings.language, settings.labels
        plain = [] if lookup else reader.rows(examples, language, labels)

        def rows(epoch: int) -> list[Row]:
            return reader.rows(switched_examples(examples, lookup, noise, seed, epoch), language, labels) if lookup else plain

        network = load_classifier(start, settings.labels, chosen, seed, from_scratch)
        precision = pick_precision(chosen.precision, pick_device(chosen.device))

        def look() -> dict[str, float]:
            logits = label_scores(network, reader, [ids for ids, _ in dev_rows], precision)
            truth = torch.tensor([labels[0] for _, labels in dev_rows])
            error = float((logits.argmax(dim=1) != truth).float().mean())
            return {"eval_loss": float(torch.nn.functional.cross_entropy(logits, truth)), "eval_error": error}

        train_head(
            network,
            reader,
            Batches(rows, len(examples), settings.epochs, chosen, seed),
            look,
            by="eval_loss" if chosen.choose_by == "loss" else "eval_error",
            score="accuracy",
            settings=chosen,
            folder=folder,
            minutes=minutes,
            seed=seed,
            model=model,
            curve=curve,
            report=report,
            told={"start": str(start), "from_scratch": from_scratch, "languages": [language], "settings": asdict(settings)},
        )


def predict(
    model: Path,
    examples: Path,
    hypotheses: Path,
    probabilities: Path,
    scores: Path,
    *,
    language: str,
    threads: int = 0,
    settings: Classification = Classification(),
) -> None:
    """Label each example of a table; write the labels, the probabilities of all of them, a column each, and the scores.

    `language` is that of the texts; mBART reads it as a tag. Raises `InputError` for a true label that the model has not learnt.
    """
    if threads:
        torch.set_num_threads(threads)
    reader = Reader(model, settings.max_length)
    network = load_classifier(model, None, settings, seed=0).to(pick_device(settings.device))
    names = [network.config.id2label[i] for i in range(network.config.num_labels)]
    table = read_table(examples, names)
    rows = [ids for ids, _ in reader.rows(table, language, names)]
    logits = label_scores(network, reader, rows, pick_precision(settings.precision, network.device))
    given = [names[i] for i in logits.argmax(dim=1).tolist()]
    write_lines(hypotheses, given)
    shares = logits.softmax(dim=1).tolist()
    write_lines(probabilities, ["\t".join(names), *("\t".join(f"{share:.4f}" for share in row) for row in shares)])
    write_json(scores, score([example.label for example in table], given, names))


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

    `systems` are ordered by arm, then by test set, then by seed; `examples` by test set. Test sets of as many
    examples each are taken for translations of each other, line by line, and drawn together for their average.
    """
    truth = [[example.label for example in read_table(path)] for path in examples]
    given = iter(systems)
    right = {
        (name, testset, seed): [a == b for a, b in zip(aligned_labels(next(given), len(labels)), labels, strict=True)]
        for name in names
        for testset, labels in zip(testsets, truth, strict=True)
        for seed in seeds
    }
    counts = {key: np.column_stack([found, np.ones(len(found))]) for key, found in right.items()}
    write_json(output, compare_everywhere(counts, lambda sums: sums[0] / sums[1], names, testsets, seeds, settings))


# ---------------------------------------------------------------------------------------------
# data


def load_classifier(folder: Path, labels: list[str] | None, settings: Classification, seed: int, from_scratch: bool = False):
    """The model in `folder` with a head for `labels`, which is drawn from `seed` if the model has none; without `labels`, with its own."""
    return load_text_head(folder, labels, settings, seed, from_scratch)


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
    run({"switch": one_sided, "finetune": finetune, "predict": predict, "compare": compare_arms})
