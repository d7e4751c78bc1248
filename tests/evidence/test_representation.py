"""Eq. 4, both readings."""

import numpy as np
import pytest
import torch
from tiny_models import manual_pairs, small_model
from transformers import AutoModelForSeq2SeqLM

from workflow_scripts.evidence import representation
from workflow_scripts.evidence.representation import Representation, mean_vector, measure, retrieval, sentence_vectors
from workflow_scripts.models.batches import decoder_input
from workflow_scripts.models.tokenisation import load_codec
from workflow_scripts.stage import InputError, checksums, read_json


@pytest.mark.parametrize("family", ["mbart", "mbart50", "nllb"])
def test_vectors_do_not_depend_on_the_batch(tmp_path, family):
    folder = small_model(tmp_path, family)
    codec, network = load_codec(folder), AutoModelForSeq2SeqLM.from_pretrained(folder).eval()
    rows = codec.encode(manual_pairs(12)[0], "de")
    batched = sentence_vectors(network, codec.tokenizer.pad_token_id, rows)
    layers = network.config.encoder_layers + network.config.decoder_layers + 2
    assert batched.shape == (layers, 12, 32)
    for at, row in enumerate(rows):
        with torch.no_grad():
            states = network.base_model(
                input_ids=torch.tensor([row]), decoder_input_ids=torch.tensor([decoder_input(row)]), output_hidden_states=True
            )
        assert np.allclose(states.last_hidden_state[0, -1].numpy(), batched[-1, at], atol=1e-5)
        assert np.allclose(states.encoder_last_hidden_state[0].mean(dim=0).numpy(), batched[layers // 2 - 1, at], atol=1e-5)


def test_the_measures_are_their_definitions(tmp_path):
    folder = small_model(tmp_path)
    codec, network = load_codec(folder), AutoModelForSeq2SeqLM.from_pretrained(folder).eval()
    pad = codec.tokenizer.pad_token_id
    rows = [codec.encode(side, code) for code, side in zip(("de", "en"), manual_pairs(30), strict=True)]
    layers, kept = measure(network, pad, rows, Representation(batch_tokens=300, retrieval=10))
    sides = np.stack([sentence_vectors(network, pad, side) for side in rows]).astype(np.float64)
    for layer, found in enumerate(layers):
        source, target = sides[:, layer]
        lengths = np.linalg.norm(source - target, axis=1)
        assert found["pairs"] == pytest.approx(np.sqrt((lengths**2).sum()), rel=1e-4)
        assert found["pairs_rms"] == pytest.approx(found["pairs"] / np.sqrt(30))
        assert found["means"] == pytest.approx(np.linalg.norm(source.mean(axis=0) - target.mean(axis=0)), rel=1e-4)
        cosine = [s @ t / np.linalg.norm(s) / np.linalg.norm(t) for s, t in zip(source, target, strict=True)]
        assert found["cosine"] == pytest.approx(np.mean(cosine), abs=1e-4)
    assert kept.shape == (2, 10, 32) and np.allclose(kept[0, 1], sides[0, -1, 3], atol=1e-4)
    centre = mean_vector(network, pad, rows[0], 300)
    assert np.allclose(centre, sides[0, -1].mean(axis=0), atol=1e-4)


def test_retrieval_by_hand():
    source = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    target = np.array([[2.0, 0.1], [3.0, 0.0], [5.0, 5.0]])
    # the first finds the second, which is straight its own way; nobody's nearest is the second's
    assert retrieval(source, target) == pytest.approx({"source_to_target": 1 / 3, "target_to_source": 2 / 3})


def test_the_stage_states_n_and_tags(tmp_path):
    folder = small_model(tmp_path)
    for code, lines in zip(("de", "en"), manual_pairs(20), strict=True):
        (tmp_path / f"t.{code}").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    files = (folder, tmp_path / "t.de", tmp_path / "t.en", tmp_path / "r.json", tmp_path / "r.npz")
    representation.main(*files, languages=("de", "en"), settings=Representation(sentences=15))
    assert "unaligned" not in read_json(tmp_path / "r.json")
    (tmp_path / "more.de").write_text("Ein Satz.\n\nNoch einer.\n \n", encoding="utf-8")  # blank lines separate documents
    more = (tmp_path / "more.de", tmp_path / "t.en")
    representation.main(*files, languages=("de", "en"), unaligned=more, settings=Representation(sentences=15))
    report = read_json(tmp_path / "r.json")
    assert report["sentences"] == 15 and "own language's tag" in report["tag_format"] and report["pairs"] > 0
    assert report["pairs"] == pytest.approx(report["pairs_rms"] * np.sqrt(15))
    with np.load(tmp_path / "r.npz") as data:
        assert data["source"].shape == data["target"].shape == (15, 32)
    assert report["checksums"] == checksums((*files[1:3], more[0]))
    assert report["unaligned"]["sentences"] == [2, 15] and report["unaligned"]["means"] > 0
    assert report["layers"]["decoder"][-1]["means"] == report["means"] and report["retrieved_among"] == 15
    (tmp_path / "more.de").write_text("")
    with pytest.raises(InputError, match=r"more\.de has no line"):
        representation.main(*files, languages=("de", "en"), unaligned=more)
