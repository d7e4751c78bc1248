"""callbacks: what stands beside the Trainer while a phase is trained: it ends the phase in time, keeps its log, and says how far it is."""

import json
import math
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import distributed
from tqdm import tqdm
from transformers import TrainerCallback

from workflow_scripts.stage import InputError, is_first_process, to_disk
from workflow_scripts.training.checkpoints import Deadline, judged_by, looks_without_gain, prune
from workflow_scripts.training.curve import LOSS_ONLY
from workflow_scripts.training.settings import Training


class Diverged(InputError):
    """Training has diverged; `history` is what was logged until then."""

    def __init__(self, history: list[dict], reason: str):
        super().__init__(reason)
        self.history = history


class Watch(TrainerCallback):
    """Ends a phase before its last update if its time or its patience is over, or if training has diverged."""

    def __init__(self, folder: Path, settings: Training, deadline: Deadline, guess: float = math.inf, by: str = "eval_loss"):
        """After the warm-up, a loss far above that of a model that guesses, `guess`, and above the first one, counts as diverged. Looks at
        the dev set are judged `by` this number."""
        self.folder, self.settings, self.deadline, self.guess, self.by = folder, settings, deadline, guess, by
        self.stopped, self.group = "", None
        self.trainer: Any  # which calls this
        self.every = self.written = 0

    def between(self, measure: Callable[[], dict[str, float]], every: int) -> None:
        """Also call `measure` every `every` updates between two looks at the dev set; 0 turns this off."""
        self.measure, self.every = measure, every

    def out_of_patience(self, history: list[dict]) -> bool:
        """Whether the phase ends because its looks at the dev set no longer get better."""
        return bool(self.settings.patience) and looks_without_gain(history, self.by) >= self.settings.patience

    def on_train_begin(self, args, state, control, **kwargs):  # noqa: D102
        state.logging_steps = args.logging_steps  # which a checkpoint would set as it was then
        # if the phase was stopped just before a measurement on the dev set, it is made now
        if not any(entry["step"] == state.global_step and {"eval_loss", LOSS_ONLY} & entry.keys() for entry in state.log_history):
            if state.global_step and self._look_is_due(state):
                self.trainer.evaluate()
            else:
                self._measure_if_due(state)

    def on_step_end(self, args, state, control, **kwargs):  # noqa: D102
        self._stop_if_asked(args, state, control)
        if not self.stopped:
            due = control.should_log
            self._measure_if_due(state)
            control.should_log = due  # otherwise the Trainer would take the measurement for its own log of the training loss

    def _look_is_due(self, state) -> bool:
        return state.global_step % state.eval_steps == 0 or state.global_step == state.max_steps

    def _measure_if_due(self, state) -> None:
        if self.every and state.global_step and state.global_step % self.every == 0 and not self._look_is_due(state):
            self.trainer.measure(self.measure)

    def _stop_if_asked(self, args, state, control) -> None:
        reason = self.deadline.reason()
        if distributed.is_initialized():
            # the signal reaches each process at another moment, but all must stop at the same update; gloo does not wait for a GPU
            self.group = self.group or distributed.new_group(backend="gloo")
            stop = torch.tensor(float(bool(reason)))
            distributed.all_reduce(stop, distributed.ReduceOp.MAX, self.group)
            reason = reason or ("another process got the signal to stop" if stop else "")
        if reason and state.global_step < state.max_steps:
            self.stopped = reason
            # the log has the time until here, and the loss since the last one, for what continues
            control.should_log = control.should_save = control.should_training_stop = True
            # a look may take longer than the time between SIGTERM and SIGKILL
            control.should_evaluate = False

    def on_log(self, args, state, control, logs=None, **kwargs):  # noqa: D102
        rate = next((entry["learning_rate"] for entry in reversed(state.log_history) if "learning_rate" in entry), 0.0)
        # random weights of some families cost far more than guessing, and learn all the same
        first = next((entry["loss"] for entry in state.log_history if "loss" in entry), 0.0)
        limit = 1.5 * max(self.guess, first)
        guessing = f"; guessing costs {self.guess:.3g} at most" if math.isfinite(self.guess) else ""
        for name in ("loss", "eval_loss", LOSS_ONLY):
            value = (logs or {}).get(name, 0.0)
            lost = state.global_step > args.warmup_steps and value > limit
            if lost or not math.isfinite(value):
                raise Diverged(
                    state.log_history,
                    f"{'training' if name == 'loss' else 'dev'} loss {value:.4g} at update {state.global_step} "
                    f"(learning rate {rate:.3g}{guessing}): training has diverged; "
                    "lower learning_rate, raise warmup_updates, set max_grad_norm: 1.0 or precision: float32",
                )
        if is_first_process():
            self._write(state.log_history)

    def _write(self, history: list[dict]) -> None:
        """Add what is new to `log.jsonl`; the first time of an attempt all of it, since the one before may have gone further."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with open(self.folder / "log.jsonl", "a" if self.written else "w", encoding="utf-8") as file:
            file.writelines(json.dumps(entry) + "\n" for entry in history[self.written :])
        self.written = len(history)

    def on_evaluate(self, args, state, control, metrics=None, **kwargs):  # noqa: D102
        if self.out_of_patience(state.log_history):
            what = judged_by(state.log_history, self.by).removeprefix("eval_")
            if is_first_process():
                print(
                    f"no better dev {what} for {self.settings.patience} looks: the phase ends after update {state.global_step}", flush=True
                )
            control.should_save = control.should_training_stop = True
        else:
            self._stop_if_asked(args, state, control)

    def on_save(self, args, state, control, **kwargs):  # noqa: D102
        if is_first_process():
            to_disk(self.folder / f"checkpoint-{state.global_step}")  # before an older one goes
            prune(self.folder, state.log_history, self.settings.checkpoint, self.settings.averaged, self.by)


class Progress(TrainerCallback):
    """A bar in a terminal, plain lines elsewhere: loss, learning rate, target tokens (or another unit) per second, time left."""

    def __init__(self, each: float, unit: str = "tokens"):
        """`each` is how many of the `unit` an update has, on average."""
        self.each, self.unit = each, unit
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
        made = state.global_step - self.first
        if made:  # none at a look that a stopped phase makes up for
            shown[f"{self.unit}/s"] = f"{self.each * made / taken:,.0f}"
        if self.bar is not None:
            self.bar.set_postfix(shown)
            return
        line = "  ".join(f"{name} {value}" for name, value in shown.items())
        if made:
            left = int(taken / made * (state.max_steps - state.global_step))
            line += f"  left {left // 60}:{left % 60:02}"
        print(f"update {state.global_step}/{state.max_steps}  {line}", flush=True)
