"""spectra: the singular values of the weights of every layer, and how they moved from those of another model.

As Ji et al. (2024, section 3.3, Tables 2 and 5): of K, Q, V, Out, FC1 and FC2 of each layer,

norm
    ‖σ‖, the Euclidean length of the vector of singular values, which is the Frobenius norm of the matrix.
distance
    d = ‖σ − σ(base)‖₂, both sorted from the largest on.

Besides:

moved
    ‖W − W(base)‖_F, how far the weights themselves are apart. It is at least d, and at least the difference of the norms.
largest
    the largest singular value.
embeddings
    The same of the embeddings of pieces, on which the argument of Ji et al. hangs besides; they leave them open (footnote 2). Their
    singular values are the roots of the eigenvalues of EᵀE, so that those below 1e-8 of the largest one are not exact. The distance to the
    base is given where both have the same number of pieces, and how far they moved where these are the same pieces with the same ids.
effective rank
    exp(−Σ pᵢ ln pᵢ) with pᵢ = σᵢ / Σ σ (Roy and Vetterli 2007): the number of directions that the weights use about equally.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import torch

from workflow_scripts.device import pick_device
from workflow_scripts.evidence.analysis import Compared, register_analysis
from workflow_scripts.evidence.states import Half, Side, open_half
from workflow_scripts.models.networks import layers_of, matrices_in
from workflow_scripts.number_types import Positive
from workflow_scripts.stage import InputError, resource, run, write_json


@dataclass
class Spectra:
    """Settings of the singular values."""

    points: Positive = 40
    """Number of singular values per matrix kept for the plot, including the largest and the smallest."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Device for computing; `auto` takes a GPU if there is one."""


def main(
    output: Path,
    *,
    models: tuple[Path, ...],
    names: tuple[str, ...],
    base: str = "",
    side: Side = "encoder",
    threads: int = 0,
    settings: Spectra = Spectra(),
) -> None:
    """Write the spectra of `models`, called `names`; with a `base`, which is one of the names, also the distances to it.

    Raises `InputError` where a model has another number of layers than the base, or matrices of another shape.
    """
    if threads:
        torch.set_num_threads(threads)
    start: Weights = {}
    if base:
        half = open_half(base, models[names.index(base)], side, settings.device)
        start, first, pieces = weights_of(half), embeddings_of(half), half.codec.tokenizer.get_vocab()
        known = {key: singular_values(matrix) for key, matrix in start.items()}
    by_model: dict[str, Any] = {}
    for name, path in zip(names, models, strict=True):
        half = open_half(name, path, side, settings.device)
        weights = weights_of(half)
        if base:
            same_shapes(name, weights, base, start)
        rows = []
        for (layer, kind), matrix in weights.items():
            values = singular_values(matrix)
            row = {"layer": layer, "matrix": kind, "shape": list(matrix.shape), **measures(values)}
            if base:
                row["distance"] = float(np.linalg.norm(values - known[layer, kind]))
                row["moved"] = float(torch.linalg.norm((matrix - start[layer, kind]).double()))
            rows.append({**row, "curve": curve(values, settings.points)})
        about = {"family": half.form.label, "layers": half.depth, "width": half.width, "by_matrix": rows}
        alike = bool(base) and half.codec.tokenizer.get_vocab() == pieces
        by_model[name] = {**about, "embeddings": of_embeddings(embeddings_of(half), first if base else None, settings.points, alike)}
    where = str(pick_device(settings.device))
    write_json(output, {"base": base, "side": side, "models": by_model, "device": where, "settings": asdict(settings)})


def of_embeddings(matrix: torch.Tensor, base: torch.Tensor | None, points: int, alike: bool = True) -> dict[str, Any]:
    """What is measured of the embeddings of pieces, and how far they are from those of the base, where these are of as many pieces.

    Rows are compared where they are `alike`: of the same pieces in the same order.
    """
    values = tall_singular_values(matrix)
    row = {"shape": list(matrix.shape), **measures(values), "curve": curve(values, points)}
    if base is not None and base.shape == matrix.shape:
        row["distance"] = float(np.linalg.norm(values - tall_singular_values(base)))
        row |= {"moved": float(torch.linalg.norm((matrix - base).double()))} if alike else {}
    return row


Weights: TypeAlias = "dict[tuple[int, str], torch.Tensor]"
"""Layer (from 0) and matrix → weights (output × input)."""


def weights_of(half: Half) -> Weights:
    """The matrices of each layer of the half, in the order of the layers."""
    return {
        (number, kind): weight.detach()
        for number, layer in enumerate(layers_of(half.network, half.form, half.side))
        for kind, weight in matrices_in(half.network, layer, half.form, half.side).items()
    }


def embeddings_of(half: Half) -> torch.Tensor:
    """The embeddings of pieces (pieces × width)."""
    network: Any = half.network
    return network.get_input_embeddings().weight.detach()


def same_shapes(name: str, weights: Weights, base: str, start: Weights) -> None:
    """Raise `InputError` where two models differ in their number of layers, in which matrices these have, or in the shape of a matrix."""
    way = "singular values of other models cannot be subtracted; leave `base` out, or analyse the models apart"
    depth, wanted = (1 + max(layer for layer, _ in each) for each in (weights, start))
    if depth != wanted:
        raise InputError(f"{name} has {depth} layers, the base {base} has {wanted}; {way}")
    if weights.keys() != start.keys():
        own, other = (", ".join(dict.fromkeys(kind for _, kind in each)) for each in (weights, start))
        raise InputError(f"{name} has the matrices {own}, the base {base} {other}; {way}")
    for key, matrix in weights.items():
        if matrix.shape != start[key].shape:
            own, other = (" × ".join(map(str, each[key].shape)) for each in (weights, start))
            raise InputError(f"{name}: {key[1]} of layer {key[0]} is {own}, in the base {base} {other}; {way}")


def singular_values(matrix: torch.Tensor) -> np.ndarray:
    """The singular values of a matrix, from the largest on, in float64."""
    return torch.linalg.svdvals(matrix.double()).cpu().numpy()


def tall_singular_values(matrix: torch.Tensor, rows: int = 16_384) -> np.ndarray:
    """The singular values of a matrix with many more rows than columns, from the largest on: a few rows in float64 at a time."""
    products = sum(part.double().T @ part.double() for part in matrix.split(rows))
    return np.sqrt(np.clip(torch.linalg.eigvalsh(products).flip(0).cpu().numpy(), 0, None))


def measures(values: np.ndarray) -> dict[str, float]:
    """Norm, largest value and effective rank of a spectrum (see the top of the module); a matrix of zeros has the rank 0."""
    shares = values[values > 0] / max(values.sum(), 1e-300)
    return {
        "norm": float(np.linalg.norm(values)),
        "largest": float(values[0]),
        "effective_rank": float(np.exp(-(shares * np.log(shares)).sum())) if len(shares) else 0.0,
    }


def curve(values: np.ndarray, points: int) -> list[list[float]]:
    """Up to `points` singular values with their numbers (from 1), evenly spaced, the first and the last among them."""
    chosen = np.unique(np.linspace(0, len(values) - 1, points).round().astype(int))
    return [[int(number) + 1, round(float(values[number]), 5)] for number in chosen]


# ---------------------------------------------------------------------------------------------
# the entry

PUBLISHED = ("model", "layer", "matrix", "norm", "distance", "source")
"""Columns of a table of published spectra."""


def published_spectra(path: str) -> dict[tuple[str, int, str], dict[str, str]]:
    """(model, layer, matrix) → the row of a table of published norms and distances; raises `InputError` for a file that is none."""
    rows = {}
    try:
        with open(resource(path), encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file, delimiter="\t")
            if missing := [name for name in PUBLISHED if name not in (reader.fieldnames or ())]:
                raise InputError(
                    f"{path}: line 1 lacks the column {missing[0]}; it must name {', '.join(PUBLISHED)}, with tabs between them"
                )
            for row in reader:
                if not (row["layer"] or "").isdecimal():
                    raise InputError(f"{path}: line {reader.line_num}: {row['layer']!r} is no number of a layer; they count from 0")
                rows[row["model"], int(row["layer"]), row["matrix"]] = row
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read ({error}); give a TSV file in UTF-8") from None
    return rows


def problems(compared: Compared) -> Iterator[str]:
    """Models whose matrices have another shape than those of the base, or a table of published numbers that is none."""
    where, base, published = compared.where, compared.settings.base, compared.settings.published
    shapes = {model: (size.layers, size.d_model, size.ffn) for model, size in compared.sizes.items()}
    if base in shapes and (other := next((model for model in shapes if shapes[model] != shapes[base]), None)):
        yield (
            f"{where}.base: {other} has (layers, width, feed-forward width) {shapes[other]}, {base} {shapes[base]}; "
            "singular values of another shape cannot be subtracted; leave `base` out, or analyse the models apart"
        )
    # preflight says that a file is missing
    if published and os.path.exists(resource(published)):
        try:
            published_spectra(published)
        except InputError as error:
            yield f"{where}.published: {error}"


register_analysis(
    "spectra",
    label="Spectra of weights",
    reads_text=False,
    base=True,
    source="Ji et al. 2024",
    problems=problems,
    lowers_memory="",
    view="singular_values",
)


if __name__ == "__main__":
    run(main)
