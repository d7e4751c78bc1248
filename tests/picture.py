"""Makes the README's picture: parts of a finished run's report, as headless Chromium shows them. `make picture` calls it.

python tests/picture.py results/report.html docs/images/report.png
"""

import sys
from pathlib import Path

from browser import launch_options
from playwright.sync_api import sync_playwright

SHOWN = """() => {
  const after = (part, kind) => document.querySelector(`h2[id^="${part}-"] ~ ${kind}`);
  const heads = ["scores", "switched"].map(part => document.querySelector(`h2[id^="${part}-"]`));
  const pair = after("switched", ".pair");
  const row = document.createElement("div");
  row.className = "charts";
  const curve = after("curves", ".charts").children[0];
  curve.style = "flex: 1 1 20rem; min-width: 0";
  row.append(after("scores", ".wide"), curve);
  row.querySelector("caption")?.remove();
  heads[0].after(row);
  const kept = new Set([document.querySelector("h1"), document.querySelector(".headline"), ...heads, row, pair]);
  [...document.querySelector("main").children].forEach(each => kept.has(each) || each.remove());
  document.querySelectorAll(".contents, .tools, .anchor").forEach(each => each.remove());
  document.querySelector("main").style.margin = 0;
  heads.forEach(each => each.style.marginTop = "1.2rem");
  document.body.style.padding = "1.2rem 1.25rem";
}"""
"""Leaves the first experiment's box, its main table with a learning curve beside it, and a switched sentence."""


def main(report: Path, picture: Path) -> None:
    """Write a picture of `report` to `picture`, a PNG of less than 300 kB."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(**launch_options())
        page = browser.new_page(viewport={"width": 1180, "height": 800}, color_scheme="light")
        page.goto(report.resolve().as_uri())
        page.evaluate(SHOWN)
        picture.parent.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=picture, full_page=True)
        browser.close()
    print(f"{picture}: {picture.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
