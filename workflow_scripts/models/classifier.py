"""classifier: M2M-100 with a head that classifies texts, which transformers has for mBART alone.

As in BART (Lewis et al. 2020, section 3.1) encoder and decoder read the same text, and the head reads the decoder's last state, after it
has read all of the text.
"""

from typing import Any

import torch
from transformers import M2M100Model
from transformers.modeling_outputs import SequenceClassifierOutput
from transformers.models.m2m_100.modeling_m2m_100 import M2M100PreTrainedModel
from transformers.models.mbart.modeling_mbart import MBartClassificationHead


class M2M100ForSequenceClassification(M2M100PreTrainedModel):
    """M2M-100 with mBART's head for texts."""

    def __init__(self, config: Any):
        super().__init__(config)
        self.num_labels = config.num_labels
        self.model = M2M100Model(config)
        self.classification_head = MBartClassificationHead(
            config.d_model, config.d_model, config.num_labels, getattr(config, "classifier_dropout", 0.0)
        )
        self.post_init()

    @classmethod
    def from_config(cls, config: Any) -> "M2M100ForSequenceClassification":
        """A model with random weights, as transformers' classes with ``Auto`` in their names make it."""
        return cls(config)

    def forward(
        self, input_ids: torch.Tensor, attention_mask: torch.Tensor, decoder_input_ids: torch.Tensor, **_: Any
    ) -> SequenceClassifierOutput:
        """Logits (rows × labels). The rows that the decoder reads are as long as those of the encoder, and padded on the right."""
        read = {"input_ids": input_ids, "attention_mask": attention_mask, "decoder_input_ids": decoder_input_ids}
        states = self.model(**read, use_cache=False).last_hidden_state
        last = attention_mask.sum(dim=1) - 1
        return SequenceClassifierOutput(logits=self.classification_head(states[torch.arange(len(last), device=last.device), last]))
