"""Which part of a core's time a run gets."""

import os
from pathlib import Path

import pytest

from workflow_scripts.run.load import LOOKS, Load, look, ran_and_waited


def processes(proc, counted, children):
    """A folder like Linux's /proc: process → nanoseconds that it ran and waited, and process → processes that it has started."""
    for process, (ran, waited) in counted.items():
        folder = proc / str(process) / "task" / str(process)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "schedstat").write_text(f"{ran} {waited} 7\n")
        (folder / "children").write_text(" ".join(map(str, children.get(process, []))))


def test_a_run_beside_other_programs_gets_the_part_that_its_jobs_ran_of_the_time_in_which_they_could(tmp_path):
    load, second = Load(), 10**9
    tree = {1: [2, 3], 3: [4]}
    processes(tmp_path, {1: (0, 0), 2: (100 * second, 0), 3: (0, 0), 9: (0, 0)}, {1: [2, 3]})
    look(load, 1, tmp_path)
    assert load.share == 1.0  # what was before the first look does not count
    processes(tmp_path, {1: (0, 0), 2: (101 * second, second), 3: (0, 0), 4: (second, 2 * second), 9: (9 * second, 0)}, tree)
    look(load, 1, tmp_path)
    assert load.share == pytest.approx(2 / 5)  # with the job that has begun since, without a program that is not of the run
    for after in range(LOOKS):
        processes(tmp_path, {2: ((102 + after) * second, second), 4: ((2 + after) * second, 2 * second)}, {})
        look(load, 1, tmp_path)
    assert load.share == 1.0  # the other programs have ended


def test_where_nothing_counts_it_other_programs_are_not_seen(tmp_path):
    load = Load()
    for _ in range(3):
        look(load, 1, tmp_path)
    assert load.share == 1.0


@pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="Linux alone counts it")
def test_linux_counts_this_process():
    assert ran_and_waited(os.getpid(), Path("/proc"))[os.getpid()][0] > 0
