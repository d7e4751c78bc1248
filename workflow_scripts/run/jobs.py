"""jobs: what the wildcards of a job name, found once (`Job`), and what the modules that answer rules have in common.

A rule asks one of them what its jobs read, and for their flags, through `of` (rules/common.smk): `text_inputs`, `lexicon_inputs`,
`backbone_inputs` and `report_inputs`, `arms` and `bridges` for the arms of an experiment, `searches` for retrieval, `analyses` for
analyses, `transfer_comparisons` for models of several experiments. Paths come from `paths`, and what depends on an experiment's task from
the task's entry.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any, Protocol

from workflow_scripts import plugins, registry
from workflow_scripts.config.analyses import Analysis
from workflow_scripts.config.configuration import Config, LexiconStages
from workflow_scripts.config.phases import Phase
from workflow_scripts.evidence.trivial import TRIVIAL
from workflow_scripts.models.decoding import Decoding
from workflow_scripts.models.templates import Templates
from workflow_scripts.names import instead
from workflow_scripts.stage import InputError
from workflow_scripts.tasks.experiment import grid_points
from workflow_scripts.tasks.plan import BackbonePlan, Plan, Plans
from workflow_scripts.text.corpus import Corpus
from workflow_scripts.text.labelled import Labelled


class Wildcards(Protocol):
    """A job's wildcards, as attributes."""

    def __getattr__(self, name: str) -> str: ...

    def items(self) -> Iterable[tuple[str, str]]:
        """Name and value of each."""
        ...


@dataclasses.dataclass(frozen=True, eq=False)
class Job:
    """A job's wildcards, and what they name in the configuration, each found when it is first asked for."""

    plans: Plans
    w: Wildcards

    @property
    def config(self) -> Config:
        """The whole configuration."""
        return self.plans.config

    @property
    def plan(self) -> Plan:
        """The experiment."""
        return self.plans.experiments[self.w.experiment]

    @property
    def arm(self) -> str:
        """The arm, without the number of a point of its grid (`csr.grid0`)."""
        return self.w.arm.partition(".grid")[0]

    @cached_property
    def point(self) -> dict[str, Any] | None:
        """The point of the grid that an arm like `csr.grid0` is trained with; None for an arm itself."""
        number = self.w.arm.partition(".grid")[2]
        return grid_points(self.plan.settings)[int(number)] if number else None

    def phase(self, name: str | None = None) -> Phase:
        """The phase of this name, or of the wildcards', of the arm."""
        return next(phase for phase in self.config.arms[self.arm] if phase.name == (name or self.w.phase))

    @property
    def backbone(self) -> BackbonePlan:
        """The backbone."""
        return self.plans.backbones[self.w.backbone]

    @property
    def lexicon(self) -> LexiconStages:
        """The lexicon's block."""
        return self.config.lexicons[self.w.lexicon]

    @property
    def corpus(self) -> Corpus:
        """The corpus's block."""
        return self.config.corpora[self.w.corpus]

    @property
    def labelled(self) -> Labelled:
        """The block of a text with labels."""
        return self.config.labelled[self.w.labelled]

    @property
    def analysis(self) -> Analysis:
        """The block of an analysis of models."""
        return self.config.analyses[self.w.analysis]


def as_json(block: Any, **changes: Any) -> str:
    """A settings block as one JSON value for a stage's command line."""
    return json.dumps({**dataclasses.asdict(block), **changes}, ensure_ascii=False)


def flags(inputs: Any, *names: str) -> list[str]:
    """`--name path …` for those of the named inputs that a job has."""
    found = [(name, inputs[name]) for name in names if inputs.get(name)]
    return [part for name, files in found for part in (f"--{name.replace('_', '-')}", *([files] if isinstance(files, str) else files))]


def jobs_of(plans: Plans) -> Callable[[Wildcards], Job]:
    """What gives the job of some wildcards: one and the same for all that its rule asks. It raises as `check_names` does."""
    known: dict[frozenset[tuple[str, str]], Job] = {}

    def job_of(wildcards: Wildcards) -> Job:
        names = frozenset(wildcards.items())
        if names not in known:
            check_names(plans.config, wildcards)
            known[names] = Job(plans, wildcards)
        return known[names]

    return job_of


def check_names(config: Config, w: Wildcards) -> None:
    """Raise `InputError` where a file is asked for by a name that the configuration does not define."""
    asked = dict(w.items())
    known: dict[str, Iterable[str]] = {
        "data": config.data,
        "corpus": config.corpora,
        "labelled": config.labelled,
        "aligned": config.aligned,
        "lexicon": config.lexicons,
        "backbone": config.backbones,
        "experiment": config.experiments,
        "analysis": config.analyses,
    }
    if experiment := config.experiments.get(asked.get("experiment", "")):
        known["arm"] = [*getattr(experiment, "models", config.arms), TRIVIAL.partition("/")[0]]
    for wildcard, names in known.items():
        # an arm's name may be followed by the number of a point of its grid
        name = asked.get(wildcard, "").partition(".grid")[0]
        if name and name not in names:
            raise InputError(f"a file of {wildcard} {name!r} is asked for, which is not defined{instead(name, names)}")
    arm = asked.get("arm", "").partition(".grid")[0]
    phases = {
        "phase": [phase.name for phase in config.arms.get(arm, [])],
        "noise": [phase.noised for every in config.arms.values() for phase in every if phase.restores],
    }
    for wildcard, there in phases.items():
        name = asked.get(wildcard, "")
        if name and there and name not in there:
            of = f" of arm {arm!r}" if wildcard == "phase" else ""
            raise InputError(f"a file of {wildcard} {name!r}{of} is asked for, which is not defined{instead(name, dict.fromkeys(there))}")


def writing_plugins(decoding: Decoding, phases: list[Phase]) -> dict[str, list[str]]:
    """The files of the plugins that decode what the last of `phases` has trained; what comes from none reads none."""
    generator = phases[-1].writes if phases else None
    engine = None if generator and generator.write else registry.entry("engine", decoding.engine)
    return plugin_inputs(generator, engine, settings=[decoding.engine_settings, *(each.generator_settings for each in phases[-1:])])


def plugin_inputs(*used: registry.Entry | None, settings: Any = None) -> dict[str, list[str]]:
    """The files of the plugins that these entries come from and that their `settings` name, as an input of a job; what comes from no plugin
    reads none."""
    files = plugins.files_of(*used, settings=settings)
    return {"plugin": files} if files else {}


def templates_of(plan: Plan) -> Templates | None:
    """How an experiment asks a model: by its own templates, and that of its task; None of one that writes no text."""
    own = getattr(plan.settings, "templates", None)
    return own and dataclasses.replace(own, task=own.task or plan.task.template)


def asks_for_labels(plan: Plan) -> bool:
    """Whether an arm of an experiment asks a decoder for labels without training it."""
    return any(phase.untrained for _, phase in plan.phases) and hasattr(plan.settings, "verbaliser")
