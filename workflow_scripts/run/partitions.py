"""partitions: whether Slurm can place the jobs that a profile asks for, and whether there is a GPU here.

A job that asks for more than any node of its partition has would wait for ever, or be refused hours into the run.
"""

import functools
import getpass
import math
import os
import re
from collections.abc import Callable
from typing import Any, NamedTuple

from workflow_scripts.stage import InputError, output_of


class Nodes(NamedTuple):
    """Nodes of one kind in a partition."""

    minutes: float
    cpus: int
    megabytes: int
    gpus: dict[str, int]
    """Model (empty where Slurm does not know it) → number."""


def read_partitions() -> dict[str, list[Nodes]] | None:
    """Partition → its kinds of nodes, as sinfo tells; None where it does not answer."""
    if (listed := output_of("sinfo", "--noheader", "--exact", "--format", "%R|%l|%c|%m|%G")) is None:
        return None
    partitions: dict[str, list[Nodes]] = {}
    for line in listed.splitlines():
        name, limit, cpus, megabytes, gres = line.split("|")
        nodes = Nodes(minutes(limit), int(cpus.strip("+")), int(megabytes.strip("+")), gpus_in(gres))
        partitions.setdefault(name, []).append(nodes)
    return partitions


def read_accounts() -> set[str] | None:
    """The accounts that this user may charge, as sacctmgr tells; None on a cluster without accounting."""
    accounts = output_of("sacctmgr", "--noheader", "--parsable2", "show", "associations", f"user={getpass.getuser()}", "format=account")
    return None if accounts is None else set(accounts.split())


def check_job(rule: str, job: dict[str, Any], partitions: dict[str, list[Nodes]]) -> str:
    """The partition that a job of `rule` can run in. Raises `InputError` that names what it asks too much of."""
    named = [name for name in str(job.get("slurm_partition", "")).split(",") if name]
    if unknown := [name for name in named if name not in partitions]:
        raise InputError(f"there is no partition {unknown[0]!r}; set slurm_partition in the profile to one of {', '.join(partitions)}")
    if int(job.get("nodes", 1)) > 1:
        raise InputError(
            f"nodes {job['nodes']}: Snakemake's plugin starts a job on one node alone; set nodes: 1 and as many GPUs as a node has, "
            "or train on several nodes by a job of your own (docs/slurm.md)"
        )
    where = ",".join(named) or "any partition"
    nodes = [node for name in named or partitions for node in partitions[name]]
    (gpus, model), (cpus, by_cpus), (megabytes, by_megabytes) = gpus_of(job), cpus_of(job), megabytes_of(job)
    needs: list[tuple[str, int, Callable[[Nodes], float]]] = [
        ("runtime", int(job.get("runtime") or 0), lambda node: node.minutes),
        (by_cpus, cpus, lambda node: node.cpus),
        (by_megabytes, megabytes, lambda node: node.megabytes),
        (f"GPUs {model}".rstrip(), gpus, lambda node: sum(n for name, n in node.gpus.items() if model.lower() in ("", name.lower()))),
    ]
    for what, value, has in needs:
        if not (fitting := [node for node in nodes if has(node) >= value]):
            models = sorted({name for node in nodes for name in node.gpus if name}) if what.startswith("GPUs ") else []
            known = f"; its models are {', '.join(models)}" if models else ""
            key = "set-threads" if what == "threads" else "set-resources"
            raise InputError(
                f"{what} {value} is more than {where} has ({max(map(has, nodes)):g}{known}); "
                f"ask for less under {key}: {rule} in the profile, or take another partition"
            )
        nodes = fitting
    return where


def gpus_of(job: dict[str, Any]) -> tuple[int, str]:
    """How many GPUs of a node a job asks for, and of which model: by `gpu` and `gpu_model`, by `gres`, or by an option in `slurm_extra`."""
    by_option = [(model or "", int(number)) for model, number in _GPUS_OPTION.findall(str(job.get("slurm_extra") or ""))]
    found = [*by_option, *gpus_in(str(job.get("gres") or "")).items()]
    if int(job.get("gpu") or 0) or job.get("gpu_model") or not found:
        return int(job.get("gpu") or bool(job.get("gpu_model"))), str(job.get("gpu_model") or "")
    return found[0][1], found[0][0]


_GPUS_OPTION = re.compile(r"(?:--gpus-per-(?:node|task|socket)[=\s]\s*|-G\s*)(?:([^\s:=]+):)?(\d+)\b")
"""The options that ask Slurm for GPUs and that its plugin for Snakemake leaves to `slurm_extra`."""


def cpus_of(job: dict[str, Any]) -> tuple[int, str]:
    """How many CPUs a job asks for, and by which key, as Snakemake's plugin reads it.

    A negative number leaves it to Slurm, which gives one.
    """
    if of_task := _whole(job, "cpus_per_task"):
        return max(1, of_task), "cpus_per_task"
    # which the plugin leaves out of a job whose GPUs are asked for in `slurm_extra`
    if (of_gpu := _whole(job, "cpus_per_gpu")) and gpus_of({**job, "slurm_extra": ""})[0]:
        return max(1, of_gpu * gpus_of(job)[0]), "cpus_per_gpu × GPUs"
    return int(job.get("threads", 1)), "threads"


def megabytes_of(job: dict[str, Any]) -> tuple[int, str]:
    """How many megabytes of its node a job asks for, and by which key; 0 where it names none."""
    if of_cpu := _whole(job, "mem_mb_per_cpu"):
        return of_cpu * cpus_of(job)[0], "mem_mb_per_cpu × CPUs"
    return int(job.get("mem_mb") or 0), "mem_mb"


def _whole(job: dict[str, Any], key: str) -> int:
    """The whole number under a key; 0 for what the plugin refuses there, of which `submission` tells."""
    value = job.get(key)
    return value if isinstance(value, int) else 0


def gpus_in(gres: str) -> dict[str, int]:
    """Model → number of GPUs in a list like ``gpu:a100:4(S:0-1),gpu:2``; the model is empty where none is named."""
    found: dict[str, int] = {}
    for entry in re.sub(r"\(.*?\)", "", gres).split(","):
        kind, *rest = entry.split(":")
        if kind == "gpu":
            number = int(rest.pop()) if rest and rest[-1].isdigit() else 1
            model = rest[0] if rest else ""
            found[model] = found.get(model, 0) + number
    return found


def minutes(limit: str) -> float:
    """A time limit as sinfo writes it (``days-hours:minutes:seconds``, ``infinite``) in minutes."""
    if not limit[:1].isdigit():
        return math.inf
    days, _, clock = limit.rpartition("-")
    hours, whole, seconds = ([0, 0, *map(int, clock.split(":"))])[-3:]
    return 1440 * int(days or 0) + 60 * hours + whole + seconds / 60


class Card(NamedTuple):
    """A GPU of this machine."""

    size: float
    """Its memory in bytes."""
    names: tuple[str, ...] = ()
    """Its number in the order of the slots, and its UUID."""


@functools.cache
def gpu_here() -> float:
    """The memory in bytes of the GPU that this run has, of several the smallest; 0 where there is none, or it is hidden from this run.

    A GPU that says no number shares the machine's memory, as NVIDIA's GB10 does.
    """
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    if named in ("", "-1", "NoDevFiles"):
        return 0.0
    answer = output_of("nvidia-smi", "--query-gpu=memory.total,index,uuid", "--format=csv,noheader,nounits") or ""
    cards = []
    for line in answer.splitlines():
        size, *names = (part.strip() for part in line.split(","))
        if size.isdigit() or size.startswith("["):
            cards.append(Card(float(size) * 2**20 if size.isdigit() else machine_memory(), tuple(names)))
    return min((card.size for card in visible(cards, named or "")), default=0.0)


def visible(cards: list[Card], named: str) -> list[Card]:
    """Those of the cards that CUDA_VISIBLE_DEVICES has `named`; all where it names none of them, or parts of cards (MIG).

    CUDA counts from the fastest card, unless CUDA_DEVICE_ORDER is PCI_BUS_ID. nvidia-smi does not tell which that is, so numbers then stand
    for as many of the largest cards.
    """
    wanted = [name.strip() for name in named.split(",") if name.strip()]
    if wanted and all(name.isdigit() for name in wanted) and os.environ.get("CUDA_DEVICE_ORDER") != "PCI_BUS_ID":
        return sorted(cards, reverse=True)[: len(wanted)]
    uuids = tuple(name for name in wanted if name.startswith("GPU-"))  # which may be cut off
    return [card for card in cards if any(name in wanted or name.startswith(uuids) for name in card.names)] or cards


def machine_memory() -> float:
    """The memory of this machine in bytes."""
    return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
