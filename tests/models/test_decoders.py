"""Models that are a decoder alone: from their rows to their hypotheses, by both engines, with few weights trained."""

import json
import logging
import re

import pytest
import torch
from peft import PeftModel
from phases import TINY, curve_of, finetune, phase_files
from safetensors.torch import load_file, save_file
from tiny_decoders import KINDS, MULTIMODAL, small_decoder, small_multimodal
from tiny_models import manual_pairs
from transformers import AutoConfig, AutoModel, AutoModelForCausalLM, AutoModelForImageTextToText, AutoTokenizer

from workflow_scripts.evidence.representation import sentence_vectors
from workflow_scripts.evidence.states import hidden_states, open_half, pooled
from workflow_scripts.models import engines
from workflow_scripts.models.batches import collate
from workflow_scripts.models.decoding import Decoding, translator
from workflow_scripts.models.networks import TEXT_PART, layers_of, load_network, makes_scores_of_states, matrices_in, save_model
from workflow_scripts.models.recognition import family_of
from workflow_scripts.models.search import generate
from workflow_scripts.models.templates import Templates, read_templates
from workflow_scripts.models.tokenisation import load_codec
from workflow_scripts.stage import InputError, read_json
from workflow_scripts.tasks.classification import Classification
from workflow_scripts.tasks.head_model import Reader, label_scores, load_text_head
from workflow_scripts.text.examples import Example
from workflow_scripts.training import backbone
from workflow_scripts.training.backbone import Backbone
from workflow_scripts.training.few_shot import cut, is_too_long
from workflow_scripts.training.ragged import same_choice
from workflow_scripts.training.rows import Dev, aligned_dev
from workflow_scripts.training.settings import Training
from workflow_scripts.training.too_long import Room
from workflow_scripts.training.validation import dev_loss

SETTINGS = Training(**{**TINY, "updates": 2, "evaluate_every": 2, "checkpoint": "last", "label_smoothing": 0.0})
LORA = {"kind": "lora", "rank": 4}


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    return phase_files(tmp_path_factory.mktemp("text"))[0]


def written(model, lines, **settings):
    codec = load_codec(model)
    with translator(model, codec, 1, Decoding(**{"beam_size": 2, "max_length": 12, **settings})) as translate:
        return [ranked[0].text for ranked in translate(lines, ("de", "en"), 1)]


@pytest.mark.parametrize("kind", KINDS)
def test_a_decoder_works_from_its_rows_to_its_hypotheses(kind, text, tmp_path, capsys):
    start = small_decoder(tmp_path, kind)
    assert family_of(start).causal
    finetune(text, start, tmp_path, Training(**{**vars(SETTINGS), "adapter": None if kind == "llama" else LORA}))
    model = tmp_path / "model"
    if kind != "llama":
        merged = read_json(tmp_path / "training.json")["adapter"]["merged"]
        assert merged["nats_before"] == pytest.approx(merged["nats_after"], abs=1e-3)
    plain, tokenizer = AutoModelForCausalLM.from_pretrained(model), AutoTokenizer.from_pretrained(model)
    assert plain.get_input_embeddings().weight.shape[0] == len(tokenizer)  # the rows of no piece are gone
    lines = manual_pairs(12)[0]
    found = written(model, lines, engine="huggingface")
    assert len(found) == 12 and not any("\n" in line for line in found)
    assert written(model, lines) == found
    said = re.search(
        r"does not convert it quite right \(in float32 its probabilities differ by .*\); generate decodes", capsys.readouterr().out
    )
    assert bool(said) == (kind == "gemma2")  # CTranslate2 does not know its soft caps
    # a loss in chunks of states is the loss of the scores
    codec = load_codec(model)
    dev = aligned_dev(text / "dev.de", text / "dev.en", ("de", "en"), codec, Room(64, True))
    network = load_network(model, "text", dropout=0.0, attention_dropout=0.0, seed=1).eval()
    batch = collate(list(dev.rows[:3]), codec.pad, decoder=False)
    labels = batch.pop("labels")
    with torch.no_grad():
        scores = network(**batch).logits
    mean = torch.nn.functional.cross_entropy(scores.flatten(0, 1), labels.flatten(), ignore_index=-100)
    assert dev_loss(network, codec, [Dev(dev.rows[:3], "en")]) == pytest.approx(float(mean), abs=1e-4)
    assert makes_scores_of_states(network) == (kind != "gemma2")
    # what is looked into
    half, rows = open_half("model", model), codec.encode(lines[:3], "de")
    assert (half.depth, half.width) == (2, 32) and hidden_states(half, rows).shape == (3, 3, max(map(len, rows)), 32)
    assert sentence_vectors(network, codec.pad, rows).shape == (3, 3, 32)
    if kind not in ("bloom", "gpt2"):  # whose queries, keys and values are one matrix
        matrices, heads = (
            matrices_in(network, layers_of(network, family_of(model))[0], family_of(model)),
            network.config.num_attention_heads,
        )
        width = matrices["Q"].shape[0] * network.config.num_key_value_heads / heads  # of the keys of all groups of heads
        assert matrices["K"].shape == matrices["V"].shape == (width, 32) and matrices["FC2"].shape[0] == 32
    alone = pooled(half, rows[:1], ["text", "last"], 64)
    assert torch.allclose(pooled(half, rows, ["text", "last"], 4096)[:, :, :1], alone, atol=1e-4)


@pytest.mark.parametrize("kind", MULTIMODAL)
def test_the_text_part_of_a_model_that_sees_is_taken_trained_and_opened_by_plain_transformers(kind, text, tmp_path, capsys):
    whole = small_multimodal(tmp_path, kind)
    assert family_of(whole).causal and family_of(whole).model_type == MULTIMODAL[kind][0]
    line, codec = (text / "train.de").read_text(encoding="utf-8").splitlines()[0], load_codec(whole)
    ids = torch.tensor(codec.encode([line], "de"))
    by_whole = AutoModelForImageTextToText.from_pretrained(whole).eval()
    by_part = load_network(whole, "text", dropout=0.0, attention_dropout=0.0, seed=1).eval()
    with torch.no_grad():
        pieces = by_part.config.vocab_size
        assert torch.allclose(by_whole(input_ids=ids).logits[..., :pieces], by_part(input_ids=ids).logits, atol=1e-4)
    assert "its text part, is read; what sees or hears is left out" in capsys.readouterr().out
    outputs = tmp_path / "start", tmp_path / "backbone.json", tmp_path / "backbone.tsv"
    lines = tuple(text / f"train.{code}" for code in ("de", "en"))
    backbone.main(*outputs, languages=("de", "en"), task_text=lines, settings=Backbone(model=str(whole), trim=True))
    trimmed, small = load_codec(outputs[0]), AutoModelForCausalLM.from_pretrained(outputs[0]).eval()
    assert len(trimmed.tokenizer) < len(codec.tokenizer)
    kept = codec.tokenizer.convert_tokens_to_ids(trimmed.tokenizer.convert_ids_to_tokens(range(len(trimmed.tokenizer))))
    with torch.no_grad():
        few = small(input_ids=torch.tensor(trimmed.encode([line], "de"))).logits
        assert torch.allclose(few, by_part(input_ids=ids).logits[..., kept], atol=1e-4)
    finetune(text, outputs[0], tmp_path, Training(**{**vars(SETTINGS), "adapter": {"kind": "lora", "rank": 2}}))
    said = read_json(tmp_path / "model/config.json")
    assert said["model_type"] == MULTIMODAL[kind][0] and said["architectures"] == [type(small).__name__]
    plain = AutoModelForCausalLM.from_pretrained(tmp_path / "model").state_dict()
    ours = load_network(tmp_path / "model", "text", dropout=0.0, attention_dropout=0.0, seed=1).state_dict()
    assert all(torch.equal(weight, plain[name]) for name, weight in ours.items())
    part = AutoModelForCausalLM.from_pretrained(whole, config=AutoConfig.from_pretrained(whole).text_config, key_mapping=TEXT_PART)
    with_adapter = PeftModel.from_pretrained(part, str(tmp_path / "adapter")).eval()
    merged = AutoModelForCausalLM.from_pretrained(tmp_path / "model").eval()
    with torch.no_grad():
        few = merged(input_ids=torch.tensor(trimmed.encode([line], "de"))).logits
        assert torch.allclose(few, with_adapter(input_ids=ids).logits[..., kept], atol=1e-3)
    sources = manual_pairs(6)[0]
    found = written(tmp_path / "model", sources)
    assert len(found) == 6 and written(tmp_path / "model", sources, engine="huggingface") == found


def test_an_output_layer_that_the_whole_says_to_be_its_embeddings_stays_apart(tmp_path):
    """As Mistral Small 3 has it."""
    whole = small_multimodal(tmp_path, "mistral3")
    settings = {**read_json(whole / "config.json"), "tie_word_embeddings": True}
    (whole / "config.json").write_text(json.dumps(settings), encoding="utf-8")
    weights = load_file(whole / "model.safetensors")
    apart = weights["language_model.lm_head.weight"] = torch.randn_like(weights["language_model.model.embed_tokens.weight"])
    save_file(weights, whole / "model.safetensors", metadata={"format": "pt"})
    network = load_network(whole, "text", dropout=0.0, attention_dropout=0.0, seed=1)
    save_model(network, load_codec(whole).tokenizer, tmp_path / "model")
    opened = AutoModelForCausalLM.from_pretrained(tmp_path / "model")
    assert torch.equal(opened.lm_head.weight, apart[: network.config.vocab_size]) and not opened.config.tie_word_embeddings


def changed(folder, change):
    """The weights of a model in a folder, which a function has changed."""
    path = folder / "model.safetensors"
    save_file(change(load_file(path)), path, metadata={"format": "pt"})
    return folder


def test_weights_of_a_text_part_that_are_not_read_are_named_and_the_others_are_counted(tmp_path, capsys, caplog):
    more = {"language_model.model.layers.0.unknown": torch.ones(2)}
    whole = changed(small_multimodal(tmp_path, "mistral3"), lambda weights: {**weights, **more})
    others = sum(not name.startswith("language_model.") for name in load_file(whole / "model.safetensors"))
    logger = logging.getLogger("transformers")
    logger.addHandler(caplog.handler)
    try:
        network = load_network(whole, "text", dropout=0.0, attention_dropout=0.0, seed=1)
    finally:
        logger.removeHandler(caplog.handler)
    assert others and network.unread == ["model.layers.0.unknown"]
    said = capsys.readouterr().out
    assert f"what sees or hears is left out ({others} weights)" in said
    assert "MistralForCausalLM does not read model.layers.0.unknown of its weights" in said
    assert "UNEXPECTED" not in caplog.text


def test_a_text_part_whose_weights_have_other_names_is_refused_as_such(tmp_path):
    whole = small_multimodal(tmp_path, "mistral3")
    changed(whole, lambda weights: {name.replace("language_model.", "words."): weight for name, weight in weights.items()})
    names = r"the weights of its text part have names that are not known \(it lacks .*\); take a model of text alone"
    with pytest.raises(InputError, match=names):
        load_network(whole, "text", dropout=0.0, attention_dropout=0.0, seed=1)


def test_a_text_part_that_lacks_one_weight_is_to_be_copied_again(tmp_path):
    lost = "language_model.model.norm.weight"
    whole = changed(
        small_multimodal(tmp_path, "mistral3"), lambda weights: {name: weight for name, weight in weights.items() if name != lost}
    )
    with pytest.raises(InputError, match=r"it lacks model\.norm\.weight, .*; download or copy the model again"):
        load_network(whole, "text", dropout=0.0, attention_dropout=0.0, seed=1)


def test_a_body_without_an_output_layer_only_reads(text, tmp_path):
    """As many models for embeddings: with an output layer that is the embeddings, it writes as well."""
    for kind, settings, reason in (
        ("qwen3", {}, ""),
        ("llama", {}, r"its folder has no output layer \(LlamaModel\)"),
        ("gemma3_text", {"use_bidirectional_attention": True}, "its attention also sees later pieces"),
    ):
        (tmp_path / kind).mkdir()
        body = small_decoder(tmp_path / kind, kind, **settings)
        AutoModel.from_pretrained(body).save_pretrained(body)
        assert family_of(body).causal
        outputs = tmp_path / kind / "start", tmp_path / kind / "backbone.json", tmp_path / kind / "backbone.tsv"
        if reason:
            with pytest.raises(InputError, match=f"cannot write text: {reason}.*; take a model that can"):
                backbone.main(*outputs, languages=("de", "en"), settings=Backbone(model=str(body)))
            with pytest.raises(InputError, match=f"cannot write text: {reason}.*; take a model that can"):
                load_network(body, "text", dropout=0.0, attention_dropout=0.0, seed=1)
        backbone.main(*outputs, languages=("de", "en"), encoder_will_do=bool(reason), settings=Backbone(model=str(body)))
        plain, lines = AutoModel.from_pretrained(body), load_codec(body).encode(manual_pairs(2)[0], "de")
        half = open_half("start", outputs[0])
        with torch.no_grad():
            assert torch.allclose(hidden_states(half, lines[:1])[-1], plain(torch.tensor(lines[:1])).last_hidden_state, atol=1e-4)
        network = load_text_head(outputs[0], ["a", "b"], Classification(), seed=1)
        assert torch.equal(network.model.layers[0].mlp.up_proj.weight, plain.layers[0].mlp.up_proj.weight)
        if not reason:
            assert len(written(outputs[0], manual_pairs(3)[0])) == 3


def ranked(model, lines, **settings):
    """What each engine writes of lines, two hypotheses each, and how many of them CTranslate2 left to `generate`."""
    codec, found, by_generate = load_codec(model), [], None
    for engine in ("huggingface", "ctranslate2"):
        with translator(model, codec, 1, Decoding(beam_size=2, compute_type="float32", engine=engine, **settings)) as translate:
            found.append(translate(lines, ("de", "en"), 2))
            by_generate = translate.about.get("by_generate")
    return *found, by_generate


def same(some, others):
    return all(
        one.text == other.text and one.score == pytest.approx(other.score, abs=1e-4)
        for pair in zip(some, others, strict=True)
        for one, other in zip(*pair, strict=True)
    )


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("gemma3_text", {}),
        ("mistral", {"sliding_window": 64}),
        ("qwen2", {"use_sliding_window": True, "sliding_window": 84, "max_window_layers": 0}),  # no window in CTranslate2
        ("qwen2", {"use_sliding_window": False, "sliding_window": 64}),
    ],
)
def test_prompts_longer_than_the_window_of_the_attention_are_left_to_generate(kind, settings, tmp_path, capsys):
    model, lines = small_decoder(tmp_path, kind, **settings), manual_pairs(24)[0]
    codec = load_codec(model)
    lines = [" ".join(lines[at : at + 1 + at % 3]) for at in range(0, 24, 2)]
    lengths = [len(row) for row in codec.asked(codec.pieces(codec.behind_blank(lines), 999), ("de", "en"))]
    long = sum(length > 64 for length in lengths) if settings.get("use_sliding_window") is not False else 0
    assert min(lengths) <= 64 < max(lengths)
    by_one, by_other, by_generate = ranked(model, lines, max_length=20)  # past the window
    assert same(by_one, by_other) and by_generate == long
    said = f"{long} of 12 prompts have more than the 64 pieces for which CTranslate2 is right; generate decodes them"
    assert capsys.readouterr().out.count(said) == bool(long)
    if long:  # all are
        only = [line for line, length in zip(lines, lengths, strict=True) if length > 84]
        assert ranked(model, only, max_length=2)[2] == len(only)


def test_a_copy_that_is_right_for_short_prompts_alone_is_not_used_for_long_ones(tmp_path, capsys):
    """As that of a Llama 3.2, which scales its frequencies."""
    scaled = {"low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}
    rope = {"rope_type": "llama3", "rope_theta": 500_000.0, "factor": 32.0, **scaled}
    shape = {"head_dim": 64, "hidden_size": 256, "max_position_embeddings": 131_072, "initializer_range": 0.06}
    model, lines = small_decoder(tmp_path, "llama", rope_parameters=rope, **shape), manual_pairs(8)[0]
    codec = load_codec(model)
    with translator(model, codec, 1, Decoding(beam_size=1, max_length=2)) as translate:
        assert len(translate(["Ja"], ("de", "en"), 1)) == 1 and not translate.about["by_generate"]
        ((long,),) = translate([" ".join(lines)], ("de", "en"), 1)
        assert translate.about["by_generate"] == 1
    assert re.search(r"quite right \(in float32 .* in a prompt of 218 pieces\); generate decodes", capsys.readouterr().out)
    assert [long.text] == written(model, [" ".join(lines)], beam_size=1, max_length=2, engine="huggingface")


def test_a_copy_that_differs_in_the_first_number_format_is_made_in_the_next(tmp_path, monkeypatch, capsys):
    """As of a Gemma 3 on a GPU, which runs over in float16."""
    model, lines = small_decoder(tmp_path, "llama"), manual_pairs(3)[0]
    said = iter(["its probabilities differ by nan nats", ""])
    monkeypatch.setattr(engines, "number_formats", lambda *_: ["int8", "float32"])
    monkeypatch.setattr(engines, "disagreement", lambda *_: next(said))
    found = written(model, lines)
    assert next(said, None) is None and "generate decodes" not in capsys.readouterr().out
    assert found == written(model, lines, engine="huggingface")


def test_a_decoder_that_runs_over_in_float16_is_refused_by_both_engines(tmp_path, monkeypatch):
    model, lines = small_decoder(tmp_path, "gemma3_text"), manual_pairs(3)[0]
    weights = load_file(model / "model.safetensors")
    for name in weights:
        if "post_feedforward_layernorm" in name:
            weights[name] += 1e5
    save_file(weights, model / "model.safetensors", {"format": "pt"})
    assert written(model, lines, engine="huggingface") and written(model, lines)
    with pytest.raises(InputError, match=r"runs over in float16; set decoding\.compute_type: auto"):
        written(model, lines, engine="huggingface", compute_type="float16")


@pytest.mark.parametrize("kind", ["phi3", "gpt_neox"])
def test_generate_decodes_what_cannot_be_converted(kind, tmp_path, capsys):
    model = small_decoder(tmp_path, kind)
    by_one, by_other, by_generate = ranked(model, manual_pairs(3)[0], max_length=8)
    assert same(by_one, by_other) and by_generate == 3
    assert "CTranslate2 cannot convert it (" in capsys.readouterr().out


@pytest.mark.parametrize("chat", [False, True])
def test_engines_end_an_answer_at_the_same_pieces(chat, text, tmp_path):
    start = small_decoder(tmp_path, "qwen3", chat=True)
    finetune(text, start, tmp_path, SETTINGS, templates=json.dumps({"chat": chat}))
    model = tmp_path / "model"
    codec, lines = load_codec(model), manual_pairs(12)[0]
    network = load_network(model, "text", dropout=0.0, attention_dropout=0.0, seed=1).eval()
    # the model's own settings name one more end: a piece that it writes in the middle of an answer
    prompt = torch.tensor(codec.asked(codec.pieces(codec.behind_blank(lines[:1]), 99), ("de", "en")))
    middle = int(network.generate(prompt, max_new_tokens=12, do_sample=False)[0, prompt.shape[1] + 3])
    long = written(model, lines, beam_size=1)
    settings = model / "generation_config.json"
    settings.write_text(json.dumps({**read_json(settings), "eos_token_id": [codec.tokenizer.eos_token_id, middle]}), encoding="utf-8")
    found = [written(model, lines, beam_size=1, engine=engine) for engine in ("huggingface", "ctranslate2")]
    assert found[0] == found[1]
    assert len(found[0][0]) < len(long[0]) and long[0].startswith(found[0][0])
    # what it is trained to end with is among them: in a chat the end of its turn
    end = codec.tokenizer.convert_tokens_to_ids("<|end|>") if chat else codec.tokenizer.eos_token_id
    network = load_network(model, "text", dropout=0.0, attention_dropout=0.0, seed=1)
    assert {end, middle} <= {*codec.ends(network)}


def test_padding_before_a_prompt_changes_nothing(tmp_path):
    model = small_decoder(tmp_path, "llama")  # which has no piece for padding
    codec, network = load_codec(model), load_network(model, "text", dropout=0, attention_dropout=0, seed=1)
    rows = codec.asked(codec.pieces(codec.behind_blank(manual_pairs(6)[0]), 99), ("de", "en"))
    together = generate(network, codec, rows, "en", 1, max_length=8)
    assert together == [generate(network, codec, [row], "en", 1, max_length=8)[0] for row in rows]


@pytest.mark.parametrize("kind", ["llama", "qwen2"])
def test_a_head_for_texts_finds_their_ends_without_a_setting_for_padding(kind, tmp_path):
    """As those of Llama 3 and Qwen 2.5, one of which has no piece for padding, either."""
    model = small_decoder(tmp_path, kind)
    settings = {**read_json(model / "config.json"), "pad_token_id": None}
    (model / "config.json").write_text(json.dumps(settings), encoding="utf-8")
    reader, network = Reader(model, 64, "de"), load_text_head(model, ["a", "b"], Classification(), seed=1)
    rows = reader.rows([Example("ab"[at % 2], line, "") for at, line in enumerate(manual_pairs(6)[0])], "de", ["a", "b"])
    alone = torch.cat([label_scores(network, reader, [row], "float32") for row in rows])
    assert len({len(ids) for ids, _ in rows}) > 1
    assert torch.allclose(label_scores(network, reader, rows, "float32"), alone, atol=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_two_texts_are_kept_apart(kind, tmp_path):
    """The tokenizers of Qwen and BLOOM would make one text of them."""
    reader = Reader(small_decoder(tmp_path, kind), 16, "de")
    texts = [("Save", "the file"), ("Save the", "file"), ("Save the file " * 9, "and print"), ("Save", "the file " * 9)]
    rows = [ids.tolist() for ids, _ in reader.rows([Example("a", *pair) for pair in texts], "de", ["a"])]
    assert rows[0] != rows[1] and all(16 - 2 <= len(row) <= 16 for row in rows[2:])
    assert all("\n" in reader.tokenizer.decode(row) for row in rows)


def test_a_phase_hands_its_templates_on(text, tmp_path):
    start, given = small_decoder(tmp_path), '{"task": "{source} =>", "restore": "Mend: {source}\\nMended:"}'
    finetune(text, start, tmp_path, SETTINGS, noised=text / "noised", templates=given)
    templates = Templates(task="{source} =>", restore="Mend: {source}\nMended:")
    assert read_templates(tmp_path / "model") == templates == load_codec(tmp_path / "model").templates
    assert 0 < read_json(tmp_path / "training.json")["rows"] < 100  # but for those that are too long


def test_a_decoder_is_asked_as_it_is_with_examples_of_the_training_text(text, tmp_path):
    start, pairs = small_decoder(tmp_path), [(text / f"train.{code}").read_text().splitlines() for code in ("de", "en")]
    before = {name: weight.clone() for name, weight in AutoModelForCausalLM.from_pretrained(start).named_parameters()}
    shown = {}
    for seed in (1, 1, 2):
        finetune(text, start, tmp_path, Training(bleu_sentences=4), shots=2, seed=seed)
        templates = load_codec(tmp_path / "model").templates
        examples = templates.examples
        assert templates.examples_in == ["de", "en"]
        assert shown.setdefault(seed, examples) == examples and all(pair in zip(*pairs, strict=True) for pair in examples)
    assert shown[1] != shown[2] and len(shown[1]) == 2
    report = read_json(tmp_path / "training.json")
    assert report["shots"] == 2 and [pairs[0][number - 1] for number in report["lines"]] == [source for source, _ in shown[2]]
    assert [row["update"] for row in curve_of(tmp_path)] == ["0"]
    after = dict(AutoModelForCausalLM.from_pretrained(tmp_path / "model").named_parameters())
    assert all(torch.equal(weight, before[name][: len(weight)]) for name, weight in after.items())
    assert len(written(tmp_path / "model", manual_pairs(3)[0])) == 3


def test_examples_are_among_the_pairs_that_others_learn_from(text, tmp_path):
    start = small_decoder(tmp_path)
    finetune(text, start, tmp_path, Training(bleu_sentences=0, pairs=3), shots=3)
    number = len((text / "train.de").read_text().splitlines())
    assert sorted(read_json(tmp_path / "training.json")["lines"]) == [place + 1 for place in same_choice(number, 3)]
    # those that are too long to be learnt from are not shown either
    short = Training(bleu_sentences=0, max_length=60)
    finetune(text, start, tmp_path, short, shots=5)
    codec = load_codec(start)
    examples = load_codec(tmp_path / "model").templates.examples
    room = Room.of(short)
    pairs = zip(*((text / f"train.{code}").read_text().splitlines() for code in ("de", "en")), strict=True)
    assert len(examples) == 5 and not any(is_too_long(codec, pair, room) for pair in examples)
    assert 5 <= sum(not is_too_long(codec, pair, room) for pair in pairs) < number
    assert cut(codec, "one two three four " * 40, room) != "one two three four " * 40 and cut(codec, "one", room) == "one"


def test_more_examples_than_the_model_can_read_are_refused(text, tmp_path):
    start = small_decoder(tmp_path, "gpt2", max_position_embeddings=200)
    with pytest.raises(InputError, match=r"shots: with 9 examples a row has \d+ pieces, and the model reads 200 at most; show fewer"):
        finetune(text, start, tmp_path, Training(bleu_sentences=0), shots=9)


def test_no_examples_for_a_model_that_reads_none(text, tmp_path):
    with pytest.raises(InputError, match=r"shots: .* is a model of the family mBART, which reads no examples; set shots: 0"):
        finetune(text, text / "model", tmp_path, SETTINGS, shots=2)


def test_an_answer_that_leaves_no_room_for_a_source_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"decoding\.max_length: an answer of 500 pieces leaves no room"):
        written(small_decoder(tmp_path), ["a"], max_length=500, engine="huggingface")
