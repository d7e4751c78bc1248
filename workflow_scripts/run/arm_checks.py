"""arm_checks: what types cannot tell of arms: chains of phases, their lengths, their settings, and the text that they read."""

from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any

from pydantic import TypeAdapter, ValidationError

from workflow_scripts import registry
from workflow_scripts.config.phases import Phase
from workflow_scripts.names import undefined
from workflow_scripts.run.explanations import explain
from workflow_scripts.stage import InputError, own_settings
from workflow_scripts.tasks.experiment import checker
from workflow_scripts.tasks.plan import Plan, Plans
from workflow_scripts.training.objective import Objective
from workflow_scripts.training.pretraining import objective_block, objective_for
from workflow_scripts.training.pretraining_settings import Pretraining
from workflow_scripts.training.settings import Training


def problems(plans: Plans) -> Iterator[str]:
    """Every line tells of an arm that is no chain, or whose phases have settings that do not fit, and of arms of unlike lengths."""
    for name, phases in plans.config.arms.items():
        yield from _arm_problems(f"arms.{name}", phases)
    if "backbone" in plans.config.arms:
        yield "arms.backbone: is what the report calls the model that arms start from; take another name"
    yield from _kin_problems()
    yield from _unequal_arms(plans)


def _arm_problems(where: str, phases: list[Phase]) -> Iterator[str]:
    """An arm is a chain of phases that ends with its only task phase."""
    if not phases or phases[-1].data != "task" or [p.data for p in phases].count("task") != 1:
        yield f"{where}: an arm ends with its one `data: task` phase; those before it restore noised text, or learn by an objective"
    for phase in phases:
        yield from _settings_problems(where, phase)
        yield from _phase_length_problems(where, phase)
        yield from _phase_training_problems(where, phase)
    if len(phases) > 1 and phases[-1].untrained:
        yield f"{where}.shots: asks a model as it is, and stands alone in its arm; leave the phases before it out, or `shots`"
    for phase in phases[1:]:
        if phase.start == "scratch":
            yield f"{where}.start: {phase.data} would begin anew, without what the phase before it has learnt; leave `start` out"


def _settings_problems(where: str, phase: Phase) -> Iterator[str]:
    """The settings of a noise or an objective must be those that it has, and the task has none of them, and no text of its own."""
    named = {"noise": phase.restores, "objective": phase.learns}
    for key, entry in named.items():
        if (given := getattr(phase, key)) and not entry:
            kinds = {"noise": "that restore noised text", "objective": "that learn by an objective"}
            yield f"{where}.{key}: is for phases {kinds[key]}; {'the task' if phase.data == 'task' else phase.data} has none"
        elif entry and key == "noise":
            yield from own_problems(f"{where}.noise", entry, given)
        elif phase.learns:
            yield from _given_problems(f"{where}.objective", phase.learns, given)
    if phase.text and phase.data == "task":
        yield f"{where}.text: is for phases before the task, which reads the text of its experiment"


def _given_problems(where: str, entry: Objective, given: dict[str, Any]) -> Iterator[str]:
    """What is wrong with the settings that a phase gives its objective."""
    try:
        objective_block(entry, given)
    except InputError as error:
        yield f"{where}: {error}"
        return
    yield from _type_problems(where, entry.settings or Pretraining, given)


def own_problems(where: str, entry: registry.Entry, given: dict[str, Any]) -> Iterator[str]:
    """The settings that an entry has of its own must be those that it has, and have values of the right type."""
    try:
        own_settings(entry, given)
    except InputError as error:
        yield f"{where}: {error}"
        return
    if entry.settings:
        yield from _type_problems(where, entry.settings, given)


def _type_problems(where: str, settings: type, given: dict[str, Any]) -> Iterator[str]:
    """Values of a wrong type."""
    try:
        TypeAdapter(settings).validate_python(given)
    except ValidationError as error:
        yield from (f"{where}.{explain(problem, settings)}" for problem in error.errors())


def _kin_problems() -> Iterator[str]:
    """What a plugin's noise or objective names, as what it is a control of or compared with, must be there."""
    known = {**registry.entries("noise"), **registry.entries("objective")}
    for entry in (*registry.of_plugins("noise"), *registry.of_plugins("objective")):
        for other in filter(None, (entry.control_of, *entry.against)):
            yield from undefined(f"plugins: {type(entry).__name__.lower()} {entry.name}", other, known)


def _phase_length_problems(where: str, phase: Phase) -> Iterator[str]:
    """A phase counts either updates or epochs, and a pretext phase updates."""
    if phase.untrained:
        if phase.updates is not None or phase.epochs is not None or phase.training:
            yield f"{where}.shots: a phase with shots trains nothing; leave updates, epochs and training out, or shots"
        return
    if (phase.updates is None) == (phase.epochs is None):
        yield f"{where}: a phase has either updates or epochs"
    if phase.epochs is not None and phase.data != "task":
        yield f"{where}: a pretext phase counts updates; epochs are for the task phase of tasks with labels"
    for key in ("updates", "epochs"):
        if (count := getattr(phase, key)) is not None and count < 1:
            yield f"{where}: {key} must be at least 1, got {count}"


def _phase_training_problems(where: str, phase: Phase) -> Iterator[str]:
    """The training settings that a phase changes must exist, fit the phase, and have values of the right type."""
    for key in phase.training:
        yield from undefined(f"{where}.training", key, [f.name for f in fields(Training)])
    if "updates" in phase.training:
        yield f"{where}.training.updates: set `updates` of the phase itself instead"
    if phase.training.get("pairs") and phase.data != "task":
        yield f"{where}.training.pairs: is for the task phase; a pretext phase restores all sentences of the corpus"
    try:
        checker(Training).validate_python({k: v for k, v in phase.training.items() if hasattr(Training, k)})
    except ValidationError as error:
        yield from (f"{where}.training.{explain(problem, Training)}" for problem in error.errors())


def _unequal_arms(plans: Plans) -> Iterator[str]:
    """All arms of an experiment must be trained for the same length; each disagreement is reported once."""
    reported: set[str] = set()
    for plan in plans.of_run:
        chains = {arm: plan.phases_of(arm) for arm, _ in plan.phases}
        # what trains nothing is compared with what does as a baseline
        totals = {arm: _length(phases) for arm, phases in chains.items() if not phases[-1].untrained}
        if len(set(totals.values())) > 1 and str(totals) not in reported:
            reported.add(str(totals))
            yield (
                "run.arms: all arms of an experiment need the same number of updates in all (of epochs, where the task counts those), "
                f"or the comparison means nothing: {totals} of {plan.name}"
            )


def _length(phases: list[Phase]) -> str:
    """What must be the same for all arms: the updates of all phases, or the epochs of the last."""
    if phases and phases[-1].epochs is not None:
        return f"{phases[-1].epochs} epochs"
    return f"{sum(phase.updates or 0 for phase in phases)} updates"


# ---------------------------------------------------------------------------------------------
# what phases before the task read


def bridge_problems(plan: Plan) -> Iterator[str]:
    """Every line tells of an objective that does not fit the model or the text, or of a text that a phase cannot read."""
    for arm, phase in plan.phases if plan.text else ():  # a text that is not there is reported with the experiment
        if phase.bridge:
            found = [*_text_problems(plan, arm, phase)]
            yield from found or _objective_problems(plan, arm, phase)


def _text_problems(plan: Plan, arm: str, phase: Phase) -> Iterator[str]:
    """The text of a phase must be a corpus of sentences in languages of the experiment."""
    if not phase.text:
        return
    where, trained = f"arms.{arm}.text", plan.trained_languages
    yield from undefined(where, phase.text, plan.config.corpora)
    if (corpus := plan.config.corpora.get(phase.text)) is None:
        return
    if corpus.documents:
        yield f"{where}: {phase.text!r} has documents; a corpus of sentences is needed"
    # lexicons switch the words of both sides of a parallel text, or those of the language of a text with labels
    wanted = trained if phase.restores else plan.languages
    shared = [code for code in corpus.languages if code in wanted]
    if (phase.restores and {*shared} != {*wanted}) or not shared:
        other = "; to read one of them alone, take an objective such as denoising" if shared else ""
        needed = " and ".join(trained) if phase.restores else f"one of {', '.join(wanted)}"
        yield f"{where}: {phase.text!r} is in {' and '.join(corpus.languages)}; {plan.where} needs {needed}{other}"


def _objective_problems(plan: Plan, arm: str, phase: Phase) -> Iterator[str]:
    """An objective needs its text, in pairs or not, settings that fit the text, and a model of a family that it is for."""
    if not (entry := phase.learns):
        return
    where = f"arms.{arm}"
    corpus = plan.config.corpora.get(phase.text or plan.corpus) if phase.text or plan.task.text == "corpora" else None
    pair = [code for code in corpus.languages if code in plan.languages] if corpus else []
    if entry.reads == "pairs" and len(pair) < 2:
        yield f"{where}: {phase.data} learns from pairs of sentences in two languages of {plan.where}; name a corpus of them (`text`)"
    elif entry.problems:
        yield from entry.problems(f"{where}.objective", *_as_of_a_backbone(phase, entry, pair))
    if family := plan.backbone_of(arm).family:
        try:
            objective_for(phase.data, family)
        except InputError as problem:
            yield f"{where}: {problem}"


def _as_of_a_backbone(phase: Phase, entry: Objective, pair: list[str]) -> tuple[Pretraining, list[tuple[str, str]]]:
    """The block of a backbone that would learn what a phase learns, of pairs or of text in one language, and its pairs of languages."""
    try:
        block = objective_block(entry, phase.objective)
    except InputError:  # it is told where the phase is
        block = Pretraining()
    training = replace(block.training, updates=phase.updates or block.training.updates)
    if len(pair) < 2:
        return replace(block, text={"": "task"}, training=training), []
    return replace(block, bitext=["task"], training=training), [(pair[0], pair[1])]
