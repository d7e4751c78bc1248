"""Text that is too short for the jobs that would need it."""

from configurations import DEFAULT, changed, planned
from looks import moses

from workflow_scripts.run import size_findings


def test_too_little_text_is_found_before_the_jobs_that_need_more(folder):
    def said(about: str) -> list[str]:
        return [str(finding) for finding in size_findings.text_sizes(planned(raw)) if finding.about == about]

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
    assert not list(size_findings.text_sizes(planned(raw)))


def test_text_that_is_learnt_together_counts_too(folder):
    """The experiment's own text is short, that of the other corpus is long."""
    raw = changed("corpora/help/train", moses(folder, "de", "en"))  # 300 lines
    raw["corpora"]["help"] |= {"dev": moses(folder, "blank", "en"), "test": {"web": moses(folder, "en", "de")}}
    raw["corpora"]["other"] = {**raw["corpora"]["help"], "train": DEFAULT["corpora"]["help"]["train"]}
    raw["backbones"]["bible"]["small"] |= {"text": {"de": "task", "en": "task"}, "ready": None}
    assert any("has 300 lines" in finding.said for finding in size_findings.text_sizes(planned(raw)))
    raw["experiments"]["help-de-en"]["together_with"] = ["other"]
    raw["run"]["arms"] = ["finetune"]
    assert not [each for each in size_findings.text_sizes(planned(raw)) if each.about.startswith("backbones")]


def test_long_text_without_a_sentence_that_could_be_held_out_is_found(tmp_path):
    """A full stop of its own, as Urdu has, ends a sentence, too."""
    lines = [f"this is the line of number {number} of them" for number in range(size_findings.LONG)]
    for name, end in (("none.ur", ""), ("some.ur", "۔"), ("none.en", ""), ("some.en", ".")):
        (tmp_path / name).write_text("".join(f"{line}{end}\n" for line in lines))
    corpora = {"corpora/help/languages": ["ur", "en"], "corpora/help/test": {"web": {"held_out": 1000}}}
    for name, wrong in (("none", True), ("some", False)):
        raw = changed("experiments/help-de-en/source", "ur")
        raw["corpora"]["help"] |= {key.rpartition("/")[2]: value for key, value in corpora.items()}
        raw["corpora"]["help"]["train"] = {"files": {code: str(tmp_path / f"{name}.{code}") for code in ("ur", "en")}}
        raw["backbones"]["bible"]["small"]["text"] = {"ur": "task", "en": "task"}
        raw["lexicons"]["unsupervised"]["gold"] = {}
        said = [str(finding) for finding in size_findings.text_sizes(planned(raw))]
        hint = "there is none in the first 20,000 pairs; give dev and test files of their own (running sentences have at least"
        assert any(hint in one for one in said) == wrong
