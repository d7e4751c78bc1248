"""neighbours: the vectors of sentences, which ones are found by them, and the scores of what is found; the steps of `retrieval`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import torch

from workflow_scripts.evidence import nearest
from workflow_scripts.evidence.average import interval
from workflow_scripts.evidence.states import Half, Pooling, Side, pooled
from workflow_scripts.number_types import Positive
from workflow_scripts.stage import InputError
from workflow_scripts.text.aligned import read_gold
from workflow_scripts.text.files import read_lines

Both = tuple[nearest.Top, nearest.Top]
"""What is nearest of each source sentence, and of each target sentence."""


@dataclass
class Retrieval:
    """How sentences become vectors, and how neighbours are ranked."""

    part: Side = "encoder"
    """Half of the model whose states are used. An encoder-only model has just one."""
    layer: int = -1
    """Layer whose states are used; 0 is the embeddings, −1 the last layer. A middle layer is often better than the last."""
    layers: list[int] = field(default_factory=list)
    """Further layers to measure in the same pass. All their vectors are in memory together, so test sets should have at most some thousand
    sentences."""
    pooling: Pooling = "mean"
    """How the states of a sentence become one vector. `mean`: mean of all. `text`: mean without special tokens. `first`, `last`: the state
    of that piece, or of the one that a decoder's own tokenizer puts last."""
    score: Literal["cosine", "margin"] = "margin"
    """Score that ranks neighbours: cosine, or the ratio margin of Artetxe and Schwenk (2019). With gold pairs, the threshold is on this
    score too."""
    k: Positive = 4
    """Number of nearest neighbours that are candidates and that the margin uses."""
    prefix: str = ""
    """Text before each sentence, such as `"query: "` of E5; by default none. With `pooling: text` the mean is over its pieces, too."""
    batch_tokens: Positive = 8192
    """Tokens per forward pass. Affects only time and memory."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Device for computing; `auto` takes a GPU if there is one."""


def chosen_layers(depth: int, settings: Retrieval) -> list[int]:
    """The layers to be measured, as numbers from 0, the one that counts first; `depth` is the number of the model's layers."""
    for layer in (settings.layer, *settings.layers):
        if not -depth - 1 <= layer <= depth:
            raise InputError(f"retrieval.layer: {layer} is none of the model's layers, 0 (the embeddings) to {depth}, or −1 for the last")
    return list(dict.fromkeys(layer % (depth + 1) for layer in (settings.layer, *settings.layers)))


@dataclass
class Sides:
    """A test set, or its dev text: both sides as vectors by layer, and the pairs of lines that are translations."""

    source: list[torch.Tensor]
    target: list[torch.Tensor]
    gold: list[tuple[int, int]]
    vector_of: Sequence[np.ndarray] = ()
    """Of both sides, the number of each line's vector, where lines of the same text share one; by default each has its own."""
    cut: int = 0
    """How many lines of both sides have an end that the model did not read."""

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


def embedded(
    files: tuple[Path, Path], gold: Path, codes: Sequence[str], half: Half, layers: list[int], settings: Retrieval, unify: bool = False
) -> Sides:
    """The vectors of both sides of a test set in the given layers (rows × width each, float32).

    With `unify` lines of the same text have one vector. Otherwise copies would be rivals, and fill the neighbourhoods that the margin is
    measured by.
    """
    sides: list[list[torch.Tensor]] = []
    vector_of: tuple[np.ndarray, ...] = ()
    cut = 0
    for path, code, other in zip(files, codes, reversed(codes), strict=True):
        half.codec.fallback = other
        lines = list(read_lines(path))
        if unify:
            numbers: dict[str, int] = {}
            vector_of = (*vector_of, np.array([numbers.setdefault(line, len(numbers)) for line in lines]))
            lines = list(numbers)
        whole = half.codec.pieces([f"{settings.prefix}{line}" for line in lines])
        cut += sum(half.codec.is_too_long(ids, half.longest) for ids in whole)
        end = half.codec.own_end if settings.pooling == "last" else []
        rows = [[*row, *end] for row in half.codec.framed([half.codec.within(ids, half.longest) for ids in whole], code)]
        sides.append(list(pooled(half, rows, [settings.pooling], settings.batch_tokens, layers)[0].cpu()))
    return Sides(sides[0], sides[1], read_gold(gold), vector_of, cut)


def _only_line(vector_of: np.ndarray) -> np.ndarray:
    """For each vector the number of its line, −1 if several lines have it."""
    line = np.full(vector_of.max() + 1, -1)
    line[vector_of] = np.arange(len(vector_of))
    line[np.bincount(vector_of) > 1] = -1
    return line


class Near(NamedTuple):
    """What is nearest in a test set, and in its dev text, by the vectors of one layer."""

    test: Both
    dev: Both | None


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


def read_found(path: Path, gold: list[tuple[int, int]]) -> list[int]:
    """The number of each source sentence's neighbour; raises `InputError` where the lines are fewer than `gold` knows, or no numbers."""
    try:
        found = [int(line.split("\t")[0]) for line in read_lines(path)]
    except ValueError:
        found = []
    if len(found) <= max(i for i, _ in gold):
        raise InputError(f"{path}: does not have a neighbour for each sentence; delete the folder and run the same command again")
    return found


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


def score_by(given: Sequence[int], gold: list[tuple[int, int]], metric: str) -> float:
    """One score of what was found, from 0 to 1."""
    return nearest.SCORES[metric](nearest.count(given, gold).sum(axis=0))
