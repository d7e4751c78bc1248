"""A metric of one's own: a function of one sentence, whose mean is the score of a test set."""

import numpy as np
import pytest
from sacrebleu.significance import PairedTest

from workflow_scripts import registry
from workflow_scripts.errors import InputError
from workflow_scripts.evidence import scores
from workflow_scripts.evidence.metric import decimals, higher_is_better, metric
from workflow_scripts.evidence.scores import Scores, metrics

LINES = ["Open the file.", "", "Print it twice."]
REFERENCES = ["Open a file.", "Close it.", "Print it twice."]


@pytest.fixture
def made():
    """Registers a function as the metric `made`, and returns a scorer of text in English."""
    names = []

    def register(function, name="made", **about):
        metric(name, **about)(function)
        names.append(name)
        return registry.entry("metric", name).make("en", None, False)

    yield register
    for name in dict.fromkeys(names):
        registry.forget("metric", name)


def test_a_function_gets_what_it_asks_for_and_the_score_is_the_mean(made):
    seen = []

    def every(hypothesis, reference, language):
        seen.append((hypothesis, reference, language))
        return len(hypothesis)

    assert made(every).corpus_score(LINES, [REFERENCES]).score == pytest.approx(sum(map(len, LINES)) / 3)
    assert seen == [(*pair, "en") for pair in zip(LINES, REFERENCES, strict=True)]
    assert made(lambda reference: len(reference)).corpus_score(LINES, [REFERENCES]).score == pytest.approx(sum(map(len, REFERENCES)) / 3)


def test_a_metric_that_heeds_case_has_another_score_of_lower_cased_text(made):
    made(lambda hypothesis, reference: 100.0 * (hypothesis == reference), cased=True)
    wanted = {}
    for lowercase in (False, True):
        wanted |= metrics("en", Scores(metrics=["made"]), lowercase)
    found = {name: wanted[name]() for name in ("made", "made, lower-cased")}
    assert [one.corpus_score(["open"], [["Open"]]).score for one in found.values()] == [0.0, 100.0]
    assert ["case:lc" in str(one.get_signature()) for one in found.values()] == [False, True]


@pytest.mark.parametrize("value", [1, 1.5, np.float32(1.5), np.float64(1.5), np.int64(1), -2])
def test_python_and_numpy_numbers_are_numbers(made, value):
    assert made(lambda: value).corpus_score(LINES, [REFERENCES]).score == pytest.approx(float(value))


@pytest.mark.parametrize("value", [None, "1", True, np.True_, [1], float("nan"), float("inf"), np.float64("nan"), 1j])
def test_anything_else_is_one_clear_error(made, value):
    with pytest.raises(InputError, match=r"metric 'made' returned .* for 'Open the file\.'; it returns a number"):
        made(lambda: value).corpus_score(LINES, [REFERENCES])


def test_a_function_that_fails_says_file_line_and_hypothesis(made):
    def broken(hypothesis):
        return 1 / len(hypothesis)

    line = broken.__code__.co_firstlineno + 1
    with pytest.raises(InputError) as error:
        made(broken).corpus_score(LINES, [REFERENCES])
    said = f"metric 'made': line {line} of {__file__}, `return 1 / len(hypothesis)`: ZeroDivisionError: division by zero (hypothesis '')"
    assert str(error.value) == said


def test_too_little_memory_ends_the_scores_so_that_they_are_tried_with_more(made, tmp_path):
    def large(hypothesis):
        raise MemoryError(hypothesis)

    made(large)
    (tmp_path / "lines").write_text("Open the file.\n")
    with pytest.raises(MemoryError):
        scores.main(tmp_path / "lines", tmp_path / "lines", tmp_path / "out", language="en", settings=Scores(metrics=["made"]))


def test_what_a_metric_may_not_ask_for(made):
    with pytest.raises(InputError, match="metric 'made' asks for `source`; a metric can ask for hypothesis, reference, language"):
        made(lambda hypothesis, source: 1)


def test_it_is_tested_as_ours_are(made):
    """Paired bootstrap by sacreBLEU: the mean of a resample is that of its sentences."""
    scorer = made(lambda hypothesis, reference: float(hypothesis == reference))
    lines, better = ["a", "b", "c", "d"] * 20, ["a", "b", "x", "y"] * 20
    systems = [("worse", ["z"] * 80), ("better", better)]
    _, results = PairedTest(systems, {"made": scorer}, [lines], test_type="bs", n_samples=100)()
    (_, results) = next((name, found) for name, found in results.items() if name != "System")
    assert results[0].score == 0 and results[1].score == pytest.approx(0.5) and results[1].p_value < 0.05


def test_what_is_said_of_it(made):
    made(lambda: 1, "errors", higher_is_better=False, decimals=1)
    assert not higher_is_better("errors") and not higher_is_better("errors, lower-cased") and decimals("errors") == 1
    assert higher_is_better("COMET") and decimals("COMET") is None and not higher_is_better("TER")
    scorer = made(lambda: 1)
    scorer.corpus_score(LINES, [REFERENCES])
    signature = str(scorer.get_signature())
    assert "metric:made" in signature and "version:" in signature
