"""`make resume`: goes on after a killed Snakemake, and only when no other one may be at work."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import yaml

ROOT = Path(__file__).parent.parent
SNAKEFILE = """
rule slow:
    output: "done"
    shell: "test -e go && touch {output} || sleep 600"
"""


def test_no_lock_is_cleared_while_a_snakemake_may_live_here_or_on_another_host(tmp_path):
    (tmp_path / "Makefile").symlink_to(ROOT / "Makefile")
    (tmp_path / "Snakefile").write_text(SNAKEFILE)
    (tmp_path / "venv/bin").mkdir(parents=True)
    (tmp_path / "venv/bin/activate").write_text(f'export PATH="{Path(sys.executable).parent}:$PATH"\n')
    (tmp_path / "envs").mkdir()
    (tmp_path / "envs/requirements.txt").touch()
    (tmp_path / "venv/.complete").touch()

    def resume():
        run = subprocess.run(["make", "resume", "VENV=venv", "ARGS=--cores 1"], cwd=tmp_path, capture_output=True, text=True)
        return run.returncode, run.stdout + run.stderr

    command = [sys.executable, "-m", "snakemake", "--cores", "1"]
    driver = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.DEVNULL, start_new_session=True)
    while not list(tmp_path.glob(".snakemake/log/*")) or "rule slow" not in next(tmp_path.glob(".snakemake/log/*")).read_text():
        assert driver.poll() is None
        time.sleep(0.05)
    status, said = resume()
    assert status and f"snakemake is at work here (process {driver.pid})" in said
    os.killpg(driver.pid, signal.SIGKILL)
    driver.wait()
    (log,) = tmp_path.glob(".snakemake/log/*")
    here = log.read_text()
    log.write_text(here.replace(f"Host: {os.uname().nodename}", "Host: login2"))
    status, said = resume()
    assert status and "a snakemake on login2 was at work here" in said
    assert list(tmp_path.glob(".snakemake/locks/*"))
    log.write_text(here)
    (tmp_path / "go").touch()
    status, said = resume()
    assert status == 0 and "--cores all" not in said and (tmp_path / "done").exists(), said


def test_every_training_may_outlast_many_time_limits_on_slurm():
    profile = yaml.safe_load((ROOT / "slurm/config.yaml").read_text(encoding="utf-8"))
    rules = {}
    for path in (ROOT / "rules").glob("*.smk"):
        for name, block in re.findall(r"^rule (\w+):\n(.*?)(?=^rule |\Z)", path.read_text(encoding="utf-8"), flags=re.M | re.S):
            rules[name] = block
    trains = {name for name, block in rules.items() if "--attempt {resources.attempt}" in block}
    assert len(trains) >= 7 and trains == {*profile["preemptible-rules"]}
