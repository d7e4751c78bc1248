"""text_checks: checks that several kinds of text share: languages, names of test sets, and files that are the same text."""

from collections.abc import Iterator, Mapping, Sequence

from workflow_scripts.run.uses import sources_of
from workflow_scripts.text.aligned import Aligned, AlignedSource
from workflow_scripts.text.corpus import Corpus
from workflow_scripts.text.files import kind_of
from workflow_scripts.text.labelled import Labelled
from workflow_scripts.text.labelled_source import LabelledSource
from workflow_scripts.text.languages import unknown_language


def language_problems(where: str, code: str) -> Iterator[str]:
    """A language must be one that is known here."""
    if said := unknown_language(code):
        yield f"{where}: {said}"


def read_twice(given: Mapping[str, object], languages: Sequence[str]) -> str:
    """What is wrong where both languages are `given` the same file or column; empty where each has its own."""
    one, other = (given[code] for code in languages)
    return f"both languages are read from {one!r}; a text cannot be its own translation" if one == other else ""


def testset_problems(where: str, corpus: Corpus | Labelled | Aligned, taken: str) -> Iterator[str]:
    """There must be a test set, and none may be called `taken`, which names something else among the results."""
    if not corpus.test:
        yield f"{where}.test: names no test set"
    for name in corpus.test:
        if name == taken:
            yield f"{where}.test.{name}: a test set cannot be called {taken}"


def same_text_problems(where: str, corpus: Corpus | Labelled) -> Iterator[str]:
    """No dev or test set may be the training text itself, and no dev set a test set."""
    parts = {part: source for part, source in sources_of(corpus).items() if part in ("train", "dev") or part.startswith("test.")}
    for part, source in parts.items():
        others = [*(["train"] if part != "train" else []), *([name for name in parts if name.startswith("test.")] if part == "dev" else [])]
        for other in others if source.paths() else ():
            if source == parts[other]:
                yield f"{where}.{part}: is the same text as `{other}`; give another file" + or_held_out(part)


def or_held_out(part: str) -> str:
    """The end of a sentence that asks for a file: text can be held out from the training text, but not the training text itself."""
    return "" if part == "train" else ", or `held_out`"


def json_line_problems(where: str, source: LabelledSource | AlignedSource, keys: tuple[str, ...], what: str) -> Iterator[str]:
    """None of the files may be JSON lines, where only tables or other formats are read."""
    for key in keys:
        if kind_of(getattr(source, key) or "") == ".jsonl":
            yield f"{where}.{key}: {getattr(source, key)} has JSON lines, which are not read here; write {what}"
