"""trivial: the trivial baseline, which needs no model, scored as an arm's hypotheses are.

A model that gets no more has learnt nothing of use.

Of a translation it is the source: a copy shares names, numbers and formulas with the reference, and gets a few BLEU between related
languages. Of every other task whose answer is a text it is the first sentence of each source, which is hard to beat in summarisation.
"""

from pathlib import Path
from typing import Literal

from workflow_scripts.stage import run
from workflow_scripts.text.files import read_lines, write_lines
from workflow_scripts.text.targets import without_marks
from workflow_scripts.text.words import BREAK, sentences

Kind = Literal["copy", "first_sentence"]
"""What stands in for a hypothesis; the entry of a task says which (`Task.trivial`)."""

TRIVIAL = "trivial/seed0"
"""The folder, under an experiment's, of the trivial baseline; seeds of runs begin with 1, so it is no arm's."""


def main(source: Path, hypotheses: Path, *, kind: Kind, documents: bool = False) -> None:
    """Write a hypothesis for each line of `source`: the line itself, or its first sentence.

    In the text of `documents`, `</s>` stands between sentences.
    """
    first = first_of_document if documents else first_sentence
    lines = read_lines(source)
    write_lines(hypotheses, lines if kind == "copy" else map(first, lines))


def first_sentence(text: str) -> str:
    """The first sentence of a text, or all of a text that has none; without the marks around an answer."""
    text = without_marks(text)
    return next(iter(sentences(text)), text)


def first_of_document(text: str) -> str:
    """The first sentence of a document, whose sentences may stand apart or run on."""
    first, mark, _ = text.partition(f" {BREAK} ")
    return first if mark else first_sentence(first)


if __name__ == "__main__":
    run(main)
