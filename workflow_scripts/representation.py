"""representation: how far apart a model puts the two languages (Eq. 4 and Table VI of Zan et al.).

A sentence goes into encoder and decoder alike, in its own language and with its own tag; e is the
output of the last decoder layer at the last position that is not padding. The paper's equation can
be read in two ways, and both are measured on parallel text:

pairs
    √(Σᵢ ‖eᵢ(source) − eᵢ(target)‖²) over N sentence pairs, and the same as a root mean square
    (divided by √N), which does not grow with N
means
    ‖mean e(source) − mean e(target)‖, the distance of the languages' average embeddings, which
    needs no parallel text
"""

from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Literal

import numpy as np
import torch

from workflow_scripts.device import pick_device
from workflow_scripts.limits import Positive
from workflow_scripts.stage import InputError, atomic, run, write_json
from workflow_scripts.text import read_lines
from workflow_scripts.tokenisation import Codec, load_codec
from workflow_scripts.training import collate


@dataclass
class Representation:
    """Settings of the distances."""

    sentences: Positive = 20_000
    """Pairs that are compared, at most (the paper's N)."""
    batch_tokens: Positive = 4_096
    """Tokens that go through the model at once."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Where to compute."""


def main(
    model: Path,
    source: Path,
    target: Path,
    output: Path,
    vectors: Path,
    *,
    languages: tuple[str, str],
    threads: int = 0,
    settings: Representation = Representation(),
) -> None:
    """Write the distances of one model, and the sentences' vectors (float16) to draw them.

    Raises `InputError` for text that is empty or not aligned.
    """
    from transformers import AutoModelForSeq2SeqLM

    if threads:
        torch.set_num_threads(threads)
    text = [list(islice(read_lines(path), settings.sentences)) for path in (source, target)]
    if not text[0] or len(text[0]) != len(text[1]):
        raise InputError(f"{source} has {len(text[0])} lines, {target} {len(text[1])}; parallel text is needed")
    codec = load_codec(model)
    network = AutoModelForSeq2SeqLM.from_pretrained(model, dtype=torch.float32).to(pick_device(settings.device)).eval()
    sides = [sentence_vectors(network, codec, lines, code, settings.batch_tokens) for lines, code in zip(text, languages, strict=True)]
    with atomic(vectors, "wb") as file:
        np.savez_compressed(file, source=sides[0].astype(np.float16), target=sides[1].astype(np.float16))
    tag_format = {"mbart": "encoder X </s> LANG, decoder LANG X </s>", "mbart50": "encoder LANG X </s>, decoder </s> LANG X"}[codec.family]
    write_json(
        output,
        {
            **distances(*sides),
            "sentences": len(sides[0]),
            "dimensions": sides[0].shape[1],
            "text": [str(source), str(target)],
            "tag_format": f"{tag_format}; own language's tag; last non-padding position of the last decoder layer",
            "settings": asdict(settings),
        },
    )


@torch.no_grad()
def sentence_vectors(network: torch.nn.Module, codec: Codec, lines: list[str], code: str, batch_tokens: int) -> np.ndarray:
    """e of each line (lines × width, float32), in order."""
    rows = codec.encode(lines, code, network.config.max_position_embeddings)
    order = sorted(range(len(rows)), key=lambda i: len(rows[i]))
    result = np.empty((len(rows), network.config.d_model), dtype=np.float32)
    batch: list[int] = []
    for index in [*order, None]:
        if batch and (index is None or (len(batch) + 1) * len(rows[index]) > batch_tokens):
            tensors = {
                k: v.to(network.device) for k, v in collate([(rows[i], rows[i]) for i in batch], codec.tokenizer.pad_token_id).items()
            }
            last = (tensors.pop("labels") != -100).sum(dim=1) - 1
            states = network.base_model(**tensors, use_cache=False).last_hidden_state
            result[batch] = states[torch.arange(len(batch)), last].float().cpu().numpy()
            batch = []
        if index is not None:
            batch.append(index)
    return result


def distances(source: np.ndarray, target: np.ndarray) -> dict[str, float]:
    """Both readings of Eq. 4, and the mean cosine of the pairs; `source` and `target` are N × width."""
    source, target = source.astype(np.float64), target.astype(np.float64)
    squared = ((source - target) ** 2).sum(axis=1)
    norms = np.linalg.norm(source, axis=1) * np.linalg.norm(target, axis=1)
    return {
        "pairs": float(np.sqrt(squared.sum())),
        "pairs_rms": float(np.sqrt(squared.mean())),
        "means": float(np.linalg.norm(source.mean(axis=0) - target.mean(axis=0))),
        "cosine": float(((source * target).sum(axis=1) / np.maximum(norms, 1e-12)).mean()),
    }


if __name__ == "__main__":
    run(main)
