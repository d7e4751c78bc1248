"""Labelled text: formats, parts that share nothing, and what is refused."""

import csv
import json
import lzma
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from workflow_scripts.stage import InputError, read_json
from workflow_scripts.text.examples import read_any, read_examples, read_table
from workflow_scripts.text.labelled import Labelled, chosen, main
from workflow_scripts.text.labelled_source import LabelledSource

PAIRS = LabelledSource(file="x.tsv", columns={"text": 1, "pair": 2, "label": 3})
ROWS = [("A man sleeps.", "He is awake.", "no"), ("It rains.", "Water falls.", "yes")]


def examples(path: Path, labels=("yes", "no"), **source) -> list[tuple[str, str, str]]:
    return [e[:3] for e in read_examples(LabelledSource(file=str(path), **source), list(labels), Counter())]


@pytest.mark.parametrize(
    "unit, name, content, columns",
    [
        ("text", "x.tsv", "yes\tIt rains.\t\n", {"label": 1, "text": 2, "document": 3}),
        ("text", "x.jsonl", '{"l": "yes", "t": "It rains.", "d": null}\n', {"label": "l", "text": "t", "document": "d"}),
        ("word", "x.jsonl", '{"words": ["rain"], "tags": ["yes"], "document": null}\n', {}),
        ("question", "x.tsv", "Who?\tI am.\tI\t\n", {"question": 1, "passage": 2, "answer": 3, "document": 4}),
        ("target", "x.tsv", "It rains.\tRain\t\n", {"text": 1, "target": 2, "document": 3}),
    ],
)
def test_an_empty_name_of_a_document_is_none(tmp_path, unit, name, content, columns):
    (tmp_path / name).write_text(content)
    source = LabelledSource(file=str(tmp_path / name), columns=columns)
    assert [example.document for example in read_any(unit, source, ["yes", "no"], Counter(), Counter())] == ["block 0"]


@pytest.mark.parametrize(
    "unit, content, columns",
    [
        ("text", '{"l": "yes", "t": "It rains.", "d": 0}\n', {"label": "l", "text": "t", "document": "d"}),
        ("word", '{"words": ["rain"], "tags": ["yes"], "document": 0}\n', {}),
    ],
)
def test_a_document_may_be_number_zero(tmp_path, unit, content, columns):
    (tmp_path / "x.jsonl").write_text(content)
    source = LabelledSource(file=str(tmp_path / "x.jsonl"), columns=columns)
    assert [example.document for example in read_any(unit, source, ["yes", "no"], Counter(), Counter())] == ["0"]


@pytest.mark.parametrize(
    "name, content, source",
    [
        ("plain.tsv", "A man sleeps.\tHe is awake.\tno\nIt rains.\tWater falls.\tyes\n", {"columns": PAIRS.columns}),
        (
            "names.tsv",
            "id\tsentence1\tsentence2\tlabel\n1\tA man sleeps.\tHe is awake.\t0\n2\tIt rains.\tWater falls.\t1\n",
            {
                "header": True,
                "columns": {"text": "sentence1", "pair": "sentence2", "label": "label"},
                "label_names": {"0": "no", "1": "yes"},
            },
        ),
        (
            "languages.tsv",
            "language\tgold\tone\ttwo\nde\tneutral\tEs regnet.\tNass.\nen\tno\tA man sleeps.\tHe is awake.\nen\tyes\tIt rains.\tWater falls.\n",
            {"header": True, "columns": {"text": "one", "pair": "two", "label": "gold"}, "where": {"language": "en"}},
        ),
        (
            "x.jsonl",
            "".join(json.dumps({"t": {"en": a}, "p": b, "y": {"no": 0, "yes": 1}[c]}) + "\n" for a, b, c in ROWS),
            {"columns": {"text": "t.en", "pair": "p", "label": "y"}, "label_names": {"0": "no", "1": "yes"}},
        ),
        (
            "paths.tsv.xz",
            "text/no/x\tA man sleeps.\tHe is awake.\nshared/y\tnobody\tnothing\ntext/yes/z\tIt rains.\tWater falls.\n",
            {"columns": {"label": 1, "text": 2, "pair": 3}, "label_pattern": r"^text/(\w+)/"},
        ),
        (
            "fast.tsv",
            "__label__no A man sleeps.\tHe is awake.\nIt rains.__label__yes\tWater falls.\n",
            {"columns": {"label": 1, "text": 1, "pair": 2}, "label_pattern": r"__label__(no)|__label__(yes)"},
        ),
        (
            "whole.tsv",
            " no A man sleeps.\tHe is awake.\nyes It rains.\tWater falls.\n",
            {"columns": {"label": 1, "text": 1, "pair": 2}, "label_pattern": r"^(no|yes) (.*)$"},
        ),
        # what comes before the last suffix but one is a name
        ("of.jsonl.tsv", "A man sleeps.\tHe is awake.\tno\nIt rains.\tWater falls.\tyes\n", {"columns": PAIRS.columns}),
    ],
)
def test_formats(tmp_path, name, content, source):
    path = tmp_path / name
    path.write_bytes(lzma.compress(content.encode()) if name.endswith(".xz") else content.encode())
    assert examples(path, **source) == [(label, text, pair) for text, pair, label in ROWS]


@pytest.mark.parametrize(
    "content, said",
    [
        ("text\tpair\tlabel\na\tb\tyes\n", r"x\.tsv, line 1: the label 'label' is none of 'yes', 'no'; if the line names the columns, set"),
        ("a\tb\tyes\na\tb\tmaybe\n", r"x\.tsv, line 2: the label 'maybe' is none of 'yes', 'no'; correct it, .*label_names.* `labels`"),
        ("a\tb\tyes\n \tb\tyes\n", r"x\.tsv, line 2: the text is empty; delete the line, or see that columns\.text \(1\)"),
        ("a\tb\tyes\na\t\u200b\tyes\n", r"line 2: the pair is empty"),
        ("a\tb\tyes\na\tyes\n", r"line 2: 2 column\(s\), but `columns` asks for column 3"),
    ],
)
def test_bad_lines_are_named(tmp_path, content, said):
    (tmp_path / "x.tsv").write_text(content)
    with pytest.raises(InputError, match=said):
        examples(tmp_path / "x.tsv", columns=PAIRS.columns)


@pytest.mark.parametrize(
    "label, labels, named",
    [
        ("contradictory", ["neutral", "entailment", "contradiction"], "contradiction"),
        ("True", ["false", "true"], "true"),
        ("2.0", ["1", "2"], "2"),
        ("World: News", ["2", "world: news"], "world: news"),
        ("not_entailment", ["entailment", "neutral"], "LABEL"),
        ("topic2", ["topic1", "topic3"], "LABEL"),
        ("maybe", ["yes", "no"], "LABEL"),
    ],
)
def test_the_advice_for_an_unknown_label_names_the_label_that_it_spells(tmp_path, label, labels, named):
    (tmp_path / "x.tsv").write_text(f"{labels[0]}\ta\n{label}\tb\n")
    where = {"columns": {"label": 1, "text": 2}}
    with pytest.raises(InputError) as error:
        examples(tmp_path / "x.tsv", labels, **where)
    names = yaml.safe_load(re.search(r"`(label_names: \{.*?\})`", str(error.value))[1])
    assert names == {"label_names": {label: named}} and ("if it means that" in str(error.value)) == (named != "LABEL")
    if named != "LABEL":
        assert [row[0] for row in examples(tmp_path / "x.tsv", labels, **names, **where)] == [labels[0], named]


@pytest.mark.parametrize(
    "label, said",
    [
        ("3,27", r"x\.tsv, line 2: the label '3,27' is no number; write decimals with a point"),
        (
            "nan",
            r"line 2: the label 'nan' is no number; correct it or delete the line, translate it with `label_names: \{\"nan\": \"NUMBER\"\}`",
        ),
        ("grade", r"line 2: .*, or list all `labels`, if they are no numbers"),
    ],
)
def test_without_a_list_labels_are_numbers(tmp_path, label, said):
    (tmp_path / "x.tsv").write_text("".join(f"{each}\ta\tb\n" for each in ("3.27", "2.30", "5.0", "-1e3", "4")))
    where = {"columns": {"label": 1, "text": 2, "pair": 3}}
    assert [row[0] for row in examples(tmp_path / "x.tsv", (), **where)] == ["3.27", "2.3", "5", "-1000", "4"]
    (tmp_path / "x.tsv").write_text(f"3.27\ta\tb\n{label}\ta\tb\n")
    with pytest.raises(InputError, match=said):
        examples(tmp_path / "x.tsv", (), **where)
    assert examples(tmp_path / "x.tsv", (), **where, label_names={label: "2.50"})[1][0] == "2.5"
    (tmp_path / "x.tsv").write_text("grade\tone\ttwo\n3.27\ta\tb\n")
    with pytest.raises(InputError, match="line 1: the label 'grade' is no number; if the line names the columns, set `header: true`; else"):
        examples(tmp_path / "x.tsv", (), **where)


@pytest.mark.parametrize(
    "source, said",
    [
        (
            {"columns": {"text": "txt", "label": "label"}, "header": True},
            r"line 1: there is no column 'txt' for 'text'; the header has t, label",
        ),
        ({"columns": {"text": "t", "label": 2}}, r"no column 't' for 'text'; without `header: true` columns are numbers from 1"),
    ],
)
def test_columns_that_are_not_there(tmp_path, source, said):
    (tmp_path / "x.tsv").write_text("t\tlabel\na\tyes\n")
    with pytest.raises(InputError, match=said):
        examples(tmp_path / "x.tsv", **source)


@pytest.mark.parametrize(
    "name, content, said",
    [
        ("x.jsonl", '{"t": "a", "l": "yes"}\n{"t": null, "l": "yes"}\n', r"x\.jsonl, line 2: the text is empty"),
        ("x.jsonl", '{"t": "a", "l": "yes"}\n{"t": "a \\ud83d", "l": "yes"}\n', r"x\.jsonl, line 2: not a JSON object .*surrogates"),
        ("x.jsonl", '{"t": {"en": "a"}, "l": "yes"}\n', r"x\.jsonl, line 1: .*\(t is an object; name a key inside: t\.en\)"),
        ("x.jsonl", '{"t": ["a", "b"], "l": "yes"}\n', r"x\.jsonl, line 1: .*\(t is a list, not a text\)"),
        ("x.csv", "t,l\na,yes\n", r"there is no column 't' for 'text'; .*; a CSV file is not read: write tabs between the columns"),
        ("x.json", '[{"t": "a", "l": "yes"}]\n', r"no column 't' for 'text'; .*one object a line, from a file that ends in \.jsonl"),
    ],
)
def test_json_that_is_no_text_and_files_that_are_no_table(tmp_path, name, content, said):
    (tmp_path / name).write_text(content)
    with pytest.raises(InputError, match=said):
        examples(tmp_path / name, columns={"text": "t", "label": "l"})
    if name != "x.jsonl":
        with pytest.raises(InputError, match=r"1 column\(s\), but `columns` asks for column 2: .*(CSV file is not read|ends in \.jsonl)"):
            examples(tmp_path / name, columns={"text": 1, "label": 2}, header=False)


def test_examples_that_lack_a_text_may_be_left_out_and_are_counted(tmp_path):
    (tmp_path / "x.tsv").write_text("32035\t\t\tno\n2\tA man sleeps.\tHe is awake.\tno\n")
    source = LabelledSource(file=str(tmp_path / "x.tsv"), columns={"text": 2, "pair": 3, "label": 4}, empty="leave_out")
    removed = Counter()
    assert [e.line for e in read_examples(source, ["no"], removed)] == [2] and removed == {"lacks a text": 1}


def test_cells_that_python_quoted_are_read_without_their_quotation_marks(tmp_path):
    with open(tmp_path / "x.tsv", "w", newline="") as file:
        csv.writer(file, delimiter="\t").writerows([('He said "no" .', "It rains.", "no"), ('"Yes"', "Ja.", "yes")])
    assert "\t" in (text := (tmp_path / "x.tsv").read_text()) and '""no""' in text
    found = examples(tmp_path / "x.tsv", columns=PAIRS.columns, quoted=True)
    assert found == [("no", 'He said "no" .', "It rains."), ("yes", '"Yes"', "Ja.")]
    assert examples(tmp_path / "x.tsv", columns=PAIRS.columns)[0][1] == '"He said ""no"" ."'
    # nor does a carriage return end a line here
    (tmp_path / "x.tsv").write_bytes(b"A man\rsleeps.\tIt rains.\tno\r\n")
    assert examples(tmp_path / "x.tsv", columns=PAIRS.columns, quoted=True) == [("no", "A man sleeps.", "It rains.")]


def test_a_part_that_no_block_of_lines_falls_to_says_what_to_do(tmp_path):
    (tmp_path / "x.tsv").write_text("".join(f"no\tsentence number {i}\n" for i in range(40)))
    train = LabelledSource(str(tmp_path / "x.tsv"), {"label": 1, "text": 2})
    settings = Labelled(language="en", labels=["no"], train=train, dev=LabelledSource(held_out=1e-6), test={})
    outputs = [tmp_path / name for name in ("dev.tsv", "dev.en", "dev.json")]
    with pytest.raises(
        InputError, match=r"'held out for another part': 40}\); held_out 1e-06 took none of its documents, which .* raise it"
    ):
        main(*outputs, part="dev", settings=settings)


def manual(folder: Path) -> Labelled:
    """Two files of the same pages, in two languages of ten lines a page."""
    for code in ("en", "de"):
        lines = (f"page{i // 10}\t{'yes' if i % 3 else 'no'}\t{code} sentence number {'x' * i} here\n" for i in range(2000))
        (folder / f"{code}.tsv").write_text("".join(lines))
    columns = {"document": 1, "label": 2, "text": 3}
    return Labelled(
        language="en",
        labels=["yes", "no"],
        train=LabelledSource(str(folder / "en.tsv"), columns),
        dev=LabelledSource(held_out=0.1),
        test={"de": LabelledSource(str(folder / "de.tsv"), columns, language="de", held_out=0.2), "en": LabelledSource(held_out=0.2)},
    )


def parts(folder: Path, settings: Labelled, *names: str) -> dict[str, list[str]]:
    made = {}
    for part in names:
        out = [folder / f"{part}.{kind}" for kind in ("tsv", "txt", "json")]
        main(*out, part=part, settings=settings)
        made[part] = [example.text for example in read_table(out[0], settings.labels)]
        report = read_json(out[2])
        assert report["examples"] == sum(report["labels"].values()) == len(made[part])
    return made


def test_the_same_pages_are_held_out_in_every_language(tmp_path):
    made = parts(tmp_path, manual(tmp_path), "train", "dev", "test/de", "test/en")
    sizes = {part: len(lines) / 2000 for part, lines in made.items()}
    assert sizes["train"] == pytest.approx(0.7, abs=0.08) and sizes["test/en"] == pytest.approx(0.2, abs=0.08)
    assert sizes["train"] + sizes["dev"] + sizes["test/en"] == 1
    assert [line.removeprefix("de") for line in made["test/de"]] == [line.removeprefix("en") for line in made["test/en"]]


@pytest.mark.parametrize("header", ["", "language\tlabel\ttext\n"])
def test_the_same_blocks_are_held_out_of_one_file_of_all_languages(tmp_path, header):
    """The lines of one language come behind those of the other, or in a file with a header."""
    lines = {
        code: [f"{code}\t{'yes' if i % 3 else 'no'}\t{code} sentence number {'x' * i} here\n" for i in range(1010)] for code in ("en", "de")
    }
    (tmp_path / "all.tsv").write_text("".join(line for code in lines for line in lines[code]))
    (tmp_path / "de.tsv").write_text(header + "".join(lines["de"]))
    columns = {"label": 2, "text": 3}
    german = LabelledSource(str(tmp_path / "de.tsv"), columns, header=bool(header), language="de", held_out=0.2)
    if not header:
        german = LabelledSource(str(tmp_path / "all.tsv"), columns, where={"1": "de"}, language="de", held_out=0.2)
    train = LabelledSource(str(tmp_path / "all.tsv"), columns, where={"1": "en"})
    settings = Labelled(
        language="en",
        labels=["yes", "no"],
        train=train,
        dev=LabelledSource(held_out=0.1),
        test={"de": german, "en": LabelledSource(held_out=0.2)},
    )
    made = parts(tmp_path, settings, "test/de", "test/en")
    assert made["test/en"] and [line.removeprefix("de") for line in made["test/de"]] == [
        line.removeprefix("en") for line in made["test/en"]
    ]


def test_the_pages_of_dev_text_in_other_languages_are_not_trained_on(tmp_path):
    settings = manual(tmp_path)
    columns = settings.train.columns
    settings.dev = LabelledSource(str(tmp_path / "en.tsv"), columns)
    settings.more_dev = {"de": LabelledSource(str(tmp_path / "de.tsv"), columns, language="de", held_out=0.2)}
    pages = {
        part: {example.document for example in chosen(settings, part, Counter())} for part in ("train", "dev", "more_dev/de", "test/de")
    }
    assert pages["more_dev/de"] and not pages["more_dev/de"] & pages["train"] and not pages["test/de"] & pages["train"]
    assert len(pages["dev"]) == 200


def test_targets_of_a_part_without_a_file_are_in_the_language_of_the_training_texts():
    settings = Labelled(
        language="en",
        unit="target",
        train=LabelledSource("x.tsv", {"text": 1, "target": 2}, target_language="de"),
        dev=LabelledSource(held_out=0.1),
        test={"own": LabelledSource(held_out=0.1), "fr": LabelledSource("y.tsv", {"text": 1, "target": 2}, language="fr")},
    )
    languages = {part: settings.language_of_targets(part) for part in ("train", "dev", "test/own", "test/fr")}
    assert languages == {"train": "de", "dev": "de", "test/own": "de", "test/fr": "fr"}


def test_what_dev_or_a_test_set_has_is_not_trained_on(tmp_path):
    (tmp_path / "train.tsv").write_text("One two.\tThree!\tyes\nFour.\tFive.\tno\nsix\tseven\tyes\none two\tother\tyes\n")
    (tmp_path / "dev.tsv").write_text("six\tSeven\tno\neight\tnine\tno\n")
    (tmp_path / "test.tsv").write_text("one, two\tthree\tyes\nEight\tNine\tno\n")
    made = [LabelledSource(str(tmp_path / f"{name}.tsv"), PAIRS.columns) for name in ("train", "dev", "test")]
    settings = Labelled(language="en", labels=["yes", "no"], train=made[0], dev=made[1], test={"en": made[2]})
    assert parts(tmp_path, settings, "train", "dev", "test/en") == {
        "train": ["Four.", "one two"],
        "dev": ["six"],
        "test/en": ["one, two", "Eight"],
    }
    assert (tmp_path / "train.txt").read_text().split("\n") == ["Four.", "Five.", "one two", "other", ""]
    assert read_json(tmp_path / "train.json")["removed"] == {"equals dev or test": 2}


@pytest.mark.parametrize("in_one_file", ["", "de", "en de"])
def test_translations_lose_what_the_training_text_lost(tmp_path, capsys, in_one_file):
    texts = {"en": ["The cat sleeps.", "It rains.", "He runs."], "de": ["Die Katze schläft.", "Es regnet.", "Er läuft."]}
    rows = {code: "".join(f"{code}\t{line}\t{'yes' if n else 'no'}\n" for n, line in enumerate(lines)) for code, lines in texts.items()}
    for name, text in (("all", "code\ttext\tlabel\n" + rows["en"] + rows["de"]), *rows.items(), ("fewer", "de\tEs regnet.\tyes\n")):
        (tmp_path / f"{name}.tsv").write_text(text, encoding="utf-8")
    (tmp_path / "test.tsv").write_text("en\tit rains\tyes\nen\tNew.\tno\n")

    def source(name, **more):
        return LabelledSource(str(tmp_path / f"{name}.tsv"), {"text": 2, "label": 3}, **more)

    def of_all(code):
        return replace(source("all", header=True, where={"code": code}), columns=NAMED)

    train, german = (of_all(code) if code in in_one_file else source(code) for code in ("en", "de"))
    settings = Labelled(language="en", labels=["yes", "no"], train=train, dev=source("test"), test={}, translations={"de": german})
    (tmp_path / "translations").mkdir()
    assert parts(tmp_path, settings, "train", "translations/de") == {
        "train": ["The cat sleeps.", "He runs."],
        "translations/de": ["Die Katze schläft.", "Er läuft."],
    }
    assert read_json(tmp_path / "translations/de.json")["removed"]["its original equals dev or test"] == 1
    capsys.readouterr()
    assert parts(tmp_path, replace(settings, translations={"de": source("fewer")}), "translations/de") == {
        "translations/de": ["Es regnet."]
    }
    assert "has 1 examples, and the training text 3, so nobody can tell the translations of 1 examples" in capsys.readouterr().out


NAMED: dict[str, int | str | list[int] | list[str]] = {"text": "text", "label": "label"}


def test_texts_of_nothing_but_signs_are_different_texts(tmp_path):
    for name, rows in (
        ("train", "👍\t...\tyes\n😀\t!\tyes\n👎👎\t?\tno\n"),
        ("dev", "😀\t!\tno\nfour\tfive\tyes\n"),
        ("test", "six\tseven\tyes\n"),
    ):
        (tmp_path / f"{name}.tsv").write_text(rows, encoding="utf-8")
    made = [LabelledSource(str(tmp_path / f"{name}.tsv"), PAIRS.columns) for name in ("train", "dev", "test")]
    settings = Labelled(language="en", labels=["yes", "no"], train=made[0], dev=made[1], test={"en": made[2]})
    assert parts(tmp_path, settings, "train")["train"] == ["👍", "👎👎"]


def test_a_label_that_nothing_is_left_of_is_named(tmp_path):
    (tmp_path / "x.tsv").write_text("a\tb\tyes\n")
    source = LabelledSource(str(tmp_path / "x.tsv"), PAIRS.columns)
    with pytest.raises(InputError, match=r"no example with the label 'no' is left for 'train'"):
        parts(tmp_path, Labelled(language="en", labels=["yes", "no"], train=source, dev=LabelledSource(held_out=0.1), test={}), "train")
    assert not list(tmp_path.glob("train.*"))


def test_short_texts_are_left_out(tmp_path):
    (tmp_path / "x.tsv").write_text("a b c\td e f\tyes\na b c\td\tno\nu v w\tx y z\tno\n")
    source = LabelledSource(str(tmp_path / "x.tsv"), PAIRS.columns)
    settings = Labelled(
        language="en",
        labels=["yes", "no"],
        train=source,
        dev=LabelledSource(str(tmp_path / "x.tsv"), PAIRS.columns),
        test={},
        min_words=3,
    )
    assert parts(tmp_path, settings, "dev") == {"dev": ["a b c", "u v w"]}
