"""Noise over words: which words of a sentence are hit, and what a model is to restore from.

mBART masks spans of words (Liu et al. 2020: 35 % of the words, span lengths from a Poisson
distribution with λ = 3.5, one mask per span, sentences permuted); code-switching hits words in the
same way and replaces them instead of masking them (Zan et al., section III-B).

Randomness is counter-based: Philox, keyed by seed and stream (round, side), starts at a counter of its
own for each sentence, so that any sentence can be made again alone, in whatever chunk.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np
import regex
from numba import njit

from workflow_scripts.limits import Limits, Share
from workflow_scripts.noise import philox
from workflow_scripts.text.words import MASK, Words


@dataclass
class Noise:
    """Settings of span noise."""

    rate: Share = 0.35
    """Share of the words that are hit."""
    poisson_lambda: Annotated[float, Limits(ge=0.5)] = 3.5
    """Mean of the Poisson distribution of span lengths in words; zeros are drawn again."""


class Hits(NamedTuple):
    """What noise hits in many sentences."""

    words: np.ndarray
    """The words that are hit, by number, ascending."""
    picks: np.ndarray
    """Which of its candidates each of them takes."""
    states: np.ndarray
    """The generator of each sentence after that (sentences × `philox.STATE`)."""


def choose_words(choices: np.ndarray, before: np.ndarray, noise: Noise, seed: int, stream: int, first: int = 0) -> Hits:
    """Which words to hit in the sentences from number `first` on; `stream` tells rounds and sides apart.

    `choices` says of each word how many candidates it has; words without any are neither hit nor
    counted. `before` says how many words come before each sentence, and in all (`text.Words`).

    A sentence of n words has floor(rate · n) of them hit, plus one with the probability of the fraction:
    rounding up instead, as the released code does, would hit 39 % of the words of manual text and half
    of a six-word sentence. A span starts at a random word that may be hit and runs on over the next such
    words that are still free, as many as its length says; the last one is cut to what is left. With
    fewer allowed words than that, all of them are hit.
    """
    return Hits(*_choose(np.ascontiguousarray(choices, np.int64), before, noise.rate, noise.poisson_lambda, seed, stream, first))


@njit(cache=True)
def _choose(choices, before, rate, poisson_lambda, seed, stream, first):
    sentences = len(before) - 1
    states = np.empty((sentences, philox.STATE), np.uint64)
    hit = np.zeros(len(choices), np.bool_)
    free = np.empty(max(1, np.diff(before).max()) if sentences else 1, np.int64)
    for sentence in range(sentences):
        state = states[sentence]
        philox.start(state, seed, stream, first + sentence)
        begin, end = before[sentence], before[sentence + 1]
        expected = rate * (end - begin)
        left = int(expected) + int(philox.random(state) < expected - int(expected))
        allowed = 0
        for word in range(begin, end):
            if choices[word]:
                free[allowed] = word
                allowed += 1
        left = min(left, allowed)
        while left:
            length = 0
            while not length:
                length = philox.poisson(state, poisson_lambda)
            start = philox.integer(state, allowed)
            length = min(length, left, allowed - start)
            for place in range(start, allowed):
                if place < start + length:
                    hit[free[place]] = True
                else:
                    free[place - length] = free[place]
            allowed -= length
            left -= length
    words = np.flatnonzero(hit)
    picks = np.empty(len(words), np.int64)
    sentence = 0
    for place, word in enumerate(words):
        while word >= before[sentence + 1]:
            sentence += 1
        picks[place] = philox.integer(states[sentence], choices[word])
    return words, picks, states


def mask(words: Words, hit: Sequence[int]) -> list[str]:
    """The lines with each run of hit words that only blanks separate replaced by one mask."""
    pieces, at, last = [], 0, -2
    for word, start, end in zip(hit, words.starts[hit].tolist(), words.ends[hit].tolist(), strict=True):
        between = words.text[at:start]
        if word != last + 1 or between.strip() or "\n" in between:
            pieces += [between, f" {MASK} "]
        at, last = end, word
    return [" ".join(line.split()) for line in "".join([*pieces, words.text[at:]]).split("\n")]


_SENTENCE_BREAK = regex.compile(r"(?<=[.!?。！？])\s+(?=\P{Ll})")


def denoise(words: Words, noise: Noise, seed: int, stream: int, first: int = 0) -> list[str]:
    """mBART's noise on lines: the sentences of each permuted, and spans of words masked."""
    hits = choose_words(np.ones(len(words.starts)), words.before, noise, seed, stream, first)
    lines = []
    for masked, state in zip(mask(words, hits.words), hits.states, strict=True):
        sentences = _SENTENCE_BREAK.split(masked)
        lines.append(" ".join(sentences[i] for i in philox.permutation(state, len(sentences))) if len(sentences) > 1 else masked)
    return lines
