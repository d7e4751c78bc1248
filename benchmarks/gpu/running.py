"""What runs the cases of the benchmark: in order, each within a limit, a line for each in the output; called again, it goes on.

A case is not measured again where the output has its line, of the same code and device. One that failed is tried again, after those that
were not tried yet.
"""

import gc
import hashlib
import importlib.util
import json
import shutil
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import torch

from workflow_scripts.stage import ROOT


class Case(NamedTuple):
    """What has a line of its own."""

    name: str
    measure: Callable[[], dict[str, Any]]
    needs: tuple[str, ...] = ()
    """Packages that it needs beyond torch, transformers and NumPy."""
    seconds: float = 10.0
    """How long it takes on an H200, start included, by an estimate."""
    round: int = 1
    """Which one it is of several that measure the same, for a median."""
    program: str = ""
    """A program that it needs."""


class TooSlow(BaseException):
    """The limit of a case is over. What catches errors in between does not catch this."""


def in_rounds(
    what: str, variants: Mapping[str, Callable[[], dict[str, Any]]], rounds: int, seconds: float, needs: tuple[str, ...] = ()
) -> Iterator[Case]:
    """Several variants in turn, in so many rounds, since the clocks of shared machines swing."""
    for number in range(1, rounds + 1):
        for name, measure in variants.items():
            yield Case(f"{what}, {name}", measure, needs, seconds, number)


def run(
    cases: Iterable[tuple[str, Case]],
    device: torch.device,
    shared: Mapping[str, Any],
    output: Path,
    minutes: float,
    limit: float,
    again: bool = False,
) -> None:
    """Add a line to `output` for each case, of a part, that it lacks, and for all of them `again`; print what was not begun, and medians.

    No case is begun that by its estimate does not end within `minutes`. One that takes more than `limit` seconds is ended, and has failed.
    """
    began = time.perf_counter()
    output.parent.mkdir(parents=True, exist_ok=True)
    before = [json.loads(line) for line in output.read_text("utf-8").splitlines()] if output.exists() else []
    succeeded = {key(line) for line in before if "failed" not in line}
    failed, measured = {key(line) for line in before} - succeeded, set() if again else succeeded
    given = [(case, {"part": part, "case": case.name, "round": case.round, **shared}) for part, case in cases]
    todo = sorted(((case, line) for case, line in given if key(line) not in measured), key=lambda one: key(one[1]) in failed)
    print(json.dumps({"cases": len(todo), "measured_before": len(given) - len(todo)}), flush=True)
    not_begun = []
    for case, line in todo:
        missing = [name for name in case.needs if importlib.util.find_spec(name) is None]
        missing += [case.program] if case.program and shutil.which(case.program) is None else []
        if missing:
            print(json.dumps({**line, "left_out": f"needs {', '.join(missing)}"}), flush=True)
        elif time.perf_counter() - began + case.seconds > 60 * minutes:
            not_begun.append(f"{line['part']}: {case.name}" + (f" (round {case.round})" if case.round > 1 else ""))
        else:
            line |= tried(case.measure, device, limit)
            with output.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
            print(json.dumps(line), flush=True)
    lines = [json.loads(line) for line in output.read_text("utf-8").splitlines()] if output.exists() else []
    for found in medians([line for line in lines if all(line.get(name) == shared[name] for name in _SAME)]):
        print(json.dumps(found), flush=True)
    print(json.dumps({"seconds": round(time.perf_counter() - began, 1), "not_begun": not_begun}), flush=True)


_SAME = ("device", "tiny", "code")


def key(line: Mapping[str, Any]) -> tuple:
    """What makes a case the same as one that was measured."""
    return tuple(line.get(name) for name in ("part", "case", "round", *_SAME))


def code() -> str:
    """A checksum of what is measured, and of what measures it."""
    digest = hashlib.sha256()
    for path in sorted(path for folder in ("benchmarks", "workflow_scripts") for path in (ROOT / folder).rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def medians(lines: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Of each case that was measured in several rounds the median of each number, and the milliseconds of all."""
    rounds: dict[tuple, dict[int, Mapping[str, Any]]] = {}
    for line in lines:
        if "failed" not in line:
            rounds.setdefault((line["part"], line["case"]), {})[line["round"]] = line
    for (part, case), found in rounds.items():
        if len(runs := [*found.values()]) > 1:
            numbers = [name for name, value in runs[0].items() if isinstance(value, int | float) and not isinstance(value, bool)]
            shown = {name: round(median(run[name] for run in runs), 4) for name in numbers if name != "round"}
            yield {"part": part, "case": case, "rounds": len(runs), "median": shown, "ms_of_all": [run.get("ms") for run in runs]}


def tried(measure: Callable[[], dict[str, Any]], device: torch.device, limit: float = 90.0) -> dict[str, Any]:
    """What a case measures, with its seconds and its peak of memory, or why it could not: the other cases go on."""
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    began = time.perf_counter()
    try:
        with at_most(limit):
            found = measure()
    except TooSlow:
        return {"failed": f"took more than {limit:g} s"}
    except Exception as error:  # whatever it is that this machine lacks
        return {"failed": f"{type(error).__name__}: {str(error)[:300]}"}
    peak = {"peak_gb": round(torch.cuda.max_memory_allocated() / 1e9, 2)} if device.type == "cuda" else {}
    # what ran in a process of its own has measured its own memory
    return {"took_s": round(time.perf_counter() - began, 1), **peak, **found}


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Context that is ended by `TooSlow` after so many seconds, as soon as Python is reached; if that is lost, again ten seconds later."""

    def end(*_: Any) -> None:
        raise TooSlow

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds, 10.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
