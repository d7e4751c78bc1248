"""What the scores of a task are called in the report, by the task's entry, and the trivial baseline that they are compared with."""

from workflow_scripts import registry
from workflow_scripts.report.study import Study
from workflow_scripts.tasks.entry import Measure


def measure(study: Study) -> Measure:
    """What the scores of an experiment are called."""
    called = study.task.measure
    if called is None:
        raise ValueError(f"{study.name} answers text, which metrics measure")
    found = called(study.settings, study.text)
    return found._replace(others=(*found.others, *metrics_beside(study)))


def metrics_beside(study: Study) -> list[str]:
    """The metrics of plugins that are measured besides the scores of the task."""
    return getattr(study.settings, "metrics", [])


def score_names() -> dict[str, str]:
    """What the scores of tasks with labels are called."""
    return {name: entry.label for name, entry in registry.entries("label_metric").items()}


def is_same_for_all_seeds(study: Study, arm: str) -> bool:
    """Whether an arm is one and the same model for all seeds: the task says so, or it trains nothing and shows no examples.

    A plugin's engine may draw what it writes by the seed, so arms that it decodes differ.
    """
    engine = getattr(getattr(study.settings, "decoding", None), "engine", None)
    may_draw = engine is not None and ((known := registry.entries("engine").get(engine)) is None or known.plugin)
    # examples, and random weights, are drawn by the seed
    asked_as_it_is = not may_draw and any(phase.shots == 0 and phase.start != "scratch" for phase in study.arms[arm])
    return asked_as_it_is or (study.task.measure is not None and measure(study).same_for_all_seeds(arm))


def seeds_scored(study: Study, arm: str) -> list[int]:
    """The seeds whose scores of an arm count: all, or the first alone where it is one and the same model for all of them."""
    return study.seeds[:1] if is_same_for_all_seeds(study, arm) else study.seeds
