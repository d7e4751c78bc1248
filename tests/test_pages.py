"""The pages of the documentation: each link leads to a file and a heading that are there, and the results stand where the index says."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted(path for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), ROOT / "resources/README.md"])


def prose(path: Path) -> str:
    """A page without its blocks of code, in which nothing is a link."""
    return re.sub(r"^ *```.*?^ *```", "", path.read_text(encoding="utf-8"), flags=re.M | re.S)


def anchors(path: Path) -> set[str]:
    """The anchors that GitHub gives a page's headings: small letters, digits and hyphens, numbered where a heading comes again."""
    found: list[str] = []
    for heading in re.findall(r"^#{1,6} +(.*?) *$", prose(path), flags=re.M):
        shown = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        found.append(re.sub(r"[^\w\- ]", "", shown.lower()).replace(" ", "-"))
    return {anchor if n == 0 else f"{anchor}-{n}" for i, anchor in enumerate(found) for n in [found[:i].count(anchor)]}


def broken(path: Path) -> list[str]:
    """Targets of a page's links that are not there."""
    wrong = []
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(path)):
        if re.match(r"https?:|mailto:", target):
            continue
        name, _, anchor = target.partition("#")
        there = (path.parent / name).resolve() if name else path
        if not there.exists() or (anchor and anchor not in anchors(there)):
            wrong.append(target)
    return wrong


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    assert broken(page) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_tables_stand_between_empty_lines(page):
    """A line of text right behind a table would be a row of it."""
    table = re.compile(r" *\|")
    lines = prose(page).splitlines()
    glued = [pair for pair in zip(lines, lines[1:], strict=False) if all(pair) and len({bool(table.match(line)) for line in pair}) > 1]
    assert glued == []


def test_a_broken_link_is_seen(tmp_path):
    (tmp_path / "a.md").write_text("# A: *one* way\n\n## Twice\n\n## Twice\n", encoding="utf-8")
    page = tmp_path / "b.md"
    page.write_text("[a](a.md#a-one-way) [b](a.md#twice-1) [c](a.md#b) [d](c.md) [e](#here)\n```\n[f](f.md)\n```\n", encoding="utf-8")
    assert broken(page) == ["a.md#b", "c.md", "#here"]


def test_each_page_of_results_begins_with_its_row_of_the_index():
    rows = re.findall(r"^\| (.*) \| (.*) \| \[.*\]\(results/(.*)\) \|$", (ROOT / "docs/results.md").read_text(encoding="utf-8"), flags=re.M)
    assert sorted(name for *_, name in rows) == sorted(path.name for path in (ROOT / "docs/results").glob("*.md"))
    for question, answer, name in rows:
        page = without_links((ROOT / "docs/results" / name).read_text(encoding="utf-8"))
        assert page.startswith(f"# {question}\n\n**{answer[0].upper()}{without_links(answer[1:])}.**"), name


def without_links(text: str) -> str:
    """A text in Markdown with the words of its links alone."""
    return re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", text)


MOST_WORDS = 1_200
"""How many words README has at most, so that it is read in five minutes."""
MOST_WORDS_OF_A_VERSION, MOST_WORDS_OF_A_CHANGE = 3_000, 45
"""How many words a page of the changelog has at most, and one of its changes."""
LONGEST_SENTENCE = 25
"""How many words a sentence has at most, so that a reader who is not a native speaker understands it at once."""
PLAIN = [path for path in PAGES if "samples" not in path.parts]
"""The pages that people read: all but the list of samples, whose facts and licences are of the samples."""


def sentences(page: str) -> list[str]:
    """The sentences of a page, and its headings and cells of tables; each piece of code is a word. Lists of links, with " · ", stay out."""
    text = re.sub(r"`[^`]*`", "code", re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", without_links(page))).replace("**", "")
    blocks = re.split(r"\n\s*\n|\n(?=[-#|])|(?<=\S)\s*\|", text)
    found = [
        sentence for block in blocks for sentence in re.split(r"(?<=[.!?:])[)*\"]*\s+", " ".join(block.replace("et al.", "et al").split()))
    ]
    return [sentence for sentence in found if " · " not in sentence]


def test_readme_is_read_in_five_minutes():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").split()) <= MOST_WORDS


@pytest.mark.parametrize("page", sorted((ROOT / "docs/changelog").glob("*.md")), ids=lambda path: path.stem)
def test_a_version_is_read_in_a_quarter_of_an_hour_and_each_change_in_a_moment(page):
    text = page.read_text(encoding="utf-8")
    assert len(text.split()) <= MOST_WORDS_OF_A_VERSION, "shorten: details belong to the pages that a line leads to"
    changes = re.findall(r"^- (.*(?:\n  .*)*)", text, flags=re.M)
    assert [change for change in changes if len(change.split()) > MOST_WORDS_OF_A_CHANGE] == []


@pytest.mark.parametrize("page", PLAIN, ids=lambda path: str(path.relative_to(ROOT)))
def test_sentences_are_short(page):
    assert long_sentences(prose(page)) == []


def test_settings_are_explained_in_short_sentences():
    """What the reference of the configuration, `--help` and an editor show of each setting and block."""
    explained = set(descriptions(json.loads((ROOT / "config/schema.json").read_text(encoding="utf-8"))))
    assert len(explained) > 300
    assert [long for text in sorted(explained) for long in long_sentences(text)] == []


def descriptions(schema: Any) -> Iterator[str]:
    """All descriptions in a JSON schema, at any depth."""
    if isinstance(schema, dict) and isinstance(schema.get("description"), str):
        yield schema["description"]
    for part in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        yield from descriptions(part)


def long_sentences(text: str) -> list[str]:
    """The sentences of a text in Markdown that have too many words."""
    return [one for one in sentences(text) if len(one.split()) > LONGEST_SENTENCE]


def test_a_long_sentence_is_seen(tmp_path):
    page = tmp_path / "a.md"
    page.write_text(
        "# A\n\n(**One** `a b c` [two words](x.md).)\nThree more words here\n\n- " + "long " * 26 + "\n\n| a | b |\n", encoding="utf-8"
    )
    assert [len(one.split()) for one in sentences(prose(page)) if one.strip(" |")] == [2, 4, 4, 27, 1, 1]


def test_pages_use_everyday_words():
    odd = re.compile(r"\b(is|are|was|were|be) told\b|\btold apart\b|\blooked into\b|\b(is|are|was|were|be) had\b")
    assert {path.name: odd.findall(prose(path)) for path in PLAIN if odd.search(prose(path))} == {}
