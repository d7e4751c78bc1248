"""skipgram: word2vec's training in compiled code: skip-gram with negative sampling (Mikolov et al. 2013, "Distributed representations of
words and phrases and their compositionality", sections 2.2 and 2.3).

All neighbours of a word predict it against the same noise words (Ji et al. 2016, "Parallelizing word2vec in shared and distributed
memory"), whose vectors then stay in the processor's nearest memory. `embeddings` takes it where gensim has no build (docs/performance.md
compares the two).
"""

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from workflow_scripts.lazily import compiled
from workflow_scripts.philox import STATE, integer, random, start

_LEAST_RATE = 1e-4
"""The last learning rate."""
_NOISE_POWER = 0.75
"""Noise words are drawn by their frequency to this power (section 2.2)."""
_TABLE = 1 << 20
"""Entries of the table of noise words."""
_TRIES = 100
"""How often another noise word is drawn."""
_PARTS = 64
"""Parts of the text between which the learning rate falls and threads meet."""


def skipgram(
    lines: np.ndarray,
    ends: np.ndarray,
    counts: np.ndarray,
    *,
    dimensions: int,
    window: int,
    negative: int,
    epochs: int,
    sample: float,
    alpha: float,
    workers: int,
    seed: int,
) -> np.ndarray:
    """Learn a vector for each word (words × dimensions, float32).

    `lines` has the numbers of all words of the text, one line after the other, `ends` where each line ends in it, `counts` how often each
    word occurs. A word's neighbours are the words at a distance of at most a number that is drawn from 1 to `window`; `sample` is the
    threshold of frequency above which words are left out at random (equation 5), 0 for none. With several `workers` they change the same
    vectors at the same time, so results vary from run to run.
    """
    drawn = np.random.default_rng(seed)
    read = (drawn.random((len(counts), dimensions), np.float32) - np.float32(0.5)) / np.float32(dimensions)
    written = np.zeros((len(counts), dimensions), np.float32)
    noise = _noise(counts)
    kept = _kept(counts, sample)
    parts = [part for part in np.array_split(np.arange(len(ends)), _PARTS * workers) if len(part)]
    begins = np.concatenate([[0], ends[:-1]])

    def learn(part: np.ndarray, epoch: int, rate: float) -> None:
        first, last = part[0], part[-1] + 1
        _learn(lines, begins[first:last], ends[first:last], kept, noise, read, written, window, negative, rate, seed, epoch, first)

    with ThreadPoolExecutor(workers) as pool:
        for epoch in range(epochs):
            for at in range(0, len(parts), workers):
                done = (epoch + at / len(parts)) / epochs
                rate = alpha - (alpha - _LEAST_RATE) * done
                list(pool.map(learn, parts[at : at + workers], [epoch] * workers, [rate] * workers))
    return read


def _noise(counts: np.ndarray) -> np.ndarray:
    """A table of words, each as often as it is drawn as a noise word, so that drawing one is a single look."""
    shares = np.cumsum(counts**_NOISE_POWER)
    return np.searchsorted(shares / shares[-1], (np.arange(_TABLE) + 0.5) / _TABLE).astype(np.int32)


def _kept(counts: np.ndarray, sample: float) -> np.ndarray:
    """The probability with which an occurrence of each word is read, as in the authors' program."""
    if not sample:
        return np.ones(len(counts))
    threshold = sample * counts.sum() / counts
    return np.minimum(1.0, np.sqrt(threshold) + threshold)


@compiled(nogil=True)
def _learn(lines, begins, ends, kept, noise, read, written, window, negative, rate, seed, epoch, first):
    """Learn from some lines once. Every line has random numbers of its own, by its number and the epoch."""
    dimensions, rate = read.shape[1], np.float32(rate)
    state, words = np.empty(STATE, np.uint64), np.empty((ends - begins).max(), np.int64)
    outputs, chosen = np.empty((1 + negative, dimensions), np.float32), np.empty(1 + negative, np.int64)
    steps, change = np.empty(1 + negative, np.float32), np.empty(dimensions, np.float32)
    for line in range(len(begins)):
        start(state, seed, epoch, first + line)
        size = 0
        for at in range(begins[line], ends[line]):
            if kept[lines[at]] >= 1 or random(state) < kept[lines[at]]:
                words[size] = lines[at]
                size += 1
        for at in range(size):
            reach = 1 + integer(state, window)
            low, high = max(0, at - reach), min(size, at + reach + 1)
            if high - low < 2:
                continue
            chosen[0] = words[at]
            for k in range(1, 1 + negative):
                chosen[k] = _another(noise, chosen[:k], state)
            for k in range(1 + negative):
                outputs[k] = written[chosen[k]]
            for other in range(low, high):
                if other != at:
                    _step(read[words[other]], outputs, steps, change, rate)
            for k in range(1 + negative):
                written[chosen[k]] = outputs[k]


@compiled(nogil=True)
def _another(noise, chosen, state):
    """A noise word that is not among the `chosen` ones: of what two copies of a vector learn, one part would be lost.

    Where nearly all of a text is one word, it is taken twice in the end.
    """
    word = noise[integer(state, _TABLE)]
    for _ in range(_TRIES):
        there = False
        for other in chosen:
            there |= other == word
        if not there:
            break
        word = noise[integer(state, _TABLE)]
    return word


@compiled(nogil=True, fastmath=True, error_model="numpy")
def _step(vector, outputs, steps, change, rate):
    """Have one neighbour's `vector` predict the first of `outputs` and none of the others (equation 4)."""
    for k in range(len(outputs)):
        score, output = np.float32(0), outputs[k]
        for d in range(len(vector)):
            score += vector[d] * output[d]
        steps[k] = score
    for k in range(len(outputs)):
        wanted = np.float32(1) if k == 0 else np.float32(0)
        steps[k] = rate * (wanted - np.float32(1) / (np.float32(1) + np.exp(-steps[k])))
    change[:] = 0
    for k in range(len(outputs)):
        _add(change, steps[k], outputs[k])
    for k in range(len(outputs)):
        _add(outputs[k], steps[k], vector)
    _add(vector, np.float32(1), change)


@compiled(nogil=True, fastmath=True)
def _add(to, times, vector):
    for d in range(len(to)):
        to[d] += times * vector[d]
