"""released: the noise of the authors' published code, unchanged, to reproduce their runs.

The training code that Zan et al. published adds noise in another way than their paper describes (`codeswitch` follows the paper):

- It replaces SentencePiece pieces instead of words.
- Its lexicon has the three *least* similar pieces (`lexicon.retrieval: farthest`).
- It rounds the number of words to replace up, and also counts words that have no piece in the lexicon.
- Overlapping spans merge, so that fewer words are replaced.
- A span of length zero inserts a mask.
- Each pair gives only one side, alternately the first and the second.
"""

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from workflow_scripts.models.tokenisation import Codec
from workflow_scripts.models.tokenizer import WORD_START
from workflow_scripts.noise.span_noise import SpanNoise
from workflow_scripts.philox import generator
from workflow_scripts.text.files import read_lines
from workflow_scripts.text.words import MASK


def switched_pieces(
    lines: list[str],
    first: int,
    rounds: list[int],
    *,
    switch: Callable[..., tuple[list[str], dict[str, float]]],
    codec: Codec,
    candidates: dict[str, list[str]],
    seed: int,
    side: int,
    noise: SpanNoise,
    total: Counter[str],
) -> Iterator[list[str]]:
    """The noised pieces of lines of `every_second` in each round, as `rounds.write_rounds` asks for them; `total` adds up the counts.

    `switch` is the noise: `switch_pieces`, or one of its form.
    """
    rows = codec.tokens(lines)
    for number in rounds:
        noised = []
        for place, pieces in enumerate(rows, first):
            # the random numbers are those of the line's number in the whole text
            new, counts = switch(pieces, candidates, noise, generator(seed, 2 * number + side, 2 * place + side))
            total.update(counts)
            noised.append(" ".join(new))
        yield noised


def every_second(text: Path, side: int) -> Iterator[str]:
    """Every second line of a text, from line `side` on."""
    return itertools.islice(read_lines(text), side, None, 2)


def pieces_of(text: Path, codec: Codec) -> Iterator[str]:
    """The pieces of a text, one after the other."""
    return (piece for line in read_lines(text) for piece in codec.tokens([line])[0])


def switch_pieces(
    pieces: Sequence[str], candidates: dict[str, list[str]], noise: SpanNoise, rng: np.random.Generator
) -> tuple[list[str], dict[str, float]]:
    """Replace pieces of one sentence and insert masks.

    Returns the new pieces, and the numbers of all words, of words with candidates, of replaced words, and of words that were to be
    replaced.
    """
    starts = [i for i, piece in enumerate(pieces) if piece.startswith(WORD_START)]
    spans = list(zip(starts, [*starts[1:], len(pieces)], strict=True))
    budget = math.ceil(noise.rate * len(spans))
    lengths = span_lengths(budget, noise.poisson_lambda, rng)
    long = [length for length in lengths if length]
    hit: set[int] = set()
    for first, length in zip(rng.permutation(len(spans)).tolist(), long, strict=False):
        hit.update(range(first, min(first + length, len(spans))))
    switched = list(pieces)
    replaced = 0
    for word in sorted(hit):
        known = [i for i in range(*spans[word]) if pieces[i] in candidates]
        for i in known:
            row = candidates[pieces[i]]
            switched[i] = row[int(rng.integers(len(row)))]
        replaced += bool(known)
    for _ in range(len(lengths) - len(long)):
        switched.insert(int(rng.integers(len(switched) + 1)), MASK)
    return switched, {
        "words": len(spans),
        "replaceable": sum(any(piece in candidates for piece in pieces[start:end]) for start, end in spans),
        "replaced": replaced,
        "budget": budget,
    }


def span_lengths(budget: int, poisson_lambda: float, rng: np.random.Generator) -> list[int]:
    """Draw lengths of spans, in words, until they add up to `budget`; zeros occur, and the last length is cut."""
    lengths: list[int] = []
    while (left := budget - sum(lengths)) > 0:
        lengths.append(min(int(rng.poisson(poisson_lambda)), left))
    return lengths
