"""Published numbers beside those that were measured here, with every condition that differs: only what agrees in all is comparable."""

from collections.abc import Iterator
from typing import Any

from workflow_scripts.config.experiments import Published
from workflow_scripts.evidence.average import AVERAGE
from workflow_scripts.evidence.comet import same_model
from workflow_scripts.evidence.metric import entry_of
from workflow_scripts.evidence.scores import ROUGES
from workflow_scripts.report.curves import ENOUGH_POINTS, updates_in_all
from workflow_scripts.report.study import Study, summary
from workflow_scripts.tasks.experiment import BACKBONE

Rows = list[dict[str, Any]]
WITHOUT_TEST_SET = ("distance", "cosine", "retrieval", UPDATES := "updates_to_baseline_loss")
"""What the metrics begin with that are measured on no test set."""


def published(study: Study, rows: Rows) -> Rows:
    """One row per published number: the number, what was measured here, and which conditions differ.

    `rows` are those of `scores.tsv`.
    """
    found = []
    for number in study.settings.published:
        testset = "" if number.metric.startswith(WITHOUT_TEST_SET) else number.testset or study.testsets[0]
        own = [row for row in rows if (row["testset"], row["arm"]) == (testset, number.arm)]
        folded = [row for row in own if row["metric"] == f"{number.metric}, lower-cased"]
        # on lower-cased text the plain metric already is the lower-cased one
        mine = folded if number.lowercase and folded else [row for row in own if _is_called(row["metric"], number.metric)]
        differs = [*other_conditions(study, number, testset, mine[0]["metric"], mine[0]["signature"])] if mine else ["not measured here"]
        found.append(
            {"number": number, "testset": testset, "measured": summary([row["value"] for row in mine]) if mine else None}
            | {"differs": differs}
        )
    return found


def updates_needed(updates_to_baseline: Rows) -> Iterator[dict[str, Any]]:
    """Rows like those of `scores.tsv` with the updates of finetuning until the baseline's least dev loss (Figure 2)."""
    for row in updates_to_baseline:
        for value in row["finetuning"]["values"] if row["finetuning"] and row["points"] >= ENOUGH_POINTS else ():
            yield {"testset": "", "arm": row["arm"], "metric": UPDATES, "value": value, "signature": ""}


def _is_called(metric: str, published: str) -> bool:
    """Whether a column of `scores.tsv` has the metric that was published; a paper seldom says how it was counted."""
    entry = entry_of(metric)
    return metric == published or (entry is not None and entry.name == published and not metric.endswith(", lower-cased"))


def other_conditions(study: Study, number: Published, testset: str, metric: str, signature: str) -> Iterator[str]:
    """Reasons why a number of `metric`, measured here on `testset`, cannot be compared with the published one."""
    yield from _other_text(study, number, testset)
    fields = dict(part.split(":", 1) for part in signature.split("|") if ":" in part)
    if number.metric in ROUGES and number.tokenize != fields["tok"]:
        yield f"counted by {number.tokenize or 'what is not stated'} there, by {fields['version']} on {fields['tok']} here"
    elif number.tokenize and fields.get("tok", number.tokenize) != number.tokenize:
        yield f"tokeniser {number.tokenize} there, {fields['tok']} here"
    if number.metric != metric.removesuffix(", lower-cased"):
        entry = entry_of(number.metric)
        stated = f"a {number.metric} that is not stated" if entry and entry.called else number.metric
        yield f"{stated} there, {metric} here"
    if number.metric == UPDATES:
        yield "a loss that is not stated there, the baseline's least dev loss here"
    lowercase = metric != number.metric or (testset or study.testsets[0]) in study.lowercased
    if _tells_cases_apart(study, number.metric) and number.lowercase != lowercase:
        cases = {True: "lower-cased text", False: "text with capitals"}
        yield f"{cases[number.lowercase]} there, {cases[lowercase]} here"
    if number.model and not same_model(number.model, fields.get("model", signature)):
        yield f"model {number.model} there, {fields.get('model', signature)} here"
    backbone = study.baseline if number.arm == BACKBONE else number.arm
    model = study.published_model(backbone)
    if number.backbone and number.backbone != model:
        yield f"backbone {number.backbone} there, {model or study.backbones[backbone]} here"
    if number.updates and number.arm == BACKBONE:
        yield f"{number.updates:,} updates there, those of the backbone here"
    elif number.updates:
        made = {*updates_in_all(study, number.arm)}
        if {number.updates} != made:
            yield f"{number.updates:,} updates there, {' and '.join(f'{updates:,}' for updates in sorted(made))} here"


def _other_text(study: Study, number: Published, testset: str) -> Iterator[str]:
    """Another test set, or another direction of translation."""
    here = ", ".join(study.testsets) if testset == AVERAGE else study.tested_on.get(testset, "")
    if number.tested_on and number.tested_on != here:
        yield f"tested on {number.tested_on} there, on {here or 'text without a name'} here"
    direction = study.direction(testset)
    if number.direction and number.direction != direction:
        yield f"direction {number.direction} there, {direction or 'none'} here"


def _tells_cases_apart(study: Study, metric: str) -> bool:
    """Whether a metric gives another value on lower-cased text. Metrics on `unaligned` text do not depend on the corpus."""
    entry = entry_of(metric)
    cased = entry.cased if entry else metric != UPDATES
    return not study.labelled and cased and not metric.endswith("_unaligned")
