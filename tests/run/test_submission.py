"""Preflight reports what Snakemake's plugin for Slurm refuses in a job, with keys that it takes."""

import re

import pytest
from snakemake.iocontainers import ResourceList
from snakemake_executor_plugin_slurm.utils import set_gres_string

from workflow_scripts.run import resources
from workflow_scripts.run.partitions import check_job, gpus_of, read_partitions
from workflow_scripts.run.submission import refusal

A100 = "nvidia_a100-sxm4-80gb"

# what `sinfo --noheader --exact --format "%R|%l|%c|%m|%G"` says on clusters of several makes
CLUSTERS = {
    "names as NVIDIA's library gives them": f"""\
gpu|2-00:00:00|12|100000|gpu:{A100}:2,lscratch:500
cpu|2-00:00:00|12|100000|lscratch:500""",
    "a slice of a GPU": """\
gpu|1-00:00:00|64+|515000+|gpu:nvidia_a100_1g.5gb:7(S:0-1),gpu:nvidia_a100_3g.20gb:2(S:0,3)
gpu|1-00:00:00|64|515000|gpu:nvidia_h100_80gb_hbm3:4(S:0-1)""",
    "short names, and other things": "gpu|infinite|48|250000|gpu:v100:4(S:0),gpu:a40:2,shard:v100:16,nvme:1G\ngpu|infinite|8|64000|(null)",
    "a hyphen and many words": "gpu|7-00:00:00|128|1000000|gpu:NVIDIA-RTX-A6000:8(IDX:0-7)",
}


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_every_model_of_a_cluster_can_be_asked_for_as_preflight_says(cluster, commands):
    """A job that names a model as sinfo writes it is taken, or refused with keys that are taken."""
    commands("sinfo", CLUSTERS[cluster])
    models = {model for nodes in read_partitions()["gpu"] for model in nodes.gpus}
    assert models
    for model in models:
        job = {"slurm_partition": "gpu", "gpu": 1, "gpu_model": model}
        (finding,) = resources.slurm({"finetune": job})
        if finding.verdict != "ok":
            message = f"WRONG  Slurm job finetune: gpu_model: {model}: Snakemake's plugin cannot read it"
            assert "-" in model and str(finding).startswith(message)
            job |= written_in(finding.said) | {"gpu_model": None}
            (finding,) = resources.slurm({"finetune": job})
        assert str(finding) == "ok     Slurm: gpu can take finetune"
        assert gpus_of(job) == (1, model) and check_job("finetune", job, read_partitions())


def written_in(advice: str) -> dict:
    """The keys that a finding says to write, as a profile has them."""
    keys = re.findall(r'(gpu|gpu_model|gres|slurm_extra): ("[^"]*"|[^\s,;]+)', advice.partition("; write ")[2])
    return {key: int(value) if value.isdigit() else value.strip('"') for key, value in keys}


@pytest.mark.parametrize(
    "job, said",
    [
        ({"gres": f"gpu:{A100}:2"}, f'write gpu: 0 and slurm_extra: "--gpus-per-node={A100}:2"'),
        ({"gres": "gpu:a100:1,lscratch:100"}, "write gres: lscratch:100 and gpu: 1 and gpu_model: a100"),
        ({"gres": f"gpu:{A100}:1,lscratch:100"}, f'write gres: lscratch:100 and gpu: 0 and slurm_extra: "--gpus-per-node={A100}:1"'),
        ({"gres": "'gpu:1'"}, "write gpu: 1"),
        ({"gpu": 1, "gpu_model": 3090}, 'write gpu: 0 and slurm_extra: "--gpus-per-node=3090:1"'),
    ],
)
def test_what_cannot_be_read_is_answered_with_what_can(job, said):
    message = refusal("finetune", {"slurm_partition": "gpu", **job})
    assert "cannot read it" in message and said in message and "under set-resources: finetune" in message
    better = written_in(message)
    assert refusal("finetune", {"slurm_partition": "gpu", **better}) == "" and gpus_of(better)[0] == max(1, gpus_of(job)[0])


@pytest.mark.parametrize(
    "extra, option, instead",
    [
        ("--gres=gpu:1", "--gres", "gres: NAME:NUMBER"),
        ("--mail-type=END --qos high", "--qos", "qos: NAME"),
        ("-C a100", "-C", "constraint: NAME"),
        ("--gpus=a100:1", "--gpus", "gpu: NUMBER and gpu_model: MODEL"),
        ("--time=60", "--time", "runtime: MINUTES"),
        ("--workdir=/x", "--workdir", "its own key"),
    ],
)
def test_options_that_the_plugin_sets_itself_are_reported_with_its_key(extra, option, instead):
    message = refusal("decoding", {"slurm_partition": "gpu", "slurm_extra": extra})
    assert message.startswith(f"slurm_extra: Snakemake's plugin refuses {option} in it; write {instead}"), message


@pytest.mark.parametrize(
    "job, said",
    [
        ({"nodes": 0}, "'nodes' must be an integer"),
        ({"mpi": "srun"}, "For MPI jobs"),
        ({"cpus_per_task": "4"}, "cpus_per_task must be an integer"),
        ({"gres": "nvme:1,scratch:2"}, "gres: nvme:1,scratch:2: Snakemake's plugin cannot read it; write one of them alone (gres: nvme:1)"),
        ({"gpu": 1, "slurm_extra": f"--gpus-per-node={A100}:1"}, f"asked for by slurm_extra, too (1 {A100}), and Slurm refuses"),
        ({"gpu": 1, "gres": "gpu:a100:1"}, "asked for by gres, too (1 a100), and Slurm refuses"),
    ],
)
def test_what_else_is_refused(job, said):
    assert said in refusal("finetune", {"slurm_partition": "gpu", **job})


@pytest.mark.parametrize(
    "job",
    [{"gpu": 1}, {"gpu": 2, "gpu_model": "nvidia_a100_3g.20gb"}, {"gres": "lscratch:100", "gpu": 1}, {"slurm_extra": "--exclusive"}, {}],
)
def test_what_the_plugin_takes_is_not_refused(job):
    assert refusal("finetune", {"slurm_partition": "gpu", **job}) == ""


def test_the_plugin_still_reads_gpus_by_these_keys():
    """The advice rests on them; the job's own step gets the same number."""
    asked = type("Job", (), {"resources": ResourceList(fromdict={"gres": "lscratch:100", "gpu": 1, "gpu_model": "a100"})})
    assert set_gres_string(asked) == " --gres=lscratch:100 --gpus=a100:1"


def test_a_refused_job_is_reported_without_a_cluster(commands):
    """A profile may be looked at where sinfo is not to be found."""
    commands("sinfo", "no", 1)
    found = [str(finding) for finding in resources.slurm({"finetune": {"slurm_partition": "gpu", "gpu": 1, "gpu_model": A100}})]
    assert len(found) == 2 and "cannot read it" in found[0]
