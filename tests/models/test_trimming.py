"""A trimmed model reads and writes the counted text as before."""

import pytest
import torch
from tiny_models import manual_pairs, small_model, train_sentencepiece

from workflow_scripts.models.search import generate
from workflow_scripts.models.tokenisation import load_codec
from workflow_scripts.stage import InputError, read_json
from workflow_scripts.training import backbone
from workflow_scripts.training.backbone import Backbone
from workflow_scripts.training.loop import load_model
from workflow_scripts.training.settings import Training


@pytest.mark.parametrize("family", ["mbart", "cc25", "mbart50", "nllb"])
def test_a_trimmed_model_reads_and_writes_as_before(tmp_path, family):
    whole = small_model(tmp_path, family)
    german, english = (side[:8] for side in manual_pairs(8))
    for name, lines in (("train.de", german), ("train.en", english)):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    text = (tmp_path / "train.de", tmp_path / "train.en")
    backbone.main(
        tmp_path / "trimmed",
        tmp_path / "b.json",
        tmp_path / "c.tsv",
        languages=("de", "en"),
        task_text=text,
        settings=Backbone(model=str(whole), trim=True),
    )
    report = read_json(tmp_path / "b.json")
    codecs = [load_codec(folder) for folder in (whole, tmp_path / "trimmed")]
    networks = [load_model(folder, Training(), 1).eval() for folder in (whole, tmp_path / "trimmed")]
    sizes = [len(codec.tokenizer) for codec in codecs]
    assert report["vocabulary"] == sizes[1] < sizes[0] == report["vocabulary_before_trimming"]
    assert networks[1].config.vocab_size == sizes[1] == networks[1].lm_head.out_features
    assert networks[1].lm_head.weight is networks[1].model.shared.weight
    assert codecs[1].family == codecs[0].family
    for code, lines in (("de", german), ("en", english)):
        rows = [codec.encode(lines, code) for codec in codecs]
        tokens = [[codec.tokenizer.convert_ids_to_tokens(row) for row in side] for codec, side in zip(codecs, rows, strict=True)]
        assert tokens[0] == tokens[1] and rows[0] != rows[1]
        assert codecs[1].decode(rows[1]) == codecs[0].decode(rows[0])
        logits = []
        for network, side in zip(networks, rows, strict=True):
            ids = torch.tensor(side[:1])
            logits.append(network(input_ids=ids, decoder_input_ids=ids).logits[0])
        kept = [codecs[0].tokenizer.convert_tokens_to_ids(codecs[1].tokenizer.convert_ids_to_tokens(i)) for i in range(sizes[1])]
        assert torch.allclose(logits[0][:, kept], logits[1], atol=1e-5)
    assert len(generate(networks[1], codecs[1], codecs[1].encode(german[:2], "de"), "en", beam_size=2, max_length=8)) == 2
    assert codecs[1].encode(["<mask>"], "de", masks=True)[0].count(codecs[1].tokenizer.mask_token_id) == 1


def test_a_trimmed_tokenizer_normalises_as_before(tmp_path):
    (tmp_path / "spm").mkdir()
    whole = small_model(tmp_path, "cc25")
    (whole / "tokenizer.json").unlink()
    train_sentencepiece(tmp_path / "spm", normaliser="nmt_nfkc").rename(whole / "sentencepiece.bpe.model")
    text = tmp_path / "train.de"
    text.write_text("Ｚeile\u2026 öffnen\n", encoding="utf-8")
    backbone.main(
        tmp_path / "trimmed",
        tmp_path / "b.json",
        tmp_path / "c.tsv",
        languages=("de", "en"),
        task_text=(text,),
        settings=Backbone(model=str(whole), trim=True),
    )
    pieces = [load_codec(folder).tokenizer.tokenize("Ｚeile\u2026 zeile öffnen") for folder in (whole, tmp_path / "trimmed")]
    assert pieces[0] == pieces[1] and "<unk>" not in pieces[1]


def test_a_tokenizer_that_asks_sentencepiece_cannot_be_trimmed(tmp_path):
    whole = small_model(tmp_path, "m2m100")
    (tmp_path / "train.de").write_text("Eine Zeile\n", encoding="utf-8")
    files = [tmp_path / name for name in ("trimmed", "b.json", "c.tsv")]
    with pytest.raises(InputError, match=r"M2M100Tokenizer\) cannot be trimmed; leave `trim` out"):
        backbone.main(*files, languages=("de",), task_text=(tmp_path / "train.de",), settings=Backbone(model=str(whole), trim=True))


def test_trimming_needs_text(tmp_path):
    with pytest.raises(InputError, match=r"trim. needs the experiments' text"):
        backbone.main(
            tmp_path / "t",
            tmp_path / "b.json",
            tmp_path / "c.tsv",
            languages=("de", "en"),
            settings=Backbone(model=str(small_model(tmp_path)), trim=True),
        )
