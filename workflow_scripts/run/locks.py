"""locks: what tells a second Snakemake that one is at work in a folder."""

from contextlib import suppress
from pathlib import Path
from typing import Any

from snakemake.persistence.file import FilePersistence

_DELETE_ALL = FilePersistence._delete_locks


def leave_locks_of_others(unlocks: bool) -> None:
    """Have Snakemake delete no locks but its own, unless it is called to clear them all (`unlocks`).

    It deletes the whole folder of locks, also where it holds none, as for `preflight`: a run that is at work there would be without. That
    holds for locks that are files, as they are unless `--persistence-backend` says otherwise.
    """
    FilePersistence._delete_locks = _DELETE_ALL if unlocks else _delete_own


def _delete_own(self: Any) -> None:
    for file in self._lockfile.values():
        Path(file).unlink(missing_ok=True)
    self._lockfile.clear()
    with suppress(OSError):
        Path(self._lockdir).rmdir()  # where it is empty
