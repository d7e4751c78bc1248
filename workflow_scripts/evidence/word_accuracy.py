"""word_accuracy: measures how well words are translated, by their frequency in the training text.

As in Zan et al. (section V-B and Table VII), compare-mt (Neubig et al. 2019) counts in each sentence how many words of the
reference are in the hypothesis. Words with fewer than 100 occurrences in the training text are rare, words with 1,000 or
more are frequent. All of the corpus counts, also where finetuning reads only some of its pairs. All texts are divided
into words by sacreBLEU's tokeniser.
"""

import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from workflow_scripts.evidence.scores import Scores, Tokenizer, metrics, parallel_lines
from workflow_scripts.number_types import Positive
from workflow_scripts.stage import InputError, atomic, in_one_line, run, write_json
from workflow_scripts.text.files import read_lines

BUCKETS = ("low", "mid", "high")


@dataclass
class WordAccuracy:
    """Settings of the frequency buckets; the defaults are those of the paper."""

    low: Positive = 100
    """Words with fewer occurrences in the training text are in the bucket `low`."""
    high: Positive = 1_000
    """Words with at least this many occurrences are in the bucket `high`. Words between `low` and `high` are in `mid`."""
    tokenize: Tokenizer | None = None
    """sacreBLEU's tokeniser; the default depends on the target language."""


def count(training: Path, output: Path, *, language: str, settings: WordAccuracy = WordAccuracy()) -> None:
    """Count the words on the target side of the training text, and write a TSV of word and number, the most frequent first.

    If the language's tokeniser is not available, the file is empty; `measure` then reports the failure.
    """
    counts: Counter[str] = Counter()
    try:
        cut = tokenizer(language, settings)
    except Exception as error:  # sacreBLEU may have to download it
        print(f"no words are counted: {in_one_line(error)}", file=sys.stderr)
    else:
        counts.update(word for line in read_lines(training) for word in cut(line))
    with atomic(output) as file:
        file.writelines(f"{word}\t{number}\n" for word, number in sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def measure(
    hypotheses: Path, references: Path, frequencies: Path, output: Path, *, language: str, settings: WordAccuracy = WordAccuracy()
) -> None:
    """Write precision, recall and F-measure of each bucket, and of all words.

    `frequencies` is the file that `count` wrote. If there is a problem, such as hypotheses that are not aligned with the references, the
    output has the reason under `failed` instead of numbers. Raises `InputError` if `low` is not below `high`.
    """
    if settings.low >= settings.high:
        raise InputError(f"word_accuracy: low ({settings.low}) must be below high ({settings.high})")
    found, failed = {}, ""
    try:
        if not (counts := read_frequencies(frequencies)):
            raise InputError(f"{frequencies} has no words; its log says why, snakemake with --forcerun frequencies makes it again")
        sides = parallel_lines(hypotheses, references)
        cut = tokenizer(language, settings)
        hypothesis, reference = ([cut(line) for line in side] for side in sides)
        found = by_bucket(hypothesis, reference, counts, [settings.low, settings.high])
    except InputError as error:
        failed = str(error)
    except MemoryError:
        raise  # Snakemake tries again with more memory
    except Exception as error:  # an error in sacreBLEU or compare-mt must not prevent the rest of the report
        failed = in_one_line(error)
    write_json(output, {"buckets": found, "failed": failed, "settings": asdict(settings)})


def read_frequencies(path: Path) -> Counter[str]:
    """Word → number of occurrences, from the file that `count` wrote."""
    with open(path, encoding="utf-8", newline="\n") as file:
        return Counter({word: int(number) for word, number in (line.rstrip("\n").split("\t") for line in file)})


def tokenizer(language: str, settings: WordAccuracy) -> Callable[[str], list[str]]:
    """sacreBLEU's tokeniser of the target language, or the configured one."""
    bleu: Any = metrics(language, Scores(tokenize=settings.tokenize))["BLEU"]()
    return lambda line: bleu.tokenizer(line).split()


def by_bucket(hypothesis: list[list[str]], reference: list[list[str]], counts: Counter[str], cutoffs: list[int]) -> dict[str, dict]:
    """The measures of each bucket, and of all words together, counted by compare-mt.

    `matches` is the number of words in the hypotheses that are also in their reference; `hypothesis` and `reference` are the numbers of
    words on each side. Words of a hypothesis are assigned to buckets by their own frequency. `f` is None for a bucket of which the
    references have no word.
    """
    from compare_mt.bucketers import FreqWordBucketer

    bucketer = FreqWordBucketer(freq_counts=counts, bucket_cutoffs=cutoffs)
    statistics = bucketer.calc_statistics(reference, [hypothesis])[0][0]
    cells = {name: tuple(int(n) for n in row[:3]) for name, row in zip(BUCKETS, statistics, strict=True)}
    cells["all"] = tuple(sum(cell[i] for cell in cells.values()) for i in range(3))
    return {name: measures(*cell) for name, cell in cells.items()}


def measures(matches: int, reference: int, hypothesis: int) -> dict[str, float | int | None]:
    """Precision (of the hypotheses' words), recall (of the references') and their harmonic mean, from 0 to 1."""
    return {
        "matches": matches,
        "reference": reference,
        "hypothesis": hypothesis,
        "precision": matches / hypothesis if hypothesis else 0.0,
        "recall": matches / reference if reference else 0.0,
        "f": 2 * matches / (reference + hypothesis) if reference else None,
    }


if __name__ == "__main__":
    run({"count": count, "measure": measure})
