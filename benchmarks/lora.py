r"""LoRA on a decoder against TRL's SFTTrainer with peft, and our decoding against `generate`: speed, memory, loss after the same updates.

python -m benchmarks.lora                                      a tiny decoder that it makes itself
python -m benchmarks.lora gemma-3-270m 10 500 3                a folder, updates, tokens an update, rounds
python -m benchmarks.lora gemma-3-270m 10 500 3 bfloat16       in another precision; float32 by default

The peer needs `pip install trl`, which is not among Crossgap's own packages.

Both learn the same pairs of the embedded manual (German to English), by the same ids and labels, with LoRA of rank 16 on the same matrices
of the same folder, which is trimmed to the text. The peer has what is fast: rows grouped by length, no checkpointing of activations, fused
AdamW, SDPA. It has a fixed number of rows in an update, so that an update has the same target tokens on average. Each run is a process of
its own; those of a round come in turn, and medians are compared. `speed` counts by the clock, `processor_speed` by the processor's own
time, which other programs disturb less. `whole` is our own run with the whole vocabulary, a third as many updates: what trimming gains.
The model is then decoded greedily, as a user of a decoder does, by both engines and by stock `generate` at the best of several batch sizes.
"""

import bisect
import importlib.util
import json
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import torch

from benchmarks import apart, peak_gb
from workflow_scripts.device import chip, keep_memory, pick_device
from workflow_scripts.text.files import read_lines, write_lines

MANUAL = Path("resources/libreoffice-help/en-de.tsv.xz")
LANGUAGES = ("de", "en")
DEV, SENTENCES, MAX_LENGTH, LONGEST_ANSWER = 16, 64, 128, 64
LORA = {"rank": 16, "alpha": 32.0}
RATE, WARMUP = 1e-3, 5
GPU = torch.cuda.is_available()
# tokens of prompts at once
PEERS_BATCHES = (2_048, 8_192, 32_768) if GPU else (512, 2_048)


def main(model: str = "", updates: str = "20", tokens: str = "500", rounds: str = "3", precision: str = "float32") -> None:
    """Print a JSON line for the speed of training, one for its memory, and one for decoding."""
    with tempfile.TemporaryDirectory(prefix="crossgap-") as name:
        folder = Path(name)
        lines = text(int(updates), int(tokens), folder)
        whole = Path(model) if model else tiny_decoder(folder / "tiny")
        trimmed(whole, lines, folder / "trimmed")
        has_peer = importlib.util.find_spec("trl") is not None
        if not has_peer:
            print(json.dumps({"left_out": "the peer: pip install trl"}), flush=True)
        starts = {"ours": folder / "trimmed", **({"peer": folder / "trimmed"} if has_peer else {}), "whole": whole}
        runs: dict[str, list[dict[str, Any]]] = {which: [] for which in starts}
        for _ in range(int(rounds)):
            for which, start in starts.items():
                number = str(max(3, int(updates) // 3)) if which == "whole" else updates
                runs[which].append(apart("lora", "peer" if which == "peer" else "ours", str(start), name, number, tokens, precision))
        report(runs, {"model": model or "tiny", "precision": precision, "updates": int(updates), "tokens": int(tokens)})
        print(json.dumps({"case": f"{SENTENCES} sentences, greedy", **decoded(folder / "trimmed", folder, precision)}), flush=True)


def report(runs: dict[str, list[dict[str, Any]]], shared: dict[str, Any]) -> None:
    """Print what the runs of training come to."""
    shared |= {"device": runs["ours"][0]["device"], "threads": torch.get_num_threads()}
    shared |= {f"loss_{which}": round(median(run["loss"] for run in some), 3) for which, some in runs.items() if some}
    shared |= {f"target_tokens_{which}": some[0]["target_tokens"] for which, some in runs.items() if some}
    for quantity, unit in (("speed", "target tokens/s"), ("processor_speed", "target tokens/s"), ("peak_gb", "GB")):
        found = {which: median(run[quantity] for run in some) for which, some in runs.items() if some}
        ratios = {f"ratio_to_{which}": round(found["ours"] / found[which], 2) for which in found if which != "ours"}
        print(json.dumps({"case": quantity, "unit": unit, **found, **ratios, **shared}), flush=True)


# ---------------------------------------------------------------------------------------------
# text and models


def text(updates: int, tokens: int, folder: Path) -> dict[str, list[str]]:
    """Pairs of the manual for so many updates, with a dev set and sentences to decode; they are written to the folder as well."""
    rows = (line.split("\t")[2:4] for line in read_lines(MANUAL))
    pairs = [(german, english) for english, german in rows if 4 <= len(german.split()) <= 24]
    # a pair has some thirty tokens at least
    number = DEV + SENTENCES + updates * tokens // 20
    chosen = [pairs[place] for place in np.random.default_rng(1).permutation(len(pairs))[:number]]
    lines = {code: [pair[at] for pair in chosen] for at, code in enumerate(LANGUAGES)}
    for code, side in lines.items():
        write_lines(folder / f"train.{code}", side[DEV + SENTENCES :])
        write_lines(folder / f"dev.{code}", side[:DEV])
        write_lines(folder / f"test.{code}", side[DEV : DEV + SENTENCES])
    return lines


def tiny_decoder(folder: Path, **changes: int) -> Path:
    """A decoder in Llama's form of random numbers, with a vocabulary of its own; `changes` are of its shape."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedTokenizerFast, set_seed

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    special = {"bos_token": "<bos>", "eos_token": "<eos>", "pad_token": "<pad>"}
    trainer = trainers.BpeTrainer(
        vocab_size=8_000, special_tokens=[*special.values()], initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    tokenizer.train_from_iterator((line.split("\t", 2)[2] for line in read_lines(MANUAL)), trainer)
    whole = PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special)
    shape = {"hidden_size": 128, "intermediate_size": 384, "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2}
    ids = {f"{name}_token_id": getattr(whole, f"{name}_token_id") for name in ("bos", "eos", "pad")}
    set_seed(1)
    shape |= {"vocab_size": len(whole), **changes, **ids}
    config = AutoConfig.for_model("llama", max_position_embeddings=512, tie_word_embeddings=True, **shape)
    AutoModelForCausalLM.from_config(config).save_pretrained(folder)
    whole.save_pretrained(folder)
    return folder


def trimmed(model: Path, lines: dict[str, list[str]], folder: Path) -> None:
    """The same model with the pieces of the text alone."""
    from workflow_scripts.models.networks import save_model
    from workflow_scripts.models.templates import rendered
    from workflow_scripts.models.tokenisation import load_codec
    from workflow_scripts.models.trimming import trim
    from workflow_scripts.training.loop import load_model
    from workflow_scripts.training.settings import Training

    network, codec = load_model(model, Training(), 1), load_codec(model)
    every = (line for side in lines.values() for line in side)
    codec, _ = trim(network, codec, every, folder.with_name("vocabulary"), rendered((), LANGUAGES))
    save_model(network, codec.tokenizer, folder)


# ---------------------------------------------------------------------------------------------
# training


class Rows(NamedTuple):
    """What both learn from."""

    codec: Any
    rounds: Any
    """Our rows."""
    dev: Any
    settings: Any
    at_once: int
    """How many rows make an update of the peer's."""


def rows_of(model: str, text_folder: str, updates: int, tokens: int, precision: Any) -> Rows:
    """The pairs in a folder as rows, as many as the updates read once, and the settings of the training."""
    from workflow_scripts.models.tokenisation import load_codec
    from workflow_scripts.training.rows import Batches, ParallelText, aligned_dev
    from workflow_scripts.training.settings import Training
    from workflow_scripts.training.too_long import Room

    settings = Training(
        adapter={"kind": "lora", **LORA},
        updates=updates,
        batch_tokens=tokens,
        learning_rate=RATE,
        warmup_updates=WARMUP,
        label_smoothing=0.0,
        dropout=0.0,
        attention_dropout=0.0,
        max_length=MAX_LENGTH,
        evaluate_every=updates,
        bleu_sentences=0,
        loss_every=0,
        checkpoint="last",
        log_every=updates,
        precision=precision,
    )
    codec, folder = load_codec(model), Path(text_folder)

    def sides(part: str) -> tuple[Path, Path]:
        return folder / f"{part}.{LANGUAGES[0]}", folder / f"{part}.{LANGUAGES[1]}"

    every = ParallelText(*sides("train"), LANGUAGES, codec, settings)

    def updates_of(number: int) -> int:
        some: Any = SimpleNamespace(epoch=lambda _: every.epoch(0)[:number], lengths=lambda _: None)
        return len(Batches(some, tokens, 1, 1).cut(0))

    # as many rows as ours goes through in so many updates, in whose tokens their padding is counted
    at_once = bisect.bisect_right(range(updates, every.rows + 1), updates, key=updates_of) - 1 + updates
    at_once = max(1, at_once // updates)
    for whole, used in zip(sides("train"), sides("used"), strict=True):
        chosen = every.chosen[: at_once * updates].tolist()
        write_lines(used, (line for number, line in enumerate(read_lines(whole)) if number in chosen))
    rounds = ParallelText(*sides("used"), LANGUAGES, codec, settings)
    return Rows(codec, rounds, [aligned_dev(*sides("dev"), LANGUAGES, codec, Room.of(settings))], settings, at_once)


class Clock:
    """The times behind the first update and the `last` one, by the clock and by the processor."""

    def __init__(self, last: int) -> None:
        self.last = last
        self.times: list[tuple[float, float]] = []

    def tick(self, update: int) -> None:
        """An update is done. Behind those in between the processor does not wait for the GPU."""
        if update not in (1, self.last):
            return
        if GPU:
            torch.cuda.synchronize()
        self.times.append((time.perf_counter(), time.process_time()))

    def speeds(self, labels: float) -> dict[str, float]:
        """Labels a second, of so many in all updates but the first."""
        seconds = [last - first for first, last in zip(self.times[0], self.times[-1], strict=True)]
        return {name: round(labels / taken, 1) for name, taken in zip(("speed", "processor_speed"), seconds, strict=True)}


def labels_in(rows: Any) -> int:
    """How many pieces are to be written."""
    return sum(label != -100 for _, labels in rows for label in labels)


def ours(model: str, text_folder: str, updates: int, tokens: int, precision: str) -> dict[str, Any]:
    """Our loop."""
    from workflow_scripts.training import loop
    from workflow_scripts.training.adapter import adapt
    from workflow_scripts.training.callbacks import Progress
    from workflow_scripts.training.rows import Batches

    clock = Clock(updates)

    class Timed(Progress):
        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            clock.tick(state.global_step)

    keep_memory()
    loop.Progress = Timed  # type: ignore[misc]
    codec, rounds, dev, settings, _ = rows_of(model, text_folder, updates, tokens, precision)
    network = loop.load_model(model, settings, 1)
    adapt(network, settings.adapter, 1)
    with tempfile.TemporaryDirectory() as folder:
        history = loop.train(network, codec, rounds, dev, Path(folder), 1, settings)
    counted = [labels_in(batch) for batch in Batches(rounds, tokens, updates, 1)]
    return {
        **clock.speeds(sum(counted[1:])),
        "target_tokens": sum(counted),
        "loss": next(entry["eval_loss"] for entry in reversed(history) if "eval_loss" in entry),
    }


def peer(model: str, text_folder: str, updates: int, tokens: int, precision: str) -> dict[str, Any]:
    """TRL's loop, by our ids and labels."""
    from datasets import Dataset
    from peft import LoraConfig
    from transformers import TrainerCallback
    from trl import SFTConfig, SFTTrainer

    from workflow_scripts.models.recognition import family_of
    from workflow_scripts.training.loop import load_model
    from workflow_scripts.training.lora import matrices
    from workflow_scripts.training.validation import dev_loss

    codec, rounds, dev, settings, at_once = rows_of(model, text_folder, updates, tokens, precision)
    network = load_model(model, settings, 1)
    lora = LoraConfig(
        r=int(LORA["rank"]),
        lora_alpha=int(LORA["alpha"]),
        target_modules=[*matrices(network, family_of(network.config))],
        task_type="CAUSAL_LM",
    )
    clock = Clock(updates)

    class Timed(TrainerCallback):
        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            clock.tick(state.global_step)

    # TRL shifts the labels by itself: each stands at its own piece, and the last one is read as well
    rows = [([*read, labels[-1]], [-100, *labels]) for read, labels in rounds.epoch(0)]
    items = Dataset.from_list([{"input_ids": ids, "labels": labels} for ids, labels in rows])
    with tempfile.TemporaryDirectory() as folder:
        arguments = SFTConfig(
            output_dir=folder,
            max_steps=updates,
            per_device_train_batch_size=at_once,
            train_sampling_strategy="group_by_length",
            dataset_kwargs={"skip_prepare_dataset": True},
            max_length=None,
            learning_rate=RATE,
            warmup_steps=WARMUP,
            lr_scheduler_type="linear",
            adam_beta2=settings.adam_betas[1],
            adam_epsilon=settings.adam_eps,
            max_grad_norm=0.0,
            gradient_checkpointing=False,
            bf16=precision == "bfloat16",
            use_cpu=not GPU,
            save_strategy="no",
            logging_steps=updates,
            report_to="none",
            disable_tqdm=True,
            seed=1,
        )
        trainer = SFTTrainer(
            model=network,
            args=arguments,
            train_dataset=items,
            processing_class=codec.tokenizer,
            peft_config=lora,
            callbacks=[Timed()],
        )
        trainer.train()
    counted = labels_in(rows)
    # rows come in an order of their own; an update has as many labels as any other, on average
    return {**clock.speeds(counted * (1 - 1 / updates)), "target_tokens": counted, "loss": dev_loss(network, codec, dev)}


def case(which: str, *arguments: str) -> dict[str, Any]:
    """One run, with its device and peak memory."""
    model, folder, updates, tokens, precision = arguments
    found = {"ours": ours, "peer": peer}[which](model, folder, int(updates), int(tokens), precision)
    return {**found, "peak_gb": round(peak_gb(GPU), 2), "device": chip(pick_device("auto"))}


# ---------------------------------------------------------------------------------------------
# decoding


def decoded(model: Path, folder: Path, precision: str = "float32") -> dict[str, Any]:
    """Sentences a second of both engines and of stock `generate` at its best batch size, loading and our conversion included.

    CTranslate2 has float32 on a CPU, and what `auto` is on a GPU; our `huggingface` and the peer have the `precision`. `processor_*` are
    sentences per second of the processor's own time.
    """
    from workflow_scripts.models import decoding
    from workflow_scripts.models.decoding import Decoding

    source, threads = folder / "test.de", torch.get_num_threads()

    def ours(**changes: Any) -> list[str]:
        settings = Decoding(beam_size=1, max_length=LONGEST_ANSWER, **changes)
        decoding.main(model, source, folder / "hypotheses", languages=LANGUAGES, threads=threads, settings=settings)
        return [*read_lines(folder / "hypotheses")]

    found = {
        "ctranslate2": [timed_once(partial(ours, engine="ctranslate2"))],
        "huggingface": [timed_once(partial(ours, engine="huggingface", compute_type=precision))],
        "peer": [timed_once(partial(stock, model, source, size, precision)) for size in PEERS_BATCHES],
    }
    best = {name: max(some, key=lambda one: one.speed) for name, some in found.items()}
    peer, line = best["peer"], {"unit": "sentences/s", "precision": precision, "threads": threads}
    for name, one in best.items():
        line |= {name: round(one.speed, 2), f"processor_{name}": round(one.processor_speed, 2)}
        if name != "peer":
            same = sum(a == b for a, b in zip(one.texts, peer.texts, strict=True))
            line |= {f"ratio_{name}": round(one.speed / peer.speed, 2), f"same_{name}": same}
    return line


class Timed(NamedTuple):
    """Translations, and how many came in a second."""

    speed: float
    processor_speed: float
    texts: list[str]


def timed_once(translate: Callable[[], list[str]]) -> Timed:
    """One call."""
    clock, processor = time.perf_counter(), time.process_time()
    texts = translate()
    return Timed(SENTENCES / (time.perf_counter() - clock), SENTENCES / (time.process_time() - processor), texts)


def stock(model: Path, source: Path, tokens: int, precision: str) -> list[str]:
    """What `generate` writes by itself behind the same prompts, in batches of so many tokens of rows of similar length."""
    from transformers import AutoModelForCausalLM

    from workflow_scripts.models.search import padded_batches
    from workflow_scripts.models.tokenisation import load_codec

    codec, device = load_codec(model), pick_device("auto")
    network: Any = AutoModelForCausalLM.from_pretrained(model, dtype=precision)
    network = network.to(device)
    rows = codec.asked(codec.pieces(codec.behind_blank([*read_lines(source)])), LANGUAGES)
    texts = [""] * len(rows)
    search = {"max_new_tokens": LONGEST_ANSWER, "do_sample": False, "eos_token_id": codec.ends(network), "pad_token_id": codec.pad}
    for places, batch in padded_batches(rows, tokens, codec, device):
        written = network.generate(**batch, **search)[:, batch["input_ids"].shape[1] :]
        for place, text in zip(places, codec.decode(written.tolist()), strict=True):
            texts[place] = text
    return texts


if __name__ == "__main__":
    if sys.argv[1:2] and sys.argv[1] in ("ours", "peer"):
        print(json.dumps(case(*sys.argv[1:])))
    else:
        main(*sys.argv[1:])
