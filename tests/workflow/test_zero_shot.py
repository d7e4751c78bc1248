"""Two experiments into one language on a shared backbone: each model translates the other's test set, too."""

import csv
import json

import pytest
from test_workflow import ROOT, TINY, lay_out, planned, snakemake, write_config

from workflow_scripts.corpus import leak_key
from workflow_scripts.text import read_lines


@pytest.fixture(scope="module")
def zero_shot(tmp_path_factory):
    """A finished run of two tiny experiments, German and Spanish to English."""
    folder = tmp_path_factory.mktemp("zero-shot")
    lay_out(folder)
    spanish = list(read_lines(ROOT / "resources/libreoffice-help/en-es.tsv.xz"))[4000:6500]
    (folder / "spanish.tsv").write_text("".join(f"{line}\n" for line in spanish), encoding="utf-8")
    corpus = {
        **TINY["corpora"]["tiny"],
        "languages": ["en", "es"],
        "train": {"file": "spanish.tsv", "columns": {"document": 1, "en": 3, "es": 4}},
    }
    backbone = TINY["backbones"]["tiny"]
    text = {**backbone["small"]["text"], "es": "task"}
    experiment = TINY["experiments"]["tiny"]
    content = {
        **TINY,
        "run": {"experiments": ["tiny", "spanish"], "arms": ["finetune"], "seeds": [1], "zero_shot": True},
        "corpora": {**TINY["corpora"], "spanish": corpus},
        "backbones": {"tiny": {**backbone, "small": {**backbone["small"], "text": text, "disjoint": False}}},
        "experiments": {"tiny": experiment, "spanish": {**experiment, "corpus": "spanish", "source": "es"}},
    }
    arguments = ["--configfile", str(ROOT / "config.yaml"), write_config(folder, content), "--cores", "2"]
    snakemake(folder, *arguments)
    return folder, arguments


def test_the_matrix_is_in_report_and_table(zero_shot):
    folder, _ = zero_shot
    page = (folder / "results/report.html").read_text(encoding="utf-8")
    assert 'id="zero-shot"' in page and "This part could not be made" not in page
    with open(folder / "results/scores.tsv", encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file, delimiter="\t") if row["metric"] == "BLEU"]
    assert {(row["experiment"], row["testset"], row["direction"]) for row in rows} == {
        ("tiny", "pages", "de-en"),
        ("tiny", "spanish@pages", "es-en"),
        ("spanish", "pages", "es-en"),
        ("spanish", "tiny@pages", "de-en"),
    }


def test_the_other_test_set_is_read_in_its_own_language(zero_shot):
    folder, _ = zero_shot
    run = folder / "results/runs/tiny/finetune/seed1"
    own, other = (len(list(read_lines(run / f"{name}.hyp"))) for name in ("pages", "spanish@pages"))
    references = [len(list(read_lines(folder / f"results/corpora/{name}/test/pages.en"))) for name in ("tiny.en-de", "spanish.en-es")]
    assert [own, other] == references
    log = (folder / "results/logs/decoding/tiny/finetune.seed1.spanish@pages.log").read_text(encoding="utf-8")
    assert "Traceback" not in log


def test_no_training_text_has_a_reference_of_the_others_test_set(zero_shot):
    folder, _ = zero_shot
    corpora = folder / "results/corpora"
    for corpus, other in (("tiny.en-de", "spanish.en-es"), ("spanish.en-es", "tiny.en-de")):
        learnt = {leak_key(line) for line in read_lines(corpora / corpus / "train.en")}
        assert not learnt & {leak_key(line) for line in read_lines(corpora / other / "test/pages.en")}
        assert list(json.loads((corpora / corpus / "corpus.json").read_text(encoding="utf-8"))["held_out"]) == ["dev", "pages"]


def test_nothing_is_trained_for_it(zero_shot):
    folder, arguments = zero_shot
    for path in [folder / "results/report.html", *(folder / "results/runs").rglob("*@pages*")]:
        path.unlink()
    assert planned(snakemake(folder, *arguments, "-n")) == {
        "decoding",
        "scores",
        "significance",
        "significance_over_seeds",
        "report",
        "all",
    }
