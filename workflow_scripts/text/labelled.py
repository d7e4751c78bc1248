"""labelled: turns labelled texts of different file formats into tables of one format, for classification, labelling and other tasks.

A part is the training text, the dev set or a test set. Each part becomes a table with the columns label, text and second text
(empty unless examples are pairs). A second file has its unique sentences, one per line; the pretext task and vocabularies use them.
Where words have labels (``unit: word``, read by `tagged`), the label column has the tags of the sentence and the text column its words,
separated by blanks. Where documents have grades (``unit: query``, read by `graded`), the label column has the grade, the text column
the query, the third column the document, and a fourth one the query's name. Where a text has another text as its answer
(``unit: target``, read by `targets`), that stands in the label column. Which documents are held out depends on their names and the
seed only, so that files in several languages that share documents hold out the same ones.
"""

import functools
import hashlib
import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from operator import attrgetter
from pathlib import Path
from typing import Any, Literal

from workflow_scripts.number_types import Natural, Seed
from workflow_scripts.stage import InputError, checksums, run, write_json
from workflow_scripts.text.corpus import leak_key
from workflow_scripts.text.examples import Example, read_any, write_table
from workflow_scripts.text.files import chunks, kind_of, read_lines, write_lines
from workflow_scripts.text.label_names import number_range, or_left_out
from workflow_scripts.text.labelled_source import LabelledSource
from workflow_scripts.text.tagged import INNER_BLANK
from workflow_scripts.text.targets import without_marks
from workflow_scripts.text.words import fold, lengths, number_of_words
from workflow_scripts.text.words import sentences as split_sentences


@dataclass(kw_only=True)
class Labelled:
    """Labelled texts: training and dev text in one language, test sets in several."""

    language: str
    """Language of training and dev text."""
    train: LabelledSource
    """Training text."""
    dev: LabelledSource
    """Text for early stopping, in the language of the training text."""
    test: dict[str, LabelledSource]
    """Test sets by name."""
    translations: dict[str, LabelledSource] = field(default_factory=dict)
    """Training text in other languages by name, usually translations of `train`, for translate-train-all. The name is the language unless
    `language` is given."""
    more_dev: dict[str, LabelledSource] = field(default_factory=dict)
    """Dev text in other languages by name, for `select_on: all`."""
    labels: list[str] = field(default_factory=list)
    """All labels. With `unit: word` all tags, in IOB2 if they mark spans (O, B-PER, I-PER and so on). Empty with `unit: question` and
    `unit: target`. For a plugin's task that reads any number, such as 3.27 of STS (`kind=float`), leave them out: each label is then a
    number."""
    unit: Literal["text", "word", "question", "query", "target"] = "text"
    """What has a label. `text`: a text or pair of texts, for classification. `word`: each word of a sentence, for token labelling.
    `question`: a question, answered by a span of a passage. `query`: each document of a query, for ranking; `labels` are grades from 0,
    the greater the better. `target`: a text has another text as its answer, for generation."""
    target_language: str | None = None
    """With `unit: target`: language of the targets, if it differs from that of the texts."""
    lowercase: bool = False
    """With `unit: target`: whether all text is lower-cased."""
    min_words: Natural = 0
    """Minimum number of words. Examples with a shorter text, or second text, are left out."""
    seed: Seed = 1
    """Seed that chooses the held-out documents. All runs of an experiment use the same."""

    def source_of(self, part: str) -> LabelledSource:
        """Where a part is said to come from: train, dev, ``test/NAME``, ``translations/NAME`` or ``more_dev/NAME``."""
        kind, _, name = part.partition("/")
        kind = "translations" if kind == "translated" else kind
        return getattr(self, kind)[name] if name else getattr(self, kind)

    def language_of(self, part: str) -> str:
        """The language of a part."""
        kind, _, name = part.partition("/")
        return self.source_of(part).language or (name if kind in ("translations", "translated", "more_dev") else self.language)

    @property
    def any_number(self) -> bool:
        """Whether each label is a number, of which there is no list."""
        return self.unit in ("text", "query") and not self.labels

    def at_hand(self) -> "Labelled":
        """This with the embedded files where they really are."""
        kinds = ("test", "translations", "more_dev")
        several: dict[str, Any] = {kind: {name: source.at_hand() for name, source in getattr(self, kind).items()} for kind in kinds}
        return replace(self, train=self.train.at_hand(), dev=self.dev.at_hand(), **several)

    def language_of_targets(self, part: str) -> str:
        """The language of the targets of a part (`unit: target`)."""
        source = self.source_of(part)
        if part in ("train", "dev") or not (source.file or source.by):
            source = self.train
        return source.target_language or self.target_language or self.language_of(part)


def main(examples: Path, sentences: Path, report: Path, *, part: str, settings: Labelled) -> None:
    """Write one part: its examples, their unique sentences, and a report.

    Parts are ``train``, ``dev``, ``test/NAME``, ``translations/NAME`` and ``more_dev/NAME``.

    Training text has no example that is also in dev or in a test set of the same language; dev has none that is also in such a test set.
    A translation has none that the training text lost in this way (`without_partners`).

    Raises:
        InputError: A file cannot be read, no example is left, or a label has no training example left.
    """
    removed: Counter[str] = Counter()
    changed: Counter[str] = Counter()
    source = _source(settings, part)
    unit = settings.unit
    forbidden = keys((e for other in parts_before(settings, part) for e in chosen(settings, other, Counter())), unit)
    kept = without_shared(chosen(settings, part, removed, changed), forbidden, unit, removed)
    if part.startswith("translations/"):
        kept = without_partners(kept, settings, part, removed)
    of_words = unit == "word"
    counts = Counter(label for example in kept for label in example.labels(unit))
    missing = [label for label in settings.labels if not counts[label]]
    # a rare tag may be missing from little text; a model that never saw a class of texts is no classifier of them
    if not kept or (missing and part == "train" and not of_words):
        lacking = f"with the label {', '.join(map(repr, missing))} " if kept else ""
        way_out = f"is the file empty, or `labels` too long?{or_left_out(settings.labels)}"
        if not kept and source.held_out is not None and list(removed) == ["held out for another part"]:
            way_out = (
                f"held_out {source.held_out} took none of its documents, which without a column `document` are blocks of lines; raise it, "
                "change `seed`, or give the part a file"
            )
        raise InputError(f"{source.file}: no example {lacking}is left for {part!r} (removed: {dict(removed)}); {way_out}")
    if unit == "query" and not part.startswith(("train", "translations")) and not has_rankings([e.query for e in kept]):
        raise InputError(
            f"{source.file}: no query of {part!r} has two documents, so there is nothing to rank; add documents that do not answer it"
        )
    write_table(examples, kept)
    reads_targets = unit == "target" and settings.language_of_targets(part) == source.language
    texts = (text for e in kept for text in (*texts_of(e, unit), *([e.label] if reads_targets else [])))
    write_lines(sentences, dict.fromkeys(text.replace(INNER_BLANK, " ") if of_words else without_marks(text) for text in texts))
    write_json(
        report,
        {
            "part": part,
            "language": source.language,
            "examples": len(kept),
            "labels": {label: counts[label] for label in settings.labels},
            **numbers_of(kept, settings),
            **(mean_lengths(kept, source.language or "", settings.language_of_targets(part)) if unit == "target" else {}),
            "removed": dict(removed),
            "changed": dict(changed),
            **({"queries": len({e.query for e in kept})} if unit == "query" else {}),
            "checksums": checksums(source.paths()),
            "source": asdict(source),
        },
    )


def has_rankings(queries: Sequence[str]) -> bool:
    """Whether any of these queries, which stand one after the other, has two documents or more."""
    return any(query == following for query, following in itertools.pairwise(queries))


def numbers_of(kept: list[Example], settings: Labelled) -> dict[str, Any]:
    """The range and the mean of labels that may be any number, as reports have them; nothing of other text."""
    return {"numbers": number_range(e.label for e in kept)} if settings.any_number else {}


def mean_lengths(kept: list[Example], code: str, target_code: str) -> dict[str, Any]:
    """Mean number of words of texts in a language and of their targets, and the targets' language, as reports have them."""
    sides = {"text": (code, (e.text for e in kept)), "target": (target_code, (e.label for e in kept))}
    words = {side: sum(sum(lengths(chunk, of)) for chunk in chunks(lines)) for side, (of, lines) in sides.items()}
    return {"target_language": target_code, "words": {side: number / len(kept) for side, number in words.items()}}


def paths(settings: Labelled) -> list[str]:
    """The files that all parts are read from."""
    return [path for source in sources(settings).values() for path in source.paths()]


def sources(settings: Labelled) -> dict[str, LabelledSource]:
    """Part → where it is said to come from; without what a model translates."""
    several = {kind: getattr(settings, kind) for kind in ("test", "translations", "more_dev")}
    named = {f"{kind}/{name}": source for kind, blocks in several.items() for name, source in blocks.items() if not source.by}
    return {"train": settings.train, "dev": settings.dev, **named}


# ---------------------------------------------------------------------------------------------
# parts


def chosen(settings: Labelled, part: str, removed: Counter[str], changed: Counter[str] | None = None) -> Iterator[Example]:
    """The examples of a part, including those that other parts have as well. Counts in `removed` and `changed` what was done and why."""
    source = _source(settings, part)
    code = source.language or settings.language
    divided = part.startswith("translations/") or (source.held_out is not None and settings.source_of(part).file)
    originals = _documents_of_questions(settings) if divided else {}
    for example in read_any(settings.unit, source, settings.labels, removed, Counter() if changed is None else changed):
        if settings.lowercase:
            example = example_in_small_letters(example, code, settings.language_of_targets(part) if settings.unit == "target" else "")
        if not belongs_to_part(settings, part, originals.get(example.id, example.document)):
            removed["held out for another part"] += 1
        elif settings.min_words and is_too_short(example, settings.min_words, code):
            removed["too short"] += 1
        else:
            yield example


def example_in_small_letters(example: Example, code: str, target_code: str = "") -> Example:
    """An example whose text is lower-cased by the rules of its language, and its target by those of `target_code`, if there is one."""
    target = fold(example.label, target_code) if target_code else example.label
    return example._replace(label=target, text=fold(example.text, code))


def is_too_short(example: Example, min_words: int, code: str) -> bool:
    """Whether a text of an example has fewer words."""
    return any(number_of_words(text, code) < min_words for text in example.texts)


def _source(settings: Labelled, part: str) -> LabelledSource:
    """Where a part comes from. A part without a file of its own has the training source, with its own `held_out`."""
    source = settings.source_of(part)
    whole = replace(source if source.file else settings.train, language=settings.language_of(part), held_out=source.held_out)
    return as_read(whole, part, settings.unit)


def as_read(source: LabelledSource, part: str, unit: str) -> LabelledSource:
    """A source as a part is read: in test sets of questions, answers without a place are scored by their texts."""
    by_text = part.startswith("test") and unit == "question" and source.lost_answers is None
    return replace(source, lost_answers="by_text") if by_text else source


def parts_before(settings: Labelled, part: str) -> list[str]:
    """The parts of the same language with which this part must not share examples."""
    kind, code = part.partition("/")[0], settings.language_of(part)
    held_out = {"test": (), "dev": ("test",), "more_dev": ("test",)}.get(kind, ("dev", "more_dev", "test"))
    return [other for other in sources(settings) if other.partition("/")[0] in held_out and settings.language_of(other) == code]


def _documents_of_questions(settings: Labelled) -> dict[str, str]:
    """The document of each question of the training file, by the question's id, which its translations keep; they may translate titles."""
    several = (settings.dev, *settings.more_dev.values(), *settings.test.values())
    if settings.unit not in ("question", "target") or all(source.held_out is None for source in several):
        return {}
    examples = read_any(settings.unit, _source(settings, "train"), [], Counter(), Counter())
    return {example.id: example.document for example in examples if example.id}


def belongs_to_part(settings: Labelled, part: str, document: str) -> bool:
    """Whether a document belongs to a part.

    Documents are ordered by a hash of their names: test sets have the first ones, dev the last ones, training those between.
    """
    digest = hashlib.blake2b(f"{settings.seed}\t{document}".encode(), digest_size=8).digest()
    place = int.from_bytes(digest) / 2**64
    if part.startswith(("train", "translations")):
        tests = max((source.held_out or 0.0 for source in settings.test.values()), default=0.0)
        dev = max(source.held_out or 0.0 for source in (settings.dev, *settings.more_dev.values()))
        return tests <= place < 1 - dev
    own = settings.source_of(part).held_out
    if own is None:
        return True
    return place >= 1 - own if part.startswith(("dev", "more_dev")) else place < own


def without_shared(examples: Iterable[Example], forbidden: set[tuple[str, ...]], unit: str, removed: Counter[str]) -> list[Example]:
    """The examples whose key is not `forbidden`; the others are counted in `removed`."""
    kept = []
    for example in examples:
        if key_of(example, unit) in forbidden:
            removed["equals dev or test"] += 1
        else:
            kept.append(example)
    return kept


def without_partners(examples: list[Example], settings: Labelled, part: str, removed: Counter[str]) -> list[Example]:
    """The examples of a file of translations but for those whose originals dev or a test set has, which are counted in `removed`.

    Questions and queries are known again by their ids, where files have such, and all other examples by their places. Where two files do
    not have equally many, nobody can tell, which a note says.
    """
    unit, sources = settings.unit, [_source(settings, name) for name in (part, "train")]
    forbidden = keys((e for other in parts_before(settings, "train") for e in chosen(settings, other, Counter())), unit)
    shared = [e for e in chosen(settings, "train", Counter()) if key_of(e, unit) in forbidden]
    if not shared:
        return examples
    own: Callable[[Example], Any]
    original: Callable[[Example], Any]
    if unit in ("question", "target") and all(example.id for example in (*examples, *shared)):
        own = original = attrgetter("id")
    elif unit == "query" and all(source.documents for source in sources):
        own = original = attrgetter("query")
    else:
        # lines stay as they are where a text is left out; other files are counted by what is read of them
        by_line = unit in ("text", "target") and not any(source.where or kind_of(source.file or "") == ".json" for source in sources)
        (own, number), (original, other) = (_places(settings, source, by_line) for source in sources)
        if number != other:
            print(
                f"note: {sources[0].file}: has {number:,} examples, and the training text {other:,}, so nobody can tell the translations "
                f"of {len(shared):,} examples that dev or test sets have; {part!r} keeps them",
                flush=True,
            )
            return examples
    lost = {original(example) for example in shared}
    kept = [example for example in examples if own(example) not in lost]
    if len(kept) < len(examples):
        removed["its original equals dev or test"] += len(examples) - len(kept)
    return kept


def _places(settings: Labelled, source: LabelledSource, by_line: bool) -> tuple[Callable[[Example], Any], int]:
    """What says at which place an example stands in a file, and how many places there are: lines, queries, or what is read of it."""
    if by_line:
        return attrgetter("line"), sum(1 for _ in read_lines(Path(source.file or "")))
    read = read_any(settings.unit, source, settings.labels, Counter(), Counter())
    if settings.unit == "query":
        return attrgetter("query"), len({example.query for example in read})

    def seen(example: Example) -> tuple[int, str]:
        return example.line, fold(example.text, source.language or "") if settings.lowercase else example.text

    number = {seen(example): place for place, example in enumerate(read)}
    return lambda example: number[seen(example)], len(number)


def keys(examples: Iterable[Example], unit: str) -> set[tuple[str, ...]]:
    """The keys of these examples, which other parts must not have."""
    return {key_of(example, unit) for example in examples}


def key_of(example: Example, unit: str) -> tuple[str, ...]:
    """What must not be in two parts: an example, with `unit: query` a query, whatever its documents, with `unit: question` a passage.

    Marks around an answer have blanks beside them, which some scripts do not have: texts with targets are compared without any.
    """
    if unit == "question":
        return _query_key(example.pair)
    if unit == "target":
        return tuple("".join(key.split()) for key in _keys(example.texts))
    return _query_key(example.text) if unit == "query" else tuple(_keys(example.texts))


@functools.lru_cache(1)
def _query_key(text: str) -> tuple[str, ...]:
    """The key of a query, kept for its documents, which follow each other, or of a passage, kept for its questions."""
    return tuple(_keys([text]))


def _keys(texts: list[str]) -> list[str]:
    """The form in which each text is compared; a text of nothing but signs, which has none, is compared as it is."""
    return [leak_key(text) or text for text in texts]


def texts_of(example: Example, unit: str) -> list[str]:
    """The texts of an example, as the pretext task and vocabularies read them: of a question its passage sentence by sentence."""
    return [example.text, *split_sentences(example.pair)] if unit == "question" else example.texts


if __name__ == "__main__":
    run(main)
