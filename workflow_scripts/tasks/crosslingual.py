"""crosslingual: what tasks share that learn in one language and are tested in others. Those with a head count epochs.

Their text is one of `labelled`. There is no parallel text, so the words of a pretext phase are switched by given dictionaries, or by
lexicons that are learnt from other text, each sentence into one of several languages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import TypeAdapter, ValidationError

from workflow_scripts import registry
from workflow_scripts.config import paths
from workflow_scripts.config.configuration import Config, LexiconStages
from workflow_scripts.config.experiments import Experiment
from workflow_scripts.config.phases import Phase
from workflow_scripts.entry_names import Named
from workflow_scripts.errors import InputError
from workflow_scripts.evidence.average import AVERAGE
from workflow_scripts.names import undefined
from workflow_scripts.tasks.entry import task_of
from workflow_scripts.tasks.experiment import (
    Trained,
    arms_of,
    backbone_of,
    backbone_problems,
    backbones_of,
    given_dictionary,
    grid_of,
    grid_points,
    head_settings,
    lexicons_used,
    needs_lexicon,
    of_training,
    phase_training,
    phases_of,
    published_problems,
    seeds_of,
    shared_problems,
)
from workflow_scripts.tasks.translation import learnt_sources, translations
from workflow_scripts.tasks.verbaliser import words_of
from workflow_scripts.text.languages import unknown_language
from workflow_scripts.training.choice import Choice

if TYPE_CHECKING:
    from workflow_scripts.text.labelled import Labelled


@dataclass(kw_only=True)
class CrossLingual(Experiment):
    """A text in one language, test sets in that and others, and a backbone."""

    lexicon: str | None = None
    """Name of a lexicon for a pretext phase: of given dictionaries (`mapping.mode: dictionary`), or learnt from a `corpus` of its own."""
    into: list[str] | None = None
    """Languages that words are switched into; those of the test sets by default."""
    restore: Literal["texts", "pairs"] = "texts"
    """What a row of the pretext task is: a text, in which spans of words are switched; or, as in the authors' published code of XNLI, the
    two texts of a pair as one, with `</s>` between them, in which single words are switched, each text into a language of its own."""


@dataclass(kw_only=True)
class Finetuned(CrossLingual):
    """What the settings have of tasks for which a head is finetuned: a choice from a grid, and what early stopping goes by."""

    grid: dict[str, list[Any]] = field(default_factory=dict)
    """The lists in the settings of finetuning, with `epochs`, which the arms have otherwise: every arm is finetuned with each
    combination of their values, and chooses one on the dev set."""
    choice: Choice = field(default_factory=lambda: Choice(by="dev_score"))
    """What the choice goes by."""
    metrics: list[Annotated[str, Named("label_metric")]] = field(default_factory=list)
    """Metrics of plugins that are measured and tested besides the scores of the task."""
    select_on: Literal["source", "all"] = "source"
    """Whose dev text early stopping and the choice from a grid go by: that in the language of the text, or the mean over that and all of
    the text's `more_dev`."""


# ---------------------------------------------------------------------------------------------
# what an experiment means


def languages(config: Config, name: str) -> list[str]:
    """The languages of the texts, that of the training text first."""
    labelled = config.labelled[config.experiments[name].corpus]
    tested = [labelled.language_of(f"test/{test}") for test in labelled.test]
    experiment = config.experiments[name]
    more = [part for kind in ("translations", "more_dev") for part in paths.more_parts(config, experiment.corpus, kind)]
    return list(dict.fromkeys([labelled.language, *tested, *(paths.labelled_language(config, experiment.corpus, part) for part in more)]))


def trained_languages(config: Config, name: str) -> list[str]:
    """The language of the training text."""
    return languages(config, name)[:1]


def translated_parts(config: Config, name: str, phase: Phase) -> list[str]:
    """The parts of further training text that a phase learns from."""
    return paths.more_parts(config, config.experiments[name].corpus, "translations") if phase.translations else []


def selecting_parts(config: Config, name: str) -> list[str]:
    """The parts of further dev text that early stopping goes by."""
    experiment = config.experiments[name]
    return paths.more_parts(config, experiment.corpus, "more_dev") if experiment.select_on == "all" else []


def switched_into(config: Config, name: str) -> list[str]:
    """The languages that words are switched into: those of the test sets, unless the experiment names them."""
    labelled, into = config.labelled[config.experiments[name].corpus], config.experiments[name].into
    tested = [labelled.language_of(f"test/{test}") for test in labelled.test]
    return [code for code in dict.fromkeys(tested if into is None else into) if code != labelled.language]


def given_lexicons(config: Config, name: str, lexicon: str | None = None) -> dict[tuple[str, str], str]:
    """(lexicon, pair) → its folder, for each language that is switched into; of the experiment's lexicons, or of one."""
    experiment: CrossLingual = config.experiments[name]
    code = config.labelled[experiment.corpus].language
    return {
        (used, pair): paths.lexicon_folder(config, config.lexicons[used].corpus or "", used)
        if is_learnt(config.lexicons[used])
        else paths.given_lexicon_folder(experiment.corpus, used, pair)
        for used in ([lexicon] if lexicon else lexicons_used(config, experiment))
        for other in switched_into(config, name)
        if (pair := pair_of(config, used, code, other))
    }


def is_learnt(lexicon: LexiconStages) -> bool:
    """Whether a lexicon is learnt from a corpus that it names, and not given."""
    return bool(lexicon.corpus) and lexicon.mapping.mode != "dictionary"


def crosslingual_lexicons(config: Config) -> list[str]:
    """The lexicons by which the words of the run's texts with labels are switched."""
    run = [config.experiments[name] for name in config.run.experiments if name in config.experiments]
    return list(
        dict.fromkeys(name for e in run if e.corpus in config.labelled for name in lexicons_used(config, e) if name in config.lexicons)
    )


def pair_of(config: Config, lexicon: str, code: str, other: str) -> str | None:
    """The name of two languages, in the lexicon's order, if it has them."""
    block = config.lexicons[lexicon]
    if not is_learnt(block):
        return given_dictionary(block, code, other)
    learnt = config.corpora.get(block.corpus or "")
    return "-".join(learnt.languages) if learnt and {code, other} == {*learnt.languages} else None


def lexicon_files(config: Config, name: str, lexicon: str | None = None) -> list[str]:
    """The files of the given lexicons from the text's language into the others."""
    code = config.labelled[config.experiments[name].corpus].language
    folders = given_lexicons(config, name, lexicon)
    return [f"{folder}/{code}-{(set(pair.split('-')) - {code}).pop()}.tsv" for (_, pair), folder in folders.items()]


def training_text(config: Config, name: str) -> list[str]:
    """The sentences of the training text."""
    corpus, phases = config.experiments[name].corpus, phases_of(config, config.experiments[name])
    more = [part for _, phase in phases for part in translated_parts(config, name, phase)]
    return [paths.labelled_file(config, corpus, part) for part in dict.fromkeys(["train", *more])]


def held_out_text(config: Config, name: str) -> list[str]:
    """The sentences of dev and test sets."""
    corpus = config.experiments[name].corpus
    parts = [*paths.labelled_parts(config, corpus)[1:], *paths.more_parts(config, corpus, "more_dev")]
    return [paths.labelled_file(config, corpus, part) for part in parts]


def lexicons(config: Config, name: str) -> list[str]:
    """Folders of the lexicons that are made of given dictionaries."""
    return list(given_lexicons(config, name).values())


def results(config: Config, name: str) -> set[str]:
    """All files that the report reads: predictions, curves, tests of significance, noised text."""
    experiment: CrossLingual = config.experiments[name]
    own = paths.experiment_folder(name)
    files = {f"{own}/significance.json", *(f"{paths.backbone_folder(used)}/backbone.json" for used in backbones_of(config, experiment))}
    more = [part for _, phase in phases_of(config, experiment) for part in translated_parts(config, name, phase)]
    parts = [*paths.labelled_parts(config, experiment.corpus), *more, *selecting_parts(config, name)]
    files |= {paths.labelled_file(config, experiment.corpus, part, ".json") for part in parts}
    files |= {f"{folder}/lexicon.json" for folder in lexicons(config, name)}
    if grid_of(experiment):
        files |= {f"{own}/{arm}/choice.json" for arm in arms_of(config, experiment)}
    for arm in arms_of(config, experiment):
        for seed in seeds_of(config, experiment):
            run = paths.run_folder(name, arm, seed)
            files |= {f"{run}/predictions", *(f"{run}/{phase.name}/curve.tsv" for phase in config.arms[arm])}
            files |= {paths.noised_folder(name, phase.noised, seed) for phase in config.arms[arm] if phase.restores}
    return files


def phases(config: Config, name: str, arms: list[str]) -> Iterator[Trained]:
    """Every phase of some of its arms that is trained."""
    experiment: CrossLingual = config.experiments[name]
    seeds, points = len(seeds_of(config, experiment)), grid_points(experiment)
    for arm, phase in phases_of(config, experiment, arms):
        backbone = backbone_of(config, experiment, arm)
        if phase.bridge:
            training = phase_training(experiment, phase)
            yield of_training("pretext", f"experiments.{name}.training", backbone, training, seeds + bool(points))
        for point in () if phase.bridge else (points or [{}]):
            # each point is trained once, then the chosen one with every seed
            times = 1 + seeds / len(points) if points else seeds
            epochs = point.get("epochs", phase.epochs) or 0
            yield _finetuning(f"experiments.{name}.{experiment.head}", backbone, head_settings(experiment, point), epochs, times)


def _finetuning(where: str, backbone: str, chosen: Any, epochs: int, times: float) -> Trained:
    return Trained(
        "head_finetune",
        where,
        backbone,
        chosen.batch_size * chosen.max_length,
        chosen.micro_batch and chosen.micro_batch * chosen.max_length,
        f"{where}.micro_batch to less than batch_size",
        chosen.precision,
        chosen.device,
        True,
        min(3, 1 + epochs * chosen.looks),
        times,
    )


# ---------------------------------------------------------------------------------------------
# what is wrong with an experiment


def problems(config: Config, name: str, unit: str) -> Iterator[str]:
    """What is wrong with an experiment in whose text a `unit` has a label, and types cannot tell."""
    where, experiment = f"experiments.{name}", config.experiments[name]
    key, head = experiment.head, getattr(experiment, experiment.head)
    yield from shared_problems(config, name)
    for arm, phase in phases_of(config, experiment):
        if phase.untrained:
            yield from _asking_problems(config, name, arm)
        elif phase.data == "task" and phase.epochs is None:
            yield (
                f"arms.{arm}: {where}, a {experiment.task}, counts epochs and not updates; give it an arm with "
                f"`- {{data: task, epochs: 3}}`, and name that in run.arms, or in {where}.arms where other experiments have other arms"
            )
        if phase.data == "task" and phase.training:
            yield f"arms.{arm}.training: is for pretext phases; finetuning has {where}.{key}"
    if experiment.select_on == "all" and not selecting_parts(config, name):
        yield f"{where}.select_on: all needs `more_dev` in labelled.{experiment.corpus}, dev text in other languages"
    yield from _grid_problems(where, experiment, key)
    yield from translations_problems(config, name)
    switched = []
    if getattr(head, "switch_while_finetuning", False):
        switched.append(f"{where}.{key}.switch_while_finetuning")
    yield from text_problems(config, name, unit, {f"{where}.{key}": head.max_length}, switched)


def _asking_problems(config: Config, name: str, arm: str) -> Iterator[str]:
    """What is wrong with an arm that asks a model for labels without training it."""
    where, experiment = f"experiments.{name}", config.experiments[name]
    if not task_of(experiment).asked:  # type: ignore[attr-defined]
        known = ", ".join(each for each, entry in registry.entries("task").items() if entry.has_head and entry.asked)
        yield (
            f"arms.{arm}: trains nothing, but {where}, a {experiment.task}, needs a head that is finetuned; those that ask a decoder for "
            f"labels: {known}. Leave it out of {where}.arms"
        )
    elif experiment.corpus in config.labelled:
        try:
            words_of(config.labelled[experiment.corpus].labels, experiment.verbaliser)
        except InputError as error:
            yield f"{where}.{error}"


def translations_problems(config: Config, name: str) -> Iterator[str]:
    """What is wrong with the translations of an experiment's training text, and with the models that are to make them."""
    experiment = config.experiments[name]
    corpus = experiment.corpus
    block = config.labelled.get(corpus)
    for arm, phase in phases_of(config, experiment):
        if phase.translations and phase.data != "task":
            yield f"arms.{arm}: a pretext phase learns from no translations; set it in the task phase"
        if phase.translations and block and not block.translations:
            yield f"arms.{arm}: learns from `translations`, of which labelled.{corpus} has none"
    for code, source in block.translations.items() if block else ():
        if block and source.by:
            yield from _translator_problems(config, f"labelled.{corpus}.translations.{code}.by", block, code)


def _translator_problems(config: Config, where: str, block: Labelled, code: str) -> Iterator[str]:
    """What is wrong with the model that is to make a translation of the training text."""
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
        yield from undefined(where, by["backbone"], config.backbones)
    else:
        yield from _translating_experiment_problems(config, where, by, texts)


def _translating_experiment_problems(config: Config, where: str, by: dict[str, str], texts: tuple[str, str]) -> Iterator[str]:
    """The experiment must be run, and its models must translate from the first language of `texts` into the second."""
    named, other = by["experiment"], config.experiments.get(by["experiment"])
    yield from undefined(where, named, config.run.experiments)
    yield from undefined(where, by["arm"], arms_of(config, other) if other else config.arms)
    if other is None:
        return
    if named not in translations(config):
        yield f"{where}: experiments.{named} is a {other.task}; a translation is needed"
    elif texts[1] != other.target or texts[0] not in learnt_sources(config, named):
        learnt = ", ".join(learnt_sources(config, named))
        yield f"{where}: experiments.{named} translates {learnt} into {other.target}, not {texts[0]} into {texts[1]}"


def _grid_problems(where: str, experiment: Any, key: str) -> Iterator[str]:
    """What is wrong with the values of a grid of finetuning settings."""
    block = getattr(experiment, key)
    for setting, values in experiment.grid.items():
        known = [*asdict(block), "epochs"]
        yield from undefined(f"{where}.{key}", setting, known)
        if not values:
            yield f"{where}.grid.{setting}: is empty"
        if setting in ("metric", "relevant"):
            yield f"{where}.{key}.{setting}: cannot be in a grid, whose points are compared by one and the same score"
        for value in values if setting in known else ():
            if setting == "epochs":
                if not isinstance(value, int) or value < 1:
                    yield f"{where}.{key}.epochs: is a number from 1, got {value!r}"
                continue
            try:
                TypeAdapter(type(block)).validate_python({**asdict(block), setting: value})
            except ValidationError as error:
                yield f"{where}.{key}.{setting}: {error.errors()[0]['msg'].lower()}, got {value!r}"
    if experiment.grid and experiment.choice.by not in ("dev_score", "dev_loss"):
        yield f"{where}.choice.by: {experiment.choice.by} is not measured; set dev_score or dev_loss"


def text_problems(
    config: Config,
    name: str,
    unit: str,
    lengths: dict[str, int],
    switches: list[str],
    known: Callable[[Config, str], list[str]] = languages,
) -> Iterator[str]:
    """What is wrong with an experiment's text, lexicons and backbone, to which the languages that `known` says must be known.

    A `unit` of its text has a label. `lengths` are those of `backbone_problems`; `switches` are keys, besides the arms with a pretext
    phase, because of which words are switched.
    """
    where, experiment = f"experiments.{name}", config.experiments[name]
    yield from undefined(f"{where}.corpus", experiment.corpus, config.labelled)
    if text := config.labelled.get(experiment.corpus):
        yield from published_problems(where, experiment.published, config.arms, [*text.test, AVERAGE])
    for arm, phase in phases_of(config, experiment):
        if phase.restores and phase.restores.pieces:
            yield f"arms.{arm}: `{phase.data}` needs parallel text, which {where} has none of"
        if phase.switch is not None and not experiment.head:
            yield f"arms.{arm}.switch: is for translation and for tasks with labels; {where} is a {experiment.task}"
        if phase.switch is not None and phase.data != "task":
            yield f"arms.{arm}.switch: is for the task phase; how much a pretext phase switches stands in codeswitch.noise"
    if experiment.restore == "pairs" and unit != "text":
        yield f"{where}.restore: pairs is for texts with labels (`unit: text`) that are pairs; {where} is a {experiment.task}"
    switched = [*(f"arms.{arm}" for arm, phase in phases_of(config, experiment) if needs_lexicon(phase)), *switches]
    used = lexicons_used(config, experiment)
    if switched and not used:
        yield f"{where}.lexicon: is missing; {switched[0]} needs one"
    for lexicon in used:
        yield from undefined(f"{where}.lexicon", lexicon, config.lexicons)
    if experiment.corpus not in config.labelled:
        return
    if (found := config.labelled[experiment.corpus].unit) != unit:
        yield f"{where}.corpus: {experiment.task} needs text with `unit: {unit}`, but labelled.{experiment.corpus}.unit is {found}"
    yield from backbone_problems(config, name, known(config, name), lengths)
    if switched:
        yield from _dictionary_problems(config, name)


def _dictionary_problems(config: Config, name: str) -> Iterator[str]:
    """Problems of lexicons: not given dictionaries, or without a language that words are switched into."""
    where = f"experiments.{name}"
    experiment: CrossLingual = config.experiments[name]
    code, into = config.labelled[experiment.corpus].language, switched_into(config, name)
    if not into:
        way_out = "give test sets in others their `language`"
        yield f"{where}.into: no language but {code!r}, that of the text, is left to switch words into; {way_out}"
    for used in lexicons_used(config, experiment):
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
            elif is_learnt(lexicon) and not pair_of(config, used, code, other):
                yield (
                    f"lexicons.{used}.corpus: {lexicon.corpus!r} is not in {code} and {other}, between which {where} switches words; "
                    f"name another corpus, or the languages to switch into in {where}.into"
                )
            elif not is_learnt(lexicon) and not given_dictionary(lexicon, code, other):
                yield (
                    f"lexicons.{used}.dictionary: {code}-{other} is missing, which {where} needs for its texts in {other}; "
                    f"give a file of word pairs (MUSE's format), or name the languages to switch into in {where}.into"
                )
