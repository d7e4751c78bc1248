"""Which words noise hits, and mBART's own noise."""

import itertools
from collections import Counter

import numpy as np
import pytest

from workflow_scripts.noise.span_noise import SpanNoise, choose_words, denoise, mask
from workflow_scripts.philox import generator
from workflow_scripts.text.words import MASK, words_of


def hits_of(choices, noise, sentences, seed=1, stream=0, first=0):
    """Positions of the hit words of so many sentences alike."""
    hits = choose_words(np.tile(choices, sentences), np.arange(sentences + 1) * len(choices), noise, seed, stream, first)
    return [(hits.words[hits.words // len(choices) == s] % len(choices)).tolist() for s in range(sentences)]


@pytest.mark.parametrize("n", [1, 3, 6, 20])
def test_35_percent_are_hit_on_average(n):
    drawn = [len(hit) for hit in hits_of([1] * n, SpanNoise(), 4000)]
    assert np.mean(drawn) == pytest.approx(0.35 * n, abs=0.03)
    assert max(drawn) - min(drawn) <= 1


def test_spans_spend_the_budget_on_allowed_words_only():
    choices = np.array([1, 0, 2, 3, 0, 1, 1, 1, 2, 0] * 3)
    for hit in hits_of(choices, SpanNoise(), 300):
        assert hit == sorted(set(hit)) and choices[hit].all() and len(hit) in (10, 11)
    assert hits_of([1] + [0] * 9, SpanNoise(), 1) == [[0]]
    assert hits_of([0] * 9, SpanNoise(), 1) == [[]]


def test_words_are_chosen_as_step_by_step_in_python():
    def choose(choices, rng):
        free = [position for position, n in enumerate(choices) if n]
        expected = 0.35 * len(choices)
        left = min(int(expected) + int(rng.random() < expected - int(expected)), len(free))
        hit = []
        while left:
            while not (length := int(rng.poisson(3.5))):
                pass
            start = int(rng.integers(len(free)))
            span = free[start : start + min(length, left)]
            del free[start : start + len(span)]
            hit += span
            left -= len(span)
        return [(word, int(rng.integers(choices[word]))) for word in sorted(hit)]

    rng = np.random.default_rng(1)
    sentences = [rng.integers(0, 4, size=rng.integers(0, 40)) for _ in range(500)]
    before = np.cumsum([0, *(len(s) for s in sentences)])
    hits = choose_words(np.concatenate(sentences), before, SpanNoise(), seed=9, stream=4, first=77)
    wanted = [
        (int(before[n]) + word, pick)
        for n, choices in enumerate(sentences)
        for word, pick in choose(choices.tolist(), generator(9, 4, 77 + n))
    ]
    assert list(zip(hits.words.tolist(), hits.picks.tolist(), strict=True)) == wanted


def test_span_lengths_follow_the_poisson_distribution():
    # a budget far larger than any span: positions then show the gaps between spans
    runs = Counter(sum(1 for a, b in itertools.pairwise(hit) if b == a + 1) > 0 for hit in hits_of([1] * 400, SpanNoise(rate=0.01), 1500))
    assert runs[True] > 3 * runs[False]


def test_mask_makes_one_mask_of_a_span():
    words = words_of(["eins zwei drei, vier fünf", "sechs sieben"], "de")
    assert mask(words, [0, 1, 4, 5]) == [f"{MASK} drei, vier {MASK}", f"{MASK} sieben"]
    assert mask(words, [2, 3]) == [f"eins zwei {MASK} , {MASK} fünf", "sechs sieben"]


def test_mbart_noise_permutes_sentences_and_masks():
    line = "Das ist der erste Satz. Hier kommt der zweite Satz. Und noch ein dritter Satz."
    noised = denoise(words_of([line] * 200, "de"), SpanNoise(), 1, 0)
    assert all(MASK in n for n in noised) and len({n.split()[0] for n in noised}) > 2
    untouched = denoise(words_of([line], "de"), SpanNoise(rate=0.0), 1, 0, first=5)[0]
    assert sorted(untouched.split()) == sorted(line.split())


def test_sentences_of_a_document_are_permuted_between_their_ends():
    line = "Eine Überschrift </s> Ein Satz. Noch einer. </s> Das Ende!"
    found = set(denoise(words_of([line] * 100, "de"), SpanNoise(rate=0.0), 1, 0))
    parts = line.split(" </s> ")
    assert found == {" </s> ".join(order) for order in itertools.permutations(parts)}


@pytest.mark.parametrize(
    "code, sentences, between",
    [
        ("zh", ["打开文件。", "选择“文件”。", "保存文件！"], ""),
        ("hi", ["फ़ाइल खोलें।", "फ़ाइल चुनें।", "फ़ाइल सहेजें।"], " "),
        ("ar", ["أين الملف؟", "افتح الملف.", "احفظ الملف."], " "),
        ("ur", ["فائل کھولیں۔", "فائل منتخب کریں۔", "فائل محفوظ کریں۔"], " "),
    ],
)
def test_sentences_of_other_scripts_are_permuted(code, sentences, between):
    line = between.join(sentences)
    found = set(denoise(words_of([line] * 100, code), SpanNoise(rate=0.0), 1, 0, spaced=bool(between)))
    assert found == {between.join(order) for order in itertools.permutations(sentences)}
