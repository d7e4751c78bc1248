r"""A finetune phase against the stock Seq2SeqTrainer: target tokens per second, peak memory, loss after the same updates.

python -m benchmarks.training results/backbones/bible/model results/corpora/help.de-en/train de en \
    [updates] [batch tokens] [peer's rows] [our model]

The same model, optimiser and precision, and the same pairs once each in the same number of updates, so that an
update has the same target tokens on average (stock batches have a fixed number of rows, grouped by length). Each
run is a process of its own, three of each in turn, and medians are compared. Prints a JSON line for speed and one
for memory; on a GPU give the peer the number of rows that just fits, of which several may make an update. `our
model` is the same model trimmed to the text, where that is to be compared: its loss is another one then, as fewer
pieces share the probability.
"""

import json
import sys
import tempfile
from pathlib import Path
from statistics import mean, median

import numpy as np
import torch

from benchmarks import apart, clock, peak_gb
from workflow_scripts.device import chip, keep_memory, pick_device, pick_precision
from workflow_scripts.text.files import read_lines, write_lines

ROUNDS, DEV, MAX_LENGTH = 3, 16, 128
SCIENCE = {"learning_rate": 1e-3, "warmup": 20, "smoothing": 0.2, "dropout": 0.3}


def main(
    model: str, text: str, source: str, target: str, updates: str = "100", tokens: str = "1000", rows: str = "0", trimmed: str = ""
) -> None:
    """Print the comparison."""
    runs: dict[str, list[dict]] = {"ours": [], "peer": []}
    for _ in range(ROUNDS):
        for which, done in runs.items():
            start = (trimmed or model) if which == "ours" else model
            done.append(apart("training", which, start, text, source, target, updates, tokens, rows))
    shared = {"model": model, "trimmed": bool(trimmed), "device": runs["ours"][0]["device"], "updates": int(updates)}
    shared |= {name: runs["peer"][0][name] for name in ("rows", "accumulated")}
    shared |= {f"loss_{which}": round(median(run["loss"] for run in done), 3) for which, done in runs.items()}
    shared |= {f"target_tokens_{which}": done[0]["target_tokens"] for which, done in runs.items()}
    for quantity, unit in (("speed", "target tokens/s"), ("peak_gb", "GB")):
        ours, peer = (median(run[quantity] for run in runs[which]) for which in runs)
        line = {"case": quantity, "unit": unit, "ours": ours, "peer": peer, "ratio": round(ours / peer, 2), **shared}
        print(json.dumps(line), flush=True)


def sample(model: str, text: str, source: str, target: str, updates: int, tokens: int):
    """Codec, encoded pairs, which of them are trained on (the first `DEV` are the dev set), and rows of an update."""
    from workflow_scripts.models.tokenisation import load_codec
    from workflow_scripts.training.ragged import Rows
    from workflow_scripts.training.rows import read_aligned
    from workflow_scripts.training.too_long import Room

    codec = load_codec(model)
    pairs = Rows(
        *read_aligned(Path(f"{text}.{source}"), Path(f"{text}.{target}"), (source, target), codec, Room(MAX_LENGTH, leave_out=False)).sides
    )
    rows = max(1, round(tokens / mean(max(map(len, pair)) for pair in pairs)))
    if rows * updates > len(pairs) - DEV:
        sys.exit(f"{text} has {len(pairs)} pairs, too few for {updates} updates of about {rows}")
    chosen = DEV + np.random.default_rng(1).permutation(len(pairs) - DEV)[: rows * updates]
    return codec, pairs, chosen.tolist(), rows


def ours(model: str, text: str, source: str, target: str, updates: int, tokens: int, _: int) -> dict:
    """Our loop."""
    from workflow_scripts.training.loop import load_model, train
    from workflow_scripts.training.rows import Batches, Dev, ParallelText
    from workflow_scripts.training.settings import Training

    settings = Training(
        updates=updates,
        batch_tokens=tokens,
        learning_rate=SCIENCE["learning_rate"],
        warmup_updates=int(SCIENCE["warmup"]),
        label_smoothing=SCIENCE["smoothing"],
        dropout=SCIENCE["dropout"],
        attention_dropout=0.0,
        max_length=MAX_LENGTH,
        evaluate_every=updates,
        bleu_sentences=0,
        checkpoint="last",
        log_every=updates,
    )
    codec, pairs, chosen, _ = sample(model, text, source, target, updates, tokens)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for code in (source, target):
            lines = list(read_lines(Path(f"{text}.{code}")))
            write_lines(folder / f"train.{code}", (lines[i] for i in chosen))
        rounds = ParallelText(folder / f"train.{source}", folder / f"train.{target}", (source, target), codec, settings)
        history = train(load_model(model, settings, 1), codec, rounds, [Dev(pairs[:DEV], target)], folder / "checkpoints", 1, settings)
        batches = list(Batches(rounds, tokens, updates, 1))
    first, last = (entry for entry in history if "loss" in entry)
    counted = [sum(len(labels) for _, labels in batch) for batch in batches]
    return {
        "speed": round(sum(counted[1:]) / (last["seconds"] - first["seconds"])),
        "target_tokens": sum(counted),
        "loss": next(entry["eval_loss"] for entry in reversed(history) if "eval_loss" in entry),
    }


def peer(model: str, text: str, source: str, target: str, updates: int, tokens: int, fitting: int) -> dict:
    """The stock loop, with length grouping."""
    from transformers import DataCollatorForSeq2Seq, Seq2SeqTrainer, Seq2SeqTrainingArguments

    from workflow_scripts.training.loop import load_model
    from workflow_scripts.training.rows import Dev
    from workflow_scripts.training.settings import Training
    from workflow_scripts.training.validation import dev_loss

    counted: list[int] = []
    timed = clock(1, updates)
    codec, pairs, chosen, rows = sample(model, text, source, target, updates, tokens)
    accumulated = max(1, -(-rows // fitting)) if fitting else 1
    network = load_model(model, Training(dropout=SCIENCE["dropout"], attention_dropout=0.0), 1)
    pad = DataCollatorForSeq2Seq(codec.tokenizer, model=network)

    def collate(items):
        counted.append(sum(len(item["labels"]) for item in items))
        return pad(items)

    with tempfile.TemporaryDirectory() as folder:
        arguments = Seq2SeqTrainingArguments(
            output_dir=folder,
            max_steps=updates,
            per_device_train_batch_size=-(-rows // accumulated),
            gradient_accumulation_steps=accumulated,
            train_sampling_strategy="group_by_length",
            learning_rate=SCIENCE["learning_rate"],
            warmup_steps=SCIENCE["warmup"],
            lr_scheduler_type="polynomial",
            label_smoothing_factor=SCIENCE["smoothing"],
            adam_beta2=0.98,
            adam_epsilon=1e-6,
            max_grad_norm=0.0,
            bf16=pick_precision("auto", pick_device("auto")) == "bfloat16",
            use_cpu=not torch.cuda.is_available(),
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
            seed=1,
        )
        items = [{"input_ids": list(s), "attention_mask": [1] * len(s), "labels": list(t)} for s, t in (pairs[i] for i in chosen)]
        trainer = Seq2SeqTrainer(model=network, args=arguments, train_dataset=items, data_collator=collate, callbacks=[timed])
        trainer.train()
    seconds = timed.times[-1] - timed.times[0]
    return {
        "speed": round(sum(counted[accumulated : updates * accumulated]) / seconds),
        "target_tokens": sum(counted[: updates * accumulated]),
        "rows": rows,
        "accumulated": accumulated,
        "loss": dev_loss(network, codec, [Dev(pairs[:DEV], target)]),
    }


def case(which: str, *arguments: str) -> dict:
    """One run, with its device and peak memory."""
    if which == "ours":
        keep_memory()
    model, text, source, target, *numbers = arguments
    found = {"ours": ours, "peer": peer}[which](model, text, source, target, *map(int, numbers))
    return {**found, "peak_gb": round(peak_gb(torch.cuda.is_available()), 2), "device": chip(pick_device("auto"))}


if __name__ == "__main__":
    if sys.argv[1] in ("ours", "peer"):
        print(json.dumps(case(*sys.argv[1:])))
    else:
        main(*sys.argv[1:])
