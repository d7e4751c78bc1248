"""analyses: what is measured inside the models of a run: the settings, what the rules' jobs read, their flags, and the checks.

An analysis names models (backbones, and models of arms) and a text. Each of its stages (`cka`, `spectra`, `separability`) is a module of
`evidence` and writes one file under ``results/analyses/{name}/``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from workflow_scripts import registry
from workflow_scripts.config import paths
from workflow_scripts.config.analyses import Analysis
from workflow_scripts.config.configuration import Config
from workflow_scripts.evidence.analysis import Compared
from workflow_scripts.models.family import DEFAULT_FAMILY
from workflow_scripts.names import undefined
from workflow_scripts.run.jobs import Job, plugin_inputs
from workflow_scripts.stage import resource
from workflow_scripts.tasks.plan import BackbonePlan, Plans
from workflow_scripts.text import labelled
from workflow_scripts.text.languages import unknown_language

# ---------------------------------------------------------------------------------------------
# what a configuration means


def models_of_arms(plans: Plans) -> dict[str, BackbonePlan]:
    """Every model that an arm of the run makes → the backbone that it starts from."""
    return {
        f"{plan.name}/{arm}/seed{seed}/{phase.name}": plan.backbone_of(arm)
        for plan in plans.of_run
        for arm, phase in plan.phases
        for seed in plan.seeds
    }


def model_folder(name: str) -> str:
    """The folder of a model, of a backbone or of an arm."""
    return f"results/runs/{name}/model" if "/" in name else paths.backbone_model(name)


class Text(NamedTuple):
    """The text that an analysis reads."""

    files: dict[str, str]
    """Language → file, of all languages that the text has."""
    labelled: bool = False
    """Whether it is labelled examples, each of which is one text, whether it has one part or two."""
    documents: bool = False
    """Whether it is documents with their summaries; `</s>` between sentences is then read as in training."""


def text_of(config: Config, analysis: Analysis) -> Text:
    """The text that an analysis reads; where words are tagged or targets written, the texts without them."""
    name = analysis.corpus or ""
    if analysis.text:
        return Text({code: resource(path) for code, path in analysis.text.items()})
    if corpus := config.corpora.get(name):
        part = f"test/{analysis.testset or next(iter(corpus.test))}"
        files = {code: paths.corpus_text(config, name, part, code) for code in corpus.languages}
        return Text(files, documents=corpus.documents is not None)
    if (block := config.labelled.get(name)) is None:
        return Text({})
    found, examples = dict[str, str](), block.unit not in ("word", "target")
    for part in (f"test/{test}" for test in block.test):
        found.setdefault(block.language_of(part), paths.labelled_file(config, name, part, ".tsv" if examples else ""))
    return Text(found, labelled=examples)


def chosen_text(config: Config, analysis: Analysis) -> dict[str, str]:
    """Language → file, of the languages that are looked at."""
    files = text_of(config, analysis).files
    return {code: files[code] for code in analysis.languages or files}


def sources_read(config: Config) -> set[str]:
    """The keys of the sources that the run's analyses read: of a corpus the test set, or the text that it is held out from; of text with
    labels all of them, as each part leaves out what others have."""
    read: set[str] = set()
    for analysis in [config.analyses[name] for name in config.run.analyses if name in config.analyses]:
        corpus = analysis.corpus or ""
        if not reads_text(analysis) or analysis.text:
            continue
        if block := config.corpora.get(corpus):
            test = analysis.testset or next(iter(block.test))
            read.add(f"corpora.{corpus}.{f'test.{test}' if block.test[test].held_out is None else 'train'}")
        elif texts := config.labelled.get(corpus):
            read |= {f"labelled.{corpus}.{part.replace('/', '.')}" for part in labelled.sources(texts)}
    return read


def reads_text(analysis: Analysis) -> bool:
    """Whether any of the stages reads text."""
    return any(registry.entry("analysis", stage).reads_text for stage in analysis.stages)


def languages_for(backbone: BackbonePlan) -> list[str]:
    """The languages of the texts that the run's analyses of this backbone, or of one made from it, read."""
    config = backbone.plans.config
    wanted = [config.analyses[name] for name in analyses_of(backbone)]
    return sorted({code for analysis in wanted if reads_text(analysis) for code in chosen_text(config, analysis)})


def analyses_of(backbone: BackbonePlan) -> list[str]:
    """The run's analyses that look into a backbone, or into one that is made from it."""
    plans, known = backbone.plans, backbone.plans.config.analyses
    chosen = [name for name in plans.config.run.analyses if name in known]
    return [name for name in chosen if any(backbone in plans.backbone(model).chain for model in known[name].models)]


# ---------------------------------------------------------------------------------------------
# for the rules and the report


def model_folders(job: Job) -> list[str]:
    """The models that an analysis looks into."""
    return [model_folder(name) for name in job.analysis.models]


def texts(job: Job) -> list[str]:
    """The texts that an analysis reads."""
    return list(chosen_text(job.config, job.analysis).values())


def given_texts(job: Job, stage: str | None = None) -> list[str]:
    """The texts of an analysis that names files, in the order of the languages: a parameter that no command reads.

    Snakemake sorts the inputs that it records, and would not notice that two files change places. It compares parameters as a set: where no
    two files are named, this repeats `stage_flags`, so that what was made before stays.
    """
    found = texts(job)
    return found if job.analysis.text and len(found) > 1 else stage_flags(job, stage)


def plugin(job: Job) -> dict[str, list[str]]:
    """The files of the plugin that an analysis comes from."""
    return plugin_inputs(registry.entry("analysis", job.w.measure))


def stage_flags(job: Job, stage: str | None = None) -> list[str]:
    """What the command line of a stage, or of the wildcards' measure, says besides files and settings."""
    analysis, entry = job.analysis, registry.entry("analysis", stage or job.w.measure)
    flags = ["--names", *analysis.models, "--side", analysis.side]
    if analysis.base and entry.base:
        flags += ["--base", analysis.base]
    if entry.reads_text:
        flags += ["--languages", *chosen_text(job.config, analysis), *(["--parallel"] if analysis.parallel else [])]
        text = text_of(job.config, analysis)
        flags += [*(["--labelled"] if text.labelled else []), *(["--documents"] if text.documents else [])]
    return flags


def results(config: Config) -> list[str]:
    """All files that the run's analyses write."""
    return [paths.analysis_file(name, stage) for name in config.run.analyses for stage in config.analyses[name].stages]


# ---------------------------------------------------------------------------------------------
# what is wrong with an analysis


def problems(plans: Plans, name: str, known_by: dict[BackbonePlan, list[str]]) -> Iterator[str]:
    """What is wrong with an analysis and types cannot tell; `known_by` has the languages of every backbone that is made here."""
    where, analysis = f"analyses.{name}", plans.config.analyses[name]
    known = plans.backbones | models_of_arms(plans)
    if not analysis.models:
        yield f"{where}.models: names no model"
    if len({*analysis.models}) < len(analysis.models):
        yield f"{where}.models: {analysis.models} names a model twice"
    for model in analysis.models:
        yield from undefined(f"{where}.models", model, known)
    if analysis.base is not None:
        yield from undefined(f"{where}.base", analysis.base, analysis.models)
    made = {model: known[model] for model in analysis.models if model in known}
    languages = None
    if reads_text(analysis):
        found = [*_text_problems(plans.config, where, analysis, {*made.values()}, known_by)]
        yield from found
        languages = None if found else list(chosen_text(plans.config, analysis))
    sizes = {model: small for model, backbone in made.items() if (small := backbone.origin.made_here)}
    compared = Compared(where, analysis, sizes, languages)
    for stage in analysis.stages:
        if check := registry.entry("analysis", stage).problems:
            yield from check(compared)
    for model, origin in ((model, backbone.origin) for model, backbone in made.items()):
        if analysis.side == "decoder" and origin.kind == "small":
            family = registry.entry("family", origin.family or DEFAULT_FAMILY)
            if not family.decoder:
                yield f"{where}.side: {model} is an encoder (family {family.name}), which has no decoder"


def _text_problems(
    config: Config, where: str, analysis: Analysis, backbones: set[BackbonePlan], known_by: dict[BackbonePlan, list[str]]
) -> Iterator[str]:
    """What is wrong with the text of an analysis, or which of its languages a backbone does not know."""
    if bool(analysis.text) == bool(analysis.corpus):
        yield f"{where}: give either `text`, a file for each language, or `corpus`, whose test set is read; `stages: [spectra]` needs none"
        return
    if analysis.corpus:
        yield from undefined(f"{where}.corpus", analysis.corpus, [*config.corpora, *config.labelled])
        if analysis.corpus in config.corpora and analysis.testset:
            yield from undefined(f"{where}.testset", analysis.testset, config.corpora[analysis.corpus].test)
        if analysis.corpus in config.labelled and analysis.parallel:
            yield (
                f"{where}.parallel: the files of text with labels have each sentence once, so that lines are no translations; "
                "set it to false, or give parallel files as `text`"
            )
        if analysis.corpus in config.labelled and analysis.testset:
            yield f"{where}.testset: is for `corpora`; of text with labels the first test set in each language is read. Leave it out"
    elif analysis.testset:
        yield f"{where}.testset: is for `corpus`"
    if analysis.corpus and analysis.corpus not in {**config.corpora, **config.labelled}:
        return
    if analysis.testset and analysis.corpus in config.corpora and analysis.testset not in config.corpora[analysis.corpus].test:
        return
    has = text_of(config, analysis).files
    asked = analysis.languages or list(has)
    if missing := [code for code in asked if code not in has]:
        yield f"{where}.languages: there is no text for {', '.join(missing)}; the text has {', '.join(has)}"
    for code in has:
        if said := unknown_language(code):
            yield f"{where}: {said}"
    for backbone in sorted(backbones & known_by.keys(), key=lambda one: one.name):
        if unknown := [code for code in asked if code not in known_by[backbone]]:
            yield f"{where}: backbone {backbone.name} does not know {', '.join(unknown)}, it knows {', '.join(known_by[backbone])}"
