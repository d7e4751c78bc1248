"""Entities of HTML in texts."""

import json
from collections import Counter

import pytest

from workflow_scripts.text.entities import CHANGED, read_entities
from workflow_scripts.text.labelled import Labelled, chosen
from workflow_scripts.text.labelled_source import LabelledSource


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("&quot;Yes&quot;, she said.", '"Yes", she said.'),
        ("caf&#233; or caf&#xE9;", "café or café"),
        ("one line&#10;another&nbsp;one", "one line another one"),
        ("5&frac12; inches", "5½ inches"),
    ],
)
def test_entities_become_characters(text, plain):
    changed = Counter()
    assert read_entities(text, changed) == plain and changed == {CHANGED: 1}


@pytest.mark.parametrize("text", ["AT&T; and R&D", "no entity", "a && b;", "&nosuchname;", "copy & paste"])
def test_what_is_no_entity_is_left_alone(text):
    changed = Counter()
    assert read_entities(text, changed) == text and not changed


def test_white_space_alone_is_left_as_it_was():
    assert read_entities("&nbsp;", Counter()) == "&nbsp;"


@pytest.mark.parametrize(
    ("unit", "columns", "labels", "expected"),
    [
        ("text", {"label": 1, "text": 2, "pair": 3}, ["1"], ("1", "Tom & Jerry", "a < b")),
        ("query", {"label": 1, "text": 2, "pair": 3}, ["1"], ("1", "Tom & Jerry", "a < b")),
        ("target", {"text": 2, "target": 3}, [], ("a < b", "Tom & Jerry", "")),
    ],
)
def test_tables_are_read_with_their_entities_as_characters(tmp_path, unit, columns, labels, expected):
    file = tmp_path / "table.tsv"
    file.write_text("1\tTom &amp; Jerry\ta &lt; b\n")
    source = LabelledSource(file=str(file), columns=columns)
    changed = Counter()
    settings = Labelled(language="en", unit=unit, labels=labels, train=source, dev=source, test={"t": source})
    assert [example[:3] for example in chosen(settings, "train", Counter(), changed)] == [expected]
    assert changed == {CHANGED: 2}


def test_what_questions_are_made_of_is_read_once(tmp_path):
    passage = "Write &amp;lt; for less."
    asked = {"id": "1", "question": "What is &amp;lt; for?", "answers": [{"text": "less", "answer_start": passage.index("less")}]}
    file = tmp_path / "squad.json"
    file.write_text(json.dumps({"data": [{"paragraphs": [{"context": passage, "qas": [asked]}]}]}))
    source = LabelledSource(file=str(file), mark_answer=False)
    settings = Labelled(language="en", unit="target", train=source, dev=source, test={"t": source})
    found = [example[:2] for example in chosen(settings, "train", Counter(), Counter())]
    assert found == [("What is &lt; for?", "Write &lt; for less.")]
