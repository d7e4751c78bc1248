"""Reading and writing corpora, and the one segmenter that all stages use.

Text is UTF-8, one sentence a line, NFC; plain or compressed (.gz, .xz, .zst), always streamed.
Words are nearly what Unicode calls words (UAX #29) and hold at least one letter or digit; Chinese,
Japanese and Thai, which write no spaces, go through a dictionary segmenter.
"""

import contextlib
import functools
import gzip
import itertools
import lzma
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, NamedTuple, TypeVar

import numpy as np
import regex

from workflow_scripts.languages import language
from workflow_scripts.stage import InputError, atomic

# ---------------------------------------------------------------------------------------------
# files


def read_lines(path: Path) -> Iterator[str]:
    """The lines of `path` without their ends, NFC; a byte-order mark and `\\r` are dropped.

    Only `\\n` ends a line, so that two sides of a parallel text cannot fall out of step over a
    vertical tab or U+2028. Raises `InputError` naming file and line for a missing file, a file
    that is not what its suffix says, or bytes that are not UTF-8.
    """
    path = Path(path)
    number = 0
    try:
        with _open_binary(path) as file:
            for number, raw in enumerate(file, 1):
                line = raw.decode("utf-8").rstrip("\n").rstrip("\r")
                if number == 1:
                    line = line.removeprefix("\ufeff")
                if not line.isascii():
                    line = unicodedata.normalize("NFC", line)
                yield line
    except UnicodeDecodeError as error:
        encoding = "utf-16" if number == 1 and error.object[:2] in (b"\xff\xfe", b"\xfe\xff") else "latin1"
        raise InputError(
            f"{path}, line {number}: not UTF-8 (byte {error.object[error.start]:#04x}); convert the file, e.g. iconv -f {encoding} -t utf-8"
        ) from None
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; check the path in config.yaml (relative to the working directory)") from None
    except IsADirectoryError:
        raise InputError(f"{path}: is a folder, a text file was expected") from None
    except (OSError, EOFError, ValueError, lzma.LZMAError, gzip.zlib.error) as error:
        raise InputError(f"{path}, after line {number}: cannot be read as {path.suffix or 'text'}: {error}") from None
    except Exception as error:
        # zstandard raises a class of its own, known only where that library is imported
        if type(error).__name__ != "ZstdError":
            raise
        raise InputError(f"{path}, after line {number}: cannot be read as {path.suffix}: {error}") from None


@contextlib.contextmanager
def _open_binary(path: Path) -> Iterator[Iterable[bytes]]:
    suffix = path.suffix
    with contextlib.ExitStack() as stack:
        file = stack.enter_context(open(path, "rb"))
        if suffix == ".gz":
            file = stack.enter_context(gzip.open(file, "rb"))
        elif suffix == ".xz":
            file = stack.enter_context(lzma.open(file, "rb"))
        elif suffix == ".zst":
            file = _zstd_lines(file)
        yield file


def _zstd_lines(file: IO[bytes]) -> Iterator[bytes]:
    """The lines of a compressed file; zstandard's own reader says nothing where the file was cut off."""
    import zstandard

    line, data = b"", file.read(_BYTES)
    while data:
        frame = zstandard.ZstdDecompressor().decompressobj()
        while not frame.eof:
            if not data:
                raise EOFError("the compressed file is cut off")
            *lines, line = (line + frame.decompress(data)).split(b"\n")
            yield from lines
            data = frame.unused_data or file.read(_BYTES)
    if line:
        yield line


_BYTES = 1 << 16


def write_lexicon(path: Path, entries: dict[str, list[tuple[str, float]]]) -> None:
    """Write ``word  candidate  rank  score``, tab-separated, words in order of frequency."""
    with atomic(path) as file:
        for word, candidates in entries.items():
            for rank, (candidate, score) in enumerate(candidates, 1):
                file.write(f"{word}\t{candidate}\t{rank}\t{score:.4f}\n")


def read_lexicon(path: Path) -> Iterator[tuple[str, str, float]]:
    """The (word, candidate, score) rows of a lexicon, in order.

    Raises `InputError` naming the line that is not one.
    """
    for number, line in enumerate(read_lines(path), 1):
        cells = line.split("\t")
        try:
            yield cells[0], cells[1], float(cells[3])
        except (IndexError, ValueError):
            raise InputError(f"{path}, line {number}: expected word, candidate, rank, score: {line[:60]!r}") from None


def read_dictionary(path: Path, languages: tuple[str, str] | None = None) -> list[tuple[str, str]]:
    """The word pairs of a file, one a line, separated by a tab or a blank (MUSE's format).

    Raises `InputError` for a line that is not a pair.
    """
    pairs = []
    for number, line in enumerate(read_lines(path), 1):
        pair = line.split("\t") if "\t" in line else line.split()
        if len(pair) != 2:
            raise InputError(f"{path}, line {number}: expected two words, separated by a tab or a blank: {line[:60]!r}")
        pairs.append(tuple(fold(w.strip(), code) for w, code in zip(pair, languages, strict=True)) if languages else tuple(pair))
    return pairs


def write_lines(path: Path, lines: Iterable[str]) -> int:
    """Write `lines` atomically (compressed for .zst) and return how many they were."""
    count = 0
    with _writer(path) as write:
        for line in lines:
            write(line)
            count += 1
    return count


def write_pairs(path_a: Path, path_b: Path, pairs: Iterable[tuple[str, str]]) -> int:
    """Stream pairs into two files, line by line in step; both appear or neither."""
    count = 0
    with _writer(path_a) as write_a, _writer(path_b) as write_b:
        for a, b in pairs:
            write_a(a)
            write_b(b)
            count += 1
    return count


T = TypeVar("T")

# compiled code and string methods take so many lines at once
_CHUNK = 4096


@contextlib.contextmanager
def _writer(path: Path) -> Iterator[Callable[[str], object]]:
    with atomic(path, "wb") as file, contextlib.ExitStack() as stack:
        if Path(path).suffix == ".zst":
            import zstandard

            file = stack.enter_context(zstandard.ZstdCompressor(level=3).stream_writer(file, closefd=False))
        waiting: list[str] = []

        def flush() -> None:
            if waiting:
                file.write("\n".join([*waiting, ""]).encode("utf-8"))
                waiting.clear()

        def write(line: str) -> None:
            waiting.append(line)
            if len(waiting) == _CHUNK:
                flush()

        yield write
        flush()


# ---------------------------------------------------------------------------------------------
# words

_HAS_WORD_CHARACTER = regex.compile(r"[\p{L}\p{N}]")

Span = tuple[int, int]

MASK = "<mask>"
"""What stands for words that a model is to restore."""

BREAK = "</s>"
"""What stands between the sentences of a document; no word."""


class Words(NamedTuple):
    """The words of many lines."""

    text: str
    """The lines, each but the last ended by a newline."""
    starts: np.ndarray
    """Where each word starts in the text, in characters."""
    ends: np.ndarray
    """Where it ends."""
    before: np.ndarray
    """How many words come before each line; one entry more for the end."""

    def strings(self) -> list[str]:
        """The words themselves."""
        return [self.text[start:end] for start, end in zip(self.starts.tolist(), self.ends.tolist(), strict=True)]


def words_of(lines: Sequence[str], code: str) -> Words:
    """The words of many lines in the language `code` at once. Numbers are words, punctuation is not."""
    text = "\n".join(lines)
    if (locate := segmenter(code)) is None:
        from workflow_scripts.segmentation import word_spans

        return Words(text, *word_spans(_without_breaks(text)))
    spans: list[Span] = []
    before = [0]
    offset = 0
    for line in lines:
        spans += [(offset + start, offset + end) for start, end in locate(_without_breaks(line))]
        before.append(len(spans))
        offset += len(line) + 1
    starts, ends = np.array(spans, np.int64).reshape(-1, 2).T
    return Words(text, starts, ends, np.array(before))


def _without_breaks(text: str) -> str:
    """`text` with as many blanks in place of each break."""
    return text.replace(BREAK, " " * len(BREAK))


def words(line: str, code: str) -> list[Span]:
    """Character spans (start, end) of the words of one line."""
    found = words_of([line], code)
    return list(zip(found.starts.tolist(), found.ends.tolist(), strict=True))


def number_of_words(line: str, code: str) -> int:
    """How many `words` there are."""
    return len(words_of([line], code).starts)


@functools.cache
def segmenter(code: str) -> Callable[[str], list[Span]] | None:
    """The dictionary segmenter of a language without spaces, loaded on first use; None for the others."""
    kind = language(code).segmenter
    if kind == "jieba":
        import jieba

        jieba.setLogLevel("ERROR")
        return lambda line: _only_words(line, ((s, e) for _, s, e in jieba.tokenize(line)))
    if kind == "mecab":
        import ipadic
        import MeCab

        tagger = MeCab.Tagger(f"{ipadic.MECAB_ARGS} -Owakati")
        return lambda line: _only_words(line, _locate(line, tagger.parse(line).split()))
    if kind == "pythainlp":
        from pythainlp.tokenize import word_tokenize

        return lambda line: _only_words(line, _locate(line, word_tokenize(line, engine="newmm", keep_whitespace=False)))
    return None


_SENTENCE_END = regex.compile(
    # a closing mark of a script with spaces, but that of an initial (J. Smith, U.S.), before what can begin a sentence
    r"""(?<=[.!?…؟։।]["'»”’)\]]*)(?<!\b\p{Lu}\.)\s+(?=[^\p{Ll}\s])"""
    # one of a script without
    r"""|(?<=[。！？][」』）”’]*)\s*(?=[^」』）”’\s])"""
)


def sentences(text: str) -> list[str]:
    """The sentences of running text, by their closing marks.

    An abbreviation before a capital (Dr. Smith) is taken for an end: a sentence too many costs a break in a document and no word.
    """
    return [sentence for sentence in map(str.strip, _SENTENCE_END.split(text)) if sentence]


def read_sentences(path: Path) -> Iterator[str]:
    """The lines of `path`; of documents, their sentences."""
    for line in read_lines(path):
        yield from map(str.strip, line.split(BREAK))


def _only_words(line: str, spans: Iterable[Span]) -> list[Span]:
    return [(s, e) for s, e in spans if _HAS_WORD_CHARACTER.search(line, s, e)]


def _locate(line: str, tokens: Iterable[str]) -> Iterator[Span]:
    at = 0
    for token in tokens:
        start = line.find(token, at)
        if start < 0:
            continue
        at = start + len(token)
        yield start, at


def fold(word: str, code: str) -> str:
    """`word` as embeddings and lexicon know it: lower case, by Turkish rules for Turkish and Azerbaijani."""
    if code in ("tr", "az"):
        word = word.replace("İ", "i").replace("I", "ı")
    return word.lower()


def upper(word: str, code: str) -> str:
    """`word` in capitals, by the rules that `fold` undoes."""
    return (word.replace("i", "İ") if code in ("tr", "az") else word).upper()


def segment(line: str, code: str) -> str:
    """The folded words of `line`, separated by single spaces: what word2vec reads."""
    return " ".join(fold(line[s:e], code) for s, e in words(line, code))


Segment = Callable[[str], str]
"""Makes a line words separated by blanks: `segment` for one language, or a model's pieces (`tokenisation.unit_segmenter`)."""


def count_words(path: Path, code: str) -> Counter[str]:
    """How often each folded word of a text occurs."""
    surface: Counter[str] = Counter()
    for lines in chunks(read_lines(path)):
        surface.update(words_of(lines, code).strings())
    counts: Counter[str] = Counter()
    for word, count in surface.items():
        counts[fold(word, code)] += count
    return counts


def count_units(path: Path, segment: Segment) -> Counter[str]:
    """How often each word, or piece, of a text occurs."""
    return Counter(word for line in read_lines(path) for word in segment(line).split())


def chunks(items: Iterable[T]) -> Iterator[list[T]]:
    """`items`, some thousands at a time."""
    items = iter(items)
    while chunk := list(itertools.islice(items, _CHUNK)):
        yield chunk
