"""The pages of the documentation: each link leads to a file and a heading that are there, and the results stand where the index says."""

import re
from pathlib import Path

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
