"""What all stages share: command line, atomic files, error messages and provenance.

A stage is a function ``main(<input and output paths>, settings)``, where `settings` is a dataclass defined in the same module.
`run(main)` makes a command line from the signature, so that each stage can be used on its own
(``python -m workflow_scripts.lexicon.mapping --help``). Snakemake rules pass all settings as one JSON value (``--settings``).
"""

import contextlib
import csv
import errno
import functools
import importlib.metadata
import inspect
import json
import os
import platform
import select
import signal
import socket
import subprocess
import sys
import types
from collections.abc import Iterable, Iterator
from dataclasses import MISSING, asdict, fields, is_dataclass
from pathlib import Path
from typing import IO, Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from workflow_scripts import plugins, registry
from workflow_scripts.entry_names import Named
from workflow_scripts.errors import InputError, Stopped, first_line
from workflow_scripts.number_types import Limits
from workflow_scripts.storage import checksum, refused_file

ROOT = Path(__file__).resolve().parent.parent


def run(main: Any, of: str = "") -> None:
    """Run `main` with the arguments of the command line; `main` is a function, or a mapping from subcommand to function.

    Commands `of` a kind of entries are made by `main` for the entry whose name stands behind a flag of that kind: ``--task NAME``.
    Behind `--plugins` stand plugins to load (see `plugins`); the environment may name more.
    On an `InputError`, on `Stopped` and where the system refuses a file, the process ends with status 1 and one line on standard error. Any
    other exception is a bug and shows its traceback.
    """
    arguments, program = _with_plugins(sys.argv[1:]), _program()
    if {"--help", "-h"} & {*arguments} and sys.stdout is sys.__stdout__:
        # `--help | head` ends as other programs do
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    if of:
        at = arguments.index(f"--{of}") if f"--{of}" in arguments[:-1] else len(arguments)
        try:
            if at == len(arguments):
                raise InputError(f"--{of} NAME says of which {of} the command is: {', '.join(registry.entries(of))}")
            main, arguments = main(arguments[at + 1]), arguments[:at] + arguments[at + 2 :]
        except InputError as reason:
            sys.exit(f"error: {reason}")
    if isinstance(main, dict):
        if not arguments or arguments[0] not in main:
            usage = f"usage: {program} {{{','.join(main)}}} [--help]"
            if arguments[:1] not in (["--help"], ["-h"]):
                sys.exit(usage)
            print(usage, *(f"  {name}: {(inspect.getdoc(each) or name).splitlines()[0]}" for name, each in main.items()), sep="\n")
            return
        main, arguments, program = main[arguments[0]], arguments[1:], f"{program} {arguments[0]}"
    try:
        if "--settings" in arguments:
            at = arguments.index("--settings")
            settings_type = get_type_hints(main)["settings"]
            try:
                plain = json.loads(arguments[at + 1])
            except (IndexError, ValueError) as error:
                raise InputError(f"--settings needs one JSON value: {error}") from None
            settings = from_plain(settings_type, plain)
            del arguments[at : at + 2]
            main = functools.partial(main, settings=settings)
            if arguments and (bound := _plain_flags(main, arguments)) is not None:
                with _while_it_is_read():
                    main(**bound)
                return
        import tyro

        names = [*_flags_of(main)]
        with _mappings_as_json(), _while_it_is_read():
            form = (tyro.conf.OmitArgPrefixes,) if len({*names}) == len(names) else ()
            tyro.cli(_within_limits(main), prog=program, args=arguments, config=form)
    except Stopped as reason:
        # under torchrun all processes stop for the same reason, and the first one tells it
        sys.exit(f"not done: {reason}" if is_first_process() else 1)
    except InputError as reason:
        # which may be one machine's alone
        where = "" if is_first_process() else f"process {os.environ['RANK']} on {socket.gethostname()}: "
        sys.exit(f"{where}error: {reason}")
    except OSError as reason:
        if not (message := refused_file(reason)):
            raise
        sys.exit(f"error: {message}")


@contextlib.contextmanager
def _while_it_is_read() -> Iterator[None]:
    """End the process without a word, as other programs end, where who reads its output has enough, as `| head` has."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        output = select.poll()
        output.register(sys.stdout.fileno(), 0)
        if not any(event & select.POLLERR for _, event in output.poll(0)):
            raise  # another pipe, such as that to a program
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python flushes once more at its end
        sys.exit(128 + signal.SIGPIPE)


def _program() -> str:
    """What calls this program again, as messages on its use name it."""
    module = getattr(sys.modules["__main__"], "__spec__", None)
    return f"python -m {module.name}" if module and module.origin == sys.argv[0] else Path(sys.argv[0]).stem


def _with_plugins(arguments: list[str]) -> list[str]:
    """Load the plugins that the environment and the command line name; returns what is left of the latter."""
    at = arguments.index("--plugins") if "--plugins" in arguments else len(arguments)
    end = next((place for place in range(at + 1, len(arguments)) if arguments[place].startswith("--")), len(arguments))
    try:
        plugins.load_from_environment()
        plugins.load(arguments[at + 1 : end])
    except InputError as reason:
        sys.exit(f"error: {reason}")
    return arguments[:at] + arguments[end:]


def _within_limits(main: Any) -> Any:
    """`main`, with a check of the numbers that it is called with."""
    if isinstance(main, functools.partial):  # whose settings were checked as they were read
        return main
    hints = get_type_hints(main, include_extras=True)

    @functools.wraps(main)
    def checked(*given: Any, **named: Any) -> Any:
        for name, value in inspect.signature(main).bind(*given, **named).arguments.items():
            if is_dataclass(value) and not isinstance(value, type):
                from_plain(type(value), asdict(value), name)
            else:
                from_plain(hints[name], value, name)
        return main(*given, **named)

    # tyro would read the types of what is wrapped
    checked.__signature__ = inspect.signature(main)  # type: ignore[attr-defined]
    checked.__annotations__ = {name: _with_choice(hint) for name, hint in hints.items()}
    del checked.__wrapped__
    return checked


def _with_choice(hint: Any) -> Any:
    """`hint`, of a name of an entry with what lets tyro show the names that there are, and refuse others as the registry does."""
    from tyro.constructors import PrimitiveConstructorSpec

    named = next((part for part in getattr(hint, "__metadata__", ()) if isinstance(part, Named)), None)
    if named is None:
        return hint
    metavar = f"{{{','.join(named.names())}}}"
    return Annotated[str, PrimitiveConstructorSpec(1, metavar, lambda given: named.known(given[0]), lambda _: True, lambda name: [name])]


def _flags_of(kind: Any) -> Iterator[str]:
    """The command-line flags of a function or of a class of settings; a nested block gives its fields' names, not its own."""
    for name, hint in get_type_hints(kind.func if isinstance(kind, functools.partial) else kind).items():
        blocks = [part for part in (hint, *get_args(hint)) if is_dataclass(part) or hasattr(part, "_field_defaults")]
        if get_origin(hint) is dict or not blocks:
            yield name
        for block in blocks if get_origin(hint) is not dict else ():
            yield from _flags_of(block)


@contextlib.contextmanager
def _mappings_as_json() -> Iterator[None]:
    """Let tyro read settings that have names of the user's own, such as test sets, from one JSON value: flags cannot have such names."""
    from tyro.constructors import ConstructorRegistry, PrimitiveConstructorSpec, PrimitiveTypeInfo

    def by_name(kind: PrimitiveTypeInfo) -> PrimitiveConstructorSpec[Any] | None:
        parts = get_args(kind.type)
        if get_origin(kind.type) is not dict or not any(is_dataclass(part) for part in (*parts, *get_args(parts[-1]))):
            return None
        return PrimitiveConstructorSpec(
            nargs=1,
            metavar="JSON",
            instance_from_str=lambda values: from_plain(kind.type, json.loads(values[0])),
            is_instance=lambda value: isinstance(value, dict),
            str_from_instance=lambda value: [json.dumps({name: asdict(one) for name, one in value.items()})],
        )

    registry = ConstructorRegistry()
    registry.primitive_rule(by_name)
    with registry:
        yield


def is_first_process() -> bool:
    """Whether this process prints and writes files: true for a single process and for the first one under torchrun."""
    return os.environ.get("RANK", "0") == "0"


def processes() -> int:
    """How many processes train together: those of torchrun, or this one alone."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def _plain_flags(main: functools.partial, arguments: list[str]) -> dict[str, Any] | None:
    """Parse flags `--name value …` into keyword arguments without tyro, which COMET's environment lacks.

    A NamedTuple is read from flags of its fields. Returns None where the arguments do not fit; tyro then explains what is wrong.
    """
    hints = get_type_hints(main.func)
    records = {name: kind for name, kind in hints.items() if hasattr(kind, "_field_defaults")}
    for kind in records.values():
        hints |= get_type_hints(kind)
    found: dict[str, list[str]] = {}
    for argument in arguments:
        if argument.startswith("--"):
            name = argument[2:].replace("-", "_")
            if name not in hints or name in ("settings", *records):
                return None
            current = found.setdefault(name, [])
        elif found:
            current.append(argument)
        else:
            return None
    bound: dict[str, Any] = {}
    for name, values in found.items():
        kind = hints[name]
        make = next((t for t in (kind, *get_args(kind)) if t in (Path, int, float)), str)
        try:
            values = [make(value) for value in values]
        except ValueError:
            return None
        if get_origin(kind) is Literal and values[:1] not in [[choice] for choice in get_args(kind)]:
            return None
        if get_origin(kind) is tuple:
            if Ellipsis not in get_args(kind) and len(values) != len(get_args(kind)):
                return None
            bound[name] = tuple(values)
        elif kind is bool and not values:
            bound[name] = True
        elif len(values) == 1 and kind is not bool:
            bound[name] = values[0]
        else:
            return None
    for name, kind in records.items():
        given = {field: bound.pop(field) for field in kind._fields if field in bound}
        if given.keys() | kind._field_defaults.keys() == set(kind._fields):
            bound[name] = kind(**given)
    missing = [p.name for p in inspect.signature(main).parameters.values() if p.default is p.empty and p.name not in bound]
    return None if missing else bound


def own_settings(entry: registry.Entry, given: str | dict[str, Any]) -> Any:
    """The settings of an entry's own, from JSON or plain values; None where it has none. Raises `InputError` for others than it knows."""
    try:
        plain = json.loads(given) if isinstance(given, str) else given
    except ValueError as error:
        raise InputError(f"the settings of {entry.name} are one JSON value, got {given!r}: {error}") from None
    if entry.settings is None:
        if plain:
            raise InputError(f"the {type(entry).__name__.lower()} {entry.name} has no settings of its own, got {plain}")
        return None
    return from_plain(entry.settings, plain)


def from_plain(kind: Any, value: Any, name: str = "") -> Any:
    """Make an instance of the settings dataclass `kind` from plain JSON values; also those nested in its fields, lists and mappings.

    A field may be a dataclass or None. Unions of several dataclasses are refused (`TypeError`), because one settings class could be taken
    for another that has the same fields. This needs no library, so that stages run in environments that have few of them. Of values their
    limits are checked alone; `name` is what the message calls the value.

    Raises:
        InputError: There is no setting of this name, a setting without default is missing, or a number is beyond its limits.
    """
    if is_dataclass(kind) and isinstance(kind, type):
        if not isinstance(value, dict):
            raise InputError(f"{name or kind.__name__}: settings are a JSON object, got {value!r}")
        hints = get_type_hints(kind, include_extras=True)
        known = {field.name for field in fields(kind)}
        if unknown := set(value) - known:
            raise InputError(f"{kind.__name__}: unknown setting(s) {sorted(unknown)}; known: {sorted(known)}")
        required = {field.name for field in fields(kind) if field.default is MISSING and field.default_factory is MISSING}
        if missing := required - set(value):
            raise InputError(f"{kind.__name__}: the setting(s) {sorted(missing)} must be given")
        return kind(**{key: from_plain(hints[key], item, key) for key, item in value.items()})
    parts = get_args(kind)
    origin = get_origin(kind)
    if origin is Annotated:
        if objection := next((words for limits in parts[1:] if isinstance(limits, Limits) and (words := limits.objection(value))), ""):
            raise InputError(f"{name}: {objection}, got {value!r}")
        return from_plain(parts[0], value, name)
    if isinstance(value, dict) and origin is dict:
        return {key: from_plain(parts[1], item, f"{name}.{key}") for key, item in value.items()}
    if isinstance(value, list) and origin is list:
        return [from_plain(parts[0], item, name) for item in value]
    if isinstance(value, list | tuple) and origin is tuple:
        kinds = parts[:1] * len(value) if parts[1:] == (Ellipsis,) else parts
        if len(kinds) != len(value):
            raise InputError(f"{name}: must be {len(kinds)} values, got {value!r}")
        return tuple(from_plain(kind, item, name) for kind, item in zip(kinds, value, strict=True))
    if origin in (Union, types.UnionType):
        classes = [part for part in parts if is_dataclass(part)]
        if len(classes) > 1:
            raise TypeError(f"{kind}: settings cannot be a union of several dataclasses")
        if value is None and type(None) in parts:
            return None
        others = [part for part in parts if part is not type(None)]
        if isinstance(value, int | float) and not isinstance(value, bool):
            others = [part for part in others if get_origin(part) is Annotated] or others
        return from_plain(classes[0] if classes and isinstance(value, dict) else others[0] if len(others) == 1 else None, value, name)
    return value


def resource(path: str) -> str:
    """The path of a configured file: as given if it exists, else relative to the repository (where the embedded resources are)."""
    inside = ROOT / path
    return path if os.path.exists(path) or not inside.exists() else str(inside)


def to_disk(path: Path) -> None:
    """Wait until a file, or a folder with all its files, is on the disk. After a crash of the machine it might be there, but empty."""
    for each in (*path.rglob("*"), path):
        opened = os.open(each, os.O_RDONLY)
        try:
            os.fsync(opened)
        except OSError as error:
            if error.errno != errno.EINVAL:  # a file system that cannot do this, as some cannot for folders
                raise
        finally:
            os.close(opened)


@contextlib.contextmanager
def atomic(path: Path, mode: str = "w") -> Iterator[IO]:
    """Open a temporary file in the folder of `path`, and rename it to `path` if the block ends without an exception."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with open(temporary, mode, encoding=None if "b" in mode else "utf-8", newline=None if "b" in mode else "\n") as file:
            yield file
        to_disk(temporary)
        os.replace(temporary, path)
    except OSError as error:
        if error.filename is None or str(error.filename) == str(temporary):  # the error of a full disk has no name
            error.filename, error.filename2 = str(path), None
        raise
    finally:
        temporary.unlink(missing_ok=True)


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Write `content` and the `provenance` as JSON, atomically."""
    with atomic(path) as file:
        json.dump({**content, "provenance": provenance()}, file, indent=1, ensure_ascii=False, default=float)
        file.write("\n")


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON file that a stage wrote. Raises `InputError` where it is damaged."""
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError(f"{path}: is damaged ({error}); delete it, and run the same command again") from None


def read_rows(path: Path) -> list[dict[str, str]]:
    """The rows of a table with tabs, whose first line names the columns."""
    with open(path, encoding="utf-8-sig", newline="") as file:  # spreadsheets write a byte order mark
        return list(csv.DictReader(file, delimiter="\t"))


def in_one_line(error: BaseException) -> str:
    """An unexpected exception in one line: its class and the first line of its message; of bad input the message as it is."""
    if isinstance(error, InputError):
        return str(error)
    return f"{type(error).__name__}: {first_line(error)[:200]}"


@contextlib.contextmanager
def noted(failed: dict[str, str], name: str) -> Iterator[None]:
    """Note an error in the block under its `name` instead of raising it, so that it does not prevent what comes after.

    Too little memory is raised: Snakemake tries again with more.
    """
    try:
        yield
    except MemoryError:
        raise
    except Exception as error:
        failed[name] = in_one_line(error)


def checksums(paths: Iterable[Path | str | None]) -> dict[str, str]:
    """File → `checksum`, for a stage's report on its input files. None, an optional file that was not given, is left out."""
    return {path: checksum(path) for path in dict.fromkeys(str(path) for path in paths if path)}


_LIBRARIES = ("torch", "transformers", "gensim", "numpy", "sacrebleu", "rouge-score", "ctranslate2", "sentencepiece", "unbabel-comet")
"""Libraries whose version affects results."""


@functools.cache
def provenance() -> dict[str, Any]:
    """Git commit of the code ("unknown" without git or its folder), versions of libraries that affect results, SHA-256 of plugins."""
    versions = {"python": ".".join(map(str, sys.version_info[:3]))}
    for package in (*_LIBRARIES, "snakemake"):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions[package] = importlib.metadata.version(package)
    # in a folder that is no clone git would look above it
    commit = output_of("git", "-C", str(ROOT), "describe", "--always", "--dirty", "--abbrev=12") if (ROOT / ".git").exists() else None
    found = {"commit": (commit or "").strip() or "unknown", "versions": versions}
    return found | ({"plugins": brought} if (brought := plugins.described()) else {})


def output_of(*command: str) -> str | None:
    """The output of a program that a machine may lack; None if it is not installed, fails or takes longer than 20 seconds."""
    try:
        return subprocess.run(command, capture_output=True, text=True, errors="replace", check=True, timeout=20).stdout
    except (OSError, subprocess.SubprocessError):
        return None


def last_line(output: str) -> str:
    """The last line that a program wrote, for a message that says why it failed."""
    return (output.strip().splitlines() or ["without a word"])[-1]


def processor() -> str:
    """The name of this machine's processor, as Linux tells it; elsewhere the kind of processor.

    With AVX-512 a processor rounds otherwise, and virtual machines call those with and without it by one name.
    """
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        described = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        return described["model name"] + (", AVX-512" if "avx512f" in described.get("flags", "").split() else "")
    except (OSError, KeyError):
        return platform.processor() or platform.machine()
