"""Where words and tags stand: columns by number and by name, advice that reads the file, and words that are none."""

import re
from collections import Counter
from pathlib import Path

import pytest
import yaml

from workflow_scripts.stage import InputError
from workflow_scripts.text.examples import read_any
from workflow_scripts.text.labelled_source import LabelledSource
from workflow_scripts.text.tagged import read_sentences, split_words

UNER = Path("tests/data/tagged/uner.iob2")
NER = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC", "B-ORG", "I-ORG"]
WITHOUT_OTHERS = {"B-OTH": "O", "I-OTH": "O"}
WORDS = ["Anna Berger fährt heute von Graz nach Linz .", "Der Verein Blaue Tür feiert das Lichterfest ."]
TAGS = ["B-PER I-PER O O O B-LOC O B-LOC O", "O O B-ORG I-ORG O O O O"]
MISC = """1\tAnna\t_\tPROPN\t_\t_\t0\troot\t_\tNER=B-PER
2-3\tzum\t_\t_\t_\t_\t_\t_\t_\t_
2\tzu\t_\tADP\t_\t_\t1\tx\t_\t_
3\tdem\t_\tDET\t_\t_\t1\tx\t_\tSpaceAfter=No|NER=O
"""


def read(path: Path, text: str | bytes | None = None, columns=None, names=None, tags=NER, **choices):
    """The words and the tags of each sentence, joined by blanks."""
    if text is not None:
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    found = read_sentences(path, columns or {}, list(tags), names or {}, "de", Counter(), **choices)
    return [(" ".join(one.words), " ".join(one.tags)) for one in found]


def advised(path: Path, **choices) -> dict:
    """What the error of a file advises, as YAML."""
    with pytest.raises(InputError) as error:
        read(path, **choices)
    assert "\n" not in str(error.value) and str(path) in str(error.value)
    return yaml.safe_load(re.search(r"`((?:columns|label_names): \{.*?\})`", str(error.value))[1])


@pytest.mark.parametrize("columns", [{}, {"tag": 4}, {"tag": 3}])
def test_the_advice_for_numbered_words_leads_to_the_right_words(columns):
    """The columns of Universal NER as published: number, word, tag, tag of another annotator, annotator."""
    with pytest.raises(InputError, match=r"uner\.iob2, line 4: the words are only numbers \('1', …\); in column 3 most tags are known"):
        read(UNER, columns=columns)
    advice = advised(UNER, columns=columns)
    assert advice == {"columns": {"word": 2, "tag": 3}}
    with pytest.raises(InputError, match=r"uner\.iob2, line 22: the tag 'B-OTH' of the word 'Lichterfest' is none of O, B-PER"):
        read(UNER, **advice)
    named = advised(UNER, **advice)["label_names"]
    assert named == WITHOUT_OTHERS and read(UNER, names=named, **advice) == list(zip(WORDS, TAGS, strict=True))


def test_numbered_words_by_the_settings_of_a_source():
    source = LabelledSource(str(UNER), columns={"word": 2, "tag": 3}, label_names=WITHOUT_OTHERS, language="de")
    examples = list(read_any("word", source, NER, Counter(), Counter()))
    assert [" ".join(split_words(one.text)) for one in examples] == WORDS and [one.label for one in examples] == TAGS


def test_a_numbered_file_has_ranges_that_are_no_words_and_numbers_that_stand_once(tmp_path):
    text = "1\tAnna\tB-PER\n2-3\tzum\t_\n2\tzu\tO\n3\tdem\tO\n3.1\tx\tO\n\n1\tLinz\tB-LOC\n"
    assert read(tmp_path / "x.iob2", text, {"word": 2, "tag": 3}) == [("Anna zu dem", "B-PER O O"), ("Linz", "B-LOC")]
    assert read(tmp_path / "x.iob2", f"#\tsource of GermEval\n{text}", {"word": 2, "tag": 3})[0] == ("Anna zu dem", "B-PER O O")
    with pytest.raises(InputError, match=r"line 8: the word's number, 1, stands in line 7 of the same sentence"):
        read(tmp_path / "x.iob2", f"{text}1\tGraz\tB-LOC\n", {"word": 2, "tag": 3})


@pytest.mark.parametrize(
    "text, columns, choices",
    [
        ("token\tner\nAnna\tB-PER\nlacht\tO\n\nLinz\tB-LOC\n", {"word": "token", "tag": "ner"}, {"header": True}),
        ("# a comment\nner token\nB-PER Anna\nO lacht\n\nB-LOC Linz\n", {"word": "token", "tag": "NER"}, {"header": True}),
        ("token\tner\nAnna\tB-PER\nlacht\tO\n\nLinz\tB-LOC\n", {}, {"header": True}),
        ("id\ttoken\tner\n1\tAnna\tB-PER\n2\tlacht\tO\n\n1\tLinz\tB-LOC\n", {"word": "token", "tag": "ner"}, {"header": True}),
        ("0\t1\t2\nx\tAnna\tB-PER\nx\tlacht\tO\n\nx\tLinz\tB-LOC\n", {"word": "1", "tag": "2"}, {"header": True}),
        ("# global.columns = FORM NER\nAnna\tB-PER\nlacht\tO\n\nLinz\tB-LOC\n", {"tag": "NER"}, {}),
        ("# global.columns = ID NER FORM\n1\tB-PER\tAnna\n2\tO\tlacht\n\n1\tB-LOC\tLinz\n", {"word": "form", "tag": "ner"}, {}),
    ],
)
def test_columns_by_name(tmp_path, text, columns, choices):
    assert read(tmp_path / "x.tsv", text, columns, **choices) == [("Anna lacht", "B-PER O"), ("Linz", "B-LOC")]


@pytest.mark.parametrize(
    "columns, names, choices, words, tags",
    [
        ({"tag": "MISC.NER"}, {"_": "O"}, {}, "Anna zu dem", "B-PER O O"),
        ({"tag": "10.NER"}, {"_": "O"}, {"multiword": "fused"}, "Anna zum", "B-PER O"),
        ({"tag": "UPOS"}, {"PROPN": "B-PER", "ADP": "O", "DET": "O"}, {}, "Anna zu dem", "B-PER O O"),
    ],
)
def test_columns_of_conllu_by_name(tmp_path, columns, names, choices, words, tags):
    assert read(tmp_path / "x.conllu", MISC, columns, names, **choices) == [(words, tags)]
    plus = f"# global.columns = ID FORM LEMMA UPOS XPOS FEATS HEAD DEPREL DEPS MISC\n{MISC}"
    assert read(tmp_path / "x.conllup", plus, columns, names, **choices) == [(words, tags)]


@pytest.mark.parametrize("columns", [{"tag": "MISC"}, {"word": "FORM", "tag": 10}])
def test_the_advice_for_a_column_of_features_reads_it(tmp_path, columns):
    advice = advised(tmp_path / "x.conllu", text=MISC, columns=columns)
    assert advice == {"columns": {**columns, "tag": f"{columns['tag']}.NER"}}
    named = advised(tmp_path / "x.conllu", **advice)["label_names"]
    assert read(tmp_path / "x.conllu", names=named, **advice) == [("Anna zu dem", "B-PER O O")]


@pytest.mark.parametrize(
    "text, advice, words",
    [
        # CoNLL-2003: word, part of speech, chunk, entity
        ("-DOCSTART- -X- -X- O\n\nAnna NNP B-NP B-PER\nlacht VBZ B-VP O\n\nLinz NNP B-NP B-LOC\n", {"tag": 4}, "Anna lacht"),
        # CoNLL-2012: document, part, number, word, part of speech, tree, entity
        ("bc/x 0 0 Anna NNP (S B-PER\nbc/x 0 1 lacht VBZ *) O\n", {"word": 4, "tag": 7}, "Anna lacht"),
        ("0\tAnna\tB-PER\n1\tlacht\tO\n", {"word": 2, "tag": 3}, "Anna lacht"),
        ("B-PER Anna\nO lacht\n", {"word": 2, "tag": 1}, "Anna lacht"),
    ],
)
def test_advice_reads_the_file_right(tmp_path, text, advice, words):
    assert advised(tmp_path / "x", text=text) == {"columns": advice}
    assert read(tmp_path / "x", columns=advice)[0] == (words, "B-PER O")


@pytest.mark.parametrize(
    "name, text, columns, said",
    [
        (
            "x",
            "token ner\nAnna B-PER\n",
            {},
            r"line 1: the tag 'ner' of the word 'token' is none of .*; if the line names the columns, set",
        ),
        ("x", "token ner\nAnna B-PER\n", {"tag": "ner"}, r"columns\.tag is 'ner', but .*; the first line has it: set `header: true`"),
        ("x.conllu", MISC, {"tag": "NER"}, r"there is no column 'NER' for columns\.tag; the file has ID, FORM, LEMMA, UPOS"),
        (
            "x.conllup",
            "# global.columns = FORM NER NER\nAnna\tO\tO\n",
            {"tag": "NER"},
            r"columns 2 and 3 are both called 'NER', so 'tag' may",
        ),
        ("x.conllu", MISC, {"tag": 1, "word": 1}, r"word and tag are both read from column 1; say where"),
        (
            "x",
            "Anna B-PER\n",
            {"tag": 0},
            r"columns\.tag is 0, but nothing in the file names its columns; give the column's number, from 1",
        ),
        ("x", "Anna\tB-PER\nLinz\t\tB-LOC\n", {}, r"line 2: the tag of the word 'Linz' is empty; correct the line, or see that `columns`"),
        ("x.csv", "Anna,B-PER\n", {}, r"line 1: 1 column\(s\), but .*a CSV file is not read: write tabs"),
        ("x", "fr:Anna\tB-PER\nfr:lacht\tO\n", {}, r"line 1: the words begin with 'fr:', but the language is 'de'; correct `language`"),
        (
            "x.jsonl",
            '{"words": [1, 2], "tags": ["O", "O"]}\n',
            {},
            r"line 1: the words are only numbers \('1', …\); say with `columns` under",
        ),
        ("x", "id O\n" * 30, {}, r"line 1: the words are all the same \('id', …\); say with `columns` where the words stand"),
        ("x", b"Anna\tB-PER\rlacht\tO\r", {}, r"its lines end in \\r alone; convert the file: tr '\\r' '\\n'"),
        ("x", "1 O\nAnna O\n" * 9 + "new B-XX\n", {}, r"label_names: \{\"B-XX\": \"O\", \"I-XX\": \"O\"\}"),
    ],
)
def test_what_cannot_be_read_is_one_line(tmp_path, name, text, columns, said):
    with pytest.raises(InputError, match=said) as error:
        read(tmp_path / name, text, columns)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "text",
    [
        "Anna B-PER \r\nlacht O\r\n\r\nLinz B-LOC\r\n",
        "Anna\tB-PER\nlacht   O  \n \t \nLinz\tB-LOC\t\n",
        "Anna B-PER\nlacht\tO\n\nLinz \t B-LOC\n",
        "\ufeffAnna\tS-PER\nlacht\tO\n\nLinz\tU-LOC\n",
        "de:Anna\tB-PER\nde:lacht\tO\n\nde:Linz\tB-LOC\n",
    ],
)
def test_blanks_ends_of_lines_and_schemes_make_no_difference(tmp_path, text):
    assert read(tmp_path / "x", text) == [("Anna lacht", "B-PER O"), ("Linz", "B-LOC")]


def test_a_tab_inside_a_line_of_blanks_makes_no_word_of_two(tmp_path):
    text = "EU NNP B-NP B-ORG\nrejects VBZ\tB-VP O\n"
    assert read(tmp_path / "x", text, {"tag": 4}) == [("EU rejects", "B-ORG O")]


def test_a_mapped_tag_of_another_scheme(tmp_path):
    assert read(tmp_path / "x", "Anna S-PERSON\nlacht O\nGraz S-OTH\n", names={"B-PERSON": "B-PER", "B-OTH": "O"}) == [
        ("Anna lacht Graz", "B-PER O O")
    ]
