"""device: chooses the device (`auto | cpu | cuda`) and the precision to compute with."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
from collections.abc import Callable, Iterator
from typing import ParamSpec, TypeVar

import torch

from workflow_scripts.stage import InputError, processor

P = ParamSpec("P")
T = TypeVar("T")


def pick_device(wanted: str) -> torch.device:
    """The device for `auto | cpu | cuda`; `auto` is a GPU if there is one, made ready for rows of every length.

    Raises `InputError` if CUDA was asked for and is not available. So it does for `auto` if the job was given a GPU that torch cannot use:
    otherwise the job would run for hours on the CPU.
    """
    if wanted == "cpu":
        return torch.device("cpu")
    if torch.cuda.is_available():
        _attend_without_cudnn()
        return torch.device("cuda")
    given = given_gpus()
    if wanted == "cuda" or given:
        raise InputError(
            f"a GPU was {f'given ({given})' if given else 'asked for (device: cuda)'}, but torch {torch.__version__} cannot use it; "
            "install a CUDA build of torch (make setup TORCH=cuda), check the driver with nvidia-smi, or set device: cpu"
        )
    return torch.device("cpu")


def _attend_without_cudnn() -> None:
    """Leave attention to PyTorch's own kernels.

    cuDNN, which PyTorch prefers on an H100, plans anew for each number and length of rows that this process has not seen. Nearly every
    update has another. Planning takes a fifth of a second, twice as long as the update of a large model itself (docs/performance.md).
    """
    torch.backends.cuda.enable_cudnn_sdp(False)


_GPU_VARIABLES = ("SLURM_JOB_GPUS", "SLURM_STEP_GPUS", "CUDA_VISIBLE_DEVICES")


def given_gpus() -> str:
    """The environment variable that says that this job was given GPUs, as ``VARIABLE=value``; empty if there is none."""
    return next((f"{name}={os.environ[name]}" for name in _GPU_VARIABLES if os.environ.get(name) not in (None, "", "-1", "NoDevFiles")), "")


def pick_precision(wanted: str, device: torch.device) -> str:
    """`float32` or `bfloat16` for `auto`: bfloat16 on a GPU that has it, float32 on every CPU, so that all of them give the same.

    Only where `multiplies_in_bfloat16`, large models learn faster with it (docs/performance.md).
    """
    if wanted != "auto":
        return wanted
    return "bfloat16" if device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False) else "float32"


def multiplies_in_bfloat16() -> bool:
    """Whether the processor has instructions for products of matrices in bfloat16 (Intel's AMX)."""
    return torch.cpu._is_amx_tile_supported()  # by which PyTorch chooses its own kernels


def chip(device: torch.device) -> str:
    """The GPU's name, or `cpu`."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu"


def machine(device: torch.device) -> str:
    """The machine that computes on `device`: its processor, and the GPU if it is one. Each rounds in its own way."""
    return processor() + (f", {chip(device)}" if device.type == "cuda" else "")


def reading_in(precision: str, device: torch.device) -> torch.autocast:
    """Context in which a network that learns nothing is read in `precision` (`float32` or `bfloat16`)."""
    return torch.autocast(device.type, torch.bfloat16, enabled=precision == "bfloat16")


@contextlib.contextmanager
def computed_by(device: torch.device | None, **functions: Callable[..., torch.Tensor]) -> Iterator[None]:
    """Context in which these stand in for the functions of `torch.nn.functional` that have their names.

    Does nothing on a `device` other than a CPU; None is a CPU.
    """
    names = vars(torch.nn.functional)
    originals = {name: names[name] for name in functions}
    if device is None or device.type == "cpu":
        names |= functions
    try:
        yield
    finally:
        names |= originals


def keep_memory() -> None:
    """Let glibc keep freed memory instead of returning it to the system.

    Each update on a CPU frees and allocates large tensors of the same sizes. Without this setting, a fifth of the time is spent on page
    faults (docs/performance.md). Has no effect with other C libraries.

    What oneDNN keeps is limited instead: the code that it has compiled for each shape, a megabyte each. Batches have thousands of
    shapes, and its own limit of 1,024 costs a gigabyte and saves no time that can be measured. It reads the variable before its
    first product.
    """
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "64")
    m_trim_threshold, m_mmap_threshold = -1, -3
    with contextlib.suppress(OSError, AttributeError):
        libc = ctypes.CDLL("libc.so.6")
        libc.mallopt(m_mmap_threshold, 32 << 20)
        libc.mallopt(m_trim_threshold, 2**31 - 1)


def without_gradients(function: Callable[P, T]) -> Callable[P, T]:
    """`function`, run without gradients: a decorator which, unlike PyTorch's own, needs PyTorch only when it is called."""

    @functools.wraps(function)
    def run(*given: P.args, **named: P.kwargs) -> T:
        with torch.no_grad():
            return function(*given, **named)

    return run
