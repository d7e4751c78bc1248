"""segments: the text that VECO learns from: pairs of adjacent segments of one language, and pairs of parallel sentences.

Both are written (x, y) in the paper (Luo et al. 2021, section 2.2). A segment is a line; two lines are adjacent where no blank line, which
ends a document, is between them. Of lines that are left out (those of another language with `disjoint`, and held-out sentences) the ones
before and after count as adjacent. A line that has no neighbour left is read alone. Languages and corpora are drawn in proportion to
n^(1/temperature) pairs, which is the paper's p^α. One draw of masks serves all losses of a pair.
"""

from array import array
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from workflow_scripts.models.tokenizer import ordinary_pieces, word_starts
from workflow_scripts.noise.masking import Masking, mask_pieces
from workflow_scripts.noise.rounds import DEV_STREAM
from workflow_scripts.stage import InputError
from workflow_scripts.text.files import read_lines
from workflow_scripts.training.bitext import drawn_pairs
from workflow_scripts.training.objective import Part
from workflow_scripts.training.pretraining_settings import Pretraining
from workflow_scripts.training.ragged import PORTION, Chained, Lines, Rows
from workflow_scripts.training.too_long import Room, kept, read_side

if TYPE_CHECKING:
    from workflow_scripts.models.batches import Row
    from workflow_scripts.models.tokenisation import Codec


# ---------------------------------------------------------------------------------------------
# segments


class Segments(NamedTuple):
    """Segments in pairs (x, y), and some alone. Millions of them take few arrays."""

    x: Lines
    """The lines that each x is one of, as ids that the encoder reads."""
    y: Lines
    """The same for y: those of the other side of bitext, or the same lines."""
    rows: np.ndarray
    """(rows, 2) Of each row the numbers of x and y among the lines; −1 in place of y where x is alone."""
    about: dict[str, Any]
    """How many of the lines, or pairs, were too long (`Kept.about`)."""


def adjacent(lines: int, first: Sequence[int]) -> np.ndarray:
    """So many lines in pairs, each in one pair, within the documents that begin with the lines `first`; see `Segments.rows`.

    The last of an odd number of lines is alone.
    """
    numbers = np.arange(lines)
    documents = np.unique([0, *first])
    document = np.searchsorted(documents, numbers, "right")
    x = numbers[(numbers - documents[document - 1]) % 2 == 0]
    after = np.append(document, -1)[x + 1]
    return np.stack([x, np.where(after == document[x], x + 1, -1)], axis=1)


def monolingual(part: Part, codec: "Codec", room: Room) -> list[Segments]:
    """The segments of each language."""
    made = []
    for code, path in part.text.items():
        first = array("q")
        whole = read_side(codec, _lines_of_documents(path, first), code, room, ends=True)
        found = kept(code, {code: whole}, room, path)
        before = np.cumsum([0, *found.mask])  # of the lines that are left, how many come before each
        ids = found.sides[0]
        made.append(Segments(ids, ids, adjacent(len(ids), before[list(first)].tolist()), found.about))
    return made


def _lines_of_documents(path: Path, first: array) -> Iterator[str]:
    """The lines of a file without the blank ones between documents; `first` gets the number of each line that begins a document."""
    number = 0
    for line in read_lines(path):
        if line:
            yield line
            number += 1
        else:
            first.append(number)


def parallel(part: Part, codec: "Codec", room: Room) -> list[Segments]:
    """The pairs of each corpus."""
    made = []
    for one in part.bitext:
        sides = {code: read_side(codec, read_lines(path), code, room, ends=True) for code, path in one.items()}
        found = kept("-".join(one), sides, room, next(iter(one.values())))
        x, y = found.sides
        made.append(Segments(x, y, np.stack([np.arange(len(x)), np.arange(len(y))], axis=1), found.about))
    return made


class MaskedSegments:
    """Rows of segments, drawn and masked anew in each epoch.

    A row has what is read, x and y one behind the other, and the labels (−100 where nothing is to be guessed). Where y begins is found by
    `begin_of_second`.
    """

    def __init__(self, groups: list[Segments], codec: "Codec", masking: Masking, temperature: float, seed: int):
        """`groups` are the segments of each language, or of each corpus."""
        self._groups, self._masking, self._temperature, self._seed = groups, masking, temperature, seed
        self._sizes = [len(group.rows) for group in groups]
        self.rows = sum(self._sizes)
        self.alone = sum(map(alone, groups))
        self.too_long = [group.about for group in groups]
        tokenizer = codec.tokenizer
        self._pieces = ordinary_pieces(tokenizer)
        self._mask = tokenizer.mask_token_id
        self._starts = word_starts(tokenizer)

    def epoch(self, number: int) -> Rows:
        """The rows of an epoch."""
        drawn_rows = self._drawn(number)
        lengths = self._lengths(drawn_rows)
        there = lengths > 0  # a segment has at least its tags
        before = np.cumsum([0, *lengths[there]])
        begins = np.zeros_like(lengths)
        begins[there] = before[:-1]
        ids = np.empty(before[-1], dtype=np.int32)
        done = 0
        for group, rows in zip(self._groups, drawn_rows, strict=True):
            own = slice(done, done + len(rows))
            for side, lines in enumerate((group.x, group.y)):
                some = there[own, side]
                _copy(lines, rows[some, side], lengths[own, side][some], ids, begins[own, side][some])
            done += len(rows)
        sides = mask_pieces(ids, before, self._pieces, self._mask, self._masking, self._seed, number, self._starts)
        ends = np.cumsum([0, *lengths.sum(axis=1)])
        return Rows(*(Lines(side, ends) for side in sides))

    def lengths(self, number: int) -> np.ndarray:
        """The pieces of each row of an epoch."""
        return self._lengths(self._drawn(number)).sum(axis=1)

    def _drawn(self, number: int) -> list[np.ndarray]:
        """The rows of an epoch, of each group."""
        chosen = drawn_pairs(self._sizes, self._temperature, self._seed, number)
        return [group.rows[some] for group, some in zip(self._groups, chosen, strict=True)]

    def _lengths(self, drawn_rows: list[np.ndarray]) -> np.ndarray:
        """(rows, 2) The pieces of x and y; 0 where there is no y."""
        found = [np.empty((0, 2), dtype=np.int64)]
        for group, rows in zip(self._groups, drawn_rows, strict=True):
            sides = [lines.lengths()[rows[:, side]] for side, lines in enumerate((group.x, group.y))]
            found.append(np.where(rows >= 0, np.stack(sides, axis=1), 0))
        return np.concatenate(found)


def _copy(lines: Lines, chosen: np.ndarray, lengths: np.ndarray, ids: np.ndarray, begins: np.ndarray) -> None:
    """Copy the ids of the chosen lines, of these lengths, into `ids`, each to where it begins."""
    for start in range(0, len(chosen), PORTION):
        some = slice(start, start + PORTION)
        before = np.cumsum(lengths[some]) - lengths[some]
        within = np.arange(lengths[some].sum())
        moved = within + np.repeat(begins[some] - before, lengths[some])
        ids[moved] = lines.flat[within + np.repeat(lines.before[chosen[some]] - before, lengths[some])]


def alone(group: Segments) -> int:
    """The number of rows that are a segment alone."""
    return int((group.rows[:, 1] < 0).sum())


def without_single(group: Segments) -> Segments:
    """The rows of two segments, from which every loss but `is_mlm` learns alone."""
    return group._replace(rows=group.rows[group.rows[:, 1] >= 0])


def read(part: Part, codec: "Codec", block: "Pretraining", seed: int) -> "Alternating":
    """The rows of the training text. Says how many segments of a language have no neighbour, if that are many of them.

    Raises `InputError` where nothing is left that a loss can be made of.
    """
    room = Room.of(block.training, leave_out=False)
    kinds = [monolingual(part, codec, room), parallel(part, codec, room)]
    for code, group in zip(part.text, kinds[0], strict=True):
        if 10 * (count := alone(group)) > len(group.rows):
            print(
                f"{code}: {count} of {len(group.rows)} rows are a segment alone, without an adjacent one in its document; no decoder "
                "learns from them. Give text with several lines a document, and a blank line between documents",
                flush=True,
            )
    if not block.veco.is_mlm:
        kinds[0] = [without_single(group) for group in kinds[0]]
    rows = [
        MaskedSegments(kind, codec, block.masking, block.temperature, seed) if any(len(group.rows) for group in kind) else None
        for kind in kinds
    ]
    if not any(rows):
        raise InputError("backbone: no two segments of the text are adjacent, and only loss is_mlm reads single ones; switch it on")
    return Alternating(*rows)


def held_back(part: Part, codec: "Codec", block: "Pretraining", seed: int) -> "list[Batch]":
    """The rows of the dev text, of each language and each corpus, always with the same masks.

    Raises `InputError` where nothing is left that a loss can be made of.
    """
    room = Room.of(block.training, leave_out=False)
    made = []
    for is_parallel, groups in enumerate((monolingual(part, codec, room), parallel(part, codec, room))):
        for place, group in enumerate(groups):
            if not (is_parallel or block.veco.is_mlm):
                group = without_single(group)
            if len(group.rows):
                rows = MaskedSegments([group], codec, block.masking, 1.0, seed).epoch(DEV_STREAM + 2 * place + is_parallel)
                made.append(Batch(list(rows), bool(is_parallel), too_long=(group.about,)))
    if not made:
        raise InputError("backbone: no two segments of the dev lines are adjacent, and only loss is_mlm reads single ones; raise dev_lines")
    return made


def begin_of_second(ids: Sequence[int], start: int) -> int:
    """Where y begins in a row; the row's length if x is alone. `start` is the id of `<s>`, with which every segment begins."""
    return next((place for place in range(1, len(ids)) if ids[place] == start), len(ids))


class Alternating(NamedTuple):
    """What VECO is trained on: monolingual and parallel segments, of which either may be missing."""

    monolingual: MaskedSegments | None
    parallel: MaskedSegments | None

    @property
    def rows(self) -> int:
        """Rows of an epoch of both."""
        return sum(part.rows for part in self if part)

    @property
    def too_long(self) -> list[dict[str, Any]]:
        """As that of `rows.Rounds`."""
        return [about for part in self if part for about in part.too_long]

    def epoch(self, number: int) -> Chained:
        """The rows of an epoch of both."""
        return Chained([part.epoch(number) for part in self if part])


class Batch(NamedTuple):
    """The rows of an update, or a part of them; of a dev text all of them."""

    rows: "list[Row]"
    parallel: bool
    """Whether x and y are translations of each other."""
    cross_alone: bool = False
    """Whether cross-attention alone learns from it."""
    weight: float = 1.0
    """The share of the settings' losses that the whole update has."""
    too_long: tuple[dict[str, Any], ...] = ()
    """Of a dev text, as that of `rows.Rounds`."""


def alternating_updates(text: Alternating, tokens: int, updates: int, seed: int, cross_attention_first: int = 0) -> Sequence[Batch]:
    """The batches of all updates, of at most `tokens` tokens of x and y together: monolingual and parallel text in turn."""
    from workflow_scripts.training.rows import Batches, Made

    kinds = [(bool(place), part) for place, part in enumerate(text) if part]
    batches = [(kind, Batches(part, tokens, len(range(turn, updates, len(kinds))), seed)) for turn, (kind, part) in enumerate(kinds)]

    def make(number: int) -> Batch:
        kind, some = batches[number % len(kinds)]
        return Batch(some[number // len(kinds)], kind, number < cross_attention_first)

    return Made(updates, make)
