"""The benchmark of a GPU, on a CPU: it runs with few packages, goes on where it ended, and counts operations as PyTorch does."""

import json
import os
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from benchmarks.gpu import __main__ as gpu
from benchmarks.gpu.updates import Sentences, Size, mbart, peak_of, training_flops

SIZE = Size(64, 256, 2, 700, 400)


def test_operations_are_those_that_pytorch_counts():
    """Of two rows of the same lengths, so that nothing is padded."""
    network = mbart(SIZE, torch.device("cpu"), attn_implementation="eager")
    source, target = torch.randint(5, 700, (2, 23)), torch.randint(5, 700, (2, 17))
    with FlopCounterMode(display=False) as counter:
        network(input_ids=source, decoder_input_ids=target, labels=target, use_cache=False).loss.backward()
    assert training_flops(SIZE, [([0] * 23, [0] * 17)] * 2) == pytest.approx(counter.get_total_flops(), rel=0.01)


def test_rows_have_the_lengths_of_sentences():
    rows = Sentences(SIZE, 3000).epoch(0)
    lengths = [len(side) for row in rows for side in row]
    assert 22 < sum(lengths) / len(lengths) < 30 and min(lengths) >= 4 and max(lengths) <= 126
    assert all(4 <= piece < 700 for row in rows[:200] for side in row for piece in side)


def test_peaks_of_gpus():
    names = ["NVIDIA H100 80GB HBM3", "NVIDIA H100 PCIe", "NVIDIA A100-SXM4-40GB", "Tesla T4", "NVIDIA L40S", "something"]
    assert [peak_of(name) for name in names] == [989, 756, 312, 65, 362, None]


def lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def needed_by(*names: str) -> dict[str, metadata.Distribution]:
    """Packages that are installed with these, by name."""
    found: dict[str, metadata.Distribution] = {}
    todo = list(names)
    while todo:
        name = re.sub(r"[-_.]+", "-", todo.pop()).lower()
        try:
            package = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            continue  # for another system
        if name not in found:
            found[name] = package
            todo += [re.match(r"[\w.-]+", line)[0] for line in package.requires or [] if "extra ==" not in line]
    return found


def test_it_runs_where_little_more_than_torch_is_installed(tmp_path):
    packages = tmp_path / "packages"
    packages.mkdir()
    for package in needed_by("torch", "transformers", "numpy").values():
        for part in {file.parts[0] for file in package.files or []} - {"..", "__pycache__"}:
            if not (packages / part).exists():
                (packages / part).symlink_to(package.locate_file(part))
    assert not list(packages.glob("gensim*")) and not list(packages.glob("accelerate*")) and not list(packages.glob("numba*"))
    output = tmp_path / "gpu.jsonl"
    # without the packages of the environment
    line = [sys.executable, "-S", "-m", "benchmarks.gpu", "--tiny", "--device", "cpu", "--parts", "acdf", "--output", str(output)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": f"{packages}:{Path.cwd()}"}
    done = subprocess.run(line, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    measured = lines(output)
    assert {found["part"] for found in measured} == {"a", "c", "f"} and all("failed" not in found for found in measured), measured
    assert all(found["device"] == "cpu" and found["versions"]["torch"] == metadata.version("torch") and found["tiny"] for found in measured)
    assert all(found["target_tokens_per_s"] > 0 for found in measured)
    left = {found["case"]: found["left_out"] for found in map(json.loads, done.stdout.splitlines()) if "left_out" in found}
    assert left["stock trainer, tiny"] == "needs accelerate" and "ctranslate2" in left["ctranslate2, 512 tokens at once"]


def test_it_goes_on_where_it_ended(tmp_path, capsys):
    output = tmp_path / "gpu.jsonl"
    call = ["--tiny", "--device", "cpu", "--output", str(output)]
    gpu.main([*call, "--parts", "d", "--minutes", "0"])
    assert not output.exists()
    gpu.main([*call, "--parts", "d"])
    first = lines(output)
    assert [found["case"].split(",")[0] for found in first] == ["ctranslate2", "huggingface"]
    assert all(found["sentences_per_s"] > 0 and found["pieces"] == 4 for found in first)
    gpu.main([*call, "--parts", "bade"])
    everything = lines(output)
    assert everything[:2] == first and {found["part"] for found in everything} == set("abde")
    assert not [found for found in everything if "failed" in found]
    keys = [gpu.key(found) for found in everything]
    assert len(set(keys)) == len(keys)
    capsys.readouterr()


def test_a_case_that_fails_does_not_end_the_others():
    def broken():
        raise torch.OutOfMemoryError("CUDA out of memory")

    assert gpu.tried(broken, torch.device("cpu")) == {"failed": "OutOfMemoryError: CUDA out of memory"}


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_it_says_so(capsys):
    with pytest.raises(SystemExit) as end:
        gpu.main([])
    assert end.value.code == 77 and "give --tiny" in capsys.readouterr().err
