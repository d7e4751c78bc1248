"""Tasks, noises and analyses name parts of the report that it has."""

from pathlib import Path

import yaml

from workflow_scripts import registry
from workflow_scripts.report.model_analyses import VIEWS
from workflow_scripts.report.rendering import templates
from workflow_scripts.report.section_parts import READERS
from workflow_scripts.run.config import load


def test_the_report_shows_every_task_and_every_analysis():
    made = templates(load(yaml.safe_load(Path("config.yaml").read_text(encoding="utf-8"))))
    for task in registry.entries("task").values():
        assert (task.measure is None) == (task.answers == "text") and task.words["outputs"]
        for part, (_, reader) in task.parts.items():
            assert reader in READERS
            assert made.select_template([f"{folder}/{part}.html.j2" for folder in task.templates] + [f"{part}.html.j2"])
    for analysis in registry.entries("analysis").values():
        assert analysis.view in VIEWS and made.get_template(f"analyses/{analysis.view}.html.j2")
