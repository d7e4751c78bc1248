"""method: how a phase's network is loaded and trained, where that is not as in most phases: by an objective, or by a generator."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from workflow_scripts import plugins, registry
from workflow_scripts.training.loop import load_model, train
from workflow_scripts.training.rows import Rounds


class Method(NamedTuple):
    """How a phase's network is loaded and trained."""

    load: Callable[..., Any] = load_model
    """Folder, settings, seed, and whether from random weights → the network."""
    train: Callable[..., list[dict]] = train
    """As `loop.train`."""
    open: Callable[..., tuple[Any, Rounds]] | None = None
    """In place of `load`, for a network that depends on the rows: folder, codec, rows, settings, seed, and whether from random weights →
    the network, and the rows that it can learn from."""
    about: Mapping[str, Any] = MappingProxyType({})
    """What decides, beside the settings, which checkpoints are the phase's own; the report has it as well."""
    mark: Mapping[str, str] = MappingProxyType({})
    """Of a generator whose weights do not tell: what the folder of the model says of it, as `decoding.MARK`."""


def of_plugin(entry: registry.Entry, method: Method, settings: Mapping[str, Any]) -> Method:
    """The method of an objective; of a plugin's with its checksum, its `settings`, and the checksums of the files that these name.

    So what other settings, or another version, have trained is not gone on from.
    """
    if not entry.plugin:
        return method
    given = {"objective_settings": {**settings}} if settings else {}
    return method._replace(about={**method.about, **given, **plugins.trained_by("objective", entry, settings)})
