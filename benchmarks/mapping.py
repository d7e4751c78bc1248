"""What an iteration of the mapping's search costs, as a ratio to one float32 matrix product of its size.

python benchmarks/mapping.py [rows] [columns] [dimensions]
"""

import sys
import time

import torch

from workflow_scripts.mapping import Search, normalise, procrustes, union


def seconds(function, times: int = 5) -> float:
    """Median of a few calls, after one to warm up."""
    function()
    taken = []
    for _ in range(times):
        begun = time.perf_counter()
        function()
        taken.append(time.perf_counter() - begun)
    return sorted(taken)[times // 2]


def main(rows: int = 6616, columns: int = 4346, dimensions: int = 300) -> None:
    """Print the parts of an iteration and their ratios."""
    generator = torch.Generator().manual_seed(1)
    a, b = (normalise(torch.randn(n, dimensions, generator=generator)) for n in (rows, columns))
    similarity = torch.empty(rows, columns)
    product = seconds(lambda: torch.matmul(a, b.T, out=similarity))
    search = Search(similarity, 10)
    dictionary = union(search.best_b(), search.best_a())
    parts = {
        "neighbourhoods of both sides": lambda: Search(similarity, 10),
        "best partner of each row, 90 % dropped": lambda: search.best_b(0.1, generator),
        "best partner of each column, 90 % dropped": lambda: search.best_a(0.1, generator),
        "rotation": lambda: procrustes(a[dictionary[0]], b[dictionary[1]]),
    }
    print(f"{rows} × {columns} × {dimensions}, {torch.get_num_threads()} threads, {torch.backends.cpu.get_cpu_capability()}")
    print(f"{'float32 product':45s} {product:.3f} s")
    total = product
    for name, function in parts.items():
        taken = seconds(function)
        total += taken
        print(f"{name:45s} {taken:.3f} s  {taken / product:.2f} ×")
    print(f"{'iteration':45s} {total:.3f} s  {total / product:.2f} ×")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
