"""How a text spells its words."""

import numpy as np
import pytest

from workflow_scripts.text.files import read_lines
from workflow_scripts.text.spelling import begins_sentence, read_vocabulary
from workflow_scripts.text.words import count_words, words_of


def vocabulary(folder, code, *lines):
    """The words of these lines."""
    (folder / f"text.{code}").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return read_vocabulary(folder / f"text.{code}", code)


def test_words_are_spelt_as_they_are_within_sentences(tmp_path):
    lines = ("Öffnen Sie die Datei.", "Dateien als PDF speichern? Speichern Sie die Datei als PDF.", "Speichern und öffnen")
    words = vocabulary(tmp_path, "de", *lines)
    # *Dateien* only begins a sentence, *speichern* does twice and is small once
    assert words.spellings == {"datei": "Datei", "sie": "Sie", "pdf": "PDF"}
    assert words.counts == count_words(read_lines(tmp_path / "text.de"), "de") and words.counts["speichern"] == 3


def test_the_most_frequent_spelling_is_usual_and_of_equal_ones_the_smaller(tmp_path):
    words = vocabulary(tmp_path, "en", "a Web page, the web", "the WEB in the Web", "an iPhone, an IPhone", "an Email or an email")
    assert words.spellings == {"web": "Web", "iphone": "iPhone"}


@pytest.mark.parametrize(
    "line", ["One. Two", "One … Two… Three", "One: Two! Three? Four", "one </s> Two </s> Three", "He said “no.” Then", "ա։ Բ"]
)
def test_a_word_after_a_mark_begins_a_sentence(line):
    words = words_of([line], "en")
    assert [word[0].isupper() for word in words.strings()][1:] == begins_sentence(words)[1:].tolist() and begins_sentence(words)[0]


def test_lines_without_words_begin_nothing():
    words = words_of(["", "One two", "…", "", "Three four", "–"], "en")
    assert begins_sentence(words).tolist() == [True, False, True, False]
    assert begins_sentence(words_of([], "en")).tolist() == begins_sentence(words_of(["…"], "en")).tolist() == []


def test_turkish_and_soft_hyphens_are_folded_as_elsewhere(tmp_path):
    assert vocabulary(tmp_path, "tr", "bir İndir, bir Işık").spellings == {"indir": "İndir", "ışık": "Işık"}
    assert vocabulary(tmp_path, "de", "die Da\u00adtei").spellings == {"datei": "Datei"}
    assert vocabulary(tmp_path, "ja", "ファイルを開く").spellings == {}
    assert begins_sentence(words_of(["ファイルを開く。保存する"], "ja")).dtype == np.bool_
