"""verdict: judges whether a mapping of two embeddings is good, without a gold lexicon.

A wrong mapping also has many mutual nearest neighbours with a high cosine, because this is what self-learning looks for. Three other
properties are independent of it:

- Words that are spelt the same (names, abbreviations, numbers) usually mean the same; a good mapping puts most of them close together.
- Where there are too few such words, words that translate each other should at least be of similar frequency.
- One space that is a copy of the other needs no further evidence, unless it has few words, of which any mapping brings most near others.

The thresholds were set on some corpora and tested on others (docs/mapping.md).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

import torch

from workflow_scripts.similarity import Similarities, best_pairs, nearest, neighbourhoods

COPY = 0.95
"""Median cosine to the nearest neighbour from which on one space counts as a copy of the other."""
LEAST_WORDS = 1_000
"""Fewer words than this cannot be mapped without a dictionary."""
LEAST_FREQUENCY_CORRELATION = 0.5
"""Smallest rank correlation of the frequencies of paired words in a good mapping."""
LEAST_FOUND = 0.25
"""A good mapping finds this share of the known pairs."""
# fewer known pairs than this decide nothing, and frequencies do
_ENOUGH_WITNESSES = 20
# words that are spelt the same are looked for among so many of the most frequent words
_JUDGED_WORDS = 5_000

# SentencePiece marks the start of a word with ▁
NUMERAL = re.compile(r"▁?[0-9]+")


@dataclass
class Attempt:
    """One attempt to map two embeddings: what it started from, how it ended, and the verdict."""

    start: str
    """Where the first dictionary came from."""
    seed: int
    """Seed of the random choices."""
    good: bool = False
    """The verdict."""
    reason: str = ""
    """Why the mapping is not good; empty if it is."""
    iterations: int = 0
    """Iterations of self-learning."""
    objective: float = 0.0
    """Mean cosine of the words to their nearest neighbours at the end of self-learning (Eq. 3 of Artetxe et al. 2018, without dropout)."""
    mutual: float = 0.0
    """Share of the searched words that are the best partner, by CSLS, of their own best partner."""
    frequency_correlation: float = 0.0
    """Spearman's rank correlation between the frequencies of the two words of these mutual pairs."""
    witnesses: int = 0
    """Number of known pairs that the mapping is tested on: words spelt the same, or a part of the dictionary that was held out."""
    witnesses_found: float = 0.0
    """Share of the known pairs whose second word is among the ten best partners of the first."""

    def summary(self) -> str:
        """The attempt in words, for messages."""
        return f"{self.start}, seed {self.seed}: {self.reason or 'good'}"


def diagnose(
    words: tuple[list[str], list[str]],
    a: torch.Tensor,
    b: torch.Tensor,
    attempt: Attempt,
    *,
    searched: int,
    translated: int,
    neighbours: int = 10,
    matrix: str = "auto",
    witnesses: list[tuple[int, int]] | None = None,
) -> Attempt:
    """Return `attempt` with all measures and the verdict filled in.

    Args:
        words: The words of both languages, most frequent first.
        a: Mapped vectors of the first language (words × dimensions).
        b: Mapped vectors of the second language.
        attempt: How the mapping was made.
        searched: Mutual neighbours are looked for among so many most frequent words.
        translated: Witnesses must be among so many most frequent words.
        neighbours: k of CSLS.
        matrix: How similarities are held in memory (`Similarities`).
        witnesses: Rows of known pairs; by default words that are spelt the same.
    """
    a, b = (torch.nn.functional.normalize(side, dim=1) for side in (a, b))
    frequent = Similarities(a[:searched], b[:searched], matrix)
    near = neighbourhoods(frequent, neighbours)
    best_b, best_a = best_pairs(frequent, near)
    rows = torch.arange(len(best_b), device=best_b.device)
    mutual = best_a[best_b] == rows
    if witnesses is None:
        among, witnesses = _JUDGED_WORDS, spelt_alike(words[0][:_JUDGED_WORDS], words[1][:_JUDGED_WORDS])
    else:
        among, witnesses = translated, [pair for pair in witnesses if max(pair) < translated]
    judged = replace(
        attempt,
        mutual=float(mutual.float().mean()),
        frequency_correlation=rank_correlation(rows[mutual], best_b[mutual]),
        witnesses=len(witnesses),
        witnesses_found=share_found(a[:among], b[:among], witnesses, neighbours, matrix),
    )
    reason = _objection(judged, min(len(a), len(b)), float(near.nearest_x.median()))
    return replace(judged, good=not reason, reason=reason)


def _objection(judged: Attempt, words: int, cosine: float) -> str:
    """Why the mapping is not good; empty if it is."""
    if judged.witnesses >= _ENOUGH_WITNESSES:
        if judged.witnesses_found >= LEAST_FOUND:
            return ""
        what = "pairs of the dictionary that were held out" if judged.start == "supervised" else "words spelt the same"
        return f"of {judged.witnesses} {what} only {judged.witnesses_found:.0%} are found; a good mapping finds {LEAST_FOUND:.0%} or more"
    if judged.start == "unsupervised" and words < LEAST_WORDS:
        return f"{words} words are too few to map without a dictionary; at least {LEAST_WORDS} are needed"
    if cosine >= COPY:
        return ""
    if judged.frequency_correlation < LEAST_FREQUENCY_CORRELATION:
        return (
            f"the frequencies of paired words correlate by only {judged.frequency_correlation:.2f}; "
            f"in a good mapping by {LEAST_FREQUENCY_CORRELATION} or more"
        )
    return ""


def spelt_alike(words_a: list[str], words_b: list[str]) -> list[tuple[int, int]]:
    """Row numbers of the words that occur in both lists and have at least four letters or are numbers."""
    rows_b = {word: row for row, word in enumerate(words_b)}
    return [(row, rows_b[word]) for row, word in enumerate(words_a) if word in rows_b and (len(word) >= 4 or NUMERAL.fullmatch(word))]


def share_found(a: torch.Tensor, b: torch.Tensor, witnesses: list[tuple[int, int]], neighbours: int = 10, matrix: str = "auto") -> float:
    """The share of the pairs of rows whose second row is among the ten best partners of the first by CSLS; 0 without pairs."""
    if not witnesses:
        return 0.0
    similarities = Similarities(a, b, matrix)
    top, _ = nearest(similarities, 10, neighbourhoods(similarities, neighbours))
    rows_a, rows_b = (torch.tensor(side, device=a.device) for side in zip(*witnesses, strict=True))
    return float((top.indices[rows_a] == rows_b[:, None]).any(dim=1).float().mean())


def rank_correlation(x: torch.Tensor, y: torch.Tensor) -> float:
    """Spearman's rank correlation of two lists; 0 for fewer than three numbers."""
    from scipy.stats import spearmanr

    return float(spearmanr(x.cpu(), y.cpu()).statistic) if len(x) >= 3 else 0.0
