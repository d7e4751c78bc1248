"""translation: the tasks whose text is a parallel corpus, translation and summarisation into another language.

What is trained, decoded and scored are stages of their own (`training`, `decoding`, `scores`); here is what an
experiment of these tasks means to rules, checks and preflight.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from workflow_scripts.config import paths
from workflow_scripts.config.configuration import Config
from workflow_scripts.config.experiments import Experiment
from workflow_scripts.config.phases import Phase
from workflow_scripts.evidence.comet import Comet
from workflow_scripts.evidence.representation import Representation
from workflow_scripts.evidence.scores import ROUGES, Scores
from workflow_scripts.evidence.speed import Speed
from workflow_scripts.evidence.trivial import TRIVIAL
from workflow_scripts.evidence.word_accuracy import WordAccuracy
from workflow_scripts.models.decoding import Decoding
from workflow_scripts.models.sga import SGA
from workflow_scripts.models.templates import Templates
from workflow_scripts.names import undefined
from workflow_scripts.tasks.entry import Parts, Task, register_task
from workflow_scripts.tasks.experiment import (
    BACKBONE,
    MoreText,
    Trained,
    arms_of,
    backbone_of,
    backbone_problems,
    backbones_of,
    grid_points,
    lexicon_corpus,
    lexicons_used,
    needs_lexicon,
    of_training,
    phase_training,
    phases_of,
    published_problems,
    seeds_of,
    shared_problems,
    texts_read,
)
from workflow_scripts.tasks.writing_checks import decoding_problems, grid_problems
from workflow_scripts.training.choice import Choice

if TYPE_CHECKING:
    from workflow_scripts.text.corpus import Corpus


@dataclass(kw_only=True)
class Translation(Experiment):
    """A parallel corpus in one direction, with a backbone."""

    source: str
    """Language that is translated from, or that the documents are in."""
    target: str
    """Language that is translated into, or that the summaries are in."""
    lexicon: str | None = None
    """Name of a lexicon. Only arms that switch words need one."""
    together_with: list[str] = field(default_factory=list)
    """Names of more corpora, from other languages into the same target, whose training pairs are learnt together with these: one model for
    many source languages. Dev and test sets are the experiment's own; `run.zero_shot` tests on those of other experiments."""
    task: Literal["translation", "summarisation"] = "translation"
    """What is learnt. Summarisation needs a corpus with `documents`; ROUGE takes BLEU's place then."""
    grid: dict[str, list[Any]] = field(default_factory=dict)
    """The lists of `training`: every arm is trained with each combination of their values, and chooses one on the dev set."""
    choice: Choice = field(default_factory=Choice)
    """What the choice goes by."""
    decoding: Decoding = field(default_factory=Decoding)
    """Beam search."""
    templates: Templates = field(default_factory=Templates)
    """How a decoder is asked, of backbones without an encoder."""
    scores: Scores = field(default_factory=Scores)
    """Metrics and significance."""
    comet: Comet | None = None
    """COMET, in an environment of its own; `{}` measures it with its defaults."""
    speed: Speed | None = None
    """How fast the arms write, and how good that is; `{}` measures it with its defaults, by itself on the machine."""
    word_accuracy: WordAccuracy = field(default_factory=WordAccuracy)
    """Word accuracy by frequency."""
    representation: Representation = field(default_factory=Representation)
    """Distances."""
    sga: SGA = field(default_factory=SGA)
    """Arms whose `generator` writes at once: prompts, alignment and denoising."""


# ---------------------------------------------------------------------------------------------
# what an experiment means


def translations(config: Config) -> dict[str, Translation]:
    """The experiments, of the run or not, whose text is a parallel corpus."""
    return {name: experiment for name, experiment in config.experiments.items() if isinstance(experiment, Translation)}


def zero_shot_experiments(config: Config, name: str) -> list[str]:
    """The run's other experiments whose test sets the arms of `name` translate; of those on one corpus, which have the same, the first."""
    own, known, asked = config.experiments[name], translations(config), config.run.zero_shot
    if not (name in asked if isinstance(asked, list) else asked):
        return []
    others = {other: known[other] for other in config.run.experiments if other in known and other != name}
    found: dict[str, str] = {}
    for other, experiment in others.items():
        alike = (experiment.task, experiment.target, experiment.backbone) == (own.task, own.target, own.backbone)
        if alike and experiment.source != own.source:
            found.setdefault(experiment.corpus, other)
    return list(found.values())


def zero_shot_tests(config: Config, name: str) -> list[str]:
    """Test sets of other experiments in the run that the arms of `name` translate, as `{other}@{testset}`."""
    others = zero_shot_experiments(config, name)
    return [f"{other}@{testset}" for other in others for testset in config.corpora[config.experiments[other].corpus].test]


def zero_shot_references(config: Config, corpus: str, code: str) -> list[str]:
    """References in the language `code` that models trained on this corpus are measured by elsewhere: no training text may have them."""
    known = translations(config)
    learnt = {name: (e.corpus, *e.together_with, *texts_read(config, e)) for name, e in known.items()}
    users = [name for name in config.run.experiments if corpus in learnt.get(name, ())]
    users = [name for name in users if known[name].target == code]
    tests = [test.split("@") for name in users for test in zero_shot_tests(config, name)]
    parts = {(config.experiments[other].corpus, f"test/{testset}") for other, testset in tests}
    # a model that learns from several corpora is tested on one of them
    own = {known[name].corpus for name in users if known[name].together_with}
    parts |= {(other, f"test/{testset}") for other in own for testset in config.corpora[other].test}
    return sorted(paths.corpus_text(config, other, part, code) for other, part in parts if other != corpus)


def lexicon_folder(config: Config, name: str, lexicon: str | None = None) -> str:
    """The folder of the experiment's lexicon, or of another that it uses."""
    experiment: Translation = config.experiments[name]
    used = lexicon or experiment.lexicon
    assert used, f"{name} has no lexicon; a phase that switches words is refused without one"
    return paths.lexicon_folder(config, lexicon_corpus(config, experiment, used), used)


def lexicon_files(config: Config, name: str, lexicon: str | None = None) -> tuple[str, str]:
    """The files of both directions of the experiment's lexicon, or of another that it uses; first from its corpus's first language."""
    folder = lexicon_folder(config, name, lexicon)
    a, b = config.corpora[config.experiments[name].corpus].languages
    return f"{folder}/{a}-{b}.tsv", f"{folder}/{b}-{a}.tsv"


def languages(config: Config, name: str) -> list[str]:
    """An experiment's own languages are its source and its target."""
    experiment: Translation = config.experiments[name]
    return [experiment.source, experiment.target]


def all_languages(config: Config, name: str) -> list[str]:
    """Source and target, and the sources of the corpora that are learnt together with the experiment's."""
    return [*languages(config, name), *(code for _, code in more_sources(config, name))]


def learnt_sources(config: Config, name: str) -> list[str]:
    """The languages that the experiment learns to translate from."""
    return [code for code in all_languages(config, name) if code != config.experiments[name].target]


def more_sources(config: Config, name: str) -> list[tuple[str, str]]:
    """Each corpus that is learnt together with the experiment's is told with its source language."""
    experiment: Translation = config.experiments[name]
    known = {corpus: config.corpora[corpus].languages for corpus in experiment.together_with if corpus in config.corpora}
    return [(corpus, code) for corpus, pair in known.items() for code in pair if code != experiment.target]


def more_text(config: Config, name: str, phase: Phase | None = None) -> list[MoreText]:
    """All task phases also learn from the training text of the corpora that are learnt together with the experiment's."""
    target = config.experiments[name].target
    return [
        MoreText(paths.corpus_text(config, corpus, "train", code), paths.corpus_text(config, corpus, "train", target), (code, target))
        for corpus, code in more_sources(config, name)
    ]


def sides(config: Config, name: str, part: str) -> list[tuple[str, str]]:
    """Source and target side of a part of the corpus, each with its language."""
    return [(paths.corpus_text(config, config.experiments[name].corpus, part, code), code) for code in languages(config, name)]


def training_text(config: Config, name: str) -> list[str]:
    """Both sides of the training text, and of that of the corpora that are learnt together with it."""
    more = [path for text in more_text(config, name) for path in (text.source, text.target)]
    return [path for path, _ in sides(config, name, "train")] + more


def held_out_text(config: Config, name: str) -> list[str]:
    """Both sides of dev and test sets."""
    return [path for part in paths.held_out_parts(config, config.experiments[name].corpus) for path, _ in sides(config, name, part)]


def lexicons(config: Config, name: str) -> list[str]:
    """Folders of the experiment's lexicon and of those that its phases name."""
    return [lexicon_folder(config, name, used) for used in lexicons_used(config, config.experiments[name])]


def results(config: Config, name: str) -> set[str]:
    """All files that the report reads: scores of every test set, curves, distances, tests of significance, noised text."""
    experiment: Translation = config.experiments[name]
    own, arms = paths.experiment_folder(name), arms_of(config, experiment)
    testsets = list(config.corpora[experiment.corpus].test)
    all_tests = testsets + zero_shot_tests(config, name)
    files = {f"{paths.corpus_folder(config, experiment.corpus)}/corpus.json"}
    files |= {f"{own}/backbone.representation.json", f"{own}/frequencies.tsv"}
    files |= {f"{folder}/lexicon.json" for folder in lexicons(config, name)}
    mapped = (used for used in lexicons_used(config, experiment) if config.lexicons[used].mapping.maps)
    files |= {f"{lexicon_folder(config, name, used)}/mapping.json" for used in mapped}
    for arm, seed in itertools.product(arms, seeds_of(config, experiment)):
        run = paths.run_folder(name, arm, seed)
        files |= {f"{run}/{test}.words.json" for test in testsets}
        files |= {f"{run}/{test}.comet.json" for test in all_tests} if experiment.comet else set()
        files |= {f"{run}/{phase.name}/representation.json" for phase in config.arms[arm]}
    return files | written_results(config, name, all_tests)


def written_results(config: Config, name: str, tests: list[str]) -> set[str]:
    """What the report reads of every task whose answers are texts: backbones, choices, scores and their tests, curves, noised text."""
    experiment, own = config.experiments[name], paths.experiment_folder(name)
    arms = arms_of(config, experiment)
    files = {f"{paths.backbone_folder(used)}/backbone.json" for used in backbones_of(config, experiment)}
    files |= {file for test in tests for file in (f"{own}/{TRIVIAL}/{test}.scores.json", f"{own}/significance/{test}.json")}
    files |= {f"{own}/{arm}/choice.json" for arm in arms} if experiment.grid else set()
    files |= {f"{own}/speed.json"} if experiment.speed else set()
    for arm, seed in itertools.product(arms, seeds_of(config, experiment)):
        run = paths.run_folder(name, arm, seed)
        files |= {file for test in tests for file in (f"{run}/{test}.scores.json", f"{own}/significance/{test}.seed{seed}.json")}
        files |= {f"{run}/{phase.name}/curve.tsv" for phase in config.arms[arm]}
        files |= {paths.noised_folder(name, phase.noised, seed) for phase in config.arms[arm] if phase.restores}
    return files


def phases(config: Config, name: str, arms: list[str]) -> Iterator[Trained]:
    """Every phase of these arms that is trained, also at the points of a grid."""
    experiment: Translation = config.experiments[name]
    seeds = len(seeds_of(config, experiment))
    points = grid_points(experiment)
    for arm, point in itertools.product(arms, points or [{}]):
        for phase in config.arms[arm]:
            # each point is trained once, then the chosen one with every seed
            times = 1 + seeds / len(points) if points else seeds
            yield of_training(
                "pretext" if phase.bridge else "finetune",
                f"experiments.{name}.training",
                backbone_of(config, experiment, arm),
                phase_training(experiment, phase, point),
                times,
            )


# ---------------------------------------------------------------------------------------------
# what is wrong with an experiment


def problems(config: Config, name: str) -> Iterator[str]:
    """Every line tells of a name that is not defined, a language that the corpus lacks, or settings that contradict each other."""
    where = f"experiments.{name}"
    experiment: Translation = config.experiments[name]
    yield from shared_problems(config, name)
    yield from grid_problems(config, name)
    yield from _word_accuracy_problems(where, experiment.word_accuracy)
    for arm, phase in phases_of(config, experiment):
        yield from _phase_problems(arm, where, experiment, phase)
        yield from _switching_problems(f"arms.{arm}", where, experiment, phase, config)
        yield from _pieces_problems(arm, where, experiment, phase, config)
    for lexicon in lexicons_used(config, experiment):
        yield from _lexicon_problems(lexicon, where, experiment, config)
    yield from undefined(f"{where}.corpus", experiment.corpus, config.corpora)
    if experiment.lexicon:
        yield from undefined(f"{where}.lexicon", experiment.lexicon, config.lexicons)
    yield from _representation_problems(where, experiment)
    if corpus := config.corpora.get(experiment.corpus):
        yield from published_problems(where, experiment.published, [*config.arms, BACKBONE], _all_tests(config, corpus))
        yield from _corpus_problems(where, experiment, corpus)
    yield from decoding_problems(where, experiment.decoding)
    yield from _together_problems(where, experiment, config)
    others = (config.experiments[other].source for other in zero_shot_experiments(config, name))
    yield from backbone_problems(config, name, list(dict.fromkeys([*all_languages(config, name), *others])), {})


def _word_accuracy_problems(where: str, settings: WordAccuracy) -> Iterator[str]:
    """Words between `low` and `high` form a bucket of their own, so `low` must be less than `high`."""
    if settings.low >= settings.high:
        yield f"{where}.word_accuracy: low must be less than high, got {settings.low} and {settings.high}"


def _phase_problems(arm: str, where: str, experiment: Translation, phase: Phase) -> Iterator[str]:
    """A phase must learn from a parallel corpus, not from text with labels, and switch the words of one corpus only."""
    if phase.epochs is not None:
        yield f"arms.{arm}: {where}, a {experiment.task}, counts updates; epochs are for tasks with labels"
    if phase.translations:
        yield f"arms.{arm}.translations: are those of text with labels; {where} learns from more languages by `together_with`"
    if phase.switch is not None and experiment.together_with:
        yield f"arms.{arm}.switch: switches words of one corpus, and {where} learns from several by `together_with`; leave one out"


def _switching_problems(arm: str, where: str, experiment: Translation, phase: Phase, config: Config) -> Iterator[str]:
    """A phase that switches words needs a lexicon of the right unit, and a task phase that switches none takes no lexicon."""
    name, here = phase.lexicon or experiment.lexicon, f"{arm} in {where}"
    if phase.lexicon:
        yield from undefined(f"{here}.lexicon", phase.lexicon, config.lexicons)
    if phase.data == "task" and phase.lexicon and phase.switch is None:
        yield f"{here}.lexicon: the task itself takes none, unless its words are switched (`switch`)"
    if phase.data != "task" and phase.switch is not None:
        yield f"{here}.switch: is for the task phase; how much a pretext phase switches stands in codeswitch.noise"
    if phase.lexicon and phase.bridge and not needs_lexicon(phase):
        yield f"{here}.lexicon: {phase.data} takes none"
    if not needs_lexicon(phase):
        return
    pieces = bool(phase.restores and phase.restores.pieces)
    if not name:
        yield f"{where}.lexicon: is missing; {arm} needs one"
    elif name in config.lexicons and (unit := config.lexicons[name].unit) != ("piece" if pieces else "word"):
        yield f"{here}: data {phase.data} cannot take the lexicon {name!r} of unit {unit}; it switches {'pieces' if pieces else 'words'}"


def _pieces_problems(arm: str, where: str, experiment: Translation, phase: Phase, config: Config) -> Iterator[str]:
    """Pieces are switched for the experiment's backbone, so the arm must start from no other."""
    pieces = phase.restores and phase.restores.pieces
    if pieces and (other := backbone_of(config, experiment, arm)) != experiment.backbone:
        yield f"arms.{arm} in {where}: `{phase.data}` switches the pieces of {experiment.backbone!r}, but starts from {other!r}"


def _lexicon_problems(name: str, where: str, experiment: Translation, config: Config) -> Iterator[str]:
    """A lexicon must be in the experiment's languages, and one of pieces in the pieces of its backbone."""
    if (lexicon := config.lexicons.get(name)) is None:
        return
    learnt = config.corpora.get(lexicon.corpus or "")
    if learnt and sorted(learnt.languages) != sorted([experiment.source, experiment.target]):
        yield f"lexicons.{name}.corpus: {lexicon.corpus!r} is in {list(learnt.languages)}, not in the languages of {where}"
    if lexicon.unit == "piece" and lexicon.backbone != experiment.backbone:
        yield f"lexicons.{name}.backbone: {lexicon.backbone!r} is not that of {where}, {experiment.backbone!r}; pieces must be its own"


def _all_tests(config: Config, corpus: Corpus) -> list[str]:
    """The test sets of a corpus, and those of all experiments as models of another translate them."""
    others = {name: config.corpora[e.corpus].test for name, e in translations(config).items() if e.corpus in config.corpora}
    return [*corpus.test, *(f"{name}@{testset}" for name, tests in others.items() for testset in tests)]


def _representation_problems(where: str, experiment: Translation) -> Iterator[str]:
    """Text that distances are measured on must be there in both languages, or in none."""
    text, pair = experiment.representation.text, [experiment.source, experiment.target]
    if text and sorted(text) != sorted(pair):
        yield f"{where}.representation.text: needs a file for each of {pair}; it has {list(text)}"


def _corpus_problems(where: str, experiment: Translation, corpus: Corpus) -> Iterator[str]:
    """The corpus must be in source and target, and have documents in the source for summarisation alone."""
    pair = [experiment.source, experiment.target]
    if sorted(pair) != sorted(corpus.languages):
        yield f"{where}: source and target {pair} are not the languages of corpus {experiment.corpus!r}, {list(corpus.languages)}"
    if bool(corpus.documents) != (experiment.task == "summarisation"):
        has = "has none" if experiment.task == "summarisation" else "has some: set task: summarisation"
        yield f"{where}.task: {experiment.task} of corpus {experiment.corpus!r}, which {has} (`documents`)"
    elif corpus.documents and corpus.documents.language != experiment.source:
        yield f"{where}.source: {experiment.source!r} is not the language of the documents, {corpus.documents.language!r}"


def _together_problems(where: str, experiment: Translation, config: Config) -> Iterator[str]:
    """Corpora that are learnt together with the experiment's must be others, of sentences with the same target."""
    for other in experiment.together_with:
        yield from undefined(f"{where}.together_with", other, config.corpora)
        if other == experiment.corpus:
            yield f"{where}.together_with: {other!r} is the experiment's own corpus"
        elif other in config.corpora and experiment.target not in config.corpora[other].languages:
            yield f"{where}.together_with: {other!r} is in {list(config.corpora[other].languages)}, not into {experiment.target!r}"
        elif other in config.corpora and config.corpora[other].documents:
            yield f"{where}.together_with: {other!r} has documents; sentences are needed"


PARTS: Parts = {
    "run": ("What was run", "run"),
    "scores": ("Scores", "scores"),
    "speed": ("Speed", "speed"),
    "words": ("Word accuracy by frequency", "words"),
    "curves": ("Learning curves", "curves"),
    "distances": ("Representation distances", "distances"),
    "lexicon": ("Lexicon", "lexicon"),
    "switched": ("Switched sentences", "switched"),
    "translations": ("{outputs} side by side", "translations"),
}
"""The parts of the tasks on parallel text."""
TRANSLATION = Task(
    name="translation",
    label="translation",
    settings=Translation,
    text="corpora",
    answers="text",
    length="updates",
    languages=all_languages,
    trained_languages=languages,
    training_text=training_text,
    held_out_text=held_out_text,
    lexicons=lexicons,
    results=results,
    problems=problems,
    phases=phases,
    trivial="copy",
    rules={
        "pretext": "training.micro_batch_tokens",
        "finetune": "training.micro_batch_tokens",
        "decoding": "decoding.batch_tokens",
        "n_best": "decoding.batch_tokens",
        "comet": "comet.batch_size",
        "speed": "speed.batch_tokens",
        "representation": "representation.batch_tokens",
        "representation_backbone": "representation.batch_tokens",
    },
    sides=sides,
    more_text=more_text,
    grid="training",
    words={
        "learns": "translate",
        "rows": "sentence pairs to translate",
        "pairs": "sentence pairs",
        "pair": "a sentence and its translation",
        "input": "source",
        "inputs": "sentences",
        "output": "a translation",
        "outputs": "translations",
    },
    parts=PARTS,
)
register_task(TRANSLATION)
SUMMARISATION = replace(
    TRANSLATION,
    name="summarisation",
    label="cross-lingual summarisation",
    documents=True,
    trivial="first_sentence",
    template="{source_language}: {source}\nSummary in {target_language}:",
    defaults={"scores": {"metrics": [*ROUGES]}, "training": {"dev_metric": "ROUGE-L", "too_long": "cut"}, "choice": {"by": "dev_rouge"}},
    words={
        "learns": "summarise in another language",
        "rows": "documents to summarise",
        "pairs": "documents with summaries",
        "pair": "a document and its summary",
        "input": "document",
        "inputs": "documents",
        "output": "a summary",
        "outputs": "summaries",
    },
)
register_task(SUMMARISATION)
