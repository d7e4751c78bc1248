"""Makes the README's picture: parts of a sample report, as headless Chromium shows them. `make picture` calls it.

python tests/picture.py docs/samples/encoder.zip docs/images/report.png
"""

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from browser import launch_options
from playwright.sync_api import sync_playwright

from docs.site import samples

SHOWN = """() => {
  const head = document.querySelector('h2[id^="scores-"]');
  const after = (part, kind) => document.querySelector(`h2[id^="${part}-"] ~ ${kind}`);
  const row = document.createElement("div");
  row.className = "charts";
  const [table, curve] = [after("scores", ".wide"), after("curves", ".charts").children[0]];
  curve.style = "flex: 1 1 20rem; min-width: 0; max-width: none";
  table.querySelector("table").style.minWidth = "38rem";
  table.querySelector("caption")?.remove();
  row.append(table, curve);
  head.after(row);
  const about = [...document.querySelectorAll("h1 ~ p")].slice(0, 2);
  const kept = new Set([document.querySelector("h1"), ...about, document.querySelector(".headline"), head, row]);
  [...document.querySelector("main").children].forEach(each => kept.has(each) || each.remove());
  document.querySelectorAll(".contents, .tools, .anchor").forEach(each => each.remove());
  document.querySelector("main").style.margin = 0;
  head.style.marginTop = "1.2rem";
  document.body.style.padding = "1.2rem 1.25rem";
}"""
"""Leaves the title, the first experiment's box, and its main table with a learning curve beside it."""


def main(pack: Path, picture: Path) -> None:
    """Write a picture of the report of `pack` to `picture`, a PNG of less than 300 kB."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        samples.render(pack.resolve(), Path(folder) / "page")
        browser = playwright.chromium.launch(**launch_options())
        page = browser.new_page(viewport={"width": 1180, "height": 800}, color_scheme="light")
        page.goto((Path(folder) / "page/report.html").as_uri())
        page.evaluate(SHOWN)
        picture.parent.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=picture, full_page=True)
        browser.close()
    print(f"{picture}: {picture.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
