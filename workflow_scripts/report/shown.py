"""The parts of an experiment's section in the report: who reads the numbers of those that the entries of tasks name."""

from collections.abc import Callable
from typing import Any

from workflow_scripts.report import found, labels
from workflow_scripts.report.answered import answered
from workflow_scripts.report.comparison import scores, word_accuracy
from workflow_scripts.report.curves import learning_curves
from workflow_scripts.report.exhibits import lexicon, noises, switched, translations
from workflow_scripts.report.geometry import representation
from workflow_scripts.report.ran import what_was_classified, what_was_generated, what_was_run
from workflow_scripts.report.study import Study
from workflow_scripts.report.tradeoff import speed
from workflow_scripts.tasks.entry import task_of

READERS: dict[str, Callable[[Study], dict[str, Any]]] = {
    # of text that is written
    "run": what_was_run,
    "generated": what_was_generated,
    "scores": scores,
    "speed": speed,
    "words": word_accuracy,
    "curves": learning_curves,
    "distances": representation,
    "lexicon": lexicon,
    "switched": switched,
    "translations": translations,
    # of labels
    "classified": what_was_classified,
    "answers": labels.scores,
    "looks": labels.curves,
    "dictionaries": labels.dictionaries,
    "tagged": labels.tagged,
    "answered": answered,
    "ranked": found.ranked,
    # of what is looked up
    "searched": found.what_was_searched,
    "layers": found.layers,
    "neighbours": found.neighbours,
}
"""Who reads the numbers of a part, by the name that the parts of a task (`Task.parts`) give."""


def parts_of(study: Study) -> dict[str, tuple[str, Callable[[Study], dict[str, Any]]]]:
    """The parts of an experiment's section: speed only where its settings ask for it, and words that are switched where some are."""
    there = {"speed": getattr(study.settings, "speed", None), "lexicon": study.lexicon, "switched": noises(study)}
    named = task_of(study.settings).parts.items()
    return {name: (title, READERS[reader]) for name, (title, reader) in named if there.get(name, True)}
