"""Metrics of labels: what a plugin brings is counted example by example, tested, and shown; what is wrong with it is said."""

import runpy

import numpy as np
import pytest
from sklearn.metrics import matthews_corrcoef

from workflow_scripts import registry
from workflow_scripts.errors import InputError
from workflow_scripts.evidence.label_metric import counted, in_per_cent, label_metric, score_title
from workflow_scripts.evidence.metric import decimals, higher_is_better

LABELS = ["a", "b", "c"]


@pytest.fixture
def registered():
    """Registers a function as a metric for one test."""
    made = []

    def register(function, **about):
        label_metric("made", label="made up", **{"score": lambda sums: sums[0] / sums[1], **about})(function)
        made.append("made")
        return registry.entry("label_metric", "made")

    yield register
    for name in made:
        registry.forget("label_metric", name)


def test_the_example_is_scikit_learns():
    runpy.run_path("examples/plugins/matthews.py")
    metric = registry.entry("label_metric", "matthews")
    registry.forget("label_metric", "matthews")
    rng = np.random.default_rng(3)
    truth = rng.choice(LABELS, 200).tolist()
    given = [label if rng.random() < 0.5 else str(rng.choice(LABELS)) for label in truth]
    counts = counted(metric, truth, given, LABELS, "en")
    assert in_per_cent(metric, counts) == pytest.approx(100 * matthews_corrcoef(truth, given))
    assert in_per_cent(metric, counted(metric, truth, ["a"] * 200, LABELS, "en")) == 0


def test_an_entry_says_what_tables_need(registered):
    registered(lambda truth, given: [(a != b, 1) for a, b in zip(truth, given, strict=True)], higher_is_better=False, decimals=1)
    assert not higher_is_better("made") and decimals("made") == 1
    assert higher_is_better("accuracy") and score_title("em") == "Exact match" and score_title("ndcg") == "nDCG"


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (lambda truth: [1] * len(truth), "'made' returned 2 counts for 2 examples; it returns a row for each"),
        (lambda truth: [(1, 1)], "'made' returned 1 × 2 counts for 2 examples"),
        (lambda truth: "none", "'made' returned none; it returns a row of counts for each example"),
        (lambda given: given[2], r"'made': line \d+ of .*IndexError.* \(2 examples in en\)"),
    ],
)
def test_what_it_counts_is_a_row_for_each_example(registered, function, said):
    with pytest.raises(InputError, match=said):
        counted(registered(function), ["a", "b"], ["a", "b"], LABELS, "en")


def test_a_score_of_a_task_is_none_of_ones_own():
    with pytest.raises(InputError, match="metric 'accuracy' is counted by tasks themselves; name metrics of plugins, or leave it out"):
        counted(registry.entry("label_metric", "accuracy"), ["a"], ["a"], LABELS, "en")


def test_a_score_is_a_number(registered):
    metric = registered(lambda truth: [(1, 1)] * len(truth), score=lambda sums: float("nan"))
    with pytest.raises(InputError, match=r"'made': `score`: the score of the sums \[2. 2.\] is nan; return 0 where nothing was counted"):
        in_per_cent(metric, np.ones((2, 2)))


def test_it_asks_for_what_there_is():
    with pytest.raises(InputError, match="metric 'made' asks for `texts`; a metric of labels can ask for truth, given, labels, language"):
        label_metric("made", score=sum)(lambda texts: texts)
