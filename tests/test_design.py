"""The map of the code, docs/design.md, is up to date, and stages are laid out as it says."""

import re
from pathlib import Path

ROOMS = ["", *(path.parent.name for path in Path("workflow_scripts").glob("*/__init__.py"))]


def listed(room: str) -> list[str]:
    """The modules that the map lists under a room."""
    page = Path("docs/design.md").read_text(encoding="utf-8")
    called = rf"\**`{room}/`\**" if room else "root"
    (items,) = re.findall(rf"^### {called}: .*\n((?:(?!##).*\n)*)", page, flags=re.M)
    return [name for names in re.findall(r"^- (.*?):", items, flags=re.M) for name in re.findall(r"`(.*?)`", names)]


def test_every_room_lists_its_modules_and_no_others():
    for room in ROOMS:
        modules = [path.stem for path in (Path("workflow_scripts") / room).glob("*.py") if not path.stem.startswith("__")]
        assert (room, sorted(listed(room))) == (room, sorted(modules))


def test_a_rule_file_is_named_like_its_module_and_its_tests():
    # `common` is of no stage
    for stage in {path.stem for path in Path("rules").glob("*.smk")} - {"common"}:
        modules = [*Path("workflow_scripts").glob(f"*/{stage}.py"), *Path("workflow_scripts").glob(f"{stage}/__main__.py")]
        tests = [*Path("tests").glob(f"*/test_{stage}.py")]
        assert (stage, len(modules)) == (stage, 1)
        assert [path.parent.name for path in tests] == [modules[0].parent.name]
