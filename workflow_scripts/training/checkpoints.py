"""checkpoints: how a phase that was killed or ran out of time continues from where it was.

The checkpoints of a phase are in a folder that is named by a hash of everything that decides its result.
So a call with other settings or other text never continues from them. `phase.json` in the folder lists what
was hashed, so that a difference can be named. Only one process at a time holds the lock on the phase's
folder: an orphaned trainer and its successor cannot both write there.

    checkpoints/lock
    checkpoints/<hash>/phase.json
    checkpoints/<hash>/attempt.json
    checkpoints/<hash>/log.jsonl
    checkpoints/<hash>/checkpoint-<update>/
"""

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import shutil
import signal
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workflow_scripts.stage import InputError, Stopped, atomic, read_json
from workflow_scripts.storage import checksum

if TYPE_CHECKING:
    from transformers import PreTrainedModel

# ---------------------------------------------------------------------------------------------
# whose checkpoints


def describe_phase(
    settings: dict[str, Any], text: dict[str, Path], start: Path | str, seed: int, from_scratch: bool, ignored: tuple[str, ...] = ()
) -> dict[str, Any]:
    """Everything that decides the result: settings, contents of the text and of the first model, and the seed. No paths.

    Where tokenizer.json does not tell all of the tokenizer, or the model has code of its own, the files of both count as well.
    """
    names = ["*.safetensors", "pytorch_model*.bin", "config.json", "tokenizer.json"]
    if not Path(start, "tokenizer.json").exists() or any(Path(start).glob("*.py")):
        names += ["tokenizer_config.json", "*.model", "vocab.*", "merges.txt", "*.py"]
    start_files = [path for name in names for path in sorted(Path(start).glob(name))]
    return {
        "seed": seed,
        "from_scratch": from_scratch,
        "start": {path.name: checksum(path) for path in start_files} if start_files else str(start),
        "text": {name: checksum(path) for name, path in text.items()},
        **{name: value for name, value in settings.items() if name not in ignored},
    }


def fingerprint(description: dict[str, Any]) -> str:
    """A hash of the description."""
    return hashlib.sha256(json.dumps(description, sort_keys=True).encode()).hexdigest()[:16]


def differences(description: dict[str, Any], other: dict[str, Any]) -> list[str]:
    """The differences, each as ``name: other value → this value``; of files only the names."""
    found = []
    for name in sorted(description.keys() | other.keys()):
        here, there = (json.loads(json.dumps(part.get(name))) for part in (description, other))
        if here == there:
            continue
        if name in ("start", "text") and isinstance(here, dict) and isinstance(there, dict):
            found += [f"{name}: {file} has changed" for file in sorted(here.keys() | there.keys()) if here.get(file) != there.get(file)]
        else:
            found.append(f"{name}: {there} → {here}")
    return found


@contextlib.contextmanager
def claimed(root: Path, description: dict[str, Any], attempt: int = 1) -> Iterator[Path]:
    """The folder of the described phase, for as long as this process alone holds the lock on `root`.

    Says which checkpoints of other settings are not continued from, and why. Raises `InputError`
    when another process is at work in `root`, or when this `attempt` would only repeat the one before.
    """
    root.mkdir(parents=True, exist_ok=True)
    with open(root / "lock", "a+", encoding="utf-8") as lock:
        try:
            fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in (errno.EACCES, errno.EAGAIN):
                print(f"warning: {root} cannot be locked on this file system ({error.strerror}); let no other job train there", flush=True)
            else:
                lock.seek(0)
                raise InputError(f"{root}: in use by {lock.read().strip() or 'another process'}; wait for it to end, or stop it") from None
        else:
            lock.seek(0)
            lock.truncate()
            job = f", Slurm job {os.environ['SLURM_JOB_ID']}" if "SLURM_JOB_ID" in os.environ else ""
            lock.write(f"process {os.getpid()} on {socket.gethostname()}{job}, since {time.strftime('%Y-%m-%d %H:%M:%S')}\n")
            lock.flush()
        folder = root / fingerprint(description)
        for other in sorted(root.glob("*/phase.json")):
            if other.parent != folder and checkpoints_of(other.parent):
                changed = "; ".join(differences(description, read_json(other)))
                print(
                    f"not continuing from {other.parent}, which is of another phase ({changed}); delete it if you are done with it",
                    flush=True,
                )
        _write(folder / "phase.json", description)
        with progressing(folder, attempt):
            yield folder


@contextlib.contextmanager
def progressing(folder: Path, attempt: int) -> Iterator[None]:
    """Note where this attempt begins and how it ends; raises `InputError` when it would only repeat the one before.

    Snakemake's retries (`attempt` counts from 1 in each run of Snakemake) are for phases that ran out of
    time or memory. A retry is refused when the attempt before it left no new checkpoint and said why it
    ended. An attempt that was killed without a message may have run out of memory, of which the second and the
    third attempt have more (slurm/config.yaml), or its node has failed. So it is tried again, until
    `_SILENT` attempts in a row have left no new checkpoint.
    """
    note = folder / "attempt.json"
    newest = last_complete_checkpoint(folder)
    now: dict[str, Any] = {"attempt": attempt, "begun_from": update_of(Path(newest)) if newest else 0, "fruitless": 0, "ended": ""}
    before = read_json(note) if attempt > 1 and note.exists() else {}
    repeats = (before.get("attempt"), before.get("begun_from")) == (attempt - 1, now["begun_from"])
    if repeats:
        now["fruitless"] = before.get("fruitless", 0) + 1  # a run of an earlier version did not count
    if repeats and (before["ended"] or now["fruitless"] >= _SILENT):
        now["ended"] = before["ended"] or _KILLED
        _write(note, now)
        raise InputError(
            f"{folder}: not tried again, as attempt {attempt - 1} left no checkpoint after update {now['begun_from']} "
            f"({now['ended']}); mend that and run the same command again"
        )
    _write(note, now)
    try:
        yield
    except Exception as error:
        now["ended"] = str(error) if isinstance(error, InputError | Stopped) else f"{type(error).__name__}: {error}"
        _write(note, now)
        raise


_SILENT = 3
"""So many attempts in a row may be killed without a message and leave no new checkpoint."""
_KILLED = "killed, for want of memory or time, or as its node failed: raise mem_mb or runtime of this rule in slurm/config.yaml"


def _write(path: Path, content: dict[str, Any]) -> None:
    with atomic(path) as file:
        json.dump(content, file, indent=1)


# ---------------------------------------------------------------------------------------------
# which checkpoints


STATE = "trainer_state.json"
"""A checkpoint's file of the history, which the Trainer writes last."""
OPTIMIZER = "optimizer.pt"
"""A checkpoint's file of Adam's moments, twice as large as that of its weights."""


def checkpoints_of(folder: Path) -> list[Path]:
    """The checkpoints in `folder`, oldest first."""
    return sorted(folder.glob("checkpoint-*"), key=update_of)


def update_of(checkpoint: Path) -> int:
    """The number of updates that a checkpoint was written after."""
    return int(checkpoint.name.rpartition("-")[2])


def last_complete_checkpoint(folder: Path) -> str | None:
    """The newest complete checkpoint. Newer ones that a kill or a full disk cut off are removed.

    Raises `InputError` where a file cannot be read: what is behind it may be sound.
    """
    for path in reversed(checkpoints_of(folder)):
        state = path / STATE
        try:
            json.loads(state.read_text(encoding="utf-8"))
            return str(path)
        except (FileNotFoundError, NotADirectoryError, ValueError):
            shutil.rmtree(path)
        except OSError as error:
            raise InputError(
                f"{state}: cannot be read ({error.strerror}); nothing was removed; run the same command again when the file system answers"
            ) from None
    return None


_GREATER_IS_BETTER = ("eval_bleu", "eval_rouge")


def judged_by(history: list[dict], wanted: str) -> str:
    """What the looks at the dev set are judged by: what is `wanted` if any look measured it, otherwise the loss.

    Dev BLEU and ROUGE-L are missing in a restore task, where no dev sentences are translated, and where their library is missing. A phase
    may run on several machines of which one lacks the library. The looks made there rank last. Their judge stays, since the checkpoint that
    is best by the other one may be gone.
    """
    return wanted if any(wanted in look for look in looks_of(history)) else "eval_loss"


def looks_of(history: list[dict]) -> list[dict]:
    """The entries of the Trainer's history that are looks at the dev set; each has a checkpoint, or had one."""
    return [entry for entry in history if "eval_loss" in entry]


def chosen_updates(history: list[dict], which: str, count: int, by: str = "eval_loss") -> list[int]:
    """Update numbers of the weights that a phase hands on: one number, or `count` numbers for an average.

    `history` has an entry with `step`, `eval_loss` and what is to be chosen `by` for each look at the dev set; see `judged_by`.
    `which` is `best` or `last`, `average` (of the last) or `average_best`. Among equal looks the one with the smaller loss wins, then
    the earlier one.
    """
    looks = looks_of(history)
    if which in ("best", "average_best"):
        by = judged_by(history, by)
        looks.sort(key=lambda look: (_cost(look, by), look["eval_loss"], look["step"]))
    else:
        looks = looks[::-1]
    return sorted(look["step"] for look in looks[: count if which.startswith("average") else 1])


def looks_without_gain(history: list[dict], by: str = "eval_loss") -> int:
    """Number of looks at the dev set since the best one; `by` names the score or loss that they are judged by.

    As in `chosen_updates`, an equal score with a smaller loss is better: a score may stand still for a while before it rises.
    """
    by = judged_by(history, by)
    costs = [(_cost(look, by), look["eval_loss"]) for look in looks_of(history)]
    return len(costs) - 1 - costs.index(min(costs)) if costs else 0


def _cost(look: dict, by: str) -> float:
    """The number by which looks are compared; smaller is better, and infinite where it was not measured."""
    if by not in look:
        return float("inf")
    return -look[by] if by in _GREATER_IS_BETTER else look[by]


def prune(folder: Path, history: list[dict], which: str, count: int, by: str = "eval_loss") -> None:
    """Remove all checkpoints but the newest two and those that the phase would hand on if it ended now."""
    paths = checkpoints_of(folder)
    wanted = {*chosen_updates(history, which, count, by), *(update_of(path) for path in paths[-2:])}
    for path in paths:
        if update_of(path) not in wanted:
            shutil.rmtree(path)


def settle(folder: Path, chosen: list[int]) -> None:
    """Of a phase that has ended, remove all checkpoints but the last and the `chosen` ones, and the moments of these.

    What is left writes the model again. No update follows: with more `updates` it would be another phase, which begins anew. From a chosen
    checkpoint before the last one nothing can go on, so it counts as incomplete.
    """
    *before, last = checkpoints_of(folder)
    (last / OPTIMIZER).unlink(missing_ok=True)
    for path in before:
        if update_of(path) in chosen:
            for name in (STATE, OPTIMIZER):
                (path / name).unlink(missing_ok=True)
        else:
            shutil.rmtree(path)


def average_weights(network: "PreTrainedModel", files: list[Path]) -> None:
    """Load the mean of several checkpoints into `network`, one array at a time; what is not trained may lack, and stays as it is.

    Weights that are shared have one array, so nothing is tied anew: mT5's output layer, which is none of the embeddings, would be lost.
    Raises `InputError` where a weight that is trained is in no checkpoint under any of its names.
    """
    import torch
    from safetensors import safe_open

    with torch.no_grad(), contextlib.ExitStack() as stack:
        opened = [stack.enter_context(safe_open(file, "pt")) for file in files]
        found, weights = set(opened[0].keys()), network.state_dict()
        filled = {weights[name].data_ptr() for name in found & weights.keys()}
        for name, weight in network.named_parameters():
            if weight.requires_grad and weight.data_ptr() not in filled:
                raise InputError(
                    f"{files[0]}: lacks the weight {name}, as checkpoints do that an earlier version wrote of this kind of model; "
                    "delete the folder with the checkpoints, and train again"
                )
        for name, weight in weights.items():
            if name in found:
                weight.copy_(sum(file.get_tensor(name).double() for file in opened) / len(opened))


# ---------------------------------------------------------------------------------------------
# when to stop


JOB_END = "CROSSGAP_JOB_END"
"""The variable in which `launching` hands on when the Slurm job ends, in seconds since 1970."""


class Deadline:
    """Whether it is time to stop: SIGTERM or Ctrl-C has come, or the job's time is nearly over.

    The end is Slurm's, where it tells (SLURM_JOB_END_TIME, or squeue, which `launching` asks), else `minutes` after the start of the
    process; 0 is no limit. Two minutes are kept in reserve, or a tenth of `minutes` if that is less. Three times the longest that an update
    with its checkpoint, or a look at the dev set, has taken so far are kept if that is more. Use it as a context: the signals have their
    usual effect again after it, and so has a second Ctrl-C.
    """

    def __init__(self, minutes: float = 0):
        end = os.environ.get("SLURM_JOB_END_TIME") or os.environ.get(JOB_END, "")
        self.end = float(end) if end.isdigit() else _process_start() + 60 * minutes if minutes else None
        self.reserve = min(120.0, 6.0 * minutes) if minutes else 120.0
        self.longest = 0.0
        self.last: float | None = None
        self.signal: signal.Signals | None = None

    def __enter__(self) -> "Deadline":
        # Python allows signal handlers only in the main thread
        if threading.current_thread() is threading.main_thread():
            self.before = {number: signal.signal(number, self._note) for number in (signal.SIGTERM, signal.SIGINT)}
        return self

    def __exit__(self, *_: object) -> None:
        if threading.current_thread() is threading.main_thread():
            for number, before in self.before.items():
                signal.signal(number, before)

    def _note(self, number: int, _: object) -> None:
        if number == signal.SIGINT and self.signal:
            raise KeyboardInterrupt
        self.signal = signal.Signals(number)

    def reason(self) -> str:
        """The reason to stop now, or an empty string. Call it after each update."""
        now = time.time()
        if self.last is not None:
            self.longest = max(self.longest, now - self.last)
        self.last = now
        if self.signal:
            return self.signal.name
        if self.end is not None and now + max(self.reserve, 3 * self.longest) > self.end:
            return "the job's time is nearly over"
        return ""


def _process_start() -> float:
    """Start time of this process in seconds since 1970. It is exact to about a second, as is the boot time from which Linux counts it."""
    import psutil

    return psutil.Process().create_time()
