"""settings: those of one phase of training, shared by all that trains."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from workflow_scripts.entry_names import Chosen
from workflow_scripts.number_types import AboveZero, Limits, Natural, NotNegative, Positive, ShareBelowOne


@dataclass
class Training:
    """Settings of one phase. The defaults are those of Zan et al., and of their published code where the paper is silent."""

    adapter: Annotated[dict[str, Any] | None, Chosen("adapter")] = None
    """Adapter that trains few weights: `{kind: lora, rank: 16}` (LoRA), `dora`, `{kind: bottleneck, width: 64}` (beside each feed-forward
    module), or one of a plugin. By default all weights are trained. The phase hands on the whole model with the adapter merged. The
    adapter lies beside it, in peft's format if peft knows it. Use a higher learning rate, 1e-4 to 1e-3."""
    updates: Positive = 25_000
    """Number of weight updates."""
    batch_tokens: Positive = 8_192
    """Tokens per update, with padding, counted on the longer side. Objective `veco` counts both segments of a row together."""
    micro_batch_tokens: Positive | Literal["auto"] | None = "auto"
    """Tokens per forward and backward pass on a device, plus at most one row. Gradients of several passes add up to one update. `auto`
    finds what fits into a GPU's memory before the first update, and `training.json` has the number. On a CPU `auto` is a whole update at
    once, as is `null` everywhere."""
    packed: bool = False
    """Pack several sentences into each row, so that all updates have one shape and little padding. Useful on a GPU if sentences are much
    shorter than `max_length`. No sentence sees another. Other sentences share an update than without packing, so the training differs.
    Rows have `max_length` positions, rounded up to a multiple of 64, at least 128. A decoder's may have more, as prompt, source and answer
    share one. Not for VECO, CTC and SGA."""
    recorded: bool = False
    """With `packed` on a GPU: record an update once as a CUDA graph and replay it. Useful for small models, where starting the GPU's work
    takes longer than the work. The graph keeps its memory during the phase. Nothing is recorded on a CPU, with several GPUs per update, or
    with passes in parts (`micro_batch_tokens`)."""
    sharded: bool = False
    """With several GPUs: each keeps only a part of the weights, gradients and Adam's moments (FSDP), for models too large for one GPU. The
    phase hands on the whole model. `micro_batch_tokens: auto` is then 4,096, because no number can be tried. No effect on one GPU. Not for
    VECO, CTC, SGA, nor for tasks with a head."""
    gradient_checkpointing: bool = False
    """Keep only each layer's input, and compute the rest again in the backward pass. Needs a fraction of the memory for an update's
    tokens, and about a third more time. Not with `recorded`."""
    learning_rate: AboveZero = 3e-5
    """Peak learning rate."""
    warmup_updates: Natural = 2_500
    """Number of updates with linear warm-up, before the decay."""
    decay: Literal["polynomial", "inverse_square_root"] = "polynomial"
    """How the learning rate falls: `polynomial` reaches zero at the last update; `inverse_square_root` follows the number of updates
    (Vaswani et al. 2017)."""
    decay_power: NotNegative = 1.0
    """Exponent of the polynomial decay; 1 is linear."""
    label_smoothing: ShareBelowOne = 0.2
    """Label smoothing: probability mass spread over the vocabulary. Non-autoregressive models train without it."""
    loss: Literal["chunked", "plain"] = "chunked"
    """How the loss is computed. `chunked` never holds the scores of all tokens at once. `plain` is PyTorch's; both are equal up to
    rounding."""
    dropout: ShareBelowOne = 0.3
    """Dropout of residuals and embeddings."""
    attention_dropout: ShareBelowOne = 0.1
    """Dropout of attention weights."""
    adam_betas: tuple[ShareBelowOne, ShareBelowOne] = (0.9, 0.98)
    """Adam's decay rates of the first and second moment (beta1, beta2)."""
    adam_eps: AboveZero = 1e-6
    """Adam's epsilon."""
    weight_decay: NotNegative = 0.0
    """Decoupled weight decay, as in AdamW."""
    max_grad_norm: NotNegative = 0.0
    """Gradients are clipped to this norm; 0 turns clipping off, as in the paper."""
    max_length: Annotated[int, Limits(ge=3)] = 256
    """Maximum number of pieces on either side of a row; `too_long` says what happens to longer ones. Decoded text may be longer."""
    too_long: Literal["leave_out", "cut"] | None = None
    """What happens to rows with a side of more than `max_length` pieces; they are always counted. `leave_out`: they are not used. `cut`:
    each side is cut, without an end mark, so that no model learns to stop in mid-sentence. SGA and CTC, which learn no end mark, leave out
    rows whose target would be cut. Default for translations and sentences to restore: `leave_out`, also for backbones with objective
    `translation`. Default for other text of backbones, for documents, and for questions, titles and stories: `cut`."""
    pairs: Positive | None = None
    """Number of training pairs in the task phase, drawn at random once for all seeds; by default all. It gives a low-resource setting.
    Each further text gives as many pairs. Pretext phases read all of the text."""
    evaluate_every: Positive = 1_000
    """Number of updates between two dev evaluations. Each writes a checkpoint."""
    loss_every: Natural | None = None
    """Number of updates between two measurements of the dev loss, without a checkpoint. Default in the task phase: a quarter of
    `evaluate_every`. 0, the default in pretext phases, measures it only at dev evaluations."""
    bleu_sentences: Natural = 500
    """Number of dev sentences decoded greedily at each evaluation. 0 turns dev BLEU or ROUGE-L off."""
    dev_metric: Literal["BLEU", "ROUGE-L"] = "BLEU"
    """Metric for the decoded dev sentences. Default for summarisation: ROUGE-L."""
    checkpoint: Literal["best", "last", "average", "average_best"] = "best"
    """Weights that the phase hands on: the best or last checkpoint, or the mean of the last or best `averaged` ones. `choose_by` defines
    the best."""
    choose_by: Literal["metric", "loss", "smoothed_loss"] = "metric"
    """What ranks dev evaluations, for `checkpoint` and `patience`. `metric`: the score in `dev_metric`. `loss`: the dev loss.
    `smoothed_loss`: the dev loss with the training's `label_smoothing`, as in fairseq. Pretext phases and `bleu_sentences: 0` have no
    score. There the loss decides, and `training.json` says so."""
    averaged: Positive = 5
    """Number of checkpoints in an average."""
    patience: Natural = 0
    """The phase ends after this many dev evaluations without improvement (`choose_by`); 0 turns early stopping off."""
    log_every: Positive = 50
    """Number of updates between two points of the training curve."""
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    """Precision of computing. `auto`: bfloat16 with float32 weights on a GPU that supports it, else float32. A processor with AMX makes
    `bfloat16` worth while for large models (preflight says so)."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Device for training; `auto` takes a GPU if there is one."""

    def loss_updates(self, task: bool) -> int:
        """Updates between two points of the curve of the dev loss of a `task` phase or another, as `loss_every` says; 0 for none."""
        if self.loss_every is not None:
            return self.loss_every
        return self.evaluate_every // 4 if task else 0


ROUNDING_ONLY = ("device", "log_every", "loss_every", "micro_batch_tokens", "loss", "recorded", "sharded", "gradient_checkpointing")
"""Settings that may change between a killed call and its continuation: they affect only rounding and dropout's random numbers."""
SHARDED_TOKENS = 4_096
"""Tokens that go through a device at once where the weights are spread over several, unless the settings say how many."""
DEV_LOSSES = {"loss": "dev_loss", "smoothed_loss": "dev_smoothed_loss"}
"""`choose_by`, where it is a loss → its name in the report."""
DEV_SCORES = {"BLEU": "dev_bleu", "ROUGE-L": "dev_rouge"}
"""`dev_metric` → its column in the curve."""
