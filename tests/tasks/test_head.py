"""Settings of heads: an adapter beside a head that is trained whole, layers that compute again, and settings of one arm."""

import json
import re
from functools import partial

import pytest
import torch
import transformers
from peft import PeftModel
from safetensors.torch import load_file
from test_checkpoints import stopped_after
from tiny_decoders import small_multimodal
from tiny_encoders import tiny_encoder
from tiny_models import MANUAL

from workflow_scripts.models.structure import head_parts
from workflow_scripts.models.tokenisation import load_codec
from workflow_scripts.stage import InputError, read_json
from workflow_scripts.tasks import head
from workflow_scripts.tasks.classification import CLASSIFICATION, Classification
from workflow_scripts.tasks.finetuning import describe
from workflow_scripts.tasks.head_model import Prefixes, Reader, label_scores, load_text_head, load_token_head
from workflow_scripts.tasks.labelling import Labelling, WordReader
from workflow_scripts.tasks.passages import PassageReader
from workflow_scripts.text.examples import Example
from workflow_scripts.text.files import read_lines
from workflow_scripts.training import backbone
from workflow_scripts.training.adapter import adapt, main, merge, save_adapter
from workflow_scripts.training.backbone import Backbone
from workflow_scripts.training.job import TrainingJob

LABELS = ["Writer", "Calc"]
LORA = {"kind": "lora", "rank": 2, "dropout": 0.1}


def load(folder, kind, parts="both"):
    """A model with a new head."""
    if kind == "classification":
        return load_text_head(folder, ["a", "b", "c"], Classification(parts=parts), 1)
    return load_token_head(folder, kind, [] if kind == "answering" else ["a", "b", "c"], Labelling(parts=parts), 1)


@pytest.mark.parametrize("kind", ["lora", "dora", "bottleneck"])
@pytest.mark.parametrize(
    "family, parts",
    [(family, "both") for family in ("bert", "xlm-roberta", "mbart", "nllb", "mt5", "qwen3", "gemma3_text")] + [("mbart50", "encoder")],
)
def test_each_head_is_trained_whole_beside_an_adapter(models, family, parts, kind):
    for each in ("classification", "labelling", "answering"):
        if family in ("qwen3", "gemma3_text") and kind == "bottleneck":
            continue  # which decoders do not have
        network = load(models[family], each, parts)
        names = {*network.state_dict()}
        of_head = {name for name in names if any(name.startswith(f"{part}.") for part in head_parts(network))}
        adapted = adapt(network, {"kind": kind} | ({} if kind == "bottleneck" else {"rank": 2}), 1, each)
        trained = {name.replace("modules_to_save.default.", "") for name in adapted.names}
        assert of_head and of_head <= trained and trained - of_head
        assert all(".lora_" in name or ".beside." in name for name in trained - of_head)
        assert {*merge(adapted).state_dict()} == names and all(weight.requires_grad for weight in network.parameters())


def finetune(start, table, out, **changes):
    out.mkdir(exist_ok=True)
    chosen = Classification(**{"batch_size": 16, "learning_rate": 1e-2, "max_length": 40, "patience": 0, "device": "cpu", **changes})
    settings = CLASSIFICATION.finetune_settings(language="en", labels=LABELS, epochs=3, classification=chosen)
    job = TrainingJob(start, *(out / name for name in ("model", "curve.tsv", "training.json", "checkpoints")), threads=1)
    head.finetune(CLASSIFICATION, job, train=(table,), dev=(table,), settings=settings)
    return load_file(out / "model/model.safetensors")


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Some paragraphs of the manual, of two applications."""
    rows = [line.split("\t") for line in read_lines(MANUAL)]
    chosen = {"Writer": "swriter/", "Calc": "scalc/"}
    lines = [[f"{label}\t{row[2]}\t\n" for row in rows if row[0].startswith(start)][:24] for label, start in chosen.items()]
    path = tmp_path_factory.mktemp("tables") / "table.tsv"
    path.write_text("".join(line for pair in zip(*lines, strict=True) for line in pair), "utf-8")
    return path


@pytest.fixture(scope="module")
def trained(models, table, tmp_path_factory):
    """A model that learnt labels by LoRA, and its folder."""
    out = tmp_path_factory.mktemp("trained")
    return finetune(models["bert"], table, out, adapter=LORA), out


def test_the_model_is_the_merged_one_and_the_adapter_has_the_head(models, table, trained, tmp_path):
    weights, out = trained
    start, said = load_file(models["bert"] / "model.safetensors"), read_json(out / "training.json")
    moved = {name for name in weights if name in start and not torch.equal(weights[name], start[name])}
    assert moved and all(name.endswith(".weight") and ".layer." in name for name in moved)
    assert {name for name in weights if name not in start} == {
        f"{part}.{kind}" for part in ("classifier", "bert.pooler.dense") for kind in ("weight", "bias")
    }
    merged_there = said["adapter"]["merged"]
    assert merged_there["rows"] == 48 and merged_there["loss_before"] == pytest.approx(merged_there["loss_after"], abs=1e-4)
    assert said["handed_on"]["dev_accuracy"] > 0.5 and said["adapter"]["trained"] < said["parameters"] / 2

    reader, examples = (
        Reader(models["bert"], 40),
        [Example("Writer", "Open the text document.", ""), Example("Calc", "The sum of all cells.", "")],
    )
    rows = reader.rows(examples, "en", LABELS)
    whole = label_scores(load_text_head(out / "model", None, Classification(), 1), reader, rows, "float32")
    opened = PeftModel.from_pretrained(load_text_head(models["bert"], LABELS, Classification(), 7), str(out / "adapter"))
    assert torch.allclose(label_scores(opened.get_base_model(), reader, rows, "float32"), whole, atol=1e-5)
    assert read_json(out / "adapter/adapter_config.json")["task_type"] == "SEQ_CLS"
    assert "BertForSequenceClassification of" in (out / "adapter/README.md").read_text("utf-8")
    main(out / "adapter", tmp_path / "merged")
    again = load_text_head(tmp_path / "merged", None, Classification(), 1)
    assert again.config.id2label == dict(enumerate(LABELS))
    assert torch.allclose(label_scores(again, reader, rows, "float32"), whole, atol=1e-5)


def test_a_head_of_a_trimmed_text_part_fits_the_whole_model_as_the_adapters_card_says(table, tmp_path):
    whole = small_multimodal(tmp_path, "gemma3")
    said = read_json(whole / "config.json")
    said["text_config"]["pad_token_id"] = None  # as many a decoder has it; the head needs one
    (whole / "config.json").write_text(json.dumps(said), "utf-8")
    lines = [line.split("\t")[1] for line in read_lines(table)]
    (tmp_path / "text.en").write_text("".join(f"{line}\n" for line in lines), "utf-8")
    outputs = (tmp_path / name for name in ("start", "backbone.json", "curve.tsv"))
    backbone.main(*outputs, languages=("en",), task_text=(tmp_path / "text.en",), settings=Backbone(model=str(whole), trim=True))
    finetune(tmp_path / "start", table, tmp_path / "out", adapter=LORA)

    def scores(network, folder):
        reader = Reader(folder, 40)
        return label_scores(network, reader, reader.rows([Example("Writer", line, "") for line in lines[:5]], "en", LABELS), "float32")

    expected = scores(load_text_head(tmp_path / "out/model", None, Classification(), 1), tmp_path / "out/model")
    card = (tmp_path / "out/adapter/README.md").read_text("utf-8")
    (opens,) = re.findall(r"`(Gemma3TextForSequenceClassification\.from_pretrained\(.*?\))`\.", card)
    opens = re.sub(r'\("[^"]*"', lambda _: f"({json.dumps(str(whole))}", opens)  # a folder is only named
    network = eval(opens, {name: getattr(transformers, name) for name in ("AutoConfig", "Gemma3TextForSequenceClassification")})
    assert "Its `pad_token_id` is that of the tokenizer's padding" in card
    network.config.pad_token_id = load_codec(whole).tokenizer.pad_token_id
    opened = PeftModel.from_pretrained(network, str(tmp_path / "out/adapter")).get_base_model()
    assert torch.allclose(scores(opened, whole), expected, atol=1e-4)
    main(tmp_path / "out/adapter", tmp_path / "merged")
    plain = transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path / "merged")
    assert torch.allclose(scores(plain, tmp_path / "merged"), expected, atol=1e-4)


def test_the_card_of_a_head_that_is_a_class_of_ours_names_the_command_that_merges_it(models, tmp_path):
    network = load(models["gemma3_text"], "labelling")
    save_adapter(adapt(network, LORA, 1, "labelling"), models["gemma3_text"], tmp_path / "adapter", {"languages": ["en"]})
    card = (tmp_path / "adapter/README.md").read_text("utf-8")
    assert "Gemma3TextForTokenClassification is a class of Crossgap, whose command `python -m" in card


def test_a_stopped_training_goes_on_and_layers_that_compute_again_learn_the_same(models, table, trained, tmp_path, monkeypatch):
    changes = {"adapter": LORA, "gradient_checkpointing": True}
    with stopped_after(2, monkeypatch):
        finetune(models["bert"], table, tmp_path, **changes)
    assert not (tmp_path / "adapter").exists()
    weights = finetune(models["bert"], table, tmp_path, **changes)
    assert weights.keys() == trained[0].keys()
    assert all(torch.allclose(weights[name], weight, atol=1e-5) for name, weight in trained[0].items())
    assert (tmp_path / "adapter/adapter_config.json").exists()
    finetune(models["bert"], table, tmp_path)
    assert not (tmp_path / "adapter").exists()


def test_random_weights_take_no_adapter(models, table, tmp_path):
    settings = CLASSIFICATION.finetune_settings(language="en", labels=LABELS, epochs=1, classification=Classification(adapter=LORA))
    job = TrainingJob(models["bert"], *(tmp_path / name for name in "abcd"), from_scratch=True)
    with pytest.raises(InputError, match=r"classification\.adapter: lora changes little of a model"):
        head.finetune(CLASSIFICATION, job, train=(table,), dev=(table,), settings=settings)


def test_checkpoints_from_before_there_were_adapters_are_gone_on_from(models, table):
    described = partial(describe, block="classification", text={"train": table}, start=models["bert"], seed=1, from_scratch=False)
    settings = CLASSIFICATION.finetune_settings(language="en", labels=LABELS, epochs=1)
    assert not {"adapter", "gradient_checkpointing"} & described(settings)["classification"].keys()
    settings.classification.adapter = LORA
    assert described(settings)["classification"]["adapter"] == LORA


# ---------------------------------------------------------------------------------------------
# prefixes

BEHIND = Prefixes("query: ", "passage: ")


@pytest.mark.parametrize("family", ["xlm-roberta", "bert", "mbart"])
def test_prefixes_stand_before_both_texts_of_a_pair(models, family):
    pair, alone = Example("a", "Open the file.", "Print all cells of it."), Example("a", "Open the file.", "")
    behind = [each._replace(text=f"query: {each.text}", pair=each.pair and f"passage: {each.pair}") for each in (pair, alone)]
    read, plain = Reader(models[family], 60, "en", BEHIND), Reader(models[family], 60, "en")
    for given, written in zip((pair, alone), behind, strict=True):
        assert read.rows([given], "en", ["a"]) == plain.rows([written], "en", ["a"]) != plain.rows([given], "en", ["a"])
    with pytest.raises(InputError, match="more than half of a row"):
        Reader(models[family], 8, "en", BEHIND)


def test_the_words_of_a_tagged_sentence_keep_their_tags_behind_a_prefix(models):
    example = Example("X Y Z", "open the file", "")
    read, plain = (WordReader(models["xlm-roberta"], 20, "both", "en", prefixes) for prefixes in (Prefixes("query: "), Prefixes()))
    ((ids, tags),), ((_, before),) = (reader.rows([example], "en", ["X", "Y", "Z"]) for reader in (read, plain))
    assert [*ids] == read.codec.encode(["query: open the file"], "en")[0]
    assert [tag for tag in tags if tag >= 0] == [tag for tag in before if tag >= 0] == [0, 1, 2]
    long = example._replace(text=" ".join(["open"] * 40), label=" ".join(["X"] * 40))
    windows = read.windows([long])
    assert sum(len(each.label.split()) for each in windows) == 40
    assert all(len(ids) <= 20 for ids, _ in read.rows(windows, "en", ["X"]))


def test_an_answer_lies_where_it_lay_behind_prefixes(models):
    example = Example("9:16", "What is shown?", "Below is the sum of all cells in a sheet. " * 4)
    read, plain = (PassageReader(models["xlm-roberta"], 40, 10, 10, "both", "en", prefixes) for prefixes in (BEHIND, Prefixes()))
    windows = read.windows([example], "en")
    assert read.tokenizer.decode(windows[0].row[0]).count("passage:") == 1 and all(len(each.row[0]) <= 40 for each in windows)
    marked = []
    for reader in (read, plain):
        ids, labels = reader.windows([example], "en")[0].row
        marked.append(reader.tokenizer.decode(ids[labels[0] : labels[1] + 1]))
    assert marked[0] == marked[1] and marked[0].strip()


@pytest.mark.parametrize("kind", ["modernbert", "mmbert"])
def test_the_blank_of_a_prefix_stands_before_question_and_passage(tmp_path, kind):
    folder, example = tiny_encoder(tmp_path, kind), Example("9:16", "What is shown?", "Below is the sum of all cells.")
    read = PassageReader(folder, 60, 10, 20, "both", "en", BEHIND)
    (window,) = read.windows([example], "en")
    ids, (first, last, *_) = window.row
    assert [*ids] == [*Reader(folder, 60, "en", BEHIND).rows([example], "en", ["9:16"])[0][0]]
    assert read.tokenizer.decode(ids[first : last + 1]).strip() == "the sum"
    spans = [window.offsets[at - window.first] for at in (first, last)]
    assert example.pair[spans[0][0] : spans[1][1]] == "the sum"


def test_the_models_folder_keeps_the_prefixes(models, table, tmp_path):
    finetune(models["bert"], table, tmp_path / "behind", prefix="query: ", looks=1)
    assert Reader(tmp_path / "behind/model", 40).prefixes == ("query: ", "")
    assert read_json(tmp_path / "behind/training.json")["settings"]["prefix"] == "query: "
    finetune(tmp_path / "behind/model", table, tmp_path / "again")
    assert Reader(tmp_path / "again/model", 40).prefixes == ("", "") and Reader(models["bert"], 40).prefixes == ("", "")
