"""structure: what is found out of a network that no entry of the registry describes.

That is any encoder of transformers, such as ModernBERT, mDeBERTa, RemBERT or EuroBERT, and a decoder whose layers are not Llama's, such as
OPT or Phi. Names differ between them; what is looked for is the same in all:

- the layers: the list of modules that is as long as the configuration says;
- the matrices of a layer, by their sizes, and those of attention by the first letter of their names as well. Queries, keys and values that
  are one matrix (ModernBERT's `Wqkv`, GPT-2's `c_attn`), and both halves of a gated feed-forward part (its `Wi`), are taken apart. Where
  they take turns from head to head (`query_key_value`), they are not;
- the settings of dropout: of attention, of a head, and of all else;
- how far the layers with a sliding window see;
- positions that no piece can have, where padding takes the first ones.
"""

from typing import Any, NamedTuple

from workflow_scripts.errors import InputError


class Dropouts(NamedTuple):
    """The names of a configuration's settings of dropout."""

    rest: tuple[str, ...]
    """Of residuals and embeddings."""
    attention: tuple[str, ...]
    """Of attention weights."""
    head: tuple[str, ...]
    """Of the heads of tasks."""


def dropouts_in(config: Any) -> Dropouts:
    """The settings of dropout in a configuration, by what they are of."""
    names = [name for name in vars(config) if ("dropout" in name and "layerdrop" not in name) or name.endswith("_pdrop")]
    head = tuple(name for name in names if name.startswith(("class", "cls", "pooler", "seq", "qa", "summary")))
    attention = tuple(name for name in names if name not in head and name.startswith("att"))
    return Dropouts(tuple(name for name in names if name not in (*head, *attention)), attention, head)


def attention_window(config: Any) -> int | None:
    """How many pieces away a layer with a sliding window sees; None where all layers see the whole row."""
    own = config.get_text_config()
    window: int | None = getattr(own, "sliding_window", None)
    if not window or getattr(own, "use_sliding_window", None) is False:
        return None
    return window if "sliding_attention" in (getattr(own, "layer_types", None) or ["sliding_attention"]) else None


def place_of_layers(network: Any) -> str:
    """Where the list of layers is in a network without a head. Raises `InputError` where there is none, or more than one."""
    from torch.nn import ModuleList

    number = network.config.get_text_config().num_hidden_layers
    found = [name for name, module in network.named_modules() if isinstance(module, ModuleList) and len(module) == number]
    # lists in layers may be as long
    outer = [name for name in found if not any(name.startswith(f"{other}.") for other in found)]
    if len(outer) != 1:
        lists = f"{len(outer)} lists of {number} layers"
        raise InputError(f"{type(network).__name__}: has {lists}, so its layers are not found; a plugin can bring its family")
    return outer[0]


def matrices_of(layer: Any, config: Any) -> dict[str, Any]:
    """Name that papers have → matrix of a layer (output × input). Raises `InputError` for a layer that is built in another way.

    `Gate` is the half of a gated feed-forward part that goes through the activation.
    """
    from torch.nn import Linear
    from transformers.pytorch_utils import Conv1D

    width, heads = config.hidden_size, getattr(config, "num_attention_heads", None)
    if not heads:
        raise InputError(f"{type(layer).__name__}: has no heads of attention, so its matrices are not found; a plugin can bring its family")
    size = getattr(config, "head_dim", None) or width // heads
    queries, keys = heads * size, (getattr(config, "num_key_value_heads", None) or heads) * size
    linear = {name: module.weight for name, module in layer.named_modules() if isinstance(module, Linear)}
    # GPT-2 has them the other way round
    linear |= {name: module.weight.T for name, module in layer.named_modules() if isinstance(module, Conv1D)}
    found: list[tuple[str, Any]] = []
    for name, weight in linear.items():
        last, whole, (rows, columns) = name.split(".")[-1].lower(), name.lower(), weight.shape
        attention = any(part.startswith(("att", "self_att")) for part in whole.split("."))
        if last.startswith("pos"):
            continue  # of positions, in some DeBERTas
        if attention and ("qkv" in last or last == "c_attn") and rows == queries + 2 * keys and columns == width:
            found += zip("QKV", weight.split([queries, keys, keys]), strict=True)
        elif attention and last[0] in "qkv" and columns == width:
            found.append((last[0].upper(), weight))
        elif attention:
            found.append(("Out", weight))
        elif rows == width:
            found.append(("FC2", weight))
        elif columns == width and _is_twice(rows, linear.values(), width):
            found += zip(("Gate", "FC1"), weight.chunk(2), strict=True)
        elif columns == width:
            found.append(("Gate" if "gate" in last else "FC1", weight))
    matrices = dict(found)
    order = [name for name in ("K", "Q", "V", "Out", "Gate", "FC1", "FC2") if name in matrices]
    missing = [name for name in ("K", "Q", "V", "Out", "FC1", "FC2") if name not in matrices]
    if missing or len(found) > len(matrices):  # a mixture of experts has several of a kind
        said = f"its matrix {missing[0]} is not found among" if missing else "it has several matrices of a kind,"
        raise InputError(f"{type(layer).__name__}: {said} {', '.join(linear) or 'no linear layers'}; a plugin can bring its family")
    return {name: matrices[name] for name in order}


def _is_twice(rows: int, weights: Any, width: int) -> bool:
    """Whether a matrix has two rows for each number that the matrix behind it reads: both halves of a gated part."""
    return any(each.shape == (width, rows // 2) for each in weights) and not any(each.shape == (width, rows) for each in weights)


def reserved_positions(network: Any) -> int:
    """The number of positions in an encoder's table that no piece can have: those up to that of padding, as in RoBERTa."""
    from torch.nn import Embedding

    tables = (module for name, module in network.named_modules() if isinstance(module, Embedding) and name.endswith("position_embeddings"))
    return max((table.padding_idx + 1 for table in tables if table.padding_idx is not None), default=0)


def special_tokens_around(tokenizer: Any) -> tuple[str, ...]:
    """What stands around a text, as names of special tokens (`cls`, `bos`, `sep`, `eos`), and `text` itself.

    Raises `InputError` for a token that is none of these.
    """
    whole, text = tokenizer("a")["input_ids"], tokenizer("a", add_special_tokens=False)["input_ids"]
    at = next(at for at in range(len(whole)) if whole[at : at + len(text)] == text)

    def named(ids: list[int], names: tuple[str, ...]) -> list[str]:
        found = [next((name for name in names if getattr(tokenizer, f"{name}_token_id") == i), None) for i in ids]
        if None in found:
            token = tokenizer.convert_ids_to_tokens(ids[found.index(None)])
            raise InputError(f"the tokenizer {type(tokenizer).__name__} puts {token!r} around a text, which is none of its special tokens")
        return [name for name in found if name]

    before = named(whole[:at], ("cls", "bos", "sep", "eos"))
    return (*before, "text", *named(whole[at + len(text) :], ("sep", "eos", "cls", "bos")))


def tells_texts_apart(tokenizer: Any) -> bool:
    """Whether the second text of a pair has a type of its own, as BERT's has; XLM-R's pieces, which some BERTs read, have one type."""
    return 1 in tokenizer("a", "b", return_token_type_ids=True)["token_type_ids"]


def head_parts(network: Any) -> list[str]:
    """The modules of a network that are its head: those with weights beside its body, and the body's pooler, which heads alone read.

    Raises `InputError` for a network whose body is not a part of it.
    """
    body = network.base_model
    if body is network:
        raise InputError(f"{type(network).__name__}: its head is not found, as its body is no part of it (`base_model_prefix`)")
    parts = [module for module in network.children() if module is not body]
    parts += [module for name, module in body.named_children() if name == "pooler"]
    weighty = {id(module) for module in parts if any(True for _ in module.parameters())}
    return [name for name, module in network.named_modules() if id(module) in weighty]
