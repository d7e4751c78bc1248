r"""Several small trainings on one GPU: how much they make together, and how much memory they take.

python -m benchmarks.gpu.shared KIND DEVICE SECONDS TINY    one of them: for each line that it reads it trains so long
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from typing import Any

import torch

from benchmarks.gpu.updates import ROW, Size, mbart, planned_updates, updating, wait

DEMO = Size(192, 512, 2, 4_000, 1_024)
GEMMA = Size(640, 2048, 18, 262_144, 8_064)
TINY = Size(64, 128, 1, 500, 512)
KINDS = ("padded", "packed", "unselected", "recorded")
"""How the updates are made; with `lora `, of LoRA on a decoder in the shape of Gemma 3 270M.

`recorded` has scores of all places, also of those in prompts and padding. So has `unselected`, which is `packed` but for that: what they
differ in is the graph alone.
"""
SPEEDS = ("updates_per_s", "target_tokens_per_s", "tokens_per_s", "scores_per_s")
"""What is counted each second. `tokens` are those of the longer side with its padding, and `scores` places that have scores."""

MPS = "nvidia-cuda-mps-control"
"""The program that starts NVIDIA's multi-process service, by which kernels of several processes run at the same time."""


def together(kind: str, numbers: tuple[int, ...], device: torch.device, seconds: float, tiny: bool, by_mps: bool = False) -> dict[str, Any]:
    """What so many processes make at once, one number after the other: `SPEEDS` of all.

    All processes are started at the beginning, and those that are not asked wait. `gb_of_each` is their part of the GPU's memory.
    """
    call = [sys.executable, "-m", "benchmarks.gpu.shared", kind, device.type, str(seconds), str(int(tiny))]
    free, found = torch.cuda.mem_get_info()[0] if device.type == "cuda" else 0, dict[str, Any]()
    with mps() if by_mps else nullcontext() as environment, ExitStack() as stack:
        started = [
            stack.enter_context(ended(subprocess.Popen(call, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)))
            for _ in range(max(numbers))
        ]
        if any(process.stdout.readline().strip() != "ready" for process in started):
            raise RuntimeError(f"one of {max(numbers)} processes ended before it was ready")
        taken = free - torch.cuda.mem_get_info()[0] if device.type == "cuda" else 0
        for number in numbers:
            for process in started[:number]:
                process.stdin.write("go\n")
                process.stdin.flush()
            results = [json.loads(process.stdout.readline() or "{}") for process in started[:number]]
            found[str(number)] = {speed: round(sum(one[speed] for one in results), 1) for speed in SPEEDS}
    return {"processes": found, "gb_of_each": round(taken / 1e9 / max(numbers), 2)}


@contextmanager
def ended(process: Any) -> Iterator[Any]:
    """Context at whose end a process is no more."""
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@contextmanager
def mps() -> Iterator[dict[str, str]]:
    """Context with the environment of processes that share a GPU by a service of their own, which ends with it."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "CUDA_MPS_PIPE_DIRECTORY": folder, "CUDA_MPS_LOG_DIRECTORY": folder}
        subprocess.run([MPS, "-d"], env=environment, check=True, timeout=20)
        try:
            yield environment
        finally:
            subprocess.run([MPS], env=environment, input="quit\n", text=True, timeout=20)


def gemma(size: Size, device: torch.device) -> Any:
    """A decoder of random numbers in the shape of Gemma 3 270M, with LoRA of rank 16 on all matrices of its layers."""
    from peft import LoraConfig, get_peft_model
    from transformers import AutoConfig, AutoModelForCausalLM

    heads: dict[str, Any] = {"num_attention_heads": 4, "num_key_value_heads": 1, "head_dim": size.width // 4 if size is TINY else 256}
    kinds = ["full_attention" if at % 6 == 5 else "sliding_attention" for at in range(size.layers)]
    shape: dict[str, Any] = {"hidden_size": size.width, "intermediate_size": size.feed_forward, "num_hidden_layers": size.layers}
    shape |= {"layer_types": kinds, "sliding_window": 512, "max_position_embeddings": 1_024, "architectures": ["Gemma3ForCausalLM"]}
    config = AutoConfig.for_model("gemma3_text", vocab_size=size.pieces, **shape, **heads)
    with device:
        network = AutoModelForCausalLM.from_config(config).train()
    get_peft_model(network, LoraConfig(r=16, lora_alpha=32, target_modules="all-linear", exclude_modules=["lm_head"]))
    return network


def main(kind: str, where: str, seconds: float, tiny: bool) -> None:
    """One training: for each line that it is given, as many updates as it makes in so many seconds."""
    device, lora, way = torch.device(where), kind.startswith("lora "), kind.split()[-1]
    torch.set_num_threads(1)
    torch.backends.cuda.enable_cudnn_sdp(False)
    size = TINY if tiny else GEMMA if lora else DEMO
    network = gemma(size, device) if lora else mbart(size, device)
    packed, selected = way != "padded", way in ("padded", "packed")
    planned = planned_updates(size, 40, packed=packed, causal=lora)
    with updating(network, size, packed, recorded=way == "recorded", decoder=not lora, selected=selected) as run:
        for rows in planned[:6]:
            run(rows)
        wait(device)
        print("ready", flush=True)
        counts = [counts_of(rows, packed, selected) for rows in planned]
        for _ in sys.stdin:
            began, made = time.perf_counter(), 0
            while time.perf_counter() - began < seconds:
                run(planned[made % len(planned)])
                made += 1
            wait(device)
            taken = time.perf_counter() - began
            totals = map(sum, zip(*(counts[at % len(planned)] for at in range(made)), strict=True))
            print(json.dumps({name: total / taken for name, total in zip(SPEEDS, totals, strict=True)}), flush=True)


def counts_of(rows: list[Any], packed: bool, selected: bool) -> tuple[int, int, int, int]:
    """What `SPEEDS` are of, in one update with these rows."""
    labels = sum(label != -100 for row in rows for label in row[1])
    tokens = len(rows) * (ROW if packed else max(len(side) for row in rows for side in row[:2]))
    return 1, labels, tokens, labels if selected else tokens


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], float(sys.argv[3]), sys.argv[4] == "1")
