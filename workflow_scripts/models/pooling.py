"""pooling: one state of each row, for heads that read a text by it. Rows are padded on the right."""

import torch


def last_state(states: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
    """The state of the last piece (rows × width) of each row of `states` (rows × length × width)."""
    last = attention_mask.sum(dim=1) - 1
    return states[torch.arange(len(states), device=states.device), last]


def mean_state(states: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
    """The mean state (rows × width) of each row's pieces."""
    kept = attention_mask[..., None].float()  # bfloat16 counts to 256
    return ((states * kept).sum(dim=1) / kept.sum(dim=1)).to(states.dtype)
