"""The map of the code, docs/design.md, is up to date."""

import re
from pathlib import Path


def test_every_module_stands_in_its_room():
    page = Path("docs/design.md").read_text(encoding="utf-8")
    rooms = {"": r"root", **{path.parent.name: rf"\**`{path.parent.name}/`\**" for path in Path("workflow_scripts").glob("*/__init__.py")}}
    missing = []
    for room, called in rooms.items():
        (listed,) = re.findall(rf"^### {called}: .*\n(?:(?!##).*\n)*", page, flags=re.M)
        modules = (Path("workflow_scripts") / room).glob("*.py")
        missing += [f"{room}/{path.stem}" for path in modules if not path.stem.startswith("__") and f"`{path.stem}`" not in listed]
    assert missing == []
