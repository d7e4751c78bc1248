"""What the report shows of the text: lexicon, switched sentences, translations."""

import shutil

import zstandard
from invented import MAPPING, configuration, plain, put, report, results

from workflow_scripts.report.exhibits import AMONG, marked, noised_lines, rare_words, typical_ones
from workflow_scripts.stage import read_json


def test_texts_carry_their_language_and_changes_are_marked(page):
    html = page[0]
    assert '<td lang="de" dir="auto">Öffnen Sie die Datei.' in html and '<td lang="en" dir="auto">Open the file.' in html
    assert "<mark>you</mark>" in html and "<mark>&lt;mask&gt;</mark>" in html and "<mark>cell</mark>" in html
    assert f"evenly spaced in the first {AMONG} lines of each language" in plain(html)
    assert "table 0.00" in plain(html)  # of a score just below zero


def test_text_without_spaces_is_marked_word_by_word():
    before, after = "打开文件，然后选择窗口。", "打开file，然后选择窗口。"
    tokens = marked(before, after, "zh")
    assert "".join(text for text, _ in tokens) == after and [text for text, changed in tokens if changed] == ["file"]
    assert marked("Open the file", "Open das file", "en") == [("Open", False), ("das", True), ("file", False)]


def test_the_noise_of_the_published_code_stands_beside_the_papers(tmp_path):
    arms = ("finetune", "csr", "released")
    text = plain(report(results(tmp_path / "results", arms=arms), tmp_path, arms=arms)[0])
    assert "restoring text under the noise of the published code" in text and "Klicken zebra auf" in text
    assert "20.25" in text


def test_pieces_are_shown_as_words(tmp_path):
    put(tmp_path / "codeswitch.json", {"unit": "piece"})
    with zstandard.open(tmp_path / "round0.de.tsv.zst", "wt", encoding="utf-8") as file:
        file.write("▁the ▁Da te <mask> i\tDie Datei\n")
    assert noised_lines(tmp_path, "de", 5) == {"Die Datei": "the Date<mask>i"}


def test_of_documents_that_nobody_reads_each_sentence_is_shown_with_nothing(tmp_path):
    put(tmp_path / "codeswitch.json", {"unit": "word"})
    with zstandard.open(tmp_path / "round0.de.tsv.zst", "wt", encoding="utf-8") as file:
        file.write("\tEins. </s> Zwei.\none. </s> Zwei.\tEins. </s> Zwei dazu.\n")
    assert noised_lines(tmp_path, "de", 5) == {"Eins.": "one.", "Zwei.": "", "Zwei dazu.": "Zwei."}


def test_a_bad_mapping_and_a_given_dictionary_are_said(tmp_path):
    root = results(tmp_path / "results")
    lexicon = root / "lexicons/help.de-en/own"
    put(lexicon / "mapping.json", {**MAPPING, "good": False, "reason": "few mutual neighbours"})
    assert "judged bad (few mutual neighbours)" in report(root, tmp_path)[0]
    put(lexicon / "lexicon.json", {**read_json(lexicon / "lexicon.json"), "dictionary": "my/words.txt"})
    assert "the lexicon is the dictionary my/words.txt" in report(root, tmp_path)[0]
    put(lexicon / "lexicon.json", {**read_json(lexicon / "lexicon.json"), "dictionary": None, "aligned": True})
    (lexicon / "mapping.json").unlink()
    assert "It is an upper bound for lexicons that never see" in report(root, tmp_path)[0]


def test_without_a_lexicon_there_is_no_such_part(tmp_path):
    root = results(tmp_path / "results", arms=("finetune",))
    shutil.rmtree(root / "lexicons")
    settings = configuration(arms=("finetune",))
    settings.experiments["demo"].lexicon = None
    html = report(root, tmp_path, settings)[0]
    assert "could not be made" not in html
    assert 'id="translations-demo"' in html and "lexicon-demo" not in html and "switched-demo" not in html
    assert "nothing to compare it with" in html and "The tests cover" not in html[: html.index('id="run-demo"')]


def test_rare_words_are_underlined(page):
    html = page[0][page[0].index('id="translations-demo"') :]
    # in the reference, and in the translation that has it, but not the frequent words
    assert html.count("<u>window</u>") >= 2 and "<u>file</u>" not in html
    assert rare_words("The Fenster is.", {"Fenster"}, str.split) == [("The ", False), ("Fenster", True), (" is.", False)]
    # not the end of an earlier word
    assert rare_words("start art", {"art"}, str.split) == [("start ", False), ("art", True)]


def test_typical_differences_are_near_the_median():
    gap = [0.0, 9.0, 1.0, 2.0, 3.0, -8.0, 2.5]
    assert typical_ones(gap, 2, {1, 5}) == [3, 6] and typical_ones([0.0, 0.0], 2, set()) == []


def test_wins_and_losses_are_counted(page):
    text = plain(page[0])
    assert "csr is better than finetune on 1 sentences, worse on 1, equal on 1." in text and "Differences in chrF by sentence" in text
