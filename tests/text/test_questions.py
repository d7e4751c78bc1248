"""Questions on passages: the formats of benchmarks, spans in repaired text, and bad input."""

import json
import lzma
import unicodedata
from collections import Counter
from pathlib import Path

import pytest

from workflow_scripts.stage import InputError, read_json
from workflow_scripts.tasks.answering import counts_of, right_answers
from workflow_scripts.text.examples import Example, read_table, write_table
from workflow_scripts.text.labelled import Labelled, main
from workflow_scripts.text.labelled_source import LabelledSource
from workflow_scripts.text.questions import clean_passage, parse_lost, parse_spans, read_questions, write_spans
from workflow_scripts.text.squad import LineFinder

COLUMNS = {"document": "article", "question": "question", "answer": "answer", "start": "start", "passage": "passage"}
PLACES = Path("tests/data/squad-places.json")
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
        line_of = LineFinder(f'{{"id": "a"}}\n{{"id": "b{accent}"}}\n\n{{"id": "c"}}').line_of
        assert [line_of(key) for key in ("a", "bé", "", "c")] == [1, 2, 2, 4]
    numbers = Searched('{"id": "first"}\n' + "".join(f'{{"id": {number}}}\n' for number in range(100)))
    line_of = LineFinder(numbers).line_of
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
    assert one.passage == "Tom & Jerry come from Caf\u00e9 Paris <here>"
    assert one.passage[slice(*one.spans[0])] == "Caf\u00e9 Paris" and changed == {"HTML entity read as its character": 1}
    assert clean_passage("  a \n b", [2, 6]) == ("a b", [0, 2])
    # the answers cafe, without its accent, and re; a syllable of Hangul whose parts are letters of their own
    decomposed = "No\u0301i: cafe\u0301 ngon va\u0300 re\u0309"
    start = decomposed.index("cafe")
    passage, places = clean_passage(decomposed, [start, start + 4, len(decomposed) - 3, len(decomposed)])
    assert passage == unicodedata.normalize("NFC", decomposed) and passage[places[0] : places[1]] == "café"
    assert passage[places[2] : places[3]] == "rẻ"
    assert clean_passage("\u1112\u1161 \u1112", [1, 3]) == ("하 ᄒ", [1, 2])
    # a last consonant of Hangul, an accent that is an entity, and an entity in the middle of which an answer ends
    assert clean_passage("\u1112\u1161\u11a8", [2]) == ("학", [1])
    assert clean_passage("cafe&#769; AT&amp;T", [4, 14]) == ("café AT&T", [4, 8])


def test_spans_fit_the_passage_that_is_read_again(tmp_path):
    passage = "Die Stadt &#65279;Bonn liegt am \ufeffRhein. Sie ist alt und schön."
    answers = ["Rhein", "schön"]
    asks = [asked(answer, passage.index(answer), key=answer) for answer in answers]
    found, _, _ = read(squad(tmp_path / "x.json", *asks, passage=passage))
    write_table(tmp_path / "x.tsv", [Example(write_spans(one.spans), one.text, one.passage) for one in found])
    assert [one.pair[slice(*parse_spans(one.label)[0])] for one in read_table(tmp_path / "x.tsv", unit="question")] == answers


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
        ([asked(answers=[])], {}, "question 'q1': the question 'Which country\\?' has no answer; mark it with `is_impossible`"),
        ([asked(" ", 5)], {}, "question 'q1': the question 'Which country\\?' has no answer; .*`empty: leave_out`"),
        (
            [asked(answers=[*asked()["answers"], {"text": " ", "answer_start": 5}])],
            {},
            "question 'q1': the answer of the question 'Which country\\?' is empty",
        ),
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


@pytest.mark.parametrize("lost_answers", ["refuse", "by_text"])
@pytest.mark.parametrize("answers", [[{"text": "", "answer_start": None}], {"text": "", "answer_start": None}, {"text": [""]}])
def test_a_question_whose_answers_are_all_empty_lacks_a_text(tmp_path, answers, lost_answers):
    path, removed = squad(tmp_path / "x.json", asked(answers=answers)), Counter()
    assert not list(read_questions(path, {}, False, {}, removed, Counter(), lost_answers, "leave_out"))
    assert removed == {"lacks a text": 1}
    with pytest.raises(InputError, match=r"has no answer; mark it with `is_impossible`, .*`empty: leave_out`"):
        list(read_questions(path, {}, False, {}, Counter(), Counter(), lost_answers))


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


def settled(tmp_path, part: str, **source):
    """The table of a part of the file whose places are wrong, the texts of its right answers, and the report."""
    given = LabelledSource(str(PLACES), **source)
    other = LabelledSource("resources/qamr/en.tsv.xz", columns=COLUMNS, header=True)
    train, test = (given, other) if part == "train" else (other, given)
    settings = Labelled(language="en", unit="question", train=train, dev=LabelledSource(held_out=0.1), test={"places": test})
    if part == "train":
        settings.dev = other
        settings.test = {}
    main(tmp_path / "x.tsv", tmp_path / "x", tmp_path / "x.json", part=part, settings=settings)
    table = read_table(tmp_path / "x.tsv")
    return table, [right_answers(one) for one in table], read_json(tmp_path / "x.json")


def test_a_test_set_needs_no_places(tmp_path):
    table, right, report = settled(tmp_path, "test/places", empty="leave_out")
    assert right == [["in 1871"], ["to the mill", "the mill"], ["an old bridge"], ["the road"]]
    assert report["examples"] == 4 and report["removed"] == {"lacks a text": 1}
    assert report["changed"] == {
        "answer found at another place than its start": 3,
        "answer that is not in its passage, scored by its text": 1,
    }
    marked = (0, len("The old bridge"))  # SQuAD compares without articles
    assert counts_of(table, [(25, 32), (55, 65), marked, marked], "en")[:, 1].tolist() == [1.0, 0.0, 1.0, 0.0]
    with pytest.raises(InputError, match=r"line 6, question 'no-question': the question is empty; .*`empty: leave_out`"):
        settled(tmp_path, "test/places")


def test_training_text_takes_the_answers_that_are_found(tmp_path):
    table, right, report = settled(tmp_path, "train", empty="leave_out", lost_answers="leave_out")
    assert right == [["in 1871"], ["to the mill", "the mill"], ["the road"]]
    assert [one.pair[slice(*parse_spans(one.label)[0])] for one in table] == [one[0] for one in right]
    assert report["removed"] == {"answer is not in its passage": 1, "lacks a text": 1}
    assert report["changed"] == {"answer found at another place than its start": 3}
    with pytest.raises(InputError, match=r"line 4, question 'not-in-passage': the answer 'an old bridge' is not in the passage; correct"):
        settled(tmp_path, "train", empty="leave_out")


def test_of_several_answers_those_are_kept_that_are_in_the_passage(tmp_path):
    answers = [{"text": "Gaul", "answer_start": -1}, {"text": "France", "answer_start": 24}]
    path = squad(tmp_path / "x.json", asked(answers=answers))
    for lost_answers, spans, lost in (("leave_out", [(24, 30)], []), ("by_text", [(24, 30)], ["Gaul"])):
        changed: Counter[str] = Counter()
        (one,) = read_questions(path, {}, False, {}, Counter(), changed, lost_answers)
        assert one.spans == spans and one.lost == lost and changed.total() == 1
    with pytest.raises(InputError, match="the answer 'Gaul' is not in the passage; correct it"):
        read(path)


def test_texts_of_lost_answers_are_written_beside_spans():
    lost = ['he said "no" at 3:4', "ein 🎈 \\u0020", "a:b"]
    label = write_spans([(1, 2), (3, 4), (1, 2)], lost)
    assert parse_spans(label) == [(1, 2), (3, 4)] and parse_lost(label) == lost and label.isprintable() and label.count(" ") == 4


EMOJI = "🎈 Ein Fest in Köln, ein Fest in Wien, und in Köln ein Markt."


@pytest.mark.parametrize("encoding, size, unit", [("utf-16-le", 2, "UTF-16 units"), ("utf-8", 1, "bytes")])
def test_starts_in_other_units_find_the_right_one_of_several_places(tmp_path, encoding, size, unit):
    for place in (EMOJI.index("Fest in W"), EMOJI.rindex("Köln")):
        answer = EMOJI[place : place + 4]
        start = len(EMOJI[:place].encode(encoding)) // size
        ((one,), _, changed) = read(squad(tmp_path / "x.json", asked(answer, start), passage=EMOJI))
        assert one.spans == [(place, place + 4)] and changed == {f"start of an answer counted in {unit}, not in characters": 1}


@pytest.mark.parametrize("form, other", [("NFC", "NFD"), ("NFD", "NFC")])
def test_answers_in_another_normal_form_than_the_passage(tmp_path, form, other):
    passage, answer = unicodedata.normalize(form, "Das Fest in Köln ist schön."), unicodedata.normalize(other, "Köln")
    ((one,), _, _) = read(squad(tmp_path / "x.json", asked(answer, 12), passage=passage))
    assert one.passage[slice(*one.spans[0])] == "Köln" and one.passage == "Das Fest in Köln ist schön."


def test_an_answer_whose_passage_has_entities(tmp_path):
    ((one,), _, _) = read(squad(tmp_path / "x.json", asked("Tom & Jerry", 4), passage="See Tom &amp; Jerry."))
    assert one.passage[slice(*one.spans[0])] == "Tom & Jerry"
    # a blank at the end of an answer is none of it, whatever it is written as
    ((one,), _, _) = read(squad(tmp_path / "x.json", asked("Jerry&nbsp;", 4), passage="Tom Jerry&nbsp;"))
    assert one.passage[slice(*one.spans[0])] == "Jerry" and one.spans[0][1] <= len(one.passage)


HUB = [
    {"id": "a", "title": "Paris", "context": PASSAGE, "question": "Which country?", "answers": {"text": ["France"], "answer_start": [24]}},
    {
        "id": "b",
        "title": "Paris",
        "context": PASSAGE,
        "question": "What?",
        "answers": {"text": ["Paris", "Paris"], "answer_start": [32, 0]},
    },
    {"id": "c", "title": "Paris", "context": PASSAGE, "question": "Who?", "answers": {"text": [], "answer_start": []}},
]


@pytest.mark.parametrize(
    "name, content",
    [
        ("x.jsonl", "\n".join(map(json.dumps, HUB))),
        ("x.json", json.dumps(HUB)),
        ("x.json", json.dumps({"version": "1", "data": HUB}, indent=1)),
        ("x.json", json.dumps([{"title": "Paris", "context": PASSAGE, "qas": HUB}])),
        ("x.json", json.dumps([{"title": "Paris", "paragraphs": [{"context": PASSAGE, "qas": HUB}]}])),
        ("x.json", json.dumps({"title": "Paris", "paragraphs": [{"context": PASSAGE, "qas": HUB}]})),
    ],
)
def test_other_shapes_of_squads_json(tmp_path, name, content):
    (tmp_path / name).write_text(content)
    found, removed, changed = read(tmp_path / name)
    assert [(one.key, one.text, one.passage, one.spans) for one in found] == [
        ("a", "Which country?", PASSAGE, [(24, 30)]),
        ("b", "What?", PASSAGE, [(32, 37), (0, 5)]),
    ]
    assert {one.document for one in found} == {"Paris"} and {one.article for one in found} == {0}
    assert removed == {"question without answer (is_impossible)": 1} and not changed


def test_json_lines_under_other_names_and_of_one_language(tmp_path):
    rows = [
        {"q": "Which?", "text": PASSAGE, "a": "France", "at": 24, "lang": "en", "id": "english-1"},
        {"q": "Quel?", "text": PASSAGE, "a": ["Paris"], "at": [-1], "lang": "fr", "id": "french-1"},
        {"q": "Which one?", "text": "Rome.", "a": [{"text": "Rome"}], "at": None, "lang": "en", "id": "english-2"},
    ]
    (tmp_path / "x.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    columns = {"question": "q", "passage": "text", "answer": "a", "start": "at"}
    found, removed, _ = read(tmp_path / "x.jsonl", columns, {"lang": "en"})
    assert [(one.text, one.spans, one.line) for one in found] == [("Which?", [(24, 30)], 1), ("Which one?", [(0, 4)], 3)]
    assert removed == {"not asked for (where)": 1} and len({one.document for one in found}) == 2
    assert [one.key for one in read(tmp_path / "x.jsonl", columns, {"id": "french"})[0]] == ["french-1"]


@pytest.mark.parametrize(
    "name, content, said",
    [
        ("x.json", '{"id": 1}\n{"id": 2}\n', r"x\.json: not JSON in SQuAD's format, .*; it has an object a line: call it x\.jsonl"),
        ("x.json", '{"data": {}}', r"x\.json: not JSON in SQuAD's format, .*`data` is no list"),
        ("x.json", "[1]", r"x\.json, article 1: is not in SQuAD's format, .*: an article must be a JSON object"),
        ("x.jsonl", '{"question": "Who?", "context": "I."}', r"x\.jsonl, line 1: not a JSON object with .*'answers'"),
        (
            "x.jsonl",
            json.dumps({**HUB[0], "answers": {"text": ["France"], "answer_start": []}}),
            r"x\.jsonl, line 1: not a JSON object with .*1 answers have 0 starts",
        ),
        (
            "x.jsonl",
            json.dumps({**HUB[0], "answers": {"text": ["Rome"], "answer_start": [3]}}),
            r"line 1, question 'a': the answer 'Rome' is",
        ),
        ("x.jsonl", json.dumps({**HUB[0], "context": None}), r"line 1, question 'a': the passage is empty; .*`empty: leave_out`"),
    ],
)
def test_other_shapes_that_are_wrong_are_one_line(tmp_path, name, content, said):
    (tmp_path / name).write_text(content)
    with pytest.raises(InputError, match=said) as error:
        read(tmp_path / name)
    assert "\n" not in str(error.value)


def test_a_start_must_be_a_number(tmp_path):
    (tmp_path / "x.tsv").write_text("Who?\tI\tI\tone\n")
    with pytest.raises(InputError, match="line 1: the start 'one' is no number of characters"):
        list(read_questions(tmp_path / "x.tsv", {"question": 1, "answer": 2, "passage": 3, "start": 4}, False, {}, Counter(), Counter()))


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
