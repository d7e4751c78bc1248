"""Rows of ids, and batches of tensors made from them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

import torch

from workflow_scripts.models.tokenisation import unlearnt

_T = TypeVar("_T")
Row = tuple[Sequence[int], Sequence[int]]
"""Ids of one row: what the encoder reads, and the labels."""


def decoder_input(labels: Sequence[_T], start: _T | None = None) -> list[_T]:
    """Labels rotated by one place: what the decoder reads to predict them; with `start` in the first place where there is one."""
    return [labels[-1] if start is None else start, *labels[:-1]]


def collate(rows: list[Row], pad: int, decoder: bool = True, start: int | None = None) -> dict[str, torch.Tensor]:
    """A batch of tensors (rows × longest): encoder ids and mask, labels (−100 where padded), and the decoder's ids.

    The decoder's ids start with `start`, by default with the last label. Without a `decoder`, each id that is read has a label of its own,
    which is −100 where none is wanted.
    """
    padded = torch.nn.utils.rnn.pad_sequence
    sources, labels = ([torch.tensor(row[side]) for row in rows] for side in (0, 1))
    input_ids = padded(sources, batch_first=True, padding_value=pad)
    batch = {
        "input_ids": input_ids,
        "attention_mask": padded([torch.ones_like(source) for source in sources], batch_first=True, padding_value=0),
    }
    if decoder:
        # −100 marks a place without a label, but the decoder must read some id there; below it the id is known (`unlearnt`)
        shifted = [torch.tensor(decoder_input(row[1], start)) for row in rows]
        read = [torch.where(ids < -100, unlearnt(ids), ids).clamp_min(0) for ids in shifted]
        batch["decoder_input_ids"] = padded(read, batch_first=True, padding_value=pad)
        return {**batch, "labels": padded([ids.clamp_min(-100) for ids in labels], batch_first=True, padding_value=-100)}
    wide = torch.full_like(input_ids, -100)
    for line, label in zip(wide, labels, strict=True):
        line[: len(label)] = label
    return {**batch, "labels": wide}


def by_length(lengths: list[int], tokens: int) -> Iterator[list[int]]:
    """Split row indices into batches of at most `tokens` tokens, padding included. Rows of a batch have similar lengths."""
    batch: list[int] = []
    for index in sorted(range(len(lengths)), key=lengths.__getitem__):
        if batch and (len(batch) + 1) * lengths[index] > tokens:
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch


def tokens_at_once(device: torch.device) -> int:
    """How many tokens go through a model at once where nothing is learnt: on a CPU so few that they stay in its cache."""
    return 2048 if device.type == "cpu" else 8192
