"""Skip-gram with negative sampling, in compiled code."""

import numpy as np
import pytest
from tiny_models import manual_pairs

from workflow_scripts.lexicon.embeddings import Embeddings, by_skipgram
from workflow_scripts.lexicon.skipgram import _kept, _noise, _step, skipgram
from workflow_scripts.stage import InputError

FAST = {"dimensions": 20, "window": 5, "negative": 5, "epochs": 2}


def test_a_neighbour_learns_to_predict_the_word_and_not_the_noise():
    """A step goes along the gradient of equation 4, which is computed here by differences, in double precision."""
    drawn = np.random.default_rng(1)
    vector, outputs = drawn.standard_normal(6), drawn.standard_normal((4, 6))

    def loss(vector, outputs):
        scores = outputs @ vector * np.array([1, -1, -1, -1])
        return np.log1p(np.exp(-scores)).sum()

    def slope(name, place):
        moved = {}
        for sign in (1, -1):
            given = {"vector": vector.copy(), "outputs": outputs.copy()}
            given[name][place] += sign * 1e-5
            moved[sign] = loss(**given)
        return (moved[1] - moved[-1]) / 2e-5

    learnt, changed = vector.astype(np.float32), outputs.astype(np.float32)
    _step(learnt, changed, np.empty(4, np.float32), np.empty(6, np.float32), np.float32(0.1))
    assert np.allclose(vector - learnt, [0.1 * slope("vector", at) for at in range(6)], atol=1e-5)
    assert np.allclose(outputs - changed, [[0.1 * slope("outputs", (k, at)) for at in range(6)] for k in range(4)], atol=1e-5)


def test_words_of_one_subject_come_together():
    """Two subjects of ten words each, which never meet in a sentence."""
    drawn = np.random.default_rng(1)
    lines = np.concatenate([drawn.integers(0, 10, 8) + 10 * (at % 2) for at in range(600)]).astype(np.int32)
    ends, counts = np.arange(8, len(lines) + 1, 8), np.bincount(lines)
    settings = {"window": 5, "negative": 5, "epochs": 40, "sample": 0.0, "alpha": 0.1, "seed": 1, "dimensions": 20}
    for workers in (1, 2):
        vectors = skipgram(lines, ends, counts, workers=workers, **settings)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        alike = vectors @ vectors.T
        assert alike[:10, :10].mean() > 0.5 + alike[:10, 10:].mean() and alike[10:, 10:].mean() > 0.5 + alike[10:, :10].mean()


def test_frequent_words_are_left_out_and_drawn_as_noise_as_word2vec_does():
    counts = np.array([10_000, 1_000, 16, 1])
    share = 1e-3 * counts.sum() / counts
    assert _kept(counts, 1e-3) == pytest.approx([share[0] ** 0.5 + share[0], share[1] ** 0.5 + share[1], 1, 1])
    assert (_kept(counts, 0) == 1).all()
    assert np.bincount(_noise(counts)) / len(_noise(counts)) == pytest.approx(counts**0.75 / (counts**0.75).sum(), abs=2e-6)


def test_a_text_of_nearly_one_word_comes_to_an_end():
    lines, counts = np.array([0, 1, 0, 2, 0, 3] * 20, np.int32), np.array([10**12, 1, 1, 1])
    settings = {"window": 2, "negative": 3, "epochs": 1, "sample": 0.0, "alpha": 0.025, "seed": 1, "dimensions": 4, "workers": 1}
    assert np.isfinite(skipgram(lines, np.arange(6, 121, 6), counts, **settings)).all()


def test_vectors_are_those_of_the_text_and_of_the_seed(tmp_path):
    text = tmp_path / "text"
    text.write_text("".join(f"{line.lower()}\n" for line in manual_pairs(600)[0]), encoding="utf-8")
    words, vectors = by_skipgram(text, 3, Embeddings(**FAST), text)
    assert (
        vectors.shape == (len(words), 20) and vectors.dtype == np.float32 and np.isfinite(vectors).all() and len(set(words)) == len(words)
    )
    assert (vectors == by_skipgram(text, 3, Embeddings(**FAST), text)[1]).all() and (
        vectors != by_skipgram(text, 4, Embeddings(**FAST), text)[1]
    ).any()
    with pytest.raises(InputError, match=r"text: only 0 words occur 10000 times or more; give more text or lower embeddings\.min_count"):
        by_skipgram(text, 3, Embeddings(**FAST, min_count=10_000), text)
