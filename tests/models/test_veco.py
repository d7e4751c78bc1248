"""The stack as an encoder and as a decoder, and its forms for tasks."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from tiny_models import manual_pairs, small_encoder, small_model
from transformers import (
    AutoModel,
    AutoModelForSeq2SeqLM,
    AutoTokenizer,
    BertConfig,
    BertForMaskedLM,
    RobertaConfig,
    RobertaForMaskedLM,
    XLMRobertaConfig,
    XLMRobertaForMaskedLM,
    XLMRobertaModel,
)

from benchmarks.head import measured
from workflow_scripts.models import decoding
from workflow_scripts.models.conversion import add_generator, convert
from workflow_scripts.models.layout import in_layout
from workflow_scripts.models.networks import head_states, output_layer, save_model
from workflow_scripts.models.tokenisation import load_codec
from workflow_scripts.models.tokenizer import load_tokenizer
from workflow_scripts.models.veco import CROSS, decode, encode, has_cross_attention, load_stack
from workflow_scripts.stage import InputError, read_json

WORDS = "roberta.embeddings.word_embeddings.weight"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A tiny XLM-R of three layers, and a VECO made of it, all weights random."""
    folder = tmp_path_factory.mktemp("veco")
    plain = small_encoder(folder, "xlm-roberta")
    torch.manual_seed(4)
    deeper = XLMRobertaForMaskedLM(XLMRobertaConfig.from_pretrained(plain, num_hidden_layers=3))
    save_model(deeper, load_tokenizer(plain), plain)
    stack = load_stack(plain, cross=True, seed=3)
    torch.manual_seed(5)
    with torch.no_grad():
        for weight in stack.parameters():
            weight += 0.05 * torch.randn_like(weight)
    save_model(stack, load_tokenizer(plain), folder / "veco")
    return plain, folder / "veco"


@pytest.fixture(scope="module")
def batch():
    """Two rows x, of which one is padded, and two rows y: ids, and where they are not padding."""
    torch.manual_seed(1)
    x, y = torch.randint(5, 300, (2, 7)), torch.randint(5, 300, (2, 9))
    x[1, 5:], y[0, 6:] = 1, 1
    return x, x != 1, y, y != 1


@pytest.mark.parametrize("shared", [True, False])
@torch.no_grad()
def test_a_bert_with_the_pieces_of_an_xlmr_becomes_one(made, batch, tmp_path, shared):
    plain, _ = made
    x, seen, *_ = batch
    torch.manual_seed(6)
    size = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64, "max_position_embeddings": 40}
    bert = BertForMaskedLM(BertConfig(vocab_size=len(load_tokenizer(plain)), pad_token_id=1, tie_word_embeddings=shared, **size)).eval()
    for weight in bert.parameters():
        weight += 0.05 * torch.randn_like(weight)
    save_model(bert, load_tokenizer(plain), tmp_path / "bert")
    stack = load_stack(tmp_path / "bert", cross=False).eval()
    logits = bert(input_ids=x, attention_mask=seen.long()).logits
    assert torch.allclose(stack(input_ids=x, attention_mask=seen.long()).logits[seen], logits[seen], atol=1e-6)
    # it reads as many pieces, and whatever takes an XLM-R takes it
    assert stack.config.max_position_embeddings == 42
    assert convert(tmp_path / "bert", tmp_path / "bart", "encoder-decoder")["decoder_layers"] == 2
    drawn = load_stack(tmp_path / "bert", cross=False, from_scratch=True).state_dict()
    assert {name: weight.shape for name, weight in drawn.items()} == {name: weight.shape for name, weight in stack.state_dict().items()}
    assert not torch.allclose(drawn[WORDS], stack.state_dict()[WORDS])


@torch.no_grad()
def test_a_bert_with_pieces_of_its_own_gets_the_layout_of_an_xlmr(tmp_path):
    folder, lines = small_encoder(tmp_path, "bert"), ["Open the file, or [MASK] it.", "Close it. <mask> [UNK]", "Ünïcödé 字"]
    assert in_layout(folder, tmp_path / "laid-out") == tmp_path / "laid-out"
    assert in_layout(tmp_path / "laid-out", tmp_path / "again") == tmp_path / "laid-out"
    convert(folder, tmp_path / "encoder", "encoder")
    convert(folder, tmp_path / "bart", "encoder-decoder")
    bert, codec = BertForMaskedLM.from_pretrained(folder).eval(), load_codec(folder)
    hidden = bert.bert.embeddings.word_embeddings.weight
    for form, network in (("encoder", XLMRobertaForMaskedLM), ("laid-out", XLMRobertaForMaskedLM), ("bart", AutoModelForSeq2SeqLM)):
        made, its = network.from_pretrained(tmp_path / form).eval(), load_codec(tmp_path / form)
        assert [its.tokenizer.convert_tokens_to_ids(token) for token in ("<s>", "<pad>", "</s>", "<unk>")] == [0, 1, 2, 3]
        for ids, new in zip(codec.encode(lines, "en"), its.encode(lines, "en"), strict=True):
            assert torch.equal(made.get_input_embeddings().weight[new], hidden[ids])  # the same pieces
            states = bert.bert(torch.tensor([ids])).last_hidden_state
            reads = made.get_encoder() if form == "bart" else made.roberta
            # BART's normalisations add 1e-5 to a variance, BERT's 1e-12
            assert torch.allclose(reads(torch.tensor([new])).last_hidden_state, states, atol=1e-3 if form == "bart" else 1e-5)
            if form != "bart":
                scores = made(torch.tensor([new])).logits
                own = its.tokenizer.convert_tokens_to_ids("file"), codec.tokenizer.convert_tokens_to_ids("file")
                assert torch.allclose(scores[..., own[0]], bert(torch.tensor([ids])).logits[..., own[1]], atol=1e-5)
    assert its.pieces(["a <mask> b"], masks=True)[0][1] == its.tokenizer.mask_token_id
    for engine in ("ctranslate2", "huggingface"):
        settings = decoding.Decoding(beam_size=1, max_length=5, min_length=1, engine=engine, device="cpu")
        (tmp_path / "text").write_text("\n".join(lines[:2]) + "\n")
        decoding.main(tmp_path / "bart", tmp_path / "text", tmp_path / engine, languages=("en", "de"), settings=settings)
    assert (tmp_path / "ctranslate2").read_text() == (tmp_path / "huggingface").read_text() != "\n\n"


@torch.no_grad()
def test_a_roberta_becomes_an_xlmr_that_computes_the_same(made, batch, tmp_path):
    tokenizer, (x, seen, *_) = load_tokenizer(made[0]), batch
    torch.manual_seed(7)
    size = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64, "max_position_embeddings": 42}
    settings = RobertaConfig(vocab_size=len(tokenizer), type_vocab_size=1, layer_norm_eps=1e-5, **size)
    roberta = RobertaForMaskedLM(settings).eval()
    for weight in roberta.parameters():
        weight += 0.05 * torch.randn_like(weight)
    save_model(roberta, tokenizer, tmp_path / "roberta")
    wanted = roberta(input_ids=x, attention_mask=seen.long(), output_hidden_states=True)
    stack = load_stack(tmp_path / "roberta", cross=True).eval()
    assert torch.allclose(encode(stack, x, seen)[seen], wanted.hidden_states[-1][seen], atol=1e-5)
    convert(tmp_path / "roberta", tmp_path / "encoder", "encoder")
    encoder = XLMRobertaForMaskedLM.from_pretrained(tmp_path / "encoder").eval()
    assert torch.allclose(encoder(input_ids=x, attention_mask=seen.long()).logits[seen], wanted.logits[seen], atol=1e-5)
    assert encoder.config.model_type == "xlm-roberta"
    assert convert(tmp_path / "roberta", tmp_path / "bart", "encoder-decoder")["decoder_layers"] == 2
    reads = AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "bart").eval().get_encoder()
    states = reads(input_ids=x, attention_mask=seen.long()).last_hidden_state
    assert torch.allclose(states[seen], wanted.hidden_states[-1][seen], atol=1e-5)


@pytest.mark.parametrize("cross", [True, False])
def test_from_scratch_all_weights_are_drawn_from_the_seed(made, cross, tmp_path):
    save_model(XLMRobertaForMaskedLM.from_pretrained(made[0]).half(), load_tokenizer(made[0]), tmp_path / "half")
    given, first, again, other = (
        load_stack(tmp_path / "half", cross=cross, seed=seed, from_scratch=drawn).state_dict()
        for seed, drawn in ((3, False), (3, True), (3, True), (4, True))
    )
    assert given.keys() == first.keys() and all(torch.equal(weight, again[name]) for name, weight in first.items())
    matrices = [name for name, weight in first.items() if weight.dim() == 2]
    assert {first[name].dtype for name in matrices} == {torch.float32}
    assert not any(torch.allclose(first[name], known[name]) for name in matrices for known in (given, other) if CROSS not in name)


@torch.no_grad()
def test_as_an_encoder_it_is_an_xlmr_exactly(made, batch):
    _, veco = made
    x, seen, *_ = batch
    plain = XLMRobertaModel.from_pretrained(veco, add_pooling_layer=False).eval()
    assert not any(CROSS in name for name, _ in plain.named_parameters())
    found = encode(load_stack(veco, cross=True).eval(), x, seen)
    assert torch.equal(found[seen], plain(input_ids=x, attention_mask=seen.long()).last_hidden_state[seen])
    # who opens the folder without a word of masks gets the encoder, and not a causal one
    unpadded = x[:1]
    assert torch.allclose(AutoModel.from_pretrained(veco).eval()(input_ids=unpadded).last_hidden_state, found[:1], atol=1e-6)


@torch.no_grad()
def test_as_a_decoder_a_position_sees_what_stands_before_it_and_all_of_the_memory(made, batch):
    x, x_seen, y, y_seen = batch
    stack = load_stack(made[1], cross=True).eval()
    memory = encode(stack, x, x_seen)
    before = decode(stack, y, y_seen, memory, x_seen)
    later = y.clone()
    later[1, 6] = 50
    changed = (decode(stack, later, y_seen, memory, x_seen) - before)[1].abs().amax(dim=-1)
    assert float(changed[:6].max()) == 0 and float(changed[6:].min()) > 0
    both_ways = [decode(stack, ids, y_seen, memory, x_seen, causal=False) for ids in (y, later)]
    assert float((both_ways[1] - both_ways[0])[1].abs().amax(dim=-1).min()) > 0
    other = memory.clone()
    other[1, 4] += 1
    assert float((decode(stack, y, y_seen, other, x_seen) - before)[1].abs().amax(dim=-1).min()) > 0
    # padding of either sequence is not seen, and longer padding changes nothing
    hidden = memory.clone()
    hidden[1, 5:] = 7.0
    assert torch.equal(decode(stack, y, y_seen, hidden, x_seen), before)
    alone = decode(stack, y[:1, :6], y_seen[:1, :6], memory[:1], x_seen[:1])
    assert torch.allclose(alone, before[:1, :6], atol=1e-5)


def test_transformers_own_forward_is_silently_causal(made, batch):
    """The trap for which the layers are called one by one: if this changes, it need no longer be avoided."""
    from transformers import XLMRobertaForCausalLM

    x, seen, *_ = batch
    whole = XLMRobertaForCausalLM.from_pretrained(made[1], is_decoder=True, add_cross_attention=True).eval()
    with torch.no_grad():
        theirs = whole.roberta(input_ids=x, attention_mask=seen.long()).last_hidden_state
        ours = encode(load_stack(made[1], cross=True).eval(), x, seen)
    assert float((theirs - ours)[seen].abs().max()) > 1e-3


def test_the_two_ways_learn_apart(made, batch):
    x, x_seen, y, y_seen = batch
    stack = load_stack(made[1], cross=True)
    encode(stack, x, x_seen).sum().backward()
    assert [name for name, weight in stack.named_parameters() if CROSS in name and weight.grad is not None] == []
    memory = torch.randn(2, 7, 32, requires_grad=True)
    decode(stack, y, y_seen, memory, x_seen).square().sum().backward()
    assert memory.grad is None
    without = [name for name, weight in stack.named_parameters() if CROSS in name and (weight.grad is None or not weight.grad.any())]
    assert all("key.bias" in name for name in without)


@torch.no_grad()
@pytest.mark.parametrize("which", ["first", "last"])
def test_the_bart_computes_the_same(made, batch, tmp_path, which):
    x, x_seen, y, y_seen = batch
    report = convert(made[1], tmp_path / "bart", "encoder-decoder", decoder_layers=2, decoder_from=which, head="dropped")
    assert (report["from_veco"], report["decoder_layers"]) == (True, 2)
    bart = AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "bart").eval()
    stack = load_stack(made[1], cross=True).eval()
    memory = encode(stack, x, x_seen)
    theirs = bart.get_encoder()(input_ids=x, attention_mask=x_seen.long()).last_hidden_state
    assert torch.allclose(theirs[x_seen], memory[x_seen], atol=1e-5)
    layers = stack.roberta.encoder.layer
    stack.roberta.encoder.layer = layers[:2] if which == "first" else layers[-2:]
    ours = decode(stack, y, y_seen, memory, x_seen)
    inputs = {"attention_mask": y_seen.long(), "encoder_hidden_states": theirs, "encoder_attention_mask": x_seen.long()}
    found = bart.get_decoder()(input_ids=y, **inputs).last_hidden_state
    assert torch.allclose(found[y_seen], ours[y_seen], atol=1e-5)
    embeddings = {id(bart.lm_head.weight), id(bart.get_encoder().embed_tokens.weight), id(bart.get_decoder().embed_tokens.weight)}
    assert len(embeddings) == 1


def test_a_folded_head_scores_masked_pieces_as_the_head_did():
    """The hand-over, measured on text with the encoder that is shipped: nats of each masked piece, before and after."""
    german, english = manual_pairs(150)
    found = measured(Path("resources/backbones/manual"), german + english)
    assert found["folded_nats"] - found["head_nats"] < 0.15 and found["dropped_nats"] - found["head_nats"] > 2, found
    assert 0.9 < found["explained"] < 1 and found["pieces"] > 1000


@torch.no_grad()
def test_the_bart_has_the_folded_head(made, batch, tmp_path):
    x, x_seen, y, y_seen = batch
    stack = load_stack(made[1], cross=True).eval()
    embeddings, bias = output_layer(stack)
    wanted = head_states(stack, decode(stack, y, y_seen, encode(stack, x, x_seen), x_seen))[y_seen] @ embeddings.T + bias
    far = {}
    for head in ("folded", "dropped"):
        report = convert(made[1], tmp_path / head, "encoder-decoder", head=head)
        bart = AutoModelForSeq2SeqLM.from_pretrained(tmp_path / head).eval()
        found = bart(input_ids=x, attention_mask=x_seen.long(), decoder_input_ids=y, decoder_attention_mask=y_seen.long()).logits
        far[head] = float((found[y_seen] - wanted).square().mean().sqrt() / wanted.std())
        # its embeddings are those of the encoder and the decoder, as before
        assert torch.equal(bart.get_decoder().embed_tokens.weight, stack.roberta.embeddings.word_embeddings.weight)
        assert (bart.lm_head.weight is bart.get_decoder().embed_tokens.weight) == (head == "dropped")
        assert report["head"] == head and ("head_explained" in report) == (head == "folded")
    assert far["folded"] < 0.5 * far["dropped"], far


@pytest.mark.parametrize("head", ["folded", "dropped"])
def test_both_engines_decode_the_bart(made, tmp_path, head):
    convert(made[1], tmp_path / "bart", "encoder-decoder", head=head)
    (tmp_path / "in").write_text("Öffnen Sie die Datei.\nDas Fenster\n")
    lines = []
    for engine in ("ctranslate2", "huggingface"):
        chosen = decoding.Decoding(engine=engine, beam_size=2, max_length=12)
        decoding.main(tmp_path / "bart", tmp_path / "in", tmp_path / engine, languages=("de", "en"), threads=1, settings=chosen)
        lines.append((tmp_path / engine).read_text().splitlines())
    assert lines[0] == lines[1] and len(lines[0]) == 2
    codec = load_codec(tmp_path / "bart")
    assert codec.encode(["Das Fenster"], "de") == load_codec(made[0]).encode(["Das Fenster"], "de")
    assert codec.generate_arguments("en") == {"decoder_start_token_id": 2, "forced_bos_token_id": 0}
    # transformers by itself begins in the same way
    network = AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "bart").eval()
    rows = codec.encode(["Das Fenster"], "de")
    written = network.generate(torch.tensor(rows), num_beams=2, early_stopping=True, max_new_tokens=12)
    assert written[0, :2].tolist() == [2, 0] and codec.decode(written.tolist()) == lines[1][1:]


def test_an_xlmr_becomes_the_baselines_and_a_veco_a_plain_xlmr(made, tmp_path):
    plain, veco = made
    convert(veco, tmp_path / "encoder", "encoder")
    left = XLMRobertaModel.from_pretrained(tmp_path / "encoder", add_pooling_layer=False).state_dict()
    whole = load_stack(veco, cross=True).roberta.state_dict()
    assert left.keys() == {name for name in whole if CROSS not in name} and all(torch.equal(left[name], whole[name]) for name in left)
    assert not has_cross_attention(tmp_path / "encoder") and has_cross_attention(veco)
    assert read_json(tmp_path / "encoder/config.json")["hidden_dropout_prob"] == 0.1  # as XLM-R has it, for who finetunes it elsewhere
    made_of = {}
    for decoder in ("copied", "random"):
        report = convert(plain, tmp_path / decoder, "encoder-decoder", decoder=decoder, seed=2)
        assert (report["from_veco"], report["decoder_layers"]) == (False, 3)
        made_of[decoder] = AutoModelForSeq2SeqLM.from_pretrained(tmp_path / decoder).model
    copied, drawn = (made_of[name].decoder.layers[0] for name in ("copied", "random"))
    assert torch.equal(copied.fc1.weight, made_of["copied"].encoder.layers[0].fc1.weight)
    assert not torch.equal(copied.fc1.weight, drawn.fc1.weight)
    assert torch.equal(made_of["random"].encoder.layers[0].fc1.weight, made_of["copied"].encoder.layers[0].fc1.weight)
    report = convert(plain, tmp_path / "shape", "encoder-decoder", decoder="random", encoder_layers=1, decoder_layers=2)
    shape = AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "shape").model
    assert (report["encoder_layers"], len(shape.encoder.layers), len(shape.decoder.layers)) == (1, 1, 2)
    assert torch.equal(shape.encoder.layers[0].fc1.weight, made_of["copied"].encoder.layers[0].fc1.weight)


def test_the_lines_of_the_readme_open_the_folder(made, tmp_path):
    plain, veco = made
    stack = load_stack(veco, cross=True)
    save_model(stack, load_tokenizer(veco), tmp_path / "model")
    add_generator(tmp_path / "model")
    code = (tmp_path / "model/README.md").read_text().split("```")[1].removeprefix("python\n").strip()
    assert len(code.splitlines()) == 3
    found: dict = {}
    exec(code, found)
    assert found["encoder"].config.model_type == "xlm-roberta" and found["generator"].config.model_type == "bart"
    assert torch.equal(found["encoder"].embeddings.word_embeddings.weight, stack.roberta.embeddings.word_embeddings.weight)
    assert len(AutoTokenizer.from_pretrained(tmp_path / "model")) == found["generator"].config.vocab_size


def test_what_does_not_fit_is_refused(made, tmp_path):
    plain, veco = made
    with pytest.raises(InputError, match="decoder_layers: 4 are asked for, but the stack has 3"):
        convert(veco, tmp_path / "out", "encoder-decoder", decoder_layers=4)
    with pytest.raises(InputError, match="encoder_layers: 4 are asked for, and the stack has 3"):
        convert(plain, tmp_path / "out", "encoder-decoder", "random", encoder_layers=4)
    with pytest.raises(InputError, match="is a model of the family mBART; VECO's stack is made of an XLM-R"):
        convert(small_model(tmp_path), tmp_path / "out", "encoder")
    with pytest.raises(InputError, match="decoder_layers: 0; a decoder has at least one layer"):
        convert(veco, tmp_path / "out", "encoder-decoder", "random", decoder_layers=0)
    for name, changes, message in (
        (
            "deep",
            {"num_hidden_layers": 4},
            r"its weights do not fit its config\.json \(it lacks .*layer\.3\..* and \d+ more\); download or copy",
        ),
        ("wide", {"hidden_size": 64}, r"its weights do not fit its config\.json"),
        ("short", {"vocab_size": 200}, r"its weights do not fit its config\.json"),
    ):
        save_model(load_stack(plain, cross=False), load_tokenizer(plain), tmp_path / name)
        config = json.loads((tmp_path / name / "config.json").read_text())
        (tmp_path / name / "config.json").write_text(json.dumps({**config, **changes}))
        with pytest.raises(InputError, match=message):
            convert(tmp_path / name, tmp_path / "out", "encoder")
    # a VECO without some of its cross-attention
    weights = load_file(veco / "model.safetensors")
    shutil.copytree(veco, tmp_path / "partly")
    kept = {name: weight for name, weight in weights.items() if f"layer.1{CROSS}" not in name}
    save_file(kept, tmp_path / "partly/model.safetensors", {"format": "pt"})
    with pytest.raises(InputError, match=r"it lacks .*layer\.1\.crossattention"):
        load_stack(tmp_path / "partly", cross=True)
    path = tmp_path / "moved"
    save_model(load_stack(plain, cross=False), load_tokenizer(plain), path)
    tokenizer = (path / "tokenizer.json").read_text()
    (path / "tokenizer.json").write_text(tokenizer.replace("<pad>", "<fill>"))
    tokenizer_config = json.loads((path / "tokenizer_config.json").read_text())
    (path / "tokenizer_config.json").write_text(json.dumps({**tokenizer_config, "pad_token": "<fill>"}))
    with pytest.raises(InputError, match="VECO and conversion need those of XLM-R"):
        convert(path, tmp_path / "out", "encoder")
