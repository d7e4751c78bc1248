"""Recorded updates: what surrounds the recording, which a CPU makes anew each time, changes nothing."""

import pytest
import torch
from phases import TINY, assert_same, finetune, phase_files

from workflow_scripts.stage import InputError
from workflow_scripts.training import graphs
from workflow_scripts.training.graphs import WARM, Recorded
from workflow_scripts.training.settings import Training

PHASE = {**TINY, "updates": 8, "evaluate_every": 4, "bleu_sentences": 0, "log_every": 1, "loss_every": 0, "checkpoint": "last"}
PHASE |= {"packed": True}


class Toy(torch.nn.Module):
    """Weights of which one is not learnt."""

    def __init__(self):
        super().__init__()
        self.learnt, self.fixed = torch.nn.Parameter(torch.ones(3)), torch.nn.Parameter(torch.ones(3), requires_grad=False)

    def forward(self, values):
        return (self.learnt * self.fixed * values).sum(dim=1)


def made(network, asked):
    """Its recorded update, and the memory that each call reads."""

    def step(batch):
        asked.append(batch["values"].data_ptr())
        loss = network(batch["values"]).sum()
        loss.backward()
        return loss.detach()

    return Recorded(step, network.parameters(), torch.device("cpu"))


def test_batches_are_copied_to_one_place_and_gradients_are_put_back():
    network, asked = Toy(), []
    recorded = made(network, asked)
    for number in range(1, 7):
        network.zero_grad(set_to_none=True)
        values = torch.full((2, 3), float(number))
        assert float(recorded({"values": values})) == 6 * number
        assert network.learnt.grad.tolist() == [2.0 * number] * 3 and network.fixed.grad is None
    assert len(set(asked)) == 1 and len(asked) == 6 and recorded.replayed == 6 - WARM


def test_what_is_replayed_is_read_and_written_where_it_was_recorded(monkeypatch):
    """A graph calls no Python: what it is replayed with is the memory of the recording alone."""
    network, asked = Toy(), []
    recorded = made(network, asked)

    def record(self):
        self._again()
        loss, gradient, held = self.loss, self.gradients[0], self.held["values"]

        def replay():
            loss.copy_((network.learnt * held).sum())
            gradient.copy_(held.sum(dim=0))

        return replay

    monkeypatch.setattr(graphs.Recorded, "_record", record)
    for number in range(1, 8):
        network.zero_grad(set_to_none=True)
        assert float(recorded({"values": torch.full((2, 3), float(number))})) == 6 * number
        assert network.learnt.grad.tolist() == [2.0 * number] * 3
    assert len(asked) == WARM + 1


def test_another_shape_is_not_recorded():
    network, asked = Toy(), []
    recorded = made(network, asked)
    for rows in (2, 2, 3, 2, 2, 2):
        network.zero_grad(set_to_none=True)
        recorded({"values": torch.ones(rows, 3)})
        assert network.learnt.grad.tolist() == [float(rows)] * 3
    assert recorded.replayed == 2 and len(set(asked)) == 2


def test_a_phase_ends_where_it_does_without(tmp_path, monkeypatch):
    """With dropout as well: the random numbers are drawn in the same order. The sums of the loss are rounded otherwise."""
    files = phase_files(tmp_path)
    counted = []
    monkeypatch.setattr(graphs.Recorded, "_again", lambda self, again=graphs.Recorded._again: counted.append(1) or again(self))
    plain, recorded, parts = (
        finetune(*files, tmp_path / name, Training(**PHASE, **changes))
        for name, changes in (
            ("plain", {}),
            ("recorded", {"recorded": True}),
            ("parts", {"recorded": True, "micro_batch_tokens": 128}),
        )
    )
    assert len(counted) == 8 - WARM
    assert_same(plain, recorded)
    assert plain.keys() == parts.keys()


def test_only_updates_of_one_shape_are_recorded(tmp_path):
    with pytest.raises(InputError, match=r"training\.recorded: is for updates of one shape; set packed: true"):
        finetune(*phase_files(tmp_path), tmp_path / "out", Training(**{**PHASE, "packed": False}, recorded=True))
