"""analyses: what an analysis of models looks into, as the configuration says it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from workflow_scripts import registry
from workflow_scripts.entry_names import Named
from workflow_scripts.evidence.cka import Cka
from workflow_scripts.evidence.layerwise import Layerwise
from workflow_scripts.evidence.separability import Separability
from workflow_scripts.evidence.spectra import Spectra
from workflow_scripts.evidence.states import Side


def ours() -> list[str]:
    """The analyses that do not come from plugins."""
    return [name for name, entry in registry.entries("analysis").items() if not entry.plugin]


def layerwise() -> list[str]:
    """The analyses that are a function of the states of a layer."""
    return [name for name, entry in registry.entries("analysis").items() if entry.make]


@dataclass
class Analysis:
    """What is analysed, and on which text."""

    models: list[str]
    """Backbones by their names, and models of arms as `experiment/arm/seed1/finetune` (or `pretext`)."""
    base: str | None = None
    """One of the models: that which the others were made from, or are compared with."""
    corpus: str | None = None
    """Name of the corpus, or of the text with labels, whose test set is read."""
    testset: str | None = None
    """The test set of the corpus; the first by default. Of text with labels, the first test set in each language is taken."""
    text: dict[str, str] = field(default_factory=dict)
    """Instead of a corpus, language → file with one text a line."""
    languages: list[str] | None = None
    """Languages of the text that are looked at; all by default."""
    parallel: bool = True
    """Whether line i is the same text in all languages. Else languages are not compared, unless `cka.unaligned` says so, and translations
    are not looked for."""
    side: Side = "encoder"
    """The half of encoder-decoders that is analysed."""
    stages: list[Annotated[str, Named("analysis")]] = field(default_factory=ours)
    """What is measured; `spectra` needs no text. Those of plugins are measured where they are named."""
    cka: Cka = field(default_factory=Cka)
    """Similarity of models, and of languages within a model."""
    spectra: Spectra = field(default_factory=Spectra)
    """Singular values of the weights."""
    published: str | None = None
    """A TSV file with published norms and distances of spectra, which the report shows beside its own. Its columns are `model`, `layer`
    (from 0), `matrix`, `norm`, `distance` and `source`."""
    separability: Separability = field(default_factory=Separability)
    """How separable the languages are, and how often translations are found."""
    layerwise: Layerwise = field(default_factory=Layerwise)
    """What the analyses of plugins read."""
