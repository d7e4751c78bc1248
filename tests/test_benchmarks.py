"""Benchmarks can be called; their figures are in docs/performance.md."""

import runpy
from pathlib import Path

import pytest
from tiny_models import small_model

from workflow_scripts.models.tokenisation import load_codec
from workflow_scripts.training.loop import load_model
from workflow_scripts.training.settings import Training

BENCHMARKS = Path("benchmarks")


@pytest.mark.parametrize("name", sorted(path.name for path in BENCHMARKS.glob("*.py")))
def test_what_a_benchmark_imports_is_there(name, monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    assert runpy.run_path(str(BENCHMARKS / name))["main"]


@pytest.mark.parametrize("trimmed", [False, True])
def test_a_random_model_can_be_loaded(tmp_path, trimmed):
    main = runpy.run_path(str(BENCHMARKS / "random_mbart.py"))["main"]
    start, text = small_model(tmp_path), tmp_path / "text"
    text.write_text("Öffnen Sie die Datei.\n", encoding="utf-8")
    main(str(start), str(tmp_path / "random"), "64", "1", *([str(text)] if trimmed else []))
    network, codec = load_model(tmp_path / "random", Training(), 1), load_codec(tmp_path / "random")
    assert network.config.d_model == 64 and network.config.vocab_size == len(codec.tokenizer)
    assert (len(codec.tokenizer) < len(load_codec(start).tokenizer)) is trimmed
