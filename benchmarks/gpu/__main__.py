r"""What a GPU makes of training, decoding and mapping: JSON lines, a call of eight minutes after the other.

python -m benchmarks.gpu                              all parts, to results/gpu.jsonl; called again, it goes on where it ended
python -m benchmarks.gpu --parts abc --minutes 5      some parts
python -m benchmarks.gpu --tiny                       small shapes, also on a CPU: to see that it works

In this order; the first four fit into eight minutes of an H200, by an estimate:

g    one shape and no waits: updates as before, with known masks, packed, compiled and recorded, in turn; the whole loop in the same way
h    where the kernels' time goes in an update, with the limit of each kind beside it
a    an update of mBART-large's shape, with the whole vocabulary and trimmed, beside the stock Seq2SeqTrainer with and without cuDNN
i    1 to 12 small trainings at once, recorded or not, and by MPS; LoRA on a decoder in the shape of Gemma 3 270M
d    decoding with CTranslate2 (also sorted over the whole file, with several batches in flight, in int8, each with its limits) and with
     `generate`, beam 5
b    what an update is made of: padding, loss, attention, optimiser, precision, torch.compile, making batches
c    updates of the demo's small model per second
e    an iteration of the mapping's search at 5,000, 20,000 and 200,000 words
f    pretraining of small backbones: an mBART that denoises, an XLM-R that guesses masked pieces
j    a decoder in the shape of Gemma 3 270M, trimmed: LoRA by our loop, also with the whole vocabulary, and by TRL's SFTTrainer; its
     decoding by CTranslate2 and by `generate`; part i's LoRA on packed rows with scores of all places, as a recorded update has them

Each variant and each round has a line of its own. A case that failed is tried again by the next call, and `--again` measures all again.
At the end stand medians of several rounds, and what was not begun.

Rows are random ids with the lengths of sentences, so neither text nor weights need be there. Parts a, b, c and f need only torch,
transformers, NumPy and this repository, but for the stock trainer and our whole loop (accelerate, tensorboard). `mfu` is the model FLOP
utilisation: the products that the model needs (`training_flops`), each second, by the GPU's peak from its data sheet.
"""

import argparse
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

from benchmarks import apart
from benchmarks.gpu.kernels import best_of, decoding_limits, profile_of
from benchmarks.gpu.running import Case, code, in_rounds, run
from benchmarks.gpu.shared import MPS, together
from benchmarks.gpu.updates import Size, mbart, our_loop, stock_loop, updates_of, wait, xlmr
from workflow_scripts.device import chip, pick_device
from workflow_scripts.stage import provenance

LARGE = Size(1024, 4096, 12, 250_027, 8_192)
TRIMMED = replace(LARGE, pieces=16_000)
DEMO = Size(192, 512, 2, 4_000, 500)
MIDDLE = Size(512, 2048, 6, 16_000, 8_192)
TINY = Size(64, 128, 1, 500, 400)


# ---------------------------------------------------------------------------------------------
# parts: the cases of each

LOOP = ("accelerate", "tensorboard", "psutil", "peft")
"""What our whole loop needs."""


def update(
    make: Callable[..., Any], size: Size, device: torch.device, number: int, changes: dict[str, Any] | None = None
) -> dict[str, Any]:
    """So many updates of a new model."""
    return updates_of(make(size, device), size, number, **(changes or {}))


def part_a(device: torch.device, tiny: bool) -> Iterable[Case]:
    number = 3 if tiny else 25
    for name, size in {"tiny": TINY}.items() if tiny else {"trimmed": TRIMMED, "whole vocabulary": LARGE}.items():
        whole = 4 if size is LARGE else 0  # seconds that the larger output layer takes
        yield Case(f"our loop, {name}", partial(our_loop, size, device, number), LOOP, 8 + whole)
        if device.type == "cuda":
            plain = partial(stock_loop, size, device, number, cudnn=False)
            yield Case(f"stock trainer without cuDNN's attention, {name}", plain, ("accelerate",), 12 + whole)
        yield Case(f"stock trainer, {name}", partial(stock_loop, size, device, number), ("accelerate",), 20 + whole)
        yield Case(f"update, {name}", partial(update, mbart, size, device, number), (), 5 + whole)


VARIANTS: dict[str, dict[str, Any]] = {
    "as it is": {},
    "rows in any order": {"shuffled": True},
    "autocast": {"autocast": True},
    "plain loss": {"loss": "plain"},
    "AdamW not fused": {"fused": False},
    "batches not made ahead": {"ahead": False},
    "float32": {"precision": "float32"},
    "packed": {"packed": True},
    "packed, one product for queries, keys and values": {"packed": True, "joined": True},
}


def part_b(device: torch.device, tiny: bool) -> Iterable[Case]:
    size, number = (TINY, 3) if tiny else (TRIMMED, 20)
    for name, changes in VARIANTS.items():
        yield Case(name, partial(update, mbart, size, device, number, changes))
    yield Case("eager attention", partial(update, partial(mbart, attn_implementation="eager"), size, device, number))
    if device.type == "cuda":
        # cuDNN plans anew for each number and length of rows that this process has not seen; the second call meets those of the first
        for lengths in ("lengths that are new", "the same lengths again"):
            yield Case(f"attention by cuDNN, {lengths}", partial(update, mbart, size, device, number, {"cudnn": True}), (), 15)
        yield Case("packed, attention by cuDNN", partial(update, mbart, size, device, number, {"packed": True, "cudnn": True}))
        yield Case("torch.compile of each layer", partial(update, mbart, size, device, number, {"compiled": True}), (), 60)


def part_g(device: torch.device, tiny: bool) -> Iterable[Case]:
    """`calls` and `waits` are counts, which do not swing as clocks do. What is compiled has none, and one round, as it takes long."""
    size, number, rounds = (replace(TINY, tokens=512), 3, 1) if tiny else (TRIMMED, 15, 5)
    recorded = {"packed": True, "recorded": True}
    variants: dict[str, dict[str, Any]] = {"as before": {"asking": True}, "padded": {}, "packed": {"packed": True}}
    variants["packed, recorded"] = recorded
    bare = {name: partial(update, mbart, size, device, number, changes) for name, changes in variants.items()}
    yield from in_rounds("bare updates", bare, rounds, 3.5)
    loops: dict[str, dict[str, Any]] = {"padded": {}, "packed": {"packed": True}, "packed, recorded": recorded}
    whole = {name: partial(our_loop, size, device, number, **changes) for name, changes in loops.items()}
    yield from in_rounds("the whole loop", whole, rounds, 5.5, LOOP)
    many = replace(size, tokens=4 * size.tokens)
    for name in ("padded", "packed"):
        run_large = partial(update, mbart, many, device, number // 2 + 1, {"packed": name == "packed"})
        yield Case(f"four times as many tokens, {name}", run_large, (), 6.5)
    if device.type == "cuda":
        for name, changes in (("packed", {"packed": True}), ("packed, recorded", recorded)):
            compiled = partial(update, mbart, size, device, number, {**changes, "compiled": True})
            yield Case(f"bare updates, {name}, layers compiled", compiled, (), 25)


def part_h(device: torch.device, tiny: bool) -> Iterable[Case]:
    for packed in (False, True):
        name = "packed" if packed else "padded"
        yield Case(name, partial(profile_of, mbart, TINY if tiny else TRIMMED, device, packed, tiny), (), 8)


def part_i(device: torch.device, tiny: bool) -> Iterable[Case]:
    seconds, numbers = (0.5, (1, 2)) if tiny else (3.0, (1, 4, 8, 12))
    start, each = 15, seconds + 0.5  # seconds that processes need to start, and for each number of them
    for kind in ("padded", "recorded"):
        measure = partial(together, kind, numbers, device, seconds, tiny)
        yield Case(f"trainings of the demo's model at once, {kind}", measure, (), start + each * len(numbers))
    lora = {"padded": (1, 2) if tiny else (1, 12), "packed": (1,), "recorded": (1,) if tiny else (1, 4)}
    for kind, some in lora.items():
        measure = partial(together, f"lora {kind}", some, device, seconds, tiny)
        yield Case(f"trainings by LoRA at once, {kind}", measure, ("peft",), start + each * len(some))
    if device.type == "cuda":
        by_mps = partial(together, "padded", numbers[-1:], device, seconds, tiny, by_mps=True)
        yield Case("trainings of the demo's model at once, padded, by MPS", by_mps, (), start + each, program=MPS)


def part_c(device: torch.device, tiny: bool) -> Iterable[Case]:
    size, number = (TINY, 4) if tiny else (DEMO, 200)
    yield Case("as it is", partial(update, mbart, size, device, number))
    larger = replace(size, tokens=8 * size.tokens)
    yield Case("eight times as many tokens", partial(update, mbart, larger, device, number))


def part_d(device: torch.device, tiny: bool) -> Iterable[Case]:
    needs = ("sentencepiece", "tokenizers", "zstandard")
    for compute_type in ("float32",) if device.type == "cpu" else ("float16", "int8_float16"):
        for in_flight in (1, 4):
            name = f"ctranslate2, {compute_type}, sorted over the whole file, {in_flight} batches in flight"
            yield Case(name, partial(decoded_sorted, compute_type, in_flight, device, tiny), (*needs, "ctranslate2"), 30)
    yield Case("huggingface, static cache", partial(decoded_static, device, tiny), needs, 60)
    for engine in ("ctranslate2", "huggingface"):
        for tokens in (512,) if tiny else (4_096, 16_384):
            own = (*needs, "ctranslate2") if engine == "ctranslate2" else needs
            yield Case(f"{engine}, {tokens} tokens at once", partial(decoded, engine, tokens, device, tiny), own, 30)


def decoded(engine: Any, tokens: int, device: torch.device, tiny: bool) -> dict[str, Any]:
    """Sentences a second, without loading. All outputs have 24 pieces, as a model of random numbers never ends a sentence."""
    from workflow_scripts.models.decoding import Decoding, translator
    from workflow_scripts.models.tokenisation import load_codec

    length = 4 if tiny else 24
    given: dict[str, Any] = {"min_length": length, "max_length": length, "batch_tokens": tokens, "device": device.type}
    with tempfile.TemporaryDirectory() as name:
        model, lines = decoded_text(Path(name), tiny)
        codec = load_codec(model)
        with translator(model, codec, 0, Decoding(engine=engine, **given)) as translate:
            translate(lines[: len(lines) // 8], ("en", "de"), 1)
            began = time.perf_counter()
            translate(lines, ("en", "de"), 1)
            seconds = time.perf_counter() - began
    return {"sentences_per_s": round(len(lines) / seconds, 1), "beam": 5, "pieces": length}


def decoded_text(folder: Path, tiny: bool, number: int = 1_024) -> tuple[Path, list[str]]:
    """A model of random numbers in mBART-large's shape, and so many lines to translate; a tiny one, and 16."""
    from workflow_scripts.text.files import read_lines
    from workflow_scripts.training.small import Small, build_model

    text = [line.split("\t")[2] for line in read_lines(Path("resources/libreoffice-help/en-de.tsv.xz"))]
    lines = [line for line in text if 8 <= len(line.split()) <= 40][: 16 if tiny else number]
    shape: dict[str, Any] = (
        {"d_model": 64, "layers": 1, "heads": 1, "ffn": 128} if tiny else {"d_model": 1024, "layers": 12, "heads": 16, "ffn": 4096}
    )
    small = Small(text={}, vocabulary=400 if tiny else 8_000, **shape)
    return build_model(small, "mbart", ("en", "de"), text[: 500 if tiny else 20_000], (), folder, 1), lines


def decoded_sorted(compute_type: str, in_flight: int, device: torch.device, tiny: bool) -> dict[str, Any]:
    """CTranslate2 at its best: rows sorted over the whole file, large batches, several of them in flight; loading apart.

    As many tokens are in flight at once, in one batch or in several. `limits_per_s` has the most sentences a second that this GPU could
    make. Raises ValueError where there are so few batches that they would not be in flight together for long.
    """
    import ctranslate2

    from workflow_scripts.models.batches import by_length
    from workflow_scripts.models.engines import convert
    from workflow_scripts.models.tokenisation import load_codec

    length, tokens = 4 if tiny else 24, 32 if tiny else 16_384 // in_flight
    with tempfile.TemporaryDirectory() as name:
        model, lines = decoded_text(Path(name), tiny, 4_096)
        codec = load_codec(model)
        convert(model, codec, Path(name) / "converted")
        threads = {"inter_threads": in_flight, **({"intra_threads": 1} if device.type == "cpu" else {})}
        loaded = ctranslate2.Translator(str(Path(name) / "converted"), device=device.type, compute_type=compute_type, **threads)
        rows = codec.encode(lines, "en", 1_000)
        batches = [[rows[at] for at in chosen] for chosen in by_length([*map(len, rows)], tokens)][::-1]  # the longest first
        if len(batches) < 4 * in_flight:
            raise ValueError(f"{len(batches)} batches are too few for {in_flight} in flight; give more lines or smaller batches")
        tag = [codec.tokenizer.convert_ids_to_tokens(codec.tag("de"))]
        settings: dict[str, Any] = {"beam_size": 5, "min_decoding_length": length, "max_decoding_length": length}

        def translate(some: list[list[list[int]]]) -> None:
            asked = []
            for batch in some:
                pieces = [codec.tokenizer.convert_ids_to_tokens(row) for row in batch]
                asked += loaded.translate_batch(pieces, target_prefix=[tag] * len(pieces), asynchronous=True, **settings)
            for result in asked:
                result.result()

        translate(batches[:in_flight])
        began = time.perf_counter()
        translate(batches)
        seconds = time.perf_counter() - began
        shape = replace(TINY if tiny else TRIMMED, pieces=len(codec.tokenizer))
    shapes = [(len(batch), max(map(len, batch))) for batch in batches]
    limits = decoding_limits(shape, shapes, length, 5, compute_type, best_of(device, tiny))
    found = {"sentences_per_s": round(len(rows) / seconds, 1), "beam": 5, "pieces": length}
    return {**found, "batches": len(batches), "limits_per_s": limits}


def decoded_static(device: torch.device, tiny: bool) -> dict[str, Any]:
    """`generate` with a cache of one size, which transformers compiles on a GPU, in half precision, rows sorted over the whole file."""
    from workflow_scripts.models.networks import load_network
    from workflow_scripts.models.tokenisation import load_codec

    length, at_once = (4, 8) if tiny else (24, 128)
    with tempfile.TemporaryDirectory() as name:
        model, lines = decoded_text(Path(name), tiny)
        codec = load_codec(model)
        network: Any = load_network(model, "text", dropout=0.0, attention_dropout=0.0, seed=1).eval().to(device)
        network = network.half() if device.type == "cuda" else network
        rows = sorted(codec.encode(lines, "en", 1_000), key=len, reverse=True)
        longest = len(rows[0])  # one shape, so that it is compiled once
        settings: dict[str, Any] = {"num_beams": 5, "min_new_tokens": length, "max_new_tokens": length, "cache_implementation": "static"}

        def translate(some: list[list[int]]) -> None:
            for start in range(0, len(some), at_once):
                ids = torch.full((at_once, longest), codec.pad)
                for place, row in enumerate(some[start : start + at_once]):
                    ids[place, : len(row)] = torch.tensor(row)
                read = ids.to(device)
                with torch.inference_mode():
                    network.generate(read, attention_mask=read != codec.pad, forced_bos_token_id=codec.tag("de"), **settings)

        translate(rows[:at_once])
        wait(device)
        began = time.perf_counter()
        translate(rows)
        wait(device)
        seconds = time.perf_counter() - began
    return {"sentences_per_s": round(len(rows) / seconds, 1), "beam": 5, "pieces": length}


def part_e(device: torch.device, tiny: bool) -> Iterable[Case]:
    for words in (400,) if tiny else (5_000, 20_000, 200_000):
        for where in dict.fromkeys(("cpu", device.type)):
            if words < 100_000 or where == "cuda":
                yield Case(f"{words} words, {where}", partial(searched, words, where), ("numba",))


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
        yield Case(f"{name} mBART", partial(update, mbart, size, device, number))
        yield Case(f"{name} XLM-R", partial(update, xlmr, size, device, number, {"decoder": False}))


def part_j(device: torch.device, tiny: bool) -> Iterable[Case]:
    needs = ("accelerate", "peft", "psutil", "tensorboard", "tokenizers", "zstandard")
    yield Case("LoRA, our loop", partial(adapted, "ours", device, tiny), needs, 40)
    yield Case("LoRA, our loop, the whole vocabulary", partial(adapted, "ours", device, tiny, vocab_size=262_144), needs, 60)
    yield Case("LoRA, TRL's SFTTrainer", partial(adapted, "peer", device, tiny), (*needs, "datasets", "trl"), 40)
    # part i's packed rows with the scores of its recorded ones: these differ from it in the graph alone
    every = partial(together, "lora unselected", (1,), device, 0.5 if tiny else 3.0, tiny)
    yield Case("trainings by LoRA at once, packed, scores of all places", every, ("peft",), 20)
    yield Case("CTranslate2 and generate, greedy", partial(greedily_decoded, tiny), (*needs, "ctranslate2"), 60)


GEMMA = {"hidden_size": 640, "intermediate_size": 2048, "num_hidden_layers": 18, "num_attention_heads": 4, "num_key_value_heads": 1}


def decoder_of(folder: Path, tiny: bool, **changes: int) -> Path:
    """A decoder of random numbers in the shape of a trimmed Gemma, or a tiny one."""
    from benchmarks import lora

    return lora.tiny_decoder(folder / "model", **({} if tiny else {**GEMMA, "head_dim": 256, **changes}))


def adapted(which: str, device: torch.device, tiny: bool, **changes: int) -> dict[str, Any]:
    """A training of `benchmarks.lora`, ours or its peer's."""
    from benchmarks import lora

    updates, tokens = (3, 300) if tiny else (25, 8_000)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        lora.text(updates, tokens, folder)
        precision = "float32" if device.type == "cpu" else "bfloat16"
        return apart("lora", which, str(decoder_of(folder, tiny, **changes)), name, str(updates), str(tokens), precision)


def greedily_decoded(tiny: bool) -> dict[str, Any]:
    """Sentences a second of both engines of a decoder, and of stock `generate`."""
    from benchmarks import lora

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        lora.text(3, 300, folder)
        return lora.decoded(decoder_of(folder, tiny), folder, "bfloat16" if lora.GPU else "float32")


PARTS = {"g": part_g, "h": part_h, "a": part_a, "i": part_i, "d": part_d, "b": part_b, "c": part_c, "e": part_e, "f": part_f, "j": part_j}


# ---------------------------------------------------------------------------------------------
# all of it


def main(arguments: list[str] | None = None) -> None:
    """Add a line for each case that the output lacks."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--parts", default="".join(PARTS), help="letters of the parts")
    parser.add_argument("--output", type=Path, default=Path("results/gpu.jsonl"))
    parser.add_argument("--minutes", type=float, default=8.0, help="no case is begun that would end later, by its estimate")
    parser.add_argument("--limit", type=float, default=90.0, help="seconds after which a case is ended, and has failed")
    parser.add_argument("--again", action="store_true", help="measure also what the output has")
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
    parser.add_argument("--tiny", action="store_true", help="small shapes")
    chosen = parser.parse_args(arguments)
    device = pick_device(chosen.device)
    if device.type == "cpu" and not chosen.tiny:
        parser.exit(77, "there is no GPU; on a CPU the shapes are too large, give --tiny\n")
    cases = [(part, case) for part in chosen.parts for case in PARTS[part](device, chosen.tiny)]
    shared = {**machine(device), "code": code(), "tiny": chosen.tiny}
    run(cases, device, shared, chosen.output, chosen.minutes, chosen.limit, chosen.again)


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
