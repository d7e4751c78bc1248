"""mixed_precision: updates in bfloat16 of weights that are kept in float32.

PyTorch's autocast casts each weight and each state where a product needs it: over a thousand copies in an update of a large model. It
keeps normalisations and residuals in float32. On a GPU the weights of a layer are copied all at once here. Whatever is computed with the
copies is in bfloat16, as in Megatron's training; docs/performance.md says what that saves. On a CPU PyTorch sums gradients of
embeddings and normalisations in bfloat16, where a sum of equal numbers stops growing at 256 of them. So autocast is used there, unless
neither is learnt, as with an adapter: then most weights are copied once for all updates. Attention is `attention`'s there.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from workflow_scripts.training.attention import quick_attention
from workflow_scripts.training.sharding import is_sharded


@contextmanager
def mixed_precision(network: Any, precision: str) -> Iterator[None]:
    """Context in which `network`, where `precision` is ``bfloat16``, computes in it while it trains.

    Gradients are float32, as the weights are. Only what goes through ``network(…)`` does so: a loss outside of it sees the weights as
    they are.
    """
    on_gpu = network.device.type == "cuda"
    if precision != "bfloat16" or (on_gpu and is_sharded(network)):  # whose weights are put together in bfloat16
        yield
        return
    # what is computed again on the way back would find the copies gone
    again = getattr(network, "is_activation_checkpointing", False)
    computing = copied_weights if (on_gpu or _learns_matrices_alone(network)) and not again else _autocast
    with quick_attention(network.device), computing(network):
        yield


def _learns_matrices_alone(network: Any) -> bool:
    """Whether all that is learnt are matrices of linear layers, whose gradients are products."""
    inside = {id(module.weight) for module in network.modules() if isinstance(module, nn.Linear)}
    return all(id(weight) in inside for weight in network.parameters() if weight.requires_grad)


@contextmanager
def copied_weights(network: Any) -> Iterator[None]:
    """Context in which `network` computes with copies of its weights in bfloat16 while it trains.

    A layer's copies are made when the layer is reached. So on the way back their gradients are complete before the layers below are, and
    several processes exchange them meanwhile.
    """
    parts = [_Part(modules, tensors) for modules, tensors in _parts(network)]
    whole = network.forward

    def forward(*inputs: Any, **named: Any) -> Any:
        try:
            return whole(*inputs, **named)
        finally:
            for part in parts:
                part.put_back()

    hooks = [module.register_forward_pre_hook(part.copy) for part in parts for module in part.modules]
    try:
        with with_forward(network, forward):
            yield
    finally:
        for hook in hooks:
            hook.remove()
        for part in parts:
            part.put_back()


@contextmanager
def _autocast(network: Any) -> Iterator[None]:
    """Context in which `network` computes by autocast while it trains."""
    whole = network.forward

    def forward(*inputs: Any, **named: Any) -> Any:
        if not network.training:  # a look at the dev set has its own precision
            return whole(*inputs, **named)
        with torch.autocast(network.device.type, torch.bfloat16):
            return whole(*inputs, **named)

    with with_forward(network, forward):
        yield


@contextmanager
def with_forward(network: Any, forward: Callable[..., Any]) -> Iterator[None]:
    """Context in which `network` has this `forward`."""
    before = vars(network).get("forward")
    network.forward = forward
    try:
        yield
    finally:
        del network.forward
        if before is not None:
            network.forward = before


# ---------------------------------------------------------------------------------------------
# copies

Tensors = dict[int, tuple[Tensor, list[tuple[dict[str, Any], str]]]]
"""Weights and buffers by their ids, each with the dictionaries of modules that hold it, and its name there."""


def _parts(network: nn.Module) -> Iterator[tuple[list[nn.Module], Tensors]]:
    """For each layer and for the rest of the network, the modules whose call triggers the copy, and the weights and buffers to copy.

    A layer is a member of a list of modules. It triggers the copy itself, and so do its children, as VECO calls the children alone. What
    several layers share belongs to the rest. Numbers that stand alone are left out: they change no other tensor's type. So
    are the frequencies of rotary positions, which are multiplied by positions in float32.
    """
    layer_of: dict[nn.Module, nn.Module] = {}
    for listed in network.modules():
        for layer in listed if isinstance(listed, nn.ModuleList) else ():
            for module in layer.modules():
                layer_of.setdefault(module, layer)
    tensors: Tensors = {}
    part_of: dict[int, nn.Module] = {}
    for module in network.modules():
        part = layer_of.get(module, network)
        # the dictionaries that modules look in; what sets attributes would check and register each of a thousand tensors
        for held in (module._parameters, module._buffers):
            for name, tensor in held.items():
                if tensor is not None and tensor.is_floating_point() and tensor.ndim and not name.endswith("inv_freq"):
                    tensors.setdefault(id(tensor), (tensor, []))[1].append((held, name))
                    part_of[id(tensor)] = part if part_of.get(id(tensor), part) is part else network
    parts: dict[nn.Module, Tensors] = defaultdict(dict)
    for key, part in part_of.items():
        parts[part][key] = tensors[key]
    for part, some in parts.items():
        yield [part] if part is network else [part, *part.children()], some


class _Part:
    """Tensors that are copied when the first of some modules is called."""

    def __init__(self, modules: list[nn.Module], tensors: Tensors):
        self.modules, self.tensors, self.copied = modules, tensors, False
        self.learnt = [tensor for tensor, _ in tensors.values() if tensor.requires_grad]
        self.fixed: dict[int, Tensor] = {}

    def copy(self, module: nn.Module, _: Any) -> None:
        """Have modules find copies where their weights are, unless they do; a hook of what is called."""
        if module.training and not self.copied:
            self._copy()

    # traced by torch.compile, it would be compiled for each layer anew, as it asks for each weight by its id
    @torch.compiler.disable
    def _copy(self) -> None:
        """Make the copies. What is not learnt is copied once for all updates."""
        if not self.fixed:
            self.fixed = {key: tensor.to(torch.bfloat16) for key, (tensor, _) in self.tensors.items() if not tensor.requires_grad}
        # what is called first may be called without gradients, and then again with them
        with torch.enable_grad():
            copies = _Copies.apply(*self.learnt) if self.learnt else ()
        found = self.fixed | {id(weight): copy for weight, copy in zip(self.learnt, copies, strict=True)}
        for key, (_tensor, places) in self.tensors.items():
            for held, name in places:
                held[name] = found[key]
        self.copied = True

    def put_back(self) -> None:
        """Have modules find their weights again."""
        if not self.copied:
            return
        self.copied = False
        for tensor, places in self.tensors.values():
            for held, name in places:
                held[name] = tensor


class _Copies(torch.autograd.Function):
    """Copies of weights in bfloat16, whose gradients come back in float32; those of weights that nothing was computed with are None."""

    @staticmethod
    def forward(ctx: Any, *weights: Tensor) -> tuple[Tensor, ...]:
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
    if copies:
        torch._foreach_copy_(copies, list(tensors))
    return copies
