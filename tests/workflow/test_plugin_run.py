"""A stranger's bridge: plugins in a folder outside the repository, chains of phases, a whole tiny run with both."""

import copy
import os
import re
import shutil
import subprocess
import sys
from html import unescape
from pathlib import Path

import pytest
from test_plugins import NOISE
from test_workflow import ROOT, TINY, lay_out, planned, snakemake, write_config

from workflow_scripts.stage import read_json
from workflow_scripts.text.files import read_lines

PLUGINS = ["word_order.py", "off_target.py", "dict_mlm.py", "intrinsic_dimension.py", "minimum_bayes_risk.py", "mlongt5.py", "bitfit.py"]
CONTENT = copy.deepcopy(TINY) | {
    "plugins": PLUGINS,
    "run": {"experiments": ["tiny"], "arms": ["finetune", "csr", "order", "curriculum", "few", "other", "bridges"], "seeds": [1]},
}
CONTENT["arms"] |= {
    "order": [{"data": "shuffled", "updates": 6}, {"data": "task", "updates": 10}],
    "curriculum": [{"data": "shuffled", "updates": 2}, {"data": "codeswitch", "updates": 4}, {"data": "task", "updates": 10}],
}
CONTENT["arms"] |= {
    "few": [
        {"data": "shuffled", "updates": 6, "training": {"adapter": {"kind": "bitfit"}}},
        {"data": "task", "updates": 10, "training": {"adapter": {"kind": "lora", "rank": 2}}},
    ],
    "other": [{"data": "task", "updates": 16, "backbone": "mlongt5"}],
}
CONTENT["experiments"]["tiny"]["decoding"] = {"engine": "mbr", "engine_settings": {"samples": 3}, "max_length": 20}
CONTENT["experiments"]["tiny"]["scores"] |= {"metrics": ["BLEU", "chrF++", "off-target"]}
PUD = {"file": "resources/parallel-ud/pud.de-en.tsv.xz", "header": True, "columns": {"de": "de", "en": "en"}}
CONTENT["corpora"] |= {"pud": {"languages": ["de", "en"], "train": PUD, "dev": {"held_out": 30}, "test": {"pud": {"held_out": 30}}}}
CONTENT["arms"] |= {
    "bridges": [
        {"data": "translation", "text": "pud", "updates": 2, "objective": {"direction": "many-to-one", "pivot": "en"}},
        {"data": "codeswitch", "updates": 4},
        {"data": "denoising", "text": "pud", "updates": 1},
        {"data": "mask", "text": "pud", "updates": 1},
        {"data": "task", "updates": 8},
    ],
}
ENCODER = {
    "kind": "small",
    "family": "xlmr",
    "objective": "dict-mlm",
    "small": CONTENT["backbones"]["tiny"]["small"] | {"objective_settings": {"dictionary": {"de": "words.tsv", "en": "words.tsv"}}},
}
CONTENT["backbones"] |= {"encoder": ENCODER}
CONTENT["backbones"] |= {"mlongt5": CONTENT["backbones"]["tiny"] | {"family": "mlongt5"}}
CONTENT["analyses"] = {"insides": {"models": ["encoder"], "corpus": "tiny", "stages": ["separability", "intrinsic-dimension"]}}
CONTENT["run"]["analyses"] = ["insides"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with text, a configuration and plugins, and the results of a finished run."""
    folder = lay_out_plugins(tmp_path_factory.mktemp("plugins"))
    snakemake(folder, *arguments(folder), "--cores", "2")
    return folder


def lay_out_plugins(folder):
    """The text of the tiny run, the plugins, and the dictionary that one of them reads."""
    lay_out(folder)
    for name in PLUGINS:
        shutil.copy(ROOT / "examples/plugins" / name, folder)
    words = [word for line in read_lines(folder / "bible.de.txt") for word in line.split()]
    (folder / "words.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in zip(words[:3000], words[1:], strict=False)), encoding="utf-8")
    return folder


def arguments(folder):
    return "--configfile", str(ROOT / "config.yaml"), write_config(folder, CONTENT)


def test_an_arm_of_a_plugin_runs_to_the_report(folder):
    page = unescape((folder / "results/report.html").read_text(encoding="utf-8"))
    assert "Does word order alone help? order against the baseline, finetune" in page
    assert "Is shuffled words better than restoring code-switched text? order against csr" in page
    noise = read_json(folder / "results/codeswitch/tiny/shuffled/seed1/codeswitch.json")
    assert noise["kind"] == "shuffled" and str(folder / "word_order.py") in noise["provenance"]["plugins"]
    assert noise["sides"]["de"]["replaced"] > noise["sides"]["de"]["words"] / 2


def test_a_chain_trains_one_phase_after_the_other(folder):
    runs = folder / "results/runs/tiny"
    assert [path.name for path in sorted((runs / "curriculum/seed1").iterdir()) if path.is_dir()] == [
        "1-shuffled",
        "2-codeswitch",
        "finetune",
    ]
    starts = {
        name: read_json(runs / f"curriculum/seed1/{name}/training.json")["start"] for name in ("1-shuffled", "2-codeswitch", "finetune")
    }
    assert starts["1-shuffled"].endswith("backbones/tiny/model")
    assert starts["2-codeswitch"].endswith("seed1/1-shuffled/model") and starts["finetune"].endswith("seed1/2-codeswitch/model")
    assert (runs / "order/seed1/pretext/model").is_dir()


def test_objectives_and_text_of_their_own_are_phases_of_a_chain(folder):
    """CP, then CSR, then text of its own, then the task, in one arm."""
    run = folder / "results/runs/tiny/bridges/seed1"
    names = ["1-translation", "2-codeswitch", "3-denoising", "4-mask", "finetune"]
    said = [read_json(run / name / "training.json") for name in names]
    assert [one["start"].split("/")[-2] for one in said] == ["tiny", *names[:-1]]
    assert [one.get("objective") for one in said] == ["translation", None, "denoising", None, None]
    pud = read_json(folder / "results/corpora/pud.de-en/corpus.json")["kept"]
    assert 0 < said[0]["rows"] <= pud < said[2]["rows"] <= 2 * pud
    assert (folder / "results/codeswitch/tiny/mask@pud/seed1/round0.de.tsv.zst").is_file()
    held_out = [line for part in ("dev", "test/pages") for line in read_lines(folder / f"results/corpora/tiny.en-de/{part}.en")]
    assert not {*held_out} & {*read_lines(folder / "results/corpora/pud.de-en/train.en")}
    page = unescape((folder / "results/report.html").read_text(encoding="utf-8"))
    assert "Does the longer chain help? bridges against csr, which has fewer phases" in page
    assert "translating (CP)" in page and "direction: many-to-one, pivot: en, text: pud" in page


def test_a_metric_of_a_plugin_is_tested_and_shown_like_others(folder):
    scores = read_json(folder / "results/runs/tiny/order/seed1/pages.scores.json")["metrics"]
    assert {*scores} == {"BLEU", "chrF++", "off-target"} and 0 <= scores["off-target"]["value"] <= 100
    tested = read_json(folder / "results/runs/tiny/significance/pages.seed1.json")["systems"]["csr"]
    assert {*tested} == {*scores}
    assert "off-target" in unescape((folder / "results/report.html").read_text(encoding="utf-8"))


def test_a_backbone_learns_by_the_objective_of_a_plugin(folder):
    said = read_json(folder / "results/backbones/encoder/backbone.json")
    assert said["objective"] == "dict-mlm" and said["dict-mlm_loss"] > 0
    assert [*said["made_from"]["settings"]["objective_settings"]["dictionary"]] == ["de", "en"] and said["made_from"]["plugin"]


def test_an_analysis_of_a_plugin_has_a_number_for_each_layer(folder):
    found = read_json(folder / "results/analyses/insides/intrinsic-dimension.json")["models"]["encoder"]
    assert [(row["language"], row["layer"]) for row in found["rows"]] == [(code, layer) for code in ("en", "de") for layer in (0, 1)]
    assert all(0 < row["value"] < 100 for row in found["rows"])
    page = unescape((folder / "results/report.html").read_text(encoding="utf-8"))
    assert 'id="intrinsic-dimension-insides"' in page and "Facco et al. 2017" in page


def test_adapters_and_a_family_of_plugins_run_to_the_report(folder):
    runs = folder / "results/runs/tiny"
    said = [read_json(runs / f"few/seed1/{phase}/training.json")["adapter"] for phase in ("pretext", "finetune")]
    assert [one["kind"] for one in said] == ["bitfit", "lora"] and (runs / "few/seed1/finetune/adapter/adapter_model.safetensors").is_file()
    page = unescape((folder / "results/report.html").read_text(encoding="utf-8"))
    assert f"adapter BitFit, {said[0]['trained']:,} weights trained" in page
    assert f"adapter LoRA, rank 2, {said[1]['trained']:,} weights trained" in page
    config = read_json(runs / "other/seed1/finetune/model/config.json")
    assert config["model_type"] == "longt5" and config["crossgap"] == {"family": "mlongt5", "plugin": "mlongt5.py"}
    assert read_json(folder / "results/backbones/mlongt5/backbone.json")["family"] == "mlongt5"
    assert "BLEU" in read_json(runs / "other/seed1/pages.scores.json")["metrics"]


def test_the_engine_of_a_plugin_decodes(folder):
    said = read_json(folder / "results/runs/tiny/order/seed1/pages.decoding.json")
    hypotheses = list(read_lines(folder / "results/runs/tiny/order/seed1/pages.hyp"))
    assert said["settings"]["engine"] == "mbr" and len(hypotheses) == said["sentences"]
    assert len(set(hypotheses)) > 1


def test_jobs_are_made_of_the_plugins_that_they_use(tmp_path):
    folder = lay_out_plugins(tmp_path)
    said = snakemake(folder, *arguments(folder), "-n", "--forceall")
    users = {name: set() for name in PLUGINS}
    for rule, inputs in re.findall(r"^(?:local)?rule (\w+):\n    input: (.*)$", said, flags=re.M):
        for name in {Path(each).name for each in inputs.split(", ")} & {*PLUGINS}:
            users[name].add(rule)
    assert users == {
        "word_order.py": {"codeswitch"},
        "off_target.py": {"scores", "significance", "significance_over_seeds"},
        "dict_mlm.py": {"backbone"},
        "intrinsic_dimension.py": {"layerwise"},
        "minimum_bayes_risk.py": {"decoding"},
        "mlongt5.py": {"backbone"},
        "bitfit.py": {"pretext"},
    }


def test_jobs_load_a_plugin_from_a_folder_that_is_called_by_a_time(tmp_path):
    (tmp_path / "2026-11-29T12:00, {it's}").mkdir()
    folder = lay_out_plugins(tmp_path / "2026-11-29T12:00, {it's}")
    snakemake(folder, *arguments(folder), "--cores", "1", "results/corpora/tiny.en-de/corpus.json")
    assert len(read_json(folder / "results/corpora/tiny.en-de/corpus.json")["provenance"]["plugins"]) == len(PLUGINS)


def test_what_a_plugin_says_counts_for_its_own_jobs_alone(folder):
    assert not planned(snakemake(folder, *arguments(folder), "-n"))

    def jobs_after(plugin, old, new):
        before = (folder / plugin).read_text(encoding="utf-8")
        (folder / plugin).write_text(before.replace(old, new), encoding="utf-8")
        jobs = planned(snakemake(folder, *arguments(folder), "-n"))
        (folder / plugin).write_text(before, encoding="utf-8")
        return jobs

    jobs = jobs_after("word_order.py", "draw.permutation(len(words))", "draw.permutation(len(words))[::-1]")
    assert {"codeswitch", "pretext", "finetune", "decoding", "report"} <= jobs and not {"lexicon", "backbone", "corpus"} & jobs
    jobs = jobs_after("minimum_bayes_risk.py", "max(utility", "min(utility")
    assert {"decoding", "scores", "report"} <= jobs and not {"codeswitch", "pretext", "finetune", "lexicon", "backbone"} & jobs
    jobs = jobs_after("off_target.py", "return", "return 1 +")
    assert {"scores", "significance", "report"} <= jobs and not {"decoding", "finetune", "word_accuracy"} & jobs


def test_files_in_the_folder_of_the_run_stand_in_for_no_library_and_a_module_of_it_may_be_a_plugin(tmp_path):
    """With Pythons of their own: in the warm one all is imported already."""
    (tmp_path / "datasets").mkdir()
    (tmp_path / "random.py").write_text("raise SystemExit('mine')\n", encoding="utf-8")
    (tmp_path / "my_package").mkdir()
    (tmp_path / "my_package/__init__.py").touch()
    plugin = "import importlib.util, random\n\nassert not importlib.util.find_spec('datasets')\n" + NOISE.format(name="mine")
    (tmp_path / "my_package/bridges.py").write_text(plugin, encoding="utf-8")
    (tmp_path / "my.yaml").write_text("plugins: [my_package.bridges]\n", encoding="utf-8")
    target, configuration = "results/corpora/help.de-en/dev.de", [str(ROOT / "config.yaml"), str(tmp_path / "my.yaml")]
    line = ["-s", str(ROOT / "Snakefile"), "--directory", str(tmp_path), "--cores", "1", target, "--configfile", *configuration]
    environment = {**os.environ, "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])}
    done = subprocess.run([sys.executable, "-m", "snakemake", *line], cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-4000:]
    assert (tmp_path / target).exists()
