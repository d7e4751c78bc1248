"""backbone_checks: checks of backbones, of what they are made from, and of what they are pretrained on."""

import dataclasses
from collections.abc import Iterator, Sequence

from workflow_scripts import registry
from workflow_scripts.names import undefined
from workflow_scripts.run.arm_checks import own_problems
from workflow_scripts.run.backbone_uses import backbone_users, writes_text
from workflow_scripts.stage import InputError
from workflow_scripts.tasks.plan import BackbonePlan, Plan, Plans
from workflow_scripts.training.backbone import Backbone
from workflow_scripts.training.objective import Objective
from workflow_scripts.training.pretraining import objective_for
from workflow_scripts.training.pretraining_settings import Pretraining
from workflow_scripts.training.small import makeable


def problems(backbone: BackbonePlan) -> Iterator[str]:
    """What is wrong with a backbone: made from one that is not defined, or from itself; settings for another kind, family or objective."""
    block, where, family = backbone.settings, backbone.where, backbone.family
    if block.kind not in ("continued", "converted", "arm") and block.from_:
        yield f"{where}.from: is for kinds continued and converted, or names the model of an arm (kind arm)"
    if block.kind != "small" and block.family:
        yield f"{where}.family: is for kind small only; a model that is loaded or continued has its own"
    for key in ("model", "revision", "trim", "trust_remote_code"):
        if getattr(block, key) and not (block.kind == "hub" or (block.kind == "fairseq" and key in ("model", "trim"))):
            yield f"{where}.{key}: is for kind hub, and the kind is {block.kind}; set kind: hub to have it read, or leave it out"
    if (block.published or block.kind == "converted") and block.objective:
        yield f"{where}.objective: is for kinds small and continued only"
    if block.kind in ("continued", "converted"):
        yield from undefined(f"{where}.from", block.from_ or "", backbone.plans.backbones)
    if block.kind == "arm":
        yield from _arm_problems(backbone)
    if block.with_head:
        yield from _head_problems(backbone)
    yield from _conversion_problems(backbone)
    if (again := backbone.chain[-1].made_of) in backbone.chain:
        links = " from ".join(link.name for link in (*backbone.chain, again) if link)
        yield f"{where}.from: {links} is a circle; one of them must be small or of the hub"
    if block.small and block.small.d_model % block.small.heads:
        yield f"{where}.small: d_model {block.small.d_model} must be a multiple of heads {block.small.heads}"
    if block.pretraining:
        yield from _pretraining_problems(backbone, block.pretraining)
    if block.kind == "small" and block.family and not registry.entry("family", block.family).maker:
        yield f"{where}.family: the run makes no small models of {block.family}, only of {', '.join(makeable())}"
    if family and not family.decoder and backbone_users(backbone) and writes_text(backbone):
        yield _cannot_write(backbone, family.name)


def _pretraining_problems(backbone: BackbonePlan, block: Pretraining) -> Iterator[str]:
    """What is wrong with what a backbone is pretrained on here, and by."""
    named, where = backbone.settings.objective, backbone.where_made
    if block.training.adapter and backbone.settings.made_here:
        yield f"{where}.training.adapter: a small model begins with random weights, which need more; leave it out"
    if block.training.pairs:
        yield f"{where}.training.pairs: is for a task phase; a backbone reads all of its text"
    objective = registry.entry("objective", named) if named else None
    if objective:
        yield from own_problems(f"{where}.objective_settings", objective, block.objective_settings)
    if backbone.family:
        try:
            objective = registry.entry("objective", objective_for(named, backbone.family, backbone.settings.kind == "small"))
        except InputError as problem:
            yield f"{backbone.where}.objective: {problem}"
    yield from _bitext_problems(backbone, block, objective)
    if objective:
        yield from _objective_problems(backbone, block, objective)
    masking = block.masking
    if masking and masking.masked + masking.replaced > 1:
        shares = f"masked ({masking.masked}) and replaced ({masking.replaced})"
        yield f"{where}.masking: {shares} are shares of the same pieces, together at most 1"


def _cannot_write(backbone: BackbonePlan, family: str) -> str:
    """What to do about an encoder that is to write text."""
    users = backbone_users(backbone)
    writing = [plan for plan in users if plan.task.answers == "text"]
    what = f"for {writing[0].where}" if writing else f"as arms of {users[0].where} with a pretext phase do"
    at_once = next(name for name, entry in registry.entries("generator").items() if not entry.decoder)
    other = f"arms with `generator: {at_once}`" if writing else f"leave these arms out (run.arms, or {users[0].where}.arms)"
    return (
        f"{backbone.where}: is an encoder (family {family}), which cannot write text, {what}; take a backbone of family mbart, one of kind "
        f"converted (to: encoder-decoder), or {other}"
    )


_CONVERSION = ("to", "decoder", "decoder_layers", "decoder_from", "encoder_layers", "head")


def _listed(keys: Sequence[str]) -> str:
    quoted = [f"`{key}`" for key in keys]
    return f"{', '.join(quoted[:-1])} and {quoted[-1]}"


def _conversion_problems(backbone: BackbonePlan) -> Iterator[str]:
    """What is wrong with the form that a backbone is given for a task."""
    block, where, start = backbone.settings, backbone.where, backbone.made_of
    given, usual = ([getattr(one, key) for key in _CONVERSION] for one in (block, Backbone()))
    if block.kind == "fairseq":
        keys = [key for key, value, default in zip(_CONVERSION, given, usual, strict=True) if value != default]
        if other := [key for key in keys if key not in ("decoder_layers", "decoder_from")]:
            yield f"{where}.{other[0]}: is for kind converted only; of a checkpoint of fairseq, layers of the decoder can be chosen"
        if "decoder_from" in keys and not block.decoder_layers:
            yield f"{where}.decoder_from: says which layers of the decoder are kept; set decoder_layers, or leave it out"
        return
    if block.kind != "converted":
        if given != usual:
            yield f"{where}: {_listed(_CONVERSION)} are for kind converted only"
        return
    if block.to == "encoder" and given[1:] != usual[1:]:
        yield f"{where}: an encoder has no decoder; leave {_listed(_CONVERSION[1:])} out, or set to: encoder-decoder"
    if block.decoder == "random" and block.head != "folded":
        yield f"{where}.head: a decoder that is drawn at random has no head to drop; leave it out"
    if block.decoder == "copied" and block.encoder_layers and block.to != "encoder":
        yield f"{where}.encoder_layers: is for a decoder that is drawn at random; leave it out, or set decoder: random"
    if start and (family := start.family) and not family.convertible:
        convertible = "an XLM-R, a RoBERTa, a BERT, or a VECO made of one"
        yield f"{where}.from: {start.name!r} is of family {family.name}; only {convertible}, can be converted"
    small, layers = backbone.origin.small, block.decoder_layers
    if small and layers and layers > small.layers and block.decoder == "copied":
        yield f"{where}.decoder_layers: {layers} are more than the {small.layers} of the stack; take at most these, or decoder: random"
    if small and (block.encoder_layers or 0) > small.layers:
        yield f"{where}.encoder_layers: {block.encoder_layers} are more than the {small.layers} of the stack; take at most these"


def _objective_problems(backbone: BackbonePlan, block: Pretraining, objective: Objective) -> Iterator[str]:
    """What is wrong with the settings of an objective, or which are for another one."""
    where, corpora = backbone.where_made, backbone.plans.config.corpora
    for other, entry in registry.entries("objective").items():
        if entry.block and other != objective.name and (given := getattr(block, entry.block)) != type(given)():
            yield f"{where}.{entry.block}: is for the objective {other}, not for {objective.name}"
    if objective.problems:
        yield from objective.problems(where, block, [corpora[corpus].languages for corpus in block.bitext if corpus in corpora])


def _arm_problems(backbone: BackbonePlan) -> Iterator[str]:
    """What is wrong with the model of an arm, and with an experiment of which only that arm is trained."""
    named, config, where = backbone.settings.arm, backbone.plans.config, f"{backbone.where}.from"
    if named is None:
        yield f"{where}: {backbone.settings.from_!r} names no model of an arm; give one like help-de-en/csr/seed1/pretext"
        return
    yield from undefined(where, named.experiment, config.experiments)
    yield from undefined(where, named.arm, config.arms)
    if named.experiment not in config.experiments or named.arm not in config.arms:
        return
    plan = backbone.plans.experiments[named.experiment]
    if not plan.trains:
        yield f"{where}: {plan.name} trains nothing"
    elif named.phase not in [phase.name for phase in config.arms[named.arm]]:
        yield f"{where}: arm {named.arm!r} has no phase {named.phase}"
    elif named.experiment not in config.run.experiments or named.arm not in plan.arms:
        # as if it were run with this arm alone, and what writes its targets
        teachers = [phase.targets_from for phase in config.arms[named.arm] if phase.targets_from in config.arms]
        experiments = {**config.experiments, plan.name: dataclasses.replace(plan.settings, arms=None)}
        run = dataclasses.replace(config.run, experiments=[plan.name], arms=[named.arm, *teachers], analyses=[])
        (alone,) = Plans(dataclasses.replace(config, run=run, experiments=experiments)).of_run
        yield from alone.task.problems(alone)


def _head_problems(backbone: BackbonePlan) -> Iterator[str]:
    """What is wrong with a head that is kept: one is for its own task, and for the labels that it has learnt."""
    where, model = f"{backbone.where}.with_head", backbone.settings.arm
    if backbone.settings.kind != "arm":
        yield f"{where}: is for kind arm, whose model may have the head of its task"
        return
    if model is None or not (learnt := backbone.plans.experiments.get(model.experiment)):
        return  # which the check of `from` reports
    if not learnt.settings.head or model.phase != "finetune":
        yield f"{where}: {model.experiment}/{model.arm}/{model.phase} has no head; leave it out"
        return
    for user in backbone_users(backbone):
        if _head(user) != _head(learnt):
            yield f"{where}: the head of {model.experiment} is not one for {user.where}, with another task or labels; leave it out"


def _head(plan: Plan) -> tuple[str, list[str] | None]:
    """The key of an experiment's head, if it has one, and the labels of its text, if it has some."""
    return getattr(plan.settings, "head", ""), getattr(plan.text, "labels", None)


def _bitext_problems(backbone: BackbonePlan, block: Pretraining, objective: Objective | None) -> Iterator[str]:
    """What is wrong with the parallel text that a backbone is pretrained on by `objective`, None where that is not known."""
    where, corpora = backbone.where_made, backbone.plans.config.corpora
    reads = objective.reads if objective else None
    for corpus in block.bitext:
        yield from undefined(f"{where}.bitext", corpus, corpora)
    if len({*block.bitext}) < len(block.bitext):
        yield f"{where}.bitext: {block.bitext} names a corpus twice"
    if objective and reads == "pairs" and not block.bitext:
        yield f"{where}.bitext: is missing; objective {objective.name} learns from the pairs of the corpora that it names"
    if objective and reads == "pairs" and block.text:
        yield f"{where}.text: is not read by objective {objective.name}, which learns from pairs alone; leave it out"
    if block.temperature != 1 and (reads == "lines" or (reads != "both" and not block.bitext)):
        yield f"{where}.temperature: {block.temperature} is for objectives that learn from the pairs of `bitext`"
    named = {corpus: corpora[corpus] for corpus in block.bitext if corpus in corpora}
    if documents := [name for name, corpus in named.items() if corpus.documents]:
        yield f"{where}.bitext: {documents[0]!r} has documents and summaries; sentences and their translations are needed"
    codes = dict.fromkeys(code for corpus in named.values() for code in corpus.languages)
    for link in (link for link in backbone.chain if link.settings.made_here):
        for code in codes:
            if code not in link.pretrained_in:
                yield f"{link.where_made}.text: no text for {code!r}, which {where}.bitext has; it has {link.pretrained_in}"
