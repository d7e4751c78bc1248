"""The rules of the workflow, as they are written."""

import re
from pathlib import Path

RULES = Path(__file__).resolve().parent.parent / "rules"


def rule_blocks() -> dict[str, str]:
    """Rule → its text, of all rule files."""
    blocks: dict[str, str] = {}
    for path in RULES.glob("*.smk"):
        blocks |= re.findall(r"^rule (\w+):\n(.*?)(?=^rule |\Z)", path.read_text(encoding="utf-8"), flags=re.M | re.S)
    return blocks


def training_rules() -> set[str]:
    """The rules that train: whose jobs are told their attempt, and go on from a checkpoint."""
    return {name for name, block in rule_blocks().items() if "--attempt {resources.attempt}" in block}
