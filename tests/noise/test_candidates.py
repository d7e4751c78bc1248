"""What words are replaced by, and the scrambled lexicon of a control."""

from collections import Counter

from test_codeswitch import CANDIDATES, LINE
from tiny_models import manual_pairs

from workflow_scripts.noise.candidates import Lookup, Lookups, permute_candidates
from workflow_scripts.noise.codeswitch import switch_lines


def test_the_scrambled_lexicon_keeps_words_and_frequencies():
    lexicon = {f"a{i}": [f"b{i}", f"b{i + 1}"] for i in range(200)}
    counts = Counter({f"b{i}": 1000 - i for i in range(201)})
    scrambled = permute_candidates(lexicon, counts, 20, 1)
    assert scrambled.keys() == lexicon.keys() and scrambled == permute_candidates(lexicon, counts, 20, 1)
    for word, row in scrambled.items():
        assert not set(row) & set(lexicon[word]) or len(row) == 2
        for old, new in zip(lexicon[word], row, strict=True):
            assert new != old and abs(counts[old] - counts[new]) < 20
    assert Counter(c for r in lexicon.values() for c in r).keys() == Counter(c for r in scrambled.values() for c in r).keys()


def test_a_lookup_that_forgets_finds_the_same(monkeypatch):
    text = [LINE, *manual_pairs(60)[0]]
    whole = switch_lines(text, Lookup(CANDIDATES, "de"), seed=3)
    monkeypatch.setattr(Lookup, "limit", 3)
    lookup = Lookup(CANDIDATES, "de")
    assert switch_lines(text, lookup, seed=3) == whole and len(lookup) <= 3


def test_one_language_alone_switches_as_two_sides_do():
    lookup = Lookup(CANDIDATES, "de", "en")
    assert switch_lines([LINE] * 50, Lookups([lookup]), seed=3) == switch_lines([LINE] * 50, lookup, seed=3)
