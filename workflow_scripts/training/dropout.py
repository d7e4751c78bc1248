"""dropout: PyTorch's dropout on a CPU, several times as fast.

PyTorch draws one random number per element, on a single thread. This takes a tenth of the time of an update of the
demo's model with one thread, and a larger share with several. Here one draw of 64 bits serves four elements.
"""

from contextlib import AbstractContextManager

import torch

from workflow_scripts.device import computed_by


def quick_dropout(device: torch.device) -> AbstractContextManager[None]:
    """Context in which `torch.nn.functional.dropout` is replaced by `dropout` below. Does nothing on devices other than a CPU."""
    return computed_by(device, dropout=dropout)


def dropout(values: torch.Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> torch.Tensor:
    """Zero each value with probability `p`, to the nearest 1/65,536, and scale the others up so that the mean stays.

    Draws from PyTorch's generator, whose state is in every checkpoint; `inplace` saves nothing here.
    """
    dropped = min(round(p * 2**16), 2**16 - 1)
    if not training or dropped == 0:
        return values
    draws = torch.empty(-(-values.numel() // 4), dtype=torch.int64).random_(-(2**63), None).view(torch.int16)
    # compared in float32: booleans would have to be converted, which takes longer than all the rest
    kept = draws[: values.numel()].view(values.shape).float().ge_(dropped - 2**15)
    return values * kept.mul_(2**16 / (2**16 - dropped)).to(values.dtype)
