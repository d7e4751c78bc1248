"""decoding: translates a test set with a finetuned model, by an engine (`engines`), or as its generator writes."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import torch

from workflow_scripts import registry
from workflow_scripts.entry_names import Named
from workflow_scripts.models.family import Family
from workflow_scripts.models.reading import unknown_in
from workflow_scripts.models.recognition import UNLIMITED, longest_output, longest_row
from workflow_scripts.models.search import Hypothesis
from workflow_scripts.models.tokenisation import Codec, load_codec
from workflow_scripts.number_types import Natural, Positive
from workflow_scripts.stage import InputError, atomic, read_json, run, write_json
from workflow_scripts.storage import check_writable
from workflow_scripts.text.files import packing, read_lines
from workflow_scripts.text.words import is_blank


@dataclass
class Decoding:
    """Settings of beam search, or of another engine.

    The defaults are those of Zan et al.: the beam by their paper, the longest hypothesis by their code.
    """

    beam_size: Positive = 5
    """Number of hypotheses in the beam."""
    length_penalty: float = 1.0
    """Exponent of the length in length normalisation. Each hypothesis' score is divided by its length to this power."""
    min_length: Natural = 0
    """Minimum length of a hypothesis, in pieces."""
    max_length: Positive = 200
    """Maximum length of a hypothesis, in pieces."""
    batch_tokens: Positive = 4_096
    """Source tokens per batch."""
    engine: Annotated[str, Named("engine")] = "ctranslate2"
    """Program that decodes. If it does not know a network, an engine that does decodes instead, and the log says so. Prompts that are too
    long for CTranslate2 are left to `huggingface`."""
    engine_settings: dict[str, Any] = field(default_factory=dict)
    """Settings of a plugin's engine, if it has any."""
    compute_type: Literal["auto", "int8", "int8_float16", "int8_bfloat16", "int16", "float16", "bfloat16", "float32"] = "auto"
    """Number format of the weights in CTranslate2. `auto` is float16 on a GPU that supports it, and float32 on a CPU and for T5's kin. In
    float16 these run over. int8 is faster on a CPU, but changes BLEU by more than many an effect (docs/performance.md). Hugging Face's
    `generate` and non-autoregressive models take float16, bfloat16 and float32; other values count as `auto`."""
    iterations: Natural | None = None
    """Maximum number of denoising iterations of a non-autoregressive model (SGA). By default the number used in training."""
    alignment_iterations: Positive | None = None
    """Number of times mask-predict guesses the alignment (SGA). By default the number used in training."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Device for decoding; `auto` takes a GPU if there is one."""


def main(
    model: Path,
    source: Path,
    hypotheses: Path | None = None,
    *,
    languages: tuple[str, str],
    n_best: Path | None = None,
    report: Path | None = None,
    prompts: Path | None = None,
    documents: bool = False,
    learnt_from: str = "",
    threads: int = 0,
    seed: int = 1,
    settings: Decoding = Decoding(),
) -> None:
    """Translate the lines of `source`: one hypothesis a line, or all that the beam holds, with their scores.

    `report` is a JSON file that says which lines were longer than the model reads, so that their ends were lost, and what share of the
    source's pieces its vocabulary lacks.
    `n_best` is a table of line number (from 1), rank, score (log-probability by length) and hypothesis. In the text
    of `documents`, `</s>` stands between sentences. A source language without a tag is read under that of `learnt_from`, if
    it is named. What an engine draws comes from the `seed`. With a file of `prompts`, `model` is the backbone that they were trained
    with, which writes texts at once (SGA); the folder of a trained model has its own.
    Raises `InputError` for outputs that are missing, an empty source, a model that writes no text, and a generator that is not registered;
    also where the device cannot compute as wanted, or an engine lacks a library. Raises `OSError` for outputs that cannot be written.
    """
    if not (hypotheses or n_best):
        raise InputError("give --hypotheses, --n-best or both")
    generator = generator_of(model, prompts)
    own = generator and generator.write
    if n_best and (own or not registry.entry("engine", settings.engine).ranks):
        who = str(model) if own else f"decoding.engine {settings.engine}"
        raise InputError(f"{who}: writes one text for each line, without a score, so there is no n-best list; leave --n-best out")
    if not (lines := list(read_lines(source))):
        raise InputError(f"{source}: is empty, there is nothing to translate")
    files = [path for path in (hypotheses, n_best, report) if path]
    if outputs := [path for path in files if path.is_dir() or path.resolve() == source.resolve()]:
        raise InputError(f"{outputs[0]}: is {'a folder' if outputs[0].is_dir() else 'the source'}; name a file that is to be written")
    if packed := [path for path in (hypotheses, n_best) if path and packing(path)]:
        raise InputError(f"{packed[0]}: is written as plain text; take {packing(packed[0])} off its name")
    for path in files:
        check_writable(path)  # before hours of translating, not after them
    codec = load_codec(model, documents)
    if not (codec.form.writes or own):
        raise InputError(f"{model}: is an encoder ({codec.form.label}), which writes no text; name a model that has learnt to write")
    if not own:
        codec.untagged([languages[1]], only_reads=False)  # what is written needs a tag of its own
    codec.fallback = learnt_from
    with translator(model, codec, threads, settings, prompts, seed) as translate:
        found = translate(lines, languages, settings.beam_size if n_best else 1)
        translate.warn(source)
    if hypotheses:
        with atomic(hypotheses) as file:
            file.writelines(f"{one_line(ranked[0].text)}\n" for ranked in found)
    if n_best:
        with atomic(n_best) as file:
            file.write("line\trank\tscore\thypothesis\n")
            for line, ranked in enumerate(found, 1):
                file.writelines(f"{line}\t{rank}\t{one.score:.4f}\t{one_line(one.text)}\n" for rank, one in enumerate(ranked, 1))
    empty = sum(map(is_blank, lines))
    if report:
        write_json(report, {"sentences": len(found), "empty_sources": empty, **translate.about, "settings": asdict(settings)})
    print({"sentences": len(found), "empty_sources": empty, **asdict(settings)})


def one_line(text: str) -> str:
    """An output as a line of a file."""
    return " ".join(text.split())


def longest_source(codec: Codec, config: Any, settings: Decoding) -> int:
    """The longest source that a model of this configuration can read, in pieces.

    A decoder has the prompt and the answer in one row. Raises `InputError` where an answer leaves no room for a source.
    """
    positions = longest_row(config)
    if not codec.form.causal or positions == UNLIMITED:
        return positions
    frame = codec.frame(("en", "en"))
    longest = positions - settings.max_length - len(frame.prompt([])) - SPARE
    if longest < SPARE:
        said = f"an answer of {settings.max_length} pieces leaves no room for a source in the {positions} positions of the model"
        if shown := len(codec.templates.examples):
            raise InputError(f"decoding.max_length: behind {shown} examples, {said}; show fewer (`shots`), or lower it")
        raise InputError(f"decoding.max_length: {said}; lower it")
    return longest


def longest_text(config: Any, settings: Decoding) -> int:
    """The most pieces of a text that a model of this configuration writes. Raises `InputError` where it must have more (`min_length`)."""
    longest = min(settings.max_length, longest_output(config))
    if settings.min_length > longest:
        raise InputError(f"decoding.min_length: {settings.min_length} is more than the {longest} pieces that a text may have; lower it")
    return longest


SPARE = 16
"""Pieces by which the names of languages in a prompt may differ, and the shortest source that there is room for."""


class Translate:
    """What translates: lines, their language and that to write in, and how many hypotheses are wanted → the best ones of each line.

    A line without text stays empty: a model would make some up. One that is longer than the model can read is cut, which `about` has and
    `warn` says.
    """

    def __init__(
        self,
        codec: Codec,
        longest: int,
        write: Callable[[list[list[int]], tuple[str, str], int], list[list[Hypothesis]]],
        said: dict[str, Any] | None = None,
    ):
        self._codec, self._longest, self._write, self._said = codec, longest, write, said or {}
        self.about: dict[str, Any] = {}
        """Of the last lines: how many pieces the model reads (`longest`), the numbers, from 1, of lines that have more (`too_long`), and
        what share of the pieces the vocabulary lacks (`unknown`, by language, with an example); the numbers of lines whose translation has
        the most pieces that one may have, and no end (`unfinished`); also what the engine has `said` of them."""

    def __call__(self, lines: list[str], languages: tuple[str, str], n_best: int) -> list[list[Hypothesis]]:
        """The best hypotheses of each line."""
        numbers = [number for number, line in enumerate(lines, 1) if not is_blank(line)]
        pieces = self._codec.pieces(self._codec.behind_blank([lines[number - 1] for number in numbers]))
        kept = [self._codec.within(ids, self._longest) for ids in pieces]
        cut = [number for number, some, whole in zip(numbers, kept, pieces, strict=True) if len(some) < len(whole)]
        lacking = unknown_in(self._codec, lines)
        unknown = {languages[0]: {"share": lacking.share, "word": lacking.word}}
        self.about = {"longest": self._longest, "too_long": cut, "unknown": unknown}
        written = iter(self._write(self._codec.asked(kept, languages), languages, n_best) if kept else [])
        self.about |= self._said
        found = [[Hypothesis(0.0, "")] if is_blank(line) else next(written) for line in lines]
        self.about["unfinished"] = [number for number, ranked in enumerate(found, 1) if not ranked[0].ended]
        return found

    def warn(self, what: Path | str) -> None:
        """Say which of the last lines, those of `what`, were cut, and which translations were, if any were."""
        if cut := self.about.get("too_long"):
            said = f"{len(cut):,} line(s) have more than the {self._longest:,} pieces that the model reads, and their ends are lost"
            print(f"WARNING: {what}: {said}: {_first_of(cut)}; split them into sentences", flush=True)
        if cut := self.about.get("unfinished"):
            said = f"the translations of {len(cut):,} line(s) have as many pieces as they may have, and no end"
            print(f"WARNING: {what}: {said}: {_first_of(cut)}; raise decoding.max_length, or split these lines", flush=True)


def _first_of(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers[:10])) + (", …" if len(numbers) > 10 else "")


def translator(
    model: Path, codec: Codec, threads: int, settings: Decoding, prompts: Path | None = None, seed: int = 1
) -> AbstractContextManager[Translate]:
    """What translates with a model, which is loaded once: as its generator writes, if that has a way of its own, else by the engine.

    The model writes at most what it can, whatever the settings' `max_length`. Raises `InputError` where `min_length` is more than that.
    From now on PyTorch computes with so many `threads`; 0 leaves it those that it has.
    """
    if threads:
        torch.set_num_threads(threads)
    generator = generator_of(model, prompts)
    if generator and generator.write:
        return generator.write(model, codec, settings, prompts, seed)
    return registry.entry("engine", engine_for(codec, settings)).open(model, codec, threads, settings, seed)


def engine_for(codec: Codec, settings: Decoding) -> str:
    """What decodes a model: the engine of the settings, or the first one of the family where ours cannot."""
    able = codec.form.engines
    if not able or settings.engine in able or registry.entry("engine", settings.engine).plugin:
        return settings.engine
    print(f"note: decoding.engine {settings.engine} does not know {codec.form.label}; {able[0]} decodes", flush=True)
    return able[0]


MARK = "generator.json"
"""The file by which the folder of a model names the generator that it was trained with, where its weights do not tell."""


def generator_of(model: Path, prompts: Path | None = None) -> Any:
    """The entry of the generator that a model was trained with, as its folder says; None of a model that writes piece by piece.

    Raises `InputError` where a plugin has it that was not loaded.
    """
    if (mark := model / MARK).exists():
        said = read_json(mark)
        try:
            return registry.entry("generator", said["generator"])
        except InputError as error:
            raise InputError(f"{model}: was trained with a generator of the plugin {said['plugin']}: {error}") from None
    known = registry.entries("generator").values()
    return next((one for one in known if one.file and (prompts or (model / one.file).exists())), None)


def computed_in(settings: Decoding, device: torch.device, form: Family) -> torch.dtype:
    """The type that a model of transformers computes in: the one that is named, otherwise float32 on a CPU and 16 bits on a GPU.

    These are float16, in which T5's kin and some decoders, such as Gemma 3, run over: bfloat16 for them, where the GPU has it.
    """
    named = {"float16": torch.float16, "bfloat16": torch.bfloat16, "float32": torch.float32}
    usual = torch.float32
    if device.type == "cuda":
        usual = torch.float16
        if form.causal or not form.in_half:
            usual = torch.bfloat16 if torch.cuda.is_bf16_supported(including_emulation=False) else torch.float32
    return named.get(settings.compute_type, usual)


if __name__ == "__main__":
    run(main)
