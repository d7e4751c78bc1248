"""Learning curves in the report, and what is read from them."""

import itertools
import re

import pytest
from invented import ARMS, configuration, plain, put, put_curve, report, results, study_of

from workflow_scripts.config.experiments import Published
from workflow_scripts.config.phases import Phase, placed
from workflow_scripts.report.curves import curve, first_below, last_fifth, looks, updates_made, updates_to_baseline
from workflow_scripts.stage import read_json
from workflow_scripts.training.curve import write_curve


def test_curves_start_after_the_pretext_phase_and_the_last_fifth_is_stated(page):
    # evaluations of the baseline at 50 (10 BLEU) and 100 (14); the last fifth begins at 80
    assert "changed by +1.60 BLEU" in plain(page[0])
    # five charts of four arms (three with a dashed line), and four of five models by layer
    assert page[0].count("<polyline") == 5 * 4 + 3 + 4 * 5


def test_the_last_fifth_is_that_of_finetuning_alone(tmp_path):
    root = results(tmp_path / "results", arms=("csr",))
    folder = root / "runs/demo/csr/seed1"
    put_curve(folder / "pretext/curve.tsv", 10_000)
    scores = "".join(f"{update}\t{update}\t\t\t2\t{score}\n" for update, score in ((500, 10), (1000, 18), (1500, 20), (2000, 21)))
    put(folder / "finetune/curve.tsv", "update\tseconds\tloss\tlearning_rate\tdev_loss\tdev_bleu\n" + scores)
    study = study_of(root, configuration(arms=("csr",)))
    assert last_fifth(study)["mean"] == pytest.approx(0.8)  # of 20.2 after 1,600 of its 2,000 updates
    late = "".join(f"{update}\t{update}\t\t\t2\t{score}\n" for update, score in ((1900, 20), (2000, 21)))
    put(folder / "finetune/curve.tsv", "update\tseconds\tloss\tlearning_rate\tdev_loss\tdev_bleu\n" + late)
    assert last_fifth(study) is None


def test_scores_that_were_not_measured_have_no_charts(tmp_path):
    root = results(tmp_path / "results", arms=("finetune",))
    assert "Dashed" not in (html := report(root, tmp_path, arms=("finetune",))[0]) and "its pretext phase included" not in html
    assert html.count("greedy translations of dev sentences") == 1
    losses = "".join(f"{update}\t{update}\t\t\t{3 - update / 100}\t\n" for update in range(10, 110, 10))
    put(root / "runs/demo/finetune/seed1/finetune/curve.tsv", "update\tseconds\tloss\tlearning_rate\tdev_loss\tdev_bleu\n" + losses)
    html = report(root, tmp_path, arms=("finetune",))[0]
    assert (
        "The BLEU of dev translations was not measured" in plain(html)
        and "greedy translations" not in html
        and "too few evaluations" not in html
    )


def test_updates_to_the_baselines_loss():
    falling = [(10.0, 5.0), (20.0, 3.0), (30.0, 2.0)]
    assert first_below(falling, 4.0) == 15 and first_below(falling, 2.0) == 30 and first_below(falling, 6.0) == 10
    assert first_below(falling, 1.0) is None and first_below([], 1.0) is None


def put_full_curve(path, updates, looks=8, losses=range(9, -1, -1)):
    rows = "".join(f"{updates * n // looks}\t{n}\t\t\t{losses[n - 1]}\t{n}\n" for n in range(1, looks + 1))
    put(path, "update\tseconds\tloss\tlearning_rate\tdev_loss\tdev_bleu\n" + rows)


def test_nothing_is_interpolated_between_few_looks(page):
    assert "a curve of the dev loss has only 2 points" in plain(page[0]) and "Updates until" not in page[0]


def test_the_claim_of_half_the_steps_is_measured(tmp_path):
    root = results(tmp_path / "results")
    for arm in ARMS:
        put_full_curve(root / f"runs/demo/{arm}/seed1/finetune/curve.tsv", 100 if arm == "finetune" else 80)
    html, _ = report(root, tmp_path)
    table = html[html.index("Updates until an arm") : html.index('id="distances-demo"')]
    # 20 updates before, and the baseline's least loss at the 80th of finetuning
    assert re.search(r"csr 100 80 80\.0 % 8 ", plain(table))


def test_the_loss_to_reach_is_the_baselines_least_at_its_first_place(tmp_path):
    """Where a loss rises after its minimum, every arm has passed the last one at once."""
    root = results(tmp_path / "results", arms=("finetune", "csr"))
    put_full_curve(root / "runs/demo/finetune/seed1/finetune/curve.tsv", 100, looks=10, losses=[9, 7, 5, 3, 3, 4, 5, 6, 7, 8])
    put_full_curve(root / "runs/demo/csr/seed1/finetune/curve.tsv", 80)
    config = configuration(arms=("finetune", "csr"))
    rows = {row["arm"]: row for row in updates_to_baseline(study_of(root, config))}
    assert {arm: (row["updates"]["mean"], row["share"]["mean"]) for arm, row in rows.items()} == {"finetune": (40, 1), "csr": (90, 70 / 40)}
    # the baseline's updates before finetuning do not count in the share
    config.run.arms = ["csr", "finetune"]
    first, other = updates_to_baseline(study_of(root, config))
    assert (first["updates"]["mean"], first["share"]["mean"]) == (100, 1) and other["updates"] is None


def test_arms_that_train_nothing_have_no_updates_to_a_loss(tmp_path):
    root, config = results(tmp_path / "results"), configuration()
    config.arms["mask"] = [Phase("task", shots=0)]
    placed(config.arms)
    for arm in ARMS:
        put_full_curve(root / f"runs/demo/{arm}/seed1/finetune/curve.tsv", 0 if arm == "mask" else 80, looks=1 if arm == "mask" else 8)
    page = report(root, tmp_path, config)[0]
    table = page[page.index("Updates until an arm") :].partition("</table>")[0]
    assert re.findall(r"--c(\d)\)\"></span>(\w+)<", table) == [("0", "finetune"), ("1", "csr"), ("3", "random")]
    config.run.arms = ["mask", "csr"]
    text = plain(report(root, tmp_path, config)[0])
    assert "Training loss" in text and "Updates until" not in text and "How many updates each arm needs" not in text


def test_a_training_loss_is_label_smoothed_where_a_phase_says_so(tmp_path):
    root = results(tmp_path / "results")
    assert "label-smoothed" not in report(root, tmp_path)[0]
    path = root / "runs/demo/csr/seed1/pretext/training.json"
    put(path, {**read_json(path), "settings": {"label_smoothing": 0.1}})
    assert "Training loss (label-smoothed)." in report(root, tmp_path)[0]


def test_phases_that_ran_out_of_patience_count_with_the_updates_they_made(tmp_path):
    root = results(tmp_path / "results", (1, 2))
    for arm, seed in itertools.product(ARMS, (1, 2)):
        made = {("finetune", 1): 100, ("finetune", 2): 50, ("csr", 2): 60}.get((arm, seed), 80)
        put_full_curve(root / f"runs/demo/{arm}/seed{seed}/finetune/curve.tsv", made, looks=10)
    put_curve(root / "runs/demo/csr/seed2/pretext/curve.tsv", 10)
    config = configuration((1, 2))
    config.experiments["demo"].published = [Published(arm="csr", metric="BLEU", value=1.0, source="x", updates=100)]
    html = report(root, tmp_path, config)[0]
    text = plain(html)
    assert "Updates in all are not equal: finetune 50 to 100; csr 70 to 100; mask 100; random 100." in text
    assert "no more training" not in text and "10 to 20 of 20: no better look at the dev set" in text
    assert "100 updates there, 70 and 100 here" in text
    # csr's finetuning has the baseline's least loss after 80 and 60 updates; the baseline's took 100 and 50
    table = plain(html[html.index("Updates until an arm") : html.index('id="distances-demo"')])
    assert "csr 85 70 to 100, 2 of 2 seeds 70 100.0 % 10" in table
    study = study_of(root, config)
    assert [x for x, _ in curve(study, "csr", 2, study.arms["csr"][1], "dev_loss")][-2:] == [64, 70]


def test_curves_have_looks_in_the_same_second_and_millions_of_updates(tmp_path):
    root = results(tmp_path / "results", arms=("finetune",))
    path = root / "runs/demo/finetune/seed1/finetune/curve.tsv"
    write_curve(path, [{"step": step, "seconds": 1_000_000.25 + step / 1e6, "eval_loss": 2.0} for step in (999_999, 1_234_567)])
    study = study_of(root, configuration(arms=("finetune",)))
    assert [look["updates"] for look in looks(study)] == [999_999, 1_234_567]
    assert updates_made(study, "finetune", 1, study.arms["finetune"][-1]) == 1_234_567
