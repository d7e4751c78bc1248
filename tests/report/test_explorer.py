"""The pages with all sentences of a test set, as their readers meet them in Chromium."""

import csv
import json
import subprocess
from dataclasses import asdict

import html5lib
import pytest
import warm
from invented import configuration, results, study_of
from test_page import CONTRASTS, STICKING_OUT

from workflow_scripts.report import explorer
from workflow_scripts.report.rendering import templates

SOURCES = [
    "Öffnen Sie die Datei.",
    "Klicken Sie </script><script>alert(1)</script> <b>hier</b>.",
    "Das <!-- Fenster &amp; schließt.",
    "Nein",
]
REFERENCES = ["Open the file.", "Click </script><b>here</b> & now.", "The window <!-- closes.", "No"]
WRITTEN = {
    "finetune": ["Open a file.", "Click there.", "The window <!-- closes.", "No"],
    "csr": ["Open the file file.", "Click </script><b>here</b> & now.", "A window.", "No"],
    "mask": ["x", "<img src=x onerror=alert(2)>", "\u2028y", "Donaudampfschifffahrtsgesellschaft" * 9],
    "random": ["", "", "", ""],
}


def written(folder):
    """Results with the texts above, and their configuration."""
    root = results(folder / "results")
    for code, lines in (("de", SOURCES), ("en", REFERENCES)):
        put(root / f"corpora/help.de-en/test/pages.{code}", lines)
    for arm, lines in WRITTEN.items():
        put(root / f"runs/demo/{arm}/seed1/pages.hyp", lines)
    config = configuration()
    (folder / "configuration.json").write_text(json.dumps(asdict(config)), encoding="utf-8")
    return root, config


def put(path, lines):
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    folder = tmp_path_factory.mktemp("explored")
    root, _ = written(folder)
    paths = {"--results": root, "--html": folder / "report.html", "--scores": folder / "scores.tsv"}
    paths |= {"--configuration": folder / "configuration.json", "--translations": folder / "translations"}
    command = [warm.python(), "-m", "workflow_scripts.report", *(str(part) for pair in paths.items() for part in pair)]
    subprocess.run(command, check=True, env=warm.environment())
    assert 'href="translations/demo.pages.html"' in (folder / "report.html").read_text(encoding="utf-8")
    return folder / "translations/demo.pages.html"


@pytest.fixture
def page(browser, file):
    page = browser.new_page()
    page.troubles = []
    page.on("console", lambda message: page.troubles.append(message.text))
    page.on("pageerror", lambda error: page.troubles.append(str(error)))
    page.on("dialog", lambda dialog: (page.troubles.append(dialog.message), dialog.dismiss()))
    page.on("request", lambda request: page.troubles.append(request.url) if request.url != file.as_uri() else None)
    page.goto(file.as_uri())
    yield page
    assert page.troubles == []
    page.close()


def lines(page):
    """The numbers of the sentences that are shown, in their order."""
    return [int(said.split()[1].rstrip(":")) for said in page.locator("#rows caption").all_text_contents()]


def cells(page, line):
    """What each row of a sentence says, by its head without the score."""
    table = page.locator("#rows table").nth(lines(page).index(line))
    heads, texts = (table.locator(part).all_text_contents() for part in ("th", "td"))
    return {head.split()[0]: text for head, text in zip(heads, texts, strict=True)}


def test_text_with_markup_stays_text(page, file):
    page.select_option("#sort", "line")
    for line in range(1, 5):
        found = cells(page, line)
        assert (found["source"], found["reference"]) == (SOURCES[line - 1], REFERENCES[line - 1])
        assert {arm: found[arm] for arm in WRITTEN} == {arm: texts[line - 1] for arm, texts in WRITTEN.items()}
    assert page.locator("script").count() == 2 and page.locator("#rows b, #rows img").count() == 0
    html5lib.HTMLParser(strict=True).parse(file.read_text(encoding="utf-8"))


def test_it_sorts(page):
    assert page.locator("#mine").input_value() == "csr" and page.locator("#theirs").input_value() == "finetune"
    orders = {}
    for name in ("line", "gap", "loss", "length"):
        page.select_option("#sort", name)
        orders[name] = lines(page)
    assert orders["line"] == [1, 2, 3, 4] and orders["gap"][-1] == 3 and orders["loss"][0] == 3
    # 2 and 4 words, and equal ones by their place
    assert orders["length"] == [2, 1, 3, 4]


def test_it_filters(page):
    page.select_option("#sort", "line")
    shown = {}
    for name in ("better", "worse", "equal", "all"):
        page.select_option("#show", name)
        shown[name] = lines(page)
    assert shown["all"] == [1, 2, 3, 4] and 3 in shown["worse"] and 2 in shown["better"] and shown["equal"] == [4]
    counts = page.locator("#counts").text_content()
    assert (
        counts.startswith("4 of 4 sentences.")
        and f"better than finetune in {len(shown['better'])}, worse in {len(shown['worse'])}" in counts
    )
    page.select_option("#mine", "finetune")
    assert page.locator("#counts").text_content().endswith("equal in 4.")


@pytest.mark.parametrize(
    ("wanted", "found"),
    [("DATEI", [1]), ("window", [3]), ("</script>", [2]), ("donaudampf", [4]), ("  no  ", [2, 4]), ("nowhere", []), ("", [1, 2, 3, 4])],
)
def test_it_searches_all_lines(page, wanted, found):
    page.select_option("#sort", "line")
    page.fill("#search", wanted)
    page.wait_for_function("said => document.getElementById('counts').textContent.startsWith(said)", arg=f"{len(found)} of 4 sentences.")
    assert lines(page) == found
    # Enter loads nothing anew
    page.press("#search", "Enter")
    assert page.locator("#search").input_value() == wanted


def test_it_filters_by_length_rare_words_and_size_of_the_difference(page):
    page.select_option("#sort", "line")
    for field, value, found in (("shortest", "3", [1, 2, 3]), ("longest", "1", [4]), ("rare", "99", []), ("least", "1000", [])):
        page.fill(f"#{field}", value)
        assert lines(page) == found, field
        page.fill(f"#{field}", "")
    assert lines(page) == [1, 2, 3, 4]


def test_words_of_the_reference_that_no_arm_has_are_marked(page):
    page.select_option("#sort", "line")
    table = page.locator("#rows table").nth(0)
    assert table.locator("em.missed").all_text_contents() == []
    assert page.locator("#rows table").nth(2).locator("em.missed").all_text_contents() == []


def marks(page, line, arm):
    table = page.locator("#rows table").nth(lines(page).index(line))
    return table.locator("tr").filter(has=page.locator("th", has_text=arm)).locator("i.wrong").all_text_contents()


def test_words_that_are_not_in_the_reference_are_marked(page):
    assert marks(page, 1, "finetune") == ["a"]
    # once there, twice written
    assert marks(page, 1, "csr") == ["file"]
    assert marks(page, 2, "csr") == [] and marks(page, 2, "finetune") == ["there"]


def test_scripts_without_spaces_and_vowel_signs(page):
    found = page.evaluate(
        """pairs => pairs.map(([text, reference]) => {
          const box = document.createElement("p");
          box.append(marked(text, reference));
          return [box.textContent === text, [...box.querySelectorAll("i")].map(each => each.textContent)];
        })""",
        [
            ["我喜欢绿苹果。", "我喜欢红苹果。"],
            ["हिन्दी में लिखा", "हिन्दी में पढ़ा"],
            ["ฉันรักแมว", "ฉันรักหมา"],
            ["cafe\u0301 noir", "cafe\u0301 blanc"],
        ],
    )
    assert all(whole for whole, _ in found)
    assert found[0][1] == ["绿"] and found[1][1] == ["लिखा"] and found[3][1] == ["noir"]


@pytest.mark.parametrize("width", [390, 1440])
def test_nothing_sticks_out_of_the_window(page, width):
    page.set_viewport_size({"width": width, "height": 800})
    assert page.evaluate(STICKING_OUT) == [] and page.evaluate("document.documentElement.scrollWidth") == width


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_text_stands_out_from_what_is_behind_it(page, scheme):
    page.emulate_media(color_scheme=scheme)
    contrasts = page.evaluate(CONTRASTS)
    assert len(contrasts) > 60 and [(ratio, text) for ratio, text in contrasts if ratio < 4.5] == []


def test_more_are_shown_when_they_are_asked_for(browser, tmp_path):
    root, config = written(tmp_path)
    for code in ("de", "en"):
        put(root / f"corpora/help.de-en/test/pages.{code}", [f"line {n}" for n in range(120)])
    for arm in WRITTEN:
        put(root / f"runs/demo/{arm}/seed1/pages.hyp", [f"line {n}" for n in range(120)])
    (name,) = explorer.write_explorer(study_of(root, config), templates(config), tmp_path)
    page = browser.new_page()
    page.goto((tmp_path / name).as_uri())
    for shown in (50, 100, 120):
        assert len(lines(page)) == shown and page.locator("#more").is_visible() == (shown < 120)
        if shown < 120:
            page.click("#more")
    page.close()


def test_a_page_has_a_limit_of_bytes(tmp_path, monkeypatch):
    root, config = written(tmp_path)
    monkeypatch.setattr(explorer, "MOST_BYTES", 400)
    study = study_of(root, config)
    shown = explorer.sentences(study, "pages")
    assert 0 < len(shown["data"]["rows"]) < 4 and shown["left_out"] == 4 - len(shown["data"]["rows"])
    (name,) = explorer.write_explorer(study, templates(config), tmp_path)
    assert f"{shown['left_out']} more would make the page too large" in (tmp_path / name).read_text(encoding="utf-8")


def with_two_seeds(folder, second):
    """The study of the texts above with two seeds: with the second, an arm wrote what stands in `second`, or the same as with the first."""
    root, config = results(folder / "results", (1, 2)), configuration((1, 2))
    for code, lines in (("de", SOURCES), ("en", REFERENCES)):
        put(root / f"corpora/help.de-en/test/pages.{code}", lines)
    for arm, lines in WRITTEN.items():
        put(root / f"runs/demo/{arm}/seed1/pages.hyp", lines)
        put(root / f"runs/demo/{arm}/seed2/pages.hyp", second.get(arm, lines))
    return study_of(root, config), config


def test_arms_are_compared_by_the_mean_over_seeds_or_with_one_seed(browser, tmp_path):
    study, config = with_two_seeds(tmp_path, {"csr": ["Open the file.", *WRITTEN["csr"][1:]], "finetune": REFERENCES})
    (name,) = explorer.write_explorer(study, templates(config), tmp_path)
    page = browser.new_page()
    troubles = []
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.goto(f"{(tmp_path / name).as_uri()}#line=1")
    first = page.locator("#rows table").first
    shown = dict(zip(first.locator("th").all_inner_texts(), first.locator("td").all_inner_texts(), strict=True))
    scores = page.evaluate("rows[0][5]")
    assert [*shown][2:6] == [
        *(f"finetune {scores[place]:.1f}\nseed {seed}" for place, seed in ((0, 1), (4, 2))),
        *(f"csr {scores[place]:.1f}\nseed {seed}" for place, seed in ((1, 1), (5, 2))),
    ]
    # equal outputs stand once
    assert [head for head in shown if head.startswith("mask")] == [f"mask {scores[2]:.1f}"]
    gaps = {"": (scores[1] + scores[5] - scores[0] - scores[4]) / 2, "1": scores[1] - scores[0], "2": scores[5] - scores[4]}
    grams = set()
    for seed, gap in gaps.items():
        page.select_option("#seed", seed)
        assert page.evaluate("gapOf(rows[0])") == pytest.approx(gap)
        assert page.url.endswith(f"#line=1&seed={seed}" if seed else "#line=1")
        head, row = page.evaluate("asTable()")
        assert head[-1] == f"csr \u2212 finetune{'' if seed else ', mean over seeds'}" and float(row[-1]) == pytest.approx(gap, abs=1e-3)
        assert ("csr, seed 2" in head) == (not seed) and ("csr" in head) == bool(seed)
        grams.add(page.locator("#ngrams").text_content())
    assert len(grams) == 3 and abs(gaps["2"]) < 1e-9 < gaps["1"]
    page.select_option("#seed", "2")
    page.fill("#line", "")
    page.select_option("#show", "equal")
    assert 1 in lines(page) and troubles == []
    page.close()


def test_a_page_has_the_seeds_that_are_there_and_fit(tmp_path, monkeypatch):
    study, config = with_two_seeds(tmp_path, {})
    both = explorer.sentences(study, "pages")
    assert both["seeds"] == [1, 2] and len(both["data"]["rows"][0][4]) == 8
    size = sum(len(json.dumps(row, ensure_ascii=False).encode()) for row in both["data"]["rows"])
    monkeypatch.setattr(explorer, "MOST_BYTES", size - 1)
    first = explorer.sentences(study, "pages")
    assert (first["seeds"], first["left_out"], len(first["data"]["rows"][0][4])) == ([1], 0, 4)
    (name,) = explorer.write_explorer(study, templates(config), tmp_path)
    assert "Without seed 2, as the page would be too large" in (tmp_path / name).read_text(encoding="utf-8")
    monkeypatch.undo()
    (study.seed("mask", 2) / "pages.hyp").unlink()
    explorer.write_explorer(study, templates(config), tmp_path)
    text = (tmp_path / name).read_text(encoding="utf-8")
    assert "Without seed 2, since not all answers are there" in text and 'id="seed"' not in text


def test_passages_count_towards_the_limit_once_and_only_those_of_shown_questions_are_kept(monkeypatch):
    monkeypatch.setattr(explorer, "MOST_BYTES", 1000)
    rows = [[line, ["Who?", place], ["a", []], [], []] for line, place in enumerate((0, 0, 1, 0, 2, 3), 1)]
    kept, passages = explorer.that_fit(rows, ["x" * 400, "y" * 400, "z" * 400, "unread"])
    assert (kept, passages) == (rows[:4], ["x" * 400, "y" * 400])


def test_outputs_that_cannot_be_read_have_no_page(tmp_path):
    root, config = written(tmp_path)
    put(root / "runs/demo/csr/seed1/pages.hyp", ["one line"])
    assert explorer.write_explorer(study_of(root, config), templates(config), tmp_path) == []


def asked(page, said):
    """Waits until the page says how many sentences it found."""
    page.wait_for_function("said => document.getElementById('counts').textContent.startsWith(said)", arg=said)


def test_the_search_knows_letters_with_accents_in_both_forms_and_looks_in_one_column(page):
    page.select_option("#sort", "line")
    page.fill("#search", "o\u0308ffnen")  # as a Mac's file names and PDFs write it
    asked(page, "1 of 4")
    assert lines(page) == [1]
    assert page.locator("#in option").all_text_contents() == ["any text", "source", "reference", *WRITTEN]
    page.fill("#search", "file")
    asked(page, "1 of 4")
    for column, found in (("source", []), ("reference", [1]), ("csr", [1]), ("mask", [])):
        page.select_option("#in", label=column)
        assert lines(page) == found, column
    marks = "text => { const box = document.createElement('p'); box.append(marked(text, 'Öl')); return box.querySelectorAll('i').length; }"
    assert page.evaluate(marks, "O\u0308l") == 0


def test_the_address_says_what_is_asked_and_a_sentence_has_one(browser, page, file):
    page.select_option("#sort", "line")
    page.select_option("#theirs", "mask")
    page.fill("#search", "Sie")
    asked(page, "2 of 4")
    sent = page.url
    assert sent == f"{file.as_uri()}#search=Sie&theirs=mask&sort=line"
    page.locator("#rows caption a").nth(1).click()
    asked(page, "1 of 4")
    assert lines(page) == [2] and page.url == f"{file.as_uri()}#line=2&theirs=mask"
    page.go_back()
    asked(page, "2 of 4")
    other = browser.new_page()
    other.goto(sent)
    assert lines(other) == [1, 2] and other.locator("#search").input_value() == "Sie" and other.locator("#theirs").input_value() == "mask"
    other.goto(f"{file.as_uri()}#theirs=nobody&line=3")
    asked(other, "1 of 4")
    assert lines(other) == [3] and other.locator("#theirs").input_value() == "finetune"
    other.close()
    page.fill("#search", "")
    page.select_option("#theirs", "finetune")
    page.select_option("#sort", "gap")
    page.wait_for_function("!location.hash")


def test_what_is_found_is_saved_as_csv(page):
    page.select_option("#sort", "line")
    page.fill("#longest", "3")
    with page.expect_download() as download:
        page.click("#csv")
    assert download.value.suggested_filename == "demo.pages.csv"
    with open(download.value.path(), encoding="utf-8-sig", newline="") as saved:
        head, *body = csv.reader(saved)
    scores = [f"score of {arm}" for arm in WRITTEN]
    assert head == ["line", "source", "reference", *WRITTEN, "rare words", *scores, "csr \u2212 finetune"]
    assert [row[:4] for row in body] == [[str(n), SOURCES[n - 1], REFERENCES[n - 1], WRITTEN["finetune"][n - 1]] for n in (1, 3, 4)]
    assert body[2][-5:] == ["100", "100", body[2][-3], "0", "0"]


def test_ngrams_are_of_the_two_arms_that_are_compared(page):
    def shown():
        tables = page.locator("#ngrams table")
        return {table.locator("caption").text_content(): table.locator("tbody th").all_text_contents() for table in tables.all()}

    assert "Click </script><b>here</b>" not in shown() and [*shown()] == ["csr more often than finetune", "finetune more often than csr"]
    assert "the window" in [gram.lower() for gram in shown()["finetune more often than csr"]]
    page.select_option("#theirs", "mask")
    assert [*shown()] == ["csr more often than mask", "mask more often than csr"] and shown()["mask more often than csr"] == []
    page.select_option("#theirs", "csr")
    assert shown() == {}
