"""Words with tags: the formats of benchmarks, what is converted, and what is refused."""

import json
import lzma
import re
from collections import Counter
from pathlib import Path

import pytest

from workflow_scripts.stage import InputError, read_json
from workflow_scripts.text.examples import read_table
from workflow_scripts.text.labelled import Labelled, main
from workflow_scripts.text.labelled_source import LabelledSource
from workflow_scripts.text.parallel import block_of
from workflow_scripts.text.tagged import given_words, join_words, read_sentences, split_words

POS = ["DET", "NOUN", "PUNCT"]
NER = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]
UD = Path("resources/universal-dependencies")
UPOS = ["ADJ", "ADP", "ADV", "AUX", "CCONJ", "DET", "INTJ", "NOUN", "NUM", "PART", "PRON", "PROPN", "PUNCT", "SCONJ", "SYM", "VERB", "X"]


def read(path: Path, text: str, tags=POS, columns=None, names=None, code="en"):
    path.write_bytes(lzma.compress(text.encode()) if path.suffix == ".xz" else text.encode())
    changed: Counter[str] = Counter()
    found = list(read_sentences(path, columns or {}, list(tags), names or {}, code, changed))
    return [(one.words, one.tags) for one in found], changed


EXPECTED = [(["The", "house"], ["DET", "NOUN"]), (["#", "!"], ["NOUN", "PUNCT"])]


@pytest.mark.parametrize(
    "name, text, choices",
    [
        ("two-columns.txt", "The\tDET\nhouse\tNOUN\n\n#\tNOUN\n!\tPUNCT\n\n", {}),
        ("xglue.test", "The DET\nhouse NOUN\n\n# NOUN\n! PUNCT", {}),  # no blank line after the last sentence
        (
            "multiconer.conll",
            "# id 1\tdomain=en\nThe _ _ DET\nhouse _ _ NOUN\n\n# id 2\tdomain=en\n# _ _ NOUN\n! _ _ PUNCT\n",
            {"columns": {"tag": 4}},
        ),
        ("klue.tsv", "## id 1\tThe house\nThe\tDET\nhouse\tNOUN\n\n## id 2\t# !\n#\tNOUN\n!\tPUNCT\n", {}),
        ("train-en.tsv", "en:The\tDET\nen:house\tNOUN\n\nen:#\tNOUN\nen:!\tPUNCT\n", {}),
        ("docstart.xz", "-DOCSTART- -X-\n\nThe DET\nhouse NOUN\n\n\n\n# text = x\n# NOUN\n! PUNCT\n", {}),
        ("conll2003", "The x 1 DET\nhouse y 2 NOUN\n\n# z 3 NOUN\n! ! 4 PUNCT\n", {"columns": {"tag": 4}}),
        ("names.txt", "The\tART\nhouse\tNN\n\n#\tNN\n!\tPUNCT\n", {"names": {"ART": "DET", "NN": "NOUN"}}),
        (
            "x.conllu",
            "# newdoc\n# text = The house\n1-2\tThehouse\t_\t_\n1\tThe\tthe\tDET\n1.1\tgone\t_\tVERB\n2\thouse\t_\tNOUN\n\n1\t#\t_\tNOUN\n2\t!\t_\tPUNCT",
            {},
        ),
        (
            "x.jsonl",
            json.dumps({"words": ["The", "house"], "t": [0, 1]}) + "\n" + json.dumps({"words": ["#", "!"], "t": [1, 2]}) + "\n",
            {"columns": {"tag": "t"}, "names": {"0": "DET", "1": "NOUN", "2": "PUNCT"}},
        ),
    ],
)
def test_formats(tmp_path, name, text, choices):
    assert read(tmp_path / name, text, **choices)[0] == EXPECTED


def test_an_empty_word_of_a_list_keeps_its_place(tmp_path):
    rows = [{"words": ["The", "", "\ufeff"], "tags": ["DET", "PUNCT", "NOUN"]}]
    text = "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)
    [(words, tags)], changed = read(tmp_path / "x.jsonl", text)
    assert len(split_words(join_words(words))) == len(tags) == 3 and changed == {"empty word kept as a blank": 2}


def test_words_with_a_hash_or_a_blank_of_their_own_are_words(tmp_path):
    text = "# sent_id 7\n# NOUN x\n#1 NOUN x\n10\u00a0000 NOUN x\n\nhouse NOUN x\n# PUNCT x\n"
    ((first, _), (second, tags)), _ = read(tmp_path / "x", text)
    assert first == ["#", "#1", "10\u00a0000"] and second == ["house", "#"] and tags == ["NOUN", "PUNCT"]
    with pytest.raises(InputError, match="line 1: the tag 'HT' of the word '#love'"):
        read(tmp_path / "x", "#love HT\n")


@pytest.mark.parametrize("word", ["", "\ufeff"])
def test_an_empty_word_behind_a_prefix_keeps_its_place(tmp_path, word):
    found, changed = read(tmp_path / "x", f"en:The\tDET\nen:{word}\tPUNCT\nen:house\tNOUN\n")
    assert found == [(["The", "", "house"], ["DET", "PUNCT", "NOUN"])] and changed["empty word kept as a blank"] == 1


@pytest.mark.parametrize(
    "text, said",
    [
        (
            "The\tDET\nhouse\n",
            r"x, line 2: 1 column\(s\), but word and tag are in columns 1 and 2, .*'house'; correct the line, or set `col",
        ),
        ("The\tDET\nhouse\tNN\n", r"x, line 2: the tag 'NN' of the word 'house' is none of DET, NOUN, PUNCT; correct it, .*label_names"),
        ("The\tDET\n\tNOUN\n", r"x, line 2: the word is empty; delete the line"),
        ("the DT B-NP DET\nhouse NN I-NP NOUN\n", r"tag 'DT' .* in column 4 all tags are known: set `columns: \{tag: 4\}`"),
        # a column that has the same known tag in all lines is less likely
        ("the DT NOUN DET\nhouse NN NOUN NOUN\n", r"tag 'DT' .* in column 4 all tags are known: set `columns: \{tag: 4\}`"),
        ("New York NOUN\n", r"x, line 1: the tag 'York' of the word 'New' is none of"),
        ("en:The\tDET\nhouse\tNOUN\n", r"x, line 2: the word 'house' does not begin with 'en:' like the first one"),
    ],
)
def test_bad_lines_are_named(tmp_path, text, said):
    with pytest.raises(InputError, match=said):
        read(tmp_path / "x", text)


def test_bad_files_of_other_formats_are_named(tmp_path):
    with pytest.raises(InputError, match=r"x\.jsonl, line 2: 2 words but 1 tags"):
        read(tmp_path / "x.jsonl", '{"words": [], "tags": []}\n{"words": ["a", "b"], "tags": ["DET"]}\n')
    said = (
        r"x\.jsonl, line 1: not a JSON object with lists under 'words' and 'ner' .*no 'ner'; `columns` names .*, and words, tags have lists"
    )
    with pytest.raises(InputError, match=said):
        read(tmp_path / "x.jsonl", '{"words": ["a"], "tags": ["DET"]}\n', columns={"tag": "ner"})
    with pytest.raises(InputError, match=r"x\.jsonl, line 1: not a JSON object .*surrogates"):
        read(tmp_path / "x.jsonl", '{"words": ["\\ud83d"], "tags": ["DET"]}\n')
    with pytest.raises(InputError, match=r"x\.jsonl, line 1: not a JSON object .*null is no word"):
        read(tmp_path / "x.jsonl", '{"words": [null], "tags": ["DET"]}\n')
    with pytest.raises(
        InputError, match=r"x\.conllu, line 1: the word's number is expected in column 1, not 'The'; .*call a file without numbers"
    ):
        read(tmp_path / "x.conllu", "The\tDET\tx\tDET\n")


def test_sentences_that_are_left_out_keep_their_places(tmp_path):
    """Blocks of lines are held out in all languages alike."""
    rows = [{"words": [] if number in (3, 9) else [f"w{number}"], "tags": [] if number in (3, 9) else ["DET"]} for number in range(90)]
    path, changed = tmp_path / "x.jsonl", Counter()
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    found = [(sentence.document, sentence.line) for sentence in read_sentences(path, {}, UPOS, {}, "en", changed)]
    assert found == [(block_of(number), number) for number in range(1, 91) if number not in (4, 10)]
    assert changed == {"sentence without words left out": 2}


def test_kinds_of_spans_without_a_scheme_are_translated(tmp_path):
    text = "Mary PER\nAnn PER\nin O\nParis LOC\n"
    with pytest.raises(InputError, match=r"tag 'PER' .*; translate it with `label_names: \{\"PER\": \"I-PER\"\}`, and the other kinds"):
        read(tmp_path / "x", text, tags=NER)
    path, changed = tmp_path / "x", Counter()
    (sentence,) = read_sentences(path, {}, NER, {"PER": "I-PER", "LOC": "I-LOC"}, "en", changed)
    assert sentence.tags == ["B-PER", "I-PER", "O", "B-LOC"]


@pytest.mark.parametrize(
    "scheme, tags",
    [
        ("IOB1", "I-PER I-PER B-PER O I-LOC I-PER"),
        ("BIOES", "B-PER E-PER S-PER O S-LOC S-PER"),
        ("BILOU", "B-PER L-PER U-PER O U-LOC U-PER"),
    ],
)
def test_other_schemes_of_spans_become_iob2(tmp_path, scheme, tags):
    found, changed = read(tmp_path / "x", "".join(f"w {tag}\n" for tag in tags.split()), tags=NER)
    assert found[0][1] == ["B-PER", "I-PER", "B-PER", "O", "B-LOC", "B-PER"]
    assert changed == ({"span that began with I- now begins with B-": 3} if scheme == "IOB1" else {"BIOES or BILOU tag read as IOB2": 4})


def test_words_are_cleaned_without_losing_one(tmp_path):
    found, changed = read(tmp_path / "x", "quen quen\tNOUN\n\u3000\tPUNCT\n&#39;s\tDET\nR&D\tNOUN\n")
    assert [split_words(join_words(words)) for words, _ in found] == [["quen quen", " ", "'s", "R&D"]]
    assert changed == {"HTML entity read as its character": 1}


def settings(**changes) -> Labelled:
    source = {part: LabelledSource(file=str(UD / f"en.{part}.conllu.xz")) for part in ("train", "dev", "test")}
    tests = {"en": source["test"], "de": LabelledSource(file=str(UD / "de.test.conllu.xz"), language="de")}
    return Labelled(language="en", labels=UPOS, train=source["train"], dev=source["dev"], test=tests, unit="word", **changes)


def test_a_part_of_a_treebank(tmp_path):
    table, sentences, report = (tmp_path / name for name in ("x.tsv", "x", "x.json"))
    main(table, sentences, report, part="test/de", settings=settings())
    content = lzma.decompress((UD / "de.test.conllu.xz").read_bytes()).decode()
    rows = [line.split("\t") for line in content.split("\n") if re.match(r"\d+\t", line)]
    said, examples = read_json(report), read_table(table, UPOS, "word")
    assert said["examples"] == len(examples) == content.count("# sent_id") and said["language"] == "de"
    assert sum(said["labels"].values()) == len(rows) and said["labels"]["DET"] == sum(row[3] == "DET" for row in rows)
    assert [word for e in examples for word in split_words(e.text)] == [row[1] for row in rows]
    assert [tag for e in examples for tag in e.label.split(" ")] == [row[3] for row in rows]
    assert set(sentences.read_text("utf-8").splitlines()) == {e.text for e in examples}
    with pytest.raises(InputError, match=r"x\.tsv, line 1: the label '\w+' is none of 'DET'"):
        read_table(table, ["DET"], "word")


def test_training_text_has_no_sentence_of_a_test_set(tmp_path):
    def part(name: str) -> list[str]:
        main(tmp_path / "x.tsv", tmp_path / "x", tmp_path / "x.json", part=name, settings=settings())
        return [example.text.lower() for example in read_table(tmp_path / "x.tsv")]

    held_out = {*part("test/en"), *part("dev")}
    assert part("train") and not held_out & set(part("train"))
    assert read_json(tmp_path / "x.json")["removed"]["equals dev or test"] > 0


@pytest.mark.parametrize(
    ("name", "document", "word"),
    [
        ("{}.conllu", "# newdoc id = n{}\n# x = y\n", "{}\t{}\t_\tNOUN\n"),
        ("{}.conllu", "# newdoc\n", "{}\t{}\t_\tNOUN\n"),
        ("{}.txt", "-DOCSTART-\tO\n\n", "{1}\tNOUN\n"),
    ],
)
def test_the_same_documents_are_held_out_in_every_language(tmp_path, name, document, word):
    """Whose sentences have other numbers of words."""
    for code, length in (("en", 2), ("de", 3)):
        sentences = ("".join(word.format(at, code + "x" * n) for at in range(1, length + 1)) + "\n" for n in range(300))
        text = "".join((document.format(n // 3) if n % 3 == 0 else "") + sentence for n, sentence in enumerate(sentences))
        (tmp_path / name.format(code)).write_text(text)
    files = {code: str(tmp_path / name.format(code)) for code in ("en", "de")}
    tests = {"de": LabelledSource(files["de"], language="de", held_out=0.4), "en": LabelledSource(held_out=0.4)}
    divided = Labelled(
        language="en", labels=["NOUN"], train=LabelledSource(files["en"]), dev=LabelledSource(held_out=0.1), test=tests, unit="word"
    )
    found = {}
    for part in ("test/de", "test/en", "train"):
        main(tmp_path / "x.tsv", tmp_path / "x", tmp_path / "x.json", part=part, settings=divided)
        found[part] = [split_words(example.text)[0][2:] for example in read_table(tmp_path / "x.tsv")]
    assert found["test/de"] == found["test/en"] and 60 < len(found["test/de"]) < 180
    assert found["train"] and not {*found["train"]} & {*found["test/de"]}


def test_given_words_have_no_marks_at_their_ends():
    found = given_words([join_words(["Mr.", "don't", "danh sách", "—", "$25%"]), "", "\u0e31\u0e07 ☺️ a/b"])
    assert found.strings() == ["Mr", "don't", "danh sách", "25", "\u0e31\u0e07", "a/b"] and found.before.tolist() == [0, 4, 4, 6]


def test_a_first_word_that_begins_with_a_number_sign_is_no_comment_where_its_tag_is_known(tmp_path):
    text = "# 1\tS-PER\nBerlin\tO\n\n# \tO\nBerlin\tO\n"
    sentences, *_ = read(tmp_path / "x.tsv", text, tags=["O", "B-PER", "I-PER"])
    assert [tags for _, tags in sentences] == [["B-PER", "O"], ["O", "O"]]
