"""The unsupervised mapping: each step, and a whole run on planted data."""

import numpy as np
import pytest
import torch

from workflow_scripts import mapping
from workflow_scripts.mapping import Mapping, Search, normalise, procrustes, symmetric_reweighting, topk_columns, union
from workflow_scripts.stage import InputError, read_json
from workflow_scripts.vectors import read_vectors, write_vectors


def clusters(words: int, dimensions: int, seed: int) -> torch.Tensor:
    """Vectors with the uneven, clustered shape of real embeddings."""
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((40, dimensions)) * rng.gamma(1.0, 1.0, (40, 1))
    scale = np.linspace(2.0, 0.2, dimensions)
    return torch.from_numpy((centres[rng.integers(40, size=words)] + rng.standard_normal((words, dimensions))) * scale).float()


def rotated(x: torch.Tensor, seed: int, noise: float = 0.0) -> tuple[torch.Tensor, torch.Tensor]:
    """A rotated, shuffled, noisy copy of `x`, and the row of `x` that each of its rows copies."""
    generator = torch.Generator().manual_seed(seed)
    rotation, _ = torch.linalg.qr(torch.randn(x.shape[1], x.shape[1], generator=generator))
    order = torch.randperm(len(x), generator=generator)
    return (x @ rotation)[order] + noise * torch.randn(x.shape, generator=generator), order


def test_normalise():
    x = normalise(torch.randn(50, 7) + 3)
    assert torch.allclose(x.norm(dim=1), torch.ones(50), atol=1e-6)
    assert x.mean(dim=0).abs().max() < 0.05


def test_topk_of_columns_equals_torch():
    matrix = torch.randn(1003, 57)
    assert torch.equal(topk_columns(matrix, 10), matrix.T.topk(10, dim=1).values)
    assert torch.equal(topk_columns(matrix[:30], 10), matrix[:30].T.topk(10, dim=1).values)


@pytest.mark.parametrize("shape", [(700, 333), (333, 700), (40, 25)])
def test_search_equals_the_definition_of_csls(shape):
    similarity = torch.rand(shape)
    r_a, r_b = similarity.topk(10, dim=1).values.mean(dim=1), similarity.topk(10, dim=0).values.mean(dim=0)
    csls = 2 * similarity - r_a[:, None] - r_b
    search = Search(similarity, 10)
    assert torch.equal(search.best_b(), csls.argmax(dim=1))
    assert torch.equal(search.best_a(), csls.argmax(dim=0))
    assert search.objective() == pytest.approx(float(similarity.amax(1).mean() + similarity.amax(0).mean()) / 2)


def test_dropping_keeps_the_configured_share_and_is_repeatable():
    generator = torch.Generator().manual_seed(3)
    dropped = mapping._dropped(torch.Size((500, 401)), 0.1, generator, torch.device("cpu"))
    assert float(dropped.float().mean()) == pytest.approx(0.9, abs=0.005)
    search = Search(torch.rand(300, 200), 10)
    first, second = (search.best_a(0.2, torch.Generator().manual_seed(1)) for _ in range(2))
    assert torch.equal(first, second) and not torch.equal(first, search.best_a())


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
def test_a_rotated_and_shuffled_copy_maps_back_onto_itself(noise, at_least):
    x = clusters(800, 40, 7)
    z, order = rotated(x, 8, noise)
    found = mapping.map_unsupervised(x, z, 1, Mapping(patience=5, initial_words=800, search_cutoff=600))
    similarity = normalise(found.b) @ normalise(found.a).T
    assert float((similarity.argmax(dim=1) == order).float().mean()) >= at_least


def test_the_stage_writes_vectors_and_report(tmp_path):
    x = clusters(400, 20, 1)
    z, _ = rotated(x, 2)
    for name, side in (("a", x), ("b", z)):
        write_vectors(tmp_path / f"{name}.vec", [f"{name}{i}" for i in range(400)], side.numpy())
    files = [tmp_path / name for name in ("a.vec", "b.vec", "a.mapped.vec", "b.mapped.vec", "mapping.json")]
    settings = Mapping(patience=3, initial_words=400, search_cutoff=300)
    mapping.main(*files, seed=1, settings=settings)
    words, vectors = read_vectors(files[2])
    report = read_json(files[4])
    assert words[5] == "a5" and vectors.shape == (400, 20)
    assert report["words"] == [400, 400] and report["iterations"] > 15 and report["mutual_nearest_neighbours"] > 0.9
    first = files[2].read_bytes()
    mapping.main(*files, seed=1, settings=settings)
    assert files[2].read_bytes() == first


def test_different_dimensions_are_refused(tmp_path):
    write_vectors(tmp_path / "a", ["x", "y"], np.ones((2, 3)))
    write_vectors(tmp_path / "b", ["x", "y"], np.ones((2, 4)))
    with pytest.raises(InputError, match="has 3 dimensions"):
        mapping.main(*(tmp_path / name for name in ("a", "b", "c", "d", "e")))
