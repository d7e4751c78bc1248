"""A trimmed model reads and writes the counted text as before."""

import json
from dataclasses import replace

import pytest
import torch
from tiny_decoders import small_decoder
from tiny_encoders import ENCODERS, tiny_encoder
from tiny_models import manual_pairs, small_encoder, small_model, small_t5, train_sentencepiece
from tiny_vocabularies import BYTES, UNUSED
from transformers import AutoModel, AutoModelForCausalLM, AutoModelForMaskedLM, AutoModelForSeq2SeqLM, AutoTokenizer

from workflow_scripts.models.search import generate
from workflow_scripts.models.templates import Templates
from workflow_scripts.models.tokenisation import Codec, load_codec
from workflow_scripts.models.trimming import ids_in_settings, pieces_to_keep, pieces_used, trim_network, trim_tokenizer
from workflow_scripts.stage import InputError, read_json
from workflow_scripts.training import backbone
from workflow_scripts.training.backbone import Backbone
from workflow_scripts.training.loop import load_model
from workflow_scripts.training.settings import Training


def trimmed_backbone(whole, folder, *text, **asked):
    """What the report says of a backbone that is trimmed to some text; the model is in the folder `trimmed`."""
    files = [folder / name for name in ("trimmed", "b.json", "c.tsv")]
    backbone.main(*files, languages=("de", "en"), task_text=text, settings=Backbone(model=str(whole), trim=True), **asked)
    return read_json(folder / "b.json")


@pytest.mark.parametrize("family", ["mbart", "cc25", "mbart50", "nllb"])
def test_a_trimmed_model_reads_and_writes_as_before(tmp_path, family):
    whole = small_model(tmp_path, family)
    german, english = (side[:8] for side in manual_pairs(8))
    for name, lines in (("train.de", german), ("train.en", english)):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    report = trimmed_backbone(whole, tmp_path, tmp_path / "train.de", tmp_path / "train.en")
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


TEXT = [line for side in manual_pairs(40) for line in side]
PROMPTS = [f"German: {line}\nEnglish:" for line in TEXT] + ["Mixed German: ___ 1907\n\nGerman:"]


def trimmed(whole, opens, folder):
    """The model and the tokenizer in a folder, whole and cut down to `TEXT`, saved and opened again by transformers, and the pieces kept."""
    tokenizer, network = AutoTokenizer.from_pretrained(whole), opens.from_pretrained(whole).eval()
    used = pieces_used(Codec(tokenizer, "mt5"), iter(TEXT), iter(PROMPTS))
    assert used.counts["unknown"] == 0 < used.counts["pieces"]
    kept = pieces_to_keep(tokenizer, {*used.ids, *ids_in_settings(network)})
    cut = opens.from_pretrained(whole)
    trim_network(cut, kept)
    cut.save_pretrained(folder / "cut")
    trim_tokenizer(tokenizer, kept, folder / "cut")
    return (network, opens.from_pretrained(folder / "cut").eval()), (tokenizer, AutoTokenizer.from_pretrained(folder / "cut")), kept


def with_two_ends(folder):
    """A model whose own settings end a text at two pieces."""
    settings, tokenizer = folder / "generation_config.json", AutoTokenizer.from_pretrained(folder)
    ends = [tokenizer.eos_token_id, tokenizer.convert_tokens_to_ids("a")]
    settings.write_text(json.dumps({**read_json(settings), "eos_token_id": ends}), encoding="utf-8")
    return folder


def same_pieces(tokenizers, kept, lines):
    """Whether both tokenizers cut lines into the same pieces, whose ids are the places of the old ids among those kept."""
    before, after = (tokenizer(lines)["input_ids"] for tokenizer in tokenizers)
    return before == [[kept[i] for i in row] for row in after]


@pytest.mark.parametrize("kind", ["gemma3_text", "qwen3", "llama", "bloom"])
def test_a_trimmed_decoder_is_the_whole_one_where_its_pieces_are_used(tmp_path, kind):
    networks, tokenizers, kept = trimmed(with_two_ends(small_decoder(tmp_path, kind)), AutoModelForCausalLM, tmp_path)
    assert len(kept) == len(tokenizers[1]) == networks[1].config.vocab_size < len(tokenizers[0])
    # nor is a line cut in another way behind a blank, or lower-cased
    assert same_pieces(tokenizers, kept, [*TEXT, *PROMPTS, *(f" {line.lower()}" for line in TEXT)])
    row = tokenizers[1](PROMPTS[:1], return_tensors="pt")["input_ids"]
    with torch.no_grad():
        whole, cut = networks[0](torch.tensor([[kept[i] for i in row[0]]])).logits, networks[1](row).logits
    assert torch.equal(whole[..., kept], cut)
    assert type(networks[1].get_input_embeddings()) is type(networks[0].get_input_embeddings())  # Gemma's scales what it looks up
    for one, other in ((networks[0].config, networks[1].config), (networks[0].generation_config, networks[1].generation_config)):
        for name in ("bos_token_id", "eos_token_id", "pad_token_id"):
            before, after = getattr(one, name), getattr(other, name)
            assert before == ([kept[i] for i in after] if isinstance(after, list) else None if after is None else kept[after])
    # what it has no piece for is spelt in bytes, and nothing is lost
    strange = "\u10a3 \u6f22\u5b57 na\u00efve"
    assert tokenizers[1].decode(tokenizers[1](strange)["input_ids"], skip_special_tokens=True) == strange


def test_places_of_a_vocabulary_that_nothing_names_or_uses_are_left_out(tmp_path):
    _, (_, cut), _ = trimmed(small_decoder(tmp_path, "gemma3_text"), AutoModelForCausalLM, tmp_path)
    vocabulary = cut.get_vocab().keys()
    assert not vocabulary & {*UNUSED} and {*BYTES, "<bos>", "<mask>", "\n", "\n\n", "7"} <= vocabulary


def test_tokens_that_a_chat_template_names_are_kept(tmp_path):
    _, (whole, cut), kept = trimmed(small_decoder(tmp_path, "qwen3"), AutoModelForCausalLM, tmp_path)
    asked = [{"role": "user", "content": TEXT[0]}]
    before, after = (each.apply_chat_template(asked)["input_ids"] for each in (whole, cut))
    assert before == [kept[i] for i in after] and whole.convert_tokens_to_ids("<|im_start|>") in before


OWN = Templates(task="Dokument {source}\nfunction {target_language}:", mask="Datei", examples=[("Zelle", "table")])


@pytest.mark.parametrize("kind", ["gemma3_text", "qwen3"])
@pytest.mark.parametrize("chat", [False, True])
def test_a_trimmed_decoder_is_asked_with_the_same_pieces(tmp_path, kind, chat):
    whole = small_decoder(tmp_path, kind, chat=True)
    (tmp_path / "train.de").write_text("x\n", encoding="utf-8")
    report = trimmed_backbone(whole, tmp_path, tmp_path / "train.de", templates=OWN.texts, chat=chat)
    assert report["vocabulary"] < report["vocabulary_before_trimming"]
    asked = []
    for codec in map(load_codec, (whole, tmp_path / "trimmed")):
        codec.templates = replace(OWN, chat=chat)
        frames = [codec.frame(way, kind) for way in (("de", "en"), ("en", "en")) for kind in ("task", "restore")]
        rows = [*(frame.prompt([]) for frame in frames), *codec.pieces([" <mask> x", "<mask>"], 99, masks=True)]
        asked.append([codec.tokenizer.convert_ids_to_tokens(row) for row in rows])
    assert asked[0] == asked[1] and "ate" in asked[0][-1]


@pytest.mark.parametrize("kind", ["gemma3_text", "qwen3", "llama"])
def test_examples_are_cut_into_the_same_pieces_though_which_are_shown_is_not_known(tmp_path, kind):
    whole = small_decoder(tmp_path, kind, paragraphs=True)
    pairs = [*zip(*manual_pairs(20), strict=True)]
    (tmp_path / "train").write_text("\n".join(line for pair in pairs for line in pair), encoding="utf-8")
    own = Templates(task="„{source}“, {target_language}:")
    trimmed_backbone(whole, tmp_path, tmp_path / "train", templates=own.texts)
    asked = []
    for codec in map(load_codec, (whole, tmp_path / "trimmed")):
        frames = []
        for templates in (Templates(examples=pairs), replace(own, examples=pairs)):
            codec.templates = templates
            frames += [codec.frame(way).prompt([]) for way in (("de", "en"), ("en", "en"))]
        asked.append([codec.tokenizer.convert_ids_to_tokens(row) for row in frames])
    assert asked[0] == asked[1]
    assert kind == "gemma3_text" or {".Ċ", ".ĊĊ"} <= {*asked[0][0]}


ALL_ENCODERS = ("bert", "xlm-roberta", *ENCODERS)
HEADLESS = ("e5", "deberta")  # as they are on the hub


@pytest.mark.parametrize(
    ("kind", "opens"),
    [*((kind, AutoModel) for kind in ALL_ENCODERS), *((kind, AutoModelForMaskedLM) for kind in ALL_ENCODERS if kind not in HEADLESS)],
)
def test_a_trimmed_encoder_reads_and_guesses_as_the_whole_one(tmp_path, kind, opens):
    networks, tokenizers, kept = trimmed((tiny_encoder if kind in ENCODERS else small_encoder)(tmp_path, kind), opens, tmp_path)
    assert len(kept) == len(tokenizers[1]) == networks[1].config.vocab_size < len(tokenizers[0])
    assert same_pieces(tokenizers, kept, [*TEXT, *PROMPTS])
    row = tokenizers[1](TEXT[:1], truncation=True, max_length=60, return_tensors="pt")["input_ids"]
    with torch.no_grad():
        whole, cut = networks[0](torch.tensor([[kept[i] for i in row[0]]])), networks[1](row)
    assert torch.equal(whole[0] if opens is AutoModel else whole[0][..., kept], cut[0])


def test_a_trimmed_output_layer_of_its_own_stays_its_own(tmp_path):
    networks, tokenizers, kept = trimmed(small_t5(tmp_path), AutoModelForSeq2SeqLM, tmp_path)
    assert same_pieces(tokenizers, kept, [*TEXT, *PROMPTS])
    assert not torch.equal(networks[1].lm_head.weight, networks[1].shared.weight)
    assert torch.equal(networks[1].lm_head.weight, networks[0].lm_head.weight[kept])


def test_an_unknown_letter_costs_as_much_as_before(tmp_path):
    _, (whole, cut), _ = trimmed(small_encoder(tmp_path, "xlm-roberta"), AutoModel, tmp_path)
    lowest = [min(score for _, score in json.loads(each.backend_tokenizer.to_str())["model"]["vocab"]) for each in (whole, cut)]
    assert lowest[0] == lowest[1]


def test_a_trimmed_tokenizer_normalises_as_before(tmp_path):
    (tmp_path / "spm").mkdir()
    whole = small_model(tmp_path, "cc25")
    (whole / "tokenizer.json").unlink()
    train_sentencepiece(tmp_path / "spm", normaliser="nmt_nfkc").rename(whole / "sentencepiece.bpe.model")
    text = tmp_path / "train.de"
    text.write_text("Ｚeile\u2026 öffnen\n", encoding="utf-8")
    trimmed_backbone(whole, tmp_path, text)
    pieces = [load_codec(folder).tokenizer.tokenize("Ｚeile\u2026 zeile öffnen") for folder in (whole, tmp_path / "trimmed")]
    assert pieces[0] == pieces[1] and "<unk>" not in pieces[1]


def test_a_tokenizer_that_asks_sentencepiece_cannot_be_trimmed(tmp_path):
    whole = small_model(tmp_path, "m2m100")
    (tmp_path / "train.de").write_text("Eine Zeile\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"M2M100Tokenizer\) cannot be trimmed; leave `trim` out"):
        trimmed_backbone(whole, tmp_path, tmp_path / "train.de")


def test_trimming_needs_text(tmp_path):
    with pytest.raises(InputError, match=r"trim. needs the experiments' text"):
        trimmed_backbone(small_model(tmp_path), tmp_path)
