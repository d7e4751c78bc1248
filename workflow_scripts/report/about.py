"""about: when, where and how a run was made, for the line under the page's title; and what its words mean, for the mouse."""

import re
from datetime import datetime
from pathlib import Path
from typing import Any

from workflow_scripts.report.study import Study
from workflow_scripts.run.lines import LOG, in_words
from workflow_scripts.run.processes import as_called
from workflow_scripts.stage import ROOT, read_json, read_rows

OF_A_SEED = {"codeswitch", "labelled_codeswitch", "pretext", "finetune", "decoding", "generation_decoding", "head_prediction"}
OF_A_SEED |= {"scores", "significance", "word_accuracy", "representation", "comet"}
"""Rules whose jobs another seed has again, as the table of cost calls them."""
PAUSE = 600
"""Seconds without a job after which a run counts as interrupted. Between two jobs of one run there are seconds, or a minute."""


def about(results: Path, studies: list[Study], provenance: dict[str, Any]) -> list[str]:
    """Date, commits, machine with its precision, seeds and wall time, as far as they are known."""
    read = [path for study in studies for path in study.read if path.exists()]
    trained = [read_json(path) for path in read if path.name == "training.json"]
    machines = dict.fromkeys(f"{one.get('machine', one['device'])}, {one['precision']}" for one in trained)
    seeds = sorted({seed for study in studies for seed in study.seeds})
    commits = list(provenance["files"])
    found = [f"{datetime.fromtimestamp(max(path.stat().st_mtime for path in read)):%d %B %Y}"] if read else []
    named = " and ".join(commits) if len(commits) <= 2 else f"{commits[0]} and {len(commits) - 1} others"
    found += [f"commit{'s' * (len(commits) > 1)} {named}"] if commits else []
    found += list(machines) if len(machines) <= 2 else [f"{len(machines)} machines"]
    found += [f"seed{'s' * (len(seeds) > 1)} {', '.join(map(str, seeds))}"] if seeds else []
    stretches = worked(results)
    if len(stretches) > 1:
        return [*found, f"{in_words(sum(stretches))} of work in {len(stretches)} stretches"]
    return [*found, f"{in_words(stretches[0])} from the first job to the last"] if stretches else found


def worked(results: Path) -> list[float]:
    """Seconds of each stretch in which jobs ran, by the files of benchmarks. A longer pause than `PAUSE` ends a stretch.

    Empty where the files tell nothing. Those of a folder that was copied all end together; in a run, some job ends well before the longest.
    """
    timed = [(path.stat().st_mtime, _seconds(path)) for path in (results / "benchmarks").glob("*/**/*.tsv")]
    ends = [end for end, _ in timed]
    if len(timed) > 1 and max(ends) - min(ends) < max(seconds for _, seconds in timed) / 2:
        return []
    jobs = sorted((end - seconds, seconds) for end, seconds in timed)
    stretches: list[tuple[float, float]] = []
    for start, seconds in jobs:
        if stretches and start <= stretches[-1][1] + PAUSE:
            stretches[-1] = stretches[-1][0], max(stretches[-1][1], start + seconds)
        else:
            stretches.append((start, start + seconds))
    passed = [end - start for start, end in stretches]
    return passed if sum(passed) >= sum(seconds for _, seconds in jobs) / 64 else []


def _seconds(benchmark: Path) -> float:
    return sum(float(row["s"]) for row in read_rows(benchmark) if re.fullmatch(r"[\d.]+", row.get("s") or ""))


def time_of_more_seeds(results: Path, cost: list[dict[str, Any]]) -> str:
    """How long two more seeds take: twice the share of the wall time in which jobs were at work that each seed has; nothing if unknown."""
    seconds = sum(worked(results))
    if not seconds or not cost:
        return ""
    share = sum(row["seconds"] for row in cost if row["rule"] in OF_A_SEED) / cost[-1]["seconds"]
    return f"about {in_words(2 * share * seconds)}"


def command(results: Path) -> list[str] | None:
    """The arguments of Snakemake's last call that made something, by its log; None where there is no log that says so."""
    logs = [results / LOG.relative_to("results"), *(results.parent / ".snakemake/log").glob("*.snakemake.log")]
    for log in sorted((log for log in logs if log.exists()), key=lambda log: -log.stat().st_mtime):
        with open(log, encoding="utf-8", errors="replace") as file:
            match = re.search(r"^  Command: (.*)$", file.read(4096), flags=re.MULTILINE)
        if match and "preflight" not in (words := words_of(match[1])[1:]):
            return as_called(words)
    return None


def words_of(command: str) -> list[str]:
    """The words of a command whose quotes are lost: what stands in brackets is one word with what stands around them."""
    words: list[str] = []
    depth = 0
    for part in command.split():
        if depth:
            words[-1] += f" {part}"
        else:
            words.append(part)
        depth = max(0, depth + sum(part.count(mark) for mark in "[{") - sum(part.count(mark) for mark in "]}"))
    return words


EXPLAINED = (
    *("arm", "backbone", "baseline", "bootstrap", "chrf", "control", "coverage", "dose", "holm", "lexicon"),
    *("look", "noise", "phase", "pretext", "seed", "shortfall", "updates"),
)
"""Words of the pages that a reader may not know."""


def meanings() -> dict[str, str]:
    """Word of `EXPLAINED` → what it means, from the glossary; nothing where the glossary is not there."""
    page = ROOT / "docs/glossary.md"
    if not page.exists():
        return {}
    found: dict[str, str] = {}
    for words, meaning in re.findall(r"^\| (\*\*.*?) \| (.*) \|$", page.read_text(encoding="utf-8"), flags=re.MULTILINE):
        plain = re.sub(r"\[([^]]*)\]\([^)]*\)|[*`]", lambda link: link[1] or "", meaning)
        found |= {word.lower(): plain for word in re.findall(r"\*\*(.*?)\*\*", words) if word.lower() in EXPLAINED}
    return found
