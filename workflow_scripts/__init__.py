"""The stages of Crossgap, in rooms, from the ground up: text, models, lexicon, noise, evidence, training, tasks, run, report."""

import os
import sys
import tempfile
from importlib.machinery import SOURCE_SUFFIXES, FileFinder, ModuleSpec, SourceFileLoader
from pathlib import Path
from types import ModuleType


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


class WithoutData(FileFinder):
    """Finds the modules of a folder, but no folder of data: Python takes any for a package, and libraries look for others by name."""

    def find_spec(self, fullname: str, target: ModuleType | None = None) -> ModuleSpec | None:
        """As Python does, except where a folder and those in it have no Python file."""
        spec = super().find_spec(fullname, target)
        if spec is None or spec.loader:
            return spec
        folders = [Path(folder) for folder in spec.submodule_search_locations or ()]
        return spec if any(next(folder.glob(pattern), None) for folder in folders for pattern in ("*.py", "*/*.py")) else None


# transformers takes a folder `datasets` of the user's for the library of this name, and a training then ends in a traceback
for searched in (str(Path(__file__).resolve().parents[1]), os.getcwd()):
    sys.path_importer_cache[searched] = WithoutData(searched, (SourceFileLoader, SOURCE_SUFFIXES))
