"""families: all that Crossgap knows about each family of pretrained models, as entries of the registry.

A family is a kind of network together with its input format. Other modules look properties up in its entry instead of testing a
model's type, so that a new family needs one entry, here or in a plugin. `family` registers one. Where only one family is possible, it is
named: VECO goes on from XLM-R.

===========  ==================  ==================  ======================
family       encoder reads       decoder starts      labels
===========  ==================  ==================  ======================
``mbart``    ``X </s> LANG``     ``LANG Y``          ``Y </s> LANG``
``mbart50``  ``LANG X </s>``     ``</s> LANG Y``     ``LANG Y </s>``
``m2m100``   ``LANG X </s>``     ``</s> LANG Y``     ``LANG Y </s>``
``bart``     ``<s> X </s>``      ``</s> <s> Y``      ``<s> Y </s>``
``mt5``      ``X </s>``          ``<pad> Y``         ``Y </s>``
``xlmr``     ``<s> X </s>``      (no decoder)        (as the encoder reads)
``mbert``    ``[CLS] X [SEP]``   (no decoder)        (as the encoder reads)
``decoder``  (no encoder)        ``<bos> PROMPT Y``  ``Y <eos>``
``encoder``  (found out)         (no decoder)        (as the encoder reads)
===========  ==================  ==================  ======================

The decoder's input is the labels rotated by one place to the right; of `mt5` it starts with padding instead. `bart` is the form that XLM-R
and VECO take to write text (`conversion`); `<s>` stands in the place of a tag, so nothing tells it which language to write but its
finetuning. A `decoder` is a model without an encoder (Gemma, Llama, Qwen, …); `templates` has its prompts. `encoder` is any other model
that reads and does not write: what differs between such models is found out (`structure`).
"""

import difflib
import functools
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from workflow_scripts import plugins, registry
from workflow_scripts.errors import InputError
from workflow_scripts.models import makers, restarts
from workflow_scripts.models.folders import TOKENIZER_FILES, check_folder

DEFAULT_FAMILY = "mbart"
"""The family of small models where a configuration names none."""
CONVERTED = {"encoder": "xlmr", "encoder-decoder": "bart"}
"""What a model is converted to → the family that it then is of."""
UNLIMITED = 1 << 30
"""The longest row of models whose positions are relative, so that none is too long; no text has so many pieces."""


@dataclass(frozen=True, kw_only=True)
class Family(registry.Entry):
    """An entry of the kind `family`, as plain data."""

    model_type: str
    """`model_type` in the model's ``config.json``."""
    row: tuple[str, ...]
    """What the encoder reads of a text: `text`, `tag`, or one of the tokenizer's special tokens (`eos`, `cls`, `sep`)."""
    heads: dict[str, str | Callable[[], Any]]
    """Task → transformers' class, or a function that returns a class, that loads the model with a head for it: `text` writes or restores
    text, `classification` labels it, `encoder_classification` does so with the encoder alone of a model that has a decoder, `labelling`
    tags its words, `answering` marks a span of it. Classes that transformers lacks are in `classifier`, `tagger` and `span_head`."""
    dropout: tuple[str, str]
    """Settings of the dropout of residuals and embeddings, and of attention weights; the second is empty where one setting is for both."""
    states: tuple[str, ...]
    """Names of the model's outputs with the hidden states of all layers, the encoder's first."""
    size: dict[str, str]
    """Our name → the setting in ``config.json``: width, feed-forward width, layers and heads of the encoder, layers of the decoder."""
    layers: dict[str, str]
    """`encoder`, and `decoder` where there is one → where the list of its layers is in the network without a head."""
    matrices: dict[str, str]
    """Matrix of weights in a layer, by the name that papers have for it → where it is in the layer. Attention is self-attention."""
    tokenizer: str = ""
    """A part of the tokenizer class's name, to distinguish families with the same `model_type`."""
    tags: tuple[str, ...] = ()
    """Forms of the language's tag, made from a row of the table of languages; the first that the vocabulary has is used."""
    starts_with_end: bool = False
    """Whether the decoder's input starts with `</s>`; else with the language's tag."""
    off: tuple[str, ...] = ()
    """Settings that are 0 while Crossgap trains: kinds of dropout that the paper does not have."""
    reserved_positions: int = 0
    """Number of positions in ``config.json`` that no piece can have."""
    positions: str = "max_position_embeddings"
    """The setting with the number of positions; empty where positions are relative, so that no row is too long."""
    starts_with: str = ""
    """The special token (`pad`) that the decoder's input starts with, where it is not the last one of the labels."""
    decoder_matrices: dict[str, str] = field(default_factory=dict)
    """`matrices` of the decoder, where they are elsewhere in its layers than in the encoder's."""
    engines: tuple[str, ...] = ()
    """Names of the engines that decode its models, where not all of ours do: CTranslate2's converter does not know every network."""
    converted: dict[str, Any] = field(default_factory=dict)
    """Settings of ``config.json`` that CTranslate2's converter is to read otherwise than they are."""
    bare: dict[str, Any] = field(default_factory=dict)
    """Settings with which an encoder is loaded without the head that it was pretrained with."""
    head_states: Callable[[Any, Any], Any] | None = None
    """Network and last states → what its output layer multiplies, where a head has layers before it."""
    last_states: Callable[[Any, dict[str, Any]], Any] | None = None
    """Network and batch → what its output layer multiplies, where transformers has no network without a head in the one with a head."""
    restarts: Callable[..., Any] | None = None
    """How its network is told that positions begin anew in a row, one of `models.restarts`; without it sentences are not packed."""
    tokenizer_files: tuple[str, ...] = TOKENIZER_FILES
    """One of these files has the pieces of a vocabulary."""
    maker: makers.Maker | None = None
    """How a small model of it is made; None where the run makes none."""
    causal: bool = False
    """Whether it is a decoder alone, which reads and writes with the same layers. Its layers count as the encoder's where it reads."""
    encoder_heads: bool = False
    """Whether heads read the encoder's states, of a model that has a decoder as well."""
    sentinel: str = ""
    """The pieces that stand for spans in pretraining (`<extra_id_{}>`, from 0 on), where the family has such."""
    convertible: bool = False
    """Whether a model of it can be made to a plain encoder or an encoder-decoder (`conversion`)."""
    by_structure: bool = False
    """Whether layers, matrices, kinds of dropout, positions and special tokens are found out of each model (`structure`)."""
    recognises: Callable[[str, tuple[str, ...]], bool] | None = None
    """`model_type` and `architectures` of a model of no type that an entry names → whether it is one of this family."""

    @property
    def title(self) -> str:
        """What messages call it."""
        return self.label

    @property
    def decoder(self) -> bool:
        """Whether it has a decoder beside an encoder."""
        return "decoder_hidden_states" in self.states

    @property
    def writes(self) -> bool:
        """Whether it writes text piece by piece."""
        return self.decoder or self.causal

    @property
    def reported(self) -> str:
        """What ``backbone.json`` calls it: several families with a decoder share a `model_type`, by which encoders are known."""
        return self.name if self.writes else self.model_type


_BART_SIZE = {
    "width": "d_model",
    "feed_forward": "encoder_ffn_dim",
    "heads": "encoder_attention_heads",
    "layers": "encoder_layers",
    "decoder_layers": "decoder_layers",
}
_BERT_SIZE = {"width": "hidden_size", "feed_forward": "intermediate_size", "heads": "num_attention_heads", "layers": "num_hidden_layers"}
_BART_MATRICES = {
    "K": "self_attn.k_proj",
    "Q": "self_attn.q_proj",
    "V": "self_attn.v_proj",
    "Out": "self_attn.out_proj",
    "FC1": "fc1",
    "FC2": "fc2",
}
_BERT_MATRICES = {
    "K": "attention.self.key",
    "Q": "attention.self.query",
    "V": "attention.self.value",
    "Out": "attention.output.dense",
    "FC1": "intermediate.dense",
    "FC2": "output.dense",
}


def _t5_head(name: str) -> Callable[[], Any]:
    """What returns the class of a head on the encoder of mT5 and its kin."""

    def found() -> Any:
        from workflow_scripts.models import t5_heads

        return getattr(t5_heads, name)

    return found


def _t5_matrices(last: int) -> dict[str, str]:
    """Of a layer with so many parts before the feed-forward one; its first matrix is the gate of two."""
    attention = {name: f"layer.0.SelfAttention.{part}" for name, part in (("K", "k"), ("Q", "q"), ("V", "v"), ("Out", "o"))}
    return {**attention, "FC1": f"layer.{last}.DenseReluDense.wi_0", "FC2": f"layer.{last}.DenseReluDense.wo"}


_MBART: dict[str, Any] = {
    "model_type": "mbart",
    "row": ("text", "eos", "tag"),
    "heads": {
        "text": "AutoModelForSeq2SeqLM",
        "classification": "AutoModelForSequenceClassification",
        "encoder_classification": "MBartEncoderForSequenceClassification",
        "labelling": "MBartForTokenClassification",
        "answering": "MBartForSpans",
    },
    "dropout": ("dropout", "attention_dropout"),
    "states": ("encoder_hidden_states", "decoder_hidden_states"),
    "size": _BART_SIZE,
    "layers": {"encoder": "encoder.layers", "decoder": "decoder.layers"},
    "matrices": _BART_MATRICES,
    "tags": ("{tag}",),
    "off": ("activation_dropout",),
    "restarts": restarts.learnt,
}
_MBERT: dict[str, Any] = {
    "model_type": "bert",
    "row": ("cls", "text", "sep"),
    "heads": {
        "text": "AutoModelForMaskedLM",
        "classification": "AutoModelForSequenceClassification",
        "labelling": "AutoModelForTokenClassification",
        "answering": "BertForSpans",
    },
    "dropout": ("hidden_dropout_prob", "attention_probs_dropout_prob"),
    "states": ("hidden_states",),
    "size": _BERT_SIZE,
    "layers": {"encoder": "encoder.layer"},
    "matrices": _BERT_MATRICES,
    "restarts": restarts.told,
}


def _of_bert(network: Any, states: Any) -> Any:
    return network.cls.predictions.transform(states)


def _of_xlmr(network: Any, states: Any) -> Any:
    from torch.nn.functional import gelu

    return network.lm_head.layer_norm(gelu(network.lm_head.dense(states)))


def _before_output(network: Any, batch: dict[str, Any]) -> Any:
    """What the output layer of any network reads, in the way of its own class; the layer hands it through meanwhile."""
    layer = network.get_output_embeddings()
    layer.forward = lambda states: states
    cache = {"use_cache": False} if network.config.is_encoder_decoder else {}
    try:
        return type(network).forward(network, **{**cache, **batch}).logits
    finally:
        del layer.forward


def family(name: str, *, label: str, like: str = "", **about: Any) -> Family:
    """Register a family; `about` are the fields of `Family`, and what is not given is as in the family that it is `like`.

    Raises `InputError` for a field that there is not, one that is missing, and a name that is taken.
    """
    known = [one.name for one in fields(Family) if one.name not in ("name", "label", "plugin", "settings")]
    if unknown := [key for key in about if key not in known]:
        raise InputError(f"family {name!r}: there is no field {unknown[0]!r}; a family has {', '.join(known)}")
    if like:
        other = registry.entry("family", like)
        about = {**{key: getattr(other, key) for key in known}, **about}
    if missing := [key for key in ("model_type", "row", "heads", "dropout", "states", "size", "layers", "matrices") if key not in about]:
        raise InputError(f"family {name!r}: lacks {', '.join(missing)}; give them, or name a family that it is `like`")
    made = Family(name=name, label=label, **about)
    registry.register("family", made)
    return made


family("mbart50", label="mBART-50", **{**_MBART, "tokenizer": "MBart50", "row": ("tag", "text", "eos"), "starts_with_end": True})
family("mbart", label="mBART", **_MBART, maker=makers.MBART)
family(
    "m2m100",
    label="M2M-100 or NLLB",
    like="mbart50",
    tokenizer="",
    model_type="m2m_100",
    heads={
        "text": "AutoModelForSeq2SeqLM",
        "classification": "M2M100ForSequenceClassification",
        "encoder_classification": "M2M100EncoderForSequenceClassification",
        "labelling": "M2M100ForTokenClassification",
        "answering": "M2M100ForSpans",
    },
    tags=("{nllb}", "__{code}__"),
    off=("activation_dropout", "encoder_layerdrop", "decoder_layerdrop"),
    restarts=restarts.computed,
)
family(
    "xlmr",
    label="XLM-R",
    **{
        **_MBERT,
        "model_type": "xlm-roberta",
        "heads": {**_MBERT["heads"], "answering": "XLMRobertaForSpans"},
        "restarts": functools.partial(restarts.told, reserved=makers.XLMR_RESERVED),
    },
    reserved_positions=makers.XLMR_RESERVED,
    # XLM-R comes without a pooler, and one that is made up would be another one each time
    bare={"add_pooling_layer": False},
    head_states=_of_xlmr,
    convertible=True,
    maker=makers.XLMR,
)
family("mbert", label="BERT", **_MBERT, head_states=_of_bert)
family(
    "bart",
    label="BART",
    like="m2m100",
    model_type="bart",
    heads={"text": "AutoModelForSeq2SeqLM", "classification": "AutoModelForSequenceClassification"},
    tags=("<s>",),
    restarts=restarts.learnt,
)
family(
    "mt5",
    label="mT5",
    source="Xue et al. 2021",
    model_type="mt5",
    row=("text", "eos"),
    starts_with="pad",
    heads={
        "text": "AutoModelForSeq2SeqLM",
        "classification": _t5_head("T5EncoderClassifier"),
        "encoder_classification": _t5_head("T5EncoderClassifier"),
        "labelling": _t5_head("T5EncoderTagger"),
        "answering": _t5_head("T5EncoderMarker"),
    },
    encoder_heads=True,
    sentinel="▁<extra_id_{}>",
    dropout=("dropout_rate", ""),
    states=("encoder_hidden_states", "decoder_hidden_states"),
    size={
        "width": "d_model",
        "feed_forward": "d_ff",
        "heads": "num_heads",
        "layers": "num_layers",
        "decoder_layers": "num_decoder_layers",
    },
    layers={"encoder": "encoder.block", "decoder": "decoder.block"},
    matrices=_t5_matrices(1),
    decoder_matrices=_t5_matrices(2),
    positions="",
    restarts=restarts.relative,
    last_states=_before_output,
    converted={"tie_word_embeddings": False},  # with shared embeddings the converter would scale what the output layer reads, as T5 does
    tokenizer_files=("tokenizer.json", "spiece.model"),
)


def _is_decoder(model_type: str, architectures: tuple[str, ...]) -> bool:
    if any(name.endswith("ForCausalLM") for name in architectures):
        return True
    if not any(name.endswith(("ForSequenceClassification", "ForTokenClassification")) for name in architectures):
        return False
    # a decoder with a head is known by its type alone
    from transformers.models.auto import modeling_auto as known

    others = {**known.MODEL_FOR_MASKED_LM_MAPPING_NAMES, **known.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES}
    return model_type in known.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES and model_type not in others


family(
    "decoder",
    label="decoder",
    model_type="llama",
    recognises=_is_decoder,
    causal=True,
    row=("text",),
    heads={
        "text": "AutoModelForCausalLM",
        "classification": "AutoModelForSequenceClassification",
        "labelling": "AutoModelForTokenClassification",
    },
    dropout=("", "attention_dropout"),
    states=("hidden_states",),
    size={"width": "hidden_size", "feed_forward": "intermediate_size", "heads": "num_attention_heads", "layers": "num_hidden_layers"},
    layers={"encoder": "layers"},
    matrices={
        **{name: f"self_attn.{part}" for name, part in (("K", "k_proj"), ("Q", "q_proj"), ("V", "v_proj"), ("Out", "o_proj"))},
        **{"Gate": "mlp.gate_proj", "FC1": "mlp.up_proj", "FC2": "mlp.down_proj"},
    },
    restarts=restarts.told,
    tokenizer_files=("tokenizer.json", "tokenizer.model"),
)
family(
    "bloom",
    label="BLOOM",
    like="decoder",
    model_type="bloom",
    recognises=None,
    dropout=("hidden_dropout", "attention_dropout"),
    size={"width": "hidden_size", "feed_forward": "", "heads": "n_head", "layers": "n_layer"},
    layers={"encoder": "h"},
    matrices={"Out": "self_attention.dense", "FC1": "mlp.dense_h_to_4h", "FC2": "mlp.dense_4h_to_h"},
    restarts=None,
    positions="",
)


def _is_encoder(model_type: str, architectures: tuple[str, ...]) -> bool:
    """Whether a model guesses masked pieces, and has no decoder, as far as its type tells."""
    if any(name.endswith(("ForCausalLM", "ForConditionalGeneration")) for name in architectures):
        return False
    from transformers.models.auto import modeling_auto as known

    return model_type in known.MODEL_FOR_MASKED_LM_MAPPING_NAMES and model_type not in known.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES


def _spans_of_any() -> Any:
    from workflow_scripts.models.span_head import AutoModelForSpans

    return AutoModelForSpans


family(
    "encoder",
    label="encoder",
    like="mbert",
    model_type="",
    recognises=_is_encoder,
    by_structure=True,
    heads={**_MBERT["heads"], "answering": _spans_of_any},
    dropout=("", ""),
    layers={"encoder": ""},
    matrices={},
    head_states=None,
    last_states=_before_output,
    tokenizer_files=(*TOKENIZER_FILES, "spm.model", "sentencepiece.model"),
)


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
    return ", ".join(dict.fromkeys(one.title for one in families or registry.entries("family").values()))


def longest_row(config: Any) -> int:
    """The longest row, in pieces, that a model of this configuration can read."""
    own = family_of(config)
    reserved = _reserved_in(config) if own.by_structure else own.reserved_positions
    return getattr(config, own.positions) - reserved if own.positions else UNLIMITED


def _reserved_in(config: Any) -> int:
    """Positions that no piece can have, of an encoder whose structure tells."""
    import torch
    from transformers import AutoModel

    from workflow_scripts.models.structure import reserved_positions

    with torch.device("meta"):
        return reserved_positions(AutoModel.from_config(config))


def longest_output(config: Any) -> int:
    """The most pieces that a model of this configuration can write; a row also has the piece that it starts with, and its end."""
    return longest_row(config) - 2


def decoder_depth(config: Any) -> int:
    """The layers of the decoder of a model; of an encoder 0."""
    return getattr(config, family_of(config).size.get("decoder_layers", ""), 0) or 0
