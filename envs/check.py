"""Asks the package registry whether every locked package has a wheel for each Python, or builds from source: `make check-locks`.

uv answers for wheels, without downloading them. What has only source is built here by pip; a wheel of pure Python then serves all Pythons.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

PYTHONS = ("3.11", "3.12", "3.13", "3.14")
LOCKS = {"requirements.txt": PYTHONS, "browser.txt": PYTHONS, "docs.txt": PYTHONS, "mtdata.txt": PYTHONS, "comet.txt": ("3.11", "3.12")}
"""Lock → the Pythons that it is for (workflow_scripts/environment.py)."""


def main() -> int:
    """Print for each lock and Python what has no wheel; the exit status is 1 if something can be had in no way."""
    status = 0
    built: dict[str, bool] = {}
    for lock, pythons in LOCKS.items():
        lines = [line for line in (Path(__file__).parent / lock).read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
        for python in pythons:
            source, why = without_wheels(lines, python)
            for line in source:
                built[line] = built[line] if line in built else builds(line)
            bad = [line for line in source if not built[line]]
            status |= bool(bad or why)
            print(f"{lock}, Python {python}: {len(lines)} packages", f"built from source: {', '.join(source) or 'none'}", sep="; ", end="")
            print(*(f"; NOT TO BE HAD: {line}" for line in bad), why and f"; {why}", sep="", flush=True)
    return status


def without_wheels(lines: list[str], python: str) -> tuple[list[str], str]:
    """Those of a lock's lines that have no wheel for this Python on Linux; and what uv says where it fails for another reason."""
    pinned = {re.split("==", line)[0].lower(): line for line in lines}
    source: list[str] = []
    while True:
        wheels = [f"--only-binary={name}" for name in pinned if pinned[name] not in source]
        command = [
            "uv",
            "pip",
            "compile",
            "--no-config",
            "--no-deps",
            "--python-platform=linux",
            f"--python-version={python}",
            *wheels,
            "-",
        ]
        done = subprocess.run(command, input="\n".join(lines), capture_output=True, text=True)
        if not done.returncode:
            return source, ""
        names = re.findall(r"Wheels are required for `([\w.-]+)`", done.stderr) or re.findall(r"\b([\w.-]+)==\S+ has no ", done.stderr)
        found = [line for line in (pinned.get(name.lower()) for name in names) if line and line not in source]
        if not found:
            return source, " ".join(done.stderr.split())
        source += found


def builds(line: str) -> bool:
    """Whether pip makes a wheel of pure Python of the source."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--use-pep517", f"--wheel-dir={folder}", line]
        return not subprocess.run(command).returncode and bool(list(Path(folder).glob("*-none-any.whl")))


if __name__ == "__main__":
    sys.exit(main())
