"""Classification: accuracy by language with what guessing gets (Table V of Zan et al.), its curves, labels and dictionaries."""

import itertools
from collections import Counter
from collections.abc import Iterator
from typing import Any

from workflow_scripts.evidence.significance import marker
from workflow_scripts.report import tables
from workflow_scripts.report.comparison import Rows, correct, grouped, interval_and_p, markers
from workflow_scripts.report.curves import curve, loss_points
from workflow_scripts.report.headline import headline
from workflow_scripts.report.study import Study, evenly, spread, summary
from workflow_scripts.tasks.classification import AVERAGE
from workflow_scripts.text.languages import language
from workflow_scripts.text.word_lists import read_lexicon
from workflow_scripts.text.words import count_words

# what was run


def labelled_text(study: Study) -> dict[str, Any]:
    """Examples by part and label, and what was removed."""
    languages = {"train": study.source, "dev": study.source, **{f"test/{t}": test_language(study, t) for t in study.testsets}}
    parts = {part: study.json(study.corpus / f"{part}.{code}.json") for part, code in languages.items()}
    return {"parts": parts, "labels": study.labelled.labels}


def test_language(study: Study, testset: str) -> str:
    """The language of a test set."""
    return study.labelled.test[testset].language or study.labelled.language


# accuracy


def accuracy(study: Study) -> dict[str, Any]:
    """Everything that the page says of accuracy."""
    tested = study.json(study.run / "significance.json")
    rows = measures(study, tested["pairs"])
    over_seeds = [{**row, "metric": "accuracy", "family": _family(row["testset"])} for row in tested["pairs"] if row["seed"] is None]
    for row in over_seeds:
        row["p_single"] = row["p"]
    correct(study, [row for row in over_seeds if row["other"] == study.baseline], "family")
    for row in over_seeds:
        row["marker"] = marker(row["p"], row["difference"] or 0.0)
    return {
        "measures": rows,
        "over_seeds": over_seeds,
        "covers": tested["covers"]["seeds"],
        "warnings": list(at_chance(study, rows)),
        "headline": headline(study, rows, over_seeds, [AVERAGE if len(study.testsets) > 1 else study.testsets[0]], ["accuracy"]),
        "table": table(study, rows),
        "charts": charts(study, rows),
        "confusions": confusions(study),
    }


def measures(study: Study, pairs: Rows) -> Rows:
    """A row per test set (and their average), seed and arm: accuracy, 95 % interval, chance, difference from the baseline, p and marker.

    `p` is corrected, as configured, for the comparisons of all arms and test sets with that seed, and by itself for those of the average.
    """
    tested = {(row["testset"], row["arm"], row["seed"]): row for row in pairs if row["other"] == study.baseline}
    rows: Rows = []
    for seed, arm in itertools.product(study.seeds, study.arms):
        found = {testset: study.json(study.seed(arm, seed) / f"{testset}.scores.json") for testset in study.testsets}
        if len(found) > 1:
            mean = {key: sum(one[key] for one in found.values()) / len(found) for key in ("accuracy", "macro_f1", "chance")}
            found[AVERAGE] = {**mean, "low": None, "high": None, "at_chance": all(one["at_chance"] for one in found.values())}
        for testset, one in found.items():
            against = tested.get((testset, arm, seed), {})
            rows.append(
                {"testset": testset, "seed": seed, "arm": arm, "metric": "accuracy", "family": _family(testset), "value": one["accuracy"]}
                | {key: one[key] for key in ("low", "high", "chance", "at_chance", "macro_f1")}
                | {"difference": against.get("difference"), "p_single": against.get("p") if against.get("difference") else None}
            )
    correct(study, rows, "family", "seed")
    for row in rows:
        row["marker"] = marker(row["p"], row["difference"] or 0.0)
    return rows


def _family(testset: str) -> str:
    return AVERAGE if testset == AVERAGE else "test sets"


def table(study: Study, rows: Rows) -> dict[str, Any]:
    """Arms × test sets, with their average, and the row of guessing."""
    cells = {key: {"seeds": group, **summary([row["value"] for row in group])} for key, group in grouped(rows, "arm", "testset")}
    columns = list(dict.fromkeys(row["testset"] for row in rows))
    chance = {row["testset"]: row["chance"] for row in rows}
    text = [["arm", *columns]]
    for arm in study.arms:
        text.append([arm, *(_plain(cells[arm, testset]) for testset in columns)])
    text.append(["guessing", *(f"{chance[testset]:.2f}" for testset in columns)])
    return {
        "columns": {testset: None if testset == AVERAGE else language(test_language(study, testset)).name for testset in columns},
        "cells": cells,
        "best": {testset: max(study.arms, key=lambda arm, t=testset: cells[arm, t]["mean"]) for testset in columns},
        "chance": chance,
        "text": {"Markdown": tables.markdown(text), "LaTeX": tables.latex(text)},
    }


def _plain(cell: dict[str, Any]) -> str:
    return f"{spread(cell['values'])} {markers(cell['seeds'])}".strip()


def charts(study: Study, rows: Rows) -> dict[str, dict[str, Any]]:
    """For each test set a dot per arm, and the line of guessing."""
    several = len(study.seeds) > 1
    made: dict[str, dict[str, Any]] = {}
    for (testset,), group in grouped(rows, "testset"):
        dots = []
        for colour, arm in enumerate(study.arms):
            mine = [row for row in group if row["arm"] == arm]
            bar = {} if several else {"low": mine[0]["low"], "high": mine[0]["high"]}
            values = [row["value"] for row in mine]
            dots.append({"name": arm, "colour": colour, "value": sum(values) / len(values), "values": values if several else [], **bar})
        made[testset] = {"dots": dots, "line": ("guessing", group[0]["chance"])}
    return made


def confusions(study: Study) -> list[dict[str, Any]]:
    """For each test set the confusion matrix of the compared arm, first seed."""
    arm = next(iter([*study.of_kind("codeswitch"), *reversed(study.arms)]))
    seed = study.seeds[0]
    return [
        {"testset": testset, "arm": arm, "seed": seed, "counts": study.json(study.seed(arm) / f"{testset}.scores.json")["confusion"]}
        for testset in study.testsets
    ]


def at_chance(study: Study, rows: Rows) -> Iterator[str]:
    """Where the interval of an arm with a seed does not lie above what guessing gets."""
    for (testset,), group in grouped([row for row in rows if row["testset"] != AVERAGE], "testset"):
        lost = dict.fromkeys(row["arm"] for row in group if row["at_chance"])
        if lost:
            name = language(test_language(study, testset)).name
            worst = "; ".join(f"{arm} {spread([row['value'] for row in group if row['arm'] == arm])} %" for arm in lost)
            seeds = " with at least one seed" if len(study.seeds) > 1 else ""
            yield (
                f"On the test set {testset} ({name}) the accuracy of {', '.join(lost)} is at chance{seeds} ({worst}): always "
                f"answering with the most frequent label gets {group[0]['chance']:.2f} %. "
                "Differences between arms that only guess mean nothing."
            )


# curves


def curves(study: Study) -> dict[str, Any]:
    """Series by chart, and a row per look at the dev set; x counts an arm's updates, of all phases."""
    made: dict[str, list[dict[str, Any]]] = {"dev_accuracy": [], "dev_loss": [], "loss": []}
    looks = []
    for (colour, arm), column in itertools.product(enumerate(study.arms), made):
        lines: dict[str, list] = {"lines": [], "dashed": []}
        for seed, phase in itertools.product(study.seeds, study.arms[arm]):
            finetune = phase.name == "finetune"
            if (finetune or column == "loss") and (points := curve(study, arm, seed, phase, column)):
                scaled = [(x, 100 * y) for x, y in points] if column == "dev_accuracy" else points
                lines["lines" if finetune else "dashed"].append(scaled)
        made[column].append({"name": arm, "colour": colour, **lines})
    for arm, seed in itertools.product(study.arms, study.seeds):
        phase = study.arms[arm][-1]
        losses = dict(curve(study, arm, seed, phase, "dev_loss"))
        for update, share in curve(study, arm, seed, phase, "dev_accuracy"):
            looks.append({"arm": arm, "seed": seed, "updates": update, "dev_accuracy": 100 * share, "dev_loss": losses[update]})
    return {"charts": made, "looks": looks, "losses": loss_points(study)}


# dictionaries


def dictionaries(study: Study) -> dict[str, Any]:
    """Size and coverage of each given dictionary, and the entries of frequent words."""
    found = {}
    counts = count_words(study.corpus / f"train.{study.source}", study.source) if study.dictionaries else Counter()
    for called, folder in study.dictionaries.items():
        report, direction = study.json(folder / "lexicon.json"), called.rpartition(" ")[2]
        entries: dict[str, list[str]] = {}
        for word, candidate, _ in read_lexicon(folder / f"{direction}.tsv"):
            entries.setdefault(word, []).append(candidate)
        frequent = sorted(entries, key=lambda word, entries=entries: -counts[word])[:400]
        found[called] = {
            **report["directions"][direction],
            "file": report["dictionary"],
            "languages": direction.split("-"),
            "examples": [(word, entries[word]) for word in evenly(frequent, 20)],
        }
    return {"dictionaries": found}


# all experiments


def accuracies(sections: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """For each labelled corpus of several experiments a table of all their arms (Table V)."""
    parts = [part for part in sections if part["study"].labelled and "scores" not in part["failed"]]
    found = []
    for (corpus,), group in grouped([{"corpus": part["study"].corpus_name, "part": part} for part in parts], "corpus"):
        if len(group) > 1:
            columns = group[0]["part"]["scores"]["table"]["columns"]
            rows = [
                (row["part"]["study"], arm, row["part"]["scores"]["table"]["cells"]) for row in group for arm in row["part"]["study"].arms
            ]
            found.append({"corpus": corpus, "columns": columns, "rows": rows, "chance": group[0]["part"]["scores"]["table"]["chance"]})
    return found


def overview_rows(part: dict[str, Any]) -> list[dict[str, Any]]:
    """Rows of the overview of one classification: each arm on average over the test sets, or on the only one."""
    study: Study = part["study"]
    testset = AVERAGE if len(study.testsets) > 1 else study.testsets[0]
    measured = part.get("scores", {"over_seeds": []})
    over_seeds = {r["arm"]: r for r in measured["over_seeds"] if (r["testset"], r["other"]) == (testset, study.baseline)}
    rows = []
    for arm in study.arms:
        cell = part["scores"]["table"]["cells"][arm, testset] if "scores" in part else None
        tested = over_seeds.get(arm)
        rows.append(
            {
                "study": study,
                "metric": "accuracy",
                "testset": testset,
                "arm": arm,
                "score": cell,
                "reason": part["failed"].get("scores", ""),
            }
            | {"gain": {"mean": tested["difference"]} if tested else None, "tested": tested}
            | {"markers": [row["marker"] for row in cell["seeds"] if row["marker"]] if cell else []}
            | {"distance": None, "closer": None}
        )
    return rows


# scores.tsv


def score_rows(study: Study, measured: Rows) -> list[tuple]:
    """Rows of `scores.tsv`: accuracy, macro F1 and what guessing gets; the direction is from the language learnt in to that tested in."""
    rows = []
    for row in measured:
        testset = row["testset"]
        direction = study.source if testset == AVERAGE else f"{study.source}-{test_language(study, testset)}"
        head = (study.name, "classification", study.corpus_name, testset, direction, row["arm"], row["seed"])
        rows += [
            (*head, "accuracy", round(row["value"], 6), "", *interval_and_p(row)),
            (*head, "macro_f1", round(row["macro_f1"], 6), "", "", "", ""),
            (*head, "chance", round(row["chance"], 6), "most frequent label", "", "", ""),
        ]
    return rows
