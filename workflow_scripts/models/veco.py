"""veco: one stack of {self-attention, optional cross-attention, feed-forward} that is run in two ways (Luo et al. 2021, VECO).

The stack is an XLM-R whose layers have a cross-attention besides. As an encoder it leaves that out, and is an XLM-R exactly. As a
decoder it uses it: a position sees the positions before it, and all states that the encoder made of another sequence. Both ways share
self-attention, feed-forward layers, embeddings and output layer. The functions below are the equations of the paper's section 2, in its
letters:

    encoder     H(i) = SelfAttention(X(i−1); θs)      X(i) = FFN(H(i); θf)
    decoder     S(i) = SelfAttention(Y(i−1); θs)      Z(i) = CrossAttention(S(i), X(N); θc)      Y(i) = FFN(Z(i); θf)

Each of the three modules ends with AddNorm, a residual connection and a layer normalisation.

The layers are called one by one, with masks of four dimensions. transformers' own forward decides by `is_decoder` and by the form of the
mask whether self-attention is causal: it makes an encoder or a decoder of the same weights without a word. In the saved configuration
`is_decoder` is off, so that whoever opens the folder as an XLM-R gets the encoder; `load_stack` opens it whole.
"""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from workflow_scripts.models.family import Family
from workflow_scripts.models.networks import read_weights
from workflow_scripts.models.recognition import family_of
from workflow_scripts.stage import InputError

_SHAPE = (
    "vocab_size",
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "intermediate_size",
    "hidden_act",
    "initializer_range",
    "layer_norm_eps",
)
_NAMES = {
    "bert.": "roberta.",
    "cls.predictions.transform.dense.": "lm_head.dense.",
    "cls.predictions.transform.LayerNorm.": "lm_head.layer_norm.",
    "cls.predictions.": "lm_head.",
}
CROSS = ".crossattention."
"""What the names of θc, the weights of cross-attention, have in them; no other weight's name does."""


def load_stack(
    folder: Path | str,
    *,
    cross: bool,
    dropout: float = 0.0,
    attention_dropout: float = 0.0,
    seed: int = 1,
    from_scratch: bool = False,
    **settings: Any,
) -> Any:
    """The stack in `folder`, a VECO or an XLM-R, in float32; with `cross`, of an XLM-R the cross-attention is drawn from `seed`.

    A BERT becomes the XLM-R that computes the same, and keeps its ids (`layout` changes them). So does a RoBERTa, whose weights have the
    same names. Without `cross` it is a plain XLM-R. With `from_scratch` all weights are drawn from `seed`. `settings` are further ones of
    `read_weights`.

    Raises `InputError` for another family, and for weights that do not fit the configuration.
    """
    from transformers import AutoConfig, XLMRobertaConfig, XLMRobertaForCausalLM, XLMRobertaForMaskedLM, set_seed

    family = family_of(folder)
    if not makes_stack(family):
        raise InputError(
            f"{folder}: is a model of the family {family.label}; VECO's stack is made of an XLM-R, a RoBERTa, or a BERT; "
            "start from one (xlm-roberta-large)"
        )
    is_bert = family.name == "mbert"
    own = AutoConfig.from_pretrained(folder)
    # a RoBERTa is an XLM-R in all but its name
    config = as_xlmr(own) if is_bert else XLMRobertaConfig.from_dict({**own.to_dict(), "model_type": "xlm-roberta"})
    config.update({"hidden_dropout_prob": dropout, "attention_probs_dropout_prob": attention_dropout, "use_cache": False})
    config.update({"is_decoder": cross, "add_cross_attention": cross})
    config.dtype = torch.float32  # a folder in half precision says so
    set_seed(seed)
    kind: Any = XLMRobertaForCausalLM if cross else XLMRobertaForMaskedLM
    if from_scratch:
        stack = kind(config)
    elif is_bert:
        stack = kind(config)
        weights, drawn = weights_as_xlmr(folder, **settings)
        stack.load_state_dict({**stack.state_dict(), **weights})
        stack.drawn = drawn
    else:
        # an XLM-R has no cross-attention, and may come without the head that guesses pieces
        whole = cross and has_cross_attention(config)
        stack = read_weights(
            kind,
            folder,
            lambda name: not whole and (CROSS in name or name.startswith("lm_head.")),
            config=config,
            dtype=torch.float32,
            attn_implementation="sdpa",
            **settings,
        )
    # the layers have been made; from here on the configuration is that of an XLM-R, see above
    stack.config.update({"is_decoder": False, "add_cross_attention": False, "cross_attention": cross})
    return stack


def makes_stack(family: Family) -> bool:
    """Whether a stack is made of models of this family, if their special pieces have XLM-R's ids, or can get them (`layout`)."""
    return family.name in ("xlmr", "mbert") or family.model_type == "roberta"


def as_xlmr(bert: Any) -> Any:
    """The configuration of an XLM-R that computes what a BERT does: its positions count from 2, and it has one type of text."""
    from transformers import XLMRobertaConfig

    own: dict[str, Any] = {name: getattr(bert, name) for name in _SHAPE}
    own |= {"max_position_embeddings": bert.max_position_embeddings + 2, "tie_word_embeddings": bert.tie_word_embeddings}
    return XLMRobertaConfig(**own, bos_token_id=0, pad_token_id=1, eos_token_id=2, type_vocab_size=1)


def weights_as_xlmr(folder: Path | str, **settings: Any) -> tuple[dict[str, Tensor], list[str]]:
    """The weights of a BERT by the names that an XLM-R has for them, and which are drawn at random: those of a head that it lacks."""
    from transformers import BertForMaskedLM

    bert = read_weights(BertForMaskedLM, folder, lambda name: name.startswith("cls."), dtype=torch.float32, **settings)

    def renamed(name: str) -> str:
        for old, new in _NAMES.items():
            name = name.replace(old, new)
        return name

    found = {renamed(name): weight for name, weight in bert.state_dict().items()}
    places, types = ("roberta.embeddings.position_embeddings.weight", "roberta.embeddings.token_type_embeddings.weight")
    found[places] = torch.cat([torch.zeros_like(found[places][:2]), found[places]])
    found[types] = found[types][:1]
    return found, [renamed(name) for name in bert.drawn]


def has_cross_attention(model: Path | Any) -> bool:
    """Whether a folder, or a configuration, is that of a whole VECO."""
    from transformers import AutoConfig

    config = AutoConfig.from_pretrained(model) if isinstance(model, str | Path) else model
    return bool(getattr(config, "cross_attention", False))


# ---------------------------------------------------------------------------------------------
# two ways


def encode(stack: Any, ids: Tensor, seen: Tensor, places: Tensor | None = None) -> Tensor:
    """X(N) (rows × length × width): the stack as an encoder (section 2.2, IS-MLM).

    `ids` and `seen` (rows × length), of which the latter is false at padding. `places` are positions as XLM-R counts them, from 2;
    by default the pieces are counted from the first.
    """
    states = stack.base_model.embeddings(ids, position_ids=places)
    mask = seen[:, None, None]
    for layer in stack.base_model.encoder.layer:
        attended = self_attention(layer, states, mask)
        states = feed_forward(layer, attended)
    return states


def decode(stack: Any, ids: Tensor, seen: Tensor, memory: Tensor, memory_seen: Tensor, causal: bool = True) -> Tensor:
    """Y(N) (rows × length × width): the stack as a decoder (section 2.2, CS-MLM).

    `memory` (rows × length of the other sequence × width) is X(N). No gradient goes into it: the encoder's objective and the
    decoder's are optimised in isolation. Without `causal` a position sees all positions of its own sequence, as in the paper's later
    version.
    """
    states = stack.base_model.embeddings(ids)
    mask = seen[:, None, None]
    if causal:
        length = ids.shape[1]
        mask = mask & torch.ones(length, length, dtype=torch.bool, device=ids.device).tril()
    memory, memory_mask = memory.detach(), memory_seen[:, None, None]
    for layer in stack.base_model.encoder.layer:
        attended = self_attention(layer, states, mask)
        crossed = cross_attention(layer, attended, memory, memory_mask)
        states = feed_forward(layer, crossed)
    return states


def self_attention(layer: Any, states: Tensor, mask: Tensor) -> Tensor:
    """SelfAttention(x; θs) = AddNorm(MultiHead(Q = x, K = x, V = x))."""
    return layer.attention(states, mask)[0]


def cross_attention(layer: Any, states: Tensor, memory: Tensor, mask: Tensor) -> Tensor:
    """CrossAttention(x, y; θc) = AddNorm(MultiHead(Q = y, K = x, V = x)), where x is the memory and y are the states."""
    return layer.crossattention(states, None, memory, mask)[0]


def feed_forward(layer: Any, states: Tensor) -> Tensor:
    """FFN(x; θf) = AddNorm(W2 GeLU(W1 x))."""
    return layer.feed_forward_chunk(states)
