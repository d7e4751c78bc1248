"""The benchmark of a GPU, on a CPU: it runs with few packages, goes on where it ended, and counts operations as PyTorch does."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import nullcontext, suppress
from functools import partialmethod
from importlib import metadata
from pathlib import Path

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from benchmarks import lora
from benchmarks.gpu import __main__ as gpu
from benchmarks.gpu import running, shared
from benchmarks.gpu.candidates import joined_products
from benchmarks.gpu.counts import Counted
from benchmarks.gpu.kernels import decoding_limits, kind_of, limits
from benchmarks.gpu.running import Case, in_rounds
from benchmarks.gpu.updates import Sentences, Size, mbart, peak_of, planned_updates, training_flops, updates_of
from workflow_scripts.training.graphs import Recorded
from workflow_scripts.training.packing import packed

SIZE = Size(64, 256, 2, 700, 400)
CPU = torch.device("cpu")


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


@pytest.mark.parametrize("packed_", [False, True])
def test_rows_of_a_decoder_are_prompts_and_answers(packed_):
    """About half of the pieces are labels, each of them the next piece that is read; `tokens` are those of an update."""
    size = Size(64, 128, 1, 500, 1_024)
    planned = planned_updates(size, 20, packed=packed_, causal=True)
    rows = [row for rows in planned for row in rows]
    assert all(len(row[0]) == len(row[1]) <= 128 for row in rows)
    assert all(
        label in (-100, after)
        for row in Sentences(size, 50, causal=True).epoch(0)
        for after, label in zip(row[0][1:], row[1][:-1], strict=True)
    )
    _, labels, tokens, scores = (sum(some) for some in zip(*(shared.counts_of(rows, packed_, True) for rows in planned), strict=True))
    assert 0.4 < labels / tokens < 0.6 and scores == labels and 0.9 < tokens / (20 * size.tokens) <= 1
    assert shared.counts_of(planned[0], packed_, False)[3] == shared.counts_of(planned[0], packed_, False)[2]


def test_an_adapter_is_trained_by_our_loop():
    found = gpu.adapted("ours", torch.device("cpu"), tiny=True)
    assert found["speed"] > 0 and found["target_tokens"] > 100 and found["peak_gb"] > 0


def test_a_decoder_is_decoded_by_both_engines():
    found = gpu.greedily_decoded(tiny=True)
    for engine in ("ctranslate2", "huggingface"):
        assert found[engine] > 0 and found["peer"] > 0 and 0 < found[f"same_{engine}"] <= lora.SENTENCES
        assert found[f"ratio_{engine}"] == pytest.approx(found[engine] / found["peer"], rel=0.1, abs=0.02)


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
    printed = [found for found in map(json.loads, done.stdout.splitlines()) if "part" in found]
    left = {found["case"]: found["left_out"] for found in printed if "left_out" in found}
    assert left["stock trainer, tiny"] == "needs accelerate" and "ctranslate2" in left["ctranslate2, 512 tokens at once"]


def test_it_goes_on_where_it_ended(tmp_path, capsys):
    output = tmp_path / "gpu.jsonl"
    call = ["--tiny", "--device", "cpu", "--output", str(output)]
    gpu.main([*call, "--parts", "d", "--minutes", "0"])
    assert not output.exists() and "d: huggingface, static cache" in json.loads(capsys.readouterr().out.splitlines()[-1])["not_begun"]
    gpu.main([*call, "--parts", "d"])
    first = lines(output)
    assert {found["case"].split(",")[0] for found in first} == {"ctranslate2", "huggingface"}
    assert all(found["sentences_per_s"] > 0 and found["pieces"] == 4 for found in first)
    gpu.main([*call, "--parts", "badeh"])
    everything = lines(output)
    assert everything[: len(first)] == first and {found["part"] for found in everything} == set("abdeh")
    for found in everything:
        if found["part"] == "h":
            assert found["kinds"]["products"]["ms"] > 0 and found["kinds"]["products"]["limit_ms"] > 0 and found["busy_ms"] > 0
    assert not [found for found in everything if "failed" in found]
    keys = [running.key(found) for found in everything]
    assert len(set(keys)) == len(keys)
    capsys.readouterr()


def test_updates_wait_for_nothing_but_those_as_before():
    size = Size(64, 128, 1, 500, 512)
    found = {
        name: updates_of(mbart(size, torch.device("cpu")), size, 1, **changes)
        for name, changes in (("before", {"asking": True}), ("padded", {}), ("recorded", {"packed": True, "recorded": True}))
    }
    assert found["before"]["waits"] >= 5 and found["padded"]["waits"] == found["recorded"]["waits"] == 0
    assert found["padded"]["calls"] < found["before"]["calls"] and all(one["ms"] > 0 for one in found.values())
    assert 0 < found["recorded"]["padding"] < 0.5


def test_what_is_counted_of_a_recorded_update_is_its_replay(monkeypatch):
    """A graph calls no operation of PyTorch; here a replay does nothing."""
    size, calls = Size(64, 128, 1, 500, 512), []
    for record in (Recorded._record, lambda self: self._again() or (lambda: None)):
        monkeypatch.setattr(Recorded, "_record", record)
        calls.append(updates_of(mbart(size, CPU), size, 1, packed=True, recorded=True)["calls"])
    assert 0 < calls[1] < calls[0] / 5


def test_compiled_layers_of_one_shape_are_used_in_all_updates_and_not_compiled_again_once_they_are_warm(monkeypatch):
    size, runs, seen = Size(64, 128, 1, 500, 512), [], []

    def counting(graph, inputs):
        return lambda *given: runs.append(graph) or graph.forward(*given)

    torch._dynamo.reset()
    monkeypatch.setattr(torch.nn.Module, "compile", partialmethod(torch.nn.Module.compile, backend=counting))
    monkeypatch.setattr(torch.optim.AdamW, "step", lambda self: seen.append((torch._dynamo.config.error_on_recompile, len(runs))))
    found = updates_of(mbart(size, CPU), size, 1, packed=True, compiled=True)
    assert [strict for strict, _ in seen] == [False] * 3 + [True] * 3 and not torch._dynamo.config.error_on_recompile
    assert [number for _, number in seen] == [at * seen[0][1] for at in range(1, 7)] and seen[0][1] and "calls" not in found


def test_products_that_are_joined_change_nothing():
    network = mbart(SIZE, torch.device("cpu"))
    batch = {name: torch.randint(5, 700, (3, 20)) for name in ("input_ids", "decoder_input_ids", "labels")}
    found = []
    for context in (nullcontext(0), joined_products(network)):
        torch.manual_seed(1)  # for dropout
        with context as saved, Counted() as counted:
            loss = network(**batch, use_cache=False).loss
        loss.backward()
        found.append((saved, counted.calls, loss.detach(), {name: weight.grad for name, weight in network.named_parameters()}))
        network.zero_grad()
    (_, calls, plain, gradients), (saved, fewer, joined, others) = found
    assert saved == 2 * (2 + 2 + 1) and fewer != calls and "forward" not in vars(network.model.encoder.layers[0].self_attn.q_proj)
    torch.testing.assert_close(joined, plain)
    for name, gradient in gradients.items():
        torch.testing.assert_close(others[name], gradient, rtol=1e-4, atol=1e-7, msg=name)


def test_limits_are_those_of_the_operations_that_are_needed():
    rows = [([0] * 23, [0] * 17), ([0] * 9, [0] * 12)]
    alone = limits(SIZE, rows, 46, 1_000, {"tflops": 1.0, "tb_per_s": 1.0})
    together_ = limits(SIZE, [packed(rows)], 46, 1_000, {"tflops": 1.0, "tb_per_s": 1.0})
    operations = training_flops(SIZE, rows)
    assert (alone["products"] + alone["attention"]) * 1e9 == pytest.approx(operations, rel=0.05)
    assert alone == together_ and training_flops(SIZE, [packed(rows)]) == operations
    assert limits(SIZE, rows, 46, 10**9, {"tflops": 1.0, "tb_per_s": 1.0})["optimiser"] == 28.0


def test_limits_of_decoding_are_those_of_what_is_read_and_multiplied():
    """One piece of one row, by hand; of many rows at once, weights are read once."""
    size, best = Size(8, 16, 1, 100, 0), {"tflops": 1.0, "tb_per_s": 1.0}
    weights = 6 * 64 + 2 * 8 * 16 + 8 * 100
    one = decoding_limits(size, [(1, 1)], 1, 1, "float16", best)
    assert one["reading"] == pytest.approx(1e12 / (2 * weights + 4 * 8 * 2))
    assert one["products"] == pytest.approx(1e12 / (2 * (weights + 6 * 64 + 2 * 8 * 16)))
    whole = decoding_limits(size, [(10, 1)], 1, 1, "int8_float16", best)
    assert whole == {"reading": pytest.approx(1e13 / (weights + 10 * 4 * 8 * 2))}


@pytest.mark.parametrize("in_flight", [1, 4])
def test_as_many_batches_are_decoded_as_are_in_flight_four_times(monkeypatch, in_flight):
    found = gpu.decoded_sorted("float32", in_flight, CPU, tiny=True)
    assert found["batches"] >= 4 * in_flight and found["limits_per_s"]["reading"] > 0
    model_and_lines = gpu.decoded_text
    monkeypatch.setattr(gpu, "decoded_text", lambda *given: (lambda model, lines: (model, lines[:3]))(*model_and_lines(*given)))
    with pytest.raises(ValueError, match="3 batches are too few"):
        gpu.decoded_sorted("float32", in_flight, CPU, tiny=True)


@pytest.mark.parametrize(
    "name, kind",
    [
        ("void pytorch_flash::flash_fwd_kernel<...>", "attention"),
        ("fmha_cutlassF_bf16_aligned_64x64_rf_sm80", "attention"),
        ("nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_NNT", "products"),
        ("void at::native::(anonymous namespace)::multi_tensor_apply_kernel<FusedAdamMathFunctor>", "optimiser"),
        ("void at::native::(anonymous namespace)::vectorized_layer_norm_kernel", "normalisation"),
        ("void at::native::(anonymous namespace)::fused_dropout_kernel_vec", "dropout"),
        ("void (anonymous namespace)::cunn_SoftMaxForwardGmem", "loss"),
        ("Memcpy DtoD (Device -> Device)", "copies to and from bfloat16"),
        ("something", "others"),
    ],
)
def test_kinds_of_kernels(name, kind):
    assert kind_of(name) == kind


SAME = {"device": "cpu", "tiny": True, "code": "1"}


def printed(capsys) -> list[dict]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_variants_are_run_in_turn_and_their_medians_printed(tmp_path, capsys):
    order = []
    values = {"a": iter((3, 1, 2)), "b": iter((30, 10, 20))}
    variants = {name: lambda name=name: order.append(name) or {"ms": next(values[name]), "precision": "float32"} for name in values}
    running.run((("g", case) for case in in_rounds("x", variants, 3, 1.0)), CPU, SAME, tmp_path / "o", 1, 60)
    assert order == ["a", "b"] * 3 and [found["round"] for found in lines(tmp_path / "o")] == [1, 1, 2, 2, 3, 3]
    *_, a, b, end = printed(capsys)
    assert (a["case"], a["rounds"], a["median"]["ms"], a["ms_of_all"]) == ("x, a", 3, 2, [3, 1, 2])
    assert b["ms_of_all"] == [30, 10, 20] and end["not_begun"] == []


def test_what_a_machine_lacks_is_named(tmp_path, capsys):
    lacking = [Case("y", dict, ("no_such_package",)), Case("z", dict, ("sys",), program="no-such-program")]
    running.run((("g", case) for case in lacking), CPU, SAME, tmp_path / "other", 1, 60)
    assert [found.get("left_out") for found in printed(capsys)[1:3]] == ["needs no_such_package", "needs no-such-program"]
    assert not (tmp_path / "other").exists()


def test_what_failed_is_tried_again_after_what_was_not_tried_and_all_of_it_if_asked(tmp_path, capsys):
    order, broken = [], {"first", "third"}

    def measure(name):
        order.append(name)
        if name in broken:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return {"ms": 1}

    def call(number, **more):
        order.clear()
        cases = [("g", Case(name, lambda name=name: measure(name))) for name in ("first", "second", "third", "fourth")[:number]]
        running.run(cases, CPU, {**SAME, **more.pop("shared", {})}, tmp_path / "o", 8, 60, **more)
        return order

    assert call(3) == ["first", "second", "third"]
    ended = "OutOfMemoryError: CUDA out of memory"
    assert [found.get("failed") for found in lines(tmp_path / "o")] == [ended, None, ended]
    broken.clear()
    assert call(4) == ["fourth", "first", "third"] and call(4) == []
    assert call(2, shared={"commit": "another", "driver": "another"}) == []  # of the same code
    assert call(2, shared={"code": "2"}) == ["first", "second"]
    assert call(2, again=True) == ["first", "second"]
    capsys.readouterr()


def test_a_case_that_takes_too_long_is_ended_and_one_without_time_is_not_begun(tmp_path, capsys):
    def endless():
        while True:
            with suppress(Exception):
                time.sleep(0.01)

    cases = [
        ("g", Case("endless", endless, seconds=1)),
        ("g", Case("long", dict, seconds=600, round=2)),
        ("a", Case("last", dict, seconds=1)),
    ]
    before = signal.getsignal(signal.SIGALRM)
    running.run(cases, CPU, SAME, tmp_path / "o", 1, 0.1)
    assert [(found["case"], found.get("failed")) for found in lines(tmp_path / "o")] == [
        ("endless", "took more than 0.1 s"),
        ("last", None),
    ]
    assert printed(capsys)[-1]["not_begun"] == ["g: long (round 2)"] and signal.getsignal(signal.SIGALRM) == before


def test_the_first_points_fit_into_eight_minutes_in_their_order():
    """Waiting, kernels, the honest peer, then small trainings; several rounds, but one of what is compiled."""
    assert "".join(gpu.PARTS).startswith("ghai")
    cases = {part: [*gpu.PARTS[part](torch.device("cuda"), False)] for part in "ghai"}
    assert sum(case.seconds for some in cases.values() for case in some) <= 8 * 60
    rounds = Counter(case.name for case in cases["g"])
    assert {rounds[name] for name in rounds if "compiled" not in name and "four" not in name} == {5}
    assert {rounds[name] for name in rounds if "compiled" in name} == {1}
    for part in gpu.PARTS:
        found = [(case.name, case.round) for case in gpu.PARTS[part](torch.device("cuda"), False)]
        assert len(found) == len(set(found)) and all(case.seconds > 0 for case in cases.get(part, []))


@pytest.mark.parametrize("kind", ["recorded", "lora unselected"])
def test_several_trainings_at_once_are_counted_together(kind):
    found = shared.together(kind, (1, 2), CPU, 0.2, tiny=True)["processes"]
    assert [*found] == ["1", "2"] and all(one[speed] > 0 for one in found.values() for speed in shared.SPEEDS)


def test_a_service_for_several_processes_is_ended(tmp_path, monkeypatch):
    program = tmp_path / shared.MPS
    program.write_text(f'#!/bin/sh\necho "$1 $CUDA_MPS_PIPE_DIRECTORY" >> {tmp_path}/said\n[ "$1" ] || cat >> {tmp_path}/said\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    with pytest.raises(KeyError), shared.mps() as environment:
        raise KeyError
    folder = environment["CUDA_MPS_PIPE_DIRECTORY"]
    assert (tmp_path / "said").read_text() == f"-d {folder}\n {folder}\nquit\n" and not Path(folder).exists()


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_it_says_so(capsys):
    with pytest.raises(SystemExit) as end:
        gpu.main([])
    assert end.value.code == 77 and "give --tiny" in capsys.readouterr().err
