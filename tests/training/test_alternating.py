"""Passages whose sentences are in two languages by turns."""

import pytest
from tiny_decoders import small_decoder
from tiny_models import manual_pairs, small_model

from workflow_scripts import registry
from workflow_scripts.models.recognition import family_of
from workflow_scripts.models.tokenisation import load_codec
from workflow_scripts.stage import InputError
from workflow_scripts.text.files import write_lines
from workflow_scripts.training.alternating import passages
from workflow_scripts.training.bitext import Bitext, read_bitext
from workflow_scripts.training.objective import Text
from workflow_scripts.training.pretraining import objective_for
from workflow_scripts.training.pretraining_settings import Pretraining


def text(german, english):
    return Text({}, [Bitext("help.de-en", {"de": german, "en": english})])


def test_each_sentence_is_read_in_both_languages_and_never_beside_its_translation():
    found = passages(text(["a", "b", "c", "d", "e"], ["A", "B", "C", "D", "E"]), 2).lines
    assert found == {"de": ["a B", "c D", "e"], "en": ["A b", "C d", "E"]}
    assert passages(text(["a", "b", "c", "d"], ["A", "B", "C", "D"]), 3).lines == {"de": ["a B c", "D"], "en": ["A b C", "d"]}


def test_a_decoder_goes_on_with_them(tmp_path):
    folder = small_decoder(tmp_path, "qwen3")
    block = Pretraining(objective_settings={"sentences": 2})
    (german, english), codec = manual_pairs(6), load_codec(folder)
    entry = registry.entry("objective", "alternating")
    rounds, dev = entry.prepare(block, text(german[:4], english[:4]), text(german[4:], english[4:]), 1, tmp_path / "made").read(codec)
    assert rounds.rows == 4 and [part.language for part in dev] == ["de", "en"]
    read, labels = dev[0].rows[0]
    assert codec.tokenizer.decode(read) == f"{german[4]} {english[5]}"
    assert [*labels] == [*read[1:], codec.tokenizer.eos_token_id]
    with pytest.raises(InputError, match=r"objective alternating is not for mBART"):
        objective_for("alternating", family_of(small_model(tmp_path / "made")))


def test_a_part_of_a_corpus_is_a_stretch_of_it(tmp_path):
    for code in ("de", "en"):
        write_lines(tmp_path / f"train.{code}", [f"{code} sentence {number}" for number in range(200)])
    files = [tmp_path / "train.de", tmp_path / "train.en"]
    (one,) = read_bitext(files, set(), most=50, in_order=True)
    first = int(one.sides["de"][0].split()[-1])
    assert one.sides["en"] == [f"en sentence {number}" for number in range(first, first + 50)]
    (other,) = read_bitext(files, set(), most=50)
    assert [int(line.split()[-1]) for line in other.sides["de"]] != list(range(50))
    assert registry.entry("objective", "alternating").in_order
