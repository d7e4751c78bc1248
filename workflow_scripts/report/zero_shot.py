"""Several directions of translation together: matrices of zero-shot tests (Zan et al., Table III), and in how many an arm is ahead."""

import itertools
from collections.abc import Iterator
from typing import Any

from workflow_scripts.report.study import Study


def zero_shot(sections: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A matrix (Table III) per target language and metric: models in columns, test sets in rows.

    Experiments on one corpus have its rows together. The metrics are the leading one and, where it was measured, COMET.

    `cells` maps (experiment of the model, test set, arm) to a cell of that experiment's main table; `learnt` says whether the model was
    trained on the test set's language. `trivial` has the score of the trivial baseline on each test set, None where it was not measured.
    `tested` says whether any difference was tested with a seed.
    """
    measured = [part for part in sections if "scores" not in part["failed"] and part["study"].zero_shot]
    matrices = []
    wanted = dict.fromkeys((part["study"].target, metric) for part in measured for metric in shown_metrics(part))
    for target, metric in wanted:
        parts = {part["study"].name: part for part in measured if part["study"].target == target and metric in shown_metrics(part)}
        studies: dict[str, Study] = {name: part["study"] for name, part in parts.items()}
        first_on = {study.corpus_name: name for name, study in reversed(studies.items())}
        rows: dict[str, str] = {}
        cells: dict[tuple[str, str, str], dict[str, Any]] = {}
        trivial: dict[str, float | None] = {}
        lowercased: set[str] = set()
        for name, study in studies.items():
            owners = {test: studies.get(test.partition("@")[0]) if test in study.zero_shot else study for test in study.tested}
            called = {test: f"{first_on[owner.corpus_name]}@{test.rpartition('@')[2]}" if owner else test for test, owner in owners.items()}
            sources = {called[test]: study.zero_shot.get(test, study.source) for test in study.tested}
            rows |= sources
            trivial |= {called[test]: found.get(metric) for test, found in parts[name]["scores"]["trivial"].items()}
            lowercased |= {called[test] for test in study.lowercased}
            for test, arm in itertools.product(study.tested, study.arms):
                if cell := parts[name]["scores"]["tables"][test]["cells"].get((arm, metric)):
                    cells[name, called[test], arm] = {**cell, "learnt": sources[called[test]] in study.learnt_sources}
        matrices.append(
            {
                "target": target,
                "metric": metric,
                "columns": {name: study.learnt_sources for name, study in studies.items()},
                "rows": rows,
                "trivial": trivial,
                "trivially": next(iter(parts.values()))["scores"]["trivially"],
                "lowercased": lowercased,
                "arms": list(dict.fromkeys(arm for study in studies.values() for arm in study.arms)),
                "baselines": {name: study.baseline for name, study in studies.items()},
                "cells": cells,
                "tested": any(row["p"] is not None for cell in cells.values() for row in cell["seeds"]),
            }
        )
    return matrices


def shown_metrics(part: dict[str, Any]) -> list[str]:
    """The leading metric of an experiment and, where it was measured, COMET."""
    measured = {metric for table in part["scores"]["tables"].values() for _, metric in table["cells"]}
    return [part["study"].leading, *(["COMET"] if "COMET" in measured else [])]


def directions(sections: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """In how many directions each arm is ahead of its baseline, and significantly so, by metric: learnt ones, and zero-shot ones.

    `here` counts what was measured, `published` the numbers of the same arms, directions and metrics that were published of both. A
    direction counts once however many seeds there are: by the mean, and as significant if it is so with all seeds. Only directions that
    were tested with each seed can be significant, and `tested` counts them: of several seeds COMET has no such tests.
    """
    parts = [part for part in sections if "scores" not in part["failed"] and part["study"].zero_shot]
    counted: dict[tuple[bool, str, str], dict[str, Any]] = {}
    for part in parts:
        study: Study = part["study"]
        for test, metric, arm in itertools.product(study.tested, shown_metrics(part), study.arms):
            if arm == study.baseline:
                continue
            found = counted.setdefault((test in study.zero_shot, metric, arm), {"here": _nothing(), "published": _nothing()})
            cells = part["scores"]["tables"][test]["cells"]
            if (arm, metric) in cells and (study.baseline, metric) in cells:
                seeds = cells[arm, metric]["seeds"]
                ahead = cells[arm, metric]["mean"] - cells[study.baseline, metric]["mean"]
                significant = all(row["marker"] in ("†", "‡") for row in seeds)
                _count(found["here"], ahead, significant, all(row["p"] is not None for row in seeds))
            for ahead, mark in _published_gains(study, test, metric, arm):
                _count(found["published"], ahead, bool(mark))
    return [{"zero_shot": key[0], "metric": key[1], "arm": key[2], **found} for key, found in sorted(counted.items())]


def _nothing() -> dict[str, int]:
    return {"ahead": 0, "significant": 0, "tested": 0, "of": 0}


def _count(found: dict[str, int], difference: float, significant: bool, tested: bool = True) -> None:
    found["of"] += 1
    found["tested"] += tested
    found["ahead"] += difference > 0
    found["significant"] += difference > 0 and significant


def _published_gains(study: Study, test: str, metric: str, arm: str) -> Iterator[tuple[float, str]]:
    """The published difference of an arm from the baseline on a test set, with its mark; nothing if either number is unknown."""
    numbers = {
        number.arm: number
        for number in study.settings.published
        if number.metric == metric and (number.testset or study.testsets[0]) == test
    }
    if arm in numbers and study.baseline in numbers:
        yield numbers[arm].value - numbers[study.baseline].value, numbers[arm].significance
