"""loop: the training loop behind `training`, on Hugging Face's Trainer.

The Trainer provides mixed precision, accumulation, checkpoints, resuming and TensorBoard. Batches (by token
budget), loss and dev set are Crossgap's own. An item of the Trainer's dataset is a whole batch, or the part of
one that a device processes at once.
"""

import json
import math
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import distributed
from transformers import PreTrainedModel, Trainer, TrainingArguments
from transformers.trainer_callback import PrinterCallback, ProgressCallback

from workflow_scripts.device import machine, pick_device, pick_precision
from workflow_scripts.models.batches import Row, collate
from workflow_scripts.models.networks import load_network, makes_scores_of_states, output_layer
from workflow_scripts.models.products import quick_products
from workflow_scripts.models.recognition import longest_row
from workflow_scripts.models.tokenisation import Codec
from workflow_scripts.stage import InputError, Stopped, atomic, in_one_line, is_first_process, processes, read_json, to_disk
from workflow_scripts.training.callbacks import Progress, Watch
from workflow_scripts.training.checkpoints import (
    Deadline,
    average_weights,
    chosen_updates,
    last_complete_checkpoint,
)
from workflow_scripts.training.curve import LOSS_ONLY, judge, score_key
from workflow_scripts.training.dropout import quick_dropout
from workflow_scripts.training.graphs import Recorded, recorder
from workflow_scripts.training.loss import gives_states, linear_smoothed_loss, smoothed_loss, states_for_logits
from workflow_scripts.training.masks import known_masks, without_questions
from workflow_scripts.training.micro_batches import cells, parts_that_fit, try_part
from workflow_scripts.training.mixed_precision import mixed_precision
from workflow_scripts.training.packing import PackedBatches, check_packs, collate_packed, packed_forward, row_length
from workflow_scripts.training.ragged import lengths_of
from workflow_scripts.training.rows import Batches, Dev, Made, Rounds, in_parts
from workflow_scripts.training.settings import Training
from workflow_scripts.training.sharding import (
    is_sharded,
    load_moments,
    load_weights,
    spread,
    weights_here,
    whole,
    whole_moments,
    whole_weights,
)
from workflow_scripts.training.validation import dev_loss, dev_losses, dev_score

WEIGHTS = "model.safetensors"
"""The file of a checkpoint's weights."""
OPTIMIZER, SCHEDULER = "optimizer.pt", "scheduler.pt"
"""The Trainer's files of a checkpoint's moments and learning rate."""
SHARDED_TOKENS = 4_096
"""Tokens that go through a device at once where the weights are spread over several, unless the settings say how many."""


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
    A decoder whose scores are more than the output layer's product has the plain loss, whatever the settings say.
    """
    if not makes_scores_of_states(network):
        settings = replace(settings, loss="plain")
    device = pick_device(settings.device)
    precision = pick_precision(settings.precision, device)
    handed_on = network
    if settings.sharded and processes() > 1:
        trainer_arguments(settings, folder, 1, seed)  # this starts the processes' group
        network = spread(network, device, precision)
    if settings.gradient_checkpointing:
        compute_again(network)
    planned = settings.batch_tokens, settings.updates, seed
    if settings.packed:
        check_packs(network, settings.max_length)
        updates: Batches = PackedBatches(rounds, *planned, row_length(settings.max_length))
    else:
        updates = Batches(rounds, *planned)
    check_lengths(network, [updates.epoch(0), *(part.rows for part in dev)])
    loss = pick_loss(network, settings, precision)
    to_batch = batch_maker(codec, settings, select=gives_states(network) and not settings.recorded)
    with network_reads(network, settings.packed):
        parts = parts_of(network, to_batch, loss, updates, settings, folder, seed)
    if taken is not None:
        taken |= {"micro_batch_tokens": math.ceil(settings.batch_tokens / parts)}
        if is_sharded(network):  # the whole one stays on the processor
            taken |= {"weights_of_each_process": weights_here(network), "precision": precision}
            taken |= {"device": str(network.device), "machine": machine(device)}

    def loss_only() -> dict[str, float]:
        return {LOSS_ONLY: dev_loss(network, codec, dev, precision=precision)}

    def look() -> dict[str, float]:
        smoothings = {"eval_loss": 0.0}
        if settings.choose_by == "smoothed_loss":
            smoothings["eval_smoothed_loss"] = settings.label_smoothing
        losses = dev_losses(network, codec, dev, [*smoothings.values()], precision=precision)
        metrics = dict(zip(smoothings, losses, strict=True))
        for part in dev if settings.bleu_sentences else []:
            score = dev_score(network, codec, part, settings) if part.references else None
            if score is not None:
                metrics[score_key(settings)] = score
        return metrics

    # the loss of a model that gives the same probability to each piece
    uniform = math.log(network.config.vocab_size)
    watch = Watch(folder, settings, Deadline(minutes), uniform, judge(settings))
    watch.between(loss_only, settings.loss_updates(task=any(part.references for part in dev)))
    batches, progress = in_parts(updates, parts), Progress(updates.targets())
    with network_reads(network, settings.packed):
        return fit(network, batches, parts // processes(), to_batch, loss, look, watch, progress, seed, handed_on)


def compute_again(network: PreTrainedModel) -> None:
    """Have layers keep what goes into them alone; raises `InputError` for a network that cannot."""
    try:
        network.activation_checkpointing_enable({"use_reentrant": False})
    except ValueError as error:
        raise InputError(f"training.gradient_checkpointing: {in_one_line(error)}; leave it out") from None


def batch_maker(codec: Codec, settings: Training, select: bool) -> Callable[[list], dict[str, torch.Tensor]]:
    """What makes tensors of a batch's rows, packed or not, with what the processor knows of them (`masks.without_questions`)."""
    form: dict[str, Any] = {"pad": codec.pad, "decoder": codec.form.decoder, "start": codec.start}
    tensors = partial(collate_packed, length=row_length(settings.max_length), **form) if settings.packed else partial(collate, **form)
    return lambda rows: without_questions(tensors(rows), select, codec.form.causal)


@contextmanager
def network_reads(network: Any, packed: bool) -> Iterator[None]:
    """Context in which `network` reads such batches, or packed ones, and waits for nothing."""
    with known_masks(network), packed_forward(network) if packed else nullcontext():
        yield


def check_lengths(network: PreTrainedModel, rows: Iterable[Sequence[Row]]) -> None:
    """Raise `InputError` for a row, of one text or the other, that is longer than the model can read."""
    longest, most = max((int(lengths_of(some).max()) for some in rows if len(some)), default=0), longest_row(network.config)
    if longest > most:
        raise InputError(f"a row has {longest} pieces, and the model reads {most} at most; set max_length: {most} or less")


def parts_of(
    network: Any,
    to_batch: Callable[[list], dict[str, Any]],
    loss: Callable[..., torch.Tensor],
    updates: Sequence[list],
    settings: Training,
    folder: Path,
    seed: int,
    size: Callable[[list[Row]], int] = cells,
) -> int:
    """How many parts an update is split into: on a GPU found by trying, unless it is told how many tokens go through at once.

    The part of the greatest `size` is tried.
    """
    device = pick_device(settings.device)
    if settings.micro_batch_tokens == "auto" and is_sharded(network):
        # of processes that wait for each other's weights none can run out of memory by itself
        settings = replace(settings, micro_batch_tokens=SHARDED_TOKENS)
    elif settings.micro_batch_tokens == "auto" and device.type == "cuda":
        if processes() > 1:
            trainer_arguments(settings, folder, 1, seed)  # this starts the processes' group, by which they agree
        network.to(device)
        precision = pick_precision(settings.precision, device)
        return parts_that_fit(partial(try_part, network, to_batch, loss, precision, processes() > 1), updates, processes(), size)
    micro_batch = settings.micro_batch_tokens if isinstance(settings.micro_batch_tokens, int) else settings.batch_tokens
    return processes() * math.ceil(settings.batch_tokens / (processes() * micro_batch))


def fit(
    network: Any,
    batches: Sequence[list],
    accumulated: int,
    collate: Callable[[list], dict[str, torch.Tensor]],
    loss: Callable[..., torch.Tensor],
    look: Callable[[], dict[str, float]],
    watch: Watch,
    progress: Progress,
    seed: int,
    handed_on: Any = None,
) -> list[dict]:
    """Train `network` in place on `batches`, of which `accumulated` make an update on each device; return the history.

    The weights that the phase hands on are put into `handed_on`, by default into the network itself.
    `look` measures the dev set; the settings, the folder of checkpoints and the time are those of `watch`. Raises as `train` does.
    """
    settings, folder = watch.settings, watch.folder
    trainer = PhaseTrainer(
        model=network,
        args=trainer_arguments(settings, folder, accumulated, seed),
        train_dataset=undisturbed(batches),
        eval_dataset=batches,  # the Trainer requires one; `evaluate` below uses the real dev set
        data_collator=partial(only_item, collate),
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
        if last and is_first_process():
            print(f"continuing from {last}", flush=True)
        device = pick_device(settings.device)
        precision = pick_precision(settings.precision, device)
        if settings.recorded and accumulated == processes() == 1:
            trainer.recorded = recorder(network, loss)
        with watch.deadline, quick_dropout(device), quick_products(device), mixed_precision(network, precision):
            trainer.train(resume_from_checkpoint=last)
    if watch.stopped:
        raise Stopped(f"{watch.stopped}: stopped after update {trainer.state.global_step}; the same call goes on from its checkpoint")
    if is_first_process():
        chosen = chosen_updates(trainer.state.log_history, settings.checkpoint, settings.averaged, watch.by)
        average_weights(network if handed_on is None else handed_on, [folder / f"checkpoint-{update}" / WEIGHTS for update in chosen])
    return trainer.state.log_history


def undisturbed(batches: Sequence[list]) -> Made[list]:
    """The same batches. A process that makes batches for a GPU leaves the signals to the one that trains.

    The whole group of processes gets them, from Slurm, torchrun or a terminal. If it ended by them, there would be no checkpoint.
    """

    def batch(at: int) -> list:
        if torch.utils.data.get_worker_info() is not None:
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, signal.SIG_IGN)
        return batches[at]

    return Made(len(batches), batch)


def only_item(collate: Callable[[list], dict[str, torch.Tensor]], items: list) -> dict[str, torch.Tensor]:
    """The batch that is the Trainer's only item."""
    return collate(items[0])


def trainer_arguments(settings: Training, folder: Path, accumulated: int, seed: int) -> TrainingArguments:
    """Our settings in the Trainer's words; on a GPU, batches are made and sent while the one before is at work."""
    device = pick_device(settings.device)
    on_gpu = device.type == "cuda"
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
        use_cpu=device.type == "cpu",
        ddp_backend="gloo" if device.type == "cpu" and processes() > 1 else None,
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
        # batches are functions, which cannot be sent to a process that begins anew, as from Python 3.14 on
        dataloader_multiprocessing_context="fork" if on_gpu else None,
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
        # without a warm-up the Trainer would have the rate fall in ten thousands of updates
        return {"lr_scheduler_type": "inverse_sqrt", "lr_scheduler_kwargs": {"timescale": max(1, settings.warmup_updates)}}
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
        ignoring=settings.recorded,
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
    optimizer: Any
    lr_scheduler: Any
    recorded: Recorded | None = None
    """An update's two passes, where they are recorded."""

    def training_step(self, model: Any, inputs: dict[str, Any], num_items_in_batch: Any = None) -> torch.Tensor:
        """The loss of a batch, whose gradients are made."""
        if self.recorded is None:
            return super().training_step(model, inputs, num_items_in_batch)
        model.train()
        return self.recorded({**inputs, "items": torch.as_tensor(num_items_in_batch, device=model.device)})

    def prepare(self, look: Callable[[], dict[str, float]]) -> None:
        """Hand over what `evaluate` measures."""
        self.look = look
        # a label of ours stands where it is predicted, also of a decoder; by itself the Trainer would not count the first of each part
        self._loss_shifts_labels = False
        # such a network is not wrapped, and gradients come to it from all processes
        self.is_distributed_loading_by_transformers = is_sharded(self.model)
        self.begun = time.perf_counter()
        self.saved = -1

    def evaluate(self, *_: object, **__: object) -> dict[str, float]:
        """Scores on the dev set, measured by the first process for all. A checkpoint that is due comes first: a look may take minutes."""
        if self.control.should_save:
            self._save_checkpoint(self.model, trial=None)
        metrics = self.measure(self.look)
        self.control = self.callback_handler.on_evaluate(self.args, self.state, self.control, metrics)
        return metrics

    def measure(self, what: Callable[[], dict[str, float]]) -> dict[str, float]:
        """Log what the first process measures, or all do; training goes on as if nothing had been measured."""
        if is_sharded(self.model):  # no process can read a part of the weights
            metrics = what()
            self.model.reshard()
        else:
            metrics = first_says(what)
        self.model.train()
        self.log(metrics)
        return metrics

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        """What was saved before a look is not written again after it, but for the history, which now has the look."""
        if self.saved != self.state.global_step:
            super()._save_checkpoint(model, trial)
            self.saved = self.state.global_step
        elif is_first_process():
            with atomic(Path(str(self.args.output_dir), f"checkpoint-{self.saved}", "trainer_state.json")) as file:
                json.dump(asdict(self.state), file, indent=2)

    def _save(self, output_dir: str | None = None, state_dict: dict | None = None) -> None:
        """Of a network with an adapter, a checkpoint has the weights that are trained; the others are those of the start."""
        names = getattr(self.model, "checkpointed", None)
        if not (names or is_sharded(self.model)):
            super()._save(output_dir, state_dict)
            return
        weights = whole_weights(self.model, names)
        if self.args.should_save:
            folder = Path(output_dir or str(self.args.output_dir))
            folder.mkdir(parents=True, exist_ok=True)
            save_file(weights, folder / WEIGHTS)

    def _load_from_checkpoint(self, resume_from_checkpoint: str, model: Any = None) -> None:
        if is_sharded(self.model):
            load_weights(self.model, Path(resume_from_checkpoint) / WEIGHTS)
        elif not getattr(self.model, "checkpointed", None):
            super()._load_from_checkpoint(resume_from_checkpoint, model)
        else:
            average_weights(self.model, [Path(resume_from_checkpoint) / WEIGHTS])

    def _save_optimizer_and_scheduler(self, output_dir: str) -> None:
        if not is_sharded(self.model):
            super()._save_optimizer_and_scheduler(output_dir)
            return
        moments = whole_moments(self.optimizer)
        if self.args.should_save:
            for state, name in ((moments, OPTIMIZER), (self.lr_scheduler.state_dict(), SCHEDULER)):
                torch.save(state, Path(output_dir, name))

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        if checkpoint is None or not is_sharded(self.model):
            super()._load_optimizer_and_scheduler(checkpoint)
            return
        moments, rates = (torch.load(Path(checkpoint, name), map_location="cpu", weights_only=True) for name in (OPTIMIZER, SCHEDULER))
        load_moments(self.optimizer, moments)
        self.lr_scheduler.load_state_dict(rates)

    @contextmanager
    def _defer_fsdp_gradient_reduction(self) -> Iterator[None]:
        """Where an update comes in parts, gradients are spread after each of them: there is no room for whole ones."""
        yield

    def _move_model_to_device(self, model: Any, device: torch.device) -> None:
        if not is_sharded(model):
            super()._move_model_to_device(model, device)

    def _save_rng_state(self, output_dir: str) -> None:
        """A checkpoint is complete when all processes have written theirs; the first one writes its last file after this."""
        super()._save_rng_state(output_dir)
        to_disk(Path(output_dir) if is_first_process() else Path(output_dir, f"rng_state_{self.args.process_index}.pth"))
        if distributed.is_initialized():
            distributed.barrier()

    def floating_point_ops(self, inputs: dict[str, Any]) -> int:
        """Nothing: the Trainer would walk over all weights, twice an update, for a number that nobody reads."""
        return 0

    def _get_grad_norm(self, model: Any, grad_norm: Any = None) -> Any:
        """The norm of all gradients. Where nothing is clipped it is measured for the log alone, and no gradient is multiplied by one."""
        following = self.state.global_step + 1
        if grad_norm is not None or not (following == 1 or following % self.args.logging_steps == 0):
            return grad_norm
        return whole(torch.nn.utils.get_total_norm([weight.grad for weight in model.parameters() if weight.grad is not None]))

    def log(self, logs: dict[str, float], start_time: float | None = None) -> None:
        """Add the seconds spent so far, those of earlier attempts included."""
        if not hasattr(self, "earlier"):
            self.earlier = max((entry.get("seconds", 0.0) for entry in self.state.log_history), default=0.0)
        super().log({**logs, "seconds": round(self.earlier + time.perf_counter() - self.begun, 2)}, start_time)


def load_model(folder: Path | str, settings: Training, seed: int, from_scratch: bool = False) -> PreTrainedModel:
    """The model in `folder` (or hub id) that writes text, with the phase's dropout; random weights for `from_scratch`."""
    dropout, attention = settings.dropout, settings.attention_dropout
    return load_network(folder, "text", dropout=dropout, attention_dropout=attention, seed=seed, from_scratch=from_scratch)
