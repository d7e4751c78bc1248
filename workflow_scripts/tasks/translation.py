"""translation: the tasks whose text is a parallel corpus, translation and summarisation into another language.

Training, decoding and scoring are stages of their own (`training`, `decoding`, `scores`). Here is what an experiment of these tasks means
to rules, checks and preflight.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from workflow_scripts.config import paths
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
from workflow_scripts.tasks.entry import MoreText, Parts, Task, register_task
from workflow_scripts.tasks.experiment import (
    BACKBONE,
    Trained,
    backbone_problems,
    grid_points_of,
    needs_lexicon,
    of_training,
    phase_training,
    published_problems,
    shared_problems,
)
from workflow_scripts.tasks.plan import Plan, Plans
from workflow_scripts.tasks.writing_checks import decoding_problems, grid_problems
from workflow_scripts.text.corpus import Corpus
from workflow_scripts.training.choice import Choice


@dataclass(kw_only=True)
class Translation(Experiment):
    """A parallel corpus in one direction, with a backbone."""

    source: str
    """Source language, or language of the documents."""
    target: str
    """Target language, or language of the summaries."""
    lexicon: str | None = None
    """Name of a lexicon. Only arms that switch words need it."""
    together_with: list[str] = field(default_factory=list)
    """Names of further corpora with other source languages and the same target. One model learns from all their training pairs together.
    Dev and test sets are the experiment's own; `run.zero_shot` tests on those of other experiments."""
    task: Literal["translation", "summarisation"] = "translation"
    """What the model learns. `summarisation` needs a corpus with `documents`, and ROUGE replaces BLEU."""
    grid: dict[str, list[Any]] = field(default_factory=dict)
    """Lists of values for `training`. Every arm is trained with each combination, and the best on the dev set is chosen."""
    choice: Choice = field(default_factory=Choice)
    """What chooses the best combination of a grid."""
    decoding: Decoding = field(default_factory=Decoding)
    """Settings of beam search."""
    templates: Templates = field(default_factory=Templates)
    """How a decoder-only backbone is prompted."""
    scores: Scores = field(default_factory=Scores)
    """Metrics and significance."""
    comet: Comet | None = None
    """COMET, in its own environment. `{}` measures it with defaults."""
    speed: Speed | None = None
    """Speed and quality of the arms. `{}` measures them with defaults. No other job runs on the machine meanwhile."""
    word_accuracy: WordAccuracy = field(default_factory=WordAccuracy)
    """Word accuracy by frequency in the training text."""
    representation: Representation = field(default_factory=Representation)
    """Distances between the two languages in every layer of encoder and decoder (Eq. 4 of Zan et al.)."""
    sga: SGA = field(default_factory=SGA)
    """For arms with a non-autoregressive `generator`: prompts, alignment and denoising."""


TranslationPlan = Plan[Translation, Corpus]

# ---------------------------------------------------------------------------------------------
# what an experiment means


def translations(plans: Plans) -> list[TranslationPlan]:
    """The experiments, of the run or not, whose text is a parallel corpus."""
    return [plan for plan in plans.experiments.values() if isinstance(plan.settings, Translation)]


def translations_of_run(plans: Plans) -> list[TranslationPlan]:
    """Those of the run, which are decoded and scored."""
    return [plan for plan in plans.of_run if isinstance(plan.settings, Translation)]


def zero_shot_experiments(plan: TranslationPlan) -> list[TranslationPlan]:
    """The run's other experiments whose test sets its arms translate; of those on one corpus, which have the same, the first."""
    own, asked = plan.settings, plan.config.run.zero_shot
    if not (plan.name in asked if isinstance(asked, list) else asked):
        return []
    found: dict[str, TranslationPlan] = {}
    for other in translations_of_run(plan.plans):
        its = other.settings
        alike = (its.task, its.target, its.backbone) == (own.task, own.target, own.backbone)
        if alike and its.source != own.source:
            found.setdefault(other.corpus, other)
    return list(found.values())


def zero_shot_tests(plan: TranslationPlan) -> list[str]:
    """Test sets of other experiments in the run that its arms translate, as `{other}@{testset}`."""
    return [f"{other.name}@{testset}" for other in zero_shot_experiments(plan) for testset in other.text.test]


def zero_shot_references(plans: Plans, corpus: str, code: str) -> list[str]:
    """Test text in the language `code` that models trained on this corpus are measured by elsewhere: no training text may have it.

    Of zero-shot tests these are the references, and the sources where the models have learnt to translate from that language. Of what is
    learnt together they are both sides, where the corpus has both languages.

    Of what is learnt together, dev references stay in the other corpora: the ready-made encoder of `config/small-sga.yaml` has read them.
    """
    users = [each for each in translations_of_run(plans) if corpus in each.corpora_learnt]
    tested = [
        other
        for each in users
        for other in zero_shot_experiments(each)
        if code == each.settings.target or (code == other.settings.source and code in learnt_sources(each))
    ]
    # a model that learns from several corpora is tested on one of them
    tested += [each for each in users if each.settings.together_with and code in (each.settings.source, each.settings.target)]
    parts = {(each.corpus, f"test/{testset}") for each in tested for testset in each.text.test}
    return sorted(paths.corpus_text(plans.config, other, part, code) for other, part in parts if other != corpus)


def lexicon_folder(plan: TranslationPlan, lexicon: str | None = None) -> str:
    """The folder of the experiment's lexicon, or of another that it uses."""
    used = lexicon or plan.settings.lexicon
    assert used, f"{plan.name} has no lexicon; a phase that switches words is refused without one"
    return paths.lexicon_folder(plan.config, plan.lexicon_corpus(used), used)


def lexicon_files(plan: TranslationPlan, lexicon: str | None = None) -> tuple[str, str]:
    """The files of both directions of the experiment's lexicon, or of another that it uses; first from its corpus's first language."""
    folder = lexicon_folder(plan, lexicon)
    a, b = plan.text.languages
    return f"{folder}/{a}-{b}.tsv", f"{folder}/{b}-{a}.tsv"


def languages(plan: TranslationPlan) -> list[str]:
    """An experiment's own languages are its source and its target."""
    return [plan.settings.source, plan.settings.target]


def all_languages(plan: TranslationPlan) -> list[str]:
    """Source and target, and the sources of the corpora that are learnt together with the experiment's."""
    return [*languages(plan), *(code for _, code in more_sources(plan))]


def learnt_sources(plan: TranslationPlan) -> list[str]:
    """The languages that the experiment learns to translate from."""
    return [code for code in all_languages(plan) if code != plan.settings.target]


def more_sources(plan: TranslationPlan) -> list[tuple[str, str]]:
    """Each corpus of `together_with`, and the language that is translated from in it."""
    corpora = plan.config.corpora
    known = {corpus: corpora[corpus].languages for corpus in plan.settings.together_with if corpus in corpora}
    return [(corpus, code) for corpus, pair in known.items() for code in pair if code != plan.settings.target]


def more_text(plan: TranslationPlan, phase: Phase | None = None) -> list[MoreText]:
    """The training text of the corpora of `together_with`, which every task phase also learns from."""
    config, target = plan.config, plan.settings.target
    return [
        MoreText(paths.corpus_text(config, corpus, "train", code), paths.corpus_text(config, corpus, "train", target), (code, target))
        for corpus, code in more_sources(plan)
    ]


def sides(plan: TranslationPlan, part: str) -> list[tuple[str, str]]:
    """Source and target side of a part of the corpus, each with its language."""
    return [(paths.corpus_text(plan.config, plan.corpus, part, code), code) for code in languages(plan)]


def training_text(plan: TranslationPlan) -> list[str]:
    """Both sides of the training text, and of that of the corpora that are learnt together with it."""
    more = [path for text in more_text(plan) for path in (text.source, text.target)]
    return [path for path, _ in sides(plan, "train")] + more


def held_out_text(plan: TranslationPlan) -> list[str]:
    """Both sides of dev and test sets."""
    return [path for part in paths.held_out_parts(plan.config, plan.corpus) for path, _ in sides(plan, part)]


def lexicons(plan: TranslationPlan) -> list[str]:
    """Folders of the experiment's lexicon and of those that its phases name."""
    return [lexicon_folder(plan, used) for used in plan.lexicons]


def results(plan: TranslationPlan) -> set[str]:
    """All files that the report reads: scores of every test set, curves, distances, tests of significance, noised text."""
    testsets = list(plan.text.test)
    all_tests = testsets + zero_shot_tests(plan)
    files = {f"{paths.corpus_folder(plan.config, plan.corpus)}/corpus.json"}
    files |= {f"{plan.folder}/backbone.representation.json", f"{plan.folder}/frequencies.tsv"}
    files |= {f"{folder}/lexicon.json" for folder in lexicons(plan)}
    mapped = (used for used in plan.lexicons if plan.config.lexicons[used].mapping.maps)
    files |= {f"{lexicon_folder(plan, used)}/mapping.json" for used in mapped}
    for arm, seed in itertools.product(plan.arms, plan.seeds):
        run = paths.run_folder(plan.name, arm, seed)
        files |= {f"{run}/{test}.words.json" for test in testsets}
        files |= {f"{run}/{test}.comet.json" for test in all_tests} if plan.settings.comet else set()
        files |= {f"{run}/{phase.name}/representation.json" for phase in plan.phases_of(arm)}
    return files | written_results(plan, all_tests)


def written_results(plan: Plan, tests: list[str]) -> set[str]:
    """What the report reads of every task whose answers are texts: backbones, choices, scores and their tests, curves, noised text."""
    own = plan.folder
    files = {f"{used.folder}/backbone.json" for used in plan.backbones}
    files |= {file for test in tests for file in (f"{own}/{TRIVIAL}/{test}.scores.json", f"{own}/significance/{test}.json")}
    files |= {f"{own}/{arm}/choice.json" for arm in plan.arms if grid_points_of(plan, arm)}
    files |= {f"{own}/speed.json"} if plan.settings.speed else set()
    for arm, seed in itertools.product(plan.arms, plan.seeds):
        run = paths.run_folder(plan.name, arm, seed)
        files |= {file for test in tests for file in (f"{run}/{test}.scores.json", f"{own}/significance/{test}.seed{seed}.json")}
        files |= {f"{run}/{phase.name}/curve.tsv" for phase in plan.phases_of(arm)}
        files |= {paths.noised_folder(plan.name, phase.noised, seed) for phase in plan.phases_of(arm) if phase.restores}
    return files


def phases(plan: Plan, arms: list[str]) -> Iterator[Trained]:
    """Every phase of these arms that is trained, also at the points of a grid."""
    seeds = len(plan.seeds)
    for arm in arms:
        points = grid_points_of(plan, arm)
        for point, phase in itertools.product(points or [{}], plan.phases_of(arm)):
            yield of_training(
                "pretext" if phase.bridge else "finetune",
                f"{plan.where}.training",
                plan.backbone_of(arm),
                phase_training(plan.settings, phase, point),
                # each point is trained once, then the chosen one with every seed
                1 + seeds / len(points) if points else seeds,
            )


# ---------------------------------------------------------------------------------------------
# what is wrong with an experiment


def problems(plan: TranslationPlan) -> Iterator[str]:
    """Every line tells of a name that is not defined, a language that the corpus lacks, or settings that contradict each other."""
    experiment, config = plan.settings, plan.config
    yield from shared_problems(plan)
    yield from grid_problems(plan)
    if (words := experiment.word_accuracy).low >= words.high:
        yield f"{plan.where}.word_accuracy: low must be less than high, got {words.low} and {words.high}"
    for arm, phase in plan.phases:
        yield from _phase_problems(plan, arm, phase)
        yield from _switching_problems(plan, arm, phase)
        yield from _pieces_problems(plan, arm, phase)
        yield from _distillation_problems(plan, arm, phase)
    for lexicon in plan.lexicons:
        yield from _lexicon_problems(plan, lexicon)
    yield from undefined(f"{plan.where}.corpus", plan.corpus, config.corpora)
    if experiment.lexicon:
        yield from undefined(f"{plan.where}.lexicon", experiment.lexicon, config.lexicons)
    if (text := experiment.representation.text) and sorted(text) != sorted(languages(plan)):
        yield f"{plan.where}.representation.text: needs a file for each of {languages(plan)}; it has {list(text)}"
    if plan.text:
        yield from published_problems(plan, [*config.arms, BACKBONE], _all_tests(plan))
        yield from _corpus_problems(plan)
    yield from decoding_problems(plan)
    yield from _together_problems(plan)
    others = (other.settings.source for other in zero_shot_experiments(plan))
    yield from backbone_problems(plan, list(dict.fromkeys([*all_languages(plan), *others])), {})


def _phase_problems(plan: TranslationPlan, arm: str, phase: Phase) -> Iterator[str]:
    """A phase must learn from a parallel corpus, not from text with labels, and switch the words of one corpus only."""
    where, experiment = plan.where, plan.settings
    if phase.epochs is not None:
        yield f"arms.{arm}: {where}, a {experiment.task}, counts updates; epochs are for tasks with labels"
    if phase.translations:
        yield f"arms.{arm}.translations: are those of text with labels; {where} learns from more languages by `together_with`"
    if phase.switch is not None and experiment.together_with:
        yield f"arms.{arm}.switch: switches words of one corpus, and {where} learns from several by `together_with`; leave one out"


def _switching_problems(plan: TranslationPlan, arm: str, phase: Phase) -> Iterator[str]:
    """A phase that switches words needs a lexicon of the right unit, and a task phase that switches none takes no lexicon."""
    known, name, here = plan.config.lexicons, phase.lexicon or plan.settings.lexicon, f"arms.{arm} in {plan.where}"
    if phase.lexicon:
        yield from undefined(f"{here}.lexicon", phase.lexicon, known)
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
        yield f"{plan.where}.lexicon: is missing; arms.{arm} needs one"
    elif name in known and (unit := known[name].unit) != ("piece" if pieces else "word"):
        yield f"{here}: data {phase.data} cannot take the lexicon {name!r} of unit {unit}; it switches {'pieces' if pieces else 'words'}"


def _pieces_problems(plan: TranslationPlan, arm: str, phase: Phase) -> Iterator[str]:
    """Pieces are switched for the experiment's backbone, so the arm must start from no other."""
    pieces, own = phase.restores and phase.restores.pieces, plan.settings.backbone
    if pieces and (other := plan.backbone_of(arm).name) != own:
        yield f"arms.{arm} in {plan.where}: `{phase.data}` switches the pieces of {own!r}, but starts from {other!r}"


def _distillation_problems(plan: TranslationPlan, arm: str, phase: Phase) -> Iterator[str]:
    """What writes the targets of an arm is another arm of the experiment, which has targets of its own."""
    here, teacher = f"arms.{arm} in {plan.where}.targets_from", phase.targets_from
    if not teacher:
        return
    if phase.data != "task" or phase.untrained:
        yield f"{here}: is for the task phase of an arm that is trained; leave it out"
    elif teacher not in plan.arms:
        yield f"{here}: {teacher!r} is none of its arms, {plan.arms}; name one of them, or add it to run.arms"
    elif any(each.targets_from for each in plan.phases_of(teacher)):
        yield f"{here}: {teacher!r} learns itself what an arm has written; name an arm that learns from the text's own targets"
    if plan.settings.together_with:
        yield f"{here}: another arm writes the targets of one corpus, and the experiment learns from several by `together_with`"


def _lexicon_problems(plan: TranslationPlan, name: str) -> Iterator[str]:
    """A lexicon must be in the experiment's languages, and one of pieces in the pieces of its backbone."""
    if (lexicon := plan.config.lexicons.get(name)) is None:
        return
    learnt, own = plan.config.corpora.get(lexicon.corpus or ""), plan.settings.backbone
    if learnt and sorted(learnt.languages) != sorted(languages(plan)):
        yield f"lexicons.{name}.corpus: {lexicon.corpus!r} is in {list(learnt.languages)}, not in the languages of {plan.where}"
    if lexicon.unit == "piece" and lexicon.backbone != own:
        yield f"lexicons.{name}.backbone: {lexicon.backbone!r} is not that of {plan.where}, {own!r}; pieces must be its own"


def _all_tests(plan: TranslationPlan) -> list[str]:
    """The test sets of its corpus, and those of all experiments as models of another translate them."""
    others = [other for other in translations(plan.plans) if other.text]
    return [*plan.text.test, *(f"{other.name}@{testset}" for other in others for testset in other.text.test)]


def _corpus_problems(plan: TranslationPlan) -> Iterator[str]:
    """The corpus must be in source and target, and have documents in the source for summarisation alone."""
    where, experiment, corpus, pair = plan.where, plan.settings, plan.text, languages(plan)
    if sorted(pair) != sorted(corpus.languages):
        yield f"{where}: source and target {pair} are not the languages of corpus {plan.corpus!r}, {list(corpus.languages)}"
    if bool(corpus.documents) != (experiment.task == "summarisation"):
        has = "has none" if experiment.task == "summarisation" else "has some: set task: summarisation"
        yield f"{where}.task: {experiment.task} of corpus {plan.corpus!r}, which {has} (`documents`)"
    elif corpus.documents and corpus.documents.language != experiment.source:
        yield f"{where}.source: {experiment.source!r} is not the language of the documents, {corpus.documents.language!r}"


def _together_problems(plan: TranslationPlan) -> Iterator[str]:
    """Corpora that are learnt together with the experiment's must be others, of sentences with the same target."""
    where, target, known = f"{plan.where}.together_with", plan.settings.target, plan.config.corpora
    for other in plan.settings.together_with:
        yield from undefined(where, other, known)
        if other == plan.corpus:
            yield f"{where}: {other!r} is the experiment's own corpus"
        elif other in known and target not in known[other].languages:
            yield f"{where}: {other!r} is in {list(known[other].languages)}, not into {target!r}"
        elif other in known and known[other].documents:
            yield f"{where}: {other!r} has documents; sentences are needed"


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
        "distillation": "decoding.batch_tokens",
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
