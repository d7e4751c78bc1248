"""Without a GPU these tests end at once, with an exit status of their own."""

import sys
from pathlib import Path

import pytest
import torch

sys.path[:0] = [str(Path(__file__).parents[1] / name) for name in ("workflow", "comet", "lexicon")]

NO_GPU = 77


def pytest_sessionstart(session):
    if not torch.cuda.is_available() and not session.config.option.collectonly:
        pytest.exit(
            f"there is no GPU that torch {torch.__version__} can use, and nothing was tested; on a node with one: nvidia-smi, "
            "then install the build of torch that fits its driver",
            NO_GPU,
        )


@pytest.fixture(autouse=True)
def fresh():
    """Memory is counted anew in each test."""
    yield
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()


def pytest_terminal_summary(terminalreporter):
    """What was tested on."""
    if torch.cuda.is_available():
        free, size = torch.cuda.mem_get_info()
        names = [torch.cuda.get_device_name(number) for number in range(torch.cuda.device_count())]
        machine = f"{', '.join(names)}; {size / 2**30:.0f} GiB each, torch {torch.__version__}, CUDA {torch.version.cuda}"
        terminalreporter.write_line(machine)
