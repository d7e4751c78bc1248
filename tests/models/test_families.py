"""The entries of families, and how a model's family is found."""

import json
from dataclasses import replace
from pathlib import Path

import ctranslate2
import pytest
import torch
import warm
from phases import TINY, finetune, phase_files
from tiny_models import T5_KINDS, manual_pairs, small_model, small_t5
from transformers import AutoConfig, AutoModelForSeq2SeqLM, AutoTokenizer, MambaConfig, MptConfig
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
from workflow_scripts.models.networks import layers_of, load_network, matrices_in
from workflow_scripts.models.offsets import pieces_in_place
from workflow_scripts.models.recognition import UNLIMITED, decoder_depth, family_of, longest_row
from workflow_scripts.models.tokenisation import load_codec, sentinel_ids
from workflow_scripts.models.trimming import trim
from workflow_scripts.stage import InputError, read_json
from workflow_scripts.text.languages import LANGUAGES
from workflow_scripts.training.rows import Dev
from workflow_scripts.training.settings import Training
from workflow_scripts.training.validation import dev_loss

PLUGIN = Path("examples/plugins/mlongt5.py").resolve()

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
    "umt5": "umt5",
    "t5": "t5",
    "t5-1.1": "t5",
    "byt5": "byt5",
    "gemma3_text": "decoder",
    "bloom": "bloom",
    "gpt2": "gpt2",
}


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """A tiny model of each family."""
    return {kind: small_model(tmp_path_factory.mktemp(kind), kind) for kind in MADE}


def test_each_model_has_its_family_and_what_the_table_says_of_it(models):
    # `encoder` is for models that are found out (test_structure.py)
    assert set(MADE.values()) == {name for name, one in registry.entries("family").items() if not one.plugin} - {"encoder"}
    for kind, folder in models.items():
        family = family_of(folder)
        assert family.name == MADE[kind]
        config = AutoConfig.from_pretrained(folder)
        assert all(hasattr(config, name) for name in filter(None, (*family.dropout, *family.off, *family.size.values())))
        longest = {"xlm-roberta": 64, "bloom": UNLIMITED, **dict.fromkeys(T5_KINDS, UNLIMITED)}
        assert longest_row(config) == (longest.get(kind) or config.max_position_embeddings)
        assert bool(decoder_depth(config)) == family.decoder
        for head in family.heads:
            labels = None if head == "text" else ["a", "b"]
            network = load_network(folder, head, dropout=0.25, attention_dropout=0.125, seed=1, labels=labels)
            wanted = [share for name, share in zip(family.dropout, (0.25, 0.125), strict=True) if name]
            assert [getattr(network.config, name) for name in family.dropout if name] == wanted


def test_a_decoder_that_counts_no_positions_reads_rows_of_any_length():
    assert longest_row(MambaConfig()) == longest_row(MptConfig()) == UNLIMITED


def test_a_model_of_no_known_family_is_refused_with_the_nearest(tmp_path):
    for config, near in (({"model_type": "m2m_10"}, "the nearest that is known is m2m_100"), ({}, "none that Crossgap knows")):
        (tmp_path / "config.json").write_text(json.dumps(config))
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
def plugged(door):
    """The plugin of the examples with a family, for one test."""
    plugins.load([str(PLUGIN)])


def works(folder, tmp_path, engines):
    """A model of T5's structure is trained, saved, decoded, looked into and trimmed."""
    text, _ = phase_files(tmp_path)
    settings = Training(**{**TINY, "updates": 2, "evaluate_every": 2, "checkpoint": "last"})
    finetune(text, folder, tmp_path, settings, templates=json.dumps({"prefix": "translate {source_language} to {target_language}: "}))
    model, lines = tmp_path / "model", manual_pairs(12)[0]
    codec = load_codec(model)
    (row,) = codec.asked(codec.pieces(lines[:1], 1000), ("de", "en"))
    assert codec.tokenizer.decode(row, skip_special_tokens=True) == f"translate German to English: {lines[0]}"
    assert row[-1] == codec.tokenizer.eos_token_id and codec.start == codec.tokenizer.pad_token_id
    found = []
    for engine in engines:
        with translator(model, codec, 1, Decoding(engine=engine, beam_size=2, max_length=12)) as translate:
            found.append([one[0].text for one in translate(lines, ("de", "en"), 1)])
    assert all(one == found[0] for one in found) and len(found[0]) == 12
    network = load_network(model, "text", dropout=0.0, attention_dropout=0.0, seed=1).eval()
    # the loss, transformers and CTranslate2 give a text the same probability
    target = codec.encode(manual_pairs(1)[1], "en")[0]
    batch = {name: tensor for name, tensor in collate([(row, target)], 0, True, codec.start).items() if name != "labels"}
    with torch.no_grad():
        scores = network(**batch).logits[0].log_softmax(dim=-1).gather(1, torch.tensor(target)[:, None]).flatten()
    loss = dev_loss(network, codec, [Dev([(row, target)], "en")])
    assert loss == pytest.approx(-float(scores.mean()), abs=1e-4)
    if "ctranslate2" in engines:
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
        own = matrices_in(network, layers_of(network.base_model, codec.form, side)[0], codec.form, side)
        assert {*own} == {"K", "Q", "V", "Out", "FC1", "FC2"} and own["FC2"].shape == (32, 64)
    return network, codec


@pytest.mark.parametrize("kind", ["mt5", "umt5", "t5", "t5-1.1", "byt5"])
def test_models_of_t5s_kin_work_from_their_rows_to_their_hypotheses(models, tmp_path, kind):
    network, codec = works(models[kind], tmp_path, ("huggingface", "ctranslate2"))
    # plain transformers opens what was written, and finds the same weights, tied or not
    plain = AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "model").state_dict()
    assert all(torch.equal(weight, plain[name]) for name, weight in network.state_dict().items())
    assert torch.equal(plain["lm_head.weight"], plain["shared.weight"]) == (kind == "t5")
    assert AutoTokenizer.from_pretrained(tmp_path / "model")(LINE)["input_ids"] == codec.encode([LINE], "de")[0]
    kept, counts = trim(network, codec, [LINE], tmp_path / "tokenizer")
    if kind == "byt5":
        assert kept is codec and counts == {"pieces": len(LINE.encode()), "in_bytes": len(LINE.encode()), "unknown": 0}
        return
    assert len(kept.tokenizer) < len(codec.tokenizer) and network.config.vocab_size == len(kept.tokenizer)
    assert kept.tokens([LINE]) == codec.tokens([LINE])
    names = [codec.tokenizer.convert_ids_to_tokens(sentinel_ids(codec)) for codec in (kept, codec)]
    assert names[0] == names[1] and len(names[0]) == 8


LINE = "Die Datei wird gespeichert."


def test_umt5_does_not_scale_what_its_output_layer_reads_as_transformers_5_does(models):
    network = load_network(models["umt5"], "text", dropout=0.0, attention_dropout=0.0, seed=1).eval()
    plain = AutoModelForSeq2SeqLM.from_pretrained(models["umt5"]).eval()
    given = {"input_ids": torch.tensor([[5, 6, 1]]), "decoder_input_ids": torch.tensor([[0, 7]])}
    with torch.no_grad():
        ours, theirs = network(**given).logits, plain(**given).logits[..., : network.config.vocab_size]
    # if this fails, transformers has mended it: models/umt5.py can go
    assert torch.allclose(ours, theirs * 32**0.5, atol=1e-4)


def test_bytes_have_their_place_in_the_text(models):
    codec = load_codec(models["byt5"])
    ((ids, offsets),) = pieces_in_place(codec.tokenizer, ["Öl 油"])
    assert codec.tokenizer.decode(ids) == "Öl 油"
    assert offsets == [(0, 1), (0, 1), (1, 2), (2, 2), *[(3, 4)] * 3]
    # what stands for spans in pretraining are bytes that no text has
    sentinels = sentinel_ids(codec)
    assert sentinels[0] == 258 and not {*sentinels} & {*codec.pieces(["Öl 油 🙂"], 1000)[0]}


def test_a_family_of_a_plugin_works_without_a_change_of_the_code(plugged, tmp_path, capsys):
    (tmp_path / "there").mkdir()
    _, codec = works(small_t5(tmp_path, "longt5"), tmp_path / "there", ("huggingface",))
    assert decoding.engine_for(codec, Decoding()) == "huggingface"
    assert "decoding.engine ctranslate2 does not know mLongT5; huggingface decodes" in capsys.readouterr().out
    said = read_json(tmp_path / "there/model/config.json")["crossgap"]
    assert said == {"family": "mlongt5", "plugin": "mlongt5.py"}


def test_a_model_of_a_plugins_family_names_the_plugin_that_is_missing(tmp_path):
    folder = small_t5(tmp_path, "longt5")
    config = read_json(folder / "config.json")
    (folder / "config.json").write_text(json.dumps({**config, "crossgap": {"family": "mlongt5", "plugin": "mlongt5.py"}}))
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
    run = warm.run([warm.python(), *map(str, command), "de", "en"])
    assert run.returncode == 1 and "is a model of the family mlongt5, which the plugin mlongt5.py brings; name this plugin" in run.stderr
    assert "Traceback" not in run.stderr


def test_a_family_says_what_it_lacks():
    with pytest.raises(InputError, match=r"family 'new': lacks model_type, row, heads"):
        family("new", label="New")
    with pytest.raises(InputError, match=r"there is no field 'rows'; a family has source, model_type, row,"):
        family("new", label="New", like="mbart", rows=("text",))
    with pytest.raises(InputError, match=r"there is no family 'mbert5'"):
        family("new", label="New", like="mbert5")


@pytest.mark.parametrize(
    ("about", "said"),
    [
        ({"like": "mbert"}, r"models of model_type 'bert' are of the family 'mbert', so this one would never be used; give another"),
        ({"like": "mbart50"}, r"models of model_type 'mbart' and tokenizer 'MBart50' are of the family 'mbart50'"),
        (
            {"like": "mbart50", "tokenizer": "MBart50Fast"},
            r"models of model_type 'mbart' and tokenizer 'MBart50Fast' are of the family 'mbart50'",
        ),
        ({"like": "decoder"}, r"models of model_type 'llama' are of the family 'decoder'"),
    ],
)
def test_a_family_whose_models_another_one_has_is_refused(door, about, said):
    with pytest.raises(InputError, match=f"family 'new': {said}"):
        family("new", label="New", **about)
    assert "new" not in registry.entries("family")


@pytest.mark.parametrize(
    "about", [{"model_type": "new"}, {"tokenizer": "NewTokenizer"}, {"model_type": "", "recognises": lambda model_type, classes: True}]
)
def test_a_family_that_something_tells_from_others_is_taken(door, about):
    assert registry.entry("family", family("new", label="New", like="mbert", **about).name).label == "New"
