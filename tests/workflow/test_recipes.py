"""Every recipe is planned, for a cluster."""

import functools
import re
from fnmatch import fnmatch
from pathlib import Path
from unittest import mock

import pytest
import yaml
from brought import bring
from snakemake.api import SnakemakeApi
from snakemake.common import get_function_params
from snakemake.settings.types import ConfigSettings, ResourceSettings
from test_workflow import ROOT, planned, snakemake

OVER = {path.stem: yaml.safe_load(path.read_text(encoding="utf-8")).get("over") for path in sorted((ROOT / "config").glob("*.yaml"))}
"""Recipe → the file that it is laid over, besides config.yaml."""
RECIPES = {name: [*([Path(below).stem] if below else []), name] for name, below in OVER.items()}
"""Recipe → the files that are read for it, which stand in config/."""


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_is_planned_from_its_data_to_the_report(name, tmp_path):
    recipes = [ROOT / f"config/{part}.yaml" for part in RECIPES[name]]
    bring(tmp_path, *recipes)
    # Snakemake asks time and again for the size of each input, of which there is none yet, and for the parameters of each function
    sizes = mock.patch("snakemake.iocontainers.InputFiles.size_files", [])
    with sizes, mock.patch("snakemake.rules.get_function_params", functools.cache(get_function_params)):
        said = snakemake(tmp_path, "--configfile", str(ROOT / "config.yaml"), *map(str, recipes), "--profile", "slurm", "-n", "-p")
    # groups that wait for each other would leave jobs in the table that never run
    assert len(re.findall(r"^ *(?:local)?rule \w+:$", said, flags=re.M)) == int(re.search(r"^total +(\d+)$", said, flags=re.M).group(1))
    # Linux takes 2¹⁷ bytes; a hundred experiments are to fit
    assert max(len(line) for line in said.splitlines() if "python -m" in line) < 2**15
    rules = planned(said)
    assert {"report", "all"} <= rules and any(rule.endswith("finetune") or rule == "retrieval" for rule in rules)
    # those of config.yaml are not run with it, but for those whose arms are backbones
    read = [yaml.safe_load(recipe.read_text(encoding="utf-8")) for recipe in recipes]
    wanted = [name for raw in read for name in raw.get("run", {}).get("experiments", [])]
    wanted += [block["from"].split("/")[0] for raw in read for block in raw.get("backbones", {}).values() if block.get("kind") == "arm"]
    found = set(re.findall(r"experiment=([\w-]+)", said))
    assert found and all(any(fnmatch(name, pattern) for pattern in wanted or ["help-de-en"]) for name in found)
    assert not list(Path(tmp_path).rglob("results/*"))


def test_translate_train_all_is_planned_where_it_is_asked_for(tmp_path):
    recipes = [ROOT / f"config/{part}.yaml" for part in ("xtreme", "veco")]
    bring(tmp_path, *recipes)
    asked = "run={experiments: ['tta-*'], arms: [translate-train-3e, translate-train-5e]}"
    said = snakemake(tmp_path, "--configfile", str(ROOT / "config.yaml"), *map(str, recipes), "--config", asked, "-n", "-p")
    tasks = [f"tta-{task}-{model}" for task in ("xnli", "pawsx", "xquad", "mlqa", "tydiqa") for model in ("xlmr", "veco-encoder")]
    assert {*re.findall(r"experiment=([\w-]+)", said)} == {*tasks, "tta-tatoeba", "tta-bucc"}
    # TyDiQA goes on from what XQuAD has made of the model, with its head
    commands = [line for line in said.splitlines() if "training.backbone" in line and "xquad-xlmr" in line]
    assert (
        len(commands) == 1
        and "tta-xquad-xlmr/translate-train-3e/seed1/finetune/model" in commands[0]
        and '"with_head": true' in commands[0]
    )
    assert re.search(r"--start results/backbones/xquad-veco-encoder/model .*tta-tydiqa-veco-encoder", said)


def test_snakemakes_own_report_has_a_page_of_each_of_many_experiments_and_comet(tmp_path):
    recipes = ConfigSettings(configfiles=[ROOT / "config.yaml", ROOT / "config/translation.yaml"])
    with SnakemakeApi() as api:
        loaded = api.workflow(ResourceSettings(cores=1), recipes, snakefile=ROOT / "Snakefile", workdir=tmp_path)
        rules = {rule.name: rule for rule in loaded._workflow.rules}
    pages = rules["report"].output.pages
    assert len(pages) > 10 and [Path(page).stem for page in pages] == [page.flags["report"].labels["what"] for page in pages]
    for output in (*pages, rules["comet"].output.scores):
        assert (ROOT / "docs/captions" / output.flags["report"].caption.get_filename()).exists()
