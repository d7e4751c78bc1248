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
    """An analysis: the models, the text, and what is measured."""

    models: list[str]
    """Names of backbones, or models of arms as `experiment/arm/seed1/finetune` (or `pretext`)."""
    base: str | None = None
    """The model among `models` that the others are compared with, usually the one that they were made from."""
    corpus: str | None = None
    """Name of a corpus, or of text with labels. Its test set is read."""
    testset: str | None = None
    """Test set of the corpus; by default the first. Text with labels gives the first test set in each language."""
    text: dict[str, str] = field(default_factory=dict)
    """Language → file with one text per line, instead of a corpus."""
    languages: list[str] | None = None
    """Languages of the text to analyse; by default all."""
    parallel: bool = True
    """Whether line i is the same text in all languages. If false, translations are not searched, and languages are compared only with
    `cka.unaligned`."""
    side: Side = "encoder"
    """Which half of an encoder-decoder is analysed."""
    stages: list[Annotated[str, Named("analysis")]] = field(default_factory=ours)
    """What is measured. `spectra` needs no text. Analyses of plugins run only if they are named here."""
    cka: Cka = field(default_factory=Cka)
    """Centred kernel alignment: similarity of models, and of languages within a model."""
    spectra: Spectra = field(default_factory=Spectra)
    """Singular values of the weights."""
    published: str | None = None
    """TSV file with published norms and distances of spectra, which the report shows beside the measured ones. Columns: `model`, `layer`
    (from 0), `matrix`, `norm`, `distance`, `source`."""
    separability: Separability = field(default_factory=Separability)
    """How well a probe separates the languages, and how often translations are found."""
    layerwise: Layerwise = field(default_factory=Layerwise)
    """Settings of the text that analyses of plugins read."""
