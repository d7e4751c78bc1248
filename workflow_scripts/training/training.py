"""training: one phase of an arm, pretext or finetune, with Hugging Face's Trainer.

A phase starts from a model (the backbone, or the phase before), reads rows (source, target) and
makes a fixed number of updates of a fixed number of tokens. The pretext phase restores sentences
from a folder of rounds (`codeswitch`), both languages mixed, each row with its own language tag; the
task phase translates. Optimiser and learning rate start anew in each phase.

The paper's settings (section IV-A): label smoothing 0.2, dropout 0.3, Adam (0.9, 0.98) with eps
1e-6, linear warm-up and polynomial decay, no gradient clipping.
"""

import math
import os
import shutil
import sys
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import torch

from workflow_scripts.device import given_gpus, keep_memory, pick_precision
from workflow_scripts.limits import AboveZero, Limits, Natural, NotNegative, Positive, ShareBelowOne
from workflow_scripts.models.tokenisation import Codec, decoder_input, load_codec
from workflow_scripts.stage import InputError, atomic, is_first_process, read_json, run, write_json
from workflow_scripts.text.files import read_lines
from workflow_scripts.training.checkpoints import chosen_updates, claimed, describe_phase, fingerprint, judged_by, looks_of


@dataclass
class Training:
    """Settings of one phase. The defaults are the paper's."""

    updates: Positive = 25_000
    """Updates of the weights."""
    batch_tokens: Positive = 8_192
    """Tokens per update, padding included, counted on the longer side."""
    micro_batch_tokens: Positive | None = None
    """Tokens that go through a device at once, and a row more at most; such parts add up to an update. All at once by default."""
    learning_rate: AboveZero = 3e-5
    """Peak of the learning rate."""
    warmup_updates: Natural = 2_500
    """Linear warm-up; then polynomial decay."""
    decay_power: NotNegative = 1.0
    """Power of the decay to zero; 1 is linear."""
    label_smoothing: ShareBelowOne = 0.2
    """Mass that is spread over the vocabulary."""
    loss: Literal["chunked", "plain"] = "chunked"
    """`chunked` never holds the scores of all tokens at once; `plain` is PyTorch's, and equal to rounding."""
    dropout: ShareBelowOne = 0.3
    """Dropout of residuals and embeddings."""
    attention_dropout: ShareBelowOne = 0.1
    """Dropout of attention weights."""
    adam_betas: tuple[ShareBelowOne, ShareBelowOne] = (0.9, 0.98)
    """Decay of Adam's moments."""
    adam_eps: AboveZero = 1e-6
    """Adam's epsilon."""
    weight_decay: NotNegative = 0.0
    """Decoupled weight decay."""
    max_grad_norm: NotNegative = 0.0
    """Clip gradients to this norm; 0 is off, as in the paper."""
    max_length: Annotated[int, Limits(ge=3)] = 256
    """Longer rows are cut to so many pieces."""
    pairs: Positive | None = None
    """Translate from so many pairs only, chosen at random once for all seeds: a low-resource setting. All by default."""
    evaluate_every: Positive = 1_000
    """Updates between two looks at the dev set, and two checkpoints."""
    loss_every: Natural | None = None
    """Updates between two points of the curve of the dev loss, which needs no checkpoint: a quarter of `evaluate_every` by default
    in the task phase; 0 measures it at looks only, as a pretext phase does by default."""
    bleu_sentences: Natural = 500
    """Dev sentences that are translated (greedily) at each look; 0 turns dev BLEU, or ROUGE-L, off."""
    dev_metric: Literal["BLEU", "ROUGE-L"] = "BLEU"
    """What is measured of them. For the task summarisation it is ROUGE-L unless said otherwise."""
    checkpoint: Literal["best", "last", "average", "average_best"] = "best"
    """What the phase hands on: the best, the last, or the mean of the last or best `averaged`; `choose_by` says which is better."""
    choose_by: Literal["metric", "loss"] = "metric"
    """What tells the better of two looks, for `checkpoint` and `patience`: the score that `dev_metric` names, or the dev loss. A pretext
    phase has no such score, and neither has a task phase with `bleu_sentences: 0`: there the loss decides, and `training.json` says so."""
    averaged: Positive = 5
    """Checkpoints that an average is the mean of."""
    patience: Natural = 0
    """End the phase when so many looks at the dev set in a row were no better than the best (`choose_by`); 0 never does."""
    log_every: Positive = 50
    """Updates between two points of the curve."""
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    """`auto` is bfloat16 autocast on a GPU that has it, float32 on a CPU."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Where to train."""


# what may change between a killed call and the one that continues it: no more than rounding, and what dropout draws, depends on it
_NOT_SCIENCE = ("device", "log_every", "loss_every", "micro_batch_tokens", "loss")

Row = tuple[Sequence[int], Sequence[int]]
"""Ids of one row: what the encoder reads, and the labels."""


def main(
    start: Path,
    model: Path,
    curve: Path,
    report: Path,
    checkpoints: Path,
    *,
    languages: tuple[str, ...],
    train_source: Path | None = None,
    train_target: Path | None = None,
    dev_source: Path | None = None,
    dev_target: Path | None = None,
    noised: Path | None = None,
    choice: Path | None = None,
    keep_diverged: bool = False,
    from_scratch: bool = False,
    documents: bool = False,
    seed: int = 1,
    threads: int = 0,
    minutes: float = 0,
    attempt: int = 1,
    settings: Training = Training(),
) -> None:
    """Train one phase and write `model` (Hugging Face format), its learning `curve` and a `report`.

    `languages` are source and target (one, where all text is in one). The task phase reads `train_source` and `train_target`; the
    pretext phase reads `noised`, a folder of rounds. `checkpoints` is a folder that survives a
    killed run: the same call continues there. In the text of `documents`, `</s>` stands between
    sentences. After `minutes`, the job's time, it stops with a checkpoint; 0 is no limit. `attempt` counts the
    calls that Snakemake makes for one job: one that would only repeat the one before is refused. Under torchrun
    (one node) the processes share the work of each update.
    `choice` is what a grid search wrote: its settings replace those of `settings`, and its seed goes on
    from its checkpoints. `keep_diverged` writes the outputs even if the loss is lost, and the reason in the
    report: a point of the grid may fail.

    Raises `Stopped` when it ended before its last update, `InputError` when the input is bad, the folder of
    checkpoints in use, the attempt vain, or the loss not a number.
    """
    from workflow_scripts.training.loop import Diverged, load_model, train

    processes = int(os.environ.get("WORLD_SIZE", "1"))
    if threads:
        torch.set_num_threads(max(1, threads // processes))
    keep_memory()
    if int(os.environ.get("LOCAL_WORLD_SIZE", "1")) != processes:
        raise InputError(f"{processes} processes on more than one node; a phase trains on the GPUs of one node (torchrun --standalone)")
    if choice:
        chosen = read_json(choice)
        part = chosen["phases"]["pretext" if noised else "finetune"]
        settings = replace(settings, **part["settings"])
        if chosen["seed"] == seed:
            checkpoints = Path(part["checkpoints"])
    if noised:
        text = {path.name: path for path in sorted(noised.glob("*.tsv.zst"))}
    elif train_source and train_target and dev_source and dev_target:
        text = {"train source": train_source, "train target": train_target, "dev source": dev_source, "dev target": dev_target}
    else:
        raise InputError("the task phase needs --train-source, --train-target, --dev-source and --dev-target")
    description = describe_phase(asdict(settings), text, start, seed, from_scratch, _NOT_SCIENCE)
    claim = claimed(checkpoints, description, attempt) if is_first_process() else nullcontext(checkpoints / fingerprint(description))
    with claim as folder:
        codec = load_codec(start, documents)
        if noised:
            rounds = NoisedRounds(noised, languages, codec, settings.max_length)
            dev = [Dev(rounds.read("dev", code), code) for code in languages]
        else:
            rounds = ParallelText(train_source, train_target, languages, codec, settings)
            dev = [Dev(encode_pairs(dev_source, dev_target, languages, codec, settings.max_length), languages[1], _lines(dev_target))]
        network = load_model(start, settings, seed, from_scratch)
        diverged = ""
        try:
            history = train(network, codec, rounds, dev, folder, seed, settings, minutes)
        except Diverged as reason:
            if not keep_diverged:
                raise
            history, diverged = reason.history, str(reason)
        if not is_first_process():
            return
        save_model(network, codec.tokenizer, model)
        write_curve(curve, history)
        write_json(
            report,
            {
                "start": str(start),
                "from_scratch": from_scratch,
                "seed": seed,
                "languages": languages,
                "rows": rounds.rows,
                "parameters": sum(p.numel() for p in network.parameters()),
                "device": str(network.device),
                "precision": pick_precision(settings.precision, network.device),
                "processes": processes,
                "checkpoints": str(folder),
                "handed_on": handed_on(history, settings),
                "diverged": diverged,
                "settings": asdict(settings),
            },
        )


# ---------------------------------------------------------------------------------------------
# data


class ParallelText:
    """Rows of the translation task, the same in every epoch."""

    def __init__(self, source: Path, target: Path, languages: tuple[str, str], codec: Codec, settings: Training):
        rows = encode_pairs(source, target, languages, codec, settings.max_length)
        if settings.pairs is not None and settings.pairs < len(rows):
            # not the run's seed: all seeds and arms share one choice
            chosen = np.random.default_rng(len(rows)).permutation(len(rows))[: settings.pairs]
            rows = [rows[i] for i in sorted(chosen)]
        self._rows = rows
        self.rows = len(rows)

    def epoch(self, number: int) -> list[Row]:
        """The rows of an epoch."""
        return self._rows


class NoisedRounds:
    """Rows of a restore task: round r of either language is epoch r, read when its turn comes."""

    def __init__(self, folder: Path, languages: tuple[str, ...], codec: Codec, max_length: int):
        self.folder, self.languages, self.codec, self.max_length = folder, languages, codec, max_length
        self.count = len(list(folder.glob(f"round*.{languages[0]}.tsv.zst")))
        if not self.count:
            raise InputError(f"{folder}: no round*.{languages[0]}.tsv.zst; run the codeswitch stage first")
        report = folder / "codeswitch.json"
        self.pieces = report.exists() and read_json(report)["unit"] == "piece"
        self._current = -1, []
        self.rows = len(self.epoch(0))

    def epoch(self, number: int) -> list[Row]:
        """Rows (noised, original) of both languages; after the last round the first comes again."""
        number %= self.count
        if self._current[0] != number:
            self._current = number, [row for code in self.languages for row in self.read(f"round{number}", code)]
        return self._current[1]

    def read(self, name: str, code: str) -> list[Row]:
        """Rows of one file of one language."""
        import zstandard

        path = self.folder / f"{name}.{code}.tsv.zst"
        with zstandard.open(path, "rt", encoding="utf-8", newline="\n") as file:
            pairs = [line.rstrip("\n").split("\t") for line in file]
        noised, original = (list(side) for side in zip(*pairs, strict=True)) if pairs else ([], [])
        if self.pieces:
            rows = compactly(lambda some: self.codec.encode_tokens(some, code, self.max_length), noised)
        else:
            rows = compactly(lambda some: self.codec.encode(some, code, self.max_length, masks=True), noised)
        return list(zip(rows, compactly(lambda some: self.codec.encode(some, code, self.max_length), original), strict=True))


def encode_pairs(source: Path, target: Path, languages: tuple[str, str], codec: Codec, max_length: int) -> list[Row]:
    """Rows of two aligned files of plain text."""
    sides = [
        compactly(lambda some, code=code: codec.encode(some, code, max_length), _lines(path))
        for path, code in zip((source, target), languages, strict=True)
    ]
    if len(sides[0]) != len(sides[1]):
        raise InputError(f"{source} has {len(sides[0])} lines, {target} {len(sides[1])}; they must be aligned")
    if not sides[0]:
        raise InputError(f"{source}: is empty")
    return list(zip(*sides, strict=True))


def compactly(encode: Callable[[list[str]], list[list[int]]], lines: list[str]) -> list[array]:
    """What `encode` makes of the lines, some of them at a time, in four bytes an id; lists would need ten times as much."""
    return [array("i", ids) for start in range(0, len(lines), 10_000) for ids in encode(lines[start : start + 10_000])]


def _lines(path: Path) -> list[str]:
    return list(read_lines(path))


@dataclass
class Dev:
    """Dev rows in one target language; references where translations are wanted."""

    rows: list[Row]
    language: str
    references: list[str] | None = None


def plan_batches(rounds: ParallelText | NoisedRounds, tokens: int, batches: int, seed: int) -> Iterator[list[Row]]:
    """`batches` batches of at most `tokens` tokens each, padding included.

    An epoch's rows are shuffled, sorted by length within pools of some hundred batches, cut into
    batches and shuffled again, so that little is padded and the order stays random.
    """
    made = epoch = 0
    while made < batches:
        rng = np.random.default_rng([seed, epoch])
        rows = rounds.epoch(epoch)
        lengths = np.array([max(len(source), len(target)) for source, target in rows])
        if lengths.max() > tokens:
            raise InputError(
                f"a row has {lengths.max()} pieces, more than a batch of {tokens} tokens; raise batch_tokens or lower max_length"
            )
        order = rng.permutation(len(rows))
        pool = max(1, int(100 * tokens / lengths.mean()))
        cut: list[list[int]] = []
        for start in range(0, len(order), pool):
            part = order[start : start + pool]
            batch: list[int] = []
            for index in part[np.argsort(lengths[part], kind="stable")]:
                if (len(batch) + 1) * lengths[index] > tokens:
                    cut.append(batch)
                    batch = []
                batch.append(int(index))
            cut.append(batch)
        for index in rng.permutation(len(cut)):
            if made == batches:
                return
            made += 1
            yield [rows[i] for i in cut[index]]
        epoch += 1


def split_batch(rows: list[Row], parts: int) -> list[list[Row]]:
    """A batch in `parts` of nearly equal numbers of rows and lengths; where rows do not suffice, a part has one without labels."""
    return [rows[part::parts] or [(rows[0][0], [-100])] for part in range(parts)]


def collate(rows: list[Row], pad: int) -> dict[str, torch.Tensor]:
    """A batch of tensors (rows × longest): encoder ids and mask, decoder ids, labels (−100 where padded)."""
    sources, labels = ([torch.tensor(row[side]) for row in rows] for side in (0, 1))
    # a row without labels (−100) needs some id
    decoder = [torch.tensor(decoder_input(row[1])).clamp_min(0) for row in rows]
    padded = torch.nn.utils.rnn.pad_sequence
    input_ids = padded(sources, batch_first=True, padding_value=pad)
    return {
        "input_ids": input_ids,
        "attention_mask": padded([torch.ones_like(s) for s in sources], batch_first=True, padding_value=0),
        "decoder_input_ids": padded(decoder, batch_first=True, padding_value=pad),
        "labels": padded(labels, batch_first=True, padding_value=-100),
    }


# ---------------------------------------------------------------------------------------------
# files


def save_model(network, tokenizer, folder: Path) -> None:
    """Write model and tokenizer; the folder takes its name when all is there."""
    temporary = folder.with_name(f".{folder.name}.part")
    shutil.rmtree(temporary, ignore_errors=True)
    network.save_pretrained(temporary)
    tokenizer.save_pretrained(temporary)
    shutil.rmtree(folder, ignore_errors=True)
    os.replace(temporary, folder)


DEV_SCORES = {"BLEU": "dev_bleu", "ROUGE-L": "dev_rouge"}
"""`dev_metric` → its column in the curve."""
_DEV = {name: f"eval_{name.removeprefix('dev_')}" for name in ("dev_loss", *DEV_SCORES.values())}
"""What is measured on the dev set → its name in the Trainer's history."""
CURVE = ("update", "seconds", "loss", "learning_rate", *_DEV)


def write_curve(path: Path, history: list[dict], columns: tuple[str, ...] = CURVE) -> None:
    """Write the curve as TSV: training loss, dev loss (nats per label) and dev BLEU or ROUGE-L, or other `columns`, by update and time."""
    names = {"step": "update", **{theirs: ours for ours, theirs in _DEV.items()}, "eval_accuracy": "dev_accuracy", LOSS_ONLY: "dev_loss"}
    with atomic(path) as file:
        file.write("\t".join(columns) + "\n")
        for entry in history:
            row = {names.get(k, k): v for k, v in entry.items()}
            if "loss" in row or "dev_loss" in row:
                file.write("\t".join(_number(row.get(name)) for name in columns) + "\n")


LOSS_ONLY = "eval_loss_only"
"""The dev loss between two looks, in the Trainer's history: without a checkpoint, so it is nothing to choose from."""


def judge(settings: Training) -> str:
    """What looks at the dev set are to be judged by, by its name in the Trainer's history."""
    return _DEV[DEV_SCORES[settings.dev_metric]] if settings.choose_by == "metric" else "eval_loss"


def handed_on(history: list[dict], settings: Training) -> dict:
    """After which updates the weights were taken that the phase hands on, and how they did on the dev set (on average).

    `chosen_by` is what told the best look, and `reason` why it was the loss where that was not asked for; None where the last is taken.
    """
    by = judge(settings)
    updates = chosen_updates(history, settings.checkpoint, settings.averaged, by)
    looks = [look for look in looks_of(history) if look["step"] in updates]
    measured = {name: [look[key] for look in looks if look.get(key) is not None] for name, key in _DEV.items()}
    chosen_by = judged_by(history, by) if settings.checkpoint in ("best", "average_best") else None
    reason = None
    if chosen_by not in (by, None):
        reason = f"no {settings.dev_metric} was measured on the dev set" + ("" if settings.bleu_sentences else ": bleu_sentences is 0")
    return {
        "updates": updates,
        "chosen_by": {theirs: ours for ours, theirs in _DEV.items()}.get(chosen_by),
        "reason": reason,
        **{name: sum(values) / len(values) if values else None for name, values in measured.items()},
    }


def _number(value: float | None) -> str:
    return "" if value is None or (isinstance(value, float) and math.isnan(value)) else f"{value:.6g}"


def launch() -> None:
    """Run this module under torchrun, a process for each GPU, where the job was given several; else return.

    Given by Slurm or in CUDA_VISIBLE_DEVICES: other GPUs of a workstation may be another job's.
    """
    arguments = sys.argv[1:]
    if "WORLD_SIZE" in os.environ or "--help" in arguments or '"device": "cpu"' in " ".join(arguments) or not given_gpus():
        return
    if (gpus := torch.cuda.device_count()) > 1:
        torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(gpus)]
        # after SIGTERM, of which it would by itself leave 30 s to a checkpoint of many gigabytes
        torchrun += ["--shutdown-timeout", "300"]
        # the two dashes keep torchrun from reading --start as an option of its own
        os.execv(sys.executable, [sys.executable, *torchrun, "-m", "--", "workflow_scripts.training.training", *arguments])


if __name__ == "__main__":
    launch()
    run(main)
