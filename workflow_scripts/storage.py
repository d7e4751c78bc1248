"""storage: what to say where the system refuses a file: its folder, what lies there, how much is free, and what moves it elsewhere."""

import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_CLOSED = (errno.EROFS, errno.EACCES, errno.EPERM)
_OTHER = (errno.ENOENT, errno.EISDIR, errno.ENOTDIR, errno.EEXIST, errno.ELOOP, errno.ENAMETOOLONG, errno.EIO, errno.ESTALE)


def refused_file(error: OSError) -> str:
    """An error of the system about a file in one line, with the way out; empty for errors of other kinds, such as of the network."""
    if error.filename is None and "temporary directory" in str(error):
        return _no_temporary_folder()
    if error.errno in _FULL:
        place = Path(os.fsdecode(error.filename)) if isinstance(error.filename, str | bytes) else _fullest()
        folder, about, way = lies_in(place)
        left = f"{shutil.disk_usage(_there(folder)).free / 1e6:,.0f} MB free"
        named = error.filename or folder
        return f"{named}: cannot be written: {error.strerror}; {folder} has {left} and holds {about}; make room, or {way}"
    if error.filename is None or error.errno not in (*_CLOSED, *_OTHER):
        return ""
    path = Path(os.fsdecode(error.filename))
    if error.errno in _CLOSED:
        folder, about, way = lies_in(path)
        shut = next((each for each in (path, *path.parents) if each.exists() and not os.access(each, os.W_OK)), None)
        if path.exists() and not os.access(path, os.R_OK):
            return f"{path}: cannot be read: {error.strerror}; give yourself the right to (chmod u+r {path})"
        if error.errno == errno.EROFS or shut:
            at = shut or _there(path)
            return f"{path}: cannot be written: {error.strerror}; {folder} holds {about}; make {at} writable, or {way}"
    return f"{path}: {_WORDS.get(error.errno, error.strerror)}"


_WORDS = {
    errno.ENOENT: "no such file",
    errno.EISDIR: "is a folder; name a file",
    errno.ENOTDIR: "a part of this path is a file where a folder should be",
    errno.ENAMETOOLONG: "is too long for a name of a file",
}


def lies_in(path: Path) -> tuple[Path, str, str]:
    """The folder that a file belongs to, what is kept there, and how to have it elsewhere."""
    full = path.absolute()
    for folder, about, way in _places():
        if full.is_relative_to(folder.absolute()):
            return folder, about, way
    return Path(), "the run's results", "run in another folder (snakemake --directory FOLDER)"


def _places() -> Iterator[tuple[Path, str, str]]:
    """The folders outside a run that are written to; the innermost first."""
    at_home = Path(os.environ.get("XDG_CACHE_HOME") or _at_home(".cache"))
    models = Path(os.environ.get("HF_HOME") or at_home / "huggingface")
    own = {"HF_HUB_CACHE": models / "hub", "HF_HOME": models, "CROSSGAP_CACHE": at_home / "crossgap", "SACREBLEU": _at_home(".sacrebleu")}
    for variable, usual in own.items():
        yield Path(os.environ.get(variable) or usual), _HOLDS[variable], f"set {variable} to another folder"
    if Path(tempfile.gettempdir()).absolute() != Path().absolute():
        yield Path(tempfile.gettempdir()), "temporary files", "set TMPDIR to another folder"


_HOLDS = {
    "HF_HUB_CACHE": "models and datasets of the Hugging Face hub",
    "HF_HOME": "what is kept of the Hugging Face hub",
    "CROSSGAP_CACHE": "downloaded text",
    "SACREBLEU": "sacreBLEU's test sets and tokenisers",
}


def _at_home(name: str) -> Path:
    return Path("~", name).expanduser()


def _fullest() -> Path:
    """Where a file was written that an error does not name: of the folders in use the one with the least space."""
    folders = [Path(), *(_there(folder) for folder, _, _ in _places())]
    return min(folders, key=lambda folder: shutil.disk_usage(folder).free)


def _there(path: Path) -> Path:
    """The path, or the nearest folder above it that is there."""
    return next(each for each in (path.absolute(), *path.absolute().parents) if each.exists())


def _no_temporary_folder() -> str:
    named = os.environ.get("TMPDIR", "")
    return (
        f"temporary files cannot be written{f' in {named} (TMPDIR)' if named else ''}, nor in /tmp, /var/tmp or {Path().absolute()}; "
        "make room there, or set TMPDIR to a folder that can be written to"
    )
