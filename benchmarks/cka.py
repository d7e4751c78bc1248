r"""How long CKA takes beside the forward passes that it needs: every layer of one model with every layer of another.

python -m benchmarks.cka results/backbones/bible/model other/model results/corpora/help.de-en/train.de de [texts] [threads]

A model may be named twice. One JSON line, of one run in one process: `peer` is the forward passes alone, with texts batched by length and
each layer pooled; `ours` is the whole of `evidence.cka` on the same texts, which has the same passes in it; both in seconds. The ratio
should be below 2. `ratio_cpu` is that of processor seconds, which hang less on other work on the machine. `benchmarks.random_mbart`
makes models of any shape.
"""

import json
import sys
import time
from pathlib import Path

import torch

from benchmarks import peak_gb
from workflow_scripts.device import chip, pick_device
from workflow_scripts.evidence.cka import NEEDED, Cka, compare, pairs_of
from workflow_scripts.evidence.states import encoded, open_half, pooled, read_texts


def main(model: str, other: str, text: str, code: str, texts: str = "10000", threads: str = "1") -> None:
    """Print the comparison."""
    torch.set_num_threads(int(threads))
    settings = Cka(texts=int(texts), layers="all")
    (lines,) = read_texts([Path(text)], [code], settings.texts, NEEDED, parallel=False, seed=1)
    halves = [open_half(path, Path(path)) for path in (model, other)]
    for half in halves:  # warm up
        pooled(half, encoded(half, lines[:50], code), ["mean"], settings.batch_tokens)
    started, begun = time.perf_counter(), time.process_time()
    for half in halves:
        # as large as in CKA itself, so that no more is held
        rows = encoded(half, lines, code)
        order = sorted(range(len(rows)), key=lambda i: len(rows[i]))
        for at in range(0, len(order), settings.block):
            pooled(half, [rows[i] for i in order[at : at + settings.block]], ["mean"], settings.batch_tokens)
    _wait()
    passes, passes_cpu = time.perf_counter() - started, time.process_time() - begun
    started, begun = time.perf_counter(), time.process_time()
    pairs = pairs_of([half.depth for half in halves], [model, other], 1, False, [(0, 1)], settings)
    compare(
        pairs,
        lambda at, number, _: pooled(halves[number], encoded(halves[number], lines[at], code), ["mean"], settings.batch_tokens),
        len(lines),
        [half.width for half in halves],
        settings,
    )
    _wait()
    whole, whole_cpu = time.perf_counter() - started, time.process_time() - begun
    sizes = {"texts": len(lines), "layers": [half.depth for half in halves], "width": [half.width for half in halves], "pairs": len(pairs)}
    device = chip(pick_device("auto"))
    line = {"case": "cka", "unit": "s", "ours": round(whole, 2), "peer": round(passes, 2), "ratio": round(whole / passes, 3)}
    line["ratio_cpu"] = round(whole_cpu / passes_cpu, 3)
    print(json.dumps({**line, **sizes, "threads": int(threads), "device": device, "peak_gb": round(peak_gb(), 2)}), flush=True)


def _wait() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


if __name__ == "__main__":
    main(*sys.argv[1:])
