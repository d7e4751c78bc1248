"""Tasks: what is chosen by a task's name is in the task's entry, and not in modules that all tasks share."""

import ast
import io
import tokenize
from collections import defaultdict
from pathlib import Path

import pytest
import yaml

from workflow_scripts import registry
from workflow_scripts.report.__main__ import templates
from workflow_scripts.report.section_parts import READERS
from workflow_scripts.run.config import load

FAMILIES = "models/families.py"
"""The heads of the families of models have the same names."""
TASKS = registry.entries("task")
HOMONYMS = {
    "translation": {"training/pretraining.py", "run/backbone_checks.py", "report/search_results.py"},  # an objective; what a sentence's is
    "retrieval": {"report/published.py", "report/model_analyses.py", "evidence/separability.py"},  # a measure of distances, too
    "questions": {"report/answer_examples.py", "evidence/answers.py", "tasks/answering.py"},  # that are answered
    "titles": {"report/__main__.py"},  # of the parts of a page
}
"""Task → modules in which the same word means something else."""
SHARED = 3
"""Largest number of places, outside of a task's own files, where its name may stand."""


def strings(path: Path) -> list[str]:
    """The string literals of a module or of a rule file."""
    tokens = tokenize.generate_tokens(io.StringIO(path.read_text(encoding="utf-8")).readline)
    found = [token.string for token in tokens if token.type == tokenize.STRING and token.string[0] in "\"'"]
    return [ast.literal_eval(text) for text in found]


@pytest.fixture(scope="module")
def places() -> dict[str, list[str]]:
    """Task → each place where its name stands, outside of its own module and its own rule file."""
    root = Path("workflow_scripts")
    found = defaultdict(list)
    for path in [*root.rglob("*.py"), *Path("rules").glob("*.smk"), Path("Snakefile")]:
        if path.is_relative_to(root) and str(path.relative_to(root)) == FAMILIES:
            continue
        for name in {*strings(path)} & TASKS.keys():
            if path in {root / module for module in HOMONYMS.get(name, ())}:
                continue
            own = Path(*TASKS[name].settings.__module__.split(".")).with_suffix(".py")
            if path not in (own, root / f"tasks/{name}.py", Path(f"rules/{name}.smk")):
                found[name] += [str(path)] * strings(path).count(name)
    return found


@pytest.mark.parametrize("task", TASKS)
def test_the_name_of_a_task_stands_in_few_places(places, task):
    assert len(places[task]) <= SHARED, places[task]


def test_the_report_shows_every_task():
    made = templates(load(yaml.safe_load(Path("config.yaml").read_text(encoding="utf-8"))))
    for task in TASKS.values():
        assert (task.measure is None) == (task.answers == "text") and task.words["outputs"]
        for part, (_, reader) in task.parts.items():
            assert reader in READERS
            assert made.select_template([f"{folder}/{part}.html.j2" for folder in task.templates] + [f"{part}.html.j2"])
