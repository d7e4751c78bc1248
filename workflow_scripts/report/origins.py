"""What the numbers cost, and which data, commits and versions they are from."""

import csv
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from workflow_scripts.config import Config, data_file, data_used
from workflow_scripts.stage import read_json


def acquired(results: Path, config: Config) -> list[dict[str, Any]]:
    """The run's data: name, origin, size, SHA-256 and date, as their files say; licence and citation, as the configuration says."""
    found = []
    for name in data_used(config):
        path = results / Path(data_file(config, name)).relative_to("results")
        block, report = config.data[name], Path(f"{path}.json")
        said = read_json(report) if report.exists() else {}
        origin = {key: value for key, value in said.get("origin", {}).items() if key not in ("kind", "sha256", "citation")}
        citation = block.citation or said.get("origin", {}).get("citation") or ""
        made = {key: said.get(key) for key in ("bytes", "sha256", "date")}
        found.append({"name": name, "origin": origin, **made, "licence": block.licence, "citation": citation})
    return found


def cost(results: Path) -> list[dict[str, Any]]:
    """A row per stage, and their sum: jobs, seconds (wall clock, processor), a job's largest memory in MB, GPU hours of training."""
    benchmarks = results / "benchmarks"
    jobs = []
    for path in sorted(benchmarks.glob("*/**/*.tsv")):
        stage = path.relative_to(benchmarks).parts[0]
        with open(path, encoding="utf-8") as file:
            for row in csv.DictReader(file, delimiter="\t"):
                seconds, cpu, memory = (_number(row.get(key)) for key in ("s", "cpu_time", "max_rss"))
                gpu = seconds * trained_on(results, path.relative_to(benchmarks)) / 3600
                jobs.append({"stage": stage, "seconds": seconds, "cpu": cpu, "memory": memory, "gpu": gpu})
    rows = []
    for stage in [*dict.fromkeys(job["stage"] for job in jobs), "all"] if jobs else []:
        mine = [job for job in jobs if stage in (job["stage"], "all")]
        sums = {key: sum(job[key] for job in mine) for key in ("seconds", "cpu", "gpu")}
        rows.append({"stage": stage, "jobs": len(mine), **sums, "memory": max(job["memory"] for job in mine)})
    return rows


def trained_on(results: Path, benchmark: Path) -> int:
    """How many GPUs a phase was trained on, which its `training.json` says; 0 for other jobs."""
    stage, *folders, name = benchmark.parts
    if stage != "training" or len(folders) != 1 or len(parts := name.removesuffix(".tsv").rsplit(".", 2)) != 3:
        return 0
    report = results / "runs" / folders[0] / Path(*parts) / "training.json"
    said = read_json(report) if report.exists() else {}
    return said.get("processes", 1) if said.get("device", "cpu").startswith("cuda") else 0


def provenances(results: Path, paths: list[Path]) -> dict[str, Any]:
    """Commits with the files each made, versions by library, whether either differs among the files, and checksums of what was read.

    A file has several checksums when one stage read it before it was changed, and another one after.
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
