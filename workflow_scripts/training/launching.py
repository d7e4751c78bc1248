"""launching: a stage that trains is started once more under torchrun, with a process for each GPU that its job was given.

On one node torchrun needs nothing else. In a job of several nodes that the user has submitted (docs/slurm.md), `srun` starts a torchrun on
each, and these find each other on the first. Checkpoints must then be on a file system that all nodes see. Snakemake's jobs never come here
with several: its plugin removes Slurm's variables, and starts the command on one node.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys
import time
from typing import Any

import torch

from workflow_scripts.device import given_gpus
from workflow_scripts.stage import output_of
from workflow_scripts.training.checkpoints import JOB_END

# after SIGTERM, of which torchrun would by itself leave 30 s to a checkpoint of many gigabytes
_PATIENCE = ["--shutdown-timeout", "300"]

# where torchrun's processes meet, by number and at any free port: with its --standalone that is localhost and the machine's own name, which
# a container and a laptop may not know
ON_ONE_NODE = ["--rdzv-backend", "c10d", "--rdzv-endpoint", "127.0.0.1:0", "--local-addr", "127.0.0.1"]


def launch(module: str, command: str = "") -> None:
    """Run `module` with this process's arguments under torchrun, where the job was given several GPUs or nodes; else return.

    With a `command`, only where that one was called. Given by Slurm or in CUDA_VISIBLE_DEVICES: other GPUs of a workstation may be
    another job's.
    """
    arguments = sys.argv[1:]
    if "WORLD_SIZE" in os.environ or "--help" in arguments or (command and arguments[:1] != [command]):
        return
    hand_on_end()
    gpus = torch.cuda.device_count() if given_gpus() and not trains_on_cpu(arguments) else 0
    nodes = int(os.environ.get("SLURM_JOB_NUM_NODES", "1"))
    if nodes > 1:
        step = across_nodes(module, arguments, nodes, max(1, gpus), first_node(), os.environ["SLURM_JOB_ID"])
        # the counts of tasks of the Slurm step that this runs in must not reach the new step
        kept = {
            name: value for name, value in os.environ.items() if not name.startswith(("SLURM_NTASKS", "SLURM_TASKS_PER", "SLURM_CPU_BIND"))
        }
        os.execvpe(step[0], step, kept)
    elif gpus > 1:
        os.execv(sys.executable, [sys.executable, *on_one_node(module, arguments, gpus)])


def hand_on_end() -> None:
    """Ask Slurm when the job ends, for the `Deadline`: its own variable is removed by Snakemake's plugin, and older versions have none."""
    if "SLURM_JOB_ID" not in os.environ or "SLURM_JOB_END_TIME" in os.environ:
        return
    end = output_of("squeue", "--noheader", "--jobs", os.environ["SLURM_JOB_ID"], "--format", "%e") or ""
    # where it does not answer, or gives no time, the rule's own limit counts
    with contextlib.suppress(ValueError):
        os.environ[JOB_END] = f"{time.mktime(time.strptime(end.strip(), '%Y-%m-%dT%H:%M:%S')):.0f}"


def trains_on_cpu(arguments: list[str]) -> bool:
    """Whether a stage's ``--settings`` ask for ``device: cpu``; of a backbone's kinds the one that is made counts."""
    settings = settings_in(arguments)
    block = settings.get(settings.get("kind", ""), settings)
    return '"device": "cpu"' in json.dumps(block)


def settings_in(arguments: list[str]) -> dict[str, Any]:
    """What a stage's ``--settings`` say; nothing where they are not given, or are no JSON object, which `stage.run` then refuses."""
    with contextlib.suppress(ValueError, IndexError):
        settings = json.loads(arguments[arguments.index("--settings") + 1])
        return settings if isinstance(settings, dict) else {}
    return {}


def on_one_node(module: str, arguments: list[str], processes: int) -> list[str]:
    """Python's arguments for torchrun on this node."""
    # the two dashes keep torchrun from reading --start as an option of its own
    return ["-m", "torch.distributed.run", *ON_ONE_NODE, "--nproc-per-node", str(processes), *_PATIENCE, "-m", "--", module, *arguments]


def across_nodes(module: str, arguments: list[str], nodes: int, processes: int, first: str, job: str) -> list[str]:
    """The command that starts a torchrun on each of a Slurm job's nodes; they meet on the `first`."""
    # of the ports that no service has, one by the job's number, so that jobs on the same node have different ones
    meeting = f"{first}:{20_000 + int(job) % 10_000}"
    together = ["--nnodes", str(nodes), "--nproc-per-node", str(processes), "--rdzv-backend", "c10d", "--rdzv-endpoint", meeting]
    step = ["srun", "--overlap", "--nodes", str(nodes), "--ntasks", str(nodes), "--ntasks-per-node", "1", "--cpu-bind", "none"]
    torchrun = [sys.executable, "-m", "torch.distributed.run", *together, "--rdzv-id", job, *_PATIENCE]
    return [*step, *torchrun, "-m", "--", module, *arguments]


def first_node() -> str:
    """The name of the first node of the Slurm job, where this process is. Where Slurm does not answer, this process ends."""
    nodes = os.environ["SLURM_JOB_NODELIST"]
    if not (names := (output_of("scontrol", "show", "hostnames", nodes) or "").split()):
        sys.exit(
            f"error: the job has several nodes ({nodes}), but scontrol is not to be found or does not answer on {socket.gethostname()}, "
            "so its processes cannot meet; put Slurm's programs on the PATH of the compute nodes, or give the job one node"
        )
    return names[0]
