"""loop: the training loop behind `training`, on Hugging Face's Trainer.

The Trainer provides mixed precision, accumulation, checkpoints, resuming and TensorBoard. Batches (by token
budget), loss and dev set are Crossgap's own. An item of the Trainer's dataset is a whole batch, or the part of
one that a device processes at once.
"""

import json
import math
import os
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import distributed
from tqdm import tqdm
from transformers import PreTrainedModel, Trainer, TrainerCallback, TrainingArguments
from transformers.trainer_callback import PrinterCallback, ProgressCallback

from workflow_scripts.device import pick_device, pick_precision
from workflow_scripts.models.batches import by_length, collate
from workflow_scripts.models.networks import last_states, load_network, output_layer
from workflow_scripts.models.packing import pack
from workflow_scripts.models.search import generate
from workflow_scripts.models.tokenisation import Codec
from workflow_scripts.stage import InputError, Stopped, atomic, is_first_process, read_json
from workflow_scripts.training.checkpoints import (
    Deadline,
    average_weights,
    chosen_updates,
    judged_by,
    last_complete_checkpoint,
    looks_without_gain,
    prune,
)
from workflow_scripts.training.curve import LOSS_ONLY, judge
from workflow_scripts.training.dropout import quick_dropout
from workflow_scripts.training.fitting import parts_that_fit, pick_batching, try_part
from workflow_scripts.training.loss import linear_smoothed_loss, smoothed_loss, states_for_logits
from workflow_scripts.training.rows import Dev, Rounds, plan_batches, split_batch
from workflow_scripts.training.settings import Training


class Diverged(InputError):
    """Training has diverged; `history` is what was logged until then."""

    def __init__(self, history: list[dict], reason: str):
        super().__init__(reason)
        self.history = history


def train(
    network: PreTrainedModel,
    codec: Codec,
    rounds: Rounds,
    dev: list[Dev],
    folder: Path,
    seed: int,
    settings: Training,
    minutes: float = 0,
    taken: dict[str, Any] | None = None,
) -> list[dict]:
    """Train `network` in place and return the history, a dictionary per logged update.

    Continues from the newest checkpoint in `folder`, if there is one. Under torchrun each process takes
    its part of every update. Raises `Stopped` when SIGTERM comes or the job's `minutes` are nearly
    over, `Diverged` when the loss is not finite or far above that of guessing. `taken` is filled with what `auto` stood for.
    """
    device = pick_device(settings.device)
    precision = pick_precision(settings.precision, device)
    processes = int(os.environ.get("WORLD_SIZE", "1"))
    updates = list(plan_batches(rounds, settings.batch_tokens, settings.updates, seed))
    batching = pick_batching(settings, network)
    to_batch = pack if batching == "packed" else partial(collate, pad=codec.tokenizer.pad_token_id, decoder=codec.form.decoder)
    loss = pick_loss(network, settings, precision)
    parts = parts_of(network, to_batch, loss, updates, settings, folder, seed)
    if taken is not None:
        taken |= {"batching": batching, "micro_batch_tokens": math.ceil(settings.batch_tokens / parts)}

    def loss_only() -> dict[str, float]:
        return {LOSS_ONLY: dev_loss(network, codec, dev, precision=precision)}

    def look() -> dict[str, float]:
        metrics = {"eval_loss": dev_loss(network, codec, dev, precision=precision)}
        for part in dev if settings.bleu_sentences else []:
            score = dev_score(network, codec, part, settings) if part.references else None
            if score is not None:
                metrics[f"eval_{settings.dev_metric.partition('-')[0].lower()}"] = score
        return metrics

    # the loss of a model that gives the same probability to each piece
    uniform = math.log(network.config.vocab_size)
    watch = Watch(folder, settings, Deadline(minutes), f"guessing costs {uniform:.3g}", 1.5 * uniform, judge(settings))
    scored = any(part.references for part in dev)
    watch.between(loss_only, settings.loss_every if settings.loss_every is not None else settings.evaluate_every // 4 if scored else 0)
    return fit(
        network,
        [part for update in updates for part in split_batch(update, parts)],
        parts // processes,
        to_batch,
        loss,
        look,
        watch,
        Progress([sum(len(target) for _, target in update) for update in updates]),
        seed,
    )


def parts_of(
    network: Any,
    to_batch: Callable[[list], dict[str, Any]],
    loss: Callable[..., torch.Tensor],
    updates: list[list],
    settings: Training,
    folder: Path,
    seed: int,
) -> int:
    """How many parts an update is split into: on a GPU found by trying, unless it is told how many tokens go through at once."""
    device = pick_device(settings.device)
    processes = int(os.environ.get("WORLD_SIZE", "1"))
    if settings.micro_batch_tokens == "auto" and device.type == "cuda":
        if processes > 1:
            trainer_arguments(settings, folder, 1, seed)  # this starts the processes' group, by which they agree
        network.to(device)
        precision = pick_precision(settings.precision, device)
        return parts_that_fit(partial(try_part, network, to_batch, loss, precision, processes > 1), updates, processes)
    at_once = settings.micro_batch_tokens if isinstance(settings.micro_batch_tokens, int) else settings.batch_tokens
    return processes * math.ceil(settings.batch_tokens / (processes * at_once))


def fit(
    network: Any,
    batches: Sequence[list],
    accumulated: int,
    collate: Callable[[list], dict[str, torch.Tensor]],
    loss: Callable[..., torch.Tensor],
    look: Callable[[], dict[str, float]],
    watch: "Watch",
    progress: "Progress",
    seed: int,
) -> list[dict]:
    """Train `network` in place on `batches`, of which `accumulated` make an update on each device; return the history.

    `look` measures the dev set; the settings, the folder of checkpoints and the time are those of `watch`. Raises as `train` does.
    """
    settings, folder = watch.settings, watch.folder
    trainer = PhaseTrainer(
        model=network,
        args=trainer_arguments(settings, folder, accumulated, seed),
        train_dataset=batches,
        eval_dataset=batches,  # the Trainer requires one; `evaluate` below uses the real dev set
        data_collator=lambda items: collate(items[0]),
        compute_loss_func=loss,
        callbacks=[progress, watch],
    )
    trainer.remove_callback(PrinterCallback)
    trainer.remove_callback(ProgressCallback)
    trainer.prepare(look)
    watch.trainer = trainer
    last = first_says(lambda: last_complete_checkpoint(folder))
    if last and watch.out_of_patience(history := read_json(Path(last) / "trainer_state.json")["log_history"]):
        trainer.state.log_history = history
    else:
        if last:
            print(f"continuing from {last}", flush=True)
        with watch.deadline, quick_dropout(pick_device(settings.device)):
            trainer.train(resume_from_checkpoint=last)
    if watch.stopped:
        raise Stopped(f"{watch.stopped}: stopped after update {trainer.state.global_step}; the same call goes on from its checkpoint")
    if is_first_process():
        chosen = chosen_updates(trainer.state.log_history, settings.checkpoint, settings.averaged, watch.by)
        average_weights(network, [folder / f"checkpoint-{update}" / "model.safetensors" for update in chosen])
    return trainer.state.log_history


def trainer_arguments(settings: Training, folder: Path, accumulated: int, seed: int) -> TrainingArguments:
    """Our settings in the Trainer's words; on a GPU, batches are made and sent while the one before is at work."""
    device = pick_device(settings.device)
    on_gpu = device.type == "cuda"
    processes = int(os.environ.get("WORLD_SIZE", "1"))
    every = min(settings.evaluate_every, settings.updates)
    arguments = TrainingArguments(
        output_dir=str(folder),
        max_steps=settings.updates,
        per_device_train_batch_size=1,  # an item of the dataset is a whole batch
        gradient_accumulation_steps=accumulated,
        train_sampling_strategy="sequential",
        learning_rate=settings.learning_rate,
        **schedule(settings),
        warmup_steps=min(settings.warmup_updates, settings.updates - 1),
        optim="adamw_torch_fused",
        adam_beta1=settings.adam_betas[0],
        adam_beta2=settings.adam_betas[1],
        adam_epsilon=settings.adam_eps,
        weight_decay=settings.weight_decay,
        max_grad_norm=settings.max_grad_norm,
        bf16=pick_precision(settings.precision, device) == "bfloat16",
        use_cpu=device.type == "cpu",
        ddp_backend="gloo" if device.type == "cpu" and processes > 1 else None,
        ddp_find_unused_parameters=False,
        ddp_timeout=6 * 3600,  # the others wait while the first process looks at the dev set or writes a checkpoint
        logging_steps=min(settings.log_every, every),
        logging_first_step=True,
        logging_nan_inf_filter=False,
        eval_strategy="steps",
        eval_steps=every,
        save_strategy="steps",
        save_steps=every,
        report_to="tensorboard",
        disable_tqdm=True,  # `Progress` has the bar
        dataloader_pin_memory=on_gpu,
        dataloader_num_workers=int(on_gpu),
        accelerator_config={"non_blocking": on_gpu},
        remove_unused_columns=False,
        seed=seed,
    )
    # with a higher number, the Trainer would give several items at once to the collator; torchrun handles several GPUs
    arguments._n_gpu = min(arguments.n_gpu, 1)
    return arguments


def schedule(settings: Training) -> dict[str, Any]:
    """How the learning rate falls, in the Trainer's words."""
    if settings.decay == "inverse_square_root":
        return {"lr_scheduler_type": "inverse_sqrt"}
    return {"lr_scheduler_type": "polynomial", "lr_scheduler_kwargs": {"lr_end": 0.0, "power": settings.decay_power}}


def pick_loss(network: PreTrainedModel, settings: Training, precision: str) -> Callable[..., torch.Tensor]:
    """The Trainer's loss function. For the chunked loss, `network` is changed to return its last states instead of logits."""
    if settings.loss == "plain":
        return lambda outputs, labels, num_items_in_batch=None: smoothed_loss(
            outputs.logits, labels, settings.label_smoothing, num_items_in_batch
        )
    states_for_logits(network)
    return lambda outputs, labels, num_items_in_batch=None: linear_smoothed_loss(
        outputs.logits,
        *output_layer(network),
        labels,
        settings.label_smoothing,
        num_items_in_batch,
        torch.bfloat16 if precision == "bfloat16" else torch.float32,
    )


def first_says(find: Callable[[], Any]) -> Any:
    """The result of `find`, which only the first process calls; all processes get it."""
    box = [find() if is_first_process() else None]
    if distributed.is_initialized():
        distributed.broadcast_object_list(box, src=0)
    return box[0]


class PhaseTrainer(Trainer):
    """Hugging Face's Trainer with a look at our dev set."""

    model: Any

    def prepare(self, look: Callable[[], dict[str, float]]) -> None:
        """Hand over what `evaluate` measures."""
        self.look = look
        self.begun = time.perf_counter()

    def evaluate(self, *_: object, **__: object) -> dict[str, float]:
        """Scores on the dev set, measured by the first process for all."""
        metrics = self.measure(self.look)
        self.control = self.callback_handler.on_evaluate(self.args, self.state, self.control, metrics)
        return metrics

    def measure(self, what: Callable[[], dict[str, float]]) -> dict[str, float]:
        """Log what the first process measures; training goes on as if nothing had been measured."""
        metrics = first_says(what)
        self.model.train()
        self.log(metrics)
        return metrics

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """Add the seconds spent so far, those of earlier attempts included."""
        if not hasattr(self, "earlier"):
            self.earlier = max((entry.get("seconds", 0.0) for entry in self.state.log_history), default=0.0)
        super().log({**logs, "seconds": round(self.earlier + time.perf_counter() - self.begun, 2)}, start_time)


class Watch(TrainerCallback):
    """Ends a phase before its last update if its time or its patience is over, or if training has diverged."""

    def __init__(
        self, folder: Path, settings: Training, deadline: Deadline, guess: str = "", lost: float = math.inf, by: str = "eval_loss"
    ):
        """After the warm-up, a loss above `lost` counts as diverged; `guess` tells the loss of guessing, for the message. Looks at the
        dev set are judged `by` this number."""
        self.folder, self.settings, self.deadline, self.guess, self.lost, self.by = folder, settings, deadline, guess, lost, by
        self.stopped, self.group = "", None
        self.trainer: PhaseTrainer
        self.between(dict, 0)

    def between(self, measure: Callable[[], dict[str, float]], every: int) -> None:
        """Also call `measure` every `every` updates between two looks at the dev set; 0 turns this off."""
        self.measure, self.every = measure, every

    def out_of_patience(self, history: list[dict]) -> bool:
        """Whether the phase ends because its looks at the dev set no longer get better."""
        return bool(self.settings.patience) and looks_without_gain(history, self.by) >= self.settings.patience

    def on_train_begin(self, args, state, control, **kwargs):  # noqa: D102
        # if the phase was stopped just before a measurement on the dev set, it is made now
        if not any(entry["step"] == state.global_step and {"eval_loss", LOSS_ONLY} & entry.keys() for entry in state.log_history):
            if state.global_step and self._look_is_due(state):
                self.trainer.evaluate()
            else:
                self._measure_if_due(state)

    def on_step_end(self, args, state, control, **kwargs):  # noqa: D102
        self._stop_if_told(args, state, control)
        if not self.stopped:
            due = control.should_log
            self._measure_if_due(state)
            control.should_log = due  # otherwise the Trainer would take the measurement for its own log of the training loss

    def _look_is_due(self, state) -> bool:
        return state.global_step % state.eval_steps == 0 or state.global_step == state.max_steps

    def _measure_if_due(self, state) -> None:
        if self.every and state.global_step and state.global_step % self.every == 0 and not self._look_is_due(state):
            self.trainer.measure(self.measure)

    def _stop_if_told(self, args, state, control) -> None:
        reason = self.deadline.reason()
        if distributed.is_initialized():
            # the signal reaches each process at another moment, but all must stop at the same update; gloo does not wait for a GPU
            self.group = self.group or distributed.new_group(backend="gloo")
            stop = torch.tensor(float(bool(reason)))
            distributed.all_reduce(stop, distributed.ReduceOp.MAX, self.group)
            reason = reason or ("another process was told to stop" if stop else "")
        if reason and state.global_step < state.max_steps:
            self.stopped = reason
            control.should_save = control.should_training_stop = True
            # a look may take longer than the time between SIGTERM and SIGKILL
            control.should_evaluate = False

    def on_log(self, args, state, control, logs=None, **kwargs):  # noqa: D102
        rate = next((entry["learning_rate"] for entry in reversed(state.log_history) if "learning_rate" in entry), 0.0)
        for name in ("loss", "eval_loss", LOSS_ONLY):
            value = (logs or {}).get(name, 0.0)
            lost = state.global_step > args.warmup_steps and value > self.lost
            if lost or not math.isfinite(value):
                raise Diverged(
                    state.log_history,
                    f"{'training' if name == 'loss' else 'dev'} loss {value:.4g} at update {state.global_step} "
                    f"(learning rate {rate:.3g}{f'; {self.guess}' if self.guess else ''}): training has diverged; "
                    "lower learning_rate, raise warmup_updates, set max_grad_norm: 1.0 or precision: float32",
                )
        if is_first_process():
            self.folder.mkdir(parents=True, exist_ok=True)
            with atomic(self.folder / "log.jsonl") as file:
                file.writelines(json.dumps(entry) + "\n" for entry in state.log_history)

    def on_evaluate(self, args, state, control, metrics=None, **kwargs):  # noqa: D102
        if self.out_of_patience(state.log_history):
            what = judged_by(state.log_history, self.by).removeprefix("eval_")
            print(f"no better dev {what} for {self.settings.patience} looks: the phase ends after update {state.global_step}", flush=True)
            control.should_save = control.should_training_stop = True
        else:
            self._stop_if_told(args, state, control)

    def on_save(self, args, state, control, **kwargs):  # noqa: D102
        if is_first_process():
            prune(self.folder, state.log_history, self.settings.checkpoint, self.settings.averaged, self.by)


class Progress(TrainerCallback):
    """A bar in a terminal, plain lines elsewhere: loss, learning rate, target tokens (or another unit) per second, time left."""

    def __init__(self, sizes: list[int], unit: str = "tokens"):
        self.sizes, self.unit = sizes, unit
        self.bar = None

    def on_train_begin(self, args, state, control, **kwargs):  # noqa: D102
        self.first, self.begun = state.global_step, time.perf_counter()
        if sys.stderr.isatty() and is_first_process():
            self.bar = tqdm(total=state.max_steps, initial=state.global_step, unit="update", dynamic_ncols=True)

    def on_step_end(self, args, state, control, **kwargs):  # noqa: D102
        if self.bar is not None:
            self.bar.update(state.global_step - self.bar.n)

    def on_train_end(self, args, state, control, **kwargs):  # noqa: D102
        if self.bar is not None:
            self.bar.close()

    def on_log(self, args, state, control, logs=None, **kwargs):  # noqa: D102
        names = ("loss", "learning_rate", "eval_loss", LOSS_ONLY, "eval_bleu", "eval_rouge", "eval_error")
        shown = {name: f"{logs[name]:.4g}" for name in names if name in (logs or {})}
        if not is_first_process() or not {"loss", "eval_loss", LOSS_ONLY} & shown.keys():
            return
        taken = max(time.perf_counter() - self.begun, 1e-9)
        shown[f"{self.unit}/s"] = f"{sum(self.sizes[self.first : state.global_step]) / taken:,.0f}"
        if self.bar is not None:
            self.bar.set_postfix(shown)
            return
        left = taken / max(1, state.global_step - self.first) * (state.max_steps - state.global_step)
        line = "  ".join(f"{name} {value}" for name, value in shown.items())
        print(f"update {state.global_step}/{state.max_steps}  {line}  left {int(left) // 60}:{int(left) % 60:02}", flush=True)


@torch.no_grad()
def dev_loss(network: PreTrainedModel, codec: Codec, dev: list[Dev], tokens: int = 4096, precision: str = "float32") -> float:
    """Negative log-likelihood per label, in nats."""
    network.eval()
    total = labels = 0.0
    rows = [row for part in dev for row in part.rows]
    for chosen in by_length([max(map(len, row)) for row in rows], tokens):
        batch = collate([rows[i] for i in chosen], codec.tokenizer.pad_token_id, codec.form.decoder)
        tensors = {name: tensor.to(network.device) for name, tensor in batch.items()}
        target = tensors.pop("labels")
        with torch.autocast(network.device.type, torch.bfloat16, enabled=precision == "bfloat16"):
            states = last_states(network, **tensors)
        total += float(linear_smoothed_loss(states, *output_layer(network), target, 0.0, 1, states.dtype))
        labels += int((target != -100).sum())
    return total / labels


@torch.no_grad()
def dev_score(network: PreTrainedModel, codec: Codec, dev: Dev, settings: Training) -> float | None:
    """BLEU or ROUGE-L of greedy translations of the first dev sentences; None if the metric's library or tokeniser is missing."""
    metric = dev_metric(dev.language, settings)
    if metric is None:
        return None
    rows = dev.rows[: settings.bleu_sentences]
    # a summary is far shorter than its document
    longest = {"max_length": max(len(row[1]) for row in rows) + 10} if codec.documents else {}
    # a GPU takes hundreds of sentences in the time of a few
    at_once = 16_384 if network.device.type == "cuda" else 4_096
    hypotheses = generate(network, codec, [row[0] for row in rows], dev.language, beam_size=1, tokens=at_once, **longest)
    return metric.corpus_score(hypotheses, [(dev.references or [])[: settings.bleu_sentences]]).score


def dev_metric(code: str, settings: Training) -> Any:
    """What texts of dev sentences in a language are scored by; None if the metric's library or tokeniser is missing."""
    try:
        from workflow_scripts.evidence.scores import Scores, metrics

        return metrics(code, Scores(metrics=[settings.dev_metric]))[settings.dev_metric]()
    except (ImportError, OSError):
        return None


def load_model(folder: Path | str, settings: Training, seed: int, from_scratch: bool = False) -> PreTrainedModel:
    """The model in `folder` (or hub id) that writes text, with the phase's dropout; random weights for `from_scratch`."""
    dropout, attention = settings.dropout, settings.attention_dropout
    return load_network(folder, "text", dropout=dropout, attention_dropout=attention, seed=seed, from_scratch=from_scratch)
