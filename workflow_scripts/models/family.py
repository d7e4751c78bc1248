"""family: what a family of pretrained models is: an entry of the registry that says all that Crossgap knows about it.

A family is a kind of network together with its input format. Other modules look properties up in its entry instead of testing a
model's type, so that a new family needs one entry, ours (`families`) or a plugin's. `family` registers one. Where only one family is
possible, it is named: VECO goes on from XLM-R. `recognition` says which family a model is of.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any

from workflow_scripts import registry
from workflow_scripts.errors import InputError
from workflow_scripts.models import makers
from workflow_scripts.models.folders import TOKENIZER_FILES

DEFAULT_FAMILY = "mbart"
"""The family of small models where a configuration names none."""
CONVERTED = {"encoder": "xlmr", "encoder-decoder": "bart"}
"""What a model is converted to → the family that it then is of."""


@dataclass(frozen=True, kw_only=True)
class Family(registry.Entry):
    """An entry of the kind `family`, as plain data."""

    model_type: str
    """`model_type` in the model's ``config.json``."""
    row: tuple[str, ...]
    """What the encoder reads of a text: `text`, `tag`, or one of the tokenizer's special tokens (`eos`, `cls`, `sep`)."""
    heads: dict[str, str | Callable[[], Any]]
    """Task → the class that loads the model with a head for it: a class of transformers, `module.Class` of this room, or a function that
    returns a class. `text` writes or restores text, `classification` labels it, and `encoder_classification` does so with the encoder
    alone of a model that has a decoder. `labelling` tags its words, `answering` marks a span of it."""
    dropout: tuple[str, str]
    """Settings of the dropout of residuals and embeddings, and of attention weights; the second is empty where one setting is for both."""
    states: tuple[str, ...]
    """Names of the model's outputs with the hidden states of all layers, the encoder's first."""
    size: dict[str, str]
    """Our name → the setting in ``config.json``: width, feed-forward width, layers and heads of the encoder, layers of the decoder."""
    layers: dict[str, str]
    """`encoder`, and `decoder` where there is one → where the list of its layers is in the network without a head."""
    matrices: dict[str, str]
    """Matrix of weights in a layer, by the name that papers have for it → where it is in the layer: of several places, separated by `|`,
    the first that there is. Attention is self-attention."""
    tokenizer: str = ""
    """A part of the tokenizer class's name, to distinguish families with the same `model_type`."""
    tags: tuple[str, ...] = ()
    """Forms of the language's tag, made from a row of the table of languages; the first that the vocabulary has is used."""
    starts_with_end: bool = False
    """Whether the decoder's input starts with `</s>`; else with the language's tag."""
    learns_tag: bool = True
    """Whether the tag at the start of the labels is learnt. It is given when the model writes, so nothing is lost where it is not."""
    in_half: bool = True
    """Whether CTranslate2 computes it right in float16; what T5's feed-forward layers compute is too large for that."""
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
    converted: Callable[[Any], dict[str, Any]] | None = None
    """A model's configuration → the settings that CTranslate2's converter is to read otherwise than they are."""
    bare: dict[str, Any] = field(default_factory=dict)
    """Settings with which an encoder is loaded without the head that it was pretrained with."""
    head_states: Callable[[Any, Any], Any] | None = None
    """Network and last states → what its output layer multiplies, where a head has layers before it."""
    last_states: Callable[[Any, dict[str, Any]], Any] | None = None
    """Network and batch → what its output layer multiplies, where transformers has no network without a head in the one with a head."""
    restarts: Callable[..., Any] | None = None
    """How its network learns that positions begin anew in a row, one of `models.restarts`; without it sentences are not packed."""
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
    sentinels: tuple[int, ...] = ()
    """The ids of what stands for spans, where no pieces are named so."""
    prefixed: bool = False
    """Whether it has no tags of languages, so that a text before the source may say what is to be written (`templates.prefix`)."""
    reads_bytes: bool = False
    """Whether its pieces are the bytes of a text: there is no vocabulary to cut down, and lengths count bytes."""
    by_structure: bool = False
    """Whether layers, matrices, kinds of dropout, positions and special tokens are found out of each model (`structure`)."""
    recognises: Callable[[str, tuple[str, ...]], bool] | None = None
    """`model_type` and `architectures` of a model of no type that an entry names → whether it is one of this family."""

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


def family(name: str, *, label: str, like: str = "", **about: Any) -> Family:
    """Register a family; `about` are the fields of `Family`, and what is not given is as in the family that it is `like`.

    Raises `InputError` for a field that there is not, one that is missing, a name that is taken, and models that another family has.
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
    if other := next((one for one in registry.entries("family").values() if _hides(one, made)), None):
        by = f" and tokenizer {made.tokenizer!r}" if made.tokenizer else ""
        raise InputError(
            f"family {name!r}: models of model_type {made.model_type!r}{by} are of the family {other.name!r}, so this one would never be "
            "used; give another `model_type`, or a `tokenizer` that tells them apart"
        )
    registry.register("family", made)
    return made


def _hides(other: Family, made: Family) -> bool:
    """Whether models that a new family is `made` for are of an `other` one, which comes first where a model is recognised."""
    same_type = other.name != made.name and other.model_type == made.model_type != ""
    same_tokenizer = bool(other.tokenizer) == bool(made.tokenizer) and other.tokenizer in made.tokenizer
    return same_type and same_tokenizer and made.recognises in (None, other.recognises)
