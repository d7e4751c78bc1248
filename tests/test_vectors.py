"""Embedding files."""

import numpy as np
import pytest

from workflow_scripts.stage import InputError
from workflow_scripts.vectors import read_vectors, write_vectors


def test_vectors_come_back(tmp_path):
    vectors = np.random.default_rng(1).standard_normal((5, 4)).astype(np.float32)
    write_vectors(tmp_path / "v.vec", ["a", "b", "ß", "漢", "e"], vectors)
    words, read = read_vectors(tmp_path / "v.vec")
    assert words == ["a", "b", "ß", "漢", "e"] and np.allclose(read, vectors, rtol=1e-6)
    words, read = read_vectors(tmp_path / "v.vec", limit=2)
    assert words == ["a", "b"] and read.shape == (2, 4)


def test_of_a_repeated_word_the_first_row_counts(tmp_path):
    (tmp_path / "v").write_text("3 2\na 1 2\nb 3 4\na 5 6\n")
    words, read = read_vectors(tmp_path / "v")
    assert words == ["a", "b"] and read.tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize(
    "text, message",
    [
        ("", "line 1: expected a word2vec header"),
        ("a 1 2\n", "line 1: expected a word2vec header"),
        ("2 2\na 1 2\nb 1\n", "line 3: 'b' needs 2 finite numbers, found 1"),
        ("1 2\na 1 nan\n", "line 2: 'a' needs 2 finite numbers"),
        ("3 2\na 1 2\n", "the header says 3 rows, the file ends after 1"),
    ],
)
def test_bad_files_name_the_line(tmp_path, text, message):
    (tmp_path / "bad.vec").write_text(text)
    with pytest.raises(InputError, match=message):
        read_vectors(tmp_path / "bad.vec")
