"""How far apart the models put the two languages: distances (Table VI of Zan et al.), also by layer, and projections to a plane."""

import io
import itertools
from pathlib import Path
from typing import Any

import numpy as np

from workflow_scripts.report.drawing import COLOURS
from workflow_scripts.report.study import Study, summary
from workflow_scripts.tasks.experiment import BACKBONE
from workflow_scripts.text.files import evenly

DISTANCES = ("pairs_rms", "pairs", "means", "cosine", "source_to_target", "target_to_source")


def representation(study: Study) -> dict[str, Any]:
    """The data of the part "Representation distances"."""
    rows = distances(study)
    measured = {f"{row['arm']} after {row['phase']}" if row["phase"] else row["arm"]: row["measured"] for row in rows}
    formats: dict[str, list[str]] = {}
    for model, what in measured.items():
        formats.setdefault(what, []).append(model)
    return {"rows": rows, "formats": formats, "layers": layers(rows), "projections": projections(study, measured)}


def distances(study: Study) -> list[dict[str, Any]]:
    """One row for the backbone and for each arm after each phase: all measures of the last layer, over the seeds.

    `measured` says what goes in and what stands for a sentence; where that differs, distances are different measures.
    """
    places: list[tuple[str, str, int | None, list[Path]]] = [(BACKBONE, "", None, [study.run / "backbone.representation.json"])]
    names = sorted({phase.name for phases in study.arms.values() for phase in phases}, key=lambda name: (name == "finetune", name))
    for name, (place, arm) in itertools.product(names, enumerate(study.arms)):
        if any(phase.name == name for phase in study.arms[arm]):
            places.append((arm, name, place, [study.seed(arm, seed) / name / "representation.json" for seed in study.seeds]))
    rows = []
    for arm, phase, colour, paths in places:
        reports = [study.json(path) for path in paths]
        rows.append(
            {"arm": arm, "phase": phase, "colour": COLOURS - 1 if colour is None else colour, "reports": reports}
            | {"measured": reports[0]["tag_format"]}
            | {key: summary([report[key] for report in reports]) for key in DISTANCES}
            | {"unaligned": summary([r["unaligned"]["means"] for r in reports]) if "unaligned" in reports[0] else None}
        )
    return rows


def layers(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Measures by layer (mean over seeds), of the backbone and of each finetuned arm: series for charts, and rows of a table.

    Layer 0 of encoder and decoder are the embeddings. Arms may start from backbones of different depth: a model that lacks a layer has
    no point and no cell there.
    """
    shown = [row for row in rows if row["phase"] in ("", "finetune")]
    depth = {side: max(len(row["reports"][0]["layers"][side]) for row in shown) for side in ("encoder", "decoder")}
    table: list[dict[str, Any]] = []
    series: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for side, key in itertools.product(depth, ("cosine", "found")):
        series[side, key] = []
        for row in shown:
            values = [
                summary([_layer(report["layers"][side][layer], key) for report in row["reports"]])["mean"]
                for layer in range(len(row["reports"][0]["layers"][side]))
            ]
            series[side, key].append({"name": row["arm"], "colour": row["colour"], "lines": [list(enumerate(values))]})
    for side in depth:
        for layer in range(depth[side]):
            cells = {
                (row["arm"], key): summary([_layer(report["layers"][side][layer], key) for report in row["reports"]])["mean"]
                for row in shown
                if layer < len(row["reports"][0]["layers"][side])
                for key in ("pairs_rms", "cosine", "found")
            }
            table.append({"side": side, "layer": layer, "cells": cells})
    return {"models": [row["arm"] for row in shown], "series": series, "table": table}


def _layer(measured: dict[str, float], key: str) -> float:
    """One measure of a layer; `found` is the retrieval accuracy, averaged over both directions."""
    return (measured["source_to_target"] + measured["target_to_source"]) / 2 if key == "found" else measured[key]


PAIRS = 60
"""How many sentence pairs are drawn."""


def shown_vectors(path: Path) -> bytes:
    """A file of vectors with those alone that are drawn, for packs."""
    with np.load(path) as vectors:
        kept = {side: vectors[side][evenly(range(len(vectors[side])), PAIRS)] for side in ("source", "target")}
    made = io.BytesIO()
    np.savez_compressed(made, **kept)
    return made.getvalue()


def projections(study: Study, measured: dict[str, str], pairs: int = PAIRS) -> dict[str, Any]:
    """Up to `pairs` sentence pairs of the first seed, projected to the two main components of all models' vectors together.

    Each model's vectors are centred first; axes and scale are the same for all models. Models of another width, or with another kind of
    vectors by what is `measured` of them, have axes of their own.
    """
    places = [("backbone", study.run / "backbone.representation.npz")]
    shown = [(arm, study.arms[arm][-2].name) for arm in study.methods[:1]] + [(arm, "finetune") for arm in study.arms]
    places += [(f"{arm} after {phase}", study.seed(arm) / phase / "representation.npz") for arm, phase in shown]
    clouds, kinds = [], []
    for name, path in places:
        with np.load(path) as vectors:
            sides = [vectors[side].astype(np.float64) for side in ("source", "target")]
        chosen = evenly(range(len(sides[0])), pairs)
        points = np.concatenate([side[chosen] for side in sides])
        clouds.append(points - points.mean(axis=0))
        kinds.append((points.shape[1], measured[name]))
    flat: dict[str, np.ndarray] = {}
    shares = []
    for kind in dict.fromkeys(kinds):
        alike = {name: points for (name, _), points, own in zip(places, clouds, kinds, strict=True) if own == kind}
        projected, share = plane(np.concatenate(list(alike.values())))
        flat |= dict(zip(alike, np.split(projected, len(alike)), strict=True))
        shares.append(share)
    panels = []
    for name, _ in places:
        source, target = np.split(flat[name], 2)
        panels.append({"name": name, "source": source.tolist(), "target": target.tolist()})
    return {
        "panels": panels,
        "share": min(shares),
        "half": float(max(np.abs(points).max() for points in flat.values())),
        "planes": len(shares),
    }


def plane(vectors: np.ndarray) -> tuple[np.ndarray, float]:
    """Project `vectors` (N × width) to their two main components (N × 2); also returns the share of variance that these hold."""
    centred = vectors - vectors.mean(axis=0)
    _, singular, directions = np.linalg.svd(centred, full_matrices=False)
    return centred @ directions[:2].T, float((singular[:2] ** 2).sum() / max((singular**2).sum(), 1e-12))
