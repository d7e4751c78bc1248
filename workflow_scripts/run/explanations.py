"""explanations: what pydantic refuses in a configuration, in plain words and with the way out.

An unknown key is answered with the nearest key of its own block, or with the blocks that do know it.
"""

import dataclasses
import datetime
import difflib
import re
import types
from collections.abc import Iterator
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from pydantic_core import ErrorDetails

from workflow_scripts import registry
from workflow_scripts.config.experiments import DEFAULT, OfItsTask, task_name
from workflow_scripts.names import instead
from workflow_scripts.run.loading import ALIKE, DEFINITIONS, NAMED_PARTS, WITH_PARTS


def explained(problems: list[ErrorDetails], raw: dict[str, Any], config: type) -> list[str]:
    """The problems with the configuration `raw`, whose class is `config`, a line each; what follows from another one is left out."""

    def block_of(problem: ErrorDetails) -> str:
        return ".".join(_keys(problem)[:-1])

    lines = [(problem, explain(problem, config)) for problem in problems]
    # a block whose `like` is misspelt lacks what it would have by it; one without a task has another task's keys as well
    causes: dict[tuple[str, str], str] = {}
    for problem, line in lines:
        block, section = block_of(problem), block_of(problem).partition(".")[0]
        if line.endswith("did you mean 'like'?"):
            causes[block, "missing"] = line
        elif section == "experiments" and (cause := _without_task(block.partition(".")[2], raw)):
            causes |= {(block, kind): cause for kind in ("missing", "unexpected_keyword_argument")}
    return list(dict.fromkeys(causes.get((block_of(problem), problem["type"]), line) for problem, line in lines))


def explain(problem: ErrorDetails, config: type) -> str:
    """One problem."""
    where = ".".join(_keys(problem))
    if nameless := _nameless(problem, config):
        return nameless
    if problem["type"] == "unexpected_keyword_argument":
        return f"{where}: unknown key{_known_key(problem['loc'], config)}"
    if problem["type"] == "chosen":
        said = problem["ctx"]["said"]
        return f"{where}{': ' if said.startswith('wants') else '.'}{said}"
    if problem["type"] == "missing":
        return f"{where}: is missing"
    if problem["type"] == "union_tag_not_found":
        task = task_name(problem["input"]) if isinstance(problem["input"], dict) else problem["input"]
        return f"{where}.task: there is no task {task!r}{instead(task, registry.entries('task'))}"
    if problem["type"] == "dataclass_type":
        return f"{where}: wants a block of keys, got {_as_yaml(problem['input'])}{_default(problem['input'])}"
    if problem["type"] == "dict_type":
        empty = "; for none of them write {}" if problem["input"] is None else ""
        return f"{where}: wants a block of names and what they stand for, got {_as_yaml(problem['input'])}{empty}"
    return f"{where}: {problem['msg'][0].lower()}{problem['msg'][1:]}, got {_as_yaml(problem['input'])}{_way_out(problem)}"


def _way_out(problem: ErrorDetails) -> str:
    """What to write in the place of a value of another type, or one that is none of the names; empty where that is not known."""
    kind, given = problem["type"], problem["input"]
    if kind == "list_type" and isinstance(given, str | int | float):
        return f"; write [{given}]" + (", or [1, 2, 3] for three seeds" if "seeds" in problem["loc"] else "")
    if kind == "list_type" and isinstance(given, dict):
        return "; put it into a list, also if it is alone: [{…}], or a - before it"
    if kind == "string_type" and isinstance(given, bool):
        written, word = ("yes, on and true", "yes") if given else ("no, off and false", "no")
        return f'; YAML takes {written} for a truth value: put the word in quotes, as in "{word}"'
    if kind == "string_type" and isinstance(given, int | float | datetime.date):
        what = "date" if isinstance(given, datetime.date) else "number"
        return f'; YAML takes it for a {what}: write "{given}" in quotes'
    if kind == "int_parsing" and (whole := _whole_number(given)) is not None:
        return f"; write it out: {whole}"
    if kind == "invalid_key" and isinstance(given, int):
        return "; a comma ends a value in { }: write decimals with a point"
    if kind == "literal_error" and isinstance(given, str):
        if found := _nearest(given, re.findall(r"'([^']+)'", problem["ctx"]["expected"])):
            return f"; did you mean {found!r}?"
        return f"; {SWITCHED_ON[given.lower()]}" if given.lower() in SWITCHED_ON else ""
    return _default(given)


def _default(value: object) -> str:
    return "; leave the key out for its default" if value is None else ""


def _as_yaml(value: object) -> str:
    """A value as a configuration file has it; YAML has other words than Python for nothing, true and false."""
    return {None: "null", True: "true", False: "false"}[value] if value is None or isinstance(value, bool) else repr(value)


def _whole_number(text: object) -> int | None:
    """The whole number that a text such as 1e4 means, which YAML takes for no number; None if it means none."""
    try:
        number = float(str(text))
        return int(number) if number.is_integer() else None
    except (ValueError, OverflowError):
        return None


def _keys(problem: ErrorDetails) -> list[str]:
    """The keys that lead to what is wrong."""
    loc = problem["loc"]
    if loc[:1] == ("experiments",):
        loc = (*loc[:2], *loc[3:])  # without the name of the settings class, which is no key
    # of a value of several types, the name of one of them is no key either
    loc = loc[:-1] if len(loc) > 2 and str(loc[-1]) in _TYPES else loc
    return [str(part) for part in loc if not str(part).startswith(_OF_TYPES)]


_TYPES = ("bool", "int", "float", "str", "none")
_OF_TYPES = ("constrained-", "function-before[", "literal[", "[key]", "list[", "dict[", "tuple[", "nullable[")
"""What pydantic calls a type in the place of a key."""


def _nearest(name: str, known: Any, cutoff: float = 0.61) -> str | None:
    """The known name that is most alike, whatever its case; none where all are less alike than `cutoff`."""
    by_case = {str(one).lower(): str(one) for one in known}
    found = difflib.get_close_matches(name.lower(), by_case, n=1, cutoff=cutoff)  # corpus is near corpora; epochs and each are not alike
    return by_case[found[0]] if found else None


def _known_key(loc: tuple[int | str, ...], config: type) -> str:
    """What an unknown key should be: the nearest of its own block, or the blocks that have a key of this name."""
    key, own = str(loc[-1]), {field.name for kind in _kinds_at(loc[:-1], config) for field in dataclasses.fields(kind)}
    if len(loc) - (loc[0] == "experiments") == 3:
        own |= {"like"} if loc[0] in ALIKE else set()
        own |= {"each"} if loc[0] in DEFINITIONS else set()
    near = called if (called := ELSEWHERE.get(key)) in own else _nearest(key, own)
    hint = f", did you mean {near!r}?" if near else ""
    places = list(dict.fromkeys(place for place, name in _places(config) if name == key))
    if _nearest(key, own, 0.8) or not places:
        return hint
    elsewhere = f"{' and '.join(places[:3])} {'has' if len(places) == 1 else 'have'} a key of this name"
    return f"{hint} ({elsewhere})" if hint else f"; {elsewhere}"


ELSEWHERE = {
    "lr": "learning_rate",
    "steps": "updates",
    "max_steps": "updates",
    "max_updates": "updates",
    "warmup_steps": "warmup_updates",
    "warmup_ratio": "warmup",
    "max_tokens": "batch_tokens",
    "num_beams": "beam_size",
    "beam": "beam_size",
    "early_stopping": "patience",
    "early_stopping_patience": "patience",
    "num_train_epochs": "epochs",
    "max_seq_length": "max_length",
    "hidden_size": "d_model",
}
"""What other programs call a setting, and its name here."""


SWITCHED_ON = {"comet": "`comet: {}` in the experiment switches it on"}
"""What users look for among the values of a setting, and the setting of its own that it has here."""


def _nameless(problem: ErrorDetails, config: type) -> str | None:
    """That a test set has no name, where the settings of one stand in the place of names."""
    loc = problem["loc"]
    if len(loc) < 4 or loc[0] not in WITH_PARTS or loc[2] not in NAMED_PARTS:
        return None
    if str(loc[3]) not in {field.name for kind in _kinds_at((*loc[:3], "name"), config) for field in dataclasses.fields(kind)}:
        return None
    return f"{'.'.join(map(str, loc[:3]))}: holds test sets by name; write `{loc[2]}: {{NAME: {{{loc[3]}: …}}}}`"


def _without_task(name: str, raw: dict[str, Any]) -> str | None:
    """That an experiment names no task, although its text is not that of a translation."""
    block = raw.get("experiments", {}).get(name)
    if not isinstance(block, dict) or "task" in block or not isinstance(text := block.get("corpus"), str) or text in raw.get("corpora", {}):
        return None
    section = next((each for each in ("labelled", "aligned") if text in raw.get(each, {})), None)
    fitting = [task for task, about in registry.entries("task").items() if about.text == section]
    of = f"{text!r} is defined under `{section}`, for {', '.join(fitting)}" if section else ""
    return f"experiments.{name}.task: is missing, and without it the task is {DEFAULT}; {of}" if section else None


# ---------------------------------------------------------------------------------------------
# the classes of blocks


def _kinds_at(loc: tuple[int | str, ...], config: type) -> list[type]:
    """The settings classes of the block at a place of the configuration; several where its kind is not known."""
    kinds: list[Any] = [config]
    for part in loc:
        if chosen := [kind for kind in kinds if getattr(kind, "__name__", "") == part]:
            kinds = chosen  # of a value of several types, pydantic says which one it took
        else:
            kinds = [below for kind in kinds for below in _below(kind, str(part))]
    return [kind for kind in kinds if isinstance(kind, type) and dataclasses.is_dataclass(kind)]


def _below(kind: Any, key: str) -> Iterator[Any]:
    """What a value of this kind has at a key: classes, mappings and lists, without the unions around them."""
    if dataclasses.is_dataclass(kind):
        hints = get_type_hints(kind, include_extras=True)
        yield from _alternatives(hints[key]) if key in hints else ()
    elif get_origin(kind) in (dict, list):
        yield from _alternatives(get_args(kind)[-1])


def _alternatives(kind: Any) -> Iterator[Any]:
    if get_origin(kind) is Annotated:
        of_tasks = (one for each in get_args(kind)[1:] if isinstance(each, OfItsTask) for one in each.kinds())
        yield from [*of_tasks] or _alternatives(get_args(kind)[0])
    elif get_origin(kind) in (Union, types.UnionType):
        for one in get_args(kind):
            yield from _alternatives(one)
    else:
        yield kind


def _places(kind: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Every block, as `corpora.NAME.train`, with each of its keys; blocks nearer to the top first."""
    waiting = [(path, kind)]
    for path, kind in waiting:
        if dataclasses.is_dataclass(kind):
            for name, hint in get_type_hints(kind, include_extras=True).items():
                yield path or "the top level", name
                waiting += [(f"{path}.{name}".strip("."), one) for one in _alternatives(hint)]
        elif get_origin(kind) in (dict, list):
            waiting += [(f"{path}.NAME" if get_origin(kind) is dict else path, one) for one in _alternatives(get_args(kind)[-1])]
