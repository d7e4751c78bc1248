"""Settings of the measurement of speed; the measurement itself runs in `tests/workflow/test_sga.py`."""

import contextlib
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
import yaml
from sacrebleu import BLEU
from tiny_models import small_model

from workflow_scripts.evidence import scores, speed
from workflow_scripts.evidence.speed import Speed
from workflow_scripts.models import engines
from workflow_scripts.models.decoding import Decoding
from workflow_scripts.models.search import Hypothesis
from workflow_scripts.models.tokenisation import load_codec
from workflow_scripts.report.tradeoff import points
from workflow_scripts.run import arms
from workflow_scripts.run.config import load
from workflow_scripts.run.jobs import Job
from workflow_scripts.stage import InputError, read_json
from workflow_scripts.tasks.plan import Plans

DOCUMENT = "Öffnen Sie die Datei. </s> Schließen Sie das Fenster."


@pytest.mark.parametrize(
    "settings, said",
    [
        ({"beams": [1, 0]}, "beams.1"),
        ({"iterations": [-1]}, "iterations.0"),
        ({"alignment_iterations": [2, 0]}, "alignment_iterations.1"),
        ({"repeats": 0}, "repeats"),
    ],
)
def test_beams_and_iterations_have_limits(settings, said):
    with open("config.yaml", encoding="utf-8") as file:
        raw = yaml.safe_load(file)
    raw["experiments"]["help-de-en"]["speed"] = settings
    with pytest.raises(InputError, match=rf"speed\.{said}: input should be greater than or equal to"):
        load(raw)


def test_lengths_are_those_of_the_experiment(tmp_path):
    """So that what is written, and its scores, are what decoding writes with the same beam."""
    raw = yaml.safe_load(Path("config.yaml").read_text(encoding="utf-8"))
    raw["experiments"]["help-de-en"] |= {"speed": {}, "decoding": {"max_length": 30, "min_length": 4, "length_penalty": 2.0}}
    flags = arms.lengths_flags(Job(Plans(load(raw)), SimpleNamespace(experiment="help-de-en")))
    assert flags == ["--max-length=30", "--min-length=4", "--length-penalty=2.0"]
    found = speed.ways(small_model(tmp_path), Speed(device="cpu"), Decoding(max_length=30, min_length=4, length_penalty=2.0))
    assert {(way.settings.max_length, way.settings.min_length, way.settings.length_penalty) for way in found} == {(30, 4, 2.0)}


def test_documents_are_read_as_such(tmp_path, monkeypatch):
    """`</s>` stands between their sentences as it does in decoding; in other text it is plain text."""
    read = []
    monkeypatch.setattr(speed, "load_codec", lambda *given: read.append(load_codec(*given)) or read[-1])
    source, target = tmp_path / "source.de", tmp_path / "target.en"
    source.write_text(DOCUMENT + "\n", "utf-8")
    target.write_text("Open the file.\n", "utf-8")
    common = {"arms": ("finetune",), "languages": ("de", "en"), "max_length": 20}
    for documents in (True, False):
        settings = Speed(repeats=1, beams=[1], device="cpu")
        speed.main(tmp_path / "speed.json", (small_model(tmp_path),), source, target, documents=documents, settings=settings, **common)
        assert len(read_json(tmp_path / "speed.json")["rows"]) == 4
    ends = [codec.encode([DOCUMENT], "de", 99)[0].count(codec.tokenizer.eos_token_id) for codec in read]
    assert ends == [2, 1]


def writing(text, **about):
    """A `translator` that writes the same for each line, and says this of it."""

    def translate(lines, *_):
        return [[Hypothesis(-1.0, text)]] * len(lines)

    translate.about = about
    return lambda *given: contextlib.nullcontext(translate)


def test_a_way_that_leaves_sentences_to_another_is_not_timed(tmp_path, monkeypatch, capsys):
    source = tmp_path / "source.de"
    source.write_text("Öffnen Sie die Datei.\n", "utf-8")
    monkeypatch.setattr(speed, "translator", writing("x", by_generate=1))
    wanted = {"languages": ("de", "en"), "settings": Speed(repeats=1, beams=[1], device="cpu")}
    speed.main(tmp_path / "speed.json", (small_model(tmp_path),), source, source, arms=("finetune",), **wanted)
    assert (
        read_json(tmp_path / "speed.json")["rows"] == []
        and read_json(tmp_path / "speed.json")["not_timed"]
        == {"finetune": dict.fromkeys(("generate, beam 1", "CTranslate2, beam 1"), "it leaves sentences to generate")}
        and "leaves sentences to generate, so it is not timed" in capsys.readouterr().out
    )


def test_a_metric_that_cannot_be_made_leaves_the_time_and_the_other(tmp_path, monkeypatch):
    def fails(tokenize, lowercase):
        if tokenize == "flores200":
            raise OSError("no network")
        return BLEU(tokenize=tokenize, lowercase=lowercase)

    monkeypatch.setattr(scores, "BLEU", fails)
    source, target = tmp_path / "source.de", tmp_path / "target.th"
    source.write_text("Öffnen Sie die Datei.\n", "utf-8")
    target.write_text("เปิดไฟล์\n", "utf-8")
    monkeypatch.setattr(speed, "translator", writing("เปิด"))
    given = {"arms": ("finetune",), "languages": ("de", "th"), "settings": Speed(repeats=1, beams=[1], device="cpu")}
    found = {}
    for tokenize in ("", "char"):
        speed.main(tmp_path / "speed.json", (small_model(tmp_path),), source, target, tokenize=tokenize, **given)
        found[tokenize] = read_json(tmp_path / "speed.json")
    assert [*found[""]["failed"]] == ["BLEU"] and "no network" in found[""]["failed"]["BLEU"] and not found["char"]["failed"]
    assert all(row["BLEU"] is None and row["chrF"] > 0 and row["sentences_per_second"] > 0 for row in found[""]["rows"])
    assert all(row["BLEU"] is not None for row in found["char"]["rows"])
    (series,) = points({(row["arm"], "one"): row for row in found[""]["rows"]}, "BLEU")
    assert series["lines"] == [[]]


def test_a_metric_that_fails_while_it_scores_leaves_the_time_and_the_other(tmp_path, monkeypatch, capsys):
    calls = []

    def fails(metric, written, references):
        calls.append(metric)
        if len(calls) == 2:  # the second kind of batch
            raise OSError("its program stopped")
        return SimpleNamespace(score=1.0)

    monkeypatch.setattr(BLEU, "corpus_score", fails)
    source, target = tmp_path / "source.de", tmp_path / "target.en"
    for path in (source, target):
        path.write_text("Öffnen Sie die Datei.\n", "utf-8")
    monkeypatch.setattr(speed, "translator", writing("open"))
    given = {"arms": ("finetune",), "languages": ("de", "en"), "settings": Speed(repeats=1, beams=[1], device="cpu")}
    speed.main(tmp_path / "speed.json", (small_model(tmp_path),), source, target, **given)
    found = read_json(tmp_path / "speed.json")
    assert [*found["failed"]] == ["BLEU"] and found["metrics"].count("BLEU") == 1
    assert all(row["BLEU"] is None and row["chrF"] is not None for row in found["rows"]) and len(calls) == len(found["rows"])
    assert "BLEU was not measured: " in capsys.readouterr().err


def test_an_engine_that_is_not_there_leaves_the_others_to_be_timed(tmp_path, monkeypatch):
    source = tmp_path / "source.de"
    source.write_text("Öffnen Sie die Datei.\n", "utf-8")
    monkeypatch.setattr(speed, "pick_device", lambda wanted: torch.device("cuda"))
    monkeypatch.setattr(engines, "why_not_on_gpu", lambda: "no library; set engine: huggingface")
    monkeypatch.setattr(speed, "chip", lambda device: "a GPU")
    monkeypatch.setattr(speed, "translator", writing("x"))
    wanted = {"languages": ("de", "en"), "settings": Speed(repeats=1, beams=[1])}
    speed.main(tmp_path / "speed.json", (small_model(tmp_path),), source, source, arms=("finetune",), **wanted)
    found = read_json(tmp_path / "speed.json")
    assert {row["way"] for row in found["rows"]} == {"generate, beam 1"}
    assert found["not_timed"] == {"finetune": {"CTranslate2, beam 1": "no library; set engine: huggingface"}}
