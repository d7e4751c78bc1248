"""fairseq: a checkpoint that fairseq has written, as a model in Hugging Face's format that computes the same.

Three forms are read: RoBERTa's, which is that of XLM-R; BART's with layer normalisation before each module, which is that of mBART; and
BART's with normalisation behind each, which is that of VECO for generation. Beside the checkpoint lie its dictionary and the SentencePiece
model that cut its text.

A checkpoint is a pickle. It is read by `torch.load` with ``weights_only``: tensors, plain values, and the class of fairseq's arguments,
which only holds values. In the place of everything else that a pickle may name stands an object that does nothing. So no code of a
checkpoint ever runs. Such an object takes no entries, so a checkpoint with other kinds of dictionaries or lists (`defaultdict`, `deque`)
is refused.
"""

import argparse
import contextlib
import pickle
import pickletools
import re
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any, Literal

import torch
from torch import Tensor

from workflow_scripts.models.fairseq_files import entries_without_piece, files_of, read_dictionary, scores_of, tokenizer_of, vocabulary_of
from workflow_scripts.models.folders import check_replaceable
from workflow_scripts.models.networks import save_model
from workflow_scripts.stage import InputError, in_one_line, run
from workflow_scripts.text.languages import language

_ACTIVATIONS = {"gelu": "gelu", "relu": "relu", "gelu_accurate": "gelu_new", "gelu_fast": "gelu_new"}
_XLMR_NAMES = (
    ("encoder.sentence_encoder.embed_tokens.", "roberta.embeddings.word_embeddings."),
    ("encoder.sentence_encoder.embed_positions.", "roberta.embeddings.position_embeddings."),
    ("encoder.sentence_encoder.layernorm_embedding.", "roberta.embeddings.LayerNorm."),
    ("encoder.sentence_encoder.layers.", "roberta.encoder.layer."),
    (".self_attn.q_proj.", ".attention.self.query."),
    (".self_attn.k_proj.", ".attention.self.key."),
    (".self_attn.v_proj.", ".attention.self.value."),
    (".self_attn.out_proj.", ".attention.output.dense."),
    (".self_attn_layer_norm.", ".attention.output.LayerNorm."),
    (".fc1.", ".intermediate.dense."),
    (".fc2.", ".output.dense."),
    (".final_layer_norm.", ".output.LayerNorm."),
    ("encoder.lm_head.weight", "lm_head.decoder.weight"),
    ("encoder.lm_head.", "lm_head."),
)
_OLD_NAMES = ((r"^decoder\.", "encoder."), (r"\.emb_layer_norm\.", ".layernorm_embedding."))
"""Names that RoBERTa's tensors had before fairseq 0.10."""
_EMPTY = re.compile(r"(^|\.)(version|_float_tensor)$")
"""Tensors that say only which code wrote a checkpoint."""
_COPIES = re.compile(r"\.layers\.\d+\.(in_proj|out_proj|fc1|fc2)_(weight|bias)$")
"""Places in which fairseq 0.12.2 lays a layer's weights side by side for a faster product; it fills them anew when it loads a model."""
_ONLY_NEEDED = "torch.save({key: c[key] for key in ('args', 'cfg', 'model') if key in c}, 'NEW.pt')"
"""What a user runs to save the part of a checkpoint c that is read here."""


def convert(
    model: Path, output: Path, decoder_layers: int | None = None, decoder_from: Literal["first", "last"] = "last"
) -> dict[str, Any]:
    """Write the model of fairseq in `model`, its folder or its checkpoint, in Hugging Face's format into the folder `output`.

    Of a decoder all layers are kept, or the `first` or `last` `decoder_layers` (`decoder_from`). Prints and returns what there is to say.
    Raises `InputError` for files that are missing or damaged, a model of another form, a tensor that has no place, and an output that would
    take the place of other files.
    """
    files = files_of(model)
    if output.resolve() == files.checkpoint.parent.resolve():
        raise InputError(f"{output}: has the checkpoint, which the model would take the place of; name a new folder")
    check_replaceable(output)
    checkpoint = read_checkpoint(files.checkpoint)
    arguments = arguments_in(checkpoint, files.checkpoint)
    weights, dropped = _with_layers(weights_in(checkpoint, files.checkpoint), decoder_layers, decoder_from, files.checkpoint)
    network = _network_of(configuration_of(weights, arguments, files.checkpoint))
    placed = _placed(network, weights, files.checkpoint)
    network.load_state_dict({name: weight.float() for name, weight in placed.items()}, strict=False)
    network.tie_weights()
    network.eval()
    vocabulary = vocabulary_of(files, arguments, network.config.vocab_size)
    tokenizer, differences = tokenizer_of(files, vocabulary, network.config.model_type)
    save_model(network, tokenizer, output)
    details = {
        "form": network.config.model_type,
        "tensors": len(weights),
        **({"decoder_layers_left_out": dropped} if dropped else {}),
        **{name: count for name, count in differences.items() if count},
    }
    print(details)
    return details


# ---------------------------------------------------------------------------------------------
# files


def check(
    model: Path,
    encoder_will_do: bool,
    codes: Sequence[str] = (),
    decoder_layers: int | None = None,
    decoder_from: Literal["first", "last"] = "last",
) -> str:
    """What can be said of a model before it is converted. Raises `InputError` as `convert` does.

    It is an error, too, if an encoder will not do and the model is one, or has no tags for the languages `codes`. Of the weights only
    embeddings and output layers are read, to compare them. Of a checkpoint in torch's format before 1.6 only the beginning is read, so
    its arguments and tensors are not checked.
    """
    files = files_of(model)
    # tags and masks may stand in a dictionary, and are no pieces
    entries = [entry for entry in read_dictionary(files.dictionary) if not entry.startswith(("[", "<"))]
    entries_without_piece(files, entries, scores_of(files.pieces))
    if not zipfile.is_zipfile(files.checkpoint):
        _named_in(files.checkpoint)
        return f"{files.checkpoint}, a checkpoint of fairseq; its tensors are looked at when it is converted"
    checkpoint = read_checkpoint(files.checkpoint, mapped=True)
    weights = weights_in(checkpoint, files.checkpoint)
    arguments = arguments_in(checkpoint, files.checkpoint)
    form, rows = form_of(weights), _embeddings(weights, files.checkpoint)
    if form == "XLM-R" and not encoder_will_do:
        raise InputError(f"{files.checkpoint}: is an encoder (XLM-R), which cannot write text; a kind: converted of it can")
    weights, _ = _with_layers(weights, decoder_layers, decoder_from, files.checkpoint)
    config = configuration_of(weights, arguments, files.checkpoint)
    with torch.device("meta"):  # names and forms of its tensors, without numbers
        network = _network_of(config)
    _placed(network, weights, files.checkpoint)
    tags = vocabulary_of(files, arguments, rows).tags
    untagged = [code for code in codes if f"[{language(code).tag}]" not in tags] if form == "mBART" and not encoder_will_do else []
    if untagged:
        raise InputError(f"{files.checkpoint}: has no tag for {' and '.join(untagged)}; its languages are {', '.join(tags) or 'none'}")
    return f"{files.checkpoint}, a checkpoint of fairseq in the form of {form}, with {rows:,} pieces"


def read_checkpoint(path: Path, mapped: bool = False) -> dict[str, Any]:
    """What a checkpoint holds, without running any of its code; `mapped`, numbers stay in the file until they are used.

    Raises `InputError` for a file that is none, or no whole one, and for one with objects that cannot be left out.
    """
    stand_ins: list[Any] = [(_stand_in(name), name) for name in _named_in(path) if name != "argparse.Namespace"]
    try:
        with torch.serialization.safe_globals([argparse.Namespace, *stand_ins]):
            checkpoint = torch.load(path, map_location="cpu", weights_only=True, mmap=mapped)
    except pickle.UnpicklingError:  # what torch refuses; files that are cut off raise other errors
        raise InputError(
            f"{path}: holds objects that torch cannot read without running code. If you trust its source, load it where fairseq is "
            f"installed, and save a copy without them: `{_ONLY_NEEDED}`, c being what is loaded"
        ) from None
    except (RuntimeError, EOFError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise InputError(f"{path}: is no whole checkpoint of fairseq ({in_one_line(error)}); download or copy it again") from None
    if not isinstance(checkpoint, dict) or "model" not in checkpoint:
        raise InputError(f"{path}: has no `model`, as each checkpoint of fairseq has; name another file")
    return checkpoint


def _named_in(path: Path) -> set[str]:
    """The classes and functions that a checkpoint names, as ``module.name``, found by reading its instructions alone."""
    named, last = set[str](), list[str]()
    try:
        with contextlib.ExitStack() as opened:
            if zipfile.is_zipfile(path):
                archive = opened.enter_context(zipfile.ZipFile(path))
                member = next(name for name in archive.namelist() if name.endswith("/data.pkl"))
                pickles: Sequence[IO[bytes]] = [opened.enter_context(archive.open(member))]
            else:
                # torch before 1.6 wrote a magic number, a version, sizes of numbers, and then the object, one behind the other
                pickles = 4 * [opened.enter_context(path.open("rb"))]
            for each in pickles:
                for instruction, value, _ in pickletools.genops(each):
                    if instruction.name == "GLOBAL":
                        named.add(str(value).replace(" ", ".").replace("__builtin__.", "builtins."))
                    elif instruction.name == "STACK_GLOBAL":
                        named.add(".".join(last))
                    elif isinstance(value, str):
                        last = [*last[-1:], value]
    except (ValueError, StopIteration, zipfile.BadZipFile, UnicodeError) as error:
        raise InputError(f"{path}: is no checkpoint of fairseq ({in_one_line(error) or 'no pickle'}); name another file") from None
    return named


def _stand_in(name: str) -> type:
    """A class that takes whatever a pickle says of an object of the class `name`, and keeps nothing."""
    return type("NotRead", (), {"__init__": lambda self, *given: None, "__setstate__": lambda self, state: None, "__doc__": name})


def arguments_in(checkpoint: dict[str, Any], path: Path) -> dict[str, Any]:
    """The arguments that a model was made with: of old checkpoints ``args``, of new ones ``cfg``. Raises `InputError` where none is."""
    found: dict[str, Any] = {}
    configured = checkpoint.get("cfg")
    parts = [configured.get(key) for key in ("task", "model")] if isinstance(configured, dict) else []
    for part in (*parts, checkpoint.get("args")):
        found |= vars(part) if isinstance(part, argparse.Namespace) else part if isinstance(part, dict) else {}
    if "encoder_attention_heads" not in found:
        raise InputError(f"{path}: has no arguments of its model (`args` or `cfg`); take the checkpoint as fairseq has written it")
    return found


def weights_in(checkpoint: dict[str, Any], path: Path) -> dict[str, Tensor]:
    """The tensors of a model by the names that fairseq has for them since 0.10, without what is empty or a copy."""
    found: dict[str, Tensor] = {}
    old = not any(name.startswith("encoder.") for name in checkpoint["model"])
    for name, weight in checkpoint["model"].items():
        if not isinstance(weight, Tensor):
            raise InputError(f"{path}: `model` has {name}, which is no tensor")
        if _EMPTY.search(name) or _COPIES.search(name):
            continue
        for pattern, new in _OLD_NAMES if old else ():
            name = re.sub(pattern, new, name)
        if ".in_proj_" in name:  # queries, keys and values in one
            for part, piece in zip("qkv", weight.chunk(3), strict=True):
                found[name.replace(".in_proj_", f".{part}_proj.")] = piece
        else:
            found[name] = weight
    return found


# ---------------------------------------------------------------------------------------------
# networks


def form_of(weights: dict[str, Tensor]) -> str:
    """The name of a model's form, by its tensors."""
    if "encoder.embed_tokens.weight" not in weights:
        return "XLM-R"
    return "mBART" if "encoder.layer_norm.weight" in weights else "BART"


def _embeddings(weights: dict[str, Tensor], path: Path) -> int:
    """The number of pieces that a model has embeddings for. Raises `InputError` for a model of another form."""
    for name in ("encoder.embed_tokens.weight", "encoder.sentence_encoder.embed_tokens.weight"):
        if name in weights:
            return len(weights[name])
    raise InputError(
        f"{path}: has no embeddings as XLM-R, mBART and VECO have them; its first tensors are {', '.join([*weights][:3]) or 'none'}. "
        "Only these three are read"
    )


def configuration_of(weights: dict[str, Tensor], arguments: dict[str, Any], path: Path) -> Any:
    """The configuration of a checkpoint's model. Raises `InputError` for a model of another form; embeddings are read to compare them."""
    return (_encoder if form_of(weights) == "XLM-R" else _encoder_decoder)(weights, arguments, path)


def _encoder(weights: dict[str, Tensor], arguments: dict[str, Any], path: Path) -> Any:
    """The configuration of an XLM-R."""
    from transformers import XLMRobertaConfig

    rows = _embeddings(weights, path)
    where = "encoder.sentence_encoder."
    if arguments.get("encoder_normalize_before") or f"{where}layer_norm.weight" in weights:
        raise InputError(f"{path}: its layers begin with their normalisation (encoder_normalize_before), as no XLM-R of transformers does")
    positions = _shape(weights, f"{where}embed_positions.weight", path)[0]
    return XLMRobertaConfig(
        vocab_size=rows,
        hidden_size=_shape(weights, f"{where}embed_tokens.weight", path)[1],
        num_hidden_layers=_depth(weights, f"{where}layers."),
        num_attention_heads=_heads(arguments, "encoder", _shape(weights, f"{where}embed_tokens.weight", path)[1], path),
        intermediate_size=_shape(weights, f"{where}layers.0.fc1.weight", path)[0],
        hidden_act=_activation(arguments, path),
        max_position_embeddings=positions,
        type_vocab_size=1,
        layer_norm_eps=1e-5,
        pad_token_id=1,
        bos_token_id=0,
        eos_token_id=2,
        tie_word_embeddings=_equal(weights, f"{where}embed_tokens.weight", "encoder.lm_head.weight"),
    )


def _encoder_decoder(weights: dict[str, Tensor], arguments: dict[str, Any], path: Path) -> Any:
    """The configuration of an mBART or a BART."""
    from transformers import BartConfig, MBartConfig

    if arguments.get("encoder_langtok"):
        raise InputError(
            f"{path}: a tag of the language stands before its texts (encoder_langtok), as in mBART-50; take that from the Hugging Face hub "
            "(facebook/mbart-large-50-many-to-many-mmt)"
        )
    if "no_scale_embedding" not in arguments:
        raise InputError(f"{path}: its arguments do not say whether embeddings are scaled (no_scale_embedding)")
    if not _equal(weights, "encoder.embed_tokens.weight", "decoder.embed_tokens.weight"):
        raise InputError(f"{path}: encoder and decoder have embeddings of their own; models that share them are read")
    before = form_of(weights) == "mBART"
    kind: Any = MBartConfig if before else BartConfig
    positions = {_shape(weights, f"{half}.embed_positions.weight", path)[0] for half in ("encoder", "decoder")}
    if len(positions) > 1:
        raise InputError(f"{path}: encoder and decoder differ in their number of positions, {sorted(positions)}, which is not read")
    size = _shape(weights, "encoder.embed_tokens.weight", path)[1]
    config = kind(
        vocab_size=_embeddings(weights, path),
        d_model=size,
        encoder_layers=_depth(weights, "encoder.layers."),
        decoder_layers=_depth(weights, "decoder.layers."),
        encoder_attention_heads=_heads(arguments, "encoder", size, path),
        decoder_attention_heads=_heads(arguments, "decoder", size, path),
        encoder_ffn_dim=_shape(weights, "encoder.layers.0.fc1.weight", path)[0],
        decoder_ffn_dim=_shape(weights, "decoder.layers.0.fc1.weight", path)[0],
        max_position_embeddings=positions.pop() - 2,  # transformers adds the two that no piece has by itself
        activation_function=_activation(arguments, path),
        scale_embedding=not arguments["no_scale_embedding"],
        pad_token_id=1,
        bos_token_id=0,
        eos_token_id=2,
        decoder_start_token_id=2,
        forced_eos_token_id=None,
        tie_word_embeddings=_equal(weights, "encoder.embed_tokens.weight", "decoder.output_projection.weight"),
    )
    config.update({"normalize_before": before, "normalize_embedding": True})  # CTranslate2's converter reads these
    return config


def _network_of(config: Any) -> Any:
    """A network that a checkpoint's weights are to fill."""
    from transformers import BartForConditionalGeneration, MBartForConditionalGeneration, XLMRobertaForMaskedLM

    kinds: dict[str, Any] = {
        "mbart": MBartForConditionalGeneration,
        "bart": BartForConditionalGeneration,
        "xlm-roberta": XLMRobertaForMaskedLM,
    }
    network = kinds[config.model_type](config)
    if config.model_type == "xlm-roberta":
        with torch.no_grad():  # transformers adds a vector for the type of the text, of which there is one; fairseq has none
            network.roberta.embeddings.token_type_embeddings.weight.zero_()
    return network


def _placed(network: Any, weights: dict[str, Tensor], path: Path) -> dict[str, Tensor]:
    """All `weights` by the names that `network` has for them.

    Raises `InputError` that names the tensors of the checkpoint that have no place, and the places that no tensor fills.
    """
    places = network.state_dict()
    if form_of(weights) == "XLM-R":
        renamed = {}
        for name in weights:
            new = name
            for old, its in _XLMR_NAMES:
                new = new.replace(old, its)
            renamed[name] = new
        ours = {"roberta.embeddings.token_type_embeddings.weight", "lm_head.decoder.weight"}  # which a checkpoint may lack
    else:
        renamed = {name: f"model.{name}" for name in weights} | {"decoder.output_projection.weight": "lm_head.weight"}
        ours = {"lm_head.weight", "final_logits_bias"}
    if unknown := [name for name in weights if renamed[name] not in places]:
        raise InputError(f"{path}: {_some(unknown)} has no place in a model of {form_of(weights)}; such a model is not read")
    given = {renamed[name]: weight for name, weight in weights.items()}
    # these have two names each in transformers
    for name, source in (("model.shared.weight", "encoder.embed_tokens.weight"), ("lm_head.decoder.bias", "encoder.lm_head.bias")):
        given |= {name: weights[source]} if name in places and source in weights else {}
    if lost := [name for name in places if name not in given and name not in ours]:
        raise InputError(f"{path}: has nothing for {_some(lost)}, which a model of {form_of(weights)} has; such a model is not read")
    for name, weight in given.items():
        if places[name].shape != weight.shape:
            raise InputError(f"{path}: the tensor for {name} has the form {tuple(weight.shape)}, not {tuple(places[name].shape)}")
    return given


def _with_layers(weights: dict[str, Tensor], layers: int | None, which: str, path: Path) -> tuple[dict[str, Tensor], int]:
    """The weights with the `first` or `last` `layers` of the decoder alone, and how many layers that leaves out."""
    if layers and form_of(weights) == "XLM-R":
        raise InputError(f"{path}: is an encoder, which has no decoder; leave `decoder_layers` out")
    depth = _depth(weights, "decoder.layers.")
    if layers is None or layers == depth:
        return weights, 0
    if layers > depth:
        raise InputError(f"{path}: decoder_layers: {layers} are asked for, and its decoder has {depth}; take at most these")
    offset, kept = depth - layers if which == "last" else 0, dict[str, Tensor]()
    for name, weight in weights.items():
        if not (found := re.match(r"decoder\.layers\.(\d+)\.", name)):
            kept[name] = weight
        elif 0 <= (place := int(found[1]) - offset) < layers:
            kept[f"decoder.layers.{place}.{name[found.end() :]}"] = weight
    return kept, depth - layers


def _depth(weights: dict[str, Tensor], prefix: str) -> int:
    return 1 + max((int(name[len(prefix) :].split(".")[0]) for name in weights if name.startswith(prefix)), default=-1)


def _shape(weights: dict[str, Tensor], name: str, path: Path) -> torch.Size:
    if name not in weights:
        raise InputError(f"{path}: has no tensor {name}, which XLM-R, mBART and VECO have; such a model is not read")
    return weights[name].shape


def _equal(weights: dict[str, Tensor], name: str, copy: str) -> bool:
    """Whether a tensor that may be a copy of another one is; true where it is not there."""
    return copy not in weights or torch.equal(weights[name], weights[copy])


def _heads(arguments: dict[str, Any], half: str, size: int, path: Path) -> int:
    named = arguments.get(f"{half}_attention_heads", arguments["encoder_attention_heads"])
    if not isinstance(named, int) or named < 1 or size % named:
        raise InputError(f"{path}: {half}_attention_heads: {named!r} does not divide the size of vectors, {size}; such a model is not read")
    return named


def _activation(arguments: dict[str, Any], path: Path) -> str:
    named = arguments.get("activation_fn")
    if named not in _ACTIVATIONS:
        raise InputError(f"{path}: activation_fn: {named!r} is not known; models with {', '.join(_ACTIVATIONS)} are read")
    return _ACTIVATIONS[named]


def _some(names: list[str]) -> str:
    return f"{', '.join(names[:3])}{f' and {len(names) - 3} more' if len(names) > 3 else ''}"


if __name__ == "__main__":
    run(convert)
