"""sharding: a network whose weights are spread over several GPUs, for models that one GPU has no room for (FSDP, Zhao et al. 2023).

Each process keeps a part of every weight, of its gradient and of Adam's moments. A layer's weights are put together when the layer is
reached, on the way forward and back, and let go behind it. What no layer has, embeddings and output layer, is together for a whole pass.

The Trainer learns that such a network needs no wrapping. What it would save of one, or load, is this process's part alone, so whole
weights and moments are gathered here. They have the form that they have without sharding: a checkpoint goes on with any number of GPUs.
"""

import copy
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from torch import Tensor, nn

from workflow_scripts.stage import is_first_process, processes


def shard(network: Any, device: torch.device, precision: str) -> Any:
    """A copy of `network` on the devices of all processes, each of which has a part of every weight; the network itself stays as it is.

    The processes' group is there already. On a GPU layers compute with copies in `precision`, and gradients are added in float32.
    """
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard, register_fsdp_forward_method

    copied = sharing_weights(network)
    lower = device.type == "cuda" and precision == "bfloat16"
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32) if lower else MixedPrecisionPolicy()
    mesh = init_device_mesh(device.type, (processes(),))
    for layer in layers_in(copied):
        fully_shard(layer, mesh=mesh, mp_policy=policy)
    fully_shard(copied, mesh=mesh, mp_policy=policy)
    if hasattr(copied, "generate"):  # which calls an encoder by itself
        register_fsdp_forward_method(copied, "generate")
    copied.is_spread = True
    return copied


def is_sharded(network: Any) -> bool:
    """Whether `shard` has made a network."""
    return getattr(network, "is_spread", False)


def weights_here(network: Any) -> int:
    """How many numbers of a network's weights this process has."""
    from torch.distributed.tensor import DTensor

    parts = (weight.to_local() if isinstance(weight, DTensor) else weight for weight in network.parameters())
    return sum(part.numel() for part in parts)


def sharing_weights(network: Any) -> Any:
    """A copy of a network that holds the same numbers, at the same place in memory."""
    same: dict[int, Any] = {id(weight): nn.Parameter(weight.detach(), weight.requires_grad) for weight in network.parameters()}
    return copy.deepcopy(network, same)


def layers_in(network: nn.Module) -> Iterator[nn.Module]:
    """The layers: what stands in a list of modules and has weights, but for lists inside of a layer."""
    inside: set[nn.Module] = set()
    for listed in network.modules():
        if isinstance(listed, nn.ModuleList) and listed not in inside:
            for layer in listed:
                inside.update(layer.modules())
                if any(True for _ in layer.parameters()):
                    yield layer


# ---------------------------------------------------------------------------------------------
# whole weights


def whole(tensor: Any) -> Any:
    """All of a tensor, of which this process may have a part. All processes take part in it."""
    from torch.distributed.tensor import DTensor

    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def part_like(tensor: Tensor, like: Tensor) -> Tensor:
    """This process's part of a whole `tensor`, where it has a part of what the tensor is `like`. No process waits for another."""
    from torch.distributed.tensor import DTensor, distribute_tensor

    if not isinstance(like, DTensor):
        return tensor
    return distribute_tensor(tensor.to(like.device, like.dtype), like.device_mesh, like.placements, src_data_rank=None)


def whole_weights(network: Any, names: Iterable[str] | None = None) -> dict[str, Tensor]:
    """All weights and buffers that a checkpoint has, or those of some `names`, each once; on the first process alone, but all take part."""
    weights = dict(network.named_parameters())
    wanted = [*names] if names else [*weights, *(name for name, _ in network.named_buffers() if name in network.state_dict())]
    held = network.state_dict()
    gathered = {}
    for name in wanted:
        tensor = whole(held[name].detach())
        if is_first_process():
            gathered[name] = tensor.cpu().contiguous()
    return gathered


@torch.no_grad()
def load_weights(network: Any, file: Path) -> None:
    """Load the whole weights in a file into a network of which each process has a part."""
    held = network.state_dict()
    with safe_open(file, "pt") as stored:
        for name in stored.keys():  # noqa: SIM118  # it is no dictionary
            held[name].copy_(part_like(stored.get_tensor(name), held[name]))


def whole_moments(optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    """An optimiser's state with all of each moment, on the first process alone, but all take part."""
    state = optimizer.state_dict()
    gathered: dict[int, dict[str, Any]] = {}
    for number, of_weight in state["state"].items():
        moments = {name: whole(value) for name, value in of_weight.items()}
        if is_first_process():
            gathered[number] = {name: value.cpu() if isinstance(value, Tensor) else value for name, value in moments.items()}
    return {"state": gathered, "param_groups": state["param_groups"]}


def load_moments(optimizer: torch.optim.Optimizer, state: Mapping[str, Any]) -> None:
    """Load such a state into an optimiser of which each process has a part of each moment."""
    weights = [weight for group in optimizer.param_groups for weight in group["params"]]
    parts = {
        number: {name: part_like(value, weights[number]) if _is_moment(value, weights[number]) else value for name, value in some.items()}
        for number, some in state["state"].items()
    }
    optimizer.load_state_dict({"state": parts, "param_groups": state["param_groups"]})


def _is_moment(value: Any, weight: Tensor) -> bool:
    return isinstance(value, Tensor) and value.shape == weight.shape and value.ndim > 0
