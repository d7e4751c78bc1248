"""t5_heads: heads on the encoder of mT5 and its kin.

transformers' own head for texts reads the decoder where it ends, so that all rows of a batch need as many ends. That for tags starts with
far larger weights than others. Here heads read the encoder's states, as those of encoders do. They start like the other matrices that
read a state, with a standard deviation of d^-0.5 (Raffel et al. 2020). A text is read by the mean of its states, or by that of `</s>`
(``head_reads: last``), a word or an answer by the state of each piece. There is no decoder, and none of what it needs in memory.
"""

import copy
import functools
from typing import Any, ClassVar

import torch
from torch import nn
from transformers.modeling_outputs import SequenceClassifierOutput, TokenClassifierOutput
from transformers.models.mt5.modeling_mt5 import MT5Config, MT5EncoderModel
from transformers.models.t5.modeling_t5 import T5Config, T5EncoderModel
from transformers.models.umt5.modeling_umt5 import UMT5Config, UMT5EncoderModel

from workflow_scripts.models.auto_head import AutoHead, base_of
from workflow_scripts.models.pooling import last_state, mean_state

ENCODERS: dict[type, Any] = {MT5Config: MT5EncoderModel, T5Config: T5EncoderModel, UMT5Config: UMT5EncoderModel}
"""Class of a configuration → the encoder alone of such a model."""


class _Head:
    """An encoder with a linear layer behind it; subclasses say what the layer reads."""

    config: Any
    transformer: Any
    classifier: nn.Linear
    base: ClassVar[Any]
    body: ClassVar[Any]

    def __init__(self, config: Any):
        self.base.__init__(self, config)
        self.num_labels = config.num_labels
        self.transformer = self.body(copy.deepcopy(config))  # which has no decoder, and writes so into its configuration
        self.dropout = nn.Dropout(config.classifier_dropout)
        self.classifier = nn.Linear(config.d_model, self.outputs)
        self.post_init()  # type: ignore[attr-defined]

    @property
    def outputs(self) -> int:
        """Numbers that the layer gives."""
        return self.config.num_labels

    def _init_weights(self, module: Any) -> None:
        from transformers import initialization

        self.base._init_weights(self, module)
        layer: Any = getattr(self, "classifier", None)
        if module is layer:
            initialization.normal_(layer.weight, std=self.config.d_model**-0.5)
            initialization.zeros_(layer.bias)

    def states(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        """The encoder's last states (rows × length × width)."""
        return self.transformer(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state


class _Classifier(_Head):
    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor, **_: Any) -> SequenceClassifierOutput:
        """Logits (rows × labels) of rows that are padded on the right."""
        states = self.states(input_ids, attention_mask)
        pooled = last_state if getattr(self.config, "head_reads", "mean") == "last" else mean_state
        read = pooled(states, attention_mask)
        return SequenceClassifierOutput(logits=self.classifier(self.dropout(read)))


class _Tagger(_Head):
    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor, **_: Any) -> TokenClassifierOutput:
        """Logits (rows × length × tags)."""
        return TokenClassifierOutput(logits=self.classifier(self.dropout(self.states(input_ids, attention_mask))))


class _Marker(_Head):
    outputs = 2  # of the first and the last piece of an answer

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor, places: torch.Tensor, **_: Any) -> TokenClassifierOutput:
        """Logits (rows × 2 × length) of the first and the last piece of the answer, −∞ where `places` (rows × length) are false."""
        logits = self.classifier(self.states(input_ids, attention_mask)).transpose(1, 2)
        return TokenClassifierOutput(logits=logits.masked_fill(~places[:, None], float("-inf")))


class _Auto(AutoHead):
    """A head on the encoder of any such model."""

    head: ClassVar[type]

    @classmethod
    def class_of(cls, config: type) -> Any:
        """A class that is made here."""
        return _made(cls.head, config)


class T5EncoderClassifier(_Auto):
    """A head for whole texts."""

    head = _Classifier


class T5EncoderTagger(_Auto):
    """A head for each piece."""

    head = _Tagger


class T5EncoderMarker(_Auto):
    """A head that marks a span."""

    head = _Marker


@functools.cache
def _made(head: Any, config: Any) -> Any:
    """The class of a head on the encoder of models with such a configuration."""
    body = ENCODERS[config]
    base = base_of(body)
    name = f"{body.__name__.removesuffix('Model')}{head.__name__.removeprefix('_')}"
    return type(name, (head, base), {"base": base, "body": body, "__doc__": head.__doc__, "__module__": __name__})
