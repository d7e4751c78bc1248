"""backbone_checks: checks of backbones, of what they are made from, and of what they are pretrained on."""

from collections.abc import Iterator

from workflow_scripts.names import undefined
from workflow_scripts.run.config import Config
from workflow_scripts.run.inputs import backbone_users, writes_text
from workflow_scripts.stage import InputError
from workflow_scripts.tasks.experiment import pretrained_in
from workflow_scripts.training.backbone import chain_of
from workflow_scripts.training.bitext import directions
from workflow_scripts.training.pretraining import OBJECTIVES, known_family, objective_for


def problems(config: Config) -> Iterator[str]:
    """Backbones that are made from one that is not defined, or from themselves; settings for another kind, family or objective."""
    for name, backbone in config.backbones.items():
        where = f"backbones.{name}"
        if backbone.kind != "continued" and backbone.from_:
            yield f"{where}.from: is for kind continued only"
        if backbone.kind != "small" and backbone.family:
            yield f"{where}.family: is for kind small only; a model that is loaded or continued has its own"
        if backbone.kind == "hub" and backbone.objective:
            yield f"{where}.objective: is for kinds small and continued only"
        if backbone.kind == "continued":
            yield from undefined(f"{where}.from", backbone.from_ or "", config.backbones)
        chain = chain_of(config.backbones, name)
        origin = config.backbones[chain[-1]]
        if origin.kind == "continued" and origin.from_ in chain:
            yield f"{where}.from: {' from '.join([*chain, str(origin.from_)])} is a circle; one of them must be small or of the hub"
        objective = backbone.objective
        if backbone.pretraining and origin.kind == "small":
            try:
                objective = objective_for(backbone.objective, known_family(origin.family or "mbart"))
            except InputError as problem:
                yield f"{where}.objective: {problem}"
        yield from _bitext_problems(config, name, objective)
        if origin.kind == "small" and origin.family == "xlmr" and backbone_users(config, name) and writes_text(config, name):
            yield (
                f"{where}: is an encoder (family xlmr), which cannot write text; for translation and for arms with a pretext phase "
                "take a backbone of family mbart"
            )


def _bitext_problems(config: Config, name: str, objective: str | None) -> Iterator[str]:
    """What is wrong with the parallel text that a backbone is pretrained on by `objective`, None where that is not known."""
    backbone = config.backbones[name]
    block, where = backbone.pretraining, f"backbones.{name}.{backbone.kind}"
    reads = OBJECTIVES[objective].reads if objective else None
    if block is None:
        return
    for corpus in block.bitext:
        yield from undefined(f"{where}.bitext", corpus, config.corpora)
    if len({*block.bitext}) < len(block.bitext):
        yield f"{where}.bitext: {block.bitext} names a corpus twice"
    if reads == "pairs" and not block.bitext:
        yield f"{where}.bitext: is missing; objective {objective} learns from the pairs of the corpora that it names"
    if reads == "pairs" and block.text:
        yield f"{where}.text: is not read by objective {objective}, which learns from pairs alone; leave it out"
    if block.temperature != 1 and (reads == "lines" or not block.bitext):
        yield f"{where}.temperature: {block.temperature} is for objectives that learn from the pairs of `bitext`"
    named = [config.corpora[corpus] for corpus in block.bitext if corpus in config.corpora]
    if documents := [corpus for corpus in block.bitext if corpus in config.corpora and config.corpora[corpus].documents]:
        yield f"{where}.bitext: {documents[0]!r} has documents and summaries; sentences and their translations are needed"
    if objective == "translation" and named:
        try:
            directions([corpus.languages for corpus in named], block.direction, block.pivot)
        except InputError as problem:
            yield f"{where}: {problem}"
    for link in chain_of(config.backbones, name):
        known = pretrained_in(config, link) if config.backbones[link].pretraining else None
        for code in dict.fromkeys(code for corpus in named for code in corpus.languages):
            if known is not None and code not in known:
                kind = config.backbones[link].kind
                yield f"backbones.{link}.{kind}.text: no text for {code!r}, which {where}.bitext has; it has {known}"
