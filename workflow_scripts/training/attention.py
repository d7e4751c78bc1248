"""attention: attention in bfloat16 on a CPU while it trains, several times as fast.

On the way back, PyTorch's kernel multiplies one small block of one head at a time, and in bfloat16 it plans each of these products anew.
With rows of sentences that takes three to eleven times as long as two products over all heads (docs/performance.md). The latter hold the
weights of all pieces at once, so long rows are left to the kernel.
"""

from contextlib import AbstractContextManager
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from workflow_scripts.device import computed_by

LONGEST = 1024
"""Up to how many pieces a row is multiplied as a whole. Its weights have the square of their number for each head and layer."""


def quick_attention(device: torch.device) -> AbstractContextManager[None]:
    """Context in which PyTorch's attention is `products_of_heads` where that is faster. Does nothing on devices other than a CPU."""
    original = F.scaled_dot_product_attention

    def attention(query: Tensor, key: Tensor, value: Tensor, *others: Any, **named: Any) -> Tensor:
        dtype = torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else query.dtype
        learns = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in (query, key, value))
        if dtype != torch.bfloat16 or not learns or key.shape[-2] > LONGEST or others:
            return original(query, key, value, *others, **named)
        with torch.autocast("cpu", enabled=False):  # which would compute the softmax in float32
            return products_of_heads(query.to(dtype), key.to(dtype), value.to(dtype), **named)

    return computed_by(device, scaled_dot_product_attention=attention)


def products_of_heads(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """What `torch.nn.functional.scaled_dot_product_attention` computes, in the type of its inputs.

    `query`, `key` and `value` are rows × heads × length × width. A query that sees nothing gets the mean of all values, where PyTorch
    gives 0: it is padding.
    """
    if enable_gqa:
        key, value = (tensor.repeat_interleave(query.shape[1] // tensor.shape[1], dim=1) for tensor in (key, value))
    scores = (query * (query.shape[-1] ** -0.5 if scale is None else scale)) @ key.mT
    if is_causal:
        attn_mask = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        attn_mask = torch.zeros(attn_mask.shape, dtype=scores.dtype).masked_fill_(~attn_mask, torch.finfo(scores.dtype).min)
    if attn_mask is not None:
        scores = scores + attn_mask.to(scores.dtype)
    return F.dropout(scores.softmax(-1), dropout_p) @ value
