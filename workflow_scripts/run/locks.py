"""locks: what tells a second Snakemake that one is at work in a folder."""

from contextlib import suppress
from pathlib import Path
from typing import Any


def leave_locks_of_others(persistence: Any) -> None:
    """Have a run delete no locks but its own when it ends.

    Snakemake deletes the whole folder of locks, also where it holds none, as for `preflight`: a run that is at work there would be without.
    """

    def delete() -> None:
        for file in persistence._lockfile.values():
            Path(file).unlink(missing_ok=True)
        persistence._lockfile.clear()
        with suppress(OSError):
            Path(persistence._lockdir).rmdir()  # where it is empty

    if hasattr(persistence, "_lockfile"):
        persistence._delete_locks = delete
