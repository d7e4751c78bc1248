"""Noise over words: which words of a sentence are hit, and what a model is to restore from.

mBART masks spans of words (Liu et al. 2020: 35 % of the words, span lengths from a Poisson
distribution with λ = 3.5, one mask per span, sentences permuted); code-switching hits words in the
same way and replaces them instead of masking them (Zan et al., section III-B).

Randomness is counter-based: a Philox generator keyed by seed and stream (round, side) starts at a
counter of its own for each sentence, so that any sentence can be made again alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import regex

from workflow_scripts.text import Span

MASK = "<mask>"


@dataclass
class Noise:
    """Settings of span noise."""

    rate: float = 0.35
    """Share of the words that are hit."""
    poisson_lambda: float = 3.5
    """Mean of the Poisson distribution of span lengths in words; zeros are drawn again."""


def generator(seed: int, stream: int, sentence: int) -> np.random.Generator:
    """The generator of one sentence; `stream` tells rounds and sides apart."""
    return np.random.Generator(np.random.Philox(key=[seed, stream], counter=[0, 0, 0, sentence]))


def budget(n_words: int, rate: float, rng: np.random.Generator) -> int:
    """How many of `n_words` to hit: floor(rate · n), plus one with the probability of the fraction.

    Rounding up instead, as the released code does, would hit 39 % of the words of manual text and
    half of a six-word sentence.
    """
    expected = rate * n_words
    return int(expected) + int(rng.random() < expected - int(expected))


def choose_words(allowed: Sequence[bool], noise: Noise, rng: np.random.Generator) -> list[int]:
    """Positions of the words to hit, ascending, in spans; only `allowed` words are hit or counted.

    A span starts at a random allowed word and runs on over the next allowed words that are still
    free, as many as its length says; the last one is cut to what is left of the budget. With fewer
    allowed words than the budget, all of them are hit.
    """
    free = [position for position, ok in enumerate(allowed) if ok]
    left = min(budget(len(allowed), noise.rate, rng), len(free))
    hit: list[int] = []
    while left:
        length = 0
        while not length:
            length = int(rng.poisson(noise.poisson_lambda))
        start = int(rng.integers(len(free)))
        span = free[start : start + min(length, left)]
        del free[start : start + len(span)]
        hit += span
        left -= len(span)
    return sorted(hit)


def mask(line: str, spans: Sequence[Span], hit: Sequence[int]) -> str:
    """`line` with each run of hit words that only blanks separate replaced by one mask."""
    pieces, at = [], 0
    for position, index in enumerate(hit):
        start, end = spans[index]
        if position and hit[position - 1] == index - 1 and not line[at:start].strip():
            at = end
            continue
        pieces += [line[at:start], f" {MASK} "]
        at = end
    return " ".join("".join([*pieces, line[at:]]).split())


_SENTENCE_BREAK = regex.compile(r"(?<=[.!?。！？])\s+(?=\P{Ll})")


def denoise(line: str, spans: Sequence[Span], noise: Noise, rng: np.random.Generator, permute: bool = True) -> str:
    """mBART's noise on one line: its sentences permuted, then spans of words masked."""
    masked = mask(line, spans, choose_words([True] * len(spans), noise, rng))
    sentences = _SENTENCE_BREAK.split(masked)
    if permute and len(sentences) > 1:
        return " ".join(sentences[i] for i in rng.permutation(len(sentences)))
    return masked
