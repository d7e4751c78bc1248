"""representation: how far apart a model puts the two languages (Eq. 4 and Table VI of Zan et al.).

A sentence goes into encoder and decoder alike, in its own language and with its own tag. In a layer of the
decoder, e is the output at the last position that is not padding. In a layer of the encoder, it is the mean
over all positions. The paper's e is that of the last decoder layer. Its equation can be read in two ways, and both are
measured, in every layer:

pairs
    √(Σᵢ ‖eᵢ(source) − eᵢ(target)‖²) over N sentence pairs, and the same as a root mean square
    (divided by √N), which does not grow with N
means
    ‖mean e(source) − mean e(target)‖, the distance of the languages' average embeddings; it
    needs no parallel text, and is measured on other text as well, if there is some

Two more measures are the mean cosine of the pairs, and retrieval. That is how often the nearest sentence of the other language,
by cosine, is the translation.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch

from workflow_scripts.device import pick_device, without_gradients
from workflow_scripts.evidence.nearest import search
from workflow_scripts.models.batches import Row, by_length, collate, decoder_input
from workflow_scripts.models.networks import read_weights
from workflow_scripts.models.products import quick_products
from workflow_scripts.models.recognition import family_of, longest_row
from workflow_scripts.models.tokenisation import Codec, load_codec
from workflow_scripts.number_types import Positive
from workflow_scripts.stage import InputError, atomic, checksums, run, write_json
from workflow_scripts.text.files import read_lines

if TYPE_CHECKING:
    from transformers import PreTrainedModel


@dataclass
class Representation:
    """Settings of the distances."""

    sentences: Positive = 20_000
    """Maximum number of sentence pairs to compare (the paper's N)."""
    retrieval: Positive = 1_000
    """Number of these pairs, evenly spaced, whose translations are searched among each other. They are also kept for the plot."""
    text: dict[str, str] = field(default_factory=dict)
    """Language → file of further text, not parallel. The distance between the language means is measured on it too."""
    batch_tokens: Positive = 4_096
    """Tokens per forward pass. Affects only time and memory."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Device for computing; `auto` takes a GPU if there is one."""


def main(
    model: Path,
    source: Path,
    target: Path,
    output: Path,
    vectors: Path,
    *,
    languages: tuple[str, str],
    unaligned: tuple[Path, ...] = (),
    documents: bool = False,
    threads: int = 0,
    settings: Representation = Representation(),
) -> None:
    """Write the distances of one model, and some sentences' vectors (float16) to draw them.

    `unaligned` are files of more text in the two languages. In the text of `documents`, `</s>` stands between sentences.
    Raises `InputError` where there is no sentence.
    """
    from transformers import AutoModel

    if threads:
        torch.set_num_threads(threads)
    codec = load_codec(model, documents)
    network = read_weights(AutoModel, model, dtype=torch.float32).to(pick_device(settings.device)).eval()
    rows = [read_rows(path, code, codec, network, settings.sentences) for path, code in zip((source, target), languages, strict=True)]
    if len(rows[0]) != len(rows[1]):
        raise InputError(f"{source} has {len(rows[0])} lines, {target} {len(rows[1])}; they must be aligned")
    layers, kept = measure(network, codec.pad, rows, settings)
    with atomic(vectors, "wb") as file:
        np.savez_compressed(file, source=kept[0].astype(np.float16), target=kept[1].astype(np.float16))
    depth = getattr(network.config, codec.form.size["layers"]) + 1
    report = {
        **layers[-1],
        "sentences": len(rows[0]),
        "retrieved_among": len(kept[0]),
        "dimensions": kept[0].shape[1],
        "layers": {"encoder": layers[:depth], "decoder": layers[depth:]},
        "text": [str(source), str(target)],
        "checksums": checksums((source, target, *unaligned)),
        "tag_format": f"{tag_format(codec)}; {_E[codec.form.decoder]}",
        "settings": asdict(settings),
    }
    if unaligned:
        sides = zip(unaligned, languages, strict=True)
        more = [read_rows(path, code, codec, network, settings.sentences, parallel=False) for path, code in sides]
        centres = [mean_vector(network, codec.pad, side, settings.batch_tokens) for side in more]
        report["unaligned"] = {
            "means": float(np.linalg.norm(centres[0] - centres[1])),
            "sentences": [len(side) for side in more],
            "text": [str(path) for path in unaligned],
        }
    write_json(output, report)


_E = {
    True: "own language's tag; last non-padding position of the last decoder layer",
    False: "mean over the positions of the last layer",
}
"""How the report describes e, for models with and without a decoder."""


def tag_format(codec: Codec) -> str:
    """The input of encoder and decoder for a text X, as the report shows it."""
    row = [{"text": "X", "tag": "LANG"}.get(part) or getattr(codec.tokenizer, f"{part}_token") for part in codec.row]
    start = None if codec.start is None else codec.tokenizer.convert_ids_to_tokens(codec.start)
    return f"encoder {' '.join(row)}" + (f", decoder {' '.join(decoder_input(row, start))}" if codec.form.decoder else "")


def read_rows(path: Path, code: str, codec: Codec, network: PreTrainedModel, sentences: int, *, parallel: bool = True) -> list[list[int]]:
    """Ids of the first lines of a file; raises `InputError` where there are none.

    Blank lines, which separate documents in text such as CC-100, are no sentences; in `parallel` text they keep the others in step.
    """
    lines = read_lines(path) if parallel else filter(str.strip, read_lines(path))
    rows = codec.encode(list(islice(lines, sentences)), code, longest_row(network.config))
    if not rows:
        raise InputError(f"{path} has no line to represent")
    return rows


def measure(
    network: PreTrainedModel, pad: int, rows: list[list[list[int]]], settings: Representation
) -> tuple[list[dict[str, Any]], np.ndarray]:
    """The measures of every layer, encoder first, and the last layer's vectors of the pairs for retrieval (2 × pairs × width).

    Sums are accumulated batch by batch in float64. Only the vectors for retrieval are kept in memory.
    """
    pairs = len(rows[0])
    chosen = [i * pairs // settings.retrieval for i in range(settings.retrieval)] if pairs > settings.retrieval else range(pairs)
    place = {pair: at for at, pair in enumerate(chosen)}
    # allocated when the first batch tells the numbers of layers and dimensions
    squared, cosines, totals, held = np.zeros(0), np.zeros(0), np.zeros(0), np.zeros(0)
    for batch in by_length([max(map(len, pair)) for pair in zip(*rows, strict=True)], settings.batch_tokens):
        sides = np.stack([sentence_vectors(network, pad, [side[i] for i in batch]) for side in rows])
        if not squared.size:
            _, depth, _, width = sides.shape
            squared, cosines, totals = np.zeros(depth), np.zeros(depth), np.zeros((2, depth, width))
            held = np.zeros((2, depth, len(place), width), dtype=np.float32)
        found = [(at, place[i]) for at, i in enumerate(batch) if i in place]
        for at, to in found:
            held[:, :, to] = sides[:, :, at]
        source, target = sides.astype(np.float64)
        squared += ((source - target) ** 2).sum(axis=(1, 2))
        norms = np.linalg.norm(source, axis=2) * np.linalg.norm(target, axis=2)
        cosines += ((source * target).sum(axis=2) / np.maximum(norms, 1e-12)).sum(axis=1)
        totals += [source.sum(axis=1), target.sum(axis=1)]
    layers = [
        {
            "pairs": float(np.sqrt(squared[layer])),
            "pairs_rms": float(np.sqrt(squared[layer] / pairs)),
            "means": float(np.linalg.norm(totals[0, layer] - totals[1, layer]) / pairs),
            "cosine": float(cosines[layer] / pairs),
            **retrieval(held[0, layer], held[1, layer]),
        }
        for layer in range(len(squared))
    ]
    return layers, held[:, -1]


@without_gradients
@quick_products()
def sentence_vectors(network: PreTrainedModel, pad: int, rows: list[list[int]]) -> np.ndarray:
    """The vector e of each row in each layer (layers × rows × width, float32).

    The encoder's layers come first, then the decoder's, each from the embeddings on.
    """
    family = family_of(network.config)
    batch: list[Row] = [(row, row) for row in rows]
    start = getattr(network.config, f"{family.starts_with}_token_id") if family.starts_with else None
    tensors = {name: value.to(network.device) for name, value in collate(batch, pad, family.decoder, start).items()}
    last = (tensors.pop("labels") != -100).sum(dim=1) - 1
    cache = {"use_cache": False} if family.decoder else {}
    body: Any = network.base_model
    output = body(**tensors, **cache, output_hidden_states=True)
    encoder, decoder = [getattr(output, name) for name in family.states] if family.decoder else (getattr(output, family.states[0]), ())
    there = tensors["attention_mask"].unsqueeze(-1)
    means = [(layer * there).sum(dim=1) / there.sum(dim=1) for layer in encoder]
    return torch.stack([*means, *(layer[torch.arange(len(rows)), last] for layer in decoder)]).float().cpu().numpy()


def mean_vector(network: PreTrainedModel, pad: int, rows: list[list[int]], tokens: int) -> np.ndarray:
    """The mean over all rows (width) of e of the last layer: of the decoder, or of an encoder alone."""
    total = sum(
        sentence_vectors(network, pad, [rows[i] for i in batch])[-1].sum(axis=0, dtype=np.float64)
        for batch in by_length([len(row) for row in rows], tokens)
    )
    return total / len(rows)


def retrieval(source: np.ndarray, target: np.ndarray) -> dict[str, float]:
    """Share of the rows whose nearest row on the other side, by cosine, is their own; both sides are pairs × width."""
    own = np.arange(len(source))
    ahead, back = search(torch.from_numpy(source), torch.from_numpy(target), k=1)
    nearest = {"source_to_target": ahead, "target_to_source": back}
    return {name: float((top.indices[:, 0].numpy() == own).mean()) for name, top in nearest.items()}


if __name__ == "__main__":
    run(main)
