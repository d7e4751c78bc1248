"""Singular values of the weights of every layer, in every family."""

import json
import shutil

import numpy as np
import pytest
import torch
from tiny_models import small_encoder, small_model

from workflow_scripts import registry
from workflow_scripts.evidence import spectra
from workflow_scripts.evidence.spectra import Spectra, curve, measures, singular_values, tall_singular_values, weights_of
from workflow_scripts.evidence.states import open_half
from workflow_scripts.stage import InputError, read_json

KINDS = {"mbart": "mbart", "mbart50": "mbart50", "nllb": "m2m100", "bert": "mbert", "xlm-roberta": "xlmr"}


def tiny(folder, kind):
    folder.mkdir()
    return small_encoder(folder, kind) if kind in ("bert", "xlm-roberta") else small_model(folder, kind)


def moved(folder, start, factor):
    """A copy of a model whose first layer's K in the encoder is multiplied by `factor`."""
    from safetensors.torch import load_file, save_file

    shutil.copytree(start, folder)
    weights = load_file(folder / "model.safetensors")
    weights["model.encoder.layers.0.self_attn.k_proj.weight"] *= factor
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


@pytest.mark.parametrize("kind", KINDS)
def test_every_family_has_its_matrices_and_their_norms_are_those_of_frobenius(tmp_path, kind):
    model = tiny(tmp_path / "tiny", kind)
    spectra.main(tmp_path / "spectra.json", models=(model,), names=("one",), settings=Spectra(device="cpu"))
    report = read_json(tmp_path / "spectra.json")
    assert report["device"] == "cpu"
    (found,) = report["models"].values()
    weights = weights_of(open_half("one", model))
    assert registry.entry("family", KINDS[kind]).matrices.keys() == {"K", "Q", "V", "Out", "FC1", "FC2"}
    assert [(row["layer"], row["matrix"]) for row in found["by_matrix"]] == list(weights) and len(weights) == 6 * found["layers"]
    for row, matrix in zip(found["by_matrix"], weights.values(), strict=True):
        assert row["norm"] == pytest.approx(float(torch.linalg.norm(matrix)), rel=1e-5)
        assert 1 <= row["effective_rank"] <= min(matrix.shape) and row["curve"][0][1] == pytest.approx(row["largest"], abs=1e-5)
    shapes = {row["matrix"]: row["shape"] for row in found["by_matrix"]}
    assert shapes["FC1"] == [64, 32] and shapes["FC2"] == [32, 64] and shapes["K"] == [32, 32]


def test_embeddings_have_a_spectrum_and_a_distance_where_the_pieces_are_as_many(tmp_path):
    start = tiny(tmp_path / "tiny", "mbart")
    matrix = open_half("start", start).network.get_input_embeddings().weight.detach()
    assert tall_singular_values(matrix, rows=7) == pytest.approx(singular_values(matrix), rel=1e-5, abs=1e-5)
    of_base = spectra.of_embeddings(matrix, matrix, 5)
    assert of_base["norm"] == pytest.approx(float(torch.linalg.norm(matrix))) and of_base["distance"] == of_base["moved"] == 0
    scaled = spectra.of_embeddings(1.5 * matrix, matrix, 5)
    # all of it is scaled, so that the weights moved as far as their singular values
    assert [scaled["distance"], scaled["moved"]] == pytest.approx([0.5 * of_base["norm"]] * 2, rel=1e-5)
    assert "distance" not in spectra.of_embeddings(matrix[1:], matrix, 5) and "moved" not in spectra.of_embeddings(matrix, None, 5)
    spectra.main(tmp_path / "spectra.json", models=(start,), names=("start",))
    found = read_json(tmp_path / "spectra.json")["models"]["start"]["embeddings"]
    assert found["shape"] == list(matrix.shape) and found["norm"] == pytest.approx(of_base["norm"])


def test_embeddings_of_other_pieces_have_not_moved(tmp_path):
    start = tiny(tmp_path / "tiny", "mbart")
    shutil.copytree(start, other := tmp_path / "other")  # of as many pieces, of which two have changed places
    content = json.loads((other / "tokenizer.json").read_text())
    pieces = content["model"]["vocab"]
    pieces[20], pieces[30] = pieces[30], pieces[20]
    (other / "tokenizer.json").write_text(json.dumps(content))
    spectra.main(tmp_path / "spectra.json", models=(start, other), names=("start", "other"), base="start")
    found = {name: model["embeddings"] for name, model in read_json(tmp_path / "spectra.json")["models"].items()}
    assert found["start"]["moved"] == found["other"]["distance"] == 0 and "moved" not in found["other"]


def test_the_distance_is_that_of_the_sorted_values_and_what_did_not_move_has_none(tmp_path):
    start = tiny(tmp_path / "tiny", "mbart")
    other = moved(tmp_path / "moved", start, 1.5)
    spectra.main(tmp_path / "spectra.json", models=(start, other), names=("start", "other"), base="start")
    rows = read_json(tmp_path / "spectra.json")["models"]
    assert {(row["distance"], row["moved"]) for row in rows["start"]["by_matrix"]} == {(0.0, 0.0)}
    before, after = (rows[name]["by_matrix"][0] for name in ("start", "other"))
    assert after["matrix"] == "K" and after["norm"] == pytest.approx(1.5 * before["norm"])
    # a matrix that is only scaled: its spectrum is as far away as its norm says, and so are its weights
    assert after["distance"] == pytest.approx(0.5 * before["norm"]) == pytest.approx(after["moved"], rel=1e-5)
    assert after["effective_rank"] == pytest.approx(before["effective_rank"])
    assert {row["distance"] for row in rows["other"]["by_matrix"][1:]} == {0.0}


def test_the_decoder_has_spectra_of_its_own(tmp_path):
    start = tiny(tmp_path / "tiny", "mbart")
    other = moved(tmp_path / "moved", start, 2.0)
    spectra.main(tmp_path / "spectra.json", models=(start, other), names=("start", "other"), base="start", side="decoder")
    rows = read_json(tmp_path / "spectra.json")["models"]["other"]["by_matrix"]
    assert len(rows) == 6 and {row["distance"] for row in rows} == {0.0}


def test_measures_of_known_spectra():
    same = measures(np.full(5, 2.0))
    assert same == {"norm": pytest.approx(np.sqrt(20)), "largest": 2.0, "effective_rank": pytest.approx(5)}
    assert measures(np.array([3.0, 0.0]))["effective_rank"] == pytest.approx(1)
    assert measures(np.zeros(2))["effective_rank"] == 0.0
    assert singular_values(torch.diag(torch.tensor([1.0, -4.0, 2.0]))).tolist() == pytest.approx([4, 2, 1])
    assert curve(np.arange(100, 0, -1.0), 3) == [[1, 100.0], [51, 50.0], [100, 1.0]] and len(curve(np.ones(4), 40)) == 4


def test_a_base_of_another_shape_is_refused(tmp_path):
    mbart, xlmr = tiny(tmp_path / "mbart", "mbart"), tiny(tmp_path / "xlmr", "xlm-roberta")
    config = json.loads((xlmr / "config.json").read_text())
    from transformers import XLMRobertaConfig, XLMRobertaForMaskedLM

    for change, said in (
        ({"num_hidden_layers": 2}, "deep has 2 layers, the base mbart has 1"),
        ({"intermediate_size": 48}, "deep: FC1 of layer 0 is 48 × 32, in the base mbart 64 × 32"),
    ):
        XLMRobertaForMaskedLM(XLMRobertaConfig(**{**config, **change})).save_pretrained(xlmr)
        with pytest.raises(InputError, match=said):
            spectra.main(tmp_path / "spectra.json", models=(mbart, xlmr), names=("mbart", "deep"), base="mbart", settings=Spectra())


@pytest.mark.parametrize("layers", [1, 2])
def test_a_base_with_other_matrices_is_refused(layers):
    """A gated feed-forward part has one more; and two layers of BLOOM's three have as many as one of the others' six."""
    gated = {(layer, kind): torch.eye(2) for layer in range(layers) for kind in ("K", "Out", "Gate")}
    base = {(layer, kind): torch.eye(2) for layer in range(layers) for kind in ("K", "Out", "FC1")[: 4 - layers]}
    with pytest.raises(InputError, match=r"^new has the matrices K, Out, Gate, the base old K, Out.*; leave `base` out"):
        spectra.same_shapes("new", gated, "old", base)


def test_weights_that_a_folder_lacks_are_not_made_up(tmp_path):
    from safetensors.torch import load_file, save_file

    start = tiny(tmp_path / "tiny", "mbart")
    weights = {name: value for name, value in load_file(start / "model.safetensors").items() if "decoder.layers" not in name}
    save_file(weights, start / "model.safetensors", metadata={"format": "pt"})
    assert len(weights_of(open_half("half", start))) == 6
    with pytest.raises(InputError, match=r"it lacks decoder\.layers\.0\.\S+, .* and 23 more"):
        open_half("half", start, "decoder")
