"""METEOR: alignments, the score by hand, languages, and significance."""

import itertools
import os
import random

import pytest
from nltk.translate.meteor_score import align_words
from tiny_models import manual_pairs

from workflow_scripts.evidence.meteor import Meteor, MeteorJar, alignment, meteor_name
from workflow_scripts.evidence.scores import Scores, main, metrics
from workflow_scripts.evidence.significance import over_seeds, per_seed
from workflow_scripts.stage import InputError, read_json


@pytest.mark.parametrize(
    "hypothesis, reference, matches, chunks",
    [
        ("the cat sat on the mat", "the cat sat on the mat", 6, 1),
        ("on the mat sat the cat", "the cat sat on the mat", 6, 3),
        ("the the", "the", 1, 1),
        ("a b", "c", 0, 0),
        ("", "a", 0, 0),
        # greedy matching from the left takes the first b, and needs three chunks
        ("b c", "b a b c", 2, 1),
    ],
)
def test_alignments(hypothesis, reference, matches, chunks):
    assert alignment(hypothesis.split(), reference.split()) == (matches, chunks)


def every_alignment(mine, other):
    """(Matches, chunks) of the best of all alignments, tried one by one."""
    found = set()
    for places in itertools.product([None, *range(len(other))], repeat=len(mine)):
        pairs = [(i, j) for i, j in enumerate(places) if j is not None]
        if len({j for _, j in pairs}) == len(pairs) and all(mine[i] == other[j] for i, j in pairs):
            found.add((-len(pairs), sum(1 for i, j in pairs if (i - 1, j - 1) not in pairs)))
    matches, chunks = min(found)
    return -matches, chunks


def test_no_alignment_is_better():
    rng = random.Random(1)
    for _ in range(300):
        mine, other = ([rng.choice("abc") for _ in range(rng.randint(0, 5))] for _ in range(2))
        assert alignment(mine, other) == every_alignment(mine, other)


def test_the_score_by_hand():
    meteor = Meteor("en")
    # 3 of 4 words on each side match (cats and cat by their stems), in two chunks
    assert meteor.sentence_score("The cats were sitting!", ["the cat was sitting"]).score == pytest.approx(75 * (1 - 0.5 * (2 / 3) ** 3))
    # 2 matches of 2 and of 4 words, in one chunk
    assert meteor.sentence_score("open file", ["open file now please"]).score == pytest.approx(100 * 10 * 0.5 / (0.5 + 9) * (1 - 0.5 / 8))
    assert meteor.sentence_score("", ["open"]).score == 0
    # a corpus has the score of its sums, which is not the mean of its sentences
    sums = [sum(column) for column in zip(meteor.counts("open file", "open file now please"), meteor.counts("a", "b"), strict=True)]
    assert sums == [2, 1, 3, 5]
    corpus = meteor.corpus_score(["open file", "a"], [["open file now please", "b"]])
    assert corpus.score == pytest.approx(meteor.value(sums)) and corpus.name == "METEOR (exact+stem)"


def test_bokmal_is_stemmed_as_norwegian_is():
    assert Meteor("nb").name == Meteor("no").name == "METEOR (exact+stem)"
    assert Meteor("nb").counts("filene åpnes", "filen åpner") == Meteor("no").counts("filene åpnes", "filen åpner")


def test_no_word_is_stemmed_by_what_was_scored_before():
    """NLTK's stemmer of Arabic, asked for several words, takes one for a noun where the word before was one."""
    hypothesis, reference = "والطلاب كتبوا الدروس", "الطلاب كتب الدروس"
    first, second = Meteor("ar"), Meteor("ar")
    second.sentence_score("كتابها", ["كتابها"])
    assert first.counts(hypothesis, reference) == second.counts(hypothesis, reference)
    assert first.counts(hypothesis, reference)[0] == 3


def test_as_many_words_match_as_in_nltk():
    _, references = manual_pairs(60)
    meteor = Meteor("en")
    for line in references:
        mine, other = meteor.tokenizer.tokenize(" ".join(line.split()[::-2])), meteor.tokenizer.tokenize(line)
        # without WordNet, by the same stemmer: the last word first, for nltk matches from the end
        theirs, _, _ = align_words(mine, other, stemmer=_Stemmer(meteor), wordnet=_NoWordNet())
        assert meteor.counts(" ".join(mine), " ".join(other))[0] == len(theirs)


class _Stemmer:
    def __init__(self, meteor):
        self.stem = meteor._stem


class _NoWordNet:
    @staticmethod
    def synsets(word):
        return []


def test_what_is_counted_stands_in_the_name():
    assert meteor_name("de", None) == "METEOR (exact+stem)" and meteor_name("zh", None) == meteor_name("tr", None) == "METEOR (exact)"
    assert Meteor("zh").sentence_score("打开文件", ["打开文件"]).score == pytest.approx(100 * (1 - 0.5 / 4**3))
    assert Meteor("de").counts("Die Dateien", "die Datei")[0] == 2 and Meteor("tr").counts("dosyalar", "dosya")[0] == 0
    assert list(metrics("de", Scores(metrics=["METEOR"], meteor_jar="meteor-1.5.jar"))) == ["METEOR 1.5", "BLEU"]


def test_a_jar_that_is_not_there_is_named(tmp_path):
    with pytest.raises(InputError, match=r"scores\.meteor_jar: .*meteor-1.5.jar is not there; give the path"):
        MeteorJar("en", str(tmp_path / "meteor-1.5.jar"))


def test_a_program_that_warns_at_length_still_answers(tmp_path, monkeypatch):
    (tmp_path / "meteor.jar").touch()
    java = tmp_path / "java"
    java.write_text("#!/bin/sh\nhead -c 300000 /dev/zero | tr '\\0' x >&2\nwhile read -r line; do echo 1 2; done\n")
    java.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert MeteorJar("en", str(tmp_path / "meteor.jar")).counts("a", "b") == [1, 2]


def test_a_program_that_is_not_meteor_is_named_in_the_scores(tmp_path):
    for name in ("hyp", "ref"):
        (tmp_path / name).write_text("a b\n")
    (tmp_path / "no.jar").write_text("no jar")
    settings = Scores(metrics=["BLEU", "METEOR"], meteor_jar=str(tmp_path / "no.jar"))
    main(tmp_path / "hyp", tmp_path / "ref", tmp_path / "s.json", language="en", settings=settings)
    report = read_json(tmp_path / "s.json")
    assert set(report["metrics"]) == {"BLEU"}
    assert "METEOR's program stopped" in report["failed"]["METEOR 1.5"] or "no program java" in report["failed"]["METEOR 1.5"]


def test_it_is_scored_and_tested_like_the_others(files):
    tmp_path, _ = files
    settings = Scores(metrics=["METEOR"], samples=100)
    main(tmp_path / "good", tmp_path / "ref", tmp_path / "s.json", language="en", settings=settings)
    scored = read_json(tmp_path / "s.json")["metrics"]["METEOR (exact+stem)"]
    assert "modules:exact+stem|parameters:2005|alignment:1.5|agg:corpus" in scored["signature"]
    systems = tmp_path / "poor", tmp_path / "good"
    per_seed(systems, tmp_path / "ref", tmp_path / "one.json", names=("poor", "good"), language="en", settings=settings)
    found = read_json(tmp_path / "one.json")["systems"]["good"]["METEOR (exact+stem)"]
    assert found["score"] == pytest.approx(scored["value"]) and found["p"] < 0.05
    over_seeds(systems, tmp_path / "ref", tmp_path / "all.json", names=("poor", "good"), seeds=(1,), language="en", settings=settings)
    (pair,) = (row for row in read_json(tmp_path / "all.json")["pairs"] if row["metric"].startswith("METEOR"))
    assert pair["difference"] > 0 and pair["low"] <= pair["difference"] <= pair["high"]
