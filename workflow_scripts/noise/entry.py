"""entry: what a noise is: text is noised, and a model restores it. The decorator `noise` registers one.

::

    @noise("shuffled", label="restoring the order of words", asks="Does word order alone help?")
    def shuffled(words, draw):
        return [words[i] for i in draw.permutation(len(words))]

A noise is a function of one sentence. It is called with what its parameters ask for by name (`PARAMETERS`), and returns the new words, or
the new text. As many words as there were take the places of the old ones, so that punctuation stays; otherwise they are the whole text.
A noise that asks for `candidates` or `hits` needs a lexicon, any other makes none.
"""

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import regex

from workflow_scripts import philox, plugins, registry
from workflow_scripts.errors import InputError
from workflow_scripts.noise.candidates import Lookup, Lookups
from workflow_scripts.noise.span_noise import Hits
from workflow_scripts.text.languages import language
from workflow_scripts.text.words import UNSPACED, Words, is_part_of_word

PARAMETERS = {
    "words": "the words of the sentence, as they are spelt; numbers are words, punctuation is not",
    "draw": "a NumPy generator of the sentence's own: the same numbers whatever is noised beside it",
    "text": "the sentence as it stands",
    "places": "start and end of each word in `text`, in characters",
    "language": "the language's code",
    "candidates": "for each word its translations in the lexicon, best first; an empty list where it has none",
    "hits": "the numbers of the words that code-switching restore (`codeswitch`) would replace, so that a control can hit the same ones",
    "settings": "the settings of the phase, an instance of the noise's dataclass",
}
"""What the function of a noise may ask for, by the name of its parameter."""


@dataclass(frozen=True, kw_only=True)
class Noise(registry.Entry):
    """An entry of the kind `noise`."""

    make: Callable[..., Any]
    """A function of a `Batch` that returns its new lines; with `pieces`, of the pieces of a sentence (`released.switch_pieces`)."""
    asks: str
    """The question that the report asks of an arm with it, against the baseline; of a control, of the noise that it is a control of."""
    explained: str = ""
    """What it is, in a sentence or two, where the report says what was run; empty where `label` is enough."""
    control_of: str = ""
    """The noise that it is a control of."""
    against: tuple[str, ...] = ()
    """Other noises whose arms the report compares its arms with as well."""
    lexicon: str = ""
    """What it needs of a lexicon: `own` entries, those of the lexicon `scrambled`, or none."""
    pieces: bool = False
    """Whether it replaces pieces of the backbone instead of words."""
    masks: bool = False
    """Whether it writes `<mask>`, which is then read as the model's own mask; otherwise it is text."""
    as_text: bool = False
    """Whether the model learns the noised text itself, and nothing is restored: it writes it behind nothing, as a language model does; an
    encoder guesses masked pieces of it."""


class Batch(NamedTuple):
    """Sentences as a noise gets them that works on many at once, as ours do."""

    words: Words
    surface: list[str]
    """Each word as it is spelt."""
    begins: np.ndarray
    """Whether a sentence begins with a word."""
    rows: np.ndarray
    """Of each word, the row of the lookup with its candidates; row 0 has none."""
    hits: Hits
    """The words that are hit, and which of its candidates replaces each."""
    lookup: Lookup | Lookups
    seed: int
    stream: int
    """Number of the random stream: 2 × round + side."""
    first: int
    """Number of the first sentence in its text."""
    settings: Any = None
    """The settings of the phase."""


def noise(
    name: str,
    *,
    label: str,
    asks: str,
    control_of: str = "",
    against: str | Iterable[str] = (),
    lexicon: str | None = None,
    masks: bool = False,
    source: str = "",
    settings: type | None = None,
) -> Callable[[Callable], Callable]:
    """Register the function of one sentence that is decorated as a noise; see the module, and `Noise` for what is said of it."""

    def registered(function: Callable) -> Callable:
        asked = plugins.asked(f"noise {name!r}", "a noise", function, PARAMETERS, decorator="noise", settings=settings)
        needs = "own" if {"candidates", "hits"} & {*asked} else ""
        if lexicon not in (None, "", "own", "scrambled") or (lexicon == "" and "candidates" in asked):
            raise InputError(f"noise {name!r} has lexicon={lexicon!r}; write 'own' or 'scrambled', or leave it out")
        register_batch(
            name,
            by_sentence(name, function, asked),
            label=label,
            asks=asks,
            control_of=control_of,
            against=(against,) if isinstance(against, str) else tuple(against),
            lexicon=needs if lexicon is None else lexicon,
            masks=masks,
            source=source,
            settings=settings,
        )
        return function

    return registered


def register_batch(name: str, make: Callable[..., Any], **about: Any) -> None:
    """Register a noise that works on many sentences at once, a function of a `Batch`; `about` are the fields of `Noise`."""
    registry.register("noise", Noise(name=name, make=make, **about))


def by_sentence(name: str, function: Callable, asked: tuple[str, ...]) -> Callable[[Batch], list[str]]:
    """A function of a `Batch` that calls one of a sentence for each of its sentences."""

    def noised(batch: Batch) -> list[str]:
        words, lines = batch.words, batch.words.text.split("\n")
        spaced, code = language(batch.lookup.code).spaced, batch.lookup.code
        new, start = [], 0
        for number, line in enumerate(lines):
            inside = slice(words.before[number], words.before[number + 1])
            places = [(a - start, b - start) for a, b in zip(words.starts[inside].tolist(), words.ends[inside].tolist(), strict=True)]
            arguments: dict[str, Any] = {"words": batch.surface[inside], "text": line, "places": places, "language": code}
            if "draw" in asked:
                arguments["draw"] = philox.generator(batch.seed, _STREAMS + batch.stream, batch.first + number)
            if "candidates" in asked:
                arguments["candidates"] = [list(batch.lookup.rows[row]) for row in batch.rows[inside]]
            if "hits" in asked:
                hit = batch.hits.words
                arguments["hits"] = (hit[np.searchsorted(hit, inside.start) : np.searchsorted(hit, inside.stop)] - inside.start).tolist()
            arguments["settings"] = batch.settings
            about = functools.partial("sentence {}: {!r}".format, batch.first + number + 1, line)
            returned = plugins.call(f"noise {name!r}", function, {parameter: arguments[parameter] for parameter in asked}, about)
            new.append(_as_text(name, returned, line, places, spaced))
            start += len(line) + 1
        return new

    return noised


# random streams from here on are those of sentences; streams of the noise itself, and of languages, have smaller numbers
_STREAMS = 1 << 34


def _as_text(name: str, returned: Any, line: str, places: list[tuple[int, int]], spaced: bool) -> str:
    """The new line, of the words or the text that a noise has returned."""
    if isinstance(returned, str):
        return " ".join(returned.split())
    returned = list(returned) if isinstance(returned, Iterable) and not isinstance(returned, bytes | Mapping | Set) else [returned]
    if wrong := [part for part in returned if not isinstance(part, str)]:
        raise InputError(f"noise {name!r} returned {wrong[0]!r} for {line!r}; it returns words, or one text")
    if len(returned) != len(places):
        pieces = [part for word in returned for part in (" " if spaced else "", word)]
    else:
        ends = [0, *(end for _, end in places)]
        pieces = [part for end, (start, _), word in zip(ends, places, returned, strict=False) for part in (line[end:start], word)]
        pieces.append(line[ends[-1] :])
    return " ".join("".join(pieces if spaced else _apart(pieces, line)).split())


def _apart(pieces: list[str], line: str) -> Iterator[str]:
    """In a script without spaces: `pieces` with a blank beside words of other scripts, unless they stand so in `line` already."""
    before = ""
    for piece in filter(None, pieces):
        both = before[-1:] + piece[0]
        if (
            len(both) == 2
            and is_part_of_word(both[0])
            and is_part_of_word(both[1])
            and any(map(_SPACED.match, both))
            and before + piece not in line
        ):
            yield " "
        yield piece
        before = piece


# letters and digits of scripts with spaces between words
_SPACED = regex.compile(rf"[^{UNSPACED}\u30fc]")
