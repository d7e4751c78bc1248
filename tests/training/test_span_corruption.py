"""Span corruption: nothing is lost between what is read and what is written."""

import numpy as np
import pytest
from tiny_models import manual_pairs, small_model, small_t5

from workflow_scripts.models.tokenisation import load_codec
from workflow_scripts.stage import InputError
from workflow_scripts.training.span_corruption import SpanCorruption, corrupted, divided, sentinels_of, span_corruption

SENTINELS = [99, 98, 97, 96, 95]


def restored(read, written, sentinels):
    """The pieces, with each span where its sentinel stands."""
    spans = {}
    for piece in written:
        if piece in sentinels:
            spans[piece] = current = []
        else:
            current.append(piece)
    return [piece for each in read for piece in spans.get(each, [each])]


def test_spans_and_what_is_left_make_the_line_again():
    settings = SpanCorruption(rate=0.3, length=2.0)
    for seed in range(50):
        ids = list(range(20))
        read, written = corrupted(ids, SENTINELS, np.random.default_rng(seed), settings)
        assert restored(read, written, SENTINELS) == ids
        used = [piece for piece in written if piece in SENTINELS]
        # 6 of 20 pieces in 3 spans, in the order of the sentinels, and a span at the end
        assert used == SENTINELS[:3] == [piece for piece in read if piece in SENTINELS] and len(written) == 9 and read[-1] == 97


@pytest.mark.parametrize("number", [0, 1, 2, 3])
def test_short_lines_have_a_span_too(number):
    ids = list(range(number))
    read, written = corrupted(ids, SENTINELS, np.random.default_rng(1), SpanCorruption())
    assert restored(read, written, SENTINELS) == ids and written[0] == 99


def test_there_are_no_more_spans_than_sentinels():
    read, written = corrupted(list(range(90)), SENTINELS[:2], np.random.default_rng(1), SpanCorruption(rate=0.5, length=1.0))
    assert restored(read, written, SENTINELS[:2]) == list(range(90))


def test_each_way_to_divide_is_as_likely():
    draw = np.random.default_rng(1)
    found = [tuple(divided(4, 2, draw)) for _ in range(900)]
    assert {*found} == {(1, 3), (2, 2), (3, 1)} and all(250 < found.count(each) < 350 for each in {*found})


def test_rows_of_mt5_have_its_sentinels_and_no_end_where_a_line_was_cut(tmp_path):
    codec = load_codec(small_t5(tmp_path))
    sentinels, end = sentinels_of(codec), codec.tokenizer.eos_token_id
    assert codec.tokenizer.convert_ids_to_tokens(sentinels[:2]) == ["▁<extra_id_0>", "▁<extra_id_1>"] and sentinels[0] > sentinels[1]
    lines = manual_pairs(6)[0]
    rows = span_corruption(lines, "de", codec, 200, np.random.default_rng(1), SpanCorruption())
    for (read, written), ids in zip(rows, codec.pieces(lines, 200), strict=True):
        assert read[-1] == written[-1] == end and restored(read[:-1], written[:-1], sentinels) == ids
    for read, written in span_corruption(lines, "de", codec, 12, np.random.default_rng(1), SpanCorruption()):
        assert len(read) <= 12 and len(written) <= 12 and end not in (read[-1], written[-1])


def test_a_family_without_sentinels_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"span-corruption: mBART has no sentinels"):
        sentinels_of(load_codec(small_model(tmp_path)))
