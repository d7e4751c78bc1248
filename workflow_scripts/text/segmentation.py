"""segmentation: finds the words of text that is written with spaces, in compiled code. Used by `words` for many lines at once."""

import functools
import unicodedata

import numpy as np

from workflow_scripts.lazily import compiled

_OTHER, _INSIDE, _MARK, _JOINER, _WORD = range(5)
_JOINERS = ".,:'’‘·׳״"  # the last two are Hebrew
_QUOTATION_MARK, _ALEF, _TAV = ord('"'), ord("א"), ord("ת")
_UNSEEN = "\u00ad\u200c\u200d\u2060"  # soft hyphen, zero-width non-joiner and joiner, word joiner


def word_spans(text: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Find the words of all lines of `text`.

    A word starts with a letter or digit, or with a mark that was typed before its letter. It continues over letters, digits, combining
    marks, underscores, and what joins or parts letters without a width of its own, as in Persian and Sinhala. An apostrophe, dot, middle
    dot, comma, colon, geresh or gershayim between two letters or digits is part of the word (don't, 3.14, U.S.A, צה״ל), and so is a
    quotation mark " between two Hebrew letters, as a gershayim is typed. This is close to Unicode's UAX #29, which however splits 12:30 and
    word,word.

    Returns:
        Start and end of each word, in characters from the beginning of `text`; and the number of words before each line, with the total
        number as the last entry.
    """
    return _scan(np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32), _kinds())


@functools.cache
def _kinds() -> np.ndarray:
    """For each Unicode character, its role in words."""
    kinds = np.full(0x110000, _OTHER, np.uint8)
    for code in range(len(kinds)):
        category = unicodedata.category(chr(code))
        if category[0] in "LN":
            kinds[code] = _WORD
        elif category[0] == "M":
            kinds[code] = _MARK
    # these change the look of a symbol, and a letter behind it is another word
    kinds[0x20D0:0x2100] = kinds[0xFE00:0xFE10] = kinds[0xE0100:0xE01F0] = _INSIDE
    kinds[[ord(character) for character in ("_", *_UNSEEN)]] = _INSIDE
    kinds[[ord(character) for character in _JOINERS]] = _JOINER
    return kinds


@compiled()
def _scan(codes, kinds):
    size = len(codes)
    starts, ends = np.empty(size // 2 + 1, np.int64), np.empty(size // 2 + 1, np.int64)
    before = np.empty(size + 2, np.int64)
    before[0] = 0
    lines, words, at = 1, 0, 0
    while at < size:
        if codes[at] == 10:
            before[lines] = words
            lines += 1
        if kinds[codes[at]] != _WORD:
            at += 1
            continue
        start = at
        while start and kinds[codes[start - 1]] == _MARK:
            start -= 1
        starts[words] = start
        at += 1
        while at < size:
            kind = kinds[codes[at]]
            typed = codes[at] == _QUOTATION_MARK and at + 1 < size and _ALEF <= codes[at - 1] <= _TAV and _ALEF <= codes[at + 1] <= _TAV
            if typed or (kind == _JOINER and at + 1 < size and kinds[codes[at + 1]] == _WORD):
                at += 2
            elif kind in (_WORD, _INSIDE, _MARK):
                at += 1
            else:
                break
        ends[words] = at
        words += 1
    before[lines] = words
    return starts[:words].copy(), ends[:words].copy(), before[: lines + 1].copy()
