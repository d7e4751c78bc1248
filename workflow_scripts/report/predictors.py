"""The report on whether what is inside models tells how well they transfer: measures of analyses beside the mean over tasks.

Ji et al. (2024) argue that larger singular values, which spread a model's outputs further, go with worse transfer, and see no strong
connection with CKA. The separability of languages is measured as well. Here each measure is ranked beside the mean over tasks
(Spearman's ρ over the models).
"""

import statistics
from typing import Any

from scipy.stats import spearmanr

from workflow_scripts import registry

FEWEST = 5
"""Of fewer models no correlation is given."""


def predictors(transferred: dict[str, Any], looked_into: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """For each analysis that looks into models of the comparison: the measures of each, and their correlation with the mean over tasks."""
    found = []
    means = transferred.get("averages", {})
    for one in looked_into:
        models = [model for model in one["settings"].models if model in means]
        measures = {called: values for called, values in _measures(one).items() if set(models) & values.keys()}
        if len(models) > 1 and measures:
            rho = {called: correlation(means, values, models) for called, values in measures.items()}
            found.append({"name": one["name"], "models": models, "means": means, "measures": measures, "correlations": rho})
    return found


def correlation(means: dict[str, float], values: dict[str, float], models: list[str]) -> float | None:
    """Spearman's ρ over the models that have both; None where they are too few, or all the same."""
    both = [model for model in models if values.get(model) is not None]
    sides = [means[model] for model in both], [values[model] for model in both]
    if len(both) < FEWEST or any(len(set(side)) == 1 for side in sides):
        return None
    return float(spearmanr(*sides).statistic)


def _measures(one: dict[str, Any]) -> dict[str, dict[str, float]]:
    """What the page calls a measure → model → its value; the last layer's, and of spectra all layers' together."""
    made: dict[str, dict[str, float]] = {}
    for stage, shown in one["stages"].items():
        if measures := MEASURES.get(registry.entry("analysis", stage).view):
            made |= measures(one, shown)
    return made


def _similarity(one: dict[str, Any], shown: dict[str, Any]) -> dict[str, dict[str, float]]:
    base, made = one["settings"].base, {}
    pooling, found = next(iter(shown["report"]["poolings"].items()))
    for other in one["settings"].cka.against or ([base] if base else []):
        with_other = [(pair["b"] if pair["a"] == other else pair["a"], pair) for pair in found["models"] if other in (pair["a"], pair["b"])]
        made[f"CKA with {one['names'][other]}, last layer, {pooling} (unbiased, mean over languages)"] = _last_cka(with_other)
    within = [(pair["model"], pair) for pair in found["languages"]]
    made[f"CKA between languages, last layer, {pooling} (unbiased, mean over pairs)"] = _last_cka(within)
    return made


def _singular_values(one: dict[str, Any], shown: dict[str, Any]) -> dict[str, dict[str, float]]:
    base = one["settings"].base
    made = {"‖σ‖ of all matrices together": _together({key: row["norm"] for key, row in shown["cells"].items()})}
    if base:
        distances = {key: row["distance"] for key, row in shown["cells"].items() if key[0] != base}
        made[f"d to {one['names'][base]}, all matrices together"] = _together(distances)
    return made


def _separation(one: dict[str, Any], shown: dict[str, Any]) -> dict[str, dict[str, float]]:
    last = {model: found["by_layer"][-1] for model, found in shown["report"]["models"].items()}
    return {
        f"{called}, last layer": {
            model: row[key]["mean"] if isinstance(row[key], dict) else row[key] for model, row in last.items() if key in row
        }
        for key, called in (
            ("probe", "accuracy of the language probe"),
            ("between", "share of variance between languages"),
            ("retrieval", "translations found"),
        )
    }


def _last_cka(pairs: list[tuple[str, dict[str, Any]]]) -> dict[str, float]:
    """The mean unbiased CKA of the last layer over each model's pairs; of those that have one."""
    by_model: dict[str, list[float]] = {}
    for model, pair in pairs:
        if (value := pair["by_layer"][-1]["unbiased"]) is not None:
            by_model.setdefault(model, []).append(value)
    return {model: statistics.fmean(values) for model, values in by_model.items()}


def _together(parts: dict[tuple[str, int, str], float]) -> dict[str, float]:
    """The Euclidean norm over all layers and matrices of each model."""
    squares: dict[str, float] = {}
    for (model, _, _), value in parts.items():
        squares[model] = squares.get(model, 0.0) + value**2
    return {model: total**0.5 for model, total in squares.items()}


MEASURES = {"similarity": _similarity, "singular_values": _singular_values, "separation": _separation}
"""How an analysis is shown (`view` of its entry) → which measures of it are ranked; of the others none."""
