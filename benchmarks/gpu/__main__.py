r"""What a GPU makes of training, decoding and mapping: JSON lines, in eight minutes at most.

python -m benchmarks.gpu                              all parts, to results/gpu.jsonl; called again, it goes on where it ended
python -m benchmarks.gpu --parts abc --minutes 5      some parts
python -m benchmarks.gpu --tiny                       small shapes, also on a CPU: to see that it works

a    an update of mBART-large's shape, with the whole vocabulary and trimmed, beside the stock Seq2SeqTrainer
b    what an update is made of: padding, loss, attention, optimiser, precision, torch.compile, making batches
c    updates of the demo's small model per second
d    decoding with CTranslate2 and with `generate`, beam 5
e    an iteration of the mapping's search at 5,000, 20,000 and 200,000 words
f    pretraining of small backbones: an mBART that denoises, an XLM-R that guesses masked pieces

Rows are random ids with the lengths of sentences, so neither text nor weights need be there. Parts a, b, c and f need only torch,
transformers, NumPy and this repository, but for the stock trainer and our whole loop (accelerate, tensorboard). `mfu` is the model FLOP
utilisation: the products that the model needs (`training_flops`), each second, by the GPU's peak from its data sheet.
"""

import argparse
import gc
import importlib.util
import json
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

import torch

from benchmarks.gpu.updates import Size, mbart, our_loop, stock_loop, updates_of, wait, xlmr
from workflow_scripts.device import chip, pick_device
from workflow_scripts.stage import provenance

LARGE = Size(1024, 4096, 12, 250_027, 8_192)
TRIMMED = replace(LARGE, pieces=16_000)
DEMO = Size(192, 512, 2, 4_000, 500)
MIDDLE = Size(512, 2048, 6, 16_000, 8_192)
TINY = Size(64, 128, 1, 500, 400)


# ---------------------------------------------------------------------------------------------
# parts: the cases of each, and what they need beyond torch, transformers and NumPy

Case = tuple[str, tuple[str, ...], Callable[[], dict[str, Any]]]


def update(
    make: Callable[..., Any], size: Size, device: torch.device, number: int, changes: dict[str, Any] | None = None
) -> dict[str, Any]:
    """So many updates of a new model."""
    return updates_of(make(size, device), size, number, **(changes or {}))


def part_a(device: torch.device, tiny: bool) -> Iterable[Case]:
    number = 3 if tiny else 25
    for name, size in {"tiny": TINY}.items() if tiny else {"trimmed": TRIMMED, "whole vocabulary": LARGE}.items():
        yield f"update, {name}", (), partial(update, mbart, size, device, number)
        yield f"our loop, {name}", ("accelerate", "tensorboard", "psutil"), partial(our_loop, size, device, number)
        yield f"stock trainer, {name}", ("accelerate",), partial(stock_loop, size, device, number)


VARIANTS: dict[str, dict[str, Any]] = {
    "as it is": {},
    "rows in any order": {"shuffled": True},
    "autocast": {"autocast": True},
    "plain loss": {"loss": "plain"},
    "AdamW not fused": {"fused": False},
    "batches not made ahead": {"ahead": False},
    "float32": {"precision": "float32"},
}


def part_b(device: torch.device, tiny: bool) -> Iterable[Case]:
    size, number = (TINY, 3) if tiny else (TRIMMED, 20)
    for name, changes in VARIANTS.items():
        yield name, (), partial(update, mbart, size, device, number, changes)
    yield "eager attention", (), partial(update, partial(mbart, attn_implementation="eager"), size, device, number)
    if device.type == "cuda":
        # cuDNN plans anew for each number and length of rows that this process has not seen; the second call meets those of the first
        yield "attention by cuDNN, lengths that are new", (), partial(update, mbart, size, device, number, {"cudnn": True})
        yield "attention by cuDNN, the same lengths again", (), partial(update, mbart, size, device, number, {"cudnn": True})
        yield "torch.compile of each layer", (), partial(update, mbart, size, device, number, {"compiled": True})


def part_c(device: torch.device, tiny: bool) -> Iterable[Case]:
    size, number = (TINY, 4) if tiny else (DEMO, 200)
    yield "as it is", (), partial(update, mbart, size, device, number)
    larger = replace(size, tokens=8 * size.tokens)
    yield "eight times as many tokens", (), partial(update, mbart, larger, device, number)


def part_d(device: torch.device, tiny: bool) -> Iterable[Case]:
    for engine in ("ctranslate2", "huggingface"):
        for tokens in (512,) if tiny else (4_096, 16_384):
            needs = ("sentencepiece", "tokenizers", "zstandard", *(["ctranslate2"] if engine == "ctranslate2" else []))
            yield f"{engine}, {tokens} tokens at once", needs, partial(decoded, engine, tokens, device, tiny)


def decoded(engine: Any, tokens: int, device: torch.device, tiny: bool) -> dict[str, Any]:
    """Sentences a second, without loading. All outputs have 24 pieces, as a model of random numbers never ends a sentence."""
    from workflow_scripts.models.decoding import Decoding, translator
    from workflow_scripts.models.tokenisation import load_codec
    from workflow_scripts.text.files import read_lines
    from workflow_scripts.training.small import Small, build_model

    text = [line.split("\t")[2] for line in read_lines(Path("resources/libreoffice-help/en-de.tsv.xz"))]
    lines = [line for line in text if 8 <= len(line.split()) <= 40][: 16 if tiny else 1_024]
    shape: dict[str, Any] = (
        {"d_model": 64, "layers": 1, "heads": 1, "ffn": 128} if tiny else {"d_model": 1024, "layers": 12, "heads": 16, "ffn": 4096}
    )
    length = 4 if tiny else 24
    told: dict[str, Any] = {"min_length": length, "max_length": length, "batch_tokens": tokens, "device": device.type}
    with tempfile.TemporaryDirectory() as name:
        small = Small(text={}, vocabulary=400 if tiny else 8_000, **shape)
        model = build_model(small, "mbart", ("en", "de"), text[: 500 if tiny else 20_000], (), Path(name), 1)
        codec = load_codec(model)
        with translator(model, codec, 0, Decoding(engine=engine, **told)) as translate:
            translate(lines[: len(lines) // 8], ("en", "de"), 1)
            began = time.perf_counter()
            translate(lines, ("en", "de"), 1)
            seconds = time.perf_counter() - began
    return {"sentences_per_s": round(len(lines) / seconds, 1), "beam": 5, "pieces": length}


def part_e(device: torch.device, tiny: bool) -> Iterable[Case]:
    for words in (400,) if tiny else (5_000, 20_000, 200_000):
        for where in dict.fromkeys(("cpu", device.type)):
            if words < 100_000 or where == "cuda":
                yield f"{words} words, {where}", ("numba",), partial(searched, words, where)


def searched(words: int, where: str) -> dict[str, Any]:
    """Seconds of an iteration of the search: the products, both neighbourhoods and both dictionaries."""
    from workflow_scripts.lexicon.mapping import normalise
    from workflow_scripts.similarity import ByteStream, Similarities, best_pairs, neighbourhoods

    device = torch.device(where)
    a, b = (normalise(torch.randn(words, 300, generator=torch.Generator().manual_seed(seed))).to(device) for seed in (1, 2))
    similarities, noise, taken = Similarities(a, b, "auto"), ByteStream(1, device), []
    for _ in range(4):
        wait(device)
        began = time.perf_counter()
        similarities.replace_rows(a)
        best_pairs(similarities, neighbourhoods(similarities, 10), 0.1, noise)
        wait(device)
        taken.append(time.perf_counter() - began)
    return {"seconds": round(min(taken[1:]), 4), "kept": similarities.keep}


def part_f(device: torch.device, tiny: bool) -> Iterable[Case]:
    number = 3 if tiny else 60
    for name, size in {"tiny": TINY}.items() if tiny else {"the demo's": replace(DEMO, tokens=2_000), "60 million": MIDDLE}.items():
        yield f"{name} mBART", (), partial(update, mbart, size, device, number)
        yield f"{name} XLM-R", (), partial(update, xlmr, size, device, number, {"decoder": False})


PARTS = {"a": part_a, "b": part_b, "c": part_c, "d": part_d, "e": part_e, "f": part_f}


# ---------------------------------------------------------------------------------------------
# all of it


def main(arguments: list[str] | None = None) -> None:
    """Add a line for each case that the output lacks."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--parts", default="".join(PARTS), help="letters of the parts")
    parser.add_argument("--output", type=Path, default=Path("results/gpu.jsonl"))
    parser.add_argument("--minutes", type=float, default=8.0, help="no case is begun after that")
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
    parser.add_argument("--tiny", action="store_true", help="small shapes")
    chosen = parser.parse_args(arguments)
    device = pick_device(chosen.device)
    if device.type == "cpu" and not chosen.tiny:
        parser.exit(77, "there is no GPU; on a CPU the shapes are too large, give --tiny\n")
    began, told = time.perf_counter(), {**machine(device), "tiny": chosen.tiny}
    chosen.output.parent.mkdir(parents=True, exist_ok=True)
    done = {key(json.loads(line)) for line in chosen.output.read_text("utf-8").splitlines()} if chosen.output.exists() else set()
    for part in chosen.parts:
        for name, needs, measure in PARTS[part](device, chosen.tiny):
            line = {"part": part, "case": name, **told}
            missing = [package for package in needs if importlib.util.find_spec(package) is None]
            if missing:
                print(json.dumps({**line, "left_out": f"needs {', '.join(missing)}"}), flush=True)
            elif key(line) not in done and (time.perf_counter() - began) / 60 < chosen.minutes:
                line |= tried(measure, device)
                with chosen.output.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(line) + "\n")
                print(json.dumps(line), flush=True)


def key(line: dict[str, Any]) -> tuple:
    """What makes a case the same as one that was measured."""
    return tuple(line[name] for name in ("part", "case", "device", "tiny", "commit"))


def tried(measure: Callable[[], dict[str, Any]], device: torch.device) -> dict[str, Any]:
    """What a case measures, with its peak of memory, or why it could not: the other cases go on."""
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    try:
        found = measure()
    except Exception as error:  # whatever it is that this machine lacks
        return {"failed": f"{type(error).__name__}: {str(error)[:300]}"}
    return {**found, **({"peak_gb": round(torch.cuda.max_memory_allocated() / 1e9, 2)} if device.type == "cuda" else {})}


def machine(device: torch.device) -> dict[str, Any]:
    """Device, driver and versions."""
    driver = ""
    if device.type == "cuda":
        query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
        with suppress(OSError):
            driver = subprocess.run(query, capture_output=True, text=True).stdout.split("\n")[0]
    versions: dict[str, str | None] = {}
    for package in ("torch", "transformers", "numpy", "accelerate", "ctranslate2"):
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            versions[package] = None
    return {"device": chip(device), "driver": driver, "cuda": torch.version.cuda, "versions": versions, "commit": provenance()["commit"]}


if __name__ == "__main__":
    main()
