"""retrieval: how often the nearest sentence of the other language is the translation, by the states of a model.

Nothing is trained. What is compared are models that are there: backbones, or what the arms of other experiments have been
trained to, after either phase. A sentence's vector is made of the states of one layer (`layer`, `pooling`); the search is that of
`evidence.nearest`. Test sets whose sentences all have a translation are scored by accuracy (Tatoeba, as in Artetxe and
Schwenk 2019). Where translations are rare (BUCC), the F1 of mined pairs counts, from a threshold on that is chosen on dev text.
The steps are commands:

``search``
    the neighbours of the sentences of all test sets, or mined pairs, in one process; their scores with their intervals, and what a
    random choice gets
``compare``
    tests of the models' differences, on each test set and on average over them
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import ValidationError

from workflow_scripts.config import paths
from workflow_scripts.config.experiments import AnyExperiment, NamedModel
from workflow_scripts.evidence import nearest
from workflow_scripts.evidence.average import AVERAGE, Significance, compare_folders
from workflow_scripts.evidence.states import open_half
from workflow_scripts.models.recognition import family_of
from workflow_scripts.names import undefined, unfit
from workflow_scripts.similarity import set_threads
from workflow_scripts.stage import run, write_json
from workflow_scripts.tasks.entry import Measure, Task, register_task
from workflow_scripts.tasks.experiment import checker, published_problems
from workflow_scripts.tasks.neighbours import Near, Retrieval, Sides, chosen_layers, embedded, look_up, read_found, score_by, score_of
from workflow_scripts.tasks.plan import Plan
from workflow_scripts.text.aligned import Aligned, read_gold
from workflow_scripts.text.files import write_lines


@dataclass(kw_only=True)
class RetrievalExperiment(AnyExperiment):
    """Retrieval of translations by the states of models, without training."""

    task: Literal["retrieval"]
    """Task of the experiment."""
    models: dict[str, NamedModel]
    """Models by name, in place of the run's arms. The first is the baseline for all comparisons."""
    retrieval: Retrieval = field(default_factory=Retrieval)
    """Settings of sentence vectors and of the ranking of neighbours."""
    scores: Significance = field(default_factory=Significance)
    """Tests of significance."""


RetrievalPlan = Plan[RetrievalExperiment, Aligned]

# ---------------------------------------------------------------------------------------------
# what an experiment means


def languages(plan: RetrievalPlan) -> list[str]:
    """The languages of the texts."""
    return list(dict.fromkeys(code for source in plan.text.test.values() for code in source.languages))


def model_folder(plan: RetrievalPlan, arm: str, seed: int | str) -> str:
    """Where a model is; a backbone is the same for all seeds."""
    model = plan.settings.models[arm]
    if model.backbone:
        return paths.backbone_model(model.backbone)
    return paths.trained_model(str(model.experiment), str(model.arm), seed, model.phase)


def settings_of(experiment: RetrievalExperiment, arm: str) -> Retrieval:
    """The settings for one of the models."""
    return checker(Retrieval).validate_python({**asdict(experiment.retrieval), **experiment.models[arm].retrieval})


def searched_seeds(plan: RetrievalPlan, arm: str) -> list[int]:
    """The seeds that a model is measured with: a backbone with the first one alone."""
    return plan.seeds[:1] if plan.settings.models[arm].backbone else plan.seeds


def results(plan: RetrievalPlan) -> set[str]:
    """All files that the report reads."""
    files = {f"{plan.folder}/significance.json"}
    files |= {f"{backbone.folder}/backbone.json" for backbone in plan.backbones}
    files |= {paths.aligned_file(plan.corpus, part, "json") for part in plan.text.parts()}
    for arm in plan.arms:
        files |= {f"{paths.run_folder(plan.name, arm, seed)}/predictions" for seed in searched_seeds(plan, arm)}
    return files


def held_out_text(plan: RetrievalPlan) -> list[str]:
    """Both sides of all test sets and dev text."""
    return [paths.aligned_file(plan.corpus, part, side) for part in plan.text.parts() for side in ("source", "target")]


def problems(plan: RetrievalPlan) -> Iterator[str]:
    """Models, experiments and arms that are not defined or not run, layers' settings that are none, languages that a backbone lacks."""
    where, experiment = plan.where, plan.settings
    yield from undefined(f"{where}.corpus", plan.corpus, plan.config.aligned)
    if not experiment.models:
        yield f"{where}.models: names no model"
    yield from unfit(f"{where}.models", experiment.models)
    if plan.text:
        yield from published_problems(plan, experiment.models, [*plan.text.test, AVERAGE])
    known = list(asdict(experiment.retrieval))
    for called, model in experiment.models.items():
        at = f"{where}.models.{called}"
        for key in model.retrieval:
            yield from undefined(f"{at}.retrieval", key, known)
        try:
            settings_of(experiment, called)
        except ValidationError as error:
            yield from (
                f"{at}.retrieval.{problem['loc'][0]}: {problem['msg'].lower()}" for problem in error.errors() if problem["loc"][0] in known
            )
        yield from _model_problems(plan, called)
    if len(_sound_models(plan)) == len(experiment.models) and not plan.seeds:
        yield f"{where}.models: their experiments have no seed in common"
    if plan.text:
        yield from _backbone_problems(plan)


def _model_problems(plan: RetrievalPlan, called: str) -> Iterator[str]:
    model, config, at = plan.settings.models[called], plan.config, f"{plan.where}.models.{called}"
    if bool(model.backbone) == bool(model.experiment and model.arm):
        yield f"{at}: give either `backbone`, or `experiment` and `arm`"
        return
    if model.backbone:
        yield from undefined(f"{at}.backbone", model.backbone, config.backbones)
        return
    yield from undefined(f"{at}.experiment", model.experiment or "", config.experiments)
    if model.experiment not in config.experiments:
        return
    other = plan.other(model.experiment)
    if not other.trains or model.experiment not in config.run.experiments:
        yield f"{at}.experiment: {model.experiment!r} must be one of run.experiments, and train"
    elif model.arm not in other.arms:
        yield f"{at}.arm: {model.arm!r} is no arm of {model.experiment}, which has {', '.join(other.arms)}"
    else:
        yield from undefined(f"{at}.phase", model.phase, [phase.name for phase in other.phases_of(model.arm)])


def _sound_models(plan: RetrievalPlan) -> list[str]:
    """The models that can be measured, as nothing is wrong with them."""
    return [called for called in plan.settings.models if not any(_model_problems(plan, called))]


def _backbone_problems(plan: RetrievalPlan) -> Iterator[str]:
    for link in dict.fromkeys(link for called in _sound_models(plan) for link in plan.backbone_of(called).chain):
        for code in languages(plan) if link.settings.made_here else ():
            if code not in link.pretrained_in:
                yield f"{link.where_made}.text: no text for {code!r}, which {plan.where} needs; it has {link.pretrained_in}"


def measure(settings: RetrievalExperiment, text: Any) -> Measure:
    """What the scores are called: accuracy, or the F1 of mined pairs."""
    if text.mines:
        metric, note = "f1", " of mined pairs in per cent; the threshold is chosen on dev text"
        trivially = "the expected value of giving each sentence any other"
    else:
        metric, note = "accuracy", " in per cent: the nearest sentence is the translation"
        trivially = "one in as many as there are sentences"
    return Measure(
        metric=metric,
        note=note,
        others=("precision", "recall") if text.mines else ("backwards",),
        interval="the 95 % interval (bootstrap over sentences)",
        trivial="random choice",
        trivially=trivially,
        signature="expected value of a random choice",
        guess="a random choice",
        # a backbone is the same for all seeds
        same_for_all_seeds=lambda arm: bool(settings.models[arm].backbone),
    )


RETRIEVAL = Task(
    name="retrieval",
    label="retrieval of translations",
    settings=RetrievalExperiment,
    text="aligned",
    answers="neighbours",
    length="none",
    languages=languages,
    trained_languages=lambda plan: languages(plan)[:1],
    held_out_text=held_out_text,
    results=results,
    problems=problems,
    rules={"retrieval": "retrieval.batch_tokens"},
    words={"learns": "", "inputs": "sentences", "outputs": "neighbours", "row": "sentences"},
    parts={
        "run": ("What was run", "searched"),
        "scores": ("Scores", "answers"),
        "layers": ("Layers and measures", "layers"),
        "neighbours": ("Neighbours side by side", "neighbours"),
    },
    templates=("retrieval", "classification"),
    measure=measure,
)
register_task(RETRIEVAL)


# ---------------------------------------------------------------------------------------------
# commands


def search(
    model: Path,
    sources: tuple[Path, ...],
    targets: tuple[Path, ...],
    gold: tuple[Path, ...],
    folder: Path,
    *,
    testsets: tuple[str, ...],
    languages: tuple[str, ...],
    dev_sources: tuple[Path, ...] = (),
    dev_targets: tuple[Path, ...] = (),
    dev_gold: tuple[Path, ...] = (),
    threads: int = 0,
    settings: Retrieval = Retrieval(),
) -> None:
    """Look for the translations of all test sets; write what was found (``NAME.hyp``) and ``NAME.scores.json`` into `folder`.

    A line of ``NAME.hyp`` has the number of a source sentence's neighbour and its score, or −1 where no pair was mined. All files are
    ordered like `testsets`, `languages` are pairs like ``de-en``. With `dev_gold` pairs are mined. Raises `InputError` for a layer
    that the model does not have, or a language that it does not know.
    """
    if threads:
        set_threads(threads)
    half = open_half("retrieval", model, settings.part if family_of(model).decoder else "encoder", settings.device)
    layers, device = chosen_layers(half.depth, settings), next(half.network.parameters()).device
    for at, name in enumerate(testsets):
        codes = languages[at].split("-")
        test = embedded((sources[at], targets[at]), gold[at], codes, half, layers, settings, unify=bool(dev_gold))
        dev = embedded((dev_sources[at], dev_targets[at]), dev_gold[at], codes, half, layers, settings, unify=True) if dev_gold else None
        near = [
            Near(test.neighbours(place, settings.k, device), dev.neighbours(place, settings.k, device) if dev else None)
            for place in range(len(layers))
        ]
        found = [look_up(test, dev, one, settings.score) for one in near]
        given, scores, threshold = found[0]
        write_lines(folder / f"{name}.hyp", (f"{j}\t{score:.6f}" for j, score in zip(given, scores, strict=True)))
        report = score_of(given, test, mines=dev is not None)
        metric = report["metric"]
        by_layer = {str(layer): 100 * score_by(one, test.gold, metric) for layer, (one, _, _) in zip(layers, found, strict=True)}
        other = "cosine" if settings.score == "margin" else "margin"
        report[f"by_{other}"] = 100 * score_by(look_up(test, dev, near[0], other)[0], test.gold, metric)
        if dev is None:
            back = Sides(test.target, test.source, [(j, i) for i, j in test.gold])
            turned = Near((near[0].test[1], near[0].test[0]), None)
            counts = nearest.count(look_up(back, None, turned, settings.score)[0], back.gold)
            counts[:, 2] = np.minimum(counts[:, 2], 1)  # the translation of several sentences is given one of them
            report["backwards"] = 100 * nearest.SCORES["accuracy"](counts.sum(axis=0))
        report |= {
            "threshold": threshold,
            "layers": dict(sorted(by_layer.items(), key=lambda item: int(item[0]))),
            "layer": layers[0],
            "width": test.source[0].shape[1],
            "cut_texts": test.cut,
            "family": half.codec.family,
            "model": str(model),
            "device": str(device),
            "settings": asdict(settings),
        }
        write_json(folder / f"{name}.scores.json", report)


def compare_models(
    systems: tuple[Path, ...],
    gold: tuple[Path, ...],
    output: Path,
    *,
    names: tuple[str, ...],
    testsets: tuple[str, ...],
    seeds: tuple[int, ...],
    metric: Literal["accuracy", "f1"] = "accuracy",
    settings: Significance = Significance(),
) -> None:
    """Test the differences in `metric` between every two models, on each test set and on average: by seed, and over the seeds.

    `systems` are the folders of what was found, ordered by model, then by seed; `gold` is ordered like `testsets`.
    """
    pairs = {testset: read_gold(path) for testset, path in zip(testsets, gold, strict=True)}

    def counts_in(hypotheses: Path, testset: str) -> np.ndarray:
        return nearest.count(read_found(hypotheses, pairs[testset]), pairs[testset])

    found = compare_folders(systems, counts_in, nearest.SCORES[metric], names, testsets, seeds, settings)
    write_json(output, {"metric": metric, **found})


if __name__ == "__main__":
    run({"search": search, "compare": compare_models})
