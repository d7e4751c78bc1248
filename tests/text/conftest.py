"""A server, and surroundings in which a test downloads from it alone."""

import os
import threading

import pytest
from served import Server

from workflow_scripts.text import fetching


@pytest.fixture
def surroundings(tmp_path, monkeypatch):
    """A cache of the test's own, no proxy, and no waiting."""
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
    monkeypatch.delenv("CROSSGAP_OFFLINE", raising=False)
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.setenv("CROSSGAP_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(fetching, "_PAUSE", 0.0)


@pytest.fixture
def server(surroundings):
    with Server() as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        yield server
        server.shutdown()
