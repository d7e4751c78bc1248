"""table: all tasks, one line each."""

from typing import Any

from workflow_scripts.tasks.answering import ANSWERING
from workflow_scripts.tasks.classification import CLASSIFICATION
from workflow_scripts.tasks.experiment import Task
from workflow_scripts.tasks.generation import GENERATION
from workflow_scripts.tasks.labelling import LABELLING
from workflow_scripts.tasks.ranking import RANKING
from workflow_scripts.tasks.retrieval import RETRIEVAL
from workflow_scripts.tasks.translation import SUMMARISATION, TRANSLATION

TASKS: dict[str, Task] = {
    "translation": TRANSLATION,
    "summarisation": SUMMARISATION,
    "classification": CLASSIFICATION,
    "labelling": LABELLING,
    "answering": ANSWERING,
    "ranking": RANKING,
    "retrieval": RETRIEVAL,
    "questions": GENERATION,
    "titles": GENERATION,
    "stories": GENERATION,
}
"""Task → what rules, checks and preflight ask of it, by the name that an experiment's `task` gives."""


def task_name(experiment: Any) -> str:
    """The name of an experiment's task, of raw settings or checked ones; translation where none is given."""
    return experiment.get("task", "translation") if isinstance(experiment, dict) else getattr(experiment, "task", "translation")


def task_of(experiment: Any) -> Task:
    """The task of an experiment."""
    return TASKS[task_name(experiment)]
