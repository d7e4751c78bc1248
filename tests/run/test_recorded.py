"""The estimate of a run's time, held against recorded runs: from the second minute on it is right within a third.

A recording has what is known of the run, its plan, and events with their seconds. Among these are the updates in the logs of trainings.
The machine's load may change. Then estimates of the first answer count only before the change. Estimates of the whole count once the last
minutes show the new load. A recording may end with the first answer, and take its plan from another.
"""

import json
import math
from itertools import pairwise
from pathlib import Path

import pytest

from workflow_scripts.run import schedule

RECORDED = sorted(Path(__file__).with_name("recorded").glob("*.jsonl"))
MINUTE = 60
A_THIRD = 1 / 3
A_FIFTH = 1 / 5


def read(path):
    """What is known of a recorded run, the run as planned, and its events."""
    about, *events = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    if "plan" in about:  # of another recording of the same run
        _, run, _ = read(path.with_name(about["plan"]))
        return about, run, events
    plan = [event for event in events if event["event"] == "job_info" and "jobid" not in event]
    return about, schedule.planned(map(json.dumps, plan)), events[len(plan) :]


def minutes(run, events):
    """Each whole minute of a run, in seconds, with the run as it is known then."""
    minute = 1
    for event, following in pairwise(events):
        if event["event"] == "update":
            training = run.jobs[event["rule"], tuple(sorted(event["wildcards"].items()))]
            training.updates = event["done"], event["planned"]
            schedule.note_speed(training, event["time"])
        elif event["event"] == "pace":
            run.pace = event["tokens_per_second"]
        elif event["event"] == "share":
            run.share = event["share"]
        else:
            schedule.take(run, event)
        while minute * MINUTE < following["time"]:
            yield minute * MINUTE, run
            minute += 1


def urgent(job):
    return job.priority >= schedule.ANSWER


def ends(run, events):
    """When the first answer was there, and when the whole run had ended: 0 where the recording ends earlier."""
    for event in events:
        if event["event"] not in ("update", "pace", "share"):
            schedule.take(run, event)
    return max(job.ended for job in run.jobs.values() if urgent(job)), events[-1]["time"] * (run.done == len(run.jobs))


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_the_estimate_is_right_within_a_third_from_the_second_minute_on(path):
    about, run, events = read(path)
    answer, whole = ends(run, events)
    _, run, events = read(path)
    changed = about["load_changed"]
    estimates_made, wrong = 0, []
    for now, known in minutes(run, events):
        for what, end, until, first, last in (
            ("first answer", answer, urgent, 2 * MINUTE, min(answer, changed or answer)),
            ("whole", whole, lambda job: True, changed + schedule.RECENT if changed else 2 * MINUTE, whole),
        ):
            if first <= now < last:
                estimate = now + schedule.time_left(known, now, until=until)
                estimates_made += 1
                if abs(estimate - end) > A_THIRD * end:
                    wrong.append((what, now, round(estimate), round(end)))
    assert estimates_made > 5 and wrong == []


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_the_estimate_moves_little_from_a_minute_to_the_next_while_the_load_is_the_same(path):
    about, run, events = read(path)
    estimates = [now + schedule.time_left(known, now) for now, known in minutes(run, events) if now < (about["load_changed"] or math.inf)]
    assert max(abs(after / before - 1) for before, after in pairwise(estimates[1:])) < A_FIFTH


def test_there_are_recordings_of_several_loads():
    about = [read(path)[0] for path in RECORDED]
    assert any(each["load_changed"] for each in about) and any("all the time" in each["about"] for each in about)


def laid_out(run, now, until):
    """`time_left` without heaps: at each step all jobs that wait are looked at in the order of their priorities."""
    rate = schedule.speed(run)
    takes = schedule.seconds_of_rules(run, rate)
    jobs = {key: job for key, job in run.jobs.items() if not job.ended}
    made_by = {output: key for key, job in jobs.items() for output in job.outputs}
    waits = {key: {schedule._maker(made_by, name) for name in job.inputs} - {None, key} for key, job in jobs.items()}
    order = sorted(jobs, key=lambda key: -jobs[key].priority)
    places = {key: place for place, key in enumerate(jobs)}
    under_way = {key: schedule.still_takes(job, takes, rate, now) for key, job in jobs.items() if job.begun}
    waiting = [key for key in order if key not in under_way]
    clock = last = 0.0
    while True:
        for key in [key for key in waiting if not waits[key] - (waits.keys() - jobs.keys())]:
            cores = run.cores - sum(min(jobs[other].cores, run.cores) for other in under_way)
            gpus = None if run.gpus is None else run.gpus - sum(jobs[other].gpus for other in under_way)
            if min(jobs[key].cores, run.cores) <= cores and (gpus is None or jobs[key].gpus <= max(gpus, 0)):
                under_way[key] = clock + schedule.still_takes(jobs[key], takes, rate, now)
                waiting.remove(key)
        if not under_way:
            return last
        ended = min(under_way, key=lambda key: (under_way[key], places[key]))
        clock = under_way.pop(ended)
        last = clock if until(jobs.pop(ended)) else last


@pytest.mark.parametrize(("cores", "gpus"), [(1, None), (2, None), (5, 1), (40, 2)])
def test_jobs_begin_in_the_same_order_as_where_all_are_looked_at_at_each_step(cores, gpus):
    answers = set()
    for path in RECORDED:
        _, run, events = read(path)
        for now, known in minutes(run, events):
            if now % 240:
                continue
            for number, job in enumerate(known.jobs.values()):
                job.cores, job.gpus = 1 + number % 3, int(bool(job.work))
            known.cores, known.gpus = cores, gpus
            for until in (urgent, lambda job: True):
                answers.add(expected := laid_out(known, now, until))
                assert schedule.time_left(known, now, until) == expected
    assert len(answers) > 5
