"""outcomes: what a job that has ended has found, and what one under way is doing, in a few plain words."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from workflow_scripts import registry
from workflow_scripts.run.schedule import PlannedJob
from workflow_scripts.stage import read_rows
from workflow_scripts.training.settings import DEV_SCORES

DOING = {
    "acquisition": "fetching data",
    "mtdata_environment": "installing mtdata",
    "comet_environment": "installing COMET",
    "held_out": "setting dev and test text aside",
    "corpus": "cleaning the text",
    "labelled": "reading labelled text",
    "generation_sides": "splitting text into sides",
    "aligned": "reading sentences to look up",
    "translated": "translating the training text",
    "frequencies": "counting words",
    "embeddings": "learning word vectors",
    "mapping": "mapping the word vectors into one space",
    "lexicon": "making the lexicon",
    "given_lexicon": "reading a dictionary",
    "codeswitch": "noising text",
    "labelled_codeswitch": "noising text",
    "backbone": "making the backbone",
    "choice": "choosing settings",
    "pretext": "restoring text",
    "finetune": "finetuning",
    "head_finetune": "finetuning",
    "decoding": "translating",
    "n_best": "translating",
    "distillation": "translating the training text",
    "generation_decoding": "writing answers",
    "generation_answers": "reading answers",
    "head_prediction": "answering",
    "retrieval": "looking up translations",
    "trivial": "a baseline without a model",
    "scores": "scoring",
    "comet": "scoring with COMET",
    "significance": "testing for significance",
    "significance_over_seeds": "testing for significance",
    "head_significance": "testing for significance",
    "retrieval_significance": "testing for significance",
    "head_transfer": "testing for significance",
    "word_accuracy": "measuring word accuracy",
    "representation": "measuring distances",
    "representation_backbone": "measuring distances",
    "layerwise": "measuring layers",
    "cka": "comparing states of models",
    "spectra": "decomposing weights",
    "separability": "measuring how separable the languages are",
    "speed": "measuring speed",
    "configuration": "writing down the configuration",
    "preflight": "looking for what could go wrong",
    "report": "writing the report",
}
"""Rules in plain words. A rule that is not here, another workflow's, is called by its name."""


TELLING = ("experiment", "arm", "seed", "backbone", "corpus", "labelled", "aligned", "lexicon", "analysis", "noise", "lang", "testset")
"""Wildcards that tell jobs apart, in the order in which a job is called by them."""


def name_of(job: PlannedJob, jobs: list[PlannedJob]) -> str:
    """What a job is about, in no more words than tell it from the others of the run: `csr`, or `tatoeba, csr, seed 2`."""
    parts = []
    for wildcard in TELLING:
        value = job.wildcards.get(wildcard)
        others = {other.wildcards[wildcard] for other in jobs if wildcard in other.wildcards and other.wildcards.get("arm") != "trivial"}
        if value and (len(others) > 1 or wildcard in ("arm", "backbone", "analysis")):
            parts.append(f"seed {value}" if wildcard == "seed" else value)
    return ", ".join(dict.fromkeys(parts))


def doing(job: PlannedJob, jobs: list[PlannedJob]) -> str:
    """What a job under way does, and how far a training is: `csr: restoring text, 700 of 2,800 updates`."""
    said = DOING.get(job.rule, job.rule.replace("_", " "))
    if job.updates:
        said += f", {job.updates[0]:,} of {job.updates[1]:,} updates"
    return f"{name}: {said}" if (name := name_of(job, jobs)) else said


def finding(job: PlannedJob, folder: Path) -> str:
    """What a job that has ended found, with its numbers; nothing where that is not worth a line, or cannot be read."""
    tell = _FINDINGS.get(job.rule)
    if tell is None:
        return ""
    try:
        return tell([folder / output for output in job.outputs])
    except (OSError, ValueError, KeyError, TypeError, StopIteration):
        return ""


def _json(files: list[Path], name: str) -> dict[str, Any]:
    return json.loads(next(path for path in files if path.match(name)).read_text(encoding="utf-8"))


def _corpus(files: list[Path]) -> str:
    report = _json(files, "corpus.json")
    held_out = sum(report["held_out"].values())
    return f"text: {report['kept']:,} pairs to learn from" + (f", {held_out:,} held out" if held_out else "")


def _lexicon(files: list[Path]) -> str:
    direction, report = next(iter(_json(files, "lexicon.json")["directions"].items()))
    line = f"lexicon {direction}: {report['entries']:,} words"
    gold = (report.get("gold") or {}).get("all") or {}
    return line + (f", {gold['p@1']:.0%} right first".replace("%", " %") if gold.get("covered") else "")


def _backbone(files: list[Path]) -> str:
    return f"backbone: {_json(files, 'backbone.json')['parameters']:,} weights"


def _noise(files: list[Path]) -> str:
    report = json.loads((files[0] / "codeswitch.json").read_text(encoding="utf-8"))
    rates = [side["rate"] for side in report["sides"].values()]
    return f"noised text ({report['kind']}): {sum(rates) / len(rates):.0%} of the words changed".replace("%", " %")


def _training(files: list[Path]) -> str:
    rows = read_rows(next(path for path in files if path.name == "curve.tsv"))
    return f"trained, {int(rows[-1]['update']):,} updates"


def _scores(files: list[Path]) -> str:
    metrics = _json(files, "*.scores.json")["metrics"]
    return ", ".join(f"{metric} {score['value']:.1f}" for metric, score in metrics.items() if score.get("value") is not None)


def _predictions(files: list[Path]) -> str:
    tests = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(files[0].glob("*.scores.json"))]
    leading = [test.get("metric") or next((name for name in registry.entries("label_metric") if name in test), "") for test in tests]
    values = [test[metric] for metric, test in zip(leading, tests, strict=True) if test.get(metric) is not None]
    return f"{len(tests)} test set{'s' * (len(tests) > 1)} answered" + (f", {sum(values) / len(values):.1f} on average" if values else "")


_FINDINGS: dict[str, Callable[[list[Path]], str]] = {
    **{"corpus": _corpus, "lexicon": _lexicon, "backbone": _backbone, "codeswitch": _noise, "labelled_codeswitch": _noise},
    **{"finetune": _training, "pretext": _training, "head_finetune": _training, "scores": _scores, "head_prediction": _predictions},
}
"""Rule → what reads its outputs."""

# ---------------------------------------------------------------------------------------------
# looks at the dev set

_LOOK = re.compile(r"^update (\d+)/(\d+)  eval_loss (\S+)(?:  eval_(bleu|rouge|error) (\S+))?", flags=re.MULTILINE)
_NAMES = {column.removeprefix("dev_"): metric for metric, column in DEV_SCORES.items()} | {"error": "error"}


def looks(log: str) -> list[str]:
    """What each look at the dev set said, by a training's log: `3,600 of 4,200, dev BLEU 13.6`."""
    try:
        text = Path(log).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    return [
        f"{int(done):,} of {int(planned):,}, dev " + (f"{_NAMES[name]} {float(value):.1f}" if name else f"loss {float(loss):.2f}")
        for done, planned, loss, name, value in _LOOK.findall(text)
    ]


# ---------------------------------------------------------------------------------------------
# answers


def answers(comparisons: Path) -> Iterator[dict[str, str]]:
    """The rows of a table of comparisons with the metric that leads, of each test set and two arms; none without a table.

    That is ROUGE-L where there is any, else BLEU (`scores.leading`), and of other tasks the first.
    """
    try:
        rows = read_rows(comparisons)
    except OSError:
        return
    found: dict[tuple[str, ...], dict[str, str]] = {}
    for row in rows:
        which = row["experiment"], row["testset"], row["arm"], row["other"]
        if row["difference"] and (which not in found or _leads(row["metric"]) > _leads(found[which]["metric"])):
            found[which] = row
    yield from found.values()


def _leads(metric: str) -> int:
    return {"ROUGE-L": 2, "BLEU": 1}.get(metric, 0)


def answer_line(row: dict[str, str]) -> str:
    """A comparison in a line: `csr − finetune +3.1 BLEU (95 % +2.1 to +4.0, p < 0.001)`."""
    low, high, p = (float(row[name]) if row[name] else None for name in ("low", "high", "p"))
    sure = [f"95 % {signed(low, 1)} to {signed(high, 1)}"] if low is not None and high is not None else []
    sure += [] if p is None else ["p < 0.001" if p < 0.001 else f"p = {p:.3f}"]
    line = f"{row['arm']} − {row['other']} {signed(float(row['difference']), 1)} {row['metric']}"
    return line + (f" ({', '.join(sure)})" if sure else "")


def verdict(row: dict[str, str]) -> str:
    """What a comparison shows, in a sentence that claims no more than its test does."""
    low, high, p = (float(row[name]) if row[name] else None for name in ("low", "high", "p"))
    if p is None or p >= 0.05 or (low is not None and high is not None and low < 0 < high):
        return "no more than chance could make"
    if row["seeds"] == "1":
        return "more than chance on these sentences; another training may differ"
    seeds_low, seeds_high = (float(row[name]) if row[name] else None for name in ("seeds_low", "seeds_high"))
    if seeds_low is not None and seeds_high is not None and seeds_low <= 0 <= seeds_high:
        return "not shown: the seeds differ too much among themselves"
    return "more than chance, with other sentences and other seeds too"


def signed(value: float, digits: int = 2) -> str:
    """A number with its sign, and a true minus; one that rounds to zero has no sign."""
    return f"{0:.{digits}f}" if abs(value) < 0.5 / 10**digits else f"{value:+.{digits}f}".replace("-", "−")
