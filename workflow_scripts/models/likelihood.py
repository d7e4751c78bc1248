"""likelihood: how likely a decoder finds each of some answers behind a prompt.

A prompt is read once, whatever number of answers there is: what the layers keep of it (keys and values) serves them all. Rows of prompts
are filled up before their beginning, as where text is written. Layers that keep something else (Qwen 3.5's, Mamba's) read each prompt with
each answer.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import torch

from workflow_scripts.device import without_gradients
from workflow_scripts.models.search import padded_batches
from workflow_scripts.models.tokenisation import Codec

AT_ONCE = 256
"""Answers behind prompts that are scored at once: each has a number for every piece of the vocabulary."""


@without_gradients
def log_probabilities(
    network: Any, codec: Codec, prompts: Sequence[Sequence[int]], answers: Sequence[Sequence[int]], tokens: int = 4_096
) -> torch.Tensor:
    """The sum of the log probabilities of the pieces of each answer behind each prompt, in nats (prompts × answers, float32).

    No answer has an end: what stands behind it is not asked. So many `tokens` of prompts, padding included, are read at once.
    """
    network.eval()
    found = torch.empty(len(prompts), len(answers))
    longest = max(map(len, answers))
    labels = torch.full((len(answers), longest), -1)
    for row, answer in zip(labels, answers, strict=True):
        row[: len(answer)] = torch.tensor([*answer])
    labels, number = labels.to(network.device), max(1, AT_ONCE // len(answers))
    if prompts and not _keeps_keys(network):
        each = (torch.tensor([*prompt], device=network.device) for prompt in prompts)
        return torch.stack([_scored_whole(network, labels, prompt, tokens).cpu() for prompt in each])
    for chosen, batch in padded_batches(prompts, tokens, codec, network.device):
        for start in range(0, len(chosen), number):
            part = {name: tensor[start : start + number] for name, tensor in batch.items()}
            found[chosen[start : start + number]] = _scored(network, labels, **part).cpu()
    return found


def _scored(network: Any, labels: torch.Tensor, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
    """The scores of some prompts (prompts × answers). `labels` (answers × longest) are −1 behind the end of an answer."""
    prompts, (answers, longest) = len(input_ids), labels.shape
    places = (attention_mask.cumsum(dim=1) - 1).clamp(min=0)
    last = {"logits_to_keep": 1} if network._supports_logits_to_keep() else {}
    given = {"input_ids": input_ids, "attention_mask": attention_mask, **_positions(network, places)}
    read = network(**given, **last, use_cache=longest > 1)
    logits = read.logits[:, -1:].float().log_softmax(dim=-1).repeat_interleave(answers, dim=0)
    pieces = labels.repeat(prompts, 1)
    if longest > 1:
        read.past_key_values.batch_repeat_interleave(answers)
        before = attention_mask.repeat_interleave(answers, dim=0)
        behind = places[:, -1].repeat_interleave(answers)[:, None] + 1 + torch.arange(longest - 1, device=places.device)
        seen = torch.cat([before, before.new_ones(len(before), longest - 1)], dim=1)
        given = {"input_ids": pieces[:, :-1].clamp(min=0), "attention_mask": seen, **_positions(network, behind)}
        more = network(**given, past_key_values=read.past_key_values, use_cache=True).logits.float().log_softmax(dim=-1)
        logits = torch.cat([logits, more], dim=1)
    each = logits.gather(2, pieces.clamp(min=0)[..., None])[..., 0].masked_fill(pieces < 0, 0.0)
    return each.sum(dim=1).view(prompts, answers)


def _keeps_keys(network: Any) -> bool:
    """Whether all layers of a network keep keys and values of what they have read, so that several answers can stand behind one prompt."""
    kept = network(input_ids=torch.zeros(1, 1, dtype=torch.long, device=network.device), use_cache=True).get("past_key_values")
    return all(hasattr(layer, "batch_repeat_interleave") for layer in getattr(kept, "layers", [None]))


def _scored_whole(network: Any, labels: torch.Tensor, prompt: torch.Tensor, tokens: int) -> torch.Tensor:
    """The scores of the answers behind one prompt, as `_scored`, of rows that have both. What fills up a row stands behind its answer."""
    kept = labels.shape[1] + 1
    last = {"logits_to_keep": kept} if network._supports_logits_to_keep() else {}
    found = []
    for some in labels.split(max(1, min(AT_ONCE, tokens // (len(prompt) + kept)))):
        rows = torch.cat([prompt.expand(len(some), -1), some.clamp(min=0)], dim=1)
        logits = network(input_ids=rows, use_cache=False, **last).logits[:, -kept:-1].float().log_softmax(dim=-1)
        found.append(logits.gather(2, some.clamp(min=0)[..., None])[..., 0].masked_fill(some < 0, 0.0).sum(dim=1))
    return torch.cat(found)


def _positions(network: Any, places: torch.Tensor) -> dict[str, torch.Tensor]:
    """Positions, of a network that takes them; BLOOM counts by its mask."""
    return {"position_ids": places} if "position_ids" in inspect.signature(network.forward).parameters else {}
