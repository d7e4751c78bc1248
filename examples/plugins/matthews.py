"""matthews: Matthews' correlation of labels (Matthews 1975; for more than two labels Gorodkin 2004), which no class has for free."""

import math

import numpy as np

from crossgap import label_metric


def correlation(sums):
    """The correlation of truth and answers; 0 where all answers, or all true labels, are the same."""
    size = math.isqrt(len(sums))
    table = np.asarray(sums, dtype=float).reshape(size, size)
    total, right = table.sum(), table.trace()
    truth, given = table.sum(axis=1), table.sum(axis=0)
    spread = (total**2 - truth @ truth) * (total**2 - given @ given)
    return (total * right - truth @ given) / math.sqrt(spread) if spread > 0 else 0.0


@label_metric("matthews", label="Matthews' correlation", answers="labels", score=correlation, source="Gorodkin 2004")
def confused(truth, given, labels):
    """For each example 1 in the cell of its true label (row) and the answer (column)."""
    places = {label: place for place, label in enumerate(labels)}
    counts = np.zeros((len(truth), len(labels) ** 2))
    for row, right, answer in zip(counts, truth, given, strict=True):
        row[places[right] * len(labels) + places[answer]] = 1
    return counts
