"""The parts of an experiment's section in the report: who reads the numbers of those that the entries of tasks name."""

from collections.abc import Callable
from typing import Any

from workflow_scripts.report import labels, search_results
from workflow_scripts.report.answer_examples import answer_examples
from workflow_scripts.report.comparison import scores, word_accuracy
from workflow_scripts.report.curves import learning_curves
from workflow_scripts.report.exhibits import lexicon, noises, switched, translations
from workflow_scripts.report.experimental_setup import what_was_classified, what_was_generated, what_was_run
from workflow_scripts.report.geometry import representation
from workflow_scripts.report.study import Study
from workflow_scripts.report.tradeoff import speed

READERS: dict[str, Callable[[Study], dict[str, Any]]] = {
    "scores": scores,
    "answers": labels.scores,
    "translations": translations,
    "tagged": labels.tagged,
    "answered": answer_examples,
    "ranked": search_results.ranked,
    "neighbours": search_results.neighbours,
    "words": word_accuracy,
    "speed": speed,
    "curves": learning_curves,
    "looks": labels.curves,
    "run": what_was_run,
    "generated": what_was_generated,
    "classified": what_was_classified,
    "searched": search_results.what_was_searched,
    "distances": representation,
    "layers": search_results.layers,
    "lexicon": lexicon,
    "dictionaries": labels.dictionaries,
    "switched": switched,
}
"""Who reads the numbers of a part, by the name that the parts of a task (`Task.parts`) give; the page has the parts in this order."""


def parts_of(study: Study) -> dict[str, tuple[str, Callable[[Study], dict[str, Any]]]]:
    """The parts of an experiment's section: speed only where its settings ask for it, and words that are switched where some are."""
    there = {"speed": getattr(study.settings, "speed", None), "lexicon": study.lexicon, "switched": noises(study)}
    order = list(READERS)
    named = sorted(study.task.parts.items(), key=lambda part: order.index(part[1][1]))
    return {name: (title, READERS[reader]) for name, (title, reader) in named if there.get(name, True)}
