"""Paired tests, per seed and over seeds."""

import tracemalloc

import numpy as np
import pytest
import sacrebleu
from sacrebleu.significance import PairedTest

from workflow_scripts.errors import InputError
from workflow_scripts.evidence.scores import Scores, metrics
from workflow_scripts.evidence.significance import (
    COVERS,
    against_the_first,
    compare,
    holm,
    marker,
    mean_of_drawn,
    over_seeds,
    per_seed,
    sentence_statistics,
)
from workflow_scripts.stage import read_json, write_json


@pytest.mark.parametrize("test", ["bootstrap", "randomization"])
def test_significance_tells_a_better_system_from_the_same_one(files, test):
    folder, _ = files
    systems = tuple(folder / name for name in ("poor", "good", "same"))
    per_seed(
        systems, folder / "ref", folder / "p.json", names=("poor", "good", "same"), language="en", settings=Scores(test=test, samples=200)
    )
    result = read_json(folder / "p.json")["systems"]
    assert result["poor"]["BLEU"]["p"] is None
    assert result["good"]["BLEU"]["p"] < 0.01 and result["good"]["BLEU"]["score"] > result["poor"]["BLEU"]["score"]
    assert result["same"]["BLEU"]["p"] > 0.05


def test_with_one_seed_p_counts_both_sides_and_sacrebleus_one(files):
    folder, systems = files
    # half of the sentences with a word less, half with all: neither a clear case nor none
    lines = [line if i % 2 else " ".join(line.split()[:-1]) for i, line in enumerate(systems["poor"])]
    (folder / "near").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    names = ("poor", "near", "good")
    files = tuple(folder / name for name in names)
    per_seed(files, folder / "ref", folder / "p.json", names=names, language="en", seed=3, settings=Scores(samples=300))
    over_seeds(files, folder / "ref", folder / "o.json", names=names, seeds=(3,), language="en", settings=Scores(samples=300))
    single = read_json(folder / "p.json")["systems"]
    pairs = [row for row in read_json(folder / "o.json")["pairs"] if row["other"] == "poor"]
    assert {row["metric"] for row in pairs} == {"BLEU", "chrF", "TER"}
    for row in pairs:
        one_side = single[row["arm"]][row["metric"]]["p"]
        # the same resamples: of a symmetrical distribution the other side has as many
        assert one_side <= row["p"] <= 3 * one_side + 0.05
        # of skewed resamples the two may differ near 0.05; none of these rows is
        assert (row["low"] < 0 < row["high"]) == (row["p"] > 0.05)
    assert any(1 / 301 < row["p"] < 1 for row in pairs) and read_json(folder / "o.json")["two_sided"]


def test_a_metric_that_fails_is_said_and_the_others_are_tested(files, monkeypatch):
    def out_of_order(*_, **__):
        raise OSError("no network")

    monkeypatch.setattr(sacrebleu.metrics.BLEU, "__init__", out_of_order)
    monkeypatch.setattr(sacrebleu.metrics.TER, "_extract_corpus_statistics", out_of_order)
    folder, _ = files
    names = ("poor", "good")
    systems = tuple(folder / name for name in names)
    per_seed(systems, folder / "ref", folder / "p.json", names=names, language="en", settings=Scores(samples=50))
    over_seeds(systems, folder / "ref", folder / "o.json", names=names, seeds=(1,), language="en", settings=Scores(samples=50))
    single, pairs = read_json(folder / "p.json"), read_json(folder / "o.json")
    assert single["failed"] == pairs["failed"] == dict.fromkeys(("BLEU", "TER"), "OSError: no network")
    assert set(single["systems"]["good"]) == {"chrF"} == {row["metric"] for row in pairs["pairs"]}


@pytest.mark.parametrize("test", ["bootstrap", "randomization"])
def test_with_one_seed_the_numbers_are_sacrebleus_to_the_last_digit(files, monkeypatch, test):
    monkeypatch.setenv("SACREBLEU_SEED", "3")
    folder, systems = files
    names = ("poor", "good")
    settings = Scores(metrics=["BLEU", "chrF", "TER"], test=test, samples=250)
    per_seed(
        tuple(folder / name for name in names), folder / "ref", folder / "p.json", names=names, language="en", seed=3, settings=settings
    )
    found = read_json(folder / "p.json")["systems"]
    for metric, make in metrics("en", settings).items():
        lines = [(name, systems[name]) for name in names]
        kind = "bs" if test == "bootstrap" else "ar"
        signatures, results = PairedTest(lines, {metric: make()}, [systems["ref"]], test_type=kind, n_samples=250)()
        for name, result in zip(names, results[next(iter(signatures))], strict=True):
            wanted = {"score": result.score, "mean": result.mean, "ci": result.ci, "p": result.p_value}
            assert found[name][metric] == {**wanted, "signature": str(next(iter(signatures.values())))}


@pytest.mark.parametrize(("test", "counts", "megabytes"), [("bootstrap", 18, 30), ("randomization", 2, 60)])
def test_resamples_are_not_held_all_at_once(test, counts, megabytes):
    class Share:
        _compute_score_from_stats = staticmethod(lambda sums: sacrebleu.metrics.base.Score("share", float(sums[0] / (1 + sums[1]))))

    rng = np.random.default_rng(1)
    statistics = {(name, 1): rng.integers(9, size=(3000, counts)).astype(np.float64) for name in ("one", "other")}
    tracemalloc.start()
    against_the_first(statistics, Share(), Scores(test=test, samples=10_000), 1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < megabytes * 1_000_000


@pytest.mark.parametrize("seeds", [(), (1,)])
def test_too_little_memory_ends_the_test_so_that_it_is_tried_with_more(files, monkeypatch, seeds):
    def no_room(*_, **__):
        raise MemoryError("Unable to allocate 2.01 GiB")

    monkeypatch.setattr(sacrebleu.metrics.CHRF, "_extract_corpus_statistics", no_room)
    folder, _ = files
    tested, options = (over_seeds, {"seeds": seeds}) if seeds else (per_seed, {})
    with pytest.raises(MemoryError):
        tested((folder / "poor",), folder / "ref", folder / "p.json", names=("poor",), language="en", settings=Scores(samples=9), **options)


def test_one_system_has_an_interval_and_no_p(files):
    folder, _ = files
    per_seed((folder / "poor",), folder / "ref", folder / "p.json", names=("poor",), language="en", settings=Scores(samples=50))
    found = read_json(folder / "p.json")["systems"]["poor"]["BLEU"]
    assert found["ci"] > 0 and abs(found["mean"] - found["score"]) < found["ci"] and found["p"] is None


def test_markers():
    assert [marker(p, 1.0) for p in (None, 0.2, 0.049, 0.009)] == ["", "", "†", "‡"]
    assert marker(0.001, -1.0) == "‡ worse"
    # over several seeds their own interval must leave zero out, too
    assert [marker(0.001, 1.0, by_seed=limits) for limits in (None, (0.1, 2.0), (-0.1, 2.0), (0.0, 0.0))] == ["‡", "‡", "", ""]
    assert marker(0.001, -1.0, "TER") == "‡" and marker(0.02, 1.0, "TER") == "† worse"


def test_a_system_that_cannot_be_read_is_said_and_the_others_are_tested(files):
    folder, _ = files
    (folder / "short").write_text("one\n")
    systems = tuple(folder / name for name in ("poor", "short", "good"))
    names = ("poor", "short", "good")
    per_seed(systems, folder / "ref", folder / "p.json", names=names, language="en", settings=Scores(samples=50))
    result = read_json(folder / "p.json")
    assert result["systems"]["good"]["BLEU"]["p"] < 0.05 and result["systems"]["short"] == {}
    assert "decode again" in result["failed"]["short"]
    over_seeds(systems, folder / "ref", folder / "o.json", names=names, seeds=(1,), language="en", settings=Scores(samples=50))
    result = read_json(folder / "o.json")
    assert {row["arm"]: row["seeds"] for row in result["pairs"] if row["other"] == "poor"} == {"short": 0, "good": 1} | {}
    assert "decode again" in result["failed"]["short seed 1"]


@pytest.mark.parametrize("name", ["BLEU", "chrF", "TER"])
def test_the_sum_of_the_sentences_statistics_gives_sacrebleus_score(files, name):
    _, systems = files
    metric = metrics("en", Scores())[name]()
    statistics = sentence_statistics(metric, systems["good"], systems["ref"])
    assert len(statistics) == len(systems["ref"])
    score = metric._compute_score_from_stats(list(statistics.sum(axis=0))).score
    assert score == pytest.approx(metrics("en", Scores())[name]().corpus_score(systems["good"], [systems["ref"]]).score)


@pytest.mark.parametrize("test", ["bootstrap", "randomization"])
def test_over_seeds(files, test):
    folder, systems = files
    order = ("poor", "poor", "good", "good", "same", "poor")
    settings = Scores(metrics=["BLEU"], test=test, samples=150)
    over_seeds(
        tuple(folder / name for name in order),
        folder / "ref",
        folder / "o.json",
        names=("base", "better", "equal"),
        seeds=(1, 2),
        language="en",
        settings=settings,
    )
    rows = {(r["arm"], r["other"]): r for r in read_json(folder / "o.json")["pairs"]}
    assert set(rows) == {("better", "base"), ("equal", "base"), ("equal", "better")}
    better, equal = rows["better", "base"], rows["equal", "base"]
    gain = sacrebleu.corpus_bleu(systems["good"], [systems["ref"]]).score - sacrebleu.corpus_bleu(systems["poor"], [systems["ref"]]).score
    assert better["difference"] == pytest.approx(gain) and better["p"] < 0.01 and better["seeds"] == 2
    assert equal["difference"] == pytest.approx(0) and equal["p"] == 1
    assert (better["low"] < gain < better["high"]) if test == "bootstrap" else better["low"] is None


@pytest.mark.parametrize("test", ["bootstrap", "randomization"])
@pytest.mark.parametrize("order, seeds", [(("poor", "poor", "good", "good"), False), (("poor", "poor", "good", "same"), True)])
def test_seeds_are_covered_where_they_make_a_difference(files, test, order, seeds):
    folder, _ = files
    settings = Scores(metrics=["BLEU"], test=test, samples=9)
    systems, names = tuple(folder / name for name in order), ("asked", "other")
    over_seeds(systems, folder / "ref", folder / "o.json", names=names, seeds=(1, 2), language="en", settings=settings)
    assert read_json(folder / "o.json")["covers"] == COVERS[test if seeds else "seed"]


def test_seeds_that_disagree_widen_the_interval():
    rng = np.random.default_rng(1)
    base = rng.normal(50, 1, size=200)
    one = np.ones(200)

    def arm(*gains):
        return {("arm", seed): np.stack([base + gain, one], axis=1) for seed, gain in enumerate(gains)}

    baseline = {("base", seed): np.stack([base, one], axis=1) for seed in range(3)}
    settings = Scores(samples=400)
    mean = lambda sums: sums[0] / sums[1]  # noqa: E731
    (agree,) = compare(baseline | arm(1, 1, 1), mean, [("arm", "base")], settings).values()
    (disagree,) = compare(baseline | arm(4, 0, -1), mean, [("arm", "base")], settings).values()
    assert agree["difference"] == pytest.approx(1) and disagree["difference"] == pytest.approx(1)
    assert agree["high"] - agree["low"] < 1e-6 and agree["p"] < 0.01
    assert disagree["low"] < 0 < disagree["high"] and disagree["p"] > 0.2


@pytest.mark.parametrize("test", ["bootstrap", "randomization"])
@pytest.mark.filterwarnings("ignore:invalid value")
def test_a_score_that_is_no_number_in_some_resample_is_no_small_p(test):
    # F1 of a label that one sentence in a hundred has: a third of the resamples have none
    right, wrong, none = (np.zeros((100, 3)) for _ in range(3))
    right[0], wrong[0] = (1, 1, 1), (0, 0, 1)
    statistics = {("one", 1): right, ("other", 1): wrong if test == "bootstrap" else none}
    with pytest.raises(InputError, match=r"the score of the sums \[0. 0. 0.\] is nan; return 0 where nothing was counted"):
        compare(statistics, lambda sums: 2 * sums[0] / (sums[1] + sums[2]), [("one", "other")], Scores(test=test, samples=50))


def test_the_mean_of_what_is_drawn_varies_as_a_mean_of_all_should():
    values = np.repeat(np.array([[0.0], [1.0], [5.0]]), 20_000, axis=1)
    found = mean_of_drawn(values, np.random.default_rng(5))
    # the squared standard error of a mean of three
    assert found.mean() == pytest.approx(2.0, abs=0.05) and found.var() == pytest.approx(np.var([0, 1, 5], ddof=1) / 3, rel=0.05)
    assert np.array_equal(mean_of_drawn(values[:1], np.random.default_rng(5)), values[0])


def test_of_six_seeds_a_resample_draws_five():
    """Three seeds gain six and three nothing: five draws are alike on one side in 3.1 % of the resamples, six would be in 1.6 %."""
    one = np.ones(20)
    base = {("base", seed): np.stack([50 * one, one], axis=1) for seed in range(6)}
    arm = {("arm", seed): np.stack([(50 + gain) * one, one], axis=1) for seed, gain in enumerate([0, 0, 0, 6, 6, 6])}
    (found,) = compare(base | arm, lambda sums: sums[0] / sums[1], [("arm", "base")], Scores(samples=10_000)).values()
    assert (found["low"], found["high"]) == pytest.approx((0, 6))


def test_a_single_sentence_shows_nothing(tmp_path):
    for name, line in (("ref", "the cat sat on the mat"), ("base", "the cat sat on a mat"), ("arm", "a dog ran")):
        (tmp_path / name).write_text(f"{line}\n")
    files, names = (tmp_path / "base", tmp_path / "arm"), ("base", "arm")
    per_seed(files, tmp_path / "ref", tmp_path / "p.json", names=names, language="en", settings=Scores(samples=50))
    over_seeds(files, tmp_path / "ref", tmp_path / "o.json", names=names, seeds=(1,), language="en", settings=Scores(samples=50))
    assert {found["p"] for found in read_json(tmp_path / "p.json")["systems"]["arm"].values()} == {1.0}
    assert {row["p"] for row in read_json(tmp_path / "o.json")["pairs"]} == {1.0}


def test_comet_is_tested_by_its_sentences(files):
    folder, _ = files
    for name, value in (("a", 0.5), ("b", 0.75)):
        write_json(folder / f"{name}.comet", {"value": value, "segments": [value + 0.001 * i for i in range(120)]})
    write_json(folder / "none.comet", {"value": None, "segments": [], "reason": "no model"})
    comet = tuple(folder / f"{name}.comet" for name in ("a", "b", "none"))
    settings = Scores(metrics=["BLEU"], samples=60)
    names = ("base", "arm", "other")
    over_seeds(
        (folder / "poor",) * 3, folder / "ref", folder / "o.json", names=names, seeds=(1,), language="en", comet=comet, settings=settings
    )
    rows = {(r["metric"], r["arm"]): r for r in read_json(folder / "o.json")["pairs"] if r["other"] == "base"}
    assert rows["COMET", "arm"]["difference"] == pytest.approx(0.25) and rows["COMET", "arm"]["p"] < 0.05
    assert rows["COMET", "other"]["seeds"] == 0


def test_holm_by_hand():
    assert holm({"a": 0.01, "b": 0.04, "c": 0.03}) == pytest.approx({"a": 0.03, "c": 0.06, "b": 0.06})
    assert holm({"a": 0.6, "b": 0.7}) == {"a": 1.0, "b": 1.0} and holm({}) == {}
