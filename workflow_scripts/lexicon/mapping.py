"""mapping: two embeddings into one space, with whatever is known to start from, or with nothing.

The method of Artetxe, Labaka and Agirre (ACL 2018), "A robust self-learning method for fully
unsupervised cross-lingual mappings of word embeddings", written from the paper:

1. normalise both sides: unit length, centre, unit length (section 3.1)
2. guess a first dictionary: words that mean the same have similar sorted lists of similarities to
   their own language (3.2); or take words spelt the same, numerals, or a given dictionary
3. repeat: the rotation that fits the dictionary best, then a new dictionary by CSLS in both
   directions among the most frequent words; drop most of the similarities at random, fewer and
   fewer as the objective stalls (3.3); then again among all words, with nothing dropped
4. whiten, rotate, re-weight by the cross-correlations, de-whiten (3.4)

Self-learning can end in a useless solution. So each one is judged (`diagnose`), and a bad one is
followed by another seed, then by the configured fallbacks; what was tried stands in the report.
"""

import re
import time
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import numpy as np
import torch

from workflow_scripts.device import keep_memory, pick_device
from workflow_scripts.lexicon.similarity import Noise, Similarities, best_pairs, nearest, neighbourhoods, set_threads
from workflow_scripts.lexicon.vectors import read_vectors, write_vectors
from workflow_scripts.limits import Limits, Natural, NotNegative, Positive
from workflow_scripts.stage import InputError, checksums, run, write_json
from workflow_scripts.text.word_lists import read_dictionary
from workflow_scripts.text.words import fold

Start = Literal["unsupervised", "identical", "numerals"]


@dataclass
class Mapping:
    """Settings of the mapping; the defaults are the paper's, but for the smaller search."""

    mode: Literal["unsupervised", "identical", "numerals", "semi_supervised", "supervised", "mapped", "dictionary", "aligned"] = (
        "unsupervised"
    )
    """What the mapping starts from. `unsupervised`: nothing. `identical`: words spelt the same. `numerals`: numbers.
    `semi_supervised`: a small dictionary, then self-learning. `supervised`: a full dictionary, no self-learning.
    `mapped`: the vectors share a space already. `dictionary`: no vectors at all, the dictionary is the lexicon. `aligned`: no vectors
    either; a statistical aligner makes the lexicon from the parallel training text, as an upper bound for lexicons that never see it."""
    restarts: Natural = 2
    """More attempts with other seeds where the unsupervised solution is bad."""
    fallback: list[Literal["identical", "numerals"]] = field(default_factory=lambda: ["identical", "numerals"])
    """What to start from then, one after the other."""
    on_failure: Literal["stop", "warn"] = "stop"
    """What to do when no attempt is good: `stop` with an error, or write the best one and `warn`."""
    max_words: Positive = 200_000
    """So many words are read from either file; rarer ones get no translation."""
    cutoff: Positive = 20_000
    """The last dictionary is induced among so many most frequent words of either side."""
    search_cutoff: Positive = 1_500
    """The stochastic search stays among so many most frequent words. The paper's is 20,000; the vectors of
    a small corpus's rare words only lead it astray (docs/mapping.md), and few words are fast."""
    initial_words: Positive = 4_000
    """Most frequent words that take part in the first guess, within the search's."""
    csls_neighbours: Positive = 10
    """k of CSLS, cross-domain similarity local scaling (Conneau et al. 2018)."""
    keep_probability: Annotated[float, Limits(gt=0, le=1)] = 0.1
    """Share of similarities that survive at first."""
    keep_growth: Annotated[float, Limits(ge=1)] = 2.0
    """The share grows by this factor when the objective has stalled."""
    patience: Positive = 50
    """Iterations without gain that count as stalled."""
    threshold: NotNegative = 1e-6
    """Gain of the objective (mean cosine of the induced pairs) that counts."""
    reweight: NotNegative = 0.5
    """Power of the cross-correlations that scales the dimensions of either side."""
    max_iterations: Positive = 5_000
    """Give up after so many."""
    matrix: Literal["auto", "float32", "float16", "blocks"] = "auto"
    """How the similarity matrix is held: in this precision, or computed again in blocks. auto: what fits 1 GB."""
    product: Literal["float32", "bfloat16"] = "float32"
    """Precision of the matrix product. bfloat16 was slower on every processor it was tried on (docs/mapping.md)."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Where to compute."""


def main(
    vectors_a: Path,
    vectors_b: Path,
    mapped_a: Path,
    mapped_b: Path,
    report: Path,
    *,
    dictionary: Path | None = None,
    languages: tuple[str, str] | None = None,
    seed: int = 1,
    threads: int = 0,
    settings: Mapping = Mapping(),
) -> None:
    """Map two embeddings into one space, write both, and write how it went.

    Vectors are word2vec text (fastText's .vec too; plain, .gz, .xz or .zst) or word2vec binary (.bin), the
    most frequent words first.

    Args:
        vectors_a: Vectors of the first language.
        vectors_b: Vectors of the second language, of the same dimension.
        mapped_a: Where the first language's mapped vectors go; .bin writes binary.
        mapped_b: Where the second language's go.
        report: Where the verdict and what led to it go, as JSON.
        dictionary: What the modes semi_supervised and supervised start from: two words a line, separated by a
            tab or a blank (MUSE's format).
        languages: Codes of the languages; with them words and dictionary are lower-cased like Crossgap's own text, and of
            words that then are the same the most frequent stays.
        seed: Of the random choices of self-learning.
        threads: CPU threads; 0 takes torch's choice. Never changes more than the last digits of an iteration.

    Raises:
        InputError: The input is bad, or no attempt gives a good solution.
    """
    if settings.mode == "dictionary":
        raise InputError("mapping.mode dictionary maps nothing: give the dictionary to the lexicon stage (--dictionary)")
    if settings.mode == "aligned":
        raise InputError("mapping.mode aligned maps nothing: the lexicon stage aligns the text itself (--aligned)")
    if settings.mode in ("semi_supervised", "supervised") and not dictionary:
        raise InputError(f"mapping.mode {settings.mode} needs a dictionary (--dictionary)")
    keep_memory()
    if threads:
        set_threads(threads)
    device = pick_device(settings.device)
    words_a, a = _folded(*read_vectors(vectors_a, settings.max_words), languages[0] if languages else None)
    words_b, b = _folded(*read_vectors(vectors_b, settings.max_words), languages[1] if languages else None)
    check(vectors_a, a, vectors_b, b)
    _check_size(vectors_a, a)
    _check_size(vectors_b, b)
    started = time.perf_counter()
    sides = Sides(words_a, words_b, *(torch.from_numpy(x).to(device) for x in (a, b)))
    pairs = read_dictionary(dictionary, languages) if dictionary else []
    chosen, attempts = map_with_fallbacks(sides, pairs, seed, settings)
    seconds = time.perf_counter() - started
    if not chosen.attempt.good:
        message = (
            f"{vectors_a} and {vectors_b}: no good mapping found, the lexicon would be useless "
            f"({'; '.join(tried.told() for tried in attempts)}). Give more or more coherent text, or a dictionary "
            "(mapping.mode: semi_supervised); or go on all the same with mapping.on_failure: warn"
        )
        if settings.on_failure == "stop":
            raise InputError(message)
        print(f"warning: {message}", flush=True)
    write_vectors(mapped_a, words_a, chosen.a.cpu().numpy())
    write_vectors(mapped_b, words_b, chosen.b.cpu().numpy())
    write_json(
        report,
        {
            **asdict(chosen.attempt),
            "attempts": [asdict(tried) for tried in attempts],
            "words": [len(words_a), len(words_b)],
            "dimensions": a.shape[1],
            "seconds": round(seconds, 1),
            "device": str(device),
            "checksums": checksums((vectors_a, vectors_b, dictionary)),
            "settings": asdict(settings),
        },
    )


class Sides(NamedTuple):
    """Words, most frequent first, and their vectors (words × dimensions)."""

    words_a: list[str]
    words_b: list[str]
    a: torch.Tensor
    b: torch.Tensor


@dataclass
class Attempt:
    """What one attempt started from and where it ended; the measures need no gold lexicon."""

    start: str
    """Where the first dictionary came from."""
    seed: int
    good: bool = False
    """The verdict (`diagnose`)."""
    reason: str = ""
    """Why not."""
    iterations: int = 0
    objective: float = 0.0
    """Mean cosine of the words to their nearest neighbours when self-learning ended (Eq. 3, nothing dropped)."""
    mutual: float = 0.0
    """Share of the searched words whose best partner by CSLS has them as its best partner."""
    frequency_correlation: float = 0.0
    """Rank correlation of the frequencies of those pairs."""
    witnesses: int = 0
    """Words that both sides spell the same, or pairs of the dictionary that were kept back."""
    witnesses_found: float = 0.0
    """Share of those whose second word is among the ten best partners of the first."""

    def told(self) -> str:
        """In words, for a message."""
        return f"{self.start}, seed {self.seed}: {self.reason or 'good'}"


class Mapped(NamedTuple):
    """Both sides in the shared space, and how it went."""

    a: torch.Tensor
    b: torch.Tensor
    attempt: Attempt


def map_with_fallbacks(sides: Sides, pairs: list[tuple[str, str]], seed: int, settings: Mapping) -> tuple[Mapped, list[Attempt]]:
    """The first good solution, or else the least bad; and all that was tried."""
    planned = [(settings.mode, seed)]
    if settings.mode == "unsupervised":
        planned += [("unsupervised", seed + n) for n in range(1, settings.restarts + 1)]
        planned += [(start, seed) for start in settings.fallback]
    solutions: list[Mapped] = []
    attempts: list[Attempt] = []
    for start, attempt_seed in planned:
        try:
            solution = map_once(sides, start, pairs, attempt_seed, settings)
        except InputError as error:
            # a fallback that finds no word to start from is one more failed attempt
            if start == settings.mode:
                raise
            attempts.append(Attempt(start, attempt_seed, reason=str(error)))
            continue
        solutions.append(solution)
        attempts.append(solution.attempt)
        print(solution.attempt.told(), flush=True)
        if solution.attempt.good:
            return solution, attempts
    return max(solutions, key=lambda s: (s.attempt.witnesses_found, s.attempt.frequency_correlation)), attempts


def map_once(sides: Sides, start: str, pairs: list[tuple[str, str]], seed: int, settings: Mapping) -> Mapped:
    """Map `sides` from one start; rows in order of frequency. Raises `InputError` when there is nothing to start from."""
    if start == "mapped":
        return Mapped(sides.a, sides.b, diagnose(sides, sides.a, sides.b, Attempt(start, seed), settings))
    a, b = normalise(sides.a), normalise(sides.b)
    near = min(settings.search_cutoff, settings.cutoff)
    guessed = start == "unsupervised"
    dictionary = initial_dictionary(a[:near], b[:near], settings) if guessed else dictionary_of(sides, start, pairs)
    found = Found(dictionary, 0.0, 0)
    if start != "supervised":
        noise = Noise(seed, a.device)
        found = self_learn(a, b, near, dictionary, settings.keep_probability, noise, settings)
        if near < max(len(a), len(b)):
            refined = self_learn(a, b, settings.cutoff, found.dictionary, 1.0, noise, replace(settings, patience=3))
            found = refined._replace(iterations=found.iterations + refined.iterations)
    mapped_a, mapped_b = symmetric_reweighting(a, b, found.dictionary, settings.reweight)
    attempt = Attempt(start, seed, iterations=found.iterations, objective=found.objective)
    if start == "supervised":
        # the dictionary cannot witness for itself: a fifth of it judges a mapping made from the rest
        held_out = torch.arange(len(dictionary[0]), device=a.device) % 5 == 4
        trial = symmetric_reweighting(a, b, tuple(side[~held_out] for side in dictionary), settings.reweight)
        witnesses = list(zip(*(side[held_out].tolist() for side in dictionary), strict=True))
        return Mapped(mapped_a, mapped_b, diagnose(sides, *trial, attempt, settings, witnesses))
    return Mapped(mapped_a, mapped_b, diagnose(sides, mapped_a, mapped_b, attempt, settings))


# ---------------------------------------------------------------------------------------------
# the steps

Dictionary = tuple[torch.Tensor, torch.Tensor]
"""Row numbers on either side, pair by pair."""


def normalise(x: torch.Tensor) -> torch.Tensor:
    """Unit rows, centred columns, unit rows again."""
    x = torch.nn.functional.normalize(x, dim=1)
    return torch.nn.functional.normalize(x - x.mean(dim=0), dim=1)


def initial_dictionary(a: torch.Tensor, b: torch.Tensor, settings: Mapping) -> Dictionary:
    """Pair words by their sorted similarities to the other words of their own language.

    The square root of the similarity matrix is sorted instead of the matrix itself (section 3.2);
    with X = USVᵀ it is USUᵀ.
    """
    n = min(settings.initial_words, len(a), len(b))
    signatures = []
    for side in (a, b):
        u, s, _ = torch.linalg.svd(side[:n], full_matrices=False)
        signatures.append(normalise(((u * s) @ u.T).sort(dim=1).values))
    similarities = Similarities(*signatures, settings.matrix)
    return union(*best_pairs(similarities, neighbourhoods(similarities, settings.csls_neighbours)))


def dictionary_of(sides: Sides, start: str, pairs: list[tuple[str, str]]) -> Dictionary:
    """The rows of words spelt the same, of numerals, or of the given pairs.

    Raises `InputError` when that is nothing.
    """
    rows_a = {word: row for row, word in enumerate(sides.words_a)}
    rows_b = {word: row for row, word in enumerate(sides.words_b)}
    if start in ("identical", "numerals"):
        pairs = [(word, word) for word in sides.words_a if word in rows_b and (start == "identical" or _NUMERAL.fullmatch(word))]
        if not pairs:
            raise InputError(f"mapping.mode {start}: the two vocabularies have no such word in common")
    known = [(rows_a[x], rows_b[z]) for x, z in dict.fromkeys(pairs) if x in rows_a and z in rows_b]
    if not known:
        raise InputError(
            f"mapping.mode {start}: none of the {len(pairs)} pairs of the dictionary has both words in the vectors; is it in the "
            "order of the languages, lower-cased like the vectors?"
        )
    print(f"{start}: starts from {len(known)} of {len(pairs)} pairs", flush=True)
    return tuple(torch.tensor(side, device=sides.a.device) for side in zip(*known, strict=True))


# ▁ is how SentencePiece starts a word
_NUMERAL = re.compile(r"▁?[0-9]+")


class Found(NamedTuple):
    """Where self-learning ended."""

    dictionary: Dictionary
    objective: float
    iterations: int


def self_learn(
    a: torch.Tensor, b: torch.Tensor, cutoff: int, dictionary: Dictionary, keep: float, noise: Noise, settings: Mapping
) -> Found:
    """Alternate rotation and dictionary until the objective stalls with nothing dropped.

    The dictionary is induced among the first `cutoff` rows; the given one may name any. `keep` is the
    share of similarities that survive at first; with 1 nothing is random.
    """
    best = -torch.inf
    improved_at = iteration = 0
    similarities = Similarities(a[:cutoff], b[:cutoff], settings.matrix, settings.product)
    while True:
        similarities.multiply(a[:cutoff] @ procrustes(a[dictionary[0]], b[dictionary[1]]))
        near = neighbourhoods(similarities, settings.csls_neighbours)
        dictionary = union(*best_pairs(similarities, near, keep, noise))
        iteration += 1
        objective = float(near.nearest_x.mean() + near.nearest_z.mean()) / 2
        if objective >= best + settings.threshold:
            best, improved_at = objective, iteration
        if iteration >= settings.max_iterations:
            break
        if iteration - improved_at > settings.patience:
            if keep >= 1:
                break
            keep = min(1.0, keep * settings.keep_growth)
            improved_at = iteration
            print(f"iteration {iteration}: objective {best:.4f}, keep probability now {keep:.2f}", flush=True)
    print(f"iteration {iteration}: objective {best:.4f}", flush=True)
    return Found(dictionary, best, iteration)


def procrustes(x: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
    """The orthogonal W that brings x W nearest to z (Schönemann 1966)."""
    u, _, vt = torch.linalg.svd(x.T @ z)
    return u @ vt


def symmetric_reweighting(a: torch.Tensor, b: torch.Tensor, dictionary: Dictionary, power: float) -> tuple[torch.Tensor, torch.Tensor]:
    """The final map: whitening, rotation, re-weighting, de-whitening (section 3.4), for all rows."""
    x, z = a[dictionary[0]].double(), b[dictionary[1]].double()
    white_x, colour_x = _whitening(x)
    white_z, colour_z = _whitening(z)
    u, s, vt = torch.linalg.svd((x @ white_x).T @ (z @ white_z))
    v = vt.T
    scale = s**power
    map_a = white_x @ u * scale @ (u.T @ colour_x @ u)
    map_b = white_z @ v * scale @ (v.T @ colour_z @ v)
    return (a.double() @ map_a).float(), (b.double() @ map_b).float()


def _whitening(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """(xᵀx)^(-1/2) and its inverse; directions without variance are left alone."""
    _, s, vt = torch.linalg.svd(x, full_matrices=False)
    s = s.clamp_min(s.max() * 1e-6)
    return vt.T / s @ vt, vt.T * s @ vt


def union(best_b: torch.Tensor, best_a: torch.Tensor) -> Dictionary:
    """The pairs of both directions, one after the other; pairs found twice count twice."""
    return (
        torch.cat([torch.arange(len(best_b), device=best_b.device), best_a]),
        torch.cat([best_b, torch.arange(len(best_a), device=best_a.device)]),
    )


# ---------------------------------------------------------------------------------------------
# the verdict

# calibrated on some corpora and tested on others (docs/mapping.md)
COPY = 0.95
LEAST_WORDS = 1_000
LEAST_FREQUENCY_CORRELATION = 0.5
LEAST_FOUND = 0.25
_ENOUGH_WITNESSES = 20
_JUDGED_WORDS = 5_000


def diagnose(
    sides: Sides, a: torch.Tensor, b: torch.Tensor, attempt: Attempt, settings: Mapping, witnesses: list[tuple[int, int]] | None = None
) -> Attempt:
    """Judge mapped vectors without a gold lexicon.

    A wrong solution, too, has many mutual neighbours of high cosine, because that is what self-learning
    looks for. It has not looked for these: names, abbreviations and numbers spelt the same usually mean
    the same, and are found in a good solution; where there are too few of them, words that
    translate each other should at least be of similar frequency. Only a space that is a copy of the
    other needs no such evidence. `witnesses` are rows of known pairs that take the place of words spelt
    the same.
    """
    a, b = (torch.nn.functional.normalize(side, dim=1) for side in (a, b))
    frequent = Similarities(a[: settings.search_cutoff], b[: settings.search_cutoff], settings.matrix)
    near = neighbourhoods(frequent, settings.csls_neighbours)
    best_b, best_a = best_pairs(frequent, near)
    rows = torch.arange(len(best_b), device=best_b.device)
    mutual = best_a[best_b] == rows
    if witnesses is None:
        among, witnesses = _JUDGED_WORDS, spelt_alike(sides.words_a[:_JUDGED_WORDS], sides.words_b[:_JUDGED_WORDS])
    else:
        among, witnesses = settings.cutoff, [pair for pair in witnesses if max(pair) < settings.cutoff]
    judged = replace(
        attempt,
        mutual=float(mutual.float().mean()),
        frequency_correlation=rank_correlation(rows[mutual], best_b[mutual]),
        witnesses=len(witnesses),
        witnesses_found=share_found(a[:among], b[:among], witnesses, settings),
    )
    reason = _objection(judged, min(len(a), len(b)), float(near.nearest_x.median()))
    return replace(judged, good=not reason, reason=reason)


def _objection(judged: Attempt, words: int, cosine: float) -> str:
    if cosine >= COPY:
        return ""
    if judged.witnesses >= _ENOUGH_WITNESSES:
        if judged.witnesses_found >= LEAST_FOUND:
            return ""
        what = "pairs of the dictionary that were kept back" if judged.start == "supervised" else "words spelt the same"
        return f"of {judged.witnesses} {what} {judged.witnesses_found:.0%} are found, not {LEAST_FOUND:.0%}"
    if judged.start == "unsupervised" and words < LEAST_WORDS:
        return f"{words} words are too few to map without a dictionary, which takes {LEAST_WORDS}"
    if judged.frequency_correlation < LEAST_FREQUENCY_CORRELATION:
        return f"frequencies of paired words correlate by {judged.frequency_correlation:.2f}, not {LEAST_FREQUENCY_CORRELATION}"
    return ""


def spelt_alike(words_a: list[str], words_b: list[str]) -> list[tuple[int, int]]:
    """The rows of words that both sides have: of four letters or more, or numbers."""
    rows_b = {word: row for row, word in enumerate(words_b)}
    return [(row, rows_b[word]) for row, word in enumerate(words_a) if word in rows_b and (len(word) >= 4 or _NUMERAL.fullmatch(word))]


def share_found(a: torch.Tensor, b: torch.Tensor, witnesses: list[tuple[int, int]], settings: Mapping) -> float:
    """The share of the pairs of rows whose second is among the ten best partners of the first by CSLS."""
    if not witnesses:
        return 0.0
    similarities = Similarities(a, b, settings.matrix)
    top, _ = nearest(similarities, 10, neighbourhoods(similarities, settings.csls_neighbours))
    rows_a, rows_b = (torch.tensor(side, device=a.device) for side in zip(*witnesses, strict=True))
    return float((top.indices[rows_a] == rows_b[:, None]).any(dim=1).float().mean())


def rank_correlation(x: torch.Tensor, y: torch.Tensor) -> float:
    """Spearman's correlation of two lists of different numbers; 0 for fewer than three."""
    if len(x) < 3:
        return 0.0
    ranks = torch.stack([side.argsort().argsort() for side in (x, y)]).double()
    return float(torch.corrcoef(ranks)[0, 1])


# ---------------------------------------------------------------------------------------------
# input


def check(path_a: Path, a: np.ndarray, path_b: Path, b: np.ndarray) -> None:
    """Raise `InputError` where `a` and `b` (words × dimensions) cannot share a space."""
    if a.shape[1] != b.shape[1]:
        raise InputError(f"{path_a} has {a.shape[1]} dimensions, {path_b} {b.shape[1]}; learn both with the same settings")


def _check_size(path: Path, x: np.ndarray) -> None:
    if len(x) < x.shape[1]:
        raise InputError(
            f"{path}: {len(x)} words of {x.shape[1]} dimensions are too few, a rotation needs at least as many words as "
            "dimensions; give more text or lower embeddings.dimensions"
        )
    if not x.any():
        raise InputError(f"{path}: all vectors are zero")


def _folded(words: list[str], vectors: np.ndarray, language: str | None) -> tuple[list[str], np.ndarray]:
    """Words as the corpus has them, the first of each; without a language, as they are."""
    if language is None:
        return words, vectors
    rows = {}
    for row, word in enumerate(words):
        rows.setdefault(fold(word, language), row)
    return list(rows), vectors if len(rows) == len(words) else vectors[list(rows.values())]


if __name__ == "__main__":
    run(main)
