"""writing_checks: checks of settings that tasks which write text share: decoding, and the grid that an arm chooses from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_type_hints

from workflow_scripts.tasks.experiment import grid_value_problems
from workflow_scripts.tasks.plan import Plan
from workflow_scripts.training.settings import DEV_SCORES, Training

TRAINING_TYPES = get_type_hints(Training, include_extras=True)
"""The type of each training setting."""


def decoding_problems(plan: Plan) -> Iterator[str]:
    """Limits of an output's length must leave some length between them. The settings of engines are checked in `consistency`."""
    where, decoding = plan.where, plan.settings.decoding
    if decoding.min_length > decoding.max_length:
        yield f"{where}.decoding: min_length {decoding.min_length} is more than max_length {decoding.max_length}"


def grid_problems(plan: Plan) -> Iterator[str]:
    """A grid must list training values that exist, and its choice must go by something that is measured."""
    where, experiment = plan.where, plan.settings
    for key, values in experiment.grid.items():
        yield from grid_value_problems(where, "training", key, values, TRAINING_TYPES)
        if key == "updates":
            yield f"{where}.training.updates: cannot be chosen from a grid; it is set in the arms, whose totals must be equal"
        for arm, phase in plan.phases:
            if phase.data == "task" and key in phase.training:
                yield f"arms.{arm}: sets {key}, which {where} chooses from {values}; every arm must have the same choice"
    if experiment.grid:
        yield from _choice_problems(where, experiment)


def _choice_problems(where: str, experiment: Any) -> Iterator[str]:
    """A choice by a score needs training that measures this very score on the dev set."""
    training, by = experiment.training, experiment.choice.by
    sentences = [training.bleu_sentences, *(n for n in experiment.grid.get("bleu_sentences", []) if isinstance(n, int))]
    if by != "dev_loss" and not min(sentences):
        yield f"{where}.choice.by: {by} needs training.bleu_sentences above 0; or choose by dev_loss"
    if by not in ("dev_loss", measured := DEV_SCORES[training.dev_metric]):
        yield f"{where}.choice.by: {by} is not measured: dev_metric is {training.dev_metric}; set {measured}"
