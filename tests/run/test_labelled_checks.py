"""What is refused in labelled text, and with what words."""

import pytest
from configurations import classified

from workflow_scripts.run import config, labelled_checks
from workflow_scripts.stage import InputError
from workflow_scripts.text.examples import LabelledSource
from workflow_scripts.text.labelled import Labelled

MODULES = "labelled/modules"


@pytest.mark.parametrize(
    "path, value, message",
    [
        (f"{MODULES}/labels", ["Writer", "Writer"], "at least two different labels"),
        (f"{MODULES}/lowercase", True, r"modules\.lowercase: is for `unit: target`"),
        (f"{MODULES}/language", "eng", "unknown language 'eng'"),
        (f"{MODULES}/test/de/language", "fr", r"small\.text: no text for 'fr'"),
        (f"{MODULES}/test/average", {"held_out": 0.1}, "cannot be called average"),
        (f"{MODULES}/test", {}, "names no test set"),
        (f"{MODULES}/dev", {}, "give a `file` with `columns`, or `held_out`"),
        (f"{MODULES}/train/held_out", 0.1, "is for dev and test sets"),
        (f"{MODULES}/train/columns", {"text": 3}, "say nothing about label"),
        (f"{MODULES}/train/columns", {"text": 3, "pair": 3, "label": 1}, "text and pair are both read from 3"),
        (f"{MODULES}/train/columns/txt", 3, "'txt' is not defined, did you mean 'text'"),
        (f"{MODULES}/train/columns/pair", 2, r"modules\.test\.de\.columns: have no `pair`, but those of `train` have; give it in all"),
        (f"{MODULES}/train/label_pattern", "(", "is no regular expression"),
        (f"{MODULES}/train/label_pattern", "scalc", "needs a group that is the label"),
        (f"{MODULES}/train/file", "{x}.tsv", "'{x}.tsv' has braces"),
    ],
)
def test_mistakes_in_labelled_text_are_named(path, value, message):
    with pytest.raises(InputError, match=message):
        config.load(classified(path, value))


def test_questions_are_not_read_from_json_lines():
    squad = LabelledSource("results/data/squad.jsonl.zst", {"question": "question", "passage": "context", "answer": "answers.text"})
    block = Labelled(
        language="en", unit="question", train=squad, dev=LabelledSource(held_out=0.1), test={"own": LabelledSource(held_out=0.1)}
    )
    (said,) = labelled_checks.labelled_problems("labelled.squad", block)
    assert said.startswith("labelled.squad.train.file: results/data/squad.jsonl.zst has JSON lines, which are not read here; write a TSV")
