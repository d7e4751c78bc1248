"""answers: how well spans answer questions: exact match and F1 of words, as SQuAD and as MLQA count them.

Both are of Rajpurkar et al. (2016, section 6.1). Answers are compared in lower case, without punctuation and articles. Exact match is
whether nothing differs then; F1 is that of their words, counted as often as they occur. Of several right answers the best counts, for
each score by itself.

=========  ========================================  =========================================  ==================================
           articles                                  punctuation                                words
=========  ========================================  =========================================  ==================================
SQuAD      a, an, the, whatever the language         that of ASCII                              what blanks separate
MLQA       those of the language (Lewis et al.       that of ASCII and all of Unicode           what blanks separate; in Chinese
           2020): en, es, de, ar, vi                                                            each Han character is a word
=========  ========================================  =========================================  ==================================

XQuAD and TyDiQA are scored as SQuAD, in XTREME as well; MLQA as MLQA, in XGLUE as well. So by SQuAD's way, F1 in a language that is
written without blanks is hardly more than exact match. MLQA's way says nothing of languages beside its seven; here they have no
articles. Cantonese, Japanese, Thai, Lao, Khmer, Burmese, Shan, Tibetan and Dzongkha are split into characters, as Chinese is.
"""

import re
import string
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
import regex

from workflow_scripts.evidence.counted import mean_of
from workflow_scripts.text.words import UNSPACED

COUNTS = ("f1", "em", "f1_mlqa", "em_mlqa", "questions")
"""What is counted in each question, in this order; scores are from 0 to 1."""

_ASCII = regex.compile(f"[{re.escape(string.punctuation)}]")
_PUNCTUATION = regex.compile(rf"[\p{{P}}{re.escape(string.punctuation)}]")
_SQUAD_ARTICLES = re.compile(r"\b(a|an|the)\b")
_ARTICLES = {
    "en": _SQUAD_ARTICLES,
    "es": re.compile(r"\b(un|una|unos|unas|el|la|los|las)\b"),
    "de": re.compile(r"\b(ein|eine|einen|einem|eines|einer|der|die|das|den|dem|des)\b"),
    "vi": re.compile(r"\b(của|là|cái|chiếc|những)\b"),
    # wherever it stands in a word, as MLQA's script has it
    "ar": re.compile("ال"),
}
_HAN = regex.compile(r"[\u4e00-\u9fa5]")
_CHARACTER = regex.compile(rf"[{UNSPACED}\p{{Tibetan}}]\p{{M}}*")
_CHARACTERS = {"zh": _HAN, **dict.fromkeys(("yue", "ja", "th", "lo", "km", "my", "shn", "bo", "dz"), _CHARACTER)}
"""Of languages without blanks between words: what is a word by itself."""


def count(truth: Sequence[Sequence[str]], given: Sequence[str], code: str) -> np.ndarray:
    """What is counted in each question (questions × `COUNTS`): the scores of the answer `given` against all right ones.

    `code` is the language of the answers. Raises ValueError where the numbers of questions differ.
    """
    ways: tuple[Callable[[str], list[str]], ...] = (squad_words, lambda text: mlqa_words(text, code))
    rows = []
    for right, answer in zip(truth, given, strict=True):
        row: list[float] = []
        for words in ways:
            mine, others = words(answer), [words(text) for text in right]
            row += [max(overlap(mine, other) for other in others), float(mine in others)]
        rows.append((*row, 1.0))
    return np.array(rows, dtype=np.float64).reshape(-1, len(COUNTS))


def squad_words(text: str) -> list[str]:
    """The words of an answer as SQuAD's script compares them."""
    return _SQUAD_ARTICLES.sub(" ", _ASCII.sub("", text.lower())).split()


def mlqa_words(text: str, code: str) -> list[str]:
    """The words of an answer as MLQA's script compares them in a language."""
    text = _PUNCTUATION.sub("", text.lower())
    if code in _ARTICLES:
        text = _ARTICLES[code].sub(" ", text)
    if code in _CHARACTERS:
        text = _CHARACTERS[code].sub(r" \g<0> ", text)
    return text.split()


def overlap(given: Sequence[str], right: Sequence[str]) -> float:
    """F1 of two answers' words, from 0 to 1; 0 where one has none."""
    common = sum((Counter(given) & Counter(right)).values())
    return 2 * common / (len(given) + len(right)) if common else 0.0


SCORES = {name: mean_of(column) for column, name in enumerate(COUNTS[:-1])}
"""Score → what makes it, from 0 to 1, of the sums of `COUNTS`."""
