"""Two experiments whose models translate each other's test sets; then what goes wrong, and a grid: what was done stays."""

import contextlib
import copy
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
import torch
import warm
import yaml
from phases import assert_same
from safetensors.torch import load_file
from test_workflow import LINES, ROOT, TINY, lay_out, planned, shipped_lines, snakemake, write_config

from workflow_scripts.stage import read_json, read_rows
from workflow_scripts.text.corpus import leak_key
from workflow_scripts.text.files import read_lines


def two_languages() -> dict:
    """Tiny experiments in German and Spanish to English on a shared backbone, whose models translate each other's test sets."""
    corpus, backbone = TINY["corpora"]["tiny"], TINY["backbones"]["tiny"]
    experiment = {**TINY["experiments"]["tiny"], "lexicon": "given"}
    spanish = {"languages": ["en", "es"], "train": {"file": "spanish.tsv", "columns": {"document": 1, "en": 3, "es": 4}}}
    small = {**backbone["small"], "text": {**backbone["small"]["text"], "es": "task"}, "disjoint": False}
    return copy.deepcopy(
        {
            **TINY,
            "run": {"experiments": ["tiny", "spanish"], "arms": ["finetune"], "seeds": [1], "zero_shot": True},
            "corpora": {"tiny": corpus, "spanish": {**corpus, **spanish}},
            "lexicons": {
                "given": {
                    "mapping": {"mode": "dictionary"},
                    "dictionary": {"en-de": "german.txt", "en-es": "spanish.txt"},
                    "lexicon": {"align": False},
                }
            },
            "backbones": {"tiny": {**backbone, "small": small}},
            "experiments": {"tiny": experiment, "spanish": {**experiment, "corpus": "spanish", "source": "es"}},
        }
    )


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """A folder (with a blank in its name) in which both have run."""
    folder = lay_out(tmp_path_factory.mktemp("work") / "a folder")
    (folder / "spanish.tsv").write_text(shipped_lines("libreoffice-help/en-es.tsv.xz", 4000, LINES), encoding="utf-8")
    (folder / "german.txt").write_text("file datei\nwindow fenster\nthe die\nand und\n", encoding="utf-8")
    (folder / "spanish.txt").write_text("file archivo\nwindow ventana\nthe el\nand y\n", encoding="utf-8")
    snakemake(folder, "--configfile", str(ROOT / "config.yaml"), write_config(folder, two_languages()), "--cores", "2")
    return folder


def test_the_matrix_is_in_report_and_table(done):
    page = (done / "results/report.html").read_text(encoding="utf-8")
    assert 'id="zero-shot"' in page and "This part could not be made" not in page
    rows = [row for row in read_rows(done / "results/scores.tsv") if row["metric"] == "BLEU"]
    assert {(row["experiment"], row["testset"], row["direction"]) for row in rows} == {
        ("tiny", "pages", "de-en"),
        ("tiny", "spanish@pages", "es-en"),
        ("spanish", "pages", "es-en"),
        ("spanish", "tiny@pages", "de-en"),
    }


def test_the_other_test_set_is_read_in_its_own_language(done):
    run = done / "results/runs/tiny/finetune/seed1"
    own, other = (len(list(read_lines(run / f"{name}.hyp"))) for name in ("pages", "spanish@pages"))
    references = [len(list(read_lines(done / f"results/corpora/{name}/test/pages.en"))) for name in ("tiny.en-de", "spanish.en-es")]
    assert [own, other] == references
    log = (done / "results/logs/decoding/tiny/finetune.seed1.spanish@pages.log").read_text(encoding="utf-8")
    assert "Traceback" not in log


def test_no_training_text_has_a_reference_of_the_others_test_set(done):
    corpora = done / "results/corpora"
    for corpus, other in (("tiny.en-de", "spanish.en-es"), ("spanish.en-es", "tiny.en-de")):
        learnt = {leak_key(line) for line in read_lines(corpora / corpus / "train.en")}
        assert not learnt & {leak_key(line) for line in read_lines(corpora / other / "test/pages.en")}
        assert list(json.loads((corpora / corpus / "corpus.json").read_text(encoding="utf-8"))["held_out"]) == ["dev", "pages"]


def test_nothing_is_trained_for_it(done):
    arguments = ["--configfile", str(ROOT / "config.yaml"), write_config(done, two_languages()), "--cores", "2"]
    report = done / "results/report.html"
    set_aside = {path: done / f"{number}" for number, path in enumerate([report, *(done / "results/runs").rglob("*@pages*.*")])}
    for path, aside in set_aside.items():
        path.rename(aside)
    said = snakemake(done, *arguments, "-n")
    for path, aside in set_aside.items():
        aside.rename(path)
    assert planned(said) == {"decoding", "trivial", "scores", "significance", "significance_over_seeds", "report", "all"}


def pausing(folder: Path, update: int) -> dict[str, str]:
    """An environment in which a phase of training stops, as if by Ctrl-Z, once it has logged `update`."""
    folder.mkdir()
    words = shlex.join([sys.executable, str(ROOT / "tests/signalled.py"), f"update {update}/", str(int(signal.SIGSTOP))])
    (folder / "python").write_text(f'#!/bin/sh\nexec {words} "$@"\n')
    (folder / "python").chmod(0o755)
    return {**os.environ, "PATH": os.pathsep.join([str(folder), str(Path(sys.executable).parent), os.environ["PATH"]])}


def paused(driver: subprocess.Popen, phase: Path) -> int:
    """The process that trains in the folder of a phase, when it has stopped."""
    lock = phase / "checkpoints/lock"
    while True:
        assert driver.poll() is None
        with contextlib.suppress(FileNotFoundError, IndexError):
            trainer = int(lock.read_text().split()[1])
            if psutil.Process(trainer).status() == psutil.STATUS_STOPPED:
                return trainer
        time.sleep(0.05)


def test_a_killed_run_goes_on_to_the_same_weights(done, tmp_path):
    content = two_languages()
    content["arms"]["finetune"] = [{"data": "task", "updates": 30}]
    content["run"]["seeds"] = [2]
    content["experiments"]["tiny"]["training"].update({"evaluate_every": 10, "bleu_sentences": 0})
    arguments = ["--cores", "2", "--configfile", str(ROOT / "config.yaml"), write_config(done, content)]
    folder = done / "results/runs/tiny/finetune/seed2/finetune"
    target = "results/runs/tiny/finetune/seed2/finetune/model"
    snakemake(done, target, *arguments)
    whole = load_file(folder / "model/model.safetensors")
    shutil.rmtree(folder)
    environment = pausing(tmp_path / "bin", 22)
    command = [sys.executable, "-m", "snakemake", "-s", str(ROOT / "Snakefile"), "--directory", str(done), target, *arguments]
    killed = subprocess.Popen(
        command, cwd=ROOT, env=environment, start_new_session=True, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    paused(killed, folder)
    os.killpg(killed.pid, signal.SIGKILL)
    killed.wait()
    assert not (folder / "model").exists()
    snakemake(done, "--unlock", *arguments)
    snakemake(done, target, *arguments)
    assert "continuing from" in (done / "results/logs/training/tiny/finetune.seed2.finetune.log").read_text()
    again = load_file(folder / "model/model.safetensors")
    assert_same(whole, again)


def test_what_a_killed_driver_leaves_behind_is_stopped_and_its_work_continued(done, tmp_path):
    """And a second driver is refused while the first one lives."""
    content = two_languages()
    content["arms"]["finetune"] = [{"data": "task", "updates": 30}]
    content["run"]["seeds"] = [3]
    content["experiments"]["tiny"]["training"].update({"evaluate_every": 15, "bleu_sentences": 0})
    for name in ("Snakefile", "rules", "workflow_scripts", "profiles", "envs", "Makefile"):
        (done / name).symlink_to(ROOT / name)
    (done / "config.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")
    (done / "venv/bin").mkdir(parents=True)
    (done / "venv/bin/activate").write_text(f'export PATH="$PWD/venv/bin:{warm.path()}"\n')
    (done / "venv/bin/snakemake").write_text('#!/bin/sh\nexec python -m snakemake "$@"\n')
    (done / "venv/bin/snakemake").chmod(0o755)
    (done / "venv/.complete").touch()
    folder = done / "results/runs/tiny/finetune/seed3/finetune"
    target = "results/runs/tiny/finetune/seed3/finetune/model"

    def call(*command):
        run = subprocess.run(command, cwd=done, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        return run.returncode, run.stdout + run.stderr

    resume = ["make", "resume", "VENV=venv", "VERBOSE=1", f"ARGS={target}"]
    environment = pausing(tmp_path / "bin", 22)
    own = Path(sys.executable).with_name("snakemake")
    driver = subprocess.Popen([own, "--cores", "2", target], cwd=done, env=environment, stderr=subprocess.DEVNULL)
    trainer = paused(driver, folder)  # while others try
    status, said = call(warm.python(), "-m", "snakemake", "--cores", "2", target)
    assert status and "Directory cannot be locked" in said
    status, said = call(*resume)
    assert status and f"snakemake is at work here (process {driver.pid}); stop it first" in said
    assert driver.poll() is None
    driver.kill()
    driver.wait()
    resumed = subprocess.Popen(resume, cwd=done, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, stdin=subprocess.DEVNULL)
    said = ""
    for row in resumed.stdout:
        said += row
        if row.startswith("stopping process"):
            os.kill(trainer, signal.SIGCONT)
    status = resumed.wait()
    assert status == 0 and f"stopping process {trainer}, which the killed run has left behind" in said, said[-3000:]
    assert planned(said) == {"finetune"} and (folder / "model/model.safetensors").exists()
    assert "continuing from" in (done / "results/logs/training/tiny/finetune.seed3.finetune.log").read_text()


def test_what_is_lost_is_made_again_and_the_scores_stay(done):
    """What is needed, at once; what finished work was made from, by its name. A dry run says why."""
    arguments = ["--configfile", str(ROOT / "config.yaml"), write_config(done, two_languages()), "--cores", "2"]
    snakemake(done, *arguments)
    run = done / "results/runs/tiny/finetune/seed1"
    hypotheses, table, model = run / "pages.hyp", done / "results/scores.tsv", run / "finetune/model"
    before = hypotheses.read_bytes(), table.read_bytes(), load_file(model / "model.safetensors")
    for lost in (hypotheses, table, done / "results/runs/spanish/finetune/seed1/tiny@pages.scores.json"):
        lost.unlink()
    shutil.rmtree(model)
    said = snakemake(done, *arguments, "-n")
    assert planned(said) == {"scores", "report", "all"}
    assert "reason: Missing output files: results/runs/spanish/finetune/seed1/tiny@pages.scores.json" in said
    said = snakemake(done, str(hypotheses.relative_to(done)), *arguments)
    assert planned(said) == {"finetune", "decoding"}
    assert "continuing from" in (done / "results/logs/training/tiny/finetune.seed1.finetune.log").read_text()
    snakemake(done, *arguments)
    assert before[:2] == (hypotheses.read_bytes(), table.read_bytes())
    again = load_file(model / "model.safetensors")
    assert before[2].keys() == again.keys() and all(torch.equal(before[2][name], again[name]) for name in again)


def test_each_arm_chooses_from_the_grid_on_dev_and_trains_nothing_twice(done):
    content = two_languages()
    content["run"] |= {"experiments": ["swept", "spanish"], "arms": ["finetune", "csr"], "seeds": [1, 2]}
    swept = content["experiments"]["swept"] = content["experiments"].pop("tiny")
    swept["training"] = {**swept["training"], "learning_rate": [0.0001, 1e6, 0.005], "bleu_sentences": 0}
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
