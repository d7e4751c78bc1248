"""masks: attention masks that are made without a question about their contents.

transformers asks each mask whether anything is masked, since attention without a mask is faster. On a GPU the processor waits for each
answer until all that it has started is done, three times in an update of a model with a decoder. Where rows are made into a batch, the
processor knows the answer. So a batch without padding comes without a mask here, and a mask that is there is taken to mask something.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS, bidirectional_mask_function, causal_mask_function, sdpa_mask

from workflow_scripts.training.mixed_precision import with_forward

ATTENTION = "sdpa"
"""transformers' name of the attention whose masks are made here; others make their own."""


def without_questions(batch: dict[str, Tensor], select: bool, causal: bool = False) -> dict[str, Tensor]:
    """A batch of `collate`, or of `collate_packed`, with what the processor knows of it.

    Where nothing is padded there is no mask, and none where each piece sees those before it alone (`causal`), as rows are padded at their
    end. With `select`, `labels` (1 × labels) are those that are there, in their order, and `places`
    says where they are among all cells of the batch; without it they stay as they are.
    """
    known = dict(batch)
    if "attention_mask" in known and (causal or known["attention_mask"].numpy().all()):
        del known["attention_mask"]
    if select:
        labels = known["labels"].flatten()
        places = torch.from_numpy((labels.numpy() != -100).nonzero()[0])
        known |= {"labels": labels[places][None], "places": places}
    return known


@contextmanager
def known_masks(network: Any) -> Iterator[None]:
    """Context in which `network`, while it trains, makes its masks without questions. Rows are padded at their end, if at all."""
    whole = network.forward

    def forward(*inputs: Any, **named: Any) -> Any:
        if not network.training:  # generation pads elsewhere, and goes on from what it has read
            return whole(*inputs, **named)
        ALL_MASK_ATTENTION_FUNCTIONS[ATTENTION] = known_mask
        try:
            return whole(*inputs, **named)
        finally:
            del ALL_MASK_ATTENTION_FUNCTIONS[ATTENTION]

    with with_forward(network, forward):
        yield


def known_mask(**given: Any) -> Tensor | None:
    """What transformers' `sdpa_mask` makes for rows that are padded at their end, if a mask that is given masks something.

    No piece sees what is behind it in a causal mask, and so no padding. All other rows have one mask for all of their pieces
    (rows × 1 × 1 × length).
    """
    function, mask = given["mask_function"], given.get("attention_mask")
    if function is causal_mask_function and given.get("allow_is_causal_skip", True) and given["q_length"] == given["kv_length"]:
        return None
    if function is bidirectional_mask_function and given.get("allow_is_bidirectional_skip") and mask is not None:
        return mask.bool()[:, None, None, :]
    return sdpa_mask(**given)
