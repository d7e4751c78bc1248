"""The table of families, and how a model's family is found."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import ctranslate2
import pytest
import torch
from phases import TINY, finetune, phase_files
from tiny_decoders import small_decoder
from tiny_models import manual_pairs, small_encoder, small_model, small_mt5
from transformers import AutoConfig
from transformers.convert_slow_tokenizer import MBART50_LANGUAGES, MBART_LANGUAGES
from transformers.models.m2m_100 import tokenization_m2m_100
from transformers.models.nllb.tokenization_nllb import FAIRSEQ_LANGUAGE_CODES

from workflow_scripts import plugins, registry
from workflow_scripts.evidence.representation import sentence_vectors
from workflow_scripts.evidence.states import hidden_states, open_half
from workflow_scripts.models import decoding
from workflow_scripts.models.batches import collate
from workflow_scripts.models.decoding import Decoding, translator
from workflow_scripts.models.engines import convert
from workflow_scripts.models.family import family
from workflow_scripts.models.networks import load_network
from workflow_scripts.models.recognition import UNLIMITED, decoder_depth, family_of, longest_row
from workflow_scripts.models.tokenisation import load_codec
from workflow_scripts.models.trimming import trim
from workflow_scripts.stage import InputError, read_json
from workflow_scripts.text.languages import LANGUAGES
from workflow_scripts.training.rows import Dev
from workflow_scripts.training.settings import Training
from workflow_scripts.training.validation import dev_loss

PLUGIN = Path("examples/plugins/umt5.py").resolve()

MADE = {
    "mbart": "mbart",
    "cc25": "mbart",
    "mbart50": "mbart50",
    "nllb": "m2m100",
    "m2m100": "m2m100",
    "bert": "mbert",
    "xlm-roberta": "xlmr",
    "bart": "bart",
    "mt5": "mt5",
    "gemma3_text": "decoder",
    "bloom": "bloom",
}


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """A tiny model of each family."""
    make = {kind: small_encoder if kind in ("bert", "xlm-roberta") else small_model for kind in MADE}
    make |= {"mt5": small_mt5, "gemma3_text": small_decoder, "bloom": small_decoder}
    return {kind: make[kind](tmp_path_factory.mktemp(kind), kind) for kind in MADE}


def test_each_model_has_its_family_and_what_the_table_says_of_it(models):
    # `encoder` is for models that are found out (test_structure.py)
    assert set(MADE.values()) == {name for name, one in registry.entries("family").items() if not one.plugin} - {"encoder"}
    for kind, folder in models.items():
        family = family_of(folder)
        assert family.name == MADE[kind]
        config = AutoConfig.from_pretrained(folder)
        assert all(hasattr(config, name) for name in filter(None, (*family.dropout, *family.off, *family.size.values())))
        longest = {"xlm-roberta": 64, "mt5": UNLIMITED, "bloom": UNLIMITED}
        assert longest_row(config) == (longest.get(kind) or config.max_position_embeddings)
        assert bool(decoder_depth(config)) == family.decoder
        for head in family.heads:
            if (kind, head) == ("gemma3_text", "labelling"):
                with pytest.raises(InputError, match=r"transformers has no head for labelling on models of type gemma3_text"):
                    load_network(folder, head, dropout=0.25, attention_dropout=0.125, seed=1, labels=["a", "b"])
                continue
            labels = None if head == "text" else ["a", "b"]
            network = load_network(folder, head, dropout=0.25, attention_dropout=0.125, seed=1, labels=labels)
            wanted = [share for name, share in zip(family.dropout, (0.25, 0.125), strict=True) if name]
            assert [getattr(network.config, name) for name in family.dropout if name] == wanted


def test_a_model_of_no_known_family_is_refused_with_the_nearest(tmp_path):
    for told, near in (({"model_type": "m2m_10"}, "the nearest that is known is m2m_100"), ({}, "none that Crossgap knows")):
        (tmp_path / "config.json").write_text(json.dumps(told))
        with pytest.raises(InputError, match=near):
            family_of(tmp_path)
    for broken in ("{", "[]"):
        (tmp_path / "config.json").write_text(broken)
        with pytest.raises(InputError, match=r"config\.json: cannot be read"):
            family_of(tmp_path)


def test_a_head_that_a_family_lacks_is_refused(models, monkeypatch):
    known = registry._ENTRIES["family"]
    monkeypatch.setitem(known, "m2m100", replace(known["m2m100"], heads={"text": "AutoModelForSeq2SeqLM"}))
    with pytest.raises(
        InputError, match=r"M2M-100 or NLLB, which has no head for classification; those that have one: mBART-50, mBART, XLM-R"
    ):
        load_network(models["nllb"], "classification", dropout=0.1, attention_dropout=0.1, seed=1)


def test_tags_of_languages_are_the_models_own():
    # Breton, Frisian and Latin are unknown to NLLB, and of some of its languages the table has one of two scripts
    assert {code for code, row in LANGUAGES.items() if not row.nllb} == {"br", "fy", "la"}
    second = {"ace_Arab", "bjn_Arab", "kas_Deva", "knc_Arab", "taq_Tfng", "zho_Hant"}
    assert {row.nllb for row in LANGUAGES.values()} - {""} == set(FAIRSEQ_LANGUAGE_CODES) - second
    # which calls Northern Sotho by another code
    assert set(tokenization_m2m_100.FAIRSEQ_LANGUAGE_CODES["m2m100"]) - set(LANGUAGES) == {"ns"}
    for number, tags in ((25, MBART_LANGUAGES), (50, MBART50_LANGUAGES)):
        assert {row.tag for row in LANGUAGES.values() if row.mbart and row.mbart <= number} == set(tags)


def test_a_language_without_a_tag_is_refused(models):
    with pytest.raises(InputError, match=r"has no tag __br__ for 'br'"):
        load_codec(models["nllb"]).tag("br")


@pytest.fixture
def plugged(monkeypatch):
    """The plugin of the examples with a family, for one test."""
    monkeypatch.setattr(registry, "_ENTRIES", {kind: {**some} for kind, some in registry._ENTRIES.items()})
    monkeypatch.setattr(registry, "_PLUGINS", {})
    plugins.load([str(PLUGIN)])


def works(folder, tmp_path, engines):
    """A model of T5's structure is trained, saved, decoded, looked into and trimmed."""
    text, _ = phase_files(tmp_path)
    finetune(text, folder, tmp_path, Training(**{**TINY, "updates": 2, "evaluate_every": 2, "checkpoint": "last"}))
    model, lines = tmp_path / "model", manual_pairs(12)[0]
    codec = load_codec(model)
    (row,) = codec.encode(lines[:1], "de")
    assert row[-1] == codec.tokenizer.eos_token_id and codec.start == codec.tokenizer.pad_token_id
    found = []
    for engine in engines:
        with translator(model, codec, 1, Decoding(engine=engine, beam_size=2, max_length=12)) as translate:
            found.append([one[0].text for one in translate(lines, ("de", "en"), 1)])
    assert all(one == found[0] for one in found) and len(found[0]) == 12
    network = load_network(model, "text", dropout=0.0, attention_dropout=0.0, seed=1).eval()
    # the loss, transformers and CTranslate2 give a text the same probability
    row, target = codec.encode(lines[:1], "de")[0], codec.encode(manual_pairs(1)[1], "en")[0]
    batch = {name: tensor for name, tensor in collate([(row, target)], 0, True, codec.start).items() if name != "labels"}
    with torch.no_grad():
        scores = network(**batch).logits[0].log_softmax(dim=-1).gather(1, torch.tensor(target)[:, None]).flatten()
    loss = dev_loss(network, codec, [Dev([(row, target)], "en")])
    assert loss == pytest.approx(-float(scores.mean()), abs=1e-4)
    convert(model, codec, tmp_path / "converted")
    converted = ctranslate2.Translator(str(tmp_path / "converted"), compute_type="float32")
    tokens = [codec.tokenizer.convert_ids_to_tokens(ids) for ids in (row, target[:-1])]
    (by_ctranslate2,) = converted.score_batch([tokens[0]], [tokens[1]])
    assert sum(by_ctranslate2.log_probs) == pytest.approx(float(scores.sum()), abs=1e-2)
    vectors = sentence_vectors(network, codec.tokenizer.pad_token_id, codec.encode(lines[:3], "de"))
    assert vectors.shape == (6, 3, 32)  # the embeddings and two layers of each half
    for side in ("encoder", "decoder"):
        half = open_half("model", model, side)
        assert (half.depth, half.width) == (2, 32) and hidden_states(half, [row]).shape == (3, 1, len(row), 32)
    kept, _ = trim(network, codec, lines, tmp_path / "tokenizer")
    assert len(kept.tokenizer) < len(codec.tokenizer) and network.config.vocab_size == len(kept.tokenizer)
    assert kept.tokens(lines) == codec.tokens(lines)


def test_mt5_works_from_its_rows_to_its_hypotheses(models, tmp_path):
    works(models["mt5"], tmp_path, ("huggingface", "ctranslate2"))


def test_a_family_of_a_plugin_works_without_a_change_of_the_code(plugged, tmp_path, capsys):
    (tmp_path / "there").mkdir()
    works(small_mt5(tmp_path, "umt5"), tmp_path / "there", ("huggingface", "ctranslate2"))
    codec = load_codec(tmp_path / "there/model")
    known = registry._ENTRIES["family"]
    known["umt5"] = replace(known["umt5"], engines=("huggingface",))
    assert decoding.engine_for(codec, Decoding()) == "huggingface"
    assert "decoding.engine ctranslate2 does not know umT5; huggingface decodes" in capsys.readouterr().out
    said = read_json(tmp_path / "there/model/config.json")["crossgap"]
    assert said == {"family": "umt5", "plugin": "umt5.py"}


def test_a_model_of_a_plugins_family_names_the_plugin_that_is_missing(tmp_path):
    folder = small_mt5(tmp_path, "umt5")
    config = read_json(folder / "config.json")
    (folder / "config.json").write_text(json.dumps({**config, "crossgap": {"family": "umt5", "plugin": "umt5.py"}}))
    command = [
        "-m",
        "workflow_scripts.models.decoding",
        "--model",
        folder,
        "--source",
        PLUGIN,
        "--hypotheses",
        tmp_path / "out",
        "--languages",
    ]
    run = subprocess.run([sys.executable, *map(str, command), "de", "en"], capture_output=True, text=True, check=False)
    assert run.returncode == 1 and "is a model of the family umt5, which the plugin umt5.py brings; name this plugin" in run.stderr
    assert "Traceback" not in run.stderr


def test_a_family_says_what_it_lacks():
    with pytest.raises(InputError, match=r"family 'new': lacks model_type, row, heads"):
        family("new", label="New")
    with pytest.raises(InputError, match=r"there is no field 'rows'; a family has source, model_type, row,"):
        family("new", label="New", like="mbart", rows=("text",))
    with pytest.raises(InputError, match=r"there is no family 'mbert5'"):
        family("new", label="New", like="mbert5")
