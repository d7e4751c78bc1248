"""help_pages: LibreOffice's manual as parallel text, from Debian's packages libreoffice-help-XX.

The manual is translated paragraph by paragraph, and a paragraph has the same id in all languages. Pages are read in the order of
their names. Paragraphs that are empty or untranslated, and pairs that occurred before, are left out.
"""

import lzma
import os
import tarfile
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, cast

from workflow_scripts.stage import InputError, atomic
from workflow_scripts.text.fetching import Unreachable, cache_folder, download, fetch
from workflow_scripts.text.files import open_packed


def paragraphs_of(a: Path, b: Path) -> Iterator[tuple[str, str, str]]:
    """Yield page, first side and second side of every translated paragraph of two packages. Raises `InputError` if there are none."""
    pages_a, pages_b = pages(a), pages(b)
    seen: set[tuple[str, str]] = set()
    for page in sorted(pages_a.keys() & pages_b.keys()):
        other = pages_b[page]
        for key, text in pages_a[page].items():
            pair = text, other.get(key, "")
            if all(pair) and pair[0] != pair[1] and pair not in seen:
                seen.add(pair)
                yield page, *pair
    if not seen:
        raise InputError(f"{a.name} and {b.name}: have no translated paragraph in common; are both packages of the manual?")


def pages(package: Path) -> dict[str, dict[str, str]]:
    """Page → id of a paragraph → its text, without tags and with single blanks."""
    from lxml import etree, html

    texts_of: dict[str, dict[str, str]] = {}
    for name, content in _files(package):
        folder, at, page = name.partition("/text/")
        if not (at and "/libreoffice/help/" in folder and page.endswith(".html") and content.strip()):
            continue
        try:
            tree = html.fromstring(content, parser=html.HTMLParser(encoding="utf-8"))
        except etree.LxmlError as error:
            raise InputError(f"{package.name}: {name} cannot be read as HTML: {error}") from None
        page_texts = texts_of.setdefault(page.removesuffix(".html"), {})
        for element in tree.iter("p", "h1", "h2", "h3", "h4", "h5", "h6"):
            if key := element.get("id"):
                page_texts.setdefault(key, " ".join(element.text_content().split()))
    return texts_of


def _files(package: Path) -> Iterator[tuple[str, bytes]]:
    """Name and content of each file in a Debian package."""
    import zstandard

    try:
        with open(package, "rb") as file:
            name = _seek_data(file)
            content: IO[bytes] = file
            if name.endswith(".zst"):
                content = cast(IO[bytes], zstandard.ZstdDecompressor().stream_reader(file))
            with tarfile.open(fileobj=content, mode="r|*") as archive:
                for member in archive:
                    if member.isreg() and (opened := archive.extractfile(member)):
                        yield member.name, opened.read()
    except (tarfile.TarError, EOFError, OSError, ValueError, lzma.LZMAError, zstandard.ZstdError) as error:
        raise InputError(f"{package}: cannot be read as a Debian package: {error}") from None


def _seek_data(file: IO[bytes]) -> str:
    """Move `file`, an opened package, to the start of the archive that holds the package's files, and return this archive's name."""
    if file.read(8) != b"!<arch>\n":
        raise ValueError("it does not begin like one")
    # headers of 60 bytes: name in 16, size in decimal digits from 48 on; contents are padded to even length
    while len(header := file.read(60)) == 60:
        name, size = header[:16].decode("ascii").strip().rstrip("/"), int(header[48:58])
        if name.startswith("data.tar"):
            return name
        file.seek(size + size % 2, os.SEEK_CUR)
    raise ValueError("it has no data.tar")


# ---------------------------------------------------------------------------------------------
# Debian's mirror


def debian_package(name: str, suite: str, mirror: str) -> Path:
    """Download a package of a suite, check it against the mirror's index, and return its path.

    Raises `InputError` if the suite has no such package, or if the mirror cannot be reached; the message then says where to put the
    package by hand.
    """
    folder = cache_folder() / "debian"
    try:
        file, sha256 = _look_up(name, _index(suite, mirror), f"{mirror}, {suite}")
    except Unreachable as reason:
        by_hand = sorted(folder.glob(f"{name}_*.deb"))
        if by_hand:
            return by_hand[-1]
        raise InputError(
            f"{mirror}: cannot be read ({reason}). Get the package {name} where there is network (apt-get download {name}, or "
            f"https://packages.debian.org/{suite}/{name}), put it into {folder} and run the same command again"
        ) from None
    return fetch(f"{mirror}/{file}", sha256)


def index_url(suite: str, mirror: str) -> str:
    """Address of the suite's index of packages for all architectures."""
    return f"{mirror}/dists/{suite}/main/binary-all/Packages.xz"


def index_path(suite: str) -> Path:
    """Where the cache keeps this index."""
    return cache_folder() / "debian" / suite / "Packages.xz"


def _index(suite: str, mirror: str) -> Path:
    """The index: downloaded now, or from the cache if the mirror cannot be reached."""
    index = index_path(suite)
    with TemporaryDirectory() as temporary:
        fresh = Path(temporary) / index.name
        try:
            download(index_url(suite, mirror), fresh)
            with open_packed(fresh) as file:  # what was sent may be a web page
                while file.read(1 << 20):
                    pass
        except (Unreachable, lzma.LZMAError, EOFError) as error:
            if index.exists():
                return index
            raise Unreachable(str(error)) from None
        with atomic(index, "wb") as file:
            file.write(fresh.read_bytes())
    return index


_MANUAL = "libreoffice-help-"


def _look_up(name: str, index: Path, where: str) -> tuple[str, str]:
    """A package's path on the mirror, and its SHA-256. The error for one that is not there names the manual's packages that are."""
    wanted = False
    fields: dict[str, str] = {}
    manuals: list[str] = []
    with open_packed(index) as file:
        for raw in file:
            key, _, value = raw.decode("utf-8").rstrip("\n").partition(": ")
            if key == "Package":
                wanted = value == name
                manuals += [value] if value.startswith(_MANUAL) and value != f"{_MANUAL}common" else []
            elif wanted and key in ("Filename", "SHA256"):
                fields[key] = value
            if len(fields) == 2:
                return fields["Filename"], fields["SHA256"]
    raise InputError(f"{where}: has no package {name}; the manual is there as {', '.join(sorted(set(manuals))) or 'no package at all'}")
