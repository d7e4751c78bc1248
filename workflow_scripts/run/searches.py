"""searches: what the jobs of retrieval read, and their flags."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from workflow_scripts.config import paths
from workflow_scripts.run.jobs import Job, as_json
from workflow_scripts.tasks import retrieval


def source(job: Job) -> Any:
    """Where a part of a text comes from."""
    part, _, name = job.w.aligned_part.partition("/")
    return getattr(job.config.aligned[job.w.aligned], part)[name].at_hand()


def files(job: Job) -> list[str]:
    """The files of a part of a text."""
    return source(job).paths()


def settings(job: Job) -> str:
    """The block of a part of a text, with the embedded files where they really are."""
    return as_json(source(job))


def text_files(job: Job, suffix: str, part: str = "test") -> list[str]:
    """A kind of file (`paths.aligned_file`) of each test set of the experiment, or (`dev`) of the dev text of each."""
    return [paths.aligned_file(job.plan.corpus, f"{part}/{name}", suffix) for name in job.plan.text.test]


def dev(job: Job) -> dict[str, list[str]]:
    """The dev text of each test set from which pairs are mined."""
    kinds = {"dev_sources": "source", "dev_targets": "target", "dev_gold": "gold"}
    return {name: text_files(job, kind, "dev") for name, kind in kinds.items()} if job.plan.text.mines else {}


def languages(job: Job) -> list[str]:
    """The languages of all test sets of the experiment, both sides."""
    return ["-".join(one.languages) for one in job.plan.text.test.values()]


def model(job: Job) -> str:
    """The model whose sentences are looked up in each other."""
    return retrieval.model_folder(job.plan, job.w.arm, job.w.seed)


def model_settings(job: Job) -> str:
    """The settings for a model, as JSON."""
    chosen = dataclasses.asdict(retrieval.settings_of(job.plan.settings, job.w.arm))
    if not chosen["prefix"]:
        del chosen["prefix"]  # what was found before there were prefixes is not looked up anew
    return json.dumps(chosen, ensure_ascii=False)


def metric(job: Job) -> str:
    """The score that the models are compared by."""
    return retrieval.measure(job.plan.settings, job.plan.text).metric


def predictions(job: Job) -> list[str]:
    """What each model found with each seed; a backbone with the first one, whichever is asked for."""
    runs = []
    for arm in job.plan.arms:
        measured = retrieval.searched_seeds(job.plan, arm)
        runs += [paths.run_folder(job.plan.name, arm, seed if seed in measured else measured[0]) for seed in job.plan.seeds]
    return [f"{run}/predictions" for run in runs]
