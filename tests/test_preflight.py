"""What is found before a run starts: each thing that may be wrong, and the estimates."""

import json
import os
import stat
from pathlib import Path

import pytest
import torch
from models import manual_pairs, small_model
from test_config import DEFAULT, changed
from transformers import MBartConfig, MBartForConditionalGeneration

from workflow_scripts import config, partitions, preflight, trainer
from workflow_scripts.partitions import Nodes, check_job, gpus_in, gpus_of, minutes, read_partitions
from workflow_scripts.sizes import MBART_LARGE, Shape, gpu_gigabytes, training_memory
from workflow_scripts.stage import InputError
from workflow_scripts.training import Training


def found(raw: dict, about: str, jobs: dict | None = None) -> str:
    """What is said about one thing."""
    checked = config.load(raw)
    part = about.partition(".")[0].partition(" ")[0]
    findings = preflight.memory(checked, jobs or {}) if part == "memory" else getattr(preflight, part)(checked)
    return next(str(finding) for finding in findings if finding.about == about)


def test_nothing_is_wrong_with_the_demo():
    lines = {finding.about: str(finding) for finding in preflight.look_at(config.load(DEFAULT), {})}
    assert all(line.startswith("ok ") for line in lines.values()), lines
    assert {"corpora.help.train", "lexicons.unsupervised.gold", "backbones.bible.small.text.de", "memory of finetune", "disk"} <= set(lines)
    assert "35,922 pairs" in lines["corpora.help.train"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Files that are wrong, and a few that are right."""
    folder = tmp_path_factory.mktemp("preflight")
    german, english = manual_pairs(300)
    for name, lines in (("de", german), ("en", english), ("short.en", english[:299]), ("blank", [""] * 300)):
        (folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    (folder / "empty").touch()
    (folder / "empty.en").touch()
    (folder / "latin1").write_bytes("Grüße aus Köln.\n".encode("latin-1") * 300)
    (folder / "seed.txt").write_text("haus house\nhaus\n")
    (folder / "de.vec").write_text("2 3\nhaus 1 2 3\nbaum 1 2\n")
    (folder / "model").mkdir()
    small_model(folder / "model")
    for name, content in (("no-model", None), ("bert", {"model_type": "bert"})):
        (folder / name).mkdir()
        if content:
            (folder / name / "config.json").write_text(json.dumps(content))
            (folder / name / "model.safetensors").write_text("x")
            (folder / name / "tokenizer.json").write_text("{}")
    return folder


def moses(folder, de, en):
    return {"files": {"de": str(folder / de), "en": str(folder / en)}}


@pytest.mark.parametrize(
    "path, value, about, said",
    [
        ("corpora/help/train", lambda f: moses(f, "de", "nowhere"), "corpora.help.train", "nowhere: no such file; check the path"),
        ("corpora/help/train", lambda f: moses(f, "de", "short.en"), "corpora.help.train", "short.en ends after line 299"),
        ("corpora/help/train", lambda f: moses(f, "en", "de"), "corpora.help.train", "exchange the columns or files of de and en"),
        ("corpora/help/train", lambda f: moses(f, "latin1", "en"), "corpora.help.train", "latin1, line 1: not UTF-8"),
        ("corpora/help/train", lambda f: moses(f, "empty", "empty.en"), "corpora.help.train", "no pair with text on both sides in 0 lines"),
        ("corpora/help/dev", lambda f: moses(f, "blank", "en"), "corpora.help.dev", "no pair with text on both sides in 300 lines"),
        ("corpora/help/test/web", lambda f: moses(f, "de", "blank"), "corpora.help.test.web", "no pair with text on both sides"),
        ("corpora/help/train/columns/en", lambda f: 9, "corpora.help.train", "line 1: 4 column(s), but `columns` asks for column 9"),
        ("lexicons/unsupervised/gold/de-en", lambda f: str(f / "seed.txt"), "lexicons.unsupervised.gold", "line 2: expected two words"),
        ("lexicons/unsupervised/gold/de-en", lambda f: str(f / "empty"), "lexicons.unsupervised.gold", "empty: is empty"),
        ("lexicons/unsupervised/vectors/de", lambda f: str(f / "de.vec"), "lexicons.unsupervised.vectors.de", "line 3: 'baum' needs 3"),
        ("backbones/bible/small/text/de", lambda f: str(f / "nowhere"), "backbones.bible.small.text.de", "nowhere: no such file"),
        ("backbones/bible/small/text/de", lambda f: str(f / "de"), "backbones.bible.small.text.de", "has 300 lines, at least 1600"),
        ("backbones/bible", lambda f: {"kind": "hub", "model": str(f / "no-model")}, "backbones.bible.model", "no config.json is there"),
        ("backbones/bible", lambda f: {"kind": "hub", "model": str(f / "bert")}, "backbones.bible.model", "an mBART is needed"),
        (
            "backbones/bible",
            lambda f: {"kind": "hub", "model": str(f / "gone")},
            "backbones.bible.model",
            "neither a folder that is there nor",
        ),
        ("experiments/help-de-en/training/device", lambda f: "cuda", "memory of finetune", "device is cuda, but there is no GPU"),
        ("experiments/help-de-en/training/batch_tokens", lambda f: 10**7, "memory of pretext", "micro_batch_tokens to less than 10000000"),
        ("run/seeds", lambda f: list(range(10**6)), "disk", "make room"),
    ],
)
def test_each_thing_that_is_wrong_is_found(folder, monkeypatch, path, value, about, said):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    raw = changed(path, value(folder))
    if ".train" not in about:  # quick to read
        raw["corpora"]["help"]["train"] = moses(folder, "de", "en")
    line = found(raw, about)
    assert line.startswith("WRONG") and said in line


def test_everything_that_is_wrong_is_listed_at_once(capsys):
    raw = changed("corpora/help/train/file", "nowhere.tsv")
    raw["lexicons"]["unsupervised"]["gold"]["de-en"] = "nowhere.txt"
    with pytest.raises(InputError, match="2 things are wrong"):
        preflight.tell(preflight.look_at(config.load(raw), {}))
    said = capsys.readouterr().out
    assert said.count("WRONG") == 2 and "nowhere.tsv" in said and "nowhere.txt" in said and "\nok " in said


def test_a_model_in_a_folder_must_know_the_languages(folder):
    raw = changed("backbones/bible", {"kind": "hub", "model": str(folder / "model/model")})
    assert "its tokenizer knows de and en" in found(raw, "backbones.bible.model")
    raw["corpora"]["help"] |= {"languages": ["cs", "en"], "train": {"files": {"cs": str(folder / "de"), "en": str(folder / "en")}}}
    raw["experiments"]["help-de-en"]["source"] = "cs"
    raw["lexicons"]["unsupervised"]["gold"] = {}
    assert "has no tag cs_CZ for 'cs'" in found(raw, "backbones.bible.model")


def test_a_model_that_is_not_here_is_told_with_how_to_get_it(monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    raw = changed("backbones/bible", {"kind": "hub", "model": "nobody/mbart-large-cc25-of-nobody", "revision": "v1"})
    line = found(raw, "backbones.bible.model")
    assert line.startswith("WRONG") and "run `hf download nobody/mbart-large-cc25-of-nobody --revision v1` where there is network" in line
    raw["corpora"]["help"] |= {"languages": ["pl", "en"], "train": {"file": "x.tsv", "columns": {"pl": 1, "en": 2}}}
    raw["experiments"]["help-de-en"]["source"] = "pl"
    raw["lexicons"]["unsupervised"]["gold"] = {}
    assert "does not know pl" in found(raw, "backbones.bible.model")


def test_memory_is_held_against_what_the_jobs_ask_for():
    raw = changed("backbones/bible", {"kind": "hub", "model": "facebook/mbart-large-cc25"})
    raw["experiments"]["help-de-en"]["training"] |= {"batch_tokens": 8192}
    for job, verdict, said in (
        ({"gpu": 1, "gpu_model": "t4", "mem_mb": 64000}, "WRONG", "a GPU t4 has 16 GB"),
        ({"gpu": 1, "gpu_model": "a100", "mem_mb": 64000}, "ok", "a GPU a100 has 40 GB"),
        ({"gres": "gpu:h100:1", "mem_mb": 64000}, "ok", "a GPU h100 has 80 GB"),
        ({"gpu": 1, "slurm_partition": "gpu"}, "note", "a GPU of the partition has as much"),
        ({"slurm_partition": "cpu", "mem_mb": 8000}, "WRONG", "the profile's mem_mb is 8.0 GB"),
    ):
        line = found(raw, "memory of finetune", {"pretext": job, "finetune": job})
        assert line.startswith(verdict) and said in line, line


# ---------------------------------------------------------------------------------------------
# estimates


def mbart(shape: Shape, **changes) -> MBartForConditionalGeneration:
    names = {"encoder_attention_heads": 2, "decoder_attention_heads": 2, "decoder_ffn_dim": shape.encoder_ffn_dim}
    return MBartForConditionalGeneration(MBartConfig(**shape._asdict(), **names, **changes))


@pytest.mark.parametrize("shape", [MBART_LARGE, Shape(1000, 64, 256, 2, 3, 128)])
def test_parameters_are_counted_exactly(shape):
    with torch.device("meta"):
        assert mbart(shape).num_parameters() == shape.parameters


@pytest.mark.parametrize("loss", ["plain", "chunked"])
def test_memory_for_the_way_back_is_what_autograd_keeps(loss):
    shape, training = Shape(2000, 128, 512, 2, 3, 128), Training(batch_tokens=512, loss=loss, attention_dropout=0.0)
    network = mbart(shape, attention_dropout=0.0).train()
    weights = {p.untyped_storage().data_ptr() for p in network.parameters()}
    kept: dict[int, int] = {}

    def keep(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in weights:
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    ids = torch.randint(5, shape.vocab_size, (8, 64))
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        trainer.pick_loss(network, training, "float32")(network(input_ids=ids, decoder_input_ids=ids), ids)
    estimate = training_memory(shape, training, 0) - 1e9 - 16 * shape.parameters
    # of the plain loss's three numbers for each piece one is kept, two come and go
    estimate -= 512 * 8 * shape.vocab_size if loss == "plain" else 0
    assert sum(kept.values()) == pytest.approx(estimate, rel=0.1)


def test_an_update_is_shared_and_cut():
    shape = Shape(1000, 256, 1024, 6, 6, 512)
    whole, half, shared = (
        training_memory(shape, Training(batch_tokens=8192, micro_batch_tokens=micro), gpus)
        for micro, gpus in ((None, 1), (4096, 1), (None, 2))
    )
    fixed = training_memory(shape, Training(batch_tokens=1), 1)
    assert half == shared and (whole - fixed) / (half - fixed) == pytest.approx(2, rel=0.01)


def test_names_of_gpus():
    names = {"a100": 40, "nvidia_a100-sxm4-80gb": 80, "A100_80GB": 80, "h200": 141, "l40s": 48, "rtx_3090": 24, "mystery": None, "": None}
    assert {name: gpu_gigabytes(name) for name in names} == names


# ---------------------------------------------------------------------------------------------
# Slurm


def test_slurms_ways_of_writing():
    assert [minutes(limit) for limit in ("infinite", "2-00:00:00", "1:30:00", "45:00", "n/a")] == [float("inf"), 2880, 90, 45, float("inf")]
    assert gpus_in("gpu:a100:4(S:0-1),gpu:v100:2,mps:100") == {"a100": 4, "v100": 2} and gpus_in("gpu:3(IDX:0,2)") == {"": 3}
    assert gpus_in("(null)") == {} and gpus_in("gpu:a100") == {"a100": 1}
    assert gpus_of({"gres": "gpu:2"}) == (2, "") and gpus_of({"gpu": 1, "gpu_model": "a100"}) == (1, "a100") and gpus_of({}) == (0, "")


CLUSTER = {"cpu": [Nodes(120.0, 16, 64_000, {})], "gpu": [Nodes(1440.0, 32, 128_000, {"a100": 4}), Nodes(1440.0, 8, 500_000, {"v100": 2})]}


@pytest.mark.parametrize(
    "job, said",
    [
        ({"slurm_partition": "gup"}, "there is no partition 'gup'; .* cpu, gpu"),
        ({"slurm_partition": "cpu", "runtime": 121}, r"runtime 121 is more than cpu has \(120\)"),
        ({"slurm_partition": "cpu", "threads": 17}, r"threads 17 is more than cpu has \(16\)"),
        ({"slurm_partition": "gpu", "threads": 16, "mem_mb": 200_000}, r"mem_mb 200000 is more than gpu has \(128000\)"),
        ({"slurm_partition": "cpu", "gpu": 1}, r"GPUs 1 is more than cpu has \(0\)"),
        ({"slurm_partition": "gpu", "gpu": 2, "gpu_model": "h100"}, r"GPUs h100 2 is more than gpu has \(0\)"),
    ],
)
def test_a_job_that_no_node_can_take_is_told(job, said):
    with pytest.raises(InputError, match=said):
        check_job("finetune", job, CLUSTER)


def test_a_job_that_a_node_can_take():
    job = {"slurm_partition": "cpu,gpu", "gpu": 2, "gpu_model": "V100", "mem_mb": 400_000, "runtime": 1440, "threads": 8}
    assert check_job("finetune", job, CLUSTER) == "cpu,gpu" and check_job("scores", {"slurm_account": "x"}, CLUSTER) == "any partition"


@pytest.fixture
def commands(tmp_path, monkeypatch):
    """A place for commands that stand in for Slurm's; tests/slurm asks a real one."""
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    def add(name: str, says: str, status: int = 0) -> None:
        path: Path = tmp_path / name
        path.write_text(f"#!/bin/sh\ncat <<'END'\n{says}\nEND\nexit {status}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    return add


def test_what_the_profile_asks_of_slurm_is_looked_up(commands):
    commands("sinfo", "cpu|2:00:00|16|64000|(null)\ngpu|1-00:00:00|32+|128000+|gpu:a100:4(S:0-1)\ngpu|1-00:00:00|8|500000|gpu:v100:2")
    commands("sacctmgr", "physics\nlinguistics")
    assert read_partitions() == CLUSTER
    jobs = {
        "scores": {"slurm_partition": "cpu", "slurm_account": "Physics", "runtime": 60},
        "corpus": {"slurm_partition": "cpu", "slurm_account": "Physics"},
        "finetune": {"slurm_partition": "gpu", "slurm_account": "chemistry", "gpu": 8},
    }
    lines = [str(finding) for finding in preflight.slurm(jobs)]
    assert lines[1] == "ok     Slurm: cpu can take scores, corpus" and "ok     slurm_account: Physics" in lines
    assert "Slurm job finetune: GPUs 8 is more than gpu has (4)" in lines[0]
    assert any("chemistry is not yours; sacctmgr knows linguistics, physics" in line for line in lines)
    commands("sacctmgr", "You are not running a supported accounting_storage plugin", 1)
    assert any(line.startswith("note") and "no accounting" in line for line in map(str, preflight.slurm(jobs)))


def test_without_slurm_a_slurm_profile_is_told_so(monkeypatch):
    monkeypatch.setattr(partitions, "said", lambda *command: None)
    assert ["WRONG" in str(finding) and "login node" in str(finding) for finding in preflight.slurm({"x": {"slurm_partition": "a"}})] == [
        True
    ]
    assert list(preflight.slurm({"x": {"mem_mb": 5}})) == []


def test_a_run_goes_on_without_comets_model_and_is_told_so(folder):
    raw = changed("experiments/help-de-en/comet", {})
    (said,) = map(str, preflight.comet(config.load(raw)))
    assert said.startswith("note") and "hf download Unbabel/wmt22-comet-da" in said
    raw = changed("experiments/help-de-en/comet", {"model": str(folder / "model")})
    (said,) = map(str, preflight.comet(config.load(raw)))
    assert said.startswith("ok ")
