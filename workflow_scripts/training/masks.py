"""masks: attention masks that are made without a question about their contents.

transformers asks each mask whether anything is masked, since attention without a mask is faster. On a GPU the processor waits for each
answer until all that it has started is done, three times in an update of a model with a decoder. Where rows are made into a batch, the
processor knows the answer. So a batch without padding comes without a mask here, and a mask that is there is taken to mask something. A
head may need the mask itself: such a batch says whether it is `padded`. transformers asks of a decoder without a mask whether positions
begin anew in a row. They never do here: packed rows bring a mask of their own.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor
from transformers import masking_utils
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


def with_padding_known(batch: dict[str, Any]) -> dict[str, Any]:
    """A batch that keeps its mask, with whether the mask hides anything (`padded`)."""
    return {**batch, "padded": not bool(batch["attention_mask"].numpy().all())}


@contextmanager
def known_masks(network: Any) -> Iterator[None]:
    """Context in which `network`, while it trains, makes its masks without questions. Rows are padded at their end, if at all.

    Of a batch that says whether it is `padded` the masks are those that transformers makes when it has asked.
    """
    whole, restarts = network.forward, masking_utils.find_packed_sequence_indices

    def forward(*inputs: Any, padded: bool | None = None, **named: Any) -> Any:
        if not network.training:  # generation pads elsewhere, and goes on from what it has read
            return whole(*inputs, **named)
        ALL_MASK_ATTENTION_FUNCTIONS[ATTENTION] = known_mask if padded is None else partial(mask_where_padded, padded)
        masking_utils.find_packed_sequence_indices = _never_restart
        try:
            return whole(*inputs, **named)
        finally:
            del ALL_MASK_ATTENTION_FUNCTIONS[ATTENTION]
            masking_utils.find_packed_sequence_indices = restarts

    with with_forward(network, forward):
        yield


def _never_restart(position_ids: Tensor) -> Tensor | None:
    """Where positions begin anew in a row: nowhere."""
    return None


def mask_where_padded(padded: bool, **given: Any) -> Tensor | None:
    """What transformers' `sdpa_mask` makes of a mask that hides something (`padded`), or of one that hides nothing."""
    changed: dict[str, Any] = {"allow_is_causal_skip": False, "allow_is_bidirectional_skip": False} if padded else {"attention_mask": None}
    return sdpa_mask(**{**given, **changed})


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
