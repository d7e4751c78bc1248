"""layerwise: the analyses that are a function of the states of a layer (`analysis`): a number for each model, layer and language."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from workflow_scripts import plugins, registry
from workflow_scripts.entry_names import Named
from workflow_scripts.errors import InputError
from workflow_scripts.evidence.analysis import StatesAnalysis, Subject
from workflow_scripts.number_types import Positive, Seed
from workflow_scripts.stage import run, write_json

Measure = Annotated[str, Named("analysis")]


@dataclass
class Layerwise:
    """Settings of the analyses that plugins bring."""

    texts: Positive = 500
    """Maximum number of texts per language."""
    pooling: Literal["mean", "text", "first", "last"] = "mean"
    """How the states of a text become one vector (see `cka.poolings`)."""
    batch_tokens: Positive = 4_096
    """Tokens per forward pass. Affects only time and memory."""
    seed: Seed = 1
    """Seed for choosing the texts and for random numbers of the analyses."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Device for computing; `auto` takes a GPU if there is one."""


def main(output: Path, subject: Subject, *, measure: Measure, settings: Layerwise = Layerwise()) -> None:
    """Write what the analysis `measure` says of the models: a number for each layer.

    Raises `InputError` for an analysis that is no function of states or returns no number, and as `read_texts` and `open_half` do.
    """
    import numpy as np

    from workflow_scripts.evidence.states import longest_of, open_half, read_texts, states_of
    from workflow_scripts.similarity import set_threads

    entry: StatesAnalysis = registry.entry("analysis", measure)
    if entry.make is None:
        raise InputError(f"{measure} is a stage of its own: python -m workflow_scripts.evidence.{measure}")
    if subject.threads:
        set_threads(subject.threads)
    how: dict[str, Any] = {"parallel": subject.parallel, "seed": settings.seed, "labelled": subject.labelled}
    lines = read_texts(subject.texts, subject.languages, settings.texts, 2, **how)
    by_model, longest = {}, longest_of(subject.models)
    for name, path in zip(subject.names, subject.models, strict=True):
        half = open_half(name, path, subject.side, settings.device, subject.documents)
        rows = []
        for number, (side_lines, code) in enumerate(zip(lines, subject.languages, strict=True)):
            states = states_of(half, side_lines, code, longest, settings.pooling, settings.batch_tokens)
            for layer, vectors in enumerate(states.astype(np.float64)):
                given = {"states": vectors, "language": code, "layer": layer}
                given["draw"] = np.random.default_rng([settings.seed, number, layer])
                value = _number(entry, entry.make, given, f"{name}, {code}, layer {layer}")
                rows.append({"language": code, "layer": layer, "value": value})
        by_model[name] = {"family": half.form.label, "layers": half.depth, "width": half.width, "rows": rows}
    write_json(output, {"measure": measure, **subject.about(len(lines[0]), settings), "models": by_model})


def _number(entry: StatesAnalysis, function: Callable[..., float], given: dict[str, Any], where: str) -> float:
    """What the function of an analysis says of the states of one layer."""
    value = plugins.call(f"analysis {entry.name!r}", function, {each: given[each] for each in entry.asked}, lambda: where)
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise InputError(f"analysis {entry.name!r} returned {value!r} ({where}); it returns a number") from None
    if not math.isfinite(number):
        raise InputError(f"analysis {entry.name!r} returned no number but {number} ({where})")
    return number


if __name__ == "__main__":
    run(main)
