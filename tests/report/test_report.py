"""The report, made of a small results tree with invented numbers."""

import csv
import itertools
import json
import re
import shutil
from dataclasses import replace
from html import unescape
from types import SimpleNamespace
from typing import get_args, get_type_hints

import numpy as np
import pytest
import zstandard

from workflow_scripts.evidence.comet import Comet
from workflow_scripts.evidence.significance import COVERS
from workflow_scripts.report import drawing
from workflow_scripts.report.__main__ import TRAINS_ON, overview_rows, section, templates, write_report, zero_shot
from workflow_scripts.report.comparison import contrast, differences, measures
from workflow_scripts.report.curves import curve, first_below, looks, updates_made
from workflow_scripts.report.exhibits import marked, noised_lines, rare_words
from workflow_scripts.report.geometry import distances, plane
from workflow_scripts.report.headline import answer, comparisons, headline
from workflow_scripts.report.origins import cost
from workflow_scripts.report.shown import PARTS
from workflow_scripts.report.study import configured, evenly, paired, signed, summary
from workflow_scripts.run.config import load
from workflow_scripts.stage import InputError, read_json
from workflow_scripts.tasks.experiment import Phase, Published
from workflow_scripts.text.acquisition import Data
from workflow_scripts.training.curve import write_curve

ARMS = ("finetune", "csr", "mask", "random")
KINDS = {"csr": "codeswitch", "mask": "mask", "random": "random", "released": "released"}
BLEU = {"finetune": 20.0, "csr": 21.25, "mask": 20.5, "random": 20.75, "released": 20.25}
SOURCES = ["Öffnen Sie die Datei.", "Klicken Sie auf Drucken.", "Das Fenster <b>schließt</b> sich & bleibt zu."]
REFERENCES = ["Open the file.", "Click Print.", "The window closes & stays closed."]
NOISED = {
    "codeswitch": "Klicken you auf file Schaltfläche um das Fenster zu close",
    "mask": "Klicken <mask> auf <mask> Schaltfläche um das Fenster zu <mask>",
    "random": "Klicken tab auf cell Schaltfläche um das Fenster zu font",
    "released": "▁K lick en ▁zebra ▁auf ▁die ▁Schaltfläche ▁um ▁das ▁Fenster ▁zu ▁ox",
}
ORIGINAL = "Klicken Sie auf die Schaltfläche um das Fenster zu schließen"


def configuration(seeds=(1,), arms=ARMS):
    return load(
        {
            "run": {"experiments": ["demo"], "arms": list(arms), "seeds": list(seeds)},
            "corpora": {
                "help": {
                    "languages": ["de", "en"],
                    "train": {"files": {"de": "train.de", "en": "train.en"}},
                    "dev": {"held_out": 5},
                    "test": {"pages": {"held_out": 5}},
                }
            },
            "lexicons": {"own": {}, "pieces": {"unit": "piece", "backbone": "small"}},
            "backbones": {"small": {"kind": "hub", "model": "somebody/mbart"}},
            "arms": {
                "finetune": [{"data": "task", "updates": 100}],
                **{
                    arm: [
                        {"data": kind, "updates": 20, "lexicon": "pieces" if kind == "released" else None},
                        {"data": "task", "updates": 80},
                    ]
                    for arm, kind in KINDS.items()
                },
            },
            "experiments": {"demo": {"corpus": "help", "source": "de", "target": "en", "backbone": "small", "lexicon": "own"}},
        }
    )


def put(path, content, commit="abc123"):
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, dict):
        content = json.dumps({**content, "provenance": {"commit": commit, "versions": {"sacrebleu": "2.6.0"}}})
    path.write_text(content, encoding="utf-8")


def words_json(score):
    """Word accuracies around `score`."""
    buckets = {
        name: {"matches": 1, "reference": count, "hypothesis": 9, "precision": 0.1, "recall": 0.2, "f": (score + shift) / 100}
        for name, count, shift in (("low", 1234, -7), ("mid", 20, 0), ("high", 30, 11), ("all", 1284, 3))
    }
    return {"buckets": buckets, "settings": {"low": 100, "high": 1000, "tokenize": None}}


def put_representation(stem, distance):
    layer = {"pairs": distance * 2, "pairs_rms": distance, "means": distance / 2, "cosine": 0.5}
    layer |= {"source_to_target": 0.25, "target_to_source": 0.75}
    layers = {side: [{**layer, "pairs_rms": distance + depth} for depth in (2, 1, 0)] for side in ("encoder", "decoder")}
    put(
        stem.with_name(stem.name + ".json"),
        {**layer, "layers": layers, "sentences": 3, "retrieved_among": 3, "dimensions": 4, "text": ["t.de", "t.en"]}
        | {"tag_format": "X </s> LANG"},
    )
    points = np.random.default_rng(1).normal(size=(3, 4)).astype(np.float16)
    np.savez_compressed(stem.with_name(stem.name + ".npz"), source=points, target=points + 1)


def put_curve(path, updates):
    half = updates // 2
    curve = f"{half}\t1\t3.5\t0.1\t\t\n{half}\t2\t\t\t3.0\t10.0\n{updates}\t3\t2.5\t0.1\t\t\n{updates}\t4\t\t\t2.0\t14.0\n"
    put(path, "update\tseconds\tloss\tlearning_rate\tdev_loss\tdev_bleu\n" + curve)


MAPPING = {
    "start": "unsupervised",
    "good": True,
    "reason": "",
    "attempts": [{}],
    "objective": 0.5,
    "mutual": 0.4,
    "witnesses": 25,
    "witnesses_found": 0.6,
    "iterations": 77,
    "seconds": 3,
    "words": [10, 11],
}


def results(root, seeds=(1,), arms=ARMS, test="bootstrap", commit="abc123", hypothesis="Open a file.", bleu=lambda arm, seed: BLEU[arm]):
    """Every file that the report reads; `bleu` gives the score of an arm with a seed."""
    corpus, lexicon, experiment = root / "corpora/help.de-en", root / "lexicons/help.de-en/own", root / "runs/demo"
    put(
        corpus / "corpus.json",
        {"read": 1234, "kept": 1200, "removed": {"length ratio": 34}, "held_out": {"pages": 3}, "checksums": {"train.de": "f00d"}},
    )
    for part, code, lines in (("test/pages", "de", SOURCES), ("test/pages", "en", REFERENCES)):
        put(corpus / f"train.{code}", "Open Click Print the file\n" * 120)
        put(corpus / f"{part}.{code}", "".join(f"{line}\n" for line in lines))
    put(experiment / "frequencies.tsv", "the\t240\nOpen\t120\nClick\t120\nfile\t120\nwindow\t3\n")
    put(root / "backbones/small/backbone.json", {"kind": "hub", "model": "somebody/mbart", "revision": "r1", "parameters": 98765})
    gold = {"covered": 50, "gold_words": 60, "p@1": 0.345, "p@5": 0.5, "p@10": 0.6}
    direction = {"words": 10, "entries": 9, "coverage": {"running_words": 0.912, "types": 0.2}}
    switched = {"judged": 0.875, "right": 0.432}
    directions = {
        "de-en": {**direction, "gold": {"all": gold, "non_identical": gold}, "switched": switched},
        "en-de": {**direction, "gold": None, "switched": None},
    }
    for each in (lexicon, lexicon.with_name("pieces")) if "released" in arms else (lexicon,):
        put(each / "mapping.json", MAPPING)
        put(each / "lexicon.json", {"directions": directions, "dictionary": None})
    put(lexicon / "de-en.tsv", "datei\tfile\t1\t0.7000\ndatei\tfolder\t2\t0.1234\nfenster\twindow\t1\t0.6000\n")
    put(lexicon / "en-de.tsv", "file\tdatei\t1\t0.7000\n")
    put_representation(experiment / "backbone.representation", 23.25)
    put(experiment / "trivial/seed0/pages.scores.json", {"sentences": 3, "metrics": {"BLEU": {"value": 3.33, "signature": "b|s"}}})
    for seed in seeds:
        systems = {}
        for arm in arms:
            run = experiment / arm / f"seed{seed}"
            score = bleu(arm, seed)
            first, last = (hypothesis, "The window closes & stays.") if arm == "csr" else ("Open file.", "The window closes.")
            put(run / "pages.hyp", f"{first}\nClick Print.\n{last}\n")
            put(run / "pages.words.json", words_json(score))
            put(
                run / "pages.scores.json",
                {"sentences": 3, "metrics": {"BLEU": {"value": score, "signature": "b|s"}, "chrF": {"value": 50, "signature": "c|s"}}},
                commit,
            )
            p = None if arm == "finetune" else 0.003
            systems[arm] = {
                name: {"score": value, "mean": value, "ci": 1.5, "p": p, "signature": f"{name}|bs:9"}
                for name, value in (("BLEU", score), ("chrF2", 50))
            }
            for phase in ("pretext", "finetune") if arm in KINDS else ("finetune",):
                put_curve(run / phase / "curve.tsv", 20 if phase == "pretext" else 80 if arm in KINDS else 100)
                training = {"parameters": 9, "device": "cpu", "precision": "float32", "rows": 4321, "from_scratch": False, "start": "x"}
                handed_on = {"updates": [40], "chosen_by": "dev_bleu" if phase == "finetune" else "dev_loss"}
                handed_on["reason"] = None if phase == "finetune" else "no BLEU was measured on the dev set"
                put(run / phase / "training.json", {**training, "handed_on": handed_on, "settings": {}})
                put_representation(run / phase / "representation", 9.5)
            if arm in KINDS:
                noise, unit = ("released.pieces", "piece") if arm == "released" else (KINDS[arm], "word")
                folder = root / f"codeswitch/demo/{noise}/seed{seed}"
                side = {"words": 100, "replaceable": 90, "replaced": 34, "budget": 35, "rate": 0.347, "coverage": 0.9, "shortfall": 0.01}
                put(folder / "codeswitch.json", {"kind": KINDS[arm], "unit": unit, "rounds": 1, "sides": {"de": side, "en": side}})
                for code in ("de", "en"):
                    with zstandard.open(folder / f"round0.{code}.tsv.zst", "wt", encoding="utf-8") as file:
                        file.write(f"{NOISED[KINDS[arm]]}\t{ORIGINAL}\n")
        put(experiment / f"significance/pages.seed{seed}.json", {"baseline": "finetune", "systems": systems})
    pairs = []
    for at, arm in enumerate(arms):
        for other in arms[:at]:
            gap = sum(bleu(arm, seed) - bleu(other, seed) for seed in seeds) / len(seeds)
            row = {"arm": arm, "other": other, "metric": "BLEU", "seeds": len(seeds), "difference": gap}
            pairs.append({**row, "low": gap - 0.5, "high": gap + 0.5, "p": 0.006})
    covers = COVERS["seed" if len(seeds) == 1 else test]
    put(experiment / "significance/pages.json", {"baseline": "finetune", "pairs": pairs, "covers": covers})
    return root


def report(root, tmp_path, **choices):
    write_report(root, tmp_path / "report.html", tmp_path / "scores.tsv", settings=configuration(**choices))
    with open(tmp_path / "scores.tsv", encoding="utf-8") as file:
        return (tmp_path / "report.html").read_text(encoding="utf-8"), list(csv.DictReader(file, delimiter="\t"))


def plain(html):
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", html)).split())


@pytest.fixture
def page(tmp_path):
    return report(results(tmp_path / "results"), tmp_path)


def test_numbers_come_out_in_both_files(page):
    html, rows = page
    assert "weights of 40, by dev BLEU" in html
    assert "weights of 40, by dev loss (no BLEU was measured on the dev set)" in html
    for number in ("21.25 ‡", "+1.25", "1,234", "98,765", "34.5 %", "91.2 %", "34.7 %", "23.250", "9.500", "4,321", "f00d", "abc123"):
        assert number in html
    found = {(r["arm"], r["metric"]): r for r in rows}
    assert found["csr", "BLEU"] == {
        "experiment": "demo", "task": "translation", "corpus": "help", "testset": "pages", "direction": "de-en",
        "arm": "csr", "seed": "1", "metric": "BLEU", "value": "21.25", "signature": "b|s",
        "low": "19.75", "high": "22.75", "p": "0.009",
    }  # fmt: skip
    distance = found["csr", "distance_pairs_rms"]
    assert (distance["value"], distance["testset"], distance["signature"]) == ("9.5", "", "X </s> LANG")
    assert found["backbone", "distance_means"]["value"] == "11.625"
    assert found["csr", "distance_pairs_rms_pretext"]["seed"] == "1"


def test_headline_answers_first_and_claims_no_more(page):
    text = plain(page[0])
    box = text[: text.index("What was run")]
    # p = 0.006 of each pair, corrected for three arms against the baseline
    first = "Yes, by 1.25 BLEU : csr has 21.25, finetune 20.00, a difference of +1.25 (95 % interval +0.75 to +1.75, p = 0.018)."
    assert f"Does code-switching restore help? csr against the baseline, finetune {first}" in box
    assert "more than gaps? csr against mask Yes, by 0.75 BLEU : csr has 21.25, mask 20.50" in box
    assert "more than random ones? csr against random Yes, by 0.50 BLEU" in box and "p = 0.006" in box
    # chrF is the same in all arms
    assert box.count("No difference in chrF : csr has 50.00") == 3
    assert "The tests cover the choice of test sentences" in box and "With one training seed, nothing is known" in box


@pytest.mark.parametrize(
    "scores, p, told",
    [
        (20.4, 0.03, ("Not shown in BLEU", "+0.90, p = 0.030). Chance could make such a difference.")),
        (21.0, 0.0004, ("Yes, by 1.00 BLEU", "p < 0.001).")),
        (19.0, 0.004, ("No, finetune is better, by 1.00 BLEU", "p = 0.004).")),
        (21.0, 0.05, ("Not shown in BLEU", "p = 0.050). Chance could make such a difference.")),
        (21.0, None, ("Not tested in BLEU", "no p-value).")),
        (20.0, 0.5, ("No difference in BLEU", "csr has 20.00, finetune 20.00.")),
        (None, 0.5, ("Not known in BLEU", "a score is missing (see below).")),
    ],
)
def test_an_answer_says_no_more_than_its_test(tmp_path, scores, p, told):
    study = configured(tmp_path, "demo", configuration(arms=("finetune", "csr")))
    rows = [
        {"testset": "pages", "metric": "BLEU", "seed": 1, "arm": arm, "value": value}
        for arm, value in (("finetune", 20.0), ("csr", scores))
        if value is not None
    ]
    tested = {"testset": "pages", "metric": "BLEU", "arm": "csr", "other": "finetune", "low": 0.5, "high": 1.5, "p": p}
    if scores == 20.4:  # an interval with zero in it
        tested |= {"low": -0.1, "high": 0.9}
    (compared,) = headline(study, rows, [tested], ["pages"], ["BLEU"])
    (answer,) = compared["answers"]
    assert answer["claim"] == told[0] and answer["numbers"].endswith(told[1])


def test_a_lower_error_rate_is_better_and_a_test_the_other_way_round_is_turned(tmp_path):
    study = configured(tmp_path, "demo", configuration(arms=("finetune", "csr")))
    rows = [
        {"testset": "pages", "metric": "TER", "seed": 1, "arm": arm, "value": value} for arm, value in (("finetune", 60.0), ("csr", 58.0))
    ]
    tested = {"testset": "pages", "metric": "TER", "arm": "finetune", "other": "csr", "low": 1.0, "high": 3.5, "p": 0.01}
    (compared,) = headline(study, rows, [tested], ["pages"], ["TER"])
    assert compared["answers"] == [
        {
            "claim": "Yes, by 2.00 TER (lower is better)",
            "numbers": "csr has 58.00, finetune 60.00, a difference of −2.00 (95 % interval −3.50 to −1.00, p = 0.010).",
        }
    ]


def test_several_seeds_show_spread_and_each_seed(tmp_path):
    seeds = (1, 2, 3)
    root = results(tmp_path / "results", seeds, bleu=lambda arm, seed: BLEU[arm] + (seed - 2) * (arm == "csr"))
    html, rows = report(root, tmp_path, seeds=seeds)
    text = plain(html)
    # 0.006 for each of the three arms, corrected
    uncertain = "(+0.25 to +2.25 over 3 seeds, 95 % interval +0.75 to +1.75, p = 0.018)"
    told = f"csr has 21.25 ± 1.00, finetune 20.00 ± 0.00, a difference of +1.25 {uncertain}."
    # the bootstrap finds it, but 0.25, 1.25 and 2.25 may well be three draws of nothing
    assert f"Not shown in BLEU : {told} By the 3 seeds alone, Student's interval is −1.23 to +3.73." in text
    assert "The tests cover the choice of test sentences and of training seeds." in text and "With one training seed" not in text
    assert "significant in 3 of 3 seeds" in text and "seed 3: 22.25 ‡" in text
    assert sum(r["metric"] == "BLEU" for r in rows) == len(seeds) * len(ARMS)


@pytest.mark.parametrize("seeds", [(1,), (1, 2)])
def test_randomization_is_called_what_it_is(tmp_path, seeds):
    root, config = results(tmp_path / "results", seeds, test="randomization"), configuration(seeds)
    for folder in ("runs", "codeswitch"):
        shutil.copytree(root / folder / "demo", root / folder / "again")
    config.experiments["demo"].scores.test = "randomization"
    config.experiments["again"] = config.experiments["demo"]
    config.run.experiments.append("again")
    write_report(root, tmp_path / "report.html", tmp_path / "s.tsv", settings=config)
    text = plain((tmp_path / "report.html").read_text(encoding="utf-8"))
    covered = "the choice of test sentences, " + ("not of training seeds" if len(seeds) == 1 else "with the training seeds as they are")
    assert f"a marker for each seed; p covers {covered}." in text and f"The tests cover {covered}." in text
    assert "bootstrap" not in text.partition("The configuration")[0] and "bars are 95 %" not in text


def test_significant_losses_are_not_counted_as_gains(tmp_path):
    seeds = (1, 2, 3)
    root = results(tmp_path / "results", seeds, bleu=lambda arm, seed: BLEU[arm] - 3 * (arm == "csr" and seed == 3))
    assert "gain significant in 2 of 3 seeds, loss in 1" in plain(report(root, tmp_path, seeds=seeds)[0])


def test_a_lower_cased_corpus_is_called_so(tmp_path):
    root, config = results(tmp_path / "results"), configuration()
    assert "lower-cased" not in plain(report(root, tmp_path)[0]).partition("The configuration")[0]
    config.corpora["help"].lowercase = True
    write_report(root, tmp_path / "report.html", tmp_path / "s.tsv", settings=config)
    text = plain((tmp_path / "report.html").read_text(encoding="utf-8"))
    assert "all of its text was lower-cased" in text and "German to English, of lower-cased text" in text


@pytest.mark.parametrize(
    "arms, words",
    [
        (("finetune",), "nothing to compare"),
        (("finetune", "mask"), "Does this help? mask against the baseline, finetune Yes, by 0.50 BLEU"),
    ],
)
def test_fewer_arms_say_only_what_can_be_said(tmp_path, arms, words):
    text = plain(report(results(tmp_path / "results", arms=arms), tmp_path, arms=arms)[0])
    assert words in text and "right words" not in text


def test_a_model_that_is_scored_once_has_no_seeds():
    rows = [
        {"arm": arm, "seed": seed, "testset": "x", "metric": "accuracy", "value": value, "once": arm != "trained"}
        for arm, values in (("base", [50.0]), ("better", [58.0]), ("trained", [60.0, 62.0]))
        for seed, value in enumerate(values, 1)
    ]
    tested = [
        {"testset": "x", "metric": "accuracy", "arm": arm, "other": "base", "low": 2.0, "high": 14.0, "p": 0.01}
        for arm in ("better", "trained")
    ]
    assert answer(rows, tested, "better", "base", "x", "accuracy") == (
        "Yes, by 8.00 points of accuracy",
        "better has 58.00, base 50.00, a difference of +8.00 (95 % interval +2.00 to +14.00, p = 0.010).",
    )
    assert paired(rows, "trained", "base", "x", "accuracy") == [(60.0, 50.0), (62.0, 50.0)]
    assert paired(rows, "base", "trained", "x", "accuracy") == [(50.0, 60.0), (50.0, 62.0)]
    assert (
        "trained has 61.00 ± 1.41, base 50.00, a difference of +11.00 (+10.00 to +12.00 over 2 seeds"
        in answer(rows, tested, "trained", "base", "x", "accuracy")[1]
    )


def test_restoring_is_judged_between_arms_of_one_backbone(tmp_path):
    config = configuration(arms=("finetune", "csr", "mask"))
    config.arms["other"] = [replace(config.arms["finetune"][0], backbone="other")]
    config.arms["other-csr"] = [replace(config.arms["csr"][0], backbone="other"), config.arms["csr"][1]]
    config.run.arms += ["other-csr", "other"]
    assert comparisons(configured(tmp_path, "demo", config)) == [
        ("csr", "finetune", "baseline"),
        ("csr", "mask", "mask"),
        ("other-csr", "other", "plain"),
        ("other", "finetune", "other"),
    ]
    # one that starts from random weights, or switches words itself, is no plain arm, though it stands first
    for name, change in (("scratch", {"start": "scratch"}), ("switching", {"switch": 0.35})):
        config.arms[name] = [replace(config.arms["other"][0], **change)]
        config.run.arms = ["finetune", name, "other-csr", "other"]
        assert ("other-csr", "other", "plain") in comparisons(configured(tmp_path, "demo", config))
    # without a plain arm on its backbone, or where the baseline restores as well, more than restoring differs
    config.run.arms = ["finetune", "other-csr"]
    assert comparisons(configured(tmp_path, "demo", config)) == [("other-csr", "finetune", "other")]
    config.run.arms = ["csr", "finetune", "csr-again"]
    config.arms["csr-again"] = config.arms["csr"]
    assert ("csr-again", "csr", "other") in comparisons(configured(tmp_path, "demo", config))


def test_a_control_restores_as_long_as_the_arm(tmp_path):
    config = configuration(arms=("finetune", "csr", "random"))
    config.run.arms += ["short", "short-mask"]
    for name, data in (("short", "codeswitch"), ("short-mask", "mask")):
        config.arms[name] = [replace(config.arms["csr"][0], data=data, updates=3), replace(config.arms["csr"][1], updates=9)]
    assert comparisons(configured(tmp_path, "demo", config)) == [
        ("csr", "finetune", "baseline"),
        ("csr", "random", "random"),
        ("short", "finetune", "baseline"),
        ("short", "short-mask", "mask"),
    ]


def test_equal_outputs_get_no_marker(tmp_path):
    root = results(tmp_path / "results", bleu=lambda arm, seed: 20.0)
    study = configured(root, "demo", configuration())
    rows = measures(study, differences(study))
    assert {r["marker"] for r in rows} == {""}
    claims = {answer["claim"] for found in headline(study, rows, differences(study), ["pages"], ["BLEU"]) for answer in found["answers"]}
    assert claims == {"No difference in BLEU"}


def test_pairs_of_equal_scores_stay_in_the_table_of_pairs(tmp_path):
    root = results(tmp_path / "results", bleu=lambda arm, seed: 20.0 + (arm == "random"))
    text = plain(report(root, tmp_path)[0])
    assert "mask − csr BLEU 0.00" in text and "random − csr BLEU +1.00" in text


def test_the_differences_of_seeds_have_students_interval(tmp_path):
    seeds = (1, 2, 3)
    root = results(tmp_path / "results", seeds, bleu=lambda arm, seed: BLEU[arm] + (seed - 2) * (arm == "csr"))
    text = plain(report(root, tmp_path, seeds=seeds)[0])
    assert "+1.25 95 % −1.23 to +3.73 gain significant" in text
    assert re.search(r"csr − finetune BLEU \+1\.25 †? ?\+0\.75 to \+1\.75 −1\.23 to \+3\.73", text)


def test_a_loss_is_called_a_loss(tmp_path):
    root = results(tmp_path / "results", bleu=lambda arm, seed: 18.0 if arm == "csr" else 20.0)
    html, _ = report(root, tmp_path)
    assert "No, finetune is better, by 2.00 BLEU" in plain(html) and "18.00 ‡ worse" in html


def test_text_is_escaped(tmp_path):
    html, _ = report(results(tmp_path / "results", hypothesis="<script>alert(1)</script> & more"), tmp_path)
    assert html.count("<script") == 1 and "&lt;script&gt;alert(1)&lt;/script&gt; &amp; more" in html
    assert "&lt;b&gt;schließt&lt;/b&gt;" in html


def test_nothing_is_loaded_from_anywhere(page):
    html = page[0]
    # the script that sorts tables stands in the page
    assert not re.search(r"<(script |link|img|iframe|object|embed)\b|@import|url\(|fetch\(|import\(", html)
    assert all(target.startswith("#") for target in re.findall(r'(?:src|href|srcset|xlink:href)\s*=\s*["\']?([^"\'\s>]+)', html))
    ids = set(re.findall(r'\bid="([^"]+)"', html))
    assert {target[1:] for target in re.findall(r'href="(#[^"]+)"', html)} <= ids


def test_texts_carry_their_language_and_changes_are_marked(page):
    html = page[0]
    assert '<td lang="de" dir="auto">Öffnen Sie die Datei.' in html and '<td lang="en" dir="auto">Open the file.' in html
    assert "<mark>you</mark>" in html and "<mark>&lt;mask&gt;</mark>" in html and "<mark>cell</mark>" in html


def test_the_noise_of_the_published_code_stands_beside_the_papers(tmp_path):
    arms = ("finetune", "csr", "released")
    text = plain(report(results(tmp_path / "results", arms=arms), tmp_path, arms=arms)[0])
    assert "restoring text under the noise of the published code" in text and "Klicken zebra auf" in text
    assert "20.25" in text


def test_every_kind_of_data_has_words():
    assert set(get_args(get_type_hints(Phase)["data"])) == set(TRAINS_ON)


def test_pieces_are_shown_as_words(tmp_path):
    put(tmp_path / "codeswitch.json", {"unit": "piece"})
    with zstandard.open(tmp_path / "round0.de.tsv.zst", "wt", encoding="utf-8") as file:
        file.write("▁the ▁Da te <mask> i\tDie Datei\n")
    assert noised_lines(tmp_path, "de", 5) == {"Die Datei": "the Date<mask>i"}


def test_curves_start_after_the_pretext_phase_and_the_last_fifth_is_stated(page):
    # evaluations of the baseline at 50 (10 BLEU) and 100 (14); the last fifth begins at 80
    assert "changed by +1.60 BLEU" in plain(page[0])
    # five charts of four arms (three with a dashed line), and four of five models by layer
    assert page[0].count("<polyline") == 5 * 4 + 3 + 4 * 5


def test_a_bad_mapping_and_a_given_dictionary_are_said(tmp_path):
    root = results(tmp_path / "results")
    lexicon = root / "lexicons/help.de-en/own"
    put(lexicon / "mapping.json", {**MAPPING, "good": False, "reason": "few mutual neighbours"})
    assert "judged bad (few mutual neighbours)" in report(root, tmp_path)[0]
    put(lexicon / "lexicon.json", {**read_json(lexicon / "lexicon.json"), "dictionary": "my/words.txt"})
    assert "the lexicon is the dictionary my/words.txt" in report(root, tmp_path)[0]
    put(lexicon / "lexicon.json", {**read_json(lexicon / "lexicon.json"), "dictionary": None, "aligned": True})
    (lexicon / "mapping.json").unlink()
    assert "It is an upper bound for lexicons that never see" in report(root, tmp_path)[0]


def test_mixed_commits_warn(tmp_path):
    assert "Mixed origins" not in report(results(tmp_path / "one"), tmp_path)[0]
    html, _ = report(results(tmp_path / "two", commit="def456"), tmp_path)
    assert "2 different commits" in plain(html) and "def456" in html


def test_arms_trained_on_several_machines_warn(tmp_path):
    root = results(tmp_path / "results")
    assert "Trained on several machines" not in report(root, tmp_path)[0]
    trainings = sorted(root.glob("runs/demo/*/seed1/*/training.json"))
    for path in trainings:
        put(path, {**read_json(path), "machine": "EPYC", "device": "cpu", "precision": "float32"})
    assert "Trained on several machines" not in report(root, tmp_path)[0]
    moved = next(path for path in trainings if "/finetune/seed1" in path.as_posix())
    put(moved, {**read_json(moved), "machine": "EPYC, NVIDIA H100", "device": "cuda:0", "precision": "bfloat16"})
    text = plain(report(root, tmp_path)[0])
    assert "Trained on several machines. Each rounds in its own way" in text and "finetune on EPYC, NVIDIA H100, bfloat16" in text


def test_every_file_that_a_stage_read_is_listed_with_its_checksum(tmp_path):
    root = results(tmp_path / "results")
    lexicon = root / "lexicons/help.de-en/own"
    put(root / "backbones/small/backbone.json", {**read_json(root / "backbones/small/backbone.json"), "checksums": {"mono.de": "beef"}})
    put(lexicon / "mapping.json", {**MAPPING, "checksums": {"given.vec": "cafe"}})
    put(lexicon / "lexicon.json", {**read_json(lexicon / "lexicon.json"), "checksums": {"gold.tsv": "dead", "train.de": "0ff0"}})
    text = plain(report(root, tmp_path)[0])
    assert "between two of them. given.vec cafe gold.tsv dead mono.de beef train.de 0ff0, f00d source:" in text


def test_acquired_data_are_listed_with_licence_and_citation(tmp_path):
    root, settings = results(tmp_path / "results"), configuration()
    assert "Data that were acquired" not in report(root, tmp_path)[0]
    settings.data = {"web": Data(url="http://x/words.txt", licence="CC0", citation="Nobody & al. (2020)"), "unused": Data(url="http://y")}
    settings.lexicons["own"].gold["de-en"] = "results/data/web.txt"
    origin = {"kind": "url", "url": "http://x/words.txt", "sha256": "f00d"}
    put(root / "data/web.txt.json", {"origin": origin, "bytes": 12345, "sha256": "f00d", "date": "2026-01-02"})
    write_report(root, tmp_path / "report.html", tmp_path / "scores.tsv", settings=settings)
    page = plain((tmp_path / "report.html").read_text(encoding="utf-8"))
    assert "web url http://x/words.txt SHA-256 f00d 12,345 2026-01-02 CC0 Nobody & al. (2020) source: results/data/{data}.….json" in page
    assert "http://y" not in page.partition("The configuration")[0]


def test_cost_sums_benchmarks_and_takes_missing_ones(tmp_path):
    root = results(tmp_path / "results")
    assert "no benchmark files" in report(root, tmp_path)[0]
    header = "s\th:m:s\tmax_rss\tcpu_time\n"
    put(root / "benchmarks/training/demo/csr.seed1.finetune.tsv", header + "10.0\t0:00:10\t300.5\t36\n")
    put(root / "benchmarks/training/demo/mask.seed1.finetune.tsv", header + "20.5\t0:00:20\tNA\t-\n")
    put(root / "benchmarks/training/demo/mask.seed1.pretext.tsv", header + "5\t0:00:05\t200\t18\n")
    text = plain(report(root, tmp_path)[0])
    assert "finetune 2 30 0.010 300" in text and "pretext 1 5 0.005 200" in text and "all 3 36 0.015 300" in text
    assert "only the attempt that succeeded" in text and "GPU hours" not in text
    training = root / "runs/demo/mask/seed1/finetune/training.json"
    put(training, {**read_json(training), "device": "cuda:0", "processes": 8})
    backbone = root / "backbones/small/backbone.json"
    put(backbone, {**read_json(backbone), "device": "cuda:0", "processes": 4})
    for job in ("training/demo/mask.seed1.finetune", "decoding/demo/mask.seed1.pages", "decoding/demo/csr.seed1.pages", "backbone/small"):
        put(root / f"benchmarks/{job}.tsv", header + "1800\t0:30:00\t500\t-\n")
    put(root / "benchmarks/classification/demo/significance.tsv", header + "1800\t0:30:00\t500\t-\n")
    text = plain(report(root, tmp_path)[0])
    assert "finetune 2 1,810 0.010 500 4.00" in text and "pretext 1 5 0.005 200 0.00" in text
    assert "decoding 2 3,600 0.000 500 0.50" in text and "backbone 1 1,800 0.000 500 2.00" in text
    assert "classification_significance 1 1,800 0.000 500 0.00" in text


def test_gpu_hours_of_jobs_whose_models_are_not_trained_here(tmp_path):
    root = tmp_path / "results"
    said = {
        "retrieval/nearest/hub.seed1": "runs/nearest/hub/seed1/predictions/flores.scores.json",
        "translated/topics/train.de": "labelled/topics/translated/train.de.json",
        "mapping/help.de-en/own": "lexicons/help.de-en/own/mapping.json",
        "cka/inside": "analyses/inside/cka.json",
        "spectra/inside": "analyses/inside/spectra.json",
        "separability/inside": "analyses/inside/separability.json",
        "speed/demo": "runs/demo/speed.json",
    }
    for job, file in said.items():
        put(root / f"benchmarks/{job}.tsv", "s\th:m:s\tmax_rss\tcpu_time\n1800\t0:30:00\t500\t36\n")
        put(root / file, {"device": "NVIDIA H100" if job == "speed/demo" else "cuda:0"})
    put(root / "analyses/inside/spectra.json", {"device": "cpu"})
    (root / "analyses/inside/separability.json").unlink()  # of a job that is being repeated
    hours = {row["rule"]: row["gpu"] for row in cost(root)}
    assert hours == {
        "retrieval": 0.5,
        "translated": 0.5,
        "cka": 0.5,
        "spectra": 0,
        "separability": 0,
        "speed": 0.5,
        "mapping": 0.5,
        "all": 2.5,
    }


@pytest.mark.parametrize(
    "lost, part, told",
    [
        ("csr/seed1/pages.scores.json", "scores", "csr/seed1/pages.scores.json is missing"),
        ("csr/seed1/pages.words.json", "words", "pages.words.json is missing"),
        ("mask/seed1/finetune/curve.tsv", "curves", "curve.tsv"),
        ("backbone.representation.npz", "distances", "backbone.representation.npz"),
        ("random/seed1/pages.hyp", "translations", "pages.hyp"),
    ],
)
def test_a_part_that_cannot_be_made_says_why_and_the_rest_is_made(tmp_path, lost, part, told):
    root = results(tmp_path / "results")
    (root / "runs/demo" / lost).unlink()
    html, rows = report(root, tmp_path)
    text = plain(html)
    assert "Not all of this report could be made" in text and text.count("This part could not be made") == 1
    at = html.index(f'id="{part}-demo"')
    assert told in html[at : at + 600]
    assert bool(rows) and ("34.5 %" in html or part == "lexicon") and all(f'id="{name}-demo"' in html for name in PARTS if name != "speed")
    assert any(row["metric"] == "BLEU" for row in rows) == (part != "scores")


def test_a_file_of_another_form_costs_its_part_alone(tmp_path):
    root = results(tmp_path / "results")
    put(root / "corpora/help.de-en/corpus.json", {"read": 5})
    html, _ = report(root, tmp_path)
    assert html.count("This part could not be made") == 1 and "21.25 ‡" in html
    assert "UndefinedError" in html[html.index('id="run-demo"') : html.index('id="scores-demo"')]


def test_without_a_lexicon_there_is_no_such_part(tmp_path):
    root = results(tmp_path / "results", arms=("finetune",))
    shutil.rmtree(root / "lexicons")
    settings = configuration(arms=("finetune",))
    settings.experiments["demo"].lexicon = None
    write_report(root, tmp_path / "report.html", tmp_path / "scores.tsv", settings=settings)
    html = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "could not be made" not in html
    assert 'id="translations-demo"' in html and "lexicon-demo" not in html and "switched-demo" not in html
    assert "nothing to compare it with" in html and "The tests cover" not in html[: html.index('id="run-demo"')]


def test_a_folder_without_a_run_is_one_clear_error(tmp_path):
    with pytest.raises(InputError, match=r"corpus\.json is missing.*made of a finished run"):
        report(tmp_path, tmp_path)
    assert not (tmp_path / "report.html").exists()


def test_what_was_not_measured_is_said_beside_what_was(tmp_path):
    root = results(tmp_path / "results")
    put(root / "runs/demo/csr/seed1/pages.scores.json", {"metrics": {}, "failed": {"BLEU": "1 line & 3 lines", "chrF": "1 line & 3 lines"}})
    put(root / "runs/demo/mask/seed1/pages.words.json", {"buckets": {}, "failed": "1 line, 3 lines"})
    html, rows = report(root, tmp_path)
    text = plain(html)
    assert "BLEU of csr on pages, seed 1, chrF of csr on pages, seed 1: 1 line & 3 lines" in text
    assert "Not known in BLEU : a score is missing (see below)." in text and "csr not measured" in text
    assert "20.50 ‡" in html and {row["arm"] for row in rows if row["metric"] == "BLEU"} == {"finetune", "mask", "random"}
    assert "mask, seed 1: 1 line, 3 lines" in text


def test_p_values_are_corrected_unless_one_asks_for_none(tmp_path):
    root = results(tmp_path / "results")
    assert "p = 0.009 (0.003)" in plain(report(root, tmp_path)[0])
    config = configuration()
    config.experiments["demo"].scores.correction = "none"
    rows = measures(configured(root, "demo", config), [])
    assert {row["p"] for row in rows if row["arm"] != "finetune" and row["metric"] == "BLEU"} == {0.003}


def test_a_comparison_that_shows_no_difference_is_one_of_those_corrected_for(tmp_path):
    root = results(tmp_path / "results", bleu=lambda arm, seed: 20.0 + (arm == "csr"))
    study = configured(root, "demo", configuration())
    found = {row["arm"]: row["p"] for row in measures(study, differences(study)) if row["metric"] == "BLEU"}
    others = len(found) - 1
    assert others > 1 and found["csr"] == pytest.approx(0.003 * others) and found["finetune"] is None
    assert {p for arm, p in found.items() if arm not in ("csr", "finetune")} == {1.0}


def test_comet_stands_beside_the_other_metrics_or_its_reason_does(tmp_path):
    root = results(tmp_path / "results")
    assert "COMET was not measured: the experiment's configuration has no comet" in plain(report(root, tmp_path)[0])
    config = configuration()
    config.experiments["demo"].comet = Comet()
    for arm, value in zip(ARMS, (0.81234, 0.82468, 0.81, None), strict=True):
        reason = None if value else "there is no <model>"
        put(root / f"runs/demo/{arm}/seed1/pages.comet.json", {"value": value, "signature": "model:m", "segments": None, "reason": reason})
    path = root / "runs/demo/significance/pages.json"
    pair = {"arm": "csr", "other": "finetune", "metric": "COMET", "seeds": 1, "difference": 0.01234, "low": 0.01, "high": 0.02, "p": 0.002}
    put(path, {**read_json(path), "pairs": [*read_json(path)["pairs"], pair]})
    write_report(root, tmp_path / "c.html", tmp_path / "c.tsv", settings=config)
    text = plain((tmp_path / "c.html").read_text(encoding="utf-8"))
    assert (
        "COMET, Unbabel/wmt22-comet-da" in text
        and "| arm | BLEU | chrF | COMET, Unbabel/wmt22-comet-da |" in text
        and "0.8247 ‡" in text
        and "+0.0123 p = 0.002" in text
        and "0.8100" in text
    )
    assert "COMET of random on pages, seed 1: there is no <model>" in text
    rows = (tmp_path / "c.tsv").read_text(encoding="utf-8").splitlines()
    assert [row.split("\t")[5:10] for row in rows if "COMET" in row][1] == ["csr", "1", "COMET", "0.82468", "model:m"]


def test_published_numbers_stand_beside_measured_ones(tmp_path):
    root = results(tmp_path / "results")
    config = configuration()
    config.experiments["demo"].published = [
        Published(arm="csr", metric="TER", value=39.2, source="Table <II>"),
        Published(arm="csr", metric="BLEU", value=38.1, source="Table II", backbone="facebook/mbart-large-cc25", updates=30000),
        Published(arm="finetune", metric="BLEU", value=37.8, source="Table II", backbone="somebody/mbart", updates=100),
    ]
    write_report(root, tmp_path / "p.html", tmp_path / "p.tsv", settings=config)
    text = plain((tmp_path / "p.html").read_text(encoding="utf-8"))
    assert "39.2 Table <II> – not comparable : not measured here" in text
    assert "backbone facebook/mbart-large-cc25 there, somebody/mbart here; 30,000 updates there, 100 here" in text
    assert "37.8 Table II 20.00 yes, as far as the conditions say" in text


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

    def told(lowercase, metrics):
        config.corpora["help"].lowercase = lowercase
        put(path, {"sentences": 3, "metrics": metrics})
        study = configured(root, "demo", config)
        return {row["number"].source: (row["measured"]["mean"], row["differs"]) for row in section(study)["published"]}

    with_capitals, without = told(False, measured), told(True, {key: measured[key] for key in ("BLEU", "ROUGE-1")})
    other = ["lower-cased text there, text with capitals here"]
    assert with_capitals["capitals"] == (20, []) and with_capitals["folded"] == (22, []) and with_capitals["words"][1] == other
    assert without["capitals"] == (20, ["text with capitals there, lower-cased text here"])
    assert without["folded"] == (20, []) and without["words"][1] == []
    for found in (with_capitals, without):
        assert found["rouge"][1] == ["counted by files2rouge there, by rouge-score 0.1 on words here"]
        assert found["unsaid"][1] == ["counted by what is not stated there, by rouge-score 0.1 on words here"]


def test_many_experiments_have_a_page_each(tmp_path):
    root = results(tmp_path / "results")
    for folder in ("runs", "codeswitch"):
        shutil.copytree(root / folder / "demo", root / folder / "again")
    config = configuration()
    config.experiments["again"] = config.experiments["demo"]
    config.run.experiments.append("again")
    pages = tuple(tmp_path / "report" / f"{name}.html" for name in ("demo", "again"))
    for path in (root / "runs/again").rglob("*.json"):
        path.write_text(path.read_text(encoding="utf-8").replace("abc123", "def456"), encoding="utf-8")
    compared = tmp_path / "comparisons.tsv"
    write_report(root, tmp_path / "report.html", tmp_path / "s.tsv", pages=pages, tables=(compared,), settings=config)
    index = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert 'href="report/again.html"' in index and "Learning curves" not in index and "21.25 ‡" in index
    one = pages[1].read_text(encoding="utf-8")
    assert 'href="../report.html"' in one and 'id="curves-again"' in one and "demo" not in plain(one[: one.index("Provenance")])
    assert "2 different commits" in index and "different commits" not in pages[0].read_text(encoding="utf-8")
    with open(compared, encoding="utf-8", newline="") as file:
        rows = {(row["experiment"], row["metric"], row["arm"], row["other"]): row for row in csv.DictReader(file, delimiter="\t")}
    assert {name for name, *_ in rows} == {"demo", "again"}
    found = rows["again", "BLEU", "csr", "finetune"]
    assert (found["difference"], found["low"], found["seeds_low"], found["p"], found["p_uncorrected"]) == (
        "1.25",
        "0.75",
        "",
        "0.018",
        "0.006",
    )


def test_small_functions():
    assert summary([1.0, 3.0])["sd"] == pytest.approx(2**0.5)
    assert summary([2.0])["interval"] is None
    assert evenly(range(100), 4) == [0, 25, 50, 75] and evenly([1], 4) == [1]
    assert [signed(x) for x in (0.004, -0.004, 1.5, -0.31)] == ["0.00", "0.00", "+1.50", "−0.31"]
    assert marked("a b c", "a x c") == [("a", False), ("x", True), ("c", False)]
    rows = [
        {"testset": "t", "metric": "BLEU", "arm": a, "seed": s, "value": v}
        for a, s, v in (("x", 1, 3), ("y", 1, 1), ("x", 2, 5), ("y", 2, 4))
    ]
    assert contrast(rows, "x", "y", "t", "BLEU")["values"] == [2, 1]


def test_plane_keeps_the_two_main_directions():
    points = np.array([[0, 3, 0], [0, -3, 0], [1, 0, 0], [-1, 0, 0], [0, 0, 0.1], [0, 0, -0.1]])
    flat, share = plane(points)
    assert np.abs(flat[0]).tolist() == pytest.approx([3, 0]) and share > 0.99


@pytest.mark.parametrize("low, high, expected", [(0, 700, [0, 200, 400, 600, 800]), (0.12, 0.31, [0.1, 0.15, 0.2, 0.25, 0.3, 0.35])])
def test_ticks_are_round_and_hold_the_data(low, high, expected):
    assert drawing.ticks(low, high) == pytest.approx(expected)


def test_layers_are_whole_numbers():
    assert drawing.ticks(0, 2, whole=True) == [0, 1, 2] and drawing.ticks(0, 2)[1] == 0.5


def test_drawings_escape_and_survive_no_or_constant_data():
    svg = drawing.line_chart("a < b", [{"name": "<x>", "colour": 0, "lines": [[(0, 1), (5, 1)]]}], "x", "y")
    assert "<x>" not in svg and "&lt;x&gt;" in svg and "a &lt; b" in svg
    assert "no evaluations" in drawing.line_chart("t", [{"name": "x", "colour": 0, "lines": []}], "x", "y")
    assert "nan" not in drawing.scatter("t", [(0.0, 0.0)], [(0.0, 0.0)], ("a", "b"), 0.0)


def test_the_grid_and_the_choice_are_shown(tmp_path):
    results(tmp_path)
    config = configuration()
    config.experiments["demo"].grid = {"learning_rate": [0.001, 0.002]}
    points = [
        {"settings": {"learning_rate": rate}, "dev_bleu": 10 * rate * 1000, "dev_loss": 3.25, "diverged": ""} for rate in (0.001, 0.002)
    ]
    for arm in ARMS:
        mine = [{**points[0], "diverged": "loss nan at <b>"}, points[1]] if arm == "mask" else points
        put(tmp_path / f"runs/demo/{arm}/choice.json", {"by": "dev_bleu", "seed": 1, "points": mine, "chosen": 1, "phases": {}})
    write_report(tmp_path, tmp_path / "report.html", tmp_path / "scores.tsv", settings=config)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    table = page[page.index('id="choices-demo"') : page.index('id="scores-demo"')]
    assert (
        "<th>0.002</th>" in table
        and table.count("<strong>20.00</strong> chosen") == 4
        and table.count("diverged<small") == 1
        and "at &lt;b&gt;" in table
    )


def test_word_accuracy_is_shown_by_bucket_and_written_to_the_table(tmp_path):
    results(tmp_path, seeds=(1, 2))
    write_report(tmp_path, tmp_path / "report.html", tmp_path / "scores.tsv", settings=configuration(seeds=(1, 2)))
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    table = page[page.index('id="words-demo"') : page.index('id="curves-demo"')]
    # csr: 21.25 − 7; the baseline: 20 − 7
    assert "1,234 words" in table and "14.25" in table and "+1.25" in table and "13.00" in table
    rows = (tmp_path / "scores.tsv").read_text(encoding="utf-8").splitlines()
    assert any(row.split("\t")[5:9] == ["csr", "2", "word_f_low", "14.25"] for row in rows)


def test_the_main_table_can_be_copied(tmp_path):
    results(tmp_path, seeds=(1, 2))
    write_report(tmp_path, tmp_path / "report.html", tmp_path / "scores.tsv", settings=configuration(seeds=(1, 2)))
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    copied = page[page.index("as Markdown and LaTeX") : page.index('id="words-demo"')]
    assert "| arm | BLEU | chrF |" in copied and "| csr | 21.25 ± 0.00 ‡(1) ‡(2) |" in copied and r"\begin{tabular}{lrr}" in copied


def test_updates_to_the_baselines_loss():
    falling = [(10.0, 5.0), (20.0, 3.0), (30.0, 2.0)]
    assert first_below(falling, 4.0) == 15 and first_below(falling, 2.0) == 30 and first_below(falling, 6.0) == 10
    assert first_below(falling, 1.0) is None and first_below([], 1.0) is None


def put_full_curve(path, updates, looks=8):
    rows = "".join(f"{updates * n // looks}\t{n}\t\t\t{10 - n}\t{n}\n" for n in range(1, looks + 1))
    put(path, "update\tseconds\tloss\tlearning_rate\tdev_loss\tdev_bleu\n" + rows)


def test_nothing_is_interpolated_between_few_looks(page):
    assert "a curve of the dev loss has only 2 points" in plain(page[0]) and "Updates until" not in page[0]


def test_the_claim_of_half_the_steps_is_measured(tmp_path):
    root = results(tmp_path / "results")
    for arm in ARMS:
        put_full_curve(root / f"runs/demo/{arm}/seed1/finetune/curve.tsv", 100 if arm == "finetune" else 80)
    html, _ = report(root, tmp_path)
    table = html[html.index("Updates until an arm") : html.index('id="distances-demo"')]
    # 20 updates before, and the baseline's last loss at the 80th of finetuning
    assert re.search(r"csr</th><td class=\"n\">100</td><td class=\"n\">80</td><td class=\"n\">80.0 %</td><td class=\"n\">8<", table)


def test_phases_that_ran_out_of_patience_count_with_the_updates_they_made(tmp_path):
    root = results(tmp_path / "results", (1, 2))
    for arm, seed in itertools.product(ARMS, (1, 2)):
        made = {("finetune", 1): 100, ("finetune", 2): 50, ("csr", 2): 60}.get((arm, seed), 80)
        put_full_curve(root / f"runs/demo/{arm}/seed{seed}/finetune/curve.tsv", made, looks=10)
    put_curve(root / "runs/demo/csr/seed2/pretext/curve.tsv", 10)
    config = configuration((1, 2))
    config.experiments["demo"].published = [Published(arm="csr", metric="BLEU", value=1.0, source="x", updates=100)]
    write_report(root, tmp_path / "report.html", tmp_path / "s.tsv", settings=config)
    html = (tmp_path / "report.html").read_text(encoding="utf-8")
    text = plain(html)
    assert "Updates in all are not equal: finetune 50 to 100; csr 70 to 100; mask 100; random 100." in text
    assert "no more training" not in text and "10 to 20 of 20: no better look at the dev set" in text
    assert "100 updates there, 70 and 100 here" in text
    # csr's finetuning has the baseline's last loss after 80 and 60 updates; the baseline's took 100 and 50
    table = plain(html[html.index("Updates until an arm") : html.index('id="distances-demo"')])
    assert "csr 85 70 to 100, 2 of 2 seeds 70 100.0 % 10" in table
    study = configured(root, "demo", config)
    assert [x for x, _ in curve(study, "csr", 2, study.arms["csr"][1], "dev_loss")][-2:] == [64, 70]


def test_curves_have_looks_in_the_same_second_and_millions_of_updates(tmp_path):
    root = results(tmp_path / "results", arms=("finetune",))
    path = root / "runs/demo/finetune/seed1/finetune/curve.tsv"
    write_curve(path, [{"step": step, "seconds": 1_000_000.25 + step / 1e6, "eval_loss": 2.0} for step in (999_999, 1_234_567)])
    study = configured(root, "demo", configuration(arms=("finetune",)))
    assert [look["updates"] for look in looks(study)] == [999_999, 1_234_567]
    assert updates_made(study, "finetune", 1, study.arms["finetune"][-1]) == 1_234_567


def test_an_overview_stands_above_several_experiments(tmp_path, page):
    assert 'id="overview"' not in page[0]
    root = tmp_path / "results"
    for folder in ("runs", "codeswitch"):
        shutil.copytree(root / folder / "demo", root / folder / "again")
    config = configuration()
    config.experiments["again"] = config.experiments["demo"]
    config.run.experiments.append("again")
    write_report(root, tmp_path / "two.html", tmp_path / "two.tsv", settings=config)
    html = (tmp_path / "two.html").read_text(encoding="utf-8")
    table = html[html.index('id="overview"') : html.index('id="run-demo"')]
    assert table.count('<a href="#headline-again">') == len(ARMS) and "21.25 ‡" in table and "+1.25" in table
    assert "without a model" in table and table.count("3.33") == 2 * len(ARMS)
    ids = re.findall(r'\bid="([^"]+)"', html)
    assert len(ids) == len(set(ids)) and {link for link in re.findall(r'href="#([^"]+)"', html)} <= set(ids)


def test_distances_of_another_kind_are_told_apart(tmp_path):
    root, config = results(tmp_path / "results"), configuration()
    for path in root.glob("runs/demo/csr/seed*/finetune/representation.json"):
        put(path, {**read_json(path), "tag_format": "X </s>; mean over the positions"})
    shutil.copytree(root / "runs/demo", root / "runs/again")
    shutil.copytree(root / "codeswitch/demo", root / "codeswitch/again")
    config.experiments["again"] = config.experiments["demo"]
    config.run.experiments.append("again")
    write_report(root, tmp_path / "x.html", tmp_path / "x.tsv", settings=config)
    html = (tmp_path / "x.html").read_text(encoding="utf-8")
    assert (
        "distances in which these differ cannot be compared: backbone, " in html and "csr after finetune: X &lt;/s&gt;; mean over" in html
    )
    assert "each kind has one of its own" in html
    study = configured(root, "demo", config)
    rows = distances(study)
    closer = {row["arm"]: row["closer"] for row in overview_rows({"study": study, "distances": {"rows": rows}, "failed": {}})}
    assert closer["csr"] is None and closer["mask"] == 0.0


def test_rare_words_are_underlined(page):
    html = page[0][page[0].index('id="translations-demo"') :]
    # in the reference, and in the translation that has it, but not the frequent words
    assert html.count("<u>window</u>") >= 2 and "<u>file</u>" not in html
    assert rare_words("The Fenster is.", {"Fenster"}, str.split) == [("The ", False), ("Fenster", True), (" is.", False)]
    # not the end of an earlier word
    assert rare_words("start art", {"art"}, str.split) == [("start ", False), ("art", True)]


def test_the_hash_of_the_configuration_tells_configurations_apart(tmp_path, page):
    (found,) = re.findall(r"The configuration \(SHA-256 ([0-9a-f]{16})", page[0])
    config = configuration()
    write_report(tmp_path / "results", tmp_path / "same.html", tmp_path / "s.tsv", settings=config)
    config.experiments["demo"].training.dropout = 0.123
    write_report(tmp_path / "results", tmp_path / "other.html", tmp_path / "s.tsv", settings=config)
    assert found in (tmp_path / "same.html").read_text(encoding="utf-8")
    assert found not in (tmp_path / "other.html").read_text(encoding="utf-8")


def test_models_of_other_experiments_stand_in_a_matrix(tmp_path):
    """Two experiments into one language; each model translates the other's test set (Table III)."""
    config = configuration()
    config.experiments["spanish"] = replace(config.experiments["demo"], source="es", corpus="es")
    config.corpora["es"] = replace(config.corpora["help"], languages=("es", "en"))
    config.run.experiments.append("spanish")
    config.run.zero_shot = True
    root = results(tmp_path / "results")
    for folder in ("runs", "codeswitch"):
        shutil.copytree(root / folder / "demo", root / folder / "spanish")
    for folder in ("corpora/help.de-en", "lexicons/help.de-en"):
        shutil.copytree(root / folder, root / folder.replace("help.de", "es.es"))
    for name, other in (("demo", "spanish"), ("spanish", "demo")):
        put(
            root / f"runs/{name}/trivial/seed0/{other}@pages.scores.json",
            {"sentences": 3, "metrics": {"BLEU": {"value": 3.33, "signature": "b|s"}}},
        )
        for path in (root / "runs" / name).glob("*/seed1/pages.scores.json"):
            score = {"BLEU": {"value": 3.25 if "csr" in str(path) else 2.0, "signature": "b|s"}}
            put(path.with_name(f"{other}@pages.scores.json"), {"sentences": 3, "metrics": score})
        for file in ("pages.seed1.json", "pages.json"):
            shutil.copy(root / "runs" / name / "significance" / file, root / "runs" / name / "significance" / f"{other}@{file}")
    write_report(root, tmp_path / "z.html", tmp_path / "z.tsv", settings=config)
    html = (tmp_path / "z.html").read_text(encoding="utf-8")
    matrix = plain(html[html.index('id="zero-shot"') : html.index('id="run-demo"')])
    # p = 0.003 for three arms on two test sets
    assert "Spanish spanish@pages csr 3.25 † +1.25 21.25 † +1.25" in matrix and "German demo@pages csr 21.25 † +1.25 3.25 † +1.25" in matrix
    assert "German demo@pages a copy of the source 3.33 3.33" in matrix
    assert "Test set spanish@pages" not in html
    rows = [row.split("\t") for row in (tmp_path / "z.tsv").read_text(encoding="utf-8").splitlines()]
    assert ["demo", "spanish@pages", "es-en", "csr", "3.25"] in [[row[0], row[3], row[4], row[5], row[8]] for row in rows]


def test_in_the_matrix_experiments_on_one_corpus_share_rows_and_what_a_model_learnt_together_is_in_italics():
    def part(name, corpus, sources, zero_shot, arms):
        own = {"pages": {"cells": {(arm, "BLEU"): {"mean": 10 + place} for place, arm in enumerate(arms)}}}
        others = {test: {"cells": {(arm, "BLEU"): {"mean": 1.0} for arm in arms}} for test in zero_shot}
        study = SimpleNamespace(
            name=name, corpus_name=corpus, source=sources[0], learnt_sources=sources, target="en", leading="BLEU", zero_shot=zero_shot,
            tested=["pages", *zero_shot], arms=dict.fromkeys(arms), baseline=arms[0], lowercased=[],
        )  # fmt: skip
        return {
            "study": study,
            "failed": {},
            "scores": {
                "tables": own | others,
                "trivial": {test: {"BLEU": 3.5} for test in own | others},
                "trivially": "a copy of the source",
            },
        }

    (matrix,) = zero_shot(
        [
            part("german", "de", ["de"], {"spanish@pages": "es"}, ["sga"]),
            part("both", "de", ["de", "es"], {"spanish@pages": "es"}, ["sga"]),
            part("spanish", "es", ["es"], {"german@pages": "de"}, ["finetune", "sga"]),
        ]
    )
    assert matrix["rows"] == {"german@pages": "de", "spanish@pages": "es"} and matrix["arms"] == ["sga", "finetune"]
    learnt = {(name, test): cell["learnt"] for (name, test, arm), cell in matrix["cells"].items() if arm == "sga"}
    assert learnt == {
        ("german", "german@pages"): True, ("german", "spanish@pages"): False, ("both", "german@pages"): True,
        ("both", "spanish@pages"): True, ("spanish", "spanish@pages"): True, ("spanish", "german@pages"): False,
    }  # fmt: skip
    assert matrix["baselines"]["spanish"] == "finetune" and matrix["columns"]["both"] == ["de", "es"]
    assert matrix["trivial"] == {"german@pages": 3.5, "spanish@pages": 3.5}


def test_in_the_matrix_a_test_set_has_one_row_for_models_of_all_backbones():
    def part(name, corpus, source, zero_shot):
        cells = {test: {"cells": {("csr", "BLEU"): {"mean": 1.0}}} for test in ("pages", *zero_shot)}
        study = SimpleNamespace(
            name=name, corpus_name=corpus, source=source, learnt_sources=[source], target="en", leading="BLEU", zero_shot=zero_shot,
            tested=["pages", *zero_shot], arms={"csr": None}, baseline="csr", lowercased=[],
        )  # fmt: skip
        return {"study": study, "failed": {}, "scores": {"tables": cells, "trivial": {}, "trivially": "a copy of the source"}}

    (matrix,) = zero_shot(
        [
            part("de1", "german", "de", {"ru1@pages": "ru"}),
            part("ru1", "russian", "ru", {"de1@pages": "de"}),
            part("de2", "german", "de", {"ru2@pages": "ru"}),
            part("ru2", "russian", "ru", {"de2@pages": "de"}),
        ]
    )
    assert matrix["rows"] == {"de1@pages": "de", "ru1@pages": "ru"} and len(matrix["cells"]) == 8


def test_a_tiny_p_is_not_called_zero():
    asked = "{% from 'macros.html.j2' import bare_p, p_value %}{% for p in (0.0004, 0.25, none) %}{{ bare_p(p) }}, {{ p_value(p) }}; {% endfor %}"
    assert unescape(templates(configuration()).from_string(asked).render()) == "< 0.001, p < 0.001; 0.250, p = 0.250; –, p –; "
