"""A headless Chromium: the installed one, or one from npm that brings its libraries and its font and needs nothing of the system."""

import io
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import brotli

PACKAGE = "@sparticuz/chromium@153.0.0"
FONTS = "<fontconfig><dir>{0}/fonts</dir><cachedir>{0}/cache</cachedir></fontconfig>\n"


def launch_options():
    """Which browser Playwright starts, and how."""
    for name in ("chromium", "google-chrome", "google-chrome-stable"):
        installed = shutil.which(name)
        # a snap has its own /tmp
        if installed and Path(installed).resolve().name != "snap":
            return {"executable_path": installed}
    folder = Path(sys.prefix) / "chromium"
    if not folder.exists():
        fetch(folder)
    return {"executable_path": folder / "chromium", "env": {"LD_LIBRARY_PATH": str(folder / "lib"), "FONTCONFIG_PATH": str(folder)}}


def fetch(folder):
    """Unpack the npm package; `folder` is there only when it is whole."""
    assert platform.machine() == "x86_64", "no Chromium is installed, and npm has one for x86-64 alone"
    with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
        npm = [Path(sys.executable).with_name("npm"), "--cache", "cache", "--loglevel", "error"]
        subprocess.run([*npm, "pack", PACKAGE], cwd=temporary, check=True)
        whole = Path(temporary) / "chromium"
        (archive,) = Path(temporary).glob("*.tgz")
        with tarfile.open(archive) as package:
            packed = {Path(name).name: package.extractfile(name).read() for name in package.getnames() if name.endswith(".br")}
        for name, content in packed.items():
            content = brotli.decompress(content)
            if name.endswith(".tar.br"):
                with tarfile.open(fileobj=io.BytesIO(content)) as files:
                    files.extractall(whole)
            else:
                whole.mkdir(exist_ok=True)
                (whole / name.removesuffix(".br")).write_bytes(content)
        (whole / "chromium").chmod(0o755)
        (whole / "fonts.conf").write_text(FONTS.format(folder), encoding="utf-8")
        whole.rename(folder)
