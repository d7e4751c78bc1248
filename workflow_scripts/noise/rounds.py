"""rounds: writes text noised anew in each round, a file per round: rows of a noised line and the original.

The text is read once for many rounds, so that what stays the same, such as where its words are, is found once.
"""

from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from workflow_scripts import registry
from workflow_scripts.stage import read_json
from workflow_scripts.text.files import chunks, writers

REPORT = "codeswitch.json"
"""The file of a folder of rounds that says which noise they have; pretraining's, which have mBART's, lack it."""

DEV_ROUND = 1 << 30
"""The number of the round, or epoch, that dev text has; training never reaches it."""
DEV_STREAM = 2 * DEV_ROUND
"""Likewise where random streams are counted, of which a round has one for each side: the first of dev text."""

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
    while together := dict(islice(left, _TOGETHER)):
        with writers(list(together.values())) as writes:
            first = 0
            for lines in chunks(read()):
                for write, new in zip(writes, noised(lines, first, list(together)), strict=True):
                    for row in zip(new, lines, strict=True):
                        write("\t".join(row))
                first += len(lines)


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
    report: dict[str, Any] = read_json(folder / REPORT) if (folder / REPORT).exists() else {"unit": "word", "masks": True}
    masks = report.get("masks", report.get("kind") == "mask")  # files of earlier versions lack `masks`
    return Form(report["unit"] == "piece", masks, report.get("as_text", False))


def read_meaning(folder: Path) -> dict[str, bool]:
    """What decides, beside its lines, what is learnt from a folder of rounds: the same lines may be restored, or written as they stand.

    Noises of ours that are restored add nothing, since their lines tell them apart: checkpoints of earlier versions are still gone on from.
    """
    if not (folder / REPORT).exists():
        return {}
    form, noise = read_form(folder), registry.entries("noise").get(read_json(folder / REPORT)["kind"])
    is_ours = noise is not None and not noise.plugin
    return ({"as_text": True} if form.as_text else {}) | ({} if is_ours else {"masks": form.masks})
