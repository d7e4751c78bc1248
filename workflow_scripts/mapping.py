"""mapping: two embeddings into one space, without any dictionary.

The unsupervised method of Artetxe, Labaka and Agirre (ACL 2018), "A robust self-learning method for
fully unsupervised cross-lingual mappings of word embeddings", written from the paper:

1. normalise both sides: unit length, centre, unit length (section 3.1)
2. guess a first dictionary: words that mean the same have similar sorted lists of similarities to
   their own language (3.2)
3. repeat: the rotation that fits the dictionary best, then a new dictionary by CSLS in both
   directions among the most frequent words; drop most of the similarities at random, fewer and
   fewer as the objective stalls (3.3); then again among all words, with nothing dropped
4. whiten, rotate, re-weight by the cross-correlations, de-whiten (3.4)

Everything is torch and runs on CPU or CUDA. A similarity matrix is made once per iteration and read
in strips that stay in the cache; column maxima are found in two stages, which is exact.
"""

import dataclasses
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal, NamedTuple

import torch

from workflow_scripts.device import pick_device
from workflow_scripts.stage import InputError, run, write_json
from workflow_scripts.vectors import read_vectors, write_vectors


@dataclass
class Mapping:
    """Settings of the unsupervised mapping; the defaults are the paper's, but for the smaller search."""

    cutoff: int = 20_000
    """The last dictionary is induced among so many most frequent words of either side."""
    search_cutoff: int = 1_500
    """The stochastic search stays among so many most frequent words. The paper's is 20,000; the vectors of
    a small corpus's rare words only lead it astray (docs/mapping.md), and few words are fast."""
    initial_words: int = 4_000
    """Most frequent words that take part in the first guess, within the search's."""
    csls_neighbours: int = 10
    """k of CSLS, cross-domain similarity local scaling (Conneau et al. 2018)."""
    keep_probability: float = 0.1
    """Share of similarities that survive at first."""
    keep_growth: float = 2.0
    """The share grows by this factor when the objective has stalled."""
    patience: int = 50
    """Iterations without gain that count as stalled."""
    threshold: float = 1e-6
    """Gain of the objective (mean cosine of the induced pairs) that counts."""
    reweight: float = 0.5
    """Power of the cross-correlations that scales the dimensions of either side."""
    max_iterations: int = 5_000
    """Give up after so many."""
    threads: int = 0
    """CPU threads; 0 leaves it to torch. Never changes the result's meaning, only its last digits."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Where to compute."""


def main(
    vectors_a: Path, vectors_b: Path, mapped_a: Path, mapped_b: Path, report: Path, *, seed: int = 1, settings: Mapping = Mapping()
) -> None:
    """Map `vectors_a` and `vectors_b` into one space and write both, and how it went."""
    if settings.threads:
        torch.set_num_threads(settings.threads)
    device = pick_device(settings.device)
    words_a, a = read_vectors(vectors_a)
    words_b, b = read_vectors(vectors_b)
    if a.shape[1] != b.shape[1]:
        raise InputError(f"{vectors_a} has {a.shape[1]} dimensions, {vectors_b} {b.shape[1]}; learn both with the same settings")
    started = time.perf_counter()
    mapped = map_unsupervised(torch.from_numpy(a).to(device), torch.from_numpy(b).to(device), seed, settings)
    seconds = time.perf_counter() - started
    write_vectors(mapped_a, words_a, mapped.a.cpu().numpy())
    write_vectors(mapped_b, words_b, mapped.b.cpu().numpy())
    write_json(
        report,
        {
            "method": "unsupervised (Artetxe et al. 2018)",
            "words": [len(words_a), len(words_b)],
            "dimensions": a.shape[1],
            "objective": mapped.objective,
            "mutual_nearest_neighbours": mapped.mutual,
            "iterations": mapped.iterations,
            "seconds": round(seconds, 1),
            "device": str(device),
            "seed": seed,
            "settings": asdict(settings),
        },
    )


class Mapped(NamedTuple):
    """Both sides in the shared space, and how the search went."""

    a: torch.Tensor
    b: torch.Tensor
    objective: float
    mutual: float
    """Share of the searched words whose nearest neighbour has them as its nearest neighbour."""
    iterations: int


def map_unsupervised(a: torch.Tensor, b: torch.Tensor, seed: int, settings: Mapping) -> Mapped:
    """Map `a` (words × dimensions) and `b` into one space; rows in order of frequency."""
    a, b = normalise(a), normalise(b)
    near, far = min(settings.search_cutoff, settings.cutoff), settings.cutoff
    generator = torch.Generator(device=a.device).manual_seed(seed)
    dictionary = initial_dictionary(a[:near], b[:near], settings)
    found = self_learn(a[:near], b[:near], dictionary, settings.keep_probability, generator, settings)
    iterations = found.iterations
    if near < max(len(a), len(b)):
        found = self_learn(a[:far], b[:far], found.dictionary, 1.0, generator, dataclasses.replace(settings, patience=3))
        iterations += found.iterations
    return Mapped(*symmetric_reweighting(a, b, found.dictionary, settings.reweight), found.objective, found.mutual, iterations)


# ---------------------------------------------------------------------------------------------
# the four steps

Dictionary = tuple[torch.Tensor, torch.Tensor]
"""Row numbers on either side, pair by pair."""


def normalise(x: torch.Tensor) -> torch.Tensor:
    """Unit rows, centred columns, unit rows again."""
    x = torch.nn.functional.normalize(x, dim=1)
    return torch.nn.functional.normalize(x - x.mean(dim=0), dim=1)


def initial_dictionary(a: torch.Tensor, b: torch.Tensor, settings: Mapping) -> Dictionary:
    """Pair words by their sorted similarities to the other words of their own language.

    The square root of the similarity matrix is sorted instead of the matrix itself (section 3.2);
    with X = USVᵀ it is USUᵀ.
    """
    n = min(settings.initial_words, len(a), len(b))
    signatures = []
    for side in (a, b):
        u, s, _ = torch.linalg.svd(side[:n], full_matrices=False)
        signatures.append(normalise(((u * s) @ u.T).sort(dim=1).values))
    similarity = signatures[0] @ signatures[1].T
    search = Search(similarity, settings.csls_neighbours)
    # here both neighbourhoods are subtracted; for a maximum one of them would do
    return union(search.best_b(), search.best_a())


class Found(NamedTuple):
    """Where self-learning ended."""

    dictionary: Dictionary
    objective: float
    mutual: float
    iterations: int


def self_learn(
    a: torch.Tensor, b: torch.Tensor, dictionary: Dictionary, keep: float, generator: torch.Generator, settings: Mapping
) -> Found:
    """Alternate rotation and dictionary until the objective stalls with nothing dropped.

    `keep` is the share of similarities that survive at first; with 1 nothing is random.
    """
    best = -torch.inf
    improved_at = iteration = 0
    similarity = torch.empty(len(a), len(b), device=a.device)
    while True:
        rotation = procrustes(a[dictionary[0]], b[dictionary[1]])
        torch.matmul(a @ rotation, b.T, out=similarity)
        search = Search(similarity, settings.csls_neighbours)
        best_b, best_a = search.best_b(keep, generator), search.best_a(keep, generator)
        dictionary = union(best_b, best_a)
        iteration += 1
        objective = search.objective()
        if objective >= best + settings.threshold:
            best, improved_at = objective, iteration
        if iteration >= settings.max_iterations:
            break
        if iteration - improved_at > settings.patience:
            if keep >= 1:
                break
            keep = min(1.0, keep * settings.keep_growth)
            improved_at = iteration
            print(f"iteration {iteration}: objective {best:.4f}, keep probability now {keep:.2f}", flush=True)
    mutual = (best_a[best_b] == torch.arange(len(best_b), device=best_b.device)).float().mean()
    print(f"iteration {iteration}: objective {best:.4f}, mutual neighbours {mutual:.1%}", flush=True)
    return Found(dictionary, float(best), float(mutual), iteration)


def procrustes(x: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
    """The orthogonal W that brings x W nearest to z (Schönemann 1966)."""
    u, _, vt = torch.linalg.svd(x.T @ z)
    return u @ vt


def symmetric_reweighting(a: torch.Tensor, b: torch.Tensor, dictionary: Dictionary, power: float) -> tuple[torch.Tensor, torch.Tensor]:
    """The final map: whitening, rotation, re-weighting, de-whitening (section 3.4), for all rows."""
    x, z = a[dictionary[0]].double(), b[dictionary[1]].double()
    white_x, colour_x = _whitening(x)
    white_z, colour_z = _whitening(z)
    u, s, vt = torch.linalg.svd((x @ white_x).T @ (z @ white_z))
    v = vt.T
    scale = s**power
    map_a = white_x @ u * scale @ (u.T @ colour_x @ u)
    map_b = white_z @ v * scale @ (v.T @ colour_z @ v)
    return (a.double() @ map_a).float(), (b.double() @ map_b).float()


def _whitening(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """(xᵀx)^(-1/2) and its inverse; directions without variance are left alone."""
    _, s, vt = torch.linalg.svd(x, full_matrices=False)
    s = s.clamp_min(s.max() * 1e-6)
    return vt.T / s @ vt, vt.T * s @ vt


def union(best_b: torch.Tensor, best_a: torch.Tensor) -> Dictionary:
    """The pairs of both directions, one after the other; pairs found twice count twice."""
    return (
        torch.cat([torch.arange(len(best_b), device=best_b.device), best_a]),
        torch.cat([best_b, torch.arange(len(best_a), device=best_a.device)]),
    )


# ---------------------------------------------------------------------------------------------
# search in a similarity matrix

# Rows are read in strips of about this many numbers, so that a strip stays in the cache.
_STRIP = 1 << 19
_GROUP = 16


class Search:
    """Best partners by CSLS in a similarity matrix (rows of a × rows of b), both ways.

    CSLS(i, j) = 2 cos(i, j) − r(i) − r(j), where r is the mean cosine to the k nearest neighbours
    on the other side (Conneau et al. 2018). For a maximum over j, r(i) is a constant; what is
    compared is cos(i, j) − r(j)/2.
    """

    def __init__(self, similarity: torch.Tensor, k: int):
        self.similarity = similarity
        top_a = similarity.topk(min(k, similarity.shape[1]), dim=1).values
        top_b = topk_columns(similarity, min(k, similarity.shape[0]))
        self.nearest_a, self.nearest_b = top_a[:, 0], top_b[:, 0]
        self.half_a, self.half_b = top_a.mean(dim=1) / 2, top_b.mean(dim=1) / 2

    def objective(self) -> float:
        """Mean cosine to the nearest neighbour, averaged over both directions (Eq. 3 without dropping)."""
        return float(self.nearest_a.mean() + self.nearest_b.mean()) / 2

    def best_b(self, keep: float = 1.0, generator: torch.Generator | None = None) -> torch.Tensor:
        """For each row the best column; a score survives with probability `keep`, else it is 0."""
        best = torch.empty(len(self.similarity), dtype=torch.long, device=self.similarity.device)
        dropped = _dropped(self.similarity.shape, keep, generator, self.similarity.device)
        for start, strip in _strips(self.similarity):
            score = strip - self.half_b
            if dropped is not None:
                score.masked_fill_(dropped[start : start + len(strip)], 0.0)
            best[start : start + len(strip)] = score.argmax(dim=1)
        return best

    def best_a(self, keep: float = 1.0, generator: torch.Generator | None = None) -> torch.Tensor:
        """For each column the best row, likewise.

        An argmax across rows is slow, maxima across rows are fast: first the maxima of groups of
        rows, then the row inside each column's best group.
        """
        rows = len(self.similarity)
        device = self.similarity.device
        dropped = _dropped(self.similarity.shape, keep, generator, device)
        maxima = []
        for start, strip in _strips(self.similarity):
            score = strip - self.half_a[start : start + len(strip), None]
            if dropped is not None:
                score.masked_fill_(dropped[start : start + len(strip)], 0.0)
            whole = len(score) // _GROUP * _GROUP
            maxima.append(score[:whole].unflatten(0, (-1, _GROUP)).amax(dim=1))
            if whole < len(score):
                maxima.append(score[whole:].amax(dim=0, keepdim=True))
        group = torch.cat(maxima).T.contiguous().argmax(dim=1)
        row = (group * _GROUP + torch.arange(_GROUP, device=device)[:, None]).clamp_max(rows - 1)
        score = self.similarity.gather(0, row) - self.half_a[row]
        if dropped is not None:
            score.masked_fill_(dropped.gather(0, row), 0.0)
        return row.gather(0, score.argmax(dim=0)[None])[0]


def _strips(matrix: torch.Tensor):
    rows = max(_GROUP, _STRIP // max(1, matrix.shape[1]) // _GROUP * _GROUP)
    for start in range(0, len(matrix), rows):
        yield start, matrix[start : start + rows]


def _dropped(shape: torch.Size, keep: float, generator: torch.Generator | None, device: torch.device) -> torch.Tensor | None:
    """A random mask that is true with probability 1 − keep, in steps of 1/256: a byte an entry is cheap."""
    if keep >= 1:
        return None
    noise = torch.empty((shape.numel() + 7) // 8, dtype=torch.long, device=device)
    noise.random_(-(2**63), None, generator=generator)
    return (noise.view(torch.uint8)[: shape.numel()] >= round(256 * keep)).view(shape)


def topk_columns(matrix: torch.Tensor, k: int) -> torch.Tensor:
    """The k greatest values of each column, sorted (columns × k).

    Two stages: the k greatest lie in the k groups of rows that have the greatest maxima.
    """
    groups = len(matrix) // _GROUP
    if groups < 2 * k:
        return matrix.T.topk(k, dim=1).values
    body, tail = matrix[: groups * _GROUP], matrix[groups * _GROUP :]
    maxima = torch.cat([strip.unflatten(0, (-1, _GROUP)).amax(dim=1) for _, strip in _strips(body)])
    chosen = maxima.T.contiguous().topk(k, dim=1, sorted=False).indices
    offsets = torch.arange(_GROUP, device=matrix.device)
    candidates = body.gather(0, (chosen[:, :, None] * _GROUP + offsets).flatten(1).T)
    return torch.cat([candidates, tail]).T.contiguous().topk(k, dim=1).values


if __name__ == "__main__":
    run(main)
