"""similarity: how similar two texts are, as in STS (Cer et al. 2017): one number for each pair, scored by Pearson's correlation."""

import math

from crossgap import task


def squared_error(outputs, truth):
    """The squared error of each pair; what is right is a grade, such as 3.27 of 0 to 5."""
    return (outputs[:, 0] - truth) ** 2


def grades(outputs):
    """What the head says is the grade."""
    return outputs[:, 0].tolist()


def counts(truth, given):
    """What Pearson's correlation is made of, for each pair."""
    return [(1, x, y, x * x, y * y, x * y) for x, y in zip(truth, given, strict=True)]


def pearson(sums):
    """The correlation; 0 where all answers are the same, which then say nothing."""
    n, x, y, xx, yy, xy = sums
    spread = (n * xx - x * x) * (n * yy - y * y)
    return float((n * xy - x * y) / math.sqrt(spread)) if spread > 1e-9 else 0.0


def shared_words(texts, pairs):
    """The share of words that are in both texts, a strong baseline for similarity."""
    words = [({*text.lower().split()}, {*pair.lower().split()}) for text, pair in zip(texts, pairs, strict=True)]
    return [len(one & other) / max(1, len(one | other)) for one, other in words]


task(
    "similarity",
    label="similarity of texts",
    learns="say how similar two texts are",
    inputs="pairs of texts",
    outputs="similarities",
    row="pairs",
    kind=float,
    width=1,
    loss=squared_error,
    answer=grades,
    counts=counts,
    scores={"pearson": pearson},
    called={"pearson": "Pearson's r"},
    trivial=shared_words,
    trivially="the share of words that are in both texts",
    source="Cer et al. 2017",
)
