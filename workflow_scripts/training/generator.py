"""generator: what a generator is: how a model writes text, and how it learns that. The decorator `generator` registers one.

::

    @generator("tuned", label="output layer alone", decoder=True)
    def tuned(settings):
        from crossgap import Method  # which loads PyTorch

        return Method(load=with_frozen_layers)

The function gets the settings of the phase, and returns how a phase is trained (`Method`). The model then writes by the engine of
decoding; one that cannot brings a context manager of its own, `write`. The entries of ours are in `writing`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workflow_scripts import registry

if TYPE_CHECKING:
    from workflow_scripts.evidence.speed import Speed
    from workflow_scripts.models.decoding import Decoding, Translate
    from workflow_scripts.models.tokenisation import Codec
    from workflow_scripts.training.method import Method

AUTOREGRESSIVE = "autoregressive"
"""The generator of phases that name none."""


@dataclass(frozen=True, kw_only=True)
class Generator(registry.Entry):
    """An entry of the kind `generator`."""

    learn: Callable[[Any], Method] | None = None
    """Settings → how a phase is trained; None where that is as usual."""
    write: Callable[[Path, Codec, Decoding, Path | None, int], AbstractContextManager[Translate]] | None = None
    """Folder of the trained model, codec, settings of decoding, a file of prompts if one is given, and a seed → what translates, as a
    context; None where the engine of decoding writes."""
    decoder: bool = True
    """Whether the model needs a decoder; else an encoder alone learns to write, which no phase before it may restore text with."""
    at_once: bool = False
    """Whether all of a text is written at once, instead of piece by piece."""
    frozen: bool = False
    """Whether the pretrained weights stay as they are, so that random ones make no sense."""
    key: str = "generator_settings"
    """The key, in a phase and in an experiment, of its settings."""
    effective: Callable[[Any], Any] = lambda settings: settings
    """Settings → those that hold for it."""
    longest_source: Callable[[Any, int], int] | None = None
    """Settings and a model's positions → the longest source that a phase can learn from; None where it is one of all positions."""
    file: str = ""
    """A file in the folder of a trained model that tells that this wrote it; without one, training writes `decoding.MARK`."""
    description: Callable[[dict[str, Any]], list[str]] | None = None
    """What `training.json` says → what the report says of how a phase writes; None where the label will do."""
    ways: Callable[[Path, Speed], Iterator[tuple[str, dict[str, Any]]]] | None = None
    """A trained model and the settings of `speed` → the ways of writing that are measured, by what differs in decoding; None for one."""


def register_generator(name: str, *, label: str = "", **about: Any) -> None:
    """Register a generator; `about` are the fields of `Generator`."""
    registry.register("generator", Generator(name=name, label=label or name, **about))


def generator(name: str, **about: Any) -> Callable[[Callable], Callable]:
    """Register the function that is decorated, `Generator.learn`, as a generator; `about` are its other fields."""

    def registered(learn: Callable) -> Callable:
        register_generator(name, learn=learn, **about)
        return learn

    return registered
