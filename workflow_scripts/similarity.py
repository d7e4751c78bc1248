"""Similarity search between two sets of vectors: what mapping and lexicon share.

Every search by CSLS needs two looks at the matrix of similarities: the mean similarity of each word to
its k nearest neighbours on the other side must be known before any two words can be compared.
`Similarities` keeps the matrix between the looks where it fits, in float32 or float16, and computes it
again in blocks where it does not. A look selects both ways at once, per row and per column. On a CPU the
selections are compiled loops (numba), because torch's topk and argmax over wide rows cost more than the
matrix product itself (docs/mapping.md); on CUDA they are torch's.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numba
import numpy as np
import torch
from numba import njit, prange

# A block should stay in the processor's outer cache, but not be so flat that the product slows down.
_BLOCK_ENTRIES = 1 << 22
_BLOCK_ROWS = 128
_FLOAT32_BYTES = 512 << 20
_FLOAT16_BYTES = 1 << 30


def set_threads(threads: int) -> None:
    """Use so many CPU threads, as far as there are cores, for products and selections."""
    torch.set_num_threads(threads)
    numba.set_num_threads(min(threads, numba.config.NUMBA_NUM_THREADS))


class Similarities:
    """The products of all rows of `x` with all rows of `z`, block by block, as often as asked for.

    `keep`: `float32` and `float16` hold the matrix, `blocks` computes it at every look, `auto` takes
    the first that needs at most 0.5 GB (1 GB in float16). Float16 rounds cosines to three digits, and
    only from the second look on. `product` may be `bfloat16`, for processors that multiply it faster.
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
        self.kept = None
        if keep != "blocks":
            self.kept = torch.empty(self.shape, dtype=torch.float32 if keep == "float32" else torch.float16, device=x.device)
        self.computed = False

    def multiply(self, x: torch.Tensor) -> None:
        """Go on with other rows `x` of the same number, in the same memory."""
        self.x = x.to(self.z.dtype)
        self.computed = False

    def blocks(self) -> Iterator[tuple[int, torch.Tensor]]:
        """Float32 blocks of rows, and the number of their first row; each is overwritten by the next or the next look."""
        rows = max(_BLOCK_ROWS, _BLOCK_ENTRIES // max(1, self.shape[1]))
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
    """What CSLS needs of either side: the greatest similarity of each word, and the mean of its k greatest."""

    nearest_x: torch.Tensor
    nearest_z: torch.Tensor
    mean_x: torch.Tensor
    mean_z: torch.Tensor


def neighbourhoods(similarities: Similarities, k: int) -> Neighbourhoods:
    """The first look."""
    top_x, top_z = nearest(similarities, k)
    return Neighbourhoods(top_x.values[:, 0], top_z.values[:, 0], top_x.values.mean(dim=1), top_z.values.mean(dim=1))


def nearest(similarities: Similarities, k: int, near: Neighbourhoods | None = None) -> tuple[Top, Top]:
    """The k best rows of z for each row of x, and the k best rows of x for each row of z.

    Ranked by similarity or, given the neighbourhoods, by
    CSLS(i, j) = 2 cos(i, j) − r(i) − r(j) (Conneau et al. 2018).
    """
    rows, columns = similarities.shape
    top_x, top_z = _Selection(rows, min(k, columns), similarities.device), _Selection(columns, min(k, rows), similarities.device)
    for first, block in similarities.blocks():
        if near is not None:
            block = (2 * block).sub_(near.mean_z).sub_(near.mean_x[first : first + len(block), None])
        top_x.add_rows(block, first)
        top_z.add_columns(block, first)
    return top_x.top(), top_z.top()


def best_pairs(
    similarities: Similarities, near: Neighbourhoods, keep: float = 1.0, noise: "Noise | None" = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """The second look: the best column of each row and the best row of each column by CSLS.

    For a maximum over j, r(i) is a constant; what is compared is cos(i, j) − r(j)/2. A score survives
    with probability `keep`, in both directions or in none; else it is 0.
    """
    half_x, half_z = near.mean_x / 2, near.mean_z / 2
    rows, columns = similarities.shape
    best_z = torch.zeros(rows, dtype=torch.int32, device=similarities.device)
    best_x = torch.zeros(columns, dtype=torch.int32, device=similarities.device)
    greatest = torch.full((columns,), -torch.inf, device=similarities.device)
    for first, block in similarities.blocks():
        at = slice(first, first + len(block))
        bytes_, limit = noise.draw(block.shape, keep) if noise is not None and keep < 1 else (None, 0)
        if block.is_cuda:
            dropped = torch.zeros((), dtype=torch.bool, device=block.device) if bytes_ is None else bytes_ >= limit
            best_z[at] = (block - half_z).masked_fill_(dropped, 0.0).argmax(dim=1).int()
            maxima, row = (block - half_x[at, None]).masked_fill_(dropped, 0.0).max(dim=0)
            best_x = torch.where(maxima > greatest, row.int() + first, best_x)
            greatest = torch.maximum(maxima, greatest)
        elif bytes_ is None:
            _best_of_rows(block.numpy(), half_z.numpy(), best_z[at].numpy())
            _best_of_columns(block.numpy(), half_x[at].numpy(), first, best_x.numpy(), greatest.numpy())
        else:
            _best_of_noisy_rows(block.numpy(), half_z.numpy(), bytes_, limit, best_z[at].numpy())
            _best_of_noisy_columns(block.numpy(), half_x[at].numpy(), bytes_, limit, first, best_x.numpy(), greatest.numpy())
    return best_z.long(), best_x.long()


class Noise:
    """A stream of random bytes for `best_pairs`, from a seed."""

    def __init__(self, seed: int, device: torch.device):
        self.device = device
        self.random = torch.Generator(device).manual_seed(seed) if device.type == "cuda" else np.random.SFC64(seed)

    def draw(self, shape: torch.Size, keep: float):
        """A byte for each entry, and what it must stay below to survive: probabilities in steps of 1/256."""
        limit = min(255, round(256 * keep))
        if self.device.type == "cuda":
            return torch.randint(256, shape, dtype=torch.uint8, device=self.device, generator=self.random), limit
        raw = self.random.random_raw((shape.numel() + 7) // 8)
        return raw.view(np.uint8)[: shape.numel()].reshape(shape), np.uint8(limit)


class _Selection:
    """The k greatest entries of n rows or columns, block after block."""

    def __init__(self, n: int, k: int, device: torch.device):
        # in ascending order on the CPU, so that the first is the one to beat
        self.values = torch.full((n, k), -torch.inf, device=device)
        self.indices = torch.zeros((n, k), dtype=torch.int32, device=device)

    def add_rows(self, block: torch.Tensor, first: int) -> None:
        """Whole rows, from row `first` on."""
        at = slice(first, first + len(block))
        if block.is_cuda:
            self.values[at], indices = block.topk(self.values.shape[1], dim=1)
            self.indices[at] = indices.int()
        else:
            _top_of_rows(block.numpy(), self.values[at].numpy(), self.indices[at].numpy())

    def add_columns(self, block: torch.Tensor, first: int) -> None:
        """Some rows of all columns; their first row is row `first`."""
        if block.is_cuda:
            k = self.values.shape[1]
            values, indices = block.T.topk(min(k, len(block)), dim=1)
            values, indices = torch.cat([self.values, values], dim=1), torch.cat([self.indices, indices.int() + first], dim=1)
            self.values, chosen = values.topk(k, dim=1)
            self.indices = indices.gather(1, chosen)
        else:
            _top_of_columns(block.numpy(), first, self.values.numpy(), self.indices.numpy())

    def top(self) -> Top:
        """What was selected, greatest first."""
        values, indices = (self.values, self.indices) if self.values.is_cuda else (self.values.flip(1), self.indices.flip(1))
        return Top(values, indices.long())


# ---------------------------------------------------------------------------------------------
# selections on a CPU

# Scans are cut into pieces of so many numbers: a vectorised maximum tells whether a piece is worth a closer look.
_ROW_PIECE = 128
_COLUMN_PIECE = 64
# columns that one thread goes down
_TILE = 512
_compiled = dict(fastmath={"nnan", "nsz", "reassoc"}, cache=True)


@njit(parallel=True, **_compiled)
def _top_of_rows(block, values, indices):
    for i in prange(block.shape[0]):
        for start in range(0, block.shape[1], _ROW_PIECE):
            piece = block[i, start : start + _ROW_PIECE]
            if _maximum(piece) > values[i, 0]:
                for j in range(len(piece)):
                    if piece[j] > values[i, 0]:
                        _insert(values[i], indices[i], piece[j], start + j)


@njit(parallel=True, **_compiled)
def _top_of_columns(block, first, values, indices):
    least = values[:, 0].copy()
    for tile in prange((block.shape[1] + _TILE - 1) // _TILE):
        end = min((tile + 1) * _TILE, block.shape[1])
        for i in range(block.shape[0]):
            for start in range(tile * _TILE, end, _COLUMN_PIECE):
                stop = min(start + _COLUMN_PIECE, end)
                piece = block[i, start:stop]
                if _any_above(piece, least[start:stop]):
                    for j in range(start, stop):
                        if block[i, j] > least[j]:
                            _insert(values[j], indices[j], block[i, j], first + i)
                            least[j] = values[j, 0]


@njit(parallel=True, **_compiled)
def _best_of_rows(block, half, best):
    for i in prange(block.shape[0]):
        greatest = np.float32(-np.inf)
        for start in range(0, block.shape[1], _ROW_PIECE):
            piece, less = block[i, start : start + _ROW_PIECE], half[start : start + _ROW_PIECE]
            if _maximum_difference(piece, less) > greatest:
                for j in range(len(piece)):
                    if piece[j] - less[j] > greatest:
                        greatest = piece[j] - less[j]
                        best[i] = start + j


@njit(parallel=True, **_compiled)
def _best_of_noisy_rows(block, half, noise, limit, best):
    for i in prange(block.shape[0]):
        greatest = np.float32(-np.inf)
        for start in range(0, block.shape[1], _ROW_PIECE):
            at = slice(start, start + _ROW_PIECE)
            piece, less, byte = block[i, at], half[at], noise[i, at]
            if _maximum_survivor(piece, less, byte, limit) > greatest:
                for j in range(len(piece)):
                    score = piece[j] - less[j] if byte[j] < limit else np.float32(0)
                    if score > greatest:
                        greatest = score
                        best[i] = start + j


@njit(parallel=True, **_compiled)
def _best_of_columns(block, half, first, best, greatest):
    for tile in prange((block.shape[1] + _TILE - 1) // _TILE):
        at = slice(tile * _TILE, min((tile + 1) * _TILE, block.shape[1]))
        for i in range(block.shape[0]):
            _raise_maxima(block[i, at], half[i], np.int32(first + i), best[at], greatest[at])


@njit(parallel=True, **_compiled)
def _best_of_noisy_columns(block, half, noise, limit, first, best, greatest):
    for tile in prange((block.shape[1] + _TILE - 1) // _TILE):
        at = slice(tile * _TILE, min((tile + 1) * _TILE, block.shape[1]))
        for i in range(block.shape[0]):
            _raise_noisy_maxima(block[i, at], half[i], noise[i, at], limit, np.int32(first + i), best[at], greatest[at])


# What follows is written so that the compiler vectorises it: one loop, no branch.


@njit(**_compiled)
def _maximum(piece):
    greatest = np.float32(-np.inf)
    for j in range(len(piece)):
        greatest = max(greatest, piece[j])
    return greatest


@njit(**_compiled)
def _maximum_difference(piece, less):
    greatest = np.float32(-np.inf)
    for j in range(len(piece)):
        greatest = max(greatest, piece[j] - less[j])
    return greatest


@njit(**_compiled)
def _maximum_survivor(piece, less, byte, limit):
    greatest = np.float32(-np.inf)
    for j in range(len(piece)):
        greatest = max(greatest, piece[j] - less[j] if byte[j] < limit else np.float32(0))
    return greatest


@njit(**_compiled)
def _any_above(piece, least):
    return _maximum_difference(piece, least) > 0


@njit(**_compiled)
def _raise_maxima(piece, half, i, best, greatest):
    for j in range(len(piece)):
        score = piece[j] - half
        better = score > greatest[j]
        best[j] = i if better else best[j]
        greatest[j] = score if better else greatest[j]


@njit(**_compiled)
def _raise_noisy_maxima(piece, half, byte, limit, i, best, greatest):
    for j in range(len(piece)):
        score = piece[j] - half if byte[j] < limit else np.float32(0)
        better = score > greatest[j]
        best[j] = i if better else best[j]
        greatest[j] = score if better else greatest[j]


@njit(**_compiled)
def _insert(values, indices, value, index):
    """Put `value` into an ascending list in place of its least."""
    at = 0
    while at + 1 < len(values) and values[at + 1] < value:
        values[at], indices[at] = values[at + 1], indices[at + 1]
        at += 1
    values[at], indices[at] = value, index
