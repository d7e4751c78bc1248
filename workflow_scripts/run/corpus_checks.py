"""corpus_checks: checks of the configuration's corpora, which are parallel text: languages, sources, columns and documents."""

from collections.abc import Iterator

from workflow_scripts.run.text_checks import language_problems, or_held_out, read_twice, same_text_problems, testset_problems
from workflow_scripts.run.uses import sources_of
from workflow_scripts.text.corpus import Corpus
from workflow_scripts.text.files import kind_of
from workflow_scripts.text.other_formats import format_by_name
from workflow_scripts.text.parallel import Source, needs_columns, problem_of_columns


def corpus_problems(where: str, corpus: Corpus) -> Iterator[str]:
    """Every line tells a problem of a corpus's languages, test sets, sources or documents."""
    for code in corpus.languages:
        yield from language_problems(f"{where}.languages", code)
    if corpus.languages[0] == corpus.languages[1]:
        yield f"{where}.languages: {list(corpus.languages)} is one language twice"
    yield from testset_problems(where, corpus, "dev")
    yield from same_text_problems(where, corpus)
    for part, source in sources_of(corpus).items():
        yield from _origin_of_part_problems(where, part, source)
        if bool(source.file) != bool(source.files):
            yield from _column_problems(where, part, source, corpus)
            yield from _document_problems(f"{where}.{part}", source, corpus)
    if (documents := corpus.documents) and (unknown := {documents.language, *documents.cut} - {*corpus.languages}):
        yield f"{where}.documents: {', '.join(sorted(unknown))} is no language of the corpus, {list(corpus.languages)}"


def _origin_of_part_problems(where: str, part: str, source: Source) -> Iterator[str]:
    """A part comes from one file, from several files, or (dev and test sets only) from the training text."""
    kinds = {"file": bool(source.file), "files": bool(source.files), "held_out": source.held_out is not None}
    if sum(kinds.values()) > 1:
        given = " and ".join(f"`{key}`" for key, there in kinds.items() if there)
        yield (
            f"{where}.{part}: has {given}, where one belongs; a recipe keeps the keys of what it is laid over: set the other to null, "
            "or give the corpus a name of its own"
        )
    elif not any(kinds.values()) or (part == "train" and kinds["held_out"]):
        yield f"{where}.{part}: give either `file` with `columns`, `files`, or `data`" + or_held_out(part)


def _column_problems(where: str, part: str, source: Source, corpus: Corpus) -> Iterator[str]:
    """The columns, or the files, must be those of the corpus's two languages, each with a text of its own."""
    columns = source.columns if source.format else source.files or source.columns
    if source.file and not source.format and not needs_columns(source.file):
        yield from (f"{where}.{part}.columns: {problem}" for problem in problem_of_columns(source.file, columns))
        columns = {**{code: code for code in corpus.languages}, **columns}
    if missing := [code for code in corpus.languages if code not in columns]:
        known = corpus.train.columns if part != "train" else {}
        example = f"; for example those of `train`, {dict(known)}" if source.file and known else ""
        given = f"it has {dict(columns)}" if columns else format_by_name(source.file or "") or f"give `columns`{example}"
        yield f"{where}.{part}: nothing is said about {', '.join(missing)}; {given}"
    elif twice := read_twice(columns, corpus.languages):
        yield f"{where}.{part}: {twice}"
    elif shared := [name for name in ("document", "heading") if columns.get(name) in [columns[code] for code in corpus.languages]]:
        yield (
            f"{where}.{part}: {shared[0]} is column {columns[shared[0]]!r}, from which a language is read; a recipe keeps the keys of "
            f"what it is laid over: set {shared[0]} to null, or give the corpus a name of its own"
        )
    for key in ("header", "quoted"):
        if getattr(source, key) and not _is_table(source):
            yield f"{where}.{part}.{key}: is for a TSV file; leave it out here"
    if source.reference and kind_of(source.file or "") != ".xml":
        yield f"{where}.{part}.reference: is for the XML of WMT (.xml)"
    extra = ["document", *(["heading"] if source.summary == "heading" else [])] if source.columns else []
    key = "files" if source.files else "columns"
    for unknown in sorted(columns.keys() - {*corpus.languages, *extra}):
        yield (
            f"{where}.{part}.{key}.{unknown}: is no language of the corpus{''.join(f' nor `{name}`' for name in extra)}; a recipe keeps "
            f"the keys of what it is laid over: set {unknown} to null, or give the corpus a name of its own"
        )


def _is_table(source: Source) -> bool:
    """Whether a source is read as a TSV file."""
    return source.file is not None and not source.format and kind_of(source.file) != ".jsonl" and needs_columns(source.file)


def _document_problems(where: str, source: Source, corpus: Corpus) -> Iterator[str]:
    """Summaries are for a corpus with documents, and need a source that tells where these begin."""
    if (source.summary or source.format) and not corpus.documents:
        yield f"{where}: {'summary' if source.summary else 'format ncls'} is for a corpus with `documents`"
    if source.summary and not _is_table(source):
        yield f"{where}.summary: is for a TSV file"
    if source.format and source.files and (missing := [code for code in corpus.languages if code not in source.files]):
        yield f"{where}.files: names none for {', '.join(missing)}"
    wanted = {"first": ["document"], "heading": ["document", "heading"]}.get(source.summary or "", [])
    if missing := [name for name in wanted if name not in source.columns]:
        yield f"{where}.columns: summary {source.summary} needs {' and '.join(f'`{name}`' for name in missing)}"
