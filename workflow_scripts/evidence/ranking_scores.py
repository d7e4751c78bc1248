"""ranking_scores: how well documents are ranked: nDCG, nDCG@10 and MRR, and what a random order gets.

nDCG is counted as in XGLUE's script (Liang et al. 2020), by scikit-learn. The gain of a document is its grade, the discount the logarithm
of its rank, and there is no cut-off. Queries with a single document are left out, and a query without a relevant document has 0. MRR
is the mean of 1 / rank of the first relevant document (Voorhees 1999).

Documents with the same score are in no order. Every score is then the mean over all orders that they may have, which is exact and
not drawn. So a random ranking, in which all documents have the same score, is scored by the same functions.

A score is made of the sums of what was counted in queries, so that tests of significance can draw queries anew.
"""

import itertools
from collections.abc import Sequence

import numpy as np

from workflow_scripts.evidence.counted import mean_of

COUNTS = ("ndcg", "ndcg_10", "reciprocal_rank", "queries")
"""What is counted in each query, in this order."""


def count(grades: Sequence[Sequence[float]], scores: Sequence[Sequence[float]], relevant: float = 1.0) -> np.ndarray:
    """What is counted in each query (queries × `COUNTS`).

    Args:
        grades: The true grades of each query's documents, two or more; none is below 0.
        scores: The scores that the documents were given, in the same order.
        relevant: The least grade of a relevant document, for MRR.
    """
    from sklearn.metrics import ndcg_score

    rows = []
    for true, given in zip(grades, scores, strict=True):
        a, b = np.array([true], dtype=np.float64), np.array([given], dtype=np.float64)
        rows.append((ndcg_score(a, b), ndcg_score(a, b, k=10), reciprocal_rank(a[0] >= relevant, b[0]), 1.0))
    return np.array(rows, dtype=np.float64).reshape(-1, len(COUNTS))


def reciprocal_rank(relevant: np.ndarray, scores: np.ndarray) -> float:
    """The expected 1 / rank of the first relevant document, over all orders of documents with the same score; 0 if none is relevant.

    Let m documents have the same score, and r of them be relevant. The first relevant one is the j-th with the probability
    C(m − j, r − 1) / C(m, r).
    """
    before = 0
    for score in sorted(set(scores.tolist()), reverse=True):
        alike = relevant[scores == score]
        m, r = len(alike), int(alike.sum())
        if r:
            expected, none_yet = 0.0, 1.0
            for j in range(1, m - r + 2):
                here = r / (m - j + 1)
                expected += none_yet * here / (before + j)
                none_yet *= 1 - here
            return expected
        before += m
    return 0.0


SCORES = {"ndcg": mean_of(0), "ndcg_10": mean_of(1), "mrr": mean_of(2)}
"""Score → what makes it, from 0 to 1, of the sums of `COUNTS`."""


def ranked_queries(queries: Sequence[str]) -> list[list[int]]:
    """The rows of each query, which stand one after the other. Queries with a single row are left out, as in XGLUE."""
    groups = (list(rows) for _, rows in itertools.groupby(range(len(queries)), key=queries.__getitem__))
    return [rows for rows in groups if len(rows) > 1]
