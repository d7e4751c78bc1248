"""networks: a model with the head that a task needs, loaded, taken apart and saved."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import pickle
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors import SafetensorError

from workflow_scripts import registry
from workflow_scripts.device import without_gradients
from workflow_scripts.models.family import Family
from workflow_scripts.models.folders import check_folder, check_replaceable, check_weights
from workflow_scripts.models.foreign_code import code_left_out
from workflow_scripts.models.recognition import (
    TAKE_A_WRITER,
    decoder_depth,
    family_of,
    network_config,
    say_family,
    text_part,
    titles,
    why_it_only_reads,
)
from workflow_scripts.models.structure import Dropouts, dropouts_in, matrices_of, place_of_layers
from workflow_scripts.models.tokenizer import ids_needed, load_tokenizer
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
    new_head: bool = True,
    from_scratch: bool = False,
    **settings: Any,
) -> PreTrainedModel:
    """The model in `folder` (or a hub id) in float32, with the head for a task, one of those of its family.

    Weights that the model lacks are drawn at random from `seed`: those of a head, where it may be a `new_head`, or with `from_scratch` all
    weights. `labels` are those of a head that classifies or tags; without them, the model keeps its own head. A model that writes text has
    as many rows of embeddings as its tokenizer has pieces, see `without_filler`. `settings` are further entries of the model's
    configuration. Raises `InputError` for a family without such a head, for a decoder that only reads, and for a model that has lost its
    decoder to a head of its encoder, unless none is asked for (`decoder_layers=0`); also as `read_weights` does.
    """
    import transformers

    transformers.set_seed(seed)
    if Path(folder).is_dir():
        check_folder(Path(folder))
    config = network_config(folder)
    family = family_of(config)
    check_head(folder, family, head)
    if head == "text" and family.causal and not from_scratch and Path(folder).is_dir() and (why := why_it_only_reads(folder)):
        raise InputError(f"{folder}: cannot write text: {why}; {TAKE_A_WRITER}")
    if family.decoder and not decoder_depth(config) and settings.get("decoder_layers") != 0:
        raise InputError(
            f"{folder}: lost its decoder to a head that reads the encoder (parts: encoder); set parts: encoder for what starts from it, "
            "or start from a model that has its decoder"
        )
    rest, attention, of_head = dropouts_of(family, config)
    changes: dict[str, Any] = {**dict.fromkeys(rest, dropout), **dict.fromkeys(attention, attention_dropout)}
    changes |= dict.fromkeys(family.off, 0.0)
    if head != "text":
        changes |= dict.fromkeys(of_head, dropout)
    if labels:
        changes |= {"id2label": dict(enumerate(labels)), "label2id": {label: number for number, label in enumerate(labels)}}
    config.update({**changes, **settings})
    if getattr(config, "cross_attention", False):
        config.cross_attention = False  # of a VECO: what is loaded here has none, and must not be taken for one
    check_class(folder, config, family, head)
    kind = class_of(family, head)
    config.dtype = torch.float32  # a folder in half precision says so
    if from_scratch:
        network = new_network(kind, config)
        share_embeddings(network, {name for name, _ in network.named_parameters() if ".embed_tokens." in name})
    else:
        network = read_weights(kind, folder, new_head=new_head, config=config, dtype=torch.float32)
    if family.decoder and not decoder_depth(config):
        rest_decoder(network)
    if head == "text" and any((Path(folder) / name).exists() for name in family.tokenizer_files):
        without_filler(network, load_tokenizer(folder))
    return network


def dropouts_of(family: Family, config: Any) -> Dropouts:
    """The names of a model's settings of dropout."""
    # the entry of decoders is for many kinds of network
    if family.by_structure or family.causal:
        found = dropouts_in(config)
        return found._replace(head=(*found.head, "classifier_dropout"))
    rest, attention = family.dropout
    return Dropouts((rest,) if rest else (), (attention,) if attention else (), ("classifier_dropout",))


def layers_of(network: Any, family: Family, side: str = "encoder") -> Any:
    """The layers of a network without a head. Raises `InputError` where they are not found."""
    named = "" if family.by_structure else family.layers[side]
    # the entry of decoders is for many kinds of network
    if not named or (family.causal and named not in {name for name, _ in network.named_modules()}):
        named = place_of_layers(network)
    return network.get_submodule(named)


def matrices_in(network: Any, layer: Any, family: Family, side: str = "encoder") -> dict[str, torch.Tensor]:
    """Name that papers have → matrix of a layer of a network (output × input). Raises `InputError` where one is not found."""
    if family.by_structure:
        return matrices_of(layer, network.config)
    places = _places_of_matrices(layer, family, side)
    if family.causal and None in places.values():
        return matrices_of(layer, network.config)
    return {name: layer.get_submodule(where).weight for name, where in places.items()}


def places_of_matrices(layer: Any, family: Family, side: str = "encoder") -> dict[str, str]:
    """Name that papers have → where the matrix is in a layer, of a family that says so. Raises `InputError` where the layer lacks one."""
    places = _places_of_matrices(layer, family, side)
    found = {name: where for name, where in places.items() if where}
    if missing := [name for name in places if name not in found]:
        raise InputError(
            f"{type(layer).__name__}: its matrix {missing[0]} is not where a {family.label} has it; a plugin can bring its family"
        )
    return found


def _places_of_matrices(layer: Any, family: Family, side: str) -> dict[str, str | None]:
    """Of several places the first that the layer has; None where it has none of them."""
    named = (side == "decoder" and family.decoder_matrices) or family.matrices
    parts = {name for name, _ in layer.named_modules()}
    return {name: next((one for one in where.split("|") if one in parts), None) for name, where in named.items()}


def check_head(folder: Path | str, family: Family, *heads: str) -> None:
    """Raise `InputError` where the `family` of the model in `folder` has none of the `heads` that would do."""
    if not family.heads.keys() & {*heads}:
        able = titles(each for each in registry.entries("family").values() if each.heads.keys() & {*heads})
        raise InputError(
            f"{folder}: is a model of the family {family.label}, which has no head for {heads[0]}; those that have one: {able}"
        )


def check_class(folder: Path | str, config: Any, family: Family, head: str) -> None:
    """Raise `InputError` where no class has such a head on the model in `folder`: not each encoder of a family has each head, and the code
    that comes with a model may lack some."""
    kind = class_of(family, head)
    if type(config) not in getattr(kind, "_model_mapping", {type(config): kind}):
        raise InputError(f"{folder}: there is no head for {head} on models of type {config.model_type}; take another model")


def class_of(family: Family, head: str) -> Any:
    """The class that loads a model of a family with the head for a task."""
    named = family.heads[head]
    if not isinstance(named, str):
        return named()
    module, _, name = named.rpartition(".")
    return getattr(importlib.import_module(f"{__package__}.{module}" if module else "transformers"), name)


def new_network(kind: Any, config: Any) -> Any:
    """A network of a class of transformers with random weights; its Auto classes cannot be called."""
    return getattr(kind, "from_config", kind)(config)


def read_weights(
    kind: Any, folder: Path | str, may_lack: Callable[[str], bool] | None = None, *, new_head: bool = True, **settings: Any
) -> Any:
    """The model in `folder` as one of transformers' classes. transformers draws what the files lack at random, and says so in a log alone.

    A folder may lack what `may_lack` says of a weight's name. By default that is a pooler, which nothing reads that has no head on it, and
    a `new_head`, unless the folder is said to be of the very class that is loaded. Weights that are not read are counted in the log, those
    that see or hear apart from the rest. With `device_map="meta"` names and sizes are compared and no weight is loaded.

    Raises `InputError` where the files cannot be read or do not fit ``config.json``, and where weights are missing or of another size.
    """
    if Path(folder).is_dir():
        check_weights(Path(folder))
        settings = {**of_text_part(folder), **settings}
    is_part = "key_mapping" in settings
    try:
        with without_report() if is_part else contextlib.nullcontext():  # it would list all that sees or hears
            network, read = kind.from_pretrained(
                folder, output_loading_info=True, weights_only=True, ignore_mismatched_sizes=True, **settings
            )
    except pickle.UnpicklingError:
        raise InputError(
            f"{folder}: its pickled weights hold more than numbers and might run code, so they are not opened; if you trust them, "
            "keep the numbers alone: "
            "`torch.save({n: w for n, w in torch.load(FILE, weights_only=False).items() if torch.is_tensor(w)}, FILE)`"
        ) from None
    except (RuntimeError, OSError, EOFError, ValueError, SafetensorError) as error:
        said = in_one_line(error)
        raise InputError(f"{folder}: its weights do not fit its config.json ({said}); download or copy the model again") from None
    missing, unread = share_embeddings(network, {*read["missing_keys"]}), sorted(read["unexpected_keys"])
    _check_sizes(folder, sorted(read["mismatched_keys"]))
    _check_missing(folder, network, missing, may_lack or _new_or_pooler(network, new_head), unread, is_part)
    if is_part:
        unread = _made_a_text_model(folder, network, unread)
    if unread:
        print(f"note: {folder}: {type(network).__name__} does not read {some_names(unread)} of its weights", flush=True)
    network.unread, network.drawn = unread, sorted(missing)
    return network


def _check_sizes(folder: Path | str, mismatched: list[tuple[str, Any, Any]]) -> None:
    """Raise `InputError` where weights are of another size: the name of each, its size, and that which it should have."""
    if mismatched:
        name, found, wanted = mismatched[0]
        more = f"; so have {len(mismatched) - 1} more" if mismatched[1:] else ""
        said = f"{name} has the size {_size(found)}, not {_size(wanted)}{more}"
        raise InputError(f"{folder}: its weights do not fit its config.json ({said}); download or copy the model again")


def _check_missing(
    folder: Path | str, network: Any, missing: set[str], may_lack: Callable[[str], bool], unread: list[str], is_part: bool
) -> None:
    """Raise `InputError` where a folder lacks weights that it may not lack; `is_part` is of the text part of a larger model."""
    if lost := sorted(name for name in missing if not may_lack(name)):
        there = f", and has {unread[0]}, which no such model has" if unread else ""
        none_is_known = is_part and not {name for name in network.state_dict() if name.startswith(_prefix_of_body(network))} - missing
        raise InputError(f"{folder}: {_why_lost(folder, network, f'it lacks {some_names(lost)}{there}', none_is_known)}")


def _new_or_pooler(network: Any, new_head: bool) -> Callable[[str], bool]:
    """What a folder may lack by default: a new head, unless it is said to be of the very class, and a pooler that nothing reads."""
    is_body, body = network.base_model is network, _prefix_of_body(network)
    is_own = type(network).__name__ in (getattr(network.config, "architectures", None) or ())
    may_be_new = new_head and not is_own
    return lambda name: (may_be_new and not name.startswith(body)) or ("pooler." in name and (is_body or may_be_new))


def _prefix_of_body(network: Any) -> str:
    """What the names of all weights but a head's begin with."""
    return "" if network.base_model is network else f"{network.base_model_prefix}."


def _why_lost(folder: Path | str, network: Any, lacks: str, none_is_known: bool) -> str:
    """Why a model lacks weights, and the way out; `none_is_known` is of a text part whose weights all have other names."""
    said = f"its weights do not fit its config.json ({lacks})"
    if own := code_left_out(folder):
        kind_of = f"transformers has models of type {network.config.model_type}"
        return f"{said}; its own code ({own}) is left out, as {kind_of}; take a model without code of its own"
    if none_is_known:
        return f"the weights of its text part have names that are not known ({lacks}); take a model of text alone"
    return f"{said}; download or copy the model again"


@contextlib.contextmanager
def without_report() -> Iterator[None]:
    """Context in which transformers logs errors alone, and no list of the weights that it does not read."""
    from transformers.utils import logging

    level = logging.get_verbosity()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(level)


TEXT_PART = {
    r"^language_model\.(?=lm_head\.)": "",
    r"^language_model\.(model\.)?": "model.",
    r"^model\.(language_model|text_model)\.": "model.",
}
"""How files name the weights of a text part → how a model of that part alone has them."""


def _made_a_text_model(folder: Path | str, network: Any, unread: list[str]) -> list[str]:
    """Make the text part of a larger model one of its own; returns which of the `unread` weights are of text."""
    of_text = [name for name in unread if _is_of_text(network, name)]
    left = f"; what sees or hears is left out ({len(unread) - len(of_text)} weights)"
    print(f"note: {folder}: {type(network).__name__}, its text part, is read{left}", flush=True)
    network._weight_conversions = None  # by which it would be saved under the names of the whole
    output, embeddings = network.get_output_embeddings(), network.get_input_embeddings()
    # the whole may say that they are one, and its files have two
    network.config.tie_word_embeddings = output is None or output.weight is embeddings.weight
    return of_text


def _is_of_text(network: Any, name: str) -> bool:
    """Whether a weight that a text part does not read belongs beside its own: in a module that it has, or in an output layer."""
    first = name.removeprefix("model.").split(".")[0]
    return first == "lm_head" or first in {own for own, _ in network.base_model.named_children()}


def of_text_part(folder: Path | str) -> dict[str, Any]:
    """The settings of `from_pretrained` that read the text part alone of a model that also sees or hears; none for other models."""
    from transformers import AutoConfig

    if "text_config" not in json.loads((Path(folder) / "config.json").read_text(encoding="utf-8")):
        return {}
    whole = AutoConfig.from_pretrained(folder)
    return {} if (part := text_part(whole)) is whole else {"config": part, "key_mapping": TEXT_PART}


def some_names(names: list[str]) -> str:
    """The first three names, and how many more there are."""
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if names[3:] else "")


def _size(shape: Any) -> str:
    return " × ".join(map(str, shape))


def lacks_head(network: Any) -> bool:
    """Whether the files that `read_weights` read had no head, so that one was drawn at random: sentence encoders, or those of a class."""
    body = f"{network.base_model_prefix}."
    drawn = [name for name in getattr(network, "drawn", ()) if not name.startswith(body) and "pooler." not in name]
    return network.base_model is not network and any(network.get_parameter(name).dim() > 1 for name in drawn)


def share_embeddings(network: Any, missing: set[str]) -> set[str]:
    """Have encoder and decoder share their embeddings where a model's output layer has weights of its own (`tie_word_embeddings: false`).

    The setting is about the output layer alone, and files have the embeddings of both halves once; but transformers since version 5 draws
    them at random then. Embeddings that differ in the files stay apart. Returns what is `missing` still.
    """
    body: Any = network.base_model
    if getattr(network.config, "tie_word_embeddings", True) or not hasattr(body, "shared"):
        return missing
    prefix = _prefix_of_body(network)
    halves = [half for half in ("encoder", "decoder") if hasattr(body, half)]  # one where a head reads the encoder alone
    tables = {f"{prefix}{name}.weight": body.get_submodule(name) for name in ("shared", *(f"{half}.embed_tokens" for half in halves))}
    there = [name for name in tables if name not in missing]
    for name, table in tables.items() if there else ():
        first = tables[there[0]].weight
        # what is loaded without a device is compared by its names alone
        if name in missing or table.weight.is_meta or torch.equal(table.weight, first):
            table.weight = first
    if body.shared.weight is not body.encoder.embed_tokens.weight:
        body.shared.weight = body.encoder.embed_tokens.weight  # which no half reads by itself, so it would never be trained
    return missing - tables.keys() if there else missing


def without_filler(network: Any, tokenizer: Any) -> Any:
    """Take the rows off embeddings and output layer that are of no piece of the tokenizer, in place; returns the network.

    Models have such rows where their number was rounded up for speed (`pad_to_multiple_of`). No text has these pieces, so none may take
    a share of the softmax, or be written. (Matrices of a size that a GPU multiplies fast are made in `products`.)
    """
    needed, rows = ids_needed(tokenizer), network.get_input_embeddings().weight.shape[0]
    if needed < rows:
        keep_rows(network, list(range(needed)))
        print(f"note: {rows - needed:,} rows of the embeddings are of no piece and are left out", flush=True)
    return network


def keep_rows(network: Any, kept: list[int]) -> None:
    """Keep these rows of all embeddings and of the output layer, in place; weights that were shared still are.

    Modules stay what they are, as some scale what they look up (Gemma, mBART). Settings with the number of pieces follow.
    """
    before, number = network.get_input_embeddings().weight.shape[0], torch.tensor(kept, device=network.device)
    shorter: dict[int, torch.Tensor] = {}
    tables = [table for table in _tables(network) if table.weight.shape[0] == before]
    for table in tables:
        old = table.weight
        shorter[id(old)] = torch.nn.Parameter(old.detach()[number].clone(), requires_grad=old.requires_grad)
    for table in _tables_of_layers(network):
        old = table.weight
        # a piece that the table lacks has the row of the first
        rows = number.where(number < len(old), 0)
        shorter[id(old)] = torch.nn.Parameter(old.detach()[rows].clone(), requires_grad=old.requires_grad)
        tables.append(table)
    body = {id(each) for each in (*network.base_model.parameters(), *network.base_model.buffers())}
    for weight in (*network.parameters(), *network.buffers()):
        # the biases of a head, some of which have two names; mBART's is a row
        if id(weight) not in body and id(weight) not in shorter and weight.shape in ((before,), (1, before)):
            some = weight.detach()[..., number].clone()
            shorter[id(weight)] = torch.nn.Parameter(some, weight.requires_grad) if isinstance(weight, torch.nn.Parameter) else some
    for module in network.modules():
        for held in (module._parameters, module._buffers):
            held.update({name: shorter[id(weight)] for name, weight in held.items() if id(weight) in shorter})
        if getattr(module, "vocab_size", None) == before:
            module.vocab_size = len(kept)
    for table in tables:
        if isinstance(table, torch.nn.Embedding):
            table.num_embeddings = len(kept)
            table.padding_idx = kept.index(table.padding_idx) if table.padding_idx in kept else None
        else:
            table.out_features = len(kept)
    for config in configs_of(network.config):
        for name in ("vocab_size", "decoder_vocab_size", "vocab_size_per_layer_input"):
            if getattr(config, name, None) is not None:
                setattr(config, name, len(kept))


def _tables(network: Any) -> list[Any]:
    """The modules with a row for each piece: embeddings and output layer, also those of a part, each once."""
    from transformers import PreTrainedModel

    tables: dict[int, Any] = {}
    for part in network.modules():
        for ask in ("get_input_embeddings", "get_output_embeddings") if isinstance(part, PreTrainedModel) else ():
            try:
                table = getattr(part, ask)()
            except (AttributeError, NotImplementedError):  # of a part that reads no pieces
                continue
            if isinstance(getattr(table, "weight", None), torch.Tensor):
                tables[id(table)] = table
    return [*tables.values()]


def _tables_of_layers(network: Any) -> list[Any]:
    """Embeddings that each layer reads beside the states of the one before (Gemma 3n and 4)."""
    return [table for name, table in network.named_modules() if name.split(".")[-1] == "embed_tokens_per_layer"]


def configs_of(config: Any) -> list[Any]:
    """A model's configuration, and those that it holds of its parts."""
    parts = [getattr(config, name, None) for name in getattr(config, "sub_configs", {})]
    return [config, *(each for part in parts if part is not None for each in configs_of(part))]


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
    family = family_of(network.config)
    if family.last_states:
        return family.last_states(network, inputs)
    settings = {"use_cache": False} if family.writes else {}
    return head_states(network, network.base_model(**inputs, **settings).last_hidden_state)


def head_states(network: PreTrainedModel, states: torch.Tensor) -> torch.Tensor:
    """What the output layer multiplies, of the last states: the masked language model's head has a layer before it."""
    through = family_of(network.config).head_states
    return through(network, states) if through else states


@without_gradients
def makes_scores_of_states(network: PreTrainedModel) -> bool:
    """Whether a piece's score is the output layer's product alone: some decoders cap it (Gemma 2) or scale it (Cohere, Granite)."""
    if not family_of(network.config).causal:
        return True
    ids = torch.arange(4, device=network.device)[None]
    weight, bias = output_layer(network)
    training, states = network.training, last_states(network.eval(), input_ids=ids)
    scores = type(network).forward(network, input_ids=ids).logits
    network.train(training)
    return torch.allclose(states @ weight.T + bias, scores, rtol=1e-3, atol=1e-3)


def output_layer(network: PreTrainedModel) -> tuple[torch.Tensor, torch.Tensor]:
    """The matrix (vocabulary × width) and the bias (vocabulary) that make a piece's score from the last states."""
    layer = network.get_output_embeddings()
    bias = getattr(network, "final_logits_bias", layer.bias)
    return layer.weight, layer.weight.new_zeros(len(layer.weight)) if bias is None else bias.flatten()


def save_model(network: PreTrainedModel, tokenizer: Any, folder: Path) -> None:
    """Write model and tokenizer. The folder is renamed to `folder` only when it is complete; an earlier model there is replaced.

    Raises `InputError` where other files are there.
    """
    check_replaceable(folder)
    temporary = folder.with_name(f".{folder.name}.part")
    shutil.rmtree(temporary, ignore_errors=True)
    say_family(network.config)
    give_tag(network, tokenizer)
    # with an output layer of its own, transformers looks for each half's embeddings by name, and would draw those that are shared
    if getattr(network.config, "tie_word_embeddings", True) is False and family_of(network.config).decoder:
        network.save_pretrained(temporary, state_dict={name: weight.clone() for name, weight in network.state_dict().items()})
    else:
        network.save_pretrained(temporary)
    tokenizer.save_pretrained(temporary)
    _put(temporary, folder)


def give_tag(network: Any, tokenizer: Any) -> None:
    """Let transformers' own `generate` begin with the tag that a network has not learnt to write (`Family.learns_tag`)."""
    form, settings = family_of(network.config), getattr(network, "generation_config", None)
    if form.decoder and not form.learns_tag and settings is not None:
        settings.forced_bos_token_id = tokenizer.convert_tokens_to_ids(form.tags[0])
        settings._from_model_config = False  # else it would be made again of config.json, which has no such setting


def copy_model(start: Path, folder: Path) -> None:
    """Copy a model with its head and its tokenizer, as `save_model` writes one; raises as it does."""
    check_replaceable(folder)
    temporary = folder.with_name(f".{folder.name}.part")
    shutil.rmtree(temporary, ignore_errors=True)
    shutil.copytree(start, temporary)
    _put(temporary, folder)


def _put(temporary: Path, folder: Path) -> None:
    """Rename a folder that is complete."""
    to_disk(temporary)
    shutil.rmtree(folder, ignore_errors=True)
    os.replace(temporary, folder)
