"""Models whose vocabulary or output layer is not as usual are trained and decoded like others, or refused with the reason."""

import shutil
from dataclasses import replace

import pytest
import torch
from ctranslate2 import Translator
from phases import TINY, assert_same, finetune, phase_files
from safetensors.torch import load_file
from test_checkpoints import stopped_after
from tiny_models import manual_pairs, small_model
from transformers import AutoModelForSeq2SeqLM

from workflow_scripts.models import decoding, engines
from workflow_scripts.models.decoding import Decoding
from workflow_scripts.models.tokenisation import load_codec
from workflow_scripts.models.trimming import trim
from workflow_scripts.stage import InputError, read_json
from workflow_scripts.text.files import read_lines
from workflow_scripts.training.loop import load_model
from workflow_scripts.training.settings import Training

SETTINGS = Training(**{**TINY, "updates": 40, "evaluate_every": 20, "warmup_updates": 5, "checkpoint": "last", "label_smoothing": 0.1})


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    folder = tmp_path_factory.mktemp("text")
    phase_files(folder)
    return folder


def decoded(text, model, engine="ctranslate2"):
    settings = Decoding(beam_size=2, max_length=20, engine=engine, compute_type="float32")
    decoding.main(model, text / "dev.de", model / "hyp", languages=("de", "en"), threads=1, settings=settings)
    return list(read_lines(model / "hyp"))


@pytest.mark.parametrize("family", ["cc25", "mbart50", "nllb", "m2m100", "bart"])
def test_rows_without_a_piece_do_not_change_training(text, tmp_path, family):
    start = small_model(tmp_path, family)
    padded = shutil.copytree(start, tmp_path / "padded")
    network = AutoModelForSeq2SeqLM.from_pretrained(start)
    rows = len(network.get_input_embeddings().weight)
    network.resize_token_embeddings(rows + 1, pad_to_multiple_of=64)
    network.save_pretrained(padded)
    assert len(network.get_input_embeddings().weight) > rows
    few = replace(SETTINGS, updates=10, evaluate_every=10)
    assert_same(*(finetune(text, folder, tmp_path / f"out-{folder.name}", few) for folder in (start, padded)))


@pytest.fixture(scope="module", params=["mbart", "nllb", "bart"])
def own(request, text, tmp_path_factory):
    """A model whose output layer has weights of its own (`tie_word_embeddings: false`), and the folder of its training."""
    folder = tmp_path_factory.mktemp(request.param)
    start = small_model(folder, request.param)
    network = AutoModelForSeq2SeqLM.from_pretrained(start)
    network.config.tie_word_embeddings = False
    generator = torch.Generator().manual_seed(1)
    network.lm_head.weight = torch.nn.Parameter(torch.randn(network.lm_head.weight.shape, generator=generator) / 50)
    network.save_pretrained(start)
    finetune(text, start, folder / "out", SETTINGS)
    return start, folder / "out"


def test_an_output_layer_of_its_own_is_trained(own):
    """transformers opens what was written without anything of ours."""
    before = load_model(own[0], Training(), 1)
    found, read = AutoModelForSeq2SeqLM.from_pretrained(own[1] / "model", output_loading_info=True)
    assert not read["missing_keys"] and not read["unexpected_keys"]
    body = found.base_model
    assert not torch.allclose(found.lm_head.weight, before.lm_head.weight)
    assert not torch.allclose(body.shared.weight, before.base_model.shared.weight)
    assert not torch.allclose(found.lm_head.weight, body.shared.weight)
    assert torch.equal(body.shared.weight, body.encoder.embed_tokens.weight)
    assert torch.equal(body.shared.weight, body.decoder.embed_tokens.weight)


def test_both_losses_train_it_alike(own, text, tmp_path):
    chunked, plain = (finetune(text, own[0], tmp_path / loss, replace(SETTINGS, updates=5, loss=loss)) for loss in ("chunked", "plain"))
    assert_same(chunked, plain)


def test_its_training_goes_on_from_a_checkpoint(own, text, tmp_path, monkeypatch):
    whole = load_file(own[1] / "model/model.safetensors")
    with stopped_after(15, monkeypatch):
        finetune(text, own[0], tmp_path, SETTINGS)
    assert_same(whole, finetune(text, own[0], tmp_path, SETTINGS))


def test_trimmed_it_says_what_it_said(own, tmp_path):
    model = own[1] / "model"
    codec, network = load_codec(model), load_model(model, Training(), 1).eval()
    whole = load_model(model, Training(), 1).eval()
    trimmed, _ = trim(network, codec, manual_pairs(20)[0], tmp_path / "trimmed")
    kept = codec.tokenizer.convert_tokens_to_ids(trimmed.tokenizer.convert_ids_to_tokens(range(len(trimmed.tokenizer))))
    assert len(kept) < len(codec.tokenizer)
    ids, new = (torch.tensor(each.encode(manual_pairs(1)[0], "de")) for each in (codec, trimmed))
    before = whole(input_ids=ids, decoder_input_ids=ids).logits[..., kept]
    assert network.lm_head.weight is not network.base_model.shared.weight
    assert torch.allclose(before, network(input_ids=new, decoder_input_ids=new).logits, atol=1e-5)


def test_both_engines_give_each_piece_the_same_probability_by_it(own, tmp_path):
    model = own[1] / "model"
    codec, network = load_codec(model), load_model(model, Training(), 1).eval()
    engines.convert(model, codec, tmp_path / "fast")
    fast = Translator(str(tmp_path / "fast"), compute_type="float32")
    tokenizer, tag = codec.tokenizer, codec.tag("en")
    german, english = manual_pairs(10)
    for source, target in zip(codec.encode(german, "de", 60), codec.pieces(english, 30), strict=True):
        row = [*([tokenizer.eos_token_id] if codec.form.starts_with_end else []), tag, *target]
        logits = network(input_ids=torch.tensor([source]), decoder_input_ids=torch.tensor([row])).logits[0].log_softmax(-1)
        wanted = logits[torch.arange(-len(target) - 1, 0), [*target, tokenizer.eos_token_id]]
        pieces = (tokenizer.convert_ids_to_tokens(ids) for ids in (source, [tag, *target]))
        (found,) = fast.score_batch(*([each] for each in pieces))
        assert torch.allclose(torch.tensor(found.log_probs[-len(wanted) :]), wanted, atol=1e-3)


def test_both_engines_write_as_much_as_they_may_by_it(own, text):
    """It has learnt too little to end a sentence; `generate` would put `</s>` in the last place, as mBART's own settings say."""
    fast, slow = (decoded(text, own[1] / "model", engine) for engine in ("ctranslate2", "huggingface"))
    assert len(fast) == 30 and sum(a == b for a, b in zip(fast, slow, strict=True)) > 27


def test_text_in_a_script_that_the_vocabulary_lacks_is_not_trained_on(text, tmp_path):
    start, russian = small_model(tmp_path), list(read_lines("resources/parallel-ud/pud.ru.txt.xz"))
    few = replace(SETTINGS, updates=2, evaluate_every=2)
    finetune(text, start, tmp_path / "good", few)
    said = read_json(tmp_path / "good/training.json")["unknown"]
    assert set(said) == {"de", "en"} and said["de"]["share"] < 0.01
    folder = shutil.copytree(text, tmp_path / "text")
    (folder / "train.de").write_text("".join(f"{line}\n" for line in russian[:170]), encoding="utf-8")
    with pytest.raises(InputError, match=r"train\.de: \d\d% of the pieces of the German text are unknown, as '«Если', .*; take a model"):
        finetune(folder, start, tmp_path / "bad", few)
