"""spelling: how a text spells its words: *Datei* and *PDF* with capitals, *öffnen* without, but for the beginning of a sentence.

Lexicons have words in lower case. This is what turns them into words as the text has them, and tells a capital that belongs to the word
from one that belongs to its place.
"""

from collections import Counter
from pathlib import Path
from typing import NamedTuple

import numpy as np

from workflow_scripts.text.files import chunks, read_lines
from workflow_scripts.text.words import BREAK, SOFT_HYPHEN, Words, fold, words_of

Spellings = dict[str, str]
"""Lower-cased word → its usual spelling, where that is another one."""


class Vocabulary(NamedTuple):
    """The words of a text."""

    counts: Counter[str]
    """Lower-cased word → number of its occurrences."""
    spellings: Spellings


def read_vocabulary(path: Path, code: str) -> Vocabulary:
    """The words of a text in the language `code`, and how they are mostly spelt where no sentence begins.

    Words that only begin sentences have no usual spelling. Among equally frequent spellings, the one with fewer capitals counts.
    """
    inside: Counter[str] = Counter()
    opening: Counter[str] = Counter()
    for lines in chunks(read_lines(path)):
        words = words_of(lines, code)
        surface, first = words.strings(), begins_sentence(words).nonzero()[0].tolist()
        inside.update(surface)
        opening.update([surface[word] for word in first])
    counts: Counter[str] = Counter()
    usual: dict[str, tuple[int, str]] = {}
    for word, count in inside.items():
        folded = fold(word, code)
        counts[folded] += count
        # capitals come before small letters in Unicode
        if (left := count - opening[word]) and (spelt := (left, word.replace(SOFT_HYPHEN, ""))) > usual.get(folded, (0, "")):
            usual[folded] = spelt
    return Vocabulary(counts, {folded: spelt for folded, (_, spelt) in usual.items() if spelt != folded})


# after these the next word may be capitalised for its place alone; scripts without capitals do not matter
_MARKS = np.array([ord(mark) for mark in ".!?…:։\n"], np.uint32)
_BLANKS = np.array([ord(blank) for blank in " \u00a0\u202f"], np.uint32)


def begins_sentence(words: Words) -> np.ndarray:
    """For each word, whether a line or a sentence begins with it: the word before it, if there is one, is followed by a mark, which may
    stand after a blank, as in French."""
    letters = np.frombuffer(words.text.replace(BREAK, "." * len(BREAK)).encode("utf-32-le", "surrogatepass"), np.uint32)
    begins = np.zeros(len(words.starts), bool)
    begins[words.before[:-1][np.diff(words.before) > 0]] = True
    after = words.ends[:-1]
    begins[1:] |= np.isin(letters[after + np.isin(letters[after], _BLANKS)], _MARKS)
    return begins
