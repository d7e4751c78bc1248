"""prompt_findings: whether the models that are at hand can do what arms ask of them, beyond reading and writing.

Examples before a source, labels by their words, and chats are for decoders; what is written at once, and masked pieces to guess, are for
encoders. A decoder has the prompt and the answer in one row.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import cycle, islice
from pathlib import Path
from types import SimpleNamespace

from workflow_scripts.models.decoding import longest_source
from workflow_scripts.models.family import Family
from workflow_scripts.models.foreign_code import trusting
from workflow_scripts.models.layout import can_be_laid_out, check_layout
from workflow_scripts.models.networks import class_of, lacks_head, read_weights
from workflow_scripts.models.recognition import config_of, family_of
from workflow_scripts.models.sga import FILE, SGA
from workflow_scripts.models.templates import Templates
from workflow_scripts.models.veco import makes_stack
from workflow_scripts.run.adapter_findings import network_of
from workflow_scripts.run.findings import Finding
from workflow_scripts.run.jobs import asks_for_labels, templates_of
from workflow_scripts.run.length_findings import training_text
from workflow_scripts.run.model_findings import folder_of, quiet
from workflow_scripts.run.tokenizers_at_hand import codec_at_hand, codec_in
from workflow_scripts.stage import InputError
from workflow_scripts.tasks.plan import BackbonePlan, Plan, Plans
from workflow_scripts.training.pretraining import objective_for


def asked_models(plans: Plans) -> Iterator[Finding]:
    """What is wrong with the models of arms, each thing once; nothing of models that are not at hand."""
    findings: dict[Finding, None] = {}
    for plan in plans.of_run:
        for arm in plan.arms if plan.trains else ():
            family, folder = _model(plan.backbone_of(arm))
            found = [*_unfit(plan, arm, family), *_unprompted(plan, arm, family)] if family else []
            found += _headless(plan, arm, family) if family and not found else []
            if folder and family and family.causal and not found:
                found += _unasked(plan, arm, folder)
            findings |= {Finding("WRONG", about, said): None for about, said in found}
    yield from findings
    for backbone in plans.backbones_used:
        start = backbone.made_of if backbone.settings.kind == "converted" else None
        family, folder = _model(start) if start else (None, None)
        if folder and family and (said := _unconvertible(family, folder)):
            yield Finding("WRONG", f"{backbone.where}.from", said)


def _unconvertible(family: Family, folder: Path) -> str:
    """Why a model cannot be written in another form; empty if it can."""
    if not makes_stack(family):
        return f"{folder} is a model of the family {family.label}; an XLM-R, a RoBERTa, a BERT, or a VECO made of one, can be converted"
    try:
        tokenizer = codec_in(folder).tokenizer
        if not can_be_laid_out(family, tokenizer):
            check_layout(folder, tokenizer, SimpleNamespace(**config_of(folder)))
    except InputError as error:
        return str(error)
    return ""


def _model(backbone: BackbonePlan) -> tuple[Family | None, Path | None]:
    """The family of a backbone, where the configuration or its folder tells, and the folder."""
    if backbone.family:
        return backbone.family, None
    folder = folder_of(backbone.origin)
    try:
        return (family_of(folder), folder) if folder else (None, None)
    except InputError:
        return None, None  # which the findings of the backbone say


def _unfit(plan: Plan, arm: str, family: Family) -> Iterator[tuple[str, str]]:
    """What a model of this family cannot do: the key of the configuration, and why."""
    where = f"{plan.backbone_of(arm).where} is a model of the family {family.label}"
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


def _unprompted(plan: Plan, arm: str, family: Family) -> Iterator[tuple[str, str]]:
    """Why SGA and CTC cannot put prompts before what the layers of an encoder read, of a family whose encoders differ."""
    backbone = plan.backbone_of(arm)
    if family.by_structure and any(phase.writes.file == FILE for phase in plan.phases_of(arm)) and not _reads_prompts(backbone):
        from workflow_scripts.models.prompts import unread

        yield f"arms.{arm}.generator", unread(family.model_type, backbone.where)


def _headless(plan: Plan, arm: str, family: Family) -> Iterator[tuple[str, str]]:
    """Why SGA and CTC cannot write with an encoder from elsewhere: it has no head that guesses masked pieces, as encoders of sentences."""
    backbone, (first, *more) = plan.backbone_of(arm), plan.phases_of(arm)
    at_once = not (more or first.writes.decoder or first.start == "scratch" or family.writes)
    if at_once and (folder := folder_of(backbone.settings)) and _lacks_head(folder, backbone.settings.trust_remote_code):
        going_on = f"let its pretraining go on first (kind: continued, from: {backbone.name}, objective: mlm)"
        said = f"writes with the head that guesses masked pieces, which {folder} has not; {going_on}, or take a masked language model"
        yield f"arms.{arm}.generator", said


@cache
def _lacks_head(folder: Path, trusted: bool) -> bool:
    """Whether an encoder's files have no head that guesses masked pieces. The findings of the backbone say what else is wrong with them."""
    try:
        with quiet(), trusting(trusted):
            return lacks_head(read_weights(class_of(family_of(folder), "text"), folder, device_map="meta"))
    except InputError:
        return False


@cache
def _reads_prompts(backbone: BackbonePlan) -> bool:
    """Whether an encoder reads prompts, or it is not known: it is tried without numbers, and some networks ask for numbers."""
    import torch

    from workflow_scripts.models.prompts import PromptedEncoder, reads_prompts
    from workflow_scripts.models.refining import losses

    if (encoder := network_of(backbone)) is None:
        return True
    try:
        with torch.device("meta"):
            return reads_prompts(PromptedEncoder(encoder, SGA(), 0, 0, losses))
    except Exception as error:  # whatever another network does with what it does not know
        return isinstance(error, NotImplementedError) or "meta tensors" in str(error)


def _unasked(plan: Plan, arm: str, folder: Path) -> Iterator[tuple[str, str]]:
    """Why a decoder cannot be asked by the templates of an experiment: it has no chat template, or no room for prompt and answer.

    For the examples that an arm draws stand as many from the beginning of the training text.
    """
    if not (codec := codec_at_hand(folder)):
        return
    try:
        if asks_for_labels(plan):
            codec.templates = Templates(chat=plan.settings.verbaliser.chat)
            codec.frame(("en", "en"))
        if templates := templates_of(plan):
            config = SimpleNamespace(**config_of(folder))
            codec.templates = templates
            longest_source(codec, config, plan.settings.decoding)
            if shots := next((phase.shots for phase in plan.phases_of(arm) if phase.shots), 0):
                pairs = [*zip(*training_text(plan, None).values(), strict=True)]
                codec.templates = replace(templates, examples=[*islice(cycle(pairs), shots)])
                longest_source(codec, config, plan.settings.decoding)
    except InputError as error:
        yield plan.where, str(error)
    except AttributeError:
        return  # sizes that stand elsewhere are known when the model is loaded
