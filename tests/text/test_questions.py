"""Questions on passages: the formats of benchmarks, spans in repaired text, and bad input."""

import json
import lzma
import unicodedata
from collections import Counter
from pathlib import Path

import pytest

from workflow_scripts.stage import InputError, read_json
from workflow_scripts.text.examples import LabelledSource, read_table
from workflow_scripts.text.labelled import Labelled, main
from workflow_scripts.text.questions import clean_passage, line_finder, parse_spans, read_questions, write_spans

COLUMNS = {"document": "article", "question": "question", "answer": "answer", "start": "start", "passage": "passage"}
PASSAGE = "Paris is the capital of France. Paris has two million people."


def squad(path: Path, *entries: dict, passage: str = PASSAGE, title: str | None = "Paris") -> Path:
    """A file in SQuAD's format, all on one line, with one passage."""
    article = {"paragraphs": [{"context": passage, "qas": list(entries)}], **({"title": title} if title else {})}
    path.write_text(json.dumps({"data": [article], "version": "1.1"}), "utf-8")
    return path


def asked(answer: str = "France", start: int = 24, key: str = "q1", **changes) -> dict:
    return {"id": key, "question": "Which country?", "answers": [{"text": answer, "answer_start": start}], **changes}


def read(path: Path, columns=None, where=None):
    removed, changed = Counter(), Counter()
    return list(read_questions(path, columns or {}, bool(columns), where or {}, removed, changed)), removed, changed


class Searched(str):
    """A text that counts how often it is searched."""

    searches = 0

    def find(self, *asked):
        self.searches += 1
        return super().find(*asked)


def test_the_line_of_a_question_is_found_in_one_pass():
    for accent in ("é", "\\u00e9"):
        line_of = line_finder(f'{{"id": "a"}}\n{{"id": "b{accent}"}}\n\n{{"id": "c"}}')
        assert [line_of(key) for key in ("a", "bé", "", "c")] == [1, 2, 2, 4]
    numbers = Searched('{"id": "first"}\n' + "".join(f'{{"id": {number}}}\n' for number in range(100)))
    line_of = line_finder(numbers)
    assert [line_of(key) for key in ("first", *map(str, range(100)))] == [1] * 101
    assert numbers.searches < 5  # each id would be looked for in the rest of the file


@pytest.mark.parametrize("code", ["en", "de", "zh"])
def test_xquad_is_read_with_the_spans_that_it_gives(code):
    path = Path(f"resources/xquad/{code}.json.xz")
    found, removed, changed = read(path)
    given = json.loads(lzma.decompress(path.read_bytes()))["data"]
    answers = [entry["answers"][0]["text"] for article in given for p in article["paragraphs"] for entry in p["qas"]]
    assert [one.passage[start:end] for one in found for start, end in one.spans] == [" ".join(text.split()) for text in answers]
    assert len(found) == 354 and not removed and not changed
    assert len({one.document for one in found}) == 12 and found[0].line < found[-1].line


def test_a_table_is_read_with_the_spans_that_it_gives():
    found, removed, changed = read(Path("resources/qamr/en.tsv.xz"), COLUMNS)
    rows = [line.split("\t") for line in lzma.decompress(Path("resources/qamr/en.tsv.xz").read_bytes()).decode().splitlines()][1:]
    assert [one.passage[slice(*one.spans[0])] for one in found] == [row[2] for row in rows] and not removed and not changed
    assert {one.document for one in found} == {row[0] for row in rows} and found[0].line == 2


def test_several_right_answers_are_all_kept_once(tmp_path):
    answers = [{"text": "France", "answer_start": 24}, {"text": "the capital of France", "answer_start": 9}]
    ((one,), _, _) = read(squad(tmp_path / "x.json", asked(answers=[*answers, answers[0]])))
    assert write_spans(one.spans) == "24:30 9:30" and parse_spans("24:30 9:30") == [(24, 30), (9, 30)]


def test_questions_of_one_language_of_tydiqa(tmp_path):
    path = squad(tmp_path / "x.json", asked(key="finnish-12-1"), asked(key="english-3-1"))
    found, removed, _ = read(path, where={"id": "finnish"})
    assert len(found) == 1 and removed == {"not asked for (where)": 1}


def test_spans_stay_where_they_are_when_the_passage_is_repaired(tmp_path):
    passage = "\ufeff Tom &amp; Jerry\n\tcome  from Cafe\u0301&nbsp;Paris &lt;here&gt; "
    start = passage.index("Cafe")
    ((one,), _, changed) = read(squad(tmp_path / "x.json", asked("Cafe\u0301&nbsp;Paris", start), passage=passage))
    assert one.passage.lstrip("\ufeff ") == "Tom & Jerry come from Caf\u00e9 Paris <here>"
    assert one.passage[slice(*one.spans[0])] == "Caf\u00e9 Paris" and changed == {"HTML entity read as its character": 1}
    assert clean_passage("  a \n b", [2, 6]) == ("a b", [0, 2])
    # the answers cafe, without its accent, and re; a syllable of Hangul whose parts are letters of their own
    decomposed = "No\u0301i: cafe\u0301 ngon va\u0300 re\u0309"
    start = decomposed.index("cafe")
    passage, places = clean_passage(decomposed, [start, start + 4, len(decomposed) - 3, len(decomposed)])
    assert passage == unicodedata.normalize("NFC", decomposed) and passage[places[0] : places[1]] == "café"
    assert passage[places[2] : places[3]] == "rẻ"
    assert clean_passage("\u1112\u1161 \u1112", [1, 3]) == ("하 ᄒ", [1, 2])


@pytest.mark.parametrize(
    "answer, start, place",
    [("Paris", 30, 32), ("Paris", 3, 0), ("France", 0, 24), (" France", 23, 24), ("two\nmillion", 42, 42)],
)
def test_an_answer_that_is_not_at_its_start_is_found_at_the_nearest_place(tmp_path, answer, start, place):
    ((one,), _, changed) = read(squad(tmp_path / "x.json", asked(answer, start)))
    assert one.spans[0][0] == place
    exact = PASSAGE[start:].startswith(answer)
    assert changed == ({} if exact else {"answer found at another place than its start": 1})


def test_an_answer_without_a_start_is_taken_where_it_stands_first(tmp_path):
    path = tmp_path / "x.tsv"
    path.write_text(f"question\tanswer\tpassage\nWhich city?\tParis\t{PASSAGE}\nWhich country?\tFrance\t{PASSAGE}\n")
    found, _, changed = read(path, {name: name for name in ("question", "answer", "passage")})
    assert [one.spans for one in found] == [[(0, 5)], [(24, 30)]]
    assert changed == {"answer without a start taken where it stands first": 1}


@pytest.mark.parametrize(
    "answer, passage, place",
    [
        ("art", "They start early. The art of war, an art", 22),
        ("art", "They start early.", 7),
        ("-art", "pop-art, or -art", 3),
        ("東京", "今日東京へ。東京", 2),
        ("Ann", "Anne と Annは", 7),
    ],
)
def test_an_answer_without_a_start_is_no_part_of_a_word_where_it_is_one_elsewhere(tmp_path, answer, passage, place):
    (tmp_path / "x.tsv").write_text(f"question\tpassage\tanswer\nWhich?\t{passage}\t{answer}\n", encoding="utf-8")
    ((one,), _, _) = read(tmp_path / "x.tsv", {name: name for name in ("question", "passage", "answer")})
    assert one.spans == [(place, place + len(answer))]


def test_questions_that_have_no_answer_by_design_are_left_out(tmp_path):
    found, removed, _ = read(squad(tmp_path / "x.json", asked(), asked(key="q2", answers=[], is_impossible=True)))
    assert len(found) == 1 and removed == {"question without answer (is_impossible)": 1}


@pytest.mark.parametrize(
    "entries, changes, said",
    [
        (
            [asked("Berlin", 24)],
            {},
            r"line 1, question 'q1': the answer 'Berlin' is not in the passage \(at its start, 24, stands 'France'\)",
        ),
        ([asked(answers=[])], {}, "question 'q1': the question 'Which country\\?' has no answer; delete it, or mark it"),
        ([asked(" ", 5)], {}, "question 'q1': the answer of the question 'Which country\\?' is empty"),
        ([asked(question=" ")], {}, "question 'q1': the question is empty"),
        ([asked()], {"passage": " \u200b"}, "question 'q1': the passage is empty"),
        ([asked(), asked()], {}, "question 'q1': the id 'q1' is there twice \\(before in line 1\\)"),
        ([{"id": "q1"}], {}, "question 'q1': is not in SQuAD's format: 'answers' is missing"),
        (["no"], {}, "article 1: is not in SQuAD's format"),
    ],
)
def test_bad_questions_are_refused_with_their_id(tmp_path, entries, changes, said):
    with pytest.raises(InputError, match=said) as error:
        read(squad(tmp_path / "x.json", *entries, **changes))
    assert str(tmp_path / "x.json") in str(error.value) and "\n" not in str(error.value)


def test_machine_translations_may_have_lost_answers(tmp_path):
    entries = [asked(), asked("Frankreich", key="q2"), asked(" ", 5, key="q3")]
    removed: Counter[str] = Counter()
    found = read_questions(squad(tmp_path / "x.json", *entries), {}, False, {}, removed, Counter(), "leave_out")
    assert [one.spans for one in found] == [[(24, 30)]] and removed == {"answer is not in its passage": 2}


@pytest.mark.parametrize(
    "text, said",
    [
        ("question\tanswer\nWho?\tI\n", "line 1: there is no column 'passage' for 'passage'; the header has question, answer"),
        ("question\tanswer\tpassage\nWho?\tI\n", "line 2: 2 column\\(s\\), but `columns` asks for column 3"),
        ("question\tanswer\tpassage\nWho?\tI\tYou\n", "line 2: the answer 'I' is not in the passage; correct it"),
        ("question\tanswer\tpassage\nWho?\t\tYou\n", "line 2: the question 'Who\\?' has no answer"),
    ],
)
def test_bad_lines_are_refused_with_their_number(tmp_path, text, said):
    (tmp_path / "x.tsv").write_text(text)
    with pytest.raises(InputError, match=said):
        read(tmp_path / "x.tsv", {name: name for name in ("question", "answer", "passage")})


def test_a_start_must_be_a_number(tmp_path):
    (tmp_path / "x.tsv").write_text("Who?\tI\tI\tone\n")
    with pytest.raises(InputError, match="line 1: the start 'one' is no number of characters"):
        list(read_questions(tmp_path / "x.tsv", {"question": 1, "answer": 2, "passage": 3, "start": 4}, False, {}, Counter(), Counter()))


def test_text_that_is_no_json_is_refused(tmp_path):
    (tmp_path / "x.json").write_text('{"data": {}}')
    with pytest.raises(InputError, match=r"x\.json: not JSON in SQuAD's format"):
        read(tmp_path / "x.json")


def test_no_passage_of_dev_or_test_is_trained_on(tmp_path):
    source = LabelledSource(file="resources/qamr/en.tsv.xz", columns=COLUMNS, header=True)
    test = LabelledSource(file="resources/qamr/en.tsv.xz", columns=COLUMNS, header=True, where={"article": "wikinews:784376"})
    settings = Labelled(language="en", train=source, dev=LabelledSource(held_out=0.1), test={"news": test}, unit="question")
    tables = {}
    for part in ("train", "dev", "test/news"):
        name = part.removeprefix("test/")
        main(tmp_path / f"{name}.tsv", tmp_path / name, tmp_path / f"{name}.json", part=part, settings=settings)
        tables[name] = read_table(tmp_path / f"{name}.tsv")
    passages = {name: {example.pair for example in table} for name, table in tables.items()}
    assert (
        all(passages.values()) and not passages["train"] & (passages["dev"] | passages["news"]) and not passages["dev"] & passages["news"]
    )
    report = read_json(tmp_path / "train.json")
    assert report["removed"]["equals dev or test"] and report["examples"] == len(tables["train"]) and report["labels"] == {}
    lines = (tmp_path / "dev").read_text("utf-8").splitlines()
    assert len(set(lines)) == len(lines) and tables["dev"][0].text in lines and tables["dev"][0].pair not in lines
    assert tables["dev"][0].pair.startswith(lines[1])


@pytest.mark.parametrize("held_out", ["dev", "test"])
def test_a_translation_of_a_held_out_question_is_held_out_whatever_its_article_is_called(tmp_path, held_out):
    for code in ("en", "de"):
        asked = [{"id": f"q{i}", "question": f"{code} {i}?", "answers": [{"text": "a", "answer_start": 0}]} for i in range(100)]
        articles = [
            {"title": f"{code} {i}", "paragraphs": [{"context": f"a {code} passage {'x' * i}", "qas": [asked[i]]}]} for i in range(100)
        ]
        (tmp_path / f"{code}.json").write_text(json.dumps({"data": articles[:: 1 if code == "en" else -1]}), "utf-8")
    german = tmp_path / "de.json"
    settings = Labelled(
        language="en",
        train=LabelledSource(file=str(tmp_path / "en.json")),
        dev=LabelledSource(held_out=0.3)
        if held_out == "dev"
        else LabelledSource(file="resources/qamr/en.tsv.xz", columns=COLUMNS, header=True),
        test={}
        if held_out == "dev"
        else {"own": LabelledSource(held_out=0.3), "de": LabelledSource(str(german), language="de", held_out=0.3)},
        translations={"de": LabelledSource(file=str(tmp_path / "de.json"))},
        unit="question",
    )
    found = {}
    own = "dev" if held_out == "dev" else "test/own"
    for part in ("train", "translations/de", own, *([] if held_out == "dev" else ["test/de"])):
        main(tmp_path / "x.tsv", tmp_path / "x", tmp_path / "x.json", part=part, settings=settings)
        found[part] = {example.text.split()[1] for example in read_table(tmp_path / "x.tsv")}
    assert found["translations/de"] == found["train"] and len(found[own]) > 10 and not found[own] & found["train"]
    assert found.get("test/de", found[own]) == found[own]
