"""Vectors of sentences, and what is found by them."""

import numpy as np
import pytest
import torch

from workflow_scripts.evidence.states import encoded, open_half, pooled, pooling_weights
from workflow_scripts.stage import InputError
from workflow_scripts.tasks.neighbours import Near, Retrieval, Sides, chosen_layers, look_up


def test_the_last_layer_is_transformers_own(models):
    half = open_half("tiny", models["bert"])
    (ids,) = encoded(half, ["The house is old and it stands by the sea."], "en")
    with torch.no_grad():
        states = half.network(input_ids=torch.tensor([ids])).last_hidden_state[0]
    found = {name: pooled(half, [ids], [name], 4000, [half.depth])[0][0][0] for name in ("mean", "text", "first", "last")}
    expected = {"mean": states.mean(dim=0), "text": states[1:-1].mean(dim=0), "first": states[0], "last": states[-1]}
    for pooling, vector in expected.items():
        torch.testing.assert_close(found[pooling], vector, atol=1e-5, rtol=1e-4)


def test_a_row_of_special_tokens_alone_has_a_vector(models):
    half = open_half("tiny", models["bert"])
    assert pooling_weights(half, [[1, 2], [1, 9, 2]], "text").tolist() == [[0.5, 0.5, 0.0], [0.0, 1.0, 0.0]]


def test_layers():
    assert chosen_layers(1, Retrieval(layer=-1, layers=[0, 1])) == [1, 0]
    with pytest.raises(InputError, match=r"retrieval.layer: 7 is none of the model's layers, 0 \(the embeddings\) to 1"):
        chosen_layers(1, Retrieval(layer=7))


def test_the_threshold_is_that_of_the_dev_text():
    generator = torch.Generator().manual_seed(1)
    side = torch.randn(40, 8, generator=generator)
    pairs = [(i, i) for i in range(40)]
    test = Sides([side], [side + 0.1 * torch.randn(40, 8, generator=generator)], pairs)
    strict = Sides([side], [side.clone()], pairs)
    found = test.neighbours(0, 4)
    given, _, threshold = look_up(test, strict, Near(found, strict.neighbours(0, 4)), "cosine")
    assert threshold == pytest.approx(1.0, abs=1e-5) and given == [-1] * 40
    assert look_up(test, test, Near(found, found), "cosine")[0] == list(range(40))


def test_a_text_in_several_lines_is_searched_for_once_and_never_mined():
    """As in LASER's and XTREME's scripts: two copies would fill each other's neighbourhood, and nobody could tell which of them is meant."""
    generator = torch.Generator().manual_seed(1)
    side = torch.randn(40, 8, generator=generator)
    other = side + 0.01 * torch.randn(40, 8, generator=generator)
    lines = np.concatenate([np.arange(40), [7]])  # the source's line 40 has the text of its line 7
    test = Sides([side], [other], [*((i, i) for i in range(40)), (40, 7)], (lines, np.arange(40)))
    near = Near(test.neighbours(0, 4), test.neighbours(0, 4))
    given, _, _ = look_up(test, test, near, "margin")
    assert test.sizes == (41, 40) and given == [i if i != 7 else -1 for i in range(40)] + [-1]
    assert len(test.mined(near.test).source) == 39
