"""analysis: what an analysis of models is. The decorator `analysis` registers one, a function of the states of a layer.

::

    @analysis("norm", label="mean norm of states")
    def norm(states):
        return float(np.linalg.norm(states, axis=1).mean())

The function gets the states of the texts in one language (texts × width, float64), a vector a text, and returns a number. It is called for
each model, layer and language of an analysis that names it in `stages` (`layerwise`). The report shows a table and a chart. Our own
analyses, which compare models or languages, are registered by `register_analysis`, and have a rule and a part of the page of their own.
"""

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

from workflow_scripts import plugins, registry
from workflow_scripts.stage import checksums

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
