"""Queries and documents in the formats of XGLUE's WPR, TREC and XQuAD-R; bad input is refused with file and line."""

import json
from collections import Counter
from pathlib import Path

import pytest

from workflow_scripts.stage import InputError, read_json
from workflow_scripts.text.examples import read_any, read_table
from workflow_scripts.text.graded import read_texts
from workflow_scripts.text.labelled import Labelled, main
from workflow_scripts.text.labelled_source import LabelledSource

GRADES = ["0", "1", "2", "3", "4"]
XQUADR = Path("resources/xquad-r")
WPR = "\n".join(
    [
        "how tall is it\tThe tower\tIt is 300 m tall.\t4",
        "how tall is it\tA park\tTrees grow there.\t0",
        "who built it\tThe builder\tHe built it.\t3",
        "who built it\tA park\tTrees grow there.\t1",
    ]
)
COLUMNS = {"text": 1, "pair": [2, 3], "label": 4}


def read(source: LabelledSource, grades=GRADES) -> list:
    return list(read_any("query", source, grades, Counter(), Counter()))


def write(folder: Path, **files: str) -> dict[str, str]:
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    return {name: str(folder / name) for name in files}


def test_xglue(tmp_path):
    write(tmp_path, wpr=WPR)
    found = read(LabelledSource(file=str(tmp_path / "wpr"), columns=COLUMNS))
    assert [(e.query, e.label, e.pair) for e in found][:2] == [
        ("1", "4", "The tower It is 300 m tall."),
        ("1", "0", "A park Trees grow there."),
    ]
    assert [e.query for e in found] == ["1", "1", "2", "2"]


def test_a_query_that_comes_again(tmp_path):
    write(tmp_path, wpr=WPR + "\nhow tall is it\tAgain\tText.\t2\n")
    with pytest.raises(
        InputError, match=r"wpr, line 5: the query 'how tall is it' comes again after others \(line 2\); sort .*repeated_queries"
    ):
        read(LabelledSource(file=str(tmp_path / "wpr"), columns=COLUMNS))
    changed: Counter[str] = Counter()
    source = LabelledSource(file=str(tmp_path / "wpr"), columns=COLUMNS, repeated_queries="separate")
    assert [e.query for e in read_any("query", source, GRADES, Counter(), changed)] == ["1", "1", "2", "2", "3"]
    assert list(changed.values()) == [1]


def test_json_lines_with_several_columns(tmp_path):
    row = {"q": "who", "doc": {"title": "A", "text": "b c"}, "grade": 2}
    write(tmp_path, **{"x.jsonl": json.dumps(row) + "\n"})
    source = LabelledSource(file=str(tmp_path / "x.jsonl"), columns={"text": "q", "pair": ["doc.title", "doc.text"], "label": "grade"})
    assert [(e.text, e.pair, e.label) for e in read(source)] == [("who", "A b c", "2")]


TREC = {"qrels": "q1 0 d1 1\nq2 0 d2 0\nq1 0 d2 2\n", "queries": "q1\twho is it\nq2\twhat\n", "documents": "d1\tone\nd2\ttwo\tthree\n"}


def test_trec(tmp_path):
    files = write(tmp_path, **TREC)
    found = read(LabelledSource(file=files["qrels"], queries=files["queries"], documents=files["documents"]))
    assert [(e.query, e.text, e.pair, e.label) for e in found] == [
        ("q1", "who is it", "one", "1"),
        ("q1", "who is it", "two three", "2"),
        ("q2", "what", "two three", "0"),
    ]


@pytest.mark.parametrize(
    "name, text, said",
    [
        ("qrels", "q1 0 d1\n", r"qrels, line 1: 3 column\(s\).*header: true"),
        ("qrels", "q1 0 d1 good\n", "qrels, line 1: the label 'good' is none of"),
        ("qrels", "q1 0 d1 1\nq1 0 d1 2\n", "qrels, line 2: query 'q1' has a grade for document 'd1' in line 1 already"),
        ("qrels", "q1 0 d9 1\n", "qrels, line 1: 'd9' is not in .*documents"),
        ("qrels", "q9 0 d1 1\n", "qrels, line 1: 'q9' is not in .*queries"),
        ("queries", "q1\twho\nq1\twhat\n", "queries, line 2: the id 'q1' stands in line 1 already"),
        ("documents", "d1\tone\nd2\t \n", "documents, line 2: the text of 'd2' is empty"),
        ("documents", "d1 one\n", "documents, line 1: an id and its text are expected"),
        ("queries", "\twho\n", "queries, line 1: an id and its text"),
    ],
)
def test_what_is_refused(tmp_path, name, text, said):
    files = write(tmp_path, **{**TREC, name: text})
    with pytest.raises(InputError, match=said):
        read(LabelledSource(file=files["qrels"], queries=files["queries"], documents=files["documents"]))


def answers(folder: Path, text: str, documents: str = "sid\tsentence\na00p0s0\tone\na00p0s1\ttwo\na00p1s0\tthree\na01p0s0\tfour\n"):
    squad = {"data": [{"paragraphs": [{"qas": [{"id": "q1", "question": "who?"}, {"id": "q2", "question": "what?"}]}]}]}
    files = write(folder, **{"answers.tsv": text, "documents.tsv": documents, "xquad.json": json.dumps(squad)})
    return LabelledSource(
        file=files["answers.tsv"], documents=files["documents.tsv"], queries=files["xquad.json"], header=True, language="de"
    )


def test_xquadr(tmp_path):
    found = read(answers(tmp_path, "qid\ten\tde\nq1\ta00p0s0\ta00p0s1\nq2\ta01p0s0\ta01p0s0\n"))
    assert [(e.text, e.pair, e.label, e.document) for e in found] == [
        ("who?", "one", "1", "a00"),
        ("who?", "two", "2", "a00"),
        ("who?", "three", "0", "a00"),
        ("what?", "four", "2", "a01"),
    ]


@pytest.mark.parametrize(
    "text, said",
    [
        ("qid\ten\nq1\ta00p0s0\n", "line 1: there is no column for the language 'de'"),
        ("qid\tde\nq1\ta00p0s7\n", "line 2: 'a00p0s7' is not in"),
        ("qid\tde\nq1\tfirst\n", "line 2: 'first' is no name of a sentence"),
        ("qid\tde\nq1\ta00p0s0\nq1\ta00p0s1\n", "line 3: the query 'q1' stands in another line already"),
        ("qid\tde\nq7\ta00p0s0\n", "line 2: 'q7' is not in .*xquad.json"),
        ("qid\tde\nq1\n", r"line 2: 1 column\(s\)"),
    ],
)
def test_answers_that_are_refused(tmp_path, text, said):
    with pytest.raises(InputError, match=said):
        read(answers(tmp_path, text))


def test_questions_of_another_format(tmp_path):
    write(tmp_path, **{"x.json": "{}"})
    with pytest.raises(InputError, match=r"not JSON in SQuAD's format"):
        read_texts(tmp_path / "x.json")
    asked = {"id": "q1", "question": "who"}
    write(tmp_path, **{"x.json": json.dumps({"data": [{"paragraphs": [{"qas": [asked, asked]}]}]})})
    with pytest.raises(InputError, match=r"x\.json: the id 'q1' stands there twice; ids must be different"):
        read_texts(tmp_path / "x.json")


def test_a_test_set_without_two_documents_for_any_query_is_refused(tmp_path):
    (tmp_path / "train.tsv").write_text("a\tx\t1\na\ty\t0\n")
    (tmp_path / "test.tsv").write_text("b\tz\t1\nc\tw\t1\n")
    files = [LabelledSource(str(tmp_path / f"{name}.tsv"), {"text": 1, "pair": 2, "label": 3}) for name in ("train", "test")]
    settings = Labelled(language="en", labels=["0", "1"], unit="query", train=files[0], dev=files[0], test={"en": files[1]})
    outputs = [tmp_path / name for name in ("x", "x.text", "x.json")]
    main(*outputs, part="dev", settings=settings)
    with pytest.raises(InputError, match=r"test\.tsv: no query of 'test/en' has two documents, so there is nothing to rank"):
        main(*outputs, part="test/en", settings=settings)


def test_parts_share_no_article_and_no_query(tmp_path):
    def source(code: str) -> dict[str, str]:
        files = {"queries": "questions", "documents": "sentences"}
        return {"file": str(XQUADR / "answers.tsv.xz"), **{key: str(XQUADR / f"{code}.{name}.tsv.xz") for key, name in files.items()}}

    settings = Labelled(
        language="en",
        labels=["0", "1", "2"],
        unit="query",
        train=LabelledSource(**source("en"), header=True),
        dev=LabelledSource(held_out=0.1),
        test={"en": LabelledSource(held_out=0.2), "de": LabelledSource(**source("de"), header=True, language="de", held_out=0.2)},
    )
    tables, reports = {}, {}
    for part in ("train", "dev", "test/en", "test/de"):
        path = tmp_path / part.replace("/", ".")
        main(path, path.with_suffix(".text"), path.with_suffix(".json"), part=part, settings=settings)
        tables[part], reports[part] = read_table(path, settings.labels), read_json(path.with_suffix(".json"))
        queries = [e.query for e in tables[part]]
        assert reports[part]["queries"] == len(set(queries)) == reports[part]["labels"]["2"]
        assert len(reports[part]["checksums"]) == 3
    assert [e.query for e in tables["test/en"] if e.label == "2"] == [e.query for e in tables["test/de"] if e.label == "2"]
    sentences = {part: {e.pair for e in table} for part, table in tables.items()}
    assert not sentences["train"] & sentences["test/en"] and not sentences["dev"] & sentences["test/en"]
    assert not {e.query for e in tables["train"]} & {e.query for e in tables["dev"]}
