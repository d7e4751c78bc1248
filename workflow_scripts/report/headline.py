"""The first box of the page: what the comparisons of the arms say, in plain sentences and no further than the numbers go.

Each arm that learns something before the task is compared with the baseline (does the extra stage help?) and with the controls of that (of
code-switching: is it the other language, is it the right words?). Every comparison gets one sentence per metric, with the difference,
its 95 % interval and p. Where chance could make the difference, the sentence says that nothing is shown. With one seed it says "better on
these sentences" and never yes, since nothing is known about another training. Models that are compared as they are have no other training.
Of them it says so if the run has pretrained them: nothing is known about another pretraining.

With several seeds, chance must be out of the question by Student's interval of the seeds' differences, too: of a few seeds drawn with
replacement the bootstrap makes too little.
"""

import itertools
from dataclasses import replace
from typing import Any

from workflow_scripts import registry
from workflow_scripts.config.phases import Phase
from workflow_scripts.evidence.metric import higher_is_better
from workflow_scripts.evidence.significance import has_zero
from workflow_scripts.noise.entry import Noise
from workflow_scripts.report.measures import score_names
from workflow_scripts.report.study import Study, digits, paired, spread, summary
from workflow_scripts.run.outcomes import signed
from workflow_scripts.training.objective import Objective

Rows = list[dict[str, Any]]

QUESTIONS = {
    "baseline": "{asks} {arm} against the baseline, {other}",
    "plain": "{asks} {arm} against {other}, which starts from the same backbone",
    "scratch": "Do random weights do better than pretrained ones? {arm}, which starts from random weights, against the baseline, {other}",
    "longer": "Does the longer chain help? {arm} against {other}, which has fewer phases",
    "untrained": "Does the model do as well without finetuning? {arm} against the baseline, {other}",
    "switch": "Does it help to switch words of the task's text? {arm} against the baseline, {other}",
    "translations": "Do translations of the task's text help? {arm} against the baseline, {other}",
    "other": "Does this help? {arm} against the baseline, {other}",
}
"""What a comparison asks, by its kind; `other` is a comparison in which more differs than what is learnt before the task. That, a
noise or an objective, says what it `asks`."""


def headline(
    study: Study, rows: Rows, over_seeds: Rows, testsets: list[str], metrics: list[str], called: dict[str, str] | None = None
) -> list[dict[str, Any]]:
    """Per comparison of two arms its `question` and `answers`: a sentence per test set and metric, in two parts, `claim` and `numbers`.

    `rows` has a row per test set, seed, arm and metric with its `value`; `over_seeds` a row per test set, metric and pair of arms with
    `difference`, `low`, `high` and `p`. An answer by the first of the `metrics` is `leading`. Empty with a single arm. Where the average is
    answered, and test sets are `called` something, there are the differences of each, too: `testsets`, the rows of a chart, and `counts`.
    """
    found = []
    for arm, other, kind in comparisons(study):
        said = []
        for testset, metric in itertools.product(testsets, metrics):
            claim, numbers = answer(rows, over_seeds, arm, other, testset, metric)
            said.append({"claim": where(study, testset) + claim, "numbers": numbers, "metric": metric, "leading": metric == metrics[0]})
        each = differences_by_testset(rows, over_seeds, arm, other, metrics[0], called) if called else []
        about = {"arm": arm, "testsets": each, "counts": counted(each, arm) if each else ""}
        found.append({"question": question(study, arm, other, kind), "answers": said, **about})
    return found


def differences_by_testset(rows: Rows, over_seeds: Rows, arm: str, other: str, metric: str, called: dict[str, str]) -> Rows:
    """A row for each test set that is `called` something, for a chart, with what is `shown`: the highest difference first."""
    found = []
    for testset, name in called.items():
        row = _of_chart(rows, over_seeds, arm, other, testset, metric)
        if row and row["p"] is not None:
            found.append({"name": name, **row})
    return sorted(found, key=lambda row: -row["value"])


def counted(each: Rows, arm: str) -> str:
    """A sentence on how many test sets an arm is better on, and worse, and on how many that is not shown."""
    counts = {shown: sum(row["shown"] == shown for row in each) for shown in ("better", "worse", "not shown")}
    return f"{arm} by test set: {', '.join(f'{shown} in {count}' for shown, count in counts.items() if count)}"


def paired_differences(study: Study, rows: Rows, over_seeds: Rows, testsets: list[str], metric: str) -> Rows:
    """What charts of paired differences show, one for each test set: `testset`, where that is (`on`), and `rows`, one for each comparison.

    Test sets without an interval have none. The differences are in `metric`, counted in `unit`; `sides` says what is below zero, and above.
    """
    sides = ("the first is worse", "the first is better")
    about = {"metric": score_names().get(metric, metric), "unit": unit(metric), "sides": sides if higher_is_better(metric) else sides[::-1]}
    found = []
    for testset in testsets:
        compared = [(arm, other, _of_chart(rows, over_seeds, arm, other, testset, metric)) for arm, other, _ in comparisons(study)]
        shown = [{"name": f"{arm} − {other}", **row} for arm, other, row in compared if row]
        on = f"on {testset}" if testset in study.testsets else f"on average over {len(study.testsets)} test sets"
        found += [{"testset": testset, "on": on, "rows": shown, **about}] if shown else []
    return found


def _of_chart(rows: Rows, over_seeds: Rows, arm: str, other: str, testset: str, metric: str) -> dict[str, Any] | None:
    """A row of a chart: a difference with its interval, `words` and what is `shown`. None where it was not tested, or has no interval."""
    tested, pairs = _tested(over_seeds, arm, other, testset, metric), paired(rows, arm, other, testset, metric)
    if not pairs or tested is None or tested["low"] is None:
        return None
    gap, places = summary([mine - theirs for mine, theirs in pairs]), digits(metric)
    verdict = judged(gap, tested, metric, made_again(rows, arm, other))
    shown = next((each for each in ("better", "worse") if verdict.startswith(each)), "not shown")
    words = f"{signed(gap['mean'], places)} ({signed(tested['low'], places)} to {signed(tested['high'], places)}), {verdict}"
    row = {"value": gap["mean"], "low": tested["low"], "high": tested["high"], "values": gap["values"] if gap["n"] > 1 else []}
    return {
        **row,
        "p": tested["p"],
        "words": words,
        "verdict": verdict,
        "shown": shown,
        "colour": {"better": 1, "worse": 2, "not shown": 0}[shown],
    }


def ordered(study: Study, over_seeds: Rows) -> Rows:
    """The tests of every two arms: first the comparisons that are asked for, in their order and direction, then the others."""
    wanted = {(arm, other): place for place, (arm, other, _) in enumerate(comparisons(study))}
    rows = [turned(row) if (row["other"], row["arm"]) in wanted else row for row in over_seeds]
    return sorted(rows, key=lambda row: wanted.get((row["arm"], row["other"]), len(wanted)))


def turned(row: dict[str, Any]) -> dict[str, Any]:
    """A test the other way round."""
    negative = {key: None if row.get(key) is None else -row[key] for key in ("difference", "low", "high")}
    by_seed = row.get("by_seed")
    ends = {"low": negative["high"], "high": negative["low"], "by_seed": (-by_seed[1], -by_seed[0]) if by_seed else by_seed}
    return {**row, "arm": row["other"], "other": row["arm"], "difference": negative["difference"], **ends}


def where(study: Study, testset: str) -> str:
    """Which test set an answer is about, where there are several; a name that is none of them is their average."""
    if len(study.testsets) == 1:
        return ""
    if testset in study.testsets:
        return f"Test set {testset}: "
    names = f" ({', '.join(study.testsets)})" if len(study.testsets) <= _FEW else ""
    return f"On average over {len(study.testsets)} test sets{names}: "


_FEW = 6
"""Test sets that are named one by one where their average is shown."""


def comparisons(study: Study) -> list[tuple[str, str, str]]:
    """Pairs of arms to compare, and the kind of comparison: a key of `QUESTIONS`, or the noise or objective of the second arm.

    An arm that learns something before the task is compared with the baseline, and with the arms of its controls. It is also compared with
    the arms of what it names itself (`against`), and with those whose chains it makes longer. A control is compared only with what it is a
    control of.
    """
    restoring, others = study.methods, study.of_kind("task")
    if not restoring:
        return [(arm, study.baseline, _other(study, arm)) for arm in study.arms if arm != study.baseline]
    found = []
    for arm in study.arms:
        # what restoring is worth shows only between arms of one backbone that learn the task in one way
        alike = [other for other in (study.baseline, *others) if _start(study, other) == _start(study, arm)]
        if arm in restoring:
            plain = alike[0] if alike else study.baseline
            learns = study.arms[plain][0].bridge
            found.append((arm, plain, "other" if not alike or learns else "baseline" if plain == study.baseline else "plain"))
            mine = method_of(study, arm)
            wanted = [name for name, entry in bridges().items() if entry.control_of == mine.name or name in mine.against]
            controls = [(control, kind) for kind in wanted for control in study.of_kind(kind)]
            found += [(arm, control, kind) for control, kind in controls if _dose(study, control) == _dose(study, arm)]
            shorter = [each for each in restoring if _start(study, each) == _start(study, arm) and _is_within(study, each, arm)]
            found += [(arm, each, "longer") for each in shorter]
        elif arm in others:
            found.append((arm, study.baseline, _other(study, arm)))
    return found


def question(study: Study, arm: str, other: str, kind: str) -> str:
    """What a comparison of this kind asks."""
    if kind in QUESTIONS:
        asks = method_of(study, arm).asks if arm in study.methods else ""
        return QUESTIONS[kind].format(asks=asks, arm=arm, other=other)
    mine, theirs = method_of(study, arm), bridges()[kind]
    asks = theirs.asks if theirs.control_of == mine.name else f"Is {mine.label} better than {theirs.label}?"
    return f"{asks} {arm} against {other}"


def bridges() -> dict[str, Noise | Objective]:
    """All noises and objectives by name, each of which is the name of one of them."""
    return {**registry.entries("noise"), **registry.entries("objective")}


def method_of(study: Study, arm: str) -> Noise | Objective:
    """The noise or objective that an arm is about: the last of its chain that is a control of no other."""
    return next(entry for phase in reversed(study.arms[arm]) if (entry := phase.bridge) and not entry.control_of)


def _is_within(study: Study, shorter: str, longer: str) -> bool:
    """Whether a chain has what another one has, in its order, and more."""
    some, all_of = ([(phase.data, phase.text) for phase in study.arms[arm]] for arm in (shorter, longer))
    rest = iter(all_of)
    return len(some) < len(all_of) and all(phase in rest for phase in some)


def _other(study: Study, arm: str) -> str:
    """What is asked of an arm that learns nothing before the task."""
    if any(phase.untrained for phase in study.arms[arm]):
        return "untrained"
    drawn, baseline = (any(phase.start == "scratch" for phase in study.arms[one]) for one in (arm, study.baseline))
    if drawn and not baseline:
        return "scratch"
    # only where nothing else differs; models that are looked up have no phases
    if study.backbones[arm] != study.backbones[study.baseline] or not 0 < len(study.arms[arm]) == len(study.arms[study.baseline]):
        return "other"
    mine, theirs = (study.arms[one][-1] for one in (arm, study.baseline))
    if mine.switch and not theirs.switch and _way(mine) == _way(replace(theirs, switch=mine.switch)):
        return "switch"
    if mine.translations and not theirs.translations and _way(mine) == _way(replace(theirs, translations=True)):
        return "translations"
    return "other"


def _way(phase: Phase) -> tuple[object, ...]:
    """How a task phase learns: what it starts from, whether it switches words, learns from translations or from what another arm writes,
    how it writes itself, and which weights it trains."""
    writes = phase.generator, phase.sga, phase.generator_settings, phase.shots
    return phase.start, phase.switch, phase.translations, phase.targets_from, *writes, phase.training.get("adapter")


def _start(study: Study, arm: str) -> tuple[object, ...]:
    """The backbone that an arm starts from, and how it learns its task."""
    return study.backbones[arm], _way(study.arms[arm][-1])


def _dose(study: Study, arm: str) -> tuple[object, ...]:
    """What an arm and its controls have in common: they start from one backbone, and train each phase as long and in the same way.

    An adapter trains other weights, so that more than what is restored would differ.
    """
    phases = study.arms[arm]
    return _start(study, arm), [(phase.start, phase.updates, phase.epochs, phase.training.get("adapter")) for phase in phases]


def answer(rows: Rows, over_seeds: Rows, arm: str, other: str, testset: str, metric: str) -> tuple[str, str]:
    """What a metric says of `arm` against `other` on a test set: the claim, and the numbers behind it."""
    called = score_names().get(metric, metric)
    pairs = paired(rows, arm, other, testset, metric)
    if not pairs:
        return f"Not known in {called}", "a score is missing (see below)."
    mine, theirs = ([pair[side] for pair in pairs] for side in (0, 1))
    gap = summary([a - b for a, b in pairs])
    once = {row["arm"] for row in rows if row.get("once")}
    mine, theirs = (side[:1] if name in once else side for side, name in ((mine, arm), (theirs, other)))
    both = f"{arm} has {spread(mine, digits(metric))}, {other} {spread(theirs, digits(metric))}"
    tested, again = _tested(over_seeds, arm, other, testset, metric), made_again(rows, arm, other)
    verdict = judged(gap, tested, metric, again)
    if verdict == "no difference":
        return f"No difference in {called}", f"{both}."
    numbers = f"{both}, a difference of {signed(gap['mean'], digits(metric))} ({', '.join(_uncertainty(gap, tested, metric))})"
    by = f"by {abs(gap['mean']):.{digits(metric)}f} {unit(metric)}"
    match verdict:
        case "not tested":
            return f"Not tested in {called}", f"{numbers}."
        case "not shown":
            return f"Not shown in {called}", f"{numbers}. Chance could make such a difference."
        case "not shown by the seeds alone":
            low, high = (signed(limit, digits(metric)) for limit in gap["interval"])
            return f"Not shown in {called}", f"{numbers}. By the {gap['n']} seeds alone, Student's interval is {low} to {high}."
        case "better" | "worse":
            return f"{'Yes' if verdict == 'better' else f'No, {other} is better'}, {by}", f"{numbers}."
    who = "Better" if verdict.startswith("better") else f"{other} is better"
    return f"{who} on these sentences, {by}; another {again} may differ", f"{numbers}."


def judged(gap: dict[str, Any], tested: dict[str, Any] | None, metric: str, again: str) -> str:
    """What is known of a difference, in words; `again` is what could be made again, and come out in another way."""
    if not any(gap["values"]):
        return "no difference"
    if tested is None or tested["p"] is None:
        return "not tested"
    if _within_chance(tested):
        return "not shown"
    if has_zero(gap["interval"]):
        return "not shown by the seeds alone"
    better = gap["mean"] > 0 if higher_is_better(metric) else gap["mean"] < 0
    # with one seed sentences were resampled, trainings were not
    return f"{'better' if better else 'worse'}{' on these sentences' if gap['n'] == 1 and again else ''}"


def made_again(rows: Rows, arm: str, other: str) -> str:
    """What of two arms could be made again and come out in another way: their training, or the pretraining of models as they are."""
    once = {row["arm"] for row in rows if row.get("once")}
    pretrained = {row["arm"] for row in rows if row.get("pretrained_here")}
    return "training" if not {arm, other} <= once else "pretraining" if {arm, other} & pretrained else ""


def _within_chance(tested: dict[str, Any]) -> bool:
    """Whether the test leaves a difference to chance."""
    # p and interval come from the same resamples, but where they are askew one may leave zero out and the other not
    return tested["p"] >= 0.05 or (tested["low"] is not None and tested["low"] < 0 < tested["high"])


def _tested(over_seeds: Rows, arm: str, other: str, testset: str, metric: str) -> dict[str, Any] | None:
    """The test of `arm` − `other`; a test of `other` − `arm` is turned round."""
    for row in over_seeds:
        if (row["testset"], row["metric"]) == (testset, metric) and {row["arm"], row["other"]} == {arm, other}:
            return row if row["arm"] == arm else turned(row)
    return None


def _uncertainty(gap: dict[str, Any], tested: dict[str, Any] | None, metric: str) -> list[str]:
    """How sure a difference is: its range over the seeds, its interval and its p, as far as there are any."""
    places = digits(metric)
    found = [f"{signed(gap['min'], places)} to {signed(gap['max'], places)} over {gap['n']} seeds"] if gap["n"] > 1 else []
    if tested and tested["low"] is not None:
        found.append(f"95 % interval {signed(tested['low'], places)} to {signed(tested['high'], places)}")
    return [*found, p_value(tested["p"] if tested else None)]


def p_value(p: float | None) -> str:
    """A p-value as text."""
    return "no p-value" if p is None else "p < 0.001" if p < 0.001 else f"p = {p:.3f}"


def unit(metric: str) -> str:
    """What a difference in a metric is counted in."""
    if metric in (names := score_names()):
        return f"points of {names[metric]}{'' if higher_is_better(metric) else ' (lower is better)'}"
    return metric if higher_is_better(metric) else f"{metric} (lower is better)"
