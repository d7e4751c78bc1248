"""metric: what a metric of text is. The decorator `metric` registers one, a function of one hypothesis and its reference.

::

    @metric("off-target", label="off-target", higher_is_better=False)
    def off_target(hypothesis, language):
        return 100.0 * (identify(hypothesis) != language)

The score of a test set is the mean over its sentences. It is then tested for significance, and shown, like all others. A metric whose
score of a test set is another one than the mean is a class of sacreBLEU's kind (`SummedMetric`), registered by `register_metric`.
"""

import functools
import hashlib
import inspect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sacrebleu.metrics.base import Metric, Score, Signature

from workflow_scripts import plugins, registry
from workflow_scripts.errors import InputError

PARAMETERS = {
    "hypothesis": "what the model wrote",
    "reference": "what is right",
    "language": "the code of the language that is written",
}
"""What the function of a metric may ask for, by the name of its parameter."""


@dataclass(frozen=True, kw_only=True)
class TextMetric(registry.Entry):
    """An entry of the kind `metric`."""

    make: Callable[[str, Any, bool], Metric]
    """Language, settings (`scores.Scores`), and whether text is lower-cased → the metric. It may fail: some download a tokeniser."""
    higher_is_better: bool = True
    """Whether a larger score is the better one; not so where errors are counted."""
    decimals: int = 2
    """How many decimals tables show."""
    cased: bool = False
    """Whether upper and lower case count, so that text that was lower-cased has another score."""
    called: Callable[[str, Any], str] | None = None
    """Language and settings → its name in tables, where that says how it was counted: the entry's name, and more behind a blank."""
    fetches: Callable[[str, Any], str] | None = None
    """Language and settings → what it downloads where that is not there, as messages call it."""


def register_metric(name: str, make: Callable[[str, Any, bool], Metric], *, label: str = "", **about: Any) -> None:
    """Register a metric of sacreBLEU's kind; `about` are the fields of `TextMetric`."""
    registry.register("metric", TextMetric(name=name, label=label or name, make=make, **about))


def metric(
    name: str, *, label: str = "", higher_is_better: bool = True, decimals: int = 2, cased: bool = False, source: str = ""
) -> Callable[[Callable], Callable]:
    """Register the function of one sentence that is decorated as a metric; see the module, and `TextMetric` for what is said of it."""

    def registered(function: Callable) -> Callable:
        asked = plugins.asked(f"metric {name!r}", "a metric", function, PARAMETERS)
        version = hashlib.sha256(file_of(function).read_bytes()).hexdigest()[:12]
        about = {"higher_is_better": higher_is_better, "decimals": decimals, "cased": cased, "source": source}

        def make(code: str, settings: Any, lowercase: bool) -> Metric:
            return MeanOfSentences(name, function, asked, code, version, lowercase)

        register_metric(name, make, label=label, **about)
        return function

    return registered


def file_of(function: Callable) -> Path:
    """The file that a function stands in, below what decorators and `functools.partial` have put around it."""
    inner = inspect.unwrap(getattr(function, "func", function))
    return Path(inspect.getsourcefile(inner if inspect.isroutine(inner) else type(inner)) or __file__)


class SummedMetric(Metric):
    """A metric that sacreBLEU's paired tests can use like its own: the sums of the counts of sentences give the score of a corpus."""

    def _preprocess_segment(self, sent: str) -> str:
        return sent

    def _extract_reference_info(self, refs: Sequence[str]) -> dict[str, Any]:
        return {"references": refs}

    def _aggregate_and_compute(self, stats: list[list[float]]) -> Score:
        return self._compute_score_from_stats([sum(column) for column in zip(*stats, strict=True)])


class MeanOfSentences(SummedMetric):
    """The mean of what a function says of each sentence; of several references the first counts."""

    def __init__(self, name: str, function: Callable[..., float], asked: tuple[str, ...], code: str, version: str, lowercase: bool = False):
        super().__init__()
        self.name, self._function, self._asked, self._code, self._version = name, function, asked, code, version
        self._lowercase = lowercase

    def get_signature(self) -> Signature:
        """The name and the checksum of the file that has the function, in the format of sacreBLEU's signatures."""
        signature = Signature({"num_refs": self.num_refs})
        signature.info |= {"metric": self.name} | ({"case": "lc"} if self._lowercase else {})
        signature.update("version", self._version)
        return signature

    def _preprocess_segment(self, sent: str) -> str:
        return sent.lower() if self._lowercase else sent

    def _compute_segment_statistics(self, hypothesis: str, ref_kwargs: dict[str, Any]) -> list[float]:
        given = {"hypothesis": hypothesis, "reference": ref_kwargs["references"][0], "language": self._code}
        about = functools.partial("hypothesis {!r}".format, hypothesis)
        value = plugins.call(f"metric {self.name!r}", self._function, {each: given[each] for each in self._asked}, about)
        # of NumPy's numbers only some are Python's
        if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.number) or not math.isfinite(value):
            raise InputError(f"metric {self.name!r} returned {value!r} for {hypothesis!r}; it returns a number")
        return [float(value), 1.0]

    def _compute_score_from_stats(self, stats: list[float]) -> Score:
        return Score(self.name, float(stats[0]) / float(stats[1]))


def entry_of(metric: str) -> TextMetric | None:
    """The entry of a metric of text by its name in tables; None of one that is none."""
    known, name = registry.entries("metric"), metric.removesuffix(", lower-cased")
    short = known.get(name.partition(" ")[0])
    return known.get(name) or (short if short and short.called else None)


def _entry(metric: str) -> Any:
    """The entry of a metric of text, or of one of labels."""
    return entry_of(metric) or registry.entries("label_metric").get(metric)


def higher_is_better(metric: str) -> bool:
    """Whether a larger score is the better one, of any score by its name in tables; COMET's is."""
    found = _entry(metric)
    return found is None or found.higher_is_better


def decimals(metric: str) -> int | None:
    """How many decimals tables show of a metric; None of one that has no entry."""
    found = _entry(metric)
    return found.decimals if found else None
