"""micro_batches: in how many parts an update goes through a device: as few as its memory holds.

What fits is found by trying. A formula for the memory of attention kernels, workspaces and allocators would have to be cautious, and every
part more is time lost. Only the memory is tried: no weight changes, and no random number is drawn from those of training.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import distributed
from transformers import PreTrainedModel

from workflow_scripts.models.batches import Row
from workflow_scripts.stage import InputError, is_first_process
from workflow_scripts.training.mixed_precision import mixed_precision
from workflow_scripts.training.rows import split_batch


def cells(rows: list[Row]) -> int:
    """The size of a part, padding included."""
    return len(rows) * max(max(map(len, row)) for row in rows)


def parts_that_fit(
    attempt: Callable[[list[Row]], None], updates: Sequence[list[Row]], processes: int, size: Callable[[list[Row]], int] = cells
) -> int:
    """The least number of parts, a power of two for each process, in which updates go through the devices.

    The first thousand are looked at: they are cut to one size, and all updates of a long training are not made at once.
    `attempt` puts one part through this process's device, the largest by `size`, and raises `torch.OutOfMemoryError` where it does not
    fit. The processes agree on the largest number that one of them needs. Raises `InputError` where not even single rows fit.
    """
    parts, some = processes, updates[:1000]
    while True:
        largest = max((part for rows in some for part in split_batch(rows, parts)), key=size)
        fits = True
        try:
            attempt(largest)
        except torch.OutOfMemoryError:
            fits = False
        # outside of the handler, whose exception still holds the tensors
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        if _all_say(fits):
            if is_first_process():
                print(f"each update goes through {processes} device(s) in {parts // processes} part(s)", flush=True)
            return parts
        if len(largest) == 1:
            raise InputError(
                f"a row of {cells(largest)} pieces does not fit into the memory of the GPU with the model and its optimiser; "
                "lower max_length, set trim: true for the backbone, or take a larger GPU"
            )
        parts *= 2


def _all_say(yes: bool) -> bool:
    """Whether all processes say yes."""
    if not distributed.is_initialized():
        return yes
    answers: list[bool] = [False] * distributed.get_world_size()
    distributed.all_gather_object(answers, yes)
    return all(answers)


def try_part(
    network: PreTrainedModel,
    to_batch: Callable[[list[Row]], dict[str, Any]],
    loss: Callable[..., torch.Tensor],
    precision: str,
    shared: bool,
    rows: list[Row],
) -> None:
    """Put `rows` through `network` and back as an update does, beside as much memory as the optimiser will take.

    That are Adam's two moments, and the copy of all gradients that processes exchange where the work is `shared`. The gradients are
    dropped, and the states of random number generators are as before.
    """
    device = network.device
    taken = sum(p.numel() for p in network.parameters() if p.requires_grad) * (12 if shared else 8)
    training = network.training
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        try:
            beside = torch.empty(taken, dtype=torch.uint8, device=device)
            batch = {name: value.to(device) if isinstance(value, torch.Tensor) else value for name, value in to_batch(rows).items()}
            labels = batch.pop("labels")
            network.train()
            with mixed_precision(network, precision):
                for _ in range(2):  # the second time beside the gradients of the first, as parts add up
                    loss(network(**batch), labels, (labels != -100).sum()).backward()
            del beside
        finally:
            network.train(training)
            network.zero_grad(set_to_none=True)
