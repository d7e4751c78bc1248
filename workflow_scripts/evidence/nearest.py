"""nearest: the nearest sentences of the other language, by the cosine of their vectors or by a margin over their neighbours.

The search is exact: all similarities are computed, block by block, and the greatest are kept in both directions (`similarity`). The
margin is the ratio of Artetxe and Schwenk (2019, section 3.1). It divides the cosine of two sentences by the mean cosine
of both with their k nearest neighbours on the other side:

    margin(x, y) = cos(x, y) / (Σ_{z ∈ NN_k(x)} cos(x, z) / 2k + Σ_{z ∈ NN_k(y)} cos(y, z) / 2k).

As in their program, only the k nearest neighbours by cosine are candidates.

Pairs are mined by their strategy "max" (section 3.2). It takes the best candidate of each sentence in either direction, from the
best pair on, and leaves out sentences that were taken before. A score is made of the sums of what was counted in source sentences, so
that tests of significance can draw these anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import torch

from workflow_scripts.errors import InputError
from workflow_scripts.evidence.counted import share
from workflow_scripts.similarity import Similarities, Top, nearest


class Mined(NamedTuple):
    """Pairs of sentences, the best first: their numbers on both sides and their scores."""

    source: np.ndarray
    target: np.ndarray
    score: np.ndarray


def search(source: torch.Tensor, target: torch.Tensor, k: int = 4, device: torch.device | str = "cpu") -> tuple[Top, Top]:
    """The `k` nearest target rows of each source row by cosine, and the `k` nearest source rows of each target row.

    Both sides are sentences × width. Besides them, a block of some hundred rows of similarities is in memory. Where a side has fewer
    than `k` rows, these are all. The products are made on the `device`, what is found is in memory.
    """
    found = nearest(Similarities(normalised(source.to(device)), normalised(target.to(device)), keep="blocks"), k)
    ahead, back = (Top(side.values.cpu(), side.indices.cpu()) for side in found)
    return ahead, back


def normalised(vectors: torch.Tensor) -> torch.Tensor:
    """The vectors in float32 and of length 1; a vector of zeros stays one."""
    return torch.nn.functional.normalize(vectors.float(), dim=1, eps=1e-12)


def margins(forward: Top, backward: Top) -> tuple[Top, Top]:
    """The candidates of both directions with the ratio margin as their score, in the order of their cosines."""
    ahead, back = (side.values.mean(dim=1) / 2 for side in (forward, backward))
    return (
        Top(forward.values / (ahead[:, None] + back[forward.indices]), forward.indices),
        Top(backward.values / (back[:, None] + ahead[backward.indices]), backward.indices),
    )


def best(candidates: Top) -> tuple[np.ndarray, np.ndarray]:
    """The candidate with the greatest score of each row, and that score; of equal ones the one that is nearer by cosine."""
    at = candidates.values.argmax(dim=1, keepdim=True)
    return candidates.indices.gather(1, at)[:, 0].numpy(), candidates.values.gather(1, at)[:, 0].numpy()


def mine(forward: Top, backward: Top) -> Mined:
    """Pairs in which no sentence is twice, the best first, of each sentence's best candidate in either direction."""
    (to_target, scores), (to_source, back_scores) = best(forward), best(backward)
    source = np.concatenate([np.arange(len(to_target)), to_source])
    target = np.concatenate([to_target, np.arange(len(to_source))])
    score = np.concatenate([scores, back_scores])
    taken: tuple[set[int], set[int]] = set(), set()
    kept = []
    for at in np.argsort(-score, kind="stable").tolist():
        i, j = int(source[at]), int(target[at])
        if i not in taken[0] and j not in taken[1]:
            taken[0].add(i)
            taken[1].add(j)
            kept.append(at)
    return Mined(source[kept], target[kept], score[kept])


def best_threshold(mined: Mined, gold: Iterable[tuple[int, int]]) -> float:
    """The score from which on pairs are to be taken for the greatest F1.

    It lies between two different scores of `mined`, as pairs with the same score are taken together; or it is the last one.
    Raises `InputError` where nothing was mined.
    """
    if not len(mined.score):
        raise InputError("no pair of the dev text can be mined, since each of its sentences stands there several times; give other text")
    true = set(gold)
    score = mined.score.astype(np.float64)  # in float32 the middle of two neighbouring numbers is one of them
    right = np.cumsum([pair in true for pair in zip(mined.source.tolist(), mined.target.tolist(), strict=True)])
    f = 2 * right / (np.arange(1, len(right) + 1) + len(true))
    ends = np.append(score[:-1] > score[1:], True)
    at = int(np.where(ends, f, -1.0).argmax())
    following = score[at + 1] if at + 1 < len(score) else score[at]
    return float((score[at] + following) / 2)


COUNTS = ("right", "given", "true")
"""What is counted in each source sentence, in this order: neighbours or pairs that are right, that were given, that there are."""


def count(given: Sequence[int], gold: Iterable[tuple[int, int]]) -> np.ndarray:
    """What is counted in each source sentence (sentences × `COUNTS`): `given` has the number of its neighbour, −1 for none."""
    counts = np.zeros((len(given), len(COUNTS)))
    true = set(gold)
    for i, _ in true:
        counts[i, 2] += 1
    for i, j in enumerate(given):
        counts[i, :2] = ((i, j) in true, j >= 0)
    return counts


SCORES = {
    "accuracy": lambda sums: share(sums[0], sums[2]),
    "f1": lambda sums: share(2 * sums[0], sums[1] + sums[2]),
    "precision": lambda sums: share(sums[0], sums[1]),
    "recall": lambda sums: share(sums[0], sums[2]),
}
"""Score → what makes it, from 0 to 1, of the sums of `COUNTS`. Accuracy is recall where each sentence is given its nearest one."""


def of_random(sources: int, targets: int, pairs: int) -> np.ndarray:
    """The expected sums of `COUNTS` where each source sentence is given any target sentence: 1 / N of them are right."""
    return np.array([pairs / targets, sources, pairs])
