"""serving: vLLM as an engine for decoders. It was written without a GPU to try it on: it is untested.

vLLM is none of Crossgap's packages, as it wants a PyTorch of its own. It gets the ids of the prompts and gives those of the answers, so
that a model is asked as it was trained. It decodes greedily: its beam search takes no end but the tokenizer's.
"""

from __future__ import annotations

import contextlib
import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from workflow_scripts import registry
from workflow_scripts.errors import InputError
from workflow_scripts.models.engine import register_engine
from workflow_scripts.models.recognition import network_config
from workflow_scripts.number_types import Positive, Share
from workflow_scripts.stage import own_settings

if TYPE_CHECKING:
    from workflow_scripts.models.decoding import Decoding, Translate
    from workflow_scripts.models.search import Hypothesis
    from workflow_scripts.models.tokenisation import Codec


@dataclass
class Serving:
    """Settings of vLLM."""

    gpus: Positive = 1
    """Number of GPUs that each layer is split over."""
    memory: Share = 0.9
    """Share of a GPU's memory that vLLM uses."""


@contextlib.contextmanager
def with_vllm(model: Path, codec: Codec, threads: int, settings: Decoding, seed: int) -> Iterator[Translate]:
    """Write behind prompts by vLLM, greedily. Raises `InputError` where it is not installed, and for what it is not asked for here."""
    from workflow_scripts.models.decoding import Translate, longest_source, longest_text
    from workflow_scripts.models.search import Hypothesis

    if not codec.form.causal:
        raise InputError(f"decoding.engine vllm: {model} is no decoder ({codec.form.label}); set decoding.engine: ctranslate2")
    if settings.beam_size > 1:
        raise InputError(f"decoding.engine vllm: decodes greedily, and beam_size is {settings.beam_size}; set decoding.beam_size: 1")
    if settings.compute_type.startswith("int"):
        raise InputError(f"decoding.engine vllm: has no compute_type {settings.compute_type}; set decoding.compute_type: auto")
    if reason := missing():
        raise InputError(reason)
    from transformers import GenerationConfig
    from vllm import LLM, SamplingParams

    config = network_config(model)
    own: Serving = own_settings(registry.entry("engine", settings.engine), settings.engine_settings)
    loaded = LLM(
        model=str(model),
        skip_tokenizer_init=True,
        dtype="bfloat16" if settings.compute_type == "auto" else settings.compute_type,
        tensor_parallel_size=own.gpus,
        gpu_memory_utilization=own.memory,
        generation_config="vllm",  # by itself it would take penalties from the model's folder
        seed=seed,
    )
    ends = codec.ends(SimpleNamespace(generation_config=GenerationConfig.from_pretrained(model)))
    wanted = SamplingParams(
        temperature=0.0,
        max_tokens=longest_text(config, settings),
        min_tokens=settings.min_length,
        stop_token_ids=ends,
        detokenize=False,
    )

    def write(rows: list[list[int]], languages: tuple[str, str], n_best: int) -> list[list[Hypothesis]]:
        outputs: Any = loaded.generate([{"prompt_token_ids": row} for row in rows], wanted, use_tqdm=False)
        texts = codec.decode([list(one.outputs[0].token_ids) for one in outputs])
        return [[Hypothesis(float("nan"), text)] for text in texts]

    yield Translate(codec, longest_source(codec, config, settings), write)


def missing() -> str:
    """Why vLLM cannot decode in this environment, with the way out; empty where it can."""
    if importlib.util.find_spec("vllm"):
        return ""
    return "decoding.engine vllm: the package vllm is not installed; install it (pip install vllm), or set decoding.engine: ctranslate2"


register_engine("vllm", with_vllm, label="vLLM", source="Kwon et al. 2023; untested", settings=Serving, missing=missing)
