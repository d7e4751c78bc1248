"""The compiled generator against NumPy's."""

import numpy as np
import pytest

from workflow_scripts import philox


def pair(seed: int, stream: int, sentence: int):
    state = np.zeros(philox.STATE, np.uint64)
    philox.start(state, seed, stream, sentence)
    return state, philox.generator(seed, stream, sentence)


@pytest.mark.parametrize("place", [(1, 0, 0), (7, 3, 123_456_789), (2**40, 2**33, 2**31 + 5)])
def test_the_numbers_are_numpys(place):
    state, generator = pair(*place)
    for turn in range(3_000):
        n = 1 + (turn * 7919) % 1000 if turn % 3 else 2**32 - turn
        assert philox.random(state) == generator.random()
        assert philox.integer(state, n) == generator.integers(n)
        assert philox.poisson(state, 3.5) == generator.poisson(3.5)
        if turn % 50 == 0:
            assert philox.permutation(state, turn % 13).tolist() == generator.permutation(turn % 13).tolist()
