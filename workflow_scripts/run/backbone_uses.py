"""backbone_uses: who uses a backbone in a run, and what it must be able to do for them."""

from __future__ import annotations

from workflow_scripts.config.phases import Phase
from workflow_scripts.run import analyses
from workflow_scripts.tasks import translation
from workflow_scripts.tasks.experiment import needs_decoder
from workflow_scripts.tasks.plan import BackbonePlan, Plan


def backbone_users(backbone: BackbonePlan) -> list[Plan]:
    """The experiments that start from the backbone, or from one that is made from it, and those whose test sets their arms translate
    without having learnt to."""
    users = experiments_from(backbone)
    trained = [plan for plan in users if isinstance(plan.settings, translation.Translation)]
    return list(dict.fromkeys([*users, *(other for plan in trained for other in translation.zero_shot_experiments(plan))]))


def experiments_from(backbone: BackbonePlan) -> list[Plan]:
    """The experiments that start from the backbone, or from one that is made from it."""
    return [plan for plan in backbone.plans.needed if any(backbone in own.chain for own in plan.backbones)]


def made_from(backbone: BackbonePlan) -> list[BackbonePlan]:
    """The run's backbones that are made from it, and itself."""
    return [each for each in backbone.plans.backbones_used if backbone in each.chain]


def of_users(backbone: BackbonePlan, ask: str) -> list[str]:
    """What the tasks of the backbone's experiments answer, each once, sorted."""
    return answers_of(backbone_users(backbone), ask)


def answers_of(plans: list[Plan], ask: str) -> list[str]:
    """What the tasks of experiments answer, each once, sorted."""
    return sorted({found for plan in plans for found in getattr(plan.task, ask)(plan)})


def languages_known(backbone: BackbonePlan) -> list[str]:
    """The languages that a backbone must know: of the experiments that start from it, or if there are none, of the analyses; and of
    the bitext that it, or one that is made from it, is pretrained on.

    A published model need not know the languages that its models translate without having learnt to: these are read under the tag of
    the language that they learnt from.
    """
    users = (experiments_from if backbone.settings.published else backbone_users)(backbone)
    asked = answers_of(users, "languages") or analyses.languages_for(backbone)
    made, corpora = made_from(backbone), backbone.plans.config.corpora
    blocks = [each.settings.pretraining for each in made]
    read = {code for block in blocks if block for name in block.bitext for code in corpora[name].languages}
    translated = {code for each in made for code in backbone.plans.translators.get(each, ())}
    return sorted({*asked, *read, *translated})


def writes_text(backbone: BackbonePlan) -> bool:
    """Whether an experiment has the backbone write text: as its task's answer, or to restore it."""
    users = backbone_users(backbone)
    if any(backbone in translator.chain for translator in backbone.plans.translators):
        return True
    if not users:
        return not analyses.analyses_of(backbone)
    # the arms of a task start from this backbone itself, or from one that is made from it; in another form it may write text, though itself
    # it need not
    arms = [(plan, arm) for plan in users for arm in plan.arms if not plan.trains or _keeps_form(plan.backbone_of(arm), backbone)]
    restores = any(needs_decoder(phase) for plan, arm in arms for phase in plan.phases_of(arm))
    restores |= any(_has_written(made) for made in made_from(backbone) if _keeps_form(made, backbone))
    return restores or any(plan.task.answers == "text" and not plan.encoder_writes(arm) for plan, arm in arms)


def _keeps_form(made: BackbonePlan, backbone: BackbonePlan) -> bool:
    """Whether a backbone is another one, or made from it without a conversion on the way."""
    before = made.chain[: made.chain.index(backbone)] if backbone in made.chain else []
    return backbone in made.chain and all(link.settings.kind != "converted" for link in before)


def _has_written(backbone: BackbonePlan) -> bool:
    """Whether a backbone is the model of an arm that has written text."""
    if (model := backbone.settings.arm) is None:
        return False
    plan = backbone.plans.experiments[model.experiment]
    if any(needs_decoder(phase) for phase in plan.phases_of(model.arm)):
        return True
    return plan.task.answers == "text" and not plan.encoder_writes(model.arm)


def heads_given(backbone: BackbonePlan) -> list[str]:
    """The heads that tasks give the backbone itself, or what is made from it in the same form, each once, sorted."""
    plans = [plan for plan in backbone_users(backbone) if plan.trains and plan.task.has_head]
    arms = [(plan, arm) for plan in plans for arm in plan.arms if plan.phases_of(arm)]
    return sorted({plan.task.head for plan, arm in arms if _keeps_form(plan.backbone_of(arm), backbone)})


def keeps_head(backbone: BackbonePlan) -> bool:
    """Whether a backbone keeps the head of its pretraining: another is made from it, it writes at once, or guesses masked words first."""
    # models that others trained count by the experiment
    arms = [
        (plan, arm) for plan in backbone_users(backbone) for arm in plan.arms if not plan.trains or backbone in plan.backbone_of(arm).chain
    ]
    may_be_encoder = not writes_text(backbone)
    if any(plan.encoder_writes(arm) or _guesses(plan.phases_of(arm), may_be_encoder) for plan, arm in arms):
        return True
    return backbone.name in {other.settings.from_ for other in backbone.plans.backbones_used}


def _guesses(phases: list[Phase], may_be_encoder: bool) -> bool:
    """Whether a phase before the task learns by an objective for encoders, or an encoder guesses words of noised text."""
    if may_be_encoder and any(phase.restores and phase.restores.as_text for phase in phases):
        return True
    return any(phase.learns and phase.learns.decoder is False for phase in phases)
