"""engines: the engines of ours: CTranslate2, several times faster than `generate` on a CPU, and Hugging Face's `generate`, its check."""

from __future__ import annotations

import contextlib
import copy
import ctypes
import json
import math
import tempfile
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import torch

from workflow_scripts.device import pick_device, without_gradients
from workflow_scripts.models.decoding import Decoding, Translate, longest_source, longest_text
from workflow_scripts.models.engine import load_to_decode, register_engine
from workflow_scripts.models.family import Family
from workflow_scripts.models.recognition import UNLIMITED, network_config
from workflow_scripts.models.search import Hypothesis, beam_search
from workflow_scripts.models.structure import attention_window
from workflow_scripts.models.templates import Templates
from workflow_scripts.models.tokenisation import Codec
from workflow_scripts.models.tokenizer import ids_needed
from workflow_scripts.stage import InputError, in_one_line

Write: TypeAlias = Callable[[list[list[int]], tuple[str, str], int], list[list[Hypothesis]]]
"""Encoded rows, their language and that to write in, and how many hypotheses are wanted → the best ones of each row."""


@contextlib.contextmanager
def with_huggingface(model: Path, codec: Codec, threads: int, settings: Decoding, seed: int) -> Iterator[Translate]:
    """Translate by Hugging Face's `generate`."""
    network = load_to_decode(model, codec, settings)
    yield Translate(codec, longest_source(codec, network.config, settings), generating(network, codec, settings))


def generating(network: Any, codec: Codec, settings: Decoding) -> Write:
    """What writes by `generate`."""
    lengths: dict[str, Any] = {
        "max_length": longest_text(network.config, settings),
        "min_length": settings.min_length,
        "length_penalty": settings.length_penalty,
    }

    def write(rows: list[list[int]], languages: tuple[str, str], n_best: int) -> list[list[Hypothesis]]:
        if network.dtype == torch.float16 and codec.form.causal and rows:
            refuse_what_runs_over(network, max(rows, key=len))
        return beam_search(network, codec, rows, languages[1], settings.beam_size, n_best, tokens=settings.batch_tokens, **lengths)

    return write


@without_gradients
def refuse_what_runs_over(network: Any, row: list[int]) -> None:
    """Raise `InputError` for a decoder whose scores behind a prompt are no numbers: it would write empty lines without a word."""
    if not network(torch.tensor([row], device=network.device)).logits[0, -1].isfinite().all():
        raise InputError(f"a {network.config.model_type} runs over in float16; set decoding.compute_type: auto")


@contextlib.contextmanager
def with_ctranslate2(model: Path, codec: Codec, threads: int, settings: Decoding, seed: int) -> Iterator[Translate]:
    """Translate by CTranslate2, from a copy that lives as long as the context (`ByCTranslate2`)."""
    if pick_device(settings.device).type == "cuda" and (reason := why_not_on_gpu()):
        raise InputError(reason)
    with tempfile.TemporaryDirectory(prefix="crossgap-") as folder:
        writer = ByCTranslate2(model, codec, Path(folder) / "model", threads, settings)
        yield Translate(codec, longest_source(codec, network_config(model), settings), writer.write, writer.about)


class ByCTranslate2:
    """Writes by a copy of a model in CTranslate2's format, which is made in `folder` when the first rows are there.

    `generate` writes instead where the network cannot be converted, or not quite right, and behind prompts that are longer than the window
    of its attention, for which CTranslate2 is wrong. `Translate.about` counts these rows (`by_generate`).
    """

    def __init__(self, model: Path, codec: Codec, folder: Path, threads: int, settings: Decoding):
        config = network_config(model)
        self.model, self.codec, self.folder, self.threads, self.settings = model, codec, folder, threads, settings
        self.window, self.longest_answer = attention_window(config) or UNLIMITED, longest_text(config, settings)
        self.copy: Opened | None = None
        self.generate: Write | None = None
        self.about = {"by_generate": 0}

    def write(self, rows: list[list[int]], languages: tuple[str, str], n_best: int) -> list[list[Hypothesis]]:
        """The best hypotheses of each row, as `Write` has it."""
        self._open_for(rows)
        reach = reach_of(self.copy, self.window, self.longest_answer)
        near, far = split_by_length(rows, reach)
        self.about["by_generate"] = len(far)
        if far and not self.generate:
            if reach:
                said = f"{len(far):,} of {len(rows):,} prompts have more than the {reach:,} pieces for which CTranslate2 is right"
                print(f"note: {self.model}: {said}; generate decodes them", flush=True)
            self.generate = generating(load_to_decode(self.model, self.codec, self.settings), self.codec, self.settings)
        found: dict[int, list[Hypothesis]] = {}
        for places, write in ((near, self.copy.write if self.copy else None), (far, self.generate)):
            if places and write:
                found |= zip(places, write([rows[place] for place in places], languages, n_best), strict=True)
        return [found[place] for place in range(len(rows))]

    def _open_for(self, rows: list[list[int]]) -> None:
        """Make the copy, or make it anew where a row is much longer than the longest with which it was compared."""
        longest = max((row for row in rows if len(row) <= self.window), key=len, default=[])
        if longest and (self.copy is None or len(longest) > 2 * self.copy.checked):
            self.copy = None  # there is room for one
            self.copy = open_converted(self.model, self.codec, self.folder, self.threads, self.settings, self.longest_answer, longest)


def reach_of(opened: Opened | None, window: int, answer: int) -> int:
    """How many pieces a prompt may have for CTranslate2 to be right, where attention has a `window` and an `answer` at most so many pieces.

    Without a window of its own a copy sees the first pieces still when the answer is long.
    """
    if not opened or opened.has_window:
        return window
    return max(window - answer, 0) if opened.write else 0


def split_by_length(rows: list[list[int]], reach: int) -> tuple[list[int], list[int]]:
    """The places of rows with at most `reach` pieces, and those of longer ones."""
    near = [place for place, row in enumerate(rows) if len(row) <= reach]
    return near, [place for place, row in enumerate(rows) if len(row) > reach]


class NotConverted(Exception):
    """CTranslate2 cannot convert a network. The message says why."""


class ConvertedDecoder(NamedTuple):
    """What is known of a decoder that was converted."""

    probes: list[Probe]
    """Prompts, and what the network made of them before it was converted."""
    ends: list[int]
    """The ids at which an answer ends (`Codec.ends`)."""
    has_window: bool
    """Whether the copy has a window of attention."""


def convert(model: Path, codec: Codec, folder: Path, longest: Sequence[int] = ()) -> ConvertedDecoder | None:
    """Write the model in CTranslate2's format; returns what is known of a decoder, which is to read prompts up to the `longest` one.

    Raises `NotConverted` for a network that CTranslate2 does not know, and `InputError` for one that cannot be read.

    The converter takes the network and the vocabulary as they are here: weights are checked, and embeddings without a piece are left out
    (`networks.without_filler`). It counts on a piece for each id; where a tokenizer leaves an id out, one is made up that is never written
    (`made_up_pieces`). Entries of its `config.json` are set here. One is the decoder's first token: `</s>`, or none where the decoders of
    a family start with the tag, which the target prefix gives. Others are special tokens that a tokenizer lacks (mBART-50's has no start, a
    byte-level one nothing unknown). They would leave a null that CTranslate2 cannot read.
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
            for name, value in codec.form.converted(network.config).items() if codec.form.converted else ():
                setattr(network.config, name, value)
            if codec.form.causal:
                self.probes, self.ends = probes_of(network, codec, longest), codec.ends(network)
            return network

        def load_tokenizer(self, *_: Any, **__: Any) -> Any:
            return vocabulary

        def _load(self) -> Any:
            spec = super()._load()
            self.has_window = any(name.endswith("sliding_window") for name in spec.variables())
            return spec

    converter = Converter(str(model))
    try:
        converter.convert(str(folder), force=True)
    except (InputError, OSError):
        raise
    except Exception as error:  # it raises whatever it stumbles over: KeyError of Phi 3, AttributeError of GPT-NeoX
        raise NotConverted(in_one_line(error)) from None
    file = folder / "config.json"
    config = json.loads(file.read_text(encoding="utf-8"))
    config["bos_token"] = config.get("bos_token") or "<s>"
    if codec.form.causal:
        config |= {name: config.get(name) or tokenizer.eos_token for name in ("unk_token", "eos_token")}
    else:
        first = tokenizer.convert_ids_to_tokens(codec.start) if codec.start is not None else None
        config["decoder_start_token"] = tokenizer.eos_token if codec.form.starts_with_end else first
    file.write_text(json.dumps(config), encoding="utf-8")
    return ConvertedDecoder(converter.probes, converter.ends, converter.has_window) if codec.form.causal else None


def made_up_pieces(codec: Codec) -> dict[str, int]:
    """Name and id of a made-up piece for each id that the tokenizer leaves out."""
    there = {*codec.tokenizer.get_vocab().values()}
    return {f"<made up {number}>": number for number in range(ids_needed(codec.tokenizer)) if number not in there}


class Opened(NamedTuple):
    """A converted model."""

    write: Write | None
    """None of a network that CTranslate2 cannot convert, or not quite right."""
    has_window: bool
    """Whether its attention has the window that the network's has, if any."""
    checked: int
    """The longest prompt with which it was compared, in pieces."""


def open_converted(model: Path, codec: Codec, folder: Path, threads: int, settings: Decoding, answer: int, longest: list[int]) -> Opened:
    """Convert a model and open it. An `answer` has at most so many pieces; a decoder must agree with its copy on the `longest` row.

    Raises `InputError` for a number format that the device does not have, and for whole numbers that are too coarse.
    """
    try:
        decoder = convert(model, codec, folder, longest)
    except NotConverted as error:
        print(f"note: {model}: CTranslate2 cannot convert it ({error}); generate decodes", flush=True)
        return Opened(None, False, UNLIMITED)
    converted, compute_type, differs = _open_in_a_right_format(folder, codec.form, decoder.probes if decoder else [], threads, settings)
    search = {
        "beam_size": settings.beam_size,
        "length_penalty": settings.length_penalty,
        "max_batch_size": settings.batch_tokens,
        "batch_type": "tokens",
        "suppress_sequences": [[piece] for piece in made_up_pieces(codec)] or None,
    }
    if not decoder:
        search |= {"min_decoding_length": settings.min_length, "max_decoding_length": answer}
        return Opened(partial(translated_by, converted, codec, search), True, UNLIMITED)
    if differs:
        if settings.compute_type.startswith("int") or settings.compute_type == "float16":
            raise InputError(f"{model}: in {compute_type} {differs}; set decoding.compute_type: auto")
        print(f"note: {model}: CTranslate2 does not convert it quite right (in {compute_type} {differs}); generate decodes", flush=True)
        return Opened(None, False, UNLIMITED)
    search |= {"min_length": settings.min_length, "max_length": answer, "end_token": decoder.ends}
    return Opened(partial(continued_by, converted, codec, search), decoder.has_window, max(len(each.pieces) for each in decoder.probes))


def _open_in_a_right_format(folder: Path, form: Family, probes: list[Probe], threads: int, settings: Decoding) -> tuple[Any, str, str]:
    """Open a converted model in the first number format in which it agrees with the `probes`, else in the last one.

    Returns it, its format, and how it differs (`disagreement`). Raises `InputError` as `open_converted` and `number_formats` do.
    """
    import ctranslate2

    device = pick_device(settings.device).type
    formats = number_formats(settings.compute_type, form, device == "cuda" and ctranslate2.get_supported_compute_types(device))
    # one thread per batch is faster than several threads on one batch; the weights are shared
    parallel = {"inter_threads": threads or torch.get_num_threads(), "intra_threads": 1} if device == "cpu" else {}
    opener = ctranslate2.Generator if form.causal else ctranslate2.Translator
    for compute_type in formats:
        try:
            converted = opener(str(folder), device=device, compute_type=compute_type, **parallel)
        except ValueError as error:
            raise InputError(f"decoding.compute_type {compute_type} on {device}: {error}; set it to auto") from None
        differs = disagreement(converted, probes)
        if not differs:
            break
    return converted, compute_type, differs


def number_formats(wanted: str, form: Family, on_gpu: Collection[str] | Literal[False]) -> list[str]:
    """What CTranslate2 computes in: what is `wanted`, or, where that is `auto`, float16 on a GPU that knows it, else float32.

    Some decoders run over in float16, as Gemma 3 does. Where its copy in float16 differs, the next of these is tried.
    Raises `InputError` for 16 bits in which a family runs over (OpenNMT/CTranslate2#1074).
    """
    if not form.in_half and wanted in ("float16", "int8_float16"):
        raise InputError(f"decoding.compute_type {wanted}: {form.label} runs over in float16; set it to auto, which is float32 for it")
    if wanted != "auto":
        return [wanted]
    in_half = ["float16"] if on_gpu and form.in_half and "float16" in on_gpu else []
    return in_half + ["float32"] * (form.causal or not in_half)


def translated_by(
    converted: Any, codec: Codec, search: dict[str, Any], rows: list[list[int]], languages: tuple[str, str], n_best: int
) -> list[list[Hypothesis]]:
    """What a converted encoder-decoder writes of the rows that its encoder reads."""
    tokenizer = codec.tokenizer
    # a decoder that starts with another piece than a tag knows its language by its finetuning alone
    tag = [] if codec.form.starts_with else [tokenizer.convert_ids_to_tokens(codec.tag(languages[1]))]
    results = converted.translate_batch(
        [tokenizer.convert_ids_to_tokens(row) for row in rows],
        target_prefix=[tag] * len(rows),
        max_input_length=0,  # the rows are as long as the model allows; by default all are cut to 1,024 pieces
        return_end_token=True,
        num_hypotheses=n_best,
        return_scores=n_best > 1,
        **search,
    )
    ends = {tokenizer.eos_token_id}
    return _ranked(codec, [[tokenizer.convert_tokens_to_ids(one) for one in each.hypotheses] for each in results], results, ends)


def continued_by(
    converted: Any, codec: Codec, search: dict[str, Any], rows: list[list[int]], languages: tuple[str, str], n_best: int
) -> list[list[Hypothesis]]:
    """What a converted decoder writes behind these prompts, up to the end of a line."""
    results = converted.generate_batch(
        [codec.tokenizer.convert_ids_to_tokens(row) for row in rows],
        return_end_token=True,  # a piece with a line break may begin with the last of the answer
        include_prompt_in_result=False,
        num_hypotheses=n_best,
        return_scores=n_best > 1,
        **search,
    )
    return _ranked(codec, [each.sequences_ids for each in results], results, {*search["end_token"]})


def _ranked(codec: Codec, written: list[list[list[int]]], results: Any, ends: set[int]) -> list[list[Hypothesis]]:
    scores = [each.scores or [math.nan] * len(some) for each, some in zip(results, written, strict=True)]
    ended = [[ids[-1:] != [] and ids[-1] in ends for ids in some] for some in written]
    return [
        [Hypothesis(*one) for one in zip(own, codec.decode(some), which, strict=True)]
        for own, some, which in zip(scores, written, ended, strict=True)
    ]


CLOSE = 0.05
"""By how much a logarithmic probability of a converted decoder may differ from that of transformers; half precision differs by less."""


class Probe(NamedTuple):
    """A prompt, and what a network of transformers makes of it."""

    pieces: list[str]
    logarithms: torch.Tensor
    """Of the probability of each piece at each place, or at the last one (places × vocabulary)."""


@without_gradients
def probes_of(network: Any, codec: Codec, longest: Sequence[int]) -> list[Probe]:
    """What a decoder makes of a short prompt, and behind the `longest` one: it is taken to pieces when it is converted.

    Some differences grow with the length. At the places of a long prompt there is no room for all scores of a large vocabulary.
    """
    (source,) = codec.pieces(codec.behind_blank(["One sentence in another language."]), 64)
    # longer ones do not fit into the attention's window of some models
    short = replace(codec, templates=Templates()).frame(("en", "de")).prompt(source)[:32]
    last = {"logits_to_keep": 1} if network._supports_logits_to_keep() else {}
    scores = [(short, network(torch.tensor([short])).logits[0])]
    if len(longest) > len(short):
        scores.append(([*longest], network(torch.tensor([[*longest]]), **last).logits[0, -1:]))
    return [Probe(codec.tokenizer.convert_ids_to_tokens(ids), each.float().log_softmax(-1)) for ids, each in scores]


def disagreement(converted: Any, probes: list[Probe]) -> str:
    """How a converted decoder differs from the network that it was made of; empty where it does not.

    CTranslate2 converts some decoders without an error and not quite right, and some number formats are too coarse for some.
    """
    for probed in probes:
        # of pieces that nobody would write the precision does not matter
        likely = probed.logarithms > math.log(1e-4)
        differs = logarithms_of(converted, probed)[:, : probed.logarithms.shape[1]] - probed.logarithms
        worst = float(differs.abs()[likely].max())
        if not worst <= CLOSE:  # nor where it is no number, because 16 bits ran over
            return f"its probabilities differ by {worst:.2f} nats in a prompt of {len(probed.pieces):,} pieces"
    return ""


def logarithms_of(converted: Any, probed: Probe) -> torch.Tensor:
    """What a converted decoder gives in the place of `Probe.logarithms`."""
    import numpy as np
    from ctranslate2 import DataType, Device

    if len(probed.logarithms) > 1:
        scores = converted.forward_batch([probed.pieces], return_log_probs=True)
    else:
        (found,) = converted.generate_batch([probed.pieces], max_length=1, include_prompt_in_result=False, return_logits_vocab=True)
        scores = found.logits[0][0]
    there = torch.from_numpy(np.array(scores.to(DataType.float32).to_device(Device.cpu)))
    return there.reshape(-1, there.shape[-1]).log_softmax(-1)


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


register_engine("huggingface", with_huggingface, label="generate", ranks=True)
register_engine("ctranslate2", with_ctranslate2, label="CTranslate2", ranks=True, missing_on_gpu=lambda: why_not_on_gpu())
