"""Raw text to clean training, dev and test text."""

import itertools
import re
from dataclasses import replace
from pathlib import Path

import pytest

from workflow_scripts.stage import InputError, checksums, read_json
from workflow_scripts.text.corpus import (
    DOCUMENT_REASONS,
    REASONS,
    Corpus,
    are_running,
    assign_documents,
    cut_lines,
    held_out,
    leak_key,
    train,
)
from workflow_scripts.text.files import read_lines
from workflow_scripts.text.parallel import Cut, Documents, Pair, Source, read_pairs
from workflow_scripts.text.words import number_of_words, words

MANUAL = Path("resources/libreoffice-help/en-de.tsv.xz")


def manual(**changes) -> Corpus:
    columns = {"document": 1, "en": 3, "de": 4}
    return Corpus(
        **{
            "languages": ("de", "en"),
            "train": Source(file=str(MANUAL), columns=columns),
            "dev": Source(held_out=300),
            "test": {"pages": Source(held_out=300)},
            **changes,
        }
    )


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
    for name in ("dev", "pages"):
        held_out(folder / f"{name}.de", folder / f"{name}.en", name=name, settings=manual())
    train(
        (folder / "dev.de", folder / "pages.de"),
        (folder / "dev.en", folder / "pages.en"),
        folder / "train.de",
        folder / "train.en",
        folder / "corpus.json",
        settings=manual(),
    )
    return {p.name: list(read_lines(p)) for p in folder.iterdir() if p.suffix != ".json"}, read_json(folder / "corpus.json")


def test_counts_add_up(made):
    sides, report = made
    assert report["read"] == report["kept"] + sum(report["removed"].values())
    assert set(report["removed"]) == set(REASONS)
    assert report["kept"] == len(sides["train.de"]) == len(sides["train.en"])
    assert report["removed"]["held-out document"] > 500 and report["removed"]["equals dev or test"] > 0


def test_nothing_leaks_on_either_side(made):
    sides, _ = made
    for lang in ("de", "en"):
        held = {leak_key(line) for name in ("dev", "pages") for line in sides[f"{name}.{lang}"]}
        assert not held & {leak_key(line) for line in sides[f"train.{lang}"]}


def test_held_out_is_whole_pages_of_running_sentences(made):
    sides, _ = made
    documents: dict[str, set[str]] = {}
    for pair in read_pairs(manual().train, ("de", "en")):
        documents.setdefault(pair.a, set()).add(pair.document)
    # a sentence that stands on several pages does not tell where it was taken from
    page = {line: min(found) for line, found in documents.items() if len(found) == 1}
    pages = {part: {page[line] for line in sides[f"{part}.de"] if line in page} for part in ("dev", "pages", "train")}
    assert len(pages["dev"]) > 10 and len(pages["pages"]) > 10
    assert not pages["dev"] & pages["pages"]
    assert not (pages["dev"] | pages["pages"]) & pages["train"]
    for name in ("dev", "pages"):
        assert 300 <= len(sides[f"{name}.de"]) < 360
        assert all(len(words(line, "en")) >= 5 and set(line[-3:]) & set(".!?:;…") for line in sides[f"{name}.en"])


def test_what_is_embedded_stays_small():
    files = [path for path in Path("resources").rglob("*") if path.is_file()]
    models = {folder: sum(path.stat().st_size for path in folder.iterdir()) for folder in Path("resources/backbones").iterdir()}
    assert len(models) == 3 and max(models.values()) <= 6.5 * 2**20
    assert sum(path.stat().st_size for path in files) - sum(models.values()) <= 8 * 2**20


def write(path: Path, rows: list[str]) -> Path:
    path.write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
    return path


def clean(tmp_path, rows, others=(), **changes):
    """Run `train` on a TSV of German and English; returns the kept pairs and the report.

    `others` are English references of other test sets.
    """
    others = {"others_b": (write(tmp_path / "others.en", others),)} if others else {}
    source = write(tmp_path / "raw.tsv", rows)
    dev_a, dev_b = write(tmp_path / "dev.de", ["Das ist der Test 12!"]), write(tmp_path / "dev.en", ["This is the test 12!"])
    settings = Corpus(
        ("de", "en"),
        Source(file=str(source), columns={"de": 1, "en": 2}),
        Source(files={"de": str(dev_a), "en": str(dev_b)}),
        {},
        **changes,
    )
    train((dev_a,), (dev_b,), tmp_path / "t.de", tmp_path / "t.en", tmp_path / "corpus.json", settings=settings, **others)
    return list(zip(read_lines(tmp_path / "t.de"), read_lines(tmp_path / "t.en"), strict=True)), read_json(tmp_path / "corpus.json")


def test_every_file_that_a_part_is_read_from_has_its_checksum(tmp_path):
    names = ("train.tsv", "dev.de", "dev.en", "first.tsv", "second.tsv")
    paths = dict(zip(names, (write(tmp_path / name, [f"{name}\tName {name}"]) for name in names), strict=True))
    train_source, *tests = (Source(file=str(paths[name]), columns={"de": 1, "en": 2}) for name in ("train.tsv", "first.tsv", "second.tsv"))
    dev = Source(files={code: str(paths[f"dev.{code}"]) for code in ("de", "en")})
    settings = Corpus(("de", "en"), train_source, dev, dict(zip(("first", "second"), tests, strict=True)))
    train((), (), tmp_path / "t.de", tmp_path / "t.en", tmp_path / "corpus.json", settings=settings)
    assert read_json(tmp_path / "corpus.json")["checksums"] == checksums(paths.values())


def test_text_that_is_all_in_the_test_set_is_an_error(tmp_path):
    rows = ["Ein Haus steht hier.\tHere is a house.", "Ein Baum steht hier.\tHere is a tree."]
    with pytest.raises(InputError, match="most are in the dev or test sets as well, so name other text"):
        clean(tmp_path, rows, others=["Here is a house.", "Here is a tree."])


def test_references_of_other_test_sets_do_not_leak(tmp_path):
    rows = ["Ein Haus steht hier.\tHere is a house.", "Ein Baum steht hier.\tHere is a tree."]
    pairs, report = clean(tmp_path, rows, others=["Here is a TREE!"])
    assert pairs == [("Ein Haus steht hier.", "Here is a house.")] and report["removed"]["equals dev or test"] == 1
    assert list(report["held_out"]) == ["dev"]


def test_pairs_of_dev_and_test_files_that_are_left_out_are_counted(tmp_path):
    test = ["Ein Haus.\tA house.", "\tHere is nothing.", "Ein Baum.\tA tree."]
    files = {
        "dev": [*test[:1], "Ein Weg.\tA way."],
        "test": test,
        "train": ["Ein Boot fährt.\tA boat goes.", "Ein Zug fährt.\tA train goes."],
    }
    sources = {name: Source(file=str(write(tmp_path / f"{name}.tsv", rows)), columns={"de": 1, "en": 2}) for name, rows in files.items()}
    settings = Corpus(("de", "en"), sources["train"], sources["dev"], {"news": sources["test"]})
    sides = [[tmp_path / f"{name}.{code}" for name in ("dev", "news")] for code in ("de", "en")]
    for name, *outputs in zip(("dev", "news"), *sides, strict=True):
        held_out(*outputs, name=name, settings=settings)
    train(*map(tuple, sides), tmp_path / "t.de", tmp_path / "t.en", tmp_path / "corpus.json", settings=settings)
    report = read_json(tmp_path / "corpus.json")
    assert report["held_out"] == {"dev": 1, "news": 2} and report["left_out"] == {"dev": 1, "news": 1} and report["kept"] == 2


def test_text_can_be_lower_cased(tmp_path):
    pairs, report = clean(tmp_path, ["Ein Haus\tA HOUSE", "ein haus\ta house"], lowercase=True)
    assert pairs == [("ein haus", "a house")] and report["removed"]["duplicate"] == 1
    settings = manual(lowercase=True)
    held_out(tmp_path / "pages.de", tmp_path / "pages.en", name="pages", settings=settings)
    assert all(line == line.lower() for line in read_lines(tmp_path / "pages.de"))


def test_each_reason_is_counted_once(tmp_path):
    pairs, report = clean(
        tmp_path,
        [
            "Ein Haus\tA house",
            "Ein Haus\tA house",
            "Ein Haus\tOne house",
            "\tempty",
            "Menu\tMenu",
            "das IST der test 99\tsomething else",
            "etwas anderes\tthis is, the test 34",
            "wort " * 30 + "\tword",
            "wort " * 300 + "\t" + "word " * 300,
            "zweimal  Leerraum\ttwo   blanks",
        ],
    )
    assert pairs == [("Ein Haus", "A house"), ("Ein Haus", "One house"), ("zweimal Leerraum", "two blanks")]
    assert report["removed"] == {
        "held-out document": 0,
        "empty side": 1,
        "identical sides": 1,
        "too long": 1,
        "length ratio": 1,
        "equals dev or test": 2,
        "duplicate": 1,
    }
    assert report["read"] == 10 and report["kept"] == 3


def test_duplicates_may_stay(tmp_path):
    pairs, _ = clean(tmp_path, ["a b\tc d", "a b\tc d"], deduplicate=False)
    assert len(pairs) == 2


def test_too_much_held_out():
    with pytest.raises(InputError, match="held_out asks for"):
        held_out(Path("unused.de"), Path("unused.en"), name="dev", settings=manual(dev=Source(held_out=15_000)))


def test_what_is_advised_to_be_held_out_can_be(tmp_path):
    (tmp_path / "x.tsv").write_text("".join(f"{line}\n" for line in pages([30, 10, 10, 10, 10, 10, 10, 10])), "utf-8")
    source = Source(file=str(tmp_path / "x.tsv"), columns={"document": 1, "de": 2, "en": 3})

    def asked(number):
        wanted = {"dev": Source(held_out=number // 2), "test": {"t": Source(held_out=number - number // 2)}}
        return Corpus(languages=("de", "en"), train=source, held_out_min_words=2, **wanted)

    with pytest.raises(InputError, match="held_out asks for 90 running sentences of 100") as refused:
        assign_documents(asked(90))
    (advised,) = re.findall(r"or ask for (\d+) in all at most", str(refused.value)) or ["0"]
    assert not int(advised) or assign_documents(asked(int(advised)))
    (tmp_path / "x.tsv").write_text("".join(f"{line}\n" for line in pages([10] * 10)), "utf-8")
    with pytest.raises(InputError, match="or ask for 30 in all at most"):
        assign_documents(asked(90))
    assert {*assign_documents(asked(30)).values()} == {"dev", "t"}


def pages(sizes: list[int]) -> list[str]:
    """A TSV of documents with so many running sentences each."""
    return [
        f"p{page}\tDas ist der Satz {'abcdefghij'[page]} {'x' * i}.\tThis is the sentence {'abcdefghij'[page]} {'x' * i}."
        for page, size in enumerate(sizes)
        for i in range(1, size + 1)
    ]


@pytest.mark.parametrize("documents", [None, Documents("de", min_words=12)])
def test_sentences_are_found_in_chunks_as_one_by_one(documents):
    settings = manual(documents=documents)
    pairs = list(itertools.islice(read_pairs(settings.train, settings.languages, documents), 2000))
    found = are_running(pairs, settings)
    assert found == [are_running([pair], settings)[0] for pair in pairs] and 200 < sum(found) < 1800
    least = 12 if documents else settings.held_out_min_words
    assert all(number_of_words(pair.a, "de") >= least for pair in itertools.compress(pairs, found))
    assert are_running([], settings) == []


KHMER = [
    ("ខ្ញុំបានទៅសាលារៀននៅទីក្រុងភ្នំពេញកាលពីឆ្នាំមុនជាមួយបងប្រុសរបស់ខ្ញុំ។", "I went to school in the city of Phnom Penh last year with my older brother."),
    ("ខ្ញុំស្រឡាញ់អ្នក។", "I love you."),
]


def test_sentences_end_in_the_marks_of_their_scripts_also_before_one_that_nobody_sees():
    ends = (".\u200f", "។\u200b", "៕", "॥", "፨", "༎", ".”\u200e", "。")
    pairs = [Pair("d", f"one two three four five six seven{end}", "one two three four five six seven.", at) for at, end in enumerate(ends)]
    source = Source(file="x.tsv", columns={"de": 1, "en": 2})
    settings = Corpus(languages=("de", "en"), train=source, dev=source, test={})
    assert all(are_running(pairs, settings))
    assert not any(are_running([pair._replace(a=pair.b.rstrip(".")) for pair in pairs], settings))


def test_sides_whose_words_are_not_known_are_as_long_as_their_letters(tmp_path):
    """What stands between two blanks is a clause in Khmer: the first sentence is one, beside 16 English words."""
    (tmp_path / "pairs.tsv").write_text("".join(f"d\t{a}\t{b}\n" for a, b in KHMER), "utf-8")
    source = Source(file=str(tmp_path / "pairs.tsv"), columns={"document": 1, "km": 2, "en": 3})
    settings = Corpus(languages=("km", "en"), train=source, dev=Source(held_out=1), test={})
    assert are_running(list(read_pairs(source, ("km", "en"))), settings) == [True, False]
    train((), (), tmp_path / "km", tmp_path / "en", tmp_path / "corpus.json", settings=replace(settings, dev=source))
    assert read_json(tmp_path / "corpus.json")["removed"] == dict.fromkeys(REASONS, 0)


def test_sentences_that_differ_by_the_two_letters_of_turkish_or_a_soft_hyphen_are_alike():
    for one, other in (
        ("İşlem iptal edildi.", "işlem iptal edildi"),
        ("Irmak", "ırmak"),
        ("Da\u00adtei öffnen", "Datei öffnen!"),
        ("J\u030caba", "ǰaba"),
        ("คน\u200bไทย", "คนไทย"),
        ("ශ්\u200dරී ලංකා", "ශ්රී ලංකා"),
    ):
        assert leak_key(one) == leak_key(other) != leak_key("Klick")
    assert leak_key("Iğdır 12") == "iğdir 00"


def test_large_documents_are_held_out_only_when_nothing_else_is_left(tmp_path):
    source = Source(file=str(write(tmp_path / "p.tsv", pages([30, 90, 30, 25, 60]))), columns={"document": 1, "de": 2, "en": 3})
    settings = Corpus(("de", "en"), source, Source(held_out=25), {"pages": Source(held_out=25)})
    assigned = assign_documents(settings)
    assert sorted(set(assigned.values())) == ["dev", "pages"] and len(assigned) < 5


def test_a_dev_set_that_stands_in_the_test_set_is_an_error(tmp_path):
    files = {"de": str(write(tmp_path / "a.de", ["Das ist der Satz."])), "en": str(write(tmp_path / "a.en", ["This is the sentence."]))}
    settings = manual(dev=Source(files=files), test={"same": Source(files=files)})
    with pytest.raises(InputError, match="all sentences of 'dev' are in the test sets"):
        held_out(tmp_path / "d.de", tmp_path / "d.en", name="dev", settings=settings)


def test_too_few_documents_are_refused(tmp_path):
    source = Source(file=str(write(tmp_path / "p.tsv", pages([120]))), columns={"document": 1, "de": 2, "en": 3})
    settings = Corpus(("de", "en"), source, Source(held_out=25), {"pages": Source(held_out=25)})
    with pytest.raises(InputError, match="too few documents to hold out 25 running sentences for 'dev'"):
        assign_documents(settings)


def test_dev_has_no_sentence_of_a_test_set(tmp_path):
    shared = [f"Der gemeinsame Satz {c} steht hier.\tThe shared sentence {c} stands here." for c in "abcdef"]
    rows = [
        f"p{page}\t{row}"
        for page in range(4)
        for row in (*shared[:2], *(f"Satz {'klmn'[page]} mit {c} im Ende.\tOne {'klmn'[page]} with {c} at the end." for c in "uvwxyz"))
    ]
    source = Source(file=str(write(tmp_path / "p.tsv", rows)), columns={"document": 1, "de": 2, "en": 3})
    settings = Corpus(("de", "en"), source, Source(held_out=5), {"pages": Source(held_out=5)})
    for name in ("dev", "pages"):
        held_out(tmp_path / f"{name}.de", tmp_path / f"{name}.en", name=name, settings=settings)
    dev, test = ({leak_key(line) for line in read_lines(tmp_path / f"{name}.de")} for name in ("dev", "pages"))
    assert dev and test and not dev & test


# ---------------------------------------------------------------------------------------------
# documents and summaries


@pytest.mark.parametrize(
    "line, code, longest, kept",
    [
        ("One two, three. </s> Four!", "en", Cut(words=3), "One two, three."),
        ("One two, three. </s> Four!", "en", Cut(words=2), "One two,"),
        ("One two, three. </s> Four!", "en", Cut(words=4), "One two, three. </s> Four!"),
        ("打开文件。 </s> 复制", "zh", Cut(characters=5), "打开文件。"),
        ("打开文件。 </s> 复制", "zh", Cut(characters=6), "打开文件。 </s> 复"),
        ("One two three", "en", Cut(words=2, characters=4), "One t"),
        ("", "en", Cut(words=2, characters=4), ""),
    ],
)
def test_cut(line, code, longest, kept):
    assert cut_lines(["a b c d e", line, "x y z"], code, longest)[1] == kept


def test_documents_are_cut_and_counted_and_references_are_not(tmp_path):
    columns = {"document": 1, "heading": 2, "en": 3, "de": 4}
    settings = manual(
        train=Source(file=str(MANUAL), columns=columns, summary="heading"),
        dev=Source(held_out=50),
        test={"pages": Source(held_out=50)},
        documents=Documents("de", cut={"de": Cut(words=30), "en": Cut(words=2)}, min_words=8),
    )
    files = [tmp_path / f"{name}.{code}" for code in ("de", "en") for name in ("dev", "pages")]
    for name in ("dev", "pages"):
        held_out(tmp_path / f"{name}.de", tmp_path / f"{name}.en", name=name, settings=settings)
    train(tuple(files[:2]), tuple(files[2:]), tmp_path / "train.de", tmp_path / "train.en", tmp_path / "corpus.json", settings=settings)
    report = read_json(tmp_path / "corpus.json")
    sides = {path.name: list(read_lines(path)) for path in tmp_path.glob("*.??")}
    count = {name: [number_of_words(line, name[-2:]) for line in lines] for name, lines in sides.items()}
    assert report["read"] == report["kept"] + sum(report["removed"].values()) and set(report["removed"]) == set(DOCUMENT_REASONS)
    assert report["kept"] == len(sides["train.de"]) == len(sides["train.en"]) > 3000
    assert all(8 <= n <= 30 for name in ("train.de", "dev.de", "pages.de") for n in count[name])
    assert max(count["train.en"]) == max(count["dev.en"]) == 2 < max(count["pages.en"])
    for code in ("de", "en"):
        assert report["documents"][code]["mean_words"] == pytest.approx(sum(count[f"train.{code}"]) / report["kept"])
        assert 100 < report["documents"][code]["cut"] < report["kept"]
    assert any("</s>" in line for line in sides["train.de"]) and not any("</s>" in line for line in sides["train.en"])
    held = {line for name in ("dev", "pages") for line in sides[f"{name}.de"]}
    assert not held & set(sides["train.de"]) and not set(sides["pages.de"]) & set(sides["dev.de"])


def test_a_summary_that_is_cut_is_still_compared_with_the_whole_references(tmp_path):
    long, shared = "one two three four five six", "The same long summary as in the test set"
    rows = [f"{page}\t{summary}\tEin Dokument über {page}." for page, summary in (("a", long), ("b", shared))]
    test_a, test_b = write(tmp_path / "test.de", ["Etwas ganz anderes."]), write(tmp_path / "test.en", [shared])
    sources = {"file": str(write(tmp_path / "raw.tsv", rows)), "columns": {"document": 1, "en": 2, "de": 3}}
    files = Source(files={"de": str(test_a), "en": str(test_b)})
    settings = Corpus(("de", "en"), Source(**sources), files, {}, documents=Documents("de", cut={"en": Cut(words=4)}))
    train((test_a,), (test_b,), tmp_path / "t.de", tmp_path / "t.en", tmp_path / "corpus.json", settings=settings)
    assert list(read_lines(tmp_path / "t.en")) == ["one two three four"]
    assert read_json(tmp_path / "corpus.json")["removed"]["equals dev or test"] == 1
