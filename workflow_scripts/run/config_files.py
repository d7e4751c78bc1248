"""config_files: the files of a configuration as they are written, and what a command line sets in their place.

That is what YAML misreads in them, recipes that are laid over others, paths, plugins, and the line that an error is about.
"""

import contextlib
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import yaml

from workflow_scripts.stage import ROOT, InputError
from workflow_scripts.yaml_text import composed, odd_blank

# ---------------------------------------------------------------------------------------------
# what files say


def check_files(paths: Iterable[Path | str]) -> None:
    """Refuse files in the order in which they are laid over each other that are no YAML, or that do not mean what they say.

    YAML takes the last of two keys of one name, and reads 010 as 8 and 1:30 as 90, without a word. A recipe that is laid `over` another one
    stands behind it.
    """
    roots = {Path(path): composed(path) for path in paths}
    problems = [problem for path, root in roots.items() for problem in dict.fromkeys(_misread(path, root))]
    problems += _in_wrong_order({path: _below(path, root) for path, root in roots.items()})
    if problems:
        raise InputError("config:\n" + "\n".join(f"  {problem}" for problem in problems))


def _misread(path: Path, root: yaml.MappingNode) -> Iterator[str]:
    """What to tell of keys that stand twice in one block, of numbers that YAML takes for others, and of blanks that are none."""
    waiting: list[yaml.Node] = [root]
    visited: set[int] = set()
    while waiting:
        node = waiting.pop()
        if isinstance(node, yaml.ScalarNode) and not node.style and re.fullmatch(r"[-+]?(0[0-7_]+|\d[\d_]*(:[0-5]?\d)+)", node.value):
            line, read = node.start_mark.line + 1, yaml.safe_load(node.value)
            yield f"{path}, line {line}: YAML reads {node.value} as {read}; write the number without 0 before it, and without :"
        if isinstance(node, yaml.ScalarNode) and not node.style and (odd := odd_blank(node.value[:1] + node.value[-1:])):
            where = "before" if odd_blank(node.value[:1]) else "behind"
            yield f"{path}, line {node.start_mark.line + 1}: {odd} stands {where} {node.value.strip()!r}; write a plain blank"
        if id(node) in visited or not isinstance(node, yaml.CollectionNode):
            continue
        visited.add(id(node))  # a YAML alias may refer to a block that contains it
        if isinstance(node, yaml.SequenceNode):
            waiting += node.value
            continue
        lines: dict[str, int] = {}
        for key, value in node.value:
            name, line = str(key.value), key.start_mark.line + 1
            if name in lines:
                yield f"{path}, line {line}: {name!r} stands here and in line {lines[name]}; keep one of the two"
            lines.setdefault(name, line)
            waiting += [key, value]


# ---------------------------------------------------------------------------------------------
# recipes that are laid over others


def stands_alone(paths: Iterable[Path | str]) -> Iterator[str]:
    """What to tell of recipes that are laid `over` another one where it is not among `paths`, the files that were named."""
    named = [Path(path) for path in paths]
    there = {path.resolve() for path in named}
    for path in named:
        if (below := _below(path, composed(path))) and below.resolve() not in there:
            yield f"  {path} is laid over {below}, which is not named; put it before {path.name}: --configfile {below} {path}"


def _in_wrong_order(belows: dict[Path, Path | None]) -> Iterator[str]:
    """What to tell of recipes that are laid over another one (`belows`: which, if any) which stands behind them."""
    places = [path.resolve() for path in belows]
    for place, (path, below) in enumerate(belows.items()):
        if below and below.resolve() in places[place + 1 :]:
            yield f"{path} is laid over {below}, which stands behind it; write --configfile {below} {path}"


def _below(path: Path, root: yaml.MappingNode) -> Path | None:
    """The recipe that this one is laid `over`; None where there is none."""
    over = next((value for key, value in root.value if key.value == "over"), None)
    return path.parent / at_home(over.value, "over") if isinstance(over, yaml.ScalarNode) and over.tag == "tag:yaml.org,2002:str" else None


# ---------------------------------------------------------------------------------------------
# paths and plugins


def at_home(value: Any, where: str = "") -> Any:
    """`value` with ``~`` and variables of the environment (``$SCRATCH``) written out where a path begins with them, as a shell does it.

    Raises `InputError` where there is no such user or variable.
    """
    if isinstance(value, dict):
        return {key: at_home(item, f"{where}.{key}".lstrip(".")) for key, item in value.items()}
    if isinstance(value, list):
        return [at_home(item, where) for item in value]
    if not (isinstance(value, str) and re.match(r"(~[\w.-]*|\$\w+|\$\{\w+\})/", value)):
        return value
    full = os.path.expandvars(os.path.expanduser(value))
    if full[:1] in "~$":
        raise InputError(f"config:\n  {where}: {value!r}: there is no {value.partition('/')[0]} on this machine; write the path in full")
    return full


def plugins_of(raw: dict[str, Any], files: Iterable[Path | str], ours: Any = ()) -> list[str]:
    """The plugins that the configuration's files and the command line name, together: files as paths from here, others by their names.

    A file is looked for beside the configuration that names it, then here, then in the repository. Without `files`, as in a module of
    another workflow, `raw` has all of them. Raises `InputError` for what is no list of names.
    """
    found: list[str] = []
    for path in files:
        root = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
        found += [_beside(name, Path(path).parent) for name in _listed(root)]
    found += [_beside(name, Path()) for name in _listed(ours if files else raw)]
    return list(dict.fromkeys(found))


def _listed(raw: Any) -> list[str]:
    named = raw.get("plugins") if hasattr(raw, "get") else None
    if named is not None and not (isinstance(named, list) and all(isinstance(name, str) for name in named)):
        raise InputError(f"config:\n  plugins: wants a list of names, like [my_bridge.py], got {named!r}")
    return named or []


def _beside(name: str, folder: Path) -> str:
    """Where the file of a plugin is that is named beside `folder`; the name itself of a module, or where there is no file."""
    if not name.endswith(".py"):
        return name
    name = at_home(name, "plugins")
    places = (folder / name, Path(name), ROOT / name)
    found = next((place for place in places if place.is_file()), places[0])
    return os.path.relpath(found) if found.resolve().is_relative_to(Path.cwd()) else str(found.resolve())


# ---------------------------------------------------------------------------------------------
# where a key stands, and what the command line says


def located(message: str, paths: Iterable[Path | str], ours: Any = ()) -> str:
    """A message of problems, a line each that begins with a key's path, with the file and line where that key stands.

    Of several files that have the key the last one counts, as it is laid over the others. `ours` has the keys that a command line sets,
    which stand in no file.
    """
    places: dict[str, str] = {}
    for path in paths:
        with contextlib.suppress(InputError):
            places |= {key: f"{path}, line {line}" for key, line in _lines_of(composed(path), "")}
    given = set(_dotted(ours))

    def placed(line: str) -> str:
        keys = line.strip().partition(": ")[0].split(".") if line.startswith("  ") else []
        for length in range(len(keys), 1 if len(keys) > 1 else 0, -1):
            key = ".".join(keys[:length])
            if key in given:
                return line
            if key in places:
                return f"{line} ({places[key]})"
        return line

    return "\n".join(map(placed, message.split("\n")))


def _lines_of(node: yaml.MappingNode, above: str) -> Iterator[tuple[str, int]]:
    """The path of each key of a block, as `experiments.NAME.training`, and its line."""
    for key, value in node.value:
        path = f"{above}{key.value}"
        yield path, key.start_mark.line + 1
        if isinstance(value, yaml.MappingNode) and path.count(".") < _DEEPEST:  # a YAML alias may refer to a block that contains it
            yield from _lines_of(value, f"{path}.")


_DEEPEST = 10
"""Blocks inside each other; no key of a configuration lies deeper."""


def _dotted(values: Any, above: str = "") -> Iterator[str]:
    for key, value in values.items() if hasattr(values, "items") else ():
        yield f"{above}{key}"
        yield from _dotted(value, f"{above}{key}.")


def with_nulls(values: Any, ours: Any) -> Any:
    """`values` with nothing where the command line, which has set `ours`, says null or ~: Snakemake takes both for words."""
    if not (hasattr(values, "items") and hasattr(ours, "items")):
        return None if ours in ("null", "~") and values == ours else values
    return {key: with_nulls(value, ours[key]) if key in ours else value for key, value in values.items()}
