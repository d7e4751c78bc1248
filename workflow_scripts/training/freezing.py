"""freezing: a decoder learns to write from an encoder that stays as it is, as an adapter.

All weights are trained but those of the encoder, its embeddings included. A model whose halves and output layer share their embeddings
keeps these in all three places. So what the encoder says of a text is what it said before, and whatever read it still can.
"""

from typing import Any

from workflow_scripts.errors import InputError
from workflow_scripts.training.adapter import adapter, sides


@adapter("decoder", label="the decoder alone")
def decoder(network: Any, form: Any) -> list[str]:
    """The names of all weights that are not the encoder's. Raises `InputError` for a model without a decoder."""
    if "decoder" not in sides(network, form):
        raise InputError(f"adapter: decoder: {form.label} has no decoder to train; take another adapter, or a model that has one")
    kept = {id(weight) for weight in network.get_encoder().parameters()}
    return [name for name, weight in network.named_parameters() if id(weight) not in kept]
