"""too_long: texts that have more pieces than a row may have are left out of training and counted, or cut.

A sentence that is cut and still has its end mark teaches a model to stop in mid-sentence. So a row that is cut has none (`Codec.fitted`).
Rows are left out by what the text itself has, never by its noise, so that all arms of an experiment learn from the same sentences. The
noised side of a row may be longer than the sentence, as switched words have more pieces than others; it is cut, which is counted as well.
"""

import itertools
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from workflow_scripts.models.tokenisation import Codec
from workflow_scripts.stage import InputError
from workflow_scripts.text.files import chunks
from workflow_scripts.training.ragged import Lines, Rows, encoded
from workflow_scripts.training.settings import Training


class Room(NamedTuple):
    """How long rows may be, and what becomes of those that are longer."""

    max_length: int
    """The most pieces of a side."""
    leave_out: bool
    """Whether rows that are too long are left out; else they are cut."""

    @classmethod
    def of(cls, settings: Training, leave_out: bool = True) -> "Room":
        """By the settings of a training, which decide unless they leave it to what is trained (`leave_out`)."""
        return cls(settings.max_length, leave_out if settings.too_long is None else settings.too_long == "leave_out")


class Side(NamedTuple):
    """One side of many rows."""

    ids: Lines
    """The rows, cut to the room that they have."""
    too_long: np.ndarray
    """Of each row, whether it had more pieces than there is room for."""


def read_side(
    codec: Codec,
    lines: Iterable[str],
    code: str,
    room: Room,
    *,
    labels: bool = False,
    ends: bool = False,
    masks: bool = False,
    pieces: bool = False,
    kind: str = "task",
) -> Side:
    """Lines as rows that the encoder reads or, as `labels`, the decoder is to write.

    With `ends` a row that is cut keeps its end, which a model that guesses masked pieces reads and never learns. With `masks`, `<mask>` is
    no text; with `pieces`, lines are pieces separated by blanks. A decoder reads them by the template of this `kind`, `task` or `restore`.
    """
    too_long: list[bool] = []

    def rows(portion: list[str]) -> list[list[int]]:
        whole = codec.piece_ids(portion) if pieces else codec.pieces(codec.behind_blank(portion, labels, kind), masks=masks)
        too_long.extend(codec.is_too_long(ids, room.max_length) for ids in whole)
        if ends:
            return codec.framed([codec.within(ids, room.max_length) for ids in whole], code)
        return codec.fitted(whole, code, room.max_length, labels)

    return Side(encoded(rows, lines), np.array(too_long, dtype=bool))


def read_both(codec: Codec, lines: Iterable[str], code: str, room: Room) -> tuple[Side, Side]:
    """Lines as rows that the model reads, and as labels to be written; each is tokenised once, unless answers are tokenised otherwise.

    A line counts as too long on both sides, or on none.
    """
    too_long: list[bool] = []

    def rows() -> Iterator[tuple[list[int], list[int]]]:
        for portion in chunks(lines):
            asked, answered = codec.behind_blank(portion), codec.behind_blank(portion, answers=True)
            read = codec.pieces(asked)
            labels = read if answered == asked else codec.pieces(answered)
            pairs = zip(read, labels, strict=True)
            too_long.extend(any(codec.is_too_long(ids, room.max_length) for ids in pair) for pair in pairs)
            as_rows = partial(codec.fitted, code=code, max_length=room.max_length)
            yield from zip(as_rows(read), as_rows(labels, labels=True), strict=True)

    sides = Rows.of(rows()).sides
    read, labels = (Side(ids, np.array(too_long, dtype=bool)) for ids in sides)
    return read, labels


def first_pieces(codec: Codec, text: str, most: int) -> str:
    """A text, or so many of its pieces from the first on."""
    (ids,) = codec.pieces([text])
    return text if len(ids) <= most else codec.tokenizer.decode(ids[:most], clean_up_tokenization_spaces=False).strip()


class Kept(NamedTuple):
    """Rows that are learnt from."""

    sides: list[Lines]
    """Their sides."""
    mask: np.ndarray
    """Of each row that there was, whether it is one of them."""
    about: dict[str, Any]
    """What reports say: the `text`, its `rows`, how many of them are `too_long`, and of two `sides` which."""


def kept(text: str, sides: dict[str, Side], room: Room, where: Path | str) -> Kept:
    """The rows of a `text` that are learnt from, given both of their `sides` by name, or one.

    Raises `InputError`, which names the file (`where`), where none is left.
    """
    either = np.logical_or.reduce([one.too_long for one in sides.values()])
    about: dict[str, Any] = {"text": text, "rows": len(either), "too_long": int(either.sum())}
    if len(sides) > 1:
        about["sides"] = {name: int(one.too_long.sum()) for name, one in sides.items()}
    mask = ~either if room.leave_out else np.ones_like(either)
    if len(mask) and not mask.any():
        raise InputError(
            f"{where}: all {len(mask):,} rows have more than {room.max_length} pieces, and are left out; raise training.max_length, or set "
            "training.too_long: cut"
        )
    return Kept([one.ids if mask.all() else one.ids.where(mask) for one in sides.values()], mask, about)


def lines_with_room(codec: Codec, lines: list[str], code: str, room: Room, where: Path) -> tuple[list[str], dict[str, Any]]:
    """The lines that are learnt from where an objective makes rows of its own, and what reports say of them; raises as `kept` does."""
    too_long = [codec.is_too_long(ids, room.max_length) for some in chunks(lines) for ids in codec.pieces(some)]
    found = kept(code, {code: Side(Lines.of(() for _ in lines), np.array(too_long, dtype=bool))}, room, where)
    return list(itertools.compress(lines, found.mask)), found.about


def lengths_report(room: Room, train: list[dict[str, Any]], dev: list[dict[str, Any]]) -> dict[str, Any]:
    """What reports say of rows that are too long, by what was counted of each text."""
    return {"max_length": room.max_length, "are": "left out" if room.leave_out else "cut", "train": train, "dev": dev}
