"""average: arms compared on each test set of an experiment, and on the average over them.

It serves every task whose score is computed from sums of counts per example (`significance.compare`).
"""

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from workflow_scripts.evidence.counted import finite
from workflow_scripts.evidence.significance import COVERS, Score, compare, drawn_scores
from workflow_scripts.number_types import Positive

AVERAGE = "average"
"""The name of the mean over all test sets, beside the names of test sets."""


@dataclass
class Significance:
    """Settings of the tests of significance."""

    test: Literal["bootstrap", "randomization"] = "bootstrap"
    """Test of significance: paired bootstrap resampling of the examples, or paired approximate randomization."""
    samples: Positive = 10_000
    """Number of resamples (bootstrap) or trials (randomization). The smallest possible p before correction is 1/`samples`."""
    correction: Literal["holm", "none"] = "holm"
    """Correction of p-values for the number of comparisons: over all arms and test sets of an experiment, separately by seed."""


def compare_folders(
    folders: Sequence[Path],
    counts_in: Callable[[Path, str], np.ndarray],
    score: Score,
    names: Sequence[str],
    testsets: Sequence[str],
    seeds: Sequence[int],
    settings: Significance,
) -> dict[str, Any]:
    """Test the differences between arms whose answers are in `folders`, ordered by arm, then by seed; see `compare_everywhere`.

    `counts_in` counts what is right in the file of the answers to a test set (examples × counts).
    """
    runs = dict(zip(itertools.product(names, seeds), folders, strict=True))
    counts = {
        (name, testset, seed): counts_in(folder / f"{testset}.hyp", testset)
        for testset in testsets
        for (name, seed), folder in runs.items()
    }
    return compare_everywhere(counts, score, names, testsets, seeds, settings)


def compare_everywhere(
    counts: dict[tuple[str, str, int], np.ndarray],
    score: Score,
    names: Sequence[str],
    testsets: Sequence[str],
    seeds: Sequence[int],
    settings: Significance,
) -> dict[str, Any]:
    """Test the differences between every two arms, on each test set and on average: by seed, and over the seeds (seed None).

    `counts` has, by arm, test set and seed, an array of examples × counts. `score` computes a score from 0 to 1 from their sum; differences
    are in points of a hundred. Test sets with the same number of examples count as translations of each other, line by line. For their
    average, the same lines are drawn from all of them.
    """
    pairs = [(mine, other) for at, mine in enumerate(names) for other in names[:at]]
    rows: list[dict[str, Any]] = []
    for testset in [*testsets, *([AVERAGE] if len(testsets) > 1 else [])]:
        some = testsets if testset == AVERAGE else [testset]
        statistics = {(name, seed): side_by_side([counts[name, one, seed] for one in some]) for name in names for seed in seeds}
        blocks = sizes_of([counts[names[0], one, seeds[0]] for one in some])
        mean = mean_score(score, len(some))
        by_seed: dict[int | None, dict] = {}
        for seed in seeds:
            alone = {key: found for key, found in statistics.items() if key[1] == seed}
            by_seed[seed] = compare(alone, mean, pairs, settings, blocks=blocks)
        # two models that are the same for all seeds, such as backbones, say nothing of other trainings
        same = [pair for pair in pairs if all(is_one(statistics, name, seeds) for name in pair)]
        others = [pair for pair in pairs if pair not in same]
        over_seeds = compare(statistics, mean, others, settings, blocks=blocks) if others else {}
        by_seed[None] = {pair: over_seeds.get(pair, by_seed[seeds[0]][pair]) for pair in pairs}
        rows += [
            {"testset": testset, "seed": seed, "arm": arm, "other": other, **found}
            for seed, pairs_found in by_seed.items()
            for (arm, other), found in pairs_found.items()
        ]
    several = any(row["seeds"] > 1 for row in rows)
    covers = {"seed": COVERS["seed"], "seeds": COVERS[settings.test if several else "seed"]}
    return {"baseline": names[0], "pairs": rows, "covers": covers, "settings": asdict(settings)}


def interval(counts: np.ndarray, score: Score, samples: int = 1_000) -> tuple[float, float]:
    """The 95 % bootstrap interval of a score, in per cent. The rows of `counts` (examples) are resampled; `score` is made of their sum.

    The resamples are the same in every run, whatever its seeds: only the scores of models hang on these.
    """
    drawn = drawn_scores({("", 0): counts}, finite(score), samples, np.random.default_rng(1))
    low, high = np.percentile(drawn["", 0], [2.5, 97.5])
    return float(100 * low), float(100 * high)


def scores_beside(counts: np.ndarray, chance: np.ndarray, scores: Mapping[str, Score], metric: str, baseline: str) -> dict[str, Any]:
    """All `scores` in per cent, the interval of the leading one (`metric`), and beside them those of a trivial `baseline`, by its name.

    `counts` are of the examples of a test set, `chance` the sums of those of the baseline. A model is `at_chance` if the interval of its
    leading score reaches down to the baseline's.
    """
    low, high = interval(counts, scores[metric])
    own, of_chance = ({name: 100 * finite(of)(sums) for name, of in scores.items()} for sums in (counts.sum(axis=0), chance))
    beside = {"chance": of_chance[metric], baseline: of_chance, "at_chance": low <= of_chance[metric]}
    return {"metric": metric, **own, "low": low, "high": high, **beside}


def side_by_side(counts: Sequence[np.ndarray]) -> np.ndarray:
    """The counts of several test sets in one array, each in columns of its own.

    Rows are examples; test sets with as many examples share theirs, as translations of each other do, and have rows apart from the others'.
    """
    sizes, width = sizes_of(counts), counts[0].shape[1]
    first = dict(zip(sizes, np.cumsum([0, *sizes[:-1]]).tolist(), strict=True))
    made = np.zeros((sum(sizes), width * len(counts)))
    for place, one in enumerate(counts):
        at = first[len(one)]
        made[at : at + len(one), place * width : (place + 1) * width] = one
    return made


def is_one(statistics: dict[tuple[str, int], np.ndarray], name: str, seeds: Sequence[int]) -> bool:
    """Whether an arm has the same counts with all seeds."""
    return all(np.array_equal(statistics[name, seed], statistics[name, seeds[0]]) for seed in seeds)


def sizes_of(counts: Sequence[np.ndarray]) -> list[int]:
    """How many rows test sets have in `side_by_side`, in its order."""
    return list(dict.fromkeys(len(one) for one in counts))


def mean_score(score: Score, testsets: int) -> Score:
    """The mean over test sets, in per cent, of a score from 0 to 1; it takes the sums of their counts, in the order of `side_by_side`."""
    return lambda sums: float(100 * np.mean([score(part) for part in np.split(np.asarray(sums), testsets)]))
