"""storage: checksums of files, and what to say where the system refuses one: its folder, what lies there, how much is free, and what moves
it elsewhere."""

import errno
import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from workflow_scripts.errors import InputError

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_CLOSED = (errno.EROFS, errno.EACCES, errno.EPERM)


def checksum(path: Path | str) -> str:
    """SHA-256 of a file's content, in hexadecimal. Raises `InputError` if there is no such file, or it cannot be read."""
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None


def refused_file(error: OSError) -> str:
    """An error of the system about a file in one line, with the way out; empty for other errors, such as of the network."""
    if error.filename is None and "temporary directory" in str(error):
        return _no_temporary_folder()
    path = Path(os.fsdecode(error.filename)) if isinstance(error.filename, str | bytes | os.PathLike) else None
    if error.errno in _FULL:
        folder, about, way = lies_in(path or _fullest())
        free = f"{shutil.disk_usage(nearest_folder(folder)).free / 1e6:,.1f} MB"
        return f"{path or folder}: cannot be written: {error.strerror}; {folder}{about} has {free} free; make room, or {way}"
    if path is None or error.errno not in (*_CLOSED, *_WORDS):
        return ""
    if error.errno in _WORDS:
        return f"{path}: {_WORDS[error.errno]}"
    if path.exists() and not os.access(path, os.R_OK):
        return f"{path}: cannot be read: {error.strerror}; give yourself the right to (chmod u+r {path})"
    folder, about, way = lies_in(path)
    return f"{path}: cannot be written: {error.strerror}; make {folder}{about} writable, or {way}"


_WORDS = {
    errno.ENOENT: "no such file or folder",
    errno.EISDIR: "is a folder; name a file",
    errno.ENOTDIR: "a part of this path is a file where a folder should be",
    errno.EEXIST: "is a file where a folder should be",
    errno.ELOOP: "is a link that leads back to itself",
    errno.ENAMETOOLONG: "is too long for the name of a file",
    errno.EIO: "cannot be read or written: the disk has an error",
    errno.ESTALE: "the file system has lost it; run the same command again",
}


def lies_in(path: Path) -> tuple[Path, str, str]:
    """The folder that a file belongs to, what is kept there (in brackets), and how to have it elsewhere."""
    full = path.absolute()
    for folder, about, way in _places():
        if full.is_relative_to(folder.absolute()):
            return folder, f" ({about})", way
    if full.is_relative_to(Path().absolute()):
        return Path().absolute(), " (the folder of the run)", "run in another one (snakemake --directory FOLDER)"
    temporary = temporary_folder().absolute()
    if full == temporary or (full.is_relative_to(temporary) and full.relative_to(temporary).parts[0].startswith("tmp")):
        return temporary, " (temporary files)", "set TMPDIR to another folder"
    return nearest_folder(full if full.is_dir() else full.parent), "", "name another place"


def lost_link(folder: Path) -> str:
    """What to say of a folder that is a link to one that is not there; empty for any other."""
    if not folder.is_symlink() or folder.exists():
        return ""
    return f"{folder} is a link to {folder.readlink()}, which is not there; make that folder, or remove the link"


def temporary_folder() -> Path:
    """Where temporary files are to be. Where that is full, Python writes them elsewhere without a word; Snakemake's scheduler does not."""
    named = (os.environ.get(variable, "") for variable in ("TMPDIR", "TEMP", "TMP"))
    return Path(next((folder for folder in named if os.path.isdir(folder)), None) or tempfile.gettempdir())


def caches_at_home() -> Path:
    """Where programs keep what they can get again, in the user's home folder; it begins with `~` where the user has none."""
    # not Path.expanduser, which fails there
    return Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"))


def _places() -> Iterator[tuple[Path, str, str]]:
    """The folders outside a run that are written to; the innermost first."""
    at_home = caches_at_home()
    models = Path(os.environ.get("HF_HOME") or at_home / "huggingface")
    for variable, usual, holds in (
        ("HF_HUB_CACHE", models / "hub", "models and datasets of the Hugging Face hub"),
        ("HF_HOME", models, "what is kept of the Hugging Face hub"),
        ("CROSSGAP_CACHE", at_home / "crossgap", "downloaded text"),
        ("SACREBLEU", Path(os.path.expanduser("~/.sacrebleu")), "sacreBLEU's test sets and tokenisers"),
    ):
        yield Path(os.environ.get(variable) or usual), holds, f"set {variable} to another folder"


def _fullest() -> Path:
    """Where a file was written that an error does not name: of the folders in use the one with the least space."""
    folders = [temporary_folder(), Path().absolute(), *(nearest_folder(folder) for folder, _, _ in _places())]
    return min(folders, key=lambda folder: shutil.disk_usage(folder).free)


def check_writable(path: Path) -> None:
    """Raise `OSError` as writing the file `path` would, where no file can be made in its folder, or in the nearest one above it."""
    folder = nearest_folder(path.absolute().parent)
    if not folder.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path))
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))


def nearest_folder(path: Path) -> Path:
    """A folder, or the nearest one above it that is there."""
    return next(each for each in (path.absolute(), *path.absolute().parents) if each.exists())


def _no_temporary_folder() -> str:
    named = os.environ.get("TMPDIR", "")
    return (
        f"temporary files cannot be written{f' in {named} (TMPDIR)' if named else ''}, nor in /tmp, /var/tmp or {Path().absolute()}; "
        "make room there, or set TMPDIR to a folder that can be written to"
    )
