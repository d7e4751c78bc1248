"""Questions in the report: the true answers, in their passage or beside it."""

from workflow_scripts.report.answer_examples import true_answers
from workflow_scripts.text.examples import Example
from workflow_scripts.text.questions import write_spans

PASSAGE = "The house stands in Rome."


def test_the_first_right_answer_is_shown_in_its_passage():
    shown = true_answers(Example(write_spans([(20, 24), (4, 9), (20, 24)], ["Italy"]), "Where?", PASSAGE))
    assert shown["truth"] == ["Rome", "house", "Italy"] and shown["span"] == [20, 24]
    assert shown["true"] == {"before": "The house stands in ", "answer": "Rome", "after": "."}


def test_an_answer_that_is_not_in_the_passage_is_shown_by_itself():
    shown = true_answers(Example(write_spans([], ["in Italy"]), "Where?", PASSAGE))
    assert shown == {"truth": ["in Italy"], "span": None, "true": {"before": "", "answer": "in Italy", "after": " (not in the passage)"}}
