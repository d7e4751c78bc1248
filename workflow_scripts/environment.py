"""environment: makes a separate Python environment for a tool that needs other versions of libraries.

It is made once, with pip, from the lock file envs/{tool}.txt. If that fails, the run goes on; the output then has the reason instead of
the path to Python.
"""

import subprocess
import sys
from pathlib import Path

from workflow_scripts.stage import checksum, run, write_json


def main(requirements: Path, output: Path) -> None:
    """Make the environment if it does not exist yet, and write the path of its Python, or the reason why there is none.

    The environment is in the folder of `output`; its name is that of the lock file with its checksum. A file `complete` in it shows that
    the installation was not interrupted.

    Args:
        requirements: The lock file; its name without suffix must be the name under which Python imports the tool.
        output: JSON file to write, with `python` and `reason`.
    """
    tool = requirements.stem
    folder = output.parent / f"{tool}-{checksum(requirements)[:12]}"
    python, complete = folder / "bin/python", folder / "complete"
    reason = None
    if not (python.exists() and complete.exists()):
        pip: list[str | Path] = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement", requirements]
        steps: tuple[tuple[str, list[str | Path]], ...] = (
            ("no environment could be made", [sys.executable, "-m", "venv", "--clear", folder]),
            (f"pip could not install {requirements.name}", pip),
            ("its packages are installed, but cannot be imported", [python, "-c", f"import {tool}"]),
        )
        for failure, command in steps:
            done = subprocess.run(command, stderr=subprocess.PIPE, text=True)
            sys.stderr.write(done.stderr)
            if done.returncode:
                said = (done.stderr.strip().splitlines() or ["without a word"])[-1]
                reason = f"{failure} ({said}); correct that, then run snakemake with --forcerun {tool}_environment"
                break
        else:
            complete.touch()
    write_json(output, {"python": None if reason else str(python), "reason": reason})


if __name__ == "__main__":
    run(main)
