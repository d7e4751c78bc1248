"""Test modules may import each other's helpers; all tests run from the repository's root."""

import gc
import os
import random
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

os.chdir(Path(__file__).parent.parent)
for folder in (Path(__file__).parent, *(path for path in Path(__file__).parent.iterdir() if path.is_dir())):
    sys.path.insert(0, str(folder))


OF_THEIR_OWN = ("comet", "gpu", "mtdata", "plug", "slurm")
"""Folders of tests that need something of the machine; they take it as it is."""

FOREIGN = (
    "SLURM_",
    "SNAKEMAKE_",
    "HF_",
    "TRANSFORMERS_",
    "MAKE",
    "MFLAGS",
    "FORCE_COLOR",
    "CLICOLOR",
    "VECMAP",
    "WORLD_SIZE",
    "RANK",
    "LOCAL_",
)
"""Beginnings of variables that tell programs of a job, a cluster, a make, or the user's own settings."""

GIVEN_TO_MAKE = ("ARGS", "PYTHON", "TORCH", "VENV", "VERBOSE")
"""Our Makefile's variables, which `make test TORCH=cpu` hands on to all that it starts."""


def leave_the_machine(add_cleanup):
    """No test knows of a GPU, of the job that it runs in, of models that the user has, or of a proxy for what it serves itself."""
    for name in [name for name in os.environ if name.startswith(FOREIGN) or name in GIVEN_TO_MAKE]:
        del os.environ[name]
    # the whole pipeline would be compiled once more by each of a hundred processes
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    models = tempfile.TemporaryDirectory(prefix="crossgap-")
    add_cleanup(models.cleanup)
    os.environ |= {"CUDA_VISIBLE_DEVICES": "", "HF_HOME": models.name, "NO_PROXY": "127.0.0.1,localhost", "no_proxy": "127.0.0.1,localhost"}


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers():
    """Each worker waits for Snakemake a quarter of its time, and takes two gigabytes with all that it starts."""
    return min(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(), 5) + 1


def pytest_configure(config):
    """One server for the processes that the tests of whole runs start; it imports nothing before the first of them."""
    if not hasattr(config, "workerinput") and not any(f"tests/{name}" in part for part in config.args for name in OF_THEIR_OWN):
        leave_the_machine(config.add_cleanup)
    if sys.platform == "linux" and not hasattr(config, "workerinput"):
        import warm

        config.add_cleanup(warm.start())


def pytest_collection_modifyitems(items):
    """The longest first, so that the workers end together, and at the head three that do not compile the same code at once."""
    names = (
        "recovery recipes decoding plugin_run tutorial sga site decoder_run checkpoints workflow chains progress ready summarisation titles "
        "inference tags sample_pages pretraining module documentation classification own_task foreign_code corpus answering"
    )
    first = [f"test_{name}.py" for name in names.split()]
    items.sort(key=lambda item: first.index(item.path.name) if item.path.name in first else len(first))


@pytest.fixture(autouse=True, scope="module")
def nothing_old_is_collected():
    """Each training collects garbage, for which Python would look at all that a million imported functions refer to."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def seeded():
    """Random numbers that no other test has a part in, nor the number of threads that it left."""
    random.seed(1)
    np.random.seed(1)
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(1)
        sys.modules["torch"].set_num_threads(1)


@pytest.fixture
def commands(tmp_path, monkeypatch):
    """A place for commands that stand in for Slurm's and conda's; tests/slurm asks a real Slurm."""
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    def add(name: str, says: str, status: int = 0) -> None:
        path = tmp_path / name
        path.write_text(f"#!/bin/sh\ncat <<'END'\n{says}\nEND\nexit {status}\n")
        path.chmod(0o755)

    return add


@pytest.fixture
def door(monkeypatch):
    """The registry without plugins, which forgets afterwards what a test has registered."""
    from workflow_scripts import plugins, registry

    known = {kind: dict(registry.entries(kind)) for kind in registry.BUILT_IN}
    monkeypatch.setattr(registry, "_ENTRIES", known)
    monkeypatch.setattr(plugins, "_PLUGINS", {})
    yield
    registry.version.cache_clear()
