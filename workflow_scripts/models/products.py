"""products: matrix products of float32 on a CPU, up to twice as fast, and those of a vocabulary on a GPU, up to four times.

PyTorch multiplies float32 matrices on a CPU with MKL, which takes AVX-512 on Intel's processors alone. oneDNN, which
PyTorch brings along, takes it on all that have it. On Intel's, and where AVX-512 is no faster than AVX2 or is not there,
MKL is faster (docs/performance.md), and multiplies.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from platform import machine
from typing import Any

import torch

from workflow_scripts.device import computed_by

# multiplications from which on oneDNN is faster, whose calls cost more
_WORTHWHILE = 1 << 21


@contextmanager
def quick_products(device: torch.device | None = None) -> Iterator[None]:
    """Context, or decorator, in which `torch.nn.functional.linear` is replaced by `linear` below. Does nothing for a `device` but a CPU."""
    _pytorchs()  # before it is replaced
    with computed_by(device, linear=linear):
        yield


def linear(values: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
    """``values @ weight.T + bias``, of … × k, n × k and n numbers, equal to rounding. All but float32 on a CPU is left to PyTorch."""
    if weight.ndim == 2 and suits_onednn(values, weight, len(weight)) and not torch.is_autocast_enabled("cpu"):
        return _onednns().apply(values, weight, bias)
    return _pytorchs()(values, weight, bias)


@cache
def _pytorchs() -> Callable[..., torch.Tensor]:
    """PyTorch's own function."""
    return torch.nn.functional.linear


def product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """``a @ b`` of two matrices, equal to rounding; without gradients where oneDNN multiplies."""
    if not suits_onednn(a, b, b.shape[-1]):
        return a @ b
    if not a.is_contiguous() and b.numel() < a.numel():
        # oneDNN gets a copy of the first matrix where it is transposed, so that should be the smaller one
        return product(b.T, a.T).T
    return _multiply(a, b.T, None)


def aligned_layer(weight: torch.Tensor, bias: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """An output layer (vocabulary × width, vocabulary) with as many pieces as a GPU multiplies fast; elsewhere as it is.

    Pieces that are not there have weights of 0 and a score of −∞, so no softmax sees them. A GPU's fast kernels read 16 bytes at a time,
    which they cannot where the rows of scores have an odd length. mBART's 250,027 pieces would go through kernels of an older generation.
    """
    missing = -len(weight) % _alignment(weight.device)
    if not missing:
        return weight, bias
    pad = torch.nn.functional.pad
    return pad(weight, (0, 0, 0, missing)), pad(bias, (0, missing), value=-torch.inf)


def _alignment(device: torch.device) -> int:
    """What the length of a row of scores should be a multiple of."""
    return 64 if device.type == "cuda" else 1


@cache
def _onednns() -> Any:
    """oneDNN's product as a function with gradients; made when it is first needed, since the class is one of PyTorch's."""

    class Linear(torch.autograd.Function):
        @staticmethod
        def forward(ctx, values, weight, bias):
            ctx.save_for_backward(values, weight)
            return _multiply(values.reshape(-1, values.shape[-1]), weight, bias).view(*values.shape[:-1], len(weight))

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx, gradient):
            values, weight = ctx.saved_tensors
            rows = gradient.reshape(-1, len(weight))
            return (
                product(rows, weight).view_as(values) if ctx.needs_input_grad[0] else None,
                product(rows.T, values.reshape(len(rows), -1)) if ctx.needs_input_grad[1] else None,
                rows.sum(dim=0) if ctx.needs_input_grad[2] else None,
            )

    return Linear


def _multiply(a: torch.Tensor, b: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    """``a @ b.T + bias`` by oneDNN, which reads the bias as if it were contiguous."""
    return torch.ops.mkldnn._linear_pointwise(a, b, bias if bias is None else bias.contiguous(), "none", [], "")


def suits_onednn(a: torch.Tensor, b: torch.Tensor, columns: int) -> bool:
    """Whether the product of two matrices, with so many columns, is for oneDNN: a large one of float32 on a CPU where MKL would do it."""
    numbers = all(tensor.device.type == "cpu" and tensor.dtype == torch.float32 for tensor in (a, b))
    return numbers and a.numel() * columns >= _WORTHWHILE and has_onednn()


@cache
def has_onednn() -> bool:
    """Whether this PyTorch can be asked for oneDNN's products, and they are faster: with AVX-512 (if `ATEN_CPU_CAPABILITY` leaves it)."""
    there = machine() == "x86_64" and torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")
    return there and torch.backends.cpu.get_cpu_capability() == "AVX512" and not suits_mkl()


def suits_mkl(cpuinfo: Path = Path("/proc/cpuinfo")) -> bool:
    """Whether MKL is faster though there is AVX-512: on Intel's processors, and on AMD's of family 25 (Zen 4), which compute it in halves.

    `cpuinfo` is what Linux says of the processors. A processor of which it says nothing counts as one on which it is not.
    """
    text = cpuinfo.read_text(encoding="utf-8") if cpuinfo.exists() else ""
    vendor, family = ("".join(re.findall(rf"^{key}\s*: (\S+)$", text, flags=re.M)[:1]) for key in ("vendor_id", "cpu family"))
    return vendor == "GenuineIntel" or (vendor, family) == ("AuthenticAMD", "25")
