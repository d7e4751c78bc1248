"""A tiny run of ways to write: mBART, also of switched words, a frozen encoder, and CTC from random weights; titles by mask-predict."""

import json

import pytest
from safetensors import safe_open
from test_workflow import ROOT, TINY, lay_out, snakemake, write_config

from workflow_scripts.stage import read_json, read_rows
from workflow_scripts.text.files import read_lines

ARMS = ["finetune", "ras", "nat", "sga", "sga_without_denoising"]


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """A folder in which it has run."""
    folder = lay_out(tmp_path_factory.mktemp("sga"))
    text = {"file": "manual.tsv", "columns": {"document": 1, "heading": 2, "text": 3}}
    manual = {"unit": "target", "language": "en", "train": text, "dev": {"held_out": 0.1}, "test": {"pages": {"held_out": 0.1}}}
    encoder = {**TINY["backbones"]["tiny"], "family": "xlmr"}
    task = {"data": "task", "updates": 16}
    at_once = {**task, "backbone": "encoder"}
    tiny = {**TINY["experiments"]["tiny"], "sga": {"prompt_length": 4}}
    tiny["speed"] = {"sentences": 4, "repeats": 1, "iterations": [0, 2], "beams": [1]}
    titles = {key: tiny[key] for key in ("training", "scores", "sga")}
    guesses = {"sentences": 4, "repeats": 1, "iterations": [0, 1], "alignment_iterations": [1, 2]}
    content = {
        **TINY,
        "run": {"experiments": ["tiny", "titles"], "arms": ARMS, "seeds": [1]},
        "labelled": {"manual": {**manual, "min_words": 5}},
        "backbones": {**TINY["backbones"], "encoder": encoder},
        "arms": {
            "finetune": [task],
            "ras": [{**task, "switch": 0.3}],
            "nat": [{**at_once, "generator": "ctc", "start": "scratch"}],
            "sga": [{**at_once, "generator": "sga"}],
            "sga_without_denoising": [{**at_once, "generator": "sga", "sga": {"denoising": False}}],
        },
        "experiments": {
            "tiny": tiny,
            "titles": {
                **titles,
                "task": "titles",
                "corpus": "manual",
                "backbone": "encoder",
                "arms": ["sga"],
                "decoding": {"max_length": 12},
                "speed": guesses,
            },
        },
    }
    snakemake(folder, "--configfile", str(ROOT / "config.yaml"), write_config(folder, content), "--cores", "1")
    return folder / "results"


def test_all_arms_come_to_scores_and_report(done):
    rows = read_rows(done / "scores.tsv")
    assert {row["arm"] for row in rows if row["experiment"] == "tiny"} - {"backbone"} == {*ARMS}
    assert {row["arm"] for row in rows if row["experiment"] == "titles"} == {"sga"}
    page = (done / "report.html").read_text(encoding="utf-8")
    assert "This part could not be made" not in page
    assert "written at once by CTC and denoising: prompts of length 4 for a frozen encoder" in page and "backbone encoder" in page
    assert "written at once by mask-predict and denoising" in page and "30% of the source&#39;s words switched by the lexicon" in page
    sentences = len(list(read_lines(next((done / "corpora/tiny.en-de/test").glob("pages.en")))))
    assert all(len(list(read_lines(done / f"runs/tiny/{arm}/seed1/pages.hyp"))) == sentences for arm in ARMS)


def test_what_is_trained_and_what_is_frozen(done):
    reports = {arm: read_json(done / f"runs/tiny/{arm}/seed1/finetune/training.json") for arm in ARMS}
    assert reports["sga"]["trained"] == 3 * (2 * 4 * 32 + 1) + 2 * (32 * 32 + 32)
    assert reports["sga_without_denoising"]["trained"] == 2 * (2 * 4 * 32 + 1) + 2 * (32 * 32 + 32)
    assert reports["nat"]["trained"] == reports["nat"]["parameters"] and reports["nat"]["generator"] == "ctc"
    assert "generator" not in reports["finetune"] and reports["sga"]["left_out"].keys() >= {"targets_too_long"}
    backbone = done / "backbones/encoder/model/model.safetensors"
    weights = {arm: done / f"runs/tiny/{arm}/seed1/finetune/model/model.safetensors" for arm in ("sga", "nat")}
    assert weights["sga"].read_bytes() == backbone.read_bytes() != weights["nat"].read_bytes()
    with safe_open(weights["sga"].with_name("prompts.safetensors"), "pt") as file:
        record = json.loads(file.metadata()["crossgap"])
    assert record["backbone"] == "encoder" and record["frozen"] is True


def test_speed_is_measured_of_all_arms_together_and_drawn(done):
    rows = read_json(done / "runs/tiny/speed.json")["rows"]
    ways = {(row["arm"], row["way"]) for row in rows}
    written = {(arm, f"{engine}, beam 1") for arm in ("finetune", "ras") for engine in ("generate", "CTranslate2")}
    at_once = {("sga", "alignment alone"), ("sga", "at most 2 iterations")}
    assert ways == written | at_once | {("nat", "alignment alone"), ("sga_without_denoising", "alignment alone")}
    assert len(rows) == 2 * len(ways) and all(row["sentences_per_second"] > 0 and row["BLEU"] is not None for row in rows)
    page = (done / "report.html").read_text(encoding="utf-8")
    assert "BLEU against speed, sentences one at a time" in page


def test_speed_of_mask_predict_is_measured_with_so_many_guesses(done):
    """Table 4 of Wu et al. 2023: what is guessed how often, with and without denoising."""
    measured = read_json(done / "runs/titles/speed.json")
    ways = [f"{denoised}, {guesses}" for denoised in ("alignment alone", "at most 1 iteration") for guesses in ("1 guess", "2 guesses")]
    assert [row["way"] for row in measured["rows"] if not row["batched"]] == ways
    assert measured["metrics"] == ["ROUGE-L", "METEOR (exact+stem)", "BLEU"] and not measured["failed"]
    assert all(0 <= row[metric] <= 100 for row in measured["rows"] for metric in measured["metrics"])
    page = (done / "report.html").read_text(encoding="utf-8")
    assert "ROUGE-L against speed, sentences one at a time" in page
