"""arms: what the jobs of an experiment's arms read and are told: phases, decoding, scores and tests.

Text, lexicons and backbones, which experiments may share, are in `inputs`.
"""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from workflow_scripts import plugins, registry
from workflow_scripts.config import paths
from workflow_scripts.config.configuration import Config
from workflow_scripts.config.experiments import Experiment
from workflow_scripts.config.phases import Phase
from workflow_scripts.evidence.trivial import Kind
from workflow_scripts.models.templates import Templates, plain
from workflow_scripts.noise.codeswitch import CodeSwitch
from workflow_scripts.run.inputs import Wildcards, as_json, plugin_inputs, templates_of, writing_plugins
from workflow_scripts.run.uses import backbones_used
from workflow_scripts.stage import InputError, resource
from workflow_scripts.tasks import crosslingual, translation
from workflow_scripts.tasks.entry import task_of
from workflow_scripts.tasks.experiment import (
    MoreText,
    arm_phases,
    arms_of,
    backbone_of,
    generator_settings,
    grid_of,
    grid_points,
    head_settings,
    phase_training,
    phases_of,
    seeds_of,
)
from workflow_scripts.training.generator import USUAL
from workflow_scripts.training.settings import Training

# ---------------------------------------------------------------------------------------------
# experiments, arms, phases


def direction(config: Config, w: Wildcards) -> list[str]:
    """The languages that the experiment is trained in: source and target, or one."""
    return task_of(config.experiments[w.experiment]).trained_languages(config, w.experiment)


def documents(config: Config, w: Wildcards) -> str:
    """The flag that tells a stage that its text is documents."""
    experiment = config.experiments[w.experiment]
    return "--documents" if task_of(experiment).text == "corpora" and config.corpora[experiment.corpus].documents else ""


def testsets(config: Config, w: Wildcards) -> list[str]:
    """The experiment's own test sets."""
    experiment = config.experiments[w.experiment]
    return list(getattr(config, task_of(experiment).text)[experiment.corpus].test)


def arms(config: Config, w: Wildcards) -> list[str]:
    """The names of the experiment's arms."""
    return arms_of(config, config.experiments[w.experiment])


def _side(config: Config, experiment: str, part: str, side: int) -> tuple[str, str]:
    """Source (0) or target (1) side of a part of an experiment's text, and its language."""
    sides = task_of(config.experiments[experiment]).sides
    if sides is None:
        raise InputError(f"{experiment} has no text to write from, as its task answers no text")
    return sides(config, experiment, part)[side]


def trained_direction(config: Config, w: Wildcards) -> list[str]:
    """The language that the experiment is finetuned to read, and that to write."""
    return [_side(config, w.experiment, "train", side)[1] for side in (0, 1)]


def target(config: Config, w: Wildcards) -> str:
    """The language that the experiment's models write: on a test set, or else as they were finetuned."""
    return test_direction(config, w)[1] if "testset" in dict(w.items()) else trained_direction(config, w)[1]


def seeds(config: Config, w: Wildcards) -> list[int]:
    """The seeds that the experiment's arms are compared with."""
    return seeds_of(config, config.experiments[w.experiment])


def of_arms(config: Config, w: Wildcards, file: str) -> list[str]:
    """A `file` (which may have wildcards) of the run of each arm with the wildcards' seed."""
    return [f"{paths.run_folder(w.experiment, arm, w.seed)}/{file.format(**dict(w.items()))}" for arm in arms(config, w)]


def of_runs(config: Config, w: Wildcards, file: str) -> list[str]:
    """A `file` (which may have wildcards) of each run of the experiment, arm by arm and seed by seed."""
    filled = file.format(**dict(w.items()))
    return [f"{paths.run_folder(w.experiment, arm, seed)}/{filled}" for arm in arms(config, w) for seed in seeds(config, w)]


def first_models(config: Config, w: Wildcards) -> list[str]:
    """The finetuned models of all arms, with the first seed."""
    return [paths.trained_model(w.experiment, arm, seeds(config, w)[0], "finetune") for arm in arms(config, w)]


def _first(config: Config, w: Wildcards) -> tuple[str, str]:
    """The experiment, and the part that is its first test set."""
    return w.experiment, f"test/{testsets(config, w)[0]}"


def first_test(config: Config, w: Wildcards, side: int) -> str:
    """Source (0) or target (1) side of the experiment's first test set."""
    return _side(config, *_first(config, w), side)[0]


def first_direction(config: Config, w: Wildcards) -> list[str]:
    """Languages of the experiment's first test set: that of its texts, and that to write in."""
    return [_side(config, *_first(config, w), side)[1] for side in (0, 1)]


def scores_flags(config: Config, w: Wildcards) -> list[str]:
    """The flags that tell a stage how the experiment's texts are scored."""
    scores = config.experiments[w.experiment].scores
    given = {"--metrics": scores.metrics, "--tokenize": [scores.tokenize], "--meteor-jar": [scores.meteor_jar]}
    return [part for flag, values in given.items() if all(values) for part in (flag, *values)]


def lengths_flags(config: Config, w: Wildcards) -> list[str]:
    """How long the outputs of the experiment's models may be, in pieces, and how their length counts in the beam."""
    decoding = config.experiments[w.experiment].decoding
    return [f"--{name.replace('_', '-')}={getattr(decoding, name)}" for name in ("max_length", "min_length", "length_penalty")]


def comet_scores(config: Config, w: Wildcards) -> list[str]:
    """COMET's scores of all runs on a test set, where the experiment measures them."""
    return of_runs(config, w, "{testset}.comet.json") if getattr(config.experiments[w.experiment], "comet", None) else []


def _arm(w: Wildcards) -> str:
    """The arm of a job, without the number of a point of its grid (`csr.grid0`)."""
    return w.arm.partition(".grid")[0]


def phase_of(config: Config, w: Wildcards, name: str | None = None) -> Phase:
    """The phase of this name, or of the wildcards', of the wildcards' arm, or of a point of its grid."""
    return next(phase for phase in config.arms[_arm(w)] if phase.name == (name or w.phase))


def grid_point(config: Config, w: Wildcards) -> dict[str, Any] | None:
    """The point of the grid that an arm like `csr.grid0` is trained with; None for an arm itself."""
    number = w.arm.partition(".grid")[2]
    return grid_points(config.experiments[w.experiment])[int(number)] if number else None


def phase_settings(config: Config, w: Wildcards, name: str | None = None) -> str:
    """The training settings of a phase, as JSON; what is chosen from a grid comes with `--choice`."""
    return as_json(phase_training(config.experiments[w.experiment], phase_of(config, w, name), grid_point(config, w)))


def phase_plugins(config: Config, w: Wildcards, name: str | None = None) -> dict[str, list[str]]:
    """The files of the plugins that a phase's adapter and its objective come from; what comes from none reads none."""
    phase = phase_of(config, w, name)
    chosen = phase_training(config.experiments[w.experiment], phase, grid_point(config, w)).adapter
    return plugin_inputs(registry.entry("adapter", chosen["kind"]) if chosen else None, phase.learns)


def task_flags(config: Config, w: Wildcards) -> list[str]:
    """The flags of a task phase that has a generator or templates of its own, switches its source's words, learns from more text, or trains
    nothing; else none."""
    experiment, phase = config.experiments[w.experiment], phase_of(config, w, "finetune")
    given = templates_flag(config, w)
    if phase.untrained:
        given += ["--shots", str(phase.shots)]
    if phase.generator != USUAL:
        settings = generator_settings(experiment, phase)
        given += ["--generator", phase.generator, *(["--generator-settings", as_json(settings)] if settings else [])]
    if phase.switch is not None:
        noise = dataclasses.replace(experiment.codeswitch.noise, rate=phase.switch)
        given += ["--switch", as_json(dataclasses.replace(experiment.codeswitch, noise=noise))]
    if pairs := [text.languages for text in _more_text(config, w)]:
        sources, targets = zip(*pairs, strict=True)
        given += ["--more-languages", *sources, "--more-target-languages", *targets]
    return given


def phase_flags(config: Config, w: Wildcards) -> list[str]:
    """The flags of a phase before the task that is one of several, or whose templates are not the usual ones; else none."""
    return [*([] if w.phase == "pretext" else ["--phase", w.phase]), *templates_flag(config, w)]


def templates_flag(config: Config, w: Wildcards) -> list[str]:
    """The flag that says how a model is asked, where that is not as usual."""
    used = templates_of(config.experiments[w.experiment])
    return [] if used in (None, Templates()) else ["--templates", json.dumps(plain(used), ensure_ascii=False)]


def generator_plugin(config: Config, w: Wildcards) -> dict[str, list[str]]:
    """The files of the plugin that the generator of the arm comes from; what comes from none reads none."""
    return plugin_inputs(phase_of(config, w, "finetune").writes)


def writing_plugin(config: Config, w: Wildcards) -> dict[str, list[str]]:
    """The files of the plugins that decoding uses; what comes from none reads none."""
    experiment = config.experiments[w.experiment]
    return writing_plugins(experiment.decoding, arm_phases(config, experiment, _arm(w)))


def speed_plugin(config: Config, w: Wildcards) -> dict[str, list[str]]:
    """The files of the plugins that the measurement of speed uses: those of generators, and of engines that search with a beam."""
    phases = phases_of(config, config.experiments[w.experiment])
    engines = [engine for engine in registry.entries("engine").values() if engine.ranks]
    return plugin_inputs(*(phase.writes for _, phase in phases if not phase.bridge), *engines)


def more_text(config: Config, w: Wildcards) -> dict[str, list[str]]:
    """Training text that a task phase learns from besides that of the experiment, if it does."""
    found = _more_text(config, w)
    return {"more_sources": [text.source for text in found], "more_targets": [text.target for text in found]} if found else {}


def _more_text(config: Config, w: Wildcards) -> list[MoreText]:
    more = task_of(config.experiments[w.experiment]).more_text
    return more(config, w.experiment, phase_of(config, w, "finetune")) if more else []


def switching_lexicon(config: Config, w: Wildcards) -> dict[str, str]:
    """The lexicon by which a task phase switches words of the source, if it does."""
    phase = phase_of(config, w, "finetune")
    if phase.switch is None:
        return {}
    source, target = direction(config, w)
    return {"lexicon": f"{translation.lexicon_folder(config, w.experiment, phase.lexicon)}/{source}-{target}.tsv"}


def grid_choice(config: Config, w: Wildcards) -> dict[str, str]:
    """What was chosen for an arm, where there is a grid."""
    if grid_point(config, w) is not None or not grid_of(config.experiments[w.experiment]):
        return {}
    return {"choice": f"{paths.experiment_folder(w.experiment)}/{w.arm}/choice.json"}


def keep_diverged(config: Config, w: Wildcards) -> str:
    """The flag of a point of a grid, whose training may fail; that of an arm may not."""
    return "--keep-diverged" if grid_point(config, w) is not None else ""


def grid_reports(config: Config, w: Wildcards) -> list[str]:
    """What the training of each point of the grid says."""
    points = range(len(grid_points(config.experiments[w.experiment])))
    runs = [paths.run_folder(w.experiment, f"{w.arm}.grid{point}", seeds(config, w)[0]) for point in points]
    return [f"{run}/finetune/training.json" for run in runs]


def phase_start(config: Config, w: Wildcards, name: str | None = None) -> str:
    """The model that a phase starts from: the phase before, or the backbone."""
    experiment, phase = config.experiments[w.experiment], phase_of(config, w, name)
    before = config.arms[_arm(w)][: phase.place[0]]
    if before and phase.start == "previous":
        return paths.trained_model(w.experiment, _arm_with(before, experiment, config, w), w.seed, before[-1].name)
    return paths.backbone_model(backbone_of(config, experiment, _arm(w)))


def _arm_with(before: list[Phase], experiment: Experiment, config: Config, w: Wildcards) -> str:
    """The arm whose phases `before` a phase goes on from: points of a grid that differ in later ones alone share them."""
    own = grid_point(config, w)
    if own is None:
        return w.arm

    def trained(point: dict[str, Any]) -> list[Training]:
        return [phase_training(experiment, phase, point) for phase in before]

    same = [trained(point) == trained(own) for point in grid_points(experiment)]
    return f"{_arm(w)}.grid{same.index(True)}"


def from_scratch(config: Config, w: Wildcards, name: str | None = None) -> str:
    """The flag of a phase that starts from random weights."""
    return "--from-scratch" if phase_of(config, w, name).start == "scratch" else ""


def trained_arms(config: Config, name: str) -> list[str]:
    """The arms of an experiment that the run trains: those that it compares, and those whose models are backbones."""
    compared = arms_of(config, config.experiments[name]) if name in config.run.experiments else []
    models = [block.arm for block in (config.backbones[used] for used in backbones_used(config)) if block.arm]
    return list(dict.fromkeys([*compared, *(model.arm for model in models if model.experiment == name)]))


def experiment_text(config: Config, w: Wildcards, part: str, side: int) -> str:
    """Source (0) or target (1) side of a part of the experiment's text."""
    return _side(config, w.experiment, part, side)[0]


def _tested(w: Wildcards) -> tuple[str, str]:
    """The experiment that a test set is of, and its part there: `{other}@{testset}` is another's, translated without training for it."""
    other, _, name = w.testset.rpartition("@")
    return other or w.experiment, f"test/{name}"


def test_direction(config: Config, w: Wildcards) -> list[str]:
    """Languages of a test set: that of its texts, and that to write in."""
    return [_side(config, *_tested(w), side)[1] for side in (0, 1)]


def learnt_source(config: Config, w: Wildcards) -> list[str]:
    """The flag with the language that a model learnt from, for the test set of another experiment, whose language it may not know."""
    return ["--learnt-from", config.experiments[w.experiment].source] if "@" in w.testset else []


def test_text(config: Config, w: Wildcards, side: int) -> str:
    """Source (0) or target (1) side of a test set."""
    return _side(config, *_tested(w), side)[0]


def trivial_kind(config: Config, w: Wildcards) -> Kind:
    """The trivial baseline of the experiment's task: a copy of the source, or its first sentence."""
    return task_of(config.experiments[w.experiment]).trivial


def tested_texts(config: Config, w: Wildcards) -> list[str]:
    """The source sides of all test sets of the experiment."""
    return [_side(config, w.experiment, f"test/{name}", 0)[0] for name in testsets(config, w)]


def tested_directions(config: Config, w: Wildcards, side: int) -> list[str]:
    """The languages that all test sets of the experiment are in (0), or are to be answered in (1)."""
    return [_side(config, w.experiment, f"test/{name}", side)[1] for name in testsets(config, w)]


def unaligned_text(config: Config, w: Wildcards) -> list[str]:
    """More text in the two languages, not parallel, to measure the distance of the language means on."""
    text = config.experiments[w.experiment].representation.text
    return [resource(text[code]) for code in direction(config, w)] if text else []


# ---------------------------------------------------------------------------------------------
# tasks with labels


def labelled_file(config: Config, w: Wildcards, part: str, suffix: str = "") -> str:
    """A part of the text that the experiment is trained and tested on."""
    return paths.labelled_file(config, config.experiments[w.experiment].corpus, part, suffix)


def tested_examples(config: Config, w: Wildcards) -> list[str]:
    """The examples of all test sets of the experiment."""
    return [labelled_file(config, w, f"test/{name}", ".tsv") for name in testsets(config, w)]


def tested_languages(config: Config, w: Wildcards) -> list[str]:
    """The languages of all test sets of the experiment."""
    corpus = config.experiments[w.experiment].corpus
    return [paths.labelled_language(config, corpus, f"test/{name}") for name in testsets(config, w)]


def switched_while_finetuning(config: Config, w: Wildcards) -> dict[str, list[str]]:
    """The lexicons by which the finetuning text is switched, if it is."""
    lexicon = phase_of(config, w, "finetune").lexicon or config.experiments[w.experiment].lexicon
    return {"lexicons": crosslingual.lexicon_files(config, w.experiment, lexicon)} if _switching(config, w) else {}


def _switching(config: Config, w: Wildcards) -> CodeSwitch | None:
    """How words of the finetuning text are switched: as the arm says (`switch`), or else the experiment; None where they are not."""
    share, own = phase_of(config, w, "finetune").switch, config.experiments[w.experiment].codeswitch
    if share is not None:
        return dataclasses.replace(own, noise=dataclasses.replace(own.noise, rate=share))
    return own if getattr(_head(config, w), "switch_while_finetuning", False) else None


def _head(config: Config, w: Wildcards) -> Any:
    """The settings of finetuning of the experiment."""
    experiment = config.experiments[w.experiment]
    return getattr(experiment, experiment.head)


def head_block(config: Config, w: Wildcards) -> str:
    """The settings of finetuning of the experiment, as JSON."""
    return as_json(_head(config, w))


def task_plugin(config: Config, w: Wildcards) -> dict[str, list[str]]:
    """The files of the plugin that the experiment's task comes from; what comes from none reads none."""
    files = plugins.files_of(task_of(config.experiments[w.experiment]))
    return {"plugin": files} if files else {}


def scoring_plugins(config: Config, w: Wildcards) -> dict[str, list[str]]:
    """The files of the plugins that the experiment's task and metrics come from; what comes from none reads none."""
    experiment = config.experiments[w.experiment]
    files = plugins.files_of(task_of(experiment), *(registry.entry("label_metric", each) for each in experiment.metrics))
    return {"plugin": files} if files else {}


def learnt_by_the_baseline(config: Config, w: Wildcards) -> dict[str, str]:
    """The training text, where the trivial baseline of the experiment's task learns from it."""
    task: Any = task_of(config.experiments[w.experiment])
    return {"train": labelled_file(config, w, "train", ".tsv")} if task.baseline_learns else {}


def label_flags(config: Config, w: Wildcards) -> list[str]:
    """The flag with all labels, where the experiment's text has a list of them, and that with the metrics of plugins."""
    experiment = config.experiments[w.experiment]
    task: Any = task_of(experiment)
    labels = ["--labels", *config.labelled[experiment.corpus].labels] if task.named else []
    return [*labels, *(["--metrics", *experiment.metrics] if experiment.metrics else [])]


def finetuning_text(config: Config, w: Wildcards, part: str) -> list[str]:
    """The tables that a head learns from (`train`), or that early stopping goes by (`dev`); that in the text's language comes first."""
    corpus = config.experiments[w.experiment].corpus
    return [paths.labelled_file(config, corpus, each, ".tsv") for each in (part, *_more_parts(config, w, part))]


def _more_parts(config: Config, w: Wildcards, part: str) -> list[str]:
    if part == "train":
        return crosslingual.translated_parts(config, w.experiment, phase_of(config, w, "finetune"))
    return crosslingual.selecting_parts(config, w.experiment)


def finetuning_settings(config: Config, w: Wildcards) -> str:
    """What the finetuning of a head is told, as JSON: languages, epochs, labels, and its settings, with those of a point of the grid."""
    experiment, point = config.experiments[w.experiment], grid_point(config, w) or {}
    task: Any = task_of(experiment)
    corpus, chosen = experiment.corpus, dataclasses.asdict(head_settings(experiment, point))
    languages = {
        f"more_{part}": [paths.labelled_language(config, corpus, each) for each in _more_parts(config, w, part)]
        for part in ("train", "dev")
    }
    epochs = point.get("epochs", phase_of(config, w, "finetune").epochs)
    data = {"language": config.labelled[corpus].language, "epochs": epochs, **{key: codes for key, codes in languages.items() if codes}}
    if task.named:
        data[task.named] = config.labelled[corpus].labels
    # not named where nothing is switched, but of heads that could be before, so that their models are not trained anew
    if (switching := _switching(config, w)) or "switch_while_finetuning" in chosen:
        data["codeswitch"] = dataclasses.asdict(switching) if switching else None
    if (phase := phase_of(config, w, "finetune")).untrained:
        data |= {"epochs": 1, "shots": phase.shots, "verbaliser": dataclasses.asdict(experiment.verbaliser)}
    return json.dumps({**data, experiment.head: chosen}, ensure_ascii=False)
