"""transfer_comparisons: which of the run's experiments differ by their backbone alone, so that the transfer of models can be compared.

`run.transfer` names the backbone that the others are tested against. Experiments of one task on one text are one comparison, with a model
for each of their backbones; a retrieval compares its own models already. What is tested is each experiment's first arm.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from workflow_scripts.config import paths
from workflow_scripts.config.configuration import Config
from workflow_scripts.config.experiments import AnyExperiment, task_name
from workflow_scripts.names import undefined
from workflow_scripts.run.jobs import Job
from workflow_scripts.tasks.entry import task_of
from workflow_scripts.tasks.experiment import arms_of, backbone_of, seeds_of, trains

# ---------------------------------------------------------------------------------------------
# what is compared


def comparisons(config: Config) -> list[dict[str, str]]:
    """For each task and text with several models: backbone → experiment, that of `run.transfer` first."""
    groups: dict[tuple[str | None, str], dict[str, str]] = {}
    for name in config.run.experiments if config.run.transfer else ():
        if _is_compared(experiment := config.experiments[name]):
            groups.setdefault((task_name(experiment), experiment.corpus), {}).setdefault(_compared_by(config, name), name)
    base = config.run.transfer or ""
    return [{base: group[base], **group} for group in groups.values() if base in group and len(group) > 1]


def retrievals(config: Config) -> dict[str, dict[str, str]]:
    """Retrieval → backbone → the name that the model has there, that of `run.transfer` first; of those that look into this backbone."""
    found: dict[str, dict[str, str]] = {}
    base = config.run.transfer or ""
    for name in config.run.experiments if base else ():
        if not trains(config.experiments[name]):
            models = {backbone: called for called, backbone in _looked_into(config.experiments[name])}
            # with one backbone the others are models of arms, which the backbone does not tell apart
            if base in models and len(models) > 1:
                found[name] = {base: models[base], **models}
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
    return next(group for group in comparisons(job.config) if group[job.config.run.transfer or ""] == job.name)


def names(job: Job) -> list[str]:
    """The backbones of a comparison."""
    return list(_group(job))


def folders(job: Job) -> list[str]:
    """The folders of predictions of all models, with all seeds, in this order."""
    return [
        f"{paths.run_folder(name, arms_of(job.config, job.config.experiments[name])[0], seed)}/predictions"
        for name in _group(job).values()
        for seed in seeds_of(job.config, job.config.experiments[name])
    ]


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
    seen: dict[tuple[str | None, str, str], str] = {}
    for name in config.run.experiments:
        if not _is_compared(experiment := config.experiments[name]):
            continue
        key = (task_name(experiment), experiment.corpus, _compared_by(config, name))
        if key in seen:
            yield (
                f"run.transfer: {seen[key]} and {name} are both {key[0]} of {key[1]} with backbone {key[2]}, so that the backbone does not "
                "tell them apart; leave one out of run.experiments, or make them arms of one experiment"
            )
        seen.setdefault(key, name)
    for name in retrievals(config):
        known: dict[str, str] = {}
        for called, backbone in _looked_into(config.experiments[name]):
            if backbone in known:
                yield (
                    f"run.transfer: {known[backbone]} and {called} of experiments.{name}.models are both backbone {backbone}, which does "
                    "not tell them apart; move one of them into a retrieval of its own"
                )
            known.setdefault(backbone, called)
    for group in comparisons(config):
        arms = {name: arms_of(config, config.experiments[name])[0] for name in group.values()}
        if len({*arms.values()}) > 1:
            yield f"run.transfer: experiments that are compared need the same first arm: {arms}"
        seeds = {name: seeds_of(config, config.experiments[name]) for name in group.values()}
        if len({*map(tuple, seeds.values())}) > 1:
            yield f"run.transfer: experiments that are compared need the same `seeds`: {seeds}"
        for setting in ("metric", "relevant"):
            values: dict[str, Any] = {name: getattr(_head(config, name), setting, None) for name in group.values()}
            if len({*values.values()}) > 1:
                yield f"run.transfer: experiments that are compared need the same `{setting}`: {values}"


def _looked_into(experiment: Any) -> list[tuple[str, str]]:
    """The models of a retrieval that are backbones: their names there, and the backbones."""
    return [(called, model.backbone) for called, model in experiment.models.items() if model.backbone]


def _is_compared(experiment: AnyExperiment) -> bool:
    """Whether an experiment's models can be compared by their backbones: it is trained on text with labels, and does not write."""
    return trains(experiment) and task_of(experiment).text == "labelled" and task_of(experiment).answers != "text"


def _compared_by(config: Config, name: str) -> str:
    """The backbone of an experiment's first arm, which is the one that is tested."""
    return backbone_of(config, config.experiments[name], arms_of(config, config.experiments[name])[0])


def _head(config: Config, name: str) -> Any:
    experiment: Any = config.experiments[name]
    return getattr(experiment, experiment.head)
