"""settings: those of one phase of training, shared by all that trains."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from workflow_scripts.entry_names import Chosen
from workflow_scripts.number_types import AboveZero, Limits, Natural, NotNegative, Positive, ShareBelowOne


@dataclass
class Training:
    """Settings of one phase. The defaults are those of Zan et al., and of their published code where the paper is silent."""

    adapter: Annotated[dict[str, Any] | None, Chosen("adapter")] = None
    """Train few weights instead of all: `{kind: lora, rank: 16}` (LoRA), `dora`, `{kind: bottleneck, width: 64}` (a bottleneck beside each
    feed-forward module), or an adapter of a plugin. The phase hands on the whole model with the adapter merged into it; the adapter lies
    beside it, where peft knows it in peft's form. An update that trains few weights wants a higher
    learning rate, 1e-4 to 1e-3. By default all weights are trained."""
    updates: Positive = 25_000
    """Updates of the weights."""
    batch_tokens: Positive = 8_192
    """Tokens per update, padding included, counted on the longer side."""
    micro_batch_tokens: Positive | Literal["auto"] | None = "auto"
    """Tokens that go through a device at once, and a row more at most; such parts add up to an update. `auto` is as many as the memory of
    a GPU holds, which is tried before the first update and told in `training.json`; on a CPU it is all at once, as `null` is everywhere."""
    packed: bool = False
    """Pack several sentences into each row, so that all updates have one shape and little padding: for a GPU, where a sentence is much
    shorter than `max_length`. No sentence sees another, and each is learnt as by itself; but other sentences share an update than without
    it, so it is another training. Rows have `max_length` places, rounded up to a multiple of 64, and 128 at least. Not for VECO, CTC and
    SGA."""
    recorded: bool = False
    """With `packed`, record the work of an update on a GPU once, as a CUDA graph, and replay it: for small models, which a GPU finishes
    sooner than the processor can start it. It takes as much memory, for as long as the phase lasts. Not where several GPUs share an update,
    and not where one goes through in parts (`micro_batch_tokens`); there, and on a CPU, nothing is recorded."""
    sharded: bool = False
    """Where several GPUs share an update, each keeps a part of the weights, their gradients and Adam's moments (FSDP) instead of all: for
    a model that one GPU has no room for. What is handed on is the whole model. `micro_batch_tokens: auto` is 4,096 then, as no number can
    be tried. Nothing changes with one GPU. Not for VECO, CTC and SGA, nor for tasks with a head."""
    gradient_checkpointing: bool = False
    """Keep of each layer what goes into it, and compute the rest again on the way back: a fraction of the memory that the tokens of an
    update need, and about a third more time. Not with `recorded`."""
    learning_rate: AboveZero = 3e-5
    """Peak of the learning rate."""
    warmup_updates: Natural = 2_500
    """Updates of linear warm-up, before the decay."""
    decay: Literal["polynomial", "inverse_square_root"] = "polynomial"
    """How the learning rate falls: to zero at the last update, or with the inverse square root of the updates (Vaswani et al. 2017)."""
    decay_power: NotNegative = 1.0
    """Power of the polynomial decay; 1 is linear."""
    label_smoothing: ShareBelowOne = 0.2
    """Mass that is spread over the vocabulary. Models that write at once learn without."""
    loss: Literal["chunked", "plain"] = "chunked"
    """`chunked` never holds the scores of all tokens at once; `plain` is PyTorch's, and equal to rounding."""
    dropout: ShareBelowOne = 0.3
    """Dropout of residuals and embeddings."""
    attention_dropout: ShareBelowOne = 0.1
    """Dropout of attention weights."""
    adam_betas: tuple[ShareBelowOne, ShareBelowOne] = (0.9, 0.98)
    """Decay of Adam's moments."""
    adam_eps: AboveZero = 1e-6
    """Adam's epsilon."""
    weight_decay: NotNegative = 0.0
    """Decoupled weight decay."""
    max_grad_norm: NotNegative = 0.0
    """Clip gradients to this norm; 0 is off, as in the paper."""
    max_length: Annotated[int, Limits(ge=3)] = 256
    """The most pieces of a row, on either side; `too_long` says what becomes of longer ones. What is decoded may be longer."""
    too_long: Literal["leave_out", "cut"] | None = None
    """What becomes of rows with a side of more than `max_length` pieces; they are counted in either case. `leave_out`: they are not learnt
    from. `cut`: each side is cut by itself, and a side that was cut has no end mark, so that no model learns to stop in mid-sentence. By
    default translations and sentences to restore are left out; cut are documents, texts from which questions, titles or stories are
    written, and the text of backbones but for that of objective `translation`."""
    pairs: Positive | None = None
    """The task phase learns from so many pairs only, chosen at random once for all seeds: a low-resource setting. From as many of each
    text that is learnt from as well. All by default. The experiment's pretext phases read all of the text."""
    evaluate_every: Positive = 1_000
    """Updates between two looks at the dev set, and two checkpoints."""
    loss_every: Natural | None = None
    """Updates between two points of the curve of the dev loss, which needs no checkpoint: a quarter of `evaluate_every` by default
    in the task phase; 0 measures it at looks only, as a pretext phase does by default."""
    bleu_sentences: Natural = 500
    """Dev sentences that are translated (greedily) at each look; 0 turns dev BLEU, or ROUGE-L, off."""
    dev_metric: Literal["BLEU", "ROUGE-L"] = "BLEU"
    """What is measured of them. For the task summarisation it is ROUGE-L unless said otherwise."""
    checkpoint: Literal["best", "last", "average", "average_best"] = "best"
    """What the phase hands on: the best, the last, or the mean of the last or best `averaged`; `choose_by` says which is better."""
    choose_by: Literal["metric", "loss", "smoothed_loss"] = "metric"
    """What tells the better of two looks, for `checkpoint` and `patience`: the score that `dev_metric` names, the dev loss, or the dev loss
    with the training's `label_smoothing`, which is fairseq's. A pretext phase has no such score, and neither has a task phase with
    `bleu_sentences: 0`: there the loss decides, and `training.json` says so."""
    averaged: Positive = 5
    """Checkpoints that an average is the mean of."""
    patience: Natural = 0
    """End the phase when so many looks at the dev set in a row were no better than the best (`choose_by`); 0 never does."""
    log_every: Positive = 50
    """Updates between two points of the curve."""
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    """`auto` is bfloat16 on a GPU that has it, of weights that are kept in float32; float32 on a CPU."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Where to train."""

    def loss_updates(self, task: bool) -> int:
        """Updates between two points of the curve of the dev loss of a `task` phase or another, as `loss_every` says; 0 for none."""
        if self.loss_every is not None:
            return self.loss_every
        return self.evaluate_every // 4 if task else 0


ROUNDING_ONLY = ("device", "log_every", "loss_every", "micro_batch_tokens", "loss", "recorded", "sharded", "gradient_checkpointing")
"""Settings that may change between a killed call and its continuation: they affect only rounding and dropout's random numbers."""
DEV_LOSSES = {"loss": "dev_loss", "smoothed_loss": "dev_smoothed_loss"}
"""`choose_by`, where it is a loss → its name in the report."""
DEV_SCORES = {"BLEU": "dev_bleu", "ROUGE-L": "dev_rouge"}
"""`dev_metric` → its column in the curve."""
