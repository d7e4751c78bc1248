"""One state of each row: padding changes nothing, and long rows in bfloat16 are averaged by their true length."""

import torch

from workflow_scripts.models.pooling import last_state, mean_state


def test_padding_is_read_by_no_head():
    states = torch.tensor([[[1.0], [2.0], [6.0]], [[5.0], [7.0], [99.0]]])
    mask = torch.tensor([[1, 1, 1], [1, 1, 0]])
    assert last_state(states, mask).tolist() == [[6.0], [7.0]]
    assert mean_state(states, mask).tolist() == [[3.0], [6.0]]


def test_the_mean_of_a_long_row_in_bfloat16_is_not_cut_at_256():
    states = torch.ones(1, 1000, 2, dtype=torch.bfloat16)
    mean = mean_state(states, torch.ones(1, 1000, dtype=torch.long))
    assert mean.dtype == torch.bfloat16 and mean.tolist() == [[1.0, 1.0]]
