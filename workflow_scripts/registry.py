"""registry: the door. Every noise, objective, family, metric, analysis and task comes in here, ours and anybody's.

An entry has a kind, a name, and what the rest of the pipeline must know of it: the words of the report, settings, what it needs. The
decorator of its kind registers it. That stands in the room of the kind (`noise.entry`, …), and the package `crossgap` exports it.

Modules of ours are named in `BUILT_IN`. A stranger's are *plugins*, named in the configuration (`plugins: [my_bridge.py]`): a file, an
importable module, or the name that an installed package gives to an entry point of the group `crossgap.plugins`. After it is loaded,
nothing knows the difference.

A plugin is code that runs with the rights of whoever runs Crossgap.
"""

import functools
import hashlib
import importlib
import importlib.metadata
import importlib.util
import os
import sys
import traceback
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from workflow_scripts import lazily
from workflow_scripts.errors import InputError
from workflow_scripts.names import instead, is_name

BUILT_IN: dict[str, tuple[str, ...]] = {
    "noise": ("workflow_scripts.noise.codeswitch",),
    "objective": ("workflow_scripts.training.pretraining",),
    "analysis": (
        "workflow_scripts.evidence.cka",
        "workflow_scripts.evidence.spectra",
        "workflow_scripts.evidence.separability",
    ),
    "metric": ("workflow_scripts.evidence.scores",),
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

FOLDERS = ("noise", "analysis", "task")
"""Kinds whose names are names of folders, or words of a command."""

GROUP = "crossgap.plugins"
"""The group of entry points by which an installed package offers plugins."""

VARIABLE = "CROSSGAP_PLUGINS"
"""The environment variable that names the plugins of a job, separated as in PATH."""


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


@dataclass(frozen=True)
class Plugin:
    """A plugin that was loaded."""

    name: str
    """What the configuration calls it: a path or the name of a module."""
    files: tuple[Path, ...]
    """Its source files: one, or all of a package."""
    entries: tuple[tuple[str, str], ...]
    """Kind and name of what it registered."""
    heavy: tuple[str, ...]
    """Of `HEAVY` what was imported for the first time while it was loaded."""

    @property
    def sha256(self) -> str:
        """The checksum of its files, in hexadecimal."""
        sums = [hashlib.sha256(path.read_bytes()).hexdigest() for path in self.files]
        return sums[0] if len(sums) == 1 else hashlib.sha256("".join(sums).encode()).hexdigest()


HEAVY = ("torch", "transformers", "ctranslate2", "tensorflow", "jax")
"""Libraries that take seconds to import; a plugin imports them inside of functions, since each job loads it."""

_ENTRIES: dict[str, dict[str, Entry]] = {}
_PLUGINS: dict[str, Plugin] = {}
_LOADING: list[str] = []


# ---------------------------------------------------------------------------------------------
# entries


def register(kind: str, entry: Entry) -> None:
    """Add an entry. Raises `InputError` where its name is no name, or is taken."""
    if _LOADING:
        object.__setattr__(entry, "plugin", _LOADING[-1])
    if kind in FOLDERS and not is_name(entry.name):
        raise InputError(f"{kind} {entry.name!r}: names are letters, digits, - and _ only, and no - at the beginning")
    if _LOADING:
        _load_built_in(kind)
    taken = _ENTRIES.setdefault(kind, {}).get(entry.name)
    if taken and taken.plugin != entry.plugin:
        raise InputError(f"{kind} {entry.name!r}: the name is taken by {taken.plugin or 'Crossgap itself'}; choose another one")
    _ENTRIES[kind][entry.name] = entry
    version.cache_clear()


def entries(kind: str) -> Mapping[str, Any]:
    """Name → entry, of all entries of a kind; ours come first."""
    _load_built_in(kind)
    return _ENTRIES.get(kind, {})


def entry(kind: str, name: str) -> Any:
    """The entry of this kind and name; raises `InputError` if there is none."""
    known = entries(kind)
    if name not in known:
        raise InputError(f"there is no {kind} {name!r}{instead(name, known)}{_without_plugins()}")
    return known[name]


def _load_built_in(kind: str) -> None:
    for module in BUILT_IN.get(kind, ()):
        import_ours(module)


def import_ours(module: str) -> ModuleType:
    """Import a module of ours: what it registers is not the plugin's that happens to ask for it first."""
    waiting, _LOADING[:] = _LOADING[:], []
    try:
        return importlib.import_module(module)
    finally:
        _LOADING[:] = waiting


def _without_plugins() -> str:
    return "" if _PLUGINS else "; if a plugin has it, name the plugin: `plugins` in the configuration, or --plugins FILE behind a command"


class Named:
    """Annotation of a setting that is the name of an entry: ``data: Annotated[str, Named("noise", "task")]``.

    `more` are names that are allowed beside those of the entries. Pydantic and the JSON schema see a choice of names, as they are when the
    schema is made: after plugins were loaded.
    """

    def __init__(self, kind: str, *more: str):
        self.kind, self.more = kind, more

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        """Pydantic's schema of one of the names."""
        from pydantic_core import core_schema

        return core_schema.literal_schema([*entries(self.kind), *self.more])


@functools.cache
def version() -> object:
    """An object that is another one after something was registered: what is made of entries is cached by it."""
    return object()


# ---------------------------------------------------------------------------------------------
# plugins


def plugins() -> Mapping[str, Plugin]:
    """The plugins that were loaded, by their names."""
    return _PLUGINS


def load_plugins(names: Iterable[str]) -> None:
    """Load plugins, each once: files (what ends in .py, or has a slash), entry points, or importable modules.

    Raises `InputError` for one that is not there, fails, or registers nothing.
    """
    for name in names:
        # a file is one plugin, whatever way leads to it
        key = str(Path(os.path.expanduser(name)).resolve()) if _is_file(name) else name
        if key not in _PLUGINS:
            _PLUGINS[key] = _load(key, name)


def _is_file(name: str) -> bool:
    return name.endswith(".py") or os.sep in name


def load_from_environment() -> None:
    """Load the plugins that the environment names, as rules do for their jobs."""
    load_plugins(filter(None, os.environ.get(VARIABLE, "").split(os.pathsep)))


def _load(key: str, name: str) -> Plugin:
    there = {heavy for heavy in HEAVY if lazily.is_loaded(heavy)}
    _LOADING.append(key)
    try:
        module = _imported(key)
    except InputError as error:
        raise InputError(f"plugin {name}: {error}") from None
    except BaseException as error:  # whatever a stranger's file does, down to exit()
        raise InputError(f"plugin {name}: {_where(error, key)}") from None
    finally:
        _LOADING.pop()
    own = tuple((kind, one) for kind, some in _ENTRIES.items() for one in some if some[one].plugin == key)
    if not own:
        raise InputError(f"plugin {name}: registers nothing; decorate a function of it, for example with crossgap.noise")
    heavy = tuple(library for library in HEAVY if lazily.is_loaded(library) and library not in there)
    return Plugin(name, _files(module), own, heavy)


def _imported(name: str) -> ModuleType:
    """The module of a plugin. Raises `InputError` where there is none."""
    if _is_file(name):
        path = Path(name)
        if not path.is_file():
            raise InputError(f"there is no such file (looked for {path})")
        called = f"crossgap_plugin_{hashlib.sha256(name.encode()).hexdigest()[:8]}_{path.stem}"
        spec = importlib.util.spec_from_file_location(called, path)
        if spec is None or spec.loader is None:
            raise InputError("is no Python file")
        module = importlib.util.module_from_spec(spec)
        sys.modules[called] = module  # dataclasses look their module up
        spec.loader.exec_module(module)
        return module
    for point in importlib.metadata.entry_points(group=GROUP, name=name):
        return importlib.import_module(point.module)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name and not f"{name}.".startswith(f"{error.name}."):
            raise
        raise InputError("is neither a file (which ends in .py), nor a module that can be imported here, nor an entry point") from None


def _files(module: ModuleType) -> tuple[Path, ...]:
    source = Path(module.__file__ or "")
    return tuple(sorted(source.parent.rglob("*.py"))) if source.name == "__init__.py" else (source,)


def _where(error: BaseException, name: str) -> str:
    """What failed in a plugin: file, line, sentence."""
    if isinstance(error, SyntaxError):
        return f"line {error.lineno} of {error.filename}: {error.msg}"
    stem = Path(name).name
    frames = traceback.extract_tb(error.__traceback__)
    own = next((frame for frame in reversed(frames) if Path(frame.filename).name == stem), frames[-1])
    return f"line {own.lineno} of {own.filename}, `{own.line}`: {type(error).__name__}: {error}"


def plugin_files(*used: Entry | None) -> list[str]:
    """The files of the plugins that these entries come from, each once: what jobs that use the entries are made of."""
    names = dict.fromkeys(one.plugin for one in used if one and one.plugin)
    return [str(path) for name in names for path in _PLUGINS[name].files]


def described() -> dict[str, str]:
    """Plugin → its SHA-256, for the provenance."""
    return {plugin.name: plugin.sha256 for plugin in _PLUGINS.values()}


def of_plugins(kind: str) -> Iterator[Any]:
    """The entries of a kind that come from plugins."""
    return (one for one in entries(kind).values() if one.plugin)
