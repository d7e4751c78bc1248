"""The report's first box: does it help, by how much, and how sure is that."""

import json
from dataclasses import replace

import pytest
from invented import BLEU, configuration, plain, report, results, study_of

from workflow_scripts.report.comparison import scores
from workflow_scripts.report.headline import answer, comparisons, headline, paired_differences, where
from workflow_scripts.report.study import paired


def test_headline_answers_first_and_claims_no_more(page):
    text = plain(page[0])
    box = text[: text.index("What was run")]
    # p = 0.003 of each pair, corrected for three arms against the baseline
    first = "Better on these sentences, by 1.25 BLEU; another training may differ : csr has 21.25, finetune 20.00, a difference of +1.25 (95 % interval +0.75 to +1.75, p = 0.009)."
    assert f"Does code-switching restore help? csr against the baseline, finetune {first}" in box
    assert (
        "more than masked words? csr against mask Better on these sentences, by 0.75 BLEU; another training may differ : csr has 21.25, mask 20.50"
        in box
    )
    assert "more than random ones? csr against random Better on these sentences, by 0.50 BLEU" in box and "p = 0.003" in box
    # chrF is the same in all arms
    assert box.count("No difference in chrF : csr has 50.00") == 3
    assert "The tests cover the choice of test sentences" in box and "With one training seed, nothing is known" in box


@pytest.mark.parametrize(
    "scores, p, expected",
    [
        (20.4, 0.03, ("Not shown in BLEU", "+0.90, p = 0.030). Chance could make such a difference.")),
        (21.0, 0.0004, ("Better on these sentences, by 1.00 BLEU; another training may differ", "p < 0.001).")),
        (19.0, 0.004, ("finetune is better on these sentences, by 1.00 BLEU; another training may differ", "p = 0.004).")),
        (21.0, 0.05, ("Not shown in BLEU", "p = 0.050). Chance could make such a difference.")),
        (21.0, None, ("Not tested in BLEU", "no p-value).")),
        (20.0, 0.5, ("No difference in BLEU", "csr has 20.00, finetune 20.00.")),
        (None, 0.5, ("Not known in BLEU", "a score is missing (see below).")),
    ],
)
def test_an_answer_says_no_more_than_its_test(tmp_path, scores, p, expected):
    study = study_of(tmp_path, configuration(arms=("finetune", "csr")))
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
    assert answer["claim"] == expected[0] and answer["numbers"].endswith(expected[1])


def test_significant_losses_are_not_counted_as_gains(tmp_path):
    seeds = (1, 2, 3)
    root = results(tmp_path / "results", seeds, bleu=lambda arm, seed: BLEU[arm] - 3 * (arm == "csr" and seed == 3))
    assert "gain significant in 2 of 3 seeds, loss in 1" in plain(report(root, tmp_path, seeds=seeds)[0])


@pytest.mark.parametrize(
    "arms, words",
    [
        (("finetune",), "nothing to compare"),
        (("finetune", "mask"), "Does this help? mask against the baseline, finetune Better on these sentences, by 0.50 BLEU"),
    ],
)
def test_fewer_arms_say_only_what_can_be_said(tmp_path, arms, words):
    text = plain(report(results(tmp_path / "results", arms=arms), tmp_path, arms=arms)[0])
    assert words in text and "right words" not in text


def test_random_weights_are_asked_what_pretraining_is_worth(tmp_path):
    config = configuration(arms=("finetune", "mask"))
    config.arms["mask"] = [replace(config.arms["finetune"][0], start="scratch")]
    assert comparisons(study_of(tmp_path, config)) == [("mask", "finetune", "scratch")]


def test_switched_words_are_asked_for_where_nothing_else_differs(tmp_path):
    config = configuration(arms=("finetune", "mask"))
    task = config.arms["finetune"][0]
    config.arms["mask"] = [replace(task, switch=0.35)]
    assert comparisons(study_of(tmp_path, config)) == [("mask", "finetune", "switch")]
    config.arms["mask"] = [replace(task, updates=50), replace(task, switch=0.35, updates=50)]
    assert comparisons(study_of(tmp_path, config)) == [("mask", "finetune", "other")]


@pytest.mark.parametrize(
    "settings", [{"training": {"adapter": {"kind": "lora"}}}, {"sga": {"prompt_length": 4}}, {"generator_settings": {"x": 1}}]
)
def test_arms_that_train_other_weights_differ_in_more(tmp_path, settings):
    config = configuration(arms=("finetune", "csr", "mask"))
    task, restored = config.arms["finetune"][0], config.arms["csr"]
    config.arms |= {"lora": [replace(task, **settings)], "csr-lora": [restored[0], replace(restored[1], **settings)]}
    config.run.arms = ["finetune", "lora", "csr-lora", "mask"]
    assert comparisons(study_of(tmp_path, config)) == [("lora", "finetune", "other"), ("csr-lora", "lora", "plain")]
    config.arms["ras"] = [replace(task, switch=0.35)]
    config.run.arms = ["lora", "csr", "ras"]
    assert comparisons(study_of(tmp_path, config)) == [("csr", "lora", "other"), ("ras", "lora", "other")]
    config.run.arms = ["lora", "ras"]
    assert comparisons(study_of(tmp_path, config)) == [("ras", "lora", "other")]


def test_a_control_restores_with_the_same_adapter(tmp_path):
    config = configuration(arms=("finetune", "csr", "mask"))
    first, last = config.arms["csr"]
    config.arms["csr"] = [replace(first, training={"adapter": {"kind": "lora"}}), last]
    assert comparisons(study_of(tmp_path, config)) == [("csr", "finetune", "baseline")]


def test_an_average_names_its_test_sets_where_they_are_few(tmp_path):
    study = study_of(tmp_path, configuration())
    assert where(replace(study, testsets=["en", "de"]), "average") == "On average over 2 test sets (en, de): "
    assert where(replace(study, testsets=[f"t{n}" for n in range(15)]), "average") == "On average over 15 test sets: "
    assert where(replace(study, testsets=["en", "de"]), "de") == "Test set de: " and where(study, "pages") == ""


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
    here = [row | {"pretrained_here": row["arm"] == "better"} for row in rows]
    claim = "Better on these sentences, by 8.00 points of accuracy; another pretraining may differ"
    assert answer(here, tested, "better", "base", "x", "accuracy")[0] == claim
    assert answer(here, tested, "trained", "base", "x", "accuracy") == answer(rows, tested, "trained", "base", "x", "accuracy")
    assert paired(rows, "trained", "base", "x", "accuracy") == [(60.0, 50.0), (62.0, 50.0)]
    assert paired(rows, "base", "trained", "x", "accuracy") == [(50.0, 60.0), (50.0, 62.0)]
    assert (
        "trained has 61.00 ± 1.41, base 50.00, a difference of +11.00 (+10.00 to +12.00 over 2 seeds"
        in answer(rows, tested, "trained", "base", "x", "accuracy")[1]
    )


def test_two_arms_that_train_nothing_are_one_pair_whatever_the_seeds(tmp_path):
    config = configuration((1, 2, 3), arms=("finetune", "csr", "mask"))
    for arm, shots in (("finetune", 0), ("csr", 0), ("mask", 5)):
        config.arms[arm] = [replace(config.arms["finetune"][0], shots=shots, updates=None)]
    config.arms["csr"][0].backbone = "small"
    root = results(tmp_path / "results", (1, 2, 3), arms=("finetune", "csr", "mask"))
    found = scores(study_of(root, config))
    assert found["tables"]["pages"]["cells"]["csr", "BLEU"]["n"] == found["tables"]["pages"]["gains"]["csr", "BLEU"]["n"] == 1
    said = {compared["arm"]: compared["answers"][0]["claim"] for compared in found["headline"]}
    assert said["csr"] == "Yes, by 1.25 BLEU" and not found["untrained"]
    by_seed = {(row["arm"], row["other"]): row["by_seed"] for row in found["over_seeds"]}
    assert by_seed["csr", "finetune"] is None and by_seed["mask", "finetune"] is not None
    config.run.arms = ["finetune", "csr"]
    html, _ = report(root, tmp_path, config)
    assert "another training" not in html and "another pretraining" not in html
    assert "±" not in html.partition('id="table-scores-demo-pages"')[2].partition("<tbody>")[2].partition("</table>")[0]


def test_restoring_is_judged_between_arms_of_one_backbone(tmp_path):
    config = configuration(arms=("finetune", "csr", "mask"))
    config.arms["other"] = [replace(config.arms["finetune"][0], backbone="other")]
    config.arms["other-csr"] = [replace(config.arms["csr"][0], backbone="other"), config.arms["csr"][1]]
    config.run.arms += ["other-csr", "other"]
    assert comparisons(study_of(tmp_path, config)) == [
        ("csr", "finetune", "baseline"),
        ("csr", "mask", "mask"),
        ("other-csr", "other", "plain"),
        ("other", "finetune", "other"),
    ]
    # one that starts from random weights, or switches words itself, is no plain arm, though it stands first
    for name, change in (("scratch", {"start": "scratch"}), ("switching", {"switch": 0.35})):
        config.arms[name] = [replace(config.arms["other"][0], **change)]
        config.run.arms = ["finetune", name, "other-csr", "other"]
        assert ("other-csr", "other", "plain") in comparisons(study_of(tmp_path, config))
    # without a plain arm on its backbone, or where the baseline restores as well, more than restoring differs
    config.run.arms = ["finetune", "other-csr"]
    assert comparisons(study_of(tmp_path, config)) == [("other-csr", "finetune", "other")]
    config.run.arms = ["csr", "finetune", "csr-again"]
    config.arms["csr-again"] = config.arms["csr"]
    assert ("csr-again", "csr", "other") in comparisons(study_of(tmp_path, config))


def test_a_control_restores_as_long_as_the_arm(tmp_path):
    config = configuration(arms=("finetune", "csr", "random"))
    config.run.arms += ["short", "short-mask"]
    for name, data in (("short", "codeswitch"), ("short-mask", "mask")):
        config.arms[name] = [replace(config.arms["csr"][0], data=data, updates=3), replace(config.arms["csr"][1], updates=9)]
    assert comparisons(study_of(tmp_path, config)) == [
        ("csr", "finetune", "baseline"),
        ("csr", "random", "random"),
        ("short", "finetune", "baseline"),
        ("short", "short-mask", "mask"),
    ]


def test_a_loss_is_called_a_loss(tmp_path):
    root = results(tmp_path / "results", bleu=lambda arm, seed: 18.0 if arm == "csr" else 20.0)
    html, _ = report(root, tmp_path)
    assert "finetune is better on these sentences, by 2.00 BLEU" in plain(html) and "18.00 ‡ worse" in html


def test_the_chart_of_paired_differences_has_intervals_and_words_and_replaces_that_of_single_arms(page):
    html = page[0]
    chart = html[html.index('aria-label="Paired differences in BLEU on pages"') :].partition("</svg>")[0]
    for arm, numbers in (("finetune", "+1.25 (+0.75 to +1.75)"), ("mask", "+0.75 (+0.25 to +1.25)"), ("random", "+0.50 (0.00 to +1.00)")):
        assert f"<tspan>csr − {arm}:</tspan> {numbers}, better on these sentences" in chart
    assert "the first is better" in chart and "BLEU on pages by arm" not in html
    box = html[html.index('class="headline"') : html.index("</section>")]
    # of three comparisons by two metrics, one sentence each is in view
    assert box.count("<summary>By chrF</summary>") == 3 and box.count("<li>") == box.count("<p><strong>") == 3


def test_without_paired_intervals_the_chart_of_single_arms_stands(tmp_path):
    root = results(tmp_path / "results")
    path = root / "runs/demo/significance/pages.json"
    tests = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(tests | {"pairs": [row | {"low": None, "high": None} for row in tests["pairs"]]}), encoding="utf-8")
    html, _ = report(root, tmp_path)
    assert "Paired differences" not in html and "BLEU on pages by arm" in html


def test_where_lower_is_better_the_sides_of_the_chart_change(tmp_path):
    study = study_of(tmp_path, configuration(arms=("finetune", "csr")))
    rows = [
        {"testset": "pages", "metric": "TER", "seed": 1, "arm": arm, "value": value} for arm, value in (("finetune", 60.0), ("csr", 55.0))
    ]
    tested = [{"testset": "pages", "metric": "TER", "arm": "csr", "other": "finetune", "low": -6.0, "high": -4.0, "p": 0.001}]
    (chart,) = paired_differences(study, rows, tested, ["pages"], "TER")
    assert chart["sides"] == ("the first is better", "the first is worse")
    assert chart["rows"][0]["words"] == "−5.00 (−6.00 to −4.00), better on these sentences" and chart["rows"][0]["colour"] == 1
