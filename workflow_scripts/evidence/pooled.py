"""pooled: arms compared over language pairs and seeds by the table of `collect`, whichever machines made its numbers.

A long study is trained in pieces, on several machines and at several times, and what is kept of a piece is its scores. So the
bootstrap of `hierarchy`, which needs all translations in one folder, cannot take the pieces together. This does. One training
seed of one pair gives a difference between two arms, the mean over the machines that trained both. A pair's effect is the mean
over its seeds, and the effect is the mean over the pairs. A pair is two languages, whatever the text. Experiments of one pair,
such as those that differ in the seed of their backbone, count together; each of their seeds is one more of the pair.
Student's t of the pairs' effects says whether other pairs, with other seeds and sentences, would differ so. A second test takes
all trainings alike, of whichever pair, and says whether other seeds of these pairs would. Where pairs differ by more than their
seeds do, its interval is too narrow for other pairs. Of each pair by itself, and so of a study of one pair, it is t of the
seeds' differences. Neither knows anything of other test sentences.

    python -m workflow_scripts.evidence.pooled --table docs/results/study.tsv --output docs/results/pooled.tsv \\
        --experiments study-de-part study-ru-part --arms finetune-6k csr-6k random-6k
"""

from collections import defaultdict
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import numpy as np

from workflow_scripts.evidence.collect import read_table
from workflow_scripts.evidence.hierarchy import STUDENT, student, write_effects
from workflow_scripts.stage import InputError, run

COLUMNS = ("experiments", "over", "arm", "other", "testset", "metric", "seeds", "effect", *STUDENT)


def main(
    table: Path,
    output: Path,
    *,
    experiments: tuple[str, ...],
    arms: tuple[str, ...],
    testset: str = "pages",
    metrics: tuple[str, ...] = ("BLEU", "chrF"),
    across_machines: bool = False,
) -> None:
    """Compare every two of `arms` over all language pairs of `experiments`, and over each pair by itself; write a table of effects.

    A row has the number of seeds that both arms have, and the effect of `arm` minus `other` with Student's 95 % interval and p-value.
    `over` says what counts alike: the `pairs`, or the `trainings`, which are each seed of each pair. The p-value is not corrected. With
    `across_machines` the arms may have been trained on different ones, whose rounding is then a part of their difference. What it prints
    names the seeds whose arms were trained at different commits. Raises `InputError` for a table with other columns, or
    where two arms have no seed of a pair in common.
    """
    numbers = read_table(table)
    found: dict[Number, list[float]] = defaultdict(list)
    commits: dict[Number, set[str]] = defaultdict(set)
    for row in numbers:
        if row["testset"] == testset:
            machine = "any" if across_machines else row["machine"]
            number = row["setting"], row["metric"], row["arm"], int(row["seed"]), machine
            found[number].append(float(row["value"]))
            commits[number].add(row["commit"])
    scores = {number: float(np.mean(values)) for number, values in found.items()}
    pair_of = {row["setting"]: row["pair"] for row in numbers}
    by_pair: dict[str, list[str]] = defaultdict(list)
    for name in experiments:
        by_pair[pair_of.get(name, name)].append(name)
    rows = []
    for metric in metrics:
        for other, arm in combinations(arms, 2):
            gaps = {name: seed_differences(scores, name, metric, arm, other) for name in experiments}
            pairs = {" ".join(names): [gap for name in names for gap in gaps[name]] for names in by_pair.values()}
            if missing := next((names for names, some in pairs.items() if not some), None):
                by = "with one seed" if across_machines else "by one machine with one seed"
                raise InputError(f"{table}: has no {metric} of {arm} and {other} in {missing} {by}; run them first")
            head = {"arm": arm, "other": other, "testset": testset, "metric": metric}
            rows += [head | effect for effect in effects_of(pairs)]
    write_effects(output, COLUMNS, rows)
    for line in of_other_commits(commits, experiments, arms):
        print(line)


Number = tuple[str, str, str, int, str]
"""What a score is of: experiment, metric, arm, seed and machine."""


def effects_of(pairs: dict[str, list[float]]) -> Iterator[dict[str, object]]:
    """What the differences of some pairs' seeds say: all pairs together where there are several, and each pair by itself."""
    every = [gap for some in pairs.values() for gap in some]
    tests = [(names, "trainings", some, len(some)) for names, some in pairs.items()]
    if len(pairs) > 1:
        together, means = " ".join(pairs), [float(np.mean(some)) for some in pairs.values()]
        tests = [(together, "pairs", means, len(every)), (together, "trainings", every, len(every)), *tests]
    for names, over, values, seeds in tests:
        yield {"experiments": names, "over": over, "seeds": seeds, "effect": float(np.mean(values)), **student(values)}


def seed_differences(scores: dict[Number, float], experiment: str, metric: str, arm: str, other: str) -> list[float]:
    """The difference between two arms with each seed that a machine has trained both with; the mean where several machines have."""
    found: dict[int, list[float]] = defaultdict(list)
    for (name, measure, mine, seed, machine), value in scores.items():
        if (name, measure, mine) == (experiment, metric, arm) and (theirs := (name, measure, other, seed, machine)) in scores:
            found[seed].append(value - scores[theirs])
    return [float(np.mean(found[seed])) for seed in sorted(found)]


def of_other_commits(commits: dict[Number, set[str]], experiments: tuple[str, ...], arms: tuple[str, ...]) -> Iterator[str]:
    """A line for each seed whose arms were trained at different commits: what changed between these is a part of their difference."""
    trained: dict[tuple[str, int], dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for (name, _, arm, seed, _), some in commits.items():
        if name in experiments and arm in arms:
            trained[name, seed][" and ".join(sorted(some))].add(arm)
    for (name, seed), by_commit in sorted(trained.items()):
        if len(by_commit) > 1:
            where = "; ".join(f"{at}: {', '.join(sorted(some))}" for at, some in sorted(by_commit.items()))
            yield f"of different commits: {name}, seed {seed}: {where}"


if __name__ == "__main__":
    run(main)
