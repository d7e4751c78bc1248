"""An objective of one's own: a function that makes rows of lines."""

import json
from dataclasses import dataclass, replace

import numpy as np
import pytest
from configurations import changed
from tiny_decoders import small_decoder
from tiny_models import manual_pairs, small_encoder, small_model

from workflow_scripts import plugins, registry
from workflow_scripts.errors import InputError
from workflow_scripts.models.tokenisation import load_codec, unlearnt
from workflow_scripts.run.config import load
from workflow_scripts.storage import checksum
from workflow_scripts.text import files
from workflow_scripts.training.method import Method, of_plugin
from workflow_scripts.training.objective import Text, rows_objective
from workflow_scripts.training.pretraining import next_piece
from workflow_scripts.training.pretraining_settings import Pretraining, Texts
from workflow_scripts.training.settings import Training


@dataclass
class Own:
    """Settings of an objective."""

    rate: float = 0.5


@dataclass
class Named:
    """Settings that name a file."""

    words: str = ""


@pytest.fixture(scope="module")
def codec(tmp_path_factory):
    return load_codec(small_encoder(tmp_path_factory.mktemp("encoder"), "xlmr"))


@pytest.fixture
def register():
    yield lambda function, decoder=False, **about: rows_objective("made", decoder=decoder, **about)(function)
    if "made" in registry.entries("objective"):
        registry.forget("objective", "made")


def made(codec, folder, seed=1, settings=None, max_length=64, too_long=None):
    """Rounds and dev rows of the objective `made` on text in two languages."""
    german, english = manual_pairs(12)
    block = Pretraining(training=Training(max_length=max_length, too_long=too_long), objective_settings=settings or {})
    train, dev = Text({"de": german[:8], "en": english[:8]}), Text({"de": german[8:], "en": english[8:]})
    return registry.entry("objective", "made").prepare(block, train, dev, seed, folder).read(codec)


def guessed(lines, language, codec, max_length, draw, settings):
    """Every piece is guessed at a rate."""
    rows = codec.encode(lines, language, max_length)
    return [(row, [piece if draw.random() < settings.rate else -100 for piece in row]) for row in rows]


def test_no_end_is_learnt_behind_a_text_that_is_cut(tmp_path):
    codec, line = load_codec(small_decoder(tmp_path)), "Print the file and close the window."
    longest = len(codec.encode([line], "en")[0]) + 1
    for max_length, end in ((longest, codec.tokenizer.eos_token_id), (longest - 1, -100)):
        ((read, labels),) = next_piece([line], "en", codec, max_length)
        assert labels == [*read[1:], end] and len(read) < max_length


def test_a_file_that_the_settings_name_decides_what_is_learnt(tmp_path, register):
    words, found = tmp_path / "words.tsv", []
    register(lambda lines, codec, language: [], settings=Named)
    block = Pretraining(objective_settings={"words": str(words)})
    for text in ("a", "b", "b"):
        words.write_text(text)
        material = registry.entry("objective", "made").prepare(block, Text({"de": ["x"]}), Text({"de": ["y"]}), 1, tmp_path)
        found.append(material.text["objective.json"].read_text())
    assert found[0] != found[1] == found[2] and json.loads(found[0]).keys() == {"objective", "settings", "files"}


def test_what_another_version_or_other_settings_of_a_plugin_have_trained_is_not_gone_on_from(monkeypatch, tmp_path):
    """Neither where its objective has a network or a loss of its own, of which no file tells."""
    entry, method = registry.entry("objective", "veco"), Method(about={"objective": "veco"})
    assert of_plugin(entry, method, {}) == method
    monkeypatch.setattr(plugins, "_PLUGINS", {"x.py": plugins.Plugin("x.py", (), (), (), "1")})
    theirs = {"objective": "veco", "objective_plugin": "1"}
    assert of_plugin(replace(entry, plugin="x.py"), method, {}).about == theirs
    (tmp_path / "words").write_text("a", "utf-8")
    own = {"rate": 0.5, "words": str(tmp_path / "words")}
    about = of_plugin(replace(entry, plugin="x.py"), method, own).about
    assert about == {**theirs, "objective_settings": own, "objective_files": [checksum(tmp_path / "words")]}


def plain(rows):
    return [tuple(list(side) for side in row) for row in rows]


def test_rows_are_made_anew_in_each_epoch_and_again_the_same(codec, tmp_path, register):
    register(guessed, settings=Own)
    rounds, dev = made(codec, tmp_path)
    epochs = [plain(rounds.epoch(number)) for number in (0, 1)]
    assert rounds.rows == len(epochs[0]) == 16 and len(dev) == 2
    assert [read for read, _ in epochs[0]] == [read for read, _ in epochs[1]] and epochs[0] != epochs[1]
    again, _ = made(codec, tmp_path)
    assert plain(again.epoch(1)) == epochs[1]
    other, _ = made(codec, tmp_path, seed=2)
    assert plain(other.epoch(1)) != epochs[1]
    everything, _ = made(codec, tmp_path, settings={"rate": 1.0})
    assert all(read == labels for read, labels in plain(everything.epoch(0)))


@pytest.mark.parametrize(("too_long", "cuts"), [(None, True), ("leave_out", True), (None, False), ("cut", False)])
def test_lines_that_are_too_long_are_counted_and_left_out_if_asked(codec, tmp_path, register, too_long, cuts):
    register(guessed, settings=Own, cuts=cuts)
    lengths = [[len(row) for row in codec.encode(lines[:8], "de")] for lines in manual_pairs(12)]
    most = max(map(max, lengths)) - 1
    rounds, dev = made(codec, tmp_path, max_length=most, too_long=too_long)
    long = [sum(length > most for length in side) for side in lengths]
    assert [(about["rows"], about["too_long"]) for about in rounds.too_long] == [(8, count) for count in long]
    assert rounds.rows == len(rounds.epoch(0)) == 16 - (sum(long) if too_long == "leave_out" or not (cuts or too_long) else 0)
    assert all(part.too_long[0]["rows"] == 4 for part in dev)


def test_rows_are_made_of_some_lines_at_a_time(codec, tmp_path, register, monkeypatch):
    """Of a million lines, rows as Python has them would take gigabytes."""
    got = []
    register(lambda lines, codec, language: got.append(len(lines)) or [(row, row) for row in codec.encode(lines, language, 64)])
    whole = plain(made(codec, tmp_path)[0].epoch(0))
    monkeypatch.setattr(files, "_CHUNK", 3)
    got.clear()
    rounds, _ = made(codec, tmp_path)
    assert plain(rounds.epoch(0)) == whole and max(got) == 3


def test_what_the_text_is_made_of_is_on_the_disk(codec, tmp_path, register):
    register(guessed, settings=Own)
    for rate in (0.25, 0.5):
        made(codec, tmp_path, settings={"rate": rate})
        assert f'"rate": {rate}' in (tmp_path / "objective.json").read_text(encoding="utf-8")
    assert {path.name for path in tmp_path.iterdir()} == {"train.de", "train.en", "dev.de", "dev.en", "objective.json"}


def test_numpy_rows_are_rows(codec, tmp_path, register):
    register(
        lambda lines, language, codec, max_length: [(np.array(row), np.array(row)) for row in codec.encode(lines, language, max_length)]
    )
    assert len(made(codec, tmp_path)[0].epoch(0)) == 16


def encode(lines, language, codec, max_length):
    return codec.encode(lines, language, max_length)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda rows: rows[1:], "made 3 rows of 4 lines; it makes one of each"),
        (lambda rows: [(row, row[1:]) for row, _ in rows], "labels to a row of .* pieces; it gives each piece one"),
        (lambda rows: None, "returned None; it returns a list of rows"),
        (lambda rows: [row for row, _ in rows], "it returns a list of rows"),
        (lambda rows: [(["a"], ["b"]) for _ in rows], "it returns a list of rows"),
        (lambda rows: [([1.5], [1]) for _ in rows], "it returns a list of rows"),
        (lambda rows: [(row * 40, row * 40) for row, _ in rows], "made a row of .* pieces; max_length is 64"),
        (lambda rows: [([], []) for _ in rows], "made a row of 0 pieces"),
        (lambda rows: [([10**6], [1]) for _ in rows], "used the piece 1000000; the vocabulary has"),
        (lambda rows: [([1], [-1]) for _ in rows], "used the piece -1; the vocabulary has"),
        (lambda rows: (1 / 0 for _ in rows), r"line \d+ of .*ZeroDivisionError: division by zero \(4 lines in de, the first is "),
        (lambda rows: [(row, [-100] * len(row)) for row, _ in rows], "predicts nothing in any of 8 lines; give some pieces a label"),
        (lambda rows: 1 / 0, r"line \d+ of .*ZeroDivisionError: division by zero \(4 lines in de, the first is "),
    ],
)
def test_a_wrong_return_is_one_clear_error(codec, tmp_path, register, wrong, said):
    def function(lines, language, codec, max_length):
        return wrong([(row, row) for row in encode(lines, language, codec, max_length)])

    register(function)
    with pytest.raises(InputError, match=f"^objective 'made'.*{said}"):
        made(codec, tmp_path)


def test_a_tag_that_a_family_does_not_learn_is_not_learnt_of_rows_of_ones_own_either(tmp_path, register):
    codec = load_codec(small_model(tmp_path, "bart"))
    register(lambda lines, codec, language: [(row, row) for row in codec.encode(lines, language, 64)], decoder=True)
    (tmp_path / "text").mkdir()
    rounds, _ = made(codec, tmp_path / "text")
    tag = codec.tag("de")
    assert all(row.tolist()[0] == tag and labels.tolist()[0] == unlearnt(tag) for row, labels in rounds.epoch(0))


def test_with_a_decoder_labels_may_have_another_length(codec, tmp_path, register):
    register(lambda lines, codec, language: [(row, row[1:]) for row in codec.encode(lines, language, 64)], decoder=True)
    assert all(len(read) == len(labels) + 1 for read, labels in plain(made(codec, tmp_path)[0].epoch(0)))


def test_what_an_objective_may_not_ask_for(register):
    with pytest.raises(InputError, match="objective 'made' asks for `text`; an objective can ask for lines, language, codec"):
        register(lambda text: text)
    with pytest.raises(InputError, match="objective 'made' asks for `settings`, but has none"):
        register(lambda lines, settings: lines)


def test_a_text_in_which_nothing_is_predicted_is_one_clear_error(codec, tmp_path, register):
    """One line with a label will do, in whichever language it is."""

    def rare(lines, codec, language):
        rows = codec.encode(lines, language, 64)
        labelled = len(lines) == 4 or language in learnt
        return [(row, row if labelled and not place else [-100] * len(row)) for place, row in enumerate(rows)]

    register(rare)
    rounds, _ = made(codec, tmp_path)
    learnt = {"en"}
    assert len(rounds.epoch(0)) == 16
    learnt = set()
    with pytest.raises(InputError, match="objective 'made' predicts nothing in any of 16 lines"):
        rounds.epoch(0)


def test_a_plugins_objective_that_fails_to_prepare_says_file_and_line(tmp_path, door, monkeypatch):
    from workflow_scripts.training import pretraining, training
    from workflow_scripts.training.job import TrainingJob

    path = tmp_path / "mine.py"
    path.write_text("from crossgap import objective\n\n\n@objective('mine', decoder=False)\ndef mine(*given):\n    return given[9]\n")
    plugins.load([str(path)])
    start, text = small_encoder(tmp_path, "xlmr"), tmp_path / "text.de"
    text.write_text("".join(f"{line}\n" for line in manual_pairs(60)[0]), encoding="utf-8")
    job = TrainingJob(start, *(tmp_path / name for name in "abcd"))
    said = r"objective 'mine': line 6 of .*mine\.py, `return given\[9\]`: IndexError: .* \(settings {}\)"
    with pytest.raises(InputError, match=said):
        training.learn(job, objective="mine", languages=("de",), train=(text,), dev=(text,))
    part = Text({"de": ["x"]})
    monkeypatch.setattr(pretraining, "read_text", lambda *given: (part, part, {}))
    with pytest.raises(InputError, match=said):
        pretraining.pretrain(Pretraining(), "mine", Texts(("de",)), lambda *given: start, "small", job)


@pytest.mark.parametrize(
    ("objective", "settings", "said"),
    [
        ("made", {"rat": 1}, r"unknown setting\(s\) \['rat'\]"),
        ("made", {"rate": "often"}, r"objective_settings\.rate: .*'often'"),
        ("mlm", {"rate": 1}, "mlm has no settings of its own"),
        ("mad", {}, r"objective: .*'mad'.*did you mean 'made'"),
    ],
)
def test_settings_are_checked_before_anything_is_trained(register, objective, settings, said):
    register(guessed, settings=Own)
    small = {"text": {"de": "task", "en": "task"}, "objective_settings": settings}
    raw = changed("backbones/encoder", {"kind": "small", "family": "xlmr", "objective": objective, "small": small})
    with pytest.raises(InputError, match=said):
        load(raw)
    small["objective_settings"], raw["backbones"]["encoder"]["objective"] = {"rate": 0.25}, "made"
    load(raw)
