"""What `make demo` says while it runs: Snakemake itself, with jobs of a few seconds that log like trainings."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import warm
from test_workflow import ROOT

from workflow_scripts.run import progress
from workflow_scripts.run.schedule import PlannedJob, Run

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
print("update 10/40  eval_loss 4.2  eval_bleu 7.65  left 2:30", flush=True)
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


def test_a_run_is_described_in_plain_lines_and_snakemakes_words_go_into_a_file(folder):
    process = start(folder, code="progress.EVERY = progress.AT_LEAST = 1")  # a line every second
    lines = []
    while not lines or "10 of 40 updates" not in lines[-1]:
        lines.append(process.stdout.readline())
        assert lines[-1], lines
    (folder / "go").touch()
    rest = process.stdout.read()
    assert process.wait() == 0
    said = "".join(lines) + rest
    assert "results/logs/snakemake.log" in said and "finetune 10 of 40, dev BLEU 7.7\n" in said
    assert re.search(r"finetune: finetuning, 10 of 40 updates\n$", lines[-1])
    assert re.search(r"^all done in \d+:\d\d$", rest, flags=re.M)
    assert max(len(line) for line in said.splitlines()) <= 100
    words = (folder / "results/logs/snakemake.log").read_text()
    assert "rule finetune:" in words and "Finished jobid" in words and "jobid" not in said
    assert "nothing to be done" in start(folder).communicate()[0]


def test_a_run_that_stops_shows_the_digest_and_its_status(folder):
    (folder / "bad").touch()
    process = start(folder)
    said, _ = process.communicate()
    assert process.returncode == 1
    assert "──── 1 job failed ────" in said and "change  the text is empty; give more" in said
    # what goes on is what was called, without what progress adds
    assert re.search(r"^To go on: snakemake --cores 1$", said, flags=re.M)
    assert re.search(r"^stopped after \d+:\d\d with exit status 1, 1 of 3 jobs done; see results/logs/snakemake.log$", said, flags=re.M)
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
    assert re.search(r"^stopped after .* with exit status", said, flags=re.M)
    (folder / "go").touch()
    assert start(folder).wait() == 0 and (folder / "finetune.done").exists()  # no lock is left behind


def test_a_plan_that_a_signal_ends_has_the_status_of_a_shell():
    code = "import sys; from workflow_scripts.run.processes import Child; Child().output([sys.executable, '-c', {!r}])"
    plan = "import os, signal; os.kill(os.getpid(), signal.SIGTERM)"
    assert subprocess.run([sys.executable, "-c", code.format(plan)], cwd=ROOT).returncode == 128 + signal.SIGTERM


def test_a_run_in_another_folder_is_followed_there(folder):
    elsewhere = folder / "large disk"
    elsewhere.mkdir()
    (folder / "train.py").rename(elsewhere / "train.py")
    process = start(folder, "--directory", str(elsewhere), code="progress.EVERY = progress.AT_LEAST = 1")
    lines = []
    while not lines or "10 of 40 updates" not in lines[-1]:
        lines.append(process.stdout.readline())
        assert lines[-1], lines
    (elsewhere / "go").touch()
    process.communicate()
    assert process.returncode == 0
    assert "rule finetune:" in (elsewhere / "results/logs/snakemake.log").read_text() and not (folder / "results").exists()


@pytest.mark.parametrize("words", [["-d", "disk"], ["-ddisk"], ["--directory", "disk"], ["--directory=disk"]])
def test_the_folder_is_that_which_snakemake_is_given(words):
    assert progress.folder_of(["--cores", "all", *words, "--configfile", "my.yaml"]) == Path("disk")
    assert progress.folder_of(["--cores", "2", "--dry-run"]) == Path()


@pytest.mark.parametrize("flag", ["-n", "-np"])
def test_a_dry_run_is_snakemakes_own(folder, flag):
    done = warm.run([warm.python(), "-m", "workflow_scripts.run.progress", "--cores", "1", flag], cwd=folder)
    said = done.stdout + done.stderr
    assert "rule finetune:" in said and not (folder / "results").exists()


def test_a_second_run_leaves_the_log_of_the_first_as_it_is(folder):
    first = start(folder)
    wait_for(folder / "begun", first)
    second, _ = start(folder).communicate()
    assert "another run writes into results/logs/snakemake.log" in second and "locked" in second
    (folder / "go").touch()
    assert "all done in" in first.communicate()[0]
    assert "Finished jobid" in (folder / "results/logs/snakemake.log").read_text()


def test_make_calls_it_unless_it_is_asked_to_show_everything(tmp_path):
    def said(*arguments):
        return subprocess.run(
            ["make", "-n", "-o", ".venv/.complete", *arguments], cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout

    for target in ("demo", "resume"):
        assert f'exec env PYTHONSAFEPATH=1 PYTHONPATH="{ROOT}" python -m workflow_scripts.run.progress --cores all' in said(target)
        assert "exec snakemake --cores all" in said(target, "VERBOSE=1")
    assert "python -m workflow_scripts.run.progress  --profile slurm" in said("resume", "ARGS=--profile slurm")


def test_pages_on_what_is_there_take_a_tenth_of_the_time_since_the_start(tmp_path, monkeypatch):
    (tmp_path / "results").mkdir()
    (tmp_path / "results/configuration.json").touch()
    pages = []

    def half_a_second(*_, **__):
        pages.append(
            subprocess.Popen([sys.executable, "-c", "import time\nwhile time.process_time() < 0.5: pass\nimport sys; sys.exit(1)"])
        )
        return pages[-1]

    monkeypatch.setattr(progress, "beside", half_a_second)
    state = progress.ProgressState(Run(tmp_path), tmp_path, time.time())

    def tended(seconds):
        state.began, state.page_due = time.time() - seconds, True
        progress.tend_page(state)
        return len(pages)

    assert tended(0) == 1  # the first page is made at once
    assert tended(1000) == 1  # one at a time
    os.waitid(os.P_PID, pages[0].pid, os.WEXITED | os.WNOWAIT)
    assert tended(4) == 1 and state.page is None and 0.45 < state.page_seconds < 1
    state.answers.add(("an answer",))
    assert tended(15) == 2
    assert os.getpriority(os.PRIO_PROCESS, pages[1].pid) == min(19, os.getpriority(os.PRIO_PROCESS, 0) + 10)
    pages[1].wait()


def test_what_the_run_takes_is_announced_once_it_was_seen_how_much_other_programs_leave(tmp_path, capsys):
    trainings = [PlannedJob("finetune", {"arm": arm}, priority=priority, work=3_000_000) for arm, priority in (("csr", 11), ("mask", 5))]
    run = Run(tmp_path, jobs={job.key: job for job in trainings}, pace=5000.0)
    state = progress.ProgressState(run, tmp_path, time.time(), update=0.1, measured=time.time())
    progress.watch_load(state, os.getpid())
    assert state.load.threads or not Path("/proc/self/schedstat").exists()
    run.share = 0.25
    progress.announce_time(state)
    assert capsys.readouterr().out == ""
    state.measured -= progress.WATCHED
    progress.announce_time(state)
    said = "an update takes 0.10 s here, 0.40 s beside other programs: the first answer in about 40 minutes, everything in about 80 minutes"
    assert " ".join(capsys.readouterr().out.split()[1:]) == said
    progress.announce_time(state)
    assert capsys.readouterr().out == ""


def test_results_that_are_no_folder_are_one_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    results = tmp_path / "results"
    results.symlink_to("/not/there")
    assert progress.main(["--cores", "1"]) == 1
    assert capsys.readouterr().out == "error: results is a link to /not/there, which is not there; make that folder, or remove the link\n"
    results.unlink()
    results.touch()
    assert progress.main(["--cores", "1"]) == 1
    assert capsys.readouterr().out.splitlines() == ["error: results/logs: a part of this path is a file where a folder should be"]
