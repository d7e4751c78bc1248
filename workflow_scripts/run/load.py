"""load: which part of a core's time the jobs of a run get, because of other programs. It needs the standard library alone.

Linux counts for each thread how long it has run, and how long it could have run while others had the cores. Where nothing counts that,
other programs are not seen.
"""

import os
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

ENOUGH = 5.0
"""Seconds of running and waiting that tell the part."""
LOOKS = 20
"""Only so many looks count, so that the part follows the machine's load."""


@dataclass
class Load:
    """What was seen of a process and of all that it has started."""

    threads: dict[int, tuple[float, float]] = field(default_factory=dict)
    """Thread → seconds that it had run and waited by the last look."""
    looks: deque[tuple[float, float]] = field(default_factory=lambda: deque(maxlen=LOOKS))
    """Of each look the seconds that all threads had run and waited since the look before."""

    @property
    def share(self) -> float:
        """The part of a core's time that a thread got, from 0 to 1; 1 while too little was seen."""
        ran, waited = (sum(seconds) for seconds in zip(*self.looks, strict=True)) if self.looks else (0.0, 0.0)
        return ran / (ran + waited) if ran + waited >= ENOUGH else 1.0


def look(load: Load, process: int, proc: Path = Path("/proc")) -> None:
    """Note what a process and all that it has started have run and waited since the last look."""
    now = ran_and_waited(process, proc)
    if load.threads:
        before = [load.threads.get(thread, (0.0, 0.0)) for thread in now]
        since = [(ran - had_run, waited - had_waited) for (ran, waited), (had_run, had_waited) in zip(now.values(), before, strict=True)]
        load.looks.append((sum(ran for ran, _ in since), sum(waited for _, waited in since)))
    load.threads = now


def ran_and_waited(process: int, proc: Path) -> dict[int, tuple[float, float]]:
    """Each thread of a process, and of all that it has started, with the seconds that it has run and waited so far."""
    found: dict[int, tuple[float, float]] = {}
    with suppress(OSError):  # the process, or a thread of it, may end meanwhile
        for thread in os.listdir(proc / str(process) / "task"):
            folder = proc / str(process) / "task" / thread
            ran, waited, _ = (folder / "schedstat").read_text().split()
            found[int(thread)] = int(ran) / 1e9, int(waited) / 1e9
            for child in (folder / "children").read_text().split():
                found |= ran_and_waited(int(child), proc)
    return found
