"""graphs: an update that is recorded on a GPU once, as a CUDA graph, and replayed.

The processor starts some two thousand kernels in an update, and takes about 10 µs for each. The kernels of a small model are done sooner,
so that the GPU waits. A graph starts all of them at once. It reads and writes the same memory each time, so every batch must have one shape
(`packing`), and is copied to where the graph looks for it. The optimiser is not part of it: it starts a few kernels only.
"""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor

WARM = 3
"""Updates that are made as usual before one is recorded. In them libraries plan, and what is made once is made."""


class Recorded:
    """Forward and backward pass of an update, as a function of its batch that returns the loss.

    `step` makes both passes of a batch on the device, with gradients that are None before, and waits for nothing. A batch of other
    shapes than the first one is not recorded.
    """

    def __init__(self, step: Callable[[dict[str, Tensor]], Tensor], weights: Iterable[Tensor], device: torch.device):
        self.step, self.weights, self.device = step, [weight for weight in weights if weight.requires_grad], device
        self.held: dict[str, Tensor] = {}
        self.made = self.replayed = 0
        self.replay: Callable[[], None] | None = None
        self.gradients: list[Tensor | None] = []
        self.loss: Tensor
        # one stream for warming up and recording: what is made for the backward pass remembers the stream on which it was made
        self.stream = torch.cuda.Stream(device) if device.type == "cuda" else None

    def __call__(self, batch: dict[str, Tensor]) -> Tensor:
        """The loss of a batch, whose gradients are in the weights afterwards."""
        if not self.held:
            self.held = {name: tensor.clone() for name, tensor in batch.items()}
        if not self.fits(batch):
            return self.step(batch)
        for name, tensor in batch.items():
            self.held[name].copy_(tensor, non_blocking=True)
        self.made += 1
        if self.made <= WARM:
            return self._aside(lambda: self.step(self.held))
        if self.replay is None:
            self.replay = self._record()
        self.replay()
        self.replayed += 1
        # the optimiser's `zero_grad` has dropped them since
        for weight, gradient in zip(self.weights, self.gradients, strict=True):
            weight.grad = gradient
        return self.loss

    def fits(self, batch: dict[str, Tensor]) -> bool:
        """Whether a batch has the shapes of the first one."""
        return {name: (tensor.shape, tensor.dtype) for name, tensor in batch.items()} == {
            name: (tensor.shape, tensor.dtype) for name, tensor in self.held.items()
        }

    def _aside(self, run: Callable[[], Tensor]) -> Tensor:
        """What `run` returns, made on the stream of the recording."""
        if self.stream is None:
            return run()
        current = torch.cuda.current_stream(self.device)
        self.stream.wait_stream(current)
        with torch.cuda.stream(self.stream):
            result = run()
        current.wait_stream(self.stream)
        return result

    def _record(self) -> Callable[[], None]:
        """Record the update; returns what replays it. On a CPU, which records nothing, that is the update itself."""
        if self.stream is None:
            return self._again
        graph = torch.cuda.CUDAGraph()
        # the thread that pins batches may do meanwhile what is forbidden in this one
        with torch.cuda.graph(graph, stream=self.stream, capture_error_mode="thread_local"):
            self._again()
        return graph.replay

    def _again(self) -> None:
        self.loss = self.step(self.held)
        self.gradients = [weight.grad for weight in self.weights]


def recorder(network: Any, loss: Callable[..., Tensor]) -> Recorded:
    """The recorded update of a network, whose batches have the number of their labels as `items`."""

    def step(batch: dict[str, Tensor]) -> Tensor:
        read = dict(batch)
        labels, items = read.pop("labels"), read.pop("items")
        value = loss(network(**read), labels, items)
        value.backward()
        return value.detach()

    return Recorded(step, network.parameters(), network.device)
