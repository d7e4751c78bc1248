"""released: the noise of the authors' published code, as it is, to reproduce what was run.

Zan et al. published a training loop whose noise differs from what their paper says (`codeswitch` does
that): it replaces SentencePiece pieces instead of words, from a lexicon that holds the three *least*
similar pieces (`lexicon.retrieval: farthest`); it rounds the budget up and spends it on pieces that the
lexicon lacks, too; spans that overlap merge, so that fewer words are hit; a span of no words inserts a
mask; and each pair gives one side only, in turns.
"""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from workflow_scripts.models.tokenisation import WORD_START, Codec
from workflow_scripts.noise.philox import generator
from workflow_scripts.noise.spans import Noise
from workflow_scripts.text.files import read_lines
from workflow_scripts.text.words import MASK


def released_side(
    text: Path, codec: Codec, candidates: dict[str, list[str]], seed: int, round_number: int, side: int, noise: Noise
) -> Iterator[tuple[str, str, dict[str, int]]]:
    """Every second line of `text`, from line `side` on, as (noised pieces, line, counts) for one round."""
    for sentence, line in enumerate(read_lines(text)):
        if sentence % 2 == side:
            rng = generator(seed, 2 * round_number + side, sentence)
            pieces, counts = switch_pieces(codec.tokens([line])[0], candidates, noise, rng)
            yield " ".join(pieces), line, counts


def switch_pieces(
    pieces: Sequence[str], candidates: dict[str, list[str]], noise: Noise, rng: np.random.Generator
) -> tuple[list[str], dict[str, int]]:
    """One sentence with its pieces switched and masks inserted, and the counts behind the realised rate."""
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
    """Lengths of spans in words, zeros among them, that add up to `budget`; the last one is cut to that."""
    lengths: list[int] = []
    while (left := budget - sum(lengths)) > 0:
        lengths.append(min(int(rng.poisson(poisson_lambda)), left))
    return lengths
