"""scores: BLEU, chrF and TER of hypotheses, and paired significance against the baseline.

All numbers are sacreBLEU's (Post 2018), with its signatures. The test is paired: bootstrap
resampling (Koehn 2004) or approximate randomization (Riezler and Maxwell 2005). It answers whether
the difference would hold on other test sentences; it knows nothing of other training seeds.
"""

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal

import sacrebleu
from sacrebleu.significance import PairedTest

from workflow_scripts.languages import language
from workflow_scripts.limits import Positive
from workflow_scripts.stage import InputError, run, write_json
from workflow_scripts.text import read_lines

Tokenizer = Literal["13a", "intl", "char", "zh", "ja-mecab", "ko-mecab", "spm", "flores101", "flores200", "spBLEU-1K", "none"]
"""sacreBLEU's tokenisers."""


@dataclass
class Scores:
    """Settings of metrics and tests."""

    metrics: list[Literal["BLEU", "chrF", "TER"]] = field(default_factory=lambda: ["BLEU", "chrF", "TER"])
    """What is measured; BLEU always is."""
    lowercase: bool = False
    """Measure once more without case, not tested: published scores of IWSLT are often of lower-cased text."""
    tokenize: Tokenizer | None = None
    """sacreBLEU's tokeniser for BLEU; by default the target language's (13a; zh, ja-mecab, ko-mecab)."""
    test: Literal["bootstrap", "randomization"] = "bootstrap"
    """Paired bootstrap resampling, or paired approximate randomization."""
    samples: Positive = 1_000
    """Resamples (bootstrap) or trials (randomization; 10,000 are usual)."""


def score(hypotheses: Path, references: Path, output: Path, *, language: str, settings: Scores = Scores()) -> None:
    """Write the scores of one test set by one model."""
    hypothesis, reference = aligned(hypotheses, references)
    result = {}
    measured = metrics(language, settings)
    if settings.lowercase:
        measured |= metrics(language, settings, lowercase=True)
    for name, metric in measured.items():
        value = metric.corpus_score(hypothesis, [reference])
        result[name] = {"value": value.score, "signature": str(metric.get_signature())}
    write_json(output, {"sentences": len(hypothesis), "metrics": result, "settings": asdict(settings)})


def significance(
    systems: tuple[Path, ...],
    references: Path,
    output: Path,
    *,
    names: tuple[str, ...],
    language: str,
    seed: int = 1,
    settings: Scores = Scores(),
) -> None:
    """Compare systems with the first, the baseline, on one test set of one training seed.

    Writes for each system and metric the score, the mean and half-width of its 95 % interval
    (bootstrap), and the p-value against the baseline.
    """
    import os

    os.environ.setdefault("SACREBLEU_SEED", str(seed))
    pairs = [aligned(system, references) for system in systems]
    named = list(zip(names, (hypothesis for hypothesis, _ in pairs), strict=True))
    rows: dict[str, dict] = {name: {} for name in names}
    if len(named) > 1:
        signatures, scores = PairedTest(
            named,
            metrics(language, settings),
            references=[pairs[0][1]],
            test_type="bs" if settings.test == "bootstrap" else "ar",
            n_samples=settings.samples,
        )()
        for metric, results in scores.items():
            if metric == "System":
                continue
            for name, result in zip(names, results, strict=True):
                # sacreBLEU counts the resamples with a strictly greater difference: of two equal outputs
                # it would call the (absent) difference significant
                equal = name != names[0] and result.score == results[0].score
                rows[name][metric] = {
                    "score": result.score,
                    "mean": result.mean,
                    "ci": result.ci,
                    "p": 1.0 if equal else result.p_value,
                    "signature": str(signatures[metric]),
                }
    write_json(
        output,
        {
            "baseline": names[0],
            "systems": rows,
            "settings": asdict(settings),
            "covers": "the choice of test sentences, not of training seeds",
        },
    )


def metrics(code: str, settings: Scores, lowercase: bool = False) -> dict[str, sacrebleu.metrics.base.Metric]:
    """The metrics by name, for one target language; `lowercase` gives those that can tell cases apart for text without."""
    tokenize = settings.tokenize or language(code).bleu_tokenizer
    made: dict[str, sacrebleu.metrics.base.Metric] = {"BLEU": sacrebleu.metrics.BLEU(tokenize=tokenize, lowercase=lowercase)}
    if "chrF" in settings.metrics:
        made["chrF"] = sacrebleu.metrics.CHRF(lowercase=lowercase)
    if "TER" in settings.metrics and not lowercase:
        # scripts without spaces have their characters counted
        made["TER"] = sacrebleu.metrics.TER(normalized=not language(code).spaced, asian_support=not language(code).spaced)
    return {f"{name}, lower-cased": metric for name, metric in made.items()} if lowercase else made


LOWER_IS_BETTER = ("TER",)
"""Metrics that count errors."""


def aligned(hypotheses: Path, references: Path) -> tuple[list[str], list[str]]:
    """Both files as lists of lines; raises `InputError` when they differ in length or are empty."""
    sides = [list(read_lines(path)) for path in (hypotheses, references)]
    if len(sides[0]) != len(sides[1]):
        raise InputError(f"{hypotheses} has {len(sides[0])} lines, {references} {len(sides[1])}; decode again")
    if not sides[0]:
        raise InputError(f"{references}: is empty, there is nothing to measure")
    return sides[0], sides[1]


def marker(p: float | None, difference: float) -> str:
    """‡ for p < 0.01, † for p < 0.05 (the paper's Table II), with an arrow down where it got worse."""
    if p is None or p >= 0.05:
        return ""
    return ("‡" if p < 0.01 else "†") + ("↓" if difference < 0 else "")


if __name__ == "__main__":
    run({"score": score, "significance": significance})
