"""Batches, loss, schedule and resuming."""

import itertools
import math
import shutil
from pathlib import Path

import pytest
import torch
import zstandard
from phases import TINY, curve_of, finetune, phase_files
from safetensors.torch import load_file
from tiny_models import manual_pairs, small_model

from workflow_scripts.models.batches import collate
from workflow_scripts.models.search import generate
from workflow_scripts.models.tokenisation import load_codec, unlearnt
from workflow_scripts.noise.codeswitch import CodeSwitch
from workflow_scripts.noise.masking import Masking
from workflow_scripts.noise.span_noise import SpanNoise
from workflow_scripts.report.experimental_setup import written as described
from workflow_scripts.stage import InputError, read_json, write_json
from workflow_scripts.text.files import read_lines
from workflow_scripts.training import training
from workflow_scripts.training.checkpoints import average_weights
from workflow_scripts.training.curve import CURVE
from workflow_scripts.training.job import TrainingJob
from workflow_scripts.training.loop import load_model
from workflow_scripts.training.ragged import Rows, encoded, lengths_of
from workflow_scripts.training.rows import (
    Batches,
    Joined,
    Made,
    MaskedRounds,
    MaskedText,
    NoisedRounds,
    ParallelText,
    SwitchedText,
    in_parts,
    read_aligned,
    split_batch,
)
from workflow_scripts.training.settings import Training
from workflow_scripts.training.too_long import Room


@pytest.fixture(scope="module")
def setup(tmp_path_factory):
    """A model, training and dev text, and a folder of noised rounds."""
    return phase_files(tmp_path_factory.mktemp("training"))


class Fixed:
    """Rows of known lengths, the same every epoch."""

    rows = 300

    def epoch(self, number):
        return [([i] * (1 + i % 37), [i] * (1 + i % 23)) for i in range(self.rows)]

    def lengths(self, number):
        return None


def test_batches_hold_the_budget_and_every_row_comes_once_an_epoch():
    batches = list(Batches(Fixed(), 200, 400, seed=1))
    assert len(batches) == 400
    assert all(len(batch) * max(max(len(s), len(t)) for s, t in batch) <= 200 for batch in batches)
    seen = [row[0][0] for batch in batches for row in batch]
    assert sorted(seen[:300]) == list(range(300)) and seen[:300] != sorted(seen[:300])
    assert [b for b in batches] == list(Batches(Fixed(), 200, 400, seed=1)) != list(Batches(Fixed(), 200, 400, seed=2))
    # short ones do not come before long ones
    longest = [max(len(source) for source, _ in batch) for batch in batches[: len(Batches(Fixed(), 200, 1, seed=1).cut(0))]]
    assert longest != sorted(longest)
    filled = [len(batch) * max(max(len(s), len(t)) for s, t in batch) for batch in batches]
    assert sum(filled) / len(filled) > 0.75 * 200


def test_batches_are_made_when_they_are_asked_for_and_one_epoch_is_held():
    class Counted(Fixed):
        knows_lengths = True

        def __init__(self):
            self.made = []

        def epoch(self, number):
            self.made.append(number)
            return [([*source, number], [*target, number]) for source, target in super().epoch(number)]

        def lengths(self, number):
            return lengths_of(super().epoch(number)) + 1 if self.knows_lengths else None

    whole = list(Batches(Counted(), 200, 400, seed=1))
    text = Counted()
    batches = Batches(text, 200, 400, seed=1)
    assert batches[399] == whole[399] and batches[398] == whole[398] and len(text.made) == 1 and text.made[0] > 3  # as a resumed run does
    assert batches[:3] == whole[:3] and set(text.made[1:]) == {0}
    text.knows_lengths = False
    assert list(Batches(text, 200, 400, seed=1)) == whole
    asked = []
    parts = in_parts(Made(400, lambda at: asked.append(at) or batches[at]), 4)
    assert len(parts) == 1600 and [*parts[4:8]] == split_batch(whole[1], 4) and asked == [1]  # for all of its parts
    with pytest.raises(IndexError):
        batches[400]


def test_lengths_are_those_of_the_rows(setup):
    folder, start = setup
    codec, settings = load_codec(start), Training()
    text = {code: list(read_lines(folder / f"train.{code}")) for code in ("de", "en")}
    plain = ParallelText(folder / "train.de", folder / "train.en", ("de", "en"), codec, settings)
    masked = MaskedText(text, codec, Room(64, leave_out=False), Masking(), seed=1)
    for rounds, number in itertools.product((plain, masked, Joined([plain, plain])), (0, 2)):
        assert rounds.lengths(number).tolist() == lengths_of(rounds.epoch(number)).tolist()


def test_a_row_longer_than_a_batch_is_refused():
    with pytest.raises(InputError, match="raise batch_tokens"):
        list(Batches(Fixed(), 30, 5, seed=1))


def test_a_row_longer_than_the_model_reads_is_refused_before_the_first_update(setup, tmp_path):
    folder, start = setup
    folder = shutil.copytree(folder, tmp_path / "text")
    (folder / "train.de").write_text(("Öffnen Sie die Datei. " * 300 + "\n") * 4)
    (folder / "train.en").write_text("Open the file.\n" * 4)
    with pytest.raises(InputError, match=r"a row has \d+ pieces, and the model reads \d+ at most; set max_length"):
        finetune(folder, start, tmp_path, Training(updates=2, **{**TINY, "batch_tokens": 9000, "max_length": 4000}))


def test_a_batch_is_shared_without_loss():
    batch = Batches(Fixed(), 200, 1, seed=1)[0]
    parts = split_batch(batch, 4)
    assert sorted(row for part in parts for row in part) == sorted(batch)
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


def test_a_part_without_rows_adds_nothing():
    rows = [([5, 6, 2, 9], [7, 2, 8])]
    whole, nothing = (collate(part, pad=1) for part in split_batch(rows, 2))
    assert whole["labels"].tolist() == [[7, 2, 8]]
    assert nothing["labels"].tolist() == [[-100]] and nothing["decoder_input_ids"].tolist() == [[0]]
    assert nothing["input_ids"].tolist() == [[5, 6, 2, 9]]


def test_remainders_of_pools_are_shared(setup, tmp_path):
    folder, start = setup
    some = {**TINY, "batch_tokens": 150, "micro_batch_tokens": 20, "max_length": 20, "too_long": "cut"}
    settings = Training(updates=40, evaluate_every=40, checkpoint="last", **some)
    rows = ParallelText(folder / "train.de", folder / "train.en", ("de", "en"), load_codec(start), settings)
    parts = math.ceil(settings.batch_tokens / settings.micro_batch_tokens)
    assert min(map(len, Batches(rows, settings.batch_tokens, settings.updates, seed=1))) < parts
    finetune(folder, start, tmp_path, settings)
    assert curve_of(tmp_path)[-1]["update"] == "40"


def test_collate_pads_and_rotates():
    batch = collate([([5, 6, 2, 9], [7, 2, 8]), ([5, 2, 9], [7, 7, 2, 8])], pad=1)
    assert batch["input_ids"].tolist() == [[5, 6, 2, 9], [5, 2, 9, 1]]
    assert batch["attention_mask"].tolist() == [[1, 1, 1, 1], [1, 1, 1, 0]]
    assert batch["decoder_input_ids"].tolist() == [[8, 7, 2, 1], [8, 7, 7, 2]]
    assert batch["labels"].tolist() == [[7, 2, 8, -100], [7, 7, 2, 8]]


def test_a_phase_learns_and_writes_its_files(setup, tmp_path):
    folder, start = setup
    finetune(folder, start, tmp_path, Training(updates=40, evaluate_every=20, **TINY))
    curve = curve_of(tmp_path)
    assert [*curve[0]] == [*CURVE]
    losses = [float(row["loss"]) for row in curve if row["loss"]]
    dev = [(int(row["update"]), float(row["dev_loss"]), float(row["dev_bleu"])) for row in curve if row["dev_bleu"]]
    assert losses[-1] < losses[0] - 0.3
    assert [update for update, _, _ in dev] == [20, 40] and max(loss for _, loss, _ in dev) < math.log(500) - 0.5
    rates = [float(row["learning_rate"]) for row in curve if row["learning_rate"]]
    assert max(rates) <= 5e-3 and rates[-1] < rates[len(rates) // 2]
    report = read_json(tmp_path / "training.json")
    (long,) = report["too_long"]["train"]
    assert report["rows"] + long["too_long"] == long["rows"] == 170 and report["settings"]["updates"] == 40
    assert (report["handed_on"]["chosen_by"], report["handed_on"]["reason"]) == ("dev_bleu", None)
    assert report["handed_on"]["dev_bleu"] == pytest.approx(max(bleu for _, _, bleu in dev), rel=1e-4)
    assert list((tmp_path / "checkpoints").rglob("events.out.tfevents*"))
    assert load_codec(tmp_path / "model").family == "mbart"


def test_pretext_reads_rounds_in_both_languages(setup, tmp_path):
    folder, start = setup
    codec = load_codec(start)
    rounds = NoisedRounds(folder / "noised", ("de", "en"), codec, Room(64, leave_out=False))
    assert rounds.count == 2 and rounds.rows == 100 and rounds.epoch(2) == rounds.epoch(0) != rounds.epoch(1)
    tags = {max(row[1][-1], unlearnt(row[1][-1])) for row in rounds.epoch(0)}  # of rows that are cut, it is not learnt
    assert tags == {codec.tag("de"), codec.tag("en")} and all(source[-1] in tags for source, _ in rounds.epoch(0))
    finetune(folder, start, tmp_path, Training(updates=6, evaluate_every=3, checkpoint="last", **TINY), noised=folder / "noised")
    assert "\t\t" in (tmp_path / "curve.tsv").read_text()  # no BLEU of a restore task


def test_noised_text_may_be_learnt_as_it_stands(setup, tmp_path):
    codec = load_codec(setup[1])
    write_json(tmp_path / "codeswitch.json", {"kind": "switched_text", "unit": "word", "masks": False, "as_text": True})
    rows = "".join(f"switched {line}\t{line}\n" for line in manual_pairs(10)[0])
    (tmp_path / "round0.de.tsv.zst").write_bytes(zstandard.compress(rows.encode()))
    (read, labels), *_ = made = [*NoisedRounds(tmp_path, ("de",), codec, Room(200, leave_out=True)).epoch(0)]
    assert [*read] == codec.encode([""], "de")[0] and len(made) == 10
    assert [*labels] == codec.encode([f"switched {manual_pairs(1)[0][0]}"], "de")[0]


def test_an_encoder_guesses_masked_pieces_of_noised_text(tmp_path):
    start = small_model(tmp_path, "xlm-roberta")
    write_json(tmp_path / "codeswitch.json", {"kind": "switched_text", "unit": "word", "masks": False, "as_text": True})
    for name in ("round0", "round1", "dev"):
        rows = "".join(f"{name} {line}\t{line}\n" for line in manual_pairs(30)[0])
        (tmp_path / f"{name}.de.tsv.zst").write_bytes(zstandard.compress(rows.encode()))
    codec = load_codec(start)
    rounds = MaskedRounds(tmp_path, ("de",), codec, Room(200, leave_out=False), Masking(), 1)

    def text(number):
        return [[read if label < 0 else label for read, label in zip(*row, strict=True)] for row in rounds.epoch(number)]

    assert text(0)[3] == codec.encode([f"round0 {manual_pairs(4)[0][3]}"], "de")[0] and text(1)[3] != text(0)[3]
    assert text(2) == text(0) and [*map(list, rounds.epoch(2)[0])] != [*map(list, rounds.epoch(0)[0])]  # masked anew
    # by other random numbers than the noise, which has drawn with the same seed from streams with these numbers
    plain = MaskedText({"de": [f"round0 {line}" for line in manual_pairs(30)[0]]}, codec, Room(200, leave_out=False), Masking(), 1)
    assert [*map(list, plain.epoch(0)[0])] != [*map(list, rounds.epoch(0)[0])]
    job = TrainingJob(start, *(tmp_path / f"out/{name}" for name in ("model", "curve.tsv", "training.json", "checkpoints")), threads=1)
    few = Training(**{**TINY, "updates": 4, "evaluate_every": 2, "checkpoint": "last"})
    training.restore(job, languages=("de",), noised=tmp_path, settings=few)
    report = read_json(tmp_path / "out/training.json")
    assert (report["rows"], report["too_long"]["are"], report["as_text"]) == (30, "cut", True)
    before, after = (load_file(folder / "model.safetensors") for folder in (start, tmp_path / "out/model"))
    assert before.keys() == after.keys() and not all(torch.equal(before[name], after[name]) for name in before)


def test_a_supervised_translation_model_goes_through_restore_and_task(setup, tmp_path):
    """An NLLB that has learnt to translate, with code-switching restore between (the second future work of Zan et al. 2022)."""
    folder = setup[0]
    few = Training(**{**TINY, "updates": 4, "evaluate_every": 2, "checkpoint": "last"})
    finetune(folder, small_model(tmp_path, "nllb"), tmp_path / "supervised", few)
    switched = tmp_path / "switched"
    switched.mkdir()
    write_json(switched / "codeswitch.json", {"kind": "codeswitch", "unit": "word"})
    pairs = list(zip(*manual_pairs(60), strict=True))
    for side, code in enumerate(("de", "en")):
        for name, some in (("round0", pairs[:40]), ("dev", pairs[40:])):
            rows = "".join(f"{pair[1 - side].split()[0]} {pair[side]}\t{pair[side]}\n" for pair in some)
            (switched / f"{name}.{code}.tsv.zst").write_bytes(zstandard.compress(rows.encode()))
    restored = finetune(folder, tmp_path / "supervised/model", tmp_path / "restored", few, noised=switched)
    translated = finetune(folder, tmp_path / "restored/model", tmp_path / "translated", few)
    before = load_file(tmp_path / "supervised/model/model.safetensors")
    for one, other in ((before, restored), (restored, translated)):
        assert one.keys() == other.keys() and not all(torch.equal(one[name], other[name]) for name in one)
    # what is restored is written in its own language, what is translated in the other one
    codec = load_codec(tmp_path / "translated/model")
    tags = {code: codec.tag(code) for code in ("de", "en")}
    assert codec.tokenizer.convert_ids_to_tokens([*tags.values()]) == ["deu_Latn", "eng_Latn"]
    rows = [*NoisedRounds(switched, ("de", "en"), codec, Room.of(few)).epoch(0)]
    assert [(source[0], target[0]) for source, target in (rows[0], rows[-1])] == [(tags["de"],) * 2, (tags["en"],) * 2]
    (source, target), *_ = ParallelText(folder / "train.de", folder / "train.en", ("de", "en"), codec, few).epoch(0)
    assert (source[0], target[0]) == (tags["de"], tags["en"])


@pytest.mark.parametrize(
    ("changes", "chosen_by", "reason"),
    [
        ({"choose_by": "loss"}, "dev_loss", None),
        ({"choose_by": "smoothed_loss"}, "dev_smoothed_loss", None),
        ({"bleu_sentences": 0}, "dev_loss", "no BLEU was measured on the dev set: bleu_sentences is 0"),
        ({"noised": True}, "dev_loss", "no BLEU was measured on the dev set"),
        ({"checkpoint": "last"}, None, None),
    ],
)
def test_the_report_says_what_chose_the_weights(setup, tmp_path, changes, chosen_by, reason):
    folder, start = setup
    settings = {key: value for key, value in changes.items() if key != "noised"}
    text = {"noised": folder / "noised"} if "noised" in changes else {}
    finetune(folder, start, tmp_path, Training(updates=4, evaluate_every=2, **{**TINY, **settings}), **text)
    said = read_json(tmp_path / "training.json")["handed_on"]
    assert (said["chosen_by"], said["reason"]) == (chosen_by, reason) and len(said["updates"]) == 1
    # smoothing adds what guessing pieces costs; the curve has a column for it where it is measured
    smoothed = said["dev_smoothed_loss"]
    assert ("dev_smoothed_loss" in (tmp_path / "curve.tsv").read_text()) == (smoothed is not None) == (chosen_by == "dev_smoothed_loss")
    assert smoothed is None or smoothed != said["dev_loss"]


def test_pairs_are_the_same_for_all_seeds(setup):
    folder, start = setup
    codec = load_codec(start)
    files = folder / "train.de", folder / "train.en", ("de", "en"), codec
    some = ParallelText(*files, Training(pairs=50, max_length=400))
    assert some.rows == 50 and some.epoch(0) == ParallelText(*files, Training(pairs=50, max_length=400)).epoch(3)
    everything = Rows(*read_aligned(*files, Room(400, leave_out=True)).sides)
    assert len(everything) == 170 and all(row in everything for row in some.epoch(0))
    assert some.too_long[0]["rows"] == 50
    # of the same pairs those that are too long are left out
    fewer = ParallelText(*files, Training(pairs=50, max_length=60))
    assert 0 < fewer.rows < 50 and set(fewer.chosen) < set(some.chosen) and all(row in some.epoch(0) for row in fewer.epoch(0))


@pytest.mark.parametrize("given", [{"switch": "{}"}, {"lexicon": Path("de-en.tsv")}])
def test_switching_needs_settings_and_a_lexicon(setup, tmp_path, given):
    with pytest.raises(InputError, match="give both --switch and --lexicon, or neither"):
        finetune(*setup, tmp_path, Training(updates=1, **TINY), **given)


def test_words_of_the_source_are_switched_anew_in_each_epoch_and_the_target_stays(setup, tmp_path):
    codec = load_codec(setup[1])
    lexicon = tmp_path / "de-en.tsv"
    words = sorted({word for line in manual_pairs(100)[0] for word in line.lower().split() if word.isalpha()})
    lexicon.write_text("".join(f"{word}\t{word[::-1]}\t1\t1.0\n" for word in words), encoding="utf-8")
    text = (setup[0] / "train.de", setup[0] / "train.en", ("de", "en"), codec, Training(pairs=60, max_length=400))
    plain = ParallelText(*text).epoch(0)
    rows = SwitchedText(*text, lexicon, CodeSwitch(SpanNoise(rate=0.3)), 1)
    first, second = rows.epoch(0), rows.epoch(1)
    assert rows.rows == 60 and [target for _, target in first] == [target for _, target in plain] == [target for _, target in second]
    changed = [new != old for (new, _), (old, _) in zip(first, plain, strict=True)]
    assert any(changed) and first != second
    assert rows.epoch(0) == first != SwitchedText(*text, lexicon, CodeSwitch(SpanNoise(rate=0.3)), 2).epoch(0)
    assert SwitchedText(*text, lexicon, CodeSwitch(SpanNoise(rate=0.0)), 1).epoch(0) == plain
    # a pair that is left out changes nothing of the others
    shorter = SwitchedText(
        *text[:-1], Training(pairs=60, max_length=60), lexicon, CodeSwitch(SpanNoise(rate=0.3)), 1, Room(90, leave_out=True)
    )
    whole = [row for row in shorter.epoch(0) if len(row[0]) < 80]
    assert 0 < len(whole) <= shorter.rows < 60 and all(row in first for row in whole)
    lexicon.write_text("xyzzy\tplugh\t1\t1.0\n")
    with pytest.raises(InputError, match=r"de-en\.tsv: has no word of the text in de"):
        SwitchedText(*text, lexicon, CodeSwitch(), 1)


def test_scratch_starts_from_other_weights(setup, tmp_path):
    _, start = setup
    given, scratch = load_model(start, Training(), 7), load_model(start, Training(), 7, from_scratch=True)
    shutil.copytree(start, tmp_path / "half")
    config = read_json(start / "config.json")
    write_json(tmp_path / "half/config.json", {**config, "dtype": "float16"})
    assert load_model(tmp_path / "half", Training(), 7, from_scratch=True).dtype == torch.float32
    assert given.config.dropout == 0.3 and scratch.num_parameters() == given.num_parameters()
    assert not torch.equal(given.model.shared.weight, scratch.model.shared.weight)


def test_average_is_the_mean(setup, tmp_path):
    _, start = setup
    files = []
    for seed in (1, 2):
        load_model(start, Training(), seed, from_scratch=True).save_pretrained(tmp_path / str(seed))
        files.append(tmp_path / str(seed) / "model.safetensors")
    network = load_model(start, Training(), 1)
    average_weights(network, files)
    name = "model.encoder.layers.0.fc1.weight"
    expected = (load_file(files[0])[name] + load_file(files[1])[name]) / 2
    assert torch.allclose(network.state_dict()[name], expected, atol=1e-6)


def test_misaligned_text_is_refused(setup):
    folder, start = setup
    with pytest.raises(InputError, match="must be aligned"):
        read_aligned(folder / "train.de", folder / "dev.en", ("de", "en"), load_codec(start), Room(64, leave_out=True))


def test_a_gpu_that_was_given_must_be_used(monkeypatch):
    from workflow_scripts.device import pick_device

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.delenv("SLURM_JOB_GPUS", raising=False)
    assert pick_device("auto").type == "cpu"
    with pytest.raises(InputError, match="asked for"):
        pick_device("cuda")
    monkeypatch.setenv("SLURM_JOB_GPUS", "0")
    with pytest.raises(InputError, match="SLURM_JOB_GPUS=0"):
        pick_device("auto")
    assert pick_device("cpu").type == "cpu"


def test_attention_on_a_gpu_is_not_left_to_cudnn(monkeypatch):
    """cuDNN plans anew for each new length, which takes twice as long as an update."""
    from workflow_scripts.device import pick_device

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    torch.backends.cuda.enable_cudnn_sdp(True)
    assert pick_device("auto").type == "cuda" and not torch.backends.cuda.cudnn_sdp_enabled()


def test_a_cpu_computes_in_float32_whatever_instructions_it_has(monkeypatch):
    from workflow_scripts.device import multiplies_in_bfloat16, pick_precision

    for name in ("_is_amx_tile_supported", "_is_avx512_bf16_supported"):
        monkeypatch.setattr(torch.cpu, name, lambda: True)
    assert multiplies_in_bfloat16()
    assert pick_precision("auto", torch.device("cpu")) == "float32"
    assert pick_precision("bfloat16", torch.device("cpu")) == "bfloat16"


def test_rounds_of_pieces_are_read_as_pieces(setup, tmp_path):
    _, start = setup
    codec = load_codec(start)
    line = manual_pairs(1)[0][0]
    pieces = codec.tokens([line])[0]
    shuffled = [*pieces[::-1], "<mask>"]
    for name in ("round0", "dev"):
        for code in ("de", "en"):
            (tmp_path / f"{name}.{code}.tsv.zst").write_bytes(zstandard.compress(f"{' '.join(shuffled)}\t{line}\n".encode()))
    write_json(tmp_path / "codeswitch.json", {"unit": "piece"})
    (noised, original), _ = NoisedRounds(tmp_path, ("de", "en"), codec, Room(200, leave_out=True)).epoch(0)
    assert list(original) == codec.encode([line], "de")[0]
    assert codec.tokenizer.convert_ids_to_tokens(noised[:-2]) == shuffled and noised[-2:] == original[-2:]


@pytest.mark.parametrize("kind, masks", [("mask", 1), ("codeswitch", 0)])
def test_only_a_phase_that_restores_masks_reads_one_in_the_text_as_a_mask(setup, tmp_path, kind, masks):
    codec = load_codec(setup[1])
    (tmp_path / "round0.de.tsv.zst").write_bytes(zstandard.compress(b"Die <mask> hier.\tDie <mask> hier.\n"))
    write_json(tmp_path / "codeswitch.json", {"unit": "word", "kind": kind})
    ((noised, original),) = NoisedRounds(tmp_path, ("de",), codec, Room(64, leave_out=True)).epoch(0)
    mask = codec.tokenizer.mask_token_id
    assert (noised.count(mask), original.count(mask)) == (masks, 0)


def test_noised_rows_that_were_cut_off_are_refused(setup, tmp_path):
    codec = load_codec(setup[1])
    path = tmp_path / "round0.de.tsv.zst"
    write_json(tmp_path / "codeswitch.json", {"unit": "word"})
    rows = "".join(f"{line}\t{line}\n" for line in manual_pairs(300)[0])
    path.write_bytes(zstandard.compress(rows.encode())[:-40])
    with pytest.raises(InputError, match=r"round0\.de\.tsv\.zst, after line \d+: cannot be read"):
        NoisedRounds(tmp_path, ("de",), codec, Room(64, leave_out=True))
    path.write_bytes(zstandard.compress(b"Eine Zeile.\tEine Zeile.\nNoch eine."))
    with pytest.raises(InputError, match="line 2: expected a noised and an original sentence"):
        NoisedRounds(tmp_path, ("de",), codec, Room(64, leave_out=True))


def test_dev_translations_stay_within_the_models_positions(setup):
    folder, start = setup
    codec = load_codec(start)
    positions = load_model(start, Training(), 1).config.max_position_embeddings
    row = codec.encode([" ".join(manual_pairs(60)[0])], "de", positions)[0]
    assert len(row) == positions
    assert len(generate(load_model(start, Training(), 1), codec, [row], "en", beam_size=1)) == 1


def test_ids_are_held_in_four_bytes_each():
    lines = [str(number) for number in range(25_000)]
    rows = encoded(lambda some: [[int(line), 250_026] for line in some], lines)
    assert [list(row) for row in rows] == [[number, 250_026] for number in range(25_000)]
    assert rows.flat.nbytes == 25_000 * 2 * 4 and collate([(rows[3], rows[4])], pad=1)["labels"].dtype == torch.int64


def test_targets_that_another_arm_has_written_are_learnt_and_the_empty_ones_counted(setup, tmp_path):
    folder, model = setup[0], setup[1]
    lines = [*read_lines(folder / "train.en")]
    (tmp_path / "written").write_text("".join(f"{line}\n" for line in ["", *lines[:-1]]), encoding="utf-8")
    few = Training(**{**TINY, "updates": 1, "evaluate_every": 1})
    finetune(folder, model, tmp_path / "own", few)
    finetune(folder, model, tmp_path / "other", few, train_target=tmp_path / "written", targets_from="teacher")
    own, said = (read_json(tmp_path / one / "training.json") for one in ("own", "other"))
    assert (said["targets_from"], said["empty_targets"]) == ("teacher", 1) and "targets_from" not in own
    assert "the targets are what teacher writes, 1 of them empty" in described(said) and "targets are" not in described(own)
