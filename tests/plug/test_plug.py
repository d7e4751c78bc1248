"""The plug is pulled at random moments of a whole run, and the documented command goes on: the numbers are those of an undisturbed run.

`make test-plug` runs this (half an hour on two cores); CROSSGAP_PULLS and CROSSGAP_SEED choose how often, and when.
"""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "workflow"))
from test_workflow import ROOT, TINY, lay_out, write_config

PULLS = int(os.environ.get("CROSSGAP_PULLS", "10"))
SEED = int(os.environ.get("CROSSGAP_SEED", "1"))


def call(folder: Path, *arguments: str) -> subprocess.Popen:
    """Snakemake in `folder`, as the head of a process group."""
    command = [sys.executable, "-m", "snakemake", "-s", str(ROOT / "Snakefile"), "--directory", str(folder), "--workflow-profile"]
    command += [str(ROOT / "profiles/default"), "--configfile", str(ROOT / "config.yaml"), str(folder / "tiny.yaml"), *arguments]
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    with open(folder / "snakemake.log", "a", encoding="utf-8") as log:
        return subprocess.Popen(command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)


def pull_the_plug(driver: subprocess.Popen) -> None:
    """Kill Snakemake and all that it started, none of which can do anything about it."""
    everyone = [psutil.Process(driver.pid), *psutil.Process(driver.pid).children(recursive=True)]
    for process in everyone:
        try:
            process.send_signal(signal.SIGKILL)
        except psutil.NoSuchProcess:
            continue
    driver.wait()
    psutil.wait_procs(everyone, timeout=10)


def numbers(folder: Path) -> str:
    return (folder / "results/scores.tsv").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """A finished run, and how many seconds it took."""
    folder = tmp_path_factory.mktemp("undisturbed")
    lay_out(folder)
    write_config(folder, TINY)
    begun = time.monotonic()
    assert call(folder, "--cores", "2").wait() == 0, (folder / "snakemake.log").read_text()[-4000:]
    return folder, time.monotonic() - begun


@pytest.mark.parametrize("pull", range(PULLS))
def test_the_numbers_do_not_depend_on_the_plug(undisturbed, tmp_path, pull):
    whole, seconds = undisturbed
    moment = random.Random(f"{SEED} {pull}").uniform(0.05, 0.95)
    lay_out(tmp_path)
    write_config(tmp_path, TINY)
    driver = call(tmp_path, "--cores", "2")
    try:
        driver.wait(moment * seconds)
    except subprocess.TimeoutExpired:
        pull_the_plug(driver)
    print(
        f"pulled after {moment:.0%} of {seconds:.0f} s; {len(list((tmp_path / 'results').rglob('*.json')))} of the run's JSON files were there"
    )
    # what `make resume` calls
    assert call(tmp_path, "--unlock").wait() == 0
    assert call(tmp_path, "--cores", "2").wait() == 0, (tmp_path / "snakemake.log").read_text()[-4000:]
    assert numbers(tmp_path) == numbers(whole)
    assert not list((tmp_path / "results").rglob("*.part"))
    shutil.rmtree(tmp_path)
