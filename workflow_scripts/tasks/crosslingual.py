"""crosslingual: what tasks share that learn in one language and are tested in others. Those with a head count epochs.

Their text is one of `labelled`. There is no parallel text. So given dictionaries, or lexicons that are learnt from other text, switch the
words of a pretext phase, each sentence into one of several languages.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, get_type_hints

from pydantic import Field

from workflow_scripts import registry
from workflow_scripts.config import paths
from workflow_scripts.config.configuration import LexiconStages
from workflow_scripts.config.experiments import Experiment
from workflow_scripts.config.phases import Phase
from workflow_scripts.entry_names import Named
from workflow_scripts.errors import InputError
from workflow_scripts.evidence.average import AVERAGE
from workflow_scripts.names import undefined
from workflow_scripts.tasks.experiment import (
    Trained,
    backbone_problems,
    given_dictionary,
    grid_points_of,
    grid_value_problems,
    head_settings,
    needs_lexicon,
    of_training,
    phase_training,
    published_problems,
    shared_problems,
)
from workflow_scripts.tasks.head_settings import OF_A_PHASE
from workflow_scripts.tasks.plan import BackbonePlan, Plan, Plans
from workflow_scripts.tasks.translation import Translation, learnt_sources
from workflow_scripts.tasks.verbaliser import words_of
from workflow_scripts.text.labelled import Labelled
from workflow_scripts.text.languages import unknown_language
from workflow_scripts.training.choice import Choice


@dataclass(kw_only=True)
class CrossLingual(Experiment):
    """A text in one language, test sets in that and others, and a backbone."""

    lexicon: str | None = None
    """Name of the lexicon for a pretext phase. It comes from given dictionaries (`mapping.mode: dictionary`) or is learnt from a `corpus`
    of its own."""
    into: list[str] | None = None
    """Languages of the replacing words; by default those of the test sets."""
    restore: Literal["texts", "pairs"] = "texts"
    """A row of the pretext phase. `texts`: one text, in which spans of words are switched. `pairs`: both texts of a pair with `</s>`
    between them, as in the published code of XNLI. Single words are switched, each text into another language."""


@dataclass(kw_only=True)
class Finetuned(CrossLingual):
    """What the settings have of tasks for which a head is finetuned: a choice from a grid, and what early stopping goes by."""

    grid: dict[str, list[Any]] = field(default_factory=dict)
    """Lists of values for finetuning settings, including `epochs`. Every arm is finetuned with each combination, and the best on the dev
    set is chosen."""
    choice: Choice = field(default_factory=lambda: Choice(by="dev_score"))
    """What chooses the best combination of a grid."""
    metrics: list[Annotated[str, Named("label_metric")]] = field(default_factory=list)
    """Metrics of plugins that are measured and tested beside the task's own scores."""
    select_on: Literal["source", "all"] = "source"
    """Dev text for early stopping and for the choice from a grid. `source`: that in the language of the training text. `all`: the mean
    over that and all `more_dev`."""


CrossLingualPlan = Plan[CrossLingual, Labelled]
FinetunedPlan = Plan[Finetuned, Labelled]

# ---------------------------------------------------------------------------------------------
# what an experiment means


def languages(plan: CrossLingualPlan) -> list[str]:
    """The languages of the texts, that of the training text first."""
    more = [part for kind in ("translations", "more_dev") for part in paths.more_parts(plan.config, plan.corpus, kind)]
    return list(dict.fromkeys([plan.text.language, *tested_languages(plan), *map(plan.text.language_of, more)]))


def tested_languages(plan: CrossLingualPlan) -> list[str]:
    """The language of each test set."""
    return [plan.text.language_of(f"test/{test}") for test in plan.text.test]


def trained_languages(plan: CrossLingualPlan) -> list[str]:
    """The language of the training text."""
    return [plan.text.language]


def translated_parts(plan: CrossLingualPlan, phase: Phase) -> list[str]:
    """The parts of further training text that a phase learns from."""
    return paths.more_parts(plan.config, plan.corpus, "translations") if phase.translations else []


def all_translated_parts(plan: CrossLingualPlan) -> list[str]:
    """Those of the phases of all arms."""
    return [part for _, phase in plan.phases for part in translated_parts(plan, phase)]


def selecting_parts(plan: FinetunedPlan) -> list[str]:
    """The parts of further dev text that early stopping goes by."""
    return paths.more_parts(plan.config, plan.corpus, "more_dev") if plan.settings.select_on == "all" else []


def switched_into(plan: CrossLingualPlan) -> list[str]:
    """The languages that words are switched into: those of the test sets, unless the experiment names them."""
    into = plan.settings.into
    return [code for code in dict.fromkeys(tested_languages(plan) if into is None else into) if code != plan.text.language]


def given_lexicons(plan: CrossLingualPlan, lexicon: str | None = None) -> dict[tuple[str, str], str]:
    """(lexicon, pair) → its folder, for each language that is switched into; of the experiment's lexicons, or of one."""
    blocks = plan.config.lexicons
    return {
        (used, pair): paths.lexicon_folder(plan.config, blocks[used].corpus or "", used)
        if is_learnt(blocks[used])
        else paths.given_lexicon_folder(plan.corpus, used, pair)
        for used in ([lexicon] if lexicon else plan.lexicons)
        for other in switched_into(plan)
        if (pair := pair_of(plan, used, other))
    }


def is_learnt(lexicon: LexiconStages) -> bool:
    """Whether a lexicon is learnt from a corpus that it names, and not given."""
    return bool(lexicon.corpus) and lexicon.mapping.mode != "dictionary"


def crosslingual_lexicons(plans: Plans) -> list[str]:
    """The lexicons by which the words of the run's texts with labels are switched."""
    used = [name for plan in plans.of_run if plan.corpus in plans.config.labelled for name in plan.lexicons]
    return [name for name in dict.fromkeys(used) if name in plans.config.lexicons]


def pair_of(plan: CrossLingualPlan, lexicon: str, other: str) -> str | None:
    """The name of the text's language and another one, in the lexicon's order, if it has them."""
    block, code = plan.config.lexicons[lexicon], plan.text.language
    if not is_learnt(block):
        return given_dictionary(block, code, other)
    learnt = plan.config.corpora.get(block.corpus or "")
    return "-".join(learnt.languages) if learnt and {code, other} == {*learnt.languages} else None


def lexicon_files(plan: CrossLingualPlan, lexicon: str | None = None) -> list[str]:
    """The files of the given lexicons from the text's language into the others."""
    code = plan.text.language
    folders = given_lexicons(plan, lexicon)
    return [f"{folder}/{code}-{(set(pair.split('-')) - {code}).pop()}.tsv" for (_, pair), folder in folders.items()]


def training_text(plan: CrossLingualPlan) -> list[str]:
    """The sentences of the training text."""
    return [paths.labelled_file(plan.config, plan.corpus, part) for part in dict.fromkeys(["train", *all_translated_parts(plan)])]


def held_out_text(plan: CrossLingualPlan) -> list[str]:
    """The sentences of dev and test sets."""
    config, corpus = plan.config, plan.corpus
    parts = [*paths.labelled_parts(config, corpus)[1:], *paths.more_parts(config, corpus, "more_dev")]
    return [paths.labelled_file(config, corpus, part) for part in parts]


def lexicons(plan: CrossLingualPlan) -> list[str]:
    """Folders of the lexicons that are made of given dictionaries."""
    return list(given_lexicons(plan).values())


def results(plan: FinetunedPlan) -> set[str]:
    """All files that the report reads: predictions, curves, tests of significance, noised text."""
    files = {f"{plan.folder}/significance.json", *(f"{used.folder}/backbone.json" for used in plan.backbones)}
    parts = [*paths.labelled_parts(plan.config, plan.corpus), *all_translated_parts(plan), *selecting_parts(plan)]
    files |= {paths.labelled_file(plan.config, plan.corpus, part, ".json") for part in parts}
    files |= {f"{folder}/lexicon.json" for folder in lexicons(plan)}
    files |= {f"{plan.folder}/{arm}/choice.json" for arm in plan.arms if grid_points_of(plan, arm)}
    for arm, seed in itertools.product(plan.arms, plan.seeds):
        run = paths.run_folder(plan.name, arm, seed)
        files |= {f"{run}/predictions", *(f"{run}/{phase.name}/curve.tsv" for phase in plan.phases_of(arm))}
        files |= {paths.noised_folder(plan.name, phase.noised, seed) for phase in plan.phases_of(arm) if phase.restores}
    return files


def phases(plan: FinetunedPlan, arms: list[str]) -> Iterator[Trained]:
    """Every phase of some of its arms that is trained."""
    experiment, seeds = plan.settings, len(plan.seeds)
    for arm, phase in plan.phases_of_arms(arms):
        points = grid_points_of(plan, arm)
        backbone = plan.backbone_of(arm)
        if phase.bridge:
            training = phase_training(experiment, phase)
            yield of_training("pretext", f"{plan.where}.training", backbone, training, seeds + bool(points))
        for point in () if phase.bridge else (points or [{}]):
            # each point is trained once, then the chosen one with every seed
            times = 1 + seeds / len(points) if points else seeds
            epochs = point.get("epochs", phase.epochs) or 0
            yield _finetuning(plan, backbone, head_settings(experiment, phase, point), epochs, times)


def _finetuning(plan: FinetunedPlan, backbone: BackbonePlan, chosen: Any, epochs: int, times: float) -> Trained:
    where, task = f"{plan.where}.{plan.settings.head}", plan.task
    looks = 1 + epochs * chosen.looks
    return Trained(
        rule="head_finetune",
        where=where,
        backbone=backbone,
        batch_tokens=chosen.batch_size * chosen.max_length,
        micro_batch_tokens=chosen.micro_batch and chosen.micro_batch * chosen.max_length,
        lowers_memory=f"{where}.micro_batch to less than batch_size",
        precision=chosen.precision,
        device=chosen.device,
        chunked_loss=True,
        checkpoints=min(3, looks),
        weights=min(2, looks),
        times=times,
        adapter=chosen.adapter,
        computes_again=chosen.gradient_checkpointing,
        head=task.head,
        head_settings=chosen,
        labels=len(plan.text.labels) if plan.text and task.named else 0,
    )


# ---------------------------------------------------------------------------------------------
# what is wrong with an experiment


def problems(plan: FinetunedPlan, unit: str) -> Iterator[str]:
    """What is wrong with an experiment in whose text a `unit` has a label, and types cannot tell."""
    where, experiment = plan.where, plan.settings
    key, head = experiment.head, getattr(experiment, experiment.head)
    yield from shared_problems(plan)
    for arm, phase in plan.phases:
        if phase.untrained:
            yield from _asking_problems(plan, arm)
        elif phase.data == "task" and phase.epochs is None:
            yield (
                f"arms.{arm}: {where}, a {plan.task.name}, counts epochs and not updates; give it an arm with "
                f"`- {{data: task, epochs: 3}}`, and name that in run.arms, or in {where}.arms where other experiments have other arms"
            )
        if phase.data == "task":
            yield from _phase_settings_problems(plan, arm, phase.training)
    if unit == "word" and head.pair_prefix:
        yield f"{where}.{key}.pair_prefix: is for second texts, passages and documents, and {where} tags sentences; set prefix alone"
    if unit == "text" and head.pair_prefix and plan.text and "pair" not in plan.text.train.columns:
        yield f"{where}.{key}.pair_prefix: is for pairs, and labelled.{plan.corpus} has no column `pair`; set prefix alone"
    if experiment.select_on == "all" and not selecting_parts(plan):
        yield f"{where}.select_on: all needs `more_dev` in labelled.{plan.corpus}, dev text in other languages"
    yield from _grid_problems(where, experiment, key)
    yield from translations_problems(plan)
    switched = []
    if getattr(head, "switch_while_finetuning", False):
        switched.append(f"{where}.{key}.switch_while_finetuning")
    yield from text_problems(plan, unit, {f"{where}.{key}": head.max_length}, switched)


def _phase_settings_problems(plan: FinetunedPlan, arm: str, given: Mapping[str, Any]) -> Iterator[str]:
    """What is wrong with the settings by which an arm finetunes a head otherwise than the experiment."""
    where, grid = f"{plan.where}.{plan.settings.head}", plan.settings.grid
    for key in given:
        if key not in OF_A_PHASE:
            yield f"arms.{arm}.training.{key}: is for pretext phases; in a task phase only {', '.join(OF_A_PHASE)} go over {where}"
        elif key in grid:
            yield f"arms.{arm}.training.{key}: is also in the grid of {plan.where}, which would go over it; leave one of them out"


def _asking_problems(plan: Plan, arm: str) -> Iterator[str]:
    """What is wrong with an arm that asks a model for labels without training it."""
    if not plan.task.asked:
        known = ", ".join(each for each, entry in registry.entries("task").items() if entry.has_head and entry.asked)
        yield (
            f"arms.{arm}: trains nothing, but {plan.where}, a {plan.settings.task}, needs a head that is finetuned; those that ask a "
            f"decoder for labels: {known}. Leave it out of {plan.where}.arms"
        )
    elif plan.text:
        try:
            words_of(plan.text.labels, plan.settings.verbaliser)
        except InputError as error:
            yield f"{plan.where}.{error}"


def translations_problems(plan: CrossLingualPlan) -> Iterator[str]:
    """What is wrong with the translations of an experiment's training text, and with the models that are to make them."""
    for arm, phase in plan.phases:
        if phase.translations and phase.data != "task":
            yield f"arms.{arm}: a pretext phase learns from no translations; set it in the task phase"
        if phase.translations and plan.text and not plan.text.translations:
            yield f"arms.{arm}: learns from `translations`, of which labelled.{plan.corpus} has none"
    for code, source in plan.text.translations.items() if plan.text else ():
        if source.by:
            yield from _translator_problems(plan, code)


def _translator_problems(plan: CrossLingualPlan, code: str) -> Iterator[str]:
    """What is wrong with the model that is to make a translation of the training text."""
    block, where = plan.text, f"labelled.{plan.corpus}.translations.{code}.by"
    by, part = block.translations[code].by, f"translated/{code}"
    texts = block.language, block.language_of(part)
    if block.unit == "word":
        yield f"{where}: tags of words cannot be translated; give a file"
    if block.unit == "target":
        before, after = block.language_of_targets("train"), block.language_of_targets(part)
        if before != after and (before, after) != texts:
            yield f"{where}: a model that translates texts cannot make targets in {after!r} of those in {before!r}; give a file"
    if set(by) not in ({"backbone"}, {"experiment", "arm"}):
        yield f"{where}: wants {{backbone: NAME}}, or {{experiment: NAME, arm: NAME}}, got {by}"
    elif "backbone" in by:
        yield from undefined(where, by["backbone"], plan.config.backbones)
    else:
        yield from _translating_experiment_problems(plan, where, by, texts)


def _translating_experiment_problems(plan: CrossLingualPlan, where: str, by: dict[str, str], texts: tuple[str, str]) -> Iterator[str]:
    """The experiment must be run, and its models must translate from the first language of `texts` into the second."""
    other = plan.plans.experiments.get(by["experiment"])
    yield from undefined(where, by["experiment"], plan.config.run.experiments)
    yield from undefined(where, by["arm"], other.arms if other else plan.config.arms)
    if other is None:
        return
    if not isinstance(other.settings, Translation):
        yield f"{where}: {other.where} is a {other.settings.task}; a translation is needed"
    elif texts[1] != other.settings.target or texts[0] not in learnt_sources(other):
        learnt = ", ".join(learnt_sources(other))
        yield f"{where}: {other.where} translates {learnt} into {other.settings.target}, not {texts[0]} into {texts[1]}"


def _grid_problems(where: str, experiment: Any, key: str) -> Iterator[str]:
    """What is wrong with the values of a grid of finetuning settings."""
    epochs: Any = Annotated[int, Field(strict=True, ge=1)]
    types = {**get_type_hints(type(getattr(experiment, key)), include_extras=True), "epochs": epochs}
    for setting, values in experiment.grid.items():
        yield from grid_value_problems(where, key, setting, values, types)
        if setting in ("metric", "relevant"):
            yield f"{where}.{key}.{setting}: cannot be in a grid, whose points are compared by one and the same score"
    if experiment.grid and experiment.choice.by not in ("dev_score", "dev_loss"):
        yield f"{where}.choice.by: {experiment.choice.by} is not measured; set dev_score or dev_loss"


def text_problems(plan: CrossLingualPlan, unit: str, lengths: dict[str, int], switches: list[str]) -> Iterator[str]:
    """What is wrong with an experiment's text, lexicons and backbone.

    A `unit` of its text has a label. `lengths` are those of `backbone_problems`; `switches` are keys, besides the arms with a pretext
    phase, because of which words are switched.
    """
    where, experiment, config = plan.where, plan.settings, plan.config
    yield from undefined(f"{where}.corpus", plan.corpus, config.labelled)
    if plan.text:
        yield from published_problems(plan, config.arms, [*plan.text.test, AVERAGE])
    for arm, phase in plan.phases:
        if phase.restores and phase.restores.pieces:
            yield f"arms.{arm}: `{phase.data}` needs parallel text, which {where} has none of"
        if phase.targets_from:
            yield f"arms.{arm}.targets_from: is for translation and summarisation; {where} is a {plan.task.name}"
        if phase.switch is not None and not experiment.head:
            yield f"arms.{arm}.switch: is for translation and for tasks with labels; {where} is a {plan.task.name}"
        if phase.switch is not None and phase.data != "task":
            yield f"arms.{arm}.switch: is for the task phase; how much a pretext phase switches stands in codeswitch.noise"
    if experiment.restore == "pairs" and unit != "text":
        yield f"{where}.restore: pairs is for texts with labels (`unit: text`) that are pairs; {where} is a {plan.task.name}"
    switched = [*(f"arms.{arm}" for arm, phase in plan.phases if needs_lexicon(phase)), *switches]
    if switched and not plan.lexicons:
        yield f"{where}.lexicon: is missing; {switched[0]} needs one"
    for lexicon in plan.lexicons:
        yield from undefined(f"{where}.lexicon", lexicon, config.lexicons)
    if not plan.text:
        return
    if plan.text.unit != unit:
        found = f"labelled.{plan.corpus}.unit is {plan.text.unit}"
        yield f"{where}.corpus: {plan.task.name} needs text with `unit: {unit}`, but {found}"
    yield from backbone_problems(plan, plan.languages, lengths)
    if switched:
        yield from _dictionary_problems(plan)


def _dictionary_problems(plan: CrossLingualPlan) -> Iterator[str]:
    """Problems of lexicons: not given dictionaries, or without a language that words are switched into."""
    where, config, code, into = plan.where, plan.config, plan.text.language, switched_into(plan)
    if not into:
        way_out = "give test sets in others their `language`"
        yield f"{where}.into: no language but {code!r}, that of the text, is left to switch words into; {way_out}"
    for used in plan.lexicons:
        if (lexicon := config.lexicons.get(used)) is None:
            continue
        if lexicon.unit != "word" or (lexicon.mapping.mode != "dictionary" and not lexicon.corpus):
            yield (
                f"lexicons.{used}.mapping.mode: must be dictionary (and unit word), as {where} has no parallel text to learn from; "
                "or name the corpus that it is learnt from (`corpus`)"
            )
        for other in into:
            if said := unknown_language(other):
                yield f"{where}.into: {said}"
            elif is_learnt(lexicon) and not pair_of(plan, used, other):
                yield (
                    f"lexicons.{used}.corpus: {lexicon.corpus!r} is not in {code} and {other}, between which {where} switches words; "
                    f"name another corpus, or the languages to switch into in {where}.into"
                )
            elif not is_learnt(lexicon) and not given_dictionary(lexicon, code, other):
                yield (
                    f"lexicons.{used}.dictionary: {code}-{other} is missing, which {where} needs for its texts in {other}; "
                    f"give a file of word pairs (MUSE's format), or name the languages to switch into in {where}.into"
                )
