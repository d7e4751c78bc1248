"""The report's table of tasks: the parts of an experiment's section, and the words that the page uses for a task.

A task whose answers are no text has an entry in `measures` as well.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from workflow_scripts.report import found, labels
from workflow_scripts.report.answered import answered
from workflow_scripts.report.comparison import scores, word_accuracy
from workflow_scripts.report.curves import learning_curves
from workflow_scripts.report.exhibits import lexicon, noises, switched, translations
from workflow_scripts.report.geometry import representation
from workflow_scripts.report.ran import what_was_classified, what_was_generated, what_was_run
from workflow_scripts.report.study import Study
from workflow_scripts.report.tradeoff import speed

Parts = dict[str, tuple[str, Callable[[Study], dict[str, Any]]]]
"""The parts of an experiment's section, in order: anchor (and template), title, and the function that reads its numbers."""


class Shown(NamedTuple):
    """How the report shows a task."""

    words: dict[str, str]
    """What the page calls the task's inputs and outputs."""
    parts: Parts
    folders: tuple[str, ...] = ()
    """Folders of templates that are used instead of the general ones where they have a template for a part; the first that has one."""


PARTS: Parts = {
    "run": ("What was run", what_was_run),
    "scores": ("Scores", scores),
    "speed": ("Speed", speed),
    "words": ("Word accuracy by frequency", word_accuracy),
    "curves": ("Learning curves", learning_curves),
    "distances": ("Representation distances", representation),
    "lexicon": ("Lexicon", lexicon),
    "switched": ("Switched sentences", switched),
    "translations": ("{outputs} side by side", translations),
}
"""The parts of the tasks on parallel text."""
LABELLED_PARTS: Parts = {
    "run": ("What was run", what_was_classified),
    "scores": ("Accuracy", labels.scores),
    "curves": ("Learning curves", labels.curves),
    "lexicon": ("Dictionaries", labels.dictionaries),
    "switched": ("Switched sentences", switched),
}
"""The parts of the tasks on text with labels."""
GENERATION_PARTS: Parts = {
    "run": ("What was run", what_was_generated),
    "scores": ("Scores", scores),
    "speed": ("Speed", speed),
    "curves": ("Learning curves", learning_curves),
    "lexicon": ("Dictionaries", labels.dictionaries),
    "switched": ("Switched sentences", switched),
    "translations": ("{outputs} side by side", translations),
}
"""The parts of the tasks that write text in several languages: those of translation that make sense there."""
SCORED = {"scores": ("Scores", labels.scores)}
SHOWN: dict[str, Shown] = {
    "translation": Shown(
        {
            "learns": "translate",
            "rows": "sentence pairs to translate",
            "pairs": "sentence pairs",
            "pair": "a sentence and its translation",
            "input": "source",
            "inputs": "sentences",
            "output": "a translation",
            "outputs": "translations",
        },
        PARTS,
    ),
    "summarisation": Shown(
        {
            "learns": "summarise in another language",
            "rows": "documents to summarise",
            "pairs": "documents with summaries",
            "pair": "a document and its summary",
            "input": "document",
            "inputs": "documents",
            "output": "a summary",
            "outputs": "summaries",
        },
        PARTS,
    ),
    "questions": Shown(
        {
            "learns": "ask questions that a text answers",
            "rows": "texts to ask a question about",
            "pairs": "texts with questions",
            "pair": "a text and a question",
            "input": "text",
            "inputs": "texts",
            "output": "a question",
            "outputs": "questions",
        },
        GENERATION_PARTS,
        ("generation",),
    ),
    "titles": Shown(
        {
            "learns": "give articles a title",
            "rows": "articles to give a title",
            "pairs": "articles with titles",
            "pair": "an article and its title",
            "input": "article",
            "inputs": "articles",
            "output": "a title",
            "outputs": "titles",
        },
        GENERATION_PARTS,
        ("generation",),
    ),
    "stories": Shown(
        {
            "learns": "tell a story from its opening",
            "rows": "openings to continue",
            "pairs": "openings with stories",
            "pair": "an opening and its story",
            "input": "opening",
            "inputs": "openings",
            "output": "a story",
            "outputs": "stories",
        },
        GENERATION_PARTS,
        ("generation",),
    ),
    "classification": Shown(
        {"learns": "label texts", "inputs": "texts", "outputs": "labels", "row": "examples"},
        LABELLED_PARTS,
        ("classification",),
    ),
    "labelling": Shown(
        {"learns": "tag the words of sentences", "inputs": "sentences", "outputs": "tags", "row": "sentences"},
        {**LABELLED_PARTS, **SCORED, "tagged": ("Tags side by side", labels.tagged)},
        ("classification",),
    ),
    "answering": Shown(
        {"learns": "mark the answer of a question in a passage", "inputs": "questions", "outputs": "answers", "row": "questions"},
        {**LABELLED_PARTS, **SCORED, "answered": ("Answers side by side", answered)},
        ("answering", "classification"),
    ),
    "ranking": Shown(
        {"learns": "grade documents by how well they answer a query", "inputs": "queries", "outputs": "grades", "row": "documents"},
        {**LABELLED_PARTS, **SCORED, "ranked": ("Rankings side by side", found.ranked)},
        ("ranking", "classification"),
    ),
    "retrieval": Shown(
        {"learns": "", "inputs": "sentences", "outputs": "neighbours", "row": "sentences"},
        {
            "run": ("What was run", found.what_was_searched),
            "scores": ("Scores", labels.scores),
            "layers": ("Layers and measures", found.layers),
            "neighbours": ("Neighbours side by side", found.neighbours),
        },
        ("retrieval", "classification"),
    ),
}
"""Task → how the report shows it."""


def parts_of(study: Study) -> Parts:
    """The parts of an experiment's section: speed only where its settings ask for it, and words that are switched where some are."""
    there = {"speed": getattr(study.settings, "speed", None), "lexicon": study.lexicon, "switched": noises(study)}
    return {name: part for name, part in SHOWN[study.settings.task].parts.items() if there.get(name, True)}
