"""counted: scores of what was counted in each example and then summed."""

from collections.abc import Callable

import numpy as np


def share(part: float, whole: float) -> float:
    """``part / whole``; 0 where the whole is 0."""
    return float(part / whole) if whole else 0.0


def mean_of(column: int) -> Callable[[np.ndarray], float]:
    """The score that divides the sum of a column by that of the last one, which counts the examples."""
    return lambda sums: share(sums[column], sums[-1])
