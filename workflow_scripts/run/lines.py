"""lines: what `progress` says before a run, every minute, and at its end. It needs PyYAML and the standard library alone."""

import json
import re
import shlex
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from workflow_scripts.run import outcomes
from workflow_scripts.run.more_seeds import with_more_seeds
from workflow_scripts.run.schedule import ANSWER, Run, is_forecast

LOG = Path("results/logs/snakemake.log")
"""Snakemake's own words, in the folder of the run."""
WIDTH = 100
"""Characters of a line."""


def announced(run: Run) -> Iterator[str]:
    """What the run will do, before it begins."""
    jobs = [job for job in run.jobs.values() if job.rule != "all"]
    if not jobs:
        return
    trained = [job for job in jobs if job.finetunes]
    experiments, arms, seeds = (
        sorted({job.wildcards[key] for job in trained if key in job.wildcards}) for key in ("experiment", "arm", "seed")
    )
    if arms:
        where = f"{experiments[0]}: " if len(experiments) == 1 else f"{len(experiments)} experiments: " if experiments else ""
        each = f", with {len(seeds)} seeds each" if len(seeds) > 1 else ""
        ways = f"{len(arms)} arms ({', '.join(arms)})" if len(arms) > 1 else arms[0]
        yield from wrapped(f"{where}{ways} to train{each}, then to translate or answer with, to score and to test")
    else:
        kinds = dict.fromkeys(outcomes.DOING.get(job.rule, job.rule.replace("_", " ")) for job in jobs)
        yield textwrap.shorten(f"to do: {', '.join(kinds)}", WIDTH, placeholder=" …")
    yield f"the page, from the first arm on: {run.folder / 'results/report.html'}"
    yield f"Snakemake's own words: {run.folder / LOG} (VERBOSE=1 shows them here)"


def wrapped(line: str, width: int = WIDTH) -> list[str]:
    """A line in lines of at most so many characters."""
    return textwrap.wrap(line, width, break_long_words=False, break_on_hyphens=False)


def line_about(run: Run, left: float | None, share: float) -> str:
    """One line: the share of the time that has passed, the seconds that are left, unless they cannot be known, and what is being done."""
    jobs = [*run.jobs.values()]
    doing = list(dict.fromkeys(outcomes.doing(job, jobs) for job in sorted(run.running, key=lambda job: -job.work) if job.rule != "all"))
    shown = "; ".join(doing[:2]) + (f"; and {len(doing) - 2} more" if len(doing) > 2 else "")
    if left is None:
        return shown
    return f"{share:.0%}, {roughly(left) if is_forecast(run) else rounded(left)} left. {shown}".replace("%", " %", 1)


def share_passed(passed: float, left: float | None, before: float) -> float:
    """The share of a run's time that has passed, of the seconds passed and left. It is never below the one that was shown `before`."""
    now = 0.0 if left is None else passed / max(passed + left, 1.0)
    return max(before, min(now, 0.99))


YOUR_TEXT = "Your text:  README.md, “My own data”"


def ended(run: Run, passed: float, status: int, arguments: Sequence[str]) -> Iterator[str]:
    """The last lines: the answer, the files and what to do next; or why the run stopped. `passed` are seconds."""
    results = run.folder / "results"
    page = results / "report.html"
    if status:
        log = run.folder / LOG
        text = log.read_text(encoding="utf-8", errors="replace")
        yield reason(text)
        done = f", {run.done} of {len(run.jobs)} jobs done" if run.jobs else ""
        yield f"stopped after {clock(passed).strip()} with exit status {status}{done}; see {log}"
        if page.exists():
            yield f"The page:   {page} (with what was there before the run stopped)"
        if not _DIGEST.search(text):  # which has this, too
            yield "Next:       what is finished stays; make resume goes on, or the same command:"
            yield f"            snakemake {shlex.join(arguments)}"
        return
    if not run.jobs:
        yield "nothing to be done: everything is there already"
        if page.exists():
            yield f"The page:   {page}"
            yield YOUR_TEXT
        return
    yield f"all done in {clock(passed).strip()}"
    reported = any(job.rule == "report" for job in run.jobs.values())
    rows = [*wanted_comparisons(run, outcomes.answers(results / "comparisons.tsv"))] if reported else []
    if rows:
        answer = of_all_testsets(rows)
        on = f" on {answer['testset']}" if len({row["testset"] for row in rows}) > 1 else ""
        yield ""
        yield from wrapped(f"The answer: {outcomes.answer_line(answer)}{on}.")
        yield from wrapped(f"That is {outcomes.verdict(answer)}.")
        yield f"The page:   {page} (all sentences: {results / 'translations'})"
        yield f"The table:  {results / 'scores.tsv'}"
        trained = {(job.wildcards["experiment"], job.wildcards["arm"]) for job in run.jobs.values() if job.finetunes}
        whole = trained >= {(row["experiment"], row[side]) for row in rows for side in ("arm", "other")}
        yield from next_steps(rows, arguments, results / "configuration.json", whole)


def of_all_testsets(rows: list[dict[str, str]]) -> dict[str, str]:
    """The first comparison, of the average over the test sets where there is one."""
    same = [row for row in rows if all(row[name] == rows[0][name] for name in ("experiment", "arm", "other"))]
    return next((row for row in same if row["testset"] == "average"), rows[0])


def next_steps(rows: Iterable[dict[str, str]], arguments: Sequence[str], configuration: Path, whole: bool) -> Iterator[str]:
    """What to do after a run with these comparisons, and with the configuration of that file.

    Only a call that has trained the `whole` of what is compared tells by its own time how long more seeds take.
    """
    of_run, own = seeds_of(configuration, {row["experiment"] for row in rows if row["seeds"] == "1"})
    if own:
        yield f"Next:       two more seeds tell whether another training gives the same{', in twice this time' if whole else ''}:"
        yield f"            snakemake {shlex.join(with_more_seeds(arguments, of_run, own))}"
    yield YOUR_TEXT


def seeds_of(configuration: Path, experiments: Iterable[str]) -> tuple[list[int], dict[str, Any]]:
    """The setting `seeds` of a run and of those of its experiments that train, as its configuration was written out."""
    try:
        found = json.loads(configuration.read_text(encoding="utf-8"))
        blocks = {name: found["experiments"][name] for name in sorted(experiments)}
        return found["run"]["seeds"], {name: block["seeds"] for name, block in blocks.items() if "seeds" in block}
    except (OSError, ValueError, KeyError):
        return [1], dict.fromkeys(experiments)


def rounded(seconds: float) -> str:
    """A time in words, no more exact than an estimate is."""
    return in_words(seconds) if seconds < 36_000 else f"{seconds / 3600:.0f} hours"


def roughly(seconds: float) -> str:
    """A time that is not known well, as a range."""
    low, high = rounded(ROUGHLY[0] * seconds), rounded(ROUGHLY[1] * seconds)
    low_number, _, unit = low.partition(" ")
    return high if low == high else f"{low_number if unit.rstrip('s') == high.partition(' ')[2].rstrip('s') else low} to {high}"


ROUGHLY = (0.8, 1.3)
"""Of a forecast: the ends of the range that is said."""


def in_words(seconds: float) -> str:
    """A time in minutes, or hours."""
    minutes = max(1, round(seconds / 60))
    return f"{minutes} minute{'s' * (minutes > 1)}" if minutes < 120 else f"{seconds / 3600:.1f} hours"


def clock(seconds: float) -> str:
    """Minutes and seconds, with hours where there are any."""
    hours, rest = divmod(int(seconds), 3600)
    return f"{hours}:{rest // 60:02}:{rest % 60:02}" if hours else f"{rest // 60:2}:{rest % 60:02}"


_DIGEST = re.compile(r"^──── .*(?:\n.*)*?(?:\nWhat is finished stays.*|\Z)", flags=re.MULTILINE)


def reason(log: str) -> str:
    """Why a run stopped: the digest (`run/digest.py`) if there is one, otherwise the last lines."""
    digests = _DIGEST.findall(log)
    return digests[-1] if digests else "\n".join([line for line in log.splitlines() if line.strip()][-30:])


def wanted_comparisons(run: Run, rows: Iterable[dict[str, str]]) -> Iterator[dict[str, str]]:
    """Of comparisons of every two arms those that a run is made for: with the baseline, and of its method with the controls.

    Of each experiment the first row compares with the baseline. The method is the other arm that the first answer needs.
    """
    urgent = [job for job in run.jobs.values() if job.priority >= ANSWER and "arm" in job.wildcards]
    first = {(job.wildcards["experiment"], job.wildcards["arm"]) for job in urgent}
    baselines: dict[str, str] = {}
    for row in rows:
        baseline = baselines.setdefault(row["experiment"], row["other"])
        arm, other = ((row["experiment"], row[side]) in first for side in ("arm", "other"))
        if row["other"] == baseline or arm:
            yield row
        elif other:
            yield turned(row)


def turned(row: dict[str, str]) -> dict[str, str]:
    """The comparison the other way round."""
    negative = {name: str(-float(row[name])) if row[name] else "" for name in ("difference", "low", "high", "seeds_low", "seeds_high")}
    ends = {"low": negative["high"], "high": negative["low"], "seeds_low": negative["seeds_high"], "seeds_high": negative["seeds_low"]}
    return {**row, **negative, **ends, "arm": row["other"], "other": row["arm"]}
