"""ragged: the rows of an epoch as few large arrays, whatever their number.

A row of ids as an object of its own takes some hundred bytes more than its ids, which for the forty million pairs of WMT's English-French
is more than the text. And a process that is forked to make batches would copy these objects one after the other, since every look at
one counts a reference. Here the ids of all rows stand one behind the other in one array, and a row is made when it is asked for.
"""

import bisect
import itertools
from abc import abstractmethod
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from workflow_scripts.text.files import chunks

if TYPE_CHECKING:
    from workflow_scripts.models.batches import Row

PORTION = 10_000
"""Texts that are cut into pieces, or rows that are copied, at once. At most, about 131 bytes a piece are held while all of a text is cut at
once, 19 in portions."""


class Lines(Sequence[array]):
    """The ids of many lines: those of line i are `flat[before[i] : before[i + 1]]`."""

    def __init__(self, flat: np.ndarray, before: np.ndarray):
        """`flat` (int32) has all ids, `before` the number of ids before each line, and in all."""
        self.flat, self.before = flat, before

    @classmethod
    def of(cls, lines: Iterable[Sequence[int]]) -> "Lines":
        """The same lines, one behind the other."""
        flat, lengths = array("i"), array("q", [0])
        for ids in lines:
            flat.extend(ids)
            lengths.append(len(ids))
        return _lines(flat, lengths)

    def __len__(self) -> int:
        return len(self.before) - 1

    def __getitem__(self, at: Any) -> Any:
        if not 0 <= at < len(self):
            raise IndexError(at)
        return array("i", self.flat[self.before[at] : self.before[at + 1]].tobytes())

    def lengths(self) -> np.ndarray:
        """The number of ids of each line."""
        return np.diff(self.before)

    def where(self, mask: np.ndarray) -> "Lines":
        """The lines of which `mask`, a truth value for each, says so."""
        lengths = self.lengths()
        return Lines(self.flat[np.repeat(mask, lengths)], np.cumsum([0, *lengths[mask]]))


def _lines(flat: array, lengths: array) -> Lines:
    """The ids of all lines, and the length of each behind a 0, as `Lines`."""
    return Lines(np.frombuffer(flat, np.int32) if flat else np.zeros(0, np.int32), np.cumsum(np.frombuffer(lengths, np.int64)))


def encoded(encode: Callable[[list[str]], list[list[int]]], lines: Iterable[str]) -> Lines:
    """The lines as ids; they are read and encoded in portions."""
    return Lines.of(ids for portion in chunks(lines) for ids in encode(portion))


def same_choice(number: int, most: int | None) -> Sequence[int]:
    """The places, ascending, of at most `most` of so many items, chosen at random without a run's seed: all seeds and arms share it."""
    if most is None or most >= number:
        return range(number)
    return sorted(np.random.default_rng(number).permutation(number)[:most].tolist())


def same_stretch(number: int, most: int | None) -> Sequence[int]:
    """The places of at most `most` of so many items that follow each other, chosen as those of `same_choice`."""
    if most is None or most >= number:
        return range(number)
    start = int(np.random.default_rng(number).integers(number - most + 1))
    return range(start, start + most)


class _Held(Sequence["Row"]):
    """Rows that are made when they are asked for, and equal to any others with the same ids."""

    @abstractmethod
    def row(self, at: int) -> "Row":
        """The row with a number from 0."""

    @abstractmethod
    def lengths(self, side: int) -> np.ndarray:
        """The number of ids of each row on one side, 0 (read) or 1 (labels)."""

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            return [self.row(place) for place in range(*at.indices(len(self)))]
        return self.row(at)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]


class Rows(_Held):
    """Rows of two sides: what is read, and the labels."""

    def __init__(self, read: Lines, labels: Lines):
        self.sides = read, labels

    @classmethod
    def of(cls, rows: "Iterable[Row]") -> "Rows":
        """The same rows, one behind the other on each side. They are gone through once."""
        sides = (array("i"), array("i")), (array("q", [0]), array("q", [0]))
        for row in rows:
            for flat, lengths, ids in zip(*sides, row, strict=True):
                flat.extend(ids)
                lengths.append(len(ids))
        return cls(*map(_lines, *sides))

    def __len__(self) -> int:
        return len(self.sides[0])

    def __iter__(self) -> "Iterator[Row]":
        return zip(*self.sides, strict=True)

    def row(self, at: int) -> "Row":
        """The row with a number from 0."""
        return self.sides[0][at], self.sides[1][at]

    def lengths(self, side: int) -> np.ndarray:
        """The number of ids of each row on one side."""
        return self.sides[side].lengths()


class Chained(_Held):
    """The rows of several texts, one text after the other."""

    def __init__(self, texts: "Sequence[Sequence[Row]]"):
        self.texts, self._before = texts, list(itertools.accumulate(map(len, texts), initial=0))

    def __len__(self) -> int:
        return self._before[-1]

    def __iter__(self) -> "Iterator[Row]":
        return itertools.chain.from_iterable(self.texts)

    def row(self, at: int) -> "Row":
        """The row with a number from 0."""
        if not 0 <= at < len(self):
            raise IndexError(at)
        text = bisect.bisect(self._before, at) - 1
        return self.texts[text][at - self._before[text]]

    def lengths(self, side: int) -> np.ndarray:
        """The number of ids of each row on one side."""
        return np.concatenate([lengths_of(text, side) for text in self.texts])


def lengths_of(rows: "Sequence[Row]", side: int | None = None) -> np.ndarray:
    """The pieces of each row: on one side, by default the longer one."""
    if side is None:
        return np.maximum(lengths_of(rows, 0), lengths_of(rows, 1))
    return rows.lengths(side) if isinstance(rows, _Held) else np.array([len(row[side]) for row in rows])
