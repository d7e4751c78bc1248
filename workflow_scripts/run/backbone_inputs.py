"""backbone_inputs: what the jobs of backbones read, and their flags."""

from __future__ import annotations

import dataclasses
import json
import os
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from workflow_scripts import registry
from workflow_scripts.config import paths
from workflow_scripts.models.fairseq_files import files_of
from workflow_scripts.models.recognition import family_of
from workflow_scripts.models.templates import Templates
from workflow_scripts.run.backbone_uses import backbone_users, keeps_head, languages_known, made_from, of_users, writes_text
from workflow_scripts.run.jobs import Job, asks_for_labels, plugin_inputs, templates_of
from workflow_scripts.stage import InputError, resource
from workflow_scripts.tasks import crosslingual, retrieval, translation, verbaliser
from workflow_scripts.tasks.plan import BackbonePlan, Plan
from workflow_scripts.training.backbone import Backbone


def backbone_languages(job: Job) -> list[str]:
    """The languages that the backbone must know."""
    return languages_known(job.backbone)


def encoder_will_do(job: Job) -> str:
    """The flag for a backbone that has no text to write: it may be an encoder alone."""
    return "" if writes_text(job.backbone) else "--encoder-will-do"


def _reads_text(block: Backbone) -> bool:
    """Whether a backbone is made of, or trimmed to, the experiments' text."""
    return not (block.published or block.kind == "converted") or block.trim


def backbone_task_text(job: Job) -> list[str]:
    """The experiments' training text, or of an arm's model that of the arm.

    Where the vocabulary is cut down to it, it needs the pieces of switched words as well: lexicons with words from elsewhere belong to it.
    So does all text of the models that are made from it.
    """
    block = job.backbone.settings
    if not _reads_text(block):
        return []
    if block.arm:
        trained = job.plans.experiments[block.arm.experiment]
        return sorted(trained.task.training_text(trained))
    read = set(of_users(job.backbone, "training_text"))
    if block.trim:
        users = backbone_users(job.backbone)
        read |= {path for plan in users for path in (*_words_from_elsewhere(plan), *_text_from_elsewhere(plan))}
        read |= {path for made in made_from(job.backbone) for path in _pretrained_on(made)}
    return sorted(read)


def _pretrained_on(backbone: BackbonePlan) -> set[str]:
    """The files that a backbone is pretrained on here, but for the experiments' own."""
    block, config = backbone.settings.pretraining, backbone.plans.config
    if block is None:
        return set()
    sides = [(name, code) for name in block.bitext for code in config.corpora[name].languages]
    pairs = {paths.corpus_text(config, name, part, code) for name, code in sides for part in ("train", "dev")}
    return {resource(path) for path in block.text.values() if path != "task"} | pairs


def _words_from_elsewhere(plan: Plan) -> list[str]:
    """The files of an experiment's lexicons whose words its own text need not have: given ones, and those of another corpus."""
    if plan.task.text == "labelled":
        return crosslingual.lexicon_files(plan)
    files: list[str] = []
    for used in plan.lexicons:
        block = plan.config.lexicons[used]
        given = block.vectors or block.mapping.mode == "dictionary" or plan.lexicon_corpus(used) != plan.corpus
        # pieces are the backbone's own
        if given and block.unit == "word":
            files += translation.lexicon_files(plan, used)
    return files


def _text_from_elsewhere(plan: Plan) -> list[str]:
    """The training text, in the experiment's languages, that its phases read besides that of its own corpus."""
    sides = [(each, code) for each in plan.corpora_read for code in plan.config.corpora[each].languages if code in plan.languages]
    return [paths.corpus_text(plan.config, each, "train", code) for each, code in sides]


def backbone_held_out(job: Job) -> list[str]:
    """Dev and test sets, whose sentences the backbone must not be trained on."""
    return of_users(job.backbone, "held_out_text") if _reads_text(job.backbone.settings) else []


def backbone_text(job: Job) -> list[str]:
    """The text that a backbone is pretrained on, besides the task's own, and its ready-made copy; or the files of a model in a folder."""
    named = job.backbone.settings
    if named.kind == "fairseq" and named.model:
        try:
            return [str(path) for path in files_of(_where_it_leads(Path(named.model)))]
        except InputError:
            return []  # preflight says why
    if named.kind == "hub" and named.model:
        folder = Path(named.model)
        # what a rule makes is a folder as a whole, of which Snakemake takes no single file
        if (made := os.path.relpath(folder)) in map(paths.backbone_model, job.config.backbones):
            return [made]
        # an arm's folder is none of a run without the arm: what stands here may not hang on which arms there are (`kind: arm`)
        if folder.is_dir() and not made.startswith("results/runs/"):
            return sorted(str(path) for path in _where_it_leads(folder).iterdir() if path.is_file() and not path.name.startswith("."))
    block = named.pretraining
    ready = [f"{resource(block.ready)}/ready.json"] if block and block.ready else []
    return [*(resource(path) for path in block.text.values() if path != "task"), *ready] if block else []


def _where_it_leads(path: Path) -> Path:
    """A folder, or a file in one, behind links to folders: one may lead elsewhere tomorrow, to files that are as old as these."""
    folder = path if path.is_dir() else path.parent
    there = folder if folder.resolve() == folder.absolute() else folder.resolve()
    return there if path.is_dir() else there / path.name


def backbone_bitext(job: Job, part: str) -> list[str]:
    """Both sides of a part of each corpus that a backbone is pretrained on."""
    block = job.backbone.settings.pretraining
    named = block.bitext if block else []
    return [paths.corpus_text(job.config, name, part, code) for name in named for code in job.config.corpora[name].languages]


def backbone_start(job: Job) -> dict[str, Any]:
    """The model of the backbone that a continued one is made from, and the plugins that its objective and its family come from."""
    block, found = job.backbone.settings, dict[str, Any]()
    if block.arm:
        found["start"] = paths.trained_model(block.arm.experiment, block.arm.arm, block.arm.seed, block.arm.phase)
    elif block.kind in ("continued", "converted") and block.from_:
        found["start"] = paths.backbone_model(block.from_)
    objective = registry.entry("objective", block.objective) if block.objective else None
    return found | plugin_inputs(objective, _family_of(block), settings=block.pretraining and block.pretraining.objective_settings)


def _family_of(block: Backbone) -> registry.Entry | None:
    """The family of a backbone, where it is named or stands in a folder that is there."""
    if block.family:
        return registry.entry("family", block.family)
    try:
        return family_of(block.model) if block.kind == "hub" and block.model and Path(block.model).is_dir() else None
    except InputError:
        return None  # preflight says why


def _prefixes(plan: Plan) -> Iterator[str]:
    """What stands before the texts that an experiment's heads read, or before the sentences that it looks up."""
    if isinstance(plan.settings, retrieval.RetrievalExperiment):
        yield from (retrieval.settings_of(plan.settings, model).prefix for model in plan.arms)
    elif plan.task.has_head:
        for name in ("prefix", "pair_prefix"):
            yield getattr(getattr(plan.settings, plan.settings.head), name)
            yield from plan.settings.grid.get(name, [])


def loaded_for(job: Job) -> str:
    """The flags, as words of the shell, that say what a backbone is loaded for.

    It may have to keep the head of its pretraining. A vocabulary that is cut down needs the words of the experiments' own templates,
    and of what stands before the texts that they read.
    """
    given = ["--keep-head"] if keeps_head(job.backbone) else []
    users = backbone_users(job.backbone) if job.backbone.settings.trim else []
    own = {template for each in users if (used := templates_of(each)) for template in used.texts}
    own |= {text for each in users if asks_for_labels(each) for text in verbaliser.texts(each.settings.verbaliser, each.text.labels)}
    if found := sorted(own - {"", Templates.restore}):
        given += ["--templates", *found]
    if prefixes := sorted({prefix for each in users for prefix in _prefixes(each)} - {""}):
        given += ["--prefixes", *prefixes]
    if any(_chats(each) for each in users):
        given.append("--chat")
    return shlex.join(given)


def _chats(plan: Plan) -> bool:
    """Whether an experiment asks a decoder in its own chat template."""
    return bool((used := templates_of(plan)) and used.chat) or bool(asks_for_labels(plan) and plan.settings.verbaliser.chat)


def backbone_settings(job: Job) -> str:
    """The backbone's block, with the embedded files where they really are."""
    block = dataclasses.asdict(job.backbone.settings)
    for part in filter(None, (block["small"], block["continued"])):
        part["text"] = {code: path if path == "task" else resource(path) for code, path in part["text"].items()}
        if part.get("ready"):
            part["ready"] = resource(part["ready"])
    # settings that came later are given where they are used, so that no backbone of before is made anew
    later = ("encoder_layers", "with_head", "trust_remote_code")
    return json.dumps({key: value for key, value in block.items() if value or key not in later}, ensure_ascii=False)
