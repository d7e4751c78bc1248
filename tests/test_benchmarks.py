"""Benchmarks can be called; their figures are in docs/performance.md."""

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from tiny_models import small_model

from benchmarks import clock, exported, lora, random_mbart, update
from workflow_scripts.models.tokenisation import load_codec
from workflow_scripts.training.loop import load_model
from workflow_scripts.training.settings import Training

NAMES = sorted(path.stem for path in Path("benchmarks").glob("*.py") if path.stem != "__init__")


@pytest.mark.parametrize("name", NAMES)
def test_what_a_benchmark_imports_is_there_and_it_says_how_it_is_called(name):
    before = dict(os.environ)
    module = importlib.import_module(f"benchmarks.{name}")
    # numba refuses to compile anything once its number of threads changes in a process
    assert dict(os.environ) == before
    assert module.main and f"python -m benchmarks.{name}" in module.__doc__


def test_a_benchmark_runs_in_a_clone_and_starts_its_own_processes():
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    line = [sys.executable, "-m", "benchmarks.corpus", "2000"]
    done = subprocess.run(line, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["case"] == "2000 pairs" and 1900 < said["kept"] <= 2000 and min(said["ours"], said["peer"]) > 0


@pytest.mark.parametrize("trimmed", [False, True])
def test_a_random_model_can_be_loaded(tmp_path, trimmed):
    start, text = small_model(tmp_path), tmp_path / "text"
    text.write_text("Öffnen Sie die Datei.\n", encoding="utf-8")
    random_mbart.main(str(start), str(tmp_path / "random"), "64", "1", *([str(text)] if trimmed else []))
    network, codec = load_model(tmp_path / "random", Training(), 1), load_codec(tmp_path / "random")
    assert network.config.d_model == 64 and network.config.vocab_size == len(codec.tokenizer)
    assert (len(codec.tokenizer) < len(load_codec(start).tokenizer)) is trimmed


@pytest.mark.parametrize("variant", [update.OURS, *(name for name in update.VARIANTS if name != "compiled")])
def test_updates_are_timed_in_each_variant(tmp_path, variant):
    # "compiled" needs a C++ compiler, and a minute
    for code, line in (("de", "Öffnen Sie die Datei.\n"), ("en", "Open the file.\n")):
        (tmp_path / f"train.{code}").write_text(line * 200, encoding="utf-8")
    said = update.case(str(small_model(tmp_path)), str(tmp_path / "train"), "de", "en", 10, 100, 1, variant)
    assert said["speed"] > 0 and said["setup"]["device"]


@pytest.mark.parametrize("kind", ["any peer's", "LoRA's"])
def test_the_clock_waits_for_a_gpu_only_where_its_time_is_used(monkeypatch, kind):
    waited = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(lora, "GPU", True)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: waited.append(step))
    timed, adapters = clock(1, 6), lora.Clock(6)
    for step in range(1, 7):
        if kind == "LoRA's":
            adapters.tick(step)
        else:
            timed.on_step_end(None, SimpleNamespace(global_step=step), None)
    assert waited == [1, 6] and len(timed.times) + len(adapters.times) == 2


def test_the_weights_of_a_model_are_counted(tmp_path):
    start = small_model(tmp_path)
    network = load_model(start, Training(), 1)
    assert exported.weights(str(start)) == sum(weight.numel() for weight in network.parameters())
