"""searches: what the jobs of retrieval read, and what they are told; like `inputs`, which has the other rules'."""

from __future__ import annotations

from typing import Any

from workflow_scripts.config import paths
from workflow_scripts.config.configuration import Config
from workflow_scripts.run.arms import arms, seeds
from workflow_scripts.run.inputs import Wildcards, as_json
from workflow_scripts.tasks import retrieval
from workflow_scripts.text import aligned


def _text(config: Config, w: Wildcards) -> aligned.Aligned:
    return config.aligned[config.experiments[w.experiment].corpus]


def source(config: Config, w: Wildcards) -> Any:
    """Where a part of a text comes from."""
    part, _, name = w.aligned_part.partition("/")
    return getattr(config.aligned[w.aligned], part)[name].at_hand()


def files(config: Config, w: Wildcards) -> list[str]:
    """The files of a part of a text."""
    return source(config, w).paths()


def settings(config: Config, w: Wildcards) -> str:
    """The block of a part of a text, with the embedded files where they really are."""
    return as_json(source(config, w))


def searched(config: Config, w: Wildcards, suffix: str, part: str = "test") -> list[str]:
    """A kind of file (`paths.aligned_file`) of each test set of the experiment, or (`dev`) of the dev text of each."""
    corpus = config.experiments[w.experiment].corpus
    return [paths.aligned_file(corpus, f"{part}/{name}", suffix) for name in _text(config, w).test]


def dev(config: Config, w: Wildcards) -> dict[str, list[str]]:
    """The dev text of each test set from which pairs are mined."""
    kinds = {"dev_sources": "source", "dev_targets": "target", "dev_gold": "gold"}
    return {name: searched(config, w, kind, "dev") for name, kind in kinds.items()} if _text(config, w).mines else {}


def languages(config: Config, w: Wildcards) -> list[str]:
    """The languages of all test sets of the experiment, both sides."""
    return ["-".join(one.languages) for one in _text(config, w).test.values()]


def model(config: Config, w: Wildcards) -> str:
    """The model whose sentences are looked up in each other."""
    return retrieval.model_folder(config, w.experiment, w.arm, w.seed)


def model_settings(config: Config, w: Wildcards) -> str:
    """The settings for a model, as JSON."""
    return as_json(retrieval.settings_of(config.experiments[w.experiment], w.arm))


def metric(config: Config, w: Wildcards) -> str:
    """The score that the models are compared by."""
    return retrieval.measure(config.experiments[w.experiment], _text(config, w)).metric


def found(config: Config, w: Wildcards) -> list[str]:
    """What each model found with each seed; a backbone with the first one, whichever is asked for."""
    runs = []
    for arm in arms(config, w):
        measured = retrieval.searched_seeds(config, w.experiment, arm)
        runs += [paths.run_folder(w.experiment, arm, seed if seed in measured else measured[0]) for seed in seeds(config, w)]
    return [f"{run}/predictions" for run in runs]
