"""The updates that are measured: their rows, their models, and what they take.

Apart from the two whole loops at the end, this needs torch, transformers and NumPy alone.
"""

import json
import re
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
import torch

from benchmarks import clock
from benchmarks.gpu.candidates import joined_products
from benchmarks.gpu.counts import Counted
from workflow_scripts import registry
from workflow_scripts.device import chip, pick_precision
from workflow_scripts.models.batches import Row, collate
from workflow_scripts.models.recognition import family_of
from workflow_scripts.training.dropout import quick_dropout
from workflow_scripts.training.graphs import WARM, recorder
from workflow_scripts.training.loop import batch_maker, network_reads, pick_loss
from workflow_scripts.training.mixed_precision import mixed_precision
from workflow_scripts.training.packing import PackedBatches, PackedRow
from workflow_scripts.training.rows import Batches
from workflow_scripts.training.settings import Training

PEAKS = {
    **{"V100": 125, "T4": 65, "A10": 125, "A30": 165, "L4": 121, "L40S": 362, "L40": 181, "A40": 150, "A100": 312, "RTX 3090": 71},
    **{"RTX 4090": 165, "H100 PCIe": 756, "H100": 989, "H200": 989, "H20": 148, "B200": 2250},
}
"""GPU → teraFLOPs a second of dense 16-bit matrix products, from NVIDIA's data sheets."""


@dataclass(frozen=True)
class Size:
    """The shape of an mBART: width, feed-forward width, layers on either side, pieces, tokens of an update."""

    width: int
    feed_forward: int
    layers: int
    pieces: int
    tokens: int


def training_flops(size: Size, rows: Iterable[Row]) -> float:
    """Floating-point operations of one update's matrix products, forwards and back, without padding and without what is computed twice.

    A weight costs six operations per piece that it multiplies (two forwards, four back). A layer's attention costs 12 × width × asking
    pieces × asked pieces, in each row, causal or not, as Chowdhery et al. (2022, appendix B) count it.
    """
    attention, feed_forward = 4 * size.width**2, 2 * size.width * size.feed_forward
    total = 0.0
    for s, t in (lengths for row in rows for lengths in sentences_of(row)):
        # the decoder's second attention multiplies what the encoder made by keys and values, its own states by the other two
        weights = size.layers * (s * (attention + feed_forward + attention / 2) + t * (1.5 * attention + feed_forward))
        pairs = size.layers * size.width * (s * s + t * t + s * t)
        total += 6 * (weights + t * size.width * size.pieces) + 12 * pairs
    return total


# ---------------------------------------------------------------------------------------------
# rows and models


class Sentences:
    """Rows of random ids; lengths are log-normal, 26 pieces on average, and alike on both sides.

    With `guess`, masked pieces are labels. With `causal`, source and target stand in one row of a decoder, and the target's are.
    """

    def __init__(self, size: Size, rows: int = 20_000, guess: bool = False, causal: bool = False):
        self.rows, self.guess = rows, guess
        self.too_long: list[dict[str, Any]] = []
        rng = np.random.default_rng(1)
        common = rng.normal(3.1, 0.6, rows)
        lengths = [np.exp(common + rng.normal(0, 0.15, rows)).clip(4, 63 if causal else 126).astype(int) for _ in range(2)]
        # frequencies as in text: the n-th most frequent piece comes 1/n as often as the first
        pieces = [np.exp(rng.random(int(side.sum())) * np.log(size.pieces - 10)).astype(int) + 4 for side in lengths]
        sides = [np.split(ids, np.cumsum(side)[:-1]) for ids, side in zip(pieces, lengths, strict=True)]
        self._rows: list[Row] = [(a.tolist(), b.tolist()) for a, b in zip(*sides, strict=True)]
        if guess:
            self._rows = [(a, np.where(rng.random(len(a)) < 0.15, a, -100).tolist()) for a, _ in self._rows]
        if causal:
            # each label is the next piece of the row
            self._rows = [([*a, *b[:-1]], [-100] * (len(a) - 1) + [*b]) for a, b in self._rows]

    def epoch(self, number: int) -> list[Row]:
        return self._rows

    def lengths(self, number: int) -> None:
        return None


def mbart(size: Size, device: torch.device, **changes: Any) -> Any:
    """An mBART of random numbers, made on the device."""
    from transformers import MBartConfig, MBartForConditionalGeneration

    parts = {"layers": size.layers, "attention_heads": max(1, size.width // 64), "ffn_dim": size.feed_forward}
    shape: dict[str, Any] = {f"{side}_{name}": number for side in ("encoder", "decoder") for name, number in parts.items()}
    config = MBartConfig(vocab_size=size.pieces, d_model=size.width, scale_embedding=True, **shape, **changes)
    config.dropout, config.attention_dropout = 0.1, 0.0
    with device:
        return MBartForConditionalGeneration(config).train()


def xlmr(size: Size, device: torch.device) -> Any:
    """An XLM-R of random numbers."""
    from transformers import XLMRobertaConfig, XLMRobertaForMaskedLM

    shape: dict[str, Any] = {"hidden_size": size.width, "intermediate_size": size.feed_forward, "num_hidden_layers": size.layers}
    heads: dict[str, Any] = {"num_attention_heads": max(1, size.width // 64), "max_position_embeddings": 514, "pad_token_id": 1}
    with device:
        return XLMRobertaForMaskedLM(XLMRobertaConfig(vocab_size=size.pieces, **shape, **heads)).train()


# ---------------------------------------------------------------------------------------------
# an update


def updates_of(
    network: Any,
    size: Size,
    number: int,
    *,
    loss: str = "chunked",
    precision: str = "auto",
    autocast: bool = False,
    fused: bool = True,
    compiled: bool = False,
    shuffled: bool = False,
    ahead: bool = True,
    cudnn: bool = False,
    decoder: bool = True,
    asking: bool = False,
    packed: bool = False,
    recorded: bool = False,
    joined: bool = False,
) -> dict[str, Any]:
    """Speed and memory of `number` updates after a few that warm up; the settings are those of the variants of part b.

    With `asking`, masks and loss are asked about what the processor knows, as they were before. `calls` and `waits` are those of the last
    update that warms up, which is behind the recording. Compiled layers have none, as torch gives up compiled code where it is counted.
    Raises torch's error where layers of one shape are compiled again after the first updates.
    """
    device = network.device
    torch.backends.cuda.enable_cudnn_sdp(cudnn)
    precision = pick_precision(precision, device)
    chosen: Any = "plain" if loss == "plain" else "chunked"
    settings = Training(
        batch_tokens=size.tokens, max_length=126, loss=chosen, dropout=0.1, attention_dropout=0.0, packed=packed, recorded=recorded
    )
    warm = max(5, number // 5)
    planned = planned_updates(size, number + warm, decoder, packed)
    if shuffled:
        planned = in_any_order([row for rows in planned for row in rows], size.tokens)
        number = len(planned) - warm
    measured = pick_loss(network, settings, precision)
    codec: Any = SimpleNamespace(pad=1, form=SimpleNamespace(decoder=decoder, causal=False), start=None)
    to_batch = partial(collate, pad=1, decoder=decoder) if asking else batch_maker(codec, settings, chosen == "chunked" and not recorded)
    made = (pinned(to_batch(rows), device) for rows in planned)
    batches: Iterable[dict[str, Any]] = list(made) if ahead else made
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-5, weight_decay=0.0, fused=fused)
    if compiled:
        for layer in (*network.model.encoder.layers, *network.model.decoder.layers):
            layer.compile(dynamic=not packed)

    def passes(tensors: dict[str, Any]) -> None:
        labels = tensors.pop("labels")
        with torch.autocast(device.type, torch.bfloat16, enabled=autocast and precision == "bfloat16"):
            measured(network(**tensors), labels, (labels != -100).sum()).backward()

    began, counted = time.perf_counter(), Counted()
    # what is compiled again while a graph is recorded spoils it
    compiled_once = torch._dynamo.config.patch(error_on_recompile=True) if compiled and packed else nullcontext()
    known = nullcontext() if asking else network_reads(network, packed)
    with (
        known,
        joined_products(network) if joined else nullcontext(),
        quick_dropout(device),
        mixed_precision(network, "float32" if autocast else precision),
    ):
        replayed = recorder(network, measured) if recorded else None
        for at, batch in enumerate(batches):
            if at == warm:
                wait(device)
                ready, began = time.perf_counter() - began, time.perf_counter()
            tensors = {name: tensor.to(device, non_blocking=True) for name, tensor in batch.items()}
            with counted if at == warm - 1 and not compiled else nullcontext(), compiled_once if at >= WARM else nullcontext():
                if replayed:
                    replayed({**tensors, "items": (tensors["labels"] != -100).sum()})
                else:
                    passes(tensors)
                optimizer.step()
                optimizer.zero_grad()
    wait(device)
    seconds = time.perf_counter() - began
    used = planned[warm:]
    return {
        **speeds(size if decoder else None, used, seconds, device, precision),
        "ms": round(1e3 * seconds / len(used), 2),
        "ready_s": round(ready, 2),
        "precision": precision,
        "padding": round(1 - sum(len(a) + len(b) for rows in used for a, b, *_ in rows) / sum(map(cells, used)), 3)
        if not packed
        else round(1 - sum(len(row[0]) + len(row[1]) for rows in used for row in rows) / (2 * len(used) * len(used[0]) * ROW), 3),
        **({} if compiled else {"calls": counted.calls, "waits": sum(counted.waits.values())}),
    }


@contextmanager
def updating(
    network: Any, size: Size, packed: bool, recorded: bool = False, decoder: bool = True, selected: bool = True
) -> Iterator[Callable[[list[Any]], None]]:
    """Context in which a network computes as in training; it gives what makes an update of rows: tensors, both passes, the optimiser.

    What is not `selected` has scores of all places, as what is recorded always has.
    """
    device = network.device
    precision = pick_precision("auto", device)
    settings = Training(batch_tokens=size.tokens, max_length=126, packed=packed, recorded=recorded or not selected)
    measured = pick_loss(network, settings, precision)
    codec: Any = SimpleNamespace(pad=1, form=SimpleNamespace(decoder=decoder, causal=family_of(network.config).causal), start=None)
    to_batch = batch_maker(codec, settings, select=not settings.recorded)
    learnt = [weight for weight in network.parameters() if weight.requires_grad]
    optimizer = torch.optim.AdamW(learnt, lr=1e-5, weight_decay=0.0, fused=True)
    replayed = recorder(network, measured) if recorded else None

    def run(rows: list[Any]) -> None:
        tensors = {name: tensor.to(device, non_blocking=True) for name, tensor in pinned(to_batch(rows), device).items()}
        if replayed:
            replayed({**tensors, "items": (tensors["labels"] != -100).sum()})
        else:
            labels = tensors.pop("labels")
            measured(network(**tensors), labels, (labels != -100).sum()).backward()
        optimizer.step()
        optimizer.zero_grad()

    with network_reads(network, packed), quick_dropout(device), mixed_precision(network, precision):
        yield run


ROW = 128
"""Places of a packed row."""


def planned_updates(size: Size, number: int, decoder: bool = True, packed: bool = False, causal: bool = False) -> list[list[Any]]:
    """The rows of so many updates: of an encoder and a decoder, of an encoder alone, or of a `causal` decoder."""
    planned = Sentences(size, guess=not decoder, causal=causal), size.tokens, number, 1
    return list(PackedBatches(*planned, ROW) if packed else Batches(*planned))


def sentences_of(row: Any) -> list[tuple[int, int]]:
    """Of a row, or of each sentence of a packed row, how many ids are read, and how many labels there are."""
    return row.lengths if isinstance(row, PackedRow) else [(len(row[0]), len(row[1]))]


def pinned(batch: dict[str, torch.Tensor], device: torch.device) -> dict[str, torch.Tensor]:
    """A batch in memory from which it can be sent to a GPU while the processor goes on."""
    return {name: tensor.pin_memory() for name, tensor in batch.items()} if device.type == "cuda" else batch


def speeds(size: Size | None, updates: list[list[Row]], seconds: float, device: torch.device, precision: str) -> dict[str, Any]:
    """Tokens and updates a second, and the share of the peak; without a `size`, that share is left out."""
    tokens = sum(sum(label != -100 for label in row[1]) for rows in updates for row in rows)
    found: dict[str, Any] = {
        "target_tokens_per_s": round(tokens / seconds),
        "updates_per_s": round(len(updates) / seconds, 3),
        "tokens_per_update": round(tokens / len(updates)),
    }
    if size:
        flops = sum(training_flops(size, rows) for rows in updates) / seconds
        found["tflops"] = round(flops / 1e12, 3)
        if device.type == "cuda" and precision == "bfloat16" and (peak := peak_of(chip(device))):
            found["mfu"] = round(flops / peak / 1e12, 3)
    return found


def peak_of(name: str) -> float | None:
    """The peak of a GPU by its name, in teraFLOPs a second."""
    return next((peak for part, peak in sorted(PEAKS.items(), key=lambda row: -len(row[0])) if re.search(rf"\b{part}\b", name)), None)


def in_any_order(rows: list[Row], tokens: int) -> list[list[Row]]:
    """Batches of the rows as they come, short and long ones together."""
    batches: list[list[Row]] = [[]]
    for index in np.random.default_rng(1).permutation(len(rows)):
        batch = batches[-1]
        if batch and (len(batch) + 1) * max(max(map(len, row)) for row in (*batch, rows[index])) > tokens:
            batches.append([])
        batches[-1].append(rows[index])
    return batches


def cells(rows: list[Row]) -> int:
    """Ids of both sides, padding included."""
    return sum(len(rows) * max(len(row[side]) for row in rows) for side in (0, 1))


def wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize()


# ---------------------------------------------------------------------------------------------
# whole loops


class Enough(Exception):
    """All has been measured. A checkpoint of a large model would take longer than its updates."""


def our_loop(size: Size, device: torch.device, number: int, **changes: Any) -> dict[str, Any]:
    """The same updates by the loop of `training`, batches made and sent in the background, up to the first look at the dev set.

    What is logged is logged every `number` updates, after `number` updates that warm up. `changes` are settings of training.
    """
    from workflow_scripts.training.loop import train
    from workflow_scripts.training.rows import Dev
    from workflow_scripts.training.trainer import PhaseTrainer

    def enough(*_: Any, **__: Any) -> None:
        raise Enough

    given: dict[str, Any] = {
        "updates": 2 * number,
        "evaluate_every": 2 * number,
        "log_every": number,
        "max_length": 126,
        "checkpoint": "last",
        "loss_every": 0,
        "device": device.type,
        **changes,
    }
    settings = Training(batch_tokens=size.tokens, bleu_sentences=0, warmup_updates=2, dropout=0.1, attention_dropout=0.0, **given)
    sentences = Sentences(size)
    codec: Any = SimpleNamespace(tokenizer=SimpleNamespace(pad_token_id=1), pad=1, form=registry.entry("family", "mbart"), start=None)
    torch.backends.cuda.enable_cudnn_sdp(False)
    taken: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        with patch.object(PhaseTrainer, "evaluate", enough), suppress(Enough):
            dev = [Dev(sentences.epoch(0)[:8], "en")]
            train(mbart(size, device), codec, sentences, dev, Path(folder), 1, settings, taken=taken)
        history = [json.loads(line) for line in Path(folder, "log.jsonl").read_text("utf-8").splitlines()]
    at = {entry["step"]: entry["seconds"] for entry in history if "loss" in entry}
    planned = planned_updates(size, 2 * number, packed=settings.packed)[number:]
    seconds = at[2 * number] - at[number]
    return {**speeds(size, planned, seconds, device, pick_precision("auto", device)), "ms": round(1e3 * seconds / number, 2), **taken}


def stock_loop(size: Size, device: torch.device, number: int, cudnn: bool = True) -> dict[str, Any]:
    """The stock Seq2SeqTrainer on as many of the same rows in as many updates, grouped by length, as many rows at once as ours hold.

    With `cudnn`, PyTorch's default, attention plans anew for each shape; a user who knows that turns it off.
    """
    from transformers import Seq2SeqTrainer, Seq2SeqTrainingArguments

    warm = max(2, number // 5)
    planned = list(Batches(Sentences(size), size.tokens, number + warm, 1))
    rows = [row for batch in planned for row in batch]
    at_once = len(rows) // len(planned)
    timed = clock(warm, number + warm)
    read: list[list[Row]] = []

    def pad(items: list[dict[str, Any]]) -> dict[str, torch.Tensor]:
        """What the stock collator makes of rows, which would ask for a tokenizer."""
        read.append([(item["input_ids"], item["labels"]) for item in items])
        return collate(read[-1], 1)

    precision = pick_precision("auto", device)
    torch.backends.cuda.enable_cudnn_sdp(cudnn)
    with tempfile.TemporaryDirectory() as folder:
        arguments = Seq2SeqTrainingArguments(
            output_dir=folder,
            max_steps=number + warm,
            per_device_train_batch_size=at_once,
            train_sampling_strategy="group_by_length",
            learning_rate=1e-5,
            label_smoothing_factor=0.2,
            max_grad_norm=0.0,
            bf16=precision == "bfloat16",
            use_cpu=device.type == "cpu",
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
        )
        arguments._n_gpu = min(arguments.n_gpu, 1)
        items = [{"input_ids": a, "attention_mask": [1] * len(a), "labels": b} for a, b in rows]
        trainer = Seq2SeqTrainer(model=mbart(size, device), args=arguments, train_dataset=items, data_collator=pad, callbacks=[timed])
        trainer.train()
    seconds = timed.times[-1] - timed.times[0]
    return {**speeds(size, read[warm : number + warm], seconds, device, precision), "ms": round(1e3 * seconds / number, 2)}
