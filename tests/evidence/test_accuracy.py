"""Accuracy, its interval and macro F1."""

import pytest

from workflow_scripts.evidence.accuracy import score


def test_wilsons_interval():
    # Newcombe (1998), Table I: 81 of 263, and 0 of 20
    for right, n, low, high in ((81, 263, 25.53, 36.62), (0, 20, 0.0, 16.11)):
        found = score(["yes"] * n, ["yes"] * right + ["no"] * (n - right), ["yes", "no"])
        assert (found["low"], found["high"]) == pytest.approx((low, high), abs=0.01)


def test_scores_say_what_guessing_gets():
    truth = ["a"] * 60 + ["b"] * 40
    found = score(truth, ["a"] * 100, ["a", "b", "c"])
    assert (found["accuracy"], found["chance"], found["at_chance"]) == (60, 60, True)
    assert found["macro_f1"] == pytest.approx(100 * (2 * 60 / 160 + 0) / 2)
    assert found["confusion"]["b"] == {"a": 40, "b": 0, "c": 0}
    assert not score(truth, ["a"] * 58 + ["b"] * 42, ["a", "b"])["at_chance"]
