"""Networks that no entry of the registry describes: what is found out of them, and that they work from rows to heads."""

import json

import pytest
import torch
from test_t5_heads import LABELS, read_by
from tiny_decoders import SHAPE
from tiny_encoders import ENCODERS, INNER, WIDTH, tiny_encoder
from tiny_models import manual_pairs
from transformers import (
    CONFIG_MAPPING,
    AutoConfig,
    AutoModel,
    AutoModelForSequenceClassification,
    AutoTokenizer,
    BertConfig,
    BertModel,
)

from workflow_scripts import registry
from workflow_scripts.evidence.spectra import weights_of
from workflow_scripts.evidence.states import hidden_states, open_half, pooled
from workflow_scripts.models.batches import collate
from workflow_scripts.models.networks import (
    dropouts_of,
    last_states,
    layers_of,
    load_network,
    matrices_in,
    output_layer,
    places_of_matrices,
    save_model,
)
from workflow_scripts.models.recognition import family_of, longest_row
from workflow_scripts.models.structure import attention_window, matrices_of, place_of_layers
from workflow_scripts.models.tokenisation import load_codec
from workflow_scripts.stage import InputError
from workflow_scripts.tasks.head_model import Reader
from workflow_scripts.tasks.labelling import WordReader
from workflow_scripts.text.examples import Example

FRAMES = {
    "e5": ("cls", "text", "sep"),
    "deberta": ("cls", "text", "sep"),
    "modernbert": ("cls", "text", "sep"),
    "mmbert": ("bos", "text", "eos"),
    "rembert": ("cls", "text", "sep"),
    "eurobert": ("bos", "text", "eos"),
}


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """A tiny model of each kind."""
    return {kind: tiny_encoder(tmp_path_factory.mktemp(kind), kind) for kind in ENCODERS}


@pytest.mark.parametrize("kind", ENCODERS)
def test_what_an_encoder_is_made_of_is_found_out(models, kind):
    folder = models[kind]
    codec, config = load_codec(folder), AutoConfig.from_pretrained(folder)
    assert codec.form.label == ("BERT" if kind == "e5" else "encoder") and not codec.form.decoder
    assert family_of(folder).reported == config.model_type
    assert codec.row == FRAMES[kind]
    text = "Öffnen Sie das Menü."
    assert codec.encode([text], "de") == [AutoTokenizer.from_pretrained(folder)(text)["input_ids"]]
    assert longest_row(config) == 128
    half = open_half(kind, folder)
    assert (half.depth, half.width) == (2, WIDTH)
    weights = weights_of(half)
    keys = WIDTH // 2 if kind == "eurobert" else WIDTH
    gate = {"Gate": (INNER, WIDTH)} if kind in ("modernbert", "mmbert", "eurobert") else {}
    shapes = {
        "K": (keys, WIDTH),
        "Q": (WIDTH, WIDTH),
        "V": (keys, WIDTH),
        "Out": (WIDTH, WIDTH),
        "FC1": (INNER, WIDTH),
        "FC2": (WIDTH, INNER),
    }
    assert {name: tuple(weights[1, name].shape) for layer, name in weights if layer == 1} == shapes | gate
    network = load_network(folder, "text", dropout=0.25, attention_dropout=0.125, seed=1)
    rest, attention, _ = dropouts_of(codec.form, config)
    assert len(rest) == {"modernbert": 2, "mmbert": 2, "eurobert": 0}.get(kind, 1) and len(attention) == 1
    assert [getattr(network.config, name) for name in (*rest, *attention)] == [*[0.25] * len(rest), 0.125]


def test_matrices_that_are_one_in_a_model_are_taken_apart(models):
    network = AutoModel.from_pretrained(models["modernbert"])
    layer = network.layers[0]
    found = matrices_of(layer, network.config)
    assert torch.equal(torch.cat([found[name] for name in "QKV"]), layer.attn.Wqkv.weight)
    # the half that goes through the activation comes first
    states = torch.randn(1, 3, WIDTH)
    with torch.no_grad():
        by_hand = torch.nn.functional.gelu(states @ found["Gate"].T) * (states @ found["FC1"].T) @ found["FC2"].T
        assert torch.allclose(layer.mlp.eval()(states), by_hand, atol=1e-6)


@pytest.mark.parametrize("kind", ENCODERS)
def test_padding_changes_nothing_and_states_are_those_of_transformers(models, kind):
    half = open_half(kind, models[kind])
    rows = half.codec.encode([manual_pairs(1)[0][0], "Öffnen Sie"], "de", 100)
    both, (first, second) = hidden_states(half, rows), (hidden_states(half, [row]) for row in rows)
    for at, alone in enumerate((first, second)):
        assert torch.allclose(both[:, at, : len(rows[at])], alone[:, 0], atol=1e-4)
    assert pooled(half, rows, ["text", "first"], 1000).shape == (2, 3, 2, WIDTH)


@pytest.mark.parametrize("kind", ENCODERS)
def test_guesses_are_the_output_layer_of_what_it_multiplies(models, kind):
    network = load_network(models[kind], "text", dropout=0.0, attention_dropout=0.0, seed=1).eval()
    codec = load_codec(models[kind])
    batch = collate([(row, row) for row in codec.encode(manual_pairs(2)[0], "de", 100)], codec.pad, decoder=False)
    del batch["labels"]
    with torch.no_grad():
        states = last_states(network, **batch)
        weight, bias = output_layer(network)
        assert torch.allclose(states @ weight.T + bias, network(**batch).logits, atol=1e-4)


def learns(network, reader, rows):
    """Two updates change the loss of what is learnt."""
    network.train()
    optimizer = torch.optim.AdamW(network.parameters(), 1e-2)
    losses = []
    for _ in range(3):
        batch = reader.collate(rows)
        labels = batch.pop("labels")
        loss = torch.nn.functional.cross_entropy(network(**batch).logits.flatten(0, -2), labels.flatten())
        losses.append(float(loss))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert len({*losses}) == 3 and torch.tensor(losses).isfinite().all()


@pytest.mark.parametrize("kind", ENCODERS)
def test_heads_learn_are_saved_and_opened_again(models, kind, tmp_path):
    shared, trained = {"dropout": 0.1, "attention_dropout": 0.1, "seed": 1}, {}
    for head in ("classification", "labelling", "answering"):
        network = trained[head] = load_network(models[kind], head, **shared, labels=None if head == "answering" else LABELS)
        reader, rows = read_by(head, models[kind])
        learns(network, reader, rows)
        save_model(network, reader.tokenizer, tmp_path / head)
        # without new weights: all are in the folder
        again = load_network(tmp_path / head, head, **shared, new_head=False).state_dict()
        assert all(torch.equal(weight, again[name]) for name, weight in network.state_dict().items())
    opened = AutoModelForSequenceClassification.from_pretrained(tmp_path / "classification")
    assert type(opened) is type(trained["classification"]) and opened.config.id2label == dict(enumerate(LABELS))
    assert isinstance(AutoModel.from_pretrained(tmp_path / "answering"), type(trained["answering"].base_model))


def test_words_are_cut_as_behind_a_blank_where_that_makes_a_difference(models):
    for kind, blank in (("e5", ""), ("modernbert", " "), ("mmbert", " "), ("rembert", "")):
        reader = WordReader(models[kind], 64)
        (pieces,) = reader.pieces([Example("X X", "Menü öffnen", "")])
        assert pieces == reader.codec.pieces([f"{blank}Menü", f"{blank}öffnen"], 64), kind
        assert len({tuple(ids) for ids in reader.codec.pieces(["öffnen", " öffnen"], 64)}) == 1 + bool(blank)


def test_only_texts_that_the_tokenizer_tells_apart_have_types(models, tmp_path):
    assert not Reader(models["e5"], 64).has_types
    assert not Reader(models["modernbert"], 64).has_types
    assert Reader(models["rembert"], 64).has_types


OTHER_DECODERS = {
    "phi3": ({}, "K Q V Out Gate FC1 FC2"),
    "phi": ({}, "K Q V Out FC1 FC2"),
    "opt": ({"ffn_dim": 64, "word_embed_proj_dim": 32}, "K Q V Out FC1 FC2"),
    "gpt2": ({"n_inner": 64, "num_key_value_heads": None}, "K Q V Out FC1 FC2"),
    "gpt_neox": ({}, "its matrix K is not found among attention.query_key_value"),
    "qwen2_moe": ({"num_experts": 2, "shared_expert_intermediate_size": 16}, "it has several matrices of a kind"),
    "mixtral": ({"num_local_experts": 2}, "its matrix FC1 is not found"),
}
"""`model_type` → settings of its own, and what is found in a layer or why nothing is."""


@pytest.mark.parametrize("kind", OTHER_DECODERS)
def test_of_a_decoder_that_is_no_llama_layers_and_matrices_are_found_or_it_is_refused(kind):
    own, found = OTHER_DECODERS[kind]
    ids = {"vocab_size": 20, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
    network, form = AutoModel.from_config(CONFIG_MAPPING[kind](**{**SHAPE, **own, **ids})), registry.entry("family", "decoder")
    layers = layers_of(network, form)
    assert len(layers) == 2
    with pytest.raises(InputError, match=r"its matrix .* is not where a decoder has it; a plugin can bring its family"):
        places_of_matrices(layers[0], form)
    if not found.startswith("K Q"):
        with pytest.raises(InputError, match=f"{found}.*; a plugin can bring its family"):
            matrices_in(network, layers[0], form)
        return
    matrices = matrices_in(network, layers[0], form)
    assert " ".join(matrices) == found and matrices["FC2"].shape == (32, 64)
    if kind == "phi3":
        whole = torch.cat([matrices[name] for name in ("Q", "K", "V")]), torch.cat([matrices[name] for name in ("Gate", "FC1")])
        assert all(map(torch.equal, whole, (layers[0].self_attn.qkv_proj.weight, layers[0].mlp.gate_up_proj.weight)))


@pytest.mark.parametrize(
    ("kind", "rest", "attention"),
    [
        ("llama", (), ("attention_dropout",)),
        ("opt", ("dropout",), ("attention_dropout",)),
        ("phi", ("resid_pdrop", "embd_pdrop"), ("attention_dropout",)),
        ("gpt2", ("resid_pdrop", "embd_pdrop"), ("attn_pdrop",)),
    ],
)
def test_a_decoder_takes_the_dropout_of_the_settings_whatever_it_calls_it(kind, rest, attention):
    found = dropouts_of(registry.entry("family", "decoder"), CONFIG_MAPPING[kind]())
    assert ({*found.rest}, found.attention) == ({*rest}, attention)


def test_what_is_built_in_another_way_is_refused():
    config = BertConfig(hidden_size=8, num_hidden_layers=1, num_attention_heads=1, intermediate_size=8, vocab_size=10)
    network = BertModel(config)
    with pytest.raises(InputError, match=r"BertModel: has 0 lists of 3 layers, so its layers are not found; a plugin can bring its family"):
        network.config.num_hidden_layers = 3
        place_of_layers(network)
    with pytest.raises(InputError, match=r"BertOutput: its matrix K is not found among dense; a plugin"):
        matrices_of(network.encoder.layer[0].output, config)


def test_models_that_write_are_no_encoders(tmp_path):
    for config in (
        {"model_type": "mistral", "architectures": ["MistralModel"]},
        {"model_type": "pegasus", "architectures": ["PegasusModel"]},
    ):
        (tmp_path / "config.json").write_text(json.dumps(config))
        try:
            assert family_of(tmp_path).name != "encoder"
        except InputError as error:
            assert "none that Crossgap knows" in str(error)


@pytest.mark.parametrize(
    ("kind", "settings", "window"),
    [
        ("gemma3_text", {"num_hidden_layers": 2, "layer_types": ["sliding_attention", "full_attention"], "sliding_window": 64}, 64),
        ("gemma3_text", {"num_hidden_layers": 1, "layer_types": ["full_attention"], "sliding_window": 64}, None),
        ("mistral", {"sliding_window": 64}, 64),
        ("mistral", {"sliding_window": None}, None),
        ("qwen2", {"use_sliding_window": False, "sliding_window": 64}, None),
        ("modernbert", {"local_attention": 128}, 64),
        ("bert", {}, None),
    ],
)
def test_the_window_of_the_attention_is_read_from_the_configuration(kind, settings, window):
    assert attention_window(CONFIG_MAPPING[kind](**settings)) == window
