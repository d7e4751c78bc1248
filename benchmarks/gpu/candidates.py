"""What may make an update faster and is not part of training, as no GPU has shown that it does: variants for the benchmark."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn


@contextmanager
def joined_products(network: nn.Module) -> Iterator[int]:
    """Context in which the linear layers of an attention that read the same states share one product; it gives how many products fewer.

    These are those of queries, keys and values, or of keys and values in a cross-attention. Their weights stay apart, and are put together
    in each update.
    """
    saved, changed = 0, []
    for attention in network.modules():
        layers = [getattr(attention, name, None) for name in ("q_proj", "k_proj", "v_proj")]
        if all(type(layer) is nn.Linear and layer.bias is not None for layer in layers):
            cross = not getattr(attention, "is_causal", False) and getattr(attention, "is_decoder", False)
            group = _Group(layers[1:] if cross else layers)
            saved += len(group.layers) - 1
            changed += group.layers
            for layer in group.layers:
                layer.forward = partial(group.result, layer)
    try:
        yield saved
    finally:
        for layer in changed:
            del layer.forward


class _Group:
    """Linear layers whose outputs for the same states are made at once, when the first of them is asked."""

    def __init__(self, layers: list[Any]):
        self.layers = layers
        self.read: Tensor | None = None
        self.made: dict[Any, Tensor] = {}

    def result(self, layer: Any, states: Tensor) -> Tensor:
        """What a layer makes of some states."""
        if self.read is not states or layer not in self.made:
            weight, bias = (torch.cat([getattr(each, name) for each in self.layers]) for name in ("weight", "bias"))
            sizes = [each.out_features for each in self.layers]
            self.read, self.made = states, dict(zip(self.layers, F.linear(states, weight, bias).split(sizes, dim=-1), strict=True))
        found = self.made.pop(layer)
        if not self.made:
            self.read = None
        return found
