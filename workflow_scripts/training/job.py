"""job: a training as a job of the workflow: the model that it starts from, the files that it writes, and how it is run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from workflow_scripts.device import keep_memory, machine
from workflow_scripts.models.decoding import MARK
from workflow_scripts.models.folders import check_replaceable
from workflow_scripts.models.networks import save_model
from workflow_scripts.models.templates import Templates, write_templates
from workflow_scripts.stage import is_first_process, processes, write_json
from workflow_scripts.training.adapter import remove_adapter
from workflow_scripts.training.checkpoints import claimed, fingerprint
from workflow_scripts.training.curve import CURVE, write_curve

if TYPE_CHECKING:
    from transformers import PreTrainedModel


class TrainingJob(NamedTuple):
    """What the flags of a job of training say. Under torchrun its processes share the work of each update."""

    start: Path
    """Folder of the model that is trained."""
    model: Path
    """Folder of the trained model, to be written."""
    curve: Path
    """Learning curve, to be written."""
    report: Path
    """JSON file that says how it was trained, to be written."""
    checkpoints: Path
    """Folder that survives a killed run: the same call continues there."""
    choice: Path | None = None
    """What a grid search wrote: its settings replace those that are given, and its seed goes on from its checkpoints."""
    keep_diverged: bool = False
    """Write the outputs even if the loss is lost, and the reason in the report: a point of a grid may fail."""
    from_scratch: bool = False
    """Train random weights in the shape of the model in `start`."""
    seed: int = 1
    """Of weights that are new, of the order of the rows, and of dropout."""
    threads: int = 0
    """CPU threads, of all processes together; 0 leaves the choice to torch."""
    minutes: float = 0
    """The job's time, after which it stops with a checkpoint; 0 is no limit."""
    attempt: int = 1
    """Counts the calls that Snakemake makes for one job: one that would only repeat the one before is refused."""


@contextmanager
def begun(job: TrainingJob, description: dict[str, Any]) -> Iterator[Path]:
    """Take the job's threads, and hold the lock on its checkpoints; yields the folder of those that the `description` has.

    Raises as `checkpoints.claimed` does, and `InputError` where the trained model would take the place of other files.
    """
    check_replaceable(job.model)
    if job.threads:
        torch.set_num_threads(max(1, job.threads // processes()))
    keep_memory()
    own = job.checkpoints / fingerprint(description)
    with claimed(job.checkpoints, description, job.attempt) if is_first_process() else nullcontext(own) as folder:
        yield folder


def finish(
    job: TrainingJob,
    network: PreTrainedModel,
    tokenizer: Any,
    history: list[dict],
    about: dict[str, Any],
    columns: tuple[str, ...] = CURVE,
    mark: Mapping[str, str] = MappingProxyType({}),
    templates: Templates | None = None,
) -> None:
    """Write the model, its learning curve (`columns` of `history`), and a report with all that is known `about` the training.

    `mark` is written into the model's folder, where that says how it writes, and so are `templates`, by which it is asked.
    """
    if not is_first_process():
        return
    save_model(network, tokenizer, job.model)
    if "adapter" not in about:
        remove_adapter(job.model.with_name("adapter"))
    if templates is not None:
        write_templates(templates, job.model)
    if mark:
        write_json(job.model / MARK, {**mark})
    write_curve(job.curve, history, columns)
    setup = {"start": str(job.start), "from_scratch": job.from_scratch, "seed": job.seed}
    size = {"parameters": sum(p.numel() for p in network.parameters())}
    ran_on = {"device": str(network.device), "machine": machine(network.device), "processes": processes()}
    write_json(job.report, {**setup, **size, **ran_on, **about})
