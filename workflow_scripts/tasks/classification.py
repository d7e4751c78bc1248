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
    a label for each example of a test set, and the accuracy, with its interval and what guessing would get
``compare``
    tests of the arms' differences in accuracy, on each test set and on average over them
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import torch

from workflow_scripts.device import keep_memory, pick_device, pick_precision
from workflow_scripts.evidence.accuracy import mean_accuracy, score, tally
from workflow_scripts.evidence.significance import COVERS, compare
from workflow_scripts.limits import AboveZero, Limits, Natural, NotNegative, Positive, ShareBelowOne
from workflow_scripts.models.tokenisation import decoder_input, defuse, load_codec, restore_normaliser
from workflow_scripts.noise.candidates import Lookups, load_lookups
from workflow_scripts.noise.codeswitch import CodeSwitch, one_sided, switch_lines
from workflow_scripts.stage import InputError, run, write_json
from workflow_scripts.tasks.transfer import Transfer, transfer_task
from workflow_scripts.text.files import read_lines, write_lines
from workflow_scripts.text.labelled import Example, read_table
from workflow_scripts.text.words import fold, words_of
from workflow_scripts.training.checkpoints import Deadline, chosen_updates, claimed, describe_phase
from workflow_scripts.training.training import Row, Training, save_model, split_batch, write_curve


@dataclass
class Classification:
    """Settings of finetuning. The defaults are the paper's, where it names them."""

    batch_size: Positive = 128
    """Examples per update."""
    micro_batch: Positive | None = None
    """Examples that go through the device at once; smaller ones add up to an update. All at once by default."""
    learning_rate: AboveZero = 5e-6
    """Peak of the learning rate."""
    warmup: ShareBelowOne = 0.1
    """Share of the updates with linear warm-up; then linear decay."""
    dropout: ShareBelowOne = 0.1
    """Dropout of residuals, embeddings and the head."""
    attention_dropout: ShareBelowOne = 0.1
    """Dropout of attention weights."""
    weight_decay: NotNegative = 0.0
    """Decoupled weight decay."""
    max_grad_norm: NotNegative = 1.0
    """Clip gradients to this norm; 0 is off."""
    max_length: Annotated[int, Limits(ge=8)] = 128
    """Longer examples are cut to so many pieces, of a pair the longer text first."""
    examples: Positive | None = None
    """Finetune on so many examples only, chosen at random once for all seeds. All by default."""
    looks: Positive = 1
    """Looks at the dev set in an epoch; each writes a checkpoint."""
    patience: Natural = 3
    """End when so many looks in a row brought nothing better; 0 never does."""
    choose_by: Literal["accuracy", "loss"] = "accuracy"
    """What early stopping and the choice of the checkpoint go by, on the dev set."""
    switch_while_finetuning: bool = False
    """Switch words of the finetuning text as well, anew in each epoch, with the experiment's `codeswitch` and `lexicon`."""
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    """`auto` is bfloat16 autocast on a GPU that has it, float32 on a CPU."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Where to compute."""


@dataclass
class Significance:
    """Settings of the tests of significance."""

    test: Literal["bootstrap", "randomization"] = "bootstrap"
    """Paired bootstrap resampling of the examples, or paired approximate randomization."""
    samples: Positive = 1_000
    """Resamples (bootstrap) or trials (randomization; 10,000 are usual)."""
    correction: Literal["holm", "none"] = "holm"
    """How p-values are corrected for the number of comparisons: all arms and test sets of an experiment, by seed."""


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

# what may change between a killed call and the one that continues it: no more than rounding, and what dropout draws, depends on it
_NOT_SCIENCE = ("device", "micro_batch")


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
    `minutes` and `attempt` are those of `training.main`, and so is what is raised.
    """
    from workflow_scripts.training.loop import Progress, Watch, fit

    if threads:
        torch.set_num_threads(threads)
    keep_memory()
    chosen = settings.classification
    text = {"train": train, "dev": dev, **{path.name: path for path in lexicons}}
    description = describe_phase(asdict(settings), text, start, seed, from_scratch)
    for name in _NOT_SCIENCE:
        del description["classification"][name]
    with claimed(checkpoints, description, attempt) as folder:
        reader = Reader(start, chosen.max_length)
        examples = some_of(read_table(train, settings.labels), chosen.examples)
        dev_rows = reader.rows(read_table(dev, settings.labels), settings.language, settings.labels)
        lookup = None
        if settings.codeswitch:
            words = words_of([text for example in examples for text in example.texts], settings.language).strings()
            counts = Counter(fold(word, settings.language) for word in words)
            lookup = Lookups(load_lookups(lexicons, settings.language, into, counts, settings.codeswitch.frequency_bin))
        batches = Batches(examples, reader, settings, seed, lookup)
        network = load_classifier(start, settings.labels, chosen, seed, from_scratch)
        precision = pick_precision(chosen.precision, pick_device(chosen.device))

        def look() -> dict[str, float]:
            logits = label_scores(network, reader, [ids for ids, _ in dev_rows], precision)
            truth = torch.tensor([labels[0] for _, labels in dev_rows])
            error = float((logits.argmax(dim=1) != truth).float().mean())
            return {"eval_loss": float(torch.nn.functional.cross_entropy(logits, truth)), "eval_error": error}

        by = {"accuracy": "eval_error", "loss": "eval_loss"}[chosen.choose_by]
        training = phase_settings(chosen, len(batches.epoch_sizes) * settings.epochs, len(batches.epoch_sizes))
        history = fit(
            network,
            batches,
            batches.parts,
            reader.collate,
            summed_loss,
            look,
            Watch(folder, training, Deadline(minutes), by=by),
            Progress(batches.epoch_sizes * settings.epochs, "examples"),
            seed,
        )
        looks = [{**entry, "eval_accuracy": 1 - entry["eval_error"]} if "eval_error" in entry else entry for entry in history]
        (update,) = chosen_updates(history, "best", 1, by)
        taken = next(entry for entry in looks if entry["step"] == update and "eval_loss" in entry)
        save_model(network, reader.tokenizer, model)
        write_curve(curve, looks, ("update", "seconds", "loss", "learning_rate", "dev_loss", "dev_accuracy"))
        write_json(
            report,
            {
                "start": str(start),
                "from_scratch": from_scratch,
                "seed": seed,
                "languages": [settings.language],
                "rows": len(examples),
                "parameters": sum(p.numel() for p in network.parameters()),
                "device": str(network.device),
                "precision": precision,
                "processes": 1,
                "checkpoints": str(folder),
                "updates": {"planned": training.updates, "made": max(entry["step"] for entry in history)},
                "handed_on": {"updates": [update], "dev_loss": taken["eval_loss"], "dev_accuracy": taken["eval_accuracy"]},
                "settings": asdict(settings),
            },
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


AVERAGE = "average"
"""The mean accuracy over all test sets, among their names."""


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
        (name, testset, seed): np.array([a == b for a, b in zip(aligned_labels(next(given), len(labels)), labels, strict=True)])
        for name in names
        for testset, labels in zip(testsets, truth, strict=True)
        for seed in seeds
    }
    pairs = [(mine, other) for at, mine in enumerate(names) for other in names[:at]]
    rows = []
    for testset in [*testsets, *([AVERAGE] if len(testsets) > 1 else [])]:
        some = testsets if testset == AVERAGE else [testset]
        statistics = {(name, seed): tally([right[name, one, seed] for one in some]) for name in names for seed in seeds}
        for seed in [*seeds, None]:
            mine = {key: counts for key, counts in statistics.items() if seed in (None, key[1])}
            for (arm, other), found in compare(mine, mean_accuracy, pairs, settings).items():
                rows.append({"testset": testset, "seed": seed, "arm": arm, "other": other, **found})
    covers = {"seed": COVERS["seed"], "seeds": COVERS["seed" if len(seeds) == 1 else settings.test]}
    write_json(output, {"baseline": names[0], "pairs": rows, "covers": covers, "settings": asdict(settings)})


# ---------------------------------------------------------------------------------------------
# models

ENCODERS = ("bert", "xlm-roberta")
"""Models without a decoder that can be finetuned to classify, by their type."""


class Reader:
    """Examples as rows of ids and batches of tensors, in the form of the model in `folder`."""

    def __init__(self, folder: Path, max_length: int):
        from transformers import AutoConfig, AutoTokenizer

        config = AutoConfig.from_pretrained(folder)
        self.is_encoder = config.model_type in ENCODERS
        self.has_types = getattr(config, "type_vocab_size", 1) > 1
        # XLM-R's positions start after that of padding
        positions = config.max_position_embeddings - (2 if config.model_type == "xlm-roberta" else 0)
        self.max_length = min(max_length, positions)
        if self.is_encoder:
            self.tokenizer = AutoTokenizer.from_pretrained(folder)
            restore_normaliser(self.tokenizer, Path(folder))
        else:
            self.codec = load_codec(folder)
            self.tokenizer = self.codec.tokenizer

    def rows(self, examples: Sequence[Example], code: str, labels: list[str]) -> list[Row]:
        """Ids of each example, and the number of its label."""
        texts, pairs = [example.text for example in examples], [example.pair for example in examples]
        numbers = {label: [number] for number, label in enumerate(labels)}
        ids = self._encode(texts, pairs if any(pairs) else None, code)
        return list(zip(ids, [numbers[example.label] for example in examples], strict=True))

    def _encode(self, texts: list[str], pairs: list[str] | None, code: str) -> list[list[int]]:
        if not self.is_encoder:
            return (
                self.codec.encode_pairs(texts, pairs, code, self.max_length) if pairs else self.codec.encode(texts, code, self.max_length)
            )
        specials = set(self.tokenizer.all_special_tokens)
        sides = [[defuse(line, specials) for line in side] for side in (texts, pairs) if side]
        return self.tokenizer(*sides, truncation="longest_first", max_length=self.max_length)["input_ids"]

    def collate(self, rows: list[Row]) -> dict[str, torch.Tensor]:
        """A batch: ids and mask (rows × longest), for mBART the decoder's ids, and the labels' numbers (−100 for none)."""
        padded, pad = torch.nn.utils.rnn.pad_sequence, self.tokenizer.pad_token_id
        ids = padded([torch.tensor(row) for row, _ in rows], batch_first=True, padding_value=pad)
        mask = padded([torch.ones(len(row), dtype=torch.long) for row, _ in rows], batch_first=True)
        batch = {"input_ids": ids, "attention_mask": mask, "labels": torch.tensor([label for _, (label,) in rows])}
        if not self.is_encoder:
            decoder = [torch.tensor(decoder_input(row)) for row, _ in rows]
            batch["decoder_input_ids"] = padded(decoder, batch_first=True, padding_value=pad)
        elif self.has_types:
            ends = (ids == self.tokenizer.sep_token_id).long()
            batch["token_type_ids"] = (ends.cumsum(dim=1) - ends).clamp(max=1) * mask
        return batch


def load_classifier(folder: Path, labels: list[str] | None, settings: Classification, seed: int, from_scratch: bool = False):
    """The model in `folder` with a head for `labels`, which is drawn from `seed` if the model has none; without `labels`, with its own."""
    from transformers import AutoConfig, AutoModelForSequenceClassification, set_seed

    set_seed(seed)
    config = AutoConfig.from_pretrained(folder)
    residual, attention = ("hidden_dropout_prob", "attention_probs_dropout_prob")
    if config.model_type not in ENCODERS:
        residual, attention = "dropout", "attention_dropout"
    changes: dict[str, Any] = {residual: settings.dropout, attention: settings.attention_dropout, "classifier_dropout": settings.dropout}
    if labels:
        changes |= {"id2label": dict(enumerate(labels)), "label2id": {label: number for number, label in enumerate(labels)}}
    config.update(changes)
    if from_scratch:
        return AutoModelForSequenceClassification.from_config(config)
    return AutoModelForSequenceClassification.from_pretrained(folder, config=config, dtype=torch.float32)


@torch.no_grad()
def label_scores(network, reader: Reader, rows: list[list[int]], precision: str, batch: int = 64) -> torch.Tensor:
    """The head's output for each row (rows × labels), in float32."""
    network.eval()
    order = sorted(range(len(rows)), key=lambda i: -len(rows[i]))
    scores = torch.empty(len(rows), network.config.num_labels)
    for start in range(0, len(order), batch):
        chosen = order[start : start + batch]
        tensors = {k: v.to(network.device) for k, v in reader.collate([(rows[i], [-100]) for i in chosen]).items() if k != "labels"}
        with torch.autocast(network.device.type, torch.bfloat16, enabled=precision == "bfloat16"):
            scores[chosen] = network(**tensors).logits.float().cpu()
    return scores


def summed_loss(outputs: Any, labels: torch.Tensor, num_items_in_batch: torch.Tensor | int | None = None) -> torch.Tensor:
    """Cross-entropy per example of the whole update, so that small batches add up to it exactly."""
    loss = torch.nn.functional.cross_entropy(outputs.logits.float(), labels, ignore_index=-100, reduction="sum")
    return loss / (num_items_in_batch if num_items_in_batch is not None else (labels != -100).sum())


def phase_settings(settings: Classification, updates: int, per_epoch: int) -> Training:
    """The settings of the training loop that finetuning shares with other phases."""
    return Training(
        updates=updates,
        learning_rate=settings.learning_rate,
        warmup_updates=round(settings.warmup * updates),
        weight_decay=settings.weight_decay,
        max_grad_norm=settings.max_grad_norm,
        evaluate_every=math.ceil(per_epoch / settings.looks),
        log_every=max(1, min(50, per_epoch // 4)),
        patience=settings.patience,
        checkpoint="best",
        precision=settings.precision,
        device=settings.device,
    )


# ---------------------------------------------------------------------------------------------
# data


def some_of(examples: list[Example], number: int | None) -> list[Example]:
    """At most `number` of the examples, chosen at random, the same for all seeds and arms."""
    if number is None or number >= len(examples):
        return examples
    chosen = np.random.default_rng(len(examples)).permutation(len(examples))[:number]
    return [examples[i] for i in sorted(chosen)]


# so many batches are filled from one pool of rows that is sorted by length
_POOL = 50


class Batches(Sequence):
    """The parts of the updates of all epochs, in order; the rows of an epoch are made when its turn comes."""

    def __init__(self, examples: list[Example], reader: Reader, settings: Finetuning, seed: int, lookup: Lookups | None):
        self.examples, self.reader, self.settings, self.seed, self.lookup = examples, reader, settings, seed, lookup
        chosen = settings.classification
        self.parts = math.ceil(chosen.batch_size / (chosen.micro_batch or chosen.batch_size))
        whole, rest = divmod(len(examples), chosen.batch_size)
        self.epoch_sizes = [chosen.batch_size] * whole + [rest] * bool(rest)
        self._current: tuple[int, list[list[Row]]] = -1, []
        self._plain: list[Row] = []

    def __len__(self) -> int:
        return self.settings.epochs * len(self.epoch_sizes) * self.parts

    def __getitem__(self, place: int) -> list[Row]:
        epoch, place = divmod(place, len(self.epoch_sizes) * self.parts)
        if self._current[0] != epoch:
            self._current = epoch, self._updates(epoch)
        update, part = divmod(place, self.parts)
        return split_batch(self._current[1][update], self.parts)[part]

    def _updates(self, epoch: int) -> list[list[Row]]:
        """An epoch's rows, shuffled, of like length within an update; the last update may be smaller."""
        rows = self._rows(epoch)
        rng = np.random.default_rng([self.seed, epoch])
        order = rng.permutation(len(rows))
        size = self.settings.classification.batch_size
        cut = []
        for start in range(0, len(order), _POOL * size):
            pool = sorted(order[start : start + _POOL * size].tolist(), key=lambda i: len(rows[i][0]))
            batches = [pool[at : at + size] for at in range(0, len(pool), size)]
            # whole ones first, as epoch_sizes has them
            cut += [batches[i] for i in rng.permutation(len(pool) // size)] + batches[len(pool) // size :]
        return [[rows[i] for i in batch] for batch in cut]

    def _rows(self, epoch: int) -> list[Row]:
        settings = self.settings
        if self.lookup:
            return self.reader.rows(
                switched_examples(self.examples, self.lookup, settings, self.seed, epoch), settings.language, settings.labels
            )
        self._plain = self._plain or self.reader.rows(self.examples, settings.language, settings.labels)
        return self._plain


def switched_examples(examples: list[Example], lookup: Lookups, settings: Finetuning, seed: int, epoch: int) -> list[Example]:
    """The examples with their words switched for one epoch; both texts of a pair into the same language."""
    sides = []
    for side, texts in enumerate(([e.text for e in examples], [e.pair for e in examples])):
        sides.append(switch_lines(texts, lookup, "codeswitch", seed, 2 * epoch + side, 0, settings.codeswitch.noise)[0])
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
