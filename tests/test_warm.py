"""What is called through the server gives what a process of its own gives."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress

import psutil
import pytest
import warm
from calling import relevant, stands_in
from phases import TINY, assert_same, phase_files
from safetensors.torch import load_file
from test_checkpoints import command

pytestmark = pytest.mark.skipif("CROSSGAP_WARM" not in os.environ, reason="the server forks, which is tried on Linux alone")
JOB = warm.environment()


@pytest.fixture(scope="module")
def setup(tmp_path_factory):
    """A model, training and dev text."""
    return phase_files(tmp_path_factory.mktemp("warm"))


def begin(python, line):
    return subprocess.Popen([python, *line[1:]], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=JOB)


def test_a_stage_leaves_the_same_model_and_says_the_same(setup, tmp_path):
    said = {}
    for python in (sys.executable, warm.python()):
        out = tmp_path / str(len(said))
        phase = begin(python, command(*setup, out, {**TINY, "updates": 6, "evaluate_every": 3}))
        said[python] = [
            row.partition(" (")[0].replace(str(out), "") for row in phase.communicate()[0].splitlines() if "warning" not in row.lower()
        ]
        assert phase.returncode == 0, said
    assert_same(*(load_file(tmp_path / name / "model/model.safetensors") for name in "01"))
    assert len(set(map(len, said.values()))) == 1 and any("update 6/6" in row for row in said[warm.python()]), said


def test_bad_input_has_its_status_and_its_line():
    line = ["-m", "workflow_scripts.lexicon.embeddings", "--text", "absent", "--vectors", "v", "--language", "de", "--settings", "{}"]
    cold, forked = (subprocess.run([python, *line], capture_output=True, text=True, env=JOB) for python in (sys.executable, warm.python()))
    assert cold.returncode == forked.returncode == 1 and cold.stderr == forked.stderr and "absent: no such file" in forked.stderr


def test_signals_arrive_and_a_caller_that_is_killed_takes_its_process_along(setup, tmp_path):
    settings = {**TINY, "updates": 100_000, "evaluate_every": 50_000, "log_every": 1, "checkpoint": "last"}
    for number in (signal.SIGTERM, signal.SIGKILL):
        out = tmp_path / str(int(number))
        phase = begin(warm.python(), command(*setup, out, settings))
        said = ""
        while "update 2/" not in said:
            said += phase.stdout.readline()
            assert phase.poll() is None, said
        process = psutil.Process(int((out / "checkpoints/lock").read_text().split()[1]))
        assert process.pid != phase.pid and any("warm.py" in word for word in process.parent().cmdline())
        phase.send_signal(number)
        said += phase.stdout.read()
        assert phase.wait() == (1 if number == signal.SIGTERM else -number)
        assert ("not done: SIGTERM" in said) is (number == signal.SIGTERM)
        with suppress(psutil.NoSuchProcess):  # it may end between two questions
            while process.status() != psutil.STATUS_ZOMBIE:
                time.sleep(0.05)


def test_what_the_server_cannot_be_is_a_process_of_its_own(tmp_path):
    with open(f"{os.environ['CROSSGAP_WARM']}/server.json", encoding="utf-8") as file:
        server = json.load(file)
    stage, here = ["-m", "workflow_scripts.text.corpus"], str(warm.ROOT)
    assert stands_in(server, stage, JOB, "/") and stands_in(server, ["-m", "snakemake", "-n"], server["environment"], "/")
    for arguments, environment in (
        (["-c", "1"], JOB),
        (["-X", "utf8", *stage], JOB),
        (["-m", "pip"], JOB),
        (stage, {**JOB, "OMP_NUM_THREADS": "2"}),
        (stage, {**JOB, "HF_HUB_OFFLINE": "1"}),
        (stage, {**JOB, "PYTHONPATH": "/elsewhere"}),
    ):
        assert not stands_in(server, arguments, environment, here)
    (tmp_path / "workflow_scripts").symlink_to(warm.ROOT / "workflow_scripts")
    assert stands_in(server, stage, {**JOB, "PYTHONPATH": str(tmp_path)}, "/")
    assert relevant(JOB) == server["environment"]
    assert subprocess.run([warm.python(), "-c", "print(6 * 7)"], capture_output=True, text=True).stdout == "42\n"
