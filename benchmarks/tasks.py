r"""Finetuning a head against the stock Trainer with length grouping, and prediction against a loop over fixed batches.

python -m benchmarks.tasks results/backbones/small-xlmr/model results/labelled/small-pos/train.en.tsv [batch size] [updates] [sentences]

Token labelling: the same model, rows, batch size, optimiser and number of updates. Each training is a process of its own, three of each in
turn, and medians are compared; the time is that between the first and the last update. Prediction is measured in one process, three
times each in turn, on so many of the sentences in their order; both give the same tags but for rounding. Prints a JSON line for each.
"""

import json
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import torch

from benchmarks import apart, clock
from workflow_scripts.device import keep_memory

ROUNDS, LENGTH = 3, 128


def main(model: str, table: str, batch: str = "16", updates: str = "120", sentences: str = "1500") -> None:
    """Print the comparisons."""
    runs: dict[str, list[dict]] = {"ours": [], "peer": []}
    for _ in range(ROUNDS):
        for which, done in runs.items():
            done.append(apart("tasks", which, model, table, batch, updates))
    ours, peer = (median(run["speed"] for run in runs[which]) for which in runs)
    shared = {"model": model, "batch": int(batch), "threads": torch.get_num_threads()}
    losses = {f"loss_{which}": round(median(run["loss"] for run in done), 3) for which, done in runs.items()}
    line = {"case": "finetuning", "unit": "sentences/s", "ours": ours, "peer": peer, "ratio": round(ours / peer, 2)}
    print(json.dumps({**line, "updates": int(updates), **losses, **shared}), flush=True)
    print(json.dumps({**prediction(model, table, int(batch), int(sentences)), **shared}), flush=True)


def prepared(model: str, table: str, sentences: int | None = None):
    """The reader, the tagger, the rows of the table and all tags."""
    from workflow_scripts.tasks.head_model import load_token_head
    from workflow_scripts.tasks.labelling import Labelling, WordReader
    from workflow_scripts.text.examples import read_table

    examples = read_table(Path(table))[:sentences]
    labels = sorted({tag for example in examples for tag in example.label.split(" ")})
    reader = WordReader(Path(model), LENGTH)
    rows = reader.rows(reader.windows(examples), "en", labels)
    return reader, load_token_head(Path(model), "labelling", labels, Labelling(dropout=0.1, attention_dropout=0.1), seed=1), rows, labels


def ours(model: str, table: str, batch: int, updates: int) -> dict[str, float]:
    """Our loop."""
    from workflow_scripts.tasks.finetuning import Batches, phase_settings
    from workflow_scripts.tasks.head_model import summed_loss
    from workflow_scripts.tasks.labelling import Labelling
    from workflow_scripts.training.callbacks import Progress, Watch
    from workflow_scripts.training.checkpoints import Deadline
    from workflow_scripts.training.trainer import fit

    reader, network, rows, _ = prepared(model, table)
    settings = Labelling(batch_size=batch, learning_rate=1e-3)
    rows = rows[: batch * updates]
    batches = Batches(lambda epoch: rows, len(rows), -(-batch * updates // len(rows)), settings, 1)
    training = phase_settings(settings, updates, updates)
    training.log_every = updates
    with tempfile.TemporaryDirectory() as folder:
        watch = Watch(Path(folder), training, Deadline(0))
        progress = Progress(batch, "examples")
        history = fit(network, batches, 1, reader.collate, summed_loss, lambda: {"eval_loss": 1.0}, watch, progress, 1)
    first, last = (entry for entry in history if "loss" in entry)
    return {"speed": round((updates - 1) * batch / (last["seconds"] - first["seconds"]), 1), "loss": last["loss"]}


def peer(model: str, table: str, batch: int, updates: int) -> dict[str, float]:
    """The stock Trainer."""
    from transformers import Trainer, TrainingArguments

    reader, network, rows, _ = prepared(model, table)
    timed = clock(1, updates)
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            output_dir=folder,
            max_steps=updates,
            per_device_train_batch_size=batch,
            train_sampling_strategy="group_by_length",
            learning_rate=1e-3,
            warmup_steps=round(0.1 * updates),
            max_grad_norm=1.0,
            bf16=torch.cuda.is_available(),
            logging_steps=updates,
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
            remove_unused_columns=False,
            seed=1,
        )
        dataset = [{"input_ids": ids, "labels": tags} for ids, tags in rows[: batch * updates]]
        collate: Any = lambda items: reader.collate([(item["input_ids"], item["labels"]) for item in items])  # noqa: E731
        trainer = Trainer(model=network, args=arguments, train_dataset=dataset, data_collator=collate, callbacks=[timed])
        trainer.train()
    loss = next(entry["loss"] for entry in reversed(trainer.state.log_history) if "loss" in entry)
    return {"speed": round((updates - 1) * batch / (timed.times[-1] - timed.times[0]), 1), "loss": loss}


def prediction(model: str, table: str, batch: int, sentences: int) -> dict[str, Any]:
    """Our prediction, and a loop over batches of `batch` sentences in their order, each padded to its longest."""
    from workflow_scripts.device import pick_device
    from workflow_scripts.tasks.labelling import word_scores

    reader, network, rows, _ = prepared(model, table, sentences)
    network = network.to(pick_device("auto")).eval()

    @torch.no_grad()
    def fixed() -> torch.Tensor:
        found = []
        for start in range(0, len(rows), batch):
            tensors = {name: tensor.to(network.device) for name, tensor in reader.collate(rows[start : start + batch]).items()}
            wanted = tensors.pop("labels") >= 0
            found.append(network(**tensors).logits[wanted].float().cpu())
        return torch.cat(found)

    seconds: dict[str, list[float]] = {"ours": [], "peer": []}
    answers: dict[str, torch.Tensor] = {}
    for _ in range(ROUNDS):
        for which, answer in (("ours", lambda: word_scores(network, reader, rows, "float32")), ("peer", fixed)):
            started = time.perf_counter()
            answers[which] = answer()
            seconds[which].append(time.perf_counter() - started)
    same = float((answers["ours"].argmax(dim=1) == answers["peer"].argmax(dim=1)).float().mean())
    speed = {which: round(len(rows) / median(taken), 1) for which, taken in seconds.items()}
    return {"case": "prediction", "unit": "sentences/s", **speed, "ratio": round(speed["ours"] / speed["peer"], 2), "same_tags": same}


if __name__ == "__main__":
    keep_memory()
    if sys.argv[1:2] and sys.argv[1] in ("ours", "peer"):
        run = {"ours": ours, "peer": peer}[sys.argv[1]]
        print(json.dumps(run(sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5]))))
    else:
        main(*sys.argv[1:])
