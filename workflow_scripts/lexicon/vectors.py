"""vectors: reads and writes word vectors in the two formats of word2vec.

Text: a first line "rows dimensions", then one line "word x₁ … x_d" per word; plain or .gz, .xz, .zst. VecMap, MUSE, gensim
and fastText (.vec) use this format. Binary (.bin): the same first line, then for each word the word, a blank, and its
numbers as little-endian float32. Words are in order of frequency.
"""

import unicodedata
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np

from workflow_scripts.stage import InputError, atomic
from workflow_scripts.text.files import kind_of, missing_file, packing, read_lines


def write_vectors(path: Path, words: list[str], vectors: np.ndarray) -> None:
    """Write `vectors` (words × dimensions) atomically: as text with seven significant digits, or exactly if the suffix is .bin."""
    if packing(Path(path)):
        raise InputError(f"{path}: vectors are written as text or as .bin; compress them afterwards")
    header = f"{vectors.shape[0]} {vectors.shape[1]}\n"
    if Path(path).suffix == ".bin":
        with atomic(path, "wb") as file:
            file.write(header.encode())
            for word, row in zip(words, vectors.astype("<f4"), strict=True):
                file.write(word.encode() + b" " + row.tobytes() + b"\n")
        return
    with atomic(path) as file:
        file.write(header)
        form = " ".join(["%.7g"] * vectors.shape[1])
        for word, row in zip(words, vectors, strict=True):
            file.write(f"{word} {form % tuple(row.tolist())}\n")


def read_vectors(path: Path, limit: int | None = None, passed_over: Counter[str] | None = None) -> tuple[list[str], np.ndarray]:
    """Read words, in NFC, and their vectors (words × dimensions, float32), at most the first `limit` rows.

    Published files have words twice, also as spellings that differ only in how their characters are composed: the first one counts. They
    have words with a blank inside, too, which no segmenter finds in a text. Such rows are passed over, and counted in `passed_over`.

    Raises:
        InputError: The header is malformed, the number of rows or of dimensions differs from it, or a value is not a finite number.
    """
    path = Path(path)
    if kind_of(path) == ".bin" and packing(path):
        raise InputError(f"{path}: binary vectors are read unpacked; unpack the file, and name {path.stem}")
    counts = Counter[str]() if passed_over is None else passed_over
    return _collect(path, limit, counts, *(_read_binary(path) if path.suffix == ".bin" else _read_text(path)))


TWICE, BLANK = "words that came before", "words with a blank"
"""Reasons for which rows are passed over."""


def _collect(
    path: Path, limit: int | None, passed_over: Counter[str], rows: int, dimensions: int, entries: Iterator[tuple[str, np.ndarray]]
) -> tuple[list[str], np.ndarray]:
    wanted = min(rows, limit or rows)
    # grows with the rows that are read, because the header may be wrong
    vectors = np.empty((min(wanted, 1 << 16), dimensions), dtype=np.float32)
    index: dict[str, int] = {}
    number = 0
    for number, (spelt, row) in enumerate(islice(entries, wanted), 1):
        word = spelt if spelt.isascii() else unicodedata.normalize("NFC", spelt)
        # text files have a header line above the rows
        where = f"{path}, row {number}" if path.suffix == ".bin" else f"{path}, line {number + 1}"
        if row.shape != (dimensions,) or not np.isfinite(row).all():
            raise InputError(f"{where}: {word!r} needs {dimensions} finite numbers, found {np.isfinite(row).sum()}")
        if word in index or " " in word:
            passed_over[TWICE if word in index else BLANK] += 1
            continue
        if len(index) == len(vectors):
            vectors = np.concatenate([vectors, np.empty((min(len(vectors), wanted - len(vectors)), dimensions), dtype=np.float32)])
        vectors[len(index)] = row
        index[word] = len(index)
    if number < wanted:
        raise InputError(f"{path}: the header says {rows} rows, the file ends after {number}; write it again")
    if wanted == rows and next(entries, None) is not None:
        raise InputError(f"{path}: the header says {rows} rows, the file has more; write it again")
    return list(index), vectors[: len(index)]


def _read_text(path: Path) -> tuple[int, int, Iterator[tuple[str, np.ndarray]]]:
    lines = read_lines(path, normalise=False)
    rows, dimensions = _header(path, next(lines, ""))

    def entries():
        for line in lines:
            word, _, numbers = line.rstrip(" ").partition(" ")
            if len(fields := numbers.split(" ")) > dimensions and not all(map(_is_number, fields)):
                # a blank inside a word: the last fields are its numbers
                word, numbers = " ".join([word, *fields[:-dimensions]]), " ".join(fields[-dimensions:])
            try:
                yield word, np.fromstring(numbers, dtype=np.float32, sep=" ") if numbers else np.empty(0)
            except ValueError:
                yield word, np.full(dimensions, np.nan)

    return rows, dimensions, entries()


def _is_number(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def _read_binary(path: Path) -> tuple[int, int, Iterator[tuple[str, np.ndarray]]]:
    with _open(path) as file:
        line = file.readline(1000)
    if line.startswith(_FASTTEXT):
        raise InputError(f"{path}: is a model of fastText, not word2vec's binary format; name its vectors as text, which end in .vec")
    rows, dimensions = _header(path, line.decode("utf-8", "replace").rstrip("\n"))

    def entries():
        with _open(path) as file:
            file.readline()
            while True:
                word = bytearray()
                # some programs write a line end after each row, others do not
                while (byte := file.read(1)) not in (b" ", b""):
                    if byte != b"\n":
                        word += byte
                numbers = file.read(4 * dimensions)
                if not word and not numbers:
                    return
                try:
                    text = word.decode("utf-8")
                except UnicodeDecodeError:
                    raise InputError(f"{path}: {bytes(word)[:40]!r} is no UTF-8; is this word2vec's binary format?") from None
                yield text, np.frombuffer(numbers[: len(numbers) // 4 * 4], dtype="<f4")

    return rows, dimensions, entries()


def _open(path: Path):
    try:
        return open(path, "rb", buffering=1 << 20)
    except FileNotFoundError:
        raise InputError(missing_file(path)) from None
    except OSError as error:
        raise InputError(f"{path}: {(error.strerror or str(error)).lower()}; check the path (relative to {Path.cwd()})") from None


_FASTTEXT = bytes.fromhex("ba164f2f")
"""First bytes of the models that fastText publishes beside its vectors."""
_MOST_DIMENSIONS = 100_000


def _header(path: Path, line: str) -> tuple[int, int]:
    parts = line.split()
    if len(parts) != 2 or not all(part.isdecimal() and int(part) for part in parts) or int(parts[1]) > _MOST_DIMENSIONS:
        raise InputError(
            f"{path}, line 1: expected a word2vec header 'rows dimensions', got {line[:60]!r}; put such a line above vectors without one, "
            "like GloVe's"
        )
    return int(parts[0]), int(parts[1])


def check(path_a: Path, a: np.ndarray, path_b: Path, b: np.ndarray) -> None:
    """Raise `InputError` if `a` and `b` (words × dimensions) differ in dimensions."""
    if a.shape[1] != b.shape[1]:
        raise InputError(f"{path_a} has {a.shape[1]} dimensions, {path_b} {b.shape[1]}; learn both with the same settings")
