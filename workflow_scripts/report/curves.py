"""Learning curves (Figure 2 of Zan et al.): loss and score by updates and by time, and when an arm reaches the baseline's least loss."""

import itertools
from typing import Any

import numpy as np

from workflow_scripts.config.phases import Phase
from workflow_scripts.report.study import Study, summary
from workflow_scripts.stage import InputError, read_rows
from workflow_scripts.training.settings import DEV_SCORES

ENOUGH_POINTS = 8
"""Points that a curve of the dev loss needs before the page says when it reached a loss between two of them."""


def learning_curves(study: Study) -> dict[str, Any]:
    """The data of the part "Learning curves"."""
    return {
        "charts": curves(study),
        "smoothed": has_smoothed_loss(study),
        "looks": looks(study),
        "losses": loss_points(study),
        "gain": last_fifth(study),
        "updates_to_baseline": updates_to_baseline(study),
        "enough_points": ENOUGH_POINTS,
    }


def curves(study: Study) -> dict[str, list[dict[str, Any]]]:
    """Chart → its series. x counts the updates, or the minutes, of all phases of an arm. Lines of the pretext phase are dashed."""
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


def has_smoothed_loss(study: Study) -> bool:
    """Whether the labels of some phase are smoothed, by what its first seed's training says.

    Generators that write at once have losses of their own, in which the phase's label smoothing has no part.
    """
    learning = [(arm, phase) for arm, phases in study.arms.items() for phase in phases if not (phase.untrained or phase.writes.at_once)]
    said = [study.json(study.seed(arm) / phase.name / "training.json") for arm, phase in learning]
    return any(one.get("settings", {}).get("label_smoothing") for one in said)


def curve(study: Study, arm: str, seed: int, phase: Phase, column: str, axis: str = "update") -> list[tuple[float, float]]:
    """One column of a phase's curve as (x, value) points; x is updates or seconds since the arm began, earlier attempts included."""
    before = 0.0
    for earlier in itertools.takewhile(lambda p: p is not phase, study.arms[arm]):
        before += float(_curve_rows(study, arm, seed, earlier)[-1][axis])
    rows = _curve_rows(study, arm, seed, phase)
    return [(before + float(row[axis]), float(row[column])) for row in rows if row.get(column)]


def updates_made(study: Study, arm: str, seed: int, phase: Phase) -> int | None:
    """Updates that a phase really made: fewer than configured if it stopped early (`patience`). None without a curve.

    The last row of a curve is written after the last update.
    """
    try:
        return int(_curve_rows(study, arm, seed, phase)[-1]["update"])
    except (InputError, IndexError):
        return None


def updates_in_all(study: Study, arm: str) -> list[int]:
    """Total updates of an arm's phases, by seed. A phase without a curve counts with its configured updates."""
    phases = study.arms[arm]
    return [sum(updates_made(study, arm, seed, phase) or phase.updates or 0 for phase in phases) for seed in study.seeds]


def _curve_rows(study: Study, arm: str, seed: int, phase: Phase) -> list[dict[str, str]]:
    return read_rows(study.there(study.seed(arm, seed) / phase.name / "curve.tsv"))


def looks(study: Study) -> list[dict[str, Any]]:
    """A row per measurement of the dev set: arm, seed, phase, updates and minutes since the arm's beginning, losses and score.

    Between two looks the loss alone is measured, and `dev_score` is None.
    The training loss is the last one logged before.
    """
    rows = []
    for arm, seed in itertools.product(study.arms, study.seeds):
        for phase in study.arms[arm]:
            times = [seconds for seconds, _ in curve(study, arm, seed, phase, "dev_loss", "seconds")]
            scores = dict(curve(study, arm, seed, phase, DEV_SCORES[study.dev_metric]))
            losses = curve(study, arm, seed, phase, "loss")
            for (update, loss), seconds in zip(curve(study, arm, seed, phase, "dev_loss"), times, strict=True):
                before = [value for at, value in losses if at <= update]
                rows.append(
                    {"arm": arm, "seed": seed, "phase": phase.name, "updates": update, "minutes": seconds / 60, "dev_loss": loss}
                    | {"loss": before[-1] if before else None, "dev_score": scores.get(update)}
                )
    return rows


def loss_points(study: Study) -> dict[str, Any]:
    """All points of the training loss as a table: `updates` since the arm began are its rows, (arm, seed) its `columns`."""
    columns = list(itertools.product(study.arms, study.seeds))
    cells = {
        (update, arm, seed): {"loss": loss, "pretext": bool(phase.bridge)}
        for arm, seed in columns
        for phase in study.arms[arm]
        for update, loss in curve(study, arm, seed, phase, "loss")
    }
    return {"columns": columns, "updates": sorted({update for update, _, _ in cells}), "cells": cells}


def updates_to_baseline(study: Study) -> list[dict[str, Any]]:
    """One row per arm that learns: the updates after which it reaches the baseline's least dev loss, over the seeds that reach it.

    The paper's Figure 2 and its claim of half the steps. Interpolated between two points of the curve. `finetuning` are the updates
    after the pretext phase, `share` is their number for each update that the baseline's finetuning makes to its least loss. `points` is
    how many points the curve of finetuning has, with the seed that has the fewest. There are no rows where the baseline trains nothing.
    """
    rows: list[dict[str, Any]] = []
    *earlier, baseline = study.arms[study.baseline]
    if baseline.untrained:
        return rows
    for colour, (arm, (*before, last)) in enumerate(study.arms.items()):
        if last.untrained:
            continue
        reached, finetuning, shares, counts = [], [], [], []
        for seed in study.seeds:
            goal = curve(study, study.baseline, seed, baseline, "dev_loss")
            points = curve(study, arm, seed, last, "dev_loss")
            counts.append(len(points))
            if not goal:
                continue
            # where the loss rises after its minimum, every arm has passed the last one at once
            at, least = min(goal, key=lambda point: point[1])
            done = _updates_of(study, study.baseline, seed, earlier)
            if at > done and (update := first_below(points, least)) is not None:
                reached.append(update)
                finetuning.append(update - _updates_of(study, arm, seed, before))
                shares.append(finetuning[-1] / (at - done))
        found = {"updates": reached, "finetuning": finetuning, "share": shares}
        measured = {key: summary(values) if values else None for key, values in found.items()}
        rows.append({"arm": arm, "colour": colour, "points": min(counts), **measured})
    return rows


def _updates_of(study: Study, arm: str, seed: int, phases: list[Phase]) -> int:
    """Updates that some phases of an arm really made."""
    return sum(updates_made(study, arm, seed, phase) or 0 for phase in phases)


def first_below(points: list[tuple[float, float]], goal: float) -> float | None:
    """The x at which a falling curve first reaches `goal`, interpolated linearly between two points; None if it never does."""
    for (x0, y0), (x1, y1) in zip([points[0], *points], points, strict=False) if points else ():
        if y1 <= goal:
            return x1 if y0 <= goal else x0 + (x1 - x0) * (y0 - goal) / (y0 - y1)
    return None


def last_fifth(study: Study) -> dict[str, Any] | None:
    """Gain in dev score over the last fifth of the baseline's finetuning; scores between two looks are interpolated."""
    *before, phase = study.arms[study.baseline]
    found = []
    for seed in study.seeds:
        points = curve(study, study.baseline, seed, phase, DEV_SCORES[study.dev_metric])
        if len(points) > 1:
            x, y = zip(*points, strict=True)
            start = _updates_of(study, study.baseline, seed, before)
            if x[0] <= (begin := start + 0.8 * (x[-1] - start)):
                found.append(float(y[-1] - np.interp(begin, x, y)))
    return summary(found) if found else None
