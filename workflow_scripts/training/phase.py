"""phase: a phase is trained on the rows that are read of its text, with all weights or with an adapter, and its outputs are written."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from workflow_scripts import plugins
from workflow_scripts.device import pick_precision
from workflow_scripts.models.templates import Templates, plain
from workflow_scripts.models.tokenisation import Codec, load_codec
from workflow_scripts.stage import InputError, is_first_process
from workflow_scripts.training.adapter import Adapted, adapt, adapter_plugin, merge, remove_adapter, save_adapter
from workflow_scripts.training.callbacks import Diverged
from workflow_scripts.training.checkpoints import describe_phase
from workflow_scripts.training.curve import handed_on
from workflow_scripts.training.job import TrainingJob, begun, finish
from workflow_scripts.training.loop import load_model
from workflow_scripts.training.method import Method
from workflow_scripts.training.rows import Dev, Rounds
from workflow_scripts.training.settings import ROUNDING_ONLY, Training
from workflow_scripts.training.too_long import Room, lengths_report
from workflow_scripts.training.validation import dev_loss


def train_phase(
    job: TrainingJob,
    settings: Training,
    text: dict[str, Path],
    read: Callable[[Codec], tuple[Rounds, list[Dev]]],
    room: Room,
    method: Method = Method(),
    *,
    templates: Templates = Templates(),
    languages: tuple[str, ...],
    documents: bool = False,
    about_text: Mapping[str, Any] = MappingProxyType({}),
) -> None:
    """Train one phase on what `read` makes of its `text`, training and dev rows; write its outputs.

    `room` is what the report says of rows that are too long; `read` has applied it. `about_text` is for the report as well, and may be
    filled while the text is read. The contents of `text` decide, with the settings (`described`), which checkpoints are the phase's own.

    Raises `InputError` for settings that do not go together, or not with the `method`.
    """
    check_settings_fit(settings, method, job.from_scratch)
    codec = load_codec(job.start, documents)
    codec.templates = templates
    about_phase = described(settings, method, languages, documents, codec)
    with begun(job, describe_phase(about_phase, text, job.start, job.seed, job.from_scratch, ROUNDING_ONLY)) as folder:
        rounds, dev = read(codec)
        if method.open:
            network, rounds = method.open(job.start, codec, rounds, settings, job.seed, job.from_scratch)
        else:
            network = method.load(job.start, settings, job.seed, job.from_scratch)
        adapted = adapt(network, settings.adapter, job.seed) if settings.adapter else None
        diverged, taken = "", dict[str, Any]()
        try:
            history = method.train(network, codec, rounds, dev, folder, job.seed, settings, job.minutes, taken)
        except Diverged as reason:
            if not job.keep_diverged:
                raise
            history, diverged = reason.history, str(reason)
        some = [replace(part, rows=part.rows[:MEASURED]) for part in dev if adapted]

        def measure() -> dict[str, float]:
            return {"nats": dev_loss(network, codec, some)}

        about_adapter = {"languages": [*languages], "training": asdict(settings)}
        taken |= hand_over(adapted, job, diverged, measure, sum(len(part.rows) for part in some), about_adapter, codec.own_templates)
        about = {
            "languages": languages,
            "rows": rounds.rows,
            "too_long": lengths_report(room, rounds.too_long, [text for part in dev for text in part.too_long]),
            "precision": pick_precision(settings.precision, network.device),
            **method.about,
            **about_text,
            **taken,
            "checkpoints": str(folder),
            "handed_on": handed_on(history, settings),
            "diverged": diverged,
            "settings": asdict(settings),
        }
        finish(job, network, codec.tokenizer, history, about, mark=method.mark, templates=codec.own_templates)


def check_settings_fit(settings: Training, method: Method, from_scratch: bool) -> None:
    """Raise `InputError` for settings that do not go with each other, with a phase's own way to train, or with random weights."""
    as_usual = method.train is Method().train
    if settings.adapter is not None:
        check_adapter_fits(settings.adapter, method, from_scratch)
    if settings.packed and not as_usual:
        raise InputError("training.packed: is for models that are trained on sentences as they are; leave it out for this phase")
    for name in ("sharded", "gradient_checkpointing"):
        if getattr(settings, name) and not as_usual:
            raise InputError(f"training.{name}: is for models that are trained as they are; leave it out for this phase")
    if settings.recorded and settings.gradient_checkpointing:
        raise InputError("training.recorded: has no place for gradient_checkpointing; leave one of them out")
    if settings.recorded and not settings.packed:
        raise InputError("training.recorded: is for updates of one shape; set packed: true as well, or leave it out")


def described(settings: Training, method: Method, languages: tuple[str, ...], documents: bool, codec: Codec) -> dict[str, Any]:
    """The settings by which a phase's checkpoints are known.

    Those that came later are left out where they are not used, so that checkpoints from before are still gone on from.
    """
    found = {**asdict(settings), "languages": [*languages], "documents": documents, **method.about}
    if settings.adapter is None:
        del found["adapter"]
    else:
        found |= adapter_plugin(settings.adapter)
    if not settings.packed:
        del found["packed"]
    if codec.templates != Templates():
        found["templates"] = plain(codec.templates)
    # a tokenizer without a chat template is refused where the first prompt is made
    if codec.templates.chat and getattr(codec.tokenizer, "chat_template", None):
        found["chat_template"] = hashlib.sha256(codec.tokenizer.get_chat_template().encode()).hexdigest()
    return found | plugins.trained_by("family", codec.form, None)


# ---------------------------------------------------------------------------------------------
# few weights


def check_adapter_fits(chosen: Mapping[str, Any], method: Method, from_scratch: bool, block: str = "training") -> None:
    """Raise `InputError` where a phase's own way to train, or random weights, leave no place for an adapter of the settings in `block`."""
    if method.open or method.load is not load_model:
        raise InputError(f"{block}.adapter: {chosen['kind']} is for models that are trained as they are; leave it out for this phase")
    if from_scratch:
        raise InputError(f"{block}.adapter: {chosen['kind']} changes little of a model, and random weights need more; leave it out")


MEASURED = 200
"""Rows of each dev set on which the hand-over is measured."""


def hand_over(
    adapted: Adapted | None,
    job: TrainingJob,
    diverged: str,
    measure: Callable[[], Mapping[str, float]],
    rows: int,
    about: Mapping[str, Any],
    templates: Templates | None = None,
) -> dict[str, Any]:
    """Write the adapter beside the model and merge it into the network; returns what the report says. `job.finish` removes an
    older one where there is none.

    `measure` gives the loss of so many dev `rows`, by its unit. It is called before and after: the two are equal to rounding. Of a
    training that has `diverged` nothing is measured or written.
    """
    if adapted is None or not is_first_process():
        return {}
    remove_adapter(job.model.with_name("adapter"))  # an older one may have other files
    said = adapted.about()
    if diverged:
        merge(adapted, finite=False)
        return {"adapter": said}
    before = measure()
    save_adapter(adapted, job.start, job.model.with_name("adapter"), {**about, "seed": job.seed}, templates)
    merge(adapted)
    both = {f"{unit}_{when}": value for when, found in (("before", before), ("after", measure())) for unit, value in found.items()}
    return {"adapter": {**said, "merged": {"rows": rows, **both}}}
