"""arms: what the jobs of an experiment's arms read, and their flags: phases, decoding, scores and tests, plugins.

Tasks with a head have `head_inputs` besides. Text, lexicons and backbones, which experiments may share, have modules of their own, too.
"""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from workflow_scripts import registry
from workflow_scripts.config import paths
from workflow_scripts.config.phases import Phase
from workflow_scripts.models.templates import Templates, plain
from workflow_scripts.noise.codeswitch import CodeSwitch
from workflow_scripts.run.jobs import Job, as_json, plugin_inputs, templates_of, writing_plugins
from workflow_scripts.stage import InputError, resource
from workflow_scripts.tasks import translation
from workflow_scripts.tasks.entry import MoreText
from workflow_scripts.tasks.experiment import (
    generator_settings,
    grid_points,
    grid_points_of,
    phase_training,
)
from workflow_scripts.tasks.plan import Plan
from workflow_scripts.training.generator import AUTOREGRESSIVE
from workflow_scripts.training.settings import Training

# ---------------------------------------------------------------------------------------------
# phases


def trained_arms(plan: Plan) -> list[str]:
    """The arms of an experiment that the run trains: those that it compares, and those whose models are backbones."""
    compared = plan.arms if plan.name in plan.config.run.experiments else []
    models = [backbone.settings.arm for backbone in plan.plans.backbones_used]
    return list(dict.fromkeys([*compared, *(model.arm for model in models if model and model.experiment == plan.name)]))


def phase_start(job: Job, name: str | None = None) -> str:
    """The model that a phase starts from: the phase before, or the backbone."""
    phase = job.phase(name)
    before = job.plan.phases_of(job.arm)[: phase.place[0]]
    if before and phase.start == "previous":
        return paths.trained_model(job.plan.name, _arm_with(before, job), job.w.seed, before[-1].name)
    return paths.backbone_model(job.plan.backbone_of(job.arm).name)


def _arm_with(before: list[Phase], job: Job) -> str:
    """The arm whose phases `before` a phase goes on from: points of a grid that differ in later ones alone share them."""
    if job.point is None:
        return job.w.arm

    def trained(point: dict[str, Any]) -> list[Training]:
        return [phase_training(job.plan.settings, phase, point) for phase in before]

    same = [trained(point) == trained(job.point) for point in grid_points(job.plan.settings)]
    return f"{job.arm}.grid{same.index(True)}"


def from_scratch(job: Job, name: str | None = None) -> str:
    """The flag of a phase that starts from random weights."""
    return "--from-scratch" if job.phase(name).start == "scratch" else ""


def phase_settings(job: Job, name: str | None = None) -> str:
    """The training settings of a phase, as JSON; what is chosen from a grid comes with `--choice`."""
    return as_json(phase_training(job.plan.settings, job.phase(name), job.point))


def phase_flags(job: Job) -> list[str]:
    """The flags of a phase before the task that is one of several, or whose templates are not the usual ones; else none."""
    return [*([] if job.w.phase == "pretext" else ["--phase", job.w.phase]), *templates_flag(job)]


def templates_flag(job: Job) -> list[str]:
    """The flag that says how a model is asked, where that is not as usual. A model that is known to read no prompt gets no task's own."""
    used, family = templates_of(job.plan), job.plan.backbone_of(job.arm).family
    unread = family and not family.causal and getattr(job.plan.settings, "templates", None) == Templates()
    return [] if used in (None, Templates()) or unread else ["--templates", json.dumps(plain(used), ensure_ascii=False)]


def task_flags(job: Job) -> list[str]:
    """The flags of a task phase that is not the usual one; else none.

    It has a generator or templates of its own, learns what another arm writes, switches its source's words, learns from more text, or
    trains nothing.
    """
    experiment, phase = job.plan.settings, job.phase("finetune")
    given = templates_flag(job)
    if phase.untrained:
        given += ["--shots", str(phase.shots)]
    if phase.generator != AUTOREGRESSIVE:
        settings = generator_settings(experiment, phase)
        given += ["--generator", phase.generator, *(["--generator-settings", as_json(settings)] if settings else [])]
    if phase.targets_from:
        given += ["--targets-from", phase.targets_from]
    if phase.switch is not None:
        given += ["--switch", as_json(switched_by(experiment.codeswitch, phase.switch))]
    if pairs := [text.languages for text in _more_text(job)]:
        sources, targets = zip(*pairs, strict=True)
        given += ["--more-languages", *sources, "--more-target-languages", *targets]
    return given


def switched_by(own: CodeSwitch, share: float) -> CodeSwitch:
    """The settings of switching, with `share` of the words switched."""
    return dataclasses.replace(own, noise=dataclasses.replace(own.noise, rate=share))


def more_text(job: Job) -> dict[str, list[str]]:
    """Training text that a task phase learns from besides that of the experiment, if it does."""
    found = _more_text(job)
    return {"more_sources": [text.source for text in found], "more_targets": [text.target for text in found]} if found else {}


def _more_text(job: Job) -> list[MoreText]:
    more = job.plan.task.more_text
    return more(job.plan, job.phase("finetune")) if more else []


def switching_lexicon(job: Job) -> dict[str, str]:
    """The lexicon by which a task phase switches words of the source, if it does."""
    phase = job.phase("finetune")
    if phase.switch is None:
        return {}
    source, target = job.plan.trained_languages
    return {"lexicon": f"{translation.lexicon_folder(job.plan, phase.lexicon)}/{source}-{target}.tsv"}


def experiment_text(job: Job, part: str, side: int) -> str:
    """Source (0) or target (1) side of a part of the experiment's text."""
    return _side(job.plan, part, side)[0]


def training_target(job: Job) -> str:
    """The targets of the training text: its own, or those that another arm has written."""
    if teacher := job.phase("finetune").targets_from:
        return f"{paths.run_folder(job.plan.name, teacher, job.w.seed)}/distilled.txt"
    return experiment_text(job, "train", 1)


def pairs_written(job: Job) -> int:
    """The most pairs that the arms learn from whose targets this arm writes (`targets_from`); 0 stands for all of the training text."""
    experiment, plan = job.plan.settings, job.plan
    phases = [phase for arm in trained_arms(plan) for phase in plan.phases_of(arm) if phase.targets_from == job.arm]
    counts = [phase_training(experiment, phase, point).pairs for phase in phases for point in grid_points(experiment) or [{}]]
    return 0 if None in counts else max((count for count in counts if count), default=0)


def target_decoding(job: Job) -> str:
    """The settings, as JSON, by which an arm writes targets for another: those of decoding, but that it never writes nothing."""
    decoding = job.plan.settings.decoding
    return as_json(dataclasses.replace(decoding, min_length=max(1, decoding.min_length)))


def trained_direction(job: Job) -> list[str]:
    """The language that the experiment is finetuned to read, and that to write."""
    return [_side(job.plan, "train", side)[1] for side in (0, 1)]


def _side(plan: Plan, part: str, side: int) -> tuple[str, str]:
    """Source (0) or target (1) side of a part of an experiment's text, and its language."""
    if plan.task.sides is None:
        raise InputError(f"{plan.name} has no text to write from, as its task answers no text")
    return plan.task.sides(plan, part)[side]


def documents(job: Job) -> str:
    """The flag that tells a stage that its text is documents."""
    return "--documents" if job.plan.task.text == "corpora" and job.plan.text.documents else ""


def grid_choice(job: Job) -> dict[str, str]:
    """What was chosen for an arm, where there is a grid and it trains something."""
    if job.point is not None or not grid_points_of(job.plan, job.w.arm):
        return {}
    return {"choice": f"{paths.experiment_folder(job.plan.name)}/{job.w.arm}/choice.json"}


def keep_diverged(job: Job) -> str:
    """The flag of a point of a grid, whose training may fail; that of an arm may not."""
    return "--keep-diverged" if job.point is not None else ""


def grid_reports(job: Job) -> list[str]:
    """What the training of each point of the grid says."""
    points = range(len(grid_points(job.plan.settings)))
    runs = [paths.run_folder(job.plan.name, f"{job.w.arm}.grid{point}", job.plan.seeds[0]) for point in points]
    return [f"{run}/finetune/training.json" for run in runs]


# ---------------------------------------------------------------------------------------------
# decoding and test sets


def testsets(job: Job) -> list[str]:
    """The experiment's own test sets."""
    return list(job.plan.text.test)


def test_text(job: Job, side: int) -> str:
    """Source (0) or target (1) side of a test set."""
    return _side(*_tested(job), side)[0]


def test_direction(job: Job) -> list[str]:
    """Languages of a test set: that of its texts, and that to write in."""
    return [_side(*_tested(job), side)[1] for side in (0, 1)]


def _tested(job: Job) -> tuple[Plan, str]:
    """The experiment that a test set is of, and its part there: `{other}@{testset}` is another's, translated without training for it."""
    other, _, name = job.w.testset.rpartition("@")
    return job.plan.other(other) if other else job.plan, f"test/{name}"


def target(job: Job) -> str:
    """The language that the experiment's models write: on a test set, or else as they were finetuned."""
    return test_direction(job)[1] if "testset" in dict(job.w.items()) else trained_direction(job)[1]


def learnt_source(job: Job) -> list[str]:
    """The flag with the language that a model learnt from, for the test set of another experiment, whose language it may not know."""
    return ["--learnt-from", job.plan.settings.source] if "@" in job.w.testset else []


def lengths_flags(job: Job) -> list[str]:
    """How long the outputs of the experiment's models may be, in pieces, and how their length counts in the beam."""
    decoding = job.plan.settings.decoding
    return [f"--{name.replace('_', '-')}={getattr(decoding, name)}" for name in ("max_length", "min_length", "length_penalty")]


def tested_texts(job: Job) -> list[str]:
    """The source sides of all test sets of the experiment."""
    return [_side(job.plan, f"test/{name}", 0)[0] for name in testsets(job)]


def tested_directions(job: Job, side: int) -> list[str]:
    """The languages that all test sets of the experiment are in (0), or are to be answered in (1)."""
    return [_side(job.plan, f"test/{name}", side)[1] for name in testsets(job)]


def first_test(job: Job, side: int) -> str:
    """Source (0) or target (1) side of the experiment's first test set."""
    return _side(job.plan, f"test/{testsets(job)[0]}", side)[0]


def first_direction(job: Job) -> list[str]:
    """Languages of the experiment's first test set: that of its texts, and that to write in."""
    return [_side(job.plan, f"test/{testsets(job)[0]}", side)[1] for side in (0, 1)]


def unaligned_text(job: Job) -> list[str]:
    """More text in the two languages, not parallel, to measure the distance of the language means on."""
    text = job.plan.settings.representation.text
    return [resource(text[code]) for code in job.plan.trained_languages] if text else []


# ---------------------------------------------------------------------------------------------
# scores and tests


def of_arms(job: Job, file: str) -> list[str]:
    """A `file` (which may have wildcards) of the run of each arm with the wildcards' seed."""
    return [f"{paths.run_folder(job.plan.name, arm, job.w.seed)}/{file.format(**dict(job.w.items()))}" for arm in job.plan.arms]


def of_runs(job: Job, file: str) -> list[str]:
    """A `file` (which may have wildcards) of each run of the experiment, arm by arm and seed by seed."""
    filled = file.format(**dict(job.w.items()))
    return [f"{paths.run_folder(job.plan.name, arm, seed)}/{filled}" for arm in job.plan.arms for seed in job.plan.seeds]


def first_models(job: Job) -> list[str]:
    """The finetuned models of all arms, with the first seed."""
    return [paths.trained_model(job.plan.name, arm, job.plan.seeds[0], "finetune") for arm in job.plan.arms]


def scores_flags(job: Job) -> list[str]:
    """The flags that tell a stage how the experiment's texts are scored."""
    scores = job.plan.settings.scores
    given = {"--metrics": scores.metrics, "--tokenize": [scores.tokenize], "--meteor-jar": [scores.meteor_jar]}
    return [part for flag, values in given.items() if all(values) for part in (flag, *values)]


def comet_scores(job: Job) -> list[str]:
    """COMET's scores of all runs on a test set, where the experiment measures them."""
    return of_runs(job, "{testset}.comet.json") if getattr(job.plan.settings, "comet", None) else []


# ---------------------------------------------------------------------------------------------
# plugins


def phase_plugins(job: Job, name: str | None = None) -> dict[str, list[str]]:
    """The files of the plugins that a phase's adapter and its objective come from; what comes from none reads none."""
    phase = job.phase(name)
    chosen = phase_training(job.plan.settings, phase, job.point).adapter
    return plugin_inputs(adapter_entry(chosen), phase.learns, settings=[chosen, phase.objective])


def adapter_entry(chosen: dict[str, Any] | None) -> registry.Entry | None:
    """The entry of an adapter, by its settings as they stand in a configuration."""
    return registry.entry("adapter", chosen["kind"]) if chosen else None


def generator_plugin(job: Job) -> dict[str, list[str]]:
    """The files of the plugin that the generator of the arm comes from; what comes from none reads none."""
    phase = job.phase("finetune")
    return plugin_inputs(phase.writes, settings=phase.generator_settings)


def writing_plugin(job: Job) -> dict[str, list[str]]:
    """The files of the plugins that decoding uses; what comes from none reads none."""
    return writing_plugins(job.plan.settings.decoding, job.plan.phases_of(job.arm))


def metric_plugins(job: Job) -> dict[str, list[str]]:
    """The files of the plugins that the experiment's metrics of text come from; what comes from none reads none."""
    return plugin_inputs(*_text_metrics(job))


def speed_plugin(job: Job) -> dict[str, list[str]]:
    """The files of the plugins that the measurement of speed uses: of generators, of metrics, and of engines that search with a beam."""
    engines = [engine for engine in registry.entries("engine").values() if engine.ranks]
    return plugin_inputs(*(phase.writes for _, phase in job.plan.phases if not phase.bridge), *engines, *_text_metrics(job))


def _text_metrics(job: Job) -> list[registry.Entry]:
    return [registry.entry("metric", each) for each in job.plan.settings.scores.metrics]
