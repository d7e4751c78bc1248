"""The average over test sets: what is drawn together, and how arms compare on it."""

import numpy as np
import pytest

from workflow_scripts.evidence.average import AVERAGE, Significance, compare_everywhere, mean_score, side_by_side
from workflow_scripts.evidence.significance import compare


def share(sums: np.ndarray) -> float:
    return sums[0] / sums[1]


def answers(*right: int) -> np.ndarray:
    return np.array([[one, 1] for one in right])


def test_the_mean_over_test_sets():
    counts = [answers(1, 1, 0, 0), answers(1, 1, 1, 0)]
    made = side_by_side(counts)
    assert made.shape == (4, 4) and mean_score(share, 2)(made.sum(axis=0)) == 62.5
    unequal = [counts[0], answers(1, 0, 0)]
    made = side_by_side(unequal)
    assert made.shape == (7, 4) and mean_score(share, 2)(made.sum(axis=0)) == pytest.approx(100 * (1 / 2 + 1 / 3) / 2)
    # two of three are of one size: these are drawn together, whatever the third
    made = side_by_side([counts[0], answers(1, 0, 0), counts[1]])
    assert made.shape == (7, 6) and made[:4, :2].tolist() == counts[0].tolist() and made[:4, 4:].tolist() == counts[1].tolist()
    assert made[4:, 2:4].tolist() == answers(1, 0, 0).tolist() and not made[:4, 2:4].any() and not made[4:, 4:].any()


def test_arms_are_compared_on_each_test_set_and_on_average():
    draw = np.random.default_rng(1)
    counts = {
        (arm, testset, seed): answers(*(draw.random(200) < chance))
        for arm, chance in (("base", 0.5), ("better", 0.8))
        for testset in ("de", "en")
        for seed in (1, 2)
    }
    found = compare_everywhere(counts, share, ["base", "better"], ["de", "en"], [1, 2], Significance(samples=200))
    rows = {(row["testset"], row["seed"]): row for row in found["pairs"]}
    assert set(rows) == {(testset, seed) for testset in ("de", "en", AVERAGE) for seed in (1, 2, None)}
    for seed in (1, 2, None):
        mean = (rows["de", seed]["difference"] + rows["en", seed]["difference"]) / 2
        assert rows[AVERAGE, seed]["difference"] == pytest.approx(mean) and rows[AVERAGE, seed]["p"] < 0.05
    one = 100 * (counts["better", "de", 1][:, 0].mean() - counts["base", "de", 1][:, 0].mean())
    assert rows["de", 1]["difference"] == pytest.approx(one)


def test_a_small_test_set_is_in_each_resample_of_the_average():
    counts = {
        (arm, testset, 1): answers(*right)
        for arm, by in {"base": {"large": [1, 0] * 100, "small": [1, 0, 1]}, "other": {"large": [0, 1] * 100, "small": [0, 1, 0]}}.items()
        for testset, right in by.items()
    }
    found = compare_everywhere(counts, share, ["base", "other"], ["large", "small"], [1], Significance(samples=500))
    (average,) = [row for row in found["pairs"] if row["testset"] == AVERAGE and row["seed"] == 1]
    # of 203 rows drawn from all of them, one resample in twenty would have none of the three
    assert average["low"] < 0 < average["high"] and average["p"] > 0.05


def test_models_that_are_the_same_for_all_seeds_are_tested_by_sentences_alone():
    draw = np.random.default_rng(2)
    once = {arm: answers(*(draw.random(100) < chance)) for arm, chance in (("base", 0.5), ("better", 0.8))}
    counts = {(arm, "de", seed): right for arm, right in once.items() for seed in (1, 2)}
    found = compare_everywhere(counts, share, ["base", "better"], ["de"], [1, 2], Significance(samples=200))
    rows = {row["seed"]: row for row in found["pairs"]}
    assert rows[None]["seeds"] == 1 and {**rows[None], "seed": 1} == rows[1]
    assert found["covers"]["seeds"] == found["covers"]["seed"]
    counts |= {("trained", "de", seed): answers(*(draw.random(100) < 0.7)) for seed in (1, 2)}
    found = compare_everywhere(counts, share, ["base", "better", "trained"], ["de"], [1, 2], Significance(samples=200))
    pairs = {(row["arm"], row["other"]): row["seeds"] for row in found["pairs"] if row["seed"] is None}
    assert pairs == {("better", "base"): 1, ("trained", "base"): 2, ("trained", "better"): 2}
    assert found["covers"]["seeds"] != found["covers"]["seed"]


def test_both_tails_count_with_one_seed_as_with_several():
    draw = np.random.default_rng(2)
    counts = {(arm, "de", 1): answers(*(draw.random(100) < chance)) for arm, chance in (("base", 0.5), ("near", 0.56))}
    found = compare_everywhere(counts, share, ["base", "near"], ["de"], [1], Significance(samples=1000))
    p = {row["seed"]: row["p"] for row in found["pairs"]}
    statistics = {(arm, seed): rows for (arm, _, seed), rows in counts.items()}
    found = compare(statistics, mean_score(share, 1), [("near", "base")], Significance(samples=1000))["near", "base"]
    assert found["p"] == p[1] == p[None] and found["low"] < 0 < found["high"] and found["p"] > 0.05
