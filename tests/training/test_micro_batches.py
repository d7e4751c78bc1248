"""In how many parts an update goes through a device: what fits is found, and parts train as the whole does."""

import pytest
import torch
from phases import TINY, assert_alike, finetune, phase_files
from tiny_models import small_model

from workflow_scripts.models.batches import collate
from workflow_scripts.stage import InputError, read_json
from workflow_scripts.training.loop import load_model, pick_loss
from workflow_scripts.training.micro_batches import cells, parts_that_fit, try_part
from workflow_scripts.training.rows import split_batch
from workflow_scripts.training.settings import Training

# rows of an update stand in order of their lengths
UPDATES = [[([5] * 10, [6] * 8)] * 12, [([5] * length, [6] * 8) for length in (10, 30, 40)], [([5] * 4, [6] * 4)] * 20]


def device_of(size, tried):
    """A device that holds parts of so many pieces, padding included."""

    def attempt(rows):
        tried.append(len(rows) * max(max(map(len, row)) for row in rows))
        if tried[-1] > size:
            raise torch.OutOfMemoryError(f"tried {tried[-1]} of {size}")

    return attempt


@pytest.mark.parametrize(("size", "processes", "parts"), [(120, 1, 1), (119, 1, 2), (79, 1, 4), (60, 2, 4), (120, 3, 3)])
def test_an_update_goes_through_in_as_few_parts_as_fit(size, processes, parts):
    tried = []
    assert parts_that_fit(device_of(size, tried), UPDATES, processes) == parts
    assert tried[-1] <= size and all(each > size for each in tried[:-1])
    # the largest part of all updates was tried
    assert tried[-1] == max(len(part) * max(max(map(len, row)) for row in part) for rows in UPDATES for part in split_batch(rows, parts))


def test_a_row_that_does_not_fit_is_refused():
    with pytest.raises(InputError, match=r"a row of 40 pieces does not fit.*lower max_length"):
        parts_that_fit(device_of(39, []), UPDATES, 1, lambda rows: 1_000 * cells(rows))


def test_trying_changes_nothing(tmp_path):
    network = load_model(small_model(tmp_path), Training(), 1).eval()
    before = {name: value.clone() for name, value in network.state_dict().items()}
    loss = pick_loss(network, Training(), "float32")
    state = torch.get_rng_state()
    seen = []

    def to_batch(rows):
        seen.append(len(rows))
        return collate(rows, 1)

    try_part(network, to_batch, loss, "float32", True, UPDATES[1])
    assert seen == [3] and torch.equal(torch.get_rng_state(), state) and not network.training
    assert all(p.grad is None for p in network.parameters())
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())


def test_parts_end_where_the_whole_does_and_the_report_tells_them(tmp_path):
    files = phase_files(tmp_path)
    settings = {**TINY, "updates": 6, "evaluate_every": 3, "checkpoint": "last", "dropout": 0.0, "attention_dropout": 0.0}
    ways = {"whole": "auto", "parts": 200}
    whole, parts = (finetune(*files, tmp_path / name, Training(**settings, micro_batch_tokens=tokens)) for name, tokens in ways.items())
    start = finetune(*files, tmp_path / "start", Training(**{**settings, "learning_rate": 1e-12}))
    assert_alike(start, whole, parts)
    said = [read_json(tmp_path / name / "training.json")["micro_batch_tokens"] for name in ways]
    assert said == [settings["batch_tokens"], 200]
