"""estimates: how much memory and disk training needs, estimated from the configuration alone.

The estimates are right within a factor of two (docs/reliability.md): enough to tell whether a phase fits, not to plan costs.
"""

import math
import re
from typing import NamedTuple

from workflow_scripts.tasks.experiment import Trained


class Shape(NamedTuple):
    """What the size of a model follows from, by the names of mBART's ``config.json``; a decoder alone has its layers as an encoder's."""

    vocab_size: int
    d_model: int
    encoder_ffn_dim: int
    encoder_layers: int
    decoder_layers: int
    max_position_embeddings: int
    tie_word_embeddings: bool = True
    query_width: int = 0
    """Of a decoder with a gated feed-forward layer and rotary positions (Gemma, Llama, Qwen, Mistral): the width of all its queries."""
    key_width: int = 0
    """And of all its keys, which several queries may share."""

    @property
    def parameters(self) -> int:
        """Number of weights, tied ones once; of a decoder to a hundredth, as the normalisations of each kind are others."""
        if self.query_width:
            attention = 2 * self.d_model * (self.query_width + self.key_width)
            layers = self.encoder_layers * (attention + 3 * self.d_model * self.encoder_ffn_dim + 4 * self.d_model)
            return layers + self.d_model * self.vocab_size * (1 if self.tie_word_embeddings else 2)
        attention, norm = 4 * (self.d_model**2 + self.d_model), 2 * self.d_model
        feed_forward = 2 * self.d_model * self.encoder_ffn_dim + self.encoder_ffn_dim + self.d_model
        encoder = self.encoder_layers * (attention + feed_forward + 2 * norm)
        decoder = self.decoder_layers * (2 * attention + feed_forward + 3 * norm)
        vocabularies = 1 if self.tie_word_embeddings else 2
        return encoder + decoder + self.d_model * (vocabularies * self.vocab_size + 2 * (self.max_position_embeddings + 2)) + 4 * norm


MBART_LARGE = Shape(250_027, 1024, 4096, 12, 12, 1024)
"""facebook/mbart-large-cc25; the 50's vocabulary has 27 pieces more."""


def training_memory(shape: Shape, phase: Trained, gpus: int, trained: int | None = None, rounded: int = 0) -> float:
    """Bytes that each device needs for an update; `gpus` is 0 on a CPU.

    Weights, gradients and Adam's moments are 16 bytes a parameter, copies in bfloat16 and their gradients four more. With an adapter only
    what is `trained`, so many weights, has gradients and moments. On a GPU, weights that are `rounded` to four bits take half a byte and a
    tenth for their scales. What a token leaves behind in each layer for the way back was counted on small mBARTs with as many tokens on
    either side, in float32; bfloat16 needs three fifths, measured on an H200. `_of_decoder` has another
    count, and beside it the scores that the loss holds at once, which in a vocabulary of a decoder's size are a gigabyte.
    Unless the loss comes in chunks, there are three numbers more for each piece of the vocabulary. `auto` counts as all of an update at
    once. Where the weights are spread over the GPUs, each has its part, and for a while the whole of two layers and of what no layer has. A
    layer that computes again keeps what goes into it, and one at a time all.
    """
    batch, devices = phase.batch_tokens, max(1, gpus)
    micro = phase.micro_batch_tokens if isinstance(phase.micro_batch_tokens, int) else batch
    tokens = batch / (devices * math.ceil(batch / (devices * micro)))
    encoder, decoder = (n * shape.d_model + 8 * shape.encoder_ffn_dim for n in (40, 68))
    number = shape.encoder_layers + shape.decoder_layers
    layers: float = shape.encoder_layers * encoder + shape.decoder_layers * decoder
    if phase.computes_again:
        layers = number * 4 * shape.d_model + max(encoder, decoder if shape.decoder_layers else 0)
    weight, learnt = 4, 12
    half = gpus > 0 and phase.precision != "float32"
    if half:
        layers, weight, learnt = 0.6 * layers, 6, 14
    scores, at_once = (0 if phase.chunked_loss else 12 * shape.vocab_size), 0.0
    if shape.query_width:
        each = _of_decoder(shape, half, trained is not None)
        layers = number * 4 * shape.d_model + each if phase.computes_again else number * each
        at_once = 8 * min(1 << 27, tokens * shape.vocab_size)
    # the first term is for torch and its libraries, or what CUDA and its allocator keep
    plain = shape.parameters - (rounded if gpus else 0)
    weights: float = weight * plain + 0.6 * (shape.parameters - plain) + learnt * (shape.parameters if trained is None else trained)
    if phase.sharded and devices > 1:
        alone = shape.d_model * shape.vocab_size * (1 if shape.tie_word_embeddings else 2)
        together = alone + 2 * (shape.parameters - alone) / max(1, number)
        weights = weights / devices + 8 * together
    return 1e9 + weights + at_once + tokens * (layers + scores)


def _of_decoder(shape: Shape, half: bool, adapted: bool) -> float:
    """Bytes that a token leaves behind in a layer of a decoder, counted on small Gemmas, which have the most normalisations.

    In `half` precision normalisations are still computed in float32. Where an adapter is trained, what only their weights would read goes.
    """
    widths = shape.query_width + shape.key_width
    states, attention = (20, 8.5) if half else (24, 12.5)
    if not adapted:
        states, attention = states + 16, attention + 4
    return states * shape.d_model + (8 if half else 16) * shape.encoder_ffn_dim + attention * widths


def host_memory(shape: Shape, gpus: int, text: float = 0) -> float:
    """Bytes of the node's memory that training on GPUs needs at least: weights (4 a parameter), CUDA and the text, in each process.

    Each process holds the ids of `text` (in bytes): four bytes for a piece of about four. While it puts them together, it needs as much
    again.
    """
    return gpus * (2e9 + 4 * shape.parameters + 2 * text)


def training_disk(shape: Shape, phase: Trained, trained: int | None = None) -> float:
    """Bytes that stay of a phase: of its model (4 a parameter) and of its last and chosen checkpoints (4 a weight that is trained)."""
    return 4 * shape.parameters + 4 * phase.weights * (shape.parameters if trained is None else trained)


def moments_disk(shape: Shape, phase: Trained, trained: int | None = None) -> float:
    """Bytes beside these while a phase is trained: more checkpoints, and Adam's moments (12 a weight that is trained, with the weight)."""
    return (12 * phase.checkpoints - 4 * phase.weights) * (shape.parameters if trained is None else trained)


def vectors_disk(text: float, dimensions: int) -> float:
    """Bytes of the word vectors of both sides, learnt and mapped, of a corpus of so many bytes.

    Words by Heaps' law, fitted to the embedded corpus; ten bytes a number.
    """
    return 4 * 0.65 * (text / 12) ** 0.7 * 10 * dimensions


_OLD_GPUS = {
    **{"1080": 8, "1080ti": 11, "titanxp": 12, "p40": 24, "p100": 16, "titanv": 12, "v100": 16, "t4": 16},
    **{"2080": 8, "2080ti": 11, "titanrtx": 24, "quadrortx5000": 16, "quadrortx6000": 24, "rtx8000": 48},
}
"""GPUs that do not compute in bfloat16, so that `precision: auto` is float32 on them: Pascal, Volta and Turing."""

_GPUS = {
    **_OLD_GPUS,
    **{"a10": 24, "a30": 24, "l4": 24, "rtx3090": 24, "rtx4090": 24},
    **{"a100": 40, "a40": 48, "a6000": 48, "l40": 48, "mi250": 64, "h100": 80, "h200": 141, "b200": 180, "mi300": 128},
}


def _known_gpu(model: str) -> str:
    """The GPU of `_GPUS` that the name of a cluster's is of; empty where there is none."""
    # a size behind the name is none of its digits: v100_32gb_sxm2
    plain = re.sub(r"[^a-z0-9]", "", re.sub(r"[\W_]\d+\s*gb?(?![a-z0-9])", "", model.lower()))
    # an A40 is no A4000
    return next((name for name in sorted(_GPUS, key=len, reverse=True) if re.search(rf"{name}(?!\d)", plain)), "")


def is_without_bfloat16(model: str) -> bool:
    """Whether a GPU of this name does not compute in bfloat16; False where the name does not tell."""
    return _known_gpu(model) in _OLD_GPUS


def gpu_gigabytes(model: str) -> float | None:
    """The memory of a GPU by the name that a cluster gives it, of several sizes the smallest; None where the name does not tell."""
    if "gh200" in re.sub(r"[^a-z0-9]", "", model.lower()):  # whose name may have the 480 GB of its CPU
        return 96.0
    if size := re.search(r"(\d+)\s*gb", model.lower()):
        return float(size[1])
    return _GPUS.get(_known_gpu(model))
