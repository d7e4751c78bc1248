"""environment: makes a separate Python environment for a tool that needs other versions of libraries.

It is made once, with pip, from the lock file envs/{tool}.txt. If that fails, the run goes on; the output then has the reason instead of
the path to Python.
"""

import shutil
import subprocess
import sys
from pathlib import Path

from workflow_scripts.stage import last_line, run, write_json
from workflow_scripts.storage import checksum

NEWEST = {"comet": (3, 12)}
"""Tool → the newest Python that its lock is for; without a line, all. COMET wants a numpy below 2, which has no build for newer ones."""


def main(requirements: Path, output: Path) -> None:
    """Make the environment if it does not exist yet, and write the path of its Python, or the reason why there is none.

    The environment is in the folder of `output`; its name is that of the lock file with its checksum. A file `complete` in it shows that
    the installation was not interrupted.

    Args:
        requirements: The lock file; its name without suffix must be the name under which Python imports the tool.
        output: JSON file to write, with `python` and `reason`.
    """
    folder = output.parent / f"{requirements.stem}-{checksum(requirements)[:12]}"
    python = folder / "bin/python"
    reason = None if python.exists() and (folder / "complete").exists() else install(requirements, folder)
    write_json(output, {"python": None if reason else str(python), "reason": reason})


def install(requirements: Path, folder: Path) -> str | None:
    """Make the environment, and at last its file `complete`; returns the reason where that fails."""
    tool, python = requirements.stem, folder / "bin/python"
    if not (chosen := suitable(tool)):
        here, newest = (".".join(map(str, version[:2])) for version in (sys.version_info, NEWEST[tool]))
        return (
            f"{requirements.name} is for Python {newest} and older, and this is {here}; put a python{newest} on the PATH and run snakemake "
            f"with --forcerun {tool}_environment, or run it with --sdm conda"
        )
    pip: list[str | Path] = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement", requirements]
    steps: tuple[tuple[str, list[str | Path]], ...] = (
        ("no environment could be made", [chosen, "-m", "venv", "--clear", folder]),
        (f"pip could not install {requirements.name}", pip),
        ("its packages are installed, but cannot be imported", [python, "-c", f"import {tool}"]),
    )
    for failure, command in steps:
        done = subprocess.run(command, stderr=subprocess.PIPE, text=True)
        sys.stderr.write(done.stderr)
        if done.returncode:
            return f"{failure} ({last_line(done.stderr)}); correct that, then run snakemake with --forcerun {tool}_environment"
    (folder / "complete").touch()
    return None


def suitable(tool: str) -> str | None:
    """This Python, if the tool's lock is for it; otherwise the newest one on the PATH that it is for; None if there is none."""
    newest = NEWEST.get(tool, sys.version_info[:2])
    if sys.version_info[:2] <= newest:
        return sys.executable
    return next((found for minor in range(newest[1], 10, -1) if (found := shutil.which(f"python3.{minor}"))), None)


if __name__ == "__main__":
    run(main)
