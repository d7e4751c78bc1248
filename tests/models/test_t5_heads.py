"""Heads on the encoder of T5's kin: they learn, padding changes nothing, and all of them is saved."""

import pytest
import torch
from tiny_models import manual_pairs, small_t5
from transformers import AutoConfig

from workflow_scripts.models.networks import load_network, save_model
from workflow_scripts.tasks.head_model import Reader
from workflow_scripts.tasks.labelling import WordReader
from workflow_scripts.tasks.passages import PassageReader
from workflow_scripts.text.examples import Example

LABELS = ["left", "right"]
SHARED = {"dropout": 0.0, "attention_dropout": 0.0, "seed": 1}


@pytest.fixture(scope="module", params=["mt5", "byt5"])
def model(request, tmp_path_factory):
    """Its pieces are SentencePiece's, or bytes."""
    return small_t5(tmp_path_factory.mktemp(request.param), request.param)


def read_by(head: str, model):
    """What reads four examples for a head, their rows, and the classes of a label."""
    german, english = manual_pairs(4)
    if head == "labelling":
        reader = WordReader(model, 64)
        examples = [Example(" ".join(LABELS[n % 2] for n, _ in enumerate(text.split())), text, "") for text in german]
    elif head == "answering":
        reader = PassageReader(model, 64, 16, 20)
        examples = [Example(f"0:{len(text.split()[0])}", pair, text) for text, pair in zip(german, english, strict=True)]
    else:
        reader = Reader(model, 64)
        examples = [Example(label, text, pair) for label, text, pair in zip(LABELS * 2, german, english, strict=True)]
    return reader, reader.rows(reader.windows(examples, "de"), "de", LABELS)


@pytest.mark.parametrize("head", ["classification", "labelling", "answering"])
def test_a_head_reads_the_encoder_learns_and_is_saved(model, head, tmp_path):
    network = load_network(model, head, **SHARED, labels=None if head == "answering" else LABELS)
    assert not [name for name, _ in network.named_parameters() if "decoder" in name]
    # as large as the other matrices that read a state, of 32 numbers
    assert 0.05 < float(network.classifier.weight.detach().std()) < 0.5
    reader, rows = read_by(head, model)
    batch = reader.collate(rows)
    labels = batch.pop("labels")
    logits = network.eval()(**batch).logits
    for at, row in enumerate(rows):
        single = reader.collate([row])
        del single["labels"]
        (alone,) = network(**single).logits
        part = (
            logits[at] if head == "classification" else logits[at, : len(row[0])] if head == "labelling" else logits[at, :, : len(row[0])]
        )
        assert torch.allclose(part, alone, atol=1e-5)
    loss = torch.nn.functional.cross_entropy(logits.flatten(0, -2), labels.flatten())
    loss.backward()
    assert all(weight.grad is not None for weight in network.parameters())
    save_model(network, reader.tokenizer, tmp_path / head)
    again = load_network(tmp_path / head, head, **SHARED, new_head=False).state_dict()
    assert all(torch.equal(weight, again[name]) for name, weight in network.state_dict().items())
    # the configuration is still that of an encoder with a decoder
    config = AutoConfig.from_pretrained(tmp_path / head)
    assert config.is_encoder_decoder and config.num_decoder_layers == 2


def test_a_text_may_be_read_by_the_state_of_its_end(model):
    reader, rows = read_by("classification", model)
    batch = reader.collate(rows)
    del batch["labels"]
    by_mean = load_network(model, "encoder_classification", **SHARED, labels=LABELS).eval()
    by_end = load_network(model, "encoder_classification", **SHARED, labels=LABELS, head_reads="last").eval()
    assert not torch.allclose(by_mean(**batch).logits, by_end(**batch).logits)
