"""writing: the generators of ours: piece by piece, and at once by an encoder, with all weights trained (CTC) or by prompts (SGA).

What they learn is in `generating`, the network in `models.prompts`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workflow_scripts.models.sga import BLOCK, FILE, SGA
from workflow_scripts.training.generator import AUTOREGRESSIVE, register_generator

if TYPE_CHECKING:
    from workflow_scripts.evidence.speed import Speed
    from workflow_scripts.models.decoding import Translate
    from workflow_scripts.training.method import Method


def as_ctc(settings: SGA) -> SGA:
    """The settings that hold for CTC alone, which has neither prompts nor denoising."""
    return replace(settings, prompt_length=0, denoising=False, alignment="ctc")


def _learn(frozen: bool, settings: SGA) -> Method:
    from workflow_scripts.training.generating import open_generator, train_generator
    from workflow_scripts.training.method import Method

    return Method(train=train_generator, open=partial(open_generator, frozen=frozen, sga=settings))


def _write(*given: Any) -> AbstractContextManager[Translate]:
    from workflow_scripts.models.prompt_files import with_generator  # and networks, which the configuration does not need

    return with_generator(*given)


def _description(frozen: bool, said: dict[str, Any]) -> list[str]:
    """What the report says of a phase that was trained so."""
    sga, left = said[BLOCK], said["left_out"]
    alignment = "CTC" if sga["alignment"] == "ctc" else "mask-predict"
    denoised = " and denoising" if sga["denoising"] and frozen else ""
    kind = f"prompts of length {sga['prompt_length']} for a frozen encoder" if frozen else "all weights"
    # reports of older versions count no targets that were cut
    few = {"cut at max_length": left.get("targets_cut", 0), "empty": left["targets_empty"]}
    others = "".join(f", {count:,} {which}" for which, count in few.items() if count)
    return [
        f"written at once by {alignment}{denoised}: {kind}, {said['trained']:,} weights trained",
        f"left out: {left['targets_too_long']:,} targets too long{others}, {left['blanks_removed']:,} blanks in targets",
    ]


def _ways(model: Path, settings: Speed) -> Iterator[tuple[str, dict[str, Any]]]:
    """Several numbers of denoising iterations; of guesses as well, where the alignment is mask-predict's."""
    from workflow_scripts.models.prompt_files import read_prompts

    sga = read_prompts(model / FILE)[1][BLOCK]
    counts = settings.iterations if sga["denoising"] else [0]
    guesses = dict.fromkeys(settings.alignment_iterations if sga["alignment"] == "mask_predict" else [])
    for count, guessed in itertools.product(dict.fromkeys(counts), guesses or [None]):
        name = f"at most {_times(count, 'iteration')}" if count else "alignment alone"
        # what differs in the last number alone is a line of the chart
        name += f", {_times(guessed, 'guess', 'es')}" if guessed and len(guesses) > 1 else ""
        yield name, {"iterations": count, "alignment_iterations": guessed}


def _times(number: int, what: str, plural: str = "s") -> str:
    return f"{number} {what}{'' if number == 1 else plural}"


def _register_at_once(name: str, *, frozen: bool, **about: Any) -> None:
    shared: dict[str, Any] = {"write": _write, "decoder": False, "at_once": True, "key": BLOCK, "settings": SGA, "file": FILE}
    shared |= {"learn": partial(_learn, frozen), "description": partial(_description, frozen), "ways": _ways}
    register_generator(name, frozen=frozen, longest_source=SGA.longest_source, **shared, **about)


register_generator(AUTOREGRESSIVE, label="piece by piece")
_register_at_once("sga", frozen=True, label="SGA", source="Wu et al. 2023")
_register_at_once("ctc", frozen=False, label="CTC", source="Libovický and Helcl 2018", effective=as_ctc)
