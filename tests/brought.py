"""What readers bring themselves: the files under data/ that a recipe names, empty."""

from pathlib import Path

import yaml
from snakemake.utils import update_config

from workflow_scripts.run.config import load
from workflow_scripts.run.uses import paths_of
from workflow_scripts.tasks.plan import Plans

ROOT = Path(__file__).resolve().parents[1]


def bring(folder: Path, *recipes: Path) -> None:
    """Make the files under data/ that recipes, laid over config.yaml, name."""
    raw: dict = {}
    for recipe in (ROOT / "config.yaml", *recipes):
        update_config(raw, yaml.safe_load(recipe.read_text(encoding="utf-8")))
    for path in {folder / path for _, path in paths_of(Plans(load(raw))) if path.startswith("data/")}:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
