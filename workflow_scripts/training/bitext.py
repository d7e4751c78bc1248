"""bitext: parallel text of several corpora to pretrain on: how it is read, how often each corpus is drawn, and in which directions.

Corpora of different sizes are sampled with a temperature (Arivazhagan et al. 2019): a corpus of n pairs is drawn with a probability in
proportion to n^(1/T). With T = 1 each pair comes equally often, with a large T each corpus does. Luo et al. (2021, VECO) have
T = 2, Tang et al. (2020, mBART-50) the directions many-to-many, many-to-one and one-to-many.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from workflow_scripts.stage import InputError
from workflow_scripts.text.corpus import leak_keys
from workflow_scripts.text.files import evenly, lockstep, read_lines
from workflow_scripts.training.ragged import Lines, Rows, same_choice, same_stretch

if TYPE_CHECKING:
    from workflow_scripts.models.batches import Row
    from workflow_scripts.models.tokenisation import Codec, Join
    from workflow_scripts.training.too_long import Kept, Room, Side

Direction = Literal["many-to-many", "many-to-one", "one-to-many"]


class Bitext(NamedTuple):
    """The pairs of one corpus."""

    name: str
    """The corpus with its languages, as in ``help.de-en``."""
    sides: dict[str, list[str]]
    """Its two languages → lines; line i of one is the translation of line i of the other."""
    held_out: int = 0
    """Pairs that were left out, because a side has a sentence of dev and test sets."""

    @property
    def pairs(self) -> int:
        """How many pairs it has."""
        return len(next(iter(self.sides.values())))


def read_bitext(files: Sequence[Path], forbidden: set[str], most: int | None = None, in_order: bool = False) -> list[Bitext]:
    """The pairs of corpora, without those of which a side has a key of `leak_keys` in `forbidden`; `most` of each, chosen at random,
    or, `in_order`, a stretch of so many that follow each other.

    `files` are both sides of each corpus, one after the other; a file's suffix is its language. Raises `InputError` where the sides
    of a corpus differ in length, or nothing is left of it.
    """
    found = []
    for paths in zip(files[::2], files[1::2], strict=True):
        codes = [path.suffix[1:] for path in paths]
        read = ((" ".join(a.split()), " ".join(b.split())) for _, a, b in lockstep(*paths))
        whole = [pair for pair in read if all(pair)]
        pairs = [pair for pair in whole if all(forbidden.isdisjoint(leak_keys(*side)) for side in zip(pair, codes, strict=True))]
        if not pairs:
            raise InputError(f"{paths[0]}: no pairs are left that are not in dev and test sets; give another corpus, or more text")
        places = same_stretch(len(pairs), most) if in_order else same_choice(len(pairs), most)
        chosen = [pairs[place] for place in places]
        lines = [list(side) for side in zip(*chosen, strict=True)]
        found.append(Bitext(paths[0].parent.name, dict(zip(codes, lines, strict=True)), len(whole) - len(pairs)))
    return found


def unpaired(bitext: Sequence[Bitext], most: int | None = None) -> dict[str, list[str]]:
    """The two sides of all corpora as monolingual text: language → its lines, each once, at `most` so many, evenly from all of them."""
    lines: dict[str, dict[str, None]] = {}
    for one in bitext:
        for code, side in one.sides.items():
            lines.setdefault(code, {}).update(dict.fromkeys(side))
    return {code: evenly(list(some), len(some) if most is None else most) for code, some in lines.items()}


# ---------------------------------------------------------------------------------------------
# directions


def directions(pairs: Sequence[Sequence[str]], direction: Direction, pivot: str | None = None) -> list[list[tuple[str, str]]]:
    """For each pair of languages the directions (source, target) that are learnt.

    many-to-one goes into the pivot, one-to-many from it: `pivot`, or the one language that all pairs share. Raises `InputError`
    where there is none.
    """
    if direction == "many-to-many":
        return [[(a, b), (b, a)] for a, b in pairs]
    shared = set.intersection(*map(set, pairs))
    if pivot is None and len(shared) != 1:
        said = f"all pairs share {' and '.join(sorted(shared))}; say which it is" if shared else "the pairs share none; take many-to-many"
        raise InputError(f"direction {direction} needs one language as its `pivot`: {said}")
    one = pivot or shared.pop()
    if outside := ["-".join(pair) for pair in pairs if one not in pair]:
        raise InputError(f"direction {direction}: the pair {outside[0]} is without the pivot {one!r}; leave it out, or take many-to-many")
    others = [next(code for code in pair if code != one) for pair in pairs]
    return [[(other, one) if direction == "many-to-one" else (one, other)] for other in others]


# ---------------------------------------------------------------------------------------------
# sampling


def shares(sizes: Sequence[int], temperature: float) -> np.ndarray:
    """The probability of each corpus, in proportion to n^(1/T)."""
    # of the sizes' ratios, whose powers neither overflow nor vanish
    powers = (np.asarray(sizes, dtype=float) / max(sizes)) ** (1 / temperature)
    return powers / powers.sum()


def drawn_pairs(sizes: Sequence[int], temperature: float, seed: int, number: int) -> list[np.ndarray]:
    """For each corpus the numbers of the pairs that are read in an epoch, which has as many pairs as all corpora together.

    A corpus's pairs come in a random order, and each once before any comes again, over epochs as well.
    """
    total = sum(sizes)
    exact = shares(sizes, temperature) * total
    counts = np.floor(exact).astype(int)
    # what rounding down leaves goes to those that lose most by it
    for index in np.argsort(counts - exact, kind="stable")[: total - counts.sum()]:
        counts[index] += 1
    return [_pairs(index, size, int(count), seed, number) for index, (size, count) in enumerate(zip(sizes, counts, strict=True))]


def _pairs(corpus: int, size: int, count: int, seed: int, number: int) -> np.ndarray:
    place, stop = number * count, (number + 1) * count
    found = [np.empty(0, dtype=int)]
    while place < stop:
        again, at = divmod(place, size)
        order = np.random.default_rng([seed, corpus, again]).permutation(size)
        found.append(order[at : at + stop - place])
        place += len(found[-1])
    return np.concatenate(found)


class Pairs(NamedTuple):
    """The pairs of a corpus as ids."""

    read: dict[str, Lines]
    """Language → its side as an encoder reads it."""
    labels: dict[str, Lines]
    """Language → its side as it is to be written."""
    about: dict[str, Any]
    """How many pairs were too long (`Kept.about`)."""


def read_pairs(files: dict[str, Path], codec: "Codec", room: "Room") -> Pairs:
    """The pairs of a corpus, whose sides in two languages are in parallel `files`, that are learnt from."""
    from workflow_scripts.training.too_long import kept, read_both, read_side

    def rows(sides: "dict[str, Side]") -> "Kept":
        return kept("-".join(files), sides, room, next(iter(files.values())).stem)

    # where none is cut, what is read is what is written, too
    if room.leave_out and codec.form.learns_tag and not codec.form.causal:
        read = labels = rows({code: read_side(codec, read_lines(path), code, room) for code, path in files.items()})
    else:
        both = {code: read_both(codec, read_lines(path), code, room) for code, path in files.items()}
        read, labels = (rows({code: sides[at] for code, sides in both.items()}) for at in (0, 1))
    return Pairs(dict(zip(files, read.sides, strict=True)), dict(zip(files, labels.sides, strict=True)), read.about)


class SampledPairs:
    """Training rows of several corpora, sampled with a temperature anew in each epoch, each pair in all of its corpus's directions."""

    def __init__(
        self,
        corpora: Sequence[Pairs],
        ways: Sequence[Sequence[tuple[str, str]]],
        temperature: float,
        seed: int,
        joins: "Mapping[tuple[str, str], Join]" = MappingProxyType({}),
    ):
        """`corpora` have the pairs, `ways` the directions of each. `joins` makes a row of a pair in each direction (`Codec.joins`)."""
        self._joins = joins
        self._corpora, self._ways, self._temperature, self._seed = corpora, ways, temperature, seed
        self._sizes = [len(next(iter(one.read.values()))) for one in corpora]
        self.too_long = [one.about for one in corpora]
        self.rows = sum(len(pairs) * len(some) for pairs, some in zip(drawn_pairs(self._sizes, temperature, seed, 0), ways, strict=True))

    def epoch(self, number: int) -> Rows:
        """The rows of an epoch."""
        chosen = drawn_pairs(self._sizes, self._temperature, self._seed, number)
        return Rows.of(
            self._row(one, way, pair)
            for one, ways, pairs in zip(self._corpora, self._ways, chosen, strict=True)
            for pair in pairs
            for way in ways
        )

    def _row(self, one: Pairs, way: tuple[str, str], pair: int) -> "Row":
        read, labels = one.read[way[0]][pair], one.labels[way[1]][pair]
        return self._joins[way](read, labels) if self._joins else (read, labels)

    def lengths(self, number: int) -> np.ndarray | None:
        """The pieces of each row, on its longer side, which both directions share; where sides are joined, the rows tell."""
        if self._joins:
            return None
        chosen = drawn_pairs(self._sizes, self._temperature, self._seed, number)
        longer = [self._longer(one) for one in self._corpora]
        return np.concatenate(
            [np.repeat(lengths[pairs], len(ways)) for lengths, pairs, ways in zip(longer, chosen, self._ways, strict=True)]
        )

    @staticmethod
    def _longer(one: Pairs) -> np.ndarray:
        # a row that is cut has a piece less where it is read than as labels
        return np.maximum.reduce([ids.lengths() for sides in (one.read, one.labels) for ids in sides.values()])
