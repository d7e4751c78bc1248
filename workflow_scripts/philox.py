"""philox: NumPy's Philox generator in compiled code, for random choices in each sentence.

The generator is counter-based (Salmon et al., SC 2011, "Parallel random numbers: as easy as 1, 2, 3"). It jumps to any position at no cost,
so each sentence has random numbers of its own. Making a NumPy generator for a sentence takes longer
than drawing all of its numbers. These functions draw exactly the same numbers as NumPy (`generator`) in loops that numba compiles.
"""

import math

import numpy as np

from workflow_scripts.lazily import compiled

# A state is an array of 64-bit words: four for the counter, two for the key, four with numbers drawn in advance, and one with how many of
# these are used. One more says whether half a word is left over, and the last one is this half.
STATE = 13
_KEY, _DRAWN, _USED, _HALF = 4, 6, 10, 11

_MULTIPLIER_0, _MULTIPLIER_1 = np.uint64(0xD2E7470EE14C6C93), np.uint64(0xCA5A826395121157)
_STEP_0, _STEP_1 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBB67AE8584CAA73B)
_LOW = np.uint64(0xFFFFFFFF)
_32, _11, _ONE = np.uint64(32), np.uint64(11), np.uint64(1)


def generator(seed, stream, sentence):
    """NumPy's generator for a sentence: the key is (seed, stream), the counter starts at the number of the sentence."""
    return np.random.Generator(np.random.Philox(key=[seed, stream], counter=[0, 0, 0, sentence]))


@compiled()
def start(state, seed, stream, sentence):
    """Set `state` to the first number of a sentence."""
    state[:] = 0
    state[3] = sentence
    state[_KEY], state[_KEY + 1] = seed, stream
    state[_USED] = 4


@compiled()
def random(state):
    """A random float from 0 (included) to 1 (excluded)."""
    return (_next64(state) >> _11) * (1.0 / 9007199254740992.0)


@compiled()
def integer(state, n):
    """A random integer from 0 to n − 1, by Lemire's method (2019); `n` is at most 2³². If `n` is 1, no number is drawn."""
    if n == 1:
        return 0
    bound = np.uint64(n)
    product = np.uint64(_next32(state)) * bound
    if product & _LOW < bound:
        threshold = (_LOW - (bound - _ONE)) % bound
        while product & _LOW < threshold:
            product = np.uint64(_next32(state)) * bound
    return np.int64(product >> _32)


@compiled()
def integers(sentences, n, seed, stream, first):
    """A random integer from 0 to n − 1 for each of `sentences` sentences, the first of which has the number `first`."""
    state, drawn = np.empty(STATE, np.uint64), np.empty(sentences, np.int64)
    for sentence in range(sentences):
        start(state, seed, stream, first + sentence)
        drawn[sentence] = integer(state, n)
    return drawn


@compiled()
def poisson(state, mean):
    """A number from the Poisson distribution, by Knuth's method of multiplying uniform numbers; suited to a small `mean`."""
    limit, product, n = math.exp(-mean), 1.0, 0
    while True:
        product *= random(state)
        if product <= limit:
            return n
        n += 1


@compiled()
def permutation(state, n):
    """The integers from 0 to n − 1 in random order. Positions to swap are drawn by rejection, as in NumPy."""
    order = np.arange(n)
    for i in range(n - 1, 0, -1):
        mask = np.uint64(1)
        while mask < np.uint64(i):
            mask = mask << _ONE | _ONE
        j = np.uint64(_next32(state)) & mask
        while j > np.uint64(i):
            j = np.uint64(_next32(state)) & mask
        order[i], order[j] = order[j], order[i]
    return order


@compiled()
def _next32(state):
    if state[_HALF]:
        state[_HALF] = 0
        return np.uint32(state[_HALF + 1])
    drawn = _next64(state)
    state[_HALF], state[_HALF + 1] = 1, drawn >> _32
    return np.uint32(drawn & _LOW)


@compiled()
def _next64(state):
    if state[_USED] < 4:
        state[_USED] += _ONE
        return state[_DRAWN + np.int64(state[_USED]) - 1]
    for word in range(4):
        state[word] += _ONE
        if state[word]:
            break
    c0, c1, c2, c3 = state[0], state[1], state[2], state[3]
    k0, k1 = state[_KEY], state[_KEY + 1]
    for _ in range(10):
        high_0, high_1 = _high(_MULTIPLIER_0, c0), _high(_MULTIPLIER_1, c2)
        c0, c1, c2, c3 = high_1 ^ c1 ^ k0, _MULTIPLIER_1 * c2, high_0 ^ c3 ^ k1, _MULTIPLIER_0 * c0
        k0, k1 = k0 + _STEP_0, k1 + _STEP_1
    state[_DRAWN], state[_DRAWN + 1], state[_DRAWN + 2], state[_DRAWN + 3] = c0, c1, c2, c3
    state[_USED] = 1
    return c0


@compiled()
def _high(x, y):
    """The upper half of the 128 bits of x · y."""
    x0, x1, y0, y1 = x & _LOW, x >> _32, y & _LOW, y >> _32
    middle = x1 * y0 + (x0 * y0 >> _32)
    other = x0 * y1 + (middle & _LOW)
    return x1 * y1 + (middle >> _32) + (other >> _32)
