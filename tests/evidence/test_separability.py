"""How clearly languages lie apart, and whether translations are found."""

import itertools

import numpy as np
import pytest
from tiny_models import manual_pairs, small_encoder, small_model

from workflow_scripts.evidence import separability
from workflow_scripts.evidence.analysis import Subject
from workflow_scripts.evidence.separability import (
    Separability,
    between,
    between_by_chance,
    mean_cosine,
    measure,
    participation,
    probe,
    retrieval,
)
from workflow_scripts.stage import InputError, read_json


def texts(apart, n=200, width=6, noise=0.3):
    """Texts in two languages whose states share what they mean, and lie `apart` in one direction."""
    rng = np.random.default_rng(1)
    meaning = rng.normal(size=(n, width))
    sides = meaning + noise * rng.normal(size=(2, n, width))
    sides[1, :, 0] += apart
    return sides


def test_languages_that_lie_apart_are_recognised():
    settings = Separability(samples=100)
    same, other = (measure(texts(apart), True, settings) for apart in (0, 30))
    assert 0.4 < same["probe"]["mean"] < 0.6 and same["cross_entropy"] > 0.9
    assert other["probe"]["mean"] == 1 and other["cross_entropy"] < 0.1
    # chance is about 1 in 399
    assert same["between"] < 0.02 and other["between"] > 0.9
    assert other["retrieval"]["mean"] < same["retrieval"]["mean"]
    # a shift is all that keeps translations apart here
    assert other["centred"] == same["centred"] and same["centred"]["mean"] > 0.5
    assert other["dimensions"] == pytest.approx(same["dimensions"]) and 4 < same["dimensions"] <= 6


def test_translations_of_a_text_are_never_on_both_sides_of_the_probe():
    # states that name the text but not its language: the probe can only learn texts by heart
    n = 40
    states = np.stack([np.eye(n), np.eye(n)])
    assert probe(states, Separability(folds=4, samples=10))["probe"]["mean"] == 0.5


def test_the_measures_are_their_definitions():
    states = np.random.default_rng(1).normal(size=(3, 5, 4))
    every = states.reshape(15, 4)
    means = np.repeat(states.mean(axis=1), 5, axis=0)
    centre = every.mean(axis=0)
    assert between(states) == pytest.approx(((means - centre) ** 2).sum() / ((every - centre) ** 2).sum())
    unit = every / np.linalg.norm(every, axis=1, keepdims=True)
    cosines = [unit[i] @ unit[j] for i in range(15) for j in range(15) if i != j]
    assert mean_cosine(every) == pytest.approx(np.mean(cosines))
    values = np.linalg.svd(every - centre, compute_uv=False) ** 2
    expected = values.sum() ** 2 / (values**2).sum()
    assert participation(every - centre) == pytest.approx(expected) == pytest.approx(participation((every - centre)[:, ::-1]))
    assert participation(np.pad(every - centre, [(0, 0), (0, 30)])) == pytest.approx(expected)
    assert retrieval(np.stack([np.eye(3), np.eye(3)[[0, 2, 1]]])).tolist() == [1, 0, 0]
    assert between(np.ones((2, 3, 4))) == participation(np.zeros((3, 4))) == 0


def test_the_chance_of_parallel_text_is_the_mean_over_all_exchanges_of_languages_within_texts():
    states = texts(apart=2, n=4, width=3)
    states = np.stack([*states, states[0] ** 2])
    ways = itertools.product(itertools.permutations(range(3)), repeat=4)
    exchanged = [between(np.stack([states[list(order), text] for text, order in enumerate(way)], axis=1)) for way in ways]
    assert len(exchanged) == 6**4 and between_by_chance(states) == pytest.approx(np.mean(exchanged))
    # what texts mean is no chance for languages to differ
    assert between_by_chance(texts(apart=0)) < 0.5 / 399 < between_by_chance(np.random.default_rng(1).normal(size=(2, 200, 6)))


@pytest.mark.parametrize("kind", ["mbart", "nllb", "bert"])
def test_models_are_measured_layer_by_layer(tmp_path, kind):
    sides = manual_pairs(40)
    paths = [tmp_path / "de.txt", tmp_path / "en.txt"]
    for path, lines in zip(paths, sides, strict=True):
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    model = small_encoder(tmp_path, kind) if kind == "bert" else small_model(tmp_path, kind)
    job = {"models": (model,), "names": ("one",), "texts": tuple(paths), "languages": ("de", "en")}
    settings = Separability(texts=30, samples=20, device="cpu")
    separability.main(tmp_path / "out.json", Subject(**job, parallel=True), settings=settings)
    report = read_json(tmp_path / "out.json")
    assert report["texts"] == 30 and report["device"] == "cpu" and report["chance"] == pytest.approx({"probe": 0.5, "retrieval": 1 / 30})
    layers = report["models"]["one"]["by_layer"]
    assert [row["layer"] for row in layers] == [0, 1]
    for row in layers:
        assert 0 <= row["between_by_chance"] <= 1 / 30
        assert all(0 <= row[key]["low"] <= row[key]["mean"] <= row[key]["high"] <= 1 for key in ("probe", "retrieval", "centred"))
    # without translations there is nothing to find
    separability.main(tmp_path / "out.json", Subject(**job), settings=settings)
    report = read_json(tmp_path / "out.json")
    assert report["chance"] == pytest.approx({"probe": 0.5, "between": 1 / 59})
    assert not {"retrieval", "between_by_chance"} & {*report["models"]["one"]["by_layer"][0]}


def test_one_language_and_fewer_texts_than_folds_are_refused(tmp_path):
    path = tmp_path / "few"
    path.write_text("a\nb\nc\n")
    job = {"models": (tmp_path,), "names": ("one",)}
    with pytest.raises(InputError, match="two languages at least; the analysis has de"):
        separability.main(tmp_path / "out.json", Subject(**job, texts=(path,), languages=("de",)))
    with pytest.raises(InputError, match="few: has 3 texts, the estimate needs at least 5"):
        separability.main(tmp_path / "out.json", Subject(**job, texts=(path, path), languages=("de", "en")))
