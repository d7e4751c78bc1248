"""Pairs of embeddings whose right mapping is known: one is a rotated, shuffled, noisy copy of the other."""

import numpy as np
import torch

from workflow_scripts.lexicon.mapping import Mapping, Sides, normalise

SMALL = Mapping(patience=5, initial_words=800, search_cutoff=600)


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


def planted(noise: float, words: int = 800, dimensions: int = 40) -> tuple[Sides, torch.Tensor]:
    """A side and its rotated, shuffled, noisy copy under other names; the row of a that each row of b copies."""
    x = clusters(words, dimensions, 7)
    z, order = rotated(x, 8, noise)
    return Sides([f"a{i}" for i in range(words)], [f"b{i}" for i in order.tolist()], x, z), order


def in_order_of_frequency(sides: Sides, order: torch.Tensor) -> tuple[Sides, torch.Tensor]:
    """The same with b in the order of a, but for small changes of rank."""
    rank = (order + 20 * torch.rand(len(order), generator=torch.Generator().manual_seed(1))).argsort()
    return sides._replace(words_b=[sides.words_b[i] for i in rank.tolist()], b=sides.b[rank]), order[rank]


def p_at_1(a: torch.Tensor, b: torch.Tensor, order: torch.Tensor) -> float:
    return float(((normalise(b) @ normalise(a).T).argmax(dim=1) == order).float().mean())


def unrelated() -> Sides:
    return planted(0.0, 400)[0]._replace(b=torch.randn(400, 40, generator=torch.Generator().manual_seed(5)))
