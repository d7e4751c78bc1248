"""plan: what an experiment means, found once from the configuration (`Plan`) and handed down to all that ask.

An experiment is a task on a text with a backbone. An arm is a way to train, a chain of phases: any number that restore noised text, then
the task itself. What a task is stands in `entry`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from workflow_scripts import registry
from workflow_scripts.config import paths
from workflow_scripts.config.configuration import Config
from workflow_scripts.config.experiments import Experiment, task_name
from workflow_scripts.config.phases import Phase


@dataclass(frozen=True, eq=False)
class Plan:
    """An experiment, and what the configuration says of it; each is found when it is first asked for.

    A configuration that is still to be checked may name what it does not define: such an arm has no phases, such a text is None, and a
    model of an experiment that is not defined has no backbone.
    """

    config: Config
    name: str

    @cached_property
    def settings(self) -> Any:
        """Its block; the class is that of its task."""
        return self.config.experiments[self.name]

    @cached_property
    def task(self) -> Any:
        """The entry of its task."""
        return registry.entry("task", task_name(self.settings))

    @property
    def where(self) -> str:
        """The key of its block."""
        return f"experiments.{self.name}"

    @property
    def folder(self) -> str:
        """The folder of its runs."""
        return paths.experiment_folder(self.name)

    @property
    def corpus(self) -> str:
        """The name of its text."""
        return self.settings.corpus

    @cached_property
    def text(self) -> Any:
        """The block of its text, in the section that its task reads."""
        return getattr(self.config, self.task.text).get(self.corpus)

    @cached_property
    def languages(self) -> list[str]:
        """The languages of its texts, see `Task`."""
        return self.task.languages(self)

    @cached_property
    def trained_languages(self) -> list[str]:
        """The languages that it is trained in, see `Task`."""
        return self.task.trained_languages(self)

    def other(self, name: str) -> Plan:
        """Another experiment of the same configuration."""
        return Plan(self.config, name)

    # arms and phases

    @cached_property
    def trains(self) -> bool:
        """Whether it trains its arms; one that does not names `models` that are there, or that others train."""
        return isinstance(self.settings, Experiment)

    @cached_property
    def arms(self) -> list[str]:
        """The arms that it compares: those of the run that it takes, or where nothing is trained the models that it names."""
        if not self.trains:
            return list(self.settings.models)
        return [arm for arm in self.config.run.arms if self.settings.arms is None or arm in self.settings.arms]

    @cached_property
    def seeds(self) -> list[int]:
        """The seeds that its arms are measured with, of the run's.

        Where nothing is trained they are those that all its models were trained with; a backbone has no others than the first.
        """
        own, of_run = self.settings, self.config.run.seeds
        if self.trains:
            return own.seeds if isinstance(own.seeds, list) else of_run[: own.seeds]
        trained = [self.other(model.experiment).seeds for model in own.models.values() if not model.backbone]
        return [seed for seed in of_run if all(seed in seeds for seeds in trained)] if trained else of_run[:1]

    def phases_of(self, arm: str) -> list[Phase]:
        """The phases of one of its arms; none where nothing is trained."""
        return self.config.arms.get(arm, []) if self.trains else []

    @cached_property
    def phases(self) -> list[tuple[str, Phase]]:
        """The phases of all its arms, each with the arm's name."""
        return self.phases_of_arms(self.arms)

    def phases_of_arms(self, arms: list[str]) -> list[tuple[str, Phase]]:
        """The phases of some arms, each with the arm's name."""
        return [(arm, phase) for arm in arms for phase in self.phases_of(arm)]

    def encoder_writes(self, arm: str) -> bool:
        """Whether an arm makes a generator of an encoder, which needs no decoder but the head that guesses masked pieces."""
        return any(not phase.writes.decoder for phase in self.phases_of(arm))

    # models, lexicons and text

    def backbone_of(self, arm: str) -> str:
        """The backbone that an arm starts from; where nothing is trained the model itself, or what its arm started from."""
        if not self.trains:
            model = self.settings.models[arm]
            if model.experiment not in self.config.experiments:
                return model.backbone or ""
            return model.backbone or self.other(model.experiment).backbone_of(model.arm)
        return next((phase.backbone for phase in self.phases_of(arm) if phase.backbone), self.settings.backbone)

    @cached_property
    def backbones(self) -> list[str]:
        """The backbones that it starts from: its own, and those of its arms or of the models that it names, each once."""
        own = [self.settings.backbone] if self.trains else []
        return list(dict.fromkeys([*own, *map(self.backbone_of, self.arms)]))

    @cached_property
    def lexicons(self) -> list[str]:
        """Its lexicon, and those that phases of its arms name instead."""
        own = getattr(self.settings, "lexicon", None)
        return [name for name in dict.fromkeys([own, *(phase.lexicon for _, phase in self.phases)]) if name]

    def lexicon_corpus(self, lexicon: str) -> str:
        """The corpus that one of its lexicons is learnt from."""
        return self.config.lexicons[lexicon].corpus or self.corpus

    @property
    def corpora_learnt(self) -> list[str]:
        """All texts that its arms learn from: its own, those that are learnt together with it, and those of its phases."""
        return [self.corpus, *getattr(self.settings, "together_with", ()), *self.corpora_read]

    @cached_property
    def corpora_read(self) -> list[str]:
        """The corpora that phases of its arms read besides its own."""
        named = (phase.text for _, phase in self.phases)
        return list(dict.fromkeys(text for text in named if text and text != self.corpus))


def plans_of_run(config: Config) -> list[Plan]:
    """The run's experiments, of those that are defined."""
    return [Plan(config, name) for name in config.run.experiments if name in config.experiments]
