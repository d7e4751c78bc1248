"""Tiny experiments with a model that is a decoder alone, to the report: trimmed, trained by LoRA, asked as it is and with examples, and
asked for labels."""

import pytest
import torch
from test_inference import APPLICATIONS
from test_workflow import ROOT, TINY, lay_out, plan, snakemake, write_config
from tiny_decoders import small_decoder
from transformers import AutoModelForCausalLM, AutoTokenizer

from workflow_scripts.models.tokenisation import load_codec
from workflow_scripts.stage import read_json
from workflow_scripts.text.files import read_lines
from workflow_scripts.training.adapter import main as merge

BEFORE = {"finetune": [], "csr": ["codeswitch"], "mask": ["mask"], "read": ["plain_text"]}
ARMS = [*BEFORE, "prompted", "shots"]
CONTENT = {
    **TINY,
    "run": {"experiments": ["tiny", "applications"], "arms": [*ARMS, "head"], "seeds": [1]},
    "labelled": {
        "applications": {
            "language": "en",
            "labels": ["Writer", "Calc & co."],
            "train": APPLICATIONS,
            "dev": {"held_out": 0.1},
            "test": {"en": {"held_out": 0.1}},
            "min_words": 4,
        }
    },
    "arms": {
        **{
            arm: [*({"data": data, "updates": 6} for data in before), {"data": "task", "updates": 16 - 6 * len(before)}]
            for arm, before in BEFORE.items()
        },
        "prompted": [],
        "shots": [{"data": "task", "shots": 2}],
        "head": [{"data": "task", "epochs": 1}],
    },
    "backbones": {"tiny": {"kind": "hub", "model": "decoder/model", "trim": True}},
    "experiments": {
        "tiny": {
            **TINY["experiments"]["tiny"],
            "training": {
                **TINY["experiments"]["tiny"]["training"],
                "adapter": {"kind": "lora", "rank": 4},
                "label_smoothing": 0.0,
                "max_length": 64,
                "pairs": 200,
            },
            "templates": {"restore": "Bent {target_language}: {source}\n{target_language}:"},
            "representation": {"sentences": 20},
            "arms": ARMS,
        },
        "applications": {
            "task": "classification",
            "corpus": "applications",
            "backbone": "tiny",
            "arms": ["head", "prompted", "shots"],
            "classification": {"batch_size": 32, "learning_rate": 0.001, "max_length": 48, "examples": 64},
            "verbaliser": {"template": "{text}\nWhich?", "words": {"Writer": "texts", "Calc & co.": "tables"}, "normalised": "bytes"},
            "scores": {"samples": 40},
        },
    },
}


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """A folder in which it has run."""
    folder = lay_out(tmp_path_factory.mktemp("decoder"))
    (folder / "decoder").mkdir()
    small_decoder(folder / "decoder")
    rows = read_lines(ROOT / "resources/libreoffice-help/en-de.tsv.xz")
    chosen = [line for line in rows if line.startswith(("swriter/", "scalc/"))][::10]
    (folder / "applications.tsv").write_text("".join(f"{line}\n" for line in chosen), encoding="utf-8")
    snakemake(folder, "--configfile", str(ROOT / "config.yaml"), write_config(folder, CONTENT), "--cores", "2")
    return folder


def test_all_arms_come_to_scores_and_report(done):
    references = list(read_lines(done / "results/corpora/tiny.en-de/test/pages.en"))
    for arm in ARMS:
        hypotheses = list(read_lines(done / f"results/runs/tiny/{arm}/seed1/pages.hyp"))
        assert len(hypotheses) == len(references)
        assert "BLEU" in read_json(done / f"results/runs/tiny/{arm}/seed1/pages.scores.json")["metrics"]
    page = (done / "results/report.html").read_text(encoding="utf-8")
    assert "nothing is trained: the model is asked as it is, with 2 pairs of the training text before each source" in page
    assert "Does the model do as well without finetuning? prompted against the baseline, finetune" in page
    assert "could not be made" not in page
    assert not plan(done, CONTENT)


def test_the_vocabulary_is_cut_to_the_text_and_the_templates(done):
    report = read_json(done / "results/backbones/tiny/backbone.json")
    assert report["vocabulary"] < report["vocabulary_before_trimming"] and report["family"] == "decoder"
    whole, cut = (AutoTokenizer.from_pretrained(done / folder) for folder in ("decoder/model", "results/backbones/tiny/model"))
    for prompt in ("German: a\nEnglish: b", "Bent German: a\nGerman:"):
        assert whole.tokenize(prompt) == cut.tokenize(prompt)


def test_what_trains_nothing_hands_the_model_on_as_it_is(done):
    for arm, shots in (("prompted", 0), ("shots", 2)):
        report = read_json(done / f"results/runs/tiny/{arm}/seed1/finetune/training.json")
        assert report["shots"] == shots and len(report["lines"]) == shots and report["handed_on"]["updates"] == [0]
        codec = load_codec(done / f"results/runs/tiny/{arm}/seed1/finetune/model")
        assert len(codec.templates.examples) == shots
        assert codec.templates.restore.startswith("Bent")
    # all the others make equally many updates
    for arm, before in BEFORE.items():
        phases = ["pretext"] * len(before) + ["finetune"]
        reports = [read_json(done / f"results/runs/tiny/{arm}/seed1/{phase}/training.json") for phase in phases]
        assert sum(report["settings"]["updates"] for report in reports) == 16


def test_an_adapter_fits_the_whole_model_with_the_same_hypotheses(done, tmp_path):
    run = done / "results/runs/tiny/finetune/seed1"
    merge(run / "finetune/adapter", tmp_path / "whole", base=str(done / "decoder/model"))
    lines = list(read_lines(done / "results/corpora/tiny.en-de/test/pages.de"))
    codecs = [load_codec(model) for model in (tmp_path / "whole", run / "finetune/model")]
    networks = [AutoModelForCausalLM.from_pretrained(model).eval() for model in (tmp_path / "whole", run / "finetune/model")]
    kept = torch.tensor(
        codecs[0].tokenizer.convert_tokens_to_ids(codecs[1].tokenizer.convert_ids_to_tokens([*range(len(codecs[1].tokenizer))]))
    )
    compared = 0
    for line in lines:
        prompts = [torch.tensor(codec.asked(codec.pieces(codec.behind_blank([line]), 64), ("de", "en"))) for codec in codecs]
        assert kept[prompts[1]].tolist() == prompts[0].tolist()
        with torch.no_grad():
            whole, cut = (network(prompt).logits[0, -1] for network, prompt in zip(networks, prompts, strict=True))
        # each piece that is kept has the score that it has among all pieces
        assert torch.allclose(whole[kept], cut, atol=1e-3)
        texts = [network.generate(prompt, max_new_tokens=8, do_sample=False)[0] for network, prompt in zip(networks, prompts, strict=True)]
        if {*texts[0].tolist()} <= {*kept.tolist()}:
            compared += 1
            assert texts[0].tolist() == kept[texts[1]].tolist()
    assert compared


def test_labels_are_chosen_by_their_words_without_training(done):
    runs, page = done / "results/runs/applications", (done / "results/report.html").read_text(encoding="utf-8")
    for arm, shots in (("prompted", 0), ("shots", 2)):
        report = read_json(runs / f"{arm}/seed1/finetune/training.json")
        assert report["shots"] == shots == len(report["lines"]) and report["updates"] == {"planned": 0, "made": 0}
        scores = read_json(runs / f"{arm}/seed1/predictions/en.scores.json")
        assert scores["normalised"] == "bytes" and 0 <= scores["accuracy"] <= 100
        codec = load_codec(runs / f"{arm}/seed1/finetune/model")
        # the words of labels are whole in the vocabulary that was cut down
        whole = load_codec(done / "decoder/model")
        assert codec.tokens([" texts", "a\nWhich?"]) == whole.tokens([" texts", "a\nWhich?"])
    assert "with 2 examples of the training text before each text; a label is chosen by the log probability of its words by byte" in page
    assert {*read_json(runs / "significance.json")["pairs"][0]} >= {"arm", "other", "p"}


def test_only_labels_are_asked_again_with_another_normalisation(done):
    own = CONTENT["experiments"]["applications"]
    changed = {**own, "verbaliser": {**own["verbaliser"], "normalised": "none"}}
    jobs = plan(done, {**CONTENT, "experiments": {**CONTENT["experiments"], "applications": changed}})
    assert {"head_finetune", "head_prediction"} <= jobs and not {"backbone", "finetune", "decoding"} & jobs


def test_a_template_is_a_setting_of_the_phases_that_use_it(done):
    changed = {**CONTENT["experiments"]["tiny"], "templates": {"task": "{source} =>"}}
    jobs = plan(done, {**CONTENT, "experiments": {**CONTENT["experiments"], "tiny": changed}})
    assert {"backbone", "pretext", "finetune", "decoding"} <= jobs and "codeswitch" not in jobs
