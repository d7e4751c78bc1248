"""Matrices rounded to four bits: what is refused, and that those that come back have what their adapter adds."""

import copy
import importlib.util

import pytest
import torch
from tiny_decoders import small_decoder

from workflow_scripts.stage import InputError
from workflow_scripts.training import four_bits
from workflow_scripts.training.adapter import adapt, merge
from workflow_scripts.training.loop import load_model
from workflow_scripts.training.settings import Training

ROUNDED = {"kind": "lora", "rank": 4, "base": "4bit"}


@pytest.fixture
def network(tmp_path):
    return load_model(small_decoder(tmp_path, "llama"), Training(), 1)


def test_it_needs_a_package_and_a_gpu(network, monkeypatch):
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "bitsandbytes" else real(name))
    with pytest.raises(InputError, match=r"base: 4bit needs the package bitsandbytes; install it \(pip install bitsandbytes\)"):
        adapt(network, ROUNDED, 1)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: name if name == "bitsandbytes" else real(name))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(InputError, match="base: 4bit needs a GPU, and there is none here"):
        adapt(network, ROUNDED, 1)


def test_it_is_not_for_dora(network):
    with pytest.raises(InputError, match="base: 4bit is for lora"):
        adapt(network, {**ROUNDED, "kind": "dora"}, 1)


def test_it_is_not_for_layers_of_another_kind(tmp_path):
    """As GPT-2's: nothing would be rounded, and the adapter would be lost."""
    network = load_model(small_decoder(tmp_path, "gpt2"), Training(), 1)
    with pytest.raises(
        InputError, match=r"base: 4bit rounds linear layers, .* another kind \(Conv1D: c_attn, c_fc, c_proj\); leave base out"
    ):
        adapt(network, ROUNDED, 1)


def test_matrices_come_back_with_what_the_adapter_adds(network):
    """As peft merges it where nothing was rounded."""
    before = {name: copy.deepcopy(part) for name, part in network.named_modules() if name.endswith(("q_proj", "down_proj"))}
    adapted = adapt(network, {"kind": "lora", "rank": 4, "targets": ["q_proj", "down_proj"]}, 1)
    for name, weight in network.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(weight)
    other = copy.deepcopy(adapted.wrapped)
    network.unrounded, network.is_loaded_in_4bit = before, True
    assert four_bits.is_rounded(network)
    whole, wanted = merge(adapted), other.merge_and_unload()
    assert not four_bits.is_rounded(whole) and [*dict(whole.named_parameters())] == [*dict(wanted.named_parameters())]
    for (name, weight), other_weight in zip(whole.named_parameters(), wanted.parameters(), strict=True):
        assert torch.allclose(weight, other_weight, atol=1e-6), name
