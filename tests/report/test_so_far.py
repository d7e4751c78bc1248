"""The page on a run that is not finished."""

import json
import shutil
from dataclasses import asdict

import pytest
import test_labels
from invented import configuration, generated, generating, plain, report, results

from workflow_scripts.report import pack, so_far
from workflow_scripts.stage import InputError, read_rows
from workflow_scripts.tasks.plan import Plans


def unfinished(tmp_path, *missing, seeds=(1,)):
    """Results without these arms, without tests of significance, and without what is measured last."""
    root = results(tmp_path / "results", seeds)
    (root / "configuration.json").write_text(json.dumps(asdict(configuration(seeds))), encoding="utf-8")
    shutil.rmtree(root / "runs/demo/significance")
    for arm in missing:
        shutil.rmtree(root / "runs/demo" / arm)
    return root


def made(root, **given):
    so_far.main(root, **given)
    return (root / "report.html").read_text(encoding="utf-8")


def test_the_arms_that_are_there_are_compared_and_the_others_are_named(tmp_path):
    root = unfinished(tmp_path, "mask", "random")
    state = tmp_path / "state.json"
    state.write_text(json.dumps({"missing": [["demo", "mask", "1"]], "doing": ["mask: finetuning, 5 of 9 updates"], "left": 610.0}))
    html = made(root, state=state, comparisons=tmp_path / "comparisons.tsv")
    text = plain(html)
    assert "This run is not finished." in text and "Still to come: mask, random." in text
    assert "At work: mask: finetuning, 5 of 9 updates; about 10 minutes are left." in text
    assert "csr has 21.25, finetune 20.00, a difference of +1.25" in text and "could not be made" not in text
    compared = [(row["arm"], row["other"]) for row in read_rows(tmp_path / "comparisons.tsv") if row["metric"] == "BLEU"]
    assert compared == [("csr", "finetune")]
    # nothing is left behind that the finished run makes
    assert not {"scores.tsv", "translations"} & {path.name for path in root.iterdir()} and not (root / "runs/demo/significance").exists()


def test_each_test_set_is_tested_in_its_own_language(tmp_path):
    root, config = generated(tmp_path / "results"), generating()
    (root / "configuration.json").write_text(json.dumps(asdict(config)), encoding="utf-8")
    pack.compute(root, Plans(config))
    shutil.rmtree(root / "runs/asking/significance")
    shutil.copytree(root / "runs/asking/finetune/seed1", root / "runs/asking/trivial/seed0")
    made(root, comparisons=tmp_path / "comparisons.tsv")
    compared = {(row["testset"], row["metric"]) for row in read_rows(tmp_path / "comparisons.tsv")}
    assert {("en", "METEOR (exact+stem)"), ("zh", "METEOR (exact)")} <= compared


def test_one_arm_is_enough(tmp_path):
    text = plain(made(unfinished(tmp_path, "csr", "mask", "random")))
    assert "Only one arm" in text and "Still to come: csr, mask, random." in text and "20.00" in text


def test_a_part_that_lacks_a_file_comes_later(tmp_path):
    root = unfinished(tmp_path, "random")
    (root / "runs/demo/mask/seed1/finetune/representation.json").unlink()
    html = made(root)
    at = html.index('id="distances-demo"')
    assert "This part comes when what it needs is there." in html[at : at + 300] and html.count("comes when what it needs") == 1


def test_an_arm_that_is_made_anew_is_not_there(tmp_path):
    root = unfinished(tmp_path)
    state = tmp_path / "state.json"
    state.write_text(json.dumps({"missing": [["demo", "csr", "1"]], "doing": [], "left": None}))
    text = plain(made(root, state=state))
    assert "Still to come: csr." in text and "csr has" not in text


def test_a_seed_is_shown_while_others_are_made(tmp_path):
    root = unfinished(tmp_path, seeds=(1, 2))
    missing = {("demo", arm, "2") for arm in ("finetune", "csr", "mask", "random")}
    shown = so_far.of_what_is_there(root, Plans(configuration((1, 2))), missing)
    assert shown.experiments["demo"].seeds == [1] and shown.experiments["demo"].arms == ["finetune", "csr", "mask", "random"]


def test_the_seeds_that_the_first_answer_has_are_shown(tmp_path):
    root = unfinished(tmp_path, seeds=(1, 2))
    (root / "runs/demo/csr/seed2/pages.scores.json").unlink()
    shown = so_far.of_what_is_there(root, Plans(configuration((1, 2))), set())
    assert shown.experiments["demo"].seeds == [1] and shown.experiments["demo"].arms == ["finetune", "csr", "mask", "random"]


def test_without_the_baseline_there_is_no_page(tmp_path):
    with pytest.raises(InputError, match="no arm has its scores yet"):
        made(unfinished(tmp_path, "finetune"))


def test_it_changes_nothing_of_the_finished_page(tmp_path):
    root = results(tmp_path / "results")
    before = report(root, tmp_path)
    (root / "configuration.json").write_text(json.dumps(asdict(configuration())), encoding="utf-8")
    made(root)
    assert report(root, tmp_path) == before


def test_tasks_with_labels_have_scores_before_their_tests(tmp_path):
    root = tmp_path / "results"
    test_labels.results(root, (1,))
    config = test_labels.configuration((1,))
    (root / "configuration.json").write_text(json.dumps(asdict(config)), encoding="utf-8")
    (root / "runs/labels/significance.json").unlink()
    text = plain(made(root))
    assert "This run is not finished." in text and "could not be made" not in text
