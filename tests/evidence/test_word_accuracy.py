"""Word accuracy by frequency, against compare-mt's own report."""

from collections import Counter

import pytest
from compare_mt.bucketers import FreqWordBucketer
from tiny_models import manual_pairs

from workflow_scripts.evidence.word_accuracy import WordAccuracy, by_bucket, count, measure, tokenizer
from workflow_scripts.stage import InputError, read_json


@pytest.fixture
def files(tmp_path):
    """References of the manual, hypotheses with every third word lost or another, and training text in which some words are frequent."""
    references = manual_pairs(80)[1]
    hypotheses = [" ".join(word if i % 3 else "window" for i, word in enumerate(line.split())) for line in references]
    for name, lines in (("hyp", hypotheses), ("ref", references), ("train", references * 4)):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return tmp_path, hypotheses, references


def test_the_f_measure_is_compare_mts(files):
    folder, hypotheses, references = files
    settings = WordAccuracy(low=20, high=100)
    count(folder / "train", folder / "counts", language="en", settings=settings)
    measure(folder / "hyp", folder / "ref", folder / "counts", folder / "w.json", language="en", settings=settings)
    found = read_json(folder / "w.json")["buckets"]
    cut = tokenizer("en", settings)
    hypothesis, reference = ([cut(line) for line in lines] for lines in (hypotheses, references))
    counts = {word: 4 * n for word, n in Counter(word for line in reference for word in line).items()}
    theirs = FreqWordBucketer(freq_counts=counts, bucket_cutoffs=[20, 100]).calc_statistics(reference, [hypothesis])[0][0]
    for name, (_, _, _, recall, precision, f) in zip(("low", "mid", "high"), theirs, strict=True):
        assert found[name]["f"] == pytest.approx(f) and 0 < f < 1
        assert (found[name]["recall"], found[name]["precision"]) == pytest.approx((recall, precision))
    assert found["all"]["reference"] == sum(map(len, reference)) and found["all"]["hypothesis"] == sum(map(len, hypothesis))


def test_counts_by_hand():
    counts = Counter({"the": 500, "file": 50, "open": 5})
    found = by_bucket([["the", "the", "file", "cat"]], [["open", "the", "file", "file"]], counts, [10, 100])
    # "the" is in the reference once, "file" in the hypothesis once; "cat" was never seen
    assert {name: (cell["matches"], cell["reference"], cell["hypothesis"]) for name, cell in found.items()} == {
        "low": (0, 1, 1),
        "mid": (1, 2, 1),
        "high": (1, 1, 2),
        "all": (2, 4, 4),
    }
    assert found["mid"]["recall"] == 0.5 and found["mid"]["precision"] == 1 and found["mid"]["f"] == pytest.approx(2 / 3)
    assert found["low"]["f"] == 0 and found["all"]["f"] == 0.5


def test_a_bucket_without_a_word_in_the_references_has_no_measure():
    found = by_bucket([["the", "cat"]], [["the", "the"]], Counter({"the": 500}), [10, 100])
    assert found["mid"]["f"] is None and found["low"]["f"] is None and found["high"]["f"] == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    "code, line, words", [("en", "Don't open it.", ["Don't", "open", "it", "."]), ("zh", "打开文件", ["打", "开", "文", "件"])]
)
def test_words_are_those_of_sacrebleu(code, line, words):
    assert tokenizer(code, WordAccuracy())(line) == words


def test_frequencies_are_a_file_that_people_can_read(files):
    folder, _, references = files
    count(folder / "train", folder / "counts", language="en")
    lines = (folder / "counts").read_text(encoding="utf-8").splitlines()
    counts = [int(line.split("\t")[1]) for line in lines]
    assert counts == sorted(counts, reverse=True) and "the" in {line.split("\t")[0] for line in lines[:20]}
    assert sum(counts) == 4 * sum(len(tokenizer("en", WordAccuracy())(line)) for line in references)


def test_bad_input(files):
    folder, _, _ = files
    count(folder / "train", folder / "counts", language="en")
    with pytest.raises(InputError, match=r"low \(5\) must be below high \(5\)"):
        measure(folder / "hyp", folder / "ref", folder / "counts", folder / "w.json", language="en", settings=WordAccuracy(low=5, high=5))
    (folder / "short").write_text("one\n")
    measure(folder / "short", folder / "ref", folder / "counts", folder / "w.json", language="en")
    assert "decode again" in read_json(folder / "w.json")["failed"] and read_json(folder / "w.json")["buckets"] == {}
    (folder / "nothing").write_text("\n" * 80)
    count(folder / "nothing", folder / "no-counts", language="en")
    measure(folder / "nothing", folder / "ref", folder / "no-counts", folder / "w.json", language="en")
    assert "no-counts has no words" in read_json(folder / "w.json")["failed"]
