"""A model whose code stands in its folder is refused, and runs where one setting allows it."""

import json
import os
import subprocess
import sys

import pytest
import torch
import warm
from tiny_decoders import small_decoder
from tiny_models import manual_pairs, small_encoder
from transformers import AutoModel, AutoModelForCausalLM, AutoTokenizer

from workflow_scripts.models.foreign_code import VARIABLE, check_code, code_left_out, code_that_ran, trusting
from workflow_scripts.models.networks import read_weights
from workflow_scripts.models.recognition import family_of
from workflow_scripts.stage import InputError, read_json
from workflow_scripts.training import backbone
from workflow_scripts.training.backbone import Backbone

CODE = """
from transformers import LlamaConfig, LlamaForCausalLM

open({ran!r}, "a").write("x")


class ForeignConfig(LlamaConfig):
    model_type = "foreign"


class ForeignForCausalLM(LlamaForCausalLM):
    config_class = ForeignConfig
"""
OWN = {"AutoConfig": "modeling_foreign.ForeignConfig", "AutoModelForCausalLM": "modeling_foreign.ForeignForCausalLM"}


@pytest.fixture
def foreign(tmp_path, monkeypatch):
    """A tiny Llama as a model with code of its own, which leaves a trace where it runs."""
    monkeypatch.setattr("transformers.dynamic_module_utils.HF_MODULES_CACHE", str(tmp_path / "modules"))
    monkeypatch.delenv(VARIABLE, raising=False)
    folder = small_decoder(tmp_path, "llama")
    config = read_json(folder / "config.json")
    said = {"model_type": "foreign", "architectures": ["ForeignForCausalLM"], "auto_map": OWN}
    (folder / "config.json").write_text(json.dumps({**config, **said}), encoding="utf-8")
    (folder / "modeling_foreign.py").write_text(CODE.replace("{ran!r}", repr(str(tmp_path / "ran"))), encoding="utf-8")
    return folder


def test_code_of_its_own_is_refused_and_does_not_run(foreign, tmp_path):
    with pytest.raises(
        InputError, match=r"would run with your rights, and is not run. If you have read it and trust it, set trust_remote_code"
    ):
        family_of(foreign)
    with pytest.raises(InputError, match=r"is no part of transformers"):
        backbone.main(*outputs(tmp_path), languages=("de", "en"), settings=Backbone(model=str(foreign)))
    # neither is that of another backbone of a run that trusts one
    os.environ[VARIABLE] = "1"
    with trusting(False), pytest.raises(InputError, match=r"is no part of transformers"):
        check_code(foreign, read_json(foreign / "config.json"))
    del os.environ[VARIABLE]
    assert not (tmp_path / "ran").exists()


def outputs(folder):
    return folder / "out", folder / "backbone.json", folder / "curve.tsv"


def test_one_setting_lets_it_run_and_goes_on_with_what_is_made_of_it(foreign, tmp_path):
    """The commands run in processes of their own, as transformers remembers which code it may trust."""
    text = tmp_path / "text.de"
    text.write_text("".join(f"{line}\n" for line in manual_pairs(20)[0]), encoding="utf-8")
    settings = json.dumps({"model": str(foreign), "trust_remote_code": True, "trim": True})
    made = command(
        "training.backbone",
        *("--output", tmp_path / "out", "--report", tmp_path / "backbone.json", "--curve", tmp_path / "curve.tsv"),
        *("--languages", "de", "en", "--task-text", text, "--settings", settings),
    )
    assert made.returncode == 0, made.stderr
    report = read_json(tmp_path / "backbone.json")
    assert report["family"] == "decoder" and [*report["trusted_code"]] == ["modeling_foreign.py"]
    assert report["vocabulary"] < report["vocabulary_before_trimming"] and "its own code runs, as it is trusted" in made.stdout
    assert (tmp_path / "out/modeling_foreign.py").is_file() and read_json(tmp_path / "out/config.json")["auto_map"] == OWN
    decode = ("--model", tmp_path / "out", "--source", text, "--hypotheses", tmp_path / "hyp", "--languages", "de", "en")
    decode += ("--settings", json.dumps({"engine": "huggingface", "beam_size": 1, "max_length": 4}))
    assert "is no part of transformers" in command("models.decoding", *decode).stderr
    assert command("models.decoding", *decode, **{VARIABLE: "1"}).returncode == 0
    assert len((tmp_path / "hyp").read_text(encoding="utf-8").splitlines()) == 20
    # plain transformers opens it with `trust_remote_code`
    plain = AutoModelForCausalLM.from_pretrained(tmp_path / "out", trust_remote_code=True)
    assert plain(torch.tensor([[3, 4]])).logits.shape[-1] == len(AutoTokenizer.from_pretrained(tmp_path / "out"))


def command(module, *arguments, **environment):
    call = [warm.python(), "-m", f"workflow_scripts.{module}", *map(str, arguments)]
    return warm.run(call, env=warm.environment() | environment)


ENCODER = """
from transformers import BertConfig, BertForMaskedLM, BertForSequenceClassification, BertModel


class NewConfig(BertConfig):
    model_type = "new"


class NewModel(BertModel):
    config_class = NewConfig


class NewForMaskedLM(BertForMaskedLM):
    config_class = NewConfig


class NewForSequenceClassification(BertForSequenceClassification):
    config_class = NewConfig
"""
NEW = {"AutoConfig": "modeling.NewConfig", "AutoModel": "modeling.NewModel"}
NEW |= {f"AutoModel{head}": f"modeling.New{head}" for head in ("ForMaskedLM", "ForSequenceClassification")}
ASKED = """
import sys
from pathlib import Path
from workflow_scripts.evidence.states import hidden_states, open_half
from workflow_scripts.models.networks import load_network
from workflow_scripts.models.recognition import family_of
from workflow_scripts.run.model_findings import _model_in
from workflow_scripts.stage import InputError
from workflow_scripts.training import backbone
from workflow_scripts.training.backbone import Backbone

folder, made = map(Path, sys.argv[1:])
outputs = made, made.with_suffix(".json"), made.with_suffix(".tsv")
settings = Backbone(model=str(folder), trust_remote_code=True)
backbone.main(*outputs, languages=("de", "en"), encoder_will_do=True, keep_head=True, settings=settings)
half = open_half("new", made)
states = hidden_states(half, half.codec.encode(["a b"], "de"))
network = load_network(made, "classification", dropout=0.1, attention_dropout=0.1, seed=1, labels=["a", "b"])
print(_model_in(made, ["de"], True, [], True, ["classification", "answering"]))
try:
    _model_in(made, ["de"], True, [], True, ["labelling"])
except InputError as error:
    print(error)
print(family_of(made).name, family_of(made).reported, tuple(states.shape)[0], type(network).__name__, family_of(network.config).name)
"""


def test_an_encoder_with_code_of_its_own_is_one_by_what_that_code_can_be_opened_as(tmp_path):
    folder = small_encoder(tmp_path, "bert")
    said = {"model_type": "new", "architectures": ["NewModel"], "auto_map": NEW}
    (folder / "config.json").write_text(json.dumps({**read_json(folder / "config.json"), **said}), encoding="utf-8")
    (folder / "modeling.py").write_text(ENCODER, encoding="utf-8")
    environment = {**os.environ, VARIABLE: "1", "HF_MODULES_CACHE": str(tmp_path / "modules")}
    asked = [sys.executable, "-c", ASKED, folder, tmp_path / "made"]
    run = subprocess.run(asked, capture_output=True, text=True, check=False, env=environment)
    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines()[-2].endswith("there is no head for labelling on models of type new; take another model")
    assert run.stdout.splitlines()[-1] == "encoder new 2 NewForSequenceClassification encoder"


def test_code_of_its_own_is_left_out_of_a_model_that_transformers_has(tmp_path, capsys):
    folder = small_encoder(tmp_path, "xlm-roberta")
    settings = {**read_json(folder / "config.json"), "auto_map": {"AutoModel": "modeling.Other"}}
    (folder / "config.json").write_text(json.dumps(settings), encoding="utf-8")
    assert code_left_out(folder) == "modeling.Other"
    backbone.main(*outputs(tmp_path), languages=("de", "en"), encoder_will_do=True, settings=Backbone(model=str(folder)))
    assert "its own code (modeling.Other) is left out, as transformers has models of this type" in capsys.readouterr().out
    (folder / "config.json").write_text(json.dumps({**settings, "num_hidden_layers": 2}), encoding="utf-8")
    with pytest.raises(
        InputError, match=r"its own code \(modeling.Other\) is left out, as transformers has models of type xlm-roberta; take"
    ):
        read_weights(AutoModel, folder)


def test_code_that_cannot_be_imported_is_one_line(foreign):
    (foreign / "modeling_foreign.py").write_text("import a_library_that_nobody_has\n", encoding="utf-8")
    with trusting(True), pytest.raises(InputError, match=r"its own code cannot be loaded \(ImportError: .*ask who has published it"):
        family_of(foreign)


def test_a_model_of_transformers_runs_no_code_of_its_own(tmp_path):
    assert code_that_ran(small_decoder(tmp_path, "llama")) == {}
