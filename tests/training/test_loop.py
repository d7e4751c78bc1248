"""What an update of the training loop does beside the update itself: nothing waits for the device, and little is called."""

import json
from collections import Counter
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from tiny_models import manual_pairs, small_model

from benchmarks.gpu.counts import Counted
from workflow_scripts.models.products import quick_products
from workflow_scripts.models.tokenisation import load_codec
from workflow_scripts.noise.masking import Masking
from workflow_scripts.stage import read_json
from workflow_scripts.text.files import write_lines
from workflow_scripts.training.callbacks import Diverged, Watch
from workflow_scripts.training.dropout import quick_dropout
from workflow_scripts.training.loop import batch_maker, load_model, network_reads, pick_loss, train
from workflow_scripts.training.loss import gives_states
from workflow_scripts.training.packing import PackedBatches
from workflow_scripts.training.rows import Batches, Dev, MaskedText, ParallelText
from workflow_scripts.training.settings import Training
from workflow_scripts.training.too_long import Room

SETTINGS = Training(
    updates=6,
    batch_tokens=200,
    max_length=60,
    warmup_updates=2,
    bleu_sentences=0,
    loss_every=0,
    evaluate_every=6,
    log_every=6,
    checkpoint="last",
    attention_dropout=0.0,
    dropout=0.1,
    device="cpu",
)


def log_of(folder):
    return [json.loads(line) for line in (folder / "log.jsonl").read_text(encoding="utf-8").splitlines()]


def a_phase(folder, family):
    """A network, its codec and its rows."""
    encoder = family in ("bert", "xlm-roberta")
    start = small_model(folder, family)
    codec = load_codec(start)
    german, english = manual_pairs(60)
    if encoder:
        rows = MaskedText({"de": german}, codec, Room(60, leave_out=False), Masking(), seed=1)
    else:
        write_lines(folder / "a", german)
        write_lines(folder / "b", english)
        rows = ParallelText(folder / "a", folder / "b", ("de", "en"), codec, SETTINGS)
    return load_model(start, SETTINGS, 1), codec, rows


@pytest.mark.parametrize("family", ["mbart", "gemma3_text"])
def test_parts_of_an_update_add_up_to_it(tmp_path, family):
    """Each label counts once, whether an update goes through at once or in parts."""
    start = small_model(tmp_path, family)
    codec, lines = load_codec(start), manual_pairs(60)
    for name, side in zip("ab", lines, strict=True):
        write_lines(tmp_path / name, side)
    rows, losses = ParallelText(tmp_path / "a", tmp_path / "b", ("de", "en"), codec, SETTINGS), {}
    for name, at_once in (("whole", None), ("parts", 60)):
        settings = replace(SETTINGS, updates=1, evaluate_every=1, micro_batch_tokens=at_once, dropout=0.0)
        train(load_model(start, settings, 1), codec, rows, [Dev(rows.epoch(0)[:4], "en")], tmp_path / name, 1, settings)
        losses[name] = [entry["loss"] for entry in log_of(tmp_path / name) if "loss" in entry]
    assert losses["parts"] == pytest.approx(losses["whole"], rel=1e-4)


def bare_calls(network, codec, batches, settings):
    """What an update's forward and backward passes and its optimiser ask for, at the most of some batches."""
    loss = pick_loss(network, settings, "float32")
    groups = [[weight for weight in network.parameters() if (weight.ndim > 1) == matrices] for matrices in (True, False)]
    optimizer = torch.optim.AdamW([{"params": group} for group in groups], lr=1e-5, fused=True)
    counts = []
    network.train()
    with network_reads(network, settings.packed):
        for rows in [batches[0], *batches]:  # the first update makes the moments
            batch = batch_maker(codec, settings, gives_states(network))(rows)
            labels = batch.pop("labels")
            with Counted() as counted, quick_dropout(network.device), quick_products():
                loss(network(**batch), labels, labels.numel()).backward()
                optimizer.step()
                optimizer.zero_grad()
            counts.append(counted.calls)
    return max(counts[1:])


@pytest.mark.parametrize("family", ["mbart", "m2m100", "mt5", "xlm-roberta", "bert"])
@pytest.mark.parametrize("changes", [{}, {"loss": "plain"}, {"packed": True, "batch_tokens": 256}], ids=lambda changes: "-".join(changes))
def test_an_update_waits_for_nothing(tmp_path, monkeypatch, family, changes):
    network, codec, rows = a_phase(tmp_path, family)
    counted, by_update = Counted(), []

    def at_begin(self, args, state, control, **_):
        counted.__enter__()

    def at_end(self, args, state, control, **_):
        counted.__exit__(None, None, None)
        by_update.append((counted.calls, dict(counted.waits)))
        counted.calls, counted.waits = 0, Counter()

    monkeypatch.setattr(Watch, "on_step_begin", at_begin, raising=False)
    monkeypatch.setattr(Watch, "on_step_end", at_end)
    settings = Training(**{**vars(SETTINGS), **changes})
    train(network, codec, rows, [Dev(rows.epoch(0)[:4], "en")], tmp_path / "checkpoints", 1, settings)
    assert len(by_update) == 6 and [waits for _, waits in by_update] == [{}] * 6
    # updates 2 to 5, in which nothing is logged, ask for little that an update by hand does not
    other, _, _ = a_phase(tmp_path, family)
    planned = rows, settings.batch_tokens, 6, 1
    bare = bare_calls(other, codec, [*(PackedBatches(*planned, 128) if settings.packed else Batches(*planned))], settings)
    assert max(calls for calls, _ in by_update[1:5]) <= bare + 12


def test_the_counter_sees_what_waits():
    counted = Counted()
    values = torch.arange(4.0)
    with counted:
        _ = values[values > 1].sum().item(), values.nonzero(), bool(values.all())
    assert counted.waits == {"index": 1, "_local_scalar_dense": 2, "nonzero": 1} and counted.calls > 5


def test_the_norm_of_gradients_is_logged_and_nothing_is_clipped(tmp_path):
    network, codec, rows = a_phase(tmp_path, "mbart")
    weights = {name: weight.detach().clone() for name, weight in network.named_parameters()}
    found = {}
    for norm in (0.0, 1e9, 1e-3):
        network.load_state_dict(weights, strict=False)
        settings = Training(**{**vars(SETTINGS), "max_grad_norm": norm, "log_every": 2})
        history = train(network, codec, rows, [Dev(rows.epoch(0)[:4], "en")], tmp_path / str(norm), 1, settings)
        found[norm] = [(entry["step"], entry["loss"], entry["grad_norm"]) for entry in history if "loss" in entry]
    assert [step for step, _, _ in found[0.0]] == [1, 2, 4, 6] and found[0.0] == found[1e9]
    assert [loss for _, loss, _ in found[0.0]][-1] != [loss for _, loss, _ in found[1e-3]][-1]


def test_the_log_of_an_attempt_goes_on_where_its_checkpoint_was(tmp_path):
    watch = Watch(tmp_path, SETTINGS, SimpleNamespace())
    state, args = SimpleNamespace(log_history=[], global_step=0, is_world_process_zero=True), SimpleNamespace(warmup_steps=0)

    def logged(step):
        state.log_history.append({"step": step, "loss": 1.0})
        watch.on_log(args, state, None, {"loss": 1.0})
        return [entry["step"] for entry in log_of(tmp_path)]

    assert [logged(step) for step in (1, 2, 3)] == [[1], [1, 2], [1, 2, 3]]
    watch = Watch(tmp_path, SETTINGS, SimpleNamespace())
    state.log_history = state.log_history[:1]  # that of a checkpoint after the first update
    assert logged(2) == [1, 2]


@pytest.mark.parametrize(("first", "diverges"), [(151.9, 228.0), (4.0, 13.6)])
def test_a_loss_has_diverged_that_is_far_above_guessing_and_above_the_first(tmp_path, first, diverges):
    watch = Watch(tmp_path, SETTINGS, SimpleNamespace(), guess=9.0)
    state, args = SimpleNamespace(log_history=[], global_step=0), SimpleNamespace(warmup_steps=0)
    for loss in (first, 0.99 * diverges, diverges):
        state.global_step += 1
        state.log_history.append({"loss": loss})
        with pytest.raises(Diverged, match="guessing costs 9 at most") if loss == diverges else nullcontext():
            watch.on_log(args, state, None, {"loss": loss})


def test_a_history_is_complete_in_the_log(tmp_path):
    network, codec, rows = a_phase(tmp_path, "mbart")
    settings = Training(**{**vars(SETTINGS), "log_every": 2})
    history = train(network, codec, rows, [Dev(rows.epoch(0)[:4], "en")], tmp_path / "c", 1, settings)
    assert log_of(tmp_path / "c") == history
    assert read_json(tmp_path / "c/checkpoint-6/trainer_state.json")["log_history"] == history[:-1]
