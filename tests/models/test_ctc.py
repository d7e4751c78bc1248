"""CTC by few pieces instead of the whole vocabulary, and what fits into how many positions."""

import itertools

import pytest
import torch
import torch.nn.functional as F

from workflow_scripts.models import ctc, products
from workflow_scripts.models.ctc import best_pieces, collapse, ctc_loss, emissions, fits, guessed_pieces, piece_losses

VOCABULARY, BLANK = 40, 4


@pytest.fixture
def batch():
    """States, output layer, labels (with neighbours that are equal, and one row shorter), and the positions of the rows."""
    torch.manual_seed(0)
    states = torch.randn(3, 12, 16, dtype=torch.double, requires_grad=True)
    weight = torch.randn(VOCABULARY, 16, dtype=torch.double)
    bias = torch.randn(VOCABULARY, dtype=torch.double)
    labels = torch.tensor([[7, 7, 9, 11, 7], [8, 30, 8, 12, -100], [39, 5, 5, -100, -100]])
    return states, weight, bias, labels, torch.tensor([12, 9, 11])


@pytest.mark.parametrize("entries", [1 << 27, 1], ids=["at once", "row by row"])
@pytest.mark.parametrize("alignment", [1, 64])
def test_loss_and_gradient_are_those_of_the_whole_vocabulary(batch, entries, alignment, monkeypatch):
    monkeypatch.setattr(products, "_alignment", lambda device: alignment)
    states, weight, bias, labels, positions = batch
    scores = F.linear(states, weight, bias).log_softmax(-1)
    lengths = (labels >= 0).sum(1)
    whole = F.ctc_loss(scores.transpose(0, 1), labels.clamp_min(0), positions, lengths, blank=BLANK, reduction="none")
    monkeypatch.setattr(ctc, "_ENTRIES", entries)
    found, without = (emissions(states, weight, bias, labels, BLANK, draft) for draft in ("best", "no blank"))
    few = ctc_loss(found, positions, labels)
    assert found.log_probabilities.shape[2] == labels.shape[1] + 2
    assert torch.allclose(few, whole, rtol=0, atol=1e-12)
    of = [torch.autograd.grad(loss.sum(), states, retain_graph=True)[0] for loss in (whole, few)]
    assert torch.allclose(*of, rtol=0, atol=1e-12)
    assert torch.equal(found.draft, scores.argmax(-1))
    scores.data[..., BLANK] = -torch.inf
    assert torch.equal(without.draft, scores.argmax(-1))


def test_a_target_fits_exactly_where_an_alignment_collapses_to_it():
    for target in itertools.chain.from_iterable(itertools.product((1, 2), repeat=n) for n in (1, 2, 3)):
        for positions in range(1, 6):
            alignments = itertools.product((0, 1, 2), repeat=positions)
            assert fits(target, positions) == any(collapse(row, 0) == list(target) for row in alignments)


def test_what_does_not_fit_costs_infinity_and_a_row_without_labels_nothing(batch):
    states, weight, bias, _, _ = batch
    labels = torch.tensor([[7, 7, 7], [7, 8, 9], [-100, -100, -100]])
    loss = ctc_loss(emissions(states, weight, bias, labels, BLANK), torch.tensor([4, 4, 4]), labels)
    assert loss[0] == torch.inf and torch.isfinite(loss[1]) and loss[2] == 0


def test_the_best_pieces_need_no_labels(batch):
    states, weight, bias, labels, _ = batch
    for kind in ("best", "no blank"):
        best, draft = best_pieces(states, weight, bias, BLANK, kind)
        assert torch.equal(best, emissions(states, weight, bias, labels, BLANK, "best").draft) and not best.requires_grad
        assert torch.equal(draft, emissions(states, weight, bias, labels, BLANK, kind).draft)


@pytest.mark.parametrize("entries", [1 << 27, 1], ids=["at once", "row by row"])
def test_pieces_are_guessed_and_paid_for_in_portions(batch, entries, monkeypatch):
    states, weight, bias, _, _ = batch
    monkeypatch.setattr(ctc, "_ENTRIES", entries)
    scores = F.linear(states, weight, bias).log_softmax(-1)
    chances, pieces = scores.max(dim=2)
    found = guessed_pieces(states, weight, bias)
    assert torch.equal(found[0], pieces) and torch.allclose(found[1], chances, rtol=0, atol=1e-12) and not found[1].requires_grad
    flat, labels = states.flatten(0, 1), torch.arange(36) % VOCABULARY
    losses = piece_losses(flat, weight, bias, labels)
    assert torch.allclose(losses, -scores.flatten(0, 1)[torch.arange(36), labels], rtol=0, atol=1e-12)
    of = [
        torch.autograd.grad(loss, states, retain_graph=True)[0]
        for loss in (losses.sum(), -scores.flatten(0, 1)[torch.arange(36), labels].sum())
    ]
    assert torch.allclose(*of, rtol=0, atol=1e-12)


@pytest.mark.parametrize("alignment", [1, 64])
def test_smoothing_gives_no_mass_to_pieces_that_only_fill_the_layer_up(batch, alignment, monkeypatch):
    monkeypatch.setattr(products, "_alignment", lambda device: alignment)
    states, weight, bias, *_ = batch
    flat, labels = states.flatten(0, 1), torch.arange(36) % VOCABULARY
    whole = F.cross_entropy(F.linear(flat, weight, bias), labels, reduction="none", label_smoothing=0.1)
    few = piece_losses(flat, weight, bias, labels, 0.1)
    assert torch.allclose(few, whole, rtol=0, atol=1e-12)
    of = [torch.autograd.grad(loss.sum(), states, retain_graph=True)[0] for loss in (whole, few)]
    assert torch.allclose(*of, rtol=0, atol=1e-12)


def test_a_frozen_output_layer_in_half_precision_gives_what_a_trained_one_does(batch, monkeypatch):
    states, weight, bias, labels, *_ = batch
    states, weight, bias = (tensor.detach().float() for tensor in (states, weight, bias))
    monkeypatch.setattr(ctc, "_ENTRIES", 1)
    found = []
    for trained in (False, True):
        weight.requires_grad_(trained)
        with torch.autocast("cpu", torch.bfloat16):
            made = ctc.emissions(states, weight, bias, labels, 0, "best")
            found.append((made.log_probabilities.detach(), made.draft, *ctc.best_pieces(states, weight, bias, 0, "best")))
    assert all(torch.equal(frozen, trained) for frozen, trained in zip(*found, strict=True))
    exact = ctc.emissions(states, weight.detach(), bias, labels, 0).log_probabilities
    assert found[0][0].dtype == torch.float32 and not torch.equal(found[0][0], exact) and torch.allclose(found[0][0], exact, atol=0.3)
