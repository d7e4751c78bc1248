"""Checkpoints of fairseq, written by fairseq itself (`tests/data/fairseq/make.py`), and what it computes with them."""

import argparse
import builtins
import collections
import os
import shutil
from pathlib import Path

import numpy
import pytest
import sentencepiece
import torch
import warm
from tiny_models import train_sentencepiece
from transformers import AutoModelForMaskedLM, AutoModelForSeq2SeqLM

from workflow_scripts.models.fairseq import check, convert, read_checkpoint
from workflow_scripts.models.fairseq_files import Files, Vocabulary, files_of, read_dictionary, tokenizer_of
from workflow_scripts.models.makers import FIRST
from workflow_scripts.models.tokenisation import load_codec
from workflow_scripts.models.tokenizer import load_tokenizer
from workflow_scripts.stage import InputError, read_json

DATA = Path("tests/data/fairseq")
FORMS = {"xlmr": "XLM-R", "mbart": "mBART", "bart": "BART"}


def copied(name: str, folder: Path) -> Path:
    """A model's folder, to be changed."""
    return Path(shutil.copytree(DATA / name, folder / name))


def rewritten(path: Path, change) -> None:
    """Have `change` work on a checkpoint."""
    checkpoint = read_checkpoint(path)
    change(checkpoint)
    torch.save(checkpoint, path)


@pytest.mark.parametrize(
    ("model", "expected"),
    [("xlmr", "expected"), ("xlmr/old.pt", "old"), ("mbart", "expected"), ("bart", "expected")],
)
def test_a_converted_model_computes_what_fairseq_does(model, expected, tmp_path):
    folder = DATA / model if (DATA / model).is_dir() else (DATA / model).parent
    convert(DATA / model, tmp_path / "model")
    wanted = numpy.load(folder / f"{expected}.npz")
    ids = torch.from_numpy(wanted["ids"])
    seen = ids != 1
    encoder = folder.name == "xlmr"
    network = (AutoModelForMaskedLM if encoder else AutoModelForSeq2SeqLM).from_pretrained(tmp_path / "model")
    more = {} if encoder else {"decoder_input_ids": torch.from_numpy(wanted["written"])}
    with torch.no_grad():
        found = network(input_ids=ids, attention_mask=seen.long(), **more).logits
    scores = torch.from_numpy(wanted["scores"])
    torch.testing.assert_close(*((found[seen], scores[seen]) if encoder else (found, scores)), rtol=0, atol=1e-5)
    assert scores.std() > 0.1  # the numbers are not all alike
    # and reads a text as the same ids
    lines = (folder / "text.txt").read_text("utf-8").splitlines()
    rows = load_tokenizer(tmp_path / "model")(lines, add_special_tokens=False)["input_ids"]
    whole = [row[row > 2].tolist() for row in wanted["ids"]]
    assert rows == whole
    assert load_codec(tmp_path / "model").decode(rows) == lines


def test_tags_of_languages_stand_where_fairseq_has_them(tmp_path):
    convert(DATA / "mbart", tmp_path / "model")
    codec = load_codec(tmp_path / "model")
    entries = [*FIRST, *read_dictionary(DATA / "mbart/dict.txt"), "[de_DE]", "[en_XX]", "<mask>"]
    assert codec.family == "mbart"
    assert [entries[codec.tag(code)] for code in ("de", "en")] == ["[de_DE]", "[en_XX]"]
    assert entries[codec.tokenizer.mask_token_id] == "<mask>"


def test_no_code_of_a_checkpoint_runs(tmp_path):
    class Evil:
        def __init__(self, function, text):
            self.said = function, (text,)

        def __reduce__(self):
            return self.said

    for zipped in (True, False):
        folder = copied("xlmr", tmp_path / str(zipped))
        checkpoint, made = read_checkpoint(folder / "model.pt"), tmp_path / "made"
        harmless = {**checkpoint, "evil": [Evil(function, f"open({str(made)!r}, 'w')") for function in (builtins.eval, builtins.exec)]}
        torch.save(harmless, folder / "model.pt", _use_new_zipfile_serialization=zipped)
        convert(folder, tmp_path / "model")
        assert not made.exists()
        torch.save({**checkpoint, "evil": Evil(os.system, f"touch {made}")}, folder / "model.pt", _use_new_zipfile_serialization=zipped)
        with pytest.raises(InputError, match="holds objects that torch cannot read without running code"):
            convert(folder, tmp_path / "model")
        assert not made.exists()


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("held", [collections.defaultdict(list, a=[1]), collections.deque([1])])
def test_objects_that_cannot_be_left_out_are_refused(held, zipped, tmp_path):
    folder = copied("mbart", tmp_path)
    checkpoint = {**read_checkpoint(folder / "model.pt"), "extra_state": {"x": held}}
    torch.save(checkpoint, folder / "model.pt", _use_new_zipfile_serialization=zipped)
    with pytest.raises(InputError, match="holds objects that torch cannot read without running code") as refused:
        convert(folder, tmp_path / "model")
    assert "weights_only" not in str(refused.value)
    # what the message says to do
    advice = str(refused.value).split("`")[1].replace("NEW.pt", str(folder / "model.pt"))
    exec(advice, {"torch": torch, "c": checkpoint})
    check(folder, False, ["de", "en"])


@pytest.mark.parametrize("zipped", [True, False])
def test_a_file_that_is_cut_off_is_called_so(zipped, tmp_path):
    folder = copied("mbart", tmp_path)
    torch.save(read_checkpoint(folder / "model.pt"), folder / "model.pt", _use_new_zipfile_serialization=zipped)
    whole = (folder / "model.pt").read_bytes()
    for length in (len(whole) - 10, len(whole) // 2, 1000, 30):
        (folder / "model.pt").write_bytes(whole[:length])
        with pytest.raises(InputError, match=r"is no (whole )?checkpoint of fairseq"):
            convert(folder, tmp_path / "model")


def test_a_model_does_not_take_the_place_of_its_checkpoint(tmp_path):
    folder = copied("xlmr", tmp_path)
    (folder / "config.json").touch()  # as in a folder that has both
    with pytest.raises(InputError, match="has the checkpoint, which the model would take the place of; name a new folder"):
        convert(folder / "model.pt", folder)
    (folder / "config.json").unlink()
    (tmp_path / "full").mkdir()
    (tmp_path / "full/notes.txt").touch()
    with pytest.raises(InputError, match="full: is there already"):
        convert(folder, tmp_path / "full")


def test_each_tensor_has_its_place(tmp_path):
    folder = copied("mbart", tmp_path)
    rewritten(folder / "model.pt", lambda checkpoint: checkpoint["model"].update({"decoder.adapter.weight": torch.ones(2)}))
    with pytest.raises(InputError, match=r"model\.pt: decoder\.adapter\.weight has no place in a model of mBART"):
        convert(folder, tmp_path / "model")
    folder = copied("bart", tmp_path)
    rewritten(folder / "model.pt", lambda checkpoint: checkpoint["model"].pop("decoder.layers.1.fc2.bias"))
    with pytest.raises(InputError, match=r"has nothing for model\.decoder\.layers\.1\.fc2\.bias, which a model of BART has"):
        convert(folder, tmp_path / "model")


def test_copies_of_a_layer_that_fairseq_keeps_are_left_out(tmp_path):
    folder = copied("xlmr", tmp_path)
    # as fairseq 0.12.2 has them in each layer of an encoder
    more = {f"encoder.sentence_encoder.layers.0.{name}_weight": torch.zeros(2, 2) for name in ("in_proj", "out_proj", "fc1", "fc2")}
    rewritten(folder / "model.pt", lambda checkpoint: checkpoint["model"].update(more))
    assert convert(folder, tmp_path / "model") == convert(DATA / "xlmr", tmp_path / "other")


def test_an_output_layer_of_its_own_is_kept(tmp_path):
    for name, layer in (("xlmr", "encoder.lm_head.weight"), ("mbart", "decoder.output_projection.weight")):
        folder = copied(name, tmp_path)

        def change(checkpoint, layer=layer):
            checkpoint["model"][layer] = checkpoint["model"][layer] + 1

        rewritten(folder / "model.pt", change)
        output = read_checkpoint(folder / "model.pt")["model"][layer]
        convert(folder, tmp_path / "model")
        network = (AutoModelForMaskedLM if name == "xlmr" else AutoModelForSeq2SeqLM).from_pretrained(tmp_path / "model")
        assert torch.equal(network.get_output_embeddings().weight, output)
        assert not torch.equal(network.get_input_embeddings().weight, output)
        bias = network.get_output_embeddings().bias
        assert name == "mbart" or torch.equal(bias, read_checkpoint(folder / "model.pt")["model"]["encoder.lm_head.bias"])


@pytest.mark.parametrize(("which", "places"), [("last", [1, 2]), ("first", [0, 1])])
def test_some_layers_of_a_decoder_are_kept(which, places, tmp_path):
    assert convert(DATA / "bart", tmp_path / "model", 2, which)["decoder_layers_left_out"] == 1
    network = AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "model")
    weights = read_checkpoint(DATA / "bart/model.pt")["model"]
    kept = [layer.fc1.weight for layer in network.model.decoder.layers]
    assert all(torch.equal(weight, weights[f"decoder.layers.{i}.fc1.weight"]) for weight, i in zip(kept, places, strict=True))
    with pytest.raises(InputError, match=r"decoder_layers: 4 are asked for, and its decoder has 3"):
        convert(DATA / "bart", tmp_path / "model", 4)
    with pytest.raises(InputError, match="is an encoder, which has no decoder"):
        convert(DATA / "xlmr", tmp_path / "model", 1)


def test_a_model_is_converted_by_hand(tmp_path):
    command = [
        warm.python(),
        "-m",
        "workflow_scripts.models.fairseq",
        "--model",
        "tests/data/fairseq/bart",
        "--output",
        str(tmp_path / "new"),
    ]
    assert warm.run([*command, "--decoder-layers", "1"]).returncode == 0
    assert read_json(tmp_path / "new/config.json")["decoder_layers"] == 1


def test_a_vocabulary_of_another_model_is_refused(tmp_path):
    folder = copied("xlmr", tmp_path)
    with (folder / "dict.txt").open("a", encoding="utf-8") as file:
        file.write("more 1\n")
    with pytest.raises(InputError, match=r"dict\.txt: has \d+ entries, which makes \d+ pieces with no languages, and model.pt has \d+"):
        check(folder, True)
    shutil.copy(train_sentencepiece(tmp_path), folder / "sentencepiece.bpe.model")
    shutil.copy(DATA / "xlmr/dict.txt", folder)
    with pytest.raises(InputError, match=r"sentencepiece\.bpe\.model: lacks \d+ of the \d+ entries of dict\.txt, such as "):
        convert(folder, tmp_path / "model")
    with pytest.raises(InputError, match=r"sentencepiece\.bpe\.model: lacks \d+ of"):
        check(folder, True)


def test_a_dictionary_is_read_line_by_line(tmp_path):
    path = tmp_path / "dict.txt"
    for text, said in (
        ("a 1\nb\n", "line 2: 'b' is no entry of fairseq's dictionaries; each is a piece, a blank and a count"),
        ("a 1\nb x\n", "line 2: 'b x' is no entry"),
        ("a 1\nb 1\na 2\n", "line 3: 'a' stands in line 1 as well"),
        ("", "is empty"),
    ):
        path.write_text(text, "utf-8")
        with pytest.raises(InputError, match=said):
            read_dictionary(path)
    path.write_text("a 1\nb 2 #fairseq:overwrite\n", "utf-8")
    assert read_dictionary(path) == ["a", "b"]


def test_languages_that_a_checkpoint_does_not_name_can_be_listed(tmp_path):
    folder = copied("mbart", tmp_path)

    def change(checkpoint):
        for part in checkpoint["cfg"].values():
            if isinstance(part, argparse.Namespace):
                vars(part).pop("langs", None)
            elif isinstance(part, dict):
                part.pop("langs", None)

    rewritten(folder / "model.pt", change)
    with pytest.raises(InputError, match=r"where the checkpoint does not name its languages, list them in .*langs\.txt, one a line"):
        check(folder, False)
    (folder / "langs.txt").write_text("de_DE\nen_XX\n", "utf-8")
    convert(folder, tmp_path / "model")
    assert load_codec(tmp_path / "model").tag("en") == load_codec(tmp_path / "model").tag("de") + 1


@pytest.mark.parametrize("name", FORMS)
def test_what_is_said_beforehand(name, tmp_path):
    assert f"in the form of {FORMS[name]}, with " in check(DATA / name, True)
    if name == "xlmr":
        assert "its tensors are looked at when it is converted" in check(DATA / "xlmr/old.pt", True)
        with pytest.raises(InputError, match="is an encoder"):
            check(DATA / name, False)
    if name == "mbart":
        check(DATA / name, False, ["de", "en"])
        with pytest.raises(InputError, match=r"has no tag for cs; its languages are \[de_DE\], \[en_XX\]"):
            check(DATA / name, False, ["cs", "en"])


def changed_argument(name, value):
    """A change of an argument in a checkpoint; None removes it."""

    def change(checkpoint):
        model = checkpoint["cfg"]["model"]
        arguments = vars(model) if isinstance(model, argparse.Namespace) else model
        arguments[name] = value
        if value is None:
            del arguments[name]

    return change


def without_positions(checkpoint):
    for half in ("encoder", "decoder"):
        del checkpoint["model"][f"{half}.embed_positions.weight"]


def with_embeddings_apart(checkpoint):
    checkpoint["model"]["decoder.embed_tokens.weight"] = checkpoint["model"]["decoder.embed_tokens.weight"] + 1


@pytest.mark.parametrize(
    ("name", "change", "layers", "said"),
    [
        ("mbart", changed_argument("encoder_langtok", "src"), None, "a tag of the language stands before its texts"),
        ("mbart", changed_argument("activation_fn", "swish"), None, "activation_fn: 'swish' is not known"),
        ("xlmr", changed_argument("activation_fn", "swish"), None, "activation_fn: 'swish' is not known"),
        ("bart", changed_argument("no_scale_embedding", None), None, "do not say whether embeddings are scaled"),
        ("bart", changed_argument("decoder_attention_heads", 7), None, "decoder_attention_heads: 7 does not divide the size"),
        ("xlmr", changed_argument("encoder_attention_heads", "4"), None, "encoder_attention_heads: '4' does not divide the size"),
        ("bart", without_positions, None, r"has no tensor encoder\.embed_positions\.weight"),
        ("mbart", with_embeddings_apart, None, "encoder and decoder have embeddings of their own"),
        ("mbart", lambda checkpoint: checkpoint["model"].update({"more": torch.ones(2)}), None, "more has no place in a model of mBART"),
        ("bart", lambda checkpoint: checkpoint["model"].pop("decoder.layers.1.fc2.bias"), None, "has nothing for model.decoder.layers.1"),
        ("bart", lambda checkpoint: None, 99, "decoder_layers: 99 are asked for, and its decoder has 3"),
        ("xlmr", lambda checkpoint: None, 2, "is an encoder, which has no decoder"),
    ],
)
def test_what_conversion_refuses_is_found_beforehand(name, change, layers, said, tmp_path):
    folder = copied(name, tmp_path)
    rewritten(folder / "model.pt", change)
    with pytest.raises(InputError, match=said):
        convert(folder, tmp_path / "model", layers)
    with pytest.raises(InputError, match=said):
        check(folder, True, (), layers)


def test_files_that_are_missing_or_others_are_refused(tmp_path):
    with pytest.raises(InputError, match="nowhere: no such file; give the folder of a model of fairseq"):
        files_of(tmp_path / "nowhere")
    folder = copied("bart", tmp_path)
    (folder / "model.pt").rename(folder / "checkpoint_best.pt")
    with pytest.raises(InputError, match=r"model\.pt: no such file; name one of checkpoint_best\.pt itself"):
        files_of(folder)
    assert files_of(folder / "checkpoint_best.pt").checkpoint == folder / "checkpoint_best.pt"
    for content, said in ((b"PK no archive", "is no checkpoint of fairseq"), (b"", "is no checkpoint of fairseq")):
        (folder / "model.pt").write_bytes(content)
        with pytest.raises(InputError, match=said):
            check(folder, False)
    cut = (DATA / "bart/model.pt").read_bytes()
    (folder / "model.pt").write_bytes(cut[: len(cut) // 2])
    with pytest.raises(InputError, match="is no"):
        check(folder, False)
    torch.save({"state_dict": {}}, folder / "model.pt")
    with pytest.raises(InputError, match="has no `model`"):
        check(folder, False)
    shutil.copy(DATA / "bart/model.pt", folder)
    (folder / "sentencepiece.bpe.model").write_bytes(train_sentencepiece(tmp_path, 300, kind="bpe").read_bytes())
    with pytest.raises(InputError, match=r"with merges \(BPE\)"):
        check(folder, False)
    (folder / "sentencepiece.bpe.model").write_bytes(b"none")
    with pytest.raises(InputError, match="is no SentencePiece model"):
        check(folder, False)
    (folder / "sentencepiece.bpe.model").unlink()
    with pytest.raises(InputError, match="needs one SentencePiece model"):
        check(folder, False)
    (folder / "dict.txt").unlink()
    with pytest.raises(InputError, match=r"dict\.txt: no such file"):
        check(folder, False)


def test_text_is_normalised_as_sentencepiece_does(tmp_path):
    model = train_sentencepiece(tmp_path, normaliser="nmt_nfkc")
    cut = sentencepiece.SentencePieceProcessor(model_file=str(model))
    symbols = [*FIRST, *(cut.id_to_piece(i) for i in reversed(range(3, len(cut)))), "madeupword0000", "<mask>"]
    tokenizer, differences = tokenizer_of(Files(model, model, model), Vocabulary(symbols, []), "xlm-roberta")
    assert differences == {"entries_that_are_no_pieces": 1, "pieces_that_are_no_entries": 0}
    text = "Ｄｉｅ ﬁle … öffnen"
    assert tokenizer.convert_ids_to_tokens(tokenizer(text, add_special_tokens=False)["input_ids"]) == [
        symbol if symbol in symbols else "<unk>" for symbol in cut.encode(text, out_type=str)
    ]
