"""span_corruption: what T5 and its kin were pretrained by, as an objective.

Spans of a line's pieces are taken out, and a sentinel stands in the place of each; the decoder writes each sentinel with its span (Raffel
et al. 2020, section 3.1.4; the settings are those of mT5, Xue et al. 2021). Lengths of spans, and of what is left between them, are drawn
uniformly among all ways to divide so many pieces, as in T5's code. A row ends with a span. mBART's noise, one mask a span and sentences
permuted, is another one (`denoising`).
"""

from dataclasses import dataclass

import numpy as np

from workflow_scripts.errors import InputError
from workflow_scripts.models.tokenisation import sentinel_ids
from workflow_scripts.number_types import AboveZero, ShareBelowOne
from workflow_scripts.training.objective import rows_objective


@dataclass
class SpanCorruption:
    """Settings of span corruption."""

    rate: ShareBelowOne = 0.15
    """Share of the pieces that are removed."""
    length: AboveZero = 3.0
    """Mean length of a span, in pieces."""


@rows_objective(
    "span-corruption",
    decoder=True,
    sentinels=True,
    label="span corruption",
    source="Raffel et al. 2020, section 3.1.4",
    settings=SpanCorruption,
)
def span_corruption(lines, language, codec, max_length, draw, settings):
    """Rows (pieces with sentinels, each sentinel with its span) of lines; longer ones are cut, and there is no end behind what is left.

    Raises `InputError` for a family without sentinels, and a vocabulary that lacks them.
    """
    sentinels = sentinels_of(codec)
    rows = []
    for whole in codec.pieces(lines):
        ids = whole[: max_length - 1]
        read, written = corrupted(ids, sentinels, draw, settings)
        ends = codec.framed([[]], language)[0] if len(whole) == len(ids) else []
        # a sentinel and its span may be longer than what they stand for
        rows.append((([*read, *ends])[:max_length], ([*written, *ends])[:max_length]))
    return rows


def sentinels_of(codec) -> list[int]:
    """The ids of the sentinels of a model, in the order in which they are used."""
    if not (codec.form.sentinel or codec.form.sentinels):
        raise InputError(f"objective span-corruption: {codec.form.label} has no sentinels; those that have are of T5's kin")
    if not (found := sentinel_ids(codec)):
        first = repr(codec.form.sentinel.format(0))
        raise InputError(f"objective span-corruption: the vocabulary has no {first}; set objective: denoising, or take another model")
    return found


def corrupted(ids: list[int], sentinels: list[int], draw: np.random.Generator, settings: SpanCorruption) -> tuple[list[int], list[int]]:
    """Pieces with sentinels in the place of spans, and the spans with their sentinels.

    Of a single piece all is taken out."""
    if len(ids) < 2:
        return [*sentinels[:1]], [*sentinels[:1], *ids]
    out = min(max(round(len(ids) * settings.rate), 1), len(ids) - 1)
    spans = min(max(round(out / settings.length), 1), out, len(ids) - out, len(sentinels))
    read, written, at = list[int](), list[int](), 0
    for sentinel, left, taken in zip(sentinels, divided(len(ids) - out, spans, draw), divided(out, spans, draw), strict=False):
        read += [*ids[at : at + left], sentinel]
        written += [sentinel, *ids[at + left : at + left + taken]]
        at += left + taken
    return read, written


def divided(number: int, parts: int, draw: np.random.Generator) -> list[int]:
    """`number` as the sum of so many numbers from 1, each way equally likely."""
    cuts = np.sort(draw.choice(number - 1, parts - 1, replace=False)) + 1 if parts > 1 else np.array([], dtype=int)
    return np.diff([0, *cuts, number]).tolist()
