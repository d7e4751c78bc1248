"""progress: runs Snakemake and says in plain lines what it found, what it is doing and how long the whole run still takes.

    python -m workflow_scripts.run.progress --cores all

is what `make demo` and `make resume` call; the arguments are Snakemake's. It needs PyYAML and the standard library alone.

1. Ask Snakemake for its plan, with the same arguments, as a dry run. Its events are written by the logger plugin in `plugin/`.
2. Start Snakemake. All that it says goes into `results/logs/snakemake.log`.
3. Measure beside it how long an update takes here (`pace`), look how much of the cores other programs leave (`load`), and say how long the
   run will take.
4. Follow the events (`schedule`) and the logs of trainings. Print a line for each result (`outcomes`), and every minute how far the run is.
5. As soon as an arm has its scores, have the page on what is there so far made (`report/so_far.py`), and again when more is there. All
   these pages together take a tenth of a core at most.
6. At the end say the answer, where the files are and what to do next; or why the run stopped. The exit status is Snakemake's.

SIGINT (Ctrl-C), SIGTERM and SIGHUP are passed on to Snakemake and its jobs, so that trainings write a checkpoint.
"""

import argparse
import fcntl
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

from workflow_scripts.run import outcomes
from workflow_scripts.run.lines import LOG, WIDTH, announced, clock, ended, line_about, rounded, share_passed, wanted_comparisons, wrapped
from workflow_scripts.run.load import Load, look
from workflow_scripts.run.processes import Child, beside, logging_to, say, status_of, stop
from workflow_scripts.run.schedule import ANSWER, Run, look_at_trainings, planned, take, time_left
from workflow_scripts.storage import lost_link, refused_file

EVERY = 60.0
"""Seconds between two lines on how far the run is."""
AT_LEAST = 5.0
"""Seconds between two such lines in any case; several short jobs that begin meanwhile share a line."""
PAGES = 0.1
"""Processor time of all pages on what is there so far, at most: this share of the time since the start, and the last page."""


@dataclass
class ProgressState:
    """What has been said, and what is being measured beside the run."""

    run: Run
    scratch: Path
    """A folder for this process's own files."""
    began: float
    """Seconds since the epoch."""
    last_line: float = 0.0
    """When the last line on how far the run is was printed."""
    training_began: bool = False
    """Whether a training has begun since."""
    looks: dict[str, int] = field(default_factory=dict)
    """Log of a training → how many looks at the dev set were said."""
    answers: set[tuple[str, ...]] = field(default_factory=set)
    """Comparisons that were said."""
    share: float = 0.0
    """The share of the time that was shown last."""
    paces: list[subprocess.Popen[str]] = field(default_factory=list)
    """Measurements of an update that are under way."""
    update: float = 0.0
    """Seconds of an update on a core of its own; 0 until they are measured."""
    measured: float = 0.0
    """When an update was measured."""
    time_announced: bool = False
    """Whether it was said how long the run will take."""
    load: Load = field(default_factory=Load)
    """What was seen of the jobs since an update was measured."""
    last_look: float = 0.0
    """When the jobs were last looked at."""
    page: subprocess.Popen[str] | None = None
    """What makes the page on what is there so far."""
    page_due: bool = False
    """Whether there is more for that page than when it was last made."""
    page_seconds: float = 0.0
    """Processor time of all such pages so far."""

    def say(self, line: str) -> None:
        """Print a line, or several, that begin with the time since the start."""
        head = clock(time.time() - self.began)
        for part in wrapped(line, WIDTH - 9):
            say(f"{head:>7}  {part}")
            head = ""


def main(arguments: Sequence[str]) -> int:
    """Run Snakemake with `arguments` and return its exit status."""
    command = [sys.executable, "-m", "snakemake"]
    if any(_DRY.fullmatch(word) for word in arguments):
        return subprocess.run([*command, *arguments]).returncode
    folder = folder_of(arguments)
    log = folder / LOG
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        log.touch()
    except OSError as error:
        if not (said := lost_link(folder / "results") or refused_file(error)):
            raise
        say(f"error: {said}")
        return 1
    child, began = Child(), time.time()
    with open(log, "a", encoding="utf-8") as words, tempfile.TemporaryDirectory() as scratch:
        if not alone(words):
            say(f"another run writes into {log}; Snakemake says here what it has to say")
            process = child.start([*command, *arguments])
            process.wait()
            return status_of(process)
        words.truncate(0)
        plan, events = Path(scratch, "plan"), Path(scratch, "events")
        for file in (plan, events):
            file.touch()  # Snakemake may end before it writes an event
        child.output([*command, *logging_to(plan), *arguments, "--dry-run"])
        state = ProgressState(planned(plan.read_text(encoding="utf-8").splitlines(), folder), Path(scratch), began)
        for line in announced(state.run):
            say(line)
        process = child.start([*command, *logging_to(events), *arguments], stdout=words)
        try:
            follow(state, process, events, arguments)
        finally:
            for other in [*state.paces, *filter(None, [state.page])]:
                stop(other)
    status = status_of(process)
    for line in ended(state.run, time.time() - state.began, status, arguments):
        say(line)
    return status


def follow(state: ProgressState, process: subprocess.Popen, events: Path, arguments: Sequence[str]) -> None:
    """Say what a Snakemake that has been started does, until it ends."""
    with open(events, encoding="utf-8") as file:
        unfinished = ""
        while True:
            over = process.poll() is not None
            *lines, unfinished = (unfinished + file.read()).split("\n")
            for event in map(json.loads, lines):
                take_event(state, event)
            look_at_trainings(state.run, time.time())
            if not state.last_line and state.run.running:
                begin(state, arguments)
            hear_pace(state)
            watch_load(state, process.pid)
            announce_time(state)
            tell_looks(state)
            tend_page(state)
            if over:
                return
            since = time.time() - state.last_line
            if state.last_line and state.run.running and since >= (AT_LEAST if state.training_began else EVERY):
                now = time.time()
                left = time_left(state.run, now)
                state.share = share_passed(now - state.began, left, state.share)
                state.say(line_about(state.run, left, state.share))
                state.training_began, state.last_line = False, time.time()
            with suppress(subprocess.TimeoutExpired):
                process.wait(0.5)


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


# ---------------------------------------------------------------------------------------------
# what has happened


def take_event(state: ProgressState, event: dict[str, Any]) -> None:
    """Note an event, and say what a job that has ended found."""
    job = take(state.run, event)
    if job is None:
        return
    jobs = [*state.run.jobs.values()]
    if not job.ended:
        state.training_began = state.training_began or bool(job.work) or job.finetunes
        if job.rule == "report" and state.page:
            stop(state.page)  # or it would write over the whole page
            state.page = None
    elif line := outcomes.finding(job, state.run.folder):
        name = outcomes.name_of(job, jobs) if "arm" in job.wildcards else ""
        if job.wildcards.get("arm") == "trivial":
            name = "without a model"
        if job.rule != "pretext":
            state.say(f"{name}: {line}" if name else line)
        state.page_due = state.page_due or job.rule in SCORED


SCORED = ("scores", "head_prediction")
"""Rules whose jobs give an arm its scores."""


def tell_looks(state: ProgressState) -> None:
    """Say what new looks at the dev set measured."""
    jobs = [*state.run.jobs.values()]
    for job in jobs:
        # also once after its end: the last look comes just before
        if (job.updates or job.ended) and job.finetunes and state.looks.get(job.log, 0) >= 0:
            found = outcomes.looks(job.log)
            for line in found[state.looks.get(job.log, 0) :]:
                state.say(f"{outcomes.name_of(job, jobs)} {line}")
            state.looks[job.log] = -1 if job.ended else len(found)


# ---------------------------------------------------------------------------------------------
# how long an update takes


def begin(state: ProgressState, arguments: Sequence[str]) -> None:
    """Measure an update beside the run, where its trainings are of a small model on this machine's cores."""
    state.last_line = time.time()
    run = state.run
    trainings = [job for job in run.jobs.values() if job.work and job.rule != "backbone"]
    models = [job.settings for job in run.jobs.values() if job.rule == "backbone" and job.settings.get("kind") == "small"]
    elsewhere = any(word.startswith(("--profile", "--executor", "--jobs", "-j")) for word in arguments)
    if not trainings or not models or elsewhere or any(job.gpus for job in trainings):
        return
    settings = ["--model", json.dumps(models[0]), "--training", json.dumps(trainings[0].settings.get("training", trainings[0].settings))]
    # as many at once as trainings will run, since they share the processor's memory
    state.paces = [beside("run.pace", *settings, stdout=subprocess.PIPE) for _ in range(min(2, run.cores))]


def hear_pace(state: ProgressState) -> None:
    """Note how long an update takes, when the measurement is there."""
    if not state.paces or any(process.poll() is None for process in state.paces):
        return
    seconds = [float(said) for process in state.paces if (said := process.communicate()[0].strip()) and not process.returncode]
    state.paces = []
    tokens = next((job.work / job.settings["updates"] for job in state.run.jobs.values() if job.work and "updates" in job.settings), 0)
    if seconds and tokens:
        state.update, state.measured = sum(seconds) / len(seconds), time.time()
        state.run.pace = tokens / state.update


LOOK = 5.0
"""Seconds between two looks at how much of the cores other programs leave."""
WATCHED = 20.0
"""Seconds of such looks before it is said how long the run will take."""


def watch_load(state: ProgressState, process: int) -> None:
    """See how much of the cores other programs leave to a process and to all that it has started.

    The looks begin once an update is measured, since the measurement takes the cores as well.
    """
    if state.update and time.time() - state.last_look >= LOOK:
        state.last_look = time.time()
        look(state.load, process)
        state.run.share = state.load.share


def announce_time(state: ProgressState) -> None:
    """Say once how long the run will take."""
    now = time.time()
    if state.time_announced or not state.update or now - state.measured < WATCHED:
        return
    state.time_announced = True
    whole, first = time_left(state.run, now), time_left(state.run, now, until=lambda job: job.priority >= ANSWER)
    if whole and first:
        gone = now - state.began
        shared = f", {state.update / state.run.share:.2f} s beside other programs" if state.run.share < ALONE else ""
        first_said = f"the first answer in about {rounded(first + gone)}, " if first < 0.9 * whole else ""
        state.say(f"an update takes {state.update:.2f} s here{shared}: {first_said}everything in about {rounded(whole + gone)}")


ALONE = 0.8
"""The part of a core's time below which other programs are mentioned."""


# ---------------------------------------------------------------------------------------------
# the page on what is there so far


def tend_page(state: ProgressState) -> None:
    """Have the page made again where there is more for it, and time; say what its comparisons show when it is made."""
    before = os.times()
    if state.page and state.page.poll() is not None:
        after = os.times()
        state.page_seconds += after.children_user + after.children_system - before.children_user - before.children_system
        if not state.page.returncode:
            tell_answers(state, state.scratch / "comparisons.tsv")
        state.page = None
    reporting = any(job.rule == "report" and job.begun for job in state.run.jobs.values())
    results = state.run.folder / "results"
    early = state.page_seconds > PAGES * (time.time() - state.began)
    if state.page or not state.page_due or early or reporting or not (results / "configuration.json").exists():
        return
    so_far = state.scratch / "state.json"
    so_far.write_text(json.dumps(state_of(state.run, time.time())), encoding="utf-8")
    state.page_due = False
    files = ["--results", str(results.resolve()), "--state", str(so_far), "--comparisons", str(state.scratch / "comparisons.tsv")]
    state.page = beside("report.so_far", *files, cwd=state.run.folder, stdout=subprocess.DEVNULL)
    if state.answers:  # the first answer does not wait for trainings
        os.setpriority(os.PRIO_PROCESS, state.page.pid, min(19, os.getpriority(os.PRIO_PROCESS, 0) + 10))


def state_of(run: Run, now: float) -> dict[str, Any]:
    """What the page says of the run: arms and seeds that are not there yet, what is being done, and the seconds that are left."""
    jobs = [*run.jobs.values()]
    open_arms = {
        (job.wildcards["experiment"], job.wildcards["arm"].partition(".grid")[0], job.wildcards.get("seed", ""))
        for job in jobs
        if not job.ended and (job.rule in SCORED or job.rule.endswith("decoding")) and "arm" in job.wildcards
    }
    return {
        "missing": sorted(open_arms),
        "doing": [outcomes.doing(job, jobs) for job in run.running if job.rule != "all"],
        "left": time_left(run, now),
    }


def tell_answers(state: ProgressState, comparisons: Path) -> None:
    """Say the comparisons that were not shown before."""
    experiments = {job.wildcards["experiment"] for job in state.run.jobs.values() if "experiment" in job.wildcards}
    for row in wanted_comparisons(state.run, outcomes.answers(comparisons)):
        which = row["experiment"], row["testset"], row["arm"], row["other"], row["seeds"]
        if which not in state.answers:
            state.answers.add(which)
            state.say(f"{row['experiment'] + ': ' if len(experiments) > 1 else ''}{outcomes.answer_line(row)}")


if __name__ == "__main__":
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal may not be able to show every character
    sys.exit(main(sys.argv[1:]))
