"""networks: a model with the head that a task needs, loaded, taken apart and saved."""

from __future__ import annotations

import os
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors import SafetensorError

from workflow_scripts.models.families import FAMILIES, family_of, titles
from workflow_scripts.stage import InputError, in_one_line, to_disk

if TYPE_CHECKING:
    from transformers import PreTrainedModel


def load_network(
    folder: Path | str,
    head: str,
    *,
    dropout: float,
    attention_dropout: float,
    seed: int,
    labels: list[str] | None = None,
    from_scratch: bool = False,
    **settings: Any,
) -> PreTrainedModel:
    """The model in `folder` (or a hub id) in float32, with the head for a task, one of those in the table of families.

    Weights that the model lacks are drawn at random from `seed`: those of a new head, or with `from_scratch` all weights. `labels` are
    those of a head that classifies or tags; without them, the model keeps its own head. `settings` are further entries of the model's
    configuration. Raises `InputError` for a family without such a head, and for a model that has lost its decoder to a head of its encoder,
    unless none is asked for (`decoder_layers=0`); also as `read_weights` does.
    """
    import transformers

    transformers.set_seed(seed)
    config = transformers.AutoConfig.from_pretrained(folder)
    family = family_of(config)
    if head not in family.heads:
        able = titles(each for each in FAMILIES.values() if head in each.heads)
        raise InputError(f"{folder}: is a model of the family {family.title}, which has no head for {head}; those that have one: {able}")
    if family.decoder and not config.decoder_layers and settings.get("decoder_layers") != 0:
        raise InputError(
            f"{folder}: lost its decoder to a head that reads the encoder (parts: encoder); set parts: encoder for what starts from it, "
            "or start from a model that has its decoder"
        )
    changes: dict[str, Any] = dict(zip(family.dropout, (dropout, attention_dropout), strict=True))
    changes |= dict.fromkeys(family.off, 0.0)
    if head != "text":
        changes["classifier_dropout"] = dropout
    if labels:
        changes |= {"id2label": dict(enumerate(labels)), "label2id": {label: number for number, label in enumerate(labels)}}
    config.update({**changes, **settings})
    if getattr(config, "cross_attention", False):
        config.cross_attention = False  # of a VECO: what is loaded here has none, and must not be taken for one
    from workflow_scripts.models import classifier, spans, tagger

    modules = (transformers, classifier, tagger, spans)
    kind = next(getattr(module, family.heads[head]) for module in modules if hasattr(module, family.heads[head]))
    config.dtype = torch.float32  # a folder in half precision says so
    # transformers' Auto classes cannot be called
    network = getattr(kind, "from_config", kind)(config) if from_scratch else read_weights(kind, folder, config=config, dtype=torch.float32)
    if family.decoder and not config.decoder_layers:
        rest_decoder(network)
    return network


def read_weights(kind: Any, folder: Path | str, may_lack: Callable[[str], bool] | None = None, **settings: Any) -> Any:
    """The model in `folder` as one of transformers' classes. transformers draws what the files lack at random, and says so in a log alone.

    Raises `InputError` where the files cannot be read or do not fit ``config.json``, and where weights are missing that are not among
    those that the folder `may_lack`: a head and a pooler, if not told otherwise.
    """
    try:
        network, read = kind.from_pretrained(folder, output_loading_info=True, **settings)
    except (RuntimeError, OSError, EOFError, SafetensorError, pickle.UnpicklingError) as error:  # sizes that differ, parts that are lost
        said = in_one_line(error)
        raise InputError(f"{folder}: its weights do not fit its config.json ({said}); download or copy the model again") from None
    body = "" if network.base_model is network else f"{network.base_model_prefix}."
    may_lack = may_lack or (lambda name: not name.startswith(body) or "pooler." in name)
    if missing := sorted(name for name in read["missing_keys"] if not may_lack(name)):
        more = f" and {len(missing) - 1} more" if missing[1:] else ""
        there = f", and has {sorted(read['unexpected_keys'])[0]}, which no such model has" if read["unexpected_keys"] else ""
        raise InputError(
            f"{folder}: its weights do not fit its config.json (it lacks {missing[0]}{more}{there}); download or copy the model again"
        )
    return network


def rest_decoder(network: PreTrainedModel) -> None:
    """Have only the encoder's weights trained, where a head reads them alone and there are no layers of a decoder.

    Several processes wait for the gradient of each weight that is trained, and the decoder's have none. The embeddings, which both halves
    share, are the encoder's as well.
    """
    body: Any = network.base_model
    shared = {id(weight) for weight in body.encoder.parameters()}
    for weight in body.decoder.parameters():
        weight.requires_grad_(id(weight) in shared)


def last_states(network: PreTrainedModel, **inputs: Any) -> torch.Tensor:
    """What the output layer multiplies: the last states (rows × length × width), of the decoder if there is one."""
    if family_of(network.config).decoder:
        return network.base_model(**inputs, use_cache=False).last_hidden_state
    return head_states(network, network.base_model(**inputs).last_hidden_state)


def head_states(network: PreTrainedModel, states: torch.Tensor) -> torch.Tensor:
    """What the output layer of an encoder multiplies, of its last states: the masked language model's head has a layer before it."""
    head: Any = getattr(network, "lm_head", None)
    if head is None:
        bert: Any = network
        return bert.cls.predictions.transform(states)
    return head.layer_norm(torch.nn.functional.gelu(head.dense(states)))


def output_layer(network: PreTrainedModel) -> tuple[torch.Tensor, torch.Tensor]:
    """The matrix (vocabulary × width) and the bias (vocabulary) that make a piece's score from the last states."""
    layer = network.get_output_embeddings()
    bias = getattr(network, "final_logits_bias", layer.bias)
    return layer.weight, layer.weight.new_zeros(len(layer.weight)) if bias is None else bias.flatten()


def save_model(network: PreTrainedModel, tokenizer: Any, folder: Path) -> None:
    """Write model and tokenizer. The folder is renamed to `folder` only when it is complete."""
    temporary = folder.with_name(f".{folder.name}.part")
    shutil.rmtree(temporary, ignore_errors=True)
    network.save_pretrained(temporary)
    tokenizer.save_pretrained(temporary)
    to_disk(temporary)
    shutil.rmtree(folder, ignore_errors=True)
    os.replace(temporary, folder)
