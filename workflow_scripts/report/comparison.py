"""How the arms compare: scores, significance and word accuracy (Tables II and VII of Zan et al.)."""

import itertools
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from workflow_scripts.evidence.metric import higher_is_better
from workflow_scripts.evidence.significance import holm, marker
from workflow_scripts.evidence.trivial import TRIVIAL, Kind
from workflow_scripts.models.reading import NOTED
from workflow_scripts.report import tables
from workflow_scripts.report.headline import headline, ordered, paired_differences
from workflow_scripts.report.measures import is_same_for_all_seeds
from workflow_scripts.report.study import Study, digits, paired, spread, summary
from workflow_scripts.stage import read_json
from workflow_scripts.text.files import read_lines
from workflow_scripts.text.languages import language

Rows = list[dict[str, Any]]


def scores(study: Study) -> dict[str, Any]:
    """The data of the part "Scores", and of the page's first box."""
    over_seeds = differences(study)
    rows = measures(study, over_seeds)
    if not rows:
        raise ValueError("; ".join(failures(study)))
    for row in over_seeds:
        gap = contrast(rows, row["arm"], row["other"], row["testset"], row["metric"])
        row["by_seed"] = gap["interval"] if gap else None
        row["marker"] = marker(row["p"], row["difference"] or 0.0, row["metric"], row["by_seed"])
    found = trivial(study)
    return {
        "measures": rows,
        "over_seeds": over_seeds,
        "pairs": ordered(study, over_seeds),
        "covers": study.json(study.tests / "significance" / f"{study.testsets[0]}.json")["covers"],
        "warnings": [*all_alike(study), *not_above(study, rows, found)],
        "failures": failures(study),
        "cut": cut_sources(study),
        "unread": unread_sources(study),
        "by_generate": by_generate(study),
        "headline": headline(study, rows, over_seeds, study.testsets, headline_metrics(study, rows)),
        "differences": paired_differences(study, rows, over_seeds, study.testsets, study.leading),
        "untrained": all(row["once"] for row in rows),
        "tables": {testset: table(study, [r for r in rows if r["testset"] == testset]) for testset in study.tested},
        "trivial": found,
        "trivially": TRIVIALLY[study.task.trivial],
        "averages": averages(study, rows, found),
    }


def measures(study: Study, over_seeds: Rows) -> Rows:
    """One row per test set, seed, arm and metric: value, difference from the baseline, 95 % interval (`low`, `high`), p, marker.

    Rows say whether their arm is the same for all seeds (`once`), and whether its backbone is trained in this run (`pretrained_here`).
    `p` is corrected, as configured, for the comparisons of all arms and test sets by that metric with that seed;
    `p_single` is not. Both are two-sided. `p_sacrebleu` and `p_sacrebleu_single` are sacreBLEU's, which counts one side of the bootstrap's
    resamples.
    """
    rows = []
    # with a single seed the test over all seeds, that of COMET too, is the test of the seed
    all_seeds = {(r["testset"], r["arm"], r["metric"]): r for r in over_seeds if r["other"] == study.baseline and len(study.seeds) == 1}
    for testset, seed in itertools.product(study.tested, study.seeds):
        systems = study.json(study.tests / "significance" / f"{testset}.seed{seed}.json")["systems"]
        baseline: dict[str, float] = {}
        for arm in study.arms:
            for metric, score in measured(study, testset, arm, seed).items():
                tested = systems.get(arm, {}).get(metric) or all_seeds.get((testset, arm, metric), {})
                as_tested = None if arm == study.baseline else tested.get("p_single", tested.get("p"))
                both_sides = all_seeds.get((testset, arm, metric), {}).get("p_single", two_sided(study, as_tested))
                p = None if as_tested is None else both_sides
                if arm == study.baseline:
                    baseline[metric] = score["value"]
                difference = score["value"] - baseline[metric] if metric in baseline else None
                ci = tested.get("ci")
                rows.append(
                    {"testset": testset, "seed": seed, "arm": arm, "metric": metric, "value": score["value"], "difference": difference}
                    | {"low": None if ci is None else tested["mean"] - ci, "high": None if ci is None else tested["mean"] + ci}
                    | {"p_single": with_ties(p, difference), "p_sacrebleu_single": with_ties(as_tested, difference)}
                    | {"signature": score["signature"], "test": tested.get("signature")}
                    | {"once": is_same_for_all_seeds(study, arm), "pretrained_here": arm in study.pretrained_here}
                )
    correct(study, rows, "metric", "seed")
    correct(study, rows, "metric", "seed", raw="p_sacrebleu_single", into="p_sacrebleu")
    for row in rows:
        row["marker"] = marker(row["p"], row["difference"] or 0.0, row["metric"])
    return rows


def two_sided(study: Study, p: float | None) -> float | None:
    """A p-value of sacreBLEU's as one of a two-sided test: twice as large for the bootstrap, whose other tail it does not count."""
    return p if p is None or study.settings.scores.test != "bootstrap" else min(1.0, 2 * p)


def interval_and_p(row: dict[str, Any]) -> tuple:
    """The columns `low`, `high` and `p` of a row of `scores.tsv`, with sacreBLEU's p where the test is its own; empty without a value."""
    return tuple("" if value is None else round(value, 6) for value in (row["low"], row["high"], row.get("p_sacrebleu", row["p"])))


def measured(study: Study, testset: str, arm: str, seed: int) -> dict[str, dict[str, Any]]:
    """Metric → value and signature, for the metrics that were measured."""
    found = dict(study.json(study.seed(arm, seed) / f"{testset}.scores.json")["metrics"])
    if (comet := comet_scores(study, testset, arm, seed))["value"] is not None:
        found["COMET"] = comet
    return found


def comet_scores(study: Study, testset: str, arm: str, seed: int) -> dict[str, Any]:
    """COMET's file. It is read without noting its provenance, because COMET has other library versions by design."""
    asked = getattr(study.settings, "comet", None)
    return read_json(study.seed(arm, seed) / f"{testset}.comet.json") if asked else {"value": None, "reason": None}


def failures(study: Study) -> list[str]:
    """Sentences on what was not measured or not tested, and why; each reason appears once."""
    reasons: dict[str, list[str]] = {}
    for testset, arm, seed in itertools.product(study.tested, study.arms, study.seeds):
        for metric, reason in study.json(study.seed(arm, seed) / f"{testset}.scores.json").get("failed", {}).items():
            reasons.setdefault(reason, []).append(f"{metric} of {arm} on {testset}, seed {seed}")
        if reason := comet_scores(study, testset, arm, seed)["reason"]:
            reasons.setdefault(reason, []).append(f"COMET of {arm} on {testset}, seed {seed}")
    for testset in study.tested:
        for metric, reason in study.json(study.run / TRIVIAL / f"{testset}.scores.json").get("failed", {}).items():
            reasons.setdefault(reason, []).append(f"{metric} of {TRIVIALLY[study.task.trivial]} on {testset}")
        for name, reason in study.json(study.tests / "significance" / f"{testset}.json").get("failed", {}).items():
            reasons.setdefault(reason, []).append(f"tests of {name} on {testset}")
    return [f"{', '.join(what)}: {reason}" for reason, what in reasons.items()]


def cut_sources(study: Study) -> list[str]:
    """Sentences on test sets of which some texts are longer than a model reads, or some translations longer than it may write."""
    found: dict[str, list[str]] = {}
    for testset, arm, report in decodings(study):
        if lines := report["too_long"]:
            what = f"{len(lines):,} of {report['sentences']:,} texts of {testset} have more than the {report['longest']:,} pieces"
            found.setdefault(f"{what} that a model reads; their ends were not read", []).append(arm)
        if lines := report.get("unfinished"):
            what = f"What was written for {len(lines):,} of {report['sentences']:,} texts of {testset} has no end"
            found.setdefault(f"{what}: it has as many pieces as it may (max_length of decoding, or the model's limit)", []).append(arm)
    return [f"{what} ({', '.join(arms)})." for what, arms in found.items()]


def unread_sources(study: Study) -> list[str]:
    """Sentences on test sets of which the models' vocabulary lacks a part that preflight would note."""
    found: dict[str, list[str]] = {}
    for testset, arm, report in decodings(study):
        for code, unknown in report.get("unknown", {}).items():
            if unknown["share"] >= NOTED:
                what = f"{unknown['share']:.1%} of the pieces of the {language(code).name} text of {testset}, as in {unknown['word']!r}"
                found.setdefault(what, []).append(arm)
    return [f"{what} ({', '.join(arms)})." for what, arms in found.items()]


def by_generate(study: Study) -> list[str]:
    """Sentences on test sets of which the engine left texts to `generate`, since it is not right for them."""
    found: dict[str, list[str]] = {}
    for testset, arm, report in decodings(study):
        if left := report.get("by_generate"):
            found.setdefault(f"{left:,} of {report['sentences']:,} texts of {testset}", []).append(arm)
    return [f"{what} ({', '.join(arms)})." for what, arms in found.items()]


def decodings(study: Study) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Test set, arm and report of each decoding with the first seed that left one."""
    for testset, arm in itertools.product(study.tested, study.arms):
        path = study.seed(arm) / ("predictions" if study.generated else "") / f"{testset}.decoding.json"
        if path.exists():
            yield testset, arm, study.json(path)


def headline_metrics(study: Study, rows: Rows) -> list[str]:
    """Metrics for the headline: all that were measured, the leading one first, but not their lower-cased variants."""
    found = dict.fromkeys([study.leading, *(row["metric"] for row in rows)])
    return [metric for metric in found if not metric.endswith(", lower-cased")]


def reasons(study: Study, testset: str, arm: str) -> list[str]:
    """The reasons why an arm has no score on a test set, each once."""
    failed = [study.json(study.seed(arm, seed) / f"{testset}.scores.json").get("failed", {}) for seed in study.seeds]
    return list(dict.fromkeys(reason for each in failed for metric, reason in each.items() if metric == study.leading))


def differences(study: Study) -> Rows:
    """A row per test set, metric and pair of arms: the difference over all seeds with its interval and p."""
    rows = []
    for testset in study.tested:
        tests = study.json(study.tests / "significance" / f"{testset}.json")
        # results of before: with one seed they counted one side
        old = len(study.seeds) == 1 and "two_sided" not in tests
        rows += [{"testset": testset, **row, "p": two_sided(study, row["p"]) if old else row["p"]} for row in tests["pairs"]]
    against_baseline = [row for row in rows if row["other"] == study.baseline]
    for row in rows:
        row["p_single"] = row["p"]
    correct(study, against_baseline, "metric")
    return rows


def correct(study: Study, rows: Rows, *family: str, raw: str = "p_single", into: str = "p") -> None:
    """Set the key `into` of each row: `raw`, corrected for the number of rows in its family. Rows of a family agree in the given keys."""
    for row in rows:
        row[into] = row[raw]
    if study.settings.scores.correction == "none":
        return
    for _, group in grouped([row for row in rows if row[raw] is not None], *family):
        for at, p in holm({at: row[raw] for at, row in enumerate(group)}).items():
            group[at][into] = p


def with_ties(p: float | None, difference: float | None) -> float | None:
    """The p of a comparison that was tested, in which equal scores are a comparison as any other: p is 1.

    sacreBLEU gives two systems with the same output the smallest possible p.
    """
    return p if difference or p is None else 1.0


def table(study: Study, rows: Rows) -> dict[str, Any]:
    """The main table of one test set (arms × metrics), with the signatures of the metrics.

    An arm that is the same for all seeds has one value, and one difference from a baseline that is so, too.
    """
    once = {row["arm"] for row in rows if row["once"]}
    cells = {
        (arm, metric): group[:1] if {arm, study.baseline} <= once else list(group)
        for (arm, metric), group in grouped(rows, "arm", "metric")
    }
    metrics = list(dict.fromkeys(metric for _, metric in cells))
    heads = {metric: f"COMET, {study.settings.comet.model}" if metric == "COMET" else metric for metric in metrics}
    text = [["arm", *heads.values()]]
    text += [[arm, *(_plain(cells.get((arm, metric), []), digits(metric)) for metric in metrics)] for arm in study.arms]
    return {
        "metrics": metrics,
        "best": {metric: best_arm(study, cells, metric) for metric in metrics},
        "heads": heads,
        "cells": {key: {"seeds": group, **summary(_values(group))} for key, group in cells.items()},
        "gains": {key: gain for key, group in cells.items() if (gain := _gain(group))},
        "text": {"Markdown": tables.markdown(text), "LaTeX": tables.latex(text)},
        "signatures": sorted({f"{r['metric']}: {r[key]}" for r in rows for key in ("signature", "test") if r[key]}),
    }


TRIVIALLY: dict[Kind, str] = {"copy": "a copy of the source", "first_sentence": "the first sentence of each text"}
"""What the page calls the trivial baseline."""


def trivial(study: Study) -> dict[str, dict[str, float]]:
    """Test set → metric → the score of the trivial baseline: copies of the sources, or their first sentences."""
    files = {testset: study.json(study.run / TRIVIAL / f"{testset}.scores.json") for testset in study.tested}
    return {testset: {metric: found["value"] for metric, found in file["metrics"].items()} for testset, file in files.items()}


def not_above(study: Study, rows: Rows, without_model: dict[str, dict[str, float]]) -> Iterator[str]:
    """A sentence per test set where some arm is not better than the trivial baseline by the leading metric."""
    for testset in study.testsets:
        line = without_model.get(testset, {}).get(study.leading)
        values = {
            arm: [row["value"] for row in rows if (row["testset"], row["arm"], row["metric"]) == (testset, arm, study.leading)]
            for arm in study.arms
        }
        lost = {arm: spread(some) for arm, some in values.items() if line is not None and some and sum(some) / len(some) <= line}
        if lost:
            worst = "; ".join(f"{arm} {value}" for arm, value in lost.items())
            yield (
                f"On the test set {testset} the {study.leading} of {', '.join(lost)} ({worst}) is not better than that of "
                f"{TRIVIALLY[study.task.trivial]}, which needs no model: {line:.2f}."
            )


def all_alike(study: Study) -> Iterator[str]:
    """A sentence per test set and arm that wrote the same line, or an empty one, for more than half of the sources with some seed."""
    for testset, arm in itertools.product(study.testsets, study.arms):
        repeated = {seed: _line_of_most(study.seed(arm, seed) / f"{testset}.hyp") for seed in study.seeds}
        of_seed = " with seed {}" if len(study.seeds) > 1 else ""
        if found := [line + of_seed.format(seed) for seed, line in repeated.items() if line]:
            yield f"On the test set {testset} {arm} wrote {'; '.join(found)}: it has learnt too little to be scored."


def _line_of_most(hypotheses: Path) -> str:
    """The line that stands in a file for more than half of the sources, in words; nothing where there is none, or hardly any source."""
    lines = Counter(read_lines(hypotheses) if hypotheses.is_file() else ())
    line, count = max(lines.items(), key=lambda each: each[1], default=("", 0))
    if not count > lines.total() / 2 > 5:
        return ""
    what = f"the same line, “{line[:60]}{'…' * (len(line) > 60)}”," if line.strip() else "an empty line"
    return f"{what} for {count:,} of {lines.total():,} sources"


def averages(study: Study, rows: Rows, without_model: dict[str, dict[str, float]]) -> dict[str, Any]:
    """The mean over the test sets of a task that writes in several languages, by arm and metric; empty for one test set.

    Only metrics that all test sets have are averaged, of arms and of the trivial baseline. METEOR is counted in another way, under another
    name, where there is no stemmer.
    """
    if not study.generated or len(study.testsets) < 2:
        return {}
    values = {(row["arm"], row["metric"], row["seed"], row["testset"]): row["value"] for row in rows}
    everywhere = list(itertools.product(study.arms, study.seeds, study.testsets))
    metrics = [
        metric
        for metric in dict.fromkeys(row["metric"] for row in rows)
        if all((arm, metric, seed, testset) in values for arm, seed, testset in everywhere)
    ]
    cells = {}
    for arm, metric in itertools.product(study.arms, metrics):
        means = [sum(values[arm, metric, seed, testset] for testset in study.testsets) / len(study.testsets) for seed in study.seeds]
        cells[arm, metric] = summary(means)
    trivially = {
        metric: sum(without_model[testset][metric] for testset in study.testsets) / len(study.testsets)
        for metric in metrics
        if all(metric in without_model[testset] for testset in study.testsets)
    }
    return {"metrics": metrics, "cells": cells, "trivial": trivially}


def best_arm(study: Study, cells: dict[tuple[str, str], Rows], metric: str) -> str:
    """The arm with the best mean."""
    means = {arm: summary([r["value"] for r in cells[arm, metric]])["mean"] for arm in study.arms if (arm, metric) in cells}
    return (max if higher_is_better(metric) else min)(means, key=means.__getitem__)


def _gain(seeds: Rows) -> dict[str, Any] | None:
    values = [r["difference"] for r in seeds if r["difference"] is not None]
    return summary(values) if values else None


def _values(seeds: Rows) -> list[float]:
    """The values of the seeds' rows; one of an arm that is the same for all seeds."""
    return [row["value"] for row in (seeds[:1] if seeds[0]["once"] else seeds)]


def _plain(seeds: Rows, places: int) -> str:
    """A cell of the main table as text: the mean over seeds, their standard deviation, and the markers."""
    return f"{spread(_values(seeds), places)} {markers(seeds)}".strip() if seeds else "–"


def markers(seeds: Rows) -> str:
    """The markers of the seeds' rows; with several seeds, each marker has its seed in brackets."""
    return " ".join(r["marker"] + f"({r['seed']})" * (len(seeds) > 1) for r in seeds if r["marker"])


# words


def word_accuracy(study: Study) -> dict[str, Any]:
    """F-measure of the words by frequency (Table VII) on each test set."""
    return {"testsets": {testset: bucket_accuracy(study, testset) for testset in study.testsets}}


def bucket_accuracy(study: Study, testset: str) -> dict[str, Any]:
    """F-measure in per cent per arm and frequency bucket, over the seeds, with each bucket's limits and its number of reference words.

    A bucket of which the references have no word is left out.
    """
    reports = {(arm, seed): study.json(study.seed(arm, seed) / f"{testset}.words.json") for arm in study.arms for seed in study.seeds}
    for (arm, seed), report in reports.items():
        if report.get("failed"):
            raise ValueError(f"{arm}, seed {seed}: {report['failed']}")
    first = reports[study.baseline, study.seeds[0]]
    counted = {bucket: first["buckets"][bucket]["reference"] for bucket in ("all", "high", "mid", "low")}
    buckets = {bucket: words for bucket, words in counted.items() if words}
    values = {
        (arm, bucket): [100 * reports[arm, seed]["buckets"][bucket]["f"] for seed in study.seeds]
        for arm in study.arms
        for bucket in buckets
    }
    return {
        "buckets": buckets,
        "low": first["settings"]["low"],
        "high": first["settings"]["high"],
        "cells": {(arm, bucket): summary(values[arm, bucket]) for arm, bucket in values},
        "gains": {
            (arm, bucket): summary([mine - base for mine, base in zip(values[arm, bucket], values[study.baseline, bucket], strict=True)])
            for arm, bucket in values
        },
    }


# what the numbers say


def contrast(rows: Rows, arm: str, other: str, testset: str, metric: str) -> dict[str, Any] | None:
    """`arm` − `other`, paired by seed; None where no seed has both."""
    pairs = paired(rows, arm, other, testset, metric)
    return summary([mine - theirs for mine, theirs in pairs]) if pairs else None


def grouped(rows: Rows, *keys: str):
    """Groups of rows that agree in the given keys: ((values of the keys), rows) pairs in order of appearance."""
    groups: dict[tuple, list] = {}
    for row in rows:
        groups.setdefault(tuple(row[key] for key in keys), []).append(row)
    return groups.items()
