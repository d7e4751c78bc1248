"""similarity: nearest-neighbour search between two sets of vectors, used by `mapping`, `lexicon` and `evidence.nearest`.

A search by CSLS reads the matrix of similarities twice. Before it can compare two words, it must know the mean similarity
of each word to its k nearest neighbours on the other side. If the matrix fits into memory, `Similarities` keeps it between
the two passes, in float32 or float16; otherwise it computes the matrix again, block by block. Each pass selects
along rows and columns at the same time. On a CPU, the selections are compiled loops (numba), because torch's topk and
argmax over wide rows take longer than the matrix product itself (docs/mapping.md). On CUDA they are torch's.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numba
import numpy as np
import torch

from workflow_scripts.lazily import compiled

# A block should nearly fit into the processor's outer cache, but have enough rows for a fast matrix product.
_BLOCK_ENTRIES = 1 << 23
_BLOCK_ROWS = 640
_FLOAT32_BYTES = 512 << 20
_FLOAT16_BYTES = 1 << 30


def set_threads(threads: int) -> None:
    """Set the number of CPU threads for matrix products and selections; at most one per core is used for selections."""
    torch.set_num_threads(threads)
    numba.set_num_threads(min(threads, numba.config.NUMBA_NUM_THREADS))  # type: ignore[attr-defined]


class Similarities:
    """The dot products of all rows of `x` with all rows of `z`, to be read block by block, any number of times.

    `keep` says how the matrix is kept: in memory as `float32` or `float16`, or not at all (`blocks`: computed again in every pass). `auto`
    takes float32 if it needs at most 0.5 GB, else float16 if that needs at most 1 GB, else blocks. Float16 rounds cosines to three
    digits, but only from the second pass on. `product` is the precision of the multiplication, float32 or bfloat16.
    """

    def __init__(self, x: torch.Tensor, z: torch.Tensor, keep: str = "auto", product: str = "float32"):
        dtype = torch.bfloat16 if product == "bfloat16" else torch.float32
        self.x, self.z = x.to(dtype), z.T.to(dtype)
        self.shape = torch.Size((len(x), len(z)))
        self.device = x.device
        entries = len(x) * len(z)
        if keep == "auto":
            keep = "float32" if entries * 4 <= _FLOAT32_BYTES else "float16" if entries * 2 <= _FLOAT16_BYTES else "blocks"
        self.keep = keep
        kept_shape = (0, 0) if keep == "blocks" else self.shape
        self.kept = torch.empty(kept_shape, dtype=torch.float32 if keep == "float32" else torch.float16, device=x.device)
        self.computed = False

    def replace_rows(self, x: torch.Tensor) -> None:
        """Replace `x` by as many other rows; the memory of the matrix is reused."""
        self.x = x.to(self.z.dtype)
        self.computed = False

    def blocks(self) -> Iterator[tuple[int, torch.Tensor]]:
        """Yield the number of the first row and a float32 block of rows. The next block, or the next pass, overwrites it."""
        # multiples of eight rows: noise is drawn eight bytes at a time, and must not depend on the size of blocks
        rows = max(_BLOCK_ROWS, _BLOCK_ENTRIES // max(1, self.shape[1]) // 8 * 8)
        buffer = None if self.keep == "float32" else torch.empty(min(rows, self.shape[0]), self.shape[1], device=self.device)
        for start in range(0, self.shape[0], rows):
            at = slice(start, min(start + rows, self.shape[0]))
            block = self.kept[at] if buffer is None else buffer[: at.stop - at.start]
            if not self.computed or self.keep == "blocks":
                if self.z.dtype == torch.float32:
                    torch.matmul(self.x[at], self.z, out=block)
                else:
                    block.copy_(self.x[at] @ self.z)
                if self.keep == "float16":
                    self.kept[at] = block
            elif self.keep == "float16":
                block.copy_(self.kept[at])
            yield start, block
        self.computed = True


class Top(NamedTuple):
    """The k greatest entries of each row (or column), greatest first: values and positions (n × k)."""

    values: torch.Tensor
    indices: torch.Tensor


class Neighbourhoods(NamedTuple):
    """What CSLS needs to know about the words of both sides: each word's greatest similarity, and the mean of its k greatest."""

    nearest_x: torch.Tensor
    nearest_z: torch.Tensor
    mean_x: torch.Tensor
    mean_z: torch.Tensor


def neighbourhoods(similarities: Similarities, k: int) -> Neighbourhoods:
    """The first pass of CSLS, with k neighbours."""
    top_x, top_z = nearest(similarities, k)
    return Neighbourhoods(top_x.values[:, 0], top_z.values[:, 0], top_x.values.mean(dim=1), top_z.values.mean(dim=1))


def nearest(similarities: Similarities, k: int, near: Neighbourhoods | None = None) -> tuple[Top, Top]:
    """The k best rows of z for each row of x, and the k best rows of x for each row of z.

    Ranked by similarity or, given the neighbourhoods, by
    CSLS(i, j) = 2 cos(i, j) − r(i) − r(j) (Conneau et al. 2018).
    """
    rows, columns = similarities.shape
    device = similarities.device
    # in ascending order on a CPU, so that the first entry is the smallest and is replaced first
    x, z = (
        Top(torch.full((n, k), -torch.inf, device=device), torch.zeros((n, k), dtype=torch.int32, device=device))
        for n, k in ((rows, min(k, columns)), (columns, min(k, rows)))
    )
    for first, block in similarities.blocks():
        at = slice(first, first + len(block))
        if near is not None:
            block = (2 * block).sub_(near.mean_z).sub_(near.mean_x[at, None])
        if block.is_cuda:
            x.values[at], x.indices[at] = block.topk(x.values.shape[1], dim=1)
            z = _top_of_both(z, block.T.topk(min(z.values.shape[1], len(block)), dim=1), first)
        else:
            values_x, indices_x, values_z, indices_z = (part.numpy() for part in (x.values[at], x.indices[at], *z))
            _top(block.numpy(), first, values_x, indices_x, values_z, indices_z, numba.get_num_threads())
    if device.type == "cpu":
        x, z = (Top(*(part.flip(1) for part in side)) for side in (x, z))
    return Top(x.values, x.indices.long()), Top(z.values, z.indices.long())


def _top_of_both(top: Top, other: tuple[torch.Tensor, torch.Tensor], first: int) -> Top:
    """Merge two selections for the same rows; positions in the second one are relative to `first`."""
    values, indices = torch.cat([top.values, other[0]], dim=1), torch.cat([top.indices, other[1].int() + first], dim=1)
    values, chosen = values.topk(top.values.shape[1], dim=1)
    return Top(values, indices.gather(1, chosen))


def best_pairs(
    similarities: Similarities, near: Neighbourhoods, keep: float = 1.0, noise: ByteStream | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """The second pass of CSLS: the best column of each row, and the best row of each column.

    In a maximum over j, r(i) is constant, so that cos(i, j) − r(j)/2 is compared. Each score is kept with the probability `keep`, for both
    directions together; otherwise it is set to 0.
    """
    half_x, half_z = near.mean_x / 2, near.mean_z / 2
    rows, columns = similarities.shape
    best_z = torch.zeros(rows, dtype=torch.int32, device=similarities.device)
    best_x = torch.zeros(columns, dtype=torch.int32, device=similarities.device)
    greatest = torch.full((columns,), -torch.inf, device=similarities.device)
    for first, block in similarities.blocks():
        at = slice(first, first + len(block))
        bytes_, limit = noise.draw(block.shape, keep) if noise is not None and keep < 1 else (None, np.uint8(1))
        if block.is_cuda:
            dropped = torch.zeros((), dtype=torch.bool, device=block.device) if bytes_ is None else bytes_ >= limit
            best_z[at] = (block - half_z).masked_fill_(dropped, 0.0).argmax(dim=1).int()
            maxima, row = (block - half_x[at, None]).masked_fill_(dropped, 0.0).max(dim=0)
            best_x = torch.where(maxima > greatest, row.int() + first, best_x)
            greatest = torch.maximum(maxima, greatest)
        else:
            bytes_ = np.zeros(block.shape, np.uint8) if bytes_ is None else bytes_
            halves, best = (half_x[at].numpy(), half_z.numpy()), (best_z[at].numpy(), best_x.numpy(), greatest.numpy())
            _best(block.numpy(), *halves, bytes_, limit, first, *best, numba.get_num_threads())
    return best_z.long(), best_x.long()


class ByteStream:
    """A stream of random bytes for `best_pairs`, from a seed."""

    def __init__(self, seed: int, device: torch.device):
        self.device = device
        self.on_gpu = torch.Generator(device).manual_seed(seed) if device.type == "cuda" else None
        self.on_cpu = np.random.SFC64(seed)

    def draw(self, shape: torch.Size, keep: float):
        """A random byte for each entry, and a limit: entries with a byte below it are kept.

        Probabilities are multiples of 1/256, from 1/256 on.
        """
        limit = min(255, max(1, round(256 * keep)))
        if self.on_gpu is not None:
            return torch.randint(256, shape, dtype=torch.uint8, device=self.device, generator=self.on_gpu), limit
        raw = self.on_cpu.random_raw((shape.numel() + 7) // 8)
        return raw.view(np.uint8)[: shape.numel()].reshape(shape), np.uint8(limit)


# ---------------------------------------------------------------------------------------------
# selections on a CPU

# Rows are scanned in pieces of this length. A vectorised maximum tells whether a piece has to be searched number by number.
_PIECE = 128
_FASTMATH = {"nnan", "nsz", "reassoc"}


@compiled(parallel=True, fastmath=_FASTMATH)
def _top(block, first, values_x, indices_x, values_z, indices_z, threads):
    """Select along rows and columns in one pass. Each thread has some of the columns, and its own lists for the rows."""
    rows, columns = block.shape
    parts, width = _parts(columns, threads)
    k = values_x.shape[1]
    values, indices = np.full((parts, rows, k), -np.inf, np.float32), np.zeros((parts, rows, k), np.int32)
    least = values_z[:, 0].copy()
    for part in numba.prange(parts):
        for i in range(rows):
            for start in range(part * width, min((part + 1) * width, columns), _PIECE):
                piece = block[i, start : min(start + _PIECE, columns)]
                peak, over = _peaks(piece, least[start : start + len(piece)])
                if peak > values[part, i, 0]:
                    for j in range(len(piece)):
                        if piece[j] > values[part, i, 0]:
                            _insert(values[part, i], indices[part, i], piece[j], start + j)
                if over > 0:
                    for j in range(start, start + len(piece)):
                        if block[i, j] > least[j]:
                            _insert(values_z[j], indices_z[j], block[i, j], first + i)
                            least[j] = values_z[j, 0]
    for i in numba.prange(rows):
        for part in range(parts):
            for rank in range(k - 1, -1, -1):
                if values[part, i, rank] > values_x[i, 0]:
                    _insert(values_x[i], indices_x[i], values[part, i, rank], indices[part, i, rank])


@compiled(parallel=True, fastmath=_FASTMATH)
def _best(block, half_x, half_z, noise, limit, first, best_z, best_x, greatest_x, threads):
    """Like `_top`, for the greatest entry only; an entry whose byte is at or over the limit counts as 0."""
    rows, columns = block.shape
    parts, width = _parts(columns, threads)
    greatest, best = np.full((parts, rows), -np.inf, np.float32), np.zeros((parts, rows), np.int32)
    for part in numba.prange(parts):
        for i in range(rows):
            for start in range(part * width, min((part + 1) * width, columns), _PIECE):
                at = slice(start, min(start + _PIECE, columns))
                piece, byte, less = block[i, at], noise[i, at], half_z[at]
                peak, over = _score_peaks(piece, less, half_x[i], byte, limit, greatest_x[at])
                if peak > greatest[part, i]:
                    for j in range(len(piece)):
                        score = piece[j] - less[j] if byte[j] < limit else np.float32(0)
                        if score > greatest[part, i]:
                            greatest[part, i] = score
                            best[part, i] = start + j
                if over > 0:
                    _raise_maxima(piece, half_x[i], byte, limit, np.int32(first + i), best_x[at], greatest_x[at])
    for i in numba.prange(rows):
        chosen = 0
        for part in range(1, parts):
            if greatest[part, i] > greatest[chosen, i]:
                chosen = part
        best_z[i] = best[chosen, i]


@compiled(fastmath=_FASTMATH)
def _parts(columns, threads):
    """The number of parts into which the columns are divided, one per thread, and the width of a part: a multiple of the piece length."""
    width = -(-columns // (threads * _PIECE)) * _PIECE
    return -(-columns // width), width


# The following functions have one loop without branches, so that the compiler can vectorise them.


@compiled(fastmath=_FASTMATH)
def _peaks(piece, least):
    """The greatest number, and the largest amount by which a number exceeds its entry in `least`."""
    peak = over = np.float32(-np.inf)
    for j in range(len(piece)):
        peak = max(peak, piece[j])
        over = max(over, piece[j] - least[j])
    return peak, over


@compiled(fastmath=_FASTMATH)
def _score_peaks(piece, less, half, byte, limit, greatest):
    """The greatest score of the row, and the largest amount by which a score exceeds the greatest one of its column so far."""
    peak = over = np.float32(-np.inf)
    for j in range(len(piece)):
        alive = byte[j] < limit
        peak = max(peak, piece[j] - less[j] if alive else np.float32(0))
        over = max(over, (piece[j] - half if alive else np.float32(0)) - greatest[j])
    return peak, over


@compiled(fastmath=_FASTMATH)
def _raise_maxima(piece, half, byte, limit, i, best, greatest):
    for j in range(len(piece)):
        score = piece[j] - half if byte[j] < limit else np.float32(0)
        better = score > greatest[j]
        best[j] = i if better else best[j]
        greatest[j] = score if better else greatest[j]


@compiled(fastmath=_FASTMATH)
def _insert(values, indices, value, index):
    """Replace the smallest number of an ascending list by `value`, and keep the list sorted."""
    at = 0
    while at + 1 < len(values) and values[at + 1] < value:
        values[at], indices[at] = values[at + 1], indices[at + 1]
        at += 1
    values[at], indices[at] = value, index
