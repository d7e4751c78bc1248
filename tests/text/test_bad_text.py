"""Bad text: a clear error or the right handling for each. It is a corpus of sixty good pairs, with one thing wrong."""

import gzip
import json
import lzma
from dataclasses import replace
from pathlib import Path

import pytest
import zstandard
from tiny_models import manual_pairs

from workflow_scripts.stage import InputError, read_json
from workflow_scripts.text.corpus import Corpus, held_out, train
from workflow_scripts.text.files import missing_file, read_lines
from workflow_scripts.text.parallel import Documents, Source, read_pairs

GERMAN, ENGLISH = manual_pairs(61)


def lines(side: list[str]) -> bytes:
    return "".join(f"{line}\n" for line in side).encode()


GOOD = lines(GERMAN[:60]), lines(ENGLISH[:60])
ROWS = b"".join(f"{a}\t{b}\n".encode() for a, b in zip(GERMAN[:60], ENGLISH[:60], strict=True))
JSON = b"".join(json.dumps({"de": a, "en": b}).encode() + b"\n" for a, b in zip(GERMAN[:60], ENGLISH[:60], strict=True))


def clean(folder: Path, source: Source, languages: tuple[str, str] = ("de", "en")) -> tuple[list[str], list[str], dict]:
    """The two sides that are kept of a corpus, and the report."""
    dev = {code: str(folder / f"dev.{code}") for code in languages}
    for path, line in zip(dev.values(), (GERMAN[60], ENGLISH[60]), strict=True):
        Path(path).write_bytes(lines([line]))
    outputs = folder / "out/train.a", folder / "out/train.b"
    try:
        train((), (), *outputs, folder / "out/corpus.json", settings=Corpus(languages, source, Source(files=dev), {}))
    except InputError:
        assert not list(folder.glob("out/*")), "a refused corpus leaves files behind"
        raise
    return *(list(read_lines(path)) for path in outputs), read_json(folder / "out/corpus.json")


def moses(folder: Path, german: bytes, english: bytes) -> Source:
    for name, content in (("x.de", german), ("x.en", english)):
        (folder / name).write_bytes(content)
    return Source(files={"de": str(folder / "x.de"), "en": str(folder / "x.en")})


@pytest.mark.parametrize(
    "german, english, said",
    [
        (b"", b"", "no training pair left of 0"),
        (b"\n\n\n", b"\n\n\n", r"no training pair left of 3 \({'empty side': 3}\)"),
        (b"  \t\n", "\u3000\n".encode(), "no training pair left of 1"),
        (b"Eins.\rZwei.\r" * 500, b"One.\rTwo.\r" * 500, r"its lines end in \\r alone; convert"),
        (GOOD[0], lines(ENGLISH[:59]), r"x\.en ends after line 59, .*x\.de goes on at line 60"),
        (GOOD[0], GOOD[1] + b"one more\n", r"x\.de ends after line 60, .*x\.en goes on at line 61"),
        (GOOD[1], GOOD[0], "exchange the columns or files of de and en"),
        (GOOD[0], GOOD[0], r"no training pair left of 60 \({'identical sides': 60}\)"),
        (b"gut\nM\xfcller\n" + GOOD[0], b"good\nMiller\n" + GOOD[1], r"x\.de, line 2: not UTF-8 \(byte 0xfc\); .*iconv -f latin1"),
        ("\n".join(GERMAN).encode("utf-16"), GOOD[1], r"x\.de, line 1: not UTF-8 \(byte 0xff\); .*iconv -f utf-16"),
        (b"\xed\xa0\x80\n" + GOOD[0], b"x\n" + GOOD[1], "line 1: not UTF-8"),
    ],
    ids=["empty", "blank", "only-spaces", "cr-only", "short-en", "long-en", "swapped", "itself", "latin1", "utf-16", "surrogate"],
)
def test_text_that_is_refused(tmp_path, german, english, said):
    with pytest.raises(InputError, match=said):
        clean(tmp_path, moses(tmp_path, german, english))


@pytest.mark.parametrize(
    "german, english, kept, first",
    [
        (GOOD[0].replace(b"\n", b"\r\n"), GOOD[1], 60, GERMAN[0]),
        (b"\xef\xbb\xbf" + GOOD[0], b"\xef\xbb\xbf" + GOOD[1], 60, GERMAN[0]),
        (GOOD[0].rstrip(b"\n"), GOOD[1], 60, GERMAN[0]),
        (b"Das\0Haus\0\n" + GOOD[0], b"The house\n" + GOOD[1], 61, "DasHaus"),
        (b"\0\0\n" + GOOD[0], b"text\n" + GOOD[1], 60, GERMAN[0]),
        ("\u200b\u200d\ufeff\n".encode() + GOOD[0], b"text\n" + GOOD[1], 60, GERMAN[0]),
        (b"wort " * 200_000 + b"\n" + GOOD[0], b"word\n" + GOOD[1], 60, GERMAN[0]),
        (b"w" * 1_000_000 + b"\n" + GOOD[0], b"v" * 999_999 + b"\n" + GOOD[1], 61, "w" * 1_000_000),
        ("😀👍🏽👨‍👩‍👧 lacht\n".encode() + GOOD[0], "😀 laughs\n".encode() + GOOD[1], 61, "😀👍🏽👨‍👩‍👧 lacht"),
        ("\u202eabc\u202c שלום\n".encode() + GOOD[0], b"hello\n" + GOOD[1], 61, "\u202eabc\u202c שלום"),
        (b"a\x01\x1b[31m\n" + GOOD[0], "b\x85c\u2028d\x0be\n".encode() + GOOD[1], 61, "a\x01\x1b[31m"),
        (b"ein\tZwei\n" + GOOD[0], b"one\ttwo\n" + GOOD[1], 61, "ein Zwei"),
        ("e\u0301\n".encode() + GOOD[0], b"e\n" + GOOD[1], 61, "é"),
        (b"</s> <mask> de_DE\n" + GOOD[0], b"$(touch pwned) `id`; {x}\n" + GOOD[1], 61, "</s> <mask> de_DE"),
    ],
    ids=[
        "crlf",
        "bom",
        "no-end",
        "nul",
        "only-nul",
        "zero-width",
        "long-line",
        "long-word",
        "emoji",
        "bidi",
        "control",
        "tab",
        "nfd",
        "special",
    ],
)
def test_text_that_is_handled(tmp_path, german, english, kept, first):
    a, b, report = clean(tmp_path, moses(tmp_path, german, english))
    assert (len(a), len(b), a[0]) == (kept, kept, first) and report["read"] == kept + sum(report["removed"].values())
    assert not any(set("\r\0\t\x0b\x85\u2028") & set(line) for line in (*a, *b))


@pytest.mark.parametrize(
    "name, content, said",
    [
        (".zst", zstandard.compress(ROWS) + zstandard.compress(ROWS)[:40], r"after line 60: cannot be read as \.zst: .* cut off"),
        (".gz", b"plain text", r"x\.tsv\.gz, after line 0: cannot be read as \.gz: .*; copy or download it again, or .* take \.gz off"),
        (".zst", b"plain text", r"x\.tsv\.zst, after line 0: cannot be read as \.zst"),
        (".xz", b"", r"x\.tsv\.xz, after line 0: cannot be read as \.xz"),
        ("", b"one column\n", r"x\.tsv, line 1: 1 column\(s\), but `columns` asks for column 2"),
        ("", ROWS.replace(b"\t", b","), r"x\.tsv, line 1: 1 column"),
    ],
    ids=["zst-second-frame-cut", "not-gz", "not-zst", "empty-xz", "one-column", "commas"],
)
def test_tables_that_are_refused(tmp_path, name, content, said):
    path = tmp_path / f"x.tsv{name}"
    path.write_bytes(content)
    with pytest.raises(InputError, match=said):
        clean(tmp_path, Source(file=str(path), columns={"de": 1, "en": 2}))


def test_empty_lines_of_a_table_are_passed_over(tmp_path):
    path = tmp_path / "x.tsv"
    path.write_bytes(b"\n" + ROWS + b"one column\n")
    with pytest.raises(InputError, match=r"x\.tsv, line 62: 1 column"):
        clean(tmp_path, Source(file=str(path), columns={"de": 1, "en": 2}))
    path.write_bytes(b"\n" + ROWS.replace(b"\n", b"\n\n", 3) + b"\n")
    assert clean(tmp_path, Source(file=str(path), columns={"de": 1, "en": 2}))[0] == GERMAN[:60]


@pytest.mark.parametrize("suffix, compress", [(".gz", gzip.compress), (".xz", lzma.compress), (".zst", zstandard.compress)])
def test_compressed_files_in_several_parts(tmp_path, suffix, compress):
    path = tmp_path / f"x.tsv{suffix}"
    path.write_bytes(compress(ROWS[:1000]) + compress(ROWS[1000:]))
    assert clean(tmp_path, Source(file=str(path), columns={"de": 1, "en": 2}))[0] == GERMAN[:60]


@pytest.mark.parametrize(
    "row",
    [
        b'{"de": ["x", null], "en": "x"}',
        b'{"ed": "x", "en": "x"}',
        b'{"de": 5, "en": "x"}',
        b'{"de": {"x": "y"}, "en": "x"}',
        b'{"de": NaN, "en": "x"}',
        b'["de", "en"]',
        b'{"de": "cut off',
        rb'{"de": "half a pair \ud800", "en": "x"}',
        b"[" * 100_000,
        b'{"de": "a", "en": "b", "n": ' + b"9" * 5000 + b"}",
    ],
    ids=["null", "lacking", "number", "deeper", "nan", "list", "cut", "surrogate", "nested", "huge-number"],
)
def test_json_lines_that_are_refused(tmp_path, row):
    path = tmp_path / "x.jsonl"
    path.write_bytes(JSON[: JSON.index(b"\n") + 1] + row + b"\n" + JSON)
    with pytest.raises(InputError, match=r"x\.jsonl, line 2: not a JSON object"):
        clean(tmp_path, Source(file=str(path), columns={"de": "de", "en": "en"}))


def test_empty_lines_among_json_lines_are_passed_over(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_bytes(JSON[: JSON.index(b"\n") + 1] + b"\n \n" + JSON[JSON.index(b"\n") + 1 :])
    pairs = list(read_pairs(Source(file=str(path), columns={"de": "de", "en": "en"}), ("de", "en")))
    assert len(pairs) == 60 and [pair.line for pair in pairs[:2]] == [1, 4]


def test_the_columns_of_parallel_text_may_be_named_by_a_header(tmp_path):
    path = tmp_path / "x.tsv"
    path.write_bytes(b"id\tenglish\tgerman\n" + b"".join(b"%d\t%b\t%b\n" % (n, e.encode(), g.encode()) for n, g, e in NUMBERED))
    source = Source(file=str(path), columns={"de": "german", "en": "english"}, header=True)
    pairs = list(read_pairs(source, ("de", "en")))
    assert [(pair.a, pair.b) for pair in pairs] == [(g, e) for _, g, e in NUMBERED] and pairs[0].line == 2
    with pytest.raises(InputError, match=r"numbers from 1, or names in its first line with `header: true`"):
        list(read_pairs(replace(source, header=False), ("de", "en")))
    with pytest.raises(InputError, match="there is no column 'deutsch' for 'de'; the header has id, english, german"):
        list(read_pairs(replace(source, columns={"de": "deutsch", "en": "english"}), ("de", "en")))


def test_a_name_of_digits_is_a_name_and_a_name_that_stands_twice_is_refused(tmp_path):
    (path := tmp_path / "x.tsv").write_text("0\t1\t2\nid7\tA house.\tEin Haus.\n")
    source = Source(file=str(path), columns={"de": "2", "en": "1"}, header=True)
    for columns in {"de": "2", "en": "1"}, {"de": 3, "en": 2}, {"de": "3", "en": "1"}:
        (pair,) = read_pairs(replace(source, columns=columns), ("de", "en"))
        assert (pair.a, pair.b) == ("Ein Haus.", "A house.")
    with pytest.raises(
        InputError, match=r'there is no column 0 for \'de\'; the header has 0, 1, 2; for the name write "0", with quotation'
    ):
        list(read_pairs(replace(source, columns={"de": 0, "en": 1}), ("de", "en")))
    path.write_text("de\ten\tde\nEin Haus.\tA house.\tEin Baum.\n")
    with pytest.raises(InputError, match=r"columns 1 and 3 are both called 'de', so 'de' may be either; give the number of one of them"):
        list(read_pairs(replace(source, columns={"de": "de", "en": "en"}), ("de", "en")))


NUMBERED = [(1, "Ein Haus.", "A house."), (2, "Ein Baum.", "A tree.")]


def test_a_missing_file_is_answered_with_the_nearest_name(tmp_path):
    (tmp_path / "train.de").touch()
    assert missing_file(tmp_path / "trian.de").endswith(f"no such file; did you mean {tmp_path / 'train.de'}?")
    assert "no such file; check the path" in missing_file(tmp_path / "nothing.like.it")
    assert f"there is no folder {tmp_path / 'data'}" in missing_file(tmp_path / "data/train.de")
    assert "write / between folders" in missing_file("data\\train.de")
    assert "stands under `data`, which downloads it" in missing_file("https://example.org/train.de")


DOC = "<doc id=1>\n<Article>\nOne.\n</Article>\n<ZH-REF1>\n一。\n</ZH-REF1>\n</doc>\n"


@pytest.mark.parametrize(
    "name, content, said",
    [
        ("x.jsonl", '{"a": "One.", "b": "一"}\n{"a": [], "b": "二"}\n', r"x\.jsonl, line 2: the document has no sentence; .*empty: remove"),
        ("x.jsonl", '{"a": "One.", "b": "一"}\n{"a": "Two", "b": " "}\n', r"x\.jsonl, line 2: the summary is empty; correct the file"),
        ("x.jsonl", '{"a": ["One", 2], "b": "一"}\n', r"x\.jsonl, line 1: not a JSON object"),
        ("x.jsonl", '{"a": {"x": "y"}, "b": "一"}\n', r"x\.jsonl, line 1: not a JSON object .*a is an object; name a key inside: a\.x"),
        ("x.jsonl", '{"a": "One", "c": "一"}\n', r"x\.jsonl, line 1: not a JSON object"),
        ("x.tsv", "One\t一\n</s> \t二\n", r"x\.tsv, line 2: the document has no sentence"),
        ("ncls", DOC + "<doc id=2>\n<Article>\nTwo.\n</Article>\n</doc>\n", r"ncls, line 9: the document has no <ZH-REF>; it has Article"),
        ("ncls", DOC + DOC.replace("One.", ""), r"ncls, line 9: the document has no sentence"),
        ("ncls", DOC + "<doc id=2>\n<Article>\nTwo.\n", r"ncls, line 9: the document 2 has no end \(</Article>\)"),
        ("ncls", DOC + "Two.\n", r"ncls, line 9: expected <doc id=…>, got 'Two\.'"),
        ("ncls", DOC.replace("</Article>\n", "</Article>\nmore\n"), r"ncls, line 5: expected a tag or </doc>, got 'more'"),
    ],
)
def test_documents_that_are_refused(tmp_path, name, content, said):
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")
    columns = {"x.jsonl": {"en": "a", "zh": "b"}, "x.tsv": {"en": 1, "zh": 2}, "ncls": {"en": "Article", "zh": "ZH-REF"}}[name]
    source = Source(file=str(path), columns=columns, format="ncls" if name == "ncls" else None)
    with pytest.raises(InputError, match=said):
        list(read_pairs(source, ("en", "zh"), Documents("en")))


def test_documents_without_text_may_be_removed(tmp_path):
    (tmp_path / "x.en").write_text("One is here.\n\nTwo is here.\n")
    (tmp_path / "x.de").write_text("Eins\nnichts\n\n")
    files = {code: str(tmp_path / f"x.{code}") for code in ("en", "de")}
    settings = Corpus(("en", "de"), Source(files=files), Source(files=files), {}, documents=Documents("en", empty="remove"))
    train((), (), tmp_path / "t.en", tmp_path / "t.de", tmp_path / "corpus.json", settings=settings)
    report = read_json(tmp_path / "corpus.json")
    assert (report["read"], report["kept"], report["removed"]["empty side"]) == (3, 1, 2)
    settings.documents.empty = "refuse"
    with pytest.raises(InputError, match=r"x\.en, line 2: the document has no sentence"):
        train((), (), tmp_path / "u.en", tmp_path / "u.de", tmp_path / "u.json", settings=settings)
    assert not list(tmp_path.glob("u.*"))


@pytest.mark.parametrize(
    "make, said",
    [
        (lambda path: path.mkdir(), "is a folder, a text file was expected"),
        (lambda path: path.symlink_to(path), "Too many levels of symbolic links"),
        (lambda path: path.symlink_to("nowhere"), "no such file; check the path"),
        (lambda path: path.symlink_to("/dev/null"), "no training pair left of 0"),
        (lambda path: path.symlink_to("/proc/self/mem"), r"after line 0: cannot be read as \.tsv: .*Input/output error"),
    ],
    ids=["folder", "loop", "dangling", "null", "bad-disk"],
)
def test_paths_that_lead_nowhere(tmp_path, make, said):
    make(tmp_path / "x.tsv")
    with pytest.raises(InputError, match=said):
        clean(tmp_path, Source(file=str(tmp_path / "x.tsv"), columns={"de": 1, "en": 2}))


def test_a_dev_set_without_text(tmp_path):
    source = moses(tmp_path, b"\n", "\u200b\n".encode())
    with pytest.raises(InputError, match="no sentence left for 'dev'; is the file empty"):
        held_out(tmp_path / "d.de", tmp_path / "d.en", name="dev", settings=Corpus(("de", "en"), source, source, {}))


def test_text_that_runs_from_right_to_left(tmp_path):
    (tmp_path / "x.ar").write_text("".join(f"هذا هو الملف رقم {i}.\n" for i in range(30)), encoding="utf-8")
    (tmp_path / "x.en").write_text("".join(f"This is file number {i}.\n" for i in range(30)), encoding="utf-8")
    files = {code: str(tmp_path / f"x.{code}") for code in ("ar", "en")}
    assert len(clean(tmp_path, Source(files=files), ("ar", "en"))[0]) == 30
    swapped = Source(files={"ar": files["en"], "en": files["ar"]})
    with pytest.raises(InputError, match=r"the Arabic side is written in Latin script; .*exchange the columns"):
        train((), (), tmp_path / "a", tmp_path / "b", tmp_path / "c", settings=Corpus(("ar", "en"), swapped, swapped, {}))
