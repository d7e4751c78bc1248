"""ctc: connectionist temporal classification (Graves et al. 2006), by which a whole text is written at once.

A model gives every position a piece or the *blank*. An output is read from the positions by merging equal neighbours and then leaving
out the blanks, so many rows of positions (alignments) stand for one text. The loss is minus the logarithm of the summed probability of
all alignments of the target (Libovický and Helcl 2018 translate this way).

A target of u pieces, of which r are equal to the one before, fits into n positions only if u + r ≤ n, as equal neighbours need a blank
between them. Rows that do not fit have no probability at all; `fits` tells which these are, so that they can be counted and left out
before training.

With 250,002 pieces the scores of a batch take gigabytes, and PyTorch's loss would hold several such arrays. It needs few of them: those of
the blank, of the row's own labels, and one number for all other pieces together (`emissions`). The result is the same, gradients
included. PyTorch's gradient takes for granted that the probabilities of a position sum to one, hence the class of all others.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import torch
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

from workflow_scripts.models.products import aligned_layer

# scores that are held at a time: 0.5 GB in float32
_ENTRIES = 1 << 27
# the log-probability of what cannot be: far below any other, and finite, so that gradients are too
_NEVER = -1e4


def fits(target: Sequence[int], positions: int) -> bool:
    """Whether a target can be written into so many positions."""
    return len(target) + sum(a == b for a, b in pairwise(target)) <= positions


def collapse(row: Sequence[int], blank: int) -> list[int]:
    """The output that an alignment stands for: equal neighbours merged, then blanks left out."""
    return [piece for place, piece in enumerate(row) if piece != blank and (place == 0 or piece != row[place - 1])]


DraftKind = Literal["best", "no blank"]
"""What a position gives to a draft: its most probable piece, or the most probable one other than the blank."""


class Emissions(NamedTuple):
    """What CTC needs of the scores of all positions of a batch, and the draft that they make."""

    log_probabilities: torch.Tensor
    """Rows × positions × classes: the blank (class 0), one class for each label of the row, all other pieces together (the last)."""
    classes: torch.Tensor
    """Rows × labels: the class of each label. Equal labels share the first one's; 0 where a row has no more labels."""
    draft: torch.Tensor | None
    """Rows × positions: the pieces of the draft; None where none is wanted."""


def emissions(
    states: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, labels: torch.Tensor, blank: int, draft: DraftKind | None = None
) -> Emissions:
    """Log-probabilities of the pieces that matter, from the `states` (rows × positions × width) before the output layer.

    `weight` (vocabulary × width) and `bias` (vocabulary) are that layer's; `labels` (rows × labels) has −100 where a row has no more.
    Rows go through the output layer some at a time; if there are several such portions, their scores are calculated again on the way
    back instead of being kept.
    """
    real = labels >= 0
    columns = torch.cat([labels.new_full((len(labels), 1), blank), labels.clamp_min(0)], dim=1)
    # a label's class is the place of the first label equal to it
    first = (labels[:, :, None] == labels[:, None, :]).int().argmax(dim=2)
    used = F.pad(real & (first == torch.arange(labels.shape[1], device=labels.device)), (1, 0), value=True)
    weight, bias = cast_layer(weight, bias)
    portions = _portions(states, weight)
    again = len(portions) > 1 and torch.is_grad_enabled()
    run: Callable = (lambda *given: checkpoint(_portion, *given, use_reentrant=False)) if again else _portion
    parts = [run(states[part], weight, bias, columns[part], used[part], blank, draft) for part in portions]
    log_probabilities, drafts = zip(*parts, strict=True)
    return Emissions(torch.cat(log_probabilities), torch.where(real, first + 1, 0), torch.cat(drafts) if draft else None)


def _portions(states: torch.Tensor, weight: torch.Tensor) -> list[slice]:
    """The rows, as many at a time as have scores that fit into memory; of no rows one empty portion."""
    rows = max(1, _ENTRIES // (states.shape[1] * len(weight)))
    return [slice(start, start + rows) for start in range(0, max(1, len(states)), rows)]


def cast_layer(weight: torch.Tensor, bias: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The output layer in the type that autocast multiplies in, once for all portions; as it is where that was done before."""
    kind = weight.device.type
    if torch.is_autocast_enabled(kind):
        weight, bias = (tensor.to(torch.get_autocast_dtype(kind)) for tensor in (weight, bias))
    return aligned_layer(weight, bias)


def _scores(states: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """Of all pieces, and of those that only fill the layer up."""
    if not torch.is_autocast_enabled(states.device.type):
        weight, bias = weight.to(states.dtype), bias.to(states.dtype)
    scores = F.linear(states, weight, bias)
    return scores if scores.dtype == torch.float64 else scores.float()


def _portion(
    states: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor,
    columns: torch.Tensor,
    used: torch.Tensor,
    blank: int,
    draft: DraftKind | None,
) -> tuple[torch.Tensor, torch.Tensor | None]:
    scores = _scores(states, weight, bias)
    named = torch.where(used[:, None], LogSoftmaxAt.apply(scores, columns), _NEVER)
    others = (1 - named.exp().sum(dim=2, keepdim=True)).clamp_min(torch.finfo(scores.dtype).eps).log()
    return torch.cat([named, others], dim=2), _drafted(scores, blank, draft) if draft else None


class LogSoftmaxAt(torch.autograd.Function):
    """The logarithm of the softmax of `scores` (rows × positions × pieces) at a few pieces of each row (`columns`, rows × classes).

    The scores are by far the largest array here. PyTorch's own gradient of the two steps goes through three more of that size.
    """

    @staticmethod
    def forward(ctx: Any, scores: torch.Tensor, columns: torch.Tensor) -> torch.Tensor:
        """Rows × positions × classes."""
        places = columns[:, None].expand(-1, scores.shape[1], -1)
        whole = scores.logsumexp(dim=2, keepdim=True)
        ctx.save_for_backward(scores, whole, places)
        return scores.gather(2, places) - whole

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, None]:
        """The gradient of the scores: that of what was chosen, less each piece's probability times the sum of them."""
        (given,), (scores, whole, places) = gradients, ctx.saved_tensors
        found = (scores - whole).exp_().mul_(-given.sum(dim=2, keepdim=True))
        return found.scatter_add_(2, places, given), None


@torch.no_grad()
def _drafted(scores: torch.Tensor, blank: int, draft: DraftKind) -> torch.Tensor:
    if draft == "best":
        return scores.argmax(dim=2)
    return scores.index_fill(2, torch.tensor([blank], device=scores.device), -torch.inf).argmax(dim=2)


@torch.no_grad()
def best_pieces(
    states: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, blank: int, draft: DraftKind
) -> tuple[torch.Tensor, torch.Tensor]:
    """The most probable pieces (rows × positions), to decode with, and those of the draft."""
    best, drafts = [], []
    weight, bias = cast_layer(weight, bias)
    for part in _portions(states, weight):
        scores = _scores(states[part], weight, bias)
        best.append(_drafted(scores, blank, "best"))
        drafts.append(best[-1] if draft == "best" else _drafted(scores, blank, draft))
    return torch.cat(best), torch.cat(drafts)


@torch.no_grad()
def guessed_pieces(states: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The most probable piece of each position (rows × positions), and the logarithm of its probability."""
    pieces, chances = [], []
    weight, bias = cast_layer(weight, bias)
    for part in _portions(states, weight):
        scores = _scores(states[part], weight, bias)
        best = scores.max(dim=2)
        pieces.append(best.indices)
        chances.append(best.values - scores.logsumexp(dim=2))
    return torch.cat(pieces), torch.cat(chances)


def piece_losses(
    states: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, pieces: torch.Tensor, smoothing: float = 0.0
) -> torch.Tensor:
    """Minus the log-probability, in nats, of the piece that belongs at each position; `states` (positions × width), `pieces` (positions).

    `smoothing` is the mass that is spread over all pieces. As in `emissions`, positions go through the output layer some at a time.
    """

    vocabulary = len(weight)
    weight, bias = cast_layer(weight, bias)

    def portion(some: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        # smoothing would give mass to pieces that only fill the layer up, at an infinite loss
        return F.cross_entropy(_scores(some, weight, bias)[:, :vocabulary], labels, reduction="none", label_smoothing=smoothing)

    at_a_time = max(1, _ENTRIES // len(weight))
    again = len(states) > at_a_time and torch.is_grad_enabled()
    parts = zip(states.split(at_a_time), pieces.split(at_a_time), strict=True)
    losses = [checkpoint(portion, *part, use_reentrant=False) if again else portion(*part) for part in parts]
    return torch.cat(losses)


def ctc_loss(emitted: Emissions, positions: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Minus the log-probability of each row's labels, in nats (rows).

    `positions` (rows) is how many positions each row has. A row whose labels do not fit costs infinity, so that it cannot go unnoticed;
    a row without labels, which only fills a batch up, costs nothing.
    """
    lengths = (labels >= 0).sum(dim=1)
    # PyTorch has no CTC in half precision; its fast CUDA version is not exact for long targets, and is not chosen for int64
    loss = F.ctc_loss(
        emitted.log_probabilities.transpose(0, 1),
        emitted.classes,
        positions,
        lengths,
        blank=0,
        reduction="none",
        zero_infinity=False,
    )
    return torch.where(lengths > 0, loss, torch.zeros_like(loss))
