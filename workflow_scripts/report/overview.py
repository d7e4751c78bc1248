"""Several experiments compared: a row for each experiment, test set and arm, and a chart of gain against distance."""

import itertools
from typing import Any

from workflow_scripts.report import labels
from workflow_scripts.report.comparison import contrast, reasons
from workflow_scripts.report.study import Study


def overview(sections: list[dict[str, Any]]) -> dict[str, Any]:
    """Table and chart that compare several experiments; empty for a single one.

    The table has a row per experiment, test set and arm (a classification: per arm, its average over test sets); a row without a
    score has a `reason`. `trivial` is the trivial baseline, where there is one. The chart shows the gain in score against the
    reduction of the distance between the languages.
    """
    if len(sections) < 2:
        return {}
    rows = [row for part in sections for row in (labels.overview_rows if part["study"].labelled else overview_rows)(part)]
    translated = [row for row in rows if not row["study"].labelled]
    points = []
    for colour, arm in enumerate(dict.fromkeys(row["arm"] for row in translated if row["arm"] != row["study"].baseline), 1):
        mine = [row for row in translated if row["arm"] == arm and row["gain"] and row["closer"] is not None]
        lines = [[(row["closer"], row["gain"]["mean"])] for row in mine]
        points.append({"name": arm, "colour": colour, "lines": lines, "labels": [row["study"].name for row in mine]})
    return {
        "rows": rows,
        "points": points,
        "metrics": list(dict.fromkeys(row["metric"] for row in rows)),
        "covers": list(dict.fromkeys(part["scores"]["covers"] for part in sections if "scores" in part)),
        "trivial": any(row["trivial"] is not None for row in rows),
        "drawn": " or ".join(dict.fromkeys(row["metric"] for row in translated)),
    }


def overview_rows(part: dict[str, Any]) -> list[dict[str, Any]]:
    """Rows of the overview for one experiment on parallel text."""
    study: Study = part["study"]
    distances = part["distances"]["rows"] if "distances" in part else []
    finetuned = {row["arm"]: row for row in distances if row["phase"] == "finetune"}
    after = {arm: row["pairs_rms"]["mean"] for arm, row in finetuned.items()}
    # of encoders another kind of vectors is measured, so that a difference would mean nothing
    alike = {arm for arm, row in finetuned.items() if row["measured"] == finetuned[study.baseline]["measured"]}
    measured = part.get("scores", {"measures": [], "over_seeds": [], "trivial": {}})
    over_seeds = {
        (r["testset"], r["arm"]): r for r in measured["over_seeds"] if (r["metric"], r["other"]) == (study.leading, study.baseline)
    }
    rows = []
    for testset, arm in itertools.product(study.testsets, study.arms):
        cell = part["scores"]["tables"][testset]["cells"].get((arm, study.leading)) if "scores" in part else None
        rows.append(
            {"study": study, "metric": study.leading, "testset": testset, "arm": arm, "score": cell}
            | {"trivial": measured["trivial"].get(testset, {}).get(study.leading)}
            | {"gain": contrast(measured["measures"], arm, study.baseline, testset, study.leading)}
            | {"markers": [r["marker"] for r in cell["seeds"] if r["marker"]] if cell else []}
            | {"tested": over_seeds.get((testset, arm))}
            | {"distance": after.get(arm), "closer": after[study.baseline] - after[arm] if arm in alike else None}
            | {"reason": "" if cell else part["failed"].get("scores") or "; ".join(reasons(study, testset, arm))}
        )
    return rows
