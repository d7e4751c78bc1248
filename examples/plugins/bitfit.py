"""bitfit: only the biases of a model are trained (BitFit), which the library peft does not have.

A plugin that wants one of peft's own methods returns a configuration instead, as `peft.IA3Config(target_modules=[…])`.
"""

from crossgap import InputError, adapter


@adapter("bitfit", label="BitFit", source="Ben Zaken et al. 2022")
def bitfit(network, form):
    """The names of all biases in the layers of encoder and decoder."""
    layers = tuple(f"{place}." for place in form.layers.values())
    names = [name for name, _ in network.named_parameters() if name.endswith(".bias") and any(part in name for part in layers)]
    if not names:  # T5's layers have none
        raise InputError(f"bitfit: {form.label} has no biases; take another adapter, such as lora")
    return names
