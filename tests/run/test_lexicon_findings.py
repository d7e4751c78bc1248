"""What preflight finds in word lists and vectors."""

from collections import Counter
from pathlib import Path

import pytest
from configurations import changed, planned

from workflow_scripts.run import lexicon_findings
from workflow_scripts.stage import InputError
from workflow_scripts.text.files import read_lines
from workflow_scripts.text.labelled import Labelled
from workflow_scripts.text.labelled_source import LabelledSource

ROOT = Path(__file__).parents[2]


def test_what_a_lexicon_does_not_read_is_noted():
    raw = changed("lexicons/unsupervised/dictionary", {"de-en": "resources/wiktionary/de-en.tsv.xz"})
    raw["lexicons"]["unsupervised"]["vectors"] = {"fr": "fr.vec"}
    about = {
        "lexicons.unsupervised.dictionary": "semi_supervised, supervised or dictionary",
        "lexicons.unsupervised.vectors": "fr: not read",
    }
    notes = {finding.about: str(finding) for finding in lexicon_findings.lexicons(planned(raw)) if finding.verdict == "note"}
    assert notes.keys() == about.keys() and all(said in notes[key] for key, said in about.items())
    raw["lexicons"]["unsupervised"]["mapping"] = {"mode": "dictionary"}
    notes = {finding.about: finding.said for finding in lexicon_findings.lexicons(planned(raw)) if finding.verdict == "note"}
    assert notes == {"lexicons.unsupervised.vectors": "are not read with mapping.mode dictionary"}


def test_vectors_in_another_language_are_noted(tmp_path):
    words = Counter(word for line in read_lines("resources/bible/en.txt.xz") for word in line.split()).most_common(600)
    (tmp_path / "x.vec").write_text(f"{len(words)} 1\n" + "".join(f"{word} {number}\n" for word, number in words))
    plans = planned(changed("lexicons/unsupervised/vectors", {code: str(tmp_path / "x.vec") for code in ("de", "en")}))
    (note,) = (each for each in lexicon_findings.lexicons(plans) if each.verdict == "note")
    assert note.about == "lexicons.unsupervised.vectors.de" and note.said.startswith("the German text reads as English")


def test_a_dictionary_for_labelled_text_that_is_turned_is_found(tmp_path):
    (tmp_path / "x.tsv").write_text("no\tthe house and the tree\n" * 20)
    source = LabelledSource(str(tmp_path / "x.tsv"), {"label": 1, "text": 2})
    block = Labelled(language="en", labels=["no", "yes"], train=source, dev=LabelledSource(held_out=0.1), test={"own": source})
    (tmp_path / "words").write_text("haus house\nbaum tree\nund and\n")
    with pytest.raises(InputError, match="0 of 3 pairs have their English word in the text, and 3 when they are read the other way round"):
        lexicon_findings._given_word_list(str(tmp_path / "words"), "en-de", block)
    assert lexicon_findings._given_word_list(str(tmp_path / "words"), "de-en", block).endswith("3 pairs of words")


def test_a_language_whose_words_are_not_known_is_noted():
    raw = changed("corpora/help/languages", ["my", "en"])
    raw["experiments"]["help-de-en"]["source"] = "my"
    raw["corpora"]["help"]["train"]["columns"] = {"document": 1, "en": 3, "my": 4}
    raw["backbones"]["bible"]["small"]["text"] = {"my": "task", "en": "task"}
    raw["lexicons"]["unsupervised"]["gold"] = {}
    (finding,) = lexicon_findings.clauses(planned(raw))
    assert finding.verdict == "note" and finding.about == "corpora.help.languages" and "Burmese is written without spaces" in finding.said
    assert not list(lexicon_findings.clauses(planned(changed("run/seeds", [1]))))
