"""BERT's masks: how many, of which kinds, and the same again from the same seed."""

import numpy as np
import pytest

from workflow_scripts import philox
from workflow_scripts.noise.masking import Masking, mask_pieces, span_length

MASK, PIECES = 999, np.arange(4, 900, dtype=np.int32)


def rows(lengths):
    """Rows <s> pieces </s> of these numbers of pieces, one after the other, and how many ids come before each."""
    rng = np.random.default_rng(1)
    parts = [np.array([0, *rng.choice(PIECES, length), 2], dtype=np.int32) for length in lengths]
    return np.concatenate(parts), np.cumsum([0, *map(len, parts)])


def test_fifteen_percent_are_guessed_and_most_of_them_masked():
    ids, before = rows([40] * 2000)
    read, labels = mask_pieces(ids, before, PIECES, MASK, Masking(), seed=1, stream=0)
    hit = labels != -100
    assert hit.sum() == 2000 * 6 and (labels[hit] == ids[hit]).all() and (read[~hit] == ids[~hit]).all()
    assert not hit[np.isin(ids, (0, 2))].any()
    assert {int(hit[start:end].sum()) for start, end in zip(before, before[1:], strict=False)} == {6}
    masked, kept = (read[hit] == MASK).mean(), (read[hit] == ids[hit]).mean()
    assert abs(masked - 0.8) < 0.02 and abs(kept - 0.1) < 0.02
    drawn = read[hit & (read != MASK) & (read != ids)]
    assert np.isin(drawn, PIECES).all() and len(set(drawn.tolist())) > 300


def test_one_piece_at_least_and_none_where_there_is_none():
    ids, before = rows([0, 1, 2, 5])
    _, labels = mask_pieces(ids, before, PIECES, MASK, Masking(), seed=1, stream=0)
    assert [int((labels[start:end] != -100).sum()) for start, end in zip(before, before[1:], strict=False)] == [0, 1, 1, 1]
    _, labels = mask_pieces(ids, before, PIECES, MASK, Masking(rate=1.0), seed=1, stream=0)
    assert (labels != -100).sum() == 8


def test_seed_and_round_decide():
    ids, before = rows([30] * 50)
    first, again, round1, seed2 = (
        mask_pieces(ids, before, PIECES, MASK, Masking(), seed, stream)[0] for seed, stream in ((1, 0), (1, 0), (1, 1), (2, 0))
    )
    assert (first == again).all() and (first != round1).any() and (first != seed2).any() and (round1 != seed2).any()
    # a row can be made again alone
    alone, _ = mask_pieces(ids[: before[1]], before[:2], PIECES, MASK, Masking(), 1, 0)
    assert (alone == first[: before[1]]).all()


def test_spans_are_as_long_as_spanberts():
    """Joshi et al. (2020), section 3.1: p = 0.2 and at most 10 words yield a mean of 3.8; to cut longer ones would yield 4.5."""
    state = np.empty(philox.STATE, np.uint64)
    philox.start(state, 1, 0, 0)
    lengths = [span_length(state) for _ in range(20_000)]
    assert abs(np.mean(lengths) - 3.797) < 0.06 and (min(lengths), max(lengths)) == (1, 10)


@pytest.mark.parametrize("unit", ["word", "span"])
def test_no_more_is_guessed_than_the_rate_allows(unit):
    """A row of Chinese is one word: a part of it is guessed. A long word among short ones stays to be read."""
    lengths = [40] * 300
    ids, before = rows(lengths)
    starts = np.zeros(1000, bool)
    masking = Masking(rate=0.15, masked=1.0, replaced=0.0, unit=unit)
    _, labels = mask_pieces(ids, before, PIECES, MASK, masking, 1, 0, starts=starts)
    hits = [labels[start:end] != -100 for start, end in zip(before, before[1:], strict=False)]
    assert {int(hit.sum()) for hit in hits} == {6} and len({tuple(hit) for hit in hits}) > 20
    # pieces 4 to 499 begin a word; the last 30 of each row are one
    starts[:500] = True
    for start in before[:-1]:
        ids[start + 1 : start + 12] = ids[start + 1 : start + 12] % 400 + 4
        ids[start + 12 : start + 41] = ids[start + 12 : start + 41] % 400 + 500
    _, labels = mask_pieces(ids, before, PIECES, MASK, masking, 1, 0, starts=starts)
    hits = [labels[start:end] != -100 for start, end in zip(before, before[1:], strict=False)]
    assert {int(hit.sum()) for hit in hits} <= set(range(1, 7)) and not any(hit[11:].any() for hit in hits)
