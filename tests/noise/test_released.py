"""The noise of the authors' published code."""

from collections import Counter

import numpy as np
import pytest
from tiny_models import manual_pairs, small_model

from workflow_scripts.lexicon.embeddings import Embeddings
from workflow_scripts.lexicon.embeddings import main as learn
from workflow_scripts.lexicon.vectors import read_vectors
from workflow_scripts.models.tokenisation import load_codec
from workflow_scripts.noise.codeswitch import main
from workflow_scripts.noise.released import span_lengths, switch_pieces, switched_pieces
from workflow_scripts.noise.span_noise import SpanNoise
from workflow_scripts.philox import generator
from workflow_scripts.stage import InputError, read_json
from workflow_scripts.text.files import read_lines
from workflow_scripts.text.words import MASK
from workflow_scripts.training.rows import NoisedRounds
from workflow_scripts.training.too_long import Room

PIECES = [f"{'▁' if i % 3 == 0 else ''}p{i}" for i in range(60)]
CANDIDATES = {piece: ["▁x", "y", "z"] for piece in PIECES}


def test_lengths_add_up_to_the_budget_and_some_are_zero():
    drawn = [span_lengths(20, 3.5, generator(1, 0, i)) for i in range(2000)]
    assert all(sum(lengths) == 20 for lengths in drawn)
    lengths = Counter(length for lengths in drawn for length in lengths[:-1])
    assert lengths[0] / lengths.total() == pytest.approx(np.exp(-3.5), abs=0.01)


def test_spans_cover_fewer_words_than_the_budget_because_they_merge():
    shares = []
    for i in range(1000):
        switched, counts = switch_pieces(PIECES, CANDIDATES, SpanNoise(), generator(1, 0, i))
        kept = [piece for piece in switched if piece != MASK]
        assert len(kept) == 60 and counts["words"] == 20
        changed = {j // 3 for j, (a, b) in enumerate(zip(PIECES, kept, strict=True)) if a != b}
        assert len(changed) == counts["replaced"] <= 7
        # words are hit whole
        assert all(kept[j] != PIECES[j] for word in changed for j in range(3 * word, 3 * word + 3))
        shares.append(counts["replaced"] / 20)
    # measured for the published code: about 0.31 at 20 words and more
    assert np.mean(shares) == pytest.approx(0.31, abs=0.015)


def test_the_budget_is_rounded_up_and_spent_on_unknown_pieces_too():
    _, counts = switch_pieces(["▁a", "▁b"], {"▁a": ["▁x"]}, SpanNoise(), generator(1, 0, 0))
    assert counts["budget"] == 1 and counts["replaceable"] == 1
    hits = [switch_pieces(["▁a", "▁b"], {"▁a": ["▁x"]}, SpanNoise(), generator(1, 0, i))[1]["replaced"] for i in range(200)]
    assert 70 < sum(hits) < 130


def test_masks_are_inserted_for_spans_of_no_words():
    masks = sum(switch_pieces(PIECES, CANDIDATES, SpanNoise(), generator(1, 0, i))[0].count(MASK) for i in range(2000))
    assert 60 < masks < 260


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Text, a model, and the pieces of the text as a lexicon that gives each piece the next one."""
    folder = tmp_path_factory.mktemp("released")
    codec = load_codec(small_model(folder))
    for code, lines in zip(("de", "en"), manual_pairs(60), strict=True):
        (folder / f"t.{code}").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        pieces = sorted({piece for row in codec.tokens(lines) for piece in row} - {"<unk>"})
        pairs = zip(pieces, [*pieces[1:], pieces[0]], strict=True)
        (folder / f"{code}.tsv").write_text("".join(f"{a}\t{b}\t1\t0.1\n" for a, b in pairs), encoding="utf-8")
    return folder


def switched(folder, out, **changes):
    arguments = {"kind": "released", "model": folder / "model", "tokens": 3000, **changes}
    inputs = [folder / name for name in ("t.de", "t.en", "t.de", "t.en")]
    main(*inputs, out, lexicon_ab=folder / "de.tsv", lexicon_ba=folder / "en.tsv", languages=("de", "en"), **arguments)


def test_each_pair_gives_one_side_and_rows_are_trained_on_as_pieces(folder, tmp_path):
    switched(folder, tmp_path / "out")
    codec = load_codec(folder / "model")
    rounds = NoisedRounds(tmp_path / "out", ("de", "en"), codec, Room(256, leave_out=True))
    assert rounds.count == read_json(tmp_path / "out" / "codeswitch.json")["rounds"] > 1
    german, english = (list(read_lines(folder / f"t.{code}")) for code in ("de", "en"))
    wanted = [*codec.encode(german[::2], "de", 256), *codec.encode(english[1::2], "en", 256)]
    for number in (0, 1):
        assert [list(labels) for _, labels in rounds.epoch(number)] == wanted
        # nothing but inserted masks changes the number of pieces
        mask = codec.tokenizer.mask_token_id
        assert all(len([i for i in noised if i != mask]) == len(labels) for noised, labels in rounds.epoch(number))
    assert rounds.epoch(0) != rounds.epoch(1)


@pytest.mark.parametrize("side", [0, 1])
def test_noise_is_the_same_whatever_lines_are_read_at_once(folder, side):
    lines, candidates = list(read_lines(folder / "t.de"))[side::2], {"▁die": ["▁x"], "▁": ["y", "z"], "en": ["▁w"]}
    about = {"switch": switch_pieces, "codec": load_codec(folder / "model"), "candidates": candidates, "seed": 3, "noise": SpanNoise()}
    total, in_parts = Counter(), Counter()
    first, last = switched_pieces(lines, 0, [0, 1 << 30], **about, side=side, total=total)
    parts = [
        list(switched_pieces(some, at, [0, 1 << 30], **about, side=side, total=in_parts)) for some, at in ((lines[:7], 0), (lines[7:], 7))
    ]
    assert first != last and [first, last] == [a + b for a, b in zip(*parts, strict=True)] and total == in_parts
    # the random numbers of a line are those of its number in the text
    pieces, _ = switch_pieces(about["codec"].tokens(lines[7:8])[0], candidates, SpanNoise(), generator(3, side, 14 + side))
    assert first[7] == " ".join(pieces)


def test_a_model_is_needed_and_only_here(folder, tmp_path):
    with pytest.raises(InputError, match="--model is for a noise of pieces"):
        switched(folder, tmp_path / "out", model=None)
    with pytest.raises(InputError, match="--model is for a noise of pieces"):
        switched(folder, tmp_path / "out", kind="codeswitch")


def test_a_lexicon_of_words_is_none_of_pieces(folder, tmp_path):
    for name in ("t.de", "t.en", "en.tsv"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    (tmp_path / "de.tsv").write_text("datei\tfile\t1\t1.0\n")
    with pytest.raises(
        InputError, match=r"de\.tsv: has no piece of the text in de; give a dictionary de-en, or vectors, with pieces of it"
    ):
        switched(tmp_path, tmp_path / "out", model=folder / "model")


def test_embeddings_of_pieces(folder, tmp_path):
    settings = Embeddings(dimensions=10, epochs=1, min_count=2)
    learn(folder / "t.de", tmp_path / "v.vec", language="de", model=folder / "model", settings=settings)
    pieces = {piece for row in load_codec(folder / "model").tokens(list(read_lines(folder / "t.de"))) for piece in row}
    assert set(read_vectors(tmp_path / "v.vec")[0]) <= pieces | {"</s>"}
