"""masking: BERT's masks, single pieces that a model guesses from the others (Devlin et al. 2019, section 3.1).

Of a row's pieces 15 % are to be guessed. Most of these are read as `<mask>`, some as another piece, and some as they are, so that
the model has to represent every piece. Randomness is counter-based, as in `spans`: seed, round and row decide.
"""

from dataclasses import dataclass

import numpy as np
from numba import njit

from workflow_scripts.limits import Share
from workflow_scripts.noise import philox


@dataclass
class Masking:
    """Settings of BERT's masks."""

    rate: Share = 0.15
    """Share of a row's pieces that are to be guessed; one at least."""
    masked: Share = 0.8
    """Share of these that are read as `<mask>`."""
    replaced: Share = 0.1
    """Share of these that are read as another piece, drawn from the vocabulary; the others stay as they are."""


def mask_pieces(
    ids: np.ndarray, before: np.ndarray, pieces: np.ndarray, mask: int, masking: Masking, seed: int, stream: int
) -> tuple[np.ndarray, np.ndarray]:
    """What is read, and the labels (−100 where nothing is to be guessed), of rows that stand one after the other in `ids`.

    `before` says how many ids come before each row, and in all; `pieces` are the ids, ascending, that may be masked or drawn, which
    special tokens are not. `stream` tells rounds apart.
    """
    ordinary = pieces[np.minimum(np.searchsorted(pieces, ids), len(pieces) - 1)] == ids
    return _mask(ids, ordinary, before, pieces, mask, masking.rate, masking.masked, masking.replaced, seed, stream)


@njit(cache=True)
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
            fate = philox.random(state)
            if fate < masked:
                read[place] = mask
            elif fate < masked + replaced:
                read[place] = pieces[philox.integer(state, len(pieces))]
    return read, labels
