"""Classification: what the head reads, that it learns, goes on after a kill, and how accuracy is judged."""

import json
import shutil
import signal
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
import warm
from phases import assert_alike, assert_same
from safetensors.torch import load_file
from test_checkpoints import run_until, same
from tiny_models import MANUAL

from workflow_scripts.evidence.average import Significance
from workflow_scripts.noise.candidates import Lookup, Lookups
from workflow_scripts.noise.codeswitch import CodeSwitch
from workflow_scripts.noise.span_noise import SpanNoise
from workflow_scripts.stage import InputError, read_json
from workflow_scripts.tasks import head
from workflow_scripts.tasks.classification import CLASSIFICATION, Classification
from workflow_scripts.tasks.finetuning import Batches
from workflow_scripts.tasks.head_model import Reader, label_scores, load_text_head, summed_loss
from workflow_scripts.tasks.switched import switched_examples
from workflow_scripts.text.examples import Example, read_table
from workflow_scripts.text.files import read_lines
from workflow_scripts.training import backbone
from workflow_scripts.training.job import TrainingJob

LABELS = ["Writer", "Calc"]
SETTINGS = {"batch_size": 16, "learning_rate": 3e-3, "dropout": 0.1, "max_length": 40, "patience": 0, "device": "cpu"}
FAMILIES = ("cc25", "mbart50", "bert", "xlm-roberta")
TEXTS = [
    Example("Writer", "Open the text document.", "Print it."),
    Example("Calc", "A cell.", "The sum of all cells in a sheet is shown below."),
]


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """Training and dev tables: paragraphs of the manual, of two applications."""
    folder = tmp_path_factory.mktemp("tables")
    rows = [line.split("\t") for line in read_lines(MANUAL)]
    chosen = {"Writer": "swriter/", "Calc": "scalc/"}
    lines = [
        [f"{label}\t{row[2]}\t\n" for row in rows if row[0].startswith(start) and 4 <= len(row[2].split()) <= 12][:70]
        for label, start in chosen.items()
    ]
    mixed = [line for pair in zip(*lines, strict=True) for line in pair]
    (folder / "train.tsv").write_text("".join(mixed[:100]), encoding="utf-8")
    (folder / "dev.tsv").write_text("".join(mixed[100:]), encoding="utf-8")
    return folder


def finetune(tables: Path, start: Path, out: Path, **changes):
    chosen = Classification(**{**SETTINGS, **changes.pop("classification", {})})
    settings = CLASSIFICATION.finetune_settings(
        language="en", labels=LABELS, epochs=changes.pop("epochs", 2), classification=chosen, codeswitch=changes.pop("codeswitch", None)
    )
    outputs = [out / name for name in ("model", "curve.tsv", "training.json", "checkpoints")]
    switched = {name: changes.pop(name) for name in ("lexicons", "into") if name in changes}
    job = TrainingJob(start, *outputs, threads=1, **changes)
    head.finetune(CLASSIFICATION, job, train=(tables / "train.tsv",), dev=(tables / "dev.tsv",), settings=settings, **switched)
    curve = [line.split("\t") for line in read_lines(out / "curve.tsv")]
    assert curve[0][-2:] == ["dev_loss", "dev_accuracy"] and any(float(row[-2]) and float(row[-1]) >= 0 for row in curve[1:] if row[-1])
    return load_file(out / "model" / "model.safetensors")


# ---------------------------------------------------------------------------------------------
# what the head reads


@pytest.mark.parametrize("family", ["cc25", "mbart50", "nllb"])
@pytest.mark.parametrize("reads", ["tag", "mean"])
def test_the_encoder_alone_has_the_head_of_xlmr(models, tmp_path, family, reads):
    folder, settings = models[family], Classification(parts="encoder", reads=reads)
    reader, network = Reader(folder, 40), load_text_head(folder, LABELS, settings, seed=1).eval()
    rows = reader.rows(TEXTS, "en", LABELS)
    together = label_scores(network, reader, rows, "float32")
    head = dict(network.classifier.named_modules())
    for (ids, _), logits in zip(rows, together, strict=True):
        states = network.model.encoder(input_ids=torch.tensor([ids])).last_hidden_state[0]
        read = states.mean(dim=0) if reads == "mean" else states[ids.index(reader.codec.tag("en"))]
        # XLM-R's: a layer with tanh, then one that puts out the logits
        torch.testing.assert_close(head["out_proj"](torch.tanh(head["dense"](read))), logits, atol=1e-5, rtol=1e-4)
    # saved and loaded, it is the same; an encoder has its own head whatever `parts` says
    network.save_pretrained(tmp_path / "saved")
    reader.tokenizer.save_pretrained(tmp_path / "saved")
    again = load_text_head(tmp_path / "saved", None, settings, seed=2)
    torch.testing.assert_close(label_scores(again, reader, rows, "float32"), together)
    # its decoder is gone, so nothing that needs one may start from it
    with pytest.raises(
        InputError, match=r"saved: lost its decoder to a head that reads the encoder \(parts: encoder\); set parts: encoder"
    ):
        load_text_head(tmp_path / "saved", LABELS, Classification(parts="both"), seed=1)


def test_an_encoder_has_its_own_head_whatever_part_is_asked_for(models):
    kinds = {type(load_text_head(models["xlm-roberta"], LABELS, Classification(parts=parts), seed=1)) for parts in ("both", "encoder")}
    assert len(kinds) == 1


@pytest.mark.parametrize("family", ["cc25", "mbart50"])
def test_the_head_reads_the_decoder_where_all_of_the_text_was_read(models, family):
    reader = Reader(models[family], 40)
    network = load_text_head(models[family], LABELS, Classification(), seed=1).eval()
    for pair in (False, True):
        example = TEXTS[0] if pair else TEXTS[0]._replace(pair="")
        ((ids, _),) = reader.rows([example], "en", LABELS)
        batch = reader.collate([(ids, [0])])
        batch.pop("labels")
        states = network.model(**batch, use_cache=False).last_hidden_state[0]
        eos = reader.tokenizer.eos_token_id
        # the decoder reads the same ids, rotated by one: what stands before the last </s> is the text's last piece
        last = max(i for i, token in enumerate(ids) if token == eos)
        assert batch["decoder_input_ids"][0, last] == ids[last - 1] and ids.count(eos) == (3 if pair else 1)
        assert torch.allclose(network(**batch).logits[0], network.classification_head(states[last]), atol=1e-6)


@pytest.mark.parametrize("family", FAMILIES)
def test_padding_changes_nothing_and_every_weight_learns(models, family):
    reader = Reader(models[family], 40)
    network = load_text_head(models[family], LABELS, Classification(dropout=0.0, attention_dropout=0.0), seed=1)
    rows = reader.rows(TEXTS, "en", LABELS)
    alone = torch.cat([label_scores(network, reader, [row], "float32") for row in rows])
    assert torch.allclose(label_scores(network, reader, rows, "float32"), alone, atol=1e-5)
    batch = reader.collate(rows)
    summed_loss(network(**{k: v for k, v in batch.items() if k != "labels"}), batch["labels"]).backward()
    still = [name for name, weight in network.named_parameters() if weight.grad is None or not weight.grad.abs().sum()]
    # keys have no bias that matters: softmax forgets what is the same for all
    assert [name for name in still if "k_proj.bias" not in name and "key.bias" not in name] == []


def test_pairs_in_the_form_of_each_family(models):
    forms = {
        "cc25": lambda a, b, tag: [*a, 2, 2, *b, 2, tag],
        "mbart50": lambda a, b, tag: [tag, *a, 2, 2, *b, 2],
        "xlm-roberta": lambda a, b, tag: [0, *a, 2, 2, *b, 2],
    }
    for family, form in forms.items():
        reader = Reader(models[family], 60)
        a, b = (reader.tokenizer(text, add_special_tokens=False)["input_ids"] for text in TEXTS[0].texts)
        tag = reader.codec.tag("en") if not reader.is_encoder else None
        assert reader.rows(TEXTS[:1], "en", LABELS)[0][0].tolist() == form(a, b, tag)
    reader = Reader(models["bert"], 60)
    batch = reader.collate(reader.rows(TEXTS, "en", LABELS))
    first, second = (len(reader.tokenizer(text, add_special_tokens=False)["input_ids"]) for text in TEXTS[0].texts)
    assert batch["token_type_ids"][0].tolist()[: first + second + 3] == [0] * (first + 2) + [1] * (second + 1)
    assert not (batch["token_type_ids"] * (1 - batch["attention_mask"])).any()


@pytest.mark.parametrize("family", FAMILIES)
def test_long_pairs_lose_the_end_of_the_longer_text(models, family):
    reader = Reader(models[family], 20)
    short, long = "cell", "The sum of all cells in the sheet is shown below the table, and so on. " * 3
    for text, pair in ((short, long), (long, short), (long, long)):
        ((ids, _),) = reader.rows([Example("Calc", text, pair)], "en", LABELS)
        assert len(ids) == 20
        kept = reader.tokenizer(short, add_special_tokens=False)["input_ids"]
        if short in (text, pair):
            assert any(ids[i : i + len(kept)].tolist() == kept for i in range(len(ids)))
    assert reader.cut([Example("Calc", text, pair) for text, pair in ((short, long), (short, short), (long, long))], "en") == 2
    once = long[: len(long) // 3]
    fits = len(reader.codec.encode([once], "en")[0])
    assert [Reader(models[family], length).cut([Example("Calc", once, "")], "en") for length in (fits, fits - 1)] == [0, 1]


@pytest.mark.parametrize("family", ["bert", "qwen3"])
def test_the_end_is_lost_where_a_tokenizer_would_cut_the_beginning_off(models, tmp_path, family):
    model = shutil.copytree(models[family], tmp_path / "model")
    settings = read_json(model / "tokenizer_config.json")
    (model / "tokenizer_config.json").write_text(json.dumps({**settings, "truncation_side": "left"}), "utf-8")
    reader = Reader(model, 12)
    for pair in ("", "last " * 20):
        ((ids, _),) = reader.rows([Example("Calc", "first " + "last " * 20, pair)], "en", LABELS)
        assert reader.tokenizer.decode(list(ids)).count("first") == 1


# ---------------------------------------------------------------------------------------------
# finetuning


@pytest.mark.parametrize("family", FAMILIES)
def test_a_model_learns_and_labels(models, tables, tmp_path, family):
    for name in ("train.tsv", "dev.tsv"):
        (tmp_path / name).write_bytes((tables / "train.tsv").read_bytes())
    finetune(tmp_path, models[family], tmp_path, epochs=24, classification={"choose_by": "loss"})
    report = read_json(tmp_path / "training.json")
    assert report["updates"] == {"planned": 168, "made": 168} and report["handed_on"]["dev_loss"] < 0.693
    names = [tmp_path / name for name in ("x.hyp", "x.probabilities.tsv", "x.scores.json")]
    # labels are those of the same texts alone, whatever else is read with them
    both = (tables / "dev.tsv", tables / "train.tsv")
    options = {"testsets": ("other", "x"), "languages": ("en", "de"), "settings": Classification(**SETTINGS)}
    head.predict(CLASSIFICATION, tmp_path / "model", both, tmp_path, threads=1, **options)
    found = read_json(names[2])
    assert found["accuracy"] > 60 and found["examples"] == 100 and found["chance"] == 50
    columns, *rows = (line.split("\t") for line in read_lines(names[1]))
    best = [columns[np.argmax([float(cell) for cell in row])] for row in rows]
    with pytest.raises(InputError, match=r"--labels: .* are not the labels of .*, in their order: .*; leave --labels out"):
        head.predict(CLASSIFICATION, tmp_path / "model", both, tmp_path, threads=1, **options, labels=json.dumps(LABELS[::-1]))
    assert columns == LABELS and np.mean([a == b for a, b in zip(best, read_lines(names[0]), strict=True)]) > 0.97


def test_killed_while_finetuning_it_ends_with_the_same_weights(models, tables, tmp_path):
    plain = {"language": "en", "labels": LABELS, "epochs": 3, "classification": {**SETTINGS, "looks": 2, "micro_batch": 8}}
    chosen = plain["classification"]
    whole = finetune(tables, models["cc25"], tmp_path / "whole", epochs=3, classification=chosen)
    out = tmp_path / "cut"
    paths = {"start": models["cc25"], "train": tables / "train.tsv", "dev": tables / "dev.tsv", "model": out / "model"}
    paths |= {"curve": out / "curve.tsv", "report": out / "training.json", "checkpoints": out / "checkpoints"}
    line = [
        warm.python(),
        "-m",
        "workflow_scripts.tasks.head",
        "finetune",
        *("--task", "classification"),
        *(str(x) for k, v in paths.items() for x in (f"--{k}", v)),
    ]
    line += ["--threads", "1", "--settings", json.dumps(plain)]
    assert run_until(line, 10, signal.SIGKILL)[0] == -signal.SIGKILL
    assert_same(finetune(tables, models["cc25"], out, epochs=3, classification=chosen), whole)
    log = (next(out.glob("checkpoints/*/log.jsonl"))).read_text()
    assert log.count('"eval_error"') == 6


def test_micro_batches_add_up(models, tables, tmp_path):
    still = {"dropout": 0.0, "attention_dropout": 0.0}
    one = finetune(tables, models["cc25"], tmp_path / "one", classification=still)
    parts = finetune(tables, models["cc25"], tmp_path / "parts", classification={**still, "micro_batch": 5})
    assert_alike(load_file(models["cc25"] / "model.safetensors"), one, parts, 0.05)


def test_patience_ends_it(models, tables, tmp_path):
    finetune(tables, models["cc25"], tmp_path, epochs=30, classification={"learning_rate": 1e-9, "patience": 2})
    assert read_json(tmp_path / "training.json")["updates"] == {"planned": 210, "made": 21}


def test_every_example_comes_once_in_each_epoch(models, tables):
    made = Reader(models["cc25"], 40).rows(read_table(tables / "train.tsv")[:50], "en", LABELS)
    batches = Batches(lambda epoch: made, 50, 2, Classification(**{**SETTINGS, "micro_batch": 6}), 1)
    assert batches.epoch_sizes == [16, 16, 16, 2] and len(batches) == 24
    rows = [Counter(tuple(ids) for part in range(e * 12, e * 12 + 12) for ids, label in batches[part] if label != [-100]) for e in (0, 1)]
    assert rows[0] == rows[1] and rows[0].total() == 50
    assert batches[0] != batches[12]


def test_some_examples_are_the_same_for_all_seeds(tmp_path):
    (tmp_path / "x.tsv").write_text("".join(f"Calc\t{number}\t\n" for number in range(100)))
    some, again, all_of_them = (CLASSIFICATION.read(tmp_path / "x.tsv", LABELS, number) for number in (30, 30, 200))
    assert some == again and len({example.text for example in some}) == 30 and len(all_of_them) == 100


def test_both_texts_of_a_pair_are_switched_into_one_language_anew_in_each_epoch():
    words = ["open", "the", "file", "and", "print", "all", "of", "it", "now"]
    lookup = Lookups([Lookup({word: [f"{word}{mark}"] for word in words}, "en", code) for code, mark in (("de", "ß"), ("fr", "ç"))])
    noise = SpanNoise(rate=0.5)
    examples = [Example("Calc", " ".join(words), " ".join(reversed(words)))] * 200
    epochs = [switched_examples(examples, lookup, noise, 1, epoch)[0] for epoch in (0, 1)]
    assert epochs[0] != epochs[1] and epochs[0] == switched_examples(examples, lookup, noise, 1, 0)[0]
    marks = [{mark for mark in "ßç" if mark in e.text + e.pair} for e in epochs[0]]
    assert all(len(found) == 1 for found in marks) and 70 < marks.count({"ß"}) < 130
    assert all(e.label == "Calc" for e in epochs[0])


def test_switching_while_finetuning(models, tables, tmp_path):
    (tmp_path / "en-de.tsv").write_text("the\tdie\t1\t1.0\nof\tvon\t1\t1.0\n")
    plain = finetune(tables, models["cc25"], tmp_path / "plain")
    noised = {"codeswitch": CodeSwitch(), "lexicons": (tmp_path / "en-de.tsv",), "into": ("de",)}
    assert not same(finetune(tables, models["cc25"], tmp_path / "switched", **noised), plain)


# ---------------------------------------------------------------------------------------------
# backbones


@pytest.mark.parametrize("kind", ["bert", "xlm-roberta"])
def test_encoders_come_through_the_backbone_stage(models, tables, tmp_path, kind):
    settings = backbone.Backbone(model=str(models[kind]))
    outputs = [tmp_path / name for name in ("model", "backbone.json", "curve.tsv")]
    backbone.main(*outputs, languages=("en", "de"), encoder_will_do=True, settings=settings)
    report = read_json(outputs[1])
    assert report["family"] == kind and str(models[kind] / "model.safetensors") in report["checksums"]
    finetune(tables, outputs[0], tmp_path / "run", epochs=1)
    with pytest.raises(
        InputError, match=rf"is an encoder \({kind}\), .*need one that writes \(mBART-50, mBART, .*name `arms` that only finetune"
    ):
        backbone.main(*outputs, languages=("en", "de"), settings=settings)


# ---------------------------------------------------------------------------------------------
# accuracy


@pytest.mark.parametrize("test", ["bootstrap", "randomization"])
def test_arms_are_compared_by_test_set_and_on_average(tmp_path, test):
    rng = np.random.default_rng(1)
    truth = rng.choice(["a", "b"], 300)
    wrong = np.where(truth == "a", "b", "a")
    for testset in ("de", "fr"):
        (tmp_path / testset).write_text("".join(f"{label}\ttext\t\n" for label in truth))
    for arm, share in (("base", 0.6), ("good", 0.8), ("same", 0.6)):
        rng = np.random.default_rng(2)
        for testset in ("de", "fr"):
            for seed in (1, 2):
                (folder := tmp_path / f"{arm}{seed}").mkdir(exist_ok=True)
                (folder / f"{testset}.hyp").write_text("".join(f"{x}\n" for x in np.where(rng.random(300) < share, truth, wrong)))
    names = {"names": ("base", "good", "same"), "testsets": ("de", "fr"), "languages": ("de", "fr"), "seeds": (1, 2)}
    systems = tuple(tmp_path / f"{arm}{seed}" for arm in names["names"] for seed in names["seeds"])
    head.compare_arms(
        CLASSIFICATION,
        systems,
        (tmp_path / "de", tmp_path / "fr"),
        tmp_path / "p.json",
        **names,
        settings=Significance(test=test, samples=200),
    )
    found = {(r["testset"], r["seed"], r["arm"], r["other"]): r for r in read_json(tmp_path / "p.json")["pairs"]}
    assert len(found) == 3 * 3 * 3
    for testset in ("de", "fr", "average"):
        assert found[testset, None, "good", "base"]["p"] < 0.01 and 15 < found[testset, None, "good", "base"]["difference"] < 25
        assert found[testset, 1, "same", "base"]["difference"] == 0 and found[testset, None, "same", "base"]["p"] > 0.5
    means = [found[testset, 1, "good", "base"]["difference"] for testset in ("de", "fr", "average")]
    assert means[2] == pytest.approx((means[0] + means[1]) / 2)


def test_labels_for_other_examples_are_refused(tmp_path):
    (tmp_path / "x.tsv").write_text("a\ttext\t\nb\ttext\t\n")
    (tmp_path / "de.hyp").write_text("a\n")
    with pytest.raises(InputError, match=r"de\.hyp: has 1 lines with labels for 2 examples"):
        one = {"names": ("m",), "testsets": ("de",), "languages": ("de",), "seeds": (1,)}
        head.compare_arms(CLASSIFICATION, (tmp_path,), (tmp_path / "x.tsv",), tmp_path / "p.json", **one)
