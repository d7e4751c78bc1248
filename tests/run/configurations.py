"""configurations: shipped configurations with something changed, for tests."""

import copy
from pathlib import Path

import yaml
from snakemake.iocontainers import Wildcards
from snakemake.utils import update_config

from workflow_scripts.run.config import load
from workflow_scripts.run.jobs import Job
from workflow_scripts.tasks.plan import Plan, Plans

DEFAULT = yaml.safe_load(Path("config.yaml").read_text(encoding="utf-8"))
RECIPE = yaml.safe_load(Path("config/help-summaries.yaml").read_text(encoding="utf-8"))


def with_recipes(*names: str) -> dict:
    """config.yaml with these recipes laid over it, one over the other."""
    raw = copy.deepcopy(DEFAULT)
    for name in names:
        update_config(raw, yaml.safe_load(Path(f"config/{name}.yaml").read_text(encoding="utf-8")))
    return raw


def changed(path: str, value):
    """config.yaml with one value set; `...` deletes the key."""
    return with_value(copy.deepcopy(DEFAULT), path, value)


def classified(path: str = "", value=None):
    """config.yaml with the recipe config/help-modules.yaml laid over it, and one value set; `...` deletes the key."""
    raw = with_recipes("help-modules")
    return with_value(raw, path, value) if path else raw


def summaries(path: str, value):
    """The recipe of summaries over config.yaml, with one value set; `...` deletes the key."""
    raw = copy.deepcopy(DEFAULT)
    raw["run"]["experiments"] = RECIPE["run"]["experiments"]
    for section in ("corpora", "backbones", "experiments"):
        raw[section] |= copy.deepcopy(RECIPE[section])
    raw["lexicons"]["unsupervised"]["corpus"] = "help"
    return with_value(raw, path, value)


def with_value(raw: dict, path: str, value) -> dict:
    """`raw` with a value set at a path such as `arms/csr/0/updates`; `...` deletes the key."""
    node = raw
    *folders, last = path.split("/")
    for key in folders:
        node = node[int(key)] if isinstance(node, list) else node.setdefault(key, {})
    if value is ...:
        del node[last]
    else:
        node[int(last) if isinstance(node, list) else last] = value
    return raw


def planned(raw: dict) -> Plans:
    """The plans of a configuration."""
    return Plans(load(raw))


def demo(raw: dict) -> Plan:
    """The plan of the demo's experiment."""
    return planned(raw).experiments["help-de-en"]


def job(config, **wildcards):
    """The job of some wildcards."""
    return Job(Plans(config), Wildcards(fromdict=wildcards))
