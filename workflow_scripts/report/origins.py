"""What the results cost, and from which data, commits and library versions they come."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from workflow_scripts import registry
from workflow_scripts.run.uses import data_file, data_used
from workflow_scripts.stage import read_json, read_rows
from workflow_scripts.tasks.plan import Plans


def acquired(results: Path, plans: Plans) -> list[dict[str, Any]]:
    """The acquired data: name, origin, size, SHA-256 and date from their files; licence and citation from the configuration."""
    files, config = [], plans.config
    for name in data_used(plans):
        path = results / Path(data_file(config, name)).relative_to("results")
        block, report = config.data[name], Path(f"{path}.json")
        about = read_json(report) if report.exists() else {}
        origin = {key: value for key, value in about.get("origin", {}).items() if key not in ("kind", "sha256", "citation")}
        citation = block.citation or about.get("origin", {}).get("citation") or ""
        made = {key: about.get(key) for key in ("bytes", "sha256", "date")}
        files.append({"name": name, "origin": origin, **made, "licence": block.licence, "citation": citation})
    return files


RULES = {
    "training/*/*.finetune.tsv": "finetune",
    "training/*": "pretext",
    "corpus/*/train.tsv": "corpus",
    "corpus/*": "held_out",
    "decoding/*.nbest.tsv": "n_best",
    "representation/*/backbone.tsv": "representation_backbone",
    "heads/*/significance.tsv": "head_significance",
    "heads/*/transfer.tsv": "head_transfer",
    "heads/*": "head_prediction",
    "generation/*": "generation_decoding",
    "retrieval/*/significance.tsv": "retrieval_significance",
    "significance/*.seed*.tsv": "significance",
    "significance/*": "significance_over_seeds",
    "word_accuracy/*/frequencies.tsv": "frequencies",
    "comet/environment.tsv": "comet_environment",
    "acquisition/mtdata_environment.tsv": "mtdata_environment",
}
"""Pattern of benchmark files → rule or phase; the first match counts. Other files are named after their folder."""
ON_GPU = {"pretext", "finetune", "decoding", "n_best", "comet", "representation", "representation_backbone"}
ON_GPU |= {"head_prediction", "generation_decoding", "distillation", "layerwise"}
"""Rules that use a GPU where the training of their model did."""
SAYS_WHERE = {
    "backbone": "backbones/{job}/backbone.json",
    "mapping": "lexicons/{folder}/{job}/mapping.json",
    "retrieval": "runs/{folder}/{arm}/seed{seed}/predictions/*.scores.json",
    "translated": "labelled/{folder}/translated/{job}.json",
    "speed": "runs/{job}/speed.json",
}
"""Rule → the report of a job in `results`, which says on which `device` it ran. It need not have a model that is trained here."""


def says_where() -> dict[str, str]:
    """`SAYS_WHERE`, with the analyses that have a rule of their own."""
    return SAYS_WHERE | {name: f"analyses/{{job}}/{name}.json" for name, one in registry.entries("analysis").items() if not one.make}


def cost(results: Path) -> list[dict[str, Any]]:
    """One row per rule or phase, and their sum: jobs, wall-clock seconds, processor hours, GPU hours, largest memory of a job in MB."""
    benchmarks = results / "benchmarks"
    jobs: list[dict[str, Any]] = []
    for path in sorted(benchmarks.glob("*/**/*.tsv")):
        job = path.relative_to(benchmarks)
        rule = next((rule for pattern, rule in RULES.items() if fnmatch(job.as_posix(), pattern)), job.parts[0])
        for row in read_rows(path):
            seconds, cpu, memory = (_number(row.get(key)) for key in ("s", "cpu_time", "max_rss"))
            gpus = gpus_of(results, rule, job) if rule in ON_GPU | says_where().keys() else 0
            jobs.append({"rule": rule, "seconds": seconds, "cpu": cpu / 3600, "memory": memory, "gpu": seconds * gpus / 3600})
    rows = []
    for rule in [*dict.fromkeys(job["rule"] for job in jobs), "all"] if jobs else []:
        mine = [job for job in jobs if rule in (job["rule"], "all")]
        sums = {key: sum(job[key] for job in mine) for key in ("seconds", "cpu", "gpu")}
        rows.append({"rule": rule, "jobs": len(mine), **sums, "memory": max(job["memory"] for job in mine)})
    return rows


def gpus_of(results: Path, rule: str, benchmark: Path) -> int:
    """How many GPUs a job had: what a phase's `training.json` or the file of `says_where` says, else one where its model's training had."""
    runs, experiment = results / "runs", benchmark.parent.name
    reports: Iterable[Path]
    arm, _, rest = benchmark.stem.rpartition(".seed")
    seed, _, last = rest.partition(".")
    if file := says_where().get(rule):
        reports = results.glob(file.format(folder=experiment, job=benchmark.stem, arm=arm, seed=seed))
    elif rule == "layerwise":  # an analysis of a plugin
        analysis, _, measure = benchmark.stem.rpartition(".")
        reports = results.glob(f"analyses/{analysis}/{measure}.json")
    elif rule == "representation_backbone":
        reports = runs.glob(f"{experiment}/*/seed*/*/training.json")
    else:
        reports = runs.glob(f"{experiment}/{arm}/seed{seed}/{last if rule in ('pretext', 'finetune') else '*'}/training.json")
    found = [said.get("processes", 1) for said in map(read_json, reports) if said.get("device", "cpu") != "cpu"]
    return max(found, default=0) if rule in ("backbone", "pretext", "finetune") else min(1, len(found))


def provenances(results: Path, paths: list[Path]) -> dict[str, Any]:
    """Where the files come from: commits and the files they wrote, library versions, whether either is mixed, and checksums.

    A file has several checksums when it was changed between two stages that read it.
    """
    found = []
    checksums: dict[str, set[str]] = defaultdict(set)
    for path in dict.fromkeys(paths):
        report = read_json(path)
        found.append((path, report.get("provenance", {"commit": "unknown", "versions": {}})))
        for file, checksum in report.get("checksums", {}).items():
            checksums[file].add(checksum)
    commits = Counter(p["commit"] for _, p in found)
    files = {commit: [f"results/{path.relative_to(results)}" for path, p in found if p["commit"] == commit] for commit in commits}
    libraries = sorted({library for _, p in found for library in p["versions"]})
    versions = {name: sorted({p["versions"][name] for _, p in found if name in p["versions"]}) for name in libraries}
    return {
        "files": files,
        "versions": versions,
        "checksums": {file: sorted(checksums[file]) for file in sorted(checksums)},
        "mixed": len(commits) > 1,
        "mixed_versions": any(len(v) > 1 for v in versions.values()),
    }


def _number(cell: str | None) -> float:
    try:
        return float(cell or 0)
    except ValueError:  # Snakemake writes NA or - for jobs too short to measure
        return 0.0
