"""reading_findings: whether the vocabularies of published models have the script of the text that a run reads.

A model that is made here has a vocabulary of this text.
"""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from workflow_scripts.models.reading import NOTED, REFUSED, WAY_OUT, unknown_in
from workflow_scripts.models.tokenisation import Codec
from workflow_scripts.run.findings import Finding, is_awaited
from workflow_scripts.run.labelled_findings import examples_of, plain_lines
from workflow_scripts.run.model_findings import folder_of
from workflow_scripts.run.text_findings import beginning, first_pairs, sides_of
from workflow_scripts.run.tokenizers_at_hand import codec_at_hand
from workflow_scripts.run.uses import sources_of
from workflow_scripts.stage import InputError
from workflow_scripts.tasks.plan import Plan, Plans
from workflow_scripts.text.aligned import read_aligned


class Text(NamedTuple):
    """One side of a part of the text that an experiment reads."""

    about: str
    """Where the configuration names it."""
    code: str
    lines: list[str]
    learnt: bool
    """Whether models are trained on it."""


def vocabularies(plans: Plans) -> Iterator[Finding]:
    """The share of unknown pieces in each text that a published model of the run reads, by language."""
    looked_at = set()
    for plan in plans.needed:
        origins = {backbone.chain[-1].name: backbone.origin for backbone in plan.backbones}
        found = {name: codec_at_hand(folder_of(origin)) for name, origin in sorted(origins.items())}
        for root, codec in ((name, codec) for name, codec in found.items() if codec):
            for text in _texts(plan):
                if (root, text.about, text.code) not in looked_at:
                    looked_at.add((root, text.about, text.code))
                    yield from _judged(f"{text.about} ({text.code})", root, codec, text)


def _judged(about: str, backbone: str, codec: Codec, text: Text) -> Iterator[Finding]:
    found = unknown_in(codec, text.lines)
    if not found.pieces:
        return
    said = f"{found.said(text.code)}, to the vocabulary of backbones.{backbone}"
    if text.learnt and found.share >= REFUSED:
        yield Finding("WRONG", about, f"{said}; {WAY_OUT}")
    elif found.share >= REFUSED:
        yield Finding("note", about, f"{said}, so scores on it say nothing; {WAY_OUT}")
    elif found.share >= NOTED:
        yield Finding("note", about, said)
    else:
        yield Finding("ok", about, f"{found.share:.1%} of the pieces are unknown to the vocabulary of backbones.{backbone}")


def _texts(plan: Plan) -> Iterator[Text]:
    """The texts of an experiment, as far as they are there and can be read."""
    kind = plan.task.text
    for name in dict.fromkeys([plan.corpus, *getattr(plan.settings, "together_with", ())]):
        block = getattr(plan.config, kind)[name]
        for part, source in sources_of(block).items():
            if not (paths := source.paths()) or is_awaited(*paths):
                continue
            about, learnt = f"{kind}.{name}.{part}", part == "train" or part.startswith("translations")
            for code, lines in _sides(kind, block, part, source):
                yield Text(about, code, lines, learnt)


def _sides(kind: str, block: Any, part: str, source: Any) -> Iterable[tuple[str, list[str]]]:
    if kind == "corpora":
        return sides_of(first_pairs(source, block), block).items()
    if kind == "aligned":
        try:
            return list(zip(source.languages, read_aligned(source.at_hand())[0], strict=True))
        except InputError:
            return []
    examples, where = beginning(examples_of, source, block), part.replace(".", "/")
    texts = [(block.language_of(where), plain_lines(examples))]
    if block.unit == "target":
        texts.append((block.language_of_targets(where), [example.label for example in examples]))
    return texts
