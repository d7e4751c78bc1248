"""A model's tokenizer: the text is normalised as it was for the model, no piece lacks a row, and words begin where the vocabulary says."""

import shutil

from tiny_decoders import small_decoder
from tiny_encoders import tiny_encoder
from tiny_models import small_model, small_t5, train_sentencepiece
from transformers import AutoTokenizer

from workflow_scripts.models.tokenisation import load_codec
from workflow_scripts.models.tokenizer import ids_needed, word_starts
from workflow_scripts.stage import read_json


def test_text_is_normalised_as_the_models_sentencepiece_does(tmp_path):
    (tmp_path / "spm").mkdir()
    folder = small_model(tmp_path, "cc25")
    assert load_codec(folder).tokenizer.tokenize("Ｚ\u2026") != load_codec(folder).tokenizer.tokenize("Z...")
    (folder / "tokenizer.json").unlink()
    train_sentencepiece(tmp_path / "spm", normaliser="nmt_nfkc").rename(folder / "sentencepiece.bpe.model")
    codec = load_codec(folder)
    assert codec.tokenizer.tokenize("Ｚeile\u2026") == codec.tokenizer.tokenize("Zeile...")
    assert codec.tokenizer.unk_token_id not in codec.pieces(["Ｚeile\u2026"], 50)[0]
    codec.tokenizer.save_pretrained(tmp_path / "saved")
    shutil.copy(folder / "config.json", tmp_path / "saved")
    again = load_codec(tmp_path / "saved")
    assert type(again.tokenizer).__name__ == "MBartTokenizer"
    assert again.pieces(["Ｚeile\u2026"], 50) == codec.pieces(["Zeile..."], 50)


def test_special_pieces_without_a_row_are_left_out(tmp_path, capsys):
    """Gemma 3's tokenizer has the piece of an image, of which its models of text alone have no row."""
    folder = small_decoder(tmp_path, "gemma3_text")
    tokenizer = AutoTokenizer.from_pretrained(folder)
    rows = read_json(folder / "config.json")["vocab_size"]
    tokenizer.add_tokens([f"filler{number}" for number in range(rows - len(tokenizer))])
    tokenizer.add_special_tokens({"additional_special_tokens": ["<image_soft_token>"]})
    tokenizer.save_pretrained(folder)
    codec = load_codec(folder)
    assert len(tokenizer) == rows + 1 and ids_needed(codec.tokenizer) == rows
    assert "no row for <image_soft_token>, which the tokenizer has; left out" in capsys.readouterr().out
    (row,) = codec.pieces(["Eine Datei <image_soft_token>."])
    assert max(row) < rows and codec.decode([row]) == ["Eine Datei <image_soft_token>."]
    codec.tokenizer.save_pretrained(tmp_path / "again")
    assert len(AutoTokenizer.from_pretrained(tmp_path / "again")) == rows


def test_words_begin_where_a_byte_level_vocabulary_marks_them(tmp_path):
    tokenizer = load_codec(tiny_encoder(tmp_path, "modernbert")).tokenizer
    starts, vocabulary = word_starts(tokenizer), tokenizer.get_vocab()
    assert all(starts[number] == piece.startswith("Ġ") for piece, number in vocabulary.items())
    assert 0 < starts.sum() < len(starts)


def test_where_no_piece_is_marked_each_is_a_word(tmp_path):
    assert word_starts(load_codec(small_t5(tmp_path, "byt5")).tokenizer).all()
