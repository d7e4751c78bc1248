"""curve: the learning curve of a phase, and what is said of the weights that it hands on."""

import math
from pathlib import Path

from workflow_scripts.stage import atomic
from workflow_scripts.training.checkpoints import chosen_updates
from workflow_scripts.training.settings import DEV_SCORES, Training

_DEV = {name: f"eval_{name.removeprefix('dev_')}" for name in ("dev_loss", *DEV_SCORES.values())}
"""What is measured on the dev set → its name in the Trainer's history."""
CURVE = ("update", "seconds", "loss", "learning_rate", *_DEV)


def write_curve(path: Path, history: list[dict], columns: tuple[str, ...] = CURVE) -> None:
    """Write the curve as TSV: training loss, dev loss (nats per label) and dev BLEU or ROUGE-L, or other `columns`, by update and time."""
    names = {"step": "update", **{theirs: ours for ours, theirs in _DEV.items()}, "eval_accuracy": "dev_accuracy"}
    with atomic(path) as file:
        file.write("\t".join(columns) + "\n")
        for entry in history:
            row = {names.get(k, k): v for k, v in entry.items()}
            if "loss" in row or "dev_loss" in row:
                file.write("\t".join(_number(row.get(name)) for name in columns) + "\n")


def handed_on(history: list[dict], settings: Training) -> dict:
    """After which updates the weights were taken that the phase hands on, and how they did on the dev set (on average)."""
    updates = chosen_updates(history, settings.checkpoint, settings.averaged)
    looks = [entry for entry in history if "eval_loss" in entry and entry["step"] in updates]
    measured = {name: [look[key] for look in looks if look.get(key) is not None] for name, key in _DEV.items()}
    return {"updates": updates, **{name: sum(values) / len(values) if values else None for name, values in measured.items()}}


def _number(value: float | None) -> str:
    return "" if value is None or (isinstance(value, float) and math.isnan(value)) else f"{value:.6g}"
