"""Engines of plugins: minimum Bayes risk, what it draws, and what is wrong with an engine."""

import runpy

import pytest
from tiny_decoders import small_decoder
from tiny_models import small_model

from workflow_scripts import plugins
from workflow_scripts.models import decoding
from workflow_scripts.models.decoding import Decoding
from workflow_scripts.models.engine import engine
from workflow_scripts.stage import InputError

EXAMPLE = "examples/plugins/minimum_bayes_risk.py"
LINES = ["Öffnen Sie die Datei.", "", "Drucken Sie das Fenster.", "Die Seite."]


@pytest.fixture
def mbr(door):
    plugins.load([EXAMPLE])


def translated(folder, lines=LINES, seed=1, **settings):
    source = folder / "source"
    source.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    settings = Decoding(**{"max_length": 6, **settings})
    decoding.main(folder / "mbart", source, folder / "hyp", languages=("de", "en"), threads=1, seed=seed, settings=settings)
    return (folder / "hyp").read_text("utf-8").splitlines()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("engine")
    small_model(folder, "mbart").rename(folder / "mbart")
    return folder


def test_expected_utility_is_what_is_calculated_by_hand(door):
    """`ab` and `ac` share one of two letters and no pair of letters, which is a precision and a recall of 1/4."""
    plugin = runpy.run_path(EXAMPLE)
    found = plugin["expected_utilities"](["ab", "ac", "ab", "xy"])
    assert found == pytest.approx({"ab": (100 + 25 + 100) / 4, "ac": (25 + 100 + 25) / 4, "xy": 100 / 4})


def test_the_sample_of_the_highest_utility_is_written(folder, mbr):
    given = {"engine": "mbr", "engine_settings": {"samples": 8}}
    found = translated(folder, **given)
    assert found[1] == "" and len(found) == 4
    assert translated(folder, **given) == found != translated(folder, seed=2, **given)
    # without anything to choose from, it is a sample as it was drawn
    assert translated(folder, engine="mbr", engine_settings={"samples": 1}) != found


def test_an_engine_gets_what_it_asks_for_in_portions_of_a_batch(folder, door):
    got = []

    @engine("lengths")
    def lengths(rows, batch, language, max_length, draw, codec):
        got.append((len(rows), [*batch["input_ids"].shape], language, max_length, draw.random()))
        return [str(len(row)) for row in rows]

    counts = [str(len(row)) for row in decoding.load_codec(folder / "mbart").encode([LINES[0], LINES[2], LINES[3]], "de")]
    assert translated(folder, engine="lengths", batch_tokens=1) == [counts[0], "", *counts[1:]]
    once = [*got]
    assert [each[:1] + each[2:4] for each in once] == [(1, "en", 6)] * 3 and len({each[4] for each in once}) == 3
    # what is drawn comes from the seed, whatever was decoded before
    translated(folder, engine="lengths", batch_tokens=1)
    assert got == once * 2


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"engine": "mbr", "engine_settings": {"sample": 3}}, r"unknown setting\(s\) \['sample'\]; known: \['samples', 'temperature'\]"),
        ({"engine": "mbr", "engine_settings": {"samples": 0}}, "samples and temperature are more than 0"),
        ({"engine": "few"}, "engine 'few' returned 1 texts for 3 sources"),
        ({"engine": "nested"}, r"engine 'nested' returned \['one'\], which is no text; it returns a text for each source"),
        ({"engine": "failing"}, r"engine 'failing': line \d+ of .*, `yield rows\[0\.5\]`: TypeError: .* \(3 sources in de\)"),
        ({"engine": "mbrs"}, "there is no engine 'mbrs', did you mean 'mbr'"),
    ],
)
def test_one_clear_line_for_each_mistake(folder, mbr, given, said):
    @engine("few")
    def few(rows):
        return ["one"]

    @engine("nested")
    def nested(rows):
        return [["one"] for _ in rows]

    @engine("failing")
    def failing(rows):
        yield rows[0.5]

    with pytest.raises(InputError, match=said):
        translated(folder, **given)


def test_a_decoder_gives_its_answers_without_the_prompts(tmp_path, door):
    @engine("greedy")
    def greedy(network, batch, codec, max_length):
        return codec.decode(network.generate(**batch, num_beams=1, do_sample=False, max_new_tokens=max_length).tolist())

    small_decoder(tmp_path, "qwen2").rename(tmp_path / "mbart")
    found = translated(tmp_path, engine="greedy")
    assert found == translated(tmp_path, engine="huggingface", beam_size=1) and any(found)
    assert not any("Datei" in line for line in found)


def test_what_an_engine_cannot_do_is_refused(folder, mbr):
    with pytest.raises(InputError, match=r"engine 'own' asks for `rowz`; an engine can ask for network, batch, rows"):
        engine("own")(lambda rowz: rowz)
    with pytest.raises(InputError, match=r"decoding\.engine mbr: writes one text for each line, without a score"):
        (folder / "source").write_text("Datei.\n", encoding="utf-8")
        chosen = Decoding(engine="mbr")
        decoding.main(folder / "mbart", folder / "source", n_best=folder / "n", languages=("de", "en"), settings=chosen)
