"""consistency: checks of the configuration that types cannot express: across keys, names, languages, files.

What is particular to a task is checked by the task (`Task.problems`).

Names that are defined nowhere, arms of unequal length, languages that a corpus or backbone has not: each problem is a
line that names the key, what is wrong with it, and what would be right.
"""

import dataclasses
from collections.abc import Iterator

from pydantic import ValidationError

from workflow_scripts.names import is_name, undefined
from workflow_scripts.run import analyses, backbone_checks, text_checks, transfers
from workflow_scripts.run.config import Config, LexiconStages, data_file, paths_of
from workflow_scripts.run.explanations import explain
from workflow_scripts.run.inputs import backbone_users, languages_known
from workflow_scripts.tasks.experiment import Phase, lexicon_corpus, lexicons_used, phases_of, pretrained_in, training_adapter, trains
from workflow_scripts.tasks.table import task_of
from workflow_scripts.tasks.transfer import is_learnt, transfer_lexicons
from workflow_scripts.tasks.translation import translations
from workflow_scripts.text.languages import LANGUAGES
from workflow_scripts.training.settings import Training


def problems(config: Config) -> Iterator[str]:
    """What types cannot tell: names that are defined nowhere, unequal arms, languages, files.

    Analyses look into models of experiments, and are checked once these are sound.
    """
    found = list(_before_analyses(config))
    yield from found or [*_analysis_problems(config), *transfers.problems(config)]


def _before_analyses(config: Config) -> Iterator[str]:
    """What is wrong with everything but the settings of analyses."""
    for what, names, defined in (
        ("run.experiments", config.run.experiments, config.experiments),
        ("run.arms", config.run.arms, config.arms),
        ("run.analyses", config.run.analyses, config.analyses),
    ):
        needed = what == "run.experiments" or (what == "run.arms" and any(map(trains, config.experiments.values())))
        if not names and needed:
            yield f"{what}: is empty, nothing would be run"
        if len(set(names)) < len(names):
            yield f"{what}: {names} names something twice"
        for name in names:
            yield from undefined(what, name, defined)
    if (
        not config.run.seeds
        or len(set(config.run.seeds)) < len(config.run.seeds)
        or not all(0 < seed < 2**32 for seed in config.run.seeds)  # sacreBLEU treats 0 as "not given"
    ):
        yield f"run.seeds: {config.run.seeds} must be different whole numbers from 1 to 2³² − 1, at least one"
    for name, experiment in config.experiments.items():
        if isinstance(seeds := getattr(experiment, "seeds", None), list) and (
            not seeds or len(set(seeds)) < len(seeds) or (not set(seeds) <= set(config.run.seeds) and name in config.run.experiments)
        ):
            yield f"experiments.{name}.seeds: {seeds} must be some of run.seeds, {config.run.seeds}, each once"
    for section in ("corpora", "labelled", "aligned", "lexicons", "backbones", "arms", "experiments", "analyses"):
        for name in getattr(config, section):
            if not is_name(name):
                yield f"{section}.{name}: names are folders: letters, digits, - and _ only"
    for name, corpus in config.corpora.items():
        yield from text_checks.corpus_problems(f"corpora.{name}", corpus)
    for name, labelled in config.labelled.items():
        yield from text_checks.labelled_problems(f"labelled.{name}", labelled)
    for name, aligned in config.aligned.items():
        yield from text_checks.aligned_problems(f"aligned.{name}", aligned)
    for name, lexicon in config.lexicons.items():
        yield from _lexicon_problems(name, lexicon, config)
    for name, phases in config.arms.items():
        if not phases or phases[-1].data != "task" or [p.data for p in phases].count("task") != 1 or len(phases) > 2:
            yield f"arms.{name}: an arm is one `data: task` phase, with at most one pretext phase before it"
        for phase in phases:
            if (phase.updates is None) == (phase.epochs is None):
                yield f"arms.{name}: a phase has either updates or epochs"
            if phase.epochs is not None and phase.data != "task":
                yield f"arms.{name}: a pretext phase counts updates; epochs are for the task phase of tasks with labels"
            for key in ("updates", "epochs"):
                if (count := getattr(phase, key)) is not None and count < 1:
                    yield f"arms.{name}: {key} must be at least 1, got {count}"
            for key in phase.training:
                yield from undefined(f"arms.{name}.training", key, {f.name: 0 for f in dataclasses.fields(Training)})
            if "updates" in phase.training:
                yield f"arms.{name}.training.updates: set `updates` of the phase itself instead"
            if phase.training.get("pairs") and phase.data != "task":
                yield f"arms.{name}.training.pairs: is for the task phase; a pretext phase restores all sentences of the corpus"
            try:
                training_adapter().validate_python({k: v for k, v in phase.training.items() if hasattr(Training, k)})
            except ValidationError as error:
                yield from (f"arms.{name}.training.{explain(problem, Training)}" for problem in error.errors())
        if name == "backbone":
            yield "arms.backbone: is what the report calls the model that arms start from; take another name"
    yield from _unequal_arms(config)
    made = {data_file(config, name): name for name in config.data}
    for where, path in paths_of(config):
        if path.startswith("results/data/"):
            yield from undefined(where, path, made)
        if set(path) & set("{}\0"):
            yield f"{where}: {path!r} has braces or a NUL, which Snakemake cannot take in a file's name; rename the file"
    for name, backbone in config.backbones.items():
        if backbone.small and backbone.small.d_model % backbone.small.heads:
            yield f"backbones.{name}.small: d_model {backbone.small.d_model} must be a multiple of heads {backbone.small.heads}"
        if backbone.pretraining and backbone.pretraining.training.pairs:
            yield f"backbones.{name}.{backbone.kind}.training.pairs: is for a task phase; a backbone reads all of its text"
    yield from backbone_checks.problems(config)
    for name in config.run.experiments:
        if name in config.experiments:
            yield from task_of(config.experiments[name]).problems(config, name)


def _analysis_problems(config: Config) -> Iterator[str]:
    """What is wrong with the run's analyses, and with backbones that only they use."""
    chosen = [name for name in config.run.analyses if name in config.analyses]
    # a vocabulary that is made here has tags for no more languages than those that it was made for; an XLM-R has no tags
    origins = {name: analyses.origin_of(config, name) for name in config.backbones}
    made = [name for name, origin in origins.items() if origin and origin.kind == "small" and origin.family != "xlmr"]
    known_by = {name: languages_known(config, name) for name in made if backbone_users(config, name)}
    sound = True
    for name in chosen:
        for problem in analyses.problems(config, name, known_by):
            sound = False
            yield problem
    for name in config.backbones if sound else ():
        if backbone_users(config, name) or not (users := analyses.analyses_of(config, name)):
            continue
        kind, block = config.backbones[name].kind, config.backbones[name].pretraining
        if missing := config.backbones[name].lacks:
            yield f"backbones.{name}: kind {kind} needs `{missing}`"
        text = pretrained_in(config, name) if block else analyses.languages_for(config, name)
        for code in analyses.languages_for(config, name):
            if code not in text:
                yield f"backbones.{name}.{kind}.text: no text for {code!r}, which analyses.{users[0]} needs; it has {text}"


def _unequal_arms(config: Config) -> Iterator[str]:
    """Arms of an experiment that are trained for different lengths; each disagreement is reported once."""
    told: set[str] = set()
    for name in config.run.experiments:
        if (experiment := config.experiments.get(name)) is None:
            continue
        arms = dict.fromkeys(arm for arm, _ in phases_of(config, experiment))
        totals = {arm: _length(config.arms[arm]) for arm in arms}
        if len(set(totals.values())) > 1 and str(totals) not in told:
            told.add(str(totals))
            yield (
                "run.arms: all arms of an experiment need the same number of updates in all (of epochs, where the task counts those), "
                f"or the comparison means nothing: {totals} of {name}"
            )


def _length(phases: list[Phase]) -> str:
    """What must be the same for all arms: updates of all phases, or epochs of the last."""
    if phases and phases[-1].epochs is not None:
        return f"{phases[-1].epochs} epochs"
    return f"{sum(phase.updates or 0 for phase in phases)} updates"


def _lexicon_problems(name: str, lexicon: LexiconStages, config: Config):
    if lexicon.unit == "piece":
        yield from undefined(f"lexicons.{name}.backbone", lexicon.backbone or "", config.backbones)
        if lexicon.vectors or lexicon.mapping.mode not in ("unsupervised", "identical", "numerals"):
            yield f"lexicons.{name}: with unit piece, vectors are learnt and mapped by mode unsupervised, identical or numerals"
    elif lexicon.backbone:
        yield f"lexicons.{name}.backbone: is for unit piece only"
    users = [e for key, e in translations(config).items() if key in config.run.experiments and name in lexicons_used(config, e)]
    if lexicon.corpus:
        yield from undefined(f"lexicons.{name}.corpus", lexicon.corpus, config.corpora)
    corpora = {corpus: config.corpora[corpus] for e in users if (corpus := lexicon_corpus(config, e, name)) in config.corpora}
    if is_learnt(lexicon) and lexicon.corpus in config.corpora and name in transfer_lexicons(config):
        corpora[str(lexicon.corpus)] = config.corpora[str(lexicon.corpus)]
    pairs = {"-".join(corpus.languages) for corpus in corpora.values()}
    for key in ("dictionary", "gold"):
        for pair in getattr(lexicon, key):
            if len(codes := pair.split("-")) != 2 or not all(code in LANGUAGES for code in codes):
                yield f"lexicons.{name}.{key}: {pair!r} is no pair of languages like 'de-en'"
            if (back := "-".join(pair.split("-")[::-1])) in pairs - {pair}:
                yield f"lexicons.{name}.{key}: {pair!r} must be in the order of the corpus's languages, {back!r}"
    mode = lexicon.mapping.mode
    for corpus in [corpus for corpus, block in corpora.items() if mode == "aligned" and block.documents]:
        yield f"lexicons.{name}.mapping.mode: aligned needs sentences and their translations; corpus {corpus!r} has documents and summaries"
    for pair in sorted(pairs):
        if mode in ("semi_supervised", "supervised", "dictionary") and pair not in lexicon.dictionary:
            yield f"lexicons.{name}.dictionary: mapping.mode {mode} needs one for {pair!r}"
        for code in pair.split("-") if mode == "mapped" else ():
            if code not in lexicon.vectors:
                yield f"lexicons.{name}.vectors: mapping.mode mapped needs the mapped vectors of {code!r}"
