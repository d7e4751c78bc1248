"""head_inputs: what the jobs of tasks with a head read, and their flags, besides those of all arms (`arms`)."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from workflow_scripts import registry
from workflow_scripts.config import paths
from workflow_scripts.noise.codeswitch import CodeSwitch
from workflow_scripts.run.arms import adapter_entry, switched_by, testsets
from workflow_scripts.run.jobs import Job, plugin_inputs
from workflow_scripts.tasks import crosslingual
from workflow_scripts.tasks.experiment import head_settings
from workflow_scripts.tasks.head_settings import named


def labelled_file(job: Job, part: str, suffix: str = "") -> str:
    """A part of the text that the experiment is trained and tested on."""
    return paths.labelled_file(job.config, job.plan.corpus, part, suffix)


def tested_examples(job: Job) -> list[str]:
    """The examples of all test sets of the experiment."""
    return [labelled_file(job, f"test/{name}", ".tsv") for name in testsets(job)]


def tested_languages(job: Job) -> list[str]:
    """The languages of all test sets of the experiment, and behind them the flag with the metrics of plugins, if there are any.

    Snakemake records both as one parameter: a metric more makes scores anew, and of experiments without such metrics nothing has changed.
    """
    metrics = job.plan.settings.metrics
    return [*crosslingual.tested_languages(job.plan), *(["--metrics", *metrics] if metrics else [])]


def switched_while_finetuning(job: Job) -> dict[str, list[str]]:
    """The lexicons by which the finetuning text is switched, if it is."""
    lexicon = job.phase("finetune").lexicon or job.plan.settings.lexicon
    return {"lexicons": crosslingual.lexicon_files(job.plan, lexicon)} if _switching(job) else {}


def _switching(job: Job) -> CodeSwitch | None:
    """How words of the finetuning text are switched: as the arm says (`switch`), or else the experiment; None where they are not."""
    share, own = job.phase("finetune").switch, job.plan.settings.codeswitch
    if share is not None:
        return switched_by(own, share)
    return own if getattr(_head(job), "switch_while_finetuning", False) else None


def _head(job: Job) -> Any:
    """The settings of finetuning of the experiment."""
    experiment = job.plan.settings
    return getattr(experiment, experiment.head)


def head_block(job: Job) -> str:
    """The settings of finetuning of the experiment, as JSON."""
    return json.dumps(named(_head(job)), ensure_ascii=False)


def finetuning_plugins(job: Job) -> dict[str, list[str]]:
    """The files of the plugins that the experiment's task and an arm's adapter come from; what comes from none reads none."""
    chosen = head_settings(job.plan.settings, job.phase("finetune"), job.point)
    return plugin_inputs(job.plan.task, adapter_entry(chosen.adapter), settings=chosen)


def scoring_plugins(job: Job) -> dict[str, list[str]]:
    """The files of the plugins that the experiment's task and metrics come from; what comes from none reads none."""
    metrics = (registry.entry("label_metric", each) for each in job.plan.settings.metrics)
    return plugin_inputs(job.plan.task, *metrics, settings=_head(job))


def learnt_by_the_baseline(job: Job) -> dict[str, str]:
    """The training text, where the trivial baseline of the experiment's task learns from it."""
    return {"train": labelled_file(job, "train", ".tsv")} if job.plan.task.baseline_learns else {}


def label_flags(job: Job) -> list[str]:
    """The flag with all labels, where the experiment's text has a list of them."""
    return ["--labels", json.dumps(job.plan.text.labels, ensure_ascii=False)] if job.plan.task.named else []


def finetuning_text(job: Job, part: str) -> list[str]:
    """The tables that a head learns from (`train`), or that early stopping goes by (`dev`); that in the text's language comes first."""
    return [labelled_file(job, each, ".tsv") for each in (part, *_more_parts(job, part))]


def _more_parts(job: Job, part: str) -> list[str]:
    if part == "train":
        return crosslingual.translated_parts(job.plan, job.phase("finetune"))
    return crosslingual.selecting_parts(job.plan)


def finetuning_settings(job: Job) -> str:
    """What the finetuning of a head is given, as JSON: languages, epochs, labels, and its settings, with those of a point of the grid."""
    experiment, text, task, point = job.plan.settings, job.plan.text, job.plan.task, job.point or {}
    chosen = named(head_settings(experiment, job.phase("finetune"), point))
    languages = {f"more_{part}": [text.language_of(each) for each in _more_parts(job, part)] for part in ("train", "dev")}
    epochs = point.get("epochs", job.phase("finetune").epochs)
    data = {"language": text.language, "epochs": epochs, **{key: codes for key, codes in languages.items() if codes}}
    if task.named:
        data[task.named] = text.labels
    # not named where nothing is switched, but of heads that could be before, so that their models are not trained anew
    if (switching := _switching(job)) or "switch_while_finetuning" in chosen:
        data["codeswitch"] = dataclasses.asdict(switching) if switching else None
    if (phase := job.phase("finetune")).untrained:
        data |= {"epochs": 1, "shots": phase.shots, "verbaliser": dataclasses.asdict(experiment.verbaliser)}
    return json.dumps({**data, experiment.head: chosen}, ensure_ascii=False)
