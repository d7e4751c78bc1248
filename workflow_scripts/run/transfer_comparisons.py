"""transfer_comparisons: which of the run's experiments differ by their backbone alone, so that the transfer of models can be compared.

`run.transfer` names the backbone that the others are tested against. Experiments of one task on one text are one comparison, with a model
for each of their backbones; a retrieval compares its own models already. What is tested is each experiment's first arm.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from workflow_scripts.config import paths
from workflow_scripts.config.configuration import Config
from workflow_scripts.names import undefined
from workflow_scripts.run.jobs import Job
from workflow_scripts.tasks.plan import Plan, plans_of_run

# ---------------------------------------------------------------------------------------------
# what is compared


def comparisons(config: Config) -> list[dict[str, str]]:
    """For each task and text with several models: backbone → experiment, that of `run.transfer` first."""
    groups: dict[tuple[str, str], dict[str, str]] = {}
    for plan in plans_of_run(config) if config.run.transfer else ():
        if _is_compared(plan):
            groups.setdefault((plan.task.name, plan.corpus), {}).setdefault(_compared_by(plan), plan.name)
    base = config.run.transfer or ""
    return [{base: group[base], **group} for group in groups.values() if base in group and len(group) > 1]


def retrievals(config: Config) -> dict[str, dict[str, str]]:
    """Retrieval → backbone → the name that the model has there, that of `run.transfer` first; of those that look into this backbone."""
    found: dict[str, dict[str, str]] = {}
    base = config.run.transfer or ""
    for plan in plans_of_run(config) if base else ():
        if not plan.trains:
            models = {backbone: called for called, backbone in _looked_into(plan)}
            # with one backbone the others are models of arms, which the backbone does not tell apart
            if base in models and len(models) > 1:
                found[plan.name] = {base: models[base], **models}
    return found


def result(experiment: str) -> str:
    """The tests of the models against each other, in the folder of the base's experiment."""
    return f"{paths.experiment_folder(experiment)}/transfer.json"


def results(config: Config) -> list[str]:
    """All files that the report reads of the comparisons."""
    return [result(group[config.run.transfer or ""]) for group in comparisons(config)]


# ---------------------------------------------------------------------------------------------
# for the rule


def _group(job: Job) -> dict[str, str]:
    return next(group for group in comparisons(job.config) if group[job.config.run.transfer or ""] == job.plan.name)


def names(job: Job) -> list[str]:
    """The backbones of a comparison."""
    return list(_group(job))


def folders(job: Job) -> list[str]:
    """The folders of predictions of all models, with all seeds, in this order."""
    plans = map(job.plan.other, _group(job).values())
    return [f"{paths.run_folder(plan.name, plan.arms[0], seed)}/predictions" for plan in plans for seed in plan.seeds]


# ---------------------------------------------------------------------------------------------
# what is wrong with it


def problems(config: Config) -> Iterator[str]:
    """What is wrong with `run.transfer`; the experiments themselves are sound."""
    if not config.run.transfer:
        return
    yield from undefined("run.transfer", config.run.transfer, config.backbones)
    if config.run.transfer in config.backbones and not comparisons(config) and not retrievals(config):
        yield (
            f"run.transfer: there is nothing to compare {config.run.transfer!r} with; it needs experiments of one task on one text, one of "
            "them on this backbone and others on other backbones"
        )
    seen: dict[tuple[str, str, str], str] = {}
    for plan in filter(_is_compared, plans_of_run(config)):
        key = (plan.task.name, plan.corpus, _compared_by(plan))
        if key in seen:
            yield (
                f"run.transfer: {seen[key]} and {plan.name} are both {key[0]} of {key[1]} with backbone {key[2]}, so that the backbone "
                "does not tell them apart; leave one out of run.experiments, or make them arms of one experiment"
            )
        seen.setdefault(key, plan.name)
    for name in retrievals(config):
        known: dict[str, str] = {}
        for called, backbone in _looked_into(Plan(config, name)):
            if backbone in known:
                yield (
                    f"run.transfer: {known[backbone]} and {called} of experiments.{name}.models are both backbone {backbone}, which does "
                    "not tell them apart; move one of them into a retrieval of its own"
                )
            known.setdefault(backbone, called)
    for group in comparisons(config):
        plans = [Plan(config, name) for name in group.values()]
        arms = {plan.name: plan.arms[0] for plan in plans}
        if len({*arms.values()}) > 1:
            yield f"run.transfer: experiments that are compared need the same first arm: {arms}"
        seeds = {plan.name: plan.seeds for plan in plans}
        if len({*map(tuple, seeds.values())}) > 1:
            yield f"run.transfer: experiments that are compared need the same `seeds`: {seeds}"
        for setting in ("metric", "relevant"):
            values: dict[str, Any] = {plan.name: getattr(_head(plan), setting, None) for plan in plans}
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
    return plan.backbone_of(plan.arms[0])


def _head(plan: Plan) -> Any:
    return getattr(plan.settings, plan.settings.head)
