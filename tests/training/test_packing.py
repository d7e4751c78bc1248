"""Packed rows: what shares a row, its tensors, and losses and gradients, which are those of the sentences by themselves."""

from contextlib import nullcontext

import numpy as np
import pytest
import torch
from phases import TINY, curve_of, finetune, phase_files
from test_checkpoints import stopped_after
from test_training import Fixed
from tiny_decoders import small_decoder
from tiny_models import small_model
from transformers import AutoModelForMaskedLM, DebertaV2Config, ModernBertConfig, RemBertConfig, RobertaConfig

from workflow_scripts.models.batches import collate
from workflow_scripts.models.recognition import family_of
from workflow_scripts.models.tokenisation import load_codec, unlearnt
from workflow_scripts.stage import InputError, read_json
from workflow_scripts.training.loop import batch_maker, load_model, network_reads, pick_loss
from workflow_scripts.training.mixed_precision import copied_weights
from workflow_scripts.training.packing import (
    PackedBatches,
    PackedRow,
    check_packs,
    collate_packed,
    fitted,
    packed,
    row_length,
    sentences_are_apart,
)
from workflow_scripts.training.ragged import lengths_of
from workflow_scripts.training.rows import Batches, split_batch
from workflow_scripts.training.settings import Training

ALONE = ("xlm-roberta", "bert", "gemma3_text", "llama", "qwen3")
FAMILIES = ("mbart", "mbart50", "m2m100", "nllb", "bart", "mt5", *ALONE)
SHAPE = {
    "vocab_size": 60,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "pad_token_id": 1,
    "bos_token_id": 2,
    "eos_token_id": 3,
}
SETTINGS = Training(dropout=0.0, attention_dropout=0.0, packed=True, max_length=20)


def sentences(family, number=11):
    """Sentences of other lengths on either side; of some, the end is not learnt. Those of an encoder have a few labels each."""
    rng = np.random.default_rng(3)
    rows = [([*rng.integers(5, 90, 3 + 5 * n % 14)], [*rng.integers(5, 90, 2 + 7 * n % 15)]) for n in range(number)]
    if family in ALONE:
        return [(read, [piece if n % 3 == 0 else -100 for n, piece in enumerate(read)]) for read, _ in rows]
    return [(read, [*labels[:-1], unlearnt(labels[-1])] if n % 4 == 3 else labels) for n, (read, labels) in enumerate(rows)]


def learnt(network, loss, batch):
    """The summed loss; its gradients are left in the network."""
    labels = batch.pop("labels")
    value = loss(network(**batch), labels, 1)
    value.backward()
    return value.item()


def opened(start, precision="float32"):
    """The network in a folder, and its loss."""
    network = load_model(start, SETTINGS, 1).train()
    return network, pick_loss(network, SETTINGS, precision)


def gradients(network):
    found = {name: weight.grad for name, weight in network.named_parameters() if weight.grad is not None}
    network.zero_grad(set_to_none=True)
    return found


@pytest.mark.parametrize("family", FAMILIES)
def test_losses_and_gradients_are_those_of_single_sentences(tmp_path, family):
    start = small_model(tmp_path, family)
    rows, codec = sentences(family), load_codec(start)
    network, loss = opened(start)
    form = {"pad": codec.pad, "decoder": codec.form.decoder, "start": codec.start}
    single = sum(learnt(network, loss, collate([row], **form)) for row in rows)
    expected = gradients(network)

    network, loss = opened(start)
    some = [packed(rows[n] for n in chosen) for chosen in ([3, 0, 4, 1], [2, 5, 6], [7, 8, 9, 10], [])]
    assert max(map(len, (part for row in some for part in row))) <= 64
    with network_reads(network, packed=True):
        together = learnt(network, loss, batch_maker(codec, SETTINGS, select=True)(some))
    found = gradients(network)
    assert together == pytest.approx(single, rel=1e-5) and single > 10
    assert expected.keys() == found.keys() and len(found) > 10
    largest = max(float(gradient.abs().max()) for gradient in expected.values())
    for name, gradient in expected.items():
        assert torch.allclose(gradient, found[name], atol=1e-5 * largest, rtol=1e-3), name


@pytest.mark.parametrize("family", ["mbart", "m2m100", "mt5", "xlm-roberta", "gemma3_text"])
def test_what_surrounds_a_sentence_does_not_change_its_loss(tmp_path, family):
    start = small_model(tmp_path, family)
    codec, rows = load_codec(start), sentences(family)
    losses = []
    for others in ([1, 4], [5, 2, 6]):
        network, _ = opened(start)
        with torch.no_grad(), network_reads(network, packed=True):
            chosen = [*others[:1], 0, *others[1:]]
            batch = batch_maker(codec, SETTINGS, select=True)([packed(rows[n] for n in chosen)])
            labels = batch.pop("labels")
            states = network(**batch).logits
        known = [sum(label > -100 for label in rows[n][1]) for n in chosen]
        losses.append(states[known[0] : known[0] + known[1]])
        assert len(states) == labels.numel() == sum(known)
    assert torch.allclose(*losses, atol=1e-5)


def test_weights_may_be_copies_in_bfloat16(tmp_path):
    start = small_model(tmp_path)
    codec, rows = load_codec(start), sentences("mbart")
    found = []
    for precision in ("float32", "bfloat16"):
        network, loss = opened(start, precision)
        with network_reads(network, packed=True), copied_weights(network) if precision == "bfloat16" else nullcontext():
            learnt(network, loss, batch_maker(codec, SETTINGS, select=True)([packed(rows[:5])]))
        found.append(torch.cat([gradient.flatten() for gradient in gradients(network).values()]))
    assert float((found[0] - found[1]).norm()) < 0.1 * float(found[0].norm())


def test_tensors_of_packed_rows():
    rows = [packed([([5, 6, 2], [7, 2]), ([8, 2], [9, 10, unlearnt(2)])]), packed([([4, 2], [5, 2])]), ([5], [-100])]
    batch = {name: tensor.tolist() for name, tensor in collate_packed(rows, 6, pad=1).items()}
    assert batch["input_ids"] == [[5, 6, 2, 8, 2, 1], [4, 2, 1, 1, 1, 1], [1] * 6]
    assert batch["segments"] == [[1, 1, 1, 2, 2, 0], [1, 1, 0, 0, 0, 0], [0] * 6]
    assert batch["positions"] == [[0, 1, 2, 0, 1, 0], [0, 1, 0, 0, 0, 0], [0] * 6]
    assert batch["decoder_input_ids"] == [[2, 7, 2, 9, 10, 1], [2, 5, 1, 1, 1, 1], [1] * 6]
    assert batch["decoder_segments"][0] == [1, 1, 2, 2, 2, 0] and batch["decoder_positions"][0] == [0, 1, 0, 1, 2, 0]
    assert batch["labels"] == [[7, 2, 9, 10, -100, -100], [5, 2, -100, -100, -100, -100], [-100] * 6]
    alone = {
        name: tensor.tolist()
        for name, tensor in collate_packed([packed([([5, 6, 8], [-100, 6]), ([7], [7])])], 5, 1, decoder=False).items()
    }
    assert alone["labels"] == [[-100, 6, -100, 7, -100]] and alone["segments"] == [[1, 1, 1, 2, 0]] and "decoder_input_ids" not in alone


@pytest.mark.parametrize("tokens, rows", [(256, 2), (1000, 7)])
def test_every_sentence_comes_once_an_epoch_and_all_updates_have_one_shape(tokens, rows):
    updates = PackedBatches(Fixed(), tokens, 40, 1, 128)
    assert {len(update) for update in updates} == {rows}
    assert all(max(len(row.read), len(row.labels)) <= 128 for update in updates for row in update)
    an_epoch = len(updates.cut(0))
    seen = [
        ids for update in updates[:an_epoch] for row in update for ids in np.split(row.read, np.cumsum([a for a, _ in row.lengths])[:-1])
    ]
    assert sorted((len(ids), int(ids[0])) for ids in seen if len(ids)) == sorted((len(a), a[0]) for a, _ in Fixed().epoch(0))
    assert updates[0] == PackedBatches(Fixed(), tokens, 40, 1, 128)[0] != PackedBatches(Fixed(), tokens, 40, 2, 128)[0]
    assert updates[an_epoch] != updates[0]
    # all parts have rows
    assert all(len(part) >= 1 for part in split_batch(updates[0], 4))


def test_rows_are_nearly_full():
    rng = np.random.default_rng(1)
    common = rng.normal(3.1, 0.6, 4000)
    read, labels = (np.exp(common + rng.normal(0, 0.15, 4000)).clip(4, 126).astype(int) for _ in range(2))
    rows = fitted(read, labels, 128)
    assert sorted(at for row in rows for at in row) == list(range(4000))
    assert all(max(read[row].sum(), labels[row].sum()) <= 128 for row in rows)
    assert (read.sum() + labels.sum()) / (2 * 128 * len(rows)) > 0.93


@pytest.mark.parametrize("longest, length", [(20, 128), (128, 128), (129, 192), (256, 256)])
def test_rows_are_as_long_as_sentences_may_be(longest, length):
    assert row_length(longest) == length


@pytest.mark.parametrize("changes", [{}, {"loss": "plain"}, {"micro_batch_tokens": 128}], ids=lambda changes: str(changes))
def test_a_phase_with_packed_rows_learns_and_goes_on(tmp_path, monkeypatch, changes):
    files = phase_files(tmp_path)
    settings = {**TINY, **changes, "packed": True, "updates": 8, "evaluate_every": 4, "bleu_sentences": 0, "log_every": 1, "loss_every": 0}
    settings |= {"checkpoint": "last"}
    whole = finetune(*files, tmp_path / "whole", Training(**settings))
    losses = [float(row["loss"]) for row in curve_of(tmp_path / "whole") if row["loss"]]
    assert losses[-1] < losses[0] and read_json(tmp_path / "whole/training.json")["settings"]["packed"]
    if changes:
        return
    with stopped_after(2, monkeypatch):
        finetune(*files, tmp_path / "cut", Training(**settings))
    again = finetune(*files, tmp_path / "cut", Training(**settings))
    assert all(torch.equal(whole[name], again[name]) for name in whole)


class Growing:
    """Rows of which one is longer in the third epoch, as noise may make it."""

    rows, too_long = 50, ()

    def __init__(self, first, later=0):
        self.first, self.later = first, later

    def epoch(self, number):
        return [([5] * length, [6] * length) for length in (self.later if number == 2 else self.first, *[60] * 49)]

    def lengths(self, number):
        return None


def test_a_row_that_noise_makes_longer_ends_no_training():
    updates = PackedBatches(Growing(126, 140), 1024, 12, 1, 128)
    assert [len(updates.cut(number)) for number in range(3)] == [4, 4, 4]
    shapes = [tuple(collate_packed(update, updates.length, 0, decoder=False)["input_ids"].shape) for update in updates]
    assert {*shapes[:8]} == {(8, 128)} and {*shapes[8:]} == {(5, 192)}
    assert sum(len(row.lengths) for update in updates[8:] for row in update) == 50
    # without packing, it is a batch by itself
    batches = Batches(Growing(126, 140), 130, 150, 1)
    an_epoch = len(batches.cut(0))
    assert [len(batch) for batch in batches[2 * an_epoch :] if len(batch[0][0]) == 140] == [1] and len(batches.cut(2)) == an_epoch
    with pytest.raises(InputError, match="a row has 140 pieces, more than a batch of 130 tokens"):
        Batches(Growing(140), 130, 1, 1)[0]


def test_a_row_that_noise_makes_longer_than_a_window_is_refused():
    def check(longest):
        if longest > 130:
            raise InputError(f"it has {longest}")

    updates = PackedBatches(Growing(126, 140), 1024, 12, 1, 128, check)
    assert len(updates.cut(1)) == 4
    with pytest.raises(InputError, match="it has 140"):
        updates.cut(2)


def test_rows_have_room_for_prompt_source_and_answer():
    assert (PackedBatches(Growing(140), 1024, 1, 1, 128).length, PackedBatches(Growing(100), 1024, 1, 1, 128).length) == (192, 128)


def test_where_rows_cannot_be_packed(tmp_path):
    with pytest.raises(InputError, match="a packed row has 128 pieces, more than a batch of 100 tokens; raise batch_tokens"):
        PackedBatches(Fixed(), 100, 1, 1, 128)
    with pytest.raises(InputError, match="a packed row has 192 pieces, more than a batch of 150 tokens; raise batch_tokens"):
        PackedBatches(Growing(140), 150, 1, 1, 128)
    assert lengths_of([PackedRow([1, 2], [3], [(2, 1)])]).tolist() == [2]


def test_a_family_that_does_not_say_how_is_refused(tmp_path, monkeypatch):
    files = phase_files(tmp_path)
    monkeypatch.setattr(type(family_of(files[1])), "restarts", property(lambda self: None), raising=False)
    with pytest.raises(InputError, match=r"training\.packed: it is not known how mBART counts positions anew"):
        finetune(*files, tmp_path / "out", Training(**TINY, packed=True, updates=1))


@pytest.mark.parametrize(
    "kind, longest, said",
    [("gemma3_text", 64, ""), ("gemma3_text", 65, "sees 64 pieces back"), ("bloom", 20, "BLOOM counts"), ("llama", 65, "")],
)
def test_decoders_that_take_packed_rows(tmp_path, kind, longest, said):
    network = load_model(small_decoder(tmp_path, kind), SETTINGS, 1)
    if said:
        with pytest.raises(InputError, match=said):
            check_packs(network, longest)
    else:
        check_packs(network, longest)


@pytest.mark.parametrize(
    "config, takes",
    [
        (RobertaConfig(max_position_embeddings=66, **SHAPE), True),
        (ModernBertConfig(local_attention=128, cls_token_id=2, sep_token_id=3, **SHAPE), True),
        (RemBertConfig(input_embedding_size=16, output_embedding_size=24, **SHAPE), False),
        (DebertaV2Config(relative_attention=True, position_buckets=16, pos_att_type=["c2p", "p2c"], **SHAPE), False),
    ],
    ids=["roberta", "modernbert", "rembert", "deberta"],
)
def test_encoders_that_take_packed_rows(config, takes):
    """Of a RoBERTa the first piece has position 2; a RemBERT adds 1 to scores of the same sentence, and masks nothing."""
    network = AutoModelForMaskedLM.from_config(config).eval()
    for weight in network.parameters():
        torch.nn.init.normal_(weight, std=0.3)
    assert sentences_are_apart(network) == takes
    if takes:
        check_packs(network, 20)
    else:
        with pytest.raises(InputError, match=f"{type(network).__name__} lets a sentence see others in its row; leave it out"):
            check_packs(network, 20)


def test_a_decoder_that_sees_other_sentences_is_found_out(tmp_path, monkeypatch):
    network = load_model(small_decoder(tmp_path, "llama"), SETTINGS, 1)
    original = type(network).forward
    monkeypatch.setattr(type(network), "forward", lambda self, attention_mask=None, **read: original(self, **read))
    with pytest.raises(InputError, match="lets a sentence see others in its row"):
        check_packs(network, 20)
