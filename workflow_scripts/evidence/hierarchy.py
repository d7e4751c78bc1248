"""hierarchy: whether a difference between arms holds over sentences, training seeds and language pairs together.

A study trains two arms on several language pairs with several seeds each, and translates a test set with every model. A
difference between the arms may be due to the pairs, the seeds or the sentences that were taken. So a hierarchical bootstrap
(Davison and Hinkley 1997, section 3.8) draws all three anew. The effect is the mean over pairs of the mean over seeds of the
difference of the two arms' scores.

One resample draws pairs. For each drawn pair it draws the seeds, the same for both arms, and the sentences, the same for both
arms and all seeds. Of n pairs it draws n − 1, and so it does with seeds (Rao and Wu 1988). With as few as three pairs and five
seeds, n draws would give intervals that are too narrow. With a single pair, or a single seed, there is nothing to draw, and
the answer holds for that pair or seed alone. Experiments on one corpus in one direction are one pair, also if they differ in
the seed of their backbone: each of their seeds is one more of it.

How far the bootstrap is to be trusted depends on what differs most. Where seeds and sentences do, its intervals are rather too
wide, because the spread between pairs contains theirs already. Where the pairs do, and they are few, it has too little to draw.
With three pairs that differ by far more than their seeds, one study in five finds, by a test of 5 %, a difference that is not there.
So each row has Student's t of the pairs' effects as well (`t_low`, `t_high`, `t_p`). It asks whether other pairs would say the
same; of a single pair it is that of the seeds' effects. A claim needs both.

`p` is the share of the resamples whose effect is at least as far from their mean as the observed effect is from zero. The
observed one counts among them. So `p` is two-sided, and never 0.

    python -m workflow_scripts.evidence.hierarchy --results results --output docs/results/effects.tsv \\
        --experiments study-de-part-1 study-de-part-2 study-ru-part-1 study-ru-part-2 --arms csr-6k random-6k
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, cast

import numpy as np
from scipy import stats

from workflow_scripts.evidence.scores import Scores
from workflow_scripts.evidence.scores import metrics as metrics_of
from workflow_scripts.evidence.significance import Key, Score, drawn_scores, mean_of_drawn, p_value, readable, score_of, sentence_statistics
from workflow_scripts.stage import InputError, atomic, read_json, run

Pair = dict[Key, np.ndarray]
"""Counts for one language pair: (arm, seed) → array of sentences × counts, with the same sentences for all arms and seeds."""

STUDENT = ("t_low", "t_high", "t_p")
"""The columns of Student's interval and p-value."""
COLUMNS: tuple[str, ...] = ("experiments", "arm", "other", "testset", "metric", "pairs", "seeds", "sentences")
COLUMNS += ("effect", "low", "high", "p", *STUDENT, "by_pair")


def main(
    results: Path,
    output: Path,
    *,
    experiments: tuple[str, ...],
    arms: tuple[str, ...],
    testset: str = "pages",
    metrics: tuple[str, ...] = ("BLEU", "chrF"),
    samples: int = 1000,
    seed: int = 1,
) -> None:
    """Compare every two of `arms` over the language pairs of all `experiments`, and write a table of effects.

    `results` is the folder of a run, with its `configuration.json`. A row has the effect of `arm` minus `other`, with 95 % interval
    and p-value by the bootstrap and by Student's t. Under `by_pair` it has the effect in each pair, named by its experiments. Seeds that
    one of the two arms has not finished are left out. Raises `InputError` for an unknown experiment. So it does where two
    experiments of a pair trained an arm with the same seed, or a pair has no finished seed of two arms.
    """
    configuration = read_json(results / "configuration.json")
    if unknown := [name for name in experiments if name not in configuration["experiments"]]:
        raise InputError(
            f"{results}/configuration.json: has no experiment {unknown[0]!r}; it has {', '.join(configuration['experiments'])}"
        )
    rows = []
    for metric in metrics:
        found_in = {name: counted(results, configuration, name, arms, testset, metric) for name in experiments}
        pairs = by_pair(configuration, {name: counts for name, (counts, _) in found_in.items()})
        # METEOR has other parameters for each target language
        scores = [found_in[names.partition("+")[0]][1] for names in pairs]
        for place, arm in enumerate(arms):
            for other in arms[:place]:
                found = compare(list(pairs.values()), scores, arm, other, samples, seed)
                effects = " ".join(f"{name}:{effect:.4f}" for name, effect in zip(pairs, found.pop("by_pair"), strict=True))
                head = {"experiments": " ".join(experiments), "arm": arm, "other": other, "testset": testset, "metric": metric}
                rows.append({**head, **found, "by_pair": effects})
    write_effects(output, COLUMNS, rows)


def by_pair(configuration: dict, counts: dict[str, Pair]) -> dict[str, Pair]:
    """The counts of each experiment laid together by pair, under the names of its experiments, which a plus sign joins.

    Experiments on one corpus in one direction are of one pair. Raises `InputError` where two of them have the same arm and seed.
    """
    experiments: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for name in counts:
        block = configuration["experiments"][name]
        experiments[block["corpus"], block["source"], block["target"]].append(name)
    for names in experiments.values():
        for one, other in combinations(names, 2):
            for arm, seed in counts[one].keys() & counts[other].keys():
                raise InputError(f"{one} and {other} are of one pair, and both have trained {arm} with seed {seed}; compare one at a time")
    return {"+".join(names): {key: some for name in names for key, some in counts[name].items()} for names in experiments.values()}


def write_effects(path: Path, columns: Sequence[str], rows: Iterable[dict]) -> None:
    """Write a TSV with a header; numbers have six digits."""
    with atomic(path) as file:
        file.write("\t".join(columns) + "\n")
        for row in rows:
            cells = (f"{row[name]:.6g}" if isinstance(row[name], float) else str(row[name]) for name in columns)
            file.write("\t".join(cells) + "\n")


def counted(results: Path, configuration: dict, experiment: str, arms: tuple[str, ...], testset: str, metric: str) -> tuple[Pair, Score]:
    """A metric's counts in the sentences of an experiment's translations, by arm and seed, and the function from their sum to a score."""
    block = configuration["experiments"][experiment]
    if block["corpus"] not in configuration["corpora"]:
        raise InputError(f"{experiment}: is no experiment on parallel text; others cannot be compared so")
    languages = configuration["corpora"][block["corpus"]]["languages"]
    references = results / "corpora" / f"{block['corpus']}.{'-'.join(languages)}" / "test" / f"{testset}.{block['target']}"
    files = {
        (arm, seed): results / "runs" / experiment / arm / f"seed{seed}" / f"{testset}.hyp"
        for arm in arms
        for seed in configuration["run"]["seeds"]
    }
    hypotheses, reference, failed = readable({key: path for key, path in files.items() if path.exists()}, references)
    if failed:
        raise InputError(next(iter(failed.values())))
    own = block["scores"]
    wanted = Scores(metrics=[cast(Any, metric.split()[0])], tokenize=own["tokenize"], meteor_jar=own.get("meteor_jar"))
    known = metrics_of(block["target"], wanted)
    # METEOR's full name says how it was counted
    name = next((name for name in known if metric in (name, name.split()[0])), None)
    if name is None:
        raise InputError(f"metrics: {metric} has no counts of sentences that add up; there is {', '.join(known)}")
    measure = known[name]()
    statistics = {key: sentence_statistics(measure, lines, reference) for key, lines in hypotheses.items()}
    return statistics, score_of(measure)


def compare(pairs: list[Pair], scores: list[Score], arm: str, other: str, samples: int = 1000, seed: int = 1) -> dict:
    """The effect of `arm` against `other` over `pairs`, its 95 % interval (`low`, `high`) and p-value; with `t_` in front, Student's.

    `scores` make a pair's score of the sum of what was counted in its sentences; `seed` is that of the resamples. Also returns the
    numbers of pairs, seeds and sentences, and the effect in each pair. Raises `InputError` where a pair has no seed of both arms.
    """
    rng = np.random.default_rng(seed)
    effects: list[float] = []
    drawn, seeds, sentences = [], 0, 0
    for number, (pair, score) in enumerate(zip(pairs, scores, strict=True), 1):
        shared = sorted(s for name, s in pair if name == arm and (other, s) in pair)
        if not shared:
            raise InputError(f"pair {number} of {len(pairs)}: {arm} and {other} have no seed in common that is finished")
        mine = {key: counts for key, counts in pair.items() if key[0] in (arm, other) and key[1] in shared}
        observed = {key: score(counts.sum(axis=0)) for key, counts in mine.items()}
        observed_by_seed = [observed[arm, s] - observed[other, s] for s in shared]
        effects.append(float(np.mean(observed_by_seed)))
        resampled = drawn_scores(mine, score, samples, rng)
        drawn_by_seed = np.stack([resampled[arm, s] - resampled[other, s] for s in shared])
        drawn.append(mean_of_drawn(drawn_by_seed, rng))
        seeds += len(shared)
        sentences += len(next(iter(mine.values())))
    drawn_effects = mean_of_drawn(np.stack(drawn), rng, independent=True)
    effect = float(np.mean(effects))
    # of a single sentence, pair and seed there is nothing to draw, so it shows nothing; rounding depends on the order of a sum
    drawn_from = max(len(pairs), seeds, sentences)
    p = p_value(np.abs(drawn_effects - drawn_effects.mean()) >= abs(effect) - 1e-9) if drawn_effects.any() and drawn_from > 1 else 1.0
    low, high = (float(x) for x in np.percentile(drawn_effects, [2.5, 97.5]))
    counts = {"pairs": len(pairs), "seeds": seeds, "sentences": sentences}
    students = student(effects if len(pairs) > 1 else observed_by_seed)
    return {**counts, "effect": effect, "low": low, "high": high, "p": p, **students, "by_pair": effects}


def student(values: list[float]) -> dict[str, float]:
    """Student's 95 % interval of the mean of `values`, and the two-sided p-value of its being zero; not a number for a single value."""
    if len(values) < 2:
        return dict.fromkeys(STUDENT, float("nan"))
    if np.ptp(values) == 0:
        return {"t_low": values[0], "t_high": values[0], "t_p": 0.0 if values[0] else 1.0}
    test = stats.ttest_1samp(values, 0.0)
    low, high = test.confidence_interval()
    return {"t_low": float(low), "t_high": float(high), "t_p": float(test.pvalue)}


if __name__ == "__main__":
    run(main)
