"""Tag formats of the families that write text."""

import json
from dataclasses import replace

import pytest
from tiny_decoders import small_decoder
from tiny_models import manual_pairs, small_encoder, small_model, small_t5

from workflow_scripts.models.batches import decoder_input
from workflow_scripts.models.templates import Templates
from workflow_scripts.models.tokenisation import load_codec, sentinel_ids
from workflow_scripts.stage import InputError


@pytest.fixture(scope="module", params=["mbart", "cc25", "mbart50", "nllb", "m2m100"])
def codec(request, tmp_path_factory):
    return request.param, load_codec(small_model(tmp_path_factory.mktemp(request.param), request.param))


def test_families_and_their_formats(codec):
    kind, codec = codec
    assert codec.family == {"mbart50": "mbart50", "nllb": "m2m100", "m2m100": "m2m100"}.get(kind, "mbart")
    row = codec.encode(["Öffnen Sie die Datei."], "de")[0]
    eos, tag = codec.tokenizer.eos_token_id, codec.tag("de")
    if kind not in ("mbart", "cc25"):
        assert row[0] == tag and row[-1] == eos and decoder_input(row)[:2] == [eos, tag]
        assert codec.generate_arguments("en") == {"decoder_start_token_id": eos, "forced_bos_token_id": codec.tag("en")}
    else:
        assert row[-2:] == [eos, tag] and decoder_input(row)[0] == tag
        assert codec.generate_arguments("en") == {"decoder_start_token_id": codec.tag("en")}
    assert sorted(decoder_input(row)) == sorted(row)


def test_the_hub_tokenizers_own_format_is_the_same(codec):
    kind, codec = codec
    if kind == "mbart":
        assert codec.tokenizer.convert_tokens_to_ids(["<s>", "<pad>", "</s>", "<unk>"]) == [0, 1, 2, 3]
        assert codec.tokenizer.convert_tokens_to_ids("<mask>") == len(codec.tokenizer) - 1
        return
    line = "Wählen Sie eine Zeile aus."
    codec.tokenizer.src_lang = {"nllb": "deu_Latn", "m2m100": "de"}.get(kind, "de_DE")
    assert codec.tokenizer(line)["input_ids"] == codec.encode([line], "de")[0]
    codec.tokenizer.tgt_lang = {"nllb": "eng_Latn", "m2m100": "en"}.get(kind, "en_XX")
    assert codec.tokenizer(text_target=line)["input_ids"] == codec.encode([line], "en")[0]
    if kind in ("nllb", "m2m100"):
        return
    ids = codec.tokenizer.convert_tokens_to_ids(["<s>", "<pad>", "</s>", "<unk>", "ar_AR", "de_DE", "<mask>"])
    pieces = len(codec.tokenizer) - (26 if kind == "cc25" else 53)
    assert ids == [0, 1, 2, 3, pieces, pieces + 2, len(codec.tokenizer) - 1]


def test_text_comes_back(codec):
    _, codec = codec
    lines = manual_pairs(30)[0]
    rows = codec.encode(lines, "de")
    readable = [line for line, row in zip(lines, rows, strict=True) if codec.tokenizer.unk_token_id not in row]
    assert len(readable) > 20
    assert codec.decode(codec.encode(readable, "de")) == readable


def test_special_tokens_in_the_text_are_text_and_masks_are_masks(codec):
    kind, codec = codec
    mask = codec.tokenizer.mask_token_id
    if kind == "m2m100":
        with pytest.raises(InputError, match=r"M2M-100 .* has no <mask>, so it cannot restore"):
            codec.pieces(["das <mask> Fenster"], 50, masks=True)
        # rows of switched words are noise without masks
        assert codec.pieces(["das window"], 50, masks=True) == codec.pieces(["das window"], 50)
        return
    assert codec.pieces(["das <mask> Fenster"], 50, masks=True)[0].count(mask) == 1
    row = codec.pieces(["das <mask> </s> de_DE deu_Latn Fenster"], 50)[0]
    assert not {mask, codec.tokenizer.eos_token_id, codec.tag("de")} & set(row)


@pytest.mark.parametrize("kind", ["gemma3_text", "qwen3"])
def test_the_signs_of_a_chat_are_text_in_a_text(tmp_path, kind):
    codec = load_codec(small_decoder(tmp_path, kind, chat=True))
    line = "Hallo<|end|>\n<|turn|>assistant"
    signs = {codec.tokenizer.convert_tokens_to_ids(sign) for sign in ("<|end|>", "<|turn|>")}
    codec.templates = Templates(chat=True, examples=[(line, line)])
    (row,) = codec.pieces([line])
    assert not signs & {*row}
    assert codec.tokenizer.decode(row, skip_special_tokens=True).replace(" ", "") == line
    asked = codec.frame(("de", "en")).prompt(row)
    assert sum(piece in signs for piece in asked) == 3 * 2 + 1  # three turns, and the beginning of the answer's


@pytest.mark.parametrize("kind", ["mt5", "t5", "byt5"])
def test_the_masks_of_t5s_kin_are_its_sentinels(tmp_path, kind):
    codec = load_codec(small_t5(tmp_path, kind))
    first, second, *_ = sentinels = sentinel_ids(codec)
    whole, alone = codec.pieces(["<mask> das <mask> Fenster", "das Fenster"], 50, masks=True)
    parts = codec.pieces(["das", "Fenster"] if kind != "byt5" else [" das ", " Fenster"], 50)
    assert whole == [first, *parts[0], second, *parts[1]] and alone == codec.pieces(["das Fenster"], 50)[0]
    # of more masks than there are sentinels the first comes again
    (many,) = codec.pieces(["<mask> " * (len(sentinels) + 1)], 200, masks=True)
    assert [one for one in many if one in sentinels] == [*sentinels, first]
    # those of a document's sentences follow each other
    (document,) = replace(codec, documents=True).pieces(["<mask> a. </s> b <mask> c. </s> <mask>"], 200, masks=True)
    assert [one for one in document if one in sentinels] == sentinels[:3]


def test_breaks_of_documents_are_the_end_of_a_sentence(codec):
    kind, codec = codec
    documents = load_codec(codec.tokenizer.name_or_path, documents=True)
    first, second, mask = "Öffnen Sie die Datei.", "das <mask> de_DE Fenster", codec.tokenizer.mask_token_id
    eos, tag = codec.tokenizer.eos_token_id, codec.tag("de")
    masks = mask is not None
    alone = codec.pieces([first, second], 99, masks=masks)
    (row,) = documents.encode([f"{first} </s> {second}"], "de", masks=masks)
    assert [i for i in row if i != tag] == [*alone[0], eos, *alone[1], eos] and row.count(tag) == 1 and row.count(mask) == masks
    # cut anywhere, a row has no empty sentence before its end
    for length in range(4, len(row) + 1):
        (cut,) = documents.encode([f"{first} </s> {second}"], "de", length, masks=masks)
        body = [i for i in cut if i != tag]
        assert len(cut) <= length and body[-1] == eos != body[-2] and body[:-1] == row[int(row[0] == tag) :][: len(body) - 1]


def test_long_rows_keep_their_tag(codec):
    _, codec = codec
    row = codec.encode(["Datei " * 100], "de", max_length=20)[0]
    assert len(row) == 20 and codec.tag("de") in row and codec.tokenizer.eos_token_id in row


def test_unknown_language_is_refused(tmp_path):
    with pytest.raises(InputError, match="no tag fr_XX"):
        load_codec(small_model(tmp_path)).tag("fr")


def test_a_language_without_a_tag_is_read_under_another_one(tmp_path):
    codec = load_codec(small_model(tmp_path))
    assert codec.untagged(["de", "el"], only_reads=True) == ["el"]
    for codes, only_reads in ((["de", "el"], False), (["el"], True)):
        with pytest.raises(InputError, match="no tag el_GR for 'el'"):
            codec.untagged(codes, only_reads)
    codec.fallback = "de"
    assert codec.encode(["Datei"], "el") == codec.encode(["Datei"], "de") != codec.encode(["Datei"], "en")


def test_an_encoder_without_an_end_of_sentence_breaks_documents_by_its_separator(tmp_path):
    codec = load_codec(small_encoder(tmp_path, "bert"), documents=True)
    (row,) = codec.pieces(["Das Fenster. </s> Die Datei."], 99)
    assert row.count(codec.tokenizer.sep_token_id) == 1


def test_an_end_of_a_turn_need_not_be_special(tmp_path):
    folder = small_decoder(tmp_path, "qwen3", chat=True)
    codec = load_codec(folder)
    codec.templates = Templates(chat=True)
    end = codec.frame(("de", "en")).end
    codec.tokenizer.added_tokens_decoder[end].special = False
    (row,) = codec.pieces(["The file."])
    assert codec.decode([[*row, end, *row]]) == ["The file."]


def test_a_tokenizer_that_is_not_the_models_is_refused(tmp_path):
    model = small_model(tmp_path)
    settings = json.loads((model / "config.json").read_text())
    (model / "config.json").write_text(json.dumps({**settings, "vocab_size": settings["vocab_size"] - 1}))
    with pytest.raises(
        InputError, match=r"its tokenizer has (\d+) pieces, more than the \d+ of its embeddings .*copy tokenizer and weights"
    ):
        load_codec(model)
    (model / "tokenizer.json").write_text("no JSON\n")
    with pytest.raises(InputError, match=r"its tokenizer cannot be loaded \(JSONDecodeError"):
        load_codec(model)
    (model / "tokenizer.json").unlink()
    with pytest.raises(InputError, match=r"no tokenizer \(tokenizer\.json or .*\) is there"):
        load_codec(model)
