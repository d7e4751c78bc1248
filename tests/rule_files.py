"""The rules of the workflow, as they are written."""

import re
from pathlib import Path

RULES = Path(__file__).resolve().parent.parent / "rules"


def rule_blocks() -> dict[str, str]:
    """Rule → its text, of all rule files. The text of a rule that takes over another (`use rule`) is the other's, and then its own."""
    pattern = r"^(?:use rule (\w+) as |rule )(\w+)(?: with)?:\n(.*?)(?=^(?:use )?rule |\Z)"
    found = {}
    for path in RULES.glob("*.smk"):
        for base, name, block in re.findall(pattern, path.read_text(encoding="utf-8"), flags=re.M | re.S):
            found[name] = base, block
    return {name: (found[base][1] if base else "") + block for name, (base, block) in found.items()}


def training_rules() -> set[str]:
    """The rules that train: their jobs know their attempt, and go on from a checkpoint."""
    return {name for name, block in rule_blocks().items() if "--attempt {resources.attempt}" in block}
