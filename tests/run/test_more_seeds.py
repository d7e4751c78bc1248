"""The command for two more seeds: what was given stays, and an experiment with seeds of its own gets its own."""

import pytest
from configurations import planned, with_recipes
from snakemake.cli import parse_config
from snakemake.utils import update_config

from workflow_scripts.run.more_seeds import with_more_seeds

OF_RUN = {"a": None}


def test_more_seeds_stand_beside_what_was_given():
    given = ["--cores", "all", "--config", "arms={csr: [a b]}"]
    assert with_more_seeds(given, [1], OF_RUN) == ["--cores", "all", "--config", "run={seeds: [1, 2, 3]}", "arms={csr: [a b]}"]
    assert with_more_seeds(["--cores", "2"], [1], OF_RUN)[-2:] == ["--config", "run={seeds: [1, 2, 3]}"]
    for run, both in (
        ("run={arms: [a]}", "run={arms: [a], seeds: [1, 2, 3]}"),
        ("run={seeds: [1], arms: [a]}", "run={arms: [a], seeds: [1, 2, 3]}"),
        ("run={seeds: [1]}", "run={seeds: [1, 2, 3]}"),
        ("run={transfer: {of: x}}", "run={transfer: {of: x}, seeds: [1, 2, 3]}"),
    ):
        assert with_more_seeds(["--config", run], [1], OF_RUN) == ["--config", both]
    for given in (["-C", "device=cpu"], ["-Cdevice=cpu"], ["--config=device=cpu"], ["--config", "run={seeds: [1]}", "-C", "device=cpu"]):
        assert with_more_seeds(given, [1], OF_RUN)[-3:] == ["--config", "run={seeds: [1, 2, 3]}", "device=cpu"]


def test_the_seeds_of_a_run_are_kept():
    both = "run={arms: [a], seeds: [7, 1, 2]}"
    for run in ("run={seeds: [7], arms: [a]}", 'run={"seeds": [7], arms: [a]}'):
        assert with_more_seeds(["--config", "x=1", run, "--cores", "2"], [7], OF_RUN) == ["--config", "x=1", both, "--cores", "2"]
    assert with_more_seeds([], [2], OF_RUN) == ["--config", "run={seeds: [2, 1, 3]}"]


def test_an_experiment_with_seeds_of_its_own_gets_more_there():
    assert with_more_seeds([], [1, 2, 3], {"a": 1}) == ["--config", "experiments={a: {seeds: [1, 2, 3]}}"]
    assert with_more_seeds([], [5, 1, 9], {"a": [1]}) == ["--config", "experiments={a: {seeds: [1, 5, 9]}}"]
    assert with_more_seeds([], [4], {"a": 1}) == ["--config", "run={seeds: [4, 1, 2]}", "experiments={a: {seeds: [4, 1, 2]}}"]
    assert with_more_seeds([], [4], {"a": [4], "b": None})[1:] == ["run={seeds: [4, 1, 2]}", "experiments={a: {seeds: [4, 1, 2]}}"]


def test_what_was_given_of_that_experiment_stays():
    given = "experiments={a: {training: {learning_rate: 1e-3}, seeds: 1}, b: {seeds: 1}}"
    both = "experiments={b: {seeds: 1}, a: {training: {learning_rate: 1e-3}, seeds: [1, 2, 3]}}"
    assert with_more_seeds(["--config", given], [1, 2, 3], {"a": 1}) == ["--config", both]


@pytest.mark.parametrize(("recipe", "experiment"), [("small-sga", "small-es-en"), ("study", "study-de-part-1"), ("config", "help-de-en")])
def test_the_configuration_takes_it(recipe, experiment):
    raw = with_recipes(*([] if recipe == "config" else [recipe]))
    plan = planned(raw).experiments[experiment]
    assert len(plan.seeds) == 1
    command = with_more_seeds([], plan.config.run.seeds, {experiment: plan.settings.seeds})
    update_config(raw, parse_config(command[1:]))
    assert planned(raw).experiments[experiment].seeds == [1, 2, 3]
