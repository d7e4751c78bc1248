"""What preflight finds of text in a script that a model's vocabulary lacks."""

from configurations import changed, planned

from workflow_scripts.run import reading_findings
from workflow_scripts.text.files import read_lines


def findings(raw):
    return {finding.about: finding for finding in reading_findings.vocabularies(planned(raw))}


def translation(folder, tmp_path, **parts):
    """The demo's experiment on other text, from a published model with the pieces of German and English."""
    raw = changed("backbones/bible", {"kind": "hub", "model": str(folder / "model/model")})
    raw["corpora"]["help"] = {**raw["corpora"]["help"], **parts}
    return raw


def test_text_that_a_vocabulary_has_is_right(folder, tmp_path):
    good = {"files": {"de": str(folder / "de"), "en": str(folder / "en")}}
    found = findings(translation(folder, tmp_path, train=good))
    for code in ("de", "en"):
        line = str(found[f"corpora.help.train ({code})"])
        assert line.startswith("ok ") and line.endswith("% of the pieces are unknown to the vocabulary of backbones.bible")


def test_training_text_in_a_script_that_it_lacks_is_refused_and_test_text_noted(folder, tmp_path):
    russian = "".join(f"{line}\n" for line in list(read_lines("resources/parallel-ud/pud.ru.txt.xz"))[:300])
    (tmp_path / "ru").write_text(russian, encoding="utf-8")
    bad = {"files": {"de": str(tmp_path / "ru"), "en": str(folder / "en")}}
    good = {"files": {"de": str(folder / "de"), "en": str(folder / "en")}}
    found = findings(translation(folder, tmp_path, train=bad))
    line = str(found["corpora.help.train (de)"])
    assert line.startswith("WRONG") and "% of the pieces of the German text are unknown, as '«Если', to the vocabulary of" in line
    assert "take a model whose vocabulary has the script" in line and found["corpora.help.train (en)"].verdict == "ok"
    found = findings(translation(folder, tmp_path, train=good, test={"new": bad}))
    line = str(found["corpora.help.test.new (de)"])
    assert line.startswith("note") and "so scores on it say nothing" in line and found["corpora.help.train (de)"].verdict == "ok"


def test_labelled_text_is_looked_at_as_well(folder, tmp_path):
    lines = list(read_lines("resources/parallel-ud/pud.zh.txt.xz"))[:100]
    for name, texts in (("zh", lines), ("en", (folder / "en").read_text("utf-8").splitlines()[:100])):
        (tmp_path / name).write_text("".join(f"{text}\t{'ab'[at % 2]}\n" for at, text in enumerate(texts)), encoding="utf-8")
    raw = changed("backbones/bible", {"kind": "hub", "model": str(folder / "model/model")})
    text = {"file": str(tmp_path / "en"), "columns": {"text": 1, "label": 2}}
    tests = {"zh": {**text, "file": str(tmp_path / "zh"), "language": "zh"}}
    raw["labelled"] = {"topics": {"language": "en", "labels": ["a", "b"], "train": text, "dev": {"held_out": 0.1}, "test": tests}}
    raw["experiments"] = {"topics": {"task": "classification", "corpus": "topics", "backbone": "bible"}}
    raw["arms"] = {"plain": [{"data": "task", "epochs": 1}]}
    raw["run"] = {**raw["run"], "experiments": ["topics"], "arms": ["plain"]}
    found = findings(raw)
    assert found["labelled.topics.train (en)"].verdict == "ok"
    line = str(found["labelled.topics.test.zh (zh)"])
    assert line.startswith("note") and "of the pieces of the Chinese text are unknown" in line
    raw["labelled"]["topics"] |= {"language": "zh", "train": {**text, "file": str(tmp_path / "zh")}}
    assert findings(raw)["labelled.topics.train (zh)"].verdict == "WRONG"


def test_a_vocabulary_that_is_made_here_is_of_this_text():
    assert not findings(changed("run/seeds", [1]))
