"""accuracy: how many answers are right: accuracy with its interval, and macro F1."""

from collections import Counter
from typing import Any


def score(truth: list[str], given: list[str], labels: list[str]) -> dict[str, Any]:
    """Accuracy with its 95 % interval (Wilson 1927) and macro F1, in per cent, and the confusion matrix.

    Macro F1 is the mean over the labels that occur, as truth or as answer.
    `chance` is the accuracy of always answering the most frequent label of the test set, `uniform` that of a uniformly random answer.
    The accuracy is `at_chance` if its interval does not lie above `chance`. `confusion` maps true label → answer → number of examples.

    Args:
        truth: The true label of each example; must not be empty.
        given: The answers, in the same order.
        labels: All labels.
    """
    from scipy.stats import binomtest
    from sklearn.metrics import f1_score

    confusion = Counter(zip(truth, given, strict=True))
    right = sum(confusion[label, label] for label in labels)
    low, high = map(float, binomtest(right, len(truth)).proportion_ci(0.95, "wilson"))
    chance = 100 * max(Counter(truth).values()) / len(truth)
    return {
        "examples": len(truth),
        "accuracy": 100 * right / len(truth),
        "low": 100 * low,
        "high": 100 * high,
        "macro_f1": 100 * float(f1_score(truth, given, average="macro", zero_division=0)),
        "chance": chance,
        "uniform": 100 / len(labels),
        "at_chance": 100 * low <= chance,
        "confusion": {label: {other: confusion[label, other] for other in labels} for label in labels},
    }
