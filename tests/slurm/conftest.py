"""A Slurm cluster for each module of tests; and the tiny experiment, run without one, to compare with and to go on from."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "workflow"))

import runs
from test_workflow import ROOT, lay_out, snakemake, write_config

SCRIPT = Path(__file__).with_name("cluster.sh")


@pytest.fixture(scope="session", autouse=True)
def environment():
    """Rules find this Python; and the threads of jobs that share two cores do not spin while they wait for each other."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
        patch.setenv("OMP_WAIT_POLICY", "passive")
        yield


@pytest.fixture(scope="module")
def cluster(request, environment):
    """A cluster as the module's CLUSTER says, `accounting` or `plain`, to which Slurm's commands speak."""
    export = subprocess.run([SCRIPT, "up", request.module.CLUSTER], check=True, stdout=subprocess.PIPE, text=True).stdout
    with pytest.MonkeyPatch.context() as patch:
        try:
            for setting in shlex.split(os.path.expandvars(export))[1:]:
                patch.setenv(*setting.split("=", 1))
            yield
        finally:
            subprocess.run([SCRIPT, "down"], check=True)


@pytest.fixture(scope="session")
def local(tmp_path_factory, environment):
    """A folder in which two arms have run to the report on this machine, with the threads that the profile gives."""

    folder = lay_out(tmp_path_factory.mktemp("slurm") / "local")
    threads = [f"{rule}={number}" for rule, number in runs.PROFILE["set-threads"].items()]
    config = write_config(folder, runs.configuration("finetune", "csr"))
    snakemake(folder, "--configfile", str(ROOT / "config.yaml"), config, "--cores", "all", "--set-threads", *threads)
    return folder


@pytest.fixture(scope="session")
def whole(local):
    """The same folder, in which the arm `whole` has been trained undisturbed."""
    subprocess.run(runs.command(local, ["whole"], "--cores", "1"), cwd=ROOT, check=True)
    return local
