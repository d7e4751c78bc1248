"""significance: do the arms differ from the baseline by more than chance?

Per seed, sacreBLEU's paired test: bootstrap resampling (Koehn 2004) or approximate randomization (Riezler
and Maxwell 2005). It answers whether a difference would hold on other test sentences, and knows nothing of
other training seeds. Over seeds, sentences and seeds are drawn anew together (the multi-bootstrap of Sellam et
al. 2022), or sentences are exchanged between the arm and the baseline in all seeds at once.
"""

import os
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import numpy as np
from sacrebleu.significance import PairedTest

from workflow_scripts.evidence.scores import LOWER_IS_BETTER, Scores, aligned, metrics
from workflow_scripts.stage import InputError, read_json, run, told, write_json

COVERS = {
    "seed": "the choice of test sentences, not of training seeds",
    "bootstrap": "the choice of test sentences and of training seeds",
    "randomization": "the choice of test sentences, with the training seeds as they are",
}
"""What a test covers: of one seed, and of several by either method."""

Key = tuple[str, int]
"""A system: arm and seed."""
Score = Callable[[np.ndarray], float]
"""A corpus's score, of the sum of what was counted in its sentences."""

_AT_ONCE = 100
"""Resamples that are in memory together."""


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
    """Compare systems with the first, the baseline, on one test set of one training seed.

    Writes for each system and metric the score, the mean and half-width of its 95 % interval
    (bootstrap), and the p-value against the baseline; and under `failed` the systems that could not be
    read and the metrics that could not be tested.
    """
    # sacreBLEU reads its seed when it tests
    os.environ["SACREBLEU_SEED"] = str(seed)
    hypotheses, reference, failed = readable(dict(zip(names, systems, strict=True)), references)
    rows: dict[str, dict] = {name: {} for name in names}
    comparable = names[0] in hypotheses and len(hypotheses) > 1
    for metric, make in metrics(language, settings).items() if comparable else ():
        try:
            signatures, scores = PairedTest(
                list(hypotheses.items()),
                {metric: make()},
                references=[reference],
                test_type="bs" if settings.test == "bootstrap" else "ar",
                n_samples=settings.samples,
            )()
        except Exception as error:  # one metric's trouble, whatever it is, must not cost the others
            failed[metric] = told(error)
            continue
        # sacreBLEU has names of its own for the metrics, and calls the systems' names a column, too
        (signature,), (_, results) = signatures.values(), scores.values()
        for name, result in zip(hypotheses, results, strict=True):
            # sacreBLEU counts the resamples with a strictly greater difference: of two equal outputs
            # it would call the (absent) difference significant
            equal = name != names[0] and result.score == results[0].score
            rows[name][metric] = {
                "score": result.score,
                "mean": result.mean,
                "ci": result.ci,
                "p": 1.0 if equal else result.p_value,
                "signature": str(signature),
            }
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
    """Compare every arm with the first, the baseline, and with every other, on one test set, over all seeds.

    `systems` (and `comet`, their COMET scores, if they were measured) are ordered by arm, then by seed. Writes for
    each pair of arms and each metric the mean difference over the seeds, its 95 % interval (bootstrap) and p-value.
    """
    keys = [(name, seed) for name in names for seed in seeds]
    hypotheses, reference, failed = readable(dict(zip(keys, systems, strict=True)), references)
    pairs = [(mine, other) for at, mine in enumerate(names) for other in names[:at]]
    differences = {}
    reasons = {f"{name} seed {seed}": reason for (name, seed), reason in failed.items()}
    for name, make in metrics(language, settings).items() if hypotheses else ():
        try:
            metric = make()
            statistics = {key: sentence_statistics(metric, lines, reference) for key, lines in hypotheses.items()}
        except Exception as error:  # as above
            reasons[name] = told(error)
            continue
        score = lambda sums, m=metric: m._compute_score_from_stats(list(sums)).score  # noqa: E731
        differences[name] = compare(statistics, score, pairs, settings, seeds[0])
    segments = {key: found for key, path in zip(keys, comet, strict=True) if (found := _segments(path)) is not None} if comet else {}
    if segments:
        differences["COMET"] = compare(segments, lambda sums: float(sums[0] / sums[1]), pairs, settings, seeds[0])
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
            "covers": COVERS["seed" if len(seeds) == 1 else settings.test],
        },
    )


def readable(systems: dict, references: Path) -> tuple[dict, list[str], dict]:
    """Hypotheses of the systems that are aligned with the references, the references, and why others are not."""
    hypotheses, failed, reference = {}, {}, []
    for name, path in systems.items():
        try:
            hypotheses[name], reference = aligned(path, references)
        except InputError as error:
            failed[name] = str(error)
    return hypotheses, reference, failed


def sentence_statistics(metric, hypotheses: list[str], references: list[str]) -> np.ndarray:
    """What a sacreBLEU metric counts in each sentence (sentences × counts); a corpus's score is that of their sum."""
    return np.array(metric._extract_corpus_statistics(hypotheses, [references]), dtype=np.float64)


def compare(
    statistics: dict[Key, np.ndarray], score: Score, pairs: list[tuple[str, str]], settings: Scores, seed: int = 1
) -> dict[tuple[str, str], dict[str, float | int | None]]:
    """For each pair of arms their difference, averaged over the seeds that both have, its 95 % interval and p-value.

    `statistics` has, by arm and seed, an array of sentences × counts; `score` makes a score of their sum. `seed` is
    that of the resamples: with one training seed they are `per_seed`'s, and p is counted in sacreBLEU's way. With several,
    p is the share of the resamples whose difference is as far from their mean (bootstrap), or from nothing
    (randomization), as the observed one is from nothing.
    """
    observed = {key: score(counts.sum(axis=0)) for key, counts in statistics.items()}
    bootstrap = settings.test == "bootstrap"
    drawn = drawn_scores(statistics, score, settings.samples, np.random.default_rng(seed)) if bootstrap else {}
    result = {}
    for mine, other in pairs:
        seeds = [s for name, s in statistics if name == mine and (other, s) in statistics]
        if not seeds:
            result[mine, other] = {"seeds": 0, "difference": None, "low": None, "high": None, "p": None}
            continue
        rng = np.random.default_rng([seed, len(seeds)])
        difference = float(np.mean([observed[mine, s] - observed[other, s] for s in seeds]))
        if bootstrap:
            by_seed = np.stack([drawn[mine, s] - drawn[other, s] for s in seeds])
            found = np.take_along_axis(by_seed, rng.integers(len(seeds), size=by_seed.shape), axis=0).mean(axis=0)
            low, high = (float(x) for x in np.percentile(found, [2.5, 97.5]))
        else:
            sides = [[statistics[name, s] for s in seeds] for name in (mine, other)]
            found = exchanged_differences(*sides, score, settings.samples, rng)
            low = high = None
        if not found.any():
            p = 1.0
        elif bootstrap and len(seeds) == 1:
            # sacreBLEU's: in effect it asks only whether the better one is better, so p is about half of what follows
            p = share(np.abs(found) - np.abs(found).mean() > abs(difference))
        else:
            # sums in another order must not make a difference of their own
            p = share(np.abs(found - (found.mean() if bootstrap else 0.0)) >= abs(difference) - 1e-9)
        result[mine, other] = {"seeds": len(seeds), "difference": difference, "low": low, "high": high, "p": p}
    return result


def share(counted: np.ndarray) -> float:
    """The p-value of so many resamples; the sample itself is one of them."""
    return float((counted.sum() + 1) / (len(counted) + 1))


def drawn_scores(statistics: dict[Key, np.ndarray], score: Score, samples: int, rng: np.random.Generator) -> dict[Key, np.ndarray]:
    """Scores (one a sample) of every system on sentences drawn with replacement, the same sentences for all."""
    sentences = len(next(iter(statistics.values())))
    scores: dict[Key, list[float]] = {key: [] for key in statistics}
    for start in range(0, samples, _AT_ONCE):
        drawn = rng.integers(sentences, size=(min(_AT_ONCE, samples - start), sentences))
        times = np.stack([np.bincount(row, minlength=sentences) for row in drawn]).astype(np.float64)
        for key, counts in statistics.items():
            scores[key] += [score(sums) for sums in times @ counts]
    return {key: np.array(values) for key, values in scores.items()}


def exchanged_differences(
    mine: list[np.ndarray], other: list[np.ndarray], score: Score, samples: int, rng: np.random.Generator
) -> np.ndarray:
    """Differences (one a sample, averaged over seeds) after half the sentences, in all seeds the same, changed places between two arms."""
    found: list[float] = []
    for start in range(0, samples, _AT_ONCE):
        kept = rng.integers(2, size=(min(_AT_ONCE, samples - start), len(mine[0]))).astype(np.float64)
        by_seed = [
            [score(x) - score(y) for x, y in zip(kept @ a + (1 - kept) @ b, kept @ b + (1 - kept) @ a, strict=True)]
            for a, b in zip(mine, other, strict=True)
        ]
        found += np.mean(by_seed, axis=0).tolist()
    return np.array(found)


def _segments(path: Path) -> np.ndarray | None:
    """COMET's scores of the sentences (sentences × 1 score, 1 count); None where it was not measured."""
    segments = read_json(path).get("segments")
    return np.array([[value, 1.0] for value in segments]) if segments else None


def holm(p_values: dict) -> dict:
    """p-values corrected for their number by Holm's method (1979): the chance of any false alarm among them stays below p."""
    corrected, largest = {}, 0.0
    for place, (name, p) in enumerate(sorted(p_values.items(), key=lambda item: item[1])):
        largest = max(largest, min(1.0, p * (len(p_values) - place)))
        corrected[name] = largest
    return corrected


def marker(p: float | None, difference: float, metric: str = "BLEU") -> str:
    """‡ for p < 0.01, † for p < 0.05 (the paper's Table II), followed by "worse" where the arm is worse. Not every font has an arrow."""
    if p is None or p >= 0.05:
        return ""
    worse = difference > 0 if metric in LOWER_IS_BETTER else difference < 0
    return ("‡" if p < 0.01 else "†") + (" worse" if worse else "")


if __name__ == "__main__":
    run({"per_seed": per_seed, "over_seeds": over_seeds})
