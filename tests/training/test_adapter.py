"""Training few weights: LoRA and DoRA, what a phase hands on, going on after a stop, and the adapter's folder."""

import json
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
import torch
from peft import LoraConfig, get_peft_model
from phases import TINY, assert_same, finetune, phase_files
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from test_checkpoints import stopped_after
from tiny_decoders import small_decoder
from tiny_models import small_model, small_t5
from transformers import AutoModelForCausalLM, AutoModelForSeq2SeqLM, AutoTokenizer

from workflow_scripts import plugins
from workflow_scripts.models.folders import check_folder, licence_of
from workflow_scripts.models.networks import load_network, save_model
from workflow_scripts.models.search import generate
from workflow_scripts.models.templates import Templates, write_templates
from workflow_scripts.models.tokenisation import load_codec
from workflow_scripts.models.trimming import trim
from workflow_scripts.stage import InputError, read_json
from workflow_scripts.text.files import read_lines
from workflow_scripts.training.adapter import adapt, adapter_plugin, main, merge, save_adapter
from workflow_scripts.training.settings import Training

LORA = {"kind": "lora", "rank": 4, "alpha": 8.0, "dropout": 0.1}
BITFIT = Path("examples/plugins/bitfit.py").resolve()


def settings(adapter, **changes):
    return Training(
        **{**TINY, "updates": 6, "evaluate_every": 2, "checkpoint": "last", "learning_rate": 0.05, "adapter": adapter, **changes}
    )


@pytest.fixture(scope="module")
def setup(tmp_path_factory):
    return phase_files(tmp_path_factory.mktemp("adapter"))


@pytest.fixture(scope="module")
def trained(setup, tmp_path_factory):
    """A task phase that was trained by LoRA, and its folder."""
    folder, start = setup
    out = tmp_path_factory.mktemp("trained")
    return finetune(folder, start, out, settings(LORA)), out


def hypotheses(network, folder, lines):
    codec = load_codec(folder)
    return generate(network, codec, codec.encode(lines, "de"), "en", beam_size=2, max_length=20)


def scores_of(network, folder, lines):
    row = torch.tensor(load_codec(folder).encode(lines[:1], "de"))
    with torch.no_grad():
        return network(input_ids=row, decoder_input_ids=row).logits


def plain(folder):
    return AutoModelForSeq2SeqLM.from_pretrained(folder).eval()


def with_peft(base, adapter):
    from peft import PeftModel

    return PeftModel.from_pretrained(plain(base), adapter).eval()


def test_the_model_is_the_merged_one_and_its_loss_is_the_same(setup, trained):
    start, (weights, out) = load_file(setup[1] / "model.safetensors"), trained
    assert weights.keys() == start.keys()
    moved = {name for name in weights if not torch.equal(weights[name], start[name])}
    assert moved and all(name.endswith(("_proj.weight", "fc1.weight", "fc2.weight")) for name in moved)
    said = read_json(out / "training.json")
    about = said["adapter"]
    assert (about["kind"], about["settings"]["rank"], about["settings"]["targets"]) == ("lora", 4, None)
    measured = about["merged"]
    assert measured["rows"] and measured["nats_before"] == pytest.approx(measured["nats_after"], abs=1e-4)
    # four and eight matrices of attention, two of feed-forward in each half
    assert about["trained"] == 4 * (12 * (32 + 32) + 4 * (32 + 64)) < said["parameters"] == plain(setup[1]).num_parameters()


def test_checkpoints_have_the_adapters_weights_alone(trained):
    (file,) = trained[1].glob("checkpoints/*/checkpoint-6/model.safetensors")
    with safe_open(file, "pt") as weights:
        names = [*weights.keys()]
    assert len(names) == 32 and all(".lora_" in name for name in names)


def test_plain_peft_opens_the_adapter_on_the_untouched_model(setup, trained):
    lines = list(read_lines(setup[0] / "dev.de"))[:10]
    out = trained[1]
    opened = with_peft(setup[1], out / "adapter").get_base_model()
    assert hypotheses(opened, setup[1], lines) == hypotheses(plain(out / "model"), out / "model", lines)
    scores = [scores_of(network, setup[1], lines) for network in (opened, plain(out / "model"), plain(setup[1]))]
    assert torch.allclose(scores[0], scores[1], atol=1e-4) and not torch.allclose(scores[0], scores[2], atol=1e-2)
    card = (out / "adapter/README.md").read_text(encoding="utf-8")
    assert "license: unknown" in card and f"# An adapter of {setup[1].parent.name}\n" in card and "rank: 4" in card
    # the hub refuses a card whose base model is a folder
    assert "base_model" not in card and str(setup[1].parent) not in card
    record = read_json(out / "adapter/crossgap.json")
    assert {"model.safetensors", "config.json"} <= record["base"]["trained_on"]["checksums"].keys() and record["training"]["updates"] == 6


def test_the_adapter_of_the_last_phase_has_what_all_phases_have_learnt(setup, trained, tmp_path):
    lines = list(read_lines(setup[0] / "dev.de"))[:1]
    shutil.copytree(trained[1], tmp_path / "first")
    for phase, start, rank in (("second", "first", 2), ("third", "second", 3)):
        (tmp_path / phase).mkdir()
        finetune(setup[0], tmp_path / start / "model", tmp_path / phase, settings(LORA | {"rank": rank}))
    opened = with_peft(setup[1], tmp_path / "third/adapter").get_base_model()
    last, second = (scores_of(plain(tmp_path / phase / "model"), setup[1], lines) for phase in ("third", "second"))
    assert torch.allclose(scores_of(opened, setup[1], lines), last, atol=1e-4) and not torch.allclose(last, second, atol=1e-2)
    config = read_json(tmp_path / "third/adapter/adapter_config.json")
    assert (config["r"], config["base_model_name_or_path"]) == (4 + 2 + 3, str(setup[1]))
    record = read_json(tmp_path / "third/adapter/crossgap.json")
    assert [each["rank"] for each in record["phases"]] == [4, 2, 3]
    assert "sum of what 3 phases" in (tmp_path / "third/adapter/README.md").read_text(encoding="utf-8")


def test_an_adapter_that_is_no_sum_names_the_model_of_its_own_phase(setup, trained, tmp_path):
    shutil.copytree(trained[1], tmp_path / "first")
    (tmp_path / "second").mkdir()
    finetune(setup[0], tmp_path / "first/model", tmp_path / "second", settings(LORA | {"kind": "dora"}))
    config = read_json(tmp_path / "second/adapter/adapter_config.json")
    assert (config["r"], config["base_model_name_or_path"]) == (4, str(tmp_path / "first/model"))


def test_an_adapter_of_a_trimmed_model_fits_the_whole_one(setup, tmp_path):
    folder, start = setup
    codec, network = load_codec(start), load_network(start, "text", dropout=0.0, attention_dropout=0.0, seed=1)
    text = [line for name in ("train", "dev") for code in ("de", "en") for line in read_lines(folder / f"{name}.{code}")][:80]
    kept, _ = trim(network, codec, text, tmp_path / "tokenizer")
    (tmp_path / "backbone").mkdir()
    save_model(network, kept.tokenizer, tmp_path / "backbone/model")
    record = {"kind": "hub", "model": str(start), "revision": None, "checksums": {"model.safetensors": "of the whole"}}
    (tmp_path / "backbone/backbone.json").write_text(json.dumps(record))
    finetune(folder, tmp_path / "backbone/model", tmp_path, settings(LORA | {"kind": "dora"}))
    assert read_json(tmp_path / "adapter/adapter_config.json")["base_model_name_or_path"] == str(start)
    whole = with_peft(start, tmp_path / "adapter").get_base_model()
    small = plain(tmp_path / "model")
    # kept pieces have the same scores, and hypotheses are the same where none but these may be written
    rows = [codec.encode(text[:4], "de"), load_codec(tmp_path / "model").encode(text[:4], "de")]
    names = load_codec(tmp_path / "model").tokenizer.convert_ids_to_tokens(range(small.config.vocab_size))
    places = codec.tokenizer.convert_tokens_to_ids(names)
    with torch.no_grad():
        for one, other in zip(*rows, strict=True):
            large = whole(input_ids=torch.tensor([one]), decoder_input_ids=torch.tensor([one])).logits[..., places]
            least = small(input_ids=torch.tensor([other]), decoder_input_ids=torch.tensor([other])).logits
            assert torch.allclose(large, least, atol=1e-4)
    others = [i for i in range(whole.config.vocab_size) if i not in {*places}]
    assert others
    whole.final_logits_bias[:, others] = -1e9
    assert hypotheses(whole, start, text[:8]) == hypotheses(small, tmp_path / "model", text[:8])


def test_a_stopped_phase_goes_on_from_its_checkpoint(setup, trained, tmp_path, monkeypatch):
    folder, start = setup
    with stopped_after(2, monkeypatch):
        finetune(folder, start, tmp_path, settings(LORA))
    assert list(tmp_path.glob("checkpoints/*/checkpoint-*")) and not (tmp_path / "adapter").exists()
    assert_same(finetune(folder, start, tmp_path, settings(LORA)), trained[0])


def test_all_weights_are_trained_as_before_and_an_old_adapter_goes(setup, trained, tmp_path):
    shutil.copytree(trained[1] / "adapter", tmp_path / "adapter")
    finetune(*setup, tmp_path, settings(None, updates=2))
    assert not (tmp_path / "adapter").exists() and "adapter" not in read_json(tmp_path / "training.json")
    (described,) = tmp_path.glob("checkpoints/*/phase.json")
    assert "adapter" not in read_json(described)


def test_a_plugins_adapter_that_fails_says_file_and_line(setup, tmp_path, door):
    path = tmp_path / "mine.py"
    path.write_text("from crossgap import adapter\n\n\n@adapter('mine')\ndef mine(network):\n    return network.layers\n", encoding="utf-8")
    plugins.load([str(path)])
    network = load_network(setup[1], "text", dropout=0.0, attention_dropout=0.0, seed=1)
    with pytest.raises(InputError, match=r"adapter 'mine': line 6 of .*mine\.py, `return network\.layers`: AttributeError: "):
        adapt(network, {"kind": "mine"}, 1)


@pytest.mark.parametrize(
    "chosen, said",
    [
        (
            {"kind": "lora", "targets": ["query"]},
            "mBART has no matrix 'query' in its layers; it has k_proj, v_proj, q_proj, out_proj, fc1, fc2",
        ),
        ({"kind": "lora", "rank": 64}, r"rank: 64 is more than the 32 that the matrices have \(k_proj 32 × 32,"),
        ({"kind": "lora", "rang": 64}, "unknown setting"),
        ({"kind": "lorra"}, "there is no adapter 'lorra', did you mean 'lora'"),
    ],
)
def test_settings_that_do_not_fit_are_one_line(setup, chosen, said):
    network = load_network(setup[1], "text", dropout=0.0, attention_dropout=0.0, seed=1)
    with pytest.raises(InputError, match=said):
        adapt(network, chosen, 1)


def test_random_weights_are_refused(setup, tmp_path):
    with pytest.raises(InputError, match="lora changes little of a model, and random weights need more"):
        finetune(*setup, tmp_path, settings(LORA), from_scratch=True)


@pytest.mark.parametrize("family", ["mbart50", "nllb", "mt5", "bert", "xlm-roberta"])
def test_each_family_takes_an_adapter(family, tmp_path):
    folder = small_t5(tmp_path, family) if family == "mt5" else small_model(tmp_path, family)
    network = load_network(folder, "text", dropout=0.0, attention_dropout=0.0, seed=1)
    names = set(network.state_dict())
    adapted = adapt(network, {"kind": "lora", "rank": 2}, 1)
    assert 0 < adapted.trained < sum(weight.numel() for weight in network.parameters()) / 4
    assert all(".lora_" in name for name in adapted.names)
    assert set(merge(adapted).state_dict()) == names and all(weight.requires_grad for weight in network.parameters())


def test_what_a_models_kernels_read_past_an_adapter_gets_none(tmp_path):
    folder = small_decoder(tmp_path, "mamba", state_size=4)
    network = load_network(folder, "text", dropout=0.0, attention_dropout=0.0, seed=1).eval()
    with pytest.raises(InputError, match=r"kernels on a GPU would read \w+'s out_proj past an adapter; name others: in_proj"):
        adapt(network, {"kind": "lora", "rank": 2, "targets": ["out_proj"]}, 1)
    adapted = adapt(network, {"kind": "lora", "rank": 2}, 1)
    assert {name.split(".lora_")[0].split(".")[-1] for name in adapted.names} == {"in_proj"}
    with torch.no_grad():
        for name, weight in network.named_parameters():
            weight.copy_(torch.randn_like(weight) if ".lora_B" in name else weight)
        rows = torch.tensor([[3, 4, 5, 6]])
        before = network(rows).logits
        assert torch.allclose(merge(adapted)(rows).logits, before, atol=1e-4)


def test_experts_that_get_no_adapter_are_named(tmp_path, capsys):
    folder = small_decoder(tmp_path, "qwen3_moe", num_experts=2, num_experts_per_tok=1, moe_intermediate_size=16)
    network, other = (load_network(folder, "text", dropout=0.0, attention_dropout=0.0, seed=1) for _ in range(2))
    adapted = adapt(network, {"kind": "lora", "rank": 2}, 1)
    assert not any("expert" in name for name in adapted.names)
    assert "the experts of decoder (gate_up_proj, down_proj) get no adapter, but q_proj, " in capsys.readouterr().out
    with pytest.raises(InputError, match=r"targets: down_proj are decoder's experts, which get no adapter; name others: q_proj, "):
        adapt(other, {"kind": "lora", "rank": 2, "targets": ["q_proj", "down_proj"]}, 1)


def test_a_plugin_trains_weights_of_the_model_itself(setup, tmp_path, door):
    plugins.load([str(BITFIT)])
    start = load_file(setup[1] / "model.safetensors")
    weights = finetune(*setup, tmp_path, settings({"kind": "bitfit"}))
    moved = {name for name in weights if not torch.equal(weights[name], start[name])}
    assert moved and all(name.endswith(".bias") and ".layers." in name for name in moved)
    assert set(load_file(tmp_path / "adapter/weights.safetensors")) >= moved
    (described,) = tmp_path.glob("checkpoints/*/phase.json")
    assert len(read_json(described)["adapter_plugin"]) == 64


WITH_A_FILE = """from dataclasses import dataclass

from crossgap import adapter


@dataclass
class Named:
    layers: str = ""


@adapter("mine", settings=Named)
def mine(network, settings):
    return []
"""


def test_a_file_that_the_settings_of_a_plugins_adapter_name_decides_what_is_trained(tmp_path, door):
    path, layers, found = tmp_path / "mine.py", tmp_path / "layers.txt", []
    path.write_text(WITH_A_FILE, encoding="utf-8")
    plugins.load([str(path)])
    for content in ("0", "1"):
        layers.write_text(content)
        found.append(adapter_plugin({"kind": "mine", "layers": str(layers)}))
    assert found[0] != found[1] and found[0]["adapter_plugin"] == found[1]["adapter_plugin"]
    assert adapter_plugin({"kind": "mine"}).keys() == {"adapter_plugin"} and adapter_plugin(LORA) == {}


def test_a_folder_with_an_adapter_names_the_command_that_merges_it(setup, trained, tmp_path):
    with pytest.raises(InputError) as said:
        check_folder(trained[1] / "adapter")
    command = str(said.value).partition("`")[2].partition("`")[0].replace("NEW", str(tmp_path / "new"))
    subprocess.run(shlex.split(command), check=True)
    merged_there = load_file(tmp_path / "new/model.safetensors")
    assert all(torch.allclose(merged_there[name], weight, atol=1e-6) for name, weight in trained[0].items())
    assert load_codec(tmp_path / "new").encode(["Haus"], "de") == load_codec(setup[1]).encode(["Haus"], "de")
    with pytest.raises(InputError, match="is no adapter in peft's form"):
        main(setup[1], tmp_path / "other")
    with pytest.raises(InputError, match="is there already, and a model would take the place of all that is in it"):
        main(trained[1] / "adapter", trained[1] / "adapter")


def test_an_adapter_of_a_model_in_16_bits_is_merged_in_float32(tmp_path):
    start = small_decoder(tmp_path, "qwen3")
    network = load_network(start, "text", dropout=0.0, attention_dropout=0.0, seed=1)
    network.bfloat16().save_pretrained(start)
    network = load_network(start, "text", dropout=0.0, attention_dropout=0.0, seed=1)
    adapted = adapt(network, LORA, 1)
    with torch.no_grad():
        for name, weight in network.named_parameters():
            if "lora_B" in name:
                weight.normal_(std=1e-4)
    save_adapter(adapted, start, tmp_path / "adapter", {"base": {}, "languages": ["de", "en"]})
    main(tmp_path / "adapter", tmp_path / "merged", base=str(start))
    merged_weights = load_file(tmp_path / "merged/model.safetensors")
    merge(adapted)
    trained_here = network.state_dict()
    changed = [name for name, weight in load_file(start / "model.safetensors").items() if not merged_weights[name].equal(weight.float())]
    assert changed and all(torch.allclose(merged_weights[name], trained_here[name], rtol=0, atol=1e-7) for name in changed)
    assert {weight.dtype for weight in merged_weights.values()} == {torch.float32}


@pytest.mark.parametrize("table", ["embed_tokens", "lm_head"])
def test_an_adapter_of_one_of_two_tied_matrices_leaves_the_other_as_it_was(tmp_path, table):
    start = small_decoder(tmp_path, "qwen3")
    network = AutoModelForCausalLM.from_pretrained(start)
    wrapped = get_peft_model(network, LoraConfig(target_modules=["q_proj", table], init_lora_weights=False, task_type="CAUSAL_LM")).eval()
    wrapped.save_pretrained(tmp_path / "adapter", save_embedding_layers=False)
    rows = torch.tensor([[5, 6, 7, 8]])
    with torch.no_grad():
        expected = wrapped(rows).logits
        main(tmp_path / "adapter", tmp_path / "merged", base=str(start))
        found = AutoModelForCausalLM.from_pretrained(tmp_path / "merged").eval()(rows).logits
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)


def test_an_adapter_with_a_tokenizer_of_its_own_keeps_it_and_other_weights_are_refused(tmp_path):
    start = small_decoder(tmp_path, "qwen3")
    network = load_network(start, "text", dropout=0.0, attention_dropout=0.0, seed=1)
    save_adapter(adapt(network, LORA, 1), start, tmp_path / "adapter", {"base": {}, "languages": ["de", "en"]})
    tokenizer = AutoTokenizer.from_pretrained(start)
    tokenizer.chat_template = "{{ messages }}"
    tokenizer.save_pretrained(tmp_path / "adapter")
    main(tmp_path / "adapter", tmp_path / "merged", base=str(start))
    assert AutoTokenizer.from_pretrained(tmp_path / "merged").chat_template == "{{ messages }}"
    weights = load_file(tmp_path / "adapter/adapter_model.safetensors")
    for part, said in (
        ("other", "does not fit the model .*weights are in one of the two alone"),
        ("language_model", "of a model that also sees"),
    ):
        renamed = {name.replace("model.layers", f"model.{part}.layers"): weight for name, weight in weights.items()}
        save_file(renamed, tmp_path / "adapter/adapter_model.safetensors", {"format": "pt"})
        with pytest.raises(InputError, match=said):
            main(tmp_path / "adapter", tmp_path / part, base=str(start))


def test_an_adapter_that_changes_no_weights_cannot_be_merged(tmp_path):
    (tmp_path / "adapter_config.json").write_text('{"peft_type": "PROMPT_TUNING", "base_model_name_or_path": "x"}')
    with pytest.raises(InputError, match="is of the kind PROMPT_TUNING, which adds to what a model reads and changes no weights"):
        main(tmp_path, tmp_path / "merged")


@pytest.mark.parametrize("in_base", [False, True])
def test_a_merged_adapter_is_asked_as_the_model_that_was_trained(tmp_path, in_base):
    start, asked = small_decoder(tmp_path, "qwen3", chat=True), Templates(task="{source} =>", chat=True)
    network = load_network(start, "text", dropout=0.0, attention_dropout=0.0, seed=1)
    about = {"base": {}, "languages": ["de", "en"]}
    save_adapter(adapt(network, LORA, 1), start, tmp_path / "adapter", about, None if in_base else asked)
    write_templates(asked if in_base else Templates(), start)
    main(tmp_path / "adapter", tmp_path / "merged", base=str(start))
    assert load_codec(tmp_path / "merged").templates == asked
    card = (tmp_path / "adapter/README.md").read_text(encoding="utf-8")
    assert ('The prompt: "{source} =>", as the user\'s turn' in card) != in_base


def test_the_card_has_the_licence_of_the_base_model(tmp_path):
    start = small_decoder(tmp_path, "qwen3")
    network = load_network(start, "text", dropout=0.0, attention_dropout=0.0, seed=1)
    (start / "README.md").write_text("---\nlicense: other\nlicense_name: terms\ntags: [a]\n---\n# A model\n", encoding="utf-8")
    save_adapter(adapt(network, LORA, 1), start, tmp_path / "adapter", {"languages": ["de", "en"]})
    card = (tmp_path / "adapter/README.md").read_text(encoding="utf-8")
    assert 'license: "other"\nlicense_name: "terms"\nlanguage:' in card and "The licence is that of the base model" in card
    for readme, config, licence in (
        ("# No front matter", {"license": "mit"}, {"license": "mit"}),
        ("---\nlicense: [\n---", {}, {}),
        ("---\ntags: [a]\n---", {"license": None}, {}),
    ):
        (start / "README.md").write_text(readme, encoding="utf-8")
        (start / "config.json").write_text(json.dumps(config), encoding="utf-8")
        assert licence_of(start) == licence


def test_the_card_names_a_base_model_of_the_hub(tmp_path):
    start = small_decoder(tmp_path, "qwen3")
    network = load_network(start, "text", dropout=0.0, attention_dropout=0.0, seed=1)
    (start.parent / "backbone.json").write_text(json.dumps({"kind": "hub", "model": "google/gemma-3-270m", "revision": "c0ffee"}))
    save_adapter(adapt(network, LORA, 1), start, tmp_path / "adapter", {"languages": ["de", "en"]})
    card = (tmp_path / "adapter/README.md").read_text(encoding="utf-8")
    assert card.startswith('---\nbase_model: "google/gemma-3-270m"\nlibrary_name: peft\n') and "revision c0ffee" in card


def test_a_point_of_a_grid_that_diverged_is_kept(setup, tmp_path):
    finetune(*setup, tmp_path, settings(LORA, learning_rate=1e6, log_every=1, max_grad_norm=0.0), keep_diverged=True)
    said = read_json(tmp_path / "training.json")
    assert said["diverged"] and said["adapter"]["kind"] == "lora" and not (tmp_path / "adapter").exists()
