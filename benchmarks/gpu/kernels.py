"""Where the kernels' time goes in an update: each kind of kernel, with the limit of the GPU beside it.

The limits are made of what this GPU does at its best in the same process: one large product of matrices, and one large copy. A kind that
computes has the time of its operations at that rate, the others that of the bytes that they must read and write.
"""

import re
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

from benchmarks.gpu.updates import Size, planned_updates, sentences_of, updating, wait

KINDS = {
    "attention": r"flash|fmha|attention|sdpa|efficient",
    "optimiser": r"adam|Adam",
    "products": r"gemm|nvjet|cutlass|xmma|cublas|aten::(mm|addmm|bmm)$|linear_pointwise",
    "normalisation": r"layer_norm|LayerNorm|GammaBeta|rms_norm",
    "dropout": r"dropout|random",
    "loss": r"softmax|SoftMax|nll|gather|scatter",
    "embeddings": r"embedding|index|sort|Radix|compute_grad_weight",
    "copies to and from bfloat16": r"copy|Copy|memcpy|Memcpy|memset|Memset|_to_copy",
    "sums (gradients of biases)": r"reduce|aten::sum",
    "residuals, GELU and the rest": r"elementwise|gelu|add|mul|aten::",
}
"""Kind → the names of its kernels on a GPU, or of PyTorch's operations on a CPU. The first that fits counts."""


def kind_of(name: str) -> str:
    """The kind of a kernel by its name."""
    return next((kind for kind, names in KINDS.items() if re.search(names, name)), "others")


def profiled(update: Callable[[], None], device: torch.device, number: int) -> dict[str, dict[str, float]]:
    """Milliseconds and calls of each kind of kernel in an update, the mean of so many."""
    on_gpu = device.type == "cuda"
    wait(device)
    with profile(activities=[ProfilerActivity.CUDA if on_gpu else ProfilerActivity.CPU]) as watched:
        for _ in range(number):
            update()
        wait(device)
    found: dict[str, dict[str, float]] = defaultdict(lambda: {"ms": 0.0, "calls": 0.0})
    for event in watched.key_averages():
        spent = event.self_device_time_total if on_gpu else event.self_cpu_time_total
        kind = found[kind_of(event.key)]
        kind["ms"] += spent / 1e3 / number
        kind["calls"] += event.count / number
    return {name: {key: round(value, 3) for key, value in found[name].items()} for name in (*KINDS, "others") if name in found}


def best_of(device: torch.device, tiny: bool) -> dict[str, float]:
    """What the device does at its best: teraFLOPs a second in one large product in bfloat16, and terabytes a second in a copy."""
    side = 128 if tiny else 8_192
    a = torch.randn(side, side, device=device, dtype=torch.bfloat16)
    values = torch.empty((1 << 16) if tiny else (1 << 30), device=device, dtype=torch.uint8)
    other = torch.empty_like(values)
    # three digits, however slow the device is
    return {
        "tflops": float(f"{2 * side**3 / fastest(lambda: a @ a, device) / 1e12:.3g}"),
        "tb_per_s": float(f"{2 * values.numel() / fastest(lambda: other.copy_(values), device) / 1e12:.3g}"),
    }


def fastest(run: Callable[[], Any], device: torch.device) -> float:
    """Seconds of the fastest of ten runs."""
    taken = []
    for _ in range(12):
        wait(device)
        began = time.perf_counter()
        run()
        wait(device)
        taken.append(time.perf_counter() - began)
    return min(taken[2:])


def limits(size: Size, rows: list[Any], cells: int, weights: int, best: dict[str, float]) -> dict[str, float]:
    """The least milliseconds of each kind of kernel in an update of an mBART in bfloat16.

    `rows` are the update's, `cells` its places on one side, padding included, and `weights` how many are learnt.
    """
    pairs = [lengths for row in rows for lengths in sentences_of(row)]
    source, target = (sum(pair[side] for pair in pairs) for side in (0, 1))
    width, inner, layers = size.width, size.feed_forward, size.layers
    matrices = layers * (source * (4 * width**2 + 2 * width * inner + 2 * width**2) + target * (6 * width**2 + 2 * width * inner))
    scores = target * width * size.pieces
    attention = layers * width * sum(s * s + t * t + s * t for s, t in pairs)
    state = cells * width * 2  # bytes of the states of one layer
    seconds = {
        "products": 6 * (matrices + scores) / best["tflops"] / 1e12,
        "attention": 12 * attention / best["tflops"] / 1e12,
    }
    moved = {
        # read and written forwards; both read, and the gradient written, on the way back
        "normalisation": (2 * layers + 3 * layers + 4) * 5 * state,
        # two residuals of the encoder and three of the decoder: two read and one written, and back the same
        "residuals, GELU and the rest": layers * (5 * 6 * state + 2 * 5 * cells * inner * 2),
        "dropout": layers * 5 * 2 * cells * width,
        "loss": 3 * target * size.pieces * 2,
        # copies of weights in bfloat16, and their gradients in float32
        "copies to and from bfloat16": 12 * weights,
        "optimiser": 28 * weights,
    }
    seconds |= {kind: count / best["tb_per_s"] / 1e12 for kind, count in moved.items()}
    return {kind: round(1e3 * value, 3) for kind, value in seconds.items()}


def decoding_limits(
    size: Size, batches: list[tuple[int, int]], pieces: int, beam: int, kind: str, best: dict[str, float]
) -> dict[str, float]:
    """The most sentences a second of an mBART that decodes, if it only read weights and caches, and if it only multiplied matrices.

    A batch is the number of its rows and the longest one's length. Each row is written in so many `pieces`. `kind` is CTranslate2's name of
    the type. The products of int8 have no limit here, as only those of 16 bits are measured.
    """
    width, inner, layers = size.width, size.feed_forward, size.layers
    weights = layers * (6 * width**2 + 2 * width * inner) + width * size.pieces  # of the decoder, which are read for each piece
    read = operations = 0.0
    for rows, longest in batches:
        # keys and values of what is written, for each hypothesis, and of the source, for each row
        cached = 2 * layers * width * rows * (beam * pieces * (pieces + 1) / 2 + longest * pieces)
        read += pieces * weights * (1 if kind.startswith("int8") else 2) + 2 * cached
        operations += 2 * rows * (beam * pieces * weights + longest * layers * (6 * width**2 + 2 * width * inner))
    sentences = sum(rows for rows, _ in batches)
    found = {"reading": sentences * best["tb_per_s"] * 1e12 / read}
    if not kind.startswith("int8"):
        found["products"] = sentences * best["tflops"] * 1e12 / operations
    return {name: round(value, 1) for name, value in found.items()}


def profile_of(make: Callable[..., Any], size: Size, device: torch.device, packed: bool, tiny: bool) -> dict[str, Any]:
    """The kinds of kernels of an update, each with its limit, and their sum."""
    network = make(size, device)
    number = 2 if tiny else 5
    planned = planned_updates(size, number + 5, packed=packed)
    batches = iter(planned)
    with updating(network, size, packed) as run:
        for _ in range(5):
            run(next(batches))
        kinds = profiled(lambda: run(next(batches)), device, number)
    best = best_of(device, tiny)
    rows = planned[-1]
    cells = len(rows) * max(max(len(row[0]), len(row[1])) for row in rows)
    least = limits(size, rows, cells, sum(weight.numel() for weight in network.parameters()), best)
    shown = {kind: {**found, "limit_ms": least.get(kind)} for kind, found in kinds.items()}
    return {**best, "busy_ms": round(sum(found["ms"] for found in kinds.values()), 2), "kinds": shown}
