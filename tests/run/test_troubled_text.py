"""Files that trouble people: other widths of letters, joined files, cells that a spreadsheet has quoted, text cut into pieces."""

import csv
import re
from collections import Counter
from pathlib import Path

import pytest
from configurations import changed, planned

from workflow_scripts.run import text_findings
from workflow_scripts.stage import InputError, read_json
from workflow_scripts.text.aligned import AlignedSource, read_aligned
from workflow_scripts.text.corpus import Corpus, held_out, leak_key, train
from workflow_scripts.text.examples import read_any
from workflow_scripts.text.files import read_lines
from workflow_scripts.text.labelled_source import LabelledSource
from workflow_scripts.text.parallel import Source, read_pairs

DATA = Path("tests/data/text")


def moses(name, *codes):
    return Source(files={code: str(DATA / f"{name}.{code}") for code in codes})


def test_a_test_sentence_in_other_widths_is_left_out_of_the_training_text(tmp_path):
    settings = Corpus(("ja", "en"), moses("nfkc.train", "ja", "en"), moses("nfkc.test", "ja", "en"), {"x": moses("nfkc.test", "ja", "en")})
    held_out(tmp_path / "x.ja", tmp_path / "x.en", name="x", settings=settings)
    outputs = tmp_path / "train.ja", tmp_path / "train.en", tmp_path / "corpus.json"
    train((tmp_path / "x.ja",), (tmp_path / "x.en",), *outputs, settings=settings)
    about = read_json(outputs[2])
    assert (about["read"], about["kept"], about["removed"]["equals dev or test"]) == (21, 20, 1)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("ＡＰＩの設定", "apiの設定"),
        ("ﾊﾟｿｺﾝ", "パソコン"),
        ("ﬁnd the ﬂag", "Find the flag"),
        ("Stra\u00dfe ２５", "STRAßE 47"),
        ("\u212bngström", "ångstro\u0308m"),
        ("OpenCL™ is", "OpenCL is"),
        ("İstanbul ıslak", "istanbul islak"),
        ("ℌall", "hall"),
    ],
)
def test_sentences_are_compared_in_one_form(one, other):
    assert leak_key(one) == leak_key(other) == leak_key(leak_key(one))


def test_joined_files_have_no_byte_order_mark_inside_and_preflight_says_so(tmp_path):
    source = moses("bom-in-the-middle", "de", "en")
    pairs = [*read_pairs(source, ("de", "en"))]
    assert len(pairs) == 120 and len({(pair.a, pair.b) for pair in pairs}) == 60
    assert not any("\ufeff" in pair.a + pair.b for pair in pairs)
    found = text_findings.corpora(planned(changed("corpora/help/dev", {"files": source.files})))
    notes = [each.said for each in found if each.about == "corpora.help.dev" and "byte-order mark" in each.said]
    assert len(notes) == 2 and notes[0].startswith(f"{DATA}/bom-in-the-middle.de: 1 line(s) have a byte-order mark, line 61 first")
    (tmp_path / "x.jsonl").write_text('{"de": "\\ufeffJa", "en": "Yes"}\n')
    assert next(read_pairs(Source(file=str(tmp_path / "x.jsonl"), columns={"de": "de", "en": "en"}), ("de", "en"))).a == "Ja"


def test_cells_that_a_spreadsheet_quoted_are_noted_and_read_as_they_were(tmp_path):
    source = {"file": str(DATA / "quoted-sometimes.tsv"), "columns": {"de": 1, "en": 2}}
    found = text_findings.corpora(planned(changed("corpora/help/dev", source)))
    notes = [each.said for each in found if each.about == "corpora.help.dev" and "quotation marks" in each.said]
    assert len(notes) == 1 and notes[0].startswith("24 texts (20%) have their quotation marks doubled, as '\"Die Suchleiste")
    assert notes[0].endswith("; set `quoted: true`")
    pairs = [*read_pairs(Source(**source, quoted=True), ("de", "en"))]
    assert len(pairs) == 60 and not any('""' in pair.a + pair.b for pair in pairs)
    assert pairs[0].a.endswith('werden. "Zitat"') and pairs[0].b.endswith('documents. "quote"')
    found = text_findings.corpora(planned(changed("corpora/help/dev", {**source, "quoted": True})))
    assert not [each for each in found if "quotation marks" in each.said]


def written(path, rows):
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file, delimiter="\t").writerows(rows)
    return str(path)


ROWS = [('He said\n"no"\t.', "Er sagte „nein“.", "no"), ('"', "„", "yes"), ("Plain.", "Schlicht.", "yes")]


def test_quoted_cells_are_read_alike_in_all_tables(tmp_path):
    """With line breaks, tabs and lone quotation marks inside."""
    texts = ['He said "no" .', '"', "Plain."]
    file = written(tmp_path / "x.tsv", ROWS)
    assert [(pair.a, pair.line) for pair in read_pairs(Source(file=file, columns={"en": 1, "de": 2}, quoted=True), ("en", "de"))] == [
        ('He said "no" .', 1),
        ('"', 3),
        ("Plain.", 4),
    ]
    sides, _ = read_aligned(AlignedSource(languages=("en", "de"), file=file, columns={"en": 1, "de": 2}, quoted=True))
    assert list(sides[0]) == texts
    for unit, columns in (
        ("text", {"text": 1, "label": 3}),
        ("target", {"text": 1, "target": 2}),
        ("query", {"text": 1, "pair": 2, "label": 3}),
    ):
        source = LabelledSource(file=file, columns=columns, quoted=True, language="en")
        assert [one.text for one in read_any(unit, source, ["no", "yes"], Counter(), Counter())] == texts
    asked = written(tmp_path / "q.tsv", [('Who said "no"?', 'He said "no".', "He")])
    source = LabelledSource(file=asked, columns={"question": 1, "passage": 2, "answer": 3}, quoted=True)
    assert [(one.text, one.pair) for one in read_any("question", source, [], Counter(), Counter())] == [('Who said "no"?', 'He said "no".')]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('a\tb\n"no" he said\tx\n', "line 2: is not quoted as `quoted: true` says"),
        ('a\tb\n"no\tx\nc\td\n', "line 2: is not quoted as `quoted: true` says"),
    ],
)
def test_a_table_that_is_not_quoted_loses_no_line_in_silence(tmp_path, text, message):
    (tmp_path / "x.tsv").write_text(text)
    source = Source(file=str(tmp_path / "x.tsv"), columns={"de": 1, "en": 2}, quoted=True)
    with pytest.raises(InputError, match=message + ".*or leave `quoted` out"):
        list(read_pairs(source, ("de", "en")))


@pytest.mark.parametrize(("name", "mark"), [("bpe", r"@@ \(train: de \d\d+%, en \d\d+%; "), ("spm", r"▁ \(train: de \d\d+%, en \d\d+%; ")])
def test_training_text_in_pieces_beside_raw_text_is_noted(name, mark):
    raw = changed("corpora/help/train", {"files": moses(name, "de", "en").files})
    raw["corpora"]["help"]["dev"] = {"file": str(DATA / "quoted-sometimes.tsv"), "columns": {"de": 1, "en": 2}}
    raw["corpora"]["help"]["test"]["pages"] = {"files": moses("bom-in-the-middle", "de", "en").files}
    (note,) = [each for each in text_findings.corpora(planned(raw)) if each.about == "corpora.help"]
    raw_parts = r"dev: de 0%, en 0%; test\.pages: de 0%, en 0%\).*; give raw text everywhere"
    assert note.verdict == "note" and re.search(mark + raw_parts, note.said)


def test_tokenised_text_beside_raw_text_is_noted_and_raw_text_is_not(tmp_path):
    plain = [line for line in read_lines(DATA / "bom-in-the-middle.en")][:60]
    (tmp_path / "raw").write_text("".join(f"{line}\n" for line in plain))
    (tmp_path / "moses").write_text("".join(f"{line[:-1]} .\n" for line in plain))
    sides = {name: [*read_lines(tmp_path / name)] for name in ("raw", "moses")}
    for train_text, test_text, expected in (("raw", "raw", 0), ("moses", "raw", 1), ("raw", "moses", 1), ("moses", "moses", 0)):
        found = [*text_findings.of_other_tools("x", {"train": {"en": sides[train_text]}, "test": {"en": sides[test_text]}})]
        assert len(found) == expected
        assert all("a blank before commas and full stops" in each.said for each in found)
