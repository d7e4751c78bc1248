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
from workflow_scripts.stage import in_one_line

UNLIMITED = 1 << 30
"""The longest row of models whose positions are relative, so that none is too long; no text has so many pieces."""


def family_of(model: Any) -> Family:
    """The family of a model: of a folder in Hugging Face's format, or of a configuration of transformers. Of a model that also sees or
    hears it is that of its text part.

    Raises `InputError` for a family that Crossgap does not know, with the nearest one that it knows, for a folder without
    a readable ``config.json``, and as `check_folder` does.
    """
    if isinstance(model, str | Path):
        check_folder(Path(model))
        where, config = f"{model}: ", config_of(model)
        tokenizer = _read(Path(model) / "tokenizer_config.json", missing_ok=True).get("tokenizer_class")
        kind, declared = config.get("model_type"), f"{config.get('tokenizer_class')} {tokenizer}"
        said, built, own = config.get(_SAID), config.get("architectures"), config.get("auto_map")
    else:
        model = text_part(model)
        where, kind, declared = "", getattr(model, "model_type", None), str(getattr(model, "tokenizer_class", None))
        said, built, own = (getattr(model, name, None) for name in (_SAID, "architectures", "auto_map"))
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
    classes = (*(built or ()), *_classes_of_its_own(str(kind), own or {}))
    for each in known.values():
        if each.recognises and each.recognises(str(kind), classes):
            return replace(each, model_type=str(kind))
    near = difflib.get_close_matches(str(kind), {name for one in known.values() for name in (one.name, one.model_type)}, n=1)
    guess = f"; the nearest that is known is {near[0]}" if near else ""
    raise InputError(f"{where}is a model of type {kind!r}, none that Crossgap knows ({titles()}){guess}; a plugin can bring its family")


def _classes_of_its_own(model_type: str, named: dict[str, Any]) -> list[str]:
    """What a model whose code is no part of transformers can be opened as (`AutoModelForMaskedLM`); one that guesses masked pieces may also
    have a class that writes, and is an encoder all the same."""
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES

    if model_type in CONFIG_MAPPING_NAMES:
        return []
    return [name for name in named if name != "AutoModelForCausalLM" or "AutoModelForMaskedLM" not in named]


_SAID = "crossgap"
"""The setting in a saved model's ``config.json`` that names a family of a plugin."""


def say_family(config: Any) -> None:
    """Have a model's configuration name its family, and the plugin that brings it, where it comes from one."""
    if (own := family_of(config)).plugin:
        plugin = plugins.loaded()[own.plugin].name
        setattr(config, _SAID, {"family": own.name, "plugin": Path(plugin).name if plugin.endswith(".py") else plugin})


def config_of(folder: str | Path) -> dict[str, Any]:
    """The settings in a model's ``config.json``, with those of a text part instead of its own where it has one (`text_part`).

    Raises `InputError` where they cannot be read.
    """
    path = Path(folder) / "config.json"
    read = _read(path)
    if not isinstance(read.get("text_config"), dict):
        return read
    from transformers import CONFIG_MAPPING

    if (kind := str(read.get("model_type"))) not in CONFIG_MAPPING:
        return read
    try:
        whole = CONFIG_MAPPING[kind].from_dict(read)
    except Exception as error:  # transformers raises many kinds of errors for settings that do not fit
        raise InputError(f"{path}: cannot be read ({in_one_line(error)}); download or copy the model again") from None
    return read if (part := text_part(whole)) is whole else part.to_dict()


def network_config(folder: str | Path) -> Any:
    """transformers' configuration of the network that a folder, or a model of the hub, has for text (`text_part`)."""
    from transformers import AutoConfig

    return text_part(AutoConfig.from_pretrained(folder))


def text_part(config: Any) -> Any:
    """The configuration of the decoder that reads and writes the text of a model that also sees or hears (Gemma 3 from 4B on, Qwen 3.5).

    Any other configuration is returned as it is.
    """
    part = getattr(config, "text_config", None)
    if part is None or not is_decoder(part.model_type):
        return config
    part.tie_word_embeddings = config.tie_word_embeddings
    return part


def is_decoder(model_type: str) -> bool:
    """Whether transformers has such a model as one that writes text, and not as one that has an encoder or guesses masked pieces."""
    from transformers.models.auto import modeling_auto as known

    others = (known.MODEL_FOR_MASKED_LM_MAPPING_NAMES, known.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES)
    return model_type in known.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES and not any(model_type in each for each in others)


_WRITERS = ("ForCausalLM", "LMHeadModel", "ForConditionalGeneration")
"""How transformers' classes of decoders end that have an output layer."""


TAKE_A_WRITER = "take a model that can, or let the experiments only read with it"
"""What to do where a decoder cannot write."""


def why_it_only_reads(folder: str | Path) -> str:
    """Why the decoder in a folder cannot write text, as many models for embeddings cannot; empty where it can."""
    config = network_config(folder)
    if getattr(config, "use_bidirectional_attention", None) in (True, "all"):
        return "its attention also sees later pieces (use_bidirectional_attention)"
    built = [str(name) for name in _read(Path(folder) / "config.json").get("architectures") or ()]
    if built and not config.tie_word_embeddings and not any(name.endswith(_WRITERS) for name in built):
        return f"its folder has no output layer ({built[0]})"
    return ""


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
    if not own.positions or not hasattr(config, own.positions):  # some decoders count none: Mamba, MPT
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
