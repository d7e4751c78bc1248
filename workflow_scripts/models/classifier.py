"""classifier: heads that classify texts, and that transformers lacks.

M2M-100 has mBART's head. As in BART (Lewis et al. 2020, section 3.1) encoder and decoder read the same text, and the head reads the
decoder's state where it is to predict ``</s>``, after it has read all of the text.

The encoders of mBART and M2M-100 alone have XLM-R's head, as in Ji et al. (2024), who compare such halves with encoders. XLM-R's reads the
state of the row's first piece, ``<s>``. The others' rows have no such piece. By ``head_reads`` in the configuration,
the head reads the state of the language's tag instead (`first` or `last` in a row), or the `mean` of all states.
"""

from collections.abc import Callable
from typing import Any

import torch
from transformers import M2M100Model, MBartModel
from transformers.modeling_outputs import SequenceClassifierOutput
from transformers.models.m2m_100.modeling_m2m_100 import M2M100PreTrainedModel
from transformers.models.mbart.modeling_mbart import MBartClassificationHead, MBartPreTrainedModel
from transformers.models.xlm_roberta.modeling_xlm_roberta import XLMRobertaClassificationHead

from workflow_scripts.models.pooling import last_state, mean_state


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

    def forward(
        self, input_ids: torch.Tensor, attention_mask: torch.Tensor, decoder_input_ids: torch.Tensor, **_: Any
    ) -> SequenceClassifierOutput:
        """Logits (rows × labels). The rows that the decoder reads are as long as those of the encoder, and padded on the right."""
        read = {"input_ids": input_ids, "attention_mask": attention_mask, "decoder_input_ids": decoder_input_ids}
        states = self.model(**read, use_cache=False).last_hidden_state
        return SequenceClassifierOutput(logits=self.classification_head(last_state(states, attention_mask)))


class _EncoderClassifier:
    """The encoder half of a model with XLM-R's head; the decoder does nothing."""

    body: type
    config: Any
    post_init: Callable[[], None]

    def __init__(self, config: Any):
        super().__init__(config)  # type: ignore[call-arg]  # what stands beside it in the classes below
        self.num_labels = config.num_labels
        self.model = self.body(config)
        self.classifier = XLMRobertaClassificationHead(config)
        self.post_init()

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor, **_: Any) -> SequenceClassifierOutput:
        """Logits (rows × labels) of rows that are padded on the right."""
        states = self.model.encoder(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        if self.config.head_reads == "mean":
            read = mean_state(states, attention_mask)
        else:
            read = last_state(states, attention_mask) if self.config.head_reads == "last" else states[:, 0]
        # the head takes the first state of each row
        return SequenceClassifierOutput(logits=self.classifier(read[:, None]))


class MBartEncoderForSequenceClassification(_EncoderClassifier, MBartPreTrainedModel):
    """mBART's encoder with XLM-R's head."""

    body = MBartModel


class M2M100EncoderForSequenceClassification(_EncoderClassifier, M2M100PreTrainedModel):
    """M2M-100's encoder with XLM-R's head."""

    body = M2M100Model
