"""What preflight finds in data and text."""

from dataclasses import replace
from pathlib import Path

from configurations import changed, classified, planned
from looks import found, moses
from tiny_models import manual_pairs

from workflow_scripts.run import config, labelled_findings, model_findings, text_findings
from workflow_scripts.tasks.plan import Plans
from workflow_scripts.text.parallel import Pair, Source

ROOT = Path(__file__).parents[2]


def test_text_for_retrieval_whose_sides_are_swapped_is_found(folder):
    for files, wrong in ((moses(folder, "de", "en"), False), (moses(folder, "en", "de"), True)):
        raw = changed("run/experiments", ["pairs"])
        raw["aligned"] = {"pairs": {"test": {"own": {"languages": ["de", "en"], **files}}}}
        raw["experiments"]["pairs"] = {"task": "retrieval", "corpus": "pairs", "models": {"bible": {"backbone": "bible"}}}
        line = found(raw, "aligned.pairs.test.own")
        assert line.startswith("WRONG" if wrong else "ok ") and ("exchange the columns or files of de and en" in line) == wrong


def looks_at(path: Path, languages: tuple[str, str] = ("de", "en"), **settings) -> list[str]:
    """What is said of a file as the demo's dev set, in these languages."""
    checked = config.load(changed("corpora/help/dev", {"file": str(path), **settings}))
    checked.corpora["help"] = replace(checked.corpora["help"], languages=languages)
    return [f"{each.verdict}: {each.said}" for each in text_findings.corpora(Plans(checked)) if each.about == "corpora.help.dev"]


def test_files_for_another_reader_are_noted(tmp_path):
    def notes(content):
        (tmp_path / "dev.tsv").write_bytes(content.encode())
        return looks_at(tmp_path / "dev.tsv", columns={"de": 1, "en": 2})

    _, quoted = notes('"Eine Zeile"\t"A line"\n' * 20)
    assert quoted.startswith("note") and "in quotation marks, which are read as text; set `quoted: true`" in quoted
    assert any("its lines end in \\r alone" in note for note in notes("Eine Zeile\tA line\r" * 20))
    assert any("has 2 line(s); if these should be more" in note for note in notes("Eine Zeile\tA line\n" * 2))
    _, header, tags = notes("German\tEN\n" + "<p>Eine <B class='x'>Zeile\t1 < 2 <s> a > b\n" * 20)
    assert "line 1 looks like a header, 'German' and 'EN', and is read as a pair; set `header: true`, or delete it" in header
    assert '48% of the sentences have HTML tags, as in "<p>Eine' in tags
    entities = notes("Das ist&apos;s hier\tIt &apos;s here\n" * 20)
    assert any("100% of the sentences have HTML entities, as in 'Das ist&apos;s hier'; set `unescape: true`" in note for note in entities)


def test_a_tab_inside_a_text_of_a_table_is_noted(tmp_path):
    lines = ["Eine Zeile\tA line\n"] * 20
    for line, wanted in (("Eine\tZeile\tA line\n", ["note: line 12 has 3 columns, most lines 2"]), ("\n", [])):
        (tmp_path / "dev.tsv").write_text("".join([*lines[:11], line, *lines[:9]]))
        said = looks_at(tmp_path / "dev.tsv", columns={"de": 1, "en": 2})
        assert [note.partition(";")[0] for note in said if note.startswith("note")] == wanted


def test_sides_out_of_step_are_noted(folder):
    german, english = ((folder / code).read_text().splitlines() for code in ("de", "en"))
    pairs = [Pair("", a, b, number) for number, (a, b) in enumerate(zip(german, english, strict=True), 1)]
    shifted = [Pair("", a, b, number) for number, (a, b) in enumerate(zip(german, [*english[1:], english[0]], strict=True), 1)]
    assert len(pairs) >= 200 and text_findings.out_of_step(pairs) is None
    assert abs(text_findings.out_of_step(shifted)) == 1
    (note,) = text_findings._odd("corpora.x", shifted, ("de", "en"), Source())
    assert note.verdict == "note" and "the sides look out of step" in note.said


def test_pairs_without_text_on_both_sides_are_counted(folder, tmp_path):
    (tmp_path / "some.en").write_text("\n".join(["", "", *(folder / "en").read_text().splitlines()[2:]]) + "\n")
    raw = changed("corpora/help/dev", {"files": {"de": str(folder / "de"), "en": str(tmp_path / "some.en")}})
    assert found(raw, "corpora.help.dev").endswith("300 pairs, of which 2 without text on both sides are left out")


def test_text_in_a_third_language_is_noted():
    raw = changed("corpora/help/languages", ["nl", "en"])
    raw["corpora"]["help"]["train"]["columns"] = {"document": 1, "en": 3, "nl": 4}
    raw["experiments"]["help-de-en"]["source"] = "nl"
    raw["backbones"]["bible"]["small"]["text"]["nl"] = "task"
    raw["lexicons"]["unsupervised"]["gold"] = {}
    read, *notes = [finding for finding in text_findings.corpora(planned(raw)) if finding.about == "corpora.help.train"]
    assert read.verdict == "ok" and [(note.verdict, note.said.partition(";")[0]) for note in notes] == [
        ("note", "the Dutch text reads as German")
    ]


def test_other_text_in_another_language_is_noted():
    raw = changed("backbones/bible/small/text/de", "resources/bible/en.txt.xz")
    found = model_findings.of_backbone(planned(raw).backbones["bible"])
    notes = [finding for finding in found if "reads as" in finding.said]
    assert [(note.verdict, note.about) for note in notes] == [("note", "backbones.bible.small.text.de")]
    assert notes[0].said.startswith("the German text reads as English")
    checked = config.load(classified())
    assert not [finding for finding in labelled_findings.labelled(Plans(checked)) if "reads as" in finding.said]
    checked.labelled["modules"].test["de"].language = "nl"
    noted = [finding.about for finding in labelled_findings.labelled(Plans(checked)) if "the Dutch text reads as German" in finding.said]
    assert noted == ["labelled.modules.test.de"]


def test_the_text_of_an_analysis_that_is_run_is_looked_at(folder):
    raw = changed("analyses", {"own": {"models": ["bible"], "text": {"de": str(folder / "de"), "en": str(folder / "blank")}}})
    assert not list(text_findings.analysed(planned(raw)))
    raw["run"]["analyses"] = ["own"]
    good, bad = map(str, text_findings.analysed(planned(raw)))
    assert good.startswith("ok ") and bad.startswith("WRONG") and "analyses.own.text.en" in bad and "blank: has no text" in bad
    raw["analyses"]["own"]["text"]["en"] = str(folder / "short.en")
    *_, sizes = map(str, text_findings.analysed(planned(raw)))
    assert sizes.startswith("WRONG") and "short.en has 299 lines; give translations line by line, or set `parallel: false`" in sizes
    # of a corpus that no experiment has, its test set alone
    raw["analyses"]["own"] = {"models": ["bible"], "corpus": "other"}
    raw["corpora"]["other"] = {"like": "help", "train": moses(folder, "de", "nowhere"), "test": {"web": moses(folder, "de", "blank")}}
    assert found(raw, "corpora.other.test.web").startswith("WRONG")
    assert not [one for one in text_findings.corpora(planned(raw)) if one.about == "corpora.other.train"]


def test_text_that_an_analysis_or_a_distance_reads_in_another_language_is_noted():
    files = {"de": "resources/bible/en.txt.xz", "en": "resources/bible/en.txt.xz"}
    raw = changed("analyses", {"own": {"models": ["bible"], "text": files, "stages": ["separability"]}})
    raw["run"]["analyses"] = ["own"]
    raw["experiments"]["help-de-en"]["representation"]["text"] = files
    plans = planned(raw)
    distance = text_findings.unaligned(plans.experiments["help-de-en"])
    for found_there, about in ((text_findings.analysed(plans), "analyses.own"), (distance, "experiments.help-de-en.representation")):
        (note,) = (each for each in found_there if each.verdict == "note")
        assert note.about == f"{about}.text.de" and note.said.startswith("the German text reads as English")


def test_a_header_of_text_for_retrieval_and_sides_that_are_one_language_are_noted(tmp_path):
    german, english = manual_pairs(150)
    rows = {"right": zip(german, english, strict=True), "wrong": zip(english, english[1:], strict=False)}
    for name, pairs in rows.items():
        (tmp_path / name).write_text("Source\tEnglish\n" + "".join(f"{a}\t{b}\n" for a, b in pairs))
    raw = changed("run/experiments", ["pairs"])
    raw["experiments"]["pairs"] = {"task": "retrieval", "corpus": "pairs", "models": {"bible": {"backbone": "bible"}}}
    said = {}
    for name, header in (("right", False), ("right", True), ("wrong", True)):
        test = {"file": str(tmp_path / name), "columns": {"de": 1, "en": 2}, "languages": ["de", "en"], "header": header}
        raw["aligned"] = {"pairs": {"test": {"own": test}}}
        said[name, header] = [each.said for each in text_findings.retrieval_text(planned(raw)) if each.verdict == "note"]
    (note,) = said["right", False]
    assert note == "line 1 looks like a header, 'Source' and 'English', and is read as a pair; set `header: true`, or delete it"
    assert said["right", True] == [] and said["wrong", True][0].startswith("the German text reads as English")


def test_a_model_that_was_cut_down_to_other_text_is_noted(folder):
    raw = changed("backbones/bible", {"kind": "hub", "model": str(folder / "model"), "trim": True})
    text = {code: f"resources/bible/{code}.txt.xz" for code in ("de", "en")}
    for read, notes in (({"text": text}, 1), ({"corpus": "help"}, 0)):
        raw["analyses"] = {"inside": {"models": ["bible"], "stages": ["separability"], **read}}
        raw["run"] |= {"analyses": ["inside"]}
        messages = [str(one) for one in text_findings.analysed(planned(raw)) if one.verdict == "note"]
        assert len(messages) == notes and all(
            "bible (trim: true) has the pieces of the experiments' text alone" in line for line in messages
        )


def test_data_that_are_neither_there_nor_reachable_are_found(tmp_path, monkeypatch):
    monkeypatch.setenv("CROSSGAP_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("CROSSGAP_OFFLINE", "1")
    monkeypatch.chdir(tmp_path)
    block = {"url": "https://example.org/de-en.tsv", "languages": ["de", "en"]}
    raw = changed("corpora/help/train", {"data": "web"}) | {"data": {"web": block, "unused": {**block, "sha256": "1" * 64}}}
    assert "`sha256` is missing" in found(raw, "data.web")
    sides = {code: f"https://example.org/{code}.txt" for code in ("de", "en")}
    half = raw | {"data": {"web": {**block, "url": sides, "sha256": {"de": "0" * 64}}}}
    assert "`sha256` is missing" in found(half, "data.web")
    block["sha256"] = "0" * 64
    place = tmp_path / "cache/sha256" / block["sha256"] / "de-en.tsv"
    line = found(raw, "data.web")
    assert line.startswith("WRONG") and "cannot be had" in line and str(place) in line
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.delenv("CROSSGAP_OFFLINE")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    hub = changed("corpora/help/train", {"data": "hub", "columns": {"de": "translation.de", "en": "translation.en"}})
    hub["data"] = {"hub": {"huggingface": {"dataset": "some/body", "config": "de-en", "split": "train"}}}
    assert "run `hf download some/body --repo-type dataset --revision refs/convert/parquet --include " in found(hub, "data.hub")
    said = [str(finding) for part in (text_findings.data, text_findings.corpora) for finding in part(planned(raw))]
    assert len(said) == 1  # nothing of the data that no corpus reads, and of the text that is not there yet
    place.parent.mkdir(parents=True)
    place.touch()
    assert found(raw, "data.web").startswith("note")
    Path("results/data").mkdir(parents=True)
    Path("results/data/web.tsv.zst").touch()
    assert found(raw, "data.web") == "ok     data.web: results/data/web.tsv.zst"


def test_debians_packages_are_named(tmp_path, monkeypatch):
    monkeypatch.setenv("CROSSGAP_CACHE", str(tmp_path))
    index = tmp_path / "debian/bookworm/Packages.xz"
    index.parent.mkdir(parents=True)
    index.touch()
    raw = changed("data", {"manual": {"debian": {"packages": {"en": "libreoffice-help-en-us", "de": "libreoffice-help-de"}}}})
    raw["corpora"]["help"]["train"] = {"data": "manual"}
    assert found(raw, "data.manual").endswith("is to be made of Debian's packages libreoffice-help-en-us, libreoffice-help-de")


CASES = Path("tests/data/cases")


def test_what_files_hold_besides_is_noted():
    assert looks_at(CASES / "iso3.tmx") == [f"ok: {CASES}/iso3.tmx, 3 pairs"]
    assert looks_at(CASES / "ctrl.tmx")[1:] == ["note: control characters, which XML does not allow, left out: 1"]
    assert looks_at(CASES / "wmt21.xml", reference="B")[1:] == [
        "note: segments of systems, which are no references: 2",
        "note: reference A passed over, since B is read: 2",
    ]
    ok, note = looks_at(CASES / "zh.tmx", ("zh", "en"))
    assert ok.endswith("zh.tmx, 3 pairs") and note == "note: zh-Hant passed over, since zh-Hans is read for zh: 1"


def test_files_that_lack_a_language_are_wrong():
    for path, settings, said in (
        (CASES / "zh.tmx", {}, "has no text in de; texts by language: en (3), zh-Hant (1)"),
        (CASES / "wmt21.xml", {"reference": "C"}, "has no reference 'C'; it has A, B"),
    ):
        (wrong,) = looks_at(path, **settings)
        assert wrong.startswith(f"WRONG: {path}: {said}")
