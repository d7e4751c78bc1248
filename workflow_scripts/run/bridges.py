"""bridges: what the jobs between a model and its task read, and their flags: noised text, and the phases before the task."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from workflow_scripts.config import paths
from workflow_scripts.config.phases import Phase
from workflow_scripts.run.arms import documents, trained_arms
from workflow_scripts.run.head_inputs import labelled_file
from workflow_scripts.run.jobs import Job, plugin_inputs
from workflow_scripts.tasks import crosslingual, translation
from workflow_scripts.tasks.experiment import grid_points, phase_training
from workflow_scripts.tasks.plan import Plan

# ---------------------------------------------------------------------------------------------
# phases before the task


def command(job: Job) -> list[str]:
    """How a phase before the task is trained: the command, and of an objective its name and settings."""
    phase = job.phase()
    if not phase.learns:
        return ["restore"]
    own = ["--objective-settings", json.dumps(phase.objective, ensure_ascii=False)] if phase.objective else []
    return ["learn", "--objective", phase.data, *own]


def text(job: Job) -> dict[str, Any]:
    """What a phase before the task reads: rounds of noised text, or by an objective the text itself, training and dev."""
    phase = job.phase()
    if phase.restores:
        return {"noised": paths.noised_folder(job.plan.name, phase.noised, job.w.seed)}
    return {part: [path for path, _ in read(job.plan, phase, part)] for part in ("train", "dev")}


def read(plan: Plan, phase: Phase, part: str) -> list[tuple[str, str]]:
    """The files of a part of the text that a phase reads as it is, each with its language: both sides of a corpus, or one text."""
    codes, own = plan.trained_languages, plan.task.text
    if not phase.text and own == "labelled":
        return [(paths.labelled_file(plan.config, plan.corpus, part), codes[0])]
    if phase.text:
        known = codes if phase.restores and own == "labelled" else plan.languages
        codes = [code for code in plan.config.corpora[phase.text].languages if code in known]
    return [(paths.corpus_text(plan.config, phase.text or plan.corpus, part, code), code) for code in codes]


def languages(job: Job) -> list[str]:
    """The languages of the text that a phase before the task reads."""
    phase = job.phase()
    if phase.restores:
        return job.plan.trained_languages
    return [code for _, code in read(job.plan, phase, "train")]


def with_documents(job: Job) -> str:
    """The flag that tells a phase before the task that `</s>` stands between the sentences, or the texts, of a line."""
    return _with_documents(job, job.phase())


def _with_documents(job: Job, phase: Phase) -> str:
    if phase.text:
        return ""
    return "--documents" if phase.restores and _restores_pairs(job, phase) else documents(job)


# ---------------------------------------------------------------------------------------------
# noised text


def noised_phase(job: Job) -> Phase:
    """A phase that restores the wildcards' noised text; all that do have the same noise, lexicon, text and settings."""
    every = (phase for phases in job.config.arms.values() for phase in phases)
    return next(phase for phase in every if phase.restores and phase.noised == job.w.noise)


def sides(job: Job) -> list[str]:
    """The two languages of the parallel text that is noised."""
    return [code for _, code in _sides(job, "train")]


def side(job: Job, part: str, number: int) -> str:
    """First (0) or second (1) language's side of a part of the parallel text that is noised."""
    return _sides(job, part)[number][0]


def _sides(job: Job, part: str) -> list[tuple[str, str]]:
    corpus = noised_phase(job).text or job.plan.corpus
    return [(paths.corpus_text(job.config, corpus, part, code), code) for code in job.config.corpora[corpus].languages]


def one_side(job: Job, part: str) -> str:
    """The text in one language whose words are switched: sentences or, in pairs of texts with labels, their examples."""
    phase = noised_phase(job)
    if phase.text:
        return read(job.plan, phase, part)[0][0]
    return labelled_file(job, part, ".tsv" if _restores_pairs(job, phase) else "")


def _restores_pairs(job: Job, phase: Phase) -> bool:
    """Whether the two texts of a pair are restored as one."""
    return not phase.text and getattr(job.plan.settings, "restore", "texts") == "pairs"


def pairs_flag(job: Job) -> str:
    """The flag that has pairs of texts with labels restored as one."""
    return "--pairs" if _restores_pairs(job, noised_phase(job)) else ""


def noised_documents(job: Job) -> str:
    """The flag that tells that the text that is noised is documents."""
    return _with_documents(job, noised_phase(job))


def switched_into(job: Job) -> list[str]:
    """The languages that the experiment's words are switched into."""
    return crosslingual.switched_into(job.plan)


def given_lexicon(job: Job) -> list[str]:
    """The files of given dictionaries by which the words of a pretext phase on labelled text are switched."""
    phase = noised_phase(job)
    needed = phase.restores and phase.restores.lexicon
    return crosslingual.lexicon_files(job.plan, phase.lexicon or job.plan.settings.lexicon) if needed else []


def noise_sources(job: Job) -> dict[str, Any]:
    """What a noise is made of: both directions of a lexicon, the backbone whose pieces are switched, the plugin that it comes from."""
    phase, files = noised_phase(job), dict[str, Any]()
    if phase.restores and phase.restores.lexicon:
        folder, (a, b) = translation.lexicon_folder(job.plan, phase.lexicon), sides(job)
        files |= {"lexicon_ab": f"{folder}/{a}-{b}.tsv", "lexicon_ba": f"{folder}/{b}-{a}.tsv"}
    if phase.restores and phase.restores.pieces:
        files["model"] = paths.backbone_model(job.plan.settings.backbone)
    return files | noise_plugin(job)


def noise_plugin(job: Job) -> dict[str, list[str]]:
    """The files of the plugin that the wildcards' noise comes from; what comes from none reads none."""
    phase = noised_phase(job)
    return plugin_inputs(phase.restores, settings=phase.noise)


def noise_kind(job: Job) -> str:
    """The name of the wildcards' noise."""
    return noised_phase(job).data


def noise_settings(job: Job) -> list[str]:
    """The flag with the settings of the noise's own, if there are any."""
    phase = noised_phase(job)
    return ["--noise-settings", json.dumps(phase.noise, ensure_ascii=False)] if phase.noise else []


def tokens(job: Job) -> int:
    """What the longest phase on this noise reads: updates × tokens per batch. Where no arm of the run has one, that of any arm."""
    experiment = job.plan.settings

    def read(arms: Iterable[str]) -> list[int]:
        return [
            (phase.updates or 0) * phase_training(experiment, phase, point).batch_tokens
            for arm in arms
            for phase in job.plan.phases_of(arm)
            if phase.restores and phase.noised == job.w.noise
            for point in grid_points(experiment) or [{}]
        ]

    return max(read(trained_arms(job.plan)) or read(job.config.arms))
