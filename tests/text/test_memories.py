"""Files that name the languages of their texts: TMX, XLIFF and the XML of WMT since 2021."""

import gzip
import lzma
from collections import Counter
from pathlib import Path
from xml.sax.saxutils import escape

import pytest
import zstandard
from tiny_models import manual_pairs

from workflow_scripts.stage import InputError, read_json
from workflow_scripts.text.corpus import Corpus, held_out, train
from workflow_scripts.text.parallel import Source, read_pairs

CASES = Path("tests/data/cases")
GERMAN, ENGLISH = manual_pairs(4)


def read(path: Path, languages: tuple[str, str], **settings) -> tuple[list[tuple[str, str]], Counter[str]]:
    """The texts of a file's pairs, and what was passed over."""
    passed: Counter[str] = Counter()
    return [(pair.a, pair.b) for pair in read_pairs(Source(file=str(path), **settings), languages, passed=passed)], passed


def memory(path: Path, *units: dict[str, str]) -> Path:
    """A TMX with these units: code → text."""
    written = ("".join(f'<tuv xml:lang="{code}"><seg>{text}</seg></tuv>' for code, text in unit.items()) for unit in units)
    path.write_text(f'<tmx version="1.4"><header/><body>{"".join(f"<tu>{unit}</tu>" for unit in written)}</body></tmx>', encoding="utf-8")
    return path


# ---------------------------------------------------------------------------------------------
# languages


@pytest.mark.parametrize(
    "name, languages, pairs",
    [
        ("no.tmx", ("no", "en"), [("Jeg går hjem.", "I go home."), ("Ha det.", "Goodbye.")]),
        ("no.tmx", ("nb", "en"), [("Jeg går hjem.", "I go home."), ("Ha det.", "Goodbye.")]),
        ("iw.tmx", ("he", "en"), [("אני הולך הביתה.", "I go home.")]),
        ("ptbr.tmx", ("pt-BR", "en"), [("O ônibus está atrasado.", "The bus is late.")]),
        ("zh.tmx", ("zh-Hant", "en"), [("他讀一本書。", "He reads a book.")]),
    ],
)
def test_all_codes_of_a_language_are_read(name, languages, pairs):
    assert read(CASES / name, languages)[0] == pairs
    assert read(CASES / name, languages[::-1])[0] == [pair[::-1] for pair in pairs]


def test_languages_of_three_letters_are_read_and_named_where_none_fits():
    pairs, passed = read(CASES / "iso3.tmx", ("de", "en"))
    assert len(pairs) == 3 and pairs[0] == ("Das ist ein Haus.", "This is a house.") and not passed
    with pytest.raises(InputError, match=r"iso3\.tmx: has no text in fr; texts by language: deu \(3\), eng \(3\)"):
        read(CASES / "iso3.tmx", ("fr", "en"))


def test_of_variants_in_a_unit_the_usual_one_is_taken_and_the_others_are_counted():
    pairs, passed = read(CASES / "zh.tmx", ("zh", "en"))
    assert [chinese for chinese, _ in pairs] == ["他读一本书。", "我回家。", "再见。"]
    assert passed == {"zh-Hant passed over, since zh-Hans is read for zh": 1}
    pairs, passed = read(CASES / "ptbr.tmx", ("pt", "en"))
    assert pairs == [("O ônibus está atrasado.", "The bus is late.")]
    assert passed == {"pt-PT passed over, since pt-BR is read for pt": 1}


def test_a_variant_is_chosen_by_its_code_in_the_file():
    assert read(CASES / "ptbr.tmx", ("pt", "en"), columns={"pt": "pt-PT"})[0] == [("O autocarro está atrasado.", "The bus is late.")]
    pairs, passed = read(CASES / "zh.tmx", ("zh", "en"), columns={"zh": "zh-Hant"})  # as the error for this code advises
    assert pairs == [("他讀一本書。", "He reads a book.")]
    pairs, passed = read(CASES / "zh.tmx", ("zh", "en"), columns={"zh": "zh-TW", "en": "en"})
    assert pairs == [("他讀一本書。", "He reads a book.")] and passed == {"units without a text in zh-TW or in en": 2}


def test_a_text_in_another_script_is_read_where_there_is_no_usual_one_and_counted(tmp_path):
    path = memory(tmp_path / "m.tmx", {"en": "one", "sr-Latn": "jedan"}, {"en": "two", "sr": "два"}, {"en": "three", "hr": "tri"})
    pairs, passed = read(path, ("sr", "en"))
    assert pairs == [("jedan", "one"), ("два", "two")]
    assert passed == {"sr-Latn is read for sr": 1, "units without a text in sr or in en": 1}
    with pytest.raises(InputError, match=r"no text in sr-ME; .* if sr is meant, set `columns: \{sr-ME: sr\}`"):
        read(memory(path, {"en": "two", "sr": "два"}), ("sr-ME", "en"))
    assert read(path, ("sr-ME", "en"), columns={"sr-ME": "sr"})[0] == [("два", "two")]  # what the error advises


def test_languages_that_never_meet_and_two_texts_of_one(tmp_path):
    path = memory(tmp_path / "m.tmx", {"de": "eins", "fr": "un"}, {"en": "two", "fr": "deux"})
    with pytest.raises(InputError, match=r"no unit has text in both de and en; texts by language: fr \(2\), de \(1\), en \(1\)"):
        read(path, ("de", "en"))
    path.write_text(path.read_text().replace('xml:lang="fr"', 'xml:lang="de"'))
    pairs, passed = read(path, ("de", "en"))
    assert pairs == [("deux", "two")] and passed["a second text in de"] == 1
    assert read(memory(path, {"nb": "en", "no": "een"}), ("nb", "no"))[0] == [("en", "een")]  # each side has its own
    with pytest.raises(InputError, match="has no text that is read"):
        read(memory(path, {"de": " "}), ("de", "en"))


@pytest.mark.parametrize("suffix, pack", [(".gz", gzip.compress), (".xz", lzma.compress), (".zst", zstandard.compress)])
def test_packed_memories_are_read(tmp_path, suffix, pack):
    plain = memory(tmp_path / "m.tmx", *({"de-AT": a, "en_GB": b} for a, b in zip(GERMAN, ENGLISH, strict=True)))
    (tmp_path / f"M.TMX{suffix}").write_bytes(pack(plain.read_bytes()))
    assert read(tmp_path / f"M.TMX{suffix}", ("de", "en"))[0] == read(plain, ("de", "en"))[0] == list(zip(GERMAN, ENGLISH, strict=True))
    (tmp_path / f"cut.tmx{suffix}").write_bytes(pack(plain.read_bytes())[:-20])
    with pytest.raises(InputError, match=rf"cut\.tmx\{suffix}"):
        read(tmp_path / f"cut.tmx{suffix}", ("de", "en"))


# ---------------------------------------------------------------------------------------------
# XLIFF

XLIFF = """<?xml version="1.0"?>
<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">
<file original="a/first.txt" source-language="en-US" target-language="de-DE" datatype="plaintext"><body>
<trans-unit id="1"><source>Open <g id="1">the</g> file<x id="2"/>.</source><target>Öffnen Sie <bpt id="3">&lt;b&gt;</bpt>die Datei.</target>
<alt-trans><source>Open it.</source><target>Öffne es.</target></alt-trans></trans-unit>
<trans-unit id="2"><source>Save</source><target state="needs-translation">Save</target></trans-unit>
<group><trans-unit id="3"><source>Close</source></trans-unit></group>
</body></file>
<file original="b.txt" source-language="en-US" target-language="de-DE" datatype="plaintext"><body>
<trans-unit id="1"><source>One. Two.</source><seg-source><mrk mtype="seg" mid="1">One.</mrk> <mrk mtype="seg" mid="2">Two.</mrk></seg-source>
<target><mrk mtype="seg" mid="1">Eins.</mrk> <mrk mtype="seg" mid="2">Zwei.</mrk></target></trans-unit>
</body></file></xliff>
"""
XLIFF_2 = """<xliff version="2.1" srcLang="en" trgLang="fr" xmlns="urn:oasis:names:tc:xliff:document:2.0">
<file id="f1"><unit id="u1"><mtc:matches xmlns:mtc="m"><mtc:match><source>No</source><target>Non</target></mtc:match></mtc:matches>
<segment><source>Open <pc id="1">the file</pc>.</source><target>Ouvrez le fichier.</target></segment><ignorable><source> </source></ignorable>
<segment state="initial"><source>Save</source><target>Save</target></segment></unit></file></xliff>
"""


@pytest.mark.parametrize("name", ["x.xlf", "x.xliff", "x.sdlxliff", "x.xml"])
def test_xliff_1_is_read_with_its_files_as_documents(tmp_path, name):
    (tmp_path / name).write_text(XLIFF, encoding="utf-8")
    passed: Counter[str] = Counter()
    pairs = list(read_pairs(Source(file=str(tmp_path / name)), ("de", "en"), passed=passed))
    first = ("a/first.txt", "Öffnen Sie die Datei.", "Open the file.")
    assert [pair[:3] for pair in pairs] == [first, ("b.txt", "Eins.", "One."), ("b.txt", "Zwei.", "Two.")]
    assert passed == {"units that are not translated": 2}


def test_xliff_2_is_read(tmp_path):
    (tmp_path / "x.xlf").write_text(XLIFF_2)
    pairs, passed = read(tmp_path / "x.xlf", ("en", "fr"))
    assert pairs == [("Open the file.", "Ouvrez le fichier.")] and passed == {"units that are not translated": 1}
    with pytest.raises(InputError, match=r"no text in de; texts by language: en \(1\), fr \(1\)"):
        read(tmp_path / "x.xlf", ("en", "de"))


@pytest.mark.parametrize(
    "between, read_as",
    [
        *((f"<ph x='1'>{markup}</ph>", " ") for markup in ("&lt;br/&gt;", "&lt;BR /&gt;", "\\n", "&#10;", "&lt;w:br/&gt;")),
        *(
            (f"<{tag} id='1' {kind}/>", " ")
            for tag, kind in (("x", "ctype='lb'"), ("ph", "type='fmt' subType='xlf:lb'"), ("ph", "type='lb'"))
        ),
        *((f"<ph x='1'>{markup}</ph>", "") for markup in ("&lt;b&gt;", "%s", "&lt;brand/&gt;", "")),
        ("<x id='1' ctype='x-bold'/>", ""),
    ],
)
def test_a_line_break_inside_a_segment_is_a_blank(tmp_path, between, read_as):
    path = memory(tmp_path / "m.tmx", {"en": f"One.{between}Two.", "de": f"Eins.{between} Zwei."})
    assert read(path, ("en", "de"))[0] == [(f"One.{read_as}Two.", "Eins. Zwei.")]


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_file_without_a_language_has_not_that_of_the_file_before(tmp_path, order):
    text = "<body><trans-unit><source>One</source><target>{}</target></trans-unit></body></file>"
    files = ['<file source-language="en" target-language="fr">' + text.format("Un"), '<file source-language="en">' + text.format("Eins")]
    (tmp_path / "x.xlf").write_text(f'<xliff version="1.2">{"".join(files[at] for at in order)}</xliff>')
    passed: Counter[str] = Counter()
    pairs = [pair[1:3] for pair in read_pairs(Source(file=str(tmp_path / "x.xlf")), ("en", "fr"), passed=passed)]
    assert pairs == [("One", "Un")] and passed == {"units without a text in en or in fr": 1}


def test_sides_of_an_xliff_that_names_no_language(tmp_path):
    (tmp_path / "x.xlf").write_text(XLIFF.replace(' target-language="de-DE"', ""))
    with pytest.raises(InputError, match=r"no text in de; texts by language: en-US \(3\), one that is not named \(3\)"):
        read(tmp_path / "x.xlf", ("de", "en"))
    for columns in ({"de": "target", "en": "source"}, {"de": "target"}):
        assert read(tmp_path / "x.xlf", ("de", "en"), columns=columns)[0][1] == ("Eins.", "One.")
    (tmp_path / "x.xlf").write_text(
        XLIFF_2.replace("<target>Ouvrez le fichier.</target>", "").replace("initial", "x").replace(">Save</target>", "/>")
    )
    with pytest.raises(InputError, match=r"has no text that is read \(units that are not translated: 2\)"):
        read(tmp_path / "x.xlf", ("en", "fr"))


# ---------------------------------------------------------------------------------------------
# WMT


def test_wmts_xml_is_read_with_reference_a_or_one_by_name():
    path = CASES / "wmt21.xml"
    pairs, passed = read(path, ("de", "en"))
    assert pairs == [("Das ist ein Haus.", "This is a house."), ("Ich gehe nach Hause.", "I go home.")]
    assert passed == {"segments of systems, which are no references": 2, "reference B passed over, since A is read": 2}
    assert [english for _, english in read(path, ("de", "en"), reference="B")[0]] == ["That is a house.", "I am going home."]
    assert read(path, ("en", "de"))[0] == [pair[::-1] for pair in pairs]
    assert {pair.document for pair in read_pairs(Source(file=str(path)), ("de", "en"))} == {"d1"}
    with pytest.raises(InputError, match=r"wmt21\.xml: has no reference 'C'; it has A, B: name one of them as `reference`"):
        read(path, ("de", "en"), reference="C")


def test_what_systems_wrote_is_no_reference(tmp_path):
    text = (CASES / "wmt21.xml").read_text()
    (tmp_path / "x.xml").write_text(text.replace("<ref", "<other").replace("</ref", "</other"))
    with pytest.raises(InputError, match=r"x\.xml: has no reference for de and en; outputs of systems are none"):
        read(tmp_path / "x.xml", ("de", "en"))
    (tmp_path / "x.xml").write_text(text.replace('<seg id="2">I go home.</seg>', ""))
    pairs, passed = read(tmp_path / "x.xml", ("de", "en"))
    assert len(pairs) == 1 and passed["units without a text in de or in en"] == 1
    (tmp_path / "x.xml").write_text(text.replace('id="2"', 'id="1"'))  # numbers that stand twice
    assert [english for _, english in read(tmp_path / "x.xml", ("de", "en"))[0]] == ["This is a house.", "I go home."]
    one = text[text.index("<doc") : text.index("</dataset>")]
    other = one.replace("d1", "d2").replace('"A"', '"C"')
    (tmp_path / "x.xml").write_text(f"<dataset>{one}{other}</dataset>")
    pairs, passed = read(tmp_path / "x.xml", ("de", "en"))
    assert len(pairs) == 4 and passed["reference A is read"] == passed["reference B is read"] == 2


def test_files_of_one_side_and_of_other_kinds_say_what_they_are(tmp_path):
    (tmp_path / "x.xml").write_text("<mteval><srcset><doc><seg id='1'>one</seg></doc></srcset></mteval>")
    for name in ("x.xml", "x.sgm", "train.tags.de-en.de"):
        with pytest.raises(InputError, match=r"holds one language.*under `files`"):
            read(tmp_path / name, ("de", "en"))
    (tmp_path / "x.xml").write_text("<TEI><text/></TEI>")
    with pytest.raises(InputError, match=r"x\.xml: is XML of another kind \(<TEI>\); TMX"):
        read(tmp_path / "x.xml", ("de", "en"))
    for name in ("no.tmx", "wmt21.xml"):
        with pytest.raises(InputError, match=rf"{name}: holds .* in one file; name it as `file`, not under `files`"):
            list(read_pairs(Source(files={"de": str(CASES / name), "en": str(CASES / name)}), ("de", "en")))
    table = tmp_path / "x.tsv"
    table.write_bytes((CASES / "iso3.tmx").read_bytes())
    with pytest.raises(InputError, match=r"1 column.*; the file is XML, of which a corpus reads TMX \(\.tmx\)"):
        read(table, ("de", "en"), columns={"de": 1, "en": 2})


# ---------------------------------------------------------------------------------------------
# a whole corpus


def test_a_corpus_of_such_files_says_what_it_passed_over(tmp_path):
    german, english = manual_pairs(200)
    units = [{"de-DE": escape(a), "de-AT": "Grüezi", "en": escape(b)} for a, b in zip(german, english, strict=True)]
    train_file = memory(tmp_path / "train.tmx", *units, {"en": "alone"})
    dev = tmp_path / "dev.xlf"
    bodies = (
        f"<trans-unit><source>{escape(a)}</source><target>{escape(b)}</target></trans-unit>"
        for a, b in zip(german[:9], english[:9], strict=True)
    )
    dev.write_text(
        '<xliff version="1.2"><file original="x" source-language="de" target-language="en"><body>'
        f"{''.join(bodies)}<trans-unit><source>Nur hier</source></trans-unit></body></file></xliff>",
        encoding="utf-8",
    )
    tests = {"wmt": Source(file=str(CASES / "wmt21.xml"), reference="B"), "blocks": Source(held_out=20)}
    settings = Corpus(("de", "en"), Source(file=str(train_file)), Source(file=str(dev)), tests)
    parts = ("dev", *tests)
    for name in parts:
        held_out(tmp_path / f"{name}.de", tmp_path / f"{name}.en", name=name, settings=settings)
    sides = (tuple(tmp_path / f"{name}.{code}" for name in parts) for code in ("de", "en"))
    train(*sides, tmp_path / "train.de", tmp_path / "train.en", tmp_path / "corpus.json", settings=settings)
    report = read_json(tmp_path / "corpus.json")
    assert report["read"] == 200 == report["kept"] + sum(report["removed"].values())
    assert report["removed"]["held-out document"] == 40 and report["held_out"]["wmt"] == 2
    assert report["passed_over"] == {
        "train": {"de-AT passed over, since de-DE is read for de": 200, "units without a text in de or in en": 1},
        "dev": {"units that are not translated": 1},
        "wmt": {"segments of systems, which are no references": 2, "reference A passed over, since B is read": 2},
    }
    assert (tmp_path / "wmt.en").read_text() == "That is a house.\nI am going home.\n"
