"""What is found before a run starts: everything that is wrong, at once."""

import pytest
from configurations import DEFAULT, changed, planned
from looks import found, moses

from workflow_scripts.run import preflight
from workflow_scripts.stage import InputError

pytestmark = pytest.mark.usefixtures("no_cluster")


def test_nothing_is_wrong_with_the_demo():
    lines = {finding.about: str(finding) for finding in preflight.look_at(planned(DEFAULT), {}, {})}
    assert all(line.startswith("ok ") for line in lines.values()), lines
    assert {"corpora.help.train", "lexicons.unsupervised.gold", "backbones.bible.small.text.de", "memory of finetune", "disk"} <= set(lines)
    assert "35,922 pairs" in lines["corpora.help.train"]
    assert lines["run.experiments"] == "ok     run.experiments: help-de-en"
    assert "finetuning on help reads 5,000 pairs at most" in lines["training.pairs"]
    assert " of the first 2,000 rows (" in lines["experiments.help-de-en.training.max_length"]


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
        ("lexicons/unsupervised/mapping", lambda f: {"engine": "vecmap", "vecmap": str(f)}, "lexicons.unsupervised.mapping.vecmap", "git"),
        (
            "experiments/help-de-en/representation",
            lambda f: {"text": {"de": str(f / "blank"), "en": str(f / "en")}},
            "experiments.help-de-en.representation.text.de",
            "blank: has no text",
        ),
        ("backbones/bible/small/text/de", lambda f: str(f / "nowhere"), "backbones.bible.small.text.de", "nowhere: no such file"),
        ("backbones/bible/small/text/de", lambda f: str(f / "de"), "backbones.bible.small.text.de", "has 300 lines, at least 1600"),
        ("backbones/bible", lambda f: {"kind": "hub", "model": str(f / "no-model")}, "backbones.bible.model", "the folder is empty"),
        (
            "backbones/bible",
            lambda f: {"kind": "hub", "model": str(f / "bert")},
            "backbones.bible.model",
            "; an encoder writes in arms whose task has `generator: sga`",
        ),
        ("backbones/bible", lambda f: {"kind": "hub", "model": str(f / "gone")}, "backbones.bible.model", "neither a folder that is there"),
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


def test_everything_that_is_wrong_is_listed_at_once(capsys):
    raw = changed("corpora/help/train/file", "nowhere.tsv")
    raw["lexicons"]["unsupervised"]["gold"]["de-en"] = "nowhere.txt"
    with pytest.raises(InputError, match="2 things are wrong"):
        preflight.tell(preflight.look_at(planned(raw), {}, {}))
    said = capsys.readouterr().out
    assert said.count("WRONG") == 2 and "nowhere.tsv" in said and "nowhere.txt" in said and "\nok " in said


def test_what_an_experiment_that_only_makes_a_backbone_lacks_is_found(folder):
    raw = changed("experiments/first", {"like": "help-de-en", "corpus": "first"})
    raw["corpora"]["first"] = {"like": "help", "train": {"file": "nowhere.tsv"}}
    raw["backbones"]["restored"] = {"kind": "arm", "from": "first/csr/seed1/pretext"}
    raw["experiments"]["second"] = {"like": "help-de-en", "backbone": "restored"}
    raw["run"] |= {"experiments": ["second"]}
    wrong = [str(finding) for finding in preflight.look_at(planned(raw), {}, {}) if finding.verdict == "WRONG"]
    assert len([line for line in wrong if "nowhere.tsv" in line]) == 1, wrong


def test_a_file_that_no_look_asks_for_is_missed_and_the_other_looks_go_on():
    raw = changed("backbones/bible/small/ready", "resources/bible")
    raw["analyses"] = {
        "inside": {"models": ["bible"], "languages": ["de"], "text": {"de": "resources/bible/de.txt.xz"}, "stages": ["spectra"]}
    }
    raw["analyses"]["inside"]["published"] = "config/nowhere.tsv"
    raw["run"] |= {"analyses": ["inside"]}
    findings = {finding.about: str(finding) for finding in preflight.look_at(planned(raw), {}, {})}
    assert "config/nowhere.tsv: no such file" in findings["analyses.inside.published"]
    assert "resources/bible/ready.json: no such file" in findings["backbones.bible.small.ready"] and "disk" in findings
