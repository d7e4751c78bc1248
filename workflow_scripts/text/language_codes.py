"""language_codes: which codes name one language, as files, tools and people write them, and which variant of it is asked for.

Old codes, codes of three letters and underscores are one with the codes of BCP 47: `iw` is `he`, `deu` is `de`, `zh_CN` is `zh-CN`, and
`cmn` is `zh`. The aliases, likely scripts and distances are those of Unicode's CLDR, by the library langcodes.
"""

import functools
from collections.abc import Iterable

import langcodes


def same_language(one: str, other: str) -> bool:
    """Whether two codes name one language, whatever script or region they name: `nb-NO` and `no`, `iw` and `he`, `zh-Hant` and `cmn`."""
    return _parsed(one)[0] == _parsed(other)[0]


def of_language(codes: Iterable[str], wanted: str) -> list[str]:
    """Those of the `codes` that name the language of `wanted`, the nearest first, whatever script or region they name."""
    return sorted((code for code in dict.fromkeys(codes) if same_language(code, wanted)), key=lambda code: _distance(code, wanted))


def of_country(codes: Iterable[str], wanted: str) -> str:
    """The one of the `codes` that is spoken in the country with this code, as ja in `jp`; empty where there is none."""
    country = langcodes.Language.make(territory=wanted.upper())
    if len(wanted) != 2 or not wanted.isalpha() or not country.is_valid():
        return ""
    spoken = country.maximize().language or "en"
    # of codes that are no country's it says English
    return "" if spoken == "en" else next(iter(of_language(codes, spoken)), "")


def matching(codes: Iterable[str], wanted: str) -> list[str]:
    """Those of the `codes` that a text in `wanted` may have, the best first.

    A script or region that `wanted` names must be that of the code: `zh-Hant` takes `zh-TW`, not `zh-CN` nor `zh`. Where it names none, all
    variants are taken, and the usual one is first: `zh` takes `zh-CN` before `zh-Hant`.
    """
    return [code for code in of_language(codes, wanted) if _suits(code, wanted)]


def is_other_script(code: str, wanted: str) -> bool:
    """Whether a code names, or implies, another script than that which is usual for `wanted`: `zh-TW` for `zh`."""
    return _likely(code)[1] != _likely(wanted)[1]


def _suits(code: str, wanted: str) -> bool:
    named, likely = _parsed(wanted), _likely(code)
    return all(part in (None, part_of_code) for part, part_of_code in zip(named[1:], likely[1:], strict=True))


@functools.cache
def _distance(code: str, wanted: str) -> tuple[bool, int]:
    """How far a code is from the one that is wanted; the very same code is nearest."""
    try:
        return _plain(code) != _plain(wanted), langcodes.tag_distance(_plain(wanted), _plain(code))
    except ValueError:
        return _plain(code) != _plain(wanted), 0


Parts = tuple[str, str | None, str | None]
"""Language, script and region; None where a code does not name it."""


@functools.cache
def _parsed(code: str) -> Parts:
    """What a code names. One that is no code of BCP 47 is a language of its own."""
    try:
        tag = langcodes.Language.get(langcodes.standardize_tag(_plain(code), macro=True))
    except ValueError:
        return _plain(code), None, None
    return _WHOLE.get(tag.language or "", tag.language or ""), tag.script, tag.territory


@functools.cache
def _likely(code: str) -> Parts:
    """What a code names, with the usual script and region where it names none."""
    language, script, region = _parsed(code)
    try:
        tag = langcodes.Language.make(language=language, script=script, territory=region).maximize()
    except ValueError:
        return language, script, region
    return language, tag.script, tag.territory


_WHOLE = {"nb": "no"}
"""Bokmål is what is mostly written where a text is called Norwegian; CLDR has them apart. Nynorsk keeps its own code."""


def _plain(code: str) -> str:
    return code.strip().replace("_", "-").lower()
