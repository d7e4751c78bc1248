"""tagger: mBART and M2M-100 with a head that gives every piece a tag, which transformers has for encoders alone.

As in BART (Lewis et al. 2020, section 3.2) encoder and decoder read the same text, and a linear layer reads the decoder's last
states. The decoder has read a piece, those before it, and through the encoder the whole text. With ``token_head:
encoder`` in the configuration the layer reads the encoder's last states, and the decoder, which needs no layers then, does nothing.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from transformers import M2M100Model, MBartModel
from transformers.modeling_outputs import TokenClassifierOutput
from transformers.models.m2m_100.modeling_m2m_100 import M2M100PreTrainedModel
from transformers.models.mbart.modeling_mbart import MBartPreTrainedModel


class _Tagger:
    """A pretrained body with dropout and a linear layer over its last states."""

    body: type
    config: Any
    post_init: Callable[[], None]

    def __init__(self, config: Any):
        super().__init__(config)  # type: ignore[call-arg]  # what stands beside it in the classes below
        self.num_labels = config.num_labels
        self.model = self.body(config)
        self.dropout = nn.Dropout(config.classifier_dropout)
        self.classifier = nn.Linear(config.d_model, config.num_labels)
        self.post_init()

    def forward(
        self, input_ids: torch.Tensor, attention_mask: torch.Tensor, decoder_input_ids: torch.Tensor | None = None, **_: Any
    ) -> TokenClassifierOutput:
        """Logits (rows × length × tags) of the ids that the decoder reads, or without one of those that the encoder reads."""
        states = states_of_pieces(self, input_ids, attention_mask, decoder_input_ids=decoder_input_ids)
        return TokenClassifierOutput(logits=self.classifier(self.dropout(states)))


def states_of_pieces(network: Any, input_ids: torch.Tensor, attention_mask: torch.Tensor, **read: Any) -> torch.Tensor:
    """The last states (rows × length × width) that a head for pieces reads: by default of two halves the decoder's."""
    config, read = network.config, {"input_ids": input_ids, "attention_mask": attention_mask, **read}
    if not config.is_encoder_decoder:
        return network.base_model(**read).last_hidden_state
    if getattr(config, "token_head", "decoder") == "encoder":
        return network.base_model.encoder(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
    return network.base_model(**read, use_cache=False).last_hidden_state


class MBartForTokenClassification(_Tagger, MBartPreTrainedModel):
    """mBART with a head that gives every piece a tag."""

    body = MBartModel


class M2M100ForTokenClassification(_Tagger, M2M100PreTrainedModel):
    """M2M-100 with a head that gives every piece a tag."""

    body = M2M100Model
