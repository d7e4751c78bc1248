"""fetching: downloads files once, checks them and caches them; and extracts files from archives.

The cache is `$CROSSGAP_CACHE`, or else the folder ``crossgap`` in `$XDG_CACHE_HOME` or ``~/.cache``. Each file is in a folder named by
its SHA-256. So other projects find the same content, and files can be put there by hand. A file with a wrong checksum is never used.
With `CROSSGAP_OFFLINE=1` nothing is downloaded, with `HF_HUB_OFFLINE=1` nothing of the Hugging Face hub.
"""

import contextlib
import difflib
import fnmatch
import gzip
import hashlib
import lzma
import os
import re
import shutil
import sys
import tarfile
import time
import zipfile
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import IO, Any

import requests
import urllib3
from filelock import FileLock

from workflow_scripts.stage import InputError, atomic
from workflow_scripts.storage import caches_at_home, checksum

ATTEMPTS = 3
TIMEOUT = (10, 60)
"""Longest waiting times in seconds: to connect, and for the next part of an answer."""
_BYTES = 1 << 20


class Unreachable(Exception):
    """A file could not be downloaded; the message says why."""


class Absent(Unreachable):
    """The server can be reached, and says that it has no such file, or gives it to nobody."""


class Busy(Unreachable):
    """The server can be reached, and says that it cannot give the file now."""


def way_out(error: Unreachable, known: str, place: Path) -> str:
    """What to do about a file that could not be downloaded: where to put it, and how it is `known`."""
    by_hand = f"{known}, put it at {place} and run the same command again"
    if isinstance(error, Absent):
        return f"correct the address; or get the file elsewhere, {by_hand}"
    if isinstance(error, Busy):
        return f"try again later; or get the file elsewhere, {by_hand}"
    return f"get it where there is network, {by_hand}"


def cache_folder() -> Path:
    """The folder of the cache. Raises `InputError` where none is named and the user has no home folder, as in some containers."""
    if own := os.environ.get("CROSSGAP_CACHE"):
        return Path(own)
    if str(at_home := caches_at_home()).startswith("~"):
        raise InputError("there is no home folder to keep downloaded text in; set HOME, or CROSSGAP_CACHE to another folder")
    return at_home / "crossgap"


def is_offline(*more: str) -> bool:
    """Whether the user has forbidden the use of the network, by CROSSGAP_OFFLINE or one of `more` variables."""
    return any(os.environ.get(name, "").upper() in ("1", "ON", "YES", "TRUE") for name in ("CROSSGAP_OFFLINE", *more))


def base_name(url: str) -> str:
    """The name of the file behind a URL, also for scripts: en-tr.tmx.gz for ``download.php?f=SETIMES/v2/en-tr.tmx.gz``."""
    pieces = re.split(r"[/?=&]", re.sub(r"^\w+://[^/]*", "", url).partition("#")[0].rstrip("/"))
    # parameters such as ?download=1 may come after it
    named = [piece for piece in pieces if Path(piece.lower()).suffix in _ENDINGS]
    return (named or pieces)[-1][-100:] or "file"


_ENDINGS = {
    *(".gz", ".xz", ".zst", ".bz2", ".zip", ".tar", ".tgz", ".tsv", ".txt", ".json", ".jsonl", ".ndjson", ".conllu", ".sgm", ".xml"),
    *(".tmx", ".xlf", ".xliff", ".po", ".parquet"),
}


def cached_path(url: str, sha256: str, lines: int | None = None) -> Path:
    """Path in the cache for the content of `url`, or for its first `lines` lines."""
    name = base_name(url)
    unpacked = name.removesuffix(".gz").removesuffix(".xz")
    return cache_folder() / "sha256" / sha256.lower() / (f"{lines}-lines-of-{unpacked}" if lines else name)


def fetch(url: str, sha256: str | None, lines: int | None = None) -> Path:
    """Return the path of the file behind `url`, or of its first `lines` lines (unpacked); download it if it is not in the cache.

    Raises:
        InputError: The file cannot be downloaded (the message says where to put it by hand), its content has another checksum, or
            `sha256` is missing (the message says which checksum was found).
    """
    path = cached_path(url, sha256 or "<checksum>", lines)
    key = hashlib.sha256(f"{url} {lines}".encode()).hexdigest()[:16]
    partial = cache_folder() / "unfinished" / key / path.name
    partial.parent.mkdir(parents=True, exist_ok=True)
    # several jobs may need the same archive at the same time
    with FileLock(partial.parent / "lock"):
        if sha256 and path.exists():
            if (digest := checksum(path)) != sha256.lower():
                raise InputError(f"{path}: has the SHA-256 {digest}, expected is {sha256}; remove the file, or put the right one there")
            return path
        what = f"{url}{f', the first {lines:,} lines' if lines else ''}"
        try:
            if lines:
                _try_again(url, lambda: _download_head(url, lines, partial))
            else:
                download(url, partial)
        except Unreachable as error:
            if sha256:
                path.parent.mkdir(parents=True, exist_ok=True)
                known = f"with the SHA-256 {sha256}"
            else:
                known = "add the checksum that sha256sum prints as `sha256`"
            raise InputError(f"{what}: cannot be downloaded ({error}); {way_out(error, known, path)}") from None
        digest = checksum(partial)
        if sha256 and digest != sha256.lower():
            reason = _why_other(partial)
            partial.unlink()
            raise InputError(f"{what}: the download has the SHA-256 {digest}, expected is {sha256}; {reason}")
        path = cached_path(url, digest, lines)
        path.parent.mkdir(parents=True, exist_ok=True)
        os.replace(partial, path)
    if not sha256:
        entered = f'add `sha256: {digest}`, in a block with `each` to its entry there and to the block as `sha256: "{{sha256}}"`'
        raise InputError(f"{what}: is named without its checksum; if you trust what was downloaded just now, {entered}")
    return path


def _why_other(partial: Path) -> str:
    with open(partial, "rb") as file:
        is_page = file.read(200).lstrip().lower().startswith((b"<!doctype html", b"<html"))
    return "the server sent a web page: open the link in a browser" if is_page else "correct `sha256` if the file is known to have changed"


def download(url: str, partial: Path) -> None:
    """Download `url` to `partial`, continuing where an earlier attempt ended. Raises `Unreachable`."""
    _try_again(url, lambda: _download_once(url, partial))


def _try_again(url: str, once: Callable[[], None]) -> None:
    """Make attempts to download from `url`, each by calling `once`. Raises `Unreachable` after the last one, `Absent` at once."""
    if is_offline():
        raise Unreachable("offline, by CROSSGAP_OFFLINE")
    failed = Unreachable()
    for attempt in range(1, ATTEMPTS + 1):
        try:
            return once()
        except requests.HTTPError as error:
            failed = _refused(error)
            if isinstance(failed, Absent):
                break
        except _BROKEN as error:
            failed = Unreachable(f"{type(error).__name__}: {first_cause(error)}")
        print(f"{url}: attempt {attempt} of {ATTEMPTS} failed, {failed}", file=sys.stderr, flush=True)
        if attempt < ATTEMPTS:
            time.sleep(_PAUSE * attempt)
    raise failed


def _refused(error: requests.HTTPError) -> Unreachable:
    """The exception for what a server refuses; a busy one may have the file."""
    answer = error.response
    assert answer is not None  # raise_for_status gives it
    is_final = answer.status_code < 500 and answer.status_code not in (408, 429)
    return (Absent if is_final else Busy)(f"the server says {answer.status_code} {answer.reason}")


# reading `raw` answers raises errors of urllib3 and of the socket as well, and unpacking them those of its library
_BROKEN = (
    *(requests.RequestException, urllib3.exceptions.HTTPError, ConnectionError, TimeoutError),
    *(EOFError, gzip.BadGzipFile, lzma.LZMAError, zlib.error),
)
_PAUSE = 2.0


def first_cause(error: BaseException) -> BaseException:
    """The innermost cause of an exception; network libraries wrap it several times."""
    while inner := next((each for each in (error.__cause__, error.__context__, *error.args) if isinstance(each, BaseException)), None):
        error = inner
    return error


def _download_once(url: str, partial: Path) -> None:
    there = partial.stat().st_size if partial.exists() else 0
    # without this, a .gz file could be unpacked during the transfer
    headers = {"Accept-Encoding": "identity", **({"Range": f"bytes={there}-"} if there else {})}
    with requests.get(url, headers=headers, stream=True, timeout=TIMEOUT) as answer:
        if there and answer.status_code == 416:
            # nothing is left to send, or the file has changed; the checksum will show which
            return
        answer.raise_for_status()
        goes_on = answer.status_code == 206
        with open(partial, "ab" if goes_on else "wb") as file:
            shutil.copyfileobj(answer.raw, file, _BYTES)
        expected = answer.headers.get("Content-Length")
        if expected and partial.stat().st_size - (there if goes_on else 0) < int(expected):
            raise requests.ConnectionError(f"the answer ended after {partial.stat().st_size:,} bytes")


def size_of(url: str) -> int | None:
    """Size of `url` in bytes, without downloading it; None if the server does not tell. Raises `Unreachable`."""
    if is_offline():
        raise Unreachable("offline, by CROSSGAP_OFFLINE")
    headers = {"Accept-Encoding": "identity"}
    try:
        answer = requests.head(url, headers=headers, allow_redirects=True, timeout=5)
        if not answer.ok:  # some servers have the file, and refuse this kind of question
            with requests.get(url, headers=headers, stream=True, timeout=5) as answer:
                answer.raise_for_status()
    except requests.HTTPError as error:
        raise _refused(error) from None
    except requests.RequestException as error:
        raise Unreachable(f"{type(error).__name__}: {first_cause(error)}") from None
    size = answer.headers.get("Content-Length", "")
    return int(size) if size.isdigit() else None


def _download_head(url: str, lines: int, output: Path) -> None:
    """Write the first lines of what is behind `url`, unpacked; each attempt begins anew."""
    with (
        requests.get(url, headers={"Accept-Encoding": "identity"}, stream=True, timeout=TIMEOUT) as answer,
        atomic(output, "wb") as file,
    ):
        answer.raise_for_status()
        suffix = Path(base_name(url)).suffix.lower()
        unpack: Callable[[Any], Iterable[bytes]] = gzip.open if suffix == ".gz" else lzma.open if suffix == ".xz" else iter
        for _, line in zip(range(lines), unpack(answer.raw), strict=False):
            file.write(line)


# ---------------------------------------------------------------------------------------------
# archives


def is_archive(name: str) -> bool:
    """Whether a file name is that of an archive."""
    return name.lower().endswith((".tar", ".tar.gz", ".tgz", ".tar.xz", ".tar.bz2", ".zip"))


def extract(archive: Path, member: str | None, folder: Path) -> list[Path]:
    """Write the files of an archive that `member` names into `folder`, and return their paths.

    `member` is a name, or a pattern with the wildcards of a shell, whose files come in the order of their names; without it, the
    archive's only file is taken. Folders in a name are ignored and links are refused, so that an archive cannot write anywhere else. Raises
    `InputError` if the archive cannot be read or has no such file.
    """
    folder.mkdir(parents=True, exist_ok=True)
    # members with the same name in different folders of the archive must not overwrite each other
    free = len(list(folder.iterdir()))
    try:
        with contextlib.ExitStack() as stack:
            read: Callable[[Any], IO[bytes] | None]
            members: dict[str, Any]
            if zipfile.is_zipfile(archive):
                zipped = stack.enter_context(zipfile.ZipFile(archive))
                members = {info.filename: info for info in zipped.infolist() if not info.is_dir()}
                read = zipped.open
            else:
                tarred = stack.enter_context(tarfile.open(archive))
                members = {info.name.removeprefix("./"): info for info in tarred if info.isreg()}
                read = tarred.extractfile
            outputs = {
                name: folder / f"{free + place}" / Path(name).name for place, name in enumerate(_chosen(archive, member, list(members)))
            }
            for name in members:  # in the archive's order: for a step back in it, all is unpacked once more
                if name in outputs:
                    source = read(members[name])
                    assert source is not None  # only regular files are among the members
                    with source, atomic(outputs[name], "wb") as file:
                        shutil.copyfileobj(source, file, _BYTES)
    except (tarfile.TarError, zipfile.BadZipFile, EOFError, lzma.LZMAError, zlib.error, gzip.BadGzipFile, RuntimeError) as error:
        raise InputError(f"{archive}: cannot be read as an archive: {error}") from None
    return list(outputs.values())


def _chosen(archive: Path, member: str | None, names: list[str]) -> list[str]:
    if member is None:
        if len(names) == 1:
            return names
        raise InputError(f"{archive.name}: holds {len(names)} files, name one of them as `member`: {', '.join(names[:20])}")
    if (name := member.removeprefix("./")) in names:
        return [name]
    if set("*?[") & set(member) and (matches := sorted(fnmatch.filter(names, name))):
        return matches
    near = difflib.get_close_matches(name, names, n=3) or names[:20]
    raise InputError(f"{archive.name}: has no file {member!r}; near it are {', '.join(near) or 'none'}")
