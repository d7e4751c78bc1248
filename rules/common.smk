"""Snakemake's own business: the checked configuration, wildcards, and how rules ask for what their jobs read.

What a job reads, and its flags, is decided in the modules of `run/` that `run/jobs.py` names; where files are, in `workflow_scripts/config/paths.py`.
"""

import gc
import hashlib
import json
import os
import shlex
import sys
from operator import attrgetter

from snakemake.exceptions import WorkflowError
from snakemake.iocontainers import InputFiles, Wildcards
from snakemake.settings.types import DeploymentMethod

from workflow_scripts import lazily
from workflow_scripts.stage import ROOT

lazily.put_off()  # of the stages only the settings are read here
gc.disable()  # what is imported stays, so there is nothing to collect

from workflow_scripts import plugins, registry
from workflow_scripts.config import paths
from workflow_scripts.config.analyses import layerwise
from workflow_scripts.evidence.comet import Comet
from workflow_scripts.models import foreign_code
from workflow_scripts.names import instead
from workflow_scripts.run import analyses, arms, backbone_inputs, bridges, head_inputs, lexicon_inputs, report_inputs
from workflow_scripts.run import searches, text_inputs, transfer_comparisons, urgency
from workflow_scripts.run.config import UNRECORDED, check_folder, check_record, dumped, load
from workflow_scripts.run.uses import missing_files
from workflow_scripts.run.digest import digest
from workflow_scripts.run.locks import leave_locks_of_others
from workflow_scripts.run.jobs import as_json, flags, jobs_of
from workflow_scripts.run.config_files import check_files, located, with_nulls
from workflow_scripts.run.partitions import gpu_here
from workflow_scripts.stage import InputError, atomic, resource
from workflow_scripts.tasks.plan import Plans
from workflow_scripts.text.files import missing_file

if workflow.modifier.path_modifier.prefix:
    raise WorkflowError("Crossgap cannot be used as a module with `prefix`: its stages write under results/ of the working directory")
try:
    # as a module, Crossgap is given its configuration by the other workflow, whose files are that workflow's business
    files = workflow.configfiles if workflow.modifier.is_main_snakefile() else []
    # config.yaml, which the Snakefile names, is the last of them, and those of the command line lie over it
    files = [*files[-1:], *files[:-1]]
    check_files(files)
    ours = workflow.config_settings.config
    CONFIG = load(with_nulls(config, ours), files, ours)
    PLANS = Plans(CONFIG)
    # Snakemake asks for a missing file only where what is made of it is missing, too: a wrong path would leave results of the old text.
    # Preflight tells it with all else that is wrong, and as a module the other workflow may have a rule that makes the file.
    FORCED = bool({"--forceall", "-F"} & {*sys.argv})
    alone = workflow.is_main_process and workflow.modifier.is_main_snakefile()
    if alone and "preflight" not in sys.argv and (missing := missing_files(PLANS)):
        raise InputError(located("config:\n" + "\n".join(f"  {where}: {missing_file(path)}" for where, path in missing), files, ours))
    if alone:
        check_folder()
    if alone and not FORCED and "--unlock" not in sys.argv:
        check_record(CONFIG, goes_on=not {"-n", "--dry-run", "--dryrun", "preflight"} & {*sys.argv})
    if alone:
        leave_locks_of_others("--unlock" in sys.argv)
except InputError as error:
    raise WorkflowError(str(error)) from None
finally:
    gc.enable()


# Rules call `python -m workflow_scripts.<room>.<stage>` from whatever working directory; each stage loads the plugins.
TRUSTED = any(backbone.trust_remote_code for backbone in CONFIG.backbones.values())
PLUGINS = [os.path.abspath(name) if name.endswith(".py") else name for name in CONFIG.plugins]
BROUGHT = shlex.quote(json.dumps(PLUGINS)).replace("{", "{{").replace("}", "}}")  # Snakemake fills in what stands in braces
# No module of the run's folder, such as a random.py, stands in for one of Python's. As a module, Crossgap leaves the scripts of the other
# workflow the modules that lie beside them: its commands have this prefix, too.
SAFE = "PYTHONSAFEPATH=1 " if workflow.modifier.is_main_snakefile() else ""
shell.prefix(
    f'export {SAFE}PYTHONPATH="{ROOT}${{{{PYTHONPATH:+:$PYTHONPATH}}}}" TOKENIZERS_PARALLELISM=false '
    f"{f'{plugins.VARIABLE}={BROUGHT}' if PLUGINS else ''}{f' {foreign_code.VARIABLE}=1' if TRUSTED else ''}; "
)


# Without a cluster all jobs find the same GPU, so one of those that use it runs at a time. On Slurm the profile says what each asks for.
GPU = int(bool(workflow.is_main_process and workflow.resource_settings.nodes is None and gpu_here()))
if GPU and "gpu" not in workflow.global_resources:
    workflow.register_resource("gpu", 1)
# Decoding comes after the trainings, and would end them with an error. (With --sdm conda it has another Python than this one.)
if GPU and "preflight" not in sys.argv and DeploymentMethod.CONDA not in workflow.deployment_settings.deployment_method:
    from workflow_scripts.run.model_findings import gpu_decoding  # torch takes seconds to import

    for finding in gpu_decoding(PLANS, {}):
        if finding.verdict == "WRONG":
            raise WorkflowError(finding.said)


job_of = jobs_of(PLANS)


def of(ask, *more):
    """What `ask` answers for a job, a function of the modules of `run` or a getter: an input function or a parameter of a rule."""

    def answer(wildcards):
        try:
            return ask(job_of(wildcards), *more)
        except InputError as error:
            raise WorkflowError(str(error)) from None

    return answer


def unrecorded(ask):
    """What `ask` answers for a job, as a parameter that a rule did not always have.

    Snakemake records parameters of the wildcards alone, and would make anew all that was made before it recorded this one.
    """
    return lambda wildcards, input: of(ask)(wildcards)


def settings_of(key):
    """The block that the wildcards' experiment has under `key`, as JSON."""
    return lambda wildcards: as_json(getattr(CONFIG.experiments[wildcards.experiment], key))


def analysis_settings(stage):
    """The block that the wildcards' analysis has for a stage, as JSON."""
    return lambda wildcards: as_json(getattr(CONFIG.analyses[wildcards.analysis], stage))


def experiments_with(**wanted):
    """A pattern of the experiments whose task says what is wanted: `name="classification"`, `answers="text"`."""
    tasks = {plan.name: plan.task for plan in PLANS.experiments.values()}
    return either([name for name, task in tasks.items() if all(getattr(task, key) == value for key, value in wanted.items())])


def either(names):
    """A pattern of these names; nothing matches where there are none."""
    return "|".join(names) or "(?!)"


wildcard_constraints:
    data=r"[\w-]+",
    suffix=r"\.(txt|tsv|jsonl|json|conllu)(\.(gz|xz|zst))?",
    corpus=r"[\w-]+",
    labelled=r"[\w-]+",
    lexicon=r"[\w-]+",
    backbone=r"[\w-]+",
    analysis=r"[\w-]+",
    experiment=r"[\w-]+",
    arm=r"[\w-]+(\.grid\d+)?",
    testset=r"[\w-]+(@[\w-]+)?",
    seed=r"\d+",
    lang=r"[a-z]{2,3}",
    a=r"[a-z]{2,3}",
    b=r"[a-z]{2,3}",
    part=r"dev|test/[\w-]+",
    labelled_part=r"train|dev|(test|translations|more_dev)/[\w-]+",
    aligned=r"[\w-]+",
    aligned_part=r"(dev|test)/[\w-]+",
    noise=r"[\w-]+(\.[\w-]+){0,2}(@[\w-]+)?",
    phase=r"pretext|finetune|\d+-[\w-]+",


def acquired_sources(wildcards):
    """What data are made of; the date of mtdata's environment does not count."""
    found = of(text_inputs.data_sources)(wildcards)
    return {name: ancient(path) if name == "environment" else path for name, path in found.items()}


def own_environment(wildcards):
    """COMET's environment; with `--sdm conda` the rule runs in one that Snakemake has made."""
    by_snakemake = DeploymentMethod.CONDA in workflow.deployment_settings.deployment_method
    return {} if by_snakemake else {"environment": "results/environments/comet.json"}


def requested():
    """For each rule threads and resources of a job's first attempt, memory of its last, and its group, as the profile has them.

    And what is wrong with the profile: rule → why. And the rules of which only a job knows what it asks for. There are no jobs where all
    runs here.
    """
    jobs, wrong, unread = {}, {}, []
    for one in workflow.rules:
        if one.norun or workflow.is_local(one):
            continue
        try:
            asked, last = (
                dict(one.expand_resources(Wildcards(), InputFiles(), attempt).items()) for attempt in (1, 1 + (one.restart_times or 0))
            )
        except WorkflowError as error:
            why = " ".join(str(error).partition("\nWildcards:")[0].replace("Error:\n  WorkflowError:\n", "").split())
            if "'Wildcards' object" in why:  # which only a job has
                unread.append(one.name)
            else:
                wrong[one.name] = f"{why}; a runtime is a number of minutes, or a text such as 1d, and mem_mb a number"
            continue
        plain = {name: value for name, value in asked.items() if not name.startswith("_")}
        memory = {f"last_{name}": last.get(name, 0) for name in ("mem_mb", "mem_mb_per_cpu")}
        jobs[one.name] = {"threads": asked["_cores"], **plain, **memory, "group": one.group}
    known = [one.name for one in workflow.rules]
    for option, named in (
        ("set-resources", workflow.resource_settings.overwrite_resources),
        ("set-threads", workflow.resource_settings.overwrite_threads),
        ("groups", workflow.group_settings.overwrite_groups),
    ):
        for name in set(named) - set(known):
            wrong[name] = f"{option} names a rule that is not there{instead(name, known)}"
    return jobs, wrong, unread


def preflight():
    """Say what is right and wrong with the run; end Snakemake if something is."""
    from workflow_scripts.run.preflight import look_at, tell
    from workflow_scripts.run.resources import trainings_at_once

    try:
        jobs, wrong, unread = requested()
        on_cluster = workflow.resource_settings.nodes is not None
        places = workflow.resource_settings.nodes if on_cluster else workflow.resource_settings.cores
        shared = workflow.global_resources["gpu"] if (GPU or on_cluster) and "gpu" in workflow.global_resources else None
        at_once = trainings_at_once(PLANS, jobs, places, getattr(shared, "value", shared))
        tell(look_at(PLANS, jobs, wrong, unread, at_once))
    except InputError as error:
        sys.exit(f"error: {error}")
