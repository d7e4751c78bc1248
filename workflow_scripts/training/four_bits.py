"""four_bits: matrices that are rounded to four bits while an adapter is trained on them (QLoRA, Dettmers et al. 2023), by bitsandbytes.

It was written without a GPU to try it on: it is untested. The matrices are kept as they were as well, in the processor's memory: an adapter
that is merged into rounded ones would be rounded itself.
"""

import importlib.util
from collections.abc import Container, Iterable
from typing import Any

from workflow_scripts.errors import InputError


def round_matrices(network: Any, names: Iterable[str], outside: Container[str] = ()) -> None:
    """Round the matrices of these names to four bits, in place, but for modules `outside`; they are on the GPU then.

    Of a network without numbers only is looked at whether it could be done. Raises `InputError` where bitsandbytes or a GPU is missing, and
    for matrices that bitsandbytes cannot round.
    """
    import torch
    from transformers.pytorch_utils import Conv1D

    named = {*names}
    wanted = {name: module for name, module in network.named_modules() if name.split(".")[-1] in named and name not in outside}
    if others := sorted({name.split(".")[-1] for name, module in wanted.items() if isinstance(module, Conv1D)}):
        raise InputError(
            f"adapter: base: 4bit rounds linear layers, and {type(network).__name__} has layers of another kind (Conv1D: "
            f"{', '.join(others)}); leave base out"
        )
    if importlib.util.find_spec("bitsandbytes") is None:
        raise InputError("adapter: base: 4bit needs the package bitsandbytes; install it (pip install bitsandbytes), or leave base out")
    if network.device.type == "meta":
        return
    if not torch.cuda.is_available():
        raise InputError("adapter: base: 4bit needs a GPU, and there is none here; leave base out")
    from bitsandbytes.nn import Linear4bit, Params4bit

    kept = dict[str, Any]()
    for name, module in wanted.items():
        if isinstance(module, torch.nn.Linear):
            rounded = Linear4bit(module.in_features, module.out_features, module.bias is not None, torch.bfloat16, quant_type="nf4")
            rounded.weight = Params4bit(module.weight.detach(), requires_grad=False, quant_type="nf4")
            rounded.bias = module.bias
            network.set_submodule(name, rounded.cuda())
            kept[name] = module
    network.unrounded = kept
    network.is_loaded_in_4bit = True  # by which peft knows them


def is_rounded(network: Any) -> bool:
    """Whether `round_matrices` has rounded a network's matrices."""
    return bool(getattr(network, "is_loaded_in_4bit", False))


def merge_unrounded(network: Any) -> None:
    """Put the matrices back as they were, each with what its adapter adds to it."""
    from peft.utils.other import ModulesToSaveWrapper

    for name, linear in network.unrounded.items():
        added = network.get_submodule(name).get_delta_weight("default")
        linear.weight.data += added.to(linear.weight.device, linear.weight.dtype)
        network.set_submodule(name, linear.to(added.device))
    for name, module in [*network.named_modules()]:
        if isinstance(module, ModulesToSaveWrapper):  # of a head, which was trained whole
            network.set_submodule(name, module.modules_to_save["default"])
    network.unrounded, network.is_loaded_in_4bit = {}, False
