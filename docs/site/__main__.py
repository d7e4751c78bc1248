"""Builds the documentation's site: ``python -m docs.site OUTPUT`` (`make docs`).

1. The Markdown of the repository is copied into a folder, with the files that it links to.
2. Pages that are made of the code come beside it: the settings, the errors, and what a plugin may import.
3. Each sample, a packed run, is made a report of again.
4. Sphinx makes a site of it, without the network. Every warning, such as a link that leads nowhere, is an error.

The README is the first page. Links have the form that works on GitHub as well.
"""

import argparse
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path

from docs.site import errors, reference, samples, settings
from workflow_scripts.errors import InputError

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
LINK = re.compile(r"\]\(([^)\s]+)\)")
PARTS = {
    "Begin": ["docs/tutorial", "docs/howto", "docs/recipes", "docs/faq"],
    "Look up": ["docs/configuration/index", "docs/troubleshooting", "docs/errors", "docs/glossary", "docs/mapping"],
    "Extend": ["docs/extend", "docs/reference", "CONTRIBUTING", "docs/design"],
    "Results": ["docs/samples/README", "docs/results", "docs/reproduce", "docs/review"],
    "Run": ["docs/slurm", "docs/reliability", "docs/performance", "docs/upgrading", "CHANGELOG"],
}
"""Part of the navigation → its pages; a page that stands in none is an error of the build."""
BELOW = {"docs/results": "docs/results/*.md", "docs/reproduce": "resources/README.md", "CHANGELOG": "docs/changelog/*.md"}
"""Page → the pages that stand below it."""


def main(output: Path) -> None:
    """Build the site into `output`, whose earlier content is replaced.

    Raises `InputError` where Sphinx is not installed, or finds something wrong.
    """
    try:
        from sphinx.cmd.build import build_main
    except ModuleNotFoundError:
        raise InputError("Sphinx is not installed; `make docs` installs it (envs/docs.txt)") from None
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder)
        put_together(source)
        (source / "_extra").mkdir()
        for pack in samples.packs():
            samples.render(pack, source / "_extra/docs/samples" / pack.stem)
        # the cache of an earlier build would hide its warnings
        shutil.rmtree(output, ignore_errors=True)
        done = build_main(["-b", "html", "-W", "--keep-going", "-q", "-E", "-d", f"{folder}/.doctrees", folder, str(output)])
    if done:
        raise InputError("the site was not built; what is wrong stands above")


def put_together(source: Path) -> None:
    """Write all that Sphinx reads into a folder."""
    shutil.copy(HERE / "conf.py", source)
    shutil.copytree(HERE / "static", source / "_static")
    for path in pages():
        _write(source, path, path.read_text(encoding="utf-8"))
    _write_made(source / "docs")
    for name, parts in {"index": PARTS, **{above: {"": below(source, above)} for above in BELOW}}.items():
        with open(source / f"{name}.md", "a", encoding="utf-8") as page:
            page.write("".join(contents(*part) for part in parts.items()))


def pages() -> list[Path]:
    """The pages of the repository."""
    return [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), ROOT / "resources/README.md"]


def _write(source: Path, path: Path, text: str) -> None:
    """Put a page where Sphinx reads it, and beside it the files of the repository that it links to."""
    there = source / path.relative_to(ROOT)
    there.parent.mkdir(parents=True, exist_ok=True)

    def link(found: re.Match) -> str:
        target, _, anchor = found[1].partition("#")
        if not target or re.match(r"\w+:", target):
            return found[0]
        file = Path(os.path.normpath(path.parent / target))
        if file == ROOT / "README.md":
            return f"]({os.path.relpath(ROOT / 'index.md', path.parent)}{'#' * bool(anchor)}{anchor})"
        if file.is_dir():
            return f"]({os.path.relpath(file / 'README.md', path.parent)})" if (file / "README.md").exists() else "]"
        if file.suffix != ".md" and file.is_file():
            copy = source / file.relative_to(ROOT)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, copy)
        return found[0]

    if path == samples.LIST:
        text = re.sub(r"\[([^]]*)\]\(([^)\s]+)\.zip\)", r'<a href="\2/report.html">\1</a>', text)
    # a page is called by its title or heading there, and by its file's name in the repository
    shown = re.sub(r"\[[\w./-]+\.md\](\([^)]*\.md(?:#[^)]*)?\))", r"*[]\1*", LINK.sub(link, text))
    (there.with_name("index.md") if path == ROOT / "README.md" else there).write_text(shown, encoding="utf-8")


def _write_made(folder: Path) -> None:
    """The pages that are made of the code."""
    (folder / "configuration").mkdir(parents=True)
    for name, text in settings.pages().items():
        (folder / "configuration" / name).write_text(text, encoding="utf-8")
    (folder / "errors.md").write_text(errors.page(errors.explained()), encoding="utf-8")
    (folder / "reference.md").write_text(reference.page(), encoding="utf-8")


def below(source: Path, above: str) -> list[str]:
    """The pages that stand below another one in the navigation, as seen from it."""
    return [os.path.relpath(path.with_suffix(""), (source / above).parent) for path in sorted(source.glob(BELOW[above]))]


def contents(part: str, names: list[str]) -> str:
    """A part of the navigation."""
    return "\n```{toctree}\n:hidden:\n" + (f":caption: {part}\n" if part else "") + "\n" + "\n".join(names) + "\n```\n"


if __name__ == "__main__":
    command = argparse.ArgumentParser(prog="python -m docs.site", description="Build the documentation's site.")
    command.add_argument("output", type=Path, help="the folder to write; its earlier content is replaced")
    try:
        main(command.parse_args().output)
    except InputError as reason:
        sys.exit(f"error: {reason}")
