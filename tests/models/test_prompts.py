"""A frozen encoder with prompts: what is the plain model, what has gradients, what padding may not change."""

import json

import pytest
import torch
from safetensors.torch import save_file
from tiny_encoders import tiny_encoder
from tiny_models import small_encoder, small_model
from transformers import AutoModelForMaskedLM, XLMRobertaConfig

from workflow_scripts.models import refining
from workflow_scripts.models.networks import load_network
from workflow_scripts.models.prompt_files import load_generator, make_generator, read_prompts
from workflow_scripts.models.prompts import PromptedEncoder, save_prompts
from workflow_scripts.models.sga import SGA
from workflow_scripts.models.tokenisation import load_codec
from workflow_scripts.stage import InputError

SOURCES = [[0, 20, 31, 42, 53, 2], [0, 60, 71, 2]]
TARGETS = [[30, 30, 41], [52, 63, 74]]


@pytest.fixture(scope="module", params=["xlm-roberta", "bert"])
def folder(request, tmp_path_factory):
    return small_encoder(tmp_path_factory.mktemp(request.param), request.param)


def generator(folder, settings, frozen=True):
    encoder = load_network(folder, "text", dropout=0.0, attention_dropout=0.0, seed=1)
    codec = load_codec(folder)
    blank = settings.blank if settings.blank in codec.tokenizer.get_vocab() else codec.tokenizer.cls_token or codec.tokenizer.bos_token
    settings.blank = blank
    return make_generator(encoder, codec, settings, frozen, where=str(folder)).eval()


def batch(rows, targets, pad):
    padded = torch.nn.utils.rnn.pad_sequence
    ids = padded([torch.tensor(row) for row in rows], batch_first=True, padding_value=pad)
    mask = padded([torch.ones(len(row), dtype=torch.long) for row in rows], batch_first=True)
    return {"input_ids": ids, "attention_mask": mask, "targets": torch.tensor(targets)}


def other_encoder(folder, kind):
    """An encoder that no entry of the registry names: a RoBERTa, or one of `tiny_encoders`."""
    if kind != "roberta":
        return tiny_encoder(folder, kind)
    model = small_encoder(folder, "xlm-roberta")
    config = json.loads((model / "config.json").read_text()) | {"model_type": "roberta", "architectures": ["RobertaForMaskedLM"]}
    (model / "config.json").write_text(json.dumps(config))
    return model


@pytest.mark.parametrize(("kind", "differs"), [("roberta", True), ("modernbert", True), ("xlm-roberta", False), ("bert", False)])
def test_prompts_of_an_older_version_are_refused_where_it_read_an_encoder_otherwise(tmp_path, kind, differs):
    folder = small_encoder(tmp_path, kind) if kind in ("xlm-roberta", "bert") else other_encoder(tmp_path, kind)
    model, codec, path = generator(folder, SGA(prompt_length=2, denoising=False)), load_codec(folder), tmp_path / "prompts.safetensors"
    save_prompts(model, path)
    assert load_generator(folder, codec, path).sees == model.sees

    weights, metadata = read_prompts(path)
    del metadata["sees"]
    save_file(weights, path, metadata={"format": "pt", "crossgap": json.dumps(metadata)})
    if differs:
        with pytest.raises(InputError, match=r"counted the positions .* in another way.*train it again"):
            load_generator(folder, codec, path)
    else:
        load_generator(folder, codec, path)


@pytest.mark.parametrize("kind", ["roberta", "modernbert", "mmbert"])
def test_positions_and_windows_of_other_encoders_are_their_own(tmp_path, kind):
    folder = other_encoder(tmp_path, kind)
    model = generator(folder, SGA(prompt_length=0, denoising=False))
    plain = AutoModelForMaskedLM.from_pretrained(folder).eval()
    for weight, same in zip(model.encoder.parameters(), plain.parameters(), strict=True):
        same.data = torch.nn.init.normal_(weight, std=0.3).detach()
    ids, mask = torch.arange(60, 100).reshape(2, 20), torch.ones(2, 20, dtype=torch.long)
    ids[1, 15:], mask[1, 15:] = plain.config.pad_token_id, 0
    wanted = plain(input_ids=ids, attention_mask=mask, output_hidden_states=True)
    guide = model.encode(ids, mask)
    for (keys, _), states in zip(guide.prefix, wanted.hidden_states[1:], strict=True):
        found = keys.transpose(1, 2).flatten(2)
        assert torch.allclose(found[mask.bool()], model.project_keys(states)[mask.bool()], atol=1e-4)
    # all of a source is seen, however far away
    keys = [keys for keys, _ in guide.prefix]
    for moved in torch.autograd.grad(model.align(guide, ids, mask)[0, -1].square().sum(), keys, retain_graph=True):
        assert moved[0].any(dim=2).all()
    sum(model(ids, mask, torch.tensor(TARGETS)).values()).backward()
    assert all(weight.grad.isfinite().all() for weight in model.trained().values())


@pytest.mark.parametrize("kind", ["deberta", "rembert", "eurobert"])
def test_encoders_that_do_not_read_prompts_are_refused(tmp_path, kind):
    """A RemBERT takes no keys from outside, and a EuroBERT with fewer keys than queries none for each query."""
    with pytest.raises(InputError, match=r"model: SGA and CTC put keys .* model of type (deberta-v2|rembert|eurobert) does not read them"):
        generator(tiny_encoder(tmp_path, kind), SGA(prompt_length=2))


def test_without_prompts_each_unit_is_the_plain_model(folder):
    model = generator(folder, SGA(prompt_length=0))
    plain = AutoModelForMaskedLM.from_pretrained(folder).eval()
    given = batch(SOURCES, TARGETS, plain.config.pad_token_id)
    ids, mask = given["input_ids"], given["attention_mask"]
    wanted = plain(input_ids=ids, attention_mask=mask, output_hidden_states=True)
    guide = model.encode(ids, mask)
    for (keys, values), states in zip(guide.prefix, wanted.hidden_states[1:], strict=True):
        for side, project in ((keys, model.project_keys), (values, model.project_values)):
            assert torch.allclose(side.transpose(1, 2).flatten(2)[mask.bool()], project(states)[mask.bool()], atol=1e-5)
    # a guide of no positions, too
    nothing = guide._replace(prefix=[(k[:, :, :0], v[:, :, :0]) for k, v in guide.prefix], mask=guide.mask[:, :0])
    weight, bias = model.output_layer()
    for unit in (model.align, model.denoise):
        scores = unit(nothing, ids, mask) @ weight.T + bias
        assert torch.allclose(scores[mask.bool()], wanted.logits[mask.bool()], atol=1e-4)


def test_the_scale_of_a_prompt_is_at_least_one(folder):
    model = generator(folder, SGA(prompt_length=2))
    found = {}
    for scale in (0.5, 1.0, 2.0):
        with torch.no_grad():
            model.scales["encoding"].fill_(scale)
        found[scale] = model.prefix("encoding", 1)[0][0]
    assert torch.equal(found[0.5], found[1.0]) and torch.allclose(found[2.0], 2 * found[1.0])


@pytest.mark.parametrize("alignment", ["ctc", "mask_predict"])
def test_gradients_reach_prompts_and_projections_only(folder, alignment):
    model = generator(folder, SGA(prompt_length=3, alignment=alignment)).train()
    torch.manual_seed(1)
    sum(model(**batch(SOURCES, TARGETS, 1)).values()).backward()
    reached = {name for name, weight in model.named_parameters() if weight.grad is not None and weight.grad.abs().sum() > 0}
    wanted = {f"{part}.{unit}" for part in ("prompts", "scales") for unit in ("encoding", "alignment", "denoising")}
    # a key's bias moves no attention weight, as all keys of a source are moved alike: it has a gradient through the prompts beside them
    wanted |= {f"project_{side}.{kind}" for side in ("keys", "values") for kind in ("weight", "bias")}
    wanted |= {"length.weight", "length.bias"} if alignment == "mask_predict" else set()
    assert reached == wanted == model.trained().keys() == model.state_dict().keys()


def test_the_denoisers_loss_leaves_a_detached_guide_as_it_is(folder):
    reached = {}
    for guide in ("shared", "detached"):
        model = generator(folder, SGA(prompt_length=3, guide=guide)).train()
        torch.manual_seed(1)
        model(**batch(SOURCES, TARGETS, 1))["denoising"].backward()
        reached[guide] = {name for name, weight in model.named_parameters() if weight.grad is not None and weight.grad.any()}
    own = {"prompts.denoising", "scales.denoising"}
    assert reached["detached"] == own < reached["shared"] and "project_values.weight" in reached["shared"]


def test_the_length_is_guessed_from_the_mean_state_or_from_the_first(folder):
    plain = AutoModelForMaskedLM.from_pretrained(folder).eval()
    given = batch(SOURCES, TARGETS, plain.config.pad_token_id)
    ids, mask = given["input_ids"], given["attention_mask"]
    states = plain.base_model(input_ids=ids, attention_mask=mask).last_hidden_state
    found = {
        chosen: generator(folder, SGA(prompt_length=0, alignment="mask_predict", length_from=chosen)).encode(ids, mask).summary
        for chosen in ("mean", "first")
    }
    assert torch.allclose(found["first"], states[:, 0], atol=1e-5)
    assert torch.allclose(found["mean"][1], states[1, : len(SOURCES[1])].mean(0), atol=1e-5)


def test_a_sources_padding_changes_nothing(folder):
    model = generator(folder, SGA(prompt_length=3))
    pad = model.config.pad_token_id
    together = model(**batch(SOURCES, TARGETS, pad))
    alone = [model(**batch([row], [target], pad)) for row, target in zip(SOURCES, TARGETS, strict=True)]
    for name, loss in together.items():
        assert loss.item() == pytest.approx(sum(each[name].item() for each in alone), abs=1e-3)


@pytest.mark.parametrize(
    ("size", "denoising", "wanted"), [("base", True, 8_259_075), ("base", False, 5_899_778), ("large", True, 20_973_571)]
)
def test_as_many_weights_are_trained_as_were_published(size, denoising, wanted):
    shapes = {
        "base": {},
        "large": {"hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16, "intermediate_size": 4096},
    }
    shape = XLMRobertaConfig(vocab_size=250_002, max_position_embeddings=514, type_vocab_size=1, **shapes[size])
    with torch.device("meta"):
        generator = PromptedEncoder(AutoModelForMaskedLM.from_config(shape), SGA(denoising=denoising), 0, 0, refining.losses)
    assert sum(weight.numel() for weight in generator.trained().values()) == wanted


def test_bad_models_and_settings_are_refused(folder, tmp_path):
    codec, encoder = load_codec(folder), load_network(folder, "text", dropout=0.0, attention_dropout=0.0, seed=1)
    with pytest.raises(InputError, match=r"67 is more than the (\d\d) positions of here; set it to \1 at most"):
        make_generator(encoder, codec, SGA(prompt_length=67, blank=codec.tokenizer.cls_token), where="here")
    with pytest.raises(InputError, match=r"no piece '▁▁▁' .* set sga.blank: '(<s>|\[CLS\])'"):
        make_generator(encoder, codec, SGA(prompt_length=2, blank="▁▁▁"), where="here")
    codec.tokenizer.mask_token = None
    with pytest.raises(InputError, match="no mask token"):
        make_generator(encoder, codec, SGA(prompt_length=2), where="here")
    decoder = small_model(tmp_path)
    network = load_network(decoder, "text", dropout=0.0, attention_dropout=0.0, seed=1)
    with pytest.raises(InputError, match="mBART, which has a decoder"):
        make_generator(network, load_codec(decoder), SGA(), where="here")


def test_all_weights_are_trained_where_the_encoder_is_not_frozen(folder):
    model = generator(folder, SGA(prompt_length=0, denoising=False), frozen=False)
    assert isinstance(model, PromptedEncoder) and model.trained().keys() == {name for name, _ in model.named_parameters()}
    assert not model.prompts and set(model.state_dict()) == set(model.trained())


def test_in_half_precision_no_keys_are_carried_in_float32(folder):
    model = generator(folder, SGA(prompt_length=3))
    given = batch(SOURCES, TARGETS, 1)
    with torch.autocast("cpu", torch.bfloat16):
        guide = model.encode(given["input_ids"], given["attention_mask"])
        prefix = model._inputs(given["input_ids"], given["attention_mask"], model.prefix("alignment", 2), guide)["prefix"]
    assert {side.dtype for layer in (*guide.prefix, *prefix) for side in layer} == {torch.bfloat16}
