"""scores: BLEU, chrF and TER of translations, ROUGE of summaries.

The first three are sacreBLEU's (Post 2018), with its signatures, ROUGE is rouge-score's (`rouge`). `significance` tests
their differences.
"""

import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Literal

from sacrebleu.metrics import BLEU, CHRF, TER
from sacrebleu.metrics.base import Metric

from workflow_scripts.limits import Positive
from workflow_scripts.stage import InputError, run, told, write_json
from workflow_scripts.text.files import read_lines
from workflow_scripts.text.languages import language

Tokenizer = Literal["13a", "intl", "char", "zh", "ja-mecab", "ko-mecab", "spm", "flores101", "flores200", "spBLEU-1K", "none"]
"""sacreBLEU's tokenisers."""


@dataclass
class Scores:
    """Settings of metrics, and of the tests that `significance` makes."""

    metrics: list[Literal["BLEU", "chrF", "TER", "ROUGE-1", "ROUGE-2", "ROUGE-L"]] = field(default_factory=lambda: ["BLEU", "chrF", "TER"])
    """What is measured; BLEU always is, and in its place ROUGE-L where there is any ROUGE. For the task summarisation it is the three
    ROUGEs unless said otherwise."""
    lowercase: bool = False
    """Measure once more without case, not tested: published scores of IWSLT are often of lower-cased text."""
    tokenize: Tokenizer | None = None
    """sacreBLEU's tokeniser for BLEU; by default the target language's (13a; zh, ja-mecab, ko-mecab)."""
    test: Literal["bootstrap", "randomization"] = "bootstrap"
    """Paired bootstrap resampling, or paired approximate randomization."""
    samples: Positive = 1_000
    """Resamples (bootstrap) or trials (randomization; 10,000 are usual)."""
    correction: Literal["holm", "none"] = "holm"
    """How p-values are corrected for the number of comparisons: all arms and test sets of an experiment, by metric and seed."""


def main(hypotheses: Path, references: Path, output: Path, *, language: str, settings: Scores = Scores()) -> None:
    """Write the scores of one test set by one model.

    What cannot be measured stands in the output under `failed`, with the reason, so that the report is made all the same.
    """
    wanted = metrics(language, settings)
    if settings.lowercase:
        wanted |= metrics(language, settings, lowercase=True)
    result: dict[str, dict] = {}
    failed: dict[str, str] = {}
    sentences = 0
    try:
        hypothesis, reference = aligned(hypotheses, references)
        sentences = len(reference)
    except InputError as error:
        wanted, failed = {}, dict.fromkeys(wanted, str(error))
    for name, make in wanted.items():
        try:
            metric = make()
            value = metric.corpus_score(hypothesis, [reference])
        except Exception as error:  # one metric's trouble, whatever it is, must not cost the others
            failed[name] = told(error)
        else:
            result[name] = {"value": value.score, "signature": str(metric.get_signature())}
    for name, reason in failed.items():
        print(f"{name} was not measured: {reason}", file=sys.stderr)
    write_json(output, {"sentences": sentences, "metrics": result, "failed": failed, "settings": asdict(settings)})


def leading(settings: Scores) -> str:
    """The metric that is always measured, and that stands for the others in headlines and charts."""
    return "ROUGE-L" if set(settings.metrics) & set(ROUGES) else "BLEU"


def metrics(code: str, settings: Scores, lowercase: bool = False) -> dict[str, Callable[[], Metric]]:
    """What makes each metric, by its name, for one target language; `lowercase` gives those that can tell cases apart for text without.

    They are made when they are used, since that may fail: flores200, the tokeniser of languages without one of their own, is
    fetched from the network.
    """
    tokenize = settings.tokenize or language(code).bleu_tokenizer
    wanted = {*settings.metrics, leading(settings)}
    makers: dict[str, Callable[[], Metric]] = {}
    if wanted & set(ROUGES) and not lowercase:
        from workflow_scripts.evidence.rouge import Rouge

        makers |= {name: partial(Rouge, name, code) for name in ROUGES if name in wanted}
    if "BLEU" in wanted:
        makers["BLEU"] = partial(BLEU, tokenize=tokenize, lowercase=lowercase)
    if "chrF" in settings.metrics:
        makers["chrF"] = partial(CHRF, lowercase=lowercase)
    if "TER" in settings.metrics and not lowercase:
        # scripts without spaces have their characters counted
        makers["TER"] = partial(TER, normalized=not language(code).spaced, asian_support=not language(code).spaced)
    return {f"{name}, lower-cased": make for name, make in makers.items()} if lowercase else makers


ROUGES = ("ROUGE-1", "ROUGE-2", "ROUGE-L")
"""The metrics of summaries; all of them ignore case."""
LOWER_IS_BETTER = ("TER",)
"""Metrics that count errors."""


def aligned(hypotheses: Path, references: Path) -> tuple[list[str], list[str]]:
    """Both files as lists of lines; raises `InputError` when they differ in length or have no line."""
    sides = [list(read_lines(path)) for path in (hypotheses, references)]
    if len(sides[0]) != len(sides[1]):
        raise InputError(f"{hypotheses} has {len(sides[0])} lines, {references} {len(sides[1])}; decode again")
    if not sides[0]:
        raise InputError(f"{hypotheses} and {references} are empty; decode again, with a test set that has sentences")
    return sides[0], sides[1]


if __name__ == "__main__":
    run(main)
