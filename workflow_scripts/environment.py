"""environment: a Python environment of its own for a tool whose libraries do not go with the others'.

Made once with pip from a lock, envs/{tool}.txt. A run does not fail where it cannot be made: the file that says where its
Python is says why there is none.
"""

import subprocess
import sys
from pathlib import Path

from workflow_scripts.stage import checksum, run, write_json


def main(requirements: Path, output: Path) -> None:
    """Make the environment with pip, if it is not there yet, and write where its Python is, or why there is none.

    It stands beside `output`, in a folder named by the lock and its checksum; `complete` in it tells it from what a
    killed attempt left. The tool's package is to be imported under the lock's name.
    """
    tool = requirements.stem
    folder = output.parent / f"{tool}-{checksum(requirements)[:12]}"
    python, complete = folder / "bin/python", folder / "complete"
    reason = None
    if not (python.exists() and complete.exists()):
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement", requirements]
        for failure, command in (
            ("no environment could be made", [sys.executable, "-m", "venv", "--clear", folder]),
            (f"pip could not install {requirements.name}", pip),
            ("its packages are installed, but cannot be imported", [python, "-c", f"import {tool}"]),
        ):
            done = subprocess.run(command, stderr=subprocess.PIPE, text=True)
            sys.stderr.write(done.stderr)
            if done.returncode:
                said = (done.stderr.strip().splitlines() or ["without a word"])[-1]
                reason = f"{failure} ({said}); mend that, then run snakemake with --forcerun {tool}_environment"
                break
        else:
            complete.touch()
    write_json(output, {"python": None if reason else str(python), "reason": reason})


if __name__ == "__main__":
    run(main)
