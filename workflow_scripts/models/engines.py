"""engines: the engines of ours: CTranslate2, several times faster than `generate` on a CPU, and Hugging Face's `generate`, its check."""

from __future__ import annotations

import contextlib
import copy
import ctypes
import json
import math
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

import torch

from workflow_scripts.device import pick_device, without_gradients
from workflow_scripts.models.decoding import Decoding, Translate, longest_source, longest_text
from workflow_scripts.models.engine import load_to_decode, register_engine
from workflow_scripts.models.search import Hypothesis, beam_search
from workflow_scripts.models.templates import Templates
from workflow_scripts.models.tokenisation import Codec, ids_needed
from workflow_scripts.stage import InputError, in_one_line


@contextlib.contextmanager
def with_huggingface(model: Path, codec: Codec, threads: int, settings: Decoding, seed: int) -> Iterator[Translate]:
    """Translate by Hugging Face's `generate`."""
    network = load_to_decode(model, codec, settings)
    lengths: dict[str, Any] = {
        "max_length": longest_text(network.config, settings),
        "min_length": settings.min_length,
        "length_penalty": settings.length_penalty,
    }

    def translate(rows: list[list[int]], languages: tuple[str, str], n_best: int) -> list[list[Hypothesis]]:
        return beam_search(network, codec, rows, languages[1], settings.beam_size, n_best, tokens=settings.batch_tokens, **lengths)

    yield Translate(codec, longest_source(codec, network.config, settings), translate)


@contextlib.contextmanager
def with_ctranslate2(model: Path, codec: Codec, threads: int, settings: Decoding, seed: int) -> Iterator[Translate]:
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
    config = AutoConfig.from_pretrained(model)
    longest = longest_text(config, settings)
    with tempfile.TemporaryDirectory(prefix="crossgap-") as folder:
        probed = convert(model, codec, Path(folder) / "model")
        # one thread per batch is faster than several threads on one batch; the weights are shared
        parallel = {"inter_threads": threads or torch.get_num_threads(), "intra_threads": 1} if device == "cpu" else {}
        opener = ctranslate2.Generator if codec.form.causal else ctranslate2.Translator
        try:
            converted = opener(str(Path(folder) / "model"), device=device, compute_type=compute_type, **parallel)
        except ValueError as error:
            raise InputError(f"decoding.compute_type {compute_type} on {device}: {error}; set it to auto") from None
        search = {
            "beam_size": settings.beam_size,
            "length_penalty": settings.length_penalty,
            "max_batch_size": settings.batch_tokens,
            "batch_type": "tokens",
            "suppress_sequences": [[piece] for piece in made_up_pieces(codec)] or None,
        }
        if probed:
            check_converted(converted, probed, model, compute_type)
            lengths: dict[str, Any] = {"min_length": settings.min_length, "max_length": longest, "end_token": probed.ends}
            write = partial(continued_by, converted, codec, search | lengths)
        else:
            lengths = {"min_decoding_length": settings.min_length, "max_decoding_length": longest}
            write = partial(translated_by, converted, codec, search | lengths)
        yield Translate(codec, longest_source(codec, config, settings), write)


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
        num_hypotheses=n_best,
        return_scores=n_best > 1,
        **search,
    )
    return _ranked(codec, [[tokenizer.convert_tokens_to_ids(one) for one in each.hypotheses] for each in results], results)


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
    return _ranked(codec, [each.sequences_ids for each in results], results)


def _ranked(codec: Codec, written: list[list[list[int]]], results: Any) -> list[list[Hypothesis]]:
    scores = [each.scores or [math.nan] * len(some) for each, some in zip(results, written, strict=True)]
    return [[Hypothesis(*one) for one in zip(own, codec.decode(some), strict=True)] for own, some in zip(scores, written, strict=True)]


CLOSE = 0.05
"""By how much a logarithmic probability of a converted decoder may differ from that of transformers; half precision differs by less."""


class Probe(NamedTuple):
    """A prompt, and what a network of transformers makes of it."""

    pieces: list[str]
    logarithms: torch.Tensor
    """Of the probability of each piece at each place (places × vocabulary)."""
    ends: list[int]
    """The ids at which an answer ends (`Codec.ends`)."""


@without_gradients
def probe(network: Any, codec: Codec) -> Probe:
    """What a decoder makes of a prompt before it is converted, which takes it to pieces."""
    (source,) = codec.pieces(codec.behind_blank(["One sentence in another language."]), 64)
    # longer ones do not fit into the attention's window of some models
    ids = replace(codec, templates=Templates()).frame(("en", "de")).prompt(source)[:32]
    pieces = codec.tokenizer.convert_ids_to_tokens(ids)
    return Probe(pieces, network(torch.tensor([ids])).logits[0].float().log_softmax(-1), codec.ends(network))


def check_converted(converted: Any, probed: Probe, model: Path, compute_type: str) -> None:
    """Compare a converted decoder with the network that it was made of.

    CTranslate2 converts some decoders without an error and not quite right, and whole numbers are too coarse for some. Raises `InputError`
    where it differs.
    """
    import numpy as np
    from ctranslate2 import DataType, Device

    logarithms = converted.forward_batch([probed.pieces], return_log_probs=True).to(DataType.float32).to_device(Device.cpu)
    # of pieces that nobody would write the precision does not matter
    likely = probed.logarithms > math.log(1e-4)
    differs = torch.from_numpy(np.array(logarithms))[0, :, : probed.logarithms.shape[1]] - probed.logarithms
    if (worst := float(differs.abs()[likely].max())) > CLOSE:
        if compute_type.startswith("int"):
            raise InputError(
                f"{model}: in {compute_type} its probabilities differ by {worst:.2f} nats from those of transformers; set "
                "decoding.compute_type: auto"
            )
        raise InputError(
            f"{model}: CTranslate2 does not convert it quite right, its probabilities differ by {worst:.2f} nats; set decoding.engine: "
            "huggingface"
        )


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


def convert(model: Path, codec: Codec, folder: Path) -> Probe | None:
    """Write the model in CTranslate2's format; returns what a decoder must make of a prompt.

    Raises `InputError` for a network that CTranslate2 does not know.

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
            self.known = probe(network, codec) if codec.form.causal else None
            return network

        def load_tokenizer(self, *_: Any, **__: Any) -> Any:
            return vocabulary

    converter = Converter(str(model))
    try:
        converter.convert(str(folder), force=True)
    except (ValueError, NotImplementedError) as error:
        raise InputError(f"{model}: CTranslate2 cannot convert it ({in_one_line(error)}); set decoding.engine: huggingface") from None
    file = folder / "config.json"
    config = json.loads(file.read_text(encoding="utf-8"))
    config["bos_token"] = config.get("bos_token") or "<s>"
    if codec.form.causal:
        config |= {name: config.get(name) or tokenizer.eos_token for name in ("unk_token", "eos_token")}
    else:
        first = tokenizer.convert_ids_to_tokens(codec.start) if codec.start is not None else None
        config["decoder_start_token"] = tokenizer.eos_token if codec.form.starts_with_end else first
    file.write_text(json.dumps(config), encoding="utf-8")
    return converter.known


register_engine("huggingface", with_huggingface, label="generate", ranks=True)
register_engine("ctranslate2", with_ctranslate2, label="CTranslate2", ranks=True, missing_on_gpu=lambda: why_not_on_gpu())
