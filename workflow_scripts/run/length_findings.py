"""length_findings: how much text has more pieces than a training, or a model, reads, where its vocabulary is there to count them.

The beginnings of texts are looked at. A training counts all of its text (`training.too_long`), and so does decoding.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from workflow_scripts.models.recognition import longest_row, network_config
from workflow_scripts.models.tokenisation import SPECIAL_PLACES, Codec
from workflow_scripts.run.findings import Finding, trained_by_updates
from workflow_scripts.run.labelled_findings import examples_of, plain_lines
from workflow_scripts.run.model_findings import folder_of
from workflow_scripts.run.text_findings import beginning, first_pairs, sides_of
from workflow_scripts.run.tokenizers_at_hand import codec_at_hand
from workflow_scripts.stage import InputError, resource
from workflow_scripts.tasks.plan import BackbonePlan, Plan
from workflow_scripts.training.too_long import Room

MANY = 0.01
"""The share of long rows from which on they are a note."""


def long_rows(plan: Plan) -> Iterator[Finding]:
    """What share of the training text is longer than `max_length`, of an experiment and, where they have their own, of arms."""
    found, at_once = dict[str, dict[Reads, Finding]](), set[str]()
    for arm, phase, training in trained_by_updates(plan):
        if not (codec := _codec(plan.backbone_of(arm), plan.task.documents)):
            continue
        own = {"max_length", "too_long"} & phase.training.keys() or phase.backbone or phase.text
        where = f"arms.{arm} in {plan.name}" if own else plan.where
        text = training_text(plan, phase.text)
        # only the task, and an objective that learns from pairs, read both sides together
        paired = phase.data == "task" or (phase.learns and phase.learns.reads == "pairs")
        sides = text if paired else {"": [line for some in text.values() for line in some]}
        room = Room.of(training, leave_out=not codec.documents and (phase.learns is None or phase.learns.leaves_out))
        # a decoder reads the prompt, the source and the answer in one row
        reads: Reads = ("task" if paired else "restore" if phase.restores else "text") if codec.form.causal else "text"
        if reads not in (looked := found.setdefault(where, {})) and any(sides.values()):
            looked[reads] = _long_rows(f"{where}.training.max_length", codec, sides, room, _positions(plan.backbone_of(arm)), reads)
        if not room.leave_out and phase.writes.at_once:
            at_once.add(where)
    for where, some in found.items():
        if not some:
            continue
        finding = next((each for each in some.values() if each.verdict == "WRONG"), next(iter(some.values())))
        yield finding._replace(said=f"{finding.said}. {_AT_ONCE}") if where in at_once else finding


Reads = Literal["task", "restore", "text"]
"""What a row is read as: by a decoder with the prompt of its task, or to restore, or else as a text."""
_AT_ONCE = "SGA and CTC leave out rows whose target is cut"


def training_text(plan: Plan, text: str | None) -> dict[str, list[str]]:
    """The sides of the beginning of an experiment's training text, or of the corpus `text`: lines with the same number are a row."""
    if text or plan.task.text == "corpora":
        corpus = plan.config.corpora[text or plan.corpus]
        return sides_of(first_pairs(corpus.train, corpus), corpus)
    block = plan.text
    examples = beginning(examples_of, block.train, block)
    if block.unit == "target":
        return {"text": [example.text for example in examples], "target": [example.label for example in examples]}
    return {block.language: plain_lines(examples)}


def _long_rows(about: str, codec: Codec, sides: dict[str, list[str]], room: Room, positions: int, reads: Reads = "text") -> Finding:
    """What to say of texts that are longer than a row, or of rows that are longer than the `positions` that the model has (0: unknown)."""
    texts = {side: codec.pieces(codec.behind_blank(lines)) for side, lines in sides.items()}
    ends = [[len(ids) + SPECIAL_PLACES for ids in some] for some in texts.values()]
    kept = [row for row in zip(*ends, strict=True) if max(row) <= room.max_length or not room.leave_out]
    read = [[min(end, room.max_length) for end in row] for row in kept]
    longest = max(map(max, read), default=0)
    if reads != "text":
        # what is restored is read twice, with noise and as the answer
        rows_read = (2 * max(row) if reads == "restore" else sum(row) for row in read)
        longest = len(codec.frame(("en", "en"), reads).prompt([])) + max(rows_read, default=0)
    if 0 < positions < longest:
        said = (
            f"{room.max_length:,}: a row of {longest:,} pieces is among the first of the training text, and the model reads {positions:,}"
        )
        way_out = f"set max_length: {positions} or less"
        if reads != "text":
            way_out = "lower it: a decoder's row has the prompt, the source and the answer, of which the last two have max_length each"
        return Finding("WRONG", about, f"{said} at most; {way_out}")
    long = {side: [codec.is_too_long(ids, room.max_length) for ids in some] for side, some in texts.items()}
    rows = list(map(any, zip(*long.values(), strict=True)))
    count, each = sum(rows), ", ".join(f"{side} {sum(some):,}" for side, some in long.items() if any(some) and side)
    what = f"{count:,} of the first {len(rows):,} rows ({count / len(rows):.1%}{f': {each}' if each else ''})"
    said = (
        f"{what} of the training text have a side of more than {room.max_length} pieces, and are {'left out' if room.leave_out else 'cut'}"
    )
    if count < MANY * len(rows):
        return Finding("ok", about, said)
    way_out = "or set too_long: cut" if room.leave_out else "or set too_long: leave_out"
    return Finding("note", about, f"{said}; raise max_length, {way_out}")


def long_sources(plan: Plan) -> Iterator[Finding]:
    """Test sets with texts that are longer than a model that is to write from them can read."""
    for backbone in dict.fromkeys(map(plan.backbone_of, plan.arms if plan.task.answers == "text" else ())):
        codec, longest = _codec(backbone, plan.task.documents), _positions(backbone)
        if not (codec and longest):
            continue
        for test, lines in _sources(plan).items():
            pieces = codec.pieces(codec.behind_blank(lines))
            if long := [number for number, ids in enumerate(pieces, 1) if codec.is_too_long(ids, longest)]:
                said = f"{len(long):,} of {len(lines):,} texts have more than the {longest:,} pieces that {backbone.name} reads"
                way_out = f"their ends are lost (text {long[0]} is the first). Split them into sentences"
                yield Finding("note", f"{plan.where}: test set {test}", f"{said}; {way_out}")


def _sources(plan: Plan) -> dict[str, list[str]]:
    """The source side of the beginning of each test set that is a file."""
    if plan.task.text == "corpora":
        corpus = plan.text
        files = {test: source for test, source in corpus.test.items() if source.held_out is None}
        return {test: sides_of(first_pairs(source, corpus), corpus)[plan.settings.source] for test, source in files.items()}
    block = plan.text
    files = {test: source for test, source in block.test.items() if source.file}
    return {test: [example.text for example in beginning(examples_of, source, block)] for test, source in files.items()}


def _folder(backbone: BackbonePlan) -> Path | None:
    """A folder with the vocabulary of a backbone, where that is there before the run."""
    small = backbone.origin.small
    return Path(resource(small.ready)) if small and small.ready else folder_of(backbone.origin)


def _codec(backbone: BackbonePlan, documents: bool) -> Codec | None:
    return codec_at_hand(_folder(backbone), documents)


def _positions(backbone: BackbonePlan) -> int:
    """The longest row that a backbone reads; 0 where it is not known."""
    from huggingface_hub.errors import StrictDataclassError

    try:
        return longest_row(network_config(folder)) if (folder := _folder(backbone)) else 0
    except (InputError, AttributeError, OSError, ValueError, StrictDataclassError):
        return 0  # the findings of the model say why
