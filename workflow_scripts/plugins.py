"""plugins: loads what strangers bring, which registers entries (`registry`), and calls it so that whatever fails is one clear error.

The configuration names a plugin (`plugins: [my_bridge.py]`): a file, an importable module, or an entry point of an installed package in the
group `crossgap.plugins`. It is code that runs with the rights of whoever runs Crossgap.
"""

import hashlib
import importlib
import importlib.machinery
import importlib.metadata
import importlib.util
import inspect
import json
import os
import sys
import traceback
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from workflow_scripts import lazily, registry
from workflow_scripts.errors import InputError, first_line
from workflow_scripts.storage import checksum

GROUP = "crossgap.plugins"
"""The group of entry points by which an installed package offers plugins."""

VARIABLE = "CROSSGAP_PLUGINS"
"""The environment variable that names the plugins of a job, a JSON list: the name of a folder may have any character."""


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

_PLUGINS: dict[str, Plugin] = {}


def loaded() -> Mapping[str, Plugin]:
    """The plugins that were loaded, by their names."""
    return _PLUGINS


def load(names: Iterable[str]) -> None:
    """Load plugins, each once: files (what ends in .py, or has a slash), entry points, or importable modules.

    Raises `InputError` for one that is not there, fails, or registers nothing.
    """
    for name in names:
        # a file is one plugin, whatever way leads to it
        key = str(Path(os.path.expanduser(name)).resolve()) if _is_file(name) else name
        if not key:
            raise InputError("plugin '': has no name; write the file's name, or leave it out")
        if key not in _PLUGINS:
            _PLUGINS[key] = _load_one(key, name)


def forget() -> None:
    """Take all plugins and their entries out again: for one process that plans several runs after each other, as tests do."""
    for kind, one in registry.registered():
        if one.plugin:
            registry.forget(kind, one.name)
    files = {str(path) for plugin in _PLUGINS.values() for path in plugin.files}
    for name in [name for name, module in [*sys.modules.items()] if vars(module).get("__file__") in files]:
        del sys.modules[name]
    _PLUGINS.clear()


def _is_file(name: str) -> bool:
    return name.endswith(".py") or os.sep in name


def load_from_environment() -> None:
    """Load the plugins that the environment names, as rules do for their jobs. Raises `InputError` as `load`, or for what is no list."""
    given = os.environ.get(VARIABLE) or "[]"
    try:
        names = json.loads(given)
    except ValueError:
        names = None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise InputError(f'{VARIABLE}: is a JSON list of names, like ["my_bridge.py"], got {given!r}')
    load(names)


def _load_one(key: str, name: str) -> Plugin:
    there, before = {heavy for heavy in HEAVY if lazily.is_loaded(heavy)}, {*sys.modules}
    registry.LOADING.append(key)
    try:
        module = _imported(key)
        files = _files(module, key)
        sha256 = _checksum(files)
        for kind, one in _own(key):
            _check_types(kind, registry.entry(kind, one))
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # whatever a stranger's file does, down to exit()
        for kind, one in _own(key):
            registry.forget(kind, one)
        sys.modules.pop(_called(key), None)
        where = str(error) if isinstance(error, InputError) else _where(error)
        raise InputError(f"plugin {name}: {where}") from None
    finally:
        registry.LOADING.pop()
    # what a module of a package imports registers with it, whichever is loaded first
    came_before = module.__name__ in before
    if not (own := _own(key)) and not (came_before and any({*files} & {*other.files} for other in _PLUGINS.values())):
        raise InputError(f"plugin {name}: registers nothing; decorate a function of it, for example with crossgap.noise")
    heavy = tuple(library for library in HEAVY if library not in there and (lazily.is_loaded(library) or _asks_for(module, library)))
    return Plugin(name, files, own, heavy, sha256)


def _own(key: str) -> tuple[tuple[str, str], ...]:
    return tuple((kind, one.name) for kind, one in registry.registered() if one.plugin == key)


def _check_types(kind: str, entry: registry.Entry) -> None:
    """Raise `InputError` where the types of an entry's settings cannot be read, or are not those of values in a configuration.

    Settings that compute when they are made are refused as well: the plan and its jobs make them several times, each of the one before.
    """
    settings = own_block(entry)
    if settings is None:
        return
    try:
        hints = get_type_hints(settings, include_extras=True)
    except Exception as error:  # whatever stands in an annotation
        unknown = getattr(error, "name", None)
        setting = next((f".{each.name}" for each in fields(settings) if unknown and unknown in str(each.type)), "")
        raise InputError(
            f"{kind} {entry.name!r}: the type of {settings.__name__}{setting} cannot be read, {type(error).__name__}: {first_line(error)}; "
            "import what it names, also where no type checker runs"
        ) from None
    for name, hint in hints.items():
        if not is_plain(hint):
            raise InputError(
                f"{kind} {entry.name!r}: {settings.__name__}.{name} is a {getattr(hint, '__name__', hint)}, whose values cannot stand in a "
                "configuration; take numbers, texts (also for paths), lists of them, mappings from texts, or dataclasses"
            )
    for block in _dataclasses_in(settings):
        way_out = "compute and check what it does in the function that gets the settings"
        if made := next((one for one in block.__mro__ if "__post_init__" in vars(one)), None):
            raise InputError(f"{kind} {entry.name!r}: {made.__name__}.__post_init__ would run more than once on the same values; {way_out}")
        if computed := next((each.name for each in fields(block) if not each.init), ""):
            raise InputError(f"{kind} {entry.name!r}: {block.__name__}.{computed} has init=False, so nothing can set it; {way_out}")


def _dataclasses_in(hint: Any, within: tuple[Any, ...] = ()) -> Iterator[type]:
    """The dataclass that a type is, and those that are nested in it."""
    if isinstance(hint, type) and is_dataclass(hint) and hint not in within:
        yield hint
        for each in get_type_hints(hint, include_extras=True).values():
            yield from _dataclasses_in(each, (*within, hint))
    for part in get_args(hint):
        yield from _dataclasses_in(part, within)


def is_plain(hint: Any, within: tuple[Any, ...] = ()) -> bool:
    """Whether the values of a type can stand in JSON as they are. An Enum or a Path would reach its plugin as a text, a set as a list."""
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return is_plain(parts[0], within)
    if origin is Literal:
        return all(isinstance(part, str | int | float | None) for part in parts)
    if origin in (dict, Mapping):
        return parts[0] is str and is_plain(parts[1], within)
    if origin in (Union, types.UnionType, list, tuple, Sequence, Iterable):
        return all(part is ... or is_plain(part, within) for part in parts)
    if is_dataclass(hint):
        return hint in within or all(is_plain(each, (*within, hint)) for each in get_type_hints(hint, include_extras=True).values())
    return hint in (Any, str, int, float, bool, type(None), list, dict, tuple)


def own_block(entry: registry.Entry) -> Any:
    """The dataclass of an entry's own settings; of a task these are those of finetuning. None where it has none."""
    return getattr(entry, "finetuning", None) or entry.settings


def _asks_for(module: ModuleType, library: str) -> bool:
    """Whether a module imports a library that is only put off here, and that a job will load."""
    stand_in = sys.modules.get(library)
    return stand_in is not None and any(value is stand_in for value in vars(module).values())


def _checksum(files: tuple[Path, ...]) -> str:
    sums = [checksum(path) for path in files]
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
        _find_in_folder_of_run(name.partition(".")[0])
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name and not f"{name}.".startswith(f"{error.name}."):
            raise
        raise InputError("is neither a file (which ends in .py), nor a module that can be imported here, nor an entry point") from None


def _find_in_folder_of_run(package: str) -> None:
    """Have Python find a package, or a module, that lies in the folder of the run. What else lies there must hide no library."""
    if package in sys.modules or importlib.util.find_spec(package):
        return
    if spec := importlib.machinery.PathFinder.find_spec(package, [os.getcwd()]):
        module = sys.modules[package] = importlib.util.module_from_spec(spec)
        try:
            if spec.loader:
                spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[package]
            raise


def _called(path: str) -> str:
    """The name of a file's module."""
    return f"crossgap_plugin_{hashlib.sha256(path.encode()).hexdigest()[:8]}_{Path(path).stem}"


def _files(module: ModuleType, key: str) -> tuple[Path, ...]:
    """What a plugin is made of: its file, or those of the whole package that its module is in, of which it may import and read anything."""
    if not module.__file__:
        raise InputError(f"is a folder without __init__.py, of which nothing is loaded; name a module of it, as {key}.bridges")
    source = Path(module.__file__)
    within = "" if _is_file(key) else module.__package__ or ""
    if not within and source.name != "__init__.py":
        return (source,)
    package = source.parents[within.count(".")]
    return tuple(path for path in sorted(package.rglob("*")) if path.is_file() and not _is_passing(path.relative_to(package)))


def _is_passing(path: Path) -> bool:
    """Whether a file of a package comes and goes by itself: compiled modules, and what is hidden."""
    return any(part.startswith(".") or part == "__pycache__" for part in path.parts)


def _where(error: BaseException) -> str:
    """What failed in a plugin: file, line, and its first sentence."""
    sentence = first_line(error)
    if isinstance(error, SyntaxError) and error.filename:
        return f"line {error.lineno} of {error.filename}: {error.msg}"
    # neither the import system, nor what stands above the plugin
    own, frames = str(Path(__file__)), traceback.extract_tb(error.__traceback__)
    last = max((place for place, frame in enumerate(frames) if frame.filename == own), default=-1)
    theirs = [frame for frame in frames[last + 1 :] if not frame.filename.startswith(("<frozen", _IMPORTING, _OURS))]
    if not theirs:
        return f"{type(error).__name__}: {sentence}"
    beside = Path(theirs[0].filename).parent
    frame = next(frame for frame in reversed(theirs) if Path(frame.filename).parent == beside)
    return f"line {frame.lineno} of {frame.filename}, `{frame.line}`: {type(error).__name__}{': ' if sentence else ''}{sentence}"


_IMPORTING = str(Path(importlib.__file__).parent)
_OURS = str(Path(__file__).parent)


def files_of(*used: registry.Entry | None, settings: Any = None) -> list[str]:
    """What jobs that use these entries are made of: the files of their plugins, each once, and those that `settings` name."""
    names = dict.fromkeys(one.plugin for one in used if one and one.plugin)
    return [*(str(path) for name in names for path in _PLUGINS[name].files), *(files_in(settings) if names else ())]


def files_in(settings: Any) -> list[str]:
    """The files that are there among the texts of some settings, from the working directory on, each once."""
    if is_dataclass(settings) and not isinstance(settings, type):
        settings = [getattr(settings, each.name) for each in fields(settings)]
    if isinstance(settings, Mapping):
        settings = [*settings.values()]
    if isinstance(settings, list | tuple):
        return [*dict.fromkeys(path for value in settings for path in files_in(value))]
    return [str(settings)] if isinstance(settings, str | Path) and str(settings).strip() and _is_file_here(settings) else []


def _is_file_here(path: str | Path) -> bool:
    try:
        return Path(path).is_file()
    except (OSError, ValueError):  # a text that is no path
        return False


def sha256_of(entry: registry.Entry) -> str | None:
    """The checksum of the plugin that an entry comes from; None of ours. What was trained with another version is not gone on from."""
    return _PLUGINS[entry.plugin].sha256 if entry.plugin else None


def trained_by(kind: str, entry: registry.Entry, settings: Any) -> dict[str, Any]:
    """What a description of checkpoints has of an entry's plugin: its checksum, and those of the files that the `settings` name, if any.

    It has nothing of our entries. `kind` begins the keys.
    """
    if not entry.plugin:
        return {}
    files = [checksum(Path(path)) for path in files_in(settings)]
    return {f"{kind}_plugin": sha256_of(entry), **({f"{kind}_files": files} if files else {})}


def described() -> dict[str, str]:
    """Plugin → its SHA-256, for the provenance."""
    return {plugin.name: plugin.sha256 for plugin in _PLUGINS.values()}


# ---------------------------------------------------------------------------------------------
# functions of plugins


def asked(
    entry: str, it: str, function: Callable[..., Any], parameters: Mapping[str, str], *, decorator: str = "", settings: type | None = None
) -> tuple[str, ...]:
    """What a function that a plugin brings asks for: the names of its parameters. Raises `InputError` for one that is none of `parameters`,
    and for `settings` where its `decorator`, which can name a dataclass of `settings`, names none.

    `entry` is its kind and name, and `it` is what the error calls it where it says what there is, such as "a noise".
    """
    names = tuple(inspect.signature(function).parameters)
    if unknown := [each for each in names if each not in parameters]:
        raise InputError(f"{entry} asks for `{unknown[0]}`; {it} can ask for {', '.join(parameters)}")
    if decorator and "settings" in names and settings is None:
        raise InputError(f"{entry} asks for `settings`, but has none; name its dataclass: @{decorator}(…, settings=…)")
    return names


def call_if_theirs(entry: registry.Entry, function: Callable[..., Any], given: Mapping[str, Any], about: Callable[[], str]) -> Any:
    """Call the function of an entry: a plugin's by `call`; one of ours as it is, where a mistake is a bug of ours."""
    return call(f"{type(entry).__name__.lower()} {entry.name!r}", function, given, about) if entry.plugin else function(**given)


def call(entry: str, function: Callable[..., Any], given: Mapping[str, Any], about: Callable[[], str]) -> Any:
    """Call a function that a plugin brings. Where it fails, one `InputError` says the file, the line, and what it was called with.

    `entry` is its kind and name, and `about` says what it was called with, such as a sentence and its number. Memory that does not suffice
    stays the error that it is, for callers that then ask for less, and for Snakemake, which tries again with more. Of a function that
    yields, a list is returned: its code runs only while its values are read.
    """
    try:
        returned = function(**given)
        return list(returned) if isinstance(returned, Iterator) else returned
    except InputError as error:
        raise InputError(f"{entry}: {error} ({about()})") from None
    except Exception as error:  # whatever a stranger's function does
        if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
            raise
        raise InputError(f"{entry}: {_where(error)} ({about()})") from None
