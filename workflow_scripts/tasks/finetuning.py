"""finetuning: how a model with a head learns from examples, for all tasks that count epochs.

The rows of an epoch are shuffled into updates of like length. The loop, the checkpoints, the end of a phase and the work of several GPUs
are those of `training`. The weights that are handed on are those of the best look at the dev set.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from workflow_scripts import plugins
from workflow_scripts.device import pick_device, pick_precision
from workflow_scripts.models.batches import Row
from workflow_scripts.models.reading import check_read
from workflow_scripts.models.recognition import family_of
from workflow_scripts.noise.codeswitch import CodeSwitch
from workflow_scripts.number_types import Positive
from workflow_scripts.stage import processes
from workflow_scripts.tasks.head_model import Prefixes, Reader, summed_loss
from workflow_scripts.tasks.head_settings import HeadSettings, named
from workflow_scripts.text.examples import read_table
from workflow_scripts.text.tagged import INNER_BLANK
from workflow_scripts.training.adapter import adapter_plugin
from workflow_scripts.training.checkpoints import Deadline, chosen_updates, describe_phase
from workflow_scripts.training.choice import chosen_for
from workflow_scripts.training.job import TrainingJob, begun, finish
from workflow_scripts.training.rows import split_batch
from workflow_scripts.training.settings import Training


@dataclass(kw_only=True)
class FinetuneSettings:
    """Settings of one call of `finetune` that all tasks have."""

    language: str
    """Language of the text."""
    epochs: Positive
    """Number of passes over all examples."""
    more_train: list[str] = field(default_factory=list)
    """Languages of the further training tables, such as translations of the first."""
    more_dev: list[str] = field(default_factory=list)
    """Languages of the further dev sets. A dev result is then the mean over all languages."""
    codeswitch: CodeSwitch | None = None
    """Noise that switches words of the first table, anew in each epoch; by default none."""

    @property
    def train_languages(self) -> tuple[str, ...]:
        """The languages of all training tables, in their order."""
        return (self.language, *self.more_train)

    @property
    def dev_languages(self) -> tuple[str, ...]:
        """The languages of all dev sets, in their order."""
        return (self.language, *self.more_dev)


class Prepared(NamedTuple):
    """What a task makes of its text for `train_head`."""

    network: Any
    reader: Reader
    batches: "Batches"
    look: Callable[..., dict[str, float]]
    """Measures ``eval_loss`` and ``eval_error`` (1 − the score) on the dev sets, or on the first examples of each, if given how many."""
    score: str
    """What the score is called."""
    head: str
    """The head (`Family.heads`) that the network has."""
    loss: Callable[..., Any] = summed_loss
    """The loss of an update, of the head's output and the labels."""
    switched: dict[str, float] | None = None
    """How many words are switched in the first epoch (`switching.with_shares`), where some are."""


_ROUNDING_ONLY = ("device", "micro_batch", "gradient_checkpointing")
"""Settings that may change between a killed call and its continuation: they affect only rounding and dropout's random numbers."""


def describe(settings: Any, block: str, text: dict[str, Path], start: Path, seed: int, from_scratch: bool) -> dict[str, Any]:
    """What a phase's checkpoints depend on; `block` names the settings of the head in `settings`."""
    description = describe_phase(asdict(settings), text, start, seed, from_scratch)
    chosen: HeadSettings = getattr(settings, block)
    description[block] = {name: value for name, value in named(chosen).items() if name not in _ROUNDING_ONLY}
    description |= plugins.trained_by("family", family_of(start), None)
    return description | (adapter_plugin(chosen.adapter) if chosen.adapter else {})


Prepare = Callable[[TrainingJob, tuple[Path, ...], tuple[Path, ...], Any], Prepared]
"""Makes what is trained of a job, its training and dev tables, and its settings. The first table of each is in the text's language, others
are in those that the settings name."""


def finetune_head(
    job: TrainingJob,
    train: tuple[Path, ...],
    dev: tuple[Path, ...],
    settings: Any,
    block: str,
    prepare: Prepare,
    text: dict[str, Path] | None = None,
    also: dict[str, Any] | None = None,
) -> None:
    """Finetune for a task on the tables `train`, with looks at `dev`; write the model, its learning curve and a report.

    `block` names the settings of the head in `settings`. Checkpoints also depend on further files, `text`, and on what else is named in
    `also`. A `choice` that was made in a grid goes over the settings. Under torchrun the processes share the work of each update. Raises as
    `training.restore` does.
    """
    from workflow_scripts.training.adapter import adapt
    from workflow_scripts.training.loop import compute_again
    from workflow_scripts.training.method import Method
    from workflow_scripts.training.phase import MEASURED, check_adapter_fits, hand_over

    settings, checkpoints = _with_grid_choice(settings, block, job)
    tables = {f"{part}{at or ''}": path for part, paths in (("train", train), ("dev", dev)) for at, path in enumerate(paths)}
    description = describe(settings, block, {**tables, **(text or {})}, job.start, job.seed, job.from_scratch)
    description |= also or {}
    chosen: HeadSettings = getattr(settings, block)
    if chosen.adapter:
        check_adapter_fits(chosen.adapter, Method(), job.from_scratch, block)
    with begun(job._replace(checkpoints=checkpoints), description) as folder:
        prepared = prepare(job, train, dev, settings)
        texts = ((str(path), code, plain_texts(path)) for path, code in zip(train, settings.train_languages, strict=True))
        unknown = check_read(prepared.reader.codec, texts)
        network = prepared.network
        adapted = adapt(network, chosen.adapter, job.seed, prepared.head) if chosen.adapter else None
        if chosen.gradient_checkpointing:
            compute_again(network, block)
        history, diverged = _trained_or_diverged(job, chosen, prepared, folder)
        network.config.finetuned_language = settings.language
        if any(prefixes := Prefixes.of(chosen)) or hasattr(network.config, "finetuned_prefixes"):
            network.config.finetuned_prefixes = [*prefixes]

        def measure() -> dict[str, float]:
            return {"loss": prepared.look(MEASURED)["eval_loss"]}

        measured = sum(min(MEASURED, len(read_table(path))) for path in dev) if adapted else 0
        about_adapter = {"languages": list(dict.fromkeys(settings.train_languages)), "finetuning": named(chosen)}
        handed = hand_over(adapted, job, diverged, measure, measured, about_adapter)
        score = f"dev_{prepared.score}"
        looks = [{**entry, score: 1 - entry["eval_error"]} if "eval_error" in entry else entry for entry in history]
        about = {
            **_facts(settings, chosen, prepared),
            "unknown": unknown,
            "checkpoints": str(folder),
            "updates": {
                "planned": len(prepared.batches.epoch_sizes) * settings.epochs,
                "made": max((entry["step"] for entry in history), default=0),
            },
            "handed_on": {} if diverged else best_look(looks, chosen, score),
            "diverged": diverged,
            **handed,
        }
        columns = ("update", "seconds", "loss", "learning_rate", "dev_loss", score)
        finish(job, network, prepared.reader.tokenizer, looks, about, columns)


def _with_grid_choice(settings: Any, block: str, job: TrainingJob) -> tuple[Any, Path]:
    """The settings with what was chosen in a grid, if there is one, and the folder of checkpoints."""
    changed, checkpoints = chosen_for(job.choice, "finetune", job.seed, job.checkpoints)
    epochs = changed.pop("epochs", settings.epochs)
    return replace(settings, epochs=epochs, **{block: replace(getattr(settings, block), **changed)}), checkpoints


def _trained_or_diverged(job: TrainingJob, chosen: HeadSettings, prepared: Prepared, folder: Path) -> tuple[list[dict], str]:
    """Train; the history, and why training diverged, if it did and the job keeps such models."""
    from workflow_scripts.training.callbacks import Diverged

    try:
        return train_head(job, chosen, prepared, folder), ""
    except Diverged as reason:
        if not job.keep_diverged:
            raise
        return reason.history, str(reason)


def _facts(settings: Any, chosen: HeadSettings, prepared: Prepared) -> dict[str, Any]:
    """What the report says of text and settings."""
    return {
        "languages": list(dict.fromkeys(settings.train_languages)),
        "dev_languages": [*settings.dev_languages],
        "rows": sum(prepared.batches.epoch_sizes),
        **({"switched": prepared.switched} if prepared.switched else {}),
        "precision": pick_precision(chosen.precision, pick_device(chosen.device)),
        # the head's, with what a grid chose, beside those of the stage
        "settings": {**asdict(chosen), **asdict(settings)},
    }


def plain_texts(table: Path) -> Iterator[str]:
    """The texts of a table's examples, with plain blanks inside of words."""
    return (text.replace(INNER_BLANK, " ") for example in read_table(table) for text in example.texts)


def with_choice(settings: Any, choice: Path | None) -> Any:
    """A head's settings with those that were chosen from its grid (`choice.json`): a model must read as it was finetuned."""
    chosen, _ = chosen_for(choice, "finetune", 0, Path())
    return replace(settings, **{name: value for name, value in chosen.items() if name != "epochs"})


def train_head(job: TrainingJob, chosen: HeadSettings, prepared: Prepared, folder: Path) -> list[dict]:
    """Train a network on its batches, and return the history; checkpoints are in `folder`. Raises as `training.trainer.fit` does."""
    from workflow_scripts.training.callbacks import Progress, Watch
    from workflow_scripts.training.masks import known_masks, with_padding_known
    from workflow_scripts.training.trainer import fit

    batches, each = prepared.batches, len(prepared.batches.epoch_sizes)
    training = phase_settings(chosen, batches.epochs * each, each)
    progress = Progress(sum(batches.epoch_sizes) / each, "examples")
    watch = Watch(folder, training, Deadline(job.minutes), by=_judge(chosen))
    accumulated, network = batches.parts // processes(), prepared.network

    def to_batch(rows: list[Row]) -> dict[str, Any]:
        return with_padding_known(prepared.reader.collate(rows))

    with known_masks(network):
        return fit(network, batches, accumulated, to_batch, prepared.loss, prepared.look, watch, progress, job.seed)


def best_look(looks: list[dict], chosen: HeadSettings, score: str) -> dict[str, Any]:
    """The update with the best score, or with ``choose_by: loss`` the least loss, and what was measured of it."""
    (update,) = chosen_updates(looks, "best", 1, _judge(chosen))
    taken = next(entry for entry in looks if entry["step"] == update and "eval_loss" in entry)
    return {"updates": [update], "dev_loss": taken["eval_loss"], score: taken[score]}


def _judge(chosen: HeadSettings) -> str:
    return "eval_loss" if getattr(chosen, "choose_by", "") == "loss" else "eval_error"


def mean_of(looks: Sequence[dict[str, float]]) -> dict[str, float]:
    """A look at several dev sets: the mean of what was measured on each."""
    return {key: sum(look[key] for look in looks) / len(looks) for key in looks[0]}


def phase_settings(settings: HeadSettings, updates: int, per_epoch: int) -> Training:
    """The settings of the training loop that finetuning shares with other phases."""
    return Training(
        updates=updates,
        learning_rate=settings.learning_rate,
        warmup_updates=round(settings.warmup * updates),
        weight_decay=settings.weight_decay,
        max_grad_norm=settings.max_grad_norm,
        adam_betas=(0.9, 0.999),  # PyTorch's, which the published scripts of these tasks leave as they are
        adam_eps=1e-8,
        evaluate_every=math.ceil(per_epoch / settings.looks),
        log_every=max(1, min(50, per_epoch // 4)),
        patience=settings.patience,
        checkpoint="best",
        precision=settings.precision,
        device=settings.device,
    )


# ---------------------------------------------------------------------------------------------
# data


# number of batches that are filled from one pool of rows, which is sorted by length
_POOL = 50


class Batches(Sequence[list[Row]]):
    """The parts of the updates of all epochs, in order; `rows` makes the rows of an epoch when its turn comes, `number` of them.

    Where words are switched, long examples may be cut into some rows more or fewer than as they are. So many as too many are then left out
    in this epoch, or taken twice, at random.
    """

    def __init__(self, rows: Callable[[int], list[Row]], number: int, epochs: int, settings: HeadSettings, seed: int):
        self.rows, self.epochs, self.seed, self.size = rows, epochs, seed, settings.batch_size
        self.parts = processes() * math.ceil(settings.batch_size / (processes() * (settings.micro_batch or settings.batch_size)))
        whole, rest = divmod(number, settings.batch_size)
        self.number, self.epoch_sizes = number, [settings.batch_size] * whole + ([rest] if rest else [])
        self._current: tuple[int, list[list[Row]]] = -1, []

    def __len__(self) -> int:
        return self.epochs * len(self.epoch_sizes) * self.parts

    def __getitem__(self, place: int) -> list[Row]:  # type: ignore[override]  # nothing takes slices
        if not 0 <= place < len(self):
            raise IndexError(place)  # which ends a loop over them
        epoch, place = divmod(place, len(self.epoch_sizes) * self.parts)
        if self._current[0] != epoch:
            self._current = epoch, self._updates(epoch)
        update, part = divmod(place, self.parts)
        return split_batch(self._current[1][update], self.parts)[part]

    def _updates(self, epoch: int) -> list[list[Row]]:
        """The updates of an epoch: shuffled rows, of similar length within an update. The last update has what is left, of any length."""
        rows = self.rows(epoch)
        rng = np.random.default_rng([self.seed, epoch])
        order, size = rng.permutation(len(rows)).tolist(), self.size
        order = [*order, *order][: self.number] if len(rows) != self.number else order
        full = len(order) // size * size
        whole, rest = order[:full], order[full:]
        cut = []
        for start in range(0, len(whole), _POOL * size):
            pool = sorted(whole[start : start + _POOL * size], key=lambda i: len(rows[i][0]))
            batches = [pool[at : at + size] for at in range(0, len(pool), size)]
            cut += [batches[i] for i in rng.permutation(len(batches))]
        cut += [rest] if rest else []
        return [[rows[i] for i in batch] for batch in cut]
