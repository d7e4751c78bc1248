"""`make resume`: goes on after a killed Snakemake, and only when no other one may be at work."""

import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml
from rule_files import training_rules

ROOT = Path(__file__).parent.parent
SNAKEFILE = """
rule slow:
    output: "done"
    shell: "test -e go && touch {output} || sleep 600"
"""


@pytest.mark.parametrize("option", ["", "--directory="])
def test_no_lock_is_cleared_while_a_snakemake_may_live_here_or_on_another_host(tmp_path, option):
    clone = tmp_path / "my clone"  # a blank in its path, as in many a home folder
    (clone / "venv/bin").mkdir(parents=True)
    (clone / "Makefile").symlink_to(ROOT / "Makefile")
    (clone / "Snakefile").write_text(SNAKEFILE)
    (clone / "venv/bin/activate").write_text(f'export PATH="{Path(sys.executable).parent}:$PATH"\n')
    (clone / "envs").mkdir()
    (clone / "envs/requirements.txt").touch()
    (clone / "venv/.complete").touch()
    at = tmp_path / "large disk" if option else clone
    arguments = ["--cores", "1", *([f"{option}{at}"] if option.endswith("=") else [option, str(at)] if option else [])]

    def resume():
        run = subprocess.run(["make", "resume", "VENV=venv", f"ARGS={shlex.join(arguments)}"], cwd=clone, capture_output=True, text=True)
        return run.returncode, run.stdout + run.stderr

    command = [sys.executable, "-m", "snakemake", *arguments]
    driver = subprocess.Popen(command, cwd=clone, stderr=subprocess.DEVNULL, start_new_session=True)
    while not list(at.glob(".snakemake/log/*")) or "rule slow" not in next(at.glob(".snakemake/log/*")).read_text():
        assert driver.poll() is None
        time.sleep(0.05)
    status, said = resume()
    assert status and f"snakemake is at work here (process {driver.pid})" in said
    os.killpg(driver.pid, signal.SIGKILL)
    driver.wait()
    (log,) = at.glob(".snakemake/log/*")
    here = log.read_text()
    log.write_text(here.replace(f"Host: {os.uname().nodename}", "Host: login2"))
    status, said = resume()
    assert status and "a snakemake on login2 was at work here" in said
    assert list(at.glob(".snakemake/locks/*"))
    log.write_text(here)
    (at / "go").touch()
    status, said = resume()
    assert status == 0 and "--cores all" not in said and (at / "done").exists(), said


def test_every_training_may_outlast_many_time_limits_on_slurm():
    profile = yaml.safe_load((ROOT / "slurm/config.yaml").read_text(encoding="utf-8"))
    trains = training_rules()
    assert len(trains) >= 4 and trains == {*profile["preemptible-rules"]}
