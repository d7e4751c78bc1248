"""phases: a phase of an arm, as the configuration says it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal

from workflow_scripts import registry
from workflow_scripts.entry_names import Named
from workflow_scripts.noise.entry import Noise
from workflow_scripts.number_types import Natural, Share
from workflow_scripts.training.generator import USUAL, Generator
from workflow_scripts.training.objective import Objective


@dataclass
class Phase:
    """One phase of an arm."""

    data: Annotated[str, Named("noise", "objective", more=("task",))]
    """What is trained on: text with a noise of this name, which the model restores; text by the objective of this name, as backbones learn;
    or the task itself."""
    updates: int | None = None
    """Updates of the weights."""
    epochs: int | None = None
    """Instead of updates, for the task phase of a task that counts epochs: how often all examples are seen."""
    translations: bool = False
    """For the task phase of a task whose text has labels: learn from the text's `translations` as well (translate-train-all)."""
    start: Literal["previous", "scratch"] = "previous"
    """`previous`: the phase before, or the backbone. `scratch`: random weights in the backbone's shape."""
    lexicon: str | None = None
    """Name of the lexicon that switches the words; the experiment's if none is named."""
    noise: dict[str, Any] = field(default_factory=dict)
    """Settings of the noise's own, of noises that have some."""
    text: str | None = None
    """Before the task: name of the corpus whose training text is read, in the experiment's languages; the experiment's own by default."""
    objective: dict[str, Any] = field(default_factory=dict)
    """Settings of the objective: of our objectives those that a backbone's block has for it (`direction`, `masking`, …)."""
    training: dict[str, Any] = field(default_factory=dict)
    """Training settings that differ from the experiment's in this phase."""
    shots: Natural | None = None
    """In the task phase of an arm that trains nothing: how many pairs of the training text stand before each source that a decoder is
    asked for, drawn by the seed. The arm is this phase alone; an arm without a phase (`prompted: []`) is one with 0."""
    switch: Share | None = None
    """In the task phase: the share of words that the lexicon switches, anew in each epoch; spans are those of the experiment's
    `codeswitch`. Of a translation the source's, as mRASP's random aligned substitution does; of a text with labels its own, as CoSDA-ML
    does (Qin et al. 2020). None are by default."""
    backbone: str | None = None
    """In an arm's first phase: name of the backbone that the arm starts from; the experiment's if none is named."""
    generator: Annotated[str, Named("generator")] = USUAL
    """In the task phase, how text is written. `sga`: at once, by the prompts of a frozen encoder. `ctc`: at once, with all weights of an
    encoder trained."""
    sga: dict[str, Any] = field(default_factory=dict)
    """Settings of `sga` and `ctc` that differ from the experiment's in this phase."""
    generator_settings: dict[str, Any] = field(default_factory=dict)
    """Settings of another generator's own, of those that have some."""

    place: ClassVar[tuple[int, int]] = (0, 1)
    """Its number in its arm, from 0, and how many phases of the arm come before the task; `placed` sets both."""

    @property
    def name(self) -> str:
        """The phase's folder: `finetune`, `pretext` where it is the only one before the task, else with its number, as `1-codeswitch`."""
        if self.bridge is None:
            return "finetune"
        number, before = self.place
        return "pretext" if before <= 1 else f"{number + 1}-{self.data}"

    @property
    def bridge(self) -> Noise | Objective | None:
        """The entry of what is learnt between the model and its task, a noise or an objective; None in the task phase."""
        return self.restores or self.learns

    @property
    def restores(self) -> Noise | None:
        """The entry of the noise of the text that is restored, if any is."""
        return registry.entries("noise").get(self.data)

    @property
    def learns(self) -> Objective | None:
        """The entry of the objective that text is learnt by, if it is."""
        return registry.entries("objective").get(self.data)

    @property
    def writes(self) -> Generator:
        """The entry of the generator."""
        return registry.entry("generator", self.generator)

    @property
    def untrained(self) -> bool:
        """Whether it trains nothing: the model is asked as it is."""
        return self.shots is not None

    @property
    def noised(self) -> str:
        """The folder of the text that is restored: noise, lexicon and text that the phase names, and a sign for the noise's settings."""
        settings = json.dumps(self.noise, sort_keys=True, ensure_ascii=False)
        sign = hashlib.sha256(settings.encode()).hexdigest()[:8] if self.noise else ""
        return ".".join(part for part in (self.data, self.lexicon, sign) if part) + (f"@{self.text}" if self.text else "")


def placed(arms: dict[str, list[Phase]]) -> None:
    """Let each phase of the arms know its place, from which its name follows. An arm without phases asks the model as it is."""
    for phases in arms.values():
        if not phases:
            phases.append(Phase(data="task", shots=0))
        before = sum(phase.data != "task" for phase in phases)
        for number, phase in enumerate(phases):
            phase.place = number, before  # type: ignore[misc]
