"""text_findings: looks at the data and the text that a run needs, each with what is wrong and the way out.

Long files are read at their beginning only. Text with labels has its looks in `labelled_findings`, word lists and vectors in
`lexicon_findings`.
"""

import itertools
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import regex

from workflow_scripts.run.analyses import sources_read
from workflow_scripts.run.findings import Finding, gigabytes, is_awaited, judged, used_corpora
from workflow_scripts.run.mark_findings import joined_files, of_other_tools, quoted_cells
from workflow_scripts.run.uses import data_file, data_used, sources_of
from workflow_scripts.stage import InputError, resource
from workflow_scripts.tasks.plan import Plan, Plans
from workflow_scripts.text.acquisition import Data, by_hand, needed
from workflow_scripts.text.aligned import AlignedSource, read_aligned
from workflow_scripts.text.corpus import Corpus, leak_key
from workflow_scripts.text.entities import as_characters
from workflow_scripts.text.fetching import Unreachable, cache_folder, is_offline, size_of
from workflow_scripts.text.files import kind_of, read_lines
from workflow_scripts.text.hub import download_command
from workflow_scripts.text.identification import check_languages, reads_as
from workflow_scripts.text.labelled_source import LabelledSource
from workflow_scripts.text.languages import language
from workflow_scripts.text.parallel import Pair, Source, needs_columns, read_pairs


def data(plans: Plans) -> Iterator[Finding]:
    """Whether the data of the run are there, or can be acquired."""
    for name in data_used(plans):
        path = data_file(plans.config, name)
        if Path(path).exists():
            yield Finding("ok", f"data.{name}", path)
        else:
            yield judged(f"data.{name}", _to_acquire, plans.config.data[name], verdict="note")


def _to_acquire(block: Data) -> str:
    sums = [block.sha256.get(side) for side in block.url or ()] if isinstance(block.sha256, dict) else [block.sha256]
    if block.url and None in sums:
        raise InputError(f"{block.url}: `sha256` is missing; its job downloads the file and says which checksum it found")
    size = 0
    missing = {url: place for url, place in needed(block).items() if not place.exists()}
    if missing and block.huggingface and is_offline("HF_HUB_OFFLINE"):
        raise InputError(f"is not in the Hugging Face cache; run `{download_command(block.huggingface)}` where there is network")
    for url in missing:
        try:
            size += size_of(url) or 0
        except Unreachable as reason:
            raise InputError(f"{url} cannot be had ({reason}); {by_hand(block, url, reason)}") from None
    if not missing and block.debian:  # their index is there, and perhaps they are, too
        return f"is to be made of Debian's packages {', '.join(block.debian.packages.values())}"
    if not missing:
        return f"is to be had from mtdata: {block.mtdata}" if block.mtdata else "is to be made of what is there"
    if block.lines or not block.url:
        return f"is to be had from {', '.join(missing)}"
    folder = next(folder for folder in (cache_folder(), *cache_folder().absolute().parents) if folder.exists())
    if size > (free := shutil.disk_usage(folder).free):
        raise InputError(f"{', '.join(missing)}: {gigabytes(size)}, but {cache_folder()} has {gigabytes(free)} free; set CROSSGAP_CACHE")
    return f"is to be downloaded: {', '.join(missing)}, {size / 1e6:,.1f} MB"


T = TypeVar("T")


HEAD = 100_000
"""Number of pairs that are read from each corpus."""
BEGINNING = 2000
"""How much of a text is looked at where its beginning will do."""


def corpora(plans: Plans) -> Iterator[Finding]:
    """Whether the text is what the configuration says: files, columns, encoding, alignment, languages."""
    config, used, analysed = plans.config, used_corpora(plans), sources_read(plans.config)
    for name in dict.fromkeys([*used, *config.corpora]):
        corpus, parts = config.corpora[name], dict[str, dict[str, list[str]]]()
        for part, source in sources_of(corpus).items():
            read = name in used or f"corpora.{name}.{part}" in analysed
            if read and source.held_out is None and not is_awaited(*source.paths()):
                passed: Counter[str] = Counter()
                yield (look := judged(f"corpora.{name}.{part}", _parallel_text, source, corpus, passed))
                if look.verdict == "ok":
                    yield from (Finding("note", f"corpora.{name}.{part}", f"{what}: {count:,}") for what, count in passed.items())
                pairs = first_pairs(source, corpus)
                yield from _odd(f"corpora.{name}.{part}", pairs, corpus.languages, source)
                yield from joined_files(f"corpora.{name}.{part}", source.paths(), HEAD)
                yield from ragged(f"corpora.{name}.{part}", source)
                if part != "train":
                    learnt = first_pairs(corpus.train, corpus)
                    yield from in_both(f"corpora.{name}.{part}", *([[pair.a, pair.b] for pair in some] for some in (pairs, learnt)))
                parts[part] = sides_of(pairs, corpus)
                for code, lines in parts[part].items():
                    yield from foreign(f"corpora.{name}.{part}", lines, code)
        yield from of_other_tools(f"corpora.{name}", parts)


def _odd(about: str, pairs: list[Pair], languages: tuple[str, str], source: Source) -> Iterator[Finding]:
    """Notes where a file was written for another reader: one that passes over a header, takes off quotation marks, reads HTML, or ends
    lines otherwise."""
    cells = [text for pair in pairs for text in (pair.a, pair.b)]
    if pairs and pairs[0].line == 1:
        yield from _header(about, cells[0], cells[1], languages)
    if not source.quoted:
        yield from quoted_cells(about, cells, table=is_table(source))
    if (lag := out_of_step(pairs)) is not None:
        said = f"the sides look out of step: line n of one fits line n {lag:+d} of the other better than line n; see that they are parallel"
        yield Finding("note", about, said)
    escaped = [text for text in cells if as_characters(text) != text]
    if len(escaped) > len(cells) / 100:
        said = f"{len(escaped) / len(cells):.0%} of the sentences have HTML entities, as in {escaped[0][:60]!r}; set `unescape: true`"
        yield Finding("note", about, said)
    tagged = [text for text in cells if _TAG.search(text)]
    if len(tagged) > len(cells) / 100:
        said = f"{len(tagged) / len(cells):.0%} of the sentences have HTML tags, as in {tagged[0][:60]!r}, which are read as text"
        yield Finding("note", about, f"{said}; take them out of the file if models should not learn them")
    if (not source.file or needs_columns(source.file)) and 0 < len(pairs) < 10:
        yield Finding("note", about, f"has {len(pairs)} line(s); if these should be more, end each with a line feed (\\n)")


def _header(about: str, one: str, other: str, languages: tuple[str, str]) -> Iterator[Finding]:
    """A note where the first texts of the two sides are what a table calls its columns."""
    if {one.lower(), other.lower()} <= HEADER | {*languages, *(language(code).name.lower() for code in languages)}:
        said = f"line 1 looks like a header, {one!r} and {other!r}, and is read as a pair; set `header: true`, or delete it"
        yield Finding("note", about, said)


HEADER = {"source", "target", "src", "tgt", "trg", "text", "sentence", "sentence1", "sentence2"}
"""What a table's first line calls its sides, besides their languages."""
_TAG = regex.compile(r"</?(?:b|i|u|p|br|a|div|span|td|tr|li|ul|ol|font|strong|em|h[1-6])\b[^<>]*>", regex.IGNORECASE)


def ragged(about: str, source: Source | LabelledSource) -> Iterator[Finding]:
    """A note where a line of a table has more columns than most: there is a tab in a text, which is cut there, or columns are moved."""
    if not is_table(source) or source.quoted:  # in quoted cells tabs are text
        return
    lines = beginning(read_lines, Path(resource(source.file or "")))
    counts = Counter(line.count("\t") + 1 for line in lines if line)
    usual = counts.most_common(1)[0][0] if counts else 0
    number = next((at for at, line in enumerate(lines, 1) if line.count("\t") >= usual), 0)
    if usual > 1 and number:
        said = f"line {number} has {lines[number - 1].count(chr(9)) + 1} columns, most lines {usual}; a tab inside a text cuts it, or moves"
        yield Finding("note", about, f"{said} other texts to another column: write blanks for such tabs")


def is_table(source: Source | LabelledSource) -> bool:
    """Whether a source is a TSV file."""
    return bool(source.file and source.columns and kind_of(source.file) in ("", ".tsv", ".tab", ".txt"))


def out_of_step(pairs: list[Pair]) -> int | None:
    """By how many lines the second side is shifted against the first, if by the lengths of sentences it looks so; else None.

    Translations of long sentences are long, so that the lengths of two sides in step correlate.
    """
    if len(pairs) < 200:
        return None
    a, b = (np.log1p([len(side) for side in sides]) for sides in zip(*((pair.a, pair.b) for pair in pairs), strict=True))
    if not (np.ptp(a[3:-3]) and np.ptp(b[3:-3])):
        return None
    fits = {lag: np.corrcoef(a[3:-3], b[3 + lag : len(b) - 3 + lag])[0, 1] for lag in range(-3, 4)}
    best = max(fits, key=lambda lag: (fits[lag], lag == 0))
    return best if best and fits[best] > fits[0] + 0.3 else None


def _parallel_text(source: Source, corpus: Corpus, passed: Counter[str]) -> str:
    source = source.at_hand()
    where = " + ".join(source.paths())
    pairs = list(itertools.islice(read_pairs(source, corpus.languages, corpus.documents, passed), HEAD))
    if not (whole := [pair for pair in pairs if pair.a and pair.b]):
        raise InputError(f"{where}: no pair with text on both sides in {len(pairs):,} lines; give another file, or other columns")
    check_languages(whole[:BEGINNING], corpus.languages, where)
    lost = f", of which {len(pairs) - len(whole):,} without text on both sides are left out" if len(whole) < len(pairs) else ""
    return f"{where}, {'the first ' if len(pairs) == HEAD else ''}{len(pairs):,} pairs{lost}"


def beginning(read: Callable[..., Iterable[T]], *arguments: Any) -> list[T]:
    """What stands at the beginning of a text; nothing where it cannot be read, which another finding says."""
    try:
        return list(itertools.islice(read(*arguments), BEGINNING))
    except InputError:
        return []


def first_pairs(source: Source, corpus: Corpus) -> list[Pair]:
    """The pairs at the beginning of a part of a corpus; none where it is not there yet, or cannot be read."""
    return beginning(read_pairs, source.at_hand(), corpus.languages, corpus.documents)


def sides_of(pairs: list[Pair], corpus: Corpus) -> dict[str, list[str]]:
    """Language → its side of the pairs."""
    return dict(zip(corpus.languages, ([pair.a for pair in pairs], [pair.b for pair in pairs]), strict=True))


def foreign(about: str, lines: list[str], code: str) -> Iterator[Finding]:
    """A note where a text does not look like one in its language."""
    if other := reads_as(lines, code):
        said = f"the {language(code).name} text reads as {other}; if it is, name the right file or column, or {code} is the wrong code"
        yield Finding("note", about, said)


def in_both(about: str, texts: list[list[str]], learnt: list[list[str]]) -> Iterator[Finding]:
    """A note where more than a tenth of the `texts` of a dev or test set, each with all its sides, are among the `learnt` ones."""
    known = {tuple(map(leak_key, each)) for each in learnt}
    both = sum(tuple(map(leak_key, each)) in known for each in texts)
    if both > len(texts) / 10:
        looked_at = f"of its first {len(texts):,} examples {both:,} are among the first {len(learnt):,} of `train`"
        yield Finding("note", about, f"{looked_at}; training leaves out what a dev or test set has: see that it is not the training text")


def retrieval_text(plans: Plans) -> Iterator[Finding]:
    """Whether text for retrieval is what the configuration says: files, columns, ids."""
    for name in dict.fromkeys(plan.corpus for plan in plans.of_run if plan.task.text == "aligned"):
        for part, source in sources_of(plans.config.aligned[name]).items():
            if not is_awaited(*source.paths()):
                yield judged(f"aligned.{name}.{part}", _aligned_text, source)
                yield from _odd_sides(f"aligned.{name}.{part}", source)


def _odd_sides(about: str, source: AlignedSource) -> Iterator[Finding]:
    """Notes on text for retrieval: a header that is read as sentences, quoted cells, a side in another language."""
    try:
        sides = [lines[:BEGINNING] for lines in read_aligned(source.at_hand())[0]]
    except InputError:
        return
    if source.file and not source.header and all(sides):
        yield from _header(about, sides[0][0], sides[1][0], source.languages)
    if not source.quoted:
        yield from quoted_cells(about, [text for lines in sides for text in lines], table=bool(source.file))
    for lines, code in zip(sides, source.languages, strict=True):
        yield from foreign(about, lines, code)


def _aligned_text(source: AlignedSource) -> str:
    sides, pairs = read_aligned(source.at_hand())
    where = " + ".join(source.paths())
    check_languages([Pair("", sides[0][i], sides[1][j], i + 1) for i, j in pairs[:BEGINNING]], source.languages, where)
    return f"{where}, {len(sides[0]):,} and {len(sides[1]):,} sentences, {len(pairs):,} pairs"


def unaligned(plan: Plan) -> Iterator[Finding]:
    """Whether the text that the distance of the languages is measured on, beside the test set, is there."""
    for code, path in plan.settings.representation.text.items():
        if not is_awaited(path):
            yield from _in_language(f"{plan.where}.representation.text.{code}", resource(path), code)


def analysed(plans: Plans) -> Iterator[Finding]:
    """Whether the texts of analyses that are no test sets of the run are there, and all models can read them."""
    learnt = {plan.corpus for plan in plans.needed}
    for name in plans.config.run.analyses:
        analysis = plans.config.analyses[name]
        links = [link for model in analysis.models for link in plans.backbone(model).chain]
        trimmed = {link.name for link in links if link.settings.trim}
        if trimmed and (analysis.text or analysis.corpus not in learnt):
            lacking = (
                f"{', '.join(sorted(trimmed))} (trim: true) has the pieces of the experiments' text alone, so that letters may be lost"
            )
            yield Finding("note", f"analyses.{name}", f"reads other text; {lacking}. Leave `trim` out, or take an experiment's corpus")
        for code, path in analysis.text.items():
            if not path.startswith("results/"):  # which is made when the run begins
                yield from _in_language(f"analyses.{name}.text.{code}", resource(path), code)
        if analysis.parallel and analysis.text and not is_awaited(*analysis.text.values()):
            yield from _not_parallel(f"analyses.{name}.text", {code: resource(path) for code, path in analysis.text.items()})


def _not_parallel(about: str, files: dict[str, str]) -> Iterator[Finding]:
    """That files of translations differ in length, as far as they are read."""
    try:
        sizes = {code: sum(1 for _ in itertools.islice(read_lines(Path(path)), HEAD)) for code, path in files.items()}
    except InputError:
        return
    if len({*sizes.values()}) > 1:
        said = ", ".join(f"{files[code]} has {'at least ' if size == HEAD else ''}{size:,} lines" for code, size in sizes.items())
        yield Finding("WRONG", about, f"{said}; give translations line by line, or set `parallel: false`")


def _in_language(about: str, path: str, code: str) -> Iterator[Finding]:
    """Whether a file of one language is there and has text, and a note where that reads as another language."""
    yield judged(about, _plain_text, path)
    yield from foreign(about, beginning(read_lines, Path(path)), code)


def _plain_text(path: str) -> str:
    if not (found := sum(1 for line in itertools.islice(read_lines(Path(path)), HEAD) if line.strip())):
        raise InputError(f"{path}: has no text; give another file")
    return f"{path}, {'at least ' if found == HEAD else ''}{found:,} lines of text"
