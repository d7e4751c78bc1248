"""answer_examples: questions of the test sets in the report, with the true answer and those of all arms."""

from typing import Any

from workflow_scripts.report.labels import read_answered
from workflow_scripts.report.study import Study
from workflow_scripts.tasks.answering import counts_of, right_answers, text_of
from workflow_scripts.text.examples import Example
from workflow_scripts.text.files import evenly
from workflow_scripts.text.questions import Span, parse_spans

_AROUND = 160
"""Characters of a passage that are shown before and after the first and the last span in it."""


def answer_examples(study: Study, number: int = 8) -> dict[str, Any]:
    """For each test set some of its questions, evenly spaced, with the answers of each arm in their passage, first seed."""
    made = []
    for testset in study.testsets:
        code, table, given = read_answered(study, testset)
        questions = []
        for at in evenly(list(range(len(table))), number):
            example, rows = table[at], []
            for arm, spans in given.items():
                f1, exact, *_ = counts_of([example], [spans[at]], code)[0]
                rows.append({"arm": arm, "f1": 100 * f1, "right": bool(exact), **_shown(example, spans[at])})
            questions.append({"line": at + 1, "question": example.text, **true_answers(example), "rows": rows})
        made.append({"testset": testset, "language": code, "questions": questions})
    return {"testsets": made}


def true_answers(example: Example) -> dict[str, Any]:
    """The texts of the right answers, the first span of them, if one is in the passage, and this in its passage."""
    truth, spans = list(dict.fromkeys(right_answers(example))), parse_spans(example.label)
    shown = _shown(example, spans[0]) if spans else {"before": "", "answer": truth[0], "after": " (not in the passage)"}
    return {"truth": truth, "span": [*spans[0]] if spans else None, "true": shown}


def _shown(example: Example, span: Span) -> dict[str, str]:
    """A span with what stands before and after it in the passage, both cut between words if long."""
    before, after = example.pair[: span[0]], example.pair[span[1] :]
    if len(before) > _AROUND:
        before = f"… {before[-_AROUND:].partition(' ')[2] or before[-_AROUND:]}"
    if len(after) > _AROUND:
        after = f"{after[:_AROUND].rpartition(' ')[0] or after[:_AROUND]} …"
    return {"before": before, "answer": text_of(example, span), "after": after}
