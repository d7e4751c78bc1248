"""curve: the learning curve of a phase, and the report on the weights that it hands on."""

import math
from pathlib import Path

from workflow_scripts.stage import atomic
from workflow_scripts.training.checkpoints import chosen_updates, judged_by, looks_of
from workflow_scripts.training.settings import DEV_LOSSES, DEV_SCORES, Training

_DEV = {name: f"eval_{name.removeprefix('dev_')}" for name in ("dev_loss", *DEV_SCORES.values(), "dev_smoothed_loss")}
"""What is measured on the dev set → its name in the Trainer's history."""
LOSS_ONLY = "eval_loss_only"
"""Name of the dev loss between two looks in the Trainer's history. There is no checkpoint then, so it takes no part in the choice."""
CURVE = ("update", "seconds", "loss", "learning_rate", "dev_loss", *DEV_SCORES.values())


def write_curve(path: Path, history: list[dict], columns: tuple[str, ...] = CURVE) -> None:
    """Write the curve as TSV: training loss, dev losses (nats per label), dev BLEU or ROUGE-L, or other `columns`, by update and time."""
    if any("eval_smoothed_loss" in entry for entry in history):  # where the phase is judged by it
        columns = (*columns, "dev_smoothed_loss")
    names = {"step": "update", **{theirs: ours for ours, theirs in _DEV.items()}, "eval_accuracy": "dev_accuracy", LOSS_ONLY: "dev_loss"}
    with atomic(path) as file:
        file.write("\t".join(columns) + "\n")
        for entry in history:
            row = {names.get(k, k): v for k, v in entry.items()}
            if "loss" in row or "dev_loss" in row:
                file.write("\t".join(_number(row.get(name)) for name in columns) + "\n")


def score_key(settings: Training) -> str:
    """The name, in the Trainer's history, of the score of dev texts."""
    return _DEV[DEV_SCORES[settings.dev_metric]]


def judge(settings: Training) -> str:
    """The name, in the Trainer's history, of the number that looks at the dev set are judged by."""
    return score_key(settings) if settings.choose_by == "metric" else _DEV[DEV_LOSSES[settings.choose_by]]


def handed_on(history: list[dict], settings: Training) -> dict:
    """Update numbers of the weights that the phase hands on, and their scores on the dev set (averaged over them).

    `chosen_by` names the number that decided which look was best (None if the last one is taken). `reason` says why it was the loss
    although something else was asked for.
    """
    by = judge(settings)
    updates = chosen_updates(history, settings.checkpoint, settings.averaged, by)
    looks = [look for look in looks_of(history) if look["step"] in updates]
    measured = {name: [look[key] for look in looks if look.get(key) is not None] for name, key in _DEV.items()}
    chosen_by = judged_by(history, by) if settings.checkpoint in ("best", "average_best") else None
    reason = None
    if chosen_by not in (by, None) and settings.choose_by == "metric":
        reason = f"no {settings.dev_metric} was measured on the dev set" + ("" if settings.bleu_sentences else ": bleu_sentences is 0")
    elif chosen_by not in (by, None):
        reason = "the smoothed loss is not measured in this way of training"
    return {
        "updates": updates,
        "chosen_by": {theirs: ours for ours, theirs in _DEV.items()}.get(chosen_by or ""),
        "reason": reason,
        **{name: sum(values) / len(values) if values else None for name, values in measured.items()},
    }


def _number(value: float | None) -> str:
    if isinstance(value, int):
        return str(value)  # which the report reads as a whole number, however large
    return "" if value is None or math.isnan(value) else f"{value:.6g}"
