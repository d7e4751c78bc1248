"""backbone_uses: who uses a backbone in a run, and what it must be able to do for them."""

from __future__ import annotations

from workflow_scripts.config.configuration import Config
from workflow_scripts.config.phases import Phase
from workflow_scripts.run import analyses
from workflow_scripts.run.uses import backbones_used, translators
from workflow_scripts.tasks import translation
from workflow_scripts.tasks.experiment import chain, experiments_needed, needs_decoder
from workflow_scripts.tasks.plan import Plan


def backbone_users(config: Config, backbone: str) -> list[Plan]:
    """The experiments that start from the backbone, or from one that is made from it, and those whose test sets their arms translate
    without having learnt to."""
    users = experiments_from(config, backbone)
    trained = [plan for plan in users if isinstance(plan.settings, translation.Translation)]
    tested = [other for plan in trained for other in translation.zero_shot_experiments(plan)]
    return list({plan.name: plan for plan in (*users, *tested)}.values())


def experiments_from(config: Config, backbone: str) -> list[Plan]:
    """The experiments that start from the backbone, or from one that is made from it."""
    return [plan for plan in experiments_needed(config) if any(backbone in chain(config, own) for own in plan.backbones)]


def of_users(config: Config, backbone: str, ask: str) -> list[str]:
    """What the tasks of the backbone's experiments answer, each once, sorted."""
    return answers_of(backbone_users(config, backbone), ask)


def answers_of(plans: list[Plan], ask: str) -> list[str]:
    """What the tasks of experiments answer, each once, sorted."""
    return sorted({found for plan in plans for found in getattr(plan.task, ask)(plan)})


def languages_known(config: Config, backbone: str) -> list[str]:
    """The languages that a backbone must know: of the experiments that start from it, or if there are none, of the analyses; and of
    the bitext that it, or one that is made from it, is pretrained on.

    A published model need not know the languages that its models translate without having learnt to: these are read under the tag of
    the language that they learnt from.
    """
    users = (experiments_from if config.backbones[backbone].kind == "hub" else backbone_users)(config, backbone)
    asked = answers_of(users, "languages") or analyses.languages_for(config, backbone)
    made = [name for name in backbones_used(config) if backbone in chain(config, name)]
    blocks = [config.backbones[name].pretraining for name in made]
    read = {code for block in blocks if block for name in block.bitext for code in config.corpora[name].languages}
    translated = {code for name, codes in translators(config).items() if name in made for code in codes}
    return sorted({*asked, *read, *translated})


def writes_text(config: Config, backbone: str) -> bool:
    """Whether an experiment has the backbone write text: as its task's answer, or to restore it."""
    users = backbone_users(config, backbone)
    if any(backbone in chain(config, translator) for translator in translators(config)):
        return True
    if not users:
        return not analyses.analyses_of(config, backbone)
    # the arms of a task start from this backbone itself, or from one that is made from it; in another form it may write text, though itself
    # it need not
    arms = [(plan, arm) for plan in users for arm in plan.arms if _becomes(plan, arm, backbone)]
    restores = any(needs_decoder(phase) for plan, arm in arms for phase in plan.phases_of(arm))
    restores |= any(_writes_before(config, name, backbone) for name in backbones_used(config))
    return restores or any(plan.task.answers == "text" and not plan.encoder_writes(arm) for plan, arm in arms)


def _becomes(plan: Plan, arm: str, backbone: str) -> bool:
    """Whether an arm starts from the backbone, or from one that is made from it and is not converted on the way."""
    if not plan.trains:
        return True
    links = chain(plan.config, plan.backbone_of(arm))
    before = links[: links.index(backbone)] if backbone in links else links
    return backbone in links and all(plan.config.backbones[link].kind != "converted" for link in before)


def _writes_before(config: Config, name: str, backbone: str) -> bool:
    """Whether a backbone `name` is the model of an arm that has written text, made from this backbone without a conversion on the way."""
    model, links = config.backbones[name].arm, chain(config, name)
    if model is None or backbone not in links or any(config.backbones[one].kind == "converted" for one in links[: links.index(backbone)]):
        return False
    plan = Plan(config, model.experiment)
    if any(needs_decoder(phase) for phase in plan.phases_of(model.arm)):
        return True
    return plan.task.answers == "text" and not plan.encoder_writes(model.arm)


def _is_made_from(plan: Plan, arm: str, backbone: str) -> bool:
    """Whether an arm starts from the backbone, or from one that is made from it; models that others trained count by the experiment."""
    return not plan.trains or backbone in chain(plan.config, plan.backbone_of(arm))


def keeps_head(config: Config, backbone: str) -> bool:
    """Whether a backbone keeps the head of its pretraining: another is made from it, it writes at once, or guesses masked words first."""
    arms = [(plan, arm) for plan in backbone_users(config, backbone) for arm in plan.arms if _is_made_from(plan, arm, backbone)]
    if any(plan.encoder_writes(arm) or _guesses(plan.phases_of(arm)) for plan, arm in arms):
        return True
    return backbone in {config.backbones[name].from_ for name in backbones_used(config)}


def _guesses(phases: list[Phase]) -> bool:
    """Whether a phase before the task learns by an objective for encoders."""
    return any(phase.learns and phase.learns.decoder is False for phase in phases)
