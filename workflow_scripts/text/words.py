"""words: the one segmenter that all stages use.

Words are nearly what Unicode calls words (UAX #29) and hold at least one letter or digit; Chinese,
Japanese and Thai, which write no spaces, go through a dictionary segmenter.
"""

import functools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import regex

from workflow_scripts.text.files import chunks, read_lines
from workflow_scripts.text.languages import language

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
        from workflow_scripts.text.segmentation import word_spans

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
