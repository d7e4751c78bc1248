"""What preflight finds of models that arms ask for more than they can do."""

import shutil
from pathlib import Path

import pytest
from configurations import changed, classified, planned
from tiny_decoders import small_decoder
from tiny_encoders import tiny_encoder
from tiny_models import small_encoder, small_model
from transformers import AutoModel, BertConfig, BertForMaskedLM

from workflow_scripts.models.networks import save_model
from workflow_scripts.models.tokenizer import load_tokenizer
from workflow_scripts.run.prompt_findings import asked_models


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """A tiny decoder, an mBART and an XLM-R."""
    make = {"decoder": (small_decoder, "gemma3_text"), "mbart": (small_model, "mbart"), "encoder": (small_encoder, "xlm-roberta")}
    return {name: str(maker(tmp_path_factory.mktemp(name), kind)) for name, (maker, kind) in make.items()}


def said(raw: dict) -> list[str]:
    return [str(finding) for finding in asked_models(planned(raw))]


def translating(model: str, arms: dict, **experiment) -> dict:
    """The demo with another model, and these arms."""
    raw = changed("backbones/bible", {"kind": "hub", "model": model})
    raw["arms"] |= arms
    raw["run"]["arms"] = [*arms]
    raw["experiments"]["help-de-en"] |= experiment
    return raw


def labelling(model: str, **experiment) -> dict:
    """Texts with labels, for which a model is asked without training."""
    raw = classified()
    (name,) = raw["run"]["experiments"][:1]
    raw["run"] |= {"experiments": [name], "arms": ["prompted"], "analyses": []}
    raw["arms"]["prompted"] = []
    raw["experiments"][name] |= experiment
    raw["experiments"][name].pop("arms", None)
    raw["backbones"][raw["experiments"][name]["backbone"]] = {"kind": "hub", "model": model}
    return raw


def test_examples_are_for_decoders(models):
    five = {"five": [{"data": "task", "shots": 5}]}
    (line,) = said(translating(models["mbart"], five))
    assert line.startswith(
        "WRONG  arms.five.shots: shows 5 examples, which decoders alone read; backbones.bible is a model of the family mBART"
    )
    assert not said(translating(models["decoder"], five))
    # an encoder-decoder may write as it is; and of small models the configuration tells
    assert not said(translating(models["mbart"], {"prompted": []}))
    (line,) = said(changed("arms/five", five["five"]) | {"run": changed("run/arms", ["five"])["run"]})
    assert "backbones.bible is a model of the family mBART. Set shots: 0" in line


def test_labels_without_training_are_for_decoders(models):
    (line,) = said(labelling(models["encoder"]))
    assert line.startswith("WRONG  arms.prompted: asks for labels without training, which decoders alone can tell")
    assert not said(labelling(models["decoder"]))


def test_a_chat_template_must_be_there(models):
    for raw in (
        translating(models["decoder"], {"prompted": []}, templates={"chat": True}),
        labelling(models["decoder"], verbaliser={"chat": True}),
    ):
        (line,) = said(raw)
        assert "templates.chat: the model has no chat template; leave `chat` out" in line


def test_a_decoder_without_a_tokeniser_is_reported_elsewhere(models, tmp_path):
    (tmp_path / "config.json").write_text((Path(models["decoder"]) / "config.json").read_text())
    assert not said(translating(str(tmp_path), {"prompted": []}))


def test_a_prompt_and_its_answer_must_have_room(models):
    (line,) = said(translating(models["decoder"], {"prompted": []}, decoding={"max_length": 500}))
    assert "decoding.max_length: an answer of 500 pieces leaves no room for a source in the 512 positions of the model" in line
    few, many = ({"shown": [{"data": "task", "shots": shots}]} for shots in (1, 100))
    (line,) = said(translating(models["decoder"], many, decoding={"max_length": 50}))
    assert "behind 100 examples, an answer of 50 pieces leaves no room" in line and "show fewer (`shots`)" in line
    assert not said(translating(models["decoder"], few, decoding={"max_length": 50}))


@pytest.mark.parametrize("model", ["decoder", "mbart"])
def test_what_is_written_at_once_needs_an_encoder(models, model):
    (line,) = said(translating(models[model], {"sga": [{"data": "task", "updates": 2800, "generator": "sga"}]}))
    assert line.startswith("WRONG  arms.sga.generator: needs an encoder; backbones.bible is a model of the family")


@pytest.mark.parametrize("generator", ["sga", "ctc"])
def test_what_is_written_by_prompts_needs_an_encoder_that_reads_them(tmp_path, generator):
    arms = {"at-once": [{"data": "task", "updates": 2800, "generator": generator}]}
    (line,) = said(translating(str(tiny_encoder(tmp_path, "deberta")), arms))
    assert line.startswith("WRONG  arms.at-once.generator: backbones.bible: SGA and CTC put keys") and "of type deberta-v2 does not" in line
    assert not said(translating(str(tiny_encoder(tmp_path / "other", "modernbert")), arms))


def test_what_is_written_at_once_needs_the_head_that_guesses(models, tmp_path):
    bare = AutoModel.from_pretrained(models["encoder"])
    bare.save_pretrained(tmp_path)
    load_tokenizer(Path(models["encoder"])).save_pretrained(tmp_path)
    phase = {"data": "task", "updates": 2800, "generator": "sga"}
    (line,) = said(translating(str(tmp_path), {"sga": [phase]}))
    assert line.startswith(f"WRONG  arms.sga.generator: writes with the head that guesses masked pieces, which {tmp_path} has not; let its")
    assert not said(translating(str(tmp_path), {"ctc": [{**phase, "generator": "ctc", "start": "scratch"}]}))
    assert not said(translating(models["encoder"], {"sga": [phase]}))


def test_what_is_converted_must_be_an_encoder_of_the_right_kind(models):
    raw = translating(models["decoder"], {"finetune": [{"data": "task", "updates": 2800}]})
    raw["backbones"]["own"] = raw["backbones"].pop("bible")
    raw["backbones"]["bible"] = {"kind": "converted", "from": "own", "to": "encoder-decoder"}
    (line,) = said(raw)
    assert (
        line.startswith("WRONG  backbones.bible.from: ")
        and "of the family decoder; an XLM-R, a RoBERTa, a BERT, or a VECO made of one, can be" in line
    )


def test_a_bert_is_converted_with_the_pieces_of_an_xlmr_or_its_own(models, tmp_path):
    pieces = Path(models["encoder"])
    size = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
    bert = BertForMaskedLM(BertConfig(vocab_size=len(load_tokenizer(pieces)), pad_token_id=1, **size))
    save_model(bert, load_tokenizer(pieces), tmp_path / "bert")
    (tmp_path / "words").mkdir()
    other = tmp_path / "other"  # which pads with another piece
    shutil.copytree(tmp_path / "bert", other)
    for path in (other / "tokenizer.json", other / "tokenizer_config.json"):
        path.write_text(path.read_text().replace("<pad>", "<fill>"))
    for model, refused in ((tmp_path / "bert", False), (small_encoder(tmp_path / "words", "bert"), False), (other, True)):
        raw = translating(str(model), {"finetune": [{"data": "task", "updates": 2800}]})
        raw["backbones"]["own"] = raw["backbones"].pop("bible")
        raw["backbones"]["bible"] = {"kind": "converted", "from": "own", "to": "encoder-decoder"}
        assert any("VECO and conversion need those of XLM-R" in line for line in said(raw)) == refused, said(raw)


def test_masked_pieces_are_for_encoders(models):
    (line,) = said(translating(models["decoder"], {"guess": [{"data": "mlm", "updates": 1400}, {"data": "task", "updates": 1400}]}))
    assert line.startswith("WRONG  arms.guess: objective mlm is not for decoder, which is a decoder alone; set objective: ")
