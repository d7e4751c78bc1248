"""uses: what a run uses of all that its configuration names: data, text, backbones and files."""

import os
from collections.abc import Iterator
from typing import Any

from workflow_scripts.config.configuration import Config
from workflow_scripts.run.analyses import sources_read
from workflow_scripts.stage import resource
from workflow_scripts.tasks.experiment import chain, experiments_needed
from workflow_scripts.tasks.plan import plans_of_run
from workflow_scripts.tasks.translation import translations
from workflow_scripts.text import labelled as labels
from workflow_scripts.text.acquisition import suffix
from workflow_scripts.text.aligned import Aligned
from workflow_scripts.text.corpus import Corpus
from workflow_scripts.text.labelled import Labelled


def data_file(config: Config, name: str) -> str:
    """Where acquired data are."""
    return f"results/data/{name}{suffix(config.data[name])}"


def data_used(config: Config) -> list[str]:
    """Names of the data that the run reads, including those that other data are joined from."""
    read = {path for _, path in paths_used(config)}
    used = [name for name in config.data if data_file(config, name) in read]
    return list(dict.fromkeys([*used, *(other for name in used for other in config.data[name].join)]))


def backbones_used(config: Config) -> list[str]:
    """Names of the backbones that the run's experiments and analyses need, with those that they are made from."""
    named = [backbone for plan in plans_of_run(config) for backbone in plan.backbones]
    named += [model for name in config.run.analyses if name in config.analyses for model in config.analyses[name].models]
    named += [backbone for backbone in translators(config) if backbone in config.backbones]
    return list(dict.fromkeys(link for own in named for link in chain(config, own)))


def translators(config: Config) -> dict[str, list[str]]:
    """Backbones that translate training text with labels → the languages that they need for it."""
    needed: dict[str, list[str]] = {}
    for corpus in dict.fromkeys(plan.corpus for plan in plans_of_run(config)):
        block = config.labelled.get(corpus)
        for name, source in block.translations.items() if block else ():
            if block and "backbone" in source.by:
                needed.setdefault(source.by["backbone"], []).extend([block.language, block.language_of(f"translated/{name}")])
    return needed


def bitext_used(config: Config) -> list[str]:
    """Names of the corpora that the run's backbones are pretrained on."""
    blocks = [config.backbones[name].pretraining for name in backbones_used(config)]
    return list(dict.fromkeys(corpus for block in blocks if block for corpus in block.bitext))


def sources_of(text: Corpus | Labelled | Aligned) -> dict[str, Any]:
    """Where the parts of a corpus, of labelled text or of text for retrieval come from."""
    if isinstance(text, Corpus):
        return {"train": text.train, "dev": text.dev, **{f"test.{name}": source for name, source in text.test.items()}}
    parts = labels.sources(text) if isinstance(text, Labelled) else text.parts()
    return {part.replace("/", "."): source for part, source in parts.items()}


def paths_of(config: Config) -> Iterator[tuple[str, str]]:
    """Every file that the configuration names, and where."""
    for section in ("corpora", "labelled", "aligned"):
        for name, text in getattr(config, section).items():
            for part, source in sources_of(text).items():
                yield from ((f"{section}.{name}.{part}", path) for path in source.paths())
    for name, lexicon in config.lexicons.items():
        for kind in ("vectors", "dictionary", "gold"):
            yield from ((f"lexicons.{name}.{kind}", path) for path in getattr(lexicon, kind).values())
    for plan in translations(config).values():
        yield from ((f"{plan.where}.representation.text", path) for path in plan.settings.representation.text.values())
    for name, backbone in config.backbones.items():
        texts = backbone.pretraining.text.values() if backbone.pretraining else ()
        yield from ((f"backbones.{name}.{backbone.kind}.text", path) for path in texts)
        if backbone.pretraining and backbone.pretraining.ready:
            yield f"backbones.{name}.{backbone.kind}.ready", f"{backbone.pretraining.ready}/ready.json"
    for name, analysis in config.analyses.items():
        yield from ((f"analyses.{name}.text", path) for path in analysis.text.values())
        if analysis.published:
            yield f"analyses.{name}.published", analysis.published


def paths_used(config: Config) -> Iterator[tuple[str, str]]:
    """Every file that the configuration names and the run reads, and where it is named."""
    plans = experiments_needed(config)
    lexicons = {name for plan in plans for name in plan.lexicons}
    texts = {corpus for plan in plans for corpus in plan.corpora_learnt}
    texts |= {*bitext_used(config), *(corpus for name in lexicons if (corpus := config.lexicons[name].corpus))}
    read = {
        **dict.fromkeys(("corpora", "labelled", "aligned"), texts),
        "lexicons": lexicons,
        "experiments": {*config.run.experiments},
        "backbones": {*backbones_used(config)},
        "analyses": {*config.run.analyses},
    }
    analysed = sources_read(config)
    for where, path in paths_of(config):
        section, name = where.split(".")[:2]
        if name in read[section] or where in analysed:
            yield where, path


def missing_files(config: Config) -> list[tuple[str, str]]:
    """Each file that the run reads, nothing makes, and is not there: where the configuration names it, and its path."""
    return [
        (where, path)
        for where, path in paths_used(config)
        if path != "task" and not path.startswith("results/") and not os.path.exists(resource(path))
    ]
