"""choice: which point of a grid of training settings an arm is trained with.

The paper tuned its baseline by grid search (Zan et al., section IV-A); here every arm gets the same grid.
Each point is trained once, with the experiment's first seed, and the dev set alone decides. The chosen settings
are then used for all seeds. The first seed continues from the chosen point's own checkpoints, so that nothing is trained twice.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from workflow_scripts.stage import InputError, read_json, run, write_json


@dataclass
class Choice:
    """How the best combination of a grid is chosen."""

    by: Literal["dev_bleu", "dev_rouge", "dev_score", "dev_loss"] = "dev_bleu"
    """What decides: dev BLEU or ROUGE-L of greedy translations (`training.dev_metric`), or the dev loss, of the weights that a phase hands
    on. Default for summarisation: `dev_rouge`. Default for tasks with labels: `dev_score`, the task's main score."""


def main(reports: tuple[Path, ...], output: Path, *, swept: tuple[str, ...], settings: Choice = Choice()) -> None:
    """Compare the points and write what was measured, and the chosen settings of each phase.

    `reports` are the finetune phases' training.json, point by point; `swept` names the settings that
    differ. The first of equal points is taken. Raises `InputError` when training diverged at every point, or a point was not measured.
    """
    points = [read_point(path, swept) for path in reports]
    sound = [i for i, point in enumerate(points) if not point["diverged"]]
    if not sound:
        diverged = "; ".join(f"{point['settings']}: {point['diverged']}" for point in points)
        raise InputError(f"{output}: training diverged at every point of the grid ({diverged}); give other values")
    for i in sound:
        if points[i]["measured"].get(settings.by) is None:
            raise InputError(
                f"{output}: point {points[i]['settings']} of the grid has no {settings.by}, since its metric could not be measured "
                "(the training's log says why); make that possible and repeat, or set choice.by: dev_loss"
            )
    sign = -1 if settings.by == "dev_loss" else 1
    chosen = max(sound, key=lambda i: sign * points[i]["measured"][settings.by])
    write_json(
        output,
        {
            "by": settings.by,
            "seed": points[chosen]["seed"],
            "points": [{"settings": point["settings"], **point["measured"], "diverged": point["diverged"]} for point in points],
            "chosen": chosen,
            "phases": points[chosen]["phases"],
        },
    )


def chosen_for(choice: Path | None, phase: str, seed: int, checkpoints: Path) -> tuple[dict[str, Any], Path]:
    """The settings that `choice` (`main`) has for a phase, none without a choice, and where its checkpoints are.

    The seed that the points were trained with goes on from the chosen point's own checkpoints, any other has its own.
    Raises `InputError` where nothing was chosen for the phase.
    """
    if not choice:
        return {}, checkpoints
    chosen = read_json(choice)
    if phase not in chosen["phases"]:
        raise InputError(f"{choice}: nothing was chosen for a phase {phase!r}; it has {', '.join(chosen['phases'])}")
    part = chosen["phases"][phase]
    return part["settings"], Path(part["checkpoints"]) if chosen["seed"] == seed else checkpoints


def read_point(path: Path, swept: tuple[str, ...]) -> dict[str, Any]:
    """The settings and results of one point, also of the phases before it if there were any."""
    phases = {"finetune": read_json(path)}
    last = phases["finetune"]
    # a model of the same arm, or of another point of its grid, was made by the phase before
    while (before := Path(last.get("start", "")).parent).parents[2:3] == path.parents[3:4] and (before / "training.json").exists():
        phases[before.name] = last = read_json(before / "training.json")
    finetune = phases["finetune"]
    measured = {key: value for key, value in finetune["handed_on"].items() if key in ("dev_bleu", "dev_rouge", "dev_loss")}
    if "dev_bleu" not in measured:
        # a head's score has its own name
        score = next((value for key, value in finetune["handed_on"].items() if key.startswith("dev_") and key != "dev_loss"), None)
        measured = {"dev_score": score, **measured}
    return {
        "seed": finetune["seed"],
        "settings": {key: finetune["settings"][key] for key in swept},
        "measured": measured,
        "diverged": next((report["diverged"] for report in phases.values() if report["diverged"]), ""),
        "phases": {
            name: {
                "settings": {key: report["settings"][key] for key in swept if key in report["settings"]},
                "checkpoints": str(Path(report["checkpoints"]).parent),
            }
            for name, report in phases.items()
        },
    }


if __name__ == "__main__":
    run(main)
