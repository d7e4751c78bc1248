"""registry: the door. Every noise, objective, family, metric, analysis and task comes in here, ours and anybody's.

An entry has a kind, a name, and what the pipeline must know of it: the words of the report, settings, what it needs. The
decorator of its kind registers it. That stands in the room of the kind (`noise.entry`, …), and the package `crossgap` exports it.

Modules of ours are named in `BUILT_IN`; strangers' are plugins (`plugins`). After one is loaded, nothing knows the difference.
"""

import functools
import importlib
import sys
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from types import ModuleType
from typing import Any

from workflow_scripts.errors import InputError
from workflow_scripts.names import instead, is_name

BUILT_IN: dict[str, tuple[str, ...]] = {
    "noise": ("workflow_scripts.noise.switching",),
    "family": ("workflow_scripts.models.families",),
    "objective": (
        "workflow_scripts.training.pretraining",
        "workflow_scripts.training.span_corruption",
        "workflow_scripts.training.alternating",
    ),
    "adapter": ("workflow_scripts.training.lora", "workflow_scripts.training.freezing", "workflow_scripts.training.widening"),
    "analysis": ("workflow_scripts.evidence.cka", "workflow_scripts.evidence.separability", "workflow_scripts.evidence.spectra"),
    "engine": ("workflow_scripts.models.engines", "workflow_scripts.models.serving"),
    "generator": ("workflow_scripts.training.writing",),
    "metric": ("workflow_scripts.evidence.scores",),
    "label_metric": ("workflow_scripts.evidence.label_metric",),
    "task": (
        "workflow_scripts.tasks.translation",
        "workflow_scripts.tasks.classification",
        "workflow_scripts.tasks.labelling",
        "workflow_scripts.tasks.answering",
        "workflow_scripts.tasks.ranking",
        "workflow_scripts.tasks.retrieval",
        "workflow_scripts.tasks.generation",
    ),
}
"""Kind → the modules of ours that register its entries."""

FOLDERS = ("noise", "objective", "analysis", "task")
"""Kinds whose names are names of folders, or words of a command."""

RESERVED = {"noise": ("task",), "objective": ("task",), "metric": ("COMET", "cosine")}
"""Kind → names that mean something else where entries of the kind are named."""

TOGETHER = {"noise": "objective", "objective": "noise"}
"""Kinds that are named in one place: a phase's `data`."""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """What every entry says of itself."""

    name: str
    """What configurations call it."""
    label: str
    """What the report calls it."""
    source: str = ""
    """Where it was published: paper, section or equation."""
    settings: type | None = None
    """A dataclass with its settings, each of which has a default."""
    plugin: str = field(default="", compare=False)
    """The plugin that it comes from; empty for ours."""


_ENTRIES: dict[str, dict[str, Entry]] = {}
_MODULES: dict[tuple[str, str], str] = {}
"""The module of ours that registered an entry, by kind and name."""
_COMPLETE: set[str] = set()
LOADING: list[str] = []
"""The plugins that are being loaded, the innermost last: what is registered meanwhile is theirs."""


# ---------------------------------------------------------------------------------------------
# entries


def register(kind: str, entry: Entry) -> None:
    """Add an entry. Raises `InputError` where its name is no name, or is taken, or where a setting of it has no default."""
    module = _module_of_ours()
    if LOADING and not module:
        object.__setattr__(entry, "plugin", LOADING[-1])
    if not isinstance(entry.name, str) or (kind in FOLDERS and not is_name(entry.name)):
        raise InputError(f"{kind} {entry.name!r}: names are letters, digits, - and _ only, and no - at the beginning")
    if entry.name != " ".join(entry.name.split()) or not entry.name:
        raise InputError(f"{kind} {entry.name!r}: a name has no line breaks, tabs, or blanks at its ends")
    if entry.name in RESERVED.get(kind, ()):
        raise InputError(f"{kind} {entry.name!r}: the name means something else; choose another one")
    _check_settings(kind, entry)
    if entry.plugin:
        _load_built_in(kind)
    beside = TOGETHER.get(kind, "")
    if other := _ENTRIES.get(beside, {}).get(entry.name):
        raise InputError(f"{kind} {entry.name!r}: {other.plugin or 'Crossgap itself'} has the {beside} {entry.name!r}; choose another name")
    taken = _ENTRIES.setdefault(kind, {}).get(entry.name)
    if taken and taken.plugin != entry.plugin:
        raise InputError(f"{kind} {entry.name!r}: the name is taken by {taken.plugin or 'Crossgap itself'}; choose another one")
    if taken and taken.plugin:
        raise InputError(f"{kind} {entry.name!r}: the plugin has two of this name; choose another one for the second")
    _ENTRIES[kind][entry.name] = entry
    _MODULES[kind, entry.name] = module
    version.cache_clear()


def _module_of_ours() -> str:
    """The module of ours that registers something, which a plugin that is being loaded may import first; empty if none does."""
    ours = {module for modules in BUILT_IN.values() for module in modules}
    frame = sys._getframe()
    while (above := frame.f_back) is not None:
        frame = above
        if frame.f_code.co_name == "<module>":
            name = str(frame.f_globals.get("__name__"))
            return name if name in ours else ""
    return ""


def _check_settings(kind: str, entry: Entry) -> None:
    if entry.settings is None:
        return
    if not (isinstance(entry.settings, type) and is_dataclass(entry.settings)):
        raise InputError(f"{kind} {entry.name!r}: `settings` is {entry.settings!r}; it must be a class with @dataclass above it")
    # those of a task are the whole block of an experiment, which names its corpus and backbone
    for each in fields(entry.settings) if kind != "task" else ():
        if each.default is MISSING and each.default_factory is MISSING:
            raise InputError(f"{kind} {entry.name!r}: the setting `{each.name}` has no default; give it one, as in `{each.name}: int = 3`")


def entries(kind: str) -> Mapping[str, Any]:
    """Name → entry, of all entries of a kind; ours come first."""
    _load_built_in(kind)
    return _ENTRIES.get(kind, {})


def entry(kind: str, name: str) -> Any:
    """The entry of this kind and name; raises `InputError` if there is none."""
    known = entries(kind)
    if name not in known:
        raise InputError(f"there is no {kind} {name!r}{instead(name, known)}{without_plugins()}")
    return known[name]


def _load_built_in(kind: str) -> None:
    if kind not in _COMPLETE:
        modules = BUILT_IN.get(kind, ())
        for module in modules:
            import_ours(module)
        # in one order, whichever module was imported first
        places = {module: place for place, module in enumerate(modules)}
        found = sorted(_ENTRIES.get(kind, {}).items(), key=lambda each: places.get(_MODULES[kind, each[0]], len(places)))
        _ENTRIES[kind] = dict(found)
        _COMPLETE.add(kind)


def import_ours(module: str) -> ModuleType:
    """Import a module of ours: what it registers is not the plugin's that happens to ask for it first."""
    waiting, LOADING[:] = LOADING[:], []
    try:
        return importlib.import_module(module)
    finally:
        LOADING[:] = waiting


def without_plugins() -> str:
    """What an error says of a name that a plugin may have, where none was loaded."""
    if any(one.plugin for _, one in registered()):
        return ""
    return "; if a plugin has it, name the plugin: `plugins` in the configuration, or --plugins FILE behind a command"


@functools.cache
def version() -> object:
    """An object that is another one after something was registered: what is made of entries is cached by it."""
    return object()


def forget(kind: str, name: str) -> None:
    """Take an entry out again."""
    del _ENTRIES[kind][name]
    version.cache_clear()


def registered() -> Iterator[tuple[str, Entry]]:
    """Every kind and entry, of those that were loaded."""
    return ((kind, one) for kind, some in [*_ENTRIES.items()] for one in [*some.values()])


def of_plugins(kind: str) -> Iterator[Any]:
    """The entries of a kind that come from plugins."""
    return (one for one in entries(kind).values() if one.plugin)
