"""The pages of the sample reports, which are of every task: they are made again, and nothing sticks out of a phone."""

import re

import pytest
from test_page import STICKING_OUT

from docs.site import samples
from workflow_scripts.report import pack

# tables that would not scroll, and have neither CSV nor LaTeX; sentences side by side break their lines
BARE = "all => all.filter(table => !table.closest('.wide')).map(table => table.outerHTML.slice(0, 80))"


@pytest.mark.parametrize("path", samples.packs(), ids=lambda path: path.stem)
def test_the_tables_and_the_pages_of_a_sample_are_made_again_and_suit_a_phone(path, browser, tmp_path, capsys):
    pack.rebuild(path, tmp_path / "new", stored=True)
    assert "All tables are the same" in capsys.readouterr().out
    report = tmp_path / "new/rebuilt/report.html"
    text = report.read_text(encoding="utf-8")
    assert "could not be made" not in text and "to search, sort and filter" in text
    explored = sorted((tmp_path / "new/rebuilt/translations").glob("*.html"))
    assert explored
    page = browser.new_page(viewport={"width": 390, "height": 800})
    for file in (report, explored[0]):
        page.goto(file.as_uri())
        page.evaluate("document.querySelectorAll('main details').forEach(each => { each.open = true; })")
        assert page.evaluate(STICKING_OUT) == [] and page.evaluate("document.documentElement.scrollWidth") == 390
    page.goto(report.as_uri())
    assert page.locator("table:not(.pair)").evaluate_all(BARE) == []
    if path.stem == "demo":
        assert len(re.findall(rb"/Type\s*/Page\b", page.pdf(format="A4", prefer_css_page_size=True))) <= 12
    page.close()
