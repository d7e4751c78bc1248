"""What preflight finds in text, word lists and labels."""

from dataclasses import replace
from pathlib import Path

import pytest
from looks import found, moses
from test_config import changed, classified

from workflow_scripts.run import config, model_findings, text_findings
from workflow_scripts.stage import InputError
from workflow_scripts.text.examples import Example, LabelledSource
from workflow_scripts.text.labelled import Labelled
from workflow_scripts.text.parallel import Pair

ROOT = Path(__file__).parents[2]


def test_what_a_lexicon_does_not_read_is_noted():
    raw = changed("lexicons/unsupervised/dictionary", {"de-en": "resources/wiktionary/de-en.tsv.xz"})
    raw["lexicons"]["unsupervised"]["vectors"] = {"fr": "fr.vec"}
    about = {
        "lexicons.unsupervised.dictionary": "semi_supervised, supervised or dictionary",
        "lexicons.unsupervised.vectors": "fr: not read",
    }
    notes = {finding.about: str(finding) for finding in text_findings.lexicons(config.load(raw)) if finding.verdict == "note"}
    assert notes.keys() == about.keys() and all(said in notes[key] for key, said in about.items())
    raw["lexicons"]["unsupervised"]["mapping"] = {"mode": "dictionary"}
    notes = {finding.about: finding.said for finding in text_findings.lexicons(config.load(raw)) if finding.verdict == "note"}
    assert notes == {"lexicons.unsupervised.vectors": "are not read with mapping.mode dictionary"}


def test_a_label_of_which_there_is_no_example_is_found(tmp_path):
    (tmp_path / "x.tsv").write_text("no\ta sentence\n" * 50)
    source = LabelledSource(str(tmp_path / "x.tsv"), {"label": 1, "text": 2})
    block = Labelled(language="en", labels=["no", "yes"], train=source, dev=LabelledSource(held_out=0.1), test={"own": source})
    with pytest.raises(InputError, match="no example has the label 'yes', so no model can learn it; take it out of `labels`"):
        text_findings._labelled_text(source, block)
    (tmp_path / "x.tsv").write_text("0\ta query\ta document\n" * 50)
    source = LabelledSource(str(tmp_path / "x.tsv"), {"label": 1, "text": 2, "pair": 3})
    with pytest.raises(InputError, match="no example has the label '1'"):
        text_findings._labelled_text(source, replace(block, unit="query", labels=["0", "1"], train=source))


def test_a_header_that_is_an_example_is_told(tmp_path):
    for first, notes in (("no\ta sentence", 1), ("label\ttext", 0)):
        (tmp_path / "x.tsv").write_text(f"{first}\n" + "yes\tanother\n" * 50)
        source = LabelledSource(str(tmp_path / "x.tsv"), {"label": 1, "text": 2}, header=True)
        block = Labelled(language="en", labels=["no", "yes"], train=source, dev=LabelledSource(held_out=0.1), test={"own": source})
        said = [str(finding) for finding in text_findings._no_header("labelled.x.train", source, block)]
        assert len(said) == notes and all("line 1 has the label 'no', so it looks like an example" in line for line in said)
    assert not list(text_findings._no_header("labelled.x.train", replace(source, header=False), block))


def test_what_dev_and_test_sets_have_in_common_with_training_is_told(folder, tmp_path):
    raw = changed("corpora/help/test", {"own": moses(folder, "de", "en")})
    raw["corpora"]["help"]["train"] = moses(folder, "de", "en") | {"unescape": True}  # not the same settings, and the same text
    said = [str(finding) for finding in text_findings.corpora(config.load(raw)) if finding.about == "corpora.help.test.own"]
    assert len(said) == 2 and "of its first 300 examples 300 are among the first 300 of `train`" in said[1]
    copy = tmp_path / "copy.tsv"
    copy.write_text("no\ta sentence\nyes\tanother\n")
    text = LabelledSource(str(copy), {"label": 1, "text": 2})
    block = Labelled(language="en", labels=["no", "yes"], train=text, dev=LabelledSource(held_out=0.1), test={"own": text})
    (note,) = text_findings._learnt("labelled.x.test.own", [Example("no", "a sentence", ""), Example("yes", "new", "")], block)
    assert note.verdict == "note" and "of its first 2 examples 1 are among" in note.said


def test_the_first_line_of_texts_to_write_and_what_holds_nothing_out_are_told(tmp_path):
    (tmp_path / "x.tsv").write_text("sentence\tquestion\n" + "It rains.\tDoes it?\n" * 40)
    source = LabelledSource(str(tmp_path / "x.tsv"), {"text": 1, "target": 2})
    dev, test = (LabelledSource(held_out=share) for share in (0.0001, 0.4))
    block = Labelled(language="en", unit="target", train=source, dev=dev, test={"own": test})
    examples = list(text_findings._examples(source, block))
    (note,) = text_findings._taken_for_an_example("labelled.x.train", examples)
    assert "line 1 looks like a header, 'sentence' and 'question'" in note.said
    assert not list(text_findings._taken_for_an_example("labelled.x.train", examples[1:]))
    (wrong,) = (one for one in text_findings._nothing_held_out("labelled.x", source, block) if one.about == "labelled.x.dev")
    assert wrong.verdict == "WRONG" and "held_out 0.0001 takes none of the" in wrong.said


def test_a_dictionary_for_labelled_text_that_is_turned_is_found(tmp_path):
    (tmp_path / "x.tsv").write_text("no\tthe house and the tree\n" * 20)
    source = LabelledSource(str(tmp_path / "x.tsv"), {"label": 1, "text": 2})
    block = Labelled(language="en", labels=["no", "yes"], train=source, dev=LabelledSource(held_out=0.1), test={"own": source})
    (tmp_path / "words").write_text("haus house\nbaum tree\nund and\n")
    with pytest.raises(InputError, match="0 of 3 pairs have their English word in the text, and 3 when they are read the other way round"):
        text_findings._given_word_list(str(tmp_path / "words"), "en-de", block)
    assert text_findings._given_word_list(str(tmp_path / "words"), "de-en", block).endswith("3 pairs of words")


def test_text_for_retrieval_whose_sides_are_swapped_is_found(folder):
    for files, wrong in ((moses(folder, "de", "en"), False), (moses(folder, "en", "de"), True)):
        raw = changed("run/experiments", ["pairs"])
        raw["aligned"] = {"pairs": {"test": {"own": {"languages": ["de", "en"], **files}}}}
        raw["experiments"]["pairs"] = {"task": "retrieval", "corpus": "pairs", "models": {"bible": {"backbone": "bible"}}}
        line = found(raw, "aligned.pairs.test.own")
        assert line.startswith("WRONG" if wrong else "ok ") and ("exchange the columns or files of de and en" in line) == wrong


def test_files_for_another_reader_are_noted(tmp_path):
    raw = changed("corpora/help/dev", {"file": str(tmp_path / "dev.tsv"), "columns": {"de": 1, "en": 2}})
    (tmp_path / "dev.tsv").write_text('"Eine Zeile"\t"A line"\n' * 20)
    notes = [str(finding) for finding in text_findings.corpora(config.load(raw)) if finding.about == "corpora.help.dev"]
    assert len(notes) == 2 and notes[1].startswith("note") and "in quotation marks, which are read as text" in notes[1]
    (tmp_path / "dev.tsv").write_bytes(b"Eine Zeile\tA line\r" * 20)
    notes = [str(finding) for finding in text_findings.corpora(config.load(raw)) if finding.about == "corpora.help.dev"]
    assert any("has 1 line(s); if these should be more" in note for note in notes)
    (tmp_path / "dev.tsv").write_text("German\tEN\n" + "<p>Eine <B class='x'>Zeile\t1 < 2 <s> a > b\n" * 20)
    notes = [str(finding) for finding in text_findings.corpora(config.load(raw)) if finding.about == "corpora.help.dev"]
    assert len(notes) == 3 and "line 1 looks like a header, 'German' and 'EN', and is read as a pair; set `header: true`" in notes[1]
    assert '48% of the sentences have HTML tags, as in "<p>Eine' in notes[2]
    (tmp_path / "dev.tsv").write_text("Das ist&apos;s hier\tIt &apos;s here\n" * 20)
    notes = [str(finding) for finding in text_findings.corpora(config.load(raw)) if finding.about == "corpora.help.dev"]
    assert any("100% of the sentences have HTML entities, as in 'Das ist&apos;s hier'; set `unescape: true`" in note for note in notes)


def test_quotation_marks_of_a_csv_writer_are_noted():
    doubled, plain = Example("a", '"He said ""no"" ."', "It rains."), Example("a", '"Yes"', '"No"')
    (note,) = text_findings._quoted("labelled.x.train", [doubled, plain, doubled])
    assert str(note).startswith('note   labelled.x.train: 2 texts have their quotation marks doubled, as \'"He said ""no"" ."\'; set')
    assert not [*text_findings._quoted("labelled.x.train", [plain] * 9)]


def test_a_tab_inside_a_text_of_a_table_is_noted(tmp_path):
    dev = {"file": str(tmp_path / "dev.tsv"), "columns": {"de": 1, "en": 2}}
    lines = ["Eine Zeile\tA line\n"] * 20
    for line, wanted in (("Eine\tZeile\tA line\n", ["line 12 has 3 columns, most lines 2"]), ("\n", [])):
        (tmp_path / "dev.tsv").write_text("".join([*lines[:11], line, *lines[:9]]))
        found = text_findings.corpora(config.load(changed("corpora/help/dev", dev)))
        notes = [finding.said.partition(";")[0] for finding in found if finding.about == "corpora.help.dev" and finding.verdict == "note"]
        assert notes == wanted


def test_sides_out_of_step_are_noted(folder):
    german, english = ((folder / code).read_text().splitlines() for code in ("de", "en"))
    pairs = [Pair("", a, b, number) for number, (a, b) in enumerate(zip(german, english, strict=True), 1)]
    shifted = [Pair("", a, b, number) for number, (a, b) in enumerate(zip(german, [*english[1:], english[0]], strict=True), 1)]
    assert len(pairs) >= 200 and text_findings.out_of_step(pairs) is None
    assert abs(text_findings.out_of_step(shifted)) == 1
    (note,) = text_findings._odd("corpora.x", shifted, ("de", "en"))
    assert note.verdict == "note" and "the sides look out of step" in note.said


def test_pairs_without_text_on_both_sides_are_counted(folder, tmp_path):
    (tmp_path / "some.en").write_text("\n".join(["", "", *(folder / "en").read_text().splitlines()[2:]]) + "\n")
    raw = changed("corpora/help/dev", {"files": {"de": str(folder / "de"), "en": str(tmp_path / "some.en")}})
    assert found(raw, "corpora.help.dev").endswith("300 pairs, of which 2 without text on both sides are left out")


def test_text_in_a_third_language_is_told():
    raw = changed("corpora/help/languages", ["nl", "en"])
    raw["corpora"]["help"]["train"]["columns"] = {"document": 1, "en": 3, "nl": 4}
    raw["experiments"]["help-de-en"]["source"] = "nl"
    raw["backbones"]["bible"]["small"]["text"]["nl"] = "task"
    raw["lexicons"]["unsupervised"]["gold"] = {}
    read, *notes = [finding for finding in text_findings.corpora(config.load(raw)) if finding.about == "corpora.help.train"]
    assert read.verdict == "ok" and [(note.verdict, note.said.partition(";")[0]) for note in notes] == [
        ("note", "the Dutch text reads as German")
    ]


def test_other_text_in_another_language_is_told():
    raw = changed("backbones/bible/small/text/de", "resources/bible/en.txt.xz")
    notes = [finding for finding in model_findings.backbones(config.load(raw)) if "reads as" in finding.said]
    assert [(note.verdict, note.about) for note in notes] == [("note", "backbones.bible.small.text.de")]
    assert notes[0].said.startswith("the German text reads as English")
    checked = config.load(classified())
    assert not [finding for finding in text_findings.labelled(checked) if "reads as" in finding.said]
    checked.labelled["modules"].test["de"].language = "nl"
    told = [finding.about for finding in text_findings.labelled(checked) if "the Dutch text reads as German" in finding.said]
    assert told == ["labelled.modules.test.de"]


def test_the_text_of_an_analysis_that_is_run_is_looked_at(folder):
    raw = changed("analyses", {"own": {"models": ["bible"], "text": {"de": str(folder / "de"), "en": str(folder / "blank")}}})
    assert not list(text_findings.analysed(config.load(raw)))
    raw["run"]["analyses"] = ["own"]
    good, bad = map(str, text_findings.analysed(config.load(raw)))
    assert good.startswith("ok ") and bad.startswith("WRONG") and "analyses.own.text.en" in bad and "blank: has no text" in bad
    raw["analyses"]["own"]["text"]["en"] = str(folder / "short.en")
    *_, sizes = map(str, text_findings.analysed(config.load(raw)))
    assert sizes.startswith("WRONG") and "short.en has 299 lines; give translations line by line, or set `parallel: false`" in sizes
    # of a corpus that no experiment has, its test set alone
    raw["analyses"]["own"] = {"models": ["bible"], "corpus": "other"}
    raw["corpora"]["other"] = {"like": "help", "train": moses(folder, "de", "nowhere"), "test": {"web": moses(folder, "de", "blank")}}
    assert found(raw, "corpora.other.test.web").startswith("WRONG")
    assert not [one for one in text_findings.corpora(config.load(raw)) if one.about == "corpora.other.train"]


def test_a_model_that_was_cut_down_to_other_text_is_noted(folder):
    raw = changed("backbones/bible", {"kind": "hub", "model": str(folder / "model"), "trim": True})
    text = {code: f"resources/bible/{code}.txt.xz" for code in ("de", "en")}
    for read, notes in (({"text": text}, 1), ({"corpus": "help"}, 0)):
        raw["analyses"] = {"inside": {"models": ["bible"], "stages": ["separability"], **read}}
        raw["run"] |= {"analyses": ["inside"]}
        told = [str(one) for one in text_findings.analysed(config.load(raw)) if one.verdict == "note"]
        assert len(told) == notes and all("bible (trim: true) has the pieces of the experiments' text alone" in line for line in told)


def test_a_language_whose_words_are_not_known_is_told():
    raw = changed("corpora/help/languages", ["my", "en"])
    raw["experiments"]["help-de-en"]["source"] = "my"
    raw["corpora"]["help"]["train"]["columns"] = {"document": 1, "en": 3, "my": 4}
    raw["backbones"]["bible"]["small"]["text"] = {"my": "task", "en": "task"}
    raw["lexicons"]["unsupervised"]["gold"] = {}
    (told,) = text_findings.clauses(config.load(raw))
    assert told.verdict == "note" and told.about == "corpora.help.languages" and "Burmese is written without spaces" in told.said
    assert not list(text_findings.clauses(config.load(changed("run/seeds", [1]))))


def test_nothing_of_a_recipe_is_missing_but_what_is_still_to_be_acquired(tmp_path, monkeypatch):
    from snakemake.common.configfile import load_configfile
    from snakemake.utils import update_config

    raw = {}
    for name in ("config.yaml", "config/inference.yaml"):
        update_config(raw, load_configfile(str(ROOT / name)))
    monkeypatch.chdir(tmp_path)
    checked = config.load(raw)
    assert not [str(finding) for part in (text_findings.labelled, text_findings.lexicons) for finding in part(checked)]


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
    assert line.startswith("WRONG") and "cannot be reached" in line and str(place) in line
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.delenv("CROSSGAP_OFFLINE")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    hub = changed("corpora/help/train", {"data": "hub", "columns": {"de": "translation.de", "en": "translation.en"}})
    hub["data"] = {"hub": {"huggingface": {"dataset": "some/body", "config": "de-en", "split": "train"}}}
    assert "run `hf download some/body --repo-type dataset --revision refs/convert/parquet --include " in found(hub, "data.hub")
    said = [str(finding) for part in (text_findings.data, text_findings.corpora) for finding in part(config.load(raw))]
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
