"""head_settings: settings of finetuning a head."""

from dataclasses import asdict, dataclass
from typing import Annotated, Any, Literal

from workflow_scripts.entry_names import Chosen
from workflow_scripts.number_types import AboveZero, Limits, Natural, NotNegative, Positive, ShareBelowOne


@dataclass
class HeadSettings:
    """Settings of finetuning that all tasks with a head share."""

    batch_size: Positive = 128
    """Examples per update."""
    micro_batch: Positive | None = None
    """Examples per forward and backward pass. Gradients of several passes add up to one update. By default, all examples of an update go
    through at once."""
    learning_rate: AboveZero = 5e-6
    """Peak learning rate."""
    warmup: ShareBelowOne = 0.1
    """Share of the updates with linear warm-up. Linear decay follows."""
    dropout: ShareBelowOne = 0.1
    """Dropout of residuals, embeddings and the head."""
    attention_dropout: ShareBelowOne = 0.1
    """Dropout of attention weights."""
    weight_decay: NotNegative = 0.0
    """Decoupled weight decay, as in AdamW."""
    max_grad_norm: NotNegative = 1.0
    """Gradients are clipped to this norm; 0 turns clipping off."""
    max_length: Annotated[int, Limits(ge=8)] = 128
    """Maximum number of pieces of an example. Longer ones are cut, in a pair the longer text first. Sentences with tagged words are
    divided into several."""
    examples: Positive | None = None
    """Number of training examples, drawn at random once for all seeds; by default all. Each translation of the text gives as many."""
    looks: Positive = 1
    """Dev evaluations per epoch, fewer if an epoch has only a few updates. Each writes a checkpoint."""
    patience: Natural = 3
    """Training ends after this many dev evaluations without improvement; 0 turns early stopping off."""
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    """Precision of computing. `auto`: bfloat16 with float32 weights on a GPU that supports it, else float32."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Device for training; `auto` takes a GPU if there is one."""
    adapter: Annotated[dict[str, Any] | None, Chosen("adapter")] = None
    """Adapter that trains few weights of the model, as `training.adapter` does: `{kind: lora, rank: 16}`. The head is trained whole. By
    default all weights are trained. The model that comes out has the adapter merged into it. The adapter lies beside it, with the head, in
    peft's format if peft knows it. Use a higher learning rate, 1e-4 to 1e-3."""
    gradient_checkpointing: bool = False
    """Keep only each layer's input, and compute the rest again in the backward pass. Needs a fraction of the memory for an update's
    tokens, and about a third more time."""
    prefix: str = ""
    """Text before each text, question or query, such as `"query: "` of E5, and before the words of a tagged sentence; by default none. The
    model's folder keeps it."""
    pair_prefix: str = ""
    """Text before the second text of a pair, the passage or the document, such as `"passage: "` of E5."""


OF_A_PHASE = (
    "adapter",
    "gradient_checkpointing",
    "learning_rate",
    "dropout",
    "attention_dropout",
    "weight_decay",
    "max_grad_norm",
)
"""Settings that the `training` of an arm's task phase may change: how a head is trained, but not what it reads."""
_LATER = {"adapter": None, "gradient_checkpointing": False, "prefix": "", "pair_prefix": ""}
"""Settings that came later → what they are where nothing else is chosen."""


def named(settings: HeadSettings) -> dict[str, Any]:
    """The settings by name, without later ones that nobody has chosen: models from before there were such are not trained anew."""
    return {name: value for name, value in asdict(settings).items() if name not in _LATER or value != _LATER[name]}


@dataclass
class TextHeadSettings(HeadSettings):
    """Settings of finetuning for tasks whose head reads a text, or a pair of texts, as a whole."""

    parts: Literal["both", "encoder"] = "both"
    """For a model with a decoder: `both` lets the head read the decoder's last state; `encoder` puts XLM-R's head on the encoder's
    states."""
    reads: Literal["tag", "mean"] = "tag"
    """With `parts: encoder`: state that the head reads, that of the language's tag or the mean of all."""
