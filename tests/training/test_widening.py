"""Adapters beside the feed-forward modules: what is trained, and that a wider model of the family computes the same."""

import pytest
import torch
from phases import TINY, finetune, phase_files
from safetensors.torch import load_file
from tiny_encoders import tiny_encoder
from tiny_models import small_model
from transformers import AutoConfig, AutoModelForSeq2SeqLM, MBartConfig, MBartForConditionalGeneration

from workflow_scripts.models.engines import convert
from workflow_scripts.models.networks import load_network, save_model
from workflow_scripts.models.tokenisation import load_codec
from workflow_scripts.stage import InputError, read_json
from workflow_scripts.training.adapter import adapt, merge
from workflow_scripts.training.settings import Training

WIDTH = 3


def scores(network):
    """What the network says of a row."""
    row = torch.tensor([[20, 31, 42, 5, 2]])
    given = {"decoder_input_ids": row} if network.config.is_encoder_decoder else {}
    with torch.no_grad():
        return network.eval()(input_ids=row, **given).logits


@pytest.mark.parametrize(
    ("family", "widths", "gated"),
    [
        ("mbart", ["encoder_ffn_dim", "decoder_ffn_dim"], False),
        ("nllb", ["encoder_ffn_dim", "decoder_ffn_dim"], False),
        ("bart", ["encoder_ffn_dim", "decoder_ffn_dim"], False),
        ("mt5", ["d_ff"], True),
        ("bert", ["intermediate_size"], False),
        ("xlm-roberta", ["intermediate_size"], False),
        ("gemma3_text", ["intermediate_size"], True),
    ],
)
def test_a_wider_model_of_the_family_computes_the_same(family, widths, gated, tmp_path):
    folder = small_model(tmp_path, family)
    network = load_network(folder, "text", dropout=0.0, attention_dropout=0.0, seed=1)
    before, names = scores(network), {*network.state_dict()}
    settings = {key: getattr(network.config, key, None) for key in (*widths, "d_model", "hidden_size")}
    adapted = adapt(network, {"kind": "bottleneck", "width": WIDTH}, 1)
    assert torch.allclose(scores(network), before, atol=1e-5)
    assert all(".beside." in name for name in adapted.names)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for name, weight in network.named_parameters():
            if name in adapted.names:
                weight.copy_(torch.randn(weight.shape, generator=generator) * 0.2)
    learnt, trained = scores(network), adapted.trained
    assert not torch.allclose(learnt, before, atol=1e-2)
    whole = merge(adapted)
    assert torch.allclose(scores(whole), learnt, atol=1e-4) and {*whole.state_dict()} == names
    save_model(whole, load_codec(folder).tokenizer, tmp_path / "out")
    again = load_network(tmp_path / "out", "text", dropout=0.0, attention_dropout=0.0, seed=2)
    assert torch.allclose(scores(again), learnt, atol=1e-4)
    said = AutoConfig.from_pretrained(tmp_path / "out")
    assert {key: getattr(said, key) - settings[key] for key in widths} == dict.fromkeys(widths, WIDTH)
    matrices = sum(weight.ndim == 2 for name, weight in network.named_parameters() if name.endswith(_FIRST[gated]))
    width = settings["d_model"] or settings["hidden_size"]
    biases = 0 if gated else matrices * WIDTH
    assert trained == (3 if gated else 2) * matrices * WIDTH * width + biases


_FIRST = {
    False: ("fc1.weight", "intermediate.dense.weight"),
    True: ("wi_0.weight", "up_proj.weight"),
}
"""Whether a feed-forward module has a gate → how the names of one of its matrices end."""


def test_adapters_of_width_1024_have_fifty_million_weights_as_in_the_paper():
    shape = {"d_model": 1024, "encoder_layers": 12, "decoder_layers": 12, "encoder_ffn_dim": 4096, "decoder_ffn_dim": 4096}
    with torch.device("meta"):
        network = MBartForConditionalGeneration(MBartConfig(vocab_size=1000, **shape))
    # Wu et al. 2023, Table 1: 50M
    assert adapt(network, {"kind": "bottleneck", "width": 1024}, 1).trained == 24 * (2 * 1024 * 1024 + 1024)


def test_a_phase_hands_on_a_model_that_all_else_opens(tmp_path):
    folder, start = phase_files(tmp_path)
    settings = Training(
        **{**TINY, "updates": 4, "evaluate_every": 2, "checkpoint": "last", "adapter": {"kind": "bottleneck", "width": WIDTH}}
    )
    weights, before = finetune(folder, start, tmp_path / "out", settings), load_file(start / "model.safetensors")
    for name, weight in weights.items():
        own = before[name]
        # the model's own units come first and are as they were
        assert torch.equal(weight[tuple(slice(size) for size in own.shape)], own)
        assert (weight.shape == own.shape) == ("fc1" not in name and not name.endswith("fc2.weight"))
    measured = read_json(tmp_path / "out/training.json")["adapter"]["merged"]
    assert measured["nats_before"] == pytest.approx(measured["nats_after"], abs=1e-4)
    added = load_file(tmp_path / "out/adapter/weights.safetensors")
    assert torch.equal(added["model.encoder.layers.0.fc1.beside.weight"], weights["model.encoder.layers.0.fc1.weight"][-WIDTH:])
    assert "has the model with them in it" in (tmp_path / "out/adapter/README.md").read_text(encoding="utf-8")
    assert AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "out/model").config.encoder_ffn_dim == 64 + WIDTH
    convert(tmp_path / "out/model", load_codec(tmp_path / "out/model"), tmp_path / "fast")
    assert (tmp_path / "fast/model.bin").exists()


def test_modules_as_wide_as_the_model_keep_their_last_layer():
    shape = {"d_model": 16, "vocab_size": 50, "encoder_layers": 1, "decoder_layers": 1, "max_position_embeddings": 32}
    shape |= {f"{half}_{name}": size for half in ("encoder", "decoder") for name, size in (("ffn_dim", 16), ("attention_heads", 2))}
    network = MBartForConditionalGeneration(MBartConfig(**shape))
    before = scores(network)
    adapted = adapt(network, {"kind": "bottleneck", "width": WIDTH}, 1)
    assert torch.allclose(scores(network), before, atol=1e-5)
    assert torch.allclose(scores(merge(adapted)), before, atol=1e-5) and network.config.encoder_ffn_dim == 16 + WIDTH


def test_a_family_without_a_setting_for_the_width_is_refused(tmp_path):
    network = load_network(tiny_encoder(tmp_path, "deberta"), "text", dropout=0.0, attention_dropout=0.0, seed=1)
    with pytest.raises(InputError, match=r"adapter: bottleneck: .* no setting for the width of its feed-forward modules; take lora"):
        adapt(network, {"kind": "bottleneck"}, 1)
