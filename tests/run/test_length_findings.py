"""What preflight says of texts that are longer than a training, or a model, reads."""

import json
from functools import partial

import pytest
from configurations import DEFAULT, changed, demo, planned, with_recipes
from looks import moses
from tiny_decoders import small_decoder
from tiny_encoders import ENCODERS, tiny_encoder

from workflow_scripts.models.tokenisation import load_codec
from workflow_scripts.run import length_findings
from workflow_scripts.training.too_long import Room

EXPERIMENT = "experiments/help-de-en/training"


def long_rows(raw):
    return length_findings.long_rows(demo(raw))


def test_the_share_of_long_training_rows_is_reported_with_the_way_out():
    (short,) = long_rows(DEFAULT)
    assert short.about == "experiments.help-de-en.training.max_length" and " of the first 2,000 rows (" in short.said
    (long,) = long_rows(changed(f"{EXPERIMENT}/max_length", 24))
    assert long.verdict == "note" and "of the training text have a side of more than 24 pieces, and are left out" in long.said
    assert long.said.endswith("raise max_length, or set too_long: cut")
    training = {**DEFAULT["experiments"]["help-de-en"]["training"], "max_length": 24, "too_long": "cut"}
    (cut,) = long_rows(changed(EXPERIMENT, training))
    assert cut.said.endswith("and are cut; raise max_length, or set too_long: leave_out")


def test_rows_that_the_model_has_no_positions_for_are_wrong():
    codec, room = load_codec("resources/backbones/bible"), Room(700, leave_out=True)
    sides = {"de": ["Datei " * 120, "Ja."], "en": ["File.", "Yes."]}
    wrong, fits = (length_findings._long_rows("max_length", codec, sides, room, positions) for positions in (100, 512))
    assert str(wrong).startswith("WRONG  max_length: 700: a row of ") and wrong.said.endswith(
        "reads 100 at most; set max_length: 100 or less"
    )
    assert fits.verdict == "ok"
    assert "a row of 110 pieces" in length_findings._long_rows("max_length", codec, sides, Room(110, leave_out=False), 100).said
    # rows that are left out are not read
    assert length_findings._long_rows("max_length", codec, sides, Room(100, leave_out=True), 100).verdict == "note"


def test_generators_that_write_at_once_leave_cut_targets_out():
    plans = planned(with_recipes("small-sga")).experiments
    said = {name: [each.said for each in length_findings.long_rows(plans[name])] for name in ("small-stories", "small-de-en")}
    assert all(each.endswith("SGA and CTC leave out rows whose target is cut") for each in said["small-stories"])
    assert said["small-de-en"] and not any("SGA and CTC" in each for each in said["small-de-en"])


def test_a_decoders_row_has_both_sides(tmp_path):
    codec, sides = load_codec(small_decoder(tmp_path)), {"de": ["Datei " * 60], "en": ["File " * 60]}
    one = max(len(ids) for some in sides.values() for ids in codec.pieces(some))
    room = Room(one + 10, leave_out=True)
    look = partial(length_findings._long_rows, "max_length", codec)
    wrong, fits = (look(sides, room, positions, "task") for positions in (one + 20, 4 * one + 99))
    # text to continue is read once, and what is restored twice
    assert look({"": sides["de"]}, room, one + 20).verdict == "ok"
    assert look({"": sides["de"]}, room, one + 20, "restore").verdict == "WRONG"
    assert wrong.verdict == "WRONG" and wrong.said.endswith("prompt, the source and the answer, of which the last two have max_length each")
    assert fits.verdict == "ok"


def test_an_arm_with_a_length_of_its_own_is_reported_by_itself():
    raw = changed(f"{EXPERIMENT}/max_length", 200)
    raw["arms"]["finetune"][0]["training"] = {"max_length": 24}
    found = {each.about: each for each in long_rows(raw)}
    assert [*found] == ["arms.finetune in help-de-en.training.max_length", "experiments.help-de-en.training.max_length"]


def test_an_objective_cuts_the_lines_that_it_learns_from():
    raw = changed(f"{EXPERIMENT}/max_length", 200)
    phase = {"data": "denoising", "updates": 100, "training": {"max_length": 24}}
    raw["arms"]["again"] = [phase, {"data": "task", "updates": 4100}]
    raw["run"]["arms"] = [*raw["run"]["arms"], "again"]
    found = {each.about: each.said for each in long_rows(raw)}
    assert "and are cut; raise max_length" in found["arms.again in help-de-en.training.max_length"]


def test_texts_that_a_model_cannot_read_to_their_end_are_noted(tmp_path):
    german = "Datei " * 600
    (tmp_path / "de").write_text(f"Ja.\n{german}\n")
    (tmp_path / "en").write_text("Yes.\nFile.\n")
    raw = changed("corpora/help/test/own", moses(tmp_path, "de", "en"))
    (note,) = length_findings.long_sources(demo(raw))
    assert len(load_codec("resources/backbones/bible").pieces([german], 9999)[0]) > 510
    assert note.about == "experiments.help-de-en: test set own" and note.verdict == "note"
    assert note.said.startswith("1 of 2 texts have more than the 512 pieces that bible reads; their ends are lost (text 2 is the first)")


@pytest.mark.parametrize("kind", ENCODERS)
def test_the_positions_of_an_encoder_whose_structure_tells_are_known(tmp_path, kind):
    plan = demo(changed("backbones/bible", {"kind": "hub", "model": str(tiny_encoder(tmp_path, kind))}))
    assert length_findings._positions(plan.backbone_of("finetune")) == 128
    for wrong in ({"hidden_size": 7}, {"num_hidden_layers": "two"}):
        (tmp_path / "model" / "config.json").write_text(json.dumps({"model_type": "modernbert", **wrong}))
        assert length_findings._positions(plan.backbone_of("finetune")) == 0
