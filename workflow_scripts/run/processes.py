"""processes: Snakemake as a child of `progress`, and what runs beside it. It needs the standard library alone."""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PLUGIN = Path(__file__).with_name("plugin")
"""The folder in which Snakemake finds the package of the logger plugin."""


def say(line: str) -> None:
    """Print a line at once. A closed pipe does not end the run."""
    with suppress(BrokenPipeError):
        print(line, flush=True)


def logging_to(events: Path) -> list[str]:
    """Snakemake's arguments that have the logger plugin write to a file."""
    return ["--logger", "crossgap", "--logger-crossgap-events", str(events)]


def as_called(arguments: Sequence[str]) -> list[str]:
    """Snakemake's arguments without those of `logging_to`."""
    at = next((at for at, word in enumerate(arguments) if [*arguments[at : at + 2]] == ["--logger", "crossgap"]), None)
    return [*arguments] if at is None else [*arguments[:at], *arguments[at + 4 :]]


class Child:
    """Snakemake, in a process group of its own, to which the signals that reach this process are passed on."""

    def __init__(self) -> None:
        self.process: subprocess.Popen | None = None
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self.pass_on)

    def start(self, command: list[str], **options) -> subprocess.Popen:
        """Start a process whose words on either stream go to `stdout`."""
        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stderr=subprocess.STDOUT, start_new_session=True, env=environment(PLUGIN), **options
        )
        return self.process

    def output(self, command: list[str]) -> str:
        """What a command says; ends this process if it is stopped by a signal."""
        process = self.start(command, stdout=subprocess.PIPE, encoding="utf-8", errors="replace")
        said, _ = process.communicate()
        if (status := status_of(process)) >= 128:
            sys.exit(status)
        return said

    def pass_on(self, number: int, _) -> None:
        """As a terminal does, to the whole group: Snakemake and its jobs."""
        if self.process is None:
            sys.exit(128 + number)
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)


def status_of(process: subprocess.Popen) -> int:
    """The exit status of a process that has ended, as a shell has it: that of one that a signal ended is 128 and the signal's number."""
    return process.returncode if process.returncode >= 0 else 128 - process.returncode


def environment(*folders: Path) -> dict[str, str]:
    """This process's environment, in which Python finds modules in these folders too, and none in the folder that it is started in."""
    there = os.environ.get("PYTHONPATH")
    return os.environ | {"PYTHONPATH": os.pathsep.join([*map(str, folders), *([there] if there else [])]), "PYTHONSAFEPATH": "1"}


def beside(module: str, *arguments: str, **options: Any) -> subprocess.Popen[str]:
    """Start a module of ours beside the run, with one thread."""
    command = [sys.executable, "-m", f"workflow_scripts.{module}", *arguments]
    options |= {"stdin": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "text": True, "start_new_session": True}
    return subprocess.Popen(command, env=environment(ROOT) | {"OMP_NUM_THREADS": "1"}, **options)


def stop(process: subprocess.Popen) -> None:
    """End a process that was started beside the run."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    process.wait()
