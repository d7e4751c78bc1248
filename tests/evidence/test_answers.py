"""F1 and exact match of answers, against values that were calculated by hand."""

import numpy as np
import pytest

from workflow_scripts.evidence.answers import COUNTS, SCORES, count, mlqa_words, overlap, squad_words


@pytest.mark.parametrize(
    "text, words",
    [
        ("The  Cat's (big) hat!", ["cats", "big", "hat"]),
        ("an apple, a day", ["apple", "day"]),
        ("theatre", ["theatre"]),
        ("24-10", ["2410"]),
        ("«der Hund»", ["«der", "hund»"]),
        ("东京", ["东京"]),
    ],
)
def test_words_as_squad_compares_them(text, words):
    assert squad_words(text) == words


@pytest.mark.parametrize(
    "text, code, words",
    [
        ("«Der Hund» der “Nachbarn”", "de", ["hund", "nachbarn"]),
        ("un gato, la casa", "es", ["gato", "casa"]),
        ("the a la", "en", ["la"]),
        ("cái nhà của tôi", "vi", ["nhà", "tôi"]),
        ("الكتاب", "ar", ["كتاب"]),
        ("राम। घर", "hi", ["राम", "घर"]),
        ("2010年，the NFL 球队。", "zh", ["2010", "年", "the", "nfl", "球", "队"]),
        ("ของที", "th", ["ข", "อ", "ง", "ที"]),
        ("the dog", "ru", ["the", "dog"]),
    ],
)
def test_words_as_mlqa_compares_them(text, code, words):
    assert mlqa_words(text, code) == words


@pytest.mark.parametrize(
    ("code", "truth", "answer", "share"), [("yue", "北京大學", "北京", 2 / 3), ("shn", "မိူင်းထႆး", "မိူင်း", 0.8), ("bo", "བོད་ཡིག", "བོད", 0.5)]
)
def test_part_of_an_answer_counts_wherever_words_have_no_blanks_between_them(code, truth, answer, share):
    assert count([[truth]], [answer], code)[0][COUNTS.index("f1_mlqa")] == pytest.approx(share, abs=0.2)


def test_overlap_counts_words_as_often_as_they_occur():
    # 2 of 3 words are right, 2 of 4 are found: 2 · 2/3 · 2/4 / (2/3 + 2/4) = 4/7
    assert overlap(["a", "b", "b"], ["b", "b", "c", "d"]) == pytest.approx(4 / 7)
    assert overlap(["b", "b"], ["b"]) == pytest.approx(2 / 3) and overlap([], []) == 0.0 and overlap(["a"], ["b"]) == 0.0


def test_the_best_right_answer_counts_for_each_score():
    counts = count([["Denver Broncos", "The Broncos"], ["24"]], ["the Broncos", "Denver"], "en")
    assert counts.tolist() == [[1.0, 1.0, 1.0, 1.0, 1.0], [0.0, 0.0, 0.0, 0.0, 1.0]]
    (half,) = count([["Denver Broncos", "the Denver"]], ["the Broncos"], "en")
    assert half[0] == pytest.approx(2 / 3) and half[1] == 0.0


def test_chinese_is_counted_by_character_in_mlqas_way_alone():
    (row,) = count([["东京大学"]], ["东京"], "zh")
    assert row[0] == 0.0 and row[2] == pytest.approx(2 * 2 / 6)


def test_scores_are_means_over_questions():
    sums = np.array([[0.5, 0.0, 0.75, 1.0, 1.0], [1.0, 1.0, 0.25, 0.0, 1.0]]).sum(axis=0)
    assert {name: of(sums) for name, of in SCORES.items()} == {"f1": 0.75, "em": 0.5, "f1_mlqa": 0.5, "em_mlqa": 0.5}
    assert tuple(SCORES) == COUNTS[:-1]
