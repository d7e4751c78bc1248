"""paper: the tables of a finished run as LaTeX, with differences, intervals, markers, what they cover, and the metrics' signatures.

It reads `scores.tsv` and `comparisons.tsv` alone, so that a table of a paper can be made from a pack or on a laptop.
"""

import itertools
import statistics
from collections.abc import Iterable
from pathlib import Path

from workflow_scripts.evidence.metric import decimals
from workflow_scripts.evidence.significance import dagger
from workflow_scripts.report.study import digits
from workflow_scripts.report.tables import escaped, latex
from workflow_scripts.stage import InputError, atomic, read_rows, run

Rows = list[dict[str, str]]


def main(output: Path, scores: Path = Path("results/scores.tsv"), comparisons: Path | None = None) -> None:
    """Write a table for each experiment and test set with comparisons: the mean over the seeds, and the difference from the baseline.

    The others, such as those of an experiment with a single arm, are named on the terminal.

    Args:
        output: The file to write, a .tex that needs the package booktabs.
        scores: The run's table of scores.
        comparisons: The run's table of differences between arms, by default the one beside its scores.
    """
    comparisons = comparisons or scores.with_name("comparisons.tsv")
    measured, compared = _rows(scores), _rows(comparisons)
    scored = {(*_place(row), row["arm"], row["metric"]) for row in measured}
    compared = [row for row in compared if (*_place(row), row["other"], row["metric"]) in scored]
    places = dict.fromkeys(_place(row) for row in measured if row["testset"])
    with_pairs = {_place(row) for row in compared}
    tested = [place for place in places if place in with_pairs]
    if not tested:
        raise InputError(f"{comparisons}: compares nothing that {scores} has a score of; both come from one run")
    corrected = {row["experiment"] for row in compared if row["p"] != row["p_uncorrected"]}
    with atomic(output) as file:
        for place in tested:
            mine, theirs = ([row for row in rows if _place(row) == place] for rows in (measured, compared))
            file.write(table(mine, theirs, corrected=place[0] in corrected))
    if others := [f"{experiment} on {testset}" for experiment, testset in places if (experiment, testset) not in with_pairs]:
        print(f"{len(others)} without a table, since no arms are compared there: {', '.join(others)}")


def _place(row: dict[str, str]) -> tuple[str, str]:
    """The experiment and the test set of a row."""
    return row["experiment"], row["testset"]


def table(scores: Rows, comparisons: Rows, corrected: bool) -> str:
    """The table of one test set: a row for each arm, and for each metric its score and the difference from the first arm.

    Its caption says where the experiment's p were `corrected`. Any p of the experiment shows that, not those of one table alone: Holm's
    correction leaves the largest p of a family as it is.
    """
    arms = list(dict.fromkeys(row["arm"] for row in scores))
    metrics = [metric for metric in dict.fromkeys(row["metric"] for row in scores) if metric in _tested(comparisons)]
    baseline = next(arm for arm in arms if any(row["other"] == arm for row in comparisons))
    against = {(row["arm"], row["metric"]): row for row in comparisons if row["other"] == baseline}
    places = {metric: _places(metric, [float(row["value"]) for row in scores if row["metric"] == metric]) for metric in metrics}
    rows = [["", *(head for metric in metrics for head in (metric, "difference"))]]
    for arm in arms:
        values = {metric: [float(r["value"]) for r in scores if (r["arm"], r["metric"]) == (arm, metric)] for metric in metrics}
        if any(values.values()):
            pairs = ((_mean(values[metric], places[metric]), _gain(against, arm, metric, places[metric])) for metric in metrics)
            rows.append([arm, *itertools.chain(*pairs)])
    seeds = sorted({int(row["seeds"]) for row in comparisons})
    legend = (
        f"{scores[0]['direction'] or scores[0]['task']}, test set {scores[0]['testset']}; means of {' or '.join(map(str, seeds))} seed(s). "
        f"Differences from {baseline}{_covers(against.values(), seeds[-1] > 1)}. † p < 0.05, ‡ p < 0.01{_CORRECTED if corrected else ''}"
        f"{BY_SEEDS if any(row['seeds_low'] for row in against.values()) else ''}. "
        + "; ".join(f"{metric}: {signature}" for metric, signature in _signatures(scores, metrics))
    )
    body = latex(rows)
    return f"\\begin{{table}}\n\\centering\n{body}\n\\caption{{{escaped(legend)}}}\n\\end{{table}}\n\n"


def _covers(against: Iterable[dict[str, str]], several: bool) -> str:
    """What the intervals and tests take into account; a test by randomization has no intervals, and leaves the seeds as they are."""
    alone = f"test sentences alone{_ANOTHER}"
    if any(row["low"] for row in against):
        return f" with 95 % intervals over {'training seeds and test sentences' if several else alone}"
    return f", tested over {alone}"


BY_SEEDS = ", where Student's interval of the seeds' differences leaves zero out, too"
"""What a marker needs besides a small p, over several seeds."""
_ANOTHER = "; another training may differ"
_CORRECTED = ", corrected for all comparisons (Holm)"


def _places(metric: str, values: list[float]) -> int:
    """Decimals of a metric. What a plugin says of its own is not known from tables: four where all values lie between −1 and 1."""
    small = decimals(metric) is None and all(abs(value) <= 1 for value in values)
    return 4 if small else digits(metric)


def _mean(values: list[float], places: int) -> str:
    return f"{statistics.fmean(values):.{places}f}" if values else "–"


def _gain(against: dict[tuple[str, str], dict[str, str]], arm: str, metric: str, places: int) -> str:
    """The difference, its interval, and a marker where p is small and Student's interval of the seeds leaves zero out."""
    if (row := against.get((arm, metric))) is None:
        return ""
    shown = [f"{float(row[key]):+.{places}f}".replace("-", "−") if row[key] else "" for key in ("difference", "low", "high")]
    interval = f" [{shown[1]}, {shown[2]}]" if shown[1] else ""
    by_seed = (float(row["seeds_low"]), float(row["seeds_high"])) if row["seeds_low"] else None
    return f"{shown[0]}{interval} {dagger(float(row['p'] or 1), by_seed)}".rstrip()


def _signatures(scores: Rows, metrics: list[str]) -> Iterable[tuple[str, str]]:
    """Each metric with what it says of how it was computed."""
    return dict.fromkeys((row["metric"], row["signature"]) for row in scores if row["metric"] in metrics and row["signature"])


def _tested(comparisons: Rows) -> set[str]:
    return {row["metric"] for row in comparisons}


def _rows(path: Path) -> Rows:
    try:
        return read_rows(path)
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; a finished run has it (snakemake --cores all), or name it") from None


if __name__ == "__main__":
    run(main)
