"""validation: what is measured on the dev set while a model that writes text is trained: the loss, and BLEU or ROUGE-L of greedy texts."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from transformers import PreTrainedModel

from workflow_scripts.device import pick_precision, reading_in
from workflow_scripts.models.batches import by_length, collate
from workflow_scripts.models.networks import last_states, makes_scores_of_states, output_layer
from workflow_scripts.models.search import generate
from workflow_scripts.models.templates import prompt_of
from workflow_scripts.models.tokenisation import Codec
from workflow_scripts.training.loss import gives_states, linear_smoothed_loss, smoothed_loss
from workflow_scripts.training.rows import Dev
from workflow_scripts.training.settings import Training
from workflow_scripts.training.sharding import is_sharded

DEV_TOKENS = 4_096
"""Tokens of the dev set, padding included, that go through at once where its loss is measured."""


@torch.no_grad()
def dev_losses(
    network: PreTrainedModel,
    codec: Codec,
    dev: list[Dev],
    smoothings: Sequence[float],
    tokens: int = DEV_TOKENS,
    precision: str = "float32",
) -> list[float]:
    """Cross-entropy per label, in nats, with each of these label smoothings; with 0 it is the negative log-likelihood."""
    network.eval()
    # a network whose weights are spread over GPUs can only be called as a whole
    asked = gives_states(network)
    linear = asked or (not is_sharded(network) and makes_scores_of_states(network))
    totals, labels = [0.0] * len(smoothings), 0
    rows = [row for part in dev for row in part.rows]
    for chosen in by_length([max(map(len, row)) for row in rows], tokens):
        batch = collate([rows[i] for i in chosen], codec.pad, codec.form.decoder, codec.start)
        tensors = {name: tensor.to(network.device) for name, tensor in batch.items()}
        target = tensors.pop("labels")
        with reading_in(precision, network.device):
            if asked or not linear:
                states = network(**tensors, **({"states": True} if asked else {})).logits
            else:
                states = last_states(network, **tensors)
        for at, smoothing in enumerate(smoothings):
            if linear:
                totals[at] += float(linear_smoothed_loss(states, *output_layer(network), target, smoothing, 1, states.dtype))
            else:
                totals[at] += float(smoothed_loss(states, target, smoothing, 1))
        labels += int((target != -100).sum())
    return [total / labels for total in totals]


def dev_loss(network: PreTrainedModel, codec: Codec, dev: list[Dev], precision: str = "float32") -> float:
    """Negative log-likelihood per label, in nats."""
    return dev_losses(network, codec, dev, [0.0], precision=precision)[0]


@torch.no_grad()
def dev_score(network: PreTrainedModel, codec: Codec, dev: Dev, settings: Training) -> float | None:
    """BLEU or ROUGE-L of greedy translations of the first dev sentences; None if the metric's library or tokeniser is missing."""
    chosen = dev.rows[: settings.bleu_sentences]
    sources = [prompt_of(row) if codec.form.causal else row[0] for row in chosen]
    pieces = [sum(label != -100 for label in labels) for _, labels in chosen]
    # a summary is far shorter than its document, and an answer than a prompt with examples; other targets may be longer than their source
    longest: dict[str, Any] = {"max_length": max(pieces) + 10} if codec.documents or codec.form.causal else {"expected": pieces}

    def greedy(sources: list[Sequence[int]], tokens: int) -> list[str]:
        return generate(network, codec, sources, dev.language, beam_size=1, tokens=tokens, **longest)

    return score_of_texts(greedy, sources, dev, settings, network.device)


def score_of_texts(
    write: Callable[[list[Sequence[int]], int], list[str]],
    sources: list[Sequence[int]],
    dev: Dev,
    settings: Training,
    device: torch.device,
) -> float | None:
    """BLEU or ROUGE-L of what `write` makes of the `sources`, the first of the dev sentences, so many tokens at once.

    None as in `dev_score`.
    """
    metric = dev_metric(dev.language, settings)
    if metric is None:
        return None
    # a GPU takes hundreds of sentences in the time of a few
    at_once = 16_384 if device.type == "cuda" else 4_096
    with reading_in(pick_precision(settings.precision, device), device):
        texts = write(sources, at_once)
    return metric.corpus_score(texts, [(dev.references or [])[: len(sources)]]).score


def dev_metric(code: str, settings: Training) -> Any:
    """What texts of dev sentences in a language are scored by; None if the metric's library or tokeniser is missing."""
    try:
        from workflow_scripts.evidence.scores import Scores, metrics

        return metrics(code, Scores(metrics=[settings.dev_metric]))[settings.dev_metric]()
    except (ImportError, OSError, RuntimeError):  # the last where a tokeniser's dictionary is missing
        return None
