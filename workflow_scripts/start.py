"""start: what is looked at before Snakemake does anything, as it would end in its own words or in a traceback.

Snakemake's default profile (`profiles/default/config.yaml`) calls it, so it imports nothing that takes time.
"""

import errno
import os
import shutil
import sys
from collections.abc import MutableMapping, Sequence
from pathlib import Path

from workflow_scripts.stage import InputError
from workflow_scripts.storage import nearest_folder, refused_file, temporary_folder
from workflow_scripts.yaml_text import composed, configfiles

_LEAST = 2**20
"""Bytes that the temporary folder must have: Snakemake's scheduler writes a file there for each choice among its jobs."""

_HUGE_PAGES = "glibc.malloc.hugetlb=1"


def use_huge_pages(environment: MutableMapping[str, str]) -> None:
    """Have programs that get this `environment` ask Linux for pages of 2 MB, where the machine gives them to those who ask.

    An update on a CPU writes hundreds of megabytes anew. With pages of 4 KB a fifth of its time or more goes into finding them
    (docs/performance.md). glibc reads the variable when a program starts; other C libraries do not. A choice of the user's stays.
    """
    chosen = environment.get("GLIBC_TUNABLES", "")
    if "glibc.malloc.hugetlb" not in chosen:
        environment["GLIBC_TUNABLES"] = f"{chosen}:{_HUGE_PAGES}" if chosen else _HUGE_PAGES


def refuse_start(arguments: Sequence[str]) -> None:
    """End the process with one line where Snakemake's `arguments` name what cannot be read or written.

    These are the files of ``--configfile`` and the folder of ``--directory``; and the folder of temporary files must have room.
    """
    try:
        for path in configfiles(arguments):
            composed(path)
        _check_folder(Path(_directory(arguments)))
        _check_temporary()
    except (InputError, OSError) as error:
        message = str(error) if isinstance(error, InputError) else refused_file(error) or str(error)
        sys.exit(f"error: {message}")


def _directory(arguments: Sequence[str]) -> str:
    """The folder of the run."""
    named = "."
    for argument, value in zip(arguments, [*arguments[1:], ""], strict=True):
        if argument in ("-d", "--directory"):
            named = value
        elif argument.startswith("--directory="):
            named = argument.partition("=")[2]
    return named


def _check_folder(folder: Path) -> None:
    there = nearest_folder(folder)
    if not there.is_dir():
        raise InputError(f"{there}: is a file where the folder of the run should be; name another folder (--directory FOLDER)")
    if not os.access(there, os.W_OK | os.X_OK):
        raise InputError(f"{there}: cannot be written to, and the run writes there; name another folder (--directory FOLDER)")


def _check_temporary() -> None:
    folder = temporary_folder()
    if shutil.disk_usage(folder).free < _LEAST:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(folder))
