"""Backbones that are pretrained here: a small XLM-R, and pretraining that is continued."""

import math
import signal
from dataclasses import asdict

import pytest
import torch
import warm
from phases import assert_alike, assert_same, curve_of
from safetensors.torch import load_file
from test_backbone import flags, parallel, run, small
from test_checkpoints import run_until, same
from tiny_models import small_encoder
from transformers import AutoModel, AutoModelForMaskedLM, AutoTokenizer, XLMRobertaForMaskedLM

from workflow_scripts import registry
from workflow_scripts.models.tokenisation import load_codec
from workflow_scripts.models.tokenizer import word_starts
from workflow_scripts.noise.masking import Masking
from workflow_scripts.stage import InputError, checksums, read_json
from workflow_scripts.tasks import head
from workflow_scripts.tasks.classification import CLASSIFICATION, Classification
from workflow_scripts.training.backbone import Backbone
from workflow_scripts.training.job import TrainingJob
from workflow_scripts.training.pretraining import Text, objective_for
from workflow_scripts.training.pretraining_settings import Pretraining
from workflow_scripts.training.rows import MaskedText
from workflow_scripts.training.settings import Training
from workflow_scripts.training.too_long import Room

SHORT = Training(
    updates=12, batch_tokens=500, learning_rate=5e-3, warmup_updates=2, dropout=0.1, max_length=64, evaluate_every=4, log_every=1
)


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    """A folder with monolingual text, and a small XLM-R that was pretrained on it."""
    folder = tmp_path_factory.mktemp("encoder")
    parallel(folder)
    run(folder, Backbone(kind="small", family="xlmr", objective="mlm", small=small(folder)), task_text=(folder / "mono.de",))
    return folder


def further(folder, **changes) -> Backbone:
    text = {code: str(folder / f"mono.{code}") for code in ("de", "en")}
    return Backbone(kind="continued", from_="encoder", continued=Pretraining(text=text, dev_lines=20, training=SHORT), **changes)


def test_a_small_xlmr_has_the_published_layout_and_opens_in_transformers(encoder):
    folder, report = encoder / "out/model", read_json(encoder / "out/backbone.json")
    assert (report["objective"], report["family"]) == ("mlm", "xlm-roberta") and math.isfinite(report["mlm_loss"])
    losses = [float(row["dev_loss"]) for row in curve_of(encoder / "out") if row["dev_loss"]]
    assert losses[-1] < losses[0] and losses[-1] == pytest.approx(report["mlm_loss"], abs=1e-3)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    assert tokenizer.convert_tokens_to_ids(["<s>", "<pad>", "</s>", "<unk>", "<mask>"]) == [0, 1, 2, 3, len(tokenizer) - 1]
    assert len(tokenizer) == report["vocabulary"] == AutoModel.from_pretrained(folder).get_input_embeddings().num_embeddings
    assert isinstance(AutoModelForMaskedLM.from_pretrained(folder), XLMRobertaForMaskedLM)
    line = "Öffnen Sie die Datei <s> und drucken."
    codec = load_codec(folder)
    (row,) = codec.encode([line], "de")
    assert row == tokenizer(line.replace("<s>", "< s>"))["input_ids"]
    assert codec.decode(codec.encode(["Öffnen Sie die Datei."], "de")) == ["Öffnen Sie die Datei."]
    # a row may be as long as the shape says
    ids = torch.tensor([[0, *[5] * 510, 2]])
    assert AutoModel.from_pretrained(folder)(input_ids=ids).last_hidden_state.shape == (1, 512, 32)


def test_masked_rows_are_of_both_languages_and_new_in_each_epoch(encoder):
    codec = load_codec(encoder / "out/model")
    text = {"de": ["Öffnen Sie die Datei und drucken Sie sie.", "Das Fenster"], "en": ["Open the file and print it."]}
    rounds = MaskedText(text, codec, Room(64, leave_out=False), Masking(), seed=1)
    rows = [rounds.epoch(number) for number in (0, 1)]
    assert rounds.rows == 3 and rows[0] == rounds.epoch(0) != rows[1]
    whole = [row for code, lines in text.items() for row in codec.encode(lines, code)]
    for (read, labels), original in zip(rows[0], whole, strict=True):
        assert [label if label != -100 else i for i, label in zip(read, labels, strict=True)] == original
        assert labels[0] == labels[-1] == -100


@pytest.mark.parametrize("unit", ["word", "span"])
def test_masks_of_words_leave_no_piece_of_a_word_to_read(encoder, unit):
    codec = load_codec(encoder / "out/model")
    lines = ["Öffnen Sie die Datei und drucken Sie sie.", "Das Fenster im Vordergrund"]
    masking = Masking(rate=0.3, masked=1.0, replaced=0.0, unit=unit)
    starts, seen = word_starts(codec.tokenizer), 0
    for read, labels in MaskedText({"de": lines}, codec, Room(64, leave_out=False), masking, seed=1).epoch(0):
        for at in range(2, len(labels) - 1):
            original = read[at] if labels[at] == -100 else labels[at]
            if not starts[original]:
                seen += 1
                assert (labels[at] == -100) == (labels[at - 1] == -100)
    assert seen


def test_long_lines_have_rounds_for_what_is_read_of_them(tmp_path):
    block = Pretraining(training=Training(updates=10, batch_tokens=1000, max_length=50))
    text = Text({"en": ["one two three four five " * 40] * 20}), Text({"en": ["one two"] * 2})
    material = registry.entry("objective", "denoising").prepare(block, *text, 1, tmp_path)
    assert sum(name.startswith("round") for name in material.text) == math.ceil(10_000 / (20 * 50 + 2 * 2))


def test_a_language_whose_words_are_not_known_gets_no_more_rounds_than_its_letters_need(tmp_path):
    """What stands between two blanks is a clause in Khmer, so there are few words."""
    lines = {
        "km": "ឯកសារនេះត្រូវបានសរសេរជាភាសាខ្មែរសម្រាប់អ្នកប្រើប្រាស់ទាំងអស់។",
        "en": "This document has been written in Khmer for all of its users.",
    }
    found = {}
    for code, line in lines.items():
        block = Pretraining(training=Training(updates=10, batch_tokens=1000))
        text = Text({code: [line] * 40}), Text({code: [line] * 2})
        material = registry.entry("objective", "denoising").prepare(block, *text, 1, tmp_path / code)
        found[code] = len([name for name in material.text if name.startswith("round")])
    # 60 letters and signs, and 12 words
    assert found == {"km": math.ceil(10_000 / (42 * 60 // 4)), "en": math.ceil(10_000 / (42 * 12))}


def test_the_masking_decides_what_a_killed_job_goes_on_from(tmp_path):
    text = Text({"en": ["Open the file and print it."]})
    seen = set()
    for place, masking in enumerate((Masking(), Masking(rate=0.3), Masking(unit="word"))):
        material = registry.entry("objective", "mlm").prepare(Pretraining(masking=masking), text, text, 1, tmp_path / str(place))
        seen.add(tuple(checksums(material.text.values()).values()))
    assert len(seen) == 3


def test_every_weight_of_the_encoder_learns_with_either_loss(encoder, tmp_path):
    before = load_file(encoder / "out/model/model.safetensors")
    made = []
    for loss in ("chunked", "plain"):
        settings = further(encoder)
        settings.continued.training = Training(**{**asdict(SHORT), "updates": 2, "evaluate_every": 2, "loss": loss, "dropout": 0.0})
        (tmp_path / loss).mkdir()
        run(tmp_path / loss, settings, start=encoder / "out/model")
        made.append(load_file(tmp_path / loss / "out/model/model.safetensors"))
    # keys have no bias that matters, rows of the embeddings that no text reads stay: pieces that are only drawn, and padding
    assert [name for name in before if torch.equal(before[name], made[0][name]) and "key.bias" not in name] == []
    assert_alike(before, *made, 0.05)


def test_a_small_xlmr_is_finetuned_to_classify(encoder, tmp_path):
    lines = (encoder / "mono.en").read_text().splitlines()[:60]
    for part, some in (("train", lines[:40]), ("dev", lines[40:])):
        (tmp_path / f"{part}.tsv").write_text("".join(f"{('odd', 'even')[len(line) % 2]}\t{line}\t\n" for line in some))
    settings = Classification(batch_size=8, learning_rate=1e-3, max_length=64)
    outputs = [tmp_path / name for name in ("model", "curve.tsv", "training.json", "checkpoints")]
    finetuning = CLASSIFICATION.finetune_settings(language="en", labels=["odd", "even"], epochs=1, classification=settings)
    job = TrainingJob(encoder / "out/model", *outputs, threads=1)
    head.finetune(CLASSIFICATION, job, train=(tmp_path / "train.tsv",), dev=(tmp_path / "dev.tsv",), settings=finetuning)
    head.predict(
        CLASSIFICATION,
        tmp_path / "model",
        (tmp_path / "dev.tsv",),
        tmp_path,
        testsets=("x",),
        languages=("en",),
        threads=1,
        settings=settings,
    )
    assert read_json(tmp_path / "x.scores.json")["examples"] == 20
    assert set((tmp_path / "x.hyp").read_text().split()) <= {"odd", "even"}


def test_killed_while_continuing_it_ends_with_the_same_weights(encoder, tmp_path):
    for name in ("whole", "cut"):
        (tmp_path / name).mkdir()
    settings = further(encoder)
    report = run(tmp_path / "whole", settings, start=encoder / "out/model")
    assert report["objective"] == "mlm" and report["start"] == str(encoder / "out/model")
    line = [warm.python(), "-m", "workflow_scripts.training.backbone", *flags(tmp_path / "cut", settings, start=[encoder / "out/model"])]
    assert run_until(line, 6, signal.SIGKILL)[0] == -signal.SIGKILL
    assert run(tmp_path / "cut", settings, start=encoder / "out/model") == {**report, "provenance": report["provenance"]}
    whole, cut = (load_file(tmp_path / name / "out/model/model.safetensors") for name in ("whole", "cut"))
    assert_same(cut, whole)
    assert not same(whole, load_file(encoder / "out/model/model.safetensors"))
    assert (next(tmp_path.glob("cut/out/c/*/log.jsonl"))).read_text().count('"eval_loss"') == 3


def test_denoising_goes_on_from_a_small_mbart(tmp_path):
    parallel(tmp_path)
    first = run(tmp_path, Backbone(kind="small", small=small(tmp_path, training=SHORT)))
    start = (tmp_path / "out").rename(tmp_path / "first") / "model"
    report = run(tmp_path, further(tmp_path), start=start)
    assert report["objective"] == first["objective"] == "denoising" and report["vocabulary"] == first["vocabulary"]
    assert not same(load_file(tmp_path / "out/model/model.safetensors"), load_file(start / "model.safetensors"))
    with pytest.raises(InputError, match=r"objective mlm is not for mBART, which has a decoder; set objective: denoising"):
        run(tmp_path, further(tmp_path, objective="mlm"), start=start)


@pytest.mark.parametrize("kind", ["bert", "xlm-roberta"])
def test_a_published_encoder_keeps_its_head_where_another_backbone_goes_on_from_it(tmp_path, kind):
    parallel(tmp_path)
    run(tmp_path, Backbone(model=str(small_encoder(tmp_path, kind))), encoder_will_do=True, keep_head=True)
    start = (tmp_path / "out").rename(tmp_path / "first") / "model"
    settings = further(tmp_path)
    settings.continued.training = Training(**{**asdict(SHORT), "updates": 2, "evaluate_every": 2})
    report = run(tmp_path, settings, start=start)
    assert report["family"] == kind and math.isfinite(report["mlm_loss"])
    assert not same(load_file(tmp_path / "out/model/model.safetensors"), load_file(start / "model.safetensors"))


def test_objectives_belong_to_families():
    own = {"mbart": "denoising", "m2m100": "denoising", "xlmr": "mlm", "t5": "span-corruption", "mt5": "span-corruption"}
    assert {name: objective_for(None, registry.entry("family", name)) for name in own} == own
    assert objective_for("denoising", registry.entry("family", "mt5")) == "denoising"
    assert objective_for(None, registry.entry("family", "mt5"), small=True) == "denoising"  # whose vocabulary has no sentinels
    with pytest.raises(InputError, match=r"span-corruption is not for mBART, which has no sentinels; set objective: denoising or transl"):
        objective_for("span-corruption", registry.entry("family", "mbart"))
    with pytest.raises(InputError, match=r"there is no objective 'mml', did you mean 'mlm'\?"):
        objective_for("mml", registry.entry("family", "xlmr"))
