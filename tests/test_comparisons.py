"""What `make test-gpu` would do: no stage is forgotten, its comparisons work on a CPU, and without a GPU it says so and ends."""

from dataclasses import fields
from pathlib import Path

import comparisons
import pytest
import torch
import warm
from comparisons import COMPARISONS, OTHERS

from workflow_scripts.evidence.comet import Comet
from workflow_scripts.run import config

NO_GPU = 77


def test_every_stage_with_a_device_is_compared():
    able = {kind for kind in config._dataclasses(config.Config) if "device" in {field.name for field in fields(kind)}}
    # a head's settings are those of a task
    from workflow_scripts.tasks.head_settings import HeadSettings

    assert able - {HeadSettings} == COMPARISONS.keys()


@pytest.mark.parametrize("kind", [kind for kind in COMPARISONS if kind is not Comet], ids=lambda kind: kind.__name__)
def test_the_cpu_is_near_itself(tmp_path, kind):
    COMPARISONS[kind](tmp_path, "cpu")


@pytest.mark.parametrize("compare", OTHERS, ids=lambda compare: compare.__name__)
def test_a_part_of_a_stage_is_near_itself(tmp_path, compare):
    compare(tmp_path, "cpu")


def test_numbers_that_differ_are_found():
    one = {"a": [1.0, {"b": 2.0}], "name": "x"}
    comparisons.near(one, {"a": [1.001, {"b": 2.0}], "name": "y"}, 1e-2, 0)
    for other in ({"a": [1.0, {"b": 2.1}], "name": "x"}, {"a": [1.0], "name": "x"}, {"a": [1.0, {"b": 2.0}]}):
        with pytest.raises(AssertionError):
            comparisons.near(one, other, 1e-2, 0)


def call(*arguments):
    return warm.run([warm.python(), "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/gpu", *arguments])


def test_without_a_gpu_it_says_so_and_ends():
    done = call()
    assert done.returncode == NO_GPU and "there is no GPU" in done.stdout + done.stderr and torch.__version__ in done.stdout + done.stderr


def test_it_would_collect_every_comparison():
    said = call("--collect-only").stdout
    assert all(f"[{kind.__name__}]" in said for kind in COMPARISONS)
    for name in Path("tests/gpu").glob("test_*.py"):
        assert name.name in said
