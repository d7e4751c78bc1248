"""decoder_heads: heads on decoders.

transformers has heads for texts and for words on many decoders (Qwen, Llama), but not on all: Gemma 3 has none for words, Cohere none at
all. A head that is missing is made here in the same form. A linear layer, `score`, reads the state of a text's last piece, behind which all
of the text was read, or the state of each piece.
"""

import functools
from typing import Any, ClassVar

import torch
from torch import nn
from transformers import (
    MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING,
    MODEL_FOR_TOKEN_CLASSIFICATION_MAPPING,
    MODEL_MAPPING,
)
from transformers.modeling_outputs import SequenceClassifierOutput, TokenClassifierOutput

from workflow_scripts.models.auto_head import AutoHead, base_of
from workflow_scripts.models.pooling import last_state


class _Head:
    """A decoder with a linear layer behind it."""

    config: Any
    score: nn.Linear
    base: ClassVar[Any]
    body: ClassVar[Any]

    def __init__(self, config: Any):
        self.base.__init__(self, config)
        self.num_labels = config.num_labels
        setattr(self, self.base.base_model_prefix, self.body(config))
        self.dropout = nn.Dropout(getattr(config, "classifier_dropout", None) or 0.0)
        self.score = nn.Linear(config.hidden_size, config.num_labels)
        self.post_init()  # type: ignore[attr-defined]

    def scores(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        """What the layer gives for each piece (rows × length × labels)."""
        body = getattr(self, self.base.base_model_prefix)
        return self.score(self.dropout(body(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state))


class _ForSequenceClassification(_Head):
    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor, **_: Any) -> SequenceClassifierOutput:
        """Logits (rows × labels) of rows that are padded on the right."""
        return SequenceClassifierOutput(logits=last_state(self.scores(input_ids, attention_mask), attention_mask))


class _ForTokenClassification(_Head):
    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor, **_: Any) -> TokenClassifierOutput:
        """Logits (rows × length × tags)."""
        return TokenClassifierOutput(logits=self.scores(input_ids, attention_mask))


class _Auto(AutoHead):
    """A head on any decoder."""

    _model_mapping = MODEL_MAPPING
    head: ClassVar[type]
    known: ClassVar[Any]
    """transformers' own classes of such heads, by the class of the configuration."""

    @classmethod
    def class_of(cls, config: type) -> Any:
        """transformers' own class, or one that is made here."""
        return cls.known[config] if config in cls.known else _made(cls.head, config)


class DecoderForTexts(_Auto):
    """A head for whole texts."""

    head = _ForSequenceClassification
    known = MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING


class DecoderForWords(_Auto):
    """A head for each piece."""

    head = _ForTokenClassification
    known = MODEL_FOR_TOKEN_CLASSIFICATION_MAPPING


@functools.cache
def _made(head: Any, config: Any) -> Any:
    """The class of a head on decoders with such a configuration."""
    body: Any = MODEL_MAPPING[config]
    base = base_of(body)
    name = f"{body.__name__.removesuffix('Model')}{head.__name__.removeprefix('_')}"
    # transformers looks into the module of a class for what its layers can do
    return type(name, (head, base), {"base": base, "body": body, "__doc__": head.__doc__, "__module__": body.__module__})
