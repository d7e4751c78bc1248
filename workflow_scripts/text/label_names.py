"""label_names: what to do with a label that a configuration's `labels` lack, and labels that are numbers."""

import difflib
import json
import math
import re
from collections.abc import Iterable

from workflow_scripts.stage import InputError

ALIKE = 0.75
"""How alike two labels are at least for the one to be a spelling of the other (`difflib`): contradictory and contradiction are."""


def way_out(label: str, labels: list[str]) -> str:
    """What to do with an unknown label, as the end of a message."""
    near = nearest(label, labels)
    translated = f"translate it with {renamed([label], near)}{' if it means that' if near else ''}"
    return f"correct it, {translated}, or add it to `labels`{or_left_out([label, *labels])}"


def nearest(label: str, labels: list[str]) -> str | None:
    """The label of which another is a spelling: the same number, the same word but for case, or one that begins alike; None without one."""
    for form in (_number, str.casefold):
        if (wanted := form(label)) is not None and (same := [each for each in labels if form(each) == wanted]):
            return same[0]
    # not_x is alike to x, and topic1 to topic2
    close = [each for each in labels if _start(each) == _start(label)]
    found = difflib.get_close_matches(label.casefold(), [each.casefold() for each in close], 1, ALIKE)
    return next((each for each in close if [each.casefold()] == found), None)


def _start(label: str) -> tuple[str, list[str]]:
    """What two spellings of a label share: its first letters, and its digits."""
    return label.casefold()[:3], re.findall(r"\d", label)


def renamed(labels: Iterable[str], name: str | None) -> str:
    """The setting that gives labels another `name`, which YAML takes for text; without one the user replaces LABEL."""
    names = {label[:60]: name or "LABEL" for label in labels}
    return f"`label_names: {json.dumps(names, ensure_ascii=False)}`"


def or_left_out(labels: list[str]) -> str:
    """The end of a message about labels that are numbers, which a task may read without a list of them."""
    numbers = labels and all(_number(label) is not None for label in labels)
    return "; for a task that reads any number (`kind=float`), leave `labels` out" if numbers else ""


def number_text(label: str, at: str, header: str = "") -> str:
    """A label that is a number, in a form that equal numbers share: 2.30 is 2.3.

    Raises `InputError` for other text, and for inf and nan; `header` is what it says first of a line that may name the columns.
    """
    if (number := _number(label)) is not None:
        return repr(number + 0.0).removesuffix(".0")  # + 0.0 makes −0 zero
    point = "write decimals with a point" if _number(label.replace(",", ".")) is not None else "correct it or delete the line"
    name = f"translate it with {renamed([label], 'NUMBER')}"
    raise InputError(f"{at}: the label {label[:60]!r} is no number; {header}{point}, {name}, or list all `labels`, if they are no numbers")


def number_range(labels: Iterable[str]) -> dict[str, float]:
    """The least, the mean and the greatest of labels that are numbers."""
    numbers = [float(label) for label in labels]
    return {"least": min(numbers), "mean": math.fsum(numbers) / len(numbers), "greatest": max(numbers)}


def _number(label: str) -> float | None:
    """The finite number that a label is; None for other text."""
    try:
        number = float(label)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
