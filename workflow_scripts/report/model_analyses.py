"""What analyses found inside the models: similarity of states (CKA), spectra of weights, separability of languages.

The functions read the files under ``results/analyses`` and return plain data for the template `analyses.html.j2`.
"""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from workflow_scripts import registry
from workflow_scripts.config.analyses import Analysis
from workflow_scripts.config.configuration import Config
from workflow_scripts.evidence.spectra import published_spectra
from workflow_scripts.stage import InputError, read_json

ESTIMATES = ("unbiased", "plain")
"""The estimates of CKA, as the page calls them."""
MEASURES = {
    "probe": "accuracy of the probe",
    "cross_entropy": "cross-entropy of the probe, bits",
    "between": "share of variance between languages",
    "retrieval": "translations found",
    "centred": "translations found, languages centred",
    "cosine": "mean cosine of two texts",
    "dimensions": "dimensions used",
}
"""Measure of separability → what the page calls it."""
WITH_INTERVAL = ("probe", "retrieval", "centred")
HEADER = ("analysis", "stage", "models", "languages", "layer", "of", "metric", "value", "low", "high")
"""Columns of `analyses.tsv`; `of` is the pooling of states, or the matrix of weights."""


def analyses(results: Path, config: Config) -> list[dict[str, Any]]:
    """The data of every analysis of the run: its stages, each with what the page shows, or with the reason why it cannot be shown."""
    made = []
    for name in config.run.analyses:
        analysis = config.analyses[name]
        names = short_names(analysis.models)
        one: dict[str, Any] = {"name": name, "settings": analysis, "names": names, "stages": {}, "failed": {}, "read": []}
        for stage in analysis.stages:
            path = results / "analyses" / name / f"{stage}.json"
            try:
                one["stages"][stage] = view_of(stage).read(read_json(path), names, analysis)
                one["read"].append(path)
            except InputError as error:
                one["failed"][stage] = str(error)
            except (OSError, ValueError, KeyError) as error:
                one["failed"][stage] = f"{path}: {error}"
        made.append(one)
    return made


def short_names(models: list[str]) -> dict[str, str]:
    """Model → its name without what all models of arms have in common: `help-de-en/csr/seed1/finetune` becomes `csr`."""
    parts = {model: model.split("/") for model in models if "/" in model}
    differ = [len({part[at] for part in parts.values()}) > 1 for at in range(4)]
    kept = [at for at in range(3) if differ[at] or at == 1]
    after = {model: f" after {part[3]}" if differ[3] else "" for model, part in parts.items()}
    short = {model: " ".join(part[at] for at in kept) + after[model] for model, part in parts.items()}
    names = {model: short.get(model, model) for model in models}
    return names if len({*names.values()}) == len(names) else {model: model for model in models}


def similarity(report: dict[str, Any], names: dict[str, str], analysis: Analysis) -> dict[str, Any]:
    """Heat maps and tables of CKA, for each way of pooling."""
    poolings = {}
    for pooling, found in report["poolings"].items():
        poolings[pooling] = {
            "models": between_models(found["models"], names, report["settings"]["layers"]),
            "languages": between_languages(found["languages"], names, report["languages"]),
            "rows": [
                {
                    "what": " – ".join(names[model] for model in models),
                    "models": " – ".join(models),
                    "where": " – ".join(languages),
                    "layer": " – ".join(map(str, dict.fromkeys(row["layers"]))),
                    **row,
                }
                for models, languages, by_layer in (
                    *(((one["a"], one["b"]), (one["language"],), one["by_layer"]) for one in found["models"]),
                    *(((one["model"],), (one["a"], one["b"]), one["by_layer"]) for one in found["languages"]),
                )
                for row in by_layer
            ],
        }
    return {"report": report, "poolings": poolings}


def between_models(found: list[dict[str, Any]], names: dict[str, str], layers: str) -> list[dict[str, Any]]:
    """A heat map for each two models and each estimate: layers × languages, the last layer on top; or for each language the layers of the
    first model (rows) × those of the second (columns)."""
    groups: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for one in found:
        groups.setdefault((one["a"], one["b"], *([one["language"]] if layers == "all" else [])), []).append(one)
    maps = []
    for (a, b, *language), ones in groups.items():
        depth = [1 + max(row["layers"][side] for row in ones[0]["by_layer"]) for side in (0, 1)]
        columns = [str(layer) for layer in range(depth[1])] if language else [one["language"] for one in ones]
        for estimate in ESTIMATES:
            cells = {
                (depth[0] - 1 - row["layers"][0], row["layers"][1] if language else number): row[estimate]
                for number, one in enumerate(ones)
                for row in one["by_layer"]
            }
            title = (
                f"{names[a]} (rows) – {names[b]} (columns), {language[0]}: {estimate}"
                if language
                else f"{names[a]} – {names[b]}: {estimate}"
            )
            maps.append({"title": title, "rows": layer_names(depth[0]), "columns": columns, "cells": cells})
    return maps


def layer_names(depth: int) -> list[str]:
    """The names of the layers, the last one first, as in the figures of Ji et al. (2024)."""
    return [f"layer {layer}" for layer in range(depth)][::-1]


def between_languages(found: list[dict[str, Any]], names: dict[str, str], languages: list[str]) -> dict[str, Any]:
    """Heat maps of the languages of each model: layers × models (mean over the pairs of languages), and languages × languages by layer."""
    if not found:
        return {"by_layer": [], "by_pair": {}}
    models = list(dict.fromkeys(one["model"] for one in found))
    pairs = {model: [one for one in found if one["model"] == model] for model in models}
    depth = {model: len(ones[0]["by_layer"]) for model, ones in pairs.items()}
    deepest = max(depth.values())
    by_layer = []
    for estimate in ESTIMATES:
        cells = {}
        for number, model in enumerate(models):
            for layer in range(depth[model]):
                values = [one["by_layer"][layer][estimate] for one in pairs[model]]
                known = [value for value in values if value is not None]
                cells[deepest - 1 - layer, number] = sum(known) / len(known) if known else None
        what = f"{languages[0]} – {languages[1]}" if len(languages) == 2 else "mean of all pairs of languages"
        by_layer.append(
            {"title": f"{what}: {estimate}", "rows": layer_names(deepest), "columns": [names[model] for model in models], "cells": cells}
        )
    by_pair: dict[str, list[dict[str, Any]]] = {}
    for model in models if len(languages) > 2 else ():
        by_pair[names[model]] = []
        for layer in range(depth[model]):
            cells = {
                (languages.index(one[first]), languages.index(one[second])): one["by_layer"][layer][estimate]
                for one in pairs[model]
                for first, second, estimate in (("a", "b", "unbiased"), ("b", "a", "plain"))
            }
            by_pair[names[model]].append({"title": f"layer {layer}", "rows": languages, "columns": languages, "cells": cells})
    return {"by_layer": by_layer, "by_pair": by_pair}


def spectra(report: dict[str, Any], names: dict[str, str], analysis: Analysis) -> dict[str, Any]:
    """Tables of norms and distances, by layer and model, and curves: the singular values of the last layer, the norms by layer."""
    models = report["models"]
    # a model may lack one, such as a gate
    matrices = list(dict.fromkeys(row["matrix"] for found in models.values() for row in found["by_matrix"]))
    cells = {(model, row["layer"], row["matrix"]): row for model, found in models.items() for row in found["by_matrix"]}
    charts: dict[str, dict[str, list[dict[str, Any]]]] = {"values": {}, "norms": {}}
    for matrix in matrices:
        its = {(model, layer): row for (model, layer, name), row in cells.items() if name == matrix}
        last = {model: its[model, found["layers"] - 1]["curve"] for model, found in models.items() if (model, found["layers"] - 1) in its}
        charts["values"][matrix] = lines_of_models(names, ((model, *point) for model, curve in last.items() for point in curve))
        charts["norms"][matrix] = lines_of_models(names, ((model, layer, row["norm"]) for (model, layer), row in its.items()))
    return {
        "report": report,
        "matrices": matrices,
        "charts": charts,
        "cells": cells,
        "layers": range(max(found["layers"] for found in models.values())),
        "depth": {model: found["layers"] for model, found in models.items()},
        # files of earlier versions have none
        "embeddings": {model: found["embeddings"] for model, found in models.items() if "embeddings" in found},
        "published": published_spectra(analysis.published) if analysis.published else {},
    }


def lines_of_models(names: dict[str, str], points: Iterable[tuple[str, float, float]]) -> list[dict[str, Any]]:
    """The series of a chart: a line for each model through its `points`, which are (model, x, y)."""
    lines: dict[str, list[tuple[float, float]]] = {model: [] for model in names}
    for model, x, y in points:
        lines[model].append((x, y))
    return [{"name": names[model], "colour": colour, "lines": [line]} for colour, (model, line) in enumerate(lines.items())]


def rows(found: list[dict[str, Any]]) -> Iterator[tuple]:
    """Rows of `analyses.tsv`, under `HEADER`, from what `analyses` returns."""
    for one in found:
        for stage in filter(one["stages"].get, registry.entries("analysis")):
            for row in view_of(stage).rows(one["stages"][stage]):
                yield (one["name"], stage, *row)


def titles() -> dict[str, str]:
    """What the page calls each analysis."""
    return {name: entry.label for name, entry in registry.entries("analysis").items()}


def views() -> dict[str, str]:
    """How the page shows each analysis, in the order in which it does."""
    return {name: entry.view for name, entry in registry.entries("analysis").items()}


def _rounded(*values: float | None) -> list[float | str]:
    return ["" if value is None else round(value, 6) for value in values]


def separability(report: dict[str, Any], names: dict[str, str], analysis: Analysis) -> dict[str, Any]:
    """A chart over the layers for each measure, and the rows of its table."""
    models = report["models"]
    shown = [key for key in MEASURES if key in next(iter(models.values()))["by_layer"][0]]
    rows = [{"model": names[model], "models": model, **row} for model, found in models.items() for row in found["by_layer"]]
    charts = {
        key: lines_of_models(names, ((row["models"], row["layer"], row[key]["mean"] if key in WITH_INTERVAL else row[key]) for row in rows))
        for key in shown
    }
    return {"report": report, "charts": charts, "measures": {key: MEASURES[key] for key in shown}, "rows": rows}


def layerwise(report: dict[str, Any], names: dict[str, str], analysis: Analysis) -> dict[str, Any]:
    """A chart over the layers for each language, and the rows of the table, of an analysis of a plugin."""
    entry = registry.entry("analysis", report["measure"])
    models = report["models"]
    rows = [{"model": names[model], "models": model, **row} for model, found in models.items() for row in found["rows"]]
    charts = {
        code: lines_of_models(names, ((row["models"], row["layer"], row["value"]) for row in rows if row["language"] == code))
        for code in report["languages"]
    }
    return {"report": report, "entry": entry, "charts": charts, "rows": rows}


# ---------------------------------------------------------------------------------------------
# rows of the table: models, languages, layer, pooling or matrix, metric, value and its interval


def _similarity_rows(shown: dict[str, Any]) -> Iterator[tuple]:
    for pooling, maps in shown["poolings"].items():
        for row in maps["rows"]:
            head = (row["models"], row["where"], row["layer"], pooling)
            yield (*head, "cka_unbiased", *_rounded(row["unbiased"], row["low"], row["high"]))
            yield (*head, "cka_plain", *_rounded(row["plain"], None, None))
            yield (*head, "cka_plain_zero_line", *_rounded(row["zero"], None, None))


def _spectra_rows(shown: dict[str, Any]) -> Iterator[tuple]:
    for (model, layer, matrix), row in shown["cells"].items():
        for metric in ("norm", "distance", "moved", "effective_rank"):
            if metric in row:
                yield (model, "", layer, matrix, metric, *_rounded(row[metric], None, None))
    for model, row in shown["embeddings"].items():
        for metric in ("norm", "distance", "moved", "largest", "effective_rank"):
            if metric in row:
                yield (model, "", "", "embeddings", metric, *_rounded(row[metric], None, None))


def _separability_rows(shown: dict[str, Any]) -> Iterator[tuple]:
    for row in shown["rows"]:
        for metric in shown["measures"]:
            cell = row[metric]
            values = (cell["mean"], cell["low"], cell["high"]) if metric in WITH_INTERVAL else (cell, None, None)
            yield (row["models"], "", row["layer"], "", metric, *_rounded(*values))


def _layerwise_rows(shown: dict[str, Any]) -> Iterator[tuple]:
    for row in shown["rows"]:
        yield (row["models"], row["language"], row["layer"], "", shown["entry"].name, *_rounded(row["value"], None, None))


class View(NamedTuple):
    """A way in which the report shows an analysis; its template has the same name, in `templates/analyses`."""

    read: Callable[[dict[str, Any], dict[str, str], Analysis], dict[str, Any]]
    """What a stage wrote, the short names of models, and the analysis → what the template shows."""
    rows: Callable[[dict[str, Any]], Iterator[tuple]]
    """That → rows of the table."""


VIEWS = {
    "similarity": View(similarity, _similarity_rows),
    "singular_values": View(spectra, _spectra_rows),
    "separation": View(separability, _separability_rows),
    "layers": View(layerwise, _layerwise_rows),
}
"""How an analysis may be shown (`view` of its entry)."""


def view_of(analysis: str) -> View:
    """How the analysis of this name is shown."""
    return VIEWS[registry.entry("analysis", analysis).view]
