"""The report on transfer: a task in each row and a model in each column, as in Table 1 of Ji et al. (2024), and by language as in Table 4.

Models are compared by their experiments' first arm. The tasks' own tests, over all seeds, test their differences from the base. The
p-values are corrected for all models and test sets of a task, those of the averages by themselves. Student's interval of the seeds'
differences stands beside them, as resamples of few seeds vary too little.
"""

import contextlib
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from workflow_scripts.evidence.average import AVERAGE
from workflow_scripts.evidence.significance import marker
from workflow_scripts.report import labels, tables
from workflow_scripts.report.comparison import correct
from workflow_scripts.report.headline import turned
from workflow_scripts.report.measures import is_same_for_all_seeds, measure, seeds_scored
from workflow_scripts.report.published import other_conditions
from workflow_scripts.report.study import Study, configured, spread, summary, under
from workflow_scripts.run import transfer_comparisons
from workflow_scripts.stage import InputError
from workflow_scripts.tasks.plan import Plans

HEADER = (
    *("task", "corpus", "testset", "language", "model", "metric", "value", "sd", "seeds"),
    *("against", "difference", "low", "high", "seeds_low", "seeds_high", "p", "published", "source"),
)
"""Columns of `transfer.tsv`."""


def transfer(results: Path, plans: Plans) -> dict[str, Any]:
    """All that the section shows; nothing where no models are compared. Tasks that cannot be shown are under `failed` with the reason."""
    base = plans.config.run.transfer
    if not base:
        return {}
    made: dict[str, Any] = {"base": base, "tasks": [], "failed": {}, "read": []}
    for group in transfer_comparisons.comparisons(plans):
        studies = {model: configured(results, plan) for model, plan in group.items()}
        with _noted(made, group[base].name):
            runs = {model: (study, study.baseline) for model, study in studies.items()}
            tests = studies[base].json(under(results, transfer_comparisons.result(group)))
            made["tasks"].append(task(base, runs, {model: model for model in group}, tests["pairs"], tests["covers"]["seeds"]))
        made["read"] += [path for study in studies.values() for path in study.read]
    for plan, models in transfer_comparisons.retrievals(plans).items():
        study = configured(results, plan)
        with _noted(made, plan.name):
            tests = study.json(study.run / "significance.json")
            runs = {model: (study, called) for model, called in models.items()}
            made["tasks"].append(task(base, runs, models, tests["pairs"], tests["covers"]["seeds"]))
        made["read"] += study.read
    made["models"] = list(dict.fromkeys(model for one in made["tasks"] for model in one["models"]))
    if made["tasks"]:
        made |= summed_up(made["tasks"], made["models"], base)
    return made


@contextlib.contextmanager
def _noted(made: dict[str, Any], name: str) -> Iterator[None]:
    try:
        yield
    except InputError as error:
        made["failed"][name] = str(error)
    except (ValueError, KeyError, OSError) as error:
        # the words of these alone tell nothing: those of a KeyError are a name in quotes
        made["failed"][name] = f"a file of its results lacks something or is damaged ({type(error).__name__}: {error})"


def task(base: str, runs: dict[str, tuple[Study, str]], called: dict[str, str], pairs: list[dict[str, Any]], covers: str) -> dict[str, Any]:
    """One task: for each model and test set, and for their average, the score, the published one, and the test against the base.

    `runs` has the study and arm of each model, `called` its name in `pairs`, the tests of every two models.
    """
    study = runs[base][0]
    metric = measure(study).metric
    testsets = [*study.testsets, *([AVERAGE] if len(study.testsets) > 1 else [])]
    tested = against_base(study, base, called, pairs)
    cells = {}
    chance = dict.fromkeys(testsets, 0.0)
    for model, (own, arm) in runs.items():
        by_seed = {testset: [labels.read_scores(own, arm, testset, seed) for seed in seeds_scored(own, arm)] for testset in own.testsets}
        values = {testset: [one[metric] for one in found] for testset, found in by_seed.items()}
        chance |= {testset: found[0]["chance"] for testset, found in by_seed.items()}
        if AVERAGE in testsets:
            values[AVERAGE] = [statistics.fmean(some) for some in zip(*values.values(), strict=True)]
        for testset, some in values.items():
            number = published(own, arm, testset, metric)
            differs = [*other_conditions(own, number, testset, metric, "")] if number else []
            cells[model, testset] = {**summary(some), "published": number, "differs": differs, "test": tested.get((model, testset))}
    once = {model for model, (own, arm) in runs.items() if is_same_for_all_seeds(own, arm)}
    for (model, testset), cell in cells.items():
        mine, theirs = cell["values"], cells[base, testset]["values"] if (base, testset) in cells else []
        # what is the same for all seeds has one score with all of the other's
        if (model in once) != (base in once):
            mine, theirs = (mine * len(theirs), theirs) if model in once else (mine, theirs * len(mine))
        cell["by_seed"] = by_seed_interval(mine, theirs)
        if test := cell["test"]:
            test["marker"] = marker(test["p"], test["difference"] or 0.0, by_seed=cell["by_seed"])
    if AVERAGE in testsets:
        chance[AVERAGE] = statistics.fmean(chance[testset] for testset in study.testsets)
    leading = testsets[-1]
    return {
        "experiment": study.name,
        "task": study.settings.task,
        "corpus": study.corpus_name,
        "measure": measure(study),
        "models": list(runs),
        "experiments": {model: own.name for model, (own, _) in runs.items()},
        "testsets": {testset: "" if testset == AVERAGE else labels.language_names(study, testset) for testset in testsets},
        "leading": leading,
        "not_above": [model for model in runs if cells[model, leading]["mean"] <= chance[leading]],
        "cells": cells,
        "chance": chance,
        "covers": covers,
        "best": {testset: max(runs, key=lambda model: cells[model, testset]["mean"]) for testset in testsets},
        "published": any(cell["published"] for cell in cells.values()),
    }


def by_seed_interval(values: list[float], others: list[float]) -> tuple[float, float] | None:
    """Student's 95 % interval of the mean difference of two models' scores, seed by seed; None without several seeds that both have."""
    return summary([a - b for a, b in zip(values, others, strict=True)])["interval"] if len(values) == len(others) else None


def against_base(study: Study, base: str, called: dict[str, str], pairs: list[dict[str, Any]]) -> dict[tuple[str, str], dict[str, Any]]:
    """(model, test set) → the test of the model against the base over all seeds, with the corrected `p`."""
    models = {name: model for model, name in called.items()}
    rows = []
    for pair in pairs:
        sides = models.get(pair["arm"]), models.get(pair["other"])
        if pair["seed"] is not None or None in sides or base not in sides:
            continue
        # tests of every two models name the later one first
        row = turned(pair) if sides[0] == base else pair
        rows.append({**row, "model": models[row["arm"]], "p_single": row["p"], "family": labels.family(row["testset"])})
    correct(study, rows, "family")
    return {(row["model"], row["testset"]): row for row in rows}


def published(study: Study, arm: str, testset: str, metric: str) -> Any:
    """The published number of a model on a test set, if the experiment names one; without a test set it is of the first."""
    wanted = arm, testset, metric
    found = (n for n in study.settings.published if (n.arm, n.testset or study.testsets[0], n.metric) == wanted)
    return next(found, None)


def summed_up(tasks: list[dict[str, Any]], models: list[str], base: str) -> dict[str, Any]:
    """The table of tasks × models with the mean over tasks of each model that has all of them, and the table as text."""
    complete = [model for model in models if all(model in one["models"] for one in tasks)]
    averages = {model: statistics.fmean(one["cells"][model, one["leading"]]["mean"] for one in tasks) for model in complete}
    gains = {model: value - averages[base] for model, value in averages.items()} if base in averages else {}
    text = [["model", *(one["corpus"] for one in tasks), "mean"]]
    for model in models:
        row = [_plain(one["cells"][model, one["leading"]]) if model in one["models"] else "–" for one in tasks]
        text.append([model, *row, f"{averages[model]:.2f}" if model in averages else "–"])
    return {"averages": averages, "gains": gains, "text": {"Markdown": tables.markdown(text), "LaTeX": tables.latex(text)}}


def _plain(cell: dict[str, Any]) -> str:
    return f"{spread(cell['values'])} {cell['test']['marker'] if cell['test'] else ''}".strip()


def rows(found: dict[str, Any]) -> Iterator[tuple]:
    """Rows of `transfer.tsv`, under `HEADER`."""
    for one in found.get("tasks", ()):
        for (model, testset), cell in one["cells"].items():
            test, number = cell["test"] or {}, cell["published"]
            by_seed = cell["by_seed"] if test else None
            numbers = [*(test.get(key) for key in ("difference", "low", "high")), *(by_seed or (None, None)), test.get("p")]
            yield (
                *(one["task"], one["corpus"], testset, one["testsets"][testset], model, one["measure"].metric),
                *(round(cell["mean"], 6), "" if cell["sd"] is None else round(cell["sd"], 6), cell["n"]),
                found["base"] if test else "",
                *("" if value is None else round(value, 6) for value in numbers),
                *((number.value, number.source) if number else ("", "")),
            )
