"""configurations: shipped configurations with something changed, for tests."""

import copy
from pathlib import Path

import yaml

DEFAULT = yaml.safe_load(Path("config.yaml").read_text(encoding="utf-8"))


def changed(path: str, value):
    """config.yaml with one value set; `...` deletes the key."""
    result = copy.deepcopy(DEFAULT)
    node = result
    *folders, last = path.split("/")
    for key in folders:
        node = node[int(key)] if isinstance(node, list) else node.setdefault(key, {})
    if value is ...:
        del node[last]
    else:
        node[int(last) if isinstance(node, list) else last] = value
    return result


def classified(path: str = "", value=None):
    """config.yaml with the recipe config/help-modules.yaml laid over it, and one value set; `...` deletes the key."""
    raw, recipe = copy.deepcopy(DEFAULT), yaml.safe_load(Path("config/help-modules.yaml").read_text(encoding="utf-8"))
    for section, content in recipe.items():
        raw[section] = {**raw.get(section, {}), **content}
    *folders, last = path.split("/")
    node = raw
    for key in folders:
        node = node[int(key)] if isinstance(node, list) else node.setdefault(key, {})
    if value is ...:
        del node[last]
    elif path:
        node[last] = value
    return raw


RECIPE = yaml.safe_load(Path("config/help-summaries.yaml").read_text(encoding="utf-8"))


def summaries(path: str, value):
    """The recipe of summaries over config.yaml, with one value set."""
    raw = copy.deepcopy(DEFAULT)
    raw["run"]["experiments"] = RECIPE["run"]["experiments"]
    for section in ("corpora", "backbones", "experiments"):
        raw[section] |= copy.deepcopy(RECIPE[section])
    raw["lexicons"]["unsupervised"]["corpus"] = "help"
    *folders, last = path.split("/")
    node = raw
    for key in folders:
        node = node.setdefault(key, {})
    node[last] = value
    return raw
