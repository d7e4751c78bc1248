"""entities: characters that a file writes as entities of HTML, ``&quot;`` for ``"``, as files made from web pages often do."""

import html
from collections import Counter

import regex

CHANGED = "HTML entity read as its character"
"""What the reports call it."""
_ENTITY = regex.compile(r"&(#\d+|#[xX][0-9a-fA-F]+|[A-Za-z][A-Za-z0-9]*);")


def read_entities(text: str, changed: Counter[str]) -> str:
    """`text` with its entities as characters (`as_characters`); counts in `changed` if there was one.

    White space becomes a blank, so that no text is broken into lines; a text that is nothing else is left as it is.
    """
    if (plain := as_characters(text)) == text:
        return text
    changed[CHANGED] += 1
    return " ".join(plain.split()) or text


def as_characters(text: str) -> str:
    """`text` with its entities as the characters that they stand for.

    An ampersand without its semicolon, as in ``AT&T``, is left alone, and so is a name that HTML does not know.
    """
    return _ENTITY.sub(lambda found: html.unescape(found[0]), text) if "&" in text else text
