"""loop: the training loop behind `training`, on Hugging Face's Trainer (`trainer`).

Batches (by token budget), loss and dev set are Crossgap's own.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedModel

from workflow_scripts.device import machine, pick_device, pick_precision
from workflow_scripts.models.batches import Row, collate
from workflow_scripts.models.networks import load_network, makes_scores_of_states, output_layer
from workflow_scripts.models.recognition import family_of, longest_row
from workflow_scripts.models.tokenisation import Codec
from workflow_scripts.stage import InputError, in_one_line, processes
from workflow_scripts.training.callbacks import Progress, Watch
from workflow_scripts.training.checkpoints import Deadline
from workflow_scripts.training.curve import LOSS_ONLY, judge, score_key
from workflow_scripts.training.loss import gives_states, linear_smoothed_loss, smoothed_loss, states_for_logits
from workflow_scripts.training.masks import known_masks, without_questions
from workflow_scripts.training.micro_batches import cells, parts_that_fit, try_part
from workflow_scripts.training.packing import PackedBatches, check_packs, check_window, collate_packed, packed_forward, row_length
from workflow_scripts.training.ragged import lengths_of
from workflow_scripts.training.rows import Batches, Dev, Rounds, in_parts
from workflow_scripts.training.settings import SHARDED_TOKENS, Training
from workflow_scripts.training.sharding import is_sharded, shard, weights_here
from workflow_scripts.training.trainer import fit, trainer_arguments
from workflow_scripts.training.validation import dev_loss, dev_losses, dev_score


def train(
    network: PreTrainedModel,
    codec: Codec,
    rounds: Rounds,
    dev: list[Dev],
    folder: Path,
    seed: int,
    settings: Training,
    minutes: float = 0,
    taken: dict[str, Any] | None = None,
) -> list[dict]:
    """Train `network` in place and return the history, a dictionary per logged update.

    Continues from the newest checkpoint in `folder`, if there is one. Under torchrun each process takes
    its part of every update. Raises `Stopped` when SIGTERM comes or the job's `minutes` are nearly
    over, `Diverged` when the loss is not finite or far above that of guessing. `taken` is filled with what `auto` stood for.
    A decoder whose scores are more than the output layer's product has the plain loss, whatever the settings say.
    """
    if not makes_scores_of_states(network):
        settings = replace(settings, loss="plain")
    device = pick_device(settings.device)
    precision = pick_precision(settings.precision, device)
    handed_on = network
    if settings.sharded and processes() > 1:
        trainer_arguments(settings, folder, 1, seed)  # this starts the processes' group
        network = shard(network, device, precision)
    if settings.gradient_checkpointing:
        compute_again(network)
    planned = settings.batch_tokens, settings.updates, seed
    updates: Batches
    length = row_length(settings.max_length)
    if settings.packed:
        updates = packed = PackedBatches(rounds, *planned, length, partial(check_window, network))
        check_packs(handed_on, max(settings.max_length, packed.longest))  # the whole network, not a part of each weight
        length = packed.length
    else:
        updates = Batches(rounds, *planned)
    check_lengths(network, [updates.epoch(0), *(part.rows for part in dev)])
    loss = pick_loss(network, settings, precision)
    to_batch = batch_maker(codec, settings, select=gives_states(network) and not settings.recorded, length=length)
    with network_reads(network, settings.packed):
        parts = parts_of(network, to_batch, loss, updates, settings, folder, seed)
    if taken is not None:
        taken |= {"micro_batch_tokens": math.ceil(settings.batch_tokens / parts)}
        if is_sharded(network):  # the whole one stays on the processor
            taken |= {"weights_of_each_process": weights_here(network), "precision": precision}
            taken |= {"device": str(network.device), "machine": machine(device)}

    def loss_only() -> dict[str, float]:
        return {LOSS_ONLY: dev_loss(network, codec, dev, precision=precision)}

    def look() -> dict[str, float]:
        smoothings = {"eval_loss": 0.0}
        if settings.choose_by == "smoothed_loss":
            smoothings["eval_smoothed_loss"] = settings.label_smoothing
        losses = dev_losses(network, codec, dev, [*smoothings.values()], precision=precision)
        metrics = dict(zip(smoothings, losses, strict=True))
        for part in dev if settings.bleu_sentences else []:
            score = dev_score(network, codec, part, settings) if part.references else None
            if score is not None:
                metrics[score_key(settings)] = score
        return metrics

    # the loss of a model that gives the same probability to each piece
    uniform = math.log(network.config.vocab_size)
    watch = Watch(folder, settings, Deadline(minutes), uniform, judge(settings))
    watch.between(loss_only, settings.loss_updates(task=any(part.references for part in dev)))
    batches, progress = in_parts(updates, parts), Progress(updates.targets())
    with network_reads(network, settings.packed):
        return fit(network, batches, parts // processes(), to_batch, loss, look, watch, progress, seed, handed_on)


def compute_again(network: PreTrainedModel, block: str = "training") -> None:
    """Have layers keep what goes into them alone; raises `InputError` for a network that cannot, by the settings' `block`."""
    try:
        network.activation_checkpointing_enable({"use_reentrant": False})
    except ValueError as error:
        raise InputError(f"{block}.gradient_checkpointing: {in_one_line(error)}; leave it out") from None


def batch_maker(codec: Codec, settings: Training, select: bool, length: int = 0) -> Callable[[list], dict[str, torch.Tensor]]:
    """What makes tensors of a batch's rows, packed or not, with what the processor knows of them (`masks.without_questions`).

    Packed rows have `length` places, by default those of sentences with `max_length` pieces.
    """
    form: dict[str, Any] = {"pad": codec.pad, "decoder": codec.form.decoder, "start": codec.start}
    places = length or row_length(settings.max_length)
    tensors = partial(collate_packed, length=places, **form) if settings.packed else partial(collate, **form)
    return lambda rows: without_questions(tensors(rows), select, codec.form.causal)


@contextmanager
def network_reads(network: Any, packed: bool) -> Iterator[None]:
    """Context in which `network` reads such batches, or packed ones, and waits for nothing."""
    with known_masks(network), packed_forward(network) if packed else nullcontext():
        yield


def check_lengths(network: PreTrainedModel, rows: Iterable[Sequence[Row]]) -> None:
    """Raise `InputError` for a row, of one text or the other, that is longer than the model can read."""
    longest, most = max((int(lengths_of(some).max()) for some in rows if len(some)), default=0), longest_row(network.config)
    if longest > most:
        way_out = f"set max_length: {most} or less"
        if family_of(network.config).causal:
            way_out = "lower max_length, which is that of the source and of the answer, each by itself; a row has both, and the prompt"
        raise InputError(f"a row has {longest} pieces, and the model reads {most} at most; {way_out}")


def parts_of(
    network: Any,
    to_batch: Callable[[list], dict[str, Any]],
    loss: Callable[..., torch.Tensor],
    updates: Sequence[list],
    settings: Training,
    folder: Path,
    seed: int,
    size: Callable[[list[Row]], int] = cells,
) -> int:
    """How many parts an update is split into: on a GPU found by trying, unless settings say how many tokens go through at once.

    The part of the greatest `size` is tried.
    """
    device = pick_device(settings.device)
    if settings.micro_batch_tokens == "auto" and is_sharded(network):
        # of processes that wait for each other's weights none can run out of memory by itself
        settings = replace(settings, micro_batch_tokens=SHARDED_TOKENS)
    elif settings.micro_batch_tokens == "auto" and device.type == "cuda":
        if processes() > 1:
            trainer_arguments(settings, folder, 1, seed)  # this starts the processes' group, by which they agree
        network.to(device)
        precision = pick_precision(settings.precision, device)
        return parts_that_fit(partial(try_part, network, to_batch, loss, precision, processes() > 1), updates, processes(), size)
    micro_batch = settings.micro_batch_tokens if isinstance(settings.micro_batch_tokens, int) else settings.batch_tokens
    return processes() * math.ceil(settings.batch_tokens / (processes() * micro_batch))


def pick_loss(network: PreTrainedModel, settings: Training, precision: str) -> Callable[..., torch.Tensor]:
    """The Trainer's loss function. For the chunked loss, `network` is changed to return its last states instead of logits."""
    if settings.loss == "plain":
        return lambda outputs, labels, num_items_in_batch=None: smoothed_loss(
            outputs.logits, labels, settings.label_smoothing, num_items_in_batch
        )
    states_for_logits(network)
    return lambda outputs, labels, num_items_in_batch=None: linear_smoothed_loss(
        outputs.logits,
        *output_layer(network),
        labels,
        settings.label_smoothing,
        num_items_in_batch,
        torch.bfloat16 if precision == "bfloat16" else torch.float32,
        ignoring=settings.recorded,
    )


def load_model(folder: Path | str, settings: Training, seed: int, from_scratch: bool = False) -> PreTrainedModel:
    """The model in `folder` (or hub id) that writes text, with the phase's dropout; random weights for `from_scratch`."""
    dropout, attention = settings.dropout, settings.attention_dropout
    return load_network(folder, "text", dropout=dropout, attention_dropout=attention, seed=seed, from_scratch=from_scratch)
