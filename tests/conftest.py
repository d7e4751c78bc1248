"""Test modules may import each other's helpers; all tests run from the repository's root."""

import os
import sys
from pathlib import Path

os.chdir(Path(__file__).parent.parent)
sys.path.insert(0, str(Path(__file__).parent))


def pytest_collection_modifyitems(items):
    """The longest first, so that two workers end together, and at the head two that do not compile the same code at once."""
    first = ["test_workflow.py", "test_checkpoints.py", "test_recovery.py", "test_summarisation.py", "test_inference.py"]
    items.sort(key=lambda item: first.index(item.path.name) if item.path.name in first else len(first))
