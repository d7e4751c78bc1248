"""The unsupervised mapping: each step, and a whole run on planted data."""

import dataclasses

import numpy as np
import pytest
import torch
from planted import SMALL, clusters, p_at_1, planted, rotated, unrelated

from workflow_scripts.lexicon import mapping
from workflow_scripts.lexicon.mapping import (
    Mapping,
    map_once,
    map_with_fallbacks,
    normalise,
    procrustes,
    symmetric_reweighting,
    union,
)
from workflow_scripts.lexicon.vectors import read_vectors, write_vectors
from workflow_scripts.stage import InputError, checksums, read_json


def test_normalise():
    x = normalise(torch.randn(50, 7) + 3)
    assert torch.allclose(x.norm(dim=1), torch.ones(50), atol=1e-6)
    assert x.mean(dim=0).abs().max() < 0.05


def test_procrustes_recovers_a_rotation():
    x = torch.randn(400, 20)
    z, order = rotated(x, 5)
    assert torch.allclose(x[order] @ procrustes(x[order], z), z, atol=1e-4)


def test_union_pairs_both_directions():
    rows_a, rows_b = union(torch.tensor([1, 0]), torch.tensor([0, 1, 1]))
    assert list(zip(rows_a.tolist(), rows_b.tolist(), strict=True)) == [(0, 1), (1, 0), (0, 0), (1, 1), (1, 2)]


def test_reweighting_of_a_perfect_dictionary_brings_pairs_together():
    x = clusters(500, 30, 1)
    z, order = rotated(x, 2)
    a, b = symmetric_reweighting(x, z, (order, torch.arange(500)), 0.5)
    assert torch.allclose(a[order], b, atol=1e-2)


def test_whitening_survives_missing_variance():
    x = torch.randn(100, 10)
    x[:, 7:] = 0
    a, b = symmetric_reweighting(x, x, (torch.arange(100), torch.arange(100)), 0.5)
    assert torch.isfinite(a).all() and torch.isfinite(b).all()


@pytest.mark.parametrize("noise, at_least", [(0.0, 1.0), (0.15, 0.95)])
@pytest.mark.parametrize("matrix", ["float32", "float16", "blocks"])
def test_a_rotated_and_shuffled_copy_maps_back_onto_itself(noise, at_least, matrix, monkeypatch):
    monkeypatch.setattr("workflow_scripts.lexicon.verdict.LEAST_WORDS", 800)
    sides, order = planted(noise)
    found = map_once(sides, "unsupervised", [], 1, dataclasses.replace(SMALL, matrix=matrix))
    assert p_at_1(found.a, found.b, order) >= at_least and found.attempt.good


def test_a_planted_dictionary_is_recovered_through_noise():
    sides, order = planted(0.3)
    pairs = [(f"a{i}", f"b{i}") for i in range(0, 800, 20)]
    seeded = map_once(sides, "semi_supervised", pairs, 1, SMALL)
    assert p_at_1(seeded.a, seeded.b, order) > 0.9


def test_a_full_dictionary_needs_no_self_learning():
    sides, order = planted(0.3)
    pairs = [(f"a{i}", f"b{i}") for i in range(0, 800, 2)]
    mapped = map_once(sides, "supervised", pairs, 1, SMALL)
    assert mapped.attempt.iterations == 0 and p_at_1(mapped.a, mapped.b, order) > 0.9


@pytest.mark.parametrize("start", ["identical", "numerals"])
def test_words_spelt_the_same_or_numerals_are_a_start(start):
    sides, order = planted(0.2)
    shared = {i: (str(i) if start == "numerals" else f"word{i}") for i in range(100)}
    sides = sides._replace(words_a=[shared.get(i, f"a{i}") for i in range(800)], words_b=[shared.get(i, f"b{i}") for i in order.tolist()])
    mapped = map_once(sides, start, [], 1, SMALL)
    assert p_at_1(mapped.a, mapped.b, order) > 0.9
    sides = sides._replace(words_a=[f"a{i}" for i in range(800)])
    with pytest.raises(InputError, match=rf"mode {start}: .* no such word in common; give a dictionary \(mapping.mode: semi_supervised\)"):
        map_once(sides, start, [], 1, SMALL)


def test_a_bad_solution_is_followed_by_restarts_and_fallbacks():
    settings = dataclasses.replace(SMALL, patience=2, restarts=1)
    chosen, attempts = map_with_fallbacks(unrelated(), [], 4, settings)
    assert [(a.start, a.seed, a.good) for a in attempts] == [
        ("unsupervised", 4, False),
        ("unsupervised", 5, False),
        ("identical", 4, False),
        ("numerals", 4, False),
    ]
    assert "in common" in attempts[2].reason and not chosen.attempt.good


@pytest.fixture
def files(tmp_path):
    """Paths of a stage's inputs and outputs; the inputs hold a planted pair."""
    sides, _ = planted(0.0, 400, 20)
    write_vectors(tmp_path / "a.vec", sides.words_a, sides.a.numpy())
    write_vectors(tmp_path / "b.vec", sides.words_b, sides.b.numpy())
    return [tmp_path / name for name in ("a.vec", "b.vec", "a.mapped.vec", "b.mapped.vec", "mapping.json")]


def test_the_stage_writes_vectors_and_report(files, monkeypatch):
    monkeypatch.setattr("workflow_scripts.lexicon.verdict.LEAST_WORDS", 400)
    settings = Mapping(patience=3, initial_words=400, search_cutoff=300)
    (dictionary := files[0].with_name("words")).write_text("a5 b5\n")
    mapping.main(*files, dictionary=dictionary, seed=1, settings=settings)
    words, vectors = read_vectors(files[2])
    report = read_json(files[4])
    assert words[5] == "a5" and vectors.shape == (400, 20)
    assert report["words"] == [400, 400] and report["iterations"] > 15 and report["good"] and len(report["attempts"]) == 1
    assert report["checksums"] == checksums((*files[:2], dictionary))
    first = files[2].read_bytes()
    mapping.main(*files, seed=1, settings=settings)
    assert files[2].read_bytes() == first


def test_a_useless_mapping_stops_the_run_or_warns(files, capsys):
    write_vectors(files[1], [f"b{i}" for i in range(400)], np.random.default_rng(1).standard_normal((400, 20)))
    settings = Mapping(patience=2, initial_words=400, search_cutoff=300, restarts=0, fallback=[])
    with pytest.raises(InputError, match=r"no good mapping found.*unsupervised, seed 1: .*mapping.on_failure"):
        mapping.main(*files, settings=settings)
    assert not files[2].exists() and not files[4].exists()
    mapping.main(*files, settings=dataclasses.replace(settings, on_failure="warn"))
    assert "warning:" in capsys.readouterr().out and read_json(files[4])["good"] is False


def test_different_dimensions_and_too_few_words_are_refused(files):
    write_vectors(files[1], ["x", "y"], np.ones((2, 3)))
    with pytest.raises(InputError, match=r"a.vec has 20 dimensions, .*b.vec 3"):
        mapping.main(*files)
    write_vectors(files[1], ["x"], np.ones((1, 20)))
    with pytest.raises(InputError, match=r"b.vec: 1 words of 20 dimensions are too few.*or give vectors of more words"):
        mapping.main(*files)


def test_few_words_that_are_in_one_space_already_are_taken(files):
    for path in files[:2]:
        write_vectors(path, [f"word{i}" for i in range(15)], np.eye(15, 20))
    mapping.main(*files, settings=Mapping(mode="mapped"))
    assert read_vectors(files[3])[0][14] == "word14"


def test_a_dictionary_without_a_known_word_or_in_the_other_order_is_refused(files, tmp_path):
    for pairs, said in (
        ("haus house\n", r"seed: none of its 1 pairs has both words in \S+a\.vec and \S+b\.vec \(the first is 'haus house'\); give"),
        ("b1 a1\nb2 a2\na3 b3\n", r"seed: 1 of 3 pairs .* and 2 when .* first word of a line has to be one of \S+a\.vec, the second"),
        ("", "seed: is empty"),
    ):
        (tmp_path / "seed").write_text(pairs)
        with pytest.raises(InputError, match=said):
            mapping.main(*files, dictionary=tmp_path / "seed", settings=Mapping(mode="supervised"))
    with pytest.raises(InputError, match="needs a dictionary"):
        mapping.main(*files, settings=Mapping(mode="semi_supervised"))
    with pytest.raises(InputError, match="maps nothing"):
        mapping.main(*files, settings=Mapping(mode="dictionary"))


def test_given_vectors_are_folded_and_cut(tmp_path):
    words = ["Datei", "datei", "Fenster", *(f"w{i}" for i in range(60))]
    for name, seed in (("a", 1), ("b", 2)):
        write_vectors(tmp_path / f"{name}.vec", words, np.random.default_rng(seed).standard_normal((63, 5)))
    outputs = [tmp_path / name for name in ("a.vec", "b.vec", "a.out.vec", "b.out.vec", "m.json")]
    settings = Mapping(mode="identical", max_words=40, on_failure="warn", restarts=0, fallback=[])
    mapping.main(*outputs, languages=("de", "en"), settings=settings)
    assert read_vectors(outputs[2])[0] == ["datei", "fenster", *(f"w{i}" for i in range(37))]


def test_vectors_of_nothing_but_zeros_are_refused(files):
    write_vectors(files[1], [f"b{i}" for i in range(400)], np.zeros((400, 20)))
    with pytest.raises(InputError, match="all vectors are zero"):
        mapping.main(*files)
