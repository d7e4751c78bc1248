"""Attention by products of heads is PyTorch's, and so are its gradients; it is taken where bfloat16 learns on a CPU."""

import pytest
import torch
import torch.nn.functional as F
from tiny_models import small_model

from workflow_scripts.models.batches import collate
from workflow_scripts.models.networks import load_network
from workflow_scripts.training import attention
from workflow_scripts.training.attention import products_of_heads, quick_attention
from workflow_scripts.training.mixed_precision import mixed_precision

CPU = torch.device("cpu")
PYTORCHS = F.scaled_dot_product_attention
# three rows of four heads; of the second and third row the last pieces are padding
SEEN = torch.arange(6) < torch.tensor([6, 4, 1])[:, None]
MASKS = {
    "none": {},
    "padding": {"attn_mask": SEEN[:, None, None]},
    "added": {"attn_mask": torch.zeros(3, 1, 1, 6).masked_fill(~SEEN[:, None, None], -torch.inf)},
    "causal": {"is_causal": True},
    "scaled": {"attn_mask": SEEN[:, None, None], "scale": 0.3},
    "shared keys": {"enable_gqa": True},
}


def drawn(*shape, seed, dtype=torch.float32):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype).requires_grad_()


def heads(keys=4, dtype=torch.float32):
    return [drawn(3, number, 6, 8, seed=seed, dtype=dtype) for seed, number in enumerate((4, keys, keys))]


@pytest.mark.parametrize("name", MASKS)
def test_states_and_gradients_are_pytorchs(name):
    found = []
    for function in (PYTORCHS, products_of_heads):
        inputs = heads(keys=2 if name == "shared keys" else 4)
        states = function(*inputs, **MASKS[name])
        (states * drawn(*states.shape, seed=9).detach()).sum().backward()
        found.append([states.detach(), *(tensor.grad for tensor in inputs)])
    for expected, computed in zip(*found, strict=True):
        assert torch.allclose(expected, computed, atol=1e-5)


def test_a_query_that_sees_nothing_gets_a_number():
    states = products_of_heads(*heads(), attn_mask=torch.zeros(3, 1, 6, 6, dtype=torch.bool))
    assert states.isfinite().all()


def test_pieces_are_dropped_as_often_as_asked():
    query, key, _ = heads()
    torch.manual_seed(1)
    of_ones = products_of_heads(query, key, torch.ones(3, 4, 6, 8), dropout_p=0.5)
    assert 0.8 < of_ones.mean() < 1.2 and of_ones.std() > 0.1


@pytest.fixture
def taken(monkeypatch):
    """Types of what is multiplied head by head."""
    types = []
    monkeypatch.setattr(
        attention,
        "products_of_heads",
        lambda query, *others, **named: types.append(query.dtype) or products_of_heads(query, *others, **named),
    )
    return types


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("learns", [True, False])
def test_it_is_taken_where_bfloat16_learns(taken, dtype, learns):
    with quick_attention(CPU), torch.set_grad_enabled(learns):
        states = F.scaled_dot_product_attention(*heads(dtype=dtype))
    assert states.dtype == dtype
    assert taken == ([dtype] if learns and dtype == torch.bfloat16 else [])


def test_long_rows_are_left_to_the_kernel(taken, monkeypatch):
    for longest in (5, 6):
        monkeypatch.setattr(attention, "LONGEST", longest)
        with quick_attention(CPU):
            F.scaled_dot_product_attention(*heads(dtype=torch.bfloat16))
    assert taken == [torch.bfloat16]


def test_autocast_makes_all_of_it_bfloat16(taken):
    with quick_attention(CPU), torch.autocast("cpu", torch.bfloat16):
        states = F.scaled_dot_product_attention(*heads())
    assert states.dtype == torch.bfloat16 and taken == [torch.bfloat16]


def test_pytorchs_comes_back():
    with pytest.raises(KeyError), quick_attention(CPU):
        assert F.scaled_dot_product_attention is not PYTORCHS
        raise KeyError
    assert F.scaled_dot_product_attention is PYTORCHS
    with quick_attention(torch.device("cuda")):
        assert F.scaled_dot_product_attention is PYTORCHS


@pytest.mark.parametrize("family", ["mbart", "xlm-roberta"])
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_training_in_bfloat16_takes_it(tmp_path, taken, family, precision):
    network = load_network(small_model(tmp_path, family), "text", dropout=0.0, attention_dropout=0.0, seed=1).train()
    with mixed_precision(network, precision):
        batch = collate([([5, 6, 7, 2], [8, 9, 2])], 1, family == "mbart")
        network(**{name: value for name, value in batch.items() if name != "labels"})
    assert bool(taken) == (precision == "bfloat16") and set(taken) <= {torch.bfloat16}
