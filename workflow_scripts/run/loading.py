"""loading: expands shorthand in configuration files into plain values.

It writes out definitions with an `each`, and completes those with a `like` by the definition that they name. It replaces patterns of names
by the names, reads published numbers from their tables, and moves lists of training values to grids. The types refuse what is malformed
otherwise.
"""

import dataclasses
import fnmatch
import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_origin

from workflow_scripts import registry
from workflow_scripts.config.experiments import task_name
from workflow_scripts.models.templates import LABEL_PLACES, PLACES
from workflow_scripts.names import instead
from workflow_scripts.run.config_files import at_home
from workflow_scripts.stage import InputError, read_rows, resource
from workflow_scripts.tasks.entry import Task
from workflow_scripts.tasks.writing_checks import TRAINING_TYPES


def written_out(raw: dict[str, Any]) -> dict[str, Any]:
    """The configuration as Snakemake has merged it, with all shorthand expanded."""
    return _with_grids(_with_defaults(with_published(spelt_out(at_home(raw)))))


def spelt_out(raw: dict[str, Any]) -> dict[str, Any]:
    """`raw` with one definition for each combination of the values that a definition's `each` lists.

    `experiments: {"{other}-en": {each: {other: [de, tr]}, source: "{other}", …}}` defines `de-en` and `tr-en`;
    `each: [{source: de, target: en}, {source: en, target: de}]` lists the combinations themselves. A
    definition of one of these names is laid over what `each` makes, a second `each` over the first. In `run.experiments` the names may have
    the wildcards of a shell.

    After that, a definition with `like: NAME` is laid over the definition of that name (`_with_likes`). A template with `each` may
    therefore have a `like` with the template's own placeholders, and any definition may be like one that `each` has made.

    Raises `InputError` where an `each` is malformed or makes a name twice, and where a `like` names nothing or leads back to itself.
    """
    if not isinstance(raw, dict):
        return raw
    spelt = {section: _section_written_out(section, blocks) if section in DEFINITIONS else blocks for section, blocks in raw.items()}
    run, experiments = spelt.get("run"), spelt.get("experiments")
    if isinstance(run, dict) and isinstance(run.get("experiments"), list) and isinstance(experiments, dict):
        names: list[Any] = []
        matched: list[Any] = []
        for name in run["experiments"]:
            if not set("*?[") & set(str(name)):
                # one that a pattern before it has brought is there already
                names += [name] if name not in matched else []
                continue
            if not (alike := [each for each in fnmatch.filter(map(str, experiments), str(name)) if each not in names]):
                known = ", ".join(map(str, experiments))
                raise InputError(
                    f"config:\n  run.experiments: {name!r} matches no experiment, or only such that are listed already; there are {known}"
                )
            names += alike
            matched += alike
        spelt["run"] = {**run, "experiments": names}
    return spelt


DEFINITIONS = ("data", "corpora", "labelled", "aligned", "lexicons", "backbones", "experiments", "analyses")
"""The sections in which a definition may have an `each`."""


def _section_written_out(section: str, blocks: Any) -> Any:
    if not isinstance(blocks, dict):
        return blocks
    spelt = _spelt(section, blocks)
    for name, block in spelt.items():
        if isinstance(block, dict) and section in WITH_PARTS:
            parts = {part: _spelt(f"{section}.{name}.{part}", block[part]) for part in NAMED_PARTS if isinstance(block.get(part), dict)}
            spelt[name] = {**block, **parts}
    # a corpus has one dev set, text for retrieval several by name
    by_name = BY_NAME | ({"dev"} if section == "aligned" else set())
    spelt = {name: _without_nulls(block, by_name) for name, block in spelt.items()}
    return _with_likes(section, spelt, by_name) if section in ALIKE else spelt


def _without_nulls(block: Any, by_name: set[str], own: bool = False) -> Any:
    """`block` without the keys of a user's own that are null: so a recipe drops a column, or a test set, of what it is laid over.

    With `own` those of the block itself are the user's, and those of its settings that are in `by_name` always. Of the settings of an
    entry (`_OF_ENTRIES`) null is a value.
    """
    if isinstance(block, list):
        return [_without_nulls(each, by_name) for each in block]
    if not isinstance(block, dict):
        return block
    return {
        key: value if key in _OF_ENTRIES else _without_nulls(value, by_name, key in by_name)
        for key, value in block.items()
        if not (own and value is None)
    }


WITH_PARTS = ("corpora", "labelled", "aligned")
"""The sections whose definitions have test sets by name, which may have an `each` as well."""
NAMED_PARTS = ("test", "dev", "translations", "more_dev")
"""Their settings whose keys are names of parts; `dev` where it has several."""


def _spelt(section: str, blocks: dict[str, Any]) -> dict[str, Any]:
    """The definitions of a block, those with an `each` written out, in its order."""
    made: dict[str, Any] = {}
    own_names: dict[str, None] = {}  # in the order in which the file has them
    for name, block in blocks.items():
        if not isinstance(block, dict) or "each" not in block:
            own_names[name] = None
            continue
        where, each = f"{section}.{name}.each", block["each"]
        if not (points := _points(each)):
            raise InputError(
                f"config:\n  {where}: wants lists of values by name, like {{other: [de, tr]}}, or a list of such values, got {each!r}"
            )
        rest = {key: value for key, value in block.items() if key != "each"}
        keys = {name, *_keys_in(rest)}
        unfit = (f"{{{key}}}" for point in points for key, value in point.items() if isinstance(value, dict | list))
        if wrong := next((place for place in unfit if place in keys), None):
            what = "the definition's name" if wrong == name else "a key of the definition"
            raise InputError(f"config:\n  {where}: {wrong} is {what}, so its values must be texts or numbers, got {each!r}")
        names = [_filled_in(name, point) for point in points]
        if twice := next((own for own in names if names.count(own) > 1), None):
            raise InputError(
                f"config:\n  {where}: makes {twice!r} twice; the name must tell them apart, as with {{{next(iter(points[0]))}}} in it"
            )
        for own, point in zip(names, points, strict=True):
            made[own] = _merged(made.get(own), _filled_in(rest, point))
            own_names[own] = None
    others = {name: block for name, block in blocks.items() if not (isinstance(block, dict) and "each" in block)}
    spelt = {**made, **{name: _merged(made[name], block) if name in made else block for name, block in others.items()}}
    return {name: spelt[name] for name in own_names}


ALIKE = ("corpora", "labelled", "aligned", "lexicons", "backbones", "experiments", "analyses")
"""The sections in which a definition may have a `like`."""

BY_NAME = {"columns", "cut", "dictionary", "files", "gold", "grid", "label_names", "models", "target_where", "test", "text", "vectors"}
BY_NAME |= {"by", "engine_settings", "more_dev", "objective_settings", "translations", "where", "words"}
"""The settings whose keys are languages, pairs or names of the user's own. `like` replaces them as a whole: a corpus of French and
English that is like one of German and English does not keep the German column."""

_OF_ENTRIES = {"engine_settings", "objective_settings"}
"""Those of `BY_NAME` whose keys are the settings of an entry."""

ORIGINS = {"file", "files", "data", "held_out"}
"""Where a part of a corpus may come from. `like` replaces the part as a whole when it comes from somewhere else."""


def _with_likes(section: str, blocks: dict[str, Any], by_name: set[str]) -> dict[str, Any]:
    """`blocks` with each definition that has a `like` laid over the definition that it names, which may have a `like` itself.

    Blocks of settings are merged key by key. A list replaces a list, and what `by_name` and `ORIGINS` name is replaced as a whole.
    Raises `InputError` for a name that is not defined and for a circle.
    """

    def completed(name: str, users: tuple[str, ...]) -> Any:
        block = blocks[name]
        if not isinstance(block, dict) or "like" not in block:
            return block
        where, named = f"config:\n  {section}.{name}.like", block["like"]
        own = {key: value for key, value in block.items() if key != "like"}
        if not isinstance(named, str):
            raise InputError(f"{where}: wants the name of one definition in {section}, got {named!r}")
        if named not in blocks:
            raise InputError(f"{where}: {named!r} is not defined{instead(named, blocks)}")
        if named in (*users, name):
            raise InputError(f"{where}: leads back to itself ({' → '.join((*users, name, named))}); define one of them without `like`")
        below = completed(named, (*users, name))
        if section == "experiments" and isinstance(below, dict) and (foreign := _foreign(below, own)):
            raise InputError(
                f"{where}: {named!r} is an experiment of the task {task_name(below)}, whose {', '.join(foreign)} the task {task_name(own)} "
                "has not; name one of the same task, or leave `like` out"
            )
        return _merged_by_like(below, own, by_name)

    return {name: completed(name, ()) for name in blocks}


def _foreign(below: dict[str, Any], own: dict[str, Any]) -> list[str]:
    """The settings of an experiment that one of another task, which is like it, cannot have."""
    task = _task(own) if "task" in own and task_name(own) != task_name(below) else None
    known = {"like", *(field.name for field in dataclasses.fields(task.settings))} if task else {*below}
    return [str(key) for key in below if key not in known and key not in own]


def _merged_by_like(below: Any, above: Any, by_name: set[str]) -> Any:
    """`above` laid over `below` as `like` does it: what `by_name` and `ORIGINS` name is replaced as a whole."""
    if not (isinstance(below, dict) and isinstance(above, dict)) or ORIGINS & above.keys() - below.keys():
        return above
    own = {key: value if key in by_name else _merged_by_like(below.get(key), value, by_name) for key, value in above.items()}
    return {**below, **own}


def _points(each: Any) -> list[dict[str, Any]]:
    """What `each` lists: all combinations of its lists, or its own mappings; nothing if it is neither, or says nothing."""
    if isinstance(each, dict) and all(isinstance(values, list) for values in each.values()):
        return [dict(zip(each, values, strict=True)) for values in itertools.product(*each.values())]
    if isinstance(each, list) and all(isinstance(point, dict) and point and point.keys() == each[0].keys() for point in each):
        return each
    return []


def _keys_in(value: Any) -> Iterator[Any]:
    """All keys of a block and of what is in it."""
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _keys_in(item)
    yield from value if isinstance(value, dict) else ()


def _filled_in(value: Any, point: dict[str, Any], places: tuple[str, ...] = ()) -> Any:
    """`value` with `{key}` replaced by the point's value in all strings.

    A string that is only the placeholder becomes the value, type included. Templates have `places` of their own, which stay.
    """
    if isinstance(value, dict):
        return {_filled_in(key, point, places): _filled_in(item, point, _PLACES.get(key, places)) for key, item in value.items()}
    if isinstance(value, list):
        return [_filled_in(item, point, places) for item in value]
    if not isinstance(value, str):
        return value
    for key, replacement in point.items():
        if key in places:
            continue
        if value == f"{{{key}}}":
            return replacement
        value = value.replace(f"{{{key}}}", str(replacement))
    return value


_PLACES = {"templates": PLACES, "verbaliser": LABEL_PLACES, "examples": (), "examples_in": (), "words": ()}
"""A block with templates → the places in these; none in those of its settings that are no templates."""


def _merged(below: Any, above: Any) -> Any:
    """`above` laid over `below`, key by key in blocks inside blocks."""
    if not (isinstance(below, dict) and isinstance(above, dict)):
        return above
    return {**below, **{key: _merged(below.get(key), value) for key, value in above.items()}}


def with_published(raw: dict[str, Any]) -> dict[str, Any]:
    """`raw` with the published numbers of experiments that name a file for them; raises `InputError` where it cannot be read."""

    def read(name: str, block: Any) -> Any:
        if not (isinstance(block, dict) and isinstance(block.get("published"), str)):
            return block
        return {**block, "published": _published_in(block["published"], name)}

    return _with_each_experiment(raw, read)


def _with_each_experiment(raw: dict[str, Any], change: Callable[[str, Any], Any]) -> dict[str, Any]:
    """`raw` with each experiment's block changed; what is malformed stays as it is, for the types to refuse."""
    experiments = raw.get("experiments") if isinstance(raw, dict) else None
    if not isinstance(experiments, dict):
        return raw
    return {**raw, "experiments": {name: change(name, block) for name, block in experiments.items()}}


def _published_in(path: str, experiment: str) -> list[dict[str, Any]]:
    try:
        rows = read_rows(Path(resource(path)))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"config:\n  experiments.{experiment}.published: {path} cannot be read: {error}") from None
    if not rows or "experiment" not in rows[0]:
        raise InputError(f"config:\n  experiments.{experiment}.published: {path} has no column `experiment`, or no rows")
    own = [row for row in rows if row.pop("experiment") == experiment]
    return [{key: value for key, value in row.items() if value} for row in own]


def _with_defaults(raw: dict[str, Any]) -> dict[str, Any]:
    """`raw` with what holds for an experiment's task where its block does not say otherwise."""

    def filled(_: str, block: Any) -> Any:
        task = _task(block)
        for key, defaults in task.defaults.items() if task else ():
            own = block.get(key, {})
            block = {**block, key: {**defaults, **own} if isinstance(own, dict) else own}
        return block

    return _with_each_experiment(raw, filled)


def _task(block: Any) -> Task | None:
    """The task of an experiment's raw block; None if the block is malformed, which is reported later."""
    named = task_name(block) if isinstance(block, dict) else None
    return registry.entries("task").get(named) if isinstance(named, str) else None


def _with_grids(raw: dict[str, Any]) -> dict[str, Any]:
    """`raw` with the lists in experiments' `training`, or in the settings of their head, moved to their `grid`.

    What is malformed stays for the validation.
    """

    def moved(_: str, block: Any) -> Any:
        task = _task(block)
        chosen = block.get(task.grid) if task and task.grid else None
        chosen = chosen if isinstance(chosen, dict) else {}
        lists = {key: value for key, value in chosen.items() if _is_grid(key, value)}
        if task and lists and isinstance(block.get("grid") or {}, dict):
            first = {key: value[0] for key, value in lists.items() if key != "epochs"}
            grid = {**(block.get("grid") or {}), **{key: value for key, value in lists.items() if len(value) > 1 or key == "epochs"}}
            # a list of epochs is no setting of a head; a number of them beside it is left to be refused
            rest = {key: value for key, value in chosen.items() if key != "epochs" or key not in lists or task.grid == "training"}
            return {**block, task.grid: {**rest, **first}, "grid": grid}
        return block

    return _with_each_experiment(raw, moved)


def _is_grid(key: str, value: Any) -> bool:
    """A list in place of a value; of lists, where the value is a list itself."""
    return isinstance(value, list) and bool(value) and (get_origin(TRAINING_TYPES.get(key)) is not tuple or isinstance(value[0], list))
