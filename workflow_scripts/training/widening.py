"""widening: an adapter beside each feed-forward module, which is handed on as a wider module.

A bottleneck adapter (Houlsby et al. 2019) is a narrow feed-forward module, x → W₂ f(W₁ x), of `width` units. Bapna and Firat (2019) put
one behind each layer. Here it stands *beside* the feed-forward module and is added to what that writes (He et al. 2022, parallel adapter).
The two together are a feed-forward module with `width` units more. So a model with these adapters is one of its family with another
setting, and whatever reads the family reads it. An adapter behind each layer would have no place in any family.

The function f is the model's own. W₁ is drawn at random and W₂ begins as zero, so that training begins with the model as it was.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from workflow_scripts.errors import InputError
from workflow_scripts.number_types import Positive
from workflow_scripts.training.adapter import Added, adapter, sides


@dataclass
class Beside:
    """Settings of the bottleneck adapter."""

    width: Positive = 64
    """Number of units in each adapter. It has 2 × `width` × the model's width weights."""


@adapter("bottleneck", label="bottleneck adapter beside each feed-forward module", source="He et al. 2022, section 3.3", settings=Beside)
def bottleneck(network: Any, form: Any, settings: Beside) -> Added:
    """The adapters, which it puts into the network. Raises `InputError` for a family that has no setting for the width of the modules."""
    from workflow_scripts.models.widened import MoreInputs, MoreOutputs

    keys = [key for key in (form.size["feed_forward"], "decoder_ffn_dim") if key and hasattr(network.config, key)]
    if not (keys and form.matrices):
        raise InputError(f"adapter: bottleneck: {form.label} has no setting for the width of its feed-forward modules; take lora")
    layers = [*_layers(network, form)]
    for holder, name, kind in layers:
        widened = MoreOutputs if kind == "first" else MoreInputs
        setattr(holder, name, widened(getattr(holder, name), settings.width))

    def merge() -> None:
        for holder, name, _ in layers:
            setattr(holder, name, getattr(holder, name).as_one())
        for key in keys:
            setattr(network.config, key, getattr(network.config, key) + settings.width)

    return Added([name for name, _ in network.named_parameters() if ".beside." in name], merge)


def _layers(network: Any, form: Any) -> Iterator[tuple[Any, str, str]]:
    """The linear layers of all feed-forward modules: what holds each, its name there, and whether it is a `first` one or the `last`.

    A module with a gate has two first ones, of one size.
    """
    from torch.nn import Linear

    from workflow_scripts.models.networks import layers_of, places_of_matrices

    for side in sides(network, form):
        for layer in layers_of(network.base_model, form, side):
            places = places_of_matrices(layer, form, side)
            where, _, name = places["FC1"].rpartition(".")
            holder, last = layer.get_submodule(where), layer.get_submodule(places["FC2"])
            size = getattr(holder, name).weight.shape
            for each, child in [*holder.named_children()]:
                # where a module is as wide as the model, its last layer has this size as well
                if isinstance(child, Linear) and child is not last and child.weight.shape == size:
                    yield holder, each, "first"
            where, _, name = places["FC2"].rpartition(".")
            yield layer.get_submodule(where), name, "last"
