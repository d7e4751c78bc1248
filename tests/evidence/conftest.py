"""What the tests of metrics and of their significance share."""

import pytest
from tiny_models import manual_pairs


@pytest.fixture
def files(tmp_path):
    """A folder with references, a good system, which loses the last words, and a poor one, twice; and the lines of each."""
    references = manual_pairs(120)[1]
    poor = [" ".join(line.split()[::2]) for line in references]
    systems = {"ref": references, "good": [" ".join(line.split()[:-1]) for line in references], "poor": poor, "same": poor}
    for name, lines in systems.items():
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return tmp_path, systems
