"""Rows that are held as large arrays: the same as lists of them."""

from array import array

import numpy as np
import pytest

from workflow_scripts.training.ragged import Chained, Lines, Rows, encoded, lengths_of

READ = [[5, 6, 7], [], [8], [250_001, 9]]
LABELS = [[1], [2, 3], [-100, -100, 4], []]
PAIRS = [(array("i", read), array("i", labels)) for read, labels in zip(READ, LABELS, strict=True)]


def held(first=0, last=4) -> Rows:
    return Rows(Lines.of(READ[first:last]), Lines.of(LABELS[first:last]))


def test_lines_come_back_as_they_were():
    lines = Lines.of(READ)
    assert [list(line) for line in lines] == READ and lines.flat.dtype == np.int32 and lines.lengths().tolist() == [3, 0, 1, 2]
    assert len(Lines.of([])) == 0 and list(Lines.of([])) == []
    with pytest.raises(IndexError):
        lines[4]


def test_lines_are_encoded_in_portions():
    portions = []

    def encode(some):
        portions.append(len(some))
        return [[int(line)] for line in some]

    lines = encoded(encode, map(str, range(25_000)))
    assert portions == [4_096] * 6 + [424] and lines.flat.tolist() == list(range(25_000))


def test_rows_are_those_of_a_list():
    rows = held()
    assert rows == PAIRS and list(rows) == PAIRS and rows[1:3] == PAIRS[1:3] and rows[np.int64(2)] == PAIRS[2] and PAIRS[3] in rows
    assert rows != PAIRS[:3] and rows != [*PAIRS[:3], PAIRS[0]]
    assert lengths_of(rows).tolist() == lengths_of(PAIRS).tolist() == [3, 2, 3, 2]
    assert lengths_of(rows, 1).tolist() == lengths_of(PAIRS, 1).tolist() == [1, 2, 3, 0]


def test_texts_are_one_behind_the_other():
    # one of them is empty, one a list
    chained = Chained([held(0, 1), held(0, 0), PAIRS[1:3], held(3, 4)])
    assert len(chained) == 4 and list(chained) == PAIRS and [chained[at] for at in range(4)] == PAIRS and chained[1:] == PAIRS[1:]
    assert lengths_of(chained).tolist() == [3, 2, 3, 2]
    with pytest.raises(IndexError):
        chained[4]
    assert len(Chained([])) == 0
