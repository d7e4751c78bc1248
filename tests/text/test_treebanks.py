"""CoNLL-U: words of the syntax, words of the text, and treebanks without their text."""

from collections import Counter
from pathlib import Path

import pytest

from workflow_scripts.stage import InputError
from workflow_scripts.text.treebanks import read_treebank

UD = Path(__file__).parents[2] / "resources/universal-dependencies"

# The head of "du" is "chat" for both of its words; that of "le" is "voit", so that it is nearer to the root than "de" in "duquel".
FRENCH = """# newdoc id = one
# text = Le chat du voisin
1\tLe\tle\tDET\t_\t_\t2\tdet\t_\t_
2\tchat\tchat\tNOUN\t_\t_\t0\troot\t_\t_
3-4\tdu\t_\t_\t_\t_\t_\t_\t_\t_
3\tde\tde\tADP\t_\t_\t5\tcase\t_\t_
4\tle\tle\tDET\t_\t_\t5\tdet\t_\t_
4.1\tgone\t_\tVERB\t_\t_\t_\t_\t_\t_
5\tvoisin\tvoisin\tNOUN\t_\t_\t2\tnmod\t_\t_

1-2\tDuquel\t_\t_\t_\t_\t_\t_\t_\t_
1\tDe\tde\tADP\t_\t_\t2\tcase\t_\t_
2\tlequel\tlequel\tPRON\t_\t_\t3\tobl\t_\t_
3\tparler\tparler\tVERB\t_\t_\t0\troot\t_\t_
4\t?\t?\tPUNCT\t_\t_\t3\tpunct\t_\t_"""


def read(path, text, multiword="words", code="fr"):
    path.write_text(text)
    changed: Counter[str] = Counter()
    found = [(document, [row[1:] for row in rows]) for document, rows in read_treebank(path, {}, multiword, code, changed)]
    return found, changed


def test_words_of_the_syntax_stand_alone(tmp_path):
    ((document, first), (_, second)), changed = read(tmp_path / "fr.conllu", FRENCH)
    assert [word for word, _ in first] == ["Le", "chat", "de", "le", "voisin"] and document == "one"
    assert second == [("De", "ADP"), ("lequel", "PRON"), ("parler", "VERB"), ("?", "PUNCT")] and not changed


def test_words_of_the_text_have_the_tag_of_what_is_nearest_to_the_root(tmp_path):
    ((_, first), (_, second)), changed = read(tmp_path / "fr.conllu", FRENCH, "fused")
    # both words of "du" are equally near; XTREME's order of tags has the preposition first
    assert first == [("Le", "DET"), ("chat", "NOUN"), ("du", "ADP"), ("voisin", "NOUN")]
    assert second == [("Duquel", "PRON"), ("parler", "VERB"), ("?", "PUNCT")]
    assert changed == {"words of the syntax read as one": 4}


def test_words_of_the_text_are_written_without_blanks_and_joiners_inside(tmp_path):
    text = "1\tمی\u200cروم\t_\tVERB\t_\t_\t0\troot\t_\t_\n2\t10 000\t_\tNUM\t_\t_\t1\tobj\t_\t_\n"
    for multiword, words in (("fused", ["میروم", "10000"]), ("words", ["می\u200cروم", "10 000"])):
        ((_, rows),), _ = read(tmp_path / "fa.conllu", text, multiword, "fa")
        assert [word for word, _ in rows] == words


def test_orders_of_tags_differ_by_language(tmp_path):
    # an auxiliary and a pronoun under one verb
    text = "1-2\tessersi\t_\t_\t_\t_\t_\t_\n1\tesser\t_\tAUX\t_\t_\t3\tx\n2\tsi\t_\tPRON\t_\t_\t3\tx\n3\tdetto\t_\tVERB\t_\t_\t0\troot\n"
    for code, tag in (("it", "AUX"), ("pt", "PRON")):
        assert read(tmp_path / "x.conllu", text, "fused", code)[0][0][1] == [("essersi", tag), ("detto", "VERB")]


def test_sentences_whose_words_were_taken_away_are_left_out_and_counted(tmp_path):
    text = "1\t_\t_\tNOUN\n2\t_\t_\tVERB\n\n1\tRead\t_\tVERB\n2\t_\t_\tSYM\n3\tnow\t_\tADV\n"
    ((_, gone), (_, rows)), changed = read(tmp_path / "x.conllu", text)
    assert gone == [] and rows == [("Read", "VERB"), ("_", "SYM"), ("now", "ADV")]
    assert changed == {"sentence without its words left out": 1}


def test_what_is_no_treebank_is_an_error(tmp_path):
    with pytest.raises(InputError, match=r"x\.conllu, line 2: 3 column\(s\), but 4 are needed"):
        read(tmp_path / "x.conllu", "# x\n1\tThe\tthe\n")
    heads = "1-2\tdu\t_\t_\t_\t_\t_\n1\tde\t_\tADP\t_\t_\t_\n2\tle\t_\tDET\t_\t_\t_\n"
    with pytest.raises(InputError, match=r"x\.conllu, line 2: the head of the word is '_'; `multiword: fused` needs"):
        read(tmp_path / "x.conllu", heads, "fused")
    with pytest.raises(
        InputError, match=r"x\.conllu, line 3: the word's number, 1, stands in line 1 of the same sentence; an empty line is"
    ):
        read(tmp_path / "x.conllu", "1\tDas\t_\tDET\n2\tHaus\t_\tNOUN\n1\tEr\t_\tPRON\n")
    # heads in a circle lead to no root, and to an end all the same
    assert read(tmp_path / "x.conllu", heads.replace("ADP\t_\t_\t_", "ADP\t_\t_\t2").replace("DET\t_\t_\t_", "DET\t_\t_\t1"), "fused")[0]


def test_the_shipped_treebank_has_the_words_that_its_readme_counts():
    sentences = list(read_treebank(UD / "de.test.conllu.xz", {}, "words", "de", Counter()))
    assert len(sentences) == 400 and all(word and tag for _, rows in sentences for _, word, tag in rows)
