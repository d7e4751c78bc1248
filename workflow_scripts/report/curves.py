"""Learning curves (Figure 2 of Zan et al.): loss and score by updates and by time, and when an arm reaches the baseline's loss."""

import csv
import itertools
from typing import Any

import numpy as np

from workflow_scripts.report.study import Study, summary
from workflow_scripts.tasks.experiment import Phase
from workflow_scripts.training.training import DEV_SCORES

ENOUGH_POINTS = 8
"""Points that a curve of the dev loss needs before the page says when it reached a loss between two of them."""


def learning_curves(study: Study) -> dict[str, Any]:
    """Everything that the page says of the learning curves."""
    return {
        "charts": curves(study),
        "looks": looks(study),
        "losses": loss_points(study),
        "gain": last_fifth(study),
        "updates_to_baseline": updates_to_baseline(study),
        "enough_points": ENOUGH_POINTS,
    }


def curves(study: Study) -> dict[str, list[dict[str, Any]]]:
    """Series by chart; x counts an arm's updates, or minutes, of all phases. The pretext phase's training loss is dashed."""
    charts = {
        "dev_score": (DEV_SCORES[study.dev_metric], "update"),
        "dev_score_by_time": (DEV_SCORES[study.dev_metric], "seconds"),
        "dev_loss": ("dev_loss", "update"),
        "dev_loss_by_time": ("dev_loss", "seconds"),
        "loss": ("loss", "update"),
    }
    series: dict[str, list[dict[str, Any]]] = {chart: [] for chart in charts}
    for (colour, arm), (chart, (column, axis)) in itertools.product(enumerate(study.arms), charts.items()):
        lines: dict[str, list] = {"lines": [], "dashed": []}
        for seed, phase in itertools.product(study.seeds, study.arms[arm]):
            if points := curve(study, arm, seed, phase, column, axis):
                finetune = phase.name == "finetune"
                if finetune or column == "loss":
                    scale = 60 if axis == "seconds" else 1
                    lines["lines" if finetune else "dashed"].append([(x / scale, y) for x, y in points])
        series[chart].append({"name": arm, "colour": colour, **lines})
    return series


def curve(study: Study, arm: str, seed: int, phase: Phase, column: str, axis: str = "update") -> list[tuple[float, float]]:
    """(updates, or seconds, since the arm's beginning; value) of one column of one phase. Seconds count earlier attempts, too."""
    before = 0.0
    for earlier in itertools.takewhile(lambda p: p is not phase, study.arms[arm]):
        before += float(_curve_rows(study, arm, seed, earlier)[-1][axis])
    rows = _curve_rows(study, arm, seed, phase)
    return [(before + float(row[axis]), float(row[column])) for row in rows if row.get(column)]


def updates_made(study: Study, arm: str, seed: int, phase: Phase) -> int | None:
    """Updates that a phase made, fewer than configured where it ran out of `patience`; None without a curve.

    The last row of a curve is the look at the dev set, or the loss, after the last update.
    """
    try:
        return int(_curve_rows(study, arm, seed, phase)[-1]["update"])
    except (OSError, IndexError):
        return None


def updates_in_all(study: Study, arm: str) -> list[int]:
    """Updates that the phases of an arm made together, by seed; the configured ones for want of a curve."""
    phases = study.arms[arm]
    return [sum(updates_made(study, arm, seed, phase) or phase.updates or 0 for phase in phases) for seed in study.seeds]


def _curve_rows(study: Study, arm: str, seed: int, phase: Phase) -> list[dict[str, str]]:
    with open(study.seed(arm, seed) / phase.name / "curve.tsv", encoding="utf-8") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def looks(study: Study) -> list[dict[str, Any]]:
    """A row per measurement of the dev set: arm, seed, phase, updates and minutes since the arm's beginning, losses and score.

    Between two looks the loss alone is measured, and `dev_score` is None.
    The training loss is the last one logged before.
    """
    rows = []
    for arm, seed in itertools.product(study.arms, study.seeds):
        for phase in study.arms[arm]:
            minutes = dict(curve(study, arm, seed, phase, "dev_loss", "seconds"))
            scores = dict(curve(study, arm, seed, phase, DEV_SCORES[study.dev_metric]))
            losses = curve(study, arm, seed, phase, "loss")
            for (update, loss), seconds in zip(curve(study, arm, seed, phase, "dev_loss"), minutes, strict=True):
                before = [value for at, value in losses if at <= update]
                rows.append(
                    {"arm": arm, "seed": seed, "phase": phase.name, "updates": update, "minutes": seconds / 60, "dev_loss": loss}
                    | {"loss": before[-1] if before else None, "dev_score": scores.get(update)}
                )
    return rows


def loss_points(study: Study) -> dict[str, Any]:
    """Every point of the training losses: the updates since an arm's beginning, a column per arm and seed, and the cells."""
    columns = list(itertools.product(study.arms, study.seeds))
    cells = {
        (update, arm, seed): {"loss": loss, "pretext": phase.name == "pretext"}
        for arm, seed in columns
        for phase in study.arms[arm]
        for update, loss in curve(study, arm, seed, phase, "loss")
    }
    return {"columns": columns, "updates": sorted({update for update, _, _ in cells}), "cells": cells}


def updates_to_baseline(study: Study) -> list[dict[str, Any]]:
    """A row per arm: after how many updates it has the dev loss that the baseline ends with, over the seeds that get there.

    The paper's Figure 2 and its claim of half the steps. Interpolated between two points of the curve. `finetuning` are the updates
    after the pretext phase, `share` is their number for each update of the baseline's finetuning. `points` is how many points the
    curve of finetuning has, with the seed that has the fewest.
    """
    rows = []
    baseline = study.arms[study.baseline][-1]
    for arm, (*before, last) in study.arms.items():
        reached, finetuning, shares, counts = [], [], [], []
        for seed in study.seeds:
            goal = curve(study, study.baseline, seed, baseline, "dev_loss")
            points = curve(study, arm, seed, last, "dev_loss")
            counts.append(len(points))
            if goal and (update := first_below(points, goal[-1][1])) is not None:
                reached.append(update)
                finetuning.append(update - sum(updates_made(study, arm, seed, phase) for phase in before))
                shares.append(finetuning[-1] / updates_made(study, study.baseline, seed, baseline))
        found = {"updates": reached, "finetuning": finetuning, "share": shares}
        measured = {key: summary(values) if values else None for key, values in found.items()}
        rows.append({"arm": arm, "points": min(counts), **measured})
    return rows


def first_below(points: list[tuple[float, float]], goal: float) -> float | None:
    """The x at which a falling curve first has `goal`, between two points by interpolation; None if it never does."""
    for (x0, y0), (x1, y1) in zip([points[0], *points], points, strict=False) if points else ():
        if y1 <= goal:
            return x1 if y0 <= goal else x0 + (x1 - x0) * (y0 - goal) / (y0 - y1)
    return None


def last_fifth(study: Study) -> dict[str, Any] | None:
    """Gain of the baseline's dev score over its last fifth of updates, each value interpolated between evaluations."""
    phase = study.arms[study.baseline][-1]
    found = []
    for seed in study.seeds:
        points = curve(study, study.baseline, seed, phase, DEV_SCORES[study.dev_metric])
        if len(points) > 1:
            x, y = zip(*points, strict=True)
            found.append(float(y[-1] - np.interp(x[-1] * 0.8, x, y)))
    return summary(found) if found else None
