"""ncls: the documents of the NCLS corpora (Zhu et al. 2019), from one file, or from two files joined by the documents' ids.

A document reaches from ``<doc id=…>`` to ``</doc>``, each on a line of its own. In it, texts stand between lines such as ``<Article>`` and
``</Article>``, or on one line with both. The articles may be in a file of another corpus, such as the short texts of LCSTS.
"""

from collections.abc import Iterator
from pathlib import Path

import regex

from workflow_scripts.stage import InputError
from workflow_scripts.text.files import read_lines

Text = str | list[str]
"""The text of a tag, or the sentences of several numbered ones."""


def read(paths: tuple[Path, ...], tags: tuple[str, ...], article: int, complete: bool) -> Iterator[tuple[str, tuple[Text, ...], int]]:
    """Id, both texts and line of each document, from a file and a tag for each of its two sides, which may be the same file.

    A tag `ZH-REF` stands for all tags with this name, with or without a number (``ZH-REF1``, ``ZH-REF2``, … are the sentences of one
    summary). Test sets also have tags that end in ``-human-corrected``; their texts replace those of the tags without this ending.
    With two files, side `article` gives the order. Articles without a summary are left out. Summaries without an article come last, with
    an empty one, unless all must be `complete`.

    Raises:
        InputError: A line is out of place, a document has no such tag, or of two files an id of a summary is empty, another one's, or no
            article's (with `complete`; otherwise: if all are no article's).
    """
    if paths[0] == paths[1]:
        for name, line, texts in _documents(paths[0]):
            yield name, tuple(_tagged(paths[0], line, texts, tag) for tag in tags), line
        return
    summary = 1 - article
    summaries: dict[str, tuple[int, Text]] = {}
    for name, line, texts in _documents(paths[summary]):
        if not name or name in summaries:
            raise InputError(
                f"{paths[summary]}, line {line}: the id {name!r} is empty or another document's; ids join this file and {paths[article]}"
            )
        summaries[name] = line, _tagged(paths[summary], line, texts, tags[summary])
    joined: set[str] = set()
    for name, line, texts in _documents(paths[article]):
        if name in summaries:
            joined.add(name)
            both = _tagged(paths[article], line, texts, tags[article]), summaries[name][1]
            yield name, both if article == 0 else both[::-1], line
    missing = [name for name in summaries if name not in joined]
    if missing and (complete or not joined):
        raise InputError(
            f"{paths[summary]}: {len(missing):,} of its {len(summaries):,} documents have an id that no document of {paths[article]} has, "
            f"such as {missing[0]!r}; name the file that has them" + (", or set documents.empty: remove" if joined else "")
        )
    for name in missing:
        line, text = summaries[name]
        yield name, ("", text) if article == 0 else (text, ""), line


_TAG = regex.compile(r"<(/?)([\w-]+)([^<>]*)>")
_WHOLE = regex.compile(r"<([\w-]+)>(.*)</\1>")


def _documents(path: Path) -> Iterator[tuple[str, int, dict[str, str]]]:
    """Id, first line and tag → text of each document. Raises `InputError` for a line that is out of place."""
    name: str | None = None
    start, tag = 0, ""
    texts: dict[str, str] = {}
    inside: list[str] = []
    for number, line in enumerate(read_lines(path), 1):
        line = line.strip()
        match = _TAG.fullmatch(line)
        closing, what = (bool(match[1]), match[2]) if match else (False, "")
        if tag:
            if closing and what == tag:
                texts[tag], tag = " ".join(filter(None, inside)), ""
            elif what == "doc":
                raise InputError(f"{path}, line {number}: expected </{tag}>, got {line[:60]!r}")
            else:
                inside.append(line)
        elif name is None and match and what == "doc" and not closing:
            name, start, texts = match[3].partition("=")[2].strip(" \"'"), number, {}
        elif name is not None and closing and what == "doc":
            yield name, start, texts
            name = None
        elif name is not None and match and not closing:
            tag, inside = what, []
        elif name is not None and (whole := _WHOLE.fullmatch(line)):
            texts[whole[1]] = whole[2].strip()
        elif line:
            expected = "<doc id=…>" if name is None else "a tag or </doc>"
            raise InputError(f"{path}, line {number}: expected {expected}, got {line[:60]!r}")
    if name is not None:
        raise InputError(f"{path}, line {start}: the document {name} has no end (</{tag or 'doc'}>)")


def _tagged(path: Path, line: int, texts: dict[str, str], name: str) -> Text:
    """The text of tag `name`, or the texts of its numbered or corrected variants. Raises `InputError` if there is none."""
    variants = regex.compile(rf"{regex.escape(name)}(\d*)(-human-corrected)?", regex.IGNORECASE)
    matches = sorted((match[2] or "", int(match[1] or 0), text) for tag, text in texts.items() if (match := variants.fullmatch(tag)))
    # ordered by number; a corrected text comes later and replaces the other one
    in_order = list({number: text for _, number, text in matches}.values())
    if not in_order:
        raise InputError(f"{path}, line {line}: the document has no <{name}>; it has {', '.join(texts) or 'no tags'}")
    return in_order[0] if len(in_order) == 1 else in_order
