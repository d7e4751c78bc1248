"""schedule: what a run of Snakemake has done, is doing and has still to do, by its events; and how long the rest will take.

Events are what the logger plugin in `plugin/` writes. A dry run gives all jobs with their inputs and outputs, so that it is known which
wait for which. What a job takes is known from others of its rule that have ended, or by the demo; what a training takes, from its tokens
and from the speed of trainings, measured beforehand (`pace`) or read from their logs. The jobs are then laid out on the cores in the order
of their priorities, as Snakemake does. It needs the standard library alone.
"""

import heapq
import json
import math
import os
import re
import shlex
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# priorities of jobs; `urgency` says which job has which
SHARED = 20
"""Of what all trainings wait for: backbones, word vectors, lexicons."""
ANSWER = 10
"""Of what the first answer needs. With the first seed it is one more."""
TRAINING = 5
"""Of the other trainings, and of the text that they restore."""
MEASURING = 0
"""Of what no training waits for."""

Key = tuple[str, tuple[tuple[str, str], ...]]
"""A job by its rule and wildcards; its number is another one in the plan and in the run."""


@dataclass
class PlannedJob:
    """A job of Snakemake."""

    rule: str
    wildcards: dict[str, str] = field(default_factory=dict)
    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    log: str = ""
    cores: int = 1
    gpus: int = 0
    priority: int = 0
    settings: dict[str, Any] = field(default_factory=dict)
    """The settings in its command."""
    work: int = 0
    """Of a training whose updates are known beforehand: the tokens that it reads, updates × tokens of an update."""
    trains: bool = True
    """False of an arm whose model is asked as it is."""
    begun: float = 0.0
    """Seconds since the epoch; 0 while it waits."""
    ended: float = 0.0
    """0 until it has ended."""
    updates: tuple[int, int] | None = None
    """Of a training under way: updates done, and planned."""
    seen: list[tuple[float, float]] = field(default_factory=list)
    """Of a training under way: when its log was read, and tokens that had been read by then."""

    @property
    def key(self) -> Key:
        """What the job has in the plan as well as in the run."""
        return self.rule, tuple(sorted(self.wildcards.items()))

    @property
    def finetunes(self) -> bool:
        """Whether it is the task phase of an arm, of a model that writes (`finetune`) or that has a head (`head_finetune`)."""
        return self.rule.endswith("finetune")

    @property
    def work_left(self) -> float:
        """Tokens that are still to be read."""
        return self.work * (1 - self.updates[0] / self.updates[1]) if self.updates else self.work


@dataclass
class Run:
    """What is known of a run, from the events so far."""

    folder: Path = Path()
    """Where it is."""
    jobs: dict[Key, PlannedJob] = field(default_factory=dict)
    """All jobs of the plan."""
    numbers: dict[int, Key] = field(default_factory=dict)
    """Snakemake's number of each job that has begun."""
    cores: int = 1
    """How many cores, or places on the cluster, there are."""
    on_cluster: bool = False
    """Whether these are places on a cluster, of which a job takes one, however many cores it asks for."""
    gpus: int | None = None
    """How many GPUs all jobs share; None where Snakemake counts none."""
    pace: float = 0.0
    """Tokens per second of one training that has a core to itself, as measured beforehand; 0 where it was not."""
    share: float = 1.0
    """The part of a core's time that a job gets, because of other programs: 1 where they leave it all, or where that is not known."""

    @property
    def running(self) -> list[PlannedJob]:
        """Jobs under way."""
        return [job for job in self.jobs.values() if job.begun and not job.ended]

    @property
    def done(self) -> int:
        """How many jobs have ended."""
        return sum(bool(job.ended) for job in self.jobs.values())


# ---------------------------------------------------------------------------------------------
# events


def planned(lines: Iterable[str], folder: Path = Path()) -> Run:
    """The run that the events of a dry run describe."""
    run = Run(folder)
    for event in map(json.loads, lines):
        if event["event"] == "job_info":
            job = job_of(event, folder)
            run.jobs[job.key] = job
    return run


def job_of(event: dict[str, Any], folder: Path) -> PlannedJob:
    """The job that an event describes."""
    log, resources = (event.get("log") or [""])[0], event.get("resources", {})
    command = event.get("shellcmd") or ""
    settings, trains = settings_of(command), "--shots" not in command.split()
    priority = event.get("priority", 0)
    return PlannedJob(
        event["rule_name"],
        {name: str(value) for name, value in event.get("wildcards", {}).items()},
        event.get("input", []),
        event.get("output", []),
        str(folder / log) if log else "",
        cores=event.get("threads", 1),
        gpus=resources.get("gpu", 0),
        priority=priority if isinstance(priority, int) else 1000,
        settings=settings,
        work=work_of(event["rule_name"], settings) if trains else 0,
        trains=trains,
    )


def settings_of(command: str) -> dict[str, Any]:
    """The settings that a command hands over as JSON; nothing where it has none."""
    try:
        words = shlex.split(command)
        found = json.loads(words[words.index("--settings") + 1])
    except (ValueError, IndexError):
        return {}
    return found if isinstance(found, dict) else {}


def work_of(rule: str, settings: dict[str, Any]) -> int:
    """The tokens that a training reads; 0 of any other job, of trainings that count epochs, and of backbones that are there already."""
    block: Any = settings
    if rule == "backbone":
        block = {} if block_of_backbone(settings).get("ready") else block_of_backbone(settings).get("training", {})
    updates, tokens = block.get("updates"), block.get("batch_tokens")
    return updates * tokens if isinstance(updates, int) and isinstance(tokens, int) else 0


def block_of_backbone(settings: dict[str, Any]) -> dict[str, Any]:
    """The block by which a backbone is made, by its kind."""
    return settings.get(settings.get("kind", "")) or {}


def take(run: Run, event: dict[str, Any]) -> PlannedJob | None:
    """Note an event of the run; returns the job that it begins or ends, if it does."""
    kind, now = event["event"], event["time"]
    if kind == "job_info":
        job = job_of(event, run.folder)
        job = run.jobs.setdefault(job.key, job)
        job.begun, job.ended, job.updates, job.seen = now, 0.0, None, []
        run.numbers[event["jobid"]] = job.key
        return job
    if kind == "job_finished" and (key := run.numbers.get(event["job_id"])):
        run.jobs[key].ended = now
        return run.jobs[key]
    if kind == "job_error" and (key := run.numbers.pop(event["jobid"], None)):
        run.jobs[key].begun = 0.0
    if kind == "resources_info":
        if there := event.get("cores") or event.get("nodes"):
            run.cores, run.on_cluster = there, not event.get("cores")
        if gpus := re.search(r"Provided resources:.*\bgpu=\D*(\d+)", event.get("msg") or ""):
            run.gpus = int(gpus[1])
    return None


# ---------------------------------------------------------------------------------------------
# what trainings say

_PROGRESS = re.compile(r"^update (\d+)/(\d+) ", flags=re.MULTILINE)
RECENT = 240.0
"""Seconds over which the speed of a training is measured, so that it follows the machine's load."""


def look_at_trainings(run: Run, now: float) -> None:
    """Read how far the trainings under way are, from the ends of their logs."""
    for job in run.running:
        may_be_there = job.rule == "backbone"  # `ready` names one that is taken only where all that it was made of is the same
        if (job.work or job.finetunes or may_be_there) and (last := last_update(job)):
            if may_be_there and not job.work:
                job.work = last[1] * int(block_of_backbone(job.settings).get("training", {}).get("batch_tokens", 0))
            job.updates = last
            note_speed(job, now)


def note_speed(job: PlannedJob, now: float) -> None:
    """Remember how far a training is; what was `RECENT` is kept."""
    done = job.work - job.work_left
    if not job.seen or done > job.seen[-1][1]:
        job.seen.append((now, done))
    while len(job.seen) > 2 and job.seen[1][0] < now - RECENT:
        del job.seen[0]


def last_update(job: PlannedJob) -> tuple[int, int] | None:
    """Updates done and planned, by the training's log; None if it has not said."""
    try:
        if os.path.getmtime(job.log) < job.begun - 1:
            return None  # the log of an earlier run
        with open(job.log, "rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - (1 << 14)))
            found = _PROGRESS.findall(file.read().decode("utf-8", "replace"))
    except OSError:
        return None
    return (int(found[-1][0]), int(found[-1][1])) if found else None


def speed(run: Run) -> float:
    """Tokens per second of one training, as trainings tell it; else as measured, as far as other programs leave the cores; 0 if unknown."""
    return speed_of_trainings(run) or run.pace * run.share


def speed_of_trainings(run: Run) -> float:
    """Tokens per second of one training: of those under way in the last minutes, else of those that have ended; 0 while none tells it.

    A training is believed once it has run for a while. The longer it was seen, the more it counts.
    """

    def seen(job: PlannedJob) -> tuple[float, float]:
        return (job.seen[-1][0] - job.seen[0][0], job.seen[-1][1] - job.seen[0][1]) if job.seen else (0.0, 0.0)

    running = [seen(job) for job in run.running]
    ended = [since_the_first_look(job) for job in run.jobs.values() if job.work and job.ended > job.begun]
    found = [(seconds, tokens) for seconds, tokens in running if seconds >= LEAST] or ended[-2:]
    return sum(tokens for _, tokens in found) / sum(seconds for seconds, _ in found) if found else 0.0


def since_the_first_look(job: PlannedJob) -> tuple[float, float]:
    """Seconds and tokens of a training that has ended. One that went on from a checkpoint has not read all of its tokens since it began."""
    begun, read = job.seen[0] if job.seen and job.ended - job.seen[0][0] >= LEAST else (job.begun, 0.0)
    return job.ended - begun, job.work - read


LEAST = 20.0
"""Seconds of training that tell its speed."""


def is_forecast(run: Run) -> bool:
    """Whether trainings are still to come of which none has shown its speed, so that the time left is known only roughly."""
    return not speed_of_trainings(run) and any(job.work and not job.ended for job in run.jobs.values())


# ---------------------------------------------------------------------------------------------
# how long it takes

USUAL = {
    **{"held_out": 3, "corpus": 3, "embeddings": 75, "mapping": 28, "lexicon": 30, "codeswitch": 4, "backbone": 3, "frequencies": 2},
    **{"decoding": 13, "scores": 1, "word_accuracy": 3, "representation": 10, "representation_backbone": 10, "report": 9},
    **{"significance": 9, "significance_over_seeds": 3, "labelled": 5, "head_prediction": 20, "generation_decoding": 30},
}
"""Rule → seconds of processor time that a job takes in the demo; others take `OTHER`."""
OTHER = 5.0
DEMO = 6000.0
"""Tokens per second of a training, where these were measured."""


def time_left(run: Run, now: float, until: Callable[[PlannedJob], bool] = lambda job: True) -> float | None:
    """Seconds until all jobs for which `until` holds have ended; None where that cannot be known.

    The jobs are laid out on cores and GPUs by their priority, each as soon as those that it waits for have ended.
    """
    rate = speed(run)
    unknown = [job for job in run.jobs.values() if job.finetunes and job.trains and not job.work and not job.ended]
    if unknown or (not rate and any(job.work for job in run.jobs.values())):
        return None
    takes = seconds_of_rules(run, rate)
    open_jobs = {key: job for key, job in run.jobs.items() if not job.ended}
    seconds = {key: still_takes(job, takes, rate, now) for key, job in open_jobs.items()}
    needs = {key: (1 if run.on_cluster else min(job.cores, run.cores), job.gpus) for key, job in open_jobs.items()}
    ends = laid_out(open_jobs, seconds, needs, run.cores, math.inf if run.gpus is None else run.gpus)
    return max((end for key, end in ends.items() if until(open_jobs[key])), default=0.0)


def laid_out(
    jobs: dict[Key, PlannedJob], seconds: dict[Key, float], needs: dict[Key, tuple[int, int]], cores: int, gpus: float
) -> dict[Key, float]:
    """When each of these jobs ends, in seconds from now. Jobs that wait for something that nobody makes are not in it.

    `needs` has cores, or places on the cluster, and GPUs of each. Jobs under way have what they need. Of the others that can begin, the
    most urgent one that fits begins.
    """
    waits, waited_for = what_waits(jobs)
    places = {key: place for place, key in enumerate(jobs)}
    under_way = [(seconds[key], places[key], key) for key, job in jobs.items() if job.begun]
    heapq.heapify(under_way)
    free = cores - sum(needs[key][0] for *_, key in under_way)
    free_gpus = gpus - sum(needs[key][1] for *_, key in under_way)
    ready: Ready = defaultdict(list)
    startable = [key for key, makers in waits.items() if not makers]
    ends: dict[Key, float] = {}
    clock = 0.0
    while True:
        for key in startable:
            heapq.heappush(ready[needs[key]], (-jobs[key].priority, places[key], key))
        while fitting := most_urgent(ready, free, free_gpus):
            heapq.heappush(under_way, (clock + seconds[fitting], places[fitting], fitting))
            free, free_gpus = free - needs[fitting][0], free_gpus - needs[fitting][1]
        if not under_way:
            return ends
        clock, _, ended = heapq.heappop(under_way)
        ends[ended] = clock
        free, free_gpus = free + needs[ended][0], free_gpus + needs[ended][1]
        for key in waited_for[ended]:
            waits[key].discard(ended)
        startable = [key for key in waited_for[ended] if not waits[key]]


Ready = dict[tuple[int, int], list[tuple[int, int, Key]]]
"""Jobs that can begin, by the cores and GPUs that they need, with priority and place; each list is a heap, the most urgent job first."""


def most_urgent(ready: Ready, free: int, free_gpus: float) -> Key | None:
    """Take out the most urgent of the jobs that the free cores and GPUs suffice for; None if they suffice for none."""
    fitting = [(jobs[0], need) for need, jobs in ready.items() if jobs and need[0] <= free and need[1] <= max(free_gpus, 0)]
    return heapq.heappop(ready[min(fitting)[1]])[2] if fitting else None


def what_waits(jobs: dict[Key, PlannedJob]) -> tuple[dict[Key, set[Key]], dict[Key, list[Key]]]:
    """For each job that has not begun, the jobs that make its inputs; and for each job those that wait for it."""
    made_by = {output: key for key, job in jobs.items() for output in job.outputs}
    waits: dict[Key, set[Key]] = {}
    waited_for: dict[Key, list[Key]] = defaultdict(list)
    for key, job in jobs.items():
        if not job.begun:
            waits[key] = {maker for name in job.inputs if (maker := _maker(made_by, name)) and maker != key}
            for maker in waits[key]:
                waited_for[maker].append(key)
    return waits, waited_for


def _maker(made_by: dict[str, Key], name: str) -> Key | None:
    """The job that makes a file, or a folder that it is in."""
    while name and name not in made_by and os.path.dirname(name) != name:
        name = os.path.dirname(name)
    return made_by.get(name)


def seconds_of_rules(run: Run, rate: float) -> dict[str, float]:
    """What a job of each rule takes here: the mean of those that have ended, else as in the demo, as much slower as this machine is."""
    ended = [job for job in run.jobs.values() if job.ended > job.begun > 0 and not job.work]
    usual = sum(USUAL.get(job.rule, OTHER) for job in ended)
    slower = sum(job.ended - job.begun for job in ended) / usual if usual > ENOUGH else DEMO / rate if rate else 1.0
    found = {}
    for rule in {job.rule for job in run.jobs.values()}:
        mine = [job.ended - job.begun for job in ended if job.rule == rule]
        found[rule] = sum(mine) / len(mine) if mine else USUAL.get(rule, OTHER) * min(max(slower, 0.3), 10.0)
    return found


ENOUGH = 60.0
"""Seconds that jobs which have ended take in the demo, from which on they tell how much slower this machine is."""


def still_takes(job: PlannedJob, takes: dict[str, float], rate: float, now: float) -> float:
    """Seconds that a job still takes, whether it waits or is under way. One that takes longer than usual takes a third as long again."""
    if job.rule == "all":
        return 0.0
    if job.work and rate:
        return job.work_left / rate
    running = now - job.begun if job.begun else 0.0
    return max(takes[job.rule] - running, running / 3)
