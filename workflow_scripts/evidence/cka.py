"""cka: how alike the states of two models, or of two languages in one model, are (centred kernel alignment).

Linear CKA (Kornblith et al. 2019) compares two representations X (n × d) and Y (n × e) of the same n texts. It is 1 where one is the
other rotated and scaled, and does not need d = e. Compared are

- models with each other, in each language, layer by layer or each layer with each (Ji et al. 2024, Figure 1),
- languages with each other within a model, layer by layer (their Figure 2), on translations or, with `unaligned`, on any texts.

Two estimates stand side by side:

plain
    ‖YᵀX‖²_F / (‖XᵀX‖_F ‖YᵀY‖_F), the paper's formula, on centred columns. With few texts and many dimensions it is far above 0
    for representations that have nothing to do with each other. `zero` is its expected value if the texts of Y are shuffled, in closed
    form: tr(XᵀX) tr(YᵀY) / ((n − 1) ‖XᵀX‖_F ‖YᵀY‖_F).
unbiased
    the same ratio of unbiased estimates of HSIC (Song et al. 2012, equation 5; Nguyen et al. 2021). Its zero line is 0.

Steps:

1. `pairs_of` lists what is compared.
2. Texts are read in blocks. From each block `compare` keeps sums that do not grow with the number of texts: the second moments
   (d × e) of each pair, as far as memory allows. For the pairs that are left it reads the texts again.
3. `estimate` makes the two values of these sums. Where all texts are one block, it is done by their n × n similarities instead.
4. The interval resamples texts. A text's part in the unbiased HSIC (its jackknife pseudo-value, within its block) is calculated
   once, and these parts are drawn with replacement (`pseudo_values`). Drawing the texts themselves would compare a text with its own copy.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise, product
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import torch

from workflow_scripts.evidence.analysis import Compared, Subject, register_analysis
from workflow_scripts.evidence.states import Half, Pooling, encoded, longest_of, open_half, pooled, read_texts
from workflow_scripts.names import undefined
from workflow_scripts.number_types import AboveZero, Positive, Seed
from workflow_scripts.stage import InputError, run, write_json

NEEDED = 5
"""Texts that the estimate and its interval need at least: HSIC is estimated without bias from four, and each is left out once."""


@dataclass
class Cka:
    """Settings of centred kernel alignment."""

    texts: Positive = 1_000
    """Maximum number of texts per language."""
    poolings: list[Pooling] = field(default_factory=lambda: ["mean"])
    """How the states of a text become one vector. `mean`: mean over all positions. `text`: mean without special tokens. `first`, `last`:
    the state at that position."""
    layers: Literal["same", "all"] = "same"
    """Which layers of two models are compared: `same` compares equal layers, `all` every two layers."""
    against: list[str] = field(default_factory=list)
    """Models that all others are compared with. By default the analysis's `base`; without a base, every two models are compared."""
    unaligned: bool = False
    """Also compare languages in text that is not `parallel`: line i of one with line i of the other. Ji et al. (2024) presumably do so in
    their Figure 2. Such lines are unrelated, so the unbiased estimate is near 0, and the plain one near its chance level."""
    samples: Positive = 1_000
    """Number of resamples of the texts for the 95 % intervals."""
    block: Positive = 500
    """Number of texts that go through the models together. Intervals are calculated within such blocks."""
    memory_gb: AboveZero = 4.0
    """Memory for second moments, in GB. If they need more, the texts go through the models several times."""
    batch_tokens: Positive = 2_048
    """Tokens per forward pass. Affects only time and memory."""
    seed: Seed = 1
    """Seed for choosing the texts and for the resamples."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Device for computing; `auto` takes a GPU if there is one."""


class Place(NamedTuple):
    """One representation: a model's layer in a language, pooled in one way; all by number."""

    model: int
    language: int
    pooling: int
    layer: int


Pair = tuple[Place, Place]
Read: TypeAlias = "Callable[[slice, int, int], torch.Tensor]"
"""Texts, model and language → vectors (poolings × layers × texts × width)."""


def main(output: Path, subject: Subject, *, base: str = "", settings: Cka = Cka()) -> None:
    """Write the similarities of the models, and of the languages within each; these of `parallel` texts, or if `settings.unaligned`.

    Raises `InputError` where models that are compared layer by layer differ in depth, where nothing is left to compare, and for what
    `read_texts` and `open_half` refuse.
    """
    models, names, languages, parallel = subject.models, subject.names, subject.languages, subject.parallel
    if subject.threads:
        torch.set_num_threads(subject.threads)
    lines = read_texts(subject.texts, languages, settings.texts, NEEDED, parallel=parallel, seed=settings.seed, labelled=subject.labelled)
    longest = longest_of(models)

    # one model at a time is held: each block asks for them in order, and reading one again takes less time than a block
    @functools.lru_cache(maxsize=1)
    def half(model: int) -> Half:
        return open_half(names[model], models[model], subject.side, settings.device, subject.documents)

    def read(at: slice, model: int, language: int) -> torch.Tensor:
        rows = encoded(half(model), lines[language][at], languages[language], longest)
        return pooled(half(model), rows, settings.poolings, settings.batch_tokens)

    shapes = [(half(model).depth, half(model).width, half(model).form.label) for model in range(len(models))]
    between = model_pairs(names, settings.against or ([base] if base else []))
    pairs = pairs_of([depth for depth, _, _ in shapes], names, len(languages), parallel or settings.unaligned, between, settings)
    if not pairs:
        raise InputError(f"there is nothing to compare: {len(models)} model(s), {len(languages)} language(s), `parallel: {parallel}`")
    found = compare(pairs, read, len(lines[0]), [width for _, width, _ in shapes], settings)
    report = {
        **subject.about(len(lines[0]), settings),
        "models": {name: dict(zip(("layers", "width", "family"), shape, strict=True)) for name, shape in zip(names, shapes, strict=True)},
        "poolings": {
            pooling: listed([pair for pair in pairs if pair[0].pooling == number], found, names, languages)
            for number, pooling in enumerate(settings.poolings)
        },
    }
    write_json(output, report)


def listed(pairs: list[Pair], found: dict[Pair, dict[str, Any]], names: Sequence[str], languages: Sequence[str]) -> dict[str, Any]:
    """The estimates as the report has them: of two models in a language, and of two languages in a model, each a list by layer."""
    models: dict[tuple[int, int, int], list] = {}
    between: dict[tuple[int, int, int], list] = {}
    for pair in pairs:
        a, b = pair
        row = {"layers": [a.layer, b.layer], **found[pair]}
        if a.model != b.model:
            models.setdefault((a.model, b.model, a.language), []).append(row)
        else:
            between.setdefault((a.model, a.language, b.language), []).append(row)
    return {
        "models": [{"a": names[a], "b": names[b], "language": languages[at], "by_layer": rows} for (a, b, at), rows in models.items()],
        "languages": [{"model": names[at], "a": languages[a], "b": languages[b], "by_layer": rows} for (at, a, b), rows in between.items()],
    }


# ---------------------------------------------------------------------------------------------
# what is compared


def model_pairs(names: Sequence[str], against: Sequence[str]) -> list[tuple[int, int]]:
    """The models that are compared, by number: each of those `against` which is measured with each other one; without any, every two."""
    if not against:
        return list(combinations(range(len(names)), 2))
    chosen = [list(names).index(name) for name in against]
    return [(a, b) for a in chosen for b in range(len(names)) if b not in chosen]


def pairs_of(
    depths: Sequence[int],
    names: Sequence[str],
    languages: int,
    of_languages: bool,
    between: list[tuple[int, int]],
    settings: Cka,
) -> list[Pair]:
    """What is compared: the models of each pair in `between`, in every language; `of_languages` also every two languages of each model.

    Raises `InputError` where two models that are compared layer by layer differ in depth.
    """
    pairs: list[Pair] = []
    for (a, b), pooling in ((each, pooling) for each in between for pooling in range(len(settings.poolings))):
        if settings.layers == "same" and depths[a] != depths[b]:
            raise InputError(
                f"{names[a]} has {depths[a]} layers and {names[b]} {depths[b]}, so they cannot be compared layer by layer; "
                "set `cka.layers: all`, which compares each layer with each, or analyse them apart"
            )
        every = [(i, j) for i in range(depths[a] + 1) for j in range(depths[b] + 1) if settings.layers == "all" or i == j]
        pairs += [(Place(a, language, pooling, i), Place(b, language, pooling, j)) for language in range(languages) for i, j in every]
    for model, depth in enumerate(depths):
        two = list(combinations(range(languages), 2)) if of_languages else []
        for pooling, layer, (a, b) in product(range(len(settings.poolings)), range(depth + 1), two):
            pairs.append((Place(model, a, pooling, layer), Place(model, b, pooling, layer)))
    return pairs


# ---------------------------------------------------------------------------------------------
# sums over blocks


def compare(pairs: list[Pair], read: Read, texts: int, widths: Sequence[int], settings: Cka) -> dict[Pair, dict[str, float | None]]:
    """Plain and unbiased CKA of each pair with `zero`, `low` and `high` (95 % interval of the unbiased one); None where undefined.

    A representation that is the same for all texts, or for all but one, has no CKA. `read` is asked for each block of texts once, or once
    for each group of pairs whose second moments fit into the memory.
    """
    few = texts <= settings.block
    own = [(place, place) for place in dict.fromkeys(place for pair in pairs for place in pair)]
    draws = resamples(texts, settings.samples, settings.seed)
    sums: dict[Pair, Sums] = {}
    for group in [[*own, *pairs]] if few else groups([*own, *pairs], widths, settings.memory_gb):
        sums |= _sums(group, read, texts, draws, settings.block)
    return {pair: estimate(sums[pair], sums[pair[0], pair[0]], sums[pair[1], pair[1]], texts) for pair in pairs}


def groups(pairs: list[Pair], widths: Sequence[int], memory_gb: float) -> Iterator[list[Pair]]:
    """The pairs in groups whose second moments, in float32, take so much memory at most; at least one pair each."""
    group: list[Pair] = []
    taken = 0.0
    for pair in pairs:
        size = 4e-9 * widths[pair[0].model] * widths[pair[1].model]
        if group and taken + size > memory_gb:
            yield group
            group, taken = [], 0.0
        group.append(pair)
        taken += size
    yield group


def resamples(texts: int, samples: int, seed: int) -> np.ndarray:
    """How often each resample has each text (samples × texts)."""
    rng = np.random.default_rng([seed, texts])
    return np.stack([np.bincount(rng.integers(texts, size=texts), minlength=texts).astype(np.uint8) for _ in range(samples)])


class Sums(NamedTuple):
    """What is kept of one pair of representations."""

    plain: float
    """‖YᵀX‖²_F of centred columns."""
    unbiased: float
    """The unbiased estimate of HSIC, of all texts together."""
    variance: float
    """tr(XᵀX) of centred columns of the first one; 0 where it is the same for all texts."""
    mean: float
    """The mean of the texts' `pseudo_values`, each within its block: about the same, and what resamples are compared with."""
    drawn: np.ndarray
    """The same mean in each resample."""


def _sums(pairs: list[Pair], read: Read, texts: int, draws: np.ndarray, block: int) -> dict[Pair, Sums]:
    """Read all texts once, and keep what the estimates of these pairs need."""
    places = sorted({place for pair in pairs for place in pair})
    # blocks of like size, since the interval wants none that is very small
    edges = np.linspace(0, texts, math.ceil(texts / block) + 1).astype(int)
    moments: dict[Pair, Moments] = {}
    exact: dict[Pair, tuple[float, float, float]] = {}
    means, drawn = dict.fromkeys(pairs, 0.0), {pair: np.zeros(len(draws)) for pair in pairs}
    shifts: dict[Place, torch.Tensor] = {}
    for start, end in pairwise(edges):
        vectors = _block(places, read, slice(start, end), shifts)
        similar = {place: u_centred(x @ x.T) for place, x in vectors.items()}
        weights = torch.from_numpy(draws[:, start:end].astype(np.float32))
        for pair in pairs:
            mine = pseudo_values(similar[pair[0]], similar[pair[1]]).float().cpu()
            means[pair] += float(mine.sum(dtype=torch.float64)) / texts
            drawn[pair] += (weights @ mine).numpy() / texts
        for a, b in pairs:
            if len(edges) == 2:
                exact[a, b] = by_similarities(vectors[a], vectors[b], similar[a], similar[b])
            else:
                moments.setdefault((a, b), Moments(vectors[a], vectors[b])).add(vectors[a], vectors[b])
    found = exact or {pair: moment.result(texts) for pair, moment in moments.items()}
    return {pair: Sums(*found[pair], means[pair], drawn[pair]) for pair in pairs}


def _block(places: list[Place], read: Read, at: slice, shifts: dict[Place, torch.Tensor]) -> dict[Place, torch.Tensor]:
    """The vectors of a block (texts × width each), less the mean of the first block, which keeps rounding errors small.

    Neither estimate changes if the same vector is subtracted from all texts. One that is the same for all texts becomes zero.
    """
    vectors = {}
    read_now: dict[tuple[int, int], torch.Tensor] = {}
    for place in places:
        if (place.model, place.language) not in read_now:
            read_now[place.model, place.language] = read(at, place.model, place.language)
        x = read_now[place.model, place.language][place.pooling, place.layer]
        shift = shifts.setdefault(place, x.mean(dim=0))
        shifted = x - shift
        rounding = 1e-10 * float((shift.double() ** 2).sum())
        constant = float((shifted.double() ** 2).sum(dim=1).mean()) <= rounding
        vectors[place] = torch.zeros_like(shifted) if constant else shifted
    return vectors


class Moments:
    """Sums over texts of one pair, from which both estimates follow; width × width numbers, however many texts there are."""

    def __init__(self, x: torch.Tensor, y: torch.Tensor) -> None:
        self.product = x.new_zeros(x.shape[1], y.shape[1])
        self.x, self.y, self.x_by_y, self.y_by_x = (side.new_zeros(side.shape[1], dtype=torch.float64) for side in (x, y, x, y))
        self.squares = x.new_zeros(3, dtype=torch.float64)

    def add(self, x: torch.Tensor, y: torch.Tensor) -> None:
        """Add a block of texts (texts × width each)."""
        a, b = ((side.double() ** 2).sum(dim=1) for side in (x, y))
        self.product.addmm_(x.T, y)
        self.x += x.sum(dim=0, dtype=torch.float64)
        self.y += y.sum(dim=0, dtype=torch.float64)
        self.x_by_y += (x.T @ b.float()).double()
        self.y_by_x += (y.T @ a.float()).double()
        self.squares += torch.stack([a.sum(), b.sum(), (a * b).sum()])

    def result(self, n: int) -> tuple[float, float, float]:
        """‖YᵀX‖²_F of centred columns, the unbiased HSIC (Song et al. 2012, equation 5), and the trace of the centred XᵀX; of n texts.

        K is XXᵀ and L is YYᵀ, with diagonals of 0. Equation 5 needs tr(KL), 1ᵀK1, 1ᵀL1 and 1ᵀKL1; each follows from the sums.
        """
        product = self.product.double()
        a, b, both = self.squares
        trace = (product**2).sum() - both
        sums = (self.x @ self.x - a) * (self.y @ self.y - b)
        rows = self.x @ product @ self.y - self.x @ self.x_by_y - self.y @ self.y_by_x + both
        unbiased = (trace + sums / ((n - 1) * (n - 2)) - 2 * rows / (n - 2)) / (n * (n - 3))
        plain = ((product - torch.outer(self.x, self.y) / n) ** 2).sum()
        return float(plain), float(unbiased), float(a - self.x @ self.x / n)


def by_similarities(x: torch.Tensor, y: torch.Tensor, k: torch.Tensor, l: torch.Tensor) -> tuple[float, float, float]:  # noqa: E741
    """The same three numbers as `Moments.result`, of all texts at once, by their n × n similarities; k and l are `u_centred`."""
    n = len(x)
    centred = [(side - side.mean(dim=0)).double() for side in (x, y)]
    plain = ((centred[0] @ centred[0].T) * (centred[1] @ centred[1].T)).sum()
    return float(plain), float((k * l).sum() / (n * (n - 3))), float((centred[0] ** 2).sum())


def u_centred(similar: torch.Tensor) -> torch.Tensor:
    """A matrix of similarities (n × n) with a zero diagonal, centred so that its rows still sum to 0 (Székely and Rizzo 2014).

    The sum of the products of two such matrices, divided by n (n − 3), is the unbiased HSIC.
    """
    n = len(similar)
    kept = similar.double().fill_diagonal_(0)
    rows = kept.sum(dim=1, keepdim=True)
    return (kept - (rows + rows.T) / (n - 2) + rows.sum() / ((n - 1) * (n - 2))).fill_diagonal_(0)


def pseudo_values(k: torch.Tensor, l: torch.Tensor) -> torch.Tensor:  # noqa: E741
    """Each text's part in the unbiased HSIC of a block (n): the jackknife's pseudo-values, whose mean is the estimate itself.

    k and l are `u_centred`. Let tᵢ be row i's sum of products. Without text i, equation 5 of Song et al. has tr(KL) − 2 tᵢ and
    1ᵀKL1 = tᵢ, because all rows of k and l sum to 0.
    """
    n = len(k)
    rows = (k * l).sum(dim=1)
    total = rows.sum()
    without = (total - 2 * rows - 2 * rows / (n - 3)) / (n - 4)
    return total / (n - 3) - without


def estimate(both: Sums, x: Sums, y: Sums, texts: int) -> dict[str, float | None]:
    """CKA of a pair, from the sums of the pair and of each side with itself. Values are rounded to six digits."""
    if not x.variance or not y.variance:
        return dict.fromkeys(("plain", "zero", "unbiased", "low", "high"))
    # of texts that are all the same but one, HSIC is zero, and rounding would decide on the value
    if any(min(side.unbiased, side.mean) * texts**2 < 1e-5 * side.plain for side in (x, y)):
        return dict.fromkeys(("plain", "zero", "unbiased", "low", "high"))
    norm = math.sqrt(x.plain * y.plain)
    unbiased = both.unbiased / math.sqrt(x.unbiased * y.unbiased)
    centre = both.mean / math.sqrt(x.mean * y.mean)
    with np.errstate(invalid="ignore"):
        drawn = both.drawn / np.sqrt(x.drawn * y.drawn)
    low, high = np.nanpercentile(drawn - centre, [2.5, 97.5]) if np.isfinite(drawn).any() else (-2.0, 2.0)
    values = {
        "plain": both.plain / norm,
        "zero": x.variance * y.variance / ((texts - 1) * norm),
        "unbiased": unbiased,
        "low": max(-1.0, unbiased + float(low)),
        "high": min(1.0, unbiased + float(high)),
    }
    return {name: round(value, 6) for name, value in values.items()}


# ---------------------------------------------------------------------------------------------
# the entry


def problems(compared: Compared) -> Iterator[str]:
    """Settings that do not fit together, nothing to compare, or models whose layers cannot be compared one by one."""
    where, analysis, against = f"{compared.where}.cka", compared.settings, compared.against()
    settings: Cka = analysis.cka
    for model in settings.against:
        yield from undefined(f"{where}.against", model, analysis.models)
    if not settings.poolings or len({*settings.poolings}) < len(settings.poolings):
        yield f"{where}.poolings: {settings.poolings} must be different poolings, at least one"
    if settings.block < 4 * NEEDED:
        yield f"{where}.block: {settings.block} texts are too few to estimate from; give {4 * NEEDED} or more"
    if settings.texts < NEEDED:
        yield f"{where}.texts: {settings.texts} are fewer than the estimate needs, {NEEDED}"
    depths = {model: size.layers for model, size in compared.sizes.items()}
    differ = [(a, b) for a in against or depths for b in depths if b not in against and a in depths and depths[a] != depths[b]]
    if settings.layers == "same" and differ:
        a, b = differ[0]
        yield f"{where}: {a} has {depths[a]} layers and {b} {depths[b]}; set `cka.layers: all`, or analyse them apart"
    others = [model for model in analysis.models if model not in against]
    languages = (analysis.parallel or settings.unaligned) and compared.languages is not None and len(compared.languages) > 1
    if compared.languages is not None and len(others) < (1 if against else 2) and not languages:
        yield (
            f"{compared.where}: CKA has nothing to compare: no model besides {', '.join(against or others)}, and no translations in two "
            "languages; name another model, or leave `cka` out of `stages`"
        )


register_analysis(
    "cka",
    label="Similarity of states (CKA)",
    base=True,
    source="Kornblith et al. 2019; Ji et al. 2024",
    problems=problems,
    lowers_memory="memory_gb",
    view="similarity",
)


if __name__ == "__main__":
    run(main)
