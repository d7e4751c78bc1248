"""so_far: the report's page on a run that is not finished, made of the arms that have their scores.

    python -m workflow_scripts.report.so_far --results results

writes `results/report.html`, which the finished run's page takes the place of. `progress` calls it whenever an arm has its scores; it can
be called by hand at any time. It is no job of Snakemake: there a job runs once, and what it makes is its own.

The run is taken for one with fewer arms: those that have their scores, with the seeds that all of them have. Their tests of significance
are computed here, with at most `RESAMPLES` resamples. Parts that lack a file are left for later.
"""

import contextlib
import tempfile
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from workflow_scripts.config import paths
from workflow_scripts.evidence import significance
from workflow_scripts.report.__main__ import write_report
from workflow_scripts.report.study import SoFar, configured, folder_of_run, under
from workflow_scripts.report.tested import compute_tests
from workflow_scripts.run.config import read
from workflow_scripts.run.urgency import first_arms
from workflow_scripts.stage import InputError, read_json, run, write_json
from workflow_scripts.tasks.plan import Plan, Plans

RESAMPLES = 2000
"""At most so many resamples of the tests."""


def main(results: Path, html: Path | None = None, *, state: Path | None = None, comparisons: Path | None = None) -> None:
    """Write the page to `html`, by default `report.html` in the folder of the results.

    `state` says what the run is doing (`progress.state_of`); `comparisons` is a table of every two arms to write as well. Raises
    `InputError` where no arm has its scores yet.
    """
    results, html = results.absolute(), (html or results / "report.html").absolute()
    state, comparisons = state and state.absolute(), comparisons and comparisons.absolute()
    with contextlib.chdir(folder_of_run(results)):  # plugins are looked for from there
        _write(results, html, state, comparisons)


def _write(results: Path, html: Path, state: Path | None, comparisons: Path | None) -> None:
    """Write the page, as `main` says, of the run in this folder."""
    state_now = read_json(state) if state else {"missing": [], "doing": [], "left": None}
    plans = Plans(read(results / "configuration.json"))
    shown = of_what_is_there(results, plans, {(name, arm, seed) for name, arm, seed in state_now["missing"]})
    if not shown.of_run:
        raise InputError(f"{results}: no arm has its scores yet; the page can be made when the baseline has them")
    all_arms, there = ({plan.name: plan.arms for plan in each.of_run} for each in (plans, shown))
    missing = {name: lacking for name, arms in all_arms.items() if (lacking := [arm for arm in arms if arm not in there.get(name, [])])}
    with tempfile.TemporaryDirectory() as scratch:
        so_far = SoFar(Path(scratch), missing, state_now["doing"], state_now["left"], f"{datetime.now():%H:%M}")
        for plan in shown.of_run:
            study, tests = configured(results, plan), so_far.tests / plan.name
            if study.labelled:
                write_json(tests / "significance.json", {"pairs": [], "covers": {"seeds": significance.COVERS["seed"]}})
            else:
                settings: Any = study.settings.scores
                compute_tests(study, tests, replace(settings, samples=min(settings.samples, RESAMPLES)))
        tables = (comparisons,) if comparisons else ()
        write_report(results, html, None, shown, tables=tables, so_far=so_far)


def of_what_is_there(results: Path, plans: Plans, missing: set[tuple[str, str, str]]) -> Plans:
    """The experiments, arms and seeds alone that have their scores; `missing` are arms that are being made anew, with their seeds."""
    arms: dict[str, list[str]] = {}
    seeds: dict[str, list[int]] = {}
    for plan in plans.of_run:
        if not plan.trains:
            continue
        there = {
            (arm, seed)
            for arm in plan.arms
            for seed in plan.seeds
            if (plan.name, arm, str(seed)) not in missing and has_scores(results, plan, arm, seed)
        }
        baseline, *others = first_arms(plan)
        with_both = [seed for seed in plan.seeds if {(arm, seed) for arm in (baseline, *others)} <= there]
        shared = with_both or [seed for seed in plan.seeds if (baseline, seed) in there]
        if shared:
            seeds[plan.name] = shared
            arms[plan.name] = [arm for arm in plan.arms if {(arm, seed) for seed in shared} <= there]
    config = plans.config
    some = [arm for arm in config.run.arms if any(arm in own for own in arms.values())]
    # an experiment may lack an arm that another has
    experiments = {
        name: replace(block, arms=arms[name], seeds=seeds[name]) if name in arms else block for name, block in config.experiments.items()
    }
    run = replace(config.run, experiments=list(arms), arms=some, transfer=None, analyses=[])
    return Plans(replace(config, run=run, experiments=experiments))


def has_scores(results: Path, plan: Plan, arm: str, seed: int) -> bool:
    """Whether all scores of an arm's run are there."""
    run = f"{paths.run_folder(plan.name, arm, seed)}/"
    mine = [file for file in plan.task.results(plan) if file.startswith(run) and file.endswith((".scores.json", "/predictions"))]
    return bool(mine) and all(under(results, file).exists() for file in mine)


if __name__ == "__main__":
    run(main)
