"""Killed, stopped, out of space: a phase goes on where it was, and only its own way."""

import contextlib
import itertools
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import pytest
import torch
import warm
from phases import TINY, assert_alike, assert_same, curve_of, finetune, phase_files
from tiny_decoders import CHAT, small_decoder

from workflow_scripts import plugins
from workflow_scripts.models.tokenisation import Codec, load_codec
from workflow_scripts.noise.rounds import read_meaning
from workflow_scripts.stage import InputError, Stopped, read_json, write_json
from workflow_scripts.training import checkpoints, loop
from workflow_scripts.training.checkpoints import (
    Deadline,
    checkpoints_of,
    chosen_updates,
    claimed,
    describe_phase,
    differences,
    fingerprint,
    last_complete_checkpoint,
    looks_without_gain,
    prune,
    settle,
    update_of,
)
from workflow_scripts.training.curve import LOSS_ONLY, handed_on
from workflow_scripts.training.launching import ON_ONE_NODE
from workflow_scripts.training.method import Method
from workflow_scripts.training.phase import described
from workflow_scripts.training.settings import Training

FORKED = get_context("fork")
"""Processes that have what is imported here."""


@pytest.fixture(scope="module")
def setup(tmp_path_factory):
    """A model, training and dev text."""
    return phase_files(tmp_path_factory.mktemp("checkpoints"))


def command(folder, start, out, settings, launcher=("-m",)):
    """The command line of a phase."""
    text = [f"--{part}-{side}={folder}/{part}.{code}" for part in ("train", "dev") for side, code in (("source", "de"), ("target", "en"))]
    flags = [flag for pair in text for flag in pair.split("=")]
    outputs = ["--start", start, "--model", out / "model", "--curve", out / "curve.tsv", "--report", out / "training.json"]
    arguments = [*outputs, "--checkpoints", out / "checkpoints", "--languages", "de", "en", "--threads", "1", *flags]
    line = [warm.python(), *launcher, "workflow_scripts.training.training", "translate", *arguments, "--settings", json.dumps(settings)]
    return [str(part) for part in line]


def run_until(line, update, number):
    """Run a phase that sends itself a signal once it has logged `update`; return status and output."""
    line = [line[0], "-m", "signalled", f"update {update}/", str(int(number)), *line[1:]]
    done = subprocess.run(line, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=warm.environment())
    return done.returncode, done.stdout


@contextlib.contextmanager
def stopped_after(update, monkeypatch):
    """Context in which a phase is stopped after this update."""
    calls = itertools.count(1)
    with monkeypatch.context() as patched, pytest.raises(Stopped, match=f"stopped after update {update}"):
        patched.setattr(loop.Deadline, "reason", lambda self: "time" if next(calls) == update else "")
        yield


def looks_in(out):
    """Update, dev loss and BLEU of each measurement on the dev set."""
    return [(row["update"], row["dev_loss"], row["dev_bleu"]) for row in curve_of(out) if row["dev_loss"]]


def same(one, other):
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def test_killed_and_out_of_space_a_phase_ends_with_the_same_weights(setup, tmp_path):
    settings = {**TINY, "log_every": 1, "updates": 12, "evaluate_every": 3, "checkpoint": "average", "averaged": 2}
    whole = finetune(*setup, tmp_path / "whole", Training(**settings))
    line = command(*setup, tmp_path / "cut", settings)
    assert run_until(line, 5, signal.SIGKILL)[0] == -signal.SIGKILL
    folder = next((tmp_path / "cut" / "checkpoints").glob("*/phase.json")).parent
    assert [update_of(path) for path in checkpoints_of(folder)] == [3]
    small = (folder / "checkpoint-3" / "optimizer.pt").stat().st_size // 2
    limited = partial(resource.setrlimit, resource.RLIMIT_FSIZE, (small, small))
    unwritten = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}  # or compiled files would be cut off as well
    full = subprocess.run([sys.executable, *line[1:]], capture_output=True, text=True, preexec_fn=limited, env=unwritten)
    # what the full disk left is found, and passed over, by the next call
    assert full.returncode != 0 and [update_of(path) for path in checkpoints_of(folder)] == [3, 6]
    status, output = run_until(line, 8, signal.SIGKILL)
    assert status == -signal.SIGKILL and "continuing from" in output and "checkpoint-3" in output
    finished = warm.run(line)
    assert finished.returncode == 0 and "checkpoint-6" in finished.stdout, finished.stderr[-2000:]
    assert_same(whole, finetune(*setup, tmp_path / "cut", Training(**settings)))
    assert (tmp_path / "cut" / "curve.tsv").read_text().count("\n") == (tmp_path / "whole" / "curve.tsv").read_text().count("\n")
    logged = [json.loads(row)["step"] for row in (folder / "log.jsonl").read_text().splitlines()]
    assert logged == sorted(logged) and set(range(1, 13)) == set(logged)


def test_sigterm_leaves_a_checkpoint_that_no_average_contains(setup, tmp_path):
    settings = {**TINY, "log_every": 5, "updates": 60, "evaluate_every": 20, "checkpoint": "average", "averaged": 2}
    whole = finetune(*setup, tmp_path / "whole", Training(**settings))
    line = command(*setup, tmp_path / "cut", settings)
    status, output = run_until(line, 25, signal.SIGTERM)
    assert status == 1 and "not done: SIGTERM: stopped after update" in output, output[-2000:]
    assert not (tmp_path / "cut" / "model").exists()
    folder = next((tmp_path / "cut" / "checkpoints").glob("*/phase.json")).parent
    assert 25 <= update_of(checkpoints_of(folder)[-1]) < 60
    assert_same(whole, finetune(*setup, tmp_path / "cut", Training(**settings)))
    curve = curve_of(tmp_path / "cut")
    assert [int(row["update"]) for row in curve if row["dev_bleu"]] == [20, 40, 60]
    assert [int(row["update"]) for row in curve if row["dev_loss"]] == [*range(5, 61, 5)]


def test_a_phase_goes_on_with_smaller_parts_of_an_update(setup, tmp_path, monkeypatch):
    settings = {**TINY, "dropout": 0.0, "attention_dropout": 0.0, "updates": 6, "evaluate_every": 3, "checkpoint": "last"}
    whole = finetune(*setup, tmp_path / "whole", Training(**settings))
    with stopped_after(2, monkeypatch):
        finetune(*setup, tmp_path / "cut", Training(**settings))
    parts = finetune(*setup, tmp_path / "cut", Training(**settings, micro_batch_tokens=100, loss="chunked"))
    start = finetune(*setup, tmp_path / "start", Training(**{**settings, "updates": 1, "learning_rate": 1e-12}))
    assert_alike(start, whole, parts, 0.01)


def test_a_phase_that_was_stopped_at_a_look_makes_up_for_it(setup, tmp_path, monkeypatch):
    settings = Training(**{**TINY, "updates": 8, "evaluate_every": 4, "checkpoint": "last"})
    whole = finetune(*setup, tmp_path / "whole", settings)
    with stopped_after(4, monkeypatch):
        finetune(*setup, tmp_path / "cut", settings)
    assert_same(whole, finetune(*setup, tmp_path / "cut", settings))
    assert looks_in(tmp_path / "whole") == looks_in(tmp_path / "cut")
    assert [update for update, _, bleu in looks_in(tmp_path / "cut") if bleu] == ["4", "8"]


def test_what_was_learnt_and_spent_before_a_stop_is_in_the_curve(setup, tmp_path, monkeypatch):
    settings = Training(**{**TINY, "updates": 8, "evaluate_every": 8, "log_every": 50, "checkpoint": "last"})
    with stopped_after(5, monkeypatch):
        finetune(*setup, tmp_path / "cut", settings)
    finetune(*setup, tmp_path / "cut", settings)
    rows = {row["update"]: row for row in curve_of(tmp_path / "cut") if row["loss"]}
    assert "5" in rows and 0 < float(rows["5"]["seconds"]) < float(curve_of(tmp_path / "cut")[-1]["seconds"])


def test_a_phase_that_is_killed_in_a_look_loses_no_update(setup, tmp_path, monkeypatch):
    settings = Training(**{**TINY, "updates": 8, "evaluate_every": 4, "log_every": 1})
    whole = finetune(*setup, tmp_path / "whole", settings)
    calls = itertools.count(1)

    def killed(*arguments, look=loop.dev_losses, **options):
        if next(calls) == 2:
            raise KeyboardInterrupt
        return look(*arguments, **options)

    with monkeypatch.context() as patched:
        patched.setattr(loop, "dev_losses", killed)
        with pytest.raises(KeyboardInterrupt):
            finetune(*setup, tmp_path / "cut", settings)
    (folder,) = (tmp_path / "cut" / "checkpoints").glob("*/")
    assert [update_of(path) for path in checkpoints_of(folder)] == [4, 8]
    histories = [read_json(path / "trainer_state.json")["log_history"] for path in checkpoints_of(folder)]
    assert [[look["step"] for look in checkpoints.looks_of(history)] for history in histories] == [[4], [4]]
    assert_same(whole, finetune(*setup, tmp_path / "cut", settings))
    assert looks_in(tmp_path / "whole") == looks_in(tmp_path / "cut")


TORCHRUN = ["-m", "torch.distributed.run", *ON_ONE_NODE, "--shutdown-timeout", "300", "--nproc-per-node", "2", "--no-python", "--"]
TORCHRUN += [warm.python(), "-m"]


def test_two_processes_agree_with_one_though_one_of_them_dies(setup, tmp_path):
    settings = {**TINY, "dropout": 0.0, "attention_dropout": 0.0, "updates": 6, "evaluate_every": 2, "checkpoint": "last", "log_every": 1}
    one = finetune(*setup, tmp_path / "one", Training(**settings))
    # each process makes its half of an update in two parts
    settings |= {"micro_batch_tokens": 100, "loss": "chunked"}
    line = command(*setup, tmp_path / "two", settings, TORCHRUN)
    launched = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=warm.environment())
    for row in launched.stdout:
        if row.startswith("update 3/"):
            workers = subprocess.run(["pgrep", "-P", str(launched.pid)], capture_output=True, text=True).stdout.split()
            os.kill(int(workers[-1]), signal.SIGKILL)
    assert launched.wait() and not any(Path("/proc", pid).exists() for pid in workers)
    assert not (tmp_path / "two/model").exists()
    done = warm.run(line)
    assert done.returncode == 0 and "continuing from" in done.stdout, done.stderr[-3000:]
    two = finetune(*setup, tmp_path / "two", Training(**settings))  # only loads what is there
    start = finetune(*setup, tmp_path / "start", Training(**{**settings, "updates": 1, "learning_rate": 1e-12}))
    assert_alike(start, one, two, 0.01)
    losses = [[float(row["loss"]) for row in curve_of(tmp_path / name) if row["loss"]] for name in ("one", "two")]
    assert losses[0] == pytest.approx(losses[1], rel=1e-4) and len(losses[0]) == 6


def test_a_lost_loss_ends_the_phase(setup, tmp_path):
    with pytest.raises(InputError, match=r"loss .* at update \d+ .*diverged; lower learning_rate"):
        finetune(*setup, tmp_path, Training(updates=30, evaluate_every=30, **{**TINY, "learning_rate": 50.0}))
    assert not (tmp_path / "model").exists()


def test_a_lost_loss_is_reported_of_a_point_of_a_grid_by_several_processes_as_well(setup, tmp_path):
    settings = {**TINY, "learning_rate": 50.0, "updates": 30, "evaluate_every": 30}
    line = [*command(*setup, tmp_path, settings, TORCHRUN), "--keep-diverged"]
    done = warm.run(line)
    assert done.returncode == 0, done.stderr[-3000:]
    report = json.loads((tmp_path / "training.json").read_text())
    assert report["processes"] == 2 and "training has diverged; lower learning_rate" in report["diverged"]
    assert (tmp_path / "model/model.safetensors").exists() and (tmp_path / "curve.tsv").exists()


def test_patience_ends_a_phase_early(setup, tmp_path):
    settings = Training(updates=40, evaluate_every=2, patience=2, **{**TINY, "learning_rate": 1e-12})
    finetune(*setup, tmp_path, settings)
    curve = curve_of(tmp_path)
    assert [row["update"] for row in curve if row["dev_bleu"]] == ["2", "4", "6"]
    finetune(*setup, tmp_path, settings)
    assert curve_of(tmp_path) == curve


def test_description_covers_science_and_nothing_else(setup, tmp_path):
    folder, start = setup
    text = {"train": folder / "train.de"}

    def described(settings=(), text=text, seed=1):
        return describe_phase({"dropout": 0.3, "device": "auto", **dict(settings)}, text, start, seed, False, ("device",))

    base = described()
    moved = shutil.copy(folder / "train.de", tmp_path / "elsewhere")
    assert described({"device": "cpu"}) == described(text={"train": moved}) == base
    others = [described({"dropout": 0.2}), described(text={"train": folder / "dev.de"}), described(seed=2)]
    assert len({fingerprint(one) for one in (base, *others)}) == 4
    assert [differences(base, other) for other in others] == [["dropout: 0.2 → 0.3"], ["text: train has changed"], ["seed: 2 → 1"]]
    assert differences(base, json.loads(json.dumps(base))) == []


@pytest.mark.parametrize(
    ("name", "beside"),
    [
        *((name, "") for name in ("model.safetensors", "pytorch_model.bin", "pytorch_model-00001-of-00002.bin")),
        *((name, "") for name in ("tokenizer_config.json", "spiece.model", "vocab.txt", "merges.txt")),
        ("modeling_own.py", "tokenizer.json"),
        ("tokenizer_config.json", "modeling_own.py"),
    ],
)
def test_another_model_to_start_from_is_another_phase(tmp_path, name, beside):
    """Also where its weights are pickled, as in many a folder of the hub, where it has code, and where tokenizer.json is not there."""
    for there in filter(None, ("config.json", beside)):
        (tmp_path / there).write_text("{}", "utf-8")
    found = []
    for weights in (b"1", b"2"):
        (tmp_path / name).write_bytes(weights)
        found.append(describe_phase({}, {}, tmp_path, 1, False))
    assert differences(*found) == [f"start: {name} has changed"]


def test_a_model_without_code_whose_tokenizer_is_one_file_is_described_as_before(setup):
    assert describe_phase({}, {}, setup[1], 1, False)["start"].keys() == {"config.json", "model.safetensors", "tokenizer.json"}


def test_another_chat_template_is_another_phase_only_where_it_is_used(setup, tmp_path, capsys):
    folder, start, out = setup[0], small_decoder(tmp_path, chat=True), tmp_path / "out"
    out.mkdir()
    settings = Training(**{**TINY, "max_length": 128}, updates=2, evaluate_every=2, checkpoint="last")
    phases = []
    for asked in ({"chat": True}, {}):
        for turn in ("<|turn|>", "<|turn|> "):
            (start / "chat_template.jinja").write_text(CHAT.replace("<|turn|>", turn), "utf-8")
            finetune(folder, start, out, settings, templates=json.dumps(asked))
            phases.append(len([*out.glob("checkpoints/*/phase.json")]))
    assert phases == [1, 2, 3, 3] and "which is of another phase (chat_template: " in capsys.readouterr().out


def test_another_version_of_a_familys_plugin_is_another_phase(setup, monkeypatch):
    codec = load_codec(setup[1])
    monkeypatch.setattr(plugins, "_PLUGINS", {"x.py": plugins.Plugin("x.py", (), (), (), "1")})
    found = []
    for form in (codec.form, replace(codec.form, plugin="x.py")):
        monkeypatch.setattr(Codec, "form", form)
        found.append(described(Training(), Method(), ("de", "en"), False, codec).get("family_plugin"))
    assert found == [None, "1"]


def test_a_corrected_language_or_documents_start_a_translation_anew(setup, tmp_path, capsys):
    settings = Training(**TINY, updates=2, evaluate_every=2, checkpoint="last")
    finetune(*setup, tmp_path, settings)
    capsys.readouterr()
    finetune(*setup, tmp_path, settings, languages=("en", "de"))
    said = capsys.readouterr().out
    assert "not continuing from" in said and "languages: ['de', 'en'] → ['en', 'de']" in said
    finetune(*setup, tmp_path, settings, documents=True)
    assert "documents: False → True" in capsys.readouterr().out


def test_the_same_lines_with_another_meaning_are_another_phase(setup, tmp_path, capsys):
    """An arm that restored them, and now writes them as they stand; and a plugin's noise that now writes masks."""
    folder, start = setup
    shutil.copytree(folder / "noised", tmp_path / "noised")
    settings = Training(**TINY, updates=2, evaluate_every=2, checkpoint="last")
    said = []
    for kind, more in (("codeswitch", {}), ("switched_text", {"as_text": True}), ("theirs", {}), ("theirs", {"masks": True})):
        write_json(tmp_path / "noised/codeswitch.json", {"kind": kind, "unit": "word", "masks": False, **more})
        finetune(folder, start, tmp_path, settings, noised=tmp_path / "noised")
        said.append(capsys.readouterr().out)
    for words in ("as_text: None → True", "as_text: True → None; masks: None → False", "masks: False → True"):
        assert f"not continuing from {tmp_path}/checkpoints/" in said[-1] and any(f"({words})" in each for each in said)


def test_noises_of_ours_that_are_restored_add_nothing_to_the_description(tmp_path):
    for kind, masks in (("codeswitch", False), ("mask", True), ("released", True)):
        write_json(tmp_path / "codeswitch.json", {"kind": kind, "unit": "word", "masks": masks})
        assert read_meaning(tmp_path) == {}


def test_checkpoints_of_other_settings_are_refused_by_name(tmp_path, capsys):
    with claimed(tmp_path, {"learning_rate": 0.1}) as folder:
        (folder / "checkpoint-5").mkdir()
    with claimed(tmp_path, {"learning_rate": 0.2}) as other:
        assert other != folder
    said = capsys.readouterr().out
    assert f"not continuing from {folder}" in said and "learning_rate: 0.1 → 0.2" in said


def test_a_folder_in_use_is_not_shared(tmp_path):
    held = FORKED.Event()

    def hold():
        with claimed(tmp_path, {}):
            held.set()
            signal.pause()

    holder = FORKED.Process(target=hold, daemon=True)
    holder.start()
    assert held.wait(60)
    with pytest.raises(InputError, match=f"in use by process {holder.pid} on"), claimed(tmp_path, {}):
        pass
    holder.kill()
    holder.join()
    with claimed(tmp_path, {}):
        pass


def attempt(root, number, checkpoint=None, ending=None):
    """An attempt at a phase that may leave a checkpoint, and may end badly."""
    with claimed(root, {}, number) as folder:
        if checkpoint:
            (folder / f"checkpoint-{checkpoint}").mkdir()
            (folder / f"checkpoint-{checkpoint}" / "trainer_state.json").write_text("{}")
        if ending:
            raise ending


def test_a_retry_goes_on_as_long_as_there_are_new_checkpoints(tmp_path):
    for number, checkpoint in ((1, 5), (2, 9), (3, 12)):
        with pytest.raises(Stopped):
            attempt(tmp_path, number, checkpoint, Stopped("time"))
    with pytest.raises(OSError):
        attempt(tmp_path, 4, ending=OSError(28, "No space left on device"))
    for number in (5, 6):
        with pytest.raises(InputError, match=rf"attempt {number - 1} left no checkpoint after update 12 \(OSError: .* No space left"):
            attempt(tmp_path, number)
    attempt(tmp_path, 1)  # somebody has mended it and runs the same command again


@pytest.mark.parametrize("before", [0, 5])
def test_what_was_killed_without_a_word_is_tried_again_twice(tmp_path, before):
    """However many attempts have gone before it, each with a checkpoint of its own."""

    def die(number):
        with claimed(tmp_path, {}, number):
            os.kill(os.getpid(), signal.SIGKILL)

    for number in range(1, before + 1):
        with pytest.raises(Stopped):
            attempt(tmp_path, number, number, Stopped("time"))
    for number in range(before + 1, before + 4):
        process = FORKED.Process(target=die, args=(number,))
        process.start()
        process.join()
        assert process.exitcode == -signal.SIGKILL
    for number in (before + 4, before + 5):
        said = rf"attempt {number - 1} left no checkpoint after update {before} \(killed, .*, or as its node failed: raise mem_mb"
        with pytest.raises(InputError, match=said):
            attempt(tmp_path, number)


def test_a_checkpoint_that_was_cut_off_is_not_continued(tmp_path):
    for step, state in ((4, "{}"), (8, "{}"), (12, None), (16, '{"log_hist')):
        (tmp_path / f"checkpoint-{step}").mkdir()
        if state is not None:
            (tmp_path / f"checkpoint-{step}" / "trainer_state.json").write_text(state)
    assert last_complete_checkpoint(tmp_path) == str(tmp_path / "checkpoint-8")
    assert [update_of(path) for path in checkpoints_of(tmp_path)] == [4, 8]


def test_a_checkpoint_that_cannot_be_read_now_is_kept(tmp_path):
    for step in (4, 8):
        (tmp_path / f"checkpoint-{step}").mkdir()
    (tmp_path / "checkpoint-8" / "trainer_state.json").mkdir()  # reading it fails, as where a file system does not answer
    with pytest.raises(InputError, match=r"checkpoint-8/trainer_state.json: cannot be read \(Is a directory\); nothing was removed"):
        last_complete_checkpoint(tmp_path)
    assert [update_of(path) for path in checkpoints_of(tmp_path)] == [4, 8]


def test_what_is_handed_on_and_what_is_kept(tmp_path):
    history = [{"step": s, "eval_loss": loss} for s, loss in ((10, 3.0), (20, 1.0), (30, 2.0), (40, 1.5), (50, 4.0))]
    assert chosen_updates(history, "best", 3) == [20] and chosen_updates(history, "last", 3) == [50]
    assert chosen_updates(history, "average", 3) == [30, 40, 50] and chosen_updates(history, "average_best", 3) == [20, 30, 40]
    for step in (10, 20, 30, 40, 50, 53):
        (tmp_path / f"checkpoint-{step}").mkdir()
    prune(tmp_path, history, "best", 1)
    assert [update_of(path) for path in checkpoints_of(tmp_path)] == [20, 50, 53]


def test_a_phase_that_has_ended_keeps_what_writes_its_model_again(setup, tmp_path):
    settings = Training(**{**TINY, "updates": 8, "evaluate_every": 2, "checkpoint": "average_best", "averaged": 2, "bleu_sentences": 0})
    model = finetune(*setup, tmp_path, settings)
    chosen = read_json(tmp_path / "training.json")["handed_on"]["updates"]
    (folder,) = (tmp_path / "checkpoints").glob("*/")
    assert {update_of(path) for path in checkpoints_of(folder)} == {*chosen, 8}
    assert not [*folder.rglob("optimizer.pt")] and all((path / "model.safetensors").exists() for path in checkpoints_of(folder))
    shutil.rmtree(tmp_path / "model")
    begun = time.time()
    assert same(model, finetune(*setup, tmp_path, settings))
    assert all((path / "model.safetensors").stat().st_mtime < begun for path in checkpoints_of(folder))


def test_nothing_goes_on_from_a_chosen_checkpoint_of_a_phase_that_has_ended(tmp_path):
    for step in (10, 20, 30):
        (tmp_path / f"checkpoint-{step}").mkdir()
        for name in ("model.safetensors", "optimizer.pt", "trainer_state.json"):
            (tmp_path / f"checkpoint-{step}" / name).write_text("{}")
    settle(tmp_path, [20])
    assert [update_of(path) for path in checkpoints_of(tmp_path)] == [20, 30] and not [*tmp_path.rglob("optimizer.pt")]
    assert last_complete_checkpoint(tmp_path) == str(tmp_path / "checkpoint-30")
    (tmp_path / "checkpoint-30/trainer_state.json").write_text("{")  # a damaged disk
    assert last_complete_checkpoint(tmp_path) is None and not checkpoints_of(tmp_path)


def test_a_score_chooses_what_the_loss_would_not(tmp_path):
    looks = ((10, 3.0, 2.0), (20, 1.0, 9.0), (30, 1.5, 12.5), (40, 1.4, 12.5), (50, 4.0, 11.0))
    history = [{"step": step, "eval_loss": loss, "eval_bleu": bleu} for step, loss, bleu in looks]
    history.insert(3, {"step": 35, LOSS_ONLY: 0.1})
    assert chosen_updates(history, "best", 1) == [20] and chosen_updates(history, "best", 1, "eval_bleu") == [40]
    assert chosen_updates(history, "average_best", 3, "eval_bleu") == [30, 40, 50]
    assert chosen_updates(history, "last", 1, "eval_bleu") == [50]
    # 40 has the BLEU of 30 and a smaller loss
    assert looks_without_gain(history, "eval_bleu") == 1 and looks_without_gain(history) == 3
    for step in (10, 20, 30, 40, 50, 60, 63):
        (tmp_path / f"checkpoint-{step}").mkdir()
    prune(tmp_path, history, "best", 1, "eval_bleu")
    assert [update_of(path) for path in checkpoints_of(tmp_path)] == [40, 60, 63]
    # a look without BLEU does not change the judge, whose best checkpoint is the only one that is kept
    del history[-1]["eval_bleu"]
    assert chosen_updates(history, "best", 1, "eval_bleu") == [40]
    for look in history:
        look.pop("eval_bleu", None)
    assert chosen_updates(history, "best", 1, "eval_bleu") == [20] and looks_without_gain(history, "eval_bleu") == 3


def test_why_the_loss_has_chosen_is_reported():
    history = [{"step": 10, "eval_loss": 3.0, "eval_bleu": 12.0}, {"step": 20, "eval_loss": 1.0, "eval_bleu": 9.0}]
    assert handed_on(history, Training(updates=20, checkpoint="best"))["reason"] is None
    found = handed_on(history, Training(updates=20, checkpoint="best", choose_by="smoothed_loss"))
    assert found["updates"] == [20] and found["reason"] == "the smoothed loss is not measured in this way of training"
    for look in history:
        del look["eval_bleu"]
    found = handed_on(history, Training(updates=20, checkpoint="best", bleu_sentences=0))
    assert found["reason"] == "no BLEU was measured on the dev set: bleu_sentences is 0"


def test_the_dev_loss_between_looks_leaves_the_weights_as_they_are(setup, tmp_path, monkeypatch):
    settings = {**TINY, "updates": 12, "evaluate_every": 8, "log_every": 3, "checkpoint": "last", "bleu_sentences": 2}
    plain = finetune(*setup, tmp_path / "plain", Training(**settings, loss_every=0))
    often = finetune(*setup, tmp_path / "often", Training(**settings, loss_every=3))
    usual = finetune(*setup, tmp_path / "usual", Training(**settings))
    with stopped_after(6, monkeypatch):
        finetune(*setup, tmp_path / "cut", Training(**settings, loss_every=3))
    cut = finetune(*setup, tmp_path / "cut", Training(**settings, loss_every=3))
    assert same(plain, often) and same(plain, usual) and same(plain, cut)
    curves = {}
    for name in ("plain", "often", "usual", "cut"):
        rows = curve_of(tmp_path / name)
        curves[name] = [[(int(row["update"]), row[key]) for row in rows if row[key]] for key in ("loss", "dev_loss", "dev_bleu")]
    measured = {name: [update for update, _ in losses] for name, (_, losses, _) in curves.items()}
    assert measured == {"plain": [8, 12], "often": [3, 6, 8, 9, 12], "usual": [2, 4, 6, 8, 10, 12], "cut": [3, 6, 8, 9, 12]}
    # training losses and scores are those of a phase without it
    assert all(curves[name][::2] == curves["plain"][::2] for name in curves)
    assert curves["often"][1] == curves["cut"][1]
    folder = next((tmp_path / "often" / "checkpoints").glob("*/phase.json")).parent
    assert [update_of(path) for path in checkpoints_of(folder)] == [12]


def test_deadline_keeps_time_for_the_checkpoint(monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(checkpoints, "_process_start", lambda: 1000.0)
    monkeypatch.setattr(checkpoints.time, "time", lambda: now[0])
    deadline = Deadline(60)
    for now[0], stop in ((1100, False), (1200, False), (1000 + 3600 - 290, True)):
        assert bool(deadline.reason()) is stop
    now[0] = 1000.0
    quick = Deadline(60)
    for now[0] in range(1000, 1000 + 3600 - 121):
        assert not quick.reason()
    now[0] += 3
    assert "time" in quick.reason()
    assert not Deadline(0).reason()
    monkeypatch.setenv("SLURM_JOB_END_TIME", str(now[0] + 121))
    by_slurm = Deadline(0)
    assert not by_slurm.reason()
    now[0] += 2
    assert by_slurm.reason()


def test_the_start_of_a_process_is_known():
    asked, answer = FORKED.Event(), FORKED.Value("d")

    def tell():
        asked.wait()
        answer.value = checkpoints._process_start()

    before = time.time()
    child = FORKED.Process(target=tell, daemon=True)
    child.start()
    after = time.time()
    time.sleep(3)
    asked.set()
    child.join()
    # the time of the call, at least three seconds later, would not pass
    assert before - 2 <= answer.value <= after + 2


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_have_their_usual_effect_afterwards(number):
    before = signal.getsignal(number)
    with Deadline() as deadline:
        signal.raise_signal(number)
        assert deadline.reason() == number.name
        with pytest.raises(KeyboardInterrupt):  # who asks twice does not want to wait
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(number) is before
