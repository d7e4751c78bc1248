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
import inspect
import os
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from workflow_scripts import lazily
from workflow_scripts.errors import InputError
from workflow_scripts.names import instead, is_name

BUILT_IN: dict[str, tuple[str, ...]] = {
    "noise": ("workflow_scripts.noise.switching",),
    "family": ("workflow_scripts.models.families",),
    "objective": ("workflow_scripts.training.pretraining", "workflow_scripts.training.span_corruption"),
    "adapter": ("workflow_scripts.training.lora", "workflow_scripts.training.freezing"),
    "analysis": (
        "workflow_scripts.evidence.cka",
        "workflow_scripts.evidence.spectra",
        "workflow_scripts.evidence.separability",
    ),
    "engine": ("workflow_scripts.models.engines",),
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

GROUP = "crossgap.plugins"
"""The group of entry points by which an installed package offers plugins."""

RESERVED = {"noise": ("task",), "objective": ("task",), "metric": ("COMET", "cosine")}
"""Kind → names that mean something else where entries of the kind are named."""

TOGETHER = {"noise": "objective", "objective": "noise"}
"""Kinds that are named in one place: a phase's `data`."""

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
    """Of `HEAVY` what it imports when it is loaded, as far as no plugin before it has."""
    sha256: str
    """The checksum of its files as they were loaded, in hexadecimal; a job may run for days after they were edited."""


HEAVY = ("torch", "transformers", "ctranslate2", "tensorflow", "jax")
"""Libraries that take seconds to import; a plugin imports them inside of functions, since each job loads it."""

_ENTRIES: dict[str, dict[str, Entry]] = {}
_PLUGINS: dict[str, Plugin] = {}
_LOADING: list[str] = []


# ---------------------------------------------------------------------------------------------
# entries


def register(kind: str, entry: Entry) -> None:
    """Add an entry. Raises `InputError` where its name is no name, or is taken, or where a setting of it has no default."""
    if _LOADING and not _is_built_in():
        object.__setattr__(entry, "plugin", _LOADING[-1])
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
    version.cache_clear()


def _is_built_in() -> bool:
    """Whether a module of ours registers something, which a plugin that is being loaded happens to import first."""
    ours = {module for modules in BUILT_IN.values() for module in modules}
    frame = sys._getframe()
    while (above := frame.f_back) is not None:
        frame = above
        if frame.f_code.co_name == "<module>":
            return frame.f_globals.get("__name__") in ours
    return False


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
    """Annotation of a setting that is the name of an entry: ``data: Annotated[str, Named("noise", "objective", more=("task",))]``.

    `more` are names that are allowed beside those of the entries. Pydantic and the JSON schema see a choice of names, as they are when the
    schema is made: after plugins were loaded.
    """

    def __init__(self, *kinds: str, more: tuple[str, ...] = ()):
        self.kinds, self.more = kinds, more

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        """Pydantic's schema of one of the names."""
        from pydantic_core import core_schema

        return core_schema.literal_schema(self.names())

    def names(self) -> list[str]:
        """The names that are allowed, after plugins were loaded."""
        return [*(name for kind in self.kinds for name in entries(kind)), *self.more]

    def known(self, name: str) -> str:
        """`name`, if it is one of them; else raises `InputError`."""
        found = next((kind for kind in self.kinds if name in entries(kind)), self.kinds[0])
        return name if name in self.more else entry(found, name).name


class Chosen:
    """Annotation of a setting that is an entry with its settings: ``adapter: Annotated[dict[str, Any] | None, Chosen("adapter")]``.

    Its value is a block with the name, `kind`, beside the settings: ``{kind: lora, rank: 16}``. The JSON schema has those of each entry.
    """

    def __init__(self, kind: str):
        self.kind = kind

    def check(self, value: Any) -> Any:
        """A value as it is; raises `InputError` for one that names no entry, or has settings that the entry does not have."""
        from pydantic import TypeAdapter, ValidationError

        known = entries(self.kind)
        if value is None:
            return None
        if not isinstance(value, dict) or "kind" not in value:
            raise InputError(f"wants a block with a `kind`, one of {', '.join(known)}, got {value!r}")
        if value["kind"] not in known:
            raise InputError(f"kind: there is no {self.kind} {value['kind']!r}{instead(value['kind'], known)}{_without_plugins()}")
        settings, given = known[value["kind"]].settings, {key: each for key, each in value.items() if key != "kind"}
        own = [one.name for one in fields(settings)] if settings else []
        if unknown := [key for key in given if key not in own]:
            has = f"{value['kind']} has {', '.join(own)}" if own else f"{value['kind']} has no settings"
            raise InputError(f"{unknown[0]}: unknown key; {has}")
        try:
            TypeAdapter(_documented(settings)).validate_python(given) if settings else None
        except ValidationError as error:
            wrong = error.errors()[0]
            where, said = ".".join(map(str, wrong["loc"])), f"{wrong['msg'][:1].lower()}{wrong['msg'][1:]}"
            raise InputError(f"{where}: {said}, got {wrong['input']!r}") from None
        return value

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        """Pydantic's schema of a block that `check` has checked."""
        from pydantic_core import PydanticCustomError, core_schema

        def checked(value: Any) -> Any:
            try:
                return self.check(value)
            except InputError as error:
                raise PydanticCustomError("chosen", "{said}", {"said": str(error)}) from None

        return core_schema.no_info_plain_validator_function(checked)

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> dict[str, Any]:
        """The JSON schema: no block, or that of one of the entries."""
        from pydantic import TypeAdapter

        blocks: list[dict[str, Any]] = []
        for name, each in entries(self.kind).items():
            properties: dict[str, Any] = {"kind": {"const": name, "description": each.label}}
            if each.settings:
                properties |= TypeAdapter(_documented(each.settings)).json_schema()["properties"]
            blocks.append({"type": "object", "properties": properties, "required": ["kind"], "additionalProperties": False})
        return {"anyOf": [*blocks, {"type": "null"}]}


def _documented(settings: type) -> type:
    """A dataclass of settings whose docstrings go into the JSON schema."""
    settings.__pydantic_config__ = {"use_attribute_docstrings": True}  # type: ignore[attr-defined]
    return settings


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
        if not key:
            raise InputError("plugin '': has no name; write the file's name, or leave it out")
        if key not in _PLUGINS:
            _PLUGINS[key] = _load(key, name)


def forget(kind: str, name: str) -> None:
    """Take an entry out again."""
    del _ENTRIES[kind][name]
    version.cache_clear()


def forget_plugins() -> None:
    """Take all plugins and their entries out again: for one process that plans several runs after each other, as tests do."""
    for kind, some in _ENTRIES.items():
        for name in [name for name, one in some.items() if one.plugin]:
            forget(kind, name)
    files = {str(path) for plugin in _PLUGINS.values() for path in plugin.files}
    for name in [name for name, module in [*sys.modules.items()] if vars(module).get("__file__") in files]:
        del sys.modules[name]
    _PLUGINS.clear()


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
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # whatever a stranger's file does, down to exit()
        for kind, one in _own(key):
            forget(kind, one)
        sys.modules.pop(_called(key), None)
        where = str(error) if isinstance(error, InputError) else _where(error)
        raise InputError(f"plugin {name}: {where}") from None
    finally:
        _LOADING.pop()
    if not (own := _own(key)):
        raise InputError(f"plugin {name}: registers nothing; decorate a function of it, for example with crossgap.noise")
    files = _files(module)
    heavy = tuple(library for library in HEAVY if library not in there and (lazily.is_loaded(library) or _asks_for(module, library)))
    return Plugin(name, files, own, heavy, _checksum(files))


def _own(key: str) -> tuple[tuple[str, str], ...]:
    return tuple((kind, one) for kind, some in _ENTRIES.items() for one in some if some[one].plugin == key)


def _asks_for(module: ModuleType, library: str) -> bool:
    """Whether a module imports a library that is only put off here, and that a job will load."""
    stand_in = sys.modules.get(library)
    return stand_in is not None and any(value is stand_in for value in vars(module).values())


def _checksum(files: tuple[Path, ...]) -> str:
    sums = [hashlib.sha256(path.read_bytes()).hexdigest() for path in files]
    return sums[0] if len(sums) == 1 else hashlib.sha256("".join(sums).encode()).hexdigest()


def _imported(name: str) -> ModuleType:
    """The module of a plugin. Raises `InputError` where there is none."""
    if _is_file(name):
        path = Path(name)
        if not path.is_file():
            raise InputError(f"there is no such file (looked for {path})")
        called = _called(name)
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
        if not all(part.isidentifier() for part in name.split(".")):
            raise ModuleNotFoundError
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name and not f"{name}.".startswith(f"{error.name}."):
            raise
        raise InputError("is neither a file (which ends in .py), nor a module that can be imported here, nor an entry point") from None


def _called(path: str) -> str:
    """The name of a file's module."""
    return f"crossgap_plugin_{hashlib.sha256(path.encode()).hexdigest()[:8]}_{Path(path).stem}"


def _files(module: ModuleType) -> tuple[Path, ...]:
    source = Path(module.__file__ or "")
    return tuple(sorted(source.parent.rglob("*.py"))) if source.name == "__init__.py" else (source,)


def _where(error: BaseException) -> str:
    """What failed in a plugin: file, line, and its first sentence."""
    said = (str(error).strip().splitlines() or [""])[0]
    if isinstance(error, SyntaxError) and error.filename:
        return f"line {error.lineno} of {error.filename}: {error.msg}"
    # neither the import system, nor what stands above the plugin
    own, frames = str(Path(__file__)), traceback.extract_tb(error.__traceback__)
    last = max((place for place, frame in enumerate(frames) if frame.filename == own), default=-1)
    theirs = [frame for frame in frames[last + 1 :] if not frame.filename.startswith(("<frozen", _IMPORTING))]
    if not theirs:
        return f"{type(error).__name__}: {said}"
    beside = Path(theirs[0].filename).parent
    frame = next(frame for frame in reversed(theirs) if Path(frame.filename).parent == beside)
    return f"line {frame.lineno} of {frame.filename}, `{frame.line}`: {type(error).__name__}{': ' * bool(said)}{said}"


_IMPORTING = str(Path(importlib.__file__).parent)


def asked(entry: str, it: str, function: Callable[..., Any], parameters: Mapping[str, str]) -> tuple[str, ...]:
    """What a function that a plugin brings asks for: the names of its parameters. Raises `InputError` for one that is none of `parameters`.

    `entry` is its kind and name, and `it` is what the error calls it where it says what there is, such as "a noise".
    """
    names = tuple(inspect.signature(function).parameters)
    if unknown := [each for each in names if each not in parameters]:
        raise InputError(f"{entry} asks for `{unknown[0]}`; {it} can ask for {', '.join(parameters)}")
    return names


def call(entry: str, function: Callable[..., Any], given: Mapping[str, Any], about: Callable[[], str]) -> Any:
    """Call a function that a plugin brings. Where it fails, one `InputError` says the file, the line, and what it was called with.

    `entry` is its kind and name, and `about` says what it was called with, such as a sentence and its number.
    """
    try:
        return function(**given)
    except InputError as error:
        raise InputError(f"{entry}: {error} ({about()})") from None
    except Exception as error:  # whatever a stranger's function does
        raise InputError(f"{entry}: {_where(error)} ({about()})") from None


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
