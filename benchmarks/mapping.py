"""What an iteration of the mapping's search costs, in matrix products of its size, and a whole mapping.

python -m benchmarks.mapping [words ...]

One JSON line per number of words a side (5,000 and 20,000) and way to hold the similarity matrix. The
data are clustered vectors and a rotated, shuffled, noisy copy, so that P@1 is known; what is timed does
not depend on the vectors. An iteration is the product, both neighbourhoods, the objective, and both
dictionaries with nine tenths dropped; `ratio_with_rotation` adds the rotation that follows. Products and
iterations alternate, and medians are compared. Each line comes from a process of its own, whose peak
memory it tells.
"""

import json
import sys
import time
from statistics import median
from typing import Literal

import torch

from benchmarks import apart, peak_gb
from workflow_scripts.device import keep_memory
from workflow_scripts.lexicon.mapping import Mapping, Sides, map_once, normalise, procrustes, union
from workflow_scripts.similarity import ByteStream, Similarities, best_pairs, neighbourhoods

DIMENSIONS = 300


def main(sizes: list[int]) -> None:
    """Print a line per size and way to hold the matrix."""
    for words in sizes:
        for matrix in ("auto", "blocks"):
            print(json.dumps(apart("mapping", str(words), matrix)), flush=True)


def case(words: int, matrix: Literal["auto", "blocks"]) -> dict:
    """One line."""
    keep_memory()
    sides, order = planted(words)
    a, b = normalise(sides.a), normalise(sides.b)
    rounds = 15 if words < 10_000 else 5
    similarities = Similarities(a, b, matrix)
    noise = ByteStream(1, a.device)
    block = torch.empty(min(words, 4096), words)

    def product():
        for start in range(0, words, len(block)):
            rows = a[start : start + len(block)]
            torch.matmul(rows, b.T, out=block[: len(rows)])

    def iteration():
        similarities.replace_rows(a)
        near = neighbourhoods(similarities, 10)
        found = best_pairs(similarities, near, 0.1, noise)
        float(near.nearest_x.mean() + near.nearest_z.mean())
        return union(*found)

    dictionary = iteration()
    product()
    products, iterations, rotations = [], [], []
    for _ in range(rounds):
        products.append(seconds(product))
        iterations.append(seconds(iteration))
        rotations.append(seconds(lambda: a @ procrustes(a[dictionary[0]], b[dictionary[1]])))
    peak = peak_gb()
    # where a processor lacks the instructions this is slow, so a slice stands for the whole
    rows = min(words, 1000)
    left, right = a[:rows].bfloat16(), b.T.bfloat16()
    bfloat16 = seconds(lambda: left @ right) * words / rows
    started = time.perf_counter()
    mapped = map_once(sides, "unsupervised", [], 1, Mapping(matrix=matrix))
    taken = time.perf_counter() - started
    similarity = Similarities(normalise(mapped.b), normalise(mapped.a), "blocks")
    nearest = torch.cat([rows.argmax(dim=1) for _, rows in similarity.blocks()])
    return {
        "words": words,
        "matrix": similarities.keep,
        "threads": torch.get_num_threads(),
        "seconds_per_iteration": round(median(iterations) + median(rotations), 4),
        "seconds_per_product": round(median(products), 4),
        "ratio_fp32": round(median(iterations) / median(products), 2),
        "ratio_with_rotation": round((median(iterations) + median(rotations)) / median(products), 2),
        "ratio_bf16": round(median(iterations) / bfloat16, 3),
        "peak_gb": round(peak, 2),
        "iterations": mapped.attempt.iterations,
        "seconds": round(taken, 1),
        "p_at_1": round(float((nearest == order).float().mean()), 4),
        "capability": torch.backends.cpu.get_cpu_capability(),
    }


def planted(words: int, noise: float = 0.3) -> tuple[Sides, torch.Tensor]:
    """Clustered vectors, a rotated, shuffled, noisy copy, and the row of a that each row of b copies."""
    generator = torch.Generator().manual_seed(1)

    def normal(*shape):
        return torch.randn(*shape, generator=generator)

    centres = normal(200, DIMENSIONS) * normal(200, 1).abs()
    clusters = torch.randint(len(centres), (words,), generator=generator)
    a = (centres[clusters] + normal(words, DIMENSIONS)) * torch.linspace(2, 0.2, DIMENSIONS)
    rotation = torch.linalg.qr(normal(DIMENSIONS, DIMENSIONS)).Q
    # a frequent word of one language is frequent in the other
    order = (torch.arange(words) + 0.2 * torch.arange(words) * normal(words)).argsort()
    b = (a @ rotation)[order] + noise * normal(words, DIMENSIONS)
    return Sides([f"a{i}" for i in range(words)], [f"b{i}" for i in order.tolist()], a, b), order


def seconds(function) -> float:
    """Wall time of one call."""
    started = time.perf_counter()
    function()
    return time.perf_counter() - started


if __name__ == "__main__":
    if len(sys.argv) == 3 and not sys.argv[2].isdigit():
        print(json.dumps(case(int(sys.argv[1]), "blocks" if sys.argv[2] == "blocks" else "auto")))
    else:
        main([int(words) for words in sys.argv[1:]] or [5_000, 20_000])
