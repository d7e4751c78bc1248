"""A phase of training, small enough for a test."""

import csv
from functools import partial

import zstandard
from safetensors.torch import load_file
from tiny_models import manual_pairs, small_model

from workflow_scripts.training import training
from workflow_scripts.training.job import TrainingJob

TINY = {
    "batch_tokens": 400,
    "learning_rate": 5e-3,
    "warmup_updates": 3,
    "max_length": 64,
    "bleu_sentences": 4,
    "log_every": 2,
    "dropout": 0.1,
}


def phase_files(folder):
    """A folder with training and dev text and noised rounds, and a model."""
    german, english = manual_pairs(200)
    for name, lines in (("train.de", german[:170]), ("train.en", english[:170]), ("dev.de", german[170:]), ("dev.en", english[170:])):
        (folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    (folder / "noised").mkdir()
    for name, start in (("round0", 0), ("round1", 50), ("dev", 100)):
        for code, lines in (("de", german), ("en", english)):
            rows = "".join(f"<mask> {line}\t{line}\n" for line in lines[start : start + 50])
            (folder / "noised" / f"{name}.{code}.tsv.zst").write_bytes(zstandard.compress(rows.encode()))
    return folder, small_model(folder)


def finetune(folder, start, out, settings, **changes):
    """A task phase; a pretext phase where `changes` name a folder `noised`."""
    text = {f"{part}_{side}": folder / f"{part}.{code}" for part in ("train", "dev") for side, code in (("source", "de"), ("target", "en"))}
    files = {"start": start, "model": out / "model", "curve": out / "curve.tsv", "report": out / "training.json"}
    arguments = {**files, "checkpoints": out / "checkpoints", "languages": ("de", "en"), "threads": 1, **changes}
    job = TrainingJob(**{name: arguments.pop(name) for name in TrainingJob._fields if name in arguments})
    call = training.restore if "noised" in changes else partial(training.translate, **text)
    call(job, settings=settings, **arguments)
    return load_file(out / "model" / "model.safetensors")


def curve_of(out):
    """The rows of a phase's learning curve."""
    with open(out / "curve.tsv", encoding="utf-8") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def assert_alike(start, one, other, share=0.02):
    """Two trainings from `start` ended at the same weights, up to a share of the longest way that a weight went.

    Some weights have no gradient but rounding, such as the bias of attention's keys: with their own way for a measure, they would differ.
    """
    way = max(float((one[name] - start[name]).abs().max()) for name in start.keys() & one.keys())
    assert one.keys() == other.keys() and way > 0
    far = {name: float((one[name] - other[name]).abs().max()) / way for name in one}
    worst = max(far, key=far.__getitem__)
    assert far[worst] < share, (worst, far[worst])


def assert_same(one, other):
    """Two trainings made the same updates from the same random numbers.

    A process may round otherwise than the one before it, by what it has loaded and where its memory lies, and Adam makes steps of what is
    nothing but rounding in a few weights. Other rows or other dropout would move nearly all of them.
    """
    assert one.keys() == other.keys()
    far = {name: float(((one[name] - other[name]).abs() > 1e-4).sum()) for name in one}
    assert sum(far.values()) < 0.01 * sum(weight.numel() for weight in one.values()), far
