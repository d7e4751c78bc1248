"""The report on tasks with labels: scores by language beside the trivial baseline (Table V of Zan et al.), curves, labels, dictionaries."""

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from workflow_scripts import registry
from workflow_scripts.evidence.average import AVERAGE
from workflow_scripts.evidence.significance import marker
from workflow_scripts.report import tables
from workflow_scripts.report.comparison import Rows, contrast, correct, grouped, interval_and_p, markers, with_ties
from workflow_scripts.report.curves import curve, loss_points
from workflow_scripts.report.exhibits import FREQUENT
from workflow_scripts.report.headline import headline, paired_differences
from workflow_scripts.report.measures import is_same_for_all_seeds, measure, metrics_beside, seeds_scored
from workflow_scripts.report.study import Study, spread, summary
from workflow_scripts.tasks.head_task import HeadTask
from workflow_scripts.text.examples import Example, read_table
from workflow_scripts.text.files import evenly
from workflow_scripts.text.labelled import sources
from workflow_scripts.text.languages import language
from workflow_scripts.text.tagged import split_words
from workflow_scripts.text.word_lists import read_lexicon
from workflow_scripts.text.words import count_words


def read_scores(study: Study, arm: str, testset: str, seed: int | None = None) -> dict[str, Any]:
    """What was measured of an arm on a test set with a seed, the first if none is given."""
    return study.json(scored_folder(study, arm, seed) / f"{testset}.scores.json")


def scored_folder(study: Study, arm: str, seed: int | None = None) -> Path:
    """Where an arm's answers and their scores are."""
    return study.seed(arm, None if is_same_for_all_seeds(study, arm) else seed) / "predictions"


class Answered(NamedTuple):
    """A test set with what the arms answered."""

    language: str
    examples: list[Example]
    answers: dict[str, list[Any]]
    """Arm → its answer to each example."""


def read_answered(study: Study, testset: str, seed: int | None = None) -> Answered:
    """The examples of a test set, and the answers of each arm with `seed`, or with the first seed."""
    code, task = test_language(study, testset), study.task
    table = read_table(study.corpus / "test" / f"{testset}.{code}.tsv")
    if not isinstance(task, HeadTask):
        raise ValueError(f"{study.name} has no head, whose answers could be read")
    answers = {arm: task.read_answers(scored_folder(study, arm, seed) / f"{testset}.hyp", table) for arm in study.arms}
    return Answered(code, table, answers)


# what was run


def parts(study: Study) -> dict[str, dict[str, Any]]:
    """What was read and left out, by part of the text."""
    block = study.text
    used = {"train", "dev", "test"}
    used |= {"translations"} if any(phase.translations for phases in study.arms.values() for phase in phases) else set()
    used |= {"more_dev"} if getattr(study.settings, "select_on", "") == "all" else set()
    languages = {part: block.language_of(part) for part in sources(block) if part.partition("/")[0] in used}
    if "translations" in used:
        languages |= {f"translated/{name}": block.language_of(f"translated/{name}") for name, one in block.translations.items() if one.by}
    return {part: study.json(study.corpus / f"{part}.{code}.json") for part, code in languages.items()}


def test_language(study: Study, testset: str) -> str:
    """The language of a test set."""
    block = study.text
    return block.test[testset].language or block.language


def language_names(study: Study, testset: str) -> str:
    """The language of a test set by name, or the two of which one is looked up in the other."""
    codes = getattr(study.text.test[testset], "languages", (test_language(study, testset),))
    return " to ".join(language(code).name for code in codes)


# scores


def scores(study: Study) -> dict[str, Any]:
    """The data of the part "Scores" (or "Accuracy"), and of the page's first box."""
    tested = study.json(study.tests / "significance.json")
    metric = measure(study).metric
    by_metric = {metric: tested["pairs"], **tested.get("more", {})}
    over_seeds = [
        {**row, "metric": name, "family": family(row["testset"]), "p_single": row["p"]}
        for name, pairs in by_metric.items()
        for row in pairs
        if row["seed"] is None
    ]
    correct(study, [row for row in over_seeds if row["other"] == study.baseline], "metric", "family")
    rows = measures(study, tested["pairs"])
    for row in over_seeds:
        values = rows if row["metric"] == metric else [{**one, "metric": row["metric"], "value": one[row["metric"]]} for one in rows]
        gap = contrast(values, row["arm"], row["other"], row["testset"], row["metric"])
        row["by_seed"] = gap["interval"] if gap else None
        row["marker"] = marker(row["p"], row["difference"] or 0.0, row["metric"], row["by_seed"])
    overall = {(row["testset"], row["arm"]): row for row in over_seeds if (row["other"], row["metric"]) == (study.baseline, metric)}
    for row in rows:
        if row["once"] and (test := overall.get((row["testset"], row["arm"]))):
            row |= {key: test[key] for key in ("difference", "p_single", "p", "marker")}
    answered = [AVERAGE if len(study.testsets) > 1 else study.testsets[0]]
    return {
        "measures": rows,
        "over_seeds": over_seeds,
        "covers": tested["covers"]["seeds"],
        "warnings": list(at_chance(study, rows)),
        "cut": cut_examples(study),
        "headline": headline(study, rows, over_seeds, answered, [metric], called(study) if answered == [AVERAGE] else None),
        "differences": paired_differences(study, rows, over_seeds, answered, metric),
        "measure": measure(study),
        "untrained": all(row["once"] for row in rows),
        "table": table(study, rows),
        "charts": charts(study, rows),
        "confusions": confusions(study),
        "beside": beside(study, rows),
    }


def cut_examples(study: Study) -> list[str]:
    """Sentences on test sets of which some examples were cut, or have an answer that no row has whole, with the arms they hold of."""
    sentences: dict[str, list[str]] = {}
    for testset, arm in itertools.product(study.testsets, study.arms):
        measured = read_scores(study, arm, testset)
        for what in ("example", "text"):
            if number := measured.get(f"cut_{what}s"):
                ends = (
                    f"{number:,} {what}{'s' if number > 1 else ''} of {testset} {'have' if number > 1 else 'has'} an end that was not read"
                )
                sentences.setdefault(ends, []).append(arm)
        if number := measured.get("answers_lost"):
            between = f"{number:,} answer{'s' if number > 1 else ''} of {testset} {'lie' if number > 1 else 'lies'} between two windows"
            sentences.setdefault(between, []).append(arm)
    return [f"{sentence} ({', '.join(arms)})." for sentence, arms in sentences.items()]


def called(study: Study) -> dict[str, str]:
    """Test set → its language by name, or its own name where several have one language."""
    names = {testset: language_names(study, testset) for testset in study.testsets}
    return names if len({*names.values()}) == len(names) else {testset: testset for testset in names}


def beside(study: Study, rows: Rows) -> list[dict[str, Any]]:
    """The metrics of plugins: what each is called, and its values, arms × test sets."""
    found = []
    for entry in [registry.entry("label_metric", name) for name in metrics_beside(study)]:
        cells = {key: summary([row[entry.name] for row in group]) for key, group in grouped(rows, "arm", "testset")}
        found.append({"entry": entry, "cells": cells})
    return found


def measures(study: Study, pairs: Rows) -> Rows:
    """One row per test set (and their average), seed and arm: score, 95 % interval, chance, difference from the baseline, p, marker.

    An arm that is scored `once` for all seeds has rows of the first, without a difference from the baseline. Rows of models that the run
    has pretrained, at least in part, say so (`pretrained_here`).
    `p` is corrected, as configured, for the comparisons of all arms and test sets with that seed, and by itself for those of the average.
    Those of arms that are scored `once` count in it, though their rows do not show them.
    """
    compared = [
        {**row, "family": family(row["testset"]), "p_single": with_ties(row["p"], row["difference"])}
        for row in pairs
        if row["other"] == study.baseline and row["seed"] is not None
    ]
    correct(study, compared, "family", "seed")
    tested = {(row["testset"], row["arm"], row["seed"]): row for row in compared}
    metric, others = measure(study).metric, measure(study).others
    rows: Rows = []
    for seed, arm in itertools.product(study.seeds, study.arms):
        if seed not in seeds_scored(study, arm):
            continue
        once = is_same_for_all_seeds(study, arm)
        found = {testset: read_scores(study, arm, testset, seed) for testset in study.testsets}
        if len(found) > 1:
            mean = {key: sum(one[key] for one in found.values()) / len(found) for key in (metric, *others, "chance")}
            found[AVERAGE] = {**mean, "low": None, "high": None, "at_chance": all(one["at_chance"] for one in found.values())}
        for testset, one in found.items():
            against = {} if once else tested.get((testset, arm, seed), {})
            rows.append(
                {"testset": testset, "seed": seed, "arm": arm, "metric": metric, "family": family(testset), "value": one[metric]}
                | {key: one[key] for key in ("low", "high", "chance", "at_chance", *others)}
                | {"once": once, "pretrained_here": arm in study.pretrained_here}
                | {"difference": against.get("difference"), "p_single": against.get("p_single"), "p": against.get("p")}
            )
    for row in rows:
        row["marker"] = marker(row["p"], row["difference"] or 0.0)
    return rows


def family(testset: str) -> str:
    """The family of comparisons that a test set belongs to: the average is corrected by itself."""
    return AVERAGE if testset == AVERAGE else "test sets"


def table(study: Study, rows: Rows) -> dict[str, Any]:
    """The main table: arms × test sets with their average, and a row for the trivial baseline."""
    cells = {key: {"seeds": group, **summary([row["value"] for row in group])} for key, group in grouped(rows, "arm", "testset")}
    columns = list(dict.fromkeys(row["testset"] for row in rows))
    chance = {row["testset"]: row["chance"] for row in rows}
    text = [["arm", *columns]]
    for arm in study.arms:
        text.append([arm, *(_plain(cells[arm, testset]) for testset in columns)])
    text.append([measure(study).trivial, *(f"{chance[testset]:.2f}" for testset in columns)])
    return {
        "columns": {testset: None if testset == AVERAGE else language_names(study, testset) for testset in columns},
        "cells": cells,
        "best": {testset: max(study.arms, key=lambda arm: cells[arm, testset]["mean"]) for testset in columns},
        "chance": chance,
        "text": {"Markdown": tables.markdown(text), "LaTeX": tables.latex(text)},
    }


def _plain(cell: dict[str, Any]) -> str:
    return f"{spread(cell['values'])} {markers(cell['seeds'])}".strip()


def charts(study: Study, rows: Rows) -> dict[str, dict[str, Any]]:
    """Test set → its chart: one dot per arm, with `bars` where intervals are known, and a line at the score of the trivial baseline."""
    several = len(study.seeds) > 1
    made: dict[str, dict[str, Any]] = {}
    for (testset,), group in grouped(rows, "testset"):
        dots = []
        for colour, arm in enumerate(study.arms):
            mine = [row for row in group if row["arm"] == arm]
            bar = {} if several else {"low": mine[0]["low"], "high": mine[0]["high"]}
            values = [row["value"] for row in mine]
            dots.append({"name": arm, "colour": colour, "value": sum(values) / len(values), "values": values if several else [], **bar})
        bars = any(dot.get("low") is not None for dot in dots)
        made[testset] = {"dots": dots, "bars": bars, "line": (measure(study).trivial, group[0]["chance"])}
    return made


def confusions(study: Study) -> list[dict[str, Any]]:
    """One confusion matrix per test set, of the compared arm with the first seed; none where answers are no labels."""
    if study.task.answers not in ("labels", "tags"):
        return []
    arm, seed = study.compared, study.seeds[0]
    return [
        {"testset": testset, "arm": arm, "seed": seed, "counts": read_scores(study, arm, testset)["confusion"]}
        for testset in study.testsets
    ]


def at_chance(study: Study, rows: Rows) -> Iterator[str]:
    """A sentence per test set where the interval of some arm does not lie above the score of the trivial baseline."""
    for (testset,), group in grouped([row for row in rows if row["testset"] != AVERAGE], "testset"):
        lost = dict.fromkeys(row["arm"] for row in group if row["at_chance"])
        if lost:
            name = language_names(study, testset)
            kind = measure(study)
            worst = "; ".join(kind.with_unit(f"{arm} {spread([row['value'] for row in group if row['arm'] == arm])}") for arm in lost)
            seeds = " with at least one seed" if len(study.seeds) > 1 else ""
            line, score, chance = kind.trivial, kind.name, kind.with_unit(f"{group[0]['chance']:.2f}")
            yield (
                f"On the test set {testset} ({name}) the {score} of {', '.join(lost)} is not shown to be above the {line}{seeds} "
                f"({worst}): {kind.guess} gets {chance}. "
                f"Differences between arms that do not beat the {line} say little."
            )


# curves


def curves(study: Study) -> dict[str, Any]:
    """Chart → its series, and one row per look at the dev set; x counts the updates of all phases of an arm."""
    measured = f"dev_{measure(study).metric}"
    made: dict[str, list[dict[str, Any]]] = {measured: [], "dev_loss": [], "loss": []}
    looks = []
    for (colour, arm), column in itertools.product(enumerate(study.arms), made):
        lines: dict[str, list] = {"lines": [], "dashed": []}
        for seed, phase in itertools.product(study.seeds, study.arms[arm]):
            finetune = phase.name == "finetune"
            if (finetune or column == "loss") and (points := curve(study, arm, seed, phase, column)):
                scaled = [(x, 100 * y) for x, y in points] if column == measured else points
                lines["lines" if finetune else "dashed"].append(scaled)
        made[column].append({"name": arm, "colour": colour, **lines})
    for arm, seed in itertools.product(study.arms, study.seeds):
        phase = study.arms[arm][-1]
        losses = dict(curve(study, arm, seed, phase, "dev_loss"))
        for update, share in curve(study, arm, seed, phase, measured):
            looks.append({"arm": arm, "seed": seed, "updates": update, "dev_score": 100 * share, "dev_loss": losses[update]})
    made["dev_score"] = made.pop(measured)
    return {"charts": made, "measure": measure(study), "looks": looks, "losses": loss_points(study)}


# dictionaries


def dictionaries(study: Study) -> dict[str, Any]:
    """Size and coverage of each given dictionary, with examples of words that are frequent in the test text of their language."""
    found = {}
    counts = words_of_tests(study)
    for called, folder in study.dictionaries.items():
        report, direction = study.json(folder / "lexicon.json"), called.rpartition(" ")[2]
        entries: dict[str, list[str]] = {}
        for word, candidate, _ in read_lexicon(folder / f"{direction}.tsv"):
            entries.setdefault(word, []).append(candidate)
        found[called] = {
            **report["directions"][direction],
            "file": report["dictionary"] or "learnt, not given",
            "languages": direction.split("-"),
            "examples": [(word, entries[word]) for word in evenly(most_frequent(entries, counts), 20)],
        }
    return {"dictionaries": found}


def words_of_tests(study: Study) -> Counter[str]:
    """How often each word occurs in the test sets that are in the language of the training text; nothing without dictionaries."""
    counts: Counter[str] = Counter()
    for testset in study.testsets if study.dictionaries else ():
        if (code := test_language(study, testset)) == study.source:
            table = read_table(study.corpus / "test" / f"{testset}.{code}.tsv")
            counts += count_words((text for example in table for text in example.texts), code)
    return counts


def most_frequent(words: Iterable[str], counts: Counter[str]) -> list[str]:
    """The words among which those are that are shown of a dictionary, the most frequent first."""
    return sorted(words, key=lambda word: -counts[word])[:FREQUENT]


def shown_of_dictionaries(study: Study) -> dict[Path, bytes]:
    """File of each given dictionary → its lines of the words that some are shown of, for packs."""
    found: dict[Path, bytes] = {}
    counts = words_of_tests(study)
    for called, folder in study.dictionaries.items():
        path = folder / f"{called.rpartition(' ')[2]}.tsv"
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        kept = {*most_frequent(dict.fromkeys(map(_word, lines)), counts)}
        found[path] = "".join(line for line in lines if _word(line) in kept).encode()
    return found


def _word(line: str) -> str:
    return line.partition("\t")[0]


# tags


def tagged(study: Study, number: int = 8) -> dict[str, Any]:
    """For each test set some of its sentences, with the true tags and those of each arm where these differ, first seed.

    They are evenly spaced among those of 4 to 25 words in which the arms' tags differ, or among all of this length where none do.
    """
    made = []
    for testset in study.testsets:
        code, table, given = read_answered(study, testset)
        sentences = []
        short = [at for at, example in enumerate(table) if 4 <= len(example.label.split(" ")) <= 25]
        telling = [at for at in short if len({tuple(answers[at]) for answers in given.values()}) > 1]
        for at in evenly(telling or short, number):
            truth = table[at].label.split(" ")
            tags = {arm: [(tag, tag != true) for tag, true in zip(answers[at], truth, strict=True)] for arm, answers in given.items()}
            sentences.append({"line": at + 1, "words": split_words(table[at].text), "truth": truth, "tags": tags})
        made.append({"testset": testset, "language": code, "sentences": sentences, "differ": len(telling), "short": len(short)})
    return {"testsets": made}


# all experiments


def accuracies(sections: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One table (Table V) per text that several experiments on one task share, with the arms of all of them."""
    parts = [part for part in sections if part["study"].labelled and "scores" not in part["failed"]]
    found = []
    compared = [
        {"corpus": part["study"].corpus_name, "task": part["study"].settings.task, "metric": measure(part["study"]).metric, "part": part}
        for part in parts
    ]
    for (corpus, *_), group in grouped(compared, "corpus", "task", "metric"):
        if len(group) > 1:
            columns = group[0]["part"]["scores"]["table"]["columns"]
            rows = [
                (row["part"]["study"], arm, row["part"]["scores"]["table"]["cells"]) for row in group for arm in row["part"]["study"].arms
            ]
            chance = group[0]["part"]["scores"]["table"]["chance"]
            found.append({"corpus": corpus, "columns": columns, "rows": rows, "chance": chance, "measure": measure(rows[0][0])})
    return found


def overview_rows(part: dict[str, Any]) -> list[dict[str, Any]]:
    """Rows of the overview of one task with labels: each arm on average over the test sets, or on the only one."""
    study: Study = part["study"]
    testset = AVERAGE if len(study.testsets) > 1 else study.testsets[0]
    measured = part.get("scores", {"over_seeds": []})
    wanted = testset, study.baseline, measure(study).metric
    over_seeds = {r["arm"]: r for r in measured["over_seeds"] if (r["testset"], r["other"], r["metric"]) == wanted}
    rows = []
    for arm in study.arms:
        cell = part["scores"]["table"]["cells"][arm, testset] if "scores" in part else None
        tested = over_seeds.get(arm)
        markers = [row["marker"] for row in cell["seeds"] if row["marker"]] if cell else []
        rows.append(
            {
                "study": study,
                "metric": measure(study).metric,
                "testset": testset,
                "arm": arm,
                "score": cell,
                "trivial": part["scores"]["table"]["chance"][testset] if cell else None,
                "reason": part["failed"].get("scores", ""),
            }
            | {"gain": {"mean": tested["difference"]} if tested else None, "tested": tested}
            | {"markers": markers}
            | {"distance": None, "closer": None}
        )
    return rows


# scores.tsv


def tested_direction(study: Study, testset: str) -> str:
    """From the language learnt in to that tested in, or from that of the sentences looked up to that of those found."""
    pair = getattr(study.text.test[testset], "languages", (study.source, test_language(study, testset)))
    return "-".join(pair)


def score_rows(study: Study, measured: Rows) -> list[tuple]:
    """Rows of `scores.tsv`: all scores, the trivial baseline's too; the direction is from the language learnt in to that tested in."""
    rows = []
    kind = measure(study)
    for row in measured:
        testset = row["testset"]
        direction = study.source if testset == AVERAGE else tested_direction(study, testset)
        head = (study.name, study.settings.task, study.corpus_name, testset, direction, row["arm"], row["seed"])
        rows += [
            (*head, kind.metric, round(row["value"], 6), "", *interval_and_p(row)),
            *((*head, other, round(row[other], 6), "", "", "", "") for other in kind.others),
            (*head, "chance", round(row["chance"], 6), kind.signature, "", "", ""),
        ]
    return rows
