"""The whole workflow after something went wrong, and with a grid: what was done stays, and what is lost is made again."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
import yaml
from safetensors.torch import load_file
from test_workflow import ROOT, TINY, changed, lay_out, planned, snakemake, write_config

from workflow_scripts.stage import read_json


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """A folder (with a blank in its name) in which the tiny experiment has run."""
    folder = lay_out(tmp_path_factory.mktemp("work") / "a folder")
    snakemake(folder, "--configfile", str(ROOT / "config.yaml"), write_config(folder, TINY), "--cores", "2")
    return folder


def test_a_killed_run_goes_on_to_the_same_weights(done):
    content = changed("arms/finetune", [{"data": "task", "updates": 60}])
    content["run"] = {**content["run"], "arms": ["finetune"], "seeds": [2]}
    content["experiments"]["tiny"]["training"].update({"evaluate_every": 10, "bleu_sentences": 0})
    arguments = ["--cores", "2", "--configfile", str(ROOT / "config.yaml"), write_config(done, content)]
    folder = done / "results/runs/tiny/finetune/seed2/finetune"
    target = "results/runs/tiny/finetune/seed2/finetune/model"
    snakemake(done, target, *arguments)
    whole = load_file(folder / "model/model.safetensors")
    shutil.rmtree(folder)
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    command = [sys.executable, "-m", "snakemake", "-s", str(ROOT / "Snakefile"), "--directory", str(done), target, *arguments]
    killed = subprocess.Popen(
        command, cwd=ROOT, env=environment, start_new_session=True, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    while not list(folder.glob("checkpoints/*/checkpoint-20/trainer_state.json")):
        assert killed.poll() is None
        time.sleep(0.02)
    os.killpg(killed.pid, signal.SIGKILL)
    killed.wait()
    assert not (folder / "model").exists()
    snakemake(done, "--unlock", *arguments)
    snakemake(done, target, *arguments)
    assert "continuing from" in (done / "results/logs/training/tiny/finetune.seed2.finetune.log").read_text()
    again = load_file(folder / "model/model.safetensors")
    assert whole.keys() == again.keys() and all(torch.equal(whole[name], again[name]) for name in whole)


def test_what_a_killed_driver_leaves_behind_is_stopped_and_its_work_continued(done):
    """And a second driver is refused while the first one lives."""
    content = changed("arms/finetune", [{"data": "task", "updates": 200}])
    content["run"] = {**content["run"], "arms": ["finetune"], "seeds": [3]}
    content["experiments"]["tiny"]["training"].update({"evaluate_every": 20, "bleu_sentences": 0})
    for name in ("Snakefile", "rules", "workflow_scripts", "profiles", "envs", "Makefile"):
        (done / name).symlink_to(ROOT / name)
    (done / "config.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")
    programs = Path(sys.executable).parent
    (done / "venv/bin").mkdir(parents=True)
    (done / "venv/bin/activate").write_text(f'export PATH="{programs}:$PATH"\n')
    (done / "venv/.complete").touch()
    folder = done / "results/runs/tiny/finetune/seed3/finetune"
    target = "results/runs/tiny/finetune/seed3/finetune/model"

    def call(*command):
        run = subprocess.run(command, cwd=done, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        return run.returncode, run.stdout + run.stderr

    resume = ["make", "resume", "VENV=venv", f"ARGS={target}"]
    environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"}
    driver = subprocess.Popen([programs / "snakemake", "--cores", "2", target], cwd=done, env=environment, stderr=subprocess.DEVNULL)
    while not list(folder.glob("checkpoints/*/checkpoint-20/trainer_state.json")):
        assert driver.poll() is None
        time.sleep(0.02)
    trainer = int((folder / "checkpoints/lock").read_text().split()[1])
    os.kill(trainer, signal.SIGSTOP)  # while others try
    status, said = call(programs / "snakemake", "--cores", "2", target)
    assert status and "Directory cannot be locked" in said
    status, said = call(*resume)
    assert status and f"snakemake is at work here (process {driver.pid}); stop it first" in said
    assert driver.poll() is None
    driver.kill()
    driver.wait()
    os.kill(trainer, signal.SIGCONT)
    status, said = call(*resume)
    assert status == 0 and f"stopping process {trainer}, which the killed run has left behind" in said, said[-3000:]
    assert planned(said) == {"finetune"} and (folder / "model/model.safetensors").exists()
    assert "continuing from" in (done / "results/logs/training/tiny/finetune.seed3.finetune.log").read_text()


def test_what_is_lost_is_made_again_and_the_scores_stay(done):
    """What is needed, at once; what finished work was made from, by its name. A dry run says why."""
    arguments = ["--configfile", str(ROOT / "config.yaml"), write_config(done, TINY), "--cores", "2"]
    snakemake(done, *arguments)
    run = done / "results/runs/tiny/csr/seed1"
    hypotheses, table, model = run / "pages.hyp", done / "results/scores.tsv", run / "finetune/model"
    before = hypotheses.read_bytes(), table.read_bytes(), load_file(model / "model.safetensors")
    for lost in (hypotheses, table, done / "results/runs/tiny/mask/seed1/pages.scores.json"):
        lost.unlink()
    shutil.rmtree(model)
    said = snakemake(done, *arguments, "-n")
    assert planned(said) == {"scores", "report", "all"}
    assert "reason: Missing output files: results/runs/tiny/mask/seed1/pages.scores.json" in said
    said = snakemake(done, str(hypotheses.relative_to(done)), *arguments)
    assert planned(said) == {"finetune", "decoding"}
    assert "continuing from" in (done / "results/logs/training/tiny/csr.seed1.finetune.log").read_text()
    snakemake(done, *arguments)
    assert before[:2] == (hypotheses.read_bytes(), table.read_bytes())
    again = load_file(model / "model.safetensors")
    assert before[2].keys() == again.keys() and all(torch.equal(before[2][name], again[name]) for name in again)


def test_each_arm_chooses_from_the_grid_on_dev_and_trains_nothing_twice(done):
    content = changed("run", {"experiments": ["swept"], "arms": ["finetune", "csr"], "seeds": [1, 2]})
    swept = content["experiments"]["swept"] = content["experiments"].pop("tiny")
    swept["training"] |= {"learning_rate": [0.0001, 1e6, 0.005], "bleu_sentences": 0}
    swept["choice"] = {"by": "dev_loss"}
    content["arms"]["csr"][0]["training"] = {"learning_rate": 0.004}
    arguments = ["--cores", "2", "--configfile", str(ROOT / "config.yaml"), write_config(done, content)]
    models = [f"results/runs/swept/csr/seed{seed}/finetune/model" for seed in (1, 2)]
    snakemake(done, *models, *arguments)
    run = done / "results/runs/swept"
    choice = read_json(run / "csr/choice.json")
    losses = [point["dev_loss"] for point in choice["points"]]
    assert choice["chosen"] == 2 and losses[2] < losses[0] and "diverged" in choice["points"][1]["diverged"]
    # one pretext phase for all points, as they differ in the finetune phase alone
    assert [path.parent.name for path in run.glob("csr.grid*/seed1/pretext/model/model.safetensors")] == ["model"]
    assert read_json(run / "csr/seed1/pretext/training.json")["settings"]["learning_rate"] == 0.004
    for seed in (1, 2):
        assert read_json(run / f"csr/seed{seed}/finetune/training.json")["settings"]["learning_rate"] == 0.005
    chosen, first = (load_file(run / f"{arm}/seed1/finetune/model/model.safetensors") for arm in ("csr.grid2", "csr"))
    assert all(torch.equal(chosen[name], first[name]) for name in chosen)
    said = (done / "results/logs/training/swept/csr.seed1.finetune.log").read_text()
    assert "continuing from results/runs/swept/csr.grid2" in said and "update 2/10" not in said
    assert "continuing" not in (done / "results/logs/training/swept/csr.seed2.finetune.log").read_text()
