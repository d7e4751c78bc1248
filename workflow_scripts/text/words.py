"""words: divides text into words. All stages use this segmenter.

Words are nearly those of Unicode's UAX #29 and have at least one letter or digit. Chinese, Japanese and Thai, which are written without
spaces, are segmented with a dictionary. For Khmer, Lao and Burmese there is none here: what stands between two blanks, often a whole
clause, counts as one word.
"""

import functools
import itertools
import os
import unicodedata
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
"""The mask token, in place of words that a model is to restore."""

BREAK = "</s>"
"""The break between the sentences of a document; it is not a word."""

SOFT_HYPHEN = "\u00ad"


class Words(NamedTuple):
    """The words of many lines."""

    text: str
    """The lines, joined by newlines."""
    starts: np.ndarray
    """Start of each word in `text`, in characters."""
    ends: np.ndarray
    """End of each word."""
    before: np.ndarray
    """Number of words before each line; the last entry is the number of all words."""
    inner_blank: str = " "
    """What stands for a blank inside a word. It is another character where words are given, with blanks between them (`tagged`)."""

    def strings(self) -> list[str]:
        """The words themselves."""
        text = self.text.replace(self.inner_blank, " ")
        return [text[start:end] for start, end in zip(self.starts.tolist(), self.ends.tolist(), strict=True)]


def is_blank(line: str) -> bool:
    """Whether a line shows nothing: it has only blanks, breaks between sentences, control characters and invisible ones."""
    return not _VISIBLE.search(line.replace(BREAK, ""))


_VISIBLE = regex.compile(r"[^\p{Z}\p{Cc}\p{Cf}]")


def words_of(lines: Sequence[str], code: str) -> Words:
    """The words of many lines in the language `code`. Numbers are words, punctuation is not."""
    if (locate := segmenter(code)) is None:
        from workflow_scripts.text.segmentation import word_spans

        text = "\n".join(lines)
        return Words(text, *word_spans(_without_breaks(text)))
    return located(lines, lambda line: locate(_without_breaks(line)))


def located(lines: Sequence[str], locate: Callable[[str], list[Span]], inner_blank: str = " ") -> Words:
    """The words that `locate` finds in each of many lines."""
    spans: list[Span] = []
    before = [0]
    offset = 0
    for line in lines:
        spans += [(offset + start, offset + end) for start, end in locate(line)]
        before.append(len(spans))
        offset += len(line) + 1
    starts, ends = np.array(spans, np.int64).reshape(-1, 2).T
    return Words("\n".join(lines), starts, ends, np.array(before), inner_blank)


def _without_breaks(text: str) -> str:
    """`text` with each break replaced by blanks of the same length."""
    return text.replace(BREAK, " " * len(BREAK))


def words(line: str, code: str) -> list[Span]:
    """Character spans (start, end) of the words of one line."""
    segmented = words_of([line], code)
    return list(zip(segmented.starts.tolist(), segmented.ends.tolist(), strict=True))


LETTERS = 4
"""Letters and signs that stand for a word in text whose words are not known."""


def running_words(words: int, letters: int, code: str) -> int:
    """About how many words a text has: `words`, unless these are clauses. Then it is by its `letters`, which are those of all words."""
    return max(words, letters // LETTERS) if language(code).segments_clauses else words


def lengths(lines: Sequence[str], code: str) -> list[int]:
    """About how many words each line has, by `running_words`."""
    found = words_of(lines, code)
    letters_before = np.concatenate(([0], np.cumsum(found.ends - found.starts)))[found.before]
    both = zip(np.diff(found.before).tolist(), np.diff(letters_before).tolist(), strict=True)
    return [running_words(words, letters, code) for words, letters in both]


def number_of_words(line: str, code: str) -> int:
    """About how many words one line has."""
    return lengths([line], code)[0]


@functools.cache
def segmenter(code: str) -> Callable[[str], list[Span]] | None:
    """The dictionary segmenter of a language that is written without spaces, loaded on first use; None for other languages."""
    kind = language(code).segmenter
    if kind == "jieba":
        import jieba

        tokenizer = jieba.Tokenizer()
        # it would read any jieba.cache in the folder for temporary files, whoever wrote it, and is no faster for it
        tokenizer.FREQ, tokenizer.total = tokenizer.gen_pfdict(tokenizer.get_dict_file())
        tokenizer.initialized = True
        return lambda line: _rejoined(line, _only_words(line, ((s, e) for _, s, e in tokenizer.tokenize(line))), _BESIDE_HAN)
    if kind == "mecab":
        import ipadic
        import MeCab

        tagger = MeCab.Tagger(f"{ipadic.MECAB_ARGS} -Owakati")
        return lambda line: _only_words(line, _locate(line, tagger.parse(line).split()))
    if kind == "pythainlp":
        # its dictionary comes with it; otherwise it wants a folder of its own in the home folder
        if "PYTHAINLP_READ_MODE" not in os.environ:
            os.environ.setdefault("PYTHAINLP_READ_ONLY", "1")
        from pythainlp.tokenize import word_tokenize

        def segmented(line: str) -> list[Span]:
            return _only_words(line, _locate(line, word_tokenize(line, engine="newmm", keep_whitespace=False)))

        return lambda line: _rejoined(line, segmented(line), _BESIDE_THAI)
    return None


_BESIDE_HAN, _BESIDE_THAI = (regex.compile(rf"[\p{{L}}\p{{M}}--\p{{{script}}}]", regex.V1) for script in ("Han", "Thai"))


def _rejoined(line: str, spans: Iterable[Span], foreign: regex.Pattern[str]) -> list[Span]:
    """Words of other scripts as wholes: the dictionaries' programs cut Müller and Москва into letters that they do not know."""
    found: list[Span] = []
    for start, end in spans:
        if found and found[-1][1] == start and foreign.match(line, start) and foreign.match(line, start - 1):
            found[-1] = found[-1][0], end
        else:
            found.append((start, end))
    return found


UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
"""Scripts without blanks between words, as a part of a set of characters in a regular expression."""
CLOSING_MARKS = ".!?…؟۔։།༎።፧፨᱾।॥៕꯫"
"""Marks at the ends of sentences, in scripts that put a space behind them."""

_SENTENCE_END = regex.compile(
    # a closing mark of a script with spaces, but that of an initial (J. Smith, U.S.), before what can begin a sentence
    rf"""(?<=[{CLOSING_MARKS}]["'»”’«“‘‹›)\]\p{{Cf}}]*)(?<!\b\p{{Lu}}\.)\s+(?=[^\p{{Ll}}\s])"""
    # one of a script without
    r"""|(?<=[。！？][」』）”’]*)\s*(?=[^」』）”’\s])"""
)


def sentences(text: str) -> list[str]:
    """Split running text into sentences at closing punctuation.

    An abbreviation before a capital letter (Dr. Smith) also ends a sentence. This does little harm: it adds a break and changes no word.
    """
    return [sentence for sentence in map(str.strip, _SENTENCE_END.split(text)) if sentence]


def read_sentences(path: Path) -> Iterator[str]:
    """The lines of `path`; if they are documents, the sentences of the documents."""
    for line in read_lines(path):
        yield from map(str.strip, line.split(BREAK))


_PART_OF_WORD = regex.compile(r"[\p{L}\p{M}\p{N}]")


def is_part_of_word(character: str) -> bool:
    """Whether a character is a letter, a digit, or a mark that belongs to one, as Thai vowel and tone signs do."""
    return bool(_PART_OF_WORD.match(character))


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


_DOTTED_I = ("tr", "az", "crh")
"""Turkish, Azerbaijani and Crimean Tatar, in which i and ı are two letters, with İ and I as their capitals."""


def fold(word: str, code: str) -> str:
    """`word` in lower case and without soft hyphens, as in embeddings and lexicons; by the rules of its language for i and ı."""
    word = word.replace(SOFT_HYPHEN, "")
    if code in _DOTTED_I:
        word = word.replace("İ", "i").replace("I", "ı")
    word = word.lower()
    # a few capitals are two characters where the small letter is one, such as J̌
    return word if word.isascii() else unicodedata.normalize("NFC", word)


def upper(word: str, code: str) -> str:
    """`word` in capitals, by the same rules as `fold`."""
    return (word.replace("i", "İ") if code in _DOTTED_I else word).upper()


def capital(word: str, code: str) -> str:
    """`word` with a capital at its beginning; what is two letters in one, as Armenian և, has only the first of them as a capital."""
    first = "İ" if word[:1] == "i" and code in _DOTTED_I else word[:1].title()
    return first + word[1:]


def segment(lines: Sequence[str], code: str) -> list[str]:
    """The folded words of each line, separated by single spaces: what word2vec reads."""
    segmented = words_of(lines, code)
    folded = [fold(word, code) for word in segmented.strings()]
    return [" ".join(folded[start:end]) for start, end in itertools.pairwise(segmented.before.tolist())]


Segment = Callable[[Sequence[str]], list[str]]
"""Turns each line into words separated by blanks (`segment` for one language), or into a model's pieces (`tokenisation.unit_segmenter`)."""


def count_words(lines: Iterable[str], code: str) -> Counter[str]:
    """Lower-cased word → number of its occurrences in a text."""
    surface: Counter[str] = Counter()
    for chunk in chunks(lines):
        surface.update(words_of(chunk, code).strings())
    # far fewer than all words
    counts: Counter[str] = Counter()
    for word, count in surface.items():
        counts[fold(word, code)] += count
    return counts


def count_pieces(lines: Iterable[str], segment: Segment) -> Counter[str]:
    """Piece of a model → number of its occurrences in a text."""
    return Counter(piece for chunk in chunks(lines) for line in segment(chunk) for piece in line.split())
