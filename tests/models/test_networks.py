"""Models are written whole."""

import os
from pathlib import Path
from types import SimpleNamespace

from transformers import MBartConfig

from workflow_scripts.models.networks import save_model


def test_a_model_is_on_the_disk_before_it_takes_its_name(tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(os, "fsync", lambda file: seen.append((Path(f"/proc/self/fd/{file}").readlink().name, (tmp_path / "m").exists())))
    network, tokenizer = (
        SimpleNamespace(
            config=MBartConfig(), save_pretrained=lambda folder, name=name: folder.mkdir(exist_ok=True) or (folder / name).touch()
        )
        for name in ("weights", "pieces")
    )
    save_model(network, tokenizer, tmp_path / "m")
    assert sorted(seen) == [(".m.part", False), ("pieces", False), ("weights", False)]
    assert {path.name for path in (tmp_path / "m").iterdir()} == {"weights", "pieces"}
