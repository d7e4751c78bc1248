"""rounds: writes text noised anew in each round, a file per round: rows of a noised line and the original.

The text is gone through once for many rounds, so that what does not change, such as where its words are, is found once.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from workflow_scripts.stage import read_json
from workflow_scripts.text.files import chunks, writers

REPORT = "codeswitch.json"
"""The file of a folder of rounds that says which noise they have; pretraining's, which have mBART's, lack it."""

# number of files that are open, and compressed, at once
_TOGETHER = 16


def write_rounds(
    rounds: Mapping[int, Path], read: Callable[[], Iterable[str]], noised: Callable[[list[str], int, list[int]], Iterable[list[str]]]
) -> None:
    """Write each round into its file.

    Args:
        rounds: Number of a round → its file.
        read: Gives the lines of the text, each time from the first.
        noised: Gets some lines, the number of the first of them in the text, and numbers of rounds; gives the noised lines of each round.
    """
    left = iter(rounds.items())
    while some := dict(islice(left, _TOGETHER)):
        with writers(list(some.values())) as writes:
            for first, lines in _numbered(chunks(read())):
                for write, new in zip(writes, noised(lines, first, list(some)), strict=True):
                    for row in zip(new, lines, strict=True):
                        write("\t".join(row))


class Form(NamedTuple):
    """What the lines of a folder of rounds are."""

    pieces: bool
    """Whether noised lines are pieces instead of text."""
    masks: bool
    """Whether `<mask>` in them is the model's own mask."""
    as_text: bool
    """Whether they are learnt as they stand, and nothing is restored."""


def read_form(folder: Path) -> Form:
    """What a folder of rounds says of its lines."""
    said: dict[str, Any] = read_json(folder / REPORT) if (folder / REPORT).exists() else {"unit": "word", "masks": True}
    masks = said.get("masks", said.get("kind") == "mask")  # files of earlier versions lack `masks`
    return Form(said["unit"] == "piece", masks, said.get("as_text", False))


def _numbered(some: Iterable[list[str]]) -> Iterator[tuple[int, list[str]]]:
    """Each list of lines with the number of its first line."""
    first = 0
    for lines in some:
        yield first, lines
        first += len(lines)
