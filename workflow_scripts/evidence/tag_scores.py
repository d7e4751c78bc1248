"""tag_scores: how well words are tagged: accuracy of tags, precision, recall and F1 of spans, and what a word list gets.

Spans are those that seqeval finds in its default mode, which is conlleval's (Tjong Kim Sang and Buchholz 2000): an ``I-``
without a ``B-`` of its type before it begins a span. A span is right if its type, beginning and end are. seqeval is what XGLUE
and XTREME score with, on part-of-speech tags as well: there a span is a run of words with the same tag. XTREME takes its F1,
and XGLUE's script its precision (the paper says accuracy). Sentences are read one by one: over several, seqeval lets the
tag X, of which it sees no type, begin a span in the sentence before.

A score is made of the sums of what was counted in sentences, so that tests of significance can draw sentences anew.
"""

import warnings
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from workflow_scripts.text.tagged import has_spans

Tags = Sequence[str]
"""The tags of a sentence, one a word."""

COUNTS = ("words_right", "words", "spans_right", "spans_given", "spans_true")
"""What is counted in each sentence, in this order."""


def count(truth: Sequence[Tags], given: Sequence[Tags]) -> np.ndarray:
    """What is counted in each sentence (sentences × `COUNTS`); raises ValueError where lengths differ."""
    rows = []
    for true_tags, given_tags in zip(truth, given, strict=True):
        right = sum(a == b for a, b in zip(true_tags, given_tags, strict=True))
        true_spans, given_spans = spans(true_tags), spans(given_tags)
        rows.append((right, len(true_tags), len(true_spans & given_spans), len(given_spans), len(true_spans)))
    return np.array(rows, dtype=np.float64).reshape(-1, len(COUNTS))


def spans(tags: Tags) -> set[tuple[str, int, int]]:
    """Type, first and last word of each span in a sentence, as seqeval finds them."""
    from seqeval.metrics.sequence_labeling import get_entities

    with warnings.catch_warnings():
        # it warns of tags without B- or I-, which it then reads as XTREME and XGLUE have it
        warnings.filterwarnings("ignore", message=".* seems not to be NE tag")
        return set(get_entities(list(tags)))


def accuracy(sums: np.ndarray) -> float:
    """Words with the right tag, from 0 to 1."""
    return _share(sums[0], sums[1])


def precision(sums: np.ndarray) -> float:
    """Spans that are right among those given, from 0 to 1."""
    return _share(sums[2], sums[3])


def recall(sums: np.ndarray) -> float:
    """Spans that are found among the true ones, from 0 to 1."""
    return _share(sums[2], sums[4])


def f1(sums: np.ndarray) -> float:
    """The harmonic mean of precision and recall of spans, from 0 to 1."""
    return _share(2 * sums[2], sums[3] + sums[4])


def _share(part: float, whole: float) -> float:
    return float(part / whole) if whole else 0.0


SCORES = {"accuracy": accuracy, "f1": f1, "precision": precision, "recall": recall}
"""Score → what makes it of the sums of `COUNTS`."""


def leading(tags: Iterable[str]) -> str:
    """The score that stands for the others: F1 where tags mark spans, else accuracy."""
    return "f1" if has_spans(tags) else "accuracy"


class WordList(NamedTuple):
    """The tag that each word has most often in a text, and the most frequent tag of all, for other words."""

    words: dict[str, str]
    other: str

    def tag(self, words: Iterable[str]) -> list[str]:
        """A tag for each word, whatever stands around it."""
        return [self.words.get(word, self.other) for word in words]


def learn_word_list(sentences: Iterable[tuple[Sequence[str], Tags]]) -> WordList:
    """The word list of sentences (words and their tags); of tags that are as frequent the one that came first."""
    by_word: dict[str, Counter[str]] = defaultdict(Counter)
    every: Counter[str] = Counter()
    for words, tags in sentences:
        every.update(tags)
        for word, tag in zip(words, tags, strict=True):
            by_word[word][tag] += 1
    return WordList({word: counts.most_common(1)[0][0] for word, counts in by_word.items()}, every.most_common(1)[0][0])
