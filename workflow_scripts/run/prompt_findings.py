"""prompt_findings: whether the models that are at hand can do what arms ask of them, beyond reading and writing.

Examples before a source, labels by their words, and chats are for decoders; what is written at once, and masked pieces to guess, are for
encoders. A decoder has the prompt and the answer in one row.
"""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

from workflow_scripts import registry
from workflow_scripts.config.configuration import Config
from workflow_scripts.models.conversion import check_layout
from workflow_scripts.models.decoding import longest_source
from workflow_scripts.models.family import Family
from workflow_scripts.models.recognition import config_of, family_of
from workflow_scripts.models.templates import Templates
from workflow_scripts.models.veco import makes_stack
from workflow_scripts.run.findings import Finding
from workflow_scripts.run.jobs import asks_for_labels, templates_of
from workflow_scripts.run.model_findings import located
from workflow_scripts.run.tokenizers_at_hand import codec_in
from workflow_scripts.run.uses import backbones_used
from workflow_scripts.stage import InputError
from workflow_scripts.tasks.experiment import chain, family_in
from workflow_scripts.tasks.plan import Plan, plans_of_run
from workflow_scripts.training.pretraining import objective_for


def asked_models(config: Config) -> Iterator[Finding]:
    """What is wrong with the models of arms, each thing once; nothing of models that are not at hand."""
    told: dict[Finding, None] = {}
    for plan in plans_of_run(config):
        for arm in plan.arms if plan.trains else ():
            family, folder = _model(config, plan.backbone_of(arm))
            found = [*_unfit(plan, arm, family)] if family else []
            if folder and family and family.causal and not found:
                found += _unasked(plan, folder)
            told |= {Finding("WRONG", about, said): None for about, said in found}
    yield from told
    for name in backbones_used(config):
        block = config.backbones[name]
        family, folder = _model(config, block.from_) if block.kind == "converted" and block.from_ in config.backbones else (None, None)
        if folder and family and (said := _unconvertible(family, folder)):
            yield Finding("WRONG", f"backbones.{name}.from", said)


def _unconvertible(family: Family, folder: Path) -> str:
    """Why a model cannot be written in another form; empty if it can."""
    if not makes_stack(family):
        others = "an XLM-R, or a VECO made of one, can be converted, and a BERT that has XLM-R's pieces"
        return f"{folder} is a model of the family {family.title}; {others}"
    try:
        check_layout(folder, codec_in(folder).tokenizer, SimpleNamespace(**config_of(folder)))
    except InputError as error:
        return str(error)
    return ""


def _model(config: Config, backbone: str) -> tuple[Family | None, Path | None]:
    """The family of a backbone, where the configuration or its folder tells, and the folder."""
    if name := family_in(config, backbone):
        return registry.entry("family", name), None
    origin = config.backbones[chain(config, backbone)[-1]]
    folder = located(origin.model, origin.revision) if origin.model else None
    try:
        return (family_of(folder), folder) if folder else (None, None)
    except InputError:
        return None, None  # which is told with the backbone


def _unfit(plan: Plan, arm: str, family: Family) -> Iterator[tuple[str, str]]:
    """What a model of this family cannot do: the key of the configuration, and why."""
    where = f"backbones.{plan.backbone_of(arm)} is a model of the family {family.title}"
    for phase in plan.phases_of(arm):
        if phase.untrained and plan.settings.head and not family.causal:
            said = "asks for labels without training, which decoders alone can tell"
            yield f"arms.{arm}", f"{said}; {where}. Give the arm epochs, or take a decoder"
        elif phase.shots and not family.causal:
            yield f"arms.{arm}.shots", f"shows {phase.shots} examples, which decoders alone read; {where}. Set shots: 0, or take a decoder"
        if phase.learns:
            try:
                objective_for(phase.data, family)
            except InputError as error:
                yield f"arms.{arm}", str(error)
    if plan.encoder_writes(arm) and family.writes:
        yield f"arms.{arm}.generator", f"needs an encoder; {where}, which writes by itself. Take an XLM-R, or leave `generator` out"


def _unasked(plan: Plan, folder: Path) -> Iterator[tuple[str, str]]:
    """Why a decoder cannot be asked by the templates of an experiment: it has no chat template, or no room for prompt and answer."""
    try:
        codec = codec_in(folder)
    except InputError:
        return  # which is told with the backbone
    try:
        if asks_for_labels(plan):
            codec.templates = Templates(chat=plan.settings.verbaliser.chat)
            codec.frame(("en", "en"))
        if templates := templates_of(plan):
            codec.templates = templates
            longest_source(codec, SimpleNamespace(**config_of(folder)), plan.settings.decoding)
    except InputError as error:
        yield plan.where, str(error)
    except AttributeError:
        return  # sizes that stand elsewhere are known when the model is loaded
