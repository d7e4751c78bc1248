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
from workflow_scripts.training.generator import AUTOREGRESSIVE, Generator
from workflow_scripts.training.objective import Objective


@dataclass
class Phase:
    """One phase of an arm."""

    data: Annotated[str, Named("noise", "objective", more=("task",))]
    """What the phase trains on. A noise: the model restores noised text. An objective: the model learns text as a backbone does. `task`:
    the task itself."""
    updates: int | None = None
    """Number of weight updates."""
    epochs: int | None = None
    """Number of passes over all examples, instead of updates. Only for the task phase of tasks that count epochs."""
    translations: bool = False
    """Whether the task phase also learns from the `translations` of labelled text (translate-train-all)."""
    start: Literal["previous", "scratch"] = "previous"
    """Weights at the start. `previous`: those of the previous phase or the backbone. `scratch`: random weights in the backbone's shape."""
    lexicon: str | None = None
    """Name of the lexicon that switches words; by default the experiment's."""
    noise: dict[str, Any] = field(default_factory=dict)
    """Settings of the noise, if it has any."""
    text: str | None = None
    """Name of the corpus whose training text a phase before the task reads, in the experiment's languages. By default the experiment's
    own."""
    objective: dict[str, Any] = field(default_factory=dict)
    """Settings of the objective. For built-in objectives, the settings that a backbone has for them (`direction`, `masking` and so on)."""
    training: dict[str, Any] = field(default_factory=dict)
    """Training settings of this phase that differ from the experiment's. Where the task phase finetunes a head: `adapter`,
    `gradient_checkpointing`, `learning_rate`, `dropout`, `attention_dropout`, `weight_decay` and `max_grad_norm` of the head's."""
    shots: Natural | None = None
    """For a decoder that is not trained: number of training pairs that the prompt shows before each source, drawn by the seed. The task
    phase is the arm's only phase. An arm without a phase (`prompted: []`) has 0."""
    switch: Share | None = None
    """In the task phase: share of words that the lexicon switches, drawn anew in each epoch; by default none. Span lengths follow the
    experiment's `codeswitch`. For translation the source is switched, as in mRASP's random aligned substitution. For labelled text the
    text itself is switched, as in CoSDA-ML (Qin et al. 2020)."""
    targets_from: str | None = None
    """In the task phase of translation and summarisation: name of another arm. Its model of the same seed writes the
    targets of the training pairs anew, from the sources (distillation on sequences, Kim and Rush 2016). The dev set keeps its own."""
    backbone: str | None = None
    """In an arm's first phase: name of the backbone that the arm starts from; by default the experiment's."""
    generator: Annotated[str, Named("generator")] = AUTOREGRESSIVE
    """How the model writes in the task phase. `sga`: non-autoregressively, by prompts of a frozen encoder. `ctc`: non-autoregressively,
    with all weights of an encoder trained."""
    sga: dict[str, Any] = field(default_factory=dict)
    """Settings of `sga` and `ctc` in this phase that differ from the experiment's."""
    generator_settings: dict[str, Any] = field(default_factory=dict)
    """Settings of a plugin's generator, if it has any."""

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
