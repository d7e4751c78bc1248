"""pace: how long an update of training takes on this machine, measured on a small model of random numbers.

    python -m workflow_scripts.run.pace --model '{"small": {…}}' --training '{"batch_tokens": 500, …}'

prints the seconds of an update. `progress` calls it when a run begins, so that it can say how long the run takes. The rows are made up,
with lengths as sentences have them; loss, dropout and products are those of training.
"""

import json
import statistics
import time

import numpy as np
import torch
from pydantic import TypeAdapter

from workflow_scripts import registry
from workflow_scripts.device import pick_precision
from workflow_scripts.models.batches import Row, collate
from workflow_scripts.models.family import DEFAULT_FAMILY
from workflow_scripts.models.products import quick_products
from workflow_scripts.stage import run
from workflow_scripts.training.backbone import Backbone
from workflow_scripts.training.dropout import quick_dropout
from workflow_scripts.training.loop import pick_loss
from workflow_scripts.training.mixed_precision import mixed_precision
from workflow_scripts.training.settings import Training

WARM, MEASURED = 3, 9
"""Updates that are made before, and that are measured; their median counts."""


def main(*, model: str, training: str, threads: int = 1) -> None:
    """Print the seconds of an update of a small backbone.

    `model` is a backbone's block of the configuration, of the kind `small`, and `training` the settings of a phase, both as JSON.
    """
    torch.set_num_threads(threads)
    backbone = TypeAdapter(Backbone).validate_python(json.loads(model))
    print(f"{seconds_per_update(backbone, TypeAdapter(Training).validate_python(json.loads(training))):.4f}")


def seconds_per_update(backbone: Backbone, training: Training) -> float:
    """The median of the processor time of an update, in seconds.

    The clock on the wall would count other programs as well, and the run's first jobs are busy on all cores while this measures.
    """
    device = torch.device("cpu")
    small = backbone.small
    assert small, "only small backbones are measured"
    network = registry.entry("family", backbone.family or DEFAULT_FAMILY).maker.network(small, small.vocabulary).train()
    precision = pick_precision(training.precision, device)
    loss = pick_loss(network, training, precision)
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-5, fused=True)
    taken = []
    with quick_dropout(device), quick_products(), mixed_precision(network, precision):
        for rows in batches(training.batch_tokens, small.vocabulary, min(training.max_length, small.max_positions)):
            began = time.thread_time()
            batch = collate(rows, 1)
            labels = batch.pop("labels")
            loss(network(**batch), labels).backward()
            optimizer.step()
            optimizer.zero_grad()
            taken.append(time.thread_time() - began)
    return statistics.median(taken[WARM:])


def batches(tokens: int, vocabulary: int, longest: int) -> list[list[Row]]:
    """Rows of random ids for some updates, each of rows of similar length with about so many `tokens` on a side."""
    rng = np.random.default_rng(1)
    made: list[list[Row]] = []
    for length in np.exp(rng.normal(3.1, 0.6, WARM + MEASURED)).clip(4, longest - 2).astype(int):
        rows = max(1, tokens // int(length))
        made.append([tuple(rng.integers(5, vocabulary, size=int(length)).tolist() for _ in range(2)) for _ in range(rows)])
    return made


if __name__ == "__main__":
    run(main)
