"""report: everything that was measured, on one page and in one table.

The functions here read files and return plain data; `drawing` makes SVG of numbers, and
`report.html.j2` lays both out on a page that loads nothing from anywhere. `scores.tsv` has one row
per number.
"""

import csv
import difflib
import functools
import hashlib
import itertools
import json
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import jinja2
import numpy as np
import sacrebleu
import zstandard
from markupsafe import Markup

from workflow_scripts import drawing, tables
from workflow_scripts.config import Config, Phase, lexicons_used
from workflow_scripts.languages import language
from workflow_scripts.scores import LOWER_IS_BETTER, aligned, marker
from workflow_scripts.stage import InputError, atomic, read_json, run
from workflow_scripts.text import count_words, fold, segment, words

SCORES_HEADER = ("experiment", "task", "corpus", "testset", "direction", "arm", "seed", "metric", "value", "signature")
TRAINS_ON = {
    "task": "translation, PAIR",
    "codeswitch": "restoring code-switched text",
    "mask": "restoring the same words masked (control)",
    "random": "restoring the same words switched by a scrambled lexicon (control)",
    "released": "restoring text under the noise of the published code (for comparison)",
}
"""What a phase learns, by the kind of its data."""
DISTANCES = ("pairs_rms", "pairs", "means", "cosine")
T95 = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)
"""Student's t, two-sided 95 %, for 2 to 10 numbers."""


@dataclass
class Study:
    """One experiment: what the configuration says of it, and the folders with its files."""

    name: str
    corpus_name: str
    source: str
    target: str
    languages: Sequence[str]
    arms: dict[str, list[Phase]]
    seeds: list[int]
    testsets: list[str]
    run: Path
    corpus: Path
    lexicon: Path
    backbone: Path
    noised: Path
    other_lexicons: dict[str, Path]
    """Lexicons that phases name instead of the experiment's."""
    low_frequency: int
    """Words of fewer occurrences in the training text are rare."""
    swept: list[str]
    """Training settings that were chosen from a grid."""
    read: list[Path] = field(default_factory=list)
    """Every JSON file that a number was taken from."""

    @property
    def baseline(self) -> str:
        """The arm that the others are compared with."""
        return next(iter(self.arms))

    def of_kind(self, kind: str) -> list[str]:
        """Arms, the baseline apart, whose pretext phase trains on `kind`."""
        return [arm for arm, phases in self.arms.items() if arm != self.baseline and phases[0].data == kind]

    def json(self, path: Path) -> dict[str, Any]:
        """Read `path` and remember it for the provenance."""
        if not path.exists():
            raise InputError(f"{path} is missing; the report is made of a finished run (snakemake --cores all)")
        if path not in self.read:
            self.read.append(path)
        return read_json(path)


def main(results: Path, html: Path, scores: Path, *, settings: Config) -> None:
    """Write the page and the table of scores from the files under `results`."""
    studies = [configured(results, name, settings) for name in settings.run.experiments]
    sections = [section(each) for each in studies]
    template = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    for draw in (drawing.line_chart, drawing.dot_chart, drawing.scatter):
        template.globals[draw.__name__] = functools.partial(lambda draw, *data, **size: Markup(draw(*data, **size)), draw)
    template.filters["signed"] = signed
    template.globals["language"] = language
    template.globals["trains_on"] = TRAINS_ON
    config = json.dumps(asdict(settings), indent=1, ensure_ascii=False)
    page = template.get_template("report.html.j2").render(
        experiments=sections,
        overview=overview(sections),
        cost=cost(results / "benchmarks"),
        provenance=provenances(results, [path for each in studies for path in each.read]),
        config=config,
        config_hash=hashlib.sha256(config.encode()).hexdigest()[:16],
    )
    with atomic(html) as file:
        file.write(page)
    with atomic(scores) as file:
        rows = csv.writer(file, delimiter="\t", lineterminator="\n")
        rows.writerow(SCORES_HEADER)
        rows.writerows(row for part in sections for row in score_rows(part))


def configured(results: Path, name: str, settings: Config) -> Study:
    """What and where the experiment `name` is."""
    chosen = settings.experiments[name]
    corpus = settings.corpora[chosen.corpus]
    folder = f"{chosen.corpus}.{'-'.join(corpus.languages)}"
    return Study(
        name=name,
        corpus_name=chosen.corpus,
        source=chosen.source,
        target=chosen.target,
        languages=corpus.languages,
        arms={arm: settings.arms[arm] for arm in settings.run.arms},
        seeds=settings.run.seeds,
        testsets=list(corpus.test),
        run=results / "runs" / name,
        corpus=results / "corpora" / folder,
        lexicon=results / "lexicons" / folder / chosen.lexicon,
        backbone=results / "backbones" / chosen.backbone,
        noised=results / "codeswitch" / name,
        other_lexicons={used: results / "lexicons" / folder / used for used in lexicons_used(settings, chosen)[1:]},
        low_frequency=chosen.word_accuracy.low,
        swept=list(chosen.grid),
    )


def section(study: Study) -> dict[str, Any]:
    """Everything that the page says of one experiment."""
    rows = measures(study)
    results = study.run.parents[1]
    return {
        "study": study,
        "paths": {key: f"results/{getattr(study, key).relative_to(results)}" for key in ("run", "corpus", "lexicon", "backbone", "noised")},
        "headline": headline(study, rows),
        "corpus": study.json(study.corpus / "corpus.json"),
        "backbone": study.json(study.backbone / "backbone.json"),
        "phases": phases(study),
        "choices": choices(study),
        "measures": rows,
        "words": {testset: word_accuracy(study, testset) for testset in study.testsets},
        "tables": {testset: table(study, [r for r in rows if r["testset"] == testset]) for testset in study.testsets},
        "curves": curves(study),
        "gain": last_fifth(study),
        "updates_to_baseline": updates_to_baseline(study),
        "distances": distances(study),
        "projections": projections(study),
        "lexicon": lexicon(study),
        "switched": switched_counts(study),
        "switched_examples": switched_examples(study),
        "translations": translations(study),
    }


def overview(sections: list[dict[str, Any]]) -> dict[str, Any]:
    """A row per experiment, test set and arm, and the reduction of the distance against the gain in BLEU; empty for one experiment."""
    if len(sections) < 2:
        return {}
    rows = []
    for part in sections:
        study: Study = part["study"]
        after = {row["arm"]: row["pairs_rms"]["mean"] for row in part["distances"] if row["phase"] == "finetune"}
        for testset, arm in itertools.product(study.testsets, study.arms):
            cell = part["tables"][testset]["cells"][arm, "BLEU"]
            rows.append(
                {
                    "study": study,
                    "testset": testset,
                    "arm": arm,
                    "bleu": cell,
                    "markers": [r["marker"] for r in cell["seeds"] if r["marker"]],
                }
                | {"gain": contrast(part["measures"], arm, study.baseline, testset)}
                | {"distance": after[arm], "closer": after[study.baseline] - after[arm]}
            )
    arms = [arm for arm in dict.fromkeys(row["arm"] for row in rows) if any(row["arm"] == arm != row["study"].baseline for row in rows)]
    points = [
        {"name": arm, "colour": colour, "lines": [[(row["closer"], row["gain"]["mean"])] for row in rows if row["arm"] == arm]}
        for colour, arm in enumerate(arms, 1)
    ]
    return {"rows": rows, "points": points}


# what was run


def phases(study: Study) -> list[dict[str, Any]]:
    """A row per phase of each arm, with what its first seed's training says."""
    return [
        {"arm": arm, **asdict(phase), "name": phase.name, "report": study.json(_seed(study, arm) / phase.name / "training.json")}
        for arm, arm_phases in study.arms.items()
        for phase in arm_phases
    ]


def choices(study: Study) -> dict[str, Any]:
    """What each arm measured at each point of the grid, and which it took; empty without a grid."""
    if not study.swept:
        return {}
    arms = {arm: study.json(study.run / arm / "choice.json") for arm in study.arms}
    first = arms[study.baseline]
    return {"by": first["by"], "seed": first["seed"], "points": [point["settings"] for point in first["points"]], "arms": arms}


# scores


def measures(study: Study) -> list[dict[str, Any]]:
    """A row per test set, seed, arm and metric: value, p and 95 % interval (`low`, `high`), difference from the baseline."""
    rows = []
    for testset, seed in itertools.product(study.testsets, study.seeds):
        systems = study.json(study.run / "significance" / f"{testset}.seed{seed}.json")["systems"]
        baseline: dict[str, float] = {}
        for arm in study.arms:
            for metric, score in study.json(_seed(study, arm, seed) / f"{testset}.scores.json")["metrics"].items():
                # the paired test calls chrF by its full name, chrF2
                tested = next((t for name, t in systems.get(arm, {}).items() if name.startswith(metric)), {})
                difference = score["value"] - baseline.setdefault(metric, score["value"])
                # sacreBLEU gives systems with the same output the smallest p there is
                p = tested.get("p") if difference else None
                ci = tested.get("ci")
                rows.append(
                    {"testset": testset, "seed": seed, "arm": arm, "metric": metric, "value": score["value"], "difference": difference}
                    | {"low": None if ci is None else tested["mean"] - ci, "high": None if ci is None else tested["mean"] + ci}
                    | {
                        "p": p,
                        "marker": marker(p, -difference if metric in LOWER_IS_BETTER else difference),
                        "signature": score["signature"],
                        "test": tested.get("signature"),
                    }
                )
    return rows


def table(study: Study, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The main table of one test set: arms × metrics, and the metrics' signatures."""
    cells = {(arm, metric): list(group) for (arm, metric), group in _grouped(rows, "arm", "metric")}
    metrics = list(dict.fromkeys(metric for _, metric in cells))
    text = [["arm", *metrics]]
    text += [[arm, *(_plain(cells[arm, metric]) for metric in metrics)] for arm in study.arms]
    return {
        "metrics": metrics,
        "cells": {key: {"seeds": group, **summary([r["value"] for r in group])} for key, group in cells.items()},
        "text": {"Markdown": tables.markdown(text), "LaTeX": tables.latex(text)},
        "signatures": sorted({f"{r['metric']}: {r[key]}" for r in rows for key in ("signature", "test") if r[key]}),
    }


def _plain(seeds: list[dict[str, Any]]) -> str:
    """A cell of the main table in a line: the mean over seeds, their deviation, and each seed's marker."""
    markers = " ".join(r["marker"] for r in seeds if r["marker"])
    return f"{_spread([r['value'] for r in seeds])} {markers}".strip()


def word_accuracy(study: Study, testset: str) -> dict[str, Any]:
    """F-measure, in per cent, of each bucket by arm, over the seeds; with the words of the references in it, and the buckets' limits."""
    reports = {(arm, seed): study.json(_seed(study, arm, seed) / f"{testset}.words.json") for arm in study.arms for seed in study.seeds}
    first = reports[study.baseline, study.seeds[0]]
    buckets = ("all", "high", "mid", "low")
    values = {
        (arm, bucket): [100 * reports[arm, seed]["buckets"][bucket]["f"] for seed in study.seeds]
        for arm in study.arms
        for bucket in buckets
    }
    return {
        "buckets": {bucket: first["buckets"][bucket]["reference"] for bucket in buckets},
        "low": first["settings"]["low"],
        "high": first["settings"]["high"],
        "cells": {(arm, bucket): summary(values[arm, bucket]) for arm, bucket in values},
        "gains": {
            (arm, bucket): summary([mine - base for mine, base in zip(values[arm, bucket], values[study.baseline, bucket], strict=True)])
            for arm, bucket in values
        },
    }


def summary(values: list[float]) -> dict[str, Any]:
    """Number, mean, standard deviation, extremes, and the 95 % interval of the mean (t distribution; None for one value)."""
    n, mean = len(values), statistics.fmean(values)
    sd = statistics.stdev(values) if n > 1 else None
    half = None if sd is None else T95[min(n - 2, len(T95) - 1)] * sd / n**0.5
    interval = None if half is None else (mean - half, mean + half)
    return {"n": n, "mean": mean, "sd": sd, "min": min(values), "max": max(values), "values": values, "interval": interval}


def contrast(rows: list[dict[str, Any]], arm: str, other: str, testset: str, metric: str = "BLEU") -> dict[str, Any]:
    """`arm` − `other`, paired by seed."""
    value = {(r["arm"], r["seed"]): r["value"] for r in rows if r["testset"] == testset and r["metric"] == metric}
    return summary([score - value[other, seed] for (name, seed), score in value.items() if name == arm])


def headline(study: Study, rows: list[dict[str, Any]]) -> list[str]:
    """What the numbers say of the arms, in plain sentences and no further than they go."""
    sentences = []
    for testset, arm in itertools.product(study.testsets, study.of_kind("codeswitch") or [a for a in study.arms if a != study.baseline]):
        mine, base = ([r for r in rows if (r["testset"], r["arm"], r["metric"]) == (testset, a, "BLEU")] for a in (arm, study.baseline))
        gap = contrast(rows, arm, study.baseline, testset)
        sentences.append(
            f"On the test set {testset}, {arm} scores {_spread([r['value'] for r in mine])} BLEU and the baseline {study.baseline} "
            f"{_spread([r['value'] for r in base])}, a difference of {_difference(gap)}{' with one seed' * (gap['n'] == 1)}. "
            f"{_verdict(arm, mine, gap)}"
        )
        controls = [
            f"{arm} − {control} ({meaning}) is {_difference(contrast(rows, arm, control, testset))}"
            for kind, meaning in (("random", "the alignment alone"), ("mask", "the other language's words instead of gaps"))
            for control in (study.of_kind(kind) if arm in study.of_kind("codeswitch") else [])
        ]
        if controls:
            sentences.append("; ".join(controls) + ". These differences between arms are not tested over test sentences.")
    return sentences or [f"Only one arm was run, {study.baseline}; there is nothing to compare it with."]


def _spread(values: list[float]) -> str:
    found = summary(values)
    return f"{found['mean']:.2f}" + (f" ± {found['sd']:.2f}" if found["n"] > 1 else "")


def _difference(gap: dict[str, Any]) -> str:
    if gap["n"] == 1:
        return f"{signed(gap['mean'])} BLEU"
    low, high = gap["interval"]
    return (
        f"{signed(gap['mean'])} ± {gap['sd']:.2f} BLEU over {gap['n']} seeds ({signed(gap['min'])} to {signed(gap['max'])} by seed; "
        f"95 % interval of the mean {signed(low)} to {signed(high)})"
    )


def _verdict(arm: str, rows: list[dict[str, Any]], gap: dict[str, Any]) -> str:
    """What one may conclude: from the paired test for one seed, from the interval over seeds for several."""
    better = "better" if gap["mean"] > 0 else "worse"
    if gap["n"] > 1:
        low, high = gap["interval"]
        told = f"{arm} is {better} over these seeds" if low * high > 0 else "These seeds cannot tell the two apart"
        gains = sum(r["p"] is not None and r["p"] < 0.05 and r["difference"] > 0 for r in rows)
        losses = sum(r["p"] is not None and r["p"] < 0.05 and r["difference"] < 0 for r in rows)
        return f"{told}; over test sentences the gain is significant in {gains} and the loss in {losses} of {gap['n']} seeds."
    p = rows[0]["p"]
    if p is None:
        return "The scores are equal." if not gap["mean"] else "The difference was not tested."
    if p < 0.05:
        return f"With this seed {arm} is {better}, and significantly so over test sentences (p = {p:.3f})."
    return f"The choice of test sentences alone could make such a difference (p = {p:.3f})."


# learning curves


def curves(study: Study) -> dict[str, list[dict[str, Any]]]:
    """Series by chart; x counts an arm's updates, or minutes, of all phases. The pretext phase's training loss is dashed."""
    charts = {
        "dev_bleu": ("dev_bleu", "update"),
        "dev_loss": ("dev_loss", "update"),
        "dev_loss_by_time": ("dev_loss", "seconds"),
        "loss": ("loss", "update"),
    }
    series: dict[str, list[dict[str, Any]]] = {chart: [] for chart in charts}
    for (colour, arm), (chart, (column, axis)) in itertools.product(enumerate(study.arms), charts.items()):
        lines: dict[str, list] = {"lines": [], "dashed": []}
        for seed, phase in itertools.product(study.seeds, study.arms[arm]):
            if points := curve(study, arm, seed, phase, column, axis):
                finetune = phase.name == "finetune"
                if finetune or column == "loss":
                    scale = 60 if axis == "seconds" else 1
                    lines["lines" if finetune else "dashed"].append([(x / scale, y) for x, y in points])
        series[chart].append({"name": arm, "colour": colour, **lines})
    return series


def curve(study: Study, arm: str, seed: int, phase: Phase, column: str, axis: str = "update") -> list[tuple[float, float]]:
    """(updates, or seconds, since the arm's beginning; value) of one column of one phase. Seconds count earlier attempts, too."""
    before = 0.0
    for earlier in itertools.takewhile(lambda p: p is not phase, study.arms[arm]):
        before += earlier.updates if axis == "update" else float(_curve_rows(study, arm, seed, earlier)[-1]["seconds"])
    rows = _curve_rows(study, arm, seed, phase)
    return [(before + float(row[axis]), float(row[column])) for row in rows if row.get(column)]


def _curve_rows(study: Study, arm: str, seed: int, phase: Phase) -> list[dict[str, str]]:
    with open(_seed(study, arm, seed) / phase.name / "curve.tsv", encoding="utf-8") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def updates_to_baseline(study: Study) -> list[dict[str, Any]]:
    """A row per arm: after how many updates it has the dev loss that the baseline ends with, over the seeds that get there.

    The paper's Figure 2 and its claim of half the steps. Interpolated between two looks at the dev set.
    """
    rows = []
    baseline = study.arms[study.baseline][-1]
    for arm, arm_phases in study.arms.items():
        reached = []
        for seed in study.seeds:
            goal = curve(study, study.baseline, seed, baseline, "dev_loss")
            points = curve(study, arm, seed, arm_phases[-1], "dev_loss")
            if goal and (update := first_below(points, goal[-1][1])) is not None:
                reached.append(update)
        pretext = sum(phase.updates for phase in arm_phases[:-1])
        rows.append({"arm": arm, "pretext": pretext, "updates": summary(reached) if reached else None})
    return rows


def first_below(points: list[tuple[float, float]], goal: float) -> float | None:
    """The x at which a falling curve first has `goal`, between two points by interpolation; None if it never does."""
    for (x0, y0), (x1, y1) in zip([points[0], *points], points, strict=False) if points else ():
        if y1 <= goal:
            return x1 if y0 <= goal else x0 + (x1 - x0) * (y0 - goal) / (y0 - y1)
    return None


def last_fifth(study: Study) -> dict[str, Any] | None:
    """Gain of the baseline's dev BLEU over its last fifth of updates, each value interpolated between evaluations."""
    phase = study.arms[study.baseline][-1]
    found = []
    for seed in study.seeds:
        points = curve(study, study.baseline, seed, phase, "dev_bleu")
        if len(points) > 1:
            x, y = zip(*points, strict=True)
            end = sum(p.updates for p in study.arms[study.baseline])
            found.append(float(np.interp(end, x, y) - np.interp(end * 0.8, x, y)))
    return summary(found) if found else None


# representation


def distances(study: Study) -> list[dict[str, Any]]:
    """A row for the backbone and for each arm after each phase: every distance over the seeds."""
    places = [("backbone", "", None, [study.run / "backbone.representation.json"])]
    for (colour, arm), name in itertools.product(enumerate(study.arms), ("pretext", "finetune")):
        if any(phase.name == name for phase in study.arms[arm]):
            places.append((arm, name, colour, [_seed(study, arm, seed) / name / "representation.json" for seed in study.seeds]))
    rows = []
    for arm, phase, colour, paths in places:
        reports = [study.json(path) for path in paths]
        rows.append(
            {"arm": arm, "phase": phase, "colour": drawing.COLOURS - 1 if colour is None else colour, "reports": reports}
            | {key: summary([report[key] for report in reports]) for key in DISTANCES}
        )
    return rows


def projections(study: Study, pairs: int = 150) -> list[dict[str, Any]]:
    """Up to `pairs` evenly spaced sentence pairs of the first seed, each model in the plane of its own two main components."""
    places = [("backbone", study.run / "backbone.representation.npz")]
    for arm in [study.baseline, *study.of_kind("codeswitch")[:1]]:
        places += [(f"{arm} after {p.name}", _seed(study, arm) / p.name / "representation.npz") for p in study.arms[arm]]
    found = []
    for name, path in places:
        with np.load(path) as vectors:
            sides = [vectors[side].astype(np.float64) for side in ("source", "target")]
        chosen = evenly(range(len(sides[0])), pairs)
        points, share = plane(np.concatenate([side[chosen] for side in sides]))
        found.append({"name": name, "share": share, "source": points[: len(chosen)].tolist(), "target": points[len(chosen) :].tolist()})
    return found


def plane(vectors: np.ndarray) -> tuple[np.ndarray, float]:
    """`vectors` (N × width) on their two main components (N × 2), and the share of the variance these hold."""
    centred = vectors - vectors.mean(axis=0)
    _, singular, directions = np.linalg.svd(centred, full_matrices=False)
    return centred @ directions[:2].T, float((singular[:2] ** 2).sum() / max((singular**2).sum(), 1e-12))


# lexicon and switched text


def lexicon(study: Study) -> dict[str, Any]:
    """Quality of mapping and lexicon, and entries of each direction."""
    report = study.json(study.lexicon / "lexicon.json")
    examples = {direction: lexicon_examples(study.lexicon / f"{direction}.tsv") for direction in report["directions"]}
    mapping = None if report["dictionary"] else study.json(study.lexicon / "mapping.json")
    others = {}
    for name, folder in study.other_lexicons.items():
        other = study.json(folder / "lexicon.json")
        others[name] = {**other, "mapping": None if other["dictionary"] else study.json(folder / "mapping.json")}
    return {**report, "mapping": mapping, "examples": examples, "others": others}


def lexicon_examples(path: Path, among: int = 400, number: int = 20) -> list[tuple[str, list[tuple[str, float]]]]:
    """Every (among / number)-th of the first `among` words, which are the most frequent, with their candidates and scores."""
    with open(path, encoding="utf-8") as file:
        lines = (line.rstrip("\n").split("\t") for line in file)
        groups = itertools.groupby(lines, key=lambda cells: cells[0])
        words = [(word, [(cells[1], float(cells[3])) for cells in group]) for word, group in itertools.islice(groups, among)]
    return evenly(words, number)


def switched_counts(study: Study) -> list[dict[str, Any]]:
    """A row per kind of noise, seed and language: words, replaced words, rate, coverage, shortfall."""
    return [
        {"arms": [*arms], "kind": kind, "seed": seed, "language": code, **counts}
        for kind, arms in _noises(study).items()
        for seed in study.seeds
        for code, counts in study.json(study.noised / kind / f"seed{seed}" / "codeswitch.json")["sides"].items()
    ]


def switched_examples(study: Study, per_side: int = 3, among: int = 2000) -> list[dict[str, Any]]:
    """The same sentences (8 to 25 tokens, evenly spaced in the first `among` lines) under every kind of noise, first seed, round 0."""
    kinds = list(_noises(study))
    examples = []
    for code in study.languages if kinds else ():
        sides = [noised_lines(study.noised / kind / f"seed{study.seeds[0]}", code, among) for kind in kinds]
        # the released noise has every second sentence only
        shared = [line for line in sides[0] if all(line in side for side in sides) and 8 <= len(line.split()) <= 25]
        for line in evenly([line for line in shared if sides[0][line] != line], per_side):
            noised = {kind: marked(line, side[line]) for kind, side in zip(kinds, sides, strict=True)}
            examples.append({"language": code, "original": line, "noised": noised})
    return examples


def noised_lines(folder: Path, code: str, among: int) -> dict[str, str]:
    """Original line → noised line of the first `among` rows of round 0; pieces are joined to words again."""
    with zstandard.open(folder / f"round0.{code}.tsv.zst", "rt", encoding="utf-8") as file:
        rows = [line.rstrip("\n").split("\t") for line in itertools.islice(file, among)]
    if read_json(folder / "codeswitch.json")["unit"] == "piece":
        rows = [(noised.replace(" ", "").replace("▁", " ").strip(), original) for noised, original in rows]
    return {original: noised for noised, original in rows}


def marked(original: str, changed: str) -> list[tuple[str, bool]]:
    """`changed` in runs of tokens, each with whether it differs from `original`."""
    before, after = original.split(), changed.split()
    blocks = difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    return [(" ".join(after[start:end]), tag != "equal") for tag, _, _, start, end in blocks if end > start]


def _noises(study: Study) -> dict[str, list[str]]:
    """Kind of noise → the arms that train on it."""
    kinds: dict[str, list[str]] = {}
    for arm, arm_phases in study.arms.items():
        for phase in arm_phases:
            if phase.name == "pretext":
                kinds.setdefault(phase.noise, []).append(arm)
    return kinds


# translations


def translations(study: Study, each: int = 5) -> dict[str, Any]:
    """Sentences of the first test set where the compared arm's sentence chrF is furthest above and below the baseline's."""
    testset = study.testsets[0]
    source, reference = (study.corpus / "test" / f"{testset}.{code}" for code in (study.source, study.target))
    sources, references = aligned(source, reference)
    hypotheses = {arm: aligned(_seed(study, arm) / f"{testset}.hyp", reference)[0] for arm in study.arms}
    compared = next(iter([*study.of_kind("codeswitch"), *reversed(study.arms)]))
    chrf = {
        arm: [sacrebleu.sentence_chrf(h, [r]).score for h, r in zip(hypotheses[arm], references, strict=True)]
        for arm in dict.fromkeys((study.baseline, compared))
    }
    gap = [mine - base for mine, base in zip(chrf[compared], chrf[study.baseline], strict=True)]
    low = study.low_frequency
    counts = count_words(study.corpus / f"train.{study.target}", study.target)

    def rare(line: str) -> set[str]:
        return {word for word in segment(line, study.target).split() if counts[word] < low}

    order = sorted(range(len(gap)), key=lambda i: -gap[i])
    chosen = [i for i in order[:each] if gap[i] > 0] + [i for i in order[-each:] if gap[i] < 0]
    shown = chosen or evenly(range(len(gap)), 2 * each)
    wanted = {i: rare(references[i]) for i in shown}
    return {
        "testset": testset,
        "compared": compared,
        "differ": bool(chosen),
        "rows": [
            {"line": i + 1, "gap": gap[i], "source": sources[i], "reference": rare_words(references[i], wanted[i], study.target)}
            | {"hypotheses": {arm: rare_words(lines[i], wanted[i], study.target) for arm, lines in hypotheses.items()}}
            for i in shown
        ],
        "low": low,
    }


def rare_words(line: str, wanted: set[str], code: str) -> list[tuple[str, bool]]:
    """`line` in pieces, each with whether it is a `wanted` (folded) word."""
    pieces, at = [], 0
    for start, end in words(line, code):
        if fold(line[start:end], code) in wanted:
            pieces += [(line[at:start], False), (line[start:end], True)]
            at = end
    return [piece for piece in [*pieces, (line[at:], False)] if piece[0]]


# cost and provenance


def cost(benchmarks: Path) -> list[dict[str, Any]]:
    """A row per stage, and their sum: jobs, seconds (wall clock and processor) and the largest memory of a job in MB."""
    jobs = []
    for path in sorted(benchmarks.glob("*/**/*.tsv")):
        with open(path, encoding="utf-8") as file:
            for row in csv.DictReader(file, delimiter="\t"):
                jobs.append((path.relative_to(benchmarks).parts[0], *(_number(row.get(key)) for key in ("s", "cpu_time", "max_rss"))))
    rows = []
    for stage in [*dict.fromkeys(job[0] for job in jobs), "all"] if jobs else []:
        mine = [job for job in jobs if stage in (job[0], "all")]
        rows.append(
            {"stage": stage, "jobs": len(mine), "seconds": sum(j[1] for j in mine), "cpu": sum(j[2] for j in mine)}
            | {"memory": max(j[3] for j in mine)}
        )
    return rows


def provenances(results: Path, paths: list[Path]) -> dict[str, Any]:
    """Commits with the number of files each made, versions by library, and whether either differs among the files."""
    found = [(path, read_json(path).get("provenance", {"commit": "unknown", "versions": {}})) for path in dict.fromkeys(paths)]
    commits = Counter(p["commit"] for _, p in found)
    files = {commit: [f"results/{path.relative_to(results)}" for path, p in found if p["commit"] == commit] for commit in commits}
    libraries = sorted({library for _, p in found for library in p["versions"]})
    versions = {name: sorted({p["versions"][name] for _, p in found if name in p["versions"]}) for name in libraries}
    return {"files": files, "versions": versions, "mixed": len(commits) > 1, "mixed_versions": any(len(v) > 1 for v in versions.values())}


# the table


def score_rows(part: dict[str, Any]) -> list[tuple]:
    """Rows of `scores.tsv`: the metrics, and the distances of backbone and arms (with the tag format as signature)."""
    study: Study = part["study"]
    head, direction = (study.name, "translation", study.corpus_name), f"{study.source}-{study.target}"
    rows: list[tuple] = [
        (*head, r["testset"], direction, r["arm"], r["seed"], r["metric"], round(r["value"], 6), r["signature"]) for r in part["measures"]
    ]
    for (testset, accuracy), arm, (place, seed) in itertools.product(part["words"].items(), study.arms, enumerate(study.seeds)):
        for bucket in accuracy["buckets"]:
            value = accuracy["cells"][arm, bucket]["values"][place]
            rows.append(
                (
                    *head,
                    testset,
                    direction,
                    arm,
                    seed,
                    f"word_f_{bucket}",
                    round(value, 6),
                    f"low<{accuracy['low']},high>={accuracy['high']}",
                )
            )
    for row in part["distances"]:
        seeds = study.seeds if row["phase"] else [""]
        for (seed, report), key in itertools.product(zip(seeds, row["reports"], strict=True), ("pairs_rms", "means")):
            metric = f"distance_{key}" + ("_pretext" if row["phase"] == "pretext" else "")
            rows.append((*head, "", direction, row["arm"], seed, metric, round(report[key], 6), report["tag_format"]))
    return rows


# small


def signed(value: float) -> str:
    """Two decimals with a sign, and a true minus; what rounds to nothing has no sign."""
    return "0.00" if abs(value) < 0.005 else f"{value:+.2f}".replace("-", "−")


def evenly(items: Sequence, number: int) -> list:
    """At most `number` of `items`, evenly spaced from the first."""
    return [items[i * len(items) // number] for i in range(number)] if len(items) > number else list(items)


def _seed(study: Study, arm: str, seed: int | None = None) -> Path:
    return study.run / arm / f"seed{study.seeds[0] if seed is None else seed}"


def _grouped(rows: list[dict[str, Any]], *keys: str):
    groups: dict[tuple, list] = {}
    for row in rows:
        groups.setdefault(tuple(row[key] for key in keys), []).append(row)
    return groups.items()


def _number(cell: str | None) -> float:
    try:
        return float(cell or 0)
    except ValueError:  # Snakemake writes NA or - for jobs too short to measure
        return 0.0


if __name__ == "__main__":
    run(main)
