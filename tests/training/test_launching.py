"""Training on several GPUs and nodes: what is started, and two processes that are two nodes."""

import json
import socket
import subprocess
import sys
import time

import pytest
import torch
import warm
from safetensors.torch import load_file
from test_backbone import flags, parallel, run, small

from workflow_scripts.stage import read_json
from workflow_scripts.training import launching
from workflow_scripts.training.backbone import Backbone
from workflow_scripts.training.checkpoints import JOB_END, Deadline
from workflow_scripts.training.pretraining_settings import Veco
from workflow_scripts.training.settings import Training


@pytest.fixture
def started(monkeypatch):
    """What would have been started, of a job that nobody gave a GPU."""
    called = []
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 8)
    monkeypatch.setattr(launching.os, "execv", lambda *arguments: called.append(arguments))
    monkeypatch.setattr(launching.os, "execvpe", lambda *arguments: called.append(arguments))
    monkeypatch.setattr(launching, "first_node", lambda: "node1")
    monkeypatch.setattr(sys, "argv", ["training", "translate", "--seed", "1"])
    for name in ("WORLD_SIZE", "SLURM_JOB_GPUS", "SLURM_STEP_GPUS", "CUDA_VISIBLE_DEVICES", "SLURM_JOB_NUM_NODES"):
        monkeypatch.delenv(name, raising=False)
    return called


def test_several_gpus_are_shared_by_torchrun(started, monkeypatch):
    launching.launch("some.module")
    assert not started  # nobody gave them to this job
    monkeypatch.setenv("SLURM_JOB_GPUS", "0,1,2,3,4,5,6,7")
    launching.launch("some.module")
    *torchrun, processes = started[0][1][1:11]
    assert torchrun == ["-m", "torch.distributed.run", *launching.ON_ONE_NODE, "--nproc-per-node"] and processes == "8"
    assert started[0][1][11:] == ["--shutdown-timeout", "300", "-m", "--", "some.module", "translate", "--seed", "1"]
    monkeypatch.setenv("WORLD_SIZE", "8")
    launching.launch("some.module")
    assert len(started) == 1


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"updates": 5, "device": "cpu"}, True),
        ({"updates": 5, "device": "auto"}, False),
        ({"kind": "continued", "small": {"training": {"device": "cpu"}}, "continued": {"training": {"device": "auto"}}}, False),
        ({"kind": "small", "small": {"training": {"device": "cpu"}}, "continued": {"training": {"device": "auto"}}}, True),
    ],
)
def test_what_is_trained_on_a_cpu_has_one_process(settings, expected):
    assert launching.trains_on_cpu(["translate", "--settings", json.dumps(settings), "--seed", "1"]) is expected


@pytest.mark.parametrize(
    ("said", "status", "end"),
    [("2026-11-27T01:20:00", 0, time.mktime((2026, 11, 27, 1, 20, 0, 0, 0, -1))), ("NONE", 0, None), ("2026-11-27T01:20:00", 1, None)],
)
def test_the_end_of_a_slurm_job_is_handed_on(started, commands, monkeypatch, said, status, end):
    commands("squeue", said, status)
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    monkeypatch.setenv(JOB_END, "")
    launching.launch("some.module")
    assert Deadline().end == end


def test_settings_are_read_however_they_are_written():
    assert launching.settings_in(["--settings", '{"kind":"small"}']) == {"kind": "small"} and launching.settings_in(["backbone"]) == {}


def test_settings_that_are_no_object_are_left_to_the_stage():
    for given in (['{"kind'], [], ["[1]"]):
        arguments = ["--settings", *given]
        assert launching.settings_in(arguments) == {} and not launching.trains_on_cpu(arguments)
    command = [sys.executable, "-m", "workflow_scripts.training.backbone", "--settings", '{"kind']
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and done.stderr.startswith("error: ") and "Traceback" not in done.stderr


def test_several_nodes_have_a_torchrun_each(started, monkeypatch):
    job = {"JOB_GPUS": "0,1", "JOB_NUM_NODES": "4", "JOB_ID": "70123", "JOB_END_TIME": "9", "NTASKS": "1", "NTASKS_PER_NODE": "1"}
    for name, value in job.items():
        monkeypatch.setenv(f"SLURM_{name}", value)
    launching.launch("some.module")
    ((program, line, environment),) = started
    assert program == "srun" and line[line.index("--nodes") + 1] == "4" and line[line.index("--ntasks-per-node") + 1] == "1"
    assert line[line.index("--nnodes") + 1] == "4" and line[line.index("--nproc-per-node") + 1] == "8"
    assert line[line.index("--rdzv-endpoint") + 1] == "node1:20123" and line[-4:] == ["some.module", "translate", "--seed", "1"]
    assert "SLURM_JOB_ID" in environment and not any(name.startswith("SLURM_NTASKS") for name in environment)


def test_where_slurm_does_not_say_which_node_is_the_first_one_line_says_so(monkeypatch, commands, tmp_path):
    monkeypatch.setenv("SLURM_JOB_NODELIST", "node[1-2]")
    commands("scontrol", "node1\nnode2\n")
    assert launching.first_node() == "node1"
    commands("scontrol", "", 1)
    with pytest.raises(SystemExit, match=r"error: the job has several nodes \(node\[1-2\]\), but scontrol is not to be found"):
        launching.first_node()
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SystemExit, match="put Slurm's programs on the PATH"):
        launching.first_node()


def test_two_processes_that_are_two_nodes_pretrain_a_veco_as_one_does(tmp_path):
    parallel(tmp_path)
    settings = Training(
        updates=6, batch_tokens=600, learning_rate=3e-3, warmup_updates=2, dropout=0.0, attention_dropout=0.0, max_length=64
    )
    settings.evaluate_every, settings.log_every, settings.checkpoint, settings.averaged = 3, 1, "average", 2
    made = small(tmp_path, training=settings, veco=Veco(cross_attention_first=2))
    block = Backbone(kind="small", family="xlmr", objective="veco", small=made)
    one = run(tmp_path, block)
    alone = (tmp_path / "out").rename(tmp_path / "one")
    out = tmp_path / "out"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        meeting = f"127.0.0.1:{free.getsockname()[1]}"
    line = launching.across_nodes("workflow_scripts.training.backbone", flags(tmp_path, block), 2, 1, "node1", "1")
    line = line[line.index(sys.executable) :]  # what srun starts on each node
    at = line.index("--rdzv-endpoint")
    line[at : at + 2] = ["--rdzv-endpoint", meeting, "--local-addr", "127.0.0.1"]  # this machine may not know its own name
    at = line.index("workflow_scripts.training.backbone")
    assert line[at - 2 : at] == ["-m", "--"]
    line[at - 2 : at] = ["--no-python", "--", warm.python(), "-m"]  # the same processes, sooner
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True, "env": warm.environment()}
    nodes = [subprocess.Popen(line, **options) for _ in range(2)]
    said = [node.communicate()[0] for node in nodes]
    assert [node.returncode for node in nodes] == [0, 0], said[0][-3000:] + said[1][-3000:]
    two = read_json(out / "backbone.json")
    assert two["veco_loss"] == pytest.approx(one["veco_loss"], rel=1e-3) and (out / "model/bart/config.json").exists()
    weights, wanted = (load_file(folder / "model/model.safetensors") for folder in (out, alone))
    start = load_file(next(alone.glob("c/*/checkpoint-3")) / "model.safetensors")
    for name, weight in wanted.items():
        moved = float((weight - start[name]).abs().max())
        assert torch.allclose(weights[name], weight, atol=moved / 20 + 1e-6), name
    assert len(next(out.glob("c/*/log.jsonl")).read_text().splitlines()) == len(next(alone.glob("c/*/log.jsonl")).read_text().splitlines())
