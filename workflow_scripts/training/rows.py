"""rows: the text of a phase as rows of ids, and the batches that are made of them."""

import bisect
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from workflow_scripts.models.batches import Row, by_length
from workflow_scripts.models.tokenisation import Codec
from workflow_scripts.models.tokenizer import ordinary_pieces, word_starts
from workflow_scripts.noise.rounds import DEV_STREAM, read_form
from workflow_scripts.stage import InputError
from workflow_scripts.text.files import read_lines
from workflow_scripts.training.ragged import Chained, Lines, Rows, lengths_of, same_choice
from workflow_scripts.training.settings import Training
from workflow_scripts.training.too_long import Kept, Room, kept, read_side

if TYPE_CHECKING:
    from workflow_scripts.noise.codeswitch import CodeSwitch
    from workflow_scripts.noise.masking import Masking


class Rounds(Protocol):
    """What a phase trains on: rows that may differ from epoch to epoch."""

    rows: int
    """Rows of an epoch."""
    too_long: list[dict[str, Any]]
    """Of each text how many of its rows are too long, for reports (`Kept.about`)."""

    def epoch(self, number: int) -> Sequence[Row]:
        """The rows of an epoch, always the same."""
        ...

    def lengths(self, number: int) -> np.ndarray | None:
        """The pieces of each row of an epoch, on its longer side; None where only its rows tell."""
        return None


class ParallelText(Rounds):
    """Rows of the translation task, the same in every epoch."""

    def __init__(self, source: Path, target: Path, languages: tuple[str, str], codec: Codec, settings: Training, room: Room | None = None):
        found = read_aligned(source, target, languages, codec, room or Room.of(settings), settings.pairs)
        self.chosen = np.flatnonzero(found.mask)
        """Numbers of the lines that are used."""
        self._rows = rows_of(codec, found.sides, languages)
        self.rows, self.too_long = len(self._rows), [found.about]

    def epoch(self, number: int) -> Rows:
        """The rows of an epoch."""
        return self._rows

    def lengths(self, number: int) -> np.ndarray:
        """The pieces of each row."""
        return lengths_of(self._rows)


class SwitchedText(Rounds):
    """Rows of the translation task in which words of the source are switched by a lexicon, anew in each epoch; the target stays.

    This is random aligned substitution (RAS, Lin et al. 2020), which there pretrains a model on many language pairs, here in the task
    itself. The noise is that of code-switching restore, so that the two differ in what is learnt alone.
    """

    def __init__(
        self,
        source: Path,
        target: Path,
        languages: tuple[str, str],
        codec: Codec,
        settings: Training,
        lexicon: Path,
        switch: "CodeSwitch",
        seed: int,
        room: Room | None = None,
    ):
        from workflow_scripts.noise.candidates import Lookup, load_candidates
        from workflow_scripts.text.spelling import read_vocabulary

        found = read_aligned(source, target, languages, codec, room or Room.of(settings), settings.pairs)
        # the number of a line in the whole text decides which of its words are switched, so what is not learnt from leaves a gap
        self._lines = [line if kept else "" for line, kept in zip(read_lines(source), found.mask, strict=True)]
        self._chosen, self._targets = found.mask, found.sides[1]
        self._rows = partial(rows_of, codec, languages=languages)
        self._side = partial(read_side, codec, code=languages[0], room=room or Room.of(settings))
        own = read_vocabulary(source, languages[0])
        spellings = (own.spellings, read_vocabulary(target, languages[1]).spellings) if switch.capitals == "own" else None
        self._lookup = Lookup(load_candidates(lexicon, own.counts, languages), *languages, spellings)
        self._noise, self._seed = switch.noise, seed
        self.rows, self.too_long = len(self._targets), [found.about]

    def epoch(self, number: int) -> Rows:
        """The rows of an epoch. Their words are chosen as those of the corpus's first side are in the round of this number, where that is
        the source."""
        from workflow_scripts.noise.switching import switch_lines

        switched, _ = switch_lines(self._lines, self._lookup, seed=self._seed, stream=2 * number, noise=self._noise)
        read = self._side(itertools.compress(switched, self._chosen))
        if not number:
            self.too_long[0]["noised"] = int(read.too_long.sum())
        return self._rows((read.ids, self._targets))


class Joined(Rounds):
    """The rows of several texts, epoch by epoch."""

    def __init__(self, parts: Sequence[Rounds]):
        self._parts, self.rows = parts, sum(part.rows for part in parts)
        self.too_long = [text for part in parts for text in part.too_long]
        self._current = Chained([])

    def epoch(self, number: int) -> Chained:
        """The rows of an epoch."""
        texts = [part.epoch(number) for part in self._parts]
        if len(texts) != len(self._current.texts) or any(new is not old for new, old in zip(texts, self._current.texts, strict=True)):
            self._current = Chained(texts)
        return self._current

    def lengths(self, number: int) -> np.ndarray | None:
        """The pieces of each row, where all texts tell."""
        known = [lengths for part in self._parts if (lengths := part.lengths(number)) is not None]
        return np.concatenate(known) if len(known) == len(self._parts) else None


class NoisedRounds(Rounds):
    """Rows of a restore task. Epoch r has round r of both languages, which is read only then."""

    def __init__(self, folder: Path, languages: tuple[str, ...], codec: Codec, room: Room):
        self.folder, self.languages, self.codec, self.room = folder, languages, codec, room
        self.count = rounds_in(folder, languages[0])
        self.pieces, self.masks, self.as_text = read_form(folder)
        self._current: tuple[int, Sequence[Row]] = -1, []
        self._counted: dict[tuple[str, str], dict[str, Any]] = {}
        self.rows = len(self.epoch(0))  # which stays for the first batch
        self.too_long = [self._counted["round0", code] for code in languages]

    def epoch(self, number: int) -> Sequence[Row]:
        """Rows (noised, original) of both languages; after the last round the first comes again."""
        number %= self.count
        if self._current[0] != number:
            self._current = number, Chained([self.read(f"round{number}", code) for code in self.languages])
        return self._current[1]

    def read(self, name: str, code: str) -> Rows:
        """Rows of one file of one language."""
        path = self.folder / f"{name}.{code}.tsv.zst"
        of_code = partial(read_side, self.codec, code=code, room=self.room, kind="restore")
        noised = of_code(_side(path, 0), masks=bool(self.masks) and not self.pieces, pieces=self.pieces)
        found = kept(code, {code: of_code(_side(path, 1), labels=True)}, self.room, path)
        stays = found.mask
        self._counted[name, code] = {**found.about, "noised": int(noised.too_long[stays].sum())}
        read = noised.ids if stays.all() else noised.ids.where(stays)
        if not self.as_text:
            return rows_of(self.codec, (read, *found.sides), (code, code), "restore")
        # the noised text is written behind nothing
        written = of_code(_side(path, 0), labels=True).ids
        nothing = of_code("" for _ in range(len(read))).ids
        return rows_of(self.codec, (nothing, written if stays.all() else written.where(stays)), (code, code), "restore")

    def dev(self, code: str) -> "Dev":
        """The rows that the loss is measured on in one language."""
        return Dev(self.read("dev", code), code, None, [self._counted["dev", code]])


def rounds_in(folder: Path, code: str) -> int:
    """How many rounds of noised text in a language a folder has. Raises `InputError` where there is none."""
    if count := len(list(folder.glob(f"round*.{code}.tsv.zst"))):
        return count
    raise InputError(f"{folder}: no round*.{code}.tsv.zst; run the codeswitch stage first")


def _side(path: Path, side: int) -> Iterator[str]:
    """The noised lines of a round (`side` 0), or the original ones (1)."""
    for number, line in enumerate(read_lines(path, normalise=False), 1):
        if len(pair := line.split("\t")) != 2:
            raise InputError(
                f"{path}, line {number}: expected a noised and an original sentence; remove the file, so that it is made again"
            )
        yield pair[side]


class MaskedText(Rounds):
    """Rows of the masked language model: monolingual text, masked anew in each epoch."""

    def __init__(self, text: dict[str, list[str]], codec: Codec, room: Room, masking: "Masking", seed: int):
        found = [
            kept(code, {code: read_side(codec, lines, code, room, ends=True)}, room, f"the text in {code}") for code, lines in text.items()
        ]
        by_language = [one.sides[0] for one in found]
        self.too_long = [one.about for one in found]
        lengths = np.concatenate([[0], *(ids.lengths() for ids in by_language)])
        self._text = Lines(np.concatenate([ids.flat for ids in by_language]), np.cumsum(lengths))
        self.rows = len(self._text)
        self._pieces = ordinary_pieces(codec.tokenizer)
        self._mask, self._masking, self._seed = codec.tokenizer.mask_token_id, masking, seed
        self._starts = word_starts(codec.tokenizer)

    def epoch(self, number: int) -> Rows:
        """Rows (what is read, labels) of one epoch."""
        from workflow_scripts.noise.masking import mask_pieces

        ids, before = self._text.flat, self._text.before
        sides = mask_pieces(ids, before, self._pieces, self._mask, self._masking, self._seed, number, self._starts)
        return Rows(*(Lines(side, before) for side in sides))

    def lengths(self, number: int) -> np.ndarray:
        """The pieces of each row, which stay the same."""
        return self._text.lengths()


_MASKS = 1 << 35
"""The first random stream of masks on noised text: the noise has drawn from those below it, with the same seed."""


class MaskedRounds(Rounds):
    """Rows of the masked language model on noised text as it stands: epoch r has the words of round r, masked anew."""

    def __init__(self, folder: Path, languages: tuple[str, ...], codec: Codec, room: Room, masking: "Masking", seed: int):
        self.count = rounds_in(folder, languages[0])
        self._folder, self._languages = folder, languages
        self._masked = partial(MaskedText, codec=codec, room=room, masking=masking, seed=seed)
        self._current: tuple[str, MaskedText] | None = None
        first = self._round(0)
        self.rows, self.too_long = first.rows, first.too_long

    def epoch(self, number: int) -> Rows:
        """Rows (what is read, labels) of one epoch; after the last round the first comes again, with other masks."""
        return self._round(number).epoch(_MASKS + number)

    def lengths(self, number: int) -> np.ndarray:
        """The pieces of each row of an epoch."""
        return self._round(number).lengths(number)

    def dev(self, code: str) -> "Dev":
        """The rows that the loss is measured on in one language, always with the same masks."""
        text = self._masked({code: self._lines("dev", code)})
        return Dev(text.epoch(_MASKS + DEV_STREAM + self._languages.index(code)), code, None, text.too_long)

    def _round(self, number: int) -> MaskedText:
        name = f"round{number % self.count}"
        if self._current is None or self._current[0] != name:
            self._current = name, self._masked({code: self._lines(name, code) for code in self._languages})
        return self._current[1]

    def _lines(self, name: str, code: str) -> list[str]:
        return [*_side(self._folder / f"{name}.{code}.tsv.zst", 0)]


def read_aligned(source: Path, target: Path, languages: tuple[str, str], codec: Codec, room: Room, pairs: int | None = None) -> Kept:
    """The rows of two aligned files of plain text that are learnt from, of all lines or of so many `pairs` (`same_choice`).

    The choice comes first: it does not hang on which pairs are too long for the vocabulary of an arm.
    """
    number, other = (sum(1 for _ in read_lines(path)) for path in (source, target))
    if number != other:
        raise InputError(f"{source} has {number} lines, {target} {other}; they must be aligned")
    if not number:
        raise InputError(f"{source}: is empty")
    chosen = np.zeros(number, dtype=bool)
    chosen[same_choice(number, pairs)] = True
    sides = [
        read_side(codec, itertools.compress(read_lines(path), chosen), code, room, labels=labels)
        for path, code, labels in zip((source, target), languages, (False, True), strict=True)
    ]
    names = languages if languages[0] != languages[1] else ("source", "target")
    found = kept("-".join(languages), dict(zip(names, sides, strict=True)), room, source)
    chosen[chosen] = found.mask
    return found._replace(mask=chosen)


@dataclass
class Dev:
    """Dev rows in one target language; references where translations are wanted."""

    rows: Sequence[Row]
    language: str
    references: list[str] | None = None
    too_long: list[dict[str, Any]] = field(default_factory=list)
    """As that of `Rounds`."""


def aligned_dev(source: Path, target: Path, languages: tuple[str, str], codec: Codec, room: Room) -> Dev:
    """The rows and references of a dev set in two aligned files."""
    found = read_aligned(source, target, languages, codec, room)
    references = list(itertools.compress(read_lines(target), found.mask))
    return Dev(rows_of(codec, found.sides, languages), languages[1], references, [found.about])


def rows_of(codec: Codec, sides: Sequence[Lines], languages: tuple[str, str], kind: str = "task") -> Rows:
    """The rows of two sides, what is read and the labels: of the task, or of text that is restored (`kind`).

    A decoder reads and writes in one row: its sides are joined by the template, and each piece that it reads has a label
    (`Codec.joins`).
    """
    joined = codec.joins(languages, kind)
    return Rows.of(itertools.starmap(joined, zip(*sides, strict=True))) if joined else Rows(*sides)


T = TypeVar("T")


class Made(Sequence[T]):
    """A sequence of `number` items, each of which `make` makes when it is asked for."""

    def __init__(self, number: int, make: Callable[[int], T]):
        self._number, self._make = number, make

    def __len__(self) -> int:
        return self._number

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            return [self._make(place) for place in range(*at.indices(self._number))]
        if not 0 <= at < self._number:
            raise IndexError(at)
        return self._make(at)


class Batches(Made[list[Row]]):
    """`number` batches of at most `tokens` tokens each, padding included, of one epoch after the other.

    They are made when they are asked for, and one epoch is held at a time: all rows of a long pretraining would not fit into memory.
    """

    def __init__(self, rounds: Rounds, tokens: int, number: int, seed: int):
        super().__init__(number, self._batch)
        self._rounds, self._tokens, self._seed = rounds, tokens, seed
        self._begins = [0]  # the first batch of each epoch, as far as they are known
        self._rows: tuple[int, Sequence[Row]] = -1, []
        self._cut: tuple[int, list[Any]] = -1, []

    def _batch(self, at: int) -> list[Row]:
        while self._begins[-1] <= at:
            self._begins.append(self._begins[-1] + len(self.cut(len(self._begins) - 1)))
        epoch = bisect.bisect(self._begins, at) - 1
        rows = self.epoch(epoch)
        return [self.row(rows, chosen) for chosen in self.cut(epoch)[at - self._begins[epoch]]]

    def row(self, rows: Sequence[Row], chosen: Any) -> Any:
        """The row of a batch that `cut` has chosen."""
        return rows[chosen]

    def epoch(self, number: int) -> Sequence[Row]:
        """The rows of an epoch."""
        if self._rows[0] != number:
            self._rows = -1, []  # two would be in memory otherwise
            self._rows = number, self._rounds.epoch(number)
        return self._rows[1]

    def cut(self, number: int) -> list[Any]:
        """The rows' numbers in each batch of an epoch. Raises `InputError` for a row of the first one that is longer than a batch.

        An epoch's rows are shuffled, sorted by length within pools of some hundred batches, cut into
        batches and shuffled again. So little is padded, and the order stays random. In a later epoch, a row that its noise makes longer
        than a batch is one by itself: training does not end in the middle.
        """
        if self._cut[0] != number:
            rng, tokens = np.random.default_rng([self._seed, number]), self._tokens
            lengths = self._rounds.lengths(number)
            if lengths is None:
                lengths = lengths_of(self.epoch(number))
            if number == 0 and lengths.max() > tokens:
                raise InputError(
                    f"a row has {lengths.max()} pieces, more than a batch of {tokens} tokens; raise batch_tokens or lower max_length"
                )
            order = rng.permutation(len(lengths))
            pool = max(1, int(100 * tokens / lengths.mean()))
            batches: list[np.ndarray] = []
            for start in range(0, len(order), pool):
                part = order[start : start + pool]
                batches += [part[chosen] for chosen in by_length(lengths[part].tolist(), tokens)]
            self._cut = number, [batches[place] for place in rng.permutation(len(batches))]
        return self._cut[1]

    def targets(self) -> float:
        """Pieces of the target sides of a batch, on average over the first epoch."""
        return float(lengths_of(self.epoch(0), 1).sum()) / len(self.cut(0))


def split_batch(rows: list[Row], parts: int) -> list[list[Row]]:
    """Split a batch into `parts` with similar numbers and lengths of rows. If there are too few rows, a part gets one without labels."""
    return [rows[part::parts] or [(rows[0][0], [-100])] for part in range(parts)]


def in_parts(updates: Sequence[Any], parts: int, split: Callable[[Any, int], list] = split_batch) -> Made[Any]:
    """The parts of all updates, one after the other; each update is made and split once for all of its parts."""

    @lru_cache(maxsize=1)
    def parts_of(update: int) -> list:
        return split(updates[update], parts)

    return Made(len(updates) * parts, lambda at: parts_of(at // parts)[at % parts])
