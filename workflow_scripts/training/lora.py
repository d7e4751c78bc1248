"""lora: our adapters, low-rank changes of a model's matrices, by the library peft.

LoRA (Hu et al. 2022) adds to a matrix W of n × m weights, which stays as it is, the product B A of two narrow ones, n × r and r × m,
scaled by α / r. DoRA (Liu et al. 2024) learns the length of each row of the sum as well. By default all matrices of attention and
feed-forward have one, as both papers advise. Embeddings and output layer have none, so an adapter of a trimmed model fits the whole one.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from workflow_scripts.errors import InputError
from workflow_scripts.number_types import AboveZero, Positive, ShareBelowOne
from workflow_scripts.training.adapter import adapter, sides
from workflow_scripts.training.four_bits import round_matrices


@dataclass
class LowRank:
    """Settings of LoRA and DoRA."""

    rank: Positive = 16
    """Rank r: inner width of the two matrices."""
    alpha: AboveZero = 32.0
    """Scale of the adapter: the product of both matrices is multiplied by alpha / rank."""
    dropout: ShareBelowOne = 0.0
    """Dropout of the adapter's input, in addition to the phase's dropout."""
    targets: list[str] | None = None
    """Names of the matrices with an adapter, such as `q_proj`. By default all of attention and feed-forward. The experts of a mixture get
    none, because transformers keeps the matrices of all of them in one."""
    base: Literal["float32", "4bit"] = "float32"
    """`4bit` rounds these matrices to four bits during training (QLoRA, Dettmers et al. 2023). It is untested, and needs a GPU with
    bitsandbytes. The phase hands on the unrounded matrices with the adapter merged."""


@adapter("lora", label="LoRA", source="Hu et al. 2022", settings=LowRank)
def lora(network: Any, form: Any, settings: LowRank) -> Any:
    """peft's configuration of LoRA."""
    return low_rank(network, form, settings, dora=False)


@adapter("dora", label="DoRA", source="Liu et al. 2024", settings=LowRank)
def dora(network: Any, form: Any, settings: LowRank) -> Any:
    """peft's configuration of DoRA."""
    return low_rank(network, form, settings, dora=True)


_SCANNING = {"mamba", "mamba2", "falcon_mamba", "falcon_h1", "nemotron_h"}
_READ_BY_KERNELS = {"out_proj", "x_proj", "dt_proj"}
"""Matrices of these models that kernels on a GPU read themselves, past an adapter. peft refuses only the first of them."""


def low_rank(network: Any, form: Any, settings: LowRank, *, dora: bool) -> Any:
    """peft's configuration; raises `InputError` for a matrix that is not there, and a rank that is larger than a matrix."""
    from peft import LoraConfig

    there = matrices(network, form)
    if network.config.model_type in _SCANNING:
        there = {name: size for name, size in there.items() if name not in _READ_BY_KERNELS}
        if past := _READ_BY_KERNELS & {*(settings.targets or ())}:
            raise InputError(
                f"adapter: targets: kernels on a GPU would read {form.label}'s {min(past)} past an adapter; name others: {', '.join(there)}"
            )
    experts = experts_in(network, form)
    if experts and settings.targets is None:
        print(f"note: adapter: the experts of {form.label} ({', '.join(experts)}) get no adapter, but {', '.join(there)} do", flush=True)
    if lost := [name for name in settings.targets or () if name in experts]:
        raise InputError(f"adapter: targets: {lost[0]} are {form.label}'s experts, which get no adapter; name others: {', '.join(there)}")
    if lost := [name for name in settings.targets or () if name not in there]:
        raise InputError(f"adapter: targets: {form.label} has no matrix {lost[0]!r} in its layers; it has {', '.join(there)}")
    chosen = {name: there[name] for name in settings.targets or there}
    if not chosen:
        raise InputError(f"adapter: targets: names no matrix; {form.label} has {', '.join(there)}")
    narrow = min(chosen, key=lambda name: min(chosen[name]))
    if settings.rank > (most := min(chosen[narrow])):
        sizes = ", ".join(f"{name} {' × '.join(map(str, size))}" for name, size in chosen.items())
        raise InputError(f"adapter: rank: {settings.rank} is more than the {most} that the matrices have ({sizes}); lower it to {most}")
    if settings.base == "4bit":
        if dora:
            raise InputError("adapter: base: 4bit is for lora; leave it out for dora")
        round_matrices(network, chosen, outside(network, form, chosen))
    return LoraConfig(
        r=settings.rank,
        lora_alpha=settings.alpha,  # type: ignore[arg-type]  # peft divides it, so it may be any number
        lora_dropout=settings.dropout,
        target_modules=[*chosen],
        # heads have layers of the same names
        exclude_modules=outside(network, form, chosen),
        use_dora=dora,
    )


def _layers(network: Any, form: Any) -> list[Any]:
    """The layers of a network, of its encoder and of its decoder if it has both."""
    from workflow_scripts.models.networks import layers_of

    return [layers_of(network.base_model, form, side) for side in sides(network, form)]


def matrices(network: Any, form: Any) -> dict[str, tuple[int, int]]:
    """The names of the linear layers inside of a network's layers → the size of their weights, the least where sizes differ."""
    from torch.nn import Linear
    from transformers.pytorch_utils import Conv1D

    found = dict[str, tuple[int, int]]()
    for layers in _layers(network, form):
        for name, module in layers.named_modules():
            if isinstance(module, Linear | Conv1D):
                last = name.split(".")[-1]
                size = (module.weight.shape[0], module.weight.shape[1])
                found[last] = min(found.get(last, size), size, key=min)
    return found


def experts_in(network: Any, form: Any) -> list[str]:
    """The names of parameters with the matrices of all experts of a mixture (experts × rows × columns)."""
    named = (each for layers in _layers(network, form) for each in layers.named_parameters())
    return [*dict.fromkeys(name.split(".")[-1] for name, weight in named if weight.dim() == 3 and "expert" in name)]


def outside(network: Any, form: Any, names: Iterable[str]) -> list[str]:
    """The modules of a network that have these names and are in none of its layers."""
    inside = {id(module) for layers in _layers(network, form) for module in layers.modules()}
    return [name for name, module in network.named_modules() if name.split(".")[-1] in {*names} and id(module) not in inside]
