"""Embedding files."""

import gzip
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from workflow_scripts.lexicon.vectors import BLANK, TWICE, read_vectors, write_vectors
from workflow_scripts.stage import InputError


def gensims_vectors():
    return pytest.importorskip("gensim.models", reason="gensim has no build for this Python").KeyedVectors


def test_vectors_come_back(tmp_path):
    vectors = np.random.default_rng(1).standard_normal((5, 4)).astype(np.float32)
    write_vectors(tmp_path / "v.vec", ["a", "b", "ß", "漢", "e"], vectors)
    words, read = read_vectors(tmp_path / "v.vec")
    assert words == ["a", "b", "ß", "漢", "e"] and np.allclose(read, vectors, rtol=1e-6)
    words, read = read_vectors(tmp_path / "v.vec", limit=2)
    assert words == ["a", "b"] and read.shape == (2, 4)


@pytest.mark.parametrize("name", ["v.bin", "v.vec", "v.vec.gz"])
def test_other_peoples_vectors_are_read(tmp_path, name):
    vectors = np.random.default_rng(1).standard_normal((40, 7)).astype(np.float32)
    keyed = gensims_vectors()(7)
    keyed.add_vectors([f"wört{i}" for i in range(40)], vectors)
    keyed.save_word2vec_format(str(tmp_path / name), binary=name.endswith("bin"))
    words, read = read_vectors(tmp_path / name)
    assert words == [f"wört{i}" for i in range(40)] and np.allclose(read, vectors, atol=1e-6)


@pytest.mark.parametrize("name", ["v.bin", "v.vec"])
def test_spellings_of_one_word_are_one_word(tmp_path, name):
    """As published vectors have them: a letter with a dot, composed and not; NFC takes both for the same."""
    composed, apart, greek = "\u09dc", "\u09a1\u09bc", "e\u0301"
    write_vectors(tmp_path / name, [composed, apart, greek], np.arange(6, dtype=np.float32).reshape(3, 2))
    words, read = read_vectors(tmp_path / name)
    assert words == [apart, "\u00e9"] and read.tolist() == [[0, 1], [4, 5]]


@pytest.mark.parametrize("name", ["v.bin", "v.vec"])
def test_others_read_ours(tmp_path, name):
    vectors = np.random.default_rng(1).standard_normal((40, 7)).astype(np.float32)
    write_vectors(tmp_path / name, [f"wört{i}" for i in range(40)], vectors)
    keyed = gensims_vectors().load_word2vec_format(str(tmp_path / name), binary=name.endswith("bin"))
    assert keyed.index_to_key[3] == "wört3" and np.allclose(keyed.vectors, vectors, atol=1e-6)


@pytest.mark.parametrize(
    ("name", "words", "vectors", "why"),
    [
        ("dup", ["haus", "baum", "auto"], [[1, 2], [3, 4], [7, 8]], TWICE),
        ("space-in-word", ["haus", "baum"], [[1, 2], [5, 6]], BLANK),
    ],
)
def test_rows_of_words_that_are_there_twice_or_have_a_blank_are_passed_over_and_counted(name, words, vectors, why):
    counts = Counter()
    found, read = read_vectors(Path(f"tests/data/vectors/{name}.vec"), None, counts)
    assert found == words and read.tolist() == vectors and counts == {why: 1}


@pytest.mark.parametrize(
    "text, message",
    [
        ("", "line 1: expected a word2vec header"),
        ("a 1 2\n", "line 1: expected a word2vec header .*put such a line above vectors without one"),
        ("2 2\na 1 2\nb 1\n", "line 3: 'b' needs 2 finite numbers, found 1"),
        ("1 2\na 1 nan\n", "line 2: 'a' needs 2 finite numbers"),
        ("1 2\na 1 x\n", "line 2: 'a' needs 2 finite numbers, found 0"),
        ("1 2\na 1 2 3\n", "line 2: 'a' needs 2 finite numbers, found 3"),
        ("3 2\na 1 2\n", "the header says 3 rows, the file ends after 1"),
        ("1 2\na 1 2\nb 3 4\n", "the header says 1 rows, the file has more"),
    ],
)
def test_bad_files_name_the_line(tmp_path, text, message):
    (tmp_path / "bad.vec").write_text(text)
    with pytest.raises(InputError, match=message):
        read_vectors(tmp_path / "bad.vec")


@pytest.mark.parametrize(
    "content, message",
    [
        (b"2 2\na \0\0\0\0\0\0\0\0\n", "the file ends after 1"),
        (b"1 2\na \0\0\0\0\0\0", "row 1: 'a' needs 2 finite numbers, found 1"),
        (b"1 1\n\xff\xfe \0\0\0\0\n", "is no UTF-8"),
        (b"", "line 1: expected a word2vec header"),
        (b"\xba\x16O/\x0c", r"is a model of fastText, .*name its vectors as text, which end in \.vec"),
    ],
)
def test_bad_binary_files_are_refused(tmp_path, content, message):
    (tmp_path / "bad.bin").write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_vectors(tmp_path / "bad.bin")


def test_binary_files_that_are_packed_are_refused(tmp_path):
    (tmp_path / "v.bin.gz").write_bytes(gzip.compress(b"1 2\na \0\0\x80\x3f\0\0\x80\x3f"))
    with pytest.raises(InputError, match=r"v\.bin\.gz: binary vectors are read unpacked; unpack the file, and name v\.bin"):
        read_vectors(tmp_path / "v.bin.gz")


def test_a_missing_file_is_an_error(tmp_path):
    for name in ("x.vec", "x.bin"):
        with pytest.raises(InputError, match=f"{name}: no such file"):
            read_vectors(tmp_path / name)
