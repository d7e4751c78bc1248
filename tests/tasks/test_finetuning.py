"""Finetuning of heads: text in several languages, a choice from a grid, and the work of several processes."""

import json
import sys
from dataclasses import asdict, replace
from pathlib import Path

import pytest
import torch
import warm
from safetensors.torch import load_file
from test_checkpoints import TORCHRUN

from workflow_scripts import plugins
from workflow_scripts.models.recognition import family_of
from workflow_scripts.noise.candidates import Lookup, Lookups
from workflow_scripts.noise.codeswitch import CodeSwitch
from workflow_scripts.noise.span_noise import SpanNoise
from workflow_scripts.stage import read_json
from workflow_scripts.tasks import finetuning, head
from workflow_scripts.tasks.finetuning import Batches, FinetuneSettings, phase_settings
from workflow_scripts.tasks.head_settings import HeadSettings
from workflow_scripts.tasks.labelling import LABELLING, Labelling
from workflow_scripts.tasks.switched import switched_examples
from workflow_scripts.text.examples import Example
from workflow_scripts.text.labelled import Labelled, main
from workflow_scripts.text.labelled_source import LabelledSource
from workflow_scripts.text.tagged import join_words, split_words
from workflow_scripts.training import choice
from workflow_scripts.training.callbacks import Diverged
from workflow_scripts.training.choice import Choice
from workflow_scripts.training.job import TrainingJob

UPOS = ["ADJ", "ADP", "ADV", "AUX", "CCONJ", "DET", "INTJ", "NOUN", "NUM", "PART", "PRON", "PROPN", "PUNCT", "SCONJ", "SYM", "VERB", "X"]


@pytest.fixture
def model(models):
    return models["xlm-roberta"]


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    """Some tagged sentences in English and German, as `labelled` writes them."""
    folder = tmp_path_factory.mktemp("text")
    part = LabelledSource(file="resources/universal-dependencies/en.dev.conllu.xz")
    german = LabelledSource(file="resources/universal-dependencies/de.test.conllu.xz")
    settings = Labelled(
        language="en",
        labels=UPOS,
        unit="word",
        train=part,
        dev=LabelledSource(held_out=0.2),
        test={"en": LabelledSource(held_out=0.2)},
        translations={"de": german},
        more_dev={"de": LabelledSource(**{**asdict(german), "held_out": 0.3})},
    )
    for part in ("train", "dev", "translations/de", "more_dev/de"):
        name = part.replace("/", ".")
        main(folder / f"{name}.all", folder / name, folder / f"{name}.json", part=part, settings=settings)
        lines = (folder / f"{name}.all").read_text("utf-8").splitlines()
        (folder / f"{name}.tsv").write_text("\n".join(lines[:24]) + "\n", "utf-8")
    assert not set((folder / "translations.de.all").read_text().splitlines()) & set((folder / "more_dev.de.all").read_text().splitlines())
    return folder


def test_what_another_version_of_a_plugin_has_trained_is_not_gone_on_from(monkeypatch, tmp_path, model):
    """Its loss may be another, and the checkpoints of a phase that is over stay."""
    table = tmp_path / "table.tsv"
    table.write_text("X\ta\t\n", "utf-8")
    described = []

    def begun(job, description):
        described.append(description)
        raise InterruptedError

    monkeypatch.setattr(finetuning, "begun", begun)
    job, settings = TrainingJob(model, *map(Path, "abcd")), LABELLING.finetune_settings(language="en", epochs=1, labels=["X"])
    for task, sha256 in ((LABELLING, ""), (replace(LABELLING, plugin="x.py"), "1"), (replace(LABELLING, plugin="x.py"), "2")):
        monkeypatch.setattr(plugins, "_PLUGINS", {"x.py": plugins.Plugin("x.py", (), (), (), sha256)})
        with pytest.raises(InterruptedError):
            head.finetune(task, job, train=(table,), dev=(table,), settings=settings)
    assert [each.get("task_plugin") for each in described] == [None, "1", "2"]
    assert not any("family_plugin" in each for each in described)
    monkeypatch.setattr(finetuning, "family_of", lambda start: replace(family_of(start), plugin="x.py"))
    assert finetuning.describe(settings, "labelling", {}, model, 1, False)["family_plugin"] == "2"


def files(text: Path, model: Path, out: Path) -> dict:
    made = {"model": out / "model", "curve": out / "curve.tsv", "report": out / "training.json", "checkpoints": out / "checkpoints"}
    return {"start": model, "train": (text / "train.tsv",), "dev": (text / "dev.tsv",), **made}


def finetune(settings: FinetuneSettings, start: Path, train: tuple[Path, ...], dev: tuple[Path, ...], lexicons=(), into=(), **made) -> None:
    head.finetune(LABELLING, TrainingJob(start, **made), train=train, dev=dev, lexicons=lexicons, into=into, settings=settings)


def labelling_settings(epochs: int = 1, **changes) -> FinetuneSettings:
    chosen = Labelling(**{"batch_size": 6, "learning_rate": 1e-3, "max_length": 64, **changes})
    return LABELLING.finetune_settings(language="en", labels=UPOS, epochs=epochs, labelling=chosen)


def weights(out: Path) -> dict[str, torch.Tensor]:
    return load_file(out / "model/model.safetensors")


def test_translations_are_learnt_from_and_all_languages_selected_on(text, model, tmp_path):
    settings = labelling_settings()
    settings.more_train, settings.more_dev = ["de"], ["de"]
    given = files(text, model, tmp_path)
    given |= {"train": (*given["train"], text / "translations.de.tsv"), "dev": (*given["dev"], text / "more_dev.de.tsv")}
    finetune(settings, **given)
    report = read_json(tmp_path / "training.json")
    assert report["rows"] >= 48 and report["languages"] == ["en", "de"] and report["dev_languages"] == ["en", "de"]
    alone = {}
    for number, code in enumerate(("en", "de")):  # a look is the mean of the languages
        out = tmp_path / code
        finetune(labelling_settings(learning_rate=1e-12), **{**files(text, tmp_path / "model", out), "dev": (given["dev"][number],)})
        alone[code] = read_json(out / "training.json")["handed_on"]
    for key in ("dev_loss", "dev_accuracy"):
        assert report["handed_on"][key] == pytest.approx((alone["en"][key] + alone["de"][key]) / 2, rel=1e-4)


WORDS = ["open", "the", "file", "and", "don't", "print", "all", "of", "it"]
LOOKUP = Lookups([Lookup({word: [f"{word}ß"] for word in WORDS}, "en", "de")])


def test_words_are_switched_where_their_labels_stay_right():
    tagged = Example("X " * 8 + "X", " ".join(WORDS), "")
    switched = [switched_examples([tagged] * 20, LOOKUP, SpanNoise(rate=0.5), 1, epoch, "word")[0] for epoch in (0, 1)]
    assert switched[0] != switched[1] and all(len(each.text.split(" ")) == 9 and "ß" in each.text for each in switched[0])
    (asked,), _ = switched_examples([Example("0:4", "open it", "open the file")], LOOKUP, SpanNoise(rate=1.0), 1, 0, "question")
    assert asked == Example("0:4", "openß itß", "open the file")


@pytest.mark.parametrize(
    "code, given, candidates, expected",
    [
        # a candidate of two words is a word with a blank inside, so that the tags of all words behind it stay theirs
        ("en", ["Open", "it", "."], {"open": "mach auf", "it": "es"}, ["Mach auf", "es", "."]),
        ("en", ["re-open", "U.S.", "50%"], {"open": "auf", "u.s": "USA", "50": "51"}, ["re-open", "USA.", "51%"]),
        # a word with a blank inside is switched as a whole
        ("vi", ["danh sách", "ngắn"], {"danh": "name", "danh sách": "list", "ngắn": "short"}, ["list", "short"]),
        # the segmenter finds one word in the first two, and two in the last
        ("th", ["ต่าง", "ๆ", "เผยแพร่"], {"ต่าง ๆ": "various", "เผย": "open", "แพร่": "spread"}, ["ต่าง", "ๆ", "เผยแพร่"]),
        ("zh", ["列表", "ab"], {"列表": "a list", "ab": "b"}, ["a list", "b"]),
    ],
)
def test_tagged_words_are_those_that_are_given(code, given, candidates, expected):
    lookup = Lookup({word: [other] for word, other in candidates.items()}, code, "de")
    example = Example("X", join_words(given), "")
    (switched,), counts = switched_examples([example], lookup, SpanNoise(rate=1.0), 1, 0, "word")
    assert split_words(switched.text) == expected
    changed = sum(old != new for old, new in zip(given, expected, strict=True))
    assert counts["replaced"] == changed and counts["words"] == sum(any(map(str.isalnum, word)) for word in given)


def test_a_head_learns_from_switched_words(text, model, tmp_path):
    (tmp_path / "en-de.tsv").write_text("".join(f"{word}\t{word}{word}{word}\t1\t1.0\n" for word in ("the", "of", "and", "to", "in")))
    settings = labelling_settings(epochs=2, max_length=16)  # most sentences are cut into rows, of which long words make more
    settings.codeswitch = CodeSwitch(noise=SpanNoise(rate=0.9))
    finetune(settings, **files(text, model, tmp_path / "switched"), lexicons=(tmp_path / "en-de.tsv",), into=("de",))
    finetune(labelling_settings(epochs=2, max_length=16), **files(text, model, tmp_path / "plain"))
    reports = [read_json(tmp_path / name / "training.json") for name in ("switched", "plain")]
    assert reports[0]["updates"] == reports[1]["updates"] and reports[0]["settings"]["codeswitch"]["noise"]["rate"] == 0.9
    assert any(not torch.equal(weight, weights(tmp_path / "plain")[name]) for name, weight in weights(tmp_path / "switched").items())
    counted = reports[0]["switched"]  # the lexicon has few of the words
    assert "switched" not in reports[1] and counted["rate"] == counted["replaced"] / counted["words"] and 0.1 < counted["rate"] < 0.4


def test_an_epoch_has_as_many_rows_as_planned_though_noise_makes_more_or_fewer():
    for made in (7, 13):
        batches = Batches(lambda epoch, made=made: [([number], [0]) for number in range(made)], 10, 2, HeadSettings(batch_size=4), 1)
        read = [ids[0] for place in range(3) for ids, _ in batches[place]]
        assert len(read) == 10 and len({*read}) == min(made, 10)


def test_the_chosen_point_of_a_grid_is_not_trained_twice(text, model, tmp_path):
    points = [{"learning_rate": 1e-3, "epochs": 2}, {"learning_rate": 1e-12, "epochs": 1}]
    for number, point in enumerate(points):
        finetune(labelling_settings(point["epochs"], learning_rate=point["learning_rate"]), **files(text, model, tmp_path / str(number)))
    reports = tuple(tmp_path / str(number) / "training.json" for number in range(2))
    choice.main(reports, tmp_path / "choice.json", swept=("learning_rate", "epochs"), settings=Choice(by="dev_loss"))
    chosen = read_json(tmp_path / "choice.json")
    assert [point["settings"] for point in chosen["points"]] == points and chosen["chosen"] == 0
    finetune(labelling_settings(), **files(text, model, tmp_path / "last"), choice=tmp_path / "choice.json")
    report = read_json(tmp_path / "last/training.json")
    assert report["settings"]["epochs"] == 2 and report["checkpoints"] == read_json(reports[0])["checkpoints"]
    assert all(torch.equal(a, b) for a, b in zip(weights(tmp_path / "0").values(), weights(tmp_path / "last").values(), strict=True))


def test_a_point_of_a_grid_may_diverge(text, model, tmp_path):
    """Its outputs are written, with the reason, and the other point is chosen."""
    for number, rate in enumerate((1e30, 1e-3)):
        finetune(labelling_settings(learning_rate=rate), **files(text, model, tmp_path / str(number)), keep_diverged=True)
    lost, sound = (read_json(tmp_path / str(number) / "training.json") for number in range(2))
    assert lost["diverged"] and lost["handed_on"] == {} and lost.keys() == sound.keys() and not sound["diverged"]
    assert (tmp_path / "0/model/model.safetensors").exists() and (tmp_path / "0/curve.tsv").read_text().startswith("update\t")
    reports = tuple(tmp_path / str(number) / "training.json" for number in range(2))
    choice.main(reports, tmp_path / "choice.json", swept=("learning_rate",), settings=Choice(by="dev_score"))
    assert read_json(tmp_path / "choice.json")["chosen"] == 1
    with pytest.raises(Diverged):
        finetune(labelling_settings(learning_rate=1e30), **files(text, model, tmp_path / "not kept"))


def test_a_model_reads_as_the_chosen_point_was_finetuned(text, models, tmp_path):
    """Here from the encoder alone, which the grid chose, and not from both halves, its first value."""
    finetune(labelling_settings(parts="encoder", epochs=2), **files(text, models["mbart"], tmp_path / "chosen"))
    chosen = {"settings": {"parts": "encoder", "epochs": 2}, "checkpoints": "elsewhere"}
    (tmp_path / "choice.json").write_text(json.dumps({"seed": 1, "phases": {"finetune": chosen}}))
    for name, given in (("itself", {"settings": Labelling(parts="encoder")}), ("chosen by grid", {"choice": tmp_path / "choice.json"})):
        model, test = tmp_path / "chosen/model", (text / "dev.tsv",)
        head.predict(LABELLING, model, test, tmp_path / name, testsets=("en",), languages=("en",), train=text / "train.tsv", **given)
    one, other = ((tmp_path / name / "en.hyp").read_bytes() for name in ("itself", "chosen by grid"))
    assert one == other


def test_text_in_a_language_without_a_tag_can_be_learnt_from(text, models, tmp_path):
    settings = labelling_settings()
    settings.more_train, settings.more_dev = ["bg"], ["el"]
    given = files(text, models["mbart"], tmp_path)
    given |= {"train": (*given["train"], text / "translations.de.tsv"), "dev": (*given["dev"], text / "more_dev.de.tsv")}
    finetune(settings, **given)
    assert read_json(tmp_path / "training.json")["languages"] == ["en", "bg"]


def test_an_update_has_rows_of_one_length_and_the_last_of_any():
    rows = [([0] * length, [0]) for length in range(1, 1203)]
    batches = Batches(lambda epoch: rows, len(rows), 20, HeadSettings(batch_size=10), seed=1)
    updates = [[len(source) for source, _ in update] for update in batches]
    for epoch in (updates[start : start + 121] for start in range(0, len(updates), 121)):
        assert sorted(length for update in epoch for length in update) == list(range(1, 1203))
        # rows of a pool of 500 lie 2.4 apart, and those of the smaller one 6
        assert all(max(update) - min(update) < 300 for update in epoch[:-1])
    last = [length for update in updates[120::121] for length in update]
    assert len(last) == 2 * 20 and 300 < sum(last) / len(last) < 900


@pytest.mark.parametrize("family, parts", [("xlm-roberta", "both"), ("mbart", "encoder")])
def test_two_processes_agree_with_one(text, models, tmp_path, family, parts):
    """Also where a head reads the encoder alone: the decoder's weights never get a gradient, and several processes wait for all."""
    still = {"dropout": 0.0, "attention_dropout": 0.0, "batch_size": 7, "parts": parts}
    model = models[family]
    finetune(labelling_settings(**still), **files(text, model, tmp_path / "one"))
    finetune(labelling_settings(**{**still, "learning_rate": 1e-12}), **files(text, model, tmp_path / "start"))
    line = [sys.executable, *TORCHRUN, "workflow_scripts.tasks.head", "finetune", "--task", "labelling"]
    for name, path in files(text, model, tmp_path / "two").items():
        line += [f"--{name}", *map(str, path if isinstance(path, tuple) else [path])]
    # each process makes its half of an update in two parts
    settings = json.dumps(asdict(labelling_settings(**still, micro_batch=2, device="cpu")))
    line += ["--threads", "2", "--settings", settings]
    done = warm.run(line)
    assert done.returncode == 0, done.stderr[-3000:]
    assert read_json(tmp_path / "two/training.json")["processes"] == 2
    one, two, start = (weights(tmp_path / name) for name in ("one", "two", "start"))
    for name in (name for name in one if not name.endswith("key.bias")):  # which softmax does not see
        moved = float((one[name] - start[name]).abs().max())
        assert torch.allclose(one[name], two[name], atol=moved * 2e-2 + 1e-6), name


def test_a_share_of_the_updates_warms_up_and_adam_is_that_of_the_published_scripts():
    settings = phase_settings(Labelling(learning_rate=3e-5, warmup=0.1, looks=4), 250, 50)
    assert (settings.warmup_updates, settings.evaluate_every, settings.updates) == (25, 13, 250)
    assert settings.adam_betas == (0.9, 0.999) and settings.adam_eps == 1e-8
