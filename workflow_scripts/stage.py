"""What every stage shares: its command line, atomic files, clear errors and provenance.

A stage is a function ``main(<input and output paths>, settings)``; `settings` is a dataclass that
stands beside it. `run(main)` makes the command line from the signature, so that each stage can be
used alone (``python -m workflow_scripts.lexicon.mapping --help``). A Snakemake rule hands the whole
settings block over as one JSON value (``--settings``).
"""

import contextlib
import errno
import functools
import hashlib
import importlib.metadata
import inspect
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import IO, Any, Literal, get_args, get_origin, get_type_hints

ROOT = Path(__file__).resolve().parent.parent


class InputError(Exception):
    """Bad input, told in one message: which file, which line, which value, and the way out."""


class Stopped(Exception):
    """A stage ended early, with a checkpoint that the same call goes on from."""


def run(main: Any) -> None:
    """Run `main` (a function, or a mapping of subcommand → function) from the command line.

    Exit status 1 and one line on standard error for an `InputError`, `Stopped` or a full disk; anything
    else is a bug and shows its traceback.
    """
    arguments = sys.argv[1:]
    if isinstance(main, dict):
        if not arguments or arguments[0] not in main:
            sys.exit(f"usage: {Path(sys.argv[0]).stem} {{{','.join(main)}}} [--help]")
        main, arguments = main[arguments[0]], arguments[1:]
    try:
        if "--settings" in arguments:
            at = arguments.index("--settings")
            settings_type = get_type_hints(main)["settings"]
            try:
                plain = json.loads(arguments[at + 1])
            except (IndexError, ValueError) as error:
                raise InputError(f"--settings wants one JSON value: {error}") from None
            settings = from_plain(settings_type, plain)
            del arguments[at : at + 2]
            main = functools.partial(main, settings=settings)
            if arguments and (bound := _plain_flags(main, arguments)) is not None:
                main(**bound)
                return
        import tyro

        tyro.cli(main, args=arguments, config=(tyro.conf.OmitArgPrefixes,))
    except (InputError, Stopped) as reason:
        # under torchrun one of the processes says it for all
        sys.exit(f"{'error' if isinstance(reason, InputError) else 'not done'}: {reason}" if is_first_process() else 1)
    except OSError as reason:
        if reason.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise
        sys.exit(f"error: {reason.filename or 'a file'} cannot be written: {reason.strerror}; make room, or run on another disk")


def is_first_process() -> bool:
    """Whether this process speaks and writes for all: the only one, or the first under torchrun."""
    return os.environ.get("RANK", "0") == "0"


def _plain_flags(main: functools.partial, arguments: list[str]) -> dict[str, Any] | None:
    """`--name value …` flags as keyword arguments, without tyro (a bare GPU node has none); None where tyro has to explain."""
    hints = get_type_hints(main.func)
    found: dict[str, list[str]] = {}
    for argument in arguments:
        if argument.startswith("--"):
            name = argument[2:].replace("-", "_")
            if name not in hints or name == "settings":
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
    missing = [p.name for p in inspect.signature(main).parameters.values() if p.default is p.empty and p.name not in bound]
    return None if missing else bound


def from_plain(kind: Any, value: Any) -> Any:
    """A settings dataclass from plain JSON values; dataclasses nested in it, in its lists and mappings too."""
    if is_dataclass(kind) and isinstance(value, dict):
        hints = get_type_hints(kind)
        known = {field.name for field in fields(kind)}
        if unknown := set(value) - known:
            raise InputError(f"{kind.__name__}: unknown setting(s) {sorted(unknown)}; known: {sorted(known)}")
        return kind(**{name: from_plain(hints[name], item) for name, item in value.items()})
    parts = get_args(kind)
    if isinstance(value, dict) and get_origin(kind) is dict:
        return {name: from_plain(parts[1], item) for name, item in value.items()}
    if isinstance(value, list) and get_origin(kind) is list:
        return [from_plain(parts[0], item) for item in value]
    if isinstance(value, list) and get_origin(kind) is tuple:
        return tuple(value)
    choices = [part for part in parts if is_dataclass(part)]
    if choices and isinstance(value, dict):
        # of several kinds, the one that has all these settings
        return from_plain(next((kind for kind in choices if value.keys() <= {f.name for f in fields(kind)}), choices[0]), value)
    return value


def resource(path: str) -> str:
    """A configured file: as given if it is there, else in the repository (the embedded resources)."""
    inside = ROOT / path
    return path if os.path.exists(path) or not inside.exists() else str(inside)


@contextlib.contextmanager
def atomic(path: Path, mode: str = "w") -> Iterator[IO]:
    """Open a temporary file beside `path`; it takes the name only when the block ends well."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with open(temporary, mode, encoding=None if "b" in mode else "utf-8", newline=None if "b" in mode else "\n") as file:
            yield file
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Write `content` with its provenance, atomically."""
    with atomic(path) as file:
        json.dump({**content, "provenance": provenance()}, file, indent=1, ensure_ascii=False, default=float)
        file.write("\n")


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON file that a stage wrote."""
    return json.loads(Path(path).read_text(encoding="utf-8"))


def told(error: Exception) -> str:
    """An error that nobody expected, in one line."""
    return f"{type(error).__name__}: {(str(error).splitlines() or [''])[0][:200]}"


def checksum(path: Path | str) -> str:
    """SHA-256 of a file's content, in hexadecimal; raises `InputError` where there is no such file."""
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None


def checksums(paths: Iterable[Path | str | None]) -> dict[str, str]:
    """File → `checksum`, as a stage's JSON file has them of what was read; None is a file that was not given."""
    return {path: checksum(path) for path in dict.fromkeys(str(path) for path in paths if path)}


@functools.cache
def provenance() -> dict[str, Any]:
    """Commit of the code and versions of the libraries that decide the numbers."""
    versions = {"python": ".".join(map(str, sys.version_info[:3]))}
    for package in (
        "torch",
        "transformers",
        "gensim",
        "numpy",
        "sacrebleu",
        "rouge-score",
        "ctranslate2",
        "sentencepiece",
        "unbabel-comet",
        "snakemake",
    ):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions[package] = importlib.metadata.version(package)
    git = (
        subprocess.run(["git", "-C", ROOT, "describe", "--always", "--dirty", "--abbrev=12"], capture_output=True, text=True)
        if (ROOT / ".git").exists()
        else None
    )
    return {"commit": git.stdout.strip() if git and git.returncode == 0 else "unknown", "versions": versions}
