"""findings: what a look at the things that a run needs has to say, what the run uses, and the looks at its experiments.

Those at data and text are in `text_findings`, `labelled_findings` and `lexicon_findings`, those at models and what runs them in
`model_findings`.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from workflow_scripts import plugins
from workflow_scripts.config.configuration import Config
from workflow_scripts.config.phases import Phase
from workflow_scripts.run.arms import trained_arms
from workflow_scripts.run.uses import bitext_used
from workflow_scripts.stage import ROOT, InputError
from workflow_scripts.tasks.crosslingual import crosslingual_lexicons, is_learnt
from workflow_scripts.tasks.experiment import phase_training
from workflow_scripts.tasks.plan import BackbonePlan, Plan, Plans
from workflow_scripts.tasks.translation import translations
from workflow_scripts.training.settings import Training

Requested = dict[str, dict[str, Any]]
"""Rule → threads and resources of a job's first attempt, as Snakemake and its Slurm plugin call them.

`last_mem_mb` is the memory of its last attempt, `group` the pattern of the name under which it is submitted with other rules.
"""


def on_slurm(jobs: Requested) -> bool:
    """Whether jobs are for a cluster, and not for this machine."""
    return any("slurm_partition" in job for job in jobs.values())


class Finding(NamedTuple):
    """The result of one check."""

    verdict: str
    """`ok`, `note` (nothing is wrong, but read it) or `WRONG`."""
    about: str
    """A key of the configuration or the profile, or a part of the machine."""
    said: str

    def __str__(self) -> str:
        return f"{self.verdict:<5}  {self.about}: {self.said}"


def judged(about: str, look: Callable[..., str], *arguments: Any, verdict: str = "ok") -> Finding:
    """What `look` says, or the `InputError` that it raises."""
    try:
        return Finding(verdict, about, look(*arguments))
    except InputError as error:
        return Finding("WRONG", about, str(error))


def gigabytes(size: float) -> str:
    """A number of bytes for people."""
    return f"{size / 1e9:.{0 if size >= 1e10 else 1}f} GB" if size >= 5e7 else f"{size / 1e6:.0f} MB"


def is_awaited(*paths: str) -> bool:
    """Whether one of these is acquired, or made, only when the run begins."""
    return any(path.startswith(("results/data/", "results/lexicons/", "results/corpora/")) and not Path(path).exists() for path in paths)


# ---------------------------------------------------------------------------------------------
# what the run uses


def translated(plans: Plans) -> list[Plan]:
    """The experiments on parallel corpora that the run needs, those too that only train what a backbone or an analysis is made of."""
    return [plan for plan in translations(plans) if plan in plans.needed]


def with_labels(plans: Plans) -> list[Plan]:
    """The run's experiments whose text has labels."""
    return [plan for plan in plans.of_run if plan.task.text == "labelled"]


def used_lexicons(plans: Plans) -> list[tuple[str, str]]:
    """Corpus and lexicon, each pair once."""
    used = [(plan.lexicon_corpus(name), name) for plan in translated(plans) for name in plan.lexicons]
    learnt = {name: plans.config.lexicons[name] for name in crosslingual_lexicons(plans)}
    return list(dict.fromkeys([*used, *((str(block.corpus), name) for name, block in learnt.items() if is_learnt(block))]))


def used_corpora(plans: Plans) -> list[str]:
    """The experiments' corpora, those that phases before a task read, and those of lexicons and of pretrained backbones."""
    learnt_from = [*(corpus for corpus, _ in used_lexicons(plans)), *bitext_used(plans)]
    own = [name for plan in translated(plans) for name in (plan.corpus, *plan.settings.together_with)]
    own += [name for plan in plans.needed for name in plan.corpora_read]
    return list(dict.fromkeys([*own, *learnt_from]))


def masked_phases(backbone: BackbonePlan) -> list[str]:
    """The phases of arms in which the backbone, or one that is made from it, restores text with masks."""
    return [
        f"arms.{arm} ({phase.data})"
        for plan in backbone.plans.needed
        for arm, phase in plan.phases_of_arms(trained_arms(plan))
        if backbone in plan.backbone_of(arm).chain
        if phase.restores and phase.restores.masks
    ]


# ---------------------------------------------------------------------------------------------
# the experiments


def experiments(config: Config) -> Iterator[Finding]:
    """What is run; an overlay that defines experiments and asks for none of them would have config.yaml's run, without a word."""
    wanted = config.run.experiments
    shipped = yaml.safe_load((ROOT / "config.yaml").read_text(encoding="utf-8"))["experiments"]
    added = [name for name in config.experiments if name not in shipped]
    if added and not {*added} & {*wanted}:
        names = f"{', '.join(added)} {'are' if len(added) > 1 else 'is'} defined, but not run"
        yield Finding("note", "run.experiments", f"{names}; run {'are' if len(wanted) > 1 else 'is'} {', '.join(wanted)}")
    elif wanted:
        yield Finding("ok", "run.experiments", ", ".join(wanted))


def brought() -> Iterator[Finding]:
    """What each plugin brings, and one that makes every job load a library which takes seconds."""
    for plugin in plugins.loaded().values():
        brings = ", ".join(f"{kind} {name}" for kind, name in plugin.entries) or "what came with another module of its package"
        if plugin.heavy:
            way_out = "import it inside the functions that need it, since each job loads the plugin"
            yield Finding("note", f"plugin {plugin.name}", f"brings {brings}; it imports {plugin.heavy[0]} when it is loaded: {way_out}")
        else:
            yield Finding("ok", f"plugin {plugin.name}", f"brings {brings}")


def not_trained(plans: Plans) -> Iterator[Finding]:
    """Arms on a plugin's noise or objective that nothing trains: to define an arm is not to run it."""
    ours = {name: plugin.name for plugin in plugins.loaded().values() for kind, name in plugin.entries if kind in ("noise", "objective")}
    trained = {arm for plan in plans.needed for arm in (*plan.arms, *trained_arms(plan))}
    for arm, phases in plans.config.arms.items():
        if arm not in trained and (used := [phase.data for phase in phases if phase.data in ours]):
            way_out = "name it in run.arms, and in the `arms` of an experiment that lists its own"
            said = f"trains on {used[0]}, which the plugin {ours[used[0]]} brings, and is not run; {way_out}"
            yield Finding("note", f"arms.{arm}", said)


def left_out(plans: Plans) -> Iterator[Finding]:
    """Experiments on a backbone of the run that are not selected: all on it would be trained anew, if one of them were added later."""
    shipped = yaml.safe_load((ROOT / "config.yaml").read_text(encoding="utf-8"))["experiments"]
    backbones = {name: plan.settings.backbone for name, plan in plans.experiments.items() if plan.trains}
    for backbone in dict.fromkeys(backbones[plan.name] for plan in plans.of_run if plan.trains):
        selected = [plan for plan in plans.of_run if backbones.get(plan.name) == backbone]
        chosen = {*plans.config.run.experiments, *shipped}
        if others := [name for name, own in backbones.items() if own == backbone and name not in chosen]:
            trainings = sum(len(plan.arms) * len(plan.seeds) for plan in selected)
            names = ", ".join(others[:3]) + (f" and {len(others) - 3} more" if len(others) > 3 else "")
            yield Finding(
                "note",
                "run.experiments",
                f"leaves out {names}, also on backbone {backbone}. All experiments of a run decide what a backbone knows and which "
                f"sentences are held out: add one later, and {trainings} training{'s' * (trainings > 1)} are made anew. "
                "Select all that you will want before the first run",
            )


def few_seeds(plan: Plan) -> Iterator[Finding]:
    """An experiment that asks for more seeds than the run has."""
    of_run, wanted = len(plan.config.run.seeds), getattr(plan.settings, "seeds", None)
    if isinstance(wanted, int) and wanted > of_run:
        yield Finding("note", f"{plan.where}.seeds", f"{wanted}, but run.seeds has {of_run}; name more of them there")


def few_pairs(plan: Plan) -> Iterator[Finding]:
    """Where finetuning reads a part of the text, which an experiment that is `like` the demo's has from there."""
    if pairs := plan.settings.training.pairs:
        said = f"finetuning on {plan.corpus} reads {pairs:,} pairs at most; `training: {{pairs: null}}` reads all"
        yield Finding("ok", "training.pairs", said)


def long_warmups(plan: Plan) -> Iterator[Finding]:
    """Phases that end before their learning rate has reached its peak, or just then."""
    for arm, phase, training in trained_by_updates(plan):
        if training.warmup_updates >= training.updates:
            said = f"the learning rate still rises at the last of {training.updates:,} updates of arms.{arm} ({phase.data})"
            yield Finding("note", f"{plan.where}.training.warmup_updates", f"{training.warmup_updates:,}: {said}; set a smaller one")


def unread_updates(plan: Plan) -> Iterator[Finding]:
    """An experiment that says how many updates are made, which the arms do."""
    if plan.trains and plan.settings.training.updates != Training.updates:
        said = f"{plan.settings.training.updates:,}: is not read; a phase of an arm says how many updates it makes"
        yield Finding("note", f"{plan.where}.training.updates", f"{said}; set them under `arms`")


def short_batches(plans: Plans) -> Iterator[Finding]:
    """Settings of training by which a row may be longer than a batch, which ends the training when such a row comes."""
    blocks = {backbone.where_made: backbone.settings.pretraining for backbone in plans.backbones_used}
    settings = {where: block.training for where, block in blocks.items() if block}
    for plan in plans.of_run:
        for arm, phase, training in trained_by_updates(plan):
            settings[f"arms.{arm}" if {"batch_tokens", "max_length"} & phase.training.keys() else plan.where] = training
    for where, training in settings.items():
        if training.batch_tokens < training.max_length:
            said = f"{training.batch_tokens} is less than max_length, {training.max_length}, and a row that is longer than a batch ends"
            yield Finding("note", f"{where}.training.batch_tokens", f"{said} the training; raise it, or lower max_length")


HIGHEST_RATE = 5e-4
"""The highest learning rate with which a published model is finetuned without a note."""


def high_learning_rates(plans: Plans) -> Iterator[Finding]:
    """Published models that are finetuned with a learning rate for small ones, most often taken over from the demo by `like`."""
    notes: dict[str, str] = {}
    trained = ((plan, *phase) for plan in plans.of_run for phase in trained_by_updates(plan))
    for plan, arm, phase, training in trained:
        chain = [link.settings for link in plan.backbone_of(arm).chain]
        # a new decoder, prompts, an adapter and random weights want more
        read = any(block.published for block in chain) and not any(block.kind == "converted" for block in chain)
        pretrained = read and phase.writes.decoder and phase.start == "previous" and not training.adapter
        if pretrained and training.learning_rate > HIGHEST_RATE:
            where = f"arms.{arm}" if "learning_rate" in phase.training else plan.where
            rate = training.learning_rate
            said = f"{rate} is for small models; a published one may forget with it what it has learnt. Zan et al. have 0.00003"
            notes[f"{where}.training.learning_rate"] = said
    yield from (Finding("note", about, said) for about, said in notes.items())


def trained_by_updates(plan: Plan) -> Iterator[tuple[str, Phase, Training]]:
    """Arm, phase and settings of an experiment's phases but for heads, which are trained in epochs by settings of their own."""
    return ((arm, phase, phase_training(plan.settings, phase)) for arm, phase in plan.phases if phase.updates)
