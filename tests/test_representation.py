"""Eq. 4, both readings."""

import numpy as np
import pytest
import torch
from models import manual_pairs, small_model
from transformers import AutoModelForSeq2SeqLM

from workflow_scripts import representation
from workflow_scripts.representation import Representation, distances, sentence_vectors
from workflow_scripts.stage import read_json
from workflow_scripts.tokenisation import decoder_input, load_codec


def test_distances_are_the_definitions():
    source, target = np.array([[0.0, 0.0], [3.0, 0.0]]), np.array([[0.0, 4.0], [3.0, -4.0]])
    result = distances(source, target)
    assert result["pairs"] == pytest.approx(np.sqrt(32)) and result["pairs_rms"] == pytest.approx(4.0)
    assert result["means"] == pytest.approx(0.0)
    assert distances(source, source)["pairs"] == 0.0


@pytest.mark.parametrize("family", ["mbart", "mbart50"])
def test_vectors_do_not_depend_on_the_batch(tmp_path, family):
    folder = small_model(tmp_path, family)
    codec, network = load_codec(folder), AutoModelForSeq2SeqLM.from_pretrained(folder).eval()
    lines = manual_pairs(12)[0]
    batched = sentence_vectors(network, codec, lines, "de", 400)
    assert batched.shape == (12, 32)
    for line, vector in zip(lines, batched, strict=True):
        row = codec.encode([line], "de")[0]
        with torch.no_grad():
            states = network.base_model(
                input_ids=torch.tensor([row]), decoder_input_ids=torch.tensor([decoder_input(row)])
            ).last_hidden_state
        assert np.allclose(states[0, -1].numpy(), vector, atol=1e-5)


def test_the_stage_states_n_and_tags(tmp_path):
    folder = small_model(tmp_path)
    for code, lines in zip(("de", "en"), manual_pairs(20), strict=True):
        (tmp_path / f"t.{code}").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    files = (folder, tmp_path / "t.de", tmp_path / "t.en", tmp_path / "r.json", tmp_path / "r.npz")
    representation.main(*files, languages=("de", "en"), settings=Representation(sentences=15))
    report = read_json(tmp_path / "r.json")
    assert report["sentences"] == 15 and "own language's tag" in report["tag_format"] and report["pairs"] > 0
    assert report["pairs"] == pytest.approx(report["pairs_rms"] * np.sqrt(15))
    with np.load(tmp_path / "r.npz") as data:
        assert data["source"].shape == data["target"].shape == (15, 32)
