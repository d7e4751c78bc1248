"""Published numbers beside measured ones: which are comparable, and in how many directions an arm is ahead."""

from dataclasses import replace

import pytest
from invented import configuration, plain, put, report, results, study_of

from workflow_scripts.config.experiments import Published
from workflow_scripts.evidence.comet import Comet, same_model
from workflow_scripts.report.__main__ import section
from workflow_scripts.report.published import published, updates_needed
from workflow_scripts.report.rendering import templates
from workflow_scripts.report.zero_shot import directions, zero_shot


def test_published_numbers_stand_beside_measured_ones(tmp_path):
    root = results(tmp_path / "results")
    config = configuration()
    config.experiments["demo"].published = [
        Published(arm="csr", metric="TER", value=39.2, source="Table <II>"),
        Published(arm="csr", metric="BLEU", value=38.1, source="Table II", backbone="facebook/mbart-large-cc25", updates=30000),
        Published(arm="finetune", metric="BLEU", value=37.8, source="Table II", backbone="somebody/mbart", updates=100),
    ]
    text = plain(report(root, tmp_path, config)[0])
    assert "39.2 Table <II> – not comparable : not measured here" in text
    assert "backbone facebook/mbart-large-cc25 there, somebody/mbart here; 30,000 updates there, 100 here" in text
    assert "37.8 Table II 20.00 yes, as far as the conditions say" in text


def test_a_published_meteor_and_model_are_found_under_their_names_here(tmp_path):
    root, config = results(tmp_path / "results"), configuration()
    small = root / "backbones/small/backbone.json"
    put(root / "backbones/xlmr/backbone.json", {"kind": "hub", "model": "somebody/xlmr"})
    put(small, {"kind": "converted", "start": "results/backbones/xlmr/model"})
    study = study_of(root, config)
    measured = [{"testset": "pages", "arm": "csr", "seed": 1, "metric": "METEOR (exact+stem)", "value": 15.5, "signature": "s"}]
    for backbone, differs in (("somebody/xlmr", []), ("somebody/other", ["backbone somebody/other there, somebody/xlmr here"])):
        study.settings.published = [Published("csr", "METEOR", 15.9, "Table 3", backbone=backbone)]
        (row,) = published(study, measured)
        assert row["measured"]["mean"] == 15.5 and row["differs"] == [
            "a METEOR that is not stated there, METEOR (exact+stem) here",
            *differs,
        ]


def test_published_numbers_of_other_text_or_another_rouge_are_not_comparable(tmp_path):
    root, config = results(tmp_path / "results"), configuration()
    measured = {"BLEU": {"value": 20, "signature": "tok:13a|s"}, "BLEU, lower-cased": {"value": 22, "signature": "case:lc|tok:13a|s"}}
    measured |= {"ROUGE-1": {"value": 30, "signature": "case:lc|tok:words|version:rouge-score 0.1"}}
    path = root / "runs/demo/csr/seed1/pages.scores.json"
    numbers = {
        "capitals": Published(arm="csr", metric="BLEU", value=1.0, source="capitals", tokenize="13a"),
        "folded": Published(arm="csr", metric="BLEU", value=1.0, source="folded", lowercase=True),
        "words": Published(arm="csr", metric="word_f_all", value=1.0, source="words", lowercase=True),
        "rouge": Published(arm="csr", metric="ROUGE-1", value=1.0, source="rouge", tokenize="files2rouge"),
        "unsaid": Published(arm="csr", metric="ROUGE-1", value=1.0, source="unsaid"),
    }
    config.experiments["demo"].published = list(numbers.values())

    def numbers_by_source(lowercase, metrics):
        config.corpora["help"].lowercase = lowercase
        put(path, {"sentences": 3, "metrics": metrics})
        study = study_of(root, config)
        return {row["number"].source: (row["measured"]["mean"], row["differs"]) for row in section(study)["published"]}

    with_capitals, without = (
        numbers_by_source(False, measured),
        numbers_by_source(True, {key: measured[key] for key in ("BLEU", "ROUGE-1")}),
    )
    other = ["lower-cased text there, text with capitals here"]
    assert with_capitals["capitals"] == (20, []) and with_capitals["folded"] == (22, []) and with_capitals["words"][1] == other
    assert without["capitals"] == (20, ["text with capitals there, lower-cased text here"])
    assert without["folded"] == (20, []) and without["words"][1] == []
    for found in (with_capitals, without):
        assert found["rouge"][1] == ["counted by files2rouge there, by rouge-score 0.1 on words here"]
        assert found["unsaid"][1] == ["counted by what is not stated there, by rouge-score 0.1 on words here"]


AGREES = Published(
    arm="csr",
    metric="COMET",
    value=0.5,
    source="a table",
    testset="pages",
    tested_on="news",
    direction="de-en",
    model="wmt-large-da-estimator-1719",
    backbone="somebody/mbart",
    updates=100,
)
"""A number that agrees in all conditions with what `compared` measures."""


def compared(tmp_path, number):
    """The conditions in which `number` differs from a COMET of csr on a test set of acquired data, by the page's own function."""
    root, config = results(tmp_path / "results"), configuration()
    config.corpora["help"].test["pages"] = replace(
        config.corpora["help"].test["pages"], held_out=None, data="news", file="results/data/news.tsv"
    )
    config.experiments["demo"].comet = Comet(model="Unbabel/wmt20-comet-da")
    config.experiments["demo"].published = [number]
    for path in (root / "runs/demo").glob("*/seed1/pages.scores.json"):
        said = {"value": 0.4, "signature": "model:Unbabel/wmt20-comet-da|revision:1", "reason": None}
        put(path.with_name("pages.comet.json"), said)
    (row,) = section(study_of(root, config))["published"]
    return row["differs"]


def test_a_number_that_agrees_in_all_conditions_is_comparable(tmp_path):
    assert compared(tmp_path, AGREES) == []


@pytest.mark.parametrize(
    ("other", "difference"),
    [
        ({"tested_on": "olympics"}, "tested on olympics there, on news here"),
        ({"direction": "en-de"}, "direction en-de there, de-en here"),
        ({"metric": "METEOR"}, "not measured here"),
        ({"model": "Unbabel/wmt22-comet-da"}, "model Unbabel/wmt22-comet-da there, Unbabel/wmt20-comet-da here"),
        # a name that begins alike is another model
        ({"model": "wmt20-comet"}, "model wmt20-comet there, Unbabel/wmt20-comet-da here"),
        ({"lowercase": True}, "lower-cased text there, text with capitals here"),
        ({"backbone": "somebody/else"}, "backbone somebody/else there, somebody/mbart here"),
        ({"updates": 99}, "99 updates there, 100 here"),
    ],
)
def test_one_difference_makes_a_number_not_comparable(tmp_path, other, difference):
    assert compared(tmp_path, replace(AGREES, **other)) == [difference]


def test_bleu_of_another_tokeniser_is_not_comparable(tmp_path):
    study = study_of(results(tmp_path / "results"), configuration())
    measured = [{"testset": "pages", "arm": "csr", "seed": 1, "metric": "BLEU", "value": 30.5, "signature": "nrefs:1|case:mixed|tok:13a|s"}]
    for tokenize, differs in (("13a", []), ("none", ["tokeniser none there, 13a here"])):
        study.settings.published = [Published("csr", "BLEU", 31.5, "Table 3", tokenize=tokenize)]
        (row,) = published(study, measured)
        assert row["differs"] == differs


def test_random_weights_are_no_published_model(tmp_path):
    root, config = results(tmp_path / "results"), configuration()
    study = study_of(root, config)
    assert study.published_model("csr") == "somebody/mbart"
    study.arms["csr"][0].start = "scratch"
    assert study.published_model("csr") == "random weights"
    measured = [{"testset": "pages", "arm": "csr", "seed": 1, "metric": "BLEU", "value": 15.5, "signature": "tok:13a"}]
    for backbone, differs in (("random weights", []), ("somebody/mbart", ["backbone somebody/mbart there, random weights here"])):
        study.settings.published = [Published("csr", "BLEU", 15.9, "Table 1", backbone=backbone)]
        (row,) = published(study, measured)
        assert row["differs"] == differs


def test_text_that_is_held_out_or_stands_in_files_is_named(tmp_path):
    config = configuration()
    assert study_of(tmp_path, config).tested_on["pages"] == "held out of train.de and train.en"
    config.corpora["help"].test["pages"] = replace(config.corpora["help"].test["pages"], held_out=None, files={"de": "a.de", "en": "a.en"})
    assert study_of(tmp_path, config).tested_on["pages"] == "a.de and a.en"


def test_an_older_name_of_a_comet_model_and_a_folder_are_the_same_model():
    assert same_model("wmt-large-da-estimator-1719", "Unbabel/wmt20-comet-da")
    assert same_model("Unbabel/wmt22-comet-da", "/models/wmt22-comet-da")
    assert not same_model("wmt-large-da-estimator-1719", "Unbabel/wmt20-comet-qe-da")


def test_distances_of_the_model_before_training_have_published_numbers_too(tmp_path):
    root, config = results(tmp_path / "results"), configuration()
    number = Published("backbone", "distance_means", 28.33, "Table VI", direction="en-de", backbone="somebody/mbart")
    config.experiments["demo"].published = [number]
    (row,) = section(study_of(root, config))["published"]
    assert row["measured"]["mean"] == 23.25 / 2 and row["differs"] == ["direction en-de there, de-en here"]
    config.experiments["demo"].published = [replace(number, updates=500_000, direction="")]
    (row,) = section(study_of(root, config))["published"]
    assert row["differs"] == ["500,000 updates there, those of the backbone here"]


def test_updates_until_the_baselines_loss_are_beside_the_published_ones(tmp_path):
    enough = {"arm": "csr", "points": 8, "finetuning": {"values": [11_000.0, 13_000.0]}}
    few = {"arm": "mask", "points": 7, "finetuning": {"values": [9_000.0]}}
    rows = [*updates_needed([enough, few, {"arm": "random", "points": 9, "finetuning": None}])]
    assert [(row["arm"], row["value"]) for row in rows] == [("csr", 11_000.0), ("csr", 13_000.0)]
    results(tmp_path)
    study = study_of(tmp_path, configuration())
    study.settings.published = [Published("csr", "updates_to_baseline_loss", 12_000.0, "Figure 2")]
    (row,) = published(study, rows)
    assert row["measured"]["mean"] == 12_000
    assert row["differs"] == ["a loss that is not stated there, the baseline's least dev loss here"]


def ahead(here, theirs, marker="", p=0.04):
    """A part with one learnt and one zero-shot direction, whose csr has the score `here` in both, finetune 20."""
    config = configuration(arms=("finetune", "csr"))
    study = study_of(here.pop("folder"), config)
    study.zero_shot = {"other@pages": "es"}
    study.settings.published = [
        Published(arm, "BLEU", value, "x", testset=test, significance="‡" if arm == "csr" else "")
        for test, (csr, finetune) in theirs.items()
        for arm, value in (("csr", csr), ("finetune", finetune))
    ]
    cell = {"finetune": {"mean": 20.0, "seeds": [{"marker": "", "p": None}]}}
    tables = {
        test: {"cells": {("finetune", "BLEU"): cell["finetune"], ("csr", "BLEU"): {"mean": value, "seeds": [{"marker": marker, "p": p}]}}}
        for test, value in here.items()
    }
    return {"study": study, "failed": {}, "scores": {"tables": tables}}


def test_directions_in_which_an_arm_is_ahead_are_counted_beside_the_published_ones(tmp_path):
    first = ahead({"folder": tmp_path, "pages": 21.0, "other@pages": 20.0}, {"pages": (2.0, 1.0)}, "†")
    second = ahead({"folder": tmp_path, "pages": 21.0, "other@pages": 19.0}, {"pages": (1.0, 1.0), "other@pages": (3.0, 4.0)}, "† worse")
    learnt, others = directions([first, second])
    assert (learnt["zero_shot"], learnt["metric"], learnt["arm"]) == (False, "BLEU", "csr")
    counts = {"tested": 2, "of": 2}
    assert learnt["here"] == {"ahead": 2, "significant": 1, **counts} and learnt["published"] == {"ahead": 1, "significant": 1, **counts}
    # equal is not ahead, and a mark for worse is none for better
    assert others["here"] == {"ahead": 0, "significant": 0, **counts}
    assert others["published"] == {"ahead": 0, "significant": 0, "tested": 1, "of": 1}


@pytest.mark.parametrize("p, bracket", [((0.04, 0.04), "(2)"), ((None, 0.04), "(1 of 1 tested)"), ((None, None), "(–)")])
def test_directions_without_tests_are_not_counted_as_insignificant(tmp_path, p, bracket):
    parts = [ahead({"folder": tmp_path, "pages": 21.0}, {}, "" if one is None else "†", one) for one in p]
    for part in parts:
        part["study"].zero_shot = {"pages": "de"}
        part["study"].testsets = []
        part["scores"]["trivial"], part["scores"]["trivially"] = {}, "a copy of the source"
        for row in part["scores"]["tables"]["pages"]["cells"].values():
            row |= {"n": 1, "sd": None}
    page = templates(configuration()).get_template("zero_shot.html.j2")
    html = plain(page.render(zero_shot=zero_shot(parts), directions=directions(parts)))
    assert f"csr 2 of 2 {bracket}" in html and ("– where no seed was tested" in html) == (bracket == "(–)")
    assert ("a marker for each seed" in html) == (p[1] is not None)
