"""progress: runs Snakemake and says in plain lines what is being done, how far it is and how long the training still takes.

    python workflow_scripts/run/progress.py --cores all

is what `make demo` and `make resume` call; the arguments are Snakemake's. It needs the standard library alone.

1. Ask Snakemake for its plan, with the same arguments, as a dry run.
2. Start Snakemake. All that it says goes into `results/logs/snakemake.log`.
3. Follow that file, and the logs of the trainings under way. Print a line when another kind of job or another training
   begins, and every minute.
4. At the end, show why the run stopped if it did. The exit status is Snakemake's.

SIGINT (Ctrl-C), SIGTERM and SIGHUP are passed on to Snakemake and its jobs, so that trainings write a checkpoint.
"""

import argparse
import fcntl
import io
import os
import re
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

LOG = Path("results/logs/snakemake.log")
"""In the folder of the run."""
EVERY = 60.0
"""Seconds between two lines if nothing new begins."""
AT_LEAST = 5.0
"""Seconds between two lines in any case; several short jobs that begin meanwhile share a line."""


@dataclass
class Job:
    """A job of Snakemake, planned or running."""

    rule: str
    wildcards: str = ""
    """As Snakemake writes them: `experiment=help-de-en, arm=csr, seed=1`."""
    log: str = ""
    work: int = 0
    """Of a training: the tokens that it reads, updates × tokens per update. 0 for any other job."""
    begun: float = 0.0
    """When it began, in seconds since the epoch."""
    updates: tuple[int, int] | None = None
    """Of a training under way: updates done, and planned."""
    gpus: int = 0
    """How many GPUs it takes, where the profile or this machine has some."""

    @property
    def key(self) -> tuple[str, str]:
        """What a job has in the plan and when it runs; its number differs."""
        return self.rule, self.wildcards

    @property
    def work_left(self) -> float:
        """Tokens that are still to be read."""
        return self.work * (1 - self.updates[0] / self.updates[1]) if self.updates else self.work


@dataclass
class Run:
    """What is known of a run of Snakemake, from what it has said so far."""

    folder: Path = Path()
    """Where it is: here, or what `--directory` names."""
    waiting: dict[tuple[str, str], Job] = field(default_factory=dict)
    """Planned jobs that have not ended."""
    running: dict[str, Job] = field(default_factory=dict)
    """By Snakemake's number."""
    steps: tuple[int, int] = (0, 0)
    """Jobs that have ended, and all jobs."""
    at_once: int = 1
    """How many jobs can run side by side, by cores or places on the cluster."""
    gpus: int | None = None
    """How many GPUs all jobs share; None where Snakemake counts none."""
    rate: float = 0.0
    """Tokens per second of one training; 0 as long as it is not known."""
    seen: set[str] = field(default_factory=set)
    """Rules of which a job has begun."""
    news: bool = False
    """Whether something has begun that is worth a line."""
    block: dict[str, str] = field(default_factory=dict)
    """The fields of a job that is being read."""


def main(arguments: Sequence[str]) -> int:
    """Run Snakemake with `arguments` and return its exit status."""
    command = [sys.executable, "-m", "snakemake", *arguments]
    if any(_DRY.fullmatch(word) for word in arguments):
        return subprocess.run(command).returncode
    folder = folder_of(arguments)
    log = folder / LOG
    log.parent.mkdir(parents=True, exist_ok=True)
    child = Child()
    say(f"Snakemake's own words go into {log} (VERBOSE=1 shows them here)")
    run = Run(folder, waiting=planned(child.output([*command, "--dry-run", "--printshellcmds"])))
    began = said = time.time()
    with open(log, "a", encoding="utf-8") as words, open(log, encoding="utf-8", errors="replace") as reader:
        if not alone(words):
            say(f"another run writes into {log}; Snakemake says here what it has to say")
            process = child.start(command)
            process.wait()
            return status_of(process)
        words.truncate(0)
        process = child.start(command, stdout=words)
        unfinished = ""
        ended = False
        while not ended:
            with suppress(subprocess.TimeoutExpired):
                process.wait(0.5)
            ended = process.poll() is not None
            *lines, unfinished = (unfinished + reader.read()).split("\n")
            now = time.time()
            for line in lines:
                read_line(run, line, now)
            if not ended and run.running and now - said >= (AT_LEAST if run.news else EVERY):
                look_at_trainings(run)
                say(f"{clock(now - began)}  {line_about(run)}")
                run.news, said = False, now
    status = status_of(process)
    done, total = run.steps
    if status:
        say(reason(log.read_text(encoding="utf-8", errors="replace")))
        say(f"{clock(time.time() - began)}  stopped with exit status {status}, {done} of {total} jobs done; see {log}")
    else:
        say(f"{clock(time.time() - began)}  " + (f"all {total} jobs done" if total else "nothing to be done: everything is there already"))
    return status


_DRY = re.compile(r"--dry-?run|-[npFq]*n[npFq]*")
"""Snakemake's -n, alone, together with other letters or written out."""


def alone(log: TextIO) -> bool:
    """Whether no other run writes into this log; the lock is Snakemake's as well, which inherits it. Where files have no locks, it is."""
    try:
        fcntl.flock(log, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        pass
    return True


def folder_of(arguments: Sequence[str]) -> Path:
    """The folder of the run, as Snakemake's arguments have it."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("-d", "--directory", type=Path, default=Path())
    return parser.parse_known_args(arguments)[0].directory


def say(line: str) -> None:
    """Print a line at once. A closed pipe does not end the run."""
    with suppress(BrokenPipeError):
        print(line, flush=True)


# ---------------------------------------------------------------------------------------------
# Snakemake's process


class Child:
    """Snakemake, in a process group of its own, to which the signals that reach this process are passed on."""

    def __init__(self) -> None:
        self.process: subprocess.Popen | None = None
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self.pass_on)

    def start(self, command: list[str], **options) -> subprocess.Popen:
        """Start a process whose words on either stream go to `stdout`."""
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.STDOUT, start_new_session=True, **options)
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


# ---------------------------------------------------------------------------------------------
# what Snakemake says

_BEGINS = re.compile(r" *(?:local)?(?:rule|checkpoint) (\w+):$")
_FAILS = re.compile(r" *Error in rule (\w+):$")
_FIELD = re.compile(r" +(jobid|wildcards|log|resources): (.*)$")
_FINISHED = re.compile(r"Finished jobid: (\d+)")
_STEPS = re.compile(r"(\d+) of (\d+) steps \(")
_TOTAL = re.compile(r"total +(\d+)$")
_AT_ONCE = re.compile(r"Provided (?:cores|remote nodes): (\d+)")
_GPUS = re.compile(r"Provided resources:.*\bgpu=\D*(\d+)")
_UPDATES, _TOKENS = (re.compile(rf'"{name}": (\d+)') for name in ("updates", "batch_tokens"))


def planned(said: str) -> dict[tuple[str, str], Job]:
    """The jobs of a dry run with `--printshellcmds`; the settings in a training's command tell its work."""
    run = Run()
    jobs: dict[tuple[str, str], Job] = {}
    for line in said.splitlines():
        read_line(run, line, 0.0)
        for job in run.running.values():
            jobs[job.key] = last = job
        run.running.clear()
        settings = settings_of(line) if jobs and last.rule == "backbone" else line
        if jobs and (updates := _UPDATES.search(settings)) and (tokens := _TOKENS.search(settings)):
            last.work = int(updates[1]) * int(tokens[1])
    return jobs


def settings_of(line: str) -> str:
    """Of a backbone's command the block that its kind reads; a block that was taken over with `like` may stand before it."""
    kind = _KIND.search(line)
    return line if not kind else line.partition(f'"{kind[1]}": {{')[2]


_KIND = re.compile(r'"kind": "(\w+)"')


def read_line(run: Run, line: str, now: float) -> None:
    """Process one line of Snakemake's output."""
    if begins := _BEGINS.match(line):
        run.block = {"rule": begins[1]}
    elif _FAILS.match(line):
        run.block = {"failed": "yes"}
    elif run.block and (found := _FIELD.match(line)):
        run.block[found[1]] = found[2]
        if "failed" in run.block and found[1] == "jobid":
            run.running.pop(found[2], None)
            run.block = {}
        elif found[1] == "resources":  # the last line of a job
            begin(run, now)
    elif finished := _FINISHED.match(line):
        if job := run.running.pop(finished[1], None):
            run.waiting.pop(job.key, None)
    elif steps := _STEPS.match(line):
        run.steps = int(steps[1]), int(steps[2])
    elif total := _TOTAL.match(line):
        run.steps = run.steps[0], int(total[1])
    elif at_once := _AT_ONCE.match(line):
        run.at_once = int(at_once[1])
    elif gpus := _GPUS.match(line):
        run.gpus = int(gpus[1])


def begin(run: Run, now: float) -> None:
    """Note the job whose fields have been read."""
    log = run.block.get("log", "").split(", ")[0]
    job = Job(run.block["rule"], run.block.get("wildcards", ""), str(run.folder / log) if log else "", begun=now)
    if gpus := re.search(r"\bgpu=(\d+)", run.block["resources"]):
        job.gpus = int(gpus[1])
    if job.key in run.waiting:
        job.work = run.waiting[job.key].work
    run.running[run.block.get("jobid", "")] = job
    run.news = run.news or bool(job.work) or job.rule not in run.seen
    run.seen.add(job.rule)
    run.block = {}


# ---------------------------------------------------------------------------------------------
# what trainings say

_PROGRESS = re.compile(r"^update (\d+)/(\d+) .*left (\d+):(\d\d)$", flags=re.MULTILINE)


def look_at_trainings(run: Run) -> None:
    """Read the last line of each training's log: updates done, and the time that it still takes."""
    rates = []
    for job in run.running.values():
        if job.work and (last := last_progress(job)):
            done, planned, minutes, seconds = last
            job.updates = done, planned
            if (left := 60 * minutes + seconds) and done < planned:
                rates.append(job.work_left / left)
    if rates:
        run.rate = sum(rates) / len(rates)


def last_progress(job: Job) -> list[int] | None:
    """Updates done, updates planned, minutes and seconds left, by the training's log; None if it has not said."""
    try:
        if os.path.getmtime(job.log) < job.begun - 1:
            return None  # the log of an earlier run
        with open(job.log, "rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - (1 << 14)))
            found = _PROGRESS.findall(file.read().decode("utf-8", "replace"))
    except OSError:
        return None
    return [int(number) for number in found[-1]] if found else None


def training_left(run: Run) -> float | None:
    """Seconds until all training has been done; None as long as that cannot be known.

    Trainings that wait are taken to be as fast as those that were seen. Phases of one arm follow each other, and backbones
    go before everything else.
    """
    jobs = {**run.waiting, **{job.key: job for job in run.running.values()}}
    # tasks with labels count epochs; the number of their updates is not known beforehand
    if not run.rate or any(job.rule.endswith("finetune") and not job.work for job in jobs.values()):
        return None
    seconds = 0.0
    for backbones in (True, False):
        chains: dict[str, float] = defaultdict(float)
        at_once = run.at_once
        for job in jobs.values():
            if job.work and (job.rule == "backbone") is backbones:
                # the phases of an arm wait for each other
                chains[job.wildcards.partition(", phase=")[0]] += job.work_left
                if job.gpus and run.gpus is not None:
                    at_once = min(at_once, max(1, run.gpus // job.gpus))
        if chains:
            seconds += max(sum(chains.values()) / min(at_once, len(chains)), max(chains.values())) / run.rate
    return seconds


# ---------------------------------------------------------------------------------------------
# in words

DOING = {
    "acquisition": "fetching data",
    "held_out": "setting dev and test text aside",
    "corpus": "cleaning the text",
    "frequencies": "counting words",
    "embeddings": "learning word vectors",
    "mapping": "mapping the word vectors into one space",
    "lexicon": "making the lexicon",
    "codeswitch": "switching words",
    "backbone": "pretraining the backbone",
    "pretext": "training the pretext task",
    "finetune": "finetuning",
    "decoding": "translating",
    "generation_decoding": "writing answers to the test sets",
    "scores": "scoring",
    "significance": "testing for significance",
    "word_accuracy": "measuring word accuracy",
    "representation": "measuring representations",
    "cka": "comparing states of models and languages",
    "spectra": "decomposing weights",
    "separability": "measuring how languages are told apart",
    "report": "writing the report",
}
"""Rules in plain words; a rule that is not here is called by its name."""


def line_about(run: Run) -> str:
    """One line: what is being done, how far it is, how long it takes."""
    by_rule: dict[str, list[Job]] = {}
    for job in run.running.values():
        by_rule.setdefault(job.rule, []).append(job)
    doing = []
    for rule, jobs in by_rule.items():
        name = DOING.get(rule, rule.replace("_", " "))
        doing += [f"{name}{about(job)}" for job in jobs] if len(jobs) <= 2 else [f"{name} ({len(jobs)} jobs)"]
    done, total = run.steps
    left = training_left(run)
    return f"{'; '.join(doing)}. {done} of {total} jobs done" + (f", about {rounded(left)} of training left" if left else "")


def about(job: Job) -> str:
    """What a job is about, and how far a training is: ` (help-de-en, csr, seed 1; update 700 of 1,700)`."""
    pairs = [part.partition("=") for part in job.wildcards.removesuffix(", phase=pretext").split(", ") if part]
    # a corpus and its lexicon may have one name; once is enough
    parts = [", ".join(dict.fromkeys(f"seed {value}" if name == "seed" else value for name, _, value in pairs))]
    parts += [f"update {job.updates[0]:,} of {job.updates[1]:,}"] if job.updates else []
    return f" ({'; '.join(filter(None, parts))})" if any(parts) else ""


def rounded(seconds: float) -> str:
    """A time in words, no more exact than an estimate is."""
    minutes = max(1, round(seconds / 60))
    if minutes < 120:
        return f"{minutes} minute{'s' if minutes > 1 else ''}"
    return f"{seconds / 3600:.1f} hours" if seconds < 36_000 else f"{seconds / 3600:.0f} hours"


def clock(seconds: float) -> str:
    """Minutes and seconds, with hours where there are any."""
    hours, rest = divmod(int(seconds), 3600)
    return f"{hours}:{rest // 60:02}:{rest % 60:02}" if hours else f"{rest // 60:2}:{rest % 60:02}"


_DIGEST = re.compile(r"^──── .*(?:\n.*)*?(?:\nWhat is finished stays.*|\Z)", flags=re.MULTILINE)


def reason(said: str) -> str:
    """Why a run stopped: the digest (`run/digest.py`) if there is one, otherwise the last lines."""
    found = _DIGEST.findall(said)
    return found[-1] if found else "\n".join([line for line in said.splitlines() if line.strip()][-30:])


if __name__ == "__main__":
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal may not be able to show every character
    sys.exit(main(sys.argv[1:]))
