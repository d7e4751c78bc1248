"""Texts with targets: the formats of the benchmarks, stories by language, and what is refused."""

import gzip
import json
import lzma
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
import zstandard

from workflow_scripts.stage import InputError, read_json
from workflow_scripts.text.examples import read_table
from workflow_scripts.text.files import read_lines
from workflow_scripts.text.labelled import Labelled, main
from workflow_scripts.text.labelled_source import LabelledSource
from workflow_scripts.text.targets import read_targets, without_marks

CONTEXT = "Das Haus steht in Rom. Es wurde 1858 gebaut, wie man sagt. 1859 brannte es."


def squad(answer: str = "1858", offset: int | None = None, question: str = "Wann wurde es gebaut?", **more) -> dict:
    """A file in SQuAD's format with one question."""
    answers = [{"text": answer, "answer_start": CONTEXT.find(answer) if offset is None else offset}]
    asked = {"id": "q1", "question": question, "answers": answers, **more}
    return {"version": "1.1", "data": [{"title": "Haus", "paragraphs": [{"context": CONTEXT, "qas": [asked]}]}]}


def read(path: Path, removed: Counter | None = None, changed: Counter | None = None, **source) -> list[tuple[str, str]]:
    found = read_targets(
        LabelledSource(file=str(path), **source), Counter() if removed is None else removed, Counter() if changed is None else changed
    )
    return [(one.text, one.target) for one in found]


def written(path: Path, content: str) -> Path:
    path.write_text(content, encoding="utf-8")
    return path


def test_xglues_line_files(tmp_path):
    source = written(tmp_path / "xglue.qg.en.src.train", "It rains  in May .\nHe sleeps .\n")
    target = written(tmp_path / "xglue.qg.en.tgt.train", "when does it rain ?\nwhat does he do ?\n")
    assert read(source, targets=str(target)) == [("It rains in May .", "when does it rain ?"), ("He sleeps .", "what does he do ?")]
    written(target, "when does it rain ?\n")
    with pytest.raises(
        InputError,
        match=r"tgt\.train ends after line 1, .*src\.train goes on at line 2: the two sides are not aligned; both files need the same number",
    ):
        read(source, targets=str(target))
    written(target, "when does it rain ?\n\n")
    with pytest.raises(InputError, match=r"src\.train, line 2: the target is empty"):
        read(source, targets=str(target))


@pytest.mark.parametrize(
    "source, text",
    [
        ({}, "Das Haus steht in Rom. Es wurde [[ 1858 ]] gebaut, wie man sagt. 1859 brannte es."),
        ({"context": "sentence"}, "Es wurde [[ 1858 ]] gebaut, wie man sagt."),
        ({"context": "sentence", "mark_answer": False}, "Es wurde 1858 gebaut, wie man sagt."),
    ],
)
def test_squads_json(tmp_path, source, text):
    for path, pack in (("x.json", bytes), ("x.json.gz", gzip.compress), ("x.json.xz", lzma.compress), ("x.json.zst", zstandard.compress)):
        (tmp_path / path).write_bytes(pack(json.dumps(squad()).encode()))
        assert read(tmp_path / path, **source) == [(text, "Wann wurde es gebaut?")]
    assert without_marks(text) == text.replace("[[ ", "").replace(" ]]", "")


def test_an_answer_over_two_sentences_keeps_both(tmp_path):
    path = written(tmp_path / "x.json", json.dumps(squad("gebaut, wie man sagt. 1859")))
    assert read(path, context="sentence") == [("Es wurde 1858 [[ gebaut, wie man sagt. 1859 ]]", "Wann wurde es gebaut?")]


def test_an_answer_that_is_elsewhere_and_a_question_without_one(tmp_path):
    path, removed, changed = tmp_path / "x.json", Counter(), Counter()
    written(path, json.dumps(squad(offset=CONTEXT.find("1858") + 3)))
    assert read(path, removed, changed)[0][0] == "Das Haus steht in Rom. Es wurde [[ 1858 ]] gebaut, wie man sagt. 1859 brannte es."
    assert changed == {"answer found at another place than its start": 1}
    written(path, json.dumps(squad(answers=[], is_impossible=True)))
    assert read(path, removed, changed) == [] and removed == {"question without answer (is_impossible)": 1}
    written(path, json.dumps(squad("Berlin", 5)))
    with pytest.raises(InputError, match="question 'q1': the answer 'Berlin' is not in the passage"):
        read(path)


def test_sections_of_the_manual(tmp_path):
    lines = [
        "a\th1\tOpen\tÖffnen",
        "a\tpar\tFirst.\tErstens.",
        "a\tpar\tThen.\tDann.",
        "a\th2\tEmpty\tLeer",
        "b\tpar\tNo head.\tOhne.",
        "b\th1\tSave\tSichern",
    ]
    path = written(tmp_path / "x.tsv", "".join(f"{line}\n" for line in [*lines, "b\tpar\tLast.\tEnde."]))
    removed: Counter[str] = Counter()
    assert read(path, removed, columns={"document": 1, "heading": 2, "text": 4}) == [("Erstens. Dann.", "Öffnen"), ("Ende.", "Sichern")]
    assert removed == {"heading without text": 1}


ROWS = [
    {"story": "1", "lang": "en", "title": "The cat", "pages": ["A cat.", "It sleeps.", "The end."]},
    {"story": "1", "lang": "de", "title": "Die Katze", "pages": ["Eine Katze.", "Sie schläft."]},
    {"story": "2", "lang": "en", "title": "The dog", "pages": ["A dog."]},
]


def test_stories_in_one_language_and_across_two(tmp_path):
    path = written(tmp_path / "x.jsonl", "".join(json.dumps(row) + "\n" for row in ROWS))
    columns, english = {"text": "title", "target": "pages", "document": "story"}, {"where": {"lang": "en"}}
    assert read(path, columns=columns, **english) == [("The cat", "A cat. It sleeps. The end."), ("The dog", "A dog.")]
    removed: Counter[str] = Counter()
    pages = {"text": "pages[:1]", "target": "pages[1:]", "document": "story"}
    assert read(path, removed, columns=pages, **english) == [("A cat.", "It sleeps. The end.")]
    assert removed == {"not asked for (where)": 1, "no pages": 1}
    removed.clear()
    assert read(path, removed, columns=columns, target_where={"lang": "de"}, **english) == [("The cat", "Eine Katze. Sie schläft.")]
    assert removed == {"no target with this document": 1}
    removed.clear()
    titles = {"text": "pages", "target": "title", "document": "story"}
    assert read(path, removed, columns=titles, target_where={"lang": "de"}) == [("A cat. It sleeps. The end.", "Die Katze")]
    assert removed == {"no target with this document": 1}
    with pytest.raises(InputError, match=r"x\.jsonl, line 4: document '1' has a target in line 2 already; see `target_where`"):
        read(written(path, path.read_text() + json.dumps(ROWS[1]) + "\n"), columns=columns, target_where={"lang": "de"}, **english)


@pytest.mark.parametrize(
    "name, content, columns, said",
    [
        ("x.tsv", "a\tb\nc\n", {"text": 1, "target": 2}, r"x\.tsv, line 2: 1 column\(s\), but `columns` asks for column 2: 'c'"),
        (
            "x.tsv",
            "a\tb\n",
            {"text": "one", "target": 2},
            r"there is no column 'one' for 'text'; without `header: true` columns are numbers",
        ),
        ("x.tsv", "a\tb\n\tc\n", {"text": 1, "target": 2}, r"x\.tsv, line 2: the text is empty; delete the line"),
        ("x.jsonl", '{"t": "a"}\n', {"text": "t", "target": "u"}, r"x\.jsonl, line 1: not a JSON object with .*'u'"),
        ("x.jsonl", '{"t": "a", "u": "b"}\n', {"text": "t", "target": "u[1:]"}, r"line 1: not a JSON object with .*u is no list"),
        ("x.jsonl", '{"t": "a", "u": {"en": "b"}}\n', {"text": "t", "target": "u"}, r"line 1: .*u is an object; name a key inside: u\.en"),
        ("x.jsonl", '{"t": [{"p": "a"}], "u": "b"}\n', {"text": "t", "target": "u"}, r"line 1: .*t is a list of other things than texts"),
        ("x.jsonl", "[\n", {"text": "t", "target": "u"}, r"x\.jsonl, line 1: not a JSON object"),
        ("x.jsonl", '{"t": "a", "u": null}\n', {"text": "t", "target": "u"}, r"x\.jsonl, line 1: the target is empty"),
        ("x.jsonl", '{"t": ["\\ud83d"], "u": "b"}\n', {"text": "t", "target": "u"}, r"line 1: not a JSON object with .*surrogates"),
        ("x.csv", "t,u\na,b\n", {"text": "t", "target": "u"}, r"no column 't' for 'text'; .*; a CSV file is not read"),
    ],
)
def test_bad_lines_are_named(tmp_path, name, content, columns, said):
    with pytest.raises(InputError, match=said):
        read(written(tmp_path / name, content), columns=columns)


def test_texts_without_a_target_may_be_left_out_and_are_counted(tmp_path):
    removed = Counter()
    assert read(written(tmp_path / "x.tsv", "a\tb\n\tc\nd\t\n"), removed, columns={"text": 1, "target": 2}, empty="leave_out") == [
        ("a", "b")
    ]
    assert removed == {"lacks a text": 2}


def test_parts_of_labelled_text_with_targets(tmp_path):
    german = {"file": "resources/xquad/de.json.xz", "context": "sentence", "mark_answer": False, "language": "de"}
    settings = Labelled(
        language="en",
        unit="target",
        lowercase=True,
        train=LabelledSource(file="resources/squad-questions/en.tsv.xz", columns={"text": 1, "target": 2}),
        dev=LabelledSource(held_out=0.1),
        test={"de": LabelledSource(**german)},
    )
    tables = {}
    for part, code in (("train", "en"), ("dev", "en"), ("test/de", "de")):
        main(tmp_path / "x.tsv", tmp_path / "x", tmp_path / "x.json", part=part, settings=settings)
        tables[part], report = read_table(tmp_path / "x.tsv"), read_json(tmp_path / "x.json")
        lines = list(read_lines(tmp_path / "x"))
        assert set(lines) == {text for example in tables[part] for text in (example.text, example.label)} and len(lines) == len(set(lines))
        assert report["examples"] == len(tables[part]) and report["language"] == report["target_language"] == code
        assert report["words"]["text"] == pytest.approx(sum(len(e.text.split()) for e in tables[part]) / len(tables[part]), rel=0.2)
    assert not {e.text for e in tables["train"]} & {e.text for e in tables["dev"]}
    assert len(tables["test/de"]) == 354 and not [e for e in tables["test/de"] if e.text != e.text.lower()]
    assert settings.language_of_targets("train") == "en" and settings.language_of_targets("test/de") == "de"


def test_translations_of_questions_are_known_by_their_ids(tmp_path):
    """A translated file has lost some answers, so that places say nothing."""
    names = ["Otto", "Karl", "Emil", "Fritz", "Hugo"]
    german, english = ([f"{name} {did}." for name in names] for did in ("baute das Haus", "built the house"))

    def file(name: str, passages: list[str], lost: int | None, numbers=range(5)) -> LabelledSource:
        data = []
        for number in numbers:
            answers = [{"text": "nobody" if number == lost else names[number], "answer_start": 0}]
            entry = {"id": f"q{number}", "question": f"Who is {names[number]}?", "answers": answers}
            data.append({"title": "t", "paragraphs": [{"context": passages[number], "qas": [entry]}]})
        path = written(tmp_path / name, json.dumps({"data": data}))
        return LabelledSource(str(path), context="passage", lost_answers="leave_out")

    settings = Labelled(
        unit="target",
        language="en",
        train=file("train.json", english, 0),
        dev=file("dev.json", english, None, [2]),
        test={"en": file("test.json", [f"{name} is no architect." for name in names], None, [3])},
        translations={"de": replace(file("de.json", german, 4), language="de")},
    )
    out = [tmp_path / f"out.{kind}" for kind in ("tsv", "txt", "json")]
    main(*out, part="translations/de", settings=settings)
    assert [line for line in read_lines(out[1]) if "Haus" in line] == [german[number] for number in (0, 1, 3)]
    assert read_json(out[2])["removed"]["its original equals dev or test"] == 1
