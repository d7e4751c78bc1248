"""uses: what a run uses of all that its configuration names: data, text, backbones and files."""

import os
from collections.abc import Iterator
from typing import Any

from workflow_scripts.config.configuration import Config
from workflow_scripts.run.analyses import sources_read
from workflow_scripts.stage import resource
from workflow_scripts.tasks.plan import Plans
from workflow_scripts.tasks.translation import translations
from workflow_scripts.text import labelled as labels
from workflow_scripts.text.acquisition import suffix
from workflow_scripts.text.aligned import Aligned
from workflow_scripts.text.corpus import Corpus
from workflow_scripts.text.labelled import Labelled


def data_file(config: Config, name: str) -> str:
    """Where acquired data are."""
    return f"results/data/{name}{suffix(config.data[name])}"


def data_used(plans: Plans) -> list[str]:
    """Names of the data that the run reads, including those that other data are joined from."""
    read, data = {path for _, path in paths_used(plans)}, plans.config.data
    used = [name for name in data if data_file(plans.config, name) in read]
    return list(dict.fromkeys([*used, *(other for name in used for other in data[name].join)]))


def bitext_used(plans: Plans) -> list[str]:
    """Names of the corpora that the run's backbones are pretrained on."""
    blocks = [backbone.settings.pretraining for backbone in plans.backbones_used]
    return list(dict.fromkeys(corpus for block in blocks if block for corpus in block.bitext))


def sources_of(text: Corpus | Labelled | Aligned) -> dict[str, Any]:
    """Where the parts of a corpus, of labelled text or of text for retrieval come from."""
    if isinstance(text, Corpus):
        return {"train": text.train, "dev": text.dev, **{f"test.{name}": source for name, source in text.test.items()}}
    parts = labels.sources(text) if isinstance(text, Labelled) else text.parts()
    return {part.replace("/", "."): source for part, source in parts.items()}


def paths_of(plans: Plans) -> Iterator[tuple[str, str]]:
    """Every file that the configuration names, and where."""
    config = plans.config
    for section in ("corpora", "labelled", "aligned"):
        for name, text in getattr(config, section).items():
            for part, source in sources_of(text).items():
                yield from ((f"{section}.{name}.{part}", path) for path in source.paths())
    for name, lexicon in config.lexicons.items():
        for kind in ("vectors", "dictionary", "gold"):
            yield from ((f"lexicons.{name}.{kind}", path) for path in getattr(lexicon, kind).values())
    for plan in translations(plans):
        yield from ((f"{plan.where}.representation.text", path) for path in plan.settings.representation.text.values())
    for backbone in plans.backbones.values():
        if block := backbone.settings.pretraining:
            yield from ((f"{backbone.where_made}.text", path) for path in block.text.values())
            if block.ready:
                yield f"{backbone.where_made}.ready", f"{block.ready}/ready.json"
    for name, analysis in config.analyses.items():
        yield from ((f"analyses.{name}.text", path) for path in analysis.text.values())
        if analysis.published:
            yield f"analyses.{name}.published", analysis.published


def paths_used(plans: Plans) -> Iterator[tuple[str, str]]:
    """Every file that the configuration names and the run reads, and where it is named."""
    config = plans.config
    lexicons = {name for plan in plans.needed for name in plan.lexicons}
    texts = {corpus for plan in plans.needed for corpus in plan.corpora_learnt}
    texts |= {*bitext_used(plans), *(corpus for name in lexicons if (corpus := config.lexicons[name].corpus))}
    read = {
        **dict.fromkeys(("corpora", "labelled", "aligned"), texts),
        "lexicons": lexicons,
        "experiments": {*config.run.experiments},
        "backbones": {backbone.name for backbone in plans.backbones_used},
        "analyses": {*config.run.analyses},
    }
    analysed = sources_read(config)
    for where, path in paths_of(plans):
        section, name = where.split(".")[:2]
        if name in read[section] or where in analysed:
            yield where, path


def missing_files(plans: Plans) -> list[tuple[str, str]]:
    """Each file that the run reads, nothing makes, and is not there: where the configuration names it, and its path."""
    return [
        (where, path)
        for where, path in paths_used(plans)
        if path != "task" and not path.startswith("results/") and not os.path.exists(resource(path))
    ]
