"""scores: BLEU, chrF, chrF++ and TER of translations, ROUGE of summaries, METEOR of other generated text, and metrics of plugins.

BLEU, chrF, chrF++ and TER are computed by sacreBLEU (Post 2018), with its signatures; ROUGE by rouge-score (see the module `rouge`), METEOR
by its authors' program or by our own count (see the module `meteor`). The
module `significance` tests differences between systems.
"""

import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import regex
from sacrebleu.metrics import BLEU, CHRF, TER
from sacrebleu.metrics.base import Metric, Signature

from workflow_scripts import registry
from workflow_scripts.entry_names import Named
from workflow_scripts.evidence.metric import register_metric
from workflow_scripts.number_types import Positive
from workflow_scripts.stage import InputError, in_one_line, noted, run, write_json
from workflow_scripts.storage import refused_file
from workflow_scripts.text.files import read_lines
from workflow_scripts.text.languages import language
from workflow_scripts.text.words import UNSPACED, is_blank

Tokenizer = Literal["13a", "intl", "char", "zh", "ja-mecab", "ko-mecab", "spm", "flores101", "flores200", "spBLEU-1K", "none"]
"""The tokenisers of sacreBLEU."""


@dataclass
class Scores:
    """Settings of the metrics and of their significance tests."""

    metrics: list[Annotated[str, Named("metric")]] = field(default_factory=lambda: ["BLEU", "chrF", "TER"])
    """Metrics to compute. BLEU is always among them, or ROUGE-L if there is any ROUGE. Default for summarisation: ROUGE-1, ROUGE-2,
    ROUGE-L; ROUGE-Lsum is ROUGE-L sentence by sentence. Default for questions, titles and stories: BLEU, ROUGE-L, METEOR."""
    meteor_jar: str | None = None
    """Path of METEOR 1.5's program, `meteor-1.5.jar`, with its `data` beside it; needs Java. Without it, METEOR is the version of 2005
    with exact and stem matches, and all tables name it differently."""
    lowercase: bool = False
    """Also compute scores on lower-cased text, as many papers on IWSLT do. They are not tested for significance."""
    tokenize: Tokenizer | None = None
    """sacreBLEU's tokeniser for BLEU. The default depends on the target language: zh, ja-mecab, ko-mecab, flores200, or else 13a."""
    test: Literal["bootstrap", "randomization"] = "bootstrap"
    """Test of significance: paired bootstrap resampling or paired approximate randomization."""
    samples: Positive = 1_000
    """Number of resamples (bootstrap) or trials (randomization, usually 10,000)."""
    correction: Literal["holm", "none"] = "holm"
    """Correction of p-values for multiple comparisons: over all arms and test sets of an experiment, separately by metric and seed."""


def main(
    hypotheses: Path, references: Path, output: Path, *, language: str, source: Path | None = None, settings: Scores = Scores()
) -> None:
    """Write the scores of one model on one test set.

    Hypotheses without text are counted, and of the `source`, if it is named, the lines without text, which stay empty.
    Metrics that cannot be computed do not stop the run; the output lists them under `failed`, with the reason.
    """
    wanted = metrics(language, settings)
    if settings.lowercase:
        wanted |= metrics(language, settings, lowercase=True)
    result: dict[str, dict] = {}
    failed: dict[str, str] = {}
    sentences, empty = 0, dict[str, int]()
    try:
        hypothesis, reference = parallel_lines(hypotheses, references)
        sentences = len(reference)
        counted = {"hypotheses": hypothesis, **({"sources": read_lines(source)} if source else {})}
        empty = {name: sum(map(is_blank, lines)) for name, lines in counted.items()}
    except InputError as error:
        wanted, failed = {}, dict.fromkeys(wanted, str(error))
    for name, make in wanted.items():
        with noted(failed, name):
            metric = make()
            value = metric.corpus_score(hypothesis, [reference])
            result[name] = {"value": value.score, "signature": str(metric.get_signature())}
    for name, reason in failed.items():
        print(f"{name} was not measured: {reason}", file=sys.stderr)
    write_json(output, {"sentences": sentences, "empty": empty, "metrics": result, "failed": failed, "settings": asdict(settings)})


def leading(settings: Scores) -> str:
    """The metric that is always computed and is shown in headlines and charts: BLEU or ROUGE-L."""
    return "ROUGE-L" if set(settings.metrics) & {*ROUGES, BY_SENTENCES} else "BLEU"


def metrics(code: str, settings: Scores, lowercase: bool = False) -> dict[str, Callable[[], Metric]]:
    """Metric name → constructor, for the target language `code`.

    With `lowercase`, these are the metrics that distinguish upper and lower case, for lower-cased text. Constructors are returned instead
    of metrics because making one can fail: the tokeniser flores200 is downloaded.
    """
    wanted = {*settings.metrics, leading(settings)}
    made: dict[str, Callable[[], Metric]] = {}
    for name, entry in registry.entries("metric").items():
        if name in wanted and (entry.cased or not lowercase):
            called = entry.called(code, settings) if entry.called else name
            made[f"{called}, lower-cased" if lowercase else called] = partial(entry.make, code, settings, lowercase)
    return made


class CharacterTER(TER):
    """TER that counts characters of scripts without spaces: sacreBLEU's `asian_support` separates Han alone, and leaves whole clauses of
    Thai as single words."""

    def _preprocess_segment(self, sent: str) -> str:
        return super()._preprocess_segment(_CHARACTERS.sub(r" \g<0> ", sent))

    def get_signature(self) -> Signature:
        """sacreBLEU's signature, which says that characters are counted."""
        signature = super().get_signature()
        signature.update("tok", "char")
        return signature


# a letter with its marks: Thai and its like write vowels above, below and beside it
_CHARACTERS = regex.compile(rf"(?=[{UNSPACED}\p{{Tibetan}}])\X")

ROUGES = ("ROUGE-1", "ROUGE-2", "ROUGE-L")
"""The metrics for summaries; all of them ignore case."""
BY_SENTENCES = "ROUGE-Lsum"


def parallel_lines(hypotheses: Path, references: Path) -> tuple[list[str], list[str]]:
    """Read both files as lists of lines. Raises `InputError` if they differ in length or are empty."""
    sides = [list(read_lines(path)) for path in (hypotheses, references)]
    if len(sides[0]) != len(sides[1]):
        raise InputError(f"{hypotheses} has {len(sides[0])} lines, {references} {len(sides[1])}; decode again")
    if not sides[0]:
        raise InputError(f"{hypotheses} and {references} are empty; decode again, with a test set that has sentences")
    return sides[0], sides[1]


# ---------------------------------------------------------------------------------------------
# entries


def _rouge(name: str, code: str, settings: Scores, lowercase: bool) -> Metric:
    from workflow_scripts.evidence.rouge import Rouge

    return Rouge(name, code)


def _meteor(code: str, settings: Scores, lowercase: bool) -> Metric:
    from workflow_scripts.evidence.meteor import Meteor, MeteorJar

    return MeteorJar(code, settings.meteor_jar) if settings.meteor_jar else Meteor(code)


def _meteor_name(code: str, settings: Scores) -> str:
    from workflow_scripts.evidence.meteor import meteor_name

    return meteor_name(code, settings.meteor_jar)


def _bleu(code: str, settings: Scores, lowercase: bool) -> Metric:
    """BLEU. Its tokeniser may be a file that sacreBLEU downloads when it is first used, to the folder that the variable SACREBLEU names."""
    from sacrebleu.tokenizers.tokenizer_spm import SACREBLEU_DIR, SPM_MODELS

    tokenize = _bleu_tokenizer(code, settings)
    try:
        return BLEU(tokenize=tokenize, lowercase=lowercase)
    except (Exception, SystemExit) as error:
        if tokenize not in SPM_MODELS:
            raise
        if isinstance(error, OSError) and (said := refused_file(error)):
            raise InputError(f"BLEU's tokeniser {tokenize}: {said}") from None
        url = SPM_MODELS[tokenize]["url"]
        place = Path(SACREBLEU_DIR, "models", url.rpartition("/")[2])
        raise InputError(
            f"BLEU's tokeniser {tokenize} is not to be had ({in_one_line(error)}); download {url} where there is network, "
            f"and put it at {place}"
        ) from None


def _bleu_tokenizer(code: str, settings: Scores) -> str:
    return settings.tokenize or language(code).bleu_tokenizer


def _chrf(code: str, settings: Scores, lowercase: bool, word_order: int = 0) -> Metric:
    return CHRF(lowercase=lowercase, word_order=word_order)


def _ter(code: str, settings: Scores, lowercase: bool) -> Metric:
    written = language(code)
    # Tibetan has marks between syllables, and blanks between clauses alone
    by_words = written.spaced and written.script != "Tibetan"
    return TER() if by_words else CharacterTER(normalized=True, asian_support=True)


for rouge in (*ROUGES, BY_SENTENCES):
    register_metric(rouge, partial(_rouge, rouge), source="Lin 2004")
register_metric("METEOR", _meteor, called=_meteor_name, source="Denkowski and Lavie 2014; Banerjee and Lavie 2005")
register_metric(
    "BLEU",
    _bleu,
    cased=True,
    fetches=lambda code, settings: f"tokeniser {_bleu_tokenizer(code, settings)}",
    source="Papineni et al. 2002; Post 2018",
)
register_metric("chrF", _chrf, cased=True, source="Popović 2015")
register_metric("chrF++", partial(_chrf, word_order=2), cased=True, source="Popović 2017")
register_metric("TER", _ter, higher_is_better=False, source="Snover et al. 2006")


if __name__ == "__main__":
    run(main)
