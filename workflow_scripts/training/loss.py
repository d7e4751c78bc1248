"""loss: label-smoothed cross-entropy, also in chunks that never hold the scores of all tokens at once.

mBART's vocabulary has 250,027 pieces, so the scores of 8,192 tokens take 8 GB in float32, and a plain loss
holds several such arrays. `linear_smoothed_loss` multiplies some rows at a time by the output matrix and
takes loss and gradient from the product before the next rows come; what it keeps is as large as the
matrix itself.
"""

from typing import Any

import torch
import torch.nn.functional as F
from transformers.modeling_outputs import Seq2SeqLMOutput

from workflow_scripts.models.networks import last_states
from workflow_scripts.models.products import aligned_layer, linear, product

# scores that are held at a time: 0.5 GB in float32, beside which their logarithmic softmax takes as much
_ENTRIES = 1 << 27


def smoothed_loss(logits: torch.Tensor, labels: torch.Tensor, smoothing: float, items: torch.Tensor | int | None) -> torch.Tensor:
    """Label-smoothed cross-entropy per label, (1 − ε) nll + ε mean(−log p); padding (−100) is left out.

    `items` is the number of labels of the whole update, so that small batches add up to it exactly.
    """
    loss = F.cross_entropy(
        logits.flatten(0, 1).float(), labels.flatten().to(logits.device), label_smoothing=smoothing, ignore_index=-100, reduction="sum"
    )
    return loss / _at_least_one(items if items is not None else (labels != -100).sum())


def _at_least_one(items: torch.Tensor | int) -> torch.Tensor | int:
    """A number of labels; an update without any has the loss 0, and not 0 / 0."""
    return items.clamp_min(1) if isinstance(items, torch.Tensor) else max(items, 1)


def linear_smoothed_loss(
    states: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor,
    labels: torch.Tensor,
    smoothing: float,
    items: torch.Tensor | int | None,
    dtype: torch.dtype = torch.float32,
    ignoring: bool = False,
) -> torch.Tensor:
    """`smoothed_loss` of ``states @ weight.T + bias``, equal to rounding.

    `states` (rows × length × d), `weight` (vocabulary × d), `bias` (vocabulary). States (labels × d) that all have a label are taken as
    they are: to find those that have one, the processor has to wait for a GPU. `ignoring` computes with all states, and those without a
    label (−100) add nothing, so that all shapes are known beforehand. `dtype` is that of the products; sums are float32.
    """
    labels = labels.flatten()
    if ignoring:
        states = states.flatten(0, -2)
    elif states.ndim == 3:
        chosen = labels != -100
        states, labels = states.flatten(0, 1)[chosen], labels[chosen]
    if not torch.is_grad_enabled():
        # the function below would compute all gradients, even if none are wanted
        states, weight, bias = states.detach(), weight.detach(), bias.detach()
    loss = _LinearSmoothedLoss.apply(states, weight, bias.flatten(), labels, smoothing, dtype, ignoring)
    return loss / _at_least_one(items if items is not None else (labels != -100).sum() if ignoring else len(labels))


class _LinearSmoothedLoss(torch.autograd.Function):
    """The summed loss; the gradients are made on the way forward, while the scores are there."""

    @staticmethod
    def forward(ctx, states, weight, bias, labels, smoothing, dtype, ignoring):
        vocabulary = len(weight)
        matrix, offsets = aligned_layer(weight.to(dtype), bias.to(dtype))
        total = torch.zeros((), device=states.device)
        grad_states = torch.empty_like(states) if ctx.needs_input_grad[0] else None
        grad_weight = torch.zeros_like(weight, dtype=torch.float32) if ctx.needs_input_grad[1] else None
        grad_bias = torch.zeros_like(bias, dtype=torch.float32) if ctx.needs_input_grad[2] else None
        rows = max(1, _ENTRIES // vocabulary)
        for start in range(0, len(states), rows):
            some, goal = states[start : start + rows].to(dtype), labels[start : start + rows, None]
            logp = linear(some, matrix, offsets).log_softmax(dim=1, dtype=torch.float32)
            if ignoring:
                there, goal = goal != -100, goal.clamp_min(0)
                each = (1 - smoothing) * logp.gather(1, goal) + smoothing / vocabulary * logp[:, :vocabulary].sum(dim=1, keepdim=True)
                total -= (each * there).sum()
            else:
                total -= (1 - smoothing) * logp.gather(1, goal).sum() + smoothing / vocabulary * logp[:, :vocabulary].sum()
            if not any(ctx.needs_input_grad[:3]):
                continue
            gradient = logp.exp_().sub_(smoothing / vocabulary)
            gradient.scatter_add_(1, goal, torch.full_like(goal, smoothing - 1, dtype=torch.float32))
            if ignoring:
                gradient.mul_(there)
            if grad_bias is not None:
                grad_bias += gradient[:, :vocabulary].sum(dim=0)
            gradient = gradient.to(dtype)
            if grad_states is not None:
                grad_states[start : start + rows] = product(gradient, matrix)
            if grad_weight is not None:
                grad_weight += product(gradient.T, some)[:vocabulary]
        ctx.gradients = grad_states, grad_weight, grad_bias
        return total

    @staticmethod
    def backward(ctx, grad_output):
        gradients, ctx.gradients = ctx.gradients, None
        scaled = (None if gradient is None else gradient.mul_(grad_output) for gradient in gradients)
        return *scaled, None, None, None, None


def states_for_logits(network: Any) -> None:
    """Make `network` return its last states in place of logits while it trains or is asked for `states`, for `linear_smoothed_loss`.

    Of a batch with `places` (`masks.without_questions`) they are those of the labels alone (labels × d).
    """
    whole = network.forward

    def forward(places=None, states=False, **inputs):
        if not (network.training or states):
            return whole(**inputs)
        found = last_states(network, **inputs)
        return Seq2SeqLMOutput(logits=found if places is None else found.flatten(0, 1).index_select(0, places))

    network.forward, network.gives_states = forward, True


def gives_states(network: Any) -> bool:
    """Whether `states_for_logits` has changed a network."""
    return getattr(network, "gives_states", False)
