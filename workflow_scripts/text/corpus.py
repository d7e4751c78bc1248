"""corpus: raw parallel text in, clean training, dev and test text out.

Two commands, in this order:

``held-out``
    makes one dev or test set: either a file of its own, or whole documents carved out of the
    training source (a sentence's neighbours are as good as the sentence, so scattered sentences
    would leak). Only running sentences of those documents are kept.
``train``
    makes the training text: everything else, cleaned and deduplicated (Zan et al., section IV-B),
    without any pair that equals a dev or test pair on either side.

Every pair that was read is either kept or counted under exactly one reason in ``corpus.json``.

For summarisation a pair is a document, its sentences joined by ``</s>``, and its summary. Long sides are cut
then instead of removed; the summaries of test sets stay whole.
"""

import functools
import hashlib
import itertools
import json
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
import regex

from workflow_scripts.limits import Limits, Natural, Positive, Seed
from workflow_scripts.stage import InputError, checksums, run, write_json
from workflow_scripts.text.files import chunks, read_lines, write_pairs
from workflow_scripts.text.languages import language
from workflow_scripts.text.words import BREAK, fold, number_of_words, sentences, words_of


@dataclass
class Source:
    """Where parallel text comes from: one TSV or JSONL file, a pair of Moses files, files in the format of NCLS, data that are
    acquired, or (dev and test only) documents held out from the training source."""

    file: str | None = None
    """A TSV or JSONL file; may end in .gz, .xz or .zst."""
    columns: dict[str, int | str] = field(default_factory=dict)
    """Language → column (from 1, as in `cut -f`), key of a JSON object (dots go deeper) or tag (`format: ncls`). An extra entry
    `document` names the column that tells which page or article a line belongs to, `heading` the one that tells headings."""
    files: dict[str, str] = field(default_factory=dict)
    """Language → file with one sentence a line (Moses format), or with the tags of this language (`format: ncls`)."""
    data: str | None = None
    """Name of acquired data (a block of `data`), which take the place of `file`; if they have `languages`, of `columns`, too."""
    format: Literal["ncls"] | None = None
    """`ncls`: tagged text as in the NCLS corpora, `file` or `files` with `columns`. Otherwise the files' names tell."""
    summary: Literal["first", "heading"] | None = None
    """Lines of a TSV are parts of documents, one of them the summary: the `first` of a `document`, or each heading, of the lines up
    to the next one. In a heading's line the column `heading` starts with h, as in h1 or hd_3155364."""
    held_out: Positive | None = None
    """Take whole documents with about so many running sentences out of the training source."""

    def paths(self) -> list[str]:
        """The files that this source reads."""
        return [self.file] if self.file else list(self.files.values())


@dataclass
class Cut:
    """How long a side may be; what is longer is cut."""

    words: Positive | None = None
    """Words, as the segmenter counts them."""
    characters: Positive | None = None
    """Characters that are not blank."""


@dataclass
class Documents:
    """What a corpus of documents and summaries has in addition."""

    language: str
    """Language of the documents; the summaries are in the other one."""
    cut: dict[str, Cut] = field(default_factory=dict)
    """Language → longest side. Zan et al. have 220 words of a document, and 130 words or 160 Chinese characters of a summary."""
    split: bool = True
    """Whether documents that are running text are split into sentences, by their closing marks. Lists are sentences already."""
    min_words: Positive = 1
    """Documents of fewer words are removed."""
    empty: Literal["refuse", "remove"] = "refuse"
    """What becomes of a document or a summary without text."""


@dataclass
class Corpus:
    """One parallel corpus and what to keep of it."""

    languages: tuple[str, str]
    """The two languages; their order names the folder, e.g. `help.de-en`."""
    train: Source
    """Training text."""
    dev: Source
    """Text for choosing checkpoints and settings."""
    test: dict[str, Source]
    """Test sets by name."""
    documents: Documents | None = None
    """For summarisation: pairs are documents and their summaries. `max_words`, `max_ratio` and `held_out_min_words` do not apply."""
    max_words: Positive = 200
    """Longer sides are removed."""
    max_ratio: Annotated[float, Limits(ge=1)] = 3.0
    """Pairs whose sides' lengths in words differ by more than this factor (and by more than 5 words) are removed."""
    lowercase: bool = False
    """Lower all text, as the IWSLT14 of many papers is."""
    deduplicate: bool = True
    """Remove exact duplicate pairs, keeping first occurrences in order."""
    held_out_min_words: Natural = 5
    """A held-out sentence has at least so many words on each side."""
    seed: Seed = 1
    """Chooses the held-out documents; the same for every run of an experiment."""


class Pair(NamedTuple):
    """One pair of sentences and where it stood."""

    document: str
    a: str
    b: str
    line: int


# ---------------------------------------------------------------------------------------------
# steps


def held_out(output_a: Path, output_b: Path, *, name: str, settings: Corpus) -> None:
    """Write the dev or test set `name` (``dev``, or a key of ``test``)."""
    source = settings.dev if name == "dev" else settings.test[name]
    pairs = found = held_out_pairs(name, settings)
    if name == "dev":
        # dev chooses the checkpoint: it must not know the test sentences
        tests = [pair for test in settings.test for pair in held_out_pairs(test, settings)]
        leaks_a, leaks_b = {leak_key(pair.a) for pair in tests} - {""}, {leak_key(pair.b) for pair in tests} - {""}
        pairs = [pair for pair in pairs if leak_key(pair.a) not in leaks_a and leak_key(pair.b) not in leaks_b]
    if found and not pairs:
        raise InputError(f"{_describe(source)}: all sentences of {name!r} stand in the test sets, too; give other ones")
    if not pairs:
        raise InputError(f"{_describe(source)}: no sentence left for {name!r}; is the file empty or held_out too small?")
    check_languages(pairs, settings.languages, _describe(source if source.held_out is None else settings.train))
    if settings.documents:
        # a summary that is a reference stays whole
        sides = settings.languages if name == "dev" else (settings.documents.language,)
        pairs = cut_pairs(pairs, settings, sides)
    write_pairs(output_a, output_b, ((p.a, p.b) for p in pairs))


def held_out_pairs(name: str, settings: Corpus) -> list[Pair]:
    """The pairs of the dev or test set `name`: a file's, or the running sentences of its documents, each once."""
    source = settings.dev if name == "dev" else settings.test[name]
    if source.held_out is None:
        return [p for p in pairs_of(source, settings) if p.a.strip() and p.b.strip()]
    documents = assign_documents(settings)
    seen: set[tuple[str, str]] = set()
    pairs = []
    for pair in pairs_of(settings.train, settings):
        if documents.get(pair.document) == name and _is_running(pair, settings):
            key = (leak_key(pair.a), leak_key(pair.b))
            if key not in seen:
                seen.add(key)
                pairs.append(pair)
    return pairs


def train(
    held_out_a: tuple[Path, ...],
    held_out_b: tuple[Path, ...],
    output_a: Path,
    output_b: Path,
    report: Path,
    *,
    others_a: tuple[Path, ...] = (),
    others_b: tuple[Path, ...] = (),
    settings: Corpus,
) -> None:
    """Write the training text and ``corpus.json``.

    `held_out_a`, `held_out_b` are the dev and test sets on either side, whose pairs must not leak; `others_a`, `others_b`
    are sides of other corpora's test sets, which models of this one translate without training (zero-shot).
    """
    languages = settings.languages
    # the empty key (a line of punctuation) equals nothing
    leaks_a = {leak_key(line) for path in (*held_out_a, *others_a) for line in read_lines(path)} - {""}
    leaks_b = {leak_key(line) for path in (*held_out_b, *others_b) for line in read_lines(path)} - {""}
    documents = assign_documents(settings)
    removed: Counter[str] = Counter()
    cut: Counter[str] = Counter()
    words: Counter[str] = Counter()
    seen: set[bytes] = set()
    read = 0
    sample: list[Pair] = []

    def kept() -> Iterator[tuple[str, str]]:
        nonlocal read
        for pair, lengths, keys, shortened in measured_pairs(settings):
            read += 1
            reason = _reason_to_remove(pair, lengths, keys, settings, documents, leaks_a, leaks_b)
            if reason is None and settings.deduplicate:
                digest = hashlib.blake2b(f"{pair.a}\t{pair.b}".encode(), digest_size=12).digest()
                reason = "duplicate" if digest in seen else None
                seen.add(digest)
            if reason:
                removed[reason] += 1
                continue
            if len(sample) < 2000 or pair.line % 97 == 0:
                sample.append(pair)
            cut.update(code for code, shorter in zip(languages, shortened, strict=True) if shorter)
            words.update(dict(zip(languages, lengths, strict=True)))
            yield pair.a, pair.b
        # an error here, before the last line is written, leaves no files behind
        if not sample:
            raise InputError(
                f"{_describe(settings.train)}: no training pair left of {read} ({dict(removed)}); "
                "is the file empty, do its lines end in \\n, are the filters too strict?"
            )
        check_languages(sample, languages, _describe(settings.train))

    sizes = write_pairs(output_a, output_b, kept())
    write_json(
        report,
        {
            "languages": languages,
            "source": asdict(settings.train),
            "checksums": checksums(path for source in (settings.train, settings.dev, *settings.test.values()) for path in source.paths()),
            "read": read,
            "kept": sizes,
            "removed": {reason: removed[reason] for reason in (DOCUMENT_REASONS if settings.documents else REASONS)},
            **(
                {"documents": {code: {"cut": cut[code], "mean_words": words[code] / sizes} for code in languages}}
                if settings.documents
                else {}
            ),
            "held_out": {Path(path).with_suffix("").name: sum(1 for _ in read_lines(path)) for path in held_out_a},
            "settings": {k: v for k, v in asdict(settings).items() if k not in ("train", "dev", "test")},
        },
    )


REASONS = ("held-out document", "empty side", "identical sides", "too long", "length ratio", "equals dev or test", "duplicate")
DOCUMENT_REASONS = ("held-out document", "empty side", "identical sides", "too short", "equals dev or test", "duplicate")


def measured_pairs(settings: Corpus) -> Iterator[tuple[Pair, tuple[int, int], tuple[str, str], tuple[bool, bool]]]:
    """The training source's pairs, with both sides' lengths in words, both `leak_key`s, and which sides were cut."""
    for whole in chunks(pairs_of(settings.train, settings)):
        chunk = cut_pairs(whole, settings, settings.languages) if settings.documents else whole
        sides = [pair.a for pair in chunk], [pair.b for pair in chunk]
        lengths = (np.diff(words_of(side, code).before).tolist() for side, code in zip(sides, settings.languages, strict=True))
        shortened = ((old.a != new.a, old.b != new.b) for old, new in zip(whole, chunk, strict=True))
        yield from zip(chunk, zip(*lengths, strict=True), zip(*map(leak_keys, sides), strict=True), shortened, strict=True)


def _reason_to_remove(
    pair: Pair,
    lengths: tuple[int, int],
    keys: tuple[str, str],
    settings: Corpus,
    documents: dict[str, str],
    leaks_a: set[str],
    leaks_b: set[str],
) -> str | None:
    if pair.document in documents:
        return "held-out document"
    if not pair.a or not pair.b:
        return "empty side"
    if pair.a == pair.b:
        return "identical sides"
    short, long = sorted(lengths)
    if settings.documents:
        if lengths[settings.languages.index(settings.documents.language)] < settings.documents.min_words:
            return "too short"
    elif long > settings.max_words:
        return "too long"
    elif long - short > 5 and long > settings.max_ratio * short:
        return "length ratio"
    if keys[0] in leaks_a or keys[1] in leaks_b:
        return "equals dev or test"
    return None


class _KeyCharacters(dict):
    """Character → what stands for it in a key, found out when it is first met."""

    def __missing__(self, code: int) -> str:
        kind = unicodedata.category(chr(code))[0]
        self[code] = "0" if kind == "N" else chr(code) if kind in "LM" else " "
        return self[code]


_KEY_CHARACTERS = _KeyCharacters({ord("\n"): "\n"})


def leak_key(line: str) -> str:
    """What makes two sentences the same: lower case, every digit 0, no punctuation, single spaces."""
    return leak_keys([line])[0]


def leak_keys(lines: list[str]) -> list[str]:
    """The keys of many lines at once."""
    return [" ".join(line.split()) for line in "\n".join(lines).lower().translate(_KEY_CHARACTERS).split("\n")]


def cut_pairs(pairs: list[Pair], settings: Corpus, languages: Sequence[str]) -> list[Pair]:
    """`pairs` with the sides in some of the languages cut to what `documents.cut` allows."""
    sides = [[pair.a for pair in pairs], [pair.b for pair in pairs]]
    for place, code in enumerate(settings.languages):
        if code in languages and (longest := settings.documents.cut.get(code)):
            sides[place] = cut_lines(sides[place], code, longest)
    return [Pair(pair.document, a, b, pair.line) for pair, a, b in zip(pairs, *sides, strict=True)]


def cut_lines(lines: list[str], code: str, longest: Cut) -> list[str]:
    """Lines that end before the first word, or character, too many; punctuation after the last one stays, a break does not."""
    kept = list(lines)
    if longest.words:
        found = words_of(lines, code)
        offset = 0
        for number, line in enumerate(lines):
            first, end = found.before[number], found.before[number + 1]
            if end - first > longest.words:
                kept[number] = line[: found.starts[first + longest.words] - offset]
            offset += len(line) + 1
    if longest.characters:
        for number, line in enumerate(kept):
            characters = (match for match in _CHARACTER.finditer(line) if match[0] != BREAK)
            if too_many := next(itertools.islice(characters, longest.characters, None), None):
                kept[number] = line[: too_many.start()]
    return [line if line == whole else line.rstrip().removesuffix(BREAK).rstrip() for line, whole in zip(kept, lines, strict=True)]


_CHARACTER = regex.compile(rf"{BREAK}|\S")


def assign_documents(settings: Corpus) -> dict[str, str]:
    """Document → held-out set it belongs to, for the sets that are carved from the training source.

    Documents come in an order that depends on the seed and their names alone, so that a longer
    source does not reshuffle them; each set takes documents until it has enough sentences.
    """
    wanted = {name: s.held_out for name, s in {"dev": settings.dev, **settings.test}.items() if s.held_out is not None}
    if not wanted:
        return {}
    running: Counter[str] = Counter()
    keys: set[str] = set()
    for pair in read_pairs(settings.train, settings.languages, settings.documents):
        running[pair.document] += 0
        if _is_running(pair, settings) and (key := leak_key(pair.a)) not in keys:
            keys.add(key)
            running[pair.document] += 1
    if sum(wanted.values()) > 0.5 * sum(running.values()):
        raise InputError(
            f"{_describe(settings.train)}: held_out asks for {sum(wanted.values())} running sentences of {sum(running.values())}; "
            "give dev and test files of their own, or ask for fewer"
        )
    order = sorted(running, key=lambda d: hashlib.blake2b(f"{settings.seed}\t{d}".encode()).digest())
    assigned: dict[str, str] = {}
    documents = iter(order)
    giants: list[str] = []
    for name, target in wanted.items():
        count = 0
        while count < target:
            document = next(documents, None)
            if document is None:
                document = min(giants, key=lambda giant: running[giant], default=None)
                if document is None or 2 * (running[document] + sum(running[d] for d in assigned)) > running.total():
                    raise InputError(
                        f"{_describe(settings.train)}: too few documents to hold out {target} running sentences for {name!r} "
                        "and keep at least half; ask for fewer, or give a file"
                    )
                giants.remove(document)
            # one giant document must not be a whole test set, unless nothing else is left
            elif running[document] > max(20, target // 10):
                giants.append(document)
                continue
            assigned[document] = name
            count += running[document]
    return assigned


_SENTENCE_END = regex.compile(r"[.!?:;…。！？：；।؟։၊។][\"'»”’)）」』]*$")
_MENU_PATH = regex.compile(r"\s[-–—▸>→]\s.*\s[-–—▸>→]\s")


def _is_running(pair: Pair, settings: Corpus) -> bool:
    """A sentence rather than a heading, a menu path or a table cell; or a document with its summary."""
    if settings.documents:
        document = pair.a if settings.documents.language == settings.languages[0] else pair.b
        return pair.a != "" != pair.b and number_of_words(document, settings.documents.language) >= settings.documents.min_words
    for line, code in zip((pair.a, pair.b), settings.languages, strict=True):
        if code != "th" and not _SENTENCE_END.search(line):
            return False
        if _MENU_PATH.search(line) or number_of_words(line, code) < settings.held_out_min_words:
            return False
    return pair.a != pair.b


# ---------------------------------------------------------------------------------------------
# reading

# Lines that no document column groups are held out in blocks of this many neighbours.
_BLOCK = 40


def pairs_of(source: Source, settings: Corpus) -> Iterator[Pair]:
    """The pairs of `source`, in lower case if the corpus is to be."""
    pairs = read_pairs(source, settings.languages, settings.documents)
    if not settings.lowercase:
        return pairs
    a, b = settings.languages
    return (pair._replace(a=fold(pair.a, a), b=fold(pair.b, b)) for pair in pairs)


Clean = Callable[[Any], str]
"""Makes a line of what a file has for one side: a text, or a list of sentences."""


def read_pairs(source: Source, languages: tuple[str, str], documents: Documents | None = None) -> Iterator[Pair]:
    """The pairs of `source` in order, sides stripped of surrounding blanks, streamed.

    With `documents`, the sentences of a document are joined by `</s>`, those of a summary by blanks: a decoder would stop at `</s>`.
    Raises `InputError` naming file and line for missing columns, files of different length, documents or summaries
    without text, or anything that `text.read_lines` refuses.
    """
    clean: tuple[Clean, Clean] = (clean_text, clean_text)
    if documents:
        clean = tuple(functools.partial(_document, split=documents.split) if code == documents.language else _summary for code in languages)
    if source.format == "ncls":
        pairs = _read_tagged(source, languages, clean)
    elif source.files:
        pairs = _read_moses(source, languages, clean)
    elif source.file and source.summary:
        pairs = _read_grouped(source, languages, clean, documents)
    elif source.file:
        is_json = ".jsonl" in Path(source.file).name or ".ndjson" in Path(source.file).name
        pairs = (_read_jsonl if is_json else _read_tsv)(source, languages, clean)
    else:
        raise InputError("a corpus source needs `file` with `columns`, `files`, `data`, or (dev, test) `held_out`")
    yield from _without_empty(pairs, source, languages, documents) if documents and not source.summary else pairs


def _without_empty(pairs: Iterator[Pair], source: Source, languages: tuple[str, str], documents: Documents) -> Iterator[Pair]:
    """`pairs`, each of which must have text on both sides, or else is left to be removed."""
    for pair in pairs:
        if documents.empty == "refuse" and not (pair.a and pair.b):
            code = languages[bool(pair.a)]
            what = "document has no sentence" if code == documents.language else "summary is empty"
            path = source.file or source.files[code]
            raise InputError(f"{path}, line {pair.line}: the {what}; mend the file, or set documents.empty: remove")
        yield pair


_INVISIBLE = "\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\ufeff "


def clean_text(text: str) -> str:
    """Single blanks, no NUL; nothing where there is nothing to see."""
    text = " ".join(text.replace("\0", "").split())
    return text if text.strip(_INVISIBLE) else ""


def _document(text: str | list[str], split: bool) -> str:
    """The sentences of a document, joined by breaks; breaks that the text has already are taken as such."""
    parts = [part for line in _listed(text) for part in line.split(BREAK)]
    if split and isinstance(text, str):
        parts = [sentence for part in parts for sentence in sentences(clean_text(part))]
    return f" {BREAK} ".join(filter(None, map(clean_text, parts)))


def _summary(text: str | list[str]) -> str:
    """A summary in one piece."""
    return clean_text(" ".join(_listed(text)).replace(BREAK, " "))


def _listed(text: str | list[str]) -> list[str]:
    if not isinstance(text, str | list):
        raise TypeError(f"{type(text).__name__} where a text or a list of sentences was expected")
    return text if isinstance(text, list) else [text]


def _read_moses(source: Source, languages: tuple[str, str], clean: tuple[Clean, Clean]) -> Iterator[Pair]:
    path_a, path_b = (source.files.get(code) for code in languages)
    if path_a is None or path_b is None:
        raise InputError(f"files: {source.files} must name one file for each of {list(languages)}")
    sides = read_lines(Path(path_a)), read_lines(Path(path_b))
    number = 0
    while True:
        a, b = (next(side, None) for side in sides)
        if a is None and b is None:
            return
        number += 1
        if a is None or b is None:
            short, long = (path_a, path_b) if a is None else (path_b, path_a)
            raise InputError(
                f"{short} ends after line {number - 1}, {long} goes on at line {number}: the two sides are not aligned; "
                "both files need the same number of lines"
            )
        yield Pair(f"block {(number - 1) // _BLOCK}", clean[0](a), clean[1](b), number)


def _read_tsv(source: Source, languages: tuple[str, str], clean: tuple[Clean, Clean]) -> Iterator[Pair]:
    for number, row in _rows(source, languages):
        a, b = (make(row[code]) for make, code in zip(clean, languages, strict=True))
        yield Pair(row.get("document", f"block {(number - 1) // _BLOCK}"), a, b, number)


def _read_grouped(source: Source, languages: tuple[str, str], clean: tuple[Clean, Clean], documents: Documents) -> Iterator[Pair]:
    """A pair for the first line of a document, or for each heading: its text is the summary, the lines after it are the document."""
    place = languages.index(documents.language)
    for start, group in _groups(source, languages):
        sides = [group[0][languages[1 - place]]]
        sides.insert(place, BREAK.join(row[documents.language] for row in group[1:]))
        yield Pair(group[0]["document"], *(make(side) for make, side in zip(clean, sides, strict=True)), start)


def _groups(source: Source, languages: tuple[str, str]) -> Iterator[tuple[int, list[dict[str, str]]]]:
    """The lines that belong together, with the number of the first; those of a page before its first heading belong to none."""
    start, group = 0, []
    for number, row in _rows(source, languages):
        another = not group or row["document"] != group[0]["document"]
        begins = row["heading"].startswith("h") if source.summary == "heading" else another
        if group and (another or begins):
            yield start, group
            group = []
        if begins:
            start = number
        if begins or group:
            group.append(row)
    if group:
        yield start, group


def _rows(source: Source, languages: tuple[str, str]) -> Iterator[tuple[int, dict[str, str]]]:
    """The lines of a TSV file with their numbers, as name of a column → cell."""
    columns = _columns(source, languages)
    if not all(isinstance(c, int) and c >= 1 for c in columns.values()):
        raise InputError(f"{source.file}: columns of a TSV file are numbers from 1, got {source.columns}")
    last = max(columns.values())
    for number, line in enumerate(read_lines(Path(source.file)), 1):
        cells = line.split("\t")
        if len(cells) < last:
            raise InputError(f"{source.file}, line {number}: {len(cells)} column(s), but `columns` asks for column {last}: {line[:80]!r}")
        yield number, {name: cells[column - 1] for name, column in columns.items()}


def _read_jsonl(source: Source, languages: tuple[str, str], clean: tuple[Clean, Clean]) -> Iterator[Pair]:
    columns = _columns(source, languages)
    for number, line in enumerate(read_lines(Path(source.file)), 1):
        try:
            row = json.loads(line)
            a, b = (make(dig(row, columns[code])) for make, code in zip(clean, languages, strict=True))
            document = str(dig(row, columns["document"])) if "document" in columns else f"block {(number - 1) // _BLOCK}"
            if "\\u" in line:
                f"{a}{b}{document}".encode()  # half of a surrogate pair is no character
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise InputError(f"{source.file}, line {number}: not a JSON object with {columns} ({error}): {line[:80]!r}") from None
        yield Pair(document, a, b, number)


def _read_tagged(source: Source, languages: tuple[str, str], clean: tuple[Clean, Clean]) -> Iterator[Pair]:
    """The documents of the NCLS corpora (Zhu et al. 2019), in one file or joined by their ids from two.

    A document is ``<doc id=…>`` to ``</doc>``, each on a line of its own; in it stand texts between lines like ``<Article>`` and
    ``</Article>``. What a column names is the texts of all tags of this name, with a number or without (``ZH-REF1``,
    ``ZH-REF2``, … are the sentences of one summary); one that ends in ``-human-corrected``, as in the test sets, takes the place
    of its like. Where the articles are in a file of another corpus, as LCSTS's short texts, ids join the two.
    """
    columns = _columns(source, languages)
    path_a, path_b = (Path(source.files.get(code) or source.file or "") for code in languages)
    tag_a, tag_b = (str(columns[code]) for code in languages)
    joined = None if path_a == path_b else {name: _tagged(path_b, line, tags, tag_b) for name, line, tags in _tagged_documents(path_b)}
    for name, line, tags in _tagged_documents(path_a):
        if joined is None or name in joined:
            b = _tagged(path_a, line, tags, tag_b) if joined is None else joined[name]
            yield Pair(name, clean[0](_tagged(path_a, line, tags, tag_a)), clean[1](b), line)


_TAG = regex.compile(r"<(/?)([\w-]+)([^<>]*)>")


def _tagged_documents(path: Path) -> Iterator[tuple[str, int, dict[str, str]]]:
    """Each document's id, its line, and its texts by tag; raises `InputError` for a line that is out of place."""
    name, start, tag, texts = None, 0, "", {}
    number = 0
    for number, line in enumerate(read_lines(path), 1):
        line = line.strip()
        found = _TAG.fullmatch(line)
        closing, what = (bool(found[1]), found[2]) if found else (False, "")
        if tag:
            if closing and what == tag:
                tag = ""
            else:
                texts[tag] = f"{texts[tag]} {line}".strip()
        elif name is None and what == "doc" and not closing:
            name, start, texts = found[3].partition("=")[2].strip(" \"'"), number, {}
        elif name is not None and closing and what == "doc":
            yield name, start, texts
            name = None
        elif name is not None and found and not closing:
            tag, texts[what] = what, ""
        elif line:
            expected = "<doc id=…>" if name is None else "a tag or </doc>"
            raise InputError(f"{path}, line {number}: expected {expected}, got {line[:60]!r}")
    if name is not None:
        raise InputError(f"{path}, line {start}: the document {name} has no end (</{tag or 'doc'}>)")


def _tagged(path: Path, line: int, texts: dict[str, str], name: str) -> str | list[str]:
    """The text of a tag, or those of its numbered or corrected likes; raises `InputError` where there is none."""
    likes = regex.compile(rf"{regex.escape(name)}(\d*)(-human-corrected)?", regex.IGNORECASE)
    matches = sorted((match[2] or "", match[1], text) for tag, text in texts.items() if (match := likes.fullmatch(tag)))
    # in the order of the numbers, the corrected last
    found = list({number: text for _, number, text in matches}.values())
    if not found:
        raise InputError(f"{path}, line {line}: the document has no <{name}>; it has {', '.join(texts) or 'no tags'}")
    return found[0] if len(found) == 1 else found


def dig(row: dict, key: str) -> str:
    """The value of a JSON object under a key with dots."""
    for part in str(key).split("."):
        row = row[part]
    return row


def _columns(source: Source, languages: tuple[str, str]) -> dict[str, int | str]:
    if missing := [code for code in languages if code not in source.columns]:
        raise InputError(f"{source.file}: `columns` does not say where {' and '.join(missing)} stand(s); it has {source.columns}")
    return source.columns


def _describe(source: Source) -> str:
    return " + ".join(source.paths()) or "held-out text"


# ---------------------------------------------------------------------------------------------
# swapped sides


def check_languages(pairs: list[Pair], languages: tuple[str, str], where: str) -> None:
    """Refuse text whose sides are swapped.

    Scripts tell where the two languages have different ones; otherwise langid.py (py3langid),
    restricted to the two languages, votes over chunks of 20 lines.
    """
    a, b = (language(code) for code in languages)
    sides = [[p.a for p in pairs], [p.b for p in pairs]]
    if a.script != b.script:
        for mine, other, lines in ((a, b, sides[0]), (b, a, sides[1])):
            own, foreign = (sum(_script_count(line, row.script) for line in lines) for row in (mine, other))
            if foreign > 2 * own and foreign > 20:
                line = next(p.line for p, text in zip(pairs, lines, strict=True) if _script_count(text, other.script))
                raise InputError(
                    f"{where}, line {line}: the {mine.name} side is written in {other.script} script; "
                    f"the sides look swapped, exchange the columns or files of {mine.code} and {other.code}"
                )
        return
    if (identifier := _identifier(a.code, b.code)) is None:
        return
    swapped = votes = 0
    for start in range(0, len(pairs), 20):
        texts = [" ".join(lines[start : start + 20]) for lines in sides]
        if min(map(len, texts)) < 100:
            continue
        votes += 1
        swapped += identifier.classify(texts[0])[0] == b.code and identifier.classify(texts[1])[0] == a.code
    if votes and swapped > votes / 2:
        raise InputError(
            f"{where}, line {pairs[0].line}: the {a.name} side reads as {b.name} and the {b.name} side as {a.name} "
            f"({swapped} of {votes} chunks); exchange the columns or files of {a.code} and {b.code}"
        )


@functools.cache
def _identifier(*codes: str):
    """langid.py, restricted to some languages; None where it does not know one of them."""
    try:
        from py3langid.langid import MODEL_FILE, LanguageIdentifier

        identifier = LanguageIdentifier.from_model_file(MODEL_FILE)
        identifier.set_languages(list(codes))
    except (ImportError, ValueError):
        return None
    return identifier


_SCRIPTS = {"Japanese": r"[\p{Hiragana}\p{Katakana}\p{Han}]"}


def _script_count(line: str, script: str) -> int:
    return len(regex.findall(_SCRIPTS.get(script, rf"\p{{{script}}}"), line))


if __name__ == "__main__":
    run({"held-out": held_out, "train": train})
