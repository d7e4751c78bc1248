"""What the tests of preflight's looks share: no cluster, and files that are wrong."""

import json

import pytest
from tiny_models import manual_pairs, small_model


@pytest.fixture
def no_cluster(commands):
    """Slurm has partitions and accounts where a test says so, also on a cluster's login node."""
    commands("sinfo", "", 1)
    commands("sacctmgr", "", 1)
    commands("squeue", "")  # which Slurm's plugin looks for when it is imported


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """Files that are wrong, and a few that are right; they are read alone."""
    folder = tmp_path_factory.mktemp("preflight")
    german, english = manual_pairs(300)
    for name, lines in (("de", german), ("en", english), ("short.en", english[:299]), ("blank", [""] * 300)):
        (folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    (folder / "empty").touch()
    (folder / "empty.en").touch()
    (folder / "latin1").write_bytes("Grüße aus Köln.\n".encode("latin-1") * 300)
    (folder / "seed.txt").write_text("haus house\nhaus\n")
    (folder / "turned.txt").write_text("the die\nand und\nfile datei\nopens öffnet\n")
    (folder / "de.vec").write_text("2 3\nhaus 1 2 3\nbaum 1 2\n")
    (folder / "model").mkdir()
    small_model(folder / "model")
    for name, content in (("no-model", None), ("bert", {"model_type": "bert"})):
        (folder / name).mkdir()
        if content:
            (folder / name / "config.json").write_text(json.dumps(content))
            (folder / name / "model.safetensors").write_text("x")
            (folder / name / "tokenizer.json").write_text("{}")
    return folder
