"""Retrieval, and what a lexicon is worth."""

from collections import Counter
from pathlib import Path

import pytest
import torch
from tiny_models import manual_pairs

from workflow_scripts.lexicon.alignment import count_links
from workflow_scripts.lexicon.lexicon import (
    Lexicon,
    coverage,
    evaluate,
    from_links,
    invert,
    judge_switched,
    main,
    read_gold,
    retrieve,
    select,
)
from workflow_scripts.lexicon.vectors import write_vectors
from workflow_scripts.models.tokenisation import unit_segmenter
from workflow_scripts.stage import InputError, checksums, read_json
from workflow_scripts.text.word_lists import read_lexicon

SEGMENT = unit_segmenter("de"), unit_segmenter("en")


@pytest.mark.parametrize("retrieval", ["csls", "cosine", "dot"])
def test_the_nearest_come_first_never_the_farthest(retrieval):
    x = torch.nn.functional.normalize(torch.randn(300, 20), dim=1)
    ranked, _ = retrieve(x, x, 5, Lexicon(retrieval=retrieval))
    assert torch.equal(ranked.indices[:, 0], torch.arange(300))
    assert (ranked.values[:, :-1] >= ranked.values[:, 1:]).all()


def test_csls_equals_its_definition():
    x, z = torch.randn(60, 8), torch.randn(90, 8)
    cosine = torch.nn.functional.normalize(x, dim=1) @ torch.nn.functional.normalize(z, dim=1).T
    expected = 2 * cosine - cosine.topk(10, dim=1).values.mean(1)[:, None] - cosine.topk(10, dim=0).values.mean(0)
    ranked, _ = retrieve(x, z, 4, Lexicon())
    assert torch.allclose(ranked.values, expected.topk(4, dim=1).values, atol=1e-5)
    assert torch.allclose(ranked.values, expected.gather(1, ranked.indices), atol=1e-5)


def test_no_word_is_its_own_candidate_and_no_special_piece_comes_in():
    words = ["Format", "<unk>", "▁", "42", "haus"]
    row = list(zip(words, [1.0, 0.75, 0.5, 0.25, 0.125], strict=True))
    entries = select(dict.fromkeys(["format", "<unk>", "42", "a", "b"], row), Lexicon(top_k=2))
    assert entries == {"format": [("haus", 0.125)], "a": [("Format", 1.0), ("haus", 0.125)], "b": [("Format", 1.0), ("haus", 0.125)]}
    assert "42" in select({"42": [("x", 1.0)]}, Lexicon(numbers=True))


def test_low_scores_can_be_left_out():
    assert select({"a": [("b", 0.75), ("c", 0.25)]}, Lexicon(min_score=0.5)) == {"a": [("b", 0.75)]}


def test_precision_counts_covered_words_with_and_without_identical_pairs():
    gold = {"datei": {"file"}, "format": {"format", "layout"}, "nie": {"never"}, "ohne": {"absent"}}
    rows = {"datei": ["format", "file"], "format": ["format", "layout"], "nie": ["file", "format"]}
    ranked = {word: [(candidate, 0.0) for candidate in row] for word, row in rows.items()}
    result = evaluate(ranked, {"file", "format", "layout", "never"}, gold)
    assert result["all"]["covered"] == 3 and result["all"]["p@1"] == pytest.approx(1 / 3) and result["all"]["p@5"] == pytest.approx(2 / 3)
    # without identical pairs *format* is neither gold nor candidate, so *layout* comes first
    assert result["non_identical"]["covered"] == 3 and result["non_identical"]["p@1"] == pytest.approx(1 / 3)
    assert result["all"]["gold_words"] == result["non_identical"]["gold_words"] == 4
    # a word whose only translation is itself is not in the gold lexicon without identical pairs
    counted = evaluate({}, {"format"}, {**gold, "test": {"test"}})
    assert (counted["all"]["gold_words"], counted["non_identical"]["gold_words"]) == (5, 4)


def test_each_direction_comes_from_its_own_side(tmp_path):
    # b0 is the nearest of all three a's, but b0's nearest is a1
    a = torch.tensor([[1.0, 0.0, 0.0], [0.9, 0.1, 0.0], [0.8, 0.0, 0.6]])
    b = torch.tensor([[0.9, 0.1, 0.01], [0.0, 0.0, 1.0]])
    for name, words, vectors in (("a.vec", ["a0", "a1", "a2"], a), ("b.vec", ["b0", "b1"], b)):
        write_vectors(tmp_path / name, words, vectors.numpy())
    (tmp_path / "t.a").write_text("a0 a1 a9 a9\n")
    (tmp_path / "t.b").write_text("b0\n")
    (tmp_path / "gold").write_text("a1 b0\na2\tb1\n")
    inputs = {name: tmp_path / file for name, file in (("mapped_a", "a.vec"), ("mapped_b", "b.vec"), ("text_a", "t.a"), ("text_b", "t.b"))}
    outputs = [tmp_path / name for name in ("ab.tsv", "ba.tsv", "lexicon.json")]
    settings = Lexicon(top_k=1, retrieval="cosine", align=False)
    main(*outputs, **inputs, languages=("de", "en"), gold=tmp_path / "gold", settings=settings)
    assert [row[:2] for row in read_lexicon(tmp_path / "ab.tsv")] == [("a0", "b0"), ("a1", "b0"), ("a2", "b0")]
    assert [row[:2] for row in read_lexicon(tmp_path / "ba.tsv")] == [("b0", "a1"), ("b1", "a2")]
    assert read_json(tmp_path / "lexicon.json")["checksums"] == checksums((inputs["text_a"], inputs["text_b"], tmp_path / "gold"))
    report = read_json(tmp_path / "lexicon.json")["directions"]
    assert report["de-en"]["coverage"] == {"running_words": 0.5, "types": pytest.approx(2 / 3)}
    assert report["de-en"]["gold"]["all"]["p@1"] == 0.5 and report["en-de"]["gold"]["all"]["p@1"] == 1.0


def test_gold_lexicon_of_the_repository():
    gold = read_gold(Path("resources/wiktionary/de-en.tsv.xz"), ("de", "en"), [Counter(), Counter()])
    assert len(gold) > 1500 and "file" in gold["datei"] and "datei" in invert(gold)["file"]


def test_a_bad_line_of_a_lexicon_is_named(tmp_path):
    (tmp_path / "l").write_text("a\tb\t1\tx\n")
    with pytest.raises(InputError, match="line 1"):
        list(read_lexicon(tmp_path / "l"))


def test_coverage_of_nothing():
    assert coverage(Counter({"ein": 1, "haus": 1}), {}) == {"running_words": 0.0, "types": 0.0}


def test_a_given_dictionary_is_the_lexicon(tmp_path):
    (tmp_path / "dictionary").write_text("Haus house\nhaus\thome\nbau house\nok ok\n")
    outputs = [tmp_path / name for name in ("ab.tsv", "ba.tsv", "lexicon.json")]
    main(*outputs, languages=("de", "en"), dictionary=tmp_path / "dictionary")
    assert read_json(tmp_path / "lexicon.json")["checksums"] == checksums([tmp_path / "dictionary"])
    assert [row[:2] for row in read_lexicon(outputs[0])] == [("haus", "house"), ("haus", "home"), ("bau", "house")]
    assert [row[:2] for row in read_lexicon(outputs[1])] == [("house", "haus"), ("house", "bau"), ("home", "haus")]
    with pytest.raises(InputError, match="give either"):
        main(*outputs, languages=("de", "en"), dictionary=tmp_path / "dictionary", mapped_a=tmp_path / "x", mapped_b=tmp_path / "y")


def test_word_lists_in_the_other_order_of_languages_are_refused(tmp_path):
    (tmp_path / "text.de").write_text("das haus\nin der maus\n")
    (tmp_path / "text.en").write_text("the house\nin the mouse\n")
    # a word that is spelt the same in both languages does not hide it
    (tmp_path / "turned").write_text("house haus\nmouse maus\nin in\n")
    outputs = [tmp_path / name for name in ("de-en.tsv", "en-de.tsv", "lexicon.json")]
    text = {"languages": ("de", "en"), "text_a": tmp_path / "text.de", "text_b": tmp_path / "text.en"}
    for given in ({"dictionary": tmp_path / "turned"}, {"aligned": True, "gold": tmp_path / "turned"}):
        with pytest.raises(InputError, match=r"turned: 1 of 3 pairs .* and 3 when .* first word of a line has to be German"):
            main(*outputs, **text, **given)
    # text with labels is in one of the two languages
    for side, code, called in (("text_a", "de", "German"), ("text_b", "en", "English")):
        one = {"languages": ("de", "en"), side: tmp_path / f"text.{code}", "dictionary": tmp_path / "turned"}
        with pytest.raises(InputError, match=rf"turned: 1 of 3 pairs have their {called} word in the text, and 3 when"):
            main(*outputs, **one)
        (tmp_path / "right").write_text("haus house\nmaus mouse\nin in\n")
        main(*outputs, **{**one, "dictionary": tmp_path / "right"})


def test_an_aligner_makes_a_lexicon_of_the_parallel_text(tmp_path):
    sides = manual_pairs(1500)
    for name, lines in zip(("t.de", "t.en"), sides, strict=True):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    text = {"text_a": tmp_path / "t.de", "text_b": tmp_path / "t.en"}
    gold = Path("resources/wiktionary/de-en.tsv.xz")

    def made(name, pairs=1500, **settings):
        outputs = [tmp_path / f"{name}.{kind}" for kind in ("ab", "ba", "json")]
        main(*outputs, languages=("de", "en"), aligned=True, aligned_pairs=pairs, gold=gold, **text, settings=Lexicon(**settings))
        return [list(read_lexicon(path)) for path in outputs[:2]], read_json(outputs[2])

    (ab, ba), report = made("whole", top_k=2)
    forwards, backwards = ({}, {})
    for rows, found in ((ab, forwards), (ba, backwards)):
        for word, candidate, *_ in rows:
            found.setdefault(word, []).append(candidate)
    assert forwards["datei"][0] == "file" and "datei" in backwards["file"] and max(map(len, forwards.values())) == 2
    assert report["aligned"] and report["dictionary"] is None and len(report["checksums"]) == 3
    german = report["directions"]["de-en"]
    # a tenth of it right would be luck; unsupervised mappings of this text have about half
    assert german["coverage"]["running_words"] > 0.5 and german["gold"]["non_identical"]["p@1"] > 0.5
    # the aligner judges nothing that it made itself
    assert german["switched"]["judged"] == german["switched"]["judged_by_gold"]
    assert made("again", top_k=2)[0] == [ab, ba]
    (strict, _), _ = made("strict", top_k=2, min_score=0.5)
    assert 0 < len(strict) < len(ab) and {row[:2] for row in strict} < {row[:2] for row in ab}
    (fewer, _), report = made("fewer", pairs=300, top_k=2)
    assert 0 < len(fewer) < len(ab) and report["aligned_pairs"] == 300


def test_the_score_of_a_link_is_its_share_and_single_links_are_left_out():
    links = Counter({("haus", "house"): 6, ("haus", "home"): 2, ("haus", "the"): 1, ("bau", "house"): 2, ("bau", "home"): 2})
    forwards, backwards = from_links(links)
    assert forwards.ranked == {"haus": [("house", 6 / 9), ("home", 2 / 9)], "bau": [("home", 0.5), ("house", 0.5)]}
    assert list(forwards.ranked) == ["haus", "bau"] and forwards.vocabulary == {"house", "home"}
    assert backwards.ranked == {"house": [("haus", 0.75), ("bau", 0.25)], "home": [("bau", 0.5), ("haus", 0.5)]}


def test_of_the_switched_words_the_right_ones_are_counted():
    counts = Counter({"datei": 6, "klick": 3, "selten": 1, "fremd": 10})
    entries = {"datei": [("file", 1.0), ("cat", 0.5)], "klick": [("click", 1.0)], "selten": [("rare", 1.0)]}
    links = Counter({("klick", "click"): 2, ("klick", "press"): 5, ("selten", "rare"): 1, ("datei", "cat"): 1})
    share = judge_switched(counts, entries, {"datei": {"file"}}, links)
    # a single link judges nothing: *selten* stays open, *cat* wrong
    assert share["judged"] == 0.9 and share["right"] == pytest.approx((6 * 0.5 + 3) / 9)
    assert share["judged_by_gold"] == 0.6 and share["right_by_gold"] == 0.5


def test_the_aligner_finds_what_stands_for_what(tmp_path, capsys):
    rows = [("das haus", "the house"), ("das buch", "the book"), ("ein buch", "a book"), ("ein haus", "a house")] * 10
    for side, name in ((0, "de"), (1, "en")):
        (tmp_path / name).write_text("".join(f"{row[side]}\n" for row in rows))
    links = count_links(tmp_path / "de", tmp_path / "en", SEGMENT, most=40)
    assert links[("haus", "house")] == 20 and links[("buch", "book")] == 20 and not links[("haus", "book")]
    some = count_links(tmp_path / "de", tmp_path / "en", SEGMENT, most=15)  # every third pair
    assert some[("haus", "house")] + some[("buch", "book")] == 13
    for name, word in (("de", "haus "), ("en", "house ")):
        with open(tmp_path / name, "a") as file:
            file.write(word * 1025 + "\n")
    assert count_links(tmp_path / "de", tmp_path / "en", SEGMENT, most=41) == links
    assert "note: 1 pairs have more than 1,024 words on a side, and are not aligned" in capsys.readouterr().out
    with open(tmp_path / "de", "a") as file:
        file.write("noch eine\n")
    with pytest.raises(InputError, match=r"ends after line 41, .*goes on at line 42"):
        count_links(tmp_path / "de", tmp_path / "en", SEGMENT, most=40)


def test_the_farthest_are_what_the_released_code_takes():
    a = torch.nn.functional.normalize(torch.randn(30, 8, generator=torch.Generator().manual_seed(1)), dim=1)
    forwards, backwards = retrieve(a, a, 3, Lexicon(retrieval="farthest"))
    farthest = (a @ a.T).topk(3, dim=1, largest=False).values
    for found in (forwards, backwards):
        assert torch.allclose((a @ a.T).gather(1, found.indices), farthest, atol=1e-6)


def test_bad_combinations_are_refused(tmp_path):
    outputs = tmp_path / "ab", tmp_path / "ba", tmp_path / "report"
    with pytest.raises(InputError, match="either --mapped-a and --mapped-b, or --dictionary"):
        main(*outputs, languages=("de", "en"), mapped_a=tmp_path / "a")
    (tmp_path / "empty").write_text("")
    with pytest.raises(InputError, match="or --aligned"):
        main(*outputs, languages=("de", "en"), dictionary=tmp_path / "empty", aligned=True)
    with pytest.raises(InputError, match="needs the parallel text"):
        main(*outputs, languages=("de", "en"), aligned=True, text_a=tmp_path / "empty")
    with pytest.raises(InputError, match="is empty"):
        main(*outputs, languages=("de", "en"), dictionary=tmp_path / "empty")
    write_vectors(tmp_path / "a.vec", ["x", "y"], torch.ones(2, 3).numpy())
    write_vectors(tmp_path / "b.vec", ["x", "y"], torch.ones(2, 4).numpy())
    with pytest.raises(InputError, match="3 dimensions"):
        main(*outputs, languages=("de", "en"), mapped_a=tmp_path / "a.vec", mapped_b=tmp_path / "b.vec")
    assert not outputs[0].exists()
