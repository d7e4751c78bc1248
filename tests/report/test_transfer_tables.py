"""The report's section on transfer, made of a small results tree with invented numbers; and the tables beside scores.tsv."""

from dataclasses import replace
from html import unescape

import pytest
from invented import put
from test_labels import RIGHT, configuration, made, results

from workflow_scripts.config.analyses import Analysis
from workflow_scripts.config.experiments import Published
from workflow_scripts.evidence.cka import Cka
from workflow_scripts.report import transfer_tables
from workflow_scripts.report.__main__ import write_report
from workflow_scripts.report.predictors import correlation, predictors
from workflow_scripts.report.study import configured
from workflow_scripts.report.transfer_tables import against_base, by_seed_interval, summed_up, transfer
from workflow_scripts.stage import read_json, read_rows, write_json
from workflow_scripts.tasks.plan import Plans
from workflow_scripts.training.backbone import Backbone

SEEDS = (1, 2)


@pytest.fixture
def run(tmp_path):
    """A folder with the results of one classification on two backbones, and the configuration."""
    config = configuration(SEEDS, ("first", "second"))
    config.run.transfer = "small"
    config.backbones["continued"] = Backbone(kind="hub", model="somebody/more")
    number = Published("plain", "accuracy", 64.5, "a paper, Table 1", testset="average")
    config.experiments["second"] = replace(config.experiments["second"], backbone="continued", published=[number])
    root = tmp_path / "results"
    for name in ("first", "second"):
        results(root, SEEDS, name)
    put(root / "backbones/continued/backbone.json", {"kind": "hub", "model": "somebody/more", "family": "mbart", "parameters": 9})
    pairs = [
        {"testset": testset, "seed": seed, "arm": "continued", "other": "small", "difference": -4.0, "low": -7.0, "high": -1.0, "p": p}
        for testset, p in (("de", 0.004), ("en", 0.04), ("average", 0.002))
        for seed in (*SEEDS, None)
    ]
    put(root / "runs/first/transfer.json", {"baseline": "small", "pairs": pairs, "covers": {"seed": "examples", "seeds": "seeds"}})
    return tmp_path, config


def test_a_task_has_a_row_for_each_model_with_tests_and_published_numbers(run):
    folder, config = run
    found = transfer(folder / "results", Plans(config))
    (task,) = found["tasks"]
    assert found["failed"] == {} and found["models"] == ["small", "continued"] and list(task["testsets"]) == ["de", "en", "average"]
    # the first arm; the mean over test sets of each seed, then over seeds
    assert task["cells"]["small", "average"]["mean"] == pytest.approx((RIGHT["plain", "de"] + RIGHT["plain", "en"]) / 2 + 1.5)
    cell = task["cells"]["continued", "average"]
    assert cell["published"].value == 64.5
    # corrected for two test sets; the average by itself
    assert [task["cells"]["continued", test]["test"]["p"] for test in ("de", "en", "average")] == pytest.approx([0.008, 0.04, 0.002])
    assert found["averages"]["small"] == found["averages"]["continued"] and found["gains"]["continued"] == 0


def test_a_marker_needs_that_the_seeds_agree_too(run):
    folder, config = run

    def markers(*worse):
        """Those of the second model, whose accuracies are that much `worse` with each seed."""
        for seed, points in zip(SEEDS, worse, strict=True):
            for testset in ("de", "en"):
                file = f"plain/seed{seed}/predictions/{testset}.scores.json"
                score = read_json(folder / "results/runs/first" / file)
                write_json(folder / "results/runs/second" / file, {**score, "accuracy": score["accuracy"] - points})
        (task,) = transfer(folder / "results", Plans(config))["tasks"]
        return [task["cells"]["continued", testset]["test"]["marker"] for testset in task["testsets"]]

    assert markers(4.0, 4.1) == ["‡ worse", "† worse", "‡ worse"]
    assert markers(1.0, 7.0) == ["", "", ""]


@pytest.mark.parametrize("unit, said", [("%", "in per cent"), ("", "times 100")])
def test_the_caption_calls_shares_alone_per_cent(run, monkeypatch, unit, said):
    folder, config = run
    called = transfer_tables.measure(configured(folder / "results", Plans(config).experiments["first"]))
    monkeypatch.setattr(transfer_tables, "measure", lambda study: called._replace(unit=unit))
    assert f"Table 1), {said}, with what is published" in made(folder, config)


def test_a_published_number_without_a_test_set_is_of_the_first(run):
    folder, config = run
    number = Published("plain", "accuracy", 61.0, "a paper, Table 2")
    config.experiments["second"] = replace(config.experiments["second"], published=[number])
    (task,) = transfer(folder / "results", Plans(config))["tasks"]
    shown = {test: task["cells"]["continued", test]["published"] for test in task["testsets"]}
    assert shown == {"de": number, "en": None, "average": None}


def test_the_page_and_the_tables_have_the_comparison(run):
    folder, config = run
    tables = tuple(folder / f"{name}.tsv" for name in ("transfer", "analyses"))
    write_report(folder / "results", folder / "report.html", folder / "scores.tsv", Plans(config), tables=tables)
    page = unescape((folder / "report.html").read_text(encoding="utf-8"))
    # the seeds of the two have the same scores
    assert '<h2 id="transfer">' in page and "published 64.50" in page and "−4.00 (−7.00 to −1.00; by seeds 0.00 to 0.00), p = 0.002" in page
    assert "no model is above the" not in page and "could not be compared" not in page and r"\toprule" in page
    rows = read_rows(tables[0])
    assert [(row["model"], row["testset"]) for row in rows][:3] == [("small", "de"), ("small", "en"), ("small", "average")]
    assert (
        rows[-1] | {"published": "64.5", "p": "0.002", "difference": "-4.0", "against": "small", "seeds": "2", "seeds_low": "0.0"}
        == rows[-1]
    )
    assert tables[1].read_text(encoding="utf-8").startswith("analysis\tstage\t")


def test_models_that_do_not_beat_what_needs_none_are_named(run):
    folder, config = run
    for path in (folder / "results/runs/second/plain").rglob("*.scores.json"):
        write_json(path, {**read_json(path), "accuracy": 20.0})
    found = transfer(folder / "results", Plans(config))
    assert found["tasks"][0]["not_above"] == ["continued"]
    assert "texts: continued is not above the most frequent label on average (55.00 %)" in made(folder, config)


def test_a_task_that_cannot_be_compared_says_why(run):
    folder, config = run
    (folder / "results/runs/first/transfer.json").unlink()
    found = transfer(folder / "results", Plans(config))
    assert "transfer.json is missing" in found["failed"]["first"] and found["tasks"] == []
    assert "first could not be compared" in made(folder, config)


def test_a_damaged_test_of_the_differences_says_what_it_lacks(run):
    folder, config = run
    put(folder / "results/runs/first/transfer.json", {"covers": {}})
    assert "lacks something or is damaged (KeyError: 'pairs')" in transfer(folder / "results", Plans(config))["failed"]["first"]


def test_without_a_base_there_is_no_such_section(run):
    folder, config = run
    config.run.transfer = None
    assert transfer(folder / "results", Plans(config)) == {}
    assert 'id="transfer"' not in made(folder, config)


def test_a_difference_is_always_the_models_from_the_base(run):
    folder, config = run
    study = configured(folder / "results", Plans(config).experiments["first"])
    pairs = [{"testset": "de", "seed": None, "arm": "base", "other": "new", "difference": 2.0, "low": -1.0, "high": 5.0, "p": 0.2}]
    test = against_base(study, "b", {"b": "base", "n": "new"}, pairs)["n", "de"]
    assert (test["difference"], test["low"], test["high"]) == (-2.0, -5.0, 1.0)


def test_the_interval_by_seeds_pairs_them_and_wants_several():
    # differences 1, 2, 3: mean 2, standard error 1/√3, times 4.303
    assert by_seed_interval([2.0, 4.0, 6.0], [1.0, 2.0, 3.0]) == pytest.approx((2 - 2.484, 2 + 2.484), abs=1e-3)
    assert by_seed_interval([2.0], [1.0]) is None and by_seed_interval([2.0, 4.0], [1.0]) is None


def test_the_mean_over_tasks_is_of_models_that_have_all_of_them():
    def one(corpus, **means):
        cells = {(model, "average"): {"mean": mean, "values": [mean], "test": None} for model, mean in means.items()}
        return {"corpus": corpus, "models": list(means), "leading": "average", "cells": cells}

    found = summed_up([one("xnli", base=60.0, cp=62.0, mt=70.0), one("pos", base=80.0, cp=79.0)], ["base", "cp", "mt"], "base")
    assert found["averages"] == {"base": 70.0, "cp": 70.5} and found["gains"] == {"base": 0.0, "cp": 0.5}
    assert found["text"]["Markdown"].splitlines()[-2:] == ["| cp | 62.00 | 79.00 | 70.50 |", "| mt | 70.00 | – | – |"]
    assert not summed_up([one("xnli", cp=62.0)], ["base", "cp"], "base")["gains"]


def test_measures_are_ranked_beside_the_mean_over_tasks():
    means = {"a": 1.0, "b": 2.0, "c": 3.0, "d": 4.0, "e": 5.0}
    assert correlation(means, {"a": 9, "b": 8, "c": 7, "d": 1, "e": 0}, [*means]) == pytest.approx(-1)
    # ties share a rank: ranks 1.5, 1.5, 3, 4, 5 beside 1, 2, 3, 4, 5
    assert correlation(means, {"a": 1, "b": 1, "c": 2, "d": 3, "e": 4}, [*means]) == pytest.approx(9.5 / (10 * 9.5) ** 0.5)
    assert correlation(means, {"a": 1, "b": 2, "c": 3, "d": 4}, [*means]) is None  # four models have it
    assert correlation(means, dict.fromkeys(means, 1.0), [*means]) is None
    spectra = {"cells": {(model, 0, kind): {"norm": 3.0, "distance": 4.0} for model in ("a", "b") for kind in ("K", "Q")}}
    one = {
        "name": "insides",
        "names": {"a": "A", "b": "B"},
        "stages": {"spectra": spectra},
        "settings": Analysis(models=["a", "b", "z"], base="a"),
    }
    (found,) = predictors({"averages": means}, [one])
    assert found["models"] == ["a", "b"] and found["measures"]["d to A, all matrices together"] == {"b": pytest.approx(32**0.5)}
    assert found["measures"]["‖σ‖ of all matrices together"]["a"] == pytest.approx(18**0.5)
    assert predictors({}, [one]) == []


def test_cka_stands_beside_transfer_with_each_model_it_is_measured_against_and_between_languages():
    def pair(value, **of):
        return {**of, "by_layer": [{"unbiased": None}, {"unbiased": value}]}

    between = [pair(0.5, a="a", b="c"), pair(0.7, a="a", b="c"), pair(0.9, a="b", b="c"), pair(None, a="b", b="c")]
    within = [pair(0.2, model="c", a="de", b="en"), pair(0.4, model="c", a="de", b="fr")]
    one = {
        "name": "insides",
        "names": {"a": "A", "b": "B", "c": "C"},
        "stages": {"cka": {"report": {"poolings": {"mean": {"models": between, "languages": within}}}}},
        "settings": Analysis(models=["a", "b", "c"], cka=Cka(against=["a", "b"])),
    }
    (found,) = predictors({"averages": {"a": 1.0, "b": 2.0, "c": 3.0}}, [one])
    assert found["measures"] == {
        "CKA with A, last layer, mean (unbiased, mean over languages)": {"c": pytest.approx(0.6)},
        "CKA with B, last layer, mean (unbiased, mean over languages)": {"c": pytest.approx(0.9)},
        "CKA between languages, last layer, mean (unbiased, mean over pairs)": {"c": pytest.approx(0.3)},
    }
