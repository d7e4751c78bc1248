"""backbone_checks: checks of backbones, of what they are made from, and of what they are pretrained on."""

import dataclasses
from collections.abc import Iterator, Sequence

from workflow_scripts import registry
from workflow_scripts.config.configuration import Config
from workflow_scripts.names import undefined
from workflow_scripts.run.backbone_uses import backbone_users, writes_text
from workflow_scripts.stage import InputError
from workflow_scripts.tasks.experiment import chain, family_in, pretrained_in, starts
from workflow_scripts.tasks.plan import Plan
from workflow_scripts.training.backbone import Backbone, made_of
from workflow_scripts.training.pretraining import known_family, objective_for
from workflow_scripts.training.small import makeable


def problems(config: Config) -> Iterator[str]:
    """Backbones that are made from one that is not defined, or from themselves; settings for another kind, family or objective."""
    for name, backbone in config.backbones.items():
        where = f"backbones.{name}"
        if backbone.kind not in ("continued", "converted", "arm") and backbone.from_:
            yield f"{where}.from: is for kinds continued and converted, or names the model of an arm (kind arm)"
        if backbone.kind != "small" and backbone.family:
            yield f"{where}.family: is for kind small only; a model that is loaded or continued has its own"
        for key in ("model", "revision", "trim", "trust_remote_code") if backbone.kind != "hub" else ():
            if getattr(backbone, key):
                yield f"{where}.{key}: is for kind hub, and the kind is {backbone.kind}; set kind: hub to have it read, or leave it out"
        if backbone.kind in ("hub", "converted") and backbone.objective:
            yield f"{where}.objective: is for kinds small and continued only"
        if backbone.kind in ("continued", "converted"):
            yield from undefined(f"{where}.from", backbone.from_ or "", config.backbones)
        if backbone.kind == "arm":
            yield from _arm_problems(config, where, backbone)
        if backbone.with_head:
            yield from _head_problems(config, name)
        yield from _conversion_problems(config, name)
        links = chain(config, name)
        again = made_of(config.backbones, links[-1], starts(config))
        if again in links:
            yield f"{where}.from: {' from '.join([*links, str(again)])} is a circle; one of them must be small or of the hub"
        if backbone.made_here and backbone.made_here.training.adapter:
            yield f"{where}.small.training.adapter: a small model begins with random weights, which need more; leave it out"
        objective = backbone.objective
        family = family_in(config, name)
        if backbone.pretraining and family:
            try:
                objective = objective_for(backbone.objective, known_family(family))
            except InputError as problem:
                yield f"{where}.objective: {problem}"
        yield from _bitext_problems(config, name, objective)
        yield from _objective_problems(config, name, objective)
        yield from _mask_problems(name, backbone)
        if backbone.kind == "small" and backbone.family and not registry.entry("family", backbone.family).maker:
            yield f"{where}.family: the run makes no small models of {backbone.family}, only of {', '.join(makeable())}"
        if family and not registry.entry("family", family).decoder and backbone_users(config, name) and writes_text(config, name):
            yield _cannot_write(config, name, family)


def _cannot_write(config: Config, name: str, family: str) -> str:
    """What to do about an encoder that is to write text."""
    users = backbone_users(config, name)
    writing = [plan for plan in users if plan.task.answers == "text"]
    what = f"for {writing[0].where}" if writing else f"as arms of {users[0].where} with a pretext phase do"
    at_once = next(name for name, entry in registry.entries("generator").items() if not entry.decoder)
    other = f"arms with `generator: {at_once}`" if writing else f"leave these arms out (run.arms, or {users[0].where}.arms)"
    return (
        f"backbones.{name}: is an encoder (family {family}), which cannot write text, {what}; take a backbone of family mbart, one of kind "
        f"converted (to: encoder-decoder), or {other}"
    )


_CONVERSION = ("to", "decoder", "decoder_layers", "decoder_from", "encoder_layers", "head")


def _listed(keys: Sequence[str]) -> str:
    quoted = [f"`{key}`" for key in keys]
    return f"{', '.join(quoted[:-1])} and {quoted[-1]}"


def _conversion_problems(config: Config, name: str) -> Iterator[str]:
    """What is wrong with the form that a backbone is given for a task."""
    backbone, where = config.backbones[name], f"backbones.{name}"
    given, usual = ([getattr(one, key) for key in _CONVERSION] for one in (backbone, Backbone()))
    if backbone.kind != "converted":
        if given != usual:
            yield f"{where}: {_listed(_CONVERSION)} are for kind converted only"
        return
    if backbone.to == "encoder" and given[1:] != usual[1:]:
        yield f"{where}: an encoder has no decoder; leave {_listed(_CONVERSION[1:])} out, or set to: encoder-decoder"
    if backbone.decoder == "random" and backbone.head != "folded":
        yield f"{where}.head: a decoder that is drawn at random has no head to drop; leave it out"
    if backbone.decoder == "copied" and backbone.encoder_layers and backbone.to != "encoder":
        yield f"{where}.encoder_layers: is for a decoder that is drawn at random; leave it out, or set decoder: random"
    start = backbone.from_ if backbone.from_ in config.backbones else None
    if start and (family := family_in(config, start)) and not registry.entry("family", family).convertible:
        yield f"{where}.from: {start!r} is of family {family}; only an XLM-R, or a VECO made of one, can be converted"
    small = config.backbones[chain(config, name)[-1]].small
    layers = backbone.decoder_layers
    if small and layers and layers > small.layers and backbone.decoder == "copied":
        yield f"{where}.decoder_layers: {layers} are more than the {small.layers} of the stack; take at most these, or decoder: random"
    if small and (backbone.encoder_layers or 0) > small.layers:
        yield f"{where}.encoder_layers: {backbone.encoder_layers} are more than the {small.layers} of the stack; take at most these"


def _objective_problems(config: Config, name: str, objective: str | None) -> Iterator[str]:
    """What is wrong with the settings of an objective, or which are for another one."""
    backbone = config.backbones[name]
    block, where = backbone.pretraining, f"backbones.{name}.{backbone.kind}"
    if block is None or objective is None:
        return
    for other, entry in registry.entries("objective").items():
        if entry.block and other != objective and (given := getattr(block, entry.block)) != type(given)():
            yield f"{where}.{entry.block}: is for the objective {other}, not for {objective}"
    if check := registry.entry("objective", objective).problems:
        yield from check(where, block, [config.corpora[corpus].languages for corpus in block.bitext if corpus in config.corpora])


def _mask_problems(name: str, backbone: Backbone) -> Iterator[str]:
    """Of the pieces to guess some are masked and some replaced; there are no more than all of them."""
    masking = backbone.pretraining.masking if backbone.pretraining else None
    if masking and masking.masked + masking.replaced > 1:
        where = f"backbones.{name}.{backbone.kind}.masking"
        yield f"{where}: masked ({masking.masked}) and replaced ({masking.replaced}) are shares of the same pieces, together at most 1"


def _arm_problems(config: Config, where: str, backbone: Backbone) -> Iterator[str]:
    """What is wrong with the model of an arm, and with an experiment of which only that arm is trained."""
    named = backbone.arm
    if named is None:
        yield f"{where}.from: {backbone.from_!r} names no model of an arm; give one like help-de-en/csr/seed1/pretext"
        return
    yield from undefined(f"{where}.from", named.experiment, config.experiments)
    yield from undefined(f"{where}.from", named.arm, config.arms)
    if named.experiment not in config.experiments or named.arm not in config.arms:
        return
    plan = Plan(config, named.experiment)
    if not plan.trains:
        yield f"{where}.from: {named.experiment} trains nothing"
    elif named.phase not in [phase.name for phase in config.arms[named.arm]]:
        yield f"{where}.from: arm {named.arm!r} has no phase {named.phase}"
    elif named.experiment not in config.run.experiments or named.arm not in plan.arms:
        # as if it were run with this arm alone
        experiments = {**config.experiments, plan.name: dataclasses.replace(plan.settings, arms=None)}
        run = dataclasses.replace(config.run, experiments=[plan.name], arms=[named.arm], analyses=[])
        alone = Plan(dataclasses.replace(config, run=run, experiments=experiments), plan.name)
        yield from alone.task.problems(alone)


def _head_problems(config: Config, name: str) -> Iterator[str]:
    """What is wrong with a head that is kept: one is for its own task, and for the labels that it has learnt."""
    where, model = f"backbones.{name}.with_head", config.backbones[name].arm
    if config.backbones[name].kind != "arm":
        yield f"{where}: is for kind arm, whose model may have the head of its task"
        return
    if model is None or model.experiment not in config.experiments:
        return  # which is told of `from`
    learnt = Plan(config, model.experiment)
    if not learnt.settings.head or model.phase != "finetune":
        yield f"{where}: {model.experiment}/{model.arm}/{model.phase} has no head; leave it out"
        return
    for user in backbone_users(config, name):
        if _head(user) != _head(learnt):
            yield f"{where}: the head of {model.experiment} is not one for {user.where}, with another task or labels; leave it out"


def _head(plan: Plan) -> tuple[str, list[str] | None]:
    """The key of an experiment's head, if it has one, and the labels of its text, if it has some."""
    return getattr(plan.settings, "head", ""), getattr(plan.text, "labels", None)


def _bitext_problems(config: Config, name: str, objective: str | None) -> Iterator[str]:
    """What is wrong with the parallel text that a backbone is pretrained on by `objective`, None where that is not known."""
    backbone = config.backbones[name]
    block, where = backbone.pretraining, f"backbones.{name}.{backbone.kind}"
    reads = registry.entry("objective", objective).reads if objective else None
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
    if block.temperature != 1 and (reads == "lines" or (reads != "both" and not block.bitext)):
        yield f"{where}.temperature: {block.temperature} is for objectives that learn from the pairs of `bitext`"
    named = [config.corpora[corpus] for corpus in block.bitext if corpus in config.corpora]
    if documents := [corpus for corpus in block.bitext if corpus in config.corpora and config.corpora[corpus].documents]:
        yield f"{where}.bitext: {documents[0]!r} has documents and summaries; sentences and their translations are needed"
    for link in chain(config, name):
        known = pretrained_in(config, link) if config.backbones[link].made_here else None
        for code in dict.fromkeys(code for corpus in named for code in corpus.languages):
            if known is not None and code not in known:
                kind = config.backbones[link].kind
                yield f"backbones.{link}.{kind}.text: no text for {code!r}, which {where}.bitext has; it has {known}"
