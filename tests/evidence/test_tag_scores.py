"""Spans and tags: seqeval's numbers from counts of sentences, and what a word list gets."""

import random
import warnings

import numpy as np
import pytest

from workflow_scripts.evidence.tag_scores import SCORES, count, leading, learn_word_list, spans

NER = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]
UPOS = ["NOUN", "VERB", "ADJ", "ADP", "ADV", "INTJ", "PROPN", "PRON", "SYM", "SCONJ", "PUNCT"]


@pytest.mark.parametrize("tags", [NER, UPOS])
def test_scores_are_those_of_seqeval(tags):
    from seqeval.metrics import accuracy_score, f1_score, precision_score, recall_score

    draw = random.Random(1)
    truth = [[draw.choice(tags) for _ in range(draw.randrange(1, 12))] for _ in range(200)]
    given = [[draw.choice([tag, tag, tag, draw.choice(tags)]) for tag in sentence] for sentence in truth]
    sums = count(truth, given).sum(axis=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = {
            "accuracy": accuracy_score(truth, given),
            "f1": f1_score(truth, given),
            "precision": precision_score(truth, given),
            "recall": recall_score(truth, given),
        }
    assert {name: score(sums) for name, score in SCORES.items()} == pytest.approx(expected)


def test_spans():
    assert spans(["B-PER", "I-PER", "B-PER", "O", "I-LOC", "I-PER"]) == {("PER", 0, 1), ("PER", 2, 2), ("LOC", 4, 4), ("PER", 5, 5)}
    assert len(spans(["NOUN", "NOUN", "VERB", "NOUN"])) == 3  # a run of one tag is one span, as XTREME has it
    assert spans(["O", "O"]) == set()
    # what a word without a feature has is a tag like any other, also at the end and beside an O
    assert spans(["Nom", "_", "O", "_"]) == {("Nom", 0, 0), ("_", 1, 1), ("_", 3, 3)}


def test_a_sentence_is_counted_whatever_stood_before_it():
    # over several sentences seqeval lets a span of X begin where the sentence before had one
    truth, given = [["NOUN", "VERB"], ["X", "NOUN"]], [["VERB", "VERB"], ["X", "NOUN"]]
    assert (count(truth, given) == np.concatenate([count(truth[:1], given[:1]), count(truth[1:], given[1:])])).all()
    assert count(truth, given)[1].tolist() == [2, 2, 2, 2, 2]


def test_where_there_is_nothing_to_find_scores_are_nothing():
    sums = count([["O", "O"]], [["O", "O"]]).sum(axis=0)
    assert SCORES["f1"](sums) == SCORES["precision"](sums) == SCORES["recall"](sums) == 0 and SCORES["accuracy"](sums) == 1
    assert count([], []).sum(axis=0).tolist() == np.zeros(5).tolist()


def test_the_leading_score():
    assert leading(NER) == "f1" and leading(UPOS) == "accuracy"


def test_a_word_list_has_the_most_frequent_tags():
    found = learn_word_list([(["can", "can", "fish"], ["AUX", "NOUN", "NOUN"]), (["can"], ["AUX"]), (["x"], ["NOUN"])])
    assert found.tag(["can", "fish", "unknown"]) == ["AUX", "NOUN", "NOUN"]


def test_parts_of_speech_that_end_alike_are_kept_apart():
    assert spans(["CCONJ", "NOUN", "SCONJ"]) == {("CCONJ", 0, 0), ("NOUN", 1, 1), ("SCONJ", 2, 2)}
    sums = count([["NOUN", "SCONJ", "VERB"]], [["NOUN", "CCONJ", "VERB"]]).sum(axis=0)
    assert sums.tolist() == [2, 3, 2, 3, 3]
    # a hyphen makes no prefix, and O alone is outside
    assert spans(["N-sg", "V-sg", "ORD", "NNMS1-----A----"]) == {("N-sg", 0, 0), ("V-sg", 1, 1), ("ORD", 2, 2), ("NNMS1-----A----", 3, 3)}
    assert count([["N-sg", "V-sg"]], [["V-sg", "N-sg"]]).tolist() == [[0, 2, 0, 2, 2]]
    # what begins with S is a span of one word
    assert len(spans(["SYM", "SYM", "X", "X"])) == 3
