"""Test modules may import each other's helpers; all tests run from the repository's root."""

import os
import sys
from pathlib import Path

os.chdir(Path(__file__).parent.parent)
sys.path.insert(0, str(Path(__file__).parent))


def pytest_collection_modifyitems(items):
    """Whole runs first, the longest at the head, so that two workers end together."""
    first = ["test_workflow.py", "test_recovery.py"]
    items.sort(key=lambda item: (item.path.parent.name != "workflow", first.index(item.path.name) if item.path.name in first else 2))
