"""COMET where there is none: what is said, and what is refused. The scores themselves: tests/comet."""

from pathlib import Path

import pytest
import yaml

from workflow_scripts.evidence.comet import Comet, Unavailable, find_checkpoint, score
from workflow_scripts.stage import read_json, write_json
from workflow_scripts.storage import checksum


@pytest.fixture
def texts(tmp_path):
    for name in ("sources", "hypotheses", "references"):
        (tmp_path / name).write_text("one\ntwo\n", encoding="utf-8")
    return [tmp_path / name for name in ("sources", "hypotheses", "references", "scores.json")]


def test_without_comet_the_file_says_why(texts):
    score(*texts)
    found = read_json(texts[-1])
    assert found["model"] == "Unbabel/wmt22-comet-da" and found["sentences"] == 2
    assert found["value"] is found["segments"] is found["signature"] is None
    assert "COMET is not installed" in found["reason"] and "envs/comet.txt" in found["reason"]


def test_why_there_is_no_environment_is_passed_on(texts, tmp_path):
    write_json(tmp_path / "environment.json", {"python": None, "reason": "no room"})
    score(*texts, environment=tmp_path / "environment.json")
    assert read_json(texts[-1])["reason"] == "no room"
    write_json(tmp_path / "environment.json", {"python": "gone/bin/python", "reason": None})
    score(*texts, environment=tmp_path / "environment.json")
    assert "there is no gone/bin/python" in read_json(texts[-1])["reason"]


def test_texts_that_are_not_aligned_are_said(texts):
    hypotheses, output = texts[1], texts[3]
    hypotheses.write_text("one\n")
    score(*texts)
    said = read_json(output)
    assert "hypotheses has 1 lines" in said["reason"] and "decode again" in said["reason"] and said["value"] is None
    for path in texts[:3]:
        path.write_text("")
    score(*texts)
    assert "references has no sentences" in read_json(output)["reason"]


def test_a_checkpoint_is_a_file_or_in_a_folder(tmp_path):
    with pytest.raises(Unavailable, match=r"there is no .*checkpoints/model\.ckpt"):
        find_checkpoint(Comet(model=str(tmp_path)))
    checkpoint = tmp_path / "checkpoints/model.ckpt"
    checkpoint.parent.mkdir()
    checkpoint.write_text("weights")
    expected = (checkpoint, f"sha256-{checksum(checkpoint)[:12]}")
    assert find_checkpoint(Comet(model=str(tmp_path))) == find_checkpoint(Comet(model=str(checkpoint))) == expected


def test_condas_packages_are_the_locks():
    conda = yaml.safe_load(Path("envs/comet.yaml").read_text(encoding="utf-8"))
    lock = [line for line in Path("envs/comet.txt").read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    assert conda["dependencies"][-1] == {"pip": lock} and all("==" in line for line in lock)
