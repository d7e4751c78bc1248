"""veco_losses: the losses of VECO (Luo et al. 2021, section 2.2), and how the training loop runs them.

For a pair (x, y) of which some pieces are masked, x̂ and ŷ:

    IS-MLM      −log P(x̄ | x̂) − log P(ȳ | ŷ)               the encoder, on each by itself
    CS-MLM      −log P(ȳ | x̂, ŷ<t) − log P(x̄ | ŷ, x̂<t)     the decoder, on each with the encoder's states of the other
    TLM         −log P(x̄, ȳ | x̂ ‖ ŷ)                       the encoder, on both as one row; for translations only

x̄ and ȳ are the masked pieces, the same for all losses. Each is guessed at its own position, not at the one before. x and y go
through the encoder together as rows of one batch, and through the decoder as well. Scores are made of masked positions alone. The loss
of an update is the mean over all guesses of all its losses, in nats per piece. Where text and translations alternate, it is multiplied by
the share of the losses that the update has: monolingual text has two of VECO's three. So every loss counts alike in all updates.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from workflow_scripts.device import pick_device, pick_precision, reading_in
from workflow_scripts.models.batches import by_length
from workflow_scripts.models.layout import check_layout
from workflow_scripts.models.networks import head_states, output_layer
from workflow_scripts.models.recognition import longest_row
from workflow_scripts.models.tokenisation import Codec
from workflow_scripts.models.tokenizer import load_tokenizer
from workflow_scripts.models.veco import CROSS, decode, encode, load_stack
from workflow_scripts.stage import InputError, processes
from workflow_scripts.training.callbacks import Progress, Watch
from workflow_scripts.training.checkpoints import Deadline
from workflow_scripts.training.curve import LOSS_ONLY
from workflow_scripts.training.loop import parts_of
from workflow_scripts.training.loss import linear_smoothed_loss, smoothed_loss
from workflow_scripts.training.pretraining_settings import Veco
from workflow_scripts.training.rows import Made, in_parts, split_batch
from workflow_scripts.training.segments import Alternating, Batch, alternating_updates, begin_of_second
from workflow_scripts.training.settings import Training
from workflow_scripts.training.trainer import fit
from workflow_scripts.training.validation import DEV_TOKENS

if TYPE_CHECKING:
    from workflow_scripts.models.batches import Row

LOSSES = ("is_mlm", "cs_mlm", "tlm")


# ---------------------------------------------------------------------------------------------
# a batch


def collate(batch: Batch, pad: int, start: int, veco: Veco) -> dict[str, Any]:
    """The tensors of a batch.

    Rows are pairs of segments, x and y, or segments that are alone. Of three rows, x0 y0, x1, x2 y2:

        ids                segments × longest           x0, x1, x2, y0, y2; `seen` is false where there is padding
        decoder_segments   which of them it reads       0, 2, 3, 4: both sides of every pair
        memory_segments    whose states it looks at     3, 4, 0, 2: the other side of the same pair
        joined_ids         pairs × longest              x0 y0, x2 y2; `joined_counted` has the positions, which begin anew with y

    `is_mlm_places`, `cs_mlm_places` and `tlm_places` are the masked positions of `ids`, of what the decoder reads, and of the joined rows,
    each counted through all cells of its batch. `labels` (1 × pieces to guess) are those of one loss after the other.
    """
    first, then = [], []
    for number, (read, wanted) in enumerate(batch.rows):
        at = begin_of_second(read, start)
        labels = torch.full((len(read),), -100)
        labels[: len(wanted)] = torch.tensor(wanted)
        row = torch.tensor(read)
        first.append((number, row[:at], labels[:at]))
        if at < len(read):
            then.append((number, row[at:], labels[at:]))
    segments = [*first, *then]
    ids, seen, labels_of = _padded([segment[1:] for segment in segments], pad)
    tensors: dict[str, Any] = {"ids": ids, "seen": seen}
    guessed: dict[str, Tensor] = {}
    if veco.is_mlm and not batch.cross_alone:
        tensors["is_mlm_places"], guessed["is_mlm"] = _guessed(labels_of)
    if veco.cs_mlm and then:
        # of a segment's number, that of the other one of its pair
        partner = {number: len(first) + place for place, (number, *_) in enumerate(then)}
        tensors["decoder_segments"] = torch.tensor([*partner, *partner.values()])
        tensors["memory_segments"] = torch.tensor([*partner.values(), *partner])
        tensors["cs_mlm_places"], guessed["cs_mlm"] = _guessed(labels_of[tensors["decoder_segments"]])
    if veco.tlm and batch.parallel and then and not batch.cross_alone:
        joined = [(torch.cat([first[number][1], row]), torch.cat([first[number][2], labels])) for number, row, labels in then]
        tensors["joined_ids"], tensors["joined_seen"], joined_labels = _padded(joined, pad)
        counted = [torch.cat([torch.arange(len(side)) for side in (first[number][1], row)]) + pad + 1 for number, row, _ in then]
        tensors["joined_counted"] = pad_sequence(counted, batch_first=True, padding_value=pad)
        tensors["tlm_places"], guessed["tlm"] = _guessed(joined_labels)
    labels = torch.cat([*guessed.values(), torch.empty(0, dtype=torch.long)])
    return {**tensors, "labels": labels[None], "weight": torch.tensor(batch.weight)}


def share(update: Batch, start: int, veco: Veco) -> float:
    """The share of the settings' losses that an update has; however it is split later, its parts have the same.

    Updates in which cross-attention alone learns have all that is learnt then.
    """
    pairs = any(begin_of_second(read, start) < len(read) for read, _ in update.rows)
    has = {"is_mlm": True, "cs_mlm": pairs, "tlm": pairs and update.parallel}
    wanted = [has[name] for name in (("cs_mlm",) if update.cross_alone else LOSSES) if getattr(veco, name)]
    return sum(wanted) / max(1, len(wanted))


def cells(rows: "Sequence[Row]", start: int) -> int:
    """How many pieces, padding included, the encoder and the decoder read of the rows of parallel text."""
    begins = [begin_of_second(read, start) for read, _ in rows]
    longest = max(max(at, len(read) - at) for at, (read, _) in zip(begins, rows, strict=True))
    pairs = [len(read) for at, (read, _) in zip(begins, rows, strict=True) if at < len(read)]
    segments = len(rows) + len(pairs)
    return (segments + 2 * len(pairs)) * longest + len(pairs) * max(pairs, default=0)


def _padded(rows: Sequence[tuple[Tensor, Tensor]], pad: int) -> tuple[Tensor, Tensor, Tensor]:
    """Ids, where there are some, and labels."""
    ids, labels = (pad_sequence([row[side] for row in rows], batch_first=True, padding_value=fill) for side, fill in ((0, pad), (1, -100)))
    lengths = torch.tensor([len(row[0]) for row in rows])
    return ids, torch.arange(ids.shape[1]) < lengths[:, None], labels


def _guessed(labels: Tensor) -> tuple[Tensor, Tensor]:
    """The masked positions, counted through all cells, and their labels."""
    flat = labels.flatten()
    places = (flat != -100).nonzero()[:, 0]
    return places, flat[places]


# ---------------------------------------------------------------------------------------------
# the losses


class Guesses(NamedTuple):
    """What the network returns of a batch."""

    states: Tensor
    """What the output layer multiplies at all masked positions (1 × pieces to guess × width)."""
    weight: Tensor
    """What their mean loss is multiplied with."""


def guesses(network: Any, batch: dict[str, Any], causal: bool) -> dict[str, Tensor]:
    """The states (pieces to guess × width) of each loss of a batch."""
    found = {}
    if "is_mlm_places" in batch or "decoder_segments" in batch:
        # where cross-attention alone learns, nothing does through the encoder
        with torch.set_grad_enabled(torch.is_grad_enabled() and "is_mlm_places" in batch):
            encoded = encode(network, batch["ids"], batch["seen"])  # the paper's X(N), of x and of y; its Y is the decoder's
    if "is_mlm_places" in batch:
        found["is_mlm"] = _at(encoded, batch["is_mlm_places"])
    if "decoder_segments" in batch:
        read, memory = batch["decoder_segments"], batch["memory_segments"]
        decoded = decode(network, batch["ids"][read], batch["seen"][read], encoded[memory], batch["seen"][memory], causal)
        found["cs_mlm"] = _at(decoded, batch["cs_mlm_places"])
    if "joined_ids" in batch:
        joined = encode(network, batch["joined_ids"], batch["joined_seen"], batch["joined_counted"])
        found["tlm"] = _at(joined, batch["tlm_places"])
    return {name: head_states(network, states) for name, states in found.items()}


def _at(states: Tensor, places: Tensor) -> Tensor:
    return states.flatten(0, 1)[places]


def forward_guesses(network: Any, causal: bool) -> None:
    """Make `network` take batches of `collate` and return the states of all masked positions, for the loss."""

    def forward(**batch: Any) -> Guesses:
        found = guesses(network, batch, causal)
        if not found:  # segments that are alone, where cross-attention alone learns: every weight has a gradient of zero
            nothing = torch.stack([0 * weight.sum() for weight in network.parameters()]).sum()
            found = {"none": nothing.expand(0, network.config.hidden_size)}
        elif "decoder_segments" not in batch and torch.distributed.is_initialized():
            # several processes wait for the gradient of every weight, and segments that are alone ask no cross-attention
            unasked = [0 * weight.sum() for name, weight in network.named_parameters() if CROSS in name]
            found |= {"none": torch.stack(unasked).sum().expand(0, network.config.hidden_size)} if unasked else {}
        return Guesses(states=torch.cat(list(found.values()))[None], weight=batch["weight"])

    network.forward = forward
    # the Trainer counts one label less in each part of an update for a loss that predicts the next piece, which this one does not
    network.loss_type = None


def update_loss(network: Any, settings: Training, precision: str) -> Callable[..., Tensor]:
    """The Trainer's loss function: the mean over all guesses of an update, in chunks that never hold all scores, times its weight."""
    dtype = torch.bfloat16 if precision == "bfloat16" else torch.float32

    def loss(outputs: Guesses, labels: Tensor, num_items_in_batch: Any = None) -> Tensor:
        weight, bias = output_layer(network)
        if num_items_in_batch is not None:
            # where cross-attention alone learns, an update of segments that are alone has nothing to guess
            num_items_in_batch = torch.as_tensor(num_items_in_batch).clamp(min=1)
        if settings.loss == "plain":
            mean = smoothed_loss(outputs.states.to(weight.dtype) @ weight.T + bias, labels, settings.label_smoothing, num_items_in_batch)
        else:
            mean = linear_smoothed_loss(outputs.states[0], weight, bias, labels, settings.label_smoothing, num_items_in_batch, dtype)
        return mean * outputs.weight

    return loss


@torch.no_grad()
def measured(
    network: Any, codec: Codec, dev: Sequence[Batch], veco: Veco, tokens: int = DEV_TOKENS, precision: str = "float32"
) -> dict[str, float]:
    """Negative log-likelihood per guess, in nats, of each loss (`is_mlm_loss`, …), and of all together (`veco_loss`)."""
    network.eval()
    sums, counts = dict.fromkeys(LOSSES, 0.0), dict.fromkeys(LOSSES, 0)
    special = codec.tokenizer.pad_token_id, codec.tokenizer.bos_token_id
    for part in dev:
        for chosen in by_length([len(row[0]) for row in part.rows], tokens):
            batch = collate(part._replace(rows=[part.rows[i] for i in chosen]), *special, veco)
            on_device = {name: value.to(network.device) for name, value in batch.items()}
            with reading_in(precision, network.device):
                found = guesses(network, on_device, veco.causal)
            by_loss = on_device["labels"][0].split([len(states) for states in found.values()])
            for (name, states), labels in zip(found.items(), by_loss, strict=True):
                sums[name] += float(linear_smoothed_loss(states[None], *output_layer(network), labels[None], 0.0, 1, states.dtype))
                counts[name] += len(labels)
    every = {f"{name}_loss": sums[name] / counts[name] for name in LOSSES if counts[name]}
    return {"veco_loss": sum(sums.values()) / max(1, sum(counts.values())), **every}


# ---------------------------------------------------------------------------------------------
# training


def load(folder: Path | str, settings: Training, seed: int, from_scratch: bool = False, *, veco: Veco) -> Any:
    """The stack in `folder`, an XLM-R or a VECO, with the phase's dropout; without `cs_mlm` it has no cross-attention.

    With `from_scratch` its weights are random.

    Raises `InputError` for a model that does not fit: its vocabulary, its size, or the length of its rows.
    """
    chosen: dict[str, Any] = {"dropout": settings.dropout, "attention_dropout": settings.attention_dropout}
    stack = load_stack(folder, cross=veco.cs_mlm, seed=seed, from_scratch=from_scratch, **chosen)
    check_layout(Path(folder), load_tokenizer(folder), stack.config)
    if settings.max_length > (longest := longest_row(stack.config)):
        raise InputError(f"{folder}: reads rows of at most {longest} pieces, max_length is {settings.max_length}; lower it")
    return stack


def _nothing(gradient: Tensor | None) -> Tensor | None:
    """Zeros in place of a gradient, where there is one."""
    return None if gradient is None else torch.zeros_like(gradient)


class CrossAttentionFirst(Watch):
    """Keeps all weights but those of cross-attention as they are for the first `updates`."""

    def __init__(self, updates: int, *arguments: Any, **more: Any):
        super().__init__(*arguments, **more)
        self.updates = updates

    def on_train_begin(self, args: Any, state: Any, control: Any, model: Any = None, **kwargs: Any) -> None:
        """Gradients that are not used are zero, so that those of cross-attention are clipped by their own size."""
        super().on_train_begin(args, state, control, **kwargs)
        others = [weight for name, weight in model.named_parameters() if CROSS not in name]
        self.zeroing = [weight.register_hook(_nothing) for weight in others] if state.global_step < self.updates else []

    def on_pre_optimizer_step(self, args: Any, state: Any, control: Any, model: Any = None, **kwargs: Any) -> None:
        """An optimiser does not touch weights without a gradient, and their moments begin when they have one."""
        if state.global_step < self.updates:
            for name, weight in model.named_parameters():
                if CROSS not in name:
                    weight.grad = None

    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """From the update on in which all weights learn, no gradient is zeroed."""
        if state.global_step >= self.updates:
            for hook in self.zeroing:
                hook.remove()
            self.zeroing = []


def train(
    network: Any,
    codec: Codec,
    text: Alternating,
    dev: list[Batch],
    folder: Path,
    seed: int,
    settings: Training,
    minutes: float = 0,
    taken: dict[str, Any] | None = None,
    *,
    veco: Veco,
) -> list[dict]:
    """Train `network` in place by VECO's losses and return the history; goes on and raises as `loop.train` does."""
    precision = pick_precision(settings.precision, pick_device(settings.device))
    pad, start = codec.tokenizer.pad_token_id, codec.tokenizer.bos_token_id
    updates = alternating_updates(text, settings.batch_tokens, settings.updates, seed, veco.cross_attention_first)
    veco = replace(veco, tlm=veco.tlm and text.parallel is not None)  # without translations no update lacks this loss
    if not (veco.is_mlm or veco.cs_mlm or veco.tlm):
        raise InputError("objective veco: tlm alone needs pairs of sentences, and this text has none; switch on is_mlm or cs_mlm")
    to_batch = partial(collate, pad=pad, start=start, veco=veco)
    forward_guesses(network, veco.causal)
    loss = update_loss(network, settings, precision)
    # parallel batches take the most memory, as they have the most losses, and those in which all weights learn
    heaviest = updates[0]._replace(parallel=any(update.parallel for update in updates[:2]), cross_alone=False)
    tried, size = Made(len(updates), lambda at: updates[at].rows), partial(cells, start=start)
    parts = parts_of(network, lambda rows: to_batch(heaviest._replace(rows=rows)), loss, tried, settings, folder, seed, size)
    if taken is not None:
        taken |= {"micro_batch_tokens": math.ceil(settings.batch_tokens / parts)}

    def look() -> dict[str, float]:
        found = measured(network, codec, dev, veco, precision=precision)
        return {"eval_loss": found.pop("veco_loss"), **{f"eval_{name}": value for name, value in found.items()}}

    watch = CrossAttentionFirst(veco.cross_attention_first, folder, settings, Deadline(minutes), math.log(network.config.vocab_size))
    watch.between(lambda: {LOSS_ONLY: look()["eval_loss"]}, settings.loss_updates(task=False))

    def split(update: Batch, parts: int) -> list[Batch]:
        """The parts of an update, with the share of the losses that all of it has."""
        weight = share(update, start, veco)
        return [update._replace(rows=rows, weight=weight) for rows in split_batch(update.rows, parts)]

    some = updates[:20]
    return fit(
        network,
        in_parts(updates, parts, split),
        parts // processes(),
        to_batch,
        loss,
        look,
        watch,
        Progress(sum(len(read) for update in some for read, _ in update.rows) / len(some)),
        seed,
    )
