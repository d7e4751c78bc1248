"""Retrieval: the exact search of all nearest neighbours in both directions, and a plain matrix product of the same size.

python -m benchmarks.retrieval [sentences] [dimensions] [threads]

Both sides have as many sentences, with random vectors in which each has a planted neighbour. One JSON line: seconds of the product
alone, in the same blocks; of the search with margins; their ratio; the peak of memory; and the share of planted neighbours found.
"""

import json
import sys
import time

import torch

from benchmarks import peak_gb
from workflow_scripts.evidence.nearest import best, margins, normalised, search
from workflow_scripts.similarity import set_threads


def main(sentences: int, dimensions: int, threads: int) -> None:
    """Print what both took."""
    set_threads(threads)
    generator = torch.Generator().manual_seed(1)
    source = torch.randn(sentences, dimensions, generator=generator)
    order = torch.randperm(sentences, generator=generator)
    target = source[order] + 0.5 * torch.randn(sentences, dimensions, generator=generator)
    search(source[:1000], target[:1000])  # compiles
    started = time.perf_counter()
    x, z = normalised(source), normalised(target).T
    # a block of rows at a time, as no memory holds all products
    rows = 640
    block = torch.empty(rows, sentences)
    for start in range(0, sentences, rows):
        part = x[start : start + rows]
        torch.matmul(part, z, out=block[: len(part)])
    product = time.perf_counter() - started
    del x, z, block
    started = time.perf_counter()
    found, _ = best(margins(*search(source, target))[1])
    taken = time.perf_counter() - started
    line = {
        "sentences": sentences,
        "dimensions": dimensions,
        "threads": threads,
        "product_s": round(product, 2),
        "search_s": round(taken, 2),
        "ratio": round(taken / product, 2),
        "peak_gb": round(peak_gb(), 2),
        "found": float((torch.from_numpy(found) == order).float().mean()),
    }
    print(json.dumps(line), flush=True)


if __name__ == "__main__":
    given = [int(value) for value in sys.argv[1:]]
    main(*(given + [20_000, 768, torch.get_num_threads()][len(given) :]))
