"""What words are replaced by, and the scrambled lexicon of a control."""

from collections import Counter

from test_codeswitch import CANDIDATES, LINE
from tiny_models import manual_pairs

from workflow_scripts.noise.candidates import Lookup, Lookups, permute_candidates
from workflow_scripts.noise.switching import switch_lines


def test_the_scrambled_lexicon_keeps_words_and_frequencies():
    lexicon = {f"a{i}": [f"b{i}", f"b{i + 1}"] for i in range(200)}
    counts = Counter({f"b{i}": 1000 - i for i in range(201)})
    scrambled = permute_candidates(lexicon, counts, 20, 1)
    assert scrambled.keys() == lexicon.keys() and scrambled == permute_candidates(lexicon, counts, 20, 1)
    for word, row in scrambled.items():
        assert row and not set(row) & {word, *lexicon[word]}
        for new in row:
            assert min(abs(counts[old] - counts[new]) for old in lexicon[word]) < 20
    kept = {c for row in scrambled.values() for c in row}
    assert kept <= counts.keys() and len(kept) > 0.95 * len(counts)


def test_no_word_keeps_a_right_translation_however_many_it_has():
    """Candidates of one word are equally frequent where only its own text is known, and so change names among themselves."""
    lexicon = {f"a{i}": [f"b{3 * i}", f"b{3 * i + 1}", f"b{3 * i + 2}"] for i in range(40)}
    counts = Counter({candidate: 100 - i for i, row in enumerate(lexicon.values()) for candidate in row})
    for size in (2, 3, 50):
        for word, row in permute_candidates(lexicon, counts, size, 1).items():
            assert row and not set(row) & {word, *lexicon[word]}


def test_a_lookup_that_forgets_finds_the_same(monkeypatch):
    text = [LINE, *manual_pairs(60)[0]]
    whole = switch_lines(text, Lookup(CANDIDATES, "de"), seed=3)
    monkeypatch.setattr(Lookup, "limit", 3)
    lookup = Lookup(CANDIDATES, "de")
    assert switch_lines(text, lookup, seed=3) == whole and len(lookup) <= 3


def test_one_language_alone_switches_as_two_sides_do():
    lookup = Lookup(CANDIDATES, "de", "en")
    assert switch_lines([LINE] * 50, Lookups([lookup]), seed=3) == switch_lines([LINE] * 50, lookup, seed=3)
