"""consistency: checks of the configuration that types cannot express: across keys, names, languages, files.

They find names that are defined nowhere, arms of unequal length, and languages that a corpus or backbone has not. Each problem is a line
that names the key, what is wrong with it, and what would be right.

What is particular to a task is checked by the task (`Task.problems`), text by `corpus_checks`, `labelled_checks` and `aligned_checks`,
and backbones by `backbone_checks`. Data to acquire have been checked before (`data_checks`).
"""

from collections.abc import Iterable, Iterator

from workflow_scripts import registry
from workflow_scripts.config import paths
from workflow_scripts.config.configuration import Config, LexiconStages
from workflow_scripts.models.family import DEFAULT_FAMILY
from workflow_scripts.names import undefined, unfit
from workflow_scripts.run import aligned_checks, analyses, arm_checks, backbone_checks, corpus_checks, labelled_checks, transfer_comparisons
from workflow_scripts.run.backbone_uses import backbone_users, languages_known
from workflow_scripts.run.loading import NAMED_PARTS, WITH_PARTS
from workflow_scripts.run.text_checks import language_problems
from workflow_scripts.run.uses import data_file, paths_of
from workflow_scripts.tasks.crosslingual import crosslingual_lexicons, is_learnt
from workflow_scripts.tasks.plan import BackbonePlan, Plans
from workflow_scripts.tasks.translation import translations_of_run
from workflow_scripts.text.corpus import Corpus


def problems(config: Config) -> Iterator[str]:
    """Every line that this yields tells a problem that types cannot see.

    Names of parts of texts come first, as files are looked up by them. Analyses and transfers look into models of experiments, and are
    checked once everything else is sound.
    """
    if names := [*_part_name_problems(config)]:
        yield from names
        return
    plans = Plans(config)
    of_experiments = [problem for plan in plans.of_run for problem in plan.task.problems(plan)]
    found = [
        *_run_problems(plans),
        *_seed_problems(config),
        *_name_problems(config),
        *_text_problems(plans),
        *_lexicon_problems(plans),
        *_engine_problems(plans),
        *arm_checks.problems(plans),
        *_file_problems(plans),
        *(problem for backbone in plans.backbones.values() for problem in backbone_checks.problems(backbone)),
        *of_experiments,
        # which experiments are needed is known where all of them are sound
        *(problem for plan in ([] if of_experiments else plans.needed) for problem in arm_checks.bridge_problems(plan)),
    ]
    yield from found or [*_analysis_problems(plans), *transfer_comparisons.problems(plans)]


# ---------------------------------------------------------------------------------------------
# what is run


def _run_problems(plans: Plans) -> Iterator[str]:
    """A run names experiments, arms and analyses that are defined; it needs experiments, and arms if any experiment trains."""
    config, any_trains = plans.config, any(plan.trains for plan in plans.experiments.values())
    yield from _chosen_problems("run.experiments", config.run.experiments, config.experiments, needed=True)
    if isinstance(config.run.zero_shot, list):
        yield from _chosen_problems("run.zero_shot", config.run.zero_shot, config.experiments, needed=False)
    yield from _chosen_problems("run.arms", config.run.arms, config.arms, needed=any_trains)
    yield from _chosen_problems("run.analyses", config.run.analyses, config.analyses, needed=False)


def _chosen_problems(where: str, names: list[str], defined: Iterable[str], *, needed: bool) -> Iterator[str]:
    """Each name of a list must be defined and stand there once."""
    if not names and needed:
        yield f"{where}: is empty, nothing would be run"
    if len(set(names)) < len(names):
        yield f"{where}: {names} names something twice"
    for name in names:
        yield from undefined(where, name, defined)


def _engine_problems(plans: Plans) -> Iterator[str]:
    """An engine must have the settings that it is given, of the right types: it is called when all has been trained."""
    for plan in plans.of_run:
        if decoding := getattr(plan.settings, "decoding", None):
            engine = registry.entry("engine", decoding.engine)
            yield from arm_checks.own_problems(f"{plan.where}.decoding.engine_settings", engine, decoding.engine_settings)


def _seed_problems(config: Config) -> Iterator[str]:
    """The run needs different seeds, and an experiment may take only some of these."""
    of_run = config.run.seeds
    in_range = all(0 < seed < 2**32 for seed in of_run)  # sacreBLEU treats 0 as "not given"
    if not _are_different(of_run) or not in_range:
        yield f"run.seeds: {of_run} must be different whole numbers from 1 to 2³² − 1, at least one"
    for name, experiment in config.experiments.items():
        seeds = getattr(experiment, "seeds", None)
        if not isinstance(seeds, list):
            continue
        strange = not set(seeds) <= set(of_run) and name in config.run.experiments
        if not _are_different(seeds) or strange:
            yield f"experiments.{name}.seeds: {seeds} must be some of run.seeds, {of_run}, each once"


def _are_different(seeds: list[int]) -> bool:
    """Whether there is a seed at all, and none of them twice."""
    return bool(seeds) and len(set(seeds)) == len(seeds)


def _name_problems(config: Config) -> Iterator[str]:
    """Results lie in folders that are called like the blocks of the configuration."""
    for section in ("corpora", "labelled", "aligned", "lexicons", "backbones", "arms", "experiments", "analyses"):
        yield from unfit(section, getattr(config, section))


def _part_name_problems(config: Config) -> Iterator[str]:
    """Results of a test set or a translation lie in a folder that is called like it."""
    for section in WITH_PARTS:
        for name, block in getattr(config, section).items():
            named = {part: getattr(block, part, {}) for part in NAMED_PARTS}
            yield from (line for part, own in named.items() if isinstance(own, dict) for line in unfit(f"{section}.{name}.{part}", own))


# ---------------------------------------------------------------------------------------------
# text and files


def _text_problems(plans: Plans) -> Iterator[str]:
    """Each kind of text has checks of its own."""
    config = plans.config
    for name, corpus in config.corpora.items():
        yield from corpus_checks.corpus_problems(f"corpora.{name}", corpus)
    for name, labelled in config.labelled.items():
        tasks = [plan.task for plan in plans.experiments.values() if plan.corpus == name and plan.task.text == "labelled"]
        number_tasks = bool(tasks) and all(task.any_number for task in tasks)
        yield from labelled_checks.labelled_problems(f"labelled.{name}", labelled, number_tasks)
    for name, aligned in config.aligned.items():
        yield from aligned_checks.aligned_problems(f"aligned.{name}", aligned)


def _file_problems(plans: Plans) -> Iterator[str]:
    """A file that the run makes must belong to a block of `data` or to a corpus, and Snakemake must be able to take its name."""
    config = plans.config
    made = {"results/data/": [data_file(config, name) for name in config.data], "results/corpora/": _text_of_corpora(config)}
    for where, path in paths_of(plans):
        for folder, files in made.items():
            if path.startswith(folder):
                yield from undefined(where, path, files)
        if set(path) & set("{}\0"):
            yield f"{where}: {path!r} has braces or a NUL, which Snakemake cannot take in a file's name; rename the file"


def _text_of_corpora(config: Config) -> list[str]:
    """Both sides of all parts of all corpora."""
    parts = {name: ["train", *paths.held_out_parts(config, name)] for name in config.corpora}
    sides = [(name, part, code) for name in parts for part in parts[name] for code in config.corpora[name].languages]
    return [paths.corpus_text(config, *side) for side in sides]


# ---------------------------------------------------------------------------------------------
# lexicons


def _lexicon_problems(plans: Plans) -> Iterator[str]:
    """A lexicon must fit its unit, and have what its mapping needs for each corpus that it is learnt from."""
    config = plans.config
    for name, lexicon in config.lexicons.items():
        where = f"lexicons.{name}"
        yield from _unit_problems(where, lexicon, config.backbones)
        if lexicon.corpus:
            yield from undefined(f"{where}.corpus", lexicon.corpus, config.corpora)
        corpora = _learnt_from(name, lexicon, plans)
        pairs = {"-".join(corpus.languages) for corpus in corpora.values()}
        yield from _pair_problems(where, lexicon, pairs)
        yield from _mapping_problems(where, lexicon, corpora, pairs)


def _unit_problems(where: str, lexicon: LexiconStages, backbones: Iterable[str]) -> Iterator[str]:
    """A lexicon of pieces belongs to one backbone and learns its vectors itself; a lexicon of words has no backbone."""
    if lexicon.unit == "piece":
        yield from undefined(f"{where}.backbone", lexicon.backbone or "", backbones)
        if lexicon.vectors or lexicon.mapping.mode not in ("unsupervised", "identical", "numerals"):
            yield f"{where}: with unit piece, vectors are learnt and mapped by mode unsupervised, identical or numerals"
    elif lexicon.backbone:
        yield f"{where}.backbone: is for unit piece only"


def _learnt_from(name: str, lexicon: LexiconStages, plans: Plans) -> dict[str, Corpus]:
    """The corpora from which the run learns a lexicon, for translations and for transfer between languages."""
    learnt = [plan.lexicon_corpus(name) for plan in translations_of_run(plans) if name in plan.lexicons]
    if is_learnt(lexicon) and name in crosslingual_lexicons(plans):
        learnt.append(str(lexicon.corpus))
    return {corpus: plans.config.corpora[corpus] for corpus in learnt if corpus in plans.config.corpora}


def _pair_problems(where: str, lexicon: LexiconStages, pairs: set[str]) -> Iterator[str]:
    """Dictionaries are given for pairs of known languages, in the order of the corpus's languages."""
    for key in ("dictionary", "gold"):
        for pair in getattr(lexicon, key):
            if len(codes := pair.split("-")) != 2:
                yield f"{where}.{key}: {pair!r} is no pair of languages like 'de-en'"
            else:
                yield from (problem for code in codes for problem in language_problems(f"{where}.{key}.{pair}", code))
            if (back := "-".join(pair.split("-")[::-1])) in pairs - {pair}:
                yield f"{where}.{key}: {pair!r} must be in the order of the corpus's languages, {back!r}"


def _mapping_problems(where: str, lexicon: LexiconStages, corpora: dict[str, Corpus], pairs: set[str]) -> Iterator[str]:
    """Each mode of mapping needs sentences in step, a dictionary, or mapped vectors."""
    mode = lexicon.mapping.mode
    for corpus in [corpus for corpus, block in corpora.items() if mode == "aligned" and block.documents]:
        yield f"{where}.mapping.mode: aligned needs sentences and their translations; corpus {corpus!r} has documents and summaries"
    for pair in sorted(pairs):
        if mode in ("semi_supervised", "supervised", "dictionary") and pair not in lexicon.dictionary:
            yield f"{where}.dictionary: mapping.mode {mode} needs one for {pair!r}"
        for code in pair.split("-") if mode == "mapped" else ():
            if code not in lexicon.vectors:
                yield f"{where}.vectors: mapping.mode mapped needs the mapped vectors of {code!r}"


# ---------------------------------------------------------------------------------------------
# analyses


def _analysis_problems(plans: Plans) -> Iterator[str]:
    """The run's analyses must be sound before the backbones that only they use are looked at."""
    known, config = _languages_of_small_backbones(plans), plans.config
    chosen = [name for name in config.run.analyses if name in config.analyses]
    found = [problem for name in chosen for problem in analyses.problems(plans, name, known)]
    yield from found or (problem for backbone in plans.backbones.values() for problem in _analysed_backbone_problems(backbone))


def _languages_of_small_backbones(plans: Plans) -> dict[BackbonePlan, list[str]]:
    """The languages of each backbone that is made here for experiments.

    Such a vocabulary has tags for no more languages than those that it was made for; some families have no tags.
    """
    made = [backbone for backbone in plans.backbones.values() if backbone.origin.kind == "small"]
    tagged = [backbone for backbone in made if registry.entry("family", backbone.origin.family or DEFAULT_FAMILY).tags]
    return {backbone: languages_known(backbone) for backbone in tagged if backbone_users(backbone)}


def _analysed_backbone_problems(backbone: BackbonePlan) -> Iterator[str]:
    """A backbone that only analyses use needs its settings, and text in each of their languages."""
    if backbone_users(backbone) or not (users := analyses.analyses_of(backbone)):
        return
    block = backbone.settings
    if missing := block.lacks:
        yield f"{backbone.where}: kind {block.kind} needs `{missing}`"
    needed = analyses.languages_for(backbone)
    text = backbone.pretrained_in if block.made_here else needed
    for code in needed:
        if code not in text:
            yield f"{backbone.where_made}.text: no text for {code!r}, which analyses.{users[0]} needs; it has {text}"
    if task := [code for code, path in (block.pretraining.text if block.pretraining else {}).items() if path == "task"]:
        said = "no experiment of the run uses this backbone, so there is no task whose text it could read"
        file = f"results/corpora/CORPUS.xx-yy/train.{task[0]}"
        yield f"{backbone.where_made}.text.{task[0]}: {said}; name a file, such as {file}"
