"""Weights that are spread over several processes: the losses of one process, whole weights, and going on with any number of them."""

import json
import shutil
import signal
import subprocess
from dataclasses import replace

import pytest
import torch
import warm
from phases import TINY, assert_alike, finetune, phase_files
from safetensors.torch import load_file
from test_checkpoints import TORCHRUN, command
from tiny_decoders import small_decoder
from tiny_models import small_encoder

from workflow_scripts.models.networks import load_network
from workflow_scripts.stage import InputError, read_json
from workflow_scripts.training.loop import compute_again
from workflow_scripts.training.settings import Training
from workflow_scripts.training.sharding import layers_in, sharing_weights

SETTINGS = Training(
    **{**TINY, "updates": 6, "evaluate_every": 3, "log_every": 1, "checkpoint": "last", "dropout": 0.0, "attention_dropout": 0.0}
)
LORA = {"kind": "lora", "rank": 4, "alpha": 8.0}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A folder with training and dev text, and a tiny mBART in it."""
    return phase_files(tmp_path_factory.mktemp("sharding"))


def in_two(folder, start, out, settings) -> str:
    """Finetune in two processes, which share the work of each update; returns what they said."""
    out.mkdir(exist_ok=True)
    line = command(folder, start, out, vars(settings), TORCHRUN)
    done = subprocess.run(line, capture_output=True, text=True, env=warm.environment())
    assert done.returncode == 0, done.stderr[-30000:]
    return done.stdout


def losses(out) -> list[float]:
    """Every loss of a training, in its order, that of dev sets as well."""
    logged = [json.loads(line) for line in next(out.glob("checkpoints/*/log.jsonl")).read_text(encoding="utf-8").splitlines()]
    return [entry[name] for entry in logged for name in ("loss", "eval_loss", "eval_bleu", "grad_norm") if name in entry]


@pytest.fixture(scope="module")
def alone(files, tmp_path_factory):
    """A training by one process."""
    out = tmp_path_factory.mktemp("alone")
    finetune(*files, out, SETTINGS)
    return out


@pytest.fixture(scope="module")
def shared(files, tmp_path_factory):
    """The same by two processes, each of which has a part of the weights."""
    out = tmp_path_factory.mktemp("shared")
    in_two(*files, out, replace(SETTINGS, sharded=True))
    return out


def test_each_process_has_a_part_and_the_losses_are_those_of_one(files, alone, shared):
    said = read_json(shared / "training.json")
    assert said["processes"] == 2 and said["weights_of_each_process"] < 0.6 * said["parameters"]
    assert losses(shared) == pytest.approx(losses(alone), rel=1e-3)


def test_the_model_that_is_handed_on_is_whole(files, alone, shared):
    start, one, two = (load_file(folder / "model.safetensors") for folder in (files[1], alone / "model", shared / "model"))
    assert_alike(start, one, two)
    kept = load_file(next(shared.glob("checkpoints/*/checkpoint-6")) / "model.safetensors")
    assert all(torch.equal(weight, two[name]) for name, weight in kept.items() if name in two) and len(kept.keys() & two.keys()) > 20


@pytest.fixture(scope="module")
def cut(files, tmp_path_factory):
    """The same, of which a process is killed in the fifth update."""
    out = tmp_path_factory.mktemp("cut")
    line = command(
        *files, out, vars(replace(SETTINGS, sharded=True)), [*TORCHRUN, "signalled", "update 4/", str(int(signal.SIGKILL)), "-m"]
    )
    assert subprocess.run(line, capture_output=True, env=warm.environment()).returncode
    return out


@pytest.mark.parametrize("processes", [1, 2])
def test_it_goes_on_with_any_number_of_processes(files, shared, cut, tmp_path, processes):
    shutil.copytree(cut / "checkpoints", tmp_path / "checkpoints")
    if processes == 1:
        finetune(*files, tmp_path, SETTINGS)
    else:
        assert "continuing from" in in_two(*files, tmp_path, replace(SETTINGS, sharded=True))
    start, before, after = (load_file(folder / "model.safetensors") for folder in (files[1], shared / "model", tmp_path / "model"))
    assert_alike(start, before, after)
    if processes == 2:  # once it has ended, the same call only writes the model again
        shutil.rmtree(tmp_path / "model")
        in_two(*files, tmp_path, replace(SETTINGS, sharded=True))
        again = load_file(tmp_path / "model/model.safetensors")
        assert all(torch.equal(weight, again[name]) for name, weight in after.items())


@pytest.mark.parametrize("sharded", [True, False])
def test_an_adapter_of_a_decoder_that_computes_its_layers_again(files, tmp_path, sharded):
    """Few weights are trained, of which each process has a part, or all; the adapter beside the model is whole."""
    start = small_decoder(tmp_path / "start")
    settings = replace(SETTINGS, adapter=LORA, updates=3, gradient_checkpointing=True, max_grad_norm=0.5, micro_batch_tokens=150)
    finetune(files[0], start, tmp_path / "one", settings)
    in_two(files[0], start, tmp_path / "two", replace(settings, sharded=sharded))
    assert losses(tmp_path / "two") == pytest.approx(losses(tmp_path / "one"), rel=2e-3)
    one, two = (load_file(tmp_path / name / "adapter/adapter_model.safetensors") for name in ("one", "two"))
    assert_alike(dict.fromkeys(one, torch.zeros(())), one, two)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"sharded": True}, "training.sharded: is for models that are trained as they are"),
        ({"gradient_checkpointing": True}, "training.gradient_checkpointing: is for models that are trained as they are"),
    ],
)
def test_phases_with_a_way_of_their_own_refuse_it(files, tmp_path, changes, said):
    start = small_encoder(tmp_path, "xlm-roberta")
    with pytest.raises(InputError, match=said):
        finetune(
            files[0], start, tmp_path / "out", replace(SETTINGS, **changes), generator="sga", generator_settings='{"prompt_length": 4}'
        )


def test_a_recorded_update_has_no_place_for_what_is_computed_again(files, tmp_path):
    with pytest.raises(InputError, match=r"training.recorded: has no place for gradient_checkpointing"):
        finetune(*files, tmp_path, replace(SETTINGS, packed=True, recorded=True, gradient_checkpointing=True))


def test_a_copy_has_the_same_numbers_in_the_same_place(files):
    network = load_network(files[1], "text", dropout=0.0, attention_dropout=0.0, seed=1)
    copied = sharing_weights(network)
    assert copied.lm_head.weight is copied.model.shared.weight and copied.lm_head.weight is not network.lm_head.weight
    assert copied.lm_head.weight.data_ptr() == network.lm_head.weight.data_ptr()
    layers = [*network.model.encoder.layers, *network.model.decoder.layers]
    assert [*layers_in(network)] == layers


def test_a_network_that_cannot_compute_again_says_so(files, monkeypatch):
    network = load_network(files[1], "text", dropout=0.0, attention_dropout=0.0, seed=1)
    monkeypatch.setattr(type(network), "supports_gradient_checkpointing", False)
    with pytest.raises(InputError, match=r"training.gradient_checkpointing: .*leave it out"):
        compute_again(network)
