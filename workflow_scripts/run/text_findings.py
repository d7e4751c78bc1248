"""text_findings: looks at the data, text, word lists and vectors that a run needs, each with what is wrong and the way out.

Long files are read at their beginning only.
"""

import dataclasses
import itertools
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import regex

from workflow_scripts.lexicon.vecmap import find_program
from workflow_scripts.lexicon.vectors import read_vectors
from workflow_scripts.run.analyses import sources_read
from workflow_scripts.run.config import Config, data_file, data_used, sources_of
from workflow_scripts.run.findings import Finding, gigabytes, is_awaited, judged, used_corpora, used_lexicons, with_labels
from workflow_scripts.stage import InputError, resource
from workflow_scripts.tasks.crosslingual import given_lexicons, is_learnt
from workflow_scripts.tasks.experiment import chain, experiments_needed
from workflow_scripts.tasks.table import task_of
from workflow_scripts.tasks.translation import translations
from workflow_scripts.text import aligned as alignments
from workflow_scripts.text.acquisition import Data, needed
from workflow_scripts.text.aligned import AlignedSource, read_aligned
from workflow_scripts.text.corpus import Corpus
from workflow_scripts.text.entities import as_characters
from workflow_scripts.text.examples import Example, LabelledSource, read_any
from workflow_scripts.text.fetching import Unreachable, cache_folder, is_offline, size_of
from workflow_scripts.text.files import kind_of, read_lines
from workflow_scripts.text.hub import download_command
from workflow_scripts.text.identification import check_languages, reads_as
from workflow_scripts.text.labelled import Labelled, is_of
from workflow_scripts.text.languages import language
from workflow_scripts.text.parallel import Pair, Source, read_pairs
from workflow_scripts.text.tagged import INNER_BLANK
from workflow_scripts.text.word_lists import check_order, read_dictionary
from workflow_scripts.text.words import count_words


def data(config: Config) -> Iterator[Finding]:
    """Whether the data of the run are there, or can be acquired."""
    for name in data_used(config):
        path = data_file(config, name)
        if Path(path).exists():
            yield Finding("ok", f"data.{name}", path)
        else:
            yield judged(f"data.{name}", _to_acquire, config.data[name], verdict="note")


def _to_acquire(block: Data) -> str:
    sums = [block.sha256.get(side) for side in block.url or ()] if isinstance(block.sha256, dict) else [block.sha256]
    if block.url and None in sums:
        raise InputError(f"{block.url}: `sha256` is missing; its job downloads the file and says which checksum it found")
    size = 0
    missing = {url: place for url, place in needed(block).items() if not place.exists()}
    if missing and block.huggingface and is_offline("HF_HUB_OFFLINE"):
        raise InputError(f"is not in the Hugging Face cache; run `{download_command(block.huggingface)}` where there is network")
    for url, place in missing.items():
        try:
            size += size_of(url) or 0
        except Unreachable as reason:
            raise InputError(f"{url} cannot be reached ({reason}); get it where there is network, and put it at {place}") from None
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


_HEAD = 100_000
"""Number of pairs that are read from each corpus."""


def corpora(config: Config) -> Iterator[Finding]:
    """Whether the text is what the configuration says: files, columns, encoding, alignment, languages."""
    used, analysed = used_corpora(config), sources_read(config)
    for name in dict.fromkeys([*used, *config.corpora]):
        corpus = config.corpora[name]
        for part, source in sources_of(corpus).items():
            read = name in used or f"corpora.{name}.{part}" in analysed
            if read and source.held_out is None and not is_awaited(*source.paths()):
                yield judged(f"corpora.{name}.{part}", _parallel_text, source, corpus)
                pairs = beginning(read_pairs, source_at_hand(source), corpus.languages, corpus.documents)
                yield from _odd(f"corpora.{name}.{part}", pairs, corpus.languages)
                yield from _ragged(f"corpora.{name}.{part}", source)
                if part != "train" and not is_awaited(*corpus.train.paths()):
                    learnt = beginning(read_pairs, source_at_hand(corpus.train), corpus.languages, corpus.documents)
                    yield from _in_both(f"corpora.{name}.{part}", *([[pair.a, pair.b] for pair in some] for some in (pairs, learnt)))
                for side, code in enumerate(corpus.languages):
                    yield from foreign(f"corpora.{name}.{part}", [(pair.a, pair.b)[side] for pair in pairs], code)


def _odd(about: str, pairs: list[Pair], languages: tuple[str, str]) -> Iterator[Finding]:
    """Notes where a file was written for another reader: one that passes over a header, takes off quotation marks, reads HTML, or ends
    lines otherwise."""
    cells = [text for pair in pairs for text in (pair.a, pair.b)]
    if pairs and pairs[0].line == 1 and {text.lower() for text in cells[:2]} <= _HEADER | {*languages, *map(_english_name, languages)}:
        said = f"line 1 looks like a header, {cells[0]!r} and {cells[1]!r}, and is read as a pair; set `header: true`, or delete it"
        yield Finding("note", about, said)
    if sum(map(_in_quotation_marks, cells)) > len(cells) / 2:
        yield Finding("note", about, "most sentences stand in quotation marks, which are read as text; write the table without them")
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
    if 0 < len(pairs) < 10:
        yield Finding("note", about, f"has {len(pairs)} line(s); if these should be more, end each with a line feed (\\n)")


_HEADER = {"source", "target", "src", "tgt", "trg", "text", "sentence", "sentence1", "sentence2"}
"""What a table's first line calls its sides, besides their languages."""
_TARGETS = {"answer", "article", "body", "context", "document", "headline", "input", "output", "passage", "prompt", "query", "question"}
_TARGETS |= {"story", "summary", "title", *_HEADER}
"""What it calls texts and what is written from them."""
_TAG = regex.compile(r"</?(?:b|i|u|p|br|a|div|span|td|tr|li|ul|ol|font|strong|em|h[1-6])\b[^<>]*>", regex.IGNORECASE)


def _ragged(about: str, source: Source | LabelledSource) -> Iterator[Finding]:
    """A note where a line of a table has more columns than most: there is a tab in a text, which is cut there, or columns are moved."""
    if not (source.file and source.columns) or kind_of(source.file) not in ("", ".tsv", ".tab", ".txt"):
        return
    lines = beginning(read_lines, Path(resource(source.file)))
    counts = Counter(line.count("\t") + 1 for line in lines if line)
    usual = counts.most_common(1)[0][0] if counts else 0
    number = next((at for at, line in enumerate(lines, 1) if line.count("\t") >= usual), 0)
    if usual > 1 and number:
        said = f"line {number} has {lines[number - 1].count(chr(9)) + 1} columns, most lines {usual}; a tab inside a text cuts it, or moves"
        yield Finding("note", about, f"{said} other texts to another column: write blanks for such tabs")


def _english_name(code: str) -> str:
    return language(code).name.lower()


def _in_quotation_marks(text: str) -> bool:
    return text[:1] == text[1:][-1:] == '"'


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


def at_hand(corpus: Corpus) -> Corpus:
    """The corpus with the files that its paths name, the embedded ones too."""
    tests = {name: source_at_hand(source) for name, source in corpus.test.items()}
    return replace(corpus, train=source_at_hand(corpus.train), dev=source_at_hand(corpus.dev), test=tests)


def source_at_hand(source: Source) -> Source:
    """One part of a corpus with the files that its paths name, the embedded ones too."""
    files = {code: resource(path) for code, path in source.files.items()}
    return replace(source, file=source.file and resource(source.file), files=files)


def _parallel_text(source: Source, corpus: Corpus) -> str:
    source = source_at_hand(source)
    where = " + ".join(source.paths())
    pairs = list(itertools.islice(read_pairs(source, corpus.languages, corpus.documents), _HEAD))
    if not (whole := [pair for pair in pairs if pair.a and pair.b]):
        raise InputError(f"{where}: no pair with text on both sides in {len(pairs):,} lines; give another file, or other columns")
    check_languages(whole[:2000], corpus.languages, where)
    lost = f", of which {len(pairs) - len(whole):,} without text on both sides are left out" if len(whole) < len(pairs) else ""
    return f"{where}, {'the first ' if len(pairs) == _HEAD else ''}{len(pairs):,} pairs{lost}"


def beginning(read: Callable[..., Iterable[T]], *arguments: Any) -> list[T]:
    """What stands at the beginning of a text; nothing where it cannot be read, which is told elsewhere."""
    try:
        return list(itertools.islice(read(*arguments), 2000))
    except InputError:
        return []


def foreign(about: str, lines: list[str], code: str) -> Iterator[Finding]:
    """A note where a text does not look like one in its language."""
    if other := reads_as(lines, code):
        said = f"the {language(code).name} text reads as {other}; if it is, name the right file or column, or {code} is the wrong code"
        yield Finding("note", about, said)


def labelled(config: Config) -> Iterator[Finding]:
    """Whether labelled text is what the configuration says: files, columns, labels."""
    read = sources_read(config)
    analysed = [name for name in config.labelled if f"labelled.{name}.train" in read]
    for name in dict.fromkeys([*(config.experiments[each].corpus for each in with_labels(config)), *analysed]):
        block = config.labelled[name]
        for part, source in sources_of(block).items():
            if source.file and not is_awaited(*source.paths()):
                yield judged(f"labelled.{name}.{part}", _labelled_text, source, block)
                examples = beginning(_examples, source, block)
                lines = [text.replace(INNER_BLANK, " ") for example in examples for text in example.texts]
                yield from foreign(f"labelled.{name}.{part}", lines, block.language_of(part.replace(".", "/")))
                yield from _ragged(f"labelled.{name}.{part}", source)
                yield from _taken_for_an_example(f"labelled.{name}.{part}", examples)
                if part == "train":
                    yield from _nothing_held_out(f"labelled.{name}", source, block)
                elif not part.startswith("translations"):
                    yield from _learnt(f"labelled.{name}.{part}", examples, block)
                if block.unit == "text":
                    yield from _quoted(f"labelled.{name}.{part}", examples)
                    yield from _no_header(f"labelled.{name}.{part}", source, block)


def _taken_for_an_example(about: str, examples: list[Example]) -> Iterator[Finding]:
    """A note where the line that names the columns is read as the first example."""
    if examples and examples[0].line == 1 and {text.lower() for text in (*examples[0].texts, examples[0].label)} <= _TARGETS:
        said = f"line 1 looks like a header, {examples[0].text!r} and {examples[0].label!r}, and is read as an example; set `header: true`"
        yield Finding("note", about, said)


def _nothing_held_out(about: str, source: LabelledSource, block: Labelled) -> Iterator[Finding]:
    """Parts that are to be held out of training text that has no document for them."""
    try:
        documents = {example.document for example in itertools.islice(_examples(source, block), _HEAD)}
    except InputError:
        return
    for part, of in sources_of(block).items():
        if of.held_out is not None and not of.file and not any(is_of(block, part.replace(".", "/"), each) for each in documents):
            said = f"held_out {of.held_out} takes none of the {len(documents):,} documents, which without a column `document` are blocks of"
            yield Finding("WRONG", f"{about}.{part}", f"{said} lines; raise it, change `seed`, or give the part a file")


def _learnt(about: str, examples: list[Example], block: Labelled) -> Iterator[Finding]:
    """A note where a good part of a dev or test set is in the training text as well."""
    if not is_awaited(*block.train.paths()):
        learnt = beginning(_examples, block.train, block)
        yield from _in_both(about, [example.texts for example in examples], [example.texts for example in learnt])


def _in_both(about: str, texts: list[list[str]], learnt: list[list[str]]) -> Iterator[Finding]:
    known = {tuple(each) for each in learnt}
    both = sum(tuple(each) in known for each in texts)
    if both > len(texts) / 10:
        looked_at = f"of its first {len(texts):,} examples {both:,} are among the first {len(learnt):,} of `train`"
        yield Finding("note", about, f"{looked_at}; training leaves out what a dev or test set has: see that it is not the training text")


def _quoted(about: str, examples: list[Example]) -> Iterator[Finding]:
    """A note where a table was written by a program that puts cells with quotation marks into quotation marks, and doubles those inside."""
    quoted = [text for example in examples for text in example.texts if _in_quotation_marks(text) and '""' in text]
    if len(quoted) > 1:
        yield Finding("note", about, f"{len(quoted):,} texts have their quotation marks doubled, as {quoted[0][:60]!r}; set `quoted: true`")


def _no_header(about: str, source: LabelledSource, block: Labelled) -> Iterator[Finding]:
    """A note where the line that is passed over as the header is an example, since its label is one."""
    if not source.header:
        return
    first = beginning(itertools.islice, _examples(dataclasses.replace(source, header=False), block), 1)
    if first and first[0].line == 1:
        said = f"line 1 has the label {first[0].label!r}, so it looks like an example; without a header, leave `header: true` out"
        yield Finding("note", about, said)


def aligned(config: Config) -> Iterator[Finding]:
    """Whether text for retrieval is what the configuration says: files, columns, ids."""
    for name in dict.fromkeys(e.corpus for each in config.run.experiments if task_of(e := config.experiments[each]).text == "aligned"):
        block = config.aligned[name]
        for part, source in {**{f"test.{k}": v for k, v in block.test.items()}, **{f"dev.{k}": v for k, v in block.dev.items()}}.items():
            if not is_awaited(*source.paths()):
                yield judged(f"aligned.{name}.{part}", _aligned_text, source)


def _aligned_text(source: AlignedSource) -> str:
    sides, pairs = read_aligned(alignments.at_hand(source))
    where = " + ".join(source.paths())
    check_languages([Pair("", sides[0][i], sides[1][j], i + 1) for i, j in pairs[:2000]], source.languages, where)
    return f"{where}, {len(sides[0]):,} and {len(sides[1]):,} sentences, {len(pairs):,} pairs"


def _labelled_text(source: LabelledSource, block: Labelled) -> str:
    learnt = source == block.train and block.unit in ("text", "query")
    examples = list(itertools.islice(_examples(source, block), _HEAD))
    if not examples:
        raise InputError(f"{source.file}: has no example; give another file, or see `where` and `label_pattern`")
    counts = Counter(label for example in examples for label in example.labels(block.unit))
    if learnt and len(examples) < _HEAD and (missing := [label for label in block.labels if not counts[label]]):
        raise InputError(f"{source.file}: no example has the label {missing[0]!r}, so no model can learn it; take it out of `labels`")
    counted = ", ".join(f"{counts[label]:,} {label}" for label in block.labels)
    number = f"{'the first ' if len(examples) == _HEAD else ''}{len(examples):,} examples"
    return f"{source.file}, {number}{': ' if counted else ''}{counted}"


def _examples(source: LabelledSource, block: Labelled) -> Iterator[Example]:
    named = {key: getattr(source, key) for key in ("file", "targets", "queries", "documents")}
    files: dict[str, Any] = {key: resource(path) for key, path in named.items() if path}
    source = dataclasses.replace(source, **files, language=source.language or block.language)
    return read_any(block.unit, source, block.labels, Counter(), Counter())


def lexicons(config: Config) -> Iterator[Finding]:
    """Whether word lists and vectors are there and in their formats."""
    for corpus, name in used_lexicons(config):
        block, codes = config.lexicons[name], config.corpora[corpus].languages
        for kind in ("dictionary", "gold"):
            if (path := getattr(block, kind).get("-".join(codes))) and not is_awaited(path):
                yield judged(f"lexicons.{name}.{kind}", _word_list, resource(path), config.corpora[corpus])
        for code in codes:
            if (path := block.vectors.get(code)) and not is_awaited(path):
                yield judged(f"lexicons.{name}.vectors.{code}", _vectors, resource(path))
        if block.mapping.engine == "vecmap":
            yield judged(f"lexicons.{name}.mapping.vecmap", lambda clone: str(find_program(clone)), block.mapping.vecmap)
    given = {key: config.experiments[name].corpus for name in with_labels(config) for key in given_lexicons(config, name)}
    for (name, pair), text in sorted(given.items()):
        if not is_learnt(config.lexicons[name]) and not is_awaited(path := config.lexicons[name].dictionary[pair]):
            yield judged(f"lexicons.{name}.dictionary.{pair}", _given_word_list, resource(path), pair, config.labelled[text])
    yield from _unread(config)


def _unread(config: Config) -> Iterator[Finding]:
    """Notes where a lexicon has a dictionary, or vectors, that its way to be made does not read."""
    users: dict[str, set[str]] = {}
    for corpus, name in used_lexicons(config):
        users.setdefault(name, set()).update(config.corpora[corpus].languages)
    for name, codes in users.items():
        block, mode = config.lexicons[name], config.lexicons[name].mapping.mode
        if block.dictionary and mode not in ("semi_supervised", "supervised", "dictionary"):
            said = f"is not read with mapping.mode {mode}; set semi_supervised, supervised or dictionary to have it read"
            yield Finding("note", f"lexicons.{name}.dictionary", said)
        if block.vectors and mode in ("dictionary", "aligned"):
            yield Finding("note", f"lexicons.{name}.vectors", f"are not read with mapping.mode {mode}")
        elif other := [code for code in block.vectors if code not in codes]:
            said = f"{', '.join(other)}: not read; the lexicon is learnt in {', '.join(sorted(codes))}"
            yield Finding("note", f"lexicons.{name}.vectors", said)


def clauses(config: Config) -> Iterator[Finding]:
    """Languages of which the lexicon and the noise know clauses instead of words."""
    for corpus in dict.fromkeys(corpus for corpus, _ in used_lexicons(config)):
        for code in config.corpora[corpus].languages:
            if (known := language(code)).segments_clauses:
                yield Finding(
                    "note",
                    f"corpora.{corpus}.languages",
                    f'{known.name} is written without spaces and there is no segmenter for it: its "words" are whole clauses. Put blanks '
                    "between the words of the text, or compare arms without a lexicon",
                )


def unaligned(config: Config) -> Iterator[Finding]:
    """Whether the text that the distance of the languages is measured on, beside the test set, is there."""
    for name, each in translations(config).items():
        for code, path in each.representation.text.items() if name in config.run.experiments else ():
            if not is_awaited(path):
                yield judged(f"experiments.{name}.representation.text.{code}", _plain_text, resource(path))


def analysed(config: Config) -> Iterator[Finding]:
    """Whether the texts of analyses that are no test sets of the run are there, and all models can read them."""
    learnt = {config.experiments[name].corpus for name in experiments_needed(config)}
    for name in config.run.analyses:
        analysis = config.analyses[name]
        trimmed = {link for model in analysis.models for link in chain(config, model) if config.backbones[link].trim}
        if trimmed and (analysis.text or analysis.corpus not in learnt):
            lacking = (
                f"{', '.join(sorted(trimmed))} (trim: true) has the pieces of the experiments' text alone, so that letters may be lost"
            )
            yield Finding("note", f"analyses.{name}", f"reads other text; {lacking}. Leave `trim` out, or take an experiment's corpus")
        for code, path in analysis.text.items():
            if not path.startswith("results/"):  # which is made when the run begins
                yield judged(f"analyses.{name}.text.{code}", _plain_text, resource(path))
        if analysis.parallel and analysis.text and not is_awaited(*analysis.text.values()):
            yield from _not_parallel(f"analyses.{name}.text", {code: resource(path) for code, path in analysis.text.items()})


def _not_parallel(about: str, files: dict[str, str]) -> Iterator[Finding]:
    """That files of translations differ in length, as far as they are read."""
    try:
        sizes = {code: sum(1 for _ in itertools.islice(read_lines(Path(path)), _HEAD)) for code, path in files.items()}
    except InputError:
        return
    if len({*sizes.values()}) > 1:
        said = ", ".join(f"{files[code]} has {'at least ' if size == _HEAD else ''}{size:,} lines" for code, size in sizes.items())
        yield Finding("WRONG", about, f"{said}; give translations line by line, or set `parallel: false`")


def _plain_text(path: str) -> str:
    if not (found := sum(1 for line in itertools.islice(read_lines(Path(path)), _HEAD) if line.strip())):
        raise InputError(f"{path}: has no text; give another file")
    return f"{path}, {'at least ' if found == _HEAD else ''}{found:,} lines of text"


def _word_list(path: str, corpus: Corpus | None = None) -> str:
    """What is in a word list; the text of `corpus` tells whether its words stand in the right order."""
    if not (pairs := read_dictionary(Path(path), corpus.languages if corpus else None)):
        raise InputError(f"{path}: is empty; two words a line are expected, separated by a tab or a blank")
    if corpus and not is_awaited(*corpus.train.paths()):
        text = beginning(read_pairs, source_at_hand(corpus.train), corpus.languages, corpus.documents)
        counts = [count_words([(pair.a, pair.b)[side] for pair in text], code) for side, code in enumerate(corpus.languages)]
        check_order(Path(path), pairs, corpus.languages, counts)
    return f"{path}, {len(pairs):,} pairs of words"


def _given_word_list(path: str, pair: str, block: Labelled) -> str:
    """What is in a word list whose words are switched in labelled text, which is in one of its two languages."""
    said = _word_list(path)
    if not is_awaited(*block.train.paths()):
        first, second = pair.split("-")
        lines = [text.replace(INNER_BLANK, " ") for example in beginning(_examples, block.train, block) for text in example.texts]
        counts = [count_words(lines, code) if code == block.language else Counter() for code in (first, second)]
        check_order(Path(path), read_dictionary(Path(path), (first, second)), (first, second), counts)
    return said


def _vectors(path: str) -> str:
    words, vectors = read_vectors(Path(path), 1000)
    return f"{path}, {vectors.shape[1]} dimensions, the first word is {words[0]!r}"
