"""Phases that learn by an objective before the task: what they read, what they write, and what the task starts from."""

import json
import signal
from dataclasses import replace

import pytest
import warm
from phases import TINY, assert_same, finetune, phase_files
from safetensors.torch import load_file
from test_checkpoints import run_until
from tiny_models import small_encoder

from workflow_scripts.stage import InputError, read_json
from workflow_scripts.tasks.classification import Classification
from workflow_scripts.tasks.head_model import load_text_head
from workflow_scripts.training import training
from workflow_scripts.training.job import TrainingJob
from workflow_scripts.training.settings import Training

SETTINGS = Training(**TINY, updates=4, evaluate_every=4, checkpoint="last", precision="float32")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Text, and an mBART that can read it."""
    return phase_files(tmp_path_factory.mktemp("learning"))


def learn(folder, start, out, objective, codes=("de", "en"), settings=SETTINGS, **options):
    job = TrainingJob(start, *(out / name for name in ("model", "curve.tsv", "training.json", "checkpoints")), threads=1)
    text = {part: tuple(folder / f"{part}.{code}" for code in codes) for part in ("train", "dev")}
    given = {"objective_settings": json.dumps(options.pop("own", {})), **options}
    training.learn(job, objective=objective, languages=codes, **text, settings=settings, **given)
    return read_json(out / "training.json")


def test_pairs_are_translated_in_the_directions_that_are_asked_for(files, tmp_path):
    folder, model = files
    both = learn(folder, model, tmp_path / "both", "translation")
    one = learn(folder, model, tmp_path / "one", "translation", own={"direction": "many-to-one", "pivot": "en"})
    assert both["objective"] == one["objective"] == "translation" and both["start"] == str(model)
    assert both["rows"] == 2 * one["rows"] > 0 and both["unknown"]
    # the task goes on from it
    finetune(folder, tmp_path / "one/model", tmp_path / "task", SETTINGS)


@pytest.mark.parametrize("documents", [False, True])
def test_of_documents_too_long_is_what_was_said(files, tmp_path, documents):
    """Sentences that are too long are left out, documents are cut."""
    folder, model = files
    short = replace(SETTINGS, max_length=24)
    whole, report = (
        learn(folder, model, tmp_path / str(one.max_length), "translation", settings=one, documents=documents) for one in (SETTINGS, short)
    )
    assert report["too_long"]["are"] == ("cut" if documents else "left out")
    long = sum(text["too_long"] for text in report["too_long"]["train"])
    assert long > 0 and (whole["rows"] == report["rows"]) == documents


def test_two_sides_are_lines_for_an_objective_of_one_language(files, tmp_path):
    folder, model = files
    sides = [("de", "en"), ("de",), ("en",)]
    both, german, english = (learn(folder, model, tmp_path / "-".join(codes), "denoising", codes)["rows"] for codes in sides)
    assert both == german + english


@pytest.mark.parametrize(("objective", "codes"), [("mlm", ("en",)), ("veco", ("de", "en"))])
def test_a_head_is_put_on_what_an_encoder_has_learnt(files, tmp_path, objective, codes):
    folder, _ = files
    start = small_encoder(tmp_path, "xlm-roberta")
    learn(folder, start, tmp_path / "out", objective, codes)
    network = load_text_head(tmp_path / "out/model", ["a", "b"], Classification(), 1)
    assert (tmp_path / "out/model/bart").is_dir() == (objective == "veco")
    name = "roberta.embeddings.word_embeddings.weight"
    assert network.state_dict()[name].equal(load_file(tmp_path / "out/model/model.safetensors")[name])


def test_an_objective_is_refused_for_other_families(files, tmp_path):
    folder, model = files
    with pytest.raises(InputError, match="objective mlm is not for mBART, which has a decoder; set objective: denoising or translation"):
        learn(folder, model, tmp_path, "mlm")
    with pytest.raises(InputError, match="objective translation has no setting 'masking'; there is direction, pivot"):
        learn(folder, model, tmp_path, "translation", own={"masking": {}})


def test_a_phase_that_is_killed_goes_on(files, tmp_path):
    folder, model = files
    settings = {**TINY, "log_every": 1, "updates": 12, "evaluate_every": 3, "checkpoint": "last"}
    options = {"objective": "translation", "languages": ["de", "en"], "start": model, "threads": 1, "settings": json.dumps(settings)}
    options |= {part: [folder / f"{part}.{code}" for code in ("de", "en")] for part in ("train", "dev")}

    def line(out):
        files = {"model": out / "model", "curve": out / "curve.tsv", "report": out / "training.json", "checkpoints": out / "checkpoints"}
        given = [(f"--{name}", *(value if isinstance(value, list) else [value])) for name, value in {**options, **files}.items()]
        return [warm.python(), "-m", "workflow_scripts.training.training", "learn", *(str(part) for each in given for part in each)]

    assert run_until(line(tmp_path / "cut"), 5, signal.SIGKILL)[0] == -signal.SIGKILL
    assert not (tmp_path / "cut/model").exists()
    done = [warm.run(line(tmp_path / name)) for name in ("cut", "whole")]
    assert "checkpoint-3" in done[0].stdout and "checkpoint-3" not in done[1].stdout.split("\n")[0], done[0].stderr[-2000:]
    assert_same(*(load_file(tmp_path / name / "model/model.safetensors") for name in ("cut", "whole")))
