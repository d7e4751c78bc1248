"""The report's numbers as tables: `scores.tsv` has a row for each score, word accuracy and distance of each seed.

`comparisons.tsv` has every two arms over all seeds.
"""

import csv
import itertools
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from workflow_scripts.report import labels
from workflow_scripts.report.comparison import interval_and_p
from workflow_scripts.report.study import Study
from workflow_scripts.stage import atomic

SCORES_HEADER = ("experiment", "task", "corpus", "testset", "direction", "arm", "seed", "metric", "value", "signature", "low", "high", "p")
COMPARISONS_HEADER = (
    *("experiment", "testset", "metric", "arm", "other", "seeds"),
    *("difference", "low", "high", "seeds_low", "seeds_high", "p", "p_uncorrected"),
)
REPRESENTATION_METRICS = {
    "distance_pairs_rms": "pairs_rms",
    "distance_pairs": "pairs",
    "distance_means": "means",
    "cosine": "cosine",
    "retrieval_source_to_target": "source_to_target",
    "retrieval_target_to_source": "target_to_source",
}
"""Metric name in scores.tsv → key in representation.json, of what is measured in the last layer."""


def score_rows(part: dict[str, Any]) -> list[tuple]:
    """Rows of `scores.tsv`: metrics, word accuracies, and the distances of backbone and arms (their signature is the tag format).

    Metrics that were tested with a seed have their 95 % interval and p against the baseline.
    """
    study: Study = part["study"]
    if study.labelled:
        return labels.score_rows(study, part["scores"]["measures"]) if "scores" in part else []
    head, direction = (study.name, study.settings.task, study.corpus_name), f"{study.source}-{study.target}"
    directions = {test: "-".join(code for code, _ in study.sides(test)) for test in study.tested}
    rows: list[tuple] = [
        (
            *head,
            r["testset"],
            directions[r["testset"]],
            r["arm"],
            r["seed"],
            r["metric"],
            round(r["value"], 6),
            r["signature"],
            *interval_and_p(r),
        )
        for r in (part["scores"]["measures"] if "scores" in part else [])
    ]
    words = part["words"]["testsets"] if "words" in part else {}
    for (testset, accuracy), arm, (place, seed) in itertools.product(words.items(), study.arms, enumerate(study.seeds)):
        limits = f"low<{accuracy['low']},high>={accuracy['high']}"
        for bucket in accuracy["buckets"]:
            value = round(accuracy["cells"][arm, bucket]["values"][place], 6)
            rows.append((*head, testset, direction, arm, seed, f"word_f_{bucket}", value, limits, "", "", ""))
    for row in part["distances"]["rows"] if "distances" in part else []:
        # the backbone is the same for all seeds
        for one, report in zip(study.seeds if row["phase"] else [""], row["reports"], strict=True):
            measured = {name: report[key] for name, key in REPRESENTATION_METRICS.items()}
            if "unaligned" in report:
                measured["distance_means_unaligned"] = report["unaligned"]["means"]
            for metric, value in measured.items():
                phase = f"_{row['phase']}" if row["phase"] not in ("", "finetune") else ""
                rows.append((*head, "", direction, row["arm"], one, metric + phase, round(value, 6), report["tag_format"], "", "", ""))
    return rows


def comparison_rows(part: dict[str, Any]) -> Iterator[tuple]:
    """Rows of `comparisons.tsv`: every arm against every other over all seeds, as the table of these on the page has them."""
    for row in part["scores"]["over_seeds"] if "scores" in part else []:
        numbers = (row["difference"], row["low"], row["high"], *(row["by_seed"] or (None, None)), row["p"], row["p_single"])
        head = (part["study"].name, *(row[key] for key in ("testset", "metric", "arm", "other", "seeds")))
        yield *head, *("" if number is None else round(number, 6) for number in numbers)


def write_table(path: Path, header: tuple[str, ...], rows: Iterable[tuple]) -> None:
    """Write a table as TSV."""
    with atomic(path) as file:
        table = csv.writer(file, delimiter="\t", lineterminator="\n")
        table.writerow(header)
        table.writerows(rows)
