"""families: all that Crossgap knows about each family of pretrained models, in one table.

A family is a kind of network together with its input format. Other modules look properties up in this table instead of testing a
model's type, so that a new family needs one entry here and a tiny model in `tests/tiny_models.py`. Two properties are in code: the
head of a masked language model (`networks.head_states`) and XLM-R's missing pooler (`training.backbone`).
Where only some families are possible, they are named: VECO goes on from XLM-R, and small backbones are mBARTs or XLM-Rs.

===========  ==================  ==================  ======================
family       encoder reads       decoder starts      labels
===========  ==================  ==================  ======================
``mbart``    ``X </s> LANG``     ``LANG Y``          ``Y </s> LANG``
``mbart50``  ``LANG X </s>``     ``</s> LANG Y``     ``LANG Y </s>``
``m2m100``   ``LANG X </s>``     ``</s> LANG Y``     ``LANG Y </s>``
``bart``     ``<s> X </s>``      ``</s> <s> Y``      ``<s> Y </s>``
``xlmr``     ``<s> X </s>``      (no decoder)        (as the encoder reads)
``mbert``    ``[CLS] X [SEP]``   (no decoder)        (as the encoder reads)
===========  ==================  ==================  ======================

The decoder's input is always the labels rotated by one place to the right. `bart` is the form that XLM-R and VECO take to write text
(`conversion`); `<s>` stands in the place of a tag, so nothing tells it which language to write but its finetuning.
"""

import difflib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from workflow_scripts.models.folders import check_folder
from workflow_scripts.stage import InputError


class Family(NamedTuple):
    """One family of models, as plain data."""

    name: str
    """Its name in this table."""
    title: str
    """Its name for people."""
    model_type: str
    """`model_type` in the model's ``config.json``."""
    row: tuple[str, ...]
    """What the encoder reads of a text: `text`, `tag`, or one of the tokenizer's special tokens (`eos`, `cls`, `sep`)."""
    heads: dict[str, str]
    """Task → transformers' class that loads the model with a head for it: `text` writes or restores text, `classification` labels
    it, `encoder_classification` does so with the encoder alone of a model that has a decoder, `labelling` tags its words, `answering` marks
    a span of it. Classes that transformers lacks are in `classifier`, `tagger` and
    `spans`."""
    dropout: tuple[str, str]
    """Settings of the dropout of residuals and embeddings, and of attention weights."""
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

    @property
    def decoder(self) -> bool:
        """Whether it has a decoder, and so can write text."""
        return "decoder_hidden_states" in self.states

    @property
    def reported(self) -> str:
        """What ``backbone.json`` calls it: several families with a decoder share a `model_type`, by which encoders are known."""
        return self.name if self.decoder else self.model_type


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
_MBART = Family(
    name="mbart",
    title="mBART",
    model_type="mbart",
    row=("text", "eos", "tag"),
    heads={
        "text": "AutoModelForSeq2SeqLM",
        "classification": "AutoModelForSequenceClassification",
        "encoder_classification": "MBartEncoderForSequenceClassification",
        "labelling": "MBartForTokenClassification",
        "answering": "MBartForSpans",
    },
    dropout=("dropout", "attention_dropout"),
    states=("encoder_hidden_states", "decoder_hidden_states"),
    size=_BART_SIZE,
    layers={"encoder": "encoder.layers", "decoder": "decoder.layers"},
    matrices=_BART_MATRICES,
    tags=("{tag}",),
    off=("activation_dropout",),
)
_MBERT = Family(
    name="mbert",
    title="mBERT",
    model_type="bert",
    row=("cls", "text", "sep"),
    heads={
        "text": "AutoModelForMaskedLM",
        "classification": "AutoModelForSequenceClassification",
        "labelling": "AutoModelForTokenClassification",
        "answering": "BertForSpans",
    },
    dropout=("hidden_dropout_prob", "attention_probs_dropout_prob"),
    states=("hidden_states",),
    size=_BERT_SIZE,
    layers={"encoder": "encoder.layer"},
    matrices=_BERT_MATRICES,
)

FAMILIES: dict[str, Family] = {
    family.name: family
    for family in (
        # of families with the same `model_type`, one that is recognised by its tokenizer must come first
        _MBART._replace(name="mbart50", title="mBART-50", tokenizer="MBart50", row=("tag", "text", "eos"), starts_with_end=True),
        _MBART,
        _MBART._replace(
            name="m2m100",
            title="M2M-100 or NLLB",
            model_type="m2m_100",
            row=("tag", "text", "eos"),
            heads={
                "text": "AutoModelForSeq2SeqLM",
                "classification": "M2M100ForSequenceClassification",
                "encoder_classification": "M2M100EncoderForSequenceClassification",
                "labelling": "M2M100ForTokenClassification",
                "answering": "M2M100ForSpans",
            },
            tags=("{nllb}", "__{code}__"),
            starts_with_end=True,
            off=("activation_dropout", "encoder_layerdrop", "decoder_layerdrop"),
        ),
        # the position of padding, and all before it, are not used
        _MBERT._replace(
            name="xlmr",
            title="XLM-R",
            model_type="xlm-roberta",
            reserved_positions=2,
            heads={**_MBERT.heads, "answering": "XLMRobertaForSpans"},
        ),
        _MBERT,
        _MBART._replace(
            name="bart",
            title="BART",
            model_type="bart",
            row=("tag", "text", "eos"),
            heads={
                "text": "AutoModelForSeq2SeqLM",
                "classification": "AutoModelForSequenceClassification",
            },
            tags=("<s>",),
            starts_with_end=True,
            off=("activation_dropout", "encoder_layerdrop", "decoder_layerdrop"),
        ),
    )
}


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
    else:
        where, kind, declared = "", getattr(model, "model_type", None), str(getattr(model, "tokenizer_class", None))
    for family in FAMILIES.values():
        if family.model_type == kind and family.tokenizer in declared:
            return family
    near = difflib.get_close_matches(str(kind), {name for family in FAMILIES.values() for name in (family.name, family.model_type)}, n=1)
    guess = f"; the nearest that is known is {near[0]}" if near else ""
    raise InputError(f"{where}is a model of type {kind!r}, none that Crossgap knows ({titles()}){guess}")


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
    return ", ".join(dict.fromkeys(family.title for family in families or FAMILIES.values()))


def longest_row(config: Any) -> int:
    """The longest row, in pieces, that a model of this configuration can read."""
    return config.max_position_embeddings - family_of(config).reserved_positions


def longest_output(config: Any) -> int:
    """The most pieces that a model of this configuration can write; a row also has the piece that it starts with, and its end."""
    return longest_row(config) - 2
