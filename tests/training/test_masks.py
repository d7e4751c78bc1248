"""Masks that are made without questions are transformers' own, and so are losses and gradients."""

import pytest
import torch
from tiny_models import small_model
from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS, create_sliding_window_causal_mask, sdpa_mask

from workflow_scripts.models.batches import collate
from workflow_scripts.models.recognition import family_of
from workflow_scripts.training.loop import load_model, pick_loss
from workflow_scripts.training.masks import known_mask, known_masks, without_questions
from workflow_scripts.training.settings import Training

SETTINGS = Training(dropout=0.0, attention_dropout=0.0)
PADDED = [([5, 6, 7, 8, 2], [7, 9, 2]), ([9, 6, 2], [8, 11, 12, 13, 2])]
EVEN = [([5, 6, 7, 2], [7, 9, 10, 2]), ([9, 6, 8, 2], [8, 11, 12, 2])]


def learnt(network, rows, known):
    """Loss and gradients of a batch."""
    decoder = family_of(network.config).decoder
    batch = collate(rows, 1, decoder)
    if known:
        batch = without_questions(batch, select=True)
    labels = batch.pop("labels")
    loss = pick_loss(network, SETTINGS, "float32")(network(**batch), labels, 7)
    loss.backward()
    gradients = {name: weight.grad for name, weight in network.named_parameters() if weight.grad is not None}
    network.zero_grad(set_to_none=True)
    return {"loss": loss.detach(), **gradients}


@pytest.mark.parametrize("family", ["mbart", "m2m100", "mt5", "xlm-roberta", "bert"])
@pytest.mark.parametrize("rows", [PADDED, EVEN], ids=["padded", "even"])
def test_loss_and_gradients_are_the_same(tmp_path, family, rows):
    encoder = family in ("bert", "xlm-roberta")
    start = small_model(tmp_path, family)
    network = load_model(start, SETTINGS, 1).train()
    if encoder:
        rows = [(read, [*label, *[-100] * len(read)][: len(read)]) for read, label in rows]
    whole = learnt(network, rows, known=False)
    network = load_model(start, SETTINGS, 1).train()
    with known_masks(network):
        known = learnt(network, rows, known=True)
    assert whole.keys() == known.keys() and all(torch.equal(whole[name], known[name]) for name in whole)
    assert float(whole["loss"]) > 0.1


def test_only_what_pads_has_a_mask_and_only_labels_have_places():
    padded, even = (without_questions(collate(rows, 1), select=True) for rows in (PADDED, EVEN))
    assert "attention_mask" in padded and "attention_mask" not in even
    assert padded["labels"].tolist() == [[7, 9, 2, 8, 11, 12, 13, 2]] and padded["places"].tolist() == [0, 1, 2, 5, 6, 7, 8, 9]
    whole = without_questions(collate(PADDED, 1), select=False)
    assert "places" not in whole and whole["labels"].tolist() == collate(PADDED, 1)["labels"].tolist()


def test_generation_and_other_masks_are_transformers_own(tmp_path):
    network = load_model(small_model(tmp_path), SETTINGS, 1)
    asked = []
    with known_masks(network):
        whole = network.model.forward
        network.model.forward = lambda *given, **named: asked.append(ALL_MASK_ATTENTION_FUNCTIONS["sdpa"]) or whole(*given, **named)
        for mode in (True, False):
            network.train(mode)(input_ids=torch.tensor([[5, 6, 2]]), decoder_input_ids=torch.tensor([[2, 7]]))
    assert asked == [known_mask, sdpa_mask] and ALL_MASK_ATTENTION_FUNCTIONS["sdpa"] is sdpa_mask
    assert "forward" not in vars(network)
    network.config.sliding_window = 2
    given = {"inputs_embeds": torch.zeros(1, 5, 4), "attention_mask": torch.ones(1, 5), "past_key_values": None}
    masks = []
    for own in (False, True):
        if own:
            ALL_MASK_ATTENTION_FUNCTIONS["sdpa"] = known_mask
        masks.append(create_sliding_window_causal_mask(config=network.config, **given))
    del ALL_MASK_ATTENTION_FUNCTIONS["sdpa"]
    assert torch.equal(*masks) and not masks[0].all()
