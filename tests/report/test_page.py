"""The report as its readers meet it: in Chromium, in wide and narrow windows, light and dark, by mouse, by keyboard and on paper."""

import json
import re
import subprocess
import sys
from dataclasses import asdict
from urllib.parse import unquote, urlsplit

import html5lib
import pytest
import test_labels
import warm
from invented import BLEU, configuration, done_again, put, results

SEEDS = (1, 2)
HYPOTHESIS = f"<script>alert(1)</script> & {'Donaudampfschifffahrt' * 12}"

# what sticks out of the window and is in no box that scrolls
STICKING_OUT = """() => [...document.body.querySelectorAll("*")].filter(each => {
  for (let box = each.parentElement; box; box = box.parentElement)
    if (["auto", "scroll"].includes(getComputedStyle(box).overflowX)) return false;
  return each.getBoundingClientRect().right > innerWidth + 1;
}).map(each => each.outerHTML.slice(0, 80))"""

# contrast of each visible text with what is behind it, as WCAG defines it: [ratio, text]
CONTRASTS = """() => {
  const colour = text => text.match(/[\\d.]+/g).map(Number);
  const linear = part => part <= 10.31 ? part / 3294.6 : ((part / 255 + 0.055) / 1.055) ** 2.4;
  const luminance = ([red, green, blue]) => 0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue);
  const behind = box => {
    const [red, green, blue, alpha = 1] = colour(getComputedStyle(box).backgroundColor);
    return alpha === 1 ? [red, green, blue] : behind(box.parentElement);
  };
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), found = [];
  while (texts.nextNode()) {
    const text = texts.currentNode.data.trim(), box = texts.currentNode.parentElement;
    if (!text || !box.checkVisibility() || !box.getClientRects().length) continue;
    const style = getComputedStyle(box);
    const both = [colour(box instanceof SVGElement ? style.fill : style.color), behind(box)].map(luminance);
    found.push([(Math.max(...both) + 0.05) / (Math.min(...both) + 0.05), text]);
  }
  return found;
}"""

# each column of each table that sorts: its cells as they are, and after one and two clicks on its head
SORTED = """() => [...document.querySelectorAll("table:has(th button)")].flatMap(table =>
  [...table.tHead.rows[0].cells].map((head, column) => {
    const rows = [...table.tBodies[0].rows];
    const look = () => ({
      cells: [...table.tBodies[0].rows].map(row => row.cells[column].textContent.trim()),
      order: [...table.tHead.rows[0].cells].map(each => each.getAttribute("aria-sort")),
      whole: rows.every(row => row.parentElement === table.tBodies[0]),
    });
    const click = () => { head.querySelector("button").click(); return look(); };
    return {column, before: look(), looks: [click(), click()]};
  }))"""

# how many points each chart has, and how many numbers the table that it names
CHARTS = """() => [...document.querySelectorAll("svg")].map(chart => {
  const table = document.getElementById(chart.closest("figure").getAttribute("aria-details"));
  const lines = [...chart.querySelectorAll("polyline")].map(line => line.getAttribute("points").split(" ").length);
  const dots = chart.querySelectorAll("circle, .bar").length * (chart.querySelector(".join") ? 2 : 1);
  return {
    role: chart.getAttribute("role"), label: chart.getAttribute("aria-label"), title: chart.querySelector("title").textContent,
    points: lines.reduce((sum, each) => sum + each, 0) || dots,
    numbers: (table?.tBodies[0].innerHTML ?? "").replace(/<[^>]*>/g, " ").match(/\\d+(,\\d{3})*(\\.\\d+)?/g)?.length ?? 0,
  };
})"""

# the page's own words: all visible text, text of charts and generated content, but not the sentences of corpora, which have a language
OWN_WORDS = """() => {
  const own = [...document.body.querySelectorAll("*")].filter(each => !each.closest("[lang]:not(html)") && !each.matches("script, style"));
  const texts = own.flatMap(each => [...each.childNodes].filter(node => node.nodeType === Node.TEXT_NODE).map(node => node.data));
  const generated = own.flatMap(each => ["::before", "::after"].map(part => getComputedStyle(each, part).content));
  return [...texts, ...generated, ...own.flatMap(each => [...each.attributes].map(one => one.value))].join("\\n");
}"""


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """The report on two experiments with two seeds each."""
    folder = tmp_path_factory.mktemp("report")
    root = results(folder / "results", SEEDS, hypothesis=HYPOTHESIS, bleu=lambda arm, seed: BLEU[arm] + seed / 10)
    config = configuration(SEEDS)
    done_again(root, config)
    for stage, seconds in (("codeswitch", 9), ("corpus", 30), ("training", 1234)):
        put(root / f"benchmarks/{stage}/demo.tsv", f"s\th:m:s\tmax_rss\tcpu_time\n{seconds}\t-\t100\t{seconds}\n")
    put(root / "logs/snakemake.log", "  Command: snakemake --cores 2\n")
    (folder / "configuration.json").write_text(json.dumps(asdict(config)), encoding="utf-8")
    paths = {"--results": root, "--html": folder / "report.html", "--scores": folder / "scores.tsv"}
    paths |= {"--configuration": folder / "configuration.json"}
    command = [warm.python(), "-m", "workflow_scripts.report"]
    subprocess.run([*command, *(str(part) for pair in paths.items() for part in pair)], check=True, env=warm.environment())
    return folder / "report.html"


@pytest.fixture
def page(browser, report):
    page = browser.new_page()
    page.goto(report.as_uri())
    yield page
    page.close()


def test_nothing_is_loaded_and_nothing_goes_wrong(browser, report):
    page = browser.new_page()
    requests, troubles = [], []
    page.on("request", lambda request: requests.append(request.url))
    page.on("console", lambda message: troubles.append(message.text))
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.on("dialog", lambda dialog: (troubles.append(dialog.message), dialog.dismiss()))
    page.goto(report.as_uri())
    page.locator("th button, summary, a").evaluate_all("all => all.forEach(each => each.click())")
    page.pdf()
    page.close()
    assert requests == [report.as_uri()] and not troubles


def test_text_with_markup_stays_text(page):
    assert page.get_by_text(HYPOTHESIS).first.is_visible()
    assert page.locator("script").count() == 1 and page.locator("td b").count() == 0


def test_every_link_leads_somewhere(page, report):
    for link in page.locator("a").all():
        target = urlsplit(link.get_attribute("href"))
        if target.path and not target.scheme:
            assert (report.parent / unquote(target.path)).exists(), target.path
        elif target.fragment:
            link.click()
            top = page.evaluate("id => document.getElementById(id)?.getBoundingClientRect().top", target.fragment)
            assert top is not None and -1 <= top < page.viewport_size["height"], target.fragment


def test_tables_sort(page):
    columns = page.evaluate(SORTED)
    assert ["9", "30", "1,234"] in [column["looks"][0]["cells"] for column in columns]
    for column in columns:
        values = sorted(column["before"]["cells"], key=as_number_or_text)
        for look, order in zip(column["looks"], ("ascending", "descending"), strict=True):
            expected = values if order == "ascending" else values[::-1]
            assert [as_number_or_text(cell) for cell in look["cells"]] == [as_number_or_text(cell) for cell in expected]
            assert look["whole"] and [i for i, each in enumerate(look["order"]) if each] == [column["column"]]
            assert look["order"][column["column"]] == order


def test_small_numbers_sort_by_their_exponent(page):
    assert page.evaluate("cells => cells.map(each => value({textContent: each}))", ["5e-05", "0.0001", "2e+3"]) == [5e-05, 0.0001, 2000]


def test_the_smallest_p_comes_first(page):
    cells = ["0.300", "–", "< 0.001", "0.004"]
    page.evaluate(
        """cells => {
          const column = [...document.querySelectorAll("table:has(th button)")].find(table => table.tBodies[0].rows.length >= cells.length);
          cells.forEach((cell, row) => { column.tBodies[0].rows[row].cells[0].textContent = cell; });
          while (column.tBodies[0].rows.length > cells.length) column.tBodies[0].rows[cells.length].remove();
          column.id = "under-test";
          column.tHead.rows[0].cells[0].querySelector("button").click();
        }""",
        cells,
    )
    found = page.locator("#under-test tbody tr").evaluate_all("rows => rows.map(row => row.cells[0].textContent)")
    assert found == ["< 0.001", "0.004", "0.300", "–"]


def as_number_or_text(cell):
    number = re.match(r"[+<\s]*([−-]?[\d,]*\.?\d+)", cell)
    return (0, float(number[1].replace(",", "").replace("−", "-")), "") if number else (1, 0.0, cell.lower())


def test_no_word_of_the_page_needs_a_rare_character(page):
    # sorted both ways, so that the marks of sorted columns are there
    page.locator("th button").evaluate_all("all => all.forEach((each, i) => { each.click(); if (i % 2) each.click(); })")
    words = page.evaluate(OWN_WORDS)
    assert "csr" in words and "−" in words
    # arrows, mathematical operators but the minus, technical signs, geometric shapes, dingbats: many fonts lack them
    assert set(re.findall(r"[\u2190-\u2211\u2213-\u2bff]", words)) == set()


@pytest.mark.parametrize("width", [360, 768, 1440])
def test_sentences_have_most_of_their_tables_width(page, width):
    page.set_viewport_size({"width": width, "height": 900})
    shares = page.locator(".pair td").evaluate_all(
        "all => all.map(each => each.getBoundingClientRect().width / each.closest('table').getBoundingClientRect().width)"
    )
    assert len(shares) > 10 and min(shares) > 0.75


def test_the_keyboard_is_enough(page):
    tab_to(page, "nav a")
    target = page.evaluate("document.activeElement.getAttribute('href')")
    page.keyboard.press("Enter")
    # on a busy machine the page answers later than the call returns
    page.wait_for_function("target => location.hash === target", arg=target)
    tab_to(page, "th button")
    for order in ("ascending", "descending"):
        page.keyboard.press("Enter")
        page.wait_for_function("order => document.activeElement.closest('th').getAttribute('aria-sort') === order", arg=order)
    tab_to(page, "summary")
    page.keyboard.press("Enter")
    page.wait_for_function("document.activeElement.parentElement.open")


def tab_to(page, wanted):
    for _ in range(200):
        page.keyboard.press("Tab")
        if page.evaluate("wanted => document.activeElement.matches(wanted)", wanted):
            assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"
            return
    pytest.fail(f"no {wanted} is reached with the Tab key")


@pytest.mark.parametrize("width", [360, 768, 1440])
def test_nothing_sticks_out_of_the_window(page, width):
    page.set_viewport_size({"width": width, "height": 900})
    assert page.evaluate(STICKING_OUT) == [] and page.evaluate("document.documentElement.scrollWidth") == width


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_text_stands_out_from_what_is_behind_it(page, scheme):
    page.emulate_media(color_scheme=scheme)
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor") != "rgb(255, 255, 255)"
    contrasts = page.evaluate(CONTRASTS)
    assert dark == (scheme == "dark") and len(contrasts) > 500
    assert [(ratio, text) for ratio, text in contrasts if ratio < 4.5] == []


def test_paper_shows_all_but_what_repeats_charts_or_goes_on_and_on(page):
    page.pdf()
    assert page.locator("details:not([open])").count() == 0
    page.emulate_media(media="print")
    # A4 with margins of 1 cm, at 96 dots to the inch
    page.set_viewport_size({"width": 718, "height": 1000})
    assert page.evaluate(STICKING_OUT) == []
    # but for what a reader of paper has no use for: a page of JSON
    assert not page.locator("nav").first.is_visible() and not page.locator(".configuration pre").is_visible()
    assert not page.locator(".tools").evaluate_all("all => all.some(each => each.checkVisibility())")
    assert page.locator("#provenance").is_visible() and page.get_by_text("Versions", exact=True).is_visible()
    assert not page.locator(".off-paper").evaluate_all("all => all.some(each => each.checkVisibility())")
    assert page.locator(".on-paper").is_visible() and page.locator(".pair:not(.off-paper)").count() >= 2
    # browsers leave backgrounds out unless the page asks for them
    assert page.locator("mark").first.evaluate("mark => getComputedStyle(mark).printColorAdjust") == "exact"


# luminance contrast of the colour of each series with the page behind it
SERIES = """() => {
  const style = getComputedStyle(document.documentElement), probe = document.createElement("i");
  document.body.append(probe);
  const colour = text => { probe.style.color = text; return getComputedStyle(probe).color.match(/[\\d.]+/g).map(Number); };
  const linear = part => part <= 10.31 ? part / 3294.6 : ((part / 255 + 0.055) / 1.055) ** 2.4;
  const luminance = ([red, green, blue]) => 0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue);
  const page = luminance(colour(style.getPropertyValue("--page")));
  return [...Array(12).keys()].map(place => {
    const both = [page, luminance(colour(style.getPropertyValue(`--c${place}`)))];
    return (Math.max(...both) + 0.05) / (Math.min(...both) + 0.05);
  });
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_series_stands_out_from_the_page(page, scheme):
    page.emulate_media(color_scheme=scheme)
    assert min(page.evaluate(SERIES)) >= 3


def test_the_contents_stay_in_view_and_open_with_a_button_on_a_phone(page):
    contents = page.locator("#contents a").first
    page.set_viewport_size({"width": 1440, "height": 900})
    page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
    assert contents.is_visible() and page.locator("#contents").evaluate("each => each.getBoundingClientRect().right < 300")
    page.set_viewport_size({"width": 390, "height": 800})
    page.wait_for_function("!document.getElementById('contents').open")
    assert not contents.is_visible()
    page.click("#contents summary")
    page.locator("#contents a").nth(2).click()
    page.wait_for_function("location.hash && !document.getElementById('contents').open")


def test_scores_and_their_tested_differences_are_readable_on_a_phone(page):
    page.set_viewport_size({"width": 390, "height": 800})
    rows = page.locator("table.scores").first.locator("tbody tr")
    for column in (2, 3):
        rights = rows.locator(f"td:nth-child({column})").evaluate_all("all => all.map(each => each.getBoundingClientRect().right)")
        assert rights and max(rights) <= 390
    difference = rows.nth(1).locator("td.against").first.inner_text()
    assert "+1.25" in difference and "95 %" in difference and "p = " in difference
    # the intervals of single arms overlap where the paired test says yes
    assert "95 %" not in rows.nth(1).locator("td:nth-child(2)").inner_text()


def test_a_link_into_what_is_folded_unfolds_it(page):
    assert not page.locator("details:has(> summary #provenance)").evaluate("each => each.open")
    page.evaluate("location.hash = '#provenance'")
    page.wait_for_function("document.querySelector('details:has(> summary #provenance)').open")


def test_tables_are_saved_as_csv_and_latex_and_figures_as_svg(page):
    saved = {}
    for name in ("CSV", "LaTeX", "SVG"):
        place = page.locator("figure .tools button" if name == "SVG" else "table.scores").first
        wanted = place if name == "SVG" else page.locator(".wide:has(table.scores) + .tools button", has_text=name).first
        with page.expect_download() as download:
            wanted.click()
        saved[name] = download.value.path().read_text(encoding="utf-8-sig" if name == "CSV" else "utf-8")
        assert download.value.suggested_filename.endswith({"CSV": ".csv", "LaTeX": ".tex", "SVG": ".svg"}[name])
    lines = saved["CSV"].splitlines()
    assert lines[0].startswith("arm,BLEU,against finetune") and any(line.startswith("csr,") and "21.4" in line for line in lines)
    # with differences, intervals, the legend and the signatures
    assert all(
        part in saved["LaTeX"]
        for part in (r"\begin{tabular}{lrr", r"\caption{German to English", "+1.25", "95 \\%", "% BLEU: b|s", r"$^\dagger$")
    )
    assert "var(--" not in saved["SVG"] and saved["SVG"].startswith("<svg") and 'xmlns="http://www.w3.org/2000/svg"' in saved["SVG"]
    html5lib.parse(saved["SVG"])


def test_a_saved_table_has_a_name_of_its_own_and_numbers_that_programs_read(page):
    names = page.locator(".wide table").evaluate_all("all => all.map(named)")
    assert len(set(names)) == len(names) and names[-1].startswith("Crossgap-demo-again-provenance")
    page.evaluate("location.hash = '#cost'")
    with page.expect_download() as download:
        page.locator("details:has(#cost) .tools button", has_text="CSV").click()
    assert download.value.suggested_filename == "Crossgap-demo-again-cost.csv"
    saved = download.value.path().read_bytes()
    assert saved.startswith(b"\xef\xbb\xbfrule,jobs,seconds") and b",1,1234," in saved
    assert page.evaluate("['\u22120.32 to +1,009', '1,2 and 3', 'a\u2212b'].map(plainly)") == ["-0.32 to +1009", "1,2 and 3", "a\u2212b"]


def test_a_table_is_saved_alike_in_wide_and_narrow_windows(page):
    texts = []
    for width in (1440, 390):
        page.set_viewport_size({"width": width, "height": 800})
        texts.append(page.evaluate("[...document.querySelectorAll('.wide table')].map(table => [asCsv(plainRowsOf(table)), latex(table)])"))
    assert texts[0] == texts[1] and "; seed 2: " in str(texts[0])
    without_head = page.evaluate("latex([...document.querySelectorAll('.wide table')].find(table => !table.tHead))")
    assert r"\midrule" not in without_head and r"\toprule" in without_head


def test_words_are_explained_by_mouse_keyboard_and_finger(page):
    box = page.locator("#meaning")
    term = page.locator(".headline dfn", has_text="baseline").first
    term.hover()
    assert box.inner_text().startswith("The first arm of a run") and term.get_attribute("aria-description") == box.inner_text()
    box.hover()  # what it says can be marked and copied
    assert box.is_visible()
    page.mouse.move(1, 1)
    box.wait_for(state="hidden")
    tab_to(page, "dfn")
    assert box.is_visible()
    page.keyboard.press("Escape")
    assert not box.is_visible()
    # heads of tables sort with the same button
    head = page.locator("thead th button.explained", has_text="chrF").first
    head.focus()
    assert "short sequences of characters" in box.inner_text()
    page.set_viewport_size({"width": 390, "height": 800})
    page.locator("dfn:visible").last.click()
    assert box.is_visible() and page.evaluate(STICKING_OUT) == []
    edges = box.evaluate("each => [each.getBoundingClientRect().left, innerWidth - each.getBoundingClientRect().right]")
    assert min(edges) >= 0
    page.mouse.click(2, 2)
    assert not box.is_visible()
    # one each in a part of the page, none in texts of corpora, commands or links
    first = page.locator(".headline").first.locator("dfn:not(details dfn)").all_text_contents()
    assert len({word.lower().rstrip("s") for word in first}) == len(first) >= 3
    assert page.locator("a dfn, code dfn, pre dfn, svg dfn, tbody dfn, button dfn, [lang]:not(html) dfn").count() == 0


def test_a_tap_explains_a_word_until_another_place_is_tapped(page):
    context = page.context.browser.new_context(has_touch=True, viewport={"width": 390, "height": 800})
    try:
        phone = context.new_page()
        phone.goto(page.url)
        box = phone.locator("#meaning")
        for term in phone.locator(".headline dfn:visible").all():
            term.tap()
            assert box.is_visible() and term.get_attribute("aria-description") == box.inner_text()
        phone.locator("h1").tap()
        assert not box.is_visible()
    finally:
        context.close()


def test_commands_are_copied_by_a_button(page):
    page.evaluate("navigator.clipboard.writeText = async text => { window.copied = text; }")
    button = page.locator(".about .command + .tools button")
    button.click()
    assert page.evaluate("window.copied") == "snakemake --cores 2" and button.text_content() == "copied"


def test_a_name_in_the_legend_hides_its_line(page):
    chart = page.locator("svg:has(.key[role=button])").first
    key = chart.locator(".key").nth(1)
    name = key.get_attribute("data-name")
    line = chart.locator(f'.series[data-name="{name}"]')
    key.click()
    assert key.get_attribute("aria-pressed") == "false" and not line.is_visible()
    key.focus()
    page.keyboard.press("Enter")
    assert key.get_attribute("aria-pressed") == "true" and line.is_visible()


def test_every_head_has_a_scope_and_the_page_a_main_part(page):
    assert page.locator("th:not([scope])").count() == 0 and page.locator("main").count() == 1
    page.keyboard.press("Tab")
    assert (
        page.evaluate("document.activeElement.matches('.skip')")
        and page.locator(".skip").evaluate("each => each.getBoundingClientRect().left") >= 0
    )


def test_charts_have_a_name_and_their_numbers_in_a_table(page):
    charts = page.evaluate(CHARTS)
    assert len(charts) > 10
    for chart in charts:
        assert chart["role"] == "img" and chart["label"] and chart["label"] == chart["title"], chart
        assert 0 < chart["points"] <= chart["numbers"], chart


def test_the_file_is_small_and_valid(page, report):
    assert report.stat().st_size < 5e6
    html5lib.HTMLParser(strict=True).parse(report.read_text(encoding="utf-8"))
    ids = page.locator("[id]").evaluate_all("all => all.map(each => each.id)")
    assert len(ids) == len(set(ids)) > 10


def test_the_picture_of_the_readme(browser, tmp_path):
    """A process of its own, as `make picture` starts it: two Playwrights in one process get into each other's way."""
    subprocess.run([sys.executable, "tests/picture.py", "docs/samples/encoder.zip", tmp_path / "images/report.png"], check=True)
    picture = (tmp_path / "images/report.png").read_bytes()
    assert picture.startswith(b"\x89PNG") and 20_000 < len(picture) < 1_000_000  # by the fonts of this machine


def test_the_page_of_a_classification(browser, tmp_path):
    test_labels.results(tmp_path / "results", (1, 2))
    test_labels.results(tmp_path / "results", (1, 2), name="again")
    test_labels.made(tmp_path, test_labels.configuration((1, 2), ("labels", "again")))
    page = browser.new_page()
    page.goto((tmp_path / "report.html").as_uri())
    for width in (360, 1440):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate(STICKING_OUT) == [] and page.evaluate("document.documentElement.scrollWidth") == width
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        assert [(ratio, text) for ratio, text in page.evaluate(CONTRASTS) if ratio < 4.5] == []
    charts = page.evaluate(CHARTS)
    assert len(charts) == 12 and all(chart["label"] == chart["title"] and 0 < chart["points"] <= chart["numbers"] for chart in charts)
    for column in page.evaluate(SORTED):
        assert all(look["whole"] for look in column["looks"])
    html5lib.HTMLParser(strict=True).parse(page.content())
    page.close()
