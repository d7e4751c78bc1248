"""span_head: models with a head that marks a span of what they read: where an answer begins, and where it ends.

The head of BERT (Devlin et al. 2019, section 4.2): a linear layer gives each piece two logits, for the first piece of the answer and
for its last. BERT, XLM-R and mBART are transformers' models for question answering, whose weights are read and written as they are.
mBART and M2M-100 mark by the states of the decoder, which reads what the encoder reads (Lewis et al. 2020, section 3.2), or, with
``token_head: encoder`` in the configuration, by those of the encoder. A decoder alone has read the question when it reads the passage.
Places that can be no answer are ruled out in the model, so that padding does not change the loss.
"""

import functools
from typing import Any

import torch
from torch import nn
from transformers import (
    MODEL_MAPPING,
    BertForQuestionAnswering,
    M2M100Model,
    MBartForQuestionAnswering,
    XLMRobertaForQuestionAnswering,
)
from transformers.modeling_outputs import TokenClassifierOutput
from transformers.models.m2m_100.modeling_m2m_100 import M2M100PreTrainedModel

from workflow_scripts.models.auto_head import AutoHead, base_of
from workflow_scripts.models.tagger import states_of_pieces


class _Spans:
    """What the head does with a model's last states."""

    qa_outputs: Any

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor, places: torch.Tensor, **read: Any) -> TokenClassifierOutput:
        """Logits (rows × 2 × length) of the first and the last piece of the answer, −∞ where `places` (rows × length) are false."""
        logits = self.qa_outputs(states_of_pieces(self, input_ids, attention_mask, **read)).transpose(1, 2)
        return TokenClassifierOutput(logits=logits.masked_fill(~places[:, None], float("-inf")))


class BertForSpans(_Spans, BertForQuestionAnswering):
    """BERT with a head that marks a span."""


class XLMRobertaForSpans(_Spans, XLMRobertaForQuestionAnswering):
    """XLM-R with a head that marks a span."""


class MBartForSpans(_Spans, MBartForQuestionAnswering):
    """mBART with a head that marks a span."""


class M2M100ForSpans(_Spans, M2M100PreTrainedModel):
    """M2M-100 with a head that marks a span."""

    def __init__(self, config: Any):
        super().__init__(config)
        self.model = M2M100Model(config)
        self.qa_outputs = nn.Linear(config.d_model, 2)
        self.post_init()


class AutoModelForSpans(AutoHead):
    """Any encoder or decoder with a head that marks a span."""

    _model_mapping = MODEL_MAPPING

    @classmethod
    def class_of(cls, config: type) -> Any:
        """A class that is made here."""
        return _spans_of(config)


@functools.cache
def _spans_of(config: Any) -> Any:
    """The class of a model with a head that marks a span, by the class of its configuration."""
    body: Any = MODEL_MAPPING[config]
    base = base_of(body)

    def make(self: Any, config: Any) -> None:
        base.__init__(self, config)
        setattr(self, base.base_model_prefix, body(config))
        self.qa_outputs = nn.Linear(config.hidden_size, 2)
        self.post_init()

    about = {"__init__": make, "__doc__": _Spans.__doc__, "__module__": body.__module__}  # as in `decoder_heads`
    return type(f"{body.__name__.removesuffix('Model')}ForSpans", (_Spans, base), about)


def best_spans(logits: torch.Tensor, longest: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The best span of each row, of at most `longest` pieces: the sum of its logits, its first and its last place.

    Every span is looked at, not only those between the best places. The sum is −∞ in a row where no span is possible.

    Args:
        logits: Those of the first and the last piece (rows × 2 × length).
    """
    starts, ends = logits.float().unbind(dim=1)
    size = starts.shape[1]
    scores, firsts, widths = [], [], range(min(longest, size))
    for width in widths:
        best, first = (starts[:, : size - width] + ends[:, width:]).max(dim=1)
        scores.append(best)
        firsts.append(first)
    score, longer = torch.stack(scores).max(dim=0)
    first = torch.stack(firsts).gather(0, longer[None])[0]
    return score, first, first + longer
