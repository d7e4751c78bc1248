"""submission: what Snakemake's plugin for Slurm refuses in the jobs that a profile asks for, each with the way out.

The plugin looks at a job when it submits it, which for a job with a GPU is hours into a run. Its own checks are called here.
"""

import re
from types import SimpleNamespace
from typing import Any

from workflow_scripts.run.partitions import gpus_in, gpus_of


def refusal(rule: str, job: dict[str, Any]) -> str:
    """What will be refused in a job of `rule` as it is submitted, and what to write in its place; empty if it is taken."""
    # they load much, and a run without Slurm needs none of it
    from snakemake.iocontainers import ResourceList
    from snakemake_executor_plugin_slurm.submit_string import get_submit_command
    from snakemake_executor_plugin_slurm.utils import set_gres_string
    from snakemake_executor_plugin_slurm.validation import get_forbidden_slurm_options, validate_slurm_extra
    from snakemake_interface_common.exceptions import WorkflowError

    asked = SimpleNamespace(resources=ResourceList(fromdict=job), threads=job.get("threads", 1))
    named = dict.fromkeys(("run_uuid", "slurm_logfile", "comment_str", "account", "partition", "workdir"), "")
    at = f"under set-resources: {rule} in the profile"
    extra = str(job.get("slurm_extra") or "")
    try:
        validate_slurm_extra(asked)
    except (WorkflowError, TypeError):
        found = (matched[0] for pattern in get_forbidden_slurm_options() if (matched := re.search(pattern, extra)))
        option = next(found, extra).strip("= ")
        return f"slurm_extra: Snakemake's plugin refuses {option} in it; write {_INSTEAD.get(option, 'its own key')} {at}"
    for key, others in (("gres", {"gpu_model": None}), ("gpu_model", {"gres": None})):
        alone = SimpleNamespace(resources=ResourceList(fromdict={**job, **others}))
        try:
            set_gres_string(alone)
        except (WorkflowError, TypeError):
            return f"{key}: {job[key]}: Snakemake's plugin cannot read it; write {_otherwise(key, job)} {at}"
    try:
        get_submit_command(asked, named)
    except (WorkflowError, TypeError) as error:
        return f"Snakemake's plugin refuses the job: {_plain(error)}; mend it {at}"
    return _asked_twice(job, at)


def _plain(error: Exception) -> str:
    return " ".join(str(error).split())[:240].rstrip(".")


def _otherwise(key: str, job: dict[str, Any]) -> str:
    """The keys that ask Slurm for the same as one that the plugin cannot read, as far as this is known."""
    value = str(job[key]).strip("\"' ")
    if key == "gpu_model":
        return _gpus(int(job.get("gpu") or 1), value)
    others = [kind for kind in value.split(",") if kind.partition(":")[0] != "gpu"]
    gpus = [_gpus(number, model) for model, number in gpus_in(value).items()]
    # --gres may stand but once in a command, and is not taken in slurm_extra
    kept = [f"gres: {kind}" for kind in others[:1]] if len(others) < 2 else [f"one of them alone (gres: {others[0]})"]
    return " and ".join([*kept, *gpus])


def _gpus(number: int, model: str) -> str:
    """The keys that ask for GPUs. The plugin reads no hyphens in a model's name; and a name of digits alone is a number for it."""
    if re.fullmatch(r"[\w.]+", model) and not model.isdigit():
        return f"gpu: {number} and gpu_model: {model}"
    return f"gpu: 0 and {_AS_OPTION.format(model=model, number=number)}" if model else f"gpu: {number}"


_AS_OPTION = 'slurm_extra: "--gpus-per-node={model}:{number}"'

_GPUS = f"gpu: NUMBER and gpu_model: MODEL; or for a model with a hyphen gpu: 0 and {_AS_OPTION.format(model='MODEL', number='NUMBER')}"
_INSTEAD = {
    **{"--gres": f"gres: NAME:NUMBER, and for GPUs {_GPUS},", "--gpus": f"{_GPUS},"},
    **dict.fromkeys(("--account", "-A"), "slurm_account: NAME"),
    **dict.fromkeys(("--partition", "-p"), "slurm_partition: NAME"),
    **dict.fromkeys(("--time", "-t"), "runtime: MINUTES"),
    **dict.fromkeys(("--constraint", "-C"), "constraint: NAME"),
    **dict.fromkeys(("--nodes", "-N"), "nodes: 1"),
    **dict.fromkeys(("--ntasks", "-n"), "tasks: NUMBER"),
    **dict.fromkeys(("--cpus-per-task", "-c"), "cpus_per_task: NUMBER"),
    **{"--cpus-per-gpu": "cpus_per_gpu: NUMBER", "--ntasks-per-gpu": "tasks_per_gpu: NUMBER", "--clusters": "clusters: NAME"},
    **{"--mem": "mem_mb: NUMBER", "--mem-per-cpu": "mem_mb_per_cpu: NUMBER", "--qos": "qos: NAME"},
}
"""An option that the plugin refuses in `slurm_extra`, and its own key for it."""


def _asked_twice(job: dict[str, Any], at: str) -> str:
    """That GPUs are asked for in two ways, which the plugin passes on; Slurm refuses GPUs with and without a model in one job."""
    number, model = gpus_of({**job, "gpu": 0, "gpu_model": ""})
    if not number or not (job.get("gpu") or job.get("gpu_model")):
        return ""
    key = "gres" if gpus_in(str(job.get("gres") or "")) else "slurm_extra"
    return f"gpu: GPUs are asked for by {key}, too ({number} {model}".rstrip() + f"), and Slurm refuses such a job; write gpu: 0 {at}"
