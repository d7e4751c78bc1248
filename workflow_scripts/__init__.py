"""The stages of Crossgap, in rooms, from the ground up: text, models, lexicon, noise, evidence, training, tasks, run, report."""

import os
import tempfile
from pathlib import Path


def folder_for_compiled(*usual: Path) -> str | None:
    """A folder of this user's own for compiled functions, where none of the usual ones can be written to; else None.

    Raises `PermissionError` where another user has made it: what lies in it is run.
    """
    if any(os.access(folder, os.W_OK) for folder in usual):
        return None
    own = Path(tempfile.gettempdir(), f"crossgap-numba-{os.getuid()}")
    own.mkdir(mode=0o700, exist_ok=True)
    if own.stat().st_uid != os.getuid():
        raise PermissionError(f"{own} belongs to another user; set NUMBA_CACHE_DIR to a folder of your own")
    return str(own)


# numba keeps what it has compiled beside the source or under the home folder, and refuses to start where it can do neither
if "NUMBA_CACHE_DIR" not in os.environ and (own := folder_for_compiled(Path(__file__).parent, Path(os.path.expanduser("~")))):
    os.environ["NUMBA_CACHE_DIR"] = own
