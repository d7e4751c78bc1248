"""Texts with more pieces than a row may have: left out and counted, or cut without an end."""

import pytest
import zstandard
from phases import TINY, finetune, phase_files
from tiny_models import manual_pairs, small_encoder, small_model

from workflow_scripts.models.batches import collate
from workflow_scripts.models.tokenisation import load_codec, unlearnt
from workflow_scripts.noise.masking import Masking
from workflow_scripts.report.experimental_setup import too_long
from workflow_scripts.stage import InputError, read_json, write_json
from workflow_scripts.training.bitext import SampledPairs, read_pairs
from workflow_scripts.training.objective import Part, Text
from workflow_scripts.training.pretraining_settings import Pretraining
from workflow_scripts.training.rows import MaskedText, NoisedRounds, ParallelText, aligned_dev
from workflow_scripts.training.segments import read
from workflow_scripts.training.settings import Training
from workflow_scripts.training.too_long import Room, read_side

LONG = "Suchen Sie in dieser Datei nach Text. " * 30


@pytest.fixture(scope="module")
def setup(tmp_path_factory):
    """A folder with text and noised rounds, and a model."""
    return phase_files(tmp_path_factory.mktemp("phase"))


@pytest.mark.parametrize("family", ["mbart", "mbart50", "nllb", "m2m100", "bart"])
def test_a_side_that_is_cut_has_no_end_mark_and_all_else_of_its_row(tmp_path, family):
    codec, room = load_codec(small_model(tmp_path, family)), Room(20, leave_out=False)
    sides = [read_side(codec, [LONG, "Text"], "de", room, labels=labels) for labels in (False, True)]
    source, labels = (side.ids[0] for side in sides)
    assert [side.too_long.tolist() for side in sides] == [[True, False]] * 2
    (whole, short), end = codec.encode([LONG, "Text"], "de"), codec.tokenizer.eos_token_id
    tags = [unlearnt(whole[0])] if family == "bart" else whole[:1]
    cut, uncut = (collate([row], codec.tokenizer.pad_token_id) for row in ((source, labels), (whole, [*tags, *whole[1:]])))
    assert end not in source and [i for i in codec.encode([LONG], "de", 20)[0] if i != end] == list(source)
    # the decoder begins as in a whole row, and learns the same pieces, but nothing behind the last one
    read, learnt = cut["decoder_input_ids"][0].tolist(), cut["labels"][0].tolist()
    assert read == uncut["decoder_input_ids"][0, : len(read)].tolist()
    assert learnt == [*uncut["labels"][0, : len(read) - 1].tolist(), -100] and end not in learnt
    # a row with room is as it always was
    assert [list(side.ids[1]) for side in sides] == [short, [*tags, *short[1:]] if family == "bart" else short]


def test_a_bart_reads_its_tag_and_does_not_learn_to_write_it(tmp_path):
    codec = load_codec(small_model(tmp_path, "bart"))
    (row,) = codec.encode(["Text"], "en")
    labels = read_side(codec, ["Text"], "en", Room(20, leave_out=False), labels=True).ids[0]
    start, end = codec.tokenizer.bos_token_id, codec.tokenizer.eos_token_id
    batch = collate([(row, labels)], codec.tokenizer.pad_token_id)
    assert batch["decoder_input_ids"][0].tolist() == [end, start, *row[1:-1]]
    assert batch["labels"][0].tolist() == [-100, *row[1:-1], end]


def test_a_document_that_is_cut_is_still_read_with_its_end_and_its_summary_has_none(setup):
    codec, room = load_codec(setup[1], documents=True), Room(20, leave_out=False)
    end, text = codec.tokenizer.eos_token_id, " </s> ".join(manual_pairs(9)[0])
    (source,), (labels,) = (read_side(codec, [text], "de", room, labels=labels).ids for labels in (False, True))
    assert list(source) == codec.encode([text], "de", 20)[0] and source[-2] == end and labels[-2] != end
    assert labels[-1] == unlearnt(codec.tag("de"))


def test_rows_that_are_too_long_are_left_out_and_counted_by_side(setup):
    codec = load_codec(setup[1])
    english = {"Ja.": "Yes.", LONG: "Yes.", "Nein.": LONG, LONG + "?": LONG}
    files = [setup[0] / f"few.{code}" for code in ("de", "en")]
    for path, lines in zip(files, (english, english.values()), strict=True):
        path.write_text("".join(f"{line}\n" for line in lines))
    made = ParallelText(*files, ("de", "en"), codec, Training(max_length=40))
    assert made.rows == 1 and made.chosen.tolist() == [0]
    assert made.too_long == [{"text": "de-en", "rows": 4, "too_long": 3, "sides": {"de": 2, "en": 2}}]
    cut = ParallelText(*files, ("de", "en"), codec, Training(max_length=40, too_long="cut"))
    assert cut.rows == 4 and cut.too_long == made.too_long and max(map(len, cut.epoch(0).sides[1])) == 39
    dev = aligned_dev(*files, ("de", "en"), codec, Room(40, leave_out=True))
    assert dev.references == ["Yes."] and len(dev.rows) == 1 and dev.too_long == made.too_long
    with pytest.raises(InputError, match=r"few\.de: all 4 rows have more than 3 pieces, and are left out; raise training\.max_length, or"):
        ParallelText(*files, ("de", "en"), codec, Training(max_length=3))


def noised(folder, kind, rows):
    folder.mkdir()
    for name in ("round0", "dev"):
        lines = "".join(f"{noise}\t{line}\n" for noise, line in rows)
        (folder / f"{name}.de.tsv.zst").write_bytes(zstandard.compress(lines.encode()))
    write_json(folder / "codeswitch.json", {"unit": "word", "kind": kind})
    return folder


def test_all_arms_restore_the_same_sentences_whatever_their_noise(setup, tmp_path):
    codec = load_codec(setup[1])
    german = [*manual_pairs(40)[0], LONG]
    arms = {
        "mask": [("<mask>", line) for line in german],
        "codeswitch": [(f"{line} switched to words of many pieces", line) for line in german],
    }
    room = Room(60, leave_out=True)
    made = {kind: NoisedRounds(noised(tmp_path / kind, kind, rows), ("de",), codec, room) for kind, rows in arms.items()}
    originals = {kind: [list(labels) for _, labels in rounds.epoch(0)] for kind, rounds in made.items()}
    fitting = [row for row in codec.encode(german, "de") if len(row) <= 60]
    assert originals["mask"] == originals["codeswitch"] == fitting and 0 < len(fitting) < 40
    # what noise adds is cut, and counted for each arm
    ((few,), (many,)) = (rounds.too_long for rounds in made.values())
    assert few["too_long"] == many["too_long"] == 41 - len(fitting) and few["noised"] == 0 < many["noised"]
    assert all(len(source) <= 60 for source, _ in made["codeswitch"].epoch(0))


@pytest.mark.parametrize("restored", [False, True])
def test_a_phase_reports_what_was_too_long_and_learns_from_the_rest(setup, tmp_path, restored):
    text = {"noised": setup[0] / "noised"} if restored else {}
    codec = load_codec(setup[1])
    sides = [codec.encode((setup[0] / f"train.{code}").read_text().splitlines(), code) for code in ("de", "en")]
    long = sum(max(map(len, pair)) > 64 for pair in zip(*sides, strict=True))
    settings = Training(updates=2, evaluate_every=2, checkpoint="last", **{**TINY, "batch_tokens": 200})
    finetune(*setup, tmp_path, settings, **text)
    said = read_json(tmp_path / "training.json")
    about = said["too_long"]
    assert (about["max_length"], about["are"]) == (64, "left out") and len(about["dev"]) == 1 + restored
    assert said["rows"] == sum(text["rows"] - text["too_long"] for text in about["train"])
    if not restored:
        assert about["train"][0]["too_long"] == long > 0
        assert too_long(said)[0].startswith(f"de-en: {long} of 170 have more than 64 pieces (de ")
    else:
        assert [text["text"] for text in about["train"]] == ["de", "en"]
    assert too_long({}) == []


def test_masked_language_models_cut_long_lines_unless_they_are_left_out(tmp_path):
    codec = load_codec(small_encoder(tmp_path, "xlmr"))
    lines = [*manual_pairs(5)[0], LONG]
    cut, fewer = (MaskedText({"de": lines}, codec, Room(200, leave_out), Masking(), 1) for leave_out in (False, True))
    assert (cut.rows, fewer.rows) == (6, 5) and cut.too_long == fewer.too_long == [{"text": "de", "rows": 6, "too_long": 1}]
    assert cut.epoch(0)[5][0][-1] == codec.tokenizer.eos_token_id  # which is never guessed


def test_segments_around_a_line_that_is_left_out_are_adjacent(tmp_path):
    codec = load_codec(small_encoder(tmp_path, "xlmr"))
    german = manual_pairs(5)[0]
    part = Part.write(tmp_path, "train", Text({"de": [german[0], LONG, *german[1:]]}, [], {"de": [3]}))
    rows = {}
    for name in ("cut", "leave_out"):
        block = Pretraining(training=Training(max_length=200, too_long=name))
        rows[name] = read(part, codec, block, seed=1)
    assert rows["cut"].rows == 1 + 1 + 2 and rows["leave_out"].rows == 1 + 2
    assert rows["cut"].too_long == rows["leave_out"].too_long == [{"text": "de", "rows": 6, "too_long": 1}]


@pytest.mark.parametrize("leave_out", [True, False])
def test_a_bart_does_not_learn_to_write_its_tag_of_pairs_either(tmp_path, leave_out):
    codec = load_codec(small_model(tmp_path, "bart"))
    files = {code: tmp_path / f"two.{code}" for code in ("de", "en")}
    for code, line in (("de", "Ja.\n"), ("en", "Yes.\n")):
        files[code].write_text(line)
    pairs = read_pairs(files, codec, Room(30, leave_out))
    [(read, labels)] = SampledPairs([pairs], [[("de", "en")]], 1.0, 1).epoch(0)
    tag = codec.tag("en")
    assert read[0] == tag and labels[0] == unlearnt(tag) and tag not in labels


def test_pairs_that_a_backbone_translates_are_left_out_or_cut_where_they_are_written(setup):
    codec = load_codec(setup[1])
    files = {code: setup[0] / f"two.{code}" for code in ("de", "en")}
    files["de"].write_text(f"Ja.\n{LONG}\n")
    files["en"].write_text(f"Yes.\n{LONG}\n")
    ways = [[("de", "en"), ("en", "de")]]
    left, cut = (read_pairs(files, codec, Room(30, leave_out)) for leave_out in (True, False))
    assert SampledPairs([left], ways, 1.0, 1).rows == 2 and SampledPairs([cut], ways, 1.0, 1).rows == 4
    assert SampledPairs([cut], ways, 1.0, 1).too_long == [{"text": "de-en", "rows": 2, "too_long": 1, "sides": {"de": 1, "en": 1}}]
    sampled, end = SampledPairs([cut], ways, 1.0, 1), codec.tokenizer.eos_token_id
    for source, labels in sampled.epoch(0):
        assert (end in source) == (end in labels) == (len(labels) < 20) and max(len(source), len(labels)) <= 30
