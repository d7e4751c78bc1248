"""masking: BERT's masks, pieces that a model guesses from the others (Devlin et al. 2019, section 3.1).

15 % of a row's pieces are to be guessed. Most of these are read as `<mask>`, some as another piece, and some as they are, so that
the model has to represent every piece. They are single pieces as in BERT, whole words as in its later version, or spans of words as in
SpanBERT (Joshi et al. 2020). Randomness is counter-based, as in `span_noise`: seed, round and row decide.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from workflow_scripts import philox
from workflow_scripts.lazily import compiled
from workflow_scripts.number_types import Share


@dataclass
class Masking:
    """Settings of BERT's masks."""

    rate: Share = 0.15
    """Share of a row's pieces that the model predicts; at least one piece."""
    masked: Share = 0.8
    """Share of the predicted pieces that become `<mask>`."""
    replaced: Share = 0.1
    """Share of the predicted pieces that become another piece, drawn from the vocabulary. The rest stay unchanged."""
    unit: Literal["piece", "word", "span"] = "piece"
    """What is masked together: single pieces, all pieces of a word, or spans of words. Span lengths follow a geometric distribution (0.2,
    at most 10 words, as in SpanBERT). All pieces of a span are treated alike (`masked`, `replaced`). A word with more pieces than `rate`
    allows stays whole, as in BERT. If a row has only such words, a part of one is masked."""


_ENDS, _LONGEST = 0.2, 10


def mask_pieces(
    ids: np.ndarray,
    before: np.ndarray,
    pieces: np.ndarray,
    mask: int,
    masking: Masking,
    seed: int,
    stream: int,
    starts: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """The ids that are read, and the labels (−100 where nothing is to be guessed), of rows that stand one after the other in `ids`.

    `before` says how many ids come before each row, and in all; `pieces` are the ids, ascending, that may be masked or drawn, which
    special tokens are not. `stream` tells rounds apart. `starts` says of each id of the vocabulary whether a word begins with it, for
    masks of words and spans.
    """
    is_ordinary = np.zeros(max(int(pieces[-1]), int(ids.max(initial=0))) + 1, bool)
    is_ordinary[pieces] = True
    ordinary = is_ordinary[ids]
    rates = masking.rate, masking.masked, masking.replaced
    if masking.unit == "piece":
        return _mask(ids, ordinary, before, pieces, mask, *rates, seed, stream)
    if starts is None:
        raise ValueError("masks of words need to know which pieces begin one")
    return _mask_words(ids, ordinary, starts[ids], before, pieces, mask, *rates, masking.unit == "span", seed, stream)


@compiled()
def span_length(state):
    """The length of a span, in words: from a geometric distribution, drawn again if it is over ten, so that the mean is SpanBERT's 3.8."""
    while True:
        length = 1
        while philox.random(state) >= _ENDS:
            length += 1
        if length <= _LONGEST:
            return length


@compiled()
def _instead(piece, fate, pieces, mask, masked, replaced, state):
    """What is read in the place of a piece to guess, by its `fate` from 0 to 1."""
    if fate < masked:
        return mask
    if fate < masked + replaced:
        return pieces[philox.integer(state, len(pieces))]
    return piece


@compiled()
def _mask(ids, ordinary, before, pieces, mask, rate, masked, replaced, seed, stream):
    read, labels = ids.copy(), np.full(len(ids), -100, ids.dtype)
    state = np.empty(philox.STATE, np.uint64)
    free = np.empty(max(1, np.diff(before).max()) if len(before) > 1 else 1, np.int64)
    for row in range(len(before) - 1):
        philox.start(state, seed, stream, row)
        count = 0
        for place in range(before[row], before[row + 1]):
            if ordinary[place]:
                free[count] = place
                count += 1
        for chosen in range(min(count, max(1, int(rate * count + 0.5)))):
            other = chosen + philox.integer(state, count - chosen)
            free[chosen], free[other] = free[other], free[chosen]
            place = free[chosen]
            labels[place] = ids[place]
            read[place] = _instead(ids[place], philox.random(state), pieces, mask, masked, replaced, state)
    return read, labels


@compiled()
def _mask_words(ids, ordinary, starts, before, pieces, mask, rate, masked, replaced, in_spans, seed, stream):
    read, labels = ids.copy(), np.full(len(ids), -100, ids.dtype)
    state = np.empty(philox.STATE, np.uint64)
    words, ends = np.empty(len(ids) + 1, np.int64), np.empty(len(ids) + 1, np.int64)
    order = np.empty(len(ids), np.int64)
    for row in range(len(before) - 1):
        philox.start(state, seed, stream, row)
        count = number = 0
        for place in range(before[row], before[row + 1]):
            if ordinary[place]:
                count += 1
                # a word also begins where the one before was cut off by a special token
                if starts[place] or number == 0 or not ordinary[place - 1]:
                    words[number] = place
                    order[number] = number
                    number += 1
                ends[number - 1] = place + 1
        budget = min(count, max(1, int(rate * count + 0.5)))
        # words in random order are the beginnings of spans; what would go over the budget is left out
        spent = 0
        for turn in range(number):
            other = turn + philox.integer(state, number - turn)
            order[turn], order[other] = order[other], order[turn]
            if spent >= budget:
                break
            length = span_length(state) if in_spans else 1
            fate = philox.random(state)
            for word in range(order[turn], min(number, order[turn] + length)):
                size = ends[word] - words[word]
                if labels[words[word]] != -100 or spent + size > budget:
                    break
                spent += size
                for place in range(words[word], ends[word]):
                    labels[place] = ids[place]
                    if not in_spans:
                        fate = philox.random(state)
                    read[place] = _instead(ids[place], fate, pieces, mask, masked, replaced, state)
        # every word is longer than the budget, as where a script has no blanks: a part of one is guessed
        if number and not spent:
            word = order[0]
            begin = words[word] + philox.integer(state, ends[word] - words[word] - budget + 1)
            for place in range(begin, begin + budget):
                labels[place] = ids[place]
                read[place] = _instead(ids[place], philox.random(state), pieces, mask, masked, replaced, state)
    return read, labels
