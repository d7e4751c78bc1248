"""Good mappings are separated from useless ones, without a gold lexicon."""

import dataclasses

import torch
from planted import SMALL, in_order_of_frequency, p_at_1, planted, unrelated

from workflow_scripts.lexicon import verdict
from workflow_scripts.lexicon.mapping import Sides, map_once


def test_the_verdict_looks_at_frequencies_where_no_words_are_spelt_the_same():
    sides, order = in_order_of_frequency(*planted(1.0, 1200))
    settings = dataclasses.replace(SMALL, search_cutoff=1200)
    good = map_once(sides, "unsupervised", [], 1, settings)
    assert good.attempt.good and good.attempt.frequency_correlation > 0.9 and p_at_1(good.a, good.b, order) > 0.5
    shuffled = torch.randperm(1200, generator=torch.Generator().manual_seed(1))
    bad = map_once(sides._replace(b=sides.b[shuffled]), "unsupervised", [], 1, settings)
    assert "frequencies of paired words correlate by only" in bad.attempt.reason


def test_the_verdict_asks_the_words_that_are_spelt_the_same():
    sides, order = planted(1.0)
    named = sides._replace(words_a=[f"word{i}" for i in range(800)], words_b=[f"word{i}" for i in order.tolist()])
    assert map_once(named, "unsupervised", [], 1, SMALL).attempt.good
    wrong = named._replace(words_b=[f"word{(i + 7) % 800}" for i in order.tolist()])
    assert "of 800 words spelt the same" in map_once(wrong, "unsupervised", [], 1, SMALL).attempt.reason


def test_vectors_of_one_space_are_only_judged():
    sides, _ = planted(0.0)
    same = sides._replace(b=sides.a)
    mapped = map_once(same, "mapped", [], 1, SMALL)
    assert mapped.attempt.good and torch.equal(mapped.a, sides.a)
    assert not map_once(unrelated(), "mapped", [], 1, SMALL).attempt.good


def test_vectors_that_are_all_alike_are_no_copy_of_each_other():
    # as averaged states of a network: any two of them are near to each other, and the words that are spelt the same are not found
    a, b = (torch.nn.functional.normalize(side, dim=1) + 6 * torch.eye(1, side.shape[1]) for side in unrelated()[2:])
    names = [f"word{i}" for i in range(len(a))]
    wrong = map_once(Sides(names, names, a, b), "mapped", [], 1, SMALL).attempt
    assert not wrong.good and "words spelt the same only" in wrong.reason
    assert map_once(Sides(names, names, a, a), "mapped", [], 1, SMALL).attempt.good


def test_a_full_dictionary_is_judged_by_a_fifth_of_its_pairs():
    sides, order = planted(0.1)
    pairs = [(sides.words_a[i], sides.words_b[j]) for j, i in enumerate(order.tolist())]
    judged = map_once(sides, "supervised", pairs, 1, SMALL).attempt
    assert judged.good and judged.witnesses == 160 and judged.witnesses_found > 0.9
    scrambled = [(a, b) for (a, _), (_, b) in zip(pairs, pairs[7:] + pairs[:7], strict=True)]
    assert "pairs of the dictionary that were held out" in map_once(sides, "supervised", scrambled, 1, SMALL).attempt.reason


def test_a_dictionary_of_rare_words_is_judged_by_them_too(monkeypatch):
    monkeypatch.setattr(verdict, "_JUDGED_WORDS", 300)
    sides, order = in_order_of_frequency(*planted(0.1))
    pairs = [(sides.words_a[i], sides.words_b[j]) for j, i in enumerate(order.tolist()) if min(i, j) > 400]
    judged = map_once(sides, "supervised", pairs * 2, 1, SMALL).attempt
    assert judged.good and judged.witnesses == len(pairs) // 5
