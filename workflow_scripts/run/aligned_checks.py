"""aligned_checks: checks of the configuration's text for retrieval: sources, and gold pairs where pairs are mined."""

from collections.abc import Iterator

from workflow_scripts.names import undefined
from workflow_scripts.run.text_checks import json_line_problems, language_problems, read_twice, testset_problems
from workflow_scripts.text.aligned import Aligned, AlignedSource


def aligned_problems(where: str, aligned: Aligned) -> Iterator[str]:
    """Every line tells a problem of the sources, gold pairs or test sets of the text for retrieval."""
    yield from testset_problems(where, aligned, "average")
    for part, source in aligned.parts().items():
        yield from _aligned_source_problems(f"{where}.{part.replace('/', '.')}", source)
    if aligned.mines:
        yield from _gold_problems(where, aligned)
    for name in aligned.dev:
        yield from undefined(f"{where}.dev", name, aligned.test if aligned.mines else {})


def _aligned_source_problems(where: str, source: AlignedSource) -> Iterator[str]:
    """A source is in two known languages, and has a column or a file for each."""
    for code in source.languages:
        yield from language_problems(f"{where}.languages", code)
    if source.languages[0] == source.languages[1]:
        yield f"{where}.languages: {list(source.languages)} is one language twice"
    if bool(source.file) == bool(source.files) or (source.file and (source.order or source.gold)) or (source.order and source.gold):
        yield f"{where}: give `file` with `columns`, or `files`, with `order` or `gold` if their lines are not in step"
        return
    yield from json_line_problems(where, source, ("file",), "a TSV file")
    for key in ("header", "quoted"):
        if getattr(source, key) and not source.file:
            yield f"{where}.{key}: is for a TSV file, `file`; leave it out here"
    given = source.columns if source.file else source.files
    if sorted(given) != sorted(source.languages):
        yield f"{where}: `{'columns' if source.file else 'files'}` must name {' and '.join(source.languages)}; it has {given}"
    elif twice := read_twice(given, source.languages):
        yield f"{where}: {twice}"


def _gold_problems(where: str, aligned: Aligned) -> Iterator[str]:
    """Where pairs are mined, every test set needs gold pairs, and a dev set with gold pairs beside it."""
    for name, source in aligned.test.items():
        if not source.gold:
            yield f"{where}.test.{name}.gold: is missing; other test sets have it, and F1 of pairs and accuracy have no average"
        if not (dev := aligned.dev.get(name)) or not dev.gold:
            yield f"{where}.dev.{name}: is missing; the threshold from which on pairs are mined is chosen on dev text with `gold`"
