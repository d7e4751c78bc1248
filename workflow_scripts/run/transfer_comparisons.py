"""transfer_comparisons: which of the run's experiments differ by their backbone alone, so that the transfer of models can be compared.

`run.transfer` names the backbone that the others are tested against. Experiments of one task on one text are one comparison, with a model
for each of their backbones; a retrieval compares its own models already. What is tested is each experiment's first arm.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from workflow_scripts.config import paths
from workflow_scripts.names import undefined
from workflow_scripts.run.jobs import Job
from workflow_scripts.tasks.plan import Plan, Plans

# ---------------------------------------------------------------------------------------------
# what is compared


def comparisons(plans: Plans) -> list[dict[str, Plan]]:
    """For each task and text with several models: backbone → experiment, that of `run.transfer` first."""
    groups: dict[tuple[str, str], dict[str, Plan]] = {}
    base = plans.config.run.transfer
    for plan in filter(_is_compared, plans.of_run if base else ()):
        groups.setdefault((plan.task.name, plan.corpus), {}).setdefault(_compared_by(plan), plan)
    return [{base: group[base], **group} for group in groups.values() if base in group and len(group) > 1]


def retrievals(plans: Plans) -> dict[Plan, dict[str, str]]:
    """Retrieval → backbone → the name that the model has there, that of `run.transfer` first; of those that look into this backbone."""
    found: dict[Plan, dict[str, str]] = {}
    base = plans.config.run.transfer
    for plan in plans.of_run if base else ():
        if not plan.trains:
            models = {backbone: called for called, backbone in _looked_into(plan)}
            # with one backbone the others are models of arms, which the backbone does not tell apart
            if base in models and len(models) > 1:
                found[plan] = {base: models[base], **models}
    return found


def result(group: dict[str, Plan]) -> str:
    """The tests of the models against each other, in the folder of the base's experiment."""
    return f"{next(iter(group.values())).folder}/transfer.json"


def results(plans: Plans) -> list[str]:
    """All files that the report reads of the comparisons."""
    return list(map(result, comparisons(plans)))


# ---------------------------------------------------------------------------------------------
# for the rule


def _group(job: Job) -> dict[str, Plan]:
    return next(group for group in comparisons(job.plans) if job.plan in group.values())


def names(job: Job) -> list[str]:
    """The backbones of a comparison."""
    return list(_group(job))


def folders(job: Job) -> list[str]:
    """The folders of predictions of all models, with all seeds, in this order."""
    return [f"{paths.run_folder(plan.name, plan.arms[0], seed)}/predictions" for plan in _group(job).values() for seed in plan.seeds]


# ---------------------------------------------------------------------------------------------
# what is wrong with it


def problems(plans: Plans) -> Iterator[str]:
    """What is wrong with `run.transfer`; the experiments themselves are sound."""
    if not (base := plans.config.run.transfer):
        return
    yield from undefined("run.transfer", base, plans.backbones)
    if base in plans.backbones and not comparisons(plans) and not retrievals(plans):
        yield (
            f"run.transfer: there is nothing to compare {base!r} with; it needs experiments of one task on one text, one of "
            "them on this backbone and others on other backbones"
        )
    seen: dict[tuple[str, str, str], str] = {}
    for plan in filter(_is_compared, plans.of_run):
        key = (plan.task.name, plan.corpus, _compared_by(plan))
        if key in seen:
            yield (
                f"run.transfer: {seen[key]} and {plan.name} are both {key[0]} of {key[1]} with backbone {key[2]}, so that the backbone "
                "does not tell them apart; leave one out of run.experiments, or make them arms of one experiment"
            )
        seen.setdefault(key, plan.name)
    for plan in retrievals(plans):
        known: dict[str, str] = {}
        for called, backbone in _looked_into(plan):
            if backbone in known:
                yield (
                    f"run.transfer: {known[backbone]} and {called} of {plan.where}.models are both backbone {backbone}, which does "
                    "not tell them apart; move one of them into a retrieval of its own"
                )
            known.setdefault(backbone, called)
    for group in map(dict.values, comparisons(plans)):
        arms = {plan.name: plan.arms[0] for plan in group}
        if len({*arms.values()}) > 1:
            yield f"run.transfer: experiments that are compared need the same first arm: {arms}"
        seeds = {plan.name: plan.seeds for plan in group}
        if len({*map(tuple, seeds.values())}) > 1:
            yield f"run.transfer: experiments that are compared need the same `seeds`: {seeds}"
        for setting in ("metric", "relevant"):
            values: dict[str, Any] = {plan.name: getattr(_head(plan), setting, None) for plan in group}
            if len({*values.values()}) > 1:
                yield f"run.transfer: experiments that are compared need the same `{setting}`: {values}"


def _looked_into(plan: Plan) -> list[tuple[str, str]]:
    """The models of a retrieval that are backbones: their names there, and the backbones."""
    return [(called, model.backbone) for called, model in plan.settings.models.items() if model.backbone]


def _is_compared(plan: Plan) -> bool:
    """Whether an experiment's models can be compared by their backbones: it is trained on text with labels, and does not write."""
    return plan.trains and plan.task.text == "labelled" and plan.task.answers != "text"


def _compared_by(plan: Plan) -> str:
    """The backbone of an experiment's first arm, which is the one that is tested."""
    return plan.backbone_of(plan.arms[0]).name


def _head(plan: Plan) -> Any:
    return getattr(plan.settings, plan.settings.head)
