"""Pages with all examples of tasks with labels, tags, spans, ranks and neighbours, as their readers meet them in Chromium."""

from dataclasses import replace

import numpy as np
import pytest
import test_search_results
from test_page import CONTRASTS, STICKING_OUT

from workflow_scripts.report import explorer, predictions
from workflow_scripts.report.rendering import templates
from workflow_scripts.report.study import configured
from workflow_scripts.run.config import load
from workflow_scripts.tasks.plan import Plans
from workflow_scripts.text.examples import Example, write_table
from workflow_scripts.text.files import write_lines
from workflow_scripts.text.questions import write_spans

PASSAGE = "😀 The house stands in Rome, by the river."
OF = {
    "classification": (
        {"unit": "text", "labels": ["yes", "<no>"]},
        [
            Example("yes", "It <b>is</b> so.", "Really?"),
            Example("<no>", "Never.", "Or &amp; sometimes."),
            Example("yes", "Three more words", ""),
        ],
        {"plain": ["yes", "yes", "<no>"], "other": ["yes", "<no>", "<no>"]},
    ),
    "labelling": (
        {"unit": "word", "labels": ["DET", "NOUN", "VERB"]},
        [Example("DET NOUN VERB", "The house stands", ""), Example("NOUN VERB", "Birds sing", "")],
        {"plain": ["DET NOUN NOUN", "NOUN VERB"], "other": ["NOUN NOUN NOUN", "NOUN VERB"]},
    ),
    "answering": (
        {"unit": "question"},
        [Example(write_spans([(22, 26), (6, 11)]), "Where?", PASSAGE), Example(write_spans([(6, 11)]), "What?", PASSAGE)],
        {"plain": ["22:26\tRome", "22:26\tRome"], "other": ["19:26\tin Rome", "6:11\thouse"]},
    ),
    "ranking": (
        {"unit": "query", "labels": ["0", "1", "2"]},
        [Example(grade, "Who?", f"document {name}", query="q1") for grade, name in (("0", "a"), ("2", "b"), ("1", "c"), ("0", "d"))],
        {"plain": ["3", "2", "1", "0"], "other": ["0", "3", "2", "1"]},
    ),
}
"""Task → its labelled text, examples, and the lines of answers of two arms."""


def study_of(task, folder, language="en", seeds=(1,)):
    """The study of a small experiment, and its configuration; of the results there are tables and answers alone."""
    block, examples, answers = OF[task]
    columns = {"labelling": {"word": 1, "tag": 2}, "answering": {}}.get(task, {"text": 1, "pair": 2, "label": 3})
    kind = "json" if task == "answering" else "tsv"
    parts = {part: {"file": f"{part}.{kind}", **({"columns": columns} if columns else {})} for part in ("train", "dev", "test")}
    config = load(
        {
            "run": {"experiments": ["x"], "arms": [*answers], "seeds": [*seeds]},
            "corpora": {},
            "lexicons": {},
            "labelled": {"texts": {"language": language, **block, **parts, "test": {"en": parts["test"]}}},
            "backbones": {"small": {"kind": "hub", "model": "somebody/mbart"}},
            "arms": {arm: [{"data": "task", "epochs": 1}] for arm in answers},
            "experiments": {"x": {"task": task, "corpus": "texts", "backbone": "small"}},
        }
    )
    study = configured(folder / "results", Plans(config).experiments["x"])
    table = study.corpus / f"test/en.{language}.tsv"
    table.parent.mkdir(parents=True)
    write_table(table, examples)
    for seed, turned in zip(seeds, (False, True), strict=False):
        # with the second seed the arms change places
        for arm, lines in zip(answers, [*answers.values()][:: -1 if turned else 1], strict=True):
            (study.seed(arm, seed) / "predictions").mkdir(parents=True)
            write_lines(study.seed(arm, seed) / "predictions/en.hyp", lines)
    return study, config


@pytest.fixture
def opened(browser, tmp_path):
    """Opens the page of a task; it may load nothing, and say nothing on the console."""
    pages, troubles = [], []

    def open_page(study, config):
        (name,) = explorer.write_explorer(study, templates(config), tmp_path)
        page = browser.new_page()
        page.on("console", lambda message: troubles.append(message.text))
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("request", lambda request: troubles.append(request.url) if not request.url.endswith(name) else None)
        page.goto((tmp_path / name).as_uri())
        pages.append(page)
        return page

    yield open_page
    for page in pages:
        page.close()
    assert troubles == []


def rows(page):
    """Head and text of every row of each example that is shown."""
    tables = page.locator("#rows table").all()
    return [
        [(row.locator("th").inner_text(), row.locator("td").all_inner_texts()) for row in table.locator("tr").all()] for table in tables
    ]


def test_labels_have_a_confusion_matrix_whose_cells_show_their_examples(opened, tmp_path):
    page = opened(*study_of("classification", tmp_path))
    page.select_option("#sort", "line")
    first, second, third = rows(page)
    assert first[:3] == [("text", ["It <b>is</b> so."]), ("second text", ["Really?"]), ("right", ["yes"])]
    assert third == [("text", ["Three more words"]), ("right", ["yes"]), ("plain 0", ["<no>"]), ("other 0", ["<no>"])]
    assert page.locator("#rows mark").all_text_contents() == ["yes", "<no>", "<no>"]
    assert page.locator("#counts").text_content() == "3 of 3 texts. Of all, other is better than plain in 1, worse in 0, equal in 2."
    for shown, count in (("right", 2), ("wrong", 1), ("none", 1), ("better", 1), ("all", 3)):
        page.select_option("#show", shown)
        assert len(rows(page)) == count, shown
    cells = page.locator("#confusion tbody tr").all()
    assert [row.locator("td").all_text_contents() for row in cells] == [["1", "1"], ["", "1"]]
    assert page.locator("#by-label tbody tr").first.locator("td").all_text_contents() == ["2", "50.0", "50.0"]
    cells[0].locator("button").nth(1).click()
    assert [row[-1] for row in rows(page)] == [("other 0", ["<no>"])]
    page.select_option("#mine", "plain")
    assert [row.locator("td").all_text_contents() for row in page.locator("#confusion tbody tr").all()] == [["1", "1"], ["1", ""]]


def test_tags_stand_below_their_words_where_they_are_wrong(opened, tmp_path):
    page = opened(*study_of("labelling", tmp_path))
    page.select_option("#sort", "line")
    assert rows(page)[0] == [
        ("words", ["The", "house", "stands"]),
        ("right", ["DET", "NOUN", "VERB"]),
        ("plain 66.7", ["", "", "NOUN"]),
        ("other 33.3", ["NOUN", "", "NOUN"]),
    ]
    for wanted in ("house stands", "housestands"):  # as scripts without blanks are written
        page.fill("#search", wanted)
        page.wait_for_function("document.getElementById('counts').textContent.startsWith('1 of 2 sentences.')")
    page.fill("#search", "")
    page.wait_for_function("document.getElementById('counts').textContent.startsWith('2 of 2 sentences.')")
    page.fill("#longest", "2")
    assert len(rows(page)) == 1
    page.fill("#longest", "")
    page.select_option("#truth", "DET")
    page.select_option("#answer", "NOUN")
    assert len(rows(page)) == 1 and page.locator("#counts").text_content().startswith("1 of 2 sentences.")


@pytest.mark.parametrize(("language", "order"), [("en", ["The", "house", "stands"]), ("ar", ["stands", "house", "The"])])
def test_tagged_words_stand_in_the_order_in_which_their_language_is_read(opened, tmp_path, language, order):
    page = opened(*study_of("labelling", tmp_path, language))
    words = page.locator("#rows table:has-text('stands') tr").first.locator("td")
    left = words.evaluate_all("all => all.map(each => each.getBoundingClientRect().left)")
    assert [word for _, word in sorted(zip(left, words.all_inner_texts(), strict=True))] == order


def test_spans_are_marked_in_their_passage(opened, tmp_path):
    page = opened(*study_of("answering", tmp_path))
    page.select_option("#sort", "line")
    first, second = rows(page)
    assert first[1] == ("right", [PASSAGE]) and first[2] == ("also right", ["house"])
    assert [head for head, _ in first[3:]] == ["plain 100.0", "other 66.7"] and [head for head, _ in second[2:]] == [
        "plain 0.0",
        "other 100.0",
    ]
    # a character that is two in the browser's own counting stands before them
    assert page.locator("#rows mark").all_text_contents() == ["Rome", "Rome", "in Rome", "house", "Rome", "house"]


def test_of_a_ranking_the_first_documents_are_shown(opened, tmp_path):
    page = opened(*study_of("ranking", tmp_path))
    ((query, plain, other, best),) = rows(page)
    assert query == ("query, 4 documents", ["Who?"]) and best == ("a best one", ["document b"])
    assert "a best one is at rank 2" in plain[0] and "a best one is at rank 1" in other[0] and other[0].startswith("other 100.0")
    assert plain[1][0].splitlines() == ["(grade 0) document a", "(grade 2) document b", "(grade 1) document c"]
    assert page.locator("#rows mark").all_text_contents() == ["document a", "document c", "document c", "document d"]


def test_what_is_not_the_translation_is_marked(opened, tmp_path):
    test_search_results.results(tmp_path / "results", tmp_path)
    config = test_search_results.configuration()
    page = opened(configured(tmp_path / "results", Plans(config).experiments["lookup"]), config)
    page.select_option("#sort", "line")
    assert len(rows(page)) == 4 and rows(page)[2][:2] == [("sentence", ["Aal"]), ("translation", ["eel"])]
    assert page.locator("#rows mark").all_text_contents() == ["dog", "dog", "dog"]
    assert page.locator("#counts").text_content().endswith("better is better than plain in 1, worse in 0, equal in 3.")


def test_numbers_are_compared_by_their_distance_from_the_right_one(tmp_path):
    study, _ = study_of("classification", tmp_path)
    study.text.labels = ["1", "2.5"]
    given = predictions.Answered("en", [Example("2.5", "a", "b")], {"plain": [2.0], "other": [3.123456]})
    study.task = replace(study.task, answers="scores")
    found = predictions._labels(study, given, [[0.0, 0.0]])
    assert found.rows == [[0, ["a", "b"], "2.5", ["2", "3.123"], [-0.5, pytest.approx(-0.623456)]]] and found.best == 0 and not found.marked


def test_answers_that_are_no_numbers_are_right_or_wrong_whatever_the_score_of_a_plugin_says(tmp_path):
    study, _ = study_of("classification", tmp_path)
    study.text.labels = ["yes", "no"]
    given = predictions.Answered("en", [Example("yes", "a", "b")], {"plain": ["yes"], "other": ["no"]})
    study.task = replace(study.task, answers="scores")
    found = predictions._labels(study, given, [[50.0, 0.0]])
    assert found.rows[0][4] == [100.0, 0.0] and found.scored == "100 for a right answer, else 0"


@pytest.mark.filterwarnings("ignore:invalid value")
def test_a_score_that_a_single_example_lacks_is_0(tmp_path):
    study, _ = study_of("classification", tmp_path)
    given = predictions.read_answered(study, "en")
    counted = lambda examples, answers, code, about: np.array([[float(a == "yes")] for a in answers])  # noqa: E731
    study.task = replace(study.task, counts=counted, scores={**study.task.scores, "accuracy": lambda sums: sums[0] / sums[0]})
    assert predictions.scores_of(study, given) == [[100, 100], [100, 0], [0, 0]]


@pytest.mark.parametrize("task", [*OF])
def test_several_seeds_are_shown_together_or_one_by_one(opened, tmp_path, task):
    page = opened(*study_of(task, tmp_path, seeds=(1, 2)))
    page.select_option("#sort", "line")
    count = page.evaluate("rows.length")
    assert page.locator("#counts").text_content().endswith(f"better than plain in 0, worse in 0, equal in {count}.")
    differs = 1 if task == "classification" else 0
    heads = [head for head, _ in rows(page)[differs] if head.startswith(("plain", "other"))]
    assert [head.split("\n")[1] for head in heads if "seed" in head] == ["seed 1", "seed 2"] * 2
    gaps = {}
    for seed in ("1", "2"):
        page.select_option("#seed", seed)
        gaps[seed] = page.evaluate("rows.map(gapOf)")
        assert len([head for head, _ in rows(page)[0] if head.startswith(("plain", "other"))]) == 2
    assert gaps["1"] == [-gap for gap in gaps["2"]] != gaps["2"]
    if task == "classification":
        page.select_option("#seed", "")
        assert page.locator("#by-label tbody tr").first.locator("td").all_text_contents() == ["2", "50.0", "50.0"]
        assert page.locator("#confusion caption").text_content().startswith("Answers of other to each right label with all seeds together")
        for shown, number in (("right", 1), ("wrong", 2), ("none", 1)):
            page.select_option("#show", shown)
            assert len(rows(page)) == number, shown


@pytest.mark.parametrize("task", [*OF])
def test_the_pages_suit_a_phone_and_dark_rooms(opened, tmp_path, task):
    page = opened(*study_of(task, tmp_path))
    page.set_viewport_size({"width": 390, "height": 800})
    assert page.evaluate(STICKING_OUT) == [] and page.evaluate("document.documentElement.scrollWidth") == 390
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        assert [(ratio, text) for ratio, text in page.evaluate(CONTRASTS) if ratio < 4.5] == []


def test_answers_that_do_not_fit_have_no_page(tmp_path):
    study, config = study_of("labelling", tmp_path)
    write_lines(study.seed("plain") / "predictions/en.hyp", ["DET NOUN", "NOUN VERB"])
    assert explorer.write_explorer(study, templates(config), tmp_path) == []
