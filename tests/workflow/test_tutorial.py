"""docs/tutorial.md, command by command, in a folder like a fresh clone; with smaller settings laid over those of the page."""

import os
import re
import subprocess

import pytest
import warm
import yaml
from test_workflow import ROOT, TINY

from workflow_scripts.stage import read_json

PAGE = (ROOT / "docs/tutorial.md").read_text(encoding="utf-8")
SMALLER = {
    "corpora": {"captions": {"dev": {"held_out": 40}, "test": {"pages": {"held_out": 40}}}},
    "lexicons": {"unsupervised": TINY["lexicons"]["tiny"]},
    "arms": {"finetune": [{"data": "task", "updates": 12}], "csr": [{"data": "codeswitch", "updates": 4}, {"data": "task", "updates": 8}]},
    "backbones": {"captions": {"small": {**TINY["backbones"]["tiny"]["small"], "text": {"es": "task", "en": "task"}}}},
    "experiments": {"captions": {key: TINY["experiments"]["tiny"][key] for key in ("training", "decoding", "scores")}},
}
"""Laid over the page's own file: a tiny model, few updates, few sentences."""
LINES = 1500


def steps() -> list[tuple[str, str]]:
    """The page's blocks from its first step on: the name of the file that is to be written, or nothing for commands; and the content."""
    page = PAGE[PAGE.index("## 1.") :]
    found = []
    for match in re.finditer(r"^```(\w*)\n(.*?)^```", page, flags=re.M | re.S):
        name = re.findall(r"Save this as `([\w.]+)`", page[: match.start()])[-1:] if match[1] == "yaml" else [""]
        found.append((name[0], match[2]))
    return found


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """The folder after all commands of the page, and what each said."""
    folder = tmp_path_factory.mktemp("tutorial")
    for name in ("Snakefile", "config.yaml", "config", "rules", "workflow_scripts", "crossgap", "profiles", "envs", "resources"):
        (folder / name).symlink_to(ROOT / name)
    (folder / "smaller.yaml").write_text(yaml.safe_dump(SMALLER), encoding="utf-8")
    environment = {**os.environ, "PATH": warm.path(), "COLUMNS": "200"}
    said = {}
    for name, content in steps():
        if name:
            (folder / name).write_text(content, encoding="utf-8")
            continue
        for line in content.splitlines():
            # less text and smaller settings, in the place where the page has its own
            small = re.sub(r"(--configfile captions\.yaml)", r"\1 smaller.yaml", line).replace("--cores all", "--cores 2")
            small = small.replace("en-es.tsv.xz |", f"en-es.tsv.xz | head -n {LINES} |")
            small = re.sub("^snakemake ", "python -m snakemake ", small)  # which is loaded already
            ended = subprocess.run(["bash", "-c", small], cwd=folder, env=environment, capture_output=True, text=True)
            assert ended.returncode == 0, (line, ended.stdout[-3000:], ended.stderr[-3000:])
            said[line] = ended.stdout + ended.stderr
    return folder, said


def test_each_command_does_what_the_page_says(done):
    folder, said = done
    (counted,) = [output for line, output in said.items() if line.startswith("wc ")]
    assert f"{LINES} data/captions.es" in counted and f"{LINES} data/captions.en" in counted
    (looked,) = [output for line, output in said.items() if "preflight" in line]
    assert "WRONG" not in looked
    assert len((folder / "data/new.en").read_text(encoding="utf-8").splitlines()) == 5
    for name in ("results/report.html", "results/translations", "captions.zip", "again/rebuilt/report.html"):
        assert (folder / name).exists()
    assert "All tables are the same" in said["python -m workflow_scripts.report.pack rebuild --pack captions.zip --output again"]


def test_the_table_is_of_three_seeds(done):
    table = (done[0] / "captions.tex").read_text(encoding="utf-8")
    assert "means of 3 seed(s)" in table and re.search(r"^csr & ", table, flags=re.M) and r"\toprule" in table


def test_what_was_trained_with_the_first_seed_is_kept(done):
    folder, said = done
    (over,) = [output for line, output in said.items() if "seeds.yaml" in line]
    trained = re.findall(r"^ *(?:rule|localrule) (\w+):", over, flags=re.M)
    # two more seeds of two arms
    assert trained.count("finetune") == 4 and "backbone" not in trained
    assert read_json(folder / "results/configuration.json")["run"]["seeds"] == [1, 2, 3]


def test_the_command_that_translates_stands_on_the_first_screen():
    first = PAGE[: PAGE.index("## 1.")]
    (command,) = re.findall(r"^python -m workflow_scripts\.models\.decoding .*$", first, flags=re.M)
    assert command in [line for name, content in steps() if not name for line in content.splitlines()]
