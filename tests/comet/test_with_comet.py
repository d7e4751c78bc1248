"""COMET's scores against COMET itself, in its own environment: make test-comet."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from tiny_models import manual_pairs
from workflow.test_workflow import ROOT, TINY, snakemake, write_config

from workflow_scripts import environment
from workflow_scripts.stage import read_json
from workflow_scripts.storage import checksum

ENVIRONMENT = Path("results/environments/comet.json")
SIDES = ("sources", "hypotheses", "references")


@pytest.fixture(scope="session")
def python():
    """COMET's Python. The rule makes its environment where a run in this clone would, once."""
    snakemake(ROOT, str(ENVIRONMENT), "--cores", "1", "--nolock")
    made = read_json(ENVIRONMENT)
    assert made["python"], made["reason"]
    return Path(made["python"])


@pytest.fixture(scope="session")
def files(python, tmp_path_factory):
    """Sixty sentences of the manual, every third word of the hypotheses another; and a hub's cache with tiny models."""
    folder = tmp_path_factory.mktemp("comet")
    sources, references = manual_pairs(60)
    hypotheses = [" ".join(word if i % 3 else "Fenster" for i, word in enumerate(line.split())) for line in references]
    write(folder, sources, hypotheses, references)
    write(folder / "reversed", *(side[::-1] for side in (sources, hypotheses, references)))
    call(folder, python, "tests/comet/tiny.py", "make", folder / "references")
    return folder


def write(folder, *sides):
    folder.mkdir(exist_ok=True)
    for name, lines in zip(SIDES, sides, strict=True):
        (folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def call(files, *command, cache="hub"):
    """What a command says, without network, with the cache of models of the test."""
    offline = {"HF_HUB_CACHE": str(files / cache), "HF_HUB_OFFLINE": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run([*map(str, command)], env={**os.environ, **offline}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


def scored(files, model, folder="", cache="hub", **settings):
    """The scores as the rule has them made: by this Python, which passes on to COMET's."""
    paths = [part for side in SIDES for part in (f"--{side}", files / folder / side)]
    output = files / "scores.json"
    block = json.dumps({"model": str(model), "device": "cpu", **settings})
    stage = [sys.executable, "-m", "workflow_scripts.evidence.comet", *paths, "--output", output]
    call(files, *stage, "--environment", ENVIRONMENT, "--threads", "1", "--settings", block, cache=cache)
    return read_json(output)


@pytest.fixture(scope="session")
def regression(files):
    """The stage's scores with a model from the cache."""
    return scored(files, "tiny/regression")


@pytest.fixture(scope="session")
def unified(files, tmp_path_factory):
    """The same with another kind of model, through Snakemake, from ready-made texts."""
    folder = tmp_path_factory.mktemp("run")
    (folder / "manual.tsv").touch()
    results = folder / "results"
    target = results / "runs/tiny/csr/seed1/pages.comet.json"
    texts = (results / "corpora/tiny.en-de/test/pages.de", target.with_name("pages.hyp"), results / "corpora/tiny.en-de/test/pages.en")
    for side, path in zip(SIDES, texts, strict=True):
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(files / side, path)
    (results / "environments").symlink_to(ENVIRONMENT.parent.absolute())
    content = {**TINY, "experiments": {"tiny": {**TINY["experiments"]["tiny"], "comet": {"model": "tiny/unified", "device": "cpu"}}}}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_HUB_CACHE", str(files / "hub"))
        patch.setenv("HF_HUB_OFFLINE", "1")
        arguments = ["--configfile", "config.yaml", write_config(folder, content), "--cores", "1"]
        snakemake(folder, str(target.relative_to(folder)), *arguments)
    return read_json(target)


def in_cache(files, name):
    return next((files / f"hub/models--tiny--{name}/snapshots").iterdir())


def test_the_environment_is_the_lock(python):
    lock = [line for line in Path("envs/comet.txt").read_text().splitlines() if not line.startswith("#")]
    listed = subprocess.run([python, "-m", "pip", "list", "--format=freeze"], capture_output=True, text=True).stdout
    installed = {line.replace("+cpu", "") for line in listed.splitlines() if not line.startswith("pip==")}
    assert {line.lower().replace("_", "-") for line in installed} == {line.lower().replace("_", "-") for line in lock}


def test_the_environment_is_made_once(python):
    before = (python.parents[1] / "complete").stat().st_mtime_ns
    environment.main(Path("envs/comet.txt"), ENVIRONMENT)
    assert (python.parents[1] / "complete").stat().st_mtime_ns == before and read_json(ENVIRONMENT)["python"] == str(python)


@pytest.mark.parametrize("kind", ["regression", "unified"])
def test_scores_are_comets_own(python, files, request, kind):
    found = request.getfixturevalue(kind)
    checkpoint = in_cache(files, kind) / "checkpoints/model.ckpt"
    theirs = json.loads(call(files, python, "tests/comet/tiny.py", "predict", checkpoint, *(files / side for side in SIDES)))
    assert found["segments"] == theirs and max(theirs) - min(theirs) > 0.05
    assert found["value"] == pytest.approx(sum(theirs) / 60) and found["sentences"] == 60 and found["reason"] is None
    assert found["signature"] == f"model:tiny/{kind}|revision:{in_cache(files, kind).name}|precision:fp32|version:2.2.7"
    assert found["provenance"]["versions"]["unbabel-comet"] == "2.2.7"


def test_the_command_line_of_comet_says_the_same_in_half_precision(python, files, regression):
    texts = [part for flag, side in zip("str", SIDES, strict=True) for part in (f"-{flag}", files / side)]
    model = ["--model", in_cache(files, "regression") / "checkpoints/model.ckpt"]
    said = call(files, python.parent / "comet-score", *texts, *model, "--gpus", "0", "--only_system")
    assert float(said.split()[-1]) == pytest.approx(regression["value"], abs=5e-3)


def test_neither_order_nor_batches_matter(files, regression):
    other = scored(files, "tiny/regression", "reversed", batch_size=7)
    assert other["segments"][::-1] == pytest.approx(regression["segments"], abs=1e-5)
    assert other["value"] == pytest.approx(regression["value"], abs=1e-5)


def test_a_folder_and_its_encoder_need_no_hub(files, regression):
    folder = in_cache(files, "regression")
    found = scored(files, folder, cache="empty", encoder=str(in_cache(files, "encoder")))
    assert found["segments"] == regression["segments"]
    assert f"revision:sha256-{checksum(folder / 'checkpoints/model.ckpt')[:12]}|" in found["signature"]


def test_what_is_missing_is_named_with_the_way_out(files):
    model = scored(files, "tiny/regression", cache="empty")
    assert model["value"] is model["segments"] is model["signature"] is None and "hf download tiny/regression" in model["reason"]
    encoder = scored(files, in_cache(files, "regression"), cache="empty")
    assert encoder["value"] is None and "hf download tiny/encoder" in encoder["reason"]


class Surprise:
    def __reduce__(self):
        return (print, ("a checkpoint's code has run",))


@pytest.mark.parametrize("change, said", [("weights", "not in the checkpoint"), ("object", "Weights only load failed")])
def test_a_checkpoint_that_cannot_be_trusted_is_refused(files, change, said):
    folder = files / change
    shutil.copytree(in_cache(files, "regression"), folder)
    checkpoint = torch.load(folder / "checkpoints/model.ckpt", weights_only=True)
    if change == "weights":
        del checkpoint["state_dict"]["estimator.ff.0.weight"]
    else:
        checkpoint["surprise"] = Surprise()
    torch.save(checkpoint, folder / "checkpoints/model.ckpt")
    found = scored(files, folder)
    assert found["value"] is None and said in found["reason"]
