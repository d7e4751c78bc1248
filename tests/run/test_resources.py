"""What preflight says of memory, disk and what the profile asks of Slurm."""

import copy
import json
import re
from collections import Counter
from pathlib import Path

import pytest
from configurations import DEFAULT, changed, planned
from looks import found
from test_partitions import CLUSTER
from tiny_decoders import small_decoder

from workflow_scripts.run import findings, model_findings, partitions, resources
from workflow_scripts.run.findings import gigabytes
from workflow_scripts.stage import read_json
from workflow_scripts.training.settings import SHARDED_TOKENS

pytestmark = pytest.mark.usefixtures("no_cluster")


def test_what_cannot_be_written_is_wrong(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("results").symlink_to("nowhere")
    (found,) = resources.disk(planned(changed("corpora/help/seed", 1)))
    assert found.verdict == "WRONG" and "a link to nowhere" in found.said


def test_memory_is_held_against_what_the_jobs_ask_for():
    raw = changed("backbones/bible", {"kind": "hub", "model": "facebook/mbart-large-cc25"})
    raw["experiments"]["help-de-en"]["training"] |= {"batch_tokens": 8192, "micro_batch_tokens": None}
    for job, verdict, said in (
        ({"gpu": 1, "gpu_model": "t4", "mem_mb": 64000}, "WRONG", "a GPU t4 has 16 GB"),
        ({"gpu": 1, "gpu_model": "a100", "mem_mb": 64000}, "ok", "a GPU a100 has 40 GB"),
        ({"gres": "gpu:h100:1", "mem_mb": 64000}, "ok", "a GPU h100 has 80 GB"),
        ({"gpu": 1, "slurm_partition": "gpu"}, "note", "a GPU of the partition has as much"),
        ({"slurm_partition": "cpu", "mem_mb": 8000}, "WRONG", "the profile's mem_mb is 8.0 GB"),
        ({"slurm_partition": "cpu", "threads": 4, "mem_mb_per_cpu": 2000}, "WRONG", "the profile's mem_mb_per_cpu × CPUs is 8.0 GB"),
    ):
        line = found(raw, "memory of finetune", {"pretext": job, "finetune": job})
        assert line.startswith(verdict) and said in line, line
    raw["experiments"]["help-de-en"]["training"] |= {"micro_batch_tokens": "auto"}
    line = found(raw, "memory of finetune", {"finetune": {"gpu": 1, "gpu_model": "t4", "mem_mb": 64000}})
    assert line.startswith("ok") and "so it goes through it in parts" in line


@pytest.mark.parametrize(
    "at_once, verdict, said", [(1, None, ""), (4, "ok", "4 at once need about"), (12, "WRONG", "set --resources gpu=")]
)
def test_trainings_that_share_a_gpu_need_its_memory_together(monkeypatch, at_once, verdict, said):
    raw = changed("backbones/bible", {"kind": "hub", "model": "facebook/mbart-large-cc25"})
    raw["experiments"]["help-de-en"]["training"] |= {"batch_tokens": 8192}
    monkeypatch.setattr(resources, "gpu_here", lambda: 140e9)
    shared = [finding for finding in resources.memory(planned(raw), {}, at_once) if finding.about == "shared GPU, finetune"]
    assert [finding.verdict for finding in shared] == [verdict] * bool(verdict) and all(said in finding.said for finding in shared)
    if verdict == "WRONG":
        # what is advised fits
        room = int(re.search(r"gpu=(\d+)", shared[0].said)[1])
        (again,) = (finding for finding in resources.memory(planned(raw), {}, room) if finding.about == "shared GPU, finetune")
        assert again.verdict == "ok"
        assert "12 at once" in shared[0].said and "140 GB" in shared[0].said


def test_twelve_trainings_of_a_decoder_of_270_million_weights_are_too_many(tmp_path, monkeypatch):
    """On an H200, whose memory they filled until one of them ran out."""
    shape = {"hidden_size": 640, "intermediate_size": 2048, "num_hidden_layers": 18, "num_attention_heads": 4, "num_key_value_heads": 1}
    gemma = {
        "model_type": "gemma3_text",
        "architectures": ["Gemma3ForCausalLM"],
        "vocab_size": 262_144,
        "head_dim": 256,
        "max_position_embeddings": 32_768,
        **shape,
    }
    (tmp_path / "config.json").write_text(json.dumps(gemma), encoding="utf-8")
    raw = changed("backbones/bible", {"kind": "hub", "model": str(tmp_path)})
    raw["experiments"]["help-de-en"]["training"] |= {"batch_tokens": 8_000, "adapter": {"kind": "lora"}}
    monkeypatch.setattr(resources, "gpu_here", lambda: 141e9)
    (finding,) = (each for each in resources.memory(planned(raw), {}, 12) if each.about == "shared GPU, finetune")
    assert finding.verdict == "WRONG" and "12 at once need about 114 GB" in finding.said and "gpu=11" in finding.said


def test_the_phase_that_will_not_fit_is_reported_and_not_a_larger_one_that_goes_in_parts():
    raw = changed("backbones/bible", {"kind": "hub", "model": "facebook/mbart-large-cc25"})
    raw["experiments"]["help-de-en"]["training"] |= {"batch_tokens": 30_000, "micro_batch_tokens": 30_000}
    raw["experiments"]["more"] = {"like": "help-de-en", "training": {"batch_tokens": 40_000, "micro_batch_tokens": "auto"}}
    raw["run"]["experiments"] = ["help-de-en", "more"]
    line = found(raw, "memory of finetune", {"finetune": {"gpu": 1, "gpu_model": "a100", "mem_mb": 640_000}})
    assert line.startswith("WRONG") and "experiments.help-de-en.training" in line


def test_a_node_needs_the_memory_of_its_own_gpus_alone(monkeypatch):
    monkeypatch.setattr(resources, "_text_bytes", lambda corpus: 5e9)
    job = {"gpu": 16, "gpu_model": "a100", "mem_mb": 144_000}
    about = "node memory of finetune"
    assert "ask for more" in found(DEFAULT, about, {"finetune": job})
    reported = [finding.about for finding in resources.memory(planned(DEFAULT), {"finetune": {**job, "nodes": 2}})]
    assert "memory of finetune" in reported and about not in reported


def test_training_shares_its_updates_among_gpus_and_each_process_needs_memory_of_the_node(monkeypatch):
    raw = changed("backbones/bible/small/training/batch_tokens", 100_000)
    raw["experiments"]["help-de-en"]["training"] |= {"batch_tokens": 100_000}
    needs = {}
    for gpus in (1, 8):
        jobs = {rule: {"gpu": gpus, "gpu_model": "a100", "mem_mb": 6000} for rule in ("backbone", "finetune")}
        needs[gpus] = [found(raw, f"memory of {rule}", jobs).partition(" for ")[0] for rule in jobs]
    assert needs[1][0] != needs[8][0] and needs[1][1] != needs[8][1]
    for rule in jobs:
        assert "beside its GPUs, but the profile's mem_mb is 6.0 GB" in found(raw, f"node memory of {rule}", jobs)
    # each process holds the text as well
    monkeypatch.setattr(resources, "_text_bytes", lambda corpus: 4e9)
    messages = [found(raw, f"node memory of {rule}", jobs) for rule in ("backbone", "finetune")]
    assert "about 16 GB" in messages[0] and "about 80 GB" in messages[1]
    raw["backbones"]["bible"]["small"]["bitext"] = ["help"]
    assert "about 80 GB" in found(raw, "node memory of backbone", jobs)


@pytest.mark.parametrize(
    "model, settings, job, noted",
    [
        ("facebook/mbart-large-cc25", {}, {}, True),
        ("facebook/mbart-large-cc25", {"precision": "bfloat16"}, {}, False),
        ("facebook/mbart-large-cc25", {"precision": "float32"}, {}, False),
        ("facebook/mbart-large-cc25", {}, {"gpu": 1}, False),
        ("facebook/mbart-large-cc25", {}, {"slurm_partition": "cpu"}, False),
        (None, {}, {}, False),
    ],
)
def test_large_models_are_advised_to_learn_in_what_the_processor_multiplies_fast(monkeypatch, model, settings, job, noted):
    raw = changed("backbones/bible", {"kind": "hub", "model": model}) if model else copy.deepcopy(DEFAULT)
    raw["experiments"]["help-de-en"]["training"] |= settings
    jobs = {rule: job for rule in ("pretext", "finetune")}
    monkeypatch.setattr(resources, "multiplies_in_bfloat16", lambda: False)
    assert not [*resources.precision(planned(raw), jobs)]
    monkeypatch.setattr(resources, "multiplies_in_bfloat16", lambda: True)
    found = [*resources.precision(planned(raw), jobs)]
    assert [(each.verdict, each.about) for each in found] == [("note", "experiments.help-de-en.training")] * noted


def test_only_what_this_run_would_write_is_taken_off(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("help-de-en/csr/seed1", "help-de-en/csr/seed2", "help-de-en/csr-other/seed1", "other/csr/seed1"):
        folder = Path("results/runs", name)
        folder.mkdir(parents=True)
        (folder / "model").write_bytes(bytes(10**8))
    assert "of which 0.1 GB are there" in found(changed("run/seeds", [1]), "disk")
    (Path("results/runs/help-de-en/csr/seed1") / "checkpoint of earlier settings").write_bytes(bytes(10**9))
    said = found(changed("run/seeds", [1]), "disk")
    # no more than the run needs
    assert re.search(r"about (\S+ GB) for a whole run, of which \1 are there", said)


def test_numbers_of_bytes_are_written_in_units_that_fit():
    assert [gigabytes(size) for size in (3e6, 49e6, 51e6, 2.34e9, 4.2e10)] == ["3 MB", "49 MB", "0.1 GB", "2.3 GB", "42 GB"]


def test_what_the_profile_asks_of_slurm_is_looked_up(commands):
    commands("sinfo", "cpu|2:00:00|16|64000|(null)\ngpu|1-00:00:00|32+|128000+|gpu:a100:4(S:0-1)\ngpu|1-00:00:00|8|500000|gpu:v100:2")
    commands("sacctmgr", "physics\nlinguistics")
    assert partitions.read_partitions() == CLUSTER
    jobs = {
        "scores": {"slurm_partition": "cpu", "slurm_account": "Physics", "runtime": 60},
        "corpus": {"slurm_partition": "cpu", "slurm_account": "Physics"},
        "finetune": {"slurm_partition": "gpu", "slurm_account": "chemistry", "gpu": 8},
        "backbone": {"slurm_partition": "gpu", "gpu": 8, "nodes": 2},
    }
    lines = [str(finding) for finding in resources.slurm(jobs)]
    assert lines[1].startswith("WRONG  Slurm job backbone: nodes 2: Snakemake's plugin starts a job on one node alone; set nodes: 1")
    assert lines[2] == "ok     Slurm: cpu can take scores, corpus" and "ok     slurm_account: Physics" in lines
    assert "Slurm job finetune: GPUs 8 is more than gpu has (4)" in lines[0]
    assert any("chemistry is not yours; sacctmgr knows linguistics, physics" in line for line in lines)
    commands("sacctmgr", "You are not running a supported accounting_storage plugin", 1)
    assert any(line.startswith("note") and "no accounting" in line for line in map(str, resources.slurm(jobs)))


def test_the_gpus_of_a_partition_with_one_model_are_known(commands):
    commands("sinfo", "cpu|2:00:00|16|64000|(null)\ngpu|1-00:00:00|32|64000|gpu:t4:4\nmixed|1:00|8|64000|gpu:t4:1,gpu:a100:1")
    raw = changed("backbones/bible", {"kind": "hub", "model": "facebook/mbart-large-cc25"})
    raw["experiments"]["help-de-en"]["training"] |= {"batch_tokens": 8192, "micro_batch_tokens": None}
    for partition, said in (("gpu", "but a GPU t4 has 16 GB"), ("mixed", "of the partition has as much")):
        assert said in found(raw, "memory of finetune", {"finetune": {"gpu": 1, "slurm_partition": partition}})
    # as many as are asked for, by whichever key
    ways = ({"gpu": 4}, {"gpu": 0, "gres": "gpu:4"}, {"gpu": 0, "slurm_extra": "--gpus-per-node=4"})
    needs = {found(raw, "memory of finetune", {"finetune": {**way, "slurm_partition": "gpu"}}) for way in ways}
    assert len(needs) == 1 and needs != {found(raw, "memory of finetune", {"finetune": {"gpu": 1, "slurm_partition": "gpu"}})}


def test_what_only_the_last_attempt_or_a_whole_group_asks_for_is_noted(commands):
    commands("sinfo", "cpu|2:00:00|16|64000|(null)")
    cpu = {"slurm_partition": "cpu", "runtime": 90}
    jobs = {
        "finetune": {**cpu, "mem_mb": 32_000, "last_mem_mb": 96_000},
        "decoding": {**cpu, "group": "evaluation.{arm}"},
        "scores": {**cpu, "runtime": 60, "group": "evaluation.{arm}"},
    }
    notes = [str(finding) for finding in resources.slurm(jobs) if finding.verdict != "ok"]
    assert len(notes) == 2 and all(note.startswith("note") for note in notes)
    assert "the last attempt will be refused, as mem_mb 96000 is more than cpu has (64000), of finetune" in notes[0]
    assert "Slurm group evaluation: its rules one after the other: runtime 150 is more than cpu has (120)" in notes[1]
    jobs["finetune"]["last_mem_mb"], jobs["scores"]["runtime"] = 64_000, 30
    assert [finding.verdict for finding in resources.slurm(jobs)] == ["ok"]
    jobs["finetune"] |= {"threads": 8, "mem_mb_per_cpu": 3_000, "last_mem_mb_per_cpu": 9_000}
    (note, _) = map(str, resources.slurm(jobs))
    assert "the last attempt will be refused, as mem_mb_per_cpu × CPUs 72000 is more than cpu has (64000), of finetune" in note


def test_without_slurm_a_slurm_profile_is_wrong(monkeypatch):
    monkeypatch.setattr(partitions, "output_of", lambda *command: None)
    assert ["WRONG" in str(finding) and "login node" in str(finding) for finding in resources.slurm({"x": {"slurm_partition": "a"}})] == [
        True
    ]
    assert list(resources.slurm({"x": {"mem_mb": 5}})) == []


def test_an_experiment_that_only_trains_a_backbone_needs_what_this_arm_needs():
    """Its other arms are not trained, and one of their backbones need not be there."""
    raw = copy.deepcopy(DEFAULT)
    raw["run"] |= {"experiments": ["again"], "arms": ["finetune", "mine", "mask"]}
    raw["backbones"] |= {"other": {"like": "bible"}, "restored": {"kind": "arm", "from": "help-de-en/mine/seed1/pretext"}}
    raw["arms"]["mine"] = [{"data": "codeswitch", "updates": 2800, "backbone": "other"}, {"data": "task", "updates": 1400}]
    raw["experiments"]["again"] = {"like": "help-de-en", "backbone": "restored", "arms": ["finetune"]}
    plans = planned(raw)
    assert Counter((phase.rule, phase.backbone.name) for phase in resources.phases(plans)) == {
        ("backbone", "other"): 1,
        ("pretext", "other"): 1,
        ("finetune", "other"): 1,
        ("finetune", "restored"): 1,
    }
    assert resources.needed_disk(plans, 1) > 0 and findings.masked_phases(plans.backbones["other"]) == []


@pytest.mark.parametrize(
    ("job", "places", "gpus", "at_once"),
    [
        (None, 4, None, 4),
        (None, 16, 1, 1),
        (None, 4, 6, 4),
        ({"gpu": 1}, 50, None, 50),
        ({"gpu": 1}, 50, 8, 8),
        ({"gpu": 4}, 50, 8, 2),
        ({"gpu": 4}, 50, 2, 1),
        ({"gpu": 0}, 50, 8, 50),
    ],
)
def test_as_many_trainings_run_at_once_as_there_are_places_and_gpus(job, places, gpus, at_once):
    plans = planned(DEFAULT)
    jobs = {rule: job for rule in ("backbone", "pretext", "finetune") if job}
    assert resources.trainings_at_once(plans, jobs, places, gpus) == at_once


def test_as_many_phases_as_run_at_once_have_checkpoints_with_moments():
    plans = planned(changed("run/seeds", [1, 2, 3]))
    trained = list(resources.phases(plans))
    assert {(phase.rule, phase.checkpoints, phase.weights) for phase in trained} == {
        ("backbone", 2, 1),
        ("pretext", 2, 1),
        ("finetune", 3, 2),
    }
    size = resources.shape_of(plans.backbones["bible"]).parameters
    moments = [size * (12 * phase.checkpoints - 4 * phase.weights) for phase in trained for _ in range(int(phase.times))]
    needed = {number: resources.needed_disk(plans, number) for number in (2, 10**6)}
    assert needed[10**6] - needed[2] == pytest.approx(sum(moments) - 2 * max(moments))


@pytest.mark.parametrize(
    "job, verdict, said",
    [
        ({"gpu": 1, "gpu_model": "t4"}, "ok", "so it goes through it in parts"),
        ({"gpu": 2, "gpu_model": "t4"}, "WRONG", f"micro_batch_tokens to less than {SHARDED_TOKENS},"),
        ({"slurm_partition": "cpu", "mem_mb": 30_000}, "WRONG", "mem_mb is 30 GB"),
    ],
)
def test_a_sharded_update_goes_through_several_gpus_in_parts_that_nobody_tries(job, verdict, said):
    raw = changed("backbones/bible", {"kind": "hub", "model": "facebook/mbart-large-cc25"})
    raw["experiments"]["help-de-en"]["training"] |= {"sharded": True, "batch_tokens": 32_768}
    line = found(raw, "memory of finetune", {"finetune": job})
    assert line.startswith(verdict) and said in line


@pytest.mark.parametrize(
    "at_once, processors, gpu, verdict, said",
    [
        (1, 2, 0, None, ""),  # room for all that could run
        (1, 16, 0, "ok", "so run with --cores 3 at most"),
        (3, 16, 0, "ok", "so run with --cores 3 at most"),
        (4, 1, 0, "note", "4 at once need about"),
        (4, 1, 0, "note", "set --cores 3"),
        (100, 1, 0, "note", "6 at once need about"),  # there are no more
        (1, 16, 80e9, None, ""),  # one at a time, whatever the cores
    ],
)
def test_trainings_that_run_at_once_on_processors_need_memory_together(monkeypatch, at_once, processors, gpu, verdict, said):
    raw = changed("run/seeds", [1, 2, 3])
    raw["experiments"]["help-de-en"]["training"] |= {"device": "cpu"}
    raw["run"]["arms"] = ["finetune", "csr"]
    plans = planned(raw)
    (need,) = {need.at_once for need in resources._needs(plans, {})["finetune"]}
    monkeypatch.setattr(resources, "machine_memory", lambda: 3.5 * need)
    monkeypatch.setattr(resources, "gpu_here", lambda: gpu)
    monkeypatch.setattr("os.cpu_count", lambda: processors)
    together = [finding for finding in resources.memory(plans, {}, at_once) if finding.about == "trainings at once, finetune"]
    assert [finding.verdict for finding in together] == [verdict] * bool(verdict) and all(said in finding.said for finding in together)


@pytest.mark.parametrize("experts", [{"num_local_experts": 8}, {"num_experts": 64}, {"moe_num_experts": [64, 64]}, {"num_experts": 1}])
def test_a_mixture_of_experts_has_no_size_by_its_configuration(tmp_path, experts):
    model = small_decoder(tmp_path, "llama")
    settings = read_json(model / "config.json")
    (model / "config.json").write_text(json.dumps(settings | experts), encoding="utf-8")
    plans = planned(changed("backbones/bible", {"kind": "hub", "model": str(model)}))
    known = experts == {"num_experts": 1}
    assert (model_findings.shape_of(plans.backbones["bible"]) is not None) is known
    (disk,) = resources.disk(plans)
    assert (disk.verdict == "ok") is known and ("without the models of bible, of unknown size" in disk.said) is not known
