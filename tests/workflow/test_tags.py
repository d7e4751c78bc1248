"""A tiny token labelling from a treebank to the report, with an encoder that is pretrained in the run, and one whose structure is found out."""

from html import unescape

import pytest
from test_workflow import ROOT, TINY, lay_out, snakemake, write_config
from tiny_encoders import tiny_encoder

from workflow_scripts.stage import read_json, read_rows
from workflow_scripts.text.files import read_lines
from workflow_scripts.text.tagged import split_words

TREEBANK = ROOT / "resources/universal-dependencies"
TAGS = ["ADJ", "ADP", "ADV", "AUX", "CCONJ", "DET", "INTJ", "NOUN", "NUM", "PART", "PRON", "PROPN", "PUNCT", "SCONJ", "SYM", "VERB", "X"]
GERMAN = {"file": "de.test.conllu", "language": "de"}
ARMS = {
    "finetune": [{"data": "task", "epochs": 2}],
    "scratch": [{"data": "task", "epochs": 2, "start": "scratch"}],
}
GUESSING = {"batch_tokens": 600, "warmup_updates": 1, "evaluate_every": 2, "max_length": 48, "checkpoint": "last"}
CONTENT = {
    "run": {"experiments": ["tags", "chosen", "found"], "arms": [*ARMS, "all", "switched", "guessed", "few"], "seeds": [1]},
    "labelled": {
        "treebank": {
            "unit": "word",
            "language": "en",
            "labels": TAGS,
            "train": {"file": "en.train.conllu"},
            "dev": {"held_out": 0.2},
            "test": {"en": {"held_out": 0.2}, "de": GERMAN},
        },
        "both": {
            "unit": "word",
            "language": "en",
            "labels": TAGS,
            "train": {"file": "en.train.conllu"},
            "dev": {"held_out": 0.2},
            "test": {"en": {"held_out": 0.2}},
            "translations": {"de": GERMAN},
            "more_dev": {"de": {**GERMAN, "held_out": 0.4}},
        },
    },
    "lexicons": {"words": {"mapping": {"mode": "dictionary"}, "dictionary": {"en-de": "words.tsv"}}},
    "backbones": {
        "encoder": {**TINY["backbones"]["tiny"], "family": "xlmr", "objective": "mlm"},
        "modern": {"kind": "hub", "model": "tiny/model", "trim": True},
    },
    "arms": {
        **ARMS,
        "all": [{"data": "task", "epochs": 1, "translations": True}],
        "switched": [{"data": "task", "epochs": 1, "switch": 0.5}],
        "guessed": [{"data": "switched_text", "updates": 4, "training": GUESSING}, {"data": "task", "epochs": 1}],
        "few": [{"data": "task", "epochs": 1, "training": {"adapter": {"kind": "lora", "rank": 2}, "learning_rate": 0.01}}],
    },
    "experiments": {
        "found": {
            "task": "labelling",
            "corpus": "treebank",
            "backbone": "modern",
            "lexicon": "words",
            "arms": ["switched", "guessed", "few"],
            "labelling": {"batch_size": 16, "learning_rate": 0.001, "max_length": 48},
            "scores": {"samples": 40},
        },
        "chosen": {
            "task": "labelling",
            "corpus": "both",
            "backbone": "encoder",
            "arms": ["all"],
            "select_on": "all",
            "labelling": {"batch_size": 16, "learning_rate": 0.001, "max_length": 48, "epochs": [1, 2]},
            "scores": {"samples": 40},
        },
        "tags": {
            "task": "labelling",
            "corpus": "treebank",
            "backbone": "encoder",
            "arms": list(ARMS),
            "labelling": {"batch_size": 16, "learning_rate": 0.001, "max_length": 48},
            "scores": {"samples": 40},
        },
    },
}


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """The results of a finished run of the tiny labelling."""
    folder = lay_out(tmp_path_factory.mktemp("labelling"))
    for name, sentences in (("en.train.conllu", 300), ("de.test.conllu", 200)):
        text = "\n".join(read_lines(TREEBANK / f"{name}.xz")).split("\n\n")[:sentences]
        (folder / name).write_text("\n\n".join(text) + "\n\n", encoding="utf-8")
    (folder / "words.tsv").write_text("the\tdie\nand\tund\nof\tvon\nin\tin\nto\tzu\n", encoding="utf-8")
    (folder / "tiny").mkdir()
    tiny_encoder(folder / "tiny", "modernbert")
    snakemake(folder, "--configfile", str(ROOT / "config.yaml"), write_config(folder, CONTENT), "--cores", "2")
    return folder / "results"


def test_the_encoder_is_pretrained_here_and_finetuned(done):
    backbone = read_json(done / "backbones/encoder/backbone.json")
    assert (backbone["family"], backbone["objective"]) == ("xlm-roberta", "mlm") and set(backbone["sentences"]) == {"en", "de"}
    reports = {arm: read_json(done / f"runs/tags/{arm}/seed1/finetune/training.json") for arm in ARMS}
    assert {arm: report["from_scratch"] for arm, report in reports.items()} == {"finetune": False, "scratch": True}
    assert {report["start"] for report in reports.values()} == {"results/backbones/encoder/model"}


def test_an_encoder_that_no_entry_names_is_trimmed_and_learns_from_switched_words(done):
    backbone = read_json(done / "backbones/modern/backbone.json")
    assert backbone["family"] == "modernbert" and backbone["vocabulary"] < backbone["vocabulary_before_trimming"]
    report = read_json(done / "runs/found/switched/seed1/finetune/training.json")
    assert report["settings"]["codeswitch"]["noise"]["rate"] == 0.5 and report["start"] == "results/backbones/modern/model"
    given = [line.split(" ") for line in read_lines(done / "runs/found/switched/seed1/predictions/de.hyp")]
    assert given and {tag for tags in given for tag in tags} <= set(TAGS)


def test_an_encoder_guesses_masked_words_of_switched_text_before_it_learns_tags(done):
    report = read_json(done / "runs/found/guessed/seed1/pretext/training.json")
    assert report["as_text"] and report["languages"] == ["en"] and report["start"] == "results/backbones/modern/model"
    (noised,) = (done / "codeswitch/found").glob("**/codeswitch.json")
    (switched,) = read_json(noised)["sides"].values()
    assert switched["replaced"] > 0
    assert read_json(done / "runs/found/guessed/seed1/finetune/training.json")["start"].endswith("guessed/seed1/pretext/model")


def test_an_arm_learns_tags_by_an_adapter_of_its_own(done):
    folder = done / "runs/found/few/seed1/finetune"
    report = read_json(folder / "training.json")
    assert report["adapter"]["kind"] == "lora" and report["settings"]["learning_rate"] == 0.01
    assert (folder / "adapter/adapter_config.json").exists() and (folder / "model/model.safetensors").exists()
    assert "adapter" not in read_json(done / "runs/found/switched/seed1/finetune/training.json")


def test_epochs_are_chosen_on_dev_text_in_both_languages_of_the_training_text(done):
    choice, report = read_json(done / "runs/chosen/all/choice.json"), read_json(done / "runs/chosen/all/seed1/finetune/training.json")
    points = [read_json(done / f"runs/chosen/all.grid{point}/seed1/finetune/training.json") for point in (0, 1)]
    assert [point["updates"]["planned"] for point in points] == [points[0]["updates"]["planned"], 2 * points[0]["updates"]["planned"]]
    assert [point["dev_score"] for point in choice["points"]] == [point["handed_on"]["dev_accuracy"] for point in points]
    assert report["languages"] == report["dev_languages"] == ["en", "de"]
    assert report["handed_on"] == points[choice["chosen"]]["handed_on"]
    page = unescape((done / "report.html").read_text(encoding="utf-8"))
    for words in ("Settings chosen on the dev set", "its mean over dev text in all languages", "1 translations of the text"):
        assert words in page


def test_every_word_of_every_test_set_gets_a_tag(done):
    for testset in ("en", "de"):
        words = [len(split_words(line.split("\t")[1])) for line in read_lines(done / f"labelled/treebank/test/{testset}.{testset}.tsv")]
        for arm in ARMS:
            given = [line.split(" ") for line in read_lines(done / f"runs/tags/{arm}/seed1/predictions/{testset}.hyp")]
            assert [len(tags) for tags in given] == words and {tag for tags in given for tag in tags} <= set(TAGS)


def test_the_page_has_every_part_and_names_the_word_list(done):
    page = (done / "report.html").read_text(encoding="utf-8")
    assert "This part could not be made" not in page
    assert '<th scope="row">word list</th>' in page and "guessing" not in page and "at chance" not in page
    text = unescape(page)
    for words in ("tag the words of sentences", "Accuracy of tags in per cent", "the tag that it most often has in the training text"):
        assert words in text


def test_the_table_of_scores_has_all_metrics_of_both_arms(done):
    rows = [row for row in read_rows(done / "scores.tsv") if row["experiment"] == "tags"]
    assert {(row["task"], row["experiment"], row["corpus"]) for row in rows} == {("labelling", "tags", "treebank")}
    assert {(row["testset"], row["direction"], row["arm"], row["metric"]) for row in rows} == {
        (testset, direction, arm, metric)
        for testset, direction in (("en", "en-en"), ("de", "en-de"), ("average", "en"))
        for arm in ARMS
        for metric in ("accuracy", "f1", "precision", "recall", "chance")
    }
    value = {(row["testset"], row["arm"], row["metric"]): float(row["value"]) for row in rows}
    for arm in ARMS:
        scores = {name: read_json(done / f"runs/tags/{arm}/seed1/predictions/{name}.scores.json") for name in ("en", "de")}
        for name, found in scores.items():
            assert value[name, arm, "accuracy"] == pytest.approx(found["accuracy"], abs=1e-5)
        assert value["average", arm, "accuracy"] == pytest.approx(sum(s["accuracy"] for s in scores.values()) / 2, abs=1e-5)
