"""Retrieval: planted neighbours are found, the margin is that of a direct computation, pairs are mined, and thresholds chosen."""

import numpy as np
import pytest
import torch

from workflow_scripts.errors import InputError
from workflow_scripts.evidence.nearest import SCORES, Mined, best, best_threshold, count, margins, mine, normalised, of_random, search
from workflow_scripts.similarity import Top


def planted(rows: int, columns: int, noise: float = 0.3) -> tuple[torch.Tensor, torch.Tensor, np.ndarray]:
    """Source rows, target rows, and for each target row the source row that it is near."""
    generator = torch.Generator().manual_seed(rows)
    source = torch.randn(rows, 24, generator=generator)
    order = torch.randperm(rows, generator=generator)[:columns]
    return source, 5 * source[order] + noise * torch.randn(columns, 24, generator=generator), order.numpy()


@pytest.mark.parametrize("score", ["cosine", "margin"])
def test_planted_neighbours_are_found(score):
    source, target, order = planted(900, 700, noise=0.1)
    found = search(source, target)
    candidates = margins(*found) if score == "margin" else found
    assert best(candidates[1])[0].tolist() == order.tolist()
    assert best(candidates[0])[0][order].tolist() == list(range(700))


@pytest.mark.parametrize("shape, k", [((300, 250), 4), ((6, 3), 4), ((40, 50), 1)])
def test_the_margin_equals_a_direct_computation(shape, k):
    source, target, _ = planted(*(shape if shape[0] > shape[1] else shape[::-1]), noise=2.0)
    if shape[0] < shape[1]:
        source, target = target, source
    a, b = (normalised(side).double().numpy() for side in (source, target))
    cosines = a @ b.T
    near_a, near_b = (np.sort(matrix, axis=1)[:, -k:] for matrix in (cosines, cosines.T))
    ratio = cosines / (near_a.mean(axis=1)[:, None] / 2 + near_b.mean(axis=1)[None] / 2)
    for candidates, direct, matrix in zip(margins(*search(source, target, k)), (ratio, ratio.T), (cosines, cosines.T), strict=True):
        assert np.sort(candidates.indices.numpy()) == pytest.approx(np.sort(np.argsort(-matrix, axis=1)[:, :k]))
        assert candidates.values.numpy() == pytest.approx(np.take_along_axis(direct, candidates.indices.numpy(), axis=1), abs=1e-4)
        chosen = np.take_along_axis(direct, candidates.indices.numpy(), axis=1).max(axis=1)
        assert best(candidates)[1] == pytest.approx(chosen, abs=1e-4)


def test_a_hub_is_nearest_by_cosine_but_not_by_margin():
    """A sentence that is near to all is no translation; the margin counts that against it."""
    generator = torch.Generator().manual_seed(1)
    common = torch.randn(1, 32, generator=generator)
    source = common + torch.randn(30, 32, generator=generator)
    target = torch.cat([source + 1.6 * torch.randn(30, 32, generator=generator), common])
    found = search(source, target)
    right = [(best(each[0])[0] == np.arange(30)).mean() for each in (found, margins(*found))]
    assert right[1] > right[0]


def test_vectors_of_zeros_are_near_to_nothing():
    forward, _ = search(torch.zeros(2, 4), torch.ones(3, 4))
    assert forward.values.tolist() == [[0.0] * 3] * 2


def top(values: list[list[float]], indices: list[list[int]]) -> Top:
    return Top(torch.tensor(values), torch.tensor(indices))


def test_no_sentence_is_mined_twice():
    forward = top([[0.9], [0.8], [0.3]], [[0], [0], [2]])
    backward = top([[0.9], [0.7], [0.3]], [[0], [1], [2]])
    mined = mine(forward, backward)
    assert list(zip(mined.source.tolist(), mined.target.tolist(), strict=True)) == [(0, 0), (1, 1), (2, 2)]
    assert mined.score == pytest.approx([0.9, 0.7, 0.3])


def test_the_threshold_is_that_of_the_greatest_f1():
    mined = Mined(np.arange(5), np.arange(5), np.array([0.9, 0.8, 0.6, 0.5, 0.1]))
    threshold = best_threshold(mined, [(0, 0), (1, 1), (3, 3), (9, 9)])
    assert threshold == pytest.approx(0.3)  # four pairs, three of them right: 6/8; two would have 4/6
    assert best_threshold(mined, [(0, 0)]) == pytest.approx(0.85)
    with pytest.raises(InputError, match="no pair of the dev text can be mined"):
        best_threshold(Mined(np.arange(0), np.arange(0), np.zeros(0)), [(0, 0)])


def test_pairs_with_the_same_score_are_on_one_side_of_the_threshold():
    copies = Mined(np.arange(12), np.arange(12), np.array([0.9] + [0.5] * 11, dtype=np.float32))
    assert best_threshold(copies, [(0, 0), (1, 1)]) == pytest.approx(0.7)  # one pair, and right: 2/3; all twelve have 4/14
    upper = np.nextafter(np.float32(0.75), np.float32(0))
    lower = np.nextafter(upper, np.float32(0))  # their middle is none of float32's numbers
    found = best_threshold(Mined(np.arange(2), np.arange(2), np.array([upper, lower])), [(0, 0)])
    assert float(lower) < found < float(upper)


def test_scores_are_sums_over_source_sentences():
    counts = count([0, 2, -1, 3], [(0, 0), (1, 1), (2, 2)])
    assert counts.tolist() == [[1, 1, 1], [0, 1, 1], [0, 0, 1], [0, 1, 0]]
    sums = counts.sum(axis=0)
    assert [SCORES[name](sums) for name in ("precision", "recall", "f1", "accuracy")] == pytest.approx([1 / 3, 1 / 3, 1 / 3, 1 / 3])
    assert SCORES["accuracy"](of_random(1000, 1000, 1000)) == 1 / 1000
    assert SCORES["f1"](np.zeros(3)) == 0
