"""widened: feed-forward modules with some more units, which are trained while the others stay as they are.

The units stand in layers of their own, `beside` those of the model: as many outputs more of the first matrix, and as many inputs more of
the last one. `as_one` makes a plain layer of the two.
"""

import torch
from torch import nn

SPREAD = 0.02
"""Standard deviation of the weights that read the state, as transformers draws those of its models."""


class Widened(nn.Module):
    """A linear layer of the model, and one beside it."""

    def __init__(self, own: nn.Linear, inputs: int, outputs: int, bias: bool):
        super().__init__()
        self.own = own
        self.beside = nn.Linear(inputs, outputs, bias=bias, device=own.weight.device, dtype=own.weight.dtype)

    @property
    def weight(self) -> torch.Tensor:
        """The model's own weights, of which T5 looks at the precision."""
        return self.own.weight

    def _joined(self, over: int, bias: torch.Tensor | None) -> nn.Linear:
        """A plain layer with both matrices, side by side along one dimension."""
        weight = torch.cat([self.own.weight, self.beside.weight], dim=over).detach()
        made = nn.Linear(weight.shape[1], weight.shape[0], bias=bias is not None, device=weight.device, dtype=weight.dtype)
        made.weight = nn.Parameter(weight)
        if bias is not None:
            made.bias = nn.Parameter(bias.detach())
        return made


class MoreOutputs(Widened):
    """The first layer of a feed-forward module, or its gate: what is beside it writes more units."""

    def __init__(self, own: nn.Linear, width: int):
        super().__init__(own, own.in_features, width, own.bias is not None)
        nn.init.normal_(self.beside.weight, std=SPREAD)
        if self.beside.bias is not None:
            nn.init.zeros_(self.beside.bias)

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """States (… × inputs) to units (… × outputs and width)."""
        return torch.cat([self.own(states), self.beside(states)], dim=-1)

    def as_one(self) -> nn.Linear:
        """The plain layer that computes the same."""
        return self._joined(0, None if self.own.bias is None else torch.cat([self.own.bias, self.beside.bias]))


class MoreInputs(Widened):
    """The last layer of a feed-forward module: what is beside it reads the units that are more. It begins as zero."""

    def __init__(self, own: nn.Linear, width: int):
        super().__init__(own, width, own.out_features, False)
        nn.init.zeros_(self.beside.weight)

    def forward(self, units: torch.Tensor) -> torch.Tensor:
        """Units (… × inputs and width) to states (… × outputs)."""
        return self.own(units[..., : self.own.in_features]) + self.beside(units[..., self.own.in_features :])

    def as_one(self) -> nn.Linear:
        """The plain layer that computes the same."""
        return self._joined(1, self.own.bias)
