"""Greedy search leaves ended rows out of the batch, and writes what `generate` writes."""

import itertools

import pytest
import torch
from tiny_models import manual_pairs, small_model

from workflow_scripts.models.networks import load_network
from workflow_scripts.models.search import beam_search
from workflow_scripts.models.tokenisation import load_codec

LONGEST = 12


@pytest.mark.parametrize("kind", ["gemma3_text", "bloom", "m2m100", "mt5"])
def test_rows_that_have_ended_are_left_out_and_texts_are_those_of_generate(kind, tmp_path):
    model = small_model(tmp_path, kind)
    codec, network = load_codec(model), load_network(model, "text", dropout=0.0, attention_dropout=0.0, seed=1)
    if not codec.form.causal:
        for weight in network.parameters():
            weight.data *= 8  # so that it does not write the same of any source
    rows = codec.asked(codec.pieces(codec.behind_blank(manual_pairs(8)[0])), ("de", "en"))
    # what a random network writes has no end of its own: a piece that stands at different places, or nowhere in some rows, becomes one
    begin = {"max_new_tokens": LONGEST, "min_new_tokens": LONGEST, "do_sample": False, **codec.generate_arguments("en")}
    written = [network.generate(torch.tensor([row]), **begin)[0, -LONGEST:].tolist() for row in rows]
    places = {piece: {(*row, piece).index(piece) for row in written} for piece in {*itertools.chain(*written)}}
    network.generation_config.eos_token_id = max(places, key=lambda piece: (len(places[piece]), piece))
    sizes = []
    ids = "input_ids" if codec.form.causal else "decoder_input_ids"
    network.register_forward_pre_hook(lambda _, given, named: sizes.append(len(named[ids])), with_kwargs=True)
    found = beam_search(network, codec, rows, "en", 1, max_length=LONGEST)
    assert sizes[0] == len(rows) > sizes[-1] and sizes == sorted(sizes, reverse=True)
    sizes.clear()
    network._is_stateful = True  # then `generate` searches by itself
    assert found == beam_search(network, codec, rows, "en", 1, max_length=LONGEST)
    assert {*sizes} == {len(rows)} and len({one[0].ended for one in found}) == 2
