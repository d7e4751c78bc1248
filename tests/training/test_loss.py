"""The loss is its definition, in one piece or in chunks."""

import pytest
import torch
from phases import TINY, assert_alike, finetune, phase_files
from tiny_models import small_model

from workflow_scripts.models import products
from workflow_scripts.training import loss
from workflow_scripts.training.loop import load_model
from workflow_scripts.training.loss import linear_smoothed_loss, smoothed_loss, states_for_logits
from workflow_scripts.training.settings import Training


def test_smoothed_loss_is_the_definition_and_adds_up_over_small_batches():
    logits, labels = torch.randn(4, 6, 50), torch.randint(0, 50, (4, 6))
    labels[0, 4:] = -100
    logp = logits.log_softmax(-1)
    kept = labels != -100
    nll = -logp.gather(-1, labels.clamp_min(0)[..., None])[..., 0][kept]
    expected = (0.8 * nll + 0.2 * -logp.mean(-1)[kept]).mean()
    assert smoothed_loss(logits, labels, 0.2, None) == pytest.approx(float(expected), rel=1e-5)
    parts = [smoothed_loss(logits[i : i + 2], labels[i : i + 2], 0.2, int(kept.sum())) for i in (0, 2)]
    assert float(sum(parts)) == pytest.approx(float(expected), rel=1e-5)


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
@pytest.mark.parametrize("rows", [1, 7, 1000])
@pytest.mark.parametrize("alignment", [1, 64])
def test_chunks_and_alignment_make_no_difference(monkeypatch, smoothing, rows, alignment):
    monkeypatch.setattr(loss, "_ENTRIES", rows * 50)
    monkeypatch.setattr(products, "_alignment", lambda device: alignment)
    generator = torch.Generator().manual_seed(3)
    states, weight, bias = (torch.randn(*shape, generator=generator, dtype=torch.float64) for shape in ((4, 6, 8), (50, 8), (1, 50)))
    labels = torch.randint(0, 50, (4, 6), generator=generator)
    labels[0, 4:] = -100
    results = []
    for chunked in (False, True):
        x, w, b = (tensor.float().requires_grad_() for tensor in (states, weight, bias))
        value = linear_smoothed_loss(x, w, b, labels, smoothing, 30) if chunked else smoothed_loss(x @ w.T + b, labels, smoothing, 30)
        (3 * value).backward()
        results.append((value.detach(), x.grad, w.grad, b.grad))
    for plain, chunked in zip(*results, strict=True):
        assert torch.allclose(plain, chunked, atol=1e-6, rtol=1e-5)
    assert results[0][1].abs().max() > 1e-3


@pytest.mark.parametrize("alignment", [1, 64])
def test_states_without_a_label_add_nothing(monkeypatch, alignment):
    monkeypatch.setattr(products, "_alignment", lambda device: alignment)
    monkeypatch.setattr(loss, "_ENTRIES", 7 * 50)
    states, weight = torch.randn(2, 6, 8), torch.randn(50, 8)
    labels = torch.randint(0, 50, (2, 6))
    labels[0, 4:], labels[1, 1] = -100, -100
    results = []
    for ignoring in (False, True):
        x, w, b = (tensor.clone().requires_grad_() for tensor in (states, weight, torch.zeros(50)))
        value = linear_smoothed_loss(x, w, b, labels, 0.2, 9, ignoring=ignoring)
        value.backward()
        results.append((value.detach(), x.grad, w.grad, b.grad))
    assert all(torch.allclose(one, other, atol=1e-6, rtol=1e-5) for one, other in zip(*results, strict=True))
    assert float(results[1][1][labels == -100].abs().max()) == 0 and float(results[0][0]) > 1


def test_a_frozen_output_layer_gets_no_gradient():
    states, weight, labels = torch.randn(2, 3, 8, requires_grad=True), torch.randn(50, 8), torch.randint(0, 50, (2, 3))
    linear_smoothed_loss(states, weight, torch.zeros(50), labels, 0.1, None).backward()
    assert states.grad is not None and weight.grad is None


def test_no_gradient_is_made_where_none_is_wanted(monkeypatch):
    asked = []
    forward = loss._LinearSmoothedLoss.forward
    monkeypatch.setattr(
        loss._LinearSmoothedLoss, "forward", lambda ctx, *given: (asked.append(ctx.needs_input_grad[:2]), forward(ctx, *given))[1]
    )
    states, weight, labels = torch.randn(2, 3, 8, requires_grad=True), torch.randn(50, 8, requires_grad=True), torch.randint(0, 50, (2, 3))
    wanted = linear_smoothed_loss(states, weight, torch.zeros(50), labels, 0.1, None)
    with torch.no_grad():
        assert torch.equal(linear_smoothed_loss(states, weight, torch.zeros(50), labels, 0.1, None), wanted)
    assert asked == [(True, True), (False, False)]


def test_no_labels_cost_nothing():
    states, weight, labels = torch.randn(1, 2, 8, requires_grad=True), torch.randn(50, 8), torch.full((1, 2), -100)
    linear_smoothed_loss(states, weight, torch.zeros(50), labels, 0.1, 7).backward()
    assert float(states.grad.abs().max()) == 0
    assert float(smoothed_loss(states.detach() @ weight.T, labels, 0.1, 7)) == 0


@pytest.mark.parametrize("items", [None, 0, torch.tensor(0)])
@pytest.mark.parametrize("ignoring", [False, True])
def test_an_update_without_labels_has_the_loss_0(items, ignoring):
    states, weight, labels = torch.randn(1, 2, 8, requires_grad=True), torch.randn(50, 8), torch.full((1, 2), -100)
    value = linear_smoothed_loss(states, weight, torch.zeros(50), labels, 0.1, items, ignoring=ignoring)
    value.backward()
    assert float(value.detach()) == float(states.grad.abs().max()) == 0
    assert float(smoothed_loss(states.detach() @ weight.T, labels, 0.1, items)) == 0


def test_bfloat16_products_are_near():
    states, weight, labels = torch.randn(2, 30, 16), torch.randn(500, 16) / 4, torch.randint(0, 500, (2, 30))
    exact = linear_smoothed_loss(states, weight, torch.zeros(500), labels, 0.2, None)
    rough = linear_smoothed_loss(states, weight, torch.zeros(500), labels, 0.2, None, torch.bfloat16)
    assert float(rough) == pytest.approx(float(exact), rel=0.01) and rough.dtype == torch.float32


def test_a_network_hands_over_states_only_while_it_trains(tmp_path):
    network = load_model(small_model(tmp_path), Training(), 1)
    inputs = {"input_ids": torch.tensor([[5, 6, 2]]), "decoder_input_ids": torch.tensor([[2, 7]])}
    network.eval()
    before = network(**inputs).logits
    states_for_logits(network)
    assert torch.equal(network(**inputs).logits, before)
    network.train()
    assert network(**inputs).logits.shape == (1, 2, 32)


def test_a_phase_ends_alike_with_either_loss(tmp_path):
    files = phase_files(tmp_path)
    settings = {**TINY, "updates": 6, "evaluate_every": 3, "checkpoint": "last", "micro_batch_tokens": 200}
    plain, chunked = (finetune(*files, tmp_path / name, Training(loss=name, **settings)) for name in ("plain", "chunked"))
    start = finetune(*files, tmp_path / "start", Training(**{**settings, "learning_rate": 1e-12}))
    assert_alike(start, plain, chunked)
