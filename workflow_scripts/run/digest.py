"""digest: explains at the end of a run that stopped what went wrong.

Snakemake's log says which jobs failed for good, and each job's own log says why. From both this makes a
few lines for every job: what it was, why it failed, what to change, the end of its log; and the command
that goes on.
"""

import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from workflow_scripts import registry
from workflow_scripts.config.configuration import Config
from workflow_scripts.config.experiments import task_name
from workflow_scripts.run.processes import as_called


class Failure(NamedTuple):
    """A job that failed and was not tried again."""

    rule: str
    wildcards: dict[str, str]
    message: str
    """Snakemake's or Slurm's message about its end."""
    logs: list[str]
    """Its own log first, then Slurm's."""
    grouped: bool
    """Whether it was submitted with others as one Slurm job."""

    def __str__(self) -> str:
        which = ", ".join(f"{key} {value}" for key, value in self.wildcards.items())
        return f"{self.rule} ({which})" if which else self.rule


def digest(logs: Sequence[str], arguments: Sequence[str], config: Config | None = None) -> str:
    """The text to print when a run has stopped.

    `logs` are Snakemake's log files, `arguments` is what it was called with, `config` is what it was configured with.
    """
    arguments = as_called(arguments)
    failed = failures("".join(Path(log).read_text(encoding="utf-8", errors="replace") for log in logs))
    parts = [f"──── {len(failed)} job{'s' if len(failed) > 1 else ''} failed ────" if failed else "──── the run stopped ────"]
    parts += [section(failure, arguments, config) for failure in failed[:_MOST]]
    if more := failed[_MOST:]:
        parts.append(f"and {len(more)} more: {'; '.join(map(str, more))}")
    parts.append(
        f"To go on: {shlex.join(['snakemake', *arguments])}\nWhat is finished stays, and training continues from its last checkpoint."
    )
    return "\n\n".join(parts)


_MOST = 6
"""Number of failed jobs that are described; the others are only named."""


def section(failure: Failure, arguments: Sequence[str], config: Config | None = None) -> str:
    """The lines about one job."""
    why, way = diagnose(failure, arguments, config)
    lines = [str(failure), f"  why     {why}", f"  change  {way}"]
    log = next((log for log in failure.logs if end_of(log, 1)), None)
    if log is None:
        return "\n".join([*lines, *(f"  log     {log}, which is empty or not there" for log in failure.logs[:1])])
    # the way out may quote the log's error message, which is then left out of the end of the log
    shown = [line for line in end_of(log, 8) if line.removeprefix("error: ") not in way]
    lines += [f"  log     {log}{', which ends:' if shown else ''}", *(f"          │ {line[:240]}" for line in shown)]
    return "\n".join(lines)


# ---------------------------------------------------------------------------------------------
# which jobs failed

_EVENT = re.compile(
    r"^(?P<indent> *)(?:local)?(?P<kind>rule|Error in rule) (?P<rule>\w+):\n"
    # of a job that Slurm refused, the message has lines of its own
    r"(?P<block>(?:(?P=indent)    message: (?:.*\n)*?(?=(?P=indent)    jobid: ))?(?:(?P=indent) +.*\n)*)"
    r"|^(?P<late>MissingOutputException) in rule (?P<late_rule>\w+) .*\nJob (?P<late_job>\d+) "
    r"|^Trying to restart job (?P<again>\d+)\."
    r"|^Finished jobid: (?P<finished>\d+)"
    r"|^ +message: Error in (?P<group>group) .*\n(?: +log: (?P<group_log>.*) \(check)?"
    r"|^Command '(?P<command>.*)' (?P<status>died with <Signals\.\w+|returned non-zero exit status \d+)",
    flags=re.MULTILINE,
)
_PASTED = re.compile(r"^(?P<indent> *)Logfile .*:\n(?P<rule>(?P=indent)=+\n)(?:.*\n)*?(?P=rule)", flags=re.MULTILINE)
"""The log of a failed job, which `show-failed-logs` puts into Snakemake's own; it may tell of a Snakemake's failed jobs itself."""


def failures(text: str) -> list[Failure]:
    """The jobs that failed and were not tried again, according to Snakemake's log."""
    begun: dict[str, dict[str, str]] = {}
    failed: dict[str, Failure] = {}
    statuses: dict[str, str] = {}
    group_logs: list[str] = []
    group_said = ""
    for event in _EVENT.finditer(_PASTED.sub("", text)):
        if event["status"]:
            statuses[event["command"]] = event["status"]  # the error comes later; another job's may come between
        elif event["group"]:
            group_logs = event["group_log"].split(", ") if event["group_log"] else []
            # Snakemake does not say why
            group_said = "Slurm did not take the group's job" if "SLURM run ID: " in text and not group_logs else ""
        elif event["late"]:
            job = event["late_job"]
            failed[job] = _failure(event["late_rule"], begun.get(job, {}), begun.get(job, {}), event["late"])
        elif job := event["again"] or event["finished"]:
            failed.pop(job, None)
        else:
            fields = dict(re.findall(rf"^{event['indent']}    ([\w-]+): (.*)$", event["block"], flags=re.MULTILINE))
            if message := re.match(rf" *message: (.*?)\n{event['indent']}    jobid: ", event["block"], flags=re.DOTALL):
                fields["message"] = message[1]
            job = fields.get("jobid", "")
            if event["kind"] == "Error in rule":
                shell = re.search(r"^ +shell:\n +(.*)$", event["block"], flags=re.MULTILINE)
                status = next((s for command, s in reversed(statuses.items()) if shell and shell[1] in command), "")
                group = (group_said or status, group_logs) if event["indent"] else (status,)
                failed[job] = _failure(event["rule"], begun.get(job, {}), fields, *group)
            elif "resources" in fields:
                begun[job] = fields
                failed.pop(job, None)  # also if it failed as part of a group, whose number is another one
    return [failure for failure in failed.values() if not failure.grouped or is_culprit(failure)] or list(failed.values())


def _failure(rule: str, begun: dict[str, str], error: dict[str, str], status: str, group_logs: Sequence[str] | None = None) -> Failure:
    which = dict(part.split("=", 1) for part in begun.get("wildcards", "").split(", ") if part)
    message = f"{error.get('message', '').removeprefix('None')} {status}".strip()
    logs = error.get("log", "").removesuffix(" (check log file(s) for error details)").split(", ")
    return Failure(rule, which, message, [*filter(None, logs), *(group_logs or ())], group_logs is not None)


def is_culprit(failure: Failure) -> bool:
    """Whether this job of a group is the one that failed. The log of the group's own Snakemake tells; else it is one that began."""
    own, *others = failure.logs
    culprits = {culprit.logs[0] for other in others for culprit in failures("\n".join(end_of(other, 1000)) + "\n") if culprit.logs}
    return own in culprits if culprits else bool(end_of(own, 1))


# ---------------------------------------------------------------------------------------------
# why, and what to change

_SIGNS = (
    # sign, why, what to change; the first that is found in the message or at the ends of the logs
    (
        r"^Job submission failed.*No such file or directory: '(sacct|sacctmgr|sbatch|scontrol|sinfo|squeue)",
        "this machine has no Slurm",
        "run on a login node of the cluster, or without --profile slurm",
    ),
    (r"^SLURM sbatch failed|^Job submission failed", "Slurm refused the job: {refusal}", "{asked}"),
    (r"^Slurm did not take the group's job", "Slurm refused the job of its group", "what `snakemake preflight{named}` names{profile}"),
    (r"^error: .*not tried again, as attempt", "the attempts before it ended in the same way as this one would", "{error}"),
    (
        r"CUDA out of memory|CUDA (?:error:|failed with error) out of memory|CUBLAS_STATUS_ALLOC_FAILED",
        "the GPU's memory did not suffice",
        "ask for a larger GPU{smaller}",
    ),
    (
        r"OUT_OF_MEMORY|oom[-_ ]?kill|Exceeded job memory limit|DefaultCPUAllocator"
        r"|can't allocate memory|Cannot allocate memory|MemoryError|std::bad_alloc|DataLoader worker .* killed by signal: Killed",
        "out of memory",
        "{memory}{smaller}",
    ),
    (
        r"DUE TO TIME LIMIT|'TIMEOUT'|the job's time is nearly over",
        "the job's time was over",
        "{time}; training goes on from its checkpoint with the same command",
    ),
    (r"\(temporary files\) has .* free", "the folder of temporary files is full", "{error}"),
    (
        r"No space left on device|Disk quota exceeded|File too large|PytorchStreamWriter failed|unexpected pos \d+ vs",
        "the disk is full, or a quota used up",
        "make room (df -h, quota), or run in a folder on another disk (--directory FOLDER, where files of your own are looked for)",
    ),
    (r"training has diverged", "training diverged", "{error} ({settings} in the configuration)"),
    (r"nor available from the Hugging Face hub", "the model is not there", "{error}"),
    (r"in use by process", "another process trains the same phase", "{error}"),
    (r"install a CUDA build of torch", "the GPU cannot be used", "{error}"),
    (r"^error: ", "bad input", "{error}"),
    (r"NODE_FAIL|node failure", "its node failed", "{again}"),
    (
        r"SIGTERM|exit status 143|CANCELLED|PREEMPTED|SIGINT|exit status 130|\bKeyboardInterrupt\b",
        "stopped from outside",
        "nothing; the same command continues the run",
    ),
    (r"SIGKILL|exit status 137", "killed; if nobody did it, the system did because memory ran out (see dmesg)", "{memory}{smaller}"),
    (r"No module named|python: command not found", "a program or package is missing", "activate the environment (README.md)"),
    (r"MissingOutputException", "its output files did not appear, usually because the file system is slow", "raise latency-wait{profile}"),
    (r"Traceback \(most recent call last\)", "an unexpected error", "see the end of the log; please report it if it is a bug"),
)


def diagnose(failure: Failure, arguments: Sequence[str], config: Config | None = None) -> tuple[str, str]:
    """Why a job failed, and what to change."""
    text = "\n".join([failure.message, *(line for log in failure.logs for line in end_of(log, 40))])
    errors = re.findall(r"^error: (.*)", text, flags=re.MULTILINE)
    where, less_memory = settings_of(failure, config)
    profile = profile_file(arguments)
    refusal, keys = refusal_of(failure.message)
    words = {
        "refusal": refusal,
        "asked": f"{keys} of {failure.rule} in {profile or 'the profile'}" if keys else "what it names; the same command continues the run",
        "again": "nothing; the same command continues the run",
        "named": f" --profile {Path(profile).parent}" if profile else "",
        "error": errors[-1] if errors else "",
        "settings": where,
        "smaller": f", or {less_memory} in the configuration" if less_memory else "",
        "profile": f" in {profile}" if profile else "",
        "memory": f"raise set-resources: {failure.rule}: mem_mb in {profile}" if profile else "let fewer jobs run at once (--cores)",
        "time": f"raise set-resources: {failure.rule}: runtime in {profile}" if profile else "give it more time",
    }
    for sign, why, way in _SIGNS:
        if re.search(sign, text, flags=re.MULTILINE):
            return why.format(**words), way.format(**words)
    return "not known", "look at the log"


_REFUSALS = (
    # what the plugin or sbatch says, what asked for it
    (r"'slurm_extra' parameter", "slurm_extra"),
    (r"GPU model format", "gpu_model"),
    (r"GRES format", "gres"),
    (r"with and without type identification", "gpu, gpu_model, gres, slurm_extra (GPUs are asked for by several of them)"),
    (r"'nodes' must be", "nodes"),
    (r"cpus_per_(task|gpu) must be", "cpus_per_task, cpus_per_gpu"),
    (r"For MPI jobs", "mpi, tasks, tasks_per_node"),
    (r"MaxSubmit", "jobs"),
    (r"accounting/QOS policy|QOS(Max|Grp)|Assoc", "mem_mb, gpu, runtime, jobs"),
    (r"account", "slurm_account"),
    (r"qos specification", "slurm-qos"),
    (r"time limit", "runtime"),
    (r"memory", "mem_mb"),
    (r"gres|gpu", "gpu, gpu_model, gres"),
    (r"partition", "slurm_partition"),
    (r"CPU|processors", "set-threads"),
    (r"node configuration", "mem_mb, gpu, gpu_model, set-threads"),
)


def refusal_of(message: str) -> tuple[str, str]:
    """What sbatch, or the plugin's check of the account, said of a job that was not taken, and the profile's keys that asked for it."""
    answer = re.split(r"\n    sbatch call:|For further error details", message)[0]
    answer = re.sub(r"^(SLURM sbatch failed\. The error message was|Job submission failed with exception:) ", "", answer).strip("'. \n")
    reasons = "; ".join(line.removeprefix("sbatch: error: ").strip() for line in answer.splitlines())
    # the last line is sbatch's verdict; what stands before it may be a site's own words
    for words in (reasons.rpartition("; ")[2], reasons):
        if keys := next((keys for sign, keys in _REFUSALS if re.search(sign, words, flags=re.IGNORECASE)), None):
            return reasons[:240], keys
    return reasons[:240], ""


def settings_of(failure: Failure, config: Config | None = None) -> tuple[str, str]:
    """The key of a job's settings in the configuration, and what to do with which key so that the job needs less memory.

    The second is empty where no setting makes the job need less.
    """
    experiment = f"experiments.{failure.wildcards.get('experiment', '…')}"
    if failure.rule == "backbone":
        name = failure.wildcards.get("backbone", "…")
        kind = config.backbones[name].kind if config and name in config.backbones else "small"
        block = f"backbones.{name}.{kind}.training"
        # other kinds are loaded, converted or an arm's, and not trained
        return (block, f"set {block}.micro_batch_tokens") if kind in ("small", "continued") else (f"backbones.{name}", "")
    if analysis := registry.entries("analysis").get(failure.wildcards.get("measure", failure.rule)):
        block = f"analyses.{failure.wildcards.get('analysis', '…')}.{failure.rule}"
        return block, f"lower {block}.{analysis.lowers_memory}" if analysis.lowers_memory else ""
    known = config.experiments.get(failure.wildcards.get("experiment", "")) if config else None
    tasks = [registry.entry("task", task_name(known))] if known else registry.entries("task").values()
    keys = {rule: key for task in tasks for rule, key in task.rules.items()}
    if (key := keys.get(failure.rule)) is None:
        return f"{experiment}.{failure.rule.partition('_')[0]}", ""
    verb = "set" if "micro_batch" in key else "lower"
    return f"{experiment}.{key.rpartition('.')[0]}", f"{verb} {experiment}.{key}"


def profile_file(arguments: Sequence[str]) -> str:
    """The file of the profile that Snakemake was called with; empty without one."""
    named = re.findall(r"--profile[= ](\S+)", " ".join(arguments))
    return f"{named[-1].rstrip('/')}/config.yaml" if named else ""


_BAR = re.compile(r"[^\r\n]*?\d+%\|[^|\r\n]*\| [^\[\r\n]*\[[^\]\r\n]*\]")
"""A bar of progress, which says nothing of why a job failed; what follows on its line may do."""


def end_of(log: str, lines: int) -> list[str]:
    """The last lines of a log that are not blank; none if there is no log."""
    try:
        with open(log, "rb") as file:
            file.seek(0, 2)
            file.seek(max(0, file.tell() - (1 << 20)))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return []
    text = _TORCHRUN.sub(lambda report: report["signal"] or "", text)
    return [line for line in _BAR.sub("", text).splitlines() if line.strip()][-lines:]


_TORCHRUN = re.compile(
    r"^[EWI]\d{4} \S+ \d+ (?:\S*/)?torch/distributed/elastic/.*\n"
    r"|^Traceback \(most recent call last\):\n(?: .*\n)*torch\.distributed\.elastic\..*ChildFailedError.*\n=+\n(?:.*\n)*?"
    r"Root Cause .*\n(?:.*\n)*?  traceback : (?P<signal>Signal .*)?(?:.*\n)*?=+$",
    flags=re.MULTILINE,
)
"""What torchrun adds below the last words of the process that failed; of all that, only a signal that killed it is news."""
