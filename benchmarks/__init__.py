"""What the stages cost, against other tools: `python -m benchmarks.training …`, from the repository's root."""

import json
import resource
import subprocess
import sys
import time
from typing import Any

import torch


def apart(name: str, *arguments: str, **more: Any) -> dict[str, Any]:
    """The JSON line that a benchmark prints last, called as a process of its own; `more` is for `subprocess.run`."""
    call = [sys.executable, "-m", f"benchmarks.{name}", *arguments]
    return json.loads(subprocess.run(call, stdout=subprocess.PIPE, text=True, check=True, **more).stdout.splitlines()[-1])


def peak_gb(on_gpu: bool = False) -> float:
    """The most memory that this process has had so far, of the machine or of its GPU, in GB."""
    if on_gpu:
        torch.cuda.synchronize()
        return torch.cuda.max_memory_allocated() / 1e9
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


def clock(*updates: int) -> Any:
    """A callback of transformers' Trainer that has the `times` at which these updates ended, the first one being 1.

    Behind the others the processor does not wait for the GPU, as it does not in a user's training.
    """
    from transformers import TrainerCallback

    class Clock(TrainerCallback):
        def __init__(self) -> None:
            self.times: list[float] = []

        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            if state.global_step not in updates:
                return
            if torch.cuda.is_available():
                torch.cuda.synchronize()
            self.times.append(time.perf_counter())

    return Clock()
