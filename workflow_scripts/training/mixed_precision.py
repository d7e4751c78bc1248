"""mixed_precision: updates in bfloat16 of weights that are kept in float32.

PyTorch's autocast casts each weight and each state where a product needs it, over a thousand copies in an update of a large model, and
keeps normalisations and residuals in float32. Here all weights are copied at once, and whatever is computed with the copies is in bfloat16,
as in Megatron's training: a third fewer kernels, a sixth less time on the GPU and a seventh less memory (docs/performance.md).
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable


@contextmanager
def mixed_precision(network: Any, precision: str) -> Iterator[None]:
    """Context in which `network`, where `precision` is ``bfloat16``, computes in it while it trains.

    Gradients are float32, as the weights are. Only what goes through ``network(…)`` does so: a loss outside of it sees the weights as
    they are.
    """
    if precision != "bfloat16":
        yield
        return
    tensors = _tensors(network)
    learnt = [tensor for tensor in tensors if tensor.requires_grad]
    fixed = {id(tensor): tensor.to(torch.bfloat16) for tensor in tensors if not tensor.requires_grad}
    before, whole = network.__dict__.get("forward"), network.forward

    def forward(*inputs: Any, **named: Any) -> Any:
        if not network.training:
            return whole(*inputs, **named)
        copies = fixed | {id(weight): copy for weight, copy in zip(learnt, _Copies.apply(*learnt), strict=True)}
        with _in_place_of(network, copies):
            return whole(*inputs, **named)

    network.forward = forward
    try:
        yield
    finally:
        del network.forward
        if before is not None:
            network.forward = before


def _tensors(network: nn.Module) -> list[Tensor]:
    """Weights and buffers with fractions, shared ones once. Single numbers stay as they are: they change no other tensor's type."""
    every = (*network.parameters(), *network.buffers())
    return [tensor for tensor in every if tensor.is_floating_point() and tensor.ndim]


@contextmanager
def _in_place_of(network: nn.Module, copies: dict[int, Tensor]) -> Iterator[None]:
    """Have the modules of `network` find the copies, by the id of what was copied, where their weights and buffers are."""
    # the dictionaries that modules look in; what sets attributes would check and register each of a thousand tensors
    held: list[dict[str, Any]] = [tensors for module in network.modules() for tensors in (module._parameters, module._buffers)]
    kept = [(tensors, name, tensor) for tensors in held for name, tensor in tensors.items() if id(tensor) in copies]
    for tensors, name, tensor in kept:
        tensors[name] = copies[id(tensor)]
    try:
        yield
    finally:
        for tensors, name, tensor in kept:
            tensors[name] = tensor


class _Copies(torch.autograd.Function):
    """Copies of weights in bfloat16, whose gradients come back in float32."""

    @staticmethod
    def forward(ctx: Any, *weights: Tensor) -> tuple[Tensor, ...]:
        # a weight that nothing was computed with has no gradient, as without copies
        ctx.set_materialize_grads(False)
        return tuple(_cast(weights, torch.bfloat16))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        cast = iter(_cast([gradient for gradient in gradients if gradient is not None], torch.float32))
        return tuple(None if gradient is None else next(cast) for gradient in gradients)


def _cast(tensors: Sequence[Tensor], dtype: torch.dtype) -> list[Tensor]:
    """Copies in another type, of all tensors by a few kernels."""
    copies = [torch.empty_like(tensor, dtype=dtype) for tensor in tensors]
    torch._foreach_copy_(copies, list(tensors))
    return copies
