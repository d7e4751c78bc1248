"""Token labelling: pieces and words of all families, windows, finetuning, prediction of all test sets, and comparison."""

import json
import math
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import warm
from configurations import with_recipes, with_value
from tiny_decoders import small_decoder

from workflow_scripts.evidence import tag_scores
from workflow_scripts.evidence.average import AVERAGE, Significance
from workflow_scripts.models.networks import save_model
from workflow_scripts.run import config, head_inputs
from workflow_scripts.stage import InputError, read_json
from workflow_scripts.tasks import head
from workflow_scripts.tasks.head_model import load_token_head
from workflow_scripts.tasks.labelling import LABELLING, Labelling, WordReader, load_tagger, tags_of_sentences, word_scores
from workflow_scripts.text.examples import Example, read_table
from workflow_scripts.text.labelled import Labelled, main
from workflow_scripts.text.labelled_source import LabelledSource
from workflow_scripts.text.tagged import join_words, split_words
from workflow_scripts.training.job import TrainingJob

UD = Path("resources/universal-dependencies")
UPOS = ["ADJ", "ADP", "ADV", "AUX", "CCONJ", "DET", "INTJ", "NOUN", "NUM", "PART", "PRON", "PROPN", "PUNCT", "SCONJ", "SYM", "VERB", "X"]
FAMILIES = ["mbart", "mbart50", "nllb", "bert", "xlm-roberta"]


@pytest.fixture(scope="module")
def text(tmp_path_factory) -> Path:
    """The parts of a treebank as `labelled` writes them."""
    folder = tmp_path_factory.mktemp("text")
    source = {part: LabelledSource(file=str(UD / f"en.{part}.conllu.xz")) for part in ("train", "dev", "test")}
    tests = {"en": source["test"], "de": LabelledSource(file=str(UD / "de.test.conllu.xz"), language="de")}
    settings = Labelled(language="en", labels=UPOS, train=source["train"], dev=source["dev"], test=tests, unit="word")
    for part in ("train", "dev", "test/en", "test/de"):
        name = part.removeprefix("test/")
        main(folder / f"{name}.tsv", folder / name, folder / f"{name}.json", part=part, settings=settings)
        if part in ("train", "dev"):
            shutil.copy(folder / f"{name}.tsv", folder / f"all.{name}.tsv")
            lines = (folder / f"{name}.tsv").read_text("utf-8").splitlines(keepends=True)
            (folder / f"{name}.tsv").write_text("".join(lines[:60]), "utf-8")
    return folder


def sentence(words: list[str], tag: str = "NOUN", line: int = 1) -> Example:
    return Example(" ".join([tag] * len(words)), join_words(words), "", "", line)


WORDS = ["The", "house", ":", "e.g.", "don't", "…", "quen quen", "Straße", "[SEP]", "<mask>", "</s>"]


@pytest.mark.parametrize("family", FAMILIES)
def test_the_first_piece_of_a_word_carries_its_tag(models, family):
    reader = WordReader(models[family], 128)
    ((ids, tags),) = reader.rows([sentence(WORDS)._replace(label=" ".join(UPOS[: len(WORDS)]))], "en", UPOS)
    assert len(ids) == len(tags) and [number for number in tags if number >= 0] == list(range(len(WORDS)))
    specials = set(reader.tokenizer.all_special_ids) - {reader.tokenizer.unk_token_id}
    read = [i for i, number in zip(ids, tags, strict=True) if i not in specials]
    assert len(ids) - len(read) == len(reader.codec.form.row) - 1  # words that look like special tokens are words
    pieces = reader.pieces([sentence(WORDS)])[0]
    assert read == [i for word in pieces for i in word]
    firsts = [i for i, number in zip(ids, tags, strict=True) if number >= 0]
    assert firsts == [word[0] for word in pieces]
    for word in ("[SEP]", "<mask>"):
        assert not specials & set(WordReader(models[family], 128).pieces([sentence([word])])[0][0])
    # as transformers cuts words that are given one by one
    plain = [word for word in WORDS if not {"[", "<"} & set(word)]
    expected = reader.tokenizer(plain, is_split_into_words=True, add_special_tokens=False)
    assert [i for word in reader.pieces([sentence(plain)])[0] for i in word] == [
        i for i, word in zip(expected["input_ids"], expected.word_ids(), strict=True) if word is not None
    ]


def test_nothing_of_a_word_is_left_but_its_tag(models):
    reader = WordReader(models["bert"], 128)
    ((ids, tags),) = reader.rows([sentence(["The", "\u200e", "house"])], "en", UPOS)
    assert sum(number >= 0 for number in tags) == 3 and ids[2] == reader.tokenizer.unk_token_id and reader.unread == {"\u200e"}


@pytest.mark.parametrize("family", [*FAMILIES, "qwen3"])
def test_long_sentences_are_cut_between_words_and_none_is_lost(models, family):
    reader = WordReader(models[family], 12)
    long = [sentence([f"word{i}" for i in range(30)], line=1), sentence(["x" * 200, "y"], line=2), sentence(["a"], line=3)]
    windows = reader.windows(long)
    assert [word for w in windows for word in split_words(w.text)] == [word for e in long for word in split_words(e.text)]
    rows = reader.rows(windows, "en", UPOS)
    assert max(len(ids) for ids, _ in rows) <= 12 and len(windows) > 5 and sum(tag >= 0 for _, tags in rows for tag in tags) == 33
    given = tags_of_sentences(windows, [str(i) for i in range(33)])
    assert [len(tags) for tags in given] == [30, 2, 1] and [tag for tags in given for tag in tags] == [str(i) for i in range(33)]


@pytest.mark.parametrize("family, parts", [*((family, "both") for family in FAMILIES), ("mbart", "encoder")])
def test_scores_are_of_the_words_in_order_whatever_the_batch(models, text, family, parts):
    settings = Labelling(parts=parts)
    reader = WordReader(models[family], 64, parts)
    network = load_token_head(models[family], "labelling", UPOS, settings, seed=1)
    rows = reader.rows(reader.windows(read_table(text / "dev.tsv")), "en", UPOS)
    together, alone = (word_scores(network, reader, rows, "float32", tokens) for tokens in (600, 1))
    assert together.shape == (sum(tag >= 0 for _, tags in rows for tag in tags), len(UPOS))
    torch.testing.assert_close(together, alone, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("family", FAMILIES)
def test_random_weights_are_those_of_the_seed(models, family):
    made = [load_token_head(models[family], "labelling", UPOS, Labelling(), seed, from_scratch=True) for seed in (5, 5, 6)]
    first, again, other = (network.get_input_embeddings().weight for network in made)
    assert torch.equal(first, again) and not torch.equal(first, other)
    assert not torch.equal(first, load_token_head(models[family], "labelling", UPOS, Labelling(), 5).get_input_embeddings().weight)


def test_the_decoder_has_read_a_word_when_it_is_tagged(models):
    reader = WordReader(models["mbart"], 64)
    network = load_token_head(models["mbart"], "labelling", UPOS, Labelling(), seed=1)
    rows = [reader.rows([sentence(words)], "en", UPOS)[0] for words in (["The", "house"], ["The", "horse"])]
    batch = reader.collate(rows[:1])
    at = batch["labels"] >= 0
    assert batch["decoder_input_ids"][at].tolist() == batch["input_ids"][0, [i for i, tag in enumerate(rows[0][1]) if tag >= 0]].tolist()
    first, second = (word_scores(network, reader, [row], "float32") for row in rows)
    assert not torch.allclose(first[1], second[1])


@pytest.mark.parametrize("kind", ["gemma3_text", "qwen3"])
def test_a_decoder_alone_has_read_the_whole_word_when_it_is_tagged(tmp_path, kind):
    model = small_decoder(tmp_path, kind)
    # two words that begin with the same piece
    pieces = {word: WordReader(model, 64).pieces([sentence([word])])[0][0] for word in ("walking", "walked")}
    assert len({ids[0] for ids in pieces.values()}) == 1 and min(map(len, pieces.values())) > 1
    network = load_tagger(model, UPOS, Labelling(), 1)
    reader = WordReader(model, 64)

    def tagged(reader):
        rows = [reader.rows([sentence(["the", word])], "en", UPOS)[0] for word in pieces]
        return [word_scores(network, reader, [row], "float32")[1] for row in rows]

    assert not torch.allclose(*tagged(reader))
    save_model(network, reader.tokenizer, tmp_path / "tagger")
    assert WordReader(tmp_path / "tagger", 64).tagged_piece == "last"
    # one of an earlier version learnt the first piece, and is still read there
    settings = read_json(tmp_path / "tagger/config.json")
    del settings["tagged_piece"]
    (tmp_path / "tagger/config.json").write_text(json.dumps(settings), "utf-8")
    assert torch.allclose(*tagged(WordReader(tmp_path / "tagger", 64)))


@pytest.mark.parametrize("family, said", [("qwen3", {"tagged": "last piece"}), ("bert", {})])
def test_checkpoints_of_a_decoder_that_learnt_the_first_piece_are_not_gone_on_from(models, tmp_path, monkeypatch, family, said):
    described = []
    monkeypatch.setattr(head, "finetune_head", lambda *given: described.append(given[-1]))
    job = TrainingJob(models[family], *(tmp_path / name for name in ("model", "curve.tsv", "report.json", "checkpoints")))
    head.finetune(LABELLING, job, train=(), dev=(), settings=LABELLING.finetune_settings(language="en", labels=UPOS, epochs=1))
    assert described == [said]


def run(models, text, folder: Path, family: str, seed: int = 1, **changes) -> Path:
    settings = LABELLING.finetune_settings(
        language="en", labels=UPOS, epochs=2, labelling=Labelling(batch_size=16, learning_rate=1e-3, max_length=64, **changes)
    )
    files = {"train": (text / "train.tsv",), "dev": (text / "dev.tsv",)}
    made = {"model": folder / "model", "curve": folder / "curve.tsv", "report": folder / "training.json"}
    head.finetune(LABELLING, TrainingJob(models[family], **made, checkpoints=folder / "checkpoints", seed=seed), **files, settings=settings)
    head.predict(
        LABELLING,
        folder / "model",
        (text / "en.tsv", text / "de.tsv"),
        folder / "predictions",
        train=text / "all.train.tsv",
        testsets=("en", "de"),
        languages=("en", "de"),
        settings=settings.labelling,
    )
    return folder


@pytest.mark.parametrize("family, changes", [("xlm-roberta", {}), ("mbart", {"parts": "encoder"}), ("mbart50", {"micro_batch": 8})])
def test_finetuning_and_prediction(models, text, tmp_path, family, changes):
    folder = run(models, text, tmp_path, family, **changes)
    report = read_json(folder / "training.json")
    assert report["rows"] >= 60 and report["updates"]["made"] == 2 * math.ceil(report["rows"] / 16)
    assert 0 <= report["handed_on"]["dev_accuracy"] <= 1
    assert (folder / "curve.tsv").read_text().splitlines()[0].endswith("dev_loss\tdev_accuracy")
    for name in ("en", "de"):
        table = read_table(text / f"{name}.tsv")
        given = [line.split(" ") for line in (folder / "predictions" / f"{name}.hyp").read_text().splitlines()]
        truth = [example.label.split(" ") for example in table]
        scores = read_json(folder / "predictions" / f"{name}.scores.json")
        sums = tag_scores.count(truth, given).sum(axis=0)
        assert scores["metric"] == "accuracy" and scores["accuracy"] == 100 * tag_scores.SCORES["accuracy"](sums)
        assert scores["f1"] == 100 * tag_scores.SCORES["f1"](sums)
        assert scores["low"] <= scores["accuracy"] <= scores["high"] and scores["words"] == sum(map(len, truth))
        words = tag_scores.learn_word_list((split_words(e.text), e.label.split(" ")) for e in read_table(text / "all.train.tsv"))
        trivial = tag_scores.count(truth, [words.tag(split_words(e.text)) for e in table]).sum(axis=0)
        assert scores["chance"] == 100 * tag_scores.SCORES["accuracy"](trivial) and scores["at_chance"] == (
            scores["low"] <= scores["chance"]
        )
        assert sum(scores["confusion"][tag][tag] for tag in UPOS) == sums[0]


def test_micro_batches_add_up_to_an_update(models, text, tmp_path):
    exact = {"dropout": 0.0, "attention_dropout": 0.0}
    curves = [
        [line.split("\t")[2] for line in (run(models, text, tmp_path / str(i), "bert", **exact, **changes) / "curve.tsv").open()][1:]
        for i, changes in enumerate(({}, {"micro_batch": 4}))
    ]
    whole, parts = (np.array([float(loss) for loss in column if loss]) for column in curves)
    np.testing.assert_allclose(whole, parts, rtol=1e-3)


def test_comparison_of_arms(text, tmp_path):
    truth = {name: [example.label.split(" ") for example in read_table(text / f"{name}.tsv")] for name in ("en", "de")}
    for arm, wrong in (("base", 4), ("better", 6)):
        for name, lines in truth.items():
            path = tmp_path / arm / f"{name}.hyp"
            path.parent.mkdir(exist_ok=True)
            given = ["X" if at % wrong == 0 else tag for at, tag in enumerate(tag for tags in lines for tag in tags)]
            one = iter(given)
            path.write_text("".join(" ".join(next(one) for _ in tags) + "\n" for tags in lines))
    names = {"names": ("base", "better"), "testsets": ("en", "de"), "languages": ("en", "de"), "seeds": (1,)}
    tables = (text / "en.tsv", text / "de.tsv")
    for metric in ("accuracy", "f1"):
        head.compare_arms(
            LABELLING,
            (tmp_path / "base", tmp_path / "better"),
            tables,
            tmp_path / "x.json",
            **names,
            head=json.dumps({"metric": metric}),
            settings=Significance(samples=100),
        )
        found = {(row["testset"], row["seed"]): row for row in read_json(tmp_path / "x.json")["pairs"]}
        assert set(found) == {(testset, seed) for testset in ("en", "de", AVERAGE) for seed in (1, None)}
        assert found[AVERAGE, 1]["difference"] == pytest.approx((found["en", 1]["difference"] + found["de", 1]["difference"]) / 2)
        assert 0 < found["de", 1]["low"] < found["de", 1]["difference"] < found["de", 1]["high"] and found["de", 1]["p"] < 0.05
    (tmp_path / "base/en.hyp").write_text("X\n" * len(truth["en"]))
    with pytest.raises(InputError, match=r"en\.hyp: its lines do not have a tag for each word of the test set; delete its folder"):
        head.compare_arms(LABELLING, (tmp_path / "base", tmp_path / "better"), tables, tmp_path / "x.json", **names, labels='["X"]')


def test_a_label_may_begin_with_a_hyphen(tmp_path):
    labels = ["NN", "-LRB-", "--"]
    plan = SimpleNamespace(text=SimpleNamespace(labels=labels), task=LABELLING)
    (tmp_path / "en.tsv").write_text("NN -LRB- --\tdog ( –\t\n", encoding="utf-8")
    for arm, tags in (("base", "NN NN NN"), ("better", "NN -LRB- --")):
        (tmp_path / arm).mkdir()
        (tmp_path / arm / "en.hyp").write_text(f"{tags}\n", encoding="utf-8")
    command = [warm.python(), "-m", "workflow_scripts.tasks.head", "compare", "--task", "labelling"]
    command += ["--systems", tmp_path / "base", tmp_path / "better", "--examples", tmp_path / "en.tsv", "--output", tmp_path / "x.json"]
    command += ["--names", "base", "better", "--testsets", "en", "--languages", "en", "--seeds", "1"]
    flags = head_inputs.label_flags(SimpleNamespace(plan=plan))
    subprocess.run([*command, *flags, "--settings", '{"samples": 9}'], check=True, env=warm.environment())
    assert read_json(tmp_path / "x.json")["pairs"][0]["difference"] == pytest.approx(200 / 3)


@pytest.mark.parametrize("given", ["NN", "5"])
def test_labels_that_are_no_json_list_are_refused(given):
    with pytest.raises(InputError, match=f"--labels: give one JSON list, .* got '{given}'"):
        head.labels_of(given)


def test_a_tag_that_the_model_has_not_learnt_is_refused(models, text, tmp_path):
    folder = run(models, text, tmp_path, "xlm-roberta")
    (tmp_path / "x.tsv").write_text("FOO\tword\t\n")
    with pytest.raises(InputError, match=r"x\.tsv, line 1: the label 'FOO' is none of"):
        head.predict(
            LABELLING,
            folder / "model",
            (tmp_path / "x.tsv",),
            tmp_path / "y",
            testsets=("x",),
            languages=("en",),
            train=text / "train.tsv",
        )


def test_named_entities_are_judged_by_f1(models, tmp_path):
    tags = ["O", *(f"{side}-{kind}" for kind in ("PER", "ORG", "LOC") for side in "BI")]
    source = LabelledSource(file="resources/universal-ner/en.iob2.xz")
    held_out = {"dev": LabelledSource(held_out=0.2), "test": {"en": LabelledSource(held_out=0.2)}}
    settings = Labelled(language="en", labels=tags, train=source, unit="word", **held_out)
    for part in ("train", "dev", "test/en"):
        name = part.removeprefix("test/")
        main(tmp_path / f"{name}.tsv", tmp_path / name, tmp_path / f"{name}.json", part=part, settings=settings)
    outputs = [tmp_path / name for name in ("model", "curve.tsv", "report.json", "checkpoints")]
    head.finetune(
        LABELLING,
        TrainingJob(models["xlm-roberta"], *outputs),
        train=(tmp_path / "train.tsv",),
        dev=(tmp_path / "dev.tsv",),
        settings=LABELLING.finetune_settings(language="en", labels=tags, epochs=1, labelling=Labelling(max_length=64, learning_rate=1e-3)),
    )
    chosen = {"testsets": ("en",), "languages": ("en",), "settings": Labelling()}
    head.predict(LABELLING, tmp_path / "model", (tmp_path / "en.tsv",), tmp_path / "out", train=tmp_path / "train.tsv", **chosen)
    scores = json.loads((tmp_path / "out/en.scores.json").read_text())
    assert (
        scores["metric"] == "f1"
        and scores["chance"] == scores["word_list"]["f1"]
        and "dev_f1" in read_json(tmp_path / "report.json")["handed_on"]
    )


@pytest.mark.parametrize(
    "path, value, said",
    [
        ("labelled/universal-dependencies/unit", "text", r"tags\.corpus: labelling needs text with `unit: word`, but .*unit is text"),
        ("labelled/universal-dependencies/train/header", True, r"universal-dependencies\.train\.header: is for files in columns"),
        (
            "labelled/universal-dependencies/train/empty",
            "leave_out",
            r"universal-dependencies\.train\.empty: is for `unit: text`, `question` and `target`",
        ),
        ("labelled/universal-dependencies/train/columns", {"text": 1}, r"train\.columns: 'text' is not defined"),
        ("labelled/universal-dependencies/labels", ["O", "I-PER"], r"labels: I-PER is there, but not B-PER, with which a span begins"),
        ("labelled/universal-dependencies/labels", ["O", "B-PER", "S-PER"], r"labels: S-PER is of BIOES or BILOU; name the tags of IOB2"),
        ("labelled/universal-dependencies/labels", ["O", "B PER"], r"labels: 'B PER' has a blank in it"),
        ("experiments/tags/labelling/parts", "decoder", r"tags\.labelling\.parts: input should be 'both' or 'encoder', got 'decoder'"),
        ("experiments/tags/labelling/max_length", 600, r"labelling\.max_length: 600 is more than the backbone's 512 positions"),
        ("experiments/tags/task", "labeling", r"experiments\.tags\.task: .*labelling"),
        ("arms/finetune-16e", [{"data": "task", "updates": 9}], r"experiments\.tags, a labelling, counts epochs and not updates"),
    ],
)
def test_mistakes_in_the_configuration_are_named(path, value, said):
    config.load(with_recipes("labelling"))
    with pytest.raises(InputError, match=said):
        config.load(with_value(with_recipes("labelling"), path, value))
