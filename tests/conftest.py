"""Test modules may import each other's helpers; all tests run from the repository's root."""

import os
import sys
from pathlib import Path

os.chdir(Path(__file__).parent.parent)
sys.path.insert(0, str(Path(__file__).parent))
