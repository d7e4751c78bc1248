"""tradeoff: how good the outputs of arms are against how many a second they write (in the manner of Table 4 of Wu et al. 2023)."""

from typing import Any

from workflow_scripts.evidence.speed import METRICS
from workflow_scripts.report.curves import updates_made
from workflow_scripts.report.study import Study


def speed(study: Study) -> dict[str, Any]:
    """The data of the part "Speed": a row for each arm and way, and the points of the chart, one at a time and in batches.

    The ways of an arm that differ in iterations or guesses, or in the beam of one engine, are joined by a line.
    """
    measured = study.json(study.run / "speed.json")
    alone = {(row["arm"], row["way"]): row for row in measured["rows"] if not row["batched"]}
    batched = {(row["arm"], row["way"]): row for row in measured["rows"] if row["batched"]}
    if not alone:
        raise ValueError(f"no way to write could be timed: {measured.get('not_timed', {})}")
    slowest = min(row["sentences_per_second"] for row in alone.values())
    costs = {arm: cost(study, arm) for arm in study.arms}
    rows = [
        {**row, **costs[row["arm"]], "times": row["sentences_per_second"] / slowest, "in_batches": batched[key]}
        for key, row in alone.items()
    ]
    return {
        "rows": rows,
        "charts": {"one at a time": points(alone, study.leading), "in batches": points(batched, study.leading)},
        "metrics": measured.get("metrics", METRICS),  # which files of earlier versions lack
        **{key: measured[key] for key in ("sentences", "device", "threads", "settings", "text")},
        "failed": measured.get("failed", {}),
        "not_timed": measured.get("not_timed", {}),
    }


def cost(study: Study, arm: str) -> dict[str, Any]:
    """What an arm took: weights that were trained last, tokens of pretraining and of training."""
    made = {phase.name: updates_made(study, arm, study.seeds[0], phase) or phase.updates or 0 for phase in study.arms[arm]}
    reports = {name: study.json(study.seed(arm) / name / "training.json") for name in made}
    # what was chosen from a grid, and where a phase stopped early, is known afterwards
    own = sum(updates * reports[name]["settings"]["batch_tokens"] for name, updates in made.items())
    return {"trained": weights_trained(reports["finetune"]), "pretraining_tokens": study.pretraining[arm], "training_tokens": own}


def weights_trained(report: dict[str, Any]) -> int:
    """How many weights a phase has trained, by its `training.json`: all, prompts, an adapter's, or none where a model is asked."""
    if "shots" in report:
        return 0
    return report.get("trained", report.get("adapter", report).get("trained", report["parameters"]))


def points(rows: dict[tuple[str, str], dict[str, Any]], metric: str) -> list[dict[str, Any]]:
    """The series of a chart of a metric against sentences per second."""
    found: dict[str, dict[str, Any]] = {}
    for (arm, way), row in rows.items():
        engine = way.partition(",")[0] if "," in way else ""
        name = f"{arm}, {engine}" if engine else arm
        series = found.setdefault(name, {"name": name, "colour": len(found), "lines": [[]]})
        if row.get(metric) is not None:
            series["lines"][0].append((row["sentences_per_second"], row[metric]))
    return list(found.values())
