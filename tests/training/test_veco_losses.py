"""VECO's losses against a plain loop that follows the paper, and pretraining by them."""

import json
import signal
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
import torch.nn.functional as F
import warm
from phases import TINY, assert_same, curve_of, finetune, phase_files
from safetensors.torch import load_file
from test_backbone import flags, parallel, run, small
from test_checkpoints import run_until, same
from tiny_models import manual_pairs, small_encoder, small_model
from transformers import AutoModelForSeq2SeqLM, Trainer, TrainingArguments, XLMRobertaForMaskedLM

from workflow_scripts.models.networks import load_network
from workflow_scripts.models.tokenisation import load_codec
from workflow_scripts.models.veco import CROSS, decode, encode, has_cross_attention, load_stack
from workflow_scripts.stage import InputError, read_json
from workflow_scripts.training import ready, veco_losses
from workflow_scripts.training.backbone import Backbone
from workflow_scripts.training.bitext import Bitext
from workflow_scripts.training.checkpoints import Deadline
from workflow_scripts.training.objective import Part, Text
from workflow_scripts.training.pretraining_settings import Pretraining, Veco
from workflow_scripts.training.rows import split_batch
from workflow_scripts.training.segments import Batch, begin_of_second, held_back, read
from workflow_scripts.training.settings import Training

SHORT = Training(
    updates=9, batch_tokens=500, learning_rate=5e-3, warmup_updates=2, dropout=0.1, max_length=64, evaluate_every=3, log_every=1
)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """A tiny stack, its codec, and a batch of translations and one of lines of one language."""
    folder = tmp_path_factory.mktemp("tiny")
    model = small_encoder(folder, "xlm-roberta")
    german, english = manual_pairs(13)
    part = Part.write(folder, "dev", Text({"de": german}, [Bitext("help.de-en", {"de": german, "en": english})]))
    block = Pretraining(training=Training(max_length=30))
    codec = load_codec(model)
    return model, codec, held_back(part, codec, block, seed=1)


@pytest.mark.parametrize("causal", [True, False])
def test_the_losses_are_those_of_a_plain_loop(tiny, causal):
    model, codec, dev = tiny
    veco = Veco(causal=causal)
    stack = load_stack(model, cross=True).eval()
    found = veco_losses.measured(stack, codec, dev, veco, tokens=200)
    sums = {name: [] for name in veco_losses.LOSSES}
    with torch.no_grad():
        for batch in dev:
            for ids, labels in batch.rows:
                at = begin_of_second(ids, 0)
                sides = [(torch.tensor(ids[some])[None], torch.tensor(labels[some])[None].long()) for some in (slice(at), slice(at, None))]
                sides = [side for side in sides if side[0].numel()]
                seen = [torch.ones_like(side[0], dtype=torch.bool) for side in sides]
                states = [encode(stack, side[0], one) for side, one in zip(sides, seen, strict=True)]
                guessed = {"is_mlm": list(zip(states, [goal for _, goal in sides], strict=True))}
                if len(sides) == 2:
                    guessed["cs_mlm"] = [
                        (decode(stack, sides[this][0], seen[this], states[other], seen[other], causal), sides[this][1])
                        for this, other in ((0, 1), (1, 0))
                    ]
                if batch.parallel:
                    joined, goal = (torch.cat([side[part] for side in sides], dim=1) for part in (0, 1))
                    places = torch.cat([torch.arange(side[0].shape[1]) + 2 for side in sides])[None]
                    guessed["tlm"] = [(encode(stack, joined, torch.ones_like(joined, dtype=torch.bool), places), goal)]
                for name, some in guessed.items():
                    for state, goal in some:
                        scores = stack.lm_head(state[goal != -100])
                        sums[name] += F.cross_entropy(scores, goal[goal != -100], reduction="none").tolist()
    for name, values in sums.items():
        assert found[f"{name}_loss"] == pytest.approx(sum(values) / len(values), rel=1e-4), name
    assert len(sums["is_mlm"]) > len(sums["cs_mlm"]) > 0  # of 13 lines one is alone


def test_an_update_is_the_mean_of_the_means(tiny):
    model, codec, dev = tiny
    veco, parallel_rows = Veco(), dev[1]
    stack = load_stack(model, cross=True).eval()
    means = veco_losses.measured(stack, codec, [parallel_rows], veco)
    veco_losses.forward_guesses(stack, veco.causal)
    for loss in ("chunked", "plain"):
        batch = veco_losses.collate(parallel_rows, 1, 0, veco)
        labels = batch.pop("labels")
        settings = Training(label_smoothing=0.0, loss=loss)
        value = veco_losses.update_loss(stack, settings, "float32")(stack(**batch), labels, labels.numel())
        assert float(value.detach()) == pytest.approx(sum(means[f"{name}_loss"] for name in veco_losses.LOSSES) / 3, rel=1e-4)


def test_the_trainer_counts_every_guess_of_every_part(tiny, tmp_path):
    stack = load_stack(tiny[0], cross=True)
    veco_losses.forward_guesses(stack, causal=True)
    trainer = Trainer(stack, TrainingArguments(str(tmp_path), use_cpu=True), compute_loss_func=lambda *_: None)
    parts = [{"labels": torch.tensor([[5, 6, 7]])}, {"labels": torch.tensor([[8, -100]])}]
    assert int(trainer.get_batch_samples(iter(parts), 2, torch.device("cpu"))[1]) == 4


@pytest.mark.parametrize("parts", [2, 3, 20])
def test_an_update_has_the_same_gradient_however_it_is_split(tiny, parts):
    """Of 13 lines one is alone: the part that gets it has one loss, the others have two."""
    model, _, dev = tiny
    veco, settings = Veco(), Training(label_smoothing=0.0)
    update = dev[0]._replace(weight=veco_losses.share(dev[0], 0, veco))
    assert update.weight == pytest.approx(2 / 3)

    def gradient(splits: list) -> dict:
        stack = load_stack(model, cross=True).eval()
        veco_losses.forward_guesses(stack, veco.causal)
        batches = [veco_losses.collate(update._replace(rows=rows), 1, 0, veco) for rows in splits]
        items = sum(int((batch["labels"] != -100).sum()) for batch in batches)
        for batch in batches:
            labels = batch.pop("labels")
            veco_losses.update_loss(stack, settings, "float32")(stack(**batch), labels, items).backward()
        return {name: weight.grad for name, weight in stack.named_parameters() if weight.grad is not None}

    whole, split = gradient([update.rows]), gradient(split_batch(update.rows, parts))
    assert whole.keys() == split.keys()
    for name, grad in whole.items():
        torch.testing.assert_close(split[name], grad, rtol=1e-3, atol=1e-6)


def test_each_part_of_an_update_weighs_what_its_update_has_of_the_losses(tiny, tmp_path, monkeypatch):
    """Pairs of one language have two of the three losses, translations all; by itself a part without pairs would have one."""
    model, codec, _ = tiny
    german, english = manual_pairs(40)
    part = Part.write(tmp_path, "train", Text({"de": german}, [Bitext("help.de-en", {"de": german, "en": english})], {"de": [1]}))
    settings = replace(SHORT, updates=6, batch_tokens=2000, micro_batch_tokens=100)
    text = read(part, codec, Pretraining(training=settings), seed=1)
    parts = []
    monkeypatch.setattr(veco_losses, "fit", lambda network, batches, accumulated, *_: parts.append((list(batches), accumulated)) or [])
    veco_losses.train(load_stack(model, cross=True), codec, text, [], tmp_path, 1, settings, veco=Veco())
    ((found, accumulated),) = parts
    assert accumulated == 20 and len(found) == 6 * 20
    assert any(len(one.rows) == 1 and begin_of_second(one.rows[0][0], 0) == len(one.rows[0][0]) for one in found)
    assert {(one.parallel, round(one.weight, 6)) for one in found} == {(False, round(2 / 3, 6)), (True, 1.0)}


def test_what_a_part_takes_is_what_is_read_of_it(tiny):
    rows = tiny[2][1].rows
    batch = veco_losses.collate(Batch(rows, parallel=True), 1, 0, Veco())
    read = batch["ids"].numel() + batch["ids"][batch["decoder_segments"]].numel() + batch["joined_ids"].numel()
    assert veco_losses.cells(rows, 0) == read


def test_cross_attention_alone_is_clipped_by_its_own_gradient(tiny, tmp_path):
    _, _, dev = tiny
    stack = load_stack(tiny[0], cross=True)
    veco_losses.forward_guesses(stack, True)
    watch = veco_losses.CrossAttentionFirst(2, tmp_path, Training(), Deadline(0))
    state = SimpleNamespace(global_step=0, log_history=[], eval_steps=9, max_steps=9)

    def moving() -> set[bool]:
        """Whether weights have a gradient: of cross-attention, and of the others."""
        stack.zero_grad(set_to_none=True)
        batch = veco_losses.collate(dev[1]._replace(cross_alone=state.global_step < 2), 1, 0, Veco())
        labels = batch.pop("labels")
        veco_losses.update_loss(stack, Training(), "float32")(stack(**batch), labels, labels.numel()).backward()
        return {CROSS in name for name, weight in stack.named_parameters() if weight.grad is not None and weight.grad.any()}

    watch.on_train_begin(SimpleNamespace(logging_steps=9), state, None, model=stack)
    for state.global_step in range(4):
        watch.on_step_begin(None, state, None)
        assert moving() == ({True} if state.global_step < 2 else {True, False})


def test_cross_attention_alone_has_no_other_loss_and_segments_alone_none(tiny):
    _, codec, dev = tiny
    batch = veco_losses.collate(dev[1]._replace(cross_alone=True), 1, 0, Veco())
    assert "is_mlm_places" not in batch and "tlm_places" not in batch and len(batch["cs_mlm_places"]) == batch["labels"].numel()
    alone = Batch([row for row in dev[0].rows if begin_of_second(row[0], 0) == len(row[0])], parallel=False, cross_alone=True)
    stack = load_stack(tiny[0], cross=True)
    veco_losses.forward_guesses(stack, True)
    batch = veco_losses.collate(alone, 1, 0, Veco())
    labels = batch.pop("labels")
    for items in (1, torch.tensor(0)):  # others of the update may have something to guess, or nobody has
        loss = veco_losses.update_loss(stack, Training(), "float32")(stack(**batch), labels, items)
        loss.backward()
        assert loss == 0 and labels.numel() == 0
        assert all(weight.grad is not None and not weight.grad.any() for weight in stack.parameters())


def test_segments_alone_can_be_tried_as_the_part_that_takes_the_most_memory(tiny):
    """The trial calls it parallel, whose pairs are read together; there are none."""
    _, _, dev = tiny
    alone = Batch([row for row in dev[0].rows if begin_of_second(row[0], 0) == len(row[0])], parallel=True, cross_alone=False)
    batch = veco_losses.collate(alone, 1, 0, Veco())
    assert "is_mlm_places" in batch and "joined_ids" not in batch and "decoder_segments" not in batch


def test_several_processes_find_a_gradient_of_every_weight_where_segments_are_alone(tiny, monkeypatch):
    _, _, dev = tiny
    rows = [row for row in dev[0].rows if begin_of_second(row[0], 0) == len(row[0])]
    batch = veco_losses.collate(Batch(rows, parallel=False, cross_alone=False), 1, 0, Veco())
    labels = batch.pop("labels")
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    stack = load_stack(tiny[0], cross=True)
    veco_losses.forward_guesses(stack, True)
    veco_losses.update_loss(stack, Training(), "float32")(stack(**batch), labels, labels.numel()).backward()
    crossing = {name: weight.grad for name, weight in stack.named_parameters() if CROSS in name}
    assert crossing and all(grad is not None and not grad.any() for grad in crossing.values())


def test_what_is_loaded_without_its_cross_attention_is_no_veco(tiny, tmp_path):
    stack = load_stack(tiny[0], cross=True)
    stack.save_pretrained(tmp_path / "veco")
    tiny[1].tokenizer.save_pretrained(tmp_path / "veco")
    assert has_cross_attention(tmp_path / "veco")
    load_network(tmp_path / "veco", "text", dropout=0.0, attention_dropout=0.0, seed=1).save_pretrained(tmp_path / "read")
    assert not has_cross_attention(tmp_path / "read")


def test_from_scratch_the_stack_has_other_weights(tiny):
    word = "roberta.embeddings.word_embeddings.weight"
    given, drawn, again = (
        veco_losses.load(tiny[0], Training(max_length=30), 5, from_scratch, veco=Veco()).state_dict()[word]
        for from_scratch in (False, True, True)
    )
    assert torch.equal(drawn, again) and not torch.allclose(drawn, given)


PAIR, ALONE = ([0, 5, 2, 0, 6, 2], [-100] * 6), ([0, 5, 2], [-100] * 3)
"""Rows of two segments and of one; 0 begins a segment."""


def made_by(folder, **changes) -> Backbone:
    (folder / "bible.de-en").mkdir(exist_ok=True)
    veco, training = changes.pop("veco", Veco()), replace(SHORT, **changes)
    return Backbone(kind="small", family="xlmr", objective="veco", small=small(folder, layers=2, training=training, veco=veco))


def corpora(folder) -> dict:
    """The files of parallel text, as arguments of the stage."""
    sides = dict(zip(("de", "en"), manual_pairs(500), strict=True))
    (folder / "help.de-en").mkdir(exist_ok=True)
    for code, lines in sides.items():
        (folder / f"help.de-en/train.{code}").write_text("".join(f"{line}\n" for line in lines[300:450]))
        (folder / f"help.de-en/dev.{code}").write_text("".join(f"{line}\n" for line in lines[450:]))
    files = {part: tuple(folder / f"help.de-en/{part}.{code}" for code in sides) for part in ("train", "dev")}
    return {"bitext": files["train"], "bitext_dev": files["dev"]}


def test_killed_while_pretraining_it_ends_with_the_same_weights(tmp_path):
    for name in ("whole", "cut"):
        (tmp_path / name).mkdir()
    parallel(tmp_path)
    settings = made_by(tmp_path, veco=Veco(cross_attention_first=4))
    files = corpora(tmp_path)
    report = run(tmp_path / "whole", settings, **files)
    assert report["objective"] == "veco" and {"veco_loss", "is_mlm_loss", "cs_mlm_loss", "tlm_loss", "unigram_loss"} <= report.keys()
    line = [warm.python(), "-m", "workflow_scripts.training.backbone", *flags(tmp_path / "cut", settings, **files)]
    assert run_until(line, 5, signal.SIGKILL)[0] == -signal.SIGKILL
    found = run(tmp_path / "cut", settings, **files)
    assert found.keys() == report.keys() and all(found[name] == report[name] for name in report if not name.endswith("loss"))
    assert {name: found[name] for name in report if name.endswith("loss")} == pytest.approx(
        {name: report[name] for name in report if name.endswith("loss")}, rel=1e-3
    )
    whole, cut = (load_file(tmp_path / name / "out/model/model.safetensors") for name in ("whole", "cut"))
    assert_same(cut, whole)


def test_a_veco_is_kept_ready_with_its_generator(tmp_path):
    parallel(tmp_path)
    settings = made_by(tmp_path, updates=2, evaluate_every=2)
    run(tmp_path, settings)
    kept = tmp_path / "kept"
    ready.main(tmp_path / "out", kept)
    settings.small = replace(settings.small, ready=str(kept))
    (tmp_path / "out").rename(tmp_path / "made")
    assert run(tmp_path, settings)["ready"] == str(kept)
    for name in ("model/README.md", "model/bart/config.json"):
        assert (tmp_path / "out" / name).read_text() == (tmp_path / "made" / name).read_text()
    made, taken = (load_file(tmp_path / name / "model/bart/model.safetensors") for name in ("made", "out"))
    assert made.keys() == taken.keys()
    for name, weight in made.items():
        torch.testing.assert_close(taken[name], weight, rtol=2**-9, atol=1e-4)


def test_cross_attention_is_trained_first_and_alone(tmp_path):
    parallel(tmp_path)
    before = run_and_load(tmp_path, made_by(tmp_path, updates=1, evaluate_every=1, learning_rate=1e-12))
    first = Veco(cross_attention_first=3)
    settings = made_by(tmp_path, updates=4, veco=first, evaluate_every=3, loss_every=2, learning_rate=1e-3)
    settings.small.training.checkpoint, settings.small.training.averaged = "average", 2  # so that both checkpoints stay
    run_and_load(tmp_path, settings)
    assert [row["update"] for row in curve_of(tmp_path / "out") if row["dev_loss"]] == ["2", "3", "4"]
    after = load_file(next(tmp_path.glob("out/c/*/checkpoint-3")) / "model.safetensors")
    moved = {name for name in after if not torch.allclose(after[name], before[name], atol=1e-9)}
    assert moved and all(CROSS in name for name in moved)
    last = load_file(next(tmp_path.glob("out/c/*/checkpoint-4")) / "model.safetensors")
    assert any(CROSS not in name and not torch.equal(last[name], after[name]) for name in last)


@pytest.mark.parametrize(
    "update, veco, expected",
    [
        (Batch([PAIR], parallel=False), Veco(), 2 / 3),
        (Batch([PAIR], parallel=False, cross_alone=True), Veco(), 1),
        (Batch([PAIR], parallel=True), Veco(), 1),
        (Batch([ALONE], parallel=False), Veco(tlm=False), 1 / 2),
    ],
)
def test_the_share_of_the_losses(update, veco, expected):
    assert veco_losses.share(update, 0, veco) == pytest.approx(expected)


def test_text_of_one_language_alone_has_all_losses_that_can_be_made_of_it(tmp_path):
    parallel(tmp_path)
    run(tmp_path, made_by(tmp_path, updates=1, evaluate_every=1, learning_rate=1e-12))
    (log,) = (tmp_path / "out/c").rglob("log.jsonl")
    entries = [json.loads(line) for line in log.read_text().splitlines()]
    loss, dev = (next(entry[name] for entry in entries if name in entry) for name in ("loss", "eval_loss"))
    assert loss == pytest.approx(dev, rel=0.1)


def run_and_load(folder, settings) -> dict:
    run(folder, settings)
    return load_file(folder / "out/model/model.safetensors")


def test_without_its_decoder_it_is_the_masked_language_model(tmp_path):
    parallel(tmp_path)
    report = run(tmp_path, made_by(tmp_path, veco=Veco(cs_mlm=False)), **corpora(tmp_path))
    assert "cs_mlm_loss" not in report and "tlm_loss" in report
    network, loading_info = XLMRobertaForMaskedLM.from_pretrained(tmp_path / "out/model", output_loading_info=True)
    assert (
        not any(CROSS in name for name in network.state_dict()) and not loading_info["unexpected_keys"] and not loading_info["missing_keys"]
    )
    assert not (tmp_path / "out/model/bart").exists()


def test_a_veco_goes_on_from_an_xlmr_and_reads_pairs_as_text_where_configured(tmp_path):
    parallel(tmp_path)
    run(tmp_path, Backbone(kind="small", family="xlmr", objective="mlm", small=small(tmp_path, training=SHORT)))
    start = (tmp_path / "out").rename(tmp_path / "first") / "model"
    text = {code: str(tmp_path / f"mono.{code}") for code in ("de", "en")}
    for is_parallel in (True, False):
        block = Pretraining(text=text, dev_lines=20, training=replace(SHORT, updates=3), veco=Veco(parallel=is_parallel))
        report = run(tmp_path, Backbone(kind="continued", from_="x", objective="veco", continued=block), start=start, **corpora(tmp_path))
        assert ("tlm_loss" in report) == is_parallel and read_json(tmp_path / "out/model/config.json")["cross_attention"]
    block = Pretraining(text=text, dev_lines=20, training=replace(SHORT, max_length=600))
    with pytest.raises(InputError, match="reads rows of at most 512 pieces, max_length is 600"):
        run(tmp_path, Backbone(kind="continued", from_="x", objective="veco", continued=block), start=start)


def test_its_generator_is_restored_and_finetuned_like_an_mbart(tmp_path):
    folder, _ = phase_files(tmp_path)
    start = small_model(tmp_path / "noised", "bart")
    settings = Training(**{**TINY, "updates": 4, "evaluate_every": 2})
    restored = finetune(folder, start, tmp_path / "pretext", settings, noised=folder / "noised")
    made = finetune(folder, tmp_path / "pretext/model", tmp_path / "finetune", settings)
    assert restored.keys() == made.keys() and not same(restored, made)
    assert AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "finetune/model").config.model_type == "bart"
    assert read_json(tmp_path / "finetune/training.json")["handed_on"]["chosen_by"] == "dev_bleu"
