"""What is refused in labelled text, and with what words."""

import pytest
from configurations import classified

from workflow_scripts.run import config, labelled_checks
from workflow_scripts.stage import InputError
from workflow_scripts.text.labelled import Labelled
from workflow_scripts.text.labelled_source import LabelledSource

MODULES = "labelled/modules"


@pytest.mark.parametrize(
    "path, value, message",
    [
        (f"{MODULES}/labels", ["Writer", "Writer"], "at least two different labels"),
        (f"{MODULES}/labels", [], r"labels: list at least two different labels; only plugins' tasks whose labels are numbers .* read text"),
        (f"{MODULES}/lowercase", True, r"modules\.lowercase: is for `unit: target`"),
        (f"{MODULES}/language", "eng", "unknown language 'eng'"),
        (f"{MODULES}/test/de/language", "fr", r"small\.text: no text for 'fr'"),
        (f"{MODULES}/test/average", {"held_out": 0.1}, "cannot be called average"),
        (f"{MODULES}/test", {}, "names no test set"),
        (f"{MODULES}/test", {"a/b": {"held_out": 0.1}}, r"modules\.test\.a/b: names are folders"),
        (f"{MODULES}/test", {"": {"held_out": 0.1}}, r"modules\.test\.: names are folders"),
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


def questions(**train) -> list[str]:
    block = Labelled(
        language="en",
        unit="question",
        train=LabelledSource("squad.jsonl.zst", **train),
        dev=LabelledSource(held_out=0.1),
        test={"own": LabelledSource(held_out=0.1, **({"lost_answers": "by_text"} if not train else {}))},
    )
    return list(labelled_checks.labelled_problems("labelled.squad", block))


def test_questions_are_read_from_json_lines_and_only_test_sets_do_without_places():
    assert not questions() and not questions(empty="leave_out", columns={"answer": "answers.text", "start": "answers.answer_start"})
    (said,) = questions(lost_answers="by_text")
    assert said.startswith("labelled.squad.train.lost_answers: `by_text` is for test sets of questions; other text needs the place")


def tagged(**train) -> list[str]:
    others = {"dev": LabelledSource("y.tsv"), "test": {"x": LabelledSource("z.tsv")}}
    block = Labelled(language="en", unit="word", labels=["O", "B-PER", "I-PER"], train=LabelledSource(**train), **others)
    return list(labelled_checks.labelled_problems("labelled.tags", block))


def test_files_in_columns_may_have_a_header_and_others_have_none():
    assert not tagged(file="x.tsv", header=True, columns={"word": "token", "tag": "ner"})
    (said,) = tagged(file="x.conllu", header=True)
    assert said == "labelled.tags.train.header: is for files in columns whose first line names them"
