"""adapter_findings: whether adapters fit the models that they are to be trained on, and how many weights they train.

A network is built without numbers, from the sizes in a model's ``config.json`` or in the configuration, and gets the adapter.
"""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from workflow_scripts import registry
from workflow_scripts.models.family import DEFAULT_FAMILY
from workflow_scripts.models.recognition import family_of, network_config
from workflow_scripts.run.findings import Finding, judged
from workflow_scripts.run.model_findings import folder_of
from workflow_scripts.stage import InputError
from workflow_scripts.tasks.experiment import Trained
from workflow_scripts.tasks.plan import BackbonePlan

if TYPE_CHECKING:
    from workflow_scripts.training.adapter import Adapted


def adapters(phases: Iterable[Trained]) -> Iterator[Finding]:
    """Whether each adapter of the phases fits its backbone, each combination once."""
    seen: list[tuple[Any, ...]] = []
    for phase in phases:
        combined = phase.adapter, phase.backbone, phase.head, phase.labels
        if phase.adapter and combined not in seen:
            seen.append(combined)
            yield judged(f"{phase.where}.adapter", _fits, phase)


def _fits(phase: Trained) -> str:
    kind, name = (phase.adapter or {})["kind"], phase.backbone.name
    trained = trained_weights(phase)
    if trained is None:
        return f"{kind}; whether it fits {name} is known when that model is there"
    return f"{kind} trains {trained:,} weights of {name}{', with the head' if phase.head else ''}"


def trained_weights(phase: Trained) -> int | None:
    """How many weights the adapter of a phase trains; None without an adapter, and where the model is not there to be looked at.

    Raises `InputError` as `training.adapter.adapt` does.
    """
    adapted = _adapted(phase)
    return adapted.trained if adapted else None


def rounded_weights(phase: Trained) -> int | None:
    """How many weights of a phase are rounded to four bits: those of the matrices that LoRA changes, where its `base` is 4bit.

    None where nothing is rounded, and where the model is not there to be looked at. Raises `InputError` as `training.adapter.adapt` does.
    """
    chosen = phase.adapter or {}
    adapted = _adapted(phase) if chosen.get("base") == "4bit" else None
    if adapted is None:
        return None
    from peft.tuners.tuners_utils import BaseTunerLayer  # peft takes seconds to import

    changed: list[Any] = [module for module in adapted.network.modules() if isinstance(module, BaseTunerLayer)]
    return sum(module.get_base_layer().weight.numel() for module in changed)


def _adapted(phase: Trained) -> "Adapted | None":
    """The network of a phase without numbers, with its adapter; None without an adapter, and where the model is not there."""
    from workflow_scripts.training.adapter import adapt

    network = network_of(phase.backbone) if phase.adapter else None
    if network is not None and phase.head:
        network = _with_head(network.config, phase)
    return adapt(network, phase.adapter or {}, 1, phase.head) if network is not None else None


def _with_head(config: Any, phase: Trained) -> Any:
    """The network of a phase that finetunes a head, without numbers."""
    import torch

    from workflow_scripts.models.networks import check_head, class_of, new_network
    from workflow_scripts.tasks.head_model import head_of

    form = family_of(config)
    head, changes = head_of(form, phase.head, phase.head_settings)
    check_head(phase.backbone.name, form, head)
    config.update(changes | ({"num_labels": phase.labels} if phase.labels else {}))
    with torch.device("meta"):
        return new_network(class_of(form, head), config)


def network_of(backbone: BackbonePlan) -> Any | None:
    """The network of a backbone without numbers; None where its files are not there, and where a conversion has made another one of it."""
    import torch

    from workflow_scripts.models.networks import class_of, new_network

    if any(link.settings.kind == "converted" for link in backbone.chain):
        return None
    origin = backbone.origin
    try:
        with torch.device("meta"):
            if (small := origin.made_here) and (maker := registry.entry("family", origin.family or DEFAULT_FAMILY).maker):
                return maker.network(small, small.vocabulary)
            if folder := folder_of(origin):
                return new_network(class_of(family_of(folder), "text"), network_config(folder))
    except InputError:
        pass  # preflight says elsewhere what is wrong with the model
    return None
