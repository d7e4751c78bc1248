r"""What each part of an update is worth: target tokens per second without it, or with what was left out.

python -m benchmarks.update results/backbones/bible/model results/corpora/help.de-en/train de en [updates] [batch tokens] [threads]

One JSON line per variant of the update that `training` makes: `ours` is that update, `peer` the variant, both the
median of three runs in turn, each a process of its own that warms up on a tenth as many updates first. `ready`
is how many seconds the variant's warm-up took longer than ours: what torch.compile costs each job.
"""

import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from statistics import median
from typing import Any, Literal

import numpy as np
import torch
import torch.nn.functional as F

import benchmarks
from workflow_scripts.device import chip, computed_by, keep_memory, pick_device, pick_precision
from workflow_scripts.models import products
from workflow_scripts.models.batches import Row, collate
from workflow_scripts.models.tokenisation import load_codec
from workflow_scripts.start import use_huge_pages
from workflow_scripts.training.dropout import quick_dropout
from workflow_scripts.training.loop import load_model, pick_loss
from workflow_scripts.training.mixed_precision import mixed_precision
from workflow_scripts.training.rows import Batches, ParallelText
from workflow_scripts.training.settings import Training

ROUNDS = 3
OURS = "ours"
VARIANTS = (
    "compiled",
    "other precision",
    "other precision, PyTorch's attention",
    "plain loss",
    "eager attention",
    "AdamW not fused",
    "rows in random order",
    "PyTorch's dropout",
    "the other library's products",
    "pages of 4 KB",
)


def main(model: str, text: str, source: str, target: str, updates: str = "100", tokens: str = "500", threads: str = "1") -> None:
    """Print the comparisons."""
    runs: dict[str, list[dict]] = {name: [] for name in (OURS, *VARIANTS)}
    for _ in range(ROUNDS):
        for name, done in runs.items():
            done.append(apart(model, text, source, target, updates, tokens, threads, name))
    speed = {name: median(run["speed"] for run in done) for name, done in runs.items()}
    warm_up = {name: median(run["warm_up"] for run in done) for name, done in runs.items()}
    for name in VARIANTS:
        line: dict[str, Any] = {"case": name, "unit": "target tokens/s", "ours": speed[OURS], "peer": speed[name]}
        line |= {"ratio": round(speed[OURS] / speed[name], 2), "ready": round(warm_up[name] - warm_up[OURS], 1)}
        print(json.dumps({**line, "model": model, "batch_tokens": int(tokens), **runs[name][0]["setup"]}), flush=True)


def apart(*arguments: str) -> dict:
    """`case` with these arguments, in a process of its own."""
    environment = dict(os.environ)
    if arguments[-1] != "pages of 4 KB":  # where a machine gives huge pages to all, or to none, the variant is the same as ours
        use_huge_pages(environment)
    return benchmarks.apart("update", *arguments, env=environment)


def case(model: str, text: str, source: str, target: str, updates: int, tokens: int, threads: int, variant: str) -> dict:
    """Speed of one variant."""
    keep_memory()
    torch.set_num_threads(threads)
    chosen: Literal["plain", "chunked"] = "plain" if variant == "plain loss" else "chunked"
    settings = Training(batch_tokens=tokens, dropout=0.1, attention_dropout=0.0, max_length=128, loss=chosen)
    device = pick_device("auto")
    precision = pick_precision("auto", device)
    if variant.startswith("other precision"):
        precision = "float32" if precision == "bfloat16" else "bfloat16"
    network: Any = load_model(Path(model), settings, 1)
    network.config.use_cache = False
    network.to(device).train()
    if variant == "eager attention":
        network.set_attn_implementation("eager")
    codec = load_codec(model)
    pad = codec.tokenizer.pad_token_id
    rounds = ParallelText(Path(f"{text}.{source}"), Path(f"{text}.{target}"), (source, target), codec, settings)
    batched = in_random_order if variant == "rows in random order" else Batches
    planned = list(batched(rounds, tokens, updates + updates // 10, 1))
    batches = [collate(rows, pad) for rows in planned]
    loss = pick_loss(network, settings, precision)
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-4, weight_decay=0.0, fused=variant != "AdamW not fused")
    forward = torch.compile(network, dynamic=True) if variant == "compiled" else network

    def update(batch: dict[str, torch.Tensor]) -> None:
        tensors = {name: tensor.to(device, non_blocking=True) for name, tensor in batch.items()}
        labels = tensors.pop("labels")
        loss(forward(**tensors), labels, (labels != -100).sum()).backward()
        optimizer.step()
        optimizer.zero_grad()

    def seconds(some: list[dict[str, torch.Tensor]]) -> float:
        started = time.perf_counter()
        for batch in some:
            update(batch)
        if device.type == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter() - started

    if variant in ("the other library's products", "compiled"):  # the compiler calls oneDNN itself
        onednn = variant != "compiled" and not products.has_onednn()
        products.has_onednn = lambda: onednn  # type: ignore[assignment]
    dropout = nullcontext() if variant == "PyTorch's dropout" else quick_dropout(device)
    plain = {"scaled_dot_product_attention": F.scaled_dot_product_attention} if variant.endswith("PyTorch's attention") else {}
    with dropout, products.quick_products(), mixed_precision(network, precision), computed_by(device, **plain):
        warm_up = seconds(batches[updates:])
        taken = seconds(batches[:updates])
    spent = sum(batch["labels"].numel() + batch["input_ids"].numel() for batch in batches[:updates])
    counted = sum(len(labels) for rows in planned[:updates] for _, labels in rows)
    read = sum(len(ids) for rows in planned[:updates] for ids, _ in rows)
    setup = {"device": chip(device), "threads": threads, "precision": precision, "padding": round(1 - (counted + read) / spent, 3)}
    return {"speed": round(counted / taken), "warm_up": round(warm_up, 2), "setup": setup}


def in_random_order(rounds: ParallelText, tokens: int, batches: int, seed: int) -> Iterator[list[Row]]:
    """Batches of at most `tokens` tokens as the rows come, short and long ones together."""
    rows = rounds.epoch(0)
    batch: list[Row] = []
    longest = made = 0
    for index in np.random.default_rng(seed).permutation(len(rows)):
        length = max(map(len, rows[index]))
        if batch and (len(batch) + 1) * max(longest, length) > tokens:
            yield batch
            batch, longest, made = [], 0, made + 1
            if made == batches:
                return
        batch.append(rows[index])
        longest = max(longest, length)
    sys.exit(f"the text has {len(rows)} pairs, too few for {batches} batches of {tokens} tokens")


if __name__ == "__main__":
    if sys.argv[-1] in (OURS, *VARIANTS):
        model, text, source, target, updates, tokens, threads, variant = sys.argv[1:]
        print(json.dumps(case(model, text, source, target, int(updates), int(tokens), int(threads), variant)))
    else:
        main(*sys.argv[1:])
