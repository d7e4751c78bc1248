"""mapping: maps the embeddings of two languages into one space, with or without a dictionary to start from.

The method of Artetxe, Labaka and Agirre (ACL 2018), "A robust self-learning method for fully
unsupervised cross-lingual mappings of word embeddings", implemented from the paper:

1. Normalise both sides: unit length, centre, unit length (section 3.1).
2. Make a first dictionary. Without any supervision, it pairs words whose sorted similarities to all words of
   their own language are alike (section 3.2). It can also be words spelt the same, numerals, or a given dictionary.
3. Repeat: compute the rotation that fits the dictionary best; then make a new dictionary by CSLS in both
   directions among the most frequent words. Most similarities are dropped at random at first, and fewer each
   time the objective stalls (section 3.3). Then repeat among all words, with nothing dropped.
4. Whiten, rotate, re-weight by the cross-correlations, de-whiten (section 3.4).

Self-learning can end in a useless solution. Therefore each solution is judged (`verdict`). A bad one is
followed by an attempt with another seed, then by the configured fallbacks. The report lists all attempts.
"""

from __future__ import annotations

import functools
import time
from collections import Counter
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Annotated, Literal, NamedTuple, TypeAlias

import numpy as np
import torch

from workflow_scripts.device import keep_memory, pick_device
from workflow_scripts.lexicon import vecmap
from workflow_scripts.lexicon.vectors import check, read_vectors, write_vectors
from workflow_scripts.lexicon.verdict import NUMERAL, Attempt, diagnose
from workflow_scripts.number_types import AboveZero, Limits, Natural, NotNegative, Positive
from workflow_scripts.similarity import ByteStream, Similarities, best_pairs, neighbourhoods, set_threads
from workflow_scripts.stage import InputError, checksums, run, write_json
from workflow_scripts.text.word_lists import both_ways, read_dictionary
from workflow_scripts.text.words import fold


@dataclass
class Mapping:
    """Settings of the mapping. The defaults are the paper's, except for a smaller `search_cutoff`. It leaves no room for 4,000
    `initial_words`, and a refinement over `cutoff` words follows."""

    mode: Literal["unsupervised", "identical", "numerals", "semi_supervised", "supervised", "mapped", "dictionary", "aligned"] = (
        "unsupervised"
    )
    """What the mapping starts from. `unsupervised`: nothing. `identical`: words spelt the same. `numerals`: numbers. `semi_supervised`: a
    small dictionary, then self-learning. `supervised`: a full dictionary, no self-learning. `mapped`: the given vectors are in one space
    already. `dictionary`: there are no vectors; the dictionary itself is the lexicon. `aligned`: there are no vectors; a statistical
    aligner makes the lexicon from the parallel training text. It is an upper bound for lexicons made without parallel text."""
    engine: Literal["own", "vecmap"] = "own"
    """Program that maps the vectors: Crossgap's `own`, or VecMap's program from a clone of yours (`vecmap`). With VecMap, only these
    settings apply: `vecmap`, `vecmap_options`, `restarts`, `fallback`, `on_failure`, `max_words`, `device` and those of the verdict."""
    vecmap: str | None = None
    """With `engine: vecmap`: folder of the clone. By default the environment variable VECMAP names it."""
    vecmap_options: str = ""
    """With `engine: vecmap`: further command-line options of VecMap's program, such as `--vocabulary_cutoff 1500`."""
    restarts: Natural = 2
    """Number of further attempts with other seeds if the unsupervised result is bad."""
    fallback: list[Literal["identical", "numerals"]] = field(default_factory=lambda: ["identical", "numerals"])
    """What to start from if these attempts also fail, in this order."""
    on_failure: Literal["stop", "warn"] = "stop"
    """What to do if no attempt is good. `stop`: end with an error. `warn`: write the best attempt."""
    max_words: Positive = 200_000
    """Maximum number of words read from each file. Rarer words get no translation."""
    cutoff: Positive = 20_000
    """Number of most frequent words per language from which the final dictionary is made."""
    search_cutoff: Positive = 1_500
    """Number of most frequent words that the stochastic search uses. The paper uses 20,000. Fewer are faster, and rare words of a small
    corpus have poor vectors that mislead the search (docs/mapping.md)."""
    initial_words: Positive = 4_000
    """Number of most frequent words in the first dictionary; at most `search_cutoff`."""
    csls_neighbours: Positive = 10
    """Number of neighbours (k) in CSLS, cross-domain similarity local scaling (Conneau et al. 2018)."""
    keep_probability: Annotated[float, Limits(gt=0, le=1)] = 0.1
    """Share of the similarities that is kept in the first iterations. The others are dropped at random."""
    keep_growth: Annotated[float, Limits(gt=1)] = 2.0
    """Factor by which this share grows when the objective stalls."""
    patience: Positive = 50
    """Number of iterations without improvement after which the objective counts as stalled."""
    threshold: AboveZero = 1e-6
    """Smallest increase of the objective that counts as improvement. The objective is the mean cosine of the induced pairs."""
    reweight: NotNegative = 0.5
    """Exponent of the cross-correlations in the re-weighting (step 4). The dimensions of both sides are multiplied by the result."""
    max_iterations: Positive = 5_000
    """Maximum number of iterations."""
    matrix: Literal["auto", "float32", "float16", "blocks"] = "auto"
    """How the similarity matrix is stored: in memory in this precision, or not at all (`blocks`: computed again when needed). `auto` takes
    float32 up to 0.5 GB, float16 up to 1 GB, else `blocks`."""
    product: Literal["float32", "bfloat16"] = "float32"
    """Precision of the matrix product. bfloat16 was faster on a Zen 4, and slower on the other processors tried (docs/mapping.md)."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Device for computing; `auto` takes a GPU if there is one."""

    @property
    def maps(self) -> bool:
        """Whether there are vectors to be mapped into one space."""
        return self.mode not in ("dictionary", "aligned")


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
    """Map two embeddings into one space; write the mapped vectors and a report.

    Vectors are word2vec text (fastText's .vec too; plain, .gz, .xz or .zst) or word2vec binary (.bin), the
    most frequent words first.

    Args:
        vectors_a: Vectors of the first language.
        vectors_b: Vectors of the second language, of the same dimension.
        mapped_a: Mapped vectors of the first language, to be written; binary if the name ends in .bin.
        mapped_b: Mapped vectors of the second language, to be written.
        report: JSON file with the verdict and its measures, to be written.
        dictionary: Start of the modes semi_supervised and supervised: two words per line, separated by a tab or a blank
            (MUSE's format).
        languages: Language codes. If given, words and dictionary are lower-cased like Crossgap's own text; of words that
            become equal, the most frequent one is kept.
        seed: Seed of the random choices in self-learning.
        threads: CPU threads; 0 leaves the choice to torch. The number changes the last digits of each product, which self-learning can
            carry to about a point of P@1.
        settings: How to map.

    Raises:
        InputError: The input is bad, or no attempt gives a good solution and `on_failure` is `stop`.
    """
    _check_mode(settings.mode, dictionary)
    keep_memory()
    if threads:
        set_threads(threads)
    device = pick_device(settings.device)
    passed_over = Counter[str](), Counter[str]()
    words_a, a = _folded(*read_vectors(vectors_a, settings.max_words, passed_over[0]), languages[0] if languages else None)
    words_b, b = _folded(*read_vectors(vectors_b, settings.max_words, passed_over[1]), languages[1] if languages else None)
    check(vectors_a, a, vectors_b, b)
    for path, x in ((vectors_a, a), (vectors_b, b)):
        _check_size(path, x, rotated=settings.mode != "mapped")
    started = time.perf_counter()
    sides = Sides(words_a, words_b, *(torch.from_numpy(x).to(device) for x in (a, b)))
    pairs = read_dictionary(dictionary, languages) if dictionary else []
    if dictionary and settings.mode in ("semi_supervised", "supervised"):
        _check_dictionary(dictionary, pairs, (vectors_a, vectors_b), sides)
    chosen, attempts = map_with_fallbacks(sides, pairs, seed, settings)
    seconds = time.perf_counter() - started
    if not chosen.attempt.good:
        _stop_or_warn(f"{vectors_a} and {vectors_b}", attempts, settings)
    write_vectors(mapped_a, words_a, chosen.a.cpu().numpy())
    write_vectors(mapped_b, words_b, chosen.b.cpu().numpy())
    write_json(
        report,
        {
            **asdict(chosen.attempt),
            "attempts": [asdict(tried) for tried in attempts],
            "words": [len(words_a), len(words_b)],
            "passed_over": [dict(counts) for counts in passed_over],
            "dimensions": a.shape[1],
            "seconds": round(seconds, 1),
            "device": str(device),
            "threads": torch.get_num_threads(),
            "checksums": checksums((vectors_a, vectors_b, dictionary)),
            "settings": asdict(settings),
        },
    )


def _check_mode(mode: str, dictionary: Path | None) -> None:
    """Raise `InputError` for a mode that maps nothing, or lacks its dictionary."""
    if mode == "dictionary":
        raise InputError("mapping.mode dictionary maps nothing: give the dictionary to the lexicon stage (--dictionary)")
    if mode == "aligned":
        raise InputError("mapping.mode aligned maps nothing: the lexicon stage aligns the text itself (--aligned)")
    if mode in ("semi_supervised", "supervised") and not dictionary:
        raise InputError(f"mapping.mode {mode} needs a dictionary (--dictionary)")


def _stop_or_warn(where: str, attempts: list[Attempt], settings: Mapping) -> None:
    """Raise `InputError` where no attempt was good, or say so and go on, as `on_failure` has it."""
    message = (
        f"{where}: no good mapping found, the lexicon would be useless "
        f"({'; '.join(tried.summary() for tried in attempts)}). Give more or more coherent text, or a dictionary "
        "(mapping.mode: semi_supervised); or continue nevertheless with mapping.on_failure: warn"
    )
    if settings.on_failure == "stop":
        raise InputError(message)
    print(f"warning: {message}", flush=True)


class Sides(NamedTuple):
    """Words, most frequent first, and their vectors (words × dimensions)."""

    words_a: list[str]
    words_b: list[str]
    a: torch.Tensor
    b: torch.Tensor


Dictionary: TypeAlias = "tuple[torch.Tensor, torch.Tensor]"
"""Row numbers of the paired words: those of the first side, and in the same order those of the second."""


class Mapped(NamedTuple):
    """The mapped vectors of both sides, and how they were found."""

    a: torch.Tensor
    b: torch.Tensor
    attempt: Attempt


def map_with_fallbacks(sides: Sides, pairs: list[tuple[str, str]], seed: int, settings: Mapping) -> tuple[Mapped, list[Attempt]]:
    """The first good solution, or the least bad one if none is good; and all attempts."""
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
            # a fallback without any word to start from counts as a failed attempt
            if start == settings.mode:
                raise
            attempts.append(Attempt(start, attempt_seed, reason=str(error)))
            continue
        solutions.append(solution)
        attempts.append(solution.attempt)
        print(solution.attempt.summary(), flush=True)
        if solution.attempt.good:
            return solution, attempts
    return max(solutions, key=lambda s: (s.attempt.witnesses_found, s.attempt.frequency_correlation)), attempts


def map_once(sides: Sides, start: str, pairs: list[tuple[str, str]], seed: int, settings: Mapping) -> Mapped:
    """Map `sides` from one start. Rows are in order of frequency. Raises `InputError` if there is nothing to start from."""
    judge = functools.partial(
        diagnose,
        (sides.words_a, sides.words_b),
        searched=settings.search_cutoff,
        translated=settings.cutoff,
        neighbours=settings.csls_neighbours,
        matrix=settings.matrix,
    )
    if start == "mapped":
        return Mapped(sides.a, sides.b, judge(sides.a, sides.b, Attempt(start, seed)))
    solve = functools.partial(_by_vecmap if settings.engine == "vecmap" else _by_own, sides, start, seed, settings)
    dictionary = None if start == "unsupervised" else dictionary_of(sides, start, pairs)
    mapped = solve(dictionary)
    if start != "supervised" or dictionary is None:
        return mapped._replace(attempt=judge(*mapped))
    # a mapping cannot be judged by the pairs it was made from: a fifth of the dictionary judges a mapping made from the rest
    held_out = torch.arange(len(dictionary[0]), device=sides.a.device) % 5 == 4
    trial = solve((dictionary[0][~held_out], dictionary[1][~held_out]))
    return mapped._replace(attempt=judge(*trial, witnesses=_rows((dictionary[0][held_out], dictionary[1][held_out]))))


def _rows(dictionary: Dictionary) -> list[tuple[int, int]]:
    return list(zip(*(side.tolist() for side in dictionary), strict=True))


def _by_vecmap(sides: Sides, start: str, seed: int, settings: Mapping, dictionary: Dictionary | None) -> Mapped:
    """What VecMap finds; the attempt has no measures yet."""
    program = vecmap.Program(settings.vecmap, settings.vecmap_options, settings.device)
    pairs = [(sides.words_a[x], sides.words_b[z]) for x, z in _rows(dictionary)] if dictionary else []
    a, b = vecmap.map_embeddings(program, sides.words_a, sides.a, sides.words_b, sides.b, start=start, dictionary=pairs, seed=seed)
    return Mapped(a, b, Attempt(start, seed))


def _by_own(sides: Sides, start: str, seed: int, settings: Mapping, dictionary: Dictionary | None) -> Mapped:
    """What the method of the paper finds; without a dictionary it makes one. The attempt has no measures yet."""
    a, b = normalise(sides.a), normalise(sides.b)
    cutoff = min(settings.cutoff, max(len(a), len(b)))
    near = min(settings.search_cutoff, cutoff)
    dictionary = dictionary or initial_dictionary(a[:near], b[:near], settings)
    learnt = Found(dictionary, 0.0, 0)
    if start != "supervised":
        noise = ByteStream(seed, a.device)
        learnt = self_learn(a, b, near, dictionary, settings.keep_probability, noise, settings)
        if near < cutoff:
            refined = self_learn(a, b, cutoff, learnt.dictionary, 1.0, noise, replace(settings, patience=_REFINING))
            learnt = refined._replace(iterations=learnt.iterations + refined.iterations)
    attempt = Attempt(start, seed, iterations=learnt.iterations, objective=learnt.objective)
    return Mapped(*symmetric_reweighting(a, b, learnt.dictionary, settings.reweight), attempt)


# nothing is random in the refinement, so that it has converged as soon as the objective stalls
_REFINING = 3


# ---------------------------------------------------------------------------------------------
# the steps


def normalise(x: torch.Tensor) -> torch.Tensor:
    """Unit rows, centred columns, unit rows again."""
    x = torch.nn.functional.normalize(x, dim=1)
    return torch.nn.functional.normalize(x - x.mean(dim=0), dim=1)


def initial_dictionary(a: torch.Tensor, b: torch.Tensor, settings: Mapping) -> Dictionary:
    """Pair words whose sorted similarities to the other words of their own language are alike (section 3.2).

    As in the paper, the square root of the similarity matrix XXᵀ is sorted, not the matrix itself. With X = USVᵀ it is USUᵀ.
    """
    n = min(settings.initial_words, len(a), len(b))
    signatures = []
    for side in (a, b):
        u, s, _ = torch.linalg.svd(side[:n], full_matrices=False)
        signatures.append(normalise(((u * s) @ u.T).sort(dim=1).values))
    similarities = Similarities(signatures[0], signatures[1], settings.matrix)
    return union(*best_pairs(similarities, neighbourhoods(similarities, settings.csls_neighbours)))


def dictionary_of(sides: Sides, start: str, pairs: list[tuple[str, str]]) -> Dictionary:
    """The rows of words spelt the same, of numerals, or of the given pairs, as `start` says.

    Raises `InputError` if no words are spelt the same, or no numerals; `main` has checked the given pairs.
    """
    rows_a = {word: row for row, word in enumerate(sides.words_a)}
    rows_b = {word: row for row, word in enumerate(sides.words_b)}
    if start in ("identical", "numerals"):
        pairs = [(word, word) for word in sides.words_a if word in rows_b and (start == "identical" or NUMERAL.fullmatch(word))]
        if not pairs:
            raise InputError(
                f"mapping.mode {start}: the two vocabularies have no such word in common; give a dictionary (mapping.mode: semi_supervised)"
            )
    pairs = list(dict.fromkeys(pairs))
    known = [(rows_a[x], rows_b[z]) for x, z in pairs if x in rows_a and z in rows_b]
    print(f"{start}: starts from {len(known)} of {len(pairs)} pairs", flush=True)
    known_a, known_b = (torch.tensor(side, device=sides.a.device) for side in zip(*known, strict=True))
    return known_a, known_b


class Found(NamedTuple):
    """The result of self-learning."""

    dictionary: Dictionary
    objective: float
    iterations: int


def self_learn(
    a: torch.Tensor, b: torch.Tensor, cutoff: int, dictionary: Dictionary, keep: float, noise: ByteStream, settings: Mapping
) -> Found:
    """Alternate between rotation and dictionary until the objective stalls with nothing dropped (section 3.3).

    New dictionaries are made among the first `cutoff` rows; the given one may contain any row. `keep` is the share of similarities
    that is kept at first; with 1 nothing is random.
    """
    best = -torch.inf
    improved_at = iteration = 0
    similarities = Similarities(a[:cutoff], b[:cutoff], settings.matrix, settings.product)
    while True:
        similarities.replace_rows(a[:cutoff] @ procrustes(a[dictionary[0]], b[dictionary[1]]))
        near = neighbourhoods(similarities, settings.csls_neighbours)
        dictionary = union(*best_pairs(similarities, near, keep, noise))
        iteration += 1
        objective = float(near.nearest_x.mean() + near.nearest_z.mean()) / 2
        if objective >= best + settings.threshold:
            best, improved_at = objective, iteration
        if iteration >= settings.max_iterations:
            print(f"stopped by max_iterations, {iteration}, with a keep probability of {keep:.2f}: not converged", flush=True)
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
    """The orthogonal matrix W that minimises ‖x W − z‖ (Schönemann 1966)."""
    u, _, vt = torch.linalg.svd(x.T @ z)
    return u @ vt


def symmetric_reweighting(a: torch.Tensor, b: torch.Tensor, dictionary: Dictionary, power: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Map all rows by whitening, rotation, re-weighting and de-whitening (section 3.4); `power` is the exponent of the re-weighting."""
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
    """The whitening matrix (xᵀx)^(-1/2) and its inverse. Directions without variance are not blown up."""
    _, s, vt = torch.linalg.svd(x, full_matrices=False)
    s = s.clamp_min(s.max() * 1e-6)
    return vt.T / s @ vt, vt.T * s @ vt


def union(best_b: torch.Tensor, best_a: torch.Tensor) -> Dictionary:
    """The pairs of both directions, concatenated. A pair found in both directions is in it twice and so counts twice."""
    return (
        torch.cat([torch.arange(len(best_b), device=best_b.device), best_a]),
        torch.cat([best_b, torch.arange(len(best_a), device=best_a.device)]),
    )


# ---------------------------------------------------------------------------------------------
# input


def _check_size(path: Path, x: np.ndarray, rotated: bool) -> None:
    if rotated and len(x) < x.shape[1]:
        raise InputError(
            f"{path}: {len(x)} words of {x.shape[1]} dimensions are too few, a rotation needs at least as many words as "
            "dimensions; learn them from more text or with fewer embeddings.dimensions, or give vectors of more words"
        )
    if not x.any():
        raise InputError(f"{path}: all vectors are zero")


def _check_dictionary(path: Path, pairs: list[tuple[str, str]], vectors: tuple[Path, Path], sides: Sides) -> None:
    """Raise `InputError` if the vectors have no pair of the dictionary, or more when it is read the other way round."""
    if not pairs:
        raise InputError(f"{path}: is empty")
    here, turned = both_ways(pairs, set(sides.words_a), set(sides.words_b))
    if turned > here:
        raise InputError(
            f"{path}: {here} of {len(pairs)} pairs have both words in the vectors, and {turned} when they are read the other way "
            f"round; the first word of a line has to be one of {vectors[0]}, the second one of {vectors[1]}"
        )
    if not here:
        raise InputError(
            f"{path}: none of its {len(pairs)} pairs has both words in {vectors[0]} and {vectors[1]} (the first is "
            f"{' '.join(pairs[0])!r}); give a dictionary of these two languages with words that the text has, spelt as there"
        )


def _folded(words: list[str], vectors: np.ndarray, language: str | None) -> tuple[list[str], np.ndarray]:
    """Lower-cased words, as in the corpus, and of equal ones the first; unchanged without a language."""
    if language is None:
        return words, vectors
    rows: dict[str, int] = {}
    for row, word in enumerate(words):
        rows.setdefault(fold(word, language), row)
    return list(rows), vectors if len(rows) == len(words) else vectors[list(rows.values())]


if __name__ == "__main__":
    run(main)
