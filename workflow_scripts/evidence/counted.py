"""counted: scores of what was counted in each example and then summed."""

import math
from collections.abc import Callable

import numpy as np

from workflow_scripts.errors import InputError


def share(part: float, whole: float) -> float:
    """``part / whole``; 0 where the whole is 0."""
    return float(part / whole) if whole else 0.0


def mean_of(column: int) -> Callable[[np.ndarray], float]:
    """The score that divides the sum of a column by that of the last one, which counts the examples."""
    return lambda sums: share(sums[column], sums[-1])


def finite(score: Callable[[np.ndarray], float]) -> Callable[[np.ndarray], float]:
    """The same score, which raises `InputError` where it is no finite number: no test could tell such a difference from chance."""

    def checked(sums: np.ndarray) -> float:
        value = float(score(sums))
        if not math.isfinite(value):
            raise InputError(f"the score of the sums {sums} is {value}; return 0 where nothing was counted")
        return value

    return checked
