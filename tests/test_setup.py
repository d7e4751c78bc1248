"""envs/setup.sh: which Python and which build of PyTorch `make setup` takes, and what it says where there is none."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path("envs/setup.sh").absolute()
TOOLS = ("cat", "cp", "dirname", "grep", "mkdir", "rm", "sh", "touch")
PYTHON = """#!/bin/sh
[ "$1" = -c ] || echo "$0 $*" >>"$LOG"
case "$*" in
*'m.version("torch")'*) exit 1 ;;
*_base_executable*) echo python3 ;;
-c*) [ -s "$0.kind" ] && cat "$0.kind" ;;
"-m venv"*) for venv; do :; done; mkdir -p "$venv/bin"; touch "$venv/pyvenv.cfg"; cp "$0" "$venv/bin/python"; cp "$0.kind" "$venv/bin/python.kind" ;;
*--index-url*) [ -z "$OFFLINE" ] ;;
esac
"""
"""Stands in for a Python: says what its file `.kind` has, makes environments of itself, and writes down which modules it is called with."""


@pytest.fixture
def machine(tmp_path):
    """A machine with nothing but these Pythons; what `make setup` with these variables says there, and what it calls."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in TOOLS:
        (tools / name).symlink_to(shutil.which(name))
    log, venv = tmp_path / "log", tmp_path / "venv"

    def setup(pythons, python="", torch="", offline="", programs=()):
        for old in (tmp_path / "bin").glob("*"):
            old.unlink()
        (tmp_path / "bin").mkdir(exist_ok=True)
        for name, kind in {**pythons, **dict.fromkeys(programs, "")}.items():
            (tmp_path / "bin" / name).write_text(PYTHON)
            (tmp_path / "bin" / name).chmod(0o755)
            (tmp_path / "bin" / f"{name}.kind").write_text(kind and f"{kind}\n")
        log.write_text("")
        surroundings = {"PATH": f"{tmp_path / 'bin'}:{tools}", "LOG": str(log), "OFFLINE": offline}
        line = ["sh", str(SCRIPT), str(venv), python, torch]
        done = subprocess.run(line, env=surroundings, capture_output=True, text=True)
        made = [call.split()[0] for call in log.read_text().splitlines() if " -m venv " in call]
        return done.returncode, done.stderr, Path(made[0]).name if made else None, log.read_text()

    return setup


@pytest.mark.parametrize(
    ("pythons", "taken"),
    [
        ({"python3.11": "3.11", "python3.13": "3.13", "python3": "3.11"}, "python3.13"),
        ({"python3.14": "3.14", "python3.13": "3.13"}, "python3.14"),
        ({"python3.14": "3.14 without a C compiler", "python3.12": "3.12"}, "python3.12"),
        ({"python3.13": "3.13 without venv", "python3.12": "free-threaded 3.12", "python3.11": "3.11"}, "python3.11"),
        ({"python3.13": "", "python3": "3.12"}, "python3"),  # a shim of pyenv, of a version that is not there
        ({"python3.10": "3.10", "python3": "3.15", "python": "3.11"}, "python"),
    ],
)
def test_the_newest_python_that_works_is_taken(machine, pythons, taken):
    status, said, made, _ = machine(pythons)
    assert (status, made) == (0, taken), said


def test_where_no_python_suits_one_line_says_what_is_there_and_what_to_do(machine, tmp_path):
    for pythons, found in (
        ({}, "there is none"),
        ({"python3": "3.10", "python": "2.7"}, "python3 is 3.10, python is 2.7"),
        ({"python3": "3.13 without venv"}, "python3 is 3.13 without venv"),
        ({"python3": "PyPy 3.11"}, "python3 is PyPy 3.11"),
        ({"python3.15": "3.15", "python3": "3.15"}, "python3 is 3.15"),
    ):
        status, said, made, _ = machine(pythons)
        assert status == 1 and made is None and said.count("\n") == 1
        assert f"no suitable Python was found ({found}); needed is Python 3.11, 3.12 or 3.13, or 3.14" in said
        assert all(way in said for way in ("apt install python3 python3-venv", "uv venv --seed", "conda create -n"))
    assert not (tmp_path / "venv").exists()


def test_python_overrules_and_what_is_there_stays(machine):
    both = {"python3.13": "3.13", "python3.11": "3.11"}
    assert machine(both, python="python3.11")[2] == "python3.11"
    # the environment keeps its Python, whatever newer one comes; nothing is installed twice
    status, _, made, calls = machine({**both, "python3.12": "3.12"})
    assert (status, made) == (0, None) and "pip" not in calls
    assert machine(both, python="python3.13")[2] == "python3.13"
    for given, why in (("python3.9", "is 3.9"), ("python3.15", "is 3.15"), ("bare", "is 3.13 without venv"), ("nowhere", "does not run")):
        status, said, made, _ = machine({"python3.9": "3.9", "python3.15": "3.15", "bare": "3.13 without venv", **both}, python=given)
        assert status == 1 and made is None and f"PYTHON={given} {why}; needed is" in said


def test_without_a_gpu_the_build_for_the_cpu_is_asked_for_once(machine):
    python = {"python3": "3.13"}
    status, said, made, calls = machine(python, torch="cpu")
    assert (status, made) == (0, "python3") and "build for the CPU alone" in said and "TORCH=cuda" in said
    asked = next(call for call in calls.splitlines() if "--index-url" in call)
    assert "--index-url https://download.pytorch.org/whl/cpu --retries 0 --timeout 10 torch==" in asked
    assert calls.splitlines()[-2].endswith("requirements.txt")
    # the same again changes nothing, the other build makes the environment anew
    assert machine(python, torch="cpu")[2:] == machine(python)[2:] == (None, "")
    status, said, made, calls = machine(python, torch="cuda")
    assert status == 0 and made == "python3" and "--index-url" not in calls and "PyTorch" not in said
    assert re.search(r"^installing \d+ packages into ", said)
    # where it cannot be had, the usual one comes and nothing fails
    status, said, _, calls = machine(python, torch="cpu", offline="yes")
    assert status == 0 and "cannot be had from here; the usual build comes" in said and said.count("PyTorch") == 1
    assert "--requirement" in calls
    assert machine(python, torch="rocm")[:2] == (1, "TORCH=rocm is neither cpu nor cuda\n")


@pytest.mark.parametrize("program", ["nvidia-smi", "sbatch"])
def test_with_a_gpu_or_on_a_cluster_the_usual_build_comes(machine, program):
    status, said, _, calls = machine({"python3": "3.13"}, programs=[program])
    assert status == 0 and "--index-url" not in calls and "PyTorch" not in said


def test_a_real_environment_is_left_as_it_is(tmp_path):
    venv = tmp_path / "my venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    (venv / ".torch").write_text("cpu\n")
    (venv / ".complete").touch()
    before = {path: path.lstat().st_mtime_ns for path in venv.rglob("*")}
    for given in (("", ""), (sys.executable, ""), ("", "cpu")):
        done = subprocess.run(["sh", SCRIPT, venv, *given], capture_output=True, text=True, env={**os.environ, "CC": "sh"})
        assert (done.returncode, done.stdout + done.stderr) == (0, ""), given
    assert {path: path.lstat().st_mtime_ns for path in venv.rglob("*")} == before


def test_the_environment_can_be_made_anew_by_another_name_or_build_alone():
    """make calls the script where the lock is newer, and where a Python or a build is asked for."""
    for given in ([], ["PYTHON=python3.12"], ["TORCH=cuda"]):
        planned = subprocess.run(["make", "-n", "setup", "VENV=nowhere", *given], capture_output=True, text=True, check=True).stdout
        values = dict(word.split("=") for word in given)
        assert planned.strip() == f'sh envs/setup.sh "nowhere" "{values.get("PYTHON", "")}" "{values.get("TORCH", "")}"'


def test_installing_says_which_large_files_come_and_fails_if_pip_does(tmp_path):
    part = SCRIPT.read_text().partition("telling() {")[2].partition("\n}\n")[0]
    said = (
        "Collecting torch\n  Downloading torch-2.13.whl.metadata (28 kB)\nDownloading torch-2.13+cpu-cp311.whl (190.5 MB)\nDownloading tiny-1.whl (9.9 MB)\n"
        "Using cached scipy-1.16.whl (35.0 MB)\nInstalling collected packages: a, b\n"
    )
    script = f'say() {{ echo "$*" >&2; }}\ntelling() {{{part}\n}}\ntelling\n'
    done = subprocess.run(["sh", "-c", script], input=said, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "  torch, 190.5 MB\n  scipy, 35.0 MB\n  all is fetched; unpacking it\n")
    assert subprocess.run(["sh", "-c", script], input=f"{said}pip failed\n", capture_output=True, text=True).returncode == 1
