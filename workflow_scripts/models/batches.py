"""Rows of ids, and batches of tensors made from them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

import numpy as np
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
    read, wanted = ([np.asarray(row[side], dtype=np.int64) for row in rows] for side in (0, 1))
    input_ids, seen = padded(read, pad)
    batch = {"input_ids": input_ids, "attention_mask": seen.astype(np.int64)}
    labels, kept = padded([ids.clip(-100) for ids in wanted], -100)
    if decoder:
        shifted = np.full(kept.shape, pad)
        shifted[kept] = decoder_reads(np.concatenate(wanted), kept.sum(axis=1), start)
        batch |= {"decoder_input_ids": shifted, "labels": labels}
    else:
        batch["labels"] = np.full(input_ids.shape, -100)
        batch["labels"][:, : labels.shape[1]] = labels
    return {name: torch.from_numpy(ids) for name, ids in batch.items()}


def padded(rows: Sequence[np.ndarray], value: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of ids as one array (rows × longest), filled up with a value, and where the ids are."""
    lengths = np.array([len(row) for row in rows])
    there = np.arange(lengths.max()) < lengths[:, None]
    ids = np.full(there.shape, value)
    ids[there] = np.concatenate(rows)
    return ids, there


def decoder_reads(labels: np.ndarray, lengths: np.ndarray, start: int | None = None) -> np.ndarray:
    """What the decoder reads to predict the labels of texts, which stand one behind the other: `decoder_input` of each, without −100.

    −100 marks a place without a label, but the decoder must read some id there; below it the id is known (`unlearnt`).
    """
    shifted = np.concatenate([labels[:1], labels[:-1]])
    ends = np.cumsum(lengths)
    begins = (ends - lengths)[lengths > 0]
    shifted[begins] = labels[ends[lengths > 0] - 1] if start is None else start
    return np.where(shifted < -100, unlearnt(shifted), shifted).clip(0)


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
