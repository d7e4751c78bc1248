"""The trivial baseline: a copy of the source in translation, its first sentence in every other task."""

import pytest

from workflow_scripts import registry
from workflow_scripts.evidence.trivial import main
from workflow_scripts.text.files import read_lines


@pytest.mark.parametrize(
    "kind, wanted",
    [
        ("first_sentence", ["It was in 1858 .", "Nobody", "", "这是一个句子。"]),
        ("copy", ["It was in [[ 1858 ]] . Then it burnt.", "Nobody", "", "这是一个句子。还有一个。"]),
    ],
)
def test_a_hypothesis_for_each_line(kind, wanted, tmp_path):
    (tmp_path / "source").write_text("It was in [[ 1858 ]] . Then it burnt.\nNobody\n\n这是一个句子。还有一个。\n", encoding="utf-8")
    main(tmp_path / "source", tmp_path / "hyp", kind=kind)
    assert list(read_lines(tmp_path / "hyp")) == wanted


def test_sentences_of_a_document_are_known(tmp_path):
    (tmp_path / "source").write_text("See p. 5. Press F1 </s> Then go on.\nOne\n", encoding="utf-8")
    main(tmp_path / "source", tmp_path / "hyp", kind="first_sentence", documents=True)
    assert list(read_lines(tmp_path / "hyp")) == ["See p. 5. Press F1", "One"]


def test_only_a_translation_is_compared_with_its_source():
    kinds = {name: task.trivial for name, task in registry.entries("task").items() if task.answers == "text"}
    assert kinds.pop("translation") == "copy" and {*kinds.values()} == {"first_sentence"}
