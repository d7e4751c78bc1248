"""switching: what noise makes of sentences, and our own noises.

``codeswitch``
    words are replaced with their translations
``mask``, ``random``
    controls that hit the same words of the same sentences: masks or wrong translations replace them
``plain_text``
    a control without a lexicon: text is read as it stands
``switched_text``
    the text of ``codeswitch``, read as it stands instead of restored
``released``
    the noise of the authors' published code, for comparison (module `released`)

Which words are hit depends only on the settings, the seed, the stream and the number of the sentence (`span_noise`). So kinds that use a
lexicon and replace words hit the same ones.
"""

import itertools
from collections import Counter
from collections.abc import Iterator
from typing import Annotated, Any, NamedTuple

import numpy as np

from workflow_scripts import registry
from workflow_scripts.entry_names import Named
from workflow_scripts.noise import span_noise
from workflow_scripts.noise.candidates import Lookup, Lookups, draw_language
from workflow_scripts.noise.entry import Batch, Noise, register_batch
from workflow_scripts.noise.released import switch_pieces
from workflow_scripts.noise.span_noise import SpanNoise
from workflow_scripts.stage import own_settings
from workflow_scripts.text.files import chunks
from workflow_scripts.text.languages import language
from workflow_scripts.text.spelling import begins_sentence
from workflow_scripts.text.tagged import given_words
from workflow_scripts.text.words import Words, capital, is_part_of_word, upper, words_of

Kind = Annotated[str, Named("noise")]


def switched(
    lines: list[str],
    first: int,
    rounds: list[int],
    *,
    lookup: Lookup | Lookups,
    entry: Noise,
    own: Any,
    seed: int,
    side: int,
    noise: SpanNoise,
    total: Counter[str],
) -> Iterator[list[str]]:
    """The noised lines of each round, as `rounds.write_rounds` asks for them; `total` adds up the counts of `switch_lines`."""
    found = find_words(lines, lookup)
    for number in rounds:
        noised, counts = switch_words(found, lookup, entry, seed, 2 * number + side, first, noise, own)
        total.update(counts)
        yield noised


def switch_lines(
    lines: list[str],
    lookup: Lookup | Lookups,
    kind: Kind = "codeswitch",
    seed: int = 1,
    stream: int = 0,
    first: int = 0,
    noise: SpanNoise = SpanNoise(),
    noise_settings: str | dict[str, Any] = "{}",
    given: bool = False,
) -> tuple[list[str], Counter[str]]:
    """Noise sentences, some thousands at a time.

    Which words are hit depends only on the settings, `seed`, `stream` and the number of the sentence, so that kinds that use a lexicon hit
    the same words.

    Args:
        lines: The sentences.
        lookup: The candidates of each word.
        kind: Name of the noise; `random` is `codeswitch` with another `lookup`.
        seed: Seed of the random choices.
        stream: Number of the random stream: 2 × round + side.
        first: Number of the first sentence in its text.
        noise: How many words are replaced, and in what spans.
        noise_settings: Settings of the noise's own.
        given: The words are given: `tagged.join_words` made the lines. They stay as many.

    Returns:
        The new sentences, and the numbers of all words, of words with candidates, of replaced words, and of words that were to be
        replaced.
    """
    entry: Noise = registry.entry("noise", kind)
    own = own_settings(entry, noise_settings)
    noised: list[str] = []
    total: Counter[str] = Counter()
    for chunk in chunks(lines):
        new, counts = switch_words(find_words(chunk, lookup, given), lookup, entry, seed, stream, first + len(noised), noise, own)
        noised += new
        total.update(counts)
    return noised, total


class Found(NamedTuple):
    """What is known of lines before they are noised, the same in all rounds."""

    words: Words
    surface: list[str]
    """Each word as it is spelt."""
    numbers: np.ndarray
    """Rows of the lookup (languages × words)."""
    begins: np.ndarray
    """Whether a sentence begins with a word."""


def find_words(lines: list[str], lookup: Lookup | Lookups, given: bool = False) -> Found:
    """The words of lines, and their candidates; `given` as in `switch_lines`."""
    words = given_words(lines) if given else words_of(lines, lookup.code)
    surface = words.strings()
    return Found(words, surface, lookup.numbers(surface), begins_sentence(words))


def switch_words(
    found: Found, lookup: Lookup | Lookups, entry: Noise, seed: int, stream: int, first: int, noise: SpanNoise, own: Any = None
) -> tuple[list[str], dict[str, float]]:
    """`switch_lines` for lines of which the words have been found."""
    words = found.words
    rows = draw_language(found.numbers, words.before, seed, stream, first)
    # a noise without a lexicon may hit any word
    choices = lookup.choices[rows] if entry.lexicon else np.ones(len(rows), np.int64)
    hits = span_noise.choose_words(choices, words.before, noise, seed, stream, first)
    new = entry.make(Batch(words, found.surface, found.begins, rows, hits, lookup, seed, stream, first, own))
    replaceable = int(np.count_nonzero(choices))
    if entry.lexicon:
        return new, _counts(len(rows), replaceable, len(hits.words), noise.rate * len(rows))
    # how many words it means to change is its own business
    changed = sum(_changed(old, line) for old, line in zip(words.text.split("\n"), new, strict=True))
    return new, _counts(len(rows), replaceable, changed, changed)


def _counts(words: int, replaceable: int, replaced: int, budget: float) -> dict[str, float]:
    return {"words": words, "replaceable": replaceable, "replaced": replaced, "budget": budget}


def with_shares(total: Counter[str]) -> dict[str, float]:
    """Counts of `switch_lines`, with the share of words that were replaced, that of words with candidates, and what the budget had left."""
    return {
        **total,
        "rate": total["replaced"] / max(1, total["words"]),
        "coverage": total["replaceable"] / max(1, total["words"]),
        # the budget of a sentence is drawn, so that a little more than its mean may have been replaced
        "shortfall": max(0.0, 1 - total["replaced"] / max(1, total["budget"])) if total["budget"] else 0.0,
    }


def _changed(old: str, new: str) -> int:
    """How many tokens of a sentence are others in its noised form, place by place."""
    before, after = old.split(), new.split()
    return sum(a != b for a, b in itertools.zip_longest(before, after)) if old != new else 0


def replaced_by_candidates(batch: Batch) -> list[str]:
    """Each word that is hit gives way to its candidate.

    A replacement has the capitals of its row of candidates; in the place of a word that begins a sentence, or is not capitalised as usual,
    it takes over those of this word, by the rules of its own language. One of several words is a single word where the words are given.
    """
    words, surface, lookup, hit = batch.words, batch.surface, batch.lookup, batch.hits.words
    numbers = (array.tolist() for array in (hit, batch.rows[hit], batch.hits.picks, batch.begins[hit]))
    new = [
        match_case(surface[word], lookup.rows[row][pick], lookup.languages[row])
        if begins or surface[word] != lookup.usual[row]
        else lookup.rows[row][pick]
        for word, row, pick, begins in zip(*numbers, strict=True)
    ]
    if words.inner_blank == " ":
        return replace_words(words, hit, new, spaced=language(lookup.code).spaced)
    return replace_words(words, hit, [word.replace(" ", words.inner_blank) for word in new])


def masked(batch: Batch) -> list[str]:
    """Each contiguous span of words that are hit becomes one mask."""
    return span_noise.mask(batch.words, batch.hits.words)


def left_out(batch: Batch) -> list[str]:
    """Nothing is left of a sentence: the model writes it from its beginning, as a language model does."""
    return [""] * (len(batch.words.before) - 1)


def match_case(model: str, word: str, code: str = "") -> str:
    """`word`, a word of language `code`, capitalised like `model`: all capitals, the first letter, or unchanged.

    Running text in Georgian has no capitals, though Unicode has some.
    """
    if code == "ka" or not model[0].isupper():
        return word
    if model.isupper() and sum(letter.isalpha() for letter in model) > 1:
        return upper(word, code)
    return capital(word, code)


def replace_words(words: Words, hit: np.ndarray, new: list[str], spaced: bool = True) -> list[str]:
    """Replace the words with the numbers `hit` by `new`; everything between words stays.

    In a script without spaces (`spaced` is false), blanks separate the new words from letters, vowel signs and digits next to them.
    """
    text = words.text
    pieces, at = [], 0
    for start, end, word in zip(words.starts[hit].tolist(), words.ends[hit].tolist(), new, strict=True):
        pieces.append(text[at:start])
        if not spaced and start and is_part_of_word(text[start - 1]):
            pieces.append(" ")
        pieces.append(word)
        if not spaced and end < len(text) and is_part_of_word(text[end]):
            pieces.append(" ")
        at = end
    lines = "".join([*pieces, text[at:]]).split("\n")
    # text from the corpus stage has single blanks already; only two new words next to each other may add more
    return [line if spaced and "  " not in line else " ".join(line.split()) for line in lines]


# ---------------------------------------------------------------------------------------------
# entries

ZAN = "Zan et al. 2022, section III-B"
"""Where code-switching restore is described."""

register_batch(
    "codeswitch",
    replaced_by_candidates,
    label="restoring code-switched text",
    asks="Does code-switching restore help?",
    explained="Code-switching restore (CSR) puts a short stage before finetuning: words of the training text are replaced with their "
    "translations, by a lexicon that may be learnt without any parallel text, and the model learns to restore the original sentence "
    "(Zan et al. 2022).",
    lexicon="own",
    source=ZAN,
)
# denoising on the task's text, without the other language
register_batch(
    "mask",
    masked,
    label="restoring the same words masked (control)",
    asks="Do words of the other language help more than masked words?",
    control_of="codeswitch",
    lexicon="own",
    masks=True,
    source="Liu et al. 2020, section 2.2",
)
# foreign words without the alignment
register_batch(
    "random",
    replaced_by_candidates,
    label="restoring the same words switched by a scrambled lexicon (control)",
    asks="Do the right words help more than random ones?",
    control_of="codeswitch",
    lexicon="scrambled",
)
# having read the task's text, without anything to restore
register_batch(
    "plain_text",
    left_out,
    label="reading the same text as it stands (control)",
    asks="Does restoring help more than having read the text?",
    control_of="codeswitch",
)
# code-switched text as it stands, with the words that are restored otherwise
register_batch(
    "switched_text",
    replaced_by_candidates,
    label="reading text whose words are switched",
    asks="Does it help to read code-switched text?",
    against=("codeswitch", "plain_text", "mlm"),
    lexicon="own",
    as_text=True,
    source="Yoo et al. 2025",
)
register_batch(
    "released",
    switch_pieces,
    label="restoring text under the noise of the published code (for comparison)",
    asks="Does the noise of the published code help?",
    lexicon="own",
    pieces=True,
    masks=True,
    source="the authors' published code",
)
