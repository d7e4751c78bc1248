"""codeswitch: the text of the pretext task, sentences with 35 % of their words in the other language.

Zan et al., section III-B: spans of words are chosen as in mBART's noise, and each word in them is
replaced by one of its k neighbours in the other language; the model restores the sentence. Every
pair of the corpus gives both restore tasks, source and target, in every round, with fresh noise.

Two controls hit the same words of the same sentences:

``mask``
    a mask in place of each contiguous span: denoising on the task's text, without the other language
``random``
    neighbours from a lexicon whose target side is permuted among words of like frequency: foreign
    words without the alignment

``released`` is the noise of the authors' published code instead, for comparison (`released`).
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Literal

import numpy as np

from workflow_scripts.limits import Limits
from workflow_scripts.models.tokenisation import load_codec
from workflow_scripts.noise import philox
from workflow_scripts.noise import spans as span_noise
from workflow_scripts.noise.released import released_side
from workflow_scripts.noise.spans import Noise
from workflow_scripts.stage import InputError, run, write_json
from workflow_scripts.text.files import chunks, read_lines, write_lines
from workflow_scripts.text.languages import language
from workflow_scripts.text.word_lists import read_lexicon
from workflow_scripts.text.words import Words, count_words, fold, upper, words_of

Kind = Literal["codeswitch", "mask", "random", "released"]


@dataclass
class CodeSwitch:
    """Settings of the code-switched corpus."""

    noise: Noise = field(default_factory=Noise)
    """How many words are hit, and in what spans."""
    frequency_bin: Annotated[int, Limits(ge=2)] = 50
    """`random`: candidates are permuted among so many words next to each other in frequency."""


def main(
    text_a: Path,
    text_b: Path,
    dev_a: Path,
    dev_b: Path,
    lexicon_ab: Path,
    lexicon_ba: Path,
    output: Path,
    *,
    languages: tuple[str, str],
    kind: Kind = "codeswitch",
    model: Path | None = None,
    documents: bool = False,
    seed: int = 1,
    tokens: int = 1,
    settings: CodeSwitch = CodeSwitch(),
) -> None:
    """Write ``round{r}.{language}.tsv.zst`` (switched, original) and ``codeswitch.json`` into `output`.

    The dev text is switched once, into ``dev.{language}.tsv.zst``, to watch the restore loss by.
    `tokens` is what the pretext phase reads, updates × tokens per batch; the rounds are as many as
    that needs if every word were a single token, so they always suffice. `model` is the backbone whose
    pieces are switched by the kind ``released``; its rows hold pieces, separated by blanks, where those of
    the other kinds hold text; `documents` says that `</s>` stands between sentences.
    """
    if (kind == "released") != bool(model):
        raise InputError("--model is for the kind released, which needs it")
    codec = load_codec(model, documents) if model else None
    sides = (text_a, text_b), (dev_a, dev_b), (lexicon_ab, lexicon_ba)
    running_words = sum(
        len(words_of(lines, code).starts) for text, code in zip(sides[0], languages, strict=True) for lines in chunks(read_lines(text))
    )
    if not running_words:
        raise InputError(f"{text_a}: no words to switch")
    # the released noise takes every second sentence of either side
    rounds = max(1, -(-tokens * (2 if codec else 1) // running_words))
    report = {}
    for side, (text, dev, lexicon, code) in enumerate(zip(*sides, languages, strict=True)):
        candidates = load_candidates(lexicon)
        if kind == "random":
            counts = count_words(sides[0][1 - side], languages[1 - side])
            candidates = permute_candidates(candidates, counts, settings.frequency_bin, seed)
        lookup = Lookup(candidates, code, languages[1 - side])
        total: Counter[str] = Counter()
        for name, source, number in _parts(text, dev, rounds):
            if codec:
                rows = released_side(source, codec, candidates, seed, number, side, settings.noise)
            else:
                rows = switched_side(source, lookup, kind, seed, number, side, settings.noise)
            write_lines(output / f"{name}.{code}.tsv.zst", _count(rows, Counter() if name == "dev" else total))
        report[code] = _shares(total)
    write_json(
        output / "codeswitch.json",
        {
            "kind": kind,
            "unit": "piece" if codec else "word",
            "rounds": rounds,
            "languages": languages,
            "seed": seed,
            "sides": report,
            "settings": asdict(settings),
        },
    )


def one_sided(
    text: Path,
    dev: Path,
    lexicons: tuple[Path, ...],
    output: Path,
    *,
    language: str,
    into: tuple[str, ...],
    kind: Kind = "codeswitch",
    seed: int = 1,
    tokens: int = 1,
    settings: CodeSwitch = CodeSwitch(),
) -> None:
    """Like `main`, for text in one language: each sentence draws one of the languages `into`, of which each has a lexicon.

    Raises `InputError` for a lexicon that has no word of the text, and for the kind ``released``, which needs two sides.
    """
    if kind == "released":
        raise InputError("the noise `released` is for two sides of parallel text; take codeswitch, mask or random")
    counts = count_words(text, language)
    if not counts:
        raise InputError(f"{text}: no words to switch")
    lookup = Lookups(load_lookups(lexicons, language, into, counts, settings, seed if kind == "random" else None))
    rounds = max(1, -(-tokens // counts.total()))
    total: Counter[str] = Counter()
    for name, source, number in _parts(text, dev, rounds):
        rows = switched_side(source, lookup, kind, seed, number, 0, settings.noise)
        write_lines(output / f"{name}.{language}.tsv.zst", _count(rows, Counter() if name == "dev" else total))
    write_json(
        output / "codeswitch.json",
        {
            "kind": kind,
            "unit": "word",
            "rounds": rounds,
            "languages": [language],
            "into": into,
            "seed": seed,
            "sides": {language: _shares(total)},
            "settings": asdict(settings),
        },
    )


def load_lookups(
    lexicons: tuple[Path, ...], code: str, into: tuple[str, ...], counts: Counter[str], settings: CodeSwitch, scrambled: int | None = None
) -> list["Lookup"]:
    """The candidates in each language of `into`, with a seed `scrambled`; raises `InputError` where `counts` has no word of a lexicon."""
    lookups = []
    for path, other in zip(lexicons, into, strict=True):
        candidates = load_candidates(path)
        if not any(word in counts for word in candidates):
            raise InputError(f"{path}: has no word of the text in {code}; give a dictionary {code}-{other} for it")
        if scrambled is not None:
            # there is no text in the other language: a word is as frequent as those that it translates
            frequency: Counter[str] = Counter()
            for word, row in candidates.items():
                frequency.update(dict.fromkeys(row, counts[word]))
            candidates = permute_candidates(candidates, frequency, settings.frequency_bin, scrambled)
        lookups.append(Lookup(candidates, code, other))
    return lookups


# the dev text's noise; no training text has so many rounds
_DEV_ROUND = 1 << 30


def _parts(text: Path, dev: Path, rounds: int) -> list[tuple[str, Path, int]]:
    """What is written of one language: name, the text that it is made of, number of the round."""
    return [("dev", dev, _DEV_ROUND), *((f"round{r}", text, r) for r in range(rounds))]


Candidates = dict[str, list[str]]
"""Folded word → its candidates in the other language."""


def load_candidates(path: Path) -> Candidates:
    """A lexicon file as candidates per word; raises `InputError` when it is empty."""
    candidates: Candidates = {}
    for word, candidate, _ in read_lexicon(path):
        candidates.setdefault(word, []).append(candidate)
    if not candidates:
        raise InputError(f"{path}: the lexicon has no entries, nothing can be switched; look at mapping.json")
    return candidates


def permute_candidates(candidates: Candidates, counts: Counter[str], size: int, seed: int) -> Candidates:
    """The lexicon with its target side permuted among words of like frequency.

    One permutation of the target words, within bins of `size` neighbours by frequency, is applied
    to all entries: how often each kind of word is used stays, what it translates does not. Words
    that would become their own candidate lose it; nobody is left without any.
    """
    rng = philox.generator(seed, 1 << 32, 0)
    targets = sorted({c for row in candidates.values() for c in row}, key=lambda word: (-counts[word], word))
    renamed: dict[str, str] = {}
    # the last bin is never a single word, which could only stay where it is
    starts = [start for start in range(0, len(targets), size) if start == 0 or len(targets) - start > 1]
    for start, end in zip(starts, [*starts[1:], len(targets)], strict=True):
        group = targets[start:end]
        order = rng.permutation(len(group))
        # a cycle through the bin in random order has no fixed point
        for here, there in zip(order, np.roll(order, 1), strict=True):
            renamed[group[here]] = group[there]
    permuted = {word: [renamed[c] for c in row if renamed[c] != word] for word, row in candidates.items()}
    return {word: row or [targets[0] if targets[0] != word else targets[-1]] for word, row in permuted.items()}


# ---------------------------------------------------------------------------------------------
# sentences


class Lookup(dict):
    """A word as it stands in text → the number of its row of candidates; row 0 is empty. Forgets all when it has grown large."""

    limit = 1_000_000

    def __init__(self, candidates: Candidates, code: str, into: str = ""):
        super().__init__()
        self.code, self.into = code, into
        self.rows = [[], *candidates.values()]
        self.choices = np.array([len(row) for row in self.rows])
        self.folded = {word: number for number, word in enumerate(candidates, 1)}

    def __missing__(self, word: str) -> int:
        if len(self) >= self.limit:
            self.clear()
        self[word] = number = self.folded.get(fold(word, self.code), 0)
        return number

    def numbers(self, surface: list[str], *_: object) -> np.ndarray:
        """The row of each word."""
        return np.fromiter(map(self.__getitem__, surface), np.int64, len(surface))

    def language_of(self, row: int) -> str:
        """The language of a row's candidates."""
        return self.into


class Lookups:
    """Candidates in several languages, of which each sentence draws one. Their rows stand one after the other."""

    def __init__(self, lookups: list[Lookup]):
        self.lookups = lookups
        self.code = lookups[0].code
        self.rows = [row for lookup in lookups for row in lookup.rows]
        self.choices = np.concatenate([lookup.choices for lookup in lookups])
        self.starts = np.cumsum([0, *(len(lookup.rows) for lookup in lookups[:-1])])
        self.languages = [lookup.into for lookup in lookups for _ in lookup.rows]

    def numbers(self, surface: list[str], before: np.ndarray, seed: int, stream: int, first: int) -> np.ndarray:
        """The row of each word; both sides of a round draw the same language for a sentence."""
        drawn = philox.integers(len(before) - 1, len(self.lookups), seed, _LANGUAGES + stream // 2, first)
        of_word = np.repeat(drawn, np.diff(before))
        found = (self.lookups[language][word] for language, word in zip(of_word.tolist(), surface, strict=True))
        return np.fromiter(found, np.int64, len(surface)) + self.starts[of_word]

    def language_of(self, row: int) -> str:
        """The language of a row's candidates."""
        return self.languages[row]


# streams of the languages' draws; those of noise are smaller
_LANGUAGES = 1 << 33


def switched_side(
    text: Path, lookup: Lookup | Lookups, kind: Kind, seed: int, round_number: int, side: int, noise: Noise
) -> Iterator[tuple[str, str, dict[str, float]]]:
    """Each line of `text` as (noised, original, counts) for one round; the counts of a chunk come with its first line."""
    first = 0
    for lines in chunks(read_lines(text)):
        noised, counts = switch_lines(lines, lookup, kind, seed, 2 * round_number + side, first, noise)
        for new, line in zip(noised, lines, strict=True):
            yield new, line, counts
            counts = {}
        first += len(lines)


def switch_lines(
    lines: list[str],
    lookup: Lookup | Lookups,
    kind: Kind = "codeswitch",
    seed: int = 1,
    stream: int = 0,
    first: int = 0,
    noise: Noise = Noise(),
) -> tuple[list[str], dict[str, float]]:
    """Sentences with their words switched (or masked), and the counts behind the realised rate.

    `first` is the number of the first sentence in its text. Candidates are capitalised by the rules of their
    language. The positions depend on seed, stream (round and side) and the sentence's
    number alone: all kinds hit the same.
    """
    words = words_of(lines, lookup.code)
    surface = words.strings()
    rows = lookup.numbers(surface, words.before, seed, stream, first)
    choices = lookup.choices[rows]
    hits = span_noise.choose_words(choices, words.before, noise, seed, stream, first)
    counts = {
        "words": len(surface),
        "replaceable": int(np.count_nonzero(choices)),
        "replaced": len(hits.words),
        "budget": noise.rate * len(surface),
    }
    if kind == "mask":
        return span_noise.mask(words, hits.words), counts
    new = [
        match_case(surface[word], lookup.rows[row][pick], lookup.language_of(row))
        for word, row, pick in zip(hits.words.tolist(), rows[hits.words].tolist(), hits.picks.tolist(), strict=True)
    ]
    return replace_words(words, hits.words, new, spaced=language(lookup.code).spaced), counts


def match_case(model: str, word: str, code: str = "") -> str:
    """`word` of the language `code` in the case pattern of `model`: CAPITALS, Title or as it is."""
    if model.isupper() and len(model) > 1:
        return upper(word, code)
    return upper(word[0], code) + word[1:] if model[0].isupper() else word


def replace_words(words: Words, hit: np.ndarray, new: list[str], spaced: bool = True) -> list[str]:
    """The lines with the words of the given numbers replaced; everything between words stays.

    In a script without spaces a blank keeps a foreign word from growing together with its
    neighbours.
    """
    text = words.text
    pieces, at = [], 0
    for start, end, word in zip(words.starts[hit].tolist(), words.ends[hit].tolist(), new, strict=True):
        pieces.append(text[at:start])
        if not spaced and start and text[start - 1].isalnum():
            pieces.append(" ")
        pieces.append(word)
        if not spaced and end < len(text) and text[end].isalnum():
            pieces.append(" ")
        at = end
    lines = "".join([*pieces, text[at:]]).split("\n")
    # text from the corpus stage has single blanks already, but for those put between two new words
    return [line if spaced and "  " not in line else " ".join(line.split()) for line in lines]


def _shares(total: Counter) -> dict[str, float]:
    return {
        **total,
        "rate": total["replaced"] / max(1, total["words"]),
        "coverage": total["replaceable"] / max(1, total["words"]),
        "shortfall": 1 - total["replaced"] / max(1, total["budget"]),
    }


def _count(rows: Iterator[tuple[str, str, dict]], total: Counter) -> Iterator[str]:
    for noised, original, counts in rows:
        total.update(counts)
        yield f"{noised}\t{original}"


if __name__ == "__main__":
    run(main)
