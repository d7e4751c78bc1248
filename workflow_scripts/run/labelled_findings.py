"""labelled_findings: looks at text with labels, tags, answers, grades or targets, each with what is wrong and the way out."""

import dataclasses
import itertools
from collections import Counter
from collections.abc import Iterator

from workflow_scripts.run.analyses import sources_read
from workflow_scripts.run.findings import Finding, is_awaited, judged, with_labels
from workflow_scripts.run.mark_findings import joined_files, of_other_tools, quoted_cells
from workflow_scripts.run.text_findings import BEGINNING, HEAD, HEADER, beginning, foreign, in_both, is_table, ragged
from workflow_scripts.run.uses import sources_of
from workflow_scripts.stage import InputError
from workflow_scripts.tasks.plan import Plans
from workflow_scripts.text.examples import Example, read_any
from workflow_scripts.text.label_names import number_range, or_left_out
from workflow_scripts.text.labelled import Labelled, as_read, belongs_to_part
from workflow_scripts.text.labelled_source import LabelledSource
from workflow_scripts.text.tagged import INNER_BLANK


def labelled(plans: Plans) -> Iterator[Finding]:
    """Whether labelled text is what the configuration says: files, columns, labels."""
    config, read = plans.config, sources_read(plans.config)
    analysed = [name for name in config.labelled if f"labelled.{name}.train" in read]
    for name in dict.fromkeys([*(plan.corpus for plan in with_labels(plans)), *analysed]):
        block, learnt = config.labelled[name], list[Example]()
        parts: dict[str, dict[str, list[str]]] = {}
        for part, source in sources_of(block).items():
            source = as_read(source, part, block.unit)
            if source.file and not is_awaited(*source.paths()):
                yield judged(f"labelled.{name}.{part}", _labelled_text, source, block)
                examples = beginning(examples_of, source, block)
                yield from foreign(f"labelled.{name}.{part}", plain_lines(examples), block.language_of(part.replace(".", "/")))
                yield from ragged(f"labelled.{name}.{part}", source)
                yield from joined_files(f"labelled.{name}.{part}", source.paths(), HEAD)
                if block.unit != "word":
                    parts[part] = {block.language_of(part.replace(".", "/")): plain_lines(examples)}
                yield from _taken_for_an_example(f"labelled.{name}.{part}", examples)
                if part == "train":
                    learnt = examples
                    yield from _shares_held_out(f"labelled.{name}", source, block)
                elif not part.startswith("translations"):
                    yield from _lacks_labels(f"labelled.{name}.{part}", examples, block)
                    yield from in_both(f"labelled.{name}.{part}", *([example.texts for example in some] for some in (examples, learnt)))
                if is_table(source) and not source.quoted:
                    cells = [text for one in examples for text in (*one.texts, *([one.label] if block.unit == "target" else []))]
                    yield from quoted_cells(f"labelled.{name}.{part}", cells, table=True)
                if block.unit == "text":
                    yield from _no_header(f"labelled.{name}.{part}", source, block)
        yield from of_other_tools(f"labelled.{name}", parts)


_TARGETS = {"answer", "article", "body", "context", "document", "headline", "input", "output", "passage", "prompt", "query", "question"}
_TARGETS |= {"story", "summary", "title", *HEADER}
"""What the first line of a table calls texts and what is written from them."""


def _taken_for_an_example(about: str, examples: list[Example]) -> Iterator[Finding]:
    """A note where the line that names the columns is read as the first example."""
    if examples and examples[0].line == 1 and {text.lower() for text in (*examples[0].texts, examples[0].label)} <= _TARGETS:
        said = f"line 1 looks like a header, {examples[0].text!r} and {examples[0].label!r}, and is read as an example; set `header: true`"
        yield Finding("note", about, said)


def _shares_held_out(about: str, source: LabelledSource, block: Labelled) -> Iterator[Finding]:
    """Parts that are held out of the training text, and get none of its documents, or far more or fewer examples than was asked for."""
    parts = {part: of for part, of in sources_of(block).items() if of.held_out is not None and not of.file}
    try:
        documents = Counter(example.document for example in itertools.islice(examples_of(source, block), HEAD)) if parts else Counter[str]()
    except InputError:
        return
    for part, of in parts.items():
        taken = [number for each, number in documents.items() if belongs_to_part(block, part.replace(".", "/"), each)]
        share, wanted = sum(taken) / max(1, documents.total()), of.held_out or 0.0
        blocks = f"{len(documents):,} documents, which without a column `document` are blocks of lines"
        if not taken:
            said = f"held_out {wanted} takes none of the {blocks}; raise it, change `seed`, or give the part a file"
            yield Finding("WRONG", f"{about}.{part}", said)
        elif not wanted / 1.5 < share < wanted * 1.5:
            said = f"held_out {wanted} takes {sum(taken):,} of {documents.total():,} examples ({share:.1%}), in whole documents"
            yield Finding("note", f"{about}.{part}", f"{said} ({blocks}); change it or `seed` for another number")


def _lacks_labels(about: str, examples: list[Example], block: Labelled) -> Iterator[Finding]:
    """A note of the labels that models learn and no example of a dev or test set has, as where `label_names` give another label.

    Of a longer set, of which only the beginning is there, it says nothing.
    """
    if block.unit != "text" or not 0 < len(examples) < BEGINNING:
        return
    there = {example.label for example in examples}
    if missing := [label for label in block.labels if label not in there]:
        said = f"none of its {len(examples):,} examples has the label {', '.join(map(repr, missing))}, which the training text has"
        yield Finding("note", about, f"{said}; if it should, correct the file or `label_names`")


def plain_lines(examples: list[Example]) -> list[str]:
    """The texts of examples, a line each, with plain blanks inside of words."""
    return [text.replace(INNER_BLANK, " ") for example in examples for text in example.texts]


def _no_header(about: str, source: LabelledSource, block: Labelled) -> Iterator[Finding]:
    """A note where the line that is passed over as the header is an example, since its label is one."""
    if not source.header:
        return
    first = beginning(itertools.islice, examples_of(dataclasses.replace(source, header=False), block), 1)
    if first and first[0].line == 1:
        said = f"line 1 has the label {first[0].label!r}, so it looks like an example; without a header, leave `header: true` out"
        yield Finding("note", about, said)


def _labelled_text(source: LabelledSource, block: Labelled) -> str:
    learnt = source == block.train and block.unit in ("text", "query")
    examples = list(itertools.islice(examples_of(source, block), HEAD))
    if not examples:
        raise InputError(f"{source.file}: has no example; give another file, or see `where` and `label_pattern`")
    counts = Counter(label for example in examples for label in example.labels(block.unit))
    if learnt and len(examples) < HEAD and (missing := [label for label in block.labels if not counts[label]]):
        way_out = f"take it out of `labels`{or_left_out(block.labels)}"
        raise InputError(f"{source.file}: no example has the label {missing[0]!r}, so no model can learn it; {way_out}")
    counted = ", ".join(f"{counts[label]:,} {label}" for label in block.labels)
    if block.any_number:
        numbers = number_range(example.label for example in examples)
        counted = f"numbers from {numbers['least']:g} to {numbers['greatest']:g}, {numbers['mean']:.3g} on average"
    number = f"{'the first ' if len(examples) == HEAD else ''}{len(examples):,} examples"
    return f"{source.file}, {number}{': ' if counted else ''}{counted}"


def examples_of(source: LabelledSource, block: Labelled) -> Iterator[Example]:
    """The examples of a source with the files that its paths name, the embedded ones too."""
    source = dataclasses.replace(source.at_hand(), language=source.language or block.language)
    return read_any(block.unit, source, block.labels, Counter(), Counter())
