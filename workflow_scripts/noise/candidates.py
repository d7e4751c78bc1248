"""candidates: what words are replaced by: a lexicon's candidates for each word, scrambled for the control `random`.

`Lookup` finds the candidates of words as they are spelt in text; `Lookups` has several target languages, one of which is drawn for each
sentence.
"""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from workflow_scripts import philox
from workflow_scripts.stage import InputError
from workflow_scripts.text.spelling import Spellings
from workflow_scripts.text.word_lists import read_lexicon
from workflow_scripts.text.words import fold

Candidates = dict[str, list[str]]
"""Lower-cased word → its candidates in the other language, best first."""


def load_candidates(path: Path, units: Iterable[str], languages: tuple[str, str], what: str = "word") -> Candidates:
    """Read a lexicon file that is to switch text.

    Args:
        path: The lexicon.
        units: Lower-cased words of the text, or its pieces; they are looked at until the lexicon has one.
        languages: Language of the text, and of the candidates.
        what: What the `units` are called in an error.

    Raises:
        InputError: It is empty, or has none of the `units`, so that the text would stay as it is.
    """
    candidates: Candidates = {}
    for word, candidate, _ in read_lexicon(path):
        candidates.setdefault(word, []).append(candidate)
    if not candidates:
        raise InputError(
            f"{path}: the lexicon has no entries, nothing can be switched; look at lexicon.json, at lexicon.min_score, and at the mapping "
            "or the dictionary"
        )
    if candidates.keys().isdisjoint(units):
        raise InputError(
            f"{path}: has no {what} of the text in {languages[0]}; give a dictionary {'-'.join(languages)}, or vectors, with {what}s of it"
        )
    return candidates


def permute_candidates(candidates: Candidates, counts: Counter[str], size: int, seed: int) -> Candidates:
    """Permute the target words of a lexicon among words of similar frequency: the lexicon of the control `random`.

    The target words are sorted by frequency and divided into bins of `size` neighbours. One permutation within the bins renames all of
    them, so that frequent words stay frequent, but no word keeps its translations (in a lexicon of a single target word it has to). A
    candidate that after this equals its source word, or was among its translations, is dropped; a word that would lose all candidates
    gets the most frequent target word that is neither itself nor one of its translations.

    Args:
        candidates: The lexicon.
        counts: Frequency of each target word.
        size: Words per bin.
        seed: Seed of the permutation.
    """
    rng = philox.generator(seed, 1 << 32, 0)
    targets = sorted({c for row in candidates.values() for c in row}, key=lambda word: (-counts[word], word))
    renamed: dict[str, str] = {}
    # the last bin is never a single word, which could only stay where it is
    starts = [start for start in range(0, len(targets), size) if start == 0 or len(targets) - start > 1]
    for start, end in zip(starts, [*starts[1:], len(targets)], strict=True):
        group = targets[start:end]
        order = rng.permutation(len(group))
        # each word takes the name of the one before it in random order: a cycle, in which no word keeps its own name
        for here, there in zip(order, np.roll(order, 1), strict=True):
            renamed[group[here]] = group[there]
    permuted: Candidates = {}
    for word, row in candidates.items():
        wrong = [renamed[c] for c in row if renamed[c] not in (word, *row)]
        permuted[word] = wrong or [next((c for c in targets if c not in (word, *row)), targets[-1])]
    return permuted


class Lookup(dict):
    """Word as spelt in the text → number of its row of candidates. Row 0 has no candidates.

    It is a cache: it computes an entry when asked for the first time, and is emptied when it holds `limit` words.
    """

    limit = 1_000_000

    def __init__(self, candidates: Candidates, code: str, into: str = "", spellings: tuple[Spellings, Spellings] | None = None):
        """Candidates of words of the language `code` in the language `into`. `spellings` are those of both; without them words and
        candidates are in lower case, and `usual` has no word."""
        super().__init__()
        self.code = code
        own, others = spellings or ({}, {})
        self.rows = [[], *([others.get(c, c) for c in row] for row in candidates.values())]
        self.usual = ["", *(own.get(word, word) if spellings else "" for word in candidates)]
        self.choices = np.array([len(row) for row in self.rows])
        self.languages = [into] * len(self.rows)  # of each row of candidates
        self.folded = {word: number for number, word in enumerate(candidates, 1)}

    def __missing__(self, word: str) -> int:
        if len(self) >= self.limit:
            self.clear()
        self[word] = number = self.folded.get(fold(word, self.code), 0)
        return number

    def numbers(self, surface: list[str]) -> np.ndarray:
        """The row number of each word (1 × words)."""
        return np.fromiter(map(self.__getitem__, surface), np.int64, len(surface))[None]


class Lookups:
    """Candidates in several languages, one of which is drawn for each sentence. The rows of all languages are concatenated."""

    def __init__(self, lookups: list[Lookup]):
        self.lookups = lookups
        self.code = lookups[0].code
        self.rows = [row for lookup in lookups for row in lookup.rows]
        self.usual = [word for lookup in lookups for word in lookup.usual]
        self.choices = np.concatenate([lookup.choices for lookup in lookups])
        self.starts = np.cumsum([0, *(len(lookup.rows) for lookup in lookups[:-1])])
        self.languages = [language for lookup in lookups for language in lookup.languages]

    def numbers(self, surface: list[str]) -> np.ndarray:
        """The row number of each word in each language (languages × words)."""
        return np.concatenate([lookup.numbers(surface) + start for lookup, start in zip(self.lookups, self.starts, strict=True)])


def draw_language(numbers: np.ndarray, before: np.ndarray, seed: int, stream: int, first: int) -> np.ndarray:
    """The row numbers of words in the language that is drawn for their sentence; `numbers` has those in all languages (languages × words).

    For a sentence, both sides of a round draw the same language. `before` has the number of words before each sentence, and in all;
    `seed`, `stream` and `first` (number of the first sentence) key the random choice as in `span_noise.choose_words`.
    """
    if len(numbers) == 1:
        return numbers[0]
    drawn = philox.integers(len(before) - 1, len(numbers), seed, _LANGUAGES + stream // 2, first)
    return numbers[np.repeat(drawn, np.diff(before)), np.arange(numbers.shape[1])]


# random streams from here on draw languages; streams of the noise have smaller numbers
_LANGUAGES = 1 << 33


def load_lookups(
    lexicons: tuple[Path, ...], code: str, into: tuple[str, ...], counts: Counter[str], size: int, scrambled: int | None = None
) -> Lookup | Lookups:
    """Read one lexicon for each language of `into`; without a lexicon no word has candidates.

    Args:
        lexicons: Lexicon files, in the order of `into`.
        code: Language of the text.
        into: Languages of the candidates.
        counts: Words of the text and their frequencies.
        size: Words per bin, see `permute_candidates`.
        scrambled: Seed of the permutation for the control `random`; None leaves the lexicons as they are.

    Raises:
        InputError: A lexicon is empty, or has no word of the text.
    """
    if not lexicons:
        return Lookup({}, code)
    lookups = []
    for path, other in zip(lexicons, into, strict=True):
        candidates = load_candidates(path, counts, (code, other))
        if scrambled is not None:
            # without text in the other language, a target word counts as frequent as the words that it translates
            frequency: Counter[str] = Counter()
            for word, row in candidates.items():
                frequency.update(dict.fromkeys(row, counts[word]))
            candidates = permute_candidates(candidates, frequency, size, scrambled)
        lookups.append(Lookup(candidates, code, other))
    return Lookups(lookups)
