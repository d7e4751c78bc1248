"""What a folder is that is no model, and what to do then: one line that names both."""

import json
import pickle
import re
import shutil

import pytest
import torch
from huggingface_hub import ModelInfo
from huggingface_hub.errors import GatedRepoError
from safetensors.torch import load_file
from tiny_models import small_model
from transformers import AutoModelForSeq2SeqLM

from workflow_scripts.models.folders import check_folder, check_free, check_weights, located
from workflow_scripts.models.networks import copy_model, load_network, read_weights, save_model
from workflow_scripts.models.tokenisation import load_codec
from workflow_scripts.run.model_findings import _model_in, _model_on_the_hub
from workflow_scripts.stage import InputError

POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n"


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return small_model(tmp_path_factory.mktemp("whole"))


def said_of(folder):
    """What preflight says of a folder, which is what training and decoding say."""
    said = []
    for look in (lambda: _model_in(folder, ["de", "en"], False, []), lambda: opened(folder)):
        with pytest.raises(InputError) as error:
            look()
        said.append(str(error.value))
    assert said[0] == said[1] and "\n" not in said[0] and str(folder) in said[0]
    return said[0]


def opened(folder):
    load_codec(folder)
    return load_network(folder, "text", dropout=0.0, attention_dropout=0.0, seed=1)


def test_a_model_is_not_written_over_other_files(whole, tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    network, tokenizer = opened(whole), load_codec(whole).tokenizer
    for write in (lambda folder: save_model(network, tokenizer, folder), lambda folder: copy_model(whole, folder)):
        with pytest.raises(InputError, match=f"{tmp_path}: is there already, and a model would take the place of all that is in it"):
            write(tmp_path)
        assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]
        write(tmp_path / "new")
        write(tmp_path / "new")  # an earlier model is replaced
        shutil.rmtree(tmp_path / "new")
    with pytest.raises(InputError, match="is there already"):
        check_free(whole)


def test_an_adapter(tmp_path):
    (tmp_path / "adapter_config.json").write_text(json.dumps({"base_model_name_or_path": "facebook/mbart-large-50"}))
    (tmp_path / "adapter_model.safetensors").touch()
    said = said_of(tmp_path)  # the command is run in tests/training/test_adapter.py
    assert "it is an adapter of facebook/mbart-large-50, without that model's weights; merge the two (`python -m workflow_scripts" in said


def test_a_folder_of_llama_cpp(tmp_path):
    (tmp_path / "model.Q4_K_M.gguf").write_bytes(b"GGUF")
    assert "no config.json is there; it has GGUF" in said_of(tmp_path)


def test_an_empty_folder(tmp_path):
    assert said_of(tmp_path) == f"{tmp_path}: the folder is empty; download or copy the model again"


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json", "config.json"])
def test_a_pointer_of_git_lfs(whole, tmp_path, name):
    folder = shutil.copytree(whole, tmp_path / "model")
    (folder / name).write_text(POINTER)
    assert f"{name}: is a pointer of git LFS in the place of the file; install git-lfs and run `git lfs pull` there" in said_of(folder)


def test_no_weights_but_others(whole, tmp_path):
    folder = shutil.copytree(whole, tmp_path / "model")
    (folder / "model.safetensors").rename(folder / "model.fp16.safetensors")
    with pytest.raises(InputError, match=r"no weights .* is there, only model\.fp16\.safetensors; download or copy the model again"):
        _model_in(folder, ["de", "en"], False, [])


def test_no_tokenizer(whole, tmp_path):
    folder = shutil.copytree(whole, tmp_path / "model")
    (folder / "tokenizer.json").unlink()
    assert "no tokenizer (tokenizer.json or" in said_of(folder)
    (folder / "trainer_state.json").write_text("{}")
    assert "it is a checkpoint of transformers' Trainer; copy the tokenizer's files there" in said_of(folder)
    shutil.copy(whole / "tokenizer.json", folder)  # the advice
    assert "its tokenizer knows de and en" in _model_in(folder, ["de", "en"], False, [])


def test_a_trainers_folders(whole, tmp_path):
    for name in ("checkpoint-90", "checkpoint-100"):
        shutil.copytree(whole, tmp_path / name)
    assert f"it is a folder of the Trainer's checkpoints, and a model is in {tmp_path}/checkpoint-100; name that" in said_of(tmp_path)
    _model_in(tmp_path / "checkpoint-100", ["de", "en"], False, [])
    alone = tmp_path / "alone"
    alone.mkdir()
    (alone / "optimizer.pt").touch()
    assert "it is a checkpoint of transformers' Trainer, without the model itself" in said_of(alone)
    shutil.copytree(whole, alone / "pytorch_model")
    assert f"Trainer, and a model is in {alone}/pytorch_model; name that" in said_of(alone)


def test_a_models_folder_in_the_cache(whole, tmp_path):
    cached = tmp_path / "models--facebook--mbart-large-cc25"
    (cached / "snapshots").mkdir(parents=True)
    assert "folder in the Hugging Face cache, without files; run `hf download` again" in said_of(cached)
    for commit in ("1111", "2222"):
        shutil.copytree(whole, cached / "snapshots" / commit)
    (cached / "refs").mkdir()
    (cached / "refs/main").write_text("1111\n")
    assert f"in the Hugging Face cache; name the folder of its files, {cached}/snapshots/1111" in said_of(cached)
    _model_in(cached / "snapshots/1111", ["de", "en"], False, [])


def test_weights_are_compared_before_they_are_loaded(whole, tmp_path):
    """Also pickled ones, of which nothing is run."""
    weights = load_file(whole / "model.safetensors")
    folder = shutil.copytree(whole, tmp_path / "model")
    (folder / "model.safetensors").unlink()
    torch.save({**weights, "more": torch.ones(1)}, folder / "pytorch_model.bin")
    assert "; 1 of its weights are not read (more)" in _model_in(folder, ["de", "en"], False, [])
    lost = dict(weights)
    for name in [name for name in lost if "encoder.layers.0.fc" in name]:
        del lost[name]
    torch.save(lost, folder / "pytorch_model.bin")
    first = ", ".join(f"model.encoder.layers.0.fc{part}" for part in ("1.bias", "1.weight", "2.bias"))
    assert f"it lacks {first} and 1 more); download or copy" in said_of(folder)
    torch.save({**weights, "model.encoder.layers.0.fc1.bias": torch.ones(3)}, folder / "pytorch_model.bin")
    assert "(model.encoder.layers.0.fc1.bias has the size 3, not 64); download or copy" in said_of(folder)


class Runs:
    """What runs a command when it is unpickled."""

    def __reduce__(self):
        return (print, ("it has run",))


def test_pickled_code_is_not_run(whole, tmp_path, capsys):
    folder = shutil.copytree(whole, tmp_path / "model")
    torch.save({**load_file(folder / "model.safetensors"), "code": Runs()}, folder / "pytorch_model.bin", pickle_module=pickle)
    (folder / "model.safetensors").unlink()
    assert "its pickled weights hold more than numbers and might run code, so they are not opened" in said_of(folder)
    assert "it has run" not in capsys.readouterr().out
    found = torch.load(folder / "pytorch_model.bin", weights_only=False)  # the advice
    torch.save({name: weight for name, weight in found.items() if torch.is_tensor(weight)}, folder / "pytorch_model.bin")
    _model_in(folder, ["de", "en"], False, [])


def test_a_head_may_be_new_where_training_makes_it_alone(tmp_path):
    model = small_model(tmp_path)
    settings = {"dropout": 0.0, "attention_dropout": 0.0, "seed": 1}
    network = load_network(model, "classification", **settings, labels=["a", "b"])
    with pytest.raises(InputError, match=r"it lacks classification_head\.dense\.bias, .* and 1 more"):
        load_network(model, "classification", **settings, new_head=False)
    network.save_pretrained(model)
    load_network(model, "classification", **settings, new_head=False)
    weights = {name: weight for name, weight in network.state_dict().items() if "out_proj.weight" not in name or "layers" in name}
    network.save_pretrained(model, state_dict=weights)
    with pytest.raises(InputError, match=r"it lacks classification_head\.out_proj\.weight\)"):
        load_network(model, "classification", **settings)


def test_no_weights_are_loaded_where_names_are_compared(whole):
    network = read_weights(AutoModelForSeq2SeqLM, whole, device_map="meta")
    assert all(weight.is_meta for weight in network.parameters())


def with_settings(whole, tmp_path, **settings):
    """A copy of a model's folder whose config.json has more settings."""
    folder = tmp_path / "changed"
    shutil.copytree(whole, folder)
    config = folder / "config.json"
    config.write_text(json.dumps({**json.loads(config.read_text(encoding="utf-8")), **settings}), encoding="utf-8")
    return folder


def test_quantised_weights_are_refused(whole, tmp_path):
    folder = with_settings(whole, tmp_path, quantization_config={"quant_method": "bitsandbytes", "load_in_4bit": True})
    with pytest.raises(InputError, match=r"its weights are quantised \(bitsandbytes\), and cannot be trained; take the model that they"):
        check_weights(folder)


def test_code_in_a_models_folder_is_not_run(whole, tmp_path):
    named = {"AutoConfig": "configuration_mine.MineConfig", "AutoModel": "modeling_mine.Mine"}
    # of a model that transformers has, its own code is used
    check_folder(with_settings(whole, tmp_path, auto_map=named))
    shutil.rmtree(tmp_path / "changed")
    folder = with_settings(whole, tmp_path, auto_map=named, model_type="mine")
    (folder / "modeling_mine.py").write_text("raise SystemExit('run')\n")
    with pytest.raises(
        InputError, match=r"the code of this model \(modeling_mine\.Mine\) is no part of transformers.*set trust_remote_code: true"
    ):
        check_folder(folder)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        # without an answer of the hub's, which its constructor wants
        (GatedRepoError.__new__(GatedRepoError), r"must be accepted first: do so on https://huggingface\.co/google/gemma-3-270m, then"),
        (TimeoutError(), r"nor available from the Hugging Face hub \(TimeoutError: \); where there is network run `hf download"),
    ],
)
def test_what_the_hub_refuses(monkeypatch, error, said):
    def refused(*_, **__):
        raise error

    monkeypatch.setattr("huggingface_hub.snapshot_download", refused)
    with pytest.raises(InputError, match=said):
        located("google/gemma-3-270m", None)


def test_preflight_says_that_a_licence_must_be_accepted(monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)

    def answers(gated=None):
        def model_info(*_, **__):
            if gated is None:
                raise GatedRepoError.__new__(GatedRepoError)
            return ModelInfo(id="google/gemma-3-270m", gated=gated)

        monkeypatch.setattr("huggingface_hub.HfApi.model_info", model_info)
        return _model_on_the_hub("google/gemma-3-270m", None, ["de", "en"])

    accept = r"its licence must be accepted first: do so on https://huggingface\.co/google/gemma-3-270m, then run `hf auth login`"
    with pytest.raises(InputError, match=accept):
        answers()
    assert re.search(f"is to be downloaded.*; if you have not done so yet, {accept}$", answers("manual"))
    assert "accepted" not in answers(False)
