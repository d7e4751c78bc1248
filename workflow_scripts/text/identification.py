"""identification: are the two sides of a parallel text in the languages that the configuration says, swapped, or in a third language?

Letters separate languages that share no script, others are identified by langid.py (Lui and Baldwin 2012).
"""

import functools
from collections import Counter
from typing import Any

import regex

from workflow_scripts.stage import InputError
from workflow_scripts.text.languages import LANGUAGES, Language, language
from workflow_scripts.text.parallel import Pair

_LINES_PER_VOTE = 20


def check_languages(pairs: list[Pair], languages: tuple[str, str], where: str) -> None:
    """Raise `InputError` if the two sides look swapped; `where` is the text's name in the message.

    If the languages share no script, letters of the wrong script are counted. One side may be romanised, as Hindi in Latin letters: it is
    refused only where langid.py reads it as the other side's language. Otherwise langid.py (in the package py3langid),
    restricted to the two languages, classifies blocks of 20 lines, and the text is refused if most blocks look swapped. Nothing is
    checked if langid.py does not know one of the languages.
    """
    a, b = (language(code) for code in languages)
    sides = [[p.a for p in pairs], [p.b for p in pairs]]
    if set(a.scripts).isdisjoint(b.scripts):
        foreign = [
            (mine, other, lines) for mine, other, lines in ((a, b, sides[0]), (b, a, sides[1])) if _is_written_in(lines, other, mine)
        ]
        if len(foreign) == 1 and is_romanised(foreign[0][2], foreign[0][1].code):
            mine, other, _ = foreign[0]
            print(f"note: {where}: the {mine.name} side is written in {other.script} script, and does not read as {other.name}", flush=True)
        elif foreign:
            mine, other, lines = foreign[0]
            line = next(p.line for p, text in zip(pairs, lines, strict=True) if _letters(text, other.scripts))
            exchange = f"the sides look swapped, exchange the columns or files of {mine.code} and {other.code}"
            way_out = exchange if len(foreign) == 2 else f"name the right file or column of {mine.code}"
            raise InputError(f"{where}, line {line}: the {mine.name} side is written in {other.script} script; {way_out}")
        return
    if (identifier := _identifier(*sorted((a.code, b.code)))) is None:
        return
    swapped = votes = 0
    for texts in zip(*map(_blocks, sides), strict=True):
        if min(map(len, texts)) < 100:
            continue
        votes += 1
        swapped += identifier.classify(texts[0])[0] == b.code and identifier.classify(texts[1])[0] == a.code
    if votes and swapped > votes / 2:
        raise InputError(
            f"{where}, line {pairs[0].line}: the {a.name} side reads as {b.name} and the {b.name} side as {a.name} "
            f"({swapped} of {votes} chunks); exchange the columns or files of {a.code} and {b.code}"
        )


def _is_written_in(lines: list[str], other: Language, mine: Language) -> bool:
    """Whether lines in the language `mine` have mostly letters of the `other` one's script."""
    own, foreign = (sum(_letters(line, row.scripts) for line in lines) for row in (mine, other))
    return foreign > 2 * own and foreign > 20


def is_romanised(lines: list[str], other: str) -> bool:
    """Whether lines in the script of the language `other` read as another language, so that they are a transliteration of their own.

    It is false where langid.py cannot say.
    """
    if (identifier := _identifier()) is None or other not in identifier.nb_classes:
        return False
    blocks = _blocks(lines)
    return sum(identifier.classify(block)[0] == other for block in blocks) < len(blocks) / 2


def _blocks(lines: list[str]) -> list[str]:
    return [" ".join(lines[start : start + _LINES_PER_VOTE]) for start in range(0, len(lines), _LINES_PER_VOTE)]


_ALIKE = ({"no", "nb", "nn", "da"}, {"hr", "bs", "sr"}, {"id", "ms"}, {"gl", "pt"}, {"zh", "yue"}, {"ar", "ary", "arz"})
"""Languages that a text may well be in without langid.py telling them apart."""


def reads_as(lines: list[str], code: str) -> str:
    """The name of the language that nine of ten blocks of lines read as, where it is not `code` nor hard to tell from it; else empty.

    It is also empty if langid.py does not know `code`, and for fewer than five blocks.
    """
    if (identifier := _identifier()) is None or code not in identifier.nb_classes:
        return ""
    votes = Counter(identifier.classify(block)[0] for block in _blocks(lines) if len(block) >= 100)
    if votes.total() < 5:
        return ""
    [(winner, number)] = votes.most_common(1)
    if winner not in LANGUAGES or any({code, winner} <= alike for alike in [{code}, *_ALIKE]):
        return ""
    return language(winner).name if number >= 0.9 * votes.total() else ""


@functools.cache
def _identifier(*codes: str) -> Any:
    """langid.py's identifier, restricted to `codes` if there are any; None if it is not installed or does not know one of them."""
    try:
        from py3langid.langid import MODEL_FILE, LanguageIdentifier

        identifier = LanguageIdentifier.from_model_file(MODEL_FILE)
        if codes:
            identifier.set_languages(list(codes))
    except (ImportError, ValueError):
        return None
    return identifier


_SCRIPTS = {"Japanese": r"[\p{Hiragana}\p{Katakana}\p{Han}]"}


def _letters(line: str, scripts: tuple[str, ...]) -> int:
    return sum(len(regex.findall(_SCRIPTS.get(script, rf"\p{{{script}}}"), line)) for script in scripts)
