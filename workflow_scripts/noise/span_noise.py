"""span_noise: chooses the words of a sentence that noise hits, and masks them.

mBART masks spans of words (Liu et al. 2020: 35 % of the words, span lengths from a Poisson distribution with λ = 3.5, one
mask per span, sentences permuted). Code-switching chooses words in the same way, but replaces them instead of masking them
(Zan et al., section III-B).

The random generator is counter-based (`philox`). Its key is made of seed and stream (round and side), and each sentence has a
counter of its own. Therefore the noise of a sentence does not depend on the sentences that are processed with it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np
import regex

from workflow_scripts import philox
from workflow_scripts.lazily import compiled
from workflow_scripts.number_types import Limits, Share
from workflow_scripts.text.words import BREAK, MASK, Words


@dataclass
class SpanNoise:
    """Settings of span noise."""

    rate: Share = 0.35
    """Share of the words that are replaced or masked."""
    poisson_lambda: Annotated[float, Limits(ge=0.5)] = 3.5
    """Mean of the Poisson distribution of span lengths, in words. Lengths of zero are drawn again."""


SINGLE = 0.0
"""In the place of a mean length: words are hit one by one, not in spans. It is no setting: the code that needs it sets it."""


class Hits(NamedTuple):
    """The words that noise hits in a number of sentences."""

    words: np.ndarray
    """Numbers of the words, in ascending order."""
    picks: np.ndarray
    """For each of these words, the number of the candidate that replaces it."""
    states: np.ndarray
    """The state of each sentence's generator afterwards (sentences × `philox.STATE`)."""


def choose_words(choices: np.ndarray, before: np.ndarray, noise: SpanNoise, seed: int, stream: int, first: int = 0) -> Hits:
    """Choose the words to replace or mask.

    In a sentence of n words, floor(rate · n) words are hit, and one more with a probability of the remaining fraction. (Rounding up
    instead, as the authors' published code does, would hit 39 % of the words in text of the manual, and half of a sentence of six words.)
    Only words with candidates can be hit; if there are too few of them, all are. A span starts at a random one of these words and
    continues over the following ones that are not yet hit, up to its length; the last span is cut to the number that is left. So a span
    passes over words that have no candidates or are hit already, where the paper's is of adjacent words.

    Args:
        choices: For each word, its number of candidates.
        before: Number of words before each sentence, with the number of all words as the last entry (`words.Words`).
        noise: Rate and span lengths; with `SINGLE` in their place, single words are hit one by one.
        seed: Seed of the random choices.
        stream: Number of the random stream: 2 × round + side.
        first: Number of the first sentence in its text.
    """
    return Hits(*_choose(np.ascontiguousarray(choices, np.int64), before, noise.rate, noise.poisson_lambda, seed, stream, first))


@compiled()
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
            length = int(poisson_lambda == SINGLE)
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
    for place, number in enumerate(words):
        while number >= before[sentence + 1]:
            sentence += 1
        picks[place] = philox.integer(states[sentence], choices[number])
    return words, picks, states


def mask(words: Words, hit: Sequence[int] | np.ndarray) -> list[str]:
    """Replace each run of hit words by one mask; words belong to a run if only blanks stand between them."""
    pieces, at, last = [], 0, -2
    for word, start, end in zip(map(int, hit), words.starts[hit].tolist(), words.ends[hit].tolist(), strict=True):
        between = words.text[at:start]
        if word != last + 1 or between.strip() or "\n" in between:
            pieces += [between, f" {MASK} "]
        at, last = end, word
    return [" ".join(line.split()) for line in "".join([*pieces, words.text[at:]]).split("\n")]


# In Chinese and Japanese no blank stands between sentences. `words.sentences` knows more (initials, closing quotes), but the backbone that
# is shipped was pretrained with these breaks, and has to come out the same when it is made again.
_SENTENCE_BREAK = regex.compile(r"(?<=[.!?؟۔।])\s+(?=\P{Ll})|(?<=[。！？][」』）”’]*)\s*(?=[^」』）”’\s])")


def denoise(words: Words, noise: SpanNoise, seed: int, stream: int, first: int = 0, spaced: bool = True) -> list[str]:
    """Apply mBART's noise: permute the sentences of each line and mask spans of words.

    In a script without spaces (`spaced` is false), no blank is put between the sentences. In a document they are what lies between the
    ends of sentences, which stay where they are.
    """
    hits = choose_words(np.ones(len(words.starts)), words.before, noise, seed, stream, first)
    lines = []
    for masked, state in zip(mask(words, hits.words), hits.states, strict=True):
        between = f" {BREAK} " if BREAK in masked else " " if spaced else ""
        sentences = [part.strip() for part in masked.split(BREAK)] if BREAK in masked else _SENTENCE_BREAK.split(masked)
        order = philox.permutation(state, len(sentences)) if len(sentences) > 1 else [0]
        lines.append(between.join(sentences[i] for i in order))
    return lines
