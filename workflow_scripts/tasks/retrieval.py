"""retrieval: how often the nearest sentence of the other language is the translation, by the states of a model.

Nothing is trained. What is compared are models that are there: backbones, or what the arms of other experiments have been
trained to, after either phase. A sentence's vector is made of the states of one layer (`layer`, `pooling`); the search is that of
`evidence.nearest`. Test sets whose sentences all have a translation are scored by accuracy (Tatoeba, as in Artetxe and
Schwenk 2019), those in which translations are rare by the F1 of mined pairs, from a threshold on that is chosen on dev text (BUCC).
The steps are commands:

``search``
    the neighbours of the sentences of all test sets, or mined pairs, in one process; their scores with their intervals, and what a
    random choice gets
``compare``
    tests of the models' differences, on each test set and on average over them
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from pydantic import TypeAdapter, ValidationError

from workflow_scripts.config import paths
from workflow_scripts.config.configuration import Config
from workflow_scripts.config.experiments import AnyExperiment
from workflow_scripts.evidence import nearest
from workflow_scripts.evidence.average import AVERAGE, Significance, compare_folders, interval
from workflow_scripts.evidence.label_metric import score_label, score_title
from workflow_scripts.evidence.states import Half, Pooling, Side, encoded, open_half, pooled
from workflow_scripts.models.recognition import family_of
from workflow_scripts.names import undefined, unfit
from workflow_scripts.number_types import Positive
from workflow_scripts.similarity import set_threads
from workflow_scripts.stage import InputError, run, write_json
from workflow_scripts.tasks.entry import Measure, Task, register_task
from workflow_scripts.tasks.experiment import (
    Trained,
    arms_of,
    backbone_of,
    backbones_of,
    chain,
    pretrained_in,
    published_problems,
    seeds_of,
    trains,
)
from workflow_scripts.text.aligned import read_gold
from workflow_scripts.text.files import read_lines, write_lines


@dataclass
class Retrieval:
    """What a sentence's vector is, and how neighbours are ranked."""

    part: Side = "encoder"
    """The part of a model whose states are taken; an encoder alone has but one."""
    layer: int = -1
    """The layer; 0 is the embeddings, −1 the last layer. One in the middle is often better than the last."""
    layers: list[int] = field(default_factory=list)
    """More layers to be measured in the same pass. Their vectors are in memory all together, so this is for test sets of some
    thousand sentences."""
    pooling: Pooling = "mean"
    """What is made of the states of a sentence's pieces: their mean, the mean without special tokens (`text`), the state of the
    first piece, or of the last."""
    score: Literal["cosine", "margin"] = "margin"
    """What neighbours are ranked by: cosine, or the ratio margin of Artetxe and Schwenk (2019). With gold pairs, also what the
    threshold is on."""
    k: Positive = 4
    """Nearest neighbours that the margin looks at, and that are candidates."""
    batch_tokens: Positive = 8192
    """Tokens that go through the model at once."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Where to compute."""


@dataclass
class NamedModel:
    """A model that is compared: a backbone, or what an arm of another experiment has been trained to."""

    backbone: str | None = None
    """Name of a backbone."""
    experiment: str | None = None
    """Instead of a backbone: an experiment of the run that trains, of which `arm` and `phase` choose the model."""
    arm: str | None = None
    """The arm of `experiment` whose model is taken."""
    phase: str = "finetune"
    """The phase of the arm after which the model is taken: `finetune`, `pretext`, or of a longer chain one as `1-codeswitch`."""
    retrieval: dict[str, Any] = field(default_factory=dict)
    """Settings of `retrieval` that are others for this model, such as `layer`."""


@dataclass(kw_only=True)
class RetrievalExperiment(AnyExperiment):
    """Retrieval of translations by the states of models, without training."""

    task: Literal["retrieval"]
    """What is measured."""
    models: dict[str, NamedModel]
    """Models by name; the first is the baseline that the others are compared with. They take the place of the run's arms."""
    retrieval: Retrieval = field(default_factory=Retrieval)
    """Vectors and neighbours."""
    scores: Significance = field(default_factory=Significance)
    """Tests of significance."""


# ---------------------------------------------------------------------------------------------
# what an experiment means


def languages(config: Config, name: str) -> list[str]:
    """The languages of the texts."""
    text = config.aligned[config.experiments[name].corpus]
    return list(dict.fromkeys(code for source in text.test.values() for code in source.languages))


def model_folder(config: Config, name: str, arm: str, seed: int | str) -> str:
    """Where a model is; a backbone is the same for all seeds."""
    model = config.experiments[name].models[arm]
    if model.backbone:
        return paths.backbone_model(model.backbone)
    return paths.trained_model(model.experiment, model.arm, seed, model.phase)


def settings_of(experiment: RetrievalExperiment, arm: str) -> Retrieval:
    """The settings for one of the models."""
    return TypeAdapter(Retrieval).validate_python({**asdict(experiment.retrieval), **experiment.models[arm].retrieval})


def searched_seeds(config: Config, name: str, arm: str) -> list[int]:
    """The seeds that a model is measured with: a backbone with the first one alone."""
    experiment = config.experiments[name]
    seeds = seeds_of(config, experiment)
    return seeds[:1] if experiment.models[arm].backbone else seeds


def results(config: Config, name: str) -> set[str]:
    """All files that the report reads."""
    experiment = config.experiments[name]
    files = {f"{paths.experiment_folder(name)}/significance.json"}
    files |= {f"{paths.backbone_folder(backbone)}/backbone.json" for backbone in backbones_of(config, experiment)}
    files |= {paths.aligned_file(experiment.corpus, part, "json") for part in paths.aligned_parts(config, experiment.corpus)}
    for arm in arms_of(config, experiment):
        files |= {f"{paths.run_folder(name, arm, seed)}/predictions" for seed in searched_seeds(config, name, arm)}
    return files


def held_out_text(config: Config, name: str) -> list[str]:
    """Both sides of all test sets and dev text."""
    corpus = config.experiments[name].corpus
    return [paths.aligned_file(corpus, part, side) for part in paths.aligned_parts(config, corpus) for side in ("source", "target")]


def problems(config: Config, name: str) -> Iterator[str]:
    """Models, experiments and arms that are not defined or not run, layers' settings that are none, languages that a backbone lacks."""
    where, experiment = f"experiments.{name}", config.experiments[name]
    yield from undefined(f"{where}.corpus", experiment.corpus, config.aligned)
    if not experiment.models:
        yield f"{where}.models: names no model"
    yield from unfit(f"{where}.models", experiment.models)
    if text := config.aligned.get(experiment.corpus):
        yield from published_problems(where, experiment.published, experiment.models, [*text.test, AVERAGE])
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
        yield from _model_problems(config, at, model)
    if len(_sound_models(config, experiment)) == len(experiment.models) and not seeds_of(config, experiment):
        yield f"{where}.models: their experiments have no seed in common"
    if experiment.corpus in config.aligned:
        yield from _backbone_problems(config, name)


def _model_problems(config: Config, at: str, model: NamedModel) -> Iterator[str]:
    if bool(model.backbone) == bool(model.experiment and model.arm):
        yield f"{at}: give either `backbone`, or `experiment` and `arm`"
        return
    if model.backbone:
        yield from undefined(f"{at}.backbone", model.backbone, config.backbones)
        return
    yield from undefined(f"{at}.experiment", model.experiment or "", config.experiments)
    other = config.experiments.get(model.experiment or "")
    if other is None:
        return
    if not trains(other) or model.experiment not in config.run.experiments:
        yield f"{at}.experiment: {model.experiment!r} must be one of run.experiments, and train"
    elif model.arm not in arms_of(config, other):
        yield f"{at}.arm: {model.arm!r} is no arm of {model.experiment}, which has {', '.join(arms_of(config, other))}"
    else:
        yield from undefined(f"{at}.phase", model.phase, [phase.name for phase in config.arms[model.arm]])


def _sound_models(config: Config, experiment: RetrievalExperiment) -> list[str]:
    """The models of which something can be told, as nothing is wrong with them."""
    return [called for called, model in experiment.models.items() if not any(_model_problems(config, "", model))]


def _backbone_problems(config: Config, name: str) -> Iterator[str]:
    experiment = config.experiments[name]
    sound = _sound_models(config, experiment)
    chains = dict.fromkeys(link for called in sound for link in chain(config, backbone_of(config, experiment, called)))
    for backbone in chains:
        block = config.backbones[backbone]
        has = pretrained_in(config, backbone)
        for code in languages(config, name) if block.made_here else ():
            if code not in has:
                yield f"backbones.{backbone}.{block.kind}.text: no text for {code!r}, which experiments.{name} needs; it has {has}"


def nothing(config: Config, name: str) -> list[str]:
    """What a task that trains nothing says of training text and lexicons."""
    return []


def no_phases(config: Config, name: str, arms: list[str]) -> Iterator[Trained]:
    """Nothing is trained."""
    return iter(())


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
        name=score_label(metric),
        title=score_title(metric),
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
    trained_languages=lambda config, name: languages(config, name)[:1],
    training_text=nothing,
    held_out_text=held_out_text,
    lexicons=nothing,
    results=results,
    problems=problems,
    phases=no_phases,
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
# steps


@dataclass
class Sides:
    """A test set, or its dev text: both sides as vectors by layer, and the pairs of lines that are translations."""

    source: list[torch.Tensor]
    target: list[torch.Tensor]
    gold: list[tuple[int, int]]
    vector_of: Sequence[np.ndarray] = ()
    """Of both sides, the number of each line's vector, where lines of the same text share one; by default each has its own."""

    def __post_init__(self) -> None:
        self.vector_of = self.vector_of or (np.arange(len(self.source[0])), np.arange(len(self.target[0])))

    @property
    def sizes(self) -> tuple[int, int]:
        """The numbers of lines."""
        return len(self.vector_of[0]), len(self.vector_of[1])

    def mined(self, candidates: Both) -> nearest.Mined:
        """The pairs of lines among the candidates of all vectors.

        A text that stands in several lines is in no pair, since nobody can tell which line is meant (as in LASER's and XTREME's scripts).
        """
        found = nearest.mine(*candidates)
        source, target = (_only_line(side)[vectors] for side, vectors in zip(self.vector_of, found[:2], strict=True))
        kept = (source >= 0) & (target >= 0)
        return nearest.Mined(source[kept], target[kept], found.score[kept])

    def neighbours(self, place: int, k: int, device: torch.device | str = "cpu") -> Both:
        """The `k` nearest sentences of each sentence on the other side, by the vectors of one layer."""
        return nearest.search(self.source[place], self.target[place], k, device)


def _only_line(vector_of: np.ndarray) -> np.ndarray:
    """For each vector the number of its line, −1 if several lines have it."""
    line = np.full(vector_of.max() + 1, -1)
    line[vector_of] = np.arange(len(vector_of))
    line[np.bincount(vector_of) > 1] = -1
    return line


Both = tuple[nearest.Top, nearest.Top]
"""What is nearest of each source sentence, and of each target sentence."""


class Near(NamedTuple):
    """What is nearest in a test set, and in its dev text, by the vectors of one layer."""

    test: Both
    dev: Both | None


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
        by_layer = {str(layer): 100 * _leading(one, test.gold, metric) for layer, (one, _, _) in zip(layers, found, strict=True)}
        other = "cosine" if settings.score == "margin" else "margin"
        report[f"by_{other}"] = 100 * _leading(look_up(test, dev, near[0], other)[0], test.gold, metric)
        if dev is None:
            back = Sides(test.target, test.source, [(j, i) for i, j in test.gold])
            turned = Near((near[0].test[1], near[0].test[0]), None)
            report["backwards"] = 100 * _leading(look_up(back, None, turned, settings.score)[0], back.gold, metric)
        report |= {
            "threshold": threshold,
            "layers": dict(sorted(by_layer.items(), key=lambda item: int(item[0]))),
            "layer": layers[0],
            "width": test.source[0].shape[1],
            "family": half.codec.family,
            "model": str(model),
            "device": str(device),
            "settings": asdict(settings),
        }
        write_json(folder / f"{name}.scores.json", report)


def score_of(given: Sequence[int], test: Sides, mines: bool) -> dict[str, Any]:
    """All scores of a test set in per cent, and that of a random choice (`chance`), which is an expected value.

    `low` and `high` limit the 95 % interval, from source sentences drawn anew (bootstrap).
    """
    metric = "f1" if mines else "accuracy"
    counts = nearest.count(given, test.gold)
    low, high = interval(counts, nearest.SCORES[metric])
    sizes = test.sizes
    chance = 100 * nearest.SCORES[metric](nearest.of_random(*sizes, len(test.gold)))
    names = ("f1", "precision", "recall") if mines else ("accuracy",)
    return {
        "metric": metric,
        "examples": sizes[0],
        "among": sizes[1],
        "pairs": len(test.gold),
        **{name: 100 * nearest.SCORES[name](counts.sum(axis=0)) for name in names},
        "low": low,
        "high": high,
        "chance": chance,
        "at_chance": low <= chance,
    }


def _leading(given: Sequence[int], gold: list[tuple[int, int]], metric: str) -> float:
    return nearest.SCORES[metric](nearest.count(given, gold).sum(axis=0))


def look_up(test: Sides, dev: Sides | None, near: Near, score: str) -> tuple[list[int], list[float], float | None]:
    """For each source sentence the number of what was found (−1 for nothing) and its score, among what is `near`; and the threshold.

    With `dev` pairs are mined from a threshold on, the one of the greatest F1 there.
    """
    candidates = _scored(near.test, score)
    if dev is None or near.dev is None:
        found, scores = nearest.best(candidates[0])
        return found.tolist(), scores.tolist(), None
    threshold = nearest.best_threshold(dev.mined(_scored(near.dev, score)), dev.gold)
    given, values = [-1] * test.sizes[0], [0.0] * test.sizes[0]
    for i, j, value in zip(*(side.tolist() for side in test.mined(candidates)), strict=True):
        if value >= threshold:
            given[i], values[i] = j, value
    return given, values, threshold


def _scored(found: Both, score: str) -> Both:
    return nearest.margins(*found) if score == "margin" else found


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


def read_found(path: Path, gold: list[tuple[int, int]]) -> list[int]:
    """The number of each source sentence's neighbour; raises `InputError` where the lines are fewer than `gold` knows, or no numbers."""
    try:
        found = [int(line.split("\t")[0]) for line in read_lines(path)]
    except ValueError:
        found = []
    if len(found) <= max(i for i, _ in gold):
        raise InputError(f"{path}: does not have a neighbour for each sentence; delete the folder and run the same command again")
    return found


# ---------------------------------------------------------------------------------------------
# vectors


def chosen_layers(depth: int, settings: Retrieval) -> list[int]:
    """The layers to be measured, as numbers from 0, the one that counts first; `depth` is the number of the model's layers."""
    for layer in (settings.layer, *settings.layers):
        if not -depth - 1 <= layer <= depth:
            raise InputError(f"retrieval.layer: {layer} is none of the model's layers, 0 (the embeddings) to {depth}, or −1 for the last")
    return list(dict.fromkeys(layer % (depth + 1) for layer in (settings.layer, *settings.layers)))


def embedded(
    files: tuple[Path, Path], gold: Path, codes: Sequence[str], half: Half, layers: list[int], settings: Retrieval, unify: bool = False
) -> Sides:
    """The vectors of both sides of a test set in the given layers (rows × width each, float32).

    With `unify` lines of the same text have one vector: otherwise copies would be each other's rivals, and fill the neighbourhoods that
    the margin is measured by.
    """
    sides: list[list[torch.Tensor]] = []
    vector_of: tuple[np.ndarray, ...] = ()
    for path, code, other in zip(files, codes, reversed(codes), strict=True):
        half.codec.fallback = other
        lines = list(read_lines(path))
        if unify:
            numbers: dict[str, int] = {}
            vector_of = (*vector_of, np.array([numbers.setdefault(line, len(numbers)) for line in lines]))
            lines = list(numbers)
        rows = encoded(half, lines, code)
        sides.append(list(pooled(half, rows, [settings.pooling], settings.batch_tokens, layers)[0].cpu()))
    return Sides(sides[0], sides[1], read_gold(gold), vector_of)


if __name__ == "__main__":
    run({"search": search, "compare": compare_models})
