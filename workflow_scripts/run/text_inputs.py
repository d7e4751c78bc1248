"""text_inputs: what the jobs of data and text read, and their flags."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from workflow_scripts.config import paths
from workflow_scripts.config.phases import Phase
from workflow_scripts.models.decoding import Decoding
from workflow_scripts.run.backbone_uses import of_users
from workflow_scripts.run.jobs import Job, as_json, writing_plugins
from workflow_scripts.run.uses import data_file
from workflow_scripts.stage import resource
from workflow_scripts.tasks import translation
from workflow_scripts.tasks.plan import Plan
from workflow_scripts.text import labelled


def data_sources(job: Job) -> dict[str, Any]:
    """What data are made of besides the network: other data, and the environment of mtdata, whose date does not count."""
    block = job.config.data[job.w.data]
    joined = {"joined": [data_file(job.config, name) for name in block.join]} if block.join else {}
    return joined | ({"environment": "results/environments/mtdata.json"} if block.mtdata else {})


def corpus_sources(job: Job) -> list[str]:
    """The files that a corpus, or one held-out part of it, is read from."""
    corpus = job.corpus
    part = getattr(job.w, "part", "train")
    every = [corpus.train, corpus.dev, *corpus.test.values()]
    # dev leaves out what the test sets have; corpus.json has the checksums of all
    sources = {"train": every, "dev": every[1:]}.get(part) or [corpus.test[part.removeprefix("test/")]]
    return list(dict.fromkeys(resource(path) for source in sources for path in (source.paths() or corpus.train.paths())))


def corpus_settings(job: Job) -> str:
    """The corpus's block, with the embedded files where they really are."""
    return as_json(job.corpus.at_hand())


def held_out(job: Job, side: str) -> list[str]:
    """One side (the wildcard `a` or `b`) of all parts of a corpus that nothing is trained on."""
    return [
        paths.corpus_text(job.config, job.w.corpus, part, getattr(job.w, side)) for part in paths.held_out_parts(job.config, job.w.corpus)
    ]


def others_held_out(job: Job, side: str) -> list[str]:
    """What other text holds out, and the training text of the corpus must not have either.

    These are the references that the corpus's models translate zero-shot, and the dev and test sets of experiments that know the corpus.
    Such an experiment starts from the model of an arm that was trained on the corpus, or looks into such a model. It may also read the
    corpus in a phase before the task, or switch words by a lexicon that was aligned in it.
    """
    own, experiments = paths.corpus_folder(job.config, job.w.corpus), job.plans.experiments
    trained = {each: experiments[arm.experiment] for each in job.plans.backbones_used if (arm := each.settings.arm)}
    learnt = [backbone for backbone, plan in trained.items() if job.w.corpus in _corpora_learnt(plan)]
    held_out = {path for backbone in learnt for path in of_users(backbone, "held_out_text")}
    known = [plan for plan in job.plans.of_run if job.w.corpus in _corpora_known(plan)]
    held_out |= {path for plan in known for path in plan.task.held_out_text(plan)}
    others = {path for path in held_out if not path.startswith(f"{own}/")}
    return sorted({*translation.zero_shot_references(job.plans, job.w.corpus, getattr(job.w, side)), *others})


def _corpora_learnt(plan: Plan) -> set[str]:
    """The texts that an experiment's arms are trained on, and those in which its lexicons were aligned."""
    return {*plan.corpora_learnt, *_corpora_aligned(plan)}


def _corpora_aligned(plan: Plan) -> set[str]:
    """The corpora whose pairs an experiment's lexicons are made of; other lexicons do not know which sentences belong together."""
    return {plan.lexicon_corpus(name) for name in plan.lexicons if plan.config.lexicons[name].mapping.mode == "aligned"}


def _corpora_known(plan: Plan) -> set[str]:
    """The corpora besides its own that an experiment knows from elsewhere: by its lexicons and the phases before its task, or by the models
    that it looks into."""
    if plan.trains:
        return {*plan.corpora_read, *_corpora_aligned(plan)}
    models = [plan.other(model.experiment) for model in plan.settings.models.values() if model.experiment]
    return {corpus for model in models for corpus in _corpora_learnt(model)}


def labelled_sources(job: Job) -> list[str]:
    """The files of all parts. Each part's job reads all of them, as examples of one part are left out of the others."""
    return list(dict.fromkeys(map(resource, labelled.paths(job.labelled))))


def labelled_settings(job: Job) -> str:
    """The labelled text's block, with the embedded files where they really are.

    What has its default is left out: test sets in two hundred languages must fit into one argument, which has 128 kB at most.
    """
    return json.dumps(_chosen(job.labelled.at_hand()), ensure_ascii=False)


def _chosen(value: Any) -> Any:
    """Settings as plain data, without those that have their default."""
    if isinstance(value, dict):
        return {key: _chosen(part) for key, part in value.items()}
    if not dataclasses.is_dataclass(value):
        return value
    given = {field: getattr(value, field.name) for field in dataclasses.fields(value)}
    return {field.name: _chosen(part) for field, part in given.items() if part != _default(field)}


def _default(field: dataclasses.Field) -> Any:
    factory: Any = field.default_factory
    return field.default if factory is dataclasses.MISSING else factory()


def translated_targets(job: Job) -> str:
    """The flag with the languages of targets, before and after a model has translated the training text; none without targets."""
    block = job.labelled
    if block.unit != "target":
        return ""
    return f"--target-languages {block.language_of_targets('train')} {block.language_of_targets(f'translated/{job.w.name}')}"


def translated_form(job: Job) -> str:
    """The flags with what is done to all texts of a labelled text, and so to those that a model has translated."""
    block = job.labelled
    return " ".join([*(["--lowercase"] if block.lowercase else []), *([f"--min-words {block.min_words}"] if block.min_words else [])])


def translated_before(job: Job) -> list[str]:
    """The tables of dev and test sets in the language into which a model translates the training text."""
    before = labelled.parts_before(job.labelled, f"translated/{job.w.name}")
    return [paths.labelled_file(job.config, job.w.labelled, part, ".tsv") for part in before]


def translating_model(job: Job) -> str:
    """The model that translates the training text of a labelled text, see `LabelledSource.by`."""
    by = job.labelled.translations[job.w.name].by
    if "backbone" in by:
        return paths.backbone_model(by["backbone"])
    return paths.trained_model(by["experiment"], by["arm"], job.plans.experiments[by["experiment"]].seeds[0], "finetune")


def translating_settings(job: Job) -> str:
    """How that model decodes, as JSON: as in its experiment; a backbone has none, and decodes by default."""
    return as_json(_translating(job)[0])


def translating_plugin(job: Job) -> dict[str, list[str]]:
    """The files of the plugins that this decoding uses: of the generator, and of the engine unless the generator writes itself."""
    return writing_plugins(*_translating(job))


def _translating(job: Job) -> tuple[Decoding, list[Phase]]:
    """How that model decodes, and the phases of its arm."""
    by = job.labelled.translations[job.w.name].by
    if "backbone" in by:
        return Decoding(), []
    plan = job.plans.experiments[by["experiment"]]
    return plan.settings.decoding, plan.phases_of(by["arm"])
