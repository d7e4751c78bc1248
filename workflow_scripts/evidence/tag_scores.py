"""tag_scores: how well words are tagged: accuracy of tags, precision, recall and F1 of spans, and what a word list gets.

Spans are found by seqeval in its default mode, which follows conlleval (Tjong Kim Sang and Buchholz 2000). An ``I-`` that does
not follow a tag of its type begins a new span. A span is right if its type, beginning and end are right. XGLUE and XTREME also
score with seqeval, even part-of-speech tags: there a span is a run of words with the same tag. XTREME reports its F1; XGLUE's
script reports its precision (its paper says accuracy). Of a tag such as NOUN today's seqeval takes the first letter for a prefix
and the rest for the type, so that CCONJ and SCONJ are one type. Before its version 1.0 the type was the whole tag, as it is here.
SCONJ and SYM begin with the S of a span of one word, so that two of them are never one span. Tags with a hyphen, such as N-sg, and
tags that begin with O are whole tags as well.

Scores are computed from sums of counts per sentence, so that tests of significance can resample sentences.
"""

import re
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from workflow_scripts.evidence.counted import share
from workflow_scripts.text.tagged import has_spans

Tags = Sequence[str]
"""The tags of a sentence, one a word."""

COUNTS = ("words_right", "words", "spans_right", "spans_given", "spans_true")
"""Names of the counts of a sentence, in the order of the columns."""


def count(truth: Sequence[Tags], given: Sequence[Tags]) -> np.ndarray:
    """Counts of each sentence (sentences × `COUNTS`). Raises ValueError if a sentence has another number of tags than it should."""
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
        # seqeval warns of tags without B- or I-, but reads them in the way that XTREME and XGLUE intend
        warnings.filterwarnings("ignore", message=".* seems not to be NE tag")
        # the mark keeps the tag _ apart from the type that seqeval gives to the O behind a sentence
        found = get_entities([tag if tag == "O" or _PREFIXED.match(tag) else f"{_prefix(tag)}-{_MARK}{tag}" for tag in tags])
    return {(kind.removeprefix(_MARK), first, last) for kind, first, last in found}


_MARK = "="
_PREFIXED = re.compile("[BIESLU]-.")


def _prefix(tag: str) -> str:
    """What seqeval takes for the prefix of a tag of one word; by an O or a full stop there would be no span."""
    return "_" if tag[0] in "O." else tag[0]


def accuracy(sums: np.ndarray) -> float:
    """Words with the right tag, from 0 to 1."""
    return share(sums[0], sums[1])


SCORES = {
    "accuracy": accuracy,
    "f1": lambda sums: share(2 * sums[2], sums[3] + sums[4]),
    "precision": lambda sums: share(sums[2], sums[3]),
    "recall": lambda sums: share(sums[2], sums[4]),
}
"""Score → what makes it, from 0 to 1, of the sums of `COUNTS`: accuracy is of words, the others are of spans."""


def leading(tags: Iterable[str]) -> str:
    """The main score: F1 if the tags mark spans, otherwise accuracy."""
    return "f1" if has_spans(tags) else "accuracy"


class WordList(NamedTuple):
    """Baseline without a model: each word's most frequent tag in a text; all other words get the most frequent tag of the text."""

    words: dict[str, str]
    other: str

    def tag(self, words: Iterable[str]) -> list[str]:
        """One tag for each word; its context is not looked at."""
        return [self.words.get(word, self.other) for word in words]


def learn_word_list(sentences: Iterable[tuple[Sequence[str], Tags]]) -> WordList:
    """Make the word list from sentences (words and their tags). Among equally frequent tags the first one is taken."""
    by_word: dict[str, Counter[str]] = defaultdict(Counter)
    every: Counter[str] = Counter()
    for words, tags in sentences:
        every.update(tags)
        for word, tag in zip(words, tags, strict=True):
            by_word[word][tag] += 1
    return WordList({word: counts.most_common(1)[0][0] for word, counts in by_word.items()}, every.most_common(1)[0][0])
