"""accuracy: how many answers are right: accuracy with its interval, macro F1, and the counts that tests of significance need."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np


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


def tally(right: list[np.ndarray]) -> np.ndarray:
    """Counts from which `mean_accuracy` computes its score: examples × (right answers in each test set, answers in each test set).

    If all test sets have the same number of examples, they are taken for translations of each other and share their rows: drawing a row
    then draws the example in all languages. Otherwise each test set has rows of its own.

    Args:
        right: For each test set, whether each answer is right.
    """
    sizes, width = [len(one) for one in right], len(right)
    together = len(set(sizes)) == 1
    counts = np.zeros((sizes[0] if together else sum(sizes), 2 * width))
    at = 0
    for place, one in enumerate(right):
        counts[at : at + len(one), place] = one
        counts[at : at + len(one), width + place] = 1
        at += 0 if together else len(one)
    return counts


def mean_accuracy(sums: np.ndarray) -> float:
    """The mean of the test sets' accuracies in per cent, from the column sums of `tally`."""
    right, all_of_them = np.split(np.asarray(sums), 2)
    return float(100 * np.mean(right / all_of_them))
