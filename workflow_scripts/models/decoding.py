"""decoding: translates a test set with a finetuned model, with beam search.

CTranslate2 decodes by default (several times faster than `generate` on a CPU); Hugging Face's
`generate` is the configured alternative and the check.
"""

from __future__ import annotations

import contextlib
import copy
import ctypes
import json
import math
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

import torch

from workflow_scripts.device import pick_device
from workflow_scripts.limits import Natural, Positive
from workflow_scripts.models.families import longest_output, longest_row
from workflow_scripts.models.search import Hypothesis, beam_search
from workflow_scripts.models.sga import FILE
from workflow_scripts.models.tokenisation import Codec, ids_needed, load_codec
from workflow_scripts.stage import InputError, atomic, run, write_json
from workflow_scripts.text.files import read_lines
from workflow_scripts.text.words import is_blank


@dataclass
class Decoding:
    """Settings of beam search. The defaults are those of Zan et al.: the beam by their paper, the longest hypothesis by their code."""

    beam_size: Positive = 5
    """Hypotheses that are kept."""
    length_penalty: float = 1.0
    """Exponent of the length by which a hypothesis' score is divided."""
    min_length: Natural = 0
    """Shortest hypothesis in pieces."""
    max_length: Positive = 200
    """Longest hypothesis in pieces."""
    batch_tokens: Positive = 4_096
    """Source tokens that are decoded at once."""
    engine: Literal["ctranslate2", "huggingface"] = "ctranslate2"
    """What decodes. A model of a family that CTranslate2 cannot convert is decoded by `huggingface` all the same, which the log says."""
    compute_type: Literal["auto", "int8", "int8_float16", "int8_bfloat16", "int16", "float16", "bfloat16", "float32"] = "auto"
    """CTranslate2's. `auto` is float32 on a CPU and float16 on a GPU that can;
    int8 is faster on a CPU but moves BLEU by more than many a result (docs/performance.md). Hugging Face's
    `generate` and models that write at once take float16, bfloat16 and float32, and the others for `auto`."""
    iterations: Natural | None = None
    """Of a model that writes at once (SGA): how often a text is denoised at most; as it was trained with by default."""
    alignment_iterations: Positive | None = None
    """Of one whose alignment is mask-predict's: how often the alignment is guessed; as it was trained with by default."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Where to decode."""


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
    settings: Decoding = Decoding(),
) -> None:
    """Translate the lines of `source`: one hypothesis a line, or all that the beam holds, with their scores.

    `report` is a JSON file that says which lines were longer than the model reads, so that their ends were lost.
    `n_best` is a table of line number (from 1), rank, score (log-probability by length) and hypothesis. In the text
    of `documents`, `</s>` stands between sentences. A source language that the model has no tag for is read under that of `learnt_from`, if
    it is named. With a file of `prompts`, `model` is the backbone that they were trained with, which
    writes texts at once (SGA); the folder of a trained model has its own.
    Raises `InputError` when neither output is asked for, or one cannot be written, the source is empty, the model writes no text, the
    device cannot compute as wanted, or CTranslate2 finds no library for it.
    """
    if not (hypotheses or n_best):
        raise InputError("give --hypotheses, --n-best or both")
    if n_best and (prompts or (model / FILE).exists()):
        raise InputError(f"{model}: writes one text for each line, without a score, so there is no n-best list; leave --n-best out")
    if not (lines := list(read_lines(source))):
        raise InputError(f"{source}: is empty, there is nothing to translate")
    if outputs := [path for path in (hypotheses, n_best) if path and (path.is_dir() or path.resolve() == source.resolve())]:
        raise InputError(f"{outputs[0]}: is {'a folder' if outputs[0].is_dir() else 'the source'}; name a file that is to be written")
    codec = load_codec(model, documents)
    if not (codec.form.decoder or prompts or (model / FILE).exists()):
        raise InputError(f"{model}: is an encoder ({codec.form.title}), which writes no text; name a model that has learnt to write")
    codec.fallback = learnt_from
    with translator(model, codec, threads, settings, prompts) as translate:
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


class Translate:
    """What translates: lines, their language and that to write in, and how many hypotheses are wanted → the best ones of each line.

    A line without text stays empty: a model would make some up. One that is longer than the model can read is cut, which `about` has and
    `warn` says.
    """

    def __init__(self, codec: Codec, longest: int, write: Callable[[list[list[int]], tuple[str, str], int], list[list[Hypothesis]]]):
        self._codec, self._longest, self._write = codec, longest, write
        self.about: dict[str, Any] = {}
        """Of the last lines: how many pieces the model reads (`longest`), and the numbers, from 1, of lines that have more (`too_long`)."""

    def __call__(self, lines: list[str], languages: tuple[str, str], n_best: int) -> list[list[Hypothesis]]:
        """The best hypotheses of each line."""
        numbers = [number for number, line in enumerate(lines, 1) if not is_blank(line)]
        pieces = self._codec.pieces([lines[number - 1] for number in numbers], sys.maxsize)
        kept = [self._codec.within(ids, self._longest) for ids in pieces]
        cut = [number for number, some, whole in zip(numbers, kept, pieces, strict=True) if len(some) < len(whole)]
        self.about = {"longest": self._longest, "too_long": cut}
        written = iter(self._write(self._codec.framed(kept, languages[0]), languages, n_best) if kept else [])
        return [[Hypothesis(0.0, "")] if is_blank(line) else next(written) for line in lines]

    def warn(self, what: Path | str) -> None:
        """Say which of the last lines, those of `what`, were cut, if any were."""
        if cut := self.about.get("too_long"):
            numbers = ", ".join(map(str, cut[:10])) + (", …" if len(cut) > 10 else "")
            said = f"{len(cut):,} line(s) have more than the {self._longest:,} pieces that the model reads, and their ends are lost"
            print(f"WARNING: {what}: {said}: {numbers}; split them into sentences", flush=True)


def translator(
    model: Path, codec: Codec, threads: int, settings: Decoding, prompts: Path | None = None
) -> AbstractContextManager[Translate]:
    """What translates with a model, which is loaded once: all at once if the model is of that form, else by the engine of the settings.

    The model writes at most what it can, whatever the settings' `max_length`.
    From now on PyTorch computes with so many `threads`; 0 leaves it those that it has.
    """
    if threads:
        torch.set_num_threads(threads)
    if prompts or (model / FILE).exists():
        return with_generator(model, codec, settings, prompts)
    return {"ctranslate2": with_ctranslate2, "huggingface": with_huggingface}[engine_for(codec, settings)](model, codec, threads, settings)


def engine_for(codec: Codec, settings: Decoding) -> str:
    """What decodes a model: the engine of the settings, or the first one of the family where that cannot."""
    able = codec.form.engines
    if settings.engine in able:
        return settings.engine
    print(f"note: decoding.engine {settings.engine} does not know {codec.form.label}; {able[0]} decodes", flush=True)
    return able[0]


def computed_in(settings: Decoding, device: torch.device) -> torch.dtype:
    """The type that a model of transformers computes in: the one that is named, otherwise float16 on a GPU and float32 on a CPU."""
    named = {"float16": torch.float16, "bfloat16": torch.bfloat16, "float32": torch.float32}
    return named.get(settings.compute_type, torch.float16 if device.type == "cuda" else torch.float32)


@contextlib.contextmanager
def with_generator(model: Path, codec: Codec, settings: Decoding, prompts: Path | None = None) -> Iterator[Translate]:
    """Translate by CTC or SGA. There is one text for each line, without a score; how often lines were denoised is told at the end.

    Of the settings, those of the beam, `length_penalty` and `min_length` mean nothing here.
    """
    from workflow_scripts.models.prompt_files import load_generator
    from workflow_scripts.models.refining import write

    device = pick_device(settings.device)
    generator = load_generator(model, codec, prompts).to(device, dtype=computed_in(settings, device))
    often = {"iterations": settings.iterations, "alignment_iterations": settings.alignment_iterations}
    denoised = Counter[int]()
    longest = min(settings.max_length, longest_output(generator.config))

    def translate(rows: list[list[int]], languages: tuple[str, str], n_best: int) -> list[list[Hypothesis]]:
        written = write(generator, rows, codec.tokenizer.pad_token_id, settings.batch_tokens, longest=longest, **often)
        denoised.update(each.iterations for each in written)
        return [[Hypothesis(math.nan, text)] for text in codec.decode([each.ids for each in written])]

    yield Translate(codec, generator.longest_source, translate)
    print({"lines by how often they were denoised": dict(sorted(denoised.items()))})


@contextlib.contextmanager
def with_huggingface(model: Path, codec: Codec, threads: int, settings: Decoding) -> Iterator[Translate]:
    """Translate by Hugging Face's `generate`."""
    from workflow_scripts.models.networks import class_of, read_weights, without_filler

    device = pick_device(settings.device)
    network = read_weights(class_of(codec.form, "text"), model, new_head=False, dtype=computed_in(settings, device)).to(device)
    without_filler(network, codec.tokenizer)
    lengths: dict[str, Any] = {
        "max_length": settings.max_length,
        "min_length": settings.min_length,
        "length_penalty": settings.length_penalty,
    }

    def translate(rows: list[list[int]], languages: tuple[str, str], n_best: int) -> list[list[Hypothesis]]:
        return beam_search(network, codec, rows, languages[1], settings.beam_size, n_best, tokens=settings.batch_tokens, **lengths)

    yield Translate(codec, longest_row(network.config), translate)


@contextlib.contextmanager
def with_ctranslate2(model: Path, codec: Codec, threads: int, settings: Decoding) -> Iterator[Translate]:
    """Translate by CTranslate2, from a converted copy that lives as long as the context."""
    import ctranslate2
    from transformers import AutoConfig

    device = pick_device(settings.device).type
    if device == "cuda" and (reason := why_not_on_gpu()):
        raise InputError(reason)
    compute_type = settings.compute_type
    if compute_type == "auto":
        halves = device == "cuda" and "float16" in ctranslate2.get_supported_compute_types(device)
        compute_type = "float16" if halves else "float32"
    tokenizer, config = codec.tokenizer, AutoConfig.from_pretrained(model)
    with tempfile.TemporaryDirectory(prefix="crossgap-") as folder:
        converted = convert(model, codec, Path(folder) / "model")
        # one thread per batch is faster than several threads on one batch; the weights are shared
        parallel = {"inter_threads": threads or torch.get_num_threads(), "intra_threads": 1} if device == "cpu" else {}
        try:
            loaded = ctranslate2.Translator(str(converted), device=device, compute_type=compute_type, **parallel)
        except ValueError as error:
            raise InputError(f"decoding.compute_type {compute_type} on {device}: {error}; set it to auto") from None

        def translate(rows: list[list[int]], languages: tuple[str, str], n_best: int) -> list[list[Hypothesis]]:
            # a decoder that starts with another piece than a tag knows its language by its finetuning alone
            tag = [] if codec.form.starts_with else [tokenizer.convert_ids_to_tokens(codec.tag(languages[1]))]
            sources = [tokenizer.convert_ids_to_tokens(row) for row in rows]
            results = loaded.translate_batch(
                sources,
                target_prefix=[tag] * len(sources),
                suppress_sequences=[[piece] for piece in made_up_pieces(codec)] or None,
                max_input_length=0,  # the rows are as long as the model allows; by default all are cut to 1,024 pieces
                beam_size=settings.beam_size,
                length_penalty=settings.length_penalty,
                min_decoding_length=settings.min_length,
                max_decoding_length=min(settings.max_length, longest_output(config)),
                max_batch_size=settings.batch_tokens,
                batch_type="tokens",
                num_hypotheses=n_best,
                return_scores=n_best > 1,
            )
            flat = codec.decode([tokenizer.convert_tokens_to_ids(tokens) for result in results for tokens in result.hypotheses])
            scores = [score for result in results for score in (result.scores or [math.nan] * n_best)]
            ranked = [Hypothesis(score, text) for score, text in zip(scores, flat, strict=True)]
            return [ranked[start : start + n_best] for start in range(0, len(ranked), n_best)]

        yield Translate(codec, longest_row(config), translate)


def why_not_on_gpu() -> str:
    """Why CTranslate2 cannot decode on a GPU in this environment, with the way out; empty where it can. Needs no GPU itself.

    CTranslate2 opens CUDA 12's cuBLAS by its name at its first matrix product. A torch for CUDA 12 has loaded that library by then; one for
    CUDA 13 has not, so the library of the package nvidia-cublas-cu12 is loaded here.
    """
    with contextlib.suppress(OSError):
        ctypes.CDLL(_CUBLAS)
        return ""
    with contextlib.suppress(OSError, metadata.PackageNotFoundError):
        folder = metadata.distribution("nvidia-cublas-cu12").locate_file("nvidia/cublas/lib")
        for name in (_CUBLAS.replace("cublas", "cublasLt"), _CUBLAS):
            ctypes.CDLL(f"{folder}/{name}", ctypes.RTLD_GLOBAL)
        return ""
    return (
        f"decoding.engine ctranslate2 needs CUDA 12's {_CUBLAS} on a GPU, which torch {torch.__version__} does not bring; "
        "run `pip install nvidia-cublas-cu12`, or set engine: huggingface"
    )


_CUBLAS = "libcublas.so.12"


def made_up_pieces(codec: Codec) -> dict[str, int]:
    """Name and id of a made-up piece for each id that the tokenizer leaves out."""
    there = {*codec.tokenizer.get_vocab().values()}
    return {f"<made up {number}>": number for number in range(ids_needed(codec.tokenizer)) if number not in there}


def convert(model: Path, codec: Codec, folder: Path) -> Path:
    """The model in CTranslate2's format.

    The converter takes the network and the vocabulary as they are here: weights are checked, and embeddings without a piece are left out
    (`networks.without_filler`). It counts on a piece for each id; where a tokenizer leaves an id out, one is made up that is never written
    (`made_up_pieces`). Two entries of its `config.json` are set here: the decoder's first token, which is `</s>`, padding or, where a
    family's decoder starts with the tag alone, none, as the target prefix gives the tag; and a tokenizer
    without a start token (mBART-50's) would leave a null that CTranslate2 cannot read.
    """
    from ctranslate2.converters import TransformersConverter

    from workflow_scripts.models.networks import read_weights, without_filler

    tokenizer, extra = codec.tokenizer, made_up_pieces(codec)
    vocabulary = copy.copy(tokenizer)
    vocabulary.get_vocab = lambda: tokenizer.get_vocab() | extra
    vocabulary.num_madeup_words = 0  # M2M-100's own way to name rows without a piece

    class Converter(TransformersConverter):
        def load_model(self, model_class: Any, model_name_or_path: str, **settings: Any) -> Any:
            network = without_filler(read_weights(model_class, model_name_or_path, new_head=False, **settings), tokenizer)
            for name, value in codec.form.converted.items():
                setattr(network.config, name, value)
            return network

        def load_tokenizer(self, *_: Any, **__: Any) -> Any:
            return vocabulary

    Converter(str(model)).convert(str(folder), force=True)
    file = folder / "config.json"
    config = json.loads(file.read_text(encoding="utf-8"))
    config["bos_token"] = config.get("bos_token") or "<s>"
    first = codec.tokenizer.convert_ids_to_tokens(codec.start) if codec.start is not None else None
    config["decoder_start_token"] = codec.tokenizer.eos_token if codec.form.starts_with_end else first
    file.write_text(json.dumps(config), encoding="utf-8")
    return folder


if __name__ == "__main__":
    run(main)
