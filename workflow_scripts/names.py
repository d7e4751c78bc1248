"""names: checks of names in the configuration. Is a name known, and if not, which known one is the nearest? Can a folder be called so?"""

import difflib
from collections.abc import Iterable, Iterator


def undefined(where: str, name: str, known: Iterable[str]) -> Iterator[str]:
    """The problem that `name`, which the key `where` of the configuration gives, is not among the `known` ones; nothing if it is."""
    if name not in (known := list(known)):
        yield f"{where}: {name!r} is not defined{instead(name, known)}"


def instead(name: str, known: Iterable[str]) -> str:
    """The end of a sentence that refuses `name`: the nearest known name, or all of them."""
    known = [*map(str, known)]
    near = difflib.get_close_matches(str(name), known, n=1)
    return f", did you mean {near[0]!r}?" if near else f"; there is {', '.join(known) or 'nothing'}"


def unfit(where: str, names: Iterable[str]) -> Iterator[str]:
    """The problem of each of the `names` under the key `where` that cannot be that of a folder."""
    for name in names:
        if not is_name(name):
            yield f"{where}.{name}: names are folders: letters, digits, - and _ only, and no - at the beginning"


def is_name(name: str) -> bool:
    """Whether `name` can be the name of a folder everywhere: ASCII letters, digits, - and _, and no option of a command."""
    return name.isascii() and not name.startswith("-") and name.replace("-", "").replace("_", "").isalnum()
