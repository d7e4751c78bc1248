"""corpus: turns raw parallel text into clean training, dev and test text.

Two commands, in this order:

``held-out``
    makes one dev or test set, either from a file of its own, or from whole documents that are taken out of the
    training source. (Single sentences would leak, because neighbouring sentences are so similar.) Only
    running sentences of these documents are kept.
``train``
    makes the training text from everything else: cleaned, deduplicated (Zan et al., section IV-B), and without
    any pair that equals a dev or test pair on either side.

Every pair of the training source is either kept, or counted under exactly one reason in ``corpus.json``. For dev and test
sets from files of their own it counts the pairs that are left out: those without text on both sides, and in dev those that a test set has.

For summarisation, a pair consists of a document, its sentences joined by ``</s>``, and its summary. Sides that
are too long are then cut instead of removed; the summaries of test sets are never cut.
"""

import hashlib
import itertools
import unicodedata
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import regex

from workflow_scripts.number_types import Limits, Natural, Positive, Seed
from workflow_scripts.stage import InputError, checksums, run, write_json
from workflow_scripts.text.files import chunks, read_lines, write_pairs
from workflow_scripts.text.identification import check_languages
from workflow_scripts.text.languages import language
from workflow_scripts.text.parallel import Cut, Documents, Pair, Source, read_pairs
from workflow_scripts.text.words import BREAK, CLOSING_MARKS, SOFT_HYPHEN, fold, lengths, sentences, words_of


@dataclass
class Corpus:
    """A parallel corpus: its files, and which pairs are kept."""

    languages: tuple[str, str]
    """Both languages. Their order is that in the folder's name, such as `help.de-en`."""
    train: Source
    """Training text."""
    dev: Source
    """Text for choosing checkpoints and settings."""
    test: dict[str, Source]
    """Test sets by name."""
    documents: Documents | None = None
    """For summarisation: pairs are documents and summaries. `max_words`, `max_ratio` and `held_out_min_words` then have no effect."""
    max_words: Positive = 200
    """Maximum number of words per side. Pairs with a longer side are removed."""
    max_ratio: Annotated[float, Limits(ge=1)] = 3.0
    """Maximum ratio of the word counts of both sides. Longer sides are removed only if they have more than 5 words more."""
    lowercase: bool = False
    """Whether all text is lower-cased, as many papers do with IWSLT14."""
    deduplicate: bool = True
    """Whether repeated pairs are removed. The first occurrence stays."""
    held_out_min_words: Natural = 5
    """Minimum number of words on each side of a held-out sentence."""
    seed: Seed = 1
    """Seed that chooses the held-out documents. All runs of an experiment use the same."""

    def at_hand(self) -> "Corpus":
        """This with the embedded files where they really are."""
        tests = {name: source.at_hand() for name, source in self.test.items()}
        return replace(self, train=self.train.at_hand(), dev=self.dev.at_hand(), test=tests)


# ---------------------------------------------------------------------------------------------
# steps


def held_out(output_a: Path, output_b: Path, *, name: str, settings: Corpus) -> None:
    """Write the dev or test set `name` (``dev``, or a key of ``test``), one side to each output.

    Raises:
        InputError: The set is empty, all of the dev set is in the test sets, the sides look swapped, or a file cannot be read.
    """
    source = settings.dev if name == "dev" else settings.test[name]
    sets = held_out_pairs([name, *(settings.test if name == "dev" else ())], settings)
    pairs = read = sets.pop(name)
    if name == "dev":
        # checkpoints are chosen on dev, so it must not contain test sentences
        tests = [pair for test in sets.values() for pair in test]
        leaks_a, leaks_b = forbidden_keys(pair.a for pair in tests), forbidden_keys(pair.b for pair in tests)
        pairs = [pair for pair in pairs if leak_key(pair.a) not in leaks_a and leak_key(pair.b) not in leaks_b]
    if read and not pairs:
        raise InputError(f"{_describe(source)}: all sentences of {name!r} are in the test sets, too; use another dev set")
    if not pairs:
        raise InputError(f"{_describe(source)}: no sentence left for {name!r}; is the file empty or held_out too small?")
    check_languages(pairs, settings.languages, _describe(source if source.held_out is None else settings.train))
    if settings.documents:
        # the summaries of test sets are references and stay whole
        sides = settings.languages if name == "dev" else (settings.documents.language,)
        pairs = cut_pairs(pairs, settings, sides)
    write_pairs(output_a, output_b, ((p.a, p.b) for p in pairs))


def held_out_pairs(names: Sequence[str], settings: Corpus) -> dict[str, list[Pair]]:
    """The pairs of each of the dev and test sets `names`: those of its file, or the running sentences of its documents, each once."""
    sources = {name: settings.dev if name == "dev" else settings.test[name] for name in names}
    of_files = {
        name: [pair for pair in pairs_of(source, settings) if pair.a.strip() and pair.b.strip()]
        for name, source in sources.items()
        if source.held_out is None
    }
    # the training source can be large, and is read once for all sets
    held: dict[str, dict[tuple[str, str], Pair]] = {name: {} for name in names if name not in of_files}
    documents = assign_documents(settings) if held else {}
    of_sets = (pair for pair in pairs_of(settings.train, settings) if documents.get(pair.document) in held) if held else ()
    for chunk in chunks(of_sets):
        for pair in itertools.compress(chunk, are_running(chunk, settings)):
            held[documents[pair.document]].setdefault((leak_key(pair.a), leak_key(pair.b)), pair)
    return of_files | {name: [*pairs.values()] for name, pairs in held.items()}


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

    Args:
        held_out_a: The first language's side of the dev and test sets. No training pair may equal one of their lines.
        held_out_b: The second language's side, in the same order.
        output_a: The first side of the training text.
        output_b: The second side.
        report: ``corpus.json``.
        others_a: First sides of other corpora's test sets that this corpus's models translate without training on them (zero-shot);
            they are kept out of the training text as well.
        others_b: Second sides of such test sets. Both may have other text as well that must not be in the training text.
        settings: What to read and what to keep.

    Raises:
        InputError: No pair is left, the sides look swapped, or a file cannot be read. Nothing is written then.
    """
    leaks_a = forbidden_keys(line for path in (*held_out_a, *others_a) for line in read_lines(path))
    leaks_b = forbidden_keys(line for path in (*held_out_b, *others_b) for line in read_lines(path))
    tally = Tally()
    kept = write_pairs(output_a, output_b, kept_pairs(settings, leaks_a, leaks_b, tally))
    held = {Path(path).with_suffix("").name: sum(1 for _ in read_lines(path)) for path in held_out_a}
    write_json(report, described(settings, tally, kept, held))


@dataclass
class Tally:
    """What was counted while the training pairs were read."""

    read: int = 0
    """Pairs of the source."""
    removed: Counter[str] = field(default_factory=Counter)
    """Reason → pairs."""
    cut: Counter[str] = field(default_factory=Counter)
    """Language → documents that were cut."""
    words: Counter[str] = field(default_factory=Counter)
    """Language → words of the pairs that are kept."""
    passed: Counter[str] = field(default_factory=Counter)
    """Content that is not read, such as other variants of a language → how often the file has it."""
    sample: list[Pair] = field(default_factory=list)
    """Some of the pairs that are kept, to see what languages they are in."""


def kept_pairs(settings: Corpus, leaks_a: set[str], leaks_b: set[str], tally: Tally) -> Iterator[tuple[str, str]]:
    """The training pairs, without those of held-out documents, those that equal a line of `leaks_a` or `leaks_b`, and what is filtered out.

    Raises `InputError` after the last pair where none was kept or the sides look swapped, so that no files are left behind.
    """
    documents, languages = assign_documents(settings), settings.languages
    seen: set[bytes] = set()
    for measured in measured_pairs(settings, tally.passed):
        pair = measured.pair
        tally.read += 1
        reason = _reason_to_remove(measured, settings, documents, leaks_a, leaks_b)
        if reason is None and settings.deduplicate:
            digest = _digest(f"{pair.a}\t{pair.b}")
            reason = "duplicate" if digest in seen else None
            seen.add(digest)
        if reason:
            tally.removed[reason] += 1
            continue
        if len(tally.sample) < 2000 or pair.line % 97 == 0:
            tally.sample.append(pair)
        tally.cut.update(code for code, shorter in zip(languages, measured.shortened, strict=True) if shorter)
        tally.words.update(dict(zip(languages, measured.lengths, strict=True)))
        yield pair.a, pair.b
    if not tally.sample:
        mostly_held_out = tally.removed["equals dev or test"] > tally.read / 2
        raise InputError(
            f"{_describe(settings.train)}: no training pair left of {tally.read} ({dict(tally.removed)}); "
            + (
                "most are in the dev or test sets as well, so name other text for one of them"
                if mostly_held_out
                else "is the file empty, do its lines end in \\n, are the filters too strict?"
            )
        )
    check_languages(tally.sample, languages, _describe(settings.train))


def described(settings: Corpus, tally: Tally, kept: int, held: dict[str, int]) -> dict[str, Any]:
    """The content of ``corpus.json``: counts of the training text, and of the dev and test sets, whose numbers of pairs are in `held`."""
    sets = {"dev": settings.dev, **settings.test}
    of_files = {name: source for name in held if (source := sets.get(name)) and source.held_out is None}
    passed = {"train": tally.passed, **{name: Counter() for name in of_files}}
    left_out = {name: sum(1 for _ in pairs_of(source, settings, passed[name])) - held[name] for name, source in of_files.items()}
    documents = {code: {"cut": tally.cut[code], "mean_words": tally.words[code] / kept} for code in settings.languages}
    return {
        "languages": settings.languages,
        "source": asdict(settings.train),
        "checksums": checksums(path for source in (settings.train, settings.dev, *settings.test.values()) for path in source.paths()),
        "read": tally.read,
        "kept": kept,
        "removed": {reason: tally.removed[reason] for reason in (DOCUMENT_REASONS if settings.documents else REASONS)},
        **({"documents": documents} if settings.documents else {}),
        "held_out": held,
        "left_out": left_out,
        **({"passed_over": found} if (found := {name: dict(counts) for name, counts in passed.items() if counts}) else {}),
        "settings": {k: v for k, v in asdict(settings).items() if k not in ("train", "dev", "test")},
    }


REASONS = ("held-out document", "empty side", "identical sides", "too long", "length ratio", "equals dev or test", "duplicate")
DOCUMENT_REASONS = ("held-out document", "empty side", "identical sides", "too short", "equals dev or test", "duplicate")


class Measured(NamedTuple):
    """A pair of the training source, and what decides whether it is kept."""

    pair: Pair
    lengths: tuple[int, int]
    """About how many words each side has (`words.lengths`)."""
    keys: tuple[set[str], set[str]]
    """The `leak_key` of each side. A side that may be cut has a second one, of all of it: summaries of test sets are whole."""
    shortened: tuple[bool, bool]
    """Whether each side was cut."""


def measured_pairs(settings: Corpus, passed: Counter[str]) -> Iterator[Measured]:
    """The pairs of the training source, of documents and summaries cut; counts in `passed` as `read_pairs` does."""
    for whole in chunks(pairs_of(settings.train, settings, passed)):
        chunk = cut_pairs(whole, settings, settings.languages) if settings.documents else whole
        sides = [pair.a for pair in chunk], [pair.b for pair in chunk]
        words_a, words_b = (lengths(side, code) for side, code in zip(sides, settings.languages, strict=True))
        for at, (before, pair) in enumerate(zip(whole, chunk, strict=True)):
            shortened = before.a != pair.a, before.b != pair.b
            keys = {leak_key(pair.a)}, {leak_key(pair.b)}
            for key, cut, side in zip(keys, shortened, (before.a, before.b), strict=True):
                if cut:
                    key.add(leak_key(side))
            yield Measured(pair, (words_a[at], words_b[at]), keys, shortened)


def _reason_to_remove(measured: Measured, settings: Corpus, documents: dict[str, str], leaks_a: set[str], leaks_b: set[str]) -> str | None:
    pair, lengths, keys, _ = measured
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
    if not (leaks_a.isdisjoint(keys[0]) and leaks_b.isdisjoint(keys[1])):
        return "equals dev or test"
    return None


def _digest(text: str) -> bytes:
    """A short stand-in for a sentence, where all sentences of a large corpus have to be remembered."""
    return hashlib.blake2b(text.encode(), digest_size=12).digest()


class _KeyCharacters(dict):
    """Code point → its replacement in a `leak_key`, computed when first asked for."""

    def __missing__(self, code: int) -> str:
        kind = unicodedata.category(chr(code))[0]
        self[code] = "0" if kind == "N" else chr(code) if kind in "LM" else " "
        return self[code]


_KEY_CHARACTERS = _KeyCharacters()
_ONE_SPELLING = str.maketrans(
    {
        # Turkish has two letters where others have I and i
        **{"İ": "i", "ı": "i"},
        # what nobody sees: soft hyphens, and zero-width space, joiner and word joiner. The non-joiner may stand for a blank in Persian
        **dict.fromkeys((SOFT_HYPHEN, "\u200b", "\u200d", "\u2060"), ""),
    }
)


def leak_key(line: str) -> str:
    """A form in which sentences are compared, wherever those of dev and test sets are kept out of text that is learnt from.

    It is lower case, with ı as i and every digit as 0, without punctuation, symbols and what nobody sees, with single spaces, and in NFKC,
    in which letters of another width or form are the same.
    """
    plain = line.translate(_ONE_SPELLING).translate(_KEY_CHARACTERS)
    if not plain.isascii():  # what NFKC makes of a letter may be a capital, and what is made lower case may not be composed
        plain = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", plain).lower())
    return " ".join(plain.lower().split())


LONG_ENOUGH = {True: 20, False: 8}
"""The letters, blanks included, of a sentence that is looked for inside a line, in a script with spaces and in one without. Shorter ones
come in any text, as "Click OK." does."""


def leak_keys(line: str, code: str | None) -> set[str]:
    """The `leak_key` of a line in this language; of a line of several sentences those of its longer sentences as well.

    Where the language is not known (None), shorter sentences count as longer ones, as in scripts without spaces.
    """
    parts = sentences(line)
    least = LONG_ENOUGH[code is not None and language(code).spaced]
    longer = {key for part in parts if len(key := leak_key(part)) >= least} if len(parts) > 1 else set()
    return {leak_key(line), *longer}


def forbidden_keys(lines: Iterable[str]) -> set[str]:
    """The keys of lines that must not come again. Lines of punctuation have an empty key; they do not count as equal."""
    return {leak_key(line) for line in lines} - {""}


def cut_pairs(pairs: list[Pair], settings: Corpus, languages: Sequence[str]) -> list[Pair]:
    """`pairs`, with the sides that are in one of `languages` cut to the length that `documents.cut` allows."""
    sides = [[pair.a for pair in pairs], [pair.b for pair in pairs]]
    cut = settings.documents.cut if settings.documents else {}
    for place, code in enumerate(settings.languages):
        if code in languages and (longest := cut.get(code)):
            sides[place] = cut_lines(sides[place], code, longest)
    return [Pair(pair.document, a, b, pair.line) for pair, a, b in zip(pairs, *sides, strict=True)]


def cut_lines(lines: list[str], code: str, longest: Cut) -> list[str]:
    """Cut each line before the first word or character over the limit. Punctuation after the last word stays, a final `</s>` goes."""
    kept = list(lines)
    if longest.words:
        words = words_of(lines, code)
        offset = 0
        for number, line in enumerate(lines):
            first, end = words.before[number], words.before[number + 1]
            if end - first > longest.words:
                kept[number] = line[: words.starts[first + longest.words] - offset]
            offset += len(line) + 1
    if longest.characters:
        for number, line in enumerate(kept):
            characters = (match for match in _CHARACTER.finditer(line) if match[0] != BREAK)
            if too_many := next(itertools.islice(characters, longest.characters, None), None):
                kept[number] = line[: too_many.start()]
    return [line if line == whole else line.rstrip().removesuffix(BREAK).rstrip() for line, whole in zip(kept, lines, strict=True)]


_CHARACTER = regex.compile(rf"{BREAK}|\S")


def assign_documents(settings: Corpus) -> dict[str, str]:
    """Document → the held-out set that it belongs to, for all sets that are taken from the training source.

    The documents are sorted by a hash of seed and name, so their order stays the same when the source grows. One set after the other
    takes documents until it has enough running sentences. A set takes very large documents last: those of more than 20 running sentences
    and more than a tenth of what the set asks for.

    Raises:
        InputError: The sets ask for more than half of the running sentences, or there are too few documents.
    """
    wanted = {name: s.held_out for name, s in {"dev": settings.dev, **settings.test}.items() if s.held_out is not None}
    if not wanted:
        return {}
    running = running_sentences(settings)
    if sum(wanted.values()) > (most := running.total() // 2):
        # documents are taken whole, so that each set may get more than it asks for
        surely = most - len(wanted) * max(running.values(), default=0)
        fewer = f", or ask for {surely} in all at most" if surely > 0 else ""
        raise InputError(
            f"{_describe(settings.train)}: held_out asks for {sum(wanted.values())} running sentences of {running.total()}; "
            f"give dev and test files of their own{fewer} ({what_is_held_out(settings)})"
        )
    return dealt_out(settings, running, wanted)


def running_sentences(settings: Corpus) -> Counter[str]:
    """Document → how many running sentences of the training source it has, each counted where it comes first."""
    running: Counter[str] = Counter()
    keys: set[bytes] = set()
    for chunk in chunks(read_pairs(settings.train, settings.languages, settings.documents)):
        for pair, is_running in zip(chunk, are_running(chunk, settings), strict=True):
            running[pair.document] += 0
            if is_running and (digest := _digest(leak_key(pair.a))) not in keys:
                keys.add(digest)
                running[pair.document] += 1
    return running


def in_order(documents: Iterable[str], seed: int) -> list[str]:
    """The documents in the order in which sets take them, by a hash of seed and name."""
    return sorted(documents, key=lambda document: hashlib.blake2b(f"{seed}\t{document}".encode()).digest())


def dealt_out(settings: Corpus, running: Counter[str], wanted: dict[str, int]) -> dict[str, str]:
    """Document → its set, as `assign_documents` says, for sets that want so many of the `running` sentences."""
    left = deque(in_order(running, settings.seed))
    giants: list[str] = []
    assigned: dict[str, str] = {}
    for name, target in wanted.items():
        count = 0
        while count < target:
            # one of them alone would make up most of the set
            while left and running[left[0]] > max(20, target // 10):
                giants.append(left.popleft())
            if left:
                document = left.popleft()
            else:
                giants.sort(key=lambda giant: running[giant])
                if not giants or 2 * (running[giants[0]] + sum(running[taken] for taken in assigned)) > running.total():
                    raise InputError(
                        f"{_describe(settings.train)}: too few documents to hold out {target} running sentences for {name!r} "
                        "and keep at least half; ask for fewer, or give a file"
                    )
                document = giants.pop(0)
            assigned[document] = name
            count += running[document]
    return assigned


_SENTENCE_END = regex.compile(rf"[{CLOSING_MARKS}:;。！？：；။၊។][\"'»”’«“‘‹›)）」』\p{{Cf}}]*$")
_UNMARKED = ("lo", "th")  # no mark ends their sentences
_MENU_PATH = regex.compile(r"\s[-–—▸>→]\s.*\s[-–—▸>→]\s")


def what_is_held_out(settings: Corpus) -> str:
    """Which pairs can be held out, for a message."""
    if settings.documents:
        return f"documents have at least {settings.documents.min_words} words, and summaries"
    return f"running sentences have at least {settings.held_out_min_words} words on both sides and end in a mark like a full stop"


def are_running(pairs: list[Pair], settings: Corpus) -> list[bool]:
    """Whether each pair is a sentence, not a heading, menu path or table cell. For summarisation: whether both sides have text."""
    fewest = {code: settings.held_out_min_words for code in settings.languages}
    if settings.documents:
        fewest = {settings.documents.language: settings.documents.min_words}
        running = [bool(pair.a and pair.b) for pair in pairs]
    else:
        running = [pair.a != pair.b and all(map(_is_sentence, (pair.a, pair.b), settings.languages)) for pair in pairs]
    for place, code in enumerate(settings.languages):
        # words are counted where nothing else decides, as dictionaries find them slowly
        lines = [(pair.a, pair.b)[place] for pair in itertools.compress(pairs, running)]
        if code in fewest and lines:
            enough = iter([words >= fewest[code] for words in lengths(lines, code)])
            running = [is_one and next(enough) for is_one in running]
    return running


def _is_sentence(line: str, code: str) -> bool:
    """Whether a line has the signs of a sentence; how many words it has is counted elsewhere."""
    return (code in _UNMARKED or bool(_SENTENCE_END.search(line))) and not _MENU_PATH.search(line)


def pairs_of(source: Source, settings: Corpus, passed: Counter[str] | None = None) -> Iterator[Pair]:
    """The pairs of `source`, lower-cased if the corpus is to be; counts in `passed` as `read_pairs` does."""
    pairs = read_pairs(source, settings.languages, settings.documents, passed)
    if not settings.lowercase:
        return pairs
    a, b = settings.languages
    return (pair._replace(a=fold(pair.a, a), b=fold(pair.b, b)) for pair in pairs)


def _describe(source: Source) -> str:
    return " + ".join(source.paths()) or "held-out text"


if __name__ == "__main__":
    run({"held-out": held_out, "train": train})
