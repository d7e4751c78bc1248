"""A frozen encoder learns to write: what is trained and written, what goes on after a kill, and the files of prompts."""

import json
import shutil
import signal
from functools import partial
from types import SimpleNamespace

import pytest
import torch
import warm
from phases import TINY, assert_same, finetune, phase_files
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from test_checkpoints import command, run_until
from tiny_models import small_encoder, small_model

from workflow_scripts import registry
from workflow_scripts.models import decoding
from workflow_scripts.models.networks import load_network, save_model
from workflow_scripts.models.prompt_files import FILE, load_generator, make_generator
from workflow_scripts.models.recognition import longest_output
from workflow_scripts.models.refining import write
from workflow_scripts.models.sga import SGA
from workflow_scripts.models.tokenisation import load_codec, unlearnt
from workflow_scripts.models.tokenizer import load_tokenizer
from workflow_scripts.models.veco import load_stack
from workflow_scripts.stage import InputError, read_json
from workflow_scripts.training import generating
from workflow_scripts.training.generating import (
    WithRoom,
    collate_sources,
    dev_losses,
    open_generator,
    positions_guessed,
    positions_read,
    rows_with_room,
    summed,
)
from workflow_scripts.training.rows import split_batch
from workflow_scripts.training.settings import Training
from workflow_scripts.training.writing import as_ctc

SETTINGS = {**TINY, "max_length": 32, "attention_dropout": 0.1, "dropout": 0.1, "updates": 6, "evaluate_every": 3, "checkpoint": "last"}
SMALL = json.dumps({"prompt_length": 4})


@pytest.fixture(scope="module")
def setup(tmp_path_factory):
    """Text, and an encoder that writes none."""
    folder, _ = phase_files(tmp_path_factory.mktemp("generating"))
    encoder = tmp_path_factory.mktemp("xlmr")
    return folder, small_encoder(encoder, "xlm-roberta")


@pytest.fixture(scope="module")
def trained(setup, tmp_path_factory):
    """The folder of a phase that trained prompts."""
    out = tmp_path_factory.mktemp("trained")
    finetune(*setup, out, Training(**SETTINGS), generator="sga", generator_settings=SMALL)
    return out


def test_prompts_change_and_the_encoder_stays_bit_by_bit(setup, trained):
    before, after = (load_file(folder / "model.safetensors") for folder in (setup[1], trained / "model"))
    assert before.keys() == after.keys() and all(torch.equal(before[name], after[name]) for name in before)
    prompts = load_file(trained / "model" / FILE)
    report = read_json(trained / "training.json")
    assert sum(weight.numel() for weight in prompts.values()) == report["trained"] < report["parameters"]
    assert (trained / "model" / FILE).stat().st_size < 4 * report["trained"] + 4_000
    # a checkpoint has the prompts alone
    (checkpoint,) = trained.glob("checkpoints/*/checkpoint-6")
    kept = load_file(checkpoint / "model.safetensors")
    assert kept.keys() == prompts.keys() and all(torch.equal(kept[name], prompts[name]) for name in kept)


def test_killed_it_ends_with_the_same_prompts(setup, tmp_path):
    options = {"generator": "sga", "generator_settings": json.dumps({"prompt_length": 4, "alignment": "mask_predict", "noise": "released"})}
    settings = {**SETTINGS, "log_every": 1}
    finetune(*setup, tmp_path / "whole", Training(**settings), **options)
    line = [*command(*setup, tmp_path / "cut", settings), "--generator", "sga", "--generator-settings", options["generator_settings"]]
    assert run_until(line, 5, signal.SIGKILL)[0] == -signal.SIGKILL
    finished = warm.run(line)
    assert finished.returncode == 0 and "checkpoint-3" in finished.stdout, finished.stderr[-2000:]
    whole, cut = (load_file(tmp_path / name / "model" / FILE) for name in ("whole", "cut"))
    assert_same(whole, cut)


def test_ctc_from_random_weights_trains_all_of_them(setup, tmp_path):
    finetune(*setup, tmp_path, Training(**SETTINGS), generator="ctc", generator_settings=SMALL, from_scratch=True)
    report = read_json(tmp_path / "training.json")
    assert report["trained"] == report["parameters"] and report["from_scratch"]
    before, after = (load_file(folder / "model.safetensors") for folder in (setup[1], tmp_path / "model"))
    assert not any(torch.equal(before[name], after[name]) for name in before if name.endswith("query.weight"))
    codec = load_codec(tmp_path / "model")
    assert load_generator(tmp_path / "model", codec).settings.prompt_length == 0


def test_a_file_of_prompts_translates_with_its_backbone_and_no_other(setup, trained, tmp_path):
    source = setup[0] / "dev.de"
    shutil.copy(trained / "model" / FILE, tmp_path / "mine.safetensors")
    options = {"languages": ("de", "en"), "threads": 1}
    decoding.main(trained / "model", source, tmp_path / "folder.hyp", **options)
    decoding.main(setup[1], source, tmp_path / "file.hyp", prompts=tmp_path / "mine.safetensors", **options)
    assert (tmp_path / "folder.hyp").read_bytes() == (tmp_path / "file.hyp").read_bytes()
    assert len((tmp_path / "file.hyp").read_text().splitlines()) == len(source.read_text().splitlines())
    other = load_file(setup[1] / "model.safetensors")
    shutil.copytree(setup[1], tmp_path / "other")
    name = next(name for name in other if name.endswith("query.weight"))
    save_file({**other, name: other[name] + 1e-6}, tmp_path / "other/model.safetensors", metadata={"format": "pt"})
    with pytest.raises(InputError, match="was trained with the backbone 'xlmr0'"):
        decoding.main(tmp_path / "other", source, tmp_path / "x.hyp", prompts=tmp_path / "mine.safetensors", **options)
    weights, about = load_file(tmp_path / "mine.safetensors"), safe_open(tmp_path / "mine.safetensors", "pt").metadata()
    weights.pop("prompts.denoising")
    save_file(weights, tmp_path / "torn.safetensors", metadata=about)
    with pytest.raises(InputError, match=r"does not have the weights that its settings ask for \(prompts.denoising\)"):
        decoding.main(setup[1], source, tmp_path / "x.hyp", prompts=tmp_path / "torn.safetensors", **options)
    with pytest.raises(InputError, match="no file of prompts"):
        decoding.main(setup[1], source, tmp_path / "x.hyp", prompts=setup[1] / "model.safetensors", **options)
    with pytest.raises(InputError, match="no n-best list"):
        decoding.main(trained / "model", source, n_best=tmp_path / "n.tsv", **options)
    (tmp_path / "empty").touch()
    with pytest.raises(InputError, match="is empty"):
        decoding.main(trained / "model", tmp_path / "empty", tmp_path / "x.hyp", **options)


def test_targets_without_room_are_counted_and_left_out(setup):
    codec = load_codec(setup[1])
    blank = codec.tokenizer.get_vocab()["▁"]
    source = [0, 20, 2]
    rows = [(source, [0, 9, 8, 9, 8, 9, 8, 2]), (source, [0, *[9] * 4, 2]), (source, [0, blank, 9, 2]), (source, [0, blank, 2])]
    kept, counts = rows_with_room(rows, codec, SGA(), 32)
    assert as_lists(kept) == [(source, [9, 8, 9, 8, 9, 8]), (source, [9])]
    assert counts == {"targets_too_long": 1, "targets_cut": 0, "targets_empty": 1, "blanks_removed": 1}
    free, counts = rows_with_room(rows[:2], codec, SGA(alignment="mask_predict"), 5)
    assert as_lists(free) == [(source, [9] * 4)] and counts["targets_too_long"] == 1
    # what no CTC writes may have equal neighbours and the piece that is CTC's blank
    plain, counts = rows_with_room(rows[1:], codec, SGA(alignment="mask_predict", upsampling=1, denoising=False), 5)
    assert as_lists(plain) == [(source, [9] * 4), (source, [blank, 9]), (source, [blank])] and not any(counts.values())


@pytest.mark.parametrize("family", ["xlmr", "mbart", "mbart50", "bart"])
def test_targets_that_were_cut_are_counted_and_left_out(setup, tmp_path, family):
    codec = load_codec(setup[1] if family == "xlmr" else small_model(tmp_path, family))
    ids = iter(range(100, 200))
    pieces = [[next(ids) for _ in range(number)] for number in (6, 7)]  # a row of 8 has room for 6
    sources, targets = codec.fitted(pieces, "en", 8), codec.fitted(pieces, "en", 8, labels=True)
    rows = [(source, target) for source in sources for target in targets]  # a source that was cut is no reason to leave a row out
    for alignment in ("ctc", "mask_predict"):
        kept, counts = rows_with_room(rows, codec, SGA(alignment=alignment), 32)
        assert [source for source, _ in kept] == sources and all(pieces[0][-1] in target for _, target in kept)
        assert counts == {"targets_too_long": 0, "targets_cut": 2, "targets_empty": 0, "blanks_removed": 0}


@pytest.mark.parametrize(
    ("sga", "target", "way_out"),
    [
        (SGA(), [9] * 8, r"has room in its alignment .*; raise sga\.upsampling"),
        (SGA(alignment="mask_predict"), range(10, 50), r".*have 32 pieces: lower sga\.upsampling, or give shorter targets"),
        (SGA(alignment="mask_predict", upsampling=1), [9] * 8, r"has room in its alignment .*; raise sga\.upsampling"),
        (SGA(), [4], r"has a piece besides the blank, '▁' .*; set another sga\.blank"),
    ],
)
def test_targets_of_which_none_has_room_are_refused_with_the_way_out(setup, sga, target, way_out):
    rounds = SimpleNamespace(epoch=lambda number: [([0, 20, 2], [0, *target, 2])], too_long=[])
    with pytest.raises(InputError, match=f"no target of the training text {way_out}"):
        WithRoom(rounds, load_codec(setup[1]), sga, sga.longest_target(64))


@pytest.mark.parametrize(
    ("others", "way_out"),
    [([], r"has room in training\.max_length as a whole .*; raise"), ([[9] * 8], r".*; raise training\.max_length and sga\.upsampling")],
)
def test_a_text_whose_targets_were_cut_is_refused_with_the_way_out(setup, others, way_out):
    rows = [([0, 20, 2], [0, 9, unlearnt(2)]), *(([0, 20, 2], [0, *target, 2]) for target in others)]
    with pytest.raises(InputError, match=f"no target of the training text {way_out}"):
        WithRoom(SimpleNamespace(epoch=lambda number: rows, too_long=[]), load_codec(setup[1]), SGA(), 32)


@pytest.mark.parametrize(("counts", "said"), [({"targets_cut": 3}, ", 3 cut at max_length"), ({"targets_cut": 0}, ""), ({}, "")])
def test_a_report_says_how_many_targets_were_cut(counts, said):
    left = {"targets_too_long": 2, "targets_empty": 0, "blanks_removed": 1, **counts}  # reports of older versions lack the count
    report = {"sga": {"alignment": "ctc", "denoising": True, "prompt_length": 4}, "trained": 5, "left_out": left}
    assert f"left out: 2 targets too long{said}, 1 blanks in targets" in registry.entry("generator", "sga").description(report)


def as_lists(rows):
    """Rows whose targets can be compared with lists."""
    return [(source, list(target)) for source, target in rows]


def test_rows_that_come_again_are_held_once(setup):
    class Text:
        rows, too_long = 3, []

        def __init__(self):
            self.own = [([0, 20 + i, 2], [0, 9, 2]) for i in range(3)]

        def epoch(self, number):
            return self.own if number != 2 else [*self.own[1:], ([0, number, 2], [0, 8, 2])]

    rows = WithRoom(Text(), load_codec(setup[1]), SGA(), 32)
    first, second, third = (rows.epoch(number) for number in range(3))
    assert first is second and list(third[:2]) == list(first[1:]) and [list(side) for side in third[2]] == [[0, 2, 2], [8]]
    assert rows.epoch(3) == first


def test_a_veco_is_an_encoder_that_learns_to_write(setup, tmp_path):
    save_model(load_stack(setup[1], cross=True), load_tokenizer(setup[1]), tmp_path / "veco")
    finetune(setup[0], tmp_path / "veco", tmp_path / "out", Training(**SETTINGS), generator="sga", generator_settings=SMALL)
    assert read_json(tmp_path / "out/training.json")["trained"] and (tmp_path / "out/model" / FILE).exists()


def test_a_text_is_no_longer_than_was_asked_for(setup, trained, capsys):
    codec = load_codec(trained / "model")
    lines = (setup[0] / "dev.de").read_text().splitlines()[:8]
    generator = load_generator(trained / "model", codec)
    whole = write(generator, codec.encode(lines, "de", generator.longest_source), codec.tokenizer.pad_token_id)
    longest = max(len(each.ids) for each in whole)
    most = longest_output(generator.config)  # whatever is asked for
    for length in (longest, min(longest, most) - 1):
        with decoding.translator(trained / "model", codec, 1, decoding.Decoding(max_length=length)) as translate:
            found = [ranked[0].text for some in (lines[:5], lines[5:]) for ranked in translate(some, ("de", "en"), 1)]
            assert not capsys.readouterr().out
            first, second = (ranked[0].text for ranked in translate(["\t", lines[0]], ("de", "en"), 1))
            translate(lines, ("de", "en"), 1)
            assert translate.about["unfinished"] == [at for at, each in enumerate(whole, 1) if len(each.ids) > min(length, most)]
        assert first == "" and second == found[0]  # what has no text gets none
        assert found == codec.decode([each.ids[: min(length, most)] for each in whole])
        # the message about all lines is printed after them, so that it is not timed
        assert capsys.readouterr().out.count("denoised") == 1


def test_dev_losses_of_mask_predict_are_of_what_training_guesses_and_alike_at_each_look(setup, monkeypatch):
    network = load_network(setup[1], "text", dropout=0, attention_dropout=0, seed=1)
    generator, seen = make_generator(network, load_codec(setup[1]), SGA(prompt_length=4, alignment="mask_predict")), []
    align = generator.align
    monkeypatch.setattr(generator, "align", lambda guide, ids, mask: seen.append(ids) or align(guide, ids, mask))
    state = torch.get_rng_state()
    first, second = (dev_losses(generator, [([0, 10, 11, 2], [20, 21, 22, 23])] * 8, 1) for _ in range(2))
    assert first == second and torch.equal(*seen) and torch.equal(torch.get_rng_state(), state)
    assert (seen[0] == generator.mask).any(1).all() and (seen[0] != generator.mask).any()


def test_dev_texts_are_written_in_the_precision_of_training(setup, tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(generating, "write", lambda *given: seen.append(torch.is_autocast_enabled("cpu")) or write(*given))
    settings = {**SETTINGS, "updates": 1, "evaluate_every": 1, "bleu_sentences": 4, "precision": "bfloat16"}
    finetune(*setup, tmp_path, Training(**settings), generator="sga", generator_settings=SMALL)
    assert seen == [True]


@pytest.mark.parametrize("alignment", ["ctc", "mask_predict"])
def test_a_part_without_rows_adds_nothing(setup, alignment):
    """An update of fewer rows than devices has parts with nothing to guess."""
    codec = load_codec(setup[1])
    network = load_network(setup[1], "text", dropout=0, attention_dropout=0, seed=1)
    generator = make_generator(network, codec, SGA(prompt_length=4, blank="<s>", alignment=alignment))
    losses = []
    for part in split_batch([([0, 10, 11, 12, 2], [20, 21, 22])], 2):
        batch = collate_sources(part, 1)
        labels = batch.pop("labels")
        losses.append(float(summed(generator(**batch), labels, torch.tensor(3)).detach()))
    assert losses[0] > 0 and losses[1] == 0


def test_ctc_has_neither_prompts_nor_denoising_nor_mask_predict():
    settings = SGA(alignment="mask_predict", iterations=7)
    holds = {name: registry.entry("generator", name).effective(settings) for name in ("ctc", "sga")}
    assert holds == {"ctc": SGA(prompt_length=0, denoising=False, alignment="ctc", iterations=7), "sga": settings}


def test_sources_are_cut_for_an_alignment_only():
    assert SGA().longest_source(512) == SGA().longest_target(512) == 256
    free = SGA(alignment="mask_predict")
    assert free.longest_source(512) == 512 and free.longest_target(512) == 256
    assert SGA(alignment="mask_predict", denoising=False).longest_target(512) == 512


def test_a_loss_worse_than_guessing_counts_all_that_is_guessed():
    assert positions_guessed(SGA(), 200, 12) == 800 and positions_guessed(SGA(denoising=False), 200, 12) == 400
    assert positions_guessed(SGA(alignment="mask_predict"), 200, 12) == 13 + 24
    # by which the part is chosen that is tried on a GPU: with CTC the source decides, with mask-predict rather the target
    long_source, long_target = ([([0] * n, [0] * m)] * 3 for n, m in ((60, 20), (20, 60)))
    assert positions_read(SGA(), long_source) == 3 * (2 * 300 + 3 * 128 + 2 * 60) > positions_read(SGA(), long_target)
    assert positions_read(SGA(drafts=3), long_source) == 3 * (2 * 540 + 5 * 128 + 4 * 60)  # two more of 120 positions
    free = SGA(alignment="mask_predict")
    assert positions_read(free, long_source) < positions_read(free, long_target) == 3 * (2 * 201 + 3 * 128 + 2 * 20)
    # each row has keys and values of its own before those of its text
    many_short, few_long = ([([0] * n, [0] * (n - 2))] * rows for n, rows in ((6, 85), (256, 2)))
    assert all(positions_read(settings, many_short) > positions_read(settings, few_long) for settings in (SGA(), free))


def test_an_encoder_without_the_head_that_guesses_is_for_random_weights_only(setup, tmp_path):
    shutil.copytree(setup[1], tmp_path / "bare")
    config = read_json(tmp_path / "bare/config.json")
    (tmp_path / "bare/config.json").write_text(json.dumps({**config, "architectures": ["XLMRobertaModel"]}))
    sga, rows = as_ctc(SGA()), SimpleNamespace(epoch=lambda number: [([0, 20, 2], [0, 9, 2])], too_long=[])
    opened = partial(open_generator, tmp_path / "bare", load_codec(setup[1]), rows, Training(max_length=32), 1, frozen=False, sga=sga)
    assert opened(from_scratch=True)[0].trained()
    with pytest.raises(InputError, match=r"no head that guesses masked pieces \(\['XLMRobertaModel'\]\).*generator: ctc, start: scratch"):
        opened()


def test_alignments_longer_than_the_positions_are_refused(setup, tmp_path):
    with pytest.raises(InputError, match=r"40 pieces make alignments of 80 positions; .* has 64. Lower it to 32"):
        finetune(*setup, tmp_path, Training(**{**SETTINGS, "max_length": 40}), generator="sga", generator_settings=SMALL)
