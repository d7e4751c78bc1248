"""significance: tests whether arms differ from the baseline by more than chance.

For a single training seed: sacreBLEU's paired tests, bootstrap resampling (Koehn 2004) or approximate randomization (Riezler
and Maxwell 2005). They tell whether a difference would hold on other test sentences, but nothing about other training seeds.
sacreBLEU holds all resamples in memory at once, so they are drawn here, with its random numbers, a hundred at a time.

Over several seeds there are two ways. The multi-bootstrap (Sellam et al. 2022) resamples sentences and seeds together. Randomization
exchanges the outputs for the same sentences between two arms in all seeds. Of n seeds a resample draws n − 1 (Rao and Wu 1988), since n
would make too little of their spread. Even so two or three seeds that differ by more than the sentences do have too little to draw. So
`report/headline.py` and the markers (`marker`) ask Student's t as well.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
from sacrebleu.significance import estimate_ci

from workflow_scripts.evidence.counted import finite
from workflow_scripts.evidence.metric import higher_is_better
from workflow_scripts.evidence.scores import Scores, metrics, parallel_lines
from workflow_scripts.stage import InputError, noted, read_json, run, write_json

COVERS = {
    "seed": "the choice of test sentences, not of training seeds",
    "bootstrap": "the choice of test sentences and of training seeds",
    "randomization": "the choice of test sentences, with the training seeds as they are",
}
"""The sources of chance that a test takes into account: for one seed, and for several seeds by method."""


class TestSettings(Protocol):
    """Settings of a test of significance, whichever task they belong to."""

    test: Literal["bootstrap", "randomization"]
    samples: int


Key = tuple[str, int]
"""A system: arm and seed."""
Score = Callable[[np.ndarray], float]
"""Computes the score of a corpus from the sum of its sentences' counts."""

_AT_ONCE = 100
"""Number of resamples that are held in memory together."""


def per_seed(
    systems: tuple[Path, ...],
    references: Path,
    output: Path,
    *,
    names: tuple[str, ...],
    language: str,
    seed: int = 1,
    settings: Scores = Scores(),
) -> None:
    """Compare systems of one training seed with the first one, the baseline, on one test set.

    For each system and metric, the output has the score, the p-value against the baseline, and by the bootstrap mean and half-width of the
    95 % interval. Under `failed` it lists systems that could not be read and metrics that could not be tested, with the reasons.
    """
    hypotheses, reference, failed = readable(dict(zip(names, systems, strict=True)), references)
    rows: dict[str, dict] = {name: {} for name in names}
    for name, make in metrics(language, settings).items() if names[0] in hypotheses else ():
        with noted(failed, name):
            metric = make()
            statistics = {(arm, seed): sentence_statistics(metric, lines, reference) for arm, lines in hypotheses.items()}
            found = against_the_first(statistics, metric, settings, seed)
            signature = metric.get_signature()
            signature.update("seed", str(seed))
            signature.update("bs" if settings.test == "bootstrap" else "ar", settings.samples)
            for (arm, _), numbers in found.items():
                rows[arm][name] = {**numbers, "signature": str(signature)}
    write_json(output, {"baseline": names[0], "systems": rows, "failed": failed, "settings": asdict(settings), "covers": COVERS["seed"]})


def over_seeds(
    systems: tuple[Path, ...],
    references: Path,
    output: Path,
    *,
    names: tuple[str, ...],
    seeds: tuple[int, ...],
    language: str,
    comet: tuple[Path, ...] = (),
    settings: Scores = Scores(),
) -> None:
    """Compare every two arms on one test set, over all seeds. The first arm is the baseline.

    `systems`, and `comet`, their COMET scores if these were computed, are ordered by arm, then by seed. The output has for each pair of
    arms and each metric the difference, averaged over seeds, its 95 % interval (bootstrap only) and its p-value. Where every arm writes the
    same with all seeds, as arms do that train nothing, the tests cover no seeds (`covers`).
    """
    keys = [(name, seed) for name in names for seed in seeds]
    hypotheses, reference, failed = readable(dict(zip(keys, systems, strict=True)), references)
    pairs = [(mine, other) for at, mine in enumerate(names) for other in names[:at]]
    differences = {}
    reasons = {f"{name} seed {seed}": reason for (name, seed), reason in failed.items()}
    for name, make in metrics(language, settings).items() if hypotheses else ():
        with noted(reasons, name):
            metric = make()
            statistics = {key: sentence_statistics(metric, lines, reference) for key, lines in hypotheses.items()}
            differences[name] = compare(statistics, score_of(metric), pairs, settings, seeds[0])
    segments = {key: found for key, path in zip(keys, comet, strict=True) if (found := _segments(path)) is not None} if comet else {}
    if segments:
        of_corpus = lambda sums: float(sums[0] / sums[1])  # noqa: E731
        with noted(reasons, "COMET"):
            differences["COMET"] = compare(segments, of_corpus, pairs, settings, seeds[0])
    written = {name: {tuple(lines) for (arm, _), lines in hypotheses.items() if arm == name} for name in names}
    seeds_differ = any(len(texts) > 1 for texts in written.values())
    write_json(
        output,
        {
            "baseline": names[0],
            "pairs": [
                {"arm": mine, "other": other, "metric": name, **found[mine, other]}
                for name, found in differences.items()
                for mine, other in pairs
            ],
            "failed": reasons,
            "settings": asdict(settings),
            "covers": COVERS[settings.test if seeds_differ else "seed"],
            "two_sided": True,
        },
    )


def readable(systems: dict, references: Path) -> tuple[dict, list[str], dict]:
    """System → hypotheses for those that are aligned with the references; the references; and system → reason for the others."""
    hypotheses, failed = {}, {}
    reference: list[str] = []
    for name, path in systems.items():
        try:
            hypotheses[name], reference = parallel_lines(path, references)
        except InputError as error:
            failed[name] = str(error)
    return hypotheses, reference, failed


def against_the_first(
    statistics: dict[Key, np.ndarray], metric: Any, settings: TestSettings, seed: int
) -> dict[Key, dict[str, float | None]]:
    """sacreBLEU's paired test of each system against the first one: its score, mean, half-width of the 95 % interval, and p-value.

    `statistics` has the counts of each sentence. The numbers are those of `sacrebleu.significance.PairedTest`, to the last digit where
    all counts are whole numbers. It adds counts in single precision, in which fractions (ROUGE) lose digits.

    Raises `InputError` where a score, also of a resample, is no finite number.
    """
    rng = np.random.default_rng(seed)
    first, baseline = next(iter(statistics.items()))
    score = score_of(metric)
    scores = {key: score(counts.sum(axis=0)) for key, counts in statistics.items()}
    drawn: dict[Key, np.ndarray] = {}
    kept = np.zeros(0, dtype=bool)
    if settings.test == "bootstrap":
        drawn = drawn_scores(statistics, lambda sums: _score(metric, sums.astype(np.float32)), settings.samples, rng)
        if not all(np.isfinite(values).all() for values in drawn.values()):
            raise InputError("the score of a resample is no finite number; return 0 where nothing was counted")
    else:
        kept = rng.integers(2, size=(settings.samples, len(baseline)), dtype=bool)
    found: dict[Key, dict[str, float | None]] = {}
    for key, counts in statistics.items():
        p = None
        # sacreBLEU counts only resamples with a strictly greater difference, so it would call the difference between two equal outputs
        # significant. All resamples of a single sentence are that sentence.
        if key != first and (scores[key] == scores[first] or len(baseline) == 1):
            p = 1.0
        elif key != first:
            if drawn:
                differences = np.abs(drawn[key] - drawn[first])
                differences -= differences.mean()
            else:
                differences = np.abs(exchanged_differences([baseline], [counts], score, _portions(kept)))
            p = p_value(differences > abs(scores[first] - scores[key]))
        mean, ci = (float(value) for value in estimate_ci(drawn[key])) if drawn else (None, None)
        found[key] = {"score": scores[key], "mean": mean, "ci": ci, "p": p}
    return found


def score_of(metric: Any) -> Score:
    """What makes a sacreBLEU metric's score of the sum of what was counted in sentences."""
    return finite(partial(_score, metric))


def _score(metric: Any, sums: np.ndarray) -> float:
    """The score of the sums, in their own precision."""
    return metric._compute_score_from_stats(list(sums)).score


def sentence_statistics(metric, hypotheses: list[str], references: list[str]) -> np.ndarray:
    """What a sacreBLEU metric counts in each sentence (sentences × counts). A corpus's score is computed from their sum."""
    return np.array(metric._extract_corpus_statistics(hypotheses, [references]), dtype=np.float64)


def compare(
    statistics: dict[Key, np.ndarray],
    score: Score,
    pairs: list[tuple[str, str]],
    settings: TestSettings,
    seed: int = 1,
    blocks: Sequence[int] = (),
) -> dict[tuple[str, str], dict[str, float | int | None]]:
    """Test the difference between the arms of each pair.

    The p-value is the share of the resamples whose difference is at least as far from their centre as the observed difference is from zero.
    The centre is the mean of all resamples (bootstrap), or zero (randomization). So it is two-sided, from the resamples of the interval.
    With one training seed the bootstrap's resamples are sacreBLEU's, whose own p-value is in effect one-sided, about half of this one.

    Args:
        statistics: (arm, training seed) → counts of each sentence (sentences × counts).
        score: Computes a score from the sum of such counts.
        pairs: The arms to compare.
        settings: Method and number of resamples.
        seed: Seed of the resamples.
        blocks: Where the rows are the sentences of several texts, one text after the other: how many each has.

    Returns:
        For each pair the number of seeds that both arms have, the difference averaged over them, and its p-value. The bootstrap gives its
        95 % interval, too (`low` and `high`). Without a seed in common these are None.

    Raises `InputError` where a score, also of a resample, is no finite number.
    """
    score = finite(score)
    observed = {key: score(counts.sum(axis=0)) for key, counts in statistics.items()}
    bootstrap = settings.test == "bootstrap"
    drawn = drawn_scores(statistics, score, settings.samples, np.random.default_rng(seed), blocks) if bootstrap else {}
    result: dict[tuple[str, str], dict[str, float | int | None]] = {}
    for mine, other in pairs:
        seeds = [s for name, s in statistics if name == mine and (other, s) in statistics]
        if not seeds:
            result[mine, other] = {"seeds": 0, "difference": None, "low": None, "high": None, "p": None}
            continue
        rng = np.random.default_rng([seed, len(seeds)])
        low: float | None = None
        high: float | None = None
        difference = float(np.mean([observed[mine, s] - observed[other, s] for s in seeds]))
        if bootstrap:
            by_seed = np.stack([drawn[mine, s] - drawn[other, s] for s in seeds])
            differences = mean_of_drawn(by_seed, rng)
            low, high = (float(x) for x in np.percentile(differences, [2.5, 97.5]))
        else:
            sides = [[statistics[name, s] for s in seeds] for name in (mine, other)]
            differences = exchanged_differences(sides[0], sides[1], score, _halves(len(sides[0][0]), settings.samples, rng))
        if not round(difference, 9) or not differences.any() or len(next(iter(statistics.values()))) == 1:
            p = 1.0
        else:
            # rounding, which depends on the order of summation, must not decide
            p = p_value(np.abs(differences - (differences.mean() if bootstrap else 0.0)) >= abs(difference) - 1e-9)
        result[mine, other] = {"seeds": len(seeds), "difference": difference, "low": low, "high": high, "p": p}
    return result


def p_value(counted: np.ndarray) -> float:
    """The p-value: the share of resamples that count, where the observed sample is one of them."""
    return float((counted.sum() + 1) / (len(counted) + 1))


def drawn_scores(
    statistics: dict[Key, np.ndarray], score: Score, samples: int, rng: np.random.Generator, blocks: Sequence[int] = ()
) -> dict[Key, np.ndarray]:
    """The score of each system on each resample: sentences drawn with replacement, the same ones for all systems.

    Of `blocks` of sentences, each is drawn by itself: a small text could otherwise get no sentence at all, and have no score.
    """
    sentences = len(next(iter(statistics.values())))
    sizes = blocks or [sentences]
    starts = np.cumsum([0, *sizes[:-1]])
    scores: dict[Key, list[float]] = {key: [] for key in statistics}
    for start in range(0, samples, _AT_ONCE):
        rows = min(_AT_ONCE, samples - start)
        drawn = np.concatenate([at + rng.integers(size, size=(rows, size)) for at, size in zip(starts, sizes, strict=True)], axis=1)
        times = np.stack([np.bincount(row, minlength=sentences) for row in drawn]).astype(np.float64)
        for key, counts in statistics.items():
            scores[key] += [score(sums) for sums in times @ counts]
    return {key: np.array(values) for key, values in scores.items()}


def mean_of_drawn(values: np.ndarray, rng: np.random.Generator, independent: bool = False) -> np.ndarray:
    """For each resample, a column of `values` (pairs or seeds × samples), the mean of n − 1 of the n rows, drawn with replacement.

    The seeds of a pair share the sentences that a resample draws. Pairs share nothing (`independent`): each draw takes another
    column, so that a pair that is drawn twice has other seeds and sentences the second time. A single row is returned as it is.
    """
    drawn, samples = values.shape[0] - 1, values.shape[1]
    if not drawn:
        return values[0]
    rows = rng.integers(len(values), size=(drawn, samples))
    columns = np.stack([rng.permutation(samples) if independent else np.arange(samples) for _ in range(drawn)])
    return values[rows, columns].mean(axis=0)


def exchanged_differences(mine: list[np.ndarray], other: list[np.ndarray], score: Score, kept: Iterable[np.ndarray]) -> np.ndarray:
    """Score differences after swapping two arms' outputs on a random half of the sentences, averaged over seeds; one for each trial.

    In a trial, the same sentences are swapped in all seeds. `mine` and `other` have the counts of each seed (sentences × counts). `kept`
    has portions of trials × sentences: 0 where a sentence is swapped, else 1.
    """
    differences: list[float] = []
    for some in kept:
        by_seed = [
            [score(x) - score(y) for x, y in zip(some @ a + (1 - some) @ b, some @ b + (1 - some) @ a, strict=True)]
            for a, b in zip(mine, other, strict=True)
        ]
        differences += np.mean(by_seed, axis=0).tolist()
    return np.array(differences)


def _halves(sentences: int, samples: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """Portions of trials in which a random half of the sentences is kept."""
    for start in range(0, samples, _AT_ONCE):
        yield rng.integers(2, size=(min(_AT_ONCE, samples - start), sentences)).astype(np.float64)


def _portions(kept: np.ndarray) -> Iterator[np.ndarray]:
    """The same of trials that are drawn already, in which `kept` has a byte for each sentence."""
    for start in range(0, len(kept), _AT_ONCE):
        yield kept[start : start + _AT_ONCE].astype(np.float64)


def _segments(path: Path) -> np.ndarray | None:
    """COMET's score of each sentence and the number 1 (sentences × 2); None if COMET was not computed."""
    segments = read_json(path).get("segments")
    return np.array([[value, 1.0] for value in segments]) if segments else None


def holm(p_values: dict) -> dict:
    """Correct p-values for multiple comparisons by Holm's method (1979), which controls the family-wise error rate."""
    corrected, largest = {}, 0.0
    for place, (name, p) in enumerate(sorted(p_values.items(), key=lambda item: item[1])):
        largest = max(largest, min(1.0, p * (len(p_values) - place)))
        corrected[name] = largest
    return corrected


def dagger(p: float | None, by_seed: tuple[float, float] | None = None) -> str:
    """‡ for p < 0.01, † for p < 0.05 (the paper's Table II).

    Over several seeds Student's interval of their differences, `by_seed`, must leave zero out, too.
    """
    if p is None or p >= 0.05 or has_zero(by_seed):
        return ""
    return "‡" if p < 0.01 else "†"


def has_zero(interval: tuple[float, float] | None) -> bool:
    """Whether zero lies within an interval, if there is one."""
    return interval is not None and interval[0] <= 0 <= interval[1]


def marker(p: float | None, difference: float, metric: str = "BLEU", by_seed: tuple[float, float] | None = None) -> str:
    """The `dagger` of a difference, followed by "worse" where the arm is worse. Not every font has an arrow."""
    sign = dagger(p, by_seed)
    worse = difference < 0 if higher_is_better(metric) else difference > 0
    return f"{sign} worse" if sign and worse else sign


if __name__ == "__main__":
    run({"per_seed": per_seed, "over_seeds": over_seeds})
