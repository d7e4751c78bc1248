"""plan: what experiments and backbones mean, found once from the configuration (`Plans`) and handed down to all that ask.

An experiment (`Plan`) is a task on a text with a backbone. An arm is a way to train, a chain of phases: any number that restore noised
text, then the task itself. What a task is stands in `entry`. A backbone (`BackbonePlan`) may be made from another one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Generic, TypeVar

from workflow_scripts import registry
from workflow_scripts.config import paths
from workflow_scripts.config.configuration import Config
from workflow_scripts.config.experiments import AnyExperiment, Experiment, NamedModel, task_name
from workflow_scripts.config.phases import Phase
from workflow_scripts.models.family import CONVERTED, DEFAULT_FAMILY, Family
from workflow_scripts.tasks.entry import Task
from workflow_scripts.text.aligned import Aligned
from workflow_scripts.text.corpus import Corpus
from workflow_scripts.text.labelled import Labelled
from workflow_scripts.training.backbone import Backbone

Settings = TypeVar("Settings", bound=AnyExperiment, covariant=True)
Text = TypeVar("Text", bound=Corpus | Labelled | Aligned, covariant=True)


@dataclass(frozen=True, eq=False)
class Plans:
    """All that a configuration means; each is found when it is first asked for.

    A configuration that is still to be checked may name what it does not define. Such an arm has no phases, such a text is None, and such a
    backbone is made from nothing.
    """

    config: Config

    @cached_property
    def experiments(self) -> dict[str, Plan]:
        """The experiments that are defined, of the run or not, by name."""
        return {name: Plan(self, name) for name in self.config.experiments}

    @cached_property
    def of_run(self) -> list[Plan]:
        """The run's experiments, of those that are defined."""
        return [self.experiments[name] for name in self.config.run.experiments if name in self.experiments]

    @cached_property
    def needed(self) -> list[Plan]:
        """The run's experiments, and those whose arms' models are backbones of theirs or of analyses, or translate text; the latter only
        train what is needed."""
        waiting = [*(backbone for plan in self.of_run for backbone in plan.backbones), *self.analysed, *self.translators]
        models = [link.settings.arm for own in waiting for link in own.chain]
        more = [self.experiments[model.experiment] for model in models if model and model.experiment in self.experiments]
        return list(dict.fromkeys([*self.of_run, *more]))

    @cached_property
    def backbones(self) -> dict[str, BackbonePlan]:
        """The backbones that are defined, by name."""
        return {name: BackbonePlan(self, name) for name in self.config.backbones}

    def backbone(self, name: str) -> BackbonePlan:
        """A backbone, defined or not."""
        return self.backbones.get(name) or BackbonePlan(self, name)

    @cached_property
    def backbones_used(self) -> list[BackbonePlan]:
        """The backbones that the run's experiments, analyses and translated texts need, with those that they are made from."""
        named = [*(backbone for plan in self.of_run for backbone in plan.backbones), *self.analysed, *self.translators]
        return list(dict.fromkeys(link for own in named for link in own.chain))

    @cached_property
    def analysed(self) -> list[BackbonePlan]:
        """The backbones that the run's analyses look into."""
        chosen = [self.config.analyses[name] for name in self.config.run.analyses if name in self.config.analyses]
        return [self.backbones[model] for analysis in chosen for model in analysis.models if model in self.backbones]

    @cached_property
    def translators(self) -> dict[BackbonePlan, list[str]]:
        """Backbones that translate training text with labels → the languages that they need for it."""
        needed: dict[BackbonePlan, list[str]] = {}
        for corpus in dict.fromkeys(plan.corpus for plan in self.of_run):
            block = self.config.labelled.get(corpus)
            for name, source in block.translations.items() if block else ():
                if block and (backbone := self.backbones.get(source.by.get("backbone", ""))):
                    needed.setdefault(backbone, []).extend([block.language, block.language_of(f"translated/{name}")])
        return needed


@dataclass(frozen=True)
class BackbonePlan:
    """A backbone, and what the configuration says of it; each is found when it is first asked for."""

    plans: Plans = field(repr=False)
    name: str

    @property
    def settings(self) -> Backbone:
        """Its block."""
        return self.plans.config.backbones[self.name]

    @property
    def where(self) -> str:
        """The key of its block."""
        return f"backbones.{self.name}"

    @property
    def where_made(self) -> str:
        """The key of the settings by which it is made here."""
        return f"{self.where}.{self.settings.kind}"

    @property
    def folder(self) -> str:
        """The folder of its model and its report."""
        return paths.backbone_folder(self.name)

    @property
    def made_of(self) -> BackbonePlan | None:
        """The backbone that it is made from, if any: of an arm's model the one that the arm starts from."""
        block = self.settings
        if block.arm and (trained := self.plans.experiments.get(block.arm.experiment)) and trained.trains:
            return trained.backbone_of(block.arm.arm)
        return self.plans.backbone(block.from_) if block.kind in ("continued", "converted") and block.from_ else None

    @cached_property
    def chain(self) -> list[BackbonePlan]:
        """Itself and all that it is made from, back to the first; up to one that is not defined, or would come twice."""
        chain: list[BackbonePlan] = []
        link: BackbonePlan | None = self
        while link and link.name in self.plans.backbones and link not in chain:
            chain.append(link)
            link = link.made_of
        return chain

    @property
    def origin(self) -> Backbone:
        """The block of the first of its chain, which has its shape and vocabulary."""
        return self.chain[-1].settings

    @cached_property
    def family(self) -> Family | None:
        """The family of its models, where the configuration alone tells."""
        for block in (link.settings for link in self.chain):
            if block.kind == "converted":
                return registry.entry("family", CONVERTED[block.to]) if block.to in CONVERTED else None
            if block.kind == "small":
                return registry.entry("family", block.family or DEFAULT_FAMILY)
        return None

    @cached_property
    def pretrained_in(self) -> list[str]:
        """The languages of the text that it is pretrained on here, of its bitext as well; none where it is loaded."""
        block, corpora = self.settings.pretraining, self.plans.config.corpora
        pairs = [corpora[name].languages for name in (block.bitext if block else ()) if name in corpora]
        return list(dict.fromkeys([*(block.text if block else ()), *(code for pair in pairs for code in pair)]))


@dataclass(frozen=True, eq=False)
class Plan(Generic[Settings, Text]):
    """An experiment, and what the configuration says of it; each is found when it is first asked for.

    A function for one task says which block and which text that has (`translation.TranslationPlan`); `Plan` alone is that of any task.
    """

    plans: Plans = field(repr=False)
    name: str

    @property
    def config(self) -> Config:
        """The whole configuration."""
        return self.plans.config

    @cached_property
    def settings(self) -> Settings:
        """Its block; the class is that of its task."""
        return self.config.experiments[self.name]

    @cached_property
    def task(self) -> Task[Plan]:
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
    def text(self) -> Text:
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
        return self.plans.experiments[name]

    # arms and phases

    @cached_property
    def trains(self) -> bool:
        """Whether it trains its arms; one that does not names `models` that are there, or that others train."""
        return isinstance(self.settings, Experiment)

    @cached_property
    def arms(self) -> list[str]:
        """The arms that it compares: those of the run that it takes, or where nothing is trained the models that it names."""
        if not isinstance(own := self.settings, Experiment):
            return list(self.models)
        return [arm for arm in self.config.run.arms if own.arms is None or arm in own.arms]

    @property
    def models(self) -> dict[str, NamedModel]:
        """Where nothing is trained: the models that it looks into, by the names that they have there."""
        return getattr(self.settings, "models", {})

    @cached_property
    def seeds(self) -> list[int]:
        """The seeds that its arms are measured with, of the run's.

        Where nothing is trained they are those that all its models were trained with; a backbone has no others than the first.
        """
        own, of_run = self.settings, self.config.run.seeds
        if isinstance(own, Experiment):
            return own.seeds if isinstance(own.seeds, list) else of_run[: own.seeds]
        trained = [self.other(model.experiment).seeds for model in self.models.values() if model.experiment and not model.backbone]
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

    @cached_property
    def phases_learnt(self) -> list[tuple[str, Phase]]:
        """The phases of all its arms, and of other arms whose models are backbones of the run."""
        models = [backbone.settings.arm for backbone in self.plans.backbones_used]
        others = [model.arm for model in models if model and model.experiment == self.name]
        return self.phases_of_arms(list(dict.fromkeys([*self.arms, *others])))

    def encoder_writes(self, arm: str) -> bool:
        """Whether an arm makes a generator of an encoder, which needs no decoder but the head that guesses masked pieces."""
        return any(not phase.writes.decoder for phase in self.phases_of(arm))

    # models, lexicons and text

    def backbone_of(self, arm: str) -> BackbonePlan:
        """The backbone that an arm starts from; where nothing is trained the model itself, or what its arm started from."""
        if isinstance(own := self.settings, Experiment):
            return self.plans.backbone(next((phase.backbone for phase in self.phases_of(arm) if phase.backbone), own.backbone))
        model = self.models[arm]
        trained = None if model.backbone else self.plans.experiments.get(model.experiment or "")
        return trained.backbone_of(model.arm or "") if trained and trained.trains else self.plans.backbone(model.backbone or "")

    @cached_property
    def backbones(self) -> list[BackbonePlan]:
        """The backbones that it starts from: its own, and those of its arms or of the models that it names, each once."""
        own = [self.plans.backbone(self.settings.backbone)] if isinstance(self.settings, Experiment) else []
        return list(dict.fromkeys([*own, *map(self.backbone_of, self.arms)]))

    @cached_property
    def lexicons(self) -> list[str]:
        """Its lexicon, and those that phases of its arms name instead."""
        own = getattr(self.settings, "lexicon", None)
        return [name for name in dict.fromkeys([own, *(phase.lexicon for _, phase in self.phases_learnt)]) if name]

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
        named = (phase.text for _, phase in self.phases_learnt)
        return list(dict.fromkeys(text for text in named if text and text != self.corpus))
