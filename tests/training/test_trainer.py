"""How the Trainer is used: its learning rates, its checkpoints on the disk, and the processes that make its batches."""

import os
import signal
from multiprocessing import get_context
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch.utils.data import DataLoader
from transformers import (
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    BertConfig,
    BertForMaskedLM,
    MixtralConfig,
    MixtralForCausalLM,
    Trainer,
    get_scheduler,
)

from workflow_scripts.errors import InputError
from workflow_scripts.models.networks import read_weights
from workflow_scripts.training.callbacks import Progress, Watch
from workflow_scripts.training.checkpoints import Deadline, average_weights
from workflow_scripts.training.settings import Training
from workflow_scripts.training.trainer import PhaseTrainer, fit, trainer_arguments, without_signals


def learning_rates(folder, warmup=16, **given):
    """The learning rate of each of 100 updates, of which 16 are warm-up, as the Trainer computes it."""
    arguments = trainer_arguments(Training(updates=100, learning_rate=1.0, warmup_updates=warmup, device="cpu", **given), folder, 1, seed=1)
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=arguments.learning_rate)
    schedule = get_scheduler(arguments.lr_scheduler_type, optimizer, arguments.get_warmup_steps(100), 100, arguments.lr_scheduler_kwargs)
    rates = []
    for _ in range(100):
        rates.append(schedule.get_last_lr()[0])
        optimizer.step()
        schedule.step()
    return rates


def test_the_learning_rate_warms_up_and_falls_as_configured(tmp_path):
    linear, squared = learning_rates(tmp_path), learning_rates(tmp_path, decay_power=2.0)
    root = learning_rates(tmp_path, decay="inverse_square_root")
    assert linear[8] == squared[8] == root[8] == 0.5 and linear[16] == squared[16] == root[16] == 1.0
    assert linear[58] == pytest.approx(0.5) and squared[58] == pytest.approx(0.25) and root[64] == pytest.approx(0.5)
    assert learning_rates(tmp_path, warmup=0, decay="inverse_square_root")[99] == pytest.approx(0.1)


@pytest.mark.parametrize(("rank", "files"), [(0, {"model", "rng_state_0.pth", "checkpoint-4"}), (1, {"rng_state_1.pth"})])
def test_a_checkpoint_is_on_the_disk_before_its_last_file_is_written(tmp_path, monkeypatch, rank, files):
    folder, seen = tmp_path / "checkpoint-4", set()
    folder.mkdir()
    (folder / "model").touch()
    monkeypatch.setenv("RANK", str(rank))
    monkeypatch.setattr(Trainer, "_save_rng_state", lambda self, folder: Path(folder, f"rng_state_{rank}.pth").touch())
    monkeypatch.setattr(os, "fsync", lambda file: seen.add(Path(f"/proc/self/fd/{file}").readlink().name))
    trainer = PhaseTrainer.__new__(PhaseTrainer)
    trainer.args = SimpleNamespace(process_index=rank)
    trainer._save_rng_state(str(folder))
    assert seen == files


def old_bert(folder: Path) -> type:
    """A BERT whose file has the names of its first release."""
    shape = {"hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 16, "vocab_size": 50}
    BertForMaskedLM(BertConfig(**shape)).save_pretrained(folder)
    weights = load_file(folder / "model.safetensors")
    renamed = {
        name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): weights[name] for name in weights
    }
    save_file(renamed, folder / "model.safetensors", {"format": "pt"})
    return AutoModelForMaskedLM


def mixture(folder: Path) -> type:
    """A decoder whose experts are one array here and many in its file."""
    shape = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 2, "intermediate_size": 16}
    MixtralForCausalLM(MixtralConfig(**shape, vocab_size=50, num_local_experts=2)).save_pretrained(folder)
    return AutoModelForCausalLM


@pytest.mark.parametrize("make", [old_bert, mixture])
def test_the_best_update_is_handed_on_whole_whatever_the_file_of_the_start_calls_its_weights(tmp_path, make):
    kind = make(tmp_path / "start")
    network = read_weights(kind, tmp_path / "start")
    rates = {"learning_rate": 0.05, "warmup_updates": 0, "decay": "inverse_square_root"}
    settings = Training(updates=3, evaluate_every=1, log_every=1, choose_by="loss", device="cpu", precision="float32", **rates)
    batches = [torch.arange(start, start + 24).reshape(4, 6) for start in (0, 10, 20)]
    losses, seen = iter([1.0, 2.0, 3.0]), []

    def look():
        seen.append({name: weight.clone() for name, weight in network.state_dict().items()})
        return {"eval_loss": next(losses)}

    def loss(output, labels, num_items_in_batch=None):
        return torch.nn.functional.cross_entropy(output.logits.flatten(0, 1), labels.flatten())

    folder = tmp_path / "checkpoints"
    watch = Watch(folder, settings, Deadline(0))
    fit(network, batches, 1, lambda ids: {"input_ids": ids, "labels": ids}, loss, look, watch, Progress(1.0), 1)
    found = network.state_dict()
    assert [name for name, weight in found.items() if not torch.equal(weight, seen[0][name])] == []
    assert any(not torch.equal(weight, seen[2][name]) for name, weight in found.items())


def test_a_checkpoint_without_one_of_the_weights_is_refused(tmp_path):
    network = read_weights(old_bert(tmp_path), tmp_path)
    with pytest.raises(InputError, match=r"model\.safetensors: lacks the weight bert\.embeddings\.LayerNorm\.weight, .*delete the folder"):
        average_weights(network, [tmp_path / "model.safetensors"])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_process_that_makes_batches_outlives_the_signal_that_stops_the_training(number):
    """As on a GPU, where the whole group of processes gets it, and the training still has to write its checkpoint."""
    fork = get_context("fork")  # as `trainer_arguments` has it
    asked, goes_on = fork.Event(), fork.Event()
    given = without_signals(SlowAtFirst(asked, goes_on))
    batches = iter(DataLoader(given, batch_size=1, num_workers=1, collate_fn=sum_of, multiprocessing_context=fork))
    # the first batch takes long, since an epoch is made for it, and the signal may come meanwhile
    assert asked.wait(60)
    os.kill(batches._workers[0].pid, number)
    goes_on.set()
    assert list(batches) == [{"sum": i} for i in range(40)]


class SlowAtFirst(list):
    """Batches of one number; the first waits until `goes_on` is set."""

    def __init__(self, asked, goes_on):
        super().__init__([i] for i in range(40))
        self.asked, self.goes_on = asked, goes_on

    def __getitem__(self, place):
        if place == 0:
            self.asked.set()
            self.goes_on.wait(60)
        return super().__getitem__(place)


def sum_of(items: list) -> dict:
    """The only batch, of one number."""
    return {"sum": sum(items[0])}
