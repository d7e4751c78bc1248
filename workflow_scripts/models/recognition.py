"""recognition: of which family a model is, and what its configuration says of it: how long its rows may be, how deep its decoder is."""

import difflib
import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from workflow_scripts import plugins, registry
from workflow_scripts.errors import InputError
from workflow_scripts.models.family import Family
from workflow_scripts.models.folders import check_folder

UNLIMITED = 1 << 30
"""The longest row of models whose positions are relative, so that none is too long; no text has so many pieces."""


def family_of(model: Any) -> Family:
    """The family of a model: of a folder in Hugging Face's format, or of a configuration of transformers.

    Raises `InputError` for a family that Crossgap does not know, with the nearest one that it knows, for a folder without
    a readable ``config.json``, and as `check_folder` does.
    """
    if isinstance(model, str | Path):
        check_folder(Path(model))
        where, config = f"{model}: ", config_of(model)
        tokenizer = _read(Path(model) / "tokenizer_config.json", missing_ok=True).get("tokenizer_class")
        kind, declared = config.get("model_type"), f"{config.get('tokenizer_class')} {tokenizer}"
        said, built = config.get(_SAID), config.get("architectures")
    else:
        where, kind, declared = "", getattr(model, "model_type", None), str(getattr(model, "tokenizer_class", None))
        said, built = getattr(model, _SAID, None), getattr(model, "architectures", None)
    known = registry.entries("family")
    if isinstance(said, dict) and said.get("family"):
        if said["family"] in known:
            return known[said["family"]]
        raise InputError(
            f"{where}is a model of the family {said['family']}, which the plugin {said.get('plugin')} brings; name this plugin: `plugins` "
            "in the configuration, or --plugins FILE behind a command"
        )
    # of families with the same `model_type`, one that is recognised by its tokenizer comes first
    for each in sorted(known.values(), key=lambda one: not one.tokenizer):
        if each.model_type == kind and each.tokenizer in declared:
            return each
    for each in known.values():
        if each.recognises and each.recognises(str(kind), tuple(built or ())):
            return replace(each, model_type=str(kind))
    near = difflib.get_close_matches(str(kind), {name for one in known.values() for name in (one.name, one.model_type)}, n=1)
    guess = f"; the nearest that is known is {near[0]}" if near else ""
    raise InputError(f"{where}is a model of type {kind!r}, none that Crossgap knows ({titles()}){guess}; a plugin can bring its family")


_SAID = "crossgap"
"""The setting in a saved model's ``config.json`` that names a family of a plugin."""


def say_family(config: Any) -> None:
    """Have a model's configuration name its family, and the plugin that brings it, where it comes from one."""
    if (own := family_of(config)).plugin:
        plugin = plugins.loaded()[own.plugin].name
        setattr(config, _SAID, {"family": own.name, "plugin": Path(plugin).name if plugin.endswith(".py") else plugin})


def config_of(folder: str | Path) -> dict[str, Any]:
    """The settings in a model's ``config.json``. Raises `InputError` where they cannot be read."""
    return _read(Path(folder) / "config.json")


def _read(path: Path, missing_ok: bool = False) -> dict[str, Any]:
    if missing_ok and not path.exists():
        return {}
    try:
        read = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(read, dict):
            raise ValueError(f"it has no settings but {json.dumps(read)[:60]}")
        return read
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read ({error}); download or copy the model again") from None


def titles(families: Iterable[Family] | None = None) -> str:
    """The names of families for a message; of all families by default."""
    return ", ".join(dict.fromkeys(one.label for one in families or registry.entries("family").values()))


def longest_row(config: Any) -> int:
    """The longest row, in pieces, that a model of this configuration can read."""
    own = family_of(config)
    if not own.positions:
        return UNLIMITED
    return getattr(config, own.positions) - (_reserved_by(config) if own.by_structure else own.reserved_positions)


def _reserved_by(config: Any) -> int:
    """The positions that no piece can have in an encoder of this configuration whose structure tells."""
    import torch
    from transformers import AutoModel

    with torch.device("meta"):
        return reserved_in(AutoModel.from_config(config))


def reserved_in(network: Any) -> int:
    """The number of positions in a network's table that no piece can have; the first piece of a row has the one behind them."""
    from workflow_scripts.models.structure import reserved_positions

    own = family_of(network.config)
    return reserved_positions(network) if own.by_structure else own.reserved_positions


def longest_output(config: Any) -> int:
    """The most pieces that a model of this configuration can write; a row also has the piece that it starts with, and its end."""
    return longest_row(config) - 2


def decoder_depth(config: Any) -> int:
    """The layers of the decoder of a model; of an encoder 0."""
    return getattr(config, family_of(config).size.get("decoder_layers", ""), 0) or 0
