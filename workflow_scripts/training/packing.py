"""packing: sentences packed into rows of one length, so that all updates of a phase have one shape, and nearly no padding.

Batches of sentences of similar length have hundreds of shapes. A GPU's libraries plan anew for each of them, a compiled network or a CUDA
graph fits one shape, and the attention of short rows is too small a piece of work. In a packed row no sentence sees another: the masks are
made of the sentences' numbers, and positions begin anew with each sentence. Losses and gradients are those of the sentences by themselves.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from workflow_scripts.models.batches import Row, decoder_reads
from workflow_scripts.models.recognition import family_of
from workflow_scripts.models.structure import attention_window
from workflow_scripts.stage import InputError
from workflow_scripts.training.mixed_precision import with_forward
from workflow_scripts.training.ragged import lengths_of
from workflow_scripts.training.rows import Batches, Rounds

STEP = 64
"""Rows are as long as a multiple of this: a GPU's kernels work on tiles of so many pieces."""
SHORTEST = 128
"""The least length of rows; in shorter ones, fewer sentences fill up what the others leave."""


def row_length(max_length: int) -> int:
    """The length of packed rows of a phase whose sentences have at most so many pieces."""
    return max(SHORTEST, -(-max_length // STEP) * STEP)


class PackedRow(NamedTuple):
    """Sentences one behind the other, like a `Row` to all that counts its pieces."""

    read: list[int]
    labels: list[int]
    lengths: list[tuple[int, int]]
    """Of each sentence, how many ids are read, and how many labels there are."""


def packed(rows: Iterable[Row]) -> PackedRow:
    """Some sentences as one row."""
    row = PackedRow([], [], [])
    for read, labels in rows:
        row.read.extend(read)
        row.labels.extend(labels)
        row.lengths.append((len(read), len(labels)))
    return row


# ---------------------------------------------------------------------------------------------
# which sentences share a row


class PackedBatches(Batches):
    """`number` updates of as many packed rows as have at most `tokens` tokens on one side, of one epoch after the other.

    All updates have the same number of rows. The last one of an epoch has empty ones where too few are left. Rows are longer than `length`
    where a sentence is, as a decoder's with prompt, source and answer in one. Noise may make one longer than those of the first epoch: then
    this epoch alone has longer rows, and fewer of them.
    """

    def __init__(
        self, rounds: Rounds, tokens: int, number: int, seed: int, length: int, check: Callable[[int], None] = lambda longest: None
    ):
        """Sentences are shuffled by the `seed`; `check` gets the number of pieces of each epoch's longest one, and raises if too many."""
        super().__init__(rounds, tokens, number, seed)
        self.check = check
        self.longest = int(lengths_of(self.epoch(0)).max())
        self.length = max(length, row_length(self.longest))
        if self.length > tokens:
            raise InputError(
                f"a packed row has {self.length} pieces, more than a batch of {tokens} tokens; raise batch_tokens or lower max_length"
            )

    def row(self, rows: Sequence[Row], chosen: Any) -> PackedRow:
        """The packed row of the sentences with these numbers."""
        return packed(rows[index] for index in chosen)

    def cut(self, number: int) -> list[Any]:
        """The updates of an epoch: the sentences' numbers for each of their rows.

        Sentences are shuffled, packed within pools of some hundred updates, and the rows that come out are shuffled again.
        """
        if self._cut[0] != number:
            rng = np.random.default_rng([self._seed, number])
            sides = [lengths_of(self.epoch(number), side) for side in (0, 1)]
            longest = max(int(side.max()) for side in sides)
            self.check(longest)
            length = max(self.length, row_length(longest))
            at_once = max(1, self._tokens // length)
            order = rng.permutation(len(sides[0]))
            pool = max(1, int(100 * self._tokens / np.maximum(*sides).mean()))
            packed_rows: list[list[int]] = []
            for start in range(0, len(order), pool):
                part = order[start : start + pool]
                packed_rows += [part[chosen].tolist() for chosen in fitted(sides[0][part], sides[1][part], length)]
            shuffled = [packed_rows[place] for place in rng.permutation(len(packed_rows))]
            updates = [shuffled[start : start + at_once] for start in range(0, len(shuffled), at_once)]
            updates[-1] += [[]] * (at_once - len(updates[-1]))
            self._cut = number, updates
        return self._cut[1]


def fitted(read: np.ndarray, labels: np.ndarray, length: int) -> list[list[int]]:
    """Rows of so many places on either side, as sentences' numbers.

    The longest sentence comes first. Each goes into the row with the least room that is enough.
    """
    rows: list[list[int]] = []
    left: list[tuple[int, int]] = []
    # rows by the room that they have on the side that has less
    by_room: list[list[int]] = [[] for _ in range(length + 1)]
    for at in np.argsort(-np.maximum(read, labels), kind="stable").tolist():
        one, other = int(read[at]), int(labels[at])
        room = next((room for room in range(max(one, other), length + 1) if by_room[room]), None)
        if room is None:
            row = len(rows)
            rows.append([])
            left.append((length, length))
        else:
            row = by_room[room].pop()
        rows[row].append(at)
        left[row] = left[row][0] - one, left[row][1] - other
        by_room[min(left[row])].append(row)
    return rows


# ---------------------------------------------------------------------------------------------
# tensors


def collate_packed(rows: Sequence[Any], length: int, pad: int, decoder: bool = True, start: int | None = None) -> dict[str, Tensor]:
    """A batch of packed rows, in all of which there are `length` places, or more where a row has; `batches.collate` says what the ids are.

    `segments` (rows × length) has the number of each piece's sentence in its row, 0 where there is none, and `positions` its place in the
    sentence; `decoder_segments` and `decoder_positions` are those that the decoder reads. A row that is not packed is taken for an empty
    one.
    """
    longest = int(lengths_of(rows).max())
    shape = len(rows), length if longest <= length else row_length(longest)
    names = ("input_ids", "decoder_input_ids") if decoder else ("input_ids",)
    batch = {name: np.full(shape, pad) for name in names} | {"labels": np.full(shape, -100)}
    for side in ("", "decoder_") if decoder else ("",):
        batch |= {f"{side}segments": np.zeros(shape, np.int64), f"{side}positions": np.zeros(shape, np.int64)}
    for number, row in enumerate(rows):
        if not isinstance(row, PackedRow):
            continue
        read, written = np.array(row.lengths, np.int64).reshape(-1, 2).T
        labels = np.array(row.labels, np.int64)
        _put(batch, "", "input_ids", number, np.array(row.read, np.int64), read)
        at = np.arange(len(labels))
        if decoder:
            _put(batch, "decoder_", "decoder_input_ids", number, decoder_reads(labels, written, start), written)
        else:
            at += np.repeat(_begins(read) - _begins(written), written)  # a sentence may have fewer labels than ids
        batch["labels"][number, at] = labels.clip(-100)
    return {name: torch.from_numpy(ids) for name, ids in batch.items()}


def _put(batch: dict[str, np.ndarray], side: str, name: str, row: int, ids: np.ndarray, lengths: np.ndarray) -> None:
    """Put the ids of sentences of these lengths into a row, with their numbers and positions."""
    batch[name][row, : len(ids)] = ids
    batch[f"{side}segments"][row, : len(ids)] = np.repeat(np.arange(1, len(lengths) + 1), lengths)
    batch[f"{side}positions"][row, : len(ids)] = np.arange(len(ids)) - np.repeat(_begins(lengths), lengths)


def _begins(lengths: np.ndarray) -> np.ndarray:
    """Where each of some texts begins that stand one behind the other."""
    return np.cumsum(lengths) - lengths


# ---------------------------------------------------------------------------------------------
# the network


def check_window(network: Any, longest: int) -> None:
    """Raise `InputError` where sentences have more pieces than a network's attention sees: in packed rows it would see all of them."""
    if (window := attention_window(network.config)) and window < longest:
        raise InputError(
            f"training.packed: {type(network).__name__} sees {window} pieces back, and a sentence has {longest}; lower max_length"
        )


def check_packs(network: Any, longest: int) -> None:
    """Raise `InputError` for a network that does not take packed rows, of sentences with so many pieces at most.

    Families of which we know the network say how it counts positions. There are many decoders and encoders besides, so one is tried: some
    count in the mask (ALiBi), some have no attention, and some only add such a mask to their scores (RemBERT).
    """
    family = family_of(network.config)
    if not family.restarts:
        raise InputError(f"training.packed: it is not known how {family.label} counts positions anew in a row; leave it out")
    check_window(network, longest)
    if (family.causal or family.by_structure) and not sentences_are_apart(network):
        raise InputError(f"training.packed: {type(network).__name__} lets a sentence see others in its row; leave it out")


@torch.no_grad()
def sentences_are_apart(network: Any) -> bool:
    """Whether a network's scores of two sentences in one row are those of each by itself."""
    sentences = [[5, 6, 7, 8], [9, 5, 7]]
    batch = collate_packed([packed((ids, ids) for ids in sentences)], 8, pad=0, decoder=False)
    del batch["labels"]
    batch = {name: tensor.to(network.device) for name, tensor in batch.items()}
    training, forward = network.training, partial(type(network).forward, network.eval())
    try:
        alone = torch.cat([forward(input_ids=torch.tensor([ids], device=network.device)).logits[0] for ids in sentences])
        together = _read(network, forward, **batch).logits[0, : len(alone)]
    except (TypeError, ValueError, RuntimeError):
        return False
    finally:
        network.train(training)
    return torch.allclose(alone, together, rtol=1e-3, atol=1e-3)


@contextmanager
def packed_forward(network: Any) -> Iterator[None]:
    """Context in which `network` reads batches of `collate_packed` as well."""
    whole = network.forward

    def forward(segments: Tensor | None = None, **inputs: Any) -> Any:
        return whole(**inputs) if segments is None else _read(network, whole, segments=segments, **inputs)

    with with_forward(network, forward):
        yield


def _read(network: Any, whole: Callable[..., Any], *, input_ids: Tensor, segments: Tensor, positions: Tensor, **inputs: Any) -> Any:
    """What `whole`, the network's own way, returns of a packed batch."""
    family, own = family_of(network.config), same_sentence(segments, segments)
    restarts = family.restarts
    assert restarts  # as `check_packs` says
    if not family.decoder:
        with restarts(network, positions) as more:
            return whole(input_ids=input_ids, attention_mask=own.tril() if family.causal else own, **more, **inputs)
    written = inputs.pop("decoder_segments")
    # no sentence is at the places that are left, and something must be seen there
    crossed = same_sentence(written, segments) | (written == 0)[:, None, :, None]
    with restarts(network, positions, inputs.pop("decoder_positions")) as more:
        encoded = network.get_encoder()(input_ids=input_ids, attention_mask=own, **more)
        past = same_sentence(written, written).tril()
        return whole(encoder_outputs=encoded, attention_mask=crossed, decoder_attention_mask=past, **inputs)


def same_sentence(asking: Tensor, asked: Tensor) -> Tensor:
    """The mask (rows × 1 × asking × asked) of places with the same number of a sentence."""
    return (asking[:, :, None] == asked[:, None, :])[:, None]
