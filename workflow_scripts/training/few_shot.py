"""few_shot: an arm that trains nothing. The model is asked as it is, with or without examples of the training text before each source.

It is written like a trained one, with its templates, so that whatever decodes, scores and reports finds what it finds of other arms.
"""

import time
from collections.abc import Callable
from dataclasses import asdict, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from workflow_scripts.device import pick_device, pick_precision
from workflow_scripts.models.templates import Templates
from workflow_scripts.models.tokenisation import SPECIAL_PLACES, Codec, load_codec
from workflow_scripts.stage import InputError
from workflow_scripts.text.files import lockstep
from workflow_scripts.training.curve import handed_on, score_key
from workflow_scripts.training.job import TrainingJob, finish
from workflow_scripts.training.loop import check_lengths, load_model
from workflow_scripts.training.ragged import same_choice
from workflow_scripts.training.rows import Dev, Rounds
from workflow_scripts.training.settings import Training
from workflow_scripts.training.too_long import Room, first_pieces, lengths_report
from workflow_scripts.training.validation import dev_loss, dev_score


def ask(
    job: TrainingJob,
    settings: Training,
    read: Callable[[Codec], tuple[Rounds, list[Dev]]],
    templates: Templates,
    pairs: tuple[Path, Path],
    shots: int,
    *,
    room: Room,
    languages: tuple[str, ...],
    documents: bool,
) -> None:
    """Write the model as it is, with templates in which so many of the training `pairs` stand before the source, drawn by the seed.

    They are drawn from the pairs that a trained arm learns from: among `training.pairs`, without those that are too long, or cut as these.
    It is measured on the dev set like a trained one. Raises `InputError` where examples are wanted of a model that is no decoder, or are
    more than it can read.
    """
    codec = load_codec(job.start, documents)
    if shots and not codec.form.causal:
        raise InputError(f"shots: {job.start} is a model of the family {codec.form.label}, which reads no examples; set shots: 0")
    known = [(source, answer) for _, source, answer in lockstep(*pairs)]
    allowed = np.asarray(same_choice(len(known), settings.pairs))
    order = np.random.default_rng(job.seed).permutation(allowed).tolist()
    drawn = [*islice((place for place in order if not room.leave_out or not is_too_long(codec, known[place], room)), shots)]
    examples = [(cut(codec, source, room), cut(codec, answer, room)) for source, answer in (known[place] for place in drawn)]
    codec.templates = replace(templates, examples=examples, examples_in=[*languages] if drawn else [])
    rounds, dev = read(codec)
    network: Any = load_model(job.start, settings, job.seed)
    try:
        check_lengths(network, [part.rows for part in dev])
    except InputError as error:
        if not drawn:
            raise
        said = str(error).partition(";")[0]
        raise InputError(f"shots: with {len(drawn)} examples {said}; show fewer, or lower training.max_length") from None
    network.to(pick_device(settings.device))
    begun = time.perf_counter()
    look = {"eval_loss": dev_loss(network, codec, dev)}
    for part in dev if settings.bleu_sentences else []:
        if (score := dev_score(network, codec, part, settings)) is not None:
            look[score_key(settings)] = score
    history = [{"step": 0, "seconds": round(time.perf_counter() - begun, 2), **look}]
    about = {
        "languages": languages,
        "rows": rounds.rows,
        "too_long": lengths_report(room, rounds.too_long, [text for part in dev for text in part.too_long]),
        "precision": pick_precision(settings.precision, network.device),
        "shots": len(drawn),
        "lines": [number + 1 for number in drawn],
        "handed_on": handed_on(history, settings),
        "settings": asdict(settings),
    }
    finish(job, network, codec.tokenizer, history, about, templates=codec.own_templates)


def is_too_long(codec: Codec, pair: tuple[str, str], room: Room) -> bool:
    """Whether a side of a pair has more pieces than a row has room for, as rows to be learnt from are counted."""
    source, answer = pair
    sides = codec.pieces([*codec.behind_blank([source]), *codec.behind_blank([answer], answers=True)])
    return any(codec.is_too_long(ids, room.max_length) for ids in sides)


def cut(codec: Codec, text: str, room: Room) -> str:
    """A text, or as much of it as a row has room for."""
    return first_pieces(codec, text, room.max_length - SPECIAL_PLACES)
