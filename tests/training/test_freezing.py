"""A decoder that is trained alone: what moves, what stays, and what a checkpoint has."""

import pytest
import torch
from phases import TINY, finetune, phase_files
from safetensors import safe_open
from safetensors.torch import load_file
from tiny_models import small_encoder, small_model
from transformers import AutoModelForSeq2SeqLM

from workflow_scripts.models.networks import load_network
from workflow_scripts.stage import InputError, read_json
from workflow_scripts.training.adapter import adapt
from workflow_scripts.training.settings import Training


def test_the_encoder_says_what_it_said_before(tmp_path):
    folder, start = phase_files(tmp_path)
    settings = Training(**{**TINY, "updates": 4, "evaluate_every": 2, "checkpoint": "last", "adapter": {"kind": "decoder"}})
    weights, before = finetune(folder, start, tmp_path / "out", settings), load_file(start / "model.safetensors")
    moved = {name for name in weights if not torch.equal(weights[name], before[name])}
    assert moved and all(name.startswith("model.decoder.") for name in moved)
    # every matrix of the decoder learns, cross-attention too
    layers = {name for name in weights if name.startswith("model.decoder.layers.") and name.endswith("weight")}
    assert layers <= moved and any("encoder_attn" in name for name in layers)
    row = torch.tensor([[20, 31, 42, 2]])
    with torch.no_grad():
        states = [AutoModelForSeq2SeqLM.from_pretrained(one).eval().get_encoder()(row)[0] for one in (start, tmp_path / "out/model")]
    assert torch.equal(*states)
    (file,) = (tmp_path / "out").glob("checkpoints/*/checkpoint-4/model.safetensors")
    with safe_open(file, "pt") as kept:
        assert all(name.startswith("model.decoder.") for name in kept.keys())  # noqa: SIM118 (it is no dictionary)
    about = read_json(tmp_path / "out/training.json")["adapter"]
    assert about["label"] == "the decoder alone" and about["trained"] == sum(weights[name].numel() for name in moved)


@pytest.mark.parametrize("family", ["mbart50", "nllb", "mt5", "bart"])
def test_each_family_with_a_decoder_trains_it_alone(family, tmp_path):
    network = load_network(small_model(tmp_path, family), "text", dropout=0.0, attention_dropout=0.0, seed=1)
    adapt(network, {"kind": "decoder"}, 1)
    kept = [*network.get_encoder().parameters()]
    trained = [weight for weight in network.parameters() if weight.requires_grad]
    assert trained and not any(weight.requires_grad for weight in kept)
    whole = {id(weight) for weight in network.parameters()}
    assert {id(weight) for weight in (*kept, *trained)} == whole


def test_an_encoder_alone_is_refused(tmp_path):
    network = load_network(small_encoder(tmp_path, "xlm-roberta"), "text", dropout=0.0, attention_dropout=0.0, seed=1)
    with pytest.raises(InputError, match="adapter: decoder: XLM-R has no decoder to train"):
        adapt(network, {"kind": "decoder"}, 1)
