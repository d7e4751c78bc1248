"""Dropout as PyTorch's, but for which elements."""

import pytest
import torch
import torch.nn.functional as F
from tiny_models import small_model
from torch import nn

from workflow_scripts.training.dropout import dropout, quick_dropout
from workflow_scripts.training.loop import load_model
from workflow_scripts.training.settings import Training

CPU = torch.device("cpu")


@pytest.mark.parametrize("p", [0.1, 0.3, 0.5, 0.999])
def test_the_share_and_the_mean_are_right(p):
    torch.manual_seed(1)
    values = torch.full((1000, 1001), 2.0)
    found = dropout(values, p)
    deviation = (p * (1 - p) / values.numel()) ** 0.5
    assert float((found == 0).float().mean()) == pytest.approx(p, abs=4 * deviation + 2**-17)
    assert found[found != 0].unique().tolist() == pytest.approx([2 / (1 - p)], rel=0.01 if p > 0.9 else 1e-4)


def test_elements_fall_independently():
    torch.manual_seed(1)
    kept = (dropout(torch.ones(4, 500_000), 0.5) != 0).double()
    # four neighbours come from one draw
    neighbours = torch.corrcoef(torch.cat([kept.flatten()[shift::4][None] for shift in range(4)]))
    assert float((neighbours - torch.eye(4)).abs().max()) < 0.005
    assert float(torch.corrcoef(kept[:2])[0, 1].abs()) < 0.005


def test_gradients_take_the_same_mask():
    torch.manual_seed(1)
    values = torch.randn(7, 13, requires_grad=True)
    found = dropout(values, 0.4)
    found.sum().backward()
    assert torch.allclose(found, values * values.grad) and 0 < int((values.grad == 0).sum()) < 91


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("shape", [(), (1,), (3, 5), (0, 4)])
def test_any_shape_and_precision(shape, dtype):
    found = dropout(torch.ones(shape, dtype=dtype), 0.5)
    assert found.shape == shape and found.dtype == dtype


def test_nothing_is_drawn_where_nothing_is_dropped():
    before, values = torch.get_rng_state(), torch.ones(5)
    assert dropout(values, 0.0) is values and dropout(values, 0.3, training=False) is values
    assert torch.equal(torch.get_rng_state(), before)


def test_the_state_of_the_generator_decides():
    state = torch.get_rng_state()
    first = dropout(torch.ones(99), 0.5)
    assert not torch.equal(dropout(torch.ones(99), 0.5), first)
    torch.set_rng_state(state)
    assert torch.equal(dropout(torch.ones(99), 0.5), first)


def test_models_use_it_within_the_block_only(tmp_path):
    network = load_model(small_model(tmp_path), Training(dropout=0.3), 1).train()
    inputs = {"input_ids": torch.tensor([[5, 6, 2]]), "decoder_input_ids": torch.tensor([[2, 7]])}

    def drawn() -> torch.Tensor:
        torch.manual_seed(1)
        return network(**inputs).logits

    original, theirs, layer = F.dropout, drawn(), nn.Dropout(0.5)
    with quick_dropout(CPU):
        assert not torch.equal(drawn(), theirs)
        torch.manual_seed(1)
        through_layer = layer(torch.ones(50))
        torch.manual_seed(1)
        assert torch.equal(through_layer, dropout(torch.ones(50), 0.5))
    with pytest.raises(KeyError), quick_dropout(CPU):
        raise KeyError
    with quick_dropout(torch.device("cuda")):
        assert torch.equal(drawn(), theirs)
    assert F.dropout is original
