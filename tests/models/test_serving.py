"""vLLM as an engine: what is refused, in one line each. Where it is installed, it was not tried."""

import importlib.util

import pytest
from tiny_decoders import small_decoder
from tiny_models import small_model

from workflow_scripts import registry
from workflow_scripts.models.decoding import Decoding, translator
from workflow_scripts.models.tokenisation import load_codec
from workflow_scripts.stage import InputError

GREEDY = {"engine": "vllm", "beam_size": 1}


@pytest.fixture
def without_vllm(monkeypatch):
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "vllm" else real(name))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, r"the package vllm is not installed; install it \(pip install vllm\), or set decoding.engine: ctranslate2"),
        ({"beam_size": 5}, "decodes greedily, and beam_size is 5; set decoding.beam_size: 1"),
        ({"compute_type": "int8"}, "has no compute_type int8"),
    ],
)
def test_what_it_cannot_do_is_said_in_one_line(tmp_path, without_vllm, changes, said):
    model = small_decoder(tmp_path)
    with pytest.raises(InputError, match=said), translator(model, load_codec(model), 1, Decoding(**GREEDY | changes)):
        pass


def test_it_decodes_decoders_alone(tmp_path, without_vllm):
    model = small_model(tmp_path)
    with pytest.raises(InputError, match="is no decoder"), translator(model, load_codec(model), 1, Decoding(**GREEDY)):
        pass


def test_preflight_asks_whether_it_is_there(without_vllm):
    entry = registry.entry("engine", "vllm")
    assert "is not installed" in entry.missing() and entry.settings().gpus == 1 and not entry.ranks
