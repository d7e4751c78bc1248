"""alternating: passages whose sentences are in two languages by turns, as text that a decoder goes on with.

Yoo et al. (2025) switch between languages at the ends of sentences, after switching words and before text of one language. How they make
such text is a guess of ours: their code is not published. Here sentences of a parallel text that follow each other make a passage, each in
one of the languages, by turns. A passage is there twice, with the languages exchanged, so that each sentence is read in both, and never
beside its translation.
"""

from dataclasses import dataclass
from pathlib import Path

from workflow_scripts import registry
from workflow_scripts.number_types import Positive
from workflow_scripts.stage import own_settings
from workflow_scripts.training.objective import Material, Objective, Text, objective
from workflow_scripts.training.pretraining_settings import Pretraining


@dataclass
class Alternating:
    """Settings of alternating sentences."""

    sentences: Positive = 4
    """Number of sentences in a passage."""


@objective(
    "alternating",
    decoder=None,
    causal=True,
    reads="pairs",
    in_order=True,
    cuts=True,
    label="reading sentences of two languages by turns",
    asks="Does it help to read text that changes its language with each sentence?",
    against=("plain_text", "switched_text"),
    source="Yoo et al. 2025",
    settings=Alternating,
)
def alternating(block: Pretraining, train_text: Text, dev_text: Text, seed: int, folder: Path) -> Material:
    """Rows (a passage, each piece's follower), as those of plain text."""
    entry: Objective = registry.entry("objective", "alternating")
    number = own_settings(entry, block.objective_settings).sentences
    plain: Objective = registry.entry("objective", "next_piece")
    train, dev = passages(train_text, number), passages(dev_text, number)
    return plain.prepare(Pretraining(training=block.training), train, dev, seed, folder)


def passages(text: Text, number: int) -> Text:
    """Passages of so many sentences, by the language of the first sentence of all; the last one of a corpus may be shorter."""
    by_language: dict[str, list[str]] = {}
    for one in text.bitext:
        for code, sides in zip(one.sides, (list(one.sides.values()), list(one.sides.values())[::-1]), strict=True):
            turns = [sides[place % 2][place] for place in range(one.pairs)]
            by_language.setdefault(code, []).extend(" ".join(turns[at : at + number]) for at in range(0, len(turns), number))
    return Text(by_language)
