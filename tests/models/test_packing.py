"""A batch without padding is the padded batch of the same rows."""

import pytest
import torch
from tiny_models import small_encoder, small_model

from workflow_scripts.models.batches import collate
from workflow_scripts.models.networks import last_states
from workflow_scripts.models.packing import Segments, _in_turn, _jagged, pack, packed_states
from workflow_scripts.stage import InputError
from workflow_scripts.training.loop import load_model
from workflow_scripts.training.settings import Training

ROWS = [([5, 6, 7, 2, 9], [7, 2, 8]), ([5, 2, 9], [7, 11, 12, 13, 7, 2, 8]), ([20, 21, 22, 2], [30, 2])]


def test_rows_stand_one_behind_the_other():
    batch = pack([([5, 6, 2, 9], [7, 2, 8]), ([5, 2, 9], [-100])])
    assert batch["input_ids"].tolist() == [[5, 6, 2, 9, 5, 2, 9]] and batch["decoder_input_ids"].tolist() == [[8, 7, 2, 0]]
    assert batch["labels"].tolist() == [[7, 2, 8, -100]] and batch["longest"] == (4, 3)
    assert batch["source_offsets"].tolist() == [0, 4, 7] and batch["target_offsets"].tolist() == [0, 3, 4]
    assert Segments(batch["source_offsets"], 4).positions(7).tolist() == [0, 1, 2, 3, 0, 1, 2]


@pytest.mark.parametrize("family", ["mbart", "mbart50", "cc25", "m2m100", "nllb"])
def test_states_and_gradients_are_those_of_the_padded_batch(tmp_path, family):
    network = load_model(small_model(tmp_path, family), Training(dropout=0.0, attention_dropout=0.0), 1).double().train()
    padded, packed = collate(ROWS, pad=1), pack(ROWS)
    kept = padded.pop("labels") != -100
    del packed["labels"]
    weights = torch.randn(int(kept.sum()), network.config.d_model, dtype=torch.float64)
    found = []
    for states in (last_states(network, **padded)[kept], last_states(network, **packed)[0]):
        network.zero_grad()
        (states * weights).sum().backward()
        found.append((states.detach(), {name: p.grad.clone() for name, p in network.named_parameters() if p.grad is not None}))
    (one, grads), (other, packed_grads) = found
    assert torch.allclose(one, other, atol=1e-10) and grads.keys() == packed_grads.keys()
    assert all(torch.allclose(grads[name], packed_grads[name], atol=1e-9) for name in grads)
    assert max(float(grad.abs().max()) for grad in grads.values()) > 1e-3
    # the model's own attention is back
    assert torch.equal(last_states(network, **padded)[kept], one)


def test_rows_do_not_see_each_other(tmp_path):
    network = load_model(small_model(tmp_path), Training(), 1).eval()

    def states(rows):
        return packed_states(network, **{name: value for name, value in pack(rows).items() if name != "labels"})[0]

    other = [ROWS[0], ([17] * 40, [18] * 30), ROWS[2]]
    assert torch.allclose(states(ROWS)[:3], states(other)[:3], atol=1e-5) and torch.allclose(
        states(ROWS)[-2:], states(other)[-2:], atol=1e-5
    )
    assert not torch.allclose(states(ROWS)[3:10], states(other)[3:10], atol=1e-2)


def test_nested_tensors_give_the_same_attention():
    asking, asked = Segments(torch.tensor([0, 3, 10, 12]), 7), Segments(torch.tensor([0, 5, 8, 12]), 5)
    query, key, value = (torch.randn(12, 4, 8, requires_grad=True) for _ in range(3))
    results = []
    for attention in (_in_turn, _jagged):
        out = attention(query, key, value, asking, asked, False, 0.0, 0.3)
        results.append((out, *torch.autograd.grad(out.square().sum(), (query, key, value))))
    assert all(torch.allclose(one, other, atol=1e-5) for one, other in zip(*results, strict=True))


def test_an_encoder_is_refused(tmp_path):
    network = load_model(small_encoder(tmp_path, "xlm-roberta"), Training(), 1)
    packed = {name: value for name, value in pack(ROWS).items() if name != "labels"}
    with pytest.raises(InputError, match=r"XLM-R is not among the families.*set batching: padded"):
        packed_states(network, **packed)
