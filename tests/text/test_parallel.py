"""The formats of parallel text."""

import json
import lzma
from pathlib import Path

import pytest

from workflow_scripts.stage import InputError
from workflow_scripts.text.files import table_rows
from workflow_scripts.text.parallel import Documents, Source, read_pairs
from workflow_scripts.text.sides import plain_sentences


def write(path: Path, rows: list[str]) -> Path:
    path.write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
    return path


def documents(**changes) -> Documents:
    return Documents(**{"language": "de", **changes})


def test_all_formats_read_alike(tmp_path):
    expected = [("eins", "one"), ("zwei", "two")]
    moses = {"de": str(write(tmp_path / "m.de", ["eins", "zwei"])), "en": str(write(tmp_path / "m.en", ["one", "two"]))}
    tsv = tmp_path / "t.tsv.xz"
    tsv.write_bytes(lzma.compress(b"x\tone\teins\nx\ttwo\tzwei\n"))
    jsonl = write(tmp_path / "j.jsonl", [json.dumps({"t": {"de": a, "en": b}}) for a, b in expected])
    for source in (
        Source(files=moses),
        Source(file=str(tsv), columns={"document": 1, "de": 3, "en": 2}),
        Source(file=str(jsonl), columns={"de": "t.de", "en": "t.en"}),
    ):
        assert [(p.a, p.b) for p in read_pairs(source, ("de", "en"))] == expected


@pytest.mark.parametrize(
    "name, text, columns, message",
    [
        ("key.jsonl", '{"de": "a"}\n', {"de": "de", "en": "en"}, r"key\.jsonl, line 1.*'en'"),
        ("in.jsonl", '{"t": {"de": "a", "en": "b"}}\n', {"de": "t", "en": "t.en"}, r"line 1.*\(t is an object; name a key inside: t\.de\)"),
        ("null.jsonl", '{"a": "a", "d": null}\n', {"de": "a", "en": "a", "document": "d"}, r"line 1.*\(d is null, which names no document"),
        ("zero.tsv", "a\tb\n", {"de": 0, "en": 2}, "numbers from 1"),
        ("raised.tsv", "a\tb\n", {"de": "²", "en": 2}, "numbers from 1"),
        ("one.tsv", "a\tb\n", {"de": 1}, "has no entry for en"),
    ],
)
def test_bad_files_name_file_and_line(tmp_path, name, text, columns, message):
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=message):
        list(read_pairs(Source(file=str(tmp_path / name), columns=columns), ("de", "en")))


def test_entities_are_read_where_asked_for(tmp_path):
    escaped = ["It &apos;s &quot; R &amp; D &quot; &#91; AT&T &nope;", "&nbsp;"]
    files = {"de": str(write(tmp_path / "m.de", escaped)), "en": str(write(tmp_path / "m.en", ["one", "two"]))}
    assert [pair.a for pair in read_pairs(Source(files=files), ("de", "en"))] == escaped
    plain = [pair.a for pair in read_pairs(Source(files=files, unescape=True), ("de", "en"))]
    assert plain == ['It \'s " R & D " [ AT&T &nope;', ""]
    talk = write(tmp_path / "train.tags.de-en.de", ["<title>R&amp;D</title>", "<url>x</url>", "It&apos;s&#10;&lt;b&gt;"])
    assert list(plain_sentences(talk)) == ["R&D", "It's <b>"]


def test_tables_are_read_alike_whatever_is_in_them(tmp_path):
    path = write(tmp_path / "x.tsv", ["id\tde\ten", "1\teins\tone", "", "2\tzwei\ttwo", ""])
    both = [(2, {"all": "eins one", "id": "1"}), (4, {"all": "zwei two", "id": "2"})]
    assert list(table_rows(path, {"all": ["de", 3], "id": "id"}, header=True)) == both
    assert [number for number, _ in table_rows(path, {"de": "2"})] == [1, 2, 4]
    assert len(list(read_pairs(Source(file=str(path), columns={"de": "2", "en": 3}), ("de", "en")))) == 3


def test_documents_of_jsonl_are_text_or_sentences(tmp_path):
    rows = [
        {"d": "Eins ist da. Zwei kommt.", "s": ["One.", "Two."]},
        {"d": ["Dr. Drei kam. Ja.", "Vier </s> fünf"], "s": "Three </s> four"},
    ]
    path = write(tmp_path / "x.jsonl", [json.dumps(row) for row in rows])
    source = Source(file=str(path), columns={"de": "d", "en": "s"})
    found = [(p.a, p.b) for p in read_pairs(source, ("de", "en"), documents())]
    assert found == [("Eins ist da. </s> Zwei kommt.", "One. Two."), ("Dr. Drei kam. Ja. </s> Vier </s> fünf", "Three four")]
    assert next(read_pairs(source, ("de", "en"), documents(split=False))).a == "Eins ist da. Zwei kommt."


def test_null_in_jsonl_is_an_empty_text(tmp_path):
    path = write(tmp_path / "x.jsonl", ['{"de": null, "en": "One."}', '{"de": "Zwei.", "en": "Two."}'])
    source = Source(file=str(path), columns={"de": "de", "en": "en"})
    expected = [("", "One."), ("Zwei.", "Two.")]
    assert [(pair.a, pair.b) for pair in read_pairs(source, ("de", "en"))] == expected
    assert [(pair.a, pair.b) for pair in read_pairs(source, ("de", "en"), documents(empty="remove"))] == expected
    with pytest.raises(InputError, match=r"x\.jsonl, line 1: the document has no sentence; .* set documents\.empty: remove"):
        list(read_pairs(source, ("de", "en"), documents()))


@pytest.mark.parametrize(
    "name, text, columns", [("x.tsv", "\teins\tone\n", (1, 2, 3)), ("x.jsonl", '{"d": "", "de": "eins", "en": "one"}\n', ("d", "de", "en"))]
)
def test_an_empty_name_of_a_document_is_none(tmp_path, name, text, columns):
    (tmp_path / name).write_text(text)
    source = Source(file=str(tmp_path / name), columns=dict(zip(("document", "de", "en"), columns, strict=True)))
    assert list(read_pairs(source, ("de", "en"))) == [("block 0", "eins", "one", 1)]


ROWS = ["p\th1\tTitel\tTitle", "p\tpar\tEins. Zwei.\tx", "p\tpar\tDrei\tx", "p\thd_2\tKopf\tHead", "q\tpar\tVier\tFour", "q\tpar\tFünf\tx"]


@pytest.mark.parametrize(
    "summary, expected",
    [
        ("heading", [("p", "Eins. </s> Zwei. </s> Drei", "Title", 1), ("p", "", "Head", 4)]),
        ("first", [("p", "Eins. </s> Zwei. </s> Drei </s> Kopf", "Title", 1), ("q", "Fünf", "Four", 5)]),
    ],
)
def test_lines_are_grouped_to_documents(tmp_path, summary, expected):
    columns = {"document": 1, "heading": 2, "de": 3, "en": 4}
    source = Source(file=str(write(tmp_path / "x.tsv", ROWS)), columns=columns, summary=summary)
    assert list(read_pairs(source, ("de", "en"), documents())) == expected
    swapped = list(read_pairs(source, ("en", "de"), documents(language="en")))
    assert (swapped[0].a.split(" </s> ")[:2], swapped[0].b) == (["x", "x"], "Titel")


def test_text_of_json_is_in_normal_form_and_its_names_fit_a_column(tmp_path):
    rows = [{"t": "The\ttitle\nof it", "de": "cafe\u0301", "en": "coffee"}]
    source = Source(file=str(write(tmp_path / "j.jsonl", map(json.dumps, rows))), columns={"document": "t", "de": "de", "en": "en"})
    assert list(read_pairs(source, ("de", "en"))) == [("The title of it", "café", "coffee", 1)]


def test_a_segment_is_a_line_however_it_is_written(tmp_path):
    text = '<doc>\n<seg id="1">a&#10;b &amp; c</seg> <seg id="2">\nover\ntwo lines </seg>\n<seg id="3"/><SEG id="4"></SEG>\n<seg>a?b=1&copy=2</seg>\n'
    (tmp_path / "x.sgm").write_text(text)
    assert list(plain_sentences(tmp_path / "x.sgm")) == ["a b & c", "over two lines", "", "", "a?b=1&copy=2"]
    (tmp_path / "y.sgm").write_text('<seg id="1">one</seg>\n<seg id="2">two\n<seg id="3">three</seg>\n')
    with pytest.raises(InputError, match=r"y\.sgm, line 2: the segment that begins here has no end"):
        list(plain_sentences(tmp_path / "y.sgm"))


def test_markup_in_a_translation_memory_is_no_text(tmp_path):
    segment = '<seg>The <bpt i="1">&lt;b&gt;</bpt>cat<ept i="1">&lt;/b&gt;</ept> <hi>sat</hi><ph>&lt;img/&gt;</ph>.</seg>'
    tuvs = f'<tuv xml:lang="en">{segment}</tuv><tuv xml:lang="de"><seg>Die Katze saß.</seg></tuv>'
    (tmp_path / "m.tmx").write_text(f'<tmx version="1.4"><header/><body><tu>{tuvs}</tu></body></tmx>', encoding="utf-8")
    assert [(pair.a, pair.b) for pair in read_pairs(Source(file=str(tmp_path / "m.tmx")), ("de", "en"))] == [
        ("Die Katze saß.", "The cat sat.")
    ]
