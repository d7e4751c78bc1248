"""speed: how many sentences a second the arms of an experiment write, and how good these are.

All arms are measured one after the other in one job, with the same sentences on the same device, by as many threads. As in the paper
of SGA (Wu et al. 2023, section 5.1) the sentences go through one at a time, and loading a model does not count. In addition they go through
in batches. An arm that writes piece by piece is measured with several widths of the beam, by Hugging Face's `generate` with its cache and
by CTranslate2. The latter is faster, and the paper does not have it. An arm that writes at once is measured with several numbers of
denoising iterations, of which 0 is its alignment alone. Where mask-predict guesses the alignment, there are several numbers of guesses
(Table 4).
"""

import itertools
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast

from workflow_scripts import registry
from workflow_scripts.device import chip, pick_device
from workflow_scripts.evidence.scores import Scores
from workflow_scripts.evidence.scores import metrics as metrics_of
from workflow_scripts.models.decoding import Decoding, Translate, generator_of, translator
from workflow_scripts.models.tokenisation import load_codec
from workflow_scripts.number_types import Natural, Positive
from workflow_scripts.stage import InputError, noted, run, write_json
from workflow_scripts.text.files import read_lines

METRICS = ("BLEU", "chrF")
"""What is measured of what was written, where nothing else is asked for."""


@dataclass
class Speed:
    """Settings of the measurement of decoding speed."""

    sentences: Positive = 200
    """Maximum number of sentences, from the start of the first test set."""
    repeats: Positive = 3
    """How many times each way of decoding is timed. The mean counts, as in the paper."""
    beams: list[Positive] = field(default_factory=lambda: [1, 5])
    """Beam sizes to measure, for autoregressive arms."""
    iterations: list[Natural] = field(default_factory=lambda: [0, 2, 4, 8])
    """Maximum numbers of denoising iterations to measure, for non-autoregressive arms. Denoising ends early when nothing changes."""
    alignment_iterations: list[Positive] = field(default_factory=list)
    """Numbers of alignment iterations to measure, for arms with mask-predict. By default the number in `sga`."""
    batch_tokens: Positive = 4_096
    """Source tokens per batch, when sentences are decoded in batches."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Device for measuring; `auto` takes a GPU if there is one."""


class Way(NamedTuple):
    """One way to have an arm write."""

    name: str
    """How the report calls it."""
    settings: Decoding
    missing: str = ""
    """Why it cannot be timed here; empty where it can."""


def main(
    output: Path,
    models: tuple[Path, ...],
    source: Path,
    target: Path,
    *,
    arms: tuple[str, ...],
    languages: tuple[str, str],
    documents: bool = False,
    metrics: tuple[str, ...] = METRICS,
    tokenize: str = "",
    meteor_jar: str = "",
    max_length: int = 200,
    min_length: int = 0,
    length_penalty: float = 1.0,
    threads: int = 1,
    settings: Speed = Speed(),
) -> None:
    """Write a row for each arm, way and kind of batch: sentences per second, and the `metrics` of what was written.

    `models` are those of the `arms`, in the same order. Of `documents`, `</s>` stands between sentences. `metrics`, `tokenize` and
    `meteor_jar` are as in `scores`. `max_length`, `min_length` and `length_penalty` are those of the experiment's decoding. A metric that
    cannot be computed is None in each row, and under `failed` with the reason. Ways that cannot be timed are under `not_timed`, by arm,
    with the reason. Raises `InputError` where there is no sentence.
    """
    lines, references = (list(itertools.islice(read_lines(path), settings.sentences)) for path in (source, target))
    if not lines:
        raise InputError(f"{source}: is empty, there is nothing to write")
    measures, failed = measured(languages[1], Scores(cast(Any, [*metrics]), meteor_jar or None, tokenize=cast(Any, tokenize or None)))
    wanted = Decoding(max_length=max_length, min_length=min_length, length_penalty=length_penalty)
    rows: list[dict[str, Any]] = []
    not_timed: dict[str, dict[str, str]] = {}
    for arm, model in zip(arms, models, strict=True):
        codec = load_codec(model, documents)
        for way in ways(model, settings, wanted):
            if way.missing:
                print(f"note: {arm}: {way.name} is not timed: {way.missing}", flush=True)
                not_timed.setdefault(arm, {})[way.name] = way.missing
                continue
            with translator(model, codec, threads, way.settings) as translate:
                # what is compiled or allocated at first does not count; a decoder's copy is checked by the longest line
                translate([*lines[:2], max(lines, key=len)], languages, 1)
                if translate.about.get("by_generate"):
                    print(f"note: {arm}: {way.name} leaves sentences to generate, so it is not timed", flush=True)
                    not_timed.setdefault(arm, {})[way.name] = "it leaves sentences to generate"
                    continue
                for batched in (False, True):
                    portions = [lines] if batched else [[line] for line in lines]
                    written, taken = timed(translate, portions, languages, settings.repeats)
                    row: dict[str, Any] = {"arm": arm, "way": way.name, "batched": batched}
                    row["sentences_per_second"] = len(lines) * len(taken) / sum(taken)
                    for name, measure in measures.items():
                        with noted(failed, name):
                            row[name] = measure.corpus_score(written, [references]).score
                    rows.append({**row, "seconds": [round(seconds, 4) for seconds in taken]})
                    print(row, flush=True)
    for name, reason in failed.items():
        print(f"{name} was not measured: {reason}", file=sys.stderr)
    rows = [row | dict.fromkeys(failed) for row in rows]
    device = pick_device(settings.device)
    write_json(
        output,
        {
            "rows": rows,
            "sentences": len(lines),
            "text": str(source),
            "device": chip(device),
            "threads": threads,
            "metrics": [*(measures | failed)],
            "failed": failed,
            "not_timed": not_timed,
            "settings": asdict(settings),
        },
    )


def timed(translate: Translate, portions: list[list[str]], languages: tuple[str, str], repeats: int) -> tuple[list[str], list[float]]:
    """What is written of all portions, one after the other, and the seconds that each of the `repeats` took."""
    taken = []
    for _ in range(repeats):
        begun = time.perf_counter()
        written = [ranked[0].text for some in portions for ranked in translate(some, languages, 1)]
        taken.append(time.perf_counter() - begun)
    return written, taken


def measured(code: str, settings: Scores) -> tuple[dict[str, Any], dict[str, str]]:
    """The metrics for the language `code`; and of those that cannot be made here, the reasons: a tokeniser may have to be downloaded."""
    measures: dict[str, Any] = {}
    failed: dict[str, str] = {}
    for name, make in metrics_of(code, settings).items():
        with noted(failed, name):  # without one metric there are still the others, and the time
            measures[name] = make()
    return measures, failed


def ways(model: Path, settings: Speed, decoding: Decoding) -> Iterator[Way]:
    """The ways in which the model in a folder can write, of lengths as in `decoding`."""
    common = replace(decoding, batch_tokens=settings.batch_tokens, device=settings.device)
    generator = generator_of(model)
    if generator and generator.write:
        found = generator.ways(model, settings) if generator.ways else [(generator.label, {})]
        yield from (Way(name, replace(common, **differs)) for name, differs in found)
        return
    on_gpu = pick_device(settings.device).type == "cuda"
    for engine in registry.entries("engine").values():
        if not engine.ranks:
            continue
        missing = (engine.missing() if engine.missing else "") or (engine.missing_on_gpu() if on_gpu and engine.missing_on_gpu else "")
        for beam in dict.fromkeys(settings.beams):
            yield Way(f"{engine.label}, beam {beam}", replace(common, engine=engine.name, beam_size=beam), missing)


if __name__ == "__main__":
    run(main)
