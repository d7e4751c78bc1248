"""A stranger's bridge: plugins in a folder outside the repository, chains of phases, a whole tiny run with both."""

import copy
import shutil
from html import unescape

import pytest
from test_workflow import ROOT, TINY, lay_out, snakemake, write_config

from workflow_scripts.stage import read_json

PLUGINS = ["word_order.py"]
CONTENT = copy.deepcopy(TINY) | {
    "plugins": PLUGINS,
    "run": {"experiments": ["tiny"], "arms": ["finetune", "csr", "order", "curriculum"], "seeds": [1]},
}
CONTENT["arms"] |= {
    "order": [{"data": "shuffled", "updates": 6}, {"data": "task", "updates": 10}],
    "curriculum": [{"data": "shuffled", "updates": 2}, {"data": "codeswitch", "updates": 4}, {"data": "task", "updates": 10}],
}
ARMS = CONTENT["run"]["arms"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with text, a configuration and plugins, and the results of a finished run."""
    folder = lay_out(tmp_path_factory.mktemp("plugins"))
    for name in PLUGINS:
        shutil.copy(ROOT / "examples/plugins" / name, folder)
    snakemake(folder, *arguments(folder), "--cores", "2")
    return folder


def arguments(folder):
    return "--configfile", str(ROOT / "config.yaml"), write_config(folder, CONTENT)


def plans(folder, *more):
    """The rules that would run again."""
    said = snakemake(folder, *arguments(folder), "-n", "--quiet", "host", *more)
    return {line.split()[1].rstrip(":") for line in said.splitlines() if line.strip().startswith(("rule ", "localrule "))}


def test_an_arm_of_a_plugin_runs_to_the_report(folder):
    page = unescape((folder / "results/report.html").read_text(encoding="utf-8"))
    assert "Does word order alone help? order against the baseline, finetune" in page
    assert "Is shuffled words better than restoring code-switched text? order against csr" in page
    noise = read_json(folder / "results/codeswitch/tiny/shuffled/seed1/codeswitch.json")
    assert noise["kind"] == "shuffled" and list(noise["provenance"]["plugins"]) == [str(folder / "word_order.py")]
    assert noise["sides"]["de"]["replaced"] > noise["sides"]["de"]["words"] / 2


def test_a_chain_trains_one_phase_after_the_other(folder):
    runs = folder / "results/runs/tiny"
    assert [path.name for path in sorted((runs / "curriculum/seed1").iterdir()) if path.is_dir()] == ["1-shuffled", "2-codeswitch", "finetune"]
    starts = {name: read_json(runs / f"curriculum/seed1/{name}/training.json")["start"] for name in ("1-shuffled", "2-codeswitch", "finetune")}
    assert starts["1-shuffled"].endswith("backbones/tiny/model")
    assert starts["2-codeswitch"].endswith("seed1/1-shuffled/model") and starts["finetune"].endswith("seed1/2-codeswitch/model")
    assert (runs / "order/seed1/pretext/model").is_dir()


def test_what_a_plugin_says_counts_for_its_own_jobs_alone(folder):
    assert not plans(folder)
    plugin = folder / "word_order.py"
    before = plugin.read_text(encoding="utf-8")
    plugin.write_text(before.replace("draw.permutation(len(words))", "draw.permutation(len(words))[::-1]"), encoding="utf-8")
    said = snakemake(folder, *arguments(folder), "-n")
    plugin.write_text(before, encoding="utf-8")
    assert "rule codeswitch" in said and "results/codeswitch/tiny/shuffled/seed1" in said
    assert "results/codeswitch/tiny/codeswitch/seed1" not in said.split("rule codeswitch")[1].split("rule ")[0]
    assert "rule lexicon" not in said and "rule backbone" not in said
