"""Two looks at a similarity matrix: the same answer however the matrix is held."""

import numpy as np
import pytest
import torch

from workflow_scripts import similarity
from workflow_scripts.similarity import ByteStream, Similarities, best_pairs, nearest, neighbourhoods


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks of a few rows, so that small matrices need many."""
    monkeypatch.setattr(similarity, "_BLOCK_ROWS", 96)
    monkeypatch.setattr(similarity, "_BLOCK_ENTRIES", 1)


def sides(rows: int, columns: int, dimensions: int = 20) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(rows)
    return tuple(torch.nn.functional.normalize(torch.randn(n, dimensions, generator=generator), dim=1) for n in (rows, columns))


@pytest.mark.parametrize("keep", ["float32", "float16", "blocks"])
@pytest.mark.parametrize("shape", [(700, 333), (333, 700), (40, 25)])
def test_best_pairs_equal_the_definition_of_csls(shape, keep, small_blocks):
    x, z = sides(*shape)
    cosines = x @ z.T
    r_x, r_z = cosines.topk(10, dim=1).values.mean(dim=1), cosines.topk(10, dim=0).values.mean(dim=0)
    csls = 2 * cosines - r_x[:, None] - r_z
    similarities = Similarities(x, z, keep)
    near = neighbourhoods(similarities, 10)
    best_z, best_x = best_pairs(similarities, near)
    # where the matrix is rounded or summed in another order, a tie may fall the other way
    tolerance = 2e-3 if keep == "float16" else 1e-6
    assert (csls.amax(dim=1) - csls[torch.arange(shape[0]), best_z]).max() <= tolerance
    assert (csls.amax(dim=0) - csls[best_x, torch.arange(shape[1])]).max() <= tolerance
    assert torch.allclose(near.nearest_x, cosines.amax(dim=1), atol=1e-6) and torch.allclose(near.mean_z, r_z, atol=1e-6)


def test_neighbourhoods_do_not_depend_on_the_blocks(small_blocks):
    x, z = sides(700, 333)
    whole, blocks = (neighbourhoods(Similarities(x, z, keep), 10) for keep in ("float32", "blocks"))
    assert all(torch.allclose(a, b, atol=1e-6) for a, b in zip(whole, blocks, strict=True))


@pytest.mark.parametrize("keep", ["float32", "blocks"])
@pytest.mark.parametrize("shape", [(1003, 57), (57, 1003), (600, 600), (30, 12), (3, 2)])
def test_nearest_equals_the_definition(shape, keep, small_blocks):
    x, z = sides(*shape)
    cosines = x @ z.T
    csls = (
        2 * cosines - cosines.topk(min(10, shape[1]), dim=1).values.mean(1)[:, None] - cosines.topk(min(10, shape[0]), dim=0).values.mean(0)
    )
    similarities = Similarities(x, z, keep)
    for score, near in ((cosines, None), (csls, neighbourhoods(similarities, 10))):
        for top, expected in zip(nearest(similarities, 4, near), (score, score.T), strict=True):
            assert torch.allclose(top.values, expected.topk(min(4, expected.shape[1]), dim=1).values, atol=1e-5)
            assert torch.allclose(expected.gather(1, top.indices), top.values, atol=1e-5)


def test_noise_keeps_the_configured_share_and_is_repeatable():
    cpu = torch.device("cpu")
    (first, limit), (second, _) = (ByteStream(3, cpu).draw(torch.Size((500, 401)), 0.1) for _ in range(2))
    assert (first == second).all() and (first < limit).mean() == pytest.approx(0.1, abs=0.005)
    rare, limit = ByteStream(3, cpu).draw(torch.Size((500, 401)), 1e-3)
    assert (rare < limit).any()  # something is kept, however small the share
    x, z = sides(300, 200)
    similarities = Similarities(x, z)
    near = neighbourhoods(similarities, 10)
    plain, *noisy = (best_pairs(similarities, near, keep, ByteStream(seed, cpu)) for keep, seed in ((1.0, 1), (0.2, 1), (0.2, 1), (0.2, 2)))
    assert torch.equal(noisy[0][1], noisy[1][1])
    assert not torch.equal(noisy[0][1], noisy[2][1]) and not torch.equal(noisy[0][1], plain[1])


def test_a_dropped_score_counts_as_zero_not_as_nothing():
    # one row, all scores negative: a dropped one is 0 and wins (Artetxe et al. 2018, section 3.3: set to zero)
    class Fixed:
        def draw(self, shape, keep):
            return np.array([[0, 255, 0]], dtype=np.uint8), np.uint8(128)

    similarities = Similarities(torch.tensor([[-1.0]]), torch.tensor([[0.9], [0.5], [0.1]]))
    near = neighbourhoods(similarities, 1)._replace(mean_x=torch.zeros(1), mean_z=torch.zeros(3))
    assert best_pairs(similarities, near, 0.5, Fixed())[0].tolist() == [1]


def test_the_matrix_is_held_in_what_fits(monkeypatch):
    monkeypatch.setattr(similarity, "_FLOAT32_BYTES", 4 * 100)
    monkeypatch.setattr(similarity, "_FLOAT16_BYTES", 2 * 400)
    assert [Similarities(*sides(n, n)).keep for n in (10, 20, 21)] == ["float32", "float16", "blocks"]


def test_a_bfloat16_product_is_close():
    x, z = sides(200, 150, 300)
    exact, rounded = (neighbourhoods(Similarities(x, z, product=p), 10) for p in ("float32", "bfloat16"))
    assert torch.allclose(exact.mean_x, rounded.mean_x, atol=5e-3)
