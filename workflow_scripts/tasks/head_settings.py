"""head_settings: settings of finetuning a head."""

from dataclasses import dataclass
from typing import Annotated, Literal

from workflow_scripts.number_types import AboveZero, Limits, Natural, NotNegative, Positive, ShareBelowOne


@dataclass
class HeadSettings:
    """Settings of finetuning that all tasks with a head share."""

    batch_size: Positive = 128
    """Examples per update."""
    micro_batch: Positive | None = None
    """Examples that go through the device at once; smaller ones add up to an update. All at once by default."""
    learning_rate: AboveZero = 5e-6
    """Peak of the learning rate."""
    warmup: ShareBelowOne = 0.1
    """Share of the updates with linear warm-up; then linear decay."""
    dropout: ShareBelowOne = 0.1
    """Dropout of residuals, embeddings and the head."""
    attention_dropout: ShareBelowOne = 0.1
    """Dropout of attention weights."""
    weight_decay: NotNegative = 0.0
    """Decoupled weight decay."""
    max_grad_norm: NotNegative = 1.0
    """Clip gradients to this norm; 0 is off."""
    max_length: Annotated[int, Limits(ge=8)] = 128
    """Longer examples are cut to so many pieces, of a pair the longer text first; sentences of tagged words are cut into several."""
    examples: Positive | None = None
    """Finetune on so many examples only, chosen at random once for all seeds; of each translation of the text on as many. All by
    default."""
    looks: Positive = 1
    """Looks at the dev set in an epoch, fewer where it has only a few updates; each writes a checkpoint."""
    patience: Natural = 3
    """End when so many looks in a row brought nothing better; 0 never does."""
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    """`auto` is bfloat16 on a GPU that has it, of weights that are kept in float32; float32 on a CPU."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Where to compute."""


@dataclass
class TextHeadSettings(HeadSettings):
    """Settings of finetuning for tasks whose head reads a text, or a pair of texts, as a whole."""

    parts: Literal["both", "encoder"] = "both"
    """Of a model with a decoder: whether the head reads the decoder's last state, or is XLM-R's on the encoder's states."""
    reads: Literal["tag", "mean"] = "tag"
    """`parts: encoder`: which state the head reads, that of the language's tag or the mean of all."""
