"""trainer: Hugging Face's Trainer as the training loop uses it (`fit`): our batches, our looks at the dev set, our checkpoints.

It provides mixed precision, accumulation, checkpoints, resuming and TensorBoard. An item of its dataset is a whole batch, or the part of
one that a device processes at once.
"""

import json
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import distributed
from transformers import PreTrainedModel, Trainer, TrainingArguments
from transformers.trainer_callback import PrinterCallback, ProgressCallback

from workflow_scripts.device import pick_device, pick_precision
from workflow_scripts.models.products import quick_products
from workflow_scripts.stage import InputError, Stopped, atomic, is_first_process, processes, read_json, to_disk
from workflow_scripts.training.callbacks import Progress, Watch
from workflow_scripts.training.checkpoints import OPTIMIZER, average_weights, chosen_updates, last_complete_checkpoint, settle
from workflow_scripts.training.dropout import quick_dropout
from workflow_scripts.training.graphs import Recorded, recorder
from workflow_scripts.training.mixed_precision import mixed_precision
from workflow_scripts.training.rows import Made
from workflow_scripts.training.settings import Training
from workflow_scripts.training.sharding import is_sharded, load_moments, load_weights, whole, whole_moments, whole_weights

WEIGHTS = "model.safetensors"
"""The file of a checkpoint's weights."""
SCHEDULER = "scheduler.pt"
"""The Trainer's file of a checkpoint's learning rate."""


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
        train_dataset=without_signals(batches),
        eval_dataset=batches,  # the Trainer requires one; `evaluate` below uses the real dev set
        data_collator=lambda items: collate(items[0]),  # the only one is a whole batch
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
            try:
                trainer.train(resume_from_checkpoint=last)
            except InputError as error:
                raise said_by_itself(error) from None
    if watch.stopped:
        raise Stopped(f"{watch.stopped}: stopped after update {trainer.state.global_step}; the same call goes on from its checkpoint")
    if is_first_process():
        chosen = chosen_updates(trainer.state.log_history, settings.checkpoint, settings.averaged, watch.by)
        average_weights(network if handed_on is None else handed_on, [folder / f"checkpoint-{update}" / WEIGHTS for update in chosen])
        settle(folder, chosen)
    return trainer.state.log_history


def said_by_itself(error: InputError) -> InputError:
    """An error without the traceback that PyTorch puts around one that a process which makes batches has raised."""
    text = str(error)
    return InputError(text.rpartition("InputError: ")[2].strip()) if text.startswith("Caught InputError in DataLoader worker") else error


def without_signals(batches: Sequence[list]) -> Made[list]:
    """The same batches. A process that makes batches for a GPU leaves the signals to the one that trains.

    The whole group of processes gets them, from Slurm, torchrun or a terminal. If it ended by them, there would be no checkpoint.
    """

    def batch(at: int) -> list:
        if torch.utils.data.get_worker_info() is not None:
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, signal.SIG_IGN)
        return batches[at]

    return Made(len(batches), batch)


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
        """Of a network with an adapter, a checkpoint has the weights that are trained; the others are those of the start.

        Weights have the network's own names. The Trainer would write those of the file that the model came from, such as LayerNorm.gamma of
        old BERTs, and what reads checkpoints looks for the network's.
        """
        names = getattr(self.model, "checkpointed", None)
        if not (names or is_sharded(self.model)):
            if not isinstance(self.model, PreTrainedModel):
                super()._save(output_dir, state_dict)
            elif self.args.should_save:
                self.model.save_pretrained(str(output_dir or self.args.output_dir), state_dict=state_dict, save_original_format=False)
            return
        weights = whole_weights(self.model, names)
        if self.args.should_save:
            folder = Path(output_dir or str(self.args.output_dir))
            folder.mkdir(parents=True, exist_ok=True)
            save_file(weights, folder / WEIGHTS)

    def _load_from_checkpoint(self, resume_from_checkpoint: str, model: Any = None) -> None:
        if is_sharded(self.model):
            load_weights(self.model, Path(resume_from_checkpoint) / WEIGHTS)
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
        if not Path(checkpoint, OPTIMIZER).exists():
            return  # of a phase that has ended
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
