"""accuracy: how many answers are right: accuracy with its interval, and macro F1."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any


def score(truth: list[str], given: list[str], labels: list[str]) -> dict[str, Any]:
    """Accuracy with its 95 % interval and macro F1, in per cent, and the confusion matrix.

    `chance` is the accuracy of always answering the most frequent label of the test set, `uniform` that of a uniformly random answer.
    The accuracy is `at_chance` if its interval does not lie above `chance`. `confusion` maps true label → answer → number of examples.

    Args:
        truth: The true label of each example; must not be empty.
        given: The answers, in the same order.
        labels: All labels.
    """
    confusion = Counter(zip(truth, given, strict=True))
    right = sum(confusion[label, label] for label in labels)
    low, high = wilson(right, len(truth))
    chance = 100 * max(Counter(truth).values()) / len(truth)
    return {
        "examples": len(truth),
        "accuracy": 100 * right / len(truth),
        "low": 100 * low,
        "high": 100 * high,
        "macro_f1": 100 * macro_f1(confusion, labels),
        "chance": chance,
        "uniform": 100 / len(labels),
        "at_chance": 100 * low <= chance,
        "confusion": {label: {other: confusion[label, other] for other in labels} for label in labels},
    }


def wilson(right: int, n: int, z: float = 1.959964) -> tuple[float, float]:
    """Wilson's confidence interval (1927) for a proportion, `right` of `n`, from 0 to 1; 95 % with the default `z`."""
    share, weight = right / n, z * z / n
    centre, half = share + weight / 2, z * math.sqrt(share * (1 - share) / n + weight / (4 * n))
    return (centre - half) / (1 + weight), (centre + half) / (1 + weight)


def macro_f1(confusion: Counter[tuple[str, str]], labels: Sequence[str]) -> float:
    """The mean F1 (from 0 to 1) of all labels that occur as truth or as answer.

    `confusion` maps (true label, answer) → number of examples.
    """
    found = []
    for label in labels:
        answered, true = (sum(n for pair, n in confusion.items() if pair[side] == label) for side in (1, 0))
        if answered + true:
            found.append(2 * confusion[label, label] / (answered + true))
    return sum(found) / len(found)
