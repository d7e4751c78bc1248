"""Rankings: scikit-learn's nDCG query by query, as in XGLUE's script, MRR with ties, and the value of a random order."""

import itertools
import random

import numpy as np
import pytest
from sklearn.metrics import ndcg_score

from workflow_scripts.evidence.ranking_scores import SCORES, count, ranked_queries, reciprocal_rank


def test_ndcg_is_that_of_xglues_script():
    """The script: rows grouped by contiguous query, groups of one left out, scikit-learn's nDCG of each, their mean."""
    draw = random.Random(1)
    queries = [name for name in range(60) for _ in range(draw.randrange(1, 9))]
    labels, predictions = ([draw.randrange(5) for _ in queries] for _ in range(2))
    groups: dict[int, list[int]] = {}
    for row, query in enumerate(queries):
        groups.setdefault(query, []).append(row)
    expected = [ndcg_score([[labels[r] for r in g]], [[predictions[r] for r in g]]) for g in groups.values() if len(g) > 1]
    rows = ranked_queries([str(query) for query in queries])
    counts = count([[labels[r] for r in g] for g in rows], [[predictions[r] for r in g] for g in rows])
    assert SCORES["ndcg"](counts.sum(axis=0)) == pytest.approx(np.mean(expected)) and len(counts) == len(expected) < 60


def test_gain_discount_and_cut():
    ((whole, cut, first, queries),) = count([[0, 2, 1]], [[3.0, 2.0, 1.0]])
    assert whole == cut == pytest.approx((2 / np.log2(3) + 1 / np.log2(4)) / (2 + 1 / np.log2(3)))  # linear gain
    assert (first, queries) == (1 / 2, 1)
    ((whole, cut, *_),) = count([[0] * 10 + [1]], [list(range(11, 0, -1))])
    assert whole > 0 and cut == 0
    assert count([[0, 0]], [[1.0, 2.0]]).tolist() == [[0, 0, 0, 1]]  # no relevant document


def test_a_query_that_comes_again_later_is_another_one():
    assert ranked_queries(["a", "a", "b", "b", "b", "a", "c", "c"]) == [[0, 1], [2, 3, 4], [6, 7]]


@pytest.mark.parametrize("relevant", [[1, 0, 0], [0, 1, 1, 0], [1, 1], [0, 0, 0, 0, 1], [0, 0]])
def test_a_random_ranking_has_the_mean_over_all_orders(relevant):
    orders = list(itertools.permutations(relevant))
    expected = np.mean([next((1 / rank for rank, one in enumerate(order, 1) if one), 0.0) for order in orders])
    flags = np.array(relevant, dtype=bool)
    assert reciprocal_rank(flags, np.zeros(len(flags))) == pytest.approx(expected)
    grades = [2.0 * one for one in relevant]
    drawn = [count([[2.0 * one for one in order]], [list(range(len(order), 0, -1))]) for order in orders]
    assert count([grades], [[0.0] * len(grades)]) == pytest.approx(np.mean(drawn, axis=0))


def test_ties_below_the_first_documents():
    assert reciprocal_rank(np.array([False, True, False]), np.array([2.0, 1.0, 1.0])) == pytest.approx((1 / 2 + 1 / 3) / 2)
    assert reciprocal_rank(np.array([True, False, False]), np.array([2.0, 1.0, 1.0])) == 1
