"""Crossgap as a Snakemake module of another workflow (tests/module/Snakefile)."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import warm
import yaml
from snakemake.api import SnakemakeApi
from snakemake.exceptions import WorkflowError
from snakemake.settings.types import DAGSettings, ResourceSettings

ROOT = Path(__file__).parents[2]


@pytest.fixture
def folder(tmp_path):
    """Where the other workflow lives: its Snakefile, and a configuration that has Crossgap's under a key of its own."""
    shutil.copy(ROOT / "tests/module/Snakefile", tmp_path)
    crossgap = yaml.safe_load((ROOT / "config.yaml").read_text(encoding="utf-8"))
    configuration = {"snakefile": str(ROOT / "Snakefile"), "crossgap": crossgap}
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(configuration), encoding="utf-8")
    return tmp_path


def test_the_whole_experiment_is_planned_under_names_of_its_own(folder, capfd):
    with SnakemakeApi() as api:
        workflow = api.workflow(ResourceSettings(cores=1), snakefile=folder / "Snakefile", workdir=folder)
        workflow.dag(DAGSettings()).execute_workflow(executor="dryrun")
    said = "".join(capfd.readouterr())
    counts = dict(re.findall(r"^(\w+) +(\d+)$", said, flags=re.M))
    assert {"best_arm", "crossgap_finetune", "crossgap_mapping", "crossgap_report"} <= counts.keys()
    assert all(rule in ("best_arm", "total") or rule.startswith("crossgap_") for rule in counts)
    assert not (folder / "results").exists()


def test_a_rule_runs_in_the_other_workflows_folder(folder):
    command = [warm.python(), "-m", "snakemake", "--cores", "1", "results/configuration.json", "results/corpora/help.de-en/dev.de"]
    subprocess.run(command, cwd=folder, env={**os.environ, "PATH": warm.path()}, check=True)
    assert (folder / "results/configuration.json").exists()
    assert len((folder / "results/corpora/help.de-en/dev.de").read_text(encoding="utf-8").splitlines()) > 500


def test_a_prefix_is_refused(folder):
    snakefile = folder / "Snakefile"
    text = snakefile.read_text(encoding="utf-8")
    snakefile.write_text(text.replace("module crossgap:", 'module crossgap:\n    prefix: "other"'), encoding="utf-8")
    with SnakemakeApi() as api, pytest.raises(WorkflowError, match="cannot be used as a module with `prefix`"):
        api.workflow(ResourceSettings(cores=1), snakefile=snakefile, workdir=folder).dag(DAGSettings()).execute_workflow(executor="dryrun")
