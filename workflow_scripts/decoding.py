"""decoding: a test set through a finetuned model, with beam search.

CTranslate2 decodes by default (several times faster than `generate` on a CPU); Hugging Face's
`generate` is the configured alternative and the check.
"""

import json
import tempfile
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal

import torch

from workflow_scripts.device import pick_device
from workflow_scripts.stage import atomic, run
from workflow_scripts.text import read_lines
from workflow_scripts.tokenisation import Codec, load_codec


@dataclass
class Decoding:
    """Settings of beam search. The defaults are the paper's."""

    beam_size: int = 5
    """Hypotheses that are kept."""
    length_penalty: float = 1.0
    """Exponent of the length by which a hypothesis' score is divided."""
    max_length: int = 200
    """Longest hypothesis in pieces."""
    batch_tokens: int = 4_096
    """Source tokens that are decoded at once."""
    engine: Literal["ctranslate2", "huggingface"] = "ctranslate2"
    """What decodes."""
    compute_type: str = "auto"
    """CTranslate2's: auto | int8 | float16 | bfloat16 | float32. `auto` is float32 on a CPU and float16 on a GPU."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Where to decode."""


def main(
    model: Path, source: Path, hypotheses: Path, *, languages: tuple[str, str], threads: int = 0, settings: Decoding = Decoding()
) -> None:
    """Translate the lines of `source` and write one hypothesis a line."""
    if threads:
        torch.set_num_threads(threads)
    lines = list(read_lines(source))
    codec = load_codec(model)
    settings = replace(settings, max_length=min(settings.max_length, positions(model) - 2))
    translate = with_ctranslate2 if settings.engine == "ctranslate2" else with_huggingface
    translations = translate(model, codec, lines, languages, threads, settings)
    with atomic(hypotheses) as file:
        file.writelines(f"{' '.join(line.split())}\n" for line in translations)
    print({"sentences": len(translations), **asdict(settings)})


def positions(model: Path) -> int:
    """The longest row that the model can read, in pieces; longer sentences are cut."""
    from transformers import AutoConfig

    return AutoConfig.from_pretrained(model).max_position_embeddings


def with_huggingface(
    model: Path, codec: Codec, lines: list[str], languages: tuple[str, str], threads: int, settings: Decoding
) -> list[str]:
    """Translations by Hugging Face's `generate`."""
    from transformers import AutoModelForSeq2SeqLM

    from workflow_scripts.trainer import generate

    network = AutoModelForSeq2SeqLM.from_pretrained(model).to(pick_device(settings.device))
    network.generation_config.length_penalty = settings.length_penalty
    rows = codec.encode(lines, languages[0], positions(model))
    return generate(network, codec, rows, languages[1], settings.beam_size, settings.max_length, batch=max(1, settings.batch_tokens // 64))


def with_ctranslate2(
    model: Path, codec: Codec, lines: list[str], languages: tuple[str, str], threads: int, settings: Decoding
) -> list[str]:
    """Translations by CTranslate2, from a converted copy that lives as long as the call."""
    import ctranslate2

    device = pick_device(settings.device).type
    compute_type = settings.compute_type
    if compute_type == "auto":
        compute_type = "float16" if device == "cuda" else "float32"
    tokenizer = codec.tokenizer
    tag = tokenizer.convert_ids_to_tokens(codec.tag(languages[1]))
    sources = [tokenizer.convert_ids_to_tokens(row) for row in codec.encode(lines, languages[0], positions(model))]
    with tempfile.TemporaryDirectory(prefix="crossgap-") as folder:
        converted = convert(model, codec, Path(folder) / "model")
        translator = ctranslate2.Translator(str(converted), device=device, compute_type=compute_type, intra_threads=threads or 0)
        results = translator.translate_batch(
            sources,
            target_prefix=[[tag]] * len(sources),
            beam_size=settings.beam_size,
            length_penalty=settings.length_penalty,
            max_decoding_length=settings.max_length,
            max_batch_size=settings.batch_tokens,
            batch_type="tokens",
        )
    return codec.decode([tokenizer.convert_tokens_to_ids(result.hypotheses[0]) for result in results])


def convert(model: Path, codec: Codec, folder: Path) -> Path:
    """The model in CTranslate2's format.

    Two entries of its `config.json` are set here: the decoder of an mBART-50 starts with `</s>`,
    that of an mBART with the tag alone, which the target prefix gives; and a tokenizer without a
    start token (mBART-50's) would leave a null that CTranslate2 cannot read.
    """
    from ctranslate2.converters import TransformersConverter

    TransformersConverter(str(model)).convert(str(folder), force=True)
    file = folder / "config.json"
    config = json.loads(file.read_text(encoding="utf-8"))
    config["bos_token"] = config.get("bos_token") or "<s>"
    config["decoder_start_token"] = codec.tokenizer.eos_token if codec.family == "mbart50" else None
    file.write_text(json.dumps(config), encoding="utf-8")
    return folder


if __name__ == "__main__":
    run(main)
