"""translated: makes training text in another language by translating that of a task, for translate-train-all.

A model of the run translates texts sentence by sentence, and they keep their labels. It translates targets as well, unless they are in one
language whatever the text's. Where the answer of a question is a span of a passage, its sentence is translated with marks around it,
``[[ … ]]``. What stands between them in the translation is the span (as in Lewis et al. 2020, MLQA, section 3.2, with other marks). A
question whose marks do not come back is left out and counted. So is a text whose question is to be written, if it loses the marks around
the answer. Tags of words have no such way, as in XTREME.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import regex

from workflow_scripts.device import pick_device
from workflow_scripts.models.decoding import Decoding, one_line, translator
from workflow_scripts.models.tokenisation import load_codec
from workflow_scripts.stage import InputError, run, write_json
from workflow_scripts.text.examples import Example, read_table, write_table
from workflow_scripts.text.files import write_lines
from workflow_scripts.text.labelled import example_in_small_letters, is_too_short, keys, mean_lengths, texts_of, without_shared
from workflow_scripts.text.questions import Span, parse_spans, write_spans
from workflow_scripts.text.targets import MARKS, with_marks, without_marks
from workflow_scripts.text.words import UNSPACED, sentences

Translate = Callable[[list[str]], list[str]]
"""What translates sentences, in their order."""


def main(
    model: Path,
    train: Path,
    examples: Path,
    sentences: Path,
    report: Path,
    *,
    unit: str,
    languages: tuple[str, str],
    held_out: tuple[Path, ...] = (),
    target_languages: tuple[str, ...] = (),
    lowercase: bool = False,
    min_words: int = 0,
    threads: int = 0,
    settings: Decoding = Decoding(),
) -> None:
    """Translate the table `train`; write the examples, their unique sentences and a report, as `labelled` does for a part.

    `unit` is what has a label in the table, and `languages` are those of the table and of the translation. What the tables `held_out` have
    as well, those of dev and test sets in the language of the translation, is left out and counted. With `unit: target`,
    `target_languages` are those of the targets in the table and in the translation: `languages` again, or twice the same language, in which
    they stay. With `lowercase` all text is lower-cased, and with `min_words` texts of fewer words are left out, as `labelled` does. Raises
    `InputError` when no example is left.
    """
    codec = load_codec(model)
    table, removed = read_table(train), Counter[str]()
    targets = tuple(target_languages) == tuple(languages)
    with translator(model, codec, threads, settings) as translate:

        def answers(lines: list[str]) -> list[str]:
            return [one_line(ranked[0].text) for ranked in translate(lines, languages, 1)]

        made = translated(table, unit, answers, removed, targets)
        translate.warn(f"sentences of {train}")
    if lowercase:
        made = [example_in_small_letters(example, languages[1], target_languages[1] if unit == "target" else "") for example in made]
    if min_words:
        kept = [example for example in made if not is_too_short(example, min_words, languages[1])]
        removed.update({"too short": len(made) - len(kept)} if len(kept) < len(made) else {})
        made = kept
    forbidden = keys((example for path in held_out for example in read_table(path)), unit)
    made = without_shared(made, forbidden, unit, removed)
    if not made:
        raise InputError(f"{train}: no example is left after its translation (removed: {dict(removed)}); is the model a translator?")
    write_table(examples, made)
    texts = (text for e in made for text in (*texts_of(e, unit), *([e.label] if targets else [])))
    write_lines(sentences, dict.fromkeys(map(without_marks, texts)))
    labels = Counter(label for e in made for label in e.labels(unit))
    about: dict[str, Any] = {"part": "translated", "language": languages[1], "examples": len(made), "labels": labels}
    about |= mean_lengths(made, languages[1], target_languages[1]) if unit == "target" else {}
    source = {"translated": str(train), "decoding": asdict(settings)}
    where = str(pick_device(settings.device))
    about |= {"cut_while_translating": len(translate.about.get("too_long", ()))}
    write_json(report, {**about, "removed": dict(removed), "changed": {}, "model": str(model), "device": where, "source": source})


def translated(table: list[Example], unit: str, translate: Translate, removed: Counter[str], targets: bool = False) -> list[Example]:
    """The examples in the other language, with `targets` their targets as well; what was left out is counted in `removed`, and why."""
    marked = [passage_in_parts(example.pair, parse_spans(example.label)[0]) if unit == "question" else None for example in table]
    seconds = [example.label if targets else "" if unit == "question" else example.pair for example in table]
    texts = [[example.text, *filter(None, [second])] for example, second in zip(table, seconds, strict=True)]
    split = [[whole_sentences(text) for text in each] for each in texts]
    wanted = dict.fromkeys(one for each in split for text in each for one in text)
    wanted |= dict.fromkeys(part for parts in marked if parts for part in parts)
    known = dict(zip(wanted, translate(list(wanted)), strict=True)) if wanted else {}
    made = []
    for example, each, parts in zip(table, split, marked, strict=True):
        text, *second = (joined(known[one] for one in one_text) for one_text in each)
        example = example._replace(text=text)
        if second:
            example = example._replace(label=second[0]) if targets else example._replace(pair=second[0])
        if parts is not None:
            passage, span = without_the_marks(joined(known[part] for part in parts))
            if span is None:
                removed["answer not found again in the translation"] += 1
                continue
            example = example._replace(pair=passage, label=write_spans([span]))
        if not example.text or second == [""]:
            removed["empty after translation"] += 1
            continue
        if unit == "target" and any(MARKS[0] in sentence for sentence in each[0]):
            plain, span = without_the_marks(example.text)
            if span is None:
                removed["answer not found again in the translation"] += 1
                continue
            example = example._replace(text=with_marks(plain, *span))
        made.append(example)
    return made


def joined(sentences: Iterable[str]) -> str:
    """A text of sentences, some of which may be empty; behind the full stops of Chinese and Japanese there is no blank."""
    return regex.sub(r"(?<=[。！？][」』）”’]*) ", "", " ".join(filter(None, sentences)))


def whole_sentences(text: str) -> list[str]:
    """The sentences of a text; none ends between the marks around an answer."""
    whole: list[str] = []
    for sentence in sentences(text):
        if whole and whole[-1].count(MARKS[0]) > whole[-1].count(MARKS[1]):
            whole[-1] += f" {sentence}"
        else:
            whole.append(sentence)
    return whole


def passage_in_parts(passage: str, answer: Span) -> list[str]:
    """The sentences of a passage, that with the answer marked; an answer that runs over several makes one part of them."""
    places, at = [], 0
    for sentence in sentences(passage):
        at = passage.index(sentence, at)
        places.append((at, at + len(sentence)))
        at += len(sentence)
    touched = [place for place in places if place[0] < answer[1] and answer[0] < place[1]]
    begin, end = min(answer[0], *(place[0] for place in touched)), max(answer[1], *(place[1] for place in touched))
    inside = passage[begin : answer[0]], passage[slice(*answer)], passage[answer[1] : end]
    marked = f"{inside[0].rstrip()} {MARKS[0]} {inside[1].strip()} {MARKS[1]} {inside[2].lstrip()}".strip()
    before = [passage[start:stop] for start, stop in places if stop <= begin]
    return [*before, marked, *(passage[start:stop] for start, stop in places if start >= end)]


_QUOTES = '"«»„“”‟‹›'
"""Quotation marks, most of which open in one language and close in another."""
_ELIDED = r"\p{L}|qu|jusqu|lorsqu|puisqu|un|all|coll|dall|dell|nell|sull|quell"
"""What French and Italian words are without the vowel for which an apostrophe stands."""
_NO_BLANK_AFTER = regex.compile(rf"[\p{{Ps}}\p{{Pi}}¿¡{UNSPACED}]$|[\p{{L}}\p{{Nd}}]\p{{Pd}}$|\S[/=]$|\b({_ELIDED})['’]$", regex.IGNORECASE)
_NO_BLANK_BEFORE = regex.compile(rf"(?![&#@¿¡])[\p{{Po}}\p{{Pe}}\p{{Pf}}{UNSPACED}]|\p{{Pd}}\p{{L}}")
_MARKED = regex.compile(rf"{regex.escape(MARKS[0])}\s*(.*?)\s*{regex.escape(MARKS[1])}")


def without_the_marks(text: str) -> tuple[str, Span | None]:
    """A passage without marks, and what stood between them; None where they are not there exactly once, or nothing is between them."""
    found = list(_MARKED.finditer(text))
    if len(found) != 1 or not found[0][1] or any(text.count(mark) != 1 for mark in MARKS):
        return text, None
    before, after = text[: found[0].start()], text[found[0].end() :]
    # the blanks around marks are ours, but for those between two words; where the translation has none, it has put none there itself
    apart = before[-1:].isspace(), after[:1].isspace()
    before, after, answer = before.rstrip(), after.strip(), found[0][1]
    before += " " if apart[0] and _blank_after(before) else ""
    glue = " " if apart[1] and _blank_before(after, before + answer) else ""
    return f"{before}{answer}{glue}{after}", (len(before), len(before) + len(answer))


def _blank_after(before: str) -> bool:
    """Whether a word that follows this text stands apart from it."""
    if before and before[-1] in _QUOTES:
        return not _is_open(before)
    return bool(before) and not _NO_BLANK_AFTER.search(before)


def _blank_before(after: str, before: str) -> bool:
    """Whether this text stands apart from a word before it, with which `before` ends."""
    if after and after[0] in _QUOTES:
        return not _is_open(before)
    return bool(after) and not _NO_BLANK_BEFORE.match(after)


def _is_open(text: str) -> bool:
    """Whether a quotation that begins in this text does not end in it."""
    return sum(map(text.count, _QUOTES)) % 2 == 1


if __name__ == "__main__":
    run(main)
