"""generating: how a text is learnt to be written at once, by CTC and by SGA, in the loop that all training shares.

A phase needs this besides `loop`: the rows whose targets have room (`WithRoom`), a generator made of a backbone (`open_generator`), its
loss in training and on the dev set, and texts of the dev sentences. The network itself is `models.prompts`.

A phase's label smoothing has no part in this: CTC's loss has none, and mask-predict has its own (`sga.label_smoothing`). A phase's dropout
is that of the encoder, frozen or not.
"""

import math
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import AutoConfig

from workflow_scripts.device import pick_device, pick_precision, reading_in
from workflow_scripts.models.batches import Row, by_length, padded
from workflow_scripts.models.ctc import fits
from workflow_scripts.models.networks import load_network
from workflow_scripts.models.prompt_files import make_generator
from workflow_scripts.models.prompts import PromptedEncoder, check_encoder
from workflow_scripts.models.recognition import longest_row
from workflow_scripts.models.refining import write
from workflow_scripts.models.sga import SGA
from workflow_scripts.models.tokenisation import Codec
from workflow_scripts.models.veco import has_cross_attention
from workflow_scripts.stage import InputError, processes, read_json
from workflow_scripts.training.callbacks import Progress, Watch
from workflow_scripts.training.checkpoints import Deadline
from workflow_scripts.training.curve import LOSS_ONLY, judge, score_key
from workflow_scripts.training.loop import parts_of
from workflow_scripts.training.ragged import Rows
from workflow_scripts.training.rows import Batches, Dev, Rounds, in_parts
from workflow_scripts.training.settings import Training
from workflow_scripts.training.trainer import fit
from workflow_scripts.training.validation import DEV_TOKENS, score_of_texts


class WithRoom(Rounds):
    """Rows (source, pieces of the target alone) of `rounds` whose targets have room in the alignment; the others are counted.

    Where all epochs have the same rows, these are made once.
    """

    def __init__(self, rounds: Rounds, codec: Codec, settings: SGA, longest: int):
        self._rounds, self._admit = rounds, room_finder(codec, settings, longest)
        self.too_long = rounds.too_long
        self._read, counts = rounds.epoch(0), none_left_out()
        self._kept = self._with_room(self._read, counts)
        self.left_out, self.rows = dict(counts), len(self._kept)
        if not self.rows:
            raise no_room("the training text", self.left_out, settings, longest)
        self.longest_seen = int(self._kept.lengths(1).max())

    def epoch(self, number: int) -> Rows:
        """The rows of an epoch."""
        rows = self._rounds.epoch(number)
        if rows is not self._read:
            self._read, self._kept = rows, self._with_room(rows, none_left_out())
        return self._kept

    def _with_room(self, rows: Iterable[Row], counts: Counter[str]) -> Rows:
        return Rows.of(row for given in rows if (row := self._admit(given, counts)))


def none_left_out() -> Counter[str]:
    """Counts of rows that are left out, and of pieces that are removed."""
    return Counter({"targets_too_long": 0, "targets_cut": 0, "targets_empty": 0, "blanks_removed": 0})


def rows_with_room(rows: Iterable[Row], codec: Codec, settings: SGA, longest: int) -> tuple[list[Row], dict[str, int]]:
    """The rows whose targets have room, and how many were left out; see `room_finder`."""
    admit, counts = room_finder(codec, settings, longest), none_left_out()
    kept = [row for given in rows if (row := admit(given, counts))]
    return kept, dict(counts)


def room_finder(codec: Codec, settings: SGA, longest: int) -> Callable[[Row, Counter[str]], Row | None]:
    """What makes of a row the source and its target alone; None if it has no room, which is counted (`none_left_out`).

    A target that was cut is left out: its length would be learnt as that of a whole text. Its last label tells that (`Codec.fitted`).
    A target loses what frames a text in its family. Where CTC is to write it, it loses the blank as well, which texts may have.
    `longest` is the most pieces that a target may have with mask-predict; CTC's have room by the length of their source.
    """
    frame = {getattr(codec.tokenizer, f"{part}_token_id") for part in codec.row if part not in ("text", "tag")}
    blank = codec.tokenizer.get_vocab()[settings.blank]
    by_ctc = settings.alignment == "ctc"

    def admit(row: Row, counts: Counter[str]) -> Row | None:
        source, labels = row
        whole = [piece for piece in labels if piece >= 0 and piece not in frame]
        target = [piece for piece in whole if piece != blank] if by_ctc or settings.denoising else whole
        room = settings.upsampling * len(source if by_ctc else target)
        if len(labels) and labels[-1] < -100:
            counts["targets_cut"] += 1
        elif not target:
            counts["targets_empty"] += 1
        elif ((by_ctc or settings.denoising) and not fits(target, room)) or (not by_ctc and len(target) > longest):
            counts["targets_too_long"] += 1
        else:
            counts["blanks_removed"] += len(whole) - len(target)
            return source, array("i", target)  # a list takes six times the memory
        return None

    return admit


def no_room(text: str, counts: dict[str, int], settings: SGA, longest: int) -> InputError:
    """The error, with the way out, that no target of a `text` is left; `counts` and `longest` are as in `room_finder`."""
    longer = "raise training.max_length"
    if not counts["targets_too_long"]:
        if counts["targets_cut"]:
            return InputError(f"no target of {text} has room in training.max_length as a whole ({counts}); {longer}")
        return InputError(f"no target of {text} has a piece besides the blank, {settings.blank!r} ({counts}); set another sga.blank")
    way_out = f"{longer} and sga.upsampling" if counts["targets_cut"] else "raise sga.upsampling"
    # twice as many positions have room for all equal neighbours; what is too long then has more pieces than the denoiser can read
    if settings.alignment == "mask_predict" and settings.upsampling > 1:
        way_out = f"a target may have {longest} pieces: lower sga.upsampling, or give shorter targets"
    return InputError(f"no target of {text} has room in its alignment ({counts}); {way_out}")


def open_generator(
    start: Path, codec: Codec, rounds: Rounds, settings: Training, seed: int, from_scratch: bool = False, *, frozen: bool, sga: SGA
) -> tuple[PromptedEncoder, WithRoom]:
    """A generator of the encoder in `start`, `frozen` or not, and its rows.

    Its settings are effective ones (`training.generator.Generator.effective`).

    Raises `InputError` for a pretrained model that is no masked language model, for rows whose alignments are longer than it can read, and
    as `check_encoder` does.
    """
    config = AutoConfig.from_pretrained(start)
    check_encoder(config, codec, sga, str(start))
    guesses = has_cross_attention(config) or any("MaskedLM" in name for name in config.architectures or ())
    if not from_scratch and not guesses:
        raise InputError(
            f"{start}: has no head that guesses masked pieces ({config.architectures}), with which SGA and CTC write; take a masked "
            "language model, or train random weights of this shape (generator: ctc, start: scratch)"
        )
    dropout, attention = settings.dropout, settings.attention_dropout
    encoder = load_network(start, "text", dropout=dropout, attention_dropout=attention, seed=seed, from_scratch=from_scratch)
    positions = longest_row(config)
    if settings.max_length > (longest := sga.longest_source(positions)):
        what = f"make alignments of {sga.upsampling * settings.max_length} positions" if longest < positions else "are too many"
        raise InputError(f"training.max_length: {settings.max_length} pieces {what}; {start} has {positions}. Lower it to {longest}")
    rows = WithRoom(rounds, codec, sga, sga.longest_target(positions))
    torch.manual_seed(seed)
    model = make_generator(encoder, codec, sga, frozen, math.ceil(rows.longest_seen / sga.length_classes), str(start))
    model.backbone = backbone_name(start)
    return model, rows


def backbone_name(start: Path) -> str:
    """What the backbone in a folder is called: its name on the hub, or in the run."""
    report = start.parent / "backbone.json"
    settings = read_json(report).get("settings", {}) if report.exists() else {}
    return settings.get("model") or (start.parent if start.name == "model" else start).name


def collate_sources(rows: list[Row], pad: int) -> dict[str, torch.Tensor]:
    """A batch of tensors: ids and mask of the sources, targets (−100 where padded). The Trainer takes `labels` away, and counts them."""
    (ids, seen), (labels, _) = (padded([np.asarray(row[side]) for row in rows], fill) for side, fill in ((0, pad), (1, -100)))
    batch = {"input_ids": ids, "attention_mask": seen.astype(np.int64), "targets": labels, "labels": labels}
    return {name: torch.from_numpy(numbers) for name, numbers in batch.items()}


def summed(outputs: dict[str, torch.Tensor], labels: torch.Tensor, num_items_in_batch: torch.Tensor | int | None = None) -> torch.Tensor:
    """The Trainer's loss: that of all units by label of the update (equation 7)."""
    return sum(outputs.values(), torch.zeros((), device=labels.device)) / (
        num_items_in_batch if num_items_in_batch is not None else (labels != -100).sum()
    )


def train_generator(
    model: PromptedEncoder,
    codec: Codec,
    rows: WithRoom,
    dev: list[Dev],
    folder: Path,
    seed: int,
    settings: Training,
    minutes: float,
    taken: dict[str, Any],
) -> list[dict]:
    """Train `model` in place and return the history; all else is as in `loop.train`."""
    device = pick_device(settings.device)
    precision = pick_precision(settings.precision, device)
    updates = Batches(rows, settings.batch_tokens, settings.updates, seed)
    pad = codec.tokenizer.pad_token_id
    to_batch = partial(collate_sources, pad=pad)
    parts = parts_of(model, to_batch, summed, updates, settings, folder, seed, partial(positions_read, model.settings))
    taken |= {"trained": sum(weight.numel() for weight in model.trained().values()), "left_out": rows.left_out}
    taken |= {"micro_batch_tokens": math.ceil(settings.batch_tokens / parts)}
    # texts are compared with all references; the loss is that of targets with room
    dev_rows, dev_left_out = rows_with_room((row for part in dev for row in part.rows), codec, model.settings, model.longest_target)
    if not dev_rows:
        raise no_room("the dev set", dev_left_out, model.settings, model.longest_target)
    taken["dev_left_out"] = dev_left_out

    def measured() -> dict[str, float]:
        return dev_losses(model, dev_rows, pad, precision)

    def loss_only() -> dict[str, float]:
        return {LOSS_ONLY: sum(measured().values())}

    def texts(sources: list[Sequence[int]], tokens: int) -> list[str]:
        return codec.decode([written.ids for written in write(model, sources, pad, tokens)])

    def sources_of(part: Dev) -> list[Sequence[int]]:
        return [row[0] for row in part.rows[: settings.bleu_sentences]]

    def look() -> dict[str, float]:
        found = measured()
        metrics = {"eval_loss": sum(found.values()), **{f"eval_{name}_loss": value for name, value in found.items()}}
        for part in dev if settings.bleu_sentences else []:
            score = score_of_texts(texts, sources_of(part), part, settings, model.device) if part.references else None
            if score is not None:
                metrics[score_key(settings)] = score
        return metrics

    # what guessing costs at most: each position costs the logarithm of the vocabulary, in each unit that writes
    first = updates.epoch(0)
    positions = sum(positions_guessed(model.settings, len(source), len(target)) for source, target in first)
    guess = math.log(model.config.vocab_size) * positions / sum(len(target) for _, target in first)
    watch = Watch(folder, settings, Deadline(minutes), guess, judge(settings))
    watch.between(loss_only, settings.loss_updates(task=True))
    return fit(
        model,
        in_parts(updates, parts),
        parts // processes(),
        to_batch,
        summed,
        look,
        watch,
        Progress(updates.targets()),
        seed,
    )


def positions_guessed(settings: SGA, source: int, target: int, drafts: int = 1) -> int:
    """In how many positions a piece is guessed for a row of so many pieces and so many drafts of it, and with mask-predict its length."""
    by_ctc = settings.alignment == "ctc"
    alignment = settings.upsampling * source if by_ctc else target + 1
    denoised = settings.upsampling * (source if by_ctc else target) if settings.denoising else 0
    return alignment + drafts * denoised


def positions_read(settings: SGA, rows: list[Row]) -> int:
    """The size of a part for the memory that it takes, padding included: what all units read, and what stands before that.

    A position is read twice, as a state and as a key with its value. Before those of a unit stand the keys and values of its prompt, and in
    the units that write those of the guide. So many short rows take more memory than a few long ones with as many positions.
    """
    source, target = (max(len(row[side]) for row in rows) for side in (0, 1))
    units = 2 + (settings.drafts if settings.denoising else 0)
    read = source + positions_guessed(settings, source, target, settings.drafts)
    before = units * settings.prompt_length + (units - 1) * source
    return len(rows) * (2 * read + before)


@torch.no_grad()
def dev_losses(model: PromptedEncoder, rows: list[Row], pad: int, precision: str = "float32", tokens: int = DEV_TOKENS) -> dict[str, float]:
    """The loss of each unit by label, in nats, without noise.

    As in training, mask-predict guesses some pieces of a row and is given the others, and the denoiser reads both. Which pieces are guessed
    is drawn alike at each look, by a generator of its own: training goes on as if nothing had been measured.
    """
    model.eval()
    random = torch.Generator(model.device).manual_seed(0)
    total: dict[str, float] = {}
    for chosen in by_length([max(map(len, row)) for row in rows], tokens):
        batch = {name: tensor.to(model.device) for name, tensor in collate_sources([rows[i] for i in chosen], pad).items()}
        batch.pop("labels")
        with reading_in(precision, model.device):
            found: dict[str, Any] = model(**batch, random=random)
        total = {name: total.get(name, 0.0) + float(value) for name, value in found.items()}
    labels = sum(len(target) for _, target in rows)
    return {name: value / labels for name, value in total.items()}
