"""How the report compares arms: scores, tests, word accuracy, published numbers."""

import re
from html import unescape
from types import SimpleNamespace

import pytest
from invented import ARMS, BLEU, configuration, done_again, plain, put, report, results, study_of

from workflow_scripts.evidence.comet import Comet
from workflow_scripts.report.comparison import all_alike, averages, differences, measures
from workflow_scripts.report.headline import headline
from workflow_scripts.report.rendering import templates
from workflow_scripts.stage import read_json


def test_a_lower_error_rate_is_better_and_a_test_the_other_way_round_is_turned(tmp_path):
    study = study_of(tmp_path, configuration(arms=("finetune", "csr")))
    rows = [
        {"testset": "pages", "metric": "TER", "seed": 1, "arm": arm, "value": value} for arm, value in (("finetune", 60.0), ("csr", 58.0))
    ]
    tested = {"testset": "pages", "metric": "TER", "arm": "finetune", "other": "csr", "low": 1.0, "high": 3.5, "p": 0.01}
    (compared,) = headline(study, rows, [tested], ["pages"], ["TER"])
    assert compared["answers"] == [
        {
            "metric": "TER",
            "leading": True,
            "claim": "Better on these sentences, by 2.00 TER (lower is better); another training may differ",
            "numbers": "csr has 58.00, finetune 60.00, a difference of −2.00 (95 % interval −3.50 to −1.00, p = 0.010).",
        }
    ]


def test_several_seeds_show_spread_each_seed_and_students_interval(tmp_path):
    seeds = (1, 2, 3)
    root = results(tmp_path / "results", seeds, bleu=lambda arm, seed: BLEU[arm] + (seed - 2) * (arm == "csr"))
    html, rows = report(root, tmp_path, seeds=seeds)
    text = plain(html)
    # 0.006 for each of the three arms, corrected
    uncertain = "(+0.25 to +2.25 over 3 seeds, 95 % interval +0.75 to +1.75, p = 0.018)"
    numbers = f"csr has 21.25 ± 1.00, finetune 20.00 ± 0.00, a difference of +1.25 {uncertain}."
    # the bootstrap finds it, but 0.25, 1.25 and 2.25 may well be three draws of nothing
    assert f"Not shown in BLEU : {numbers} By the 3 seeds alone, Student's interval is −1.23 to +3.73." in text
    assert "The tests cover the choice of test sentences and of training seeds." in text and "With one training seed" not in text
    assert "significant in 3 of 3 seeds" in text and "seed 3: 22.25 ‡" in text
    assert sum(r["metric"] == "BLEU" for r in rows) == len(seeds) * len(ARMS)
    assert "+1.25 95 % −1.23 to +3.73 gain significant" in text
    assert re.search(r"csr − finetune BLEU \+1\.25 \+0\.75 to \+1\.75 −1\.23 to \+3\.73", text)


def test_texts_that_were_cut_or_not_known_or_left_to_generate_in_decoding_are_named(tmp_path):
    root = results(tmp_path / "results")
    for arm in ARMS:
        put(
            root / f"runs/demo/{arm}/seed1/pages.decoding.json",
            {
                "sentences": 1200,
                "longest": 510,
                "too_long": [7, 19] if arm == "csr" else [],
                "unknown": {"de": {"share": 0.031 if arm == "csr" else 0.002, "word": "Größe"}},
                "by_generate": 12 if arm == "csr" else 0,
                "unfinished": [3] if arm == "mask" else [],
            },
        )
    html, _ = report(root, tmp_path)
    said = (
        "Long texts were cut. 2 of 1,200 texts of pages have more than the 510 pieces that a model reads; their ends were not read (csr)."
    )
    assert said in plain(html)
    ended = "1 of 1,200 texts of pages has no end: it has as many pieces as it may (max_length of decoding, or the model's limit) (mask)."
    assert f"What was written for {ended}" in plain(html)
    assert "The vocabulary lacks a part of the text. 3.1% of the pieces of the German text of pages, as in 'Größe' (csr)." in plain(html)
    assert "Decoded by generate, as CTranslate2 is not right for them. 12 of 1,200 texts of pages (csr)." in plain(html)


@pytest.mark.parametrize("seeds", [(1,), (1, 2)])
def test_randomization_is_called_what_it_is(tmp_path, seeds):
    root, config = results(tmp_path / "results", seeds, test="randomization"), configuration(seeds)
    config.experiments["demo"].scores.test = "randomization"
    done_again(root, config)
    text = plain(report(root, tmp_path, config)[0])
    covered = "the choice of test sentences, " + ("not of training seeds" if len(seeds) == 1 else "with the training seeds as they are")
    assert f"a marker for each seed; p covers {covered}." in text and f"The tests cover {covered}." in text
    assert "bootstrap" not in text.partition("The configuration")[0] and "bars are 95 %" not in text


def test_equal_outputs_get_no_marker(tmp_path):
    root = results(tmp_path / "results", bleu=lambda arm, seed: 20.0)
    study = study_of(root, configuration())
    rows = measures(study, differences(study))
    assert {r["marker"] for r in rows} == {""}
    claims = {answer["claim"] for found in headline(study, rows, differences(study), ["pages"], ["BLEU"]) for answer in found["answers"]}
    assert claims == {"No difference in BLEU"}


def test_pairs_of_equal_scores_stay_in_the_table_of_pairs(tmp_path):
    root = results(tmp_path / "results", bleu=lambda arm, seed: 20.0 + (arm == "random"))
    text = plain(report(root, tmp_path)[0])
    assert "csr − mask BLEU 0.00" in text and "csr − random BLEU −1.00" in text


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


def test_a_metric_that_the_trivial_baseline_lacks_on_a_test_set_has_no_average_and_a_reason(tmp_path):
    root = results(tmp_path / "results")
    path = root / "runs/demo/trivial/seed0/pages.scores.json"
    put(path, {**read_json(path), "failed": {"chrF": "line 3 cannot be read"}})
    assert "chrF of a copy of the source on pages: line 3 cannot be read" in plain(report(root, tmp_path)[0])
    study = SimpleNamespace(generated=True, testsets=["en", "de"], arms=["a"], seeds=[1])
    rows = [
        {"arm": "a", "metric": metric, "seed": 1, "testset": testset, "value": 2.0}
        for metric in ("BLEU", "chrF")
        for testset in study.testsets
    ]
    found = averages(study, rows, {"en": {"BLEU": 1.0, "chrF": 3.0}, "de": {"BLEU": 2.0}})
    assert found["metrics"] == ["BLEU", "chrF"] and found["trivial"] == {"BLEU": 1.5}


def test_p_values_are_corrected_unless_one_asks_for_none(tmp_path):
    root = results(tmp_path / "results")
    assert "p = 0.009 (0.003)" in plain(report(root, tmp_path)[0])
    config = configuration()
    config.experiments["demo"].scores.correction = "none"
    rows = measures(study_of(root, config), [])
    assert {row["p"] for row in rows if row["arm"] != "finetune" and row["metric"] == "BLEU"} == {0.003}


def test_a_comparison_that_shows_no_difference_is_one_of_those_corrected_for(tmp_path):
    root = results(tmp_path / "results", bleu=lambda arm, seed: 20.0 + (arm == "csr"))
    study = study_of(root, configuration())
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
    text = plain(report(root, tmp_path, config)[0])
    assert (
        "COMET, Unbabel/wmt22-comet-da" in text
        and "| arm | BLEU | chrF | COMET, Unbabel/wmt22-comet-da |" in text
        and "0.8247 ‡" in text
        and "+0.0123 p = 0.002" in text
        and "0.8100" in text
    )
    assert "COMET of random on pages, seed 1: there is no <model>" in text
    rows = (tmp_path / "scores.tsv").read_text(encoding="utf-8").splitlines()
    assert [row.split("\t")[5:10] for row in rows if "COMET" in row][1] == ["csr", "1", "COMET", "0.82468", "model:m"]


def test_arms_that_are_not_better_than_a_copy_of_the_source_are_named_first(tmp_path):
    root = results(tmp_path / "results")
    assert "needs no model" not in report(root, tmp_path)[0]
    put(root / "runs/demo/trivial/seed0/pages.scores.json", {"sentences": 3, "metrics": {"BLEU": {"value": 20.5, "signature": "b|s"}}})
    box = plain(report(root, tmp_path)[0]).partition("What was run")[0]
    said = "the BLEU of finetune, mask (finetune 20.00; mask 20.50) is not better than that of a copy of the source, which needs no model: 20.50."
    assert said in box


def test_an_arm_that_writes_one_line_for_all_sources_is_named_first(tmp_path):
    root = results(tmp_path / "results", arms=("finetune", "csr"))
    for arm, line in (("finetune", "sss " * 30), ("csr", "")):
        (root / f"runs/demo/{arm}/seed1/pages.hyp").write_text(f"{line.strip()}\n" * 12 + "another\n" * 3)
    study = study_of(root, configuration(arms=("finetune", "csr")))
    of_finetune, of_csr = all_alike(study)
    assert "finetune wrote the same line, “sss sss" in of_finetune and "…”, for 12 of 15 sources: it has learnt too little" in of_finetune
    assert "csr wrote an empty line for 12 of 15 sources" in of_csr
    (root / "runs/demo/csr/seed1/pages.hyp").write_text("".join(f"{n}\n" for n in range(15)))
    assert len([*all_alike(study)]) == 1
    # the report names one bad seed of two
    for seed in (1, 2):
        put(root / f"runs/demo/finetune/seed{seed}/pages.hyp", "".join(f"{0 if seed == 2 else n}\n" for n in range(15)))
    study = study_of(root, configuration(seeds=(1, 2), arms=("finetune",)))
    assert [*all_alike(study)] == [
        "On the test set pages finetune wrote the same line, “0”, for 15 of 15 sources with seed 2: it has learnt too little to be scored."
    ]


def test_word_accuracy_is_shown_by_bucket_and_written_to_the_table(tmp_path):
    results(tmp_path, seeds=(1, 2))
    page, rows = report(tmp_path, tmp_path, seeds=(1, 2))
    table = page[page.index('id="words-demo"') : page.index('id="curves-demo"')]
    # csr: 21.25 − 7; the baseline: 20 − 7
    assert "1,234 words" in table and "14.25" in table and "+1.25" in table and "13.00" in table
    assert "14.25" in [row["value"] for row in rows if (row["arm"], row["seed"], row["metric"]) == ("csr", "2", "word_f_low")]
    # and the main table can be copied
    copied = page[page.index("as Markdown and LaTeX") : page.index('id="words-demo"')]
    assert "| arm | BLEU | chrF |" in copied and "| csr | 21.25 ± 0.00 ‡(1) ‡(2) |" in copied and r"\begin{tabular}{lrr}" in copied


def test_a_tiny_p_is_not_called_zero():
    asked = "{% from 'macros.html.j2' import bare_p, p_value %}{% for p in (0.0004, 0.25, none) %}{{ bare_p(p) }}, {{ p_value(p) }}; {% endfor %}"
    assert unescape(templates(configuration()).from_string(asked).render()) == "< 0.001, p < 0.001; 0.250, p = 0.250; –, p –; "
