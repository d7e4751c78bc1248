"""states: one vector per text from every layer of a model, for the analyses of what models have learnt.

1. `read_texts` reads the texts, the same number in each language.
2. `longest_of` is the longest row that all models of an analysis can read. Longer texts are cut to it for each, so that no model
   reads more of a text than another. Models that cut text into other pieces still end at another word.
3. `open_half` loads the half of a model that is looked into: of an encoder-decoder its encoder, or if asked its decoder.
4. `pooled` runs texts through it and makes one vector of each row in each layer, in several ways (`Pooling`).

A decoder reads the text that the encoder reads, in the form in which it would write it (see `models.families`).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from workflow_scripts.device import pick_device, without_gradients
from workflow_scripts.models.batches import Row, by_length, collate
from workflow_scripts.models.family import Family
from workflow_scripts.models.networks import layers_of, read_weights
from workflow_scripts.models.products import quick_products
from workflow_scripts.models.recognition import longest_row, network_config
from workflow_scripts.models.tokenisation import Codec, load_codec
from workflow_scripts.stage import InputError
from workflow_scripts.text.examples import read_table
from workflow_scripts.text.files import plain_lines

Pooling = Literal["mean", "text", "first", "last"]
"""Mean over all positions; mean over the pieces of the text alone, without tags and special tokens; the first position; the last one."""
Side = Literal["encoder", "decoder"]


@dataclass
class Half:
    """The half of a model that is looked into."""

    name: str
    """The model's name in the run."""
    network: torch.nn.Module
    """The whole network without a head."""
    codec: Codec
    side: Side
    longest: int
    """The longest row that it can read, in pieces."""

    @property
    def form(self) -> Family:
        """The entry of its family."""
        return self.codec.form

    @property
    def depth(self) -> int:
        """Layers, not counting the embeddings."""
        return len(layers_of(self.network, self.form, self.side))

    @property
    def width(self) -> int:
        """Numbers in a state."""
        config: Any = self.network.config
        return getattr(config, self.form.size["width"])


def open_half(name: str, folder: Path, side: Side = "encoder", device: str = "auto", documents: bool = False) -> Half:
    """Load a model of any family, without its head, in float32; in the texts of `documents`, `</s>` stands between sentences.

    Raises `InputError` where the decoder is wanted of a model without one, such as one that was finetuned with `parts: encoder`. So it does
    where the folder lacks weights of the half.
    """
    from transformers import AutoModel

    codec = load_codec(folder, documents)
    if side not in codec.form.layers:
        raise InputError(f"{name}: {codec.form.label} has no {side}; set `side: encoder`, or leave the model out")
    # what is not looked into may be lost, such as the decoder of a model with a head that reads the encoder
    others = tuple(f"{layers.partition('.')[0]}." for half, layers in codec.form.layers.items() if half != side)
    network = read_weights(AutoModel, folder, lambda name: "pooler." in name or name.startswith(others), dtype=torch.float32)
    network = network.eval().to(pick_device(device))
    half = Half(name, network, codec, side, longest_row(network.config))
    if not half.depth:
        raise InputError(f"{name}: {folder} has no layers in its {side}; look into its encoder, or leave the model out")
    return half


def longest_of(folders: Iterable[Path]) -> int:
    """The longest row, in pieces, that each of these models can read."""
    return min(longest_row(network_config(folder)) for folder in folders)


def read_texts(
    paths: Sequence[Path], languages: Sequence[str], wanted: int, needed: int, *, parallel: bool, seed: int, labelled: bool = False
) -> list[list[str]]:
    """The texts in each language: `wanted` of them at most, drawn without replacement in an order that hangs on `seed`.

    A file has a text per line, or is a table of `labelled` examples; see `whole_texts`. In `parallel` text the same lines are taken of
    all files. Blank lines, which separate documents in text such as CC-100, are no texts; of parallel text a line goes where any side is
    blank.

    Raises:
        InputError: There is no file for a language, parallel files differ in length, or a file has fewer lines than `needed`.
    """
    if len(paths) != len(languages):
        raise InputError(f"there are {len(paths)} texts for {len(languages)} languages ({', '.join(languages)}); give one for each")
    read = [whole_texts(path) if labelled else list(plain_lines(path)) for path in paths]
    if parallel and len({len(lines) for lines in read}) > 1:
        sizes = ", ".join(f"{path} {len(lines):,}" for path, lines in zip(paths, read, strict=True))
        raise InputError(f"parallel texts need the same number of lines: {sizes}; give translations line by line, or set `parallel: false`")
    if parallel:
        there = [all(map(str.strip, lines)) for lines in zip(*read, strict=True)]
        read = [list(itertools.compress(lines, there)) for lines in read]
    else:
        read = [list(filter(str.strip, lines)) for lines in read]
    texts = []
    for path, lines in zip(paths, read, strict=True):
        if len(lines) < needed:
            raise InputError(f"{path}: has {len(lines):,} texts, the estimate needs at least {needed:,}; give more text")
        # consecutive sentences are of one page, so that what is computed block by block would see a page at a time
        order = np.random.default_rng(seed).permutation(len(lines))[: min(wanted, *(len(side) for side in read))]
        texts.append([lines[i] for i in order])
    return texts


def whole_texts(table: Path) -> list[str]:
    """The text of each labelled example, once: a title and its body, or a question and its passage, are one text, as for a head."""
    return list(dict.fromkeys(" ".join(example.texts) for example in read_table(table)))


def encoded(half: Half, texts: list[str], code: str, longest: int = 0) -> list[list[int]]:
    """Rows of ids as the model reads them, of at most `longest` pieces, or as many as it can read."""
    return half.codec.encode(texts, code, longest or half.longest)


@without_gradients
@quick_products()
def pooled(
    half: Half, rows: list[list[int]], poolings: Sequence[str], batch_tokens: int, layers: Sequence[int] | None = None
) -> torch.Tensor:
    """The vectors of `rows` (poolings × layers × rows × width, float32, on the model's device).

    Layer 0 are the embeddings. `layers` are those that are wanted, all by default. `batch_tokens` are read at once.
    """
    vectors_of_rows: torch.Tensor | None = None
    for batch in by_length([len(row) for row in rows], batch_tokens):
        states = hidden_states(half, [rows[i] for i in batch])
        if layers is not None:
            states = states[list(layers)]
        weights = torch.stack([pooling_weights(half, [rows[i] for i in batch], pooling) for pooling in poolings]).to(states.device)
        vectors = torch.einsum("prt,lrtw->plrw", weights, states)
        if vectors_of_rows is None:
            vectors_of_rows = vectors.new_empty(*vectors.shape[:2], len(rows), vectors.shape[3])
        vectors_of_rows[:, :, batch] = vectors
    assert vectors_of_rows is not None
    return vectors_of_rows


def states_of(half: Half, lines: list[str], code: str, longest: int, pooling: Pooling, batch_tokens: int) -> np.ndarray:
    """The vectors of texts in one language (layers × texts × width), pooled in one way; no row is longer than `longest` pieces."""
    return pooled(half, encoded(half, lines, code, longest), [pooling], batch_tokens)[0].cpu().numpy()


def hidden_states(half: Half, rows: list[list[int]]) -> torch.Tensor:
    """The states of a batch (layers × rows × length × width), the embeddings first."""
    network: Any = half.network
    batch: list[Row] = [(row, row) for row in rows]
    tensors = collate(batch, half.codec.pad, half.side == "decoder", half.codec.start)
    tensors = {name: value.to(network.device) for name, value in tensors.items() if name != "labels"}
    if not half.form.decoder:
        return torch.stack(network(**tensors, output_hidden_states=True).hidden_states)
    if half.side == "encoder":
        return torch.stack(network.get_encoder()(**tensors, output_hidden_states=True).hidden_states)
    return torch.stack(network(**tensors, use_cache=False, output_hidden_states=True).decoder_hidden_states)


def pooling_weights(half: Half, rows: list[list[int]], pooling: str) -> torch.Tensor:
    """What share each position has in the vector of a row (rows × length); every row sums to 1."""
    weights = torch.zeros(len(rows), max(map(len, rows)))
    take = _TAKE[pooling]
    for line, row in zip(weights, rows, strict=True):
        line[take(half, row)] = 1.0
    return weights / weights.sum(dim=1, keepdim=True)


def _text(half: Half, row: list[int]) -> slice:
    """Where the text's own pieces are; in the decoder all of a row is turned by one place. A row without text is taken as a whole."""
    before, behind = half.codec.around
    after = len(row) - behind
    if half.side == "decoder":
        before, after = before + 1, after + 1
    return slice(before, after) if after > before else slice(0, len(row))


_TAKE: dict[str, Callable[[Half, list[int]], slice]] = {
    "mean": lambda half, row: slice(0, len(row)),
    "text": _text,
    "first": lambda half, row: slice(0, 1),
    "last": lambda half, row: slice(len(row) - 1, len(row)),
}
