"""switched: the words of a task's examples are switched by lexicons while a head is finetuned, anew in each epoch (CoSDA-ML)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

from workflow_scripts.errors import InputError
from workflow_scripts.noise.candidates import Lookup, Lookups, load_lookups
from workflow_scripts.noise.span_noise import SpanNoise
from workflow_scripts.noise.switching import switch_lines
from workflow_scripts.tasks.finetuning import FinetuneSettings
from workflow_scripts.text.examples import Example
from workflow_scripts.text.tagged import given_words
from workflow_scripts.text.words import count_words, fold


def switching(
    examples: list[Example], settings: FinetuneSettings, lexicons: tuple[Path, ...], into: tuple[str, ...], seed: int, unit: str
) -> Callable[[int], tuple[list[Example], Counter[str]]] | None:
    """What switches the words of the examples, in which a `unit` has a label, anew in each epoch, where the settings ask for it.

    Raises `InputError` where they do, and there is not one lexicon for each language of `into`.
    """
    if (noise := settings.codeswitch) is None:
        return None
    if not lexicons or len(lexicons) != len(into):
        raise InputError(
            f"settings.codeswitch switches words: give a lexicon for each language to switch into; got {len(lexicons)} lexicon(s) for "
            f"{len(into)} language(s)"
        )
    texts, code = [text for example in examples for text in example.texts], settings.language
    counts = Counter(fold(word, code) for word in given_words(texts).strings()) if unit == "word" else count_words(texts, code)
    lookup = load_lookups(lexicons, code, into, counts, noise.frequency_bin)
    # of the first epoch the words are counted before its turn comes
    return lru_cache(1)(lambda epoch: switched_examples(examples, lookup, noise.noise, seed, epoch, unit))


def switched_examples(
    examples: list[Example], lookup: Lookup | Lookups, noise: SpanNoise, seed: int, epoch: int, unit: str = "text"
) -> tuple[list[Example], Counter[str]]:
    """The examples with their words switched for one epoch, both texts of a pair into the same language (CoSDA-ML, Qin et al. 2020).

    Labels stay right: a passage, in which an answer has its place, stays as it is. Tagged words are those that are given, and each stays
    one word. The counts are those of `switch_lines`.
    """
    sides: list[list[str]] = []
    counts: Counter[str] = Counter()
    for side, texts in enumerate(([e.text for e in examples], [e.pair for e in examples])):
        if unit == "question" and side == 1:
            sides.append(texts)
            continue
        new, counted = switch_lines(texts, lookup, seed=seed, stream=2 * epoch + side, noise=noise, given=unit == "word")
        sides.append(new)
        counts.update(counted)
    return [example._replace(text=text, pair=pair) for example, text, pair in zip(examples, *sides, strict=True)], counts
