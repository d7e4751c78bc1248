"""urgency: which jobs go first where not all of them can run at once.

A run is asked a question, and its first answer needs two arms: the baseline, and the first arm that is no control. What these two need goes
first, with the first seed before the others: text, lexicon, trainings, decoding and scores. The controls follow. What only measures
(representations, word accuracy) fills the cores that are left.
"""

from workflow_scripts.run.jobs import Job
from workflow_scripts.run.schedule import ANSWER, MEASURING, SHARED, TRAINING
from workflow_scripts.tasks.plan import Plan

__all__ = ["SHARED"]  # for rules


def first_arms(plan: Plan) -> list[str]:
    """The arms of an experiment's first answer: the baseline, and the first other arm that restores text with a noise that is no control.

    Where no arm does, it is the second arm. An experiment that only trains what others start from has none.
    """
    baseline, *others = plan.arms or [""]
    restored = {arm: [phase.restores for phase in plan.phases_of(arm) if phase.restores] for arm in others}
    methods = [arm for arm, noises in restored.items() if any(not noise.control_of for noise in noises)]
    return [arm for arm in (baseline, *(methods or others)[:1]) if arm]


def of_training(job: Job) -> int:
    """The priority of an arm's phase."""
    return _of_arm(job) or TRAINING


def of_score(job: Job) -> int:
    """The priority of decoding and scoring an arm."""
    return _of_arm(job) or MEASURING


def of_noise(job: Job) -> int:
    """The priority of making noised text: that of the most urgent arm that restores it."""
    restored = {phase.noised for arm in first_arms(job.plan) for phase in job.plan.phases_of(arm) if phase.restores}
    return ANSWER + (int(job.w.seed) == job.plan.seeds[0]) if job.w.noise in restored else TRAINING


def _of_arm(job: Job) -> int:
    """The priority of what the first answer needs of an arm; 0 of an arm that it does not need."""
    if not job.plan.trains or job.arm not in first_arms(job.plan):
        return 0
    return ANSWER + (int(job.w.seed) == job.plan.seeds[0])
