"""The text of VECO: adjacent and parallel segments, their masks, and the batches of updates."""

import json

import numpy as np
import pytest
from tiny_models import manual_pairs, small_encoder

from workflow_scripts.models.tokenisation import load_codec
from workflow_scripts.noise.masking import Masking, mask_pieces
from workflow_scripts.stage import InputError
from workflow_scripts.training.bitext import Bitext
from workflow_scripts.training.objective import Part, Text
from workflow_scripts.training.pretraining import own_documents
from workflow_scripts.training.pretraining_settings import Pretraining, Veco
from workflow_scripts.training.segments import adjacent, alternating_updates, begin_of_second, held_back, read
from workflow_scripts.training.settings import Training


@pytest.fixture(scope="module")
def codec(tmp_path_factory):
    return load_codec(small_encoder(tmp_path_factory.mktemp("codec"), "xlm-roberta"))


def block(**changes) -> Pretraining:
    return Pretraining(training=Training(max_length=40, batch_tokens=400), **changes)


@pytest.fixture(scope="module")
def part(tmp_path_factory):
    german, english = manual_pairs(80)
    text = Text({"de": german[:30], "en": english[30:41]}, [Bitext("help.de-en", {"de": german[40:], "en": english[40:]})], {"de": [7]})
    return Part.write(tmp_path_factory.mktemp("text"), "train", text)


def test_segments_are_adjacent_within_a_document():
    assert adjacent(5, [3]).tolist() == [[0, 1], [2, -1], [3, 4]]
    assert adjacent(4, [0, 1, 1, 4]).tolist() == [[0, -1], [1, 2], [3, -1]]
    assert adjacent(0, []).tolist() == adjacent(0, [0]).tolist() == [] and adjacent(1, []).tolist() == [[0, -1]]


def test_documents_end_at_blank_lines(tmp_path):
    (tmp_path / "a.de").write_text("Eins\nZwei\n\nDrei\nVier\n")
    found = list(own_documents(Pretraining(text={"de": str(tmp_path / "a.de")}), "de", set()))
    assert found == [("Eins", True), ("Zwei", False), ("Drei", True), ("Vier", False)]


def test_texts_of_json_lines_are_documents_and_other_json_is_refused(tmp_path):
    texts = ["Eins\nZwei", "Drei"]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps({"id": n, "text": text}) + "\n" for n, text in enumerate(texts)))
    found = list(own_documents(Pretraining(text={"de": str(tmp_path / "a.jsonl")}), "de", set()))
    assert found == [("Eins", True), ("Zwei", False), ("Drei", True)]
    (tmp_path / "a.jsonl").write_text('{"text": "cafe\\u0301 x\\ufeffy"}\n{"text": null}\n')
    assert [line for line, _ in own_documents(Pretraining(text={"de": str(tmp_path / "a.jsonl")}), "de", set())] == ["café xy"]
    for name, line, said in (
        ("d.jsonl", '{"text": "bad \\ud83d half"}', r"d\.jsonl, line 1: .*surrogates not allowed.*; correct or delete the line"),
        ("b.jsonl", '{"de": "Eins"}', r"b\.jsonl, line 1: not a JSON object with a text at the key `text` \('text'\)"),
        ("c.json", '["Eins"]', r"c\.json: is no plain text; give a sentence a line, or JSON lines \(\.jsonl\) with the key `text`"),
    ):
        (tmp_path / name).write_text(f"{line}\n")
        with pytest.raises(InputError, match=said):
            list(own_documents(Pretraining(text={"de": str(tmp_path / name)}), "de", set()))


def test_rows_are_pairs_of_segments_masked_once(part, codec):
    text = read(part, codec, block(), seed=1)
    german, english = ([line for line in path.read_text().splitlines() if line] for path in part.text.values())
    # 30 German lines, of which a document ends after 7: pairs 3 + 11, alone 1 + 1; eleven English ones: 5 + 1
    assert (text.monolingual.rows, text.monolingual.alone, text.parallel.rows) == (15 + 1 + 6, 3, 40)
    whole = {tuple(ids) for code, lines in (("de", german), ("en", english)) for ids in codec.encode(lines, code, 40)}
    for ids, labels in text.monolingual.epoch(0):
        original = [i if label == -100 else label for i, label in zip(ids, labels, strict=True)]
        at = begin_of_second(ids, 0)
        assert {tuple(part) for part in (original[:at], original[at:]) if part} <= whole
        for side in (labels[:at], labels[at:]):
            assert not side or any(label != -100 for label in side)
    assert text.parallel.epoch(0) == text.parallel.epoch(0) != text.parallel.epoch(1)
    for rows in (text.monolingual, text.parallel):
        assert rows.lengths(1).tolist() == [len(ids) for ids, _ in rows.epoch(1)]


def test_the_temperature_flattens_the_languages(part, codec):
    """Sixteen German rows and six English ones: in proportion to their roots the German ones are 62 %."""
    german = {tuple(ids) for ids in codec.encode(part.text["de"].read_text().split("\n"), "de", 40)}
    counts = {}
    for temperature in (1.0, 2.0, 1e9):
        rows = read(part, codec, block(temperature=temperature), seed=1).monolingual.epoch(0)
        first = [
            tuple(i if label == -100 else label for i, label in zip(ids, labels, strict=True))[: begin_of_second(ids, 0)]
            for ids, labels in rows
        ]
        counts[temperature] = sum(ids in german for ids in first), len(first)
    assert counts[1.0] == (16, 22) and counts[2.0] in ((13, 22), (14, 22)) and counts[1e9] == (11, 22)


def test_updates_alternate_and_begin_with_cross_attention(part, codec):
    text = read(part, codec, block(), seed=1)
    plan = alternating_updates(text, 400, 9, seed=1, cross_attention_first=3)
    assert [batch.parallel for batch in plan] == [False, True] * 4 + [False]
    assert [batch.cross_alone for batch in plan] == [True] * 3 + [False] * 6
    assert all(len(batch.rows) * max(len(ids) for ids, _ in batch.rows) <= 400 for batch in plan)
    only = alternating_updates(text._replace(monolingual=None), 400, 3, seed=1)
    assert [batch.parallel for batch in only] == [True] * 3


def test_text_without_neighbours_is_said_and_read_as_it_is(tmp_path, codec, capsys):
    german, _ = manual_pairs(12)
    part = Part.write(tmp_path, "train", Text({"de": german}, [], {"de": list(range(12))}))
    text = read(part, codec, block(), seed=1)
    assert text.monolingual.alone == text.rows == 12
    assert "de: 12 of 12 rows are a segment alone" in capsys.readouterr().out
    with pytest.raises(InputError, match="no two segments of the text are adjacent"):
        read(part, codec, block(veco=Veco(is_mlm=False)), seed=1)


def test_dev_lines_without_neighbours_have_no_loss_where_single_segments_are_not_read(tmp_path, codec):
    german, _ = manual_pairs(12)
    dev = Part.write(tmp_path, "dev", Text({"de": german}, [], {"de": list(range(12))}))
    assert [len(batch.rows) for batch in held_back(dev, codec, block(), seed=1)] == [12]
    with pytest.raises(InputError, match="no two segments of the dev lines are adjacent"):
        held_back(dev, codec, block(veco=Veco(is_mlm=False)), seed=1)


def test_dev_rows_are_the_same_each_time(part, codec):
    found = [held_back(part, codec, block(), seed=1) for _ in range(2)]
    assert found[0] == found[1] and [batch.parallel for batch in found[0]] == [False, False, True]


@pytest.mark.parametrize("unit", ["word", "span"])
def test_words_are_masked_whole(codec, unit):
    lines = manual_pairs(60)[0]
    rows = codec.encode(lines, "de", 40)
    ids, before = np.array([i for row in rows for i in row], dtype=np.int32), np.cumsum([0, *map(len, rows)])
    tokens = codec.tokenizer.convert_ids_to_tokens(range(len(codec.tokenizer)))
    starts = np.array([token.startswith("▁") for token in tokens])
    pieces = np.array(sorted(set(range(len(tokens))) - set(codec.tokenizer.all_special_ids)), dtype=np.int32)
    masking = Masking(unit=unit, rate=0.3)
    labels = mask_pieces(ids, before, pieces, codec.tokenizer.mask_token_id, masking, 1, 0, starts)[1]
    guessed, special = labels != -100, ~np.isin(ids, pieces)
    assert np.array_equal(labels[guessed], ids[guessed]) and not np.isin(ids[guessed], codec.tokenizer.all_special_ids).any()
    for start, end in zip(before, before[1:], strict=False):
        inside = [place for place in range(start + 2, end - 1) if not starts[ids[place]] and not special[place - 1 : place + 1].any()]
        # a piece that begins no word is guessed with the one before it, or neither is
        assert all(guessed[place] == guessed[place - 1] for place in inside)
        assert guessed[start:end].any()
    runs = np.diff(np.flatnonzero(np.diff(np.r_[0, guessed, 0]))[::1])[::2]
    words = [
        int(starts[ids[at : at + length]].sum())
        for at, length in zip(np.flatnonzero(np.diff(np.r_[0, guessed, 0]) == 1), runs, strict=True)
    ]
    assert max(words) > 1 or unit == "word"
