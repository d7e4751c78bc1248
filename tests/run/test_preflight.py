"""What is found before a run starts: each thing that may be wrong."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from test_config import DEFAULT, changed, classified
from test_partitions import CLUSTER
from tiny_models import manual_pairs, small_m2m100, small_model

from workflow_scripts.run import amounts, config, findings, model_findings, partitions, preflight, resources, text_findings
from workflow_scripts.stage import InputError
from workflow_scripts.text.examples import Example, LabelledSource
from workflow_scripts.text.labelled import Labelled
from workflow_scripts.text.parallel import Pair

ROOT = Path(__file__).parents[2]


def found(raw: dict, about: str, jobs: dict | None = None) -> str:
    """What is said about one thing."""
    checked = config.load(raw)
    part = about.removeprefix("node ").partition(".")[0].partition(" ")[0]
    look = {"experiments": "unaligned"}.get(part, part)
    if part == "memory":
        return next(str(finding) for finding in resources.memory(checked, jobs or {}) if finding.about == about)
    looks = getattr({"disk": resources, "backbones": model_findings}.get(look, text_findings), look)(checked)
    return next(str(finding) for finding in looks if finding.about == about)


def test_nothing_is_wrong_with_the_demo():
    lines = {finding.about: str(finding) for finding in preflight.look_at(config.load(DEFAULT), {}, {})}
    assert all(line.startswith("ok ") for line in lines.values()), lines
    assert {"corpora.help.train", "lexicons.unsupervised.gold", "backbones.bible.small.text.de", "memory of finetune", "disk"} <= set(lines)
    assert "35,922 pairs" in lines["corpora.help.train"]
    assert lines["run.experiments"] == "ok     run.experiments: help-de-en"
    assert "finetuning on help reads 5,000 pairs at most" in lines["training.pairs"]


def test_an_experiment_that_is_defined_but_not_run_is_told():
    raw = changed("experiments/mine", {"like": "help-de-en"})
    said = [str(finding) for finding in findings.experiments(config.load(raw))]
    assert said == ["note   run.experiments: mine is defined, but not run; run is help-de-en"]
    # config.yaml's own are there with every recipe
    raw["run"]["experiments"] = ["mine"]
    assert [str(finding) for finding in findings.experiments(config.load(raw))] == ["ok     run.experiments: mine"]


def test_an_experiment_that_asks_for_more_seeds_than_the_run_has_is_told():
    said = [str(finding) for finding in findings.few_seeds(config.load(changed("experiments/help-de-en/seeds", 3)))]
    assert said == ["note   experiments.help-de-en.seeds: 3, but run.seeds has 1; name more of them there"]
    assert not list(findings.few_seeds(config.load(changed("experiments/help-de-en/seeds", 1))))


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


@pytest.fixture(autouse=True)
def no_cluster(commands):
    """Slurm has partitions and accounts where a test says so, also on a cluster's login node."""
    commands("sinfo", "", 1)
    commands("sacctmgr", "", 1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Files that are wrong, and a few that are right."""
    folder = tmp_path_factory.mktemp("preflight")
    german, english = manual_pairs(300)
    for name, lines in (("de", german), ("en", english), ("short.en", english[:299]), ("blank", [""] * 300)):
        (folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    (folder / "empty").touch()
    (folder / "empty.en").touch()
    (folder / "latin1").write_bytes("Grüße aus Köln.\n".encode("latin-1") * 300)
    (folder / "seed.txt").write_text("haus house\nhaus\n")
    (folder / "turned.txt").write_text("the die\nand und\nfile datei\nopens öffnet\n")
    (folder / "de.vec").write_text("2 3\nhaus 1 2 3\nbaum 1 2\n")
    (folder / "model").mkdir()
    small_model(folder / "model")
    for name, content in (("no-model", None), ("bert", {"model_type": "bert"})):
        (folder / name).mkdir()
        if content:
            (folder / name / "config.json").write_text(json.dumps(content))
            (folder / name / "model.safetensors").write_text("x")
            (folder / name / "tokenizer.json").write_text("{}")
    return folder


def moses(folder, de, en):
    return {"files": {"de": str(folder / de), "en": str(folder / en)}}


@pytest.mark.parametrize(
    "path, value, about, said",
    [
        ("corpora/help/train", lambda f: moses(f, "de", "nowhere"), "corpora.help.train", "nowhere: no such file; check the path"),
        ("corpora/help/train", lambda f: moses(f, "de", "short.en"), "corpora.help.train", "short.en ends after line 299"),
        ("corpora/help/train", lambda f: moses(f, "en", "de"), "corpora.help.train", "exchange the columns or files of de and en"),
        ("corpora/help/train", lambda f: moses(f, "latin1", "en"), "corpora.help.train", "latin1, line 1: not UTF-8"),
        ("corpora/help/train", lambda f: moses(f, "empty", "empty.en"), "corpora.help.train", "no pair with text on both sides in 0 lines"),
        ("corpora/help/dev", lambda f: moses(f, "blank", "en"), "corpora.help.dev", "no pair with text on both sides in 300 lines"),
        ("corpora/help/test/web", lambda f: moses(f, "de", "blank"), "corpora.help.test.web", "no pair with text on both sides"),
        ("corpora/help/train/columns/en", lambda f: 9, "corpora.help.train", "line 1: 4 column(s), but `columns` asks for column 9"),
        ("lexicons/unsupervised/gold/de-en", lambda f: str(f / "seed.txt"), "lexicons.unsupervised.gold", "line 2: expected two words"),
        ("lexicons/unsupervised/gold/de-en", lambda f: str(f / "empty"), "lexicons.unsupervised.gold", "empty: is empty"),
        (
            "lexicons/unsupervised/gold/de-en",
            lambda f: str(f / "turned.txt"),
            "lexicons.unsupervised.gold",
            "the first word of a line has to be German, the second English",
        ),
        ("lexicons/unsupervised/vectors/de", lambda f: str(f / "de.vec"), "lexicons.unsupervised.vectors.de", "line 3: 'baum' needs 3"),
        (
            "lexicons/unsupervised/mapping",
            lambda f: {"engine": "vecmap", "vecmap": str(f)},
            "lexicons.unsupervised.mapping.vecmap",
            "git clone",
        ),
        (
            "experiments/help-de-en/representation",
            lambda f: {"text": {"de": str(f / "blank"), "en": str(f / "en")}},
            "experiments.help-de-en.representation.text.de",
            "blank: has no text",
        ),
        ("backbones/bible/small/text/de", lambda f: str(f / "nowhere"), "backbones.bible.small.text.de", "nowhere: no such file"),
        ("backbones/bible/small/text/de", lambda f: str(f / "de"), "backbones.bible.small.text.de", "has 300 lines, at least 1600"),
        ("backbones/bible", lambda f: {"kind": "hub", "model": str(f / "no-model")}, "backbones.bible.model", "no config.json is there"),
        ("backbones/bible", lambda f: {"kind": "hub", "model": str(f / "bert")}, "backbones.bible.model", "an mBART is needed"),
        (
            "backbones/bible",
            lambda f: {"kind": "hub", "model": str(f / "gone")},
            "backbones.bible.model",
            "neither a folder that is there nor",
        ),
        ("experiments/help-de-en/training/device", lambda f: "cuda", "memory of finetune", "device is cuda, but there is no GPU"),
        ("experiments/help-de-en/training/batch_tokens", lambda f: 10**7, "memory of pretext", "micro_batch_tokens to less than 10000000"),
        ("run/seeds", lambda f: list(range(1, 10**4)), "disk", "make room"),
    ],
)
def test_each_thing_that_is_wrong_is_found(folder, monkeypatch, path, value, about, said):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    raw = changed(path, value(folder))
    if ".train" not in about:  # quick to read
        raw["corpora"]["help"]["train"] = moses(folder, "de", "en")
    line = found(raw, about)
    assert line.startswith("WRONG") and said in line


def test_a_ready_made_backbone_that_will_not_be_taken_is_told_before_it_is_pretrained():
    assert found(DEFAULT, "backbones.bible.small.ready").startswith("ok ")
    line = found(changed("backbones/bible/small/ffn", 256), "backbones.bible.small.ready")
    assert line.startswith("note") and "was made with other settings, so the backbone is pretrained here" in line


def test_too_little_text_is_found_before_the_jobs_that_need_more(folder):
    def said(about: str) -> list[str]:
        return [str(finding) for finding in amounts.amounts(config.load(raw)) if finding.about == about]

    raw = changed("corpora/help/train", moses(folder, "de", "en"))  # 300 lines
    assert "held_out asks for 2000 running sentences" in said("corpora.help")[0]
    raw["corpora"]["help"] |= {"dev": moses(folder, "blank", "en"), "test": {"web": moses(folder, "en", "de")}}
    raw["backbones"]["bible"]["small"] |= {"text": {"de": "task", "en": "task"}, "ready": None}
    (line,) = said("backbones.bible.small.text.de")
    assert line.startswith("WRONG") and "has 300 lines, at least 1,600 are needed, because each language reads lines of its own" in line
    raw["lexicons"]["unsupervised"]["embeddings"] = {"min_count": 40}
    assert all("vectors need 300: give more text, or lower dimensions" in line for line in said("lexicons.unsupervised.embeddings"))
    raw["lexicons"]["unsupervised"]["embeddings"] = {"dimensions": 5, "negative": 2, "min_count": 3}
    german, english = said("lexicons.unsupervised.embeddings")
    assert german.startswith("note") and "words of de occur 3 times or more; mapping them without a dictionary needs 1,000" in german
    assert english.startswith("note")
    raw["lexicons"]["unsupervised"]["mapping"] = {"mode": "identical"}
    raw["backbones"]["bible"]["small"] |= {"dev_lines": 10}
    assert not list(amounts.amounts(config.load(raw)))


def test_long_text_without_a_sentence_that_could_be_held_out_is_found(tmp_path):
    """A full stop of its own, as Urdu has, ends a sentence, too."""
    lines = [f"this is the line of number {number} of them" for number in range(amounts.LONG)]
    for name, end in (("none.ur", ""), ("some.ur", "۔"), ("none.en", ""), ("some.en", ".")):
        (tmp_path / name).write_text("".join(f"{line}{end}\n" for line in lines))
    corpora = {"corpora/help/languages": ["ur", "en"], "corpora/help/test": {"web": {"held_out": 1000}}}
    for name, wrong in (("none", True), ("some", False)):
        raw = changed("experiments/help-de-en/source", "ur")
        raw["corpora"]["help"] |= {key.rpartition("/")[2]: value for key, value in corpora.items()}
        raw["corpora"]["help"]["train"] = {"files": {code: str(tmp_path / f"{name}.{code}") for code in ("ur", "en")}}
        raw["backbones"]["bible"]["small"]["text"] = {"ur": "task", "en": "task"}
        raw["lexicons"]["unsupervised"]["gold"] = {}
        said = [str(finding) for finding in amounts.amounts(config.load(raw))]
        assert (
            any(
                "there is none in the first 20,000 pairs; give dev and test files of their own (running sentences have at least" in one
                for one in said
            )
            == wrong
        )


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


def test_text_for_retrieval_whose_sides_are_swapped_is_found(folder):
    for files, wrong in ((moses(folder, "de", "en"), False), (moses(folder, "en", "de"), True)):
        raw = changed("run/experiments", ["pairs"])
        raw["aligned"] = {"pairs": {"test": {"own": {"languages": ["de", "en"], **files}}}}
        raw["experiments"]["pairs"] = {"task": "retrieval", "corpus": "pairs", "models": {"bible": {"backbone": "bible"}}}
        line = found(raw, "aligned.pairs.test.own")
        assert line.startswith("WRONG" if wrong else "ok ") and ("exchange the columns or files of de and en" in line) == wrong


def test_layers_that_a_retrievals_model_has_not_are_found(folder):
    raw = changed("run/experiments", ["pairs"])
    raw["aligned"] = {"pairs": {"test": {"own": {"languages": ["de", "en"], **moses(folder, "de", "en")}}}}
    raw["backbones"]["mine"] = {"kind": "hub", "model": str(folder / "model/model")}
    models = {"bible": {"backbone": "bible", "retrieval": {"layers": [0]}}, "mine": {"backbone": "mine", "retrieval": {"part": "decoder"}}}
    raw["experiments"]["pairs"] = {"task": "retrieval", "corpus": "pairs", "models": models, "retrieval": {"layer": 2}}
    bible, mine = map(str, model_findings.layers(config.load(raw)))
    assert bible == "ok     experiments.pairs.models.bible: measures 2, 0 of its layers, 0 to 2"
    assert mine.startswith("WRONG") and "layer: 2 is none of the model's layers, 0 (the embeddings) to 1" in mine


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
    assert len(notes) == 3 and "line 1 looks like a header, 'German' and 'EN', and is read as a pair; delete it" in notes[1]
    assert '48% of the sentences have HTML tags, as in "<p>Eine' in notes[2]
    (tmp_path / "dev.tsv").write_text("Das ist&apos;s hier\tIt &apos;s here\n" * 20)
    notes = [str(finding) for finding in text_findings.corpora(config.load(raw)) if finding.about == "corpora.help.dev"]
    assert any("100% of the sentences have HTML entities, as in 'Das ist&apos;s hier'; set `unescape: true`" in note for note in notes)


def test_a_warmup_that_does_not_end_is_noted():
    notes = [*findings.long_warmups(config.load(changed("experiments/help-de-en/training/warmup_updates", 1400)))]
    # not of the phases of 2,800 and 4,200 updates
    assert len(notes) == 3 and all("1,400: the learning rate still rises at the last of 1,400 updates" in note.said for note in notes)
    assert not [*findings.long_warmups(config.load(DEFAULT))]


def test_batches_that_are_shorter_than_a_row_may_be_are_noted():
    raw = changed("experiments/help-de-en/training/batch_tokens", 100)
    raw["backbones"]["bible"]["small"]["training"]["batch_tokens"] = 127
    raw["arms"]["csr"][0]["training"]["max_length"] = 50
    notes = {finding.about: finding.said for finding in findings.short_batches(config.load(raw))}
    assert notes.keys() == {f"{where}.training.batch_tokens" for where in ("experiments.help-de-en", "backbones.bible.small")}
    assert notes["experiments.help-de-en.training.batch_tokens"].startswith("100 is less than max_length, 128, and a row")


def test_the_rate_of_a_small_model_is_noted_for_a_published_one():
    raw = changed("backbones/bible", {"kind": "hub", "model": "facebook/mbart-large-cc25"})
    (note,) = findings.high_learning_rates(config.load(raw))
    assert str(note).startswith("note   experiments.help-de-en.training.learning_rate: 0.002 is for small models")
    raw["experiments"]["help-de-en"]["training"]["learning_rate"] = 1e-4
    assert not [*findings.high_learning_rates(config.load(raw))]
    raw["arms"]["csr"][0]["training"]["learning_rate"] = 1e-3
    (note,) = findings.high_learning_rates(config.load(raw))
    assert note.about == "arms.csr.training.learning_rate"
    assert not [*findings.high_learning_rates(config.load(DEFAULT))]


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


def test_what_cannot_be_written_is_wrong(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("results").symlink_to("nowhere")
    (found,) = resources.disk(config.load(changed("corpora/help/seed", 1)))
    assert found.verdict == "WRONG" and "a link to nowhere" in found.said


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


def test_text_that_a_backbone_does_not_read_is_told():
    raw = changed("backbones/bible/small/text/fr", "resources/bible/de.txt.xz")
    notes = [str(finding) for finding in model_findings.backbones(config.load(raw)) if "not read" in finding.said]
    assert len(notes) == 1 and notes[0].startswith("note   backbones.bible.small.text: fr: not read, as nothing in this run has them")


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


def test_everything_that_is_wrong_is_listed_at_once(capsys):
    raw = changed("corpora/help/train/file", "nowhere.tsv")
    raw["lexicons"]["unsupervised"]["gold"]["de-en"] = "nowhere.txt"
    with pytest.raises(InputError, match="2 things are wrong"):
        preflight.tell(preflight.look_at(config.load(raw), {}, {}))
    said = capsys.readouterr().out
    assert said.count("WRONG") == 2 and "nowhere.tsv" in said and "nowhere.txt" in said and "\nok " in said


def test_nothing_of_a_recipe_is_missing_but_what_is_still_to_be_acquired(tmp_path, monkeypatch):
    from snakemake.common.configfile import load_configfile
    from snakemake.utils import update_config

    raw = {}
    for name in ("config.yaml", "config/inference.yaml"):
        update_config(raw, load_configfile(str(ROOT / name)))
    monkeypatch.chdir(tmp_path)
    checked = config.load(raw)
    assert not [str(finding) for part in (text_findings.labelled, text_findings.lexicons) for finding in part(checked)]


def test_a_model_in_a_folder_must_know_the_languages(folder):
    raw = changed("backbones/bible", {"kind": "hub", "model": str(folder / "model/model")})
    assert "its tokenizer knows de and en" in found(raw, "backbones.bible.model")
    raw["corpora"]["help"] |= {"languages": ["cs", "en"], "train": {"files": {"cs": str(folder / "de"), "en": str(folder / "en")}}}
    raw["experiments"]["help-de-en"]["source"] = "cs"
    raw["lexicons"]["unsupervised"]["gold"] = {}
    assert "has no tag cs_CZ for 'cs'" in found(raw, "backbones.bible.model")


def test_a_model_without_a_mask_restores_no_masks(tmp_path):
    for kind in ("m2m100", "nllb"):
        (tmp_path / kind).mkdir()
        small_m2m100(tmp_path / kind, kind)
    raw = changed("backbones/bible", {"kind": "hub", "model": str(tmp_path / "m2m100/model")})
    raw["lexicons"]["pieces"] = {"unit": "piece", "backbone": "bible"}
    raw["arms"]["released"] = [{"data": "released", "updates": 1000, "lexicon": "pieces"}, {"data": "task", "updates": 1000}]
    for arms, masked in ((["finetune", "csr", "mask"], "arms.mask (mask)"), (["released"], "arms.released (released)")):
        raw["run"]["arms"] = arms
        said = f"its vocabulary (M2M-100 or NLLB) has no mask, so it cannot restore the text of {masked}; leave such arms out"
        assert said in found(raw, "backbones.bible.model")
    raw["run"]["arms"] = ["finetune", "csr", "random"]
    assert found(raw, "backbones.bible.model").startswith("ok")
    raw["run"]["arms"], raw["backbones"]["bible"]["model"] = ["mask"], str(tmp_path / "nllb/model")
    assert found(raw, "backbones.bible.model").startswith("ok")


def test_weights_that_are_cut_off_or_lack_a_part_are_found_before_the_run(folder, tmp_path):
    model = shutil.copytree(folder / "model/model", tmp_path / "model")
    raw = changed("backbones/bible", {"kind": "hub", "model": str(model)})
    index = {"weight_map": {"a": "model.safetensors", "b": "model-00002-of-00002.safetensors"}}
    (model / "model.safetensors.index.json").write_text(json.dumps(index))
    assert "model-00002-of-00002.safetensors is not there; download or copy" in found(raw, "backbones.bible.model")
    weights = model / "model.safetensors"
    with weights.open("r+b") as file:
        file.truncate(weights.stat().st_size // 2)
    assert f"{weights}: is no whole file of weights" in found(raw, "backbones.bible.model")
    weights.unlink()
    (model / "model.safetensors.index.json").rename(model / "pytorch_model.bin.index.json")
    assert "pytorch_model.bin.index.json: model-00002-of-00002.safetensors, model" in found(raw, "backbones.bible.model")
    (model / "pytorch_model.bin.index.json").unlink()
    (model / "model-00002-of-00002.safetensors").touch()
    assert "no weights (model.safetensors or pytorch_model.bin, or their .index.json) is there" in found(raw, "backbones.bible.model")
    (model / "model-00002-of-00002.safetensors").unlink()
    (model / "pytorch_model.bin").write_bytes(b"version https://git-lfs.github.com/spec/v1\n")
    assert "pytorch_model.bin: is no whole file of weights" in found(raw, "backbones.bible.model")


def test_a_model_that_is_not_here_is_told_with_how_to_get_it(monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    raw = changed("backbones/bible", {"kind": "hub", "model": "nobody/mbart-large-cc25-of-nobody", "revision": "v1"})
    line = found(raw, "backbones.bible.model")
    assert line.startswith("WRONG") and "run `hf download nobody/mbart-large-cc25-of-nobody --revision v1` where there is network" in line
    raw["corpora"]["help"] |= {"languages": ["pl", "en"], "train": {"file": "x.tsv", "columns": {"pl": 1, "en": 2}}}
    raw["experiments"]["help-de-en"]["source"] = "pl"
    raw["lexicons"]["unsupervised"]["gold"] = {}
    assert "does not know pl; facebook/mbart-large-50 knows twice" in found(raw, "backbones.bible.model")
    raw["backbones"]["bible"]["model"] = "facebook/mbart-large-50"
    assert "network" in found(raw, "backbones.bible.model")
    raw["corpora"]["help"] |= {"languages": ["da", "en"], "train": {"file": "x.tsv", "columns": {"da": 1, "en": 2}}}
    raw["experiments"]["help-de-en"]["source"] = "da"
    assert "mbart-large-50 does not know da; NLLB knows 200" in found(raw, "backbones.bible.model")
    mistyped = changed("backbones/bible", {"kind": "hub", "model": "./mymodel"})
    assert "neither a folder that is there nor a model's id (owner/name)" in found(mistyped, "backbones.bible.model")


def test_memory_is_held_against_what_the_jobs_ask_for():
    raw = changed("backbones/bible", {"kind": "hub", "model": "facebook/mbart-large-cc25"})
    raw["experiments"]["help-de-en"]["training"] |= {"batch_tokens": 8192, "micro_batch_tokens": None}
    for job, verdict, said in (
        ({"gpu": 1, "gpu_model": "t4", "mem_mb": 64000}, "WRONG", "a GPU t4 has 16 GB"),
        ({"gpu": 1, "gpu_model": "a100", "mem_mb": 64000}, "ok", "a GPU a100 has 40 GB"),
        ({"gres": "gpu:h100:1", "mem_mb": 64000}, "ok", "a GPU h100 has 80 GB"),
        ({"gpu": 1, "slurm_partition": "gpu"}, "note", "a GPU of the partition has as much"),
        ({"slurm_partition": "cpu", "mem_mb": 8000}, "WRONG", "the profile's mem_mb is 8.0 GB"),
    ):
        line = found(raw, "memory of finetune", {"pretext": job, "finetune": job})
        assert line.startswith(verdict) and said in line, line
    raw["experiments"]["help-de-en"]["training"] |= {"micro_batch_tokens": "auto"}
    line = found(raw, "memory of finetune", {"finetune": {"gpu": 1, "gpu_model": "t4", "mem_mb": 64000}})
    assert line.startswith("ok") and "so it goes through it in parts" in line


def test_the_phase_that_will_not_fit_is_told_and_not_a_larger_one_that_goes_in_parts():
    raw = changed("backbones/bible", {"kind": "hub", "model": "facebook/mbart-large-cc25"})
    raw["experiments"]["help-de-en"]["training"] |= {"batch_tokens": 30_000, "micro_batch_tokens": 30_000}
    raw["experiments"]["more"] = {"like": "help-de-en", "training": {"batch_tokens": 40_000, "micro_batch_tokens": "auto"}}
    raw["run"]["experiments"] = ["help-de-en", "more"]
    line = found(raw, "memory of finetune", {"finetune": {"gpu": 1, "gpu_model": "a100", "mem_mb": 640_000}})
    assert line.startswith("WRONG") and "experiments.help-de-en.training" in line


def test_a_node_needs_the_memory_of_its_own_gpus_alone(monkeypatch):
    monkeypatch.setattr(resources, "_text_bytes", lambda corpus: 5e9)
    job = {"gpu": 16, "gpu_model": "a100", "mem_mb": 144_000}
    about = "node memory of finetune"
    assert "ask for more" in found(DEFAULT, about, {"finetune": job})
    told = [finding.about for finding in resources.memory(config.load(DEFAULT), {"finetune": {**job, "nodes": 2}})]
    assert "memory of finetune" in told and about not in told


def test_what_an_experiment_that_only_makes_a_backbone_lacks_is_found(folder):
    raw = changed("experiments/first", {"like": "help-de-en", "corpus": "first"})
    raw["corpora"]["first"] = {"like": "help", "train": {"file": "nowhere.tsv"}}
    raw["backbones"]["restored"] = {"kind": "arm", "from": "first/csr/seed1/pretext"}
    raw["experiments"]["second"] = {"like": "help-de-en", "backbone": "restored"}
    raw["run"] |= {"experiments": ["second"]}
    wrong = [str(finding) for finding in preflight.look_at(config.load(raw), {}, {}) if finding.verdict == "WRONG"]
    assert len([line for line in wrong if "nowhere.tsv" in line]) == 1, wrong


def test_a_file_that_no_look_asks_for_is_missed_and_the_other_looks_go_on():
    raw = changed("backbones/bible/small/ready", "resources/bible")
    raw["analyses"] = {
        "inside": {"models": ["bible"], "languages": ["de"], "text": {"de": "resources/bible/de.txt.xz"}, "stages": ["spectra"]}
    }
    raw["analyses"]["inside"]["published"] = "config/nowhere.tsv"
    raw["run"] |= {"analyses": ["inside"]}
    told = {finding.about: str(finding) for finding in preflight.look_at(config.load(raw), {}, {})}
    assert "config/nowhere.tsv: no such file" in told["analyses.inside.published"]
    assert "resources/bible/ready.json: no such file" in told["backbones.bible.small.ready"] and "disk" in told


def test_training_shares_its_updates_among_gpus_and_each_process_needs_memory_of_the_node(monkeypatch):
    raw = changed("backbones/bible/small/training/batch_tokens", 100_000)
    raw["experiments"]["help-de-en"]["training"] |= {"batch_tokens": 100_000}
    needs = {}
    for gpus in (1, 8):
        jobs = {rule: {"gpu": gpus, "gpu_model": "a100", "mem_mb": 6000} for rule in ("backbone", "finetune")}
        needs[gpus] = [found(raw, f"memory of {rule}", jobs).partition(" for ")[0] for rule in jobs]
    assert needs[1][0] != needs[8][0] and needs[1][1] != needs[8][1]
    for rule in jobs:
        assert "beside its GPUs, but the profile's mem_mb is 6.0 GB" in found(raw, f"node memory of {rule}", jobs)
    # each process holds the text as well
    monkeypatch.setattr(resources, "_text_bytes", lambda corpus: 4e9)
    told = [found(raw, f"node memory of {rule}", jobs) for rule in ("backbone", "finetune")]
    assert "about 16 GB" in told[0] and "about 80 GB" in told[1]
    raw["backbones"]["bible"]["small"]["bitext"] = ["help"]
    assert "about 80 GB" in found(raw, "node memory of backbone", jobs)


def test_only_what_this_run_would_write_is_taken_off(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("help-de-en/csr/seed1", "help-de-en/csr/seed2", "help-de-en/csr-other/seed1", "other/csr/seed1"):
        folder = Path("results/runs", name)
        folder.mkdir(parents=True)
        (folder / "model").write_bytes(bytes(10**8))
    assert "of which 0.1 GB are there" in found(changed("run/seeds", [1]), "disk")


def test_what_the_profile_asks_of_slurm_is_looked_up(commands):
    commands("sinfo", "cpu|2:00:00|16|64000|(null)\ngpu|1-00:00:00|32+|128000+|gpu:a100:4(S:0-1)\ngpu|1-00:00:00|8|500000|gpu:v100:2")
    commands("sacctmgr", "physics\nlinguistics")
    assert partitions.read_partitions() == CLUSTER
    jobs = {
        "scores": {"slurm_partition": "cpu", "slurm_account": "Physics", "runtime": 60},
        "corpus": {"slurm_partition": "cpu", "slurm_account": "Physics"},
        "finetune": {"slurm_partition": "gpu", "slurm_account": "chemistry", "gpu": 8},
        "backbone": {"slurm_partition": "gpu", "gpu": 8, "nodes": 2},
    }
    lines = [str(finding) for finding in resources.slurm(jobs)]
    assert lines[1].startswith("WRONG  Slurm job backbone: nodes 2: Snakemake's plugin starts a job on one node alone; set nodes: 1")
    assert lines[2] == "ok     Slurm: cpu can take scores, corpus" and "ok     slurm_account: Physics" in lines
    assert "Slurm job finetune: GPUs 8 is more than gpu has (4)" in lines[0]
    assert any("chemistry is not yours; sacctmgr knows linguistics, physics" in line for line in lines)
    commands("sacctmgr", "You are not running a supported accounting_storage plugin", 1)
    assert any(line.startswith("note") and "no accounting" in line for line in map(str, resources.slurm(jobs)))


def test_the_gpus_of_a_partition_with_one_model_are_known(commands):
    commands("sinfo", "cpu|2:00:00|16|64000|(null)\ngpu|1-00:00:00|32|64000|gpu:t4:4\nmixed|1:00|8|64000|gpu:t4:1,gpu:a100:1")
    raw = changed("backbones/bible", {"kind": "hub", "model": "facebook/mbart-large-cc25"})
    raw["experiments"]["help-de-en"]["training"] |= {"batch_tokens": 8192, "micro_batch_tokens": None}
    for partition, said in (("gpu", "but a GPU t4 has 16 GB"), ("mixed", "of the partition has as much")):
        assert said in found(raw, "memory of finetune", {"finetune": {"gpu": 1, "slurm_partition": partition}})


def test_what_only_the_last_attempt_or_a_whole_group_asks_for_is_told(commands):
    commands("sinfo", "cpu|2:00:00|16|64000|(null)")
    cpu = {"slurm_partition": "cpu", "runtime": 90}
    jobs = {
        "finetune": {**cpu, "mem_mb": 32_000, "last_mem_mb": 96_000},
        "decoding": {**cpu, "group": "evaluation.{arm}"},
        "scores": {**cpu, "runtime": 60, "group": "evaluation.{arm}"},
    }
    notes = [str(finding) for finding in resources.slurm(jobs) if finding.verdict != "ok"]
    assert len(notes) == 2 and all(note.startswith("note") for note in notes)
    assert "the last attempt will be refused, as mem_mb 96000 is more than cpu has (64000), of finetune" in notes[0]
    assert "Slurm group evaluation: its rules one after the other: runtime 150 is more than cpu has (120)" in notes[1]
    jobs["finetune"]["last_mem_mb"], jobs["scores"]["runtime"] = 64_000, 30
    assert [finding.verdict for finding in resources.slurm(jobs)] == ["ok"]


def test_without_slurm_a_slurm_profile_is_told_so(monkeypatch):
    monkeypatch.setattr(partitions, "said", lambda *command: None)
    assert ["WRONG" in str(finding) and "login node" in str(finding) for finding in resources.slurm({"x": {"slurm_partition": "a"}})] == [
        True
    ]
    assert list(resources.slurm({"x": {"mem_mb": 5}})) == []


def test_a_run_goes_on_without_bleus_tokeniser_and_is_told_so(monkeypatch):
    def no_network(*_, **__):
        raise OSError("no network")

    monkeypatch.setattr("sacrebleu.metrics.BLEU.__init__", no_network)
    (said,) = map(str, model_findings.tokenisers(config.load(DEFAULT)))
    assert said.startswith("note") and "13a: is not to be had (OSError: no network)" in said and "no BLEU for en" in said


def test_decoding_on_a_gpu_needs_a_library_of_its_own(monkeypatch):
    jobs = {"decoding": {"gpu": 1}}
    monkeypatch.setattr(model_findings, "why_not_on_gpu", lambda: "no cuBLAS")
    assert [str(each) for each in model_findings.gpu_decoding(config.load(DEFAULT), jobs)] == ["note   decoding on a GPU: no cuBLAS"]
    assert not list(model_findings.gpu_decoding(config.load(DEFAULT), {"decoding": {}}))
    raw = changed("experiments/help-de-en/decoding", {"engine": "huggingface"})
    assert not list(model_findings.gpu_decoding(config.load(raw), jobs))


def test_texts_that_are_generated_are_decoded_on_a_gpu_too(tmp_path, monkeypatch):
    from snakemake.common.configfile import load_configfile
    from snakemake.utils import update_config

    raw = load_configfile(str(ROOT / "config.yaml"))
    update_config(raw, load_configfile(str(ROOT / "config/stories.yaml")))
    monkeypatch.setattr(model_findings, "why_not_on_gpu", lambda: "no cuBLAS")
    assert len(list(model_findings.gpu_decoding(config.load(raw), {"generation_decoding": {"gpu": 1}}))) == 1


def test_a_pytorch_for_cpus_is_told_where_jobs_ask_for_gpus(monkeypatch):
    jobs = {"finetune": {"gpu": 1}, "decoding": {"gpu": 1}, "scores": {}}
    for cuda, wanted in ((None, "a GPU is asked for by decoding, finetune; install a CUDA build"), ("13.0", "is a build for GPUs")):
        monkeypatch.setattr("torch.version.cuda", cuda)
        (said,) = map(str, model_findings.gpu_build(jobs))
        assert wanted in said and said.startswith("ok" if cuda else "note")
    assert not list(model_findings.gpu_build({"scores": {}}))


def test_a_run_goes_on_without_comets_model_and_is_told_so(folder):
    raw = changed("experiments/help-de-en/comet", {})
    (said,) = map(str, model_findings.comet(config.load(raw)))
    assert said.startswith("note") and "hf download Unbabel/wmt22-comet-da" in said
    raw = changed("experiments/help-de-en/comet", {"model": str(folder / "model")})
    (said,) = map(str, model_findings.comet(config.load(raw)))
    assert said.startswith("ok ")


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
