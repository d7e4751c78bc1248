"""layerwise: a number for the states of each layer, by a function of a plugin. The decorator `analysis` registers one.

::

    @analysis("norm", label="mean norm of states")
    def norm(states):
        return float(np.linalg.norm(states, axis=1).mean())

The function gets the states of the texts in one language (texts × width, float64), a vector a text, and returns a number. It is called for
each model, layer and language of an analysis that names it in `stages`. The report shows a table and a chart. Our own analyses, which
compare models or languages, are registered by `register_analysis`, and have a rule and a part of the page of their own.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from workflow_scripts import plugins, registry
from workflow_scripts.entry_names import Named
from workflow_scripts.errors import InputError
from workflow_scripts.number_types import Positive, Seed
from workflow_scripts.stage import checksums, run, write_json

PARAMETERS = {
    "states": "the states of one layer, a vector a text (texts × width)",
    "language": "the code of the texts' language",
    "layer": "the number of the layer; 0 are the embeddings",
    "draw": "a NumPy generator, the same in every run",
}
"""What the function of an analysis may ask for, by the name of its parameter."""


class Compared(NamedTuple):
    """What an analysis of the run compares, for its checks."""

    where: str
    """The key of the analysis in the configuration."""
    settings: Any
    """What is looked into: `config.analyses.Analysis`."""
    sizes: dict[str, Any]
    """The size (`training.small.Small`) of each of its models that is made in the run; of others it is known when they are loaded."""
    languages: list[str] | None
    """The languages of its text; None where it has none, or one that is wrong."""

    def against(self) -> list[str]:
        """The models that all others are compared with."""
        return self.settings.cka.against or ([self.settings.base] if self.settings.base else [])


class Subject(NamedTuple):
    """What the command of an analysis looks into: models, and texts in some languages."""

    models: tuple[Path, ...]
    """The folders of the models."""
    names: tuple[str, ...]
    """What the models are called, in their order."""
    texts: tuple[Path, ...]
    """A file for each language."""
    languages: tuple[str, ...]
    """The languages of the texts, in their order."""
    side: Literal["encoder", "decoder"] = "encoder"
    """Which half of a model with both is looked into."""
    parallel: bool = False
    """Whether line i is the same text in all languages."""
    labelled: bool = False
    """Whether the files are tables of examples, each of which is a text."""
    documents: bool = False
    """Whether `</s>` stands between the sentences of a text."""
    threads: int = 0
    """CPU threads; 0 leaves the choice to torch."""

    def about(self, texts: int, settings: Any) -> dict[str, Any]:
        """What the report says of it: how many texts of each language were read, and with which settings."""
        from workflow_scripts.device import pick_device

        return {
            "texts": texts,
            "languages": self.languages,
            "side": self.side,
            "parallel": self.parallel,
            "text": [str(path) for path in self.texts],
            "checksums": checksums(self.texts),
            "device": str(pick_device(settings.device)),
            "settings": asdict(settings),
        }


@dataclass(frozen=True, kw_only=True)
class StatesAnalysis(registry.Entry):
    """An entry of the kind `analysis`."""

    make: Callable[..., float] | None = None
    """The function of the states of a layer; None of ours, which are stages of their own."""
    asked: tuple[str, ...] = ()
    """What the function asks for."""
    reads_text: bool = True
    """Whether it reads text; else it looks at weights alone."""
    base: bool = False
    """Whether it compares models with the base."""
    decimals: int = 2
    """How many decimals tables show."""
    problems: Callable[[Compared], Iterator[str]] | None = None
    """What is wrong with the analysis and types cannot tell."""
    lowers_memory: str = "texts"
    """Which of its settings a job that lacked memory is to have lower; empty if none helps."""
    view: str = "layers"
    """How the report shows it: a key of `VIEWS` in `report.model_analyses`."""


def register_analysis(name: str, *, label: str, **about: Any) -> None:
    """Register an analysis; `about` are the fields of `StatesAnalysis`."""
    registry.register("analysis", StatesAnalysis(name=name, label=label, **about))


def analysis(name: str, *, label: str, decimals: int = 2, source: str = "") -> Callable[[Callable], Callable]:
    """Register the function that is decorated as an analysis; see the module."""

    def registered(function: Callable) -> Callable:
        asked = plugins.asked(f"analysis {name!r}", "an analysis", function, PARAMETERS)
        register_analysis(name, label=label, make=function, asked=asked, decimals=decimals, source=source)
        return function

    return registered


# ---------------------------------------------------------------------------------------------
# the stage


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
