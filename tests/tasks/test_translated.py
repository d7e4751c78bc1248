"""Training text translated by a model: answers are found again by their marks, and what cannot be kept is counted."""

from collections import Counter
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
from test_workflow import TINY, lay_out, plan
from tiny_models import small_model

from workflow_scripts.run import text_inputs
from workflow_scripts.run.config import load
from workflow_scripts.run.jobs import Job
from workflow_scripts.stage import InputError, read_json
from workflow_scripts.tasks import translated as translated_stage
from workflow_scripts.tasks.plan import Plans
from workflow_scripts.tasks.translated import joined, main, passage_in_parts, translated, without_the_marks
from workflow_scripts.text.examples import Example, read_any, read_table
from workflow_scripts.text.labelled_source import LabelledSource
from workflow_scripts.text.questions import parse_spans

PASSAGE = "It rains in May. Rome was built in 1858, they say. Then it burnt."


def asked(answer: str) -> Example:
    start = PASSAGE.index(answer)
    return Example(f"{start}:{start + len(answer)}", "When was it built?", PASSAGE)


@pytest.mark.parametrize("answer", ["1858", "Rome", "It rains in May.", "burnt.", "in 1858, they say. Then"])
def test_an_answer_is_found_again_in_the_translation(answer):
    removed: Counter[str] = Counter()
    (one,) = translated([asked(answer)], "question", lambda lines: [line.upper() for line in lines], removed)
    assert one.text == "WHEN WAS IT BUILT?" and one.pair == PASSAGE.upper() and not removed
    assert one.pair[slice(*parse_spans(one.label)[0])] == answer.upper()


def test_real_answers_are_found_again_by_a_translation_that_changes_nothing():
    source = LabelledSource(file="resources/xquad/de.json.xz")
    table = [example for example, _ in zip(read_any("question", source, [], Counter(), Counter()), range(100), strict=False)]
    made = translated(table, "question", lambda lines: lines, removed := Counter())
    assert not removed and len(made) == 100
    for before, after in zip(table, made, strict=True):
        answers = [one.pair[slice(*parse_spans(one.label)[0])] for one in (before, after)]
        # blanks beside an answer inside a word or number may come to it
        assert answers[0] == answers[1] and after.pair.replace(" ", "") == before.pair.replace(" ", "")


@pytest.mark.parametrize(
    "text, found",
    [
        ("In [[ 1858 ]].", ("In 1858.", "1858")),
        ("[[Rom]] brannte", ("Rom brannte", "Rom")),
        ("他于 [[ 1858 ]] 年出生。", ("他于1858年出生。", "1858")),
        ("built ( [[ 1858 ]] ) there", ("built (1858) there", "1858")),
        ("In [[ May ]] it rains", ("In May it rains", "May")),
        ("de l' [[ Europe ]] est", ("de l'Europe est", "Europe")),
        ("the players' [[ union ]] met", ("the players' union met", "union")),
        ("Der » [[ Hund ]] « bellt", ("Der »Hund« bellt", "Hund")),
        ("Der „ [[ Hund ]] “ bellt", ("Der „Hund“ bellt", "Hund")),
        ('a " [[ dog ]] " barks', ('a "dog" barks', "dog")),
        ('he said "no" [[ twice ]] "in vain"', ('he said "no" twice "in vain"', "twice")),
        ("the [[ U.S. ]] -born man", ("the U.S.-born man", "U.S.")),
        ("war – [[ 1858 ]] – and peace", ("war – 1858 – and peace", "1858")),
        ("10– [[ 20 ]] km", ("10–20 km", "20")),
        ("the rate/ [[ ratio ]] is", ("the rate/ratio is", "ratio")),
        ("where x = [[ 5 ]] holds", ("where x = 5 holds", "5")),
        ("[[ A ]] & B won", ("A & B won", "A")),
        ("¿ [[ Roma ]] ?", ("¿Roma?", "Roma")),
        ("was ‘ [[ often ]] ’ said", ("was ‘often’ said", "often")),
        ("1858 ]] built", None),
        ("[[ ]] built", None),
        ("[[ a ]] and [[ b ]]", None),
        ("no marks", None),
        # a translation that puts no blank before or after a mark wants none there
        ("수도는 [[ 서울 ]]이다.", ("수도는 서울이다.", "서울")),
        ("in the [[ 1960 ]]s .", ("in the 1960s .", "1960")),
        ("$[[ 50 Millionen ]] kostet es", ("$50 Millionen kostet es", "50 Millionen")),
    ],
)
def test_marks_that_do_not_come_back_whole_give_no_answer(text, found):
    passage, span = without_the_marks(text)
    assert (passage, passage[slice(*span)]) == found if span else found is None


def test_a_question_without_marks_and_an_empty_text_are_counted():
    examples = [Example("yes", "It rains.", "Water falls."), Example("no", "It snows.", "Nothing.")]
    removed: Counter[str] = Counter()
    made = translated(examples, "text", lambda lines: ["" if line == "Nothing." else f"{line}!" for line in lines], removed)
    assert made == [Example("yes", "It rains.!", "Water falls.!")] and removed == {"empty after translation": 1}
    assert translated([asked("Rome")], "question", lambda lines: [line.replace("[[", "") for line in lines], removed) == []
    assert removed["answer not found again in the translation"] == 1
    assert passage_in_parts(PASSAGE, (0, 2))[0] == "[[ It ]] rains in May."


def test_targets_are_translated_with_their_texts_and_marked_answers_are_found_again():
    removed: Counter[str] = Counter()
    examples = [Example("When?", "In [[ May ]] it rains. So it is wet.", ""), Example("Why? Who?", "Nobody knows.", "")]
    shouted = translated(examples, "target", lambda lines: [line.upper() for line in lines], removed, targets=True)
    assert [(one.label, one.text) for one in shouted] == [
        ("WHEN?", "IN [[ MAY ]] IT RAINS. SO IT IS WET."),
        ("WHY? WHO?", "NOBODY KNOWS."),
    ]
    kept = translated(examples, "target", lambda lines: [line.upper() for line in lines], removed)
    assert [one.label for one in kept] == ["When?", "Why? Who?"] and not removed
    lost = translated(
        examples, "target", lambda lines: [line.replace("]]", "").replace("Who?", "") for line in lines], removed, targets=True
    )
    assert [(one.label, one.text) for one in lost] == [("Why?", "Nobody knows.")]
    assert removed == {"answer not found again in the translation": 1}


def test_behind_a_chinese_full_stop_is_no_blank():
    words = {"I came.": "我来了。", "He left.": "他走了。", "Why?": "为什么？"}
    (made,) = translated(
        [Example("Why?", "I came. He left.", "")], "target", lambda lines: [words[line] for line in lines], Counter(), targets=True
    )
    assert (made.text, made.label) == ("我来了。他走了。", "为什么？")
    assert joined(["他说：“我来了。”", "", "她走了。", "Yes."]) == "他说：“我来了。”她走了。Yes."
    assert joined(["I came.", "He left!"]) == "I came. He left!"


def test_marks_in_a_text_are_written_as_in_the_training_text_and_no_sentence_ends_between_them():
    asked_of: list[str] = []

    def glued(lines: list[str]) -> list[str]:
        asked_of.extend(lines)
        return [line.replace("[[ ", "[[").replace(" ]]", "]]") for line in lines]

    examples = [Example("What?", "Rain. [[ It rains. It pours. ]] All is wet.", "")]
    (made,) = translated(examples, "target", glued, Counter())
    assert made.text == examples[0].text and "[[ It rains. It pours. ]]" in "".join(asked_of)


def test_a_pair_is_translated_and_its_label_kept_as_the_rule_calls_it(tmp_path, monkeypatch):
    class Ranked:
        def __init__(self, text):
            self.text = text

    class Shouting:
        def __init__(self):
            self.about = {}

        def __call__(self, lines, languages, best):
            return [[Ranked(line.upper())] for line in lines]

        def warn(self, what):
            pass

    @contextmanager
    def shouting(*_):
        yield Shouting()

    monkeypatch.setattr(translated_stage, "translator", shouting)
    outputs = [tmp_path / name for name in ("x.tsv", "x", "x.json")]
    table = tmp_path / "train.tsv"
    table.write_text("a\tOne thing.\tAnother.\n", "utf-8")
    config = load({"corpora": {}, "lexicons": {}, **content({"backbone": "translator"})})
    assert text_inputs.translated_targets(Job(Plans(config), SimpleNamespace(labelled="topics", name="de"))) == ""
    main(small_model(tmp_path), table, *outputs, unit="text", languages=("en", "de"))
    assert read_table(outputs[0]) == [Example("a", "ONE THING.", "ANOTHER.", line=1)]
    # what a test set in the language of the translation has as well is not learnt from
    table.write_text("a\tOne thing.\tAnother.\nb\tA third.\tA fourth.\n", "utf-8")
    (tmp_path / "test.tsv").write_text("b\tone thing\tAnother!\n", "utf-8")
    main(small_model(tmp_path), table, *outputs, unit="text", languages=("en", "de"), held_out=(tmp_path / "test.tsv",))
    assert read_table(outputs[0]) == [Example("b", "A THIRD.", "A FOURTH.", line=1)]
    assert read_json(outputs[2])["removed"] == {"equals dev or test": 1}
    for targets, label in ((("en", "de"), "WHY?"), (("de", "de"), "Why?")):
        table.write_text("Why?\tOne thing.\t\n", "utf-8")
        main(small_model(tmp_path), table, *outputs, unit="target", languages=("en", "de"), target_languages=targets)
        assert read_table(outputs[0]) == [Example(label, "ONE THING.", "", line=1)]
        assert read_json(outputs[2])["target_language"] == "de"
    # what is done to the texts of all parts is done to translations as well
    table.write_text("Why?\tOne thing.\t\nWhat?\tIt.\t\n", "utf-8")
    form = {"lowercase": True, "min_words": 2}
    main(small_model(tmp_path), table, *outputs, unit="target", languages=("en", "de"), target_languages=("en", "de"), **form)
    assert read_table(outputs[0]) == [Example("why?", "one thing.", "", line=1)]
    assert read_json(outputs[2])["removed"] == {"too short": 1}
    block = SimpleNamespace(labelled=SimpleNamespace(lowercase=True, min_words=2))
    assert text_inputs.translated_form(block) == "--lowercase --min-words 2"


def test_a_model_translates_a_table(tmp_path):
    lines = ["a\tÖffnen Sie die Datei.\t\tq1", "b\tSchließen Sie das Fenster.\t\tq2"]
    (tmp_path / "train.tsv").write_text("\n".join(lines) + "\n", "utf-8")
    outputs = [tmp_path / name for name in ("x.tsv", "x", "x.json")]
    try:
        main(small_model(tmp_path), tmp_path / "train.tsv", *outputs, unit="text", languages=("de", "en"))
    except InputError as error:  # a model that has learnt nothing may write nothing
        assert "no example is left after its translation" in str(error)
        return
    table, report = read_table(outputs[0]), read_json(outputs[2])
    assert (
        report["device"] in ("cpu", "cuda")
        and report["examples"] == len(table)
        and {one.label for one in table} <= {"a", "b"}
        and report["language"] == "en"
    )


def content(by: dict) -> dict:
    text = {"file": "pairs.tsv", "columns": {"text": 1, "label": 2}}
    return {
        "run": {"experiments": ["topics"], "arms": ["all"], "seeds": [1]},
        "labelled": {
            "topics": {
                "language": "en",
                "labels": ["a", "b"],
                "train": text,
                "dev": {"held_out": 0.2},
                "test": {"en": {"held_out": 0.2}},
                "translations": {"de": {"by": by}},
            }
        },
        "backbones": {**TINY["backbones"], "translator": {"kind": "hub", "model": "nobody/nllb"}},
        "arms": {"all": [{"data": "task", "epochs": 1, "translations": True}]},
        "experiments": {"topics": {"task": "classification", "corpus": "topics", "backbone": "tiny"}},
    }


def test_a_translation_is_compared_with_what_is_held_out_in_its_language():
    raw = content({"backbone": "translator"})
    raw["labelled"]["topics"]["test"]["de"] = {**raw["labelled"]["topics"]["train"], "language": "de", "file": "german.tsv"}
    config = load({"corpora": {}, "lexicons": {}, **raw})
    before = text_inputs.translated_before(Job(Plans(config), SimpleNamespace(labelled="topics", name="de")))
    assert before == ["results/labelled/topics/test/de.de.tsv"]


def test_the_workflow_has_the_text_translated_before_it_is_learnt_from(tmp_path):
    (lay_out(tmp_path) / "pairs.tsv").write_text("x\ta\n", "utf-8")
    assert {"translated", "head_finetune", "report"} <= plan(tmp_path, content({"backbone": "translator"}))


@pytest.mark.parametrize(
    "by, said",
    [
        ({"backbone": "translater"}, "translations.de.by: 'translater' is not defined, did you mean 'translator'"),
        ({"experiment": "topics"}, "wants {backbone: NAME}, or {experiment: NAME, arm: NAME}"),
    ],
)
def test_a_translator_that_is_not_there_is_refused(by, said):
    raw = {"corpora": {}, "lexicons": {}, **content(by)}
    with pytest.raises(InputError) as error:
        load(raw)
    assert said in str(error.value)
