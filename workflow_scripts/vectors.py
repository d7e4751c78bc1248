"""Embedding files in word2vec's text format: a line "rows dimensions", then "word x₁ … x_d" each.

The same files are read by VecMap, MUSE and gensim, so vectors from elsewhere can take the place of
any of ours.
"""

from itertools import islice
from pathlib import Path

import numpy as np

from workflow_scripts.stage import InputError, atomic
from workflow_scripts.text import read_lines


def write_vectors(path: Path, words: list[str], vectors: np.ndarray) -> None:
    """Write `vectors` (words × dimensions), seven significant digits, atomically."""
    with atomic(path) as file:
        file.write(f"{vectors.shape[0]} {vectors.shape[1]}\n")
        form = " ".join(["%.7g"] * vectors.shape[1])
        for word, row in zip(words, vectors.tolist(), strict=True):
            file.write(f"{word} {form % tuple(row)}\n")


def read_vectors(path: Path, limit: int | None = None) -> tuple[list[str], np.ndarray]:
    """Words and their vectors (words × dimensions, float32), at most the first `limit` rows.

    Of a word that stands twice, the first row counts. Raises `InputError` for a bad header, rows of
    another width, or values that are not finite numbers.
    """
    lines = read_lines(path)
    header = next(lines, "").split()
    if len(header) != 2 or not all(part.isdigit() for part in header):
        raise InputError(f"{path}, line 1: expected a word2vec header 'rows dimensions', got {' '.join(header)[:60]!r}")
    rows, dimensions = map(int, header)
    rows = min(rows, limit or rows)
    vectors = np.empty((rows, dimensions), dtype=np.float32)
    index: dict[str, int] = {}
    number = 1
    for number, line in enumerate(islice(lines, rows), 2):
        word, _, numbers = line.rstrip().partition(" ")
        if word in index:
            continue
        row = np.fromstring(numbers, dtype=np.float32, sep=" ") if numbers else np.empty(0)
        if row.shape != (dimensions,) or not np.isfinite(row).all():
            raise InputError(f"{path}, line {number}: {word!r} needs {dimensions} finite numbers, found {row.size}: {numbers[:60]!r}")
        vectors[len(index)] = row
        index[word] = len(index)
    if number - 1 < rows:
        raise InputError(f"{path}: the header says {header[0]} rows, the file ends after {number - 1}; write it again")
    return list(index), vectors[: len(index)]
