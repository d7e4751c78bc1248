"""experiment: what all tasks share: phases that are trained, how settings are put together, and what is wrong with an experiment."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, fields
from typing import Any, Literal, NamedTuple

from pydantic import TypeAdapter, ValidationError

from workflow_scripts import registry
from workflow_scripts.config.configuration import LexiconStages
from workflow_scripts.config.experiments import Experiment
from workflow_scripts.config.phases import Phase
from workflow_scripts.names import undefined
from workflow_scripts.tasks.plan import BackbonePlan, Plan
from workflow_scripts.training.generator import AUTOREGRESSIVE
from workflow_scripts.training.settings import SHARDED_TOKENS, Training

BACKBONE = "backbone"
"""What distances call the model before any training, in the place of an arm."""


class Trained(NamedTuple):
    """One phase of training as preflight sees it: what its memory and disk follow from."""

    rule: str
    """The rule that trains it."""
    where: str
    """The key of the configuration that its settings stand under."""
    backbone: BackbonePlan
    batch_tokens: int
    """Tokens of an update, padding included."""
    micro_batch_tokens: int | Literal["auto"] | None
    """Tokens that go through a device at once; all of an update where nothing is set. `auto`: as many as fit."""
    lowers_memory: str
    """What to set, and to what, where memory is short."""
    precision: str
    device: str
    chunked_loss: bool
    """Whether the scores of all pieces of the vocabulary are never held at once."""
    checkpoints: int
    """How many are on the disk while it is trained."""
    weights: int
    """Of how many the weights stay when it has ended."""
    times: float
    """How often it is trained: for each seed, and each point of a grid."""
    adapter: dict[str, Any] | None = None
    """The adapter whose weights alone are trained, with its settings."""
    sharded: bool = False
    """Whether each of several GPUs has a part of the weights."""
    computes_again: bool = False
    """Whether a layer keeps what goes into it alone."""
    head: str = ""
    """The head (`Family.heads`) that is finetuned; empty where the model writes or guesses text."""
    head_settings: Any = None
    """Settings of the head."""
    labels: int = 0
    """How many labels the head has; 0 where it has none of a list."""


def of_training(rule: str, where: str, backbone: BackbonePlan, training: Training, times: float) -> Trained:
    """A phase that is trained by `Training` settings."""
    micro = training.micro_batch_tokens
    together = micro if isinstance(micro, int) else training.batch_tokens
    if training.sharded and micro == "auto":
        together = min(together, SHARDED_TOKENS)
    kept = {"last": 2, "best": 3, "average": max(2, training.averaged), "average_best": training.averaged + 2}[training.checkpoint]
    left = {"last": 1, "best": 2, "average": training.averaged, "average_best": training.averaged + 1}[training.checkpoint]
    looks = 1 + training.updates // training.evaluate_every
    return Trained(
        rule=rule,
        where=where,
        backbone=backbone,
        batch_tokens=training.batch_tokens,
        micro_batch_tokens=micro,
        lowers_memory=f"{where}.micro_batch_tokens to less than {together}",
        precision=training.precision,
        device=training.device,
        chunked_loss=training.loss != "plain",
        checkpoints=min(kept, looks),
        weights=min(left, looks),
        times=times,
        adapter=training.adapter,
        sharded=training.sharded,
        computes_again=training.gradient_checkpointing,
    )


# ---------------------------------------------------------------------------------------------
# what an experiment means


def needs_decoder(phase: Phase) -> bool:
    """Whether a phase before the task needs a model that writes: to restore text, or by its objective.

    Of text that is read as it stands, an encoder guesses masked words.
    """
    return bool((phase.restores and not phase.restores.as_text) or (phase.learns and phase.learns.decoder is not False))


def needs_lexicon(phase: Phase) -> bool:
    """Whether a phase switches words by a lexicon: by its noise, or while it learns the task."""
    return bool(phase.restores.lexicon) if phase.restores else phase.switch is not None and not phase.bridge


def given_dictionary(lexicon: LexiconStages, code: str, other: str) -> str | None:
    """The key of the dictionary of two languages, whichever comes first in it."""
    return next((pair for pair in (f"{code}-{other}", f"{other}-{code}") if pair in lexicon.dictionary), None)


def grid_points(experiment: Any) -> list[dict[str, Any]]:
    """The combinations of the grid's values; none without a grid."""
    grid = experiment.grid
    return [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())] if grid else []


def grid_points_of(plan: Plan, arm: str) -> list[dict[str, Any]]:
    """The points of the grid that an arm chooses from: none of an arm that trains nothing."""
    return [] if plan.phases_of(arm)[-1].untrained else grid_points(plan.settings)


def phase_training(experiment: Experiment, phase: Phase, point: dict[str, Any] | None = None) -> Training:
    """The training settings of one phase: the experiment's, those of a point of its grid over them, the phase's over both.

    This is the only place where they are put together: which learning rate a phase gets is decided here.
    """
    # where a head is finetuned, the grid is of its settings
    chosen = {} if experiment.head else point or {}
    given = {**asdict(experiment.training), **chosen}
    if phase.data != "task":
        # it reads all of its text, and has no dev score: what changes nothing of it must not train it anew
        given = {key: value for key, value in given.items() if key not in ("pairs", "bleu_sentences", "choose_by")}
    merged = {**given, **phase.training, **({} if phase.untrained else {"updates": phase.updates})}
    return checker(Training).validate_python(merged)


def head_settings(experiment: Any, phase: Phase, point: dict[str, Any] | None = None) -> Any:
    """The settings of an experiment's head, those of a point of its grid over them, the `training` of an arm's task phase over both.

    The epochs of a point stand beside them.
    """
    block = getattr(experiment, experiment.head)
    chosen = {key: value for key, value in (point or {}).items() if key != "epochs"}
    # makes a number of 1e-5, which is a string in YAML
    return checker(block.__class__).validate_python({**asdict(block), **chosen, **phase.training})


def generator_settings(experiment: Any, phase: Phase) -> Any:
    """The settings of a phase's generator: the experiment's, if it has any, and those of the phase over them; None where it has none."""
    entry = phase.writes
    if entry.settings is None:
        return None
    shared = getattr(experiment, entry.key, None)
    return checker(entry.settings).validate_python({**(asdict(shared) if shared else {}), **getattr(phase, entry.key)})


@functools.cache
def checker(settings: type) -> TypeAdapter[Any]:
    """What checks settings of a class, and makes an instance of them; it takes a while to build."""
    return TypeAdapter(settings)


# ---------------------------------------------------------------------------------------------
# problems of an experiment that do not depend on its task


def adapter_problems(plan: Plan) -> Iterator[str]:
    """Adapters of phases that have none: of random weights, and of what writes at once."""
    experiment = plan.settings
    for arm, phase in plan.phases:
        block = experiment.head if experiment.head and phase.data == "task" else "training"
        chosen = phase.training.get("adapter", getattr(experiment, block, Training()).adapter)
        if chosen and (phase.start == "scratch" or phase.generator != AUTOREGRESSIVE):
            where = f"arms.{arm}.training" if "adapter" in phase.training else f"{plan.where}.{block}"
            what = "random weights" if phase.start == "scratch" else f"generator: {phase.generator}"
            yield (
                f"{where}.adapter: is for models that are there and write piece by piece, not for {what}; set "
                "`training: {adapter: null}` in that phase"
            )


def shared_problems(plan: Plan) -> Iterator[str]:
    """Arms that are not defined, no arm at all, and generators that do not fit."""
    for arm in plan.settings.arms or ():
        yield from undefined(f"{plan.where}.arms", arm, plan.config.arms)
    if not plan.arms:
        yield f"{plan.where}.arms: none of the run's arms, {plan.config.run.arms}, is among them"
    yield from generator_problems(plan)
    yield from adapter_problems(plan)


def published_problems(plan: Plan, arms: Iterable[str], testsets: Iterable[str]) -> Iterator[str]:
    """Published numbers that are of no known arm, or of no known test set."""
    for number in plan.settings.published:
        yield from undefined(f"{plan.where}.published: arm", number.arm, arms)
        if number.testset:
            yield from undefined(f"{plan.where}.published: testset", number.testset, testsets)


def grid_value_problems(where: str, block: str, setting: str, values: list[Any], types: Mapping[str, Any]) -> Iterator[str]:
    """What is wrong with the values that a grid lists for a setting of a `block`; `types` are those of its settings."""
    yield from undefined(f"{where}.{block}", setting, types)
    if not values:
        yield f"{where}.grid.{setting}: is empty"
    for value in values if setting in types else ():
        try:
            TypeAdapter(types[setting]).validate_python(value)
        except ValidationError as error:
            yield f"{where}.{block}.{setting}: {error.errors()[0]['msg'].lower()}, got {value!r}"


def generator_problems(plan: Plan) -> Iterator[str]:
    """Generators and backbones of arms in phases or experiments that have none, and settings that are not theirs."""
    experiment = plan.settings
    for arm in plan.arms:
        phases = plan.phases_of(arm)
        for place, phase in enumerate(phases):
            where = f"arms.{arm}"
            entry = phase.writes
            if phase.backbone and place:
                yield f"{where}.backbone: belongs to the arm's first phase, of what it starts from"
            yield from _settings_problems(where, phase)
            if entry.name == AUTOREGRESSIVE:
                continue
            if entry.decoder and phase.data != "task":
                yield f"{where}.generator: {entry.name} is for the task phase"
            if not entry.decoder and (phase.data != "task" or any(map(needs_decoder, phases))):
                yield f"{where}.generator: {entry.name} is for the task phase of an encoder, before which no text is restored or written"
            if not hasattr(experiment, "decoding"):
                yield f"{where}.generator: {entry.name} writes text; {plan.where}, a {experiment.task}, wants none"
            if entry.frozen and phase.start == "scratch":
                others = [one.name for one in registry.entries("generator").values() if one.key == entry.key and not one.frozen]
                way_out = f"for random weights set generator: {others[0]}" if others else "leave `start` out"
                yield f"{where}.start: generator {entry.name} freezes a pretrained encoder; {way_out}"


def _settings_given(phase: Phase) -> list[str]:
    """The keys under which a phase has settings of generators."""
    keys = dict.fromkeys(one.key for one in registry.entries("generator").values())
    return [key for key in keys if getattr(phase, key, None)]


def _settings_problems(where: str, phase: Phase) -> Iterator[str]:
    """Settings of other generators than the phase's, and settings that it has not."""
    for key in _settings_given(phase):
        takes = [one.name for one in registry.entries("generator").values() if one.key == key and one.settings]
        if phase.generator not in takes:
            yield f"{where}.{key}: is for phases with {'generator: ' if takes else ''}{' or '.join(takes) or 'a generator of a plugin'}"
            continue
        given, kind = getattr(phase, key), phase.writes.settings
        known = [each.name for each in fields(kind)]  # type: ignore[arg-type]
        for each in given:
            yield from undefined(f"{where}.{key}", each, known)
        try:
            checker(kind).validate_python({k: v for k, v in given.items() if k in known})
        except ValidationError as error:
            for problem in error.errors():
                yield f"{where}.{key}.{problem['loc'][0]}: {problem['msg'].lower()}, got {problem['input']!r}"


def backbone_problems(plan: Plan, codes: list[str], lengths: dict[str, int]) -> Iterator[str]:
    """What is wrong with an experiment's backbone for texts in the languages `codes`.

    `lengths` are the longest rows that settings beside `training` allow, by the settings' key.
    """
    own, known = plan.settings.backbone, plan.config.backbones
    yield from undefined(f"{plan.where}.backbone", own, known)
    for arm in plan.arms:
        yield from undefined(f"arms.{arm}.backbone", plan.backbone_of(arm).name, dict.fromkeys([*known, own]))
    for backbone in plan.backbones:
        yield from _problems_with_backbone(plan, backbone, codes, lengths)


def _problems_with_backbone(plan: Plan, backbone: BackbonePlan, codes: list[str], lengths: dict[str, int]) -> Iterator[str]:
    """What is wrong with one of the backbones of an experiment's arms."""
    arms = [arm for arm in plan.arms if plan.backbone_of(arm) == backbone]
    writers = [arm for arm in arms if plan.encoder_writes(arm)]
    if writers and backbone.family and backbone.family.decoder:
        yield f"arms.{writers[0]}.generator: needs an encoder, but {backbone.where} has a decoder; take one of family xlmr"
    for link in backbone.chain:
        if missing := link.settings.lacks:
            yield f"{link.where}: kind {link.settings.kind} needs `{missing}`"
        # a model from elsewhere may go on in some of its languages
        for code in codes if link.settings.made_here else ():
            if code not in link.pretrained_in:
                yield f"{link.where_made}.text: no text for {code!r}, which {plan.where} needs; it has {link.pretrained_in}"
    if backbone.chain and (small := backbone.origin.made_here):
        lengths = {f"{plan.where}.training": plan.settings.training.max_length, **lengths}
        for link in backbone.chain:
            if block := link.settings.pretraining:
                lengths[f"{link.where_made}.training"] = block.training.max_length
        for arm in arms:
            own = [phase.training.get("max_length") for phase in plan.phases_of(arm)]
            lengths[f"arms.{arm}.training"] = max((length for length in own if isinstance(length, int)), default=0)
        for key, longest in lengths.items():
            if longest > small.max_positions:
                yield f"{key}.max_length: {longest} is more than the backbone's {small.max_positions} positions"
        yield from _too_long_for_generators(plan, writers, small.max_positions)


def _too_long_for_generators(plan: Plan, arms: list[str], positions: int) -> Iterator[str]:
    """Rows that a generator cannot align within the backbone's `positions`."""
    for arm, phase in plan.phases_of_arms(arms):
        try:
            longest = phase_training(plan.settings, phase).max_length
            settings = phase.writes.effective(generator_settings(plan.settings, phase))
        except ValidationError:
            continue  # which the checks of the phase report
        room = phase.writes.longest_source(settings, positions) if phase.writes.longest_source else positions
        if room < longest <= positions:
            where = f"arms.{arm}" if "max_length" in phase.training else plan.where
            yield (
                f"arms.{arm}.generator: an alignment is longer than its source; with the backbone's {positions} positions, the "
                f"max_length of {where}.training, {longest}, must be {room} at most"
            )
