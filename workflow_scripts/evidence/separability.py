"""separability: how well a text's language can be read off its state, and how well its translation can be found; layer by layer.

Ji et al. (2024) argue that translation as continued pretraining makes a model spread its outputs over a larger space, so that they
are easier to separate. They measure singular values of weights (`spectra`). Here it is measured, in every layer, how separable
languages are. None of these measures changes when all states are scaled, so they say nothing of how large that space is:

probe
    the accuracy of a linear classifier (logistic regression on standardised features, scikit-learn) that tells the language of texts which
    it was not fitted to, in k-fold cross-validation. Translations of a text are always in one fold. Chance is 1 / languages.
    The cross-entropy (bits) goes on telling layers apart where the accuracy is 1.
between
    the share of the states' variance that lies between the languages. It is the squared distances of the languages' means from the mean of
    all, over those of all texts. Texts that have nothing to do with their language, or with each other, give on average (languages − 1) /
    (texts of all languages − 1). Translations are alike, so that they give less (`between_by_chance`), in each layer another value.
retrieval
    how often a text's nearest neighbour by cosine, in another language, is its translation: the mean over all ordered pairs of
    languages. `centred` is the same after each language's mean was subtracted: what a shift of the language hides.
cosine
    the mean cosine of two different texts of one language (Ethayarajh 2019): 0 in an isotropic space, near 1 in a narrow cone.
dimensions
    the participation ratio of the variances along the principal axes within languages, (Σ λ)² / Σ λ²: how many dimensions are used
    about equally; at most the width.

Intervals (95 %) of the probe's accuracy and of retrieval resample the texts, each with all its translations.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import torch

from workflow_scripts.evidence.analysis import Compared, Subject, register_analysis
from workflow_scripts.evidence.counted import share
from workflow_scripts.evidence.nearest import search
from workflow_scripts.evidence.states import Pooling, longest_of, open_half, read_texts, states_of
from workflow_scripts.number_types import AboveZero, Limits, Positive, Seed
from workflow_scripts.similarity import set_threads
from workflow_scripts.stage import InputError, run, write_json


@dataclass
class Separability:
    """Settings of separability."""

    texts: Positive = 500
    """Maximum number of texts per language."""
    pooling: Pooling = "mean"
    """How the states of a text become one vector (see `cka.poolings`)."""
    folds: Annotated[int, Limits(ge=2)] = 5
    """Number of folds in the cross-validation of the probe."""
    strength: AboveZero = 1.0
    """Inverse strength of the probe's L2 penalty (C in scikit-learn)."""
    iterations: Positive = 300
    """Maximum number of iterations for fitting the probe."""
    samples: Positive = 1_000
    """Number of resamples of the texts for the 95 % intervals."""
    batch_tokens: Positive = 4_096
    """Tokens per forward pass. Affects only time and memory."""
    seed: Seed = 1
    """Seed for choosing the texts, for the folds and for the resamples."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Device for computing; `auto` takes a GPU if there is one."""


def main(output: Path, subject: Subject, *, settings: Separability = Separability()) -> None:
    """Write the measures of the models; retrieval where the texts are parallel.

    Raises `InputError` for a single language, for fewer texts than folds, and for what `read_texts` and `open_half` refuse.
    """
    languages, parallel = subject.languages, subject.parallel
    if subject.threads:
        set_threads(subject.threads)
    if len(languages) < 2:
        raise InputError(f"separability needs texts in two languages at least; the analysis has {', '.join(languages) or 'none'}")
    needed = max(2, settings.folds)
    lines = read_texts(subject.texts, languages, settings.texts, needed, parallel=parallel, seed=settings.seed, labelled=subject.labelled)
    by_model, longest = {}, longest_of(subject.models)
    for name, path in zip(subject.names, subject.models, strict=True):
        half = open_half(name, path, subject.side, settings.device, subject.documents)
        states = np.stack(
            [
                states_of(half, side_lines, code, longest, settings.pooling, settings.batch_tokens)
                for side_lines, code in zip(lines, languages, strict=True)
            ],
            axis=1,
        )
        layers = [{"layer": layer, **measure(vectors, parallel, settings)} for layer, vectors in enumerate(states)]
        by_model[name] = {"family": half.form.label, "layers": half.depth, "width": half.width, "by_layer": layers}
    chance = {"probe": 1 / len(languages)}
    # that of `between` is the same in all layers only where texts are no translations of each other
    chance |= {"retrieval": 1 / len(lines[0])} if parallel else {"between": (len(languages) - 1) / (len(languages) * len(lines[0]) - 1)}
    write_json(output, {**subject.about(len(lines[0]), settings), "chance": chance, "models": by_model})


def measure(vectors: np.ndarray, parallel: bool, settings: Separability) -> dict[str, Any]:
    """All measures of one layer; `vectors` are languages × texts × width."""
    vectors = vectors.astype(np.float64)
    within = vectors - vectors.mean(axis=1, keepdims=True)
    row = {
        **probe(vectors, settings),
        "between": between(vectors),
        "cosine": float(np.mean([mean_cosine(side) for side in vectors])),
        "dimensions": participation(np.concatenate(list(within))),
    }
    if parallel:
        row["between_by_chance"] = between_by_chance(vectors)
        row["retrieval"] = with_interval(retrieval(vectors), settings)
        row["centred"] = with_interval(retrieval(within), settings)
    return row


def probe(vectors: np.ndarray, settings: Separability) -> dict[str, Any]:
    """How well a linear classifier tells the languages of texts that it was not fitted to: accuracy with interval, cross-entropy."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    languages, texts, width = vectors.shape
    fold = np.random.default_rng(settings.seed).permutation(texts) % settings.folds
    right, bits = np.zeros((languages, texts)), np.zeros((languages, texts))
    for number in range(settings.folds):
        known, new = (vectors[:, chosen].reshape(-1, width) for chosen in (fold != number, fold == number))
        answers = np.repeat(np.arange(languages), (fold != number).sum())
        model = make_pipeline(StandardScaler(), LogisticRegression(C=settings.strength, max_iter=settings.iterations))
        with warnings.catch_warnings():
            # a probe that stopped early is judged on new texts like any other
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(known, answers)
        chances = model.predict_proba(new).reshape(languages, -1, languages)
        truth = np.arange(languages)[:, None]
        right[:, fold == number] = chances.argmax(axis=2) == truth
        bits[:, fold == number] = -np.log2(np.maximum(np.take_along_axis(chances, truth[..., None], axis=2)[..., 0], 1e-300))
    return {"probe": with_interval(right.mean(axis=0), settings), "cross_entropy": float(bits.mean())}


def between(vectors: np.ndarray) -> float:
    """The share of the variance that lies between the languages; `vectors` are languages × texts × width. 0 where nothing varies."""
    centre = vectors.mean(axis=(0, 1))
    total = ((vectors - centre) ** 2).sum()
    apart = ((vectors.mean(axis=1) - centre) ** 2).sum() * vectors.shape[1]
    return share(apart, total)


def between_by_chance(vectors: np.ndarray) -> float:
    """The mean of `between` where language plays no part in parallel texts; `vectors` are languages × texts × width.

    It is the exact mean over all ways to exchange the languages within each text. With r_lt = x_lt − x̄_t of n texts, the mean of language l
    lies Σ_t r_lt / n from the mean of all. The r_lt of a text sum to zero, and texts are exchanged independently. So the expected sum of
    squares between languages is Σ_lt ‖r_lt‖² / n. The degrees of freedom agree: n (languages − 1) of the residuals, languages − 1 between
    languages. The total does not change.
    """
    residual = ((vectors - vectors.mean(axis=0)) ** 2).sum()
    total = ((vectors - vectors.mean(axis=(0, 1))) ** 2).sum()
    return share(residual / vectors.shape[1], total)


def retrieval(vectors: np.ndarray) -> np.ndarray:
    """For each text (n), the share of ordered pairs of languages in which its nearest neighbour by cosine is its translation."""
    sides = [torch.from_numpy(np.ascontiguousarray(side)) for side in vectors]
    own = np.arange(vectors.shape[1])
    right = [top.indices[:, 0].cpu().numpy() == own for a, b in combinations(sides, 2) for top in search(a, b, k=1)]
    return np.mean(right, axis=0)


def mean_cosine(vectors: np.ndarray) -> float:
    """The mean cosine of two different texts (texts × width)."""
    unit = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    n = len(unit)
    return float(((unit.sum(axis=0) ** 2).sum() - (unit**2).sum()) / (n * (n - 1)))


def participation(vectors: np.ndarray) -> float:
    """(Σ λ)² / Σ λ² of the variances λ along the principal axes of centred vectors (texts × width); 0 where nothing varies."""
    small = vectors @ vectors.T if len(vectors) < vectors.shape[1] else vectors.T @ vectors
    squares = float((small**2).sum())
    return float(np.trace(small) ** 2 / squares) if squares else 0.0


def with_interval(values: np.ndarray, settings: Separability) -> dict[str, float]:
    """The mean of one value per text, and its 95 % interval over resamples of the texts."""
    rng = np.random.default_rng([settings.seed, len(values)])
    drawn = np.array([values[rng.integers(len(values), size=len(values))].mean() for _ in range(settings.samples)])
    low, high = np.percentile(drawn, [2.5, 97.5])
    return {"mean": float(values.mean()), "low": float(low), "high": float(high)}


# ---------------------------------------------------------------------------------------------
# the entry


def problems(compared: Compared) -> Iterator[str]:
    """Fewer texts than the probe has folds, or a single language."""
    settings: Separability = compared.settings.separability
    if settings.texts < settings.folds:
        yield f"{compared.where}.separability.texts: {settings.texts} are fewer than its {settings.folds} folds"
    if compared.languages is not None and len(compared.languages) < 2:
        yield (
            f"{compared.where}: separability needs two languages at least, got {compared.languages}; leave it out of `stages`, or give "
            "text in another language"
        )


register_analysis("separability", label="Separability of languages", problems=problems, view="separation")


if __name__ == "__main__":
    run(main)
