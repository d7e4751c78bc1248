"""A tiny classification, from labelled text to the report."""

import shutil
from html import unescape

import pytest
from test_workflow import ROOT, TINY, lay_out, planned, snakemake, write_config

from workflow_scripts.stage import read_json, read_rows
from workflow_scripts.text.files import read_lines

ARMS = {
    "finetune-2e": [{"data": "task", "epochs": 2}],
    "csr-2e": [{"data": "codeswitch", "updates": 4}, {"data": "task", "epochs": 2}],
}
APPLICATIONS = {
    "file": "applications.tsv",
    "columns": {"document": 1, "label": 1, "text": 3},
    "label_pattern": "^(swriter|scalc)/",
    "label_names": {"swriter": "Writer", "scalc": "Calc & co."},
}
CONTENT = {
    **{key: TINY[key] for key in ("corpora", "backbones")},
    "plugins": ["matthews.py"],
    "run": {"experiments": ["applications"], "arms": list(ARMS), "seeds": [1]},
    "labelled": {
        "applications": {
            "language": "en",
            "labels": ["Writer", "Calc & co."],
            "train": APPLICATIONS,
            "dev": {"held_out": 0.2},
            "test": {
                "de": {**APPLICATIONS, "language": "de", "columns": {"document": 1, "label": 1, "text": 4}, "held_out": 0.2},
                "en": {"held_out": 0.2},
            },
            "min_words": 4,
        }
    },
    "lexicons": {
        "given": {
            "mapping": {"mode": "dictionary"},
            "dictionary": {"de-en": "resources/wiktionary/de-en.tsv.xz"},
            "lexicon": {"align": False},
        }
    },
    "arms": ARMS,
    "experiments": {
        "applications": {
            "task": "classification",
            "corpus": "applications",
            "backbone": "tiny",
            "lexicon": "given",
            "training": {"batch_tokens": 800, "learning_rate": 0.005, "warmup_updates": 3, "max_length": 96, "evaluate_every": 2},
            "classification": {"batch_size": 32, "learning_rate": 0.001, "max_length": 48, "examples": 150},
            "scores": {"samples": 40},
            "metrics": ["matthews"],
        }
    },
}


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """A finished run of the tiny classification."""
    folder = lay_out(tmp_path_factory.mktemp("classification"))
    rows = read_lines(ROOT / "resources/libreoffice-help/en-de.tsv.xz")
    chosen = [line for line in rows if line.startswith(("swriter/", "scalc/", "shared/"))][::10]
    (folder / "applications.tsv").write_text("".join(f"{line}\n" for line in chosen), encoding="utf-8")
    shutil.copy(ROOT / "examples/plugins/matthews.py", folder)
    arguments = ["--configfile", str(ROOT / "config.yaml"), write_config(folder, CONTENT), "--cores", "2"]
    snakemake(folder, *arguments)
    return folder, arguments


def test_the_report_says_how_the_arms_do_and_what_the_most_frequent_label_gets(done):
    folder, _ = done
    page = (folder / "results/report.html").read_text(encoding="utf-8")
    assert "This part could not be made" not in page and "Calc &amp; co." in page
    assert '<th scope="row">most frequent label</th>' in page and "guessing" not in page
    rows = [row for row in read_rows(folder / "results/scores.tsv") if row["metric"] == "accuracy"]
    assert {row["task"] for row in rows} == {"classification"}
    assert {(row["testset"], row["direction"], row["arm"]) for row in rows} == {
        (testset, direction, arm) for testset, direction in (("de", "en-de"), ("en", "en-en"), ("average", "en")) for arm in ARMS
    }
    accuracy = {(row["arm"], row["testset"]): float(row["value"]) for row in rows}
    assert accuracy["csr-2e", "average"] == pytest.approx((accuracy["csr-2e", "de"] + accuracy["csr-2e", "en"]) / 2, abs=1e-4)


def test_a_metric_of_a_plugin_is_scored_tested_and_shown(done):
    folder, arguments = done
    run = folder / "results/runs/applications"
    scores = read_json(run / "csr-2e/seed1/predictions/de.scores.json")
    tested = {(row["testset"], row["arm"]): row for row in read_json(run / "significance.json")["more"]["matthews"] if row["seed"] == 1}
    baseline = read_json(run / "finetune-2e/seed1/predictions/de.scores.json")
    assert -100 <= scores["matthews"] <= 100 and str(folder / "matthews.py") in scores["provenance"]["plugins"]
    assert tested["de", "csr-2e"]["difference"] == pytest.approx(scores["matthews"] - baseline["matthews"])
    page = unescape((folder / "results/report.html").read_text(encoding="utf-8"))
    assert "Matthews' correlation, times 100 (Gorodkin 2004)." in page
    assert {row["metric"] for row in read_rows(folder / "results/comparisons.tsv")} == {"accuracy", "matthews"}
    plugin = folder / "matthews.py"
    before = plugin.read_text(encoding="utf-8")
    plugin.write_text(f"{before}\n", encoding="utf-8")
    jobs = planned(snakemake(folder, *arguments, "-n"))
    plugin.write_text(before, encoding="utf-8")
    assert {"head_prediction", "head_significance"} <= jobs and not {"head_finetune", "pretext", "backbone"} & jobs


def test_pages_of_the_test_sets_are_not_trained_on(done):
    folder, _ = done
    tables = {
        part: list(read_lines(folder / f"results/labelled/applications/{part}.tsv"))
        for part in ("train.en", "dev.en", "test/en.en", "test/de.de")
    }
    lines = {part: {line.split("\t")[1] for line in table} for part, table in tables.items()}
    assert not lines["train.en"] & (lines["dev.en"] | lines["test/en.en"])
    german = {line.split("\t")[2]: line.split("\t")[3] for line in read_lines(folder / "applications.tsv")}
    assert not {german.get(line) for line in lines["train.en"]} & lines["test/de.de"]


def test_foreign_words_are_restored_in_the_language_of_the_text(done):
    folder, _ = done
    report = read_json(folder / "results/codeswitch/applications/codeswitch/seed1/codeswitch.json")
    assert report["into"] == ["de"] and 0.1 < report["sides"]["en"]["rate"] <= 0.36


def test_other_words_of_finetuning_train_again_and_nothing_else(done):
    folder, arguments = done
    own = CONTENT["experiments"]["applications"]
    switching = {**own, "classification": {**own["classification"], "switch_while_finetuning": True}}
    content = {**CONTENT, "experiments": {"applications": switching}}
    write_config(folder, content)
    rules = {"head_finetune", "head_prediction", "head_significance", "configuration", "report", "all"}
    assert planned(snakemake(folder, *arguments, "-n")) == rules
