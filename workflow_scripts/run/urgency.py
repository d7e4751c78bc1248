"""urgency: which jobs go first where not all of them can run at once.

A run is asked a question, and its first answer needs two arms: the baseline, and the first arm that is no control. What these two need goes
first, with the first seed before the others: text, lexicon, trainings, decoding and scores. The controls follow. What only measures
(representations, word accuracy) fills the cores that are left.
"""

from workflow_scripts.config.configuration import Config
from workflow_scripts.run.jobs import Job
from workflow_scripts.run.schedule import ANSWER, MEASURING, SHARED, TRAINING
from workflow_scripts.tasks.experiment import arm_phases, arms_of, seeds_of, trains

__all__ = ["SHARED"]  # for rules


def first_arms(config: Config, experiment: str) -> list[str]:
    """The arms of an experiment's first answer: the baseline, and the first other arm that restores text with a noise that is no control.

    Where no arm does, it is the second arm. An experiment that only trains what others start from has none.
    """
    chosen = config.experiments[experiment]
    baseline, *others = arms_of(config, chosen) or [""]
    restored = {arm: [phase.restores for phase in arm_phases(config, chosen, arm) if phase.restores] for arm in others}
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
    chosen = job.experiment
    restored = {phase.noised for arm in first_arms(job.config, job.name) for phase in arm_phases(job.config, chosen, arm) if phase.restores}
    return ANSWER + (int(job.w.seed) == seeds_of(job.config, chosen)[0]) if job.w.noise in restored else TRAINING


def _of_arm(job: Job) -> int:
    """The priority of what the first answer needs of an arm; 0 of an arm that it does not need."""
    chosen = job.experiment
    if not trains(chosen) or job.w.arm.partition(".grid")[0] not in first_arms(job.config, job.name):
        return 0
    return ANSWER + (int(job.w.seed) == seeds_of(job.config, chosen)[0])
