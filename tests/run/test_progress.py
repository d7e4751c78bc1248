"""What `make demo` says while it runs: Snakemake itself, with jobs of a few seconds that log like trainings."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
import warm
from test_workflow import ROOT, TINY, lay_out, snakemake, write_config

from workflow_scripts.run import progress
from workflow_scripts.run.progress import Job, Run
from workflow_scripts.training.watching import Progress

PROGRAM = ROOT / "workflow_scripts/run/progress.py"
SNAKEFILE = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from workflow_scripts.run.digest import digest
rule all:
    input: "finetune.done"
rule backbone:
    output: "backbone.done"
    shell: "touch {{output}}"
rule finetune:
    input: "backbone.done"
    output: "{{arm}}.done"
    log: "{{arm}}.log"
    params: settings='{{"updates": 40, "batch_tokens": 100}}'
    shell: "exec {sys.executable} train.py {{params.settings:q}} {{output}} > {{log}} 2>&1"
onerror:
    print(digest(log, sys.argv[1:]), file=sys.stderr)
"""
TRAINING = """
import pathlib, signal, sys, time

def stop(number, _):
    print("stopped with a checkpoint", flush=True)
    pathlib.Path("checkpoint").write_text(str(int(number)))
    sys.exit(1)

signal.signal(signal.SIGTERM, stop)
signal.signal(signal.SIGINT, stop)
if pathlib.Path("bad").exists():
    sys.exit("error: the text is empty; give more")
print("update 10/40  loss 5.0  left 2:30", flush=True)
pathlib.Path("begun").touch()
while not pathlib.Path("go").exists():
    time.sleep(0.05)
pathlib.Path(sys.argv[2]).touch()
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "Snakefile").write_text(SNAKEFILE)
    (tmp_path / "train.py").write_text(TRAINING)
    return tmp_path


def start(folder: Path, *arguments: str, python: str = "", code: str = "pass") -> subprocess.Popen:
    """The program, after some `code`. Snakemake is started with the warm interpreter, or with the one that is named."""
    python = python or warm.python()
    load = f"import sys; sys.path.insert(0, {str(ROOT)!r}); sys.executable = {python!r}; from workflow_scripts.run import progress"
    line = [sys.executable, "-c", f"{load}; {code}; sys.exit(progress.main(sys.argv[1:]))", "--cores", "1", *arguments]
    return subprocess.Popen(line, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def wait_for(path: Path, process: subprocess.Popen) -> None:
    while not path.exists():
        assert process.poll() is None, process.stdout.read()
        time.sleep(0.05)


def test_a_run_is_told_in_plain_lines_and_snakemakes_words_go_into_a_file(folder):
    process = start(folder, code="progress.EVERY = progress.AT_LEAST = 1")  # a line every second
    lines = []
    while not lines or "update" not in lines[-1]:
        lines.append(process.stdout.readline())
        assert lines[-1], lines
    (folder / "go").touch()
    rest = process.stdout.read()
    assert process.wait() == 0
    assert "results/logs/snakemake.log" in lines[0]
    assert "finetuning (finetune; update 10 of 40). 1 of 3 jobs done, about 2 minutes of training left" in lines[-1]
    assert rest.splitlines()[-1].endswith("all 3 jobs done")
    words = (folder / "results/logs/snakemake.log").read_text()
    assert "rule finetune:" in words and "Finished jobid" in words and "jobid" not in "".join(lines) + rest
    assert "nothing to be done" in start(folder).communicate()[0]


def test_a_run_that_stops_shows_the_digest_and_its_status(folder):
    (folder / "bad").touch()
    process = start(folder)
    said, _ = process.communicate()
    assert process.returncode == 1
    assert "──── 1 job failed ────" in said and "change  the text is empty; give more" in said and "To go on: snakemake --cores 1\n" in said
    assert said.splitlines()[-1].endswith("stopped with exit status 1, 1 of 3 jobs done; see results/logs/snakemake.log")
    (folder / "Snakefile").write_text("rule all:\n    input: 'nobody makes it'\n")
    process = start(folder)
    said, _ = process.communicate()
    assert process.returncode == 1 and "MissingInputException" in said and "nobody makes it" in said


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_reaches_the_training_which_writes_its_checkpoint(folder, number):
    process = start(folder, python=sys.executable)  # in whose group of processes the jobs are
    wait_for(folder / "begun", process)
    process.send_signal(number)
    said, _ = process.communicate()
    assert process.returncode and (folder / "checkpoint").read_text() == str(int(number)), said
    assert "stopped with exit status" in said
    (folder / "go").touch()
    assert start(folder).wait() == 0 and (folder / "finetune.done").exists()  # no lock is left behind


def test_a_plan_that_a_signal_ends_has_the_status_of_a_shell():
    code = "import sys; from workflow_scripts.run.progress import Child; Child().output([sys.executable, '-c', {!r}])"
    plan = "import os, signal; os.kill(os.getpid(), signal.SIGTERM)"
    assert subprocess.run([sys.executable, "-c", code.format(plan)], cwd=ROOT).returncode == 128 + signal.SIGTERM


def test_a_run_in_another_folder_is_followed_there(folder):
    elsewhere = folder / "large disk"
    elsewhere.mkdir()
    (folder / "train.py").rename(elsewhere / "train.py")
    process = start(folder, "--directory", str(elsewhere), code="progress.EVERY = progress.AT_LEAST = 1")
    lines = []
    while not lines or "update 10 of 40" not in lines[-1]:
        lines.append(process.stdout.readline())
        assert lines[-1], lines
    (elsewhere / "go").touch()
    assert process.communicate()[0].endswith("all 3 jobs done\n")
    assert "rule finetune:" in (elsewhere / "results/logs/snakemake.log").read_text() and not (folder / "results").exists()


@pytest.mark.parametrize("words", [["-d", "disk"], ["-ddisk"], ["--directory", "disk"], ["--directory=disk"]])
def test_the_folder_is_that_which_snakemake_is_told(words):
    assert progress.folder_of(["--cores", "all", *words, "--configfile", "my.yaml"]) == Path("disk")
    assert progress.folder_of(["--cores", "2", "--dry-run"]) == Path()


@pytest.mark.parametrize("flag", ["-n", "-np"])
def test_a_dry_run_is_snakemakes_own(folder, flag):
    done = subprocess.run([sys.executable, PROGRAM, "--cores", "1", flag], cwd=folder, capture_output=True, text=True)
    said = done.stdout + done.stderr
    assert "rule finetune:" in said and not (folder / "results").exists()


def test_the_plan_of_the_pipeline_has_the_work_of_each_training(tmp_path):
    said = snakemake(
        lay_out(tmp_path / "work"), "--configfile", str(ROOT / "config.yaml"), write_config(tmp_path, TINY), "--cores", "2", "-n", "-p"
    )
    jobs = progress.planned(said)
    work = {f"{rule} {wildcards}": job.work for (rule, wildcards), job in jobs.items() if job.work}
    run = "experiment=tiny, arm={}, seed=1"
    assert work == {
        "backbone backbone=tiny": 20 * 800,
        f"finetune {run.format('finetune')}": 16 * 800,
        f"pretext {run.format('csr')}, phase=pretext": 6 * 800,
        f"finetune {run.format('csr')}": 10 * 800,
    }
    assert {"report", "scores", "lexicon"} <= {rule for rule, _ in jobs}


def a_run(**changes) -> Run:
    """A backbone of which a quarter is done, and two arms that wait, one of them in two phases."""
    backbone = Job("backbone", "backbone=b", work=4000, updates=(10, 40))
    waiting = [
        backbone,
        Job("finetune", "arm=plain", work=2000),
        Job("pretext", "arm=csr", work=500),
        Job("finetune", "arm=csr", work=1500),
    ]
    given = {"waiting": {job.key: job for job in waiting}, "running": {"1": backbone}, "rate": 10.0, **changes}
    return Run(**given)


def test_the_time_left_is_told_once_a_training_says_how_fast_it_is():
    assert progress.training_left(a_run(rate=0.0)) is None
    assert progress.training_left(a_run()) == (3000 + 4000) / 10
    # the arms side by side, but not the backbone; more places than arms are of no use
    assert progress.training_left(a_run(at_once=2)) == progress.training_left(a_run(at_once=8)) == (3000 + 2000) / 10
    other = Job("head_finetune", "experiment=x")
    assert progress.training_left(a_run(waiting={other.key: other})) is None


def test_trainings_that_share_a_gpu_follow_each_other():
    run = a_run(at_once=16)
    progress.read_line(run, 'Provided resources: gpu=Resource("gpu", 1)', 0.0)
    for job in run.waiting.values():
        job.gpus = 1
    assert run.gpus == 1 and progress.training_left(run) == (3000 + 4000) / 10
    run.gpus = 8
    assert progress.training_left(run) == (3000 + 2000) / 10
    for line in ("rule finetune:", "    jobid: 3", "    resources: tmpdir=/tmp, gpu=1, runtime=60"):
        progress.read_line(run, line, 0.0)
    assert run.running["3"].gpus == 1


def test_of_a_backbone_the_block_of_its_kind_counts():
    settings = '{"kind": "%s", "small": {"training": {"updates": 1300, "batch_tokens": 1000}}, "continued": {"training": {"updates": 100, "batch_tokens": 2048}}}'
    said = "rule backbone:\n    jobid: 1\n    wildcards: backbone=x\n    resources: tmpdir=/tmp\nShell command: python --settings "
    for kind, work in (("small", 1_300_000), ("continued", 204_800), ("hub", 0)):
        ((_, job),) = progress.planned(said + settings % kind).items()
        assert job.work == work


def test_a_second_run_leaves_the_log_of_the_first_as_it_is(folder):
    first = start(folder)
    wait_for(folder / "begun", first)
    second, _ = start(folder).communicate()
    assert "another run writes into results/logs/snakemake.log" in second and "locked" in second
    (folder / "go").touch()
    assert first.communicate()[0].splitlines()[-1].endswith("all 3 jobs done")
    assert "Finished jobid" in (folder / "results/logs/snakemake.log").read_text()


def test_the_log_of_an_earlier_run_tells_nothing(tmp_path):
    log = tmp_path / "log"
    log.write_text("update 5/40  loss 5.0  left 1:10\nupdate 20/40  loss 4.0  tokens/s 99  left 0:40\nsomething else\n")
    job = Job("finetune", "arm=csr", str(log), work=4000, begun=log.stat().st_mtime)
    run = Run(running={"1": job})
    progress.look_at_trainings(run)
    assert job.updates == (20, 40) and run.rate == 2000 / 40
    os.utime(log, (job.begun - 100,) * 2)
    assert progress.last_progress(job) is None


def test_what_a_training_prints_is_understood(tmp_path, capsys):
    log = tmp_path / "log"
    said = Progress(10)
    state = SimpleNamespace(global_step=0, max_steps=40)
    said.on_train_begin(None, state, None)
    said.on_log(None, state, None, logs={"eval_loss": 3.25})  # a look that a stopped phase makes up for
    assert capsys.readouterr().out == "update 0/40  eval_loss 3.25\n"
    state.global_step = 30
    said.on_log(None, state, None, logs={"loss": 3.25, "learning_rate": 1e-3})
    log.write_text(capsys.readouterr().out + "continuing\n")
    assert progress.last_progress(Job("finetune", log=str(log)))[:2] == [30, 40]


def test_words():
    job = Job("pretext", "experiment=help-de-en, arm=csr, seed=2", updates=(1200, 1700))
    run = Run(running={"1": job, "2": Job("of_a_new_kind"), **{str(n): Job("scores", f"seed={n}") for n in range(3, 6)}}, steps=(9, 44))
    assert progress.line_about(run) == (
        "training the pretext task (help-de-en, csr, seed 2; update 1,200 of 1,700); of a new kind; scoring (3 jobs). 9 of 44 jobs done"
    )
    assert [progress.rounded(s) for s in (20, 89, 600, 7300, 90_000)] == ["1 minute", "1 minute", "10 minutes", "2.0 hours", "25 hours"]
    assert [progress.clock(s) for s in (5, 754.3, 3725)] == [" 0:05", "12:34", "1:02:05"]


def test_make_calls_it_unless_it_is_told_to_show_everything(tmp_path):
    def said(*arguments):
        return subprocess.run(
            ["make", "-n", "-o", ".venv/.complete", *arguments], cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout

    for target in ("demo", "resume"):
        assert f'exec python "{PROGRAM}" --cores all' in said(target)
        assert "exec snakemake --cores all" in said(target, "VERBOSE=1")
    assert f'exec python "{PROGRAM}"  --profile slurm' in said("resume", "ARGS=--profile slurm")


def test_the_rules_that_have_words_are_there():
    rules = {
        line.split()[1].rstrip(":")
        for path in (ROOT / "rules").glob("*.smk")
        for line in path.read_text().splitlines()
        if line.startswith("rule ")
    }
    assert progress.DOING.keys() <= rules
